//! Large files: each is named once, in the capture in which it came or grew so large.

use piton_model::{Checkpoint, Entry, WorkspacePath, diff};
use piton_store::{CheckpointRow, StoreError};

use crate::view::LargeFile;

/// Files over this many bytes are named.
const LARGE: u64 = 100 << 20;
/// Of a first capture with more files, nothing is named: looking for it would take longer than the capture.
const MOST: u64 = 10_000;

/// The large files that a checkpoint is the first to have. Only its own changes are looked at, whose trees are at hand.
pub(crate) fn large_files<S: diff::TreeSource<Error = StoreError>>(
    trees: &S,
    parent: Option<&CheckpointRow>,
    checkpoint: &Checkpoint,
) -> Vec<LargeFile> {
    // What is damaged is told by whoever needs it.
    let size_in = |tree, path: &WorkspacePath| match diff::lookup(trees, tree, path) {
        Ok(Some(Entry::File { size, .. })) => size,
        _ => 0,
    };
    let here = &checkpoint.root.tree;
    let Some(parent) = parent else {
        if checkpoint.changes.created > MOST {
            return Vec::new();
        }
        let all = diff::root_changes(trees, None, Some(&checkpoint.root)).unwrap_or_default();
        let large = all.iter().map(|one| (&one.path, size_in(here, &one.path))).filter(|(_, size)| *size > LARGE);
        return large.map(|(path, size)| LargeFile { path: path.into(), size }).collect();
    };
    let before = &parent.checkpoint.root.tree;
    let changed = checkpoint.owned.iter().flat_map(|owned| &owned.paths).map(|changed| &changed.path);
    let large = changed.map(|path| (path, size_in(here, path))).filter(|(_, size)| *size > LARGE);
    let came = large.filter(|(path, _)| size_in(before, path) <= LARGE);
    came.map(|(path, size)| LargeFile { path: path.into(), size }).collect()
}
