//! Taking back chosen changes: what each path should hold so that they are undone and everything else stays.
//!
//! Each change is a [`Link`]: what it left, and what was there before. If nobody has touched the path since, it returns
//! to what it was; otherwise the inverse is merged in (base = what the change left, ours = now, theirs = what was there
//! before). What cannot be merged is a conflict, and its path is left alone unless a [`Decision`] says otherwise.
//!
//! A file that was moved, by anyone, is followed along its [`Trail`]: its path is merged like its content. Later edits
//! travel with the file, and where it cannot be moved, none of its paths is touched.
//!
//! The result is a root, so carrying it out is an operation like any other: from the current root to that one.

mod draft;
mod follow;
mod shifted;

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use draft::Drafter;
use follow::{Stays, home};
pub use shifted::lines_lost;

use crate::content::{Clash, Decision, Labels};
use crate::diff::{TreeSource, lookup};
use crate::edit::NewTrees;
use crate::id::ObjectId;
use crate::moves::Move;
use crate::path::WorkspacePath;
use crate::plan::{Layered, RootState};
use crate::trail::{Sorted, Trail};
use crate::tree::{Entry, SkipReason};

/// One change of a path, to be taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What the change left.
    pub after: Option<Entry>,
    pub before: Option<Entry>,
}

/// Changes to take back, by path.
#[derive(Clone, Debug, Default)]
pub struct Inverse {
    links: BTreeMap<WorkspacePath, Vec<Link>>,
    /// Changes of files that were moved.
    trails: Vec<Trail>,
    /// When carrying changes over to an earlier moment: files that were moved since then.
    since: Vec<Move>,
    /// Contents that arrived at a path while they disappeared from another one.
    sources: Vec<Source>,
    /// Everything that changed since the first of these changes: lines may have been carried from one path to another.
    altered: Vec<Altered>,
    /// Permission bits for folders that are recreated for what returns to them.
    folders: BTreeMap<WorkspacePath, u16>,
}

impl Inverse {
    /// Adds a change that is older than all changes added for its path so far. Consecutive changes are joined into one,
    /// so that the state between them is never needed.
    pub fn add(&mut self, path: WorkspacePath, link: Link) {
        let links = self.links.entry(path).or_default();
        match links.last_mut() {
            // A folder is reported with each file that was created or deleted with it.
            Some(newer)
                if is_same(newer.before.as_ref(), link.before.as_ref())
                    && is_same(newer.after.as_ref(), link.after.as_ref()) => {}
            Some(newer) if is_same(newer.before.as_ref(), link.after.as_ref()) => newer.before = link.before,
            _ => links.push(link),
        }
    }

    /// Adds changes that were sorted into trails, in the order in which they are made.
    pub fn add_sorted(&mut self, sorted: Sorted) {
        for taken in sorted.rest {
            self.add(taken.path, taken.link);
        }
        self.trails.extend(sorted.trails);
    }

    /// Sets which files were moved since the moment that changes are carried over to: such a file returns to its path
    /// at that moment, or stays where it is.
    pub fn moved_since(&mut self, moves: impl Iterator<Item = Move>) {
        self.since.extend(moves);
    }

    /// Records a content that arrived at a path while it disappeared from others: it is not removed from there unless
    /// one of those gets it back.
    pub fn source(&mut self, source: Source) {
        self.sources.push(source);
    }

    /// Records everything that changed since the first of these changes, by anyone, oldest first: other people's lines
    /// that were carried from one file to another are not removed unless they return to where they came from.
    pub fn altered(&mut self, altered: impl IntoIterator<Item = Altered>) {
        self.altered.extend(altered);
    }

    pub fn trails(&self) -> &[Trail] {
        &self.trails
    }

    pub fn retain_trails(&mut self, keep: impl FnMut(&Trail) -> bool) {
        self.trails.retain(keep);
    }

    pub fn remove(&mut self, path: &WorkspacePath) {
        self.links.remove(path);
    }

    /// Sets the permission bits for a folder in case it must be recreated.
    pub fn folder(&mut self, path: WorkspacePath, mode: u16) {
        self.folders.insert(path, mode);
    }

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

    pub fn is_empty(&self) -> bool {
        self.links.is_empty() && self.trails.is_empty()
    }

