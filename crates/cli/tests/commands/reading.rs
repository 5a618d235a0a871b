//! Output that is made to be read: what comes first, in a pager, marked where it stands.

use piton_engine::Tool;
use piton_testkit::{Scene, at_a_terminal, both};

use crate::PITON;

/// A session with so many turns, each of which changes a file.
fn scene(turns: u32) -> Scene {
    let scene = Scene::new(PITON);
    let mut workspace = scene.world.open();
    let mut session = workspace.begin_session("claude-code", "run-1").unwrap();
    for turn in 1..=turns {
        session.begin_turn(&format!("prompt {turn}")).unwrap();
        session.before_tool(&Tool::new(format!("call {turn}"), "Write").names("a.txt")).unwrap();
        scene.world.write("a.txt", format!("{turn}\n"));
        session.after_tool(&format!("call {turn}")).unwrap();
        session.end_turn().unwrap();
    }
    session.end().unwrap();
    scene
}

/// What a terminal shows where `pager` reads.
fn paged(scene: &Scene, args: &[&str], pager: &str) -> (String, Option<i32>) {
    let mut command = scene.piton(args);
    command.env("PITON_PAGER", pager).env("PAGER", "false").env("COLUMNS", "80").env("NO_COLOR", "1");
    command.env("PATH", "/usr/bin:/bin");
    at_a_terminal(command, "")
}

#[test]
fn long_output_is_read_in_the_pager_that_the_user_wants() {
    let scene = scene(2);
    let (shown, code) = paged(&scene, &["log"], "cat -A");
    assert!(shown.contains("prompt 2") && shown.lines().next().is_some_and(|line| line.ends_with('$')), "{shown}");
    assert_eq!(code, Some(0));
    let (shown, _) = paged(&scene, &["diff", "t2"], "sed 's/^/> /'");
    assert!(shown.starts_with("> diff --git a/a.txt b/a.txt\n"), "{shown}");
    // What is said beside it comes once the pager has ended.
    let (shown, _) = paged(&scene, &["log", "-n", "1"], "sed 's/^/> /'");
    assert!(shown.starts_with(">   t2") && shown.trim_end().ends_with("2 older: `piton log --all`"), "{shown}");
    for args in [&["log", "--no-pager"][..], &["log", "--json"], &["status"], &["checkpoint"]] {
        let (shown, _) = paged(&scene, args, "cat -A");
        assert!(!shown.contains('$'), "{args:?}: {shown}");
    }
}

#[test]
fn a_pager_that_is_missing_or_quits_early_is_no_error() {
    let scene = scene(2);
    for (pager, is_shown) in [("nosuch-pager", true), ("", true), ("cat", true), ("true", false), ("head -n 1", true)] {
        let (shown, code) = paged(&scene, &["log"], pager);
        assert_eq!((shown.contains("prompt 2"), code), (is_shown, Some(0)), "{pager}: {shown}");
        assert!(!shown.contains("error"), "{pager}: {shown}");
    }
    // Into a pipe there is none.
    let done = scene.piton(&["log"]).env("PITON_PAGER", "false").output().unwrap();
    assert!(both(&done).contains("prompt 2"));
}

#[test]
fn the_newest_twenty_come_first_and_the_rest_when_asked_for() {
    let scene = scene(25);
    let turns = |shown: &str| shown.lines().filter(|line| line.contains("prompt ")).count();
    let (shown, _) = paged(&scene, &["log"], "cat");
    assert_eq!(turns(&shown), 20, "{shown}");
    assert!(shown.contains("6 older: `piton log -n 100`, `piton log --all`, `piton log --since 2h`"), "{shown}");
    for args in [&["log", "--all"][..], &["log", "--since", "2h"], &["log", "-n", "25"], &["log", "--path", "a.txt"]] {
        assert_eq!(turns(&paged(&scene, args, "cat").0), 25, "{args:?}");
    }
    // A file gets all of it, and so does a program.
    assert_eq!(turns(&scene.ok(&["log"])), 25);
    assert_eq!(scene.json(&["log"])["entries"].as_array().unwrap().len(), 26);
}

