//! Branches of transcripts: what two versions of Claude Code wrote, and transcripts made at random.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::HashSet;
use std::io::BufReader;

use piton_agents::claude_code::branch::copy;
use piton_agents::claude_code::said::said;
use piton_agents::claude_code::summary::{Summary, copy_with_summary_after, copy_with_summary_before};
use piton_agents::claude_code::survey::{ends_interrupted, prompt_at, survey};
use piton_agents::claude_code::turns::turns;
use piton_agents::transcript::{Copied, Survey};
use piton_model::Timestamp;
use proptest::prelude::*;
use serde_json::Value;

macro_rules! fixtures {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("fixtures/claude-code/", $name)))),*]
    };
}

const ALL: [(&str, &str); 9] = fixtures![
    "2.1.197/transcript.jsonl",
    "2.1.197/transcript-interrupted.jsonl",
    "2.1.197/session/transcript.jsonl",
    "2.1.325/transcript.jsonl",
    "2.1.325/transcript-background.jsonl",
    "2.1.325/transcript-compacted.jsonl",
    "2.1.325/transcript-forked.jsonl",
    "2.1.325/transcript-interrupted.jsonl",
    "2.1.325/session/transcript.jsonl",
];

/// With parallel calls, subagents, background work and a compaction, and every line of the chain.
const SESSIONS: [(&str, &str); 2] = fixtures!["2.1.197/session/transcript.jsonl", "2.1.325/session/transcript.jsonl"];

const NEW: &str = "11111111-2222-4333-8444-555555555555";
const SUMMARY: Summary<'_> = Summary {
    text: "They wrote \"notes\"\nand more.",
    uuids: ["aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"],
    at: Timestamp(1_800_000_000_000),
};

fn surveyed(transcript: &[u8]) -> Survey {
    survey(transcript).unwrap()
}

fn copied(transcript: &[u8], id: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let copied = copy(transcript, &mut out, id).unwrap();
    assert_eq!((copied.read, copied.bytes), (transcript.len() as u64, out.len() as u64));
    out
}

