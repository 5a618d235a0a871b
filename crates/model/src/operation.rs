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

/// An act on the workspace, with all that is needed to finish it or to take it back after a crash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Its id.
    pub id: OperationId,
    /// What it is.
    pub kind: OperationKind,
    /// When it began.
    pub began_at: Timestamp,
    /// What it takes back, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The capture that it began with.
    pub before: CheckpointId,
    /// The checkpoint that its result follows: where it returns to a moment, that one, else the capture before it.
    pub follows: CheckpointId,
    /// The root that it was planned for.
    pub root: RootIdentity,
    /// The machine's run that it began in: after a reboot, what it put in place may be torn.
    #[serde(default)]
    pub boot: String,
    /// The paths it changes.
    pub steps: Vec<Step>,
    /// The folders whose bits it changes or opens.
    pub folders: Vec<FolderMode>,
    /// Files that it moves: later changes are followed through that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<Move>,
    /// Files outside the workspace that it changes; their paths are from the file system's root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<Step>,
    /// Where it moves the repository, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitMove>,
    /// Where it moves the conversation, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationMove>,
    /// The root when all is done.
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

/// What an operation does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum OperationKind {
    /// Makes the files equal to a checkpoint.
    Rewind {
        /// Which.
        target: CheckpointId,
        /// Only these paths; all when empty.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<WorkspacePath>,
        /// Changes since the target that were carried over; none where everything went back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<Vec<ChangesAt>>,
        /// Paths that stayed as they were all the same.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left: Vec<WorkspacePath>,
    },
    /// Takes back chosen changes and keeps all others.
    Undo {
        /// Which, newest first. Where a change was left alone, it is not among them.
        changes: Vec<ChangesAt>,
    },
    /// Takes back an earlier operation.
    Redo {
        /// Which.
        of: OperationId,
        /// Changes that were made since and went with it: those of the branch that it leads away from.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        gone: Vec<ChangesAt>,
        /// Paths that stayed as they were all the same.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left: Vec<WorkspacePath>,
        /// Only these paths, which an earlier redo of the same operation left; all when empty.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        only: Vec<WorkspacePath>,
        /// Of those that stayed, the ones that another redo can go on with: in conflict, or not to be changed at the time.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        open: Vec<WorkspacePath>,
    },
    /// Makes a branch of a conversation, and goes to it or not; files stay as they are.
    Branch,
    /// Finishes what a crash and later edits left of an earlier operation.
    Recover {
        /// Which.
        of: OperationId,
    },
}

impl OperationKind {
    /// The word in every surface.
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

/// Some changes that one checkpoint found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangesAt {
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// Where it differs from its parent.
    pub paths: Vec<WorkspacePath>,
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// Its result stands.
    Done {
        /// The checkpoint of the result.
        after: CheckpointId,
        /// What was there before, where the check found that it was not what the capture had read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<CheckpointId>,
    },
    /// The old tree stands.
    RolledBack {
        /// Why.
        why: String,
    },
    /// Nobody knows how it ended, or could end it: its files may be half changed.
    GivenUp {
        /// Why.
        why: String,
    },
}

impl Outcome {
    /// Why an operation is given up while another folder stands in the place of its own. Once that one is back it is taken up
    /// again: by these words, so they are part of the format.
    pub const REPLACED: &'static str = "another folder has taken the place of the one it was in";
}
