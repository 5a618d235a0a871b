//! Taking back chosen changes: what should stand at each path so that they are undone and everything else stays.
//!
//! Each change is a [`Link`]: what it left and what was there before. Where nobody touched the path since, it becomes what
//! it was; where somebody did, the inverse is merged in (base = what the change left, ours = now, theirs = what was there
//! before). What cannot be merged is a conflict, and its path is left alone unless a [`Decision`] says otherwise.
//!
//! A file that was moved, by whomever, is followed by its [`Trail`]: its path is merged like its content, so what somebody
//! edited goes along to where the file goes, and where it cannot go, nothing of it is touched at any of its paths.
//!
//! The result is a root, so that carrying it out is an operation like any other: from now to that root.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::content::{self, Clash, Decision, Labels};
use crate::diff::{TreeSource, lookup};
use crate::edit::{Edit, NewTrees, edit, keep};
use crate::id::ObjectId;
use crate::moves::{Move, Place};
use crate::path::{EntryName, WorkspacePath};
use crate::plan::{Layered, RootState};
use crate::text;
use crate::trail::{Sorted, Trail, TrailStep};
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
    /// Those of files that were moved.
    trails: Vec<Trail>,
    /// Where changes are carried over to an earlier moment: files that were moved since then.
    since: Vec<Move>,
    /// Contents that came to a path while they went from another one.
    sources: Vec<Source>,
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

    /// Adds changes that were sorted, in the order in which they are made.
    pub fn add_sorted(&mut self, sorted: Sorted) {
        for taken in sorted.rest {
            self.add(taken.path, taken.link);
        }
        self.trails.extend(sorted.trails);
    }

    /// Says which files were moved since the moment that changes are carried over to: such a file goes back to where it was then,
    /// or stays where it is.
    pub fn moved_since(&mut self, moves: impl Iterator<Item = Move>) {
        self.since.extend(moves);
    }

    /// Says that a content came to a path while it went from others: it does not go from there as long as none of those has it
    /// again.
    pub fn source(&mut self, source: Source) {
        self.sources.push(source);
    }

    /// The files that were moved.
    pub fn trails(&self) -> &[Trail] {
        &self.trails
    }

    /// Leaves files that were moved out after all.
    pub fn retain_trails(&mut self, keep: impl FnMut(&Trail) -> bool) {
        self.trails.retain(keep);
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
        let Some(links) = self.links.get(path) else {
            let steps = self.trails.iter().filter(|trail| trail.paths().contains(path)).flat_map(|trail| &trail.steps);
            return steps.last().and_then(|step| step.to.as_ref()).map(|(_, entry)| entry);
        };
        links.last()?.before.as_ref().or(links.first()?.after.as_ref())
    }

    /// Whether there is nothing to take back.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty() && self.trails.is_empty()
    }

    /// What is to be taken back at a path.
    pub fn links_of(&self, path: &WorkspacePath) -> &[Link] {
        self.links.get(path).map(|links| &links[..]).unwrap_or_default()
    }

    /// Every path with something to take back, without those of files that were moved.
    pub fn paths(&self) -> impl Iterator<Item = &WorkspacePath> {
        self.links.keys()
    }
}

/// A content that came to a path while it went from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Where it came to.
    pub path: WorkspacePath,
    /// Which.
    pub blob: ObjectId,
    /// Where it went from.
    pub from: Vec<WorkspacePath>,
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
    /// Files that go to another path.
    pub moves: Vec<Move>,
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
    /// The other paths of a file that was moved: they are left alone with it.
    pub others: Vec<WorkspacePath>,
    /// Why.
    pub why: Why,
    /// The places, where contents clash.
    pub clashes: Vec<Clash>,
    /// Whether it was decided; where not, the path is left alone.
    pub decided: bool,
}

impl Conflict {
    /// One that is open, with nothing more to say of it.
    pub fn open(path: WorkspacePath, why: Why) -> Self {
        Self { path, others: Vec::new(), why, clashes: Vec::new(), decided: false }
    }

    /// Every path that it is about.
    pub fn paths(&self) -> impl Iterator<Item = &WorkspacePath> {
        [&self.path].into_iter().chain(&self.others)
    }

    /// Whether everything that it is about stays as it is now: undecided, or decided so where it is about a place.
    pub fn stays(&self, decision: Option<Decision>) -> bool {
        let is_of_place = matches!(self.why, Why::NoRoom | Why::Moved);
        !self.decided || (is_of_place && decision == Some(Decision::Ours))
    }

