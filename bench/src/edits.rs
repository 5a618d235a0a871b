//! Changes the workspace as an agent would.
//!
//! Only text files are edited, in place and by a line or two. Knows nothing about what is measured afterwards.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::attic::Attic;
use crate::prng::Prng;
use crate::tree::{Kind, Tree};
use crate::{Result, context, text};

/// Smaller files, in bytes, have too few lines for an edit to be small.
const SMALLEST_EDITED: usize = 256;

/// Makes changes below one workspace, no two alike.
#[derive(Debug)]
pub struct Editor {
    root: PathBuf,
    rng: Prng,
    editable: Vec<PathBuf>,
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    made: usize,
    attic: Attic,
}

/// One edited file.
#[derive(Debug, Clone)]
pub struct Edit {
    /// Relative to the workspace's root.
    pub path: PathBuf,
    /// A word of the new text that is nowhere else: a diff that shows the edit contains it.
    pub marker: String,
}

/// How many files a large change touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Churn {
    pub changed: usize,
    pub created: usize,
    pub deleted: usize,
}

impl Churn {
    /// The standard large change, halved where the tree is too small for it.
    pub fn for_files(files: usize) -> Self {
        let full = Self { changed: 1_000, created: 200, deleted: 200 };
        if files >= 2 * (full.changed + full.deleted) {
            return full;
        }
        Self { changed: full.changed / 2, created: full.created / 2, deleted: full.deleted / 2 }
    }
}

impl Editor {
    /// An editor of the files that `tree` wrote below `root`. Files that restores will delete in large numbers go to
    /// `attic`.
    pub fn new(root: &Path, tree: &Tree, attic: Attic) -> Self {
        let editable = tree
            .files
            .iter()
            .filter(|file| file.kind == Kind::Text && file.size >= SMALLEST_EDITED)
            .map(|file| file.path.clone())
            .collect();
        Self {
            root: root.to_owned(),
            rng: Prng::new(tree.seed, u64::MAX),
            editable,
            files: tree.files.iter().map(|file| file.path.clone()).collect(),
            folders: tree.folders.clone(),
            made: 0,
            attic,
        }
    }

    /// Replaces a line or two in each of `count` files.
    pub fn edit(&mut self, count: usize) -> Result<Vec<Edit>> {
        let chosen = choose(&mut self.rng, &self.editable, count, &HashSet::new());
        chosen.into_iter().map(|path| self.edit_file(path)).collect()
    }

    /// A large change: edits, new files (half of them in new folders, ten to each), deletions; no file touched twice.
    pub fn churn(&mut self, churn: Churn) -> Result<()> {
        let edited = self.edit(churn.changed)?;
        for edit in &edited {
            self.attic.keep(&self.root.join(&edit.path))?;
        }
        let untouchable: HashSet<PathBuf> = edited.into_iter().map(|edit| edit.path).collect();
        for path in choose(&mut self.rng, &self.files, churn.deleted, &untouchable) {
            let path = self.root.join(path);
            self.attic.keep(&path)?;
            fs::remove_file(&path).map_err(context(&path))?;
        }
        let mut new_folder = PathBuf::new();
        for number in 0..churn.created {
            self.made += 1;
            let mut folder = self.root.join(self.rng.pick(&self.folders));
            if number % 2 == 0 {
                if number % 20 == 0 {
                    new_folder = folder.join(format!("made_{}", self.made));
                    fs::create_dir(&new_folder).map_err(context(&new_folder))?;
                }
                folder.clone_from(&new_folder);
            }
            let path = folder.join(format!("made_{}.rs", self.made));
            let len = 1_000 + self.rng.below(8_000);
            fs::write(&path, text::source(&mut self.rng, len)).map_err(context(&path))?;
            self.attic.keep(&path)?;
        }
        Ok(())
    }

    /// Keeps every existing file of the tree, for a restore that rewrites all of them.
    pub fn keep_all(&mut self) -> Result<()> {
        for path in &self.files {
            let path = self.root.join(path);
            if path.exists() {
                self.attic.keep(&path)?;
            }
        }
        Ok(())
    }

    fn edit_file(&mut self, path: PathBuf) -> Result<Edit> {
        self.made += 1;
        let marker = format!("edit_{}_{}", self.made, text::name(&mut self.rng));
        let full = self.root.join(&path);
        let old = fs::read(&full).map_err(context(&full))?;
        let mut lines: Vec<&[u8]> = old.split_inclusive(|byte| *byte == b'\n').collect();
        let replacement = format!("    let {marker} = {};\n", self.rng.below(10_000));
        let first = self.rng.below(lines.len());
        lines[first] = replacement.as_bytes();
        if self.rng.chance(0.5) {
            let second = (first + 1 + self.rng.below(8)) % lines.len();
            if second != first {
                lines[second] = b"    // looked at again\n";
            }
        }
        fs::write(&full, lines.concat()).map_err(context(&full))?;
        Ok(Edit { path, marker })
    }
}

fn choose(rng: &mut Prng, from: &[PathBuf], count: usize, except: &HashSet<PathBuf>) -> Vec<PathBuf> {
    assert!(count + except.len() <= from.len(), "the tree has too few files for this change");
    let mut taken = HashSet::new();
    let mut chosen = Vec::with_capacity(count);
    while chosen.len() < count {
        let index = rng.below(from.len());
        if !except.contains(&from[index]) && taken.insert(index) {
            chosen.push(from[index].clone());
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::Fingerprint;

    #[test]
    fn ten_edits_change_ten_files_and_leave_their_markers() {
        let scratch = tempfile::tempdir().unwrap();
        let (root, tree) = (scratch.path().join("ws"), Tree::plan(3, 200));
        let attic = Attic::new(scratch.path().join("attic"));
        tree.write(&root).unwrap();
        let before = Fingerprint::of(&root).unwrap();
        let edits = Editor::new(&root, &tree, attic).edit(10).unwrap();
        let difference = before.difference(&Fingerprint::of(&root).unwrap()).unwrap();
        assert!(difference.starts_with("10 paths differ"), "{difference}");
        for edit in edits {
            let bytes = fs::read_to_string(root.join(&edit.path)).unwrap();
            assert!(bytes.contains(&edit.marker));
        }
    }

    #[test]
    fn a_large_change_touches_as_many_files_as_it_says() {
        let scratch = tempfile::tempdir().unwrap();
        let (root, tree) = (scratch.path().join("ws"), Tree::plan(3, 400));
        let attic = Attic::new(scratch.path().join("attic"));
        tree.write(&root).unwrap();
        let count = || {
            let mut files = 0;
            let mut folders = vec![root.clone()];
            while let Some(folder) = folders.pop() {
                for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                    match entry.file_type().unwrap().is_dir() {
                        true => folders.push(entry.path()),
                        false => files += 1,
                    }
                }
            }
            files
        };
        let churn = Churn { changed: 50, created: 30, deleted: 20 };
        Editor::new(&root, &tree, attic).churn(churn).unwrap();
        assert_eq!(count(), 400 + 30 - 20);
    }
}
