//! Files that were moved are followed: what somebody wrote in one is never lost, and is never put into another.

use piton_engine::model::Except;
use piton_engine::model::WorkspacePath;
use piton_engine::model::content::Decision;
use piton_engine::model::inverse::Why;
use piton_engine::view::{OperationOutcome, PlanView};
use piton_engine::{Carry, Choice, OperationError, RewindOptions, Settle, UndoOptions};
use piton_testkit::{Agent, World, undo_of};

const PARTIAL: Settle = Settle { conflicts: None, partial: true, except: Except::NOTHING };

fn undo(world: &World, options: &UndoOptions) -> OperationOutcome {
    let outcome = world.open().undo_now(options).unwrap_or_else(|e| panic!("{options:?}: {e}"));
    assert!(outcome.verified, "{outcome:?}");
    outcome
}

fn partial(words: &str) -> UndoOptions {
    UndoOptions { settle: PARTIAL, ..undo_of(words) }
}

fn keep_mine(settle: Settle) -> RewindOptions {
    RewindOptions { carry: Carry::Mine, settle, ..RewindOptions::default() }
}

/// Ten lines, some of them changed.
fn lines(changed: &[(usize, &str)]) -> String {
    let line = |n: usize| match changed.iter().find(|(at, _)| *at == n) {
        Some((_, text)) => format!("{text}\n"),
        None => format!("line {n}\n"),
    };
    (1..=10).map(line).collect()
}

/// Ends a chain of writing.
fn done(_: &World) {}

/// The conflicts of a plan: each with all its paths.
fn conflicts(plan: &PlanView) -> Vec<(String, Why)> {
    let of = |conflict: &piton_engine::view::ConflictView| {
        let others = conflict.others.iter().map(|path| format!("+{}", path.path));
        (format!("{}{}", conflict.path.path, others.collect::<String>()), conflict.why)
    };
    plan.conflicts.iter().map(of).collect()
}

#[test]
fn a_file_in_conflict_that_was_moved_is_left_where_it_is() {
    let world = World::new();
    world.write("f", lines(&[])).write("other", "1\n");
    let agent = Agent::new(&world, "s");
    agent.edits("edit", &["f", "other"], |w| done(w.write("f", lines(&[(5, "agent")])).write("other", "2\n")));
    world.write("f", lines(&[(5, "user")]));
    agent.runs("move", "mv f g", |w| done(w.rename("f", "g")));
    let plan = world.open().plan_undo(&undo_of("all")).unwrap();
    assert_eq!(conflicts(plan.view()), [("g+f".to_owned(), Why::SamePlace)]);
    undo(&world, &partial("all"));
    assert_eq!((world.read("g"), world.read("other")), (lines(&[(5, "user")]), "1\n".to_owned()));
    assert!(!world.has("f"));
    world.redo();
    assert_eq!(world.read("other"), "2\n");
}

#[test]
fn what_the_user_moved_and_edited_stays_where_it_cannot_be_carried_over() {
    let world = World::new();
    world.write("f", lines(&[]));
    let agent = Agent::new(&world, "s");
    agent.edits("edit", &["f"], |w| done(w.write("f", lines(&[(5, "agent")]))));
    world.rename("f", "g").write("g", lines(&[(5, "user")]));
    let error = world.open().rewind_now("t1", &keep_mine(Settle::default())).unwrap_err();
    assert!(matches!(&error, OperationError::Conflict(found) if found[0].paths().count() == 2), "{error}");
    world.open().rewind_now("t1", &keep_mine(PARTIAL)).unwrap();
    assert_eq!(world.read("g"), lines(&[(5, "user")]));
    assert!(!world.has("f"));
    // At another place of the file it is carried over, to where the user moved it.
    world.write("g", lines(&[(5, "agent"), (9, "user")]));
    world.open().rewind_now("t1", &keep_mine(Settle::default())).unwrap();
    assert_eq!(world.read("g"), lines(&[(9, "user")]));
    assert!(!world.has("f"));
}

