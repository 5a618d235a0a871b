//! Making an agent report to piton: its settings files, and what of piton is in them.
//!
//! Text in, text out: the command line reads, backs up and writes the files.

use std::path::{Path, PathBuf};

/// What a variable of the environment says, where it is set.
pub type Variable<'a> = dyn Fn(&str) -> Option<PathBuf> + 'a;

/// How an agent is made to report.
pub trait Setup: Sync {
    /// Which files it reads.
    fn files(&self) -> &'static SettingsFiles;

    /// The folder of the user's own settings; none where there is no home.
    fn user_folder(&self, home: Option<&Path>, variable: &Variable<'_>) -> Option<PathBuf> {
        let files = self.files();
        variable(files.variable).or_else(|| home.map(|home| home.join(files.folder)))
    }

    /// The events that get a hook.
    fn events(&self) -> &'static [&'static str];

    /// The command that a hook runs, for a `piton` at a path.
    fn hook_command(&self, program: &Path) -> Result<String, BadSettings>;

    /// Adds piton's hooks to a settings file, or brings those that are there up to date.
    fn install(&self, text: &str, program: &Path) -> Result<String, BadSettings>;

    /// Takes out piton's hooks and whatever came with them.
    fn remove(&self, text: &str) -> Result<String, BadSettings>;

    /// What of piton is in a settings file.
    fn installed(&self, text: &str) -> Result<Installed, BadSettings>;

    /// The reports of a session that writes one file, to try the hook out: those before the file is written, and those
    /// after.
    fn rehearsal(&self, session: &str, folder: &Path, file: &Path) -> [Vec<String>; 2];
}

/// Where an agent's settings are, and what else piton puts beside them.
#[derive(Clone, Copy, Debug)]
pub struct SettingsFiles {
    /// The folder with its settings, beneath the user's home and in a project.
    pub folder: &'static str,
    /// The variable that names another folder than the one beneath the home.
    pub variable: &'static str,
    /// The user's own settings.
    pub user: &'static str,
    /// Those of a project, the last of them the one that is not shared: a hook names the path of piton on this machine.
    pub project: &'static [&'static str],
    /// The setting that turns all hooks off.
    pub off_switch: &'static str,
    /// The file that makes the agent offer `/piton`.
    pub command: CommandFile,
}

/// A file that makes an agent offer a command.
#[derive(Clone, Copy, Debug)]
pub struct CommandFile {
    /// Where it stands in the folder of the settings.
    pub path: &'static str,
    /// What is in it.
    pub text: &'static str,
    /// What is in every one that a piton ever made.
    pub mark: &'static str,
}

/// Why settings cannot be edited.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadSettings {
    /// The text is no JSON, comments and trailing commas allowed.
    #[error("the settings are not JSON: {message}")]
    Json {
        /// What the parser says, with line and column.
        message: String,
    },
    /// Something is of another type than the agent wants.
    #[error("{what} is not {expected}")]
    Shape {
        /// What.
        what: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A key that comes twice: which of the two counts is anybody's guess.
    #[error("`{key}` comes twice in the settings")]
    Twice {
        /// The key.
        key: String,
    },
    /// A program whose path cannot be written down in JSON, or in a shell's command.
    #[error("`{}` cannot be written into a settings file", .path.display())]
    Program {
        /// The program.
        path: PathBuf,
    },
}

/// What of piton is in a settings file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Installed {
    /// Piton's hooks, in the order of the file.
    pub hooks: Vec<InstalledHook>,
    /// The events that should run a hook of piton's and run none.
    pub missing: Vec<&'static str>,
    /// Whether they are turned off, with all others.
    pub disabled: bool,
    /// Variables of piton's that the file gives to every hook.
    pub variables: Vec<(String, String)>,
}

/// One of piton's hooks in a settings file.
#[derive(Clone, Debug, PartialEq)]
pub struct InstalledHook {
    /// The event that runs it.
    pub event: String,
    /// Its command as it stands there.
    pub text: String,
    /// The program that it runs.
    pub program: PathBuf,
    /// The tools that run it, as it stands there, where those are fewer than may change files.
    pub narrowed_to: Option<String>,
    /// The seconds that the agent gives it.
    pub timeout: Option<f64>,
}

/// The seconds that a capture may take where no setting says otherwise.
const USUAL_SECONDS: f64 = 10.0;

impl InstalledHook {
    /// Whether the agent may end it before it has captured.
    pub fn is_rushed(&self) -> bool {
        self.timeout.is_some_and(|seconds| seconds < USUAL_SECONDS)
    }
}
