//! What git's rules ignore among paths that need not be in any folder now: those of a checkpoint.
//!
//! The ignore files of the workspace are given, since they may be of any moment; those above it and the user's own are read
//! as they are now. Never decides what is captured: that is `rules`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ignore::gitignore::Gitignore;
use piton_model::WorkspacePath;

use crate::bounded;
use crate::git::{Repository, excludes_file};
use crate::rules::{LARGEST_RULES, RuleOptions, exclude_file, join, name_of, parent_of, parse, says};

/// The ignore files of one moment.
pub struct IgnoreFiles {
    /// By the folder that each is in.
    folders: HashMap<Vec<u8>, Gitignore>,
    /// Those around the workspace, the nearest first, each with the workspace's own path in that folder.
    around: Vec<(PathBuf, Gitignore)>,
}

impl IgnoreFiles {
    /// Those that are given, each with its folder, and those around a workspace.
    pub fn new(
        workspace: &Path,
        options: &RuleOptions,
        given: impl IntoIterator<Item = (WorkspacePath, Vec<u8>)>,
    ) -> Self {
        let read = |path: &Path| bounded::read(path, LARGEST_RULES).ok().flatten().map(|bytes| parse(&bytes));
        let repository = Repository::find(workspace);
        let top = repository.as_ref().map_or(workspace, Repository::work_tree);
        let inner = |folder: &Path| workspace.strip_prefix(folder).map(Path::to_owned).unwrap_or_default();
        let above = workspace.ancestors().skip(1).take_while(|folder| folder.starts_with(top));
        let mut around: Vec<(PathBuf, Gitignore)> =
            above.filter_map(|folder| Some((inner(folder), read(&folder.join(".gitignore"))?))).collect();
        let own = exclude_file(&top.join(".git")).and_then(|file| read(&file));
        let global = excludes_file(workspace, repository.as_ref(), &options.git);
        let global = global.or_else(|| options.global_excludes.clone()).and_then(|file| read(&file));
        around.extend([own, global].into_iter().flatten().map(|rules| (inner(top), rules)));
        let folders = given.into_iter().map(|(folder, bytes)| (folder.as_bytes().to_vec(), parse(&bytes)));
        Self { folders: folders.collect(), around }
    }

    /// The ignore file that a folder of the workspace has now.
    pub fn in_folder(workspace: &Path, folder: &WorkspacePath) -> Option<Vec<u8>> {
        use std::os::unix::ffi::OsStrExt;
        let folder = workspace.join(std::ffi::OsStr::from_bytes(folder.as_bytes()));
        bounded::read(&folder.join(".gitignore"), LARGEST_RULES).ok().flatten()
    }

    /// Whether a file is ignored, by itself or with a folder that it is in.
    pub fn ignore(&self, file: &WorkspacePath) -> bool {
        let path = file.as_bytes();
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
        ends.clone().any(|end| self.names(&path[..end], true)) || self.names(path, false)
    }

    /// What the nearest rule that speaks of a path says.
    fn names(&self, path: &[u8], is_folder: bool) -> bool {
        use std::os::unix::ffi::OsStrExt;
        let os = |bytes: &[u8]| PathBuf::from(std::ffi::OsStr::from_bytes(bytes));
        let (mut folder, mut inner) = (parent_of(path), name_of(path).to_vec());
        loop {
            if let Some(ignored) = self.folders.get(folder).and_then(|rules| says(rules.matched(os(&inner), is_folder)))
            {
                return ignored;
            }
            if folder.is_empty() {
                break;
            }
            inner = join(name_of(folder), &inner);
            folder = parent_of(folder);
        }
        let around = self.around.iter();
        let mut said = around.filter_map(|(prefix, rules)| says(rules.matched(prefix.join(os(path)), is_folder)));
        said.next().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_rule_decides_and_a_folder_takes_all_that_it_holds() {
        let scratch = tempfile::tempdir().unwrap();
        let workspace = scratch.path().join("repo/ws");
        for name in ["info", "objects", "refs"] {
            std::fs::create_dir_all(scratch.path().join("repo/.git").join(name)).unwrap();
        }
        std::fs::create_dir_all(&workspace).unwrap();
        std::fs::write(scratch.path().join("repo/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        std::fs::write(scratch.path().join("repo/.git/info/exclude"), "/ws/mine\n").unwrap();
        std::fs::write(scratch.path().join("repo/.gitignore"), "*.key\n").unwrap();
        let path = |text: &str| WorkspacePath::new(text).unwrap();
        let given =
            [(WorkspacePath::root(), b".env\nbuilt/\n!keep.key\n".to_vec()), (path("a/b"), b"!.env\nlocal\n".to_vec())];
        let files = IgnoreFiles::new(&workspace, &RuleOptions::default(), given);
        for ignored in [".env", "a/.env", "x.key", "built/x", "c/built/x/y", "a/b/local", "a/b/c/local", "mine"] {
            assert!(files.ignore(&path(ignored)), "{ignored}");
        }
        for other in ["a/b/.env", "keep.key", "built", "local", "a/mine", "env"] {
            assert!(!files.ignore(&path(other)), "{other}");
        }
    }
}
