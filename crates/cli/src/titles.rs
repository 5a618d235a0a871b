//! The titles of a workspace's operations, with what the store knows of their targets.

use piton_engine::view::OperationView;
use piton_engine::{History, StoreError};
use piton_wording::Titles;
use piton_wording::owners::Names;

/// Of some operations, newest first.
pub fn of(workspace: &History, operations: &[OperationView], names: &Names) -> Titles {
    Titles::of(operations.to_vec(), names, |id| workspace.resolve(id).ok().map(|row| (&row).into()))
}

/// Of all operations.
pub fn of_all(workspace: &History, names: &Names) -> Result<Titles, StoreError> {
    Ok(of(workspace, &workspace.operations()?.operations, names))
}