#[test]
fn a_chain_of_moves_is_followed_to_its_end() {
    for captured in [true, false] {
        let world = World::new();
        world.write("f", lines(&[]));
        let agent = Agent::new(&world, "s");
        agent.runs("move", "mv f g", |w| done(w.rename("f", "g")));
        world.write("g", lines(&[(5, "user")]));
        agent.runs("move on", "mv g h", |w| done(w.rename("g", "h")));
        if !captured {
            world.write("h", lines(&[(5, "user"), (9, "user too")]));
        }
        let here = world.snapshot();
        undo(&world, &partial("all"));
        let expected = if captured { lines(&[(5, "user")]) } else { lines(&[(5, "user"), (9, "user too")]) };
        assert_eq!(world.read("f"), expected);
        assert!(!world.has("g") && !world.has("h"));
        world.redo();
        world.assert_is(&here);
    }
}

#[test]
fn a_move_an_edit_of_the_user_and_an_edit_of_the_agent_merge_along_the_chain() {
    let world = World::new();
    world.write("f", lines(&[]));
    let agent = Agent::new(&world, "s");
    agent.runs("move", "mv f g", |w| done(w.rename("f", "g")));
    world.write("g", lines(&[(2, "user")]));
    agent.edits("edit", &["g"], |w| done(w.write("g", lines(&[(2, "user"), (8, "agent")]))));
    undo(&world, &undo_of("all"));
    assert_eq!(world.read("f"), lines(&[(2, "user")]));
    assert!(!world.has("g"));
}

#[test]
fn what_piton_itself_moved_is_not_forgotten() {
    let world = World::new();
    world.write("f", lines(&[])).write("other", "1\n");
    let agent = Agent::new(&world, "s");
    agent.edits("edit another", &["other"], |w| done(w.write("other", "2\n")));
    agent.runs("move", "mv f g", |w| done(w.rename("f", "g")));
    world.write("g", lines(&[(5, "user")]));
    undo(&world, &undo_of("t2"));
    assert_eq!(world.read("f"), lines(&[(5, "user")]));
    let here = world.snapshot();
    world.open().rewind_now("t1", &keep_mine(Settle::default())).unwrap();
    assert_eq!((world.read("f"), world.read("other")), (lines(&[(5, "user")]), "1\n".to_owned()));
    assert!(!world.has("g"));
    world.redo();
    world.assert_is(&here);
    // And the user's own edit is still theirs to take back, wherever it is now.
    let mine =
        Choice { what: Some(piton_engine::Which::All), whose: Some(piton_engine::Whose::You), ..Choice::default() };
    undo(&world, &UndoOptions { choice: mine, ..UndoOptions::default() });
    assert_eq!(world.read("f"), lines(&[]));
    world.assert_sound();
}

#[test]
fn twins_are_paired_by_their_names_and_folders() {
    let world = World::new();
    world.write("src/a/__init__.py", lines(&[])).write("src/b/__init__.py", lines(&[]));
    let agent = Agent::new(&world, "s");
    agent.runs("move", "mv src lib", |w| done(w.rename("src", "lib")));
    world.write("lib/b/__init__.py", lines(&[(5, "user")]));
    undo(&world, &undo_of("t1"));
    assert_eq!(world.read("src/a/__init__.py"), lines(&[]));
    assert_eq!(world.read("src/b/__init__.py"), lines(&[(5, "user")]));
    assert!(!world.has("lib"));
}

#[test]
fn where_nobody_can_tell_which_became_which_it_is_a_conflict() {
    let world = World::new();
    world.write("x", lines(&[])).write("y", lines(&[]));
    let agent = Agent::new(&world, "s");
    agent.runs("move", "mv", |w| done(w.rename("x", "u").rename("y", "v")));
    world.write("v", lines(&[(5, "user")]));
    let plan = world.open().plan_undo(&undo_of("t1")).unwrap();
    assert_eq!(conflicts(plan.view()), [("v".to_owned(), Why::Edited)]);
    undo(&world, &partial("t1"));
    assert_eq!((world.read("x"), world.read("v")), (lines(&[]), lines(&[(5, "user")])));
}

