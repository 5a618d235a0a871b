//! The one error that every surface shows: a code, what happened, the ways out, and whose it is to fix.

mod archives;
mod conversations;
mod operations;
mod places;
mod targets;

pub use places::another_folder;
pub use targets::did_you_mean;

use std::ffi::OsString;
use std::fmt::Display;
use std::io;

use serde::Serialize;

use crate::code::Code;
use crate::surface::{Surface, shell_words};
use crate::text;
use crate::text::{Part, Text};

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What a program acts on.
    pub code: Code,
    /// What happened, to what; raw, to be escaped where it is shown.
    pub message: String,
    /// The ways out, the best one first.
    pub hints: Vec<Text>,
    /// Decides the exit code.
    pub fault: Fault,
}

/// Whose it is to fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The user can.
    User,
    /// A bug, or a damaged store.
    Piton,
}

/// What a program gets for a [`Failure`]; `docs/errors.md` says what each field is.
#[derive(Debug, Serialize)]
pub struct Document {
    error: Body,
}

#[derive(Debug, Serialize)]
struct Body {
    code: Code,
    message: String,
    fault: Fault,
    hints: Vec<String>,
    ways: Vec<Way>,
}

/// A command that a hint names, or words that change the one that failed.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Way {
    /// None where `arguments` are for the command that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    verb: Option<String>,
    /// Bytes that are not UTF-8 are replaced here; `text` has them quoted.
    arguments: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    placeholders: Vec<&'static str>,
    /// The command that failed is to be run again without these arguments.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    left_out: bool,
    text: String,
}

impl Failure {
    /// Something that the user can fix.
    pub fn user(code: Code, message: impl Display) -> Self {
        Self { code, message: message.to_string(), hints: Vec::new(), fault: Fault::User }
    }

    /// A damaged store.
    fn ours(code: Code, message: impl Display) -> Self {
        Self { fault: Fault::Piton, ..Self::user(code, message) }
    }

    /// Something that should not have happened.
    pub fn bug(message: impl Display) -> Self {
        Self::ours(Code::Bug, message).hint("this is a bug in piton; please report it with the command and this text")
    }

    /// A person was asked and said no.
    pub fn declined() -> Self {
        Self::user(Code::Declined, "it was not confirmed; nothing was changed")
    }

    /// Output that could not be written.
    pub fn output(error: io::Error) -> Self {
        let code = match error.kind() {
            io::ErrorKind::BrokenPipe => Code::OutputClosed,
            _ => Code::CannotWrite,
        };
        Self::user(code, format!("the output cannot be written: {error}"))
    }

    /// Adds a way out.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Text>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds some ways out.
    #[must_use]
    pub fn hints(self, hints: impl IntoIterator<Item = Text>) -> Self {
        hints.into_iter().fold(self, Self::hint)
    }

    /// It for a program, with commands as a surface says them.
    pub fn document(&self, surface: &dyn Surface) -> Document {
        let mut ways: Vec<Way> = Vec::new();
        let parts = self.hints.iter().flat_map(Text::spans).map(|span| &span.part);
        for way in parts.filter_map(|part| Way::of(part, surface)) {
            if !ways.contains(&way) {
                ways.push(way);
            }
        }
        Document {
            error: Body {
                code: self.code,
                message: self.message.clone(),
                fault: self.fault,
                hints: self.hints.iter().map(|hint| hint.said(surface)).collect(),
                ways,
            },
        }
    }
}

impl Way {
    fn of(part: &Part, surface: &dyn Surface) -> Option<Self> {
        let lossy = |words: &[OsString]| words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        match part {
            Part::Call(call) => Some(Self {
                verb: Some(call.verb.to_string()),
                arguments: lossy(&surface.arguments(call)),
                placeholders: call.placeholders(),
                left_out: false,
                text: surface.command(call),
            }),
            Part::Flag(flag) => Some(Self {
                verb: None,
                arguments: lossy(&flag.to_words()),
                placeholders: flag.placeholders(),
                left_out: flag.is_left_out,
                text: shell_words(&flag.to_words()),
            }),
            Part::Words(_) | Part::Time(_) => None,
        }
    }
}

/// What to do where the store's own copy of something is damaged.
fn damaged() -> Text {
    text![crate::call("verify"), " says which files of which checkpoints are affected; all others are intact"]
}

/// What brings an operation to its end once the cause is gone.
const AGAIN: &str = "any piton command in this workspace tries again by itself";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{call, flag, without};
    use crate::surface::Terminal;

    #[test]
    fn commands_and_flags_of_hints_are_data_for_a_program() {
        let failure = Failure::user(Code::ConflictOutside, "no")
            .hint(text!["without ", without("--outside"), " the rest is done; ", call("ops"), " lists them"])
            .hint(text![flag("--conflict").asking("WHICH"), " decides"]);
        let document = serde_json::to_value(failure.document(&Terminal::default())).unwrap();
        assert_eq!(document["error"]["hints"][1], "`--conflict WHICH` decides");
        let expected = serde_json::json!([
            {"arguments": ["--outside"], "left_out": true, "text": "--outside"},
            {"verb": "ops", "arguments": [], "text": "piton ops"},
            {"arguments": ["--conflict", "WHICH"], "placeholders": ["WHICH"], "text": "--conflict WHICH"},
        ]);
        assert_eq!(document["error"]["ways"], expected);
    }
}
