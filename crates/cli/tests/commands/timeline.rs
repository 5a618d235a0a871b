//! Sessions as the command line shows them: real sessions made through the engine, and the real binary over them.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use piton_engine::model::event::{Event, Report, ToolCall};
use piton_engine::{LiveSession, ObserveOptions, Tool};
use piton_testkit::{Scene, World, both};
use serde_json::{Value, json};

use crate::PITON;

/// A workspace and its store, and the binary in an environment of its own.
fn scene() -> Scene {
    let scene = Scene::new(PITON);
    scene.world.write("src/auth.ts", "one\n").write("notes.md", "one\n");
    scene
}

/// Two turns of one session: an edit, a shell, a failure, the user's own edit between them.
fn with_a_session() -> Scene {
    let scene = scene();
    let mut workspace = scene.world.open();
    let mut session = workspace.begin_session("claude-code", "run-1").unwrap();
    first_turn(&scene.world, &mut session);
    scene.world.write("notes.md", "mine\n");
    session.begin_turn("make the tests pass\nall of them").unwrap();
    session.before_tool(&Tool::new("2", "Bash").runs("npm install")).unwrap();
    scene.world.write("dist/app.js", "built\n").write("notes.md", "whose?\n").remove("src/login.ts");
    session.after_tool("2").unwrap();
    session.before_tool(&Tool::new("3", "Bash").runs("npm test")).unwrap();
    session.tool_failed("3", "exit code 1").unwrap();
    session.end_turn().unwrap();
    scene
}

fn first_turn(world: &World, session: &mut LiveSession<'_>) {
    session.begin_turn("add a login page").unwrap();
    session.before_tool(&Tool::new("1", "Write").names("src/login.ts")).unwrap();
    world.write("src/login.ts", "login\n");
    session.after_tool("1").unwrap();
    session.end_turn().unwrap();
}

/// What a command prints, without what differs from run to run.
#[track_caller]
fn check(scene: &Scene, args: &[&str], expected: &str) {
    assert_eq!(format!("\n{}", steady(&scene.ok(args))), expected, "{args:?}");
}

/// Ids become `ID`, ages `AGE`, and columns two spaces.
fn steady(text: &str) -> String {
    let is_id = |word: &str| matches!(word.len(), 8 | 16) && word.bytes().all(|b| (b'k'..=b'z').contains(&b));
    let mut out = String::new();
    for line in text.lines() {
        let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
        let mut words: Vec<String> = Vec::new();
        for word in rest.split(' ') {
            let bare = word.trim_end_matches([',', ':', ')']);
            words.push(if is_id(bare) { word.replace(bare, "ID") } else { word.to_owned() });
        }
        let mut rest = words.join(" ").replace("just now", "AGE");
        for seconds in (5..60).rev() {
            rest = rest.replace(&format!("{seconds} s ago"), "AGE");
        }
        while rest.contains("   ") {
            rest = rest.replace("   ", "  ");
        }
        out += &format!("{indent}{}\n", rest.replace("AGE  ", "AGE ").replace("  AGE", " AGE"));
    }
    out
}

#[test]
fn the_log_goes_turn_by_turn_with_the_users_own_edits() {
    let scene = with_a_session();
    check(
        &scene,
        &["log"],
        "
  t2 AGE make the tests pass …  +1 -1  claude-code yqws
    you  ~ notes.md
    unsure  ~ notes.md
  t1 AGE add a login page  +1
  ID AGE the first session began  +2
",
    );
}

#[test]
fn steps_and_files_are_shown_on_demand_with_owners_and_evidence() {
    let scene = with_a_session();
    check(
        &scene,
        &["log", "--steps", "-n", "2"],
        "
  t2 AGE make the tests pass …  +1 -1  claude-code yqws
    t2.1  Bash npm install  +1 -1
    t2.2  Bash npm test  =  failed
    you  ~ notes.md
    unsure  ~ notes.md
  t1 AGE add a login page  +1
    t1.1  Write src/login.ts  +1
",
    );
    check(
        &scene,
        &["log", "--files", "-n", "2"],
        "
  t2 AGE make the tests pass …  +1 -1  claude-code yqws
    t2.1  + dist/app.js  (changed while only Bash ran)
    t2.1  - src/login.ts  (changed while only Bash ran)
    you  ~ notes.md
    unsure  ~ notes.md  (t2.1 Bash or you)
  t1 AGE add a login page  +1
    t1.1  + src/login.ts  (Write names it)
",
    );
}

