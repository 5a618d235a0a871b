//! `piton changes`: what a session changed, numbered.

use std::io::{self, Write};

use piton_engine::view::{SessionChanges, Unknown, UnknownTurn};
use piton_engine::{ChangesOptions, TargetError};
use piton_wording::changes::{summary, what, who};
use piton_wording::owners::Names;
use piton_wording::{Failure, Style, Text, call, note, text, words};

use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::Surroundings;
use crate::help::Example;
use crate::settings;
use crate::table::{Cell, ShownText, line, widest};

/// List what a session changed, numbered, with ages
///
/// Oldest first: the path, what happened to it, when, and the step that did it. `unsure` marks what the session may
/// not have done, with everybody who may have. The last line sums up, and counts each path once, however often it
/// changed.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The session: the beginning of its id, or its name [default: the one that reported last]
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Include your own changes during the session; they have no numbers
    #[arg(long)]
    all: bool,
}

pub const EXAMPLES: [Example; 3] = [
    Example::Call("changes", ""),
    Example::Call("changes --session kmzq --all", ""),
    Example::Shell(r#"piton changes --json | jq -r '.changes[] | select(.kind == "deleted") | .path'"#, ""),
];

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let workspace = Surroundings::read(global)?.open(console)?;
    let options = ChangesOptions { session: args.session.clone(), all: args.all };
    let changes = workspace.changes(&options).map_err(|error| match error {
        TargetError::NoSession(_) => {
            Failure::no_session(text![call("diff"), " shows what changed since the last checkpoint"])
        }
        other => other.into(),
    })?;
    let names = if console.is_json() { Names::default() } else { Names::of(&workspace.sessions()?.sessions) };
    console.print(&changes, |out, look| write(out, look, &changes, &names))?;
    if !settings::find(Some(workspace.path())).settings.automatic.value {
        console
            .advise("`capture.automatic` is off: turns are not captured, and what they changed is known only in parts");
    }
    Ok(())
}

/// A line for each, and the sum.
fn write(out: &mut dyn Write, look: &Look, all: &SessionChanges, names: &Names) -> io::Result<()> {
    let rows: Vec<_> = all
        .changes
        .iter()
        .map(|change| {
            let number = change.number.map(|number| format!("[{number}]")).unwrap_or_default();
            let age = match change.checkpoint {
                Some(_) => words::age(change.at, &look.now),
                None => "not captured yet".to_owned(),
            };
            (number, what(change), age, who(change, names))
        })
        .collect();
    let numbers = widest(rows.iter().map(|(number, ..)| number.len()));
    // Ages are aligned, but one long path does not push all of them away.
    let whats = widest(rows.iter().map(|(_, what, ..)| what.width()).filter(|width| *width <= 60));
    let ages = widest(rows.iter().map(|(.., age, _)| age.len()));
    for (number, what, age, who) in &rows {
        let cells = [
            (Cell::plain(format!("{number:>numbers$} ")), numbers + 1),
            (what.cut(look, usize::MAX), whats + 1),
            (Text::new(Style::Dim, format!("- {age}")).cut(look, usize::MAX), ages + 4),
            (who.cut(look, usize::MAX), 0),
        ];
        writeln!(out, "{}", line(&cells))?;
    }
    if !rows.is_empty() {
        writeln!(out)?;
    }
    writeln!(out, "{}", summary(all))?;
    for UnknownTurn { turn, why } in &all.unknown {
        // What was not captured in time is found later, and listed.
        let is_listed = all.changes.iter().any(|change| change.number.is_some() && change.turn == *turn);
        if matches!(why, Unknown::Gap { .. }) && is_listed {
            continue;
        }
        let target = names.target(&all.session.id, *turn, None);
        let why = words::unknown(why, &target);
        writeln!(out, "{}", look.text(note(text!["what ", target, " changed is not known: ", why])))?;
    }
    Ok(())
}
