//! Several hooks that meet a new folder at the same moment, as an agent with parallel subagents starts them.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::Write;
use std::process::{Child, Stdio};

use piton_testkit::Scene;

const HOOKS: usize = 10;

fn start(scene: &Scene, report: &str) -> Child {
    let mut command = scene.piton(&["hook", "generic"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(report.as_bytes()).unwrap();
    child
}

/// A prompt of each of ten sessions, at the same moment.
fn all_at_once(scene: &Scene) {
    let cwd = scene.world.ws().display().to_string();
    let report =
        |n: usize| format!(r#"{{"event":"prompt","session":"s{n}","cwd":"{cwd}","turn":"p{n}","text":"prompt {n}"}}"#);
    let hooks: Vec<Child> = (0..HOOKS).map(|n| start(scene, &report(n))).collect();
    for mut hook in hooks {
        assert!(hook.wait().unwrap().success());
    }
}

/// In more than half of such rounds a session or a checkpoint was missing, and `verify` called the store sound; in some it
/// found faults.
#[test]
fn ten_hooks_at_once_on_a_new_folder_lose_nothing() {
    for round in 0..12 {
        let scene = Scene::new(env!("CARGO_BIN_EXE_piton"));
        for n in 0..40 {
            scene.world.write(format!("dir{}/file{n}", n % 5), format!("round {round}, file {n}"));
        }
        all_at_once(&scene);
        let log = std::fs::read_to_string(scene.world.base().join("home/hook.log")).unwrap();
        assert_eq!(log.matches("captured").count(), HOOKS, "round {round}: {log}");
        let stores = std::fs::read_dir(scene.world.base().join("home/workspaces")).unwrap().count();
        assert_eq!(stores, 1, "round {round}: one folder, one store");
        let sessions = scene.json(&["sessions", "--all"]);
        assert_eq!(sessions["sessions"].as_array().unwrap().len(), HOOKS, "round {round}: {sessions}");
        let checkpoints = scene.json(&["log", "--checkpoints"]);
        assert_eq!(checkpoints["checkpoints"].as_array().unwrap().len(), HOOKS, "round {round}: {checkpoints}");
        assert_eq!(scene.json(&["verify"])["sound"], true, "round {round}");
    }
}

/// The same where a view of an earlier piton has to be made anew first: every hook finds it wanting, one makes it.
#[test]
fn ten_hooks_at_once_after_an_upgrade_lose_nothing() {
    for round in 0..6 {
        let scene = Scene::new(env!("CARGO_BIN_EXE_piton"));
        scene.world.write("file", "content");
        scene.ok(&["checkpoint", "before"]);
        let store = std::fs::read_dir(scene.world.base().join("home/workspaces")).unwrap().next().unwrap().unwrap();
        let view = piton_store::database_file(&store.path()).unwrap();
        let db = rusqlite::Connection::open(&view).unwrap();
        db.execute_batch("PRAGMA user_version = 1").unwrap();
        drop(db);
        all_at_once(&scene);
        let checkpoints = scene.json(&["log", "--checkpoints"]);
        assert_eq!(checkpoints["checkpoints"].as_array().unwrap().len(), HOOKS + 1, "round {round}: {checkpoints}");
        assert_ne!(piton_store::database_file(&store.path()).unwrap(), view, "round {round}: it was never made anew");
        assert_eq!(scene.json(&["verify"])["sound"], true, "round {round}");
    }
}
