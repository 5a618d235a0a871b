//! Lines of others that an agent carried from one file to another, at once or in several steps, are never nowhere.

use piton_engine::model::Except;
use piton_engine::model::WorkspacePath;
use piton_engine::model::content::Decision;
use piton_engine::model::inverse::Why;
use piton_engine::{Carry, RewindOptions, Settle, UndoOptions};
use piton_testkit::{Agent, World, undo_of};

const PARTIAL: Settle = Settle { conflicts: None, partial: true, except: Except::NOTHING };
const OURS: Settle = Settle { conflicts: Some(Decision::Ours), partial: false, except: Except::NOTHING };
const PRECIOUS: &str = "def precious(x):\n    return x * 42 + 17\n";

fn numbered(name: &str, count: usize) -> String {
    (1..=count).map(|n| format!("{name} line number {n}\n")).collect()
}

/// Two files, and the user writes a function into the first.
fn with_a_function(world: &World) -> Agent<'_> {
    world.write("a", numbered("a", 8)).write("b", numbered("b", 5)).write("c", numbered("c", 8));
    let agent = Agent::new(world, "s");
    agent.runs("first", "make", |world| {
        world.write("t", "1\n");
    });
    world.write("a", numbered("a", 8) + PRECIOUS);
    agent
}

fn cut(world: &World) {
    world.write("a", numbered("a", 8));
}

fn paste(world: &World) {
    world.write("b", numbered("b", 5) + PRECIOUS);
}

/// Where the function is.
fn holders(world: &World) -> Vec<&'static str> {
    ["a", "b", "c", "d", "m"]
        .into_iter()
        .filter(|path| world.has(path) && world.read(path).contains("42 + 17"))
        .collect()
}

/// Nothing is done, and then all but what is in conflict, and every time the function is somewhere.
#[track_caller]
fn assert_kept(world: &World, turn: &str, expected: &str) {
    let here = world.snapshot();
    let plan = world.open().plan_undo(&undo_of(turn)).unwrap();
    let names = |conflict: &piton_engine::view::ConflictView| (conflict.path.path.clone(), conflict.why);
    let conflicts: Vec<_> = plan.view().conflicts.iter().map(names).collect();
    assert!(conflicts.contains(&(expected.to_owned(), Why::Lines)), "{conflicts:?}");
    assert!(world.open().undo_now(&undo_of(turn)).is_err());
    world.assert_is(&here);
    for settle in [PARTIAL, OURS] {
        let _ = world.open().undo_now(&UndoOptions { settle: settle.clone(), ..undo_of(turn) });
        assert!(!holders(world).is_empty());
        let options = RewindOptions { carry: Carry::Mine, settle, ..RewindOptions::default() };
        let _ = world.open().rewind_now(turn, &options);
        assert!(!holders(world).is_empty());
    }
}

#[test]
fn in_two_steps_of_a_turn_in_either_order() {
    let world = World::new();
    let agent = with_a_function(&world);
    agent.prompt("move it");
    agent.step("Edit", &["b"], paste);
    agent.step("Bash", &[], cut);
    agent.end_turn();
    assert_kept(&world, "t2", "b");

    let world = World::new();
    let agent = with_a_function(&world);
    agent.prompt("move it");
    agent.step("Bash", &[], cut);
    agent.step("Edit", &["b"], paste);
    agent.end_turn();
    assert_kept(&world, "t2", "b");
}

#[test]
fn in_two_turns() {
    let world = World::new();
    let agent = with_a_function(&world);
    agent.edits("copy", &["b"], paste);
    agent.runs("cut", "sed", cut);
    assert_kept(&world, "t2", "b");
}

#[test]
fn in_two_turns_of_which_only_the_second_goes_back() {
    let world = World::new();
    let agent = with_a_function(&world);
    agent.runs("cut", "sed", cut);
    agent.edits("paste", &["b"], paste);
    assert_kept(&world, "t3", "b");
}

