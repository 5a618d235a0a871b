//! Permissions: what an ordinary user may open is opened and closed again; a refusal ends in the old tree.
//!
//! They mean nothing to root, so everything here runs as an ordinary user.

use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;

use piton_engine::model::SkipReason;
use piton_engine::model::diff::Counts;
use piton_engine::view::OperationOutcome;
use piton_engine::{OperationError, RewindOptions, Settle};
use piton_host::fail;
use piton_host::sys::{Call, refusing};
use piton_testkit::{Mounted, World, as_ordinary_user, is_root};

const NOBODY: u32 = 65_534;

fn rewind_error(world: &World, target: &str) -> OperationError {
    match world.open().rewind_now(target, &RewindOptions::default()) {
        Ok(outcome) => panic!("it should be refused: {outcome:?}"),
        Err(error) => error,
    }
}

/// Lets somebody work in read-only folders: opens them, works, closes them again.
fn behind_closed_doors(world: &World, folders: &[&str], work: impl FnOnce(&World)) {
    for folder in folders {
        world.mode(folder, 0o755);
    }
    work(world);
    for folder in folders.iter().rev() {
        world.mode(folder, 0o555);
    }
}

#[test]
fn a_read_only_folder_is_opened_for_the_swap_and_closed_again() {
    as_ordinary_user(|| {
        let world = World::new();
        world.write("fixed/changed", "1").write("fixed/deleted", "1").write("fixed/sub/deep", "1").mode("fixed", 0o555);
        world.assert_comes_back(&[], |w| {
            behind_closed_doors(w, &["fixed"], |w| {
                w.write("fixed/changed", "2").remove("fixed/deleted").write("fixed/created", "2");
                w.write("fixed/sub/deep", "2").write("fixed/tree/of/files", "2");
            });
        });
        world.mode("fixed", 0o755);
    });
}

#[test]
fn nested_read_only_folders_are_opened_and_closed_again() {
    as_ordinary_user(|| {
        let world = World::new();
        let folders = ["a", "a/b", "a/b/c"];
        world.write("a/f", "1").write("a/b/f", "1").write("a/b/c/f", "1").write("a/b/c/g", "1");
        behind_closed_doors(&world, &folders, |_| {});
        world.assert_comes_back(&[], |w| {
            behind_closed_doors(w, &folders, |w| {
                w.write("a/f", "2").write("a/b/c/f", "2").remove("a/b/c/g").write("a/b/c/new", "2");
            });
        });
        world.assert_comes_back(&[], |w| {
            behind_closed_doors(w, &folders, |w| {
                w.write("a/b/c/f", "3");
            });
        });
        for folder in folders {
            world.mode(folder, 0o755);
        }
    });
}

#[test]
fn read_only_folders_go_and_come_back_whole() {
    as_ordinary_user(|| {
        let world = World::new();
        let folders = ["a", "a/b"];
        world.write("a/f", "1").write("a/b/g", "1").mode("a/b", 0o555).mode("a", 0o555);
        world.assert_comes_back(&[], |w| {
            w.mode("a", 0o755).mode("a/b", 0o755).remove("a");
            w.write("new/f", "1").write("new/b/g", "1").mode("new/b", 0o555).mode("new", 0o555);
        });
        for folder in folders {
            world.mode(folder, 0o755);
        }
    });
}

#[test]
fn a_folder_that_becomes_read_only_or_writable_comes_back_with_what_is_in_it() {
    as_ordinary_user(|| {
        let world = World::new();
        world.write("closes/f", "1").write("opens/f", "1").mode("opens", 0o555);
        world.assert_comes_back(&[], |w| {
            w.mode("opens", 0o755).write("opens/f", "2").write("opens/new", "2");
            w.write("closes/f", "2").write("closes/new", "2").mode("closes", 0o500);
        });
        world.mode("opens", 0o755);
    });
}

