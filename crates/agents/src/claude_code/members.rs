//! Copies a transcript while a visitor sees, and may change, the top-level members of each line's object.
//!
//! Nothing is parsed and serialised again: unchanged members pass through byte for byte, whatever they are, and nothing
//! longer than a key or a short value is buffered. It understands only as much JSON as is needed to tell a line's own
//! members from nested ones.

use std::io::{self, BufRead, Write};

use memchr::{memchr, memchr3};

use crate::transcript::Copied;

/// Most bytes of a key; no key of interest is longer.
const MAX_KEY: usize = 128;
/// Most bytes of a value that is shown; ids, names and paths are shorter, and a longer one passes through unseen.
const MAX_VALUE: usize = 8 << 10;

/// Sees the members of each line.
pub(super) trait MemberVisitor {
    /// The keys of interest.
    const KEYS: &'static [&'static str];

    /// A member whose value is a string or a literal, as written in the line. The return value replaces it.
    fn member(&mut self, key: &'static str, value: &[u8]) -> Option<Vec<u8>>;

    /// Called at the end of a line, after all its members.
    fn line_ends(&mut self) {}
}

/// Copies everything. A line that is not an object, and what follows an object on its line, is copied without being
/// examined.
pub(super) fn pass(mut from: impl BufRead, to: &mut impl Write, look: &mut impl MemberVisitor) -> io::Result<Copied> {
    let mut pass = Pass {
        look,
        out: Out { to, bytes: 0 },
        place: LineState::Before,
        depth: 0,
        at_key: true,
        key: Vec::new(),
        asked: None,
        held: Vec::new(),
        lines: 0,
    };
    let mut read = 0;
    loop {
        let given = from.fill_buf()?;
        if given.is_empty() {
            break;
        }
        pass.take(given)?;
        let length = given.len();
        read += length as u64;
        from.consume(length);
    }
    let cut_off = pass.place != LineState::Before;
    if cut_off {
        pass.line_ends()?;
    }
    Ok(Copied { lines: pass.lines, read, bytes: pass.out.bytes, cut_off })
}

struct Pass<'a, L, W> {
    look: &'a mut L,
    out: Out<'a, W>,
    place: LineState,
    /// How many objects and lists are open.
    depth: u64,
    /// Whether the next string in the line's own object is a key.
    at_key: bool,
    key: Vec<u8>,
    /// The key of interest whose value comes next.
    asked: Option<&'static str>,
    /// The value to be shown, as far as it was read; not written yet.
    held: Vec<u8>,
    lines: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineState {
    /// At the beginning of a line.
    Before,
    /// In the line's object, between strings.
    Between,
    /// In a string, and whether a backslash came just before.
    Text(Text, bool),
    /// In a value to be shown that is not a string.
    Literal,
    /// In something that is not examined, up to the end of the line.
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    Key,
    Shown,
    Passed,
}

struct Out<'a, W> {
    to: &'a mut W,
    bytes: u64,
}

impl<W: Write> Out<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.to.write_all(bytes)
    }
}

