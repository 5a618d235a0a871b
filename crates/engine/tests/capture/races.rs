//! Files that change while they are captured, times that do not tell, clocks that jump, and several pitons at once.

use std::fs::{File, FileTimes};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use piton_engine::{CaptureOptions, Clock, OperationError, RewindOptions, SystemClock, TargetError};
use piton_host::fail;
use piton_testkit::World;

/// Long enough for files to be older than a capture, so that the cache is trusted.
fn settle() {
    std::thread::sleep(Duration::from_millis(40));
}

/// How many files a capture found modified.
fn modified(world: &World) -> u64 {
    world.captured().checkpoint.checkpoint.changes.modified
}

/// Writes into the file that is there, as `echo >` does.
fn overwrite(path: &Path, bytes: &[u8]) {
    File::options().write(true).open(path).unwrap().write_all_at(bytes, 0).unwrap();
}

#[test]
fn an_edit_of_the_same_size_with_its_mtime_put_back_is_captured() {
    let world = World::new();
    world.write("f", "aaaa").write("other", "x");
    let f = world.path("f");
    let old = FileTimes::new().set_modified(std::fs::metadata(&f).unwrap().modified().unwrap());
    settle();
    let id = world.capture();
    settle();
    assert_eq!(modified(&world), 0);
    let inode = std::fs::metadata(&f).unwrap().ino();
    overwrite(&f, b"bbbb");
    File::options().write(true).open(&f).unwrap().set_times(old).unwrap();
    assert_eq!(std::fs::metadata(&f).unwrap().ino(), inode);
    assert_eq!(modified(&world), 1);
    // Another file in its place, of the same size and with the same mtime.
    settle();
    std::fs::write(world.base().join("swapped"), "cccc").unwrap();
    File::options().write(true).open(world.base().join("swapped")).unwrap().set_times(old).unwrap();
    std::fs::rename(world.base().join("swapped"), &f).unwrap();
    assert_eq!(modified(&world), 1);
    world.rewind(&id);
    assert_eq!(world.snapshot().bytes("f"), Some(&b"aaaa"[..]));
    world.redo();
    assert_eq!(world.snapshot().bytes("f"), Some(&b"cccc"[..]));
}

#[test]
fn an_edit_in_the_same_tick_as_the_capture_is_captured() {
    let world = World::new();
    world.write("f", "....").write("dir/old", "1");
    let f = world.path("f");
    world.capture();
    settle();
    let mut ids = Vec::new();
    for round in 0..30u8 {
        overwrite(&f, &[round, 1, 1, 1]);
        ids.push((world.capture(), [round, 1, 1, 1]));
        overwrite(&f, &[round, 2, 2, 2]);
        let status = world.open().status().unwrap();
        assert_eq!(status.changes.modified, 1, "round {round}");
    }
    for (id, content) in ids.iter().step_by(7) {
        world.rewind(id);
        assert_eq!(world.snapshot().bytes("f"), Some(&content[..]));
    }
}

#[test]
fn names_that_come_and_go_in_the_same_tick_as_the_capture_are_captured() {
    let world = World::new();
    world.write("dir/f", "1");
    world.capture();
    settle();
    for round in 0..15 {
        world.write("dir/new", "n");
        assert_eq!(world.captured().checkpoint.checkpoint.changes.created, 1, "round {round}");
        world.remove("dir/new").rename("dir/f", "dir/g");
        let changes = world.captured().checkpoint.checkpoint.changes;
        assert_eq!((changes.created, changes.deleted), (1, 2), "round {round}");
        world.rename("dir/g", "dir/f");
        let changes = world.captured().checkpoint.checkpoint.changes;
        assert_eq!((changes.created, changes.deleted), (1, 1), "round {round}");
    }
}

/// The machine's clock, some nanoseconds off.
struct Off(AtomicI64);

impl Clock for Off {
    fn now_ns(&self) -> i64 {
        SystemClock.now_ns() + self.0.load(Ordering::SeqCst)
    }
}

