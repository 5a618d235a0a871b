//! What a turn did that nobody saw: a tool of it was at work before the first capture, or a capture was not made.
//!
//! The first checkpoint of a line has nothing to be compared with, so of a turn that was under way by then "nothing changed"
//! would be a guess. Whoever tells of turns asks here before saying so. It follows from what is recorded anyway.

use std::collections::HashSet;

use piton_model::{Cause, SessionId, StepRef, TurnContext};
use piton_store::{CheckpointRow, StepRow, StoreError, TurnRow};

use crate::history::lineage::Lineage;
use crate::view::{Unknown, UnknownTurn};
use crate::workspace::History;

impl History {
    /// The turns of a conversation of which not all is known that they changed, in order. With `is_here`, in the folder that
    /// is here now, so that those are meant too which worked in another one that stood here.
    pub(crate) fn unknown_turns(&self, session: &Lineage, is_here: bool) -> Result<Vec<UnknownTurn>, StoreError> {
        let first = self.store.first(self.record.line)?;
        let lost = self.turns_across_lost()?;
        // Comparing with the current folder shows what no checkpoint has found.
        let unseen = if is_here { HashSet::new() } else { self.turns_unseen()? };
        let mut unknown = Vec::new();
        for id in session.sessions() {
            let gaps = self.store.gaps(Some(id))?;
            for turn in self.store.turns(id)?.iter().filter(|row| session.holds(id, row.turn.number)) {
                let number = turn.turn.number;
                let steps = self.store.steps(id, Some(number))?;
                let late = if is_here {
                    let is_late = is_late(turn, &steps, first.as_ref());
                    is_late.then(|| self.why_late(turn, self.record.line)).transpose()?
                } else {
                    let checkpoints = self.store.checkpoints_of_turn(id, number)?;
                    self.begins_amid(turn, &steps, &checkpoints.into_iter().map(|(row, _)| row).collect::<Vec<_>>())?
                };
                let mut gaps = gaps.iter().filter(|(_, gap)| gap.place.turn == number);
                let is_lost = lost.contains(&(id.clone(), number));
                let why = late.or(is_lost.then_some(Unknown::Damaged));
                let why = why.or_else(|| gaps.next().map(|(_, gap)| Unknown::Gap { reason: gap.reason.clone() }));
                let why = why.or(unseen.contains(&(id.clone(), number)).then_some(Unknown::NotCaptured));
                unknown.extend(why.map(|why| UnknownTurn { turn: number, why }));
            }
        }
        unknown.sort_by_key(|one| one.turn);
        Ok(unknown)
    }

    /// Turns that were under way around a lost checkpoint: what they changed then is not listed anywhere.
    pub(crate) fn turns_across_lost(&self) -> Result<HashSet<(SessionId, u32)>, StoreError> {
        let mut turns = HashSet::new();
        for across in self.lost_checkpoints()? {
            turns.extend(self.steps_across(&across)?.into_iter().map(|step| (step.session, step.turn)));
        }
        Ok(turns)
    }

    /// Turns with tools that ended after the newest checkpoint: what those changed has not been captured.
    pub(crate) fn turns_unseen(&self) -> Result<HashSet<(SessionId, u32)>, StoreError> {
        let Some(head) = self.store.head(self.record.line)? else { return Ok(HashSet::new()) };
        let ended = self.store.steps_ended_since(head.seq)?.into_iter();
        Ok(ended.map(|row| (row.step.at.session, row.step.at.turn)).collect())
    }

    /// Whether a line begins in the middle of a turn, whose checkpoints are given in order. In the first turn of all, that of
    /// before begins there too.
    pub(crate) fn begins_amid(
        &self,
        turn: &TurnRow,
        steps: &[StepRow],
        checkpoints: &[CheckpointRow],
    ) -> Result<Option<Unknown>, StoreError> {
        for (at, first) in checkpoints.iter().enumerate().filter(|(_, row)| row.checkpoint.parent.is_none()) {
            let (before, line) = (&checkpoints[..at], first.checkpoint.line);
            if before.iter().any(|row| row.checkpoint.line == line) {
                continue;
            }
            // What was captured in the previous folder is known.
            let has_seen = |step: &StepRow| {
                before.iter().any(|row| match row.checkpoint.cause {
                    Cause::AfterTool => is_at(row, &step.step.at),
                    cause => cause == Cause::TurnEnd,
                })
            };
            let steps: Vec<StepRow> = steps.iter().filter(|step| !has_seen(step)).cloned().collect();
            if is_late(turn, &steps, Some(first)) {
                return Ok(Some(self.why_late(turn, line)?));
            }
        }
        Ok(None)
    }

    /// Why a turn was under way before the first capture of a line: it began in another folder, or nobody saw it begin.
    fn why_late(&self, turn: &TurnRow, line: u32) -> Result<Unknown, StoreError> {
        let before = self.before_turn(&turn.turn.session, turn.turn.number)?;
        Ok(match before {
            Some(before) if before.checkpoint.line != line => Unknown::OtherFolder,
            _ => Unknown::BeforeFirstCapture,
        })
    }
}

/// Whether a tool of a turn was at work, or may have been, before the first checkpoint of a line. Where there is none, all
/// were.
fn is_late(turn: &TurnRow, steps: &[StepRow], first: Option<&CheckpointRow>) -> bool {
    let seq = first.map_or(u64::MAX, |row| row.seq);
    // A capture made before a tool is in time for that tool.
    let is_in_time = |step: &StepRow| {
        let begins = |row: &CheckpointRow| row.checkpoint.cause == Cause::BeforeTool && is_at(row, &step.step.at);
        step.seq > seq || first.is_some_and(begins)
    };
    // If a turn's prompt was not reported, its first tools may not have been either.
    let is_joined = turn.turn.prompt.is_none() && turn.seq < seq;
    is_joined || !steps.iter().all(is_in_time)
}

fn is_at(row: &CheckpointRow, step: &StepRef) -> bool {
    let at = TurnContext { session: step.session.clone(), turn: step.turn, step: Some(step.step) };
    row.checkpoint.place.as_ref() == Some(&at)
}
