//! Blame: which version of a file each of its lines first appeared in.
//!
//! Works on versions and lines only. The caller's [`Ancestry`] says which versions a version came from; who made the
//! version that a line begins in is for the caller to look up afterwards.
//!
//! A version may have several origins, because a rewind or an undo brings lines back from elsewhere. They are tried in
//! order, and a line belongs to the first one that has it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::rc::Rc;

use imara_diff::{Algorithm, Diff, NoSliderHeuristic, Token};

use crate::id::ObjectId;

/// Access to a file's versions: the store, or values in memory.
pub trait Ancestry {
    /// Names a version. Later versions compare greater, so the newest is visited first and none is visited twice.
    type Version: Clone + Ord;
    type Error;

    /// The versions that `of` came from, in the order in which they are searched for its lines; empty for the first
    /// version. An origin that is not earlier than `of` is ignored.
    fn origins(&mut self, of: &Self::Version) -> Result<Vec<EarlierVersion<Self::Version>>, Self::Error>;

    fn bytes(&mut self, blob: &ObjectId) -> Result<Vec<u8>, Self::Error>;
}

/// A version that another came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierVersion<V> {
    pub version: V,
    /// An origin with the same content as its successor is passed through without reading it.
    pub blob: ObjectId,
}

/// Lines as people and `git blame` count them, each with its line ending.
pub fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n')
}

/// For each wanted line of a version (counted from 0), the version that it begins in.
pub fn blame<H: Ancestry>(
    history: &mut H,
    of: EarlierVersion<H::Version>,
    wanted: Range<usize>,
) -> Result<Vec<H::Version>, H::Error> {
    let mut known = LineNumbers::default();
    let text = Rc::new(known.read(of.blob, history.bytes(&of.blob)?, None));
    let wanted = wanted.start.min(text.tokens.len())..wanted.end.min(text.tokens.len());
    let mut found: Vec<Option<H::Version>> = vec![None; wanted.len()];
    let lines = wanted.enumerate().map(|(answer, line)| Sought { line, answer }).collect();
    let mut queue = BTreeMap::from([(of.version, Pending { text, lines })]);
    while let Some((version, Pending { text, mut lines })) = queue.pop_last() {
        for origin in history.origins(&version)? {
            if lines.is_empty() {
                break;
            }
            if origin.version >= version {
                continue;
            }
            let pending = queue.get(&origin.version).map(|pending| pending.text.clone());
            let earlier = match pending {
                Some(earlier) => earlier,
                None if origin.blob == text.blob => text.clone(),
                None => Rc::new(known.read(origin.blob, history.bytes(&origin.blob)?, Some(&text))),
            };
            let passed = if earlier.blob == text.blob {
                std::mem::take(&mut lines)
            } else {
                known.pass(&earlier, &text, &mut lines)
            };
            if passed.is_empty() {
                continue;
            }
            let waiting = queue.entry(origin.version).or_insert(Pending { text: earlier, lines: Vec::new() });
            if waiting.lines.is_empty() {
                waiting.lines = passed;
            } else {
                waiting.lines.extend(passed);
                waiting.lines.sort_unstable_by_key(|sought| sought.line);
            }
        }
        for sought in lines {
            found[sought.answer] = Some(version.clone());
        }
    }
    // Every line is in exactly one pending version until its origin is found, so none is missing here.
    Ok(found.into_iter().flatten().collect())
}

/// A line of a version, and the index of the answer it is for.
#[derive(Clone, Copy)]
struct Sought {
    line: usize,
    answer: usize,
}

/// A version with lines whose origin is still sought, in line order.
struct Pending {
    text: Rc<Text>,
    lines: Vec<Sought>,
}

/// A content with its lines as numbers.
struct Text {
    blob: ObjectId,
    bytes: Vec<u8>,
    tokens: Vec<Token>,
    /// The byte offset of each line.
    starts: Vec<usize>,
}

/// Numbers every distinct line seen so far: equal lines have the same number in all versions, so comparing two versions
/// compares numbers.
#[derive(Default)]
struct LineNumbers {
    numbers: HashMap<Box<[u8]>, Token>,
    diff: Diff,
}

