//! Which changes are in effect: a rewind suspends what was done since its target, an undo what it took back, and a redo
//! reinstates both.
//!
//! Derived from the order of events and not from the checkpoints' parents: after an undo in the middle, or a redo on
//! top of new work, no single parent says what is in a file.

use std::collections::{HashMap, HashSet};

use crate::id::{CheckpointId, OperationId};
use crate::operation::{ChangesAt, OperationKind};
use crate::path::WorkspacePath;

/// A change whose effect is tracked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChangeRef {
    /// The checkpoint that found it.
    pub checkpoint: CheckpointId,
    pub path: WorkspacePath,
}

/// An operation that was carried out.
#[derive(Clone, Debug)]
pub struct DoneOperation {
    pub id: OperationId,
    /// The sequence number of its record.
    pub seq: u64,
    pub kind: OperationKind,
}

/// When changes came into effect and went out of it.
#[derive(Debug)]
pub struct Effects {
    /// For each change, when it came into effect or went out of it; the first is when it was found.
    since: Vec<Vec<Turn>>,
}

/// A change comes into effect or goes out of it.
#[derive(Clone, Copy, Debug)]
struct Turn {
    seq: u64,
    is_in_effect: bool,
    /// Since when it is so for whoever takes what was done and taken back as never done: a redo only reinstates that.
    origin: u64,
}

impl Effects {
    /// Follows changes, each with its checkpoint's sequence number, through operations in their order. `seq_of` gives
    /// the sequence number of any checkpoint.
    pub fn follow(
        changes: &[(u64, ChangeRef)],
        operations: &[DoneOperation],
        seq_of: impl Fn(&CheckpointId) -> Option<u64>,
    ) -> Self {
        let mut effects = Self {
            since: changes.iter().map(|(seq, _)| vec![Turn { seq: *seq, is_in_effect: true, origin: *seq }]).collect(),
        };
        let places: HashMap<&OperationId, u64> = operations.iter().map(|done| (&done.id, done.seq)).collect();
        for done in operations {
            match &done.kind {
                OperationKind::Rewind { target, paths, kept, left } => {
                    let Some(target) = seq_of(target) else { continue };
                    let kept = kept.as_deref().map(index);
                    for (number, (seq, change)) in changes.iter().enumerate() {
                        let within = change.path.is_in_scope(paths);
                        let is_kept = kept.as_ref().is_some_and(|kept| holds(kept, change));
                        if *seq < done.seq && within && !is_kept && !is_left(left, change) {
                            let then = effects.at(number, target);
                            effects.set(number, done.seq, then);
                        }
                    }
                }
                OperationKind::Undo { changes: undone } => {
                    let undone = index(undone);
                    for (number, (_, change)) in changes.iter().enumerate() {
                        if holds(&undone, change) {
                            effects.set(number, done.seq, false);
                        }
                    }
                }
                OperationKind::Redo { of, also, gone, left, only, .. } => {
                    let Some(of) = places.get(of) else { continue };
                    let also: Vec<u64> = also.iter().filter_map(|id| places.get(id)).copied().collect();
                    let gone = index(gone);
                    for (number, (_, change)) in changes.iter().enumerate() {
                        if holds(&gone, change) {
                            effects.set(number, done.seq, false);
                        }
                        let bears = |seq: &u64| seq == of || also.contains(seq);
                        // As it was before the first of them that bore on it.
                        let first = effects.since[number].iter().map(|turn| turn.seq).find(bears);
                        if let Some(first) = first
                            && change.path.is_in_scope(only)
                            && !is_left(left, change)
                        {
                            effects.reinstate(number, done.seq, first - 1);
                        }
                    }
                }
                // They change no file.
                OperationKind::Branch | OperationKind::Checkout { .. } => {}
                // It rolls back what a crash left behind: nothing came of the operation.
                OperationKind::Recover { .. } => {}
            }
        }
        effects
    }

    pub fn is_in_effect(&self, number: usize) -> bool {
        self.at(number, u64::MAX)
    }

    /// The sequence number at which a change last came into effect or went out of it after another one. What was done after that
    /// and taken back does not count.
    pub fn turned_after(&self, number: usize, seq: u64) -> u64 {
        let last = self.since[number].last();
        last.map_or(0, |turn| if turn.origin > seq { turn.origin } else { turn.seq })
    }

