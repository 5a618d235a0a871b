//! Where settings are: the user's `config.toml`, the workspace's, and the variables that decide over both.
//!
//! Called by `piton config`, which shows them, and by the hook, which must go on whatever is in these files. What can
//! be set, and what is right, is `model::settings`.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use piton_engine::model::Protection;
use piton_engine::model::settings::{self, Key, Layer, LayerSettings, Settings, SettingsMistake};
use piton_engine::{Engine, Environment};
use piton_wording::escape::{escape, escape_path};
use piton_wording::{Code, Failure, call, text};
use rustix::fs::{CWD, FileType, Mode, OFlags, openat};
use rustix::io::Errno;

use crate::environment;

/// A file that may hold settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsFile {
    /// Whose it is.
    pub layer: Layer,
    /// Where it is.
    pub path: PathBuf,
}

/// What was found.
pub struct Found {
    /// What holds; a file or variable with a mistake in it has no say.
    pub settings: Settings,
    /// The files, and whether each is there.
    pub files: Vec<(SettingsFile, bool)>,
    /// What is wrong.
    pub problems: Vec<Failure>,
    /// Settings of the workspace's file that do not hold until the user agrees.
    pub waiting: Vec<Key>,
}

/// Settings are a few lines; whatever is larger is something else.
const LARGEST: u64 = 1 << 20;

/// The settings for a workspace's root, or those for no workspace. This never fails: what has a mistake in it has no
/// say, and the mistakes are told beside.
pub fn load_leniently(workspace: Option<&Path>) -> (Settings, Vec<String>) {
    find(workspace).leniently()
}

/// Everything about the settings for a workspace's root.
pub fn find(workspace: Option<&Path>) -> Found {
    let mut waiting = Vec::new();
    let in_force = |partial: LayerSettings, users: Protection| {
        let (Some(root), Ok(home)) = (workspace, environment::home()) else { return partial };
        let environment = Environment { users_settings: users, ..Environment::default() };
        let held = Engine::new(home, environment).settings_in_force(root, partial.protection());
        waiting = held.waiting;
        partial.protecting(&held.protection)
    };
    let variable = |name: &str| Some(std::env::var_os(name)?.to_string_lossy().into_owned());
    let found = gather(places(workspace), variable, in_force);
    Found { waiting, ..found }
}

/// The files that are asked, in the order in which they decide.
pub fn places(workspace: Option<&Path>) -> Vec<SettingsFile> {
    let user = user_file().map(|path| SettingsFile { layer: Layer::User, path });
    let workspace = workspace.map(|root| SettingsFile { layer: Layer::Workspace, path: root.join(FOLDER).join(FILE) });
    user.into_iter().chain(workspace).collect()
}

/// A path as people write it, the home folder as `~`.
pub fn shown(path: &Path) -> String {
    match etcetera::home_dir().ok().as_deref().map(|home| path.strip_prefix(home)) {
        Some(Ok(inside)) => format!("~/{}", escape_path(inside)),
        _ => escape_path(path),
    }
}

impl Found {
    /// Itself, if nothing is wrong.
    pub fn strictly(mut self) -> Result<Self, Failure> {
        if self.problems.is_empty() { Ok(self) } else { Err(self.problems.swap_remove(0)) }
    }

    fn leniently(self) -> (Settings, Vec<String>) {
        let told = self.problems.into_iter().map(|problem| escape(&problem.message).into_owned());
        (self.settings, told.collect())
    }
}

const FOLDER: &str = ".piton";
const FILE: &str = "config.toml";

/// The text of one of the files; none where there is no such file.
///
/// # Errors
/// Where it cannot be read, or is no file of settings.
pub fn text_of(file: &SettingsFile) -> Result<Option<String>, Failure> {
    read(file)
}

