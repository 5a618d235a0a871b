//! `piton status`: how the workspace stands.

use std::io::{self, Write};
use std::process::ExitCode;

use piton_engine::view::{FolderState, Glance, Status};
use piton_wording::escape::escape_path;
use piton_wording::owners::Names;
use piton_wording::{
    Failure, Style, Text, Titles, agreement, call, owners, skipped, status, text, turns, warning, words,
};
use serde::Serialize;

use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::Surroundings;
use crate::help::Example;
use crate::progress::with_progress;
use crate::unread;
use crate::{files, hook, settings, titles};

/// Show how the workspace stands
///
/// Its last checkpoint, what changed since the last turn began or since a rewind that came after it, the open sessions
/// and their gaps, what a capture leaves out, and how much disk its checkpoints take. Exits with 1 if the last event
/// that should have been captured was not, or if nothing can be captured now.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// One line for a shell's prompt or a status line, from the store alone; nothing where there is no workspace
    #[arg(long)]
    short: bool,
}

pub const EXAMPLES: [Example; 3] = [
    Example::Call("status", ""),
    Example::Call(
        "status --short",
        "`t5 +1 ~2 running`: for a prompt, starship, a status line (`piton setup --status-line`)",
    ),
    Example::Shell("piton status --json | jq .changes", ""),
];

/// What `--json` prints.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    status: &'a Status,
    /// What the workspace's own settings take away from its protection.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'a [String],
}

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<ExitCode, Failure> {
    if args.short {
        return short(global, console);
    }
    let workspace = Surroundings::read(global)?.open_for_rules(console)?;
    let progress = workspace.progress();
    let status = with_progress(console, &progress, "Looking", || workspace.status())?;
    let warnings = hook::weakened(&settings::find(Some(workspace.path())).settings);
    let titles = if console.is_json() || (status.since.is_none() && status.rewound.is_none()) {
        Titles::default()
    } else {
        titles::of_all(&workspace, &Names::of(&workspace.sessions()?.sessions))?
    };
    let shown = Shown { status: &status, warnings: &warnings };
    console.print(&shown, |out, look| {
        write(out, look, &status, &titles)?;
        for said in agreement::sentences(&status.rules_waiting) {
            writeln!(out, "{}", look.text(warning(text![said, "; ", agreement::how(None)])))?;
        }
        warnings.iter().try_for_each(|warning| writeln!(out, "{} {warning}", look.paint.warn("warning:")))
    })?;
    if status.last.is_none() {
        console.advise(text![call("checkpoint"), " captures the workspace"]);
    }
    if status.not_captured.is_none() && status.waiting.is_empty() && status.unwritable.is_none() {
        return Ok(ExitCode::SUCCESS);
    }
    match status.room {
        _ if status.unwritable.is_some() => {
            console.advise(text!["free some space, or let your user write there; ", call("doctor"), " says more"]);
        }
        0 => console.advise(status::more_room(status.budget)),
        _ => console.advise(text![call("doctor"), " looks for the reason; the next capture that works ends it"]),
    }
    Ok(ExitCode::from(1))
}

