//! Damaged and hostile repositories: no panic, no false report, no unbounded memory.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use piton_host::git::Limits;

use crate::lab::Lab;
use crate::real::git_command;

/// However a file is damaged: no panic, and what is reported is true.
fn damage(lab: &Lab, file: &Path, step: usize) {
    let whole = lab.read();
    assert_eq!(whole.incomplete, None);
    let blob = |id: &str| lab.repository().blob(id, 1 << 20);
    let blobs: Vec<_> =
        whole.staged.iter().filter(|e| e.has_blob()).map(|e| (e.id.clone(), blob(&e.id).unwrap())).collect();
    let bytes = fs::read(file).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
    let try_with = |bytes: &[u8], what: String| {
        fs::write(file, bytes).unwrap();
        let state = lab.read();
        match &state.incomplete {
            None => assert_eq!((&state.head, &state.staged), (&whole.head, &whole.staged), "{what}"),
            Some(_) => assert!(state.staged.iter().all(|entry| whole.staged.contains(entry)), "{what}"),
        }
        for (id, content) in &blobs {
            assert!(blob(id).is_err() || blob(id).as_ref() == Ok(content), "{what}");
        }
    };
    for at in (0..bytes.len()).step_by(step) {
        let mut bad = bytes.clone();
        bad[at] ^= 1 << (at % 8);
        try_with(&bad, format!("byte {at} flipped"));
        bad[at] = 0xff;
        try_with(&bad, format!("byte {at} set"));
        try_with(&bytes[..at], format!("cut at {at}"));
    }
    fs::write(file, &bytes).unwrap();
    assert_eq!(lab.read().staged, whole.staged);
}

#[test]
fn a_damaged_index_is_never_believed() {
    for version in ["2", "4"] {
        let lab = Lab::committed();
        lab.write("dir/new", "new\n");
        lab.git(&["rm", "-q", "--cached", "a"]);
        lab.git(&["add", "dir/new"]);
        lab.git(&["update-index", "--index-version", version]);
        damage(&lab, &lab.path.join(".git/index"), 1);
        // With nothing staged the checksum is not checked, and the damage is noticed anyway.
        lab.git(&["reset", "-q", "--hard"]);
        damage(&lab, &lab.path.join(".git/index"), 1);
    }
}

#[test]
fn a_damaged_split_index_is_never_believed() {
    let lab = Lab::committed();
    lab.git(&["config", "splitIndex.maxPercentChange", "100"]);
    lab.git(&["update-index", "--split-index"]);
    lab.write("dir/one", "changed\n");
    lab.write("dir/new", "new\n");
    lab.git(&["add", "-A"]);
    lab.git(&["rm", "-q", "--cached", "a"]);
    damage(&lab, &lab.path.join(".git/index"), 1);
}

#[test]
fn damaged_objects_are_never_believed() {
    let lab = Lab::committed();
    for number in 0..10 {
        lab.write("dir/one", &format!("{}\n{number}\n", "same\n".repeat(50)));
        lab.git(&["commit", "-q", "-a", "-m", "more"]);
    }
    lab.write("dir/sub/deep", "staged\n");
    lab.git(&["add", "-A"]);
    let tree = lab.git(&["rev-parse", "HEAD^{tree}"]);
    let (first, rest) = tree.trim().split_at(2);
    damage(&lab, &lab.path.join(".git/objects").join(first).join(rest), 1);
    lab.git(&["gc", "-q", "--prune=now"]);
    for entry in fs::read_dir(lab.path.join(".git/objects/pack")).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "pack" || e == "idx") {
            damage(&lab, &path, 3);
        }
    }
}

#[test]
fn a_short_index_that_spells_out_endless_paths_is_refused() {
    let lab = Lab::committed();
    let mut bytes = b"DIRC\0\0\0\x04".to_vec();
    let count = 60_000u32;
    bytes.extend_from_slice(&count.to_be_bytes());
    for number in 0..count {
        bytes.extend_from_slice(&[0; 60]);
        bytes.extend_from_slice(&[0, 1, 0]);
        if number == 0 {
            bytes.extend_from_slice(&[b'a'; 1000]);
        }
        bytes.extend_from_slice(b"b\0");
    }
    bytes.extend_from_slice(&[0; 20]);
    fs::write(lab.path.join(".git/index"), bytes).unwrap();
    assert_eq!(lab.read().incomplete.as_deref(), Some("the index is damaged"));
}

#[test]
fn an_index_over_the_limit_is_refused_and_limits_on_what_is_listed_are_said() {
    let lab = Lab::committed();
    lab.git(&["rm", "-q", "-r", "--cached", "dir"]);
    let read = |limits: Limits| lab.repository().read(&limits, None);
    let state = read(Limits { index_bytes: 100, ..Limits::default() });
    assert_eq!(state.incomplete.as_deref(), Some("the index: it has more than 100 bytes"));
    assert_eq!((state.head.branch.as_deref(), state.uncommitted), (Some("main"), None));
    let state = read(Limits { staged: 2, ..Limits::default() });
    assert_eq!(state.incomplete.as_deref(), Some("more than 2 entries are staged; the rest is left out"));
    assert_eq!((state.staged.len(), state.uncommitted), (2, Some(true)));
    let state = read(Limits { trees: 1, ..Limits::default() });
    assert_eq!(state.incomplete.as_deref(), Some("too many folders differ between the index and HEAD"));
}

/// Makes HEAD a commit of nested trees, `depth` levels deep, each `width` times in the one above.
fn nest(lab: &Lab, depth: usize, width: usize) {
    let mut id = lab.git(&["hash-object", "-w", "a"]).trim().to_owned();
    let mut kind = "100644 blob";
    for _ in 0..depth {
        let listing: String = (0..width).map(|n| format!("{kind} {id}\tn{n}\n")).collect();
        let mut make = git_command(&lab.path, &["mktree"]);
        let mut child = make.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(listing.as_bytes()).unwrap();
        id = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned();
        kind = "040000 tree";
    }
    let commit = lab.git(&["commit-tree", "-m", "nested", &id]);
    lab.git(&["update-ref", "HEAD", commit.trim()]);
}

#[test]
fn a_tree_that_unfolds_without_end_is_given_up_on() {
    let lab = Lab::committed();
    nest(&lab, 12, 10);
    let state = lab.read();
    assert!(state.incomplete.is_some());
    assert!(state.staged.len() <= Limits::default().staged);
}

#[test]
fn a_tree_that_is_nested_too_deeply_is_given_up_on() {
    let lab = Lab::committed();
    nest(&lab, 200, 1);
    assert_eq!(lab.read().incomplete, None);
    nest(&lab, 300, 1);
    assert_eq!(lab.read().incomplete.as_deref(), Some("HEAD's folders are nested too deeply"));
}
