//! Building the state in which chosen changes are undone, path by path.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::follow::Stays;
use super::{Conflict, Contents, Drafted, Inverse, Link, Why, is_same};
use crate::content::{self, Clash, Decision, Labels};
use crate::diff::TreeSource;
use crate::edit::{Edit, edit, keep};
use crate::id::ObjectId;
use crate::path::{EntryName, WorkspacePath};
use crate::plan::{Layered, RootState};
use crate::text;
use crate::tree::{Entry, SkipReason, Tree};

pub(super) struct Drafter<'a, S, C> {
    pub(super) source: &'a S,
    pub(super) contents: &'a C,
    pub(super) inverse: &'a Inverse,
    pub(super) decision: Option<Decision>,
    pub(super) labels: &'a Labels<'a>,
    /// Whether changes are carried over to an earlier moment: what does not exist there was created by what goes back.
    pub(super) is_carried: bool,
    /// For contents of moved files, the path of the file that had them.
    pub(super) homes: HashMap<ObjectId, WorkspacePath>,
    pub(super) out: Drafted,
}

/// The links of a path, with the names it consists of.
struct At<'a> {
    names: Vec<&'a [u8]>,
    path: &'a WorkspacePath,
    links: &'a [Link],
}

/// A path that is left alone: an open conflict.
pub(super) struct Open;

