//! What agents write: reports to the hook, transcripts, settings files.

use std::io::{self, BufReader};
use std::path::Path;

use piton_agents::claude_code::branch::copy;
use piton_agents::claude_code::places::project_folder;
use piton_agents::claude_code::said::said;
use piton_agents::claude_code::settings::{EVENTS, HookCommand, install, installed, remove};
use piton_agents::claude_code::summary::{Summary, copy_with_summary_after, copy_with_summary_before};
use piton_agents::claude_code::survey::{ends_interrupted, prompt_at, survey};
use piton_agents::claude_code::turns::turns;
use piton_agents::event::piton_command;
use piton_agents::transcript::Survey;
use piton_agents::{Agent, Event, claude_code, generic};
use piton_model::Timestamp;
use piton_testkit::fuzz::fuzz;

/// What real agents wrote.
fn fixtures(wanted: impl Fn(&str) -> bool) -> Vec<Vec<u8>> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../agents/tests/fixtures")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                folders.push(path);
            } else if wanted(name) {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no fixtures");
    found.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

fn lines(files: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let lines = files.iter().flat_map(|file| file.split(|b| *b == b'\n'));
    lines.filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
}

/// Transcripts small enough to try many of them.
fn transcripts() -> Vec<Vec<u8>> {
    let whole = fixtures(|name| name.starts_with("transcript") || name == "subagent.jsonl");
    let short = whole.iter().map(|file| file.split_inclusive(|b| *b == b'\n').take(12).flatten().copied().collect());
    short.collect()
}

const REPORTS: [&str; 8] = [
    r#"{"event":"session-start","session":"s","cwd":"/w","agent":"a","model":"m","transcript":"/t.jsonl"}"#,
    r#"{"event":"prompt","session":"s","cwd":"/w","prompt":"do it","turn":3,"at":"2026-11-15T20:03:11.042Z"}"#,
    r#"{"event":"before-tool","session":"s","cwd":"/w","tool":"Bash","call":"c1","command":"rm -rf x","paths":["a","/b"]}"#,
    r#"{"event":"after-tool","session":"s","cwd":"/w","tool":"Edit","call":"c1","paths":["src/a.rs"],"failed":true}"#,
    r#"{"event":"turn-end","session":"s","cwd":"/w","interrupted":true}"#,
    r#"{"event":"message","session":"s","cwd":"/w","role":"assistant","text":"done \u00e9 \ud83d\ude00"}"#,
    r#"{"event":"session-end","session":"s","cwd":"/w","reason":"exit"}"#,
    r#"{"event":"checkpoint","session":"s","cwd":"/w","name":"n"}"#,
];

fn reports(agent: Agent, seeds: &[Vec<u8>]) {
    let name = format!("hook-{}", agent.name);
    fuzz(&name, seeds, |bytes| {
        let report = match agent.events.parse(bytes) {
            Ok(report) => report,
            Err(error) => {
                return error.to_string().chars().filter(|c| !c.is_ascii_digit()).take(40).collect::<String>();
            }
        };
        if let Event::AfterTool(call) | Event::BeforeTool(call) = &report.event {
            let _ = agent.events.is_reader(&call.tool);
            assert!(call.paths.len() <= 1000 && call.summary.len() < 100_000, "what is kept of a call is bounded");
        }
        // What is kept of a report of a few KiB goes into a log line.
        assert!(format!("{report:?}").len() < 16 * bytes.len() + 4096);
        format!("{:?} {}", std::mem::discriminant(&report.event), bytes.is_ascii())
    });
}

#[test]
fn reports_of_claude_code() {
    let mut seeds = lines(fixtures(|name| name.starts_with("hooks")));
    seeds.retain(|seed| seed.len() < 8 << 10);
    reports(claude_code::AGENT, &seeds);
}

#[test]
fn reports_in_the_generic_form() {
    reports(generic::AGENT, &REPORTS.map(|report| report.as_bytes().to_vec()));
}

/// The part of a survey that does not depend on where lines are.
type Told<'a> = (Vec<(u32, &'a str, usize)>, bool, u64, usize);

fn told(survey: &Survey) -> Told<'_> {
    let turns = survey.turns.iter().map(|at| (at.turn.number, &at.turn.text[..], at.after)).collect();
    (turns, survey.cut_off, survey.unreadable, survey.compactions.len())
}

const BRANCH: &str = "428214a0-5123-43c6-ae2b-86a56b0968a8";

#[test]
fn transcripts_read_the_same_in_pieces_and_their_copies_say_the_same() {
    fuzz("transcript", &transcripts(), |bytes| {
        let found = survey(bytes).unwrap();
        assert_eq!(found, survey(BufReader::with_capacity(5, bytes)).unwrap(), "a survey in pieces");
        assert!(found.length <= bytes.len() as u64);
        let mut texts = Vec::new();
        let counted = turns(bytes, |turn| texts.push(turn.text)).unwrap();
        let mut spoken = Vec::new();
        said(bytes, |said| spoken.push(said)).unwrap();
        let mut in_pieces = Vec::new();
        said(BufReader::with_capacity(3, bytes), |said| in_pieces.push(said)).unwrap();
        assert_eq!(spoken, in_pieces, "what was said, in pieces");
        for turn in &found.turns {
            let rest = &bytes[turn.offset as usize..];
            assert!(prompt_at(rest).unwrap().is_some(), "a turn begins where the survey says");
        }
        ends_interrupted(bytes).unwrap();

        let whole = &bytes[..found.length as usize];
        let mut branch = Vec::new();
        let copied = copy(whole, &mut branch, BRANCH).unwrap();
        assert_eq!((copied.read, copied.bytes), (whole.len() as u64, branch.len() as u64));
        let (was, is) = (survey(whole).unwrap(), survey(&branch[..]).unwrap());
        // A line whose only fault is its id can be read once it has another.
        assert!(is.unreadable <= was.unreadable, "a copy is no worse");
        if is.unreadable == was.unreadable {
            assert_eq!(told(&was), told(&is), "a copy tells the same");
        }
        let mut again = Vec::new();
        copy(BufReader::with_capacity(7, &branch[..]), &mut again, BRANCH).unwrap();
        assert!(again == branch, "a copy of a copy is the copy");
        (counted.turns, counted.unreadable.min(3), counted.cut_off, spoken.len(), found.compactions.len())
    });
}