impl LineNumbers {
    /// Numbers the lines of a content. Lines shared with a neighbouring version, usually nearly all, are copied from it
    /// in long runs: comparing bytes is far faster than looking up lines.
    fn read(&mut self, blob: ObjectId, bytes: Vec<u8>, neighbour: Option<&Text>) -> Text {
        let (mut tokens, mut starts) = (Vec::new(), Vec::new());
        let mut at = 0;
        let mut near = 0;
        while at < bytes.len() {
            if let Some(other) = neighbour.filter(|other| near < other.starts.len()) {
                let from = other.starts[near];
                let same = common_start(&other.bytes[from..], &bytes[at..]);
                // The line in which the two diverge is not shared, unless both end there.
                let both_end = (from + same, at + same) == (other.bytes.len(), bytes.len());
                let whole =
                    other.starts[near..].partition_point(|start| *start <= from + same) - usize::from(!both_end);
                if whole > 0 {
                    let run = near..near + whole;
                    tokens.extend_from_slice(&other.tokens[run.clone()]);
                    starts.extend(other.starts[run.clone()].iter().map(|start| start - from + at));
                    near = run.end;
                    at += other.starts.get(near).map_or(same, |start| start - from);
                    continue;
                }
            }
            let Some(line) = lines(&bytes[at..]).next() else { break };
            let token = self.number(line);
            // Some of the neighbour's lines may be missing here. Many lines look alike, such as a lone bracket, so the
            // two are matched up again only where a longer stretch is the same.
            let together = |other: &Text, near: usize| {
                common_start(&other.bytes[other.starts[near]..], &bytes[at..]) >= ENOUGH.min(bytes.len() - at)
            };
            if let Some(other) = neighbour
                && let Some(ahead) = (near..other.tokens.len().min(near + AHEAD))
                    .find(|ahead| other.tokens[*ahead] == token && together(other, *ahead))
            {
                near = ahead + 1;
            }
            tokens.push(token);
            starts.push(at);
            at += line.len();
        }
        Text { blob, bytes, tokens, starts }
    }

    fn number(&mut self, line: &[u8]) -> Token {
        let next = Token(u32::try_from(self.numbers.len()).unwrap_or(u32::MAX));
        match self.numbers.get(line) {
            Some(number) => *number,
            None => *self.numbers.entry(line.into()).or_insert(next),
        }
    }

    /// Moves the lines that `earlier` also has out of `lines`, and returns them as lines of `earlier`.
    fn pass(&mut self, earlier: &Text, later: &Text, lines: &mut Vec<Sought>) -> Vec<Sought> {
        let (before, after) = (&earlier.tokens[..], &later.tokens[..]);
        self.diff.compute_with(Algorithm::Histogram, before, after, self.numbers.len() as u32);
        // The same heuristic as `piton diff`, so that both report the same lines.
        self.diff.postprocess_with(before, after, NoSliderHeuristic);
        let mut passed = Vec::with_capacity(lines.len());
        let mut hunks = self.diff.hunks().peekable();
        // How far lines after a difference are shifted, on each side.
        let (mut ahead, mut behind) = (0, 0);
        lines.retain(|sought| {
            while let Some(hunk) = hunks.next_if(|hunk| hunk.after.end as usize <= sought.line) {
                (ahead, behind) = (hunk.after.end as usize, hunk.before.end as usize);
            }
            let is_new = hunks.peek().is_some_and(|hunk| hunk.after.start as usize <= sought.line);
            if !is_new {
                passed.push(Sought { line: sought.line - ahead + behind, answer: sought.answer });
            }
            is_new
        });
        passed
    }
}

/// How many of a neighbour's lines may be missing in a row before lines are looked up one by one instead.
const AHEAD: usize = 64;

/// Bytes that must match: this many are seldom equal by chance.
const ENOUGH: usize = 128;

/// Bytes compared at a time.
const AT_ONCE: usize = 256;

