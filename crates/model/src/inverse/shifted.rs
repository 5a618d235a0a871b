//! Lines that were taken out of one file and put into another: they are not removed from there unless they return.
//!
//! Taking back a session's work takes back what it wrote, and nothing that was there before or that others wrote. A
//! line that the session only carried from one file to another, at once or in several steps, must exist somewhere in
//! the end. So for everything that changed lately: if anybody but the user took another author's line out of a file,
//! and neither this file nor any other will have it, the file that contains it now is kept. Lines that are in most
//! files anyway do not count.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::draft::Drafter;
use super::follow::Stays;
use super::{Altered, Conflict, Contents, Drafted, Inverse, Why};
use crate::content::Decision;
use crate::diff::{TreeSource, lookup};
use crate::id::ObjectId;
use crate::path::WorkspacePath;
use crate::plan::{Layered, RootState};
use crate::text;
use crate::tree::Entry;

/// Largest file that is examined, in bytes: each one is read.
const LARGEST: u64 = 4 << 20;

/// Most files that are examined.
const MOST: usize = 2_000;

/// Most unchanged files that are searched for a line.
const MOST_UNCHANGED: usize = 2_000;

/// Lines with fewer letters and digits than this, such as a brace or a single `x`, do not show where they came from.
const FEWEST: usize = 3;

/// A line with this many letters and digits is evidence on its own.
const ENOUGH: usize = 12;

/// Words that any two files share: lines of nothing else, such as `else` and `return 0`, do not show where they came from.
const COMMON: &str = "0 1 2 as begin bool break case catch class const continue def default do done elif else end endif esac \
    except exit false fi finally fn for from func function if import in int let new nil none null ok pass public return self \
    static super switch then this true try use var void while";

/// Lines without surrounding blanks.
type Lines = BTreeSet<Vec<u8>>;

impl<S: TreeSource, C: Contents<Error = S::Error>> Drafter<'_, S, C> {
    /// Keeps files with lines that would otherwise exist nowhere.
    pub(super) fn keep_lines(&mut self, now: RootState, stays: &mut Stays) -> Result<(), S::Error> {
        let inverse = self.inverse;
        let trail_of = |path: &WorkspacePath| inverse.trails.iter().position(|trail| trail.now == *path);
        let may_stay = |path: &WorkspacePath| {
            let is_asked = inverse.links.contains_key(path) && !stays.ends.contains_key(path);
            is_asked || trail_of(path).is_some_and(|number| !stays.trails.contains_key(&number))
        };
        let read = |path: &WorkspacePath, blob: &ObjectId| self.content(path, blob);
        let moved_from = |path: &WorkspacePath| inverse.trails[trail_of(path)?].paths_but(path).pop();
        let looked = Looked {
            source: self.source,
            now,
            drafted: &self.out,
            is_reached: &|_| true,
            came_from_elsewhere: arrived(&inverse.altered, moved_from),
            read: &read,
        };
        for (path, other) in looked.homeless(&inverse.altered, may_stay)? {
            if self.decision == Some(Decision::Theirs) {
                let conflict = Conflict::open(path, Why::Lines);
                self.out.conflicts.push(Conflict { others: vec![other], decided: true, ..conflict });
            } else if inverse.links.contains_key(&path) {
                stays.ends.insert(path, (other, Why::Lines));
            } else if let Some(number) = trail_of(&path) {
                stays.trails.insert(number, (Why::Lines, Some(other)));
            }
        }
        Ok(())
    }
}

