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
    /// Checkpoints that were looked at.
    pub checkpoints: u64,
    /// Objects that were compared with their ids.
    pub objects: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// What is wrong.
    pub damage: Vec<DamageView>,
    /// Whether the database was made anew from the packs.
    pub repaired: bool,
    /// Events that could not be recorded yet, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<GapView>,
    /// Why the store cannot be written, where it cannot: nothing that happens now is captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritable: Option<String>,
    /// Operations that began and did not end: they run, or they were cut off and the files may be half changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<OperationView>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum DamageView {
    /// Bytes of a pack.
    Pack {
        /// Its number.
        pack: u32,
        /// From here.
        from: u64,
        /// To there.
        to: u64,
    },
    /// A row of the database.
    Row {
        /// Its table.
        table: String,
        /// Its key.
        key: String,
    },
    /// The database's file.
    Database {
        /// What SQLite says.
        message: String,
    },
    /// The git state of checkpoints, or a file that was staged in it: `rewind --git` cannot put it back.
    GitState {
        /// Every checkpoint that has it, newest first.
        checkpoints: Vec<CheckpointId>,
        /// The id of what is not whole.
        object: String,
    },
    /// The copy of a session's transcript.
    Transcript {
        session: SessionId,
        /// The id of what is not whole.
        object: String,
    },
    /// The copy of a file outside the workspace, from before or after a step.
    OutsideOfStep {
        /// The step that named it.
        step: StepRef,
        path: String,
        /// The id of what is not whole.
        object: String,
    },
    /// The same from before or after an operation.
    OutsideOfOperation {
        /// The operation that changed it.
        operation: OperationId,
        path: String,
    },
    /// What an operation took out of the workspace or put there, where no checkpoint that is named has it too.
    Operation {
        /// The operation that changed it.
        operation: OperationId,
        /// Where; the root where it is the state of git or all of the result.
        path: PathView,
        /// The id of what is not whole.
        object: String,
    },
    /// Bytes that were written and not whole after a power cut; none of them count.
    Aside {
        /// The file that keeps them.
        file: String,
        /// The checkpoints in it, newest first, as far as their records could be read.
        checkpoints: Vec<CheckpointId>,
    },
    /// Bytes of a pack that were once known and are gone: the pack was cut off or deleted.
    Gone {
        /// Its number.
        pack: u32,
        /// From here.
        from: u64,
        /// To there.
        to: u64,
        /// The checkpoints that went with them, newest first.
        checkpoints: Vec<CheckpointId>,
        /// The note that says so until it is deleted.
        file: String,
    },
    /// A pack that is gone while later ones are there.
    PackMissing {
        /// Its number.
        pack: u32,
    },
    /// Records of the timeline that are gone while later ones are there.
    RecordsMissing {
        /// The first one's number.
        from: u64,
        /// The last one's.
        to: u64,
    },
    /// A number that two records of the timeline have; both count.
    RecordTwice { seq: u64 },
    /// What checkpoints need.
    Needed {
        /// Every checkpoint that needs it, newest first.
        checkpoints: Vec<CheckpointId>,
        /// Where it stands in the newest.
        #[serde(flatten)]
        path: PathView,
        object: String,
    },
}
