//! What an event is about: its session, turn and step, and the steps that it shows to be over. Only reads.

use std::path::Path;

use piton_host::{canonical, outside, process, written_by_name};
use piton_model::event::{Event, Report, ToolCall};
use piton_model::ownership::{UNKNOWN, Window};
use piton_model::session::{Attended, Ending, Process, Session, Step, TranscriptMark, Turn};
use piton_model::{Origin, Rank, SessionId, StepRef, Timestamp, TurnContext, WorkspacePath};
use piton_store::{StepRow, StoreError, TurnRow};

use super::ObserveOptions;
use crate::workspace::History;
use crate::workspace::near::window_of;

/// Of a prompt so much is kept.
const LONGEST_PROMPT: usize = 1 << 20;

/// A step that must have ended by now.
pub(crate) struct Over {
    pub row: StepRow,
    pub how: Ending,
    /// When it was cut off, where that is known; in nanoseconds since 1970.
    pub cut: Option<i64>,
}

/// What an event is about, worked out before anything is captured.
pub(crate) struct Context {
    pub(super) session: SessionId,
    pub(super) new_session: Option<Session>,
    /// The session works elsewhere.
    pub(super) along: bool,
    pub(super) turn: u32,
    pub(super) new_turn: Option<Turn>,
    /// The step that begins or ends.
    pub(super) step: Option<StepRow>,
    pub(super) is_new_step: bool,
    /// Steps that must have ended by now, with how.
    pub(super) over: Vec<Over>,
    /// When the event was reported: what happens while piton waits for the lock is not the tool's any more.
    pub(super) asked: i64,
    /// Where it was set aside: when somebody tried to record it. What it says of files elsewhere cannot be looked at any
    /// more.
    pub(super) aside: Option<Timestamp>,
    /// The event tells of turns that nobody reported: tools may have run that no step tells of.
    pub has_missed: bool,
}

impl History {
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
                let cut = if how == Ending::Lost { self.cut_off_at(&row) } else { None };
                over.push(Over { row, how, cut });
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
        if let Some(mut row) = known {
            // Only at its end is it known that the user talked with it.
            if call.attended == Attended::Interactive {
                row.step.attended = call.attended;
            }
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
            cwd: self.folder_of(report, call),
            hooked: call.hooked,
            attended: call.attended,
        };
        Ok((Some(StepRow { seq: 0, step, ending: None, closed: None, cut: None, outside_after: Vec::new() }), true))
    }

    /// The folder that a shell command begins in.
    fn folder_of(&self, report: &Report, call: &ToolCall) -> Option<String> {
        call.command.as_ref()?;
        let folder = canonical(report.cwd.as_ref()?).ok()?;
        folder.to_str().map(str::to_owned)
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
    pub(super) fn ending(&self, event: &Event, since: u64, root: &Path) -> Option<Window> {
        let row = self.step.as_ref().filter(|row| !is_repeated(event, row))?;
        if !matches!(event, Event::AfterTool(_) | Event::ToolFailed { .. }) {
            return None;
        }
        let opened = if self.is_new_step { UNKNOWN } else { row.step.opened };
        let ended = StepRow { ending: None, closed: Some(self.asked), ..row.clone() };
        let window = window_of(&ended, since, self.along, root);
        let failed = matches!(event, Event::ToolFailed { .. });
        Some(Window { opened, closed: Some(self.asked), background: false, failed, ..window })
    }
}

/// Whether a step's own after event was heard, which comes only once; every other ending is only thought to be one.
fn said_its_end(row: &StepRow) -> bool {
    matches!(row.ending, Some(Ending::Done | Ending::Failed))
}

/// Whether an event says once more how a step ended.
pub(super) fn is_repeated(event: &Event, row: &StepRow) -> bool {
    let is_interrupted = matches!(event, Event::ToolFailed { interrupted: true, .. });
    said_its_end(row) || (is_interrupted && row.ending == Some(Ending::Interrupted))
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

/// The beginning of a text, at most so many bytes of it.
pub(super) fn cut(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
}
