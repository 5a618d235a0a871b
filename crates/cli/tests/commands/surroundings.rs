//! What the machine around piton says: its time zone, git's settings, names that are not UTF-8, a missing clipboard.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use piton_testkit::{Agent, Claude, Scene, both, git};
use serde_json::{Value, json};

use crate::PITON;

fn scene() -> Scene {
    Scene::new(PITON)
}

/// A compiled time zone without any change of the clocks, so many hours east of Greenwich.
fn time_zone(hours: i32) -> Vec<u8> {
    let name = b"XST\0";
    let block = |wide: bool| {
        let mut bytes = b"TZif2".to_vec();
        bytes.extend([0; 15]);
        // Counts: UT marks, standard marks, leap seconds, transitions, types, name bytes.
        for count in [0u32, 0, 0, 0, 1, name.len() as u32] {
            bytes.extend(count.to_be_bytes());
        }
        bytes.extend((hours * 3600).to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(name);
        if wide {
            bytes.extend(format!("\n<+{hours:02}>-{hours}\n").as_bytes());
        }
        bytes
    };
    [block(false), block(true)].concat()
}

#[test]
fn times_are_those_of_the_users_own_zone_and_otherwise_say_that_they_are_not() {
    let scene = scene();
    scene.world.write("f", "1");
    scene.ok(&["checkpoint", "named"]);
    let zones = scene.world.base().join("zones");
    std::fs::create_dir_all(zones.join("Asia")).unwrap();
    std::fs::write(zones.join("Asia/Nowhere"), time_zone(9)).unwrap();
    std::fs::write(zones.join("tzdata.zi"), "# version 2026a\n").unwrap();
    let shown = |zone: &str| {
        let mut command = scene.piton(&["show", "named"]);
        let done = command.env("TZ", zone).env("TZDIR", &zones).output().unwrap();
        assert!(done.status.success(), "{}", both(&done));
        both(&done)
    };
    let created = scene.json(&["show", "named"])["checkpoint"]["created_at"].as_str().unwrap().to_owned();
    let utc = |hours: i64| {
        let at: i64 = 3_600 * hours + seconds(&created);
        let (hour, minute) = (at / 3600 % 24, at / 60 % 60);
        format!(" {hour:02}:{minute:02}:")
    };
    let tokyo = shown("Asia/Nowhere");
    assert!(tokyo.contains(&utc(9)) && !tokyo.contains("UTC"), "{created}\n{tokyo}");
    let unknown = shown("Asia/No_such_place");
    assert!(unknown.contains(&utc(0)) && unknown.contains("UTC"), "{created}\n{unknown}");
    let east = shown("<+05>-5");
    assert!(east.contains(&utc(5)) && !east.contains("UTC"), "{created}\n{east}");
    let file = shown(&format!(":{}", zones.join("Asia/Nowhere").display()));
    assert!(file.contains(&utc(9)), "{created}\n{file}");
}

#[test]
fn a_zone_that_is_no_plain_file_is_neither_read_nor_waited_for() {
    let scene = scene();
    scene.world.write("f", "1");
    scene.ok(&["checkpoint", "named"]);
    let zones = scene.world.base().join("zones");
    std::fs::create_dir(&zones).unwrap();
    make_pipe(&zones.join("pipe"));
    std::fs::File::create(zones.join("huge")).unwrap().set_len(1 << 40).unwrap();
    let pipe = zones.join("pipe").display().to_string();
    for zone in ["Asia/Nowhere", "pipe", &pipe, "huge", "../../../../../../dev/zero", "/dev/zero"] {
        let done = within_ten_seconds(scene.piton(&["show", "named"]).env("TZ", zone).env("TZDIR", &zones));
        assert!(done.status.success() && both(&done).contains("UTC"), "{zone}: {}", both(&done));
    }
}

/// What a command says; one that takes longer is killed, which is no success.
fn within_ten_seconds(command: &mut std::process::Command) -> std::process::Output {
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let begun = std::time::Instant::now();
    while child.try_wait().unwrap().is_none() && begun.elapsed().as_secs() < 10 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let _ = child.kill();
    child.wait_with_output().unwrap()
}

fn make_pipe(path: &Path) {
    let _ = std::fs::remove_file(path);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
}

#[test]
fn a_pipe_among_gits_own_files_holds_nothing_up_and_is_named() {
    for name in ["HEAD", "commondir", "config", "packed-refs", "included", "refs/heads/other"] {
        let scene = scene();
        let ws = scene.world.ws();
        git(&ws, &["init", "-q"]);
        scene.world.write("f", "1");
        git(&ws, &["add", "-A"]);
        git(&ws, &["commit", "-qm", "c"]);
        git(&ws, &["config", "include.path", "included"]);
        scene.ok(&["checkpoint", "named"]);
        scene.world.write("f", "2");
        let path = scene.world.path(".git").join(name);
        make_pipe(&path);
        let shown = path.display().to_string();
        let doctor = within_ten_seconds(&mut scene.piton(&["doctor"]));
        assert!(both(&doctor).contains(&shown), "{name}: {}", both(&doctor));
        assert!(doctor.status.code().is_some(), "{name}: {}", both(&doctor));
        let export = within_ten_seconds(&mut scene.piton(&["export", "named", "--git", "exported"]));
        assert_eq!(export.status.code(), Some(1), "{name}: {}", both(&export));
        assert!(both(&export).contains(&shown), "{name}: {}", both(&export));
        let rewind = within_ten_seconds(&mut scene.piton(&["rewind", "named", "--git", "--yes"]));
        assert_eq!((rewind.status.code(), scene.read("f")), (Some(1), "2".to_owned()), "{name}: {}", both(&rewind));
        let plain = within_ten_seconds(&mut scene.piton(&["rewind", "named", "--yes"]));
        assert_eq!((plain.status.code(), scene.read("f")), (Some(0), "1".to_owned()), "{name}: {}", both(&plain));
    }
}

/// Seconds since midnight of an RFC 3339 time in UTC.
fn seconds(time: &str) -> i64 {
    let clock = time.split('T').nth(1).unwrap();
    let mut parts = clock.split([':', '.', 'Z']).map(|part| part.parse::<i64>().unwrap_or(0));
    parts.next().unwrap() * 3600 + parts.next().unwrap() * 60 + parts.next().unwrap()
}

/// Whether a capture leaves out the ignored folder `out`, with these variables; git itself must say the same.
#[track_caller]
fn assert_ignores(scene: &Scene, ignores: bool, variables: &[(&str, &Path)]) {
    let world = &scene.world;
    world.write("out/x", "x");
    let mut ask = std::process::Command::new("git");
    ask.current_dir(world.ws())
        .args(["check-ignore", "-q", "out/x"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap());
    ask.env("HOME", world.base()).env("GIT_CONFIG_NOSYSTEM", "1").envs(variables.iter().copied());
    assert_eq!(ask.status().unwrap().success(), ignores, "git itself");
    let mut command = scene.piton(&["status", "--json"]);
    let done = command.env("GIT_CONFIG_NOSYSTEM", "1").envs(variables.iter().copied()).output().unwrap();
    let status: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", both(&done)));
    let is_skipped = status["skipped"].as_array().unwrap().iter().any(|one| one["path"] == "out");
    assert_eq!(is_skipped, ignores, "{}", status["skipped"]);
}

#[test]
fn the_excludes_file_is_the_one_that_git_would_take() {
    let scene = scene();
    let (ws, base) = (scene.world.ws(), scene.world.base().to_path_buf());
    git(&ws, &["init", "-q"]);
    scene.world.write("f", "1");
    scene.ok(&["checkpoint"]);
    let write = |name: &str, text: &str| {
        let path = base.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    let excludes = write("conf/excludes", "out/\n");
    let names = format!("[core]\n\texcludesFile = {}\n", excludes.display());
    assert_ignores(&scene, false, &[]);
    // The user's settings at another place, which includes a file, which names it.
    write("conf/more", &names);
    let global = write("conf/global", "[include]\n\tpath = more\n");
    assert_ignores(&scene, true, &[("GIT_CONFIG_GLOBAL", &global)]);
    // Where that is set, the usual place has no say.
    write(".gitconfig", "[core]\n\texcludesFile = ~/conf/excludes\n");
    assert_ignores(&scene, true, &[]);
    assert_ignores(&scene, false, &[("GIT_CONFIG_GLOBAL", Path::new("/dev/null"))]);
    std::fs::remove_file(base.join(".gitconfig")).unwrap();
    // Only for repositories at some places.
    for (place, holds) in [(&base, true), (&base.join("other"), false)] {
        let condition = format!("[includeIf \"gitdir:{}/\"]\n\tpath = more\n", place.display());
        let global = write("conf/conditional", &condition);
        assert_ignores(&scene, holds, &[("GIT_CONFIG_GLOBAL", &global)]);
    }
    // The repository's own, relative to its working tree; it overrules the user's.
    git(&ws, &["config", "core.excludesFile", "../conf/excludes"]);
    assert_ignores(&scene, true, &[]);
    git(&ws, &["config", "core.excludesFile", ""]);
    assert_ignores(&scene, false, &[("GIT_CONFIG_GLOBAL", &global)]);
    git(&ws, &["config", "--unset", "core.excludesFile"]);
    // The folder of settings that XDG means.
    write("xdg/git/ignore", "out/\n");
    assert_ignores(&scene, true, &[("XDG_CONFIG_HOME", &base.join("xdg"))]);
}

#[test]
fn a_worktrees_own_settings_and_those_of_its_repository_count() {
    let scene = scene();
    let (ws, base) = (scene.world.ws(), scene.world.base().to_path_buf());
    let main = base.join("main");
    std::fs::create_dir(&main).unwrap();
    git(&main, &["init", "-q"]);
    git(&main, &["commit", "-q", "--allow-empty", "-m", "first"]);
    std::fs::remove_dir(&ws).unwrap();
    git(&main, &["worktree", "add", "-q", ws.to_str().unwrap()]);
    scene.ok(&["checkpoint"]);
    let excludes = base.join("excludes");
    std::fs::write(&excludes, "out/\n").unwrap();
    assert_ignores(&scene, false, &[]);
    git(&main, &["config", "core.excludesFile", excludes.to_str().unwrap()]);
    assert_ignores(&scene, true, &[]);
    git(&main, &["config", "extensions.worktreeConfig", "true"]);
    git(&ws, &["config", "--worktree", "core.excludesFile", "/no/such/file"]);
    assert_ignores(&scene, false, &[]);
}

#[test]
fn a_folder_whose_name_is_not_utf_8_does_not_break_the_document_of_what_was_done() {
    let scene = scene();
    let other = scene.world.base().join(OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir(&other).unwrap();
    // A folder that a session only comes to later is no workspace by itself.
    scene.world.engine.open_or_init(&other).unwrap();
    scene.world.write("f", "1");
    scene.ok(&["checkpoint", "before"]);
    let agent = Agent::new(&scene.world, "s1");
    agent.prompt("here");
    *agent.folder.borrow_mut() = other;
    agent.prompt("there");
    agent.end_turn();
    *agent.folder.borrow_mut() = scene.world.ws();
    agent.prompt("here again");
    agent.step("Edit", &["f"], |world| {
        world.write("f", "2");
    });
    agent.end_turn();
    let args = ["rewind", "s1:t3", "--yes", "--scope", "code", "--interrupted", "--json"];
    let done = scene.run(&args);
    assert_eq!(done.status.code(), Some(0), "{}", both(&done));
    let done: Value = serde_json::from_slice(&done.stdout).unwrap();
    let shown = done["other_workspaces"][0].as_str().unwrap();
    assert!(shown.contains("caf\u{fffd}"), "{shown}");
}

#[test]
fn a_rewind_without_a_clipboard_is_done_says_so_and_prints_one_document() {
    let scene = scene();
    scene.world.write("f", "1");
    let claude = Claude::new(&scene.world, 1);
    for prompt in ["one", "two"] {
        claude.edits(prompt, &["f"], |world| {
            world.write("f", prompt);
        });
    }
    let done = scene.run(&["rewind", "t2", "--yes", "--copy", "--json"]);
    assert_eq!(done.status.code(), Some(0), "{}", both(&done));
    let document: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(document["verified"], json!(true));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("not on the clipboard"), "{said}");
    assert_eq!(scene.read("f"), "one");
}

/// With `capture.automatic = false` nothing is captured, and an undo knows all the same whose the changes since may be: the
/// user's own may be among them.
#[test]
fn what_nobody_captured_is_in_the_list_of_changes_with_the_number_that_an_undo_takes() {
    let scene = scene();
    scene.world.write("f", "1").write("mine", "1").write(".piton/config.toml", "");
    scene.ok(&["checkpoint", "before"]);
    let config = scene.world.base().join(".config/piton/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(config, "[capture]\nautomatic = false\n").unwrap();
    let report = |event: &str, mut more: Value| {
        more["agent"] = json!("test");
        scene.generic_event("s1", event, more);
    };
    report("prompt", json!({"text": "one"}));
    report("before-tool", json!({"tool": "Edit", "call": "c1", "paths": ["f"]}));
    scene.world.write("f", "2");
    report("after-tool", json!({"tool": "Edit", "call": "c1", "paths": ["f"]}));
    report("turn-ended", json!({}));
    let told = scene.told(&["changes"]);
    assert!(told.contains("[1]") && told.contains("f (modified)") && told.contains("not captured yet"), "{told}");
    assert!(told.contains("1 change to 1 file") && told.contains("capture.automatic"), "{told}");
    let changes = scene.json(&["changes"]);
    assert_eq!(changes["changes"][0]["checkpoint"], Value::Null);
    assert!(both(&scene.run(&["undo", "1", "--yes"])).contains("f (t1.1 or you: "));
    scene.ok(&["undo", "1", "--unsure", "--yes"]);
    assert_eq!(scene.read("f"), "1");
}

#[test]
fn a_home_that_is_not_absolute_is_refused() {
    let scene = scene();
    let done = scene.piton(&["status"]).env("PITON_HOME", "store").output().unwrap();
    let said = both(&done);
    assert!(
        done.status.code() == Some(1) && said.contains("PITON_HOME is `store`, which is not an absolute path"),
        "{said}"
    );
    assert!(!scene.world.path("store").exists());
}
