//! What agents are doing right now, asked before an operation changes files under them.
//!
//! An agent reports when a tool begins and ends, and when its turn ends. Of an interruption most report nothing: then the
//! turn looks as if it went on for ever. It counts as interrupted when its process is gone, when its transcript says so,
//! or when the user says so; that is recorded before the operation, so that the windows of its tools are closed and what
//! is found later has the right owners.

use std::io::{self, BufRead};
use std::time::Duration;

use piton_agents::Transcripts;
use piton_host::outside;
use piton_model::session::{Ending, StepEnd, TurnEnd};
use piton_model::short::one_line;
use piton_model::{Record, SessionId, Timestamp};
use piton_store::{PATIENCE, Purpose, SessionRow, StepRow, StoreError, TurnRow};

use crate::conversation::Source;
use crate::history::target::IntoTarget;
use crate::operation::chosen::Whose;
use crate::operation::error::OperationError;
use crate::operation::redo::RedoOptions;
use crate::operation::request::Asked;
use crate::operation::rewind::RewindOptions;
use crate::operation::undo::UndoOptions;
use crate::view::{Activity, Interrupted, RunningView};
use crate::workspace::locked::Locked;
use crate::workspace::{History, Workspace};

/// Of a turn's part of the transcript so much is read at most: its end has the mark of an interruption.
const TAIL: u64 = 8 << 20;
/// How long what the turn's prompt says may be in a view.
const LONGEST_ABOUT: usize = 120;

/// What agents are at, seen from one operation.
pub(crate) struct Running {
    /// The sessions that the operation is about.
    own: Vec<AtWork>,
    /// Others whose tools run here, and may be writing to the very files; at a rewind all that are at work.
    others: Vec<AtWork>,
    /// Others that are not in the way: their tools run elsewhere, while this workspace is only captured along, or none runs.
    along: Vec<AtWork>,
    /// Commands that go on after their tools have returned.
    background: Vec<StepRow>,
    /// Whether the operation puts anything into files.
    writes: bool,
}

/// A session in the middle of a turn.
pub(crate) struct AtWork {
    session: SessionRow,
    turn: TurnRow,
    /// Its tools that run.
    steps: Vec<StepRow>,
    interrupted: Option<Interrupted>,
    /// It works in a workspace inside this one or around it, whose store has its records.
    is_near: bool,
}

/// What ran when a plan was made, and what the user says of that.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// Each session at work with its newest record: one that is heard of again was not interrupted.
    sessions: Vec<(SessionId, u64)>,
    /// The user says that those were interrupted.
    pub interrupted: bool,
}

/// What agents were at when an operation began.
#[derive(Default)]
pub(crate) struct Settled {
    /// Turns that count as interrupted since.
    pub interrupted: Vec<RunningView>,
    /// What goes on beside it.
    pub goes_on: Vec<RunningView>,
}

impl Running {
    pub(crate) fn known(&self) -> Known {
        Known { sessions: self.own.iter().chain(&self.others).map(AtWork::heard).collect(), interrupted: false }
    }

    /// For showing: what stands in the way first.
    pub(crate) fn views(&self) -> Vec<RunningView> {
        let blocks = |one: &AtWork| self.writes && one.interrupted.is_none();
        let own = self.own.iter().map(|one| one.view(true, blocks(one)));
        let others = self.others.iter().map(|one| one.view(false, blocks(one)));
        let along = self.along.iter().map(|one| one.view(false, false));
        let mut views: Vec<_> = own.chain(others).chain(along).collect();
        views.sort_by_key(|view| !view.blocks);
        let is_own = |row: &StepRow| self.own.iter().any(|one| one.session.session.id == row.step.at.session);
        views.extend(self.background.iter().map(|row| of_step(row, Activity::Background, is_own(row))));
        views
    }
}

impl AtWork {
    fn heard(&self) -> (SessionId, u64) {
        (self.session.session.id.clone(), self.session.last_seq)
    }

