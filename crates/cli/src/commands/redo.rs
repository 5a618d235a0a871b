//! `piton redo`: take back the last rewind.

use std::io::{self, Write};

use piton_engine::{OperationError, RedoOptions};
use piton_engine::view::OperationOutcome;

use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::Surroundings;
use crate::error::Failure;
use crate::plan::{self, Refusal};
use crate::progress::with_progress;

/// Take back the last rewind
///
/// Only the paths that the rewind changed become what they were before it; what was done elsewhere since stays. Where one
/// of those paths was changed again since, nothing is done and the path is named.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Show what would change, and change nothing
    #[arg(long)]
    preview: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

const EXAMPLES: &str = "\
Examples:
  piton redo --preview
  piton redo --yes";

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let mut workspace = Surroundings::read(global)?.open(console)?;
    let progress = workspace.progress();
    let outcome = if args.yes && !args.preview {
        with_progress(console, &progress, "Redoing", || workspace.redo_now(&RedoOptions::default())).map_err(failed)?
    } else {
        if !args.preview {
            plan::someone_to_ask(console)?;
        }
        let plan = with_progress(console, &progress, "Planning", || workspace.plan_redo(&RedoOptions::default())).map_err(failed)?;
        if args.preview {
            return console.print(plan.view(), |out, look| plan::write(out, look, plan.view(), true));
        }
        plan::confirm(console, &workspace, plan.view(), false).map_err(|refusal| match refusal {
            Refusal::No => Failure::Declined,
            Refusal::Engine(error) => failed(error),
        })?;
        with_progress(console, &progress, "Redoing", || workspace.carry_out(plan)).map_err(failed)?
    };
    console.print(&outcome, |out, look| write(out, look, &outcome))?;
    if !console.is_json() {
        console.say_with(|out, look| plan::write_remarks(out, look, &outcome));
        if let Some(operation) = &outcome.operation {
            console.say(format!("`piton rewind {}` returns to the state before this redo", operation.before.short()));
        }
    }
    Ok(())
}

/// The redo in one line.
pub fn write(out: &mut dyn Write, look: &Look, outcome: &OperationOutcome) -> io::Result<()> {
    match outcome.operation {
        Some(_) => writeln!(out, "took back the last rewind: {}", plan::summary(outcome, look)),
        None => writeln!(out, "nothing to do: the files are as before the last rewind already"),
    }
}

/// A redo cannot insist on another folder; a rewind to the same state can.
fn failed(error: OperationError) -> Failure {
    match error {
        OperationError::OtherFolder(_) => Failure::from(error)
            .hint("`piton log` lists the checkpoints; `piton rewind TARGET --across` goes to one of another folder"),
        other => Failure::of_operation(other, "piton redo"),
    }
}
