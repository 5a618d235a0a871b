//! What a repository itself says about the files in its working tree.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ignore::gitignore::Gitignore;

use crate::git::{Tracked, TrackedAt};

/// A repository that begins in a folder.
pub(super) struct InRepository {
    folder: PathBuf,
    pub(super) excludes: Gitignore,
    /// Read when something ignored is found: that takes longer than all other rules together.
    tracked: OnceLock<Option<Tracked>>,
}

impl InRepository {
    pub(super) fn new(folder: PathBuf, excludes: Gitignore) -> Self {
        Self { folder, excludes, tracked: OnceLock::new() }
    }

    /// What is tracked at a path of the repository, or beneath it.
    pub(super) fn tracked_at(&self, path: &Path) -> TrackedAt {
        let tracked = self.tracked.get_or_init(|| Tracked::at(&self.folder));
        tracked.as_ref().map_or(TrackedAt::Nothing, |tracked| tracked.look_up(path.as_os_str().as_bytes()))
    }
}
