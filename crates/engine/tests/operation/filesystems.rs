//! Rewinds on filesystems that cannot do what a rewind does where it can: exchange two names, rename without
//! overwriting, give a file two names.

use piton_engine::{OperationError, RewindOptions, UndoOptions};
use piton_host::fail;
use piton_host::sys::{Call, refusing};
use piton_testkit::{Agent, Filesystem, FilesystemKind, Snapshot, World};

/// A project and a checkpoint of it, and then a bit of everything: files and folders that come, go and change kind.
fn agent_at_work(world: &World) -> String {
    world.write("same", "same").write("edited", "before").write("deleted", "deleted").write("dir/sub/x", "x");
    world.write("thing", "a file").link("link", "same").write("run.sh", "#!").mode("run.sh", 0o755).folder("empty");
    let id = world.capture();
    world.write("edited", "after").remove("deleted").remove("dir").remove("empty").mode("run.sh", 0o644);
    world.remove("thing").write("thing/inside", "a folder").remove("link").link("link", "edited");
    world.write("added", "a").write("new/deep/y", "y");
    id
}

/// What a filesystem may lack: each time a little more.
const LACKS: [&[Call]; 4] = [
    &[Call::Exchange],
    &[Call::Exchange, Call::RenameToNew],
    &[Call::Exchange, Call::RenameToNew, Call::Link],
    &[Call::Exchange, Call::RenameToNew, Call::OpenBeneath],
];

#[test]
fn a_rewind_and_a_redo_need_nothing_that_a_filesystem_may_lack() {
    for lacks in LACKS.into_iter().chain([&[Call::SyncOne][..]]) {
        let world = World::new();
        let id = agent_at_work(&world);
        let old = world.snapshot();
        refusing(lacks, || {
            world.rewind(&id);
            let new = world.snapshot();
            assert!(new.bytes("edited") == Some(b"before") && new.bytes("added").is_none(), "{lacks:?}");
            world.redo();
            world.assert_is(&old);
            world.rewind(&id);
            world.assert_is(&new);
        });
        world.assert_sound();
    }
}

#[test]
fn a_crash_at_any_step_without_safe_renames_leaves_the_old_or_the_new_tree() {
    for lacks in LACKS {
        let world = World::new();
        let id = agent_at_work(&world);
        let old = world.snapshot();
        world.rewind(&id);
        let new = world.snapshot();
        let mut died = 0;
        for step in 1.. {
            let world = World::new();
            let id = agent_at_work(&world);
            if fail::with(step, || refusing(lacks, || drop(world.rewind(&id)))).is_some() {
                break;
            }
            died = step;
            refusing(lacks, || drop(world.open()));
            assert_old_or_new(&world, &format!("{lacks:?}, step {step}"), &old, &new);
            assert!(world.open().status().unwrap().pending.is_empty());
            refusing(lacks, || drop(world.rewind(&id)));
            world.assert_is(&new);
            world.assert_sound();
        }
        assert!(died > 60, "only {died} steps");
    }
}

/// What somebody removes after the crash stays removed, however far the exchange had got.
#[test]
fn a_file_that_somebody_removes_after_a_crash_does_not_come_back() {
    let lacks = &[Call::Exchange, Call::RenameToNew];
    let world = World::new();
    world.write("edited", "before");
    let id = world.capture();
    world.write("edited", "after");
    let happen = || std::panic::panic_any("died");
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        refusing(lacks, || fail::when(1, "move:put", happen, || drop(world.rewind(&id))));
    }));
    assert!(result.is_err());
    world.remove("edited");
    let recovered = world.open().recovered().to_vec();
    assert_eq!(recovered[0].left_alone.len(), 1, "{recovered:?}");
    assert!(world.snapshot().bytes("edited").is_none());
    let names: Vec<_> = std::fs::read_dir(world.ws()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.is_empty(), "{names:?}");
    world.assert_sound();
}

