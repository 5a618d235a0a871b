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

mod draft;
mod follow;
mod shifted;

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use draft::Drafter;
use follow::{Stays, home};
pub use shifted::lines_lost;

use crate::content::{Clash, Decision, Labels};
use crate::diff::TreeSource;
use crate::edit::NewTrees;
use crate::id::ObjectId;
use crate::moves::Move;
use crate::path::WorkspacePath;
use crate::plan::RootState;
use crate::trail::{Sorted, Trail};
use crate::tree::{Entry, SkipReason};

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
    /// What changed since the first of these changes: lines may have gone from one path to another.
    altered: Vec<Altered>,
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

    /// Says what changed since the first of these changes, whosever doing it was, oldest first: lines of others' that were carried
    /// from one file to another do not go from there as long as they do not come back.
    pub fn altered(&mut self, altered: impl IntoIterator<Item = Altered>) {
        self.altered.extend(altered);
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

/// One change of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Altered {
    /// Where.
    pub path: WorkspacePath,
    /// What was there.
    pub was: Option<Entry>,
    /// What is there since.
    pub is: Option<Entry>,
    /// Whether it goes back.
    pub is_taken: bool,
    /// Whether it was, or may have been, by somebody else than the user: a line that the user deleted is not missed.
    pub is_others: bool,
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

    /// Names another path that it is about. Where lines came from goes first: that is what a reader looks for.
    fn name_also(&mut self, why: Why, other: &WorkspacePath) {
        if self.path != *other && !self.others.contains(other) {
            let at = if why == Why::Lines { 0 } else { self.others.len() };
            self.others.insert(at, other.clone());
        }
    }

    /// Whether everything that it is about stays as it is now: undecided, or decided so where it is about a place.
    pub fn stays(&self, decision: Option<Decision>) -> bool {
        let is_of_place = matches!(self.why, Why::NoRoom | Why::Moved | Why::Lines | Why::Tied);
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
    /// It holds lines that came from a file which stays without them.
    Lines,
    /// Lines that stood in it are in a file in conflict.
    Tied,
    /// A folder that must go holds things of others.
    Holds,
    /// It holds things that are not captured, and a file would have to take its place.
    Skipped,
    /// It is no folder, and only paths in the folder that stood there are asked for.
    InTheWay,
    /// It only goes along with what is asked for, and holds edits of others since.
    Along,
}

impl Why {
    /// Whether a [`Decision`] can settle it.
    pub fn can_be_decided(self) -> bool {
        !matches!(self, Self::Skipped | Self::InTheWay | Self::Along)
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
            Self::Lines => "holds lines that came from another file, to which they would not come back",
            Self::Tied => "left alone with a file in conflict, which holds lines of it",
            Self::Holds => "holds files that others put there",
            Self::Skipped => "holds things that are not captured, and a file would have to take its place",
            Self::Along => "goes along with what is asked for, and holds edits of others since",
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
    draft_with(source, contents, now, inverse, decision, &LABELS, false)
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
    let mut drafted = draft_with(source, contents, then, carried, turned, &labels, true)?;
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
    is_carried: bool,
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
            is_carried,
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
mod tests;