    fn view(&self, own: bool, blocks: bool) -> RunningView {
        let of_turn = || RunningView {
            session: self.session.session.id.clone(),
            turn: self.turn.turn.number,
            step: None,
            what: Activity::Turn,
            about: self.turn.turn.prompt.as_deref().and_then(first_line),
            since: self.turn.turn.at,
            own,
            blocks,
            interrupted: None,
        };
        let view = self.steps.last().map_or_else(of_turn, |row| of_step(row, Activity::Tool, own));
        RunningView { blocks, interrupted: self.interrupted, ..view }
    }
}

fn of_step(row: &StepRow, what: Activity, own: bool) -> RunningView {
    let at = &row.step.at;
    RunningView {
        session: at.session.clone(),
        turn: at.turn,
        step: Some(at.step),
        what,
        about: Some(row.step.summary.clone()).filter(|summary| !summary.is_empty()),
        since: Timestamp(row.step.opened.div_euclid(1_000_000)),
        own,
        blocks: false,
        interrupted: None,
    }
}

fn first_line(text: &str) -> Option<String> {
    text.lines().find(|line| !line.trim().is_empty()).map(|line| one_line(line, LONGEST_ABOUT))
}

/// What stands in an operation's way, in plain words.
pub(crate) fn described(running: &[RunningView]) -> String {
    let said: Vec<_> = running.iter().map(RunningView::describe).collect();
    said.join(", and ")
}

impl Workspace {
    /// Notes that the user said something to a session: the turn before has ended, and where nothing else said so it was
    /// interrupted. Not where the prompt belongs to that very turn.
    ///
    /// # Errors
    /// Where the store refuses.
    pub fn prompted(&mut self, session: &SessionId, prompt_id: Option<&str>) -> Result<(), StoreError> {
        let is_over = |one: &AtWork| prompt_id.is_none() || one.turn.turn.prompt_id.as_deref() != prompt_id;
        if !self.at_work(session)?.as_ref().is_some_and(is_over) {
            return Ok(());
        }
        let locked = self.lock(PATIENCE)?;
        // It may have ended while this waited.
        let Some(mut one) = locked.at_work(session)?.filter(is_over) else { return Ok(()) };
        one.interrupted.get_or_insert(Interrupted::Said);
        locked.note_interrupted(&[&one])
    }

    /// Records the end of interrupted turns in the near stores that know them, or else every operation would ask for the
    /// user's word again. Whoever holds the lock of such a store may wait for the lock of this one, so nobody waits here: a
    /// store that is busy hears of it the next time.
    fn note_interrupted_near(&self, over: Vec<AtWork>) {
        if over.is_empty() {
            return;
        }
        let engine = self.engine();
        for near in self.near_captured() {
            let Ok(mut near) = engine.load(&near.record.id, near.path.clone()) else { continue };
            let Ok(near) = near.lock(Duration::ZERO) else { continue };
            let is_same = |one: &&AtWork| {
                let now = near.at_work(&one.session.session.id).ok().flatten();
                now.is_some_and(|now| now.heard() == one.heard())
            };
            let known: Vec<&AtWork> = over.iter().filter(is_same).collect();
            let _ = near.note_interrupted(&known);
        }
    }
}

