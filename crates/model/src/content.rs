//! Taking one change back out of a file that was edited since: a three-way merge of contents.
//!
//! `engine::undo` passes what the change left as `base`, what is there now as `ours`, and what was there before the
//! change as `theirs`. Whole entries are merged in `merge`. Nothing here guesses: an ambiguous place is a clash, and a
//! clash has a result only once somebody has decided it.

mod align;
mod hunks;

use std::ops::Range;

use align::Alignments;
use serde::{Deserialize, Serialize};

use crate::notebook;
use crate::text::is_binary;

pub(crate) use self::hunks::{Hunk, hunks, pieces};
use self::hunks::{Piece, held};

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
mod tests;
