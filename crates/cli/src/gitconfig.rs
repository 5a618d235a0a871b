//! Where git's settings are, for this user and in this environment. What is in them is read by `piton_host::git`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use piton_engine::UserConfig;

/// A variable of the environment.
type Variable<'a> = dyn Fn(&str) -> Option<OsString> + 'a;

/// The settings files, as git finds them.
pub fn user_config(home: Option<&Path>, variable: &Variable<'_>) -> UserConfig {
    let mut files = Vec::new();
    let is_yes = |value: OsString| !matches!(value.to_str(), Some("" | "0" | "false" | "no" | "off"));
    if !variable("GIT_CONFIG_NOSYSTEM").is_some_and(is_yes) {
        files.push(variable("GIT_CONFIG_SYSTEM").map_or_else(|| PathBuf::from("/etc/gitconfig"), PathBuf::from));
    }
    // Takes the place of both of the user's own, also where it names nothing.
    match variable("GIT_CONFIG_GLOBAL") {
        Some(file) => files.push(file.into()),
        None => {
            files.extend(config_folder(home, variable).map(|folder| folder.join("git/config")));
            files.extend(home.map(|home| home.join(".gitconfig")));
        }
    }
    UserConfig { files, home: home.map(Path::to_path_buf), excludes_file: given(variable) }
}

/// The excludes file where no setting names one.
pub fn usual_excludes(home: Option<&Path>, variable: &Variable<'_>) -> Option<PathBuf> {
    Some(config_folder(home, variable)?.join("git/ignore"))
}

fn config_folder(home: Option<&Path>, variable: &Variable<'_>) -> Option<PathBuf> {
    let named = variable("XDG_CONFIG_HOME").filter(|value| !value.is_empty()).map(PathBuf::from);
    named.or_else(|| Some(home?.join(".config")))
}

/// The last `core.excludesFile` of the settings that the environment itself has.
fn given(variable: &Variable<'_>) -> Option<OsString> {
    /// More than anybody sets.
    const MOST: u32 = 1_000;
    let count: u32 = variable("GIT_CONFIG_COUNT")?.to_str()?.trim().parse().ok()?;
    let is_it = |at: &u32| {
        let key = variable(&format!("GIT_CONFIG_KEY_{at}"));
        key.is_some_and(|key| key.eq_ignore_ascii_case("core.excludesfile"))
    };
    (0..count.min(MOST)).rev().find(is_it).and_then(|at| variable(&format!("GIT_CONFIG_VALUE_{at}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_where_git_looks_for_them() {
        let check = |variables: &[(&str, &str)], expected: &[&str]| {
            let variable = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(*value))
            };
            let found = user_config(Some(Path::new("/home/u")), &variable);
            assert_eq!(found.files, expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{variables:?}");
            found
        };
        let usual = ["/etc/gitconfig", "/home/u/.config/git/config", "/home/u/.gitconfig"];
        check(&[], &usual);
        check(&[("XDG_CONFIG_HOME", "")], &usual);
        check(&[("XDG_CONFIG_HOME", "/x")], &[usual[0], "/x/git/config", usual[2]]);
        check(&[("GIT_CONFIG_GLOBAL", "/g"), ("XDG_CONFIG_HOME", "/x")], &["/etc/gitconfig", "/g"]);
        check(&[("GIT_CONFIG_GLOBAL", ""), ("GIT_CONFIG_NOSYSTEM", "1")], &[""]);
        check(
            &[("GIT_CONFIG_SYSTEM", "/s"), ("GIT_CONFIG_NOSYSTEM", "false"), ("GIT_CONFIG_GLOBAL", "/g")],
            &["/s", "/g"],
        );
        let given = [
            ("GIT_CONFIG_COUNT", "3"),
            ("GIT_CONFIG_KEY_0", "core.excludesFile"),
            ("GIT_CONFIG_VALUE_0", "/a"),
            ("GIT_CONFIG_KEY_1", "Core.ExcludesFile"),
            ("GIT_CONFIG_VALUE_1", "/b"),
            ("GIT_CONFIG_KEY_2", "core.pager"),
        ];
        assert_eq!(check(&given, &usual).excludes_file, Some("/b".into()));
    }
}
