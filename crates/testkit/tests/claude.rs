//! The real Claude Code does what a test scripted, and calls its hooks.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;

use piton_testkit::{ClaudeCode, Model, Say, Turn};
use serde_json::{Value, json};

const EVENTS: [&str; 6] = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"];

/// A hook of the user's that appends its input to a file.
fn install_hook(home: &Path) {
    let script = home.join("hook.sh");
    std::fs::write(&script, "line=$(cat)\nprintf '%s\\n' \"$line\" >> \"$HOME/told\"\n").unwrap();
    let hook = json!([{ "hooks": [{ "type": "command", "command": format!("sh '{}'", script.display()) }] }]);
    let hooks: serde_json::Map<String, Value> =
        EVENTS.map(|event| (event.to_owned(), hook.clone())).into_iter().collect();
    std::fs::create_dir(home.join(".claude")).unwrap();
    std::fs::write(home.join(".claude/settings.json"), json!({ "hooks": hooks }).to_string()).unwrap();
}

fn told(home: &Path) -> Vec<Value> {
    let told = std::fs::read_to_string(home.join("told")).unwrap();
    told.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn claude_code_works_through_a_script_and_tells_its_hooks_of_every_step() {
    piton_testkit::needs_network!();
    let Some(claude) = ClaudeCode::find_or_say_so() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let [home, workspace] = ["home", "work"].map(|name| scratch.path().canonicalize().unwrap().join(name));
    for folder in [&home, &workspace] {
        std::fs::create_dir(folder).unwrap();
    }
    install_hook(&home);
    let notes = workspace.join("notes.md");
    let model = Model::start([
        Turn::new(
            "write the notes",
            [
                Say::tool("Write", json!({ "file_path": notes, "content": "one\n" })),
                Say::tool("Bash", json!({ "command": "cp notes.md copy.md", "description": "Copy" })),
                Say::text("both are there"),
            ],
        ),
        Turn::new(
            "change the copy",
            [Say::tool("Bash", json!({ "command": "echo two >> copy.md", "description": "Append" }))],
        ),
    ]);

    let first = claude.run(&home, &workspace, &model, "write the notes", &[]);
    assert_eq!(first.answer(), "both are there");
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "one\n");
    assert_eq!(std::fs::read_to_string(workspace.join("copy.md")).unwrap(), "one\n");

    let second = claude.run(&home, &workspace, &model, "change the copy", &["--resume", first.session()]);
    assert_eq!((second.answer(), second.session()), ("done", first.session()));
    assert_eq!(std::fs::read_to_string(workspace.join("copy.md")).unwrap(), "one\ntwo\n");
    let last = model.conversations().pop().unwrap();
    let prompts: Vec<_> = last.user_texts().into_iter().filter(|text| !text.starts_with('<')).collect();
    assert_eq!(prompts, ["write the notes", "change the copy"], "the whole conversation was sent");

    let told = told(&home);
    let events: Vec<_> = told.iter().map(|event| event["hook_event_name"].as_str().unwrap()).collect();
    let tool = ["PreToolUse", "PostToolUse"];
    let begin = ["SessionStart", "UserPromptSubmit"];
    let end = ["Stop", "SessionEnd"];
    assert_eq!(events, [&begin[..], &tool, &tool, &end, &begin, &tool, &end].concat());
    assert!(
        told.iter().all(|event| event["session_id"] == first.session() && event["cwd"] == workspace.to_str().unwrap())
    );
    assert_eq!(told[2]["tool_input"]["file_path"], notes.to_str().unwrap());
    assert_eq!(told[2]["tool_use_id"], told[3]["tool_use_id"]);
    assert_eq!(told[4]["tool_input"]["command"], "cp notes.md copy.md");
}
