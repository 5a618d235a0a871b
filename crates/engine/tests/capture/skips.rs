//! What piton cannot or may not read is skipped, listed with its reason, and never touched.
//!
//! Permissions mean nothing to root, so these tests run as an ordinary user wherever they are about permissions.

use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use piton_engine::model::SkipReason::{self, Special, Unreadable};
use piton_engine::view::SkippedView;
use piton_engine::{CaptureError, CaptureOptions, OperationError, RewindOptions};
use piton_testkit::{World, as_ordinary_user};

fn listed(skipped: &[SkippedView]) -> Vec<(String, SkipReason)> {
    skipped.iter().map(|s| (s.path.path.clone(), s.reason)).collect()
}

fn skipped(world: &World) -> Vec<(String, SkipReason)> {
    listed(&world.captured().checkpoint.skipped)
}

fn all<const N: usize>(paths: [&str; N], reason: SkipReason) -> Vec<(String, SkipReason)> {
    paths.map(|p| (p.to_owned(), reason)).into()
}

fn inode(path: impl AsRef<Path>) -> u64 {
    std::fs::symlink_metadata(path).unwrap().ino()
}

fn run(program: &str, arguments: &[&str], at: &Path) {
    let done = Command::new(program).args(arguments).arg(at).status().unwrap();
    assert!(done.success(), "{program} {arguments:?} {}", at.display());
}

fn rewind_error(world: &World, target: &str) -> OperationError {
    match world.open().rewind_now(target, &RewindOptions::default()) {
        Ok(outcome) => panic!("it should be refused: {outcome:?}"),
        Err(error) => error,
    }
}

#[test]
fn sockets_pipes_and_devices_are_skipped_listed_and_never_touched() {
    let world = World::new();
    world.write("f", "1").write("run/g", "1");
    let empty = world.capture();
    let _socket = UnixListener::bind(world.path("socket")).unwrap();
    let _inner = UnixListener::bind(world.path("run/socket")).unwrap();
    run("mkfifo", &[], &world.path("pipe"));
    // The one device that every user may make.
    let made = Command::new("mknod").arg(world.path("device")).args(["c", "0", "0"]).status().unwrap();
    assert!(made.success());
    let expected = all(["device", "pipe", "run/socket", "socket"], Special);
    let specials: Vec<_> = expected.iter().map(|(p, _)| (world.path(p), inode(world.path(p)))).collect();
    let untouched = || specials.iter().all(|(path, was)| inode(path) == *was);

    assert_eq!(skipped(&world), expected);
    // The same when the answer comes from the cache, and when the checkpoint is looked at later.
    assert_eq!(skipped(&world), expected);
    let id = world.capture();
    assert_eq!(listed(&world.open().show(&id).unwrap().checkpoint.skipped), expected);

    world.assert_comes_back(&[], |w| {
        w.write("f", "2").remove("run/g").write("run/new", "n");
    });
    assert!(untouched());
    // Neither does a checkpoint from before they existed take them away.
    world.write("f", "3");
    let outcome = world.rewind(&empty);
    assert!(outcome.verified && untouched());
    assert_eq!(world.snapshot().bytes("f"), Some(&b"1"[..]));
}

#[test]
fn a_skipped_thing_that_went_away_is_not_made_anew_and_is_listed() {
    let world = World::new();
    world.write("run/g", "1");
    drop(UnixListener::bind(world.path("run/socket")).unwrap());
    let id = world.capture();
    world.remove("run");
    let outcome = world.rewind(&id);
    assert_eq!(listed(&outcome.skipped), all(["run/socket"], Special));
    assert!(outcome.verified && world.path("run/g").exists() && !world.path("run/socket").exists());
}

#[test]
fn a_pipe_in_a_files_place_stays_and_is_listed() {
    let world = World::new();
    world.write("f", "1").write("other", "1");
    let id = world.capture();
    world.remove("f").write("other", "2");
    run("mkfifo", &[], &world.path("f"));
    let pipe = inode(world.path("f"));
    let outcome = world.rewind(&id);
    assert_eq!(listed(&outcome.skipped), all(["f"], Special));
    assert_eq!(inode(world.path("f")), pipe);
    assert_eq!(world.snapshot().bytes("other"), Some(&b"1"[..]));
}

