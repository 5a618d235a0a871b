//! What is staged.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use piton_model::git::{ASSUME_VALID, INTENT_TO_ADD, InProgress, SKIP_WORKTREE};

use crate::lab::{Lab, conflict, paths};
use crate::real::git_command;

#[test]
fn staged_files_are_those_that_git_lists() {
    let lab = Lab::committed();
    lab.write("new", "new\n");
    lab.write("dir/sub/new", "new too\n");
    lab.write("fresh/folder/x", "x\n");
    lab.write("b.txt", "modified\n");
    lab.git(&["add", "-A"]);
    lab.git(&["rm", "-q", "dir/two"]);
    lab.git(&["rm", "-q", "-r", "last"]);
    let state = lab.check();
    assert_eq!(
        paths(&state),
        [
            "modified b.txt",
            "created dir/sub/new",
            "deleted dir/two",
            "created fresh/folder/x",
            "deleted last/file",
            "created new",
        ]
    );
    // The same in git's own words.
    let raw = lab.git(&["diff", "--cached", "--raw", "--no-renames", "--no-abbrev"]);
    assert_eq!(raw.lines().count(), state.staged.len());
    for (line, entry) in raw.lines().zip(&state.staged) {
        let words: Vec<&str> = line.split([' ', '\t']).collect();
        assert_eq!(words[1], format!("{:06o}", entry.mode));
        assert_eq!(words[3].trim_start_matches('0'), entry.id.trim_start_matches('0'));
        assert_eq!(words[5], entry.path.display());
    }
}

#[test]
fn a_partly_staged_file_has_the_staged_content() {
    let lab = Lab::committed();
    lab.write("a", "staged\n");
    lab.git(&["add", "a"]);
    lab.write("a", "staged and more\n");
    let state = lab.check();
    assert_eq!(lab.repository().blob(&state.staged[0].id, 100).unwrap(), b"staged\n");
}

#[test]
fn everything_can_be_deleted_from_the_index() {
    let lab = Lab::committed();
    lab.git(&["rm", "-q", "-r", "--cached", "."]);
    assert_eq!(lab.check().staged.len(), 9);
    // As after a clone without a checkout.
    fs::remove_file(lab.path.join(".git/index")).unwrap();
    assert_eq!(lab.check().staged.len(), 9);
}

#[test]
fn a_file_that_becomes_a_folder_and_a_folder_that_becomes_a_file_are_both_listed() {
    let lab = Lab::committed();
    fs::remove_file(lab.path.join("a")).unwrap();
    lab.write("a/now/inside", "x\n");
    fs::remove_dir_all(lab.path.join("dir")).unwrap();
    lab.write("dir", "now a file\n");
    lab.git(&["add", "-A"]);
    assert_eq!(
        paths(&lab.check()),
        [
            "deleted a",
            "created a/now/inside",
            "created dir",
            "deleted dir/one",
            "deleted dir/sub/deep",
            "deleted dir/two",
        ]
    );
}

