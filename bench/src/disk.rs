//! Disk usage of a store.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::{Result, context};

/// The size of everything below a folder, including the folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Disk {
    /// Allocated by the filesystem, in bytes; the figure that fills a disk.
    pub allocated: u64,
    /// The sum of the files' lengths.
    pub apparent: u64,
}

impl Disk {
    pub fn of(root: &Path) -> Result<Self> {
        let meta = fs::symlink_metadata(root).map_err(context(root))?;
        let mut sum = Self {
            // The unit of `st_blocks` is 512 bytes whatever the filesystem's block size.
            allocated: meta.blocks() * 512,
            apparent: if meta.is_dir() { 0 } else { meta.len() },
        };
        if meta.is_dir() {
            for entry in fs::read_dir(root).map_err(context(root))? {
                let below = Self::of(&entry.map_err(context(root))?.path())?;
                sum.allocated += below.allocated;
                sum.apparent += below.apparent;
            }
        }
        Ok(sum)
    }
}

pub fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1_000_000.0
}
