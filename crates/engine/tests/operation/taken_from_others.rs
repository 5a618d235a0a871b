//! What a rewind must not take from others unseen: files of theirs that an agent moved or took apart, what came into sight only
//! when a rule was taken back, and what stays in a conflict with the folder that it is in.

use piton_engine::model::WorkspacePath;
use piton_engine::model::content::Decision;
use piton_engine::model::inverse::Why;
use piton_engine::view::{ChangedFile, PathView};
use piton_engine::{Carry, OperationError, RewindOptions, Settle, UndoOptions};
use piton_testkit::{Agent, World, undo_of};

fn done(_: &World) {}

fn keep_mine(paths: &[&str]) -> RewindOptions {
    let paths = paths.iter().map(|path| WorkspacePath::new(*path).unwrap()).collect();
    RewindOptions { carry: Carry::Mine, paths, ..RewindOptions::default() }
}

fn names(files: &[ChangedFile]) -> Vec<&str> {
    files.iter().map(|file| &*file.path.path).collect()
}

fn paths(paths: &[PathView]) -> Vec<&str> {
    paths.iter().map(|path| &*path.path).collect()
}

fn lines(of: &str) -> String {
    (1..=9).map(|n| format!("{of} line {n}\n")).collect()
}

#[test]
fn a_file_of_the_users_is_named_where_an_agent_moved_it_to() {
    let world = World::new();
    world.write("a", "1\n").folder("docs").write("docs/z", "z\n");
    let agent = Agent::new(&world, "s");
    agent.edits("edit", &["a"], |w| done(w.write("a", "2\n")));
    world.write("notes", lines("user's"));
    agent.runs("move", "mv notes docs/notes", |w| done(w.rename("notes", "docs/notes")));
    let plan = world.open().plan_rewind("t1", &RewindOptions::default()).unwrap();
    assert_eq!(names(&plan.view().others), ["docs/notes"]);
    world.open().rewind_now("t1", &keep_mine(&[])).unwrap();
    assert_eq!(world.read("notes"), lines("user's"));
}

#[test]
fn lines_of_the_users_are_named_where_an_agent_carried_them_to() {
    let world = World::new();
    world.write("a", lines("first")).write("b", "1\n");
    let agent = Agent::new(&world, "s");
    agent.edits("edit", &["b"], |w| done(w.write("b", "2\n")));
    world.write("a", lines("first") + &lines("the user's own"));
    agent.edits("split", &["a", "new"], |w| done(w.write("a", lines("first")).write("new", lines("the user's own"))));
    let plan = world.open().plan_rewind("t1", &RewindOptions::default()).unwrap();
    assert_eq!(names(&plan.view().others), ["new"]);
    // The same where only that file is asked for: it stays, as the lines would be nowhere.
    let error = world.open().rewind_now("t1", &keep_mine(&["new"])).unwrap_err();
    assert!(matches!(&error, OperationError::Conflict(open) if open[0].why == Why::Lines), "{error}");
    assert_eq!(world.read("new"), lines("the user's own"));
}

#[test]
fn a_file_goes_along_whichever_of_its_paths_is_asked_for() {
    let world = World::new();
    world.write("old", lines("first")).write("lib/z", "z\n").write("a", "1\n");
    let agent = Agent::new(&world, "s");
    agent.edits("edit", &["a"], |w| done(w.write("a", "2\n")));
    let users = lines("first").replace("line 4", "the user's");
    world.rename("old", "mid").write("mid", &users).write("notes", lines("user's"));
    agent.runs("move", "mv mid notes lib", |w| done(w.rename("mid", "lib/mid").rename("notes", "lib/notes")));
    let before = world.snapshot();
    for path in ["lib", "lib/mid"] {
        world.open().rewind_now("t1", &keep_mine(&[path])).unwrap();
        assert_eq!(world.read("mid"), users, "{path}");
        assert!(!world.has("lib/mid") && !world.has("old"), "{path}");
        if path == "lib" {
            assert_eq!(world.read("notes"), lines("user's"));
        }
        world.redo();
        world.assert_is(&before);
    }
}

#[test]
fn the_new_end_goes_along_with_the_old_one() {
    let world = World::new();
    world.write("src/x", lines("first")).write("src/k", "k\n").write("lib/z", "z\n");
    let agent = Agent::new(&world, "s");
    agent.runs("move", "mv src/x lib/x", |w| done(w.rename("src/x", "lib/x")));
    let users = lines("first").replace("line 9", "the user's");
    world.write("lib/x", &users);
    let outcome = world.open().rewind_now("t1", &keep_mine(&["src"])).unwrap();
    assert_eq!(outcome.along.iter().map(|one| &*one.path.path).collect::<Vec<_>>(), ["lib/x"]);
    assert_eq!(world.read("src/x"), users);
    assert!(!world.has("lib/x"));
}

