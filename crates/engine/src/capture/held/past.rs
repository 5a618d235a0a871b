//! What earlier checkpoints tell of a path, however many of them there are: whether it was captured once, and whether all that
//! was ever captured there is a session's own work.

use std::cell::RefCell;
use std::collections::btree_map::Entry as Known;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use piton_model::diff::{self, TreeSource};
use piton_model::ownership::{Owned, Owner};
use piton_model::{Entry, ObjectId, SessionId, Tree, WorkspacePath};
use piton_store::{ChainLink, Reader, StoreError};

use super::{IGNORE_FILES, blob_of, holds_something, listing_of};
use crate::workspace::History;

/// So many checkpoints are looked through one by one. Of the others the rows of changes tell which had a path, and where ignore
/// files changed; but no row tells of one that was left out by something else, such as its size, was captured for a while without
/// a change, and was left out again.
const MOST_LOOKED_THROUGH: u64 = 500;

/// Most trees kept in memory while going through all checkpoints: consecutive ones are mostly alike.
const MOST_KEPT: usize = 2_000;

/// The state of a path, on the way from the first checkpoint to the current one.
struct Path {
    /// The session that should have made all of it.
    session: SessionId,
    now: Option<Entry>,
    /// What was there at some time, all of it the session's work: what an operation brings back of that is so still.
    known: Vec<Option<Entry>>,
}

type Paths = BTreeMap<WorkspacePath, Path>;

impl History {
    /// Which of some paths an earlier checkpoint of a line has, each with the tree of the last that does.
    pub(super) fn captured_once(
        &self,
        line: u32,
        paths: Vec<WorkspacePath>,
    ) -> Result<Vec<(WorkspacePath, ObjectId)>, StoreError> {
        let mut found = Vec::new();
        if paths.is_empty() {
            return Ok(found);
        }
        // The folders to look up in each checkpoint; `None` for all.
        let mut checkpoints: BTreeMap<u64, Option<BTreeSet<WorkspacePath>>> = BTreeMap::new();
        for (seq, path) in self.store.changed_within(&paths)? {
            let folders = checkpoints.entry(seq).or_insert_with(|| Some(BTreeSet::new()));
            folders.iter_mut().for_each(|folders| folders.extend(path.split().map(|(folder, _)| folder)));
        }
        let mut all = self.store.newest_of(line, MOST_LOOKED_THROUGH)?;
        all.extend(self.store.checkpoints_unlisted(line)?);
        // A path that starts or stops being skipped is not listed as a change.
        for name in IGNORE_FILES {
            all.extend(self.store.changed_called(name)?);
        }
        checkpoints.extend(all.into_iter().map(|seq| (seq, None)));

        let mut left: BTreeMap<WorkspacePath, Vec<WorkspacePath>> = BTreeMap::new();
        for path in paths {
            if let Some((folder, _)) = path.split() {
                left.entry(folder).or_default().push(path);
            }
        }
        let trees = Recent::new(&self.store);
        // Most checkpoints share listings, so each listing is looked at once.
        let (mut seen, mut seen_roots) = (HashSet::new(), HashSet::new());
        for (seq, folders) in checkpoints.into_iter().rev() {
            // What a checkpoint no longer has was in the one before it.
            for tree in self.store.trees_until(line, seq)? {
                let asked: Vec<_> = match &folders {
                    Some(folders) => folders.iter().filter(|folder| left.contains_key(folder)).cloned().collect(),
                    None if seen_roots.insert(tree) => left.keys().cloned().collect(),
                    None => continue,
                };
                for folder in asked {
                    // What is damaged is told by whoever needs it.
                    let Ok(Some(id)) = listing_of(&trees, &tree, &folder) else { continue };
                    let is_new = seen.insert((folder.clone(), id));
                    let Some(listing) = Some(id).filter(|_| is_new).and_then(|id| trees.tree(&id).ok()) else {
                        continue;
                    };
                    let Known::Occupied(mut paths) = left.entry(folder) else { continue };
                    paths.get_mut().retain(|path| {
                        let entry = path.split().and_then(|(_, name)| listing.get(name.as_bytes()));
                        let has = entry.is_some_and(|entry| holds_something(&trees, entry).unwrap_or(false));
                        if has {
                            found.push((path.clone(), tree));
                        }
                        !has
                    });
                    if paths.get().is_empty() {
                        paths.remove();
                    }
                }
            }
            if left.is_empty() {
                break;
            }
        }
        Ok(found)
    }

