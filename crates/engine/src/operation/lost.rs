//! What a damaged store can no longer tell: a checkpoint or an operation whose record is gone, and a folder whose listing cannot
//! be read.
//!
//! The next checkpoint was compared with the one that is gone, and what the gone one had found is in no list any more. So
//! whatever lies across it is somebody's of whom nobody knows: it is compared with the last checkpoint that is left, its owner
//! is unsure, and none of it is taken back or carried over, since what was there before cannot be told.
//!
//! Of an operation that is gone the checkpoints before and after it tell where it changed something, but not whose changes it
//! took or brought back there. So nothing is carried over at those paths either.

use std::collections::HashSet;
use std::sync::Arc;

use piton_model::ownership::{Candidate, Owner};
use piton_model::plan::RootState;
use piton_model::{StepRef, WorkspacePath};
use piton_store::{CheckpointRow, OperationRow, OperationState, StoreError};

use crate::capture::sound::{folder_at, readable_changes};
use crate::operation::chosen::ChosenChange;
use crate::operation::draft::{Seen, Settle};
use crate::operation::operate::{OperationError, are_damaged};
use crate::workspace::Workspace;

/// Two checkpoints with a lost one between them.
pub(crate) struct Across {
    from: CheckpointRow,
    to: Arc<CheckpointRow>,
}

/// An operation that was carried out, as far as anybody knows, and of which nobody knows what it took or brought back: its
/// record, its result, or what it went by is lost.
pub(crate) struct LostOperation {
    /// Its place in the order, or the nearest that is known.
    pub seq: u64,
    before: RootState,
    /// None where nothing was captured since.
    after: Option<RootState>,
}

impl LostOperation {
    /// Where it changed something, as far as what was captured tells: what others did right after it is among it where its
    /// result is lost.
    pub(crate) fn changed(&self, seen: &Seen<'_>) -> Result<HashSet<WorkspacePath>, StoreError> {
        let changes = readable_changes(&seen.trees, Some(&self.before), self.after.as_ref().unwrap_or(&seen.now))?;
        Ok(changes.into_iter().filter(|change| !change.implied).map(|change| change.path).collect())
    }
}

impl Workspace {
    /// The operations in this folder, after a record, of which nobody knows what they took or brought back.
    pub(crate) fn lost_operations(&self, since: u64) -> Result<Vec<LostOperation>, StoreError> {
        let rows = self.store.operations()?;
        let mut found = Vec::new();
        for row in rows.iter().filter(|row| row.seq > since && row.state == OperationState::Done) {
            if self.is_lost(row, &rows)? {
                let result = row.after.as_ref().map(|id| self.store.checkpoint(id)).transpose()?.flatten();
                found.extend(self.lost_operation(row.seq, result)?);
            }
        }
        for (seq, operation) in self.store.operations_without_record(self.record.line)? {
            if seq > since {
                found.extend(self.lost_operation(seq, self.store.result_of(&operation)?)?);
            }
        }
        Ok(found)
    }

    /// Whether the record of an operation after a given one may be lost.
    pub(crate) fn may_have_lost_operations(&self, since: u64) -> Result<bool, StoreError> {
        /// The checkpoint before it, its own record and its result: with fewer lost, a checkpoint tells of it.
        const WITHOUT_TRACE: u64 = 3;
        let traces = self.store.operations_without_record(self.record.line)?;
        Ok(traces.iter().any(|(seq, _)| *seq > since) || self.store.lost_records_since(since)? >= WITHOUT_TRACE)
    }

    fn is_lost(&self, row: &OperationRow, rows: &[OperationRow]) -> Result<bool, StoreError> {
        let target = row.target.as_deref();
        let knows_target = match &row.kind[..] {
            "rewind" => match target.and_then(|target| target.parse().ok()) {
                Some(target) => self.store.checkpoint(&target)?.is_some(),
                None => false,
            },
            "redo" => rows.iter().any(|of| target == Some(of.id.as_str())),
            _ => true,
        };
        let knows_result = match &row.after {
            Some(after) => self.store.checkpoint(after)?.is_some(),
            None => false,
        };
        Ok(!knows_target || !knows_result || self.store.operation(row).is_err())
    }

    fn lost_operation(&self, seq: u64, result: Option<CheckpointRow>) -> Result<Option<LostOperation>, StoreError> {
        let line = self.record.line;
        let is_here = result.as_ref().is_none_or(|result| result.checkpoint.line == line);
        let before = self.store.checkpoint_before(line, result.as_ref().map_or(seq, |result| result.seq))?;
        let Some(before) = before.filter(|_| is_here) else { return Ok(None) };
        let after = match result {
            Some(result) => Some(result),
            None => self.store.checkpoint_after(line, seq)?,
        };
        let root = |row: CheckpointRow| row.checkpoint.root;
        Ok(Some(LostOperation { seq, before: root(before), after: after.map(root) }))
    }

    /// The paths of which nobody knows what of them to carry over to a checkpoint, since an operation is lost that changed them
    /// after it.
    pub(crate) fn unknown_since(
        &self,
        then: &CheckpointRow,
        paths: &[WorkspacePath],
        seen: &Seen<'_>,
    ) -> Result<Vec<WorkspacePath>, StoreError> {
        // Whoever went back before it since, or took back something from before it, went by what it had left.
        let mut since = then.seq;
        let rows = self.store.operations()?;
        for row in rows.iter().filter(|row| row.seq > then.seq && row.state == OperationState::Done) {
            let Some(target) = &row.target else { continue };
            let went_by = match &row.kind[..] {
                "rewind" => {
                    target.parse().ok().map(|id| self.store.checkpoint(&id)).transpose()?.flatten().map(|at| at.seq)
                }
                "redo" => rows.iter().find(|of| of.id.as_str() == target).map(|of| of.seq),
                _ => None,
            };
            since = since.min(went_by.unwrap_or(since));
        }
        let mut unknown = Vec::new();
        for lost in self.lost_operations(since)? {
            unknown.extend(lost.changed(seen)?.into_iter().filter(|path| path.is_in_scope(paths)));
        }
        Ok(unknown)
    }

    /// Those of some paths that are not as in a checkpoint now. What cannot be compared is not known to be the same.
    pub(crate) fn not_as_in(
        &self,
        then: &CheckpointRow,
        mut paths: Vec<WorkspacePath>,
        seen: &Seen<'_>,
    ) -> Vec<WorkspacePath> {
        let at = |root: RootState, path: &WorkspacePath| folder_at(&seen.trees, root, path);
        paths.retain(|path| match (at(seen.now, path), at(then.checkpoint.root, path)) {
            (Ok(now), Ok(then)) => now != then,
            _ => true,
        });
        paths
    }

    /// Whether what a change left is what stands there now, and not what was there before it.
    pub(crate) fn is_there(&self, change: &ChosenChange, seen: &Seen<'_>) -> Result<bool, StoreError> {
        let Some(found) = &change.found_at else { return Ok(true) };
        let parent = found.checkpoint.parent.as_ref().map(|id| self.store.checkpoint(id)).transpose()?.flatten();
        let Some(parent) = parent else { return Ok(false) };
        let at = |root: RootState| folder_at(&seen.trees, root, &change.path);
        let (before, left) = (at(parent.checkpoint.root)?, at(found.checkpoint.root)?);
        Ok(before != left && at(seen.now)? == left)
    }

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
