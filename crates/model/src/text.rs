//! Line-by-line diffs of two files.

use imara_diff::{Algorithm, Diff, InternedInput};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "content", rename_all = "kebab-case")]
pub enum TextDiff {
    /// Both sides are text (a missing side is empty).
    Text { hunks: Vec<Hunk> },
    /// A side has a NUL byte, or is too large to compare.
    Binary,
}

/// One place that differs, with the lines around it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hunk {
    /// From 1; 0 where the old side is empty.
    pub old_start: u32,
    pub old_lines: u32,
    pub new_start: u32,
    pub new_lines: u32,
    pub lines: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    pub side: Side,
    /// Without the line ending; invalid UTF-8 is replaced.
    pub text: String,
    /// Whether the file ends here without a newline.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_newline: bool,
}

/// Which side of a diff a line is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// On both sides.
    Context,
    Removed,
    Added,
}

/// Larger files, in bytes, are not compared line by line.
pub(crate) const LARGEST: usize = 16 << 20;

/// Whether bytes are shown as binary: not text, or text that cannot be compared line by line in reasonable time.
pub fn is_binary(bytes: &[u8]) -> bool {
    // The whole file: git examines only the first 8,000 bytes, but many formats begin with more text than that.
    bytes.len() > LARGEST || bytes.contains(&0) || is_monotonous(bytes)
}

/// Whether bytes are very many lines of very few kinds. Diffing such files takes quadratic time: minutes for hundreds
/// of thousands of lines.
fn is_monotonous(bytes: &[u8]) -> bool {
    const MANY: usize = 20_000;
    // Shorter files, which most are, cannot have that many lines.
    if bytes.len() < MANY {
        return false;
    }
    let lines = lines(bytes);
    if lines.len() < MANY {
        return false;
    }
    let most = lines.len() / 100;
    let mut kinds = std::collections::HashSet::new();
    lines.iter().all(|line| {
        kinds.insert(*line);
        kinds.len() <= most
    })
}

/// Similarity of two contents, from 0 to 1: the share of their lines that they have in common.
pub(crate) fn alike(a: &[u8], b: &[u8]) -> f64 {
    if is_binary(a) || is_binary(b) {
        return if a == b { 1.0 } else { 0.0 };
    }
    let (a, b) = (lines(a), lines(b));
    let mut input = InternedInput::default();
    input.update_before(a.iter().copied());
    input.update_after(b.iter().copied());
    let diff = Diff::compute(Algorithm::Histogram, &input);
    let differing = f64::from(diff.count_additions() + diff.count_removals());
    let all = (a.len() + b.len()).max(1) as f64;
    1.0 - differing / all
}

/// How much of a content is still in another one, from 0 to 1: the lines that it kept, of all that it had.
pub(crate) fn kept(was: &[u8], is: &[u8]) -> f64 {
    if is_binary(was) || is_binary(is) {
        return if was == is { 1.0 } else { 0.0 };
    }
    let (was, is) = (lines(was), lines(is));
    let mut input = InternedInput::default();
    input.update_before(was.iter().copied());
    input.update_after(is.iter().copied());
    let diff = Diff::compute(Algorithm::Histogram, &input);
    1.0 - f64::from(diff.count_removals()) / was.len().max(1) as f64
}

/// Compares two contents, with up to `context` equal lines around each difference.
pub fn diff(old: &[u8], new: &[u8], context: u32) -> TextDiff {
    if is_binary(old) || is_binary(new) {
        return TextDiff::Binary;
    }
    let (old_lines, new_lines) = (lines(old), lines(new));
    let mut input = InternedInput::default();
    input.update_before(old_lines.iter().copied());
    input.update_after(new_lines.iter().copied());
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_no_heuristic(&input);
    let changes: Vec<_> = diff.hunks().collect();

    let mut hunks: Vec<Hunk> = Vec::new();
    let mut rest = &changes[..];
    while let Some(first) = rest.first() {
        // Differences whose context overlaps share a hunk.
        let apart = context.saturating_mul(2);
        let near = rest.windows(2).take_while(|w| w[1].before.start - w[0].before.end <= apart).count() + 1;
        let (group, later) = rest.split_at(near);
        let last = &group[near - 1];
        rest = later;
        let lead = context.min(first.before.start);
        let trail = context.min(old_lines.len() as u32 - last.before.end);
        let (old_from, new_from) = (first.before.start - lead, first.after.start - lead);
        let (old_to, new_to) = (last.before.end + trail, last.after.end + trail);
        let mut out = Vec::new();
        let mut at = old_from;
        for change in group {
            push(&mut out, Side::Context, &old_lines[at as usize..change.before.start as usize]);
            push(&mut out, Side::Removed, &old_lines[change.before.start as usize..change.before.end as usize]);
            push(&mut out, Side::Added, &new_lines[change.after.start as usize..change.after.end as usize]);
            at = change.before.end;
        }
        push(&mut out, Side::Context, &old_lines[at as usize..old_to as usize]);
        let start = |from: u32, to: u32| if from == to { from } else { from + 1 };
        hunks.push(Hunk {
            old_start: start(old_from, old_to),
            old_lines: old_to - old_from,
            new_start: start(new_from, new_to),
            new_lines: new_to - new_from,
            lines: out,
        });
    }
    TextDiff::Text { hunks }
}

