//! What other programs do in the middle of an operation: between the plan and the capture, the capture and the swap,
//! the swap and the end. Nothing of theirs is lost, and nothing outside the workspace is touched.
#![allow(unsafe_code, reason = "a store through a mapping is what some of these tests are about")]

use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use piton_engine::model::WorkspacePath;
use piton_engine::view::{OperationOutcome, PathView};
use piton_engine::{OperationError, RewindOptions};
use piton_host::fail;
use piton_testkit::{World, snapshot};

/// A checkpoint, and an agent's work since: a rewind replaces `dir/g` and `f`, creates `gone` and deletes `new`.
fn after_the_agent() -> (World, String) {
    let world = World::new();
    world.write("dir/g", "1").write("f", "1").write("gone", "1").write("same", "1");
    let id = world.capture();
    world.write("dir/g", "2").write("f", "2").remove("gone").write("new/a", "2");
    (world, id)
}

/// Rewinds while something happens.
fn rewind(
    world: &World,
    target: &str,
    (nth, at): (u64, &'static str),
    happen: impl FnOnce() + 'static,
) -> Result<OperationOutcome, OperationError> {
    let mut workspace = world.open();
    fail::when(nth, at, happen, || workspace.rewind_now(target, &RewindOptions::default()))
}

fn names(paths: &[PathView]) -> Vec<&str> {
    paths.iter().map(|p| &p.path[..]).collect()
}

/// The content of a path in the checkpoint of the state before an operation.
fn before(world: &World, outcome: &OperationOutcome, path: &str) -> Option<Vec<u8>> {
    let only = RewindOptions { paths: vec![WorkspacePath::new(path).unwrap()], ..RewindOptions::default() };
    let id = outcome.operation.as_ref().unwrap().before.as_str();
    world.open().rewind_now(id, &only).unwrap();
    world.snapshot().bytes(path).map(<[u8]>::to_vec)
}

const SWAP: (u64, &str) = (1, "apply:swap");
const CHECK: (u64, &str) = (1, "operate:check");

#[test]
fn an_edit_between_the_capture_and_the_swap_is_kept_and_named() {
    type Edit = fn(&Path);
    let edits: [Edit; 2] = [
        |f| std::fs::write(f, "theirs").unwrap(),
        |f| {
            std::fs::write(f.with_extension("tmp"), "theirs").unwrap();
            std::fs::rename(f.with_extension("tmp"), f).unwrap();
        },
    ];
    for edit in edits {
        let (world, id) = after_the_agent();
        let f = world.path("f");
        let outcome = rewind(&world, &id, SWAP, move || edit(&f)).unwrap();
        assert_eq!(names(&outcome.rescued), ["f"]);
        assert!(outcome.verified);
        assert_eq!(world.snapshot().bytes("f"), Some(&b"1"[..]));
        // A redo brings back what was there, not what the capture had read.
        world.redo();
        assert_eq!(world.snapshot().bytes("f"), Some(&b"theirs"[..]));
        world.write("f", "2");
        assert_eq!(before(&world, &outcome, "f"), Some(b"theirs".to_vec()));
        world.assert_sound();
    }
}

#[test]
fn a_file_that_appears_in_a_folder_on_its_way_out_is_kept_and_named() {
    let (world, id) = after_the_agent();
    let late = world.path("new/late");
    let outcome = rewind(&world, &id, SWAP, move || std::fs::write(late, "theirs").unwrap()).unwrap();
    assert_eq!(names(&outcome.rescued), ["new"]);
    assert!(!world.path("new").exists());
    assert_eq!(before(&world, &outcome, "new/late"), Some(b"theirs".to_vec()));
}

#[test]
fn what_cannot_be_stored_keeps_the_folder_it_appeared_in() {
    let (world, id) = after_the_agent();
    let socket = world.path("new/socket");
    let old = world.snapshot();
    let error = rewind(&world, &id, SWAP, move || drop(UnixListener::bind(socket).unwrap())).unwrap_err();
    assert!(matches!(&error, OperationError::RolledBack { reason, .. } if reason.contains("`new`")), "{error}");
    assert!(world.snapshot().has("new/socket"));
    assert_eq!(world.snapshot().without("new/socket"), old);
    assert!(world.open().recovered().is_empty());
}

#[test]
fn a_file_that_appears_where_one_was_to_come_back_ends_the_rewind_with_the_old_tree() {
    let (world, id) = after_the_agent();
    let old = world.snapshot();
    let gone = world.path("gone");
    let error = rewind(&world, &id, SWAP, move || std::fs::write(gone, "theirs").unwrap()).unwrap_err();
    assert!(matches!(&error, OperationError::RolledBack { reason, .. } if reason.contains("`gone`")), "{error}");
    assert_eq!(world.snapshot().bytes("gone"), Some(&b"theirs"[..]));
    assert_eq!(world.snapshot().without("gone"), old);
    assert!(world.open().recovered().is_empty());
}

#[test]
fn a_file_that_goes_before_it_is_swapped_ends_the_rewind_with_the_old_tree() {
    for path in ["f", "new"] {
        let (world, id) = after_the_agent();
        let old = world.snapshot().without(path);
        let away = (world.path(path), world.base().join("away"));
        let error = rewind(&world, &id, SWAP, move || std::fs::rename(away.0, away.1).unwrap()).unwrap_err();
        assert!(matches!(&error, OperationError::RolledBack { reason, .. } if reason.contains(path)), "{error}");
        world.assert_is(&old);
        assert!(world.open().recovered().is_empty());
    }
}

#[test]
fn an_edit_after_the_swap_stays_and_is_told_as_changed_again() {
    let (world, id) = after_the_agent();
    let f = world.path("f");
    let outcome = rewind(&world, &id, CHECK, move || std::fs::write(f, "theirs").unwrap()).unwrap();
    assert_eq!(names(&outcome.changed_again), ["f"]);
    assert!(!outcome.verified && outcome.rescued.is_empty());
    assert_eq!(world.snapshot().bytes("f"), Some(&b"theirs"[..]));
    assert_eq!(world.snapshot().bytes("gone"), Some(&b"1"[..]));
    // It is an edit like any other.
    assert_eq!(world.captured().checkpoint.checkpoint.changes.modified, 1);
    assert_eq!(before(&world, &outcome, "f"), Some(b"2".to_vec()));

    let (world, id) = after_the_agent();
    let f = world.path("f");
    let outcome = rewind(&world, &id, CHECK, move || std::fs::remove_file(f).unwrap()).unwrap();
    assert_eq!(names(&outcome.changed_again), ["f"]);
    assert!(!outcome.verified && !world.path("f").exists());
}

/// Puts a symlink to a folder outside in a folder's place.
fn lead_outside(world: &World, folder: &str) -> impl FnOnce() + use<> {
    let (folder, moved, outside) = (world.path(folder), world.path("moved"), outside(world));
    move || {
        std::fs::rename(&folder, moved).unwrap();
        std::os::unix::fs::symlink(outside, folder).unwrap();
    }
}

fn outside(world: &World) -> PathBuf {
    let outside = world.base().join("outside");
    if !outside.exists() {
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("g"), "outside").unwrap();
        std::fs::write(outside.join("a"), "outside").unwrap();
    }
    outside
}

