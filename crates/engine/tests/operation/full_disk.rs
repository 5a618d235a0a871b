//! A disk that is full at any point of a capture or a rewind: the old or the new tree, a clear error, and nothing lost.

use piton_engine::{CaptureError, CaptureOptions, OperationError, RewindOptions};
use piton_testkit::{SmallDisk, World, noise};

/// A workspace and a store on one small disk, with a checkpoint and changes since.
fn on(disk: &SmallDisk) -> (World, String) {
    let world = World::at(disk.path(), |_| {});
    for n in 0..6 {
        world.write(format!("f{n}"), noise(n, 20_000)).write(format!("dir/g{n}"), noise(100 + n, 5_000));
    }
    let id = world.capture();
    for n in 0..6 {
        world.write(format!("f{n}"), noise(50 + n, 20_000));
    }
    world.remove("dir").write("new/file", noise(200, 8_000));
    (world, id)
}

#[test]
fn a_disk_that_is_full_at_any_step_of_a_rewind_leaves_the_old_or_the_new_tree() {
    piton_testkit::needs_mounts!();
    let disk = SmallDisk::new(4096);
    let (world, id) = on(&disk);
    world.rewind(&id);
    let new = world.snapshot();
    drop((world, disk));

    let (mut refused, mut done) = (0, 0);
    for free in (0..420).step_by(12) {
        let disk = SmallDisk::new(4096);
        let (world, id) = on(&disk);
        let old = world.snapshot();
        drop(world.open());
        let filler = disk.fill_but(free);
        let result = world.engine.open(&world.ws()).map_err(|e| e.to_string()).and_then(|mut workspace| {
            workspace.rewind_now(&id, &RewindOptions::default()).map_err(|e| match e {
                OperationError::RolledBack { full_disk, .. } => {
                    assert!(full_disk, "{e}");
                    e.to_string()
                }
                e => e.to_string(),
            })
        });
        let now = world.snapshot();
        match &result {
            Ok(outcome) => {
                assert!(outcome.verified);
                assert!(now == new, "{free} KiB free");
                done += 1;
            }
            Err(error) => {
                assert!(now == old || now == new, "{free} KiB free: {error}\n{}", now.differences(&old).join("\n"));
                assert!(!error.is_empty());
                refused += 1;
            }
        }
        std::fs::remove_file(filler).unwrap();
        // What the user does before the next command is the user's, also where it looks like the other end.
        let other_end = if now == old { &new } else { &old };
        world.write("f0", other_end.bytes("f0").unwrap());
        let edited = world.snapshot();
        drop(world.open());
        assert!(world.snapshot() == edited, "{free} KiB free: {:?}", world.snapshot().differences(&edited));
        world.write("f0", now.bytes("f0").unwrap());
        world.assert_is(&now);
        world.assert_sound();
        world.rewind(&id);
        world.assert_is(&new);
    }
    assert!(refused > 3 && done > 3, "{refused} refused, {done} done: the range misses the border");
}

#[test]
fn a_disk_that_is_full_during_a_capture_costs_that_capture_and_no_more() {
    piton_testkit::needs_mounts!();
    let mut refused = 0;
    for free in (0..260).step_by(20) {
        let disk = SmallDisk::new(4096);
        let (world, id) = on(&disk);
        let now = world.snapshot();
        drop(world.open());
        let filler = disk.fill_but(free);
        match world.engine.open(&world.ws()).unwrap().capture(&CaptureOptions::default()) {
            Ok(_) => {}
            Err(CaptureError::Store(error)) => {
                assert!(error.is_full_disk(), "{error}");
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
        std::fs::remove_file(filler).unwrap();
        world.assert_is(&now);
        world.assert_sound();
        let again = world.capture();
        world.rewind(&id);
        world.rewind(&again);
        world.assert_is(&now);
    }
    assert!(refused > 2, "{refused}");
}
