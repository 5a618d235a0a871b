//! `/piton …` typed inside an agent: the command is run as in a terminal, and what it prints is the answer.
//!
//! It runs in a process of its own. A rewind that takes long must not end with the hook, which an agent may end when
//! it likes: the process goes on, and the answer says so.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use piton_agents::{Reply, Report};
use piton_engine::Engine;
use piton_engine::model::SessionId;
use piton_wording::escape::{escape, quoted};

use super::{INSIDE, Outcome, VARIABLE};
use crate::environment;

/// How long an answer may take: less than any agent gives a hook of piton's.
pub const AT_MOST: Duration = Duration::from_secs(25);
/// What is longer is read in a terminal.
const LONGEST: usize = 8000;

/// The commands that can be typed, with the flags that stand for a person who is asked.
const COMMANDS: [(&str, &[&str]); 16] = [
    ("log", &[]),
    ("status", &[]),
    ("changes", &[]),
    ("sessions", &[]),
    ("show", &[]),
    ("diff", &["--stat"]),
    ("blame", &[]),
    ("search", &[]),
    ("checkpoint", &[]),
    ("annotate", &[]),
    ("undo", &["--yes"]),
    // Whoever types it has seen no plan: what others did is taken from them only on demand.
    ("rewind", &["--careful"]),
    ("redo", &["--yes"]),
    ("ops", &[]),
    // `accept` asks nobody in here: the user typed it.
    ("rules", &["--yes"]),
    ("help", &[]),
];

/// Those that write files or agree to rules, which is not done under an agent at work.
const WRITERS: [&str; 4] = ["undo", "rewind", "redo", "rules"];

/// Flags that say themselves how a command goes.
const HOW: [&str; 4] = ["--preview", "--yes", "-y", "--careful"];

/// Rewinds workspaces that nobody sees in here.
const ALL_WORKSPACES: &str = "--all-workspaces";

const HELP: &str = "\
/piton undo                takes back the last turn and keeps what you did since
/piton undo last 2         the last two changes; also t3, t3.2, 4 7 (numbers of changes), all, --path src
/piton undo t3 --preview   what that would change
/piton rewind t5           files as they were just before turn 5 (t5.2: before its second step);
                           --scope both: with a branch of the conversation to resume
/piton redo                takes the last undo or rewind back
/piton log                 what happened, turn by turn
/piton changes             every change of this session, numbered
/piton diff                what changed since the last checkpoint
/piton checkpoint NAME     a checkpoint with a name
/piton rules               changed rules that wait for your word; `/piton rules accept` agrees
Also: blame, ops, status, show, sessions, search, annotate. Everything else is for a terminal: piton --help";

/// Runs what was typed after `/piton`.
pub fn answer(engine: &Engine, typed: &str, report: &Report, cwd: &Path, root: &Path, until: Instant) -> Outcome {
    let Some(words) = shlex::split(typed) else {
        return (Reply::Answer("piton: a quote is not closed; nothing was done".into()), "answered nothing".into());
    };
    let Some(verb) = words.first() else { return (Reply::Answer(HELP.into()), "answered help".into()) };
    let Some((verb, usual)) = COMMANDS.into_iter().find(|(name, _)| name == verb) else {
        let text = format!("piton: `{}` cannot be used in here; nothing was done\n\n{HELP}", escape(verb));
        return (Reply::Answer(text), "answered help".into());
    };
    if verb == "rewind" && words.iter().any(|word| word == ALL_WORKSPACES) {
        let text = format!("piton: `{ALL_WORKSPACES}` is for a terminal, which shows the plan first; nothing was done");
        return (Reply::Answer(text), "answered nothing".into());
    }
    let session = SessionId::of(&report.agent, &report.session);
    let arguments = arguments(verb, &words[1..], usual, root);
    if WRITERS.contains(&verb) {
        // Who can type has an agent that waits: its turn is over, whether or not it said so, in every workspace that it
        // works in. What goes wrong here the command itself meets again.
        let elsewhere = engine.workspaces_of(&session).into_iter().filter(|path| path != root);
        for path in std::iter::once(root.to_owned()).chain(elsewhere) {
            let _ = engine.open(&path).map(|mut workspace| workspace.prompted(&session, report.prompt_id.as_deref()));
        }
    }
    let text = match run(verb, &arguments, &session, cwd, until) {
        Ok(text) => as_typed(&text, &session, root),
        Err(error) => format!("piton: the command cannot be run: {error}"),
    };
    (Reply::Answer(text), format!("answered {verb}"))
}

/// What was typed, with the flags that stand for a person who is asked, and with the workspace that it is about.
fn arguments(verb: &str, words: &[String], usual: &[&str], root: &Path) -> Vec<OsString> {
    let is_said = |flag: &str| words.iter().any(|word| word == flag);
    let is_given = |flag: &str| words.iter().any(|word| word == flag || word.starts_with(&format!("{flag}=")));
    let is_asked_otherwise = |flag: &str| {
        is_said(flag) || is_said("--preview") || (HOW.contains(&flag) && HOW.iter().any(|how| is_said(how)))
    };
    let mut arguments: Vec<OsString> = Vec::with_capacity(words.len());
    if verb != "help" && !is_given("--workspace") {
        arguments.extend(["--workspace".into(), root.into()]);
    }
    arguments.extend(usual.iter().filter(|flag| !is_asked_otherwise(flag)).map(OsString::from));
    if verb == "rewind" && !is_given("--scope") {
        // Who types it goes on right here, so the conversation goes back only on demand.
        arguments.push("--scope=code".into());
    }
    arguments.extend(words.iter().map(OsString::from));
    arguments
}

