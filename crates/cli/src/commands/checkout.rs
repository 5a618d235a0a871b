//! `piton checkout`: a checkpoint laid out in another folder.

use std::io::{self, Write};
use std::path::PathBuf;

use piton_engine::CheckoutOptions;
use piton_engine::view::CheckoutOutcome;
use piton_wording::escape::{escape, escape_path, escape_view, quoted};
use piton_wording::{Failure, note, skipped};

use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::{Surroundings, say_recovered};
use crate::files;
use crate::progress::with_progress;

/// Lay out a checkpoint in another folder
///
/// The folder gets every file of that moment with its exact permission bits, symlinks and empty folders. It is made
/// whole or not at all; the workspace, the conversation and git stay as they are. What the checkpoint left out
/// (`node_modules`, `.git`) is not there, and is listed. The folder is not a workspace until something is captured in
/// it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The checkpoint: an id or its beginning, a name, a turn such as t3, an age such as 10m, or start
    target: String,
    /// The folder, which must be empty or not exist
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    folder: PathBuf,
    /// Allow a folder inside a workspace; the next capture there finds its files
    #[arg(long)]
    inside: bool,
}

const EXAMPLES: &str = "\
Examples:
  piton checkout t5 ../before-t5           to look at, build or compare
  piton checkout before-refactor /tmp/old
  diff -r /tmp/old .
  piton checkout kmzq:t2.end ../theirs     how turn 2 of another session left the files";

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let surroundings = Surroundings::read(global)?;
    let mut workspace = surroundings.open(console)?;
    let folder = surroundings.here.join(&args.folder);
    let options = CheckoutOptions { inside: args.inside };
    let progress = workspace.progress();
    let said = workspace.recovered().len();
    let done = with_progress(console, &progress, "Laying out", || workspace.checkout(&args.target, &folder, &options));
    say_recovered(console, &workspace.recovered()[said..]);
    let done = done?;
    console.print_done(&done, |out, look| write(out, look, &args.target, &done))?;
    if !console.is_json() {
        console.say_with(|out, look| write_skipped(out, look, &done));
        if surroundings.here == done.path {
            let again = quoted(&done.path);
            console.say(note(format!(
                "your shell is still in the empty folder that was there; `cd {again}` enters the new one"
            )));
        }
    }
    Ok(())
}

fn write(out: &mut dyn Write, look: &Look, target: &str, done: &CheckoutOutcome) -> io::Result<()> {
    let id = look.paint.id(done.checkpoint.id.short());
    let called =
        if done.checkpoint.id.as_str().starts_with(target) { id } else { format!("{} ({id})", escape(target)) };
    let end = if done.verified { look.paint.good("verified") } else { look.paint.warn("changed again since") };
    writeln!(out, "{called} is in {}; {end}", escape_path(&done.path))
}

/// What is not there, because it was not captured.
fn write_skipped(out: &mut dyn Write, look: &Look, done: &CheckoutOutcome) -> io::Result<()> {
    if done.skipped.is_empty() {
        return Ok(());
    }
    writeln!(out, "not there, because not captured: {}", skipped::summary(&done.skipped))?;
    let shown = look.lines(files::ON_A_TERMINAL).min(done.skipped.len());
    for one in &done.skipped[..shown] {
        let why = look.paint.dim(format!("({})", skipped::word(one.reason)));
        writeln!(out, "  {} {why}", escape_view(&one.path))?;
    }
    files::write_rest(out, look, "  ", done.skipped.len() - shown)
}
