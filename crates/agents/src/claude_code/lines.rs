//! A transcript line by line, with bounded memory.
//!
//! A line up to [`LINE_IN_MEMORY`] is read as a whole. In a longer one, which contains an image or a tool's whole
//! output, long strings are cut. One that is still too long then, because of many short strings, is parsed as a stream.

use std::io::{self, BufRead, BufReader, Read};

use memchr::{memchr, memchr2};
use serde::de::DeserializeOwned;

/// Most bytes of a line in memory.
pub(super) const LINE_IN_MEMORY: usize = 1 << 20;

/// A non-empty line.
pub(super) struct Line<T> {
    /// The offset of its first byte.
    pub at: u64,
    /// The offset after it, including its newline.
    pub end: u64,
    /// Whether it has a newline.
    pub ended: bool,
    /// The parsed line.
    pub read: serde_json::Result<T>,
}

pub(super) struct Lines<R> {
    reader: R,
    at: u64,
    longest_text: usize,
    line: Vec<u8>,
    cut: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// Strings in lines that do not fit in memory are cut to about `longest_text` bytes.
    pub fn new(reader: R, longest_text: usize) -> Self {
        Self { reader, at: 0, longest_text, line: Vec::new(), cut: Vec::new() }
    }

    /// The next line, parsed in one of two ways; `None` at the end.
    pub fn next<T>(
        &mut self,
        in_memory: impl FnOnce(&[u8]) -> serde_json::Result<T>,
        streamed: impl FnOnce(&mut dyn Read) -> serde_json::Result<T>,
    ) -> io::Result<Option<Line<T>>> {
        loop {
            self.line.clear();
            let length = self.reader.by_ref().take(LINE_IN_MEMORY as u64).read_until(b'\n', &mut self.line)?;
            let at = self.at;
            self.at += length as u64;
            if length == 0 {
                return Ok(None);
            }
            let ended = self.line.ends_with(b"\n");
            if ended || length < LINE_IN_MEMORY {
                if self.line.trim_ascii().is_empty() {
                    continue;
                }
                let read = in_memory(&self.line);
                return Ok(Some(Line { at, end: self.at, ended, read }));
            }
            let mut rest = RestOfLine { reader: &mut self.reader, taken: 0, ended: false, plain: 0 };
            let mut short = ShortTexts::new(self.line.as_slice().chain(&mut rest), self.longest_text);
            self.cut.clear();
            short.by_ref().take(LINE_IN_MEMORY as u64).read_to_end(&mut self.cut)?;
            let read = if self.cut.len() < LINE_IN_MEMORY {
                in_memory(&self.cut)
            } else {
                match streamed(&mut self.cut.as_slice().chain(short)) {
                    Err(e) if e.is_io() => return Err(e.into()),
                    read => read,
                }
            };
            rest.skip()?;
            self.at += rest.taken;
            return Ok(Some(Line { at, end: self.at, ended: rest.ended, read }));
        }
    }
}

/// The usual way to parse a line that does not fit in memory.
pub(super) fn streamed<T: DeserializeOwned>(reader: &mut dyn Read) -> serde_json::Result<T> {
    serde_json::from_reader(BufReader::new(reader))
}

/// Reads up to the end of a line and no further; its newline is consumed and not returned.
struct RestOfLine<'a, R> {
    reader: &'a mut R,
    /// Bytes consumed, including the newline.
    taken: u64,
    ended: bool,
    /// How many of the reader's next bytes are known to contain no newline.
    plain: usize,
}

impl<R: BufRead> RestOfLine<'_, R> {
    fn skip(&mut self) -> io::Result<()> {
        loop {
            let length = self.fill_buf()?.len();
            if length == 0 {
                return Ok(());
            }
            self.consume(length);
        }
    }
}

impl<R: BufRead> BufRead for RestOfLine<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.ended {
            return Ok(&[]);
        }
        if self.plain == 0 {
            let available = self.reader.fill_buf()?;
            self.plain = memchr(b'\n', available).unwrap_or(available.len());
            if self.plain == 0 {
                self.ended = !available.is_empty();
                self.taken += u64::from(self.ended);
                self.reader.consume(usize::from(self.ended));
                return Ok(&[]);
            }
        }
        Ok(&self.reader.fill_buf()?[..self.plain])
    }

    fn consume(&mut self, length: usize) {
        self.plain -= length;
        self.taken += length as u64;
        self.reader.consume(length);
    }
}

impl<R: BufRead> Read for RestOfLine<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(out)?;
        self.consume(length);
        Ok(length)
    }
}

