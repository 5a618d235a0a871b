//! Targets: what a person types to refer to a moment.

use std::fmt;
use std::str::FromStr;

use crate::id::{CheckpointId, is_id_prefix};

/// A moment to return to, and of which session, as typed: `t5`, `kmzq:t5`. The engine finds the checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The beginning of a session's id, or its name. Only `t5` and `start` may have one.
    pub session: Option<String>,
    pub when: When,
}

/// A target without its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// `@`: the workspace as it is now.
    Now,
    /// `start`: the first checkpoint of the current line.
    Start,
    /// Letters from k to z: a name made of those letters, or else the beginning of a checkpoint's id.
    Id(String),
    Name(String),
    /// `90s`, `10m`, `2h`, `3d`, in milliseconds: the last checkpoint that is at least this old.
    Age(i64),
    /// `t5`, `t5.2`, `t5.end`: a place in a session.
    Turn {
        /// From 1.
        turn: u32,
        place: TurnPlace,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnPlace {
    /// Just before the turn was acted on.
    Before,
    /// Just before one of its steps.
    Step(u32),
    End,
}

/// Why a text is not a target or not a name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadTarget {
    #[error("a target is not empty")]
    Empty,
    /// The name could be mistaken for another form of target.
    #[error("a name may not look like {0}")]
    Taken(&'static str),
    /// The name cannot be typed or shown.
    #[error("a name has at most 100 characters, no control characters, no `:` and no space at its ends")]
    Shape,
}

impl Target {
    /// The workspace as it is now.
    pub const NOW: Self = Self { session: None, when: When::Now };

    /// A place in a session.
    pub fn turn(session: impl Into<String>, turn: u32, place: TurnPlace) -> Self {
        Self { session: Some(session.into()), when: When::Turn { turn, place } }
    }
}

impl From<&CheckpointId> for Target {
    fn from(id: &CheckpointId) -> Self {
        Self { session: None, when: When::Id(id.as_str().to_owned()) }
    }
}

impl FromStr for Target {
    type Err = BadTarget;

    fn from_str(text: &str) -> Result<Self, BadTarget> {
        let (session, when) = split_session(text);
        Ok(Self { session: session.map(str::to_owned), when: when.parse()? })
    }
}

/// As it is typed.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(session) = &self.session {
            write!(f, "{session}:")?;
        }
        self.when.fmt(f)
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now => f.write_str("@"),
            Self::Start => f.write_str("start"),
            Self::Id(text) | Self::Name(text) => f.write_str(text),
            Self::Age(ms) => {
                let (unit, letter) = AGES.into_iter().rfind(|(unit, _)| *ms != 0 && ms % unit == 0).unwrap_or(AGES[0]);
                write!(f, "{}{}", ms / unit, char::from(letter))
            }
            Self::Turn { turn, place: TurnPlace::Before } => write!(f, "t{turn}"),
            Self::Turn { turn, place: TurnPlace::Step(step) } => write!(f, "t{turn}.{step}"),
            Self::Turn { turn, place: TurnPlace::End } => write!(f, "t{turn}.end"),
        }
    }
}

impl FromStr for When {
    type Err = BadTarget;

    fn from_str(text: &str) -> Result<Self, BadTarget> {
        if text.is_empty() {
            return Err(BadTarget::Empty);
        }
        Ok(match text {
            "@" => Self::Now,
            "start" => Self::Start,
            _ => match (age(text), turn(text)) {
                (Some(ms), _) => Self::Age(ms),
                (_, Some(turn)) => turn,
                _ if is_id_prefix(text) => Self::Id(text.into()),
                _ => Self::Name(text.into()),
            },
        })
    }
}

/// Length of an id as piton shows it; nobody should be able to give a checkpoint a name that looks like another's id.
const SHOWN_LETTERS: usize = 8;

