//! Which lines of base a side certainly kept.
//!
//! Where lines are equal, a diff has to choose: of two equal lines, which one was deleted? Any choice is as good as
//! another, and a merge that relies on it can put the other side's edit in the wrong place. So each side is aligned in
//! several equally good ways, and only what all of them agree on counts as kept.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::ops::Range;

use imara_diff::Algorithm;

use super::hunks::{Hunk, held, hunks_by};

/// The ways to align a side with base, and what they agree on.
pub(super) struct Alignments {
    /// The differing places, per alignment.
    pub ways: Vec<Vec<Hunk>>,
    /// The places where any of them differs, widened to everything they disagree about.
    pub certain: Vec<Hunk>,
}

impl Alignments {
    pub fn of<T: Copy + Default + Eq + Hash>(base: &[T], side: &[T]) -> Self {
        let turned = |lines: &[T]| lines.iter().rev().copied().collect::<Vec<_>>();
        let (turned_base, turned_side) = (turned(base), turned(side));
        let mut ways = Vec::new();
        for algorithm in [Algorithm::Histogram, Algorithm::Myers] {
            ways.push(hunks_by(algorithm, base, side));
            // Diffed from the end: an edit that fits in two places is at the first one here and at the last one there.
            let mut from_end = hunks_by(algorithm, &turned_base, &turned_side);
            from_end.reverse();
            for hunk in &mut from_end {
                hunk.base = base.len() - hunk.base.end..base.len() - hunk.base.start;
                hunk.side = side.len() - hunk.side.end..side.len() - hunk.side.start;
            }
            ways.push(from_end);
        }
        let certain = in_common(&ways, base.len(), side.len());
        Self { ways, certain }.settled(base, side)
    }

    /// Drops the doubt where every change contains a line of its own that occurs nowhere else. A function that was
    /// added or removed between others could be shifted by the closing lines they all share, but a reader knows where
    /// it begins.
    fn settled<T: Copy + Eq + Hash>(self, base: &[T], side: &[T]) -> Self {
        if !self.certain.iter().any(|hunk| hunk.floats) {
            return self;
        }
        // How often each line occurs in base and in the side.
        let mut counts: HashMap<T, [u32; 2]> = HashMap::new();
        base.iter().for_each(|line| counts.entry(*line).or_default()[0] += 1);
        side.iter().for_each(|line| counts.entry(*line).or_default()[1] += 1);
        let is_plain = |hunk: &Hunk| {
            let mut lines = base[hunk.base.clone()].iter().chain(&side[hunk.side.clone()]);
            let has_own = lines.clone().any(|line| matches!(counts.get(line), Some([1, 0] | [0, 1])));
            // Lines that occur once in both were moved, or the two are aligned badly.
            has_own && !lines.any(|line| counts.get(line) == Some(&[1, 1]))
        };
        let mut settled = Self { ways: vec![Vec::new(); self.ways.len()], certain: Vec::new() };
        for hunk in self.certain {
            let first = held(&self.ways[0], &hunk.base, &hunk.side);
            let is_settled = hunk.floats && first.iter().all(is_plain);
            for (way, all) in settled.ways.iter_mut().zip(&self.ways) {
                way.extend_from_slice(if is_settled { first } else { held(all, &hunk.base, &hunk.side) });
            }
            if is_settled {
                settled.certain.extend_from_slice(first);
            } else {
                settled.certain.push(hunk);
            }
        }
        settled
    }
}

/// The differing places when a line counts as kept only if every alignment pairs it with the same line.
fn in_common(ways: &[Vec<Hunk>], base_len: usize, side_len: usize) -> Vec<Hunk> {
    let mut kept: Vec<Option<usize>> = pairs(ways.first().map_or(&[], Vec::as_slice), base_len);
    for way in ways.iter().skip(1) {
        for (one, other) in kept.iter_mut().zip(pairs(way, base_len)) {
            *one = one.filter(|line| other == Some(*line));
        }
    }
    let exactly: Vec<HashSet<(&Range<usize>, &Range<usize>)>> =
        ways.iter().map(|way| way.iter().map(|hunk| (&hunk.base, &hunk.side)).collect()).collect();
    let mut out = Vec::new();
    let (mut base, mut side) = (0, 0);
    let ends = kept.iter().enumerate().filter_map(|(n, line)| Some((n, (*line)?))).chain([(base_len, side_len)]);
    for (next, line) in ends {
        if base < next || side < line {
            let hunk = Hunk { base: base..next, side: side..line, open: false, floats: false };
            let is_agreed = exactly.iter().all(|way| way.contains(&(&hunk.base, &hunk.side)));
            out.push(Hunk { floats: !is_agreed, ..hunk });
        }
        (base, side) = (next + 1, line + 1);
    }
    out
}

/// For each line of base, the line of the side that it is paired with.
fn pairs(hunks: &[Hunk], base_len: usize) -> Vec<Option<usize>> {
    let mut pairs = vec![None; base_len];
    let (mut base, mut side) = (0, 0);
    let end = base_len..base_len;
    for (changed, next) in hunks.iter().map(|hunk| (&hunk.base, hunk.side.end)).chain([(&end, 0)]) {
        while base < changed.start {
            pairs[base] = Some(side);
            (base, side) = (base + 1, side + 1);
        }
        (base, side) = (changed.end, next);
    }
    pairs
}
