//! Permission bits that the system refused: an operation's result records the actual bits, not the planned ones.

use std::collections::HashSet;

use piton_host::apply::mode_of;
use piton_host::{Root, read_entry};
use piton_model::diff;
use piton_model::edit::{Edit, NewTrees, edit, with_bits_of};
use piton_model::plan::{Layered, RootState};
use piton_model::{Operation, WorkspacePath};
use piton_store::{Reader, StoreError};

use crate::capture::sink::{HashingSink, Trees};

/// What an operation leaves, given the paths whose bits were not taken, and the trees of it that nobody has stored. Only bits
/// are read here: content that another program has written meanwhile is no work of this operation.
pub(crate) fn result_with_bits(
    store: &Reader,
    root: &Root,
    operation: &Operation,
    not_taken: &[WorkspacePath],
) -> Result<(RootState, NewTrees), StoreError> {
    let planned = (operation.result, NewTrees::new());
    if not_taken.is_empty() {
        return Ok(planned);
    }
    match with_bits_there(store, root, operation, not_taken) {
        // A damaged tree must not keep an operation from ending.
        Err(StoreError::Missing(_) | StoreError::Damaged(_)) => Ok(planned),
        found => found,
    }
}

fn with_bits_there(
    store: &Reader,
    root: &Root,
    operation: &Operation,
    not_taken: &[WorkspacePath],
) -> Result<(RootState, NewTrees), StoreError> {
    let mut result = operation.result;
    let mut new = NewTrees::new();
    let mut edits = Vec::new();
    let steps: HashSet<&WorkspacePath> = operation.steps.iter().map(|step| &step.path).collect();
    for path in not_taken {
        if !steps.contains(path) {
            match mode_of(root, path) {
                Ok(mode) if path.is_root() => result.mode = mode,
                Ok(mode) => edits.push((path.clone(), Edit::Mode(mode))),
                // Somebody else removed it meanwhile.
                Err(_) => {}
            }
            continue;
        }
        let sink = HashingSink::default();
        let found = read_entry(root, path.as_bytes(), &sink).unwrap_or_else(|never| match never {});
        let (Ok(Some(found)), Some(planned)) = (found, diff::lookup(store, &result.tree, path)?) else { continue };
        let fresh = sink.finish().0;
        let there = with_bits_of(&Trees { fresh: &fresh, store }, &planned, &found, &mut new)?;
        edits.push((path.clone(), Edit::Put(Some(there))));
    }
    let (tree, above) = edit(&Layered { over: &new, under: store }, &result.tree, &edits)?;
    new.extend(above);
    result.tree = tree;
    Ok((result, new))
}
