//! A branch in which a summary replaces some of the turns.
//!
//! The added lines have the form of Claude Code's own compaction. Observed in the messages that 2.1.197 and 2.1.325
//! send when they resume such a branch, before and after a compaction of their own:
//! - A boundary (`compact_boundary`, without a parent) hides everything before it, so only a summary that comes first
//!   may have one. Its summary and the first prompt after it arrive as one user message, followed by every line of the
//!   chain. What the agent had told the model about its environment is lost and repeated with the next prompt.
//! - A summary that comes last is an ordinary line of the chain, and arrives as a user message after the turns. The
//!   agent adds `No response requested.` in the model's name, as it does to every conversation that ends with the user.
//! - Neither is a turn (`isCompactSummary`).

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::{self, BufRead, Read, Write};

use piton_model::Timestamp;
use serde_json::Value;

use super::branch::Rename;
use super::members::{MemberVisitor, pass, unquoted};
use crate::transcript::Copied;

#[derive(Clone, Copy, Debug)]
pub struct Summary<'a> {
    pub text: &'a str,
    /// Fresh ids for the added lines, see [`crate::transcript::uuid`].
    pub uuids: [&'a str; 2],
    pub at: Timestamp,
}

/// Writes `prefix` unchanged except for the id, and then the summary of all turns that followed.
pub fn copy_with_summary_after(
    prefix: impl BufRead,
    to: &mut impl Write,
    id: &str,
    summary: &Summary<'_>,
) -> io::Result<Copied> {
    let mut chain = Chain { rename: Rename::new(id), line: Line::default(), last: Line::default() };
    let mut copied = pass(prefix, to, &mut chain)?;
    if copied.cut_off {
        to.write_all(b"\n")?;
        copied.bytes += 1;
        copied.cut_off = false;
    }
    let parent = Value::from(chain.last.uuid.as_deref().and_then(unquoted)).to_string();
    let text = format!("{AFTER}\n\n{}", summary.text);
    add(to, &mut copied, &summary_line(&text, &parent, &chain.last, id, summary))?;
    Ok(copied)
}

/// Writes the summary of all turns in the first `replaced` bytes, and then the rest unchanged except for the id.
///
/// In the rest, lines whose parent was replaced get the summary as their parent, and so does the first line of the
/// chain; every other byte stays as it is. A compaction in the rest hides the summary from the model, as it hid those
/// turns. Takes about 16 bytes of memory for each replaced line.
pub fn copy_with_summary_before(
    mut from: impl BufRead,
    replaced: u64,
    to: &mut impl Write,
    id: &str,
    summary: &Summary<'_>,
) -> io::Result<Copied> {
    let mut removed = Removed { uuids: Uuids::default(), line: Line::default(), last: Line::default() };
    let passed = pass(from.by_ref().take(replaced), &mut io::sink(), &mut removed)?;
    let mut copied = Copied { read: passed.read, ..Copied::default() };
    let text = format!("{BEFORE}\n\n{}", summary.text);
    let boundary = Value::from(summary.uuids[0]).to_string();
    add(to, &mut copied, &boundary_line(&boundary, &removed.last, id, summary))?;
    add(to, &mut copied, &summary_line(&text, &boundary, &removed.last, id, summary))?;
    let parent = Value::from(summary.uuids[1]).to_string().into_bytes();
    let mut adopt = Adopt { rename: Rename::new(id), removed: removed.uuids, parent, first: true };
    let passed = pass(from, to, &mut adopt)?;
    copied.lines += passed.lines;
    copied.read += passed.read;
    copied.bytes += passed.bytes;
    copied.cut_off = passed.cut_off;
    Ok(copied)
}

const AFTER: &str = "What followed in this conversation was replaced by this summary:";
const BEFORE: &str = "The earlier part of this conversation was replaced by this summary:";

/// The keys of interest in the lines next to a summary.
const BESIDE: &[&str] =
    &["sessionId", "uuid", "isSidechain", "userType", "entrypoint", "cwd", "version", "gitBranch", "slug"];

#[derive(Default)]
struct Line {
    /// As written.
    uuid: Option<Vec<u8>>,
    is_sidechain: bool,
    /// What every line of the chain carries, as written.
    common: Vec<(&'static str, Vec<u8>)>,
}

impl Line {
    fn member(&mut self, key: &'static str, value: &[u8]) {
        match key {
            "uuid" => self.uuid = value.starts_with(b"\"").then(|| value.to_owned()),
            "isSidechain" => self.is_sidechain = value == b"true",
            _ => match self.common.iter_mut().find(|(known, _)| *known == key) {
                Some(twice) => twice.1 = value.to_owned(),
                None => self.common.push((key, value.to_owned())),
            },
        }
    }