#[test]
fn a_folder_swapped_for_a_symlink_at_any_moment_leads_nobody_outside() {
    let until_it_is_swapped = [
        (1, "capture:scanned"),
        (1, "operate:begun"),
        (1, "apply:stage"),
        (2, "apply:stage"),
        (1, "apply:sync-staged"),
        (1, "apply:swap"),
    ];
    let later = [
        (2, "apply:swap"),
        (4, "apply:swap"),
        (1, "operate:check"),
        (2, "operate:check"),
        (1, "apply:sync-swapped"),
        (1, "apply:clear"),
        (4, "apply:clear"),
    ];
    let cases = until_it_is_swapped.iter().map(|point| ("new", *point));
    for (folder, point) in cases.chain(until_it_is_swapped.iter().chain(&later).map(|point| ("dir", *point))) {
        let (world, id) = after_the_agent();
        let untouched = snapshot(&outside(&world));
        let result = rewind(&world, &id, point, lead_outside(&world, folder));
        let told = format!("{folder} at {point:?}: {result:?}");
        assert!(snapshot(&outside(&world)) == untouched, "{told}");
        // Whatever came of it, the next command finds its way.
        drop(world.open());
        world.assert_sound();
        assert!(snapshot(&outside(&world)) == untouched, "{told}");
        // And what was there is there still, or in the checkpoint that was made first.
        let (file, moved) = if folder == "dir" { ("dir/g", "moved/g") } else { ("new/a", "moved/a") };
        if world.snapshot().bytes(moved) != Some(b"2") {
            world.remove(folder);
            assert_eq!(before(&world, &result.unwrap(), file), Some(b"2".to_vec()), "{told}");
        }
    }
}

