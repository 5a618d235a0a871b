//! `/piton …` typed inside an agent: the command is run as in a terminal, and what it prints is the answer.
//!
//! It runs in a process of its own. A rewind that takes long must not end with the hook, which an agent may end when
//! it likes: the process goes on, and the answer says so.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use piton_agents::{Reply, Report};
use piton_engine::Engine;
use piton_engine::model::{SessionId, Target};

use super::{Outcome, VARIABLE};
use crate::escape::{escape, quoted};

/// How long an answer may take. Claude Code ends a hook of piton's after 30 seconds.
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

/// Options of those commands that take the next word for their value.
const WITH_VALUE: [&str; 17] = [
    "--scope",
    "--path",
    "--path-b64",
    "--workspace",
    "--color",
    "--context",
    "-U",
    "--limit",
    "-n",
    "--since",
    "--session",
    "--owner",
    "--conflict",
    "--op",
    "--wait-at-most",
    "--at",
    "-L",
];

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
    let arguments = arguments(verb, &words[1..], usual, &session);
    if WRITERS.contains(&verb) {
        // Who can type has an agent that waits: its turn is over, whether or not it said so. What goes wrong here the
        // command itself meets again.
        let _ = engine.open(root).map(|mut workspace| workspace.prompted(&session, report.prompt_id.as_deref()));
    }
    let text = match run(verb, &arguments, cwd, root, until) {
        Ok(text) => as_typed(&text, &session, root),
        Err(error) => format!("piton: the command cannot be run: {error}"),
    };
    (Reply::Answer(text), format!("answered {verb}"))
}

/// Turns of the session in which they are typed are its own, also where another one is at work beside it.
fn arguments(verb: &str, words: &[String], usual: &[&str], session: &SessionId) -> Vec<String> {
    // What follows is words that are searched, or a note.
    let mut targets = match verb {
        "show" | "diff" | "rewind" | "undo" => usize::MAX,
        "annotate" => 1,
        _ => 0,
    };
    let mut arguments: Vec<String> = Vec::with_capacity(words.len());
    let mut is_value = false;
    for word in words {
        let is_plain = !is_value && !word.starts_with('-');
        if !is_value && word == "--" {
            // Paths, whatever they look like.
            targets = 0;
        }
        is_value = !is_value && WITH_VALUE.contains(&&word[..]);
        arguments.push(match word.parse() {
            Ok(Target::Turn { .. }) if is_plain && targets > 0 => format!("{session}:{word}"),
            _ => word.clone(),
        });
        targets = targets.saturating_sub(usize::from(is_plain));
    }
    let is_said = |flag: &str| arguments.iter().any(|word| word == flag);
    let is_asked_otherwise = |flag: &str| {
        is_said(flag) || is_said("--preview") || (HOW.contains(&flag) && HOW.iter().any(|how| is_said(how)))
    };
    let mut missing: Vec<String> =
        usual.iter().filter(|flag| !is_asked_otherwise(flag)).map(|flag| flag.to_string()).collect();
    let names_one = |word: &String| word.starts_with("--session") || word.starts_with("--op") || word.contains(":t");
    if verb == "undo" && !arguments.iter().any(names_one) {
        // `last 2` is of this session too.
        missing.extend(["--session".to_owned(), session.to_string()]);
    }
    if verb == "rewind" && !arguments.iter().any(|word| word.starts_with("--scope")) {
        // Who types it goes on right here, so the conversation goes back only on demand.
        missing.push("--scope=code".to_owned());
    }
    arguments.splice(0..0, missing);
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

fn run(verb: &str, arguments: &[String], cwd: &Path, root: &Path, until: Instant) -> std::io::Result<String> {
    let (mut output, input) = std::io::pipe()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(verb).arg("--workspace").arg(root).args(arguments).current_dir(cwd);
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
    fn a_turn_is_one_of_this_session_and_nobody_is_asked() {
        let session = SessionId::of("claude-code", "s1");
        let check = |verb: &str, usual: &[&str], typed: &[&str], expected: &[&str]| {
            let typed: Vec<String> = typed.iter().map(|word| word.to_string()).collect();
            let expected: Vec<String> = expected.iter().map(|word| word.replace("SESSION", session.as_str())).collect();
            assert_eq!(arguments(verb, &typed, usual, &session), expected, "{typed:?}");
        };
        check("rewind", &["--yes"], &["t5"], &["--yes", "--scope=code", "SESSION:t5"]);
        check(
            "rewind",
            &["--yes"],
            &["t5.2", "--path", "a b"],
            &["--yes", "--scope=code", "SESSION:t5.2", "--path", "a b"],
        );
        check("rewind", &["--yes"], &["t5.end", "--preview"], &["--scope=code", "SESSION:t5.end", "--preview"]);
        check("rewind", &["--yes"], &["-y", "kmzq"], &["--scope=code", "-y", "kmzq"]);
        check("rewind", &["--yes"], &["other:t5"], &["--yes", "--scope=code", "other:t5"]);
        check("rewind", &[], &["t5", "--scope", "both"], &["SESSION:t5", "--scope", "both"]);
        check("diff", &["--stat"], &["10m", "t1"], &["--stat", "10m", "SESSION:t1"]);
        check("rewind", &["--careful"], &["t5", "--yes"], &["--scope=code", "SESSION:t5", "--yes"]);
        check("undo", &["--yes"], &["last", "2"], &["--yes", "--session", "SESSION", "last", "2"]);
        check("undo", &["--yes"], &["t3", "--partial"], &["--yes", "SESSION:t3", "--partial"]);
        check("undo", &["--yes"], &["--op", "kmzq"], &["--yes", "--op", "kmzq"]);
        check("search", &[], &["t5"], &["t5"]);
        // A file may be called like a turn.
        check("rewind", &[], &["t1", "--path", "t5"], &["--scope=code", "SESSION:t1", "--path", "t5"]);
        check("rewind", &[], &["--path-b64", "t5", "t1"], &["--scope=code", "--path-b64", "t5", "SESSION:t1"]);
        check("rewind", &[], &["--path=t5", "t1"], &["--scope=code", "--path=t5", "SESSION:t1"]);
        check("rewind", &[], &["--path", "--path", "t1"], &["--scope=code", "--path", "--path", "SESSION:t1"]);
        check("diff", &[], &["-U", "t5", "t1", "--", "t2"], &["-U", "t5", "SESSION:t1", "--", "t2"]);
        check("annotate", &[], &["--color", "t3", "t5", "t4"], &["--color", "t3", "SESSION:t5", "t4"]);
        check("annotate", &[], &["t5", "t4"], &["SESSION:t5", "t4"]);
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
