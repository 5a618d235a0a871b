//! Sessions for a program that embeds piton, and across workspaces: begin a session, a turn, before and after a tool.
//!
//! The hook of an agent goes the same way: its report becomes the same [`Report`], and [`Engine::observe`] takes it to
//! every workspace that the session works in.

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};

use piton_host::written_by_name;
use piton_model::event::{Event, Report, ToolCall};
use piton_model::{SessionId, Turn, WorkspaceId};
use piton_store::{NotedWorkspace, StoreError};

use crate::capture::CaptureError;
use crate::observe::{Elsewhere, ObserveOptions};
use crate::view::Observed;
use crate::workspace::{Engine, OpenError, Workspace};

/// Why a report could not be taken in.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The workspace.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The capture.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// A report that does not say where the agent works.
    #[error("the report does not say where the agent works")]
    NoFolder,
}

/// What came of a report in another workspace of the session.
pub type ObservedElsewhere = (PathBuf, Result<Observed, ObserveError>);

/// A workspace that an event is taken to, other than the one that the agent works in.
struct OtherWorkspace {
    path: PathBuf,
    /// Which one it was when the session worked in it; another may have taken its place since.
    id: Option<WorkspaceId>,
    /// Only captured along.
    along: bool,
    /// Its folder is not there any more.
    is_gone: bool,
}

impl Engine {
    /// Takes in what an agent reports, in the workspace that the folder it works in belongs to, in every other that its
    /// session works in, and in the worktrees inside of them. A folder that is no workspace yet becomes one.
    ///
    /// Returns what came of it in the first; what goes wrong in another is in its place of the list.
    ///
    /// # Errors
    /// What goes wrong in the workspace where the agent works.
    pub fn observe(
        &self,
        report: &Report,
        options: &ObserveOptions<'_>,
    ) -> Result<(Observed, Vec<ObservedElsewhere>), ObserveError> {
        let cwd = report.cwd.as_deref().ok_or(ObserveError::NoFolder)?;
        let session = SessionId::of(&report.agent, &report.session);
        let noted = self.home.all_workspaces_of(&session);
        let worked_in: Vec<PathBuf> = noted.iter().filter(|one| !one.along).map(|one| one.path.clone()).collect();
        let place = match options.place {
            Some(place) => place.clone(),
            None => self.event_place(cwd, &worked_in)?,
        };
        let noted_transcript = self.note_transcript(report, cwd).map_err(ObserveError::from);
        let first = noted_transcript.and_then(|()| Ok(self.open_or_init(&place.root)?));
        let first = first.inspect_err(|error| self.set_aside_unopened(&place.root, report, error, false))?;
        let named = self.workspaces_named(report, first.path());
        // Which of them the session works in, the rest being captured along.
        let mut others: Vec<OtherWorkspace> = Vec::new();
        // The one that the agent works in may have been noted where it was before it moved.
        let noted_others = noted.iter().filter(|one| one.id != first.record.id);
        let noted_others = noted_others.map(|one| (one.path.clone(), Some(one.id.clone()), one.along));
        let all = noted_others.chain(named.into_iter().map(|path| (path, None, false)));
        for (path, id, along) in all.filter(|(path, ..)| path != first.path()) {
            match others.iter_mut().find(|other| other.path == path) {
                Some(other) => other.along &= along,
                None => others.push(OtherWorkspace { is_gone: !path.is_dir(), path, id, along }),
            }
        }
        let there: Vec<PathBuf> =
            others.iter().filter(|other| !other.is_gone).map(|other| other.path.clone()).collect();
        let mut elsewhere = self.elsewhere(&there, report, &session);
        let last_here = match first.store.last_turn(&session) {
            Err(error) if error.is_damaged_database() => {
                first.store.rebuild()?;
                first.store.last_turn(&session)
            }
            last => last,
        };
        let last_here = last_here?.map_or(0, |row| row.turn.number);
        if let Some(elsewhere) = &mut elsewhere {
            // Where this store is as far, it knows better itself.
            elsewhere.turn = elsewhere.turn.take().filter(|turn| turn.number > last_here);
        }
        let in_first = ObserveOptions { elsewhere, also: &there, ..options.again() };
        let (first, observed) = self.observe_in(first, report, &in_first)?;
        let note = |workspace: &Workspace, along: bool| {
            let is_noted = |one: &NotedWorkspace| one.id == workspace.record.id && (along || !one.along);
            match noted.iter().any(is_noted) {
                true => Ok(()),
                false => self.home.note_session(&session, &workspace.record.id, along),
            }
        };
        note(&first, false)?;
        let turn = first.store.turn(&session, observed.turn)?.map(|row| row.turn);
        let mut rest = Vec::new();
        let mut seen: HashSet<PathBuf> = [first.path().to_owned()].into();
        let also: Vec<PathBuf> = seen.iter().cloned().chain(there).collect();
        let mut seen_ids: HashSet<WorkspaceId> = [first.record.id.clone()].into();
        let found = |path: &PathBuf| OtherWorkspace { path: path.clone(), id: None, along: true, is_gone: false };
        let (mut gone, mut others): (VecDeque<_>, VecDeque<_>) = others.into_iter().partition(|other| other.is_gone);
        others.extend(observed.worktrees.iter().map(found));
        // Those that are gone come last: one of the worktrees that are found may be it, at another path.
        while let Some(other) = others.pop_front().or_else(|| gone.pop_front()) {
            let is_seen = other.id.as_ref().is_some_and(|id| seen_ids.contains(id));
            if !seen.insert(other.path.clone()) || is_seen {
                continue;
            }
            let elsewhere =
                Elsewhere { turn: turn.clone(), step: observed.step, last_turn: observed.turn, last_step: 0 };
            let there =
                ObserveOptions { elsewhere: Some(elsewhere), along: other.along, also: &also, ..options.again() };
            let Some(result) = self.observe_other(&other, report, &session, there).transpose() else { continue };
            let result = result.and_then(|(workspace, observed)| {
                seen_ids.insert(workspace.record.id.clone());
                note(&workspace, observed.along)?;
                Ok(observed)
            });
            // A worktree may hold another one.
            others.extend(result.iter().flat_map(|observed| observed.worktrees.iter().map(found)));
            rest.push((other.path, result));
        }
        Ok((observed, rest))
    }

