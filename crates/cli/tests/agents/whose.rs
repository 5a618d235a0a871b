//! Whose a change is, in the situations of every day, played with the real Claude Code.

use std::process::Command;

use piton_testkit::{Model, Say, Turn, git};
use serde_json::json;

use super::{claude, owners, scene, turns};

fn read(scene: &piton_testkit::Scene, path: &str) -> String {
    std::fs::read_to_string(scene.world.path(path)).unwrap()
}

fn bash(command: &str) -> Say {
    Say::tool("Bash", json!({ "command": command }))
}

#[test]
fn what_a_format_on_edit_hook_changes_belongs_to_the_edit_and_goes_back_with_it() {
    piton_testkit::needs_network!();
    let scene = scene();
    let Some(claude) = claude(&scene) else { return };
    let (home, work) = (scene.at("home"), scene.world.ws());
    scene.world.write("src/a.txt", "one\n");
    let formatter = format!("sleep 0.4; echo formatted >> '{}'", scene.world.path("src/a.txt").display());
    let hook = json!({ "hooks": { "PostToolUse": [
        { "matcher": "Edit|Write", "hooks": [{ "type": "command", "command": formatter }] }
    ] } });
    std::fs::create_dir_all(home.join(".claude")).unwrap();
    std::fs::write(home.join(".claude/settings.json"), hook.to_string()).unwrap();
    scene.ok(&["setup", "claude-code", "--user"]);
    let edit = json!({ "file_path": work.join("src/a.txt"), "old_string": "one", "new_string": "two" });
    let read_first = Say::tool("Read", json!({ "file_path": work.join("src/a.txt") }));
    let model = Model::start([Turn::new("edit", [read_first, Say::tool("Edit", edit), Say::text("edited")])]);
    claude.run(&home, &work, &model, "edit", &[]);
    assert_eq!(read(&scene, "src/a.txt"), "two\nformatted\n");
    let turns = turns(&scene);
    assert!(owners(&turns[0]["yours"]).is_empty() && owners(&turns[0]["unsure"]).is_empty(), "{turns:#?}");
    scene.ok(&["undo", "--yes"]);
    assert_eq!(read(&scene, "src/a.txt"), "one\n");
}

#[test]
fn after_a_checkout_of_the_users_a_sed_over_forty_files_is_the_agents() {
    piton_testkit::needs_network!();
    let scene = scene();
    let Some(claude) = claude(&scene) else { return };
    let (home, work) = (scene.at("home"), scene.world.ws());
    let fill = |text: &str| {
        (0..40).for_each(|n| {
            scene.world.write(format!("src/f{n}.txt"), text);
        })
    };
    git(&work, &["init", "-q", "-b", "main"]);
    fill("main\n");
    git(&work, &["add", "-A"]);
    git(&work, &["commit", "-qm", "one"]);
    git(&work, &["checkout", "-qb", "topic"]);
    fill("topic\n");
    git(&work, &["commit", "-qam", "two"]);
    scene.ok(&["setup", "claude-code", "--user"]);
    let model = Model::start([
        Turn::new("look", [bash("ls > /dev/null"), Say::text("looked")]),
        Turn::new("change", [bash("sleep 0.1; sed -i s/main/changed/ src/*.txt"), Say::text("changed")]),
    ]);
    let first = claude.run(&home, &work, &model, "look", &[]);
    git(&work, &["checkout", "-q", "main"]);
    claude.run(&home, &work, &model, "change", &["--resume", first.session()]);
    assert_eq!(read(&scene, "src/f7.txt"), "changed\n");
    let turns = turns(&scene);
    assert_eq!(turns[1]["files"].as_array().unwrap().len(), 40, "{turns:#?}");
    assert!(owners(&turns[1]["unsure"]).is_empty());
    scene.ok(&["undo", "--yes"]);
    assert_eq!(read(&scene, "src/f7.txt"), "main\n");
}

