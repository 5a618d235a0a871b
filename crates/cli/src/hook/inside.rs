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

use super::{Outcome, VARIABLE};
use crate::args::{self, Typed};
use crate::inside::{self, Effect, Inside};
use crate::{environment, report};

/// How long an answer may take: less than any agent gives a hook of piton's.
pub const AT_MOST: Duration = Duration::from_secs(25);
/// Typed after `/piton`, it carries out the plan that was shown.
const YES: &str = "yes";
/// What is longer is read in a terminal.
const LONGEST: usize = 8000;

/// What `/piton` alone shows: what is wanted most.
const SHORT: &str = "\
/piton undo                takes back the last turn and keeps what you did since; also t3, last 2, --path src
/piton redo                takes the last undo or rewind back
/piton rewind t5           files and conversation as they were just before turn 5; --scope code: files alone
/piton log                 what happened, turn by turn
/piton changes             every change of this session, numbered
/piton diff                what changed since the last turn began
/piton accept t3           turn 3 is fine: an undo that does not name it leaves it
/piton checkpoint NAME     a checkpoint with a name
/piton status              what is captured here, and what is not
/piton help                more; /piton help undo is about one command";

const HELP: &str = "\
/piton undo                takes back the last turn and keeps what you did since
/piton undo last 2         the last two changes; also t3, t3.2, 4 7 (numbers of changes), all, --path src
/piton undo t3 --preview   what that would change
/piton rewind t5           files and conversation as they were just before turn 5 (t5.2: files, before its second
                           step); the answer says what `/resume` leads there; --scope code: files alone
/piton redo                takes the last undo or rewind back
/piton accept t3           turn 3 is fine: an undo that does not name it leaves it; also paths
/piton log                 what happened, turn by turn
/piton changes             every change of this session, numbered
/piton diff                what changed since the last turn began; /piton diff t5: what turn 5 did
/piton show t5             turn 5: its prompt, its steps, what it changed, whether that stands
/piton checkpoint NAME     a checkpoint with a name
/piton rules               changed rules that wait for your word; `/piton rules accept` agrees
/piton help undo           more about a command
Also: blame, ops, status, sessions, search, annotate. Everything else is for a terminal: piton --help";

/// Runs what was typed after `/piton`.
pub fn answer(engine: &Engine, typed: &str, report: &Report, cwd: &Path, root: &Path, until: Instant) -> Outcome {
    let session = SessionId::of(&report.agent, &report.session);
    let (agreed, shown) = if typed == YES {
        let Some((command, shown)) = engine.take_asked(&session) else {
            let text = "piton: nothing waits for a yes; a rewind that would touch more than this session's changes asks for one";
            return (Reply::Answer(text.to_owned()), "answered nothing".to_owned());
        };
        (format!("{command} --yes"), Some(shown))
    } else {
        (typed.to_owned(), None)
    };
    let (words, Typed { verb, .. }) = match understood(&agreed, &session, root) {
        Ok(understood) => understood,
        Err((text, what)) => return (Reply::Answer(cut(&text, "help")), format!("answered {what}")),
    };
    let writes = inside::effect(&verb) == Some(Effect::Writes);
    if writes && typed != YES {
        // A yes is to what was asked last; who only looks meanwhile may still say it.
        let _ = engine.take_asked(&session);
    }
    if writes {
        // Who can type has an agent that waits: its turn is over, whether or not it said so, in every workspace that it
        // works in. What goes wrong here the command itself meets again.
        let elsewhere = engine.workspaces_of(&session).into_iter().filter(|path| path != root);
        for path in std::iter::once(root.to_owned()).chain(elsewhere) {
            let _ = engine.open(&path).map(|mut workspace| workspace.prompted(&session, report.prompt_id.as_deref()));
        }
    }
    let text = match run((&verb, &words), &session, shown, (cwd, root), until) {
        Ok(text) => text,
        Err(error) => format!("piton: the command cannot be run: {error}"),
    };
    (Reply::Answer(text), format!("answered {verb}"))
}

/// What was typed, where it can be run in here; else what to say, and the word for the log.
fn understood(typed: &str, session: &SessionId, root: &Path) -> Result<(Vec<OsString>, Typed), (String, &'static str)> {
    let Some(words) = shlex::split(typed) else {
        return Err(("piton: a quote is not closed; nothing was done".to_owned(), "nothing"));
    };
    let is_help = |word: &String| matches!(word.as_str(), "-h" | "--help" | "help");
    if words.iter().all(is_help) {
        return Err((if words.is_empty() { SHORT } else { HELP }.to_owned(), "help"));
    }
    if words.first().is_some_and(|word| word == YES) {
        return Err(("piton: `/piton yes` takes nothing after it; nothing was done".to_owned(), "nothing"));
    }
    let not_here = |verb: &str| (inside::not_here(verb), "help");
    // Before its arguments are looked at, which need not be right.
    let other = words.first().filter(|word| !is_help(word) && !word.starts_with('-') && inside::effect(word).is_none());
    if let Some(verb) = other {
        return Err(not_here(verb));
    }
    // A page of what can only be typed elsewhere would have nothing but wrong examples.
    if let [help, verb, ..] = &words[..]
        && is_help(help)
        && inside::effect(verb).is_none()
    {
        return Err(not_here(verb));
    }
    let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    let mut place = Inside::new(session.clone(), root);
    let mut typed = args::parse_inside(&words, &place).map_err(|mut refused| (refused.text(&place), "nothing"))?;
    if typed.verb.is_empty() {
        return Err((HELP.to_owned(), "help"));
    }
    if inside::effect(&typed.verb).is_none() {
        return Err(not_here(&typed.verb));
    }
    place.settle(&mut typed.cli).map_err(|failure| (report::in_lines(&failure, &place), "nothing"))?;
    Ok((words, typed))
}

/// `shown` is the plan that the user has said yes to.
fn run(
    (verb, words): (&str, &[OsString]),
    session: &SessionId,
    shown: Option<String>,
    (cwd, root): (&Path, &Path),
    until: Instant,
) -> std::io::Result<String> {
    let (mut output, input) = std::io::pipe()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(words).current_dir(cwd);
    // Turns, changes and the last turn are those of the session in which they are typed.
    command.env(inside::SESSION, session.as_str()).env(inside::WORKSPACE, root);
    command.env_remove(inside::SHOWN).envs(shown.map(|shown| (inside::SHOWN, shown)));
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
    Ok(match printed {
        "" if status.success() => "piton: done".to_owned(),
        "" => format!("piton: `{verb}` ended with {status}"),
        printed => cut(printed, verb),
    })
}

/// As much of an answer as is read in here.
fn cut(text: &str, verb: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}\n… `piton {verb}` in a terminal shows the rest", &text[..at]),
        None => text.to_owned(),
    }
}
