//! What piton says of words that it does not understand, and of questions whose answer is nothing.

use piton_engine::Tool;
use piton_testkit::{Scene, both};

use crate::PITON;

fn scene() -> Scene {
    let scene = Scene::new(PITON);
    scene.world.write("a.txt", "one\n");
    let mut workspace = scene.world.open();
    let mut session = workspace.begin_session("claude-code", "run-1").unwrap();
    for (call, prompt) in [("1", "first"), ("2", "second")] {
        session.begin_turn(prompt).unwrap();
        session.before_tool(&Tool::new(call, "Write").names("a.txt")).unwrap();
        scene.world.write("a.txt", format!("{prompt}\n"));
        session.after_tool(call).unwrap();
        session.end_turn().unwrap();
    }
    session.end().unwrap();
    scene.ok(&["checkpoint", "before-refactor"]);
    scene.ok(&["branch", "rename", "run-1", "login-page"]);
    scene
}

/// What a command says on stderr where it refuses.
#[track_caller]
fn check(scene: &Scene, args: &[&str], expected: &[&str]) {
    let said = scene.fails(args);
    for part in expected {
        assert!(said.contains(part), "{args:?}: {part}\n{said}");
    }
}

#[test]
fn a_target_that_is_nothing_is_answered_with_what_was_probably_meant() {
    let scene = scene();
    for (typed, meant) in [
        ("2", "did you mean `t2`?"),
        ("T2", "did you mean `t2`?"),
        ("turn2", "did you mean `t2`?"),
        ("turn-2.1", "did you mean `t2.1`?"),
        ("run-1:2", "did you mean `run-1:t2`?"),
        ("login-page", "did you mean `login-page:t2`?"),
        ("before-refacto", "did you mean `before-refactor`?"),
        ("befroe-refactor", "did you mean `before-refactor`?"),
    ] {
        check(&scene, &["show", typed], &["there is no checkpoint", meant]);
        check(&scene, &["rewind", typed, "--preview"], &[meant]);
    }
    check(&scene, &["diff", "T2"], &["`T2` is not a checkpoint, nor a path on either side", "did you mean `t2`?"]);
    check(&scene, &["changes", "--session", "login-pgae"], &["did you mean `login-page`?"]);
    // Nothing is made up.
    for typed in ["9", "T9", "turn9", "xyzzy"] {
        assert!(!scene.fails(&["show", typed]).contains("did you mean"), "{typed}");
    }
}

#[test]
fn a_command_or_a_flag_that_there_is_not_is_answered_with_the_one_that_there_is() {
    let scene = scene();
    check(&scene, &["lgo"], &["error: there is no command `piton lgo`\n", "hint: did you mean `piton log`?\n"]);
    check(&scene, &["help", "lgo"], &["error: there is no command `piton lgo`\n", "hint: did you mean `piton log`?\n"]);
    check(&scene, &["session"], &["did you mean `piton sessions`?"]);
    check(&scene, &["branch", "renam", "a", "b"], &["did you mean `piton branch rename`?"]);
    check(&scene, &["undo", "--preveiw"], &["`piton undo` has no flag `--preveiw`", "did you mean `--preview`?"]);
    assert!(!scene.fails(&["undo", "--frobnicate"]).contains("did you mean"));
    check(&scene, &["config", "capture.automatc"], &["did you mean `capture.automatic`?"]);
}

#[test]
fn a_turn_that_there_is_not_is_said_however_it_was_typed() {
    let scene = scene();
    for typed in ["t9", "T9", "9", "turn9"] {
        check(&scene, &["rewind", typed, "--preview"], &["has no turn 9; its last one is"]);
    }
    check(&scene, &["fork", "t9"], &["has no turn 9; its last one is"]);
    check(&scene, &["accept", "T1"], &["there is no turn or path `T1`", "did you mean `t1`?"]);
    check(&scene, &["undo", "T1"], &["`T1` is not something to undo", "did you mean `t1`?"]);
    check(&scene, &["fork", "T1"], &["did you mean `t1`?"]);
    check(&scene, &["rewind", "10min"], &["did you mean `10m`?"]);
    check(&scene, &["log", "--since", "10M"], &["`10M` is not an age", "did you mean `10m`?"]);
    check(&scene, &["cat", "t1"], &["`t1` is a target without a path", "`piton cat t1:PATH`"]);
    check(&scene, &["search", "x", "-n", "0"], &["`0` is too small for"]);
    check(&scene, &["search", "x", "-n", "two"], &["`two` is not a number"]);
    check(&scene, &["undo", "--path", "nosuch"], &["the session changed nothing in nosuch\n"]);
    let said = scene.fails(&["log", "--workspace", "/nope"]);
    assert!(!said.contains("means another folder"), "{said}");
}