    /// Replaces `last`, if this line is part of the conversation itself.
    fn end(&mut self, last: &mut Line) {
        let line = std::mem::take(self);
        if line.uuid.is_some() && !line.is_sidechain {
            *last = line;
        }
    }
}

/// Sets `sessionId` and remembers the last line of the chain.
struct Chain<'a> {
    rename: Rename<'a>,
    line: Line,
    last: Line,
}

impl MemberVisitor for Chain<'_> {
    const KEYS: &'static [&'static str] = BESIDE;

    fn member(&mut self, key: &'static str, value: &[u8]) -> Option<Vec<u8>> {
        if key == "sessionId" {
            return self.rename.session(value);
        }
        self.line.member(key, value);
        None
    }

    fn line_ends(&mut self) {
        self.line.end(&mut self.last);
    }
}

/// Ids of lines, as hashes. On a collision, a line would wrongly get the summary as its parent.
#[derive(Default)]
struct Uuids {
    hasher: RandomState,
    hashes: HashSet<u64>,
}

impl Uuids {
    fn add(&mut self, value: &[u8]) {
        let hash = self.hash(value);
        self.hashes.insert(hash);
    }

    fn has(&self, value: &[u8]) -> bool {
        self.hashes.contains(&self.hash(value))
    }

    fn hash(&self, value: &[u8]) -> u64 {
        match unquoted(value) {
            Some(text) => self.hasher.hash_one(text.as_bytes()),
            None => self.hasher.hash_one(value),
        }
    }
}

/// Remembers the removed lines.
struct Removed {
    uuids: Uuids,
    line: Line,
    last: Line,
}

impl MemberVisitor for Removed {
    const KEYS: &'static [&'static str] = BESIDE;

    fn member(&mut self, key: &'static str, value: &[u8]) -> Option<Vec<u8>> {
        if key == "uuid" {
            self.uuids.add(value);
        }
        if key != "sessionId" {
            self.line.member(key, value);
        }
        None
    }

    fn line_ends(&mut self) {
        self.line.end(&mut self.last);
    }
}

/// Sets `sessionId`, and gives lines whose parent was removed another one.
struct Adopt<'a> {
    rename: Rename<'a>,
    removed: Uuids,
    parent: Vec<u8>,
    first: bool,
}

impl MemberVisitor for Adopt<'_> {
    const KEYS: &'static [&'static str] = &["sessionId", "parentUuid", "logicalParentUuid"];

    fn member(&mut self, key: &'static str, value: &[u8]) -> Option<Vec<u8>> {
        if key == "sessionId" {
            return self.rename.session(value);
        }
        let first = key == "parentUuid" && std::mem::take(&mut self.first);
        (first || self.removed.has(value)).then(|| self.parent.clone())
    }
}

fn boundary_line(uuid: &str, like: &Line, id: &str, summary: &Summary<'_>) -> String {
    let at = summary.at;
    let common = common(like, id);
    format!(
        r#"{{"parentUuid":null,"isSidechain":false,"type":"system","subtype":"compact_boundary","content":"Conversation compacted","isMeta":false,"timestamp":"{at}","uuid":{uuid},"level":"info","compactMetadata":{{"trigger":"manual","preTokens":0}},{common}}}"#
    )
}

fn summary_line(text: &str, parent: &str, like: &Line, id: &str, summary: &Summary<'_>) -> String {
    let (text, uuid) = (Value::from(text), Value::from(summary.uuids[1]));
    let at = summary.at;
    let common = common(like, id);
    format!(
        r#"{{"parentUuid":{parent},"isSidechain":false,"type":"user","message":{{"role":"user","content":{text}}},"isVisibleInTranscriptOnly":true,"isCompactSummary":true,"uuid":{uuid},"timestamp":"{at}",{common}}}"#
    )
}

fn common(like: &Line, id: &str) -> String {
    let texts = like.common.iter().filter_map(|(key, value)| Some((*key, unquoted(value)?)));
    let members = texts.chain([("sessionId", id.to_owned())]);
    members.map(|(key, text)| format!("\"{key}\":{}", Value::from(text))).collect::<Vec<_>>().join(",")
}

fn add(to: &mut impl Write, copied: &mut Copied, line: &str) -> io::Result<()> {
    to.write_all(line.as_bytes())?;
    to.write_all(b"\n")?;
    copied.lines += 1;
    copied.bytes += line.len() as u64 + 1;
    Ok(())
}
