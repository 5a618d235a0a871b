//! What operations keep reachable in the user's repository, under `refs/piton/`, and when it goes.
//!
//! As long as an operation can be taken back its references stay. After that they go at the next operation that moves
//! git, or on request. Those of operations that this store does not know are never touched: several workspaces, each with
//! a store of its own, may share one repository.

use std::collections::BTreeMap;

use piton_host::git::RepositoryWriter;
use piton_model::OperationId;
use piton_store::OperationState;

use crate::history::operations::standing;
use crate::operation::git_restore::GitRefusal;
use crate::view::{KeptGit, KeptGitState};
use crate::workspace::{History, Workspace};

const FOLDER: &str = "refs/piton/";

impl Workspace {
    /// Lets go of what no operation of this store needs any more; returns that.
    ///
    /// # Errors
    /// Where git refuses, or is not there.
    pub fn forget_old_git(&self) -> Result<Vec<KeptGit>, GitRefusal> {
        let mut kept = self.kept_git()?;
        kept.retain(|one| matches!(one.state, KeptGitState::TakenBack | KeptGitState::Moved));
        for one in &kept {
            self.forget_git(&one.operation)?;
        }
        Ok(kept)
    }

    /// The same at the end of an operation that moved git itself: only what was taken back, whatever the repository
    /// looks like now. What goes wrong is no failure of the operation.
    pub(crate) fn forget_git_taken_back(&self) {
        let old = self.kept_git().unwrap_or_default();
        for one in old.iter().filter(|one| one.state == KeptGitState::TakenBack) {
            let _ = self.forget_git(&one.operation);
        }
    }
}

impl History {
    /// What is kept in the repository around the workspace, newest first; nothing where there is no repository.
    ///
    /// # Errors
    /// Where git refuses, or is not there.
    pub fn kept_git(&self) -> Result<Vec<KeptGit>, GitRefusal> {
        let Some(repository) = self.found_repository() else { return Ok(Vec::new()) };
        let writer = repository.writer(self.environment.git.as_deref())?;
        self.kept_in(&writer)
    }

    fn kept_in(&self, writer: &RepositoryWriter<'_>) -> Result<Vec<KeptGit>, GitRefusal> {
        let mut counts: BTreeMap<OperationId, u64> = BTreeMap::new();
        for reference in writer.references(FOLDER)? {
            let rest = reference.strip_prefix(FOLDER.as_bytes()).unwrap_or_default();
            let name = rest.split(|byte| *byte == b'/').next().unwrap_or_default();
            if let Some(operation) = std::str::from_utf8(name).ok().and_then(|name| name.parse().ok()) {
                *counts.entry(operation).or_default() += 1;
            }
        }
        if counts.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.store.operations()?;
        let mut kept = Vec::new();
        // Whoever takes back a newer one comes to the older ones by that.
        let mut is_in_reach = false;
        for (row, stands) in rows.iter().zip(standing(&rows)) {
            let Some(references) = counts.remove(&row.id) else { continue };
            let state = match row.state {
                OperationState::Pending => KeptGitState::Needed,
                _ if !stands => KeptGitState::TakenBack,
                _ if is_in_reach => KeptGitState::Needed,
                _ => match self.store.operation(row)?.git.map(|done| self.plan_git_back(&done)) {
                    Some(Err(GitRefusal::ChangedSince(_) | GitRefusal::CommitGone { .. })) => KeptGitState::Moved,
                    _ => KeptGitState::Needed,
                },
            };
            is_in_reach |= state == KeptGitState::Needed;
            kept.push(KeptGit { operation: row.id.clone(), began_at: Some(row.began_at), references, state });
        }
        let unknown =
            |(operation, references)| KeptGit { operation, began_at: None, references, state: KeptGitState::Unknown };
        kept.extend(counts.into_iter().map(unknown));
        Ok(kept)
    }
}