/// The crash that only such a filesystem has: between a file's second name and the loss of its first. What somebody does to
/// it before the recovery is kept.
#[test]
fn a_file_that_a_crash_left_with_two_names_keeps_what_somebody_wrote_to_it_since() {
    let lacks = &[Call::Exchange, Call::RenameToNew];
    for (point, nth) in [("move:linked", 1), ("move:linked", 2), ("move:aside", 1), ("move:put", 1)] {
        let world = World::new();
        world.write("edited", "before").write("goes", "goes");
        world.write("stays", "stays");
        let with = world.capture();
        world.write("edited", "after").remove("goes").write("comes", "comes");
        let path = world.path("edited");
        // Dying right after a second name was given, or where nothing is at its name.
        let happen = || std::panic::panic_any("died");
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            refusing(lacks, || fail::when(nth, point, happen, || drop(world.rewind(&with))));
        }));
        assert!(result.is_err());
        let there = path.exists();
        if there {
            // In place, as some programs write: both names show it.
            std::fs::write(&path, "somebody's").unwrap();
        }
        drop(world.open());
        if there {
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "somebody's", "{point} {nth}");
        }
        assert_eq!(std::fs::read_to_string(world.path("stays")).unwrap(), "stays");
        let left: Vec<_> = std::fs::read_dir(world.ws()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| !name.to_string_lossy().starts_with(".piton-")), "{point} {nth}: {left:?}");
        world.assert_sound();
    }
}

/// Somebody makes a file in the very moment in which a rewind would put its own there.
#[test]
fn nothing_is_overwritten_that_somebody_made_in_the_last_moment() {
    for lacks in LACKS {
        let world = World::new();
        world.write("comes", "captured");
        let id = world.capture();
        world.remove("comes");
        let path = world.path("comes");
        let happen = move || std::fs::write(path, "somebody's").unwrap();
        let outcome = refusing(lacks, || {
            fail::when(1, "apply:swap", happen, || world.open().rewind_now(&id, &RewindOptions::default()))
        });
        assert!(matches!(outcome, Err(OperationError::RolledBack { .. })), "{lacks:?}: {outcome:?}");
        assert_eq!(std::fs::read_to_string(world.path("comes")).unwrap(), "somebody's");
    }
}

/// Somebody saves a file, as editors do it, in the very moment in which a rewind takes the old one out of its place.
#[test]
fn nothing_goes_that_somebody_saved_in_the_last_moment() {
    for lacks in &LACKS[1..] {
        let world = World::new();
        world.write("edited", "captured");
        let id = world.capture();
        world.write("edited", "before");
        let (new, path) = (world.base().join("new"), world.path("edited"));
        std::fs::write(&new, "saved").unwrap();
        let happen = move || std::fs::rename(new, path).unwrap();
        let outcome = refusing(lacks, || fail::when(1, "move:looked", happen, || world.rewind(&id)));
        assert_eq!(std::fs::read_to_string(world.path("edited")).unwrap(), "captured", "{lacks:?}");
        assert_eq!(outcome.rescued.len(), 1, "{lacks:?}");
        world.redo();
        assert_eq!(std::fs::read_to_string(world.path("edited")).unwrap(), "saved", "{lacks:?}");
    }
}

#[test]
fn rewinds_work_and_crashes_are_recovered_from_on_every_filesystem_that_can_be_had() {
    piton_testkit::needs_mounts!();
    for kind in FilesystemKind::ALL {
        let scratch = tempfile::tempdir().unwrap();
        let base = scratch.path().canonicalize().unwrap();
        std::fs::create_dir(base.join("ws")).unwrap();
        let mounted = match Filesystem::mount(kind, &base.join("ws"), &base.join("beside")) {
            Ok(mounted) => mounted,
            Err(why) => {
                piton_testkit::not_run(&format!("rewinds on {kind:?}"), &why);
                continue;
            }
        };
        let empty = || {
            for entry in std::fs::read_dir(base.join("ws")).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && !path.is_symlink() {
                    std::fs::remove_dir_all(path)
                } else {
                    std::fs::remove_file(path)
                }
                .or_else(|e| if e.kind() == std::io::ErrorKind::PermissionDenied { Ok(()) } else { Err(e) })
                .unwrap();
            }
            let _ = std::fs::remove_dir_all(base.join("home"));
        };
        let world = World::at(&base, |_| {});
        let inside = if kind == FilesystemKind::Casefold { "folded/" } else { "" };
        world.write(format!("{inside}Name"), "before");
        let id = world.capture();
        world.remove(format!("{inside}Name")).write(format!("{inside}name"), "after");
        world.rewind(&id);
        assert_eq!(std::fs::read_to_string(world.path(format!("{inside}Name"))).unwrap(), "before", "{kind:?}");
        empty();

        let id = agent_at_work(&world);
        let old = world.snapshot();
        world.rewind(&id);
        let new = world.snapshot();
        world.redo();
        world.assert_is(&old);
        for step in (1..).step_by(5) {
            empty();
            let id = agent_at_work(&world);
            if fail::with(step, || drop(world.rewind(&id))).is_some() {
                break;
            }
            drop(world.open());
            assert_old_or_new(&world, &format!("{kind:?}, step {step}"), &old, &new);
            world.rewind(&id);
            world.assert_is(&new);
            world.assert_sound();
        }
        assert!(world.open().abilities().unwrap().is_some());
        world.assert_is(&new);
        drop(mounted);
    }
}

