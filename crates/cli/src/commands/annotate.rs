//! `piton annotate`: a note on a checkpoint.

use std::io::{self, Read, Write};

use piton_engine::view::Annotated;
use piton_wording::escape::escape;
use piton_wording::{Code, Failure, words};

use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::Surroundings;
use crate::help::Example;

/// Put a note on a checkpoint
///
/// Any checkpoint can have a note, even one that was made automatically. It replaces the previous note, and
/// `piton search` finds it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The checkpoint: an id or its beginning, a name, a turn such as t3, an age such as 10m, or start
    target: String,
    /// The note; `-` reads it from stdin, an empty one removes it
    text: String,
}

pub const EXAMPLES: [Example; 3] = [
    Example::Call(r#"annotate t3 "the tests passed here""#, ""),
    Example::Shell("git log -1 --format=%s | piton annotate before-refactor -", ""),
    Example::Call(r#"annotate before-refactor """#, ""),
];

/// Longer than any note may be, so that the engine says so and not the memory.
const MOST_READ: u64 = 1 << 20;

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let mut workspace = Surroundings::read(global)?.open(console)?;
    let text = if args.text == "-" { read_stdin()? } else { args.text.clone() };
    let annotated = workspace.annotate(&args.target, text.trim_end())?;
    console.print_done(&annotated, |out, look| write(out, look, &annotated))
}

/// The checkpoint in one line, with its note.
fn write(out: &mut dyn Write, look: &Look, annotated: &Annotated) -> io::Result<()> {
    let checkpoint = look.text(words::label(&annotated.checkpoint));
    match &annotated.checkpoint.annotation {
        Some(text) => writeln!(out, "checkpoint {checkpoint}: {}", escape(text)),
        None => writeln!(out, "checkpoint {checkpoint} has no note now"),
    }
}

fn read_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    io::stdin()
        .take(MOST_READ)
        .read_to_string(&mut text)
        .map_err(|error| Failure::user(Code::CannotRead, format!("the note cannot be read from stdin: {error}")))?;
    Ok(text)
}
