//! `piton branch compare`: two conversations beside each other.

use std::io::{self, Write};

use piton_engine::view::{Comparison, SessionView, TurnView};
use piton_engine::{CompareOptions, Workspace};
use piton_wording::escape::escape_view;
use piton_wording::owners::Names;
use piton_wording::sessions::title;
use piton_wording::{Failure, Style, Text, words};

use crate::commands::diff::write_stat;
use crate::console::{Console, Look};
use crate::patch;
use crate::table::{Cell, ShownText, line};

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// One session
    a: String,
    /// The other
    b: String,
    /// Count the lines that differ, file by file; the default
    #[arg(long, group = "form")]
    stat: bool,
    /// Show the contents that differ
    #[arg(long, group = "form")]
    patch: bool,
    /// Equal lines around each difference
    #[arg(short = 'U', long = "context", value_name = "N", default_value_t = 3)]
    context: u32,
}

const EXAMPLES: &str = "\
Examples:
  piton branch compare kmzq lmno
  piton branch compare kmzq \"with a queue\" --patch
  piton branch compare kmzq lmno --json | jq .parted";

/// Narrower than this, one comes beneath the other.
const NARROW: usize = 60;

pub fn run(args: &Args, workspace: &Workspace, console: &mut Console) -> Result<(), Failure> {
    let mut compared = workspace.compare(&args.a, &args.b, CompareOptions { context: args.context })?;
    if !args.patch {
        compared.diff.iter_mut().flat_map(|diff| &mut diff.files).for_each(|file| file.hunks.clear());
    }
    let names = Names::of(&workspace.sessions()?.sessions);
    console.print(&compared, |out, look| write(out, look, &compared, &names, args.patch))
}

fn write(out: &mut dyn Write, look: &Look, compared: &Comparison, names: &Names, is_patch: bool) -> io::Result<()> {
    let Comparison { a, b, parted, turns_a, turns_b, .. } = compared;
    match parted {
        Some(parted) => {
            let id = look.paint.id(names.session(&parted.session));
            writeln!(out, "parted before turn {} of session {id}", parted.turn)?;
        }
        None => writeln!(out, "they have nothing in common: neither is a branch of the other, nor both of a third")?,
    }
    let (of_a, of_b) = (column(look, a, turns_a, names), column(look, b, turns_b, names));
    if look.width < NARROW {
        for line in of_a.iter().chain(&of_b) {
            writeln!(out, "{}", line.painted.trim_end())?;
        }
    } else {
        let width = half(look);
        for at in 0..of_a.len().max(of_b.len()) {
            let cell = |lines: &[Cell]| lines.get(at).cloned().unwrap_or_default();
            writeln!(out, "{}", line(&[(cell(&of_a), width + 3), (cell(&of_b), 0)]))?;
        }
    }
    let ends = [(a, &compared.end_a), (b, &compared.end_b)];
    for (session, _) in ends.iter().filter(|(_, end)| end.is_none()) {
        let id = names.session(&session.id);
        writeln!(out, "session {id} has no checkpoint of its own yet: there is no end state to compare")?;
    }
    let Some(diff) = &compared.diff else { return Ok(()) };
    let (from, to) = (names.session(&a.id), names.session(&b.id));
    if diff.files.is_empty() {
        return writeln!(out, "their files are the same in the end");
    }
    writeln!(out, "from the end of {from} to the end of {to}:")?;
    if is_patch {
        return diff.files.iter().try_for_each(|file| patch::write(out, look, file));
    }
    write_stat(out, look, diff)
}

fn half(look: &Look) -> usize {
    if look.width < NARROW { look.width } else { look.width.saturating_sub(3) / 2 }
}

/// A session's turns, one beneath the other: number, prompt, counts; and the paths that it changed.
fn column(look: &Look, session: &SessionView, turns: &[TurnView], names: &Names) -> Vec<Cell> {
    let width = half(look);
    let heading = Text::new(Style::Id, names.session(&session.id)).and(Style::Plain, "  ").and_all(title(session));
    let mut lines = vec![heading.cut(look, width)];
    if turns.is_empty() {
        lines.push(Text::new(Style::Dim, "  no turn since").cut(look, width));
    }
    for turn in turns {
        let counts = words::signs(&turn.changes).cut(look, usize::MAX);
        let number = format!("t{}", turn.number);
        let room = width.saturating_sub(2 + number.len() + 2 + 2 + counts.width);
        let prompt = turn.prompt.as_deref().and_then(|text| text.lines().find(|line| !line.trim().is_empty()));
        let prompt = prompt.map_or_else(
            || Text::new(Style::Dim, "(piton came in the middle of this turn)"),
            |line| Text::new(Style::Plain, line.trim()),
        );
        let cells = [
            (Cell::default(), 2),
            (Text::new(Style::Id, &number).cut(look, number.len()), number.len() + 2),
            (prompt.cut(look, room), room + 2),
            (counts.clone(), 0),
        ];
        lines.push(Cell { width: 2 + number.len() + 2 + room + 2 + counts.width, painted: line(&cells) });
        if !turn.files.is_empty() {
            let paths = turn.files.iter().map(|file| format!("{} {}", words::sign(file.kind), escape_view(&file.path)));
            let indent = " ".repeat(2 + number.len() + 2);
            let text = Text::new(Style::Dim, format!("{indent}{}", paths.collect::<Vec<_>>().join("  ")));
            lines.push(text.cut(look, width));
        }
    }
    lines
}
