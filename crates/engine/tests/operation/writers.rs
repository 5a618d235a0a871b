//! Programs that hold a file open and go on writing while it is rewound: nothing that they wrote before the swap is lost.

#![allow(unsafe_code, reason = "a store through a mapping has no safe form")]

use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use piton_engine::RewindOptions;
use piton_engine::model::WorkspacePath;
use piton_engine::view::OperationOutcome;
use piton_testkit::World;

/// The content of a path in the checkpoint of the state before an operation.
fn before(world: &World, outcome: &OperationOutcome, path: &str) -> Option<Vec<u8>> {
    let only = RewindOptions { paths: vec![WorkspacePath::new(path).unwrap()], ..RewindOptions::default() };
    let id = outcome.operation.as_ref().unwrap().before.as_str();
    world.open().rewind_now(id, &only).unwrap();
    world.snapshot().bytes(path).map(<[u8]>::to_vec)
}

/// A page of a file, mapped to be stored to.
struct Mapped(*mut u8);

impl Mapped {
    fn new(path: &Path) -> Self {
        let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of a file that has these bytes, at a place the kernel chooses.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        assert_ne!(at, libc::MAP_FAILED);
        Self(at.cast())
    }

    fn store(&self, byte: u8) {
        // SAFETY: the mapping is 4096 bytes and lives as long as this value.
        unsafe { self.0.write_volatile(byte) };
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length and nothing points into it.
        unsafe { libc::munmap(self.0.cast(), 4096) };
    }
}

#[test]
fn a_store_through_a_mapping_which_moves_no_timestamp_is_kept_and_named() {
    for _ in 0..20 {
        let world = World::new();
        let f = world.path("f");
        world.write("f", vec![b'1'; 4096]);
        let id = world.capture();
        let mapped = Mapped::new(&f);
        // The first store makes the page writable and moves the file's times; the next one moves nothing.
        mapped.store(b'2');
        std::thread::sleep(Duration::from_millis(40));
        world.capture();
        let plan = world.open().plan_rewind(&id, &RewindOptions::default()).unwrap();
        let times = |f: &Path| std::fs::metadata(f).map(|m| (m.mtime_nsec(), m.ctime_nsec())).unwrap();
        let seen = times(&f);
        mapped.store(b'3');
        if times(&f) != seen {
            // The kernel wrote the page out in between, and the store was noticed.
            continue;
        }
        let outcome = world.open().carry_out(plan).unwrap();
        assert_eq!(outcome.rescued.iter().map(|p| &p.path[..]).collect::<Vec<_>>(), ["f"]);
        assert_eq!(world.snapshot().bytes("f"), Some(&[b'1'; 4096][..]));
        assert_eq!(before(&world, &outcome, "f").unwrap()[0], b'3');
        return;
    }
    panic!("the kernel never left a mapped page alone");
}

fn line(number: u64) -> String {
    format!("{number:07}\n")
}

/// Lets a program append numbered lines to a log while `act` runs. `reopen`: for each line anew, as a shell does.
fn while_it_grows<T>(log: &Path, reopen: bool, act: impl FnOnce(&AtomicU64) -> T) -> (T, u64) {
    let (stop, written) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let grow = || {
            let open = || std::fs::File::options().append(true).create(true).open(log).unwrap();
            let mut file = open();
            while !stop.load(Ordering::SeqCst) {
                if reopen {
                    file = open();
                }
                let number = written.load(Ordering::SeqCst) + 1;
                file.write_all(line(number).as_bytes()).unwrap();
                written.store(number, Ordering::SeqCst);
                std::thread::sleep(Duration::from_micros(50));
            }
        };
        let writer = scope.spawn(grow);
        let result = act(&written);
        stop.store(true, Ordering::SeqCst);
        writer.join().unwrap();
        (result, written.load(Ordering::SeqCst))
    })
}

fn wait_for(written: &AtomicU64, lines: u64) -> u64 {
    while written.load(Ordering::SeqCst) < lines {
        std::thread::yield_now();
    }
    written.load(Ordering::SeqCst)
}

#[test]
fn a_log_that_grows_outside_the_plans_paths_loses_nothing_and_makes_nothing_stale() {
    let world = World::new();
    let id = world.write("f", "1").write("dir/g", "1").capture();
    world.write("f", "2").remove("dir");
    let paths = ["f", "dir"].map(|p| WorkspacePath::new(p).unwrap()).to_vec();
    let ((), written) = while_it_grows(&world.path("log"), false, |written| {
        wait_for(written, 5);
        let plan = world.open().plan_rewind(&id, &RewindOptions { paths, ..RewindOptions::default() }).unwrap();
        wait_for(written, 100);
        assert!(world.open().carry_out(plan).unwrap().verified);
    });
    let expected: String = (1..=written).map(line).collect();
    assert_eq!(world.snapshot().bytes("log"), Some(expected.as_bytes()));
    assert_eq!(world.snapshot().bytes("f"), Some(&b"1"[..]));
}

#[test]
fn nothing_that_was_appended_before_the_swap_is_lost() {
    for round in 0..5 {
        let world = World::new();
        let log = world.path("log");
        let id = world.write("log", "").capture();
        let ((outcome, seen), _) = while_it_grows(&log, false, |written| {
            let seen = wait_for(written, 20);
            (world.rewind(&id), seen)
        });
        assert_eq!(world.snapshot().bytes("log"), Some(&b""[..]));
        let kept = String::from_utf8(before(&world, &outcome, "log").unwrap()).unwrap();
        let expected: String = (1..).map(line).take(kept.len() / 8).collect();
        assert_eq!(kept, expected, "round {round}");
        assert!(kept.len() as u64 / 8 >= seen, "round {round}: {} of {seen} lines", kept.len() / 8);
    }
}

#[test]
fn a_log_that_is_opened_for_each_line_goes_on_in_the_restored_file() {
    for round in 0..5 {
        let world = World::new();
        let log = world.path("log");
        let id = world.write("log", "").capture();
        let (outcome, written) = while_it_grows(&log, true, |written| {
            wait_for(written, 20);
            let outcome = world.rewind(&id);
            wait_for(written, written.load(Ordering::SeqCst) + 20);
            outcome
        });
        let restored = String::from_utf8(world.snapshot().bytes("log").unwrap().to_vec()).unwrap();
        let kept = String::from_utf8(before(&world, &outcome, "log").unwrap()).unwrap();
        // One line may be on its way into the old file at the very moment of the swap, and no more.
        let lost: Vec<_> =
            (1..=written).filter(|n| !kept.contains(&line(*n)) && !restored.contains(&line(*n))).collect();
        assert!(lost.len() <= 1, "round {round}: {lost:?} of {written}");
    }
}
