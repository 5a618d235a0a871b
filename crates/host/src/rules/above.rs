//! The rules of the repository around a workspace that is only a part of it.
//!
//! They say which folders of the repository git looks into. Where that leaves out the workspace itself, git has nothing to
//! say about what is in it, and somebody made a workspace of it all the same: everything in it is to be protected.

use std::path::{Path, PathBuf};

use ignore::gitignore::Gitignore;

use super::says;

/// A folder between the repository's root and the workspace, with the rules that are kept in it.
pub(super) struct FolderAbove {
    pub folder: PathBuf,
    pub git: Option<Gitignore>,
    /// The repository's own excludes; only at the repository's root, which comes first.
    pub repository: Option<Gitignore>,
}

/// The folders from the root of the repository around a workspace down to the one above the workspace. None where the
/// workspace is a repository's root itself, and where the repository holds the user's home folder.
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

/// Whether a folder is the user's home folder or around it. Such a repository holds many projects, and its rules are
/// about the files in the home folder: often they ignore everything.
pub(super) fn holds_home(folder: &Path, home: Option<&Path>) -> bool {
    folder.parent().is_none() || home.and_then(|home| home.canonicalize().ok()).is_some_and(|h| h.starts_with(folder))
}

/// Whether the rules above a workspace leave it out, or a folder that it lies in.
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
