//! The promises of the design that concern the engine, each a test with the promise's sentence as its name.
//!
//! Three of them need real processes and are in `crates/cli/tests/faults.rs` as well: old or new, verified, and several
//! processes at once.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use piton_engine::model::{SkipReason, WorkspacePath};
use piton_engine::{CaptureError, CaptureOptions, InitOptions, OperationError, RewindOptions, StoreError};
use piton_testkit::{Mounted, World, as_ordinary_user, is_root, not_run, snapshot};

#[test]
fn promise_1_nothing_is_deleted_or_overwritten_that_was_not_captured_first() {
    let world = World::new();
    let big = |byte: u8| vec![byte; 2 << 20];
    world.write("data.bin", "small and captured").write("cache/kept", "captured");
    let id = world.capture();
    // From now on a rule leaves both out, and one is too large for an ignored file: no checkpoint has it.
    world.write(".gitignore", "data.bin\ncache/\n").write("data.bin", big(7)).write("cache/kept", "never captured");
    world.write("cache/other", "never captured either");
    let skipped = world.captured().checkpoint.skipped;
    assert_eq!(skipped.iter().map(|s| &s.path.path[..]).collect::<Vec<_>>(), ["cache", "data.bin"]);
    let before = world.snapshot();

    world.rewind(&id);
    let now = world.snapshot();
    assert_eq!(now.bytes("data.bin"), Some(&b"small and captured"[..]));
    assert_eq!(now.bytes("cache/kept"), Some(&b"captured"[..]));
    // What a checkpoint skipped is never touched by a restore.
    assert_eq!(now.bytes("cache/other"), Some(&b"never captured either"[..]));
    // And what was overwritten had been captured just before, whatever the rules say.
    world.redo();
    world.assert_is(&before);
}

#[test]
fn promise_2_an_operation_begins_with_a_capture_of_now_so_redo_always_exists() {
    let world = World::new();
    world.write("f", "one");
    let id = world.capture();
    world.write("f", "never captured by anyone").write("g", "nor this");
    let unsaved = world.snapshot();
    let outcome = world.rewind(&id);
    assert_eq!(world.snapshot().bytes("f"), Some(&b"one"[..]));
    world.redo();
    world.assert_is(&unsaved);
    // By its checkpoint as well, at any time later.
    world.write("f", "much later");
    world.rewind(outcome.operation.unwrap().before.as_str());
    world.assert_is(&unsaved);
}

#[test]
fn promise_3_old_or_new_never_a_mix_also_when_a_permission_is_refused() {
    piton_testkit::needs_mounts!();
    // Refused by a mount, and where there is a root to own something, by an owner: what is in `locked` can be read and
    // not replaced.
    for owned in [false, true] {
        if owned && !is_root() {
            not_run(
                "promise 3 with another user's folder",
                "only root can make one; a read-only mount refused instead",
            );
            continue;
        }
        let world = World::new();
        world.write("a", "1").write("locked/b", "1").write("z", "1");
        if is_root() {
            std::fs::set_permissions(world.base(), PermissionsExt::from_mode(0o755)).unwrap();
            for path in [world.base().to_path_buf(), world.ws(), world.path("a"), world.path("z")] {
                std::os::unix::fs::chown(&path, Some(65_534), Some(65_534)).unwrap();
            }
        }
        let id = as_ordinary_user(|| {
            let id = world.capture();
            std::fs::write(world.path("a"), "2").unwrap();
            std::fs::write(world.path("z"), "2").unwrap();
            id
        });
        std::fs::write(world.path("locked/b"), "2").unwrap();
        let now = world.snapshot();
        let mounted = (!owned).then(|| Mounted::read_only(&world.path("locked")));
        as_ordinary_user(|| {
            let error = world.open().rewind_now(&id, &RewindOptions::default()).unwrap_err();
            let is_clear = matches!(&error, OperationError::RolledBack { reason, .. } if reason.contains("locked"));
            assert!(is_clear, "{error}");
            world.assert_is(&now);
            world.assert_sound();
        });
        drop(mounted);
        // With the right to do it, it is done.
        world.rewind(&id);
        assert_eq!(world.snapshot().bytes("locked/b"), Some(&b"1"[..]));
    }
}

#[test]
fn promise_4_verified_what_was_written_is_read_back_and_restored_is_never_said_otherwise() {
    let world = World::new();
    world.write("f", "one").write("dir/g", "one");
    let id = world.capture();
    world.write("f", "two").remove("dir");
    let outcome = world.rewind(&id);
    assert!(outcome.verified && outcome.changed_again.is_empty());
    assert_eq!(outcome.restored.iter().map(|p| &p.path[..]).collect::<Vec<_>>(), ["f"]);
    assert_eq!(outcome.created.iter().map(|p| &p.path[..]).collect::<Vec<_>>(), ["dir/g"]);
    // Nothing to do is said as such, not as something done.
    let again = world.rewind(&id);
    assert!(again.operation.is_none() && again.restored.is_empty() && again.created.is_empty());
}

