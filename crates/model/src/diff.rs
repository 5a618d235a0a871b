//! The differences between two trees, path by path.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::ObjectId;
use crate::path::{EntryName, WorkspacePath};
use crate::plan::RootState;
use crate::tree::{Entry, SkipReason, Tree};

/// Access to trees: the store, or values in memory.
pub trait TreeSource {
    type Error;

    /// Shared, since one operation looks at the same trees several times.
    fn tree(&self, id: &ObjectId) -> Result<Arc<Tree>, Self::Error>;
}

impl<S: TreeSource> TreeSource for Arc<S> {
    type Error = S::Error;

    fn tree(&self, id: &ObjectId) -> Result<Arc<Tree>, S::Error> {
        S::tree(self, id)
    }
}

impl TreeSource for HashMap<ObjectId, Arc<Tree>> {
    type Error = ObjectId;

    fn tree(&self, id: &ObjectId) -> Result<Arc<Tree>, ObjectId> {
        self.get(id).cloned().ok_or(*id)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub path: WorkspacePath,
    pub before: Option<Entry>,
    pub after: Option<Entry>,
    /// A folder that appears or disappears together with its contents: not worth a line of its own.
    pub implied: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    Created,
    /// Its content, mode or kind differs.
    Modified,
    Deleted,
}

impl ChangeKind {
    /// The word in every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
        }
    }

    /// The kind of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Created, Self::Modified, Self::Deleted].into_iter().find(|kind| kind.as_str() == word)
    }
}

impl Change {
    pub fn kind(&self) -> ChangeKind {
        match (&self.before, &self.after) {
            (None, _) => ChangeKind::Created,
            (_, None) => ChangeKind::Deleted,
            _ => ChangeKind::Modified,
        }
    }
}

/// Folders count only where they are empty or their mode changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub created: u64,
    pub modified: u64,
    pub deleted: u64,
}

impl std::ops::Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            created: self.created + other.created,
            modified: self.modified + other.modified,
            deleted: self.deleted + other.deleted,
        }
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Counts {
    /// Counts all changes that are not implied.
    pub fn of<'a>(changes: impl IntoIterator<Item = &'a Change>) -> Self {
        let mut counts = Self::default();
        for change in changes.into_iter().filter(|c| !c.implied) {
            match change.kind() {
                ChangeKind::Created => counts.created += 1,
                ChangeKind::Modified => counts.modified += 1,
                ChangeKind::Deleted => counts.deleted += 1,
            }
        }
        counts
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The differences from one tree to another, in path order; walks only folders whose ids differ. `None` is an absent
/// root.
///
/// Skipped entries are unknown, so a path that is skipped on either side is not a change.
pub fn changes<S: TreeSource>(
    source: &S,
    from: Option<&ObjectId>,
    to: Option<&ObjectId>,
) -> Result<Vec<Change>, S::Error> {
    let mut out = Vec::new();
    walk(source, &WorkspacePath::root(), from, to, &mut out)?;
    Ok(out)
}

/// Like [`changes`], for whole roots: a difference in the root's own permission bits is a change at the empty path.
pub fn root_changes<S: TreeSource>(
    source: &S,
    from: Option<&RootState>,
    to: Option<&RootState>,
) -> Result<Vec<Change>, S::Error> {
    let mut out = Vec::new();
    if let (Some(from), Some(to)) = (from, to)
        && from.mode != to.mode
    {
        let folder = |root: &RootState| Some(Entry::Folder { mode: root.mode, tree: root.tree, holds_skipped: false });
        out.push(Change { path: WorkspacePath::root(), before: folder(from), after: folder(to), implied: false });
    }
    out.extend(changes(source, from.map(|r| &r.tree), to.map(|r| &r.tree))?);
    Ok(out)
}

/// Like [`changes`], for the entries at one path.
pub fn entry_changes<S: TreeSource>(
    source: &S,
    path: &WorkspacePath,
    before: Option<&Entry>,
    after: Option<&Entry>,
) -> Result<Vec<Change>, S::Error> {
    let mut out = Vec::new();
    changes_at(source, path.clone(), before, after, &mut out)?;
    Ok(out)
}

fn changes_at<S: TreeSource>(
    source: &S,
    path: WorkspacePath,
    before: Option<&Entry>,
    after: Option<&Entry>,
    out: &mut Vec<Change>,
) -> Result<(), S::Error> {
    if before == after || before.is_some_and(Entry::is_skipped) || after.is_some_and(Entry::is_skipped) {
        return Ok(());
    }
    let listing = |e: Option<&Entry>| match e {
        Some(Entry::Folder { tree, .. }) => Some(*tree),
        _ => None,
    };
    let (from, to) = (listing(before), listing(after));
    let own = out.len();
    // Two folders that differ only in their contents are not a change themselves.
    let same_folder = matches!(
        (before, after),
        (Some(Entry::Folder { mode: a, .. }), Some(Entry::Folder { mode: b, .. })) if a == b
    );
    if !same_folder {
        out.push(Change { path: path.clone(), before: before.cloned(), after: after.cloned(), implied: false });
    }
    if from != to {
        walk(source, &path, from.as_ref(), to.as_ref(), out)?;
    }
    if !same_folder && (before.is_none() || after.is_none()) && out.len() > own + 1 {
        out[own].implied = true;
    }
    Ok(())
}

fn walk<S: TreeSource>(
    source: &S,
    path: &WorkspacePath,
    from: Option<&ObjectId>,
    to: Option<&ObjectId>,
    out: &mut Vec<Change>,
) -> Result<(), S::Error> {
    if from == to {
        return Ok(());
    }
    let load = |id: Option<&ObjectId>| id.map(|id| source.tree(id)).transpose().map(Option::unwrap_or_default);
    let (before, after) = (load(from)?, load(to)?);
    for (name, old, new) in pairs(&before, &after) {
        changes_at(source, path.join(name), old, new, out)?;
    }
    Ok(())
}

/// A path that one tree has and the other skipped, so that the two cannot be compared there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub path: WorkspacePath,
    /// What the first tree has there; `None` if it is the one that skipped the path.
    pub before: Option<Entry>,
    /// Why the other tree skipped it.
    pub reason: SkipReason,
}

