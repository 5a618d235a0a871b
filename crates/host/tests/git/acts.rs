//! Random git operations, one after the other.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::lab::Lab;
use crate::real::git_command;

const NAMES: [&str; 11] = ["a", "b", "c.txt", "d", "d-e", "d.f", "d/x", "d/y/z", "d/y/w", "e/f/g/h", "e/f/i"];

#[test]
fn after_any_acts_piton_says_what_git_says() {
    for seed in 1..5 {
        any_acts(seed, 30);
    }
}

fn any_acts(seed: u64, count: usize) {
    let lab = Lab::committed();
    lab.git(&["branch", "other"]);
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    let mut acts = Vec::new();
    for _ in 0..count {
        let name = NAMES[next(NAMES.len())];
        let path = lab.path.join(name);
        let act: &[&str] = match next(20) {
            0..=5 => {
                make_room(&lab.path, name);
                lab.write(name, &format!("{}\n", next(50)));
                &["(write)"]
            }
            6 => {
                let _ = fs::remove_file(&path);
                &["(remove)"]
            }
            7 => {
                let mode = [0o644, 0o755][next(2)];
                // With the first mode a folder could no longer be entered.
                if path.symlink_metadata().is_ok_and(|found| found.is_file()) {
                    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
                }
                &["(chmod)"]
            }
            8 => {
                make_room(&lab.path, name);
                symlink(["a", "b"][next(2)], &path).unwrap();
                &["(symlink)"]
            }
            9 | 10 => &["add", "-A"],
            11 => &["add", name],
            12 => &["add", "-N", name],
            13 => &["commit", "-q", "--allow-empty", "-m", "x"],
            14 => &["rm", "-q", "-r", "--cached", "--ignore-unmatch", name],
            15 => [&["reset", "-q"][..], &["read-tree", "HEAD"], &["reset", "-q", "--hard"]][next(3)],
            16 => [&["checkout", "-q", "other"][..], &["checkout", "-q", "main"], &["merge", "-q", "other"]][next(3)],
            17 => [&["stash"][..], &["stash", "pop"], &["rebase", "-q", "other"]][next(3)],
            18 => [&["gc", "-q", "--prune=now"][..], &["pack-refs", "--all"], &["repack", "-q", "-a"]][next(3)],
            _ => [
                &["update-index", "--index-version", "2"][..],
                &["update-index", "--index-version", "4"],
                &["update-index", "--split-index"],
                &["update-index", "--no-split-index"],
            ][next(4)],
        };
        acts.push(format!("{} {name}", act.join(" ")));
        if !act[0].starts_with('(') {
            // Some are refused in the middle of a conflict.
            git_command(&lab.path, act).output().unwrap();
        }
        let checked = std::panic::catch_unwind(|| lab.check());
        assert!(checked.is_ok(), "seed {seed}, after {acts:#?}");
    }
}

/// Removes whatever is where a file is to be.
fn make_room(root: &Path, name: &str) {
    for above in Path::new(name).ancestors().skip(1).filter(|path| !path.as_os_str().is_empty()) {
        if root.join(above).symlink_metadata().is_ok_and(|found| !found.is_dir()) {
            fs::remove_file(root.join(above)).unwrap();
        }
    }
    let path = root.join(name);
    let _ = fs::remove_dir_all(&path);
    let _ = fs::remove_file(&path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
}
