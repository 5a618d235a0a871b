//! Something else takes a workspace's path: another workspace, a symlink, a file. What a folder is comes before where it is:
//! its store hears of what happened to it, stays within reach, and nothing is written into what took its place.

use std::path::PathBuf;

use piton_testkit::{Scene, git};
use serde_json::{Value, json};

use crate::PITON;

/// A project `app` beside others, with one commit and a file that no commit has.
fn project() -> (Scene, PathBuf) {
    let scene = Scene::new(PITON);
    let app = scene.world.base().join("p/app");
    std::fs::create_dir_all(&app).unwrap();
    std::fs::write(app.join("a"), "a\n").unwrap();
    git(&app, &["init", "-q"]);
    git(&app, &["add", "-A"]);
    git(&app, &["commit", "-qm", "c"]);
    std::fs::write(app.join("precious"), "precious\n").unwrap();
    (scene, app)
}

fn text(path: PathBuf) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The word after `--workspace` in what piton said.
#[track_caller]
fn named_workspace(said: &str) -> String {
    let (_, rest) = said.split_once("--workspace ").unwrap_or_else(|| panic!("no workspace is named: {said}"));
    rest.split(['`', '\n', ' ']).next().unwrap().to_owned()
}

fn stores(scene: &Scene) -> usize {
    std::fs::read_dir(scene.world.base().join("home/workspaces")).unwrap().count()
}

/// Everything is back but the repository's own folder or file, which nobody captures.
#[track_caller]
fn assert_back_without_git(code: Option<i32>, said: &str) {
    assert!(code == Some(1) && said.contains("; 1 path not restored") && said.contains(".git ("), "{said}");
}

#[test]
fn a_project_that_a_copy_of_it_replaces_has_its_gap_and_stays_within_reach() {
    let (scene, app) = project();
    scene.shell_turn("s", &app, 1, &["echo more >more"]);
    assert_eq!(scene.run_in(&app, &["checkpoint", "good"]).0, Some(0));
    scene.shell_turn("s", &app, 2, &["cp -r ../app ../app-new; rm ../app-new/precious"]);
    let new = app.with_file_name("app-new");
    scene.shell_turn("s", &new, 3, &["echo new >new"]);
    let seen = scene.shell_turn("s", &app, 4, &["cd ..; rm -rf app; mv app-new app"]);
    assert!(seen.contains("p/app is gone, and another workspace stands in its place"), "{seen}");
    // Neither the log nor an undo nor a rewind passes it over.
    let (_, log) = scene.run_in(&app, &["log"]);
    let id = named_workspace(&log);
    let (code, said) = scene.run_in(&app, &["undo", "--yes"]);
    assert!(code == Some(1) && said.contains("turn 4 is the last that changed files"), "{said}");
    let (code, said) = scene.run_in(&app, &["rewind", "good", "--yes"]);
    assert!(code == Some(1) && named_workspace(&said) == id, "{said}");
    let (_, log) = scene.run_in(&app, &["log", "--workspace", &id]);
    assert!(log.contains("prompt 4") && log.contains("is gone") && log.contains("good"), "{log}");
    assert!(!log.contains("another folder was captured at this path"), "of itself nothing is said: {log}");
    let (code, said) = scene.run_in(&app, &["init", "--workspace", &id]);
    assert!(code == Some(1) && stores(&scene) == 2, "no workspace is made of a store: {said}");
    // Its folder is another's now, and nothing is written there.
    let (code, said) = scene.run_in(&app, &["rewind", "good", "--yes", "--interrupted", "--workspace", &id]);
    assert!(code == Some(1) && said.contains("another workspace stands in its place; nothing was changed"), "{said}");
    assert!(app.join("new").exists() && !app.join("precious").exists());
    std::fs::rename(&app, &new).unwrap();
    let (code, said) = scene.run_in(&new, &["rewind", "good", "--yes", "--interrupted", "--workspace", &id]);
    assert_back_without_git(code, &said);
    assert_eq!((text(app.join("precious")), app.join("new").exists()), ("precious\n".into(), false));
    assert_eq!(text(new.join("new")), "new\n");
}