/// Like `keep_lines`, for changes that are carried over to an earlier moment while everything else at the affected
/// paths goes back.
///
/// # Errors
/// When a tree cannot be read.
pub fn lines_lost<S: TreeSource, C: Contents<Error = S::Error>>(
    source: &S,
    contents: &C,
    now: RootState,
    drafted: &Drafted,
    (carried, is_reached): (&Inverse, &dyn Fn(&WorkspacePath) -> bool),
    decision: Option<Decision>,
) -> Result<Vec<Conflict>, S::Error> {
    // What no checkpoint has is where it is now, even if it is moved.
    let places = carried.altered.iter().filter_map(|one| Some((blob_of(one.is.as_ref()?)?, &one.path)));
    let homes: HashMap<ObjectId, &WorkspacePath> = places.collect();
    let read = |path: &WorkspacePath, blob: &ObjectId| match drafted.new_blobs.get(blob) {
        Some(bytes) => Ok(bytes.clone()),
        None => contents.content(homes.get(blob).copied().unwrap_or(path), blob),
    };
    let moved_from = |path: &WorkspacePath| {
        let since = carried.since.iter().find(|one| one.to == *path).map(|one| one.from.clone());
        let mut trails =
            carried.trails.iter().filter(|trail| trail.begins.as_ref() == Some(path) || trail.now == *path);
        since.or_else(|| trails.find_map(|trail| trail.paths_but(path).pop()))
    };
    let came_from_elsewhere = arrived(&carried.altered, moved_from);
    let looked = Looked { source, now, drafted, is_reached, came_from_elsewhere, read: &read };
    let is_known = |path: &WorkspacePath| drafted.conflicts.iter().any(|conflict| conflict.holds(path));
    let found = looked.homeless(&carried.altered, |path| !is_known(path))?;
    let conflict = |(path, other)| Conflict {
        others: vec![other],
        decided: matches!(decision, Some(Decision::Ours | Decision::Theirs)),
        ..Conflict::open(path, Why::Lines)
    };
    Ok(found.into_iter().map(conflict).collect())
}

/// Reads a blob that is, or was, at a path.
type Read<'a, E> = dyn Fn(&WorkspacePath, &ObjectId) -> Result<Vec<u8>, E> + 'a;

/// The current state and the drafted one.
struct Looked<'a, S: TreeSource> {
    source: &'a S,
    now: RootState,
    drafted: &'a Drafted,
    /// Whether a path gets its drafted state; all others stay.
    is_reached: &'a dyn Fn(&WorkspacePath) -> bool,
    /// Paths whose file came from another path, with that: lines that left such a path may have been another file's.
    came_from_elsewhere: BTreeMap<WorkspacePath, WorkspacePath>,
    read: &'a Read<'a, S::Error>,
}

