//! How seeds are mutated.

use std::ops::Range;

use crate::dice::Dice;

/// Random numbers that are the same in every run.
#[derive(Clone, Debug)]
pub struct Random(Dice);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(Dice::new(seed))
    }

    pub fn draw(&mut self) -> u64 {
        self.0.roll()
    }

    /// A number below a limit, which must not be 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.draw() % limit as u64) as usize
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        self.0.one_of(from)
    }

    /// A random part of `length` bytes; small ones are likelier.
    fn part(&mut self, length: usize) -> Range<usize> {
        if length == 0 {
            return 0..0;
        }
        let longest = if self.below(4) == 0 { length } else { length.min(16) };
        let size = 1 + self.below(longest);
        let from = self.below(length - size + 1);
        from..from + size
    }
}

const NUMBERS: [u64; 20] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x10_0000,
    0x1000_0000,
    i64::MAX as u64,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

const TEXTS: [&str; 24] = [
    "-9223372036854775808",
    "9223372036854775807",
    "18446744073709551615",
    "4294967295",
    "1e999",
    "-0.0",
    "99999999999999999999999999",
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "\\u0000",
    "\\ud800",
    "\u{feff}",
    "\u{1F600}",
    "../",
    "//",
    "\r\n",
    "\n\n",
    "\0",
    "\t",
    "refs/heads/",
    ".git",
];

/// Mutates seeds at random.
pub struct Mutator {
    random: Random,
    seeds: Vec<Vec<u8>>,
    longest: usize,
}

impl Mutator {
    pub fn new(seed: u64, seeds: Vec<Vec<u8>>) -> Self {
        let longest = seeds.iter().map(Vec::len).max().unwrap_or_default();
        Self { random: Random::new(seed), seeds, longest: longest * 2 + 4096 }
    }

    pub fn seeds(&self) -> usize {
        self.seeds.len()
    }

    pub fn keep(&mut self, seed: Vec<u8>) {
        self.seeds.push(seed);
    }

    /// A seed with a few changes.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.random.pick(&self.seeds).clone();
        // A single change finds what no checksum hides; many together find what one cannot.
        for _ in 0..1 << self.random.below(5) {
            self.change(&mut input);
        }
        input.truncate(self.longest);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let random = &mut self.random;
        if input.is_empty() {
            let other = random.pick(&self.seeds);
            input.extend_from_slice(&other[random.part(other.len())]);
            return;
        }
        let at = random.below(input.len());
        match random.below(16) {
            0 | 1 => input[at] ^= 1 << random.below(8),
            2 => input[at] = random.draw() as u8,
            3 => input[at] = input[at].wrapping_add(random.below(17) as u8).wrapping_sub(8),
            4 => overwrite(input, at, &number(random)),
            5 => {
                let part = random.part(input.len());
                input.drain(part);
            }
            6 => {
                let part = random.part(input.len());
                let copy = input[part].to_vec();
                insert(input, at, &copy);
            }
            7 => {
                let part = random.part(input.len());
                let moved: Vec<u8> = input.drain(part).collect();
                insert(input, at, &moved);
            }
            8 => {
                let part = random.part(input.len());
                let copy = input[part].to_vec();
                overwrite(input, at, &copy);
            }
            9 => match random.below(3) {
                0 => input.truncate(at),
                1 => drop(input.drain(..at)),
                // Repeated several times, as for deeply nested brackets.
                _ => {
                    let part = random.part(input.len());
                    let copy = input[part].repeat(1 + random.below(64));
                    insert(input, at, &copy);
                }
            },
            10 => {
                // The head of one seed and the tail of another, or a part of it.
                let other = random.pick(&self.seeds);
                if random.below(2) == 0 {
                    let from = random.below(other.len() + 1);
                    input.truncate(at);
                    input.extend_from_slice(&other[from..]);
                } else {
                    let part = random.part(other.len());
                    insert(input, at, &other[part]);
                }
            }
            11 | 12 => {
                if let Some(place) = run_of(input, at, |b| b.is_ascii_digit()) {
                    let text = match random.below(3) {
                        0 => random.pick(&TEXTS[..7]).to_string(),
                        1 => random.pick(&NUMBERS).to_string(),
                        _ => random.below(1000).to_string(),
                    };
                    input.splice(place, text.into_bytes());
                }
            }
            13 => insert(input, at, random.pick(&TEXTS).as_bytes()),
            14 => {
                // Replaces one token by another, of this seed or another one.
                let other = if random.below(2) == 0 { input.clone() } else { random.pick(&self.seeds).clone() };
                let from = random.below(other.len().max(1));
                if let (Some(place), Some(token)) = (token(input, at), token(&other, from)) {
                    input.splice(place, other[token].iter().copied());
                }
            }
            _ => {
                // Replaces a line by another, duplicates it, or removes it.
                if let (Some(place), Some(line)) = (line(input, at), line(input, random.below(input.len()))) {
                    let copy = input[line].to_vec();
                    match random.below(3) {
                        0 => drop(input.splice(place, copy)),
                        1 => insert(input, place.start, &copy),
                        _ => drop(input.drain(place)),
                    }
                }
            }
        }
    }
}