/// What an answer tells to type is typed in here, where a turn is one of this session. Contents and paths are set in from the
/// line's beginning, and stay as they are.
fn as_typed(printed: &str, session: &SessionId, root: &Path) -> String {
    let here = format!(" --workspace {}", quoted(root));
    let line = |line: &str| {
        if line.starts_with(' ') {
            return line.to_owned();
        }
        let mut line = line.replace(&format!(" --session {session}"), "").replace(&format!("{session}:t"), "t");
        // In here it goes without saying.
        line = line.replace(" --scope code", "").replace(&here, "");
        for (verb, _) in COMMANDS {
            line = line.replace(&format!("`piton {verb}"), &format!("`/piton {verb}"));
        }
        line
    };
    printed.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn run(verb: &str, arguments: &[OsString], session: &SessionId, cwd: &Path, until: Instant) -> std::io::Result<String> {
    let (mut output, input) = std::io::pipe()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(verb).args(arguments).current_dir(cwd);
    // Turns, changes and the last turn are those of the session in which they are typed.
    command.env(INSIDE, session.as_str());
    environment::typed_by_user(&mut command);
    command.env("NO_COLOR", "1").env_remove("CLICOLOR_FORCE").env("COLUMNS", "100").env(VARIABLE, "off");
    // One pipe for both, so that the lines come in their order; a group of its own, so that it outlives this process.
    command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input).process_group(0);
    let child = command.spawn();
    // The command holds the writing ends of the pipe.
    drop(command);
    let mut child = child?;
    let (done, is_done) = channel();
    std::thread::Builder::new().spawn(move || {
        let mut bytes = Vec::new();
        // More than is shown, since a character has up to four bytes.
        let _ = output.by_ref().take(4 * LONGEST as u64 + 4).read_to_end(&mut bytes);
        let _ = std::io::copy(&mut output, &mut std::io::sink());
        let _ = done.send(bytes);
    })?;
    let printed = match is_done.recv_timeout(until.saturating_duration_since(Instant::now())) {
        Ok(printed) => printed,
        Err(RecvTimeoutError::Timeout) => {
            return Ok(format!("piton: `{verb}` is still at work, and goes on; `/piton log` shows when it is done"));
        }
        Err(RecvTimeoutError::Disconnected) => Vec::new(),
    };
    let status = child.wait()?;
    let printed = String::from_utf8_lossy(&printed);
    let printed = printed.trim_end();
    Ok(match printed.char_indices().nth(LONGEST) {
        _ if printed.is_empty() && status.success() => "piton: done".to_owned(),
        _ if printed.is_empty() => format!("piton: `{verb}` ended with {status}"),
        Some((at, _)) => format!("{}\n… `piton {verb}` in a terminal shows the rest", &printed[..at]),
        None => printed.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_asked_and_what_was_typed_is_said_once() {
        let check = |verb: &str, usual: &[&str], typed: &[&str], expected: &[&str]| {
            let typed: Vec<String> = typed.iter().map(|word| word.to_string()).collect();
            assert_eq!(arguments(verb, &typed, usual, Path::new("/w")), expected, "{typed:?}");
        };
        let here = |more: &[&'static str]| [&["--workspace", "/w"], more].concat();
        check("rewind", &["--careful"], &["t5"], &here(&["--careful", "--scope=code", "t5"]));
        check("rewind", &["--careful"], &["t5", "--preview"], &here(&["--scope=code", "t5", "--preview"]));
        check("rewind", &["--careful"], &["-y", "kmzq"], &here(&["--scope=code", "-y", "kmzq"]));
        check("rewind", &[], &["t5", "--scope", "both"], &here(&["t5", "--scope", "both"]));
        check("rewind", &[], &["t5", "--scope=both"], &here(&["t5", "--scope=both"]));
        check("diff", &["--stat"], &["10m", "t1"], &here(&["--stat", "10m", "t1"]));
        check("undo", &["--yes"], &["last", "2"], &here(&["--yes", "last", "2"]));
        check("undo", &["--yes"], &["--workspace", "/v"], &["--yes", "--workspace", "/v"]);
        check("undo", &["--yes"], &["--workspace=/v"], &["--yes", "--workspace=/v"]);
        check("help", &[], &["undo"], &["undo"]);
    }

    #[test]
    fn an_answer_tells_what_can_be_typed_in_here_and_leaves_contents_alone() {
        let session = SessionId::of("claude-code", "s1");
        let printed = format!(
            "hint: `piton undo {session}:t3 --partial`\n  now │ `piton redo`\n`piton redo --workspace '/a b'` takes it back"
        );
        let expected = "hint: `/piton undo t3 --partial`\n  now │ `piton redo`\n`/piton redo` takes it back";
        assert_eq!(as_typed(&printed, &session, Path::new("/a b")), expected);
    }
}
