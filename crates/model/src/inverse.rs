//! Taking back chosen changes: what should stand at each path so that they are undone and everything else stays.
//!
//! Each change is a [`Link`]: what it left and what was there before. Where nobody touched the path since, it becomes what
//! it was; where somebody did, the inverse is merged in (base = what the change left, ours = now, theirs = what was there
//! before). What cannot be merged is a conflict, and its path is left alone unless a [`Decision`] says otherwise.
//!
//! The result is a root, so that carrying it out is an operation like any other: from now to that root.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::content::{self, Clash, Decision, Labels};
use crate::diff::{TreeSource, lookup};
use crate::edit::{NewTrees, keep};
use crate::id::ObjectId;
use crate::path::{EntryName, WorkspacePath};
use crate::plan::RootState;
use crate::text;
use crate::tree::{Entry, SkipReason, Tree};

/// One change of a path, to be taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What it left.
    pub after: Option<Entry>,
    /// What was there before.
    pub before: Option<Entry>,
}

/// Changes to take back, by path.
#[derive(Clone, Debug, Default)]
pub struct Inverse {
    links: BTreeMap<WorkspacePath, Vec<Link>>,
    /// The bits of folders that are made again for what comes back in them.
    folders: BTreeMap<WorkspacePath, u16>,
}

impl Inverse {
    /// Adds a change that is older than all that were added for its path before. Changes that follow upon each other
    /// become one, so that what lies between them is never asked for.
    pub fn add(&mut self, path: WorkspacePath, link: Link) {
        let links = self.links.entry(path).or_default();
        match links.last_mut() {
            // A folder comes up with each file that came or went with it.
            Some(newer)
                if is_same(newer.before.as_ref(), link.before.as_ref())
                    && is_same(newer.after.as_ref(), link.after.as_ref()) => {}
            Some(newer) if is_same(newer.before.as_ref(), link.after.as_ref()) => newer.before = link.before,
            _ => links.push(link),
        }
    }

    /// Leaves a path out after all.
    pub fn remove(&mut self, path: &WorkspacePath) {
        self.links.remove(path);
    }

    /// Says which bits a folder has if it must be made again.
    pub fn folder(&mut self, path: WorkspacePath, mode: u16) {
        self.folders.insert(path, mode);
    }

    /// Whether a folder's bits are known already.
    pub fn knows_folder(&self, path: &WorkspacePath) -> bool {
        self.folders.contains_key(path)
    }

    /// What is known to belong at a path: what was there before the changes, or else what they left.
    pub fn known_at(&self, path: &WorkspacePath) -> Option<&Entry> {
        let links = self.links.get(path)?;
        links.last()?.before.as_ref().or(links.first()?.after.as_ref())
    }

    /// Whether there is nothing to take back.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// What is to be taken back at a path.
    pub fn links_of(&self, path: &WorkspacePath) -> &[Link] {
        self.links.get(path).map(|links| &links[..]).unwrap_or_default()
    }

    /// Every path with something to take back.
    pub fn paths(&self) -> impl Iterator<Item = &WorkspacePath> {
        self.links.keys()
    }
}

/// Where contents come from.
pub trait Contents {
    /// Why a content cannot be had.
    type Error;

    /// The bytes of a blob that stands, or stood, at a path.
    fn content(&self, path: &WorkspacePath, blob: &ObjectId) -> Result<Vec<u8>, Self::Error>;
}

/// What taking back comes to.
#[derive(Clone, Debug)]
pub struct Drafted {
    /// The root as it should be.
    pub root: RootState,
    /// Trees of it that no checkpoint has.
    pub new_trees: NewTrees,
    /// Contents of it that no checkpoint has.
    pub new_blobs: HashMap<ObjectId, Vec<u8>>,
    /// Paths whose content is put together from now and before.
    pub merged: Vec<WorkspacePath>,
    /// Paths that somebody changed in a way that does not go together with taking the change back.
    pub conflicts: Vec<Conflict>,
    /// Left alone because what is there is unknown.
    pub kept: Vec<(WorkspacePath, SkipReason)>,
    /// Paths where a rule left out what is there now: capture them and draft again.
    pub unknown: Vec<WorkspacePath>,
}

