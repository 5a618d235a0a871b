//! Claude Code: its hooks, its settings file, its command files, its transcripts and their branches.
//!
//! Everything here was observed in versions 2.1.197 and 2.1.325 and is tested on what those versions sent. Its formats
//! grow: unknown events, fields, tools and kinds of lines are normal and never an error.

pub mod branch;
pub mod command;
pub mod hooks;
mod lines;
mod members;
pub mod places;
mod rehearsal;
pub mod said;
pub mod settings;
mod status_line;
pub mod summary;
pub mod survey;
pub mod tools;
pub mod turns;

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use piton_model::Timestamp;

use crate::agent::Agent;
use crate::event::{BadReport, Events, Reply, Report};
use crate::setup::{BadSettings, Installed, SettingsFiles, Setup, StatusLine, Variable};
use crate::transcript::{Copied, NewBranch, Said, Survey, TranscriptTurn, Transcripts, uuid};
use settings::HookCommand;
use summary::Summary;

/// As in `piton hook` and `piton setup`.
pub const NAME: &str = "claude-code";

pub const AGENT: Agent = Agent {
    name: NAME,
    title: "Claude Code",
    events: &Hooks,
    transcripts: Some(&Projects),
    setup: Some(&SettingsFile),
    // Transcripts, its own copies of edited files, plans, shells.
    state_folders: &[
        ".claude/projects",
        ".claude/file-history",
        ".claude/todos",
        ".claude/tasks",
        ".claude/shell-snapshots",
        ".claude/session-env",
        ".claude/debug",
    ],
    shell_variables: &["CLAUDECODE"],
};

/// Prefix of what Claude Code tells the model about a background task that ended.
const TASK_NOTIFICATION: &str = "<task-notification>";

const FILES: SettingsFiles = SettingsFiles {
    folder: ".claude",
    variable: "CLAUDE_CONFIG_DIR",
    user: "settings.json",
    project: &["settings.json", "settings.local.json"],
    off_switch: settings::OFF_SWITCH,
    command: command::FILE,
};

struct Hooks;

impl Events for Hooks {
    fn parse(&self, stdin: &[u8]) -> Result<Report, BadReport> {
        hooks::parse(stdin)
    }

    fn is_reader(&self, tool: &str) -> bool {
        tools::is_reader(tool)
    }

    fn reply(&self, reply: &Reply) -> Vec<u8> {
        hooks::reply(reply)
    }

    /// Less than the timeout that `piton setup` writes.
    fn time_limit(&self) -> Duration {
        Duration::from_secs(u64::from(settings::TIMEOUT) - 5)
    }

    fn belongings(&self, session: &str, transcript: &Path) -> Vec<PathBuf> {
        if !places::looks_like_transcript(session, transcript) {
            return Vec::new();
        }
        let beside = places::belongings(transcript);
        std::iter::once(transcript.to_owned()).chain(beside).collect()
    }
}

/// `projects/-the-folder/SESSION.jsonl`.
struct Projects;

impl Transcripts for Projects {
    fn root(&self, home: Option<&Path>, variable: &Variable<'_>) -> Option<PathBuf> {
        Some(SettingsFile.user_folder(home, variable)?.join("projects"))
    }

    fn names(&self, session: &str, file: &Path) -> bool {
        file.file_name().is_some_and(|name| name == &*places::file_name(session))
    }

    fn owns(&self, root: &Path, session: &str, file: &Path) -> bool {
        let folder = file.parent().and_then(Path::parent);
        branch::is_session_id(session) && self.names(session, file) && folder == Some(root)
    }

    fn place(&self, root: &Path, cwd: &str, session: &str) -> Option<PathBuf> {
        Some(root.join(places::project_folder(cwd)?).join(places::file_name(session)))
    }

    fn beside(&self, other: &Path, session: &str) -> Option<PathBuf> {
        Some(other.parent()?.join(places::file_name(session)))
    }

    fn resume_command(&self, session: &str) -> Option<Vec<String>> {
        branch::is_session_id(session).then(|| ["claude", "--resume", session].map(String::from).into())
    }

    fn resume_inside(&self, session: &str) -> Option<String> {
        branch::is_session_id(session).then(|| format!("/resume {session}"))
    }

    fn turns(&self, part: &mut dyn BufRead, each: &mut dyn FnMut(TranscriptTurn)) -> io::Result<()> {
        turns::turns(part, each).map(drop)
    }

    fn survey(&self, transcript: &mut dyn BufRead) -> io::Result<Survey> {
        survey::survey(transcript)
    }

    fn prompt_at(&self, turn: &mut dyn BufRead) -> io::Result<Option<String>> {
        survey::prompt_at(turn)
    }

    fn said(&self, transcript: &mut dyn BufRead, each: &mut dyn FnMut(Said)) -> io::Result<()> {
        said::said(transcript, each)
    }

    fn ends_interrupted(&self, part: &mut dyn BufRead) -> io::Result<bool> {
        survey::ends_interrupted(part)
    }

    fn interrupted_at(&self, part: &mut dyn BufRead) -> io::Result<Option<Timestamp>> {
        Ok(survey::interruption(part)?.flatten())
    }

    fn branch(&self, from: &mut dyn BufRead, mut to: &mut dyn Write, new: &NewBranch<'_>) -> io::Result<Copied> {
        let Some(given) = &new.summary else { return branch::copy(from, &mut to, new.id) };
        let uuids = given.random.map(uuid);
        let summary = Summary { text: given.text, uuids: [&uuids[0], &uuids[1]], at: given.at };
        match given.replaces {
            Some(replaced) => summary::copy_with_summary_before(from, replaced, &mut to, new.id, &summary),
            None => summary::copy_with_summary_after(from, &mut to, new.id, &summary),
        }
    }
}

struct SettingsFile;

impl Setup for SettingsFile {
    fn files(&self) -> &'static SettingsFiles {
        &FILES
    }

    fn events(&self) -> &'static [&'static str] {
        &settings::EVENTS
    }

    fn hook_command(&self, program: &Path) -> Result<String, BadSettings> {
        HookCommand::new(program).text()
    }

    fn install(&self, text: &str, program: &Path) -> Result<String, BadSettings> {
        settings::install(text, &HookCommand::new(program))
    }

    fn remove(&self, text: &str) -> Result<String, BadSettings> {
        settings::remove(text)
    }

    fn put_status_line(&self, text: &str, program: &Path) -> Option<Result<StatusLine, BadSettings>> {
        Some(status_line::put(text, program))
    }

    fn take_status_line(&self, text: &str) -> Result<String, BadSettings> {
        status_line::take(text)
    }

    fn installed(&self, text: &str) -> Result<Installed, BadSettings> {
        settings::installed(text)
    }

    fn rehearsal(&self, session: &str, folder: &Path, file: &Path) -> [Vec<String>; 2] {
        rehearsal::reports(session, folder, file)
    }
}
