//! Forms of the index, of the objects and of the repository.

use std::fs;
use std::os::unix::ffi::OsStrExt;

use piton_host::git::{ObjectError, Repository};
use piton_model::git::SKIP_WORKTREE;

use crate::lab::{Lab, check, paths, read};
use crate::real::{git, git_command};

#[test]
fn all_versions_of_the_index_are_read() {
    let lab = Lab::committed();
    lab.git(&["update-index", "--index-version", "4"]);
    assert_eq!(lab.check().uncommitted, Some(false));
    lab.write("dir/one", "changed\n");
    lab.write("dir/sub/more", "more\n");
    lab.git(&["add", "-A"]);
    lab.check();
    lab.write("intended", "x\n");
    lab.git(&["add", "-N", "intended"]);
    lab.check();
    // An intention to add makes this version 3.
    lab.git(&["update-index", "--index-version", "2"]);
    assert_eq!(fs::read(lab.path.join(".git/index")).unwrap()[7], 3);
    assert_eq!(lab.check().staged.len(), 3);
}

#[test]
fn a_split_index_is_put_together() {
    let lab = Lab::committed();
    for number in 0..200 {
        lab.write(&format!("many/{number:03}"), &format!("{number}\n"));
    }
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-q", "-m", "many"]);
    lab.git(&["config", "splitIndex.maxPercentChange", "100"]);
    let shared = || {
        let all = fs::read_dir(lab.path.join(".git")).unwrap().map(|entry| entry.unwrap().path());
        all.filter(|path| path.file_name().unwrap().as_bytes().starts_with(b"sharedindex.")).collect::<Vec<_>>()
    };
    for version in ["2", "4"] {
        lab.git(&["update-index", "--index-version", version]);
        lab.git(&["update-index", "--split-index"]);
        assert_eq!(shared().len(), 1);
        lab.check();
        lab.write("many/007", "changed\n");
        lab.write("many/199", "changed\n");
        lab.write("many/0075", "new\n");
        lab.git(&["add", "-A"]);
        lab.git(&["rm", "-q", "-f", "many/100", "many/101", "a"]);
        assert_eq!(lab.check().staged.len(), 6);
        lab.git(&["reset", "-q", "--hard"]);
        lab.check();
        lab.git(&["update-index", "--no-split-index"]);
        shared().iter().for_each(|path| fs::remove_file(path).unwrap());
    }
    lab.git(&["update-index", "--split-index"]);
    shared().iter().for_each(|path| fs::remove_file(path).unwrap());
    let state = lab.read();
    assert_eq!(state.incomplete.as_deref(), Some("the index is split, and the shared part is missing"));
    assert_eq!((state.staged.len(), state.uncommitted), (0, None));
}

#[test]
fn a_sparse_checkout_has_no_uncommitted_changes_for_what_it_leaves_out() {
    for sparse_index in ["--no-sparse-index", "--sparse-index"] {
        let lab = Lab::committed();
        lab.write("dir/sub/more/x", "x\n");
        lab.git(&["add", "-A"]);
        lab.git(&["commit", "-q", "-m", "more"]);
        lab.git(&["sparse-checkout", "set", "--cone", sparse_index, "last"]);
        assert!(!lab.path.join("dir").exists());
        let state = lab.check();
        assert_eq!((state.uncommitted, state.flagged.len()), (Some(false), 0), "{sparse_index}");
        lab.write("last/file", "changed\n");
        assert_eq!(lab.check().uncommitted, Some(true));
        lab.git(&["add", "last"]);
        assert_eq!(lab.check().staged.len(), 1);
        // Another commit's tree beneath a folder that is one entry here.
        lab.git(&["commit", "-q", "-m", "last"]);
        lab.git(&["reset", "-q", "--soft", "HEAD~2"]);
        let state = lab.check();
        assert_eq!(paths(&state), ["created dir/sub/more/x", "modified last/file"]);
        assert_eq!(state.staged[0].flags, SKIP_WORKTREE);
        // A file is put where git left it out.
        lab.git(&["commit", "-q", "-m", "again"]);
        lab.write("dir/one", "content of dir/one\n");
        assert_ne!(lab.read().uncommitted, Some(true));
    }
}

#[test]
fn a_repository_with_sha_256_is_read() {
    let lab = Lab::with(&["init", "-q", "--object-format=sha256"]);
    lab.check();
    lab.fill();
    lab.check();
    lab.write("a", "changed\n");
    lab.git(&["add", "a"]);
    assert_eq!(lab.check().staged[0].id.len(), 64);
    lab.git(&["gc", "-q", "--prune=now"]);
    lab.check();
    lab.git(&["update-index", "--index-version", "4"]);
    lab.check();
}

#[test]
fn a_worktree_has_its_own_head_and_index() {
    let lab = Lab::committed();
    let other = lab.path.with_file_name("other");
    lab.git(&["worktree", "add", "-q", "-b", "side", "../other"]);
    fs::write(other.join("a"), "in the worktree\n").unwrap();
    git(&other, &["add", "a"]);
    assert_eq!(check(&other).head.branch.as_deref(), Some("side"));
    assert_eq!(check(&other).staged.len(), 1);
    assert_eq!(lab.check().staged.len(), 0);
    git(&other, &["config", "extensions.worktreeConfig", "true"]);
    git(&other, &["config", "--worktree", "core.fileMode", "false"]);
    check(&other);
    // Without the repository that it belongs to, it is not one.
    fs::rename(lab.path.join(".git"), lab.path.join("elsewhere")).unwrap();
    assert_eq!(Repository::find(&other), None);
}

