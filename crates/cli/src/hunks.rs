//! `--patch`: every place of a plan is asked about, as `git add -p` asks. What is not wanted stays as it is.
//!
//! [`Questions`] does no I/O: it knows which places there are, what an answer does, and what stays in the end. [`ask`] shows
//! the places and reads the answers.

mod questions;

use std::io::{self, Write};

use piton_engine::model::text::{self, Hunk, Line, Side, TextDiff};
use piton_engine::model::{Except, OperationVerb, WorkspacePath};
use piton_engine::view::{Diff, EntryView, FileDiff};
use piton_wording::escape::escape_view;
use piton_wording::{Code, Failure, flag, text as words};

use self::questions::{Answer, Place, Questions};
use crate::console::{Console, Look};
use crate::patch;

/// Equal lines around each difference of a file that is moved.
const CONTEXT: u32 = 3;

/// Refuses where nobody can be asked.
pub fn someone_to_ask(console: &Console) -> Result<(), Failure> {
    if console.can_ask() {
        return Ok(());
    }
    Err(Failure::user(
        Code::NobodyToAsk,
        "`--patch` asks about each change, and there is no terminal to ask at; nothing was changed",
    )
    .hint(words![
        flag("--preview").arg("--diff"),
        " shows the changes; ",
        flag("--except").asking("PATH"),
        " leaves one of the files as it is"
    ]))
}

/// Asks about each place of a plan. `diff` is of the plan, `moves` are the files that it moves.
///
/// # Errors
/// Where nobody answers any more.
pub fn ask(
    console: &mut Console,
    diff: &Diff,
    moves: &[(WorkspacePath, WorkspacePath)],
    verb: OperationVerb,
) -> Result<Except, Failure> {
    let mut questions = Questions::new(&diff.files, moves);
    let mut shown_of = None;
    while let Some(place) = questions.current() {
        console.say_with(|out, look| show(out, look, &questions, place, shown_of));
        shown_of = Some(place.subject);
        loop {
            let can_split = questions.can_split();
            let letters = if can_split { "y,n,q,a,d,s,?" } else { "y,n,q,a,d,?" };
            let (number, count) = questions.progress();
            let question = format!("({number}/{count}) {} [{letters}]? ", what(&questions, place, verb));
            let Some(typed) = console.answer(&question) else { return Err(Failure::declined()) };
            let answer = match typed.chars().next() {
                Some('y') => Answer::Yes,
                Some('n') => Answer::No,
                Some('q') => Answer::Quit,
                Some('a') => Answer::AllOfFile,
                Some('d') => Answer::NoneOfFile,
                Some('s') if can_split => Answer::Split,
                _ => {
                    console.say_with(|out, _| help(out, can_split));
                    continue;
                }
            };
            questions.answer(answer);
            break;
        }
    }
    Ok(questions.except())
}

fn help(out: &mut dyn Write, can_split: bool) -> io::Result<()> {
    let lines = [
        ("y", "do this", true),
        ("n", "leave this as it is", true),
        ("q", "quit asking: leave this and all that follows as it is", true),
        ("a", "do this and all that follows in this file", true),
        ("d", "leave this and all that follows in this file as it is", true),
        ("s", "split this into smaller places", can_split),
        ("?", "show this help", true),
    ];
    lines.iter().filter(|(.., is_there)| *is_there).try_for_each(|(key, what, _)| writeln!(out, "{key} - {what}"))
}

/// What is asked of a place.
fn what(questions: &Questions<'_>, place: &Place, verb: OperationVerb) -> String {
    let files = questions.files_of(place);
    let Some(file) = files.first() else { return String::new() };
    let path = escape_view(&file.change.path);
    if let [_, to] = files[..] {
        return format!("Move {path} to {}", escape_view(&to.change.path));
    }
    if place.hunk.is_some() {
        return match verb {
            OperationVerb::Undo => format!("Undo this change in {path}"),
            OperationVerb::Redo => format!("Take back this change in {path}"),
            _ => format!("Rewind this change in {path}"),
        };
    }
    match (&file.change.before, &file.change.after) {
        (None, _) => format!("Recreate {path}"),
        (_, None) => format!("Delete {path}"),
        (Some(EntryView::File { hash: was, .. }), Some(EntryView::File { hash: is, .. })) if was == is => {
            format!("Restore the permissions of {path}")
        }
        (Some(EntryView::Folder { .. }), Some(EntryView::Folder { .. })) => {
            format!("Restore the permissions of the folder {path}")
        }
        _ => format!("Restore {path}"),
    }
}

/// Shows a place: the heading of its file once.
fn show(
    out: &mut dyn Write,
    look: &Look,
    questions: &Questions<'_>,
    place: &Place,
    shown_of: Option<usize>,
) -> io::Result<()> {
    let files = questions.files_of(place);
    match (&place.hunk, &files[..]) {
        (Some(hunk), [file, ..]) => {
            if shown_of != Some(place.subject) {
                patch::write_heading(out, look, file)?;
            }
            patch::write_hunk(out, look, hunk)
        }
        (None, [from, to]) => {
            let both = [from, to].map(|file| escape_view(&file.change.path));
            let [from_path, to_path] = both;
            writeln!(out, "{}", look.paint.bold(format!("move from {from_path}")))?;
            writeln!(out, "{}", look.paint.bold(format!("move to {to_path}")))?;
            between(from, to).iter().try_for_each(|hunk| patch::write_hunk(out, look, hunk))
        }
        (None, files) => files.iter().try_for_each(|file| patch::write(out, look, file)),
        (Some(_), []) => Ok(()),
    }
}

/// How a file that is moved differs from what comes at its other path.
fn between(from: &FileDiff, to: &FileDiff) -> Vec<Hunk> {
    let side = |file: &FileDiff, side: Side| {
        let lines = file.hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.side == side);
        lines.map(|Line { text, no_newline, .. }| format!("{text}{}", if *no_newline { "" } else { "\n" })).collect()
    };
    let [was, is]: [String; 2] = [side(from, Side::Removed), side(to, Side::Added)];
    match text::diff(was.as_bytes(), is.as_bytes(), CONTEXT) {
        TextDiff::Text { hunks } => hunks,
        TextDiff::Binary => Vec::new(),
    }
}