/// Lines with their endings, so that a missing final newline is a difference.
pub(crate) fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|b| *b == b'\n').collect()
}

fn push(out: &mut Vec<Line>, side: Side, lines: &[&[u8]]) {
    out.extend(lines.iter().map(|line| {
        let (text, no_newline) = match line.strip_suffix(b"\n") {
            Some(text) => (text, false),
            None => (*line, true),
        };
        Line { side, text: String::from_utf8_lossy(text).into_owned(), no_newline }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a diff in unified form, with one line of context.
    fn check(old: &str, new: &str, expected: &str) {
        let TextDiff::Text { hunks } = diff(old.as_bytes(), new.as_bytes(), 1) else { panic!("binary") };
        let mut found = String::new();
        for h in hunks {
            found += &format!("@@ -{},{} +{},{} @@\n", h.old_start, h.old_lines, h.new_start, h.new_lines);
            for line in h.lines {
                let sign = match line.side {
                    Side::Context => ' ',
                    Side::Removed => '-',
                    Side::Added => '+',
                };
                found += &format!("{sign}{}{}\n", line.text, if line.no_newline { "$" } else { "" });
            }
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn a_changed_line_comes_with_its_surroundings() {
        check("a\nb\nc\nd\n", "a\nb\nX\nd\n", "@@ -2,3 +2,3 @@\n b\n-c\n+X\n d\n");
    }

    #[test]
    fn far_changes_are_hunks_of_their_own_and_near_ones_are_not() {
        check(
            "1\n2\n3\n4\n5\n6\n7\n",
            "X\n2\n3\n4\n5\n6\nY\n",
            "@@ -1,2 +1,2 @@\n-1\n+X\n 2\n@@ -6,2 +6,2 @@\n 6\n-7\n+Y\n",
        );
        check("1\n2\n3\n", "X\n2\nY\n", "@@ -1,3 +1,3 @@\n-1\n+X\n 2\n-3\n+Y\n");
    }

    #[test]
    fn all_lines_are_shown_once_however_much_context_is_wanted() {
        for context in [7, u32::MAX / 2, u32::MAX / 2 + 1, u32::MAX] {
            let TextDiff::Text { hunks } = diff(b"1\n2\n3\n4\n5\n", b"X\n2\n3\n4\nY\n", context) else {
                panic!("binary")
            };
            assert_eq!(hunks.iter().map(|hunk| hunk.lines.len()).collect::<Vec<_>>(), [7], "{context}");
        }
    }

    #[test]
    fn an_empty_side_begins_at_line_0() {
        check("", "a\n", "@@ -0,0 +1,1 @@\n+a\n");
        check("a\n", "", "@@ -1,1 +0,0 @@\n-a\n");
    }

    #[test]
    fn a_missing_last_end_of_line_is_a_difference() {
        check("a", "a\n", "@@ -1,1 +1,1 @@\n-a$\n+a\n");
    }

    #[test]
    fn a_nul_byte_means_binary() {
        assert_eq!(diff(b"a\0b", b"", 3), TextDiff::Binary);
        let late = [b"line\n".repeat(2000), b"\0".to_vec()].concat();
        assert_eq!(diff(&late, b"", 3), TextDiff::Binary);
        assert_eq!(diff(b"", &late, 3), TextDiff::Binary);
    }

    #[test]
    fn very_many_lines_of_very_few_kinds_are_compared_only_as_a_whole() {
        let lines = |count: usize, kinds: usize| (0..count).map(|n| format!("{}\n", n % kinds)).collect::<String>();
        assert!(is_binary(lines(60_000, 50).as_bytes()));
        assert!(!is_binary(lines(60_000, 5_000).as_bytes()));
        assert!(!is_binary(lines(10_000, 1).as_bytes()));
        assert_eq!(diff(lines(300_000, 2).as_bytes(), lines(300_000, 3).as_bytes(), 3), TextDiff::Binary);
    }
}