#[test]
fn help_is_one_document_where_that_is_wanted() {
    let scene = scene();
    for words in [&["help", "--json"][..], &["help", "undo", "--json"], &["undo", "--help", "--json"]] {
        let done = scene.run(words);
        let document: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        assert!(done.status.success() && document["help"].as_str().unwrap().contains("Usage:"), "{}", both(&done));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn help_that_cannot_be_written_is_a_failure() {
    let scene = scene();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let done = scene.piton(&["help"]).stdout(full).output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", both(&done));
}

#[test]
fn an_error_about_arguments_is_one_sentence_and_the_plain_usage() {
    let scene = scene();
    let said = scene.fails(&["rewind"]);
    assert_eq!(
        said,
        "error: `piton rewind` needs TARGET\nUsage: piton rewind [OPTIONS] <TARGET>\nhint: `piton help rewind` says more\n"
    );
    let done = scene.run(&["rewind", "--json"]);
    assert!(both(&done).contains(r#""message":"`piton rewind` needs TARGET""#), "{}", both(&done));
    // What had been given is no part of how it is used.
    check(&scene, &["undo", "--frobnicate"], &["Usage: piton undo [OPTIONS] [WHAT]...\n"]);
    check(&scene, &["annotate"], &["`piton annotate` needs TARGET and TEXT\n"]);
    check(&scene, &["checkpoint", "a", "b"], &["`b` is one word too many for `piton checkpoint`"]);
    check(
        &scene,
        &["log", "--checkpoints", "--since", "1s"],
        &["`--checkpoints` does not go together with `--since`\n"],
    );
    check(
        &scene,
        &["rewind", "t1", "--scope", "all"],
        &["`all` is not a value for `--scope`; it takes code, conversation or both"],
    );
    check(&scene, &["log", "--since"], &["`--since AGE` needs a value\n"]);
    check(&scene, &["setup", "nosuch"], &["`nosuch` is not a value for AGENT; it takes claude-code or generic"]);
    let ran = both(&scene.run(&["run", "--name", "x", "ls", "-l"]));
    assert!(ran.contains("the command to run comes after `--`\n"), "{ran}");
    assert!(ran.contains("hint: `piton run --name x -- ls -l`\n"), "{ran}");
}

#[test]
fn an_empty_answer_is_true_of_what_was_asked() {
    let scene = scene();
    for (args, expected) in [
        (&["log", "--since", "0s"][..], "nothing happened in the last 0s\n"),
        (&["log", "--path", "nosuch"], "nothing changed `nosuch`\n"),
        (&["log", "--path", "a.txt", "--since", "0s"], "nothing changed `a.txt` in the last 0s\n"),
        (&["log", "--session", "run-1", "--path", "x"], "nothing changed `x` in session run-1\n"),
    ] {
        assert_eq!(both(&scene.run(args)), expected, "{args:?}");
    }
    check(&scene, &["diff", "t1", "t2", "t2.end"], &["`t2.end` is a third moment, and a diff is between two"]);
}

#[test]
fn a_large_file_is_named_in_the_checkpoint_in_which_it_came_and_not_again() {
    let scene = scene();
    let file = std::fs::File::create(scene.world.path("model.bin")).unwrap();
    file.set_len((100 << 20) + 1).unwrap();
    let said = both(&scene.run(&["checkpoint"]));
    assert!(said.contains("note: model.bin has 100.0 MiB, and every changed version of it takes room"), "{said}");
    scene.world.write("b.txt", "1");
    assert!(!both(&scene.run(&["checkpoint"])).contains("model.bin"));
    // A hook says it too, when it is the first to capture one.
    let folder = scene.world.ws();
    let make = "head -c 104857601 /dev/zero > weights.bin";
    let seen = scene.shell_turn("s9", &folder, 1, &[make, "echo 1 > small"]);
    assert_eq!(seen.matches("weights.bin has 100.0 MiB, and every").count(), 1, "{seen}");
    assert!(!seen.contains("model.bin"), "{seen}");
}
