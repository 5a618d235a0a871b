//! Which changes to a file outside the workspace are still in it.
//!
//! Such a file is not captured between the tools that name it. All that is known is what each tool and operation found
//! and left; any difference between two of them is somebody else's work. So nothing may be joined across such a gap:
//! the changes in effect are returned one by one, and [`crate::inverse`] takes each back separately.

use std::collections::HashMap;

use crate::id::{OperationId, SessionId};
use crate::inverse::Link;

/// One change of the file.
#[derive(Clone, Debug)]
pub struct Transition<'a> {
    pub seq: u64,
    /// What it found and what it left.
    pub link: Link,
    pub by: ChangedBy<'a>,
}

#[derive(Clone, Copy, Debug)]
pub enum ChangedBy<'a> {
    /// A tool of a session.
    Step(&'a SessionId),
    Rewind {
        id: &'a OperationId,
        /// The sequence number it went back to.
        to: u64,
        /// Whether it may have carried over changes of other sessions.
        carries: bool,
    },
    Undo(&'a OperationId),
    /// Takes back an earlier operation, `of`.
    Redo {
        id: &'a OperationId,
        of: &'a OperationId,
    },
}

/// The indexes of the changes in effect, oldest first. Taking all of them back makes the file what it was before them,
/// except for the work of others. All transitions were made after the sequence number `since`.
pub fn in_effect(transitions: &[Transition<'_>], since: u64) -> Vec<usize> {
    let mut standing: Vec<usize> = Vec::new();
    // The changes in effect before and after each operation.
    let mut around: HashMap<&OperationId, (Vec<usize>, Vec<usize>)> = HashMap::new();
    for (number, transition) in transitions.iter().enumerate() {
        let before = standing.clone();
        match transition.by {
            ChangedBy::Step(_) => standing.push(number),
            ChangedBy::Redo { of, .. } => match around.get(of) {
                Some((then, left)) if standing.starts_with(left) => {
                    let later = standing.split_off(left.len());
                    standing = then.iter().copied().chain(later).collect();
                }
                _ => go_back(&mut standing, transitions, number),
            },
            ChangedBy::Rewind { to, carries, .. } => match earlier_state(&standing, transitions, number) {
                Some(at) => standing.truncate(at),
                // Merged with the work of others, so no earlier state tells what is left.
                None if to >= since && !(carries && is_of_several(&standing, transitions, to)) => {
                    standing.retain(|one| transitions[*one].seq <= to);
                }
                None => standing.push(number),
            },
            ChangedBy::Undo(_) => go_back(&mut standing, transitions, number),
        }
        if let ChangedBy::Rewind { id, .. } | ChangedBy::Undo(id) | ChangedBy::Redo { id, .. } = transition.by {
            around.insert(id, (before, standing.clone()));
        }
    }
    standing
}

/// An operation that restored the file's state from before some changes took those out; otherwise it is a change
/// itself.
fn go_back(standing: &mut Vec<usize>, transitions: &[Transition<'_>], number: usize) {
    match earlier_state(standing, transitions, number) {
        Some(at) => standing.truncate(at),
        None => standing.push(number),
    }
}

/// How many of the changes were in effect when the file was as a transition left it.
fn earlier_state(standing: &[usize], transitions: &[Transition<'_>], number: usize) -> Option<usize> {
    let left = &transitions[number].link.after;
    let before = standing.iter().position(|one| transitions[*one].link.before == *left);
    before.or_else(|| standing.last().filter(|one| transitions[**one].link.after == *left).map(|_| standing.len()))
}

/// Whether several sessions made the changes after a sequence number.
fn is_of_several(standing: &[usize], transitions: &[Transition<'_>], after: u64) -> bool {
    let later = standing.iter().map(|one| &transitions[*one]).filter(|one| one.seq > after);
    let mut sessions = later.filter_map(|one| if let ChangedBy::Step(session) = one.by { Some(session) } else { None });
    let first = sessions.next();
    sessions.any(|other| Some(other) != first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::ObjectId;
    use crate::tree::Entry;

    /// Each is `who: from > to`, where `_` is no file. `who` is a session's letter, or an operation: `rewind=NAME@SEQ`,
    /// `partly=NAME@SEQ` (one that carries over), `undo=NAME`, `redo=NAME@OF`. The sequence numbers are 10, 20, 30 …
    fn check(story: &[&str], since: u64, expected: &[usize]) {
        let id = |name: &str| OperationId::from_random(ObjectId::of_blob(name.as_bytes()).0[..8].try_into().unwrap());
        let mut names: Vec<(SessionId, OperationId, OperationId)> = Vec::new();
        for one in story {
            let (who, _) = one.split_once(": ").unwrap();
            let name = who.split_once('=').map_or(who, |(_, name)| name);
            let (name, of) = name.split_once('@').unwrap_or((name, ""));
            names.push((SessionId::of("test", who), id(name), id(of)));
        }
        let entry = |content: &str| {
            let blob = ObjectId::of_blob(content.as_bytes());
            (content != "_").then_some(Entry::File { mode: 0o644, size: 1, blob })
        };
        let transitions: Vec<Transition<'_>> = story
            .iter()
            .zip(&names)
            .zip(1..)
            .map(|((one, (session, id, of)), number)| {
                let (who, change) = one.split_once(": ").unwrap();
                let (before, after) = change.split_once(" > ").unwrap();
                let to = || who.split_once('@').unwrap().1.parse().unwrap();
                let by = match who.split_once('=') {
                    None => ChangedBy::Step(session),
                    Some(("rewind", _)) => ChangedBy::Rewind { id, to: to(), carries: false },
                    Some(("partly", _)) => ChangedBy::Rewind { id, to: to(), carries: true },
                    Some(("undo", _)) => ChangedBy::Undo(id),
                    Some(_) => ChangedBy::Redo { id, of },
                };
                Transition { seq: number * 10, link: Link { before: entry(before), after: entry(after) }, by }
            })
            .collect();
        assert_eq!(in_effect(&transitions, since), expected, "{story:?}");
    }

    #[test]
    fn steps_stand_until_an_operation_takes_them_out() {
        check(&["a: 1 > 2", "b: 2 > 3"], 5, &[0, 1]);
        check(&["a: 1 > 2", "a: 3 > 4"], 5, &[0, 1]);
        check(&["a: 1 > 2", "a: 2 > 3", "undo=u: 3 > 2"], 5, &[0]);
        check(&["a: 1 > 2", "a: 2 > 3", "rewind=r@5: 3 > 1"], 5, &[]);
        check(&["a: _ > 2", "rewind=r@5: 2 > _", "a: _ > 3"], 5, &[2]);
    }

    #[test]
    fn a_redo_makes_good_again_what_its_operation_took_out() {
        check(&["a: 1 > 2", "undo=u: 2 > 1", "redo=x@u: 1 > 2"], 5, &[0]);
        check(&["a: 1 > 2", "rewind=r@5: 2m > 1m", "redo=x@r: 1m > 2m"], 5, &[0]);
        check(&["a: 1 > 2", "undo=u: 2 > 1", "a: 1 > 3", "redo=x@u: 3 > 23"], 5, &[0, 2]);
        check(&["a: 1 > 2", "undo=u: 2 > 1", "redo=x@u: 1 > 2", "redo=y@x: 2 > 1"], 5, &[]);
    }

    #[test]
    fn a_rewind_that_was_merged_with_the_work_of_others_took_out_all_since_its_target() {
        check(&["a: 1 > 2", "rewind=r@5: 2m > 1m"], 5, &[]);
        check(&["a: 1 > 2", "a: 2 > 3", "rewind=r@15: 3m > 2m"], 5, &[0]);
        check(&["a: 1 > 2", "partly=r@5: 2m > 1m"], 5, &[]);
        // It is unknown whose changes it carried over, so it counts as a change that can be taken back.
        check(&["a: 1 > 2", "b: 2 > 3", "partly=r@5: 3m > 13m"], 5, &[0, 1, 2]);
        check(&["a: 1 > 2", "a: 2 > 3", "undo=u: 3m > 13m"], 5, &[0, 1, 2]);
    }

    #[test]
    fn what_an_operation_did_to_older_changes_is_a_change() {
        check(&["undo=u: 2 > 1"], 5, &[0]);
        check(&["a: 2 > 3", "rewind=r@1: 3 > 1"], 5, &[0, 1]);
        check(&["redo=x@unknown: 1 > 2"], 5, &[0]);
    }
}
