//! What happened, as one line each.

use piton_engine::view::{Notice, OperationStatus, OperationView};

use crate::text::{Style, Text};
use crate::{owners, turns, words};

/// A notice in a line: where it was, and what.
pub fn line(notice: &Notice) -> Text {
    let turn = |turn: u32| Text::new(Style::Id, format!("t{turn}"));
    let step = |turn: u32, step: u32| Text::new(Style::Id, format!("t{turn}.{step}"));
    match notice {
        Notice::WorkspaceChanged { path, .. } => Text::new(Style::Plain, format!("the workspace is {path}")),
        Notice::Captured { checkpoint, rules_waiting } => {
            let made = Text::new(Style::Id, checkpoint.id.short());
            let made = made.and(Style::Plain, format!("  captured: {}  ", words::cause(checkpoint.cause)));
            let made = made.and_all(words::signs(&checkpoint.changes));
            match rules_waiting {
                None => made,
                Some(0) => made.and(Style::Dim, "  no changed rules wait any more"),
                Some(1) => made.and(Style::Warn, "  a changed rule waits for your word"),
                Some(waiting) => made.and(Style::Warn, format!("  {waiting} changed rules wait for your word")),
            }
        }
        Notice::Named { checkpoint, name } => {
            Text::new(Style::Id, checkpoint.short()).and(Style::Plain, "  named ").and(Style::Bold, name)
        }
        Notice::Annotated { checkpoint, text } => {
            Text::new(Style::Id, checkpoint.short()).and(Style::Plain, format!("  noted: {text}"))
        }
        Notice::Accepted { paths, taken_back, .. } => {
            let did = if *taken_back { "no longer accepted" } else { "accepted" };
            Text::new(Style::Plain, format!("{did}: changes of {}", words::plural(paths.len() as u64, "file")))
        }
        Notice::SessionBegan { session, agent, .. } => {
            Text::new(Style::Id, session.short()).and(Style::Plain, format!("  session of {agent} began"))
        }
        Notice::SessionChanged { session, name, rank } => {
            let changed = Text::new(Style::Id, session.short()).and(Style::Plain, "  session changed");
            let changed = name.iter().fold(changed, |text, name| text.and(Style::Bold, format!("  {name}")));
            if rank.is_plain() { changed } else { changed.and(Style::Dim, format!("  {}", rank.as_str())) }
        }
        Notice::SessionEnded { session, .. } => {
            Text::new(Style::Id, session.short()).and(Style::Plain, "  session ended")
        }
        Notice::SessionImported { session, .. } => {
            Text::new(Style::Id, session.short()).and(Style::Plain, "  session imported")
        }
        Notice::TurnBegan { turn: number, prompt, .. } => {
            turn(*number).and(Style::Plain, "  ").and_all(turns::prompt(prompt.as_deref()))
        }
        Notice::TurnChanged { turn: number, prompt, .. } => {
            turn(*number).and(Style::Plain, "  now known: ").and_all(turns::prompt(prompt.as_deref()))
        }
        Notice::TurnEnded { turn: number, ending, .. } => {
            turn(*number).and(Style::Plain, format!("  turn ended: {}", ending.as_str()))
        }
        Notice::StepBegan { turn, step: number, summary, .. } => {
            step(*turn, *number).and(Style::Plain, format!("  {summary}"))
        }
        Notice::StepEnded { turn, step: number, ending, .. } => {
            step(*turn, *number).and(Style::Plain, format!("  {}", ending.as_str()))
        }
        Notice::Said { turn: number, role, .. } => turn(*number).and(Style::Plain, format!("  {role} said something")),
        Notice::Gap { gap, .. } => {
            Text::new(Style::Warn, "gap").and(Style::Plain, format!("  {}", owners::gap(gap, &[])))
        }
        Notice::OperationBegan { operation } => of_operation(operation).and(Style::Plain, " began"),
        Notice::OperationEnded { operation, took_back } => {
            let ended = of_operation(operation).and_all(match operation.state {
                OperationStatus::Done => Text::new(Style::Plain, " done"),
                OperationStatus::Pending => Text::new(Style::Warn, " not ended"),
                OperationStatus::RolledBack => Text::new(Style::Warn, " rolled back"),
                OperationStatus::GivenUp => Text::new(Style::Warn, " given up"),
            });
            let taken_back = took_back.iter().map(|id| format!(", {} taken back", id.short()));
            taken_back.fold(ended, |text, taken_back| text.and(Style::Plain, taken_back))
        }
        Notice::Damaged {} => Text::new(Style::Bad, "a record that is damaged"),
        // One that a later engine tells of.
        _ => Text::new(Style::Dim, "something happened"),
    }
}

fn of_operation(operation: &OperationView) -> Text {
    Text::new(Style::Id, operation.id.short()).and(Style::Plain, format!("  {}", operation.kind.as_str()))
}