/// Length of the common prefix, in bytes.
fn common_start(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.chunks_exact(AT_ONCE).zip(b.chunks_exact(AT_ONCE)).take_while(|(a, b)| a == b).count() * AT_ONCE;
    blocks + a[blocks..].iter().zip(&b[blocks..]).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Versions in memory: each has its lines, one letter per line, and the versions it came from.
    struct Story(Vec<(&'static str, Vec<usize>)>);

    fn bytes_of(letters: &str) -> Vec<u8> {
        letters.chars().flat_map(|letter| [letter as u8, b'\n']).collect()
    }

    impl Story {
        fn origin(&self, version: usize) -> EarlierVersion<usize> {
            EarlierVersion { version, blob: ObjectId::of_blob(&bytes_of(self.0[version].0)) }
        }
    }

    impl Ancestry for Story {
        type Version = usize;
        type Error = ObjectId;

        fn origins(&mut self, of: &usize) -> Result<Vec<EarlierVersion<usize>>, ObjectId> {
            Ok(self.0[*of].1.iter().map(|version| self.origin(*version)).collect())
        }

        fn bytes(&mut self, blob: &ObjectId) -> Result<Vec<u8>, ObjectId> {
            let mut all = self.0.iter().map(|(letters, _)| bytes_of(letters));
            all.find(|bytes| ObjectId::of_blob(bytes) == *blob).ok_or(*blob)
        }
    }

    /// Checks where each line of the last version begins, one digit per line.
    fn check(story: &str, versions: &[(&'static str, &[usize])], expected: &str) {
        let mut history = Story(versions.iter().map(|(letters, from)| (*letters, from.to_vec())).collect());
        let last = history.origin(versions.len() - 1);
        let found = blame(&mut history, last, 0..usize::MAX).unwrap();
        assert_eq!(found.iter().map(usize::to_string).collect::<String>(), expected, "{story}");
    }

    #[test]
    fn each_line_begins_in_the_first_version_that_has_it() {
        check("one version", &[("abc", &[])], "000");
        check("nothing in it", &[("abc", &[]), ("", &[0])], "");
        check("from nothing", &[("", &[]), ("ab", &[0])], "11");
        check("at both ends and in the middle", &[("bd", &[]), ("abcde", &[0])], "10101");
        check("three in a row", &[("ab", &[]), ("axb", &[0]), ("axyb", &[1])], "0120");
        check("gone and written again", &[("abc", &[]), ("ac", &[0]), ("abc", &[1])], "020");
        check("everything is new", &[("abc", &[]), ("xyz", &[0])], "111");
        check("the same content in between", &[("ab", &[]), ("abc", &[0]), ("abc", &[1]), ("abcd", &[2])], "0013");
        check("the same line several times", &[("xax", &[]), ("xaxbx", &[0])], "00011");
    }

    #[test]
    fn a_line_that_the_first_origin_does_not_have_is_asked_of_the_next() {
        // Version 2 went partly back from 1 to 0: `b` is from 0 again, `x` from 1, and `n` is new.
        check("two origins", &[("ab", &[]), ("ax", &[0]), ("axbn", &[1, 0])], "0102");
        check("the first has all", &[("ab", &[]), ("abc", &[0]), ("abc", &[1, 0])], "001");
        check("both ways lead to one version", &[("abc", &[]), ("ab", &[0]), ("bc", &[0]), ("abc", &[1, 2])], "000");
        check("an origin that is not earlier is passed over", &[("a", &[1]), ("ab", &[1, 0])], "01");
    }

    #[test]
    fn only_the_wanted_lines_are_looked_for() {
        let mut history = Story(vec![("abc", vec![]), ("axbyc", vec![0])]);
        let last = history.origin(1);
        assert_eq!(blame(&mut history, last.clone(), 1..3).unwrap(), [1, 0]);
        assert_eq!(blame(&mut history, last, 4..9).unwrap(), [0]);
    }

    #[test]
    fn a_missing_last_end_of_line_is_another_line() {
        struct Two;
        impl Ancestry for Two {
            type Version = usize;
            type Error = ();
            fn origins(&mut self, of: &usize) -> Result<Vec<EarlierVersion<usize>>, ()> {
                Ok((0..*of).map(|version| EarlierVersion { version, blob: ObjectId([0; 32]) }).collect())
            }
            fn bytes(&mut self, blob: &ObjectId) -> Result<Vec<u8>, ()> {
                Ok(if blob.0 == [0; 32] { b"a\nb".to_vec() } else { b"a\nb\n".to_vec() })
            }
        }
        assert_eq!(blame(&mut Two, EarlierVersion { version: 1, blob: ObjectId([1; 32]) }, 0..9), Ok(vec![0, 1]));
    }

    /// A deterministic pseudo-random sequence.
    fn next(state: &mut u64) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as usize
    }

    #[test]
    fn a_content_is_read_the_same_with_any_neighbour() {
        let mut state = 7;
        for _ in 0..3_000 {
            let mut content = || -> Vec<u8> {
                let length = next(&mut state) % 12;
                (0..length).map(|_| b"ab\n"[next(&mut state) % 3]).collect()
            };
            let (near, bytes) = (content(), content());
            let mut known = LineNumbers::default();
            let near = known.read(ObjectId([1; 32]), near, None);
            let alone = known.read(ObjectId([2; 32]), bytes.clone(), None);
            let beside = known.read(ObjectId([2; 32]), bytes.clone(), Some(&near));
            assert_eq!((alone.tokens, alone.starts), (beside.tokens, beside.starts), "{:?} {bytes:?}", near.bytes);
        }
    }

    #[test]
    fn long_common_parts_are_found_to_the_byte() {
        let long: Vec<u8> = (0..5 * AT_ONCE).map(|n| (n % 251) as u8).collect();
        for at in [0, 1, AT_ONCE - 1, AT_ONCE, 3 * AT_ONCE + 17, long.len() - 1] {
            let mut other = long.clone();
            other[at] ^= 1;
            assert_eq!(common_start(&long, &other), at);
            assert_eq!(common_start(&long, &long[..at]), at);
        }
    }
}