    /// Observes in another workspace than the one that the agent works in, by that one's own settings. None where the event
    /// does not concern it.
    fn observe_other(
        &self,
        other: &OtherWorkspace,
        report: &Report,
        session: &SessionId,
        mut options: ObserveOptions<'_>,
    ) -> Result<Option<(Workspace, Observed)>, ObserveError> {
        let mut engine = self.clone();
        if let Some(own) = options.settings_of.map(|settings_of| settings_of(&other.path)) {
            if own.is_reader {
                return Ok(None);
            }
            engine.environment = own.environment;
            options.automatic = own.automatic;
        }
        let is_another = |workspace: &Workspace| other.id.as_ref().is_some_and(|id| *id != workspace.record.id);
        if !other.is_gone {
            let opened = engine.open_or_init(&other.path).map_err(ObserveError::from);
            let opened =
                opened.inspect_err(|error| self.set_aside_unopened(&other.path, report, error, other.along))?;
            // Its folder went elsewhere, and what stands in its place is nothing that the session knows of.
            return if is_another(&opened) { Ok(None) } else { engine.observe_in(opened, report, &options).map(Some) };
        }
        // It went while a tool of the session was at work, which is a gap and the tool's doing; after that, nothing more
        // happens there than that what is open ends.
        let workspace = engine.open(&other.path)?;
        let is_at_work = workspace.store.open_steps()?.iter().any(|row| row.step.at.session == *session);
        let is_open = workspace.store.last_turn(session)?.is_some_and(|row| row.ending.is_none());
        if !is_at_work && !is_open {
            return Ok(None);
        }
        options.automatic &= is_at_work;
        options.along &= !is_at_work;
        engine.observe_in(workspace, report, &options).map(Some)
    }

    /// Observes in one workspace. Where its database was made anew in the meantime, as happens when several hooks meet
    /// a new folder at once, once more with the new one.
    fn observe_in(
        &self,
        mut workspace: Workspace,
        report: &Report,
        options: &ObserveOptions<'_>,
    ) -> Result<(Workspace, Observed), ObserveError> {
        const TIMES: usize = 4;
        let mut times = 0;
        loop {
            times += 1;
            match workspace.observe(report, options) {
                Err(CaptureError::Store(StoreError::Replaced)) if times < TIMES => {
                    let path = workspace.path().to_owned();
                    workspace = self.open(&path)?;
                }
                result => {
                    // Of all others the workspace has set aside what it could not record.
                    if let Err(error @ CaptureError::Store(StoreError::Replaced)) = &result {
                        let _ = self.set_gap_aside(workspace.path(), report, &error.to_string());
                    }
                    return Ok((workspace, result?));
                }
            }
        }
    }

    /// Sets an event aside whose store could not be opened. Where not even that works, the caller has the error.
    fn set_aside_unopened(&self, folder: &Path, report: &Report, error: &ObserveError, along: bool) {
        let _ = self.set_event_aside(folder, report, &error.to_string(), along);
    }

