//! Settings: which keys there are, how a `config.toml` writes them, and which of several files takes precedence.
//!
//! Text in, values out: the command line finds the files and reads the variables. A file is accepted as a whole or not
//! at all, so a half-understood file never takes effect.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::protection::Protection;
use crate::short;

/// The settings in force, and where each comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What the user's own file says about protection, even where another layer overrides it.
    pub users: Protection,
    /// Whether an agent's events make checkpoints automatically.
    pub automatic: Setting<bool>,
    /// Files over this many bytes are skipped.
    pub size_limit: Setting<u64>,
    /// Single ignored files over this many bytes are skipped.
    pub ignored_limit: Setting<u64>,
    /// How long a hook may take.
    pub time_budget: Setting<Duration>,
    /// Whether the user is shown a line after a checkpoint was saved.
    pub user_line: Setting<bool>,
    /// Whether the agent is told which files an operation changed under it.
    pub tell_agent: Setting<bool>,
    /// Tools that count as readers, besides those the adapter knows.
    pub readers: Setting<Vec<String>>,
    /// Tools that count as mutating, whatever the adapter and `readers` say.
    pub writers: Setting<Vec<String>>,
    /// How many branches a conversation may have.
    pub most_branches: Setting<u64>,
    /// A command that reads a conversation and writes its summary; empty for none.
    pub summary_command: Setting<String>,
    /// The URL of an OpenAI-compatible API that is asked for summaries; empty for none.
    pub summary_url: Setting<String>,
    /// The model's name in that API; empty for none.
    pub summary_model: Setting<String>,
    /// The environment variable that holds the API key.
    pub summary_key_env: Setting<String>,
    /// How long a summary may take.
    pub summary_time_limit: Setting<Duration>,
}

/// A value and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    pub value: T,
    pub source: Layer,
}

/// Where a setting can come from; a later layer overrides an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    Default,
    User,
    Workspace,
    Environment,
}

/// Each is the field of `Settings` with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Automatic,
    SizeLimit,
    IgnoredLimit,
    TimeBudget,
    UserLine,
    TellAgent,
    Readers,
    Writers,
    MostBranches,
    SummaryCommand,
    SummaryUrl,
    SummaryModel,
    SummaryKeyEnv,
    SummaryTimeLimit,
}

/// A setting's value, for display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Value {
    Switch(bool),
    /// In bytes.
    Size(u64),
    #[serde(serialize_with = "as_text")]
    Time(Duration),
    Tools(Vec<String>),
    Count(u64),
    Text(String),
}

/// The settings of one layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerSettings {
    layer: Layer,
    automatic: Option<bool>,
    size_limit: Option<u64>,
    ignored_limit: Option<u64>,
    time_budget: Option<Duration>,
    user_line: Option<bool>,
    tell_agent: Option<bool>,
    readers: Option<Vec<String>>,
    writers: Option<Vec<String>>,
    most_branches: Option<u64>,
    summary_command: Option<String>,
    summary_url: Option<String>,
    summary_model: Option<String>,
    summary_key_env: Option<String>,
    summary_time_limit: Option<Duration>,
}

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

pub fn read(text: &str, layer: Layer) -> Result<LayerSettings, BadSettings> {
    let document = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        bad(text, at, SettingsMistake::Syntax(error.message().replace('\n', ", ")))
    })?;
    let mut partial = LayerSettings::empty(layer);
    // The parser's tables are sorted by name; of several mistakes, the first in the file is reported.
    let mut first: Option<(usize, SettingsMistake)> = None;
    let mut report = |at: usize, wrong| {
        if first.as_ref().is_none_or(|(earlier, _)| at < *earlier) {
            first = Some((at, wrong));
        }
    };
    for (name, found) in document.get_ref() {
        let section = SECTIONS.into_iter().find(|section| *section == name.get_ref());
        match (section, found.get_ref()) {
            (Some(section), DeValue::Table(keys)) => {
                for (name, found) in keys {
                    let whole = format!("{section}.{}", name.get_ref());
                    match Key::ALL.into_iter().find(|key| key.name() == whole) {
                        Some(key) if layer == Layer::Workspace && key.is_personal() => {
                            report(name.span().start, SettingsMistake::NotHere(key));
                        }
                        Some(key) => {
                            if let Err(wrong) = partial.set(key, found) {
                                let found = describe(wrong.get_ref());
                                report(wrong.span().start, SettingsMistake::Value { key, found });
                            }
                        }
                        None => report(name.span().start, unknown_key(&whole)),
                    }
                }
            }
            (Some(section), _) => report(found.span().start, SettingsMistake::NotASection(section)),
            (None, DeValue::Table(_)) => {
                let nearest = nearest(name.get_ref(), SECTIONS.into_iter());
                report(name.span().start, SettingsMistake::Section { section: cut(name.get_ref()), nearest });
            }
            (None, _) => report(name.span().start, unknown_key(name.get_ref())),
        }
    }
    match first {
        Some((at, wrong)) => Err(bad(text, at, wrong)),
        None => Ok(partial),
    }
}