impl Locked<'_> {
    /// Refuses an operation under an agent that is at work, and records the end of turns that were interrupted, which it
    /// returns, with what goes on and is not in the way. `known` is what a plan that was shown found; without one, whatever is
    /// there now is what the user speaks of.
    pub(crate) fn settle_running(&self, ask: &Asked, known: Option<&Known>) -> Result<Settled, OperationError> {
        if !ask.writes_files() {
            return Ok(Settled::default());
        }
        let says = known.map_or(ask.says_interrupted(), |known| known.interrupted);
        let is_meant = |one: &AtWork| known.is_none_or(|known| known.sessions.contains(&one.heard()));
        let (mut over, mut at_work) = (Vec::new(), Vec::new());
        let Running { own, others, along, background, .. } = self.running(ask)?;
        let all = own.into_iter().map(|one| (one, true)).chain(others.into_iter().map(|one| (one, false)));
        for (mut one, is_own) in all {
            if one.interrupted.is_none() && says && is_meant(&one) {
                one.interrupted = Some(Interrupted::Said);
            }
            if one.interrupted.is_some() { over.push((one, is_own)) } else { at_work.push(one.view(is_own, true)) }
        }
        if !at_work.is_empty() {
            return Err(OperationError::Running(at_work));
        }
        let interrupted = over.iter().map(|(one, is_own)| one.view(*is_own, false)).collect();
        let goes_on = along.iter().filter(|one| one.interrupted.is_none()).map(|one| one.view(false, false));
        let goes_on = goes_on.chain(background.iter().map(|row| of_step(row, Activity::Background, false))).collect();
        let (near, here): (Vec<_>, Vec<_>) = over.into_iter().map(|(one, _)| one).partition(|one| one.is_near);
        self.note_interrupted(&here.iter().collect::<Vec<_>>())?;
        self.note_interrupted_near(near);
        Ok(Settled { interrupted, goes_on })
    }

    /// Records that turns ended in the middle, and their tools with them.
    fn note_interrupted(&self, over: &[&AtWork]) -> Result<(), StoreError> {
        if over.is_empty() {
            return Ok(());
        }
        let (now, closed) = (self.environment.clock.now(), self.environment.clock.now_ns());
        let mut writer = self.writer()?.allowing(Purpose::End);
        for AtWork { turn, steps, interrupted, .. } in over {
            let how = if *interrupted == Some(Interrupted::Gone) { Ending::Lost } else { Ending::Interrupted };
            for row in steps {
                let at = row.step.at.clone();
                // The user's word has no time.
                let cut = if *interrupted == Some(Interrupted::Said) { None } else { self.cut_off_at(row) };
                writer.record(Record::StepEnded(StepEnd { at, how, closed, cut, outside: Vec::new() }))?;
            }
            if turn.ending.is_none() {
                writer.record(Record::TurnEnded(TurnEnd {
                    session: turn.turn.session.clone(),
                    number: turn.turn.number,
                    how: Ending::Interrupted,
                    message: None,
                    at: now,
                }))?;
            }
        }
        writer.commit(false, false)
    }
}

impl History {
    /// What agents are at, for a rewind that somebody is about to ask for. Takes no lock and looks at no file.
    ///
    /// # Errors
    /// Where the target means nothing, or the store refuses.
    pub fn running_at_rewind(
        &self,
        target: impl IntoTarget,
        options: &RewindOptions,
    ) -> Result<Vec<RunningView>, OperationError> {
        Ok(self.running(&self.rewind_asked(&target.into_target()?, options)?)?.views())
    }

    /// The same for an undo.
    ///
    /// # Errors
    /// Where the store refuses.
    pub fn running_at_undo(&self, options: &UndoOptions) -> Result<Vec<RunningView>, OperationError> {
        Ok(self.running(&Asked::Undo(Box::new(options.clone())))?.views())
    }

    /// The same for a redo.
    ///
    /// # Errors
    /// Where there is no such operation, or the store refuses.
    pub fn running_at_redo(&self, options: &RedoOptions) -> Result<Vec<RunningView>, OperationError> {
        Ok(self.running(&self.redo_asked(options)?)?.views())
    }

