//! One session in several workspaces: each goes by its own settings, each is captured, and no command says or does less or
//! more than what was asked for in the others.

use std::path::{Path, PathBuf};

use piton_testkit::{Scene, git, give};
use serde_json::{Value, json};

use crate::PITON;

/// A repository with a worktree `w1` inside.
fn with_a_worktree() -> (Scene, PathBuf, PathBuf) {
    let scene = Scene::new(PITON);
    let ws = scene.world.ws();
    repository(&ws);
    git(&ws, &["worktree", "add", "-q", "w1"]);
    let worktree = ws.join("w1");
    (scene, ws, worktree)
}

fn repository(folder: &Path) {
    std::fs::create_dir_all(folder.join("src")).unwrap();
    std::fs::write(folder.join("src/a"), "a\n").unwrap();
    std::fs::write(folder.join("b"), "b\n").unwrap();
    git(folder, &["init", "-q"]);
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-qm", "c"]);
}

/// Reports an event in a folder; what the user sees of it.
#[track_caller]
fn report(scene: &Scene, session: &str, folder: &Path, event: &str, mut more: Value) -> Option<String> {
    more["cwd"] = json!(folder);
    let reply = scene.generic_event(session, event, more);
    Some(reply["line"].as_str().or(reply["answer"].as_str())?.to_owned())
}

fn text(path: PathBuf) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_settings_of_one_workspace_do_not_hold_in_another() {
    for (settings, sees) in [
        ("[capture]\nsize-limit = \"1\"\n", "leaves out files over 1"),
        ("[capture]\nautomatic = false\n", "switches automatic captures off"),
        ("[tools]\nreaders = [\"shell\"]\n", ""),
    ] {
        let scene = Scene::new(PITON);
        let (one, two) = (scene.world.ws(), scene.world.base().join("two"));
        repository(&one);
        repository(&two);
        scene.shell_turn("s", &one, 1, &["true"]);
        std::fs::create_dir(two.join(".piton")).unwrap();
        std::fs::write(two.join(".piton/config.toml"), settings).unwrap();
        std::fs::write(one.join("src/mine"), "precious\n").unwrap();
        let seen = scene.shell_turn("s", &two, 2, &[&format!("rm -rf {}/src", one.display())]);
        assert!(seen.contains(sees), "{settings}: {seen}");
        let (code, said) = scene.run_in(&one, &["rewind", "t2", "--yes"]);
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(text(one.join("src/mine")), "precious\n", "{settings}: {said}");
    }
}

#[test]
fn a_command_is_run_by_the_rules_for_agents() {
    let (scene, ws, worktree) = with_a_worktree();
    std::fs::write(ws.join(".gitignore"), "ign/\n").unwrap();
    std::fs::create_dir(ws.join("ign")).unwrap();
    std::fs::write(ws.join("ign/f"), "precious\n").unwrap();
    let (code, said) = scene.run_in(&ws.join("ign"), &["run", "--", "rm", "f"]);
    assert!(code == Some(0) && said.contains("1 deleted"), "{said}");
    scene.run_in(&ws.join("ign"), &["undo", "--yes"]);
    assert_eq!(text(ws.join("ign/f")), "precious\n");

    let (code, said) = scene.run_in(&ws, &["run", "--", "rm", "-rf", "w1/src"]);
    let (command, folder) = (said.split("piton rewind ").nth(1).unwrap_or_default(), worktree.display().to_string());
    assert!(code == Some(0) && said.contains(&format!("1 deleted in {folder}")), "{said}");
    let target = command.split(' ').next().unwrap();
    let (code, said) = scene.run_in(&ws, &["rewind", target, "--workspace", &folder, "--yes"]);
    assert_eq!(code, Some(0), "what the hint says is so: {said}");
    assert_eq!(text(worktree.join("src/a")), "a\n");
    assert!(scene.run_in(&ws, &["run", "--", "true"]).1.contains("no changes"));
}