impl<S: TreeSource> Looked<'_, S> {
    /// The files that would lose lines which would then exist nowhere, each with the file the lines came from.
    fn homeless(
        &self,
        altered: &[Altered],
        may_stay: impl Fn(&WorkspacePath) -> bool,
    ) -> Result<Vec<(WorkspacePath, WorkspacePath)>, S::Error> {
        let mut by_path: BTreeMap<&WorkspacePath, Vec<&Altered>> = BTreeMap::new();
        for one in altered {
            by_path.entry(&one.path).or_default().push(one);
        }
        // What goes is read first: mostly that is all.
        let mut goes: Vec<(&WorkspacePath, Lines)> = Vec::new();
        for path in by_path.keys().copied().filter(|path| may_stay(path)).take(MOST) {
            let (here, then) = (lookup(self.source, &self.now.tree, path)?, self.end(path)?);
            if here == then {
                continue;
            }
            let mut lines = self.lines_of(path, here.as_ref());
            let left = self.lines_of(path, then.as_ref());
            lines.retain(|line| !left.contains(line));
            if tells(lines.iter()) {
                goes.push((path, lines));
            }
        }
        if goes.is_empty() {
            return Ok(Vec::new());
        }
        let mut missing: Vec<(&WorkspacePath, Lines)> = Vec::new();
        for (path, all) in by_path.iter().take(MOST) {
            let mut lost = self.lost(path, all)?;
            let is_other = |other: &WorkspacePath| other != *path || self.came_from_elsewhere.contains_key(path);
            lost.retain(|line| goes.iter().any(|(other, lines)| is_other(other) && lines.contains(line)));
            if !lost.is_empty() {
                missing.push((path, lost));
            }
        }
        if missing.is_empty() {
            return Ok(Vec::new());
        }
        let own = self.written(altered, &by_path);
        missing.iter_mut().for_each(|(_, lost)| lost.retain(|line| !own.contains(line)));
        for path in by_path.keys().take(MOST) {
            let left = self.lines_of(path, self.end(path)?.as_ref());
            missing.iter_mut().for_each(|(_, lost)| lost.retain(|line| !left.contains(line)));
        }
        missing.retain(|(_, lost)| tells(lost.iter()));
        if missing.is_empty() {
            return Ok(Vec::new());
        }
        self.without_unchanged(&by_path, &mut missing);
        let mut found = Vec::new();
        for (path, goes) in &goes {
            let is_other = |other: &WorkspacePath| other != *path || self.came_from_elsewhere.contains_key(path);
            let came_from =
                |(other, lost): &&(&WorkspacePath, Lines)| is_other(other) && tells(lost.intersection(goes));
            if let Some((other, _)) = missing.iter().find(came_from) {
                let from = if other == path { self.came_from_elsewhere.get(path) } else { Some(*other) };
                found.push(((*path).clone(), from.unwrap_or(other).clone()));
            }
        }
        Ok(found)
    }

    /// Removes the lines that an unchanged file has too: they exist somewhere in the end, and do not show where those in
    /// another file came from.
    fn without_unchanged(
        &self,
        by_path: &BTreeMap<&WorkspacePath, Vec<&Altered>>,
        missing: &mut [(&WorkspacePath, Lines)],
    ) {
        let mut left = MOST_UNCHANGED;
        let mut folders = vec![(WorkspacePath::root(), self.now.tree)];
        while let Some((folder, tree)) = folders.pop() {
            // What is damaged is told by whoever needs it.
            let Ok(tree) = self.source.tree(&tree) else { continue };
            for (name, entry) in tree.entries() {
                let path = folder.join(name);
                match entry {
                    Entry::Folder { tree, .. } => folders.push((path, *tree)),
                    Entry::File { .. } if !by_path.contains_key(&path) => {
                        let is_same = self.end(&path).is_ok_and(|end| end.as_ref() == Some(entry));
                        if left == 0 || missing.iter().all(|(_, lost)| lost.is_empty()) {
                            return;
                        }
                        left -= 1;
                        if is_same {
                            let here = self.lines_of(&path, Some(entry));
                            missing.iter_mut().for_each(|(_, lost)| lost.retain(|line| !here.contains(line)));
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// The lines that left a file through anybody but the user, and that it will not get back.
    fn lost(&self, path: &WorkspacePath, all: &[&Altered]) -> Result<Lines, S::Error> {
        let end = self.end(path)?;
        let is_theirs = |one: &&&Altered| one.is_others && one.was.is_some();
        // The usual case: all of it is taken back now, and nothing needs to be read.
        let is_back = lookup(self.source, &self.now.tree, path)? != end
            && all.iter().all(|one| one.is_taken)
            && all.first().is_some_and(|first| end.as_ref().and_then(blob_of) == first.was.as_ref().and_then(blob_of));
        let mut lost = Lines::new();
        if is_back {
            return Ok(lost);
        }
        // Where another file came in the place of one, the lines of that one are in a file that is not theirs.
        let is_moved = self.came_from_elsewhere.contains_key(path);
        for one in all.iter().filter(is_theirs).take(MOST) {
            let is = if is_moved { Lines::new() } else { self.lines_of(path, one.is.as_ref()) };
            lost.extend(self.lines_of(path, one.was.as_ref()).into_iter().filter(|line| !is.contains(line)));
        }
        if !lost.is_empty() {
            let left = self.lines_of(path, end.as_ref());
            lost.retain(|line| !left.contains(line));
        }
        Ok(lost)
    }

    /// The lines written by the work that goes back: they existed nowhere before, and nobody else had them first.
    fn written(&self, altered: &[Altered], by_path: &BTreeMap<&WorkspacePath, Vec<&Altered>>) -> Lines {
        let mut others = Lines::new();
        for (path, all) in by_path.iter().take(MOST) {
            others.extend(self.lines_of(path, all.first().and_then(|first| first.was.as_ref())));
        }
        let mut own = Lines::new();
        for one in altered.iter().take(2 * MOST) {
            let was = self.lines_of(&one.path, one.was.as_ref());
            let new = self.lines_of(&one.path, one.is.as_ref()).into_iter();
            let new: Vec<_> = new.filter(|line| !was.contains(line) && !others.contains(line)).collect();
            if one.is_taken {
                own.extend(new);
            } else {
                others.extend(new.into_iter().filter(|line| !own.contains(line)));
            }
        }
        own
    }

    /// The entry at a path in the end.
    fn end(&self, path: &WorkspacePath) -> Result<Option<Entry>, S::Error> {
        if !(self.is_reached)(path) {
            return lookup(self.source, &self.now.tree, path);
        }
        let layered = Layered { over: &self.drafted.new_trees, under: self.source };
        lookup(&layered, &self.drafted.root.tree, path)
    }

    /// The lines of a text that are evidence of their origin; none where it cannot be read.
    fn lines_of(&self, path: &WorkspacePath, entry: Option<&Entry>) -> Lines {
        let Some(Entry::File { blob, size, .. }) = entry else { return Lines::new() };
        let content = if *size > LARGEST { None } else { (self.read)(path, blob).ok() };
        let Some(content) = content.filter(|content| !text::is_binary(content)) else { return Lines::new() };
        let lines = content.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        lines.filter(|line| says_something(line)).map(<[u8]>::to_vec).collect()
    }
}

/// Whether lines that two files share are evidence that they were carried from one to the other.
fn tells<'a>(shared: impl Iterator<Item = &'a Vec<u8>>) -> bool {
    let mut few = false;
    for line in shared {
        if few || weight(line) >= ENOUGH {
            return true;
        }
        few = true;
    }
    false
}

/// Whether a line says anything of where it came from.
fn says_something(line: &[u8]) -> bool {
    let count = line.iter().filter(|byte| is_of_word(**byte)).count();
    count >= FEWEST && weight(line) > 0
}

/// The letters and digits of a line, without those of words that stand everywhere.
fn weight(line: &[u8]) -> usize {
    let is_common = |word: &&[u8]| COMMON.split(' ').any(|common| common.as_bytes().eq_ignore_ascii_case(word));
    line.split(|byte| !is_of_word(*byte)).filter(|word| !is_common(word)).map(<[u8]>::len).sum()
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80
}

/// The paths of some changes, given oldest first, whose file came from another one, with that: it is known as moved, or its content
/// left that path. Where what had been there before came back since, it did not. That two files were empty says nothing: a file
/// that is just being written is.
fn arrived(
    altered: &[Altered],
    moved_from: impl Fn(&WorkspacePath) -> Option<WorkspacePath>,
) -> BTreeMap<WorkspacePath, WorkspacePath> {
    let is_empty = |entry: &Entry| matches!(entry, Entry::File { size: 0, .. });
    let blob = |entry: &Option<Entry>| entry.as_ref().filter(|entry| !is_empty(entry)).and_then(blob_of);
    let mut left: HashMap<ObjectId, BTreeSet<&WorkspacePath>> = HashMap::new();
    for one in altered.iter().filter(|one| blob(&one.was) != blob(&one.is)) {
        if let Some(was) = blob(&one.was) {
            left.entry(was).or_default().insert(&one.path);
        }
    }
    // What stood at each path as its own, and where what is there came from.
    let mut own: HashMap<&WorkspacePath, BTreeSet<ObjectId>> = HashMap::new();
    let mut came: BTreeMap<WorkspacePath, WorkspacePath> = BTreeMap::new();
    for one in altered {
        let (was, is) = (blob(&one.was), blob(&one.is));
        let own = own.entry(&one.path).or_default();
        if !came.contains_key(&one.path) {
            own.extend(was);
        }
        if is.is_some_and(|is| own.contains(&is)) {
            came.remove(&one.path);
            continue;
        }
        let from = is.and_then(|is| left.get(&is)?.iter().find(|path| ***path != one.path));
        if let Some(from) = from {
            came.insert(one.path.clone(), (*from).clone());
        }
    }
    let known = altered.iter().filter_map(|one| Some((one.path.clone(), moved_from(&one.path)?)));
    known.chain(came).collect()
}

fn blob_of(entry: &Entry) -> Option<ObjectId> {
    match entry {
        Entry::File { blob, .. } => Some(*blob),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_tell_where_they_came_from_unless_they_stand_everywhere() {
        let told = |lines: &[&str]| {
            let lines: Vec<Vec<u8>> = lines.iter().map(|line| line.as_bytes().to_vec()).collect();
            tells(lines.iter().filter(|line| says_something(line)))
        };
        assert!(told(&["def mine():", "    return 42"]) && told(&["a line that somebody wrote"]));
        assert!(!told(&["}", "", "return 0", "else:", "} else {", "break", "return None", "return true;"]));
        assert!(!told(&["return result"]));
    }
}
