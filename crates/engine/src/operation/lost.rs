//! What is taken back and carried over where a record is lost: nothing that lies across a lost checkpoint, see
//! [`crate::history::lost`], since what was there before cannot be told.
//!
//! Of an operation that is gone the checkpoints before and after it tell where it changed something, but not whose changes it
//! took or brought back there. So nothing is carried over at those paths either.

use std::collections::HashSet;

use piton_model::plan::RootState;
use piton_model::{OperationTarget, OperationVerb, WorkspacePath};
use piton_store::{CheckpointRow, OperationRow, OperationState, StoreError};

use crate::capture::sound::{folder_at, readable_changes};
use crate::history::changes::OwnedChange;
use crate::operation::draft::FolderNow;
use crate::operation::error::{OperationError, are_damaged};
use crate::operation::request::Settle;
use crate::workspace::History;

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
    pub(crate) fn changed(&self, seen: &FolderNow<'_>) -> Result<HashSet<WorkspacePath>, StoreError> {
        let changes = readable_changes(&seen.trees, Some(&self.before), self.after.as_ref().unwrap_or(&seen.now))?;
        Ok(changes.into_iter().filter(|change| !change.implied).map(|change| change.path).collect())
    }
}

impl History {
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
        let knows_target = match (row.verb, &row.target) {
            (OperationVerb::Rewind, Some(OperationTarget::Checkpoint(id))) => self.store.checkpoint(id)?.is_some(),
            (OperationVerb::Redo, Some(OperationTarget::Operation(id))) => rows.iter().any(|of| of.id == *id),
            (OperationVerb::Rewind | OperationVerb::Redo, _) => false,
            (OperationVerb::Undo | OperationVerb::Branch | OperationVerb::Checkout | OperationVerb::Recover, _) => true,
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
        seen: &FolderNow<'_>,
    ) -> Result<Vec<WorkspacePath>, StoreError> {
        // Whoever went back before it since, or took back something from before it, went by what it had left.
        let mut since = then.seq;
        let rows = self.store.operations()?;
        for row in rows.iter().filter(|row| row.seq > then.seq && row.state == OperationState::Done) {
            let went_by = match (row.verb, &row.target) {
                (OperationVerb::Rewind, Some(OperationTarget::Checkpoint(id))) => {
                    self.store.checkpoint(id)?.map(|at| at.seq)
                }
                (OperationVerb::Redo, Some(OperationTarget::Operation(id))) => {
                    rows.iter().find(|of| of.id == *id).map(|of| of.seq)
                }
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
        seen: &FolderNow<'_>,
    ) -> Vec<WorkspacePath> {
        let at = |root: RootState, path: &WorkspacePath| folder_at(&seen.trees, root, path);
        paths.retain(|path| match (at(seen.now, path), at(then.checkpoint.root, path)) {
            (Ok(now), Ok(then)) => now != then,
            _ => true,
        });
        paths
    }

    /// Whether what a change left is what stands there now, and not what was there before it.
    pub(crate) fn is_there(&self, change: &OwnedChange, seen: &FolderNow<'_>) -> Result<bool, StoreError> {
        let Some(found) = &change.found_at else { return Ok(true) };
        let parent = found.checkpoint.parent.as_ref().map(|id| self.store.checkpoint(id)).transpose()?.flatten();
        let Some(parent) = parent else { return Ok(false) };
        let at = |root: RootState| folder_at(&seen.trees, root, &change.path);
        let (before, left) = (at(parent.checkpoint.root)?, at(found.checkpoint.root)?);
        Ok(before != left && at(seen.now)? == left)
    }
}

/// Refuses to go on where changes are meant that cannot be turned round, unless the rest is wanted without them.
pub(crate) fn refuse_lost(lost: &[WorkspacePath], settle: &Settle) -> Result<(), OperationError> {
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
