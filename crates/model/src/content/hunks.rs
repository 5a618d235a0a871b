//! Where a side differs from base, and how three contents are cut at the same places.

use imara_diff::{Algorithm, Diff, InternedInput};
use std::hash::Hash;
use std::ops::Range;

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

pub(super) fn hunks_by<T: Copy + Default + Eq + Hash>(algorithm: Algorithm, base: &[T], side: &[T]) -> Vec<Hunk> {
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

/// The hunks that lie within a stretch of base and of the side; none may straddle its ends.
pub(super) fn held<'a>(hunks: &'a [Hunk], base: &Range<usize>, side: &Range<usize>) -> &'a [Hunk] {
    let from = hunks.partition_point(|hunk| hunk.base.start < base.start || hunk.side.start < side.start);
    let to = hunks.partition_point(|hunk| hunk.base.end <= base.end && hunk.side.end <= side.end);
    hunks.get(from..to).unwrap_or_default()
}
