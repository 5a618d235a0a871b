//! Undo takes back what is asked for and keeps everything else.

use piton_engine::model::WorkspacePath;
use piton_engine::model::content::Decision;
use piton_engine::model::inverse::Why;
use piton_engine::view::OperationOutcome;
use piton_engine::{
    Carry, Choice, ChosenError, OperationError, RedoOptions, RewindOptions, Settle, TargetError, UndoOptions, Which,
    Whose,
};
use piton_testkit::{Agent, World, undo_of};

fn undo(world: &World, asked: &str) -> OperationOutcome {
    let outcome = world.open().undo_now(&undo_of(asked)).unwrap_or_else(|e| panic!("undo {asked}: {e}"));
    assert!(outcome.verified, "{outcome:?}");
    outcome
}

fn undo_error(world: &World, options: &UndoOptions) -> OperationError {
    let before = world.snapshot();
    let error = world.open().undo_now(options).unwrap_err();
    world.assert_is(&before);
    error
}

/// Ends a chain of writing.
fn done(_: &World) {}

fn lines(numbers: std::ops::RangeInclusive<u32>) -> String {
    numbers.map(|n| format!("line {n}\n")).collect()
}

/// A project, three turns of an agent that edit different and common files, and the user in between.
fn a_project_with_three_turns(world: &World) {
    world.write("a", lines(1..=20)).write("b", "b\n").write("gone", "gone\n");
    let agent = Agent::new(world, "s");
    agent.edits("first", &["a", "new"], |w| {
        w.write("a", lines(1..=20).replace("line 2\n", "line two\n")).write("new/file", "new\n");
    });
    world.write("mine", "mine\n");
    agent.edits("second", &["a", "gone"], |w| {
        w.write("a", w.read("a").replace("line 10\n", "line ten\n")).remove("gone");
    });
    agent.edits("third", &["a", "b"], |w| {
        w.write("a", w.read("a").replace("line 18\n", "line eighteen\n")).write("b", "bb\n");
    });
}

#[test]
fn one_turn_in_the_middle_goes_and_the_others_stay() {
    let world = World::new();
    a_project_with_three_turns(&world);
    let outcome = undo(&world, "t2");
    assert_eq!(outcome.merged.iter().map(|p| &p.path[..]).collect::<Vec<_>>(), ["a"]);
    let expected = lines(1..=20).replace("line 2\n", "line two\n").replace("line 18\n", "line eighteen\n");
    assert_eq!(world.read("a"), expected);
    assert_eq!(
        (world.read("gone"), world.read("b"), world.read("mine")),
        ("gone\n".into(), "bb\n".into(), "mine\n".into())
    );
    // And again: there is nothing left of it.
    let error = undo_error(&world, &undo_of("t2"));
    assert!(matches!(error, OperationError::Chosen(ChosenError::Nothing { undone: true, .. })), "{error}");
    world.redo();
    assert!(world.read("a").contains("line ten"));
    undo(&world, "t2");
    world.assert_sound();
}

#[test]
fn without_words_the_last_turn_goes_and_then_the_one_before_it() {
    let world = World::new();
    a_project_with_three_turns(&world);
    undo(&world, "");
    assert_eq!(world.read("b"), "b\n");
    assert!(world.read("a").contains("line ten") && !world.read("a").contains("eighteen"));
    undo(&world, "");
    assert!(!world.read("a").contains("line ten"));
    undo(&world, "");
    assert_eq!(world.read("a"), lines(1..=20));
    assert!(!world.path("new").exists(), "the folder came with the file and goes with it");
    assert_eq!(world.read("mine"), "mine\n");
    let error = undo_error(&world, &undo_of(""));
    assert!(matches!(error, OperationError::Chosen(ChosenError::Nothing { undone: true, .. })), "{error}");
    for _ in 0..3 {
        world.redo();
    }
    assert!(world.read("a").contains("eighteen") && world.read("a").contains("two"));
    assert!(matches!(world.open().redo_now(&RedoOptions::default()), Err(OperationError::NothingToRedo)));
}