#[test]
fn a_submodule_is_a_repository_of_its_own_and_an_entry_in_the_one_around() {
    let lab = Lab::committed();
    let inner = Lab::committed();
    lab.git(&["submodule", "--quiet", "add", inner.path.to_str().unwrap(), "sub"]);
    let state = lab.check();
    assert_eq!(paths(&state), ["created .gitmodules", "created sub"]);
    assert!(!state.staged[1].has_blob());
    lab.git(&["commit", "-q", "-m", "submodule"]);
    let sub = lab.path.join("sub");
    assert_eq!(check(&sub).uncommitted, Some(false));
    fs::write(sub.join("a"), "changed in the submodule\n").unwrap();
    git(&sub, &["add", "a"]);
    assert_eq!(check(&sub).staged.len(), 1);
    assert_eq!(lab.check().uncommitted, Some(false));
    git(&sub, &["commit", "-q", "-m", "moved"]);
    assert_eq!(lab.check().uncommitted, Some(false));
    lab.git(&["add", "sub"]);
    assert_eq!(paths(&lab.check()), ["modified sub"]);
}

#[test]
fn borrowed_objects_are_found() {
    let lab = Lab::committed();
    let clone = lab.path.with_file_name("clone");
    git(lab.path.parent().unwrap(), &["clone", "-q", "--shared", "repo", "clone"]);
    git(&clone, &["rm", "-q", "--cached", "dir/one"]);
    assert_eq!(check(&clone).staged.len(), 1);
    // A cycle of borrowing ends.
    let alternates = lab.path.join(".git/objects/info/alternates");
    fs::write(alternates, clone.join(".git/objects").as_os_str().as_bytes()).unwrap();
    assert_eq!(read(&clone).staged.len(), 1);
    // Without the lender it reports what is missing.
    fs::rename(&lab.path, lab.path.with_file_name("gone")).unwrap();
    let state = read(&clone);
    assert!(state.incomplete.unwrap().contains("is not in the repository"));
    assert_eq!((state.staged.len(), state.uncommitted), (0, None));
}

#[test]
fn objects_in_chains_of_differences_are_put_together() {
    let lab = Lab::committed();
    let mut text: Vec<String> = (0..400).map(|n| format!("line {n} {}", n * n)).collect();
    for round in 0..40 {
        text[round * 7] = format!("edited in round {round}");
        lab.write("big", &text.join("\n"));
        for number in 0..20 {
            lab.write(&format!("wide/{}/{number}", round % 5), &format!("{round}\n"));
        }
        lab.git(&["add", "-A"]);
        lab.git(&["commit", "-q", "-m", "round"]);
    }
    lab.git(&["repack", "-q", "-a", "-d", "-f", "--depth=50", "--window=50"]);
    lab.git(&["prune-packed"]);
    let listing = lab.git(&["cat-file", "--batch-check", "--batch-all-objects"]);
    let blobs: Vec<&str> =
        listing.lines().filter(|line| line.contains(" blob ")).map(|line| line.split(' ').next().unwrap()).collect();
    assert!(blobs.len() > 40);
    let objects = lab.repository().objects();
    for id in &blobs {
        let run = git_command(&lab.path, &["cat-file", "blob", id]).output().unwrap();
        assert!(objects.blob(id, 1 << 20).unwrap() == run.stdout, "{id}");
    }
    lab.git(&["read-tree", "HEAD~20"]);
    lab.check();
    // Bases named by their ids instead of their offsets.
    lab.git(&["config", "repack.useDeltaBaseOffset", "false"]);
    lab.git(&["repack", "-q", "-a", "-d", "-f", "--depth=50"]);
    lab.check();
    let again = lab.repository().objects();
    assert!(blobs.iter().all(|id| again.blob(id, 1 << 20) == objects.blob(id, 1 << 20)));
}

#[test]
fn an_object_that_is_too_large_missing_or_of_another_kind_says_so() {
    let lab = Lab::committed();
    lab.write("large", &"x".repeat(10_000));
    lab.git(&["add", "large"]);
    let id = lab.git(&["rev-parse", ":large"]).trim().to_owned();
    let tree = lab.git(&["rev-parse", "HEAD^{tree}"]).trim().to_owned();
    let missing = "12".repeat(20);
    for _ in 0..2 {
        let repository = lab.repository();
        assert_eq!(repository.blob(&id, 10_000).unwrap().len(), 10_000);
        assert_eq!(repository.blob(&id, 9_999), Err(ObjectError::TooLarge(id.clone())));
        assert_eq!(repository.blob(&tree, 9_999), Err(ObjectError::Kind(tree.clone(), "blob")));
        assert_eq!(repository.blob(&missing, 9_999), Err(ObjectError::Missing(missing.clone())));
        assert!(repository.blob("../../etc/passwd", 9_999).is_err());
        lab.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        lab.git(&["gc", "-q", "--prune=now"]);
    }
}

#[test]
fn a_pack_that_is_made_while_objects_are_open_is_found() {
    let lab = Lab::committed();
    let objects = lab.repository().objects();
    let id = lab.git(&["rev-parse", "HEAD:a"]).trim().to_owned();
    assert!(objects.blob(&"12".repeat(20), 100).is_err());
    lab.git(&["gc", "-q", "--prune=now"]);
    assert_eq!(objects.blob(&id, 100).unwrap(), b"content of a\n");
}
