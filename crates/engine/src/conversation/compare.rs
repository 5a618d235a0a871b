//! Comparing two conversations: where they parted, what was done in each since, and how their files differ in the end.
//!
//! A fork with a folder of its own works in another workspace than its parent: what each did is read in the store that knows
//! it.

use piton_model::conversation::Began;
use piton_model::target::TurnPlace;
use piton_model::{Cause, SessionId, Target};
use piton_store::{CheckpointRow, StoreError};

use crate::conversation::branches::BranchError;
use crate::history::lineage::Lineage;
use crate::history::target::TargetError;
use crate::view::{Comparison, Parted, SessionView, TurnView};
use crate::workspace::History;

/// How to compare.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompareOptions {
    /// Equal lines around each difference.
    pub context: u32,
}

/// One of the two, and the store that knows what it did.
struct Compared {
    lineage: Lineage,
    end: Option<CheckpointRow>,
    /// Where that is another one than this.
    elsewhere: Option<History>,
}

impl History {
    /// Compares two sessions.
    ///
    /// # Errors
    /// Where one is none, both are the same, or the store refuses.
    pub fn compare(&self, a: &str, b: &str, options: CompareOptions) -> Result<Comparison, BranchError> {
        let (a, b) = (self.session_or_ancestor(a)?, self.session_or_ancestor(b)?);
        if a == b {
            return Err(BranchError::SameSession(a));
        }
        let (a, b) = (self.compared(&a)?, self.compared(&b)?);
        let parted = a.lineage.parted_from(&b.lineage);
        let parted = parted.map(|(session, turn)| Parted { session: session.clone(), turn });
        let first = parted.as_ref().map_or(1, |parted| parted.turn);
        let diff = match (&a.end, &b.end) {
            (Some(from), Some(to)) => Some(self.diff_of_rows(from.clone(), to.clone(), options.context)?),
            _ => None,
        };
        Ok(Comparison {
            turns_a: self.turns_of(&a, first)?,
            turns_b: self.turns_of(&b, first)?,
            a: self.session_compared(&a)?,
            b: self.session_compared(&b)?,
            parted,
            end_a: a.end.map(|row| row.checkpoint.id),
            end_b: b.end.map(|row| row.checkpoint.id),
            diff,
        })
    }

    /// The session that is meant, here or where one that is here began.
    fn session_or_ancestor(&self, wanted: &str) -> Result<SessionId, BranchError> {
        match self.session_meant(Some(wanted), wanted) {
            Err(error @ TargetError::UnknownSession { .. }) => Ok(self.ancestor_elsewhere(wanted)?.ok_or(error)?),
            found => Ok(found?.session.id),
        }
    }

    /// A session with its end: the last checkpoint of its own in whichever store knows of one.
    fn compared(&self, session: &SessionId) -> Result<Compared, StoreError> {
        let lineage = self.lineage(session)?;
        // A checkpoint that was copied from a parent's store is not its end.
        let is_here = self.store.session(session)?.is_some();
        let end = if is_here { self.end_of(session)? } else { None };
        if end.is_some() {
            return Ok(Compared { lineage, end, elsewhere: None });
        }
        for there in self.histories_of(session).0 {
            let end = there.end_of(session)?;
            if end.is_some() || !is_here {
                self.store.read_beside(there.store.clone());
                // Whichever knows more of its ancestors.
                let of_there = there.lineage(session)?;
                let lineage = if of_there.sessions().count() > lineage.sessions().count() { of_there } else { lineage };
                return Ok(Compared { lineage, end, elsewhere: Some(there) });
            }
        }
        Ok(Compared { end: self.fork_begun_at(session)?, lineage, elsewhere: None })
    }

    /// Where a fork began in which nothing was done yet: that is its end too.
    fn fork_begun_at(&self, session: &SessionId) -> Result<Option<CheckpointRow>, StoreError> {
        let origin = self.store.session(session)?.and_then(|row| row.session.origin);
        let Some(origin) = origin.filter(|origin| origin.how == Began::Fork) else { return Ok(None) };
        let begun = self.checkpoint_at(&Target::turn(origin.parent.to_string(), origin.turn, TurnPlace::Before));
        match begun {
            Ok(row) => Ok(Some(row)),
            Err(TargetError::Store(error)) => Err(error),
            Err(_) => Ok(None),
        }
    }

    fn session_compared(&self, one: &Compared) -> Result<SessionView, BranchError> {
        one.elsewhere.as_ref().unwrap_or(self).session_view(one.lineage.session())
    }

    /// The turns of a conversation from a number on, each from the store that has it.
    fn turns_of(&self, one: &Compared, first: u32) -> Result<Vec<TurnView>, StoreError> {
        let mut turns = Vec::new();
        for session in one.lineage.sessions() {
            let there = one.elsewhere.as_ref().filter(|_| session == one.lineage.session()).unwrap_or(self);
            let numbers = there.store.turns(session)?.into_iter().map(|row| row.turn.number);
            let numbers = numbers.filter(|number| *number >= first && one.lineage.holds(session, *number));
            turns.extend(there.turn_views(numbers.map(|number| (session.clone(), number)).collect::<Vec<_>>())?);
        }
        turns.sort_by_key(|turn| turn.number);
        Ok(turns)
    }

    /// The last checkpoint of a session. What an operation found or made is of the moment between two sessions.
    fn end_of(&self, session: &SessionId) -> Result<Option<CheckpointRow>, StoreError> {
        let rows = self.store.checkpoints_of(session)?;
        let is_own = |cause| !matches!(cause, Cause::BeforeOperation | Cause::Operation);
        Ok(rows.into_iter().rev().find(|row| is_own(row.checkpoint.cause)))
    }
}
