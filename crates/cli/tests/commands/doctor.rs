//! `piton doctor` from outside: it says yes only where capture works.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use piton_agents::claude_code::settings::{EVENTS, HookCommand, install};
use piton_testkit::{Scene, Snapshot, snapshot};
use serde_json::Value;

use crate::PITON;

fn scene() -> Scene {
    let scene = Scene::with_a_home(PITON);
    fs::create_dir(scene.at("home/.claude")).unwrap();
    scene.world.write("a.txt", "one\n");
    scene
}

fn set_up() -> Scene {
    let scene = scene();
    scene.ok(&["setup"]);
    scene
}

/// The checks as `state what: found`, and whether all is well.
#[track_caller]
fn doctor(scene: &Scene, variables: &[(&str, &str)]) -> (bool, Vec<String>) {
    let mut command = scene.piton(&["doctor", "--json"]);
    let done = command.envs(variables.iter().copied()).output().unwrap();
    let report: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
    let works = report["works"].as_bool().unwrap();
    assert_eq!(done.status.code(), Some(if works { 0 } else { 1 }), "{done:?}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let checks = report["checks"].as_array().unwrap().iter();
    let lines = checks.map(|c| format!("{} {}: {}", text(&c["state"]), text(&c["what"]), text(&c["found"])));
    (works, lines.collect())
}

fn outside(scene: &Scene) -> Snapshot {
    snapshot(scene.world.base()).without("tmp").without("store")
}

#[track_caller]
fn assert_has(lines: &[String], beginning: &str, rest: &str) {
    assert!(
        lines.iter().any(|line| line.starts_with(beginning) && line.contains(rest)),
        "{beginning} {rest}: {lines:#?}"
    );
}

#[test]
fn all_is_well_after_a_setup_and_nothing_is_touched() {
    let scene = set_up();
    let before = outside(&scene);
    let (works, lines) = doctor(&scene, &[]);
    assert!(works, "{lines:#?}");
    let all = format!("all {} events report to piton, by ~/.claude/settings.json", EVENTS.len());
    assert_has(&lines, "ok hooks:", &all);
    assert_has(&lines, "ok settings:", "at most 10 s each");
    assert_has(&lines, "ok program:", "hooks run this piton");
    assert_has(&lines, "ok store:", "can be written");
    assert_has(&lines, "ok workspace:", "1 checkpoint");
    assert_has(&lines, "ok round trip:", "the installed hook captured 6 events");
    let now = outside(&scene);
    assert!(now == before, "{}", now.differences(&before).join("\n"));
    assert_eq!(fs::read_dir(scene.at("tmp")).unwrap().count(), 0);
    let said = scene.piton(&["doctor"]).output().unwrap();
    assert!(String::from_utf8_lossy(&said.stdout).ends_with("Capture works.\n"), "{said:?}");
}

#[test]
fn where_another_agent_reports_capture_works_without_claude_code() {
    let scene = scene();
    scene.generic_event("s1", "prompt", serde_json::json!({ "turn": "p1", "text": "write it" }));
    let (works, lines) = doctor(&scene, &[]);
    assert!(works, "{lines:#?}");
    assert_has(&lines, "note hooks:", "Claude Code does not report to piton; generic does");
    assert_has(&lines, "ok sessions:", "1 open session, 1 at work");
}

#[test]
fn without_a_setup_nothing_is_captured_and_that_is_said() {
    let scene = scene();
    let (works, lines) = doctor(&scene, &[]);
    assert!(!works);
    assert_has(&lines, "problem hooks:", "Claude Code does not report to piton");
    assert_has(&lines, "ok round trip:", "which is not installed");
    let said = scene.piton(&["doctor"]).output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("`piton setup` makes it") && said.ends_with("Capture does not work.\n"), "{said}");
}

