//! What surfaces show of interrupted operations that have been finished since.

use piton_model::{CheckpointId, OperationId};
use serde::{Deserialize, Serialize};

use super::PathView;

/// The recovery of an interrupted operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recovered {
    /// The interrupted operation.
    pub operation: OperationId,
    /// The checkpoint of the state before it.
    pub before: CheckpointId,
    /// Whether its result is in effect; otherwise the state before it was restored.
    pub finished: bool,
    /// Paths that somebody changed since: left as they are. Where it is `mixed`, all that are not as before it.
    pub left_alone: Vec<PathView>,
    /// The same for files outside the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_outside: Vec<String>,
    /// Paths whose folder somebody moved or removed since: what it had done there stands, wherever that is now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<PathView>,
    /// Why the repository was left as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_stays: Option<String>,
    /// Files outside the workspace that could not be looked at: they may be as after it, and the next command tries again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_outside: Vec<LeftoverView>,
    /// Set where what is needed for ending it is damaged in the store: its files may be half changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
    /// Set where somebody changed both the files and what it had put beside them, so that nothing tells the old from the new:
    /// nothing was put back, and its files may be half changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
    /// Set where another folder stands in the place of the one it was in: nothing was done in this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaced: bool,
    /// Staged files that it could not remove yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<LeftoverView>,
}

/// A file of an operation's own that could not be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftoverView {
    /// From the workspace's root; absolute where it is outside the workspace.
    #[serde(flatten)]
    pub path: PathView,
    /// The system's error, or why the file is kept.
    pub why: String,
}
