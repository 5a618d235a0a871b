//! `piton sessions`: the sessions that agents had here.

use std::io::{self, Write};

use piton_engine::view::{SessionView, Sessions};

use crate::args::Global;
use crate::console::{Console, Look};
use crate::environment::Surroundings;
use crate::error::Failure;
use crate::paint::Paint;
use crate::table::{Cell, Style, Text, line, widest};
use crate::words;

/// List the sessions of agents in this workspace
///
/// The one that reported last comes first; `*` marks those that are at work. A line has the session's id, its agent, when
/// it began, its name or its first prompt, how many turns it had and what they changed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {}

const EXAMPLES: &str = "\
Examples:
  piton sessions
  piton log --session kmzq
  piton sessions --json | jq -r '.sessions[] | select(.live) | .id'";

pub fn run(_: &Args, global: &Global, console: &mut Console) -> Result<(), Failure> {
    let workspace = Surroundings::read(global)?.open(console)?;
    let sessions = workspace.sessions()?;
    console.print(&sessions, |out, look| write(out, look, &sessions))?;
    if sessions.sessions.is_empty() {
        console.advise("no agent has reported here yet; `piton setup` adds piton to one, `piton run` runs one");
    }
    Ok(())
}

/// A line for each.
fn write(out: &mut dyn Write, look: &Look, sessions: &Sessions) -> io::Result<()> {
    let all = &sessions.sessions;
    let agents = widest(all.iter().map(|s| Text::new(Style::Plain, &s.agent).width()));
    let began = widest(all.iter().map(|s| words::age(s.started_at, look.now).len()));
    let turns = widest(all.iter().map(|s| turns_of(s).len()));
    let counts = widest(all.iter().map(|s| words::signs(&s.changes, Paint::none()).len()));
    let ends = widest(all.iter().map(|s| state(s, look).width()));
    let taken = 2 + 10 + agents + 2 + began + 2 + 2 + turns + 2 + counts + 2 + ends;
    let titles = widest(all.iter().map(|s| title(s).width())).min(look.width.saturating_sub(taken).clamp(12, 60));
    for session in all {
        let marker = if session.live { Text::new(Style::Bold, "*") } else { Text::default() };
        let signs = words::signs(&session.changes, look.paint);
        let signs = Cell { width: words::signs(&session.changes, Paint::none()).len(), painted: signs };
        let began_at = words::age(session.started_at, look.now);
        let cells = [
            (marker.cut(look, 1), 2),
            (Text::new(Style::Id, session.id.short()).cut(look, 8), 10),
            (Text::new(Style::Plain, &session.agent).cut(look, agents), agents + 2),
            (Text::new(Style::Dim, began_at).cut(look, began), began + 2),
            (title(session).cut(look, titles), titles + 2),
            (Cell::plain(turns_of(session)), turns + 2),
            (signs, counts + 2),
            (state(session, look).cut(look, usize::MAX), 0),
        ];
        writeln!(out, "{}", line(&cells))?;
    }
    Ok(())
}

/// Its name, else the first thing that was asked of it.
fn title(session: &SessionView) -> Text {
    match (&session.name, &session.title) {
        (Some(name), _) => Text::new(Style::Bold, name),
        (None, Some(title)) => Text::new(Style::Plain, title.trim()),
        (None, None) => Text::new(Style::Dim, "(nothing asked yet)"),
    }
}

/// How it stands, and what is missing of it.
fn state(session: &SessionView, look: &Look) -> Text {
    let last = words::age(session.last_at, look.now);
    let text = match session.ended_at {
        Some(at) => Text::new(Style::Dim, format!("ended {}", words::age(at, look.now))),
        None if session.live => Text::new(Style::Good, "at work").and(Style::Plain, format!(", heard {last}")),
        None => Text::new(Style::Dim, format!("last heard {last}")),
    };
    match session.gaps {
        0 => text,
        gaps => text.and(Style::Plain, ", ").and(Style::Warn, words::plural(gaps, "gap")),
    }
}

fn turns_of(session: &SessionView) -> String {
    words::plural(u64::from(session.turns), "turn")
}
