//! What can go wrong with the store.

use std::io;
use std::path::{Path, PathBuf};

use piton_model::ObjectId;

/// Why the store could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk or the system refused.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// The database refused.
    #[error("the store's database: {0}")]
    Database(#[from] rusqlite::Error),
    /// An object is there and not what it was.
    #[error("object {} is damaged in the store", &.0.to_hex()[..12])]
    Damaged(ObjectId),
    /// An object is not there.
    #[error("object {} is missing from the store", &.0.to_hex()[..12])]
    Missing(ObjectId),
    /// A record of the timeline cannot be read.
    #[error("record {seq} of the timeline is damaged in the store")]
    DamagedRecord {
        /// Its number.
        seq: u64,
    },
    /// Made by a later piton.
    #[error("the store has format {found}; this piton knows formats up to {known}")]
    Newer {
        /// The store's.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// A record of a kind that only a later piton knows.
    #[error("the store holds a record `{record}`, which this piton does not know")]
    UnknownRecord {
        /// Its kind.
        record: String,
    },
    /// The rows are those of an earlier piton; the packs are the same, so they are made anew.
    #[error("the store's database is of an earlier piton")]
    Older,
    /// There is a file in the database's place and no rows in it: nobody finished making it.
    #[error("the store's database was never finished")]
    Unfinished,
    /// The workspace's disk budget is used up.
    #[error("the store would take {} MiB, over its budget of {} MiB", needed.div_ceil(1 << 20), budget >> 20)]
    OverBudget {
        /// What it would take.
        needed: u64,
        /// What it may take.
        budget: u64,
    },
    /// A pack is shorter than the view says.
    #[error("pack {pack} of the store was cut off")]
    PackCut {
        /// Its number.
        pack: u32,
    },
    /// The view says something that the packs do not.
    #[error("the store's database does not belong to its packs: {what}")]
    Diverged {
        /// What the packs do not say.
        what: String,
    },
    /// The database was made anew by another process while this one had the old one open.
    #[error("another piton made the store's database anew in the meantime; nothing was changed")]
    Replaced,
    /// The database's file can be read by this user and not written: another user made it.
    #[error("the store's database belongs to another user, who alone may write it")]
    ReadOnlyView,
    /// Another process holds the database's own locks, and does not get on.
    #[error("the store's database is held by a process that does not get on")]
    Stuck,
    /// The file of the workspace's lock was deleted while this process held it.
    #[error("the lock of this workspace's store was deleted in the meantime; nothing was recorded")]
    LockLost,
    /// Another process holds the workspace's lock.
    #[error("another piton is at work in this workspace")]
    Busy,
}

impl StoreError {
    /// Wraps a system error with what was tried.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, path: path.to_owned(), source }
    }

    /// Whether the disk is full.
    pub fn is_full_disk(&self) -> bool {
        match self {
            Self::Io { source, .. } => source.kind() == io::ErrorKind::StorageFull,
            Self::Database(rusqlite::Error::SqliteFailure(error, _)) => error.code == rusqlite::ErrorCode::DiskFull,
            _ => false,
        }
    }

    /// Whether the system refused access to the store's files, which its user can change.
    pub fn is_refused(&self) -> bool {
        match self {
            Self::ReadOnlyView => true,
            Self::Io { source, .. } => {
                matches!(source.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
            }
            Self::Database(rusqlite::Error::SqliteFailure(error, _)) => matches!(
                error.code,
                rusqlite::ErrorCode::ReadOnly | rusqlite::ErrorCode::CannotOpen | rusqlite::ErrorCode::PermissionDenied
            ),
            _ => false,
        }
    }

    /// Whether the database cannot be used as it is, so that only making it anew from the packs helps: it is broken, or it
    /// is a file that this user may not open or write. The new one is another file, made by this user.
    pub fn is_damaged_database(&self) -> bool {
        match self {
            Self::Older
            | Self::Unfinished
            | Self::ReadOnlyView
            | Self::Stuck
            | Self::PackCut { .. }
            | Self::Diverged { .. } => true,
            Self::Database(rusqlite::Error::SqliteFailure(error, _)) => {
                // The last is SQLite's word for a table or column that is not there.
                matches!(
                    error.code,
                    rusqlite::ErrorCode::DatabaseCorrupt
                        | rusqlite::ErrorCode::NotADatabase
                        | rusqlite::ErrorCode::ReadOnly
                        | rusqlite::ErrorCode::CannotOpen
                        | rusqlite::ErrorCode::PermissionDenied
                        | rusqlite::ErrorCode::Unknown
                )
            }
            // A value of another type: no piton wrote that.
            Self::Database(
                rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::SqlInputError { .. }
                | rusqlite::Error::QueryReturnedNoRows,
            ) => true,
            _ => false,
        }
    }
}
