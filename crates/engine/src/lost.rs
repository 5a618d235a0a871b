//! What a damaged store can no longer tell: a checkpoint whose record is gone, and a folder whose listing cannot be read.
//!
//! The next checkpoint was compared with the one that is gone, and what the gone one had found is in no list any more. So
//! whatever lies across it is somebody's of whom nobody knows: it is compared with the last checkpoint that is left, its owner
//! is unsure, and none of it is taken back or carried over, since what was there before cannot be told.

use std::sync::Arc;

use piton_model::diff::{self, Change, TreeSource};
use piton_model::ownership::{Candidate, Owner};
use piton_model::plan::{Layered, RootState};
use piton_model::{Entry, StepRef, WorkspacePath};
use piton_store::{CheckpointRow, StoreError};

use crate::chosen::ChosenChange;
use crate::draft::{Settle, folder_at};
use crate::operate::{OperationError, are_damaged};
use crate::sound::Readable;
use crate::workspace::Workspace;

/// Two checkpoints with a lost one between them.
pub(crate) struct Across {
    from: CheckpointRow,
    to: Arc<CheckpointRow>,
}

impl Workspace {
    /// The places of this folder's history where a checkpoint is lost. Before the first one that is left, nothing can be
    /// compared.
    pub(crate) fn lost_checkpoints(&self) -> Result<Vec<Across>, StoreError> {
        let mut found = Vec::new();
        for to in self.store.checkpoints_after_lost(self.record.line)? {
            if let Some(from) = self.store.checkpoint_before(self.record.line, to.seq)? {
                found.push(Across { from, to: Arc::new(to) });
            }
        }
        Ok(found)
    }

    /// Everything that changed across lost checkpoints, from a record on, in order.
    pub(crate) fn changes_across_lost(&self, since: u64) -> Result<Vec<ChosenChange>, StoreError> {
        let mut found = Vec::new();
        for across in self.lost_checkpoints()?.into_iter().filter(|across| across.to.seq >= since) {
            let candidates = self.steps_across(&across)?.into_iter().map(Candidate::Step);
            let owner = Owner::Unsure { candidates: candidates.chain([Candidate::You]).collect() };
            let (from, to) = (&across.from.checkpoint.root, &across.to.checkpoint.root);
            let changes = readable_changes(&self.store, Some(from), to)?;
            found.extend(changes.into_iter().filter(|change| !change.implied).map(|change| ChosenChange {
                kind: change.kind(),
                path: change.path,
                owner: owner.clone(),
                found_at: Some(across.to.clone()),
            }));
        }
        Ok(found)
    }

    /// The steps that were at work where a checkpoint is lost.
    pub(crate) fn steps_across(&self, across: &Across) -> Result<Vec<StepRef>, StoreError> {
        let windows = self.windows(across.from.seq, Some(across.to.seq))?;
        Ok(windows.into_iter().map(|window| window.step).collect())
    }
}

/// Refuses to go on where changes are meant that cannot be turned round, unless the rest is wanted without them.
pub(crate) fn refuse_lost(lost: &[WorkspacePath], settle: Settle) -> Result<(), OperationError> {
    if lost.is_empty() || settle.partial {
        return Ok(());
    }
    Err(OperationError::RolledBack {
        reason: are_damaged(lost),
        full_disk: false,
        damaged: lost.to_vec(),
        refused: Vec::new(),
        leftovers: Vec::new(),
    })
}

/// As [`diff::root_changes`], also where listings are damaged: a folder that differs and cannot be compared is a change
/// itself, since what changed in it is unknown and not nothing.
pub(crate) fn readable_changes<S: TreeSource<Error = StoreError>>(
    trees: &S,
    from: Option<&RootState>,
    to: &RootState,
) -> Result<Vec<Change>, StoreError> {
    match diff::root_changes(trees, from, Some(to)) {
        Err(StoreError::Damaged(_) | StoreError::Missing(_)) => {}
        changes => return changes,
    }
    let of_root = |root: &RootState| Entry::Folder { mode: root.mode, tree: root.tree, holds_skipped: false };
    let all =
        Change { path: WorkspacePath::root(), before: from.map(of_root), after: Some(of_root(to)), implied: false };
    let Some(from) = from else { return Ok(vec![all]) };
    let readable = match Readable::find(trees, &[*from, *to]) {
        Err(StoreError::Damaged(_) | StoreError::Missing(_)) => return Ok(vec![all]),
        readable => readable?,
    };
    let unknown = readable.differing_folders();
    let layered = Layered { over: &readable.new, under: trees };
    let mut changes = diff::root_changes(&layered, Some(&readable.roots[0]), Some(&readable.roots[1]))?;
    changes.retain(|change| !unknown.iter().any(|folder| change.path.is_within(folder)));
    for path in unknown {
        let (before, after) = (folder_at(trees, *from, &path)?, folder_at(trees, *to, &path)?);
        changes.push(Change { path, before, after, implied: false });
    }
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(changes)
}

/// Whether a change is of a folder that could not be compared: see [`readable_changes`]. Of folders alone only the bits are
/// a change otherwise.
pub(crate) fn is_uncompared(before: Option<&Entry>, after: Option<&Entry>) -> bool {
    matches!(
        (before, after),
        (Some(Entry::Folder { mode: a, .. }), Some(Entry::Folder { mode: b, .. })) if a == b
    )
}