#[test]
fn a_read_only_root_is_opened_and_closed_again() {
    as_ordinary_user(|| {
        let world = World::new();
        world.write("f", "1").write("gone", "1").mode("", 0o555);
        let mode = || std::fs::metadata(world.ws()).unwrap().permissions().mode() & 0o7777;
        world.assert_comes_back(&[], |w| {
            behind_closed_doors(w, &[""], |w| {
                w.write("f", "2").remove("gone").write("new", "2");
            });
        });
        assert_eq!(mode(), 0o555);
        world.mode("", 0o755);
    });
}

#[test]
fn a_crash_while_read_only_folders_are_open_is_recovered_from_and_they_are_closed_again() {
    as_ordinary_user(|| {
        let folders = ["a", "a/b", "closes"];
        let crash_at = |step| {
            let world = World::new();
            world.write("a/f", "1").write("a/b/f", "1").write("closes/f", "1").mode("closes", 0o500);
            behind_closed_doors(&world, &folders[..2], |_| {});
            let id = world.capture();
            behind_closed_doors(&world, &folders[..2], |w| {
                w.write("a/f", "2")
                    .write("a/b/f", "2")
                    .write("a/b/new", "2")
                    .mode("closes", 0o750)
                    .write("closes/f", "2");
            });
            let old = world.snapshot();
            let done = fail::with(step, || world.rewind(&id)).is_some();
            let left_alone = world.open().recovered().iter().map(|r| r.left_alone.len()).sum::<usize>();
            assert_eq!(left_alone, 0, "at step {step}");
            (world, old, done)
        };
        let open = |world: &World| {
            for folder in folders {
                world.mode(folder, 0o755);
            }
        };
        let (world, ..) = crash_at(0);
        let new = world.snapshot();
        open(&world);
        for step in 1.. {
            let (world, old, done) = crash_at(step);
            let now = world.snapshot();
            assert!(now == old || now == new, "at step {step}: is | old\n{}", now.differences(&old).join("\n"));
            world.assert_sound();
            open(&world);
            if done {
                assert!(step > 20 && now == new);
                break;
            }
        }
    });
}

/// What keeps an ordinary user from changing a folder that can be read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Guard {
    /// It belongs to root.
    Owner,
    /// It is mounted read-only.
    Mount,
}

/// What happens in the workspace: first in a folder that the user may read and not change, then in the user's own.
struct Happens {
    guarded: fn(&World),
    own: fn(&World),
}

