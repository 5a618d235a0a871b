//! What an operation captures where a full capture does not fit into the budget: all that it overwrites or deletes, from
//! the reserve that captures leave, and of the rest what the store has already.
//!
//! What is left out is skipped for the budget: unknown, never absent, so that no rewind and no redo touches it, and the
//! next capture that has room finds it without taking anybody for its author.

use std::collections::HashMap;
use std::sync::Arc;

use piton_host::{Root, Scan, read_entry};
use piton_model::diff::TreeSource;
use piton_model::edit::{NewTrees, keep};
use piton_model::plan::RootState;
use piton_model::{Entry, ObjectId, SkipReason, Tree, WorkspacePath};
use piton_store::{Purpose, Reader, StoreError};

use crate::capture::sink::{FreshTrees, HashingSink, StoringSink, Trees};
use crate::capture::{Attention, CaptureError, Taken};
use crate::workspace::locked::Locked;

impl Locked<'_> {
    /// Captures everything, or, if that does not fit, what must be kept of some paths.
    pub(crate) fn take_or_lean<'s>(
        &'s self,
        root: &Root,
        attention: &Attention<'_>,
        paths: &[WorkspacePath],
    ) -> Result<Taken<'s>, CaptureError> {
        match self.take(root, attention) {
            Err(error) if error.is_over_budget() => {
                let sink = HashingSink::default();
                let scan = self.look_at(root, attention.forced, &sink)?;
                self.take_lean(root, scan, sink.finish().0, paths)
            }
            taken => taken,
        }
    }

    /// Captures what is at some paths, for a scan that has stored nothing.
    pub(crate) fn take_lean<'s>(
        &'s self,
        root: &Root,
        mut scan: Scan,
        fresh: FreshTrees,
        paths: &[WorkspacePath],
    ) -> Result<Taken<'s>, CaptureError> {
        let sink = StoringSink::new(self.writer()?.allowing(Purpose::Operation));
        let mut stored = HashMap::new();
        for path in paths {
            let found = read_entry(root, path.as_bytes(), &sink)?.map_err(|e| self.folder_error(e))?;
            stored.insert(path.clone(), found);
        }
        let (mut writer, of_paths) = sink.finish();
        let mut lean = Lean {
            store: &self.store,
            trees: Trees { fresh: &fresh, store: &self.store },
            stored,
            new: NewTrees::new(),
            skipped: Vec::new(),
            whole: HashMap::new(),
        };
        let tree = lean.folder(&WorkspacePath::root(), &scan.root.tree)?;
        let Lean { new, mut skipped, .. } = lean;
        for tree in new.values() {
            writer.tree(tree)?;
        }
        scan.root = RootState { tree, mode: scan.root.mode };
        scan.skipped.append(&mut skipped);
        scan.skipped.sort_unstable();
        // The index would give the counts of a full capture.
        if self.store.head(self.record.line)?.is_none() {
            scan.index = None;
        }
        let held = self.held_since(root, self.store.head(self.record.line)?.as_ref())?;
        Ok(Taken { writer, scan, fresh: fresh.with(of_paths, &new), keeps_index: false, is_lean: true, held })
    }
}

impl CaptureError {
    /// Whether it failed because the budget is full.
    pub(crate) fn is_over_budget(&self) -> bool {
        matches!(self, Self::Store(StoreError::OverBudget { .. }))
    }
}

/// Replaces what the store does not have in a tree by skipped entries.
struct Lean<'a> {
    store: &'a Reader,
    trees: Trees<'a>,
    /// What was just stored, path by path.
    stored: HashMap<WorkspacePath, Option<Entry>>,
    new: NewTrees,
    skipped: Vec<(WorkspacePath, SkipReason)>,
    /// For trees already checked, whether the store has everything in them.
    whole: HashMap<ObjectId, bool>,
}

impl Lean<'_> {
    fn folder(&mut self, path: &WorkspacePath, id: &ObjectId) -> Result<ObjectId, StoreError> {
        if self.is_whole(id)? {
            return Ok(*id);
        }
        let mut tree = Tree::clone(&*self.trees.tree(id)?);
        for (name, entry) in self.trees.tree(id)?.entries() {
            let path = path.join(name);
            let lean = match self.stored.remove(&path) {
                Some(stored) => stored,
                None => Some(self.entry(path, entry)?),
            };
            tree.set(name.clone(), lean);
        }
        Ok(keep(Arc::new(tree), &mut self.new))
    }

    /// Whether the store has a tree and everything in it.
    fn is_whole(&mut self, id: &ObjectId) -> Result<bool, StoreError> {
        if let Some(known) = self.whole.get(id) {
            return Ok(*known);
        }
        let mut is_whole = self.store.contains(id)?;
        if is_whole {
            for (_, entry) in self.trees.tree(id)?.entries() {
                is_whole &= match entry {
                    Entry::File { blob, .. } => self.store.contains(blob)?,
                    Entry::Folder { tree, .. } => self.is_whole(tree)?,
                    Entry::Symlink { .. } | Entry::Skipped { .. } => true,
                };
                if !is_whole {
                    break;
                }
            }
        }
        self.whole.insert(*id, is_whole);
        Ok(is_whole)
    }

    fn entry(&mut self, path: WorkspacePath, entry: &Entry) -> Result<Entry, StoreError> {
        let left_out = Entry::Skipped { reason: SkipReason::Budget };
        let is_stored = match entry {
            Entry::File { blob, .. } => self.store.contains(blob)?,
            Entry::Folder { mode, tree, .. } => {
                let before = self.skipped.len();
                let tree = self.folder(&path, tree)?;
                let listing = match self.new.get(&tree) {
                    Some(new) => new.clone(),
                    None => self.trees.tree(&tree)?,
                };
                // A folder with no known contents becomes a single skipped entry.
                let is_empty = listing.entries().is_empty() || listing.has_git;
                if is_empty || listing.entries().iter().any(|(_, entry)| *entry != left_out) {
                    return Ok(Entry::Folder { mode: *mode, tree, holds_skipped: listing.holds_skipped() });
                }
                self.new.remove(&tree);
                self.skipped.truncate(before);
                false
            }
            Entry::Symlink { .. } | Entry::Skipped { .. } => true,
        };
        if is_stored {
            return Ok(entry.clone());
        }
        self.skipped.push((path, SkipReason::Budget));
        Ok(left_out)
    }
}