    /// Whether a path is left alone where this is.
    pub fn holds(&self, path: &WorkspacePath) -> bool {
        self.paths().any(|one| path.is_within(one))
    }
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
    /// It was moved, and something else stands where it would have to go.
    NoRoom,
    /// It was moved on since.
    Moved,
    /// It was moved there, and what happened to its old place is not taken back.
    Half,
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
            Self::NoRoom => "something else stands where it would go",
            Self::Moved => "moved on since",
            Self::Half => "its content came from where it would not come back to",
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
///
/// # Errors
/// Where a tree or a content cannot be had.
pub fn draft_carried<S: TreeSource, C: Contents<Error = S::Error>>(
    source: &S,
    contents: &C,
    then: RootState,
    carried: &Inverse,
    decision: Option<Decision>,
) -> Result<Drafted, S::Error> {
    let turned = decision.map(|decision| match decision {
        Decision::Ours => Decision::Theirs,
        Decision::Theirs => Decision::Ours,
        Decision::Markers => Decision::Markers,
    });
    let labels = Labels { ours: LABELS.theirs, base: LABELS.base, theirs: LABELS.ours };
    let mut drafted = draft_with(source, contents, then, carried, turned, &labels)?;
    for conflict in &mut drafted.conflicts {
        conflict.clashes.iter_mut().for_each(|clash| std::mem::swap(&mut clash.ours, &mut clash.theirs));
        // A file whose old place stays taken stays where it is, and so may take the old place of another.
        while let Some(one) = carried.since.iter().find(|one| conflict.holds(&one.from) && !conflict.holds(&one.to)) {
            conflict.others.push(one.to.clone());
        }
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
    // What turns out to have no place stays, and may be in the way of others then.
    let mut stays = Stays::default();
    loop {
        let mut drafter = Drafter {
            source,
            contents,
            inverse,
            decision,
            labels,
            homes: inverse.trails.iter().flat_map(Trail::places).filter_map(home).collect(),
            out: Drafted {
                root: now,
                new_trees: NewTrees::new(),
                new_blobs: HashMap::new(),
                merged: Vec::new(),
                moves: Vec::new(),
                conflicts: Vec::new(),
                kept: Vec::new(),
                unknown: Vec::new(),
            },
        };
        let known = stays.len();
        drafter.draft(now, &mut stays)?;
        if stays.len() > known {
            continue;
        }
        let mut out = drafter.out;
        out.merged.sort();
        out.merged.dedup();
        let open: Vec<_> = out.conflicts.iter().filter(|conflict| !conflict.decided).collect();
        out.merged.retain(|path| !open.iter().any(|conflict| conflict.holds(path)));
        out.conflicts.sort_by(|a, b| a.path.cmp(&b.path));
        return Ok(out);
    }
}

/// Where a content is, or was.
fn home((path, entry): &Place) -> Option<(ObjectId, WorkspacePath)> {
    match entry {
        Entry::File { blob, .. } => Some((*blob, path.clone())),
        _ => None,
    }
}

/// What was found to have no place where it would go.
#[derive(Default)]
struct Stays {
    /// Trails, by their numbers.
    trails: BTreeSet<usize>,
    /// Paths whose content would be nowhere, each with one that it came from.
    ends: BTreeMap<WorkspacePath, (WorkspacePath, Why)>,
    /// What is not captured and stands where a file would go.
    skipped: Vec<(WorkspacePath, SkipReason)>,
}

impl Stays {
    fn len(&self) -> usize {
        self.trails.len() + self.ends.len()
    }
}

/// What becomes of a file that was moved.
struct Follows {
    /// Its number.
    trail: usize,
    /// Where it is in the state that is begun with.
    begins: Option<WorkspacePath>,
    /// What it becomes, and where.
    to: Option<Place>,
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
    /// Where contents of files that were moved are: at the path of the file's that had them.
    homes: HashMap<ObjectId, WorkspacePath>,
    out: Drafted,
}

impl<S: TreeSource, C: Contents<Error = S::Error>> Drafter<'_, S, C> {
    fn draft(&mut self, now: RootState, stays: &mut Stays) -> Result<(), S::Error> {
        let inverse = self.inverse;
        stays.skipped.iter().for_each(|(path, reason)| self.leave_skipped(path, *reason));
        let follows = self.follow(now, stays)?;
        // Files that go elsewhere are not in the way of what comes to their places.
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
        self.keep_named(now, stays)
    }

    /// Finds what would be done all the same at a path that an open conflict names: it stays, too.
    fn keep_named(&self, now: RootState, stays: &mut Stays) -> Result<(), S::Error> {
        let layered = Layered { over: &self.out.new_trees, under: self.source };
        let open = self.out.conflicts.iter().filter(|conflict| !conflict.decided);
        for (conflict, path) in open.flat_map(|conflict| conflict.others.iter().map(move |path| (conflict, path))) {
            if lookup(&layered, &self.out.root.tree, path)? == lookup(self.source, &now.tree, path)? {
                continue;
            }
            if self.inverse.links.contains_key(path) {
                stays.ends.entry(path.clone()).or_insert_with(|| (conflict.path.clone(), conflict.why));
            }
            let trails = self.inverse.trails.iter().enumerate().filter(|(_, trail)| trail.paths().contains(path));
            stays.trails.extend(trails.map(|(number, _)| number));
        }
        Ok(())
    }

    /// Finds contents that would go from where they came to and not be again where they came from: those paths stay.
    fn keep_sources(&mut self, now: RootState, stays: &mut Stays) -> Result<(), S::Error> {
        let inverse = self.inverse;
        let mut decided = Vec::new();
        for Source { path, blob, from } in &inverse.sources {
            let layered = Layered { over: &self.out.new_trees, under: self.source };
            let holds = |tree: &ObjectId, path: &WorkspacePath| -> Result<bool, S::Error> {
                let entry = lookup(&layered, tree, path)?;
                Ok(matches!(entry, Some(Entry::File { blob: found, .. }) if found == *blob))
            };
            let goes = holds(&now.tree, path)? && !holds(&self.out.root.tree, path)?;
            if !goes || stays.ends.contains_key(path) || !inverse.links.contains_key(path) {
                continue;
            }
            let mut is_back = false;
            for other in from {
                is_back |= holds(&self.out.root.tree, other)?;
            }
            match from.first() {
                Some(_) if !is_back && self.decision == Some(Decision::Theirs) => {
                    let conflict = Conflict::open(path.clone(), Why::Half);
                    decided.push(Conflict { others: from.clone(), decided: true, ..conflict });
                }
                Some(other) if !is_back => {
                    stays.ends.insert(path.clone(), (other.clone(), Why::Half));
                }
                _ => {}
            }
        }
        self.out.conflicts.extend(decided);
        Ok(())
    }

    /// A tree of the state that is drafted so far.
    fn tree(&self, id: &ObjectId) -> Result<Arc<Tree>, S::Error> {
        Layered { over: &self.out.new_trees, under: self.source }.tree(id)
    }

    fn edit(&mut self, edits: &[(WorkspacePath, Edit)]) -> Result<(), S::Error> {
        if !edits.is_empty() {
            let layered = Layered { over: &self.out.new_trees, under: self.source };
            let (tree, new) = edit(&layered, &self.out.root.tree, edits)?;
            self.out.root.tree = tree;
            self.out.new_trees.extend(new);
        }
        Ok(())
    }

    /// What becomes of the files that were moved, without those that stay as they are.
    fn follow(&mut self, now: RootState, stays: &Stays) -> Result<Vec<Follows>, S::Error> {
        let inverse = self.inverse;
        let mut all = Vec::new();
        for (number, trail) in inverse.trails.iter().enumerate() {
            let here = match &trail.begins {
                Some(path) => lookup(self.source, &now.tree, path)?.map(|entry| (path.clone(), entry)),
                None => None,
            };
            if let Some((path, Entry::Skipped { reason })) = here {
                self.leave_skipped(&path, reason);
                continue;
            }
            // Where no file of it should be, something else may stand; whether that makes room is seen when it is placed.
            let is_other = |(_, entry): &Place| !matches!(entry, Entry::File { .. });
            let begins_with_none = trail.steps.first().is_some_and(|step| step.from.is_none());
            let here = here.filter(|here| !(begins_with_none && is_other(here)));
            if let Some((path, Entry::File { blob, .. })) = &here {
                self.homes.entry(*blob).or_insert_with(|| path.clone());
            }
            let (conflicts, merged) = (self.out.conflicts.len(), self.out.merged.len());
            let to = self.along(trail, here.clone())?;
            let no_room = stays.trails.contains(&number);
            if no_room && to.is_ok() {
                let is_decided = self.decision == Some(Decision::Ours);
                self.conflict(&trail.now, Why::NoRoom, Vec::new(), is_decided);
            }
            for conflict in &mut self.out.conflicts[conflicts..] {
                conflict.others = trail.paths_but(&conflict.path);
            }
            self.out.merged.truncate(merged);
            let Ok(to) = to else { continue };
            if no_room || to == here {
                continue;
            }
            if let Some((path, _)) = to.as_ref().filter(|to| is_put_together(trail, here.as_ref(), to)) {
                self.out.merged.push(path.clone());
            }
            all.push(Follows { trail: number, begins: here.map(|(path, _)| path), to });
        }
        Ok(all)
    }

    /// Takes a file's steps one by one: its content and its path, each for itself.
    fn along(&mut self, trail: &Trail, here: Option<Place>) -> Result<Result<Option<Place>, Open>, S::Error> {
        let mut current = here;
        for step in &trail.steps {
            current = match self.one_step(&trail.now, current, step)? {
                Ok(next) => next,
                Err(Open) => return Ok(Err(Open)),
            };
        }
        Ok(Ok(current))
    }

    fn one_step(
        &mut self,
        name: &WorkspacePath,
        current: Option<Place>,
        step: &TrailStep,
    ) -> Result<Result<Option<Place>, Open>, S::Error> {
        let (from, to) = (step.from.as_ref(), step.to.as_ref());
        let is_move = matches!((from, to), (Some((from, _)), Some((to, _))) if from != to);
        let (path, entry) = match current {
            // Somebody deleted it where it went; where it was, it was deleted by the move.
            None if is_move => return Ok(Ok(to.cloned())),
            None => (None, None),
            Some((path, entry @ Entry::File { .. })) => (Some(path), Some(entry)),
            Some(other) => return Ok(self.decide(name, Why::Replaced, Some(other), to.cloned())),
        };
        let link = Link { after: from.map(|(_, entry)| entry.clone()), before: to.map(|(_, entry)| entry.clone()) };
        let entry = match self.take_back(name, entry, &link)? {
            Ok(entry) => entry,
            Err(Open) => return Ok(Err(Open)),
        };
        let path = match (path, to) {
            (None, to) => to.map(|(to, _)| to.clone()),
            (Some(path), Some((to, _))) if is_move && path != *to => match from {
                Some((from, _)) if *from == path => Some(to.clone()),
                // Somebody else moved it on.
                _ => match self.decide(name, Why::Moved, Some(path), Some(to.clone())) {
                    Ok(path) => path,
                    Err(Open) => return Ok(Err(Open)),
                },
            },
            (path, _) => path,
        };
        Ok(Ok(path.zip(entry)))
    }

    /// Puts files that were moved where they go. Those for which there is no room stay, all of them.
    fn place(&mut self, now: RootState, follows: Vec<Follows>, stays: &mut Stays) -> Result<(), S::Error> {
        let mut taken: BTreeSet<WorkspacePath> = BTreeSet::new();
        let mut edits: BTreeMap<WorkspacePath, Edit> = BTreeMap::new();
        for one in follows {
            let Some((path, entry)) = one.to else { continue };
            if one.begins.as_ref() == Some(&path) {
                continue;
            }
            let layered = Layered { over: &self.out.new_trees, under: self.source };
            let here = lookup(&layered, &self.out.root.tree, &path)?;
            if let Some(Entry::Skipped { reason }) = here {
                stays.skipped.push((path, reason));
                stays.trails.insert(one.trail);
                continue;
            }
            let mut ways = Vec::new();
            let mut is_free = here.is_none() || here.as_ref() == Some(&entry);
            let mut at = path.clone();
            while let Some((above, _)) = at.split().filter(|(above, _)| !above.is_root()) {
                match lookup(&layered, &self.out.root.tree, &above)? {
                    Some(Entry::Folder { .. }) => break,
                    found => {
                        is_free &= found.is_none();
                        let mode = match lookup(self.source, &now.tree, &above)? {
                            Some(Entry::Folder { mode, .. }) => mode,
                            _ => self.inverse.folders.get(&above).copied().unwrap_or(0o755),
                        };
                        ways.push((above.clone(), mode));
                    }
                }
                at = above;
            }
            // A folder sorts right before what it holds.
            let holds_one = taken.range(&path..).next().is_some_and(|other| other.is_within(&path));
            let mut above = path.split();
            let mut is_held = false;
            while let Some((folder, _)) = above.filter(|_| !is_held) {
                is_held = taken.contains(&folder);
                above = folder.split();
            }
            let collides = holds_one || is_held;
            if !is_free || collides {
                if collides || self.decision != Some(Decision::Theirs) {
                    stays.trails.insert(one.trail);
                    continue;
                }
                let trail = &self.inverse.trails[one.trail];
                self.conflict(&trail.now, Why::NoRoom, Vec::new(), true);
                if let Some(conflict) = self.out.conflicts.last_mut() {
                    conflict.others = trail.paths_but(&trail.now);
                }
            }
            for (above, mode) in ways {
                let folder = self.folder_of(mode, Tree::default());
                edits.entry(above).or_insert(Edit::Put(Some(folder)));
            }
            self.out.moves.extend(one.begins.map(|from| Move { from, to: path.clone() }));
            taken.insert(path.clone());
            edits.insert(path, Edit::Put(Some(entry)));
        }
        self.edit(&edits.into_iter().collect::<Vec<_>>())
    }

    /// Leaves a path alone because what is there was not captured.
    fn leave_skipped(&mut self, path: &WorkspacePath, reason: SkipReason) {
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
        // What it holds first: whether a folder may go depends on what is left in it.
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
                let was = match was {
                    // What it held went path by path, and comes back so.
                    Some(Folder { mode, .. }) if base.is_none() => Some(self.folder_of(*mode, Tree::default())),
                    was => was.cloned(),
                };
                self.decide(path, why, Some(here), was)
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
        self.out.conflicts.push(Conflict { clashes, decided, ..Conflict::open(path.clone(), why) });
    }

    fn content(&self, path: &WorkspacePath, blob: &ObjectId) -> Result<Vec<u8>, S::Error> {
        match self.out.new_blobs.get(blob) {
            Some(bytes) => Ok(bytes.clone()),
            None => self.contents.content(self.homes.get(blob).unwrap_or(path), blob),
        }
    }

    fn is_empty(&self, tree: &ObjectId) -> Result<bool, S::Error> {
        let tree = self.tree(tree)?;
        Ok(tree.entries().is_empty() && !tree.has_git)
    }
}

/// Whether what a file that was moved becomes has something of now and something of before: its content is none that is known,
/// or it goes elsewhere with what somebody made of it since.
fn is_put_together(trail: &Trail, here: Option<&Place>, (path, entry): &Place) -> bool {
    let Some((begins, here)) = here else { return false };
    let is_known = entry == here || trail.places().any(|(_, known)| known == entry);
    let left = trail.steps.first().and_then(|step| step.from.as_ref());
    let was_edited = left.is_some_and(|(_, left)| left != here);
    !is_known || (begins != path && was_edited)
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
    use crate::moves::{Happened, pair};
    use crate::trail::{self, Begin, Moved, Taken};
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

    const TEXTS: [&str; 9] =
        ["1", "2", "3", "mine", LONG, "1\nx\n3\n4\n5\n", "1\n2\n3\n4\ny\n", "1\nx\n3\n4\ny\n", "1\nY\n3\n4\n5\n"];
    const LONG: &str = "1\n2\n3\n4\n5\n";

    fn known() -> Known {
        Known(TEXTS.iter().map(|t| (ObjectId::of_blob(t.as_bytes()), t.as_bytes().to_vec())).collect())
    }

    /// The inverse of changes, each from one tree to the next, given oldest first. Those of others, between them and before
    /// what is there now, are followed where they move files.
    fn inverse(forest: &mut Forest, changes: &[(Paths<'_>, Paths<'_>)], now: Paths<'_>) -> Inverse {
        let mut inverse = Inverse::default();
        let mut taken = Vec::new();
        let mut moved = Vec::new();
        let mut last = None;
        let mut at = 0;
        let all = changes.iter().map(|change| (*change, true)).chain([((now, now), false)]);
        for ((before, after), is_taken) in all {
            let (before, after) = (forest.plant(before), forest.plant(after));
            if let Some(last) = last.replace(after) {
                at += 1;
                moved.push((at, moves(forest, last, before)));
            }
            if !is_taken {
                continue;
            }
            at += 1;
            moved.push((at, moves(forest, before, after)));
            for change in diff::changes(&forest.0, Some(&before), Some(&after)).unwrap() {
                let mut above_it = change.path.clone();
                while let Some((above, _)) =
                    above_it.split().filter(|(above, _)| change.after.is_none() && !above.is_root())
                {
                    if let Some(Entry::Folder { mode, .. }) = lookup(&forest.0, &before, &above).unwrap() {
                        inverse.folder(above.clone(), mode);
                    }
                    above_it = above;
                }
                taken.push(Taken { at, path: change.path, link: Link { after: change.after, before: change.before } });
            }
        }
        taken.sort_by_key(|one| std::cmp::Reverse(one.at));
        inverse.add_sorted(trail::follow(taken, &Moved::new(moved), Begin::Now));
        inverse
    }

    fn moves(forest: &Forest, before: ObjectId, after: ObjectId) -> Vec<Move> {
        let mut happened = Happened::default();
        for change in diff::changes(&forest.0, Some(&before), Some(&after)).unwrap() {
            happened.add(&change.path, change.before, change.after);
        }
        pair(&known(), &happened, |_| true).moves
    }

    fn drafted(forest: &Forest, now: ObjectId, inverse: &Inverse, decision: Option<Decision>) -> Drafted {
        draft(&forest.0, &known(), RootState { tree: now, mode: 0o755 }, inverse, decision).unwrap()
    }

    /// Takes back one change and checks what is left, and the conflicts: `path why`.
    fn check(before: Paths<'_>, after: Paths<'_>, now: Paths<'_>, expected: Paths<'_>, conflicts: &[&str]) {
        check_all(&[(before, after)], now, None, expected, conflicts);
    }

    fn shown(conflict: &Conflict) -> String {
        let others: Vec<_> = conflict.others.iter().map(WorkspacePath::display).collect();
        let others = if others.is_empty() { String::new() } else { format!("+{}", others.join(",")) };
        format!("{}{others} {:?}", conflict.path.display(), conflict.why)
    }

    fn check_all(
        changes: &[(Paths<'_>, Paths<'_>)],
        now: Paths<'_>,
        decision: Option<Decision>,
        expected: Paths<'_>,
        conflicts: &[&str],
    ) {
        let mut forest = Forest::default();
        let inverse = inverse(&mut forest, changes, now);
        let (now, expected) = (forest.plant(now), forest.plant(expected));
        let out = drafted(&forest, now, &inverse, decision);
        let found: Vec<String> = out.conflicts.iter().map(shown).collect();
        assert_eq!(found, conflicts, "{decision:?} {now:?}");
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
    fn a_move_takes_the_edit_along_only_where_there_is_room_for_it() {
        let (old, new): (Paths<'_>, Paths<'_>) = (&[("d/old", file(LONG))], &[("new", file(LONG))]);
        let edited: Paths<'_> = &[("new", file(TEXTS[5]))];
        check(old, new, edited, &[("d/old", file(TEXTS[5]))], &[]);
        // Its old place is taken, or its folder's: the file must not go with nowhere to go to, edited or not.
        for content in [LONG, TEXTS[5]] {
            for taken in [("d", file("mine")), ("d/old", file("mine")), ("d/old/mine", file("mine"))] {
                let both: &[&str] = &["d Replaced", "new+d/old NoRoom"];
                let conflicts = if taken.0 == "d" { both } else { &both[1..] };
                let now: Paths<'_> = &[("new", file(content)), taken.clone()];
                check(old, new, now, now, conflicts);
                check_all(&[(old, new)], now, Some(Decision::Ours), now, conflicts);
                let back: Paths<'_> = &[("d/old", file(content))];
                // Decided for the folder, there is room in it.
                let decided = if taken.0 == "d" { &both[..1] } else { conflicts };
                check_all(&[(old, new)], now, Some(Decision::Theirs), back, decided);
            }
        }
        // One that somebody put back, or made again from nothing, is in nobody's way.
        check(old, new, &[("new", file(LONG)), ("d/old", file(LONG))], old, &[]);
    }

    #[test]
    fn a_conflict_leaves_every_path_of_a_moved_file_alone() {
        let texts = |n: usize| file(["1\n2\n3\n4\n5\n", "1\nx\n3\n4\n5\n", "1\nY\n3\n4\n5\n"][n]);
        let [first, agent, mine, moved]: [Paths<'_>; 4] =
            [&[("f", texts(0))], &[("f", texts(1))], &[("f", texts(2))], &[("g", texts(2))]];
        // Edited, edited by somebody else at the same place, moved.
        let changes = [(first, agent), (mine, moved)];
        check_all(&changes, moved, None, moved, &["g+f SamePlace"]);
        check_all(&changes, moved, Some(Decision::Theirs), first, &["g+f SamePlace"]);
        check_all(&changes, moved, Some(Decision::Ours), mine, &["g+f SamePlace"]);
        // Moved on by somebody else.
        let (g, h): (Paths<'_>, Paths<'_>) = (&[("g", texts(0))], &[("h", texts(0))]);
        check_all(&[(first, g)], h, None, h, &["h+f,g Moved"]);
        check_all(&[(first, g)], h, Some(Decision::Ours), h, &["h+f,g Moved"]);
        check_all(&[(first, g)], h, Some(Decision::Theirs), first, &["h+f,g Moved"]);
    }

    #[test]
    fn a_content_stays_where_it_came_to_until_it_is_back_where_it_came_from() {
        let mut forest = Forest::default();
        let (none, made): (Paths<'_>, Paths<'_>) = (&[], &[("g", file("mine"))]);
        let back: Paths<'_> = &[("f", file("mine")), ("g", file("mine"))];
        let path = |path: &str| WorkspacePath::new(path).unwrap();
        for (now, decision, conflicts, left) in [
            (made, None, &["g+f Half"][..], made),
            (made, Some(Decision::Ours), &["g+f Half"], made),
            (made, Some(Decision::Theirs), &["g+f Half"], none),
            (back, None, &[], &back[..1]),
        ] {
            let mut inverse = inverse(&mut forest, &[(none, made)], now);
            inverse.source(Source { path: path("g"), blob: ObjectId::of_blob(b"mine"), from: vec![path("f")] });
            let (now, left) = (forest.plant(now), forest.plant(left));
            let out = drafted(&forest, now, &inverse, decision);
            assert_eq!(out.conflicts.iter().map(shown).collect::<Vec<_>>(), conflicts);
            assert_eq!(out.root.tree, left, "{decision:?}");
        }
    }

    #[test]
    fn an_edit_of_others_goes_along_a_chain_of_moves() {
        let [f, g, edited, h]: [Paths<'_>; 4] =
            [&[("f", file(LONG))], &[("g", file(LONG))], &[("g", file(TEXTS[5]))], &[("h", file(TEXTS[5]))]];
        check_all(&[(f, g), (edited, h)], h, None, &[("f", file(TEXTS[5]))], &[]);
        // Moved, edited by somebody else, edited.
        let again: Paths<'_> = &[("g", file(TEXTS[7]))];
        check_all(&[(f, g), (edited, again)], again, None, &[("f", file(TEXTS[5]))], &[]);
        // Edited, and moved by somebody else.
        let (changed, elsewhere): (Paths<'_>, Paths<'_>) = (&[("f", file(TEXTS[6]))], &[("z/f", file(TEXTS[6]))]);
        check_all(&[(f, changed)], elsewhere, None, &[("z/f", file(LONG))], &[]);
        // Another file had the name, and comes back to it.
        let (both, one): (Paths<'_>, Paths<'_>) = (&[("f", file(LONG)), ("g", file("1"))], &[("f", file(LONG))]);
        check_all(&[(both, one), (f, g)], edited, None, &[("f", file(TEXTS[5])), ("g", file("1"))], &[]);
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
        let there: Paths<'_> = &[("d", skipped()), ("s", special())];
        let inverse = inverse(&mut forest, &change, there);
        let now = forest.plant(there);
        let out = drafted(&forest, now, &inverse, None);
        assert_eq!(out.root.tree, now);
        let shown = |paths: &[WorkspacePath]| paths.iter().map(|p| p.display().to_string()).collect::<Vec<_>>();
        assert_eq!(shown(&out.unknown), ["d", "d/a"]);
        assert_eq!(shown(&out.kept.into_iter().map(|(path, _)| path).collect::<Vec<_>>()), ["d", "s"]);
    }
}
