//! What a store has of its checkpoints, read object by object and without any of the engine's verbs.

use std::io;
use std::path::Path;

use piton_engine::model::diff::TreeSource;
use piton_engine::model::{Entry, ObjectId};
use piton_store::{Store, StoreError};

use crate::snapshot::Snapshot;

/// The id of a checkpoint, and its contents, or why they cannot be read in full.
pub type KeptCheckpoint = (String, Result<Snapshot, String>);

/// A store's checkpoints, oldest first.
///
/// # Errors
/// If the store does not open or its checkpoints cannot be listed.
pub fn kept(store: &Path) -> Result<Vec<KeptCheckpoint>, StoreError> {
    let store = Store::open(store)?;
    let mut rows = store.checkpoints(None)?;
    rows.sort_by_key(|row| row.seq);
    Ok(rows
        .into_iter()
        .map(|row| {
            let mut found = Snapshot::default();
            let read = read(&store, &mut found, Vec::new(), &row.checkpoint.root.tree);
            (row.checkpoint.id.to_string(), read.map(|()| found).map_err(|error| error.to_string()))
        })
        .collect())
}

fn read(store: &Store, into: &mut Snapshot, path: Vec<u8>, tree: &ObjectId) -> io::Result<()> {
    for (name, entry) in store.tree(tree).map_err(io::Error::other)?.entries() {
        let mut path = path.clone();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name.as_bytes());
        match entry {
            Entry::File { mode, size, blob } => {
                let mut bytes = Vec::new();
                store.write_blob(blob, &mut bytes).map_err(io::Error::other)??;
                if bytes.len() as u64 != *size {
                    return Err(io::Error::other(format!("{} has another length", String::from_utf8_lossy(&path))));
                }
                into.put_file(path, u32::from(*mode), bytes);
            }
            Entry::Symlink { target } => into.put_link(path, target.clone()),
            Entry::Folder { mode, tree, .. } => {
                into.put_folder(path.clone(), u32::from(*mode));
                read(store, into, path, tree)?;
            }
            Entry::Skipped { .. } => {}
        }
    }
    Ok(())
}
