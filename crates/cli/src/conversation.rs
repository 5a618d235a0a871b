//! Going on with a conversation: the prompt on the clipboard, and the agent started.

use std::io::{self, IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use piton_engine::model::path::encode_base64;
use piton_engine::view::ConversationOutcome;
use piton_wording::{Code, Failure, warning};

use crate::console::Console;
use crate::inside::Inside;

/// What to type here to go on: `cd /work/app && claude --resume 1f…`.
pub fn resume_line(done: &ConversationOutcome) -> Option<String> {
    piton_wording::conversation::resume_line(done, std::env::current_dir().ok().as_deref())
}

/// Where a command was typed to an agent: what to type to it next, so that its screen goes where the conversation went.
pub fn first_inside(out: &mut dyn Write, done: Option<&ConversationOutcome>) -> io::Result<()> {
    match done.and_then(|done| done.resume_inside.as_ref()).filter(|_| Inside::of_process().is_some()) {
        Some(typed) => writeln!(out, "type `{typed}` now: this screen switches to where the conversation went\n"),
        None => Ok(()),
    }
}

/// What follows what was made, on request: the prompt on the clipboard, and the agent started. `made` is what stays done
/// where there is nothing to start.
///
/// # Errors
/// Where there is nothing to start; and where the agent could be started this does not return.
pub fn go_on(
    console: &mut Console,
    done: Option<&ConversationOutcome>,
    copies: bool,
    resumes: bool,
    made: &str,
) -> Result<(), Failure> {
    if let (true, Some(prompt)) = (copies, done.and_then(|done| done.prompt.as_deref())) {
        // What was asked for is done, and the prompt has been printed: no reason to call it failed.
        match copy(prompt) {
            Ok(()) => console.say("the prompt is on the clipboard"),
            Err(why) => {
                console.say(warning(format!("the prompt is not on the clipboard: {why}")));
            }
        }
    }
    match done.filter(|done| done.resume.is_some()) {
        Some(done) if resumes => Err(resume(console, done)),
        None if resumes => Err(Failure::user(
            Code::CannotResume,
            format!("there is no conversation to continue; the {made} itself is done"),
        )),
        _ => Ok(()),
    }
}

/// Puts a text on the clipboard: by a program where one is installed, else by asking the terminal.
///
/// # Errors
/// Where there is neither.
fn copy(text: &str) -> Result<(), &'static str> {
    const PROGRAMS: [&[&str]; 5] = [
        &["wl-copy"],
        &["xclip", "-selection", "clipboard"],
        &["xsel", "--clipboard", "--input"],
        &["pbcopy"],
        &["clip.exe"],
    ];
    if PROGRAMS.iter().any(|words| give_to(words, text).is_ok()) {
        return Ok(());
    }
    let mut terminal = io::stderr();
    if !terminal.is_terminal() {
        return Err("there is neither wl-copy, xclip, xsel nor a terminal");
    }
    // OSC 52: most terminals put this on the clipboard, also through ssh.
    let _ = write!(terminal, "\x1b]52;c;{}\x07", encode_base64(text.as_bytes()));
    Ok(())
}

fn give_to(words: &[&str], text: &str) -> io::Result<()> {
    let (program, rest) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let quiet = Stdio::null;
    let mut child = Command::new(program).args(rest).stdin(Stdio::piped()).stdout(quiet()).stderr(quiet()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(text.as_bytes())?;
    }
    if child.wait()?.success() { Ok(()) } else { Err(io::ErrorKind::Other.into()) }
}

/// Becomes the agent that goes on with a conversation. Returns only where that fails.
pub fn resume(console: &mut Console, done: &ConversationOutcome) -> Failure {
    let Some((program, rest)) = done.resume.as_deref().and_then(|words| words.split_first()) else {
        return Failure::user(Code::CannotResume, "there is no command that continues this conversation");
    };
    console.say(format!("{} {}", program, rest.join(" ")));
    let mut command = Command::new(program);
    command.args(rest);
    if let Some(cwd) = &done.cwd {
        command.current_dir(cwd);
    }
    let error = command.exec();
    Failure::user(Code::CannotResume, format!("cannot start {program}: {error}"))
        .hint(format!("everything else is done; `{}` continues it", resume_line(done).unwrap_or_default()))
}
