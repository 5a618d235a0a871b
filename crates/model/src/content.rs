//! Taking one change back out of a file that was edited since: a three-way merge of contents.
//!
//! `engine::undo` passes what the change left as `base`, what is there now as `ours`, and what was there before the
//! change as `theirs`. Whole entries are merged in `merge`. Nothing here guesses: an ambiguous place is a clash, and a
//! clash has a result only once somebody has decided it.

mod align;

use std::hash::Hash;
use std::ops::Range;

use align::Alignments;
use imara_diff::{Algorithm, Diff, InternedInput};
use serde::{Deserialize, Serialize};

use crate::notebook;
use crate::text::is_binary;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// Keep what is there now.
    Ours,
    /// Bring back what was there before the change.
    Theirs,
    /// Write both into the file between conflict markers, for a person to choose.
    Markers,
}

/// A place that the two sides changed differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clash {
    /// The first affected line of ours, from 1; where ours has nothing there, the line that follows.
    pub line: u32,
    /// Lines without their endings; invalid UTF-8 is replaced.
    pub ours: Vec<String>,
    pub base: Vec<String>,
    pub theirs: Vec<String>,
}

/// The result of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// `None` where a conflict is undecided, or cannot be decided this way.
    pub bytes: Option<Vec<u8>>,
    /// Every place in conflict, decided or not.
    pub clashes: Vec<Clash>,
    /// Both sides changed and only one of them can be kept: the content is binary, or the mix would be a broken
    /// notebook.
    pub whole: bool,
}

impl Merged {
    /// Whether nothing needed a decision.
    #[cfg(test)]
    pub(crate) fn is_clean(&self) -> bool {
        self.clashes.is_empty() && !self.whole
    }

    fn clean(bytes: &[u8]) -> Self {
        Self { bytes: Some(bytes.to_vec()), clashes: Vec::new(), whole: false }
    }

    /// A merge that can only take one side as a whole.
    pub(crate) fn whole(ours: &[u8], theirs: &[u8], clashes: Vec<Clash>, decision: Option<Decision>) -> Self {
        let bytes = match decision {
            Some(Decision::Ours) => Some(ours.to_vec()),
            Some(Decision::Theirs) => Some(theirs.to_vec()),
            Some(Decision::Markers) | None => None,
        };
        Self { bytes, clashes, whole: true }
    }
}

/// What the sides are called in conflict markers; see the module for what each side is.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    pub ours: &'a str,
    pub base: &'a str,
    pub theirs: &'a str,
}

/// Merges three contents. Where only one side differs from `base` the result is that side, byte for byte.
///
/// Notebooks are merged by cell and never get markers.
pub fn merge(
    is_notebook: bool,
    base: &[u8],
    ours: &[u8],
    theirs: &[u8],
    decision: Option<Decision>,
    labels: &Labels,
) -> Merged {
    if ours == theirs || base == theirs {
        return Merged::clean(ours);
    }
    if ours == base {
        return Merged::clean(theirs);
    }
    if [base, ours, theirs].into_iter().any(is_binary) {
        return Merged::whole(ours, theirs, Vec::new(), decision);
    }
    if is_notebook {
        return notebook::merge(base, ours, theirs, decision);
    }
    let (bytes, clashes) = merge_text(base, ours, theirs, decision, labels);
    Merged { bytes, clashes, whole: false }
}

