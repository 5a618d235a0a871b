//! What becomes of the conversation: in a plan, and after it.

use std::path::Path;

use piton_engine::view::{ConversationOutcome, ConversationPlanView};

use crate::call::{call, flag};
use crate::lines::{LONG_LIST, Lines, Room};
use crate::owners::Names;
use crate::plan::say_owned;
use crate::text;
use crate::text::{Style, Text, note};
use crate::words::plural;

/// Lines of a prompt that are shown where it is only to be recognised.
const FEW: usize = 3;

/// Where a conversation would go.
pub fn say_plan(out: &mut Lines, room: &Room, plan: &ConversationPlanView, names: &Names, is_whole: bool) {
    let title = Text::new(Style::Bold, "Conversation:");
    if let Some(to) = &plan.to {
        out.say(text![title, " back to session ", names.session(to)]);
        return;
    }
    let future = || call("log").arg("--future");
    let leaves = match plan.leaves {
        0 => Text::default(),
        1 => text!["; 1 turn stays readable with ", future()],
        count => text!["; ", plural(u64::from(count), "turn"), " stay readable with ", future()],
    };
    let turn = plan.turn.to_string();
    out.say(match plan.anew {
        true => text![title, " starts over, since nothing was said before turn ", turn, leaves],
        false => text![title, " a new branch that ends before turn ", turn, leaves],
    });
    if let Some(prompt) = &plan.prompt {
        out.say(format!("The prompt of turn {}, to edit and send again:", plan.turn));
        say_prompt(out, prompt, if is_whole { usize::MAX } else { FEW });
    }
    if plan.cut_off {
        out.say(note("the agent is still writing: the transcript's last line is incomplete and is left out"));
    }
    let shown = if is_whole { usize::MAX } else { room.lines(LONG_LIST / 4) };
    let heading = note("newer than that conversation, and stay as they are:");
    say_owned(out, heading, &plan.newer, shown, |file| names.evidence(&file.owner, &[]));
    if !plan.newer.is_empty() {
        out.say(text![flag("--scope").arg("both"), " takes the files back with it"].in_style(Style::Dim));
    }
}

/// Why a conversation stays where it is.
pub fn say_stays(out: &mut Lines, why: &str) {
    out.say(Text::new(Style::Dim, format!("the conversation stays as it is: {why}")));
}

/// Where a conversation went, and how to go on with it from the folder `here`.
pub fn say_outcome(out: &mut Lines, done: &ConversationOutcome, names: &Names, here: Option<&Path>) {
    out.say(match &done.session {
        Some(session) if done.resume.is_none() => {
            let session = names.session(session);
            format!("the conversation continues in session {session}; piton knows no command that resumes this agent")
        }
        Some(session) => format!("the conversation continues in session {}:", names.session(session)),
        None => "the conversation starts over: start a new session of the agent".to_owned(),
    });
    if let Some(command) = resume_line(done, here) {
        out.show(text!["  ", Text::new(Style::Bold, command)], false);
    }
    if let Some(typed) = &done.resume_inside {
        out.say(format!("or type `{typed}` to the agent that runs: its screen switches to that session"));
    }
    if let Some(prompt) = &done.prompt {
        out.say(format!("the prompt of turn {}, to edit and send again:", done.turn));
        say_prompt(out, prompt, usize::MAX);
    }
}

/// What to type to go on, in the folder `here`: `cd /work/app && claude --resume 1f…`.
pub fn resume_line(done: &ConversationOutcome, here: Option<&Path>) -> Option<String> {
    let words = |words: &[String]| shlex::try_join(words.iter().map(String::as_str)).ok();
    let resume = words(done.resume.as_ref()?)?;
    match &done.cwd {
        Some(cwd) if here != Some(Path::new(cwd)) => {
            Some(format!("{} && {resume}", words(&["cd".to_owned(), cwd.clone()])?))
        }
        _ => Some(resume),
    }
}

/// What the user said.
pub fn say_prompt(out: &mut Lines, prompt: &str, most: usize) {
    let lines: Vec<&str> = prompt.lines().collect();
    let shown = lines.len().min(most);
    for line in &lines[..shown] {
        out.say(text!["  ", Text::new(Style::Dim, "│"), " ", *line]);
    }
    out.rest("  ", lines.len() - shown);
}