#[test]
fn a_changed_kind_or_executable_bit_is_modified() {
    let lab = Lab::committed();
    fs::set_permissions(lab.path.join("a"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(lab.path.join("link")).unwrap();
    lab.write("link", "a file now");
    let state = lab.check();
    assert_eq!((state.staged.len(), state.uncommitted), (0, Some(true)));
    lab.git(&["add", "-A"]);
    let modes: Vec<u32> = lab.check().staged.iter().map(|entry| entry.mode).collect();
    assert_eq!(modes, [0o100_755, 0o100_644]);
    lab.git(&["config", "core.fileMode", "false"]);
    lab.git(&["commit", "-q", "-m", "modes"]);
    fs::set_permissions(lab.path.join("a"), fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(lab.check().uncommitted, Some(false));
}

#[test]
fn names_that_are_not_utf_8_and_long_ones_are_staged_like_any() {
    let lab = Lab::committed();
    let odd = lab.path.join(OsStr::from_bytes(b"dir/\xff\xfe name"));
    fs::write(odd, "odd\n").unwrap();
    // Longer than the twelve bits that an entry has for it.
    let long = vec!["n".repeat(200); 21].join("/");
    assert!(long.len() > 0xfff);
    let id = lab.git(&["hash-object", "-w", "a"]);
    lab.git(&["add", "-A"]);
    lab.git(&["update-index", "--add", "--cacheinfo", &format!("100644,{},{long}", id.trim_end())]);
    let state = lab.read();
    assert_eq!(state.incomplete, None);
    assert_eq!(state.staged[0].path.as_bytes(), b"dir/\xff\xfe name");
    assert_eq!(state.staged[1].path.display(), long);
    lab.git(&["update-index", "--index-version", "4"]);
    assert_eq!(lab.read().staged, state.staged);
    lab.git(&["update-index", "--force-remove", &long]);
    lab.check();
}

#[test]
fn a_conflict_has_all_of_its_sides() {
    let lab = Lab::committed();
    conflict(&lab, &["merge", "theirs"]);
    let state = lab.check();
    assert_eq!(state.in_progress, Some(InProgress::Merge));
    assert_eq!(paths(&state), ["created added", "unmerged file", "unmerged file", "unmerged file", "deleted gone"]);
    let sides: Vec<_> =
        state.staged[1..4].iter().map(|entry| (entry.stage, lab.repository().blob(&entry.id, 100).unwrap())).collect();
    assert_eq!(sides, [(1, b"base\n".to_vec()), (2, b"ours\n".to_vec()), (3, b"theirs\n".to_vec())]);
}

#[test]
fn what_git_is_in_the_middle_of_is_told() {
    for (act, expected) in [
        (&["rebase", "theirs"][..], InProgress::Rebase),
        (&["rebase", "--apply", "theirs"], InProgress::Rebase),
        (&["cherry-pick", "theirs"], InProgress::CherryPick),
    ] {
        let lab = Lab::committed();
        conflict(&lab, act);
        assert_eq!(lab.check().in_progress, Some(expected), "{act:?}");
    }
    let lab = Lab::committed();
    for content in ["1\n", "2\n", "3\n"] {
        lab.write("file", content);
        lab.git(&["add", "-A"]);
        lab.git(&["commit", "-q", "-m", content]);
    }
    lab.git(&["bisect", "start"]);
    assert_eq!(lab.check().in_progress, Some(InProgress::Bisect));
    lab.git(&["bisect", "reset"]);
    assert_eq!(lab.check().in_progress, None);
    let fails = |act: &[&str]| assert!(!git_command(&lab.path, act).output().unwrap().status.success());
    fails(&["revert", "--no-edit", "HEAD~"]);
    assert_eq!(lab.check().in_progress, Some(InProgress::Revert));
    lab.git(&["revert", "--abort"]);
    // The user committed what was in conflict, and the rest of the series is still to be done.
    fails(&["revert", "--no-edit", "HEAD~", "HEAD~2"]);
    lab.git(&["commit", "-q", "-a", "-m", "by hand"]);
    assert_eq!(lab.check().in_progress, Some(InProgress::Revert));
    let patch = lab.path.with_file_name("patch");
    lab.git(&["revert", "--quit"]);
    fs::write(&patch, lab.git(&["format-patch", "--stdout", "HEAD~3..HEAD~2"])).unwrap();
    fails(&["am", patch.to_str().unwrap()]);
    assert_eq!(lab.check().in_progress, Some(InProgress::Am));
}

#[test]
fn an_intention_to_add_is_no_content() {
    let lab = Lab::committed();
    lab.write("later", "not staged\n");
    lab.git(&["add", "-N", "later"]);
    let state = lab.check();
    assert_eq!(paths(&state), ["created later"]);
    assert_eq!(state.staged[0].flags, INTENT_TO_ADD);
    assert!(!state.staged[0].has_blob());
}

#[test]
fn flags_are_kept_and_hide_what_they_hide_from_git() {
    let lab = Lab::committed();
    lab.git(&["update-index", "--assume-unchanged", "a"]);
    lab.git(&["update-index", "--skip-worktree", "dir/one"]);
    lab.write("a", "another content\n");
    fs::remove_file(lab.path.join("dir/one")).unwrap();
    let state = lab.check();
    assert_eq!((state.staged.len(), state.uncommitted), (0, Some(false)));
    let flagged: Vec<_> = state.flagged.iter().map(|entry| (entry.path.display(), entry.flags)).collect();
    assert_eq!(flagged, [("a".to_owned(), ASSUME_VALID), ("dir/one".to_owned(), SKIP_WORKTREE)]);
    let id = lab.git(&["hash-object", "-w", "b.txt"]);
    lab.git(&["update-index", "--cacheinfo", &format!("100644,{},dir/one", id.trim_end())]);
    lab.git(&["update-index", "--skip-worktree", "dir/one"]);
    let state = lab.check();
    assert_eq!((state.staged[0].flags, state.flagged.len()), (SKIP_WORKTREE, 1));
}
