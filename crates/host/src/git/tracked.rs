//! Which paths a repository tracks, according to its index: git continues to track a file whatever its ignore rules
//! say, and so does a capture.

use std::path::{Path, PathBuf};

use super::index::Index;
use super::{Limits, Repository};
use crate::index::Signature;

/// The tracked paths of a repository. Read once, and only on demand.
pub(crate) struct Tracked {
    index: Index,
}

/// What a repository tracks at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrackedAt {
    Nothing,
    /// A file, or files in the folder.
    Files,
    /// A submodule, whose own index says what is tracked in it.
    Submodule,
}

/// Mode of a submodule's entry.
const SUBMODULE: u32 = 0o160_000;
/// Mode of an entry that stands for a folder, none of which is checked out.
const SPARSE_FOLDER: u32 = 0o040_000;

impl Tracked {
    /// Reads the index of the repository at a folder. `None` if there is none or it cannot be read: then nothing is
    /// known to be tracked.
    pub(crate) fn at(folder: &Path) -> Option<Self> {
        let repository = Repository::find(folder).filter(|repository| repository.work_tree == folder)?;
        let config = repository.config();
        if config.unknown.is_some() || config.is_bare || !repository.is_in_place(&config) {
            return None;
        }
        let index = Index::read(&repository.git_dir, config.format, Limits::default().index_bytes).ok()?;
        Some(Self { index })
    }

    /// What is tracked at a path of the repository, or beneath it.
    pub(crate) fn look_up(&self, path: &[u8]) -> TrackedAt {
        let first_from = |from: &[u8]| {
            let at = self.index.entries.partition_point(|entry| self.index.path(entry) < from);
            self.index.entries.get(at)
        };
        if let Some(entry) = first_from(path).filter(|entry| self.index.path(entry) == path) {
            return if self.index.mode(entry) == SUBMODULE { TrackedAt::Submodule } else { TrackedAt::Files };
        }
        let beneath = [path, b"/"].concat();
        let is_beneath = |entry: &&super::index::Entry| {
            self.index.path(entry).starts_with(&beneath) && self.index.mode(entry) != SPARSE_FOLDER
        };
        if first_from(&beneath).filter(is_beneath).is_some() { TrackedAt::Files } else { TrackedAt::Nothing }
    }
}

/// `stat` of the index file of the repository at a folder, which differs after every change: git writes a new file and
/// renames it. `None` if there is none.
pub(crate) fn index_signature(folder: &Path) -> Option<Signature> {
    let git = folder.join(".git");
    let git_dir = if git.is_dir() { git } else { super::pointed_to(&git)? };
    rustix::fs::stat(&git_dir.join("index") as &PathBuf).ok().map(|stat| Signature::of(&stat))
}
