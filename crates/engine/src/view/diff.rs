//! What surfaces show of differences between two moments.

use piton_model::diff::{Change, ChangeKind, Counts};
use piton_model::text::Hunk;
use piton_model::{Entry, ObjectId, SkipReason};
use serde::{Deserialize, Serialize};

use super::{CheckpointView, PathView, SinceView, SkippedView};

/// One path's difference, without its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    #[serde(flatten)]
    pub path: PathView,
    pub kind: ChangeKind,
    /// What was there.
    pub before: Option<EntryView>,
    /// What is there.
    pub after: Option<EntryView>,
}

impl From<&Change> for FileChange {
    fn from(change: &Change) -> Self {
        Self {
            path: (&change.path).into(),
            kind: change.kind(),
            before: change.before.as_ref().map(EntryView::from),
            after: change.after.as_ref().map(EntryView::from),
        }
    }
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum EntryView {
    /// A regular file.
    File {
        /// Permission bits in octal.
        mode: String,
        /// Bytes.
        size: u64,
        /// The hash of its content: equal for files with equal contents.
        hash: ObjectId,
    },
    /// A symbolic link.
    Symlink {
        /// Where it points; lossy if that is not UTF-8.
        target: String,
    },
    /// A folder.
    Folder {
        /// Permission bits in octal.
        mode: String,
    },
    /// Not captured.
    Skipped { reason: SkipReason },
}

impl From<&Entry> for EntryView {
    fn from(entry: &Entry) -> Self {
        let octal = |mode: &u16| format!("{mode:04o}");
        match entry {
            Entry::File { mode, size, blob } => Self::File { mode: octal(mode), size: *size, hash: *blob },
            Entry::Symlink { target } => Self::Symlink { target: String::from_utf8_lossy(target).into_owned() },
            Entry::Folder { mode, .. } => Self::Folder { mode: octal(mode) },
            Entry::Skipped { reason } => Self::Skipped { reason: *reason },
        }
    }
}

/// The difference between two moments.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Diff {
    /// The earlier side; `None` for the current state.
    pub from: Option<CheckpointView>,
    /// The later side; `None` for the current state.
    pub to: Option<CheckpointView>,
    /// How many paths differ.
    pub changes: Counts,
    pub files: Vec<FileDiff>,
    /// Paths that one side has and the other skipped, so it is unknown whether they differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_compared: Vec<SkippedView>,
    /// Folders that differ, with a damaged listing in the store, so it is unknown in what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<PathView>,
    /// What the earlier side is, where nobody named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<SinceView>,
    /// The turn or step that alone did what is listed: `t5`, `t5.2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// Of a turn: paths that it may have changed, or somebody else. They are not among the files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsure: Vec<PathView>,
}

/// One path's difference with its content.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileDiff {
    #[serde(flatten)]
    pub change: FileChange,
    /// Whether the content is not text, or too large to compare.
    pub binary: bool,
    /// Whether the content is unavailable: damaged in the store, or changed during the comparison.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unavailable: bool,
    /// Lines that are only on the later side.
    pub added: u64,
    /// Lines that are only on the earlier side.
    pub removed: u64,
    /// The places that differ.
    pub hunks: Vec<Hunk>,
}