/// A path where taking back and what was done since do not go together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Where.
    pub path: WorkspacePath,
    /// Why.
    pub why: Why,
    /// The places, where contents clash.
    pub clashes: Vec<Clash>,
    /// Whether it was decided; where not, the path is left alone.
    pub decided: bool,
}

/// Why a path is in conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The same lines were changed since.
    SamePlace,
    /// It was changed since, and can only be taken whole.
    Whole,
    /// It was made by what is taken back, and edited since: it would go with the edit.
    Edited,
    /// It was deleted since.
    Deleted,
    /// Something of another kind stands there now.
    Replaced,
    /// Its mode was changed since.
    Mode,
    /// It was renamed, and something else stands at its old place now.
    NoRoom,
    /// A folder that must go holds things of others.
    Holds,
    /// It holds things that are not captured, and a file would have to take its place.
    Skipped,
    /// It is no folder, and only paths in the folder that stood there are asked for.
    InTheWay,
}

impl Why {
    /// Whether a [`Decision`] can settle it.
    pub fn can_be_decided(self) -> bool {
        !matches!(self, Self::Skipped | Self::InTheWay)
    }

    /// The words a person reads.
    pub fn describe(self) -> &'static str {
        match self {
            Self::SamePlace => "changed at the same place since",
            Self::Whole => "changed since, and its content cannot be merged",
            Self::Edited => "edited since, and taking it back would delete it",
            Self::Deleted => "deleted since",
            Self::Replaced => "something else stands there now",
            Self::Mode => "its mode was changed since",
            Self::NoRoom => "something else stands at its old place now",
            Self::Holds => "holds files that others put there",
            Self::Skipped => "holds things that are not captured, and a file would have to take its place",
            Self::InTheWay => "stands where a folder of that moment must be, and is not asked for itself",
        }
    }
}

/// Drafts what taking some changes back leaves, given what is there now.
///
/// # Errors
/// Where a tree or a content cannot be had.
pub fn draft<S: TreeSource, C: Contents<Error = S::Error>>(
    source: &S,
    contents: &C,
    now: RootState,
    inverse: &Inverse,
    decision: Option<Decision>,
) -> Result<Drafted, S::Error> {
    draft_with(source, contents, now, inverse, decision, &LABELS)
}

/// Drafts an earlier moment with some changes carried over to it: the same merge, the other way round. The changes are
/// given oldest first, each as what was there before it and what it made of that, and what is there now is on their side.
/// `gone` are the files of that moment that are not there any more: what was edited after a rename goes along to them.
///
/// # Errors
/// Where a tree or a content cannot be had.
pub fn draft_carried<S: TreeSource, C: Contents<Error = S::Error>>(
    source: &S,
    contents: &C,
    then: RootState,
    carried: &Inverse,
    gone: &[(WorkspacePath, Entry)],
    decision: Option<Decision>,
) -> Result<Drafted, S::Error> {
    let mut carried = carried.clone();
    let mut gone: Vec<(&WorkspacePath, &Entry)> = gone.iter().map(|(path, entry)| (path, entry)).collect();
    let paths: Vec<WorkspacePath> = carried.paths().cloned().collect();
    for path in paths {
        let Some([Link { after: Some(base @ Entry::File { .. }), .. }, ..]) =
            carried.links.get(&path).map(Vec::as_slice)
        else {
            continue;
        };
        if lookup(source, &then.tree, &path)?.is_none()
            && let Some(at) = origin_of(contents, base, &gone)?
            && !carried.links.contains_key(gone[at].0)
            && let Some(links) = carried.links.remove(&path)
        {
            carried.links.insert(gone.remove(at).0.clone(), links);
        }
    }
    let carried = &carried;
    let turned = decision.map(|decision| match decision {
        Decision::Ours => Decision::Theirs,
        Decision::Theirs => Decision::Ours,
        Decision::Markers => Decision::Markers,
    });
    let labels = Labels { ours: LABELS.theirs, base: LABELS.base, theirs: LABELS.ours };
    let mut drafted = draft_with(source, contents, then, carried, turned, &labels)?;
    for clash in drafted.conflicts.iter_mut().flat_map(|conflict| &mut conflict.clashes) {
        std::mem::swap(&mut clash.ours, &mut clash.theirs);
    }
    Ok(drafted)
}

