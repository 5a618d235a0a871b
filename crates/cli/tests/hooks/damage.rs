//! A damaged store, at the command line and under hooks.

use piton_testkit::{Scene, both, give};
use serde_json::json;

use crate::PITON;

#[test]
fn what_is_damaged_is_named_and_partial_does_the_rest_and_ends_in_1() {
    let scene = Scene::new(PITON);
    scene.world.write("a", "first content of a").write("b", "first content of b");
    scene.ok(&["checkpoint", "before"]);
    scene.world.write("a", "2").write("b", "2");
    let pack = scene.world.open().store_folder().join("packs/000001.pack");
    let mut bytes = std::fs::read(&pack).unwrap();
    let at = bytes.windows(18).position(|window| window == b"first content of a").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&pack, bytes).unwrap();

    let refused = scene.run(&["rewind", "before", "--yes"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = both(&refused);
    assert!(said.contains("`a` is damaged in piton's store") && said.contains("--partial"), "{said}");
    assert_eq!((&scene.read("a")[..], &scene.read("b")[..]), ("2", "2"));

    let done = scene.run(&["rewind", "before", "--yes", "--partial"]);
    assert_eq!(done.status.code(), Some(1), "{}", both(&done));
    assert!(both(&done).contains("damaged"), "{}", both(&done));
    assert_eq!((&scene.read("a")[..], &scene.read("b")[..]), ("2", "first content of b"));
}

#[test]
fn a_damaged_folder_is_named_by_show_and_diff_which_tell_all_the_rest_and_end_in_1() {
    let scene = Scene::new(PITON);
    scene.world.write("good", "1").write("bad/distinct-name", "1");
    scene.ok(&["checkpoint", "before"]);
    scene.world.write("good", "2").write("bad/distinct-name", "2");
    scene.ok(&["checkpoint", "after"]);
    let pack = scene.world.open().store_folder().join("packs/000001.pack");
    let mut bytes = std::fs::read(&pack).unwrap();
    let at = bytes.windows(13).position(|window| window == b"distinct-name").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&pack, bytes).unwrap();
    for args in [&["show", "after"][..], &["diff", "before", "after", "--stat"], &["diff", "before"]] {
        let done = scene.run(args);
        let said = both(&done);
        assert_eq!(done.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains("good") && said.contains("cannot be told: bad"), "{args:?}: {said}");
    }
    let done = scene.run(&["diff", "before", "after", "--json"]);
    let diff: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((done.status.code(), &diff["unreadable"][0]["path"]), (Some(1), &"bad".into()));
    // The newest checkpoint is whole.
    scene.ok(&["status"]);
    scene.ok(&["diff"]);
}

fn pages(view: &std::path::Path) -> usize {
    let db = rusqlite::Connection::open(view).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(db);
    for end in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", view.display()));
    }
    std::fs::read(view).unwrap().len() / 4096
}

/// Some pages made `verify --repair` fail, whose hint named `verify --repair`, and every hook a gap.
#[test]
fn whatever_page_of_the_database_is_damaged_a_hook_captures_and_a_repair_repairs() {
    let scene = Scene::new(PITON);
    scene.world.write("a", "1");
    scene.ok(&["checkpoint", "one"]);
    prompt(&scene, "p0");
    let store = scene.world.open().store_folder().to_owned();
    let view = || piton_store::database_file(&store).unwrap();
    let count = pages(&view());
    assert!(count > 20, "{count}");
    for page in 0..count {
        for repairs in [false, true] {
            let path = view();
            pages(&path);
            let mut bytes = std::fs::read(&path).unwrap();
            let Some(hit) = bytes.get_mut(page * 4096..(page + 1) * 4096) else { continue };
            hit.fill(0);
            std::fs::write(&path, &bytes).unwrap();
            if repairs {
                let repaired = scene.run(&["verify", "--repair"]);
                assert_eq!(repaired.status.code(), Some(0), "page {page}: {}", both(&repaired));
            } else {
                let before = scene.hook_log().len();
                scene.world.write("a", format!("{page}"));
                prompt(&scene, &format!("p{}", page + 1));
                let said = scene.hook_log()[before..].join("\n");
                assert!(said.contains("captured"), "page {page}: {said}");
            }
            // A hook notices only what it reads.
            scene.run(&["verify", "--repair"]);
            assert_eq!(scene.json(&["verify"])["sound"], true, "page {page}");
        }
    }
    scene.ok(&["rewind", "one", "--yes", "--interrupted"]);
    assert_eq!(scene.read("a"), "1");
}