/// Merges line by line.
///
/// A last line without a line ending is never glued to what the other side adds after it: that is a clash.
pub(crate) fn merge_text(
    base: &[u8],
    ours: &[u8],
    theirs: &[u8],
    decision: Option<Decision>,
    labels: &Labels,
) -> (Option<Vec<u8>>, Vec<Clash>) {
    let (base, ours, theirs) = (lines(base), lines(ours), lines(theirs));
    let (to_ours, to_theirs) = (aligned(&base, &ours), aligned(&base, &theirs));
    let end = if ours.first().is_some_and(|line| line.ends_with(b"\r\n")) { "\r\n" } else { "\n" };
    let (mut out, mut clashes) = (Vec::new(), Vec::new());
    for piece in pieces(base.len(), &to_ours.certain, &to_theirs.certain) {
        let (b, o, t) = (&base[piece.base.clone()], &ours[piece.ours.clone()], &theirs[piece.theirs.clone()]);
        if let Some(one) = undisputed(b, o, t) {
            out.extend(one.concat());
            continue;
        }
        if let Some(merged) = merged_any_way(&piece, [&base, &ours, &theirs], (&to_ours, &to_theirs)) {
            out.extend(merged);
            continue;
        }
        // Lines that both sides share at the edges are not in dispute. Base loses only what all three share, so that it
        // still shows what became of the rest.
        let lead = shared(o, t);
        let trail = shared_end(&o[lead..], &t[lead..]);
        let base_lead = shared(&o[..lead], b);
        let base_trail = shared_end(&o[o.len() - trail..], &b[base_lead..]);
        let (before, after) = (&o[..lead], &o[o.len() - trail..]);
        let (o, t) = (&o[lead..o.len() - trail], &t[lead..t.len() - trail]);
        let b = &b[base_lead..b.len() - base_trail];
        out.extend(before.concat());
        match decision {
            Some(Decision::Markers) => {
                marker(&mut out, "<<<<<<<", labels.ours, end);
                side(&mut out, o, end);
                marker(&mut out, "|||||||", labels.base, end);
                side(&mut out, b, end);
                marker(&mut out, "=======", "", end);
                side(&mut out, t, end);
                marker(&mut out, ">>>>>>>", labels.theirs, end);
            }
            Some(Decision::Theirs) => out.extend(t.concat()),
            Some(Decision::Ours) | None => out.extend(o.concat()),
        }
        out.extend(after.concat());
        let line = (piece.ours.start + lead + 1) as u32;
        clashes.push(Clash { line, ours: shown(o), base: shown(b), theirs: shown(t) });
    }
    ((clashes.is_empty() || decision.is_some()).then_some(out), clashes)
}

fn aligned(base: &[&[u8]], side: &[&[u8]]) -> Alignments {
    let mut alignments = Alignments::of(base, side);
    for hunk in alignments.ways.iter_mut().flatten().chain(&mut alignments.certain) {
        hunk.open = side[hunk.side.clone()].last().is_some_and(|line| !line.ends_with(b"\n"));
    }
    alignments
}

/// The result for a piece that only one side changed, or both changed alike.
fn undisputed<'a, T: PartialEq>(base: &[T], ours: &'a [T], theirs: &'a [T]) -> Option<&'a [T]> {
    match () {
        () if ours == theirs || base == theirs => Some(ours),
        () if base == ours => Some(theirs),
        () => None,
    }
}

/// The result for a piece if it is the same under every alignment; `None` where it depends on the alignment, or clashes
/// anyway.
fn merged_any_way(
    piece: &Piece,
    [base, ours, theirs]: [&[&[u8]]; 3],
    (to_ours, to_theirs): (&Alignments, &Alignments),
) -> Option<Vec<u8>> {
    let within = |hunks: &[Hunk], side: &Range<usize>| -> Vec<Hunk> {
        let moved = |range: &Range<usize>, by: usize| range.start - by..range.end - by;
        let cut = |hunk: &Hunk| Hunk {
            base: moved(&hunk.base, piece.base.start),
            side: moved(&hunk.side, side.start),
            ..*hunk
        };
        held(hunks, &piece.base, side).iter().map(cut).collect()
    };
    let (b, o, t) = (&base[piece.base.clone()], &ours[piece.ours.clone()], &theirs[piece.theirs.clone()]);
    let mut result: Option<Vec<u8>> = None;
    for one in &to_ours.ways {
        let one = within(one, &piece.ours);
        for other in &to_theirs.ways {
            let other = within(other, &piece.theirs);
            let mut merged = Vec::new();
            for piece in pieces(b.len(), &one, &other) {
                merged.extend(undisputed(&b[piece.base], &o[piece.ours], &t[piece.theirs])?.concat());
            }
            if result.as_ref().is_some_and(|result| *result != merged) {
                return None;
            }
            result = Some(merged);
        }
    }
    result
}

