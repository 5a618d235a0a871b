//! Observing: an agent reports an event, and piton captures what it must and notes who did what.
//!
//! One event is one transaction: the session, turn and step that it belongs to, the checkpoint, and what it ends. A
//! capture that cannot be made leaves a gap with its reason, and the rest is recorded all the same.

pub(crate) mod aside;
pub(crate) mod session;
pub(crate) mod told;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use piton_host::{canonical, outside, process, written_by_name};
use piton_model::event::{Event, Report, ToolCall};
use piton_model::ownership::{Moment, Owned, Owner, UNKNOWN, Window};
use piton_model::session::{
    Ending, Gap, Message, Outside, OutsideFile, Process, Session, Step, StepEnd, TranscriptMark, Turn, TurnEnd,
};
use piton_model::{
    Cause, Entry, Origin, Rank, Record, SessionId, SkipReason, StepRef, Timestamp, TurnContext, WorkspacePath, diff,
};
use piton_store::{PATIENCE, Purpose, StepRow, StoreError, TurnRow, Writer};

use crate::capture::sink::Trees;
use crate::capture::{About, Attention, CaptureError, Taken, Time};
use crate::view::{CheckpointView, Observed, Waiting};
use crate::workspace::locked::Locked;
use crate::workspace::near::window_of;
use crate::workspace::notice::Notice;
use crate::workspace::place::EventPlace;
use crate::workspace::transcripts::is_within_any;
use crate::workspace::{Environment, History, Workspace};

/// How an event is taken in.
pub struct ObserveOptions<'a> {
    /// Captures at all; otherwise only sessions, turns and steps are noted.
    pub automatic: bool,
    /// When to give up.
    pub deadline: Option<Instant>,
    /// The agent runs in this very process, so that this is the one to watch: what it left open is over when it is gone.
    pub embedded: bool,
    /// The turn and step that another workspace of the same session gave to this event.
    pub elsewhere: Option<Elsewhere>,
    /// Where the event is captured ([`crate::Engine::event_place`]), where the caller has asked already.
    pub place: Option<&'a EventPlace>,
    /// The settings of another workspace that the event is taken to as well; without it those of the first hold in all.
    pub settings_of: Option<&'a SettingsOf<'a>>,
    /// Told before each workspace which ones the event is still to be taken to, that one first: for whoever ends the process
    /// because its time is over.
    pub visiting: Option<&'a Visiting<'a>>,
    /// The session works elsewhere, and this workspace is only captured along.
    pub along: bool,
    /// The other workspaces that the event is taken to: what a tool names in there is captured there.
    pub also: &'a [PathBuf],
}

/// Hears of the workspaces that an event is still to be taken to.
pub type Visiting<'a> = dyn Fn(Vec<Visit>) + 'a;

/// A workspace that an event is to be taken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Its folder.
    pub path: PathBuf,
    /// It is only captured along.
    pub along: bool,
}

/// Finds the settings of a workspace by its folder.
pub type SettingsOf<'a> = dyn Fn(&Path) -> OwnSettings + 'a;

/// What a workspace's own settings say of an event.
pub struct OwnSettings {
    /// What the engine knows of its surroundings there.
    pub environment: Environment,
    /// Captures at all.
    pub automatic: bool,
    /// The tool that the event is about changes no files.
    pub is_reader: bool,
}

/// How long an event waits for a workspace that is only captured along and that somebody else is busy with. Whoever
/// works there captures it.
const PATIENCE_ALONG: Duration = Duration::from_millis(300);

impl Default for ObserveOptions<'_> {
    fn default() -> Self {
        Self {
            automatic: true,
            deadline: None,
            embedded: false,
            elsewhere: None,
            place: None,
            settings_of: None,
            visiting: None,
            along: false,
            also: &[],
        }
    }
}

/// Where an event stands in the store of another workspace.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    /// The turn, where another store knows which it is.
    pub turn: Option<Turn>,
    /// The step's number in it.
    pub step: Option<u32>,
    /// The highest number of a turn that any of them has.
    pub last_turn: u32,
    /// The highest number of a step, with the turn that it is of: another turn's begin anew.
    pub last_step: (u32, u32),
}

/// Files outside every workspace are kept up to this size.
pub(crate) const LARGEST_OUTSIDE: u64 = 16 << 20;
/// Of a prompt so much is kept.
const LONGEST_PROMPT: usize = 1 << 20;
/// How long a description is at most.
const LONGEST_DESCRIPTION: usize = 120;

/// What came of an event's capture.
struct Captured {
    checkpoint: CheckpointView,
    /// The worktrees that it found, which are workspaces of their own.
    worktrees: Vec<PathBuf>,
    /// A change that it found is the doing of a session that seemed to work elsewhere.
    works_here: bool,
}

