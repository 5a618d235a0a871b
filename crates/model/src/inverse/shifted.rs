//! Lines that one change took out of a file and put into another: they do not go from there as long as they do not come back.

use std::collections::{BTreeMap, BTreeSet};

use super::draft::Drafter;
use super::follow::Stays;
use super::{Conflict, Contents, Drafted, Inverse, Shift, Why};
use crate::content::Decision;
use crate::diff::{TreeSource, lookup};
use crate::id::ObjectId;
use crate::path::WorkspacePath;
use crate::plan::{Layered, RootState};
use crate::text;
use crate::tree::Entry;

/// Larger files are not looked at: each is read.
const LARGEST: u64 = 1 << 20;

/// Of more files that changed at once the rest is not looked at.
const MOST: usize = 200;

/// Fewer letters and digits than this say nothing of where a line came from: a brace, an `else`.
const FEWEST: usize = 5;

impl<S: TreeSource, C: Contents<Error = S::Error>> Drafter<'_, S, C> {
    /// Finds lines that would go from the file that they were put into and not be again in the one that they came from: the file
    /// with them stays.
    pub(super) fn keep_lines(&mut self, now: RootState, stays: &mut Stays) -> Result<(), S::Error> {
        let inverse = self.inverse;
        let looked =
            Looked { source: self.source, now, drafted: &self.out, content: &|path, blob| self.content(path, blob) };
        let may_stay = |path: &WorkspacePath| inverse.links.contains_key(path) && !stays.ends.contains_key(path);
        for (path, other) in looked.homeless(&inverse.shifts, may_stay)? {
            if self.decision == Some(Decision::Theirs) {
                let conflict = Conflict::open(path, Why::Lines);
                self.out.conflicts.push(Conflict { others: vec![other], decided: true, ..conflict });
            } else {
                stays.ends.insert(path, (other, Why::Lines));
            }
        }
        Ok(())
    }
}

/// The same where changes are carried over to an earlier moment: a change that took lines out of a file is carried over, and the
/// file that they were put into goes with the rest.
///
/// # Errors
/// Where a tree cannot be had.
pub fn lines_lost<S: TreeSource, C: Contents<Error = S::Error>>(
    source: &S,
    contents: &C,
    now: RootState,
    drafted: &Drafted,
    carried: &Inverse,
    decision: Option<Decision>,
) -> Result<Vec<Conflict>, S::Error> {
    let content = |path: &WorkspacePath, blob: &ObjectId| match drafted.new_blobs.get(blob) {
        Some(bytes) => Ok(bytes.clone()),
        None => contents.content(path, blob),
    };
    let looked = Looked { source, now, drafted, content: &content };
    let is_open = |path: &WorkspacePath| drafted.conflicts.iter().any(|conflict| conflict.holds(path));
    let found = looked.homeless(&carried.shifts, |path| !is_open(path))?;
    let conflict = |(path, other)| Conflict {
        others: vec![other],
        decided: matches!(decision, Some(Decision::Ours | Decision::Theirs)),
        ..Conflict::open(path, Why::Lines)
    };
    Ok(found.into_iter().map(conflict).collect())
}

/// Reads a blob that stands, or stood, at a path.
type Read<'a, E> = dyn Fn(&WorkspacePath, &ObjectId) -> Result<Vec<u8>, E> + 'a;

/// What there is now, and what is drafted.
struct Looked<'a, S: TreeSource> {
    source: &'a S,
    now: RootState,
    drafted: &'a Drafted,
    content: &'a Read<'a, S::Error>,
}

impl<S: TreeSource> Looked<'_, S> {
    /// The files that would lose lines which do not come back to where they came from, each with that file.
    fn homeless(
        &self,
        shifts: &[Shift],
        may_stay: impl Fn(&WorkspacePath) -> bool,
    ) -> Result<Vec<(WorkspacePath, WorkspacePath)>, S::Error> {
        let mut found: BTreeMap<WorkspacePath, WorkspacePath> = BTreeMap::new();
        for Shift { to, from } in shifts {
            let mut missing: Vec<(&WorkspacePath, BTreeSet<Vec<u8>>)> = Vec::new();
            for (path, was, is) in from.iter().take(MOST) {
                let then = self.drafted(path)?;
                // Nearly always: all of it is taken back, and nothing need be read.
                if then.as_ref().and_then(blob_of) == blob_of(was) {
                    continue;
                }
                let mut lost = self.lines_of(path, Some(was));
                for kept in [self.lines_of(path, is.as_ref()), self.lines_of(path, then.as_ref())] {
                    lost.retain(|line| !kept.contains(line));
                }
                if !lost.is_empty() {
                    missing.push((path, lost));
                }
            }
            if missing.is_empty() {
                continue;
            }
            for path in to.iter().filter(|path| may_stay(path)).take(MOST) {
                let here = lookup(self.source, &self.now.tree, path)?;
                let then = self.drafted(path)?;
                if found.contains_key(path) || here == then {
                    continue;
                }
                let mut goes = self.lines_of(path, here.as_ref());
                let left = self.lines_of(path, then.as_ref());
                goes.retain(|line| !left.contains(line));
                let came_from =
                    |(other, lost): &&(&WorkspacePath, BTreeSet<Vec<u8>>)| *other != path && !lost.is_disjoint(&goes);
                if let Some((other, _)) = missing.iter().find(came_from) {
                    found.insert(path.clone(), (*other).clone());
                }
            }
        }
        Ok(found.into_iter().collect())
    }

    fn drafted(&self, path: &WorkspacePath) -> Result<Option<Entry>, S::Error> {
        let layered = Layered { over: &self.drafted.new_trees, under: self.source };
        lookup(&layered, &self.drafted.root.tree, path)
    }

    /// The lines of a text that say where they came from, without the blanks around them: none where it cannot be read.
    fn lines_of(&self, path: &WorkspacePath, entry: Option<&Entry>) -> BTreeSet<Vec<u8>> {
        let Some(Entry::File { blob, size, .. }) = entry else { return BTreeSet::new() };
        let content = if *size > LARGEST { None } else { (self.content)(path, blob).ok() };
        let Some(content) = content.filter(|content| !text::is_binary(content)) else { return BTreeSet::new() };
        let says =
            |line: &&[u8]| line.iter().filter(|byte| byte.is_ascii_alphanumeric() || **byte >= 0x80).count() >= FEWEST;
        content.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(says).map(<[u8]>::to_vec).collect()
    }
}

fn blob_of(entry: &Entry) -> Option<ObjectId> {
    match entry {
        Entry::File { blob, .. } => Some(*blob),
        _ => None,
    }
}