/// JSON with long strings cut, never within a character or an escape.
struct ShortTexts<R> {
    inner: R,
    longest: usize,
    place: TextState,
}

#[derive(Clone, Copy)]
enum TextState {
    Between,
    /// In a string, with this many bytes left to keep.
    Text(usize),
    /// After a backslash in such a string.
    Escape(usize),
    /// Before the digits of `\uXXXX`.
    Digits(u8, usize),
    /// In the part of a string that is dropped.
    Dropped,
    DroppedEscape,
}

impl<R: BufRead> ShortTexts<R> {
    fn new(inner: R, longest: usize) -> Self {
        Self { inner, longest, place: TextState::Between }
    }
}

impl<R: BufRead> Read for ShortTexts<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut made = 0;
        while made == 0 {
            let given = self.inner.fill_buf()?;
            if given.is_empty() || out.is_empty() {
                return Ok(0);
            }
            let mut taken = 0;
            while taken < given.len() && made < out.len() {
                let left = &given[taken..];
                let room = left.len().min(out.len() - made);
                // How many bytes to copy, and how many to drop after them.
                let (copied, dropped, place) = match self.place {
                    TextState::Between => match memchr(b'"', &left[..room]) {
                        Some(quote) => (quote + 1, 0, TextState::Text(self.longest)),
                        None => (room, 0, TextState::Between),
                    },
                    TextState::Text(0) if left[0] & 0xc0 != 0x80 => (0, 0, TextState::Dropped),
                    TextState::Text(longest) => {
                        let room = room.min(longest.max(1));
                        match memchr2(b'"', b'\\', &left[..room]) {
                            Some(at) if left[at] == b'"' => (at + 1, 0, TextState::Between),
                            Some(at) => (at + 1, 0, TextState::Escape(longest.saturating_sub(at + 1))),
                            None => (room, 0, TextState::Text(longest.saturating_sub(room))),
                        }
                    }
                    TextState::Escape(longest) if left[0] == b'u' => (1, 0, TextState::Digits(4, longest)),
                    TextState::Escape(longest) | TextState::Digits(1, longest) => (1, 0, TextState::Text(longest)),
                    TextState::Digits(digits, longest) => (1, 0, TextState::Digits(digits - 1, longest)),
                    TextState::Dropped => match memchr2(b'"', b'\\', left) {
                        // The quote itself is examined again, as the end of the string.
                        Some(at) if left[at] == b'"' => (0, at, TextState::Text(1)),
                        Some(at) => (0, at + 1, TextState::DroppedEscape),
                        None => (0, left.len(), TextState::Dropped),
                    },
                    TextState::DroppedEscape => (0, 1, TextState::Dropped),
                };
                out[made..made + copied].copy_from_slice(&left[..copied]);
                made += copied;
                taken += copied + dropped;
                self.place = place;
            }
            self.inner.consume(taken);
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shortened(json: &str, longest: usize) -> String {
        for capacity in [1, 2, 3, 7, 64] {
            let mut whole = String::new();
            let mut reader = ShortTexts::new(BufReader::with_capacity(capacity, json.as_bytes()), longest);
            reader.read_to_string(&mut whole).unwrap();
            let mut bytewise = Vec::new();
            let mut reader = ShortTexts::new(BufReader::with_capacity(capacity, json.as_bytes()), longest);
            let mut one = [0];
            while reader.read(&mut one).unwrap() == 1 {
                bytewise.push(one[0]);
            }
            assert_eq!(whole.as_bytes(), bytewise, "{capacity}");
            if capacity == 64 {
                return whole;
            }
        }
        unreachable!()
    }

    #[test]
    fn long_texts_are_cut_between_characters_and_everything_else_stays() {
        for (json, longest, expected) in [
            (r#"{"a":"12345","b":[1,"12","1234"]}"#, 3, r#"{"a":"123","b":[1,"12","123"]}"#),
            (r#"{"a":"12\"45","b":"\\"}"#, 3, r#"{"a":"12\"","b":"\\"}"#),
            (r#"{"a":"1234\"56\\","b":1}"#, 3, r#"{"a":"123","b":1}"#),
            (r#"["12\u00e9\u00e9\u00e9"]"#, 3, r#"["12\u00e9"]"#),
            (r#"["aéé","éa"]"#, 2, r#"["aé","é"]"#),
            (r#"["😀😀"]"#, 1, r#"["😀"]"#),
            (r#"[1234567, true ,{}]"#, 2, r#"[1234567, true ,{}]"#),
            (r#"["never ends"#, 3, r#"["nev"#),
        ] {
            assert_eq!(shortened(json, longest), expected, "{json}");
        }
    }
}
