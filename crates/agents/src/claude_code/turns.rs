//! A session's transcript, read as the turns that its user saw.
//!
//! A transcript only grows: a compaction adds a boundary and a summary and leaves the older lines where they are, so
//! turns are counted through the whole file. One [`TranscriptTurn`] is one user line, not one `promptId`: a session
//! that Claude Code itself forked has the same new `promptId` on all the lines it inherited.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead, Read};

use piton_model::Timestamp;
use piton_model::short::{cut, one_line};
use serde::Deserialize;
use serde::de::value::{Error as ValueError, StrDeserializer};
use serde::de::{Deserializer, IgnoredAny, IntoDeserializer, SeqAccess, Visitor};

use super::TASK_NOTIFICATION;
use super::lines::{Lines, streamed};
use crate::event::MAX_ID;
use crate::fields::{Raw, Text, text};
use crate::transcript::TranscriptTurn;

/// What was found in a transcript.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnCounts {
    pub turns: u32,
    /// Not counting empty ones.
    pub lines: u64,
    /// Lines that could not be read and were left out; not counting a last line that is cut off.
    pub unreadable: u64,
    /// Whether the file ends in the middle of a line: its writer is writing it, or was stopped. That line is left out.
    pub cut_off: bool,
}

/// Most characters of a turn's text.
const MAX_TEXT: usize = 4000;
/// How much is kept of a string in a line that does not fit in memory, in bytes: [`MAX_TEXT`] characters, and most of
/// them if they are escapes.
pub(super) const TEXT_IN_MEMORY: usize = 32 << 10;
/// Most bytes of a message's texts together.
const MAX_TEXTS: usize = 1 << 20;

/// Reads a transcript from its beginning and passes on each turn in order.
pub fn turns(reader: impl BufRead, mut each: impl FnMut(TranscriptTurn)) -> io::Result<TurnCounts> {
    let mut summary = TurnCounts::default();
    let mut lines = Lines::new(reader, TEXT_IN_MEMORY);
    while let Some(line) = lines.next(|bytes| Ok(read(bytes)?.1), stream)? {
        summary.lines += 1;
        match line.read {
            Ok(Entry::User(user)) => {
                if let Some(text) = user.turn_text() {
                    summary.turns += 1;
                    each(user.into_turn(summary.turns, text));
                }
            }
            Ok(_) => {}
            Err(_) if !line.ended => summary.cut_off = true,
            Err(_) => summary.unreadable += 1,
        }
    }
    Ok(summary)
}

/// A line, as far as piton distinguishes them.
pub(super) enum Entry {
    /// Of type `user`: a turn, a tool's result, or something that the agent put there.
    User(Box<UserLine>),
    /// The beginning of what the model sees after a compaction.
    Boundary,
    /// Of another type, with any content.
    Other,
}

/// The fields that tell what a line is.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, rename = "type")]
    kind: Raw<'a>,
    subtype: Raw<'a>,
    cwd: Raw<'a>,
}

/// Reads a line that is in memory, and the folder that it names.
pub(super) fn read(bytes: &[u8]) -> serde_json::Result<(Option<Cow<'_, str>>, Entry)> {
    let head: Head<'_> = serde_json::from_slice(bytes)?;
    let entry = match text(head.kind).as_deref() {
        Some("user") => Entry::User(serde_json::from_slice(bytes)?),
        Some("system") if text(head.subtype).as_deref() == Some("compact_boundary") => Entry::Boundary,
        _ => Entry::Other,
    };
    Ok((text(head.cwd), entry))
}

/// Reads a line that does not fit in memory. The agent's own marks are short, so it is a user's or it does not matter.
pub(super) fn stream(reader: &mut dyn Read) -> serde_json::Result<Entry> {
    match streamed::<UserLine>(reader) {
        Ok(line) if line.kind.as_ref().is_some_and(|kind| kind.0 == "user") => Ok(Entry::User(Box::new(line))),
        Ok(_) => Ok(Entry::Other),
        // A line of another type, whose fields contain something else.
        Err(e) if e.is_data() => Ok(Entry::Other),
        Err(e) => Err(e),
    }
}

/// The fields of a user line that piton reads.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UserLine {
    #[serde(rename = "type")]
    kind: Option<Owned>,
    uuid: Option<Owned>,
    prompt_id: Option<Owned>,
    timestamp: Option<Owned>,
    is_meta: Option<bool>,
    is_sidechain: Option<bool>,
    is_compact_summary: Option<bool>,
    is_visible_in_transcript_only: Option<bool>,
    tool_use_result: Option<IgnoredAny>,
    origin: Option<Origin>,
    message: Option<Message>,
}

