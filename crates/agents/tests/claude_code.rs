//! What two versions of Claude Code sent and wrote, read by the adapter. `tests/fixtures` contains recordings of the
//! real agent, with long texts cut.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;

use piton_agents::claude_code::turns::{TurnCounts, turns};
use piton_agents::event::piton_command;
use piton_agents::transcript::TranscriptTurn;
use piton_agents::{Event, Report, ToolCall, claude_code};

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("fixtures/claude-code/", $name))
    };
}

fn reports(recorded: &str) -> Vec<Report> {
    recorded.lines().map(|line| claude_code::AGENT.events.parse(line.as_bytes()).unwrap()).collect()
}

/// A report on one line: who, what, and the last letters of its prompt's and its call's ids.
fn told(report: &Report) -> String {
    let end = |id: &Option<String>| id.as_ref().map_or("-".to_owned(), |id| id[id.len() - 4..].to_owned());
    let call = |call: &ToolCall| format!("{} [{}]", call.summary, end(&call.id));
    let what = match &report.event {
        Event::SessionStarted { source } => format!("started {}", source.as_deref().unwrap_or("-")),
        Event::Prompt { text } => format!("prompt {text}"),
        Event::BeforeTool(c) => format!("before {}", call(c)),
        Event::AfterTool(c) => format!("after {}", call(c)),
        Event::ToolFailed { call: c, error, interrupted } => format!("failed {}: {error} {interrupted}", call(c)),
        Event::TurnEnded { failed, message, background } => {
            format!("turn ended {failed} {background} {}", message.as_deref().unwrap_or("-"))
        }
        Event::SessionEnded { reason } => format!("ended {}", reason.as_deref().unwrap_or("-")),
        Event::ToolsEnded => "tools ended".into(),
        Event::SubagentStarted => "subagent started".into(),
        Event::SubagentEnded => "subagent ended".into(),
        Event::Other { name } => format!("other {name}"),
        Event::Compacting { trigger } => format!("compacting {}", trigger.as_deref().unwrap_or("-")),
        Event::Message { .. } => unreachable!("Claude Code has a transcript"),
    };
    let who = report.subagent.as_ref().map_or(String::new(), |s| format!("{}/{} ", s.kind, &s.id[..4]));
    format!("{} {who}{what}", end(&report.prompt_id))
}

fn check(recorded: &str, expected: &[&str]) {
    let reports = reports(recorded);
    assert_eq!(reports.iter().map(told).collect::<Vec<_>>(), expected);
    for report in reports {
        assert_eq!(report.agent, "claude-code");
        assert_eq!(report.cwd.as_deref(), Some(Path::new("/home/dev/work")));
        let transcript = format!("/home/dev/.claude/projects/-home-dev-work/{}.jsonl", report.session);
        assert_eq!(report.transcript.as_deref(), Some(Path::new(&transcript)));
    }
}

#[test]
fn a_session_of_version_2_1_197_is_understood() {
    check(
        fixture!("2.1.197/hooks.jsonl"),
        &[
            "- started startup",
            "46a5 prompt Turn one.",
            "46a5 before Write b.txt [0002]",
            "46a5 after Write b.txt [0002]",
            "46a5 tools ended",
            "46a5 turn ended false false turn one done",
            "46a5 ended other",
            "- started resume",
            "eedd prompt Turn two.",
            "eedd before Edit b.txt [0002]",
            "eedd after Edit b.txt [0002]",
            "eedd turn ended false false turn two done",
            "eedd ended other",
            "- started resume",
        ],
    );
}

