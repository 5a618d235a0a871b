//! `piton cat`: files as they were, to a pipe, a terminal and a program.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use piton_engine::Tool;
use piton_testkit::{Scene, World, at_a_terminal, both};

use crate::PITON;

fn turn(world: &World, session: &str, prompt: &str, act: impl FnOnce(&World) -> &World) {
    let mut workspace = world.open();
    let mut session = workspace.begin_session("claude-code", session).unwrap();
    session.begin_turn(prompt).unwrap();
    session.before_tool(&Tool::new(prompt, "Bash")).unwrap();
    act(world);
    session.after_tool(prompt).unwrap();
    session.end_turn().unwrap();
}

/// A session that changed a file in `src` in each of two turns, and what git ignores beside it.
fn scene() -> Scene {
    let scene = Scene::new(PITON);
    scene
        .world
        .write("src/main.rs", "one\n")
        .write("node_modules/m/index.js", "")
        .write(".gitignore", "node_modules\n");
    scene.world.link("link", "src/main.rs").write("logo.png", b"\x89PNG\x00\xff").write("none", "");
    turn(&scene.world, "run-1", "first", |world| world.write("src/main.rs", "two\n"));
    turn(&scene.world, "run-1", "second", |world| world.write("src/main.rs", "three, no end").remove("logo.png"));
    scene
}

/// The bytes that a command prints that works in a folder of the workspace.
#[track_caller]
fn printed(scene: &Scene, folder: &str, args: &[&str]) -> Vec<u8> {
    let done = scene.piton(args).current_dir(scene.world.path(folder)).output().unwrap();
    assert_eq!((done.status.code(), &done.stderr[..]), (Some(0), &b""[..]), "{args:?}: {}", both(&done));
    done.stdout
}

#[test]
fn a_file_is_printed_byte_by_byte_as_it_was_at_a_turn_a_name_an_id_or_an_age() {
    let scene = scene();
    let id = scene.capture();
    scene.ok(&["checkpoint", "before-x"]);
    scene.world.write("src/main.rs", "now\n");
    for (target, expected) in [
        ("t1", "one\n"),
        ("t2", "two\n"),
        ("t2.end", "three, no end"),
        ("start", "one\n"),
        ("before-x", "three, no end"),
    ] {
        let typed = format!("{target}:src/main.rs");
        assert_eq!(printed(&scene, ".", &["cat", &typed]), expected.as_bytes(), "{target}");
    }
    assert_eq!(printed(&scene, ".", &["cat", &format!("{}:src/main.rs", &id[..8])]), b"three, no end");
    // A path is relative to the current folder, and may be absolute.
    assert_eq!(printed(&scene, "src", &["cat", "t2:main.rs"]), b"two\n");
    assert_eq!(printed(&scene, "src", &["cat", "t1:../logo.png"]), b"\x89PNG\x00\xff");
    let whole = format!("t1:{}", scene.world.path("src/main.rs").display());
    assert_eq!(printed(&scene, ".", &["cat", &whole]), b"one\n");
    assert_eq!(printed(&scene, ".", &["cat", "t1:link"]), b"src/main.rs");
    assert_eq!(printed(&scene, ".", &["cat", "t1:none"]), b"");
    assert_eq!(printed(&scene, ".", &["cat", "t1:src/main.rs", "t2:src/main.rs"]), b"one\ntwo\n");
    assert_eq!(scene.read("src/main.rs"), "now\n");
}

#[test]
fn a_turn_of_another_session_and_names_with_colons_and_strange_bytes_are_found() {
    let scene = scene();
    let strange = OsStr::from_bytes(b"caf\xe9:t1");
    turn(&scene.world, "run-2", "third", |world| world.write(strange, "strange\n").write("t1:x", "odd\n"));
    assert_eq!(printed(&scene, ".", &["cat", "run-1:t2:src/main.rs"]), b"two\n");
    assert_eq!(printed(&scene, ".", &["cat", "run-2:t1.end:t1:x"]), b"odd\n");
    let done = scene.piton(&["cat"]).arg(OsStr::from_bytes(b"run-2:t1.end:caf\xe9:t1")).output().unwrap();
    assert_eq!(done.stdout, b"strange\n", "{}", both(&done));
}

