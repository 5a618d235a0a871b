//! What happened since: the records after a cursor, and waiting for more of them.
//!
//! Everything is told from records, so whoever asks hears the same of another process as of this one. Nothing here takes the
//! lock or writes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use piton_host::FolderWatch;
use piton_model::{Checkpoint, Operation, OperationId, OperationVerb, Outcome, Record, Timestamp, WorkspaceId};
use piton_store::{CheckpointRow, Reader, StoreError};

use crate::view::{Cursor, Notice, NumberedNotice, OperationStatus, OperationView, Since};
use crate::workspace::History;

impl History {
    /// The place behind the newest record. Whoever shows something and wants to hear what changes takes it first, reads what
    /// it shows, and asks for what comes after it.
    ///
    /// # Errors
    /// Where the store refuses, or is gone.
    pub fn cursor_now(&self) -> Result<Cursor, StoreError> {
        self.store.follow_view()?;
        cursor_now(&self.store, &self.record.id)
    }

    /// What was recorded after a cursor, oldest first and at most `limit` records.
    ///
    /// ```no_run
    /// # use piton_engine::{Engine, Environment, view::{Notice, Since}};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = Engine::new("/var/lib/piton".into(), Environment::default());
    /// # let workspace = engine.open("/src/project".as_ref())?;
    /// let mut cursor = workspace.cursor_now()?;
    /// while workspace.wait_for_more(&cursor, std::time::Duration::from_secs(60))? {
    ///     match workspace.since(&cursor, 100)? {
    ///         Since::Notices { notices, next, .. } => {
    ///             for one in notices {
    ///                 if let Notice::Captured { checkpoint, .. } = one.notice {
    ///                     println!("captured {}", checkpoint.id);
    ///                 }
    ///             }
    ///             cursor = next;
    ///         }
    ///         Since::BeginAgain { cursor: now } => cursor = now,
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Where the store refuses, or is gone.
    pub fn since(&self, cursor: &Cursor, limit: usize) -> Result<Since, StoreError> {
        self.store.follow_view()?;
        self.store.read_steadily(|| {
            let now = cursor_now(&self.store, &self.record.id)?;
            if !is_of(cursor, &now) {
                return Ok(Since::BeginAgain { cursor: now });
            }
            let mut notices = Vec::new();
            let mut next = cursor.clone();
            for (seq, record) in self.store.records_after(cursor.seq, limit)? {
                next.seq = seq;
                notices.push(NumberedNotice { cursor: next.clone(), notice: self.notice(seq, record)? });
            }
            let more = next.seq < now.seq;
            Ok(Since::Notices { notices, next, more })
        })
    }

    /// Waits until there is something after a cursor, for so long at most. Whether there is: also where the answer to
    /// [`History::since`] will be to begin again.
    ///
    /// # Errors
    /// Where the store refuses, or is gone.
    pub fn wait_for_more(&self, cursor: &Cursor, timeout: Duration) -> Result<bool, StoreError> {
        self.watcher().wait(cursor, timeout)
    }

    /// A watcher that can wait repeatedly, from any thread.
    pub fn watcher(&self) -> Watcher {
        Watcher { watch: self.store.watch(), store: self.store.clone(), id: self.record.id.clone() }
    }

    fn notice(&self, seq: u64, record: Option<Record>) -> Result<Notice, StoreError> {
        let Some(record) = record else { return Ok(Notice::Damaged {}) };
        Ok(match record {
            Record::Workspace(workspace) => Notice::WorkspaceChanged { path: workspace.path, at: workspace.at },
            Record::Checkpoint(checkpoint) => {
                let rules_waiting = self.rules_waiting_anew(&checkpoint)?;
                let row = CheckpointRow { seq, checkpoint, names: Vec::new(), annotation: None };
                Notice::Captured { checkpoint: Box::new((&row).into()), rules_waiting }
            }
            Record::Name { checkpoint, name } => Notice::Named { checkpoint, name },
            Record::Annotation { checkpoint, text } => Notice::Annotated { checkpoint, text },
            Record::Accepted(accepted) => {
                let paths: BTreeSet<_> = accepted.changes.iter().flat_map(|at| &at.paths).collect();
                let paths = paths.into_iter().map(Into::into).collect();
                Notice::Accepted { paths, taken_back: accepted.taken_back, at: accepted.at }
            }
            Record::Operation(operation) => Notice::OperationBegan { operation: Box::new(began(&operation)) },
            Record::Ended { operation, outcome, .. } => self.ended(&operation, outcome)?,
            Record::Session(session) if self.store.first_of_session(&session.id)? == Some(seq) => {
                Notice::SessionBegan {
                    agent: session.agent,
                    name: session.name,
                    origin: session.origin.as_ref().map(Into::into),
                    at: session.started_at,
                    session: session.id,
                }
            }
            Record::Session(session) => {
                Notice::SessionChanged { session: session.id, name: session.name, rank: session.rank }
            }
            Record::SessionEnded { session, at, .. } => Notice::SessionEnded { session, at },
            Record::Imported { session, at } => Notice::SessionImported { session, at },
            Record::Turn(turn) => {
                let first = self.store.turn(&turn.session, turn.number)?.map(|row| row.seq);
                let (session, number, prompt) = (turn.session, turn.number, turn.prompt);
                if first == Some(seq) {
                    Notice::TurnBegan { session, turn: number, prompt, at: turn.at }
                } else {
                    Notice::TurnChanged { session, turn: number, prompt }
                }
            }
            Record::TurnEnded(end) => {
                Notice::TurnEnded { session: end.session, turn: end.number, ending: end.how, at: end.at }
            }
            Record::Step(step) => Notice::StepBegan {
                session: step.at.session,
                turn: step.at.turn,
                step: step.at.step,
                tool: step.tool,
                summary: step.summary,
                at: milliseconds(step.opened),
            },
            Record::StepEnded(end) => Notice::StepEnded {
                session: end.at.session,
                turn: end.at.turn,
                step: end.at.step,
                ending: end.how,
                at: milliseconds(end.closed),
            },
            Record::Gap(gap) => Notice::Gap { gap: (&gap).into(), session: gap.place.session },
            Record::Message(message) => {
                Notice::Said { session: message.session, turn: message.turn, role: message.role, at: message.at }
            }
        })
    }