fn number(random: &mut Random) -> Vec<u8> {
    let number = *random.pick(&NUMBERS);
    let width = *random.pick(&[1, 2, 4, 8]);
    let mut bytes = number.to_le_bytes()[..width].to_vec();
    if random.below(2) == 0 {
        bytes.reverse();
    }
    bytes
}

fn overwrite(input: &mut [u8], at: usize, with: &[u8]) {
    for (to, from) in input[at..].iter_mut().zip(with) {
        *to = *from;
    }
}

fn insert(input: &mut Vec<u8>, at: usize, what: &[u8]) {
    let at = at.min(input.len());
    input.splice(at..at, what.iter().copied());
}

/// The next run of such bytes.
fn run_of(input: &[u8], at: usize, is_one: impl Fn(u8) -> bool) -> Option<Range<usize>> {
    let from = at + input[at..].iter().position(|b| is_one(*b))?;
    let length = input[from..].iter().position(|b| !is_one(*b)).unwrap_or(input.len() - from);
    Some(from..from + length)
}

/// The next token: a quoted text with its quotes, else a word.
fn token(input: &[u8], at: usize) -> Option<Range<usize>> {
    let from = at + input.get(at..)?.iter().position(|b| *b == b'"' || b.is_ascii_alphanumeric())?;
    if input[from] == b'"' {
        let end = input[from + 1..].iter().position(|b| *b == b'"')?;
        return Some(from..from + end + 2);
    }
    run_of(input, from, |b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'/'))
}

/// The line around a position, with its ending.
fn line(input: &[u8], at: usize) -> Option<Range<usize>> {
    let from = input[..at].iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1);
    let to = input[at..].iter().position(|b| *b == b'\n').map_or(input.len(), |end| at + end + 1);
    (from < to).then_some(from..to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_inputs_and_another_gives_others() {
        let inputs = |seed| {
            let mut mutator = Mutator::new(seed, vec![b"one two 3\nfour \"five\"\n".to_vec(), vec![0; 64], Vec::new()]);
            (0..2_000).map(|_| mutator.next_input()).collect::<Vec<_>>()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
        let all = inputs(1);
        let different: std::collections::HashSet<_> = all.iter().collect();
        assert!(different.len() > 1_500, "{} of {}", different.len(), all.len());
        assert!(all.iter().all(|input| input.len() <= 2 * 64 + 4096));
    }

    #[test]
    fn tokens_runs_and_lines_are_found_where_they_are() {
        let text = b"{\"a\":12,\n\"b\":null}\n";
        assert_eq!(token(text, 0), Some(1..4));
        assert_eq!(run_of(text, 0, |b| b.is_ascii_digit()), Some(5..7));
        assert_eq!(line(text, 10), Some(9..19));
        assert_eq!(token(b"", 0), None);
    }
}