fn lines(transcript: &[u8]) -> Vec<Value> {
    let lines = transcript.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

fn prompts(survey: &Survey) -> Vec<&str> {
    survey.turns.iter().map(|at| at.turn.text.as_str()).collect()
}

#[test]
fn a_survey_finds_the_turns_and_where_they_begin() {
    for (name, transcript) in ALL {
        let found = surveyed(transcript.as_bytes());
        let mut expected = Vec::new();
        turns(transcript.as_bytes(), |turn| expected.push(turn)).unwrap();
        assert_eq!(found.turns.iter().map(|at| at.turn.clone()).collect::<Vec<_>>(), expected, "{name}");
        assert!(expected.len() >= 2, "{name}");
        for at in &found.turns {
            let line: Value =
                transcript[at.offset as usize..].lines().next().map(serde_json::from_str).unwrap().unwrap();
            assert_eq!(line["uuid"].as_str(), at.turn.uuid.as_deref(), "{name}");
            let prompt = prompt_at(&transcript.as_bytes()[at.offset as usize..]).unwrap();
            assert_eq!(prompt.as_ref(), Some(&at.turn.text), "{name}");
        }
        assert_eq!((found.length, found.cut_off, found.unreadable), (transcript.len() as u64, false, 0), "{name}");
    }
}

#[test]
fn a_survey_knows_the_folder_and_the_compactions() {
    for (name, transcript) in SESSIONS {
        let found = surveyed(transcript.as_bytes());
        assert_eq!(found.cwd.as_deref(), Some("/home/dev/work"), "{name}");
        let boundaries: Vec<_> = found.compactions.iter().map(|at| &transcript[*at as usize..]).collect();
        assert_eq!(boundaries.len(), 1, "{name}");
        assert!(boundaries[0].lines().next().unwrap().contains("\"subtype\":\"compact_boundary\""), "{name}");
        // It was requested after the last turn.
        assert!(found.compactions[0] > found.turns[2].offset, "{name}");
    }
}

#[test]
fn every_turn_of_a_recorded_session_follows_the_one_before_it() {
    for (name, transcript) in ALL {
        let found = surveyed(transcript.as_bytes());
        for (before, at) in found.turns.iter().enumerate() {
            assert_eq!(at.after, before, "{name}");
            // Claude Code's own rewind to before this turn: the next prompt has the same parent.
            let line = transcript[at.offset as usize..].lines().next().unwrap();
            let mut again: Value = serde_json::from_str(line).unwrap();
            again["uuid"] = NEW.into();
            let rewound = surveyed(format!("{transcript}{again}\n").as_bytes());
            // A prompt that begins a chain after a compaction may just as well follow it.
            let hidden = before == 0 && found.compactions.last() > found.turns.last().map(|last| &last.offset);
            let expected = if hidden { found.turns.len() } else { before };
            assert_eq!(rewound.turns.last().map(|last| last.after), Some(expected), "{name}");
        }
    }
}

#[test]
fn a_turn_that_was_interrupted_is_so_until_the_next_prompt() {
    for (name, transcript) in ALL.into_iter().filter(|(name, _)| name.contains("interrupted")) {
        let found = surveyed(transcript.as_bytes());
        assert_eq!(prompts(&found), ["Turn one.", "Turn two.", "Turn three."], "{name}");
        assert!(!ends_interrupted(transcript.as_bytes()).unwrap(), "{name}");
        for (turn, interrupted) in [(1, false), (2, true)] {
            let end = found.turns[turn].offset as usize;
            assert_eq!(ends_interrupted(&transcript.as_bytes()[..end]).unwrap(), interrupted, "{name} {turn}");
        }
    }
}

#[test]
fn a_transcript_that_is_cut_anywhere_is_whole_up_to_its_last_newline() {
    for (name, transcript) in SESSIONS {
        for end in (0..transcript.len()).step_by(997) {
            let cut = &transcript.as_bytes()[..end];
            let found = surveyed(cut);
            let whole = cut.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
            assert_eq!((found.length, found.cut_off), (whole as u64, whole < end), "{name} {end}");
            let before = found.turns.iter().all(|at| (at.offset as usize) < whole);
            assert!(before && found.unreadable == 0, "{name} {end}");
        }
    }
}

#[test]
fn a_copy_under_its_own_id_is_the_transcript_and_under_another_differs_in_the_id_alone() {
    for (name, transcript) in ALL {
        let mut ids: Vec<_> = lines(transcript.as_bytes()).iter().map(|line| line["sessionId"].clone()).collect();
        ids.retain(Value::is_string);
        ids.dedup();
        let [Value::String(old)] = &ids[..] else { panic!("{name}: {ids:?}") };
        assert!(copied(transcript.as_bytes(), old) == transcript.as_bytes(), "{name}");
        let branch = copied(transcript.as_bytes(), NEW);
        let mut expected = lines(transcript.as_bytes());
        for line in &mut expected {
            if let Some(id) = line.get_mut("sessionId") {
                *id = NEW.into();
            }
        }
        assert_eq!(lines(&branch), expected, "{name}");
        assert!(copied(&branch, old) == transcript.as_bytes(), "{name}");
    }
}

#[test]
fn a_branch_before_a_turn_has_the_turns_before_it() {
    for (name, transcript) in ALL {
        let found = surveyed(transcript.as_bytes());
        for (before, at) in found.turns.iter().enumerate() {
            let branch = surveyed(&copied(&transcript.as_bytes()[..at.offset as usize], NEW));
            assert_eq!(branch.turns, found.turns[..before], "{name} {before}");
            assert_eq!((branch.length, branch.cut_off), (at.offset, false), "{name} {before}");
        }
    }
}

/// Every line of the chain has its parent in the file, or never had one.
#[track_caller]
fn check_chain(name: &str, transcript: &str, branch: &[u8], without_parent: usize) {
    let ids =
        |lines: &[Value]| lines.iter().filter_map(|l| l["uuid"].as_str().map(String::from)).collect::<HashSet<_>>();
    let lines_before = lines(transcript.as_bytes());
    let (before, lines) = (ids(&lines_before), lines(branch));
    let now = ids(&lines);
    let missing = |key: &str| {
        let parents = lines.iter().filter_map(|line| line[key].as_str());
        parents.filter(|parent| !now.contains(*parent)).map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(missing("parentUuid"), [""; 0], "{name}");
    // The agent itself refers to lines there that it never wrote.
    assert!(missing("logicalParentUuid").iter().all(|parent| !before.contains(parent)), "{name}");
    let roots = lines.iter().filter(|line| line.get("parentUuid").is_some_and(Value::is_null)).count();
    assert_eq!(roots, without_parent, "{name}");
    assert!(lines.iter().all(|line| line.get("sessionId").is_none_or(|id| id == NEW)), "{name}");
}

/// A summary's line has the same fields as its neighbours.
#[track_caller]
fn check_summary(name: &str, line: &Value, words: &str) {
    assert_eq!(line["uuid"], SUMMARY.uuids[1], "{name}");
    let text = line["message"]["content"].as_str().unwrap();
    assert!(text.starts_with(words) && text.ends_with(SUMMARY.text), "{name}: {text}");
    for (key, expected) in [
        ("type", "user"),
        ("userType", "external"),
        ("entrypoint", "sdk-cli"),
        ("cwd", "/home/dev/work"),
        ("gitBranch", "HEAD"),
        ("version", name.split('/').next().unwrap()),
        ("timestamp", "2027-01-15T08:00:00.000Z"),
    ] {
        assert_eq!(line[key], expected, "{name}: {key}");
    }
    assert_eq!(line["isCompactSummary"], true, "{name}");
}

#[test]
fn a_summary_after_the_first_turns_ends_the_chain_of_what_stays() {
    for (name, transcript) in SESSIONS {
        let found = surveyed(transcript.as_bytes());
        for before in 1..found.turns.len() {
            let prefix = &transcript.as_bytes()[..found.turns[before].offset as usize];
            let mut branch = Vec::new();
            let written = copy_with_summary_after(prefix, &mut branch, NEW, &SUMMARY).unwrap();
            assert_eq!((written.read, written.bytes), (prefix.len() as u64, branch.len() as u64), "{name}");
            assert_eq!(written.lines as usize, lines(&branch).len(), "{name}");
            assert!(branch.starts_with(&copied(prefix, NEW)), "{name}");
            let last = lines(&branch).pop().unwrap();
            check_summary(name, &last, "What followed");
            // The turn that was next there had the same parent.
            let next = &lines(&transcript.as_bytes()[prefix.len()..])[0];
            assert_eq!(last["parentUuid"], next["parentUuid"], "{name} {before}");
            check_chain(name, transcript, &branch, 1);
            assert_eq!(surveyed(&branch).turns, found.turns[..before], "{name} {before}");
        }
    }
}

#[test]
fn a_summary_before_the_last_turns_is_the_beginning_of_the_chain() {
    for (name, transcript) in SESSIONS {
        let found = surveyed(transcript.as_bytes());
        for first in 1..found.turns.len() {
            let (all, cut) = (transcript.as_bytes(), found.turns[first].offset);
            let rest = &all[cut as usize..];
            let mut branch = Vec::new();
            let written = copy_with_summary_before(all, cut, &mut branch, NEW, &SUMMARY).unwrap();
            assert_eq!((written.read, written.bytes), (transcript.len() as u64, branch.len() as u64), "{name}");
            let told = lines(&branch);
            assert_eq!(written.lines as usize, told.len(), "{name}");
            assert_eq!(told[0]["subtype"], "compact_boundary", "{name}");
            assert_eq!((&told[0]["uuid"], &told[0]["parentUuid"]), (&SUMMARY.uuids[0].into(), &Value::Null), "{name}");
            assert_eq!(told[1]["parentUuid"], SUMMARY.uuids[0], "{name}");
            check_summary(name, &told[1], "The earlier part");
            // The boundary, and that of the session's own compaction.
            check_chain(name, transcript, &branch, 2);
            // Nothing else changed.
            let mut expected = lines(&copied(rest, NEW));
            expected[0]["parentUuid"] = SUMMARY.uuids[1].into();
            assert_eq!(told[2..], expected, "{name} {first}");
            assert_eq!(prompts(&surveyed(&branch)), prompts(&found)[first..], "{name} {first}");
        }
    }
}

#[test]
fn whatever_had_a_removed_line_as_its_parent_has_the_summary() {
    let before = br#"{"uuid":"a","parentUuid":null}
{"uuid":"side","parentUuid":"a","isSidechain":true,"cwd":"/side"}
{"uuid":"b","parentUuid":"a","cwd":"/\u0077","cwd":"/w","version":7}
"#;
    // The first has no parent, one is late for a removed line, one is spelled differently, one never had its parent
    // here, and one is a compaction's.
    let rest = br#"{"uuid":"c","parentUuid": null ,"x":1.0}
{"parentUuid":"c","uuid":"d"}
{"uuid":"e","parentUuid":"b"}
{"uuid":"f","parentUuid":"\u0061","in":{"parentUuid":"a"}}
{"uuid":"g","parentUuid":"elsewhere"}
{"uuid":"h","parentUuid":null,"logicalParentUuid":"side"}
"#;
    let mut branch = Vec::new();
    let summary = Summary { text: "s", uuids: ["u1", "u2"], at: Timestamp(0) };
    let all = [&before[..], rest].concat();
    copy_with_summary_before(&all[..], before.len() as u64, &mut branch, "new", &summary).unwrap();
    let branch = String::from_utf8(branch).unwrap();
    let (added, rest) = branch.split_at(branch.match_indices('\n').nth(1).unwrap().0 + 1);
    assert!(added.lines().all(|line| line.ends_with(r#","cwd":"/w","sessionId":"new"}"#)), "{added}");
    assert_eq!(
        rest,
        r#"{"uuid":"c","parentUuid": "u2" ,"x":1.0}
{"parentUuid":"c","uuid":"d"}
{"uuid":"e","parentUuid":"u2"}
{"uuid":"f","parentUuid":"u2","in":{"parentUuid":"a"}}
{"uuid":"g","parentUuid":"elsewhere"}
{"uuid":"h","parentUuid":null,"logicalParentUuid":"u2"}
"#
    );
}

#[test]
fn a_summary_follows_a_subagent_or_half_a_line_on_a_line_of_its_own() {
    for (prefix, parent) in [
        ("", Value::Null),
        ("{\"type\":\"mode\"}\n", Value::Null),
        ("{\"uuid\":\"a\"}\n{\"uuid\":\"b\",\"isSidechain\":true}\n{\"type\":\"mode\"}\n", "a".into()),
        ("{\"uuid\":\"a\"}\n{\"uuid\":\"b\"}", "b".into()),
    ] {
        let mut branch = Vec::new();
        let written = copy_with_summary_after(prefix.as_bytes(), &mut branch, NEW, &SUMMARY).unwrap();
        assert_eq!(lines(&branch).last().unwrap()["parentUuid"], parent, "{prefix}");
        assert_eq!((written.bytes, written.cut_off), (branch.len() as u64, false), "{prefix}");
        assert!(branch.ends_with(b"}\n"));
    }
}

#[test]
fn what_was_said_in_a_recorded_session_reads_turn_by_turn() {
    for (name, transcript) in SESSIONS {
        let mut found = Vec::new();
        said(transcript.as_bytes(), |said| {
            assert!(said.at.is_some(), "{name}");
            // One of the versions reports the background work in more messages.
            if said.turn != 2 {
                found.push(format!("{} {:?} {}", said.turn, said.speaker, said.text.lines().next().unwrap()));
            }
        })
        .unwrap();
        let summary = found.pop().unwrap();
        assert!(summary.starts_with("3 Summary This session is being continued"), "{name}: {summary}");
        assert_eq!(
            found,
            [
                "1 User write the notes",
                "1 Tool Write notes.md",
                "1 Tool Edit notes.md",
                "1 Tool Bash mkdir old && cp notes.md old/a && mv old/a old/b && touch gone && rm gone",
                "1 Tool Bash echo broken >&2; exit 3",
                "1 Tool Edit notes.md",
                "1 Tool Write left.md",
                "1 Tool Write right.md",
                "1 Tool Bash cat notes.md > middle.md",
                "1 Tool Bash ls",
                "1 Tool Bash cat left.md",
                "1 Tool Read left.md",
                "1 Assistant the notes are written",
                "3 User ask two helpers",
                "3 Tool Agent Help",
                "3 Tool Agent Help",
                "3 Assistant both helped",
            ],
            "{name}"
        );
    }
    let (_, subagent) = fixtures!["2.1.325/subagent.jsonl"][0];
    said(subagent.as_bytes(), |said| panic!("{said:?}")).unwrap();
}

/// A random line: its bytes, with the positions of the session's id.
#[derive(Clone, Debug)]
struct Made {
    pieces: Vec<Piece>,
    is_turn: bool,
}

#[derive(Clone)]
enum Piece {
    Bytes(Vec<u8>),
    Session,
}

impl std::fmt::Debug for Piece {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{:.500}", String::from_utf8_lossy(bytes)),
            Self::Session => f.write_str("<session>"),
        }
    }
}

fn render(lines: &[Made], id: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in lines.iter().flat_map(|line| &line.pieces) {
        match piece {
            Piece::Bytes(bytes) => out.extend_from_slice(bytes),
            Piece::Session => out.extend_from_slice(format!("\"{id}\"").as_bytes()),
        }
    }
    out
}

fn space() -> impl Strategy<Value = &'static str> {
    prop_oneof![4 => Just(""), 1 => Just(" "), 1 => Just("\t \t"), 1 => Just("\r")]
}

/// A JSON string: escapes, what looks like the end of something, and what looks like a session's id.
fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("plain".to_owned()),
        Just(r#"\"}],{[\\"#.to_owned()),
        Just(r#"\",\"sessionId\":\"old\""#.to_owned()),
        Just(r"\ud83d\ude00\ud83d\n\u0022".to_owned()),
        Just("é😀".to_owned()),
        (1..40usize).prop_map(|n| r"\\".repeat(n)),
    ];
    let parts = prop::collection::vec(part, 0..4).prop_map(|parts| parts.concat());
    let long = (1..40usize).prop_map(|n| r"\tAé".repeat(n << 13));
    prop_oneof![60 => parts, 1 => long].prop_map(|text| format!("\"{text}\""))
}

/// Any JSON, including nested sessions.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        text(),
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("-0.10e+05".to_owned()),
        Just("123456789012345678901234567890".to_owned()),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let key = prop_oneof![Just("\"sessionId\"".to_owned()), Just("\"type\"".to_owned()), text()];
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..4), space())
                .prop_map(|(all, space)| format!("[{space}{}{space}]", all.join(&format!(",{space}")))),
            (prop::collection::vec((key, inner), 0..4), space()).prop_map(|(all, space)| {
                let members: Vec<_> = all.iter().map(|(key, value)| format!("{key}{space}:{space}{value}")).collect();
                format!("{{{space}{}}}", members.join(&format!("{space},")))
            }),
        ]
    })
}