#[test]
fn a_rewind_that_cannot_go_back_into_a_folder_that_somebody_took_away_says_so_and_the_next_command_goes_on() {
    let (world, id) = after_the_agent();
    let untouched = snapshot(&outside(&world));
    let (lead, gone) = (lead_outside(&world, "dir"), world.path("gone"));
    // `dir/g` is swapped, its folder goes, and then something makes the rewind turn round.
    let error = rewind(&world, &id, (2, "apply:swap"), move || {
        lead();
        std::fs::write(gone, "theirs").unwrap();
    })
    .unwrap_err();
    assert!(matches!(&error, OperationError::Stuck { path, .. } if path.display() == "dir/g"), "{error}");
    let workspace = world.open();
    assert_eq!(workspace.recovered().len(), 1);
    assert_eq!(names(&workspace.recovered()[0].left_alone), ["dir/g", "gone"]);
    let now = world.snapshot();
    for (path, content) in [("f", "2"), ("gone", "theirs"), ("new/a", "2")] {
        assert_eq!(now.bytes(path), Some(content.as_bytes()), "{path}");
    }
    assert!(snapshot(&outside(&world)) == untouched);
    assert!(world.open().recovered().is_empty());
    world.assert_sound();
}

#[test]
fn a_folder_swapped_for_a_symlink_between_plan_and_rewind_makes_the_plan_stale() {
    let (world, id) = after_the_agent();
    let untouched = snapshot(&outside(&world));
    let plan = world.open().plan_rewind(&id, &RewindOptions::default()).unwrap();
    lead_outside(&world, "dir")();
    let before = world.snapshot();
    assert!(matches!(world.open().rewind(plan), Err(OperationError::Stale { .. })));
    world.assert_is(&before);
    assert!(snapshot(&outside(&world)) == untouched);
}

#[test]
fn a_change_of_a_plans_own_path_makes_it_stale_and_nothing_is_written() {
    type Change = fn(&World);
    let changes: [(&str, Change); 6] = [
        ("f", |w| std::fs::write(w.path("f"), "3").unwrap()),
        ("f", |w| std::fs::remove_file(w.path("f")).unwrap()),
        ("gone", |w| std::fs::write(w.path("gone"), "3").unwrap()),
        ("new", |w| std::fs::write(w.path("new/late"), "3").unwrap()),
        ("new", |w| std::fs::set_permissions(w.path("new"), PermissionsExt::from_mode(0o700)).unwrap()),
        ("dir", |w| std::fs::set_permissions(w.path("dir"), PermissionsExt::from_mode(0o711)).unwrap()),
    ];
    for (path, change) in changes {
        let (world, id) = after_the_agent();
        if path == "dir" {
            // The plan is about a folder's bits as well.
            world.mode("dir", 0o700);
        }
        let plan = world.open().plan_rewind(&id, &RewindOptions::default()).unwrap();
        change(&world);
        let before = world.snapshot();
        let error = world.open().rewind(plan).unwrap_err();
        assert!(matches!(&error, OperationError::Stale { path: p } if p.display() == path), "{path}: {error}");
        world.assert_is(&before);
    }
}

#[test]
fn a_change_elsewhere_does_not_make_a_plan_stale_and_stays() {
    let (world, id) = after_the_agent();
    let plan = world.open().plan_rewind(&id, &RewindOptions::default()).unwrap();
    world.write("same", "3").write("dir/another", "3").write("elsewhere/log", "3");
    let outcome = world.open().rewind(plan).unwrap();
    assert!(outcome.verified);
    let now = world.snapshot();
    for (path, content) in [("f", "1"), ("dir/g", "1"), ("same", "3"), ("dir/another", "3"), ("elsewhere/log", "3")] {
        assert_eq!(now.bytes(path), Some(content.as_bytes()), "{path}");
    }
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
        let outcome = world.open().rewind(plan).unwrap();
        assert_eq!(names(&outcome.rescued), ["f"]);
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
    let (world, id) = after_the_agent();
    let paths = ["f", "dir", "gone"].map(|p| WorkspacePath::new(p).unwrap()).to_vec();
    let ((), written) = while_it_grows(&world.path("log"), false, |written| {
        wait_for(written, 5);
        let plan = world.open().plan_rewind(&id, &RewindOptions { paths, across: false }).unwrap();
        wait_for(written, 100);
        assert!(world.open().rewind(plan).unwrap().verified);
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