#[test]
fn a_session_of_version_2_1_325_with_parallel_and_failed_calls_is_understood() {
    check(
        fixture!("2.1.325/hooks.jsonl"),
        &[
            "- started startup",
            "4c23 prompt Turn one.",
            "4c23 before Write b.txt [0002]",
            "4c23 after Write b.txt [0002]",
            "4c23 tools ended",
            "4c23 before Bash echo hi > c.txt; ls [0005]",
            "4c23 after Bash echo hi > c.txt; ls [0005]",
            "4c23 turn ended false false turn one done",
            "4c23 ended other",
            "- started resume",
            "5bde prompt Turn two.",
            "5bde before Read b.txt [0002]",
            "5bde after Read b.txt [0002]",
            "5bde before Edit b.txt [0005]",
            "5bde after Edit b.txt [0005]",
            "5bde turn ended false false turn two done",
            "5bde ended other",
            "- started resume",
            "5117 prompt Turn three.",
            "5117 before Bash echo p1 > p1.txt [0002]",
            "5117 after Bash echo p1 > p1.txt [0002]",
            "5117 before Write p2.txt [0003]",
            "5117 after Write p2.txt [0003]",
            "5117 before Bash exit 3 [0006]",
            "5117 failed Bash exit 3 [0006]: Exit code 3 false",
            "5117 turn ended false false turn three done",
            "5117 ended other",
        ],
    );
}

#[test]
fn what_a_subagent_does_carries_its_id_and_kind() {
    check(
        fixture!("2.1.325/hooks-subagent.jsonl"),
        &[
            "- started startup",
            "39d7 prompt Sub.",
            "39d7 before Agent d [0002]",
            "39d7 general-purpose/ab28 subagent started",
            "39d7 general-purpose/ab28 before Write sub.txt [0005]",
            "39d7 general-purpose/ab28 after Write sub.txt [0005]",
            "39d7 general-purpose/ab28 tools ended",
            "39d7 general-purpose/ab28 subagent ended",
            "39d7 after Agent d [0002]",
            "39d7 turn ended false false main done",
            "39d7 ended other",
        ],
    );
}

#[test]
fn a_background_task_that_ends_is_no_prompt_and_a_command_for_piton_is_no_turn() {
    let recorded = fixture!("2.1.325/hooks-background.jsonl");
    check(
        recorded,
        &[
            "- started startup",
            "5713 prompt Turn one.",
            "5713 before Bash sleep 2; echo hi > c.txt [0001]",
            "5713 after Bash sleep 2; echo hi > c.txt [0001]",
            "5713 turn ended false true turn one done",
            "76a1 other task-notification",
            "76a1 turn ended false false turn one done",
            "76a1 ended other",
            "- started resume",
            "6122 prompt /piton undo last 2",
            "6122 ended other",
            "- started resume",
            "7e21 prompt Turn two.",
            "7e21 turn ended false false turn two done",
            "7e21 ended other",
        ],
    );
    let commands: Vec<_> = reports(recorded)
        .iter()
        .filter_map(|report| match &report.event {
            Event::Prompt { text } => piton_command(text).map(String::from),
            _ => None,
        })
        .collect();
    assert_eq!(commands, ["undo last 2"]);
    let (found, _) = read(fixture!("2.1.325/transcript-background.jsonl"));
    assert_eq!(found.iter().map(|turn| turn.text.as_str()).collect::<Vec<_>>(), ["Turn one.", "Turn two."]);
}

#[test]
fn a_compaction_is_told_and_its_own_subagent_is_not() {
    check(
        fixture!("2.1.325/hooks-compaction.jsonl"),
        &[
            "- started resume",
            "0090 compacting manual",
            "0090 /ad35 other SubagentStop",
            "0090 started compact",
            "0090 ended other",
        ],
    );
}

fn read(transcript: &str) -> (Vec<TranscriptTurn>, TurnCounts) {
    let mut found = Vec::new();
    let summary = turns(transcript.as_bytes(), |turn| found.push(turn)).unwrap();
    (found, summary)
}

