//! Records of the timeline: what piton remembers besides trees and blobs.
//!
//! Each is written once to a pack and never changed; the current state follows from all of them in order of their
//! sequence numbers. They are JSON, so that a later piton can add a field and an earlier one still reads the rest.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::diff::Counts;
use crate::id::{CheckpointId, ObjectId, OperationId, SessionId, WorkspaceId};
use crate::operation::{ChangesAt, Operation, Outcome};
use crate::ownership::{Owned, Owner};
use crate::path::WorkspacePath;
use crate::plan::RootState;
use crate::protection::Protection;
use crate::session::{self, Gap, Message, Session, StepEnd, Turn, TurnContext, TurnEnd};
use crate::time::Timestamp;

/// A record with its sequence number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbered {
    /// Unique in a store, and always increasing.
    pub seq: u64,
    #[serde(flatten)]
    pub record: Record,
}

/// What can happen on a timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub enum Record {
    /// The workspace became known, was moved or replaced, or its settings changed; the last record counts.
    Workspace(Workspace),
    Checkpoint(Checkpoint),
    /// A person named a checkpoint; a later record with the same name moves the name.
    Name {
        checkpoint: CheckpointId,
        name: String,
    },
    /// A person annotated a checkpoint; the last record counts.
    Annotation {
        checkpoint: CheckpointId,
        text: String,
    },
    /// A person accepted changes, or took that back; of each change the last record counts.
    Accepted(Accepted),
    /// An operation is about to change files. From here on it is pending.
    Operation(Box<Operation>),
    /// A session was first seen, or changed; the last record counts.
    Session(Session),
    Turn(Turn),
    /// A tool is about to run.
    Step(session::Step),
    /// A tool has run.
    StepEnded(StepEnd),
    TurnEnded(TurnEnd),
    /// A session ended; it may still be resumed later.
    SessionEnded {
        session: SessionId,
        /// As reported by the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        at: Timestamp,
    },
    /// A capture that should have been made and was not.
    Gap(Gap),
    Message(Message),
    /// A session was imported from an archive: everything recorded of it before this happened elsewhere.
    Imported {
        session: SessionId,
        at: Timestamp,
    },
    Ended {
        operation: OperationId,
        outcome: Outcome,
        ended_at: Timestamp,
    },
}

impl Record {
    /// The word for its kind, the one that it is recorded by.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Workspace(_) => "workspace",
            Self::Checkpoint(_) => "checkpoint",
            Self::Name { .. } => "name",
            Self::Annotation { .. } => "annotation",
            Self::Accepted(_) => "accepted",
            Self::Operation(_) => "operation",
            Self::Ended { .. } => "ended",
            Self::Session(_) => "session",
            Self::Turn(_) => "turn",
            Self::Step(_) => "step",
            Self::StepEnded(_) => "step-ended",
            Self::TurnEnded(_) => "turn-ended",
            Self::SessionEnded { .. } => "session-ended",
            Self::Gap(_) => "gap",
            Self::Message(_) => "message",
            Self::Imported { .. } => "imported",
        }
    }
}

/// Changes that a person says are fine: an undo that does not name them leaves them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    pub changes: Vec<ChangesAt>,
    /// They are no longer accepted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub taken_back: bool,
    pub at: Timestamp,
}

/// A protected folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// Stays the same when the path changes.
    pub id: WorkspaceId,
    /// The canonical path; lossy where it is not UTF-8.
    pub path: String,
    /// The path's bytes in base64, where it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_b64: Option<String>,
    pub root: RootIdentity,
    /// Counts the folders that have been at this path: checkpoints of different lines are of different folders.
    pub line: u32,
    /// The store's size limit, in bytes.
    pub budget: u64,
    /// Whether the user insisted on a root that piton refuses.
    pub forced: bool,
    /// The workspace that this one is a fork of: the contents of what they share are read in its store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<WorkspaceId>,
    /// When this was recorded.
    pub at: Timestamp,
}

impl Workspace {
    /// The path, from both of its forms.
    #[cfg(unix)]
    pub fn place(&self) -> PathBuf {
        use std::os::unix::ffi::OsStringExt;
        match self.path_b64.as_deref().and_then(|b64| crate::path::decode_base64(b64).ok()) {
            Some(bytes) => PathBuf::from(std::ffi::OsString::from_vec(bytes)),
            None => PathBuf::from(&self.path),
        }
    }