/// Captures, lets something happen, and rewinds as an ordinary user: refused at `path`, with the old tree. `mounted` is
/// what a mount guards; `why` is what each guard's refusal says.
fn check_refused(path: &str, mounted: &str, why: [&str; 2], before: &Happens, after: &Happens) {
    for (guard, why) in [Guard::Owner, Guard::Mount].into_iter().zip(why) {
        if guard == Guard::Owner && !is_root() {
            piton_testkit::not_run(
                "a rewind that is refused in another user's folder",
                "only root can make one; the same was tested with folders that are mounted read-only",
            );
            continue;
        }
        let base = tempfile::tempdir().unwrap();
        let world = World::at(base.path(), |_| {});
        if is_root() {
            for path in [base.path().to_owned(), world.ws()] {
                std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        let happens = |what: &Happens| match guard {
            Guard::Owner => {
                (what.guarded)(&world);
                as_ordinary_user(|| (what.own)(&world));
            }
            Guard::Mount => as_ordinary_user(|| {
                (what.guarded)(&world);
                (what.own)(&world);
            }),
        };
        happens(before);
        let id = as_ordinary_user(|| world.capture());
        happens(after);
        let mount = (guard == Guard::Mount).then(|| Mounted::read_only(&world.path(mounted)));
        assert_refused_and_put_back(&world, &id, path, why);
        drop(mount);
    }
}

fn assert_refused_and_put_back(world: &World, target: &str, path: &str, why: &str) {
    let before = world.snapshot();
    as_ordinary_user(|| {
        let error = rewind_error(world, target);
        let clear = |reason: &str| reason.contains(&format!("`{path}")) && reason.contains(why);
        assert!(
            matches!(&error, OperationError::RolledBack { reason, full_disk: false, .. } if clear(reason)),
            "{error}"
        );
        world.assert_is(&before);
        // Nothing is left behind that the next command would stumble over.
        assert!(world.open().recovered().is_empty());
        world.capture();
        world.assert_sound();
    });
}

fn one(world: &World) {
    world.write("a", "1").write("z", "1");
}

fn two(world: &World) {
    world.write("a", "2").write("z", "2");
}

fn guarded_file(world: &World) {
    world.write("owned/f", "1");
}

const NOT_WRITTEN: [&str; 2] = ["Permission denied", "Read-only file system"];

#[test]
fn a_file_that_may_not_be_replaced_ends_the_rewind_with_the_old_tree() {
    piton_testkit::needs_mounts!();
    let changed = |w: &World| {
        w.write("owned/f", "2");
    };
    let (before, after) = (Happens { guarded: guarded_file, own: one }, Happens { guarded: changed, own: two });
    check_refused("owned/f", "owned", NOT_WRITTEN, &before, &after);
}

#[test]
fn a_file_that_may_not_be_deleted_ends_the_rewind_with_the_old_tree() {
    piton_testkit::needs_mounts!();
    let added = |w: &World| {
        w.write("owned/new", "2");
    };
    let (before, after) = (Happens { guarded: guarded_file, own: one }, Happens { guarded: added, own: two });
    check_refused("owned/new", "owned", NOT_WRITTEN, &before, &after);
}

#[test]
fn a_folder_that_may_not_be_emptied_ends_the_rewind_with_the_old_tree() {
    piton_testkit::needs_mounts!();
    // The folder itself can be moved aside, since it is in a folder of the user's: only emptying it is refused.
    let added = |w: &World| {
        w.write("owned/deep/f", "2");
    };
    let (before, after) = (Happens { guarded: |_| {}, own: one }, Happens { guarded: added, own: two });
    check_refused("owned", "owned/deep", ["Permission denied", "resource busy"], &before, &after);
}

#[test]
fn bits_of_a_folder_that_may_not_be_set_end_the_rewind_with_the_old_tree() {
    piton_testkit::needs_mounts!();
    // Folders are closed from the last to the first: `z` is closed when the other one is refused.
    let own_before = |w: &World| {
        w.write("a", "1").write("z/f", "1").mode("z", 0o555);
    };
    let own_after = |w: &World| {
        w.write("a", "2").mode("z", 0o755).write("z/f", "2");
    };
    let opened = |w: &World| {
        w.mode("owned", 0o775);
    };
    let before = Happens { guarded: guarded_file, own: own_before };
    let after = Happens { guarded: opened, own: own_after };
    check_refused("owned", "owned", ["not permitted", "Read-only file system"], &before, &after);
}

#[test]
fn a_folder_to_delete_in_which_a_disk_is_mounted_ends_the_rewind_with_the_old_tree() {
    piton_testkit::needs_mounts!();
    let world = World::new();
    let id = world.write("a", "1").capture();
    world.write("a", "2").folder("new/disk");
    let disk = Mounted::disk(&world.path("new/disk"), c"");
    world.write("new/disk/f", "2");
    let before = world.snapshot();
    let error = rewind_error(&world, &id);
    let is_clear = matches!(&error, OperationError::RolledBack { reason, .. } if reason.contains("`new/disk`"));
    assert!(is_clear, "{error}");
    world.assert_is(&before);
    drop(disk);
    world.rewind(&id);
    assert_eq!(world.snapshot().len(), 1);
}

#[test]
fn what_could_not_be_read_is_looked_at_again_though_nothing_about_it_changed() {
    if !piton_testkit::is_root() {
        return piton_testkit::not_run(
            "a file that becomes readable as it is",
            "only root can take a right from a user",
        );
    }
    // World's folders are nobody's; the file is root's.
    let world = as_ordinary_user(|| {
        let world = World::new();
        world.write("o", "1").write("d/x", "1");
        world
    });
    std::fs::write(world.path("conf"), "precious").unwrap();
    let mode = |path: &str, mode| std::fs::set_permissions(world.path(path), PermissionsExt::from_mode(mode)).unwrap();
    mode("conf", 0o600);
    std::os::unix::fs::chown(world.path("d"), Some(0), Some(0)).unwrap();
    mode("d", 0o700);
    // Long enough for a filesystem's clock to tick, so that the index is trusted.
    std::thread::sleep(std::time::Duration::from_millis(60));
    let skipped = || {
        let found = world.captured().checkpoint.skipped;
        found.iter().map(|one| one.path.path.clone()).collect::<Vec<_>>()
    };
    assert_eq!(as_ordinary_user(skipped), ["conf", "d"]);
    assert_eq!(as_ordinary_user(skipped), ["conf", "d"]);
    // Whoever may read it now captures it.
    assert_eq!(skipped(), [""; 0]);
    let id = world.capture();
    std::fs::remove_file(world.path("conf")).unwrap();
    world.rewind(&id);
    assert_eq!(std::fs::read_to_string(world.path("conf")).unwrap(), "precious");
}

/// A folder like `/tmp`, in which somebody else has a file: only whoever owns that file may remove it.
#[test]
fn somebody_elses_file_in_a_sticky_folder_to_delete_ends_the_rewind_with_the_old_tree() {
    if !is_root() {
        piton_testkit::not_run("a rewind over another user's file in a sticky folder", "only root can make one");
        return;
    }
    let (_base, world) = world_of_nobody();
    let id = as_ordinary_user(|| world.write("f", "1").capture());
    as_ordinary_user(|| world.folder("d"));
    world.folder("d/tmp").mode("d/tmp", 0o1777).write("d/tmp/theirs", "root");
    assert_refused_and_put_back(&world, &id, "d/tmp/theirs", "not permitted");
}

/// A staged file has the bits that it shall have, and these may keep its owner from reading it: it is piton's own all the
/// same, and must not stay beside the user's files.
#[test]
fn what_was_staged_goes_again_though_its_bits_keep_its_owner_from_reading_it() {
    if !is_root() {
        piton_testkit::not_run(
            "a refused rewind with a staged file that its owner may not read",
            "only root can make one",
        );
        return;
    }
    let (_base, world) = world_of_nobody();
    world.write("g", "g").mode("g", 0o044).folder("s").mode("s", 0o1777).write("s/x", "1");
    let id = as_ordinary_user(|| world.capture());
    as_ordinary_user(|| world.remove("g"));
    world.write("s/x", "2");
    assert_refused_and_put_back(&world, &id, "s/x", "not permitted");
}

/// A folder that is the user's own, with what root puts into it.
fn world_of_nobody() -> (tempfile::TempDir, World) {
    let base = tempfile::tempdir().unwrap();
    let world = World::at(base.path(), |_| {});
    for path in [base.path().to_owned(), world.ws()] {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    (base, world)
}

/// Filesystems in user space, and on a network, keep what is removed while a program has it open, under a name of
/// their own: the folder cannot go before that.
#[test]
fn what_cannot_be_removed_at_the_end_is_named_left_out_of_captures_and_goes_later() {
    let world = World::new();
    let id = world.write("f", "1").capture();
    world.write("n/open", "n").write("n/sub/closed", "n");
    let before = world.snapshot();
    let handle = std::fs::File::open(world.path("n")).unwrap();
    let here = move || std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd())).unwrap();
    let kept = move || std::fs::write(here().join(".fuse_hidden0001"), "n").unwrap();
    let outcome = fail::when(2, "apply:remove", kept, || world.rewind(&id));
    assert!(outcome.verified && outcome.rescued.is_empty());
    let [left] = &outcome.leftovers[..] else { panic!("{:?}", outcome.leftovers) };
    assert!(left.path.path.ends_with("/.fuse_hidden0001"), "{left:?}");
    // The operation is done, nothing waits, and no capture takes what is left for the user's.
    let (name, _) = left.path.path.split_once('/').unwrap();
    assert!(world.open().recovered().is_empty() && world.path(name).exists());
    assert!(world.open().status().unwrap().files.is_empty());
    assert_eq!(world.captured().checkpoint.checkpoint.changes, Counts::default());
    assert!(world.path(name).exists());
    // The program closes it.
    std::fs::remove_file(world.path(&left.path.path)).unwrap();
    world.capture();
    assert!(!world.path(name).exists());
    world.redo();
    world.assert_is(&before);
    world.assert_sound();
}

/// What somebody makes of a leftover is the user's: it is captured, and never removed as piton's own.
#[test]
fn what_somebody_wrote_into_a_leftover_is_captured_and_stays() {
    let world = World::new();
    let id = world.write("f", "1").capture();
    world.write("n/open", "n");
    let handle = std::fs::File::open(world.path("n")).unwrap();
    let here = move || std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd())).unwrap();
    let kept = move || std::fs::write(here().join(".fuse_hidden0001"), "n").unwrap();
    let outcome = fail::when(2, "apply:remove", kept, || world.rewind(&id));
    let (name, _) = outcome.leftovers[0].path.path.split_once('/').unwrap();
    world.write(format!("{name}/mine"), "mine");
    assert!(world.captured().checkpoint.checkpoint.changes.created > 0);
    assert_eq!(std::fs::read(world.path(format!("{name}/mine"))).unwrap(), b"mine");
}

