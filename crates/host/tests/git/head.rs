//! Where HEAD is.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;

use piton_model::git::InProgress;

use crate::lab::{Lab, check, conflict, paths};

#[test]
fn before_the_first_commit_there_is_a_branch_and_no_commit() {
    let lab = Lab::new();
    let state = lab.check();
    assert_eq!((state.head.branch.as_deref(), state.head.commit), (Some("main"), None));
    lab.write("a", "1");
    lab.write("d/b", "2");
    lab.git(&["add", "-A"]);
    assert_eq!(paths(&lab.check()), ["created a", "created d/b"]);
}

#[test]
fn after_a_commit_nothing_is_staged_or_uncommitted() {
    let lab = Lab::committed();
    let state = lab.check();
    assert_eq!((state.staged.len(), state.uncommitted, state.in_progress), (0, Some(false), None));
}

#[test]
fn a_detached_head_has_a_commit_and_no_branch() {
    let lab = Lab::committed();
    lab.git(&["checkout", "-q", "--detach"]);
    assert_eq!(lab.check().head.branch, None);
}

#[test]
fn a_branch_in_folders_and_one_that_is_not_utf_8_have_their_names() {
    let lab = Lab::committed();
    lab.git(&["checkout", "-q", "-b", "topic/one/two"]);
    assert_eq!(lab.check().head.branch.as_deref(), Some("topic/one/two"));
    let commit = lab.git(&["rev-parse", "HEAD"]);
    let name = OsString::from_vec(b"odd\xff".to_vec());
    fs::write(lab.path.join(".git/refs/heads").join(&name), &commit).unwrap();
    fs::write(lab.path.join(".git/HEAD"), b"ref: refs/heads/odd\xff\n").unwrap();
    let head = lab.read().head;
    assert_eq!(head.branch_bytes().unwrap(), b"odd\xff");
    assert_eq!(head.commit.as_deref(), Some(commit.trim_end()));
}

#[test]
fn packed_references_and_packed_objects_are_read_after_gc() {
    let lab = Lab::committed();
    for number in 0..30 {
        lab.git(&["branch", &format!("other-{number:02}")]);
        lab.git(&["tag", "-a", "-m", "t", &format!("v{number:02}")]);
    }
    lab.git(&["gc", "-q", "--prune=now"]);
    assert!(!lab.path.join(".git/refs/heads/main").exists());
    lab.check();
    lab.write("dir/sub/deep", "changed\n");
    lab.git(&["rm", "-q", "--cached", "last/file"]);
    lab.git(&["add", "dir"]);
    assert_eq!(paths(&lab.check()), ["modified dir/sub/deep", "deleted last/file"]);
    // A loose reference takes precedence over a packed one.
    lab.git(&["commit", "-q", "-m", "second"]);
    lab.check();
    lab.git(&["checkout", "-q", "-f", "other-17"]);
    assert_eq!(lab.check().head.branch.as_deref(), Some("other-17"));
}

#[test]
fn a_head_that_is_a_symlink_is_a_branch() {
    let lab = Lab::committed();
    fs::remove_file(lab.path.join(".git/HEAD")).unwrap();
    symlink("refs/heads/main", lab.path.join(".git/HEAD")).unwrap();
    assert_eq!(lab.check().head.branch.as_deref(), Some("main"));
}

#[test]
fn references_that_go_round_in_a_circle_or_lead_out_are_said_to_be_unreadable() {
    let lab = Lab::committed();
    let head = lab.path.join(".git/HEAD");
    fs::write(lab.path.join(".git/refs/heads/x"), "ref: refs/heads/y\n").unwrap();
    fs::write(lab.path.join(".git/refs/heads/y"), "ref: refs/heads/x\n").unwrap();
    for (content, reason) in [
        ("ref: refs/heads/x\n", "HEAD's references go round in a circle"),
        ("ref: refs/../../../etc/passwd\n", "reference refs/../../../etc/passwd: such a name cannot be"),
        ("ref: /etc/passwd\n", "reference /etc/passwd: such a name cannot be"),
        ("garbage\n", "reference HEAD: its file is damaged"),
        ("", "reference HEAD: its file is damaged"),
    ] {
        fs::write(&head, content).unwrap();
        let state = lab.read();
        assert_eq!(state.incomplete.as_deref(), Some(reason), "{content:?}");
        assert_eq!((state.head.commit, state.staged.len(), state.uncommitted), (None, 0, None));
        lab.signature();
    }
    // As left behind by a crash.
    fs::write(&head, "ref: refs/heads/main\n").unwrap();
    fs::write(lab.path.join(".git/refs/heads/main"), "").unwrap();
    let state = lab.read();
    assert_eq!(state.head.branch.as_deref(), Some("main"));
    assert_eq!(state.incomplete.as_deref(), Some("reference refs/heads/main: its file is damaged"));
}

#[test]
fn references_in_tables_are_read() {
    let lab = Lab::with(&["init", "-q", "--ref-format=reftable"]);
    lab.check();
    lab.fill();
    let before = lab.signature();
    lab.check();
    for number in 0..120 {
        lab.git(&["update-ref", &format!("refs/heads/a/rather/long/name/for/a/branch/{number}"), "HEAD"]);
    }
    lab.check();
    lab.git(&["pack-refs", "--all"]);
    lab.check();
    lab.git(&["checkout", "-q", "-b", "zz"]);
    lab.git(&["branch", "-q", "-D", "main"]);
    assert_eq!(lab.check().head.branch.as_deref(), Some("zz"));
    assert_ne!(lab.signature(), before);
    lab.git(&["checkout", "-q", "--detach"]);
    lab.check();
    lab.git(&["worktree", "add", "-q", "-b", "in-tables", "../tables"]);
    assert_eq!(check(&lab.path.with_file_name("tables")).head.branch.as_deref(), Some("in-tables"));
    conflict(&lab, &["cherry-pick", "theirs"]);
    assert_eq!(lab.check().in_progress, Some(InProgress::CherryPick));
    for table in fs::read_dir(lab.path.join(".git/reftable")).unwrap().map(Result::unwrap) {
        if table.file_name() != "tables.list" {
            let bytes = fs::read(table.path()).unwrap();
            fs::remove_file(table.path()).unwrap();
            fs::write(table.path(), &bytes[..bytes.len() / 2]).unwrap();
        }
    }
    assert!(lab.read().incomplete.unwrap().contains("damaged"));
}