/// What one tree has and the other skipped, in path order; walks only folders whose ids differ.
pub fn left_out<S: TreeSource>(source: &S, from: &ObjectId, to: &ObjectId) -> Result<Vec<LeftOut>, S::Error> {
    fn go<S: TreeSource>(
        source: &S,
        path: &WorkspacePath,
        from: &ObjectId,
        to: &ObjectId,
        out: &mut Vec<LeftOut>,
    ) -> Result<(), S::Error> {
        if from == to {
            return Ok(());
        }
        let (before, after) = (source.tree(from)?, source.tree(to)?);
        for (name, old, new) in pairs(&before, &after) {
            let (path, reason) = match (old, new) {
                (Some(Entry::Skipped { .. }), Some(Entry::Skipped { .. })) => continue,
                (Some(_), Some(Entry::Skipped { reason })) | (Some(Entry::Skipped { reason }), Some(_)) => {
                    (path.join(name), *reason)
                }
                (Some(Entry::Folder { tree: from, .. }), Some(Entry::Folder { tree: to, .. })) => {
                    go(source, &path.join(name), from, to, out)?;
                    continue;
                }
                _ => continue,
            };
            out.push(LeftOut { path, before: old.filter(|entry| !entry.is_skipped()).cloned(), reason });
        }
        Ok(())
    }
    let mut out = Vec::new();
    go(source, &WorkspacePath::root(), from, to, &mut out)?;
    Ok(out)
}