#[test]
fn a_clock_that_jumps_loses_no_edit_and_does_not_change_the_order() {
    const HOUR: i64 = 3_600_000_000_000;
    let clock = Arc::new(Off(AtomicI64::new(0)));
    let world = World::with(|e| e.clock = clock.clone());
    world.write("f", "0000");
    let f = world.path("f");
    let mut ids = vec![world.capture()];
    let jumps = [0, -HOUR, -2 * HOUR, HOUR, -24 * HOUR, 0, 24 * HOUR];
    for (round, offset) in jumps.into_iter().enumerate() {
        clock.0.store(offset, Ordering::SeqCst);
        if round % 2 == 0 {
            settle();
        }
        overwrite(&f, format!("{round}...").as_bytes());
        ids.push(world.capture());
        assert_eq!(modified(&world), 0, "round {round}");
    }
    // The newest comes first, whatever the clock said.
    let log = world.open().log(Default::default()).unwrap();
    let order: Vec<_> = log.checkpoints.iter().map(|c| c.id.to_string()).filter(|id| ids.contains(id)).collect();
    assert!(order.iter().rev().eq(&ids));
    for (round, id) in ids[1..].iter().enumerate() {
        world.rewind(id);
        assert_eq!(world.snapshot().bytes("f"), Some(format!("{round}...").as_bytes()));
    }
    // And an age is told by the clock as it is now: nothing is a year old.
    assert!(matches!(world.open().resolve("8800h"), Err(TargetError::TooOld { .. })));
}

/// Lets a program write into a file all the time while `act` runs.
fn while_it_is_written<T>(path: &Path, act: impl FnOnce() -> T) -> T {
    let (stop, begun) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let file = File::options().write(true).open(path).unwrap();
            let mut byte = 0u8;
            while !stop.load(Ordering::SeqCst) {
                byte = byte.wrapping_add(1);
                file.write_all_at(&[byte], u64::from(byte) * 1000).unwrap();
                begun.store(true, Ordering::SeqCst);
            }
        });
        while !begun.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
        stop.store(true, Ordering::SeqCst);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[test]
fn a_file_that_never_stops_changing_is_captured_as_last_read_and_marked() {
    for size in [900 << 10, 4 << 20] {
        let world = World::new();
        world.write("busy", vec![7; size]).write("quiet", "q");
        // A machine with much to do may let one capture pass undisturbed, not all of them.
        let captured = while_it_is_written(&world.path("busy"), || {
            (0..100).map(|_| world.captured().checkpoint).find(|c| !c.unsettled.is_empty())
        });
        let captured = captured.expect("a capture of a file that never rests says so");
        assert_eq!(captured.unsettled.iter().map(|p| &p.path[..]).collect::<Vec<_>>(), ["busy"]);
        let id = captured.checkpoint.id.to_string();
        assert_eq!(world.open().show(&id).unwrap().checkpoint.unsettled, captured.unsettled);
        // Once it rests it is read again, though nothing of it moves any more.
        let rested = world.captured().checkpoint;
        assert!(rested.unsettled.is_empty());
        let before = world.snapshot();
        world.write("busy", "other");
        world.rewind(rested.checkpoint.id.as_str());
        world.assert_is(&before);
        // What was read comes back whole, whatever state it was in.
        world.rewind(&id);
        assert_eq!(world.snapshot().bytes("busy").map(<[u8]>::len), Some(size));
        world.assert_sound();
    }
}

#[test]
fn a_file_that_grows_and_shrinks_while_it_is_read_is_captured_in_one_piece() {
    // Across the border where files are kept in chunks, in both directions.
    let world = World::new();
    let path = world.path("busy");
    world.write("busy", vec![1; 1 << 20]);
    let stop = AtomicBool::new(false);
    let ids: Vec<String> = std::thread::scope(|scope| {
        scope.spawn(|| {
            let file = File::options().write(true).open(&path).unwrap();
            for round in 0u64.. {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                file.set_len((1 << 20) - 3 + round % 7).unwrap();
            }
        });
        let ids = (0..10).map(|_| world.capture()).collect();
        stop.store(true, Ordering::SeqCst);
        ids
    });
    world.assert_sound();
    for id in ids {
        world.rewind(&id);
        let size = std::fs::metadata(&path).unwrap().len();
        assert!(((1 << 20) - 3..(1 << 20) + 4).contains(&size), "{size}");
    }
}

