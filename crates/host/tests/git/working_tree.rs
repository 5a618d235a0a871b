//! Whether files differ from the index.

use std::fs;
use std::os::unix::fs::symlink;

use piton_host::git::{FileStat, Limits, Repository, SeenByCapture, SeenPath};

use crate::lab::{Lab, a_moment_later, capture, lstat, read, uncommitted_by_capture};

#[test]
fn a_touched_file_with_the_same_content_is_not_a_change() {
    let lab = Lab::committed();
    a_moment_later();
    for path in ["a", "dir/sub/deep"] {
        let content = fs::read(lab.path.join(path)).unwrap();
        fs::remove_file(lab.path.join(path)).unwrap();
        fs::write(lab.path.join(path), content).unwrap();
    }
    fs::remove_file(lab.path.join("link")).unwrap();
    symlink("a", lab.path.join("link")).unwrap();
    let state = lab.check();
    assert_eq!((state.staged.len(), state.uncommitted), (0, Some(false)));
}

#[test]
fn an_edit_of_the_same_size_is_a_change() {
    for _ in 0..20 {
        let lab = Lab::committed();
        // Perhaps at the same moment as the index was written.
        lab.write("a", "CONTENT OF a\n");
        assert_eq!(lab.read().uncommitted, Some(true));
    }
    let lab = Lab::committed();
    fs::remove_file(lab.path.join("link")).unwrap();
    symlink("b", lab.path.join("link")).unwrap();
    assert_eq!(lab.check().uncommitted, Some(true));
}

#[test]
fn an_edit_that_moves_no_time_is_seen_where_the_index_is_as_old() {
    let lab = Lab::committed();
    let index = lab.path.join(".git/index");
    let file = lab.path.join("a");
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    fs::File::options().write(true).open(&index).unwrap().set_modified(time).unwrap();
    lab.write("a", "CONTENT OF a\n");
    // As if the write had come at the same moment: then `stat` matches the index.
    let known = fs::read(&index).unwrap();
    let stat = |path: &[u8]| match lstat(&lab.path, path) {
        SeenPath::Stat(stat) if path == b"a" => {
            let number = |at: usize| i64::from(u32::from_be_bytes(known[12 + at..16 + at].try_into().unwrap()));
            let (ctime, mtime) = (number(0) * 1_000_000_000 + number(4), number(8) * 1_000_000_000 + number(12));
            SeenPath::Stat(FileStat { ctime, mtime, ..stat })
        }
        other => other,
    };
    let repository = lab.repository();
    assert_eq!(repository.has_uncommitted(&Limits::default(), &mut |path: &[u8]| stat(path)), Some(true));
}

#[test]
fn a_missing_file_is_a_change_and_an_untracked_one_is_none() {
    let lab = Lab::committed();
    lab.write("untracked", "x\n");
    assert_eq!(lab.check().uncommitted, Some(false));
    fs::remove_file(lab.path.join("last/file")).unwrap();
    assert_eq!(lab.check().uncommitted, Some(true));
    lab.git(&["checkout", "-q", "."]);
    // What a symlink leads to is not what is tracked.
    fs::rename(lab.path.join("dir"), lab.path.join("kept")).unwrap();
    symlink("kept", lab.path.join("dir")).unwrap();
    assert_eq!(uncommitted_by_capture(&lab.path), Some(true));
}

#[test]
fn a_tracked_file_in_an_ignored_folder_counts() {
    let lab = Lab::committed();
    lab.write(".gitignore", "dir/\n");
    lab.git(&["add", ".gitignore"]);
    lab.git(&["commit", "-q", "-m", "ignore"]);
    assert_eq!(lab.check().uncommitted, Some(false));
    lab.write("dir/sub/deep", "changed\n");
    assert_eq!(lab.check().uncommitted, Some(true));
}

