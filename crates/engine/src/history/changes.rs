//! Every change ever found here, with its owner, and which of them are in effect.

use std::collections::HashMap;
use std::sync::Arc;

use piton_model::diff;
use piton_model::effect::{ChangeRef, DoneOperation, Effects};
use piton_model::ownership::{Candidate, Doubt, Owner};
use piton_model::{CheckpointId, StepRef, WorkspacePath};
use piton_store::{ChangeRow, CheckpointRow, OperationState, StoreError};

use crate::capture::sound::readable_changes;
use crate::history::lineage::Lineage;
use crate::view::{ChangedFile, DoubtView};
use crate::workspace::History;

/// A change with the checkpoint that found it.
#[derive(Clone, Debug)]
pub(crate) struct OwnedChange {
    pub path: WorkspacePath,
    pub owner: Owner,
    /// Why that is not sure.
    pub doubt: Option<Doubt>,
    pub kind: diff::ChangeKind,
    /// `None` if no checkpoint has found it yet. Shared, since a checkpoint's row lists all changes that it found.
    pub found_at: Option<Arc<CheckpointRow>>,
}

impl OwnedChange {
    /// Its position in the order of records.
    pub(crate) fn seq(&self) -> u64 {
        self.found_at.as_ref().map_or(u64::MAX, |at| at.seq)
    }

    pub(crate) fn file(&self) -> ChangedFile {
        ChangedFile {
            path: (&self.path).into(),
            kind: self.kind,
            owner: self.owner.clone(),
            doubt: self.doubt.map(DoubtView::from),
        }
    }
}

impl History {
    /// Changes of checkpoints that found too many to list individually.
    pub(crate) fn unlisted(
        &self,
        checkpoints: Vec<CheckpointRow>,
        is_wanted: impl Fn(&Owner) -> bool,
    ) -> Result<Vec<OwnedChange>, StoreError> {
        self.unlisted_on(self.record.line, checkpoints, is_wanted)
    }

    /// The same of checkpoints of another line.
    fn unlisted_on(
        &self,
        line: u32,
        checkpoints: Vec<CheckpointRow>,
        is_wanted: impl Fn(&Owner) -> bool,
    ) -> Result<Vec<OwnedChange>, StoreError> {
        let mut found = Vec::new();
        for at in checkpoints.into_iter().filter(|at| at.checkpoint.line == line) {
            let owner = match at.checkpoint.owned.first() {
                Some(all) => all.owner.clone(),
                None => Owner::Unsure { candidates: Vec::new() },
            };
            let doubt = at.checkpoint.owned.first().and_then(|all| all.doubt);
            let parent = at.checkpoint.parent.as_ref().map(|id| self.store.checkpoint(id)).transpose()?.flatten();
            // If the parent is lost, its changes are among those across the lost checkpoint.
            let Some(parent) = parent.filter(|_| is_wanted(&owner)) else { continue };
            let changes = readable_changes(&self.store, Some(&parent.checkpoint.root), &at.checkpoint.root)?;
            let at = Arc::new(at);
            for change in changes.into_iter().filter(|change| !change.implied) {
                let (kind, found_at) = (change.kind(), Some(at.clone()));
                found.push(OwnedChange { path: change.path, owner: owner.clone(), doubt, kind, found_at });
            }
        }
        Ok(found)
    }

    /// Changes in order, each with the checkpoint that found it, for checkpoints of this folder.
    pub(crate) fn at_checkpoints<T>(&self, rows: Vec<(T, ChangeRow)>) -> Result<Vec<(T, OwnedChange)>, StoreError> {
        self.at_checkpoints_on(self.record.line, rows)
    }

    /// The same for checkpoints of another line.
    fn at_checkpoints_on<T>(&self, line: u32, rows: Vec<(T, ChangeRow)>) -> Result<Vec<(T, OwnedChange)>, StoreError> {
        let mut changes = Vec::with_capacity(rows.len());
        let mut at: Option<Arc<CheckpointRow>> = None;
        for (with, row) in rows {
            if at.as_ref().is_none_or(|at| at.seq != row.seq) {
                at = self.store.checkpoint_numbered(row.seq)?.map(Arc::new);
            }
            let Some(at) = at.as_ref().filter(|at| at.checkpoint.line == line) else { continue };
            let ChangeRow { path, kind, owner, doubt, .. } = row;
            changes.push((with, OwnedChange { path, kind, owner, doubt, found_at: Some(at.clone()) }));
        }
        Ok(changes)
    }

