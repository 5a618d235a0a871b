//! Several hooks that meet a new folder at the same moment, as an agent with parallel subagents starts them.

use std::io::Write;
use std::process::{Child, Stdio};

use piton_testkit::Scene;
use serde_json::json;

use crate::PITON;

const HOOKS: usize = 10;

fn tell(scene: &Scene, report: &[u8]) -> Child {
    let mut command = scene.piton(&["hook", "generic"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(report).unwrap();
    child
}

/// A prompt of each of ten sessions, at the same moment.
fn all_at_once(scene: &Scene) {
    let report = |n: usize| {
        let more = json!({ "turn": format!("p{n}"), "text": format!("prompt {n}") });
        scene.generic_report(&format!("s{n}"), "prompt", more)
    };
    let hooks: Vec<Child> = (0..HOOKS).map(|n| tell(scene, &report(n))).collect();
    for mut hook in hooks {
        assert!(hook.wait().unwrap().success());
    }
}

/// In more than half of such rounds a session or a checkpoint was missing, and `verify` called the store sound; in some it
/// found faults.
#[test]
fn ten_hooks_at_once_on_a_new_folder_lose_nothing() {
    for round in 0..12 {
        let scene = Scene::new(PITON);
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
        let scene = Scene::new(PITON);
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

fn prompt(scene: &Scene, session: &str) -> Vec<u8> {
    scene.generic_report(session, "prompt", json!({ "turn": "p", "text": "x" }))
}

fn stores(scene: &Scene) -> Vec<std::path::PathBuf> {
    let stores = std::fs::read_dir(scene.world.base().join("home/workspaces"));
    stores.map_or_else(|_| Vec::new(), |all| all.map(|entry| entry.unwrap().path()).collect())
}

/// Whoever makes a folder known may be killed at any step. The store that it leaves is found or used by the next one: nothing is
/// captured into a store that nobody finds again.
#[test]
fn a_killed_first_contact_leaves_no_second_store_whoever_is_at_work_in_the_first() {
    let mut found_recorded = 0;
    for step in 1.. {
        let scene = Scene::new(PITON);
        scene.world.write("file", "content");
        let trace = scene.world.base().join("trace");
        let killed = scene
            .piton(&["init", "."])
            .env("PITON_FAIL", format!("kill={step}"))
            .env("PITON_FAIL_TRACE", &trace)
            .output()
            .unwrap();
        let is_over = killed.status.success();
        // Somebody is at work in what it left, as another hook would be.
        let busy = stores(&scene).first().map(|store| {
            let file = std::fs::File::options().create(true).truncate(false).write(true).open(store.join("lock"));
            let file = file.unwrap();
            file.lock().unwrap();
            file
        });
        found_recorded += usize::from(busy.is_some() && !is_over);
        let mut first = tell(&scene, &prompt(&scene, "s1"));
        std::thread::sleep(std::time::Duration::from_millis(300));
        drop(busy);
        let mut second = tell(&scene, &prompt(&scene, "s2"));
        assert!(first.wait().unwrap().success() && second.wait().unwrap().success());
        let log = std::fs::read_to_string(scene.world.base().join("home/hook.log")).unwrap();
        assert_eq!(log.matches("captured").count(), 2, "step {step}: {log}");
        assert_eq!(stores(&scene).len(), 1, "step {step}: one folder, one store");
        assert_eq!(scene.json(&["sessions", "--all"])["sessions"].as_array().unwrap().len(), 2, "step {step}");
        assert_eq!(scene.json(&["verify"])["sound"], true, "step {step}");
        if is_over {
            break;
        }
    }
    assert!(found_recorded > 1, "it was never killed with a store: the test would test nothing");
}

/// The copy of the workspace's record is lost, and the page of the database that says the same is damaged: what the packs say
/// still counts, and the folder is not taken for a new one.
#[test]
fn a_store_whose_database_does_not_say_whose_it_is_is_found_by_its_packs() {
    let scene = Scene::new(PITON);
    scene.world.write("file", "content");
    scene.ok(&["checkpoint", "before"]);
    let store = stores(&scene).remove(0);
    let view = piton_store::database_file(&store).unwrap();
    zero_page(&view, "workspaces");
    std::fs::remove_file(store.join("workspace.json")).unwrap();
    std::fs::remove_dir_all(scene.world.base().join("home/paths")).unwrap();
    scene.world.write("file", "content 2");
    scene.ok(&["checkpoint", "after"]);
    assert_eq!(stores(&scene).len(), 1);
    scene.ok(&["rewind", "before", "--yes"]);
    assert_eq!(scene.read("file"), "content");
}

/// Zeroes the page that a table begins with.
fn zero_page(view: &std::path::Path, table: &str) {
    let db = rusqlite::Connection::open(view).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let sql = "SELECT rootpage FROM sqlite_master WHERE name = ?1";
    let page = db.query_row(sql, [table], |r| r.get::<_, u32>(0)).unwrap() as usize;
    drop(db);
    for end in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", view.display()));
    }
    let mut bytes = std::fs::read(view).unwrap();
    bytes[(page - 1) * 4096..page * 4096].fill(0);
    std::fs::write(view, bytes).unwrap();
}

/// A home that others may look into, as a user's own folder often is.
#[test]
fn what_piton_keeps_in_its_home_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::new(PITON);
    let home = scene.world.base().join("home");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::set_permissions(&home, PermissionsExt::from_mode(0o755)).unwrap();
    scene.world.write("file", "content").write("transcript.jsonl", "{}");
    let transcript = scene.world.path("transcript.jsonl");
    scene.generic_event("s", "prompt", json!({ "turn": "p", "text": "x", "transcript": transcript }));
    let mode = |name: &str| std::fs::metadata(home.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("sessions"), mode("workspaces"), mode("paths")), (0o700, 0o700, 0o700));
    assert_eq!(mode("agent-state"), 0o600);
    let files = ["sessions", "paths"].map(|folder| std::fs::read_dir(home.join(folder)).unwrap());
    for file in files.into_iter().flatten() {
        assert_eq!(file.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}

/// Neither the note of its path nor the folder itself is as it was: the history of what was there is still found.
#[test]
fn a_folder_that_was_replaced_is_known_by_its_path_also_where_that_is_not_noted() {
    let scene = Scene::new(PITON);
    scene.world.write("file", "content");
    scene.ok(&["checkpoint", "before"]);
    std::fs::remove_dir_all(scene.world.base().join("home/paths")).unwrap();
    let ws = scene.world.ws().to_owned();
    std::fs::rename(&ws, scene.world.base().join("old")).unwrap();
    std::fs::create_dir(&ws).unwrap();
    std::fs::remove_dir_all(scene.world.base().join("old")).unwrap();
    scene.world.write("other", "another");
    scene.ok(&["checkpoint", "after"]);
    assert_eq!(stores(&scene).len(), 1);
    assert!(scene.ok(&["log", "--checkpoints"]).contains("before"));
}

/// The index of words is only a cache.
#[test]
fn a_search_needs_no_file_for_its_index() {
    let scene = Scene::new(PITON);
    scene.world.write("file", "content");
    scene.generic_event("s", "prompt", json!({ "turn": "p", "text": "find the needle" }));
    std::fs::create_dir(stores(&scene)[0].join("words.db")).unwrap();
    assert!(scene.ok(&["search", "needle"]).contains("needle"));
}

/// Nobody can tell whose it was, and that must not keep every other folder from being protected.
#[test]
fn a_store_that_cannot_be_read_stands_in_the_way_of_its_own_folder_alone() {
    let scene = Scene::new(PITON);
    scene.world.write("f", "1");
    scene.ok(&["checkpoint", "before"]);
    let store = stores(&scene).remove(0);
    std::fs::remove_file(store.join("workspace.json")).unwrap();
    for entry in std::fs::read_dir(&store).unwrap().map(|entry| entry.unwrap()) {
        if entry.file_name().to_string_lossy().starts_with("view-") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    std::fs::remove_dir_all(store.join("packs")).unwrap();
    std::fs::write(store.join("packs"), "junk").unwrap();
    let other = scene.world.base().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("f"), "2").unwrap();
    let done = scene.piton(&["checkpoint", "there"]).current_dir(&other).output().unwrap();
    assert!(done.status.success(), "{}", piton_testkit::both(&done));
    // Its own folder does not get a second, empty store behind its user's back.
    assert!(!scene.run(&["checkpoint", "again"]).status.success());
    assert_eq!(stores(&scene).len(), 2);
}