#[test]
fn promise_5_git_is_never_written_and_nested_repositories_are_captured_like_any_folder_without_their_git() {
    let world = World::new();
    let git = |folder: &str, args: &[&str]| {
        let done = std::process::Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"])
            .args(args)
            .current_dir(world.path(folder))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .expect("git runs");
        assert!(done.status.success(), "{done:?}");
    };
    world.write("f", "one").write("nested/g", "one");
    for folder in ["", "nested"] {
        git(folder, &["init", "-q"]);
        git(folder, &["add", "-A"]);
        git(folder, &["commit", "-qm", "first"]);
    }
    let gits = || (snapshot(&world.path(".git")), snapshot(&world.path("nested/.git")));
    let before = gits();
    let id = world.capture();
    world.write("f", "two").write("nested/g", "two").write("nested/h", "new");
    world.rewind(&id);
    assert_eq!(world.snapshot().bytes("nested/g"), Some(&b"one"[..]));
    world.redo();
    // Back to before there was a nested repository: its files go, its `.git` stays.
    let other = World::new();
    other.write("f", "one");
    let empty = other.capture();
    std::fs::rename(world.path("nested"), other.path("nested")).unwrap();
    let inner = snapshot(&other.path("nested/.git"));
    other.rewind(&empty);
    assert!(!other.snapshot().has("nested/g") && other.snapshot().has("nested/.git/HEAD"));
    assert!(snapshot(&other.path("nested/.git")) == inner);
    other.redo();
    std::fs::rename(other.path("nested"), world.path("nested")).unwrap();
    assert!(gits() == before, "a .git changed");
}

#[test]
fn promise_7_nothing_escapes_the_workspace_and_symlinks_are_never_followed() {
    let world = World::new();
    let outside = world.base().join("outside");
    std::fs::create_dir_all(outside.join("d")).unwrap();
    std::fs::write(outside.join("d/f"), "not yours").unwrap();
    world.write("d/f", "mine").write("d/g", "mine");
    let id = world.capture();
    let plan = {
        world.write("d/f", "mine, edited").remove("d/g");
        world.open().plan_rewind(&id, &RewindOptions::default()).unwrap()
    };
    // Between plan and apply somebody swaps the folder for a link to outside.
    world.rename("d", "aside").link("d", outside.join("d"));
    let error = world.open().carry_out(plan).unwrap_err();
    assert!(matches!(error, OperationError::Stale { .. }), "{error}");
    let outside_now = snapshot(&outside);
    assert_eq!(outside_now.bytes("d/f"), Some(&b"not yours"[..]));
    assert_eq!(outside_now.len(), 2, "{outside_now:?}");
    // No entry can have a name that leads out.
    for bad in ["../x", "/etc/passwd", "a/../../x", ".git/config", "a/.GIT/x", ""] {
        let path = WorkspacePath::new(bad);
        assert!(bad.is_empty() || path.is_err(), "{bad:?}");
    }
}

#[test]
fn promise_8_honest_coverage_every_checkpoint_lists_what_it_skipped_and_why() {
    as_ordinary_user(|| {
        let world = World::new();
        world.write(".gitignore", "node_modules/\n*.log\n").write("node_modules/m/index.js", "m");
        world.write("huge.log", vec![b'x'; (1 << 20) + 1]).write("small.log", "captured though ignored");
        world.write(".pitonignore", "scratch\n").write("scratch", "s").write("secret", "s").mode("secret", 0o000);
        let _socket = std::os::unix::net::UnixListener::bind(world.path("socket")).unwrap();
        let captured = world.captured();
        let id = captured.checkpoint.checkpoint.id.to_string();
        let expected = [
            ("huge.log", SkipReason::Ignored),
            ("node_modules", SkipReason::Ignored),
            ("scratch", SkipReason::Excluded),
            ("secret", SkipReason::Unreadable),
            ("socket", SkipReason::Special),
        ];
        let found = |list: &[piton_engine::view::SkippedView]| {
            list.iter().map(|s| (s.path.path.clone(), s.reason)).collect::<Vec<_>>()
        };
        let expected: Vec<_> = expected.map(|(p, r)| (p.to_owned(), r)).into();
        assert_eq!(found(&captured.checkpoint.skipped), expected);
        assert_eq!(found(&world.open().show(&id).unwrap().checkpoint.skipped), expected);
        assert_eq!(captured.checkpoint.checkpoint.skipped_count, 5);
        // The same from the cache.
        assert_eq!(found(&world.captured().checkpoint.skipped), expected);
    });
}