#[test]
fn where_the_file_that_they_came_from_is_in_conflict() {
    let world = World::new();
    let body = numbered("a", 4) + PRECIOUS + &numbered("z", 4);
    world.write("a", &body).write("b", numbered("b", 5));
    let agent = Agent::new(&world, "s");
    agent.prompt("move it");
    agent.step("Edit", &["b"], paste);
    agent.step("Edit", &["a"], |world| {
        world.write("a", numbered("a", 4) + &numbered("z", 4));
    });
    agent.end_turn();
    let edited =
        (numbered("a", 4) + &numbered("z", 4)).replace("a line number 4", "mine").replace("z line number 1", "too");
    world.write("a", edited);
    assert_kept(&world, "t1", "b");
}

#[test]
fn out_of_two_files_into_one() {
    let world = World::new();
    let agent = with_a_function(&world);
    world.write("c", numbered("c", 8) + "the user's own line in c\n");
    let merged = world.read("a") + &world.read("c");
    agent.runs("merge", "cat a c > m", |world| {
        world.write("m", merged).write("a", "").write("c", "");
    });
    let _ = world.open().undo_now(&UndoOptions { settle: PARTIAL, ..undo_of("t2") });
    let all: String = ["a", "c", "m"].iter().filter(|path| world.has(path)).map(|path| world.read(path)).collect();
    assert!(all.contains("42 + 17") && all.contains("the user's own line in c"), "{all}");
}

#[test]
fn where_only_one_of_the_paths_is_asked_for() {
    let world = World::new();
    world.write("a", numbered("a", 8) + PRECIOUS).write("b", numbered("b", 5));
    let agent = Agent::new(&world, "s");
    agent.edits("move", &["a", "b"], |world| {
        cut(world);
        paste(world);
    });
    let path = |path: &str| WorkspacePath::new(path).unwrap();
    let here = world.snapshot();
    let only =
        |paths: &[&str]| RewindOptions { paths: paths.iter().map(|one| path(one)).collect(), ..Default::default() };
    assert!(world.open().rewind_now("t1", &only(&["b"])).is_err());
    world.assert_is(&here);
    world.open().rewind_now("t1", &only(&["a", "b"])).unwrap();
    assert_eq!(holders(&world), ["a"]);
    world.redo();
    world.open().rewind_now("t1", &only(&["a"])).unwrap();
    assert_eq!(holders(&world), ["a", "b"]);
}

#[test]
fn nobody_is_stopped_where_nothing_is_lost() {
    // All of it is the agent's, and the user edits elsewhere.
    let world = World::new();
    world.write("a", numbered("a", 8) + PRECIOUS).write("b", numbered("b", 5));
    let agent = Agent::new(&world, "s");
    agent.prompt("move it");
    agent.step("Edit", &["b"], paste);
    agent.step("Edit", &["a"], cut);
    agent.end_turn();
    world.write("a", numbered("a", 8).replace("a line number 1\n", "mine\n"));
    world.open().undo_now(&undo_of("t1")).unwrap();
    assert_eq!(holders(&world), ["a"]);
    assert!(world.read("a").starts_with("mine\n"));

    // The agent writes a function, and moves it.
    let world = World::new();
    world.write("a", numbered("a", 8)).write("b", numbered("b", 5));
    let agent = Agent::new(&world, "s");
    agent.edits("write", &["a"], |world| {
        world.write("a", numbered("a", 8) + PRECIOUS);
    });
    world.write("a", (numbered("a", 8) + PRECIOUS).replace("a line number 1\n", "mine\n"));
    agent.edits("move", &["a", "b"], |world| {
        world.write("a", numbered("a", 8).replace("a line number 1\n", "mine\n"));
        paste(world);
    });
    world.open().undo_now(&undo_of("all")).unwrap();
    assert!(holders(&world).is_empty());
    assert!(world.read("a").starts_with("mine\n"));

    // The user throws a line away that the agent writes elsewhere.
    let world = World::new();
    world.write("a", numbered("a", 8) + PRECIOUS).write("b", numbered("b", 5));
    let agent = Agent::new(&world, "s");
    agent.edits("other", &["t"], |world| {
        world.write("t", "1\n");
    });
    cut(&world);
    agent.edits("write", &["b"], paste);
    world.open().undo_now(&undo_of("all")).unwrap();
    assert!(holders(&world).is_empty());
}

