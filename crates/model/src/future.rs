//! Future turns: those after the target of a conversation rewind. They are kept and stay readable, and taking the
//! rewind back makes them ordinary turns again.
//!
//! Nothing is recorded for this: it follows from the operations in force and from the turns, in the order of their
//! records.

use std::collections::HashMap;

use crate::conversation::ConversationSwitch;
use crate::id::{OperationId, SessionId};

/// An operation that moved the conversation, was completed and was not taken back.
#[derive(Clone, Copy, Debug)]
pub struct Departure<'a> {
    pub operation: &'a OperationId,
    /// The sequence number of its record.
    pub seq: u64,
    pub went: &'a ConversationSwitch,
}

/// A turn, and when it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnAt {
    /// The sequence number of its record.
    pub seq: u64,
    /// The session it is recorded under.
    pub session: SessionId,
    pub number: u32,
}

/// The future turns, each with the last operation that went back past it. `holds` says whether a turn is part of a
/// session's conversation: its own, or one of those it branched from.
///
/// Once somebody continues in a conversation that contains such a turn, it is no longer a future turn.
pub fn future_turns<'a>(
    departures: &[Departure<'a>],
    turns: &[TurnAt],
    holds: impl Fn(&SessionId, &TurnAt) -> bool,
) -> HashMap<(SessionId, u32), &'a OperationId> {
    let mut departures: Vec<&Departure<'a>> = departures.iter().filter(|departure| departure.went.goes).collect();
    departures.sort_by_key(|departure| departure.seq);
    let mut future = HashMap::new();
    for departure in departures {
        let ConversationSwitch { from, to, turn, .. } = departure.went;
        let mut since: Vec<&SessionId> =
            turns.iter().filter(|one| one.seq > departure.seq).map(|one| &one.session).collect();
        since.sort();
        since.dedup();
        for one in turns {
            let is_passed = one.seq < departure.seq && one.number >= *turn && holds(from, one);
            // A summary of what came before keeps the turns after it.
            let is_there = to.as_ref().is_some_and(|to| holds(to, one)) || since.iter().any(|id| holds(id, one));
            if is_passed && !is_there {
                future.insert((one.session.clone(), one.number), departure.operation);
            }
        }
    }
    future
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sessions are single letters: `b` is a branch of `a` from turn 3, `c` a branch of `b` from turn 2, `f` a fork of
    /// `a` from turn 4.
    fn holds(session: &SessionId, turn: &TurnAt) -> bool {
        let parts: &[(&str, u32)] = match () {
            _ if *session == id("b") => &[("b", u32::MAX), ("a", 3)],
            _ if *session == id("c") => &[("c", u32::MAX), ("b", 2), ("a", 2)],
            _ if *session == id("f") => &[("f", u32::MAX), ("a", 4)],
            _ => &[("a", u32::MAX)],
        };
        parts.iter().any(|(one, end)| id(one) == turn.session && turn.number < *end)
    }

    fn id(letter: &str) -> SessionId {
        SessionId::of("agent", letter)
    }

    /// The story in order: `a3` is turn 3 of `a`, `a>b3` a departure from `a` to `b` past turn 3.
    #[track_caller]
    fn check(story: &str, expected: &[&str]) {
        let mut turns = Vec::new();
        let mut went = Vec::new();
        for (seq, word) in story.split(' ').enumerate() {
            let (letters, number) = word.split_at(word.len() - 1);
            let number = number.parse().unwrap();
            match letters.split_once('>') {
                Some((from, to)) => {
                    let operation = OperationId::from_random([seq as u8; 8]);
                    let went_to = ConversationSwitch { from: id(from), to: Some(id(to)), turn: number, goes: true };
                    went.push((operation, seq as u64, went_to));
                }
                None => turns.push(TurnAt { seq: seq as u64, session: id(letters), number }),
            }
        }
        let departures: Vec<_> =
            went.iter().map(|(operation, seq, went)| Departure { operation, seq: *seq, went }).collect();
        let future = future_turns(&departures, &turns, holds);
        let mut found: Vec<String> = Vec::new();
        for letter in ["a", "b", "c", "f"] {
            let numbers = (1..9).filter(|number| future.contains_key(&(id(letter), *number)));
            found.extend(numbers.map(|number| format!("{letter}{number}")));
        }
        assert_eq!(found, expected, "{story}");
    }

    #[test]
    fn turns_from_the_one_that_was_gone_back_to_are_future_and_no_others() {
        check("a1 a2 a3 a4", &[]);
        check("a1 a2 a3 a4 a>b3", &["a3", "a4"]);
        check("a1 a2 a3 a4 a>b3 b3 b4", &["a3", "a4"]);
    }

    #[test]
    fn going_back_again_goes_past_turns_of_every_generation() {
        check("a1 a2 a3 a>b3 b3 b>c2", &["a2", "a3", "b3"]);
        check("a1 a2 a3 a>b3 b3 b>c2 c2 c3", &["a2", "a3", "b3"]);
    }

    #[test]
    fn who_goes_on_where_they_were_has_nothing_before_them() {
        check("a1 a2 a3 a>b3 a4", &[]);
        // A fork has the turns that it shares, and not those after.
        check("a1 a2 a3 a4 a>b2 f4", &["a4"]);
    }

    #[test]
    fn a_turn_that_is_where_the_user_went_was_not_passed() {
        check("a1 a2 a3 a4 a>f2", &["a4"]);
    }

    #[test]
    fn a_branch_that_nobody_went_to_leaves_everything_as_it_is() {
        let went = ConversationSwitch { from: id("a"), to: Some(id("f")), turn: 1, goes: false };
        let operation = OperationId::from_random([1; 8]);
        let turns = [TurnAt { seq: 1, session: id("a"), number: 1 }];
        assert!(future_turns(&[Departure { operation: &operation, seq: 2, went: &went }], &turns, holds).is_empty());
    }
}
