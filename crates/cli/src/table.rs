//! Cells of a table: text that is cut to its column by what it takes on the screen, not by its bytes.

use unicode_width::UnicodeWidthStr;

use crate::columns::fit;
use crate::console::Look;
use crate::paint::Paint;

/// How a part of a cell looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    Bold,
    Dim,
    Id,
    Good,
    Warn,
    Bad,
}

impl Style {
    fn paint(self, paint: Paint, text: String) -> String {
        match self {
            _ if text.is_empty() => text,
            Self::Plain => text,
            Self::Bold => paint.bold(text),
            Self::Dim => paint.dim(text),
            Self::Id => paint.id(text),
            Self::Good => paint.good(text),
            Self::Warn => paint.warn(text),
            Self::Bad => paint.bad(text),
        }
    }
}

/// Text in parts, raw as it came: it is escaped when it is shown.
#[derive(Clone, Debug, Default)]
pub struct Text(Vec<(Style, String)>);

impl Text {
    /// One part.
    pub fn new(style: Style, text: impl Into<String>) -> Self {
        Self::default().and(style, text)
    }

    /// Another part.
    #[must_use]
    pub fn and(mut self, style: Style, text: impl Into<String>) -> Self {
        let text = text.into();
        if !text.is_empty() {
            self.0.push((style, text));
        }
        self
    }

    /// All the parts of another.
    #[must_use]
    pub fn and_all(mut self, mut other: Self) -> Self {
        self.0.append(&mut other.0);
        self
    }

    /// All of it, without colour, raw as it came.
    pub fn plain(&self) -> String {
        self.0.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many columns it takes.
    pub fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| fit(text, usize::MAX).1).sum()
    }

    /// As much of it as fits.
    pub fn cut(&self, look: &Look, width: usize) -> Cell {
        let mut cell = Cell::default();
        for (style, text) in &self.0 {
            let room = width.saturating_sub(cell.width);
            if room == 0 {
                break;
            }
            let (text, used) = fit(text, room);
            cell.painted += &style.paint(look.paint, text);
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

/// A line of cells, each padded to its column. Nothing trails.
pub fn line(cells: &[(Cell, usize)]) -> String {
    let mut out = String::new();
    let mut owed = 0;
    for (cell, width) in cells {
        if cell.width > 0 {
            out.extend(std::iter::repeat_n(' ', owed));
            out += &cell.painted;
            owed = width.saturating_sub(cell.width);
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
    use piton_engine::model::Timestamp;

    use super::*;

    fn look() -> Look {
        Look { paint: Paint::none(), terminal: true, width: 80, now: Timestamp(0) }
    }

    #[test]
    fn parts_are_cut_together_by_what_they_take_on_the_screen() {
        let text = Text::new(Style::Bold, "日本").and(Style::Plain, "  a\x1bnote");
        for (width, expected) in [(3, "日…"), (7, "日本  …"), (15, "日本  a\\x1bnote"), (0, "")] {
            let cell = text.cut(&look(), width);
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
