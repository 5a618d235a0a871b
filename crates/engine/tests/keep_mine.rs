//! What a review found.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use piton_engine::{OperationError, RewindOptions, UndoOptions};
use piton_host::fail;
use piton_testkit::{Agent, World, git};

/// Somebody's git holds the index when the files are in place already: neither end of the move can be asked for, and the
/// files must not stay without it.
#[test]
fn files_go_back_when_git_is_locked_in_the_last_moment() {
    let world = World::new();
    let at = world.ws();
    git(&at, &["init", "-q", "-b", "main"]);
    world.write("a", "one\n");
    git(&at, &["add", "."]);
    git(&at, &["commit", "-qm", "first"]);
    let id = world.capture();
    world.write("a", "two\n");
    git(&at, &["commit", "-qam", "second"]);
    let (head, before) = (git(&at, &["rev-parse", "HEAD"]), world.snapshot().without(".git"));
    let lock = at.join(".git/index.lock");
    let options = RewindOptions { git: true, ..RewindOptions::default() };
    let held = lock.clone();
    let lock_it = move || std::fs::write(held, "").unwrap();
    let refused = fail::when(1, "apply:sync-swapped", lock_it, || world.open().rewind_now(&id, &options));
    assert!(matches!(refused, Err(OperationError::RolledBack { .. })), "{refused:?}");
    std::fs::remove_file(&lock).unwrap();
    assert!(world.open().recovered().is_empty());
    assert_eq!(world.snapshot().without(".git"), before);
    assert_eq!(git(&at, &["rev-parse", "HEAD"]), head);
    assert!(world.open().rewind_now(&id, &options).unwrap().verified);
    assert_eq!(std::fs::read_to_string(world.path("a")).unwrap(), "one\n");
}

const NINE: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

fn read(world: &World, path: &str) -> String {
    std::fs::read_to_string(world.path(path)).unwrap()
}

fn keeping_mine() -> RewindOptions {
    RewindOptions { keep_mine: true, ..RewindOptions::default() }
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
    assert_eq!(read(&world, "f"), NINE.replace("2\n", "two\n").replace("9\n", "mine\n"));
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
    assert_eq!(read(&world, "notes"), "mine\n");
    let plan = world.open().plan_rewind("t3.end", &RewindOptions::default()).unwrap();
    assert_eq!(plan.view().others.len(), 1);
    world.open().rewind_now("t3.end", &keeping_mine()).unwrap();
    assert_eq!(read(&world, "notes"), "mine\n");
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
    assert_eq!(read(&world, "many/7"), "mine\n");
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
    assert_eq!(read(&world, "notes"), "mine\n");
    let plan = world.open().plan_rewind("t1", &RewindOptions::default()).unwrap();
    assert_eq!(plan.view().others.len(), 1);
    world.open().rewind_now("t1", &keeping_mine()).unwrap();
    assert_eq!(read(&world, "notes"), "mine\n");
}

/// A file elsewhere after a rewind and new work: going further back passes only what is still in effect.
#[test]

fn files_elsewhere_go_back_over_a_rewind_in_between() {
    let world = World::new();
    let elsewhere = world.base().join("elsewhere");
    std::fs::write(&elsewhere, "A\n").unwrap();
    let agent = Agent::new(&world, "s1");
    let turn = |prompt: &str, text: &str| {
        agent.edits(prompt, &[elsewhere.to_str().unwrap()], |_| std::fs::write(&elsewhere, text).unwrap());
    };
    let options = RewindOptions { outside: true, ..RewindOptions::default() };
    turn("one", "B\n");
    turn("two", "C\n");
    world.open().rewind_now("t2", &options).unwrap();
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "B\n");
    turn("three", "D\n");
    world.open().rewind_now("t1", &options).unwrap();
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "A\n");
}

/// A crash and its recovery are nobody's edits.
#[test]

fn what_a_recovery_found_and_put_back_is_not_the_users() {
    let world = World::new();
    world.write("a", "a\n").write("b", "b\n");
    let agent = Agent::new(&world, "s1");
    agent.edits("one", &["a", "b"], |world| {
        world.write("a", "one\n").write("b", "one\n");
    });
    let before = world.snapshot();
    for nth in 1.. {
        if fail::with(nth, || world.open().rewind_now("t1", &RewindOptions::default()).unwrap()).is_some() {
            break;
        }
        let was_finished = world.open().recovered().iter().any(|one| one.finished);
        if was_finished || world.snapshot() != before {
            world.open().redo_now(&piton_engine::RedoOptions::default()).unwrap();
        }
        world.capture();
        let plan = world.open().plan_rewind("t1", &RewindOptions::default()).unwrap();
        assert!(plan.view().others.is_empty(), "point {nth}: {:?}", plan.view().others);
    }
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
