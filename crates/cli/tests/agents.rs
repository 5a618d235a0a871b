//! The real Claude Code with piton's hooks, installed by `piton setup`, offline against a scripted model.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "agents/whose.rs"]
mod whose;

use piton_testkit::{ClaudeCode, Model, Say, Scene, Turn, snapshot};
use serde_json::{Value, json};

/// In a folder with a space in its name.
fn scene() -> Scene {
    let scratch = tempfile::Builder::new().prefix("a place ").tempdir().unwrap();
    let mut scene = Scene::with_a_home_in(env!("CARGO_BIN_EXE_piton"), scratch);
    scene.environment.push(("PATH", std::env::var_os("PATH").unwrap()));
    scene
}

/// Claude Code, which knows where piton's store is.
fn claude(scene: &Scene) -> Option<ClaudeCode> {
    let mut claude = ClaudeCode::find_or_say_so()?;
    claude.environment.push(("PITON_HOME".into(), scene.at("store").into()));
    Some(claude)
}

/// The turns of the timeline, oldest first.
fn turns(scene: &Scene) -> Vec<Value> {
    let log = scene.json(&["log", "--steps"]);
    let entries = log["entries"].as_array().unwrap().clone();
    entries.into_iter().rev().filter(|entry| entry["entry"] == "turn").collect()
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
    piton_testkit::needs_network!();
    let scene = scene();
    let Some(claude) = claude(&scene) else { return };
    let (home, work) = (scene.at("home"), scene.world.ws());
    scene.world.write("notes.md", "my notes\n");
    scene.world.write("src/old.txt", "old\n");
    scene.world.write("src/moved.txt", "moved\n");
    scene.ok(&["setup", "claude-code", "--user"]);
    scene.ok(&["doctor"]);
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
    scene.world.write("notes.md", "my notes, edited\n");
    let before_second = snapshot(&work);
    claude.run(&home, &work, &model, "go on", &["--resume", first.session()]);
    assert!(!work.join("src").exists());

    let turns = turns(&scene);
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

    scene.ok(&["rewind", "t2", "--yes"]);
    assert_eq!(snapshot(&work), before_second);
    scene.ok(&["rewind", "t1", "--yes"]);
    assert_eq!(snapshot(&work), start);
    // The same turn by turn, without what the user did.
    scene.ok(&["redo", "--yes"]);
    scene.ok(&["redo", "--yes"]);
    assert!(!work.join("src").exists());
    scene.ok(&["undo", "--yes"]);
    assert_eq!(snapshot(&work), before_second);
    scene.ok(&["undo", "--yes"]);
    scene.world.write("notes.md", "my notes\n");
    assert_eq!(snapshot(&work), start);
    scene.ok(&["verify"]);
}

#[test]
fn a_piton_command_inside_claude_code_is_answered_without_the_model_and_is_no_turn() {
    piton_testkit::needs_network!();
    let scene = scene();
    let Some(claude) = claude(&scene) else { return };
    let (home, work) = (scene.at("home"), scene.world.ws());
    scene.world.write("a.txt", "one\n");
    scene.ok(&["setup"]);
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
    assert_eq!(turns(&scene).len(), 1);
    scene.ok(&["setup", "--remove"]);
    assert!(!home.join(".claude/settings.json").exists());
}

/// The user's own words in the last request for the next message of a conversation, in order.
fn asked(model: &Model) -> Vec<String> {
    let all = model.conversations();
    let last = all.last().expect("the model was asked");
    let texts = last.user_texts().into_iter().filter(|text| !text.trim_start().starts_with("<system-reminder>"));
    texts.map(|text| text.trim().to_owned()).collect()
}

/// Everything in the last request, as one text.
fn whole(model: &Model) -> String {
    model.conversations().last().map(|request| Value::from(request.messages().to_vec()).to_string()).unwrap_or_default()
}

