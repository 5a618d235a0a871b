//! Turns and steps: what was asked, and how they ended.

use piton_engine::model::Ending;
use piton_engine::model::short::one_line;
use piton_engine::view::{AcceptedPart, SinceTurn, SinceView, StepView, TurnShown, TurnView, Undone};

use crate::text::{Style, Text};
use crate::{Titles, text, words};

/// The first line of a prompt that says something.
pub fn prompt(text: Option<&str>) -> Text {
    let Some(text) = text else { return Text::new(Style::Dim, "(piton came in the middle of this turn)") };
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    match (lines.next(), lines.next()) {
        (None, _) => Text::new(Style::Dim, "(an empty prompt)"),
        (Some(only), None) => Text::new(Style::Plain, only),
        (Some(first), Some(_)) => Text::new(Style::Plain, format!("{first} …")),
    }
}

/// How a turn ended, where that is worth a word, whether it was taken back, accepted, compacted or is a future turn.
pub fn remark(turn: &TurnView, is_running: bool) -> Text {
    let ending = match turn.ending {
        _ if is_running => Text::new(Style::Good, "running"),
        Some(Ending::Failed) => Text::new(Style::Bad, "failed"),
        Some(Ending::Interrupted) => Text::new(Style::Warn, "interrupted"),
        _ => Text::default(),
    };
    let undone = match turn.undone {
        Some(Undone::Whole) => Text::new(Style::Warn, "taken back"),
        Some(Undone::Partly) => Text::new(Style::Warn, "partly taken back"),
        None => Text::default(),
    };
    let compacted = if turn.compacted { Text::new(Style::Dim, "compacted") } else { Text::default() };
    let accepted = match turn.accepted {
        Some(AcceptedPart::All) => Text::new(Style::Dim, "accepted"),
        Some(AcceptedPart::Some) => Text::new(Style::Dim, "partly accepted"),
        None => Text::default(),
    };
    let future = if turn.future { Text::new(Style::Dim, "future") } else { Text::default() };
    let parts = [ending, undone, accepted, compacted, future].into_iter().filter(|part| !part.is_empty());
    Text::join(parts, ", ")
}

/// How a step ended, where that is worth a word, and whether a subagent made it.
pub fn step_remark(step: &StepView, is_running: bool) -> Text {
    let ending = match step.ending {
        None if step.background => Text::new(Style::Good, "in the background"),
        None if is_running => Text::new(Style::Good, "running"),
        None | Some(Ending::Lost) => Text::new(Style::Dim, "end unknown"),
        Some(Ending::Failed) => Text::new(Style::Bad, "failed"),
        Some(Ending::Interrupted) => Text::new(Style::Warn, "interrupted"),
        Some(Ending::Done) => Text::default(),
    };
    if step.subagent.is_none() {
        return ending;
    }
    let comma = if ending.is_empty() { "" } else { ", " };
    ending.and(Style::Dim, format!("{comma}by a subagent"))
}

/// A turn in a sentence: `turn 5 “make the tests pass”`.
pub fn named(number: u32, prompt: Option<&str>) -> String {
    match prompt.map(|prompt| one_line(prompt, IN_A_SENTENCE)).filter(|line| !line.is_empty()) {
        Some(line) => format!("turn {number} “{line}”"),
        None => format!("turn {number}"),
    }
}

/// As much of a prompt is in a sentence, in characters.
const IN_A_SENTENCE: usize = 40;

impl From<&SinceTurn> for Text {
    fn from(turn: &SinceTurn) -> Self {
        Self::new(Style::Plain, named(turn.number, turn.prompt.as_deref()))
    }
}

/// Since when changes are shown: `turn 5 “make the tests pass” began`, `the rewind to t3`.
pub fn since(since: &SinceView, titles: &Titles) -> Text {
    match (&since.turn, &since.rewind) {
        (Some(turn), _) => text![turn, " began"],
        (None, Some(rewind)) => text!["the ", titles.title(rewind)],
        (None, None) => words::label(&since.checkpoint),
    }
}

/// How a turn or a step that is shown by itself stands: running, failed, taken back.
pub fn standing(shown: &TurnShown, titles: &Titles) -> Text {
    let step = shown.step.and_then(|number| shown.turn.steps.iter().find(|step| step.number == number));
    let ending = match step {
        Some(step) => step_remark(step, shown.running),
        None => remark(&shown.turn, shown.running),
    };
    let sure = shown.diffs.iter().filter(|diff| !diff.unsure).count() as u64;
    let back = match shown.taken_back {
        0 => Text::default(),
        some => {
            let how = if some == sure { "taken back" } else { "partly taken back" };
            let by = shown.taken_back_by.as_ref().map(|by| text![" by the ", titles.title(by)]);
            Text::new(Style::Warn, how).and_all(by.unwrap_or_default())
        }
    };
    let parts = [ending, back].into_iter().filter(|part| !part.is_empty());
    Text::join(parts, ", ")
}
