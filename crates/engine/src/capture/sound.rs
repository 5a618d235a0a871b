//! Whether what the store has can be read back, asked before anything relies on it: before what came out of a swap is
//! removed, and before a plan promises what a damaged object cannot give.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use piton_host::apply::{Applier, ApplyError};
use piton_host::read_entry;
use piton_model::diff::{self, Change, TreeSource};
use piton_model::edit::{Edit, NewTrees, edit, keep};
use piton_model::inverse::Inverse;
use piton_model::plan::{Layered, RootState};
use piton_model::trail::Trail;
use piton_model::{Entry, ObjectId, SkipReason, Step, Tree, WorkspacePath};
use piton_store::{Purpose, Reader, StoreError, Writer};

use crate::capture::sink::{StoringSink, Trees};
use crate::workspace::History;
use crate::workspace::locked::Locked;

/// Whether everything in an entry can be read back from the store; reads every byte.
pub(crate) fn is_sound(store: &Reader, entry: &Entry) -> Result<bool, StoreError> {
    let mut damaged = Vec::new();
    find_damaged(store, &WorkspacePath::root(), entry, &mut damaged)?;
    Ok(damaged.is_empty())
}

/// The paths of an entry that cannot be read back from the store.
fn find_damaged(
    store: &Reader,
    path: &WorkspacePath,
    entry: &Entry,
    damaged: &mut Vec<WorkspacePath>,
) -> Result<(), StoreError> {
    let is_read = match entry {
        Entry::File { blob, .. } => unless_damaged(store.write_blob(blob, &mut io::sink()))?.is_some(),
        Entry::Folder { tree, .. } => match unless_damaged(store.tree(tree))? {
            Some(tree) => {
                for (name, entry) in tree.entries() {
                    find_damaged(store, &path.join(name), entry, damaged)?;
                }
                true
            }
            None => false,
        },
        Entry::Symlink { .. } | Entry::Skipped { .. } => true,
    };
    if !is_read {
        damaged.push(path.clone());
    }
    Ok(())
}

impl Locked<'_> {
    /// Stores what stands at the own names of some steps once more, from the files themselves: what the store has of it is
    /// damaged, and they are the only good copy.
    pub(crate) fn store_again(&self, applier: &Applier<'_>, steps: &[usize]) -> Result<(), ApplyError<StoreError>> {
        if steps.is_empty() {
            return Ok(());
        }
        let writer = self.writer().map_err(ApplyError::Content)?.allowing(Purpose::Operation);
        let sink = StoringSink::new(writer).distrusting();
        for number in steps {
            let step = &applier.steps[*number];
            let found = read_entry(applier.root, &applier.staged_path(*number), &sink).map_err(ApplyError::Content)?;
            let found = found.map_err(|source| ApplyError::Path { path: step.path.clone(), source })?;
            if found != step.before && found != step.after {
                return Err(ApplyError::Stale { path: step.path.clone() });
            }
        }
        sink.finish().0.commit(true, false).map_err(ApplyError::Content)
    }
}

impl History {
    /// Paths that steps would write and cannot.
    pub(crate) fn damaged_in(&self, steps: &[Step]) -> Vec<WorkspacePath> {
        let mut damaged = Vec::new();
        for step in steps {
            if let Some(after) = &step.after {
                // This is only for display, so an error leaves out what could not be checked.
                let _ = find_damaged(&self.store, &step.path, after, &mut damaged);
            }
        }
        damaged
    }

    /// Stores the listings on the way to some paths once more where the store's are damaged. The stat cache has them too,
    /// so that a capture does not notice.
    pub(crate) fn store_spine_again(
        &self,
        writer: &mut Writer<'_>,
        trees: &Trees<'_>,
        root: &ObjectId,
        steps: &[Step],
    ) -> Result<(), StoreError> {
        let mut seen = HashSet::new();
        for step in steps {
            let mut at = *root;
            let mut names = step.path.names().peekable();
            while let Some(name) = names.next() {
                let is_new = seen.insert(at);
                let tree = trees.tree(&at)?;
                if is_new && !writer.contains_sound(&at)? {
                    writer.tree_again(&tree)?;
                }
                match tree.get(name) {
                    Some(Entry::Folder { tree, .. }) if names.peek().is_some() => at = *tree,
                    _ => break,
                }
            }
        }
        Ok(())
    }