    /// The changes to take back at a path.
    pub fn links_of(&self, path: &WorkspacePath) -> &[Link] {
        self.links.get(path).map(|links| &links[..]).unwrap_or_default()
    }

    /// Every path with changes to take back, except those of moved files.
    pub fn paths(&self) -> impl Iterator<Item = &WorkspacePath> {
        self.links.keys()
    }
}

/// A content that arrived at a path while it disappeared from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Where it arrived.
    pub path: WorkspacePath,
    pub blob: ObjectId,
    /// Where it disappeared.
    pub from: Vec<WorkspacePath>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Altered {
    pub path: WorkspacePath,
    pub was: Option<Entry>,
    pub is: Option<Entry>,
    /// Whether this change is taken back.
    pub is_taken: bool,
    /// Whether somebody other than the user made it, or may have: a line that the user deleted is not missed.
    pub is_others: bool,
}

/// Access to contents.
pub trait Contents {
    type Error;

    /// The bytes of a blob that is, or was, at a path.
    fn content(&self, path: &WorkspacePath, blob: &ObjectId) -> Result<Vec<u8>, Self::Error>;
}

/// The result of taking changes back.
#[derive(Clone, Debug)]
pub struct Drafted {
    pub root: RootState,
    /// Its trees that no checkpoint has.
    pub new_trees: NewTrees,
    /// Its contents that no checkpoint has.
    pub new_blobs: HashMap<ObjectId, Vec<u8>>,
    /// Paths whose content is merged from now and before.
    pub merged: Vec<WorkspacePath>,
    /// Files that move to another path.
    pub moves: Vec<Move>,
    pub conflicts: Vec<Conflict>,
    /// Paths left alone because what is there is unknown.
    pub kept: Vec<(WorkspacePath, SkipReason)>,
    /// Paths where a rule skipped what is there now: capture them and draft again.
    pub unknown: Vec<WorkspacePath>,
}

impl Drafted {
    /// A state as it is, with nothing merged, moved or in conflict.
    pub fn of(root: RootState) -> Self {
        Self {
            root,
            new_trees: NewTrees::new(),
            new_blobs: HashMap::new(),
            merged: Vec::new(),
            moves: Vec::new(),
            conflicts: Vec::new(),
            kept: Vec::new(),
            unknown: Vec::new(),
        }
    }
}

/// A path where taking the changes back is incompatible with later edits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub path: WorkspacePath,
    /// The other paths of a moved file: they are left alone with it.
    pub others: Vec<WorkspacePath>,
    pub why: Why,
    /// The clashing places, for a clash of contents.
    pub clashes: Vec<Clash>,
    /// Whether it was decided; if not, the path is left alone.
    pub decided: bool,
}

impl Conflict {
    /// An undecided conflict without clashes or other paths.
    pub fn open(path: WorkspacePath, why: Why) -> Self {
        Self { path, others: Vec::new(), why, clashes: Vec::new(), decided: false }
    }

    /// Every path that the conflict affects.
    pub fn paths(&self) -> impl Iterator<Item = &WorkspacePath> {
        [&self.path].into_iter().chain(&self.others)
    }

    /// Adds another path that it affects. Where lines came from goes first: that is what a reader looks for.
    fn name_also(&mut self, why: Why, other: &WorkspacePath) {
        if self.path != *other && !self.others.contains(other) {
            let at = if why == Why::Lines { 0 } else { self.others.len() };
            self.others.insert(at, other.clone());
        }
    }

    /// Whether all affected paths stay as they are now: undecided, or decided that way for a conflict about a path.
    pub fn stays(&self, decision: Option<Decision>) -> bool {
        let is_of_place = matches!(
            self.why,
            Why::NoRoom | Why::Moved | Why::Lines | Why::Tied | Why::Replaced | Why::Holds | Why::Decided
        );
        !self.decided || (is_of_place && decision == Some(Decision::Ours))
    }

