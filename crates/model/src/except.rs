//! What somebody takes out of a plan: paths, and places in files, that stay as they are now.

use imara_diff::{Algorithm, Diff, InternedInput};
use serde::{Deserialize, Serialize};

use crate::id::ObjectId;
use crate::path::WorkspacePath;
use crate::text::{Hunk, is_binary, lines};

/// Paths and places that a plan leaves as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Except {
    /// With everything beneath them.
    pub paths: Vec<WorkspacePath>,
    pub hunks: Vec<ExceptHunk>,
}

impl Except {
    pub const NOTHING: Self = Self { paths: Vec::new(), hunks: Vec::new() };

    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.hunks.is_empty()
    }
}

/// One place of one file, as a diff of the plan showed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExceptHunk {
    pub path: WorkspacePath,
    /// The content that was compared, so that line numbers mean what they meant.
    pub now: ObjectId,
    /// The content that the plan would put there, with no exceptions.
    pub then: ObjectId,
    #[serde(flatten)]
    pub at: HunkAt,
}

/// Where a hunk lies, as in its header: lines from 1, or the line before it where a side has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HunkAt {
    pub old_start: u32,
    pub old_lines: u32,
    pub new_start: u32,
    pub new_lines: u32,
}

impl From<&Hunk> for HunkAt {
    fn from(hunk: &Hunk) -> Self {
        let Hunk { old_start, old_lines, new_start, new_lines, .. } = *hunk;
        Self { old_start, old_lines, new_start, new_lines }
    }
}

impl HunkAt {
    /// Whether a difference, its lines counted from 0, lies in it.
    fn holds(&self, difference: &imara_diff::Hunk) -> bool {
        let within = |start: u32, lines: u32, range: &std::ops::Range<u32>| {
            let from = if lines == 0 { start } else { start.saturating_sub(1) };
            from <= range.start && range.end <= from.saturating_add(lines)
        };
        within(self.old_start, self.old_lines, &difference.before)
            && within(self.new_start, self.new_lines, &difference.after)
    }
}

/// What is to be put in place of `now`, with some places as they are now; `None` where the contents have no such places.
pub fn with_places_as_now(now: &[u8], then: &[u8], places: &[HunkAt]) -> Option<Vec<u8>> {
    if is_binary(now) || is_binary(then) {
        return None;
    }
    let (now, then) = (lines(now), lines(then));
    let mut input = InternedInput::default();
    input.update_before(now.iter().copied());
    input.update_after(then.iter().copied());
    // As `text::diff` compares: the places are those that it showed.
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_no_heuristic(&input);
    let mut out: Vec<u8> = Vec::new();
    let mut used = vec![false; places.len()];
    let mut at = 0;
    for difference in diff.hunks() {
        let (before, after) = (difference.before.start as usize, difference.before.end as usize);
        out.extend(now.get(at..before)?.concat());
        let found = places.iter().position(|place| place.holds(&difference));
        let stays = match found {
            Some(number) => {
                used[number] = true;
                now.get(before..after)?
            }
            None => then.get(difference.after.start as usize..difference.after.end as usize)?,
        };
        out.extend(stays.concat());
        at = after;
    }
    out.extend(now.get(at..)?.concat());
    used.into_iter().all(|used| used).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{TextDiff, diff};

    fn hunks(now: &str, then: &str, context: u32) -> Vec<HunkAt> {
        match diff(now.as_bytes(), then.as_bytes(), context) {
            TextDiff::Text { hunks } => hunks.iter().map(HunkAt::from).collect(),
            TextDiff::Binary => panic!("binary"),
        }
    }

    /// Leaves out each hunk alone, then all of them.
    fn check(now: &str, then: &str, context: u32, each: &[&str]) {
        let all = hunks(now, then, context);
        let but = |left: &[HunkAt]| {
            String::from_utf8(with_places_as_now(now.as_bytes(), then.as_bytes(), left).unwrap()).unwrap()
        };
        let found: Vec<String> = all.iter().map(|hunk| but(&[*hunk])).collect();
        assert_eq!(found, each);
        assert_eq!((but(&[]), but(&all)), (then.to_owned(), now.to_owned()));
    }

    #[test]
    fn a_place_that_is_left_out_stays_and_the_others_become_what_they_were() {
        check("a\nb\nc\nd\ne\n", "A\nb\nc\nd\nE\n", 0, &["a\nb\nc\nd\nE\n", "A\nb\nc\nd\ne\n"]);
        check("a\nb\nc\n", "a\nc\nd\n", 0, &["a\nb\nc\nd\n", "a\nc\n"]);
        check("", "a\nb\n", 3, &[""]);
        check("a\nb\n", "", 3, &["a\nb\n"]);
    }

    #[test]
    fn a_hunk_with_several_differences_is_left_out_as_it_was_shown() {
        check("a\nb\nc\n", "A\nb\nC\n", 1, &["a\nb\nc\n"]);
        check(
            "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
            "X\n2\nY\n4\n5\n6\n7\n8\nZ\n",
            1,
            &["1\n2\n3\n4\n5\n6\n7\n8\nZ\n", "X\n2\nY\n4\n5\n6\n7\n8\n9\n"],
        );
    }

    #[test]
    fn a_last_line_without_an_ending_is_one_difference_with_what_follows_it() {
        check("a\nb", "a\nb\nc\n", 0, &["a\nb"]);
        check("x\nA\nb", "x\na\nb\nc", 0, &["x\nA\nb"]);
    }

    #[test]
    fn a_place_that_is_none_is_refused() {
        let at = |old_start, old_lines, new_start, new_lines| HunkAt { old_start, old_lines, new_start, new_lines };
        let but = |at| with_places_as_now(b"a\nb\nc\n", b"a\nB\nc\n", &[at]);
        assert!(but(at(2, 1, 2, 1)).is_some());
        for other in [at(1, 1, 1, 1), at(2, 1, 3, 1), at(0, 0, 0, 0), at(u32::MAX, u32::MAX, 1, 1)] {
            assert_eq!(but(other), None, "{other:?}");
        }
        assert_eq!(with_places_as_now(b"a\0", b"b\0", &[at(1, 1, 1, 1)]), None);
    }
}
