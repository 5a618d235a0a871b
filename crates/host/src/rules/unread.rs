//! Ignore files that exist and cannot be read: a pipe, an endless or huge file, a folder, no permission.
//!
//! A scan treats them as files without rules. Somebody meant them to say something, so reports on a workspace's state
//! list them.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::above::folders_above;
use super::{LARGEST_POINTER, LARGEST_RULES, RuleOptions, exclude_file, join};
use crate::bounded;
use crate::index::Index;
use crate::root::Root;

/// An ignore file without effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadRules {
    /// Absolute.
    pub path: PathBuf,
    /// A short description, such as the system's error message.
    pub why: String,
}

/// The ignore files of a workspace that cannot be read, based on the folders in its index.
pub fn unread_rules(root: &Root, index: &Index, options: &RuleOptions) -> Vec<UnreadRules> {
    let mut unread = Vec::new();
    let mut check = |path: &Path, found: io::Result<Option<Vec<u8>>>| {
        if let Err(error) = found {
            unread.push(UnreadRules { path: path.to_owned(), why: error.to_string() });
        }
    };
    // Naming the null device means that there are none.
    for file in options.global_excludes.iter().filter(|file| *file != Path::new("/dev/null")) {
        check(file, bounded::read(file, LARGEST_RULES));
    }
    for folder in folders_above(root.path(), options.home_folder.as_deref()) {
        let git = folder.join(".git");
        if git.exists() {
            let (file, found) = excludes_of(&git);
            check(&file, found);
        }
        let file = folder.join(".gitignore");
        check(&file, bounded::read(&file, LARGEST_RULES));
    }
    for folder in index.folders() {
        let names = folder.rules();
        if names.has_git {
            let git = root.path().join(OsStr::from_bytes(&join(folder.path(), b".git")));
            let (file, found) = excludes_of(&git);
            check(&file, found);
        }
        for (is_there, name) in [(names.has_gitignore, ".gitignore"), (names.has_pitonignore, ".pitonignore")] {
            if is_there {
                let path = join(folder.path(), name.as_bytes());
                let shown = root.path().join(OsStr::from_bytes(&path));
                check(&shown, bounded::read_beneath(root, &path, LARGEST_RULES));
            }
        }
    }
    unread
}

/// A repository's own excludes, or its `.git` if that leads to none.
fn excludes_of(git: &Path) -> (PathBuf, io::Result<Option<Vec<u8>>>) {
    match exclude_file(git) {
        Some(file) => {
            let found = bounded::read(&file, LARGEST_RULES);
            (file, found)
        }
        None => (git.to_owned(), bounded::read(git, LARGEST_POINTER)),
    }
}
