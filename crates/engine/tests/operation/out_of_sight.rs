//! What was captured, was left out for a while and was written then: no checkpoint found that change, so it may be the user's. A
//! rewind names it before it overwrites it, and keeps it where edits are carried over.

use piton_engine::model::WorkspacePath;
use piton_engine::view::ChangedFile;
use piton_engine::{Carry, OperationError, Policy, Refusal, RewindOptions};
use piton_testkit::{Agent, World, undo_of};

fn done(_: &World) {}

fn carrying(carry: Carry, paths: &[&str]) -> RewindOptions {
    let paths = paths.iter().map(|path| WorkspacePath::new(*path).unwrap()).collect();
    RewindOptions { carry, paths, ..RewindOptions::default() }
}

fn names(files: &[ChangedFile]) -> Vec<&str> {
    files.iter().map(|file| &*file.path.path).collect()
}

fn lines(of: &str) -> String {
    (1..=9).map(|n| format!("{of} line {n}\n")).collect()
}

/// A file that was captured, and an agent's turn beside it.
fn world(path: &str) -> World {
    let world = World::new();
    world.write(path, lines("first")).write("a", "1\n");
    Agent::new(&world, "s").edits("one", &["a"], |w| done(w.write("a", "2\n")));
    world
}

/// A prompt, and with it a capture.
fn looks(world: &World) {
    Agent::new(world, "s").prompt("look");
    Agent::new(world, "s").end_turn();
}

/// The user's text stays, however edits are carried over; a plain rewind names it first and a careful one refuses.
fn check(world: &World, path: &str, users: &str, beside: &[&str]) {
    let careful = world.open().plan_rewind("t1", &RewindOptions::default()).unwrap();
    assert!(names(&careful.view().others).contains(&path), "{:?}", careful.view().others);
    assert!(matches!(world.open().refusal(&careful, Policy::Careful), Some(Refusal::Others(_))));
    let before = world.snapshot();
    for (carry, paths) in [(Carry::Mine, &[][..]), (Carry::Others, &[]), (Carry::Mine, &[path])] {
        let outcome = world.open().rewind_now("t1", &carrying(carry, paths)).unwrap();
        assert_eq!(world.read(path), users, "{carry:?} {paths:?}");
        assert!(names(&outcome.carried).contains(&path), "{carry:?} {paths:?}: {:?}", outcome.carried);
        if paths.is_empty() {
            assert_eq!(world.read("a"), "1\n");
        }
        if outcome.operation.is_some() {
            world.redo();
        }
        world.assert_is(&before);
    }
    world.open().rewind_now("t1", &RewindOptions::default()).unwrap();
    for gone in beside {
        assert!(!world.has(gone), "{gone}");
    }
    world.redo();
    world.assert_is(&before);
}

#[test]
fn what_the_users_own_rule_leaves_out_and_was_edited_since_is_theirs() {
    let world = world("data/b.csv");
    let users = lines("first").replace("line 4", "the user's");
    world.write(".pitonignore", "data/\n").write("data/b.csv", &users);
    looks(&world);
    check(&world, "data/b.csv", &users, &[".pitonignore"]);
    // Edited once more, after the last capture.
    let users = users.replace("line 6", "the user's too");
    world.write("data/b.csv", &users);
    check(&world, "data/b.csv", &users, &[]);
}

#[test]
fn what_was_edited_out_of_sight_and_is_in_sight_again_is_theirs() {
    let world = world("data/b.csv");
    world.write(".pitonignore", "data/\n");
    looks(&world);
    let users = lines("first").replace("line 4", "the user's");
    world.write("data/b.csv", &users);
    looks(&world);
    world.remove(".pitonignore");
    looks(&world);
    check(&world, "data/b.csv", &users, &[]);
}

#[test]
fn a_file_of_the_agents_that_was_edited_out_of_sight_is_not_deleted_unnamed() {
    let world = World::new();
    world.write("a", "1\n");
    let agent = Agent::new(&world, "s");
    agent.edits("one", &["a", "new"], |w| done(w.write("a", "2\n").write("new", lines("agent's"))));
    world.write(".pitonignore", "new\n");
    looks(&world);
    let users = lines("agent's").replace("line 4", "the user's");
    world.write("new", &users).remove(".pitonignore");
    looks(&world);
    check(&world, "new", &users, &[]);
}

#[test]
fn what_was_deleted_and_written_anew_out_of_sight_is_theirs() {
    let world = world("data/b.csv");
    world.remove("data/b.csv").write(".pitonignore", "data/\n").write("data/b.csv", lines("the user's"));
    looks(&world);
    check(&world, "data/b.csv", &lines("the user's"), &[]);
}

#[test]
fn what_stayed_as_it_was_out_of_sight_goes_back_like_everything_else() {
    let world = World::new();
    world.write("data/b.csv", lines("first")).write("a", "1\n");
    let agent = Agent::new(&world, "s");
    let agents = lines("first").replace("line 4", "the agent's");
    agent.edits("one", &["data/b.csv"], |w| done(w.write("data/b.csv", &agents)));
    world.write(".pitonignore", "data/\n");
    looks(&world);
    let plan = world.open().plan_rewind("t1", &RewindOptions::default()).unwrap();
    assert_eq!(names(&plan.view().others), [".pitonignore"]);
    world.open().rewind_now("t1", &carrying(Carry::Mine, &[])).unwrap();
    assert_eq!((world.read("data/b.csv"), world.has(".pitonignore")), (lines("first"), true));
    // What an operation wrote there is nobody's edit either.
    world.redo();
    looks(&world);
    world.open().rewind_now("t1", &carrying(Carry::Mine, &[])).unwrap();
    assert_eq!(world.read("data/b.csv"), lines("first"));
}

#[test]
fn an_undo_keeps_what_was_written_out_of_sight() {
    let world = World::new();
    world.write("data/b.csv", lines("first"));
    let agent = Agent::new(&world, "s");
    let agents = lines("first").replace("line 2", "the agent's");
    agent.edits("one", &["data/b.csv", "data/new"], |w| {
        done(w.write("data/b.csv", &agents).write("data/new", lines("agent's")));
    });
    world.write(".pitonignore", "data/\n").write("data/b.csv", agents.replace("line 8", "the user's"));
    looks(&world);
    world.write("data/new", lines("agent's") + "the user's\n");
    let error = world.open().undo_now(&undo_of("t1")).unwrap_err();
    assert!(matches!(&error, OperationError::Conflict(open) if open[0].path.as_bytes() == b"data/new"), "{error}");
    let of_one = WorkspacePath::new("data/b.csv").unwrap();
    let mut options = undo_of("t1");
    options.choice.paths = vec![of_one];
    world.open().undo_now(&options).unwrap();
    assert_eq!(world.read("data/b.csv"), lines("first").replace("line 8", "the user's"));
}
