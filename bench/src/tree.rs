//! Builds the workspace that all contenders share.
//!
//! What to write (`Tree::plan`) is decided separately from the writing (`Tree::write`), so that the distribution of
//! sizes can be tested without a disk. Never writes anything that a contender would leave out: no ignored names, no
//! symlinks.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::prng::Prng;
use crate::{Result, context, text};

/// Deepest folder, counted from the workspace's root.
const MAX_DEPTH: usize = 7;
/// Average number of files per folder.
const FILES_PER_FOLDER: usize = 8;
/// In bytes: half of the files with content are smaller than this.
const MEDIAN_SIZE: f64 = 3_000.0;
/// Standard deviation of the logarithm of the size: with this the mean is three times the median.
const SIGMA: f64 = 1.48;
const LARGEST: f64 = 400_000.0;
const EMPTY: f64 = 0.015;
const BINARY: f64 = 0.03;
const EXECUTABLE: f64 = 0.01;

const EXTENSIONS: &[&str] = &["rs", "rs", "ts", "ts", "tsx", "py", "go", "c", "h", "md", "json", "toml"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Source-like lines; the only kind that is edited.
    Text,
    /// Incompressible bytes, like an image.
    Binary,
}

/// One file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Relative to the workspace's root.
    pub path: PathBuf,
    pub kind: Kind,
    /// In bytes.
    pub size: usize,
    pub executable: bool,
}

/// A whole tree, determined by its seed and the number of files.
#[derive(Debug, Clone)]
pub struct Tree {
    /// The seed that every byte depends on.
    pub seed: u64,
    /// All folders but the root, parents before their children.
    pub folders: Vec<PathBuf>,
    pub files: Vec<File>,
}

impl Tree {
    /// Decides folders, names and sizes.
    pub fn plan(seed: u64, files: usize) -> Self {
        let mut rng = Prng::new(seed, 0);
        let folders = plan_folders(&mut rng, (files / FILES_PER_FOLDER).max(1));
        let files = (0..files)
            .map(|index| {
                // The first files go round all folders so that none is empty (git knows no empty folders); the rest
                // cluster, as in real trees.
                let folder = match folders.get(index) {
                    Some(folder) => folder,
                    None => &folders[(rng.unit().powi(2) * folders.len() as f64) as usize],
                };
                plan_file(&mut rng, folder, index)
            })
            .collect();
        Self { seed, folders, files }
    }

    /// The sum of all sizes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size as u64).sum()
    }

    /// Writes the tree below `root`, which must not exist yet.
    pub fn write(&self, root: &Path) -> Result<()> {
        fs::create_dir_all(root).map_err(context(root))?;
        for folder in &self.folders {
            let folder = root.join(folder);
            fs::create_dir(&folder).map_err(context(&folder))?;
        }
        let next = AtomicUsize::new(0);
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            let running: Vec<_> = (0..workers)
                .map(|_| {
                    scope.spawn(|| {
                        loop {
                            let index = next.fetch_add(1, Ordering::Relaxed);
                            let Some(file) = self.files.get(index) else { return Ok(()) };
                            self.write_file(root, index, file)?;
                        }
                    })
                })
                .collect();
            running.into_iter().try_for_each(|worker| worker.join().expect("a tree writer panicked"))
        })
    }

    fn write_file(&self, root: &Path, index: usize, file: &File) -> Result<()> {
        let path = root.join(&file.path);
        fs::write(&path, self.content(index, file)).map_err(context(&path))?;
        if file.executable {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(context(&path))?;
        }
        Ok(())
    }

    fn content(&self, index: usize, file: &File) -> Vec<u8> {
        // One random stream per file: the bytes do not depend on which thread writes them.
        let mut rng = Prng::new(self.seed, index as u64 + 1);
        match file.kind {
            Kind::Text => text::source(&mut rng, file.size),
            Kind::Binary => rng.noise(file.size),
        }
    }
}

