//! `piton export SESSION` and `piton import FILE` as people and scripts see them.

use std::os::unix::fs::PermissionsExt;

use piton_testkit::{Agent, Scene};

use crate::PITON;

fn scene() -> Scene {
    Scene::new(PITON)
}

/// A session of two turns.
fn exporter() -> Scene {
    let scene = scene();
    scene.world.write("a.txt", "one\n");
    let agent = Agent::new(&scene.world, "run-1");
    agent.edits("add a login page", &["login.rs"], |world| {
        world.write("login.rs", "fn login() {}\n");
    });
    agent.edits("and \u{1b}[31mtests", &["tests.rs"], |world| {
        world.write("tests.rs", "#[test]\n");
    });
    scene.ok(&["checkpoint", "good"]);
    scene
}

#[test]
fn a_session_goes_to_a_file_and_comes_to_another_store() {
    let (from, to) = (exporter(), scene());
    let id = Agent::new(&from.world, "run-1").id();
    let place = from.world.base().join("s.piton");
    let place = place.to_str().unwrap();
    let said = from.told(&["export", "run-1", "-o", place]);
    assert!(said.starts_with(&format!("{place}: session {} of test, 2 turns, 9 checkpoints, ", id.short())), "{said}");
    assert!(said.contains("note: without the transcript: the agent keeps none"), "{said}");
    assert_eq!(std::fs::metadata(place).unwrap().permissions().mode() & 0o777, 0o600);

    to.world.write("mine.txt", "mine\n");
    to.ok(&["checkpoint", "good"]);
    let said = to.told(&["import", place]);
    assert!(said.starts_with(&format!("session {} of test: 2 turns, 9 checkpoints, ", id.short())), "{said}");
    assert!(
        said.contains(&format!("note: `good` is a checkpoint of yours; the archive's is `{}-good` here", id.short()))
    );
    assert!(said.contains(&format!("`piton log --session {}` shows it; your files are as they were", id.short())));
    assert!(to.world.snapshot().len() == 1);
    // This folder's own checkpoint is its own still, and the last one here.
    let log = to.ok(&["log"]);
    assert!(!log.contains("another folder"), "{log}");
    let flat = to.ok(&["log", "--checkpoints"]);
    let (own, imported): (Vec<_>, Vec<_>) = flat.lines().partition(|line| !line.contains("(imported)"));
    assert_eq!((own.len(), imported.len()), (1, 9), "{flat}");
    assert!(own[0].starts_with("* ") && own[0].contains("good") && !own[0].contains("another folder"), "{flat}");
    assert!(to.told(&["import", place]).contains("is already here, with all that the archive has of it"));

    let s = id.short();
    assert!(to.ok(&["sessions"]).contains("add a login page"));
    let log = to.ok(&["log", "--session", s]);
    assert!(log.contains("add a login page") && log.contains("and \\x1b[31mtests"), "{log}");
    assert!(to.ok(&["show", &format!("{s}:t2")]).contains(" turn 2 of "));
    assert!(to.ok(&["diff", &format!("{s}:t1"), &format!("{s}:t2")]).contains("+fn login() {}"));
    assert!(to.ok(&["search", "login"]).contains("login"));
    let target = format!("{s}:t2");
    assert!(to.fails(&["rewind", &target, "--yes"]).contains("--across"));
    to.ok(&["rewind", &target, "--across", "--yes"]);
    assert_eq!((to.read("a.txt"), to.read("login.rs")), ("one\n".into(), "fn login() {}\n".into()));
    assert!(!to.world.path("mine.txt").exists() && !to.world.path("tests.rs").exists());
    to.ok(&["redo", "--yes"]);
    assert_eq!(to.read("mine.txt"), "mine\n");
    to.ok(&["verify"]);
}

#[test]
fn scripts_get_one_document_each() {
    let (from, to) = (exporter(), scene());
    let before = from.world.snapshot();
    let exported = from.json(&["export", "--session", "run-1"]);
    let id = exported["session"].as_str().unwrap();
    // Beside the workspace, where no checkpoint captures it.
    let file = from.world.base().join(format!("session-{}.piton", &id[..8]));
    from.world.assert_is(&before);
    assert_eq!(exported["file"], file.to_str().unwrap());
    assert_eq!(exported["size"], std::fs::metadata(&file).unwrap().len());
    assert_eq!((&exported["turns"], &exported["checkpoints"]), (&2.into(), &9.into()));
    let imported = to.json(&["import", file.to_str().unwrap()]);
    assert_eq!((&imported["session"], &imported["already_here"]), (&id.into(), &false.into()));
    assert_eq!(imported["objects"], exported["objects"]);
    assert_eq!(to.json(&["import", file.to_str().unwrap()])["already_here"], true);
    // Elsewhere it is where it is typed.
    std::fs::create_dir(from.world.base().join("elsewhere")).unwrap();
    let ws = from.world.ws();
    let (code, said) =
        from.run_in(&from.world.base().join("elsewhere"), &["export", "run-1", "--workspace", ws.to_str().unwrap()]);
    assert!(code == Some(0) && said.contains("/elsewhere/session-"), "{said}");
    // In the workspace it would be captured too, which is worth a word.
    let said = from.told(&["export", "run-1", "-o", "in.piton"]);
    assert!(said.contains("note: it lies in the workspace"), "{said}");
    let beside = from.told(&["export", "run-1", "-o", "../beside.piton"]);
    assert!(!beside.contains("note: it lies") && !beside.contains(".."), "{beside}");
}