#[test]
fn what_was_done_in_a_folder_that_took_the_place_of_a_renamed_one_survives_the_way_back() {
    let (scene, app) = project();
    let folder = app.parent().unwrap().to_owned();
    scene.run_in(&app, &["checkpoint", "one"]);
    std::fs::rename(&app, folder.join("old")).unwrap();
    std::fs::create_dir(&app).unwrap();
    std::fs::write(app.join("a"), "rewritten\n").unwrap();
    assert_eq!(scene.run_in(&app, &["checkpoint", "two"]).0, Some(0));
    std::fs::remove_dir_all(&app).unwrap();
    std::fs::rename(folder.join("old"), &app).unwrap();
    let (_, log) = scene.run_in(&app, &["log"]);
    assert!(log.contains("one") && !log.contains("two"), "{log}");
    let (_, log) = scene.run_in(&app, &["log", "--workspace", &named_workspace(&log)]);
    assert!(log.contains("two"), "{log}");
}

#[test]
fn a_worktree_that_is_removed_and_whose_path_another_one_gets_has_its_gap() {
    let (scene, app) = project();
    git(&app, &["worktree", "add", "-q", "w1"]);
    git(&app, &["worktree", "add", "-q", "w2"]);
    std::fs::write(app.join("w1/work"), "work\n").unwrap();
    scene.shell_turn("s", &app, 1, &["true"]);
    let seen = scene.shell_turn("s", &app, 2, &["git worktree remove --force w1; git worktree move w2 w1"]);
    assert!(seen.contains("w1 is gone, and another workspace stands in its place"), "{seen}");
    let (code, said) = scene.run_in(&app, &["undo", "--yes"]);
    assert!(code == Some(1) && said.contains("turn 2 is the last that changed files"), "{said}");
    let store = named_workspace(&said);
    std::fs::rename(app.join("w1"), app.join("w3")).unwrap();
    let (code, said) = scene.run_in(&app, &["rewind", "t2", "--yes", "--workspace", &store]);
    assert_back_without_git(code, &said);
    assert_eq!(text(app.join("w1/work")), "work\n");
}

#[test]
fn a_worktree_that_a_symlink_replaces_is_gone_and_what_the_link_leads_to_is_no_workspace() {
    let (scene, app) = project();
    git(&app, &["worktree", "add", "-q", "w1"]);
    std::fs::write(app.join("w1/work"), "work\n").unwrap();
    let elsewhere = app.with_file_name("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("e"), "e\n").unwrap();
    scene.shell_turn("s", &app, 1, &["true"]);
    let seen = scene.shell_turn("s", &app, 2, &["rm -rf w1; ln -s ../elsewhere w1"]);
    assert!(seen.contains("w1 is gone, and a symlink stands in its place"), "{seen}");
    assert_eq!(stores(&scene), 2, "the project's and the worktree's");
    let (code, said) = scene.run_in(&app, &["undo", "--yes"]);
    assert!(code == Some(1) && said.contains("turn 2 is the last that changed files"), "{said}");
    let (_, log) = scene.run_in(&app, &["log", "--workspace", "w1"]);
    assert!(log.contains("prompt 2") && log.contains("a symlink stands in its place"), "{log}");
    let (code, said) = scene.run_in(&app, &["rewind", "t2", "--yes", "--workspace", "w1"]);
    assert!(code == Some(1) && said.contains("a symlink stands in its place; nothing was changed"), "{said}");
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 1, "nothing was written there");
    std::fs::remove_file(app.join("w1")).unwrap();
    let (code, said) = scene.run_in(&app, &["rewind", "t2", "--yes", "--workspace", "w1"]);
    assert_back_without_git(code, &said);
    assert_eq!(text(app.join("w1/work")), "work\n");
}