#[test]
fn what_became_of_a_turn_is_marked_where_it_stands() {
    let scene = scene(3);
    scene.ok(&["undo", "t3", "--yes"]);
    scene.ok(&["annotate", "t1", "keep this one,\nwhatever happens"]);
    let log = scene.ok(&["log"]);
    let line = |of: &str| log.lines().find(|line| line.contains(of)).unwrap_or_default().to_owned();
    assert!(line("  prompt 3").ends_with("  taken back"), "{log}");
    assert!(!line("  prompt 2").contains("taken back"), "{log}");
    assert!(log.contains("\n    note"), "{log}");
    assert!(line("note").ends_with("keep this one, whatever happens"), "{log}");
    assert_eq!(scene.json(&["log"])["entries"][1]["undone"], "whole");
    scene.ok(&["redo", "--yes"]);
    assert!(!scene.ok(&["log"]).lines().any(|line| line.contains("  prompt 3") && line.contains("taken back")));
}

#[test]
fn piton_alone_says_where_you_stand_and_what_comes_next() {
    let scene = scene(2);
    let here = scene.ok(&[]);
    assert!(here.contains("\nlast turn: turn 2 “prompt 2” of claude-code "), "{here}");
    for next in ["  piton show t2  what turn 2 “prompt 2” did\n", "  piton undo     take back", "  piton log "] {
        assert!(here.contains(next), "{next}\n{here}");
    }
    scene.ok(&["undo", "--yes"]);
    assert!(scene.ok(&[]).contains("  piton redo  take back the undo: turn 2 “prompt 2”\n"), "{}", scene.ok(&[]));
    let nobody = scene.piton(&[]).current_dir("/").output().unwrap();
    assert!(both(&nobody).contains("piton setup") && nobody.status.success(), "{}", both(&nobody));
    let help = scene.ok(&["help"]);
    for group in ["\nEvery day:\n  undo ", "\nSessions and branches:\n", "\nSetting up:\n  setup ", "\nPlumbing:\n"] {
        assert!(help.contains(group), "{group}\n{help}");
    }
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
}

#[test]
fn a_prompt_gets_one_line_from_the_store_alone() {
    let scene = scene(2);
    assert_eq!(scene.ok(&["status", "--short"]), "t2 ~1\n");
    assert_eq!(scene.json(&["status", "--short"])["turn"]["number"], 2);
    scene.ok(&["undo", "--yes"]);
    assert_eq!(scene.ok(&["status", "--short"]), "t2 ~1 taken back\n");
    scene.ok(&["rewind", "t1", "--scope", "code", "--yes"]);
    assert_eq!(scene.ok(&["status", "--short"]), "t2 ~1 rewound\n");
    // Nothing of the workspace is looked at, and where there is none nothing is said.
    scene.world.write("b.txt", "1");
    assert_eq!(scene.ok(&["status", "--short"]), "t2 ~1 rewound\n");
    let nobody = scene.piton(&["status", "--short"]).current_dir("/").output().unwrap();
    assert_eq!((both(&nobody).as_str(), nobody.status.code()), ("", Some(0)));
}

#[test]
fn the_agents_status_line_is_piton_s_only_where_there_is_none() {
    let scene = Scene::with_a_home(PITON);
    let settings = scene.at("home/.claude/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let was = "{\n  // mine\n  \"model\": \"opus\"\n}\n";
    std::fs::write(&settings, was).unwrap();
    scene.ok(&["setup", "--status-line"]);
    let text = std::fs::read_to_string(&settings).unwrap();
    assert!(text.contains("\"statusLine\"") && text.contains("status --short") && !text.contains("hooks"), "{text}");
    assert!(scene.ok(&["setup", "--status-line"]).starts_with("already set up"));
    scene.ok(&["setup", "--status-line", "--remove"]);
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), was);
    let users = "{\"statusLine\": {\"type\": \"command\", \"command\": \"my-line\"}}\n";
    std::fs::write(&settings, users).unwrap();
    let said = both(&scene.run(&["setup", "--status-line"]));
    assert!(said.contains("a status line of yours") && said.contains("`piton status --short` in it"), "{said}");
    assert!(scene.ok(&["setup", "--status-line", "--remove"]).starts_with("nothing to remove"));
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), users);
}
