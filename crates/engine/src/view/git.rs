//! What surfaces show of git: a state that is to come back, and an export.

use std::path::PathBuf;

use piton_model::{CheckpointId, OperationId, Timestamp, WorkspacePath};
use serde::{Deserialize, Serialize};

use super::PathView;

/// What putting a repository's state back would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitPlanView {
    /// Where HEAD is, such as `main (1a2b3c4d5e)`.
    pub from: String,
    /// Where it goes.
    pub to: String,
    /// The branch that points at another commit afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Where that branch points now; `None` if it does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_from: Option<String>,
    /// Where it points afterwards; `None` if it is removed, because it had no commit yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_to: Option<String>,
    /// Paths whose entries in the index change.
    pub index_changes: u64,
    /// Set if the workspace is a folder inside the repository: HEAD and the index belong to the whole repository.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "some_readable")]
    pub whole_repository: Option<PathBuf>,
}

impl GitPlanView {
    /// Whether the repository is in that state already.
    pub fn is_empty(&self) -> bool {
        self.from == self.to && self.branch.is_none() && self.index_changes == 0
    }
}

pub(super) fn some_readable<S: serde::Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => super::readable(path, to),
        None => to.serialize_none(),
    }
}

/// Checkpoints that became commits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Exported {
    /// The reference's whole name.
    pub reference: String,
    /// The commit that it points to.
    pub commit: String,
    #[serde(serialize_with = "super::readable")]
    pub repository: PathBuf,
    /// Whether the repository was made for this.
    pub made: bool,
    /// The commits, oldest first.
    pub commits: Vec<ExportedCommit>,
    /// Turns without a commit, because nothing was captured in them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<u32>,
    /// Folders missing from the last commit, because git cannot store empty ones.
    pub empty_folders: Vec<PathView>,
    /// How many files of the last commit have permission bits other than git's 644 and 755.
    pub other_modes: u64,
    /// How many paths the last checkpoint had skipped.
    pub skipped_count: u64,
    /// Files left out because they are ignored and untracked.
    #[serde(default)]
    pub ignored: Vec<PathView>,
    /// Files left out because a filter (git-crypt, LFS) transforms them before git stores them.
    #[serde(default)]
    pub filtered: Vec<PathView>,
    /// Files that stayed out, because git is told not to look at them (`--skip-worktree`, `--assume-unchanged`) and has something
    /// else there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unwatched: Vec<PathView>,
    /// Files left out because they hold what a file of the lists above held at any checkpoint, or an edited version of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<CopyView>,
    /// Whether every commit's tree in git is the one that piton computed.
    pub verified: bool,
}

/// A file with the content of another one, or an edited version of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyView {
    #[serde(flatten)]
    pub path: PathView,
    /// The path that the content was at first.
    pub from: PathView,
}

impl From<(&WorkspacePath, &WorkspacePath)> for CopyView {
    fn from((path, from): (&WorkspacePath, &WorkspacePath)) -> Self {
        Self { path: path.into(), from: from.into() }
    }
}

/// A checkpoint that became a commit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportedCommit {
    pub commit: String,
    /// Its message's first line.
    pub subject: String,
    pub checkpoint: CheckpointId,
    /// The turn that it ends, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
}

/// What one operation keeps reachable in the repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptGit {
    pub operation: OperationId,
    /// When it began; `None` if this store does not know the operation.
    pub began_at: Option<Timestamp>,
    /// How many references.
    pub references: u64,
    /// Whether anything needs them.
    pub state: KeptGitState,
}

/// Whether anything needs what an operation keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeptGitState {
    /// The operation can be taken back.
    Needed,
    /// It was taken back, or rolled back.
    TakenBack,
    /// The repository was moved since, so its state can no longer be taken back.
    Moved,
    /// The operation of another store, or of one that no longer exists.
    Unknown,
}
