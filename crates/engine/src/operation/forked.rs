//! What the folder of a fork knows of the time before it: the records of the workspace that it is a fork of, up to that moment.
//!
//! So the turns that a fork shares with its parent are turns there like any other: targets, with their owners, and what an undo
//! takes back. Records are small and are copied; contents are read in the parent's store ([`piton_store`]'s `beside`) as long as
//! nothing in the folder needs them. What it began with, and what an operation goes back to, it has itself.

use std::collections::HashSet;

use piton_model::session::{Ending, StepEnd, TurnEnd};
use piton_model::{Checkpoint, Operation, OperationId, OperationKind, Record, Session, SessionId, StepRef};
use piton_store::{CheckpointRow, PATIENCE, StoreError};

use crate::workspace::{History, Workspace};

/// What was recorded up to a moment, as a fork takes it over.
struct Taken<'h> {
    of: &'h History,
    target: &'h CheckpointRow,
    /// The fork's session: turns of its parent that it does not share are left out.
    fork: Option<&'h Session>,
    /// Operations that had ended by then.
    ended: HashSet<OperationId>,
    /// Those of them that come along.
    operations: HashSet<OperationId>,
    open_turns: HashSet<(SessionId, u32)>,
    open_steps: HashSet<StepRef>,
}

impl Workspace {
    /// Takes over what another workspace had recorded up to a checkpoint, with the contents of that, and the session that goes on
    /// here.
    pub(crate) fn take_over(
        &mut self,
        of: &History,
        target: &CheckpointRow,
        fork: Option<&Session>,
    ) -> Result<(), StoreError> {
        let locked = self.lock(PATIENCE)?;
        let mut writer = locked.writer()?;
        let recorded = of.store.records_until(target.seq)?;
        let mut taken = Taken::of(of, target, fork, &recorded);
        for record in recorded {
            if let Some(record) = taken.record(record) {
                writer.record(record)?;
            }
        }
        for record in taken.ends()?.into_iter().chain(fork.map(|fork| Record::Session(fork.clone()))) {
            writer.record(record)?;
        }
        for need in target.checkpoint.needs() {
            match writer.take_beside(need.object) {
                // It is missing there too, and named by whatever needs it.
                Err(StoreError::Missing(_) | StoreError::Damaged(_)) => {}
                taken => taken?,
            }
        }
        writer.commit(true, false)
    }
}

impl<'h> Taken<'h> {
    fn of(of: &'h History, target: &'h CheckpointRow, fork: Option<&'h Session>, recorded: &[Record]) -> Self {
        let ended = |record: &Record| match record {
            Record::Ended { operation, .. } => Some(operation.clone()),
            _ => None,
        };
        let ended = recorded.iter().filter_map(ended).collect();
        Self {
            of,
            target,
            fork,
            ended,
            operations: HashSet::new(),
            open_turns: HashSet::new(),
            open_steps: HashSet::new(),
        }
    }

    /// A record as the fork has it; none where it is no business of the fork's.
    fn record(&mut self, record: Record) -> Option<Record> {
        match record {
            Record::Workspace(_) => None,
            Record::Operation(operation) if self.comes_along(&operation) => {
                self.operations.insert(operation.id.clone());
                // Where the conversation went was elsewhere.
                Some(Record::Operation(Box::new(Operation { conversation: None, ..*operation })))
            }
            Record::Ended { ref operation, .. } if self.operations.contains(operation) => Some(record),
            Record::Operation(_) | Record::Ended { .. } => None,
            Record::Checkpoint(checkpoint) => Some(Record::Checkpoint(self.checkpoint(checkpoint))),
            // It works elsewhere, and is at work in the fork's folder only if it reports there.
            Record::Session(session) => Some(Record::Session(Session { along: true, ..session })),
            Record::Turn(turn) if self.is_shared(&turn.session, turn.number) => {
                self.open_turns.insert((turn.session.clone(), turn.number));
                Some(Record::Turn(turn))
            }
            Record::TurnEnded(end) if self.is_shared(&end.session, end.number) => {
                self.open_turns.remove(&(end.session.clone(), end.number));
                Some(Record::TurnEnded(end))
            }
            Record::Step(step) if self.is_shared(&step.at.session, step.at.turn) => {
                self.open_steps.insert(step.at.clone());
                Some(Record::Step(step))
            }
            Record::StepEnded(end) if self.is_shared(&end.at.session, end.at.turn) => {
                self.open_steps.remove(&end.at);
                Some(Record::StepEnded(end))
            }
            Record::Message(message) if self.is_shared(&message.session, message.turn) => {
                Some(Record::Message(message))
            }
            Record::Gap(gap) if self.is_shared(&gap.place.session, gap.place.turn) => Some(Record::Gap(gap)),
            Record::Turn(_)
            | Record::TurnEnded(_)
            | Record::Step(_)
            | Record::StepEnded(_)
            | Record::Message(_)
            | Record::Gap(_) => None,
            other => Some(other),
        }
    }

    /// Whether it has an end, and changed this folder's files.
    fn comes_along(&self, operation: &Operation) -> bool {
        let is_elsewhere = matches!(operation.kind, OperationKind::Branch | OperationKind::Checkout { .. });
        self.ended.contains(&operation.id) && !is_elsewhere
    }

    /// Whether a turn is none that the fork's parent went on with.
    fn is_shared(&self, session: &SessionId, turn: u32) -> bool {
        let origin = self.fork.and_then(|fork| fork.origin.as_ref());
        origin.is_none_or(|origin| origin.parent != *session || turn < origin.turn)
    }

    /// A checkpoint with the numbers of the fork's folder, whose own line is the first.
    fn checkpoint(&self, checkpoint: Checkpoint) -> Checkpoint {
        const OWN: u32 = 1;
        let line = match checkpoint.line {
            line if line == self.target.checkpoint.line => OWN,
            OWN => self.target.checkpoint.line,
            line => line,
        };
        let place = checkpoint.place.filter(|place| self.is_shared(&place.session, place.turn));
        Checkpoint { line, place, ..checkpoint }
    }

    /// The ends of what was open at that moment: as they became known since, else nobody will report them here.
    fn ends(&self) -> Result<Vec<Record>, StoreError> {
        let at = self.of.environment.clock.now();
        let mut ends = Vec::new();
        for step in &self.open_steps {
            let row = self.of.store.step(step)?;
            let known = row.and_then(|row| Some((row.ending?, row.closed?, row.cut)));
            let (how, closed, cut) = known.unwrap_or((Ending::Lost, at.0.saturating_mul(1_000_000), None));
            ends.push(Record::StepEnded(StepEnd { at: step.clone(), how, closed, cut, outside: Vec::new() }));
        }
        for (session, number) in &self.open_turns {
            let row = self.of.store.turn(session, *number)?;
            let known = row.as_ref().and_then(|row| Some((row.ending?, row.ended_at?)));
            let (how, at) = known.unwrap_or((Ending::Lost, at));
            let message = row.and_then(|row| row.message);
            ends.push(Record::TurnEnded(TurnEnd { session: session.clone(), number: *number, how, message, at }));
        }
        Ok(ends)
    }
}
