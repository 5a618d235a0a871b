//! `piton conversation`: what was said, from a transcript and from reports.

use piton_testkit::{Claude, Scene, both};
use serde_json::{Value, json};

use crate::PITON;

fn scene() -> Scene {
    Scene::new(PITON)
}

/// Without the ages of turns.
fn ageless(text: &str) -> String {
    let age = |line: &str| line.strip_prefix('t').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    text.lines().map(|line| if age(line) { line.split("  ").next().unwrap() } else { line }.to_owned() + "\n").collect()
}

#[test]
fn turns_are_read_with_who_said_what_and_what_was_called() {
    let scene = scene();
    let claude = Claude::new(&scene.world, 1);
    claude.edits("make a.txt\nand be quick", &["a.txt"], |world| {
        world.write("a.txt", "one\n");
    });
    claude.talks("and now?");
    let shown = ageless(&scene.ok(&["conversation"]));
    let expected = "t1\n  you      make a.txt\n           and be quick\n  tool     Edit a.txt\n  agent    done\n\n\
                    t2\n  you      and now?\n  agent    well\n";
    assert_eq!(shown, expected);
    assert_eq!(
        ageless(&scene.ok(&["conversation", &claude.id, "--from", "t2"])),
        "t2\n  you      and now?\n  agent    well\n"
    );
    let document = scene.json(&["conversation", "--from", "1", "--to", "t1"]);
    assert_eq!((&document["source"], &document["last"]), (&"transcript".into(), &2.into()));
    let said = document["said"].as_array().unwrap();
    assert_eq!(said.len(), 3);
    assert_eq!((&said[1]["turn"], &said[1]["speaker"], &said[1]["tool"]), (&1.into(), &"tool".into(), &"Edit".into()));
    assert!(said.iter().all(|one| one["at"].is_string() || one["at"].is_number()), "{said:?}");
    let nothing = scene.run(&["conversation", "--from", "t9"]);
    assert_eq!(both(&nothing), "nothing was said there; the last turn is t2\n");
    assert!(scene.fails(&["conversation", "nobody"]).contains("there is no session `nobody`"));
    assert!(scene.fails(&["conversation", "--from", "t2.1"]).contains("a turn is written as `t5`"));
}

#[test]
fn a_branch_has_its_parents_turns_and_the_parent_those_that_were_left() {
    let scene = scene();
    let claude = Claude::new(&scene.world, 1);
    ["one", "two", "three"].into_iter().for_each(|prompt| claude.talks(prompt));
    let done = scene.json(&["rewind", "t3", "--scope", "conversation", "--yes"]);
    let branch = Claude::resumed(&scene.world, done["conversation"]["agent_id"].as_str().unwrap());
    branch.talks("three, otherwise");
    let prompts = |args: &[&str]| -> Vec<String> {
        let document = scene.json(args);
        let said = document["said"].as_array().unwrap().clone();
        let prompts = said.iter().filter(|one| one["speaker"] == "user");
        prompts.map(|one| format!("{} {}", one["turn"], one["text"].as_str().unwrap())).collect()
    };
    assert_eq!(prompts(&["conversation"]), ["1 one", "2 two", "3 three, otherwise"]);
    assert_eq!(prompts(&["conversation", &claude.id, "--from", "t3"]), ["3 three"]);
    // The same without its transcript, from what was reported.
    std::fs::remove_file(branch.path()).unwrap();
    assert_eq!(prompts(&["conversation"]), ["1 one", "2 two", "3 three, otherwise"]);
    let shown = scene.told(&["conversation"]);
    assert!(shown.contains("note: only what was reported is shown: its transcript is gone"), "{shown}");
}

#[test]
fn what_a_hostile_transcript_says_is_shown_and_not_done() {
    let scene = scene();
    let claude = Claude::new(&scene.world, 1);
    claude.prompt("a\u{1b}[2J\u{1b}]52;c;ZXZpbA==\u{7}b\u{202e}c\rd");
    claude.write("assistant", serde_json::json!({"message": {"content": [
        {"type": "tool_use", "name": "x\u{1b}[1m", "input": {}}, {"type": "text", "text": "\u{9b}2J\nnext\tline\u{8}"}
    ]}}));
    for args in [&["conversation"][..], &["conversation", "--json"], &["conversation", "--color", "always"]] {
        let shown = scene.ok(args).replace("\u{1b}[1m", "").replace("\u{1b}[2m", "").replace("\u{1b}[36m", "");
        let shown = shown.replace("\u{1b}[0m", "").replace("\u{1b}[39m", "").replace("\u{1b}[22m", "");
        let odd = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
        assert!(!shown.contains(odd), "{args:?}: {shown:?}");
    }
    assert!(scene.ok(&["conversation"]).contains("you      a\\x1b[2J\\x1b]52;c;ZXZpbA==\\x07b\\u{202e}c\\rd\n"));
}

#[test]
fn an_agent_without_a_transcript_reads_back_what_it_reported() {
    let scene = scene();
    let turn = |session: &str, id: u32, prompt: &str| {
        let report = |event: &str, mut more: Value| {
            more["agent"] = json!("my-agent");
            more["turn"] = json!(format!("p{id}"));
            assert_eq!(scene.generic_event(session, event, more), Value::Null);
        };
        report("prompt", json!({ "text": prompt }));
        for event in ["before-tool", "after-tool"] {
            report(event, json!({ "tool": "shell", "call": format!("c{id}"), "command": "true" }));
        }
        let text = format!("{prompt}: {}", "x".repeat(30_000));
        report("message", json!({ "role": "assistant", "text": text }));
        report("turn-ended", json!({ "message": format!("{prompt}: xxx") }));
    };
    turn("s1", 1, "one");
    turn("s1", 2, "two");
    let document = scene.json(&["conversation"]);
    assert_eq!(document["source"], "reports");
    let said = document["said"].as_array().unwrap();
    let order: Vec<_> =
        said.iter().map(|one| format!("{} {}", one["turn"], one["speaker"].as_str().unwrap())).collect();
    assert_eq!(order, ["1 user", "1 tool", "1 assistant", "2 user", "2 tool", "2 assistant"]);
    // Whole: the agent has nothing else to go on with.
    assert_eq!(said[2]["text"].as_str().unwrap().len(), 30_005);
    let done = scene.json(&["summarize", "t2", "--up-to", "--yes"]);
    let branch = done["conversation"]["agent_id"].as_str().unwrap();
    turn(branch, 3, "three");
    let document = scene.json(&["conversation", branch]);
    let said = document["said"].as_array().unwrap();
    assert_eq!((&said[0]["speaker"], &said[1]["turn"], &said[4]["turn"]), (&"summary".into(), &2.into(), &3.into()));
    let shown = scene.told(&["conversation", branch]);
    assert!(shown.contains("a summary stands for the first 1 turn; `piton conversation "), "{shown}");
}