/// The contents of a line's object: members, some of which are the session.
fn object(own: Vec<String>, is_turn: bool) -> impl Strategy<Value = Made> {
    let session = prop_oneof![Just("\"sessionId\""), Just("\"session\\u0049d\"")];
    let sessions = prop::collection::vec(session, 0..3);
    // Half a surrogate pair is valid in a text, but not in a name.
    let key = text().prop_map(|key| key.replace(r"\ud83d\n", ""));
    let others = prop::collection::vec((key, value()), 0..4);
    let places = prop::collection::vec(0..100usize, 3);
    let end = prop_oneof![4 => Just("\n"), 1 => Just("\r\n"), 1 => Just(" \n\n \t\n")];
    (sessions, others, places, space(), end).prop_map(move |(sessions, others, places, space, end)| {
        // A member is a list of pieces; the session goes anywhere among them.
        let mut members: Vec<Vec<Piece>> = own.iter().map(|member| vec![Piece::Bytes(member.clone().into())]).collect();
        // Unusual keys, so that none is one of those that are read.
        members.extend(
            others.iter().map(|(key, value)| vec![Piece::Bytes(format!("\"x{}{space}:{value}", &key[1..]).into())]),
        );
        for (session, place) in sessions.iter().zip(places) {
            let member = vec![Piece::Bytes(format!("{session}{space}:{space}").into()), Piece::Session];
            members.insert(place % (members.len() + 1), member);
        }
        let mut pieces = vec![Piece::Bytes(format!("{space}{{{space}").into())];
        for (n, member) in members.into_iter().enumerate() {
            if n > 0 {
                pieces.push(Piece::Bytes(format!("{space},{space}").into()));
            }
            pieces.extend(member);
        }
        pieces.push(Piece::Bytes(format!("{space}}}{space}{end}").into()));
        Made { pieces, is_turn }
    })
}