#[test]
fn unreadable_files_and_folders_are_skipped_listed_and_never_touched() {
    as_ordinary_user(|| {
        let world = World::new();
        world.write("f", "1").write("secret", "s").write("closed/deep/inner", "i").write("dir/secret", "s");
        let closed = ["secret", "closed", "dir/secret"];
        let close = |mode: [u32; 3]| {
            for (path, mode) in closed.iter().zip(mode) {
                world.mode(path, mode);
            }
        };
        let open = [0o644, 0o755, 0o644];
        let inodes = || closed.map(|path| inode(world.path(path)));
        let readable = world.snapshot();
        let before = inodes();
        close([0; 3]);
        let expected = all(["closed", "dir/secret", "secret"], Unreadable);
        assert_eq!(skipped(&world), expected);
        assert_eq!(skipped(&world), expected);

        let id = world.capture();
        world.write("f", "2").write("dir/new", "n");
        let outcome = world.rewind(&id);
        assert!(outcome.verified);
        assert_eq!(listed(&outcome.skipped), expected);
        close(open);
        world.assert_is(&readable);
        // As soon as they can be read they are captured: opening them changes no content and no listing.
        assert_eq!(skipped(&world), []);
        assert_eq!(inodes(), before);
    });
}

#[test]
fn what_became_unreadable_after_the_checkpoint_is_opened_captured_and_put_back() {
    as_ordinary_user(|| {
        let world = World::new();
        world.write("f", "1").write("secret", "1").write("dir/inner", "1").write("half/inner", "1");
        let id = world.capture();
        let before = world.snapshot();
        world.write("f", "2").write("secret", "2").write("dir/inner", "2").write("half/inner", "2");
        // A folder that may be listed and not entered shows names and nothing else.
        world.mode("secret", 0).mode("dir", 0).mode("half", 0o444);
        assert_eq!(skipped(&world), all(["dir", "half/inner", "secret"], Unreadable));
        let outcome = world.rewind(&id);
        assert!(outcome.verified && outcome.skipped.is_empty(), "{outcome:?}");
        world.assert_is(&before);
        // Nothing of it was overwritten that was not captured.
        world.redo();
        assert_eq!(skipped(&world), all(["dir", "half/inner", "secret"], Unreadable));
        world.mode("secret", 0o644).mode("dir", 0o755).mode("half", 0o755);
        let now = world.snapshot();
        for path in ["f", "secret", "dir/inner", "half/inner"] {
            assert_eq!(now.bytes(path), Some(&b"2"[..]), "{path}");
        }
    });
}

#[test]
fn a_workspace_that_may_not_be_read_is_not_taken_for_an_empty_one() {
    as_ordinary_user(|| {
        let world = World::new();
        world.write("f", "1").write("dir/g", "1");
        let id = world.capture();
        let before = world.snapshot();
        for mode in [0o000, 0o300, 0o444] {
            world.mode("", mode);
            let refused = world.open().capture(&CaptureOptions::default());
            assert!(matches!(refused, Err(CaptureError::Folder { .. })), "{mode:o}");
            assert!(matches!(rewind_error(&world, &id), OperationError::Capture(CaptureError::Folder { .. })));
        }
        world.mode("", 0o755);
        world.assert_is(&before);
        assert_eq!(world.open().log(Default::default()).unwrap().total, 1);
    });
}

#[test]
fn a_folder_to_delete_that_holds_skipped_things_is_kept_with_just_those() {
    let world = World::new();
    world.write("f", "1");
    let id = world.capture();
    world.write("new/a", "2").write("new/deep/b", "2").write("new/plain/c", "2").folder("new/empty");
    drop(UnixListener::bind(world.path("new/deep/socket")).unwrap());
    let outcome = world.rewind(&id);
    assert!(outcome.verified);
    assert!(outcome.deleted.iter().any(|p| p.path == "new/a"), "{outcome:?}");
    let now = world.snapshot();
    assert!(now.has("f") && now.has("new/deep/socket"));
    assert_eq!(now.len(), 4, "only `f`, `new`, `new/deep` and the socket are left: {now:?}");
    world.redo();
    assert_eq!(world.snapshot().bytes("new/deep/b"), Some(&b"2"[..]));
}