    /// Whether a change was in effect at a sequence number.
    pub fn at(&self, number: usize, seq: u64) -> bool {
        self.turn(number, seq).is_some_and(|turn| turn.is_in_effect)
    }

    fn turn(&self, number: usize, seq: u64) -> Option<Turn> {
        self.since[number].iter().rev().find(|turn| turn.seq <= seq).copied()
    }

    fn set(&mut self, number: usize, seq: u64, is_in_effect: bool) {
        if self.is_in_effect(number) != is_in_effect {
            self.since[number].push(Turn { seq, is_in_effect, origin: seq });
        }
    }

    /// Brings a change back to how it was at an earlier sequence number.
    fn reinstate(&mut self, number: usize, seq: u64, then: u64) {
        let (is_in_effect, origin) = self.turn(number, then).map_or((false, seq), |t| (t.is_in_effect, t.origin));
        if self.is_in_effect(number) != is_in_effect {
            self.since[number].push(Turn { seq, is_in_effect, origin });
        }
    }
}

/// Whether a change's path stayed as it was although an operation should have changed it.
fn is_left(left: &[WorkspacePath], change: &ChangeRef) -> bool {
    left.iter().any(|path| change.path.is_within(path))
}

/// Changed paths by checkpoint.
fn index(changes: &[ChangesAt]) -> HashMap<&CheckpointId, HashSet<&WorkspacePath>> {
    let mut all: HashMap<_, HashSet<_>> = HashMap::new();
    changes.iter().for_each(|at| all.entry(&at.checkpoint).or_default().extend(&at.paths));
    all
}

