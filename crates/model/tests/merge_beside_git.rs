//! How often a merge silently puts an edit in the wrong place, compared with `git merge-file` on the same contents.
//!
//! Each edit is identified by the lines it touches, not by their text, so the right result is known even where lines
//! are equal and a diff can only guess. `PITON_MERGES=20000 cargo test -p piton-model --test merge_beside_git` runs for
//! longer.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "git reads files of the test's own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use piton_model::content::{Labels, merge};

/// The same numbers on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }

    fn within(&mut self, range: Range<usize>) -> usize {
        range.start + self.below(range.len())
    }
}

/// Replaces these lines of base with those.
#[derive(Clone, Debug)]
struct Edit {
    base: Range<usize>,
    lines: Vec<String>,
}

/// How near the edits of the two sides are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Distance {
    /// An untouched line is between them.
    Apart,
    /// They touch, and their order is certain.
    Touching,
    /// They change the same lines or insert at the same point: any result is a guess.
    Together,
}

struct Case {
    base: Vec<String>,
    ours: Vec<Edit>,
    theirs: Vec<Edit>,
}

impl Case {
    fn text(&self, edits: &[Edit]) -> String {
        let mut edits: Vec<&Edit> = edits.iter().collect();
        edits.sort_by_key(|edit| (edit.base.start, edit.base.end));
        let (mut text, mut at) = (String::new(), 0);
        for edit in edits {
            text += &self.base[at..edit.base.start].concat();
            text += &edit.lines.concat();
            at = edit.base.end;
        }
        text + &self.base[at..].concat()
    }

    fn distance(&self) -> Distance {
        let mut nearest = Distance::Apart;
        for (a, b) in self.ours.iter().flat_map(|a| self.theirs.iter().map(move |b| (&a.base, &b.base))) {
            let (first, second) = if (a.start, a.end) <= (b.start, b.end) { (a, b) } else { (b, a) };
            if first.end < second.start {
                continue;
            }
            // Where something is inserted next to a line that the other side replaces, nobody knows which comes first.
            let in_doubt = first.end > second.start || first.is_empty() || second.is_empty();
            if in_doubt {
                return Distance::Together;
            }
            nearest = Distance::Touching;
        }
        nearest
    }

    fn right(&self) -> String {
        self.text(&self.ours.iter().chain(&self.theirs).cloned().collect::<Vec<_>>())
    }
}

/// Edits of one side with at least one line between them.
fn edits(random: &mut Random, len: usize, most: usize, line: &mut impl FnMut(&mut Random) -> String) -> Vec<Edit> {
    let mut edits: Vec<Edit> = Vec::new();
    for _ in 0..random.within(1..most + 1) {
        let start = random.below(len + 1);
        let kind = random.below(3);
        let end = if kind == 0 { start } else { (start + random.within(1..3)).min(len) };
        let count = if kind == 1 { 0 } else { random.within(1..3) };
        let is_free = edits.iter().all(|other| other.base.end < start || end < other.base.start);
        let lines: Vec<String> = (0..count).map(|_| line(random)).collect();
        if is_free && (start < end || count > 0) {
            edits.push(Edit { base: start..end, lines });
        }
    }
    edits
}

/// Text of two or three different lines.
fn repetitive(random: &mut Random) -> Case {
    let kinds = random.within(2..4);
    let mut line = |random: &mut Random| format!("{}\n", ["a", "b", "c"][random.below(kinds)]);
    let len = random.within(4..14);
    let base: Vec<String> = (0..len).map(|_| line(random)).collect();
    let ours = edits(random, len, 2, &mut line);
    let theirs = edits(random, len, 2, &mut line);
    Case { base, ours, theirs }
}