    /// Those of some paths of which all that was ever captured there is for sure the work of the session that is named with each.
    ///
    /// All checkpoints of the line are gone through once for all paths: nothing else tells that none of them left something out
    /// there, or had elsewhere what was moved there later.
    pub(super) fn made_by(
        &self,
        line: u32,
        asked: impl IntoIterator<Item = (WorkspacePath, SessionId)>,
    ) -> Result<BTreeSet<WorkspacePath>, StoreError> {
        let nothing = BTreeSet::new();
        let mut paths: Paths =
            asked.into_iter().map(|(path, session)| (path, Path { session, now: None, known: vec![None] })).collect();
        let Some(first) = self.store.first(line)?.filter(|row| row.checkpoint.parent.is_none()) else {
            return Ok(nothing);
        };
        // At the first one, the path was empty, or its author is unknown.
        for path in paths.keys().cloned().collect::<Vec<_>>() {
            if diff::lookup(&self.store, &first.checkpoint.root.tree, &path)?.is_some() {
                paths.remove(&path);
            }
        }
        if paths.is_empty() {
            return Ok(nothing);
        }
        let mut links = self.store.links()?;
        links.retain(|link| link.line == line);
        let is_next = |pair: &[ChainLink]| pair[1].parent == Some(pair[0].seq) || is_return(&pair[0], &pair[1]);
        if !links.windows(2).all(is_next) {
            return Ok(nothing);
        }
        let trees = Recent::new(&self.store);
        let steps = || links.windows(2).map(|pair| (&pair[0], &pair[1])).filter(|(from, to)| from.tree != to.tree);
        let on_the_way = paths.keys().flat_map(|path| above(path).skip(1)).collect();
        for (from, to) in steps() {
            let changed = changed_at(&trees, &from.tree, &to.tree, &paths, &on_the_way)?;
            if !changed.is_empty() {
                self.follow(&trees, from, to, &changed, &mut paths)?;
            }
            if paths.is_empty() {
                return Ok(nothing);
            }
        }
        paths.retain(|_, one| !one.now.as_ref().is_some_and(Entry::is_skipped));
        // Anything that disappeared elsewhere, at any time, may have been moved here, even indirectly.
        let mut contents: HashMap<ObjectId, Vec<WorkspacePath>> = HashMap::new();
        for (path, one) in &paths {
            contents_of(&self.store, one.now.as_ref(), |blob| contents.entry(blob).or_default().push(path.clone()))?;
        }
        for (from, to) in steps().filter(|(from, to)| to.has_deleted || to.has_modified || is_return(from, to)) {
            if contents.is_empty() {
                break;
            }
            for change in diff::changes(&trees, Some(&from.tree), Some(&to.tree))? {
                let here = change.before.and_then(blob_of).and_then(|blob| contents.get(&blob));
                for path in here.into_iter().flatten().filter(|path| !change.path.is_within(path)) {
                    paths.remove(path);
                }
            }
        }
        Ok(paths.into_keys().collect())
    }

    /// Goes on from one checkpoint to the next, in which some paths changed, and takes away those at which something is not for
    /// sure its session's.
    fn follow(
        &self,
        trees: &Recent<'_>,
        from: &ChainLink,
        to: &ChainLink,
        changed: &[(WorkspacePath, Option<Entry>)],
        paths: &mut Paths,
    ) -> Result<(), StoreError> {
        let returns = is_return(from, to);
        let from = &from.tree;
        let owned = self.store.checkpoint_numbered(to.seq)?.map(|row| row.checkpoint.owned).unwrap_or_default();
        let is_listed = owned.iter().all(|owned| !owned.paths.is_empty());
        let is_unknown = !diff::gone_unknown(trees, from, &to.tree)?.is_empty();
        let mut went = Vec::new();
        if to.has_deleted {
            went = diff::changes(trees, Some(from), Some(&to.tree))?;
            went.retain(|change| change.after.is_none());
        }
        // If many paths change at once, each list is still searched only once.
        let mut groups: HashMap<&WorkspacePath, BTreeSet<usize>> = HashMap::new();
        let at: HashSet<&WorkspacePath> = changed.iter().map(|(path, _)| path).collect();
        for (number, group) in owned.iter().enumerate() {
            for one in &group.paths {
                for path in above(&one.path).filter_map(|path| at.get(&path).copied()) {
                    groups.entry(path).or_default().insert(number);
                }
            }
        }
        let mut elsewhere: HashMap<&WorkspacePath, usize> = HashMap::new();
        for change in &went {
            for path in above(&change.path).filter_map(|path| at.get(&path).copied()) {
                *elsewhere.entry(path).or_default() += 1;
            }
        }
        for (path, now) in changed {
            let Some(one) = paths.get_mut(path) else { continue };
            let is_its =
                |group: &Owned| matches!(&group.owner, Owner::Step { step, .. } if step.session == one.session);
            let are_its = match is_listed {
                true => groups.get(path).is_some_and(|here| here.iter().all(|number| is_its(&owned[*number]))),
                false => owned.iter().all(is_its),
            };
            let by_operation = |group: &Owned| matches!(group.owner, Owner::Operation { .. });
            let is_by_operation = match is_listed {
                true => groups.get(path).is_some_and(|here| here.iter().all(|number| by_operation(&owned[*number]))),
                false => owned.iter().all(by_operation),
            };
            let is_by_operation = is_by_operation || returns;
            // What is left out for a while is nobody's until it is seen again, and then it is as it was or not the session's alone.
            let was_out_of_sight = one.now.as_ref().is_some_and(Entry::is_skipped);
            let goes_out_of_sight = one.now.is_some() && now.as_ref().is_some_and(Entry::is_skipped);
            if goes_out_of_sight || (is_by_operation || was_out_of_sight) && one.known.contains(now) {
                one.now.clone_from(now);
                continue;
            }
            // What was skipped before is not listed as a change, and its author is unknown.
            let was_left_out = match (&one.now, now) {
                (Some(Entry::Folder { tree: from, .. }), Some(Entry::Folder { tree: to, .. })) => {
                    diff::left_out(trees, from, to)?.iter().any(|one| one.before.is_none())
                }
                _ => now.as_ref().is_some_and(Entry::is_skipped),
            };
            let has_gone_elsewhere = elsewhere.get(path).copied().unwrap_or(0) < went.len();
            if owned.is_empty()
                || !are_its
                || was_left_out
                || is_unknown
                || has_gone_elsewhere
                || was_out_of_sight
                || returns
            {
                paths.remove(path);
            } else {
                one.now.clone_from(now);
                one.known.push(now.clone());
            }
        }
        Ok(())
    }
}

