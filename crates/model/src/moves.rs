//! Detects moved files: a file that disappeared at one path and one that appeared at another between two states are the
//! same file if their content says so, and fits no other.
//!
//! A wrong pair would put one file's lines into another, so an ambiguous match is not a move.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use crate::id::ObjectId;
use crate::inverse::Contents;
use crate::path::WorkspacePath;
use crate::text;
use crate::tree::Entry;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Move {
    pub from: WorkspacePath,
    pub to: WorkspacePath,
}

/// A path with the entry that is, or was, there.
pub type Placed = (WorkspacePath, Entry);

/// What happened to files between two states.
#[derive(Clone, Debug, Default)]
pub struct Happened {
    /// Files that disappeared.
    pub gone: Vec<Placed>,
    /// Files that appeared.
    pub came: Vec<Placed>,
    /// Files that replaced something else or were replaced: the entry before and after.
    pub replaced: Vec<(WorkspacePath, Entry, Entry)>,
}

impl Happened {
    /// Adds what happened at one path.
    pub fn add(&mut self, path: &WorkspacePath, before: Option<Entry>, after: Option<Entry>) {
        let is_file = |entry: &Entry| matches!(entry, Entry::File { .. });
        match (before, after) {
            (Some(was), None) if is_file(&was) => self.gone.push((path.clone(), was)),
            (None, Some(is)) if is_file(&is) => self.came.push((path.clone(), is)),
            (Some(was), Some(is)) if (is_file(&was) || is_file(&is)) && blob(&was) != blob(&is) => {
                self.replaced.push((path.clone(), was, is));
            }
            _ => {}
        }
    }

    /// Whether anything can have been moved.
    pub fn can_be_moves(&self) -> bool {
        let (gone, came) = (!self.gone.is_empty(), !self.came.is_empty());
        gone && came || (gone || came) && !self.replaced.is_empty() || self.replaced.len() > 1
    }

    /// The contents that disappeared from paths.
    pub fn went(&self) -> impl Iterator<Item = (&WorkspacePath, ObjectId)> {
        let replaced = self.replaced.iter().map(|(path, was, _)| (path, was));
        let all = self.gone.iter().map(|(path, was)| (path, was)).chain(replaced);
        all.filter_map(|(path, was)| Some((path, blob(was)?)))
    }
}

/// The result of pairing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paired {
    pub moves: Vec<Move>,
    /// Files that belong together although it is unclear which became which: those that disappeared and those that
    /// appeared.
    pub unclear: Vec<(Vec<WorkspacePath>, Vec<WorkspacePath>)>,
}

/// With more pairs of equal files than this, they are not told apart: each is compared with every other.
const MOST_EQUAL: usize = 250_000;

/// With more files than this, contents are not compared for similarity: each one has to be read.
const MOST_ALIKE: usize = 50;

/// With fewer letters and digits than this, a file says nothing of where its content is now.
const FEWEST: usize = 3;

/// The content of a file, unless it is empty: all empty files are equal, which proves nothing.
fn blob(entry: &Entry) -> Option<ObjectId> {
    match entry {
        Entry::File { blob, size, .. } if *size > 0 => Some(*blob),
        _ => None,
    }
}