    /// Whether the conflict leaves this path alone.
    pub fn holds(&self, path: &WorkspacePath) -> bool {
        self.paths().any(|one| path.is_within(one))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The same lines were changed since.
    SamePlace,
    /// It was changed since, and can only be taken as a whole.
    Whole,
    /// It was created by what is taken back and edited since: the edit would be deleted with it.
    Edited,
    /// It was deleted since.
    Deleted,
    /// Something of another kind is there now.
    Replaced,
    /// Its mode was changed since.
    Mode,
    /// It was moved, and something else is where it would have to go.
    NoRoom,
    /// It was moved again since.
    Moved,
    /// It was moved there, and what happened at its old path is not taken back.
    Half,
    /// It contains lines from a file that would stay without them.
    Lines,
    /// Lines that used to be in it are in a file in conflict.
    Tied,
    /// A folder that must be deleted contains things of others.
    Holds,
    /// It contains things that are not captured, and a file would have to take its place.
    Skipped,
    /// It is not a folder, and only paths in the folder that used to be there are requested.
    InTheWay,
    /// It would lose lines that a decision about an earlier conflict brought back.
    Decided,
    /// It is only affected as the other end of a requested move, and others have edited it since.
    Along,
    /// It differs from a checkpoint of another folder since this one was first captured: what of it is whose is not known.
    Beginning,
}

impl Why {
    /// Whether a [`Decision`] can settle it.
    pub fn can_be_decided(self) -> bool {
        !matches!(self, Self::Skipped | Self::InTheWay | Self::Along | Self::Beginning)
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
            Self::Decided => "would lose lines that your decision about an earlier conflict brought back",
            Self::Along => "goes along with what is asked for, and holds edits of others since",
            Self::Beginning => {
                "differed already when this folder was first captured, so what of it is yours is not known"
            }
            Self::InTheWay => "is not a folder now, and what is asked for was in a folder there",
        }
    }
}

/// Drafts the result of taking changes back from the current state.
///
/// # Errors
/// When a tree or a content cannot be read.
pub fn draft<S: TreeSource, C: Contents<Error = S::Error>>(
    source: &S,
    contents: &C,
    now: RootState,
    inverse: &Inverse,
    decision: Option<Decision>,
) -> Result<Drafted, S::Error> {
    draft_with(source, contents, now, inverse, decision, &LABELS, false)
}

/// Drafts an earlier moment with some changes carried over to it: the same merge in the other direction. The changes
/// are given oldest first, each as what was there before it and what it left; the current state is on their side.
///
/// # Errors
/// When a tree or a content cannot be read.
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
        // A file whose old path stays occupied stays where it is, and may thereby occupy the old path of another.
        while let Some(one) = carried.since.iter().find(|one| conflict.holds(&one.from) && !conflict.holds(&one.to)) {
            conflict.others.push(one.to.clone());
        }
    }
    drafted.moves = moves_from_now(source, &drafted, carried)?;
    Ok(drafted)
}

/// The moves of a draft that begins at an earlier moment, as they are from the current state: files that were moved since return.
fn moves_from_now<S: TreeSource>(source: &S, drafted: &Drafted, carried: &Inverse) -> Result<Vec<Move>, S::Error> {
    let layered = Layered { over: &drafted.new_trees, under: source };
    let mut moves: Vec<Move> = Vec::new();
    for one in &carried.since {
        let end = drafted.moves.iter().find(|other| other.from == one.from).map_or(&one.from, |other| &other.to);
        let is_file = matches!(lookup(&layered, &drafted.root.tree, end)?, Some(Entry::File { .. }));
        if *end != one.to && is_file {
            moves.push(Move { from: one.to.clone(), to: end.clone() });
        }
    }
    let stood = |one: &&Move| !carried.since.iter().any(|other| other.from == one.from);
    moves.extend(drafted.moves.iter().filter(stood).cloned());
    Ok(moves)
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
    // What turns out to have nowhere to go stays, and may then be in the way of others.
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
            out: Drafted::of(now),
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

/// What the sides are called in conflict markers.
const LABELS: Labels<'static> = Labels { ours: "now", base: "what is taken back", theirs: "before" };

/// Whether two entries are the same for taking back: a folder is compared by its bits, its contents on their own.
fn is_same(a: Option<&Entry>, b: Option<&Entry>) -> bool {
    match (a, b) {
        (Some(Entry::Folder { mode: a, .. }), Some(Entry::Folder { mode: b, .. })) => a == b,
        _ => a == b,
    }
}

#[cfg(test)]
mod tests;