    /// The same workspace at another path.
    pub fn moved_to(self, path: &Path) -> Self {
        let (path, path_b64) = Self::path_forms(path);
        Self { path, path_b64, ..self }
    }

    /// Both forms of a path: readable text, and base64 where the text is not exact.
    pub fn path_forms(path: &Path) -> (String, Option<String>) {
        let exact = path.to_str().is_none().then(|| crate::path::encode_base64(path.as_os_str().as_encoded_bytes()));
        (path.to_string_lossy().into_owned(), exact)
    }
}

/// Tells a folder from another one at the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RootIdentity {
    pub device: u64,
    pub inode: u64,
    /// Birth time of the inode in nanoseconds since 1970, if the filesystem has one.
    pub born: Option<i64>,
    /// On overlayfs, as in containers: the first write anywhere in a folder of a lower layer copies the folder, and
    /// from then on `born` is the copy's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_layered: bool,
}

impl RootIdentity {
    /// Whether two identities are of one folder.
    ///
    /// A device number may change with a reboot; an inode born at the same nanosecond is the same one. Where a folder's
    /// birth time may change, the same inode on the same device is the same folder whatever its birth time.
    pub fn is_same(&self, other: &Self) -> bool {
        let is_same_birth = match (self.born, other.born) {
            (Some(a), Some(b)) => Some(a == b),
            _ => None,
        };
        // Identities recorded by an earlier piton do not say whether they are layered.
        let births_move = self.is_layered || other.is_layered;
        self.inode == other.inode
            && match is_same_birth {
                Some(true) => true,
                Some(false) => births_move && self.device == other.device,
                None => self.device == other.device,
            }
    }

    /// Whether two identities are of one folder that was moved to another path. Only an equal birth time proves that:
    /// the inode number of a deleted folder may be reused.
    pub fn is_same_moved(&self, other: &Self) -> bool {
        self.inode == other.inode && self.born.is_some() && self.born == other.born
    }
}

/// A moment to return to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub id: CheckpointId,
    /// The checkpoint it follows: after a rewind, the rewind's target.
    pub parent: Option<CheckpointId>,
    pub line: u32,
    pub created_at: Timestamp,
    pub cause: Cause,
    pub root: RootState,
    /// Compared with its parent.
    pub changes: Counts,
    /// Number of skipped paths.
    pub skipped: u64,
    /// Files that kept changing while they were read: the last reading is stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsettled: Vec<WorkspacePath>,
    /// The operation that it is the result or the beginning of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationId>,
    /// Where in which session it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<TurnContext>,
    /// A short description; for an automatic checkpoint, what its tool does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What changed since its parent, and who did it; empty for a first checkpoint. Where there are too many changes,
    /// only their owner is listed, without paths, or nothing if they have several; the trees tell the rest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owned: Vec<Owned>,
    /// The repository's [`crate::GitState`], stored as an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<ObjectId>,
    /// What is captured although a rule ignores it, because the user has not agreed to that rule yet. Passed on from
    /// checkpoint to checkpoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<HeldPath>,
    /// Rule files that somebody other than the user changed, and to which the user has not agreed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unagreed: Vec<UnagreedRules>,
    /// The workspace's own settings.
    #[serde(default, skip_serializing_if = "SettingsAt::is_empty")]
    pub settings: Box<SettingsAt>,
}

impl Checkpoint {
    /// Whether the paths that changed are listed in `owned`.
    pub fn lists_changes(&self) -> bool {
        self.owned.last().is_some_and(|last| !last.paths.is_empty())
    }
}

/// The part of a workspace's own settings that affects protection, at a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsAt {
    /// What is in force.
    #[serde(default, skip_serializing_if = "Protection::is_empty")]
    pub holds: Protection,
    /// What the file said, where that is weaker and the user had not agreed to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Protection>,
}

impl SettingsAt {
    /// Whether the file said nothing that affects protection.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A path that stays captured although a rule ignores it; for a folder, everything in it that was captured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldPath {
    pub path: WorkspacePath,
    /// The rule files that changed, as a person would find them: `.gitignore`, `.git/info/exclude`.
    pub rules: Vec<String>,
    /// Who changed them: a step, or unknown. Never the user.
    pub owner: Owner,
}

