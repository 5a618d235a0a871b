//! What a command could not put back is named, and the exit code says that not all was done.

use std::process::Command;

use piton_testkit::{Agent, Scene, both, git, noise};
use serde_json::Value;

use crate::PITON;

/// A file that was captured, and in whose place a pipe is now; another one that changed.
fn with_a_pipe() -> Scene {
    let scene = Scene::new(PITON);
    scene.world.write("f", "1").write("other", "1");
    scene.ok(&["checkpoint", "before"]);
    scene.world.remove("f").write("other", "2");
    assert!(Command::new("mkfifo").arg(scene.world.path("f")).status().unwrap().success());
    scene
}

#[test]
fn a_rewind_that_leaves_something_names_it_and_ends_in_1() {
    let scene = with_a_pipe();
    let preview = scene.ok(&["rewind", "before", "--preview"]);
    assert!(preview.contains("warning: not restored:\n  f (socket/pipe/device)"), "{preview}");
    let done = scene.run(&["rewind", "before", "--yes"]);
    assert_eq!(done.status.code(), Some(1), "{}", both(&done));
    let said = both(&done);
    assert!(said.contains("1 restored; 1 path not restored"), "{said}");
    assert!(said.contains("f (socket/pipe/device)"), "{said}");
    assert!(!said.contains("verified"), "{said}");

    let done = scene.run(&["rewind", "before", "--yes"]);
    assert_eq!(done.status.code(), Some(1));
    let said = both(&done);
    assert!(said.contains("nothing was done: what is left cannot be restored"), "{said}");
    assert!(!said.contains("already"), "{said}");
    let preview = scene.ok(&["rewind", "before", "--preview"]);
    assert!(preview.contains("nothing can be done") && !preview.contains("already"), "{preview}");
}

#[test]
fn scripts_are_told_in_json() {
    let scene = with_a_pipe();
    let done = scene.run(&["rewind", "before", "--yes", "--json"]);
    assert_eq!(done.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(document["verified"], false);
    assert_eq!(document["not_done"][0]["path"], "f");
    assert_eq!(document["not_done"][0]["reason"], "special");
    assert_eq!(document["restored"][0]["path"], "other");
    // A redo has nothing in its way.
    let redone = scene.json(&["redo", "--yes"]);
    assert_eq!((&redone["verified"], &redone["not_done"]), (&Value::Bool(true), &Value::Null));
}

#[test]
fn what_was_never_captured_is_no_failure() {
    let scene = Scene::new(PITON);
    scene.world.write("f", "1").write(".gitignore", "build/\n").write("build/x", "1");
    scene.ok(&["checkpoint", "before"]);
    scene.world.write("f", "2").write("build/x", "2");
    assert!(Command::new("mkfifo").arg(scene.world.path("new-pipe")).status().unwrap().success());
    let said = scene.told(&["rewind", "before", "--yes"]);
    assert!(said.contains("verified") && said.contains("not captured, so left alone"), "{said}");
}

#[test]
fn what_is_asked_for_by_its_path_and_not_captured_is_never_called_equal() {
    let scene = Scene::new(PITON);
    let git = |arguments: &[&str]| git(&scene.world.ws(), arguments);
    git(&["init", "-q"]);
    scene.world.write("f", "1").write(".gitignore", "build/\n").write("build/x", "1");
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "one"]);
    git(&["worktree", "add", "-q", "wt"]);
    scene.ok(&["checkpoint", "before"]);
    scene.world.write("wt/f", "2").write("build/x", "2");
    for (path, why) in [
        ("wt", "wt (a worktree of its own; run piton in it)"),
        ("wt/f", "wt/f (a worktree of its own; run piton in it)"),
        ("build", "build (ignored)"),
        ("build/x", "build/x (ignored)"),
    ] {
        let preview = scene.ok(&["rewind", "before", "--path", path, "--preview"]);
        assert!(preview.contains("nothing can be done") && preview.contains(why), "{preview}");
        let done = scene.run(&["rewind", "before", "--path", path, "--yes"]);
        let said = both(&done);
        assert_eq!(done.status.code(), Some(1), "{said}");
        assert!(said.contains("nothing was done: what is left cannot be restored") && said.contains(why), "{said}");
        assert!(!said.contains("already"), "{said}");
    }
    // Beside a path that can be put back.
    scene.world.write("f", "2");
    let done = scene.run(&["rewind", "before", "--path", "f", "--path", "wt", "--yes"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(both(&done).contains("1 restored; 1 path not restored"), "{}", both(&done));
    assert_eq!(std::fs::read_to_string(scene.world.path("wt/f")).unwrap(), "2");
}

#[test]
fn where_nothing_could_be_done_the_exit_code_says_so() {
    let scene = Scene::new(PITON);
    scene.world.write("f", "1\n2\n3\n");
    let agent = Agent::new(&scene.world, "s");
    agent.edits("go", &["f"], |w| {
        w.write("f", "1\nagent\n3\n");
    });
    scene.world.write("f", "1\nuser\n3\n");
    let done = scene.run(&["undo", "--partial", "--yes"]);
    let said = both(&done);
    assert!(said.contains("everything is in conflict") && done.status.code() == Some(1), "{said}");
    let done = scene.run(&["undo", "--conflict", "now", "--yes"]);
    assert_eq!(done.status.code(), Some(0), "decided for: {}", both(&done));
}

#[test]
fn files_are_not_called_equal_to_a_checkpoint_that_left_something_out() {
    let scene = Scene::new(PITON);
    scene.world.write(".gitignore", "ign/\n").write("ign/note", "1").write("f", "1");
    scene.ok(&["checkpoint", "before"]);
    scene.world.remove("ign");
    for args in [["rewind", "before", "--yes"], ["rewind", "before", "--preview"]] {
        let said = both(&scene.run(&args));
        assert!(!said.contains("already"), "{said}");
        assert!(said.contains("1 ignored"), "{said}");
    }
    // With nothing left out they are.
    scene.ok(&["checkpoint", "now"]);
    assert!(scene.told(&["rewind", "now", "--yes"]).contains("the files are already as they were"));
}

/// What the last checkpoint left out is in none, and the next one has it: neither is "nothing".
#[test]
fn what_could_be_captured_by_now_is_told() {
    let scene = Scene::new(PITON);
    scene.world.write("g", "1").write(".gitignore", "data/\n").write("data/y", "precious");
    scene.ok(&["checkpoint", "one"]);
    assert!(scene.ok(&["status"]).contains("1 ignored: data"));
    scene.world.write(".gitignore", "");
    let said = scene.ok(&["status"]);
    assert!(
        said.contains("not yet       1 ignored: data\n") && said.contains("not captured  nothing else\n"),
        "{said}"
    );
    assert_eq!(scene.json(&["status"])["taken_in"][0]["path"], "data");
    let said = scene.ok(&["checkpoint", "two"]);
    assert!(said.contains("1 modified, 1 path captured for the first time"), "{said}");
    assert!(!scene.ok(&["status"]).contains("not yet"));
}

/// A redo that could not do the one thing that was left of it is not done.
#[test]
fn a_redo_of_which_only_gits_part_is_left_says_so() {
    let scene = Scene::new(PITON);
    let git = |args: &[&str]| git(&scene.world.ws(), args);
    let with_git = |args: &[&str]| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        scene.piton(args).env("PATH", path).output().unwrap()
    };
    git(&["init", "-q"]);
    scene.world.write("b", "1");
    git(&["add", "."]);
    git(&["commit", "-qm", "i"]);
    scene.ok(&["checkpoint", "one"]);
    scene.world.write("b", "2");
    scene.ok(&["rewind", "one", "--yes"]);
    scene.ok(&["checkpoint", "two"]);
    git(&["checkout", "-q", "-b", "x"]);
    assert!(with_git(&["rewind", "two", "--git", "--yes"]).status.success());
    git(&["checkout", "-q", "-b", "y"]);
    let done = with_git(&["redo", "--yes"]);
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    let said = both(&done);
    assert!(said.contains("nothing was done: only git's part is left") && said.contains("redo --op"), "{said}");
}

