//! The rules of the repository around a workspace that is only part of it.
//!
//! They say which folders of the repository git examines. If that excludes the workspace itself, git has no opinion on
//! its contents, yet somebody made it a workspace: everything in it is to be protected.

use std::path::{Path, PathBuf};

use ignore::gitignore::Gitignore;

use super::says;

/// A folder between the repository's root and the workspace, with the rules in it.
pub(super) struct FolderAbove {
    pub folder: PathBuf,
    pub git: Option<Gitignore>,
    /// The repository's own excludes; only at the repository's root, which comes first.
    pub repository: Option<Gitignore>,
}

/// The folders from the root of the repository around a workspace down to the one above the workspace. Empty if the
/// workspace is itself a repository's root, and if the repository contains the user's home folder.
pub(super) fn folders_above<'a>(root: &'a Path, home: Option<&Path>) -> Vec<&'a Path> {
    if root.join(".git").exists() {
        return Vec::new();
    }
    let all: Vec<&Path> = root.ancestors().skip(1).collect();
    let top = all.iter().position(|folder| folder.join(".git").exists());
    match top.filter(|top| !holds_home(all[*top], home)) {
        Some(top) => all[..=top].iter().rev().copied().collect(),
        None => Vec::new(),
    }
}

/// Whether a folder is the user's home folder or contains it. Such a repository contains many projects, and its rules
/// are about the files in the home folder: often they ignore everything.
pub(super) fn holds_home(folder: &Path, home: Option<&Path>) -> bool {
    folder.parent().is_none() || home.and_then(|home| home.canonicalize().ok()).is_some_and(|h| h.starts_with(folder))
}

/// Whether the rules above a workspace ignore it, or a folder that contains it.
pub(super) fn leave_out(above: &[FolderAbove], global: &Gitignore, root: &Path) -> bool {
    let Some(top) = above.first() else { return false };
    let asks = |rules: &Gitignore, from: &Path, folder: &Path| {
        folder.strip_prefix(from).ok().and_then(|inner| says(rules.matched(inner, true)))
    };
    root.ancestors().take_while(|folder| *folder != top.folder).any(|folder| {
        let around = above.iter().rev().filter(|level| level.folder != folder && folder.starts_with(&level.folder));
        let said = around.into_iter().find_map(|level| asks(level.git.as_ref()?, &level.folder, folder));
        let said = said.or_else(|| asks(top.repository.as_ref()?, &top.folder, folder));
        said.or_else(|| asks(global, &top.folder, folder)) == Some(true)
    })
}