#[test]
fn an_undo_never_passes_over_a_later_turn_that_changed_another_workspace() {
    let (scene, ws, worktree) = with_a_worktree();
    scene.shell_turn("s", &ws, 1, &["echo precious >important"]);
    scene.shell_turn("s", &ws, 2, &["echo two >w1/b"]);
    let (code, said) = scene.run_in(&ws, &["undo", "--yes"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("turn 2 is the last that changed files") && said.contains("piton undo t1"), "{said}");
    let answer = report(&scene, "s", &ws, "prompt", json!({ "turn": "p3", "text": "/piton undo" })).unwrap();
    assert!(answer.contains("turn 2 is the last that changed files"), "{answer}");
    assert_eq!((text(ws.join("important")), text(worktree.join("b"))), ("precious\n".into(), "two\n".into()));
    // What the hint says is so.
    scene.run_in(&ws, &["undo", "--yes", "--workspace", &worktree.display().to_string()]);
    assert_eq!(text(worktree.join("b")), "b\n");
    let (code, said) = scene.run_in(&ws, &["undo", "--yes"]);
    assert!(code == Some(0) && !ws.join("important").exists(), "{said}");
    // One that changed both says so.
    scene.shell_turn("s", &ws, 4, &["echo four >b; echo four >w1/b"]);
    let (_, said) = scene.run_in(&ws, &["undo", "--yes"]);
    assert!(said.contains(&format!("also worked in {}", worktree.display())), "{said}");
    assert_eq!((text(ws.join("b")), text(worktree.join("b"))), ("b\n".into(), "four\n".into()));
}

#[test]
fn a_session_that_only_looks_in_does_not_take_a_worktree_over() {
    let (scene, ws, worktree) = with_a_worktree();
    scene.shell_turn("main", &ws, 1, &["true"]);
    scene.shell_turn("s2", &worktree, 1, &["echo one >b"]);
    scene.shell_turn("s2", &worktree, 2, &["echo two >b"]);
    scene.shell_turn("main", &ws, 2, &["true"]);
    let (code, said) = scene.run_in(&worktree, &["undo", "--yes"]);
    assert!(code == Some(0) && text(worktree.join("b")) == "one\n", "{said}");
    let (code, said) = scene.run_in(&worktree, &["rewind", "t1", "--yes"]);
    assert!(code == Some(0) && text(worktree.join("b")) == "b\n", "{said}");
    let (_, said) = scene.run_in(&ws, &["rewind", "t1", "--preview"]);
    assert!(!said.contains("also worked in"), "it never worked there: {said}");
    let (_, said) = scene.run_in(&worktree, &["status"]);
    assert_eq!(said.matches("\nidle ").count(), 1, "{said}");

    // A shell outside is no reason to doubt what a shell in the worktree did there.
    let call = json!({ "turn": "p3", "tool": "shell", "call": "long", "command": "npm test" });
    scene.generic_event("main", "prompt", json!({ "turn": "p3", "text": "test" }));
    scene.generic_event("main", "before-tool", call.clone());
    scene.shell_turn("s2", &worktree, 3, &["echo three >b"]);
    scene.generic_event("main", "after-tool", call);
    let (code, said) = scene.run_in(&worktree, &["undo", "--yes"]);
    assert!(code == Some(0) && text(worktree.join("b")) == "b\n", "{said}");
    // What it does there all the same is its own.
    scene.shell_turn("main", &ws, 4, &["echo four >w1/b"]);
    let (_, said) = scene.run_in(&ws, &["rewind", "t4", "--preview"]);
    assert!(said.contains("also worked in"), "{said}");
    let (code, said) = scene.run_in(&ws, &["rewind", "t4", "--all-workspaces", "--yes"]);
    assert!(code == Some(0) && text(worktree.join("b")) == "b\n", "{said}");
}

#[test]
fn a_worktree_that_a_tool_removes_is_a_gap_once_and_comes_back() {
    let (scene, ws, worktree) = with_a_worktree();
    scene.shell_turn("s", &ws, 1, &["echo precious >w1/new"]);
    let seen = scene.shell_turn("s", &ws, 2, &["rm -rf w1"]);
    assert!(seen.contains("w1 is gone"), "{seen}");
    assert_eq!(scene.shell_turn("s", &ws, 3, &["true"]), "", "told once");
    let log = text(scene.world.base().join("home/hook.log"));
    assert_eq!(log.matches("is gone").count(), 1, "{log}");
    let (code, said) = scene.run_in(&ws, &["undo", "--yes"]);
    let folder = worktree.display().to_string();
    let way = format!("`piton rewind t2 --workspace {folder}` brings back what was there before it");
    assert!(code == Some(1) && said.contains(&way), "{said}");
    let (code, said) = scene.run_in(&ws, &["rewind", "t2", "--all-workspaces", "--yes"]);
    assert!(code == Some(1) && said.contains("rewound"), "{said}");
    assert!(said.contains("not restored: .git"), "its files are back, and it is no worktree yet: {said}");
    assert_eq!(text(worktree.join("new")), "precious\n");
}

#[test]
fn what_goes_wrong_in_another_workspace_is_said_and_ends_in_1() {
    let (scene, ws, worktree) = with_a_worktree();
    scene.shell_turn("s", &ws, 1, &["echo x >w1/b; echo x >b"]);
    let store = scene.world.engine.open(&worktree).unwrap().store_folder().to_owned();
    std::fs::rename(store.join("packs"), store.join("packs.away")).unwrap();
    std::fs::write(store.join("packs"), "junk").unwrap();
    let seen = scene.shell_turn("s", &ws, 2, &["true"]);
    assert!(seen.contains("not captured") && seen.contains("w1"), "{seen}");
    let (_, said) = scene.run_in(&ws, &["doctor"]);
    assert!(said.contains("events went wrong"), "{said}");
    let (code, said) = scene.run_in(&ws, &["rewind", "t1", "--all-workspaces", "--yes"]);
    assert!(code == Some(1) && said.contains("not rewound"), "{said}");
    assert_eq!((text(ws.join("b")), text(worktree.join("b"))), ("b\n".into(), "x\n".into()));
}

#[test]
fn a_busy_worktree_does_not_hold_up_who_works_around_it() {
    let (scene, ws, worktree) = with_a_worktree();
    scene.shell_turn("s", &ws, 1, &["true"]);
    let store = scene.world.engine.open(&worktree).unwrap().store_folder().to_owned();
    let lock = std::fs::File::options().write(true).open(store.join("lock")).unwrap();
    lock.lock().unwrap();
    // Somebody is busy there for long; who waits for them captures it then, and who does not has a gap.
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let busy = std::thread::spawn(move || {
        let _ = is_done.recv_timeout(std::time::Duration::from_secs(8));
        drop(lock);
    });
    scene.generic_event("s", "prompt", json!({ "turn": "p2", "text": "x" }));
    drop(done);
    busy.join().unwrap();
    let log = text(scene.world.base().join("home/hook.log"));
    let last = log.lines().last().unwrap();
    assert!(last.contains("captured") && last.contains("gap"), "{last}");
}

#[test]
fn all_workspaces_go_back_with_git_and_each_says_how_to_return() {
    let (scene, ws, worktree) = with_a_worktree();
    let commit = "git -c user.name=n -c user.email=e@x commit -qam";
    scene.shell_turn("s", &ws, 1, &[&format!("echo x >b; {commit} x; cd w1; echo x >b; {commit} x1")]);
    let (code, said) = scene.run_in(&ws, &["rewind", "t1", "--all-workspaces", "--git", "--yes"]);
    assert_eq!(code, Some(0), "{said}");
    for folder in [&ws, &worktree] {
        assert_eq!(git(folder, &["log", "--format=%s"]), "c\n", "{said}");
        assert_eq!(git(folder, &["status", "--short", "-uno"]), "");
    }
    let there = format!("piton redo --workspace {}", worktree.display());
    assert!(said.contains(&format!("`{there}` takes it back there")), "{said}");
    scene.run_in(&ws, &["redo", "--yes"]);
    assert_eq!((text(ws.join("b")), text(worktree.join("b"))), ("x\n".into(), "b\n".into()));
    scene.run_in(&ws, &["redo", "--yes", "--workspace", &worktree.display().to_string()]);
    assert_eq!(text(worktree.join("b")), "x\n");
    let answer =
        report(&scene, "s", &ws, "prompt", json!({ "turn": "p2", "text": "/piton rewind t1 --all-workspaces" }));
    assert!(answer.is_some_and(|answer| answer.contains("is for a terminal")));
}

#[test]
fn a_file_that_a_tool_names_is_stored_in_its_own_workspace_alone() {
    let (scene, ws, worktree) = with_a_worktree();
    scene.shell_turn("s", &ws, 1, &["true"]);
    let call = json!({ "turn": "p2", "tool": "Write", "call": "c", "paths": [ws.join("named")] });
    scene.generic_event("s", "prompt", json!({ "turn": "p2", "text": "x" }));
    std::fs::write(ws.join("named"), "a text that is stored once").unwrap();
    scene.generic_event("s", "before-tool", call.clone());
    scene.generic_event("s", "after-tool", call);
    let holds = |folder: &Path| {
        let store = scene.world.engine.open(folder).unwrap().store_folder().join("packs/000001.pack");
        std::fs::read(store).unwrap().windows(26).any(|bytes| bytes == b"a text that is stored once")
    };
    assert!(holds(&ws) && !holds(&worktree));
}

/// Time that ran out in one workspace used to be a gap of another, which had been captured.
#[test]
fn where_time_runs_out_in_another_workspace_the_gap_is_there() {
    let (scene, ws, worktree) = with_a_worktree();
    scene.shell_turn("s", &worktree, 1, &["true"]);
    scene.shell_turn("s", &ws, 2, &["true"]);
    // A folder that was replaced waits for the disk.
    std::fs::rename(&worktree, ws.join("../away")).unwrap();
    std::fs::create_dir(&worktree).unwrap();
    std::fs::copy(ws.join("../away/.git"), worktree.join(".git")).unwrap();
    std::fs::write(worktree.join("b"), "b\n").unwrap();
    let mut hook = scene.piton(&["hook", "generic"]);
    let never = scene.at("never");
    hook.env("PITON_HOOK_TIME_BUDGET", "2s").env("PITON_FAIL", format!("wait=store:sync-pack={}", never.display()));
    let done = give(hook, &scene.generic_report("s", "prompt", json!({ "turn": "p3", "text": "three" })));
    assert_eq!(done.status.code(), Some(0));
    assert!(never.with_extension("reached").exists());
    let gaps = |folder: &Path| {
        let (_, log) = scene.run_in(folder, &["log"]);
        log.matches("the time budget is over").count()
    };
    // What goes on reading after the hook has answered may have the lock, and then a command does not wait to record it.
    for _ in 0..100 {
        if gaps(&worktree) == 1 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!((gaps(&ws), gaps(&worktree)), (0, 1));
}

/// `changed nothing` used to be said of a turn that replaced the whole folder, and of one that went there unseen.
#[test]
fn of_a_turn_that_nobody_saw_it_is_said_that_nothing_is_known() {
    let scene = Scene::new(PITON);
    let (ws, other) = (scene.world.ws(), scene.world.base().join("other"));
    repository(&ws);
    repository(&other);
    scene.world.write("work", "mine\n");
    let call = json!({ "turn": "p1", "tool": "shell", "call": "c1", "command": "cd ../other; rm b" });
    scene.generic_event("s", "prompt", json!({ "turn": "p1", "text": "one" }));
    scene.generic_event("s", "before-tool", call.clone());
    std::fs::remove_file(other.join("b")).unwrap();
    report(&scene, "s", &other, "after-tool", call);
    report(&scene, "s", &other, "turn-ended", json!({ "turn": "p1" }));
    let (code, said) = scene.run_in(&other, &["undo", "t1", "--yes"]);
    let known = "it is not known what turn 1 “one” changed before this folder was captured for the first time";
    assert!(code == Some(1) && said.contains(known), "{said}");
    let (_, said) = scene.run_in(&other, &["changes"]);
    assert!(said.contains("nothing is known that session") && said.contains("note: what t1 changed"), "{said}");
    let (_, said) = scene.run_in(&other, &["log"]);
    assert!(said.contains("one  ?") && said.contains("not known") && !said.contains('='), "{said}");

    scene.shell_turn("s", &ws, 2, &["cd ..; rm -rf ws; cp -r other ws"]);
    let (code, said) = scene.run_in(&ws, &["undo", "--yes"]);
    assert!(code == Some(1) && said.contains("turn 2 “prompt 2” began in another folder that stood here"), "{said}");
    assert!(said.contains("`piton rewind t2 --across` brings back"), "{said}");
    let (_, said) = scene.run_in(&ws, &["log"]);
    assert!(said.contains("`piton rewind t2 --across` brings that back"), "{said}");
    let (code, said) = scene.run_in(&ws, &["rewind", "t2", "--across", "--yes"]);
    assert!(code == Some(0) && text(ws.join("work")) == "mine\n", "{said}");
}

#[test]
fn a_known_workspace_inside_the_one_that_the_agent_works_in_hears_of_files_that_a_tool_names_in_it() {
    let scene = Scene::new(PITON);
    let ws = scene.world.ws();
    repository(&ws);
    std::fs::write(ws.join(".gitignore"), "lib\n").unwrap();
    let lib = ws.join("lib");
    repository(&lib);
    // It was known before the folder around it.
    scene.shell_turn("before", &lib, 1, &["true"]);
    let call = json!({ "turn": "p1", "tool": "write_file", "call": "c1", "paths": [lib.join("src/a")] });
    scene.generic_event("s", "prompt", json!({ "turn": "p1", "text": "edit the library" }));
    scene.generic_event("s", "before-tool", call.clone());
    std::fs::write(lib.join("src/a"), "agent\n").unwrap();
    scene.generic_event("s", "after-tool", call);
    // A name in no inner workspace concerns the outer one alone.
    let call = json!({ "turn": "p1", "tool": "write_file", "call": "c2", "paths": [ws.join("src/a")] });
    scene.generic_event("other", "before-tool", call);
    scene.generic_event("s", "turn-ended", json!({ "turn": "p1" }));
    let (_, log) = scene.run_in(&lib, &["log", "--steps"]);
    assert!(log.contains("edit the library") && log.contains("write_file") && !log.contains("other"), "{log}");
    let (code, said) = scene.run_in(&lib, &["undo", "--session", "s", "--yes"]);
    assert!(code == Some(0) && text(lib.join("src/a")) == "a\n", "{said}");
}

/// The hint used to say `t1`, which is a turn of the session that reported last.
#[test]
fn hints_about_another_sessions_turn_name_the_session() {
    let scene = Scene::new(PITON);
    let ws = scene.world.ws();
    repository(&ws);
    scene.shell_turn("old", &ws, 1, &["cd ..; git clone -q ws copy; rm -rf ws; mv copy ws; echo new >ws/new"]);
    scene.generic_event("old", "session-ended", json!({}));
    scene.shell_turn("other", &ws, 1, &["echo more >more"]);
    scene.generic_event("other", "session-ended", json!({}));
    let (_, log) = scene.run_in(&ws, &["log"]);
    let target = log.split_whitespace().find(|word| word.ends_with(":t1")).unwrap_or_else(|| panic!("{log}"));
    let (session, _) = target.split_once(':').unwrap();
    for args in [
        &["undo", "--preview", "--session", "old"][..],
        &["undo", "--preview", target],
        &["changes", "--session", "old"],
    ] {
        let (_, said) = scene.run_in(&ws, args);
        let named = said.contains(&format!("`piton rewind {session}")) && said.contains(":t1 --across` brings");
        assert!(named, "{args:?}: {said}");
    }
    let (_, said) = scene.run_in(&ws, &["changes", "--session", "old"]);
    assert!(said.contains(&format!("note: what {target} changed is not known")), "{said}");
}

#[test]
fn hints_about_another_sessions_workspaces_name_the_session() {
    let (scene, ws, worktree) = with_a_worktree();
    scene.shell_turn("old", &ws, 1, &["echo here >here"]);
    scene.shell_turn("old", &ws, 2, &["echo there >w1/there"]);
    scene.generic_event("old", "session-ended", json!({}));
    scene.shell_turn("last", &ws, 1, &["true"]);
    let way = |end: &str| {
        let (_, said) = scene.run_in(&ws, &["undo", "--preview", "--session", "old"]);
        assert!(said.contains(&format!(":t2 --workspace {}` {end}", worktree.display())), "{said}");
        assert!(said.contains(":t1` takes back the last one that changed files here"), "{said}");
    };
    way("takes it back there");
    std::fs::remove_dir_all(&worktree).unwrap();
    way("brings back what was there before it");
}

/// It used to pass over the turn that may be the last one, and take back an older one.
#[test]
fn an_undo_does_not_guess_where_another_store_cannot_be_read() {
    let scene = Scene::new(PITON);
    let (a, b) = (scene.world.ws(), scene.world.base().join("b"));
    repository(&a);
    repository(&b);
    scene.shell_turn("s", &a, 1, &["echo 1 >> b"]);
    scene.shell_turn("s", &b, 2, &["echo 2 >> b"]);
    let home = scene.world.base().join("home/workspaces");
    let is_of_b = |store: &PathBuf| text(store.join("workspace.json")).contains(&format!("{:?}", b));
    let store = std::fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().path()).find(is_of_b).unwrap();
    // What nobody can read, whoever runs this.
    let kept = scene.world.base().join("kept");
    std::fs::rename(&store, &kept).unwrap();
    std::fs::write(&store, "").unwrap();
    let (code, said) = scene.run_in(&a, &["undo", "--yes"]);
    assert_eq!((code, text(a.join("b"))), (Some(1), "b\n1\n".into()), "{said}");
    assert!(said.contains(&store.display().to_string()) && said.contains("cannot be read"), "{said}");
    assert!(said.contains("hint: `piton undo t1` takes back the last turn that changed files here"), "{said}");
    assert_eq!(scene.run_in(&a, &["undo", "t1", "--yes"]).0, Some(0));
    assert_eq!(text(a.join("b")), "b\n");
    // One that is gone for good has nothing to tell.
    assert_eq!(scene.run_in(&a, &["redo", "--yes"]).0, Some(0));
    std::fs::remove_file(&store).unwrap();
    assert_eq!(scene.run_in(&a, &["undo", "--yes"]).0, Some(0));
}

#[test]
fn no_command_names_a_flag_that_only_another_has() {
    let scene = Scene::new(PITON);
    let (a, b) = (scene.world.ws(), scene.world.base().join("b"));
    repository(&a);
    repository(&b);
    scene.shell_turn("s", &a, 1, &["true"]);
    scene.shell_turn("s", &b, 2, &["true"]);
    std::fs::write(a.join("b"), "mine\n").unwrap();
    scene.shell_turn("s", &a, 3, &[&format!("F=$(printf b); echo 3 >> $F; echo 3 >> {}/b", b.display())]);
    // The user edited the file not long ago, and the command does not name it, so nothing is done.
    let (code, said) = scene.run_in(&a, &["undo", "--yes"]);
    assert!(code == Some(1) && said.contains("`piton undo --workspace DIR` is for one of those"), "{said}");
    assert!(!said.contains("--all-workspaces"), "{said}");
}

/// `/piton changes` used to number the changes of the session that reported last, and `/piton undo 1` took back another's.
#[test]
fn inside_a_session_every_command_is_about_that_session() {
    let scene = Scene::new(PITON);
    let (a, b) = (scene.world.ws(), scene.world.base().join("b"));
    repository(&a);
    repository(&b);
    scene.shell_turn("s", &a, 1, &["echo 1 >> b"]);
    scene.shell_turn("z", &a, 1, &["echo z > zz"]);
    let count = std::cell::Cell::new(10);
    let say = |typed: &str| {
        let id = format!("q{}", count.replace(count.get() + 1));
        report(&scene, "s", &a, "prompt", json!({ "turn": id, "text": typed })).unwrap()
    };
    for _ in 0..2 {
        let said = say("/piton changes");
        assert!(said.starts_with("[1] b (modified)") && said.contains("t1.1 shell") && !said.contains("zz"), "{said}");
        let said = say("/piton log");
        let of = |name: &str| said.lines().find(|line| line.contains(name)).unwrap().trim_start().to_owned();
        assert!(of("~1").starts_with("t1 ") && of("+1").contains(":t1 "), "{said}");
        assert!(say("/piton show t1").contains("~ b"));
        assert!(say("/piton blame b --at t1").contains("before piton"));
        assert!(say("/piton undo 1 --preview").contains("restore  b"));
        report(&scene, "z", &a, "session-ended", json!({}));
    }
    assert!(say("/piton undo").contains("undid turn 1"));
    assert!(text(a.join("b")) == "b\n" && a.join("zz").exists());
    assert!(say("/piton help undo").contains("Take back chosen changes"));
    // What a hint names can be typed.
    scene.shell_turn("s", &b, 2, &["echo 2 >> b"]);
    let said = say("/piton undo");
    let there = format!("/piton undo --workspace {}", b.display());
    assert!(said.contains(&format!("`{there}`")), "{said}");
    assert!(say(&there).contains("undid turn 2"));
    assert_eq!(text(b.join("b")), "b\n");
    // Whoever types has stopped the agent, also in the workspaces that it is not in now.
    report(&scene, "s", &b, "prompt", json!({ "turn": "p3", "text": "go" }));
    let call = json!({ "turn": "p3", "tool": "shell", "call": "c3", "command": "sleep 9" });
    report(&scene, "s", &b, "before-tool", call);
    std::fs::write(b.join("b"), "half\n").unwrap();
    let said = say(&format!("{there} --unsure"));
    assert!(said.contains("undid turn 3"), "{said}");
    assert_eq!(text(b.join("b")), "b\n");
}
