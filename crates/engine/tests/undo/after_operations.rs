//! What an operation does after others: what was decided before stays decided, and what was brought may go again.

use piton_engine::model::content::Decision;
use piton_engine::model::inverse::Why;
use piton_engine::model::{Except, WorkspacePath};
use piton_engine::{Carry, OperationError, RedoOptions, RewindOptions, Settle};
use piton_testkit::{Agent, World, undo_of};

fn numbered(name: &str, range: std::ops::Range<usize>) -> String {
    range.map(|n| format!("{name} {n} that stood here first\n")).collect()
}

fn done(_: &World) {}

fn path(path: &str) -> WorkspacePath {
    WorkspacePath::new(path).unwrap()
}

/// A decision brought a line back that another agent had deleted. A rewind of that agent's later work carries the undo over, and
/// merging it anew would lose the line without a word.
#[test]
fn a_rewind_does_not_silently_go_back_on_what_was_decided_in_a_conflict() {
    let world = World::new();
    world.write("f", numbered("f", 0..10));
    let (one, two) = (Agent::new(&world, "one"), Agent::new(&world, "two"));
    one.edits("add", &["f"], |world| {
        world.write("f", numbered("f", 0..4) + "added by one\n" + &numbered("f", 4..10));
    });
    two.edits("replace line 4", &["f"], |world| {
        world.write("f", numbered("f", 0..4) + "added by one\nwritten by two\n" + &numbered("f", 5..10));
    });
    two.edits("cut", &["f"], |world| {
        world.write("f", numbered("f", 0..1) + "written by two\n" + &numbered("f", 5..10));
    });
    let session = Some(one.id().to_string());
    let mut undo = undo_of("t1");
    undo.choice.session = session;
    undo.settle = Settle { conflicts: Some(Decision::Theirs), ..Settle::default() };
    world.open().undo_now(&undo).unwrap();
    assert_eq!(world.read("f"), numbered("f", 0..10));

    let here = world.snapshot();
    let target = format!("{}:t2", two.id());
    let mut options = RewindOptions { carry: Carry::Others, ..RewindOptions::default() };
    let plan = world.open().plan_rewind(&target, &options).unwrap();
    let conflicts: Vec<_> = plan.view().conflicts.iter().map(|one| (&*one.path.path, one.why)).collect();
    assert_eq!(conflicts, [("f", Why::Decided)]);
    assert!(matches!(world.open().rewind_now(&target, &options), Err(OperationError::Conflict(_))));
    options.settle.partial = true;
    world.open().rewind_now(&target, &options).unwrap();
    world.assert_is(&here);
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

/// The agent moved the user's file, and the rewind that kept the user's edit of it moved it back.
#[test]
fn a_rewind_names_an_edit_that_an_earlier_rewind_carried_to_another_path() {
    let world = World::new();
    world.write("a", numbered("a", 0..10)).write("c", numbered("c", 0..10));
    let agent = Agent::new(&world, "s");
    agent.prompt("move");
    agent.step("Edit", &["a", "b"], |world| {
        world.rename("a", "b").write("b", numbered("a", 0..10) + "written by the agent\n");
    });
    agent.step("Edit", &["b", "c"], |world| {
        world.write("b", numbered("a", 0..5) + &numbered("a", 8..10) + "written by the agent\n");
        world.write("c", numbered("c", 0..10) + &numbered("a", 5..8));
    });
    agent.end_turn();
    world.write("b", numbered("a", 0..5) + &numbered("a", 8..10) + "written by the user\n");
    let settle = Settle { conflicts: Some(Decision::Ours), ..Settle::default() };
    let options = RewindOptions { carry: Carry::Mine, settle, ..RewindOptions::default() };
    world.open().rewind_now("t1", &options).unwrap();
    assert!(world.read("a").contains("written by the user"));
    let plan = world.open().plan_rewind("t1", &RewindOptions::default()).unwrap();
    let others: Vec<_> = plan.view().others.iter().map(|file| &*file.path.path).collect();
    assert_eq!(others, ["a"]);
}

/// The first rewind took the lines back to their file, the second goes to where they are in the other one, which is taken out.
#[test]
fn a_rewind_keeps_lines_that_an_earlier_rewind_brought_back_and_whose_file_is_taken_out() {
    let world = World::new();
    world.write("a", numbered("a", 0..10)).write("b", numbered("b", 0..5));
    let agent = Agent::new(&world, "s");
    agent.edits("split", &["a", "b"], |world| {
        world.write("a", numbered("a", 0..7)).write("b", numbered("b", 0..5) + &numbered("a", 7..10));
    });
    agent.edits("other", &["c"], |world| {
        world.write("c", "written by the agent\n");
    });
    world.rewind("t1");
    let here = world.snapshot();
    for carry in [Carry::Nothing, Carry::Mine, Carry::Others] {
        let except = Except { paths: vec![path("b")], ..Except::default() };
        let settle = Settle { except, ..Settle::default() };
        let mut options = RewindOptions { carry, settle, ..RewindOptions::default() };
        let plan = world.open().plan_rewind("t2", &options).unwrap();
        let conflicts: Vec<_> = plan.view().conflicts.iter().map(|one| (&*one.path.path, one.why)).collect();
        assert_eq!(conflicts, [("a", Why::Lines)], "{carry:?}");
        assert!(matches!(world.open().rewind_now("t2", &options), Err(OperationError::Conflict(_))));
        options.settle.partial = true;
        let _ = world.open().rewind_now("t2", &options);
        world.assert_is(&here);
        options.settle = Settle::default();
        world.open().rewind_now("t2", &options).unwrap();
        assert_eq!(world.read("a"), numbered("a", 0..7));
        world.redo();
        world.assert_is(&here);
    }
}

/// An undo brought a file back that had been merged into another one, and a rewind then took its lines out of that one.
#[test]
fn a_redo_keeps_a_file_whose_lines_a_later_rewind_took_out_of_the_other() {
    let world = World::new();
    world.write("a", numbered("a", 0..10)).write("c", numbered("c", 0..5));
    let (one, two) = (Agent::new(&world, "one"), Agent::new(&world, "two"));
    one.edits("add", &["a"], |world| {
        world.write("a", numbered("a", 0..10) + "written by one\n");
    });
    two.edits("merge", &["a", "c"], |world| {
        world.write("c", numbered("c", 0..5) + &world.read("a")).remove("a");
    });
    let mut undo = undo_of("all");
    undo.choice.session = Some(one.id().to_string());
    undo.choice.paths = vec![path("a")];
    undo.settle = Settle { conflicts: Some(Decision::Theirs), ..Settle::default() };
    let undone = world.open().undo_now(&undo).unwrap().operation.unwrap().id.to_string();
    assert_eq!(world.read("a"), numbered("a", 0..10));
    let mine = RewindOptions { carry: Carry::Mine, ..RewindOptions::default() };
    world.open().rewind_now(&format!("{}:t1", one.id()), &mine).unwrap();
    assert_eq!((world.read("a"), world.read("c")), (numbered("a", 0..10), numbered("c", 0..5)));

    let here = world.snapshot();
    let mut options = RedoOptions { operation: Some(undone), ..RedoOptions::default() };
    let plan = world.open().plan_redo(&options).unwrap();
    let conflicts: Vec<_> = plan.view().conflicts.iter().map(|one| (&*one.path.path, one.why)).collect();
    assert_eq!(conflicts, [("a", Why::Lines)]);
    options.settle.partial = true;
    let _ = world.open().redo_now(&options);
    world.assert_is(&here);
}

/// What the agent wrote and an undo took back is missed by nobody: the agent's second writing of it may go as well.
#[test]
fn what_an_agent_wrote_and_was_taken_back_stops_nobody() {
    let world = World::new();
    world.write("a", numbered("a", 0..10)).write("b", numbered("b", 0..5));
    let agent = Agent::new(&world, "s");
    agent.edits("write", &["a"], |world| {
        world.write("a", numbered("a", 0..10) + "a line that the agent wrote\n");
    });
    world.open().undo_now(&undo_of("t1")).unwrap();
    agent.edits("write again", &["b"], |world| {
        world.write("b", numbered("b", 0..5) + "a line that the agent wrote\n");
    });
    world.open().undo_now(&undo_of("t2")).unwrap();
    assert_eq!((world.read("a"), world.read("b")), (numbered("a", 0..10), numbered("b", 0..5)));
}

/// The agent moved the file and deleted it at its new place. The rewind that brought it back moved nothing, and still the file is at
/// its first place from then on: whoever takes back what was done to it before finds it there.
#[test]
fn a_file_that_came_back_to_where_it_was_before_it_was_moved_and_deleted_is_found_there() {
    for twice in [false, true] {
        let world = World::new();
        world.write("d/a", numbered("a", 0..10)).write("e/other", "1\n");
        let agent = Agent::new(&world, "s");
        agent.edits("move", &["d", "e"], |world| {
            world.rename("d/a", "e/a").write("e/a", numbered("a", 0..10) + "written by the agent\n");
        });
        let moved = world.snapshot();
        agent.prompt("move and delete");
        agent.step("Edit", &["e", "x"], |world| done(world.rename("e", "x")));
        agent.step("Edit", &["x"], |world| done(world.remove("x/a")));
        agent.end_turn();
        let there = world.snapshot();
        world.rewind("t2");
        world.assert_is(&moved);
        if twice {
            world.redo();
            world.assert_is(&there);
            world.rewind("t2");
        }
        let undone = world.open().undo_now(&undo_of("all")).unwrap();
        assert!(undone.conflicts.is_empty(), "{:?}", undone.conflicts);
        assert!(!world.has("e/a") && !world.has("x/a"), "{:?}", undone.deleted);
        assert_eq!(world.read("d/a"), numbered("a", 0..10));
        world.redo();
        world.assert_is(&moved);
    }
}

/// The agent moved its own file to where another one had been, and a rewind put that one back. Going on to where it was deleted
/// takes none of the first one's lines.
#[test]
fn lines_of_a_file_that_came_back_are_not_those_of_one_that_was_moved_there() {
    let world = World::new();
    world.write("a", numbered("a", 0..10)).write("b", numbered("b", 0..10)).write("c", numbered("c", 0..5));
    let agent = Agent::new(&world, "s");
    agent.edits("edit", &["c"], |world| done(world.write("c", numbered("c", 0..4))));
    agent.edits("delete", &["b"], |world| done(world.remove("b")));
    let without = world.snapshot();
    agent.edits("move", &["a", "b"], |world| done(world.rename("a", "b")));
    world.rewind("t1");
    assert_eq!(world.read("b"), numbered("b", 0..10));
    let options = RewindOptions { carry: Carry::Mine, ..RewindOptions::default() };
    let plan = world.open().plan_rewind("t3", &options).unwrap();
    assert!(plan.view().conflicts.is_empty(), "{:?}", plan.view().conflicts);
    world.open().rewind_now("t3", &options).unwrap();
    world.assert_is(&without);
}
