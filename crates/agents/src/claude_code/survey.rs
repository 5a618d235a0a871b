//! What a branch needs to know of a transcript, in one pass: where its turns begin, and how far it is intact.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::{self, BufRead, Read};

use piton_model::Timestamp;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::lines::{LINE_IN_MEMORY, Lines};
use super::turns::{Entry, TEXT_IN_MEMORY, read, stream};
use crate::fields::{Raw, is_true, object, text};
use crate::transcript::{Survey, TurnAt};

pub fn survey(reader: impl BufRead) -> io::Result<Survey> {
    let mut survey = Survey::default();
    let mut chain = Chain::default();
    let mut lines = Lines::new(reader, TEXT_IN_MEMORY);
    loop {
        let known = survey.cwd.is_some();
        let in_memory = |bytes: &[u8]| {
            let head: Head<'_> = serde_json::from_slice(bytes)?;
            Ok((head.cwd(known), chain.link(&head), head.entry(bytes)?))
        };
        let streamed = |reader: &mut dyn Read| {
            let mut outline = Outline::new(reader);
            let entry = stream(&mut outline)?;
            // A line of another type may not have been read to its end.
            io::copy(&mut outline, &mut io::sink()).map_err(serde_json::Error::io)?;
            let head: Head<'_> = serde_json::from_slice(&outline.kept).unwrap_or_default();
            Ok((head.cwd(known), chain.link(&head), entry))
        };
        let Some(line) = lines.next(in_memory, streamed)? else { return Ok(survey) };
        if !line.ended {
            survey.cut_off = true;
            return Ok(survey);
        }
        let Ok((cwd, link, entry)) = line.read else {
            survey.unreadable += 1;
            continue;
        };
        survey.cwd = survey.cwd.or(cwd);
        survey.length = line.end;
        let before = survey.turns.len();
        let mut follows = chain.follows(&link).unwrap_or(before);
        match entry {
            Entry::Boundary => survey.compactions.push(line.at),
            Entry::User(user) => {
                if let Some(text) = user.turn_text() {
                    let compacted = survey.compactions.last() > survey.turns.last().map(|turn| &turn.offset);
                    if link.parent == Parent::Nothing && !compacted {
                        follows = 0;
                    }
                    // No transcript has that many turns.
                    let number = u32::try_from(before + 1).unwrap_or(u32::MAX);
                    let turn = user.into_turn(number, text);
                    survey.turns.push(TurnAt { turn, offset: line.at, after: follows });
                    follows = before + 1;
                }
            }
            Entry::Other => {}
        }
        chain.add(&link, follows);
    }
}

/// The fields that tell what a line is, and its position in the chain.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(borrow, rename = "type")]
    kind: Raw<'a>,
    subtype: Raw<'a>,
    cwd: Raw<'a>,
    uuid: Raw<'a>,
    /// Keeps an explicit `null`, which differs from a missing field.
    #[serde(default, deserialize_with = "even_null")]
    parent_uuid: Raw<'a>,
    is_sidechain: Raw<'a>,
}

fn even_null<'de: 'a, 'a, D: Deserializer<'de>>(d: D) -> Result<Raw<'a>, D::Error> {
    <&RawValue>::deserialize(d).map(Some)
}

impl Head<'_> {
    /// The folder that the line names, if none is known yet.
    fn cwd(&self, known: bool) -> Option<String> {
        text(self.cwd.filter(|_| !known)).map(|cwd| cwd.into_owned())
    }

    /// The line with this head, like [`read`], which would parse the head again.
    fn entry(&self, bytes: &[u8]) -> serde_json::Result<Entry> {
        Ok(match text(self.kind).as_deref() {
            Some("user") => Entry::User(serde_json::from_slice(bytes)?),
            Some("system") if text(self.subtype).as_deref() == Some("compact_boundary") => Entry::Boundary,
            _ => Entry::Other,
        })
    }
}

/// How many turns the conversation had at each line, by the line's id.
///
/// Ids are hashes, so that a line takes about 16 bytes. On a collision, a turn could be mistaken for one after a
/// rewind.
#[derive(Default)]
struct Chain {
    hasher: RandomState,
    /// One past the index of the turn that the line belongs to.
    lines: HashMap<u64, u32>,
}

/// A line's position in the chain.
struct Link {
    /// `None` if nothing can follow it in the conversation: it has no id, or is a subagent's.
    uuid: Option<u64>,
    parent: Parent,
}

#[derive(PartialEq, Eq)]
enum Parent {
    Line(u64),
    /// It begins a chain.
    Nothing,
    /// The line does not say.
    Unknown,
}

