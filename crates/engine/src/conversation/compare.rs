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
        let (a, b) = (self.session_meant(Some(a), a)?.session.id, self.session_meant(Some(b), b)?.session.id);
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

    /// A session with its end: the last checkpoint of its own in whichever store knows of one.
    fn compared(&self, session: &SessionId) -> Result<Compared, StoreError> {
        let lineage = self.lineage(session)?;
        // One that works elsewhere, as the parent in the folder of a fork, has its end there.
        let works_here = self.store.session(session)?.is_some_and(|row| !row.session.along);
        let end = self.end_of(session)?;
        if works_here && end.is_some() {
            return Ok(Compared { lineage, end, elsewhere: None });
        }
        for there in self.histories_of(session) {
            if let Some(end) = there.end_of(session)? {
                self.store.read_beside(there.store.clone());
                return Ok(Compared { lineage, end: Some(end), elsewhere: Some(there) });
            }
        }
        let end = if end.is_some() { end } else { self.fork_begun_at(session)? };
        Ok(Compared { end, lineage, elsewhere: None })
    }

    /// The other workspaces that a session works in, each with what it has recorded, the one that this is a fork of first. Those
    /// that cannot be read tell nothing.
    fn histories_of(&self, session: &SessionId) -> Vec<Self> {
        let engine = self.engine();
        let mut others = self.home.workspaces_of(session);
        others.retain(|(id, _)| *id != self.record.id);
        others.sort_by_key(|(id, _)| Some(id) != self.record.forked_from.as_ref());
        let read = |(id, _)| engine.read(&id, engine.where_it_is(self.home.known(&id)?).path).ok();
        others.into_iter().filter_map(read).collect()
    }

    /// Where a fork began in which nothing was done yet: that is its end too.
    fn fork_begun_at(&self, session: &SessionId) -> Result<Option<CheckpointRow>, StoreError> {
        let origin = self.store.session(session)?.and_then(|row| row.session.origin);
        let Some(origin) = origin.filter(|origin| origin.how == Began::Fork) else { return Ok(None) };
        let begun = self.checkpoint_at(&Target::turn(origin.parent.to_string(), origin.turn, TurnPlace::Before));
        match begun {
            Ok(row) => Ok(Some(row)),
            Err(TargetError::Store(error)) => Err(error),
            // In the fork's own folder, that is all there is; elsewhere the parent has no later turn, and it began at the end.
            Err(_) if self.record.forked_from.is_some() => self.store.head(self.record.line),
            Err(_) => self.end_of(&origin.parent),
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