fn holds(index: &HashMap<&CheckpointId, HashSet<&WorkspacePath>>, change: &ChangeRef) -> bool {
    index.get(&change.checkpoint).is_some_and(|paths| paths.contains(&change.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a history. A change is the letter of its checkpoint and its path.
    ///
    /// `a` finds a change of the file `a`; `<a` rewinds to checkpoint `a`; `<a:b` rewinds only the path `b`; `<a^b`
    /// keeps the change b; `-ab` undoes the changes a and b; `+2` takes back the second operation, `+2-a` the change a
    /// along with it, `+2!b` everything but the path `b`, `+2:b` only that.
    fn play(history: &str) -> (Vec<(u64, ChangeRef)>, Effects) {
        let id = |name: &str| CheckpointId::from_random([name.as_bytes()[0]; 8]);
        let operation = |n: usize| OperationId::from_random([n as u8; 8]);
        let path = |name: &str| WorkspacePath::new(name).unwrap();
        let named = |names: &str| {
            let names = names.split("").filter(|name| !name.is_empty());
            names.map(|name| ChangesAt { checkpoint: id(name), paths: vec![path(name)] }).collect::<Vec<_>>()
        };
        let mut changes: Vec<(u64, ChangeRef)> = Vec::new();
        let mut operations: Vec<DoneOperation> = Vec::new();
        for (seq, word) in history.split_whitespace().enumerate() {
            let seq = seq as u64 + 1;
            let (sign, rest) = word.split_at(1);
            let kind = match sign {
                "<" => {
                    let (rest, kept) = rest.split_once('^').map_or((rest, None), |(t, kept)| (t, Some(kept)));
                    let (target, paths) = rest.split_once(':').map_or((rest, ""), |(t, p)| (t, p));
                    let paths = paths.split_terminator(',').map(path).collect();
                    OperationKind::Rewind { target: id(target), paths, kept: kept.map(named), left: Vec::new() }
                }
                "-" => OperationKind::Undo { changes: named(rest) },
                "+" => {
                    let (rest, only) = rest.split_once(':').unwrap_or((rest, ""));
                    let (rest, left) = rest.split_once('!').unwrap_or((rest, ""));
                    let (of, gone) = rest.split_once('-').unwrap_or((rest, ""));
                    let paths = |names: &str| names.split_terminator(',').map(path).collect::<Vec<_>>();
                    let (left, only) = (paths(left), paths(only));
                    let (of, gone) = (operation(of.parse().unwrap()), named(gone));
                    OperationKind::Redo { of, also: Vec::new(), gone, open: left.clone(), left, only }
                }
                name => {
                    changes.push((seq, ChangeRef { checkpoint: id(name), path: path(name) }));
                    continue;
                }
            };
            operations.push(DoneOperation { id: operation(operations.len() + 1), seq, kind });
        }
        let places: Vec<(CheckpointId, u64)> = changes.iter().map(|(s, c)| (c.checkpoint.clone(), *s)).collect();
        let seq_of = |id: &CheckpointId| places.iter().find(|(one, _)| one == id).map(|(_, seq)| *seq);
        let effects = Effects::follow(&changes, &operations, seq_of);
        (changes, effects)
    }

    /// Plays a history and checks which changes are in effect.
    fn check(history: &str, expected: &str) {
        let (changes, effects) = play(history);
        let found: String =
            (0..changes.len()).filter(|n| effects.is_in_effect(*n)).map(|n| changes[n].1.path.display()).collect();
        assert_eq!(found, expected, "{history}");
    }

    #[test]
    fn a_redo_reinstates_also_since_when_a_change_was_taken_back() {
        for (history, after, expected) in [
            ("a b c -b", 3, 4),
            // Taken back, brought back by a rewind, and that taken back.
            ("a b c -b <c +2", 3, 4),
            ("a b c -b <c +2 <c +4", 3, 4),
            // For who was there in between it is the redo that took it.
            ("a b c -b <c d +2", 6, 7),
            ("a b c -b +1 -b", 3, 6),
        ] {
            assert_eq!(play(history).1.turned_after(1, after), expected, "{history}");
        }
    }

    #[test]
    fn what_operations_leave_in_effect() {
        for (history, expected) in [
            ("a b c", "abc"),
            ("a b c <a", "a"),
            ("a b c <a d", "ad"),
            ("a b c <a +1", "abc"),
            // Later work stays in effect when the rewind is taken back,
            ("a b c <a d +1", "abcd"),
            // unless it belongs to the branch that the redo leads away from; it returns with that branch.
            ("a b c <a d e +1-d", "abce"),
            ("a b c <a d +1-d +2", "ad"),
            // To a future turn, and back from there.
            ("a b c <a d <c", "abc"),
            ("a b c <a d <c <d", "ad"),
            ("a b c <a:b", "ac"),
            ("a b c -b", "ac"),
            ("a b c -b +1", "abc"),
            ("a b c -bc d", "ad"),
            ("a b -b <b", "ab"),
            ("a b c -b <a", "a"),
            ("a b c -b <a +2", "ac"),
            ("a b c -b <a +2 +1", "abc"),
            ("a b c -b -c +2", "ac"),
            // Carried-over changes stay in effect, and only those; taking the rewind back reinstates the rest.
            ("a b c <a^c", "ac"),
            ("a b c <a^c +1", "abc"),
            ("a b c <a^c d -c", "ad"),
            ("a b c <a^c d -c +2 +1", "abcd"),
            ("a b c -c <a^b +2", "ab"),
            ("a b c <a:c^c", "abc"),
            // A redo that is taken back, and that taken back in turn.
            ("a b c -b +1 +2", "ac"),
            ("a b c -b +1 +2 +3", "abc"),
            ("a b c <a +1 +2", "a"),
            ("a b c <a +1 d +2", "ad"),
            ("a b c <a +1 d +2 +3", "abcd"),
            // Taken back in part, then the rest: what was undone in between stays undone.
            ("a b c <a +1!b", "ac"),
            ("a b c <a +1!b +1:b", "abc"),
            ("a b c <a +1!b -c +1:b", "ab"),
            // Undone again after it came back, or twice at once.
            ("a b c -b +1 -b", "ac"),
            ("a b c -b +1 -b +3", "abc"),
            ("a b c -b -bc +2", "ac"),
            // An operation in the middle is taken back by its id while later ones stand.
            ("a b c -a -b +1", "ac"),
            ("a b c -a <a +1", "a"),
            ("a b c -b <c +1", "abc"),
            // A target or an operation that is no longer known has no effect.
            ("a b c <z", "abc"),
            ("a b c +9", "abc"),
        ] {
            check(history, expected);
        }
    }
}