#[derive(Deserialize)]
struct Origin {
    kind: Option<Owned>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<Content>,
}

/// A message's texts, and whether it is a tool's result rather than the user's.
struct Content {
    texts: Vec<String>,
    other: Option<String>,
    is_result: bool,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: Option<Owned>,
    text: Option<Owned>,
}

/// Prefixes of user lines that no user typed: Claude Code's own commands and their output, shell commands after `!`,
/// ends of background tasks, and the mark that an interruption leaves.
const NOT_TYPED: [&str; 9] = [
    "<command-name>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    TASK_NOTIFICATION,
    INTERRUPTED,
];

/// Prefixes of texts that are added to what the user typed.
const BESIDE: [&str; 2] = ["<ide_", "<system-reminder>"];

/// Prefix of the mark that an interruption leaves.
const INTERRUPTED: &str = "[Request interrupted by user";

impl UserLine {
    /// What the user said, cut for display, if this line begins a turn.
    pub fn turn_text(&self) -> Option<String> {
        match self.typed()? {
            Typed::Text(text) => Some(cut(&slash_command(&text), MAX_TEXT)),
            // An image alone is also a prompt.
            Typed::Other(kind) => Some(format!("[{}]", one_line(kind, 40))),
        }
    }

    /// Like `turn_text`, as typed; empty if nothing was typed.
    pub fn prompt(&self) -> Option<String> {
        match self.typed()? {
            Typed::Text(text) => Some(slash_command(&text).into_owned()),
            Typed::Other(_) => Some(String::new()),
        }
    }

    /// Whether this is the mark that an interruption leaves.
    pub fn is_interruption(&self) -> bool {
        let texts = self.message.as_ref().and_then(|message| message.content.as_ref()).map(|content| &content.texts);
        self.is_sidechain != Some(true)
            && texts.is_some_and(|texts| texts.iter().any(|text| text.trim_start().starts_with(INTERRUPTED)))
    }

    /// Whether this tells the model that a background task ended, which makes it continue.
    pub fn is_notification(&self) -> bool {
        let origin = self.origin.as_ref().and_then(|origin| origin.kind.as_ref());
        let texts = self.message.as_ref().and_then(|message| message.content.as_ref()).map(|content| &content.texts);
        origin.is_some_and(|kind| kind.0 == "task-notification")
            || texts.is_some_and(|texts| texts.iter().any(|text| text.trim_start().starts_with(TASK_NOTIFICATION)))
    }

    /// The summary that replaces the turns before a compaction, if this line contains it.
    pub fn summary(&self) -> Option<String> {
        let content = self.message.as_ref()?.content.as_ref()?;
        (self.is_compact_summary == Some(true) && self.is_sidechain != Some(true)).then(|| content.texts.join("\n"))
    }

    /// By the agent's clock.
    pub fn at(&self) -> Option<Timestamp> {
        time(&self.timestamp.as_ref()?.0)
    }

    fn typed(&self) -> Option<Typed<'_>> {
        let flags = [self.is_meta, self.is_sidechain, self.is_compact_summary, self.is_visible_in_transcript_only];
        let by_the_agent = flags.contains(&Some(true))
            || self.tool_use_result.is_some()
            || self.origin.as_ref().and_then(|origin| origin.kind.as_ref()).is_some_and(|k| k.0 == "task-notification");
        if by_the_agent {
            return None;
        }
        let content = self.message.as_ref()?.content.as_ref()?;
        let typed = |text: &&String| !BESIDE.iter().any(|mark| text.trim_start().starts_with(mark));
        let mut texts: Vec<&str> = content.texts.iter().filter(typed).map(String::as_str).collect();
        if texts.is_empty() {
            texts.extend(content.texts.iter().map(String::as_str));
        }
        let first = texts.first().map_or("", |text| text.trim_start());
        if content.is_result || NOT_TYPED.iter().any(|mark| first.starts_with(mark)) {
            return None;
        }
        match (&texts[..], &content.other) {
            ([], kind) => kind.as_deref().map(Typed::Other),
            ([one], _) => Some(Typed::Text((*one).into())),
            (several, _) => Some(Typed::Text(several.join("\n").into())),
        }
    }

    /// The turn that begins with this line.
    pub fn into_turn(self, number: u32, text: String) -> TranscriptTurn {
        let at = self.at();
        let id = |given: Option<Owned>| given.map(|id| one_line(&id.0, MAX_ID)).filter(|id| !id.is_empty());
        TranscriptTurn { number, prompt_id: id(self.prompt_id), uuid: id(self.uuid), text, at }
    }
}

