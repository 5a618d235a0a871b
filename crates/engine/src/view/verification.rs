//! What a check of the store found.

use piton_model::session::StepRef;
use piton_model::{CheckpointId, OperationId, SessionId};
use serde::{Deserialize, Serialize};

use super::{GapView, OperationView, PathView};

/// What a check of the store found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verification {
    /// Whether all is well.
    pub sound: bool,
    /// Checkpoints that were checked.
    pub checkpoints: u64,
    /// Objects that were compared with their ids.
    pub objects: u64,
    /// Bytes that were read.
    pub bytes: u64,
    pub damage: Vec<DamageView>,
    /// Whether the database was rebuilt from the packs.
    pub repaired: bool,
    /// Events that could not be recorded yet, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<GapView>,
    /// Why the store cannot be written, if it cannot: nothing that happens now is captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritable: Option<String>,
    /// Operations that have not ended: they are running, or were interrupted, and the files may be half changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<OperationView>,
}

/// A piece of damage.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum DamageView {
    /// Bytes of a pack.
    Pack { pack: u32, from: u64, to: u64 },
    /// A row of the database.
    Row { table: String, key: String },
    /// The database's file.
    Database {
        /// What SQLite says.
        message: String,
    },
    /// The git state of checkpoints, or a file staged in it, so that `rewind --git` cannot restore it.
    GitState {
        /// Every checkpoint that has it, newest first.
        checkpoints: Vec<CheckpointId>,
        /// The id of the damaged object.
        object: String,
    },
    /// The copy of a session's transcript.
    Transcript {
        session: SessionId,
        /// The id of the damaged object.
        object: String,
    },
    /// The copy of a file outside the workspace, from before or after a step.
    OutsideOfStep {
        /// The step that named it.
        step: StepRef,
        path: String,
        /// The id of the damaged object.
        object: String,
    },
    /// The copy of a file outside the workspace, from before or after an operation.
    OutsideOfOperation {
        /// The operation that changed it.
        operation: OperationId,
        path: String,
    },
    /// What an operation removed from the workspace or put there, and no reported checkpoint contains.
    Operation {
        /// The operation that changed it.
        operation: OperationId,
        /// The root if it is the git state or the whole result.
        path: PathView,
        /// The id of the damaged object.
        object: String,
    },
    /// Bytes of an incomplete transaction after a power cut; they do not count.
    Aside {
        /// The file that keeps them.
        file: String,
        /// The checkpoints in it, newest first, as far as their records could be read.
        checkpoints: Vec<CheckpointId>,
    },
    /// Bytes of a pack that were known and are gone: the pack was truncated or deleted.
    Gone {
        pack: u32,
        from: u64,
        to: u64,
        /// The checkpoints that went with them, newest first.
        checkpoints: Vec<CheckpointId>,
        /// The file that records this until it is deleted.
        file: String,
    },
    /// A missing pack that later ones follow.
    PackMissing { pack: u32 },
    /// Missing records of the timeline that later ones follow.
    RecordsMissing {
        /// The first one's number.
        from: u64,
        /// The last one's.
        to: u64,
    },
    /// A number that two records of the timeline have; both count.
    RecordTwice { seq: u64 },
    /// An object that checkpoints need.
    Needed {
        /// Every checkpoint that needs it, newest first.
        checkpoints: Vec<CheckpointId>,
        /// Its path in the newest one.
        #[serde(flatten)]
        path: PathView,
        object: String,
    },
}
