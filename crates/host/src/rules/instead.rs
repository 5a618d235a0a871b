//! Substitute contents for rule files, to find out what other rules would say: those that the user had.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Substitute contents by absolute path; with `None`, the file counts as missing.
#[derive(Clone, Debug, Default)]
pub struct Instead(pub HashMap<PathBuf, Option<Vec<u8>>>);

impl Instead {
    /// A file's substitute, or what `read` returns if there is none.
    pub(super) fn or_read(&self, file: &Path, read: impl FnOnce() -> Option<Vec<u8>>) -> Option<Vec<u8>> {
        // Called for every rule file of a scan, which has no substitutes.
        if self.0.is_empty() {
            return read();
        }
        self.0.get(file).cloned().unwrap_or_else(read)
    }

    /// Whether a file counts as existing; `None` if it has no substitute.
    pub(super) fn has(&self, file: &Path) -> Option<bool> {
        self.0.get(file).map(Option::is_some)
    }
}
