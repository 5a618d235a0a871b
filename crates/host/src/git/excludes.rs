//! Which file is the user's global excludes file: `core.excludesFile`, wherever git would find it.
//!
//! The caller says where the user's settings are, since this crate reads no variables; the repository's own come on
//! top. Done by hand and not with the `ignore` crate's function, which knows only the user's settings and compiles two
//! regular expressions for it: that took longer than opening the store, at every start.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::Repository;
use super::config::{LARGEST, is_true, parse_all};
use super::files;

/// Where a git user's settings are.
#[derive(Clone, Debug, Default)]
pub struct UserConfig {
    /// The system's and the user's files, in order of increasing precedence.
    pub files: Vec<PathBuf>,
    /// What `~` means.
    pub home: Option<PathBuf>,
    /// `core.excludesFile` from the environment, which overrides all files.
    pub excludes_file: Option<OsString>,
}

/// Nesting of included files, as in git.
const DEEPEST: u32 = 10;

/// The configured excludes file for a folder of a repository; `None` if no setting names one. A relative path is
/// resolved from the root of the working tree, where git itself would run.
pub fn excludes_file(folder: &Path, repository: Option<&Repository>, user: &UserConfig) -> Option<PathBuf> {
    let value = match &user.excludes_file {
        Some(value) => value.as_bytes().to_vec(),
        None => Setting::of("excludesfile", repository, user).value?,
    };
    let work_tree = repository.map_or(folder, Repository::work_tree);
    let path = expand(&value, user.home.as_deref()).unwrap_or_default();
    // An empty setting means that there is none.
    Some(if path.as_os_str().is_empty() { path } else { work_tree.join(path) })
}

/// Whether git ignores case in a repository: `core.ignoreCase`.
pub fn ignores_case(repository: Option<&Repository>, user: &UserConfig) -> bool {
    let found = Setting::of("ignorecase", repository, user);
    found.has_key && is_true(found.value.as_deref())
}

/// All files that git's settings are read from, including included ones.
pub(crate) fn settings_files(repository: Option<&Repository>, user: &UserConfig) -> Vec<PathBuf> {
    Setting::of("excludesfile", repository, user).files
}

struct Setting<'a> {
    user: &'a UserConfig,
    repository: Option<&'a Repository>,
    /// In the section `core`.
    key: &'static str,
    has_key: bool,
    value: Option<Vec<u8>>,
    has_worktree_config: bool,
    /// The files examined, whether they exist or not.
    files: Vec<PathBuf>,
}

impl<'a> Setting<'a> {
    fn of(key: &'static str, repository: Option<&'a Repository>, user: &'a UserConfig) -> Self {
        let mut found = Setting {
            user,
            repository,
            key,
            has_key: false,
            value: None,
            has_worktree_config: false,
            files: Vec::new(),
        };
        for file in &user.files {
            found.add(file, 0);
        }
        if let Some(Repository { git_dir, common_dir, .. }) = repository {
            // What the user's own files say of it means nothing.
            found.has_worktree_config = false;
            found.add(&common_dir.join("config"), 0);
            if found.has_worktree_config {
                found.add(&git_dir.join("config.worktree"), 0);
            }
        }
        found
    }

    fn add(&mut self, file: &Path, depth: u32) {
        self.files.push(file.to_owned());
        let Ok(Some((bytes, _))) = files::read(file, LARGEST) else { return };
        parse_all(&bytes, &mut |section, subsection, key, value| match (section, key, value) {
            // A key without a value is a switch that is on.
            ("core", key, value)
                if subsection.is_empty() && key == self.key && (value.is_some() || key != "excludesfile") =>
            {
                (self.has_key, self.value) = (true, value.map(<[u8]>::to_vec));
            }
            ("extensions", "worktreeconfig", value) => self.has_worktree_config = is_true(value),
            ("include", "path", Some(path)) if subsection.is_empty() => self.include(file, path, depth),
            ("includeif", "path", Some(path)) if self.holds(subsection, file) => self.include(file, path, depth),
            _ => {}
        });
    }

