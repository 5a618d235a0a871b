//! Which session a turn number refers to: a branch has its parent's turns up to where it began, and its own after that.

use piton_model::ownership::{Candidate, Owner};
use piton_model::{Rank, SessionId, StepRef};
use piton_store::{SessionRow, StoreError, TurnRow};

use crate::workspace::History;

/// A session and its ancestors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lineage {
    /// Each with the first turn that is no longer its own; the session itself comes first.
    parts: Vec<(SessionId, u32)>,
}

/// More generations than anybody makes, because a tampered record could form a cycle.
const GENERATIONS: usize = 1000;

impl Lineage {
    /// The session itself.
    pub(crate) fn session(&self) -> &SessionId {
        &self.parts[0].0
    }

    /// The sessions, the youngest first.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = &SessionId> {
        self.parts.iter().map(|(session, _)| session)
    }

    /// The original session: two conversations with the same one belong to one tree.
    pub(crate) fn root(&self) -> &SessionId {
        self.parts.last().map_or(&self.parts[0].0, |(session, _)| session)
    }

    /// Whether a turn is in this conversation.
    pub(crate) fn holds(&self, session: &SessionId, turn: u32) -> bool {
        self.parts.iter().any(|(one, end)| one == session && turn < *end)
    }

    /// Whether a step is in this conversation.
    pub(crate) fn holds_step(&self, step: &StepRef) -> bool {
        self.holds(&step.session, step.turn)
    }

    /// Where two conversations parted: the youngest session that both have turns of, and the first turn that they do not
    /// share; none where they have nothing in common.
    pub(crate) fn parted_from(&self, other: &Self) -> Option<(&SessionId, u32)> {
        self.parts.iter().find_map(|(session, end)| {
            let (_, their_end) = other.parts.iter().find(|(theirs, _)| theirs == session)?;
            Some((session, (*end).min(*their_end)))
        })
    }

    /// The session that a turn is recorded with: the oldest that has it.
    pub(crate) fn session_of(&self, turn: u32) -> &SessionId {
        let older = self.parts.iter().rev().find(|(_, end)| turn < *end);
        older.map_or_else(|| self.session(), |(session, _)| session)
    }

    /// The first turn, up to the given one, that two conversations do not share; the given one if they share all.
    pub(crate) fn parted(&self, other: &Self, before: u32) -> u32 {
        (1..before).find(|turn| self.session_of(*turn) != other.session_of(*turn)).unwrap_or(before)
    }

    /// Whether this conversation made a change, or may have made it.
    pub(crate) fn may_own(&self, owner: &Owner) -> bool {
        match owner {
            Owner::Step { step, .. } => self.holds_step(step),
            Owner::Unsure { candidates } => {
                candidates.iter().any(|one| matches!(one, Candidate::Step(step) if self.holds_step(step)))
            }
            Owner::You | Owner::Operation { .. } => false,
        }
    }
}

impl History {
    /// The session that the user is in: the one that reported last, or that an operation switched to since.
    pub(crate) fn here(&self) -> Result<Option<SessionId>, StoreError> {
        Ok(self.working_sessions()?.into_iter().next().map(|row| row.session.id))
    }

    /// Whether the command was typed inside this session.
    pub(crate) fn is_typed_in(&self, session: &SessionId) -> bool {
        self.environment.session.as_ref() == Some(session)
    }

    /// The sessions that somebody may mean who names none, the one that is typed in first, then the one that reported last:
    /// none that was deleted, and where anybody works here, none that is only captured along.
    pub(crate) fn working_sessions(&self) -> Result<Vec<SessionRow>, StoreError> {
        let mut all = self.store.sessions()?;
        all.retain(|row| row.session.rank != Rank::Deleted);
        if all.iter().any(|row| !row.session.along) {
            all.retain(|row| !row.session.along);
        }
        all.sort_by_key(|row| !self.is_typed_in(&row.session.id));
        Ok(all)
    }

    /// Where a conversation comes from that goes elsewhere from a session: from where the user is, where that is a branch
    /// of the same conversation.
    pub(crate) fn comes_from(&self, session: &SessionId) -> Result<SessionId, StoreError> {
        match self.here()? {
            Some(here) if self.lineage(&here)?.root() == self.lineage(session)?.root() => Ok(here),
            _ => Ok(session.clone()),
        }
    }

    /// A session with its ancestors.
    pub(crate) fn lineage(&self, session: &SessionId) -> Result<Lineage, StoreError> {
        let mut parts = vec![(session.clone(), u32::MAX)];
        let mut next = self.store.session(session)?.and_then(|row| row.session.origin);
        while let Some(origin) = next.filter(|_| parts.len() < GENERATIONS) {
            let end = parts.last().map_or(u32::MAX, |(_, end)| *end).min(origin.turn);
            next = self.store.session(&origin.parent)?.and_then(|row| row.session.origin);
            parts.push((origin.parent, end));
        }
        Ok(Lineage { parts })
    }

    /// A turn of a conversation, whichever session it is recorded with.
    pub(crate) fn turn_in(&self, lineage: &Lineage, turn: u32) -> Result<Option<TurnRow>, StoreError> {
        self.store.turn(lineage.session_of(turn), turn)
    }

    /// The number of a conversation's last turn; 0 before the first.
    pub(crate) fn last_turn_in(&self, lineage: &Lineage) -> Result<u32, StoreError> {
        let own = self.store.last_turn(lineage.session())?.map_or(0, |row| row.turn.number);
        let inherited = lineage.parts.get(1).map_or(0, |(_, end)| end.saturating_sub(1));
        Ok(own.max(inherited))
    }
}
