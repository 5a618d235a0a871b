//! Sessions: what they are called, where they come from, and how they stand.

use std::collections::HashSet;

use piton_engine::model::conversation::Began;
use piton_engine::model::{Rank, SessionId};
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
        None if session.running => Text::new(Style::Good, "at work").and(Style::Plain, format!(", heard {last}")),
        None if session.live => Text::new(Style::Plain, format!("idle, heard {last}")),
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

/// The same without its ages, where there is little room; nothing for one that is neither at work nor anything else.
pub fn short_state(session: &SessionView) -> Text {
    let life = match session.ended_at {
        None if session.running => Text::new(Style::Good, "at work"),
        None if session.live => Text::new(Style::Plain, "idle"),
        Some(_) => Text::new(Style::Dim, "ended"),
        None => Text::default(),
    };
    let gaps = if session.gaps > 0 { Text::new(Style::Warn, plural(session.gaps, "gap")) } else { Text::default() };
    let parts = [life, gaps, rank(session.rank)].into_iter().filter(|part| !part.is_empty());
    Text::join(parts, ", ")
}

/// A session and what stands before it.
#[derive(Clone, Debug)]
pub struct TreeRow<'a> {
    /// The lines of the tree, such as `│  └─ `.
    pub prefix: String,
    /// Each comes once.
    pub session: &'a SessionView,
}

/// The rows of all trees. Of a tree that is deeper than `widest` columns only the last levels are drawn.
pub fn tree(sessions: &[SessionView], widest: usize) -> Vec<TreeRow<'_>> {
    let is_listed: HashSet<&SessionId> = sessions.iter().map(|session| &session.id).collect();
    let parent = |session: &SessionView| session.origin.as_ref().map(|origin| origin.parent.clone());
    let is_root = |session: &&SessionView| parent(session).is_none_or(|parent| !is_listed.contains(&parent));
    let mut seen: HashSet<&SessionId> = HashSet::new();
    let mut rows = Vec::new();
    // What goes in a circle, in a record that was tampered with, hangs from nothing and comes last.
    for root in sessions.iter().filter(is_root).chain(sessions) {
        let mut left = vec![(root, String::new(), String::new())];
        while let Some((session, prefix, below)) = left.pop() {
            if !seen.insert(&session.id) {
                continue;
            }
            let mut branches: Vec<&SessionView> =
                sessions.iter().filter(|other| parent(other).as_ref() == Some(&session.id)).collect();
            branches.sort_by_key(|branch| branch.origin.as_ref().map(|origin| (origin.turn, origin.at)));
            let last = branches.len().saturating_sub(1);
            for (at, branch) in branches.into_iter().enumerate().rev() {
                let (line, on) = if at == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
                left.push((branch, format!("{below}{line}"), format!("{below}{on}")));
            }
            let too_many = prefix.chars().count().saturating_sub(widest / 3 * 3);
            rows.push(TreeRow { prefix: prefix.chars().skip(too_many).collect(), session });
        }
    }
    rows
}