    /// What the other workspaces of a session know of an event's turn.
    pub(crate) fn elsewhere(&self, others: &[PathBuf], report: &Report, session: &SessionId) -> Option<Elsewhere> {
        let others: Vec<Workspace> = others.iter().filter_map(|path| self.open(path).ok()).collect();
        if others.is_empty() {
            return None;
        }
        let turns = others.iter().filter_map(|workspace| workspace.turn_for(report, session));
        let turn = turns.max_by_key(|turn| turn.number);
        let last = |workspace: &Workspace| Some(workspace.store.last_turn(session).ok()??.turn.number);
        let last_turn = others.iter().filter_map(last).max().unwrap_or(0);
        let number = turn.as_ref().map_or(last_turn, |turn| turn.number);
        let steps = |workspace: &Workspace| workspace.store.last_step_number(session, number).ok();
        let last_step = others.iter().filter_map(steps).max().unwrap_or(0);
        Some(Elsewhere { turn, step: None, last_turn, last_step })
    }

    /// The workspaces that a session works in.
    pub fn workspaces_of(&self, session: &SessionId) -> Vec<PathBuf> {
        self.home.workspaces_of(session).into_iter().map(|(_, path)| path).collect()
    }

    /// Whether a session is told something for the first time. Asking notes it.
    ///
    /// # Errors
    /// Where it cannot be noted, so that nobody knows.
    pub fn is_news(&self, session: &SessionId, what: &str) -> Result<bool, StoreError> {
        self.home.note_told(session, what)
    }

    /// The workspaces, other than the first, of the files that a tool names: those that are known, and the worktrees
    /// inside of one that is.
    fn workspaces_named(&self, report: &Report, first: &Path) -> Vec<PathBuf> {
        let (Event::BeforeTool(call) | Event::AfterTool(call) | Event::ToolFailed { call, .. }) = &report.event else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for path in call.paths.iter().flat_map(|path| written_by_name(path)) {
            let Some(parent) = path.parent().map(Path::to_owned) else { continue };
            // Most names lie where the agent works.
            let around = match parent.starts_with(first) {
                true => Some(first.to_owned()),
                false => self.home.around(&parent).map(|known| known.path),
            };
            let Some(around) = around else { continue };
            found.push(self.worktree_inside(&around, &parent).unwrap_or(around));
        }
        found
    }
}

impl From<StoreError> for ObserveError {
    fn from(error: StoreError) -> Self {
        Self::Capture(error.into())
    }
}

impl ObserveOptions<'_> {
    pub(crate) fn again(&self) -> ObserveOptions<'_> {
        ObserveOptions {
            automatic: self.automatic,
            deadline: self.deadline,
            count_turns: self.count_turns,
            embedded: self.embedded,
            elsewhere: None,
            place: None,
            settings_of: self.settings_of,
            along: false,
            also: &[],
        }
    }
}

/// A session of an agent that embeds piton.
///
/// ```no_run
/// use piton_engine::{Engine, Environment, Tool};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::new("/var/lib/piton".into(), Environment::default());
/// let mut workspace = engine.open_or_init("/src/project".as_ref())?;
/// let mut session = workspace.begin_session("my-agent", "run-1")?;
/// session.begin_turn("make the tests pass")?;
/// session.before_tool(&Tool::new("call-1", "write_file").names("src/main.rs"))?;
/// // … the tool writes …
/// session.after_tool("call-1")?;
/// session.end_turn()?;
/// # Ok(()) }
/// ```
pub struct LiveSession<'w> {
    workspace: &'w mut Workspace,
    agent: String,
    id: String,
    calls: Vec<ToolCall>,
}

/// A tool call of an agent that embeds piton.
#[derive(Clone, Debug, Default)]
pub struct Tool {
    call: ToolCall,
    names: Vec<PathBuf>,
}

impl Tool {
    /// A call of a tool, with the agent's own id for it.
    pub fn new(id: impl Into<String>, tool: impl Into<String>) -> Self {
        let tool = tool.into();
        let call = ToolCall { id: Some(id.into()), summary: tool.clone(), tool, ..ToolCall::default() };
        Self { call, names: Vec::new() }
    }

    /// Says that the tool writes this file: a path in the workspace, or an absolute one.
    #[must_use]
    pub fn names(mut self, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        self.call.summary = format!("{} {}", self.call.summary, path.display());
        self.names.push(path);
        self
    }

    /// Says that the tool runs this shell command.
    #[must_use]
    pub fn runs(mut self, command: impl Into<String>) -> Self {
        let command = command.into();
        self.call.summary = format!("{} {}", self.call.tool, command.lines().next().unwrap_or_default());
        self.call.command = Some(command);
        self
    }