#[test]
fn whatever_turns_captures_off_is_found() {
    let settings = |scene: &Scene| scene.at("home/.claude/settings.json");
    type Spoil = fn(&Scene, PathBuf);
    /// What is spoiled, in which environment, and which line says so.
    type Case = (Spoil, &'static [(&'static str, &'static str)], &'static str, &'static str);
    let cases: [Case; 8] = [
        (
            |_, file| {
                let text = install("", &HookCommand::new("/gone/piton")).unwrap();
                fs::write(file, text).unwrap();
            },
            &[],
            "problem program:",
            "/gone/piton, which is not there",
        ),
        (
            |_, file| {
                let text = fs::read_to_string(&file).unwrap().replacen('{', "{\"disableAllHooks\": true,", 1);
                fs::write(file, text).unwrap();
            },
            &[],
            "problem hooks:",
            "`disableAllHooks`",
        ),
        (
            |_, file| {
                let text = fs::read_to_string(&file).unwrap().replace("\"Stop\"", "\"Stopped\"");
                fs::write(file, text).unwrap();
            },
            &[],
            "problem hooks:",
            "has none for Stop",
        ),
        (|_, file| fs::write(file, "{ oops").unwrap(), &[], "problem hooks:", "not JSON"),
        (|_, _| (), &[("PITON_HOOK", "off")], "problem settings:", "PITON_HOOK is off"),
        (|_, _| (), &[("PITON_CAPTURE_AUTOMATIC", "false")], "problem round trip:", "does not capture"),
        (|_, _| (), &[("PITON_HOME", "/proc/piton")], "problem store:", "/proc"),
        (
            |scene, _| {
                let folder = fs::read_dir(scene.at("store/workspaces")).unwrap().next().unwrap().unwrap().path();
                // Neither a database nor a place for a new one.
                for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
                    if entry.file_name().to_string_lossy().starts_with("view-") {
                        fs::remove_file(entry.path()).unwrap();
                    }
                }
                fs::create_dir_all(folder.join("view.new/in-the-way")).unwrap();
            },
            &[],
            "problem workspace:",
            "",
        ),
    ];
    for (spoil, variables, beginning, rest) in cases {
        let scene = set_up();
        spoil(&scene, settings(&scene));
        let (works, lines) = doctor(&scene, variables);
        assert!(!works, "{beginning} {rest}: {lines:#?}");
        assert_has(&lines, beginning, rest);
    }
}

#[test]
fn what_went_wrong_earlier_is_a_note() {
    let scene = set_up();
    scene.ok(&["hook", "nobody"]);
    fs::create_dir(scene.at("ws/.piton")).unwrap();
    fs::write(scene.at("ws/.piton/config.toml"), "hook.time-budgett = \"1s\"\n").unwrap();
    let (works, lines) = doctor(&scene, &[]);
    assert!(works, "{lines:#?}");
    assert_has(&lines, "note log:", "1 of the last 1 event went wrong");
    assert_has(&lines, "note settings:", "time-budgett");
    scene.ok(&["setup", "--project"]);
    assert_has(&doctor(&scene, &[]).1, "note hooks:", "several settings files");
}

#[test]
fn what_a_repository_takes_away_and_a_budget_that_is_too_long_are_said() {
    let scene = set_up();
    fs::create_dir(scene.at("ws/.piton")).unwrap();
    let settings = |text: &str| fs::write(scene.at("ws/.piton/config.toml"), text).unwrap();
    settings("tools.readers = [\"*\"]\nhook.time-budget = \"1s\"\n");
    let (_, lines) = doctor(&scene, &[]);
    assert_has(
        &lines,
        "note settings:",
        "this workspace's .piton/config.toml lets almost any tool run without a capture",
    );
    assert_has(&lines, "note settings:", "this workspace's .piton/config.toml gives a capture only 1s");
    assert!(!lines.iter().any(|line| line.starts_with("ok settings:")), "{lines:#?}");
    settings("capture.automatic = false\n");
    let (works, lines) = doctor(&scene, &[]);
    assert!(!works);
    assert_has(&lines, "note settings:", ".piton/config.toml switches automatic captures off");
    assert_has(&lines, "problem settings:", "`capture.automatic` is false (workspace)");
    let said = scene.piton(&["status"]).output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let warning = "warning: this workspace's .piton/config.toml switches automatic captures off";
    assert!(said.lines().any(|line| line == warning), "{said}");
    let json = scene.piton(&["status", "--json"]).output().unwrap();
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["warnings"].as_array().unwrap().len(), 1, "{json}");
    assert!(json["checkpoints"].is_number(), "{json}");
    settings("hook.time-budget = \"10m\"\n");
    let (works, lines) = doctor(&scene, &[]);
    assert!(works, "{lines:#?}");
    assert_has(&lines, "note settings:", "is 600 s; a hook of Claude Code's takes at most 25 s");
    assert_has(&lines, "ok settings:", "at most 25 s each");
    let said = scene.piton(&["status"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&said.stdout).contains("warning:"), "{said:?}");
}

