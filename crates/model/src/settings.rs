//! Settings: which keys there are, how a `config.toml` writes them, and which of several files takes precedence.
//!
//! Text in, values out: the command line finds the files and reads the variables. A file is accepted as a whole or not
//! at all, so a half-understood file never takes effect.

pub mod edit;
mod mistake;
mod values;

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use self::mistake::{BadSettings, SettingsMistake};
use self::mistake::{bad, cut, describe, nearest, unknown_key};
use self::values::{count, size, time, tools, url, variable_name};
use crate::protection::Protection;

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
    /// Whether the user is shown a line after a turn that changed files.
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
            user_line: setting(true),
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

    /// Whether both say the same of a key.
    fn has_same(&self, other: &Self, key: Key) -> bool {
        let show = |one: &Self| Settings::merged([one.clone()]).show(key);
        show(self) == show(other)
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

fn is_named(pattern: &str, tool: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => tool.starts_with(begin),
        None => tool == pattern,
    }
}

#[cfg(test)]
mod tests;