fn not_done(outcome: &OperationOutcome) -> Vec<(&str, SkipReason)> {
    outcome.not_done.iter().map(|one| (&one.path.path[..], one.reason)).collect()
}

/// The kernel takes the bit off a folder whose group is not one of the user's, and says nothing.
#[test]
fn bits_of_a_folder_that_the_system_does_not_take_are_not_called_restored() {
    if !is_root() {
        piton_testkit::not_run("a folder's set-group bit that its owner may not set", "only root can make one");
        return;
    }
    let (_base, world) = world_of_nobody();
    as_ordinary_user(|| world.write("d/f", "1"));
    std::os::unix::fs::chown(world.path("d"), None, Some(12_345)).unwrap();
    world.mode("d", 0o2755);
    as_ordinary_user(|| {
        let id = world.capture();
        world.mode("d", 0o755);
        for content in ["2", "3"] {
            world.write("d/f", content);
            let outcome = world.rewind(&id);
            assert_eq!(not_done(&outcome), [("d", SkipReason::Refused)]);
            assert!(!outcome.verified);
            assert_eq!(outcome.restored.iter().map(|path| &path.path[..]).collect::<Vec<_>>(), ["d/f"]);
            assert_eq!(world.snapshot().bytes("d/f"), Some(&b"1"[..]));
            // The result is what is there: nobody changed the bits since.
            assert_eq!(world.captured().checkpoint.checkpoint.changes, Counts::default());
        }
    });
}