impl Default for Settings {
    fn default() -> Self {
        fn setting<T>(value: T) -> Setting<T> {
            Setting { value, source: Layer::Default }
        }
        Self {
            users: Protection::default(),
            automatic: setting(true),
            size_limit: setting(2 << 30),
            ignored_limit: setting(1 << 20),
            time_budget: setting(Duration::from_secs(10)),
            user_line: setting(false),
            tell_agent: setting(true),
            readers: setting(Vec::new()),
            writers: setting(Vec::new()),
            most_branches: setting(100),
            summary_command: setting(String::new()),
            summary_url: setting(String::new()),
            summary_model: setting(String::new()),
            summary_key_env: setting("OPENAI_API_KEY".to_owned()),
            summary_time_limit: setting(Duration::from_secs(3 * 60)),
        }
    }
}

impl Settings {
    /// The defaults, overridden layer by layer. A list replaces a list.
    pub fn merged(partials: impl IntoIterator<Item = LayerSettings>) -> Self {
        let mut settings = Self::default();
        let mut partials: Vec<_> = partials.into_iter().collect();
        partials.sort_by_key(|partial| partial.layer);
        partials.into_iter().for_each(|partial| settings.apply(partial));
        settings
    }

    fn apply(&mut self, partial: LayerSettings) {
        fn take<T>(setting: &mut Setting<T>, value: Option<T>, source: Layer) {
            if let Some(value) = value {
                *setting = Setting { value, source };
            }
        }
        let layer = partial.layer;
        if layer == Layer::User {
            self.users = partial.protection();
        }
        take(&mut self.automatic, partial.automatic, layer);
        take(&mut self.size_limit, partial.size_limit, layer);
        take(&mut self.ignored_limit, partial.ignored_limit, layer);
        take(&mut self.time_budget, partial.time_budget, layer);
        take(&mut self.user_line, partial.user_line, layer);
        take(&mut self.tell_agent, partial.tell_agent, layer);
        take(&mut self.readers, partial.readers, layer);
        take(&mut self.writers, partial.writers, layer);
        take(&mut self.most_branches, partial.most_branches, layer);
        take(&mut self.summary_command, partial.summary_command, layer);
        take(&mut self.summary_url, partial.summary_url, layer);
        take(&mut self.summary_model, partial.summary_model, layer);
        take(&mut self.summary_key_env, partial.summary_key_env, layer);
        take(&mut self.summary_time_limit, partial.summary_time_limit, layer);
    }

    /// Whether a tool only reads, given what the adapter thinks. A writer stays one whoever calls it a reader: an
    /// unnecessary capture costs little, a missing one loses work.
    pub fn is_reader(&self, tool: &str, known_as_reader: bool) -> bool {
        let named = |patterns: &[String]| patterns.iter().any(|pattern| is_named(pattern, tool));
        !named(&self.writers.value) && (known_as_reader || named(&self.readers.value))
    }

