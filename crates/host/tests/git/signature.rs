//! When to read again.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::lab::Lab;

#[test]
fn every_act_of_git_that_changes_the_state_changes_the_fingerprint() {
    let lab = Lab::committed();
    let mut last = lab.signature();
    assert_eq!(lab.signature(), last);
    lab.git(&["log", "--oneline"]);
    lab.git(&["branch", "other"]);
    lab.write("untracked", "x");
    assert_eq!(lab.signature(), last);
    lab.write("a", "changed\n");
    for act in [
        &["add", "a"][..],
        &["commit", "-q", "-m", "second"],
        &["checkout", "-q", "-b", "branch"],
        &["commit", "-q", "--allow-empty", "-m", "third"],
        &["pack-refs", "--all"],
        &["update-ref", "refs/heads/branch", "HEAD~"],
        &["checkout", "-q", "--detach"],
        &["update-index", "--assume-unchanged", "a"],
        &["config", "core.fileMode", "false"],
        &["bisect", "start"],
        &["bisect", "reset"],
    ] {
        lab.git(act);
        let now = lab.signature();
        assert_ne!(now, last, "{act:?}");
        last = now;
    }
}

#[test]
fn a_fingerprint_of_files_that_just_changed_says_so() {
    let lab = Lab::committed();
    lab.write("a", "changed\n");
    lab.git(&["add", "a"]);
    let index = fs::metadata(lab.path.join(".git/index")).unwrap();
    let written = index.ctime() * 1_000_000_000 + index.ctime_nsec();
    let at = |now| lab.repository().signature(now);
    assert!(at(written).is_young);
    assert!(at(written + 19_000_000).is_young);
    assert!(!at(written + 21_000_000).is_young);
    assert_eq!(at(written).bytes, at(written + 1_000_000_000).bytes);
    // The clock was set back.
    assert!(at(written - 1_000_000_000).is_young);
}
