//! `piton run`: any command as a session of one turn.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use piton_agents::{Event, Report, ToolCall};
use piton_engine::model::SessionId;
use piton_engine::model::diff::Counts;
use piton_engine::model::session::Attended;
use piton_engine::view::{CheckpointView, Observed};
use piton_engine::{DiffOptions, Engine, EventPlace, ObserveOptions, ObservedElsewhere, OwnSettings};
use piton_wording::escape::{escape, escape_path};
use piton_wording::words::changes;
use piton_wording::{Code, Failure, call, flag, note, text};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::SIGINT;
use signal_hook::iterator::{Handle, Signals};

use crate::args::Global;
use crate::console::Console;
use crate::environment::{self, Surroundings};
use crate::report::report;
use crate::{agent_files, hook, settings};

/// Run a command as a session of one turn
///
/// Captures the workspace, runs the command in your terminal as if piton were not there, and captures again: so an agent
/// without hooks, or a script that you do not trust, can be taken back as a whole. The exit code is the command's own.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What to call the session
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Run the command even if the workspace cannot be captured first
    #[arg(long)]
    anyway: bool,
    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "CMD", value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  piton run -- aider --model sonnet
  piton run --name upgrade -- npm update
  piton run -- sh -c 'sed -i s/foo/bar/ src/*.py'

Exit codes:
  the command's own; 128 and the signal's number if one ended it
  125  piton could not capture the workspace, and nothing was run
  126  the command cannot be run
  127  there is no such command";

/// What the session's agent is called.
const AGENT: &str = "run";
/// As `env`, `timeout` and shells use them.
const OURS: u8 = 125;
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<ExitCode, Failure> {
    if console.is_json() {
        let failure = Failure::user(
            Code::ArgumentsClash,
            "the output of `piton run` is the command's own, so there is no document",
        );
        return Ok(ended(failure.hint(text![call("log").arg("--json"), " has the session"]), OURS, console));
    }
    let typed = args.command[0].as_os_str();
    let program = match find(typed) {
        Ok(program) => program,
        Err((failure, code)) => return Ok(ended(failure, code, console)),
    };
    let mut session = match Session::begin(args, global, console) {
        Ok(session) => Some(session),
        Err(failure) if args.anyway => {
            report(&failure, console);
            console.say(note("going on without a checkpoint"));
            None
        }
        Err(failure) => {
            let failure = failure.hint(text!["nothing was run; ", flag("--anyway"), " runs it without a way back"]);
            return Ok(ended(failure, OURS, console));
        }
    };
    let (code, how) = match pass_through(&program, &args.command) {
        Ok((status, attended)) => (code_of(status), How::Ended(status, attended)),
        Err(error) => {
            let failure =
                Failure::user(Code::CannotRun, format!("{} cannot be run: {error}", escape(&typed.to_string_lossy())));
            report(&failure, console);
            (CANNOT_RUN, How::NotRun(error))
        }
    };
    if let Some(session) = &mut session {
        session.end(how, console);
    }
    Ok(ExitCode::from(code))
}

fn ended(failure: Failure, code: u8, console: &mut Console) -> ExitCode {
    report(&failure, console);
    ExitCode::from(code)
}

/// How the command came to its end.
enum How {
    Ended(ExitStatus, Attended),
    NotRun(io::Error),
}

/// A session in the workspace that the command runs in, and in every worktree inside of it.
struct Session {
    engine: Engine,
    place: EventPlace,
    cwd: PathBuf,
    id: String,
    call: ToolCall,
    /// The state before the command in each workspace, the one that it runs in first.
    before: Vec<(PathBuf, CheckpointView)>,
}