#[test]
fn empty_files_are_no_pair() {
    let world = World::new();
    world.write("d/.gitkeep", "");
    let agent = Agent::new(&world, "s");
    agent.runs("replace", "rm, touch", |w| done(w.remove("d/.gitkeep").write("d/__init__.py", "")));
    world.write("d/__init__.py", lines(&[]));
    undo(&world, &partial("t1"));
    assert_eq!((world.read("d/.gitkeep"), world.read("d/__init__.py")), (String::new(), lines(&[])));
}

#[test]
fn the_other_half_of_a_move_goes_along() {
    let path = |path: &str| WorkspacePath::new(path).unwrap();
    let moved = || {
        let world = World::new();
        world.write("f", lines(&[])).write("rest", "1\n");
        let agent = Agent::new(&world, "s");
        agent.runs("move", "mv f lib/g", |w| done(w.folder("lib").rename("f", "lib/g")));
        world
    };
    let only = |path: &str| Choice { paths: vec![WorkspacePath::new(path).unwrap()], ..Choice::default() };
    for choice in [only("lib"), undo_of("2").choice, undo_of("1").choice, undo_of("last").choice] {
        let world = moved();
        let here = world.snapshot();
        let options = UndoOptions { choice, ..UndoOptions::default() };
        let plan = world.open().plan_undo(&options).unwrap();
        let along: Vec<_> = plan.view().along.iter().map(|one| (&one.path.path[..], &one.with.path[..])).collect();
        assert!(along == [("f", "lib/g")] || along == [("lib/g", "f")], "{along:?}");
        undo(&world, &options);
        assert_eq!(world.read("f"), lines(&[]));
        assert!(!world.has("lib/g"));
        world.redo();
        world.assert_is(&here);
    }
    let world = moved();
    let options = RewindOptions { paths: vec![path("lib/g")], ..RewindOptions::default() };
    let plan = world.open().plan_rewind("t1", &options).unwrap();
    assert_eq!(plan.view().along.iter().map(|one| &one.path.path[..]).collect::<Vec<_>>(), ["f"]);
    world.open().rewind_now("t1", &options).unwrap();
    assert_eq!(world.read("f"), lines(&[]));
    assert!(!world.has("lib/g"));
}

#[test]
fn a_file_that_was_moved_and_edited_and_that_no_checkpoint_has_is_carried_over() {
    let world = World::new();
    world.write("f", lines(&[])).write("other", "1\n");
    let agent = Agent::new(&world, "s");
    agent.edits("edit", &["other"], |w| done(w.write("other", "2\n")));
    world.rename("f", "g").write("g", lines(&[(5, "user")]));
    world.open().rewind_now("t1", &keep_mine(Settle::default())).unwrap();
    assert_eq!((world.read("g"), world.read("other")), (lines(&[(5, "user")]), "1\n".to_owned()));
    assert!(!world.has("f"));
}

#[test]
fn a_file_that_the_user_moved_on_is_a_conflict_that_names_every_place() {
    let world = World::new();
    world.write("f", lines(&[]));
    let agent = Agent::new(&world, "s");
    agent.runs("move", "mv f g", |w| done(w.rename("f", "g")));
    world.rename("g", "h");
    let plan = world.open().plan_undo(&undo_of("t1")).unwrap();
    assert_eq!(conflicts(plan.view()), [("h+f+g".to_owned(), Why::Moved)]);
    // An edit before the move is found where the file is now.
    let world = World::new();
    world.write("f", lines(&[]));
    let agent = Agent::new(&world, "s");
    agent.edits("edit", &["f"], |w| done(w.write("f", lines(&[(2, "agent")]))));
    world.rename("f", "h");
    undo(&world, &undo_of("t1"));
    assert_eq!(world.read("h"), lines(&[]));
    assert!(!world.has("f"));
}

