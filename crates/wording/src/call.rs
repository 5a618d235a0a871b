//! A command of piton's as data: what to run, with what, and where; and words that change one.
//!
//! A [`Call`] is a whole command. A [`Flag`] is for the command that the reader has in hand already: the one that failed, or
//! whose plan is shown.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};

use piton_engine::model::SessionId;

/// Commands that are about no workspace. `init` names its folder without a flag.
const ANYWHERE: [&str; 9] = ["completions", "config", "demo", "doctor", "help", "hook", "man", "run", "setup"];
const INIT: &str = "init";

/// One command of piton's that somebody could run next. A surface shows it in its own way: as words to type, or as a button.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The name of the command, such as `rewind`.
    pub verb: Cow<'static, str>,
    /// What follows it, flags included, without the session and the workspace.
    pub arguments: Vec<Argument>,
    /// The session that it is about, where that has to be said.
    pub session: Option<SessionId>,
    /// Where it is run.
    pub place: Place,
}

/// One word of a [`Call`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A word to pass as it is, unquoted.
    Word(OsString),
    /// The name of something that the user has to fill in, such as `TARGET`.
    Placeholder(&'static str),
}

/// The workspace that a [`Call`] is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The workspace that the text around the call is about.
    Here,
    /// Another one: its folder, or the beginning of its id.
    There(OsString),
    /// One that the user has to name; the placeholder for it.
    Asked(&'static str),
    /// No workspace, or the arguments name the folder.
    Anywhere,
}

/// A command without arguments, in the workspace that the text is about.
pub fn call(verb: &'static str) -> Call {
    let place = if ANYWHERE.contains(&verb) { Place::Anywhere } else { Place::Here };
    Call { verb: verb.into(), arguments: Vec::new(), session: None, place }
}

/// Words to add to the reader's own command, or to leave out of it. A surface shows them as words to type, or as a button that
/// runs the command again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The flag, with its value where it has one.
    pub words: Vec<Argument>,
    /// Whether the command is meant without them.
    pub is_left_out: bool,
}

/// A flag to add to the reader's own command.
pub fn flag(name: &'static str) -> Flag {
    Flag { words: vec![Argument::Word(name.into())], is_left_out: false }
}

/// A flag to leave out of the reader's own command.
pub fn without(name: &'static str) -> Flag {
    Flag { is_left_out: true, ..flag(name) }
}

impl Flag {
    /// With its value, or a word more.
    #[must_use]
    pub fn arg(mut self, word: impl Into<OsString>) -> Self {
        self.words.push(Argument::Word(word.into()));
        self
    }

    /// With a value that the user has to fill in.
    #[must_use]
    pub fn asking(mut self, placeholder: &'static str) -> Self {
        self.words.push(Argument::Placeholder(placeholder));
        self
    }

    /// Its words in their order, unquoted.
    pub fn to_words(&self) -> Vec<OsString> {
        self.words.iter().map(Argument::to_word).collect()
    }

    /// What the user has to fill in first.
    pub fn placeholders(&self) -> Vec<&'static str> {
        placeholders(&self.words).collect()
    }
}

fn placeholders(words: &[Argument]) -> impl Iterator<Item = &'static str> {
    words.iter().filter_map(|word| match word {
        Argument::Placeholder(name) => Some(*name),
        Argument::Word(_) => None,
    })
}

impl Call {
    /// With a word more.
    #[must_use]
    pub fn arg(mut self, word: impl Into<OsString>) -> Self {
        self.arguments.push(Argument::Word(word.into()));
        self
    }

    /// With a flag and its value.
    #[must_use]
    pub fn with(self, flag: &str, value: impl Into<OsString>) -> Self {
        self.arg(flag).arg(value)
    }

    /// With a word that the user has to fill in.
    #[must_use]
    pub fn asking(mut self, placeholder: &'static str) -> Self {
        self.arguments.push(Argument::Placeholder(placeholder));
        // The only thing that `init` asks for, beside a size, is a folder.
        if self.verb == INIT && placeholder == "DIR" {
            self.place = Place::Anywhere;
        }
        self
    }

    /// In another workspace: its folder, or the beginning of its id.
    #[must_use]
    pub fn there(mut self, workspace: impl Into<OsString>) -> Self {
        self.place = Place::There(workspace.into());
        self
    }

    /// In a workspace that the user has to name.
    #[must_use]
    pub fn in_asked(mut self, placeholder: &'static str) -> Self {
        self.place = Place::Asked(placeholder);
        self
    }

    /// About one session.
    #[must_use]
    pub fn of_session(mut self, session: &SessionId) -> Self {
        self.session = Some(session.clone());
        self
    }

    /// All that follows the verb, where `here` names the workspace that the text is about; `None` where it goes without saying.
    pub fn words(&self, here: Option<&OsStr>) -> Vec<OsString> {
        let mut words: Vec<OsString> = self.arguments.iter().map(Argument::to_word).collect();
        if let Some(session) = &self.session {
            words.extend(["--session".into(), session.short().into()]);
        }
        let place = match &self.place {
            Place::Here => here,
            Place::There(workspace) => Some(workspace.as_os_str()),
            Place::Asked(placeholder) => Some(OsStr::new(*placeholder)),
            Place::Anywhere => None,
        };
        if let Some(place) = place {
            if self.verb != INIT {
                words.push("--workspace".into());
            }
            words.push(place.to_owned());
        }
        words
    }

    /// What the user has to fill in before it can be run.
    pub fn placeholders(&self) -> Vec<&'static str> {
        let place = match self.place {
            Place::Asked(name) => Some(name),
            _ => None,
        };
        placeholders(&self.arguments).chain(place).collect()
    }
}

impl Argument {
    fn to_word(&self) -> OsString {
        match self {
            Self::Word(word) => word.clone(),
            Self::Placeholder(name) => (*name).into(),
        }
    }
}
