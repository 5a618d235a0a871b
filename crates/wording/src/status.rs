//! How a workspace stands: sessions at work, events that wait, room that is used up.

use std::fmt::Display;

use piton_engine::view::{GapView, RewoundView, SessionView};

use crate::call::call;
use crate::text::{Style, Text};
use crate::words::{self, Now};
use crate::{Titles, owners, text};

/// What to do where captures have no room left.
pub fn more_room(budget: u64) -> Text {
    let more = call("init").with("--budget", format!("{}G", words::gibibytes(budget.saturating_mul(2))));
    text!["allow more: ", more, "; or name what to leave out in `.pitonignore`"]
}

/// What to say of events that wait to be recorded, given how long ago the last of them was.
pub fn waiting(events: &[GapView], age: impl Display) -> String {
    let count = words::plural(events.len() as u64, "event");
    let last = events.last().map(|last| owners::gap(last, &[])).unwrap_or_default();
    format!("{count} could not be recorded yet; the last {age}, {last}")
}

/// A session at work: `claude-code kmzqwxyl "a name", t3, heard 2 min ago`.
pub fn at_work(session: &SessionView, now: &Now) -> Text {
    let turn = if session.turns == 0 { "before its first turn".to_owned() } else { format!("t{}", session.turns) };
    let name = session.name.as_deref().map(|name| format!(" \"{name}\"")).unwrap_or_default();
    let heard = words::age(session.last_at, now);
    text![&session.agent, " ", Text::new(Style::Id, session.id.short()), name, ", ", turn, ", heard ", heard]
}

/// Where a rewind that nothing followed went, from where, and the way back.
pub fn rewound(rewound: &RewoundView, titles: &Titles, now: &Now) -> Text {
    let operation = &rewound.operation;
    let title = titles.title(operation);
    let from = rewound.from.as_ref().map(|turn| text![", from ", turn]).unwrap_or_default();
    text![title, from, ", ", words::age(operation.began_at, now), "; ", call("redo"), " goes back"]
}