#[test]
fn a_project_that_a_symlink_replaces_is_gone_and_what_the_link_leads_to_is_no_workspace() {
    let (scene, app) = project();
    let elsewhere = app.with_file_name("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    scene.shell_turn("s", &app, 1, &["true"]);
    let seen = scene.shell_turn("s", &app, 2, &["cd ..; rm -rf app; ln -s elsewhere app"]);
    assert!(seen.contains("app is gone, and a symlink stands in its place"), "{seen}");
    scene.shell_turn("s", &app, 3, &["echo x >x"]);
    assert_eq!(stores(&scene), 1);
    std::fs::remove_file(&app).unwrap();
    let way = app.display().to_string();
    let (code, said) = scene.run_in(&elsewhere, &["undo", "t2", "--yes", "--workspace", &way]);
    assert_back_without_git(code, &said);
    assert_eq!(text(app.join("precious")), "precious\n");
}

#[test]
fn a_project_that_is_renamed_for_a_new_one_hears_of_it_and_both_count_the_turns_alike() {
    let (scene, app) = project();
    scene.shell_turn("s", &app, 1, &["true"]);
    scene.shell_turn(
        "s",
        &app,
        2,
        &["cd ..; mv app old; mkdir app; cd app; git init -q", "echo n >n; rm ../old/precious"],
    );
    let old = app.with_file_name("old");
    for folder in [&app, &old] {
        let (_, log) = scene.run_in(folder, &["log", "--steps"]);
        assert!(log.contains("t2  ") && log.contains("t2.1") && log.contains("t2.2"), "{log}");
        assert!(!log.contains("t2.3") && !log.contains("gap"), "{log}");
    }
    let (code, said) = scene.run_in(&old, &["undo", "t2.2", "--yes"]);
    assert!(code == Some(0) && text(old.join("precious")) == "precious\n", "{said}");
}

#[test]
fn worktrees_that_swap_their_places_in_a_tool_each_hear_of_its_end() {
    let (scene, app) = project();
    git(&app, &["worktree", "add", "-q", "w1"]);
    git(&app, &["worktree", "add", "-q", "w2"]);
    std::fs::write(app.join("w2/work"), "work\n").unwrap();
    let swap = "mv w1 t; mv w2 w1; mv t w2; git worktree repair w1 w2 >/dev/null 2>&1";
    scene.shell_turn("s", &app, 1, &[swap, "rm w1/work; echo q >w2/q"]);
    for name in ["w1", "w2"] {
        let (code, said) = scene.run_in(&app, &["undo", "t1.2", "--yes", "--workspace", name]);
        assert!(code == Some(0) && said.contains("undid"), "{name}: {said}");
    }
    assert_eq!((text(app.join("w1/work")), app.join("w2/q").exists()), ("work\n".into(), false));
}

#[test]
fn a_worktree_in_a_folder_that_becomes_a_file_has_its_gap_and_the_end_of_its_session() {
    let (scene, app) = project();
    git(&app, &["worktree", "add", "-q", "trees/w1"]);
    std::fs::write(app.join("trees/w1/work"), "work\n").unwrap();
    scene.shell_turn("s", &app, 1, &["true"]);
    let seen = scene.shell_turn("s", &app, 2, &["rm -rf trees; echo file >trees"]);
    assert!(seen.contains("trees/w1 is gone"), "{seen}");
    scene.generic_event("s", "session-ended", json!({ "cwd": app }));
    let (_, status) = scene.run_in(&app, &["status", "--workspace", "trees/w1"]);
    assert!(!status.contains("\nat work") && !status.contains("\nidle"), "{status}");
    std::fs::remove_file(app.join("trees")).unwrap();
    let (code, said) = scene.run_in(&app, &["undo", "--yes", "--workspace", "trees/w1"]);
    assert_back_without_git(code, &said);
    assert_eq!(text(app.join("trees/w1/work")), "work\n");
}

/// Overlayfs uses a folder's number again at once and moves births; other filesystems tell none.
#[test]
fn a_folder_that_got_the_number_of_a_removed_one_does_not_get_its_store() {
    use std::os::unix::fs::MetadataExt;
    for identity in [json!({ "born": 7, "is_layered": true }), json!({ "born": null })] {
        let (scene, app) = project();
        assert_eq!(scene.run_in(&app, &["checkpoint", "good"]).0, Some(0));
        std::fs::remove_dir_all(&app).unwrap();
        let other = app.with_file_name("other");
        std::fs::create_dir(&other).unwrap();
        let found = std::fs::metadata(&other).unwrap();
        let store = std::fs::read_dir(scene.world.base().join("home/workspaces")).unwrap().next().unwrap().unwrap();
        let note = store.path().join("workspace.json");
        let mut noted: Value = serde_json::from_slice(&std::fs::read(&note).unwrap()).unwrap();
        let root = noted["root"].as_object_mut().unwrap();
        root.extend([("device".into(), found.dev().into()), ("inode".into(), found.ino().into())]);
        root.extend(identity.as_object().unwrap().clone());
        std::fs::write(&note, noted.to_string()).unwrap();
        let (code, said) = scene.run_in(&other, &["log"]);
        assert!(
            code == Some(1) && said.contains("is not a workspace yet") && said.contains("may be this one"),
            "{said}"
        );
        let (_, log) = scene.run_in(&other, &["log", "--workspace", &app.display().to_string()]);
        assert!(log.contains("good"), "{log}");
    }
}

#[test]
fn no_workspace_is_said_to_be_captured_that_is_not() {
    let (scene, app) = project();
    let folder = app.parent().unwrap();
    scene.shell_turn("s", &app, 1, &["true"]);
    let seen = scene.shell_turn("s", folder, 2, &["true"]);
    assert!(seen.contains("p is not captured") && seen.contains("only") && seen.contains("p/app is;"), "{seen}");
    std::fs::remove_dir_all(&app).unwrap();
    let seen = scene.shell_turn("s", folder, 3, &["true"]);
    let neither = format!("and neither is {0}: `piton status --workspace {0}` tells why", app.display());
    assert!(seen.matches(&neither).count() == 1 && !seen.contains("only"), "once: {seen}");
}

/// A worktree that a turn added and removed used to shift the steps of all later turns by those of that turn.
#[test]
fn steps_begin_at_one_in_every_turn_after_a_worktree_came_and_went() {
    let (scene, app) = project();
    scene.shell_turn(
        "s",
        &app,
        1,
        &["git worktree add -q wt -b w", "echo 1 >wt/n", "git worktree remove --force wt", "echo 1 >s"],
    );
    scene.shell_turn("s", &app, 2, &["echo 2 >x", "echo 2 >y"]);
    scene.shell_turn("s", &app, 3, &["echo 3 >x"]);
    let (_, log) = scene.run_in(&app, &["log", "--steps"]);
    let steps: Vec<&str> = log.split_whitespace().filter(|word| word.starts_with('t') && word.contains('.')).collect();
    assert_eq!(steps, ["t3.1", "t2.1", "t2.2", "t1.1", "t1.2", "t1.3", "t1.4"], "{log}");
}

/// In the first turn of all, the old folder's own beginning used to be taken for the new one's.
#[test]
fn a_first_turn_that_replaces_the_project_is_not_said_to_have_changed_nothing() {
    let (scene, app) = project();
    scene.shell_turn("s", &app, 1, &["cd ..; git clone -q app copy; rm -rf app; mv copy app; echo new >app/new"]);
    let (_, log) = scene.run_in(&app, &["log"]);
    let way = "it began in another folder that stood here; `piton rewind t1 --across` brings that back";
    assert!(log.contains("prompt 1  ?") && log.contains(way), "{log}");
    let (_, said) = scene.run_in(&app, &["changes"]);
    assert!(said.contains("nothing is known that session") && said.contains(way), "{said}");
}

/// An export used to write into the repository of what stands there, and a preview told of its HEAD.
#[test]
fn nothing_is_written_into_the_repository_of_what_took_the_place_nor_told_of_it() {
    for by in ["a symlink", "another workspace"] {
        let (scene, app) = project();
        scene.shell_turn("s", &app, 1, &["echo one >> a"]);
        let other = scene.world.base().join("p/other");
        std::fs::create_dir_all(&other).unwrap();
        std::fs::write(other.join("o"), "o\n").unwrap();
        git(&other, &["init", "-q"]);
        git(&other, &["add", "-A"]);
        git(&other, &["commit", "-qm", "o"]);
        std::fs::remove_dir_all(&app).unwrap();
        let which = match by {
            "a symlink" => {
                std::os::unix::fs::symlink(&other, &app).unwrap();
                app.display().to_string()
            }
            _ => {
                assert_eq!(scene.run_in(&other, &["checkpoint"]).0, Some(0));
                std::fs::rename(&other, &app).unwrap();
                assert_eq!(scene.run_in(&app, &["checkpoint"]).0, Some(0));
                named_workspace(&scene.run_in(&app, &["log"]).1)
            }
        };
        let (code, said) = scene.run_in(scene.world.base(), &["export", "start", "--git", "x", "--workspace", &which]);
        let why = format!("is gone, and {by} stands in its place; nothing was exported");
        assert!(code == Some(1) && said.contains(&why) && said.contains("--into DIR"), "{said}");
        assert!(!app.join(".git/refs/heads/x").exists());
        let into = scene.world.base().join("copy");
        let into = ["export", "start", "--git", "x", "--into", into.to_str().unwrap(), "--workspace", &which];
        assert_eq!(scene.run_in(scene.world.base(), &into).0, Some(0));
        let all = [&["rewind", "start"][..], &["rewind", "start", "--git"], &["undo"]];
        for (asked, how) in all.iter().flat_map(|asked| [(asked, "--preview"), (asked, "--yes")]) {
            let args = [asked, &[how, "--workspace", &which][..]].concat();
            let (code, said) = scene.run_in(scene.world.base(), &args);
            let why = format!("{by} stands in its place; nothing was changed");
            assert!(code == Some(1) && said.contains(&why), "{args:?}: {said}");
        }
    }
}
