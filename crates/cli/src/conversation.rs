//! What becomes of the conversation, for people: in a plan, and after it; and going on with it.

use std::io::{self, IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use piton_engine::model::path::encode_base64;
use piton_engine::view::{ConversationOutcome, ConversationPlanView};
use piton_wording::escape::escape;
use piton_wording::owners::Names;
use piton_wording::words::plural;
use piton_wording::{Code, Failure, Text, call, text, warning};

use crate::console::{Console, Look};
use crate::files::{ON_A_TERMINAL, write_rest};
use crate::plan::write_owned;

/// Lines of a prompt that are shown where it is only to be recognised.
const FEW: usize = 3;

/// Writes where a conversation would go.
pub fn write_plan(
    out: &mut dyn Write,
    look: &Look,
    plan: &ConversationPlanView,
    names: &Names,
    is_whole: bool,
) -> io::Result<()> {
    let paint = look.paint;
    let title = paint.bold("Conversation:");
    if let Some(to) = &plan.to {
        return writeln!(out, "{title} back to session {}", names.session(to));
    }
    let leaves = match plan.leaves {
        0 => Text::default(),
        1 => text!["; 1 turn stays readable with ", call("log").arg("--future")],
        count => {
            text!["; ", plural(u64::from(count), "turn"), " stay readable with ", call("log").arg("--future")]
        }
    };
    let leaves = look.text(leaves);
    if plan.anew {
        writeln!(out, "{title} begins anew, since nothing was said before turn {}{leaves}", plan.turn)?;
    } else {
        writeln!(out, "{title} a new branch that ends before turn {}{leaves}", plan.turn)?;
    }
    if let Some(prompt) = &plan.prompt {
        writeln!(out, "The prompt of turn {} comes back, to be changed and sent again:", plan.turn)?;
        write_prompt(out, look, prompt, if is_whole { usize::MAX } else { FEW })?;
    }
    if plan.cut_off {
        let text = "the agent is writing: the transcript's last line is not whole, and is left out";
        writeln!(out, "{} {text}", paint.warn("note:"))?;
    }
    let heading = format!("{} newer than that conversation, and stay as they are:", paint.warn("note:"));
    let shown = if is_whole { usize::MAX } else { look.lines(ON_A_TERMINAL / 4) };
    write_owned(out, look, &heading, &plan.newer, shown, |file| names.evidence(&file.owner, &[]))?;
    if !plan.newer.is_empty() {
        writeln!(out, "{}", paint.dim("`--scope both` takes the files back with it"))?;
    }
    Ok(())
}

/// Writes why a conversation stays where it is.
pub fn write_stays(out: &mut dyn Write, look: &Look, why: &str) -> io::Result<()> {
    writeln!(out, "{}", look.paint.dim(format!("the conversation stays as it is: {}", escape(why))))
}

/// Writes where a conversation went, and how to go on with it.
pub fn write_outcome(out: &mut dyn Write, look: &Look, done: &ConversationOutcome, names: &Names) -> io::Result<()> {
    let paint = look.paint;
    match &done.session {
        Some(session) if done.prompt.is_none() && done.resume.is_none() => {
            writeln!(out, "the conversation goes on in session {}", names.session(session))?;
        }
        Some(session) => writeln!(out, "the conversation goes on in session {}:", names.session(session))?,
        None => writeln!(out, "the conversation begins anew: start a new session of the agent")?,
    }
    if let Some(command) = resume_line(done) {
        writeln!(out, "  {}", paint.bold(escape(&command)))?;
    }
    if let Some(prompt) = &done.prompt {
        writeln!(out, "the prompt of turn {}, to change and send again:", done.turn)?;
        write_prompt(out, look, prompt, usize::MAX)?;
    }
    Ok(())
}

/// What to type to go on: `cd /work/app && claude --resume 1f…`.
pub fn resume_line(done: &ConversationOutcome) -> Option<String> {
    let words = |words: &[String]| shlex::try_join(words.iter().map(String::as_str)).ok();
    let resume = words(done.resume.as_ref()?)?;
    let here = std::env::current_dir().ok();
    match &done.cwd {
        Some(cwd) if here.as_deref() != Some(std::path::Path::new(cwd)) => {
            Some(format!("{} && {resume}", words(&["cd".to_owned(), cwd.clone()])?))
        }
        _ => Some(resume),
    }
}

/// Writes what the user said.
pub fn write_prompt(out: &mut dyn Write, look: &Look, prompt: &str, most: usize) -> io::Result<()> {
    let lines: Vec<&str> = prompt.lines().collect();
    let shown = lines.len().min(most);
    for line in &lines[..shown] {
        writeln!(out, "  {} {}", look.paint.dim("│"), escape(line))?;
    }
    write_rest(out, look, "  ", lines.len() - shown)
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
            format!("there is no conversation to go on with; the {made} itself is done"),
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
        return Failure::user(Code::CannotResume, "there is no command to go on with this conversation");
    };
    console.say(format!("{} {}", program, rest.join(" ")));
    let mut command = Command::new(program);
    command.args(rest);
    if let Some(cwd) = &done.cwd {
        command.current_dir(cwd);
    }
    let error = command.exec();
    Failure::user(Code::CannotResume, format!("cannot start {program}: {error}"))
        .hint(format!("everything else is done; `{}` goes on with it", resume_line(done).unwrap_or_default()))
}
