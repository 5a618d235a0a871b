//! A simulated Claude Code that writes a transcript like the real one, as far as piton reads it, and reports what it
//! does.

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::path::PathBuf;

use piton_agents::claude_code::{places, turns};
use piton_engine::ObserveOptions;
use piton_engine::model::SessionId;
use piton_engine::model::event::{Event, Report, ToolCall};
use piton_engine::view::{Observed, Told};
use serde_json::{Value, json};

use crate::World;

/// One session of it.
pub struct Claude<'w> {
    pub world: &'w World,
    /// The agent's own id for its session.
    pub id: String,
    /// The folder that it works in.
    pub place: PathBuf,
    prompts: Cell<u32>,
    lines: Cell<u32>,
    last: RefCell<Option<String>>,
}

impl<'w> Claude<'w> {
    /// A session with an id of the agent's form that ends in a number.
    pub fn new(world: &'w World, number: u32) -> Self {
        Self::resumed(world, &format!("11111111-2222-4333-8444-{number:012}"))
    }

    /// A session that may already have a transcript, as with `claude --resume`.
    pub fn resumed(world: &'w World, id: &str) -> Self {
        Self::resumed_in(world, id, world.ws())
    }

    /// The same in another folder, as that of a fork.
    pub fn resumed_in(world: &'w World, id: &str, place: PathBuf) -> Self {
        let (prompts, lines, last) = (Cell::new(0), Cell::new(0), RefCell::new(None));
        let claude = Self { world, id: id.to_owned(), place, prompts, lines, last };
        let uuid = claude.lines().iter().rev().find_map(|line| line["uuid"].as_str().map(str::to_owned));
        claude.last.replace(uuid);
        claude
    }

    /// The folder of its transcripts.
    pub fn folder(&self) -> PathBuf {
        let name = places::project_folder(&self.place.to_string_lossy()).expect("a short path");
        self.world.base().join(".claude/projects").join(name)
    }

    pub fn path(&self) -> PathBuf {
        self.folder().join(format!("{}.jsonl", self.id))
    }

    /// The transcript's lines; empty if there is no transcript.
    pub fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path()).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
    }

    /// The prompts in its transcript.
    pub fn prompts(&self) -> Vec<String> {
        let mut found = Vec::new();
        let text = std::fs::read(self.path()).unwrap_or_default();
        turns::turns(&text[..], |turn| found.push(turn.text)).expect("a transcript is read");
        found
    }

    pub fn session(&self) -> SessionId {
        SessionId::of("claude-code", &self.id)
    }

    /// Adds a line to the transcript, in the chain of those before it.
    pub fn write(&self, kind: &str, more: Value) {
        let number = self.lines.replace(self.lines.get() + 1);
        let uuid = format!("{}-{number}", self.id);
        let mut line = json!({
            "parentUuid": self.last.borrow().clone(), "isSidechain": false, "type": kind, "uuid": uuid,
            "sessionId": self.id, "cwd": self.place, "version": "2.1.325",
            "timestamp": format!("2026-11-15T12:{:02}:{:02}.000Z", number / 60 % 60, number % 60),
        });
        let all = line.as_object_mut().expect("an object");
        all.extend(more.as_object().expect("an object").clone());
        self.last.replace(Some(uuid));
        std::fs::create_dir_all(self.folder()).expect("a folder");
        let file = std::fs::File::options().create(true).append(true).open(self.path());
        writeln!(file.expect("a transcript"), "{line}").expect("a line");
    }

    /// Reports as its hooks would.
    pub fn tell(&self, event: Event) -> Observed {
        let report = Report {
            agent: "claude-code".into(),
            session: self.id.clone(),
            cwd: Some(self.place.clone()),
            transcript: Some(self.path()),
            prompt_id: (self.prompts.get() > 0).then(|| self.prompt_id()),
            subagent: None,
            event,
        };
        let options = ObserveOptions { embedded: true, ..ObserveOptions::default() };
        self.world.engine.observe(&report, &options).expect("a report is taken").0
    }

    fn prompt_id(&self) -> String {
        format!("{}-p{}", self.id, self.prompts.get())
    }

    /// The user says something; returns what the agent is told with it.
    pub fn prompt(&self, text: &str) -> Option<Told> {
        self.prompts.set(self.prompts.get() + 1);
        let observed = self.tell(Event::Prompt { text: text.into() });
        self.write("user", json!({"promptId": self.prompt_id(), "message": {"role": "user", "content": text}}));
        observed.told
    }

    /// Starts a tool call.
    pub fn calls(&self, tool: &str, paths: &[&str]) -> ToolCall {
        let id = format!("{}-c{}", self.id, self.lines.get());
        let input = json!({"file_path": paths.first().map(|path| self.place.join(path))});
        let content = json!([{"type": "tool_use", "id": id, "name": tool, "input": input}]);
        self.write("assistant", json!({"message": {"role": "assistant", "content": content}}));
        let call = ToolCall {
            id: Some(id),
            tool: tool.into(),
            summary: format!("{tool} {}", paths.join(" ")).trim().to_owned(),
            paths: paths.iter().map(|path| self.place.join(path)).collect(),
            ..ToolCall::default()
        };
        self.tell(Event::BeforeTool(call.clone()));
        call
    }

    /// The tool has run.
    pub fn called(&self, call: ToolCall) {
        let content = json!([{"type": "tool_result", "tool_use_id": call.id, "content": "ok"}]);
        self.tell(Event::AfterTool(call));
        self.write("user", json!({"promptId": self.prompt_id(), "message": {"role": "user", "content": content}}));
    }

    /// The turn ends with an answer.
    pub fn answers(&self, text: &str) {
        let content = json!([{"type": "text", "text": text}]);
        self.write("assistant", json!({"message": {"role": "assistant", "content": content}}));
        self.tell(Event::TurnEnded { failed: false, message: Some(text.into()), background: false });
    }

    /// A whole turn in which a tool names what it writes, and writes it.
    pub fn edits(&self, prompt: &str, paths: &[&str], write: impl FnOnce(&World)) {
        self.prompt(prompt);
        let call = self.calls("Edit", paths);
        write(self.world);
        self.called(call);
        self.answers("done");
    }

    /// A whole turn without tools.
    pub fn talks(&self, prompt: &str) {
        self.prompt(prompt);
        self.answers("well");
    }
}