/// On some filesystems permission bits are those that a file is made with.
#[test]
fn a_rewind_works_where_bits_cannot_be_set_and_names_what_got_others() {
    let world = World::new();
    world.write("f", "1").write("tool", "1").mode("tool", 0o755).write("shared", "1").mode("shared", 0o666);
    world.write("dir/f", "1").write("open/sub/f", "1").mode("open/sub/f", 0o666).mode("open/sub", 0o777);
    let id = world.capture();
    let before = world.snapshot();
    world.write("f", "2").write("tool", "2").write("shared", "2").remove("dir").remove("open");
    let edited = world.snapshot();
    let outcome = refusing(&[Call::SetMode], || world.rewind(&id));
    assert!(outcome.changed_again.is_empty(), "{outcome:?}");
    assert_eq!(not_done(&outcome), [("open", SkipReason::Refused), ("shared", SkipReason::Refused)]);
    assert_eq!(world.snapshot().bytes("shared"), Some(&b"1"[..]));
    // The result holds the bits that are there: nobody changed them since.
    assert_eq!(world.captured().checkpoint.checkpoint.changes, Counts::default());
    // So nothing was done since, and taking it back meets no change of anybody's.
    let outcome = refusing(&[Call::SetMode], || world.redo());
    assert!(outcome.conflicts.is_empty(), "{outcome:?}");
    world.mode("shared", 0o666);
    world.assert_is(&edited);
    refusing(&[Call::SetMode], || world.rewind(&id));
    world.mode("shared", 0o666).mode("open/sub", 0o777).mode("open/sub/f", 0o666);
    world.assert_is(&before);
    world.assert_sound();
}

