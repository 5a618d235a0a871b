//! How a workspace stands: sessions at work, events that wait, room that is used up.

use std::fmt::Display;

use piton_engine::view::{GapView, Glance, RewoundView, SessionView};

use crate::call::call;
use crate::text::{Style, Text};
use crate::words::{self, Now};
use crate::{Titles, owners, text, turns};

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

/// An open session: `claude-code kmzqwxyl "a name", t3, heard 2 min ago`.
pub fn open_session(session: &SessionView, now: &Now) -> Text {
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

/// The last turn, what it changed and how it stands, in a few words: `t5 +1 ~2 running`. Nothing before the first checkpoint.
pub fn short(glance: &Glance) -> Text {
    let mut parts = Vec::new();
    if glance.not_captured.is_some() || glance.waiting > 0 {
        parts.push(Text::new(Style::Alarm, "not protected"));
    }
    match (&glance.turn, glance.last_at) {
        (Some(turn), _) => {
            parts.push(Text::new(Style::Id, &turn.target));
            let signs = words::signs(&turn.changes);
            parts.extend((!turn.changes.is_empty()).then_some(signs));
            // After a rewind, that says more than what became of the turn.
            let is_rewound = glance.rewound.is_some() && !glance.running;
            let remark = if is_rewound { Text::default() } else { turns::remark(turn, glance.running) };
            parts.extend((!remark.is_empty()).then_some(remark));
        }
        (None, Some(_)) => parts.push("captured".into()),
        (None, None) => {}
    }
    if glance.rewound.is_some() {
        parts.push(Text::new(Style::Warn, "rewound"));
    }
    Text::join(parts, " ")
}

/// Where somebody stands: the workspace, and the last thing that an agent was asked there.
pub fn here(glance: &Glance, now: &Now) -> Vec<Text> {
    let path = crate::escape::escape_path(&glance.path);
    let captured = match glance.last_at {
        Some(at) => format!("{}, the last {}", words::plural(glance.checkpoints, "checkpoint"), words::age(at, now)),
        None => "nothing is captured yet".to_owned(),
    };
    let mut lines = vec![text![Text::new(Style::Bold, path), ": ", captured]];
    if let Some(gap) = &glance.not_captured {
        let why = owners::gap(gap, &[]);
        lines.push(text![Text::new(Style::Alarm, "not protected:"), " the last event was not captured, ", why]);
    }
    if let (Some(turn), Some(session)) = (&glance.turn, &glance.session) {
        let what = turns::named(turn.number, turn.prompt.as_deref());
        let changes = match turn.unknown.is_some() && turn.changes.is_empty() {
            true => "what it changed is not known".to_owned(),
            false => words::changes(&turn.changes),
        };
        let session = text![&session.agent, " ", Text::new(Style::Id, session.id.short())];
        let when = if glance.running { "running since " } else { "" };
        let began = words::age(turn.at, now);
        let remark = turns::remark(turn, false);
        let remark = if remark.is_empty() { remark } else { text![" (", remark, ")"] };
        lines.push(text!["last turn: ", what, " of ", session, ", ", when, began, ": ", changes, remark]);
    }
    lines
}
