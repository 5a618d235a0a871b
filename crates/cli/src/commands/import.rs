//! `piton import`: a session from an archive, into this workspace's store.

use std::io::{self, Write};
use std::path::PathBuf;

use piton_engine::view::SessionImported;
use piton_engine::{ArchiveError, ImportError};
use piton_wording::escape::{escape, escape_path};
use piton_wording::{Code, Failure, Style, call, text, words};

use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::Surroundings;

/// Read a session from an archive into this workspace's store
///
/// If the folder is not a workspace yet, it becomes one; its own files are not captured by that.
///
/// The archive is one that `piton export SESSION` made. Its turns and checkpoints can then be shown, compared,
/// searched and rewound to like any other; your files and everything in the store stay as they are. The checkpoints
/// come from another folder, so a rewind to one needs `--across`.
///
/// An archive can come from anybody, so all of it is checked first: if it is damaged, or is nothing that piton would
/// write, none of it is used. A name that one of your checkpoints has keeps its meaning.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The archive
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  piton import session-kmzqwxyz.piton
  piton log --session kmzq               what was asked and done in it
  piton diff kmzq:t1 kmzq:t2             what its first turn changed
  piton rewind kmzq:t2 --across          its files as they were before turn 2";

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let surroundings = Surroundings::read(global)?;
    let file = surroundings.here.join(&args.file);
    if file.is_dir() || !file.exists() {
        let what = if file.is_dir() { "is a folder" } else { "is not there" };
        return Err(
            Failure::user(Code::CannotRead, format!("{} {what}", escape_path(&file))).hint("name the archive to read")
        );
    }
    let explained = |error: ImportError| match &error {
        ImportError::Archive(ArchiveError::NotOne) => {
            let message = format!("{} is not a session archive", escape_path(&file));
            Failure { message, ..Failure::from(error) }
        }
        _ => error.into(),
    };
    let mut workspace =
        surroundings.open_or_init_if(console, || piton_engine::check_archive(&file).map_err(explained))?;
    let imported = workspace.import_session(&file).map_err(explained)?;
    console.print_done(&imported, |out, look| write(out, look, &imported))?;
    if !console.is_json() {
        console.say_with(|out, look| write_remarks(out, look, &imported));
    }
    Ok(())
}

fn write(out: &mut dyn Write, look: &Look, imported: &SessionImported) -> io::Result<()> {
    let id = look.paint.id(imported.session.short());
    if imported.already_here {
        return writeln!(out, "session {id} is already here, with all that the archive has of it");
    }
    writeln!(
        out,
        "session {id} of {}: {}, {}, {} new in the store",
        escape(&imported.agent),
        words::plural(imported.turns, "turn"),
        words::plural(imported.checkpoints, "checkpoint"),
        words::size(imported.bytes),
    )
}

fn write_remarks(out: &mut dyn Write, look: &Look, imported: &SessionImported) -> io::Result<()> {
    let note = look.paint.warn("note:");
    for renamed in &imported.renamed {
        let (what, name) = (if renamed.session { "session" } else { "checkpoint" }, escape(&renamed.name));
        match &renamed.now {
            Some(now) => {
                writeln!(out, "{note} `{name}` is a {what} of yours; the archive's is `{}` here", escape(now))?
            }
            None => writeln!(out, "{note} `{name}` means a {what} of yours; the archive's has no name here")?,
        }
    }
    if imported.transcript.is_none() {
        writeln!(out, "{note} the archive has no transcript")?;
    }
    if !imported.already_here {
        let log = call("log").of_session(&imported.session);
        let hint = text![log, " shows it; your files are as they were"];
        writeln!(out, "{}", look.text(hint.in_style(Style::Dim)))?;
    }
    Ok(())
}