impl Session {
    /// Captures, as an agent's prompt and tool do.
    fn begin(args: &Args, global: &Global, console: &mut Console) -> Result<Self, Failure> {
        let surroundings = Surroundings::read(global)?;
        let (cwd, place) = match &global.workspace {
            Some(_) => {
                let root = surroundings.folder()?;
                (root.clone(), EventPlace { root, left_out: None })
            }
            // The same rules as for an agent that begins here.
            None => (surroundings.here.clone(), surroundings.engine.event_place(&surroundings.here, &[])?),
        };
        if let Some(left_out) = &place.left_out {
            return Err(Failure::user(Code::LeftOut, hook::unprotected_note(left_out, &place.root)));
        }
        let (settings, mistakes) = settings::load_leniently(Some(&place.root));
        for mistake in mistakes {
            console.say(note(mistake));
        }
        let line = command_line(&args.command);
        let call = ToolCall {
            id: Some("run".into()),
            tool: "Run".into(),
            summary: format!("Run {}", line.lines().next().unwrap_or_default()).chars().take(120).collect(),
            command: Some(line.chars().take(4000).collect()),
            attended: Attended::Started,
            ..ToolCall::default()
        };
        let engine = environment::engine(Some(&settings))?;
        let mut begun = Self { engine, place, cwd, id: random_id()?, call: call.clone(), before: Vec::new() };
        let session = SessionId::of(AGENT, &begun.id);
        begun.must(Event::SessionStarted { source: None })?;
        if let Some(name) = &args.name {
            begun.engine.open(&begun.place.root)?.name_session(&session, name)?;
        }
        begun.before = begun.must(Event::Prompt { text: line })?;
        begun.must(Event::BeforeTool(call))?;
        Ok(begun)
    }

    /// Captures again, and says what changed. The command has run, so nothing here is a failure of it.
    fn end(&mut self, how: How, console: &mut Console) {
        let mut call = self.call.clone();
        if let How::Ended(_, attended) = how {
            call.attended = attended;
        }
        let (failed, event) = match how {
            How::Ended(status, _) if status.success() => (false, Event::AfterTool(call)),
            How::Ended(status, _) => {
                let interrupted = status.signal() == Some(SIGINT);
                (true, Event::ToolFailed { call, error: status.to_string(), interrupted })
            }
            How::NotRun(error) => (true, Event::ToolFailed { call, error: error.to_string(), interrupted: false }),
        };
        let after = self.observe(event);
        let ends =
            [Event::TurnEnded { failed, message: None, background: false }, Event::SessionEnded { reason: None }];
        for event in ends {
            // Said once, below.
            self.observe(event);
        }
        let mut has_changed = false;
        let mut is_missing = false;
        for (path, observed) in after {
            let is_first = path == self.place.root;
            let place = if is_first { String::new() } else { format!(" in {}", escape_path(&path)) };
            // Nobody stands in a folder that is gone.
            let is_here = is_first && path.is_dir();
            // A worktree that the command made has no state before it.
            let before = self.before.iter().find(|(before, _)| *before == path);
            let way_back = before.map(|(_, before)| {
                let rewind = piton_wording::call("rewind").arg(before.id.short());
                let rewind = if is_here { rewind } else { rewind.there(&path) };
                format!(" · {} takes it back", console.talk.surface.command(&rewind))
            });
            let way_back = way_back.unwrap_or_default();
            let why = match observed {
                Ok(Observed { checkpoint: Some(checkpoint), .. }) => {
                    // Somebody else may have captured while it ran, so the last capture alone tells too little.
                    let since = before.and_then(|(_, before)| self.changed(&path, before, &checkpoint));
                    let counts = since.unwrap_or(checkpoint.changes);
                    if !counts.is_empty() {
                        has_changed = true;
                        let what = changes(&counts);
                        console.say(text!["piton: ", what, place, way_back]);
                    }
                    continue;
                }
                Ok(Observed { gap, .. }) => gap.unwrap_or_default(),
                Err(error) => error.to_string(),
            };
            is_missing = true;
            console.say(note(text!["what the command changed", place, " was not captured: ", why, way_back]));
        }
        if !has_changed && !is_missing {
            console.say("piton: no changes");
        }
    }

    /// What changed in a workspace between two checkpoints; none where that cannot be told.
    fn changed(&self, path: &Path, from: &CheckpointView, to: &CheckpointView) -> Option<Counts> {
        let (from, to) = (Some((&from.id).into()), Some((&to.id).into()));
        let options = DiffOptions { from, to, names_only: true, ..DiffOptions::default() };
        Some(self.engine.open(path).ok()?.diff(&options).ok()?.changes)
    }

