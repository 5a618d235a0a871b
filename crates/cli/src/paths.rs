//! Paths that a person typed, as paths of the workspace. By the letters alone: a symlink in a path is never followed,
//! because what is meant may be the link itself, and what it points to may be outside.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use piton_engine::model::WorkspacePath;
use piton_wording::escape::escape_path;
use piton_wording::{Call, Code, Failure, flag, text, without};

/// What `--path` and `--path-b64` are.
#[derive(Debug, Default, clap::Args)]
pub struct PathArgs {
    /// Only this path and everything under it; may be given several times
    #[arg(long = "path", value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<OsString>,
    /// As --path, for a name that cannot be typed: the `path_b64` of --json
    #[arg(long = "path-b64", value_name = "B64")]
    pub paths_b64: Vec<String>,
}

impl PathArgs {
    /// All of them.
    pub fn resolve(&self, root: &Path, here: &Path) -> Result<Vec<WorkspacePath>, Failure> {
        let plain = self.paths.iter().map(|path| resolve(root, here, path));
        let encoded = self.paths_b64.iter().map(|text| from_base64(text));
        plain.chain(encoded).collect()
    }

    /// A command with them as they were typed.
    pub fn said(&self, command: Call) -> Call {
        let command = self.paths.iter().fold(command, |command, path| command.with("--path", path));
        self.paths_b64.iter().fold(command, |command, path| command.with("--path-b64", path))
    }

    /// Refuses `--outside` with some paths: they are in the workspace, and the rest is not meant.
    pub fn refuse_outside(&self, is_outside: bool) -> Result<(), Failure> {
        if !is_outside || (self.paths.is_empty() && self.paths_b64.is_empty()) {
            return Ok(());
        }
        Err(Failure::user(
            Code::ArgumentsClash,
            "`--path` means files of the workspace, and `--outside` those that are not in it",
        )
        .hint(text![
            "without ",
            without("--path"),
            " everything goes back, and with ",
            flag("--outside"),
            " the files outside too"
        ]))
    }
}

/// The path in the workspace at `root` that is meant by a path typed in the folder `here`.
pub fn resolve(root: &Path, here: &Path, typed: &OsStr) -> Result<WorkspacePath, Failure> {
    if typed.is_empty() {
        return Err(Failure::user(Code::BadPath, "an empty path means nothing").hint("`.` is the current folder"));
    }
    let base = if here.starts_with(root) { here } else { root };
    let whole = normal(&base.join(typed));
    let inside = match whole.strip_prefix(root) {
        Ok(inside) => inside.to_owned(),
        Err(_) => through_link(root, &whole).ok_or_else(|| {
            Failure::user(
                Code::PathOutside,
                format!("`{}` is outside the workspace {}", escape_path(Path::new(typed)), escape_path(root)),
            )
            .hint(text![flag("--workspace").asking("DIR"), " means another workspace"])
        })?,
    };
    WorkspacePath::new(inside.into_os_string().into_vec())
        .map_err(|error| Failure::user(Code::BadPath, format!("`{}`: {error}", escape_path(Path::new(typed)))))
}

/// A path of the workspace in base64, as JSON has it: from the workspace's root.
pub fn from_base64(text: &str) -> Result<WorkspacePath, Failure> {
    let failed = |error| {
        Failure::user(Code::BadPath, format!("`{text}`: {error}"))
            .hint("it takes the `path_b64` of a JSON document: a path from the workspace's root, in base64")
    };
    let path = WorkspacePath::from_base64(text).map_err(failed)?;
    if path.is_root() {
        return Err(Failure::user(Code::BadPath, "an empty path means nothing")
            .hint(text![flag("--path").arg("."), " is the current folder"]));
    }
    Ok(path)
}

/// The workspace may have been named through a link above it, such as `/home/me/project` where it is on another disk.
fn through_link(root: &Path, whole: &Path) -> Option<PathBuf> {
    let above = whole.ancestors().find(|above| above.canonicalize().is_ok_and(|real| real == root))?;
    whole.strip_prefix(above).ok().map(Path::to_path_buf)
}

/// Without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut out = Vec::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(out.pop()),
            Component::Normal(name) => out.push(name.as_bytes()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    let mut bytes = b"/".to_vec();
    bytes.extend(out.join(&b'/'));
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(here: &str, typed: &str, expected: Option<&str>) {
        let found = resolve(Path::new("/w/s"), Path::new(here), OsStr::new(typed)).ok();
        assert_eq!(found.map(|p| p.as_bytes().to_vec()), expected.map(|e| e.as_bytes().to_vec()), "{here} {typed}");
    }

    #[test]
    fn a_relative_path_begins_at_the_current_folder_inside_the_workspace() {
        check("/w/s/src", "a.rs", Some("src/a.rs"));
        check("/w/s/src", "../b c.rs", Some("b c.rs"));
        check("/w/s/src", "./x//y/.", Some("src/x/y"));
        check("/w/s", "src/", Some("src"));
        check("/w/s", ".", Some(""));
    }

    #[test]
    fn a_relative_path_begins_at_the_root_elsewhere() {
        check("/elsewhere", "a.rs", Some("a.rs"));
        check("/w/s2", "a.rs", Some("a.rs"));
    }

    #[test]
    fn an_absolute_path_inside_the_workspace_works() {
        check("/elsewhere", "/w/s/a", Some("a"));
        check("/elsewhere", "/w/s/../s/a", Some("a"));
        check("/elsewhere", "/w/s", Some(""));
    }

    #[test]
    fn a_path_outside_the_workspace_is_refused() {
        for typed in ["..", "../../etc", "/w", "/w/s2/a", "/etc/passwd", "a/../../x", ""] {
            check("/w/s", typed, None);
        }
        check("/w/s/src", "../../s/x", Some("x"));
    }

    #[test]
    fn git_is_refused_in_any_case() {
        check("/w/s", ".git/config", None);
        check("/w/s", "sub/.GIT", None);
    }

    #[test]
    fn bytes_that_are_not_utf_8_pass() {
        let typed = OsStr::from_bytes(b"d/\xff\xfe");
        let found = resolve(Path::new("/w/s"), Path::new("/w/s"), typed).unwrap();
        assert_eq!(found.as_bytes(), b"d/\xff\xfe");
        assert_eq!(from_base64("ZC//").unwrap().as_bytes(), b"d/\xff");
        assert!(from_base64("not base64!").is_err());
        assert!(from_base64("").is_err());
        assert!(from_base64("Li4vLi4vZXRj").is_err());
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "tests make and read files of their own")]
    fn a_link_above_the_workspace_is_the_workspace_and_a_link_in_it_is_itself() {
        let scratch = tempfile::tempdir().unwrap();
        let top = scratch.path().canonicalize().unwrap();
        let root = top.join("real");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::os::unix::fs::symlink(&root, top.join("link")).unwrap();
        std::os::unix::fs::symlink("/etc", root.join("sub/out")).unwrap();
        let through = resolve(&root, &top, top.join("link/sub/out/passwd").as_os_str()).unwrap();
        assert_eq!(through.as_bytes(), b"sub/out/passwd");
    }
}