fn user_file() -> Option<PathBuf> {
    match std::env::var_os("PITON_CONFIG").filter(|place| !place.is_empty()) {
        Some(place) => std::path::absolute(&place).ok(),
        None => Some(etcetera::choose_base_strategy().ok()?.config_dir().join("piton").join(FILE)),
    }
}

/// `in_force` makes of what the workspace's file says what holds of it, over what the user's says.
fn gather(
    places: Vec<SettingsFile>,
    variable: impl Fn(&str) -> Option<String>,
    mut in_force: impl FnMut(LayerSettings, Protection) -> LayerSettings,
) -> Found {
    let mut partials = Vec::new();
    let mut problems = Vec::new();
    let mut files = Vec::new();
    for file in places {
        let text = read(&file);
        files.push((file.clone(), !matches!(text, Ok(None))));
        let partial = text.and_then(|text| {
            let text = text.as_deref().unwrap_or_default();
            settings::read(text, file.layer).map_err(|bad| {
                let failure = Failure::user(Code::BadSettings, format!("{}:{bad}", shown(&file.path)));
                match bad.wrong {
                    SettingsMistake::Syntax(_) => failure,
                    _ => failure.hint(text![call("help").arg("config"), " lists the keys and what they take"]),
                }
            })
        });
        // A file with a mistake in it says nothing; what was agreed to before may still hold.
        let partial = partial.unwrap_or_else(|problem| {
            problems.push(problem);
            LayerSettings::empty(file.layer)
        });
        let users = || partials.first().map(LayerSettings::protection).unwrap_or_default();
        partials.push(if file.layer == Layer::Workspace { in_force(partial, users()) } else { partial });
    }
    let mut variables = LayerSettings::empty(Layer::Environment);
    for key in Key::ALL {
        let Some(name) = key.variable() else { continue };
        // An empty variable is one that is not set.
        if let Some(text) = variable(&name).filter(|text| !text.is_empty())
            && let Err(wrong) = variables.set_text(key, &text)
        {
            problems.push(Failure::user(Code::BadSettings, format!("{name}: {wrong}")));
        }
    }
    partials.push(variables);
    Found { settings: Settings::merged(partials), files, problems, waiting: Vec::new() }
}

/// The text of a file that is there.
#[expect(clippy::disallowed_types, reason = "settings are piton's own file; a workspace's is opened without symlinks")]
fn read(file: &SettingsFile) -> Result<Option<String>, Failure> {
    let failed =
        |why: &dyn std::fmt::Display| Failure::user(Code::BadSettings, format!("{}: {why}", shown(&file.path)));
    let refused = |error: std::io::Error| {
        failed(&format!("the settings cannot be read: {error}")).hint("let your user read the file, or move it away")
    };
    let opened = if file.layer == Layer::Workspace { open_without_symlinks(&file.path) } else { open(&file.path) };
    let opened = match opened {
        Ok(opened) => opened,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(Errno::LOOP) if file.layer == Layer::Workspace => {
            return Err(failed(&"a symlink leads there, and piton follows none in a workspace")
                .hint("put the file itself there, not a link to it"));
        }
        Err(error) => return Err(refused(error.into())),
    };
    let kind = rustix::fs::fstat(&opened).map_err(|error| refused(error.into()))?.st_mode;
    // A device is somebody's way to say "no file": /dev/null.
    if !matches!(FileType::from_raw_mode(kind), FileType::RegularFile | FileType::CharacterDevice) {
        return Err(failed(&"this is not a file").hint("settings are a file with TOML in it"));
    }
    let mut bytes = Vec::new();
    std::fs::File::from(opened).take(LARGEST + 1).read_to_end(&mut bytes).map_err(refused)?;
    if bytes.len() as u64 > LARGEST {
        return Err(failed(&"this is larger than 1 MiB, so it is not a settings file"));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(error) => {
            let line = error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
            Err(failed(&format!("line {line} is not UTF-8, which TOML is")).hint("save the file as UTF-8"))
        }
    }
}

/// Never waits, as a pipe in the file's place would make it.
const TO_READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

