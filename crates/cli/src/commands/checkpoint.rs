//! `piton checkpoint`: capture the workspace.

use std::io::{self, Write};

use piton_engine::CaptureOptions;
use piton_engine::view::{Captured, CheckpointDetail};
use piton_wording::escape::escape_view;
use piton_wording::words::{self, changes, label, plural};
use piton_wording::{Failure, Style, call, note, skipped, text};

use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::{Surroundings, say_recovered};
use crate::help::Example;
use crate::progress::with_progress;
use crate::unread;

/// Capture the workspace as a checkpoint
///
/// Captures every file of the workspace, including what git does not track. A folder that is not a workspace yet becomes
/// one. What is left out (ignored folders such as node_modules, sockets, unreadable files) is counted here and listed by
/// `piton show`.
#[derive(Debug, clap::Args)]
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

pub const EXAMPLES: [Example; 3] = [
    Example::Call("checkpoint", ""),
    Example::Call(r#"checkpoint before-refactor -m "tests are green""#, ""),
    Example::Shell("piton checkpoint --json | jq -r .checkpoint.id", ""),
];

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
            unread::write_unread_rules(out, look, &captured.unread_rules)?;
            write_remarks(out, look, &captured.checkpoint)
        });
        for file in &captured.large {
            console.say(note(words::large(file)));
        }
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
    writeln!(out, "checkpoint {}: {what}", look.text(label(checkpoint)))
}

fn write_remarks(out: &mut dyn Write, look: &Look, detail: &CheckpointDetail) -> io::Result<()> {
    for path in &detail.unsettled {
        let note = look.paint.warn("note:");
        writeln!(out, "{note} {} kept changing while it was read; its last reading is kept", escape_view(path))?;
    }
    if !detail.skipped.is_empty() {
        let id = detail.checkpoint.id.short();
        let what = skipped::summary(&detail.skipped);
        let text = text!["not captured: ", what, "; ", call("show").arg(id), " lists them"];
        writeln!(out, "{}", look.text(text.in_style(Style::Dim)))?;
    }
    Ok(())
}