    fn include(&mut self, from: &Path, path: &[u8], depth: u32) {
        let (Some(path), Some(folder)) = (expand(path, self.user.home.as_deref()), from.parent()) else { return };
        if depth < DEEPEST {
            self.add(&folder.join(path), depth + 1);
        }
    }

    /// Whether the condition of an include is met. Conditions about branches and remotes are taken not to be.
    fn holds(&self, condition: &[u8], file: &Path) -> bool {
        let (pattern, any_case) = match condition.strip_prefix(b"gitdir:") {
            Some(pattern) => (pattern, false),
            None => match condition.strip_prefix(b"gitdir/i:") {
                Some(pattern) => (pattern, true),
                None => return false,
            },
        };
        let Some(repository) = self.repository else { return false };
        let mut pattern = match (pattern.strip_prefix(b"./"), pattern.strip_prefix(b"~/")) {
            (Some(rest), _) => file.parent().map(|folder| folder.join(OsStr::from_bytes(rest))),
            (_, Some(rest)) => self.user.home.as_ref().map(|home| home.join(OsStr::from_bytes(rest))),
            _ => Some(PathBuf::from(OsString::from_vec(pattern.to_vec()))),
        }
        .map(|pattern| pattern.into_os_string().into_vec())
        .unwrap_or_default();
        if !pattern.starts_with(b"/") {
            pattern = [b"**/", &pattern[..]].concat();
        }
        if pattern.ends_with(b"/") {
            pattern.extend_from_slice(b"**");
        }
        let whole = repository.git_dir.canonicalize().ok();
        let places = [Some(&repository.git_dir), whole.as_ref()];
        places.into_iter().flatten().any(|place| {
            let mut place = place.as_os_str().as_bytes().to_vec();
            if any_case {
                place.make_ascii_lowercase();
                pattern.make_ascii_lowercase();
            }
            matches(&pattern, &place)
        })
    }
}

/// A path in a setting, with `~/` replaced. Other users' homes are not looked up.
fn expand(value: &[u8], home: Option<&Path>) -> Option<PathBuf> {
    let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
    match value.strip_prefix(b"~/") {
        Some(rest) => Some(home?.join(path(rest))),
        None if value == b"~" => home.map(Path::to_path_buf),
        None if value.starts_with(b"~") => None,
        None => Some(path(value)),
    }
}

/// Git's path patterns: `*` and `?` do not match `/`, `**` does.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', b'*', b'/', rest @ ..] => {
            let folders = text.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at + 1);
            std::iter::once(0).chain(folders).any(|at| matches(rest, &text[at..]))
        }
        [b'*', b'*', rest @ ..] => (0..=text.len()).any(|at| matches(rest, &text[at..])),
        [b'*', rest @ ..] => {
            let end = text.iter().position(|byte| *byte == b'/').unwrap_or(text.len());
            (0..=end).any(|at| matches(rest, &text[at..]))
        }
        [b'?', rest @ ..] => text.first().is_some_and(|byte| *byte != b'/') && matches(rest, &text[1..]),
        [b'\\', byte, rest @ ..] | [byte, rest @ ..] => text.first() == Some(byte) && matches(rest, &text[1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_of_an_include_is_a_pattern_for_the_repository() {
        for (pattern, text, expected) in [
            ("/work/**", "/work/app/.git", true),
            ("/work/**", "/other/app/.git", false),
            ("**/app/.git", "/work/app/.git", true),
            ("**/app/**", "/work/app/.git", true),
            ("/work/*/.git", "/work/app/.git", true),
            ("/work/*", "/work/app/.git", false),
            ("/w?rk/**", "/work/.git", true),
            ("/work/\\*", "/work/*", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_home_is_the_users_own_or_none() {
        let home = Some(Path::new("/home/u"));
        for (value, expected) in [
            ("~/x y", Some("/home/u/x y")),
            ("~", Some("/home/u")),
            ("~root/x", None),
            ("rel", Some("rel")),
            ("/a", Some("/a")),
        ] {
            assert_eq!(expand(value.as_bytes(), home), expected.map(PathBuf::from), "{value}");
        }
        assert_eq!(expand(b"~/x", None), None);
    }
}