#[test]
fn numbers_lasts_steps_paths_owners_and_all_choose_their_changes() {
    let world = World::new();
    a_project_with_three_turns(&world);
    let start = world.snapshot();
    let back = |world: &World| {
        world.redo();
        world.assert_is(&start);
    };
    undo(&world, "1");
    assert!(!world.read("a").contains("two") && world.path("new/file").exists());
    back(&world);
    undo(&world, "last 2");
    assert!(!world.read("a").contains("eighteen") && world.read("b") == "b\n" && world.read("a").contains("ten"));
    back(&world);
    undo(&world, "t3.1");
    assert_eq!(world.read("b"), "b\n");
    back(&world);
    undo(&world, "all");
    assert_eq!((world.read("a"), world.read("mine")), (lines(1..=20), "mine\n".into()));
    back(&world);
    let path = |p: &str| WorkspacePath::new(p).unwrap();
    let of = |choice: Choice| UndoOptions { choice, ..UndoOptions::default() };
    world.open().undo_now(&of(Choice { paths: vec![path("a")], ..Choice::default() })).unwrap();
    assert_eq!((world.read("a"), world.read("b")), (lines(1..=20), "bb\n".into()));
    back(&world);
    world
        .open()
        .undo_now(&of(Choice { what: Some(Which::All), whose: Some(Whose::You), ..Choice::default() }))
        .unwrap();
    assert!(!world.path("mine").exists() && world.read("b") == "bb\n");
    back(&world);
    let between = Some(("t2".parse().unwrap(), "t3".parse().unwrap()));
    world.open().undo_now(&of(Choice { between, ..Choice::default() })).unwrap();
    assert!(!world.read("a").contains("ten") && world.read("a").contains("two"));
    back(&world);
    world
        .open()
        .undo_now(&of(Choice { what: Some(Which::Places(vec![(1, None), (3, None)])), ..Choice::default() }))
        .unwrap();
    assert_eq!(world.read("a"), lines(1..=20).replace("line 10\n", "line ten\n"));
    back(&world);

    let error = undo_error(&world, &undo_of("99"));
    assert!(matches!(error, OperationError::Chosen(ChosenError::NoNumber { number: 99, .. })), "{error}");
    let error = undo_error(&world, &undo_of("t9"));
    assert!(matches!(error, OperationError::Target(TargetError::NoTurn { .. })), "{error}");
    let error = undo_error(&world, &undo_of("t1.7"));
    assert!(matches!(error, OperationError::Target(TargetError::NoStep { .. })), "{error}");
    for bad in ["nonsense", "last x", "0", "t1 5", "t1.end", "s:t1 r:t2"] {
        assert!(Which::of_words(&bad.split_whitespace().collect::<Vec<_>>()).is_err(), "{bad}");
    }
}

#[test]
fn what_the_user_did_since_the_last_capture_is_theirs() {
    let world = World::new();
    a_project_with_three_turns(&world);
    // Nobody has captured this yet.
    world.write("a", world.read("a").replace("line 5\n", "line five\n")).write("fresh", "fresh\n");
    undo(&world, "all");
    assert_eq!(world.read("a"), lines(1..=20).replace("line 5\n", "line five\n"));
    assert_eq!(world.read("fresh"), "fresh\n");
    let mine = Choice { what: Some(Which::All), whose: Some(Whose::You), ..Choice::default() };
    world.open().undo_now(&UndoOptions { choice: mine.clone(), ..UndoOptions::default() }).unwrap();
    assert_eq!(world.read("a"), lines(1..=20));
    assert!(!world.path("fresh").exists() && !world.path("mine").exists());
    let again = undo_error(&world, &UndoOptions { choice: mine, ..UndoOptions::default() });
    assert!(matches!(again, OperationError::Chosen(ChosenError::NothingOfYours { undone: true, .. })), "{again}");
}