    /// How many changes wait for the user's agreement, if that differs from the checkpoint before.
    fn rules_waiting_anew(&self, checkpoint: &Checkpoint) -> Result<Option<u64>, StoreError> {
        let before = match &checkpoint.parent {
            Some(parent) => self.store.held_at(parent)?.unwrap_or_default(),
            None => Default::default(),
        };
        let is_same = before.0 == checkpoint.held && before.1.asked == checkpoint.settings.asked;
        let waiting = checkpoint.held.len() as u64 + u64::from(checkpoint.settings.asked.is_some());
        Ok((!is_same).then_some(waiting))
    }

    fn ended(&self, id: &OperationId, outcome: Outcome) -> Result<Notice, StoreError> {
        let Some(row) = self.store.operation_row(id)? else { return Ok(Notice::Damaged {}) };
        let (state, after, why) = match outcome {
            Outcome::Done { after, .. } => (OperationStatus::Done, Some(after), None),
            Outcome::RolledBack { why } => (OperationStatus::RolledBack, None, Some(why)),
            Outcome::GivenUp(given_up) => (OperationStatus::GivenUp, None, Some(given_up.describe().to_owned())),
        };
        let is_redo = row.verb == OperationVerb::Redo && state == OperationStatus::Done;
        let took_back = row.target.as_ref().filter(|_| is_redo).and_then(|target| target.operation().cloned());
        let operation = Box::new(OperationView { state, after, why, ..(&row).into() });
        Ok(Notice::OperationEnded { operation, took_back })
    }
}

/// Waits for records, starting with those written after it was created.
pub struct Watcher {
    store: Arc<Reader>,
    watch: FolderWatch,
    id: WorkspaceId,
}

/// The first pause between two looks, which doubles: a commit writes the view's log a moment before others can read it.
const FIRST_PAUSE: Duration = Duration::from_millis(4);
/// The longest pause, however quiet it is: not every filesystem tells of what another machine writes.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// The shortest time between two looks while somebody writes.
const BREATH: Duration = Duration::from_millis(2);

impl Watcher {
    /// Waits until there is something after a cursor, for so long at most. Whether there is.
    ///
    /// # Errors
    /// Where the store refuses, or is gone.
    pub fn wait(&self, cursor: &Cursor, timeout: Duration) -> Result<bool, StoreError> {
        let begun = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            if !self.store.has_current_view()? || cursor_now(&self.store, &self.id)? != *cursor {
                return Ok(true);
            }
            let left = timeout.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            if self.watch.wait(left.min(pause)) {
                pause = FIRST_PAUSE;
                std::thread::sleep(BREATH.min(left));
            } else {
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// The position after the newest record of the open view.
fn cursor_now(store: &Reader, id: &WorkspaceId) -> Result<Cursor, StoreError> {
    Ok(Cursor { store: id.clone(), generation: store.view_generation(), seq: store.last_number()? })
}

/// Whether a cursor is a position among the current records.
pub(crate) fn is_of(cursor: &Cursor, now: &Cursor) -> bool {
    cursor.store == now.store && cursor.generation == now.generation && cursor.seq <= now.seq
}

fn began(operation: &Operation) -> OperationView {
    OperationView {
        id: operation.id.clone(),
        kind: operation.kind.verb(),
        target: operation.kind.target().map(|target| target.as_str().to_owned()),
        also: operation.kind.also().to_vec(),
        about: operation.about.clone(),
        taken_back: false,
        before: operation.before.clone(),
        after: None,
        state: OperationStatus::Pending,
        began_at: operation.began_at,
        why: None,
    }
}

fn milliseconds(ns: i64) -> Timestamp {
    Timestamp(ns.div_euclid(1_000_000))
}
