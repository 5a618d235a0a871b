//! The flat list: every checkpoint, automatic ones too.

use std::io::{self, Write};

use piton_engine::model::Cause;
use piton_engine::view::{CheckpointView, Log};
use piton_wording::owners::Names;
use piton_wording::{Style, Text, Titles, words};

use crate::console::Look;
use crate::table::{Cell, ShownText, line, widest};

/// One line for each checkpoint.
pub fn write(out: &mut dyn Write, look: &Look, log: &Log, here: u32, titles: &Titles, names: &Names) -> io::Result<()> {
    // The newest one that was captured here, which an import does not change.
    let newest = log.checkpoints.iter().position(|c| c.line == here).unwrap_or(0);
    let rows: Vec<_> =
        log.checkpoints.iter().map(|c| (words::age(c.created_at, &look.now), description(c, titles, names))).collect();
    let ages = widest(rows.iter().map(|(age, _)| age.len())) + 2;
    // Names are aligned up to a width that leaves short ones near their counts.
    let counts = widest(log.checkpoints.iter().map(|c| words::signs(&c.changes).width()));
    let others = widest(log.checkpoints.iter().map(|c| words::of_line(c.line, here).len()));
    let room = look.width.saturating_sub(2 + 10 + ages + 2 + counts + if others > 0 { others + 2 } else { 0 });
    let texts = widest(rows.iter().map(|(_, text)| text.width())).min(room.clamp(12, 56));
    for (at, (checkpoint, (age, text))) in log.checkpoints.iter().zip(&rows).enumerate() {
        let marker = if at == newest { Text::new(Style::Bold, "*") } else { Text::default() };
        let other = words::of_line(checkpoint.line, here);
        let counts = words::signs(&checkpoint.changes).cut(look, usize::MAX);
        // A file gets all of a long one.
        let text = text.cut(look, if look.terminal { texts } else { usize::MAX });
        let column = texts.max(text.width) + 2;
        let cells = [
            (marker.cut(look, 1), 2),
            (Text::new(Style::Id, checkpoint.id.short()).cut(look, 8), 10),
            (Text::new(Style::Dim, age).cut(look, ages), ages),
            (text, column),
            (counts.clone(), counts.width + 2),
            (Cell::plain(other), 0),
        ];
        writeln!(out, "{}", line(&cells))?;
    }
    Ok(())
}

/// What a checkpoint is called, or why it exists.
fn description(checkpoint: &CheckpointView, titles: &Titles, names: &Names) -> Text {
    let name = checkpoint.name.as_deref().unwrap_or_default();
    let note = checkpoint.annotation.as_deref().unwrap_or_default();
    let mut text = Text::new(Style::Bold, name);
    if checkpoint.cause == Cause::Manual && !(name.is_empty() && note.is_empty()) {
        let space = if name.is_empty() || note.is_empty() { "" } else { "  " };
        return text.and(Style::Plain, format!("{space}{note}"));
    }
    if let Some(place) = checkpoint.place.as_ref().filter(|place| place.turn > 0) {
        text = text.and(Style::Id, names.target(&place.session, place.turn, place.step)).and(Style::Plain, "  ");
    }
    let text = text.and(Style::Plain, titles.why(checkpoint));
    if note.is_empty() { text } else { text.and(Style::Dim, format!("  {note}")) }
}
