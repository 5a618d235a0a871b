//! Cells of a table: text that is cut to its column by what it takes on the screen, not by its bytes.

use piton_wording::{Span, Text};
use unicode_width::UnicodeWidthStr;

use crate::columns::fit;
use crate::console::Look;

/// A text on the screen.
pub trait ShownText {
    /// How many columns it takes.
    fn width(&self) -> usize;

    /// As much of it as fits.
    fn cut(&self, look: &Look, width: usize) -> Cell;
}

impl ShownText for Text {
    fn width(&self) -> usize {
        fit(&self.plain(), usize::MAX).1
    }

    fn cut(&self, look: &Look, width: usize) -> Cell {
        let mut cell = Cell::default();
        for Span { style, part } in self.spans() {
            let room = width.saturating_sub(cell.width);
            if room == 0 {
                break;
            }
            let (text, used) = fit(&part.said(look.surface.as_ref()), room);
            cell.painted += &look.paint.styled(*style, text);
            cell.width += used;
        }
        cell
    }
}

/// What is ready to be shown, and how many columns it takes.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// With its colours.
    pub painted: String,
    /// Columns.
    pub width: usize,
}

impl Cell {
    /// Text that needs no escaping and has no colour.
    pub fn plain(text: impl Into<String>) -> Self {
        let painted = text.into();
        Self { width: painted.width(), painted }
    }
}

/// Between two columns, where the first is too long.
const GAP: usize = 2;

/// A line of cells, each padded to its column. Nothing trails.
pub fn line(cells: &[(Cell, usize)]) -> String {
    let mut out = String::new();
    let mut owed = 0;
    for (cell, width) in cells {
        if cell.width > 0 {
            out.extend(std::iter::repeat_n(' ', owed));
            out += &cell.painted;
            // What is too long for its column pushes the next one away, and does not touch it.
            let touches = *width > 0 && cell.width >= *width && !cell.painted.ends_with(' ');
            owed = if touches { GAP } else { width.saturating_sub(cell.width) };
        } else {
            owed += width;
        }
    }
    out
}

/// The widest of some.
pub fn widest(widths: impl IntoIterator<Item = usize>) -> usize {
    widths.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use piton_wording::Style;

    use super::*;

    #[test]
    fn parts_are_cut_together_by_what_they_take_on_the_screen() {
        let text = Text::new(Style::Bold, "日本").and(Style::Plain, "  a\x1bnote");
        for (width, expected) in [(3, "日…"), (7, "日本  …"), (15, "日本  a\\x1bnote"), (0, "")] {
            let cell = text.cut(&Look::plain(80), width);
            assert_eq!(cell.painted, expected);
            assert!(cell.width <= width, "{width}");
        }
    }

    #[test]
    fn cells_are_padded_and_nothing_trails() {
        let cells = |last: &str| [(Cell::plain("a"), 3), (Cell::plain(""), 2), (Cell::plain(last), 4)];
        assert_eq!(line(&cells("b")), "a    b");
        assert_eq!(line(&cells("")), "a");
    }
}