    /// Observes, and fails where anything that the command may change is not captured.
    fn must(&self, event: Event) -> Result<Vec<(PathBuf, CheckpointView)>, Failure> {
        let mut captured = Vec::new();
        for (path, observed) in self.observe(event) {
            let observed = observed?;
            match (observed.checkpoint, observed.gap) {
                (_, Some(reason)) => return Err(Failure::user(Code::NotCaptured, reason)),
                (Some(checkpoint), None) => captured.push((path, checkpoint)),
                (None, None) => return Err(Failure::bug("a capture made no checkpoint")),
            }
        }
        Ok(captured)
    }

    /// What came of an event in each workspace, the one that the command runs in first.
    fn observe(&self, event: Event) -> Vec<ObservedElsewhere> {
        let report = Report {
            agent: AGENT.to_owned(),
            session: self.id.clone(),
            cwd: Some(self.cwd.clone()),
            transcript: None,
            prompt_id: None,
            subagent: None,
            event,
        };
        let settings_of = |other: &Path| OwnSettings {
            environment: environment::environment(Some(&settings::load_leniently(Some(other)).0)),
            automatic: true,
            is_reader: false,
        };
        let options = ObserveOptions {
            embedded: true,
            place: Some(&self.place),
            settings_of: Some(&settings_of),
            ..ObserveOptions::default()
        };
        let (first, others) = self.engine.observe_everywhere(&report, &options);
        [(self.place.root.clone(), first)].into_iter().chain(others).collect()
    }
}

/// The command as somebody would type it.
fn command_line(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    shlex::try_join(words.iter().map(|word| &**word)).unwrap_or_else(|_| words.join(" "))
}

fn random_id() -> Result<String, Failure> {
    // The name of a scratch file is as random as any, and this room has no dice of its own.
    let name = tempfile::Builder::new().prefix("").rand_bytes(12).make(|path| Ok(path.to_owned()));
    let name =
        name.map_err(|error| Failure::user(Code::CannotRead, format!("no random number can be had: {error}")))?;
    Ok(name.as_file().file_name().unwrap_or_default().to_string_lossy().into_owned())
}

/// The program that a name means; else why not, and the exit code that shells have for it.
fn find(name: &OsStr) -> Result<PathBuf, (Failure, u8)> {
    let shown = escape(&name.to_string_lossy()).into_owned();
    let missing = || {
        (
            Failure::user(Code::CannotRun, format!("there is no command `{shown}`")).hint("nothing was captured"),
            NOT_FOUND,
        )
    };
    if name.is_empty() {
        return Err(missing());
    }
    if !name.as_encoded_bytes().contains(&b'/') {
        return agent_files::in_path(&name.to_string_lossy()).ok_or_else(missing);
    }
    let path = Path::new(name);
    match (path.exists(), agent_files::is_program(path)) {
        (_, true) => Ok(path.to_owned()),
        (true, false) => {
            let failure = Failure::user(
                Code::CannotRun,
                format!("`{shown}` cannot be run: it is not a program, or not one of yours"),
            );
            Err((failure.hint("`chmod +x` makes a script a program; nothing was captured"), CANNOT_RUN))
        }
        (false, _) => Err(missing()),
    }
}

/// What a terminal sends to both processes when somebody types Ctrl-C or Ctrl-\: the command's to decide on, and to get
/// once.
const TYPED: [Signal; 2] = [Signal::INT, Signal::QUIT];
/// What is sent to this process is meant for the command. Not among them: those of job control and of children, the
/// faults of this very process, and SIGPIPE, which this process ignores.
const PASSED_ON: [Signal; 12] = [
    Signal::HUP,
    Signal::TERM,
    Signal::USR1,
    Signal::USR2,
    Signal::ALARM,
    Signal::VTALARM,
    Signal::PROF,
    Signal::IO,
    Signal::URG,
    Signal::WINCH,
    Signal::XCPU,
    Signal::XFSZ,
];
#[cfg(target_os = "linux")]
const OF_THIS_SYSTEM: [Signal; 2] = [Signal::POWER, Signal::STKFLT];
#[cfg(not(target_os = "linux"))]
const OF_THIS_SYSTEM: [Signal; 0] = [];