/// Checks that a name cannot be mistaken for another form of target.
///
/// Short names of letters from k to z (`two`, `ok`, `trunk`) are more likely words than ids, so they are allowed, and
/// names are looked up first.
pub fn check_name(name: &str) -> Result<(), BadTarget> {
    let shape = !name.is_empty()
        && name.chars().count() <= 100
        && !name.chars().any(|c| c.is_control() || c == ':')
        && name.trim() == name;
    if !shape {
        return Err(BadTarget::Shape);
    }
    match name.parse()? {
        When::Now | When::Start => Err(BadTarget::Taken("`@` or `start`, which are targets of their own")),
        When::Age(_) => Err(BadTarget::Taken("an age such as `10m`")),
        When::Turn { .. } => Err(BadTarget::Taken("a turn such as `t5`")),
        When::Id(_) if name.len() >= SHOWN_LETTERS => {
            Err(BadTarget::Taken("an id, which is made of letters from k to z only"))
        }
        When::Id(_) => Ok(()),
        When::Name(_) if name.starts_with('-') => Err(BadTarget::Taken("an option")),
        When::Name(_) => Ok(()),
    }
}

/// The place in a session that a text would mean if it were written as targets are: `5`, `T5`, `turn5` and `#5` are `t5`.
pub fn meant_turn(text: &str) -> Option<When> {
    let folded = text.trim().to_ascii_lowercase();
    let number = ["turn", "t", ""].iter().find_map(|word| folded.strip_prefix(word))?;
    let number = number.trim_start_matches([' ', '-', '_', '#']);
    let meant = format!("t{number}");
    meant.parse().ok().filter(|when| meant != text && matches!(when, When::Turn { .. }))
}

/// The age that a text would mean if it were written as ages are: `10min`, `10 minutes` and `10M` are `10m`.
pub fn meant_age(text: &str) -> Option<When> {
    let folded = text.trim().to_ascii_lowercase();
    let (number, unit) = folded.split_at(folded.find(|c: char| !c.is_ascii_digit())?);
    let unit = match unit.trim_start() {
        "s" | "sec" | "secs" | "second" | "seconds" => 's',
        "m" | "min" | "mins" | "minute" | "minutes" => 'm',
        "h" | "hr" | "hrs" | "hour" | "hours" => 'h',
        "d" | "day" | "days" => 'd',
        _ => return None,
    };
    let meant = format!("{number}{unit}");
    meant.parse().ok().filter(|when| meant != text && matches!(when, When::Age(_)))
}

/// Splits off a leading session: `SESSION:t5`.
pub fn split_session(text: &str) -> (Option<&str>, &str) {
    match text.split_once(':') {
        Some((session, rest)) if !session.is_empty() => (Some(session), rest),
        _ => (None, text),
    }
}

/// Splits `TARGET:PATH` (`t5:src/main.rs`, `SESSION:t5:src/main.rs`) into its target and its path; none where it has no
/// target. A path that begins like a target of a session is written with `./` before it: `kmzq:./t5:notes`.
pub fn split_path(text: &[u8]) -> Option<(&str, &[u8])> {
    let colon = |from: usize| text[from..].iter().position(|byte| *byte == b':').map(|at| from + at);
    let first = colon(0).filter(|at| *at > 0)?;
    let target = |end: usize| std::str::from_utf8(&text[..end]).ok();
    let may_be_session = matches!(target(first)?.parse(), Ok(When::Id(_) | When::Name(_)));
    if let Some(second) = colon(first + 1).filter(|_| may_be_session)
        && let Ok(rest) = std::str::from_utf8(&text[first + 1..second])
        && matches!(rest.parse(), Ok(When::Turn { .. } | When::Start))
    {
        return Some((target(second)?, &text[second + 1..]));
    }
    Some((target(first)?, &text[first + 1..]))
}

/// Units of ages, in milliseconds, with their letters.
const AGES: [(i64, u8); 4] = [(1000, b's'), (60_000, b'm'), (3_600_000, b'h'), (86_400_000, b'd')];

fn age(text: &str) -> Option<i64> {
    let last = text.bytes().last()?;
    let (unit, _) = AGES.into_iter().find(|(_, letter)| *letter == last)?;
    let digits = &text[..text.len() - 1];
    let number: i64 = digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())??;
    number.checked_mul(unit)
}

