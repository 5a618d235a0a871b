//! What a person asks to take back, and why nothing is chosen.

use crate::view::Unknown;
use piton_model::target::{TurnPlace, split_session};
use piton_model::{SessionId, Target, Timestamp, When, WorkspacePath};
use std::path::PathBuf;

/// Which changes to take back. Everything that is given must hold.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Which of the session's. Where nothing is given at all: the last turn's, or of the user's own those since the last prompt;
    /// else all.
    pub what: Option<Which>,
    /// Only of these paths and what is beneath them.
    pub paths: Vec<WorkspacePath>,
    /// Only what was found since.
    pub since: Option<Since>,
    /// Only what was found after the first target and up to the second.
    pub between: Option<(Target, Target)>,
    /// Of this session; the one that reported last where not given.
    pub session: Option<String>,
    /// Whose; the session's own where not given.
    pub whose: Option<Whose>,
    /// Take back what may be somebody else's too.
    pub unsure: bool,
}

/// A moment, and how the user said it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Since {
    pub at: Timestamp,
    /// As it was typed: `10m`.
    pub age: String,
}

/// Whose changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The user's own.
    You,
    /// The session's.
    Agent,
}

/// Which of a session's changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The last so many.
    Last(usize),
    /// By their numbers in the list of changes.
    Numbers(Vec<u32>),
    /// Of some turns, or of single steps.
    Places(Vec<(u32, Option<u32>)>),
    /// All.
    All,
}

impl Which {
    /// Reads what a person typed: nothing, `last`, `last 3`, `all`, `7`, `t3`, `t3.2`, also several numbers or several
    /// places. A place may begin with its session, which is returned.
    ///
    /// # Errors
    /// Where the words are none of that.
    pub fn of_words<S: AsRef<str>>(words: &[S]) -> Result<(Option<Self>, Option<String>), ChosenError> {
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        let bad = || ChosenError::Words(words.join(" "));
        let number = |word: &str| word.parse::<u32>().ok().filter(|n| *n > 0);
        match words[..] {
            [] => return Ok((None, None)),
            ["all"] => return Ok((Some(Self::All), None)),
            ["last"] => return Ok((Some(Self::Last(1)), None)),
            ["last", count] => return Ok((Some(Self::Last(number(count).ok_or_else(bad)? as usize)), None)),
            _ => {}
        }
        if let Some(numbers) = words.iter().map(|word| number(word)).collect::<Option<Vec<_>>>() {
            return Ok((Some(Self::Numbers(numbers)), None));
        }
        let mut session: Option<String> = None;
        let mut places = Vec::new();
        for word in &words {
            let (of, place) = split_session(word);
            if let Some(of) = of
                && session.replace(of.to_owned()).is_some_and(|other| other != of)
            {
                return Err(bad());
            }
            match place.parse() {
                Ok(When::Turn { turn, place: TurnPlace::Before }) => places.push((turn, None)),
                Ok(When::Turn { turn, place: TurnPlace::Step(step) }) => places.push((turn, Some(step))),
                _ => return Err(bad()),
            }
        }
        Ok((Some(Self::Places(places)), session))
    }
}

/// Why nothing is chosen.
#[derive(Debug, thiserror::Error)]
pub enum ChosenError {
    /// Words that mean nothing.
    #[error("`{0}` is not something to undo")]
    Words(String),
    /// The list of changes has no such number.
    #[error("session {} has no change {number}; it has {last}", session.short())]
    NoNumber {
        /// What was asked for.
        number: u32,
        /// Whose changes.
        session: SessionId,
        /// How many there are.
        last: u32,
    },
    /// A number, of changes that have none.
    #[error("`{}` is a number of a session's changes; your own changes have none", numbers(.0))]
    YoursHaveNoNumbers(Vec<u32>),
    /// Nothing that was asked for is in effect.
    #[error("{}", nothing_left(about, within, (*undone, *outside)))]
    Nothing {
        /// Who or what changed nothing: a turn, the session.
        about: String,
        /// What else was asked for: ` in the last 10m in src`.
        within: String,
        /// Whether there was something, and it was taken back.
        undone: bool,
        /// Whether it changed files outside the workspace, which nobody asked for.
        outside: bool,
    },
    /// The user changed nothing that was asked for, or nothing of it is in effect.
    #[error("you changed nothing{when}{}", if *.undone { " that is still there" } else { "" })]
    NothingOfYours {
        /// When and where: ` since the prompt of turn 3`.
        when: String,
        /// Whether there was something.
        undone: bool,
        /// Whether more than what followed the last prompt was asked for.
        is_all: bool,
    },
    /// All that is in effect of what was asked for is accepted.
    #[error("all that {about} changed and that is still there is accepted")]
    Accepted { about: String },
    /// Nothing that was asked for is known, and not all of it would be.
    #[error("{}", not_known(about, why))]
    Unknown {
        /// The turn, in a few words.
        about: String,
        /// Its number.
        turn: u32,
        /// Whose it is, where the number alone means another session's.
        session: Option<SessionId>,
        /// Why it is not known.
        why: Unknown,
    },
    /// The last turn changed files in other workspaces of the session alone.
    #[error("turn {turn} is the last that changed files, and it changed them in {}, not here", shown(places))]
    Elsewhere {
        /// The turn.
        turn: u32,
        /// Whose it is, where the number alone means another session's.
        session: Option<SessionId>,
        /// The workspaces that it changed.
        places: Vec<ChangedThere>,
        /// The last one that changed files here, if any did.
        here: Option<u32>,
    },
    /// The session works in another workspace too, whose store cannot be read.
    #[error("the last turn may have changed files of another workspace, whose store {} cannot be read: {reason}", store.display())]
    ElsewhereUnread {
        /// That store's folder.
        store: PathBuf,
        /// What the system says.
        reason: String,
        /// Whose turns they are, where a number alone means another session's.
        session: Option<SessionId>,
        /// The last turn that changed files here, if any did.
        here: Option<u32>,
    },
}

/// Another workspace that a turn changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedThere {
    /// Its folder, or its store where the path is another's now.
    pub path: PathBuf,
    /// Whether a folder is there.
    pub is_there: bool,
}

fn nothing_left(about: &str, within: &str, (undone, outside): (bool, bool)) -> String {
    // Where there never was anything, nothing of it can be there still.
    let left = if within.is_empty() || undone { " that is still there" } else { "" };
    let inside = if outside { " in the workspace" } else { "" };
    let back = if undone { ": it was taken back already" } else { "" };
    format!("{about} changed nothing{within}{left}{inside}{back}")
}

fn not_known(about: &str, why: &Unknown) -> String {
    match why {
        Unknown::OtherFolder => {
            format!("{about} began in another folder that stood here, so what it changed is not known here")
        }
        Unknown::BeforeFirstCapture => {
            format!("it is not known what {about} changed before this folder was captured for the first time")
        }
        Unknown::Damaged => {
            format!("it is not known what {about} changed, since a checkpoint of that time is damaged in piton's store")
        }
        Unknown::NotCaptured => format!("it is not known what {about} changed, since nothing was captured after it"),
        Unknown::Gap { reason } => {
            format!("it is not known what {about} changed, since not all of it was captured: {reason}")
        }
    }
}

fn numbers(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}

fn shown(places: &[ChangedThere]) -> String {
    places.iter().map(|place| place.path.display().to_string()).collect::<Vec<_>>().join(", ")
}