/// A process that opens a database which nobody has open holds all of its locks for a moment. One that is suspended in it made
/// every hook wait ten seconds, and then leave a gap.
#[test]
fn a_reader_that_is_suspended_while_it_opens_the_database_holds_up_no_hook() {
    let scene = Scene::new(PITON);
    scene.world.write("a", "1");
    scene.ok(&["checkpoint", "one"]);
    let store = scene.world.open().store_folder().to_owned();
    let view = piton_store::database_file(&store).unwrap();
    let shared = format!("{}-shm", view.display());
    let held = std::fs::File::options().read(true).write(true).create(true).truncate(false).open(shared).unwrap();
    rustix::fs::fcntl_lock(&held, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    prompt(&scene, "p");
    // Had it waited until the other goes on, its time would have been up.
    let log = scene.hook_log().join("\n");
    assert!(log.contains("captured"), "{log}");
    drop(held);
    assert_eq!(scene.json(&["verify"])["sound"], true);
    assert_eq!(scene.json(&["log", "--checkpoints"])["checkpoints"].as_array().unwrap().len(), 2);
}

/// The limit on a file's size is a signal unless somebody asks for an error: it killed hooks, and the agent saw that.
#[test]
fn a_limit_on_the_size_of_files_ends_no_hook() {
    let scene = Scene::new(PITON);
    scene.world.write("a", "1".repeat(9_000));
    scene.ok(&["checkpoint", "one"]);
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -f 1; exec \"$@\"", "sh"]);
    let report = scene.generic_report("s", "prompt", json!({ "turn": "p", "text": "x" }));
    let ended = give(scene.started_by(limited, &["hook", "generic"]), &report).status;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    scene.ok(&["checkpoint", "two"]);
    assert_eq!(scene.json(&["verify"])["sound"], true);
}

/// The user says something to an agent that reports in piton's own form.
#[track_caller]
fn prompt(scene: &Scene, turn: &str) {
    scene.generic_event("s", "prompt", json!({ "turn": turn, "text": format!("prompt {turn}") }));
}

/// The database's file is put back from a backup, beside its newer log: SQLite shows a mix of both whose end agrees with the
/// packs. A new turn got the number of an old one.
#[test]
fn a_restored_database_gives_no_turn_the_number_of_another() {
    let scene = Scene::new(PITON);
    let turn = |n: usize| prompt(&scene, &format!("p{n}"));
    turn(1);
    let view = piton_store::database_file(scene.world.open().store_folder()).unwrap();
    let log = || std::fs::metadata(format!("{}-wal", view.display())).unwrap().len();
    let mut n = 2;
    let mut old = std::fs::read(&view).unwrap();
    for folds in 1..=3 {
        loop {
            let before = log();
            scene.world.write("a", format!("content {n}"));
            turn(n);
            n += 1;
            if log() < before {
                break;
            }
            assert!(n < 500, "it is never folded");
        }
        if folds == 1 {
            old = std::fs::read(&view).unwrap();
        }
    }
    turn(n);
    // In place, as `cp` does it.
    std::fs::write(&view, old).unwrap();
    turn(n + 1);
    let logged = scene.ok(&["log"]);
    assert!(logged.contains(&format!("t{} ", n + 1)), "{logged}");
    assert!(scene.ok(&["verify"]).contains("sound"));
}

/// Every hook was a gap from then on, and `verify` named nothing.
#[test]
fn a_sector_that_the_disk_cannot_read_is_named_and_hooks_capture() {
    for loses_the_view in [false, true] {
        let scene = Scene::new(PITON);
        let mut ends = Vec::new();
        let store = || scene.world.open().store_folder().to_owned();
        for n in 1..=5 {
            let mut noise: u64 = n;
            let bytes = std::iter::repeat_with(|| {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (noise >> 33) as u8
            });
            scene.world.write(format!("f{n}"), bytes.take(9_000).collect::<Vec<u8>>());
            scene.ok(&["checkpoint", &format!("c{n}")]);
            ends.push(std::fs::metadata(store().join("packs/000001.pack")).unwrap().len());
        }
        let store = store();
        if loses_the_view {
            std::fs::remove_file(piton_store::database_file(&store).unwrap()).unwrap();
        }
        let bad =
            format!("unreadable={}-{}={}", ends[2] - 5_000, ends[2] - 4_488, store.join("packs/000001.pack").display());
        let run = |args: &[&str]| scene.piton(args).env("PITON_FAIL", &bad).output().unwrap();
        let verified = run(&["verify"]);
        assert_eq!(verified.status.code(), Some(1), "{}", both(&verified));
        assert!(both(&verified).contains("`f3`") || both(&verified).contains("f3"), "{}", both(&verified));
        let done = run(&["rewind", "c5", "--yes"]);
        assert!(done.status.success(), "{}", both(&done));
        let done = run(&["rewind", "c2", "--yes"]);
        assert!(done.status.success(), "{}", both(&done));
        let repaired = run(&["verify", "--repair"]);
        assert_ne!(repaired.status.code(), Some(2), "{}", both(&repaired));
    }
}

