//! `piton export` as people and scripts see it.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test may stop where it likes")]

use std::process::{Command, Output, Stdio};

use piton_engine::Tool;
use piton_testkit::{World, git};

/// A repository with a session of two turns.
fn scene() -> World {
    let world = World::new();
    git(&world.ws(), &["init", "-q", "-b", "main"]);
    world.write("a.txt", "one\n").folder("empty");
    git(&world.ws(), &["add", "-A"]);
    git(&world.ws(), &["commit", "-q", "-m", "first"]);
    let mut workspace = world.open();
    let mut session = workspace.begin_session("claude-code", "run-1").unwrap();
    for (id, prompt) in [("1", "add a login page"), ("2", "and \u{1b}[31mtests")] {
        session.begin_turn(prompt).unwrap();
        session.before_tool(&Tool::new(id, "Write").names(format!("{id}.txt"))).unwrap();
        world.write(format!("{id}.txt"), prompt);
        session.after_tool(id).unwrap();
        session.end_turn().unwrap();
    }
    world
}

fn piton(world: &World, path: Option<&str>, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_piton"));
    command.env_clear().current_dir(world.ws()).args(args).stdin(Stdio::null());
    command.env("HOME", world.base()).env("PITON_HOME", world.base().join("home"));
    let path = path.map_or_else(|| std::env::var("PATH").unwrap(), str::to_owned);
    // Where git would look without being told otherwise.
    command.env("PATH", path).env("GIT_DIR", "/nonexistent").env("GIT_INDEX_FILE", "/nonexistent");
    command.output().unwrap()
}

#[track_caller]
fn ok(world: &World, args: &[&str]) -> (String, String) {
    let done = piton(world, None, args);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    assert_eq!(done.status.code(), Some(0), "{args:?}: {}", text(done.stderr));
    (text(done.stdout), text(done.stderr))
}

#[track_caller]
fn fails(world: &World, args: &[&str]) -> String {
    let done = piton(world, None, args);
    assert_eq!(done.status.code(), Some(1), "{args:?}");
    String::from_utf8(done.stderr).unwrap()
}

#[test]
fn a_session_is_listed_commit_by_commit_and_what_git_cannot_hold_is_said() {
    let world = scene();
    let (shown, talk) = ok(&world, &["export", "--session", "run-1", "--git", "agent/run-1"]);
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(lines.len(), 4, "{shown}");
    assert!(lines[0].contains(" start of session "), "{shown}");
    assert!(lines[1].ends_with(" add a login page"), "{shown}");
    assert!(lines[2].ends_with(" and [31mtests"), "{shown}");
    assert!(lines[3].starts_with("agent/run-1 at ") && lines[3].ends_with(": 3 commits, read back"), "{shown}");
    assert_eq!(talk, "note: git holds no empty folders: 1 empty folder left out, such as empty\n");
    assert_eq!(git(&world.ws(), &["log", "--format=%s", "agent/run-1"]).lines().count(), 3);
}

#[test]
fn one_checkpoint_is_one_commit_as_json_too() {
    let world = scene();
    let (shown, _) = ok(&world, &["export", "t2", "--git", "before-t2", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(document["reference"], "refs/heads/before-t2");
    assert_eq!(document["commits"].as_array().unwrap().len(), 1);
    assert_eq!(document["verified"], true);
    assert_eq!(document["empty_folders"][0]["path"], "empty");
    assert_eq!(git(&world.ws(), &["ls-tree", "--name-only", "before-t2"]), "1.txt\na.txt\n");
    let into = world.base().join("copy.git");
    let (shown, _) = ok(&world, &["export", "t2", "--git", "x", "--into", into.to_str().unwrap()]);
    assert!(shown.contains("copy.git, which was made for it: 1 commit, read back"), "{shown}");
}

#[test]
fn ignored_files_are_listed_and_nothing_but_a_file_is_replaced() {
    let world = scene();
    std::fs::write(world.path(".gitignore"), ".env\n").unwrap();
    std::fs::write(world.path(".env"), "SECRET=1\n").unwrap();
    ok(&world, &["checkpoint", "secret"]);
    let (_, said) = ok(&world, &["export", "secret", "--git", "out"]);
    assert!(said.contains("left out, because git ignores them; `--include PATH` takes one in:\n  .env\n"), "{said}");
    std::fs::write(world.path(".gitattributes"), "*.crypt filter=git-crypt\n").unwrap();
    std::fs::write(world.path("key.crypt"), "plain\n").unwrap();
    ok(&world, &["checkpoint", "crypt"]);
    let (_, said) = ok(&world, &["export", "crypt", "--git", "out-too"]);
    let filtered = "because a filter of git's changes them (git-crypt, LFS), and piton runs none; `--include PATH` takes one in:\n";
    assert!(said.contains(&format!("{filtered}  key.crypt\n")), "{said}");
    let place = world.base().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&place).status().unwrap().success());
    let said = fails(&world, &["export", "run-1", "-o", place.to_str().unwrap(), "--force"]);
    assert!(said.contains("is no plain file, so it is not replaced"), "{said}");
}

#[test]
fn each_refusal_says_the_way_out() {
    let world = scene();
    for (args, message, hint) in [
        (&["export", "t1"][..], "`t1` is no session", "`--git BRANCH` makes commits"),
        (&["export", "t1", "--into", "x"], "--git", ""),
        (&["export", "--git", "x"], "required", ""),
        (&["export", "t9", "--git", "x"], "has no turn 9", "`piton log --session"),
        (&["export", "--session", "nobody", "--git", "x"], "there is no session `nobody`", "`piton sessions`"),
        (&["export", "t1", "--git", "main"], "refs/heads/main is checked out in", "never moved"),
        (&["export", "t1", "--git", "a b"], "`a b` is no name for a branch", "as git takes it"),
        (&["export", "t1", "--git", "x", "--into", "."], "", ""),
    ] {
        if message.is_empty() {
            ok(&world, args);
            let again = fails(&world, args);
            assert!(again.contains("refs/heads/x is there already") && again.contains("`--force`"), "{again}");
            ok(&world, &[args, &["--force"]].concat());
            continue;
        }
        let said = fails(&world, args);
        assert!(said.contains(message) && said.contains(hint), "{args:?}: {said}");
    }
    let done = piton(&world, Some("/nonexistent"), &["export", "t1", "--git", "y"]);
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(said.contains("git is not installed, or not in PATH\nhint: "), "{said}");
}
