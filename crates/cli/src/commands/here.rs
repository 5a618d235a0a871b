//! `piton` alone: where you stand, and what most want to do next.

use std::io::{self, Write};

use piton_engine::view::Glance;
use piton_wording::{Call, Failure, Text, call, status, text, turns};

use crate::args::Global;
use crate::commands::status::glance;
use crate::console::{Console, Look};

pub fn run(global: &Global, console: &mut Console) -> Result<(), Failure> {
    let found = glance(global);
    console.print(&found, |out, look| match &found {
        Some(glance) => write(out, look, glance),
        None => {
            writeln!(out, "nothing is captured in this folder yet")?;
            write_next(out, look, &first())
        }
    })
}

fn write(out: &mut dyn Write, look: &Look, glance: &Glance) -> io::Result<()> {
    status::here(glance, &look.now).into_iter().try_for_each(|line| writeln!(out, "{}", look.text(line)))?;
    write_next(out, look, &next(glance))
}

/// What to type, each with what it does.
type Next = (Call, Text);

/// Where nothing is known of the folder.
fn first() -> Vec<Next> {
    vec![
        (call("setup"), "add piton to your agent: from then on it captures by itself".into()),
        (call("checkpoint").asking("NAME"), "capture this folder now".into()),
        (call("demo"), "see it work in a scratch folder, in ten seconds".into()),
    ]
}

/// The three commands that are wanted most where things stand as they do.
fn next(glance: &Glance) -> Vec<Next> {
    let log = (call("log"), Text::from("what happened, turn by turn"));
    let Some(turn) = &glance.turn else {
        let mut next = vec![(call("diff"), Text::from("what changed since the last checkpoint")), log];
        next.insert(0, (call("checkpoint").asking("NAME"), "capture this folder now, under a name".into()));
        return next;
    };
    let named = turns::named(turn.number, turn.prompt.as_deref());
    if let Some(operation) = &glance.operation {
        let what = operation.about.as_deref().map_or_else(|| "the last one".to_owned(), str::to_owned);
        let redo = text!["take back the ", operation.kind.as_str(), ": ", what];
        let redo = if operation.about.is_some() { redo } else { text!["take back the ", operation.kind.as_str()] };
        return vec![(call("redo"), redo), (call("diff"), "what changed since".into()), log];
    }
    let target = turn.target.as_str();
    let show = (call("show").arg(target), text!["what ", &named, " did"]);
    // Under an agent at work nothing is taken back.
    if glance.running {
        return vec![show, (call("diff"), "what changed since it began".into()), log];
    }
    let undo = match turn.changes.is_empty() && turn.unknown.is_none() {
        true => "take back the last turn that changed something, and keep what you did since",
        false => "take back the last turn, and keep what you did since",
    };
    vec![show, (call("undo"), undo.into()), log]
}

fn write_next(out: &mut dyn Write, look: &Look, next: &[Next]) -> io::Result<()> {
    let typed: Vec<String> = next.iter().map(|(call, _)| look.surface.command(call)).collect();
    let width = typed.iter().map(String::len).max().unwrap_or(0);
    for (typed, (_, does)) in typed.iter().zip(next) {
        writeln!(out, "  {}  {}", look.paint.bold(format!("{typed:<width$}")), look.text(does.clone()))?;
    }
    writeln!(out, "{}", look.text(text![call("help"), " lists all commands"]))
}
