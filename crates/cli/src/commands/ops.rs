//! `piton ops`: what was done to the files by piton itself, and how each of it stands.

use std::io::{self, Write};

use piton_engine::model::Counts;
use piton_engine::view::{KeptGit, OperationView, Operations};
use piton_engine::{DiffOptions, Workspace};
use piton_wording::owners::Names;
use piton_wording::{Failure, Style, Text, call, operation_state, text, words};
use serde::Serialize;

use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::Surroundings;
use crate::help::Example;
use crate::table::{ShownText, line, widest};
use crate::titles;

/// List what piton did: rewinds, undos, redos, checkouts, forks and summaries, newest first
///
/// A line has the operation's id, when it was, what it did, how many paths it created (+), modified (~) and deleted (-),
/// and how it stands: `taken back` was undone by a later one, `rolled back` failed and left everything as it was, `not
/// ended` is under way, or was cut off and waits for its folder.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// At most N
    #[arg(short = 'n', long = "limit", value_name = "N")]
    limit: Option<usize>,
    /// Remove the references (`refs/piton/…`) of operations whose git state can no longer be taken back, and list them
    #[arg(long, conflicts_with = "limit")]
    forget_git: bool,
}

/// What `--forget-git --json` prints.
#[derive(Serialize)]
struct Forgotten {
    forgotten: Vec<KeptGit>,
}

pub const EXAMPLES: [Example; 4] = [
    Example::Call("ops", ""),
    Example::Call("undo --op kmzq", "takes back that one"),
    Example::Call("ops --forget-git", "after `rewind --git`: clears up in the repository"),
    Example::Shell("piton ops -n 1 --json | jq -r '.operations[].id'", ""),
];

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let workspace = Surroundings::read(global)?.open(console)?;
    if args.forget_git {
        let forgotten = Forgotten { forgotten: workspace.forget_old_git()? };
        return console.print_done(&forgotten, |out, look| write_forgotten(out, look, &forgotten.forgotten));
    }
    let all = workspace.operations()?.operations;
    let limit = args.limit.unwrap_or(usize::MAX).min(all.len());
    let shown = Operations { operations: all[..limit].to_vec() };
    if console.is_json() {
        return console.print(&shown, |_, _| Ok(()));
    }
    let names = Names::of(&workspace.sessions()?.sessions);
    let titles = titles::of(&workspace, &all, &names);
    let rows: Vec<_> = shown.operations.iter().map(|one| (one, titles.title(one), counts(&workspace, one))).collect();
    console.print(&shown, |out, look| write(out, look, &rows))?;
    if all.is_empty() {
        console.advise("nothing was rewound or undone here yet");
    } else if all.len() > limit {
        let rest = words::grouped((all.len() - limit) as u64);
        console.advise(text![rest, " older: ", call("ops")].in_style(Style::Dim));
    }
    Ok(())
}

fn write_forgotten(out: &mut dyn Write, look: &Look, forgotten: &[KeptGit]) -> io::Result<()> {
    if forgotten.is_empty() {
        return writeln!(out, "nothing to remove: whatever is kept in the repository can still be taken back");
    }
    for one in forgotten {
        let age = one.began_at.map(|at| words::age(at, &look.now)).unwrap_or_default();
        let count = words::plural(one.references, "reference");
        writeln!(out, "removed {count} of operation {}, {age}", look.paint.id(one.operation.short()))?;
    }
    Ok(())
}

type Row<'a> = (&'a OperationView, Text, Option<Counts>);

/// A line for each.
fn write(out: &mut dyn Write, look: &Look, rows: &[Row<'_>]) -> io::Result<()> {
    let age = |operation: &OperationView| words::age(operation.began_at, &look.now);
    let signs = |counts: &Option<Counts>| counts.map(|counts| words::signs(&counts)).unwrap_or_default();
    let ages = widest(rows.iter().map(|(operation, ..)| age(operation).len()));
    let numbers = widest(rows.iter().map(|(.., counts)| signs(counts).width()));
    let states =
        widest(rows.iter().map(|(operation, ..)| operation_state(operation).width()).filter(|width| *width <= 16));
    let taken = 10 + ages + 2 + 2 + numbers + 2 + states;
    let room = look.width.saturating_sub(taken).clamp(16, 72);
    let all = widest(rows.iter().map(|(_, title, _)| title.width()));
    // A file gets all of a long one.
    let titles = if look.terminal { all.min(room) } else { all };
    for (operation, title, counts) in rows {
        let title = title.cut(look, titles);
        let column = titles.max(title.width) + 2;
        let cells = [
            (Text::new(Style::Id, operation.id.short()).cut(look, 8), 10),
            (Text::new(Style::Dim, age(operation)).cut(look, ages), ages + 2),
            (title, column),
            (signs(counts).cut(look, usize::MAX), numbers + 2),
            (operation_state(operation).cut(look, usize::MAX), 0),
        ];
        writeln!(out, "{}", line(&cells))?;
    }
    Ok(())
}

/// What it changed; none where that cannot be told any more.
fn counts(workspace: &Workspace, operation: &OperationView) -> Option<Counts> {
    let options = DiffOptions {
        from: Some((&operation.before).into()),
        to: Some(operation.after.as_ref()?.into()),
        names_only: true,
        ..DiffOptions::default()
    };
    workspace.diff(&options).ok().map(|diff| diff.changes)
}