#[test]
fn transcripts_with_a_summary_can_be_read() {
    fuzz("transcript-summary", &transcripts(), |bytes| {
        let at = Timestamp(1_794_772_991_042);
        let uuids = ["e84d6a6c-9c5c-4e39-a5a5-0c9d1f2b7f10", "e84d6a6c-9c5c-4e39-a5a5-0c9d1f2b7f11"];
        let summary = Summary { text: "it \"was\" done\n", uuids, at };
        let found = survey(bytes).unwrap();
        let whole = &bytes[..found.length as usize];
        let middle = found.turns.get(found.turns.len() / 2).map_or(0, |turn| turn.offset as usize);
        let mut after = Vec::new();
        let copied = copy_with_summary_after(&whole[..middle], &mut after, BRANCH, &summary).unwrap();
        assert_eq!(copied.bytes, after.len() as u64);
        let was = survey(&whole[..middle]).unwrap();
        let is = survey(&after[..]).unwrap();
        same_turns(&was, &is);
        let mut before = Vec::new();
        let copied = copy_with_summary_before(whole, middle as u64, &mut before, BRANCH, &summary).unwrap();
        assert_eq!((copied.read, copied.bytes), (whole.len() as u64, before.len() as u64));
        let (was, is) = (survey(&whole[middle..]).unwrap(), survey(&before[..]).unwrap());
        same_turns(&was, &is);
        let mut counted = 0;
        said(&before[..], |_| counted += 1).unwrap();
        copy_with_summary_after(bytes, &mut io::sink(), BRANCH, &summary).unwrap();
        (is.turns.len(), is.unreadable, counted)
    });
}

/// A summary is not a turn, and a line whose only fault is its id can be read once it has another.
fn same_turns(was: &Survey, is: &Survey) {
    assert!(is.unreadable <= was.unreadable, "a copy is no worse");
    if is.unreadable == was.unreadable {
        assert_eq!(was.turns.len(), is.turns.len(), "a summary is no turn");
    }
}

const SETTINGS: [&str; 10] = [
    "",
    "{}\n",
    "{\n  // what I like   \n  \"model\": \"opus\" // really\n}\n",
    "{\"hooks\":{\"Stop\":[],\"PreToolUse\":[ ]}}",
    "{\n  \"hooks\": {\n    \"PreToolUse\": [\n    ],\n    \"SessionStart\": [\n\n\t]\n  }\n}\n",
    "{\r\n\t\"hooks\": {\r\n\t\t\"Stop\": [\r\n\t\t\t{\"hooks\": [{\"type\": \"command\", \"command\": \"lint\"}]}, // x\r\n\t\t]\r\n\t}\r\n}\r\n",
    "\u{feff}{ /* nothing yet */ }",
    "{\n  \"a\": {\n    \"b\": [1, 2.5, null, true]\n  },\n  \"hooks\": {\n  },\n}\n",
    "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"/bin/piton hook claude-code\",\"timeout\":30}]}]}}",
    "{\"disableAllHooks\": true, \"hooks\": {\"Notification\": [{\"matcher\": \"x\", \"hooks\": []}]}}",
];

#[test]
fn settings_files_are_changed_exactly_or_refused() {
    let here = HookCommand::new("/usr/local/bin/piton");
    let mut seeds = SETTINGS.map(|text| text.as_bytes().to_vec()).to_vec();
    seeds.push(install(SETTINGS[2], &here).unwrap().into_bytes());
    seeds.push(install(SETTINGS[5], &here).unwrap().into_bytes());
    fuzz("agent-settings", &seeds, |bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else { return (0, 0) };
        let _ = (HookCommand::of(text), piton_command(text), project_folder(text));
        let was = installed(text);
        let without = remove(text);
        let Ok(with) = install(text, &here) else { return (1, usize::from(was.is_ok())) };
        let Ok(was) = was else { panic!("what can be changed can be looked at") };
        let found = installed(&with).unwrap_or_else(|e| panic!("what was written can be read: {e}"));
        assert_eq!(found.missing, Vec::<&str>::new());
        assert_eq!(install(&with, &here).as_deref(), Ok(&with[..]), "twice is once");
        let removed = remove(&with).unwrap_or_else(|e| panic!("what came can go: {e}"));
        if was.hooks.is_empty() {
            assert_eq!(without.as_deref(), Ok(text), "nothing of piton's is there");
            assert_eq!(found.hooks.len(), EVENTS.len());
            // For a file without settings, only that is known.
            let is_blank = text.trim_matches('\u{feff}').trim().is_empty();
            // Blanks that JSON does not know, such as a form feed in a comment: an edit next to one may move it.
            let is_json = text.chars().all(|c| !c.is_whitespace() || " \t\n\r".contains(c));
            assert!(removed == text || is_blank && removed.is_empty() || !is_json, "taken out: {removed:?}");
        }
        assert_eq!(installed(&removed).map(|found| found.hooks.len()), Ok(0));
        (2 + was.hooks.len(), text.matches('\n').count().min(8))
    });
}