#[test]
fn where_only_what_holds_them_now_is_asked_for() {
    // The agent cuts first and pastes in another step; only the second file is asked for.
    let world = World::new();
    world.write("a", numbered("a", 8) + PRECIOUS).write("b", numbered("b", 5));
    let agent = Agent::new(&world, "s");
    agent.prompt("move it");
    agent.step("Edit", &["a"], cut);
    agent.step("Edit", &["b"], paste);
    agent.end_turn();
    let here = world.snapshot();
    let path = WorkspacePath::new("b").unwrap();
    let choice = piton_engine::Choice { paths: vec![path.clone()], ..undo_of("t1").choice };
    assert!(world.open().undo_now(&UndoOptions { choice, ..UndoOptions::default() }).is_err());
    assert!(world.open().undo_now(&undo_of("t1.2")).is_err());
    for carry in [Carry::Nothing, Carry::Mine, Carry::Others] {
        let options = RewindOptions { paths: vec![path.clone()], carry, ..RewindOptions::default() };
        assert!(world.open().rewind_now("t1", &options).is_err(), "{carry:?}");
    }
    world.assert_is(&here);
}

#[test]
fn a_copy_beside_an_edit_is_no_move() {
    let world = World::new();
    world.write("f", numbered("f", 8));
    let agent = Agent::new(&world, "s");
    agent.runs("edit", "sed -i.bak", |world| {
        world.write("f.bak", numbered("f", 8)).write("f", numbered("f", 8).replace("f line number 2\n", "TWO\n"));
    });
    // The user's edit goes with the file that it was made in, and nobody is stopped.
    world.write("f", world.read("f").replace("f line number 7\n", "mine\n"));
    let here = world.snapshot();
    world.open().undo_now(&undo_of("t1")).unwrap();
    assert_eq!((world.read("f"), world.has("f.bak")), (numbered("f", 8).replace("f line number 7\n", "mine\n"), false));
    world.redo();
    world.assert_is(&here);
    world.open().rewind_now("t1", &RewindOptions::default()).unwrap();
    world.write("f", numbered("f", 8).replace("f line number 5\n", "later\n"));
    world.redo();
    assert!(world.read("f").contains("later\n") && world.read("f").contains("TWO\n"), "{}", world.read("f"));
    assert_eq!(world.read("f.bak"), numbered("f", 8));
}

#[test]
fn a_line_that_stands_everywhere_stops_nobody() {
    let world = World::new();
    world.write("app", numbered("app", 5) + "return 0\n").write("util", numbered("util", 5));
    let agent = Agent::new(&world, "s");
    agent.edits("add", &["util"], |world| {
        world.write("util", numbered("util", 5) + "return 0\n");
    });
    agent.edits("remove", &["app"], |world| {
        world.write("app", numbered("app", 5));
    });
    world.open().undo_now(&undo_of("t1")).unwrap();
    assert_eq!(world.read("util"), numbered("util", 5));
}

#[test]
fn two_short_lines_that_stand_everywhere_stop_nobody() {
    let world = World::new();
    let common = "else\nreturn 0\n}\n";
    world.write("app", numbered("app", 5) + common).write("util", numbered("util", 5));
    let agent = Agent::new(&world, "s");
    agent.edits("add", &["util"], |world| {
        world.write("util", numbered("util", 5) + common);
    });
    agent.edits("remove", &["app"], |world| {
        world.write("app", numbered("app", 5));
    });
    world.open().undo_now(&undo_of("t1")).unwrap();
    assert_eq!(world.read("util"), numbered("util", 5));
}

#[test]
fn a_long_line_that_other_files_have_too_stops_nobody() {
    let world = World::new();
    let head = "// SPDX-License-Identifier: Apache-2.0\n";
    world.write("app", head.to_owned() + &numbered("app", 5)).write("util", numbered("util", 5));
    world.write("lib/other", head);
    let agent = Agent::new(&world, "s");
    agent.edits("add", &["util"], |world| {
        world.write("util", head.to_owned() + &numbered("util", 5));
    });
    agent.edits("remove", &["app"], |world| {
        world.write("app", numbered("app", 5));
    });
    world.open().undo_now(&undo_of("t1")).unwrap();
    assert_eq!(world.read("util"), numbered("util", 5));
}

