//! Why a folder cannot be captured, and why an operation that was cut off in it cannot be ended. Each may be the reason of the
//! other, and whoever opens a workspace may meet both.

use std::io;
use std::path::PathBuf;

use piton_model::target::BadTarget;
use piton_model::{CheckpointId, OperationId, SessionId, WorkspacePath};
use piton_store::StoreError;

use crate::workspace::InItsPlace;

/// Why nothing was captured.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The name cannot be one.
    #[error("`{name}` cannot be a checkpoint's name: {source}")]
    Name { name: String, source: BadTarget },
    /// The name is another checkpoint's.
    #[error("the name `{name}` is taken by checkpoint {}", checkpoint.short())]
    NameTaken { name: String, checkpoint: CheckpointId },
    /// The workspace's folder is gone.
    #[error("{} is gone; nothing was captured", .0.display())]
    Missing(PathBuf),
    /// The workspace's folder is gone, and something else stands in its place.
    #[error("{} is gone, and {} stands in its place; nothing was captured", path.display(), by.word())]
    Displaced {
        /// Where it was.
        path: PathBuf,
        /// What is there.
        by: InItsPlace,
    },
    /// Another folder is at its path, and it is empty: an unmounted disk looks like that.
    #[error("{} is another folder than the one captured before, and it is empty; nothing was captured", .0.display())]
    EmptyOther(PathBuf),
    /// Over the limit for a root.
    #[error("{} holds more than {files} files or {} GiB to read; nothing was captured", path.display(), bytes >> 30)]
    TooLarge {
        path: PathBuf,
        /// Files at most.
        files: u64,
        /// Bytes at most.
        bytes: u64,
    },
    /// The time there was is over.
    #[error("not all files could be read in time; the next capture goes on from there")]
    OutOfTime,
    /// A session has as many manual checkpoints as it may have.
    #[error("session {} has {made} manual checkpoints, and more are not allowed", session.short())]
    TooMany { session: SessionId, made: u64 },
    /// The root cannot be read.
    #[error("{}: {source}", path.display())]
    Folder {
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An operation was cut off and cannot be ended.
    #[error(transparent)]
    Recover(Box<RecoverError>),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why an operation that was cut off cannot be ended now.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The system refuses both ways.
    #[error("operation {} was cut off and cannot be ended: `{}`: {reason}", operation.short(), path.display())]
    Refused { operation: OperationId, path: WorkspacePath, reason: String },
    /// What is there now could not be captured first.
    #[error("operation {} was cut off and waits: {source}", operation.short())]
    Capture { operation: OperationId, source: Box<CaptureError> },
    /// Another process is at work: it carries the operation out, or will end it.
    #[error("operation {} has not ended, and another piton is at work: files may be half changed", operation.short())]
    UnderWay { operation: OperationId },
    /// Piton's own folder does not let its end be recorded.
    #[error("operation {} was cut off, its files may be half changed, and it waits: {source}", operation.short())]
    Home {
        operation: OperationId,
        /// What is refused.
        source: StoreError,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}