#[test]
fn promise_9_bounded_disk_a_budget_is_a_hard_limit() {
    let world = World::new();
    let budget = 8 << 20;
    world.engine.init(&world.ws(), InitOptions { budget: Some(budget), force: false }).unwrap();
    let mut refused = 0;
    let mut state = 1u64;
    for n in 0..20 {
        let bytes: Vec<u8> = (0..500_000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as u8
            })
            .collect();
        world.write(format!("f{n}"), bytes);
        let now = world.snapshot();
        match world.open().capture(&CaptureOptions::default()) {
            Ok(_) => assert_eq!(refused, 0, "over the budget and taken all the same"),
            Err(CaptureError::Store(StoreError::OverBudget { .. })) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        world.assert_is(&now);
        let size = size_of(world.open().store_folder());
        assert!(size <= budget, "the store takes {size} bytes");
    }
    assert!(refused > 3 && refused < 15, "{refused}");
    world.assert_sound();
    // More room, and it goes on.
    world.engine.init(&world.ws(), InitOptions { budget: Some(10 * budget), force: false }).unwrap();
    world.capture();
}

/// Bytes of every file in a folder.
fn size_of(folder: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap());
    entries.map(|e| if e.path().is_dir() { size_of(&e.path()) } else { e.metadata().unwrap().len() }).sum()
}

#[test]
fn promise_11_correct_without_the_daemon_several_at_once_are_normal() {
    let world = World::new();
    world.write("f", "0").write("dir/g", "0");
    world.capture();
    std::thread::scope(|scope| {
        for n in 0..4 {
            let world = &world;
            scope.spawn(move || {
                for round in 0..6 {
                    if (n + round) % 3 == 2 {
                        let _ = world.open().rewind_now("start", &RewindOptions::default());
                    } else {
                        let new = world.path(format!(".edit{n}"));
                        std::fs::write(&new, format!("{n} {round}")).unwrap();
                        let _ = std::fs::rename(&new, world.path("f"));
                        world.capture();
                    }
                }
            });
        }
    });
    world.assert_sound();
    // Each checkpoint is a state that existed: `f` is always one whole writing.
    let log = world.open().log(Default::default()).unwrap();
    assert!(log.checkpoints.len() > 10);
    for checkpoint in &log.checkpoints {
        world.rewind(checkpoint.id.as_str());
        let now = world.snapshot();
        let f = String::from_utf8(now.bytes("f").unwrap().to_vec()).unwrap();
        assert!(f == "0" || f.split_once(' ').is_some_and(|(n, r)| n.len() == 1 && r.len() == 1), "{f:?}");
        assert_eq!(now.bytes("dir/g"), Some(&b"0"[..]));
    }
}

#[test]
fn a_replaced_file_keeps_the_owner_and_the_attributes_of_the_one_it_replaces() {
    let world = World::new();
    world.write("f", "one");
    let id = world.capture();
    world.write("f", "two");
    let f = world.path("f");
    rustix::fs::setxattr(&f, "user.note", b"mine", rustix::fs::XattrFlags::CREATE).unwrap();
    // An ordinary user can give a file to another of its own groups, and to nobody else.
    let (user, group) = if is_root() {
        (12, Some(34))
    } else {
        let own = rustix::process::getegid();
        let groups = rustix::process::getgroups().unwrap();
        (
            rustix::process::geteuid().as_raw(),
            groups.into_iter().find(|group| *group != own).map(|group| group.as_raw()),
        )
    };
    match group {
        Some(group) => std::os::unix::fs::chown(&f, Some(user), Some(group)).unwrap(),
        None => not_run("the owner of a replaced file", "only root can give a file away, and this user has one group"),
    }
    let before = std::fs::metadata(&f).unwrap();
    assert!(group.is_none_or(|group| (before.uid(), before.gid()) == (user, group)));

    world.rewind(&id);
    assert_eq!(world.snapshot().bytes("f"), Some(&b"one"[..]));
    let after = std::fs::metadata(&f).unwrap();
    assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
    let mut note = [0; 16];
    let length = rustix::fs::getxattr(&f, "user.note", &mut note).unwrap();
    assert_eq!(&note[..length], b"mine");
}

#[test]
fn a_redo_into_a_folder_that_is_gone_since_makes_it_again_for_what_comes_back() {
    let world = World::new();
    world.write("d/keep", "k").mode("d", 0o750);
    let id = world.capture();
    world.write("d/e/z", "z");
    let paths = vec![WorkspacePath::new("d/e").unwrap()];
    world.open().rewind_now(&id, &RewindOptions { paths, ..RewindOptions::default() }).unwrap();
    world.remove("d");
    world.redo();
    let now = world.snapshot();
    assert_eq!(now.bytes("d/e/z"), Some(&b"z"[..]));
    assert_eq!(now.bytes("d/keep"), None);
    assert_eq!(std::fs::metadata(world.path("d")).unwrap().mode() & 0o777, 0o750);
}
