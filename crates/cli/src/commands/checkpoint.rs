//! `piton checkpoint`: capture the workspace.

use std::io::{self, Write};

use piton_engine::CaptureOptions;
use piton_engine::view::{Captured, CheckpointDetail};

use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::{Surroundings, say_recovered};
use crate::error::Failure;
use crate::escape::escape_view;
use crate::progress::with_progress;
use crate::skipped;
use crate::words::{changes, label, plural};

/// Capture the workspace as a checkpoint
///
/// Captures every file of the workspace, including what git does not track. A folder that is not a workspace yet becomes
/// one. What is left out (ignored folders such as node_modules, sockets, unreadable files) is counted here and listed by
/// `piton show`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A name to find it by, such as before-refactor
    name: Option<String>,
    /// A note on it
    #[arg(short = 'm', long = "annotation", value_name = "TEXT")]
    annotation: Option<String>,
    /// Wait until it would survive a power cut
    #[arg(long)]
    sync: bool,
}

const EXAMPLES: &str = "\
Examples:
  piton checkpoint
  piton checkpoint before-refactor -m \"tests are green\"
  piton checkpoint --json | jq -r .checkpoint.id";

pub fn run(args: Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let mut workspace = Surroundings::read(global)?.open_or_init(console)?;
    let options = CaptureOptions { name: args.name, annotation: args.annotation, sync: args.sync };
    let progress = workspace.progress();
    let said = workspace.recovered().len();
    let captured = with_progress(console, &progress, "Capturing", || workspace.capture(&options))?;
    say_recovered(console, &workspace.recovered()[said..]);
    console.print_done(&captured, |out, look| write(out, look, &captured))?;
    if !console.is_json() {
        console.say_with(|out, look| {
            skipped::write_unread_rules(out, look, &captured.unread_rules)?;
            write_remarks(out, look, &captured.checkpoint)
        });
    }
    Ok(())
}

/// The checkpoint in one line.
pub fn write(out: &mut dyn Write, look: &Look, captured: &Captured) -> io::Result<()> {
    let checkpoint = &captured.checkpoint.checkpoint;
    let mut what = Vec::new();
    if checkpoint.parent.is_none() || !checkpoint.changes.is_empty() {
        what.push(changes(&checkpoint.changes));
    }
    if !captured.taken_in.is_empty() {
        what.push(format!("{} captured for the first time", plural(captured.taken_in.len() as u64, "path")));
    }
    if what.is_empty() {
        what.push("nothing changed since the last one".to_owned());
    }
    let what = what.join(", ");
    writeln!(out, "checkpoint {}: {what}", label(checkpoint, look.paint))
}

fn write_remarks(out: &mut dyn Write, look: &Look, detail: &CheckpointDetail) -> io::Result<()> {
    for path in &detail.unsettled {
        let note = look.paint.warn("note:");
        writeln!(out, "{note} {} kept changing while it was read; its last reading is kept", escape_view(path))?;
    }
    if !detail.skipped.is_empty() {
        let id = detail.checkpoint.id.short();
        let text = format!("not captured: {}; `piton show {id}` lists them", skipped::summary(&detail.skipped));
        writeln!(out, "{}", look.paint.dim(text))?;
    }
    Ok(())
}
