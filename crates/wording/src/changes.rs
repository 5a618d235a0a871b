//! The changes of a session: what, by whom, and all in a line.

use std::collections::BTreeSet;

use piton_engine::model::ownership::{Evidence, Owner};
use piton_engine::model::{ChangeKind, Counts};
use piton_engine::view::{NumberedChange, SessionChanges};

use crate::escape::escape_view;
use crate::owners::Names;
use crate::text::{Style, Text};
use crate::words;

/// `src/auth.ts (modified)`; what was taken back says so and steps back.
pub fn what(change: &NumberedChange) -> Text {
    let (style, word) = match change.change.kind {
        ChangeKind::Created => (Style::Good, "created"),
        ChangeKind::Modified => (Style::Warn, "modified"),
        ChangeKind::Deleted => (Style::Bad, "deleted"),
    };
    let path = escape_view(&change.change.path);
    if change.undone {
        return Text::new(Style::Dim, format!("{path} ({word}, taken back)"));
    }
    Text::new(Style::Plain, path).and(Style::Plain, " ").and(style, format!("({word})"))
}

/// `t1.2 Edit`, `t1.3 Bash (by time alone)`, `unsure: t1.2 or you`, `you`.
pub fn who(change: &NumberedChange, names: &Names) -> Text {
    let owner = &change.change.owner;
    match owner {
        Owner::Step { step, evidence } => {
            let tool = change.tool.as_deref().map(|tool| format!(" {tool}")).unwrap_or_default();
            let remark = if *evidence == Evidence::Time { " (by time alone)" } else { "" };
            Text::new(Style::Id, names.step(step)).and(Style::Plain, tool).and(Style::Dim, remark)
        }
        Owner::Unsure { .. } => {
            Text::new(Style::Warn, "unsure").and(Style::Plain, format!(": {}", names.evidence(owner, &[])))
        }
        Owner::You | Owner::Operation { .. } => Text::new(Style::Bold, names.who(owner)),
    }
}

/// `3 changes to 2 files in 2 turns: 1 created, 1 modified; 1 unsure`.
pub fn summary(all: &SessionChanges) -> String {
    let own: Vec<_> = all.changes.iter().filter(|change| change.number.is_some()).collect();
    let sum = |counts: &Counts| counts.created + counts.modified + counts.deleted;
    let yours = (all.changes.len() - own.len()) as u64 + sum(&all.yours_unlisted);
    let undone = own.iter().filter(|change| change.undone).count() as u64;
    let is_all_undone = undone == own.len() as u64 && all.summary.is_empty();
    let mut parts = Vec::new();
    if own.is_empty() && all.unlisted.is_empty() && !all.unknown.is_empty() {
        parts.push(format!("nothing is known that session {} changed", all.session.id.short()));
    } else if own.is_empty() && all.unlisted.is_empty() {
        parts.push(format!("session {} changed nothing", all.session.id.short()));
    } else if !own.is_empty() {
        let changed = match is_all_undone {
            true => "all taken back".to_owned(),
            false => words::changes(&all.summary),
        };
        let files: BTreeSet<_> = own.iter().map(|change| escape_view(&change.change.path)).collect();
        let turns: BTreeSet<_> = own.iter().map(|change| change.turn).collect();
        parts.push(format!(
            "{} to {} in {}: {}",
            words::plural(own.len() as u64, "change"),
            words::plural(files.len() as u64, "file"),
            words::plural(turns.len() as u64, "turn"),
            changed
        ));
    }
    if !all.unlisted.is_empty() {
        parts.push(format!("{} too many to list", words::plural(sum(&all.unlisted), "change")));
    }
    if undone > 0 && !is_all_undone {
        parts.push(format!("{} taken back", words::grouped(undone)));
    }
    let unsure = own.iter().filter(|change| matches!(change.change.owner, Owner::Unsure { .. })).count() as u64;
    if unsure > 0 {
        parts.push(format!("{} unsure", words::grouped(unsure)));
    }
    if yours > 0 {
        parts.push(format!("{} of yours", words::grouped(yours)));
    }
    parts.join("; ")
}
