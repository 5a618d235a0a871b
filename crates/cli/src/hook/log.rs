//! The hook's log: one line an event, in piton's home. It never fails, and it never holds what a person or a model
//! said.
//!
//! ```text
//! 2026-11-15T20:03:11Z claude-code before-tool 061f4666-9a84-… t3.2 23ms captured kmzqwxyl
//! ```

use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use piton_agents::{Event, Report};
use piton_engine::view::Observed;
use piton_engine::{Clock, SystemClock, own};
use piton_wording::escape::escape;
use rustix::fs::{CWD, OFlags, fstat, statat};

use crate::environment;

/// A log that reached this is put aside, in place of the one that was put aside before.
const ROTATED_AT: i64 = 1 << 20;
/// A line is cut here, so that one write takes all of it.
const LONGEST: usize = 2000;

/// What a line says before its outcome.
#[derive(Clone, Debug, Default)]
pub struct Line {
    agent: String,
    event: String,
    session: String,
    place: String,
}

impl Line {
    /// A line of which only the agent is known.
    pub fn new(agent: &str) -> Self {
        Self { agent: agent.to_owned(), ..Self::default() }
    }

    /// The line of a report.
    pub fn of(report: &Report) -> Self {
        let event = match &report.event {
            Event::SessionStarted { .. } => "session-started",
            Event::Prompt { .. } => "prompt",
            Event::BeforeTool(_) => "before-tool",
            Event::AfterTool(_) => "after-tool",
            Event::ToolsEnded => "tools-ended",
            Event::ToolFailed { .. } => "tool-failed",
            Event::TurnEnded { .. } => "turn-ended",
            Event::SessionEnded { .. } => "session-ended",
            Event::Compacting { .. } => "compacting",
            Event::SubagentStarted => "subagent-started",
            Event::SubagentEnded => "subagent-ended",
            Event::Message { .. } => "message",
            Event::Other { name } => name,
        };
        Self {
            agent: report.agent.clone(),
            event: event.to_owned(),
            session: report.session.clone(),
            place: String::new(),
        }
    }

    /// The same, when its place in the session is known.
    pub fn at(self, observed: &Observed) -> Self {
        let place = match observed.step {
            Some(step) => format!("t{}.{step}", observed.turn),
            None => format!("t{}", observed.turn),
        };
        Self { place, ..self }
    }
}

/// Where the log is.
pub fn path() -> Option<PathBuf> {
    environment::home().ok().map(|home| home.join("hook.log"))
}

/// Writes a line, where that can be done.
pub fn write(line: &Line, took: Duration, outcome: &str) {
    let Some(path) = path() else { return };
    let text = compose(line, took, outcome);
    if let Some(file) = open(&path) {
        append(file, &text);
    }
}

fn compose(line: &Line, took: Duration, outcome: &str) -> String {
    let now = jiff::Timestamp::from_millisecond(SystemClock.now().0).unwrap_or_default();
    let word = |text: &str| match text {
        "" => "-".to_owned(),
        // Words are told apart by spaces.
        text => escape(text).replace(' ', "_").chars().take(200).collect(),
    };
    let head = [&line.agent, &line.event, &line.session, &line.place].map(|text| word(text)).join(" ");
    let mut text = format!("{} {head} {}ms ", now.strftime("%Y-%m-%dT%H:%M:%SZ"), took.as_millis());
    text += &escape(outcome);
    text.truncate(text.floor_char_boundary(LONGEST));
    text.push('\n');
    text
}

#[expect(clippy::disallowed_types, reason = "the log is piton's own file")]
fn append(file: OwnedFd, text: &str) {
    let _ = std::fs::File::from(file).write_all(text.as_bytes());
}

/// Opens the log at its end. No symlink is followed and no pipe waited for: the folder is the user's own, and what is
/// in it may be anything.
fn open(path: &Path) -> Option<OwnedFd> {
    let file = match open_to_append(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            own::make_folders(path.parent()?).ok()?;
            open_to_append(path)
        }
        file => file,
    };
    let file = file.ok()?;
    let found = fstat(&file).ok()?;
    if found.st_size < ROTATED_AT {
        return Some(file);
    }
    // Another hook may have put it aside in the meantime.
    if statat(CWD, path, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|now| now.st_ino == found.st_ino) {
        let _ = rustix::fs::renameat(CWD, path, CWD, path.with_extension("log.1"));
    }
    open_to_append(path).ok()
}

#[expect(clippy::disallowed_types, reason = "the log is piton's own file")]
fn open_to_append(path: &Path) -> io::Result<OwnedFd> {
    let how = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = own::open_or_make(path, std::fs::File::options().append(true).mode(0o600).custom_flags(how))?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use rustix::fs::Mode;

    use super::*;

    fn text(outcome: &str) -> String {
        let line = Line { agent: "x y".into(), event: "prompt\n".into(), session: "s".into(), place: String::new() };
        compose(&line, Duration::from_millis(23), outcome)
    }

    #[test]
    fn a_line_is_one_line_of_bounded_length_whatever_is_in_it() {
        let line = text("captured \x1b[2J\nkmzq");
        let (time, rest) = line.split_once(' ').unwrap();
        assert!(time.len() == 20 && time.ends_with('Z'), "{time}");
        assert_eq!(rest, "x_y prompt\\n s - 23ms captured \\x1b[2J\\nkmzq\n");
        let long = text(&"é".repeat(5000));
        assert!(long.len() <= LONGEST + 1 && long.ends_with("é\n"));
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "tests make and read files of their own")]
    fn a_full_log_is_put_aside_and_a_link_or_a_pipe_is_left_alone() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("new/hook.log");
        append(open(&path).unwrap(), "one\n");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(&path, vec![b'x'; ROTATED_AT as usize]).unwrap();
        append(open(&path).unwrap(), "two\n");
        assert_eq!(std::fs::read(&path).unwrap(), b"two\n");
        assert_eq!(std::fs::metadata(scratch.path().join("new/hook.log.1")).unwrap().len(), ROTATED_AT as u64);
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink("/dev/full", &link).unwrap();
        assert!(open(&link).is_none());
        let pipe = scratch.path().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert!(open(&pipe).is_none());
    }
}
