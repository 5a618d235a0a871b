//! Which repository it is, and whether it can be understood.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use piton_host::git::Repository;

use crate::lab::Lab;
use crate::real::git;

#[test]
fn the_innermost_repository_is_found_and_what_only_looks_like_one_is_passed_over() {
    let lab = Lab::committed();
    lab.write("dir/.git/nothing", "x");
    assert_eq!(Repository::find(&lab.path.join("dir/sub")).unwrap().work_tree(), lab.path);
    git(&lab.path.join("last"), &["init", "-q"]);
    assert_eq!(Repository::find(&lab.path.join("last")).unwrap().work_tree(), lab.path.join("last"));
    // A pipe is not waited for.
    fs::create_dir(lab.path.join("pipe")).unwrap();
    assert!(Command::new("mkfifo").arg(lab.path.join("pipe/.git")).status().unwrap().success());
    assert_eq!(Repository::find(&lab.path.join("pipe")).unwrap().work_tree(), lab.path);
    fs::create_dir(lab.path.join("astray")).unwrap();
    fs::write(lab.path.join("astray/.git"), "gitdir: /proc/self\n").unwrap();
    assert_eq!(Repository::find(&lab.path.join("astray")), None);
    fs::write(lab.path.join("astray/.git"), "gitdir: ../.git\n").unwrap();
    assert_eq!(Repository::find(&lab.path.join("astray")).unwrap().work_tree(), lab.path.join("astray"));
}

#[test]
fn pipes_and_devices_in_place_of_its_files_are_not_opened() {
    for name in ["HEAD", "index", "config", "packed-refs", "refs/heads/main", "objects/info/alternates"] {
        let lab = Lab::committed();
        let file = lab.path.join(".git").join(name);
        let _ = fs::remove_file(&file);
        assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
        lab.signature();
        lab.read();
        fs::remove_file(&file).unwrap();
        symlink("/dev/zero", &file).unwrap();
        lab.signature();
        lab.read();
    }
}

#[test]
fn a_bare_repository_has_a_head_and_nothing_else() {
    let lab = Lab::committed();
    lab.git(&["config", "core.bare", "true"]);
    let state = lab.read();
    assert_eq!((state.head.branch.as_deref(), state.staged.len(), state.uncommitted), (Some("main"), 0, None));
    assert!(state.head.commit.is_some());
}

#[test]
fn a_working_tree_that_is_elsewhere_is_not_taken_for_the_folder_around() {
    let lab = Lab::committed();
    lab.git(&["config", "core.worktree", "../../elsewhere"]);
    assert_eq!(lab.read().uncommitted, None);
    fs::write(lab.path.join(".git/config"), "[core]\n\tworktree = ..\n").unwrap();
    assert_eq!(lab.read().uncommitted, Some(false));
}

#[test]
fn a_format_that_is_not_known_is_said_to_be() {
    for (section, setting) in [
        ("core", "repositoryFormatVersion = 7"),
        ("extensions", "objectFormat = sha512"),
        ("extensions", "refStorage = stones"),
        ("extensions", "somethingNew"),
    ] {
        let lab = Lab::committed();
        fs::write(lab.path.join(".git/config"), format!("[{section}]\n\t{setting}\n")).unwrap();
        let state = lab.read();
        assert!(state.incomplete.is_some(), "{setting}");
        assert_eq!((state.head.commit, state.uncommitted), (None, None));
    }
}
