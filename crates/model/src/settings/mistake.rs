//! What can be wrong with a settings file, and the message for it.

use toml::de::DeValue;

use super::Key;
use crate::short;

/// What is wrong with a settings file, and where. Line and column count from 1, the column in characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {wrong}")]
pub struct BadSettings {
    pub line: usize,
    pub column: usize,
    pub wrong: SettingsMistake,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsMistake {
    #[error("this is not TOML: {0}")]
    Syntax(String),
    #[error("unknown key `{key}`{}", did_you_mean(*nearest))]
    Key {
        /// As written in the file.
        key: String,
        /// What was probably meant.
        nearest: Option<&'static str>,
    },
    #[error("unknown section `{section}`{}", did_you_mean(*nearest))]
    Section {
        /// As written in the file.
        section: String,
        /// What was probably meant.
        nearest: Option<&'static str>,
    },
    /// A section's name is given a value.
    #[error("`{0}` is a section and takes no value of its own; write `[{0}]` on a line, and its keys below")]
    NotASection(&'static str),
    #[error("`{}` takes {}; found {found}", key.name(), key.takes())]
    Value { key: Key, found: String },
    /// A workspace's file may come from anywhere, and this key would run a program or send a conversation away.
    #[error("`{}` counts in your own file only: a workspace's file may come from anybody", .0.name())]
    NotHere(Key),
}

pub(super) fn unknown_key(key: &str) -> SettingsMistake {
    SettingsMistake::Key { key: cut(key), nearest: nearest(key, Key::ALL.into_iter().map(Key::name)) }
}

/// The name that was probably meant. A key's own name weighs more than its section, since it may be in the wrong one.
pub(super) fn nearest(typed: &str, names: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let typed = cut(typed);
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let own = last(&typed);
    let measured =
        names.map(|name| (strsim::osa_distance(&own, &last(name)), strsim::osa_distance(&typed, name), name));
    let (distance, _, name) = measured.min()?;
    (distance <= 3 && distance * 2 <= own.chars().count()).then_some(name)
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// A value as quoted in an error.
pub(super) fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{:?}", cut(text)),
        DeValue::Integer(number) => cut(&number.to_string()),
        DeValue::Float(number) => cut(&number.to_string()),
        DeValue::Boolean(on) => on.to_string(),
        DeValue::Datetime(_) => "a date or time".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a section".to_owned(),
    }
}

/// A file that comes with a repository can contain names of any length; the error must stay readable.
pub(super) fn cut(text: &str) -> String {
    let cut = short::cut(text, 60);
    if cut.len() < text.len() { cut + "…" } else { cut }
}

pub(super) fn bad(text: &str, at: usize, wrong: SettingsMistake) -> BadSettings {
    let before = &text[..text.floor_char_boundary(at)];
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = before.matches('\n').count() + 1;
    BadSettings { line, column: before[line_start..].chars().count() + 1, wrong }
}
