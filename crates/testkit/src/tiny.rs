//! An agent that is as unlike every real one as possible: whatever works with it does not depend on any of them.
//!
//! Its transcripts are plain text, all in one folder, `SESSION.log`:
//! ```text
//! # SESSION FOLDER
//! ? PROMPT-ID what the user says
//! ! what the agent says
//! ~            the user stopped it
//! ```

use std::cell::Cell;
use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use piton_agents::setup::Variable;
use piton_agents::transcript::{Copied, NewBranch, Said, Speaker, Survey, TranscriptTurn, TurnAt};
use piton_agents::{Agent, BadReport, Events, Reply, Transcripts};
use piton_engine::ObserveOptions;
use piton_engine::model::SessionId;
use piton_engine::model::event::{Event, Report, ToolCall};
use piton_engine::view::Observed;

use crate::World;

pub const TINY: Agent = Agent {
    name: "tiny",
    title: "Tiny",
    events: &Plain,
    transcripts: Some(&Logs),
    setup: None,
    state_folders: &[".tiny/logs"],
    shell_variables: &[],
};

struct Plain;

impl Events for Plain {
    fn parse(&self, _: &[u8]) -> Result<Report, BadReport> {
        Err(BadReport::NotAnObject)
    }

    fn is_reader(&self, tool: &str) -> bool {
        tool == "look"
    }

    fn reply(&self, _: &Reply) -> Vec<u8> {
        Vec::new()
    }

    fn time_limit(&self) -> Duration {
        Duration::from_secs(5)
    }

    fn belongings(&self, session: &str, transcript: &Path) -> Vec<PathBuf> {
        if Logs.names(session, transcript) { vec![transcript.to_owned()] } else { Vec::new() }
    }
}

struct Logs;

/// The lines, each with its offset.
fn lines(reader: &mut dyn BufRead) -> io::Result<Vec<(u64, String)>> {
    let (mut found, mut at) = (Vec::new(), 0);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        found.push((at, line.trim_end_matches('\n').to_owned()));
        at += line.len() as u64;
        line.clear();
    }
    Ok(found)
}

fn turn(number: u32, line: &str) -> Option<TranscriptTurn> {
    let (id, text) = line.strip_prefix("? ")?.split_once(' ')?;
    Some(TranscriptTurn { number, prompt_id: Some(id.to_owned()), uuid: None, text: text.to_owned(), at: None })
}

impl Transcripts for Logs {
    fn root(&self, home: Option<&Path>, _: &Variable<'_>) -> Option<PathBuf> {
        home.map(|home| home.join(".tiny/logs"))
    }

    fn names(&self, session: &str, file: &Path) -> bool {
        file.file_name().is_some_and(|name| name == &*format!("{session}.log"))
    }

    fn owns(&self, root: &Path, session: &str, file: &Path) -> bool {
        self.names(session, file) && file.parent() == Some(root)
    }

    fn place(&self, root: &Path, _: &str, session: &str) -> Option<PathBuf> {
        Some(root.join(format!("{session}.log")))
    }

    fn beside(&self, other: &Path, session: &str) -> Option<PathBuf> {
        Some(other.with_file_name(format!("{session}.log")))
    }

    fn new_session(&self, random: [u8; 16]) -> String {
        format!("tiny-{}", u64::from_le_bytes(random[..8].try_into().unwrap_or_default()))
    }

    fn resume_command(&self, session: &str) -> Option<Vec<String>> {
        session.starts_with("tiny-").then(|| vec!["tiny".to_owned(), "on".to_owned(), session.to_owned()])
    }

    fn turns(&self, part: &mut dyn BufRead, each: &mut dyn FnMut(TranscriptTurn)) -> io::Result<()> {
        let mut number = 0;
        for (_, line) in lines(part)? {
            if let Some(turn) = turn(number + 1, &line) {
                number += 1;
                each(turn);
            }
        }
        Ok(())
    }

    fn survey(&self, transcript: &mut dyn BufRead) -> io::Result<Survey> {
        let mut survey = Survey::default();
        for (offset, line) in lines(transcript)? {
            survey.length = offset + line.len() as u64 + 1;
            if let Some(cwd) = line.strip_prefix("# ").and_then(|rest| rest.split_once(' ')) {
                survey.cwd = Some(cwd.1.to_owned());
            }
            let after = survey.turns.len();
            survey.turns.extend(turn(after as u32 + 1, &line).map(|turn| TurnAt { turn, offset, after }));
        }
        Ok(survey)
    }

    fn prompt_at(&self, part: &mut dyn BufRead) -> io::Result<Option<String>> {
        Ok(lines(part)?.first().and_then(|(_, line)| turn(1, line)).map(|turn| turn.text))
    }