#[test]
fn ends_of_lines_that_git_converts_are_no_change_and_a_filter_is_not_guessed_about() {
    let lab = Lab::new();
    lab.write(".gitattributes", "*.txt text eol=crlf\n*.bin filter=none\n");
    lab.write("a.txt", "one\r\ntwo\r\n");
    lab.write("b.bin", "one\n");
    lab.git(&["-c", "core.safecrlf=false", "add", "-A"]);
    lab.git(&["commit", "-q", "-m", "crlf"]);
    a_moment_later();
    lab.write("a.txt", "one\r\ntwo\r\n");
    assert_eq!(lab.check().uncommitted, Some(false));
    lab.write("a.txt", "one\r\nTWO\r\n");
    assert_eq!(lab.check().uncommitted, Some(true));
    lab.write("a.txt", "one\r\ntwo\r\n");
    lab.write("b.bin", "two\n");
    assert_eq!(lab.read().uncommitted, None);
}

#[test]
fn more_touched_files_than_may_be_hashed_leave_it_open_unless_one_surely_changed() {
    let lab = Lab::committed();
    a_moment_later();
    for path in ["a", "b.txt", "dir/one"] {
        lab.write(path, &format!("content of {path}\n"));
    }
    lab.git(&["update-index", "--force-remove", "link"]);
    lab.git(&["commit", "-q", "-m", "no racy entries"]);
    a_moment_later();
    for path in ["a", "b.txt", "dir/one"] {
        lab.write(path, &format!("content of {path}\n"));
    }
    let limits = Limits { hashed_files: 2, ..Limits::default() };
    let ask = |limits: &Limits| lab.repository().has_uncommitted(limits, &mut |path: &[u8]| lstat(&lab.path, path));
    assert_eq!(ask(&Limits { hashed_files: 3, ..limits }), Some(false));
    assert_eq!(ask(&limits), None);
    assert_eq!(ask(&Limits { hashed_files: 3, hashed_bytes: 20, ..limits }), None);
    lab.write("last/file", "longer than it was before, as anyone can see\n");
    assert_eq!(ask(&limits), Some(true));
}

#[test]
fn a_workspace_in_a_repository_asks_for_the_rest_itself() {
    let lab = Lab::committed();
    let inside = lab.path.join("dir/sub");
    let repository = Repository::find(&inside).unwrap();
    assert_eq!((repository.work_tree(), repository.prefix()), (lab.path.as_path(), &b"dir/sub"[..]));
    assert_eq!(uncommitted_by_capture(&inside), Some(false));
    let index = capture(&inside);
    let mut seen = SeenByCapture::new(&repository, &index);
    let limits = Limits { asked: 2, ..Limits::default() };
    assert_eq!(repository.has_uncommitted(&limits, &mut |path: &[u8]| seen.look_up(path)), None);
    lab.write("a", "changed outside of the workspace\n");
    assert_eq!(uncommitted_by_capture(&inside), Some(true));
    lab.git(&["checkout", "-q", "."]);
    lab.write("dir/sub/deep", "changed inside\n");
    assert_eq!(uncommitted_by_capture(&inside), Some(true));
    lab.git(&["add", "-A"]);
    assert_eq!(read(&inside).staged[0].path.display(), "dir/sub/deep");
}

#[test]
fn what_a_capture_saw_is_found_in_any_order() {
    let lab = Lab::committed();
    lab.write("ignored/x", "x");
    lab.write(".gitignore", "ignored/\n");
    let index = capture(&lab.path);
    let repository = lab.repository();
    let all = ["a", "b.txt", "dir-x", "dir.y", "dir/one", "dir/sub/deep", "dir/two", "last/file", "link"];
    let none = ["none", "dir/none", "dir/a", "no/such/folder", "a/below/a/file", "zzz"];
    let mut seen = SeenByCapture::new(&repository, &index);
    for first in all {
        for second in all {
            for path in [first, second] {
                assert_eq!(seen.look_up(path.as_bytes()), lstat(&lab.path, path.as_bytes()), "{path}");
            }
            for path in none {
                assert_eq!(seen.look_up(path.as_bytes()), SeenPath::Missing, "{path}");
                assert_eq!(seen.look_up(second.as_bytes()), lstat(&lab.path, second.as_bytes()), "{path}");
            }
            assert_eq!(seen.look_up(b"ignored/x"), SeenPath::Unknown);
        }
    }
}
