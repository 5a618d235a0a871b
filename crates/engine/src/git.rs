//! The repository's state, kept with each checkpoint.

use piton_host::Scan;
use piton_model::ObjectId;
use piton_store::{CheckpointRow, StoreError, Writer};

use crate::view::HeadMoved;
use crate::workspace::Workspace;

impl Workspace {
    /// Keeps the state of the repository around the workspace, where there is one.
    pub(crate) fn git_state(
        &self,
        _writer: &mut Writer<'_>,
        _scan: &Scan,
        _parent: Option<&CheckpointRow>,
    ) -> Result<Option<ObjectId>, StoreError> {
        Ok(None)
    }

    /// Whether the repository is at another commit than it was at a checkpoint.
    pub(crate) fn head_moved(&self, _target: &CheckpointRow) -> Result<Option<HeadMoved>, StoreError> {
        Ok(None)
    }
}