/// Pairs files that disappeared with files that appeared: equal contents first, preferring similar names and folders;
/// then contents that are more alike than not, where one end is `concerned` (each of those is read).
///
/// A file may have been moved over another one, and something else may have replaced it at its old path; but a file
/// that is edited in place while a copy is made of it was not moved. Unreadable contents match nothing.
pub fn pair<C: Contents>(contents: &C, happened: &Happened, concerned: impl Fn(&WorkspacePath) -> bool) -> Paired {
    let Happened { gone, came, replaced } = happened;
    let mut paired = Paired::default();
    let mut left: Vec<Placed> = gone.iter().filter(|(_, entry)| blob(entry).is_some()).cloned().collect();
    let mut new: Vec<Placed> = came.iter().filter(|(_, entry)| blob(entry).is_some()).cloned().collect();
    let overs = replaced.iter().map(|(path, _, is)| (path.clone(), is.clone()));
    let mut over: Vec<Placed> = overs.filter(|(_, entry)| blob(entry).is_some()).collect();
    equal(&mut left, &mut new, &mut paired);
    // The file at such a path was edited in place, and the equal file that disappeared was a copy of it.
    let arrived: BTreeSet<ObjectId> = new.iter().chain(&over).filter_map(|(_, entry)| blob(entry)).collect();
    let is_edited = |path: &WorkspacePath| {
        let found = replaced.iter().find(|(one, ..)| one == path);
        // A file that is elsewhere now was moved away first.
        found.is_some_and(|(path, was, is)| {
            blob(was).is_some_and(|was| !arrived.contains(&was)) && is_alike(contents, path, was, is)
        })
    };
    let went: BTreeSet<ObjectId> = left.iter().filter_map(|(_, entry)| blob(entry)).collect();
    let is_copy = |(path, entry): &Placed| blob(entry).is_some_and(|blob| went.contains(&blob)) && is_edited(path);
    let edited: Vec<_> = over.extract_if(.., |place| is_copy(place)).collect();
    equal(&mut left, &mut over, &mut paired);
    over.extend(edited);
    let mut unused: Vec<_> = replaced.iter().filter(|(_, was, _)| blob(was).is_some()).collect();
    loop {
        let is_replaced = |(path, was, is): &&&(WorkspacePath, Entry, Entry)| {
            let has = |places: &[Placed]| places.iter().any(|(_, entry)| blob(entry) == blob(was));
            let was_moved_over = || paired.moves.iter().any(|one| one.to == *path);
            (has(&new) || has(&over)) && (was_moved_over() || !is_alike(contents, path, was, is))
        };
        let found: Vec<Placed> =
            unused.iter().filter(is_replaced).map(|(path, was, _)| (path.clone(), was.clone())).collect();
        unused.retain(|(path, ..)| !found.iter().any(|(one, _)| one == path));
        if found.is_empty() {
            break;
        }
        let mut found = found;
        equal(&mut found, &mut new, &mut paired);
        equal(&mut found, &mut over, &mut paired);
    }
    // Whether what replaced the file at this path is something other than an edited version of it.
    let is_other = |path: &WorkspacePath| match unused.iter().find(|(one, ..)| one == path) {
        Some((path, was, is)) => paired.moves.iter().any(|one| one.to == *path) || !is_alike(contents, path, was, is),
        None => true,
    };
    let mut all = left.clone();
    all.extend(unused.iter().take(MOST_ALIKE).map(|(path, was, _)| (path.clone(), was.clone())));
    // A file may be moved over another one, and edited on the way; but one that was put into another one has no path any more.
    let was_file = |path: &WorkspacePath| {
        let found = replaced.iter().find(|(one, was, _)| one == path && blob(was).is_some());
        found.is_some_and(|(path, was, is)| !is_still_in(contents, path, was, is))
    };
    let is_new =
        |(path, _): &&Placed| was_file(path) && is_other(path) && !paired.moves.iter().any(|one| one.to == *path);
    let mut arrived = new.clone();
    arrived.extend(over.iter().filter(is_new).take(MOST_ALIKE.saturating_sub(new.len())).cloned());
    let moves = alike(contents, &all, &arrived, concerned, is_other);
    paired.moves.extend(moves);
    paired.moves.retain(|one| one.from != one.to);
    paired.moves.sort();
    paired
}

/// The files that disappeared, were not moved, and are now as a whole in another file, one that is `concerned` and had not held
/// that content before: from where, and into which.
pub fn merged<C: Contents>(
    contents: &C,
    happened: &Happened,
    moves: &[Move],
    concerned: impl Fn(&WorkspacePath) -> bool,
) -> Vec<Move> {
    let is_moved = |path: &WorkspacePath| moves.iter().any(|one| one.from == *path);
    let gone: Vec<&Placed> = happened.gone.iter().filter(|(path, _)| !is_moved(path)).collect();
    let came = happened.came.iter().map(|(path, is)| (path, None, is));
    let replaced = happened.replaced.iter().map(|(path, was, is)| (path, Some(was), is));
    let into: Vec<_> = came.chain(replaced).filter(|(path, ..)| concerned(path)).collect();
    if gone.is_empty() || gone.len() > 2 * MOST_ALIKE || into.len() > MOST_ALIKE {
        return Vec::new();
    }
    let read = |path: &WorkspacePath, entry: &Entry| match entry {
        Entry::File { size, .. } if *size > text::LARGEST as u64 => None,
        entry => String::from_utf8(contents.content(path, &blob(entry)?).ok()?).ok(),
    };
    let says_something = |text: &String| text.chars().filter(|char| char.is_alphanumeric()).nth(FEWEST - 1).is_some();
    let into: Vec<_> = into
        .into_iter()
        .filter_map(|(path, was, is)| Some((path, was.and_then(|was| read(path, was)), read(path, is)?)))
        .collect();
    let mut merged = Vec::new();
    for (from, was) in gone {
        let Some(text) = read(from, was).filter(says_something) else { continue };
        let holds = |(_, was, is): &&(_, Option<String>, String)| {
            is.contains(&text) && !was.as_ref().is_some_and(|was| was.contains(&text))
        };
        let found = into.iter().filter(holds);
        merged.extend(found.map(|(to, ..)| Move { from: from.clone(), to: (*to).clone() }));
    }
    merged
}

