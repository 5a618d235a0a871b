//! `piton sessions`: the sessions that agents had here.

use std::io::{self, Write};

use piton_engine::model::Rank;
use piton_engine::view::{SessionView, Sessions};
use piton_wording::owners::Names;
use piton_wording::sessions::{self, title};
use piton_wording::{Failure, Style, Text, call, text, words};

use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::Surroundings;
use crate::help::Example;
use crate::table::{Cell, ShownText, line, widest};
use crate::tree;

/// List the sessions of agents in this workspace
///
/// The one that reported last comes first; `*` marks those that are open, at work or idle. Each line has the session's id, its agent, when
/// it began, its name or first prompt, how many turns it had and what they changed. A branch is marked as one.
///
/// `--tree` shows each branch below the session that it left: at which turn, how and when; and where you are.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// As a tree: branches below the sessions that they left
    #[arg(long)]
    tree: bool,
    /// Include deleted branches
    #[arg(long)]
    all: bool,
}

/// Narrower than this, a branch does not say whose it is.
const WIDE: usize = 100;

pub const EXAMPLES: [Example; 4] = [
    Example::Call("sessions", ""),
    Example::Call("sessions --tree", ""),
    Example::Call("log --session kmzq", ""),
    Example::Shell("piton sessions --json | jq -r '.sessions[] | select(.live) | .id'", ""),
];

pub fn run(args: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let workspace = Surroundings::read(global)?.open(console)?;
    let mut sessions = workspace.sessions()?;
    let names = Names::of(&sessions.sessions);
    sessions.sessions.retain(|session| args.all || session.rank != Rank::Deleted);
    let sessions = sessions;
    console.print(&sessions, |out, look| match args.tree {
        true => tree::write(out, look, &sessions.sessions),
        false => write(out, look, &sessions, &names),
    })?;
    if sessions.sessions.is_empty() {
        console.advise(text![
            "no agent has reported here yet; ",
            call("setup"),
            " adds piton to one, ",
            call("run"),
            " runs one"
        ]);
    }
    Ok(())
}

/// A line for each.
fn write(out: &mut dyn Write, look: &Look, sessions: &Sessions, names: &Names) -> io::Result<()> {
    let all = &sessions.sessions;
    let agents = widest(all.iter().map(|s| Text::new(Style::Plain, &s.agent).width()));
    let began_at = |s: &SessionView| match look.width < WIDE {
        true => words::short_age(s.started_at, &look.now),
        false => words::age(s.started_at, &look.now),
    };
    let began = widest(all.iter().map(|s| began_at(s).len()));
    let turns = widest(all.iter().map(|s| turns_of(s).len()));
    let counts = widest(all.iter().map(|s| words::signs(&s.changes).width()));
    let ends = widest(all.iter().map(|s| state(s, look, names).width()));
    let taken = 2 + 10 + agents + 2 + began + 2 + 2 + turns + 2 + counts + 2 + ends;
    let titles = widest(all.iter().map(|s| title(s).width())).min(look.width.saturating_sub(taken).clamp(12, 60));
    for session in all {
        let marker = if session.live { Text::new(Style::Bold, "*") } else { Text::default() };
        let signs = words::signs(&session.changes).cut(look, usize::MAX);
        let cells = [
            (marker.cut(look, 1), 2),
            (Text::new(Style::Id, session.id.short()).cut(look, 8), 10),
            (Text::new(Style::Plain, &session.agent).cut(look, agents), agents + 2),
            (Text::new(Style::Dim, began_at(session)).cut(look, began), began + 2),
            (cut_title(session, look, titles), titles + 2),
            (Cell::plain(turns_of(session)), turns + 2),
            (signs, counts + 2),
            (state(session, look, names).cut(look, usize::MAX), 0),
        ];
        writeln!(out, "{}", line(&cells))?;
    }
    Ok(())
}

/// A title that fits. That it is a branch's is never cut off: its parent is called the same.
fn cut_title(session: &SessionView, look: &Look, width: usize) -> Cell {
    const MARK: &str = " (branch)";
    let whole = title(session);
    let base = session.title.as_deref().and_then(|title| title.trim().strip_suffix(MARK));
    match base.filter(|_| session.name.is_none() && whole.width() > width) {
        Some(base) => {
            let cut = Text::new(Style::Plain, base).cut(look, width.saturating_sub(MARK.len()));
            Cell { painted: cut.painted + MARK, width: cut.width + MARK.len() }
        }
        None => whole.cut(look, width),
    }
}

/// How it stands, and what is missing of it.
fn state(session: &SessionView, look: &Look, names: &Names) -> Text {
    let text = match look.width < WIDE {
        true => sessions::short_state(session),
        false => sessions::state(session, &look.now),
    };
    let comma = if text.is_empty() { "" } else { ", " };
    match &session.origin {
        // On a narrow terminal the tree says the rest.
        Some(origin) if look.width < WIDE => {
            text.and(Style::Dim, format!("{comma}{}", sessions::left_at(origin, true)))
        }
        Some(origin) => {
            let left = sessions::left_at(origin, false);
            text.and(Style::Dim, format!(", {left} of {}", names.session(&origin.parent)))
        }
        None => text,
    }
}

fn turns_of(session: &SessionView) -> String {
    words::plural(u64::from(session.turns), "turn")
}