#[test]
fn a_new_file_at_the_old_place_is_not_overwritten() {
    let world = World::new();
    world.write("f", lines(&[]));
    let agent = Agent::new(&world, "s");
    agent.runs("move", "mv f g", |w| done(w.rename("f", "g")));
    world.write("f", "mine\n");
    let plan = world.open().plan_undo(&undo_of("t1")).unwrap();
    assert_eq!(conflicts(plan.view()), [("g+f".to_owned(), Why::NoRoom)]);
    let error = world.open().undo_now(&partial("t1"));
    assert!(matches!(error, Ok(ref outcome) if outcome.verified) || error.is_err());
    assert_eq!((world.read("f"), world.read("g")), ("mine\n".to_owned(), lines(&[])));
    world.open().rewind_now("t1", &keep_mine(PARTIAL)).unwrap();
    assert_eq!((world.read("f"), world.read("g")), ("mine\n".to_owned(), lines(&[])));
}

#[test]
fn a_file_is_followed_also_where_something_else_takes_its_place() {
    let world = World::new();
    world.write("f", lines(&[])).write("g", "another\n");
    let agent = Agent::new(&world, "s");
    agent.edits("begin", &["f"], |w| done(w.write("f", lines(&[(2, "agent")]))));
    world.write("f", lines(&[(2, "agent"), (9, "user")]));
    agent.runs("move", "mv f g; ln -s nowhere f", |w| done(w.remove("g").rename("f", "g").link("f", "nowhere")));
    let here = world.snapshot();
    undo(&world, &undo_of("all"));
    assert_eq!((world.read("f"), world.read("g")), (lines(&[(9, "user")]), "another\n".to_owned()));
    world.redo();
    world.assert_is(&here);
    // Two that change places.
    let world = World::new();
    world.write("a", lines(&[])).write("b", "1\n2\n3\n4\n");
    let agent = Agent::new(&world, "s");
    agent.runs("swap", "mv", |w| done(w.rename("a", "x").rename("b", "a").rename("x", "b")));
    world.write("b", lines(&[(9, "user")]));
    undo(&world, &undo_of("t1"));
    assert_eq!((world.read("a"), world.read("b")), (lines(&[(9, "user")]), "1\n2\n3\n4\n".to_owned()));
}

#[test]
fn a_file_that_is_edited_moved_and_replaced_in_one_call_is_not_lost() {
    let world = World::new();
    world.write("app", lines(&[]));
    let agent = Agent::new(&world, "s");
    agent.runs("nothing", "make", |_| {});
    world.write("app", lines(&[(9, "user")]));
    agent.runs("move", "sed, mv, echo", |w| {
        done(w.write("core", lines(&[(1, "agent"), (9, "user")])).write("app", "import core\n"));
    });
    undo(&world, &undo_of("all"));
    assert_eq!(world.read("app"), lines(&[(9, "user")]));
    assert!(!world.has("core"));
}

#[test]
fn what_goes_along_takes_the_other_half_of_its_own_along() {
    let path = |path: &str| WorkspacePath::new(path).unwrap();
    let moved = || {
        let world = World::new();
        world.write("a", lines(&[(3, "user a")])).write("e", "x\ny\nuser e\n");
        let agent = Agent::new(&world, "s");
        agent.runs("move", "mv a b; mv e a", |w| done(w.rename("a", "b").rename("e", "a")));
        world
    };
    let is_back = |world: &World| {
        assert_eq!((world.read("a"), world.read("e")), (lines(&[(3, "user a")]), "x\ny\nuser e\n".to_owned()));
        assert!(!world.has("b"));
    };
    let world = moved();
    let choice = Choice { paths: vec![path("b")], ..Choice::default() };
    undo(&world, &UndoOptions { choice, ..UndoOptions::default() });
    is_back(&world);
    let world = moved();
    let options = RewindOptions { paths: vec![path("b")], ..RewindOptions::default() };
    world.open().rewind_now("t1", &options).unwrap();
    is_back(&world);
}