fn draft_with<S: TreeSource, C: Contents<Error = S::Error>>(
    source: &S,
    contents: &C,
    now: RootState,
    inverse: &Inverse,
    decision: Option<Decision>,
    labels: &Labels<'_>,
) -> Result<Drafted, S::Error> {
    let mut drafter = Drafter {
        source,
        contents,
        inverse,
        decision,
        labels,
        moved: BTreeMap::new(),
        out: Drafted {
            root: now,
            new_trees: NewTrees::new(),
            new_blobs: HashMap::new(),
            merged: Vec::new(),
            conflicts: Vec::new(),
            kept: Vec::new(),
            unknown: Vec::new(),
        },
    };
    drafter.find_moved(now)?;
    let items: Vec<At<'_>> =
        inverse.links.iter().map(|(path, links)| At { names: path.names().collect(), path, links }).collect();
    let root = WorkspacePath::root();
    if let Some(links) = inverse.links.get(&root) {
        let here = Some(Entry::Folder { mode: now.mode, tree: now.tree, holds_skipped: false });
        if let Ok(Some(Entry::Folder { mode, .. })) = drafter.own(&root, here, links)? {
            drafter.out.root.mode = mode;
        }
    }
    let tree = source.tree(&now.tree)?;
    let items: Vec<&At<'_>> = items.iter().filter(|item| !item.path.is_root()).collect();
    let tree = drafter.folder(&root, &tree, &items, 0)?;
    let mut out = drafter.out;
    out.root.tree = keep(Arc::new(tree), &mut out.new_trees);
    out.merged.sort();
    out.merged.dedup();
    let is_open = |path: &WorkspacePath| out.conflicts.iter().any(|c| !c.decided && path.is_within(&c.path));
    out.merged.retain(|path| !is_open(path));
    out.conflicts.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(out)
}

/// Links of a path, with its names.
struct At<'a> {
    names: Vec<&'a [u8]>,
    path: &'a WorkspacePath,
    links: &'a [Link],
}

/// A path that is left alone: an open conflict.
struct Open;

struct Drafter<'a, S, C> {
    source: &'a S,
    contents: &'a C,
    inverse: &'a Inverse,
    decision: Option<Decision>,
    labels: &'a Labels<'a>,
    /// Both ends of renames whose file was edited since: what should stand there, or nothing where that is in conflict.
    moved: BTreeMap<WorkspacePath, Result<Option<Entry>, ()>>,
    out: Drafted,
}