/// An agent in a container whose project is in a layer of the image: the first write in the project copies its folder, which
/// has another time of birth from then on.
#[test]
fn the_first_turn_that_writes_in_a_lower_layer_of_an_overlay_is_undone_like_any_other() {
    piton_testkit::needs_mounts!();
    let scratch = tempfile::tempdir().unwrap();
    let base = scratch.path().canonicalize().unwrap();
    std::fs::create_dir(base.join("ws")).unwrap();
    let mounted = Filesystem::overlay(&base.join("ws"), &base.join("beside"), |lower| {
        std::fs::create_dir_all(lower.join("app/src")).unwrap();
        std::fs::write(lower.join("app/src/a"), "a").unwrap();
        std::fs::write(lower.join("app/b"), "b").unwrap();
    });
    let mounted = match mounted {
        Ok(mounted) => mounted,
        Err(why) => return piton_testkit::not_run("an undo in a lower layer of an overlay", &why),
    };
    // The clock of births is coarse.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let world = World::at(&base, |_| {});
    let app = world.path("app");
    let before = piton_testkit::snapshot(&app);
    let identity = || piton_host::identity_at(&app).unwrap();
    let lower = identity();
    let agent = Agent::new(&world, "s1");
    *agent.folder.borrow_mut() = app.clone();
    agent.runs("one", "sed -i b; touch new", |world| {
        world.write("app/b", "agent").write("app/new", "new");
    });
    assert_eq!((identity().inode, identity().is_layered), (lower.inode, true));
    assert_ne!(identity().born, lower.born, "the folder was copied up");

    let mut workspace = world.engine.open(&app).unwrap();
    assert_eq!(workspace.line(), 1, "it is the same folder");
    assert!(workspace.undo_now(&UndoOptions::default()).unwrap().verified);
    assert_eq!(piton_testkit::snapshot(&app), before);
    // The new birth is the one that is noted, so that the folder is known under another device too.
    let noted = piton_host::identity_at(&app).unwrap();
    let note = std::fs::read_to_string(workspace.store_folder().join("workspace.json")).unwrap();
    assert!(note.contains(&noted.born.unwrap().to_string()), "{note}");
    drop(mounted);
}

#[track_caller]
fn assert_old_or_new(world: &World, when: &str, old: &Snapshot, new: &Snapshot) {
    let now = world.snapshot();
    assert!(
        now == *old || now == *new,
        "{when}: neither. is | old\n{}\nis | new\n{}",
        now.differences(old).join("\n"),
        now.differences(new).join("\n")
    );
}

/// Without safe renames a file that is replaced is away for an instant; what keeps the new one from being linked to its
/// place must not keep the old one from coming back.
#[test]
fn a_refused_hard_link_keeps_no_file_away_from_its_place() {
    let world = World::new();
    world.write("f", "1");
    let id = world.capture();
    world.write("f", "2");
    let outcome = refusing(&[Call::Exchange, Call::RenameToNew, Call::LinkDenied], || world.rewind(&id));
    assert!(outcome.verified);
    assert_eq!(world.snapshot().bytes("f"), Some(&b"1"[..]));
    assert_eq!(world.snapshot().len(), 1);
}
