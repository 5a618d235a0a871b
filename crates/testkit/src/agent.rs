//! An agent that reports to the engine, for tests of sessions.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;

use piton_engine::ObserveOptions;
use piton_engine::model::SessionId;
use piton_engine::model::event::{Event, Report, Subagent, ToolCall};
use piton_engine::view::{Observed, TurnView};

use crate::World;

pub struct Agent<'w> {
    pub world: &'w World,
    /// The agent's own id for its session.
    pub session: &'static str,
    /// Its working folder.
    pub folder: RefCell<PathBuf>,
    pub transcript: Option<PathBuf>,
    /// The subagent that reports.
    pub subagent: Option<&'static str>,
    calls: Cell<u32>,
}

impl<'w> Agent<'w> {
    pub fn new(world: &'w World, session: &'static str) -> Self {
        Self { world, session, folder: RefCell::new(world.ws()), transcript: None, subagent: None, calls: Cell::new(0) }
    }

    /// What it would report.
    pub fn report(&self, prompt_id: Option<&str>, event: Event) -> Report {
        Report {
            agent: "test".into(),
            session: self.session.into(),
            cwd: Some(self.folder.borrow().clone()),
            transcript: self.transcript.clone(),
            prompt_id: prompt_id.map(str::to_owned),
            subagent: self.subagent.map(|id| Subagent { id: id.into(), kind: "helper".into() }),
            event,
        }
    }

    pub fn tell(&self, event: Event) -> Observed {
        let options = ObserveOptions { embedded: true, ..ObserveOptions::default() };
        self.world.engine.observe(&self.report(None, event), &options).expect("a report is taken").0
    }

    /// The user says something.
    pub fn prompt(&self, text: &str) -> Observed {
        self.tell(Event::Prompt { text: text.into() })
    }

    pub fn call(&self, id: &str, tool: &str, paths: &[&str], background: bool) -> ToolCall {
        ToolCall {
            id: Some(id.into()),
            tool: tool.into(),
            summary: format!("{tool} {}", paths.join(" ")).trim().to_owned(),
            paths: paths.iter().map(|path| self.folder.borrow().join(path)).collect(),
            command: None,
            background,
            ..ToolCall::default()
        }
    }

    pub fn before(&self, id: &str, tool: &str, paths: &[&str]) -> Observed {
        self.tell(Event::BeforeTool(self.call(id, tool, paths, false)))
    }

    pub fn after(&self, id: &str) -> Observed {
        self.tell(Event::AfterTool(ToolCall { id: Some(id.into()), ..ToolCall::default() }))
    }

    pub fn end_turn(&self) -> Observed {
        self.tell(Event::TurnEnded { failed: false, message: Some("done".into()), background: false })
    }

    pub fn id(&self) -> SessionId {
        SessionId::of("test", self.session)
    }

    /// Oldest first.
    pub fn turns(&self) -> Vec<TurnView> {
        self.world.turns(Some(self.id()))
    }

    /// A whole turn of one step: a tool that names what it writes, and writes it.
    pub fn edits(&self, prompt: &str, paths: &[&str], write: impl FnOnce(&World)) {
        self.prompt(prompt);
        self.step("Edit", paths, write);
        self.end_turn();
    }

    /// One step of a turn that continues.
    pub fn step(&self, tool: &str, paths: &[&str], write: impl FnOnce(&World)) {
        let id = format!("{}-{}", self.session, self.calls.replace(self.calls.get() + 1));
        self.before(&id, tool, paths);
        write(self.world);
        self.after(&id);
    }

    /// A whole turn of one shell command, which does not say what it writes.
    pub fn runs(&self, prompt: &str, command: &str, work: impl FnOnce(&World)) {
        self.prompt(prompt);
        let id = format!("{}-{}", self.session, self.calls.replace(self.calls.get() + 1));
        let call = ToolCall { command: Some(command.into()), ..self.call(&id, "Bash", &[], false) };
        self.tell(Event::BeforeTool(call));
        work(self.world);
        self.after(&id);
        self.end_turn();
    }
}
