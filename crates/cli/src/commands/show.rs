//! `piton show`: one checkpoint, what changed in it and what it left out.

use std::io::{self, Write};

use piton_engine::view::{OperationView, Shown};

use super::log::why;
use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::Surroundings;
use crate::error::Failure;
use crate::escape::{escape, escape_view};
use crate::{files, skipped, words};

/// Show a checkpoint: what changed in it, and what it left out
///
/// On a terminal long lists are cut; into a file or pipe everything is listed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The checkpoint: an id or its beginning, a name, an age such as 10m, or start
    target: String,
}

const EXAMPLES: &str = "\
Examples:
  piton show before-refactor
  piton show kmzq | less";

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let workspace = Surroundings::read(global)?.open(console)?;
    let shown = workspace.show(&args.target)?;
    let operation = match (&shown.checkpoint.checkpoint.operation, console.is_json()) {
        (Some(id), false) => workspace.operations()?.into_iter().find(|operation| operation.id == *id),
        _ => None,
    };
    console.print(&shown, |out, look| write(out, look, &shown, operation.as_ref()))
}

fn write(out: &mut dyn Write, look: &Look, shown: &Shown, operation: Option<&OperationView>) -> io::Result<()> {
    let paint = look.paint;
    let checkpoint = &shown.checkpoint.checkpoint;
    let mut line = |word: &str, text: String| writeln!(out, "{}{text}", paint.dim(format!("{word:<14}")));
    line("checkpoint", paint.id(&checkpoint.id))?;
    if let Some(name) = &checkpoint.name {
        line("name", paint.bold(escape(name)))?;
    }
    if let Some(annotation) = &checkpoint.annotation {
        line("annotation", escape(annotation).into_owned())?;
    }
    let when = words::local_time(checkpoint.created_at);
    let age = words::age(checkpoint.created_at, look.now);
    // An old one's age is its date already.
    let age = if when.starts_with(&age) { String::new() } else { format!(" ({age})") };
    line("captured", format!("{when}{age}, {}", why(checkpoint.cause, operation)))?;
    if let Some(parent) = &checkpoint.parent {
        line("follows", paint.id(parent.short()))?;
    }
    line("changed", words::changes(&checkpoint.changes))?;
    files::write(out, look, "  ", &shown.files)?;
    for path in &shown.checkpoint.unsettled {
        let text = "kept changing while it was read; its last reading is kept";
        writeln!(out, "{} {} {text}", paint.warn("note:"), escape_view(path))?;
    }
    let left_out = &shown.checkpoint.skipped;
    if left_out.is_empty() {
        return writeln!(out, "{}nothing", paint.dim(format!("{:<14}", "not captured")));
    }
    writeln!(out, "{}{}", paint.dim(format!("{:<14}", "not captured")), skipped::summary(left_out))?;
    for (reason, group) in skipped::groups(left_out) {
        let few = look.lines(5).min(group.len());
        for one in &group[..few] {
            writeln!(out, "  {} {}", escape_view(&one.path), paint.dim(format!("({})", skipped::word(reason))))?;
        }
        files::write_rest(out, look, "  ", group.len() - few)?;
    }
    Ok(())
}
