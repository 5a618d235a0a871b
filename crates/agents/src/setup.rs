//! Making an agent report to piton: its settings files, and what they contain of piton's.
//!
//! Text in, text out: the command line reads, backs up and writes the files.

use std::path::{Path, PathBuf};

/// Looks up an environment variable.
pub type Variable<'a> = dyn Fn(&str) -> Option<PathBuf> + 'a;

/// How an agent is made to report.
pub trait Setup: Sync {
    fn files(&self) -> &'static SettingsFiles;

    /// The folder of the user's own settings; `None` if there is no home.
    fn user_folder(&self, home: Option<&Path>, variable: &Variable<'_>) -> Option<PathBuf> {
        let files = self.files();
        variable(files.variable).or_else(|| home.map(|home| home.join(files.folder)))
    }

    /// The events that get a hook.
    fn events(&self) -> &'static [&'static str];

    /// The command that a hook runs, for a `piton` at a path.
    fn hook_command(&self, program: &Path) -> Result<String, BadSettings>;

    /// Adds piton's hooks to a settings file, or updates existing ones.
    fn install(&self, text: &str, program: &Path) -> Result<String, BadSettings>;

    /// Removes piton's hooks and whatever was added with them.
    fn remove(&self, text: &str) -> Result<String, BadSettings>;

    /// Adds piton's line to the agent's status line, or updates it; none where the agent has no such thing.
    fn put_status_line(&self, text: &str, program: &Path) -> Option<Result<StatusLine, BadSettings>>;

    /// Removes piton's status line and whatever was added with it.
    fn take_status_line(&self, text: &str) -> Result<String, BadSettings>;

    /// What a settings file contains of piton's.
    fn installed(&self, text: &str) -> Result<Installed, BadSettings>;

    /// The reports of a session that writes one file, for trying the hook: those before the file is written, and those
    /// after.
    fn rehearsal(&self, session: &str, folder: &Path, file: &Path) -> [Vec<String>; 2];
}

/// A settings file with piton's status line in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusLine {
    /// The file's new text.
    Put(String),
    /// The user has a status line, which is never replaced: its command, where it is one.
    Users(Option<String>),
}

/// Where an agent's settings are, and what else piton puts next to them.
#[derive(Clone, Copy, Debug)]
pub struct SettingsFiles {
    /// The folder with its settings, beneath the user's home and in a project.
    pub folder: &'static str,
    /// The environment variable that replaces the folder beneath the home.
    pub variable: &'static str,
    pub user: &'static str,
    /// The last is the one that is not shared: a hook contains the path of piton on this machine.
    pub project: &'static [&'static str],
    /// The setting that disables all hooks.
    pub off_switch: &'static str,
    /// The file that makes the agent offer `/piton`.
    pub command: CommandFile,
}

/// A file that makes an agent offer a command.
#[derive(Clone, Copy, Debug)]
pub struct CommandFile {
    /// Relative to the settings folder.
    pub path: &'static str,
    pub text: &'static str,
    /// A text that every version of the file contains.
    pub mark: &'static str,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadSettings {
    /// The text is not JSON, even allowing comments and trailing commas.
    #[error("the settings are not JSON: {message}")]
    Json {
        /// From the parser, with line and column.
        message: String,
    },
    /// Something has another type than the agent expects.
    #[error("{what} is not {expected}")]
    Shape { what: String, expected: &'static str },
    /// A duplicate key: which one counts is anybody's guess.
    #[error("`{key}` comes twice in the settings")]
    Twice { key: String },
    /// A program whose path cannot be written in JSON, or in a shell command.
    #[error("`{}` cannot be written into a settings file", .path.display())]
    Program { path: PathBuf },
}

/// What a settings file contains of piton's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Installed {
    /// In file order.
    pub hooks: Vec<InstalledHook>,
    /// The events that should run a hook of piton's and do not.
    pub missing: Vec<&'static str>,
    /// Whether all hooks are disabled.
    pub disabled: bool,
    /// Why the agent skips the whole file, though piton understands it.
    pub skipped: Option<String>,
    /// Piton's environment variables that the file sets for every hook.
    pub variables: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct InstalledHook {
    /// The event that runs it.
    pub event: String,
    /// The command as written.
    pub text: String,
    /// The program that it runs.
    pub program: PathBuf,
    /// Its matcher as written, if that excludes tools that may change files.
    pub narrowed_to: Option<String>,
    /// In seconds.
    pub timeout: Option<f64>,
}

/// The seconds that a capture may take by default.
const USUAL_SECONDS: f64 = 10.0;

impl InstalledHook {
    /// Whether the agent may end it before the capture is done.
    pub fn is_rushed(&self) -> bool {
        self.timeout.is_some_and(|seconds| seconds < USUAL_SECONDS)
    }
}