#[test]
fn an_undo_that_was_taken_back_can_be_done_again() {
    let world = World::new();
    world.write("g", "a\nb\nc\nd\n");
    let agent = Agent::new(&world, "s");
    agent.runs("move", "mv g h", |w| done(w.rename("g", "h")));
    let long = "a\nb\nc\nd\nlong\nlonger\nlongest\nlonger still\nand more\nand more\n";
    agent.edits("edit", &["h"], |w| done(w.write("h", long)));
    for _ in 0..2 {
        undo(&world, &undo_of("all"));
        assert_eq!(world.read("g"), "a\nb\nc\nd\n");
        assert!(!world.has("h"));
        world.redo();
        assert_eq!(world.read("h"), long);
        assert!(!world.has("g"));
    }
}

/// What the user wrote last, and the agent put into another file of its own and deleted in one call.
fn absorbed() -> World {
    let world = World::new();
    world.write("lib.py", "def lib(): pass\n");
    let agent = Agent::new(&world, "s");
    agent.runs("edit", "./note.sh", |w| done(w.write("lib.py", "def lib(): pass\n# agent\n")));
    world.write("old.py", "def mine():\n    return 42\n");
    agent.runs("join", "./join.sh", |w| {
        done(w.write("lib.py", "def lib(): pass\n# agent\ndef mine():\n    return 42\n").remove("old.py"));
    });
    world
}

#[test]
fn a_file_whose_deletion_may_be_the_agents_comes_back_with_what_is_taken_back() {
    let world = absorbed();
    let here = world.snapshot();
    let plan = world.open().plan_undo(&undo_of("")).unwrap();
    assert_eq!(plan.view().unsure_back[0].path.path, "old.py");
    assert!(plan.view().unsure.is_empty(), "{:?}", plan.view().unsure);
    let outcome = undo(&world, &undo_of(""));
    assert_eq!(outcome.unsure_back[0].path.path, "old.py");
    assert_eq!(world.read("old.py"), "def mine():\n    return 42\n");
    assert_eq!(world.read("lib.py"), "def lib(): pass\n# agent\n");
    world.redo();
    world.assert_is(&here);

    let world = absorbed();
    let outcome = world.open().rewind_now("t2", &keep_mine(Settle::default())).unwrap();
    assert_eq!(outcome.unsure_back[0].path.path, "old.py");
    assert_eq!(world.read("old.py"), "def mine():\n    return 42\n");
    let world = absorbed();
    world.open().rewind_now("t1", &keep_mine(Settle::default())).unwrap();
    assert_eq!(world.read("old.py"), "def mine():\n    return 42\n");
    assert_eq!(world.read("lib.py"), "def lib(): pass\n");

    // What somebody put there since is not touched.
    let world = absorbed();
    world.write("old.py", "new\n");
    let plan = world.open().plan_undo(&undo_of("")).unwrap();
    assert_eq!(conflicts(plan.view()), [("lib.py+old.py".to_owned(), Why::Lines)]);
    world.open().undo_now(&partial("")).unwrap();
    assert_eq!(world.read("old.py"), "new\n");
    assert!(world.read("lib.py").contains("def mine"));
}

