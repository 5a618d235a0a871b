//! Lines that a decision about a conflict brought back: a later rewind that keeps the decided undo must not lose them.
//!
//! Such a rewind takes the undone changes out of its target by a merge of its own. Where they could not be merged out the first
//! time and somebody decided, that merge may come to something else, since the target lacks what was decided about.

use std::collections::{BTreeMap, BTreeSet};

use piton_model::content::Decision;
use piton_model::diff;
use piton_model::inverse::{self, Conflict, Contents, Drafted, Inverse, Link, Why};
use piton_model::plan::{Layered, RootState};
use piton_model::trail::SeqNumber;
use piton_model::{Entry, WorkspacePath};
use piton_store::StoreError;

use crate::capture::sink::Trees;
use crate::capture::sound::folder_at;
use crate::history::changes::OwnedChange;
use crate::operation::draft::{FolderNow, NowAndThen};
use crate::operation::error::OperationError;
use crate::workspace::History;

/// A file in which a conflict was decided.
#[derive(Clone, Debug)]
pub(crate) struct Decided {
    path: WorkspacePath,
    /// The lines that the decision brought into it.
    lines: BTreeSet<Vec<u8>>,
}

impl History {
    /// Of changes that operations took back, each with when, given newest first for each operation: the files in which they
    /// could not be merged out.
    pub(crate) fn decided_in(
        &self,
        undone: &[(OwnedChange, SeqNumber)],
        seen: &FolderNow<'_>,
    ) -> Result<Vec<Decided>, OperationError> {
        let mut by_place: BTreeMap<(SeqNumber, &WorkspacePath), Vec<&OwnedChange>> = BTreeMap::new();
        for (change, at) in undone {
            by_place.entry((*at, &change.path)).or_default().push(change);
        }
        let rows = if by_place.is_empty() { Vec::new() } else { self.store.operations()? };
        let contents = NowAndThen { root: seen.root, store: &self.store };
        let mut decided = Vec::new();
        for ((at, path), changes) in by_place {
            let Some(row) = rows.iter().find(|row| row.seq == at) else { continue };
            let Some(after) = row.after.as_ref().map(|id| self.store.checkpoint(id)).transpose()?.flatten() else {
                continue;
            };
            let Some(before) = self.store.checkpoint(&row.before)? else { continue };
            let (before, after) = (before.checkpoint.root, after.checkpoint.root);
            // What is damaged is named by whoever carries it over.
            let Ok(inverse) = self.inverse_at(path, &changes) else { continue };
            let Ok(drafted) = inverse::draft(&self.store, &contents, before, &inverse, None) else { continue };
            if drafted.conflicts.is_empty() {
                continue;
            }
            let (Ok(was), Ok(is)) = (folder_at(&self.store, before, path), folder_at(&self.store, after, path)) else {
                continue;
            };
            let was = lines_of(path, was.as_ref(), &contents)?;
            let lines: BTreeSet<_> = lines_of(path, is.as_ref(), &contents)?.difference(&was).cloned().collect();
            if !lines.is_empty() {
                decided.push(Decided { path: path.clone(), lines });
            }
        }
        Ok(decided)
    }

    fn inverse_at(&self, path: &WorkspacePath, changes: &[&OwnedChange]) -> Result<Inverse, StoreError> {
        let mut inverse = Inverse::default();
        for found in changes.iter().filter_map(|change| change.found_at.as_ref()) {
            let Some(parent) = &found.checkpoint.parent else { continue };
            let Some(parent) = self.store.checkpoint(parent)? else { continue };
            let after = folder_at(&self.store, found.checkpoint.root, path)?;
            let before = folder_at(&self.store, parent.checkpoint.root, path)?;
            inverse.add(path.clone(), Link { after, before });
        }
        Ok(inverse)
    }
}

/// The files that would lose lines which a decision brought back.
pub(crate) fn decided_lost(
    trees: &Trees<'_>,
    contents: &NowAndThen<'_>,
    now: RootState,
    drafted: &Drafted,
    all: &[Decided],
    decision: Option<Decision>,
) -> Result<Vec<Conflict>, StoreError> {
    let layered = Layered { over: &drafted.new_trees, under: trees };
    let mut lost: Vec<Conflict> = Vec::new();
    for Decided { path, lines } in all {
        let is_moved = drafted.moves.iter().any(|one| one.from == *path || one.to == *path);
        if is_moved || drafted.conflicts.iter().chain(&lost).any(|conflict| conflict.holds(path)) {
            continue;
        }
        let here = diff::lookup(trees, &now.tree, path)?;
        let then = diff::lookup(&layered, &drafted.root.tree, path)?;
        if here == then {
            continue;
        }
        let here = lines_of(path, here.as_ref(), contents)?;
        let then = match &then {
            Some(Entry::File { blob, .. }) if drafted.new_blobs.contains_key(blob) => split(&drafted.new_blobs[blob]),
            then => lines_of(path, then.as_ref(), contents)?,
        };
        if lines.iter().any(|line| here.contains(line) && !then.contains(line)) {
            let decided = matches!(decision, Some(Decision::Ours | Decision::Theirs));
            lost.push(Conflict { decided, ..Conflict::open(path.clone(), Why::Decided) });
        }
    }
    Ok(lost)
}

fn lines_of(
    path: &WorkspacePath,
    entry: Option<&Entry>,
    contents: &NowAndThen<'_>,
) -> Result<BTreeSet<Vec<u8>>, StoreError> {
    match entry {
        Some(Entry::File { blob, .. }) => Ok(split(&contents.content(path, blob)?)),
        _ => Ok(BTreeSet::new()),
    }
}

/// The lines that say something.
fn split(content: &[u8]) -> BTreeSet<Vec<u8>> {
    let lines = content.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| line.iter().any(|byte| byte.is_ascii_alphanumeric())).map(<[u8]>::to_vec).collect()
}
