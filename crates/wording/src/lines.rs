//! Several lines of text, and how much of a list is worth showing.

use crate::text;
use crate::text::{Style, Text};
use crate::words::{Now, grouped};

/// As many lines of a list does a person look through.
pub const LONG_LIST: usize = 40;

/// What a surface has room for.
#[derive(Clone, Debug)]
pub struct Room {
    /// Whether a person looks at it right now, so that long lists are cut. A file gets all.
    pub is_short: bool,
    /// What ages count from.
    pub now: Now,
}

impl Room {
    /// How many lines of a list are shown.
    pub fn lines(&self, where_short: usize) -> usize {
        if self.is_short { where_short } else { usize::MAX }
    }
}

/// One line, and what may be done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What it says.
    pub text: Text,
    /// Whose words it has.
    pub kind: LineKind,
}

/// Whose words a line has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// Piton's own, which are shown whole.
    Said,
    /// A line of a file or of a command, in which a TAB is one.
    Content,
    /// The same, where a surface cuts what it has no room for.
    CutContent,
}

/// Lines, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines(Vec<Line>);

impl Lines {
    /// Adds a line of piton's own words.
    pub fn say(&mut self, text: impl Into<Text>) {
        self.0.push(Line { text: text.into(), kind: LineKind::Said });
    }

    /// Adds a line of somebody else's.
    pub fn show(&mut self, text: impl Into<Text>, is_cut: bool) {
        let kind = if is_cut { LineKind::CutContent } else { LineKind::Content };
        self.0.push(Line { text: text.into(), kind });
    }

    /// Adds how many lines of a list are not shown, where there are any.
    pub fn rest(&mut self, indent: &str, rest: usize) {
        if rest > 0 {
            self.say(text![indent, Text::new(Style::Dim, format!("… and {} more", grouped(rest as u64)))]);
        }
    }

    /// Adds a list under a heading, cut to `most`; nothing where it is empty.
    pub fn list(&mut self, heading: impl Into<Text>, items: impl ExactSizeIterator<Item = Text>, most: usize) {
        let count = items.len();
        if count == 0 {
            return;
        }
        self.say(heading);
        items.take(most).for_each(|item| self.say(text!["  ", item]));
        self.rest("  ", count.saturating_sub(most));
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Line> {
        self.0.iter()
    }
}