    /// One of the settings, for display.
    pub fn show(&self, key: Key) -> Setting<Value> {
        fn shown<T: Clone>(setting: &Setting<T>, value: impl Fn(T) -> Value) -> Setting<Value> {
            Setting { value: value(setting.value.clone()), source: setting.source }
        }
        match key {
            Key::Automatic => shown(&self.automatic, Value::Switch),
            Key::SizeLimit => shown(&self.size_limit, Value::Size),
            Key::IgnoredLimit => shown(&self.ignored_limit, Value::Size),
            Key::TimeBudget => shown(&self.time_budget, Value::Time),
            Key::UserLine => shown(&self.user_line, Value::Switch),
            Key::TellAgent => shown(&self.tell_agent, Value::Switch),
            Key::Readers => shown(&self.readers, Value::Tools),
            Key::Writers => shown(&self.writers, Value::Tools),
            Key::MostBranches => shown(&self.most_branches, Value::Count),
            Key::SummaryCommand => shown(&self.summary_command, Value::Text),
            Key::SummaryUrl => shown(&self.summary_url, Value::Text),
            Key::SummaryModel => shown(&self.summary_model, Value::Text),
            Key::SummaryKeyEnv => shown(&self.summary_key_env, Value::Text),
            Key::SummaryTimeLimit => shown(&self.summary_time_limit, Value::Time),
        }
    }
}

impl LayerSettings {
    /// A layer that sets nothing.
    pub fn empty(layer: Layer) -> Self {
        Self {
            layer,
            automatic: None,
            size_limit: None,
            ignored_limit: None,
            time_budget: None,
            user_line: None,
            tell_agent: None,
            readers: None,
            writers: None,
            most_branches: None,
            summary_command: None,
            summary_url: None,
            summary_model: None,
            summary_key_env: None,
            summary_time_limit: None,
        }
    }

    /// The keys that affect how well the workspace is protected.
    pub fn protection(&self) -> Protection {
        Protection {
            automatic: self.automatic,
            size_limit: self.size_limit,
            ignored_limit: self.ignored_limit,
            time_budget: self.time_budget,
            readers: self.readers.clone(),
            writers: self.writers.clone(),
        }
    }

    /// The same layer with other protection settings.
    pub fn protecting(self, protection: &Protection) -> Self {
        let Protection { automatic, size_limit, ignored_limit, time_budget, readers, writers } = protection.clone();
        Self { automatic, size_limit, ignored_limit, time_budget, readers, writers, ..self }
    }

    /// Sets a key from the text of a variable, which is written as in a file but without quotes.
    pub fn set_text(&mut self, key: Key, text: &str) -> Result<(), SettingsMistake> {
        let value = match text.trim() {
            "true" => DeValue::Boolean(true),
            "false" => DeValue::Boolean(false),
            text => DeValue::String(text.into()),
        };
        let found = Spanned::new(0..0, value);
        self.set(key, &found).map_err(|wrong| SettingsMistake::Value { key, found: describe(wrong.get_ref()) })
    }

    /// Sets a key, or returns the part of the value that is wrong.
    fn set<'a, 'i>(&mut self, key: Key, found: &'a Spanned<DeValue<'i>>) -> Result<(), &'a Spanned<DeValue<'i>>> {
        let value = found.get_ref();
        match key {
            Key::Automatic => self.automatic = Some(value.as_bool().ok_or(found)?),
            Key::SizeLimit => self.size_limit = Some(size(value).filter(|bytes| *bytes > 0).ok_or(found)?),
            Key::IgnoredLimit => self.ignored_limit = Some(size(value).ok_or(found)?),
            Key::TimeBudget => {
                let time = value.as_str().and_then(time).filter(|time| (SHORTEST..=LONGEST).contains(time));
                self.time_budget = Some(time.ok_or(found)?);
            }
            Key::UserLine => self.user_line = Some(value.as_bool().ok_or(found)?),
            Key::TellAgent => self.tell_agent = Some(value.as_bool().ok_or(found)?),
            Key::Readers => self.readers = Some(tools(found)?),
            Key::Writers => self.writers = Some(tools(found)?),
            Key::MostBranches => self.most_branches = Some(count(value).ok_or(found)?),
            Key::SummaryCommand => self.summary_command = Some(value.as_str().ok_or(found)?.trim().to_owned()),
            Key::SummaryUrl => self.summary_url = Some(value.as_str().and_then(url).ok_or(found)?),
            Key::SummaryModel => self.summary_model = Some(value.as_str().ok_or(found)?.trim().to_owned()),
            Key::SummaryKeyEnv => self.summary_key_env = Some(value.as_str().and_then(variable_name).ok_or(found)?),
            Key::SummaryTimeLimit => {
                let time = value.as_str().and_then(time).filter(|time| (SHORTEST..=LONGEST_SUMMARY).contains(time));
                self.summary_time_limit = Some(time.ok_or(found)?);
            }
        }
        Ok(())
    }
}