/// A program: statements that differ, between braces and empty lines that do not.
fn ordinary(random: &mut Random) -> Case {
    let mut names = 0..;
    let mut name = move || names.next().unwrap_or(0);
    let mut function = |random: &mut Random| {
        let mut lines = vec![format!("fn f{}() {{\n", name())];
        for _ in 0..random.within(1..4) {
            if random.below(3) == 0 {
                let block = [format!("    if x{} {{\n", name()), "        return;\n".to_owned(), "    }\n".to_owned()];
                lines.extend(block);
            } else {
                lines.push(format!("    let x{} = {};\n", name(), random.below(5)));
            }
        }
        lines.extend(["}\n".to_owned(), "\n".to_owned()]);
        lines
    };
    let functions: Vec<Vec<String>> = (0..random.within(3..7)).map(|_| function(random)).collect();
    let mut starts = vec![0];
    for lines in &functions {
        starts.push(starts[starts.len() - 1] + lines.len());
    }
    let base: Vec<String> = functions.concat();
    let mut side = |random: &mut Random, who: &str| {
        let mut edits: Vec<Edit> = Vec::new();
        for _ in 0..random.within(1..4) {
            let one = random.below(functions.len());
            let (start, end) = (starts[one], starts[one + 1]);
            let edit = match random.below(4) {
                0 => Edit { base: start..start, lines: function(random) },
                1 => Edit { base: start..end, lines: Vec::new() },
                2 => {
                    let at = random.within(start + 1..end - 1);
                    Edit { base: at..at + 1, lines: vec![format!("    let {who}{} = 1;\n", random.below(90))] }
                }
                _ => {
                    let at = random.within(start + 1..end - 1);
                    Edit { base: at..at, lines: vec![format!("    call_{who}{}();\n", random.below(90))] }
                }
            };
            if edits.iter().all(|other| other.base.end < edit.base.start || edit.base.end < other.base.start) {
                edits.push(edit);
            }
        }
        edits
    };
    let ours = side(random, "ours");
    let theirs = side(random, "theirs");
    Case { base, ours, theirs }
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Tally {
    merges: u32,
    clean: u32,
    /// Clean, and not what was meant.
    wrong: u32,
}

impl Tally {
    fn add(&mut self, result: Option<&str>, right: &str) {
        self.merges += 1;
        self.clean += u32::from(result.is_some());
        self.wrong += u32::from(result.is_some_and(|result| result != right));
    }
}

struct Git(PathBuf);

impl Git {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// `None` on conflict.
    fn merge(&self, base: &str, ours: &str, theirs: &str) -> Option<String> {
        for (name, text) in [("base", base), ("ours", ours), ("theirs", theirs)] {
            std::fs::write(self.0.join(name), text).unwrap();
        }
        let done = Command::new("git")
            .args(["merge-file", "-p", "ours", "base", "theirs"])
            .env("GIT_CEILING_DIRECTORIES", &self.0)
            .current_dir(&self.0)
            .output()
            .unwrap();
        done.status.success().then(|| String::from_utf8(done.stdout).unwrap())
    }
}

impl Drop for Git {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn piton(base: &str, ours: &str, theirs: &str) -> Option<String> {
    let labels = Labels { ours: "ours", base: "base", theirs: "theirs" };
    let merged = merge(false, base.as_bytes(), ours.as_bytes(), theirs.as_bytes(), None, &labels);
    merged.bytes.filter(|_| merged.clashes.is_empty()).map(|bytes| String::from_utf8(bytes).unwrap())
}

fn how_many(usual: usize) -> usize {
    std::env::var("PITON_MERGES").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// The results for one distance: piton's, git's, and how many only git merged correctly.
#[derive(Debug, Default, Clone, Copy)]
struct Beside {
    piton: Tally,
    git: Tally,
    only_git: u32,
}

/// Merges whose edits are apart, and those that touch.
fn compare(name: &str, seed: u64, usual: usize, case: impl Fn(&mut Random) -> Case) -> [Beside; 2] {
    let git = Git::new(name);
    let mut random = Random(seed);
    let mut found = [Beside::default(); 2];
    let mut left = how_many(usual);
    while left > 0 {
        let case = case(&mut random);
        let beside = match case.distance() {
            Distance::Apart => &mut found[0],
            Distance::Touching => &mut found[1],
            Distance::Together => continue,
        };
        left -= 1;
        let (base, ours, theirs) = (case.base.concat(), case.text(&case.ours), case.text(&case.theirs));
        let right = case.right();
        let (by_piton, by_git) = (piton(&base, &ours, &theirs), git.merge(&base, &ours, &theirs));
        beside.piton.add(by_piton.as_deref(), &right);
        beside.git.add(by_git.as_deref(), &right);
        beside.only_git += u32::from(by_piton.is_none() && by_git.as_deref() == Some(&right));
    }
    println!("{name}: apart {:?}\n{name}: touching {:?}", found[0], found[1]);
    found
}

#[test]
fn repetitive_text_is_merged_to_a_wrong_place_no_more_often_than_by_git() {
    for seed in [0x9e37_79b9, 0x1234_5677] {
        let [apart, touching] = compare("repetitive", seed, 800, repetitive);
        assert!(apart.piton.wrong <= apart.git.wrong, "{apart:?}");
        assert!(touching.piton.wrong <= touching.git.wrong, "{touching:?}");
    }
}

#[test]
fn ordinary_text_merges_cleanly_at_least_as_often_as_with_git() {
    let [apart, touching] = compare("ordinary", 0x51ed_270b, 800, ordinary);
    assert!(apart.piton.wrong <= apart.git.wrong, "{apart:?}");
    // Being careful may cost one merge in two hundred; git never merges edits that touch.
    assert!(apart.only_git * 200 <= apart.piton.merges, "{apart:?}");
    assert!(apart.piton.clean + touching.piton.clean >= apart.git.clean + touching.git.clean, "{apart:?} {touching:?}");
}