#[test]
fn a_file_that_was_moved_names_the_file_that_its_lines_came_from() {
    let world = World::new();
    world.write("a", numbered("a", 4) + PRECIOUS + &numbered("z", 4)).write("b", numbered("b", 5));
    let agent = Agent::new(&world, "s");
    let rest = numbered("a", 4) + &numbered("z", 4);
    agent.edits("move", &["a", "b", "e"], |world| {
        world.remove("b").write("a", &rest).write("e", numbered("b", 5) + PRECIOUS);
    });
    // So that the function cannot come back to where it was.
    world.write("a", rest.replace("a line number 4", "mine").replace("z line number 1", "too"));
    let plan = world.open().plan_undo(&undo_of("t1")).unwrap();
    let conflict = plan.view().conflicts.iter().find(|conflict| conflict.why == Why::Lines);
    let others: Vec<_> = conflict.unwrap().others.iter().map(|other| &other.path[..]).collect();
    assert_eq!(others, ["a", "b"]);
}

#[test]
fn where_another_agent_deleted_what_was_copied() {
    let world = World::new();
    world.write("a", numbered("a", 8) + PRECIOUS).write("b", numbered("b", 5));
    let (one, two) = (Agent::new(&world, "s"), Agent::new(&world, "other"));
    one.edits("copy", &["b"], paste);
    two.edits("cut", &["a"], cut);
    let choice = piton_engine::Choice { session: Some(one.id().to_string()), ..undo_of("t1").choice };
    let undo = |settle| UndoOptions { choice: choice.clone(), settle, ..UndoOptions::default() };
    assert!(world.open().undo_now(&undo(Settle::default())).is_err());
    let _ = world.open().undo_now(&undo(PARTIAL));
    assert_eq!(holders(&world), ["b"]);
}

/// The file that lines came from is left alone with the one that keeps them. Where that means that it cannot come back to its old
/// path, it stays at its new one, with what the user wrote in it.
#[test]
fn a_file_that_cannot_come_back_for_the_lines_of_another_stays_where_it_is() {
    let world = World::new();
    world.write("a", numbered("a", 8) + PRECIOUS).write("b", numbered("b", 5));
    let agent = Agent::new(&world, "s");
    agent.edits("cut", &["a"], cut);
    agent.edits("paste and move", &["a", "b", "m"], |world| {
        paste(world);
        world.rename("a", "m");
    });
    world.write("m", numbered("a", 8) + "written by the user\n");
    let here = world.snapshot();
    let options = RewindOptions { carry: Carry::Mine, settle: PARTIAL, ..RewindOptions::default() };
    let plan = world.open().plan_rewind("t2", &options).unwrap();
    let conflict = plan.view().conflicts.iter().find(|conflict| conflict.why == Why::Lines).unwrap();
    let others: Vec<_> = conflict.others.iter().map(|other| &other.path[..]).collect();
    assert_eq!((&conflict.path.path[..], &others[..]), ("b", &["a", "m"][..]));
    let _ = world.open().rewind_now("t2", &options);
    world.assert_is(&here);
}

/// A capture may see a file in the moment in which it is written anew, when it is empty.
#[test]
fn two_files_that_were_empty_for_a_moment_are_not_one() {
    let world = World::new();
    world.write("a", "").write("b", "the first line of b\n");
    let agent = Agent::new(&world, "s");
    let write = |path: &'static str, text: &'static str| {
        agent.edits(text, &[path], move |world| {
            world.write(path, text);
        });
    };
    write("b", "the second line of b\n");
    world.capture();
    write("a", "a line of a\n");
    write("b", "");
    write("b", "the third line of b\n");
    world.rewind("t1");
    world.rewind("t2");
    let of_b = || RewindOptions { paths: vec![WorkspacePath::new("b").unwrap()], ..RewindOptions::default() };
    world.open().rewind_now("t1", &of_b()).unwrap();
    world.open().rewind_now("t2", &of_b()).unwrap();
    assert_eq!(world.read("b"), "the second line of b\n");
}