/// Whether the file at a path is an edited version of the one that was there.
pub fn is_alike<C: Contents>(contents: &C, path: &WorkspacePath, was: &Entry, is: &Entry) -> bool {
    let read = |entry: &Entry| match entry {
        Entry::File { size, .. } if *size > text::LARGEST as u64 => None,
        entry => contents.content(path, &blob(entry)?).ok(),
    };
    match (read(was), read(is)) {
        (Some(was), Some(is)) => text::alike(&was, &is) >= 0.5,
        // If in doubt, assume an edit: then nothing was moved.
        _ => matches!(is, Entry::File { .. }) && blob(is).is_some(),
    }
}

/// Whether two contents have more in common than not.
pub fn are_alike(a: &[u8], b: &[u8]) -> bool {
    text::alike(a, b) >= 0.5
}

/// Whether most of a path's earlier content is still there, perhaps in the middle of more.
fn is_still_in<C: Contents>(contents: &C, path: &WorkspacePath, was: &Entry, is: &Entry) -> bool {
    let read = |entry: &Entry| match entry {
        Entry::File { size, .. } if *size > text::LARGEST as u64 => None,
        entry => contents.content(path, &blob(entry)?).ok(),
    };
    matches!((read(was), read(is)), (Some(was), Some(is)) if text::kept(&was, &is) >= 0.5)
}

/// Pairs equal contents, and removes what is paired or unclear from both sides.
fn equal(from: &mut Vec<Placed>, to: &mut Vec<Placed>, paired: &mut Paired) {
    let mut groups: BTreeMap<ObjectId, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
    for (number, (_, entry)) in from.iter().enumerate() {
        if let Some(blob) = blob(entry) {
            groups.entry(blob).or_default().0.push(number);
        }
    }
    for (number, (_, entry)) in to.iter().enumerate() {
        if let Some((_, arrived)) = blob(entry).and_then(|blob| groups.get_mut(&blob)) {
            arrived.push(number);
        }
    }
    let (mut used_from, mut used_to) = (BTreeSet::new(), BTreeSet::new());
    for (went, arrived) in groups.into_values().filter(|(_, arrived)| !arrived.is_empty()) {
        used_from.extend(went.iter().copied());
        used_to.extend(arrived.iter().copied());
        let near = |a: usize, b: usize| Some(nearness(&from[a].0, &to[b].0));
        let (pairs, left, new) = match went.len() * arrived.len() {
            count if count > MOST_EQUAL => (Vec::new(), went, arrived),
            _ => best_pairs(went, arrived, near),
        };
        paired.moves.extend(pairs.into_iter().map(|(a, b)| one(&from[a], &to[b])));
        if !left.is_empty() && !new.is_empty() {
            let named = |numbers: Vec<usize>, places: &[Placed]| numbers.iter().map(|n| places[*n].0.clone()).collect();
            paired.unclear.push((named(left, from), named(new, to)));
        }
    }
    let mut number = 0..;
    from.retain(|_| number.next().is_some_and(|number| !used_from.contains(&number)));
    let mut number = 0..;
    to.retain(|_| number.next().is_some_and(|number| !used_to.contains(&number)));
}

