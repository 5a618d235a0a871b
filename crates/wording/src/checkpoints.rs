//! A checkpoint: where in which session it was made, and how the repository stood then.

use piton_engine::model::Cause;
use piton_engine::model::git::GitState;
use piton_engine::model::short::one_line;
use piton_engine::view::{CheckpointView, SessionView};

use crate::escape::escape;
use crate::owners::Names;
use crate::text::{Style, Text};
use crate::{text, words};

/// Where in which session it was made.
pub fn place(checkpoint: &CheckpointView, sessions: &[SessionView], names: &Names) -> Option<String> {
    let place = checkpoint.place.as_ref()?;
    let agent = sessions.iter().find(|session| session.id == place.session).map(|session| escape(&session.agent));
    let session = format!("session {} of {}", place.session.short(), agent.unwrap_or("an agent".into()));
    let at = names.target(&place.session, place.turn, place.step);
    Some(match (place.turn, checkpoint.cause) {
        (0, _) => format!("{session}, before its first turn"),
        (_, Cause::Prompt | Cause::BeforeTool) => format!("{session}, before {at}"),
        (_, Cause::AfterTool) => format!("{session}, after {at}"),
        (_, Cause::TurnEnd) => format!("{session}, at the end of {at}"),
        _ => format!("{session}, in {at}"),
    })
}

/// As many characters of a prompt name its turn.
const WORDS: usize = 40;

/// A moment to go back to, as a person remembers it: by the name that it was given, by its turn with the prompt, or by its id.
pub fn moment(checkpoint: &CheckpointView, names: &Names) -> Text {
    if let Some(name) = &checkpoint.name {
        return text!["\"", Text::new(Style::Bold, name), "\""];
    }
    let Some(place) = checkpoint.place.as_ref().filter(|place| place.turn > 0) else {
        return Text::new(Style::Id, checkpoint.id.short());
    };
    let turn = match names.target(&place.session, place.turn, None).split_once(':') {
        Some((session, _)) => format!("turn {} of session {session}", place.turn),
        None => format!("turn {}", place.turn),
    };
    let said = checkpoint.description.as_deref().filter(|said| !said.trim().is_empty());
    let said = said.map(|said| format!(" “{}”", one_line(said, WORDS))).unwrap_or_default();
    match (checkpoint.cause, place.step) {
        (Cause::Prompt, _) => text!["before ", Text::new(Style::Bold, turn), said],
        (Cause::BeforeTool, Some(step)) => {
            text!["before ", Text::new(Style::Bold, format!("step {step} of {turn}")), said]
        }
        (Cause::TurnEnd, _) => text!["the end of ", Text::new(Style::Bold, turn)],
        _ => Text::new(Style::Id, checkpoint.id.short()),
    }
}

/// When something was as it is at a checkpoint: `before turn 5 “add tests”`, `at the end of turn 5`, `in "v1"`.
pub fn then(checkpoint: &CheckpointView, names: &Names) -> Text {
    let is_of_turn = checkpoint.name.is_none() && checkpoint.place.as_ref().is_some_and(|place| place.turn > 0);
    let word = match (is_of_turn, checkpoint.cause) {
        (true, Cause::Prompt | Cause::BeforeTool) => "",
        (true, Cause::TurnEnd) => "at ",
        _ => "in ",
    };
    text![word, moment(checkpoint, names)]
}

/// A repository's state in one line: `main at 1a2b3c4d5e, 2 staged, uncommitted changes`.
pub fn git_state(git: &GitState) -> String {
    let commit = git.head.commit.as_deref().map(|hex| hex.get(..10).unwrap_or(hex));
    let head = match (&git.head.branch, commit) {
        (Some(branch), Some(commit)) => format!("{} at {commit}", escape(branch)),
        (Some(branch), None) => format!("{}, no commit yet", escape(branch)),
        (None, Some(commit)) => format!("detached at {commit}"),
        (None, None) if git.incomplete.is_some() => "not known".to_owned(),
        (None, None) => "no commit".to_owned(),
    };
    let mut parts = vec![head];
    if let Some(act) = git.in_progress {
        parts.push(format!("in the middle of a {}", act.as_str()));
    }
    match (git.staged.len(), git.uncommitted) {
        (0, Some(true)) => parts.push("uncommitted changes".to_owned()),
        (0, Some(false)) => parts.push("nothing uncommitted".to_owned()),
        (0, None) => {}
        (staged, _) => parts.push(format!("{} staged", words::plural(staged as u64, "file"))),
    }
    if let Some(why) = &git.incomplete {
        parts.push(format!("incomplete: {}", escape(why)));
    }
    parts.join(", ")
}