const SECTIONS: [&str; 5] = ["capture", "hook", "tools", "conversation", "summary"];

/// A hook that gives up sooner captures nothing on a busy machine.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(10 * 60);
/// Longest time limit for a summary: nobody waits longer.
const LONGEST_SUMMARY: Duration = Duration::from_secs(60 * 60);

impl Key {
    /// In the order of a file.
    pub const ALL: [Self; 14] = [
        Self::Automatic,
        Self::SizeLimit,
        Self::IgnoredLimit,
        Self::TimeBudget,
        Self::UserLine,
        Self::TellAgent,
        Self::Readers,
        Self::Writers,
        Self::MostBranches,
        Self::SummaryCommand,
        Self::SummaryUrl,
        Self::SummaryModel,
        Self::SummaryKeyEnv,
        Self::SummaryTimeLimit,
    ];

    /// The full name, with its section.
    pub fn name(self) -> &'static str {
        match self {
            Self::Automatic => "capture.automatic",
            Self::SizeLimit => "capture.size-limit",
            Self::IgnoredLimit => "capture.ignored-limit",
            Self::TimeBudget => "hook.time-budget",
            Self::UserLine => "hook.user-line",
            Self::TellAgent => "hook.tell-agent",
            Self::Readers => "tools.readers",
            Self::Writers => "tools.writers",
            Self::MostBranches => "conversation.most-branches",
            Self::SummaryCommand => "summary.command",
            Self::SummaryUrl => "summary.url",
            Self::SummaryModel => "summary.model",
            Self::SummaryKeyEnv => "summary.key-env",
            Self::SummaryTimeLimit => "summary.time-limit",
        }
    }

    /// The variable that overrides all files; lists have none.
    pub fn variable(self) -> Option<String> {
        let is_list = matches!(self, Self::Readers | Self::Writers);
        (!is_list).then(|| format!("PITON_{}", self.name().replace(['.', '-'], "_").to_uppercase()))
    }

    /// Whether it counts only in the user's own file and in variables.
    pub fn is_personal(self) -> bool {
        // These run a program of the user's, or send the conversation to a third party.
        self.name().starts_with("summary.")
    }

    /// What values it takes, with an example.
    pub fn takes(self) -> &'static str {
        match self {
            Self::Automatic | Self::UserLine | Self::TellAgent => "true or false",
            Self::SizeLimit => "a size such as \"512KiB\" or \"2GiB\"",
            Self::IgnoredLimit => "a size such as \"1MiB\", or \"0\" for none",
            Self::TimeBudget => "a time from \"1s\" to \"10m\", such as \"10s\"",
            Self::MostBranches => "a number from 1 to 100000, such as 100",
            Self::Readers | Self::Writers => {
                "a list of tools such as [\"mcp__docs__search\", \"mcp__wiki__*\"]; a `*` stands at the end of a name"
            }
            Self::SummaryCommand => "a command for a shell such as \"llm -s 'Summarize this conversation'\"",
            Self::SummaryUrl => "an address such as \"https://api.openai.com/v1\"",
            Self::SummaryModel => "the name of a model such as \"gpt-5-mini\"",
            Self::SummaryKeyEnv => "the name of a variable such as \"OPENAI_API_KEY\"",
            Self::SummaryTimeLimit => "a time from \"1s\" to \"60m\", such as \"3m\"",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Default => "default",
            Self::User => "user",
            Self::Workspace => "workspace",
            Self::Environment => "environment",
        })
    }
}

/// Exact, and as it could be written in a file, but without quotes and brackets.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(on) => write!(f, "{on}"),
            Self::Size(bytes) => {
                let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
                let whole = |(shift, _): &(u32, &str)| *bytes > 0 && bytes.trailing_zeros() >= *shift;
                match units.into_iter().find(whole) {
                    Some((shift, unit)) => write!(f, "{}{unit}", bytes >> shift),
                    None => write!(f, "{bytes}"),
                }
            }
            Self::Time(time) => match time.as_millis() {
                ms if ms.is_multiple_of(60_000) => write!(f, "{}m", ms / 60_000),
                ms if ms.is_multiple_of(1000) => write!(f, "{}s", ms / 1000),
                ms => write!(f, "{ms}ms"),
            },
            Self::Tools(names) => f.write_str(&names.join(", ")),
            Self::Count(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

fn as_text<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Value::Time(*time))
}

