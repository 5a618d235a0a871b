//! Accepting: a person says that changes are fine, so that `undo all` and the undo of the last turn leave them. No file
//! changes. What is named is still taken back, and a rewind goes to its moment as before.

use std::collections::{BTreeMap, HashMap};

use piton_model::ownership::{Candidate, Owner};
use piton_model::record::Accepted;
use piton_model::{ChangesAt, CheckpointId, Record, SessionId, StepRef, WorkspacePath};
use piton_store::{PATIENCE, StoreError};

use crate::history::changes::OwnedChange;
use crate::history::lineage::Lineage;
use crate::history::target::TargetError;
use crate::view::{AcceptedChanges, AcceptedPart, ChangedFile};
use crate::workspace::{History, Workspace};

/// Which changes of agents are meant. Everything that is given must hold.
#[derive(Clone, Debug, Default)]
pub struct AcceptOptions {
    /// Turns, or single steps of them; all where there are none.
    pub places: Vec<(u32, Option<u32>)>,
    /// Only of this session. Places without one are of the session that reported last.
    pub session: Option<String>,
    /// Only of these paths and what is beneath them.
    pub paths: Vec<WorkspacePath>,
    /// They are no longer accepted.
    pub take_back: bool,
}

/// Why nothing is accepted.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no such change, or none that is still in effect.
    #[error("nothing to accept: no agent's change there is in effect")]
    Nothing,
    /// What is to be taken back was not accepted.
    #[error("none of that was accepted")]
    NotAccepted,
}

impl Workspace {
    /// Records that changes are fine, or that they are no longer so.
    ///
    /// # Errors
    /// Where nothing is meant that could be accepted, or the store refuses.
    pub fn accept(&mut self, options: &AcceptOptions) -> Result<AcceptedChanges, AcceptError> {
        let lineage = match (&options.session, &options.places[..]) {
            (None, []) => None,
            (session, places) => {
                let text = places.first().map_or_else(String::new, |(turn, _)| format!("t{turn}"));
                Some(self.lineage(&self.session_meant(session.as_deref(), &text)?.session.id)?)
            }
        };
        if let Some(lineage) = &lineage {
            for (turn, _) in &options.places {
                if self.turn_in(lineage, *turn)?.is_none() {
                    return Err(self.no_turn(lineage, *turn).into());
                }
            }
        }
        let mut changes = self.all_changes(0)?;
        changes.retain(|change| {
            change.path.is_in_scope(&options.paths) && is_meant(&change.owner, lineage.as_ref(), &options.places)
        });
        let accepted = self.store.accepted()?;
        let in_effect = self.in_effect(&changes.iter().collect::<Vec<_>>())?;
        let mut in_effect = in_effect.into_iter();
        let is_known = |change: &OwnedChange| key(change).is_some_and(|key| accepted.contains(&key));
        changes.retain(|change| in_effect.next().unwrap_or(false) || (options.take_back && is_known(change)));
        if changes.is_empty() {
            return Err(if options.take_back { AcceptError::NotAccepted } else { AcceptError::Nothing });
        }
        changes.retain(|change| is_known(change) == options.take_back);
        let already = changes.is_empty();
        if already && options.take_back {
            return Err(AcceptError::NotAccepted);
        }
        if !already {
            let record = Accepted {
                changes: by_checkpoint(&changes),
                taken_back: options.take_back,
                at: self.environment.clock.now(),
            };
            let locked = self.lock(PATIENCE)?;
            let mut writer = locked.writer()?;
            writer.record(Record::Accepted(record))?;
            writer.commit(true, false)?;
        }
        Ok(AcceptedChanges { files: together(&changes), taken_back: options.take_back, already })
    }
}

impl History {
    /// How much of each turn's changes is accepted; nothing of those that are not in here.
    pub(crate) fn accepted_turns(&self) -> Result<HashMap<(SessionId, u32), AcceptedPart>, StoreError> {
        let turns = self.store.accepted_by_turn()?.into_iter();
        let part = |all: u64, accepted: u64| if accepted < all { AcceptedPart::Some } else { AcceptedPart::All };
        Ok(turns.map(|(session, turn, all, accepted)| ((session, turn), part(all, accepted))).collect())
    }
}

/// What a change is recorded by; none where no checkpoint has found it yet.
pub(crate) fn key(change: &OwnedChange) -> Option<(CheckpointId, WorkspacePath)> {
    change.found_at.as_ref().map(|at| (at.checkpoint.id.clone(), change.path.clone()))
}

/// Whether a change is an agent's, or may be, and of one of some places.
fn is_meant(owner: &Owner, session: Option<&Lineage>, places: &[(u32, Option<u32>)]) -> bool {
    let is_at = |step: &StepRef| {
        session.is_none_or(|session| session.holds_step(step))
            && (places.is_empty()
                || places.iter().any(|(turn, at)| step.turn == *turn && at.is_none_or(|at| at == step.step)))
    };
    match owner {
        Owner::Step { step, .. } => is_at(step),
        Owner::Unsure { candidates } => {
            candidates.iter().any(|candidate| matches!(candidate, Candidate::Step(step) if is_at(step)))
        }
        Owner::You | Owner::Operation { .. } => false,
    }
}

fn by_checkpoint(changes: &[OwnedChange]) -> Vec<ChangesAt> {
    let mut all: Vec<ChangesAt> = Vec::new();
    for (checkpoint, path) in changes.iter().filter_map(key) {
        match all.last_mut().filter(|at| at.checkpoint == checkpoint) {
            Some(at) => at.paths.push(path),
            None => all.push(ChangesAt { checkpoint, paths: vec![path] }),
        }
    }
    all
}

/// Each path once, as it was changed last.
fn together(changes: &[OwnedChange]) -> Vec<ChangedFile> {
    let last: BTreeMap<&WorkspacePath, &OwnedChange> = changes.iter().map(|change| (&change.path, change)).collect();
    last.into_values().map(OwnedChange::file).collect()
}
