//! What would make git wait forever: a pipe or a device in the place of one of its own files.
//!
//! Git opens whatever it finds there. Checked before git is run, because a git that waits for a pipe cannot be told
//! from one that is busy. Only where git has files that it reads for every command or for references: elsewhere in the
//! folder an obstacle does no harm.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::config::{LARGEST, parse_all};
use super::{files, pointed_to};

/// Folders of a repository that are searched recursively.
const DEEP: [&str; 4] = ["refs", "logs", "reftable", "worktrees"];
/// Folders in which only the files are checked.
const SHALLOW: [&str; 3] = ["info", "objects/info", "objects/pack"];
/// Nesting of included files, as in git.
const DEEPEST_INCLUDE: u32 = 10;

/// The first obstacle in the repository that git would find from a folder.
pub(super) fn obstacle(folder: &Path) -> Option<PathBuf> {
    let git_dir = folder.ancestors().find_map(git_dir_of)?;
    let mut all = vec![git_dir.clone()];
    if let Ok(Some((bytes, _))) = files::read(&git_dir.join("commondir"), 64 << 10) {
        all.push(git_dir.join(OsStr::from_bytes(files::trim_end(&bytes))));
    }
    let in_folders = all.iter().find_map(|folder| in_repository(folder));
    in_folders.or_else(|| all.iter().find_map(|folder| in_config(&folder.join("config"), 0)))
}

/// The repository that begins at a folder, valid or not.
fn git_dir_of(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    match kind_of(&git) {
        Some(FileType::Directory) => Some(git),
        Some(FileType::RegularFile) => pointed_to(&git),
        _ => super::is_git_folder(folder).then(|| folder.to_owned()),
    }
}

fn in_repository(git_dir: &Path) -> Option<PathBuf> {
    let shallow = SHALLOW.iter().find_map(|name| in_folder(&git_dir.join(name), false));
    let found = in_folder(git_dir, false).or(shallow);
    found.or_else(|| DEEP.iter().find_map(|name| in_folder(&git_dir.join(name), true)))
}

fn in_folder(folder: &Path, is_deep: bool) -> Option<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && is_deep {
                folders.push(entry.path());
            }
            if !kind.is_dir() && !kind.is_file() && is_obstacle(&entry.path()) {
                return Some(entry.path());
            }
        }
    }
    None
}

/// Searches everything that a repository's settings include, whatever the conditions: git evaluates some only after it
/// has opened others.
fn in_config(file: &Path, depth: u32) -> Option<PathBuf> {
    if is_obstacle(file) {
        return Some(file.to_owned());
    }
    let (bytes, _) = files::read(file, LARGEST).ok()??;
    let mut included = Vec::new();
    parse_all(&bytes, &mut |section, _, key, value| {
        if let ("include" | "includeif", "path", Some(path)) = (section, key, value) {
            included.push(path.to_vec());
        }
    });
    let home = || std::env::var_os("HOME").map(PathBuf::from);
    included.into_iter().filter(|_| depth < DEEPEST_INCLUDE).find_map(|path| {
        let path = match path.strip_prefix(b"~/") {
            Some(rest) => home()?.join(OsStr::from_bytes(rest)),
            None => file.parent()?.join(OsStr::from_bytes(&path)),
        };
        in_config(&path, depth + 1)
    })
}

/// Whether opening or reading it may never end. A socket cannot be opened at all, and the null device is empty.
fn is_obstacle(path: &Path) -> bool {
    let Ok(stat) = rustix::fs::stat(path) else { return false };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo | FileType::BlockDevice => true,
        FileType::CharacterDevice => rustix::fs::stat("/dev/null").map_or(true, |null| null.st_rdev != stat.st_rdev),
        _ => false,
    }
}

fn kind_of(path: &Path) -> Option<FileType> {
    rustix::fs::stat(path).ok().map(|stat| FileType::from_raw_mode(stat.st_mode))
}

#[cfg(test)]
mod tests {
    use rustix::fs::Mode;

    use super::super::{Git, GitError};
    use super::*;

    fn pipe(path: &Path) {
        let _ = std::fs::remove_file(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }

    #[test]
    fn git_is_not_run_where_it_would_wait_for_a_pipe() {
        for name in [
            "HEAD",
            "commondir",
            "config",
            "packed-refs",
            "index",
            "info/exclude",
            "refs/piton/x/head",
            "logs/HEAD",
            "objects/info/alternates",
            "worktrees/a/HEAD",
            "included",
        ] {
            let scratch = tempfile::tempdir().unwrap();
            let sub = scratch.path().join("sub");
            std::fs::create_dir(&sub).unwrap();
            let git = Git::at(scratch.path(), None).unwrap();
            git.run(&["init", "-q"]).unwrap();
            git.run(&["config", "include.path", "more"]).unwrap();
            std::fs::write(scratch.path().join(".git/more"), "[includeIf \"gitdir:/x\"]\npath = ../included\n")
                .unwrap();
            assert_eq!(obstacle(&sub), None);
            let path = match name {
                "included" => scratch.path().join(name),
                _ => scratch.path().join(".git").join(name),
            };
            pipe(&path);
            let error = Git::at(&sub, None).unwrap_err();
            let GitError::Obstacle { path: named } = &error else { panic!("{name}: {error}") };
            assert_eq!(named.canonicalize().unwrap(), path.canonicalize().unwrap(), "{name}");
        }
    }

    #[test]
    fn what_git_does_not_wait_for_is_no_obstacle() {
        let scratch = tempfile::tempdir().unwrap();
        let git = Git::at(scratch.path(), None).unwrap();
        git.run(&["init", "-q"]).unwrap();
        let at = |name: &str| scratch.path().join(".git").join(name);
        let _socket = std::os::unix::net::UnixListener::bind(at("fsmonitor--daemon.ipc")).unwrap();
        pipe(&at("annex/pipe"));
        let _ = std::fs::remove_file(at("info/exclude"));
        std::fs::create_dir_all(at("info")).unwrap();
        std::os::unix::fs::symlink("/dev/null", at("info/exclude")).unwrap();
        assert!(Git::at(scratch.path(), None).is_ok());
        std::fs::remove_file(at("info/exclude")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("info/exclude")).unwrap();
        assert!(matches!(Git::at(scratch.path(), None), Err(GitError::Obstacle { .. })));
    }
}
