//! Files with rules as they are not, so that it can be told what other rules would say: those that the user had.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Contents that stand for those of some files, by absolute path; with none, the file counts as not there.
#[derive(Clone, Debug, Default)]
pub struct Instead(pub HashMap<PathBuf, Option<Vec<u8>>>);

impl Instead {
    /// What a file says, which is read only where nothing stands for it.
    pub(super) fn or_read(&self, file: &Path, read: impl FnOnce() -> Option<Vec<u8>>) -> Option<Vec<u8>> {
        // A scan asks this of every file with rules, and has none.
        if self.0.is_empty() {
            return read();
        }
        self.0.get(file).cloned().unwrap_or_else(read)
    }

    /// Whether a file counts as there; none where nothing stands for it.
    pub(super) fn has(&self, file: &Path) -> Option<bool> {
        self.0.get(file).map(Option::is_some)
    }
}
