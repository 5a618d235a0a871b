//! Keeps files alive that a restore is about to delete, under a second name outside the workspace.
//!
//! For the sake of the next measurement: ext4 does not reuse an inode in the minutes after it was freed, and skips all
//! such inodes one by one whenever a file is created. After a few restores of a thousand files each, creating a file
//! would cost ten times as much, and the rows would measure that. A file with another name is not freed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Result, context};

/// Names per folder, so that none grows huge.
const PER_FOLDER: usize = 4_096;

/// The folder of second names; removed with everything else when the run ends.
#[derive(Debug)]
pub struct Attic {
    root: PathBuf,
    kept: usize,
}

impl Attic {
    /// An empty attic. `root` is created with the first file.
    pub fn new(root: PathBuf) -> Self {
        Self { root, kept: 0 }
    }

    /// Gives the file a second name. Its ctime changes, so it looks changed to everyone.
    pub fn keep(&mut self, path: &Path) -> Result<()> {
        let folder = self.root.join((self.kept / PER_FOLDER).to_string());
        if self.kept.is_multiple_of(PER_FOLDER) {
            fs::create_dir_all(&folder).map_err(context(&folder))?;
        }
        fs::hard_link(path, folder.join(self.kept.to_string())).map_err(context(path))?;
        self.kept += 1;
        Ok(())
    }
}
