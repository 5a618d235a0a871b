//! The sizes of checkpoints. Captures do not record them; they are added up when shown.

use std::collections::HashMap;

use piton_model::diff::TreeSource;
use piton_model::{Entry, ObjectId};
use piton_store::StoreError;

use crate::view::CheckpointView;
use crate::workspace::History;

impl History {
    /// Fills in the size of each checkpoint. Folders shared by several of them are read once.
    pub fn measure<'a>(&self, checkpoints: impl IntoIterator<Item = &'a mut CheckpointView>) -> Result<(), StoreError> {
        let mut known = HashMap::new();
        for view in checkpoints {
            let Some(row) = self.store.checkpoint(&view.id)? else { continue };
            view.size = match bytes_in(&self.store, &row.checkpoint.root.tree, &mut known) {
                Err(StoreError::Damaged(_) | StoreError::Missing(_)) => None,
                size => Some(size?),
            };
        }
        Ok(())
    }
}

/// Total bytes of all files in a tree. `known` caches trees that were already added up.
fn bytes_in<S: TreeSource>(source: &S, root: &ObjectId, known: &mut HashMap<ObjectId, u64>) -> Result<u64, S::Error> {
    if let Some(bytes) = known.get(root) {
        return Ok(*bytes);
    }
    let mut bytes = 0u64;
    for (_, entry) in source.tree(root)?.entries() {
        bytes = bytes.saturating_add(match entry {
            Entry::File { size, .. } => *size,
            Entry::Folder { tree, .. } => bytes_in(source, tree, known)?,
            Entry::Symlink { .. } | Entry::Skipped { .. } => 0,
        });
    }
    known.insert(*root, bytes);
    Ok(bytes)
}