/// The line for a prompt. It is shown all the time, so whatever is wrong is no reason to say more than that.
fn short(global: &Global, console: &mut Console) -> Result<ExitCode, Failure> {
    let Some(glance) = glance(global) else { return Ok(ExitCode::SUCCESS) };
    console.print(&glance, |out, look| {
        let text = status::short(&glance);
        if text.is_empty() { Ok(()) } else { writeln!(out, "{}", look.text(text)) }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// How the workspace that is meant stands, from its store alone; none where there is none.
pub fn glance(global: &Global) -> Option<Glance> {
    Surroundings::at_a_glance(global).ok()?.glance().ok()
}

fn write(out: &mut dyn Write, look: &Look, status: &Status, titles: &Titles) -> io::Result<()> {
    let paint = look.paint;
    let word = |text: &str| paint.dim(format!("{text:<COLUMN$}"));
    writeln!(out, "{}{}", word("workspace"), escape_path(&status.path))?;
    match status.folder {
        FolderState::Same => {}
        FolderState::Other => {
            let text = "the folder here is not the one that was captured";
            writeln!(out, "{} {text}", paint.warn("warning:"))?;
        }
        FolderState::Missing => {
            let back = call("rewind").asking("TARGET");
            writeln!(out, "{}", look.text(warning(text!["the folder is gone; ", back, " brings it back"])))?;
        }
    }
    for operation in &status.pending {
        let waits = match status.folder {
            FolderState::Same => "has not ended; nothing is captured until it has",
            FolderState::Other | FolderState::Missing => "was cut off and waits for its folder",
        };
        let text = format!(
            "{} {} of {} {waits}",
            operation.kind.as_str(),
            operation.id.short(),
            words::age(operation.began_at, &look.now)
        );
        writeln!(out, "{} {text}", paint.warn("warning:"))?;
    }
    if status.history_lost {
        let text = text!["some of what was captured is gone or incomplete; ", call("verify"), " names it"];
        writeln!(out, "{}", look.text(warning(text)))?;
    }
    match &status.last {
        Some(last) => {
            let age = words::age(last.created_at, &look.now);
            writeln!(out, "{}{}, {age}", word("last"), look.text(words::label(last)))?;
        }
        None => writeln!(out, "{}nothing captured yet", word("last"))?,
    }
    if let Some(gap) = &status.not_captured {
        let text =
            format!("the last event was not captured, {}, {}", words::age(gap.at, &look.now), owners::gap(gap, &[]));
        unprotected(out, look, text)?;
    }
    if let Some(last) = status.waiting.last() {
        let text = status::waiting(&status.waiting, words::age(last.at, &look.now));
        unprotected(out, look, text)?;
    }
    if let Some(reason) = &status.unwritable {
        unprotected(out, look, format!("nothing can be captured: {reason}"))?;
    }
    if let Some(rewound) = &status.rewound {
        writeln!(out, "{}{}", word("rewound"), look.text(status::rewound(rewound, titles, &look.now)))?;
    }
    for session in &status.sessions {
        let label = if session.running { "at work" } else { "idle" };
        writeln!(out, "{}{}", word(label), look.text(status::open_session(session, &look.now)))?;
    }
    if let Some(last) = status.gaps.last() {
        let count = words::plural(status.gaps.len() as u64, "gap");
        let text = format!("{count} in the last session; the last {}", owners::gap(last, &[]));
        row(out, look, "gaps", Text::new(Style::Warn, text))?;
    }
    if status.folder != FolderState::Missing {
        match &status.since {
            Some(since) => {
                let text = text![turns::since(since, titles), ": ", words::changes(&since.changes)];
                writeln!(out, "{}{}", word("since"), look.text(text))?;
                files::write(out, look, "  ", &status.since_files)?;
            }
            None if status.last.is_some() => {
                writeln!(out, "{}that checkpoint: {}", word("since"), words::changes(&status.changes))?;
                files::write(out, look, "  ", &status.files)?;
            }
            // Before the first capture everything is new: a list of all files says nothing.
            None => writeln!(out, "{}{}", word("to capture"), words::changes(&status.changes))?,
        }
        let lines = skipped::lines(&status.taken_in, look.lines(5));
        for (at, line) in lines.iter().enumerate() {
            writeln!(out, "{}{line}", word(if at == 0 { "not yet" } else { "" }))?;
        }
        if !lines.is_empty() {
            let text = "the last checkpoint left that out; the next one has it";
            writeln!(out, "{}{}", word(""), paint.dim(text))?;
        }
        // Where nothing is protected, "not captured: nothing" would say the opposite.
        let is_protected = status.not_captured.is_none() && status.waiting.is_empty() && status.unwritable.is_none();
        if status.skipped.is_empty() && is_protected {
            writeln!(out, "{}{}", word("not captured"), if lines.is_empty() { "nothing" } else { "nothing else" })?;
        }
        for (at, line) in skipped::lines(&status.skipped, look.lines(5)).iter().enumerate() {
            writeln!(out, "{}{line}", word(if at == 0 { "not captured" } else { "" }))?;
        }
        unread::write_unread_rules(out, look, &status.unread_rules)?;
        for worktree in &status.unprotected {
            let text = format!("{}: a worktree that only sessions in it capture", escape_path(worktree));
            row(out, look, "not protected", Text::new(Style::Warn, text))?;
        }
    }
    let used = format!("{} of {}", words::size(status.size), words::size(status.budget));
    let count = words::plural(status.checkpoints, "checkpoint");
    row(out, look, "store", format!("{count}, {used}, in {}", escape_path(&status.store)))
}

/// A line with its word before it; what does not fit stands beneath its beginning.
fn row(out: &mut dyn Write, look: &Look, word: &str, text: impl Into<Text>) -> io::Result<()> {
    let word = Text::new(Style::Dim, format!("{word:<COLUMN$}"));
    writeln!(out, "{}", look.wrapped(text![word, text], COLUMN))
}

fn unprotected(out: &mut dyn Write, look: &Look, text: impl Into<Text>) -> io::Result<()> {
    let word = Text::new(Style::Alarm, "not protected:");
    writeln!(out, "{}", look.wrapped(text![word, " ", text], COLUMN))
}

/// Where the texts of a status begin.
const COLUMN: usize = 14;
