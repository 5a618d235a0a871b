//! What a session did in its other workspaces, as far as an undo here must know of it.
//!
//! Each workspace has a store of its own, and an undo changes one workspace. Whoever takes back "the last turn" means the
//! last one anywhere, so this looks at the other stores and changes nothing in them.

use std::path::PathBuf;

use piton_store::StoreError;

use crate::chosen::{ChosenChange, last_turn};
use crate::lineage::Lineage;
use crate::workspace::Workspace;

impl Workspace {
    /// The other workspaces that a conversation works in, with the turns of it whose changes are in effect there, in order.
    pub(crate) fn turns_elsewhere(&self, session: &Lineage) -> Vec<(PathBuf, Vec<u32>)> {
        let others = self.home.workspaces_of(session.session()).into_iter().filter(|(id, _)| *id != self.record.id);
        let turns = |(_, path): (_, PathBuf)| {
            // A store that cannot be read now has nothing to say; its own commands tell why.
            let other = self.engine().open_as_it_is(&path).ok()?;
            let mut turns = other.effective_turns(session).ok()?;
            if other.is_missing() {
                // The turn in which all of it went changed it most of all.
                let gaps = other.store.gaps(Some(session.session())).ok()?;
                turns.extend(gaps.last().map(|(_, gap)| gap.place.turn));
            }
            Some((path, turns))
        };
        others.filter_map(turns).filter(|(_, turns)| !turns.is_empty()).collect()
    }

    /// The turns of a conversation whose changes, or possible changes, are in effect here, in order.
    fn effective_turns(&self, session: &Lineage) -> Result<Vec<u32>, StoreError> {
        let rows = self.store.changes_about(session.sessions())?;
        let changes: Vec<ChosenChange> =
            self.at_checkpoints(rows.into_iter().map(|row| ((), row)).collect())?.into_iter().map(|(_, c)| c).collect();
        let in_effect = self.in_effect(&changes.iter().collect::<Vec<_>>())?;
        let effective = changes.iter().zip(in_effect).filter(|(_, effective)| *effective);
        let mut turns: Vec<u32> = effective.filter_map(|(change, _)| last_turn(&change.owner, session)).collect();
        turns.sort_unstable();
        turns.dedup();
        Ok(turns)
    }
}
