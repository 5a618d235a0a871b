//! What a session did in its other workspaces, as far as an undo here must know.
//!
//! Each workspace has a store of its own, and an undo changes one workspace. Whoever takes back "the last turn" means the
//! last one anywhere, so this looks at the other stores and changes nothing in them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use piton_model::ownership::Owner;
use piton_model::{WorkspaceId, WorkspacePath};
use piton_store::StoreError;

use crate::history::changes::{OwnedChange, last_turn};
use crate::history::lineage::Lineage;
use crate::workspace::{History, OpenError};

/// What is known about a conversation's other workspaces.
#[derive(Default)]
pub(crate) struct Elsewhere {
    /// Workspaces with changes of it that are in effect, and the turns of these, in order.
    pub turns: Vec<(PathBuf, Vec<u32>)>,
    /// Stores that cannot be read, with the reason: a later turn may have changed something there.
    pub unread: Vec<(PathBuf, String)>,
}

impl History {
    /// What a conversation did in its other workspaces.
    pub(crate) fn turns_elsewhere(&self, session: &Lineage) -> Elsewhere {
        let mut elsewhere = Elsewhere::default();
        let unread = self.home.unread_stores_of(session.session()).into_iter();
        elsewhere.unread.extend(unread.map(|(store, error)| (store, error.to_string())));
        let others = self.home.workspaces_of(session.session()).into_iter().filter(|(id, _)| *id != self.record.id);
        for (id, path) in others {
            match self.turns_in(&id, &path, session) {
                Ok(turns) if turns.is_empty() => {}
                Ok(turns) => elsewhere.turns.push((path, turns)),
                Err(error) => elsewhere.unread.push((self.home.folder(&id), error.to_string())),
            }
        }
        elsewhere
    }

    /// The turns of a conversation whose changes are in effect in another workspace.
    fn turns_in(&self, id: &WorkspaceId, path: &Path, session: &Lineage) -> Result<Vec<u32>, OpenError> {
        let engine = self.engine();
        // People may have to refer to it by its store's name.
        let known = self.home.known(id).ok_or_else(|| OpenError::NotKnown(path.to_owned()))?;
        let other = engine.read(id, engine.where_it_is(known).path)?;
        let mut turns = match other.effective_turns(session, self) {
            Err(error) if error.is_damaged_database() => {
                other.store.rebuild()?;
                other.effective_turns(session, self)?
            }
            turns => turns?,
        };
        if other.is_missing() {
            // The turn in which the whole folder disappeared changed it too.
            let gaps = other.store.gaps(Some(session.session()))?;
            turns.extend(gaps.last().map(|(_, gap)| gap.place.turn));
        }
        Ok(turns)
    }

    /// The turns of a conversation whose changes, or possible changes, are in effect here, in order; besides changes that the
    /// workspace which asks has found as well, because one of the two lies in the other.
    fn effective_turns(&self, session: &Lineage, besides: &Self) -> Result<Vec<u32>, StoreError> {
        let rows = self.store.changes_about(session.sessions())?;
        let changes: Vec<OwnedChange> =
            self.at_checkpoints(rows.into_iter().map(|row| ((), row)).collect())?.into_iter().map(|(_, c)| c).collect();
        let in_effect = self.in_effect(&changes.iter().collect::<Vec<_>>())?;
        let place = |path: &WorkspacePath, owner: &Owner, of: &Self| {
            Some((of.path.join(path.as_path()), last_turn(owner, session)?))
        };
        let overlap = self.path.starts_with(&besides.path) || besides.path.starts_with(&self.path);
        let there = if overlap { besides.store.changes_about(session.sessions())? } else { Vec::new() };
        let there: HashSet<_> = there.iter().filter_map(|row| place(&row.path, &row.owner, besides)).collect();
        let effective = changes.iter().zip(in_effect).filter(|(_, effective)| *effective);
        let found = effective.filter_map(|(change, _)| place(&change.path, &change.owner, self));
        let mut turns: Vec<u32> = found.filter(|one| !there.contains(one)).map(|(_, turn)| turn).collect();
        turns.sort_unstable();
        turns.dedup();
        Ok(turns)
    }
}
