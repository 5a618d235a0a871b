//! A rewind with `keep_mine`: edits of the user's are named, and carried over to the target.

use piton_engine::{Carry, RewindOptions};
use piton_testkit::{Agent, World};

const NINE: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

fn keeping_mine() -> RewindOptions {
    RewindOptions { carry: Carry::Mine, ..RewindOptions::default() }
}

/// Forward again to a turn that was rewound past, with an edit in between: the file has the turn's work and the edit.
#[test]
fn what_a_rewind_took_out_comes_back_under_an_edit_that_is_carried_over() {
    let world = World::new();
    world.write("f", NINE);
    let agent = Agent::new(&world, "s1");
    agent.edits("one", &["f"], |world| {
        world.write("f", NINE.replace("2\n", "two\n"));
    });
    world.rewind("t1");
    world.write("f", NINE.replace("9\n", "mine\n"));
    world.open().rewind_now("t1.end", &keeping_mine()).unwrap();
    assert_eq!(world.read("f"), NINE.replace("2\n", "two\n").replace("9\n", "mine\n"));
}

/// An edit that is older than the target, was taken out and came back by a redo since: it is not in the target, so it is
/// overwritten, and must be named or carried over.
#[test]
fn an_older_edit_that_a_redo_brought_back_is_named_and_carried_over() {
    let world = World::new();
    world.write("f", "f\n").write("notes", "n\n");
    let agent = Agent::new(&world, "s1");
    agent.edits("one", &["f"], |world| {
        world.write("f", "one\n");
    });
    world.write("notes", "mine\n");
    agent.edits("two", &["f"], |world| {
        world.write("f", "two\n");
    });
    world.rewind("t1.end");
    agent.edits("three", &["g"], |world| {
        world.write("g", "g\n");
    });
    world.redo();
    assert_eq!(world.read("notes"), "mine\n");
    let plan = world.open().plan_rewind("t3.end", &RewindOptions::default()).unwrap();
    assert_eq!(plan.view().others.len(), 1);
    world.open().rewind_now("t3.end", &keeping_mine()).unwrap();
    assert_eq!(world.read("notes"), "mine\n");
}

/// More edits than are listed one by one are the user's all the same.
#[test]
fn many_edits_of_the_user_are_named_and_carried_over() {
    let world = World::new();
    world.write("f", "f\n");
    for n in 0..5_001 {
        world.write(format!("many/{n}"), "old\n");
    }
    let agent = Agent::new(&world, "s1");
    agent.edits("one", &["f"], |world| {
        world.write("f", "one\n");
    });
    for n in 0..5_001 {
        world.write(format!("many/{n}"), "mine\n");
    }
    agent.prompt("two");
    let plan = world.open().plan_rewind("t1.end", &RewindOptions::default()).unwrap();
    assert_eq!(plan.view().others.len(), 5_001);
    world.open().rewind_now("t1.end", &RewindOptions { interrupted: true, ..keeping_mine() }).unwrap();
    assert_eq!(world.read("many/7"), "mine\n");
}

/// What somebody edits elsewhere while the plan is being looked at is not part of it; later it must still count as theirs.
#[test]
fn an_edit_elsewhere_while_a_plan_is_shown_stays_in_effect() {
    let world = World::new();
    world.write("f", "f\n").write("notes", "n\n");
    let agent = Agent::new(&world, "s1");
    agent.edits("one", &["f"], |world| {
        world.write("f", "one\n");
    });
    let plan = world.open().plan_rewind("t1", &RewindOptions::default()).unwrap();
    world.write("notes", "mine\n");
    world.open().carry_out(plan).unwrap();
    assert_eq!(world.read("notes"), "mine\n");
    let plan = world.open().plan_rewind("t1", &RewindOptions::default()).unwrap();
    assert_eq!(plan.view().others.len(), 1);
    world.open().rewind_now("t1", &keeping_mine()).unwrap();
    assert_eq!(world.read("notes"), "mine\n");
}