/// A rule file as somebody other than the user left it. Its rules may have no effect yet: paths are judged by what the
/// user had there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnagreedRules {
    /// As a person would find it: `.gitignore`, `.git/info/exclude`.
    pub shown: String,
    /// Its path in the workspace; `None` for a file that is never captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<WorkspacePath>,
    /// What the user had there; `None` where that was no file, or is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<ObjectId>,
    /// Who changed it last: a step, an operation, or unknown. Never the user.
    pub owner: Owner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    SessionStart,
    /// The user prompted an agent.
    Prompt,
    BeforeTool,
    AfterTool,
    /// The tools that an agent called together had ended, with its own hooks.
    AfterTools,
    TurnEnd,
    /// The agent was about to compact its conversation.
    Compaction,
    /// A person asked for it.
    Manual,
    BeforeOperation,
    Operation,
}

impl Cause {
    pub const ALL: [Self; 10] = [
        Self::SessionStart,
        Self::Prompt,
        Self::BeforeTool,
        Self::AfterTool,
        Self::AfterTools,
        Self::TurnEnd,
        Self::Compaction,
        Self::Manual,
        Self::BeforeOperation,
        Self::Operation,
    ];

    /// The cause of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.as_str() == word)
    }

    /// The name used in every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SessionStart => "session-start",
            Self::Prompt => "prompt",
            Self::BeforeTool => "before-tool",
            Self::AfterTool => "after-tool",
            Self::AfterTools => "after-tools",
            Self::TurnEnd => "turn-end",
            Self::Compaction => "compaction",
            Self::Manual => "manual",
            Self::BeforeOperation => "before-operation",
            Self::Operation => "operation",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_inode_is_another_folder_when_it_was_born_at_another_time() {
        let root = RootIdentity { device: 1, inode: 2, born: Some(3), is_layered: false };
        assert!(root.is_same(&RootIdentity { device: 9, ..root }));
        assert!(!root.is_same(&RootIdentity { born: Some(4), ..root }));
        assert!(!root.is_same(&RootIdentity { inode: 5, ..root }));
        let old = RootIdentity { born: None, ..root };
        assert!(!old.is_same(&RootIdentity { device: 9, ..root }));
    }

    #[test]
    fn at_another_path_only_an_equal_birth_tells_a_folder_from_one_that_got_its_number() {
        let now = RootIdentity { device: 1, inode: 2, born: Some(4), is_layered: true };
        for (device, inode, born, expected) in [
            (1, 2, Some(4), true),
            (9, 2, Some(4), true),
            (1, 2, Some(3), false),
            (1, 2, None, false),
            (1, 5, Some(4), false),
        ] {
            let recorded = RootIdentity { device, inode, born, ..now };
            assert_eq!(now.is_same_moved(&recorded), expected, "{recorded:?}");
            assert_eq!(recorded.is_same_moved(&now), expected, "{recorded:?}");
        }
        let without_birth = RootIdentity { born: None, ..now };
        assert!(!without_birth.is_same_moved(&without_birth));
    }

    #[test]
    fn a_folder_of_layers_is_the_same_after_its_birth_moved_or_its_device_but_not_both() {
        let now = RootIdentity { device: 1, inode: 2, born: Some(4), is_layered: true };
        let of_earlier_piton = RootIdentity { is_layered: false, ..now };
        for recorded in [now, of_earlier_piton] {
            for (device, inode, born, expected) in [
                (1, 2, Some(4), true),
                (1, 2, Some(3), true),
                (1, 2, None, true),
                // The container was restarted.
                (9, 2, Some(4), true),
                (9, 2, Some(3), false),
                (1, 5, Some(4), false),
            ] {
                let recorded = RootIdentity { device, inode, born, ..recorded };
                assert_eq!(now.is_same(&recorded), expected, "{recorded:?}");
                assert_eq!(recorded.is_same(&now), expected, "{recorded:?}");
            }
        }
        let read: RootIdentity = serde_json::from_str(r#"{"device":1,"inode":2,"born":4}"#).unwrap();
        assert_eq!(read, of_earlier_piton);
    }

    #[test]
    fn a_record_reads_back_and_ignores_fields_of_a_later_piton() {
        let record = Numbered {
            seq: 7,
            record: Record::Name { checkpoint: CheckpointId::from_random([1; 8]), name: "a".into() },
        };
        let json = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Numbered>(&json).unwrap(), record);
        let later = json.replacen('{', "{\"later\":1,", 1);
        assert_eq!(serde_json::from_str::<Numbered>(&later).unwrap(), record);
    }
}
