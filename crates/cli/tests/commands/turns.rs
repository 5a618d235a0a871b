//! One turn: what it did, what changed since, and where a rewind left the user.

use piton_engine::Tool;
use piton_testkit::{Scene, both};
use serde_json::json;

use crate::PITON;

/// Three turns. The user edits a file between two edits of it in the second; a shell of the third may have changed another.
fn scene() -> Scene {
    let scene = Scene::new(PITON);
    let world = &scene.world;
    world.write("src/a.rs", "one\ntwo\nthree\n").write("notes.md", "mine\n");
    let mut workspace = world.open();
    let mut session = workspace.begin_session("claude-code", "run-1").unwrap();
    session.begin_turn("add a\nsecond file").unwrap();
    session.before_tool(&Tool::new("1", "Write").names("src/b.rs")).unwrap();
    world.write("src/b.rs", "new\n");
    session.after_tool("1").unwrap();
    session.end_turn().unwrap();
    session.begin_turn("rewrite a").unwrap();
    session.before_tool(&Tool::new("2", "Edit").names("src/a.rs")).unwrap();
    world.write("src/a.rs", "ONE\ntwo\nthree\n");
    session.after_tool("2").unwrap();
    world.write("src/a.rs", "ONE\nyours\nthree\n");
    session.before_tool(&Tool::new("3", "Edit").names("src/a.rs")).unwrap();
    world.write("src/a.rs", "ONE\nyours\nTHREE\n");
    session.after_tool("3").unwrap();
    session.end_turn().unwrap();
    session.begin_turn("and now the notes").unwrap();
    world.write("notes.md", "mine, edited\n");
    session.before_tool(&Tool::new("4", "Bash").runs("make notes")).unwrap();
    world.write("notes.md", "whose?\n").write("built", "x\n");
    session.after_tool("4").unwrap();
    session.end_turn().unwrap();
    session.end().unwrap();
    scene
}

/// The lines of a patch that came or went.
fn lines(patch: &str) -> Vec<&str> {
    let is_line = |line: &&str| line.starts_with(['+', '-']) && !line.starts_with("+++") && !line.starts_with("---");
    patch.lines().filter(is_line).collect()
}

#[test]
fn the_page_of_a_turn_has_its_prompt_its_steps_its_files_and_the_difference() {
    let scene = scene();
    let page = scene.ok(&["show", "t1"]);
    for part in [
        "t1  turn 1 of claude-code ",
        "\n  add a\n  second file\n",
        "t1.1  Write src/b.rs  +1\n",
        "changed       1 created\n  + src/b.rs (t1.1 names it)\n",
        "+++ b/src/b.rs\n@@ -0,0 +1 @@\n+new\n",
        "`piton rewind t1` goes back there",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    assert!(!page.contains("state"), "{page}");
    let counted = scene.ok(&["show", "t1", "--stat"]);
    assert!(counted.contains("+ src/b.rs | 1 +\n") && !counted.contains("@@"), "{counted}");
    let step = scene.ok(&["show", "t3.1"]);
    assert!(step.starts_with("t3.1  step 1 of turn 3 of ") && step.contains("command       make notes\n"), "{step}");
    // The checkpoint before it is shown by its id, and one after it by its place.
    let id = scene.json(&["show", "t2"])["checkpoint"]["id"].as_str().unwrap().to_owned();
    assert!(scene.ok(&["show", &id]).contains("claude-code, before t2\n"));
    assert!(scene.ok(&["show", "t2.end"]).contains("claude-code, at the end of t2\n"));
}

#[test]
fn what_a_turn_did_is_without_what_others_did_meanwhile() {
    let scene = scene();
    assert_eq!(lines(&scene.ok(&["diff", "t2"])), ["-one", "+ONE", "-three", "+THREE"]);
    assert_eq!(lines(&scene.ok(&["diff", "t2.2"])), ["-three", "+THREE"]);
    assert_eq!(lines(&scene.ok(&["diff", "t2", "t3"])), ["-one", "-two", "-three", "+ONE", "+yours", "+THREE"]);
    assert_eq!(scene.json(&["diff", "t2"])["turn"], "t2");
    let page = scene.ok(&["show", "t2"]);
    assert!(page.contains("\nyou           1 file, before it and while it ran"), "{page}");
    // What may be the user's is told apart.
    let done = scene.run(&["diff", "t3"]);
    let said = both(&done);
    assert!(said.contains("left out 1 file that t3 may not have changed; `piton show t3` has everything"), "{said}");
    assert_eq!(lines(&String::from_utf8_lossy(&done.stdout)), ["+x"]);
    let page = scene.ok(&["show", "t3"]);
    assert!(page.contains("changed       1 created; 1 unsure\n") && page.contains("Not sure whose:\ndiff "), "{page}");
    let unsure = &scene.json(&["diff", "t3"])["unsure"];
    assert_eq!(unsure, &json!([{ "path": "notes.md" }]));
    assert!(both(&scene.run(&["diff", "t1", "notes.md"])).contains("t1 changed nothing there\n"));
}

#[test]
fn a_turn_that_was_taken_back_says_so_and_by_what() {
    let scene = scene();
    scene.ok(&["undo", "t1", "--yes"]);
    let page = scene.ok(&["show", "t1"]);
    assert!(page.contains("state         taken back by the undo of turn 1 “add a”\n"), "{page}");
    assert!(page.contains("+ src/b.rs (t1.1 names it, taken back)\n"), "{page}");
    assert_eq!(scene.json(&["show", "t1"])["turn"]["taken_back"], 1);
    assert!(!scene.ok(&["show", "t2"]).contains("taken back"));
    scene.ok(&["redo", "--yes"]);
    assert!(!scene.ok(&["show", "t1"]).contains("taken back"));
}

#[test]
fn without_a_target_it_is_since_the_last_turn_began_or_since_a_rewind_after_it() {
    let scene = scene();
    scene.world.write("later", "1\n");
    scene.capture();
    scene.world.write("later", "2\n");
    let names = |args: &[&str]| scene.ok(&[&["diff", "--name-only"], args].concat());
    assert_eq!(names(&[]), "built\nlater\nnotes.md\n");
    let status = scene.ok(&["status"]);
    let since = "since         turn 3 “and now the notes” began: 2 created, 1 modified\n";
    assert!(status.contains(since) && !status.contains("rewound"), "{status}");
    assert_eq!(scene.json(&["diff"])["since"]["turn"]["number"], 3);
    scene.ok(&["rewind", "t2", "--scope", "code", "--yes"]);
    assert_eq!(both(&scene.run(&["diff"])), "nothing changed since the rewind to before turn 2 “rewrite a”\n");
    let status = scene.ok(&["status"]);
    assert!(status.contains("since         the rewind to before turn 2 “rewrite a”: no changes\n"), "{status}");
    assert!(
        status.contains("rewound       rewind to before turn 2 “rewrite a”, from turn 3 “and now the notes”, "),
        "{status}"
    );
    assert!(status.contains("; `piton redo` goes back\n"), "{status}");
    // A rewind of some paths alone is no new beginning.
    scene.ok(&["redo", "--yes"]);
    scene.ok(&["rewind", "t2", "--path", "later", "--yes"]);
    assert_eq!(names(&[]), "built\nnotes.md\n");
    // Without a turn it is the newest checkpoint.
    let bare = Scene::new(PITON);
    bare.world.write("a", "1\n");
    bare.capture();
    bare.world.write("a", "2\n");
    assert_eq!(bare.ok(&["diff", "--name-only"]), "a\n");
    assert!(bare.ok(&["status"]).contains("since         that checkpoint: 1 modified\n"));
}