/// What an event is about, worked out before anything is captured.
pub(crate) struct Context {
    session: SessionId,
    new_session: Option<Session>,
    /// The session works elsewhere.
    along: bool,
    turn: u32,
    new_turn: Option<Turn>,
    /// The step that begins or ends.
    step: Option<StepRow>,
    is_new_step: bool,
    /// Steps that must have ended by now, with how.
    over: Vec<(StepRow, Ending)>,
    /// When the event was reported: what happens while piton waits for the lock is not the tool's any more.
    asked: i64,
    /// Where it was set aside: when somebody tried to record it. What it says of files elsewhere cannot be looked at any
    /// more.
    aside: Option<Timestamp>,
    /// The event tells of turns that nobody reported: tools may have run that no step tells of.
    pub has_missed: bool,
}

impl Workspace {
    /// Takes in what an agent reports.
    ///
    /// # Errors
    /// Where not even a gap can be recorded: the lock is not to be had in time, or the store refuses.
    pub fn observe(&mut self, report: &Report, options: &ObserveOptions<'_>) -> Result<Observed, CaptureError> {
        let asked = self.environment.clock.now_ns();
        let observed = match self.observe_once(report, options, asked, false) {
            // An event must not wait for a person to repair what the packs can: every one after it would be a gap too.
            Err(error) if error.is_damaged_database() => match self.store.rebuild() {
                Ok(()) => self.observe_once(report, options, asked, true),
                Err(error) => Err(error.into()),
            },
            observed => observed,
        };
        match &observed {
            // Tried again with the store that took its place.
            Ok(_) | Err(CaptureError::Store(StoreError::Replaced)) => {}
            Err(error) => {
                // Where not even that works, the caller has the error.
                let _ = self.set_aside(report, options, asked, &error.to_string());
            }
        }
        observed
    }

    /// `is_anew`: the store's database was just made anew, so that what is still wrong with it is a gap.
    fn observe_once(
        &mut self,
        report: &Report,
        options: &ObserveOptions<'_>,
        asked: i64,
        is_anew: bool,
    ) -> Result<Observed, CaptureError> {
        let patience = options.deadline.map_or(PATIENCE, |d| d.saturating_duration_since(Instant::now()));
        let patience = if options.along { patience.min(PATIENCE_ALONG) } else { patience };
        // One that somebody is busy with must not cost the others their capture.
        let patience = if options.also.is_empty() { patience } else { patience / 2 };
        let locked = self.lock(patience)?;
        let mut locked = locked.recovered().map_err(|error| CaptureError::Recover(Box::new(error)))?;
        let mut gaps = locked.record_events_aside(options)?;
        let context = locked.context(report, options, asked)?;
        let cause = cause_of(&report.event).filter(|_| options.automatic);
        let captured = match cause {
            Some(cause) => locked.capture_event(report, &context, cause, options),
            None => {
                let mut writer = locked.writer()?.allowing(Purpose::Note);
                locked.note(&mut writer, report, &context, options.also, None)?;
                writer.commit(false, false)?;
                Ok(None)
            }
        };
        let out_of_time = matches!(captured, Err(CaptureError::OutOfTime));
        let (captured, gap) = match captured {
            Ok(captured) => (captured, None),
            Err(error) if error.is_damaged_database() && !is_anew => return Err(error),
            Err(error) => {
                let reason = error.to_string();
                let gap = Gap {
                    place: context.place(),
                    cause: cause.unwrap_or(Cause::Prompt),
                    reason: reason.clone(),
                    at: locked.environment.clock.now(),
                    lost: context.has_missed,
                    gone: matches!(error, CaptureError::Missing(_) | CaptureError::Displaced { .. }),
                };
                let noted = locked.writer().and_then(|writer| {
                    let mut writer = writer.allowing(Purpose::Note);
                    locked.note(&mut writer, report, &context, options.also, Some(gap.clone()))?;
                    writer.commit(false, false)
                });
                if noted.is_err() {
                    // A store that refuses cannot take a gap either; perhaps its folder can.
                    return Err(error);
                }
                gaps.push(gap);
                (None, Some(reason))
            }
        };
        // Only where there is one just now is it worth asking whether there was one before.
        gaps.retain(|gap| gap.place.session == context.session);
        let first_gap = match gaps.first() {
            Some(first) if locked.store.gaps(Some(&context.session))?.len() == gaps.len() => Some(first.reason.clone()),
            _ => None,
        };
        let along = context.along && !captured.as_ref().is_some_and(|captured| captured.works_here);
        let (checkpoint, worktrees) = captured.map(|captured| (captured.checkpoint, captured.worktrees)).unzip();
        if !out_of_time {
            let _ = locked.store().tidy(&locked.lock);
        }
        drop(locked);
        self.tell_of(&context, &report.event, checkpoint.as_ref(), gap.as_ref());
        let told = match &report.event {
            // What cannot be told is no reason to fail: the event is recorded.
            Event::Prompt { .. } if context.new_turn.is_some() => {
                self.told(&context.session, context.turn).ok().flatten()
            }
            _ => None,
        };
        Ok(Observed {
            told,
            session: context.session.clone(),
            turn: context.turn,
            step: context.step.as_ref().map(|row| row.step.at.step),
            new_turn: context.new_turn.is_some(),
            checkpoint,
            gap,
            first_gap,
            worktrees: worktrees.unwrap_or_default(),
            along,
            out_of_time,
            recovered: std::mem::take(&mut self.recovered),
            // What cannot be told is no reason to fail.
            waiting: if is_for_user(&report.event) { self.waiting().unwrap_or_default() } else { Waiting::default() },
            history_lost: is_for_user(&report.event) && self.store.has_lost_history(),
        })
    }
}