#[test]
fn what_was_moved_out_of_the_paths_that_go_back_stays_in_effect() {
    let world = World::new();
    world.write("src/x", "1\n").folder("lib").write("lib/z", "z\n");
    let agent = Agent::new(&world, "s");
    agent.edits("edit", &["src/x"], |w| done(w.write("src/x", "2\n")));
    world.write("src/mine", lines("user's"));
    agent.runs("move", "mv src/mine lib/mine", |w| done(w.rename("src/mine", "lib/mine")));
    let only_src = RewindOptions { carry: Carry::Nothing, ..keep_mine(&["src"]) };
    world.open().rewind_now("t1", &only_src).unwrap();
    assert_eq!((world.read("src/x"), world.read("lib/mine")), ("1\n".to_owned(), lines("user's")));
    world.open().rewind_now("t1", &keep_mine(&[])).unwrap();
    assert_eq!(world.read("src/mine"), lines("user's"));
}

#[test]
fn what_comes_into_sight_when_a_rule_is_taken_back_is_the_users() {
    let world = World::new();
    world.write("a", "1\n");
    let agent = Agent::new(&world, "s");
    agent.edits("edit", &["a"], |w| done(w.write("a", "2\n")));
    agent.edits("ignore", &[".gitignore"], |w| done(w.write(".gitignore", "modules/\n")));
    world.write("modules/left/index.js", "1\n").write("modules/mine", "1\n");
    world.open().undo_now(&undo_of("t2")).unwrap();
    let plan = world.open().plan_rewind("t1", &RewindOptions::default()).unwrap();
    assert_eq!(names(&plan.view().others), ["modules/left/index.js", "modules/mine"]);
    let outcome = world.open().rewind_now("t1", &keep_mine(&[])).unwrap();
    assert_eq!(names(&outcome.carried), ["modules/left/index.js", "modules/mine"]);
    assert_eq!((world.read("a"), world.read("modules/mine")), ("1\n".to_owned(), "1\n".to_owned()));
    world.open().rewind_now("t1", &RewindOptions::default()).unwrap();
    assert!(!world.has("modules"));
}

#[test]
fn a_folder_stays_with_what_is_in_conflict_in_it() {
    let world = World::new();
    world.write("conf", lines("setting")).write("a", "1\n");
    let agent = Agent::new(&world, "s");
    agent.edits("edit", &["a"], |w| done(w.write("a", "2\n")));
    agent.runs("folder", "rm conf; mkdir conf; seq 9 > conf/main", |w| {
        done(w.remove("conf").write("conf/main", lines("agent's")));
    });
    let users = lines("agent's").replace("line 5", "the user's");
    world.write("conf/main", &users).write("a", "3\n");
    let partial = RewindOptions { settle: Settle { partial: true, ..Settle::default() }, ..keep_mine(&[]) };
    let outcome = world.open().rewind_now("t2", &partial).unwrap();
    assert_eq!(paths(&outcome.conflicts.iter().map(|one| one.path.clone()).collect::<Vec<_>>()), ["conf/main"]);
    assert_eq!(world.read("conf/main"), users);
}

#[test]
fn what_stays_for_a_decision_does_not_push_out_what_was_moved_from_there() {
    let world = World::new();
    world.write("d/x", "x\n").write("d/y", lines("first")).write("a", "1\n");
    let agent = Agent::new(&world, "s");
    agent.runs("move", "mv d e; echo file > d", |w| done(w.rename("d", "e").write("d", "file\n")));
    world.write("e/y", lines("first") + "user\n").write("d", "file\nuser\n");
    let before = world.snapshot();
    let settle = Settle { conflicts: Some(Decision::Ours), ..Settle::default() };
    world.open().rewind_now("t1", &RewindOptions { settle: settle.clone(), ..keep_mine(&[]) }).unwrap();
    world.assert_is(&before);
    world.open().undo_now(&UndoOptions { settle, ..undo_of("t1") }).unwrap();
    world.assert_is(&before);
}

#[test]
fn what_was_moved_split_and_rewritten_comes_back_by_a_redo_though_something_else_changed_since() {
    let line = |n: usize| format!("def function_number_{n}(): return {n}\n");
    let world = World::new();
    world.write("big", (1..=40).map(line).collect::<String>());
    world.capture();
    let agent = Agent::new(&world, "s");
    agent.prompt("split");
    agent.step("Edit", &["big", "core"], |w| done(w.rename("big", "core")));
    let (head, tail): (String, String) = ((1..=30).map(line).collect(), (31..=40).map(line).collect());
    agent.step("Edit", &["core", "util"], |w| done(w.write("core", &head).write("util", &tail)));
    let renamed = |text: &str| text.replace("number_3", "n3");
    agent.step("Edit", &["core", "util"], |w| done(w.write("core", renamed(&head)).write("util", renamed(&tail))));
    agent.end_turn();
    for is_rewind in [true, false] {
        match is_rewind {
            true => world.open().rewind_now("t1", &RewindOptions::default()).unwrap(),
            false => world.open().undo_now(&undo_of("t1")).unwrap(),
        };
        assert!(world.has("big") && !world.has("core"), "{is_rewind}");
        world.write("unrelated", format!("{is_rewind}\n"));
        world.redo();
        assert_eq!((world.read("core"), world.read("util")), (renamed(&head), renamed(&tail)), "{is_rewind}");
        assert!(!world.has("big"));
    }
}
