//! Following files through their moves.
//!
//! A path identifies a file only until somebody moves it. So the changes of a file that was moved, by anyone, are
//! collected in a trail: one file, with its changes in the order in which they are taken back or carried over, each
//! with the path that the file had at the time. All other changes stay with their paths.

use std::collections::{BTreeMap, BTreeSet};

use crate::inverse::Link;
use crate::moves::{Move, Placed};
use crate::path::WorkspacePath;
use crate::tree::Entry;

/// The sequence number of a checkpoint or an operation; the greatest stands for the state that no checkpoint has.
pub type SeqNumber = u64;

/// A change that is taken back or carried over.
#[derive(Clone, Debug)]
pub struct Taken {
    /// When it was found.
    pub at: SeqNumber,
    pub path: WorkspacePath,
    /// What it is turned from and into.
    pub link: Link,
}

/// All moves of one moment, by anyone.
#[derive(Clone, Debug, Default)]
struct MovesAt {
    at: SeqNumber,
    /// Whether an operation made them: it may have restored what was at a path before.
    by_operation: bool,
    leading_from: Leads,
    leading_to: Leads,
    /// The numbers of both maps as the operation made them, each the same for equal ones: they are compared again and again.
    ways: (usize, usize),
}

impl MovesAt {
    fn is_taken_back_by(&self, next: &Self) -> bool {
        self.by_operation && next.by_operation && self.ways == (next.ways.1, next.ways.0)
    }
}

/// Every path that something was moved from or to.
fn ends_of<'a>(moves: impl IntoIterator<Item = &'a MovesAt>) -> BTreeSet<&'a WorkspacePath> {
    moves.into_iter().flat_map(|at| at.leading_from.keys().chain(at.leading_to.keys())).collect()
}

/// One file with the changes of it that are taken back or carried over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trail {
    /// Where it is in the starting state; `None` where it does not exist there, whatever is at its path.
    pub begins: Option<WorkspacePath>,
    /// Where it is now, or was last.
    pub now: WorkspacePath,
    /// In the order in which they are made.
    pub steps: Vec<TrailStep>,
}

/// One change of a file, possibly of its path as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrailStep {
    /// What it starts from; `None` where there was no file.
    pub from: Option<Placed>,
    /// What it results in.
    pub to: Option<Placed>,
}

impl Trail {
    /// Every path that the file has, had or gets, each once.
    pub fn paths(&self) -> BTreeSet<&WorkspacePath> {
        let of_steps = self.places().map(|(path, _)| path);
        self.begins.iter().chain([&self.now]).chain(of_steps).collect()
    }

    /// The same without one.
    pub fn paths_but(&self, one: &WorkspacePath) -> Vec<WorkspacePath> {
        self.paths().into_iter().filter(|path| *path != one).cloned().collect()
    }

    /// Every version of the file, with its path.
    pub fn places(&self) -> impl Iterator<Item = &Placed> {
        self.steps.iter().flat_map(|step| step.from.iter().chain(&step.to))
    }

    fn add(&mut self, step: TrailStep) {
        // Consecutive changes are joined into one, so that the state between them is never needed.
        match self.steps.last_mut() {
            Some(last) if last.to == step.from => last.to = step.to,
            _ => self.steps.push(step),
        }
    }
}

/// The starting state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Changes are taken back from the current state, newest first.
    Now,
    /// Changes are carried over to an earlier moment, oldest first.
    Then(SeqNumber),
}

/// Where a file is at some moment: at a path; or it is gone, or not there yet, and something else has its path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Spot {
    At(WorkspacePath),
    Gone(SeqNumber, WorkspacePath),
}

/// The moves of a period, in order.
#[derive(Clone, Debug, Default)]
pub struct Moved(Vec<MovesAt>);

