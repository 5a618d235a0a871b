//! What was said in a conversation, for display and for summaries.

use std::io::{self, BufRead};
use std::path::Path;

use piton_model::short::{cut, one_line};
use serde::Deserialize;

use super::lines::Lines;
use super::tools::describe;
use super::turns::{Entry, TEXT_IN_MEMORY, read, stream, time};
use crate::event::MAX_ID;
use crate::fields::{Raw, is_true, object, text};
use crate::transcript::{MAX_SAID, Said, Speaker};

/// Reads a transcript from its beginning and passes on what was said, in order.
///
/// Leaves out what subagents said, what Claude Code says in the agent's name (such as a network error), and what cannot
/// be read.
pub fn said(reader: impl BufRead, mut each: impl FnMut(Said)) -> io::Result<()> {
    let mut turn = 0;
    let mut lines = Lines::new(reader, TEXT_IN_MEMORY);
    // Of the agent's lines only a call with very many arguments does not fit in memory; it is left out.
    while let Some(line) = lines.next(spoken, |reader| Ok(Spoken::Entry(stream(reader)?)))? {
        match line.read {
            Ok(Spoken::Entry(Entry::User(user))) => {
                let (speaker, text) = match (user.summary(), user.turn_text()) {
                    (Some(summary), _) => (Speaker::Summary, summary),
                    (None, Some(shown)) => {
                        turn += 1;
                        (Speaker::User, user.prompt().filter(|prompt| !prompt.is_empty()).unwrap_or(shown))
                    }
                    (None, None) => continue,
                };
                each(Said { turn, speaker, text: cut(&text, MAX_SAID), tool: None, at: user.at() });
            }
            Ok(Spoken::Assistant(words)) => words.into_iter().for_each(|said| each(Said { turn, ..said })),
            Ok(Spoken::Entry(_)) | Err(_) => {}
        }
    }
    Ok(())
}

enum Spoken {
    Entry(Entry),
    /// Without the turn's number.
    Assistant(Vec<Said>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AssistantLine<'a> {
    #[serde(borrow, rename = "type")]
    kind: Raw<'a>,
    is_sidechain: Raw<'a>,
    timestamp: Raw<'a>,
    cwd: Raw<'a>,
    message: Raw<'a>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    model: Raw<'a>,
    content: Raw<'a>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type")]
    kind: Raw<'a>,
    text: Raw<'a>,
    name: Raw<'a>,
    input: Raw<'a>,
}

fn spoken(bytes: &[u8]) -> serde_json::Result<Spoken> {
    // Borrowed fields require valid text.
    let valid = String::from_utf8_lossy(bytes);
    let line: AssistantLine<'_> = serde_json::from_str(&valid)?;
    if text(line.kind).is_none_or(|kind| kind != "assistant") {
        return Ok(Spoken::Entry(read(bytes)?.1));
    }
    let message = object::<Message<'_>>(line.message).filter(|message| {
        !is_true(line.is_sidechain) && text(message.model).is_none_or(|model| model != "<synthetic>")
    });
    let Some(message) = message else { return Ok(Spoken::Entry(Entry::Other)) };
    let at = text(line.timestamp).and_then(|at| time(&at));
    let cwd = text(line.cwd);
    let cwd = cwd.as_deref().map(Path::new);
    let said = |speaker, text: String, tool| Said { turn: 0, speaker, text, tool, at };
    let words = |text: &str| (!text.trim().is_empty()).then(|| said(Speaker::Assistant, cut(text, MAX_SAID), None));
    let blocks: Vec<Block<'_>> = object(message.content).unwrap_or_default();
    let in_blocks = blocks.iter().filter_map(|block| match text(block.kind).as_deref() {
        Some("text") => words(&text(block.text)?),
        Some("tool_use") => {
            let tool = one_line(&text(block.name)?, MAX_ID);
            Some(said(Speaker::Tool, describe(&tool, block.input, cwd).summary, Some(tool)))
        }
        _ => None,
    });
    Ok(Spoken::Assistant(text(message.content).and_then(|text| words(&text)).into_iter().chain(in_blocks).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was said in these lines: turn, speaker, text.
    fn told(lines: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        said((lines.join("\n") + "\n").as_bytes(), |said| {
            found.push(format!("{} {:?} {}", said.turn, said.speaker, said.text));
            assert_eq!(said.tool.is_some(), said.speaker == Speaker::Tool);
        })
        .unwrap();
        found
    }

    #[test]
    fn prompts_words_and_calls_are_told_and_thoughts_and_results_are_not() {
        let found = told(&[
            r#"{"type":"mode"}"#,
            r#"{"type":"user","message":{"content":"do it"}}"#,
            r#"{"type":"assistant","cwd":"/w","message":{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"I will."},{"type":"tool_use","name":"Edit","input":{"file_path":"/w/src/a.ts","old_string":"x"}}]}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"ok"}]},"toolUseResult":"ok"}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"npm test\n"}},{"type":"tool_use","name":"Odd"}]}}"#,
            r#"{"type":"assistant","isSidechain":true,"message":{"content":[{"type":"text","text":"a subagent"}]}}"#,
            r#"{"type":"user","isSidechain":true,"message":{"content":"for a subagent"}}"#,
            r#"{"type":"assistant","message":{"model":"<synthetic>","content":[{"type":"text","text":"No response requested."}]}}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"text","text":" \n"}]}}"#,
            r#"{"type":"assistant","message":"odd"}"#,
            "not json",
            r#"{"type":"user","message":{"content":[{"type":"image"}]}}"#,
            r#"{"type":"assistant","message":{"content":"half \ud83d"}}"#,
            r#"{"type":"user","isCompactSummary":true,"isVisibleInTranscriptOnly":true,"message":{"content":"so far"}}"#,
        ]);
        assert_eq!(
            found,
            [
                "1 User do it",
                "1 Assistant I will.",
                "1 Tool Edit src/a.ts",
                "1 Tool Bash npm test",
                "1 Tool Odd",
                "2 User [image]",
                "2 Assistant half \u{fffd}\u{fffd}\u{fffd}",
                "2 Summary so far",
            ]
        );
    }

    #[test]
    fn what_is_said_at_length_is_cut_and_has_its_time() {
        let long = "é".repeat(MAX_SAID + 1);
        let mut found = Vec::new();
        for line in [
            format!(r#"{{"type":"user","timestamp":"2026-11-15T18:19:36.392Z","message":{{"content":"{long}"}}}}"#),
            format!(
                r#"{{"type":"assistant","timestamp":"2026-11-15T18:19:36.392Z","message":{{"content":[{{"type":"text","text":"{long}"}}]}}}}"#
            ),
        ] {
            said(line.as_bytes(), |said| found.push(said)).unwrap();
        }
        assert_eq!(found.len(), 2);
        for said in found {
            assert_eq!(said.text.chars().count(), MAX_SAID);
            assert_eq!(said.at.unwrap().to_string(), "2026-11-15T18:19:36.392Z");
        }
    }

    #[test]
    fn a_call_that_writes_a_large_file_is_told_like_any_other() {
        let content = "\\n".repeat(1 << 20);
        let line = format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","name":"Write","input":{{"content":"{content}","file_path":"a"}}}}]}}}}"#
        );
        assert_eq!(told(&[&line]), ["0 Tool Write a"]);
    }

    #[test]
    fn bytes_that_are_no_text_do_not_hide_what_was_said() {
        let mut found = Vec::new();
        let line = b"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"a\xffb\"}]}}\n";
        said(&line[..], |said| found.push(said.text)).unwrap();
        assert_eq!(found, ["a\u{fffd}b"]);
    }
}