/// Whether a checkpoint is the result of an operation that returned to a checkpoint other than the previous one.
fn is_return(before: &ChainLink, after: &ChainLink) -> bool {
    after.is_of_operation && after.parent.is_some_and(|parent| parent < before.seq)
}

/// A path and the folders that contain it, except the root.
fn above(path: &WorkspacePath) -> impl Iterator<Item = WorkspacePath> {
    std::iter::successors(Some(path.clone()), |path| path.split().map(|(folder, _)| folder))
        .take_while(|path| !path.is_root())
}

/// Which of some paths two trees do not have alike, each with what the second has there; looks only into folders that differ.
fn changed_at(
    trees: &Recent<'_>,
    from: &ObjectId,
    to: &ObjectId,
    paths: &Paths,
    on_the_way: &HashSet<WorkspacePath>,
) -> Result<Vec<(WorkspacePath, Option<Entry>)>, StoreError> {
    let mut changed = Vec::new();
    let mut folders = vec![(WorkspacePath::root(), Some(*from), Some(*to))];
    while let Some((folder, from, to)) = folders.pop() {
        if from == to {
            continue;
        }
        let load = |id: Option<ObjectId>| id.map(|id| trees.tree(&id)).transpose().map(Option::unwrap_or_default);
        let (before, after) = (load(from)?, load(to)?);
        for (name, old, new) in diff::pairs(&before, &after).filter(|(_, old, new)| old != new) {
            let at = folder.join(name);
            if paths.contains_key(&at) {
                changed.push((at.clone(), new.cloned()));
            }
            if !on_the_way.contains(&at) {
                continue;
            }
            // Everything beneath a skipped path is unknown too.
            if new.is_some_and(Entry::is_skipped) {
                let within = paths.keys().filter(|path| **path != at && path.is_within(&at));
                changed.extend(within.map(|path| (path.clone(), new.cloned())));
                continue;
            }
            let tree = |entry: Option<&Entry>| match entry {
                Some(Entry::Folder { tree, .. }) => Some(*tree),
                _ => None,
            };
            folders.push((at, tree(old), tree(new)));
        }
    }
    Ok(changed)
}

/// The contents of all files in an entry, except empty ones: those are all equal, and losing them loses nothing.
fn contents_of(store: &Reader, entry: Option<&Entry>, mut each: impl FnMut(ObjectId)) -> Result<(), StoreError> {
    let mut entries: Vec<Entry> = entry.cloned().into_iter().collect();
    while let Some(entry) = entries.pop() {
        match entry {
            Entry::Folder { tree, .. } => {
                entries.extend(store.tree(&tree)?.entries().iter().map(|(_, entry)| entry.clone()));
            }
            Entry::File { blob, size, .. } if size > 0 => each(blob),
            _ => {}
        }
    }
    Ok(())
}

/// A cache over the store's trees, most of which are requested again soon.
pub(crate) struct Recent<'a> {
    store: &'a Reader,
    trees: RefCell<HashMap<ObjectId, Arc<Tree>>>,
}

impl<'a> Recent<'a> {
    pub(crate) fn new(store: &'a Reader) -> Self {
        Self { store, trees: RefCell::default() }
    }
}

impl TreeSource for Recent<'_> {
    type Error = StoreError;

    fn tree(&self, id: &ObjectId) -> Result<Arc<Tree>, StoreError> {
        let mut trees = self.trees.borrow_mut();
        if let Some(tree) = trees.get(id) {
            return Ok(tree.clone());
        }
        if trees.len() >= MOST_KEPT {
            trees.clear();
        }
        let tree = self.store.tree(id)?;
        trees.insert(*id, tree.clone());
        Ok(tree)
    }
}
