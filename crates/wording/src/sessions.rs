//! Sessions: what they are called, where they come from, and how they stand.

use piton_engine::model::Rank;
use piton_engine::model::conversation::Began;
use piton_engine::view::{OriginView, SessionView};

use crate::text::{Style, Text};
use crate::words::{Now, age, plural};

/// What a session is called: its name, else the first thing that was asked of it.
pub fn title(session: &SessionView) -> Text {
    match (&session.name, &session.title) {
        (Some(name), _) => Text::new(Style::Bold, name),
        (None, Some(title)) => Text::new(Style::Plain, title.trim()),
        (None, None) => Text::new(Style::Dim, "(nothing asked yet)"),
    }
}

/// How a branch left its parent, and where: `rewind at t3`.
pub fn left_at(origin: &OriginView, is_short: bool) -> String {
    let how = match origin.how {
        Began::Rewind => "rewind",
        Began::Fork => "fork",
        Began::SummaryFrom | Began::SummaryUpTo => "summary",
    };
    let at = if is_short { "" } else { "at " };
    format!("{how} {at}t{}", origin.turn)
}

/// What a person made of a session; nothing where that is nothing particular.
pub fn rank(rank: Rank) -> Text {
    match rank {
        Rank::Plain => Text::default(),
        Rank::Main => Text::new(Style::Good, "main line"),
        Rank::Archived => Text::new(Style::Dim, "archived"),
        Rank::Deleted => Text::new(Style::Warn, "deleted"),
    }
}

/// That it is where the user is, and what a person made of it.
pub fn marks(session: &SessionView, is_short: bool) -> Text {
    let here = match (session.current, is_short) {
        (false, _) => Text::default(),
        (true, true) => Text::new(Style::Bold, "here"),
        (true, false) => Text::new(Style::Bold, "you are here"),
    };
    let rank = rank(session.rank);
    let comma = if here.is_empty() || rank.is_empty() { "" } else { ", " };
    here.and(Style::Plain, comma).and_all(rank)
}

/// Whether its agent is at work, when it was heard last, and what is missing of it.
pub fn state(session: &SessionView, now: &Now) -> Text {
    let last = age(session.last_at, now);
    let text = match session.ended_at {
        Some(at) => Text::new(Style::Dim, format!("ended {}", age(at, now))),
        None if session.live => Text::new(Style::Good, "at work").and(Style::Plain, format!(", heard {last}")),
        None => Text::new(Style::Dim, format!("last heard {last}")),
    };
    let text = match session.gaps {
        0 => text,
        gaps => text.and(Style::Plain, ", ").and(Style::Warn, plural(gaps, "gap")),
    };
    match rank(session.rank) {
        rank if rank.is_empty() => text,
        rank => text.and(Style::Plain, ", ").and_all(rank),
    }
}
