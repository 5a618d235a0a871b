//! How a workspace stands as far as its store says: no file of the workspace is looked at.

use std::path::PathBuf;

use piton_model::{Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};

use super::{GapView, OperationView, RewoundView, SessionView, TurnView, readable};

/// What a prompt or a status line shows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Glance {
    pub id: WorkspaceId,
    #[serde(serialize_with = "readable")]
    pub path: PathBuf,
    pub checkpoints: u64,
    /// When the newest was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_at: Option<Timestamp>,
    /// The session where the user is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionView>,
    /// Its last turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnView>,
    /// Whether that runs as far as anybody knows.
    pub running: bool,
    /// The rewind that the workspace or its conversation stands at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewound: Option<RewoundView>,
    /// The newest rewind or undo that stands, where it is newer than the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationView>,
    /// The newest gap, where nothing was captured since: what happens now is not protected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_captured: Option<GapView>,
    /// How many events could not be recorded yet.
    pub waiting: u64,
}
