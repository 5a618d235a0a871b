//! Operations as they are recorded: what one does, what it is to change, and how it ended.

use serde::{Deserialize, Serialize};

use crate::conversation::ConversationMove;
use crate::git::GitMove;
use crate::id::{CheckpointId, OperationId};
use crate::moves::Move;
use crate::path::WorkspacePath;
use crate::plan::{FolderMode, RootState, Step};
use crate::record::RootIdentity;
use crate::time::Timestamp;

/// A recorded act on the workspace, with everything needed to finish it or to roll it back after a crash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    pub id: OperationId,
    pub kind: OperationKind,
    pub began_at: Timestamp,
    /// A short description of what it takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The capture that it began with.
    pub before: CheckpointId,
    /// The checkpoint that its result follows: the moment it returns to, or else the capture before it.
    pub follows: CheckpointId,
    /// The root that it was planned for.
    pub root: RootIdentity,
    /// The id of the boot that it began in: after a reboot, files it put in place may be torn.
    #[serde(default)]
    pub boot: String,
    pub steps: Vec<Step>,
    pub folders: Vec<FolderMode>,
    /// Files that it moves: later changes are followed along these moves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<Move>,
    /// Files outside the workspace that it changes; their paths are relative to the filesystem's root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<Step>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitMove>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationMove>,
    pub result: RootState,
}

impl Operation {
    /// What it changes outside the workspace: files that tools named, the transcript that it makes, and the folder that
    /// it lays out for a fork.
    pub fn elsewhere(&self) -> impl Iterator<Item = &Step> {
        let made = self.conversation.iter().flat_map(|change| change.file.iter().chain(&change.worktree));
        self.outside.iter().chain(made)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum OperationKind {
    /// Makes the files equal to a checkpoint.
    Rewind {
        target: CheckpointId,
        /// Only these paths; all when empty.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<WorkspacePath>,
        /// Changes since the target that were carried over; `None` where everything went back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<Vec<ChangesAt>>,
        /// Paths that nevertheless stayed as they were.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left: Vec<WorkspacePath>,
    },
    /// Takes back chosen changes and keeps all others.
    Undo {
        /// Newest first; without changes that were left alone.
        changes: Vec<ChangesAt>,
    },
    /// Takes back an earlier operation.
    Redo {
        of: OperationId,
        /// Later changes that were taken out with it: those of the branch that it leads away from.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        gone: Vec<ChangesAt>,
        /// Paths that nevertheless stayed as they were.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left: Vec<WorkspacePath>,
        /// Only these paths, which an earlier redo of the same operation left; all when empty.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        only: Vec<WorkspacePath>,
        /// Paths in `left` that another redo can still do: in conflict, or not changeable at the time.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        open: Vec<WorkspacePath>,
    },
    /// Makes a branch of a conversation, and may switch to it; files stay as they are.
    Branch,
    /// Finishes what a crash and later edits left of an earlier operation.
    Recover { of: OperationId },
}

impl OperationKind {
    /// The name used in every surface.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Rewind { .. } => "rewind",
            Self::Undo { .. } => "undo",
            Self::Redo { .. } => "redo",
            Self::Branch => "branch",
            Self::Recover { .. } => "recover",
        }
    }
}

/// Changes that one checkpoint found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangesAt {
    pub checkpoint: CheckpointId,
    /// Where it differs from its parent.
    pub paths: Vec<WorkspacePath>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    Done {
        after: CheckpointId,
        /// The actual state before, where the check found that it was not what the capture had read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<CheckpointId>,
    },
    /// The old tree is in place.
    RolledBack { why: String },
    /// Nobody knows how it ended, or it could not be finished: its files may be half changed.
    GivenUp { why: String },
}

impl Outcome {
    /// Why an operation is given up while another folder is in the place of its own. Once that one is back it is taken
    /// up again: it is recognised by this text, which is therefore part of the format.
    pub const REPLACED: &'static str = "another folder has taken the place of the one it was in";
}