fn plan_folders(rng: &mut Prng, count: usize) -> Vec<PathBuf> {
    let mut folders: Vec<(PathBuf, usize)> = vec![(PathBuf::from("src"), 1)];
    let mut taken: HashSet<PathBuf> = folders.iter().map(|(path, _)| path.clone()).collect();
    while folders.len() < count {
        // The smaller of two draws: older folders, which are less deep, have more below them.
        let parent = rng.below(folders.len() + 1).min(rng.below(folders.len() + 1));
        let (path, depth) = match folders.get(parent) {
            Some((path, depth)) => (path.as_path(), *depth),
            None => (Path::new(""), 0),
        };
        if depth >= MAX_DEPTH {
            continue;
        }
        // The suffix avoids names that ignore rules match, such as `target` and `build`.
        let path = path.join(format!("{}_{}", text::word(rng), folders.len() % 10));
        if taken.insert(path.clone()) {
            folders.push((path, depth + 1));
        }
    }
    folders.into_iter().map(|(path, _)| path).collect()
}

fn plan_file(rng: &mut Prng, folder: &Path, index: usize) -> File {
    let kind = if rng.chance(BINARY) { Kind::Binary } else { Kind::Text };
    let size =
        if rng.chance(EMPTY) { 0 } else { (MEDIAN_SIZE * (SIGMA * rng.normal()).exp()).clamp(1.0, LARGEST) as usize };
    let extension = match kind {
        Kind::Text => rng.pick(EXTENSIONS),
        Kind::Binary => "png",
    };
    File {
        path: folder.join(format!("{}_{index:x}.{extension}", text::name(rng))),
        kind,
        size,
        executable: rng.chance(EXECUTABLE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::Fingerprint;

    #[test]
    fn the_same_seed_writes_the_same_bytes_and_another_seed_does_not() {
        let scratch = tempfile::tempdir().unwrap();
        let written = |seed: u64, name: &str| {
            let root = scratch.path().join(name);
            Tree::plan(seed, 200).write(&root).unwrap();
            Fingerprint::of(&root).unwrap()
        };
        let (first, again, other) = (written(7, "a"), written(7, "b"), written(8, "c"));
        assert_eq!(first.difference(&again), None);
        assert!(first.difference(&other).is_some());
    }

    #[test]
    fn sizes_are_spread_as_in_a_source_tree() {
        let tree = Tree::plan(1, 12_000);
        let mut sizes: Vec<usize> = tree.files.iter().map(|file| file.size).collect();
        sizes.sort_unstable();
        let (median, mean) = (sizes[sizes.len() / 2], tree.bytes() as usize / sizes.len());
        assert!((2_600..3_400).contains(&median), "median {median}");
        assert!((7_500..10_500).contains(&mean), "mean {mean}");
        assert!((200_000..=400_000).contains(sizes.last().unwrap()));
        let share = |count: usize| count as f64 / sizes.len() as f64;
        let empty = share(sizes.iter().filter(|size| **size == 0).count());
        let binary = share(tree.files.iter().filter(|file| file.kind == Kind::Binary).count());
        assert!((0.01..0.02).contains(&empty), "empty {empty}");
        assert!((0.025..0.035).contains(&binary), "binary {binary}");
    }

    #[test]
    fn folders_are_an_eighth_of_the_files_and_none_is_empty_or_too_deep() {
        let tree = Tree::plan(1, 12_000);
        assert_eq!(tree.folders.len(), 1_500);
        let used: HashSet<&Path> = tree.files.iter().filter_map(|file| file.path.parent()).collect();
        assert_eq!(used.len(), tree.folders.len());
        let deepest = tree.folders.iter().map(|folder| folder.components().count()).max();
        assert_eq!(deepest, Some(MAX_DEPTH));
    }

    #[test]
    fn no_two_files_share_a_path() {
        let tree = Tree::plan(1, 12_000);
        let paths: HashSet<&Path> = tree.files.iter().map(|file| file.path.as_path()).collect();
        assert_eq!(paths.len(), tree.files.len());
    }
}