#[test]
fn a_file_that_must_stand_where_skipped_things_are_is_a_conflict_and_nothing_is_written() {
    type Change = fn(&World);
    let changes: [Change; 2] = [
        |w| {
            w.write("thing", "a file").write("other", "1");
        },
        |w| {
            w.link("thing", "other").write("other", "1");
        },
    ];
    for make in changes {
        let world = World::new();
        make(&world);
        let id = world.capture();
        world.remove("thing").write("thing/inner", "2").write("other", "2").write("another", "2");
        drop(UnixListener::bind(world.path("thing/socket")).unwrap());
        let before = world.snapshot();
        let plan = world.open().plan_rewind(&id, &RewindOptions::default()).unwrap();
        assert_eq!(plan.view().conflicts.iter().map(|c| &c.path.path[..]).collect::<Vec<_>>(), ["thing"]);
        let error = rewind_error(&world, &id);
        assert!(matches!(&error, OperationError::Conflict(all) if all[0].path.display() == "thing"), "{error}");
        let error = world.open().carry_out(plan).unwrap_err();
        assert!(matches!(error, OperationError::Conflict(_)), "{error}");
        world.assert_is(&before);
        // With the socket out of the way it is a rewind like any other.
        world.remove("thing/socket");
        world.rewind(&id);
        assert_eq!(world.snapshot().bytes("other"), Some(&b"1"[..]));
    }
}

#[test]
fn what_the_target_skipped_stays_whatever_it_is_now() {
    let world = World::new();
    world.write(".pitonignore", "left-out\nfolder\n").write("left-out", "1").write("folder/f", "1").write("f", "1");
    drop(UnixListener::bind(world.path("socket")).unwrap());
    let id = world.capture();
    // They are captured from now on, but what they were is unknown.
    world.write(".pitonignore", "").write("left-out", "2").write("folder/f", "2").write("folder/new", "2");
    world.remove("socket").write("socket", "a file now").write("f", "2");
    world.capture();
    let outcome = world.rewind(&id);
    let kept: Vec<_> = outcome.skipped.iter().map(|s| &s.path.path[..]).collect();
    assert_eq!(kept, ["folder", "left-out", "socket"]);
    let now = world.snapshot();
    assert_eq!(now.bytes("f"), Some(&b"1"[..]));
    for (path, content) in [("left-out", "2"), ("folder/f", "2"), ("folder/new", "2"), ("socket", "a file now")] {
        assert_eq!(now.bytes(path), Some(content.as_bytes()), "{path}");
    }
}

#[test]
fn a_name_like_git_is_listed_and_left_alone() {
    let world = World::new();
    world.write("f", "1");
    let id = world.capture();
    world.write(".Git/config", "x").write("sub/.GIT", "x").write("sub/g", "1").write("f", "2");
    let expected = [(".Git", SkipReason::GitName), ("sub/.GIT", SkipReason::GitName)];
    let listed = |world: &World| -> Vec<(String, SkipReason)> {
        world.captured().checkpoint.skipped.into_iter().map(|one| (one.path.path, one.reason)).collect()
    };
    for _ in 0..2 {
        let listed = listed(&world);
        assert_eq!(listed.iter().map(|(path, reason)| (path.as_str(), *reason)).collect::<Vec<_>>(), expected);
        std::thread::sleep(std::time::Duration::from_millis(60));
    }
    world.rewind(&id);
    let now = world.snapshot();
    assert_eq!((now.bytes(".Git/config"), now.bytes("sub/.GIT")), (Some(&b"x"[..]), Some(&b"x"[..])));
    assert_eq!((now.bytes("f"), now.bytes("sub/g")), (Some(&b"1"[..]), None));
    world.redo();
    world.assert_sound();
    world.remove(".Git").remove("sub/.GIT");
    assert!(listed(&world).is_empty());
}
