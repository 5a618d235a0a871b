//! `piton cat`: files as they were, to stdout.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

use piton_engine::model::When;
use piton_engine::model::target::{split_path, split_session};
use piton_engine::view::Files;
use piton_engine::{FileAt, History};
use piton_wording::escape::{escape_line, escape_path, shell_word};
use piton_wording::{Code, Failure, call, note, text, words};

use crate::args::Global;
use crate::console::Console;
use crate::environment::Surroundings;
use crate::paths::resolve;

/// Print a file as it was at a checkpoint
///
/// The bytes go to stdout exactly as they were captured, even of a binary file; on a terminal, control characters are
/// escaped. For a symlink it prints the path that it points to. Several files are printed one after the other; if one
/// of them cannot be found, nothing is printed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A target, a colon and a path: t5:src/main.rs
    ///
    /// The target is an id or its beginning, a name, a turn such as t5 or kmzq:t5, an age such as 10m, or start. A relative
    /// path begins at the current folder if that is in the workspace, else at its root.
    #[arg(value_name = "TARGET:PATH", required = true)]
    files: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  piton cat t5:src/main.rs                     as it was before turn 5
  piton cat t5.end:logo.png > logo.png
  piton cat kmzq:t2:notes.md                   of another session
  piton cat before-refactor:a.txt | diff a.txt -
  piton cat start:a.txt 10m:a.txt              both, one after the other";

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let surroundings = Surroundings::read(global)?;
    let workspace = surroundings.open(console)?;
    let find = |typed: &OsString| {
        let (target, path) = split_path(typed.as_bytes()).ok_or_else(|| no_target(args, typed))?;
        let path = resolve(workspace.path(), &surroundings.here, OsStr::from_bytes(path))?;
        Ok(workspace.file_at(target, &path)?)
    };
    let files = args.files.iter().map(find).collect::<Result<Vec<FileAt>, Failure>>()?;
    if console.is_json() {
        let read = |file: &FileAt| Ok(file.view(&content(&workspace, file)?));
        let files = Files { files: files.iter().map(read).collect::<Result<_, Failure>>()? };
        return console.print(&files, |_, _| Ok(()));
    }
    for (file, typed) in files.iter().zip(&args.files) {
        if console.look.is_raw() {
            console.print_raw(|out| workspace.write_file(file, out).map_err(Failure::from))?;
            continue;
        }
        let bytes = content(&workspace, file)?;
        if bytes.contains(&0) {
            let typed = shell_word(typed);
            return Err(Failure::user(
                Code::NotText,
                format!("{typed} is binary ({}), and this is a terminal", words::size(file.size())),
            )
            .hint(format!("`piton cat {typed} > FILE` writes it to a file")));
        }
        console.print(&(), |out, _| write_text(out, &bytes))?;
        if file.is_symlink() {
            console.say(note("this is a symlink; printed is the path that it points to"));
        }
    }
    Ok(())
}

fn content(workspace: &History, file: &FileAt) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    workspace.write_file(file, &mut bytes)?.map_err(Failure::output)?;
    Ok(bytes)
}

/// Text for a terminal, which never gets a control character of a file.
fn write_text(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().try_for_each(|line| writeln!(out, "{}", escape_line(line)))
}

/// Whether a word can hardly be the name of a file.
fn looks_like_target(word: &str) -> bool {
    let (_, when) = split_session(word);
    matches!(when.parse(), Ok(When::Turn { .. } | When::Start | When::Age(_)))
}

fn no_target(args: &Args, typed: &OsStr) -> Failure {
    let shown = escape_path(typed.as_ref());
    let text = match typed.to_str().is_some_and(looks_like_target) {
        true => format!("`{shown}` is a target without a path"),
        false => format!("`{shown}` has no target before its path"),
    };
    let failure = Failure::user(Code::Arguments, text);
    match &args.files[..] {
        // `piton cat t5 src/main.rs`, as some programs take it.
        [target, path] if target == typed && split_path(path.as_bytes()).is_none() => {
            let mut both = target.clone();
            both.push(":");
            both.push(path);
            failure.hint(text![call("cat").arg(both), " prints a file as it was then"])
        }
        _ if typed.to_str().is_some_and(looks_like_target) => {
            let mut example = typed.to_owned();
            example.push(":PATH");
            failure.hint(text![call("cat").arg(example), " prints a file as it was then"])
        }
        _ => {
            let mut example = OsString::from("t5:");
            example.push(typed);
            failure.hint(text!["such as ", call("cat").arg(example), ", for the file before turn 5"])
        }
    }
}