fn open(path: &Path) -> rustix::io::Result<OwnedFd> {
    openat(CWD, path, TO_READ, Mode::empty())
}

/// Opens `.piton/config.toml` of a root. A repository that somebody else made must not make piton read elsewhere, so
/// neither of the two names may be a symlink.
fn open_without_symlinks(path: &Path) -> rustix::io::Result<OwnedFd> {
    let root = path.ancestors().nth(2).ok_or(Errno::NOENT)?;
    let inner = path.strip_prefix(root).map_err(|_| Errno::NOENT)?;
    // Most workspaces have none, and a hook asks each time.
    rustix::fs::lstat(path.parent().unwrap_or(path))?;
    let opened = piton_engine::open_bounded_in(root, inner);
    opened.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make and read files of their own")]
mod tests {
    use super::*;

    #[test]
    fn a_hook_goes_on_with_what_is_right() {
        let scratch = tempfile::tempdir().unwrap();
        let user = SettingsFile { layer: Layer::User, path: scratch.path().join("user.toml") };
        let workspace = SettingsFile { layer: Layer::Workspace, path: scratch.path().join(".piton/config.toml") };
        std::fs::write(&user.path, "[hook]\nuser-line = true\n").unwrap();
        std::fs::create_dir(scratch.path().join(".piton")).unwrap();
        std::fs::write(&workspace.path, "[capture]\nautomatic = false\n\"x\\u001b[2J\" = 1\n").unwrap();
        let variables = |name: &str| match name {
            "PITON_HOOK_TIME_BUDGET" => Some("5s".to_owned()),
            "PITON_CAPTURE_SIZE_LIMIT" => Some("much".to_owned()),
            "PITON_CAPTURE_IGNORED_LIMIT" => Some(String::new()),
            _ => None,
        };
        let (settings, problems) = gather(vec![user, workspace], variables, |partial, _| partial).leniently();
        // The workspace's file has a mistake, so nothing in it counts.
        assert_eq!((settings.automatic.value, settings.automatic.source), (true, Layer::Default));
        assert_eq!((settings.user_line.value, settings.user_line.source), (true, Layer::User));
        assert_eq!(settings.time_budget.value, std::time::Duration::from_secs(5));
        assert_eq!(settings.size_limit.source, Layer::Default);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].ends_with("/.piton/config.toml:3:1: unknown key `capture.x\\x1b[2J`"), "{problems:?}");
        assert!(problems[1].starts_with("PITON_CAPTURE_SIZE_LIMIT: `capture.size-limit` takes"), "{problems:?}");
    }

    #[test]
    fn a_file_that_may_not_be_read_is_named_and_has_no_say() {
        piton_testkit::as_ordinary_user(|| {
            let scratch = tempfile::tempdir().unwrap();
            let file = SettingsFile { layer: Layer::User, path: scratch.path().join("config.toml") };
            std::fs::write(&file.path, "hook.user-line = true").unwrap();
            let closed = std::os::unix::fs::PermissionsExt::from_mode(0o000);
            std::fs::set_permissions(&file.path, closed).unwrap();
            let path = escape_path(&file.path);
            let (settings, problems) = gather(vec![file], |_| None, |partial, _| partial).leniently();
            assert_eq!(settings, Settings::default());
            let said = format!("{path}: the settings cannot be read: Permission denied");
            assert!(problems.len() == 1 && problems[0].starts_with(&said), "{problems:?}");
        });
    }

    #[test]
    fn no_file_and_no_workspace_is_no_mistake() {
        let gone = SettingsFile { layer: Layer::User, path: "/nosuch/config.toml".into() };
        let found = gather(vec![gone.clone()], |_| None, |partial, _| partial).strictly().unwrap();
        assert_eq!(found.settings, Settings::default());
        assert_eq!(found.files, [(gone, false)]);
        assert_eq!(find(None).strictly().is_ok(), load_leniently(None).1.is_empty());
    }
}