/// Runs it with this terminal. What is typed to end it (Ctrl-C) goes to both processes, and is the command's to decide
/// on; what is sent to this one alone (`kill`) is passed on: a signal that ended this process would leave the command
/// at work unobserved.
fn pass_through(program: &Path, command: &[OsString]) -> io::Result<(ExitStatus, Attended)> {
    use std::os::unix::process::CommandExt;
    let mut listening = Signals::new(not_ignored(TYPED.into_iter().chain(PASSED_ON).chain(OF_THIS_SYSTEM)))?;
    let handle = listening.handle();
    // Handlers do not survive the start of another program, so the command has signals as they were.
    let mut child = std::process::Command::new(program).arg0(&command[0]).args(&command[1..]).spawn()?;
    let pid = Pid::from_child(&child);
    let passing = std::thread::spawn(move || {
        for signal in listening.forever() {
            let passed = Signal::from_named_raw(signal);
            if let Some(passed) = passed.filter(|signal| !TYPED.contains(signal) || !may_be_typed()) {
                let _ = kill_process(pid, passed);
            }
        }
    });
    let talk = Talk::listen();
    let status = wait(&mut child, &handle);
    let _ = passing.join();
    Ok((status?, talk.end()))
}

/// Whether a command talks with the user: it takes single keys from the terminal, as editors, shells and agents do.
struct Talk {
    is_over: Arc<AtomicBool>,
    has_talked: Arc<AtomicBool>,
}

impl Talk {
    fn listen() -> Self {
        /// Whoever waits for keys does so for longer than this.
        const PAUSE: Duration = Duration::from_millis(100);
        let talk = Self { is_over: Arc::default(), has_talked: Arc::default() };
        let takes_lines = || {
            let mode = rustix::termios::tcgetattr(io::stdin()).ok()?;
            Some(mode.local_modes.contains(rustix::termios::LocalModes::ICANON))
        };
        if takes_lines() == Some(true) {
            let (is_over, has_talked) = (talk.is_over.clone(), talk.has_talked.clone());
            // Nobody waits for it: the command's end is not to be late for its sake.
            std::thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) && !has_talked.load(Ordering::Relaxed) {
                    has_talked.fetch_or(takes_lines() == Some(false), Ordering::Relaxed);
                    std::thread::sleep(PAUSE);
                }
            });
        }
        talk
    }

    fn end(self) -> Attended {
        self.is_over.store(true, Ordering::Relaxed);
        if self.has_talked.load(Ordering::Relaxed) { Attended::Interactive } else { Attended::Started }
    }
}

/// Whether somebody at a terminal can have typed a signal: it then went to the command as well. Without a terminal, or in
/// the background, somebody sent it to this process alone.
fn may_be_typed() -> bool {
    use rustix::fs::{Mode, OFlags, open};
    let terminal = open("/dev/tty", OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty());
    let foreground = terminal.and_then(|terminal| rustix::termios::tcgetpgrp(&terminal));
    foreground.is_ok_and(|group| group == rustix::process::getpgrp())
}

fn wait(child: &mut Child, listening: &Handle) -> io::Result<ExitStatus> {
    let status = child.wait();
    // From here on its number may be another process's; and the capture that follows is not to be cut off by an
    // impatient Ctrl-C.
    listening.close();
    status
}

/// Signals that this process was not started to ignore, as `nohup` does: those the command must go on ignoring.
fn not_ignored(signals: impl Iterator<Item = Signal>) -> Vec<i32> {
    let ignored = piton_engine::ignored_signals().unwrap_or(0);
    signals.map(Signal::as_raw).filter(|signal| ignored & (1 << (signal - 1)) == 0).collect()
}

fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(i32::from(OURS));
    u8::try_from(code).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_one_that_a_shell_reads_the_same() {
        let words = ["sh", "-c", "echo 'a b' > $x", ""].map(OsString::from);
        let line = command_line(&words);
        assert_eq!(shlex::split(&line).unwrap(), ["sh", "-c", "echo 'a b' > $x", ""]);
    }

    #[test]
    fn a_random_id_can_stand_in_a_files_name_and_is_another_each_time() {
        let (one, two) = (random_id().unwrap(), random_id().unwrap());
        assert!(one.len() == 12 && one.bytes().all(|b| b.is_ascii_alphanumeric()), "{one}");
        assert_ne!(one, two);
    }
}
