//! `piton show`: one turn, what it did and whether that stands; or one checkpoint, what changed in it and what it left out.

mod turn;

use std::io::{self, Write};
use std::process::ExitCode;

use piton_engine::view::{OwnedFile, SessionView, Shown, TurnShown};
use piton_engine::{TargetError, TurnOptions, Workspace};
use piton_wording::checkpoints::{git_state, place};
use piton_wording::escape::{escape, escape_view};
use piton_wording::owners::Names;
use piton_wording::{Failure, Titles, owners, skipped, words};
use serde::Serialize;

use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::Surroundings;
use crate::files;
use crate::help::Example;
use crate::titles;
use crate::unread;

/// Show a turn: its prompt, what it did, and whether it was taken back; or a checkpoint
///
/// `t3` is turn 3: its prompt, its tool calls, the files that they changed and how that is known, your own edits
/// meanwhile, and the diff of each file. `t3.2` is its second tool call.
///
/// Anything else is a checkpoint: what changed in it, who did it, and what it left out. Next to each path is who
/// changed it and how that is known: a step that named the file, the only tool that ran when it changed, you, or
/// `unsure`. The page of a turn names the checkpoint just before it.
///
/// On a terminal, long lists are cut; a file or pipe gets everything.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A turn such as t3, a step such as t3.2, or a checkpoint: the beginning of an id, a name, t3.end, an age such
    /// as 10m, start
    target: String,
    /// For a turn, count the lines that differ instead of showing them
    #[arg(long)]
    stat: bool,
}

impl Args {
    /// Sets what goes without saying where it is typed to an agent: whole contents are too much to read there.
    pub fn settle_inside(&mut self) -> Result<(), Failure> {
        self.stat = true;
        Ok(())
    }
}

pub const EXAMPLES: [Example; 5] = [
    Example::Call("show t3", "what turn 3 did"),
    Example::Call("show t3.2", "what its second tool call did"),
    Example::Call("show t3.end", "the checkpoint after it: the files as it left them"),
    Example::Call("show before-refactor", ""),
    Example::Shell("piton show t3 --json | jq '.turn.diffs[].path'", ""),
];

/// What `--json` prints of a turn: the checkpoint just before it as for any checkpoint, and the turn.
#[derive(Serialize)]
struct TurnDocument<'a> {
    #[serde(flatten)]
    before: Option<Shown>,
    turn: &'a TurnShown,
}

/// Equal lines around each difference.
const CONTEXT: u32 = 3;

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<ExitCode, Failure> {
    let workspace = Surroundings::read(global)?.open(console)?;
    let options = TurnOptions { context: CONTEXT, ..TurnOptions::default() };
    if let Some(shown) = workspace.turn_shown(&args.target, &options)? {
        return show_turn(&shown, args, &workspace, console);
    }
    let shown = workspace.show(&args.target)?;
    let sessions = if console.is_json() { Vec::new() } else { workspace.sessions()?.sessions };
    let titles = match (&shown.checkpoint.checkpoint.operation, console.is_json()) {
        (Some(_), false) => titles::of_all(&workspace, &Names::of(&sessions))?,
        _ => Titles::default(),
    };
    console.print(&shown, |out, look| write(out, look, &shown, &titles, &sessions))?;
    Ok(unread::say_unreadable(console, &shown.unreadable))
}

fn show_turn(
    shown: &TurnShown,
    args: &Args,
    workspace: &Workspace,
    console: &mut Console,
) -> Result<ExitCode, Failure> {
    if console.is_json() {
        let before = match workspace.show(&args.target) {
            Ok(before) => Some(before),
            Err(TargetError::Gap { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        console.print(&TurnDocument { before, turn: shown }, |_, _| Ok(()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let sessions = workspace.sessions()?.sessions;
    let titles = titles::of_all(workspace, &Names::of(&sessions))?;
    let contents = if args.stat { turn::Contents::Counted } else { turn::Contents::Whole };
    console.print(shown, |out, look| turn::write(out, look, shown, &titles, &sessions, contents))?;
    Ok(ExitCode::SUCCESS)
}

fn write(out: &mut dyn Write, look: &Look, shown: &Shown, titles: &Titles, sessions: &[SessionView]) -> io::Result<()> {
    let paint = look.paint;
    let names = Names::of(sessions);
    let checkpoint = &shown.checkpoint.checkpoint;
    let mut line = |word: &str, text: String| writeln!(out, "{}{text}", paint.dim(format!("{word:<14}")));
    line("checkpoint", paint.id(&checkpoint.id))?;
    if let Some(name) = &checkpoint.name {
        line("name", paint.bold(escape(name)))?;
    }
    if let Some(annotation) = &checkpoint.annotation {
        line("annotation", escape(annotation).into_owned())?;
    }
    let when = look.surface.time(checkpoint.created_at);
    let age = words::age(checkpoint.created_at, &look.now);
    // An old one's age is its date already.
    let age = if when.starts_with(&age) { String::new() } else { format!(" ({age})") };
    line("captured", format!("{when}{age}, {}", escape(&titles.why(checkpoint))))?;
    if let Some(place) = place(checkpoint, sessions, &names) {
        line("place", place)?;
    }
    if checkpoint.pinned {
        line("pinned", "yes: it was made by hand".to_owned())?;
    }
    if let Some(git) = &shown.git {
        line("git", git_state(git))?;
    }
    if let Some(parent) = &checkpoint.parent {
        line("follows", paint.id(parent.short()))?;
    }
    for gap in &shown.gaps {
        line("gap", format!("{} ({})", owners::gap(gap, &[]), words::age(gap.at, &look.now)))?;
    }
    if let Some(size) = checkpoint.size {
        line("size", format!("{} in all its files", words::size(size)))?;
    }
    let changes = match checkpoint.changes.is_empty() {
        true => "nothing".to_owned(),
        false => words::changes(&checkpoint.changes),
    };
    line("changed", changes)?;
    write_files(out, look, &shown.files, &names)?;
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

/// What changed, each path with its owner.
fn write_files(out: &mut dyn Write, look: &Look, list: &[OwnedFile], names: &Names) -> io::Result<()> {
    let shown = look.lines(files::ON_A_TERMINAL).min(list.len());
    for file in &list[..shown] {
        let owner = file.owner.as_ref().map(|owner| names.whole(owner)).unwrap_or_default();
        files::write_line(out, look, "  ", &file.change, &owner)?;
    }
    files::write_rest(out, look, "  ", list.len() - shown)
}
