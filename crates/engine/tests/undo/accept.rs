//! Accepting: what a person says is fine is left by an undo that does not name it.

use piton_engine::model::WorkspacePath;
use piton_engine::view::{AcceptedChanges, AcceptedPart, Notice, Since};
use piton_engine::{AcceptError, AcceptOptions, ChosenError, OperationError};
use piton_testkit::{Agent, World, undo_of};

fn accept(world: &World, turns: &[u32], paths: &[&str]) -> Result<AcceptedChanges, AcceptError> {
    let paths = paths.iter().map(|path| WorkspacePath::new(*path).unwrap()).collect();
    let places = turns.iter().map(|turn| (*turn, None)).collect();
    world.open().accept(&AcceptOptions { places, paths, ..AcceptOptions::default() })
}

fn take_back(world: &World, turn: u32) -> Result<AcceptedChanges, AcceptError> {
    let options = AcceptOptions { places: vec![(turn, None)], take_back: true, ..AcceptOptions::default() };
    world.open().accept(&options)
}

/// Three turns, each with a file of its own and one that all of them write a line of.
fn three_turns(world: &World) {
    let agent = Agent::new(world, "s");
    world.write("all", "1\n2\n3\n4\n5\n");
    for (number, (name, line)) in [("one", "1"), ("two", "3"), ("three", "5")].into_iter().enumerate() {
        agent.edits(name, &[name, "all"], |world| {
            world.write(name, name).write("all", world.read("all").replace(line, &format!("turn {}", number + 1)));
        });
    }
}

fn marks(world: &World) -> Vec<Option<AcceptedPart>> {
    let mut turns = world.turns(None);
    turns.sort_by_key(|turn| turn.number);
    turns.into_iter().map(|turn| turn.accepted).collect()
}

#[test]
fn undo_all_and_the_last_turn_leave_what_is_accepted_and_a_turn_that_is_named_goes() {
    let world = World::new();
    three_turns(&world);
    let before = world.snapshot();
    let done = accept(&world, &[3], &[]).unwrap();
    world.assert_is(&before);
    assert_eq!(done.files.iter().map(|file| &file.path.path[..]).collect::<Vec<_>>(), ["all", "three"]);
    assert_eq!(marks(&world), [None, None, Some(AcceptedPart::All)]);
    // The last turn is the one before it now.
    world.open().undo_now(&undo_of("")).unwrap();
    assert!(world.has("three") && !world.has("two"));
    assert_eq!(world.read("all"), "turn 1\n2\n3\n4\nturn 3\n");
    world.redo();
    world.open().undo_now(&undo_of("all")).unwrap();
    assert!(world.has("three") && !world.has("two") && !world.has("one"));
    assert_eq!(world.read("all"), "1\n2\n3\n4\nturn 3\n");
    let error = world.open().undo_now(&undo_of("all")).unwrap_err();
    assert!(matches!(error, OperationError::Chosen(ChosenError::Accepted { .. })), "{error}");
    let error = world.open().undo_now(&undo_of("")).unwrap_err();
    assert!(matches!(error, OperationError::Chosen(ChosenError::Accepted { .. })), "{error}");
    // By its name it goes all the same, and a redo brings it back accepted.
    world.open().undo_now(&undo_of("t3")).unwrap();
    assert!(!world.has("three"));
    world.redo();
    assert!(world.has("three"));
    assert!(world.open().undo_now(&undo_of("")).is_err());
    world.assert_sound();
}

#[test]
fn it_is_taken_back_and_survives_a_view_that_is_made_anew() {
    let world = World::new();
    three_turns(&world);
    accept(&world, &[1, 3], &[]).unwrap();
    assert!(accept(&world, &[3], &[]).unwrap().already);
    let store = world.open().store_folder().to_owned();
    std::fs::remove_file(piton_store::database_file(&store).unwrap()).unwrap();
    assert_eq!(marks(&world), [Some(AcceptedPart::All), None, Some(AcceptedPart::All)]);
    let back = take_back(&world, 3).unwrap();
    assert!(back.taken_back && back.files.len() == 2);
    assert!(matches!(take_back(&world, 3), Err(AcceptError::NotAccepted)));
    assert_eq!(marks(&world), [Some(AcceptedPart::All), None, None]);
    world.open().undo_now(&undo_of("")).unwrap();
    assert!(!world.has("three"));
    world.assert_sound();
}

#[test]
fn a_path_is_accepted_as_it_is_and_what_is_done_to_it_later_is_not() {
    let world = World::new();
    three_turns(&world);
    accept(&world, &[], &["all"]).unwrap();
    assert_eq!(marks(&world), [Some(AcceptedPart::Some); 3]);
    let agent = Agent::new(&world, "s");
    agent.edits("four", &["all"], |world| {
        world.write("all", world.read("all").replace('4', "turn 4"));
    });
    world.open().undo_now(&undo_of("all")).unwrap();
    assert_eq!(world.read("all"), "turn 1\n2\nturn 2\n4\nturn 3\n");
    assert!(!world.has("one") && !world.has("three"));
    // With a turn, only its changes of that path.
    let none = accept(&world, &[1], &["three"]).unwrap_err();
    assert!(matches!(none, AcceptError::Nothing), "{none}");
}

#[test]
fn the_users_own_edits_and_turns_that_are_not_there_are_nothing_to_accept() {
    let world = World::new();
    three_turns(&world);
    world.write("mine", "mine");
    world.capture();
    assert!(matches!(accept(&world, &[], &["mine"]), Err(AcceptError::Nothing)));
    assert!(matches!(accept(&world, &[9], &[]), Err(AcceptError::Target(_))));
    assert!(matches!(take_back(&world, 1), Err(AcceptError::NotAccepted)));
    world.open().undo_now(&undo_of("t2")).unwrap();
    assert!(matches!(accept(&world, &[2], &[]), Err(AcceptError::Nothing)));
}

#[test]
fn whoever_listens_is_told_and_a_rewind_goes_to_its_moment_as_before() {
    let world = World::new();
    three_turns(&world);
    let cursor = world.open().cursor_now().unwrap();
    accept(&world, &[3], &[]).unwrap();
    let Since::Notices { notices, .. } = world.open().since(&cursor, 10).unwrap() else {
        panic!("it is the same view")
    };
    let [told] = &notices[..] else { panic!("{notices:?}") };
    let Notice::Accepted { paths, taken_back: false, .. } = &told.notice else { panic!("{told:?}") };
    assert_eq!(paths.iter().map(|path| &path.path[..]).collect::<Vec<_>>(), ["all", "three"]);
    world.rewind("t3");
    assert!(!world.has("three"));
    assert_eq!(world.open().accept(&AcceptOptions::default()).unwrap().files.len(), 3);
}