    /// Every change that a checkpoint of this folder found, from a record on, in order.
    pub(crate) fn all_changes(&self, from: u64) -> Result<Vec<OwnedChange>, StoreError> {
        self.all_changes_on(self.record.line, from)
    }

    /// The same of the checkpoints of another line, as those of an archive.
    pub(crate) fn all_changes_on(&self, line: u32, from: u64) -> Result<Vec<OwnedChange>, StoreError> {
        let rows = self.store.changes_since(from)?.into_iter().map(|row| ((), row)).collect();
        let mut changes: Vec<_> = self.at_checkpoints_on(line, rows)?.into_iter().map(|((), change)| change).collect();
        let mut unlisted = self.unlisted_on(line, self.store.checkpoints_cut(from)?, |_| true)?;
        if line != self.record.line {
            changes.extend(unlisted);
            changes.sort_by_key(OwnedChange::seq);
            return Ok(changes);
        }
        // This includes what is listed as a tool's: the lost checkpoint may have found a user's edit of the same path.
        let mut across = self.changes_across_lost(from)?;
        let is_listed = |one: &OwnedChange, change: &OwnedChange| {
            one.seq() == change.seq() && one.path == change.path && one.owner.may_be_you()
        };
        across.retain(|change| !changes.iter().any(|one| is_listed(one, change)));
        unlisted.extend(across);
        if !unlisted.is_empty() {
            changes.extend(unlisted);
            changes.sort_by_key(OwnedChange::seq);
        }
        Ok(changes)
    }

    /// For each change, whether it is in effect: not taken back, or taken back and reinstated.
    pub(crate) fn in_effect(&self, changes: &[&OwnedChange]) -> Result<Vec<bool>, StoreError> {
        let Some(effects) = self.effects(changes)? else { return Ok(vec![true; changes.len()]) };
        Ok((0..changes.len()).map(|number| effects.is_in_effect(number)).collect())
    }

    /// How operations affected these changes; `None` if there were no operations since.
    pub(crate) fn effects(&self, changes: &[&OwnedChange]) -> Result<Option<Effects>, StoreError> {
        self.effects_until(changes, u64::MAX)
    }

    /// The same as if no operation had happened from a record on.
    pub(crate) fn effects_until(&self, changes: &[&OwnedChange], until: u64) -> Result<Option<Effects>, StoreError> {
        let first = changes.iter().map(|change| change.seq()).min().unwrap_or(u64::MAX);
        let mut rows = self.store.operations()?;
        rows.retain(|row| row.state == OperationState::Done && row.seq > first && row.seq < until);
        if rows.is_empty() {
            return Ok(None);
        }
        rows.reverse();
        let mut done = Vec::with_capacity(rows.len());
        let mut places: HashMap<CheckpointId, u64> = HashMap::new();
        for row in rows {
            // What a damaged operation did is unknown; the files themselves still show what can be taken back.
            let Ok(operation) = self.store.operation(&row) else { continue };
            if let piton_model::OperationKind::Rewind { target, .. } = &operation.kind
                && let Some(target) = self.store.checkpoint(target)?
            {
                places.insert(target.checkpoint.id.clone(), target.moment());
            }
            done.push(DoneOperation { id: row.id, seq: row.seq, kind: operation.kind });
        }
        // No operation affected what no checkpoint has found, since there is no id to name it by.
        let unborn = CheckpointId::from_random([0; 8]);
        let refs: Vec<(u64, ChangeRef)> = changes
            .iter()
            .map(|change| {
                let checkpoint = change.found_at.as_ref().map_or(&unborn, |at| &at.checkpoint.id).clone();
                (change.seq(), ChangeRef { checkpoint, path: change.path.clone() })
            })
            .collect();
        Ok(Some(Effects::follow(&refs, &done, |id| places.get(id).copied())))
    }
}

/// The last turn of a conversation that made a change, or may have made it.
pub(crate) fn last_turn(owner: &Owner, session: &Lineage) -> Option<u32> {
    let of = |step: &StepRef| session.holds_step(step).then_some(step.turn);
    match owner {
        Owner::Step { step, .. } => of(step),
        Owner::Unsure { candidates } => {
            let turns = candidates.iter().filter_map(|one| match one {
                Candidate::Step(step) => of(step),
                Candidate::You => None,
            });
            turns.max()
        }
        Owner::You | Owner::Operation { .. } => None,
    }
}