/// "The files are as in t2 already" was said though all that differs had been carried over.
#[test]
fn files_are_not_called_equal_to_a_checkpoint_where_something_is_carried_over() {
    for takes_back in [true, false] {
        let scene = Scene::new(PITON);
        scene.world.write("a", "one\n");
        let agent = Agent::new(&scene.world, "s");
        agent.runs("go", "true", |_| {});
        scene.world.write("mine", "my own\n");
        agent.runs("on", "true", |_| {});
        let (said, listed) = if takes_back {
            scene.told(&["undo", "all", "--owner", "you", "--yes"]);
            ("  - mine (you)", "mine")
        } else {
            scene.world.write("a", "two\n");
            ("  ~ a (you)", "a")
        };
        let preview = scene.ok(&["rewind", "t2", "--keep-mine", "--scope", "code", "--preview"]);
        let told = scene.told(&["rewind", "t2", "--keep-mine", "--scope", "code", "--yes"]);
        for told in [preview, told] {
            assert!(told.contains("nothing to do: what changed since is carried over"), "{told}");
            assert!(told.to_lowercase().contains("carried over:\n") && told.contains(said), "{told}");
            assert!(!told.contains("already"), "{told}");
        }
        let json = scene.json(&["rewind", "t2", "--keep-mine", "--scope", "code", "--yes"]);
        assert_eq!(json["carried"][0]["path"], listed, "{json}");
    }
}

#[test]
fn what_grew_out_of_sight_is_not_called_lost_as_long_as_a_rewind_brings_it_back() {
    let scene = Scene::new(PITON);
    git(&scene.world.ws(), &["init", "-q"]);
    scene.world.write(".gitignore", "dev.db\n").write("dev.db", noise(1, 900_000));
    let agent = Agent::new(&scene.world, "s");
    agent.runs("other", "true", |world| {
        world.write("b", "1");
    });
    agent.runs("grow", "true", |world| {
        world.write("dev.db", noise(1, 1_200_000));
    });
    let said = both(&scene.run(&["undo", "t2", "--yes"]));
    assert!(!said.contains("cannot be restored"), "{said}");
    assert!(said.contains("only a rewind brings back") && said.contains("`piton rewind TURN --path PATH`"), "{said}");
    scene.ok(&["rewind", "t2", "--path", "dev.db", "--yes"]);
    assert_eq!(std::fs::read(scene.world.path("dev.db")).unwrap(), noise(1, 900_000));
}