impl<S: TreeSource, C: Contents<Error = S::Error>> Drafter<'_, S, C> {
    pub(super) fn draft(&mut self, now: RootState, stays: &mut Stays) -> Result<(), S::Error> {
        let inverse = self.inverse;
        stays.skipped.iter().for_each(|(path, reason)| self.leave_skipped(path, *reason));
        let follows = self.follow(now, stays)?;
        // Files that are moved elsewhere do not block what comes to their old paths.
        let vacate = follows.iter().filter_map(|one| {
            let begins = one.begins.clone()?;
            let stays = one.to.as_ref().filter(|(path, _)| *path == begins).map(|(_, entry)| entry.clone());
            Some((begins, Edit::Put(stays)))
        });
        self.edit(&vacate.collect::<Vec<_>>())?;

        let items = inverse.links.iter().filter(|(path, _)| !stays.ends.contains_key(path));
        let items: Vec<At<'_>> = items.map(|(path, links)| At { names: path.names().collect(), path, links }).collect();
        let root = WorkspacePath::root();
        if let Some(links) = inverse.links.get(&root) {
            let here = Some(Entry::Folder { mode: now.mode, tree: now.tree, holds_skipped: false });
            if let Ok(Some(Entry::Folder { mode, .. })) = self.own(&root, here, links)? {
                self.out.root.mode = mode;
            }
        }
        let tree = self.tree(&self.out.root.tree)?;
        let items: Vec<&At<'_>> = items.iter().filter(|item| !item.path.is_root()).collect();
        let tree = self.folder(&root, &tree, &items, 0)?;
        self.out.root.tree = keep(Arc::new(tree), &mut self.out.new_trees);

        self.place(now, follows, stays)?;
        for (end, (other, why)) in &stays.ends {
            let decided = self.decision == Some(Decision::Ours);
            let conflict = Conflict { others: vec![other.clone()], decided, ..Conflict::open(end.clone(), *why) };
            self.out.conflicts.push(conflict);
        }
        self.keep_sources(now, stays)?;
        // Where changes are carried over to an earlier moment, `lines_lost` looks at the whole of it.
        if !self.is_carried {
            self.keep_lines(now, stays)?;
        }
        self.keep_named(now, stays)
    }

    /// A tree of the state drafted so far.
    pub(super) fn tree(&self, id: &ObjectId) -> Result<Arc<Tree>, S::Error> {
        Layered { over: &self.out.new_trees, under: self.source }.tree(id)
    }

    pub(super) fn edit(&mut self, edits: &[(WorkspacePath, Edit)]) -> Result<(), S::Error> {
        if !edits.is_empty() {
            let layered = Layered { over: &self.out.new_trees, under: self.source };
            let (tree, new) = edit(&layered, &self.out.root.tree, edits)?;
            self.out.root.tree = tree;
            self.out.new_trees.extend(new);
        }
        Ok(())
    }

    /// Leaves a path alone because what is there was not captured.
    pub(super) fn leave_skipped(&mut self, path: &WorkspacePath, reason: SkipReason) {
        if reason.is_by_rule() {
            self.out.unknown.push(path.clone());
        }
        self.out.kept.push((path.clone(), reason));
    }

    fn folder(&mut self, path: &WorkspacePath, tree: &Tree, items: &[&At<'_>], depth: usize) -> Result<Tree, S::Error> {
        let mut result = tree.clone();
        let mut by_name: BTreeMap<&[u8], Vec<&At<'_>>> = BTreeMap::new();
        for item in items {
            if let Some(name) = item.names.get(depth) {
                by_name.entry(name).or_default().push(item);
            }
        }
        for (name, items) in by_name {
            let Ok(entry_name) = EntryName::new(name) else { continue };
            let here = path.join(&entry_name);
            let (own, below): (Vec<_>, Vec<_>) = items.into_iter().partition(|item| item.names.len() == depth + 1);
            let links = own.first().map_or(&[][..], |item| item.links);
            let entry = self.entry(&here, tree.get(name), links, &below, depth + 1)?;
            result.set(entry_name, entry);
        }
        Ok(result)
    }

    fn entry(
        &mut self,
        path: &WorkspacePath,
        now: Option<&Entry>,
        links: &[Link],
        below: &[&At<'_>],
        depth: usize,
    ) -> Result<Option<Entry>, S::Error> {
        if let Some(Entry::Skipped { reason }) = now {
            self.leave_skipped(path, *reason);
            if reason.is_by_rule() {
                self.out.unknown.extend(below.iter().map(|item| item.path.clone()));
            }
            return Ok(now.cloned());
        }
        // Contents first: whether a folder may be deleted depends on what is left in it.
        let mut current = now.cloned();
        let mut inside = None;
        if !below.is_empty() {
            match now {
                Some(Entry::Folder { mode, tree, .. }) => {
                    let listing = self.tree(tree)?;
                    let tree = self.folder(path, &listing, below, depth)?;
                    current = Some(self.folder_of(*mode, tree));
                }
                _ => {
                    let tree = self.folder(path, &Tree::default(), below, depth)?;
                    inside = Some(tree).filter(|tree| !tree.entries().is_empty());
                }
            }
        }
        let Ok(current) = self.own(path, current, links)? else { return Ok(now.cloned()) };
        let Some(inside) = inside else { return Ok(current) };
        match current {
            Some(Entry::Folder { mode, .. }) => Ok(Some(self.folder_of(mode, inside))),
            None => {
                let mode = self.inverse.folders.get(path).copied().unwrap_or(0o755);
                Ok(Some(self.folder_of(mode, inside)))
            }
            // Already decided for the file that is there.
            Some(_) if self.out.conflicts.iter().any(|conflict| conflict.path == *path) => Ok(now.cloned()),
            // A file is where a folder must be; what would come back in it has nowhere to go.
            Some(_) => {
                let mode = self.inverse.folders.get(path).copied().unwrap_or(0o755);
                let then = self.folder_of(mode, inside);
                Ok(self.decide(path, Why::Replaced, now.cloned(), Some(then)).unwrap_or_else(|Open| now.cloned()))
            }
        }
    }

    pub(super) fn folder_of(&mut self, mode: u16, tree: Tree) -> Entry {
        let holds_skipped = tree.holds_skipped();
        Entry::Folder { mode, tree: keep(Arc::new(tree), &mut self.out.new_trees), holds_skipped }
    }

    /// Takes back a path's own changes, newest first.
    pub(super) fn own(
        &mut self,
        path: &WorkspacePath,
        now: Option<Entry>,
        links: &[Link],
    ) -> Result<Result<Option<Entry>, Open>, S::Error> {
        let mut current = now;
        for link in links {
            match self.take_back(path, current, link)? {
                Ok(next) => current = next,
                Err(Open) => return Ok(Err(Open)),
            }
        }
        Ok(Ok(current))
    }

    pub(super) fn take_back(
        &mut self,
        path: &WorkspacePath,
        current: Option<Entry>,
        link: &Link,
    ) -> Result<Result<Option<Entry>, Open>, S::Error> {
        use Entry::{File, Folder, Symlink};
        let (base, theirs) = (link.after.as_ref(), link.before.as_ref());
        if is_same(current.as_ref(), theirs) || is_same(base, theirs) {
            return Ok(Ok(current));
        }
        Ok(match (base, current, theirs) {
            // A folder is its bits and its contents, and the contents are taken back path by path.
            (
                Some(Folder { mode: left, .. }),
                Some(Folder { mode, tree, holds_skipped }),
                Some(Folder { mode: was, .. }),
            ) => {
                let here = Some(Folder { mode, tree, holds_skipped });
                if mode == *left {
                    Ok(Some(Folder { mode: *was, tree, holds_skipped }))
                } else {
                    let then = Some(Folder { mode: *was, tree, holds_skipped });
                    self.decide(path, Why::Mode, here, then)
                }
            }
            (Some(Folder { .. }), Some(Folder { mode, tree, holds_skipped }), None) => {
                let is_empty = self.is_empty(&tree)?;
                Ok(if is_empty { None } else { Some(Folder { mode, tree, holds_skipped }) })
            }
            // Somebody deleted or replaced it: nothing of the change is left.
            (Some(Folder { .. }), current, None) => Ok(current),
            // Its contents come back path by path and recreate the folder if there are any.
            (Some(Folder { .. }), None, Some(Folder { .. })) => Ok(None),
            // Somebody recreated the folder.
            (_, Some(here @ Folder { .. }), Some(Folder { .. })) => Ok(Some(here)),
            (base, current, Some(Folder { mode, .. })) if current.as_ref() == base => {
                Ok(Some(self.folder_of(*mode, Tree::default())))
            }
            (Some(Folder { .. }), Some(Folder { mode, tree, holds_skipped }), Some(was)) => {
                if self.is_empty(&tree)? {
                    Ok(Some(was.clone()))
                } else {
                    self.decide(path, Why::Holds, Some(Folder { mode, tree, holds_skipped }), Some(was.clone()))
                }
            }
            (base, current, was) if current.as_ref() == base => Ok(was.cloned()),
            (Some(left @ File { .. }), Some(here @ File { .. }), Some(was @ File { .. })) => {
                self.merge_file(path, left, here, was)?
            }
            // At an earlier moment it was not there yet: what goes back made it.
            (Some(_), None, was) if self.is_carried => self.decide(path, Why::Edited, None, was.cloned()),
            (Some(_), None, was) => self.decide(path, Why::Deleted, None, was.cloned()),
            (base, Some(here), was) => {
                let why = match (base, &here) {
                    (Some(File { blob: left, .. }), File { blob, .. }) if left == blob => Why::Mode,
                    (Some(File { .. }), File { .. }) if was.is_none() => Why::Edited,
                    (Some(File { .. }), File { .. }) | (Some(Symlink { .. }), Symlink { .. }) => Why::Whole,
                    _ => Why::Replaced,
                };
                let was = match was {
                    // Its contents were deleted path by path, and come back that way.
                    Some(Folder { mode, .. }) if base.is_none() => Some(self.folder_of(*mode, Tree::default())),
                    was => was.cloned(),
                };
                self.decide(path, why, Some(here), was)
            }
            (None, None, was) => Ok(was.cloned()),
        })
    }

    /// Merges three versions of a file: permission bits and content separately.
    pub(super) fn merge_file(
        &mut self,
        path: &WorkspacePath,
        base: &Entry,
        ours: Entry,
        theirs: &Entry,
    ) -> Result<Result<Option<Entry>, Open>, S::Error> {
        let (
            Entry::File { mode: base_mode, size: base_size, blob: base_blob },
            Entry::File { mode: our_mode, size: our_size, blob: our_blob },
            Entry::File { mode: their_mode, size: their_size, blob: their_blob },
        ) = (base, &ours, theirs)
        else {
            return Ok(self.decide(path, Why::Whole, Some(ours), Some(theirs.clone())));
        };
        let mode = if our_mode == base_mode {
            *their_mode
        } else if their_mode == base_mode || their_mode == our_mode {
            *our_mode
        } else {
            match self.decide(path, Why::Mode, Some(*our_mode), Some(*their_mode)) {
                Ok(mode) => mode.unwrap_or(*our_mode),
                Err(Open) => return Ok(Err(Open)),
            }
        };
        if our_blob == base_blob {
            return Ok(Ok(Some(Entry::File { mode, size: *their_size, blob: *their_blob })));
        }
        if their_blob == base_blob || their_blob == our_blob {
            return Ok(Ok(Some(Entry::File { mode, size: *our_size, blob: *our_blob })));
        }
        // Too large to merge, so not worth reading.
        if [base_size, our_size, their_size].into_iter().any(|size| *size > text::LARGEST as u64) {
            return Ok(self.decide(path, Why::Whole, Some(ours.clone()), Some(theirs.clone())));
        }
        let [base, here, was] =
            [self.content(path, base_blob)?, self.content(path, our_blob)?, self.content(path, their_blob)?];
        let is_notebook = path.as_bytes().ends_with(b".ipynb");
        let merged = content::merge(is_notebook, &base, &here, &was, self.decision, self.labels);
        if !merged.clashes.is_empty() || merged.whole {
            let why = if merged.whole { Why::Whole } else { Why::SamePlace };
            self.conflict(path, why, merged.clashes, merged.bytes.is_some());
        }
        let Some(bytes) = merged.bytes else { return Ok(Err(Open)) };
        let blob = ObjectId::of_blob(&bytes);
        let entry = Entry::File { mode, size: bytes.len() as u64, blob };
        // Decided for one side as a whole: nothing was merged.
        if blob != *our_blob && blob != *their_blob {
            self.out.merged.push(path.clone());
            self.out.new_blobs.insert(blob, bytes);
        }
        Ok(Ok(Some(entry)))
    }

    /// A conflict that can only be decided for one side or the other.
    pub(super) fn decide<T>(
        &mut self,
        path: &WorkspacePath,
        why: Why,
        ours: Option<T>,
        theirs: Option<T>,
    ) -> Result<Option<T>, Open> {
        let decided = matches!(self.decision, Some(Decision::Ours | Decision::Theirs));
        self.conflict(path, why, Vec::new(), decided);
        match self.decision {
            Some(Decision::Ours) => Ok(ours),
            Some(Decision::Theirs) => Ok(theirs),
            Some(Decision::Markers) | None => Err(Open),
        }
    }

    pub(super) fn conflict(&mut self, path: &WorkspacePath, why: Why, clashes: Vec<Clash>, decided: bool) {
        self.out.conflicts.push(Conflict { clashes, decided, ..Conflict::open(path.clone(), why) });
    }

    pub(super) fn content(&self, path: &WorkspacePath, blob: &ObjectId) -> Result<Vec<u8>, S::Error> {
        match self.out.new_blobs.get(blob) {
            Some(bytes) => Ok(bytes.clone()),
            None => self.contents.content(self.homes.get(blob).unwrap_or(path), blob),
        }
    }

    pub(super) fn is_empty(&self, tree: &ObjectId) -> Result<bool, S::Error> {
        let tree = self.tree(tree)?;
        Ok(tree.entries().is_empty() && !tree.has_git)
    }
}