/// `--owner you` once took back everything of the user's, whatever turn was named with it.
#[test]
fn a_turn_of_the_users_own_changes_is_from_its_beginning_to_the_next_prompt() {
    let world = World::new();
    let agent = Agent::new(&world, "s");
    world.write("early", "1\n");
    agent.edits("first", &["a"], |w| done(w.write("a", "1\n")));
    world.write("between", "1\n");
    agent.prompt("second");
    world.write("in-second", "1\n");
    agent.step("Edit", &["a"], |w| done(w.write("a", "2\n")));
    world.write("in-step", "1\n");
    agent.step("Edit", &["b"], |w| done(w.write("b", "2\n")));
    agent.end_turn();
    world.write("after-second", "1\n");
    agent.edits("third", &["a"], |w| done(w.write("a", "3\n")));
    world.write("late", "1\n");
    let start = world.snapshot();
    let all = ["between", "in-second", "in-step", "after-second", "late", "a", "b"];
    for (asked, gone) in [
        ("t1", &["between"][..]),
        ("t2", &["in-second", "in-step", "after-second"]),
        ("t3", &["late"]),
        ("t2.1", &["in-step"]),
        ("t2.2", &["after-second"]),
        ("t1 t3", &["between", "late"]),
    ] {
        let mut options = undo_of(asked);
        options.choice.whose = Some(Whose::You);
        world.open().undo_now(&options).unwrap_or_else(|e| panic!("{asked}: {e}"));
        let left: Vec<&str> = all.into_iter().filter(|path| !world.path(path).exists()).collect();
        assert_eq!(left, gone, "{asked}");
        world.redo();
        world.assert_is(&start);
    }
    // With nothing else it is what came since the last prompt, and the title says so.
    let alone =
        UndoOptions { choice: Choice { whose: Some(Whose::You), ..Choice::default() }, ..UndoOptions::default() };
    let plan = world.open().plan_undo(&alone).unwrap();
    assert_eq!(plan.view().about.as_deref(), Some("your own changes during turn 3 “third”"));
    world.open().undo_now(&alone).unwrap();
    let left: Vec<&str> = all.into_iter().filter(|path| !world.path(path).exists()).collect();
    assert_eq!(left, ["late"]);
    world.redo();
    world.assert_is(&start);
    for (asked, said) in [("t99", "has no turn 99"), ("t2.9", "has no step 9"), ("3", "have none")] {
        let mut options = undo_of(asked);
        options.choice.whose = Some(Whose::You);
        let error = undo_error(&world, &options);
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn what_comes_after_a_sessions_last_turn_is_not_of_it_once_another_session_was_prompted() {
    let world = World::new();
    let agent = Agent::new(&world, "s");
    agent.edits("first", &["a"], |w| done(w.write("a", "1\n")));
    world.write("mine", "1\n");
    let other = Agent::new(&world, "r");
    other.edits("another", &["b"], |w| done(w.write("b", "1\n")));
    world.write("later", "1\n");
    let mut options = undo_of("s:t1");
    options.choice.whose = Some(Whose::You);
    world.open().undo_now(&options).unwrap();
    assert!(!world.path("mine").exists() && world.path("later").exists());
}

#[test]
fn what_an_interrupted_tool_wrote_is_found_and_left_alone_until_the_user_says_so() {
    let world = World::new();
    world.write("a", "a\n");
    let agent = Agent::new(&world, "s");
    agent.prompt("go");
    agent.before("1", "Bash", &[]);
    // The user presses escape: no after event comes.
    world.write("a", "written by the shell\n");
    let outcome = world.open().undo_now(&UndoOptions { interrupted: true, ..undo_of("") }).unwrap();
    assert_eq!(world.read("a"), "written by the shell\n");
    assert_eq!(outcome.unsure.len(), 1, "{outcome:?}");
    let unsure = Choice { unsure: true, ..Choice::default() };
    world.open().undo_now(&UndoOptions { choice: unsure, ..UndoOptions::default() }).unwrap();
    assert_eq!(world.read("a"), "a\n");
}

#[test]
fn a_conflict_writes_nothing_until_it_is_decided() {
    let world = World::new();
    world.write("a", lines(1..=9)).write("b", "b\n");
    let agent = Agent::new(&world, "s");
    agent.edits("go", &["a", "b"], |w| {
        w.write("a", lines(1..=9).replace("line 5\n", "agent\n").replace("line 1\n", "first\n")).write("b", "bb\n");
    });
    world.write("a", world.read("a").replace("agent\n", "user\n"));
    let before = world.snapshot();
    let plan = world.open().plan_undo(&undo_of("t1")).unwrap();
    let conflict = &plan.view().conflicts[0];
    assert_eq!((&conflict.path.path[..], conflict.why, conflict.decided), ("a", Why::SamePlace, false));
    assert_eq!(
        (&conflict.clashes[0].ours[..], &conflict.clashes[0].theirs[..]),
        (&["user".to_owned()][..], &["line 5".to_owned()][..])
    );
    let error = undo_error(&world, &undo_of("t1"));
    assert!(matches!(&error, OperationError::Conflict(all) if all.len() == 1), "{error}");

    let settle = |conflicts, partial| UndoOptions {
        settle: Settle { conflicts, partial, ..Settle::default() },
        ..undo_of("t1")
    };
    let with = |settle: &UndoOptions| world.open().undo_now(settle).unwrap();
    with(&settle(None, true));
    assert_eq!((world.read("b"), world.read("a").contains("user")), ("b\n".into(), true));
    // What was left alone can still be taken back.
    let error = undo_error(&world, &undo_of("t1"));
    assert!(matches!(&error, OperationError::Conflict(_)), "{error}");
    world.redo();
    world.assert_is(&before);
    with(&settle(Some(Decision::Ours), false));
    assert_eq!(world.read("a"), lines(1..=9).replace("line 5\n", "user\n"));
    world.redo();
    with(&settle(Some(Decision::Theirs), false));
    assert_eq!(world.read("a"), lines(1..=9));
    world.redo();
    with(&settle(Some(Decision::Markers), false));
    let marked = world.read("a");
    assert!(marked.contains("<<<<<<< now\nuser\n") && marked.contains("line 5\n>>>>>>> before\n"), "{marked}");
    world.redo();
    world.assert_is(&before);
    world.assert_sound();
}

#[test]
fn a_plan_that_went_stale_is_refused_and_nothing_is_written() {
    let world = World::new();
    a_project_with_three_turns(&world);
    let mut workspace = world.open();
    let plan = workspace.plan_undo(&undo_of("t3")).unwrap();
    world.write("b", "in the meantime\n");
    let before = world.snapshot();
    let error = workspace.carry_out(plan).unwrap_err();
    assert!(matches!(error, OperationError::Stale { .. }), "{error}");
    world.assert_is(&before);
    // Something else may change meanwhile.
    let plan = workspace.plan_undo(&undo_of("t2")).unwrap();
    world.write("log", "grows\n");
    workspace.carry_out(plan).unwrap();
    assert_eq!((world.read("log"), world.read("gone")), ("grows\n".into(), "gone\n".into()));
}

#[test]
fn a_plan_has_no_side_effect() {
    let world = World::new();
    a_project_with_three_turns(&world);
    world.write("a", world.read("a").replace("line 5\n", "line five\n"));
    let before = world.snapshot();
    let total = world.open().log(Default::default()).unwrap().total;
    world.open().plan_undo(&undo_of("all")).unwrap();
    world.assert_is(&before);
    assert_eq!(world.open().log(Default::default()).unwrap().total, total);
}

#[test]
fn the_edit_of_a_renamed_file_goes_along_to_its_old_name() {
    let world = World::new();
    world.write("src/old.rs", lines(1..=12));
    let agent = Agent::new(&world, "s");
    agent.runs("rename it", "git mv", |w| {
        w.folder("lib").rename("src/old.rs", "lib/new.rs");
    });
    world.write("lib/new.rs", lines(1..=12).replace("line 7\n", "line seven\n"));
    world.write("lib/mine", "mine\n");
    let outcome = undo(&world, "t1");
    assert_eq!(world.read("src/old.rs"), lines(1..=12).replace("line 7\n", "line seven\n"));
    assert!(!world.path("lib/new.rs").exists() && world.path("lib/mine").exists());
    // A move leaves nothing behind beside files.
    assert!(outcome.commands.is_empty(), "{:?}", outcome.commands);
    world.redo();
    assert_eq!(world.read("lib/new.rs"), lines(1..=12).replace("line 7\n", "line seven\n"));
    assert!(!world.path("src").exists() || std::fs::read_dir(world.path("src")).unwrap().next().is_none());
}

#[test]
fn two_sessions_in_one_file_are_undone_each_by_itself() {
    let world = World::new();
    world.write("a", lines(1..=20));
    let (one, other) = (Agent::new(&world, "one"), Agent::new(&world, "other"));
    one.edits("x", &["a"], |w| done(w.write("a", w.read("a").replace("line 3\n", "one\n"))));
    other.edits("y", &["a"], |w| done(w.write("a", w.read("a").replace("line 15\n", "other\n"))));
    let id = one.id();
    undo(&world, &format!("{id}:t1"));
    assert_eq!(world.read("a"), lines(1..=20).replace("line 15\n", "other\n"));
    undo(&world, &format!("{}:t1", other.id()));
    assert_eq!(world.read("a"), lines(1..=20));
}

#[test]
fn after_a_rewind_a_turn_that_it_went_past_is_not_in_effect_and_after_the_redo_it_is() {
    let world = World::new();
    a_project_with_three_turns(&world);
    world.rewind("t3");
    let error = undo_error(&world, &undo_of("t3"));
    assert!(matches!(error, OperationError::Chosen(ChosenError::Nothing { undone: true, .. })), "{error}");
    undo(&world, "");
    assert!(!world.read("a").contains("ten"), "turn 2 is the last one in effect");
    world.redo();
    world.redo();
    undo(&world, "t3");
    assert_eq!(world.read("b"), "b\n");
}

#[test]
fn a_redo_after_new_work_merges_and_the_new_work_stays_whose_it_is() {
    let world = World::new();
    a_project_with_three_turns(&world);
    world.rewind("t2");
    let agent = Agent::new(&world, "s");
    agent.edits("fourth", &["a", "c"], |w| {
        w.write("a", w.read("a").replace("line 6\n", "line six\n")).write("c", "c\n");
    });
    world.redo();
    let all = lines(1..=20)
        .replace("line 2\n", "line two\n")
        .replace("line 6\n", "line six\n")
        .replace("line 10\n", "line ten\n")
        .replace("line 18\n", "line eighteen\n");
    assert_eq!((world.read("a"), world.read("c"), world.read("b")), (all.clone(), "c\n".into(), "bb\n".into()));
    undo(&world, "t4");
    assert_eq!(world.read("a"), all.replace("line six\n", "line 6\n"));
    undo(&world, "t2");
    assert_eq!(
        world.read("a"),
        lines(1..=20).replace("line 2\n", "line two\n").replace("line 18\n", "line eighteen\n")
    );
    world.assert_sound();
}

#[test]
fn any_operation_can_be_taken_back_by_its_id_and_only_once() {
    let world = World::new();
    a_project_with_three_turns(&world);
    let first = undo(&world, "t1").operation.unwrap().id;
    undo(&world, "t3");
    let redo = |id: &str| world.open().redo_now(&RedoOptions { operation: Some(id.into()), ..RedoOptions::default() });
    redo(first.as_str()).unwrap();
    assert!(world.read("a").contains("two") && world.read("b") == "b\n");
    assert!(matches!(redo(first.as_str()), Err(OperationError::NotStanding(_))));
    let operations = world.open().operations().unwrap().operations;
    let said: Vec<_> = operations.iter().map(|o| (o.kind.as_str(), o.taken_back)).collect();
    assert_eq!(said, [("redo", false), ("undo", false), ("undo", true)]);
    assert!(operations[1].about.as_deref().unwrap().contains("third"), "{operations:?}");
    // Taking back the redo puts the undo in force again.
    redo(operations[0].id.as_str()).unwrap();
    assert!(!world.read("a").contains("two"));
    assert!(matches!(redo("zzzz"), Err(OperationError::Target(TargetError::UnknownOperation(_)))));
}

#[test]
fn a_rewind_that_keeps_mine_carries_the_users_edits_over() {
    let world = World::new();
    world.write("a", lines(1..=20)).write("b", "b\n");
    let agent = Agent::new(&world, "s");
    agent.edits("first", &["a", "b", "theirs"], |w| {
        w.write("a", w.read("a").replace("line 3\n", "agent\n")).write("b", "bb\n").write("theirs", "x\n");
    });
    world.write("a", world.read("a").replace("line 15\n", "user\n")).write("notes/mine", "mine\n");
    agent.edits("second", &["b", "notes/theirs"], |w| done(w.write("b", "bbb\n").write("notes/theirs", "x\n")));
    world.write("fresh", "fresh\n");
    let before = world.snapshot();

    let plan = world.open().plan_rewind("t1", &RewindOptions::default()).unwrap();
    let others: Vec<_> = plan.view().others.iter().map(|f| &f.path.path[..]).collect();
    assert_eq!(others, ["a", "fresh", "notes/mine"], "named before they are overwritten");

    let keep = RewindOptions { carry: Carry::Mine, ..RewindOptions::default() };
    let outcome = world.open().rewind_now("t1", &keep).unwrap();
    assert!(outcome.verified);
    assert_eq!(world.read("a"), lines(1..=20).replace("line 15\n", "user\n"));
    assert_eq!(
        (world.read("b"), world.read("notes/mine"), world.read("fresh")),
        ("b\n".into(), "mine\n".into(), "fresh\n".into())
    );
    assert!(!world.path("theirs").exists() && !world.path("notes/theirs").exists());
    // The user's own are still in effect, the agent's are not.
    let error = undo_error(&world, &undo_of("t1"));
    assert!(matches!(error, OperationError::Chosen(ChosenError::Nothing { undone: true, .. })), "{error}");
    let mine = Choice { what: Some(Which::All), whose: Some(Whose::You), ..Choice::default() };
    world.open().undo_now(&UndoOptions { choice: mine, ..UndoOptions::default() }).unwrap();
    assert_eq!(world.read("a"), lines(1..=20));
    world.redo();
    world.redo();
    world.assert_is(&before);

    // The same place: nothing is written until it is decided.
    world.write("a", world.read("a").replace("agent\n", "user here too\n"));
    let before = world.snapshot();
    let error = world.open().rewind_now("t1", &keep).unwrap_err();
    assert!(matches!(&error, OperationError::Conflict(all) if all[0].path.display() == "a"), "{error}");
    world.assert_is(&before);
}

#[test]
fn only_the_session_goes_back_and_other_sessions_stay() {
    let world = World::new();
    world.write("a", lines(1..=20));
    let (one, other) = (Agent::new(&world, "one"), Agent::new(&world, "other"));
    one.prompt("x");
    one.step("Edit", &["a"], |w| done(w.write("a", w.read("a").replace("line 3\n", "one\n"))));
    one.end_turn();
    other
        .edits("y", &["a", "b"], |w| done(w.write("a", w.read("a").replace("line 15\n", "other\n")).write("b", "b\n")));
    let target = format!("{}:t1", one.id());
    let options = RewindOptions { carry: Carry::Others, ..RewindOptions::default() };
    world.open().rewind_now(&target, &options).unwrap();
    assert_eq!((world.read("a"), world.read("b")), (lines(1..=20).replace("line 15\n", "other\n"), "b\n".into()));
}

#[test]
fn more_changes_than_are_listed_are_still_taken_back() {
    let world = World::new();
    world.write("keep", "k");
    let agent = Agent::new(&world, "s");
    agent.runs("unpack", "tar xf", |w| {
        for n in 0..5_100 {
            w.write(format!("d{}/f{n}", n % 20), n.to_string());
        }
    });
    world.write("d3/mine", "mine");
    let outcome = undo(&world, "t1");
    assert!(outcome.deleted.len() >= 5_100, "{}", outcome.deleted.len());
    assert_eq!(world.snapshot().bytes("d3/mine"), Some(&b"mine"[..]));
    assert!(!world.path("d4").exists());
    world.redo();
    assert!(world.path("d4/f4").exists());
}

#[test]
fn a_redo_right_after_a_rewind_of_a_moved_folder_over_a_file_is_clean() {
    let world = World::new();
    world.write("d/e/z", "z").write("d/y", "y");
    let id = world.capture();
    world.remove("d/y").rename("d/e", "d/y");
    let before = world.snapshot();
    world.rewind(&id);
    world.redo();
    world.assert_is(&before);
}

#[test]
fn a_folder_that_holds_only_what_is_not_captured_is_named_and_does_not_stand_before_earlier_turns() {
    let world = World::new();
    world.write(".gitignore", "node_modules/\n");
    let agent = Agent::new(&world, "s");
    agent.runs("one", "touch x", |w| done(w.write("x", "one\n")));
    agent.runs("two", "npm install", |w| done(w.write("web/node_modules/m", "m\n")));
    // By its number: it is said that the folder stays.
    let outcome = world.open().undo_now(&undo_of("t2")).unwrap();
    let not_done: Vec<_> = outcome.not_done.iter().map(|one| &one.path.path[..]).collect();
    assert_eq!((not_done, outcome.verified, outcome.operation.is_none()), (vec!["web"], false, true));
    let plan = world.open().plan_undo(&undo_of("t2")).unwrap();
    assert_eq!(plan.view().not_done.len(), 1);
    // Without a number, the last turn that can be taken back is meant.
    undo(&world, "");
    assert!(!world.path("x").exists() && world.path("web/node_modules/m").exists());
    // With nothing else left it is named again.
    let outcome = world.open().undo_now(&undo_of("")).unwrap();
    assert_eq!(outcome.not_done.len(), 1);
    // Once it can go, it goes.
    world.remove("web/node_modules");
    undo(&world, "");
    assert!(!world.path("web").exists());
    world.assert_sound();
}

#[test]
fn what_a_turn_made_beside_a_folder_that_must_stay_is_taken_back() {
    let world = World::new();
    world.write(".gitignore", "node_modules/\n");
    let agent = Agent::new(&world, "s");
    agent.runs("one", "npm install", |w| done(w.write("y", "1\n").write("web/node_modules/m", "m\n")));
    let outcome = world.open().undo_now(&undo_of("")).unwrap();
    let not_done: Vec<_> = outcome.not_done.iter().map(|one| &one.path.path[..]).collect();
    assert_eq!((not_done, outcome.verified), (vec!["web"], false));
    assert!(!world.path("y").exists() && world.path("web/node_modules/m").exists());
}

fn redo_with(world: &World, conflicts: Option<Decision>, partial: bool) -> Result<OperationOutcome, OperationError> {
    world
        .open()
        .redo_now(&RedoOptions { settle: Settle { conflicts, partial, ..Settle::default() }, ..RedoOptions::default() })
}

#[test]
fn a_redo_goes_on_with_what_a_partial_one_left() {
    let world = World::new();
    world.write("a", "1\n").write("b", "1\n");
    let first = world.capture();
    world.write("b", "other\n");
    world.rewind(&first);
    world.write("a", "2\n").write("b", "2\n");
    world.capture();
    let rewound = world.rewind(&first).operation.unwrap().id;
    world.write("a", "mine\n");
    let outcome = redo_with(&world, None, true).unwrap();
    let taken = outcome.operation.unwrap().id;
    assert_eq!((world.read("a"), world.read("b")), ("mine\n".into(), "2\n".into()));

    // What was done since to what came back already is in nobody's way.
    world.write("b", "since\n");
    let error = redo_with(&world, None, false).unwrap_err();
    assert!(matches!(&error, OperationError::Conflict(all) if all[0].path.display() == "a"), "{error}");
    let by_id = RedoOptions { operation: Some(rewound.to_string()), ..RedoOptions::default() };
    assert!(matches!(world.open().redo_now(&by_id), Err(OperationError::Conflict(_))));
    let outcome = redo_with(&world, Some(Decision::Theirs), false).unwrap();
    assert!(outcome.verified);
    assert_eq!((world.read("a"), world.read("b")), ("2\n".into(), "since\n".into()));

    // Now it is taken back whole, and the one before it is next.
    assert!(matches!(world.open().redo_now(&by_id), Err(OperationError::NotStanding(_))));
    world.write("b", "1\n");
    world.redo();
    assert_eq!(world.read("b"), "other\n");
    assert!(matches!(redo_with(&world, None, false), Err(OperationError::NothingToRedo)));
    // The redo in part can be taken back by itself, and then there is nothing left of it to go on with.
    let by_id = RedoOptions { operation: Some(taken.to_string()), ..RedoOptions::default() };
    assert!(world.open().plan_redo(&by_id).is_ok());
    world.assert_sound();
}

#[test]
fn a_conflict_that_a_partial_redo_left_is_decided_for_what_is_there_now() {
    let world = World::new();
    world.write("a", "1\n").write("b", "1\n");
    let first = world.capture();
    world.write("a", "2\n").write("b", "2\n");
    world.rewind(&first);
    world.write("a", "mine\n");
    redo_with(&world, None, true).unwrap();
    let outcome = redo_with(&world, Some(Decision::Ours), false).unwrap();
    assert!(outcome.already, "it counts as taken back: {outcome:?}");
    assert_eq!(world.read("a"), "mine\n");
    assert!(matches!(redo_with(&world, None, false), Err(OperationError::NothingToRedo)));
}

#[test]
fn a_redo_goes_on_with_a_path_that_could_not_be_restored() {
    let world = World::new();
    world.write("a", "1\n").write("b", "1\n");
    let first = world.capture();
    world.write("a", "2\n").write("b", "2\n");
    world.rewind(&first);
    world.remove("a");
    assert!(std::process::Command::new("mkfifo").arg(world.path("a")).status().unwrap().success());
    let outcome = redo_with(&world, None, false).unwrap();
    assert_eq!(outcome.not_done[0].path.path, "a");
    assert_eq!(world.read("b"), "2\n");
    world.remove("a").write("a", "1\n").write("b", "since\n");
    assert!(redo_with(&world, None, false).unwrap().verified);
    assert_eq!((world.read("a"), world.read("b")), ("2\n".into(), "since\n".into()));
    assert!(matches!(redo_with(&world, None, false), Err(OperationError::NothingToRedo)));
}

/// What came back with the first part and was taken out again since does not come back with the second.
#[test]
fn the_rest_of_a_redo_leaves_what_was_undone_in_between() {
    let world = World::new();
    world.write("a", "1\n").write("b", "1\n");
    let agent = Agent::new(&world, "s");
    agent.edits("first", &["a"], |w| done(w.write("a", "2\n")));
    agent.edits("second", &["b"], |w| done(w.write("b", "2\n")));
    let rewound = world.rewind("t1").operation.unwrap().id;
    world.write("a", "mine\n");
    redo_with(&world, None, true).unwrap();
    undo(&world, "t2");
    let settle = Settle { conflicts: Some(Decision::Theirs), partial: false, ..Settle::default() };
    let rest = RedoOptions { operation: Some(rewound.to_string()), settle, ..RedoOptions::default() };
    world.open().redo_now(&rest).unwrap();
    assert_eq!((world.read("a"), world.read("b")), ("2\n".into(), "1\n".into()));
    let error = undo_error(&world, &undo_of("t2"));
    assert!(matches!(error, OperationError::Chosen(ChosenError::Nothing { undone: true, .. })), "{error}");
    undo(&world, "t1");
    assert_eq!(world.read("a"), "1\n");
}

#[test]
fn what_was_taken_back_of_another_session_stays_taken_back_by_a_rewind_of_one_alone() {
    let world = World::new();
    world.write("mine", lines(1..=5)).write("f", "1\n");
    let (one, other) = (Agent::new(&world, "one"), Agent::new(&world, "other"));
    one.runs("delete it", "rm mine", |w| done(w.remove("mine")));
    other.edits("edit", &["f"], |w| done(w.write("f", "2\n")));
    undo(&world, &format!("{}:t1", one.id()));
    let here = world.snapshot();
    let options = RewindOptions { carry: Carry::Others, ..RewindOptions::default() };
    world.open().rewind_now(&format!("{}:t1", other.id()), &options).unwrap();
    assert_eq!((world.read("mine"), world.read("f")), (lines(1..=5), "1\n".into()));
    // It is still what was taken back: there is nothing of it left to undo.
    let error = undo_error(&world, &undo_of(&format!("{}:t1", one.id())));
    assert!(matches!(error, OperationError::Chosen(ChosenError::Nothing { undone: true, .. })), "{error}");
    world.redo();
    world.assert_is(&here);
}