#[test]
fn the_turns_of_a_transcript_are_the_prompts_that_the_hooks_reported() {
    for (hooks, transcript) in [
        (fixture!("2.1.197/hooks.jsonl"), fixture!("2.1.197/transcript.jsonl")),
        (fixture!("2.1.325/hooks.jsonl"), fixture!("2.1.325/transcript.jsonl")),
    ] {
        let prompts: Vec<_> = reports(hooks)
            .into_iter()
            .filter_map(|report| match report.event {
                Event::Prompt { text } => Some((report.prompt_id, text)),
                _ => None,
            })
            .collect();
        let (found, summary) = read(transcript);
        let turns: Vec<_> = found.iter().map(|turn| (turn.prompt_id.clone(), turn.text.clone())).collect();
        assert_eq!(turns, prompts);
        assert!(found.iter().zip(1..).all(|(turn, number)| turn.number == number));
        assert!(found.iter().all(|turn| turn.uuid.is_some() && turn.at.is_some()));
        assert_eq!(summary.turns as usize, found.len());
        assert_eq!((summary.unreadable, summary.cut_off), (0, false));
    }
}

#[test]
fn a_compaction_takes_no_turn_away_and_adds_none() {
    let (found, _) = read(fixture!("2.1.325/transcript-compacted.jsonl"));
    let texts: Vec<_> = found.iter().map(|turn| turn.text.as_str()).collect();
    assert_eq!(texts, ["Turn one.", "Turn two.", "Turn three."]);
}

#[test]
fn a_session_that_the_agent_forked_has_its_turns_though_all_share_one_prompt_id() {
    let (found, _) = read(fixture!("2.1.325/transcript-forked.jsonl"));
    let texts: Vec<_> = found.iter().map(|turn| (turn.number, turn.text.as_str())).collect();
    assert_eq!(texts, [(1, "Turn one."), (2, "Branch turn M native --fork-session --resume-session-at")]);
    assert_eq!(found[0].prompt_id, found[1].prompt_id);
    assert_ne!(found[0].uuid, found[1].uuid);
}

#[test]
fn a_subagents_own_transcript_has_no_turns_of_the_users() {
    assert_eq!(read(fixture!("2.1.325/subagent.jsonl")).1.turns, 0);
}

#[test]
fn a_transcript_that_is_cut_anywhere_gives_its_first_turns() {
    let whole = fixture!("2.1.325/transcript.jsonl");
    let all = read(whole).0;
    for end in (0..whole.len()).step_by(101) {
        let mut found = Vec::new();
        let summary = turns(&whole.as_bytes()[..end], |turn| found.push(turn)).unwrap();
        assert_eq!(found, all[..found.len()], "{end}");
        assert_eq!(summary.unreadable, 0, "{end}");
    }
}

#[test]
fn a_whole_session_of_both_versions_has_three_turns_and_every_tool_begins_and_ends() {
    for (hooks, transcript) in [
        (fixture!("2.1.197/session/hooks.jsonl"), fixture!("2.1.197/session/transcript.jsonl")),
        (fixture!("2.1.325/session/hooks.jsonl"), fixture!("2.1.325/session/transcript.jsonl")),
    ] {
        let reports = reports(hooks);
        let prompts: Vec<&str> = reports
            .iter()
            .filter_map(|report| match &report.event {
                Event::Prompt { text } => Some(&text[..]),
                _ => None,
            })
            .collect();
        assert_eq!(prompts, ["write the notes", "work in the background", "ask two helpers"]);
        let ids = |wanted: fn(&Event) -> Option<&ToolCall>| {
            let mut ids: Vec<_> = reports.iter().filter_map(|report| wanted(&report.event)?.id.clone()).collect();
            ids.sort();
            ids
        };
        let began = ids(|event| if let Event::BeforeTool(call) = event { Some(call) } else { None });
        let ended = ids(|event| match event {
            Event::AfterTool(call) | Event::ToolFailed { call, .. } => Some(call),
            _ => None,
        });
        assert_eq!(began, ended);
        let mut found = Vec::new();
        turns(transcript.as_bytes(), |turn| found.push(turn.text)).unwrap();
        assert_eq!(found, prompts);
    }
}