#[test]
fn what_the_system_refuses_does_not_keep_the_rest_from_being_restored_in_part() {
    piton_testkit::needs_mounts!();
    let base = tempfile::tempdir().unwrap();
    let world = World::at(base.path(), |_| {});
    if is_root() {
        for path in [base.path().to_owned(), world.ws()] {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
    as_ordinary_user(|| world.write("src", "1").write("logs/app", "1").write("logs/old", "1").write("z/bits", "1"));
    let id = as_ordinary_user(|| world.capture());
    as_ordinary_user(|| {
        world.write("src", "2").write("logs/app", "2").write("logs/new", "2").remove("logs/old");
        world.mode("z", 0o700).write("made/f", "2");
    });
    let mounts = [Mounted::read_only(&world.path("logs")), Mounted::read_only(&world.path("z"))];
    let refused = as_ordinary_user(|| rewind_error(&world, &id));
    assert!(matches!(&refused, OperationError::RolledBack { refused, .. } if !refused.is_empty()), "{refused}");
    let partial = RewindOptions { settle: Settle { partial: true, ..Settle::default() }, ..RewindOptions::default() };
    let outcome = as_ordinary_user(|| world.open().rewind_now(&id, &partial).unwrap());
    let left = ["logs/app", "logs/new", "logs/old", "z"].map(|path| (path, SkipReason::Refused));
    assert_eq!(not_done(&outcome), left);
    assert!(!outcome.verified && outcome.leftovers.is_empty());
    let now = world.snapshot();
    assert_eq!((now.bytes("src"), now.bytes("logs/app")), (Some(&b"1"[..]), Some(&b"2"[..])));
    assert!(!world.path("made").exists());
    drop(mounts);
    as_ordinary_user(|| {
        assert!(world.rewind(&id).verified);
        world.assert_sound();
    });
    assert_eq!(world.snapshot().bytes("logs/old"), Some(&b"1"[..]));
}

/// What was made readable for an operation that never came to be recorded is closed again by the next command, and not if
/// somebody opened it since.
#[test]
fn bits_that_were_set_before_a_crash_are_put_back() {
    let base = tempfile::tempdir().unwrap();
    let make = || {
        let base = tempfile::tempdir_in(base.path()).unwrap();
        let world = World::at(base.path(), |_| {});
        if is_root() {
            for path in [base.path().to_owned(), world.ws()] {
                std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        let id = as_ordinary_user(|| {
            world.write("secret", "1").write("d/x", "1");
            let id = world.capture();
            world.write("secret", "2").mode("secret", 0o000).write("d/x", "2").mode("d", 0o000);
            id
        });
        (base, world, id)
    };
    let bits = |world: &World| {
        ["secret", "d"].map(|path| {
            std::os::unix::fs::PermissionsExt::mode(&std::fs::symlink_metadata(world.path(path)).unwrap().permissions())
                & 0o777
        })
    };
    if is_root() {
        std::os::unix::fs::chown(base.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let mut closed = 0;
    for step in 1.. {
        let (_base, world, id) = make();
        if as_ordinary_user(|| fail::with(step, || drop(world.rewind(&id)))).is_some() {
            break;
        }
        let left = bits(&world);
        as_ordinary_user(|| drop(world.open()));
        let now = bits(&world);
        assert!(now == [0, 0] || now == [0o644, 0o755], "died at step {step}: {now:?}");
        if now == [0, 0] && left != now {
            closed += 1;
        }
        // Nothing is noted any more: whoever opens it now means it.
        as_ordinary_user(|| {
            world.mode("secret", 0o644).mode("d", 0o755);
            drop(world.open());
        });
        assert_eq!(bits(&world), [0o644, 0o755], "died at step {step}");
        as_ordinary_user(|| world.assert_sound());
    }
    assert!(closed > 2, "{closed}");
}