#[test]
fn files_and_folders_that_come_and_go_during_captures_do_no_harm() {
    let world = World::new();
    world.write("stays/f", "1");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                world.write("comes/and/goes", "x").write("comes/f", "x");
                world.remove("comes").write("comes", "a file now");
                world.remove("comes").link("comes", "stays").remove("comes");
            }
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..25 {
                assert!(world.captured().checkpoint.skipped.is_empty());
            }
        }));
        stop.store(true, Ordering::SeqCst);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    assert!(!world.path("comes").exists());
    let before = world.snapshot();
    let id = world.capture();
    world.write("comes/again", "x");
    world.rewind(&id);
    world.assert_is(&before);
    world.assert_sound();
}

#[test]
fn two_workspaces_of_one_folder_capture_and_rewind_at_once() {
    let world = World::new();
    world.write("f", "0").write("dir/g", "0");
    let id = world.capture();
    let (mut one, mut two) = (world.open(), world.open());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..15 {
                world.write(format!("mine/{round}"), "mine");
                one.capture(&CaptureOptions::default()).unwrap();
            }
        });
        scope.spawn(|| {
            for _ in 0..15 {
                match two.rewind_now(&id, &RewindOptions::default()) {
                    // Something came in the way, and everything was put back.
                    Ok(_) | Err(OperationError::RolledBack { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
    });
    world.assert_sound();
    let log = one.log(Default::default()).unwrap();
    assert!(log.checkpoints.windows(2).all(|w| w[0].id != w[1].id));
    assert_eq!(log.total, two.log(Default::default()).unwrap().total);
    assert!(log.checkpoints.iter().filter(|c| c.operation.is_none()).count() == 16);
    // Whatever was written is in a checkpoint, or is there.
    for round in 0..15 {
        let path = format!("mine/{round}");
        let there = || world.path(&path).exists();
        let found = log.checkpoints.iter().any(|c| {
            let shown = world.open().show(c.id.as_str()).unwrap();
            shown.files.iter().any(|f| f.change.path.path == path)
        });
        assert!(there() || found, "{path}");
    }
    world.rewind(&id);
    assert_eq!(world.snapshot().len(), 3);
}

#[test]
fn many_that_make_a_folder_known_at_once_make_one_workspace() {
    for _ in 0..5 {
        let world = World::new();
        world.write("f", "1");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| world.capture());
            }
        });
        assert_eq!(world.engine.workspaces().len(), 1);
        assert_eq!(world.open().log(Default::default()).unwrap().total, 4);
        world.assert_sound();
    }
}

/// A shell that stands in a folder writes there also when the folder is on its way out. What it writes after the check is
/// not captured yet, and must not go with the rest.
#[test]
fn what_is_written_into_a_folder_on_its_way_out_is_kept_and_told() {
    for (nth, point) in [(1, "apply:sync-swapped"), (1, "apply:clear"), (1, "apply:remove"), (2, "apply:remove")] {
        let world = World::new();
        world.write("f", "1");
        let id = world.capture();
        world.write("n/n", "n").write("n/sub/edited", "old").write("n/sub/replaced", "old").write("f", "2");
        settle();
        let handle = File::open(world.path("n")).unwrap();
        let happen = move || {
            // Wherever the folder is by now.
            let here = std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd())).unwrap();
            std::fs::write(here.join("report"), "precious").unwrap();
            std::fs::write(here.join("sub/report"), "precious").unwrap();
            overwrite(&here.join("sub/edited"), b"new");
            std::fs::write(here.join("new"), "new").unwrap();
            std::fs::rename(here.join("new"), here.join("sub/replaced")).unwrap();
        };
        let outcome = fail::when(nth, point, happen, || world.rewind(&id));
        let rescued: Vec<_> = outcome.rescued.iter().map(|path| &path.path[..]).collect();
        assert_eq!(rescued, ["n/report", "n/sub/edited", "n/sub/replaced", "n/sub/report"], "at {point} {nth}");
        assert!(outcome.verified && outcome.leftovers.is_empty());
        assert_eq!(world.snapshot().len(), 1, "at {point} {nth}");
        world.redo();
        let now = world.snapshot();
        for (path, bytes) in [("n/report", &b"precious"[..]), ("n/sub/report", b"precious"), ("n/n", b"n"), ("f", b"2")]
        {
            assert_eq!(now.bytes(path), Some(bytes), "at {point} {nth}: {path}");
        }
        for path in ["n/sub/edited", "n/sub/replaced"] {
            assert_eq!(now.bytes(path), Some(&b"new"[..]), "at {point} {nth}: {path}");
        }
        world.assert_sound();
    }
}