impl Locked<'_> {
    fn capture_event(
        &mut self,
        report: &Report,
        context: &Context,
        cause: Cause,
        options: &ObserveOptions<'_>,
    ) -> Result<Option<Captured>, CaptureError> {
        let root = self.root_to_capture()?;
        let named = context.step.as_ref().map(|row| &row.step.paths[..]).unwrap_or_default();
        let mut forced: Vec<WorkspacePath> = Vec::new();
        let parent = self.store.head(self.record.line)?;
        let about = About {
            place: Some(context.place()),
            description: description(&report.event),
            moment: Moment::of(cause, &context.place()),
            ending: context.ending(&report.event, parent.as_ref().map_or(0, |row| row.seq)),
            has_missed: context.has_missed,
            ..About::of(cause)
        };
        let witness = about.witness();
        let Taken { mut writer, scan, fresh, keeps_index, held, .. } = loop {
            let time = options.deadline.map_or(Time::Any, Time::Until);
            let attention = Attention { forced: &forced, time, witness: Some(&witness), agrees: false };
            let taken = self.take(&root, &attention)?;
            let trees = Trees { fresh: &taken.fresh, store: &self.store };
            // Files that the tool names are captured whatever the rules say.
            let mut left_out = Vec::new();
            for path in named.iter().filter(|path| !forced.contains(path)) {
                let found = diff::lookup(&trees, &taken.scan.root.tree, path)?;
                let is_by_rule = matches!(found, Some(Entry::Skipped { reason }) if reason.is_by_rule());
                if is_by_rule && !self.is_in_a_worktree(path) {
                    left_out.push(path.clone());
                }
            }
            if left_out.is_empty() {
                break taken;
            }
            forced.append(&mut left_out);
        };
        let git = self.git_state(&mut writer, &scan)?;
        let about = About { git, held, ..about };
        let checkpoint = self.checkpoint(&scan, &fresh, parent.as_ref(), about)?;
        let is_own =
            |owned: &Owned| matches!(&owned.owner, Owner::Step { step, .. } if step.session == context.session);
        let works_here = context.along && checkpoint.owned.iter().any(is_own);
        let row = piton_store::CheckpointRow { seq: 0, checkpoint, names: Vec::new(), annotation: None };
        let view = CheckpointView::from(&row);
        self.note_what_begins(&mut writer, context)?;
        if works_here && let Some(session) = self.session_of(context)? {
            writer.record(Record::Session(Session { along: false, ..session }))?;
        }
        // What ends comes before the checkpoint that saw it: a step whose end is recorded after the newest checkpoint is
        // one whose last changes nobody has looked at yet.
        self.note_what_ends(&mut writer, report, context, options.also)?;
        writer.record(Record::Checkpoint(row.checkpoint))?;
        writer.commit(false, keeps_index)?;
        let worktrees = scan.skipped.iter().filter(|(_, reason)| *reason == SkipReason::Worktree);
        let worktrees = worktrees.map(|(path, _)| self.path.join(path.as_path())).collect();
        self.keep_index(scan, keeps_index);
        Ok(Some(Captured { checkpoint: view, worktrees, works_here }))
    }
}

impl History {
    /// The record of an event's session as it is once the event is recorded.
    fn session_of(&self, context: &Context) -> Result<Option<Session>, StoreError> {
        match &context.new_session {
            Some(session) => Ok(Some(session.clone())),
            None => Ok(self.store.session(&context.session)?.map(|row| row.session)),
        }
    }

    /// Whether a path of this workspace lies in a worktree that is a workspace of its own.
    fn is_in_a_worktree(&self, path: &WorkspacePath) -> bool {
        self.engine().worktree_inside(&self.path, &self.path.join(path.as_path())).is_some()
    }