/// The hunks that lie within a stretch of base and of the side; none may straddle its ends.
fn held<'a>(hunks: &'a [Hunk], base: &Range<usize>, side: &Range<usize>) -> &'a [Hunk] {
    let from = hunks.partition_point(|hunk| hunk.base.start < base.start || hunk.side.start < side.start);
    let to = hunks.partition_point(|hunk| hunk.base.end <= base.end && hunk.side.end <= side.end);
    hunks.get(from..to).unwrap_or_default()
}

/// One place where a side differs from base.
#[derive(Clone, Debug)]
pub(crate) struct Hunk {
    /// The lines it replaces; empty for an insertion.
    pub base: Range<usize>,
    /// The lines on that side.
    pub side: Range<usize>,
    /// Nothing can follow it: its last line has no line ending.
    pub open: bool,
    /// It cannot be told where in it, its edges included, lines were added or removed.
    pub floats: bool,
}

/// Where a side differs from base according to the text diff.
pub(crate) fn hunks<T: Copy + Default + Eq + Hash>(base: &[T], side: &[T]) -> Vec<Hunk> {
    hunks_by(Algorithm::Histogram, base, side)
}

fn hunks_by<T: Copy + Default + Eq + Hash>(algorithm: Algorithm, base: &[T], side: &[T]) -> Vec<Hunk> {
    let mut input = InternedInput::default();
    input.update_before(base.iter().copied());
    input.update_after(side.iter().copied());
    let mut diff = Diff::compute(algorithm, &input);
    diff.postprocess_no_heuristic(&input);
    let range = |r: Range<u32>| r.start as usize..r.end as usize;
    diff.hunks().map(|h| Hunk { base: range(h.before), side: range(h.after), open: false, floats: false }).collect()
}

/// A stretch of base with the matching stretches of both sides. All pieces, in order, cover the three contents.
pub(crate) struct Piece {
    pub base: Range<usize>,
    pub ours: Range<usize>,
    pub theirs: Range<usize>,
    pub changed: bool,
}

/// Cuts three contents at the same places.
///
/// Hunks share a piece when they change a common line of base or insert at the same point. Hunks that only touch stay
/// separate, since their order is certain, unless one of them could just as well be elsewhere.
pub(crate) fn pieces(len: usize, ours: &[Hunk], theirs: &[Hunk]) -> Vec<Piece> {
    let mut queue: Vec<(&Hunk, usize)> = ours.iter().map(|h| (h, 0)).chain(theirs.iter().map(|h| (h, 1))).collect();
    // An insertion goes before a hunk that replaces the line after it.
    queue.sort_by_key(|(h, _)| (h.base.start, h.base.end));
    let mut out = Vec::new();
    let mut at = 0;
    let mut sides = [0, 0];
    let mut push = |at: &mut usize, sides: &mut [usize; 2], end: usize, ends: [usize; 2], changed: bool| {
        out.push(Piece { base: *at..end, ours: sides[0]..ends[0], theirs: sides[1]..ends[1], changed });
        (*at, *sides) = (end, ends);
    };
    let mut queue = queue.into_iter().peekable();
    while let Some((first, side)) = queue.next() {
        let start = first.base.start;
        if at < start {
            let ends = sides.map(|s| s + start - at);
            push(&mut at, &mut sides, start, ends, false);
        }
        let mut last = [None, None];
        last[side] = Some(first);
        let (mut end, mut open, mut floats) = (first.base.end, first.open, first.floats);
        while let Some((next, side)) = queue.next_if(|(next, _)| {
            let insertion = next.base.start == end && next.base.is_empty();
            let could_be_here = next.base.start == end && (floats || next.floats);
            next.base.start < end || (insertion && (start == end || open)) || could_be_here
        }) {
            end = end.max(next.base.end);
            open |= next.open;
            floats |= next.floats;
            last[side] = Some(next);
        }
        let mut ends = sides.map(|s| s + end - start);
        for (side_end, hunk) in ends.iter_mut().zip(last) {
            if let Some(hunk) = hunk {
                *side_end = hunk.side.end + end - hunk.base.end;
            }
        }
        push(&mut at, &mut sides, end, ends, true);
    }
    if at < len {
        let ends = sides.map(|s| s + len - at);
        push(&mut at, &mut sides, len, ends, false);
    }
    out
}