impl Chain {
    fn link(&self, head: &Head<'_>) -> Link {
        let hash = |raw| text(raw).map(|uuid| self.hasher.hash_one(uuid.as_bytes()));
        let parent = match (hash(head.parent_uuid), head.parent_uuid) {
            (Some(line), _) => Parent::Line(line),
            (None, Some(raw)) if raw.get() == "null" => Parent::Nothing,
            _ => Parent::Unknown,
        };
        Link { uuid: hash(head.uuid).filter(|_| !is_true(head.is_sidechain)), parent }
    }

    /// How many turns the conversation has up to the line's parent, if that is known.
    ///
    /// What is not a turn and comes between a rewind and the next prompt, such as one of Claude Code's own commands,
    /// belongs to its parent's turn and not to the one that it follows in the file. Parents are missing in files of
    /// every version, and a chain that begins in the middle may be a compaction or a start of the agent: those lines
    /// belong where they are.
    fn follows(&self, link: &Link) -> Option<usize> {
        let Parent::Line(parent) = link.parent else { return None };
        self.lines.get(&parent).map(|turns| *turns as usize)
    }

    fn add(&mut self, link: &Link, turns: usize) {
        if let (Some(uuid), Ok(turns)) = (link.uuid, u32::try_from(turns)) {
            self.lines.insert(uuid, turns);
        }
    }
}

/// Most bytes of an outline.
const MAX_OUTLINE: usize = 256 << 10;

/// Passes on a line that does not fit in memory, and keeps its own members without the contents of nested objects and
/// lists.
struct Outline<'a> {
    inner: &'a mut dyn Read,
    /// JSON, once everything was read; unless the outline is too long as well.
    kept: Vec<u8>,
    /// How many objects and lists are open.
    depth: u64,
    in_text: bool,
    escaped: bool,
}

impl<'a> Outline<'a> {
    fn new(inner: &'a mut dyn Read) -> Self {
        Self { inner, kept: Vec::new(), depth: 0, in_text: false, escaped: false }
    }

    fn keep(&mut self, byte: u8) {
        if self.kept.len() < MAX_OUTLINE {
            self.kept.push(byte);
        }
    }

    fn take(&mut self, byte: u8) {
        let inside = self.depth > 1;
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = self.in_text,
            b'"' => self.in_text = !self.in_text,
            _ if self.in_text => {}
            b'{' | b'[' => {
                self.depth += 1;
                if self.depth == 2 {
                    // A placeholder value.
                    self.keep(b'0');
                }
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        if !inside && self.depth <= 1 {
            self.keep(byte);
        }
    }
}

impl Read for Outline<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(out)?;
        for byte in &out[..length] {
            self.take(*byte);
        }
        Ok(length)
    }
}

/// Whether the last turn in a part of a transcript was interrupted. The part may begin within that turn, and in the
/// middle of a line: so the end of a long transcript is enough.
pub fn ends_interrupted(part: impl BufRead) -> io::Result<bool> {
    Ok(interruption(part)?.is_some())
}

/// The same, with when that was, where the line says it.
pub fn interruption(part: impl BufRead) -> io::Result<Option<Option<Timestamp>>> {
    let mut lines = Lines::new(part, TEXT_IN_MEMORY);
    let mut interrupted: Option<Option<Timestamp>> = None;
    let in_memory = |bytes: &[u8]| Ok((read(bytes)?.1, is_a_models(bytes), written_at(bytes)));
    while let Some(line) = lines.next(in_memory, |reader| Ok((stream(reader)?, false, None)))? {
        let goes_on = match &line.read {
            Ok((Entry::User(user), _, at)) if user.is_interruption() => {
                interrupted = Some(*at);
                continue;
            }
            // What wakes the model after an interruption, and what the model says then: it is working again.
            Ok((Entry::User(user), ..)) => user.turn_text().is_some() || user.is_notification(),
            Ok((_, is_a_models, _)) => *is_a_models,
            Err(_) => false,
        };
        if goes_on {
            interrupted = None;
        }
    }
    Ok(interrupted)
}

/// When a line was written, as it says itself.
fn written_at(bytes: &[u8]) -> Option<Timestamp> {
    #[derive(Deserialize)]
    struct Line {
        timestamp: Timestamp,
    }
    serde_json::from_slice::<Line>(bytes).ok().map(|line| line.timestamp)
}