    /// A checkpoint's root with all that is damaged in the store taken for skipped, as far as it is not there now anyway.
    pub(crate) fn without_damaged(
        &self,
        trees: &Trees<'_>,
        now: RootState,
        target: RootState,
    ) -> Result<(RootState, NewTrees), StoreError> {
        let mut new = NewTrees::new();
        let tree = self.sound_folder(trees, Some(&now.tree), &target.tree, &mut new)?;
        let tree = tree.ok_or(StoreError::Damaged(target.tree))?;
        Ok((RootState { tree, mode: target.mode }, new))
    }

    /// The same where changes are carried over to the checkpoint. One that needs something damaged to be carried over is
    /// taken out of `carried`, and its path counts as skipped too: what is there now is somebody's edit, and stays. So do the
    /// paths of `stay`.
    pub(crate) fn without_damaged_carried(
        &self,
        trees: &Trees<'_>,
        (now, target): (RootState, RootState),
        carried: &mut Inverse,
        stay: Vec<WorkspacePath>,
    ) -> Result<(RootState, NewTrees), StoreError> {
        let (mut sound, mut new) = self.without_damaged(trees, now, target)?;
        let mut lost = stay;
        for path in carried.paths().cloned().collect::<Vec<_>>() {
            let layered = Layered { over: &new, under: trees };
            let (here, then) = (diff::lookup(trees, &now.tree, &path)?, diff::lookup(&layered, &sound.tree, &path)?);
            let mut needed: Vec<&Entry> = then.iter().collect();
            needed.extend(carried.links_of(&path).iter().flat_map(|link| [&link.before, &link.after]).flatten());
            needed.retain(|entry| !entry.is_folder() && Some(*entry) != here.as_ref());
            let mut all_sound = true;
            for entry in needed {
                all_sound &= is_sound(&self.store, entry)?;
            }
            if !all_sound {
                carried.remove(&path);
                lost.push(path);
            }
        }
        for trail in carried.trails().to_vec() {
            if !self.can_follow(trees, now, &trail)? {
                carried.retain_trails(|one| *one != trail);
                lost.extend(trail.paths().into_iter().cloned());
            }
        }
        if !lost.is_empty() {
            let mut edits = Vec::new();
            for mut stays in lost {
                // If its folder is not in the checkpoint either, the whole folder stays.
                let layered = Layered { over: &new, under: trees };
                while let Some((above, _)) = stays.split() {
                    if above.is_root() || diff::lookup(&layered, &sound.tree, &above)?.is_some_and(|e| e.is_folder()) {
                        break;
                    }
                    stays = above;
                }
                edits.push((stays, Edit::Put(Some(Entry::Skipped { reason: SkipReason::Damaged }))));
            }
            edits.sort_by(|a, b| a.0.cmp(&b.0));
            edits.dedup_by(|b, a| b.0.is_within(&a.0));
            let (tree, more) = edit(&Layered { over: &new, under: trees }, &sound.tree, &edits)?;
            sound.tree = tree;
            new.extend(more);
        }
        Ok((sound, new))
    }

    /// `None` if the listing itself is damaged.
    fn sound_folder(
        &self,
        trees: &Trees<'_>,
        have: Option<&ObjectId>,
        want: &ObjectId,
        new: &mut NewTrees,
    ) -> Result<Option<ObjectId>, StoreError> {
        if have == Some(want) {
            return Ok(Some(*want));
        }
        // A folder that is created again comes from the store alone.
        let listing = if have.is_some() { trees.tree(want) } else { self.store.tree(want) };
        let Some(listing) = unless_damaged(listing)? else { return Ok(None) };
        let here = have.map(|have| trees.tree(have)).transpose()?.unwrap_or_default();
        let mut sound = Tree::clone(&listing);
        for (name, entry) in listing.entries() {
            let here = here.get(name.as_bytes());
            if here == Some(entry) {
                continue;
            }
            let damaged = Entry::Skipped { reason: SkipReason::Damaged };
            let instead = match entry {
                Entry::File { .. } if !is_sound(&self.store, entry)? => damaged,
                Entry::Folder { mode, tree, .. } => {
                    let have = match here {
                        Some(Entry::Folder { tree, .. }) => Some(tree),
                        _ => None,
                    };
                    match self.sound_folder(trees, have, tree, new)? {
                        Some(id) if id == *tree => continue,
                        Some(tree) => Entry::Folder { mode: *mode, tree, holds_skipped: true },
                        None => damaged,
                    }
                }
                _ => continue,
            };
            sound.set(name.clone(), Some(instead));
        }
        if sound == *listing { Ok(Some(*want)) } else { Ok(Some(keep(Arc::new(sound), new))) }
    }