impl Moved {
    /// From the moves of each moment, in any order: those made by hand, and by operations.
    pub fn new(
        by_hands: impl IntoIterator<Item = (SeqNumber, Vec<Move>)>,
        by_operations: impl IntoIterator<Item = (SeqNumber, Vec<Move>)>,
    ) -> Self {
        let mut all: BTreeMap<SeqNumber, MovesAt> = BTreeMap::new();
        let by_hands = by_hands.into_iter().map(|(at, moves)| (at, moves, false));
        let by_operations = by_operations.into_iter().map(|(at, moves)| (at, moves, true));
        for (at, moves, by_operation) in by_hands.chain(by_operations) {
            for Move { from, to } in moves {
                let moves = all.entry(at).or_insert_with(|| MovesAt { at, by_operation, ..MovesAt::default() });
                moves.leading_from.insert(from.clone(), to.clone());
                moves.leading_to.insert(to, from);
            }
        }
        let mut numbers: BTreeMap<Leads, usize> = BTreeMap::new();
        let mut number_of = |leads: &Leads| {
            let next = numbers.len();
            *numbers.entry(leads.clone()).or_insert(next)
        };
        for moves in all.values_mut().filter(|moves| moves.by_operation) {
            moves.ways = (number_of(&moves.leading_from), number_of(&moves.leading_to));
        }
        Self(all.into_values().collect())
    }

