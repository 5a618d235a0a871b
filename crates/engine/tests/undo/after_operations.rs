//! What an operation does after others: what was decided before stays decided, and what was brought may go again.

use piton_engine::model::inverse::Why;
use piton_engine::model::{Except, WorkspacePath};
use piton_engine::{OperationError, RedoOptions, Settle};
use piton_testkit::{Agent, World};

fn numbered(name: &str, range: std::ops::Range<usize>) -> String {
    range.map(|n| format!("{name} {n} that stood here first\n")).collect()
}

fn path(path: &str) -> WorkspacePath {
    WorkspacePath::new(path).unwrap()
}

/// A rewind took a line from one file back to another. A redo that leaves the first file as it is must not take it from the other.
#[test]
fn a_redo_keeps_a_line_whose_file_is_taken_out_of_it() {
    let world = World::new();
    world.write("a", numbered("a", 0..10)).write("b", numbered("b", 0..5));
    let agent = Agent::new(&world, "s");
    agent.edits("split", &["a", "b"], |world| {
        world.write("a", numbered("a", 0..9)).write("b", numbered("b", 0..5) + "a 9 that stood here first\n");
    });
    world.rewind("t1");
    let here = world.snapshot();
    let except = Except { paths: vec![path("b")], ..Except::default() };
    let mut options = RedoOptions { settle: Settle { except, ..Settle::default() }, ..RedoOptions::default() };
    let plan = world.open().plan_redo(&options).unwrap();
    let conflicts: Vec<_> = plan.view().conflicts.iter().map(|one| (&*one.path.path, one.why)).collect();
    assert_eq!(conflicts, [("a", Why::Lines)]);
    assert!(matches!(world.open().redo_now(&options), Err(OperationError::Conflict(_))));
    options.settle.partial = true;
    let _ = world.open().redo_now(&options);
    world.assert_is(&here);
    options.settle = Settle::default();
    world.open().redo_now(&options).unwrap();
    assert_eq!(world.read("a"), numbered("a", 0..9));
}

/// The rewind brought a line back that the agent had deleted, so the redo may delete it again: the second time as the first.
#[test]
fn a_redo_to_an_operation_comes_to_the_same_after_it_was_taken_back() {
    let world = World::new();
    world.write("a", numbered("a", 0..10));
    let agent = Agent::new(&world, "s");
    agent.prompt("move");
    agent.step("Edit", &["a", "b"], |world| {
        world.rename("a", "b").write("b", numbered("a", 0..10) + "written by the agent\n");
    });
    agent.step("Edit", &["b"], |world| {
        world.write("b", numbered("a", 1..10) + "written by the agent\n");
    });
    agent.end_turn();
    let worked = world.snapshot();
    let operation = world.rewind("t1").operation.unwrap().id.to_string();
    let to = RedoOptions { to: Some(operation), ..RedoOptions::default() };
    let first = world.open().redo_now(&to).unwrap().operation.unwrap().id.to_string();
    world.assert_is(&worked);
    world.open().redo_now(&RedoOptions { operation: Some(first), ..RedoOptions::default() }).unwrap();
    let again = world.open().redo_now(&to).unwrap();
    assert!(again.conflicts.is_empty(), "{:?}", again.conflicts);
    world.assert_is(&worked);
}
