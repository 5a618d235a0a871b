//! What surfaces show of branches: made, renamed, promoted, deleted, brought back, compared.

use std::path::PathBuf;

use piton_model::{CheckpointId, SessionId};
use serde::{Deserialize, Serialize};

use super::{CheckpointView, Diff, OperationOutcome, OperationView, SessionView, SkippedView, TurnView, readable};

/// What a fork made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ForkOutcome {
    /// The branch is in `conversation`; the files here stay as they are.
    #[serde(flatten)]
    pub outcome: OperationOutcome,
    /// The folder with the code of that moment, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<WorktreeView>,
}

/// A new folder with the code of a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorktreeView {
    #[serde(serialize_with = "readable")]
    pub path: PathBuf,
    /// Whether everything was read back and is as captured.
    pub verified: bool,
    /// What the checkpoint had skipped, so it is missing here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedView>,
    /// The commit that HEAD is detached at, where it is a worktree of git's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<String>,
    /// Why it is none, where that was asked for and failed; the folder itself is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_problem: Option<String>,
    /// The first checkpoint there.
    pub checkpoint: Option<CheckpointId>,
    /// Why it could not become a workspace of its own, if that failed; the folder itself is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What came of laying a checkpoint out in another folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckoutOutcome {
    pub checkpoint: CheckpointView,
    #[serde(serialize_with = "readable")]
    pub path: PathBuf,
    /// Whether everything reads back as it was captured.
    pub verified: bool,
    /// What the checkpoint had left out: it is not there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedView>,
    pub operation: Option<OperationView>,
}

/// A session with another name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Renamed {
    /// The session with its new name.
    pub session: SessionView,
    /// Other workspaces that know the session and could not be told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<String>,
}

/// A branch that became the main line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Promoted {
    pub session: SessionView,
    /// It was the main line already.
    pub already: bool,
    /// Sessions that were archived in its favour; their files stay.
    pub archived: Vec<SessionView>,
    /// Other workspaces that know one of them and could not be told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<String>,
}

/// Branches that are deleted, or would be.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BranchDeletion {
    pub branches: Vec<SessionView>,
    /// Branches that are old enough but stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stay: Vec<BranchStays>,
    /// Whether they were deleted; otherwise this is a preview.
    pub done: bool,
    /// Other workspaces that know one of them and could not be told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<String>,
}

/// A branch that is not deleted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BranchStays {
    pub session: SessionId,
    pub why: String,
}

/// A branch that came back from the trash.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BranchRestored {
    pub session: SessionView,
    /// Other workspaces that know it and could not be told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<String>,
}

/// Two conversations compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    pub a: SessionView,
    pub b: SessionView,
    /// Where they diverged; `None` if they have nothing in common.
    pub parted: Option<Parted>,
    /// Turns of `a` since then.
    pub turns_a: Vec<TurnView>,
    /// Turns of `b` since then.
    pub turns_b: Vec<TurnView>,
    /// The last checkpoint of `a`; `None` if nothing was captured in it.
    pub end_a: Option<CheckpointId>,
    /// The last checkpoint of `b`.
    pub end_b: Option<CheckpointId>,
    /// The difference between the two; `None` if one of them is missing.
    pub diff: Option<Diff>,
}

/// Where two conversations diverged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parted {
    /// The youngest session that both have turns of.
    pub session: SessionId,
    /// The first turn that they do not share.
    pub turn: u32,
}