    /// Says that it goes on after it has returned.
    #[must_use]
    pub fn in_background(mut self) -> Self {
        self.call.background = true;
        self
    }
}

impl Workspace {
    /// Begins a session, or goes on with one of the same id, and captures. It captures this workspace alone: worktrees inside
    /// of it are workspaces of their own, which [`Engine::observe`] finds and a session like this does not.
    ///
    /// # Errors
    /// Where it cannot be recorded.
    pub fn begin_session(&mut self, agent: &str, id: &str) -> Result<LiveSession<'_>, CaptureError> {
        let mut session =
            LiveSession { workspace: self, agent: agent.to_owned(), id: id.to_owned(), calls: Vec::new() };
        session.report(Event::SessionStarted { source: None })?;
        let (session_id, workspace) = (session.id(), &session.workspace);
        workspace.home.note_session(&session_id, &workspace.record.id, false)?;
        Ok(session)
    }

    /// The turn that a report belongs to, where this store knows it.
    fn turn_for(&self, report: &Report, session: &SessionId) -> Option<Turn> {
        let called = report.prompt_id.as_ref().and_then(|id| self.store.turn_called(session, id).ok()?);
        // A prompt that none of them knows begins a turn of its own.
        if called.is_none() && matches!(report.event, Event::Prompt { .. }) {
            return None;
        }
        called.or_else(|| self.store.last_turn(session).ok()?).map(|row| row.turn)
    }

    /// This workspace's id.
    pub fn id(&self) -> &WorkspaceId {
        &self.record.id
    }
}

impl LiveSession<'_> {
    /// The session's id, for targets such as `ID:t5`.
    pub fn id(&self) -> SessionId {
        SessionId::of(&self.agent, &self.id)
    }

    /// The workspace that it works in.
    pub fn workspace(&mut self) -> &mut Workspace {
        self.workspace
    }

    /// Begins a turn with the user's prompt, and captures.
    ///
    /// # Errors
    /// Where it cannot be recorded.
    pub fn begin_turn(&mut self, prompt: &str) -> Result<Observed, CaptureError> {
        self.report(Event::Prompt { text: prompt.to_owned() })
    }

    /// Captures before a tool runs, the files that it names first of all.
    ///
    /// # Errors
    /// Where it cannot be recorded.
    pub fn before_tool(&mut self, tool: &Tool) -> Result<Observed, CaptureError> {
        let mut call = tool.call.clone();
        call.paths = tool.names.iter().map(|path| self.workspace.path().join(path)).collect();
        self.calls.push(call.clone());
        self.report(Event::BeforeTool(call))
    }

    /// Captures after a tool has run.
    ///
    /// # Errors
    /// Where it cannot be recorded.
    pub fn after_tool(&mut self, id: &str) -> Result<Observed, CaptureError> {
        let call = self.ended(id);
        self.report(Event::AfterTool(call))
    }

    /// Captures after a tool has failed: it may have changed files all the same.
    ///
    /// # Errors
    /// Where it cannot be recorded.
    pub fn tool_failed(&mut self, id: &str, error: &str) -> Result<Observed, CaptureError> {
        let call = self.ended(id);
        self.report(Event::ToolFailed { call, error: error.to_owned(), interrupted: false })
    }

    /// Notes something that was said.
    ///
    /// # Errors
    /// Where it cannot be recorded.
    pub fn message(&mut self, role: &str, text: &str) -> Result<Observed, CaptureError> {
        self.report(Event::Message { role: role.to_owned(), text: text.to_owned() })
    }

    /// Ends the turn, and captures.
    ///
    /// # Errors
    /// Where it cannot be recorded.
    pub fn end_turn(&mut self) -> Result<Observed, CaptureError> {
        self.report(Event::TurnEnded { failed: false, message: None, background: false })
    }

    /// Ends the session.
    ///
    /// # Errors
    /// Where it cannot be recorded.
    pub fn end(mut self) -> Result<Observed, CaptureError> {
        self.report(Event::SessionEnded { reason: None })
    }

    fn ended(&mut self, id: &str) -> ToolCall {
        match self.calls.iter().position(|call| call.id.as_deref() == Some(id)) {
            Some(at) => self.calls.swap_remove(at),
            None => Tool::new(id, "unknown").call,
        }
    }

    fn report(&mut self, event: Event) -> Result<Observed, CaptureError> {
        let report = Report {
            agent: self.agent.clone(),
            session: self.id.clone(),
            cwd: Some(self.workspace.path().to_owned()),
            transcript: None,
            prompt_id: None,
            subagent: None,
            event,
        };
        self.workspace.observe(&report, &ObserveOptions { embedded: true, ..ObserveOptions::default() })
    }
}
