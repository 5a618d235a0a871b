//! The real Claude Code with piton's hooks, installed by `piton setup`, offline against a scripted model.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::PathBuf;
use std::process::{Command, Stdio};

use piton_testkit::{ClaudeCode, Model, Say, Turn, snapshot};
use serde_json::{Value, json};

/// A home, a workspace and a store in a scratch folder, with a space in its name.
struct Scene {
    scratch: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let scratch = tempfile::Builder::new().prefix("a place ").tempdir().unwrap();
        for folder in ["home", "work"] {
            std::fs::create_dir(scratch.path().join(folder)).unwrap();
        }
        Self { scratch }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path("work").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[track_caller]
    fn piton(&self, args: &[&str]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_piton"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path("home"))
            .env("PITON_HOME", self.path("store"))
            .current_dir(self.path("work"))
            .stdin(Stdio::null())
            .args(args)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "piton {args:?}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.piton(&[args, &["--json"]].concat())).unwrap()
    }

    /// Claude Code, which knows where piton's store is.
    fn claude(&self) -> Option<ClaudeCode> {
        let mut claude = ClaudeCode::find_or_say_so()?;
        claude.environment.push(("PITON_HOME".into(), self.path("store").into()));
        Some(claude)
    }

    /// The turns of the timeline, oldest first.
    fn turns(&self) -> Vec<Value> {
        let log = self.json(&["log", "--steps"]);
        let entries = log["entries"].as_array().unwrap().clone();
        entries.into_iter().rev().filter(|entry| entry["entry"] == "turn").collect()
    }
}

/// `path who evidence` of a list of files.
fn owners(files: &Value) -> Vec<String> {
    let one = |file: &Value| {
        let owner = &file["owner"];
        let who = owner["who"].as_str().unwrap();
        let step = owner["step"].as_u64().map(|step| format!(" t{}.{step}", owner["turn"])).unwrap_or_default();
        let evidence = owner["evidence"].as_str().map(|e| format!(" {e}")).unwrap_or_default();
        format!("{} {} {who}{step}{evidence}", file["kind"].as_str().unwrap(), file["path"].as_str().unwrap())
    };
    files.as_array().unwrap().iter().map(one).collect()
}

fn words(values: &Value, field: &str) -> Vec<String> {
    values.as_array().unwrap().iter().map(|value| value[field].as_str().unwrap().to_owned()).collect()
}