#[test]
fn what_is_no_file_of_that_moment_is_said_and_nothing_is_printed() {
    let scene = scene();
    for (args, message, hint) in [
        (&["cat", "t1:src"][..], "`src` is a folder in checkpoint", "piton checkout "),
        (&["cat", "t1:."], "`.` is a folder in checkpoint", "piton checkout "),
        (&["cat", "t1:new.rs"], "has no file `new.rs`", "piton log --files --path FILE"),
        (&["cat", "t2.end:logo.png"], "has no file `logo.png`", "piton log --files --path FILE"),
        (&["cat", "t1:node_modules"], "left out `node_modules` (", "piton show "),
        (&["cat", "t1:node_modules/m/index.js"], "left out `node_modules/m/index.js` (", "piton show "),
        (&["cat", "t1:src/main.rs/x"], "has no file `src/main.rs/x`", ""),
        (&["cat", "t1:../x"], "outside the workspace", ""),
        (&["cat", "t1:"], "an empty path means nothing", ""),
        (&["cat", "t9:a"], "has no turn 9", "piton log"),
        (&["cat", "nosuch:a"], "there is no checkpoint `nosuch`", "piton log"),
        (&["cat", "@:src/main.rs"], "not a checkpoint", ""),
        (&["cat", "src/main.rs"], "has no target before its path", "piton cat t5:src/main.rs"),
        (&["cat", "t1", "src/main.rs"], "is a target without a path", "piton cat t1:src/main.rs"),
        // The first one is not printed either.
        (&["cat", "t1:src/main.rs", "t1:nosuch"], "has no file `nosuch`", ""),
        (&["cat"], "needs TARGET:PATH", "piton help cat"),
    ] {
        let said = scene.fails(args);
        assert!(said.contains(message) && said.contains(hint), "{args:?}: {said}");
    }
}

#[test]
fn a_terminal_gets_text_without_its_control_characters_and_no_binary_file() {
    let scene = scene();
    turn(&scene.world, "run-1", "third", |world| world.write("evil", "\x1b[2Jgone\ttab\nlast"));
    let (shown, code) = at_a_terminal(scene.piton(&["cat", "t3.end:evil"]), "");
    assert_eq!((&shown[..], code), ("\\x1b[2Jgone\ttab\nlast\n", Some(0)));
    let (shown, code) = at_a_terminal(scene.piton(&["cat", "t1:logo.png"]), "");
    assert!(shown.contains("is binary") && shown.contains("piton cat t1:logo.png > FILE"), "{shown}");
    assert_eq!(code, Some(1));
    let (shown, _) = at_a_terminal(scene.piton(&["cat", "t1:link"]), "");
    assert!(shown.starts_with("src/main.rs\n") && shown.contains("symlink"), "{shown}");
}

#[test]
fn a_program_gets_the_content_as_text_or_in_base64_with_what_the_file_is() {
    let scene = scene();
    let files = scene.json(&["cat", "t1:src/main.rs", "t1:logo.png", "t1:link"])["files"].clone();
    assert_eq!((&files[0]["path"], &files[0]["content"]), (&"src/main.rs".into(), &"one\n".into()));
    assert_eq!((&files[0]["entry"]["type"], &files[0]["entry"]["mode"]), (&"file".into(), &"0644".into()));
    assert_eq!((&files[1]["content"], &files[1]["content_b64"]), (&serde_json::Value::Null, &"iVBORwD/".into()));
    assert_eq!((&files[2]["entry"]["type"], &files[2]["content"]), (&"symlink".into(), &"src/main.rs".into()));
    assert_eq!(files[0]["checkpoint"]["cause"], "prompt");
}

#[test]
fn a_file_whose_copy_in_the_store_is_damaged_is_not_printed_as_if_it_were_whole() {
    let scene = Scene::new(PITON);
    scene.world.write("a.txt", "one line\n");
    let mut workspace = scene.world.open();
    workspace.capture(&Default::default()).unwrap();
    drop(workspace);
    let pack = std::path::PathBuf::from(scene.json(&["status"])["store"].as_str().unwrap()).join("packs/000001.pack");
    let mut bytes = std::fs::read(&pack).unwrap();
    let at = bytes.windows(9).position(|part| part == b"one line\n").unwrap();
    bytes[at] ^= 0xff;
    std::fs::write(&pack, bytes).unwrap();
    let done = scene.run(&["cat", "start:a.txt"]);
    assert_eq!((done.status.code(), &done.stdout[..]), (Some(2), &b""[..]), "{}", both(&done));
    assert!(both(&done).contains("piton verify"), "{}", both(&done));
}
