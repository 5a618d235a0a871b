//! The state of a workspace, and how it became known.

use std::path::PathBuf;

use piton_model::WorkspaceId;
use piton_model::diff::Counts;
use serde::{Deserialize, Serialize};

use super::{
    CheckpointView, FileChange, GapView, OperationView, SessionView, SinceTurn, SinceView, SkippedView,
    UnreadRulesView, Waiting, all_readable, readable,
};

/// The state of a workspace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    pub id: WorkspaceId,
    #[serde(serialize_with = "readable")]
    pub path: PathBuf,
    /// Whether its folder is the one that was captured.
    pub folder: FolderState,
    /// Where its store is.
    #[serde(serialize_with = "readable")]
    pub store: PathBuf,
    /// Size of the store in bytes.
    pub size: u64,
    /// The store's budget in bytes.
    pub budget: u64,
    /// How many checkpoints there are.
    pub checkpoints: u64,
    pub last: Option<CheckpointView>,
    /// What changed since the newest.
    pub files: Vec<FileChange>,
    /// The same as counts.
    pub changes: Counts,
    /// Since when people want to know what changed: the beginning of the last turn, or a rewind that came after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<SinceView>,
    /// What changed since then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub since_files: Vec<FileChange>,
    /// The rewind that the workspace or its conversation stands at: nothing was asked of an agent since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewound: Option<RewoundView>,
    /// Paths that the newest checkpoint skipped, with the reason, and that the next one will have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_in: Vec<SkippedView>,
    /// What a capture would skip now, and what the newest checkpoint skipped because the budget was full.
    pub skipped: Vec<SkippedView>,
    /// Ignore files that are not applied, because they cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread_rules: Vec<UnreadRulesView>,
    /// Worktrees in the workspace that the sessions at work here do not capture: nothing has worked in them yet, or the
    /// rules leave them out and only sessions that work in them capture them.
    #[serde(serialize_with = "all_readable")]
    pub unprotected: Vec<PathBuf>,
    /// Interrupted operations that wait for their folder.
    pub pending: Vec<OperationView>,
    /// The open sessions, the one that reported last first.
    pub sessions: Vec<SessionView>,
    /// The gaps of the session that reported last.
    pub gaps: Vec<GapView>,
    /// The newest gap, if nothing was captured since: what happens now is not protected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_captured: Option<GapView>,
    /// Events that could not be recorded yet, oldest first: the next capture that works records them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<GapView>,
    /// Why the store cannot be written, if it cannot: nothing that happens now is captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritable: Option<String>,
    /// Bytes still available to captures.
    pub room: u64,
    /// Whether some of what was captured is gone or incomplete: `verify` names it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub history_lost: bool,
    /// Changed rules and settings that wait for the user's agreement.
    #[serde(default, skip_serializing_if = "Waiting::is_empty")]
    pub rules_waiting: Waiting,
}

/// A rewind, with where it came from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RewoundView {
    pub operation: OperationView,
    /// The last turn before it, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<SinceTurn>,
}

/// Whether a workspace's folder is the one that was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FolderState {
    /// It is.
    Same,
    /// Another folder is at its path.
    Other,
    /// Nothing is at its path.
    Missing,
}

/// A workspace that became known.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Initialized {
    pub id: WorkspaceId,
    #[serde(serialize_with = "readable")]
    pub path: PathBuf,
    /// Where its store is.
    #[serde(serialize_with = "readable")]
    pub store: PathBuf,
    /// The store's budget in bytes.
    pub budget: u64,
    /// Whether it was known before.
    pub already_known: bool,
    /// Stores in piton's home that cannot be read. One of them may be this folder's, from when it had another path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<UnreadStore>,
}

/// A store that cannot be read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UnreadStore {
    /// Its folder.
    #[serde(serialize_with = "readable")]
    pub store: PathBuf,
    /// In a few words.
    pub reason: String,
}
