//! When a turn or a step was. A change of the user's names no step, so only when it was found says where it belongs.

use piton_model::{Cause, StepRef, TurnContext};
use piton_store::StoreError;

use crate::history::lineage::Lineage;
use crate::history::target::TargetError;
use crate::workspace::History;

/// A stretch of the order of records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    after: u64,
    /// The last one that is in it.
    until: u64,
}

impl Span {
    pub(super) fn holds(&self, seq: u64) -> bool {
        seq > self.after && seq <= self.until
    }
}

impl History {
    /// From the beginning of each turn to the next prompt, or of each step to the next step. Those that do not exist are
    /// refused.
    pub(super) fn spans(&self, session: &Lineage, places: &[(u32, Option<u32>)]) -> Result<Vec<Span>, TargetError> {
        places
            .iter()
            .map(|(turn, step)| {
                let of_turn = self.span_of_turn(session, *turn)?;
                step.map_or(Ok(of_turn), |step| self.span_of_step(session, *turn, step, of_turn))
            })
            .collect()
    }

    fn span_of_turn(&self, session: &Lineage, turn: u32) -> Result<Span, TargetError> {
        let Some(row) = self.turn_in(session, turn)? else {
            return Err(self.no_turn(session, turn));
        };
        let own = session.session_of(turn);
        let after = self.before_turn(own, turn)?.map_or(row.seq, |at| at.seq);
        // In the conversation, and in the session that a branch left there: each went on with a prompt of its own.
        let mut until = self.next_prompt(turn, self.last_turn_in(session)?, |turn| session.session_of(turn))?;
        let last = self.store.last_turn(own)?.map_or(0, |row| row.turn.number);
        until = until.into_iter().chain(self.next_prompt(turn, last, |_| own)?).min();
        if until.is_none() {
            // What comes after the session's last turn goes on to whoever is prompted next.
            let end = self.store.last_of_turn(own, turn)?.map_or(after, |at| at.seq);
            let next =
                self.store.turn_places()?.into_iter().filter(|(seq, ..)| *seq > end).min_by_key(|(seq, ..)| *seq);
            until = match next {
                Some((seq, place, _)) => Some(self.before_turn(&place.session, place.turn)?.map_or(seq, |at| at.seq)),
                None => None,
            };
        }
        Ok(Span { after, until: until.unwrap_or(u64::MAX) })
    }

    /// Where the first turn after another one began.
    fn next_prompt<'a>(
        &self,
        turn: u32,
        last: u32,
        session_of: impl Fn(u32) -> &'a piton_model::SessionId,
    ) -> Result<Option<u64>, StoreError> {
        for next in turn.saturating_add(1)..=last {
            if let Some(row) = self.store.turn(session_of(next), next)? {
                return Ok(Some(self.before_turn(session_of(next), next)?.map_or(row.seq, |at| at.seq)));
            }
        }
        Ok(None)
    }

    fn span_of_step(&self, session: &Lineage, turn: u32, step: u32, of_turn: Span) -> Result<Span, TargetError> {
        let id = session.session_of(turn);
        let begin = |step: u32| -> Result<Option<u64>, StoreError> {
            let Some(row) = self.store.step(&StepRef { session: id.clone(), turn, step })? else { return Ok(None) };
            let place = TurnContext { session: id.clone(), turn, step: Some(step) };
            let at = self.store.checkpoint_at(&place, Cause::BeforeTool)?;
            Ok(Some(at.map_or(row.seq, |at| at.seq)))
        };
        let last = self.store.steps(id, Some(turn))?.len() as u32;
        let after = begin(step)?.ok_or(TargetError::NoStep { turn, step, last })?;
        let until = begin(step.saturating_add(1))?.unwrap_or(of_turn.until);
        Ok(Span { after, until })
    }
}
