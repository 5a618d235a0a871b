//! What changed across a lost checkpoint.
//!
//! The next checkpoint was compared with the one that is gone, and what the gone one had found is in no list any more. So
//! whatever lies across it is somebody's of whom nobody knows: it is compared with the last checkpoint that is left, and its
//! owner is unsure.

use std::sync::Arc;

use piton_model::StepRef;
use piton_model::ownership::{Candidate, Doubt, Moment, Owner, Why};
use piton_store::{CheckpointRow, StoreError};

use crate::capture::sound::readable_changes;
use crate::history::changes::OwnedChange;
use crate::workspace::History;

/// Two checkpoints with a lost one between them.
pub(crate) struct Across {
    from: CheckpointRow,
    to: Arc<CheckpointRow>,
}

impl History {
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

    /// Everything that changed across lost checkpoints, from a given record on, in order.
    pub(crate) fn changes_across_lost(&self, since: u64) -> Result<Vec<OwnedChange>, StoreError> {
        let mut found = Vec::new();
        for across in self.lost_checkpoints()?.into_iter().filter(|across| across.to.seq >= since) {
            let candidates = self.steps_across(&across)?.into_iter().map(Candidate::Step);
            let owner = Owner::Unsure { candidates: candidates.chain([Candidate::You]).collect() };
            let (from, to) = (&across.from.checkpoint.root, &across.to.checkpoint.root);
            let changes = readable_changes(&self.store, Some(from), to)?;
            found.extend(changes.into_iter().filter(|change| !change.implied).map(|change| OwnedChange {
                kind: change.kind(),
                path: change.path,
                owner: owner.clone(),
                doubt: Some(Doubt { why: Why::Lost, at: None, edited: None }),
                found_at: Some(across.to.clone()),
            }));
        }
        Ok(found)
    }

    /// Steps that were running around a lost checkpoint.
    pub(crate) fn steps_across(&self, across: &Across) -> Result<Vec<StepRef>, StoreError> {
        let windows = self.windows(across.from.seq, Some(across.to.seq), &Moment::Between)?;
        Ok(windows.into_iter().map(|window| window.step).collect())
    }
}
