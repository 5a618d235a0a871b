//! Records what a Claude Code tells its hooks, and its transcript, as fixtures.
//!
//! `cargo run -p piton-testkit --example record_claude -- FOLDER`, with `PITON_TEST_CLAUDE` naming another version's
//! program. Writes `hooks.jsonl` and `transcript.jsonl`, with generic paths and long texts cut.

#![allow(clippy::unwrap_used, reason = "whoever records is there to read what went wrong")]

use std::path::Path;

use piton_testkit::{ClaudeCode, Model, Say, Turn};
use serde_json::{Value, json};

const EVENTS: [&str; 17] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "Notification",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "CwdChanged",
    "WorktreeCreate",
    "WorktreeRemove",
    "SessionEnd",
];

const LONGEST_TEXT: usize = 200;

fn main() {
    let folder = std::env::args_os().nth(1).expect("the folder to write to");
    let folder = Path::new(&folder);
    let claude = ClaudeCode::find().unwrap_or_else(|missing| panic!("{missing}"));
    let scratch = tempfile::tempdir().unwrap();
    let base = scratch.path().canonicalize().unwrap();
    let [home, work] = ["home", "work"].map(|name| base.join(name));
    std::fs::create_dir_all(home.join(".claude")).unwrap();
    std::fs::create_dir(&work).unwrap();
    let hook = "line=$(cat); printf '%s\\n' \"$line\" >> \"$HOME/told\"";
    let hook = json!([{ "hooks": [{ "type": "command", "command": hook }] }]);
    let hooks: serde_json::Map<_, _> = EVENTS.map(|event| (event.to_owned(), hook.clone())).into_iter().collect();
    std::fs::write(home.join(".claude/settings.json"), json!({ "hooks": hooks }).to_string()).unwrap();

    let model = Model::start(script(&work));
    let first = claude.run(&home, &work, &model, "write the notes", &[]);
    let session = first.session().to_owned();
    for prompt in ["work in the background", "ask two helpers", "/compact"] {
        let run = claude.run(&home, &work, &model, prompt, &["--resume", &session]);
        eprintln!("{prompt}: {:?} {:?}", run.took, run.answer());
    }

    let generic = |text: String| {
        let slug = |path: &Path| path.to_str().unwrap().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        // A folder comes before its parent.
        [
            (work.to_str().unwrap(), "/home/dev/work"),
            (home.join("claude-0").to_str().unwrap(), "/tmp/claude-1000"),
            (home.to_str().unwrap(), "/home/dev"),
            (&slug(&work), "-home-dev-work"),
            (kernel.trim(), "6.1.0"),
        ]
        .iter()
        .fold(text, |text, (from, to)| text.replace(from, to))
    };
    let transcripts = home.join(".claude/projects");
    let project = std::fs::read_dir(&transcripts).unwrap().next().unwrap().unwrap().path();
    std::fs::create_dir_all(folder).unwrap();
    for (from, to) in
        [(home.join("told"), "hooks.jsonl"), (project.join(format!("{session}.jsonl")), "transcript.jsonl")]
    {
        let text = generic(std::fs::read_to_string(from).unwrap());
        let lines: Vec<String> = text.lines().map(cut).collect();
        std::fs::write(folder.join(to), lines.join("\n") + "\n").unwrap();
    }
}

/// Three turns with what happens in real ones: files named by tools, files that Bash moves around, tools that fail,
/// parallel calls, a command and a subagent left running, two subagents at once.
fn script(work: &Path) -> Vec<Turn> {
    let write = |name: &str, content: &str| ("Write", json!({ "file_path": work.join(name), "content": content }));
    let edit = |old: &str, new: &str| {
        ("Edit", json!({ "file_path": work.join("notes.md"), "old_string": old, "new_string": new }))
    };
    let bash = |command: &str| ("Bash", json!({ "command": command, "description": "Run a command" }));
    let agent = |prompt: &str, background: bool| {
        let kind = "general-purpose";
        let input =
            json!({ "description": "Help", "prompt": prompt, "subagent_type": kind, "run_in_background": background });
        ("Agent", input)
    };
    let late = json!({ "command": "sleep 1; echo late > late.md", "description": "Wait", "run_in_background": true });
    vec![
        Turn::new(
            "write the notes",
            [
                Say::tools([write("notes.md", "one\ntwo\n")]),
                Say::tools([edit("two", "three")]),
                Say::tools([bash("mkdir old && cp notes.md old/a && mv old/a old/b && touch gone && rm gone")]),
                Say::tools([bash("echo broken >&2; exit 3")]),
                Say::tools([edit("absent", "x")]),
                Say::tools([
                    write("left.md", "left\n"),
                    write("right.md", "right\n"),
                    bash("cat notes.md > middle.md"),
                ]),
                Say::tools([bash("ls"), bash("cat left.md"), ("Read", json!({ "file_path": work.join("left.md") }))]),
                Say::text("the notes are written"),
            ],
        ),
        Turn::new(
            "work in the background",
            [Say::tool("Bash", late), Say::tools([agent("write the index", true)]), Say::text("the work goes on")],
        ),
        Turn::new(
            "ask two helpers",
            [
                Say::tools([agent("write the first chapter", false), agent("write the second chapter", false)]),
                Say::text("both helped"),
            ],
        ),
        Turn::new(
            "write the index",
            [
                Say::tools([write("index.md", "notes.md\n")]),
                Say::tools([bash("wc -l index.md > count")]),
                Say::text("index.md lists everything"),
            ],
        ),
        Turn::new("write the first chapter", [Say::tools([bash("sleep 0.3; echo 1 > first.md")])]),
        Turn::new("write the second chapter", [Say::tools([bash("sleep 0.3; echo 2 > second.md")])]),
    ]
}

/// Shortens a line by what nobody would read.
fn cut(line: &str) -> String {
    let mut value: Value = serde_json::from_str(line).unwrap();
    let mut changed = cut_texts(&mut value);
    // What was said stays complete; the agent's own notes (prompts, tool schemas) are of no use here.
    if !matches!(value["type"].as_str(), None | Some("user" | "assistant")) {
        for part in children(&mut value) {
            changed |= children(part).map(hollow).fold(false, |any, changed| any | changed);
        }
    }
    if changed { value.to_string() } else { line.to_owned() }
}

/// Whether any text was too long.
fn cut_texts(value: &mut Value) -> bool {
    let Value::String(text) = value else {
        return children(value).map(cut_texts).fold(false, |any, changed| any | changed);
    };
    let length = text.chars().count();
    if length > LONGEST_TEXT {
        let kept: String = text.chars().take(LONGEST_TEXT).collect();
        *text = format!("{kept}… ({length} characters)");
    }
    length > LONGEST_TEXT
}

/// Empties a list or an object that is too long, and returns whether it was.
fn hollow(value: &mut Value) -> bool {
    let long = value.to_string().len() > 2 * LONGEST_TEXT;
    match value {
        Value::Array(all) if long => all.clear(),
        Value::Object(all) if long => all.clear(),
        _ => return false,
    }
    true
}

fn children(value: &mut Value) -> Box<dyn Iterator<Item = &mut Value> + '_> {
    match value {
        Value::Array(all) => Box::new(all.iter_mut()),
        Value::Object(all) => Box::new(all.values_mut()),
        _ => Box::new(std::iter::empty()),
    }
}