#[test]
fn lines_stay_where_they_were_put_as_long_as_the_file_that_they_came_from_stays() {
    // The agent split a file that the user had edited last: nobody knows whose the change of that one is.
    let world = World::new();
    world.write("a", lines(&[]));
    let agent = Agent::new(&world, "s");
    agent.runs("other", "make", |w| done(w.write("other", "1\n")));
    world.write("a", lines(&[(8, "what the user wrote")]));
    let whole = world.read("a");
    let (head, tail) = whole.split_at(whole.find("line 6").unwrap());
    agent.runs("split", "./split.sh", |w| done(w.write("b", tail).write("a", head)));
    let here = world.snapshot();
    let plan = world.open().plan_undo(&undo_of("")).unwrap();
    assert_eq!(conflicts(plan.view()), [("b+a".to_owned(), Why::Lines)]);
    assert!(world.open().undo_now(&undo_of("")).is_err());
    world.open().undo_now(&partial("")).unwrap();
    world.assert_is(&here);
    let unsure = Choice { unsure: true, ..undo_of("").choice };
    undo(&world, &UndoOptions { choice: unsure, ..UndoOptions::default() });
    assert_eq!(world.read("a"), whole);
    assert!(!world.has("b"));
    world.redo();

    // Where the change of the user's file is carried over, what came out of it stays too.
    world.assert_is(&here);
    let plan = world.open().plan_rewind("t2", &keep_mine(Settle::default())).unwrap();
    assert_eq!(conflicts(plan.view()), [("b+a".to_owned(), Why::Lines)]);
    assert!(world.open().rewind_now("t2", &keep_mine(Settle::default())).is_err());
    let _ = world.open().rewind_now("t2", &keep_mine(PARTIAL));
    world.assert_is(&here);
    let ours = Settle { conflicts: Some(Decision::Ours), ..Settle::default() };
    world.open().rewind_now("t1", &keep_mine(ours)).unwrap();
    assert_eq!((world.read("a") + &world.read("b"), world.has("other")), (whole.clone(), false));
    world.redo();
    world.assert_is(&here);
    let theirs = Settle { conflicts: Some(Decision::Theirs), ..Settle::default() };
    let outcome = world.open().rewind_now("t2", &keep_mine(theirs)).unwrap();
    assert_eq!(outcome.deleted.iter().map(|path| &path.path[..]).collect::<Vec<_>>(), ["b"]);
    world.redo();
    world.assert_is(&here);
    // With only some paths the new file is not asked about.
    let only = RewindOptions { paths: vec![WorkspacePath::new("other").unwrap()], ..keep_mine(Settle::default()) };
    world.open().rewind_now("t1", &only).unwrap();
    assert!(world.has("b") && !world.has("other"));

    // All of it is the agent's, and the rest of the file is in conflict.
    let world = World::new();
    world.write("a", lines(&[]));
    let agent = Agent::new(&world, "s");
    let (head, tail) = (lines(&[]).split_at(35).0.to_owned(), lines(&[]).split_at(35).1.to_owned());
    agent.runs("split", "./split.sh", |w| done(w.write("b", &tail).write("a", head.replace("line 5", "agent"))));
    world.write("a", head.replace("line 5", "user"));
    let here = world.snapshot();
    world.open().undo_now(&partial("")).unwrap();
    world.assert_is(&here);
}

/// The agent puts `b` into `d/a`, and the user moves that file to where `b` was.
#[test]
fn a_path_in_conflict_stays_as_it_is_also_where_another_file_was_moved_there() {
    let world = World::new();
    let of_b = (0..6).map(|at| format!("b {at}\n")).collect::<String>();
    let of_a = (0..6).map(|at| format!("a {at}\n")).collect::<String>();
    world.write("b", &of_b).write("d/a", &of_a);
    let agent = Agent::new(&world, "s");
    agent.runs("merge", "cat b >>d/a; rm b", |w| done(w.write("d/a", format!("{of_a}{of_b}")).remove("b")));
    world.rename("d/a", "b");
    let here = world.snapshot();
    world.open().undo_now(&partial("t1")).unwrap();
    world.assert_is(&here);
}

