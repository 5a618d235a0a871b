//! Conflicts as a person reads them: where, why, and what stands against what.

use piton_engine::model::content::Clash;
use piton_engine::model::inverse::Why;
use piton_engine::view::ConflictView;

use crate::escape::escape_view;
use crate::lines::{Lines, Room};
use crate::text;
use crate::text::{Style, Text};

/// How to go on where no decision settles any of them.
pub const ONLY_PARTIAL: [&str; 2] = [
    "Nothing is done while a conflict is open:",
    "  --partial           leaves these files as they are, and does the rest",
];

/// How to go on.
pub const WAYS: [&str; 5] = [
    "Nothing is done while a conflict is open:",
    "  --conflict ours     keeps what is there now",
    "  --conflict theirs   brings back what was there before",
    "  --conflict markers  writes both into the file, where it is text",
    "  --partial           leaves these files as they are, and does the rest",
];

/// As many places of a file are shown before somebody is asked.
const PLACES: usize = 3;
/// As many lines of a side.
const LINES: usize = 4;

/// Each with its places; all of them, or as much as a person reads before answering.
pub fn say(out: &mut Lines, room: &Room, conflicts: &[ConflictView], is_whole: bool) {
    if conflicts.is_empty() {
        return;
    }
    let is_cut = !is_whole && room.is_short;
    let (places, lines) = if is_cut { (PLACES, LINES) } else { (usize::MAX, usize::MAX) };
    out.say("Conflicts:");
    let mut is_all = true;
    for conflict in conflicts {
        let decided = Text::new(Style::Dim, if conflict.decided { " (decided)" } else { "" });
        let path = Text::new(Style::Bad, escape_view(&conflict.path));
        let others: Vec<_> = conflict.others.iter().map(escape_view).collect();
        let others = match &others[..] {
            [] => Text::default(),
            others if conflict.why == Why::Lines => Text::new(Style::Dim, format!(" (from {})", others.join(", "))),
            others if conflict.why == Why::Tied => Text::new(Style::Dim, format!(" (with {})", others.join(", "))),
            others => Text::new(Style::Dim, format!(" (the same file as {})", others.join(", "))),
        };
        out.say(text!["  ", path, ": ", conflict.why.describe(), others, decided]);
        for clash in conflict.clashes.iter().take(places) {
            say_clash(out, clash, lines, is_cut);
            is_all &= clash.ours.len() <= lines && clash.theirs.len() <= lines;
        }
        is_all &= conflict.clashes.len() <= places;
        out.rest("    ", conflict.clashes.len().saturating_sub(places));
    }
    if !is_all {
        out.say(text!["  ", Text::new(Style::Dim, "`--preview` shows all of it")]);
    }
}

fn say_clash(out: &mut Lines, clash: &Clash, most: usize, is_cut: bool) {
    out.say(text!["    ", Text::new(Style::Dim, format!("line {}", clash.line))]);
    for (label, lines) in [("now", &clash.ours), ("before", &clash.theirs)] {
        let start = |label: &str| {
            let label = Text::new(Style::Bold, format!("{label:<6}"));
            text!["      ", label, " ", Text::new(Style::Dim, "│"), " "]
        };
        if lines.is_empty() {
            out.say(text![start(label), Text::new(Style::Dim, "(nothing)")]);
        }
        for (at, line) in lines.iter().take(most).enumerate() {
            out.show(text![start(if at == 0 { label } else { "" }), line], is_cut);
        }
        let rest = lines.len().saturating_sub(most);
        if rest > 0 {
            out.say(text![start(""), Text::new(Style::Dim, format!("… and {rest} more"))]);
        }
    }
}
