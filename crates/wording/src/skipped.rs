//! What was left out, told by its reason: a list of ten thousand paths tells nobody anything.

use piton_engine::model::SkipReason;
use piton_engine::view::SkippedView;

use crate::escape::escape_view;
use crate::words::grouped;

/// One line for each reason: `3 ignored: node_modules, target, .venv`, with at most `few` of its paths.
pub fn lines(skipped: &[SkippedView], few: usize) -> Vec<String> {
    let line = |(reason, group): (SkipReason, Vec<&SkippedView>)| {
        let named: Vec<_> = group.iter().take(few).map(|s| escape_view(&s.path)).collect();
        let more = match group.len() - named.len() {
            0 => String::new(),
            more => format!(" and {} more", grouped(more as u64)),
        };
        format!("{} {}: {}{more}", grouped(group.len() as u64), word(reason), named.join(", "))
    };
    groups(skipped).into_iter().map(line).collect()
}

/// What is skipped, without what is told of by itself.
pub fn others(skipped: &[SkippedView], told: &[SkippedView]) -> Vec<SkippedView> {
    skipped.iter().filter(|one| !told.iter().any(|other| other.path == one.path)).cloned().collect()
}

/// In one line: `3 ignored, 1 unreadable`.
pub fn summary(skipped: &[SkippedView]) -> String {
    let part = |(reason, group): &(SkipReason, Vec<_>)| format!("{} {}", grouped(group.len() as u64), word(*reason));
    groups(skipped).iter().map(part).collect::<Vec<_>>().join(", ")
}

/// A reason without a comma of its own, for lists.
pub fn word(reason: SkipReason) -> &'static str {
    match reason {
        SkipReason::Special => "socket/pipe/device",
        other => other.describe(),
    }
}

/// By reason, the largest group first.
pub fn groups(skipped: &[SkippedView]) -> Vec<(SkipReason, Vec<&SkippedView>)> {
    let mut groups: Vec<(SkipReason, Vec<&SkippedView>)> = Vec::new();
    for one in skipped {
        match groups.iter_mut().find(|(reason, _)| *reason == one.reason) {
            Some((_, group)) => group.push(one),
            None => groups.push((one.reason, vec![one])),
        }
    }
    groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.len()));
    groups
}