/// The same of a file that is replaced: it is read once more where it changed since it was checked.
#[test]
fn what_is_written_to_a_file_that_came_out_is_kept_and_told() {
    let world = World::new();
    world.write("f", "1");
    let id = world.capture();
    world.write("f", "2");
    settle();
    let file = File::options().append(true).open(world.path("f")).unwrap();
    let happen = move || (&file).write_all(b" and more").unwrap();
    let outcome = fail::when(1, "apply:sync-swapped", happen, || world.rewind(&id));
    assert_eq!(outcome.rescued.iter().map(|path| &path.path[..]).collect::<Vec<_>>(), ["f"]);
    assert_eq!(world.snapshot().bytes("f"), Some(&b"1"[..]));
    world.redo();
    assert_eq!(world.snapshot().bytes("f"), Some(&b"2 and more"[..]));
}

/// A crash while a folder is emptied leaves a part of it: all of it was captured, and a redo brings all of it back.
#[test]
fn a_crash_while_a_folder_is_emptied_loses_nothing_of_it() {
    for nth in 1.. {
        let world = World::new();
        let id = world.write("f", "1").capture();
        world.write("n/a/1", "1").write("n/a/2", "2").write("n/b/1", "1").write("n/3", "3");
        let before = world.snapshot();
        // The counting begins at the first folder that is emptied.
        let crashed = Arc::new(AtomicBool::new(false));
        let happens = crashed.clone();
        let crash = move || {
            happens.store(true, Ordering::SeqCst);
            std::panic::panic_any("crash");
        };
        let rewind = || fail::when(nth, "apply:remove", crash, || world.rewind(&id));
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(rewind));
        if done.is_err() && !crashed.load(Ordering::SeqCst) {
            assert!(nth > 5, "so few folders");
            break;
        }
        assert!(world.open().recovered().iter().all(|one| one.finished && one.left_alone.is_empty()), "at {nth}");
        assert_eq!(world.snapshot().len(), 1, "at {nth}");
        world.redo();
        world.assert_is(&before);
        world.assert_sound();
    }
}

/// What may not go (here for the name that network filesystems give to what is open) hides nothing that somebody wrote.
#[test]
fn what_is_written_beside_something_that_cannot_go_is_kept_and_told() {
    let world = World::new();
    let id = world.write("f", "1").capture();
    world.write("n/a/1", "1").write("n/b/1", "1");
    let handle = File::open(world.path("n")).unwrap();
    let happen = move || {
        let here = std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd())).unwrap();
        std::fs::write(here.join("report"), "precious").unwrap();
        for folder in ["a", "b"] {
            std::fs::write(here.join(folder).join(".fuse_hidden1"), "1").unwrap();
        }
    };
    let outcome = fail::when(3, "apply:remove", happen, || world.rewind(&id));
    assert!(outcome.rescued.iter().any(|path| path.path == "n/report"), "{:?}", outcome.rescued);
    world.redo();
    assert_eq!(world.snapshot().bytes("n/report"), Some(&b"precious"[..]));
    world.assert_sound();
}
