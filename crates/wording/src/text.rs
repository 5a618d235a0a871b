//! Text for people in parts: words, commands and times, each with its style.

use std::borrow::Cow;

use piton_engine::model::Timestamp;

use crate::call::{Call, Flag};
use crate::surface::{Surface, Terminal};

/// How a part of a text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// As the words around it.
    Plain,
    /// Headings, and what stands out.
    Bold,
    /// What is there for completeness.
    Dim,
    /// Ids and what is typed to mean something.
    Id,
    /// What comes, what is well.
    Good,
    /// What changes, what deserves a look.
    Warn,
    /// What goes, what is wrong.
    Bad,
    /// The word before something that must not be overlooked.
    Alarm,
}

/// What a part of a text is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Words, raw as they came.
    Words(String),
    /// A command that the reader could run.
    Call(Call),
    /// Words that the reader could add to the command in hand, or leave out of it.
    Flag(Flag),
    /// A moment.
    Time(Timestamp),
}

/// A part of a text, and how it looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Never the only carrier of a meaning.
    pub style: Style,
    /// What is shown in it.
    pub part: Part,
}

/// A line of text in parts, raw as they came: whoever shows it escapes it for where it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(Vec<Span>);

/// Puts a [`Text`] together: `text![call("log"), " lists the checkpoints"]`.
#[macro_export]
macro_rules! text {
    ($($part:expr),* $(,)?) => { $crate::Text::default()$(.and_all($part))* };
}

impl Text {
    /// One part.
    pub fn new(style: Style, text: impl Into<String>) -> Self {
        Self::default().and(style, text)
    }

    /// With words after it.
    #[must_use]
    pub fn and(mut self, style: Style, text: impl Into<String>) -> Self {
        let text = text.into();
        if !text.is_empty() {
            self.0.push(Span { style, part: Part::Words(text) });
        }
        self
    }

    /// With all the parts of another.
    #[must_use]
    pub fn and_all(mut self, other: impl Into<Self>) -> Self {
        self.0.append(&mut other.into().0);
        self
    }

    /// In this style wherever it has none of its own.
    #[must_use]
    pub fn in_style(mut self, style: Style) -> Self {
        self.0.iter_mut().filter(|span| span.style == Style::Plain).for_each(|span| span.style = style);
        self
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its parts in their order, for a surface that shows each in its own way.
    pub fn spans(&self) -> &[Span] {
        &self.0
    }

    /// All of it in one piece, raw, as a surface says it.
    pub fn said(&self, surface: &dyn Surface) -> String {
        self.0.iter().map(|span| span.part.said(surface)).collect()
    }

    /// The same for whoever has no surface, such as a log: commands as in a terminal, times in UTC.
    pub fn plain(&self) -> String {
        self.said(&Terminal::default())
    }

    /// Several of them with the same text between each two.
    pub fn join(parts: impl IntoIterator<Item = Self>, between: &str) -> Self {
        let parts = parts.into_iter().enumerate();
        parts.fold(Self::default(), |all, (at, part)| all.and_all(if at > 0 { between } else { "" }).and_all(part))
    }
}

impl Part {
    /// It in one piece, raw, as a surface says it.
    pub fn said<'a>(&'a self, surface: &dyn Surface) -> Cow<'a, str> {
        match self {
            Self::Words(words) => Cow::Borrowed(words),
            Self::Call(call) => Cow::Owned(surface.call(call)),
            Self::Flag(flag) => Cow::Owned(surface.flag(flag)),
            Self::Time(at) => Cow::Owned(surface.time(*at)),
        }
    }
}

impl From<&str> for Text {
    fn from(words: &str) -> Self {
        Self::new(Style::Plain, words)
    }
}

impl From<&String> for Text {
    fn from(words: &String) -> Self {
        Self::new(Style::Plain, words)
    }
}

impl From<String> for Text {
    fn from(words: String) -> Self {
        Self::new(Style::Plain, words)
    }
}

impl From<Cow<'_, str>> for Text {
    fn from(words: Cow<'_, str>) -> Self {
        Self::new(Style::Plain, words)
    }
}

impl From<Call> for Text {
    fn from(call: Call) -> Self {
        Self(vec![Span { style: Style::Plain, part: Part::Call(call) }])
    }
}

impl From<&Call> for Text {
    fn from(call: &Call) -> Self {
        call.clone().into()
    }
}

impl From<Flag> for Text {
    fn from(flag: Flag) -> Self {
        Self(vec![Span { style: Style::Plain, part: Part::Flag(flag) }])
    }
}

impl From<Timestamp> for Text {
    fn from(at: Timestamp) -> Self {
        Self(vec![Span { style: Style::Plain, part: Part::Time(at) }])
    }
}

/// `note: …`: something to know.
pub fn note(text: impl Into<Text>) -> Text {
    Text::new(Style::Warn, "note:").and(Style::Plain, " ").and_all(text)
}

/// `warning: …`: something to look at.
pub fn warning(text: impl Into<Text>) -> Text {
    Text::new(Style::Warn, "warning:").and(Style::Plain, " ").and_all(text)
}
