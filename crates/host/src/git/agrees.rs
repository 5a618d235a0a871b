//! Whether a file is what git's index says, as far as `stat` tells: so git itself wrote it last, or looked at it since.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::lstat;

use super::index::{Index, KnownStat};
use super::{Limits, Repository};

impl Repository {
    /// Which of some paths of the workspace are as the index has them; where it has none, which of them are not there
    /// either. None of them where the index cannot be read.
    pub fn agreeing(&self, paths: &[&[u8]]) -> Vec<bool> {
        let config = self.config();
        let index = match config.unknown {
            None if self.is_in_place(&config) => {
                Index::read(&self.git_dir, config.format, Limits::default().index_bytes)
            }
            _ => return vec![false; paths.len()],
        };
        let Ok(index) = index else { return vec![false; paths.len()] };
        let whole = |path: &[u8]| match &self.prefix[..] {
            [] => path.to_vec(),
            prefix => [prefix, b"/", path].concat(),
        };
        let wanted: Vec<Vec<u8>> = paths.iter().map(|path| whole(path)).collect();
        let mut known: HashMap<&[u8], Option<KnownStat>> = wanted.iter().map(|path| (&path[..], None)).collect();
        for entry in index.entries.iter().filter(|entry| entry.stage == 0) {
            if let Some(known) = known.get_mut(index.path(entry)) {
                *known = Some(index.known(entry));
            }
        }
        let agrees = |path: &Vec<u8>| {
            let file: PathBuf = self.work_tree.join(OsStr::from_bytes(path));
            match (known.get(&path[..]).copied().flatten(), lstat(&file)) {
                (Some(known), Ok(stat)) => {
                    let modified = (stat.st_mtime as u32, stat.st_mtime_nsec as u32);
                    // What was written in the same moment as the index may be otherwise.
                    known.mtime == modified && known.size == stat.st_size as u32 && modified < index.written
                }
                (None, Err(error)) => error == rustix::io::Errno::NOENT,
                _ => false,
            }
        };
        wanted.iter().map(agrees).collect()
    }

    /// When the index was last written, in nanoseconds since 1970; none where there is none.
    pub fn index_written(&self) -> Option<i64> {
        let stat = lstat(self.git_dir.join("index")).ok()?;
        Some(stat.st_mtime.saturating_mul(1_000_000_000).saturating_add(stat.st_mtime_nsec as i64))
    }
}
