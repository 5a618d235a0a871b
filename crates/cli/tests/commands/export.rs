//! `piton export` as people and scripts see it.

use piton_engine::Tool;
use piton_testkit::{Scene, git};

use crate::PITON;

/// A repository with a session of two turns.
fn scene() -> Scene {
    let mut scene = Scene::new(PITON);
    scene.environment.push(("PATH", std::env::var_os("PATH").unwrap()));
    // Where git would look without being told otherwise.
    for name in ["GIT_DIR", "GIT_INDEX_FILE"] {
        scene.environment.push((name, "/nonexistent".into()));
    }
    let world = &scene.world;
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
    drop(workspace);
    scene
}

#[test]
fn a_session_is_listed_commit_by_commit_and_what_git_cannot_hold_is_said() {
    let scene = scene();
    let done = scene.run(&["export", "--session", "run-1", "--git", "agent/run-1"]);
    let [shown, talk] = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(done.status.code(), Some(0), "{talk}");
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(lines.len(), 4, "{shown}");
    assert!(lines[0].contains(" start of session "), "{shown}");
    assert!(lines[1].ends_with(" add a login page"), "{shown}");
    assert!(lines[2].ends_with(" and [31mtests"), "{shown}");
    assert!(lines[3].starts_with("agent/run-1 at ") && lines[3].ends_with(": 3 commits, read back"), "{shown}");
    assert_eq!(talk, "note: git holds no empty folders: 1 empty folder left out, such as empty\n");
    assert_eq!(git(&scene.world.ws(), &["log", "--format=%s", "agent/run-1"]).lines().count(), 3);
}

#[test]
fn one_checkpoint_is_one_commit_as_json_too() {
    let scene = scene();
    let shown = scene.ok(&["export", "t2", "--git", "before-t2", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(document["reference"], "refs/heads/before-t2");
    assert_eq!(document["commits"].as_array().unwrap().len(), 1);
    assert_eq!(document["verified"], true);
    assert_eq!(document["empty_folders"][0]["path"], "empty");
    assert_eq!(git(&scene.world.ws(), &["ls-tree", "--name-only", "before-t2"]), "1.txt\na.txt\n");
    let into = scene.world.base().join("copy.git");
    let shown = scene.ok(&["export", "t2", "--git", "x", "--into", into.to_str().unwrap()]);
    assert!(shown.contains("copy.git, which was made for it: 1 commit, read back"), "{shown}");
}

#[test]
fn ignored_files_are_listed_and_nothing_but_a_file_is_replaced() {
    let scene = scene();
    std::fs::write(scene.world.path(".gitignore"), ".env\n").unwrap();
    std::fs::write(scene.world.path(".env"), "SECRET=1\n").unwrap();
    scene.ok(&["checkpoint", "secret"]);
    let said = scene.told(&["export", "secret", "--git", "out"]);
    assert!(
        said.contains(
            "left out, because git ignores them, or did at some checkpoint; `--include PATH` takes one in:\n  .env\n"
        ),
        "{said}"
    );
    std::fs::rename(scene.world.path(".env"), scene.world.path("env.production")).unwrap();
    scene.ok(&["checkpoint", "moved"]);
    let said = scene.told(&["export", "moved", "--git", "out-moved"]);
    assert!(said.contains("takes one in:\n  env.production (from .env)\n"), "{said}");
    std::fs::write(scene.world.path(".gitattributes"), "*.crypt filter=git-crypt\n").unwrap();
    std::fs::write(scene.world.path("key.crypt"), "plain\n").unwrap();
    scene.ok(&["checkpoint", "crypt"]);
    let said = scene.told(&["export", "crypt", "--git", "out-too"]);
    let filtered = "because a filter of git's changes them (git-crypt, LFS), and piton runs none; `--include PATH` takes one in:\n";
    assert!(said.contains(&format!("{filtered}  key.crypt\n")), "{said}");
    let place = scene.world.base().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&place).status().unwrap().success());
    let said = scene.fails(&["export", "run-1", "-o", place.to_str().unwrap(), "--force"]);
    assert!(said.contains("is not a plain file, so it is not replaced"), "{said}");
}

#[test]
fn each_refusal_says_the_way_out() {
    let scene = scene();
    for (args, message, hint) in [
        (&["export", "t1"][..], "`t1` is not a session", "`--git BRANCH` makes commits"),
        (&["export", "t1", "--into", "x"], "--git", ""),
        (&["export", "--git", "x"], "needs SESSION or TARGET", ""),
        (&["export", "t9", "--git", "x"], "has no turn 9", "`piton log --session"),
        (&["export", "--session", "nobody", "--git", "x"], "there is no session `nobody`", "`piton sessions`"),
        (&["export", "t1", "--git", "main"], "refs/heads/main is checked out in", "never moved"),
        (&["export", "t1", "--git", "a b"], "`a b` is not a name for a branch", "as git takes it"),
        (&["export", "t1", "--git", "x", "--into", "."], "", ""),
    ] {
        if message.is_empty() {
            scene.ok(args);
            let again = scene.fails(args);
            assert!(again.contains("refs/heads/x is there already") && again.contains("`--force`"), "{again}");
            scene.ok(&[args, &["--force"]].concat());
            continue;
        }
        let said = scene.fails(args);
        assert!(said.contains(message) && said.contains(hint), "{args:?}: {said}");
    }
    let done = scene.piton(&["export", "t1", "--git", "y"]).env("PATH", "/nonexistent").output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(said.contains("git is not installed, or not in PATH\nhint: "), "{said}");
}
