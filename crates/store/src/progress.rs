//! How far an operation came, as far as what stands in the workspace cannot tell: whether it was clearing up, or had put
//! everything back, when it was cut off.
//!
//! A file of a fixed length that is written over in place, so that it takes no room when the disk is full. Its bytes fit
//! into one sector; torn ones say nothing.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;

use piton_host::{Lock, own};
use piton_model::OperationId;

use crate::error::StoreError;
use crate::{Reader, Store};

const PROGRESS: &str = "progress";
/// Long enough for an id, a word and a checksum.
const LENGTH: usize = 128;

/// How far an operation came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Everything is in its new place, durably, and what came out is being removed: there is only one way, forward. Without
    /// this nothing that came out was removed.
    Clearing,
    /// Everything was put back: only its end is not recorded.
    PutBack,
}

/// The note of how far an operation came.
#[derive(Debug)]
pub struct ProgressNote {
    file: File,
    path: PathBuf,
}

impl Reader {
    /// How far an operation came, where it came that far.
    pub fn progress(&self, operation: &OperationId) -> Option<Progress> {
        let bytes = crate::read_note(self.folder(), PROGRESS)?;
        [Progress::Clearing, Progress::PutBack]
            .into_iter()
            .find(|progress| bytes.starts_with(&encode(operation, *progress)))
    }
}

impl Store {
    /// Makes room for the note, before an operation begins.
    ///
    /// # Errors
    /// Where there is none: then no operation may begin.
    pub fn progress_note(&self, _lock: &Lock) -> Result<ProgressNote, StoreError> {
        let path = self.folder().join(PROGRESS);
        let open = || {
            // What nobody can write a note into goes, so that the operation can begin.
            if std::fs::symlink_metadata(&path).is_ok_and(|about| !about.is_file()) {
                std::fs::remove_file(&path)?;
            }
            let file = own::open_or_make(&path, File::options().read(true).write(true).mode(0o600))?;
            if file.metadata()?.len() < LENGTH as u64 {
                file.write_all_at(&[b' '; LENGTH], 0)?;
                file.sync_all()?;
                piton_host::disk::sync_folder(self.folder())?;
            }
            Ok(file)
        };
        let file = open().map_err(StoreError::io("cannot write", &path))?;
        Ok(ProgressNote { file, path })
    }
}

impl ProgressNote {
    /// Writes it, durably.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn write(&self, operation: &OperationId, progress: Progress) -> Result<(), StoreError> {
        let written = self.file.write_all_at(&encode(operation, progress), 0).and_then(|()| self.file.sync_data());
        written.map_err(StoreError::io("cannot write", &self.path))
    }
}

fn encode(operation: &OperationId, progress: Progress) -> Vec<u8> {
    let word = match progress {
        Progress::Clearing => "clearing",
        Progress::PutBack => "put-back",
    };
    let said = format!("{operation} {word}");
    let mut bytes = format!("{said} {}\n", &blake3::hash(said.as_bytes()).to_hex()[..16]).into_bytes();
    bytes.resize(LENGTH, b' ');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PATIENCE;

    #[test]
    fn the_note_is_of_one_operation_and_a_torn_one_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path()).unwrap();
        let (one, other) = (OperationId::from_random([1; 8]), OperationId::from_random([2; 8]));
        assert_eq!(store.progress(&one), None);
        let note = store.progress_note(&store.lock(PATIENCE).unwrap()).unwrap();
        assert_eq!(store.progress(&one), None);
        for progress in [Progress::Clearing, Progress::PutBack] {
            note.write(&one, progress).unwrap();
            assert_eq!((store.progress(&one), store.progress(&other)), (Some(progress), None));
        }
        note.write(&other, Progress::Clearing).unwrap();
        assert_eq!((store.progress(&one), store.progress(&other)), (None, Some(Progress::Clearing)));
        let path = folder.path().join(PROGRESS);
        let whole = std::fs::read(&path).unwrap();
        for cut in [0, 20, 40] {
            let mut torn = whole.clone();
            torn[cut..].fill(0);
            std::fs::write(&path, torn).unwrap();
            assert_eq!(store.progress(&other), None, "{cut}");
        }
        std::fs::write(&path, &whole[..40]).unwrap();
        store.progress_note(&store.lock(PATIENCE).unwrap()).unwrap().write(&one, Progress::Clearing).unwrap();
        assert_eq!(store.progress(&one), Some(Progress::Clearing));
    }
}
