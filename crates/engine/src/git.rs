//! The repository's state, kept with each checkpoint.

use piton_host::Scan;
use piton_model::ObjectId;
use piton_store::{CheckpointRow, StoreError, Writer};

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
}