#[test]
fn the_log_can_be_narrowed_by_path_session_and_age() {
    let scene = with_a_session();
    let targets = |args: &[&str]| -> Vec<String> {
        let log = scene.json(&[&["log"], args].concat());
        log["entries"].as_array().unwrap().iter().filter_map(|e| e["target"].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(targets(&[]), ["t2", "t1"]);
    assert_eq!(targets(&["--path", "src/login.ts"]), ["t2", "t1"]);
    assert_eq!(targets(&["--path", "notes.md"]), ["t2"]);
    assert_eq!(targets(&["--path", "dist"]), ["t2"]);
    assert_eq!(targets(&["--path", "nosuch"]), [""; 0]);
    assert_eq!(targets(&["--session", "run-1", "--since", "2h", "-n", "1"]), ["t2"]);
    assert_eq!(targets(&["--since", "0s"]), [""; 0]);
    assert!(
        scene.fails(&["log", "--since", "yesterday"]).contains("`yesterday` is not an age\nhint: an age is a number")
    );
    assert!(
        scene.fails(&["log", "--session", "nosuch"]).contains("there is no session `nosuch`\nhint: `piton sessions`")
    );
    // The flat list is what it was: every checkpoint, automatic ones too.
    let flat = scene.json(&["log", "--checkpoints", "-n", "3"]);
    assert_eq!(flat["checkpoints"].as_array().unwrap().len(), 3);
    assert!(flat["total"].as_u64().unwrap() > 8, "{flat}");
    assert!(flat["checkpoints"][0]["cause"] == "turn-end" && flat["checkpoints"][0]["turn"] == 2, "{flat}");
    assert!(scene.ok(&["log", "--checkpoints"]).contains("t2.1  before Bash npm install"));
}

#[test]
fn checkpoints_by_hand_and_rewinds_stand_among_the_turns() {
    let scene = with_a_session();
    scene.ok(&["checkpoint", "release", "-m", "it works"]);
    scene.ok(&["rewind", "t2", "--yes"]);
    scene.ok(&["redo", "--yes"]);
    check(
        &scene,
        &["log", "-n", "4"],
        "
↻ AGE redo of the rewind to before turn 2 “make the tests pass”
↺ AGE rewind to before turn 2 “make the tests pass”  (taken back)
* ID AGE release  it works  =
  t2 AGE make the tests pass …  +1 -1  claude-code yqws
    you  ~ notes.md
    unsure  ~ notes.md
",
    );
}

#[test]
fn two_sessions_at_once_are_told_apart_and_a_script_must_say_which() {
    let scene = with_a_session();
    let mut workspace = scene.world.open();
    let mut other = workspace.begin_session("my-agent", "run-10").unwrap();
    other.begin_turn("\u{1b}[2Jgröße\u{202e}").unwrap();
    check(
        &scene,
        &["log", "-n", "2"],
        "
  t1 AGE \\x1b[2Jgröße\\u{202e}  =  my-agent nxww  running
  yqws:t2 AGE make the tests pass …  +1 -1  claude-code yqws
    you  ~ notes.md
    unsure  ~ notes.md
",
    );
    check(
        &scene,
        &["sessions"],
        "
* ID  my-agent AGE \\x1b[2Jgröße\\u{202e}  1 turn  =  at work, heard AGE
* ID  claude-code AGE add a login page  2 turns  +1  idle, heard AGE
",
    );
    // The other has nothing under way: the one that works is meant.
    scene.ok(&["rewind", "t1", "--preview"]);
    // A whole id is that session, though another begins like it.
    assert_eq!(scene.json(&["changes", "--session", "run-1"])["session"]["agent_id"], "run-1");
    scene.ok(&["rewind", "run-10:t1", "--preview"]);
    let live = scene.json(&["status"]);
    assert_eq!(live["sessions"].as_array().unwrap().len(), 2);
    let status = steady(&scene.ok(&["status"]));
    assert!(status.contains("at work  my-agent ID, t1, heard AGE\nidle  claude-code ID, t2, heard AGE"), "{status}");
    // Where two are in the middle of a turn, a script must say which.
    let mut third = workspace.begin_session("my-agent", "run-3").unwrap();
    third.begin_turn("more").unwrap();
    let said = scene.fails(&["rewind", "t1", "--preview"]);
    assert!(said.contains("several sessions are in the middle of a turn") && said.contains(":t1`"), "{said}");
    let said = scene.fails(&["changes"]);
    assert!(said.contains("several sessions are in the middle of a turn") && said.contains("--session "), "{said}");
}

#[test]
fn the_change_list_is_numbered_and_the_users_own_have_no_number() {
    let scene = with_a_session();
    check(
        &scene,
        &["changes"],
        "
[1] src/login.ts (created) - AGE t1.1 Write
[2] dist/app.js (created)  - AGE t2.1 Bash
[3] src/login.ts (deleted) - AGE t2.1 Bash
[4] notes.md (modified)  - AGE unsure: t2.1 or you

4 changes to 3 files in 2 turns: 1 created, 1 modified; 1 unsure
",
    );
    let all = scene.ok(&["changes", "--all"]);
    assert!(all.contains("; 1 unsure; 1 of yours\n") && all.contains("    notes.md (modified)"), "{all}");
    let numbers = |args: &[&str]| -> Vec<Value> {
        scene.json(args)["changes"].as_array().unwrap().iter().map(|change| change["number"].clone()).collect()
    };
    assert_eq!(numbers(&["changes"]), [json!(1), json!(2), json!(3), json!(4)]);
    assert_eq!(numbers(&["changes", "--all"]), [json!(1), Value::Null, json!(2), json!(3), json!(4)]);
    let bare = self::scene();
    bare.ok(&["checkpoint"]);
    let said = bare.fails(&["changes"]);
    assert!(said.contains("no session is recorded here") && said.contains("hint: `piton diff`"), "{said}");
}

#[test]
fn a_note_can_be_made_on_any_checkpoint_read_from_stdin_and_taken_away() {
    let scene = with_a_session();
    let shown = scene.ok(&["annotate", "t2", "before\nthe tests \u{1b}[2J"]);
    assert_eq!(steady(&shown), "checkpoint ID before\\nthe tests \\x1b[2J\n".replace("ID", "ID:"));
    let mut child = scene.piton(&["annotate", "t2", "-", "--json"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all("from größe\n".as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    let document: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(document["checkpoint"]["annotation"], "from größe");
    assert!(scene.ok(&["annotate", "t2", ""]).ends_with("has no note now\n"));
    assert_eq!(scene.json(&["show", "t2"])["checkpoint"]["annotation"], Value::Null);
    assert!(scene.fails(&["annotate", "t9", "x"]).contains("has no turn 9; its last one is 2\nhint: `piton log"));
    assert!(scene.fails(&["annotate", "t2.7", "x"]).contains("hint: `piton log --steps`"));
    assert!(scene.fails(&["annotate", "t2", &"x".repeat(10_001)]).contains("at most 10000 characters"));
}

#[test]
fn a_search_finds_prompts_names_notes_steps_and_paths_newest_first() {
    let scene = with_a_session();
    scene.ok(&["checkpoint", "größer", "-m", "say \"hello\" AND *go* - NOT now"]);
    scene.world.write(std::ffi::OsStr::from_bytes(b"caf\xe9 bar.txt"), "x");
    scene.ok(&["checkpoint"]);
    let kinds = |words: &[&str]| -> Vec<String> {
        let found = scene.json(&[&["search"], words].concat());
        found["found"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(kinds(&["login"]), ["path", "path", "step", "prompt"]);
    assert_eq!(kinds(&["login", "page"]), ["prompt"]);
    assert_eq!(kinds(&["login page"]), ["prompt"]);
    assert_eq!(kinds(&["npm"]), ["step", "step"]);
    assert_eq!(kinds(&["npm inst"]), ["step"]);
    assert_eq!(kinds(&["src/login.ts"]), ["path", "path", "step"]);
    assert_eq!(kinds(&["GRÖSSER"]), [""; 0]);
    assert_eq!(kinds(&["GRÖßE"]), ["name"]);
    assert_eq!(kinds(&["bar.txt"]), ["path"]);
    for words in [&["\"hello\""][..], &["hello\""], &["*go*"], &["AND"], &["NOT", "now"], &["say", "-", "hello"]] {
        assert_eq!(kinds(words), ["annotation"], "{words:?}");
    }
    // No character has a meaning of its own.
    for words in [&["\""][..], &["*"], &["*go*"]] {
        assert_eq!(kinds(words), ["annotation"], "{words:?}");
    }
    for words in [&["NEAR("][..], &["zzz"], &["zz"], &["text:login"]] {
        let done = scene.run(&[&["search"], words].concat());
        assert_eq!(done.status.code(), Some(0), "{words:?}: {}", both(&done));
        assert!(done.stdout.is_empty() && both(&done).contains("nothing has all of these words"), "{words:?}");
        assert_eq!(kinds(words), [""; 0]);
    }
    // What a note no longer says is not found.
    scene.ok(&["annotate", "größer", "other"]);
    assert_eq!(kinds(&["hello"]), [""; 0]);
    assert_eq!(kinds(&["other"]), ["annotation"]);
    // What it says to type means that moment.
    let found = scene.json(&["search", "npm", "test"]);
    let target = found["found"][0]["target"].as_str().unwrap().to_owned();
    assert_eq!(scene.json(&["show", &target])["checkpoint"]["description"], "Bash npm test");
    let text = scene.ok(&["search", "tests", "--color", "always"]);
    assert!(text.contains("make the \x1b[1mtests\x1b[0m pass all of them"), "{text:?}");
    assert_eq!(scene.ok(&["search", "npm", "-n", "1"]).lines().count(), 1);
}

#[test]
fn a_checkpoint_shows_its_place_and_who_changed_what() {
    let scene = with_a_session();
    let after = scene.json(&["log", "--checkpoints"]);
    let after = after["checkpoints"].as_array().unwrap();
    let after = after.iter().find(|c| c["cause"] == "after-tool" && c["step"] == 1 && c["turn"] == 2).unwrap();
    let text = steady(&scene.ok(&["show", after["id"].as_str().unwrap()]));
    for line in [
        "place  session ID of claude-code, after t2.1",
        "  + dist/app.js (changed while only t2.1 ran)",
        "  ~ notes.md (unsure: t2.1 or you)",
        "  - src/login.ts (changed while only t2.1 ran)",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(text.contains("after Bash npm install") && !text.contains("pinned"), "{text}");
    let before = scene.json(&["show", "t2"])["checkpoint"]["id"].as_str().unwrap().to_owned();
    let prompt = steady(&scene.ok(&["show", &before]));
    assert!(prompt.contains("before t2\n") && prompt.contains("  ~ notes.md (you)\n"), "{prompt}");
    scene.ok(&["checkpoint", "mine"]);
    assert!(scene.ok(&["show", "mine"]).contains("pinned"));
}

#[test]
fn a_checkpoint_has_a_size_and_its_tool_call_has_the_agents_own_id() {
    let scene = with_a_session();
    // src/auth.ts and notes.md, then src/login.ts with them.
    let before = scene.json(&["show", "t1.1"]);
    assert_eq!((&before["checkpoint"]["size"], &before["call"]), (&json!(8), &json!("1")));
    assert_eq!(scene.json(&["show", "t1.end"])["checkpoint"]["size"], 14);
    assert!(steady(&scene.ok(&["show", "t1.end"])).contains("size  14 B in all its files"));
    let all = scene.json(&["log", "--checkpoints"]);
    let sizes: Vec<_> = all["checkpoints"].as_array().unwrap().iter().map(|c| c["size"].as_u64().unwrap()).collect();
    assert_eq!(sizes.last(), Some(&8), "{sizes:?}");
}

#[test]
fn a_gap_is_shown_wherever_somebody_looks() {
    let scene = with_a_session();
    let mut workspace = World::at(scene.world.base(), |around| around.limit.files = 1).open();
    let report = |event| Report {
        agent: "claude-code".into(),
        session: "run-1".into(),
        cwd: Some(scene.world.ws()),
        transcript: None,
        prompt_id: None,
        subagent: None,
        event,
    };
    let call =
        ToolCall { id: Some("9".into()), tool: "Bash".into(), summary: "Bash make".into(), ..ToolCall::default() };
    let embedded = || ObserveOptions { embedded: true, ..ObserveOptions::default() };
    // Only what is listed is counted, and a folder in which nothing changed need not be.
    scene.world.write("one-more", "1");
    let observed = workspace.observe(&report(Event::BeforeTool(call.clone())), &embedded()).unwrap();
    assert!(observed.gap.is_some(), "{observed:?}");
    let reason = format!("{} holds more than 1 files", scene.world.ws().display());
    let log = steady(&scene.ok(&["log", "-n", "1"]));
    assert!(log.contains(&format!("    gap  before Bash make: {reason}")), "{log}");
    let status = scene.run(&["status"]);
    assert_eq!(status.status.code(), Some(1), "what is not captured is not protected");
    let status = steady(&String::from_utf8_lossy(&status.stdout));
    assert!(status.contains(&format!("gaps  1 gap in the last session; the last before t2.3: {reason}")), "{status}");
    assert!(steady(&scene.ok(&["sessions"])).ends_with("idle, heard AGE, 1 gap\n"));
    assert!(steady(&scene.ok(&["show", "t2.3"])).contains(&format!("gap  before Bash make: {reason}")));
    let said = scene.fails(&["rewind", "t2.3", "--preview"]);
    assert!(said.contains(&format!("there is no checkpoint for `t2.3`: {reason}")), "{said}");
    assert!(said.contains("hint: `piton log --checkpoints`"), "{said}");
    // Before the first turn of a session there is no turn to show it with.
    let start = Report { session: "other".into(), ..report(Event::SessionStarted { source: None }) };
    workspace.observe(&start, &embedded()).unwrap();
    let log = steady(&scene.ok(&["log", "-n", "1"]));
    assert!(log.starts_with(&format!("! AGE gap  at the session's start: {reason}")), "{log}");
}

#[test]
fn a_session_without_turns_and_a_workspace_without_sessions_have_a_log_too() {
    let scene = scene();
    scene.ok(&["checkpoint", "first"]);
    check(&scene, &["log"], "\n* ID AGE first  +2\n");
    assert!(both(&scene.run(&["sessions"])).contains("no agent has reported here yet"));
    assert_eq!(scene.json(&["sessions"])["sessions"], json!([]));
    scene.world.open().begin_session("claude-code", "quiet").unwrap();
    check(&scene, &["log"], "\n* ID AGE first  +2\n");
    assert!(steady(&scene.ok(&["status"])).contains("idle  claude-code ID, before its first turn, heard AGE"));
}

#[test]
fn the_fifty_first_checkpoint_by_hand_in_a_session_is_refused_with_a_way_out() {
    let scene = scene();
    let mut workspace = scene.world.open();
    let mut session = workspace.begin_session("claude-code", "run-1").unwrap();
    session.begin_turn("go").unwrap();
    for _ in 0..50 {
        session.workspace().capture(&Default::default()).unwrap();
    }
    let said = scene.fails(&["checkpoint", "one-more"]);
    assert!(said.contains("50 manual checkpoints") && said.contains("piton annotate TARGET TEXT"), "{said}");
    session.end().unwrap();
    scene.ok(&["checkpoint", "one-more"]);
}