#[test]
fn the_real_claude_code_goes_on_in_a_branch_with_the_turns_before_and_nothing_after() {
    piton_testkit::needs_network!();
    let scene = scene();
    let Some(claude) = claude(&scene) else { return };
    let (home, work) = (scene.at("home"), scene.world.ws());
    scene.world.write("a.txt", "start\n");
    scene.ok(&["setup"]);
    let write = |name: &str, text: &str| ("Write", json!({ "file_path": work.join(name), "content": text }));
    let subagent = json!({
        "description": "a part", "prompt": "do the part", "subagent_type": "general-purpose", "run_in_background": false
    });
    let model = Model::start([
        Turn::new("plan it", [Say::tool("Write", write("a.txt", "planned\n").1), Say::text("it is planned")]),
        Turn::new(
            "build it in parallel",
            [Say::tools([write("b.txt", "b\n"), write("c.txt", "c\n")]), Say::text("both are built")],
        ),
        Turn::new("let somebody finish it", [Say::tool("Agent", subagent), Say::text("somebody finished it")]),
        Turn::new("do the part", [Say::tool("Write", write("d.txt", "d\n").1), Say::text("the part is done")]),
        Turn::new("build it otherwise", [Say::tool("Write", write("e.txt", "e\n").1), Say::text("built otherwise")]),
        Turn::new("polish it", [Say::tool("Write", write("e.txt", "polished\n").1), Say::text("polished")]),
        Turn::new("where were we", [Say::text("at the third")]),
    ]);
    let first = claude.run(&home, &work, &model, "plan it", &[]);
    let original = first.session().to_owned();
    let before_second = snapshot(&work);
    for prompt in ["build it in parallel", "let somebody finish it"] {
        claude.run(&home, &work, &model, prompt, &["--resume", &original]);
    }
    assert!(work.join("d.txt").exists(), "the subagent wrote");
    let end = snapshot(&work);
    let transcript = |id: &str| {
        let projects = std::fs::read_dir(home.join(".claude/projects")).unwrap();
        let mut found = projects.map(|folder| folder.unwrap().path().join(format!("{id}.jsonl")));
        std::fs::read(found.find(|path| path.exists()).unwrap()).unwrap()
    };
    let of_original = transcript(&original);

    let done = scene.json(&["rewind", "t2", "--scope", "both", "--yes"]);
    assert_eq!(snapshot(&work), before_second);
    let conversation = &done["conversation"];
    assert_eq!(conversation["prompt"], "build it in parallel");
    let branch = conversation["agent_id"].as_str().unwrap().to_owned();
    assert_eq!(conversation["resume"], json!(["claude", "--resume", branch]));
    assert_eq!(conversation["cwd"], json!(work));

    // The branch goes on with the turns before, and nothing after.
    let run = claude.run(&home, &work, &model, "build it otherwise", &["--resume", &branch]);
    assert_eq!(run.session(), branch);
    assert_eq!(asked(&model), ["plan it", "build it otherwise"]);
    let sent = whole(&model);
    assert!(sent.contains("it is planned"), "{sent}");
    for later in ["parallel", "both are built", "somebody", "the part"] {
        assert!(!sent.contains(later), "{later}: {sent}");
    }
    claude.run(&home, &work, &model, "polish it", &["--resume", &branch]);
    assert_eq!(asked(&model), ["plan it", "build it otherwise", "polish it"]);
    let sessions = scene.json(&["sessions"]);
    let of_branch = sessions["sessions"].as_array().unwrap().iter().find(|one| one["agent_id"] == branch.as_str());
    assert_eq!(of_branch.unwrap()["turns"], 3, "{sessions:#}");
    let end_of_branch = snapshot(&work);

    // Back to the original line, which is as it was, and on from there.
    let redone = scene.json(&["redo", "--yes"]);
    assert_eq!(redone["conversation"]["agent_id"], original.as_str());
    assert_eq!(snapshot(&work), end);
    assert_eq!(transcript(&original), of_original, "the original was written to");
    claude.run(&home, &work, &model, "where were we", &["--resume", &original]);
    assert_eq!(asked(&model).first().unwrap(), "plan it");
    let sent = whole(&model);
    assert!(sent.contains("both are built") && sent.contains("somebody finished it"), "{sent}");
    assert!(!sent.contains("built otherwise"), "{sent}");
    let compared = scene.json(&["branch", "compare", &original, &branch]);
    assert_eq!(compared["parted"]["turn"], 2, "{compared:#}");
    let original_turns = ["build it in parallel", "let somebody finish it", "where were we"];
    assert_eq!(words(&compared["turns_a"], "prompt"), original_turns);
    assert_eq!(words(&compared["turns_b"], "prompt"), ["build it otherwise", "polish it"]);
    assert_eq!(words(&compared["diff"]["files"], "path"), ["b.txt", "c.txt", "d.txt", "e.txt"]);
    // And the branch is still what it was.
    let back = format!("{branch}:t3.end");
    scene.json(&["rewind", &back, "--scope", "code", "--yes"]);
    assert_eq!(snapshot(&work), end_of_branch);
    scene.ok(&["verify"]);
}

