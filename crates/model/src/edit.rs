//! Editing a tree: the result of a plan, computed rather than scanned.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::diff::TreeSource;
use crate::id::ObjectId;
use crate::path::{EntryName, WorkspacePath};
use crate::tree::{Entry, Tree};

/// Trees that are not in the store yet.
pub type NewTrees = HashMap<ObjectId, Arc<Tree>>;

#[derive(Clone, Debug)]
pub enum Edit {
    /// Puts this entry there; `None` removes what is there.
    Put(Option<Entry>),
    /// Sets the permission bits of the folder there.
    Mode(u16),
}

/// An edit with the names its path consists of.
type SplitEdit<'a> = (Vec<&'a [u8]>, &'a Edit);

/// Applies edits to a tree and returns the new root's id with every new tree.
///
/// Edits apply in path order. One whose parent folder does not exist is dropped, since nothing could hold it.
pub fn edit<S: TreeSource>(
    source: &S,
    root: &ObjectId,
    edits: &[(WorkspacePath, Edit)],
) -> Result<(ObjectId, NewTrees), S::Error> {
    let mut new = NewTrees::new();
    let edits: Vec<SplitEdit<'_>> = edits.iter().map(|(p, e)| (p.names().collect(), e)).collect();
    let (id, _) = folder(source, root, &edits, 0, &mut new)?;
    Ok((id, new))
}

fn folder<S: TreeSource>(
    source: &S,
    id: &ObjectId,
    edits: &[SplitEdit<'_>],
    depth: usize,
    new: &mut NewTrees,
) -> Result<(ObjectId, bool), S::Error> {
    let mut tree = match new.get(id) {
        Some(tree) => Tree::clone(tree),
        None => Arc::unwrap_or_clone(source.tree(id)?),
    };
    let mut by_name: BTreeMap<&[u8], Vec<SplitEdit<'_>>> = BTreeMap::new();
    for (names, edit) in edits {
        if let Some(name) = names.get(depth) {
            by_name.entry(name).or_default().push((names.clone(), edit));
        }
    }
    for (name, edits) in by_name {
        let Ok(entry_name) = EntryName::new(name) else { continue };
        let (here, below): (Vec<_>, Vec<_>) = edits.into_iter().partition(|(names, _)| names.len() == depth + 1);
        let mut entry = tree.get(name).cloned();
        for (_, edit) in here {
            match (edit, &mut entry) {
                (Edit::Put(put), _) => entry = put.clone(),
                (Edit::Mode(to), Some(Entry::Folder { mode, .. })) => *mode = *to,
                (Edit::Mode(_), _) => {}
            }
        }
        if let (Some(Entry::Folder { tree, holds_skipped, .. }), false) = (&mut entry, below.is_empty()) {
            (*tree, *holds_skipped) = folder(source, tree, &below, depth + 1, new)?;
        }
        tree.set(entry_name, entry);
    }
    let holds_skipped = tree.holds_skipped();
    Ok((keep(Arc::new(tree), new), holds_skipped))
}

/// Adds a tree to `new` and returns its id.
pub fn keep(tree: Arc<Tree>, new: &mut NewTrees) -> ObjectId {
    let id = ObjectId::of_tree(&tree.encode());
    new.entry(id).or_insert(tree);
    id
}

/// `entry` with the permission bits of `other`, wherever both have the same files and folders. Trees that this creates
/// are added to `new`.
pub fn with_bits_of<S: TreeSource>(
    source: &S,
    entry: &Entry,
    other: &Entry,
    new: &mut NewTrees,
) -> Result<Entry, S::Error> {
    Ok(match (entry, other) {
        (Entry::File { size, blob, .. }, Entry::File { mode, .. }) => {
            Entry::File { mode: *mode, size: *size, blob: *blob }
        }
        (Entry::Folder { tree, holds_skipped, .. }, Entry::Folder { mode, tree: other, .. }) => {
            let (own, other) = (source.tree(tree)?, source.tree(other)?);
            let mut entries = Vec::with_capacity(own.entries().len());
            for (name, entry) in own.entries() {
                let entry = match other.get(name.as_bytes()) {
                    Some(other) => with_bits_of(source, entry, other, new)?,
                    None => entry.clone(),
                };
                entries.push((name.clone(), entry));
            }
            let tree = keep(Arc::new(Tree::new(own.has_git, entries)), new);
            Entry::Folder { mode: *mode, tree, holds_skipped: *holds_skipped }
        }
        (entry, _) => entry.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::literal::{Forest, Lit, file, folder};

    #[test]
    fn edits_give_the_tree_that_a_scan_would_give() {
        let mut forest = Forest::default();
        let before = forest.plant(&[("a/b/c", file("1")), ("a/x", file("1")), ("z", file("1"))]);
        let after = forest.plant(&[("a/b/c", file("2")), ("a/b", folder(0o700)), ("n", file("3"))]);
        let put = |lit: Lit| match lit {
            Lit::Entry(entry) => Edit::Put(Some(entry)),
            _ => unreachable!(),
        };
        let path = |p: &str| WorkspacePath::new(p).unwrap();
        let (id, _) = edit(
            &forest.0,
            &before,
            &[
                (path("a/b"), Edit::Mode(0o700)),
                (path("a/b/c"), put(file("2"))),
                (path("a/x"), Edit::Put(None)),
                (path("n"), put(file("3"))),
                (path("z"), Edit::Put(None)),
            ],
        )
        .unwrap();
        assert_eq!(id, after);
    }
}