fn line() -> impl Strategy<Value = Made> {
    let turn = (text(), "[a-f0-9]{8}").prop_flat_map(|(text, uuid)| {
        let content = format!(r#""message":{{"role":"user","content":"go {}}}"#, &text[1..]);
        object(vec![r#""type":"user""#.into(), content, format!(r#""uuid":"{uuid}""#)], true)
    });
    let result = value().prop_flat_map(|value| {
        object(
            vec![
                r#""toolUseResult":1"#.into(),
                format!(r#""message":{{"content":[{{"type":"tool_result","content":{value}}}]}}"#),
                r#""type":"user""#.into(),
            ],
            false,
        )
    });
    let other = ("[a-z]{1,6}", value()).prop_flat_map(|(kind, value)| {
        object(vec![format!(r#""type":"of-{kind}""#), format!(r#""message":{value}"#)], false)
    });
    let no_objects: [&[u8]; 6] = [
        b"not json\n",
        b"[{\"sessionId\":\"old\"}]\n",
        b"\xff\xfe{\"sessionId\":\"old\"}\n",
        b"{\"sessionId\":\"never closed\n",
        b"{\"sessionId\n",
        b"\n\r\n",
    ];
    let no_object = prop::sample::select(no_objects.to_vec())
        .prop_map(|bytes| Made { pieces: vec![Piece::Bytes(bytes.to_vec())], is_turn: false });
    prop_oneof![3 => turn, 2 => result, 2 => other, 1 => no_object]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_transcript_is_copied_byte_by_byte_and_its_branches_are_its_first_turns(
        made in prop::collection::vec(line(), 0..12),
        capacity in prop_oneof![1..20usize, Just(8192)],
    ) {
        let old = "00000000-0000-4000-8000-00000000000e";
        let transcript = render(&made, old);
        let through = |bytes: &[u8], id: &str| {
            let mut out = Vec::new();
            let copied: Copied = copy(BufReader::with_capacity(capacity, bytes), &mut out, id).unwrap();
            assert!(!copied.cut_off);
            out
        };
        prop_assert!(through(&transcript, old) == transcript);
        for id in [NEW, "short"] {
            prop_assert!(through(&transcript, id) == render(&made, id));
        }

        let found = survey(BufReader::with_capacity(capacity, &transcript[..])).unwrap();
        prop_assert_eq!(found.turns.len(), made.iter().filter(|line| line.is_turn).count());
        for (before, at) in found.turns.iter().enumerate() {
            let branch = surveyed(&through(&transcript[..at.offset as usize], NEW));
            prop_assert_eq!(&branch.turns, &found.turns[..before]);
        }
        let whole = surveyed(&through(&transcript[..found.length as usize], NEW));
        prop_assert_eq!((whole.turns, whole.length, whole.cut_off), (found.turns, found.length, false));
    }
}
