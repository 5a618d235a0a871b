//! A note of what holds of a workspace's own settings, as its last checkpoint has it: so that a hook need not open the store to
//! know whether its settings hold as they are.

use piton_model::{Protection, WorkspaceId};

use super::{Home, replace};
use crate::error::StoreError;

/// What the note is called, beside the store's database.
const FILE: &str = "agreed";

impl Home {
    /// What is noted; what cannot be read says nothing, and then the store is asked.
    pub fn agreed(&self, workspace: &WorkspaceId) -> Protection {
        let bytes = std::fs::read(self.folder(workspace).join(FILE)).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Notes it.
    ///
    /// # Errors
    /// Where the store's folder cannot be written.
    pub fn note_agreed(&self, workspace: &WorkspaceId, protection: &Protection) -> Result<(), StoreError> {
        let bytes = serde_json::to_vec(protection).map_err(crate::database::to_sql)?;
        replace(&self.folder(workspace).join(FILE), &bytes)
    }
}