impl<L: MemberVisitor, W: Write> Pass<'_, L, W> {
    fn take(&mut self, given: &[u8]) -> io::Result<()> {
        // Everything before this is written or held.
        let mut done = 0;
        let mut at = 0;
        while at < given.len() {
            match self.place {
                LineState::Before => {
                    match given[at] {
                        b' ' | b'\t' | b'\r' | b'\n' => {}
                        b'{' => {
                            (self.depth, self.at_key, self.asked) = (1, true, None);
                            self.place = LineState::Between;
                        }
                        // Its newline is searched for from its first byte, which may be the only one.
                        _ => {
                            self.place = LineState::Other;
                            continue;
                        }
                    }
                    at += 1;
                }
                LineState::Other => match memchr(b'\n', &given[at..]) {
                    Some(length) => {
                        at += length + 1;
                        self.line_ends()?;
                    }
                    None => at = given.len(),
                },
                LineState::Between => {
                    let byte = given[at];
                    match byte {
                        b'\n' => self.line_ends()?,
                        b'"' if self.depth > 1 => self.place = LineState::Text(Text::Passed, false),
                        b'{' | b'[' => {
                            self.depth += 1;
                            self.asked = None;
                        }
                        b'}' | b']' => {
                            self.depth -= 1;
                            if self.depth == 0 {
                                self.place = LineState::Other;
                            }
                        }
                        b' ' | b'\t' | b'\r' => {}
                        _ if self.depth > 1 => {}
                        b',' => (self.at_key, self.asked) = (true, None),
                        b':' => self.at_key = false,
                        b'"' if self.at_key => {
                            self.key.clear();
                            self.place = LineState::Text(Text::Key, false);
                        }
                        _ if self.asked.is_some() => {
                            self.out.write(&given[done..at])?;
                            self.held.push(byte);
                            self.place =
                                if byte == b'"' { LineState::Text(Text::Shown, false) } else { LineState::Literal };
                        }
                        b'"' => self.place = LineState::Text(Text::Passed, false),
                        _ => {}
                    }
                    at += 1;
                }
                LineState::Literal => match given[at] {
                    // What comes after it is not part of it.
                    b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n' => {
                        self.show()?;
                        done = at;
                    }
                    byte => {
                        self.held.push(byte);
                        at += 1;
                        if self.held.len() > MAX_VALUE {
                            self.let_go()?;
                            self.place = LineState::Between;
                            done = at;
                        }
                    }
                },
                LineState::Text(kind, escaped) => {
                    // Anything escaped is part of the string, except for a newline, which cannot be.
                    let end = if escaped && given[at] != b'\n' {
                        None
                    } else {
                        memchr3(b'"', b'\\', b'\n', &given[at..]).map(|length| at + length)
                    };
                    let until = if escaped && given[at] != b'\n' { at + 1 } else { end.unwrap_or(given.len()) };
                    self.place = LineState::Text(kind, false);
                    self.collect(kind, &given[at..until]);
                    at = until;
                    if kind == Text::Shown && self.held.len() > MAX_VALUE {
                        self.let_go()?;
                        self.place = LineState::Text(Text::Passed, false);
                        done = at;
                        continue;
                    }
                    let Some(end) = end else { continue };
                    match (given[end], kind) {
                        (b'\\', _) => {
                            self.collect(kind, b"\\");
                            self.place = LineState::Text(kind, true);
                        }
                        (b'\n', _) => {
                            if kind == Text::Shown {
                                done = end;
                            }
                            self.line_ends()?;
                        }
                        (_, Text::Key) => {
                            self.asked = asked(L::KEYS, &self.key);
                            self.place = LineState::Between;
                        }
                        (_, Text::Shown) => {
                            self.held.push(b'"');
                            self.show()?;
                            done = end + 1;
                        }
                        (_, Text::Passed) => self.place = LineState::Between,
                    }
                    at = end + 1;
                }
            }
        }
        match self.place {
            LineState::Literal | LineState::Text(Text::Shown, _) => Ok(()),
            _ => self.out.write(&given[done..]),
        }
    }

    fn collect(&mut self, kind: Text, bytes: &[u8]) {
        match kind {
            Text::Key => {
                let room = (MAX_KEY + 1).saturating_sub(self.key.len());
                self.key.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Text::Shown => self.held.extend_from_slice(bytes),
            Text::Passed => {}
        }
    }

    /// The held value is complete.
    fn show(&mut self) -> io::Result<()> {
        let new = self.asked.take().and_then(|key| self.look.member(key, &self.held));
        self.out.write(new.as_deref().unwrap_or(&self.held))?;
        self.held.clear();
        self.place = LineState::Between;
        Ok(())
    }

    /// Writes what is held unchanged.
    fn let_go(&mut self) -> io::Result<()> {
        self.asked = None;
        self.out.write(&self.held)?;
        self.held.clear();
        Ok(())
    }

    fn line_ends(&mut self) -> io::Result<()> {
        self.let_go()?;
        self.lines += 1;
        self.place = LineState::Before;
        self.look.line_ends();
        Ok(())
    }
}

/// Which of the keys it is, however it is spelled.
fn asked(keys: &'static [&'static str], raw: &[u8]) -> Option<&'static str> {
    if raw.len() > MAX_KEY {
        return None;
    }
    let written = if raw.contains(&b'\\') { unquoted(&[b"\"", raw, b"\""].concat()) } else { None };
    let bytes = written.as_ref().map_or(raw, |text| text.as_bytes());
    keys.iter().copied().find(|key| key.as_bytes() == bytes)
}

/// A value's text, if it is a string.
pub(super) fn unquoted(value: &[u8]) -> Option<String> {
    serde_json::from_slice(value).ok()
}