/// Pairs the remaining files by the similarity of their contents.
fn alike<C: Contents>(
    contents: &C,
    left: &[Placed],
    new: &[Placed],
    concerned: impl Fn(&WorkspacePath) -> bool,
    may_be_gone: impl Fn(&WorkspacePath) -> bool,
) -> Vec<Move> {
    if left.len() > 2 * MOST_ALIKE || new.len() > MOST_ALIKE {
        return Vec::new();
    }
    let size = |(_, entry): &Placed| match entry {
        Entry::File { size, .. } => *size,
        _ => 0,
    };
    let mut read: HashMap<ObjectId, Option<Vec<u8>>> = HashMap::new();
    let mut likeness: HashMap<(usize, usize), (u32, Nearness)> = HashMap::new();
    for (from, was) in left.iter().enumerate() {
        for (to, is) in new.iter().enumerate() {
            let (a, b) = (size(was), size(is));
            // A file of more than twice the size cannot be half alike.
            let may_be = a / 2 <= b && b / 2 <= a && a.max(b) <= text::LARGEST as u64;
            let (Some(old), Some(fresh)) = (blob(&was.1), blob(&is.1)) else { continue };
            // A file that became a folder was not moved into it.
            let may_be = may_be && !is.0.is_within(&was.0);
            if !may_be || !(concerned(&was.0) || concerned(&is.0)) {
                continue;
            }
            for (path, blob) in [(&was.0, old), (&is.0, fresh)] {
                read.entry(blob).or_insert_with(|| contents.content(path, &blob).ok());
            }
            if let (Some(Some(a)), Some(Some(b))) = (read.get(&old), read.get(&fresh)) {
                let alike = text::alike(a, b);
                if alike >= 0.5 && may_be_gone(&was.0) {
                    likeness.insert((from, to), ((alike * 1000.0) as u32, nearness(&was.0, &is.0)));
                }
            }
        }
    }
    let numbers = |all: &[Placed]| (0..all.len()).collect();
    let (pairs, ..) = best_pairs(numbers(left), numbers(new), |from, to| likeness.get(&(from, to)).copied());
    pairs.into_iter().map(|(from, to)| one(&left[from], &new[to])).collect()
}

fn one(from: &Placed, to: &Placed) -> Move {
    Move { from: from.0.clone(), to: to.0.clone() }
}

/// How near two paths are: the number of equal names at their ends, then at their beginnings.
type Nearness = (usize, usize);

fn nearness(a: &WorkspacePath, b: &WorkspacePath) -> Nearness {
    let (a, b): (Vec<_>, Vec<_>) = (a.names().collect(), b.names().collect());
    let ends = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let begins = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    (ends, begins)
}