    /// Records what an event says without a checkpoint.
    pub(crate) fn note(
        &self,
        writer: &mut Writer<'_>,
        report: &Report,
        context: &Context,
        also: &[PathBuf],
        gap: Option<Gap>,
    ) -> Result<(), StoreError> {
        self.note_what_begins(writer, context)?;
        if let Some(gap) = gap {
            writer.record(Record::Gap(gap))?;
        }
        self.note_what_ends(writer, report, context, also)
    }

    fn note_what_begins(&self, writer: &mut Writer<'_>, context: &Context) -> Result<(), StoreError> {
        if let Some(session) = &context.new_session {
            writer.record(Record::Session(session.clone()))?;
        }
        if let Some(turn) = &context.new_turn {
            writer.record(Record::Turn(turn.clone()))?;
        }
        Ok(())
    }

    fn note_what_ends(
        &self,
        writer: &mut Writer<'_>,
        report: &Report,
        context: &Context,
        also: &[PathBuf],
    ) -> Result<(), StoreError> {
        let (now, opened) = match context.aside {
            Some(at) => (at, at.0.saturating_mul(1_000_000)),
            None => (self.environment.clock.now(), self.environment.clock.now_ns()),
        };
        let closed = context.asked;
        for (row, how) in &context.over {
            writer.record(Record::StepEnded(StepEnd {
                at: row.step.at.clone(),
                how: *how,
                closed,
                outside: Vec::new(),
            }))?;
        }
        match (&report.event, &context.step) {
            (Event::BeforeTool(call), Some(row)) if context.is_new_step => {
                // Its window opens now: whatever the scan found was there before it.
                let outside = self.look_outside(writer, call.paths.iter().cloned(), also, context.aside.is_some())?;
                writer.record(Record::Step(Step { opened, outside, ..row.step.clone() }))?;
            }
            // It comes once more, or was recorded before its process was ended.
            (Event::AfterTool(_) | Event::ToolFailed { .. }, Some(row))
                if is_repeated(&report.event, row) || (context.aside.is_some() && row.ending.is_some()) => {}
            (Event::AfterTool(call) | Event::ToolFailed { call, .. }, Some(row)) => {
                // Heard of for the first time, or gone to the background while it ran.
                if context.is_new_step || (call.background && !row.step.background) {
                    let background = row.step.background || call.background;
                    writer.record(Record::Step(Step { background, ..row.step.clone() }))?;
                }
                let how = match &report.event {
                    Event::ToolFailed { interrupted: true, .. } => Ending::Interrupted,
                    Event::ToolFailed { .. } => Ending::Failed,
                    _ => Ending::Done,
                };
                // A command in the background has returned and goes on: its window stays open.
                if !((row.step.background || call.background) && how == Ending::Done) {
                    // Not every agent says again which files it is about.
                    let before = row.step.outside.iter().map(|file| PathBuf::from(&file.path));
                    let named = call.paths.iter().cloned().chain(before);
                    let outside = self.look_outside(writer, named, also, context.aside.is_some())?;
                    writer.record(Record::StepEnded(StepEnd { at: row.step.at.clone(), how, closed, outside }))?;
                }
            }
            (Event::TurnEnded { failed, message, .. }, _) if context.turn > 0 => {
                writer.record(Record::TurnEnded(TurnEnd {
                    session: context.session.clone(),
                    number: context.turn,
                    how: if *failed { Ending::Failed } else { Ending::Done },
                    message: message.clone(),
                    at: now,
                }))?;
            }
            (Event::SessionEnded { reason }, _) => {
                writer.record(Record::SessionEnded {
                    session: context.session.clone(),
                    reason: reason.clone(),
                    at: now,
                })?;
            }
            (Event::Message { role, text }, _) => {
                writer.record(Record::Message(Message {
                    session: context.session.clone(),
                    turn: context.turn,
                    role: role.clone(),
                    text: text.clone(),
                    at: now,
                }))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Works out what an event belongs to.
    pub(crate) fn context(
        &self,
        report: &Report,
        options: &ObserveOptions<'_>,
        asked: i64,
    ) -> Result<Context, StoreError> {
        let now = self.environment.clock.now();
        let session = SessionId::of(&report.agent, &report.session);
        let known = self.store.session(&session)?;
        let transcript = report.transcript.as_ref().map(|path| path.to_string_lossy().into_owned());
        let origin = known.as_ref().and_then(|row| row.session.origin.clone());
        // Once it has worked here, it has.
        let along = options.along && known.as_ref().is_none_or(|row| row.session.along);
        let new_session = match known {
            // A branch that was deleted and is heard again is there again.
            Some(row) if row.session.rank == Rank::Deleted => {
                let transcript = transcript.or(row.session.transcript);
                Some(Session { transcript, rank: Rank::Plain, along, ..row.session })
            }
            Some(row)
                if (transcript.is_none() || row.session.transcript == transcript) && row.session.along == along =>
            {
                None
            }
            Some(row) => Some(Session { transcript: transcript.or(row.session.transcript), along, ..row.session }),
            None => Some(Session {
                id: session.clone(),
                agent: report.agent.clone(),
                agent_id: report.session.clone(),
                name: None,
                transcript,
                started_at: now,
                origin: None,
                rank: Rank::Plain,
                kept: None,
                along,
            }),
        };
        let (turn, new_turn, has_missed) = self.turn_of(report, options, &session, origin.as_ref())?;
        let (step, is_new_step) = self.step_of(report, options, &session, turn, asked)?;
        let ends = step.as_ref().filter(|_| !is_new_step).map(|row| row.step.at.clone());
        let mut over = Vec::new();
        for row in self.store.open_steps()? {
            if ends.as_ref() == Some(&row.step.at) {
                continue;
            }
            let is_gone = self.is_gone(&row)? || self.is_long_silent(&row)?;
            if let Some(how) = is_over(&row, report, &session, turn, new_turn.is_some(), is_gone) {
                over.push((row, how));
            }
        }
        Ok(Context {
            session,
            new_session,
            along,
            turn,
            new_turn,
            step,
            is_new_step,
            over,
            asked,
            aside: None,
            has_missed,
        })
    }

    /// Whether the process that reported a step has ended. Some agents report through a helper that ends at once: only
    /// one that reported more than once is taken for the agent.
    pub(crate) fn is_gone(&self, row: &StepRow) -> Result<bool, StoreError> {
        let Some(process) = row.step.process.filter(|process| !process::is_alive(process)) else { return Ok(false) };
        Ok(process.own || self.store.steps_of_process(&row.step.at.session, &process)? > 1)
    }

    /// Whether nobody has heard of a step's session for so long that it will not end the step any more. Where its process
    /// is not known, nothing else ever would, and every change would be unsure because of it.
    pub(crate) fn is_long_silent(&self, row: &StepRow) -> Result<bool, StoreError> {
        const WEEK: i64 = 7 * 86_400_000;
        if row.step.process.is_some_and(|process| process::is_alive(&process)) {
            return Ok(false);
        }
        let last = self.store.session(&row.step.at.session)?.map(|session| session.last_at.0);
        Ok(last.is_some_and(|last| self.environment.clock.now().0 - last > WEEK))
    }

    /// The turn of an event; new where it is not known yet. And whether turns were missed that nobody reported.
    fn turn_of(
        &self,
        report: &Report,
        options: &ObserveOptions<'_>,
        session: &SessionId,
        origin: Option<&Origin>,
    ) -> Result<(u32, Option<Turn>, bool), StoreError> {
        let last = self.store.last_turn(session)?;
        let known = match &report.prompt_id {
            Some(id) => self.store.turn_called(session, id)?,
            None => None,
        };
        if let Some(row) = known {
            return Ok((row.turn.number, None, false));
        }
        if let Some(turn) = options.elsewhere.as_ref().and_then(|e| e.turn.clone()) {
            match self.store.turn(session, turn.number)? {
                None => return Ok((turn.number, Some(turn), false)),
                Some(row) if row.turn.prompt_id == turn.prompt_id => return Ok((turn.number, None, false)),
                // The stores have counted differently: a number of its own, and never another turn's.
                Some(_) => {
                    let number = last.as_ref().map_or(0, |row| row.turn.number) + 1;
                    return Ok((number, Some(Turn { number, ..turn }), false));
                }
            }
        }
        // A branch goes on with its parent's numbers.
        let inherited = origin.map_or(0, |origin| origin.turn.saturating_sub(1));
        let known_here = last.as_ref().map_or(0, |row| row.turn.number).max(inherited);
        // Whoever has seen a lost turn's number must not find another turn under it.
        let known_here = known_here.max(self.store.last_lost_turn(session));
        let number_of_last = options.elsewhere.as_ref().map_or(known_here, |e| e.last_turn.max(known_here));
        let prompt = match &report.event {
            Event::Prompt { text } => Some(cut(text, LONGEST_PROMPT)),
            Event::BeforeTool(_) | Event::AfterTool(_) | Event::ToolFailed { .. } => None,
            // The end of a turn that piton has heard nothing of is not the end of the one before it.
            Event::TurnEnded { .. } if report.prompt_id.is_some() && number_of_last > 0 => None,
            _ => return Ok((number_of_last, None, false)),
        };
        let read = self.read_transcript(report, last.as_ref(), origin);
        let number = match (&prompt, &read) {
            (Some(_), Some((mark, found))) => match position(found, report) {
                Some(at) => mark.turns - found.len() as u32 + at + 1,
                // The prompt is not in the transcript yet.
                None => mark.turns + 1,
            },
            (Some(_), None) => number_of_last + 1,
            // A tool of a turn whose prompt piton did not hear: the transcript knows it.
            (None, Some((mark, found))) => match position(found, report) {
                Some(at) => mark.turns - found.len() as u32 + at + 1,
                None if number_of_last > 0 => return Ok((number_of_last, None, false)),
                None => mark.turns.max(1),
            },
            // Without a transcript, another id is another turn, whose prompt piton did not hear.
            (None, None) if report.transcript.is_none() && report.prompt_id.is_some() => number_of_last + 1,
            (None, None) if number_of_last > 0 => return Ok((number_of_last, None, false)),
            (None, None) => 1,
        };
        let number = number.max(number_of_last + 1);
        let has_missed =
            matches!(report.event, Event::TurnEnded { .. }) || (last.is_some() && number > number_of_last + 1);
        let turn = Turn {
            session: session.clone(),
            number,
            prompt,
            prompt_id: report.prompt_id.clone(),
            at: self.environment.clock.now(),
            mark: read.map(|(mark, _)| mark),
        };
        Ok((number, Some(turn), has_missed))
    }

    /// Reads what is new in the transcript. It only gives turns their numbers, so whatever goes wrong is no error.
    fn read_transcript(
        &self,
        report: &Report,
        last: Option<&TurnRow>,
        origin: Option<&Origin>,
    ) -> Option<(TranscriptMark, Vec<Option<String>>)> {
        let (path, format) = (report.transcript.as_ref()?, self.environment.agents.transcripts(&report.agent)?);
        // A session's own file, and nothing else that a report may name.
        if !format.names(&report.session, path) {
            return None;
        }
        // Turns that a summary stands for in a branch count all the same.
        let beginning = TranscriptMark { length: 0, turns: origin.map_or(0, |origin| origin.missing) };
        let mut mark = last.and_then(|row| row.turn.mark).unwrap_or(beginning);
        let mut part = outside::lines(path, mark.length).ok()??;
        if part.length < mark.length {
            // Another file than the one that was read: from the beginning.
            mark = beginning;
            part = outside::lines(path, 0).ok()??;
        }
        let mut found = Vec::new();
        format.turns(&mut part.reader, &mut |turn| found.push(turn.prompt_id)).ok()?;
        Some((TranscriptMark { length: part.length, turns: mark.turns + found.len() as u32 }, found))
    }

    /// The step that an event begins or ends.
    fn step_of(
        &self,
        report: &Report,
        options: &ObserveOptions<'_>,
        session: &SessionId,
        turn: u32,
        asked: i64,
    ) -> Result<(Option<StepRow>, bool), StoreError> {
        let (call, begins) = match &report.event {
            Event::BeforeTool(call) => (call, true),
            Event::AfterTool(call) | Event::ToolFailed { call, .. } => (call, false),
            _ => return Ok((None, false)),
        };
        // A call may end after its turn did, when its subagent went on.
        let open = self.store.open_steps()?;
        let of_turn = self.store.steps(session, Some(turn))?;
        let mine = || of_turn.iter().chain(&open).filter(|row| row.step.at.session == *session);
        let known = match &call.id {
            // Some programs use an id again, in a later turn or in the same one.
            Some(id) => {
                let is_it = |row: &StepRow| !begins || (row.step.at.turn == turn && !said_its_end(row));
                self.store.step_called(session, id)?.filter(is_it)
            }
            None if begins => None,
            // Without an id, the newest open call of the same tool that does the same.
            None => mine()
                .rfind(|row| row.ending.is_none() && row.step.tool == call.tool && row.step.summary == call.summary)
                .cloned(),
        };
        if let Some(row) = known {
            return Ok((Some(row), false));
        }
        // The number that another workspace gave it, unless another call has that here.
        let is_free = |number: &u32| !of_turn.iter().any(|row| row.step.at.step == *number);
        let given = options.elsewhere.as_ref().and_then(|e| e.step).filter(is_free);
        let last = of_turn.last().map_or(0, |row| row.step.at.step);
        let there = options.elsewhere.as_ref().map(|e| e.last_step).filter(|(of, _)| *of == turn);
        let last = there.map_or(last, |(_, step)| step.max(last));
        let number = given.unwrap_or(last + 1);
        let step = Step {
            at: StepRef { session: session.clone(), turn, step: number },
            call: call.id.clone(),
            tool: call.tool.clone(),
            summary: call.summary.clone(),
            command: call.command.clone(),
            paths: self.named_here(call),
            says: !call.paths.is_empty(),
            outside: Vec::new(),
            background: call.background,
            subagent: report.subagent.as_ref().map(|s| s.id.clone()),
            process: if options.embedded { process::this() } else { process::reporter() },
            opened: asked,
        };
        Ok((Some(StepRow { seq: 0, step, ending: None, closed: None, outside_after: Vec::new() }), true))
    }

    /// The files of this workspace that a call names.
    fn named_here(&self, call: &ToolCall) -> Vec<WorkspacePath> {
        let mut named: Vec<WorkspacePath> = Vec::new();
        for path in call.paths.iter().flat_map(|path| written_by_name(path)) {
            let here = self.path_here(&path).filter(|path| !named.contains(path));
            named.extend(here);
        }
        named
    }

    /// An absolute path as one of this workspace, where it is. A symlink is itself and not what it leads to.
    pub fn path_here(&self, path: &Path) -> Option<WorkspacePath> {
        use std::os::unix::ffi::OsStrExt;
        let parent = canonical(path.parent()?).ok()?;
        let inner = parent.join(path.file_name()?);
        let inner = inner.strip_prefix(&self.path).ok()?;
        WorkspacePath::new(inner.as_os_str().as_bytes()).ok().filter(|path| !path.is_root())
    }

    /// Keeps what the files elsewhere that a call names hold. What cannot be kept, or what they held when it is too late to
    /// look, is said to be unknown.
    fn look_outside(
        &self,
        writer: &mut Writer<'_>,
        paths: impl Iterator<Item = PathBuf>,
        also: &[PathBuf],
        is_too_late: bool,
    ) -> Result<Vec<Outside>, StoreError> {
        let mut found: Vec<Outside> = Vec::new();
        for whole in paths.filter(|path| path.is_absolute()).flat_map(|path| written_by_name(&path)) {
            let is_known = found.iter().any(|one| Path::new(&one.path) == whole);
            if is_known || whole.starts_with(&self.path) || self.is_never_read(&whole) {
                continue;
            }
            // The store of the workspace that it is in has it.
            if also.iter().any(|other| whole.starts_with(other)) {
                continue;
            }
            if is_too_late {
                let path = whole.to_string_lossy().into_owned();
                found.push(Outside { path, file: None, skipped: Some(SkipReason::Unreadable) });
                continue;
            }
            let (file, skipped) = match outside::read(&whole, LARGEST_OUTSIDE) {
                Ok(Some(plain)) => {
                    let size = plain.bytes.len() as u64;
                    (Some(OutsideFile { blob: writer.blob(&plain.bytes)?, size, mode: plain.mode }), None)
                }
                Ok(None) => (None, None),
                Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => (None, Some(SkipReason::TooLarge)),
                Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => (None, Some(SkipReason::Special)),
                Err(_) => (None, Some(SkipReason::Unreadable)),
            };
            found.push(Outside { path: whole.to_string_lossy().into_owned(), file, skipped });
        }
        Ok(found)
    }

    /// Piton's own folder, and those where agents keep their state. Given a canonical path.
    fn is_never_read(&self, path: &Path) -> bool {
        let (own, noted) = ([self.home.path().to_owned()], self.home.agent_state().paths);
        is_within_any(path, own.iter().chain(&self.environment.agent_state).chain(&noted))
    }

    fn tell_of(&self, context: &Context, event: &Event, checkpoint: Option<&CheckpointView>, gap: Option<&String>) {
        if context.new_session.is_some() {
            self.tell(|| Notice::SessionBegan { session: context.session.clone() });
        }
        if context.new_turn.is_some() {
            self.tell(|| Notice::TurnBegan { session: context.session.clone(), turn: context.turn });
        }
        if let Some(checkpoint) = checkpoint {
            self.tell(|| Notice::Captured { checkpoint: Box::new(checkpoint.clone()) });
        }
        if let Some(reason) = gap {
            self.tell(|| Notice::Gap { reason: reason.clone() });
        }
        if matches!(event, Event::TurnEnded { .. }) {
            self.tell(|| Notice::TurnEnded { session: context.session.clone(), turn: context.turn });
        }
    }
}

impl Context {
    /// Says that it was set aside when it came.
    pub(crate) fn came_at(&mut self, at: Timestamp, process: Option<Process>, event: &Event) {
        self.aside = Some(at);
        if let Some(session) = self.new_session.as_mut().filter(|session| session.origin.is_none()) {
            session.started_at = session.started_at.min(at);
        }
        if let Some(turn) = &mut self.new_turn {
            turn.at = at;
        }
        if let Some(row) = self.step.as_mut().filter(|_| self.is_new_step) {
            row.step.process = process;
            if !matches!(event, Event::BeforeTool(_)) {
                // Nobody heard of its beginning, and the capture that would have seen its end was not made.
                row.step.opened = UNKNOWN;
            }
        }
    }

    pub(crate) fn place(&self) -> TurnContext {
        let step = self.step.as_ref().map(|row| &row.step.at);
        // A call may end after its turn did.
        let turn = step.map_or(self.turn, |at| at.turn);
        TurnContext { session: self.session.clone(), turn, step: step.map(|at| at.step) }
    }

    /// The window of the step that ends: open until the event, whatever was thought of it before. An event that comes once
    /// more ends nothing: what was done since is not the tool's.
    fn ending(&self, event: &Event, since: u64) -> Option<Window> {
        let row = self.step.as_ref().filter(|row| !is_repeated(event, row))?;
        if !matches!(event, Event::AfterTool(_) | Event::ToolFailed { .. }) {
            return None;
        }
        let opened = if self.is_new_step { UNKNOWN } else { row.step.opened };
        let window = window_of(row, since, self.along);
        let failed = matches!(event, Event::ToolFailed { .. });
        Some(Window { opened, closed: Some(self.asked), background: false, failed, ..window })
    }
}

/// Whether the user is there to read what comes of an event.
fn is_for_user(event: &Event) -> bool {
    matches!(event, Event::Prompt { .. } | Event::SessionStarted { .. })
}

/// Whether a step's own after event was heard, which comes only once; every other ending is only thought to be one.
fn said_its_end(row: &StepRow) -> bool {
    matches!(row.ending, Some(Ending::Done | Ending::Failed))
}

/// Whether an event says once more how a step ended.
fn is_repeated(event: &Event, row: &StepRow) -> bool {
    let is_interrupted = matches!(event, Event::ToolFailed { interrupted: true, .. });
    said_its_end(row) || (is_interrupted && row.ending == Some(Ending::Interrupted))
}

/// What an event's capture is called; none where nothing is captured.
pub(crate) fn cause_of(event: &Event) -> Option<Cause> {
    match event {
        Event::SessionStarted { .. } => Some(Cause::SessionStart),
        Event::Prompt { .. } => Some(Cause::Prompt),
        Event::BeforeTool(_) => Some(Cause::BeforeTool),
        Event::AfterTool(_) | Event::ToolFailed { .. } => Some(Cause::AfterTool),
        // The end of a session is the last chance to see what an interrupted turn did.
        Event::TurnEnded { .. } | Event::SessionEnded { .. } => Some(Cause::TurnEnd),
        Event::Compacting { .. } => Some(Cause::Compaction),
        Event::SubagentStarted | Event::SubagentEnded | Event::Message { .. } | Event::Other { .. } => None,
    }
}

/// Whether a step that did not report its end must have ended, and how.
fn is_over(
    row: &StepRow,
    report: &Report,
    session: &SessionId,
    turn: u32,
    turn_is_new: bool,
    is_gone: bool,
) -> Option<Ending> {
    let step = &row.step;
    let is_mine = step.at.session == *session;
    if is_gone {
        return Some(Ending::Lost);
    }
    match &report.event {
        // What runs in the background, or in a subagent, survives a turn.
        Event::Prompt { .. } if is_mine && turn_is_new && step.at.turn < turn => {
            (!step.background && step.subagent.is_none()).then_some(Ending::Lost)
        }
        Event::TurnEnded { background: false, .. } if is_mine && step.background && step.at.turn <= turn => {
            Some(Ending::Done)
        }
        Event::TurnEnded { .. } if is_mine && step.at.turn == turn => {
            (!step.background && step.subagent.is_none()).then_some(Ending::Lost)
        }
        Event::SessionEnded { .. } if is_mine => Some(if step.background { Ending::Done } else { Ending::Lost }),
        Event::SessionStarted { source } if is_mine && source.as_deref() != Some("compact") => Some(Ending::Lost),
        _ => None,
    }
}

/// Where among the turns of a transcript an event's own is.
fn position(found: &[Option<String>], report: &Report) -> Option<u32> {
    let at = found.iter().position(|id| id.is_some() && *id == report.prompt_id)?;
    u32::try_from(at).ok()
}

fn description(event: &Event) -> Option<String> {
    match event {
        Event::Prompt { text } => {
            text.lines().find(|line| !line.trim().is_empty()).map(|line| cut(line.trim(), LONGEST_DESCRIPTION))
        }
        Event::BeforeTool(call) | Event::AfterTool(call) | Event::ToolFailed { call, .. } => Some(call.summary.clone()),
        _ => None,
    }
}

/// The beginning of a text, at most so many bytes of it.
fn cut(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
}
