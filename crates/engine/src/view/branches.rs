//! What surfaces show of branches: made, renamed, promoted, deleted, brought back, compared.

use std::path::PathBuf;

use piton_model::{CheckpointId, SessionId};
use serde::{Deserialize, Serialize};

use super::{CheckpointView, Diff, OperationOutcome, OperationView, SessionView, SkippedView, TurnView, readable};

/// What a fork made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ForkOutcome {
    /// The branch, in `conversation`; the files here stay as they are.
    #[serde(flatten)]
    pub outcome: OperationOutcome,
    /// The folder that the code of that moment was laid out in, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<WorktreeView>,
}

/// A folder with the code of a moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorktreeView {
    /// Where.
    #[serde(serialize_with = "readable")]
    pub path: PathBuf,
    /// Whether everything reads back as it was captured.
    pub verified: bool,
    /// What the checkpoint had skipped: it is not there.
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
    /// Why it is no workspace of its own yet, where that failed; the folder itself is whole.
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
    /// The session, with it.
    pub session: SessionView,
    /// Other workspaces that know the session and could not be told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<String>,
}

/// A branch that became the main line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Promoted {
    /// The branch.
    pub session: SessionView,
    /// It was the main line already.
    pub already: bool,
    /// The lines that were put aside for it; their files stay.
    pub archived: Vec<SessionView>,
    /// Other workspaces that know one of them and could not be told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<String>,
}

/// Branches that are deleted, or would be.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BranchDeletion {
    /// Which.
    pub branches: Vec<SessionView>,
    /// Branches that are old enough and stay all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stay: Vec<BranchStays>,
    /// Whether it was done; otherwise it is what would be.
    pub done: bool,
    /// Other workspaces that know one of them and could not be told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<String>,
}

/// A branch that is not deleted with the others.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BranchStays {
    /// Which.
    pub session: SessionId,
    /// Why.
    pub why: String,
}

/// A branch that came back from the trash.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BranchRestored {
    /// The branch.
    pub session: SessionView,
    /// Other workspaces that know it and could not be told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<String>,
}

/// Two conversations beside each other.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// One.
    pub a: SessionView,
    /// The other.
    pub b: SessionView,
    /// Where they parted; none where they have nothing in common.
    pub parted: Option<Parted>,
    /// The turns of the one since then.
    pub turns_a: Vec<TurnView>,
    /// The turns of the other since then.
    pub turns_b: Vec<TurnView>,
    /// The last checkpoint of the one; none where nothing was captured in it.
    pub end_a: Option<CheckpointId>,
    /// The last checkpoint of the other.
    pub end_b: Option<CheckpointId>,
    /// What differs between the two; none where one of them is missing.
    pub diff: Option<Diff>,
}

/// Where two conversations parted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parted {
    /// The youngest session that both have turns of.
    pub session: SessionId,
    /// The first turn that they do not share.
    pub turn: u32,
}
