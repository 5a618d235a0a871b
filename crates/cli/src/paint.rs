//! Colour: decided once for each stream, and never the only carrier of a meaning.

use std::fmt::Display;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use owo_colors::{OwoColorize, Style};
use piton_wording as wording;

use crate::args::Color;

/// Paints text, or leaves it as it is.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// What suits a stream: `NO_COLOR`, `CLICOLOR_FORCE`, `TERM` and whether it is a terminal, unless the user says.
    pub fn for_stream<S: RawStream>(color: Color, stream: &S) -> Self {
        let on = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => !matches!(AutoStream::choice(stream), ColorChoice::Never),
        };
        Self { on }
    }

    /// No colour.
    #[cfg(test)]
    pub fn none() -> Self {
        Self { on: false }
    }

    /// Whether it paints at all.
    pub fn is_on(self) -> bool {
        self.on
    }

    /// A part of a text.
    pub fn styled(self, style: wording::Style, text: impl Display) -> String {
        match style {
            wording::Style::Plain => text.to_string(),
            wording::Style::Bold => self.bold(text),
            wording::Style::Dim => self.dim(text),
            wording::Style::Id => self.id(text),
            wording::Style::Good => self.good(text),
            wording::Style::Warn => self.warn(text),
            wording::Style::Bad => self.bad(text),
            wording::Style::Alarm => self.alarm(text),
        }
    }

    /// What comes, what is well.
    pub fn good(self, text: impl Display) -> String {
        self.with(Style::new().green(), text)
    }

    /// What goes, what is wrong.
    pub fn bad(self, text: impl Display) -> String {
        self.with(Style::new().red(), text)
    }

    /// What changes, what deserves a look.
    pub fn warn(self, text: impl Display) -> String {
        self.with(Style::new().yellow(), text)
    }

    /// Ids.
    pub fn id(self, text: impl Display) -> String {
        self.with(Style::new().cyan(), text)
    }

    /// Headings.
    pub fn bold(self, text: impl Display) -> String {
        self.with(Style::new().bold(), text)
    }

    /// What is there for completeness.
    pub fn dim(self, text: impl Display) -> String {
        self.with(Style::new().dimmed(), text)
    }

    /// The word before an error's text.
    pub fn alarm(self, text: impl Display) -> String {
        self.with(Style::new().red().bold(), text)
    }

    fn with(self, style: Style, text: impl Display) -> String {
        if self.on { text.style(style).to_string() } else { text.to_string() }
    }
}