#[test]
fn two_turns_of_claude_code_and_the_users_own_edits_have_their_owners_and_every_moment_comes_back() {
    let scene = Scene::new();
    let Some(claude) = scene.claude() else { return };
    let (home, work) = (scene.path("home"), scene.path("work"));
    scene.write("notes.md", "my notes\n");
    scene.write("src/old.txt", "old\n");
    scene.write("src/moved.txt", "moved\n");
    scene.piton(&["setup", "claude-code", "--user"]);
    scene.piton(&["doctor"]);
    let model = Model::start([
        Turn::new(
            "make a start",
            [
                Say::tool("Write", json!({ "file_path": work.join("src/new.txt"), "content": "one\ntwo\n" })),
                Say::tool(
                    "Bash",
                    json!({
                        "command": "sleep 0.1; echo made > made.txt; mv src/moved.txt src/there.txt; rm src/old.txt",
                        "description": "Create, move and delete"
                    }),
                ),
                Say::text("made a start"),
            ],
        ),
        Turn::new(
            "go on",
            [
                Say::tool("Read", json!({ "file_path": work.join("src/new.txt") })),
                Say::tool(
                    "Edit",
                    json!({ "file_path": work.join("src/new.txt"), "old_string": "two", "new_string": "three" }),
                ),
                Say::tool("Bash", json!({ "command": "sleep 0.1; rm -rf src; false", "description": "Remove" })),
                Say::text("gone on"),
            ],
        ),
    ]);
    let start = snapshot(&work);
    let first = claude.run(&home, &work, &model, "make a start", &[]);
    assert_eq!(first.answer(), "made a start");
    scene.write("notes.md", "my notes, edited\n");
    let before_second = snapshot(&work);
    claude.run(&home, &work, &model, "go on", &["--resume", first.session()]);
    assert!(!work.join("src").exists());

    let turns = scene.turns();
    assert_eq!(turns.len(), 2, "{turns:#?}");
    assert_eq!(
        words(&turns[0]["steps"], "summary"),
        ["Write src/new.txt", "Bash sleep 0.1; echo made > made.txt; mv src/moved.txt src/there.txt; rm src/old.txt"]
    );
    assert_eq!(owners(&turns[0]["steps"][0]["files"]), ["created src/new.txt step t1.1 named"]);
    assert_eq!(
        owners(&turns[0]["steps"][1]["files"]),
        [
            "created made.txt step t1.2 window",
            "deleted src/moved.txt step t1.2 window",
            "deleted src/old.txt step t1.2 window",
            "created src/there.txt step t1.2 window"
        ]
    );
    assert_eq!(owners(&turns[1]["yours"]), ["modified notes.md you"]);
    assert_eq!(words(&turns[1]["steps"], "summary"), ["Edit src/new.txt", "Bash sleep 0.1; rm -rf src; false"]);
    assert_eq!(words(&turns[1]["steps"], "ending"), ["done", "failed"]);
    assert_eq!(owners(&turns[1]["steps"][0]["files"]), ["modified src/new.txt step t2.1 named"]);
    assert_eq!(
        owners(&turns[1]["steps"][1]["files"]),
        ["deleted src/new.txt step t2.2 window", "deleted src/there.txt step t2.2 window"]
    );
    assert!(turns.iter().all(|turn| turn["gaps"].as_array().unwrap().is_empty()), "{turns:#?}");

    scene.piton(&["rewind", "t2", "--yes"]);
    assert_eq!(snapshot(&work), before_second);
    scene.piton(&["rewind", "t1", "--yes"]);
    assert_eq!(snapshot(&work), start);
    // The same turn by turn, without what the user did.
    scene.piton(&["redo", "--yes"]);
    scene.piton(&["redo", "--yes"]);
    assert!(!work.join("src").exists());
    scene.piton(&["undo", "--yes"]);
    assert_eq!(snapshot(&work), before_second);
    scene.piton(&["undo", "--yes"]);
    scene.write("notes.md", "my notes\n");
    assert_eq!(snapshot(&work), start);
    scene.piton(&["verify"]);
}

#[test]
fn a_piton_command_inside_claude_code_is_answered_without_the_model_and_is_no_turn() {
    let scene = Scene::new();
    let Some(claude) = scene.claude() else { return };
    let (home, work) = (scene.path("home"), scene.path("work"));
    scene.write("a.txt", "one\n");
    scene.piton(&["setup"]);
    let model = Model::start([Turn::new(
        "break it",
        [Say::tool("Bash", json!({ "command": "sleep 0.1; echo broken > a.txt" })), Say::text("broken")],
    )]);
    let run = claude.run(&home, &work, &model, "break it", &[]);
    let asked = model.conversations().len();
    let answer = claude.try_run(&home, &work, &model, "/piton rewind t1", &["--resume", run.session()]).unwrap();
    assert_eq!(model.conversations().len(), asked, "{answer:?}");
    let content = || std::fs::read_to_string(work.join("a.txt")).unwrap();
    assert_eq!(content(), "one\n", "{answer:?}");
    for (typed, expected) in [("redo", "broken\n"), ("undo last 1", "one\n"), ("redo", "broken\n"), ("undo", "one\n")] {
        let typed = format!("/piton {typed}");
        let answer = claude.try_run(&home, &work, &model, &typed, &["--resume", run.session()]).unwrap();
        assert_eq!(content(), expected, "{typed}: {answer:?}");
    }
    assert_eq!(model.conversations().len(), asked);
    assert_eq!(scene.turns().len(), 1);
    scene.piton(&["setup", "--remove"]);
    assert!(!home.join(".claude/settings.json").exists());
}
