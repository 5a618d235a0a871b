//! Every change that a choice could mean: listed, too many to be listed, across a lost record, or not captured yet.

use super::Whose;
use crate::capture::About;
use crate::capture::sound::readable_changes;
use crate::history::changes::OwnedChange;
use crate::history::lineage::Lineage;
use crate::operation::draft::FolderNow;
use crate::operation::error::OperationError;
use crate::workspace::{History, Standing};
use piton_model::diff;
use piton_model::ownership::{ChangedPath, Doubt, Owned, Owner};
use piton_model::{Cause, WorkspacePath};
use piton_store::{CheckpointRow, StoreError};

/// A change that could be meant.
pub(super) struct Candidates {
    pub number: Option<u32>,
    pub change: OwnedChange,
}

impl History {
    /// Every change that could be meant, in order, with its number in the list of changes.
    pub(super) fn candidates(
        &self,
        whose: Whose,
        session: Option<&Lineage>,
        seen: &FolderNow<'_>,
    ) -> Result<Vec<Candidates>, OperationError> {
        let rows = match session {
            Some(session) => self.store.changes_about(session.sessions())?,
            None => self.store.changes_since(0)?,
        };
        let mut numbers = 1..;
        let numbered = rows.into_iter().map(|row| {
            let number = if session.is_some_and(|session| session.may_own(&row.owner)) { numbers.next() } else { None };
            (number, row)
        });
        let wanted = numbered.filter(|(number, row)| match whose {
            Whose::Agent => number.is_some(),
            Whose::You => row.owner.may_be_you(),
        });
        let mut found: Vec<Candidates> = Vec::new();
        for (number, change) in self.at_checkpoints(wanted.collect())? {
            let place = change.found_at.as_ref().and_then(|at| at.checkpoint.place.as_ref());
            let is_here = |session: &Lineage| place.is_some_and(|place| session.holds(&place.session, place.turn));
            let elsewhere = whose == Whose::You && session.is_some_and(|session| !is_here(session));
            if !elsewhere {
                found.push(Candidates { number, change });
            }
        }
        self.add_unlisted(whose, session, &mut found)?;
        let is_wanted = |owner: &Owner| match (whose, session) {
            (Whose::Agent, Some(session)) => session.may_own(owner),
            (Whose::Agent, None) => false,
            (Whose::You, _) => owner.may_be_you(),
        };
        let mut across = self.changes_across_lost(0)?;
        across.retain(|change| {
            let is_listed = |row: &Candidates| row.change.seq() == change.seq() && row.change.path == change.path;
            is_wanted(&change.owner) && !found.iter().any(is_listed)
        });
        if !across.is_empty() {
            found.extend(across.into_iter().map(|change| Candidates { number: None, change }));
            found.sort_by_key(|row| row.change.seq());
        }
        // What nobody has captured yet comes last.
        for change in self.uncaptured(seen)? {
            if is_wanted(&change.owner) {
                let number = if whose == Whose::Agent { numbers.next() } else { None };
                found.push(Candidates { number, change });
            }
        }
        Ok(found)
    }

    /// The same of what is there now. Where that cannot be looked at, there is nothing to tell of it.
    pub(crate) fn uncaptured_now(&self) -> Result<Vec<OwnedChange>, StoreError> {
        let Ok(Standing::Same(_) | Standing::Missing) = self.standing() else { return Ok(Vec::new()) };
        let mode = self.store.head(self.record.line)?.map_or(0, |head| head.checkpoint.root.mode);
        let Ok(looked) = self.look(mode, &[]) else { return Ok(Vec::new()) };
        match self.uncaptured(&looked.seen(&self.store)) {
            Err(OperationError::Store(error)) => Err(error),
            found => Ok(found.unwrap_or_default()),
        }
    }

    /// What changed since the last capture, and whose that is.
    pub(crate) fn uncaptured(&self, seen: &FolderNow<'_>) -> Result<Vec<OwnedChange>, OperationError> {
        let Some(head) = self.store.head(self.record.line)? else { return Ok(Vec::new()) };
        let changes = readable_changes(&seen.trees, Some(&head.checkpoint.root), &seen.now)?;
        let about = About { is_folder_gone: seen.root.is_none(), ..About::of(Cause::BeforeOperation) };
        let mut owned = self.owners(&changes, seen.index, &head, &about)?;
        if owned.is_empty() {
            // Too many to be told apart, and not all one's.
            owned.push(Owned::of(Owner::Unsure { candidates: Vec::new() }, Vec::new()));
        }
        let mut found = Vec::new();
        for Owned { owner, doubt, paths, .. } in owned {
            if paths.is_empty() {
                let all = changes.iter().filter(|change| !change.implied);
                found.extend(all.map(|change| fresh(change.path.clone(), change.kind(), &owner, doubt)));
            }
            found.extend(paths.into_iter().map(|ChangedPath { path, kind }| fresh(path, kind, &owner, doubt)));
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    /// Adds changes that were too many to be listed one by one.
    fn add_unlisted(
        &self,
        whose: Whose,
        session: Option<&Lineage>,
        found: &mut Vec<Candidates>,
    ) -> Result<(), StoreError> {
        let is_meant = |at: &CheckpointRow| {
            let place = at.checkpoint.place.as_ref();
            session.is_none_or(|session| place.is_some_and(|place| session.holds(&place.session, place.turn)))
        };
        let checkpoints = self.store.checkpoints_cut(0)?.into_iter().filter(is_meant).collect();
        let before = found.len();
        let wanted = |owner: &Owner| match (whose, owner) {
            (Whose::Agent, Owner::Step { step, .. }) => session.is_some_and(|session| session.holds_step(step)),
            (Whose::You, Owner::You) | (_, Owner::Unsure { .. }) => true,
            _ => false,
        };
        let unlisted = self.unlisted(checkpoints, wanted)?;
        found.extend(unlisted.into_iter().map(|change| Candidates { number: None, change }));
        if found.len() > before {
            found.sort_by_key(|row| row.change.seq());
        }
        Ok(())
    }
}

fn fresh(path: WorkspacePath, kind: diff::ChangeKind, owner: &Owner, doubt: Option<Doubt>) -> OwnedChange {
    OwnedChange { path, owner: owner.clone(), doubt, kind, found_at: None }
}
