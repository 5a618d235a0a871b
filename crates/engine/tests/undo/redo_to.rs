//! Back to before an operation: it and every later one are taken back together.

use piton_engine::model::{OperationId, Scope};
use piton_engine::view::OperationOutcome;
use piton_engine::{OperationError, RedoOptions, RewindOptions, TargetError};
use piton_testkit::{Agent, Claude, World, three_turns, undo_of};

fn redo_to(world: &World, id: &OperationId) -> Result<OperationOutcome, OperationError> {
    let options = RedoOptions { to: Some(id.to_string()), interrupted: true, ..RedoOptions::default() };
    world.open().redo_now(&options)
}

/// Newest first.
fn operations(world: &World) -> Vec<(String, bool)> {
    let operations = world.open().operations().unwrap().operations;
    operations.into_iter().map(|one| (one.kind.as_str().to_owned(), one.taken_back)).collect()
}

/// Three turns with a file each, and a common one.
fn turns(world: &World) {
    let agent = Agent::new(world, "s");
    world.write("all", "1\n-\n2\n-\n3\n-\n4\n");
    for (number, name) in ["one", "two", "three"].into_iter().enumerate() {
        let line = (number + 1).to_string();
        agent.edits(name, &[name, "all"], |world| {
            world.write(name, name).write("all", world.read("all").replace(&line, &format!("turn {line}")));
        });
    }
}

fn id(outcome: OperationOutcome) -> OperationId {
    outcome.operation.unwrap().id
}

#[test]
fn a_chain_of_undos_and_rewinds_goes_at_once_and_edits_since_stay() {
    let world = World::new();
    turns(&world);
    let before = world.snapshot();
    let first = id(world.open().undo_now(&undo_of("t2")).unwrap());
    world.write("mine", "mine");
    world.open().undo_now(&undo_of("t3")).unwrap();
    world.write("all", world.read("all").replace('4', "four"));
    world.rewind("t1");
    assert!(!world.has("mine") && world.read("all").starts_with("1\n"));
    let options = RedoOptions { to: Some(first.to_string()), ..RedoOptions::default() };
    let plan = world.open().plan_redo(&options).unwrap();
    assert_eq!((plan.view().also.len(), plan.view().operation.as_ref()), (2, Some(&first)));
    let done = redo_to(&world, &first).unwrap();
    assert!(done.verified && done.conflicts.is_empty(), "{done:?}");
    assert_eq!(world.read("all"), "turn 1\n-\nturn 2\n-\nturn 3\n-\nfour\n");
    assert_eq!(world.read("mine"), "mine");
    for name in ["one", "two", "three"] {
        assert_eq!(world.read(name), name);
    }
    let undid = |kind: &str| (kind.to_owned(), true);
    assert_eq!(operations(&world), [("redo".into(), false), undid("rewind"), undid("undo"), undid("undo")]);
    assert!(matches!(world.open().redo_now(&RedoOptions::default()), Err(OperationError::NothingToRedo)));
    // What is in effect again can be undone again.
    world.open().undo_now(&undo_of("t2")).unwrap();
    assert!(!world.has("two"));
    world.redo();
    world.assert_sound();
    // Without what was done since, it is the state before.
    world.remove("mine").write("all", world.read("all").replace("four", "4"));
    world.assert_is(&before);
}

#[test]
fn one_redo_takes_that_back_and_all_of_them_stand_again() {
    let world = World::new();
    turns(&world);
    let first = id(world.open().undo_now(&undo_of("t3")).unwrap());
    world.open().undo_now(&undo_of("t1")).unwrap();
    let undone = world.snapshot();
    let redo = id(redo_to(&world, &first).unwrap());
    assert!(world.has("one") && world.has("three"));
    let options = RedoOptions { operation: Some(redo.to_string()), ..RedoOptions::default() };
    world.open().redo_now(&options).unwrap();
    world.assert_is(&undone);
    // One by one, as if nothing had been in between.
    world.redo();
    assert!(world.has("one") && !world.has("three"));
    world.redo();
    assert!(world.has("three"));
    world.assert_sound();
}

#[test]
fn a_redo_in_between_is_taken_back_with_the_rest() {
    let world = World::new();
    turns(&world);
    world.open().undo_now(&undo_of("t1")).unwrap();
    let before = world.snapshot();
    let first = id(world.open().undo_now(&undo_of("t2")).unwrap());
    world.redo();
    world.redo();
    assert!(world.has("one") && world.has("two"));
    // Both are taken back already, so that nothing of theirs stands.
    assert!(matches!(redo_to(&world, &first), Err(OperationError::NotStanding(_))));
    let second = id(world.open().undo_now(&undo_of("t3")).unwrap());
    redo_to(&world, &second).unwrap();
    assert!(world.has("three"));
    world.open().undo_now(&undo_of("t1")).unwrap();
    world.assert_is(&before);
    world.assert_sound();
}

#[test]
fn where_it_does_not_go_together_with_what_was_done_since_nothing_is_done() {
    let world = World::new();
    turns(&world);
    let first = id(world.open().undo_now(&undo_of("t3")).unwrap());
    world.open().undo_now(&undo_of("t2")).unwrap();
    world.write("all", world.read("all").replace('3', "mine"));
    let before = world.snapshot();
    let error = redo_to(&world, &first).unwrap_err();
    assert!(matches!(error, OperationError::Conflict(_)), "{error}");
    world.assert_is(&before);
    let none = OperationId::from_random([9; 8]);
    assert!(matches!(redo_to(&world, &none), Err(OperationError::Target(TargetError::UnknownOperation(_)))));
}

#[test]
fn after_two_rewinds_of_the_conversation_it_leads_back_to_the_first_session() {
    let world = World::new();
    let claude = three_turns(&world);
    let then = world.snapshot();
    let both = RewindOptions { scope: Some(Scope::Both), ..RewindOptions::default() };
    let first = world.open().rewind_now("t3", &both).unwrap();
    let branch = Claude::resumed(&world, first.conversation.as_ref().unwrap().agent_id.as_deref().unwrap());
    branch.edits("third, otherwise", &["branch.txt"], |world| {
        world.write("branch.txt", "of the branch");
    });
    world.write("mine.txt", "mine");
    world.open().rewind_now("t2", &both).unwrap();
    let done = redo_to(&world, &id(first)).unwrap();
    assert_eq!(done.conversation.unwrap().session, Some(claude.session()));
    assert!(!world.has("branch.txt") && world.read("mine.txt") == "mine");
    world.remove("mine.txt");
    world.assert_is(&then);
    let current = world.open().sessions().unwrap().sessions.into_iter().find(|session| session.current).unwrap();
    assert_eq!(current.id, claude.session());
    world.assert_sound();
}
