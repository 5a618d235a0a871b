//! Trees as deep as they are followed, on a thread with the small stack that programs give their threads.

use piton_engine::{DiffOptions, RewindOptions};
use piton_host::fail;
use piton_testkit::{World, make_deep, read_deep, remove_deep};

/// As deep as a folder may lie to be captured.
const DEEPEST: usize = 2_000;

#[test]
fn the_deepest_tree_needs_no_larger_stack_than_a_thread_has() {
    let world = World::new();
    world.write("f", "0");
    let without = world.capture();
    make_deep(&world.ws(), "d", DEEPEST);
    let whole = read_deep(&world.ws(), "d");
    let captured = world.captured();
    assert!(captured.checkpoint.skipped.is_empty(), "{:?}", captured.checkpoint.skipped.len());
    let with = captured.checkpoint.checkpoint.id.to_string();
    world.open().plan_rewind(&without, &RewindOptions::default()).unwrap();
    world.rewind(&without);
    assert!(!world.path("d").exists());
    world.open().diff(&DiffOptions { from: with.parse().ok(), ..DiffOptions::default() }).unwrap();
    // Killed while it is made, so that recovery has to tell what is there.
    for step in [9, 14, 18] {
        let _ = fail::with(step, || drop(world.rewind(&with)));
        drop(world.open());
    }
    world.rewind(&with);
    assert_eq!(read_deep(&world.ws(), "d"), whole);
    world.assert_sound();
    remove_deep(&world.path("d"));
}
