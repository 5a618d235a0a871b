//! The note of permission bits that an operation set before it was recorded, so that it could read what is there. Whoever
//! finds the note after a crash puts them back.

use std::path::PathBuf;

use piton_host::Lock;
use piton_model::plan::FolderMode;
use piton_model::{OperationId, RootIdentity};
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::{Reader, Store, replace_durably};

const REOPENED: &str = "reopened";

/// Bits that were set before an operation was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reopened {
    /// In which folder.
    pub root: RootIdentity,
    /// The newest operation at that time. A newer one knows of the bits itself.
    pub last: Option<OperationId>,
    /// What had which bits, and was given which.
    pub ways: Vec<FolderMode>,
}

/// The note itself, which goes when this is dropped. After a panic it stays, as after a crash.
#[derive(Debug)]
pub struct ReopenedNote {
    path: PathBuf,
    is_written: bool,
}

impl Reader {
    /// What a process that was cut off had set.
    pub fn reopened(&self) -> Option<Reopened> {
        let bytes = crate::read_note(self.folder(), REOPENED)?;
        // Written whole or not at all; where the disk took it, nobody knows which bits they were.
        serde_json::from_slice(&bytes).ok()
    }
}

impl Store {
    /// A note that says nothing yet.
    pub fn reopened_note(&self, _lock: &Lock) -> ReopenedNote {
        ReopenedNote { path: self.folder().join(REOPENED), is_written: false }
    }

    /// Forgets what a process that was cut off had set: it is put back.
    pub fn forget_reopened(&self, _lock: &Lock) {
        let _ = std::fs::remove_file(self.folder().join(REOPENED));
    }
}

impl ReopenedNote {
    /// Writes it, durably: before any of the bits are set.
    ///
    /// # Errors
    /// Where it cannot be written; then no bits may be set.
    pub fn write(&mut self, note: &Reopened) -> Result<(), StoreError> {
        self.is_written = true;
        let bytes = serde_json::to_vec(note).map_err(crate::database::to_sql)?;
        replace_durably(&self.path, &bytes).map_err(StoreError::io("cannot write", &self.path))
    }
}

impl Drop for ReopenedNote {
    fn drop(&mut self) {
        if self.is_written && !std::thread::panicking() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