/// Lines with their endings, so that a missing final newline is a difference.
fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|b| *b == b'\n').collect()
}

/// Length of the common prefix, in lines.
fn shared(a: &[&[u8]], b: &[&[u8]]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Length of the common suffix, in lines.
fn shared_end(a: &[&[u8]], b: &[&[u8]]) -> usize {
    a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

fn marker(out: &mut Vec<u8>, sign: &str, label: &str, end: &str) {
    out.extend(sign.as_bytes());
    if !label.is_empty() {
        out.push(b' ');
        out.extend(label.as_bytes());
    }
    out.extend(end.as_bytes());
}

/// Appends the lines of one side, terminated so that a marker can follow.
fn side(out: &mut Vec<u8>, lines: &[&[u8]], end: &str) {
    out.extend(lines.concat());
    if lines.last().is_some_and(|line| !line.ends_with(b"\n")) {
        out.extend(end.as_bytes());
    }
}

/// Lines for display.
fn shown(lines: &[&[u8]]) -> Vec<String> {
    let text = |line: &&[u8]| {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned()
    };
    lines.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LABELS: Labels = Labels { ours: "now", base: "t5", theirs: "before t5" };

    fn text(base: &str, ours: &str, theirs: &str, decision: Option<Decision>) -> Merged {
        merge(false, base.as_bytes(), ours.as_bytes(), theirs.as_bytes(), decision, &LABELS)
    }

    fn written(merged: &Merged) -> Option<&str> {
        merged.bytes.as_deref().map(|bytes| std::str::from_utf8(bytes).unwrap())
    }

    /// Checks a merge that needs no decision, with the sides either way round.
    fn check(base: &str, ours: &str, theirs: &str, expected: &str) {
        for merged in [text(base, ours, theirs, None), text(base, theirs, ours, None)] {
            assert_eq!(written(&merged), Some(expected), "{:?}", merged.clashes);
            assert!(merged.is_clean());
        }
    }

    /// Checks a merge with one clash: its line, and what the three sides have there.
    fn check_clash(base: &str, ours: &str, theirs: &str, expected: (u32, &str, &str, &str)) {
        let merged = text(base, ours, theirs, None);
        assert_eq!(merged.bytes, None);
        let found: Vec<_> =
            merged.clashes.iter().map(|c| (c.line, c.ours.join(" "), c.base.join(" "), c.theirs.join(" "))).collect();
        let (line, o, b, t) = expected;
        assert_eq!(found, [(line, o.to_owned(), b.to_owned(), t.to_owned())]);
        let turned = text(base, theirs, ours, None);
        assert_eq!((turned.bytes, turned.clashes.len()), (None, 1));
    }

    #[test]
    fn a_side_that_did_not_change_gives_way_whatever_the_content_is() {
        for notebook in [false, true] {
            for (a, b) in [(&b"a\0"[..], &b"b\0"[..]), (b"{", b"}"), (b"", b"x"), (b"\xff\r\n", b"\xfe")] {
                let bytes = |base, ours, theirs| merge(notebook, base, ours, theirs, None, &LABELS);
                assert_eq!(bytes(a, b, a), Merged::clean(b));
                assert_eq!(bytes(a, a, b), Merged::clean(b));
                assert_eq!(bytes(a, b, b), Merged::clean(b));
            }
        }
    }

    #[test]
    fn binary_is_taken_whole_and_cannot_have_markers() {
        let with = |decision| merge(false, b"a", b"b\0", b"c", decision, &LABELS);
        for (decision, bytes) in [
            (None, None),
            (Some(Decision::Ours), Some(&b"b\0"[..])),
            (Some(Decision::Theirs), Some(b"c")),
            (Some(Decision::Markers), None),
        ] {
            assert_eq!(
                with(decision),
                Merged { bytes: bytes.map(<[u8]>::to_vec), clashes: Vec::new(), whole: true },
                "{decision:?}"
            );
        }
    }

    #[test]
    fn a_nul_anywhere_makes_a_content_binary_on_whichever_side() {
        let text = b"line\n".repeat(4000);
        let (first, last) = ([b"new\n", &text[..]].concat(), [&text[..], b"new\n"].concat());
        let late = |text: &[u8]| [text, b"\0\n"].concat();
        for (base, ours, theirs) in [
            (late(&text), first.clone(), last.clone()),
            (text.clone(), late(&first), last.clone()),
            (text.clone(), first.clone(), late(&last)),
        ] {
            let merged = merge(false, &base, &ours, &theirs, None, &LABELS);
            assert_eq!((merged.bytes, merged.whole), (None, true));
        }
    }

    #[test]
    fn an_edit_that_could_be_at_several_places_is_a_clash_where_it_matters() {
        // Which of the three was deleted, the one before the new line or one after it?
        check_clash("a\na\na\n", "a\na\n", "a\nx\na\na\n", (2, "", "a", "x a"));
        check_clash("a\na\n", "a\na\na\n", "a\nx\na\n", (2, "a", "", "x"));
        // Here it makes no difference, and neither does it away from the equal lines.
        check("a\na\na\nb\n", "a\na\nb\n", "a\na\na\nb\nx\n", "a\na\nb\nx\n");
        check("p\na\na\nq\n", "p\na\na\na\nq\n", "P\na\na\nq\n", "P\na\na\na\nq\n");
        check("a\na\nb\n", "a\nb\n", "x\na\na\nb\n", "x\na\nb\n");
    }

    #[test]
    fn a_function_between_others_has_its_place_though_all_end_alike() {
        let (f, g, new) = ("fn f {\n  1\n}\n\n", "fn g {\n  2\n}\n\n", "fn new {\n  3\n}\n\n");
        let ours = [f, new, g].concat();
        let theirs = ["fn f {\n  1\n  more\n}\n\n", g].concat();
        check(&[f, g].concat(), &ours, &theirs, &["fn f {\n  1\n  more\n}\n\n", new, g].concat());
    }

    #[test]
    fn changes_of_different_lines_are_both_kept() {
        check("a\nb\nc\nd\ne\n", "A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n", "A\nb\nc\nd\nE\n");
        check("a\nb\nc\n", "b\nc\n", "a\nb\nc\nd\n", "b\nc\nd\n");
        check("a\r\nb\r\n", "A\r\nb\r\n", "a\r\nb\r\nc\r\n", "A\r\nb\r\nc\r\n");
    }

    #[test]
    fn changes_that_only_touch_do_not_clash() {
        check("a\nb\n", "A\nb\n", "a\nB\n", "A\nB\n");
        check("a\nb\n", "A\nb\n", "a\nx\nb\n", "A\nx\nb\n");
        check("a\nb\n", "a\nB\n", "a\nx\nb\n", "a\nx\nB\n");
        check("a\nb\n", "b\n", "a\n", "");
    }

    #[test]
    fn the_same_change_on_both_sides_is_made_once() {
        check("a\nb\n", "a\nx\nb\nc\n", "a\nx\nb\n", "a\nx\nb\nc\n");
        check("a\nb\nc\n", "a\nB\nc\n", "1\na\nB\nc\n", "1\na\nB\nc\n");
    }

    #[test]
    fn a_line_that_both_changed_is_a_clash() {
        check_clash("a\nb\nc\n", "a\nB\nc\n", "a\nX\nc\n", (2, "B", "b", "X"));
        check_clash("a\nb\nc\n", "a\nc\n", "a\nX\nc\n", (2, "", "b", "X"));
        check_clash("a\nb\nc\n", "0\na\nB\nc\n", "a\nX\nc\n", (3, "B", "b", "X"));
    }

    #[test]
    fn different_lines_at_the_same_point_are_a_clash() {
        check_clash("a\nb\n", "a\nx\nb\n", "a\ny\nb\n", (2, "x", "", "y"));
        check_clash("", "x\n", "y\n", (1, "x", "", "y"));
    }

    #[test]
    fn lines_put_into_what_the_other_side_replaced_are_a_clash() {
        check_clash("a\nb\nc\n", "a\nb\nx\nc\n", "a\n", (2, "b x c", "b c", ""));
    }

    #[test]
    fn hunks_that_overlap_in_a_chain_are_one_clash() {
        check_clash(
            "1\n2\n3\n4\n5\n6\n",
            "1\nA\nB\n4\nC\n6\n",
            "1\n2\nX\nY\nZ\n6\n",
            (2, "A B 4 C", "2 3 4 5", "2 X Y Z"),
        );
    }

    #[test]
    fn a_clash_leaves_out_what_both_sides_have() {
        check_clash("a\nz\n", "a\np\nx\nq\nz\n", "a\np\ny\nq\nz\n", (3, "x", "", "y"));
    }

    #[test]
    fn a_last_line_without_its_end_is_not_glued_to_the_next() {
        check("a\nb", "A\nb", "a\nb\nc", "A\nb\nc");
        check("a\nb\n", "a\nb", "A\nb\n", "A\nb");
        check_clash("a\n", "z", "a\nc\n", (1, "z", "a", "a c"));
        check_clash("a\n", "z", "a\nc", (1, "z", "a", "a c"));
        check_clash("a\nb\n", "a", "a\nb\nc\n", (1, "a", "a b", "a b c"));
        check("a\n", "z\n", "a\nc", "z\nc");
    }

    #[test]
    fn a_decision_is_for_the_clashes_alone() {
        let (base, ours, theirs) = ("a\nb\nc\nd\n", "A\nB\nc\nd\n", "a\nX\nc\nD\n");
        let with = |decision| text(base, ours, theirs, Some(decision));
        assert_eq!(written(&with(Decision::Ours)), Some("A\nB\nc\nD\n"));
        assert_eq!(written(&with(Decision::Theirs)), Some("a\nX\nc\nD\n"));
        assert_eq!(with(Decision::Ours).clashes, text(base, ours, theirs, None).clashes);
        assert!(!with(Decision::Theirs).is_clean());
    }

    #[test]
    fn markers_are_those_of_git() {
        let with = |base, ours, theirs| text(base, ours, theirs, Some(Decision::Markers));
        assert_eq!(
            written(&with("a\nb\nc\n", "a\nB\nc\n", "a\nc\n")),
            Some("a\n<<<<<<< now\nB\n||||||| t5\nb\n=======\n>>>>>>> before t5\nc\n")
        );
        assert_eq!(
            written(&with("a\r\nb", "a\r\nB", "a\r\nX")),
            Some("a\r\n<<<<<<< now\r\nB\r\n||||||| t5\r\nb\r\n=======\r\nX\r\n>>>>>>> before t5\r\n")
        );
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_kept() {
        let merged = merge(false, b"\xff\nb\n", b"\xff\nB\n", b"\xfe\nb\n", None, &LABELS);
        assert_eq!(merged, Merged::clean(b"\xfe\nB\n"));
    }

    /// Lines from a small alphabet, so that equal ones are frequent; the last may lack its line ending.
    fn any_text() -> impl Strategy<Value = String> {
        (prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "", "}", "d\r"]), 0..12), any::<bool>())
            .prop_map(|(lines, ended)| {
                let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
                if ended { text } else { text.strip_suffix('\n').unwrap_or(&text).to_owned() }
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

        #[test]
        fn one_side_that_changed_is_the_result(base in any_text(), other in any_text()) {
            prop_assert_eq!(text(&base, &other, &base, None), Merged::clean(other.as_bytes()));
            prop_assert_eq!(text(&base, &base, &other, None), Merged::clean(other.as_bytes()));
            // The line merge agrees, without the shortcut.
            let (b, o) = (base.as_bytes(), other.as_bytes());
            for (ours, theirs) in [(b, o), (o, b), (o, o)] {
                prop_assert_eq!(merge_text(b, ours, theirs, None, &LABELS), (Some(o.to_vec()), Vec::new()));
            }
        }

        #[test]
        fn the_sides_can_be_turned_round(base in any_text(), ours in any_text(), theirs in any_text()) {
            let (one, other) = (text(&base, &ours, &theirs, None), text(&base, &theirs, &ours, None));
            prop_assert_eq!(one.bytes, other.bytes);
            prop_assert_eq!(one.clashes.len(), other.clashes.len());
            for (a, b) in one.clashes.iter().zip(&other.clashes) {
                prop_assert_eq!((&a.ours, &a.base, &a.theirs), (&b.theirs, &b.base, &b.ours));
            }
        }

        #[test]
        fn a_decision_always_gives_a_content_of_known_lines(
            base in any_text(), ours in any_text(), theirs in any_text(),
        ) {
            fn bare(line: &str) -> &str {
                line.trim_end_matches('\r')
            }
            let known: Vec<&str> = [&base, &ours, &theirs].into_iter().flat_map(|t| t.split('\n')).map(bare).collect();
            let clashes = text(&base, &ours, &theirs, None).clashes;
            for decision in [Decision::Ours, Decision::Theirs, Decision::Markers] {
                let merged = text(&base, &ours, &theirs, Some(decision));
                prop_assert_eq!(&merged.clashes, &clashes);
                let result = written(&merged);
                prop_assert!(result.is_some());
                for line in result.unwrap_or_default().split('\n').map(bare) {
                    let marker = ["<<<<<<< ", "||||||| ", "=======", ">>>>>>> "].iter().any(|m| line.starts_with(m));
                    prop_assert!(known.contains(&line) || line.is_empty() || marker, "glued: {:?}", line);
                }
            }
        }

        #[test]
        fn edits_of_different_lines_always_merge(
            edits in prop::collection::vec((any::<bool>(), 0..4u8, 1..4usize, 1..4usize), 0..12),
            apart in any::<bool>(),
        ) {
            let [mut base, mut ours, mut theirs, mut both] = [const { String::new() }; 4];
            let mut next = 0;
            let mut lines = |what: &str, count: usize| -> String {
                next += count;
                (next - count..next).map(|n| format!("{what} {n}\n")).collect()
            };
            let mut after_insertion = false;
            for (mine, kind, old, new) in edits {
                let kept = |kept: String| [kept.clone(), kept.clone(), kept.clone(), kept];
                let mut parts = Vec::new();
                // Two insertions need a line between them, or they would be at the same point.
                if apart || kind == 2 || after_insertion {
                    parts.push(kept(lines("kept", 1)));
                }
                let old = if kind < 2 { lines("old", old) } else { String::new() };
                let new = if kind > 0 { lines("new", new) } else { String::new() };
                let (o, t) = if mine { (&new, &old) } else { (&old, &new) };
                parts.push([old.clone(), o.clone(), t.clone(), new.clone()]);
                if kind == 3 {
                    parts.push(kept(lines("kept", 1)));
                }
                after_insertion = kind == 2;
                for part in parts {
                    for (text, part) in [&mut base, &mut ours, &mut theirs, &mut both].into_iter().zip(part) {
                        *text += &part;
                    }
                }
            }
            for merged in [text(&base, &ours, &theirs, None), text(&base, &theirs, &ours, None)] {
                prop_assert_eq!(written(&merged), Some(&*both));
            }
            // Undo: the change goes and everything made after it stays. Where edits touched, a deleted line may come
            // back on the other side of its new neighbour.
            if apart {
                let undone = text(&theirs, &both, &base, None);
                prop_assert_eq!(written(&undone), Some(&*ours));
            }
        }
    }

    #[test]
    fn a_long_file_takes_no_time() {
        let lines: Vec<String> = (0..200_000).map(|n| format!("line {}\n", n % 5000)).collect();
        let edited = |every: usize, what: &str| -> String {
            lines.iter().enumerate().map(|(n, l)| if n % every == 1 { what } else { l }).collect()
        };
        let (ours, theirs) = (edited(7, "ours\n"), edited(11, "theirs\n"));
        let merged = text(&lines.concat(), &ours, &theirs, Some(Decision::Ours));
        assert!(merged.bytes.is_some() && merged.clashes.len() > 100);
    }
}
