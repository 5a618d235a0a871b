//! What a scan left out, compared with the last checkpoint, as far as it matters for holding.

use super::{HeldNow, is_by_git, is_by_rules, is_ignore_file, is_in, paths_in_repositories};
use crate::capture::sink::Trees;
use crate::workspace::History;
use piton_host::Scan;
use piton_model::diff::{self, TreeSource};
use piton_model::{Entry, ObjectId, SkipReason, WorkspacePath};
use piton_store::{CheckpointRow, StoreError};

/// What a scan skipped, as far as it matters for holding.
#[derive(Default)]
pub(crate) struct LeftOutNow {
    /// Paths that the last checkpoint has.
    pub lost: Vec<(WorkspacePath, SkipReason)>,
    /// Paths where the last checkpoint has nothing, not even a skipped entry.
    pub came: Vec<WorkspacePath>,
    /// Ignore files that changed.
    pub rules: Vec<WorkspacePath>,
    /// A path in each repository: its exclude file may have changed without ignoring anything yet.
    pub in_repositories: Vec<WorkspacePath>,
}

impl LeftOutNow {
    /// What one tree has, or has nothing of, and something left out of the other. What is damaged is told by whoever needs it.
    pub(super) fn between(trees: &Trees<'_>, from: &ObjectId, to: &ObjectId, held: &HeldNow) -> Self {
        let mut all = Self::default();
        let mut folders = vec![(WorkspacePath::root(), Some(*from), *to)];
        while let Some((folder, from, to)) = folders.pop() {
            if from == Some(to) {
                continue;
            }
            let before = from.map_or_else(|| Ok(Default::default()), |from| trees.tree(&from));
            let (Ok(before), Ok(after)) = (before, trees.tree(&to)) else { continue };
            for (name, old, new) in diff::pairs(&before, &after) {
                let path = folder.join(name);
                if old != new && is_ignore_file(&path) {
                    all.rules.push(path.clone());
                }
                match (old, new) {
                    (None, Some(Entry::Skipped { reason })) if is_by_rules(*reason) => all.came.push(path),
                    (Some(old), Some(Entry::Skipped { reason })) => {
                        let is_lost = (is_by_rules(*reason) || is_by_git(*reason)) && !is_in(&path, held);
                        if is_lost && holds_something(trees, old).unwrap_or(true) {
                            all.lost.push((path, *reason));
                        }
                    }
                    // Skipped as a whole, and searched only for a forced path: nothing in it is new.
                    (Some(Entry::Skipped { .. }), Some(Entry::Folder { .. })) => {}
                    (old, Some(Entry::Folder { tree: to, holds_skipped, .. })) => {
                        let from = if let Some(Entry::Folder { tree, .. }) = old { Some(*tree) } else { None };
                        if from.is_some() || *holds_skipped {
                            folders.push((path, from, *to));
                        }
                    }
                    _ => {}
                }
            }
        }
        all.lost.sort();
        all
    }
}

impl History {
    /// What a scan skipped, for a scan whose trees are not available.
    pub(crate) fn left_out_in(
        &self,
        head: &CheckpointRow,
        scan: &Scan,
        held: &HeldNow,
    ) -> Result<LeftOutNow, StoreError> {
        let tree = &head.checkpoint.root.tree;
        let in_repositories = paths_in_repositories(scan);
        let mut left_out = LeftOutNow { in_repositories, ..LeftOutNow::default() };
        if *tree == scan.root.tree {
            return Ok(left_out);
        }
        for (path, reason) in scan.skipped.iter().filter(|(_, reason)| is_by_rules(*reason) || is_by_git(*reason)) {
            match diff::lookup(&self.store, tree, path) {
                Ok(Some(entry)) if !is_in(path, held) && holds_something(&self.store, &entry)? => {
                    left_out.lost.push((path.clone(), *reason));
                }
                Ok(None) if is_by_rules(*reason) => left_out.came.push(path.clone()),
                Ok(_) | Err(StoreError::Missing(_) | StoreError::Damaged(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(left_out)
    }
}

/// Whether an entry is a file or a symlink, or a folder with one in it. Of an empty folder nothing can be lost.
pub(super) fn holds_something<S: TreeSource>(source: &S, entry: &Entry) -> Result<bool, S::Error> {
    let mut folders = match entry {
        Entry::Folder { tree, .. } => vec![*tree],
        Entry::Skipped { .. } => return Ok(false),
        _ => return Ok(true),
    };
    while let Some(folder) = folders.pop() {
        for (_, entry) in source.tree(&folder)?.entries() {
            match entry {
                Entry::Folder { tree, .. } => folders.push(*tree),
                Entry::Skipped { .. } => {}
                _ => return Ok(true),
            }
        }
    }
    Ok(false)
}
