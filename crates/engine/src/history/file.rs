//! One file as a checkpoint has it.

use std::io::{self, Write};

use piton_model::diff;
use piton_model::path::encode_base64;
use piton_model::{CheckpointId, Entry, SkipReason, WorkspacePath};
use piton_store::{CheckpointRow, StoreError};

use crate::history::target::{IntoTarget, TargetError};
use crate::view::FileView;
use crate::workspace::History;

/// Why a checkpoint has no such file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("`{}` is a folder in checkpoint {}", shown(path), checkpoint.short())]
    Folder { path: WorkspacePath, checkpoint: CheckpointId },
    #[error("checkpoint {} has no file `{}`", checkpoint.short(), path.display())]
    NotThen { path: WorkspacePath, checkpoint: CheckpointId },
    #[error("checkpoint {} left out `{}` ({})", checkpoint.short(), path.display(), reason.describe())]
    NotCaptured { path: WorkspacePath, checkpoint: CheckpointId, reason: SkipReason },
}

/// The root has no name.
fn shown(path: &WorkspacePath) -> String {
    if path.is_root() { ".".to_owned() } else { path.display() }
}

/// A file or symlink of a checkpoint, whose content can be read from the store.
pub struct FileAt {
    checkpoint: CheckpointRow,
    path: WorkspacePath,
    entry: Entry,
}

impl FileAt {
    /// Its size in bytes; of a symlink, that of the path it points to.
    pub fn size(&self) -> u64 {
        match &self.entry {
            Entry::File { size, .. } => *size,
            Entry::Symlink { target } => target.len() as u64,
            Entry::Folder { .. } | Entry::Skipped { .. } => 0,
        }
    }

    pub fn is_symlink(&self) -> bool {
        matches!(self.entry, Entry::Symlink { .. })
    }

    /// As programs see it, with its content.
    pub fn view(&self, content: &[u8]) -> FileView {
        let text = std::str::from_utf8(content).ok().map(str::to_owned);
        FileView {
            path: (&self.path).into(),
            checkpoint: (&self.checkpoint).into(),
            entry: (&self.entry).into(),
            content_b64: text.is_none().then(|| encode_base64(content)),
            content: text,
        }
    }
}

impl History {
    /// The file or symlink that a checkpoint has at a path.
    ///
    /// # Errors
    /// Where the target is none, it has a folder or nothing there, or it left the path out.
    pub fn file_at(&self, target: impl IntoTarget, path: &WorkspacePath) -> Result<FileAt, FileError> {
        let checkpoint = self.resolve(target)?;
        let (id, path) = (checkpoint.checkpoint.id.clone(), path.clone());
        if path.is_root() {
            return Err(FileError::Folder { path, checkpoint: id });
        }
        match diff::lookup(&*self.store, &checkpoint.checkpoint.root.tree, &path)? {
            Some(entry @ (Entry::File { .. } | Entry::Symlink { .. })) => Ok(FileAt { checkpoint, path, entry }),
            Some(Entry::Folder { .. }) => Err(FileError::Folder { path, checkpoint: id }),
            Some(Entry::Skipped { reason }) => Err(FileError::NotCaptured { path, checkpoint: id, reason }),
            None => Err(FileError::NotThen { path, checkpoint: id }),
        }
    }

    /// Writes the bytes of a file, or the path that a symlink points to. The inner error is the writer's. A damaged file
    /// ends in an error.
    pub fn write_file(&self, file: &FileAt, to: &mut dyn Write) -> Result<io::Result<()>, StoreError> {
        match &file.entry {
            Entry::File { blob, .. } => self.store.write_blob(blob, to),
            Entry::Symlink { target } => Ok(to.write_all(target)),
            Entry::Folder { .. } | Entry::Skipped { .. } => Ok(Ok(())),
        }
    }
}