    /// What agents are at, seen from what is asked for.
    pub(crate) fn running(&self, ask: &Asked) -> Result<Running, StoreError> {
        let concerned = self.concerned(ask)?;
        let (mut own, mut others, mut background) = (Vec::new(), Vec::new(), Vec::new());
        for session in &concerned {
            own.extend(self.at_work(session)?);
        }
        let mut seen = concerned;
        let runs = |one: &AtWork| !one.steps.is_empty() && one.interrupted.is_none();
        let is_rewind = matches!(ask, Asked::Rewind(_));
        if is_rewind {
            others.extend(self.in_a_turn(&mut seen)?);
        }
        for row in self.store.open_steps()? {
            let session = &row.step.at.session;
            if !seen.contains(session) {
                seen.push(session.clone());
                others.extend(self.at_work(session)?.filter(runs));
            }
            // What a subagent does after its turn has ended goes on in the background too.
            let outlives = row.step.subagent.is_some()
                && self.store.turn(session, row.step.at.turn)?.is_none_or(|turn| turn.ending.is_some());
            if (row.step.background || outlives) && !self.is_gone(&row)? && !self.is_long_silent(&row)? {
                background.push(row);
            }
        }
        let (mut along, mut others): (Vec<_>, Vec<_>) = others.into_iter().partition(|one| one.session.session.along);
        // Whoever asks for the last turn is told of one that goes on and has changed nothing yet.
        if matches!(ask, Asked::Undo(options) if options.choice.is_last_turn()) {
            along.extend(self.in_a_turn(&mut seen)?);
        }
        for near in self.near_captured() {
            let known = others.len();
            if is_rewind {
                others.extend(near.in_a_turn(&mut seen)?);
            }
            for row in near.store.open_steps()? {
                let session = &row.step.at.session;
                if !seen.contains(session) {
                    seen.push(session.clone());
                    others.extend(near.at_work(session)?.filter(runs));
                }
            }
            others[known..].iter_mut().for_each(|one| one.is_near = true);
        }
        Ok(Running { own, others, along, background, writes: ask.writes_files() })
    }

    /// Sessions that nobody has seen yet and that are in the middle of a turn, whether or not a tool runs. A rewind leaves
    /// nobody's files as they are, so it is in the way of all of them.
    fn in_a_turn(&self, seen: &mut Vec<SessionId>) -> Result<Vec<AtWork>, StoreError> {
        let mut found = Vec::new();
        for row in self.store.sessions()?.into_iter().filter(|row| self.is_live(row)) {
            let session = row.session.id;
            if !seen.contains(&session) {
                found.extend(self.at_work(&session)?.filter(|one| one.interrupted.is_none()));
                seen.push(session);
            }
        }
        Ok(found)
    }

    /// The sessions that an operation is about: those that it names, and the one at work now where it goes on with the
    /// same conversation.
    fn concerned(&self, ask: &Asked) -> Result<Vec<SessionId>, StoreError> {
        let mut sessions: Vec<SessionId> = match ask {
            Asked::Rewind(asked) => asked.conversation.iter().flat_map(|one| one.sessions().cloned()).collect(),
            Asked::Undo(options) => {
                let choice = &options.choice;
                let is_meant = choice.session.is_some() || choice.whose != Some(Whose::You);
                // Where it is not clear which one is meant, the undo itself says so.
                let last = if choice.is_last_turn() { self.session_of_last_turn(None).ok().flatten() } else { None };
                let meant = || last.or_else(|| self.session_meant(choice.session.as_deref(), "undo").ok());
                let meant = is_meant.then(meant).flatten();
                meant.into_iter().map(|row| row.session.id).collect()
            }
            Asked::Redo(asked) => {
                let went =
                    asked.all().filter_map(|operation| operation.conversation.as_ref()).map(|change| &change.went);
                let talked = went.flat_map(|went| [Some(&went.from), went.to.as_ref()]).flatten().cloned();
                asked.before.checkpoint.place.iter().map(|place| place.session.clone()).chain(talked).collect()
            }
            Asked::Branch(asked) => vec![asked.point.session.session.id.clone()],
            Asked::Checkout(_) => return Ok(Vec::new()),
        };
        if let Some(here) = self.place_now()?.map(|place| place.session) {
            let lineage = self.lineage(&here)?;
            for session in sessions.clone() {
                if self.lineage(&session)?.root() == lineage.root() {
                    sessions.push(here.clone());
                }
            }
        }
        let mut seen: Vec<SessionId> = Vec::new();
        sessions.retain(|session| {
            !seen.contains(session) && {
                seen.push(session.clone());
                true
            }
        });
        Ok(sessions)
    }