#[test]
fn what_only_goes_along_and_holds_edits_of_others_is_not_overwritten() {
    let path = |path: &str| WorkspacePath::new(path).unwrap();
    let world = World::new();
    world.write("f", "of f\n".repeat(5)).write("h", "of h\n".repeat(5)).write("rest/g", "1\n");
    let agent = Agent::new(&world, "s");
    agent.runs("swap", "mv f t; mv h f; mv t h", |w| {
        done(w.rename("f", "t").rename("h", "f").rename("t", "h").write("rest/g", "2\n"));
    });
    let swapped = world.snapshot();
    let only = |paths: &[&str], settle| {
        let paths = paths.iter().map(|one| path(one)).collect();
        RewindOptions { paths, settle, ..RewindOptions::default() }
    };
    let outcome = world.open().rewind_now("t1", &only(&["f"], Settle::default())).unwrap();
    assert_eq!(outcome.along.iter().map(|one| &one.path.path[..]).collect::<Vec<_>>(), ["h"]);
    world.redo();
    world.assert_is(&swapped);
    world.write("h", format!("{}mine\n", "of f\n".repeat(5)));
    let here = world.snapshot();
    let plan = world.open().plan_rewind("t1", &only(&["f"], Settle::default())).unwrap();
    assert_eq!(conflicts(plan.view()), [("h+f".to_owned(), Why::Along)]);
    world.open().rewind_now("t1", &only(&["f"], Settle::default())).unwrap_err();
    world.assert_is(&here);
    world.open().rewind_now("t1", &only(&["f", "rest"], PARTIAL)).unwrap();
    assert_eq!((world.read("rest/g"), world.read("f")), ("1\n".to_owned(), "of h\n".repeat(5)));
    assert!(world.read("h").ends_with("mine\n"));
    // Who names it means it, and is told.
    let outcome = world.open().rewind_now("t1", &only(&["f", "h"], Settle::default())).unwrap();
    assert_eq!(outcome.others.iter().map(|one| &one.path.path[..]).collect::<Vec<_>>(), ["h"]);
    assert_eq!(world.read("f"), "of f\n".repeat(5));
}

/// Files in a folder that is renamed keep their times: they are of whoever renamed it all the same.
#[test]
fn a_folder_that_a_command_moved_is_the_commands_and_goes_back_as_one() {
    let world = World::new();
    world.write("src/a/1", "1\n").write("src/a/2", "2\n");
    std::thread::sleep(std::time::Duration::from_millis(50));
    let agent = Agent::new(&world, "s1");
    agent.prompt("zero");
    let before = world.snapshot();
    std::thread::sleep(std::time::Duration::from_millis(50));
    agent.runs("one", "mv src lib", |world| {
        world.rename("src", "lib");
    });
    world.write("lib/mine", "mine\n");
    let plan = world.open().plan_undo(&UndoOptions::default()).unwrap();
    assert_eq!((plan.view().deleted.len(), plan.view().created.len(), plan.view().unsure.len()), (2, 2, 0));
    world.open().undo_now(&UndoOptions::default()).unwrap();
    world.remove("lib/mine").remove("lib");
    world.assert_is(&before);
}

/// Git's own folder is never written, so that an undo of `mv` of a nested repository leaves it behind.
#[test]
fn a_moved_repository_whose_files_go_back_is_said_to_be_torn() {
    let world = World::new();
    world.write("n/f", "1\n").write("n/sub/g", "2\n");
    piton_testkit::git(&world.path("n"), &["init", "-q"]);
    let agent = Agent::new(&world, "s");
    agent.runs("move", "mv n m", |w| done(w.rename("n", "m")));
    let torn = |torn: &[piton_engine::view::TornView]| -> Vec<(String, String)> {
        torn.iter().map(|one| (one.from.path.clone(), one.to.path.clone())).collect()
    };
    let expected = [("m".to_owned(), "n".to_owned())];
    let plan = world.open().plan_undo(&undo_of("t1")).unwrap();
    assert_eq!(torn(&plan.view().torn), expected);
    let outcome = world.open().undo_now(&undo_of("t1")).unwrap();
    assert_eq!(torn(&outcome.torn), expected);
    assert!(world.path("m/.git").is_dir() && world.has("n/sub/g") && !world.path("n/.git").exists());
}