/// Whether a line was written by a model, and not by Claude Code in its name.
fn is_a_models(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Line<'a> {
        #[serde(borrow, rename = "type")]
        kind: Raw<'a>,
        message: Raw<'a>,
    }
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        model: Raw<'a>,
    }
    // Borrowed fields require valid text.
    let valid = String::from_utf8_lossy(bytes);
    let Ok(line) = serde_json::from_str::<Line<'_>>(&valid) else { return false };
    let model = object::<Message<'_>>(line.message).and_then(|message| text(message.model));
    text(line.kind).is_some_and(|kind| kind == "assistant") && model.is_some_and(|model| model != "<synthetic>")
}

/// The complete prompt of the turn whose line begins at the reader's position, as it was typed: up to about 1 MiB of
/// it.
///
/// Empty if the user gave only an image; `None` if no turn begins there.
pub fn prompt_at(line: impl BufRead) -> io::Result<Option<String>> {
    let mut lines = Lines::new(line, LINE_IN_MEMORY);
    let line = lines.next(|bytes| Ok(read(bytes)?.1), stream)?;
    Ok(match line.map(|line| line.read) {
        Some(Ok(Entry::User(user))) => user.prompt(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};

    use super::*;

    const TURN: &str = r#"{"type":"user","message":{"content":"x"}}"#;
    const STOPPED: &str =
        r#"{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#;

    fn of(transcript: &str) -> Survey {
        survey(BufReader::with_capacity(7, transcript.as_bytes())).unwrap()
    }

    #[test]
    fn the_length_is_that_of_whole_lines_that_can_be_read() {
        let whole = TURN.len() as u64 + 1;
        for (transcript, turns, length, cut_off, unreadable) in [
            (String::new(), 0, 0, false, 0),
            (format!("{TURN}\n"), 1, whole, false, 0),
            (format!("{TURN}\n\n"), 1, whole, false, 0),
            (format!("{TURN}\r\n"), 1, whole + 1, false, 0),
            (format!("\n{TURN}\n"), 1, whole + 1, false, 0),
            (format!("{TURN}\n{}", &TURN[..9]), 1, whole, true, 0),
            // It may be complete, or the beginning of another writer's longer line.
            (format!("{TURN}\n{TURN}"), 1, whole, true, 0),
            (format!("{TURN}\nnot json\n"), 1, whole, false, 1),
            (format!("{TURN}\nnot json\n{TURN}\n"), 2, 2 * whole + 9, false, 1),
            (format!("{TURN}\n[1]\n"), 1, whole, false, 1),
            ("not json".to_owned(), 0, 0, true, 0),
        ] {
            let found = of(&transcript);
            assert_eq!(
                (found.turns.len(), found.length, found.cut_off, found.unreadable),
                (turns, length, cut_off, unreadable),
                "{transcript:?}"
            );
        }
    }

    #[test]
    fn the_end_of_a_transcript_says_whether_its_last_turn_was_interrupted() {
        const WOKEN: &str = r#"{"type":"user","message":{"content":"<task-notification>done</task-notification>"}}"#;
        let side = STOPPED.replace("\"message\"", "\"isSidechain\":true,\"message\"");
        for (lines, expected) in [
            (vec!["half of a line\"}", STOPPED], true),
            (vec!["half of a line\"}", STOPPED, TURN], false),
            (vec![TURN, STOPPED, r#"{"type":"assistant"}"#, r#"{"type":"mode"}"#], true),
            (vec![TURN, STOPPED, r#"{"type":"assistant","message":{"model":"<synthetic>"}}"#], true),
            // A background task that ends wakes the model again.
            (vec![TURN, STOPPED, WOKEN], false),
            (vec![TURN, STOPPED, WOKEN, STOPPED], true),
            (vec![TURN, STOPPED, r#"{"type":"assistant","message":{"model":"m"}}"#], false),
            (vec![TURN, STOPPED, TURN, STOPPED], true),
            (vec![TURN, &side], false),
            (vec![TURN], false),
            (vec![], false),
        ] {
            assert_eq!(ends_interrupted(lines.join("\n").as_bytes()).unwrap(), expected, "{lines:?}");
        }
    }

    #[test]
    fn places_are_right_behind_lines_that_do_not_fit_in_memory() {
        let image = format!(r#"{{"type":"user","toolUseResult":"{}"}}"#, "A".repeat(LINE_IN_MEMORY));
        let many = format!(r#"{{"type":"x","all":["{}"]}}"#, "é\",\"".repeat(LINE_IN_MEMORY / 4));
        let boundary = r#"{"type":"system","subtype":"compact_boundary","cwd":"/v"}"#;
        let later = TURN.replace("\"message\"", "\"cwd\":\"/later\",\"message\"");
        let lines = [TURN, &image, TURN, &many, boundary, &later, ""];
        let starts: Vec<u64> =
            lines.iter().scan(0, |at, line| Some(std::mem::replace(at, *at + line.len() as u64 + 1))).collect();
        let found = of(&lines.join("\n"));
        assert_eq!(found.turns.iter().map(|turn| turn.offset).collect::<Vec<_>>(), [starts[0], starts[2], starts[5]]);
        assert_eq!((found.compactions, found.length, found.unreadable), (vec![starts[4]], starts[6], 0));
        assert_eq!(found.cwd.as_deref(), Some("/v"));
    }

    /// A line of the chain; a prompt if it is a user's.
    fn line(kind: &str, uuid: &str, parent: &str) -> String {
        let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
        format!(r#"{{"parentUuid":{parent},"type":"{kind}","message":{{"content":"x"}},"uuid":"{uuid}"}}"#)
    }

    /// What each of the turns follows. A prompt is `uuid<parent`, and any other line is prefixed with its type and a
    /// colon.
    fn afters(lines: &[&str]) -> Vec<usize> {
        let made = lines.iter().map(|told| {
            let (kind, ids) = told.split_once(':').unwrap_or(("user", told));
            let (uuid, parent) = ids.split_once('<').unwrap();
            match kind {
                "boundary" => {
                    line("system", uuid, parent).replace("\"type\"", r#""subtype":"compact_boundary","type""#)
                }
                "summary" => line("user", uuid, parent).replace("\"type\"", r#""isCompactSummary":true,"type""#),
                "command" => line("user", uuid, parent).replace("\"x\"", "\"<command-name>/model</command-name>\""),
                "side" => line("assistant", uuid, parent).replace("\"type\"", r#""isSidechain":true,"type""#),
                kind => line(kind, uuid, parent),
            }
        });
        let found = of(&(made.collect::<Vec<_>>().join("\n") + "\n"));
        assert_eq!(found.unreadable, 0);
        after(&found)
    }

    fn after(survey: &Survey) -> Vec<usize> {
        survey.turns.iter().map(|turn| turn.after).collect()
    }

    const THREE: [&str; 7] =
        ["attachment:s<", "1<s", "assistant:1a<1", "2<1a", "assistant:2a<2", "3<2a", "assistant:3a<3"];

    #[test]
    fn a_turn_after_a_rewind_of_the_agents_own_follows_what_was_rewound_to() {
        for (then, expected) in [
            // To before the second turn, and then on.
            (vec!["4<1a", "assistant:4a<4", "5<4a"], vec![1, 4]),
            // To a prompt that has no answer.
            (vec!["4<1", "5<4"], vec![1, 4]),
            // To the beginning: to before the first prompt, or to what the agent wrote before it.
            (vec!["4<", "assistant:4a<4", "5<4a"], vec![0, 4]),
            (vec!["4<s", "assistant:4a<4", "5<4a"], vec![0, 4]),
            // Twice, to the same place and to the turn after the first rewind.
            (vec!["4<1a", "assistant:4a<4", "5<1a", "assistant:5a<5", "6<4a"], vec![1, 1, 4]),
            (vec!["4<2a", "assistant:4a<4", "5<1a", "6<"], vec![2, 1, 0]),
            // With something that is not a turn before the prompt.
            (vec!["command:c<1a", "attachment:d<c", "4<d", "5<4"], vec![1, 4]),
            // Back over a compaction.
            (vec!["boundary:b<", "summary:z<b", "4<z", "5<2a"], vec![3, 2]),
        ] {
            let found = afters(&[&THREE[..], &then].concat());
            assert_eq!(found, [&[0, 1, 2], &expected[..]].concat(), "{then:?}");
        }
    }

    #[test]
    fn a_turn_follows_the_one_before_it_where_nothing_says_otherwise() {
        for then in [
            vec!["4<3a", "5<4"],
            // Parallel calls, with the first one's result last.
            vec!["assistant:3b<3a", "attachment:3c<3b", "attachment:3d<3a", "4<3d", "5<4"],
            vec!["4<3", "5<4"],
            // Compactions, and a prompt that is the first of a chain after one.
            vec!["boundary:b<", "summary:z<b", "command:c<z", "4<c", "5<4"],
            vec!["boundary:b<", "4<", "boundary:c<", "5<"],
            // A parent that was never written, or is a subagent's.
            vec!["4<lost", "assistant:4a<lost too", "5<4a"],
            vec!["side:t<1a", "4<t", "side:u<1", "5<4"],
            // A chain that begins in the middle, as at another start of the agent.
            vec!["system:r<", "4<r", "5<4"],
            // Written twice: the later one counts.
            vec!["assistant:1a<3a", "4<1a", "5<4"],
        ] {
            assert_eq!(afters(&[&THREE[..], &then].concat()), [0, 1, 2, 3, 4], "{then:?}");
        }
        // Lines that do not name a parent.
        let number = TURN.replacen('{', r#"{"parentUuid":7,"#, 1);
        let found = of(&[TURN, TURN, &number, TURN, ""].join("\n"));
        assert_eq!(after(&found), [0, 1, 2, 3]);
    }

    #[test]
    fn a_line_that_does_not_fit_in_memory_has_its_place_in_the_chain() {
        let cut = "A".repeat(2 * LINE_IN_MEMORY);
        let many = r#"{\"uuid\":\"1a\"}","[{","\\",""#.repeat(LINE_IN_MEMORY / 16);
        for inside in [
            format!(r#""{cut}""#),
            format!(r#"["{many}"]"#),
            format!(r#"{{"uuid":"1a","all":[{{"parentUuid":null}},"{many}"],"isSidechain":true}}"#),
        ] {
            let long = |kind, uuid, parent, field: &str| {
                line(kind, uuid, parent).replace("\"message\"", &format!("\"{field}\":{inside},\"message\""))
            };
            let lines = [
                line("user", "1", ""),
                long("assistant", "1a", "1", "more"),
                long("user", "2", "1a", "more"),
                // Not what a user's line has there, so it is not read to its end.
                long("assistant", "2a", "2", "isMeta"),
                line("user", "3", "2a"),
                long("user", "4", "1a", "more"),
                line("user", "5", "2a"),
                line("user", "6", "4"),
            ];
            let found = of(&(lines.join("\n") + "\n"));
            assert_eq!(found.unreadable, 0);
            assert_eq!(after(&found), [0, 1, 2, 1, 2, 4], "{inside:.80}");
        }
    }

    #[test]
    fn a_prompt_comes_back_whole_and_as_it_was_typed() {
        let long = "é".repeat(100_000);
        let user = |content: &str| format!(r#"{{"type":"user","message":{{"content":{content}}}}}"#);
        let image = format!(r#"{{"type":"image","source":{{"data":"{}"}}}}"#, "A".repeat(2 * LINE_IN_MEMORY));
        for (line, expected) in [
            (user(r#"" do this\n""#), Some(" do this\n")),
            (user(&format!("\"{long}\"")), Some(&*long)),
            (user(&format!(r#"[{image},{{"type":"text","text":"{long}"}}]"#)), Some(&*long)),
            (
                user(
                    r#""<command-message>go</command-message>\n<command-name>/go</command-name>\n<command-args>fast</command-args>""#,
                ),
                Some("/go fast"),
            ),
            (user(&format!("[{image}]")), Some("")),
            (user(r#"[{"type":"tool_result"}]"#), None),
            (r#"{"type":"assistant"}"#.into(), None),
            ("not json".into(), None),
        ] {
            // What follows on other lines is not read.
            let found = prompt_at(format!("{line}\n{TURN}\n").as_bytes()).unwrap();
            assert!(found.as_deref() == expected, "{:.200}", line);
        }
        assert_eq!(prompt_at(io::empty()).unwrap(), None);
    }

    #[test]
    fn a_prompt_is_bounded() {
        let huge = format!(r#"{{"type":"user","message":{{"content":"{}"}}}}"#, "é".repeat(2 * LINE_IN_MEMORY));
        let length = prompt_at(huge.as_bytes()).unwrap().unwrap().len();
        assert!((LINE_IN_MEMORY..LINE_IN_MEMORY + 4).contains(&length), "{length}");
        let blocks = vec![format!(r#"{{"type":"text","text":"{}"}}"#, "x".repeat(100_000)); 30].join(",");
        let many = format!(r#"{{"type":"user","message":{{"content":[{blocks}]}}}}"#);
        let length = prompt_at(many.as_bytes()).unwrap().unwrap().len();
        assert!((LINE_IN_MEMORY..LINE_IN_MEMORY + 100_100).contains(&length), "{length}");
    }

    #[test]
    fn a_failing_reader_is_an_error() {
        struct Fails;
        impl Read for Fails {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("disk"))
            }
        }
        for length in [0, 10, LINE_IN_MEMORY + 10] {
            let text = format!("{TURN}\n\"{}", "a".repeat(length));
            assert!(survey(BufReader::new(text.as_bytes().chain(Fails))).is_err(), "{length}");
        }
    }
}