    /// What a session is at; none where it is idle.
    fn at_work(&self, session: &SessionId) -> Result<Option<AtWork>, StoreError> {
        let (Some(session), Some(turn)) = (self.store.session(session)?, self.store.last_turn(session)?) else {
            return Ok(None);
        };
        let (id, number, is_open) = (&session.session.id, turn.turn.number, turn.ending.is_none());
        let mut steps = Vec::new();
        for row in self.store.open_steps()? {
            let step = &row.step;
            // What a subagent does after its turn has ended goes on in the background.
            let is_of_turn = step.at.session == *id && step.at.turn == number && (is_open || step.subagent.is_none());
            if is_of_turn && !step.background && !self.is_long_silent(&row)? {
                steps.push(row);
            }
        }
        if steps.is_empty() && !(is_open && self.is_live(&session)) {
            return Ok(None);
        }
        let last = self.store.steps(id, Some(number))?.pop();
        let interrupted = if last.map_or(Ok(false), |row| self.is_gone(&row))? {
            Some(Interrupted::Gone)
        } else {
            // What cannot be read says nothing.
            self.says_interrupted(&session, &turn).unwrap_or(false).then_some(Interrupted::Transcript)
        };
        Ok(Some(AtWork { session, turn, steps, interrupted, is_near: false }))
    }

    /// Whether the transcript says that a turn was interrupted.
    fn says_interrupted(&self, row: &SessionRow, turn: &TurnRow) -> io::Result<bool> {
        let said = self.end_of_turn(row, turn, |format, part| format.ends_interrupted(part))?;
        Ok(said.unwrap_or(false))
    }

    /// Reads the end of a turn in its transcript, where that can be read. Only what was written since its prompt is read.
    fn end_of_turn<T>(
        &self,
        row: &SessionRow,
        turn: &TurnRow,
        read: impl Fn(&dyn Transcripts, &mut dyn BufRead) -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        let Some(format) = self.environment.agents.transcripts(&row.session.agent) else { return Ok(None) };
        let Ok((Source::File(path), ..)) = self.transcript_of(&row.session, format) else { return Ok(None) };
        let begin = turn.turn.mark.map_or(0, |mark| mark.length);
        let Some(mut all) = outside::lines(&path, begin)? else { return Ok(None) };
        if all.length < begin {
            // Another file than the one that was read at the prompt.
            return Ok(None);
        }
        match all.length.saturating_sub(TAIL) {
            from if from > begin => match outside::lines(&path, from)? {
                Some(mut tail) => read(format, &mut tail.reader).map(Some),
                None => Ok(None),
            },
            _ => read(format, &mut all.reader).map(Some),
        }
    }

    /// When a tool was cut off of which nobody heard again, in nanoseconds since 1970: when its transcript says so, else when
    /// that was last written, else when its session was last heard of. None where that would be before the tool began.
    pub(crate) fn cut_off_at(&self, row: &StepRow) -> Option<i64> {
        let at = &row.step.at;
        let session = self.store.session(&at.session).ok()??;
        let turn = self.store.turn(&at.session, at.turn).ok()??;
        let told =
            self.end_of_turn(&session, &turn, |format, part| format.interrupted_at(part)).ok().flatten().flatten();
        let written = || {
            let format = self.environment.agents.transcripts(&session.session.agent)?;
            match self.transcript_of(&session.session, format) {
                Ok((Source::File(path), ..)) => outside::written_at(&path),
                _ => None,
            }
        };
        let end = told.map(|at| at.0.saturating_mul(1_000_000)).or_else(written);
        let end = end.or_else(|| Some(session.last_at.0.saturating_mul(1_000_000)));
        end.filter(|end| *end > row.step.opened)
    }

    /// Whether a tool that nobody heard of again was cut off, as its process or its transcript shows, and when.
    pub(crate) fn cut_off(&self, row: &StepRow) -> Result<Option<Option<i64>>, StoreError> {
        if row.step.background {
            return Ok(None);
        }
        let at = &row.step.at;
        let (Some(session), Some(turn)) = (self.store.session(&at.session)?, self.store.turn(&at.session, at.turn)?)
        else {
            return Ok(None);
        };
        let is_cut_off = self.is_gone(row)? || self.says_interrupted(&session, &turn).unwrap_or(false);
        Ok(is_cut_off.then(|| self.cut_off_at(row)))
    }
}