    /// Takes out of some changes those that cannot be taken back, because what is needed for it is damaged; returns them.
    pub(crate) fn drop_damaged(
        &self,
        trees: &Trees<'_>,
        now: RootState,
        changes: &mut Inverse,
    ) -> Result<Vec<(WorkspacePath, SkipReason)>, StoreError> {
        let mut damaged = Vec::new();
        for path in changes.paths().cloned().collect::<Vec<_>>() {
            let here = diff::lookup(trees, &now.tree, &path)?;
            let mut all_sound = true;
            for link in changes.links_of(&path) {
                let wanted = link.before.as_ref().filter(|before| Some(*before) != here.as_ref());
                // What is there now is merged with it only where it is another.
                let base = link.after.as_ref().filter(|after| wanted.is_some() && Some(*after) != here.as_ref());
                for entry in [wanted, base].into_iter().flatten().filter(|entry| !entry.is_folder()) {
                    all_sound &= is_sound(&self.store, entry)?;
                }
            }
            if !all_sound {
                changes.remove(&path);
                damaged.push((path, SkipReason::Damaged));
            }
        }
        for trail in changes.trails().to_vec() {
            if !self.can_follow(trees, now, &trail)? {
                changes.retain_trails(|one| *one != trail);
                damaged.extend(trail.paths().into_iter().map(|path| (path.clone(), SkipReason::Damaged)));
            }
        }
        Ok(damaged)
    }