/// A number of bytes, or `512KiB`, `2 GB`. Units are powers of 1024, as for `piton init --budget`.
fn size(value: &DeValue<'_>) -> Option<u64> {
    let bytes = match value {
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok()?,
        DeValue::String(text) => {
            let (number, unit) = number_and_unit(text)?;
            let shift = match unit.to_ascii_uppercase().as_str() {
                "" | "B" => 0,
                "K" | "KB" | "KIB" => 10,
                "M" | "MB" | "MIB" => 20,
                "G" | "GB" | "GIB" => 30,
                "T" | "TB" | "TIB" => 40,
                _ => return None,
            };
            number.checked_mul(1 << shift)?
        }
        _ => return None,
    };
    Some(bytes).filter(|bytes| *bytes < 1 << 60)
}

/// A number, or its text in a variable.
fn count(value: &DeValue<'_>) -> Option<u64> {
    let number = match value {
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok()?,
        DeValue::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    Some(number).filter(|number| (1..=100_000).contains(number))
}

/// `10s`, `500ms`, `2m`.
fn time(text: &str) -> Option<Duration> {
    let (number, unit) = number_and_unit(text)?;
    let unit = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        _ => return None,
    };
    number.checked_mul(unit).map(Duration::from_millis)
}

fn number_and_unit(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.trim_start()))
}

fn tools<'a, 'i>(found: &'a Spanned<DeValue<'i>>) -> Result<Vec<String>, &'a Spanned<DeValue<'i>>> {
    let tool = |entry: &'a Spanned<DeValue<'i>>| {
        let name = entry.get_ref().as_str().filter(|name| {
            let begin = name.strip_suffix('*').unwrap_or(name);
            !name.trim().is_empty() && !begin.contains('*')
        });
        name.map(str::to_owned).ok_or(entry)
    };
    found.get_ref().as_array().ok_or(found)?.iter().map(tool).collect()
}

/// A web address, or the empty text.
fn url(text: &str) -> Option<String> {
    let text = text.trim();
    let is_address =
        ["http://", "https://"].iter().any(|scheme| text.strip_prefix(scheme).is_some_and(|h| !h.is_empty()));
    let is_one_word = !text.contains(|c: char| c.is_whitespace() || c.is_control());
    (text.is_empty() || (is_address && is_one_word)).then(|| text.to_owned())
}

fn variable_name(text: &str) -> Option<String> {
    let is_name = !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    is_name.then(|| text.to_owned())
}

fn is_named(pattern: &str, tool: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => tool.starts_with(begin),
        None => tool == pattern,
    }
}

fn unknown_key(key: &str) -> SettingsMistake {
    SettingsMistake::Key { key: cut(key), nearest: nearest(key, Key::ALL.into_iter().map(Key::name)) }
}

