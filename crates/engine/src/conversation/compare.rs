//! Comparing two conversations: where they parted, what was done in each since, and how their files differ in the end.

use piton_model::{Cause, CheckpointId, SessionId};
use piton_store::StoreError;

use crate::conversation::branches::BranchError;
use crate::history::diff::DiffOptions;
use crate::history::lineage::Lineage;
use crate::history::turns::TurnKey;
use crate::view::{Comparison, Parted};
use crate::workspace::History;

/// How to compare.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompareOptions {
    /// Equal lines around each difference.
    pub context: u32,
}

impl History {
    /// Compares two sessions.
    ///
    /// # Errors
    /// Where one is none, both are the same, or the store refuses.
    pub fn compare(&self, a: &str, b: &str, options: CompareOptions) -> Result<Comparison, BranchError> {
        let (a, b) = (self.session_meant(Some(a), a)?.session.id, self.session_meant(Some(b), b)?.session.id);
        if a == b {
            return Err(BranchError::SameSession(a));
        }
        let (of_a, of_b) = (self.lineage(&a)?, self.lineage(&b)?);
        let parted = of_a.parted_from(&of_b).map(|(session, turn)| Parted { session: session.clone(), turn });
        let first = parted.as_ref().map_or(1, |parted| parted.turn);
        let (end_a, end_b) = (self.end_of(&a)?, self.end_of(&b)?);
        let diff = match (&end_a, &end_b) {
            (Some(from), Some(to)) => {
                let options = DiffOptions {
                    from: Some(from.into()),
                    to: Some(to.into()),
                    context: options.context,
                    ..DiffOptions::default()
                };
                Some(self.diff(&options)?)
            }
            _ => None,
        };
        Ok(Comparison {
            turns_a: self.turn_views(self.turns_from(&of_a, first)?)?,
            turns_b: self.turn_views(self.turns_from(&of_b, first)?)?,
            a: self.session_view(&a)?,
            b: self.session_view(&b)?,
            parted,
            end_a,
            end_b,
            diff,
        })
    }

    /// The turns of a conversation from a number on.
    fn turns_from(&self, lineage: &Lineage, first: u32) -> Result<Vec<TurnKey>, StoreError> {
        let mut turns = Vec::new();
        for session in lineage.sessions() {
            let rows = self.store.turns(session)?.into_iter().map(|row| row.turn.number);
            let is_here = |number: &u32| *number >= first && lineage.holds(session, *number);
            turns.extend(rows.filter(is_here).map(|number| (session.clone(), number)));
        }
        turns.sort_by_key(|(_, number)| *number);
        Ok(turns)
    }

    /// The last checkpoint of a session. What an operation found or made is of the moment between two sessions.
    fn end_of(&self, session: &SessionId) -> Result<Option<CheckpointId>, StoreError> {
        let rows = self.store.checkpoints_of(session)?;
        let is_own = |cause| !matches!(cause, Cause::BeforeOperation | Cause::Operation);
        Ok(rows.into_iter().rev().find(|row| is_own(row.checkpoint.cause)).map(|row| row.checkpoint.id))
    }
}
