//! Turns and steps: what was asked, and how they ended.

use piton_engine::model::Ending;
use piton_engine::view::{AcceptedPart, StepView, TurnView};

use crate::text::{Style, Text};

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

/// How a turn ended, where that is worth a word, whether its changes are accepted, and whether it is a future turn.
pub fn remark(turn: &TurnView, is_running: bool) -> Text {
    let ending = match turn.ending {
        _ if is_running => Text::new(Style::Good, "running"),
        Some(Ending::Failed) => Text::new(Style::Bad, "failed"),
        Some(Ending::Interrupted) => Text::new(Style::Warn, "interrupted"),
        _ => Text::default(),
    };
    let accepted = turn.accepted.map(|part| match part {
        AcceptedPart::All => "accepted",
        AcceptedPart::Some => "partly accepted",
    });
    accepted.into_iter().chain(turn.future.then_some("future")).fold(ending, |remark, word| {
        let comma = if remark.is_empty() { "" } else { ", " };
        remark.and(Style::Dim, format!("{comma}{word}"))
    })
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