#[test]
fn a_folder_that_is_no_workspace_yet_becomes_one_and_stays_as_it_is() {
    let (from, to) = (exporter(), scene());
    from.ok(&["export", "run-1", "-o", "../s.piton"]);
    to.world.write("mine.txt", "mine\n");
    let before = to.world.snapshot();
    let said = to.told(&["import", from.world.base().join("s.piton").to_str().unwrap()]);
    assert!(said.contains("is a workspace now") && said.contains("2 turns"), "{said}");
    to.world.assert_is(&before);
    assert!(to.ok(&["sessions"]).contains("add a login page"));
    // A file that is not there makes none.
    let empty = scene();
    assert!(empty.fails(&["import", "nothing"]).contains("is not there"));
    assert!(empty.fails(&["log"]).contains("not a workspace yet"));
}

#[test]
fn an_archive_goes_through_a_pipe() {
    let (from, to) = (exporter(), scene());
    let done = from.run(&["export", "run-1", "-o", "-"]);
    assert!(done.status.success() && done.stderr.is_empty());
    std::fs::write(to.world.base().join("s.piton"), &done.stdout).unwrap();
    to.ok(&["import", "../s.piton"]);
    let (shown, code) = from.at_a_terminal(&["export", "run-1", "-o", "-"], "");
    assert!(code == Some(1) && shown.contains("a terminal cannot show an archive"), "{shown}");
}

#[test]
fn each_refusal_says_the_way_out_and_leaves_no_file_behind() {
    let scene = exporter();
    scene.world.write("there.piton", "mine").folder("folder");
    let before = scene.world.snapshot();
    for (args, message, hint) in [
        (&["export", "nobody"][..], "there is no session `nobody`", "`piton sessions`"),
        (&["export", "t1"], "`t1` is not a session", "`--git BRANCH`"),
        (&["export"], "needs SESSION or TARGET", ""),
        (&["export", "run-1", "-o", "there.piton"], "there.piton is there already", "`--force`"),
        (&["export", "run-1", "-o", "folder"], "folder is a folder", "name the file"),
        (&["export", "run-1", "-o", ".."], "is a folder", "name the file"),
        (&["export", "run-1", "-o", "no/such/x"], "No such file", ""),
        (&["export", "run-1", "-o", "x", "--git", "y"], "does not go together with", ""),
        (&["import"], "needs FILE", ""),
        (&["import", "nothing.piton"], "is not there", ""),
        (&["import", "folder"], "is a folder", ""),
        (&["import", "there.piton"], "there.piton is not a session archive", "`piton export SESSION` makes one"),
    ] {
        let said = scene.fails(args);
        assert!(said.contains(message) && said.contains(hint), "{args:?}: {said}");
        scene.world.assert_is(&before);
    }
    let done = scene.run(&["export", "run-1", "-o", "-", "--json"]);
    assert_eq!(done.status.code(), Some(1));
    let document: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(document["error"]["message"].as_str().unwrap().contains("cannot both go to stdout"));
    scene.ok(&["export", "run-1", "-o", "there.piton", "--force"]);
    // A whole one, cut and changed.
    let sound = std::fs::read(scene.world.path("there.piton")).unwrap();
    scene.world.write("there.piton", &sound[..sound.len() - 100]);
    let said = scene.fails(&["import", "there.piton"]);
    assert!(said.contains("the archive is damaged at byte") && said.contains("nothing of it was used"), "{said}");
    let mut later = sound;
    later[8] = 9;
    scene.world.write("there.piton", &later);
    assert!(scene.fails(&["import", "there.piton"]).contains("has format 9; this piton knows formats up to 1"));
}

#[test]
fn a_full_disk_leaves_no_half_archive() {
    let scene = exporter();
    let done =
        scene.piton(&["export", "run-1", "-o", "-"]).stdout(std::fs::File::create("/dev/full").unwrap()).output();
    let done = done.unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", String::from_utf8_lossy(&done.stderr));
}