fn turn(text: &str) -> Option<When> {
    let number = |t: &str| t.bytes().all(|b| b.is_ascii_digit()).then(|| t.parse::<u32>().ok()).flatten();
    let (turn, place) = match text.strip_prefix('t')?.split_once('.') {
        None => (&text[1..], TurnPlace::Before),
        Some((turn, "end")) => (turn, TurnPlace::End),
        Some((turn, step)) => (turn, TurnPlace::Step(number(step)?)),
    };
    Some(When::Turn { turn: number(turn)?, place })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_known_by_its_look() {
        for (text, expected) in [
            ("@", When::Now),
            ("start", When::Start),
            ("kmz", When::Id("kmz".into())),
            ("before-refactor", When::Name("before-refactor".into())),
            ("10m", When::Age(600_000)),
            ("2h", When::Age(7_200_000)),
            ("t5", When::Turn { turn: 5, place: TurnPlace::Before }),
            ("t5.2", When::Turn { turn: 5, place: TurnPlace::Step(2) }),
            ("t5.end", When::Turn { turn: 5, place: TurnPlace::End }),
            ("t5.x", When::Name("t5.x".into())),
            ("99999999999999999999m", When::Name("99999999999999999999m".into())),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        assert_eq!("".parse::<When>(), Err(BadTarget::Empty));
    }

    #[test]
    fn a_target_is_written_as_it_is_typed() {
        for text in [
            "@",
            "start",
            "kmz",
            "before",
            "0s",
            "90s",
            "10m",
            "2h",
            "3d",
            "t5",
            "t5.2",
            "t5.end",
            "kmzq:t5",
            "a b:start",
        ] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
        assert_eq!("kmzq:t5".parse(), Ok(Target::turn("kmzq", 5, TurnPlace::Before)));
        assert_eq!("kmzq:".parse::<Target>(), Err(BadTarget::Empty));
    }

    #[test]
    fn a_file_of_a_moment_is_a_target_and_a_path() {
        for (text, expected) in [
            ("t5:src/main.rs", Some(("t5", "src/main.rs"))),
            ("kmzq:t5:src/main.rs", Some(("kmzq:t5", "src/main.rs"))),
            ("my session:t5.2:a", Some(("my session:t5.2", "a"))),
            ("kmzq:start:a", Some(("kmzq:start", "a"))),
            ("10m:a:b", Some(("10m", "a:b"))),
            ("t5:t6:a", Some(("t5", "t6:a"))),
            ("kmzq:./t5:notes", Some(("kmzq", "./t5:notes"))),
            ("kmzq:notes:t5", Some(("kmzq", "notes:t5"))),
            ("t5:", Some(("t5", ""))),
            ("src/main.rs", None),
            (":a", None),
            ("", None),
        ] {
            let expected = expected.map(|(target, path)| (target, path.as_bytes()));
            assert_eq!(split_path(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(split_path(b"t5:caf\xe9"), Some(("t5", &b"caf\xe9"[..])));
        assert_eq!(split_path(b"caf\xe9:t5"), None);
    }

    #[test]
    fn a_turn_that_is_written_otherwise_is_recognised() {
        for (text, meant) in [
            ("5", Some("t5")),
            ("T5", Some("t5")),
            ("turn5", Some("t5")),
            ("Turn 5", Some("t5")),
            ("turn-5.2", Some("t5.2")),
            ("#5", Some("t5")),
            ("t5.END", Some("t5.end")),
            ("t5", None),
            ("5x", None),
            ("", None),
            ("turn", None),
            ("größe", None),
        ] {
            assert_eq!(meant_turn(text).map(|when| when.to_string()).as_deref(), meant, "{text}");
        }
    }

    #[test]
    fn a_name_may_not_look_like_another_form() {
        for bad in ["@", "start", "kmzlopqr", "10m", "t5", "t5.end", "-x", "a:b", " a", "a\nb", ""] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
        for good in ["two", "before refactor", "v1.0", "größer", "tests green", "start2"] {
            assert_eq!(check_name(good), Ok(()), "{good:?}");
        }
    }
}
