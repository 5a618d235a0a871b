//! Conflicts as a person reads them: where, why, and what stands against what.

use piton_engine::model::content::Clash;
use piton_engine::model::inverse::Why;
use piton_engine::view::{ConflictView, PathView};

use crate::call::{Flag, flag};
use crate::escape::escape_view;
use crate::lines::{Lines, Room};
use crate::text;
use crate::text::{Style, Text};

/// How to go on, each with what it does.
fn ways(can_be_decided: bool, goes_along: bool) -> Vec<(Flag, &'static str)> {
    let decide = |which: &str| flag("--conflict").arg(which);
    let decisions = [
        (decide("now"), "keeps what is there now"),
        (decide("before"), "brings back what was there before"),
        (decide("markers"), "writes both into the file, where it is text"),
    ];
    let decisions = decisions.into_iter().filter(|_| can_be_decided);
    let mine = goes_along.then(|| (flag("--keep-mine"), "carries your own edits over"));
    decisions.chain(mine).chain([(flag("--partial"), "leaves these files as they are, and does the rest")]).collect()
}

/// How to go on, as a list. `can_be_decided` is whether a decision settles any of them; `goes_along`, whether any is about what
/// only goes along with what is asked for.
pub fn say_ways(out: &mut Lines, can_be_decided: bool, goes_along: bool) {
    out.say("Nothing is done while a conflict is open:");
    let ways = ways(can_be_decided, goes_along);
    let width = |way: &Flag| way.to_words().iter().map(|word| word.len() + 1).sum::<usize>();
    let widest = ways.iter().map(|(way, _)| width(way)).max().unwrap_or_default();
    for (way, does) in ways {
        let space = " ".repeat(widest - width(&way) + 2);
        out.say(text!["  ", way, space, does]);
    }
}

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
        // A folder that stands around another of the paths is no file of that name.
        let all = || [&conflict.path].into_iter().chain(&conflict.others).filter_map(PathView::exact);
        let is_around = |one: &PathView| {
            one.exact().is_some_and(|folder| all().any(|path| path != folder && path.is_within(&folder)))
        };
        let (around, others): (Vec<_>, Vec<_>) = conflict.others.iter().partition(|one| is_around(one));
        let around: Vec<_> = around.into_iter().map(escape_view).collect();
        let others: Vec<_> = others.into_iter().map(escape_view).collect();
        let around = match &around[..] {
            [] => Text::default(),
            around => Text::new(Style::Dim, format!(" (something else would take the place of {})", around.join(", "))),
        };
        let others = match &others[..] {
            [] => Text::default(),
            others if conflict.why == Why::Lines => Text::new(Style::Dim, format!(" (from {})", others.join(", "))),
            others if conflict.why == Why::Tied => Text::new(Style::Dim, format!(" (with {})", others.join(", "))),
            others => Text::new(Style::Dim, format!(" (the same file as {})", others.join(", "))),
        };
        out.say(text!["  ", path, ": ", conflict.why.describe(), others, around, decided]);
        // Where this is part of a refusal, its hints say so.
        if let Some(path) = conflict.path.exact().filter(|_| is_whole && conflict.why == Why::InTheWay) {
            let path = flag("--path").arg(path.as_path());
            out.say(text![
                "    ",
                path,
                " asks for the whole of it, and puts the folder in the place of what is there"
            ]);
        }
        for clash in conflict.clashes.iter().take(places) {
            say_clash(out, clash, lines, is_cut);
            is_all &= clash.ours.len() <= lines && clash.theirs.len() <= lines;
        }
        is_all &= conflict.clashes.len() <= places;
        out.rest("    ", conflict.clashes.len().saturating_sub(places));
    }
    if !is_all {
        out.say(text!["  ", flag("--preview"), " shows all of it"].in_style(Style::Dim));
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