/// Repeatedly takes pairs in which each is the other's only best match; returns them and what is left on both sides.
fn best_pairs<T: Ord + Copy>(
    mut from: Vec<usize>,
    mut to: Vec<usize>,
    value: impl Fn(usize, usize) -> Option<T>,
) -> (Vec<(usize, usize)>, Vec<usize>, Vec<usize>) {
    // `None` where nothing matches, or two match equally well.
    fn best<T: Ord>(all: &[usize], value: impl Fn(usize) -> Option<T>) -> Option<usize> {
        let most = all.iter().filter_map(|one| value(*one)).max()?;
        let mut found = all.iter().filter(|one| value(**one).as_ref() == Some(&most));
        let first = found.next()?;
        found.next().is_none().then_some(*first)
    }
    let mut pairs = Vec::new();
    loop {
        let mut found = Vec::new();
        for a in &from {
            if let Some(b) = best(&to, |b| value(*a, b))
                && best(&from, |a| value(a, b)) == Some(*a)
            {
                found.push((*a, b));
            }
        }
        if found.is_empty() {
            return (pairs, from, to);
        }
        from.retain(|one| !found.iter().any(|(a, _)| a == one));
        to.retain(|one| !found.iter().any(|(_, b)| b == one));
        pairs.extend(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contents by id.
    struct Known(HashMap<ObjectId, Vec<u8>>);

    impl Contents for Known {
        type Error = ();

        fn content(&self, _: &WorkspacePath, blob: &ObjectId) -> Result<Vec<u8>, ()> {
            self.0.get(blob).cloned().ok_or(())
        }
    }

    /// What happened between two states, each of files as `path=content`.
    fn happened(before: &str, after: &str) -> (Known, Happened) {
        let mut known = HashMap::new();
        let mut places = |text: &str| -> BTreeMap<WorkspacePath, Entry> {
            let one = |word: &str| {
                let (path, content) = word.split_once('=').unwrap();
                let content = content.replace(',', "\n").into_bytes();
                let blob = ObjectId::of_blob(&content);
                let size = content.len() as u64;
                known.insert(blob, content);
                (WorkspacePath::new(path).unwrap(), Entry::File { mode: 0o644, size, blob })
            };
            text.split_whitespace().map(one).collect()
        };
        let (before, after) = (places(before), places(after));
        let paths: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        let mut happened = Happened::default();
        for path in paths {
            happened.add(path, before.get(path).cloned(), after.get(path).cloned());
        }
        (Known(known), happened)
    }

    /// Pairs the files of two states, and checks the result: `from>to`, and `?` with what is unclear.
    fn check(before: &str, after: &str, expected: &str) {
        let (known, happened) = happened(before, after);
        let paired = pair(&known, &happened, |_| true);
        let show = |paths: &[WorkspacePath]| paths.iter().map(WorkspacePath::display).collect::<Vec<_>>().join("+");
        let moves = paired.moves.iter().map(|m| format!("{}>{}", m.from.display(), m.to.display()));
        let unclear = paired.unclear.iter().map(|(from, to)| format!("?{}>{}", show(from), show(to)));
        assert_eq!(moves.chain(unclear).collect::<Vec<_>>().join(" "), expected);
    }

    #[test]
    fn a_file_may_be_moved_over_another_and_make_room_for_one() {
        check("f=1 g=2", "g=1", "f>g");
        check("f=1", "g=1 f=2", "f>g");
        check("f=1 g=2", "f=2 g=1", "f>g g>f");
        check("f=1,2,3, t=1,2,4,", "f=1,2,4, g=1,2,3,", "f>g t>f");
        // Edited while it was moved, and something new at its old path.
        check("f=1,2,3,4,", "f=7, g=1,2,3,5,", "f>g");
        check("f=1,2,3,4, g=7,8,9,", "g=1,2,3,5,", "f>g");
        check("f=1,2,3,4, g=1,2,3,9,", "g=1,2,3,5,", "");
        // Put into another one, which is still there.
        check("f=1,2,3,4,5,6, g=7,8,9,", "g=7,8,9,1,2,3,4,5,6,", "");
        // A copy, and an edit of the original.
        check("f=1,2,3,4,", "f=1,2,3,5, f.bak=1,2,3,4,", "");
    }

    #[test]
    fn what_belongs_together_is_paired_and_nothing_else() {
        check("f=1", "g=1", "f>g");
        check("f=1", "g=2", "");
        check("f=1", "", "");
        // Equal names first, then the nearest folders.
        check("src/a/i=1 src/b/i=1", "lib/a/i=1 lib/b/i=1", "src/a/i>lib/a/i src/b/i>lib/b/i");
        check("a/x=1 a/y=1", "b/y=1 b/x=1", "a/x>b/x a/y>b/y");
        check("a/b/x=1 c/x=1", "a/b/y=1 c/y=1", "a/b/x>a/b/y c/x>c/y");
        // One was copied and moved: the nearer end is the move, and if neither is nearer, it is unclear.
        check("a/x=1", "a/y=1 b/z=1", "a/x>a/y");
        check("x=1", "y=1 z=1", "?x>y+z");
        check("x=1 y=1", "u=1 v=1", "?x+y>u+v");
        // Empty files are all equal, which proves nothing.
        check("k=", "i=", "");
        check("a/k=", "b/k=", "");
    }

    #[test]
    fn files_that_were_put_into_one_are_found_in_it() {
        let check = |before: &str, after: &str, expected: &str| {
            let (known, happened) = happened(before, after);
            let moves = pair(&known, &happened, |_| true).moves;
            let merged = merged(&known, &happened, &moves, |_| true);
            let shown: Vec<_> = merged.iter().map(|m| format!("{}>{}", m.from.display(), m.to.display())).collect();
            assert_eq!(shown.join(" "), expected);
        };
        check("a=one,two, b=three,", "m=one,two,three,", "b>m");
        check("a=one, b=two, c=four,", "m=one,two,four,", "a>m b>m c>m");
        check("a=one, b=two,three,", "b=two,three,one,", "a>b");
        // It had that before, holds only a part of it, or it says nothing.
        check("a=one, b=one,two,", "b=one,two,three,", "");
        check("a=one,two, b=three,", "b=three,one,", "");
        check("a=1,2 b=three,", "b=three,1,2,", "");
    }

    #[test]
    fn a_file_that_was_moved_and_edited_is_known_by_what_is_left_of_it() {
        check("f=1,2,3,4,", "g=1,2,3,5,", "f>g");
        check("f=1,2,3,4,", "g=1,7,8,9,", "");
        // The most similar wins, and of two equally similar ones the nearer.
        check("f=1,2,3,4,", "g=1,2,3,5, h=1,2,5,6,", "f>g");
        check("d/f=1,2,3,4,", "d/g=1,2,3,5, e/h=1,2,3,6,", "d/f>d/g");
        check("f=1,2,3,4,", "g=1,2,3,5, h=1,2,3,6,", "");
        // Equal content takes precedence over everything else.
        check("f=1,2,3,4,", "g=1,2,3,5, h=1,2,3,4,", "f>h");
    }
}
