//! Sessions of a program that embeds piton: begin a session, a turn, before and after a tool.

use crate::capture::CaptureError;
use crate::observe::ObserveOptions;
use crate::view::Observed;
use crate::workspace::Workspace;
use piton_model::SessionId;
use piton_model::event::{Event, Report, ToolCall};
use std::path::PathBuf;

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
}

impl Workspace {
    /// Begins a session, or goes on with one of the same id, and captures. It captures this workspace alone: worktrees inside
    /// of it are workspaces of their own, which [`Engine::observe`](crate::Engine::observe) finds and a session like this does not.
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