impl<S: TreeSource, C: Contents<Error = S::Error>> Drafter<'_, S, C> {
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
            if reason.is_by_rule() {
                self.out.unknown.push(path.clone());
                self.out.unknown.extend(below.iter().map(|item| item.path.clone()));
            }
            self.out.kept.push((path.clone(), *reason));
            return Ok(now.cloned());
        }
        if let Some(moved) = self.moved.get(path) {
            return Ok(moved.clone().unwrap_or_else(|()| now.cloned()));
        }
        // What it holds first: whether a folder may go depends on what is left in it.
        let mut current = now.cloned();
        let mut inside = None;
        if !below.is_empty() {
            match now {
                Some(Entry::Folder { mode, tree, .. }) => {
                    let listing = self.source.tree(tree)?;
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
            // Decided already, for the file that stands there.
            Some(_) if self.out.conflicts.iter().any(|conflict| conflict.path == *path) => Ok(now.cloned()),
            // A file stands where a folder must be; what would come back in it has no place.
            Some(_) => {
                let mode = self.inverse.folders.get(path).copied().unwrap_or(0o755);
                let then = self.folder_of(mode, inside);
                Ok(self.decide(path, Why::Replaced, now.cloned(), Some(then)).unwrap_or_else(|Open| now.cloned()))
            }
        }
    }

    fn folder_of(&mut self, mode: u16, tree: Tree) -> Entry {
        let holds_skipped = tree.holds_skipped();
        Entry::Folder { mode, tree: keep(Arc::new(tree), &mut self.out.new_trees), holds_skipped }
    }

    /// Takes back a path's own changes, newest first.
    fn own(
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

    fn take_back(
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
            // A folder is its bits and what it holds, and what it holds is taken back path by path.
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
            // Somebody took it away or put something else there: nothing of the change is left.
            (Some(Folder { .. }), current, None) => Ok(current),
            // What it held comes back path by path, and makes the folder again if there is anything.
            (Some(Folder { .. }), None, Some(Folder { .. })) => Ok(None),
            // Somebody made the folder again.
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
            (Some(_), None, was) => self.decide(path, Why::Deleted, None, was.cloned()),
            (base, Some(here), was) => {
                let why = match (base, &here) {
                    (Some(File { blob: left, .. }), File { blob, .. }) if left == blob => Why::Mode,
                    (Some(File { .. }), File { .. }) if was.is_none() => Why::Edited,
                    (Some(File { .. }), File { .. }) | (Some(Symlink { .. }), Symlink { .. }) => Why::Whole,
                    _ => Why::Replaced,
                };
                self.decide(path, why, Some(here), was.cloned())
            }
            (None, None, was) => Ok(was.cloned()),
        })
    }

    /// Merges three versions of a file: the bits and the content, each for itself.
    fn merge_file(
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
        // Too large to be merged is too large to be read for it.
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
        // Decided for one side as a whole: nothing is put together.
        if blob != *our_blob && blob != *their_blob {
            self.out.merged.push(path.clone());
            self.out.new_blobs.insert(blob, bytes);
        }
        Ok(Ok(Some(entry)))
    }

    /// A conflict that can only be decided one way or the other.
    fn decide<T>(
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

    fn conflict(&mut self, path: &WorkspacePath, why: Why, clashes: Vec<Clash>, decided: bool) {
        self.out.conflicts.push(Conflict { path: path.clone(), why, clashes, decided });
    }

    fn content(&self, path: &WorkspacePath, blob: &ObjectId) -> Result<Vec<u8>, S::Error> {
        match self.out.new_blobs.get(blob) {
            Some(bytes) => Ok(bytes.clone()),
            None => self.contents.content(path, blob),
        }
    }

    fn is_empty(&self, tree: &ObjectId) -> Result<bool, S::Error> {
        let tree = match self.out.new_trees.get(tree) {
            Some(tree) => tree.clone(),
            None => self.source.tree(tree)?,
        };
        Ok(tree.entries().is_empty() && !tree.has_git)
    }

    /// Finds files that were renamed by what is to be taken back. Where one was edited at its new place since, the edit
    /// goes along to the old place; where the old place is taken, the file stays, or it would be nowhere.
    fn find_moved(&mut self, now: RootState) -> Result<(), S::Error> {
        let (mut edited, mut left_alone) = (Vec::new(), Vec::new());
        let (mut gone, mut taken) = (Vec::new(), Vec::new());
        for (path, links) in &self.inverse.links {
            match &links[..] {
                [Link { after: Some(left @ Entry::File { .. }), before: None }] => {
                    match lookup(self.source, &now.tree, path)? {
                        Some(here) if here == *left => left_alone.push((path, here)),
                        Some(here @ Entry::File { .. }) => edited.push((path, left, here)),
                        _ => {}
                    }
                }
                [Link { after: None, before: Some(was @ Entry::File { .. }) }] => {
                    match lookup(self.source, &now.tree, path)? {
                        None if self.has_room(now, path)? => gone.push((path, was)),
                        here if here.as_ref() != Some(was) => taken.push(was),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        for (new, here) in left_alone {
            let is_origin = |was: &&Entry| match (*was, &here) {
                (Entry::File { blob: a, size, .. }, Entry::File { blob: b, .. }) => a == b && *size > 0,
                _ => false,
            };
            if let Some(at) = taken.iter().position(is_origin) {
                taken.remove(at);
                let stays = self.decide(new, Why::NoRoom, Some(here), None).map_err(|Open| ());
                self.moved.insert(new.clone(), stays);
            }
        }
        for (new, left, here) in edited {
            let Some(at) = origin_of(self.contents, left, &gone)? else { continue };
            let (old, was) = gone.remove(at);
            match self.merge_file(new, left, here, was)? {
                Ok(merged) => {
                    self.out.merged.push(old.clone());
                    self.moved.insert(old.clone(), Ok(merged));
                    self.moved.insert(new.clone(), Ok(None));
                }
                Err(Open) => {
                    self.moved.insert(old.clone(), Err(()));
                    self.moved.insert(new.clone(), Err(()));
                }
            }
        }
        Ok(())
    }

    /// Whether something can come back to a path: no file stands where one of the folders above it must be.
    fn has_room(&self, now: RootState, path: &WorkspacePath) -> Result<bool, S::Error> {
        let mut at = path.split();
        while let Some((above, _)) = at.filter(|(above, _)| !above.is_root()) {
            match lookup(self.source, &now.tree, &above)? {
                Some(Entry::Folder { .. }) => return Ok(true),
                None => at = above.split(),
                // What stands there may itself be what is taken back.
                Some(here) => {
                    let links = self.inverse.links.get(&above).map_or(&[][..], Vec::as_slice);
                    let gives_way = links.first().is_some_and(|newest| newest.after == Some(here))
                        && links.last().is_some_and(|oldest| oldest.before.as_ref().is_some_and(Entry::is_folder));
                    return Ok(gives_way);
                }
            }
        }
        Ok(true)
    }
}

/// Which of some files that are gone a new one was made from: the one with the same content, else one that is more alike
/// than not.
fn origin_of<C: Contents>(
    contents: &C,
    new: &Entry,
    gone: &[(&WorkspacePath, &Entry)],
) -> Result<Option<usize>, C::Error> {
    /// More than this are not compared: each is read.
    const MOST: usize = 50;
    let Entry::File { blob, size, .. } = new else { return Ok(None) };
    let same = gone.iter().position(|(_, was)| matches!(was, Entry::File { blob: other, .. } if other == blob));
    if same.is_some() || gone.len() > MOST || *size > text::LARGEST as u64 {
        return Ok(same);
    }
    let mut best = None;
    for (at, (path, was)) in gone.iter().enumerate() {
        let Entry::File { blob: other, size: length, .. } = was else { continue };
        // A file of twice the size cannot be half alike.
        if length / 2 > *size || size / 2 > *length {
            continue;
        }
        let alike = text::alike(&contents.content(path, other)?, &contents.content(path, blob)?);
        if alike >= 0.5 && best.is_none_or(|(_, most)| alike > most) {
            best = Some((at, alike));
        }
    }
    Ok(best.map(|(at, _)| at))
}

/// What the sides are called in a file with markers.
const LABELS: Labels<'static> = Labels { ours: "now", base: "what is taken back", theirs: "before" };

/// Whether two entries are the same for taking back: folders are their bits, what they hold counts by itself.
fn is_same(a: Option<&Entry>, b: Option<&Entry>) -> bool {
    match (a, b) {
        (Some(Entry::Folder { mode: a, .. }), Some(Entry::Folder { mode: b, .. })) => a == b,
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff;
    use crate::plan::Layered;
    use crate::tree::literal::{Forest, Lit, executable, file, folder, link, skipped, special};

    type Paths<'a> = &'a [(&'a str, Lit)];

    /// Contents that are their own names.
    struct Known(HashMap<ObjectId, Vec<u8>>);

    impl Contents for Known {
        type Error = ObjectId;

        fn content(&self, _: &WorkspacePath, blob: &ObjectId) -> Result<Vec<u8>, ObjectId> {
            self.0.get(blob).cloned().ok_or(*blob)
        }
    }

    const TEXTS: [&str; 8] = ["1", "2", "3", "mine", LONG, "1\nx\n3\n4\n5\n", "1\n2\n3\n4\ny\n", "1\nx\n3\n4\ny\n"];
    const LONG: &str = "1\n2\n3\n4\n5\n";

    /// The inverse of changes, each from one tree to the next, given oldest first.
    fn inverse(forest: &mut Forest, changes: &[(Paths<'_>, Paths<'_>)]) -> Inverse {
        let mut inverse = Inverse::default();
        for (before, after) in changes.iter().rev() {
            let (before, after) = (forest.plant(before), forest.plant(after));
            for change in diff::changes(&forest.0, Some(&before), Some(&after)).unwrap() {
                let mut at = change.path.clone();
                while let Some((above, _)) = at.split().filter(|(above, _)| change.after.is_none() && !above.is_root())
                {
                    if let Some(Entry::Folder { mode, .. }) = lookup(&forest.0, &before, &above).unwrap() {
                        inverse.folder(above.clone(), mode);
                    }
                    at = above;
                }
                inverse.add(change.path, Link { after: change.after, before: change.before });
            }
        }
        inverse
    }

    fn drafted(forest: &Forest, now: ObjectId, inverse: &Inverse, decision: Option<Decision>) -> Drafted {
        let known = Known(TEXTS.iter().map(|t| (ObjectId::of_blob(t.as_bytes()), t.as_bytes().to_vec())).collect());
        draft(&forest.0, &known, RootState { tree: now, mode: 0o755 }, inverse, decision).unwrap()
    }

    /// Takes back one change and checks what is left, and the conflicts: `path why`.
    fn check(before: Paths<'_>, after: Paths<'_>, now: Paths<'_>, expected: Paths<'_>, conflicts: &[&str]) {
        check_all(&[(before, after)], now, None, expected, conflicts);
    }

    fn check_all(
        changes: &[(Paths<'_>, Paths<'_>)],
        now: Paths<'_>,
        decision: Option<Decision>,
        expected: Paths<'_>,
        conflicts: &[&str],
    ) {
        let mut forest = Forest::default();
        let inverse = inverse(&mut forest, changes);
        let (now, expected) = (forest.plant(now), forest.plant(expected));
        let out = drafted(&forest, now, &inverse, decision);
        let found: Vec<String> = out.conflicts.iter().map(|c| format!("{} {:?}", c.path.display(), c.why)).collect();
        assert_eq!(found, conflicts);
        assert!(out.conflicts.iter().all(|c| c.decided == decision.is_some()), "{:?}", out.conflicts);
        let layered = Layered { over: &out.new_trees, under: &forest.0 };
        let wrong = diff::changes(&layered, Some(&expected), Some(&out.root.tree)).unwrap();
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert_eq!(out.root.tree, expected);
    }

    #[test]
    fn a_folder_goes_with_the_last_thing_in_it_if_it_came_with_the_first() {
        let made: Paths<'_> = &[("d/a", file("1")), ("d/e/b", file("1"))];
        check(&[], made, made, &[], &[]);
        // Somebody's own file keeps the folders around it.
        let beside: Paths<'_> = &[("d/a", file("1")), ("d/e/b", file("1")), ("d/mine", file("mine"))];
        check(&[], made, beside, &[("d/mine", file("mine"))], &[]);
        let deep: Paths<'_> = &[("d/a", file("1")), ("d/e/b", file("1")), ("d/e/mine", file("mine"))];
        check(&[], made, deep, &[("d/e/mine", file("mine"))], &[]);
        // What was there before the change stays.
        check(&[("d", folder(0o755))], &[("d/a", file("1"))], &[("d/a", file("1"))], &[("d", folder(0o755))], &[]);
        // So does a repository, and what is not captured.
        let git: Paths<'_> = &[("d/a", file("1")), ("d/e/b", file("1")), ("d/e/", Lit::Git)];
        check(&[], made, git, &[("d/e/", Lit::Git)], &[]);
        let unknown: Paths<'_> = &[("d/a", file("1")), ("d/e/b", file("1")), ("d/e/socket", special())];
        check(&[], made, unknown, &[("d/e/socket", special())], &[]);
        // Half of it is gone already, by somebody else's hand.
        check(&[], made, &[("d/e", folder(0o755))], &[], &[]);
        check(&[], made, &[], &[], &[]);
        check(&[], made, &[("d", link("elsewhere"))], &[("d", link("elsewhere"))], &[]);
    }

    #[test]
    fn a_folder_comes_back_with_its_bits_and_without_what_others_took() {
        let was: Paths<'_> = &[("d", folder(0o700)), ("d/a", file("1")), ("d/e", folder(0o750)), ("d/e/b", file("1"))];
        check(was, &[], &[], was, &[]);
        // One that somebody made again has their bits.
        let again: Paths<'_> = &[("d", folder(0o711)), ("d/mine", file("mine"))];
        let both: Paths<'_> = &[
            ("d", folder(0o711)),
            ("d/mine", file("mine")),
            ("d/a", file("1")),
            ("d/e", folder(0o750)),
            ("d/e/b", file("1")),
        ];
        check(was, &[], again, both, &[]);
        check(was, &[], &[("d", file("mine"))], &[("d", file("mine"))], &["d Replaced"]);
        // Only a file of it went by the change, and the folder by somebody else.
        let left: Paths<'_> = &[("d", folder(0o700)), ("d/e", folder(0o750)), ("d/e/b", file("1"))];
        check(was, left, &[], &[("d", folder(0o700)), ("d/a", file("1"))], &[]);
    }

    #[test]
    fn a_file_where_a_folder_must_be_can_be_decided_like_any_other_conflict() {
        let was: Paths<'_> = &[("d", folder(0o700)), ("d/a", file("1")), ("d/b", file("1"))];
        let left: Paths<'_> = &[("d", folder(0o700)), ("d/b", file("1"))];
        let (now, conflicts): (Paths<'_>, _) = (&[("d", file("mine"))], &["d Replaced"]);
        check(was, left, now, now, conflicts);
        check_all(&[(was, left)], now, Some(Decision::Ours), now, conflicts);
        let theirs: Paths<'_> = &[("d", folder(0o700)), ("d/a", file("1"))];
        check_all(&[(was, left)], now, Some(Decision::Theirs), theirs, conflicts);
    }

    #[test]
    fn files_and_folders_take_each_others_place_and_give_it_back() {
        let (f, d): (Paths<'_>, Paths<'_>) = (&[("x", file("1"))], &[("x/in", file("2"))]);
        check(f, d, d, f, &[]);
        check(d, f, f, d, &[]);
        let with_mine: Paths<'_> = &[("x/in", file("2")), ("x/mine", file("mine"))];
        check(f, d, with_mine, with_mine, &["x Holds"]);
        check_all(&[(f, d)], with_mine, Some(Decision::Theirs), f, &["x Holds"]);
        check(d, f, &[("x/mine", file("mine"))], with_mine, &[]);
        check(d, f, &[("x", file("mine"))], &[("x", file("mine"))], &["x Whole"]);
        check(f, d, &[("x", link("t"))], &[("x", link("t"))], &["x Replaced"]);
    }

    #[test]
    fn bits_are_taken_back_by_themselves() {
        let (open, closed): (Paths<'_>, Paths<'_>) =
            (&[("d", folder(0o755)), ("d/a", file("1"))], &[("d", folder(0o700)), ("d/a", file("1"))]);
        let edited: Paths<'_> = &[("d", folder(0o700)), ("d/a", file("mine"))];
        check(open, closed, edited, &[("d", folder(0o755)), ("d/a", file("mine"))], &[]);
        let other: Paths<'_> = &[("d", folder(0o711)), ("d/a", file("1"))];
        check(open, closed, other, other, &["d Mode"]);
        check(open, closed, &[], &[], &[]);
        let (plain, run): (Paths<'_>, Paths<'_>) = (&[("a", file("1"))], &[("a", executable("1", 0o755))]);
        check(plain, run, &[("a", executable("mine", 0o755))], &[("a", file("mine"))], &[]);
        check(plain, run, &[("a", executable("1", 0o700))], &[("a", executable("1", 0o700))], &["a Mode"]);
        // A file that came with the change, and whose bits somebody changed: that is told as what it is.
        check(&[], plain, run, run, &["a Mode"]);
        // The root has bits, too.
        let mut forest = Forest::default();
        let tree = forest.plant(plain);
        let root = |mode| Some(Entry::Folder { mode, tree, holds_skipped: false });
        let mut inverse = Inverse::default();
        inverse.add(WorkspacePath::root(), Link { after: root(0o755), before: root(0o700) });
        assert_eq!(drafted(&forest, tree, &inverse, None).root, RootState { tree, mode: 0o700 });
    }

    #[test]
    fn a_rename_takes_the_edit_along_only_where_there_is_room_for_it() {
        let (old, new): (Paths<'_>, Paths<'_>) = (&[("d/old", file(LONG))], &[("new", file(LONG))]);
        let edited: Paths<'_> = &[("new", file(TEXTS[5]))];
        check(old, new, edited, &[("d/old", file(TEXTS[5]))], &[]);
        // The folder's name is taken: the edited file must not go with nowhere to go to.
        let taken: Paths<'_> = &[("new", file(TEXTS[5])), ("d", file("mine"))];
        check(old, new, taken, taken, &["d Replaced", "new Edited"]);
        let taken: Paths<'_> = &[("new", file(TEXTS[5])), ("d/old", file("mine"))];
        check(old, new, taken, taken, &["d/old Replaced", "new Edited"]);
        // Nor one that nobody edited.
        for taken in [("d", file("mine")), ("d/old", file("mine")), ("d/old/mine", file("mine"))] {
            let now: Paths<'_> = &[("new", file(LONG)), taken.clone()];
            let conflicts: &[&str] =
                if taken.0 == "d" { &["d Replaced", "new NoRoom"] } else { &["d/old Replaced", "new NoRoom"] };
            check(old, new, now, now, conflicts);
            check_all(&[(old, new)], now, Some(Decision::Ours), now, conflicts);
            check_all(&[(old, new)], now, Some(Decision::Theirs), old, conflicts);
        }
        // One that somebody put back, or made again from nothing, is in nobody's way.
        check(old, new, &[("new", file(LONG)), ("d/old", file(LONG))], old, &[]);
    }

    #[test]
    fn changes_of_one_path_with_others_between_them_are_taken_back_one_by_one() {
        let [base, first, both, second]: [Paths<'_>; 4] =
            [&[("a", file(LONG))], &[("a", file(TEXTS[5]))], &[("a", file(TEXTS[7]))], &[("a", file(TEXTS[6]))]];
        // Somebody else's edit lies after the one that goes, or before it.
        check_all(&[(base, first)], both, None, second, &[]);
        check_all(&[(first, both)], both, None, first, &[]);
        // Two in a row are one: what lay between them is never asked for.
        let between: Paths<'_> = &[("a", file("never stored"))];
        check_all(&[(base, between), (between, both)], both, None, base, &[]);
        // Made, taken away by somebody, made again.
        check_all(&[(&[], base), (&[], first)], first, None, &[], &[]);
    }

    #[test]
    fn what_is_not_captured_now_is_asked_for_or_left_alone() {
        let mut forest = Forest::default();
        let change: [(Paths<'_>, Paths<'_>); 1] = [(&[("d/a", file("1")), ("s", file("1"))], &[])];
        let inverse = inverse(&mut forest, &change);
        let now = forest.plant(&[("d", skipped()), ("s", special())]);
        let out = drafted(&forest, now, &inverse, None);
        assert_eq!(out.root.tree, now);
        let shown = |paths: &[WorkspacePath]| paths.iter().map(|p| p.display().to_string()).collect::<Vec<_>>();
        assert_eq!(shown(&out.unknown), ["d", "d/a"]);
        assert_eq!(shown(&out.kept.into_iter().map(|(path, _)| path).collect::<Vec<_>>()), ["d", "s"]);
    }
}