#[test]
fn what_the_workspaces_own_filesystem_can_do_is_tried_out_there_and_nothing_is_left() {
    let scene = set_up();
    scene.ok(&["checkpoint"]);
    let before = outside(&scene);
    for (refused, expected) in [
        ("", "ok filesystem: a rewind replaces each file in one step"),
        ("exchange", "note filesystem: it cannot exchange two names"),
        ("exchange,rename-to-new", "note filesystem: it cannot exchange two names"),
        ("exchange,rename-to-new,link", "note filesystem: it has neither safe renames nor hard links"),
    ] {
        let (works, lines) = doctor(&scene, &[("PITON_TEST_REFUSE", refused)]);
        assert!(works, "{lines:#?}");
        assert_has(&lines, expected, "");
        let now = outside(&scene);
        assert!(now == before, "{}", now.differences(&before).join("\n"));
    }
}

#[test]
fn an_ignore_file_that_cannot_be_read_is_named() {
    let scene = set_up();
    assert!(Command::new("mkfifo").arg(scene.at("ws/.gitignore")).status().unwrap().success());
    scene.ok(&["checkpoint"]);
    let (works, lines) = doctor(&scene, &[]);
    assert!(works, "{lines:#?}");
    assert_has(&lines, "note rules: ", "/ws/.gitignore cannot be read: it is not a regular file");
}

/// It used to say that capture works.
#[test]
fn hooks_that_are_narrowed_rushed_or_turned_off_by_a_variable_are_named() {
    let scene = set_up();
    let path = scene.at("home/.claude/settings.json");
    let whole = fs::read_to_string(&path).unwrap();
    let check = |text: String, beginning: &str, rest: &str| {
        assert_ne!(text, whole);
        fs::write(&path, text).unwrap();
        let (works, lines) = doctor(&scene, &[]);
        assert_has(&lines, beginning, rest);
        assert_eq!(works, beginning.starts_with("note"), "{lines:#?}");
    };
    let from = whole.find("^(?!").unwrap();
    let to = from + whole[from..].find('"').unwrap();
    check(whole.replace(&whole[from..to], "Edit"), "problem hooks:", "only for tools that match `Edit`");
    check(whole.replace("\"timeout\": 30", "\"timeout\": 0.001"), "note hooks:", "gives the hook of");
    let with = |variable: &str| whole.replacen('{', &format!("{{\"env\": {{{variable}}},"), 1);
    check(with("\"PITON_HOOK\": \"off\""), "problem hooks:", "so nothing is captured");
    check(with("\"PITON_CAPTURE_AUTOMATIC\": \"false\""), "note hooks:", "PITON_CAPTURE_AUTOMATIC=false");
}

/// It waited for a minute, and then failed at what it could not try out.
#[test]
fn a_lock_that_is_held_is_told_and_not_waited_for() {
    let scene = set_up();
    scene.ok(&["checkpoint"]);
    let stores = scene.at("store/workspaces").read_dir().unwrap();
    let store = stores.map(|store| store.unwrap().path()).find(|store| store.join("lock").exists()).unwrap();
    let busy = fs::File::options().write(true).open(store.join("lock")).unwrap();
    busy.lock().unwrap();
    let began = std::time::Instant::now();
    let (_, lines) = doctor(&scene, &[]);
    assert!(began.elapsed().as_secs() < 30, "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("note filesystem: not tried out: another piton")), "{lines:?}");
    scene.ok(&["verify"]);
    assert!(began.elapsed().as_secs() < 45);
}

#[test]
fn a_settings_file_that_the_agent_skips_for_a_comment_is_no_hook_that_works() {
    let scene = set_up();
    let settings = scene.at("home/.claude/settings.json");
    let text = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, text.replacen('{', "{ // mine\n", 1)).unwrap();
    let (works, lines) = doctor(&scene, &[]);
    assert!(!works, "{lines:#?}");
    assert_has(&lines, "problem hooks:", "skips the whole of ~/.claude/settings.json: it is not plain JSON");
    let said = piton_testkit::both(&scene.run(&["setup"]));
    assert!(said.contains("skips the whole of ~/.claude/settings.json, so nothing is reported"), "{said}");
}