/// What a user entered: words, or something else and its kind.
enum Typed<'a> {
    Text(Cow<'a, str>),
    Other(&'a str),
}

/// A time as Claude Code writes it.
pub(super) fn time(text: &str) -> Option<Timestamp> {
    let text: StrDeserializer<'_, ValueError> = text.into_deserializer();
    Timestamp::deserialize(text).ok()
}

/// A user's own command as it was typed: the transcript has it in tags.
fn slash_command(text: &str) -> Cow<'_, str> {
    let inside = |tag: &str| {
        let (_, rest) = text.split_once(&format!("<{tag}>"))?;
        Some(rest.split_once(&format!("</{tag}>"))?.0.trim())
    };
    match (text.trim_start().starts_with("<command-message>"), inside("command-name")) {
        (true, Some(name)) => {
            format!("{name} {}", inside("command-args").unwrap_or_default()).trim_end().to_owned().into()
        }
        _ => text.into(),
    }
}

/// [`Text`] that does not borrow, for lines that are not in memory.
struct Owned(String);

impl<'de> Deserialize<'de> for Owned {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Text::deserialize(d).map(|text| Self(text.0.into_owned()))
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Content;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text or a list of blocks")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Content, E> {
                let text = String::from_utf8_lossy(bytes).into_owned();
                Ok(Content { texts: vec![text], other: None, is_result: false })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content, A::Error> {
                let mut content = Content { texts: Vec::new(), other: None, is_result: false };
                let mut room = MAX_TEXTS;
                while let Some(block) = seq.next_element::<Block>()? {
                    match (block.kind.map(|kind| kind.0).as_deref(), block.text) {
                        (Some("tool_result"), _) => content.is_result = true,
                        (Some("text"), Some(text)) => {
                            if room > 0 {
                                room = room.saturating_sub(text.0.len());
                                content.texts.push(text.0);
                            }
                        }
                        (Some(kind), _) => content.other = Some(kind.to_owned()),
                        (None, _) => {}
                    }
                }
                Ok(content)
            }
        }

        // Bytes, as in `Text`; serde_json also accepts a list here.
        d.deserialize_bytes(Either)
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;
    use crate::claude_code::lines::LINE_IN_MEMORY;

    fn read(transcript: &[u8]) -> (Vec<TranscriptTurn>, TurnCounts) {
        let mut found = Vec::new();
        // A small buffer, so that lines straddle its ends.
        let summary = turns(BufReader::with_capacity(7, transcript), |turn| found.push(turn)).unwrap();
        (found, summary)
    }

    /// The texts of the turns in these lines.
    fn texts(lines: &[&str]) -> Vec<String> {
        read(lines.join("\n").as_bytes()).0.into_iter().map(|turn| turn.text).collect()
    }

    #[test]
    fn a_line_of_the_users_is_a_turn_and_nothing_else_is() {
        let user = |rest: &str| format!(r#"{{"type":"user",{rest}}}"#);
        for (rest, expected) in [
            (r#""message":{"content":"hello"}"#, Some("hello")),
            (r#""message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#, Some("a\nb")),
            (r#""message":{"content":[{"type":"image","source":{"data":"AAAA"}}]}"#, Some("[image]")),
            (
                r#""message":{"content":[{"type":"text","text":"<ide_opened_file>x"},{"type":"text","text":"do"}]}"#,
                Some("do"),
            ),
            (r#""message":{"content":"half \ud83d"},"isMeta":false"#, Some("half \u{fffd}\u{fffd}\u{fffd}")),
            (r#""message":{"content":"x"},"isMeta":true"#, None),
            (r#""message":{"content":"x"},"isSidechain":true"#, None),
            (r#""message":{"content":"x"},"isCompactSummary":true"#, None),
            (r#""message":{"content":"x"},"toolUseResult":"Error: x""#, None),
            (r#""message":{"content":"x"},"origin":{"kind":"task-notification"}"#, None),
            (r#""message":{"content":[{"type":"tool_result","content":"x"}]}"#, None),
            (r#""message":{"content":[{"type":"tool_result"},{"type":"text","text":"x"}]}"#, None),
            (r#""message":{"content":"<command-name>/compact</command-name>"}"#, None),
            (r#""message":{"content":"<local-command-stdout>ok</local-command-stdout>"}"#, None),
            (r#""message":{"content":"<bash-input>ls</bash-input>"}"#, None),
            (r#""message":{"content":[{"type":"text","text":"[Request interrupted by user for tool use]"}]}"#, None),
            (
                r#""message":{"content":"<command-message>go</command-message>\n<command-name>/go</command-name>\n<command-args>fast</command-args>"}"#,
                Some("/go fast"),
            ),
            (r#""message":{}"#, None),
            (r#""other":1"#, None),
        ] {
            let found = texts(&[&user(rest)]);
            assert_eq!(found.first().map(String::as_str), expected, "{rest}");
        }
    }

    #[test]
    fn lines_of_other_types_may_hold_anything() {
        let (found, summary) = read(
            br#"{"type":"assistant","message":"text"}
{"type":"of-tomorrow","message":{"content":{"deep":[]}},"isMeta":"yes"}
{"no":"type"}

{"type":"user","message":{"content":"hi"},"new":{"a":1}}
"#,
        );
        assert_eq!((found.len(), summary.lines, summary.unreadable), (1, 4, 0));
    }

    #[test]
    fn a_line_that_cannot_be_read_is_counted_and_one_that_is_cut_off_is_said() {
        let good = r#"{"type":"user","message":{"content":"x"}}"#;
        for (transcript, turns, unreadable, cut_off) in [
            (String::new(), 0, 0, false),
            (good.to_owned(), 1, 0, false),
            (format!("{good}\n"), 1, 0, false),
            (format!("{good}\r\n{good}\r\n"), 2, 0, false),
            (format!("{good}\n{}", &good[..20]), 1, 0, true),
            (format!("{good}\nnot json\n{good}\n"), 2, 1, false),
            (format!("{good}\n[1]\n{good}"), 2, 1, false),
            (format!("{good}\n\"x\"\n"), 1, 1, false),
            ("{\"type\":\"user\",\"message\":7}\n".to_owned(), 0, 1, false),
            (format!("\n\n{good}\n\n"), 1, 0, false),
        ] {
            let (_, summary) = read(transcript.as_bytes());
            assert_eq!(
                (summary.turns, summary.unreadable, summary.cut_off),
                (turns, unreadable, cut_off),
                "{transcript}"
            );
        }
    }

    #[test]
    fn a_turn_in_a_line_that_is_too_long_to_hold_is_counted_like_any_other() {
        let image = "A".repeat(LINE_IN_MEMORY + 5);
        let long = format!(
            r#"{{"type":"user","uuid":"u2","message":{{"content":[{{"type":"image","source":{{"data":"{image}"}}}},{{"type":"text","text":"look"}}]}}}}"#
        );
        let result = format!(
            r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","content":"{image}"}}]}},"toolUseResult":"{image}"}}"#
        );
        let short = r#"{"type":"user","uuid":"u1","message":{"content":"hi"}}"#;
        let (found, summary) = read(format!("{short}\n{result}\n{long}\n{short}\n").as_bytes());
        let told: Vec<_> = found.iter().map(|turn| (turn.number, turn.text.as_str())).collect();
        assert_eq!(told, [(1, "hi"), (2, "look"), (3, "hi")]);
        assert_eq!(summary, TurnCounts { turns: 3, lines: 4, unreadable: 0, cut_off: false });
        // Malformed in the middle, and cut off at the end.
        let broken = format!("{}x\n{short}\n{}", &long[..long.len() - 1], &long[..long.len() - 1]);
        let (found, summary) = read(broken.as_bytes());
        assert_eq!(found.len(), 1);
        assert_eq!(summary, TurnCounts { turns: 1, lines: 3, unreadable: 1, cut_off: true });
    }

    #[test]
    fn a_failing_reader_is_an_error_and_not_an_end() {
        struct Fails;
        impl Read for Fails {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("disk"))
            }
        }
        for length in [10, LINE_IN_MEMORY + 10] {
            let beginning = vec![b' '; length];
            assert!(turns(BufReader::new(beginning.as_slice().chain(Fails)), |_| ()).is_err(), "{length}");
        }
    }

    #[test]
    fn a_text_is_cut_and_a_time_that_is_none_is_left_out() {
        let line = |at: &str| {
            format!(r#"{{"type":"user","timestamp":{at:?},"message":{{"content":"{}"}}}}"#, "é".repeat(5000))
        };
        let (found, _) = read(line("2026-11-15T18:19:36.392Z").as_bytes());
        assert_eq!(found[0].text.chars().count(), 4000);
        assert_eq!(found[0].at.unwrap().to_string(), "2026-11-15T18:19:36.392Z");
        assert_eq!(read(line("yesterday").as_bytes()).0[0].at, None);
    }
}