/// `b` is where `a` was and nothing else of it is new, so nothing was deleted that nobody had seen.
#[test]
fn a_file_that_moves_back_is_not_called_deleted_unseen() {
    let world = World::new();
    world.write("a", lines(&[])).write("c", "1\n");
    let agent = Agent::new(&world, "s");
    agent.edits("edit", &["c"], |w| done(w.write("c", "2\n")));
    world.rename("a", "b").write("new", "n\n");
    let outcome = world.open().rewind_now("t1", &RewindOptions::default()).unwrap();
    assert!(world.has("a") && !world.has("b"));
    assert_eq!(outcome.deleted_new.iter().map(|path| &path.path[..]).collect::<Vec<_>>(), ["new"]);
}

/// The edit is nowhere but in the file at its new place.
#[test]
fn the_preview_of_a_move_shows_an_edit_that_nobody_has_captured() {
    let world = World::new();
    world.write("f", lines(&[]));
    let agent = Agent::new(&world, "s");
    agent.runs("move", "mv f g", |w| done(w.rename("f", "g")));
    world.write("g", lines(&[(5, "mine")]));
    let workspace = world.open();
    let plan = workspace.plan_undo(&undo_of("t1")).unwrap();
    let diff = workspace.plan_diff(&plan, 3).unwrap();
    assert!(!diff.files.is_empty() && diff.files.iter().all(|file| !file.unavailable), "{diff:?}");
}

/// The agent made a file and the user edited it. Carried over to before that, the edit has no file; nobody deleted one.
#[test]
fn an_edit_of_a_file_that_goes_back_is_said_to_be_that() {
    let world = World::new();
    world.write("other", "1\n");
    let agent = Agent::new(&world, "s");
    agent.edits("make", &["made", "other"], |w| done(w.write("made", lines(&[])).write("other", "2\n")));
    world.write("made", lines(&[(5, "user")]));
    let plan = world.open().plan_rewind("t1", &keep_mine(Settle::default())).unwrap();
    assert_eq!(conflicts(plan.view()), [("made".to_owned(), Why::Edited)]);
    // What is left as it is is not carried over, too.
    let outcome = world.open().rewind_now("t1", &keep_mine(PARTIAL)).unwrap();
    assert!(outcome.carried.is_empty(), "{:?}", outcome.carried);
    assert_eq!((world.read("made"), world.read("other")), (lines(&[(5, "user")]), "1\n".to_owned()));
}

#[test]
fn all_files_that_were_put_into_one_come_back_where_that_one_goes() {
    let world = World::new();
    world.write("mine", "of me\n").write("other", lines(&[])).write("stays", "1\n");
    let agent = Agent::new(&world, "s");
    agent.edits("edit", &["stays"], |w| done(w.write("stays", "2\n")));
    let before = world.snapshot();
    agent.runs("merge", "cat other mine > lib/all; rm other mine", |w| {
        let both = w.read("other") + &w.read("mine");
        w.write("lib/all", both).remove("other").remove("mine");
    });
    let here = world.snapshot();
    let in_lib = Choice { paths: vec![WorkspacePath::new("lib").unwrap()], ..undo_of("all").choice };
    let options = UndoOptions { choice: in_lib, ..UndoOptions::default() };
    let plan = world.open().plan_undo(&options).unwrap();
    let mut along: Vec<_> = plan.view().along.iter().map(|one| &*one.path.path).collect();
    along.sort_unstable();
    assert_eq!(along, ["mine", "other"]);
    undo(&world, &options);
    world.assert_is(&before);
    world.redo();
    world.assert_is(&here);
    // The same of a rewind.
    let paths = vec![WorkspacePath::new("lib").unwrap()];
    world.open().rewind_now("t1", &RewindOptions { paths, ..RewindOptions::default() }).unwrap();
    world.assert_is(&before);
}