/// The name that was probably meant. A key's own name weighs more than its section, since it may be in the wrong one.
fn nearest(typed: &str, names: impl Iterator<Item = &'static str>) -> Option<&'static str> {
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
fn describe(value: &DeValue<'_>) -> String {
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
fn cut(text: &str) -> String {
    let cut = short::cut(text, 60);
    if cut.len() < text.len() { cut + "…" } else { cut }
}

fn bad(text: &str, at: usize, wrong: SettingsMistake) -> BadSettings {
    let before = &text[..text.floor_char_boundary(at)];
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = before.matches('\n').count() + 1;
    BadSettings { line, column: before[line_start..].chars().count() + 1, wrong }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, key: Key, expected: Value) {
        let partial = read(text, Layer::User).unwrap_or_else(|bad| panic!("{text:?}: {bad}"));
        let shown = Settings::merged([partial]).show(key);
        assert_eq!(shown, Setting { value: expected, source: Layer::User }, "{text:?}");
    }

    #[track_caller]
    fn refused(text: &str, expected: &str) {
        let said = read(text, Layer::User).map(|_| ()).unwrap_err().to_string();
        assert_eq!(said, expected, "{text:?}");
    }

    #[test]
    fn an_empty_file_says_nothing() {
        for text in ["", "\n# nothing\n", "[capture]\n[hook]\n[tools]\n", "\u{feff}"] {
            let partial = read(text, Layer::User).unwrap();
            assert_eq!(partial, LayerSettings::empty(Layer::User));
            assert_eq!(Settings::merged([partial]), Settings::default());
        }
    }

    #[test]
    fn every_key_can_be_set() {
        check("[capture]\nautomatic = false", Key::Automatic, Value::Switch(false));
        check("capture.size-limit = '512KiB'", Key::SizeLimit, Value::Size(512 << 10));
        check("capture = { ignored-limit = \"0\" }", Key::IgnoredLimit, Value::Size(0));
        check("[hook]\ntime-budget = \"2m\"", Key::TimeBudget, Value::Time(Duration::from_secs(120)));
        check("[hook]\nuser-line = true", Key::UserLine, Value::Switch(true));
        check("[tools]\nreaders = ['a', 'b*']", Key::Readers, Value::Tools(vec!["a".into(), "b*".into()]));
        check("[tools]\nwriters = []", Key::Writers, Value::Tools(Vec::new()));
        check("[conversation]\nmost-branches = 7", Key::MostBranches, Value::Count(7));
    }

    #[test]
    fn a_number_of_branches_is_at_least_one() {
        for bad in ["0", "-1", "100001", "'many'", "1.5", "true"] {
            assert!(read(&format!("conversation.most-branches = {bad}"), Layer::User).is_err(), "{bad}");
        }
        assert_eq!(Key::MostBranches.variable().as_deref(), Some("PITON_CONVERSATION_MOST_BRANCHES"));
    }

    #[test]
    fn sizes_are_bytes_or_have_a_unit() {
        for (text, bytes) in [
            ("4096", 4096),
            ("0x10_00", 4096),
            ("1_000_000", 1_000_000),
            ("'4096'", 4096),
            ("'7 B'", 7),
            ("'512KiB'", 512 << 10),
            ("'2 GB'", 2 << 30),
            ("'3m'", 3 << 20),
            ("' 1TiB '", 1 << 40),
        ] {
            check(&format!("capture.size-limit = {text}"), Key::SizeLimit, Value::Size(bytes));
        }
        for text in
            ["0", "'0'", "-1", "1.5", "'1.5GiB'", "'GiB'", "''", "'5 apples'", "'99999999999TiB'", "true", "[1]"]
        {
            assert!(read(&format!("capture.size-limit = {text}"), Layer::User).is_err(), "{text}");
        }
    }

    #[test]
    fn times_have_a_unit_and_keep_to_the_limits() {
        for (text, ms) in [("1s", 1000), ("1500ms", 1500), ("10 s", 10_000), ("10m", 600_000), ("600s", 600_000)] {
            let expected = Value::Time(Duration::from_millis(ms));
            check(&format!("hook.time-budget = '{text}'"), Key::TimeBudget, expected);
        }
        for text in
            ["'500ms'", "'0s'", "'11m'", "'601s'", "10", "'10'", "'1h'", "'-1s'", "'1.5s'", "'99999999999999999m'"]
        {
            assert!(read(&format!("hook.time-budget = {text}"), Layer::User).is_err(), "{text}");
        }
    }

    #[test]
    fn a_value_is_shown_as_it_could_be_written() {
        for (value, text) in [
            (Value::Size(0), "0"),
            (Value::Size(1500), "1500"),
            (Value::Size(1536), "1536"),
            (Value::Size(1 << 20), "1MiB"),
            (Value::Size(3 << 29), "1536MiB"),
            (Value::Time(Duration::from_secs(10)), "10s"),
            (Value::Time(Duration::from_secs(120)), "2m"),
            (Value::Time(Duration::from_millis(1500)), "1500ms"),
        ] {
            assert_eq!(value.to_string(), text);
        }
        let time = serde_json::to_string(&Value::Time(Duration::from_secs(10))).unwrap();
        assert_eq!(time, "\"10s\"");
    }

    #[test]
    fn an_unknown_key_is_named_with_its_place_and_the_nearest_one() {
        for (text, expected) in [
            ("\n[capture]\nautomtic = true", "3:1: unknown key `capture.automtic`; did you mean `capture.automatic`?"),
            ("capture.size_limit = 1", "1:9: unknown key `capture.size_limit`; did you mean `capture.size-limit`?"),
            ("[hook]\nautomatic = true", "2:1: unknown key `hook.automatic`; did you mean `capture.automatic`?"),
            ("user-line = true", "1:1: unknown key `user-line`; did you mean `hook.user-line`?"),
            ("[tools]\nreader = []", "2:1: unknown key `tools.reader`; did you mean `tools.readers`?"),
            ("[capture]\ncolour = 'red'", "2:1: unknown key `capture.colour`"),
            ("[hooks]\nuser-line = true", "1:2: unknown section `hooks`; did you mean `hook`?"),
            ("[captrue.x]", "1:2: unknown section `captrue`; did you mean `capture`?"),
            ("[foo]", "1:2: unknown section `foo`"),
            ("\"\" = 1", "1:1: unknown key ``"),
        ] {
            refused(text, expected);
        }
    }

    #[test]
    fn a_wrong_value_is_told_with_what_is_expected() {
        for (text, expected) in [
            ("capture.automatic = 'yes'", "1:21: `capture.automatic` takes true or false; found \"yes\""),
            ("capture.automatic.x = 1", "1:9: `capture.automatic` takes true or false; found a section"),
            (
                "[capture]\nsize-limit = '2 apples'",
                "2:14: `capture.size-limit` takes a size such as \"512KiB\" or \"2GiB\"; found \"2 apples\"",
            ),
            (
                "capture.ignored-limit = -1",
                "1:25: `capture.ignored-limit` takes a size such as \"1MiB\", or \"0\" for none; found -1",
            ),
            (
                "hook.time-budget = 10",
                "1:20: `hook.time-budget` takes a time from \"1s\" to \"10m\", such as \"10s\"; found 10",
            ),
            (
                "capture = true",
                "1:11: `capture` is a section and takes no value of its own; write `[capture]` on a line, and its keys below",
            ),
        ] {
            refused(text, expected);
        }
    }

    #[test]
    fn of_a_list_the_wrong_entry_is_found() {
        let list = "`tools.readers` takes a list of tools such as [\"mcp__docs__search\", \"mcp__wiki__*\"]; \
                    a `*` stands at the end of a name; found ";
        for (text, place, found) in [
            ("tools.readers = 'Read'", "1:17", "\"Read\""),
            ("tools.readers = ['Read', 7]", "1:26", "7"),
            ("tools.readers = [\n  'ü', 'm*p']", "2:8", "\"m*p\""),
            ("tools.readers = ['']", "1:18", "\"\""),
        ] {
            refused(text, &format!("{place}: {list}{found}"));
        }
    }

    #[test]
    fn of_several_mistakes_the_first_in_the_file_is_told() {
        refused("[tools]\nx = 1\n[capture]\nautomatic = 1", "2:1: unknown key `tools.x`");
        refused("[hook]\nzzz = 1\naaa = 1", "2:1: unknown key `hook.zzz`");
    }

    #[test]
    fn what_is_no_toml_is_told_with_its_place() {
        for (text, place) in [
            ("[capture\n", "1:9: "),
            ("[capture]\nautomatic true\n", "2:11: "),
            ("[capture]\nautomatic = true\nautomatic = false\n", "3:1: "),
            ("x = \"\u{1b}\"", "1:6: "),
        ] {
            let said = read(text, Layer::User).unwrap_err().to_string();
            assert!(said.starts_with(&format!("{place}this is not TOML: ")), "{text:?}: {said}");
            assert!(!said.contains('\n'), "{said}");
        }
    }

    #[test]
    fn long_names_are_cut_and_deep_ones_are_refused() {
        let said = read(&format!("{} = 1", "x".repeat(500_000)), Layer::Workspace).unwrap_err().to_string();
        assert!(said.len() < 200, "{said}");
        let said = read(&format!("capture.automatic = '{}'", "x".repeat(500_000)), Layer::Workspace).unwrap_err();
        assert!(said.to_string().len() < 200, "{said}");
        for deep in [format!("x = {}", "[".repeat(500_000)), format!("x{} = 1", ".x".repeat(200_000))] {
            assert!(read(&deep, Layer::Workspace).is_err());
        }
    }

    #[test]
    fn the_later_layer_decides_key_by_key() {
        let user =
            read("capture.automatic = false\ncapture.size-limit = 1\ntools.readers = ['a']", Layer::User).unwrap();
        let workspace = read("capture.size-limit = 2\ntools.readers = ['b']", Layer::Workspace).unwrap();
        let mut variables = LayerSettings::empty(Layer::Environment);
        variables.set_text(Key::TimeBudget, "3s").unwrap();
        // In whatever order they come.
        let settings = Settings::merged([variables, workspace, user]);
        assert_eq!(settings.automatic, Setting { value: false, source: Layer::User });
        assert_eq!(settings.size_limit, Setting { value: 2, source: Layer::Workspace });
        assert_eq!(settings.ignored_limit, Setting { value: 1 << 20, source: Layer::Default });
        assert_eq!(settings.time_budget, Setting { value: Duration::from_secs(3), source: Layer::Environment });
        assert_eq!(settings.readers, Setting { value: vec!["b".into()], source: Layer::Workspace });
    }

    #[test]
    fn a_variable_is_written_without_quotes() {
        let mut partial = LayerSettings::empty(Layer::Environment);
        for (key, text) in [
            (Key::Automatic, "false"),
            (Key::SizeLimit, "4096"),
            (Key::IgnoredLimit, "2 MiB"),
            (Key::TimeBudget, "1m"),
            (Key::UserLine, " true "),
            (Key::MostBranches, " 12 "),
        ] {
            assert_eq!(partial.set_text(key, text), Ok(()), "{text}");
        }
        let said = partial.set_text(Key::UserLine, "yes").unwrap_err().to_string();
        assert_eq!(said, "`hook.user-line` takes true or false; found \"yes\"");
        assert_eq!(Key::TimeBudget.variable().as_deref(), Some("PITON_HOOK_TIME_BUDGET"));
        assert_eq!(Key::Readers.variable(), None);
    }

    #[test]
    fn who_summarizes_is_the_users_own_to_say_and_no_workspaces() {
        let text = "[summary]\ncommand = \"claude -p 'Summarize'\"\nurl = 'https://x/v1'\nkey-env = 'MY_KEY'\ntime-limit = '10m'";
        check(text, Key::SummaryCommand, Value::Text("claude -p 'Summarize'".into()));
        check(text, Key::SummaryUrl, Value::Text("https://x/v1".into()));
        check(text, Key::SummaryKeyEnv, Value::Text("MY_KEY".into()));
        check(text, Key::SummaryTimeLimit, Value::Time(Duration::from_secs(600)));
        check("summary.url = ''", Key::SummaryUrl, Value::Text(String::new()));
        for bad in ["url = 'ftp://x'", "url = 'https://'", "url = 'http://a b'", "key-env = 'A B'", "time-limit = '2h'"]
        {
            assert!(read(&format!("summary.{bad}"), Layer::User).is_err(), "{bad}");
        }
        for key in Key::ALL.into_iter().filter(|key| key.is_personal()) {
            let bad = read(&format!("{} = 'x'", key.name()), Layer::Workspace).unwrap_err();
            assert_eq!(bad.wrong, SettingsMistake::NotHere(key));
            assert!(key.name().starts_with("summary.") && key.variable().is_some());
        }
    }

    #[test]
    fn a_tool_is_a_reader_if_somebody_says_so_and_nobody_calls_it_a_writer() {
        let text = "[tools]\nreaders = ['mcp__docs__*', 'Peek', 'Both']\nwriters = ['Read', 'Both', 'mcp__docs__put*']";
        let settings = Settings::merged([read(text, Layer::User).unwrap()]);
        for (tool, known, expected) in [
            ("Grep", true, true),
            ("Bash", false, false),
            ("Peek", false, true),
            ("PeekMore", false, false),
            ("mcp__docs__search", false, true),
            ("mcp__docs__", false, true),
            ("mcp__docs", false, false),
            ("mcp__docs__put_page", false, false),
            ("Read", true, false),
            ("Both", false, false),
        ] {
            assert_eq!(settings.is_reader(tool, known), expected, "{tool}");
        }
    }
}