    /// The moves after one moment and up to another. What an operation moved and the next one moved back in that time was never
    /// elsewhere for whoever looks from its ends. Who asks about a moment in between has to look from there. The newest go first:
    /// of an operation, its redo and the redo of that, it is the first that stands.
    fn between(&self, after: SeqNumber, until: SeqNumber) -> Vec<&MovesAt> {
        let mut kept: Vec<&MovesAt> = Vec::new();
        for moves in self.0.iter().rev().filter(|moves| moves.at > after && moves.at <= until) {
            match kept.last() {
                Some(next) if moves.is_taken_back_by(next) => drop(kept.pop()),
                _ => kept.push(moves),
            }
        }
        kept.reverse();
        kept
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where the file that was at a path right before a moment was at an earlier one, if it existed.
    pub fn path_before(&self, path: &WorkspacePath, at: SeqNumber, then: SeqNumber) -> Option<WorkspacePath> {
        match self.back(path.clone(), at.saturating_sub(1), then) {
            Spot::At(path) => Some(path),
            Spot::Gone(..) => None,
        }
    }

    /// Where the file that was at a path right after a moment is now, if it still exists.
    pub fn path_now(&self, path: &WorkspacePath, then: SeqNumber) -> Option<WorkspacePath> {
        match self.forth(path.clone(), then, SeqNumber::MAX) {
            Spot::At(path) => Some(path),
            Spot::Gone(..) => None,
        }
    }

    /// Where the file was right before a moment that had last left a path by then, and when it left.
    pub fn left_for(&self, path: &WorkspacePath, before: SeqNumber) -> Option<(SeqNumber, WorkspacePath)> {
        let mut earlier = self.0.iter().rev().skip_while(|moves| moves.at >= before);
        let at = earlier.find(|moves| moves.leading_from.contains_key(path))?.at;
        match self.forth(path.clone(), at.saturating_sub(1), before.saturating_sub(1)) {
            Spot::At(now) if now != *path => Some((at, now)),
            _ => None,
        }
    }

    /// The files that were moved since a moment: where each was then, and where it is now.
    pub fn since(&self, then: SeqNumber) -> impl Iterator<Item = Move> {
        let ends = ends_of(self.between(then, SeqNumber::MAX)).into_iter();
        let moves = ends.filter_map(move |from| match self.forth(from.clone(), then, SeqNumber::MAX) {
            Spot::At(to) if to != *from => Some(Move { from: from.clone(), to }),
            _ => None,
        });
        moves.collect::<Vec<_>>().into_iter()
    }

    /// For each file that was moved since a moment, every path that it had from then on, the one of now first.
    pub fn chains(&self, then: SeqNumber) -> Vec<Vec<WorkspacePath>> {
        let since = self.between(then, SeqNumber::MAX);
        let mut chains = Vec::new();
        for end in ends_of(since.iter().copied()) {
            let mut chain = vec![end.clone()];
            for MovesAt { at, .. } in since.iter().rev() {
                match self.back(end.clone(), SeqNumber::MAX, at - 1) {
                    Spot::At(path) if chain.last() != Some(&path) => chain.push(path),
                    Spot::At(_) => {}
                    Spot::Gone(..) => break,
                }
            }
            if chain.len() > 1 {
                chains.push(chain);
            }
        }
        chains
    }

    /// The other ends of the moves at a path at a moment: a file may be moved over one that was moved away.
    pub fn partners(&self, at: SeqNumber, path: &WorkspacePath) -> impl Iterator<Item = &WorkspacePath> {
        self.led_from(at, path).into_iter().chain(self.led_to(at, path))
    }

    /// Every path that something was moved from or to, without what was moved back right away.
    pub fn ends(&self) -> BTreeSet<&WorkspacePath> {
        ends_of(self.between(SeqNumber::MIN, SeqNumber::MAX))
    }

    /// The same, and those for whoever looks from one of these changes.
    fn ends_for(&self, taken: &[Taken]) -> BTreeSet<WorkspacePath> {
        let moments: BTreeSet<SeqNumber> = taken.iter().map(|one| one.at.saturating_sub(1)).collect();
        let ends = |after: SeqNumber| ends_of(self.between(after, SeqNumber::MAX));
        self.ends().into_iter().chain(moments.into_iter().flat_map(ends)).cloned().collect()
    }

    fn leave_out(&mut self, is_out: impl Fn(SeqNumber, &Move) -> bool) {
        for MovesAt { at, leading_from, leading_to, .. } in &mut self.0 {
            let all = leading_from.iter().map(|(from, to)| Move { from: from.clone(), to: to.clone() });
            let out: Vec<Move> = all.filter(|one| is_out(*at, one)).collect();
            for one in out {
                leading_from.remove(&one.from);
                leading_to.remove(&one.to);
            }
        }
        self.0.retain(|at| !at.leading_from.is_empty());
    }

    fn at(&self, at: SeqNumber) -> Option<&MovesAt> {
        self.0.binary_search_by_key(&at, |moves| moves.at).ok().map(|found| &self.0[found])
    }

    /// Where the file came from that was moved to a path at a moment.
    pub fn led_to(&self, at: SeqNumber, path: &WorkspacePath) -> Option<&WorkspacePath> {
        self.at(at)?.leading_to.get(path)
    }

    fn led_from(&self, at: SeqNumber, path: &WorkspacePath) -> Option<&WorkspacePath> {
        self.at(at)?.leading_from.get(path)
    }

    /// Follows a file forward, from after one moment to after another.
    fn forth(&self, path: WorkspacePath, from: SeqNumber, to: SeqNumber) -> Spot {
        let moves = self.between(from, to).into_iter();
        // When an operation moves away what took the file's path, the file is back there.
        followed(path, moves.map(|moves| (moves, &moves.leading_from, &moves.leading_to)), |_, now| now)
    }

    /// Follows a file backward, from after one moment to after another.
    fn back(&self, path: WorkspacePath, from: SeqNumber, to: SeqNumber) -> Spot {
        let moves = self.between(to, from).into_iter().rev();
        // What an operation made room for was there before the file that it moved away arrived.
        followed(path, moves.map(|moves| (moves, &moves.leading_to, &moves.leading_from)), |last, _| last)
    }
}

/// Follows a file through moves, each with where it leads to and where something else comes from. When what took the
/// file's path leaves, `is_back` says whether the file is there again; its arguments say whether the last moves at that
/// path, and these, were made by an operation.
fn followed<'a>(
    mut path: WorkspacePath,
    moves: impl Iterator<Item = (&'a MovesAt, &'a Leads, &'a Leads)>,
    is_back: impl Fn(bool, bool) -> bool,
) -> Spot {
    // Since when something else is there, and whether an operation moved something there last.
    let mut gone: Option<(SeqNumber, bool)> = None;
    for (moves, leads, comes) in moves {
        gone = match (gone, leads.get(&path), comes.get(&path)) {
            (gone, None, None) => gone,
            (None, Some(next), _) => {
                path = next.clone();
                None
            }
            (None, None, Some(_)) => Some((moves.at, moves.by_operation)),
            (Some((_, last)), Some(_), None) if is_back(last, moves.by_operation) => None,
            (Some((at, _)), ..) => Some((at, moves.by_operation)),
        };
    }
    match gone {
        Some((at, _)) => Spot::Gone(at, path),
        None => Spot::At(path),
    }
}

/// Old paths of moved files and their new ones.
type Leads = BTreeMap<WorkspacePath, WorkspacePath>;

/// Changes sorted into trails and the rest.
#[derive(Debug, Default)]
pub struct Sorted {
    /// Those of moved files.
    pub trails: Vec<Trail>,
    pub rest: Vec<Taken>,
}

/// Sorts changes, given in the order in which they are made, into trails of moved files and all others.
pub fn follow(taken: Vec<Taken>, moved: &Moved, begin: Begin) -> Sorted {
    let mut moved = moved.clone();
    // If only one end of a move is taken, the other is not meant: it is somebody else's, or already as it should be.
    let is_taken: BTreeSet<(SeqNumber, &WorkspacePath)> = taken.iter().map(|one| (one.at, &one.path)).collect();
    moved.leave_out(|at, one| is_taken.contains(&(at, &one.from)) != is_taken.contains(&(at, &one.to)));
    let ends = moved.ends_for(&taken);
    let (mut on_trail, mut rest) = (Vec::new(), Vec::new());
    for one in taken {
        if !ends.contains(&one.path) {
            rest.push(one);
            continue;
        }
        for one in parts(one, &moved) {
            let is_file = |entry: &Option<Entry>| matches!(entry, None | Some(Entry::File { .. }));
            let is_on = is_file(&one.link.after) && is_file(&one.link.before);
            if is_on { on_trail.push(one) } else { rest.push(one) }
        }
    }
    // The two ends of a move that is taken as a whole are one step.
    let mut steps: Vec<(SeqNumber, TrailStep)> = Vec::new();
    let mut joined: BTreeMap<(SeqNumber, &WorkspacePath, bool), usize> = BTreeMap::new();
    for one in &on_trail {
        let with_path = |entry: &Option<Entry>| entry.clone().map(|entry| (one.path.clone(), entry));
        let (from, to) = (with_path(&one.link.after), with_path(&one.link.before));
        let is_half = from.is_none() != to.is_none();
        let arrives = match begin {
            Begin::Now => to.is_none(),
            Begin::Then(_) => from.is_none(),
        };
        let partner = match (is_half, arrives) {
            (false, _) => None,
            (true, true) => moved.led_to(one.at, &one.path),
            (true, false) => moved.led_from(one.at, &one.path),
        };
        match partner.and_then(|partner| joined.get(&(one.at, partner, !arrives))) {
            Some(number) => {
                let step = &mut steps[*number].1;
                step.from = step.from.take().or(from);
                step.to = step.to.take().or(to);
            }
            None => {
                if is_half {
                    joined.insert((one.at, &one.path, arrives), steps.len());
                }
                steps.push((one.at, TrailStep { from, to }));
            }
        }
    }
    let mut trails: BTreeMap<Spot, Trail> = BTreeMap::new();
    for (at, step) in steps {
        // In chronological order: what was there before the change, and what was there after it.
        let (before, after) = match begin {
            Begin::Now => (&step.to, &step.from),
            Begin::Then(_) => (&step.from, &step.to),
        };
        let forth = |until: SeqNumber| match (after, before) {
            (Some((path, _)), _) => moved.forth(path.clone(), at, until),
            (None, Some((path, _))) => moved.forth(path.clone(), at.saturating_sub(1), until),
            (None, None) => Spot::Gone(at, WorkspacePath::root()),
        };
        let back = |until: SeqNumber| match (before, after) {
            (Some((path, _)), _) => moved.back(path.clone(), at.saturating_sub(1), until),
            (None, Some((path, _))) => moved.back(path.clone(), at, until),
            (None, None) => Spot::Gone(at, WorkspacePath::root()),
        };
        let spot = match begin {
            Begin::Now => forth(SeqNumber::MAX),
            Begin::Then(then) if at <= then => forth(then),
            Begin::Then(then) => back(then),
        };
        let (Spot::At(now) | Spot::Gone(_, now)) = forth(SeqNumber::MAX);
        let begins = match &spot {
            Spot::At(path) => Some(path.clone()),
            Spot::Gone(..) => None,
        };
        let trail = trails.entry(spot).or_insert_with(|| Trail { begins, now: now.clone(), steps: Vec::new() });
        trail.now = now;
        trail.add(step);
    }
    let mut trails: Vec<Trail> = trails.into_values().collect();
    trails.iter_mut().for_each(|trail| trail.steps.retain(|step| step.from != step.to));
    trails.retain(|trail| !trail.steps.is_empty());
    Sorted { trails, rest }
}

/// Splits a change at an end of a move where the entries before and after are not the same file: one that leaves, and
/// then one that arrives, in the order in which they are made.
fn parts(one: Taken, moved: &Moved) -> Vec<Taken> {
    let Taken { at, path, link } = one;
    let is_file = |entry: &Option<Entry>| matches!(entry, Some(Entry::File { .. }));
    let is_both = link.after.is_some() && link.before.is_some();
    let is_end = moved.led_to(at, &path).is_some() || moved.led_from(at, &path).is_some();
    let is_mixed = is_file(&link.after) != is_file(&link.before);
    if !is_both || !(is_end || is_mixed) {
        return vec![Taken { at, path, link }];
    }
    let goes = Taken { at, path: path.clone(), link: Link { after: link.after, before: None } };
    let comes = Taken { at, path, link: Link { after: None, before: link.before } };
    vec![goes, comes]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::ObjectId;

    fn path(text: &str) -> WorkspacePath {
        WorkspacePath::new(text).unwrap()
    }

    fn entry(content: &str) -> Entry {
        let blob = ObjectId::of_blob(content.as_bytes());
        Entry::File { mode: 0o644, size: content.len() as u64, blob }
    }

    /// Plays a history, one moment per word: `f:1-2` changes f from 1 to 2 (`-2` creates it, `1-` deletes it),
    /// `f>g:1-2` moves it and changes it on the way. Words that begin with `!` are taken; the others are somebody
    /// else's. Checks the resulting trails: where the file is in the starting state, and its steps.
    fn check(history: &str, begin: Begin, expected: &str) {
        let mut taken = Vec::new();
        let mut moves = Vec::new();
        for (at, word) in history.split_whitespace().enumerate() {
            let at = at as SeqNumber + 1;
            let (is_taken, word) = word.strip_prefix('!').map_or((false, word), |word| (true, word));
            let (place, content) = word.split_once(':').unwrap();
            let (before, after) = content.split_once('-').unwrap();
            let version = |content: &str| (!content.is_empty()).then(|| entry(content));
            let (before, after) = (version(before), version(after));
            let mut ends = Vec::new();
            match place.split_once('>') {
                Some((from, to)) => {
                    moves.push((at, vec![Move { from: path(from), to: path(to) }]));
                    ends.push((path(from), before, None));
                    ends.push((path(to), None, after));
                }
                None => ends.push((path(place), before, after)),
            }
            for (path, before, after) in ends.into_iter().filter(|_| is_taken) {
                let link = match begin {
                    Begin::Now => Link { after, before },
                    Begin::Then(_) => Link { after: before, before: after },
                };
                taken.push(Taken { at, path, link });
            }
        }
        if begin == Begin::Now {
            taken.reverse();
        }
        let names: BTreeMap<ObjectId, char> =
            ('0'..='9').map(|c| (ObjectId::of_blob(c.to_string().as_bytes()), c)).collect();
        let place = |place: &Option<Placed>| match place {
            Some((path, Entry::File { blob, .. })) => format!("{}{}", path.display(), names[blob]),
            _ => "-".to_owned(),
        };
        let sorted = follow(taken, &Moved::new(moves, []), begin);
        let shown = sorted.trails.iter().map(|trail| {
            let begins = trail.begins.as_ref().map_or("-".to_owned(), WorkspacePath::display);
            let steps: Vec<_> = trail.steps.iter().map(|s| format!("{}>{}", place(&s.from), place(&s.to))).collect();
            format!("{begins}[{}]{}", steps.join(" "), trail.now.display())
        });
        assert_eq!(shown.collect::<Vec<_>>().join(" "), expected, "{history}");
    }

    #[test]
    fn a_file_is_followed_from_now_through_whosever_moves() {
        // An edit before a move is found where the file is now.
        check("!f:0-1 f>g:1-1", Begin::Now, "g[f1>f0]g");
        check("!f:0-1 f>g:1-1 g>h:1-1", Begin::Now, "h[f1>f0]h");
        // A move is one step, together with adjacent edits.
        check("!f>g:0-0", Begin::Now, "g[g0>f0]g");
        check("!f>g:0-1 !g>h:1-1", Begin::Now, "h[h1>f0]h");
        check("!f>g:0-0 g:0-1 !g>h:1-1", Begin::Now, "h[h1>g1 g0>f0]h");
        // There and back again.
        check("!f>g:0-0 g>f:0-0", Begin::Now, "f[g0>f0]f");
        check("!f>g:0-0 !g>f:0-0", Begin::Now, "");
        // Moved, and deleted at its new path.
        check("!f>g:0-0 !g:0-", Begin::Now, "g[->f0]g");
        // Something else was moved to where it had been: it no longer exists.
        check("!g:1- !f>g:0-0", Begin::Now, "g[g0>f0]g -[->g1]g");
        // A new file at the old path is another file.
        check("f>g:0-0 !f:-1", Begin::Now, "f[f1>-]f");
    }

    #[test]
    fn what_an_operation_moved_and_the_next_one_moved_back_was_never_elsewhere() {
        let moves = |text: &str| -> Vec<Move> {
            let ends = text.split_whitespace().map(|word| word.split_once('>').unwrap());
            ends.map(|(from, to)| Move { from: path(from), to: path(to) }).collect()
        };
        // Something is moved away before and after, and something else is at its path in between.
        let by_hands = [(1, moves("f>g")), (9, moves("h>f g>h"))];
        let expected = Moved::new(by_hands.clone(), []);
        for there in ["g>h", "g>f", "g>h h>g", "h>g g>f", "f>h g>f"] {
            let there = moves(there);
            let back: Vec<Move> = there.iter().map(|one| Move { from: one.to.clone(), to: one.from.clone() }).collect();
            let twice = [(3, there.clone()), (4, there.clone()), (5, back.clone()), (6, back.clone())];
            for by_operations in [vec![(3, there), (4, back)], twice.to_vec()] {
                let moved = Moved::new(by_hands.clone(), by_operations);
                for name in ["f", "g", "h"] {
                    for then in [0, 1, 9] {
                        let back = |moved: &Moved| moved.path_before(&path(name), SeqNumber::MAX, then);
                        assert_eq!(back(&moved), back(&expected));
                        assert_eq!(moved.path_now(&path(name), then), expected.path_now(&path(name), then));
                    }
                }
            }
        }
    }

    #[test]
    fn an_edit_between_an_operation_and_the_one_that_took_it_back_is_where_the_file_went() {
        let one = |from: &str, to: &str| vec![Move { from: path(from), to: path(to) }];
        let there_and_back = [(2, one("f", "g")), (4, one("g", "f"))];
        let twice = there_and_back.into_iter().chain([(6, one("f", "g"))]);
        let moved = Moved::new([], twice);
        for (at, now) in [(1, "f"), (3, "g"), (5, "f")] {
            assert_eq!(moved.path_now(&path(now), at), Some(path("g")), "{at}");
        }
        // The first of the three stands with the move that is asked about, the other two left no trace.
        let change = |at: SeqNumber, name: &str, after: &str, before: &str| {
            let version = |content: &str| (!content.is_empty()).then(|| entry(content));
            Taken { at, path: path(name), link: Link { after: version(after), before: version(before) } }
        };
        let sorted = follow(vec![change(2, "f", "", "0"), change(2, "g", "0", "")], &moved, Begin::Now);
        let step = TrailStep { from: Some((path("g"), entry("0"))), to: Some((path("f"), entry("0"))) };
        let expected = Trail { begins: Some(path("g")), now: path("g"), steps: vec![step] };
        assert_eq!(sorted.trails, [expected]);
    }

    #[test]
    fn a_file_is_followed_from_an_earlier_moment() {
        // The move is not carried over, the edit is.
        check("f>g:0-0 !g:0-1", Begin::Then(0), "f[g0>g1]g");
        // The other way round.
        check("f:0-1 !f>g:1-1", Begin::Then(0), "f[f1>g1]g");
        // Moved there and back by others.
        check("f>g:0-0 !g:0-1 g>f:1-1", Begin::Then(0), "f[g0>g1]f");
        // A new file at the path of one that was moved.
        check("f>g:0-0 !f:-1", Begin::Then(0), "-[->f1]f");
        // Older than the moment, and reinstated since: it starts from where the file was then.
        check("!f>g:0-0 g>f:0-0 f>g:0-0", Begin::Then(2), "f[f0>g0]g");
    }
}