#[test]
fn files_that_the_user_makes_and_saves_while_tests_run_stay_and_are_named_with_the_reason() {
    piton_testkit::needs_network!();
    let scene = scene();
    let Some(claude) = claude(&scene) else { return };
    let (home, work) = (scene.at("home"), scene.world.ws());
    scene.world.write("notes.md", "mine\n");
    // What `cargo test` runs here is the user, who works beside it.
    scene.world.write("cargo", "#!/bin/sh\nsleep 0.2\necho more >> notes.md\necho new > todo.md\n");
    Command::new("chmod").args(["+x", "cargo"]).current_dir(&work).status().unwrap();
    scene.ok(&["setup", "claude-code", "--user"]);
    let model = Model::start([Turn::new(
        "test",
        [
            Say::tool("Write", json!({ "file_path": work.join("a.txt"), "content": "a\n" })),
            bash("PATH=.:$PATH cargo test"),
            Say::text("tested"),
        ],
    )]);
    claude.run(&home, &work, &model, "test", &[]);
    assert_eq!(read(&scene, "todo.md"), "new\n");
    let said = scene.run(&["undo", "--yes"]);
    let said = piton_testkit::both(&said);
    assert!(!scene.world.has("a.txt"), "{said}");
    assert_eq!((read(&scene, "todo.md"), read(&scene, "notes.md")), ("new\n".into(), "mine\nmore\n".into()));
    assert!(said.contains("todo.md") && said.contains("which does not write it by itself"), "{said}");
    // Only those are left: nothing is done, and that is no success.
    let again = scene.run(&["undo", "t1", "--yes"]);
    assert_eq!(again.status.code(), Some(1), "{}", piton_testkit::both(&again));
}

#[test]
fn a_server_in_the_background_makes_no_later_command_doubtful() {
    piton_testkit::needs_network!();
    let scene = scene();
    let Some(claude) = claude(&scene) else { return };
    let (home, work) = (scene.at("home"), scene.world.ws());
    scene.world.write("a.txt", "one\n");
    scene.ok(&["setup", "claude-code", "--user"]);
    let server = Say::tool("Bash", json!({ "command": "sleep 3", "run_in_background": true }));
    let model = Model::start([Turn::new(
        "serve",
        [
            server,
            bash("sleep 0.1; cp a.txt b.txt; echo two > a.txt"),
            bash("sleep 0.1; ./gen.sh || echo three > c.txt"),
            Say::text("done"),
        ],
    )]);
    claude.run(&home, &work, &model, "serve", &[]);
    let turns = turns(&scene);
    assert!(owners(&turns[0]["unsure"]).is_empty(), "{turns:#?}");
    scene.ok(&["undo", "--yes"]);
    assert_eq!(read(&scene, "a.txt"), "one\n");
    assert!(!scene.world.has("b.txt") && !scene.world.has("c.txt"));
}

#[test]
fn after_a_new_session_has_begun_undo_alone_still_means_the_last_turn() {
    piton_testkit::needs_network!();
    let scene = scene();
    let Some(claude) = claude(&scene) else { return };
    let (home, work) = (scene.at("home"), scene.world.ws());
    scene.world.write("a.txt", "one\n");
    scene.ok(&["setup", "claude-code", "--user"]);
    let model = Model::start([
        Turn::new("break it", [bash("sleep 0.1; echo broken > a.txt"), Say::text("broken")]),
        Turn::new("hello", [Say::text("hello")]),
    ]);
    let first = claude.run(&home, &work, &model, "break it", &[]);
    // As after `/clear`: another session, which has changed nothing.
    let second = claude.run(&home, &work, &model, "hello", &[]);
    assert_ne!(first.session(), second.session());
    let said = scene.told(&["undo", "--yes"]);
    assert!(said.contains("break it"), "{said}");
    assert_eq!(read(&scene, "a.txt"), "one\n");
}