/// What a hook found cut off used to be told to nobody: files changed, or stayed half changed, without a word.
#[test]
fn a_hook_tells_its_user_what_became_of_an_operation_that_had_been_cut_off() {
    for (edit, expected) in [(None, "was taken back"), (Some("mine"), "left as they are: b")] {
        let scene = Scene::new(PITON);
        scene.world.write("a", "1").write("b", "1");
        scene.ok(&["checkpoint", "before"]);
        scene.world.write("a", "2").write("b", "2");
        let more = json!({ "transcript_path": "/none", "prompt": "go" });
        let event = |name: &str| scene.claude_event("s", name, more.clone()).to_string();
        let killed = (1..).find(|step| {
            let status = scene.piton(&["rewind", "before", "--yes"]).env("PITON_FAIL", format!("kill={step}")).output();
            assert!(!status.unwrap().status.success(), "it was never in the middle of its swap");
            scene.read("a") != "2" || scene.read("b") != "2" || scene.world.ws().read_dir().unwrap().count() > 2
        });
        assert!(killed.is_some());
        if let Some(edit) = edit {
            scene.world.write("b", edit);
        }
        let said = event("UserPromptSubmit");
        assert!(said.contains("had been cut off") && said.contains(expected), "{said}");
        assert!(!event("Stop").contains("cut off"));
    }
}

#[test]
fn history_that_is_gone_is_told_by_status_and_doctor_and_once_by_a_hook() {
    let scene = Scene::new(PITON);
    scene.world.write("a", "1");
    scene.ok(&["checkpoint", "one"]);
    let store = scene.world.open().store_folder().to_owned();
    std::fs::remove_file(store.join("packs/000001.pack")).unwrap();
    let more = json!({ "transcript_path": "/none", "prompt": "go" });
    let prompt = || scene.claude_event("s", "UserPromptSubmit", more.clone()).to_string();
    let warning = "gone or incomplete";
    assert!(prompt().contains(warning));
    assert!(!prompt().contains(warning));
    for command in ["status", "doctor"] {
        let said = both(&scene.run(&[command]));
        assert!(said.contains(warning), "{said}");
    }
}

/// What the operation itself had put in place was called "changed by somebody".
#[test]
fn of_a_mix_it_is_not_said_that_somebody_changed_all_of_it() {
    const NAMES: [&str; 3] = ["a", "b", "c"];
    let scene = Scene::new(PITON);
    let write = |version: &str| {
        for name in NAMES {
            scene.world.write(name, format!("{name} {version}"));
        }
    };
    write("one");
    scene.ok(&["checkpoint", "before"]);
    write("two");
    let swapped = || NAMES.into_iter().filter(|name| scene.read(name).ends_with("one")).collect::<Vec<_>>();
    let is_cut_off = |step: &u32| {
        // What the last try left is ended first, so that each passes the same points.
        scene.ok(&["status"]);
        let rewind = scene.piton(&["rewind", "before", "--yes"]).env("PITON_FAIL", format!("kill={step}")).output();
        assert!(!rewind.unwrap().status.success(), "it was never in the middle of its swap");
        swapped().len() == 2
    };
    assert!((1..).any(|step| is_cut_off(&step)));
    let edited = swapped()[0];
    for path in scene.world.ws().read_dir().unwrap().map(|entry| entry.unwrap().path()) {
        let content = std::fs::read_to_string(&path).unwrap();
        if content.starts_with(edited) {
            std::fs::write(path, format!("// licence\n{content}")).unwrap();
        }
    }
    let said = both(&scene.run(&["status"]));
    assert!(said.contains("nothing tells the old from the new"), "{said}");
    assert!(
        said.contains("changed by it, or by somebody since, and left as they are:\n        a\n        b\n"),
        "{said}"
    );
}