#[test]
fn the_real_claude_code_goes_back_before_a_compaction_and_to_turns_from_before_piton() {
    piton_testkit::needs_network!();
    let scene = scene();
    let Some(claude) = claude(&scene) else { return };
    let (home, work) = (scene.at("home"), scene.world.ws());
    scene.world.write("a.txt", "start\n");
    let talk = |prompt: &str, answer: &str| Turn::new(prompt, [Say::text(answer)]);
    let model = Model::start([
        talk("say one", "one is said"),
        talk("say two", "two is said"),
        Turn::new(
            "write three",
            [
                Say::tool("Write", json!({ "file_path": work.join("a.txt"), "content": "three\n" })),
                Say::text("three is written"),
            ],
        ),
        talk("go on after one", "gone on"),
        talk("go on after two", "gone on"),
    ]);
    // Two turns before piton is there, the third with it, and then the agent shortens its conversation.
    let first = claude.run(&home, &work, &model, "say one", &[]);
    let original = first.session().to_owned();
    claude.run(&home, &work, &model, "say two", &["--resume", &original]);
    scene.ok(&["setup"]);
    claude.run(&home, &work, &model, "write three", &["--resume", &original]);
    claude.try_run(&home, &work, &model, "/compact", &["--resume", &original]).unwrap();
    assert_eq!(turns(&scene).last().unwrap()["number"], 3, "turns from before piton count");

    // The second turn has no checkpoint, and is in the transcript all the same.
    let done = scene.json(&["rewind", "t2", "--scope", "conversation", "--yes"]);
    assert_eq!(done["conversation"]["prompt"], "say two");
    let branch = done["conversation"]["agent_id"].as_str().unwrap().to_owned();
    claude.run(&home, &work, &model, "go on after one", &["--resume", &branch]);
    assert_eq!(asked(&model), ["say one", "go on after one"]);
    scene.ok(&["redo", "--yes"]);

    // Files and conversation before the compaction.
    let done = scene.json(&["rewind", &format!("{original}:t3"), "--scope", "both", "--yes"]);
    assert_eq!(std::fs::read_to_string(work.join("a.txt")).unwrap(), "start\n");
    let branch = done["conversation"]["agent_id"].as_str().unwrap().to_owned();
    claude.run(&home, &work, &model, "go on after two", &["--resume", &branch]);
    assert_eq!(asked(&model), ["say one", "say two", "go on after two"]);
    scene.ok(&["verify"]);
}

#[test]
fn claude_code_is_told_what_an_undo_changed_and_its_user_that_a_session_was_rewound() {
    piton_testkit::needs_network!();
    let scene = scene();
    let Some(claude) = claude(&scene) else { return };
    let (home, work) = (scene.at("home"), scene.world.ws());
    scene.world.write("a.txt", "one\n");
    scene.ok(&["setup", "claude-code", "--user"]);
    let model = Model::start([
        Turn::new(
            "break it",
            [Say::tool("Bash", json!({ "command": "sleep 0.1; echo broken > a.txt" })), Say::text("broken")],
        ),
        Turn::new(
            "go on",
            [Say::tool("Bash", json!({ "command": "sleep 0.1; echo two > a.txt" })), Say::text("gone on")],
        ),
        Turn::new("and on", [Say::text("gone further")]),
    ]);
    let first = claude.run(&home, &work, &model, "break it", &[]);
    let asked = |model: &Model| model.conversations().last().unwrap().body["messages"].to_string();
    scene.ok(&["undo", "--yes"]);
    claude.run(&home, &work, &model, "go on", &["--resume", first.session()]);
    let messages = asked(&model);
    assert!(messages.contains("undid turn 1 “break it”") && messages.contains("- modified: a.txt"), "{messages}");
    // Rewound, and gone on in the old session all the same: both at once.
    scene.ok(&["rewind", "t2", "--yes"]);
    assert_eq!(std::fs::read_to_string(work.join("a.txt")).unwrap(), "one\n");
    let arguments = ["--resume", first.session(), "--output-format", "stream-json", "--verbose"];
    let run = claude.try_run(&home, &work, &model, "and on", &arguments).unwrap();
    assert!(run.status.success(), "{}", run.stdout);
    let messages = asked(&model);
    assert!(messages.contains("rewound the files to before turn 2"), "{messages}");
    let folder = std::fs::read_dir(home.join(".claude/projects")).unwrap().next().unwrap().unwrap().path();
    let transcript = std::fs::read_to_string(folder.join(format!("{}.jsonl", first.session()))).unwrap();
    let line = "piton: this session was rewound to before turn 2";
    assert!(transcript.contains(line) || run.stdout.contains(line), "{}\n{transcript}", run.stdout);
}