    /// Whether all needed versions of a moved file can be read.
    fn can_follow(&self, trees: &Trees<'_>, now: RootState, trail: &Trail) -> Result<bool, StoreError> {
        let here = diff::lookup(trees, &now.tree, &trail.now)?;
        for (_, entry) in trail.places().filter(|(_, entry)| Some(entry) != here.as_ref()) {
            if !is_sound(&self.store, entry)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Roots of which every folder whose listing cannot be read is taken for skipped.
pub(crate) struct Readable {
    pub roots: Vec<RootState>,
    pub new: NewTrees,
    /// The folders, by the number of their root.
    pub lost: Vec<(usize, WorkspacePath, ObjectId)>,
}

impl Readable {
    /// Roots as they are.
    pub(crate) fn whole(roots: &[RootState]) -> Self {
        Self { roots: roots.to_vec(), new: NewTrees::new(), lost: Vec::new() }
    }

    /// Reads every listing, so only used if a damaged one was found.
    pub(crate) fn find<S: TreeSource<Error = StoreError>>(trees: &S, roots: &[RootState]) -> Result<Self, StoreError> {
        let mut readable = Self::whole(roots);
        let mut clean = HashSet::new();
        for (number, root) in roots.iter().enumerate() {
            let tree = readable.folder(trees, (number, &WorkspacePath::root()), root.tree, &mut clean)?;
            readable.roots[number].tree = tree.ok_or(StoreError::Damaged(root.tree))?;
        }
        Ok(readable)
    }

    /// None where the listing itself is damaged. `clean` has those with nothing damaged beneath.
    fn folder<S: TreeSource<Error = StoreError>>(
        &mut self,
        trees: &S,
        (root, path): (usize, &WorkspacePath),
        id: ObjectId,
        clean: &mut HashSet<ObjectId>,
    ) -> Result<Option<ObjectId>, StoreError> {
        if clean.contains(&id) {
            return Ok(Some(id));
        }
        let Some(listing) = unless_damaged(trees.tree(&id))? else {
            self.lost.push((root, path.clone(), id));
            return Ok(None);
        };
        let mut readable = Tree::clone(&listing);
        for (name, entry) in listing.entries() {
            let Entry::Folder { mode, tree, .. } = entry else { continue };
            let instead = match self.folder(trees, (root, &path.join(name)), *tree, clean)? {
                Some(id) if id == *tree => continue,
                Some(tree) => Entry::Folder { mode: *mode, tree, holds_skipped: true },
                None => Entry::Skipped { reason: SkipReason::Damaged },
            };
            readable.set(name.clone(), Some(instead));
        }
        if readable == *listing {
            clean.insert(id);
            return Ok(Some(id));
        }
        Ok(Some(keep(Arc::new(readable), &mut self.new)))
    }

    /// The folders, each once.
    pub(crate) fn lost_folders(&self) -> Vec<WorkspacePath> {
        let mut paths: Vec<_> = self.lost.iter().map(|(_, path, _)| path.clone()).collect();
        paths.sort();
        paths.dedup();
        paths
    }

    /// The same without those that all roots have alike: whatever is in them, it is the same.
    pub(crate) fn differing_folders(&self) -> Vec<WorkspacePath> {
        let mut paths = self.lost_folders();
        paths.retain(|path| {
            let ids: Vec<_> = self.lost.iter().filter(|(_, lost, _)| lost == path).map(|(.., id)| id).collect();
            ids.len() < self.roots.len() || ids.iter().any(|id| *id != ids[0])
        });
        paths
    }
}

/// None where what was asked for is damaged, or its bytes cannot be had.
fn unless_damaged<T>(read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(StoreError::Damaged(_) | StoreError::Missing(_) | StoreError::Io { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// As [`diff::root_changes`], also where listings are damaged: a folder that differs and cannot be compared is a change
/// itself, since what changed in it is unknown and not nothing.
pub(crate) fn readable_changes<S: TreeSource<Error = StoreError>>(
    trees: &S,
    from: Option<&RootState>,
    to: &RootState,
) -> Result<Vec<Change>, StoreError> {
    match diff::root_changes(trees, from, Some(to)) {
        Err(StoreError::Damaged(_) | StoreError::Missing(_)) => {}
        changes => return changes,
    }
    let of_root = |root: &RootState| Entry::Folder { mode: root.mode, tree: root.tree, holds_skipped: false };
    let all =
        Change { path: WorkspacePath::root(), before: from.map(of_root), after: Some(of_root(to)), implied: false };
    let Some(from) = from else { return Ok(vec![all]) };
    let readable = match Readable::find(trees, &[*from, *to]) {
        Err(StoreError::Damaged(_) | StoreError::Missing(_)) => return Ok(vec![all]),
        readable => readable?,
    };
    let unknown = readable.differing_folders();
    let layered = Layered { over: &readable.new, under: trees };
    let mut changes = diff::root_changes(&layered, Some(&readable.roots[0]), Some(&readable.roots[1]))?;
    changes.retain(|change| !unknown.iter().any(|folder| change.path.is_within(folder)));
    for path in unknown {
        let (before, after) = (folder_at(trees, *from, &path)?, folder_at(trees, *to, &path)?);
        changes.push(Change { path, before, after, implied: false });
    }
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(changes)
}

/// Whether a change is of a folder that could not be compared: see [`readable_changes`]. Of folders alone only the bits are
/// a change otherwise.
pub(crate) fn is_uncompared(before: Option<&Entry>, after: Option<&Entry>) -> bool {
    matches!(
        (before, after),
        (Some(Entry::Folder { mode: a, .. }), Some(Entry::Folder { mode: b, .. })) if a == b
    )
}

/// The entry at a path, where the root has one too.
pub(crate) fn folder_at<S: TreeSource<Error = StoreError>>(
    trees: &S,
    root: RootState,
    path: &WorkspacePath,
) -> Result<Option<Entry>, StoreError> {
    if path.is_root() {
        return Ok(Some(Entry::Folder { mode: root.mode, tree: root.tree, holds_skipped: false }));
    }
    diff::lookup(trees, &root.tree, path)
}