    fn said(&self, transcript: &mut dyn BufRead, each: &mut dyn FnMut(Said)) -> io::Result<()> {
        let mut number = 0;
        for (_, line) in lines(transcript)? {
            let prompt = turn(number + 1, &line);
            number += u32::from(prompt.is_some());
            let (speaker, text) = match (prompt, line.split_at_checked(2)) {
                (Some(turn), _) => (Speaker::User, turn.text),
                (None, Some(("! ", text))) => (Speaker::Assistant, text.to_owned()),
                (None, Some(("= ", text))) => (Speaker::Summary, text.to_owned()),
                _ => continue,
            };
            each(Said { turn: number, speaker, text, tool: None, at: None });
        }
        Ok(())
    }

    fn ends_interrupted(&self, part: &mut dyn BufRead) -> io::Result<bool> {
        Ok(lines(part)?.last().is_some_and(|(_, line)| line == "~"))
    }

    fn branch(&self, from: &mut dyn BufRead, to: &mut dyn Write, new: &NewBranch<'_>) -> io::Result<Copied> {
        let mut copied = Copied::default();
        let summary = new.summary.map(|summary| format!("= {}", summary.text.replace('\n', " ")));
        let replaced = new.summary.and_then(|summary| summary.replaces).unwrap_or(0);
        let header = lines(&mut from.take(replaced))?.into_iter().next();
        let mut all: Vec<String> = header.into_iter().map(|(_, line)| line).collect();
        let rest = lines(from)?.into_iter().map(|(_, line)| line);
        match replaced {
            0 => all.extend(rest.chain(summary)),
            _ => all.extend(summary.into_iter().chain(rest)),
        }
        for line in all {
            let line = match line.strip_prefix("# ").and_then(|rest| rest.split_once(' ')) {
                Some((_, cwd)) => format!("# {} {cwd}", new.id),
                None => line,
            };
            writeln!(to, "{line}")?;
            copied.lines += 1;
            copied.bytes += line.len() as u64 + 1;
        }
        Ok(copied)
    }
}

/// A session of it.
pub struct Tiny<'w> {
    world: &'w World,
    /// The agent's own id for its session.
    pub id: String,
    /// The folder of its transcript.
    pub folder: PathBuf,
    prompts: Cell<u32>,
}

impl<'w> Tiny<'w> {
    /// A session, which may already have a transcript.
    pub fn new(world: &'w World, id: &str) -> Self {
        Self { world, id: id.to_owned(), folder: world.base().join(".tiny/logs"), prompts: Cell::new(0) }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.join(format!("{}.log", self.id))
    }

    pub fn text(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap_or_default()
    }

    pub fn session(&self) -> SessionId {
        SessionId::of(TINY.name, &self.id)
    }

    /// Adds a line to the transcript.
    pub fn write(&self, line: &str) {
        std::fs::create_dir_all(&self.folder).expect("a folder for transcripts");
        let file = std::fs::File::options().create(true).append(true).open(self.path());
        let mut file = file.expect("a transcript");
        if file.metadata().expect("a file").len() == 0 {
            writeln!(file, "# {} {}", self.id, self.world.ws().display()).expect("a line");
        }
        writeln!(file, "{line}").expect("a line");
    }

    /// Reports an event of the turn with this id.
    pub fn tell(&self, prompt_id: &str, event: Event) -> Observed {
        let report = Report {
            agent: TINY.name.into(),
            session: self.id.clone(),
            cwd: Some(self.world.ws()),
            transcript: Some(self.path()),
            prompt_id: Some(prompt_id.to_owned()),
            subagent: None,
            event,
        };
        let options = ObserveOptions { embedded: true, ..ObserveOptions::default() };
        self.world.engine.observe(&report, &options).expect("a report is taken").0
    }

    /// A whole turn that writes one file.
    pub fn turn(&self, text: &str, path: &str, content: &str) {
        self.prompts.set(self.prompts.get() + 1);
        let id = format!("{}-{}", self.id, self.prompts.get());
        self.tell(&id, Event::Prompt { text: text.into() });
        self.write(&format!("? {id} {text}"));
        let call = ToolCall {
            id: Some(format!("{id}-call")),
            tool: "put".into(),
            summary: format!("put {path}"),
            paths: vec![self.world.path(path)],
            ..ToolCall::default()
        };
        self.tell(&id, Event::BeforeTool(call.clone()));
        self.world.write(path, content);
        self.tell(&id, Event::AfterTool(call));
        self.write(&format!("! wrote {path}"));
        self.tell(&id, Event::TurnEnded { failed: false, message: None, background: false });
    }
}
