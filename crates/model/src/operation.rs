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
    /// it lays out.
    pub fn elsewhere(&self) -> impl Iterator<Item = &Step> {
        let made = self.conversation.iter().flat_map(|change| change.file.iter().chain(&change.worktree));
        let folder = match &self.kind {
            OperationKind::Checkout { folder, .. } => Some(&**folder),
            _ => None,
        };
        self.outside.iter().chain(made).chain(folder)
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
        /// Every operation after it, where all of them are taken back together.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        also: Vec<OperationId>,
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
    /// Lays a checkpoint out in another folder; files stay as they are.
    Checkout {
        target: CheckpointId,
        /// The folder that it makes, relative to the filesystem's root.
        folder: Box<Step>,
    },
    /// Finishes what a crash and later edits left of an earlier operation.
    Recover { of: OperationId },
}

impl OperationKind {
    /// What kind of act it is, without its object.
    pub fn verb(&self) -> OperationVerb {
        match self {
            Self::Rewind { .. } => OperationVerb::Rewind,
            Self::Undo { .. } => OperationVerb::Undo,
            Self::Redo { .. } => OperationVerb::Redo,
            Self::Branch => OperationVerb::Branch,
            Self::Checkout { .. } => OperationVerb::Checkout,
            Self::Recover { .. } => OperationVerb::Recover,
        }
    }

    /// The operations that it takes back besides the one that it is about.
    pub fn also(&self) -> &[OperationId] {
        match self {
            Self::Redo { also, .. } => also,
            _ => &[],
        }
    }

    /// The one checkpoint or operation that it is about.
    pub fn target(&self) -> Option<OperationTarget> {
        match self {
            Self::Rewind { target, .. } | Self::Checkout { target, .. } => {
                Some(OperationTarget::Checkpoint(target.clone()))
            }
            Self::Redo { of, .. } | Self::Recover { of } => Some(OperationTarget::Operation(of.clone())),
            Self::Undo { .. } | Self::Branch => None,
        }
    }
}

/// The kinds of operations, without what each is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperationVerb {
    Rewind,
    Undo,
    Redo,
    Branch,
    Checkout,
    Recover,
}

impl OperationVerb {
    /// The name used in every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rewind => "rewind",
            Self::Undo => "undo",
            Self::Redo => "redo",
            Self::Branch => "branch",
            Self::Checkout => "checkout",
            Self::Recover => "recover",
        }
    }

    /// The verb of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        let all = [Self::Rewind, Self::Undo, Self::Redo, Self::Branch, Self::Checkout, Self::Recover];
        all.into_iter().find(|verb| verb.as_str() == word)
    }
}

/// What an operation is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationTarget {
    /// The moment that a rewind goes to, or that is laid out.
    Checkpoint(CheckpointId),
    /// The operation that a redo takes back, or a recovery ends.
    Operation(OperationId),
}

impl OperationTarget {
    /// The id, of whichever it is.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Checkpoint(id) => id.as_str(),
            Self::Operation(id) => id.as_str(),
        }
    }

    /// The checkpoint, where it is one.
    pub fn checkpoint(&self) -> Option<&CheckpointId> {
        match self {
            Self::Checkpoint(id) => Some(id),
            Self::Operation(_) => None,
        }
    }

    /// The operation, where it is one.
    pub fn operation(&self) -> Option<&OperationId> {
        match self {
            Self::Operation(id) => Some(id),
            Self::Checkpoint(_) => None,
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
    GivenUp(GivenUp),
}

/// Why an operation was given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "GivenUpFields", into = "GivenUpFields")]
pub enum GivenUp {
    /// Another folder stands in the place of its own. Once that one is back, the operation is taken up again.
    Replaced,
    /// For good.
    ForGood {
        /// Why, for people.
        why: String,
    },
}

impl GivenUp {
    /// Why, for people.
    pub fn describe(&self) -> &str {
        match self {
            Self::Replaced => REPLACED,
            Self::ForGood { why } => why,
        }
    }
}

/// Records of earlier versions say by these words alone that a folder was replaced.
const REPLACED: &str = "another folder has taken the place of the one it was in";

/// [`GivenUp`] as it is recorded: in words that every version shows, and in one that it is known by.
#[derive(Serialize, Deserialize)]
struct GivenUpFields {
    why: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    replaced: bool,
}

impl From<GivenUp> for GivenUpFields {
    fn from(given_up: GivenUp) -> Self {
        Self { why: given_up.describe().to_owned(), replaced: given_up == GivenUp::Replaced }
    }
}

impl From<GivenUpFields> for GivenUp {
    fn from(fields: GivenUpFields) -> Self {
        match fields.replaced || fields.why == REPLACED {
            true => Self::Replaced,
            false => Self::ForGood { why: fields.why },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    fn outcome_of(json: &str) -> Outcome {
        match serde_json::from_str(json).unwrap() {
            Record::Ended { outcome, .. } => outcome,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_operation_that_an_earlier_piton_gave_up_because_its_folder_was_replaced_is_known_as_such() {
        let old = r#"{"record":"ended","operation":"kklzzkzzklkmknko","outcome":{"outcome":"given-up","why":"another folder has taken the place of the one it was in"},"ended_at":"2026-11-15T20:03:11.042Z"}"#;
        assert_eq!(outcome_of(old), Outcome::GivenUp(GivenUp::Replaced));
        let other = old.replace("another folder has taken the place of the one it was in", "its record is damaged");
        assert_eq!(outcome_of(&other), Outcome::GivenUp(GivenUp::ForGood { why: "its record is damaged".to_owned() }));
    }

    #[test]
    fn that_a_folder_was_replaced_is_recorded_apart_from_the_words_for_it() {
        let ended = Record::Ended {
            operation: OperationId::from_random([1; 8]),
            outcome: Outcome::GivenUp(GivenUp::Replaced),
            ended_at: Timestamp(5),
        };
        let json = serde_json::to_string(&ended).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), ended);
        assert_eq!(outcome_of(&json.replace(REPLACED, "said otherwise")), Outcome::GivenUp(GivenUp::Replaced));
    }

    #[test]
    fn every_verb_is_found_by_its_word_and_recorded_by_it() {
        for verb in ["rewind", "undo", "redo", "branch", "checkout", "recover"] {
            let known = OperationVerb::from_word(verb).unwrap();
            assert_eq!(serde_json::to_value(known).unwrap(), verb);
        }
    }
}