/// What one tree skipped and the other lacks entirely, in path order: it was deleted, and its content is unknown. For a
/// nested repository whose `.git` was deleted, its folder is listed. Walks only folders whose ids differ.
pub fn gone_unknown<S: TreeSource>(
    source: &S,
    from: &ObjectId,
    to: &ObjectId,
) -> Result<Vec<(WorkspacePath, SkipReason)>, S::Error> {
    let mut found = Vec::new();
    let mut todo = vec![(WorkspacePath::root(), *from, Some(*to))];
    while let Some((path, from, to)) = todo.pop() {
        if Some(from) == to {
            continue;
        }
        let (before, after) = (source.tree(&from)?, to.map(|to| source.tree(&to)).transpose()?.unwrap_or_default());
        if before.has_git && !after.has_git && !path.is_root() {
            found.push((path.clone(), crate::SkipReason::GitFolder));
        }
        for (name, old, new) in pairs(&before, &after) {
            match (old, new) {
                (Some(Entry::Skipped { reason }), None) => found.push((path.join(name), *reason)),
                // The contents of a folder that is skipped now are unknown as well.
                (_, Some(Entry::Skipped { .. })) => {}
                (Some(Entry::Folder { tree, holds_skipped: true, .. }), new) => {
                    let to = if let Some(Entry::Folder { tree, .. }) = new { Some(*tree) } else { None };
                    todo.push((path.join(name), *tree, to));
                }
                _ => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The names of two trees in order, each with its entry on both sides.
pub fn pairs<'a>(
    a: &'a Tree,
    b: &'a Tree,
) -> impl Iterator<Item = (&'a EntryName, Option<&'a Entry>, Option<&'a Entry>)> {
    let (mut left, mut right) = (a.entries().iter().peekable(), b.entries().iter().peekable());
    std::iter::from_fn(move || {
        use std::cmp::Ordering::{Equal, Greater, Less};
        let order = match (left.peek(), right.peek()) {
            (Some((l, _)), Some((r, _))) => l.cmp(r),
            (Some(_), None) => Less,
            (None, Some(_)) => Greater,
            (None, None) => return None,
        };
        let old = if order != Greater { left.next() } else { None };
        let new = if order != Less { right.next() } else { None };
        debug_assert!(order != Equal || (old.is_some() && new.is_some()));
        let name = &old.or(new)?.0;
        Some((name, old.map(|(_, e)| e), new.map(|(_, e)| e)))
    })
}

/// The entry at a path. The root is a folder but not an entry, so it gives `None`.
pub fn lookup<S: TreeSource>(source: &S, root: &ObjectId, path: &WorkspacePath) -> Result<Option<Entry>, S::Error> {
    let mut tree = source.tree(root)?;
    let mut names = path.names().peekable();
    while let Some(name) = names.next() {
        match tree.get(name) {
            Some(entry) if names.peek().is_none() => return Ok(Some(entry.clone())),
            Some(Entry::Folder { tree: id, .. }) => tree = source.tree(id)?,
            // Everything beneath something that was not captured is unknown as well.
            Some(Entry::Skipped { reason }) => return Ok(Some(Entry::Skipped { reason: *reason })),
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// Everything that a tree skipped, with its path.
pub fn skipped<S: TreeSource>(
    source: &S,
    root: &ObjectId,
) -> Result<Vec<(WorkspacePath, crate::SkipReason)>, S::Error> {
    fn go<S: TreeSource>(
        source: &S,
        path: &WorkspacePath,
        id: &ObjectId,
        out: &mut Vec<(WorkspacePath, crate::SkipReason)>,
    ) -> Result<(), S::Error> {
        for (name, entry) in source.tree(id)?.entries() {
            match entry {
                Entry::Skipped { reason } => out.push((path.join(name), *reason)),
                Entry::Folder { tree, holds_skipped: true, .. } => go(source, &path.join(name), tree, out)?,
                _ => {}
            }
        }
        Ok(())
    }
    let mut out = Vec::new();
    go(source, &WorkspacePath::root(), root, &mut out)?;
    Ok(out)
}

/// The folders of a tree, itself included, that are the root of a repository: the contents of their `.git` have no
/// entries.
pub fn repositories<S: TreeSource>(
    source: &S,
    path: &WorkspacePath,
    root: &ObjectId,
) -> Result<Vec<WorkspacePath>, S::Error> {
    let mut found = Vec::new();
    let mut todo = vec![(path.clone(), *root)];
    while let Some((path, id)) = todo.pop() {
        let tree = source.tree(&id)?;
        todo.extend(tree.entries().iter().filter_map(|(name, entry)| match entry {
            Entry::Folder { tree, holds_skipped: true, .. } => Some((path.join(name), *tree)),
            _ => None,
        }));
        if tree.has_git {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::literal::{Forest, file, folder, skipped};

    /// Checks the changes from one tree to another: `+ path`, `~ path`, `- path`, implied ones in brackets.
    fn check(from: &[(&str, crate::tree::literal::Lit)], to: &[(&str, crate::tree::literal::Lit)], expected: &[&str]) {
        let mut forest = Forest::default();
        let (from, to) = (forest.plant(from), forest.plant(to));
        let found: Vec<String> = changes(&forest.0, Some(&from), Some(&to))
            .unwrap()
            .iter()
            .map(|c| {
                let sign = match c.kind() {
                    ChangeKind::Created => '+',
                    ChangeKind::Modified => '~',
                    ChangeKind::Deleted => '-',
                };
                let text = format!("{sign} {}", c.path.display());
                if c.implied { format!("({text})") } else { text }
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn created_modified_and_deleted_files_are_found() {
        check(
            &[("a", file("1")), ("b", file("1")), ("c", file("1"))],
            &[("a", file("1")), ("b", file("2")), ("d", file("1"))],
            &["~ b", "- c", "+ d"],
        );
    }

    #[test]
    fn a_folder_counts_only_where_it_is_empty_or_changes_its_mode() {
        check(&[], &[("d/f", file("1")), ("e", folder(0o755))], &["(+ d)", "+ d/f", "+ e"]);
        check(&[("e", folder(0o755))], &[("e", folder(0o700))], &["~ e"]);
    }

    #[test]
    fn a_file_that_becomes_a_folder_is_a_change_of_kind() {
        check(&[("x", file("1"))], &[("x/y", file("1"))], &["~ x", "+ x/y"]);
        check(&[("x/y", file("1"))], &[("x", file("1"))], &["~ x", "- x/y"]);
    }

    #[test]
    fn what_was_left_out_and_went_is_found_wherever_it_was() {
        let mut forest = Forest::default();
        let from =
            forest.plant(&[("a/b/cache", skipped()), ("a/f", file("1")), ("cache", skipped()), ("stays", skipped())]);
        for (to, expected) in [
            (forest.plant(&[("a/f", file("2")), ("stays", skipped())]), &["a/b/cache", "cache"][..]),
            (forest.plant(&[("a", file("1")), ("cache", file("1")), ("stays", skipped())]), &["a/b/cache"]),
            (forest.plant(&[("a", skipped()), ("cache", skipped())]), &["stays"]),
            (forest.plant(&[]), &["a/b/cache", "cache", "stays"]),
        ] {
            let found: Vec<String> =
                gone_unknown(&forest.0, &from, &to).unwrap().iter().map(|(path, _)| path.display()).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn what_is_skipped_on_either_side_is_unknown_and_no_change() {
        check(&[("x", skipped())], &[("x", file("1"))], &[]);
        check(&[("x", file("1"))], &[("x", skipped())], &[]);
        check(&[("x", skipped())], &[], &[]);
    }
}
