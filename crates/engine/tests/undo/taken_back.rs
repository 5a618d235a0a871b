//! What was done and taken back leaves no trace: every later command comes to the same, and says the same, as if neither had been.
//!
//! Random sessions, as those of the fuzzer of lines. `PITON_TAKEN_BACK_SESSIONS=500` plays more of them, `PITON_TAKEN_BACK_SEED=17`
//! one alone.

use piton_engine::model::OperationId;
use piton_engine::{Carry, Choice, RedoOptions, RewindOptions, Which, Whose};
use piton_testkit::{Agent, World, undo_of};

use crate::whose_lines::asked::{AllDone, Asked, Done, Question, question};
use crate::whose_lines::play::{Play, SESSIONS, part};

/// So many commands are compared in each session.
const COMPARED: usize = 16;

/// What a command would do and say.
fn told(world: &World, asked: &Asked) -> String {
    match asked.plan(world) {
        Ok(plan) => format!("{:#?}", plan.view()),
        Err(error) => error.to_string(),
    }
}

/// Does something and takes it back, or does two things and takes both back, perhaps `at_once`. Whether anything was done.
fn there_and_back(play: &mut Play<'_>, agents: &[Agent<'_>; 2], at_once: bool) -> bool {
    let before = play.world.snapshot();
    let mut done = Vec::new();
    for _ in 0..1 + play.dice.below(2) {
        let Some(question) = question(play, agents, &AllDone::default()) else { continue };
        let Ok(outcome) = question.asked.act(play.world) else { continue };
        if let Some(operation) = outcome.operation {
            play.told.push(format!("did: {}", question.told));
            done.push(operation.id.to_string());
        }
    }
    let Some(first) = done.first().cloned() else { return false };
    if done.len() > 1 && play.dice.below(2) == 0 && at_once {
        play.told.push("redo --to the first of them".to_owned());
        play.world.open().redo_now(&RedoOptions { to: Some(first), ..RedoOptions::default() }).unwrap();
    } else {
        for id in done.into_iter().rev() {
            play.told.push("redo".to_owned());
            play.world.open().redo_now(&RedoOptions { operation: Some(id), ..RedoOptions::default() }).unwrap();
        }
    }
    assert!(play.world.snapshot() == before, "taken back, and not as before\n{}", play.story());
    true
}

fn session(seed: u64) {
    let world = World::new();
    let agents = SESSIONS.map(|session| Agent::new(&world, session));
    let mut play = Play::begin(&world, seed);
    for _ in 0..2 + play.dice.below(5) {
        part(&mut play, &agents);
    }
    let mut earlier = AllDone::default();
    for _ in 0..play.dice.below(3) {
        let Some(question) = question(&mut play, &agents, &earlier) else { continue };
        let before = world.snapshot();
        let Ok(outcome) = question.asked.act(&world) else { continue };
        let Some(operation) = outcome.operation else { continue };
        play.told.push(format!("did: {}", question.told));
        let is_redo = matches!(question.asked, Asked::Redo(_));
        earlier.all.push(Done { id: operation.id, about: question.about, before, after: world.snapshot(), is_redo });
        part(&mut play, &agents);
    }
    // What nobody captured yet is named otherwise afterwards.
    world.capture();
    let questions: Vec<Question> = (0..COMPARED).filter_map(|_| question(&mut play, &agents, &earlier)).collect();
    let expected: Vec<_> = questions.iter().map(|question| told(&world, &question.asked)).collect();
    for _ in 0..2 {
        // What one redo took back at once, a `redo --to` of something earlier still names.
        if !there_and_back(&mut play, &agents, earlier.all.is_empty()) {
            continue;
        }
        for (question, expected) in questions.iter().zip(&expected) {
            let now = told(&world, &question.asked);
            assert!(now == *expected, "{}\nwas: {expected}\nis: {now}\n{}", question.told, play.story());
        }
    }
}

#[test]
fn what_was_done_and_taken_back_leaves_no_trace() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = number("PITON_TAKEN_BACK_SEED") {
        return session(seed);
    }
    let mut failed = Vec::new();
    for seed in 1..=number("PITON_TAKEN_BACK_SESSIONS").unwrap_or(60) {
        if std::panic::catch_unwind(|| session(seed)).is_err() {
            failed.push(seed);
        }
    }
    assert!(failed.is_empty(), "PITON_TAKEN_BACK_SEED={} runs one alone, of {failed:?}", failed[0]);
}

fn lines(name: &str, changed: &[(usize, &str)]) -> String {
    let line = |n: usize| match changed.iter().find(|(at, _)| *at == n) {
        Some((_, text)) => format!("{text}\n"),
        None => format!("{name} {n} of many lines\n"),
    };
    (1..=10).map(line).collect()
}

/// Ends a chain of writing.
fn done(_: &World) {}

fn rewind(target: &str, carry: Carry) -> Asked {
    Asked::Rewind(target.to_owned(), RewindOptions { carry, ..RewindOptions::default() })
}

fn undo(words: &str) -> Asked {
    Asked::Undo(undo_of(words))
}

fn redo(id: &OperationId) -> Asked {
    Asked::Redo(RedoOptions { operation: Some(id.to_string()), ..RedoOptions::default() })
}

fn redo_to(id: &OperationId) -> Asked {
    Asked::Redo(RedoOptions { to: Some(id.to_string()), ..RedoOptions::default() })
}

/// Does each of some commands and takes it back: the last one comes to the same each time.
fn check(world: &World, commands: &[Asked], later: &Asked) {
    world.capture();
    let (here, expected) = (world.snapshot(), told(world, later));
    for command in commands {
        let outcome = command.act(world).unwrap();
        let operation = outcome.operation.unwrap_or_else(|| panic!("nothing was done"));
        redo(&operation.id).act(world).unwrap();
        world.assert_is(&here);
        assert_eq!(told(world, later), expected, "after {}", operation.about.unwrap_or_default());
    }
}

#[test]
fn a_move_goes_back_with_edits_of_the_user_after_a_rewind_that_was_taken_back() {
    let world = World::new();
    world.write("f", lines("f", &[]));
    let agent = Agent::new(&world, "s");
    agent.edits("edit", &["f"], |w| done(w.write("f", lines("f", &[(3, "agent")]))));
    agent.runs("move", "mv f g", |w| done(w.rename("f", "g")));
    world.write("g", lines("f", &[(3, "agent"), (5, "user")]));
    check(
        &world,
        &[rewind("t1", Carry::Mine), rewind("t1", Carry::Others), rewind("t1", Carry::Nothing)],
        &undo("all"),
    );
    undo("all").act(&world).unwrap();
    assert_eq!((world.read("f"), world.has("g")), (lines("f", &[(5, "user")]), false));
}

#[test]
fn files_that_changed_places_are_known_after_a_rewind_that_was_taken_back() {
    let world = World::new();
    world.write("a", lines("a", &[])).write("b", "the only line of b\n");
    let agent = Agent::new(&world, "s");
    agent.edits("edit", &["a"], |w| done(w.write("a", lines("a", &[(3, "agent")]))));
    agent.runs("swap", "mv a x && mv b a && mv x b", |w| done(w.rename("a", "x").rename("b", "a").rename("x", "b")));
    agent.edits("edit again", &["b"], |w| done(w.write("b", lines("a", &[(3, "agent"), (9, "agent too")]))));
    world.write("b", lines("a", &[(3, "agent"), (6, "user"), (9, "agent too")]));
    check(&world, &[rewind("t1", Carry::Mine), rewind("t1", Carry::Others), undo("all")], &undo("all"));
    undo("all").act(&world).unwrap();
    assert_eq!(world.read("a"), lines("a", &[(6, "user")]));
    assert_eq!(world.read("b"), "the only line of b\n");
}

#[test]
fn a_file_that_was_split_is_not_edited_by_a_rewind_that_was_taken_back() {
    let world = World::new();
    let part = |range: std::ops::Range<usize>| range.map(|n| format!("line {n} of the agent's\n")).collect::<String>();
    let agent = Agent::new(&world, "s");
    agent.edits("write", &["README.md"], |w| done(w.write("README.md", part(0..8))));
    let split = |w: &World, to: &str, at: usize, end: usize| {
        w.write(to, part(at..end)).write("README.md", part(0..at));
    };
    agent.edits("split", &["a.py", "README.md"], |w| split(w, "a.py", 4, 8));
    agent.edits("split again", &["a.js", "README.md"], |w| split(w, "a.js", 2, 4));
    check(&world, &[rewind("t2", Carry::Nothing), rewind("t3", Carry::Nothing), undo("t3")], &undo("all"));
    undo("all").act(&world).unwrap();
    assert!(!world.has("README.md") && !world.has("a.py") && !world.has("a.js"));
}

/// An undo put the file back to where it was, and the user edited it there.
#[test]
fn a_redo_that_moves_a_file_and_was_taken_back_moves_it_again() {
    let world = World::new();
    world.write("f", lines("f", &[]));
    let agent = Agent::new(&world, "s");
    agent.runs("move", "mv f g", |w| done(w.rename("f", "g")));
    let undone = undo("all").act(&world).unwrap().operation.unwrap().id;
    world.write("f", lines("f", &[(5, "user")]));
    for later in [redo(&undone), redo_to(&undone)] {
        check(&world, &[redo(&undone), redo_to(&undone)], &later);
    }
    redo(&undone).act(&world).unwrap();
    assert_eq!((world.read("g"), world.has("f")), (lines("f", &[(5, "user")]), false));
}

/// What was done and taken back in between is none of the operations after it.
#[test]
fn a_redo_to_an_operation_counts_none_that_was_taken_back_right_away() {
    let world = World::new();
    world.write("f", lines("f", &[])).write("g", lines("g", &[]));
    let agent = Agent::new(&world, "s");
    agent.edits("edit f", &["f"], |w| done(w.write("f", lines("f", &[(3, "agent")]))));
    agent.edits("edit g", &["g"], |w| done(w.write("g", lines("g", &[(3, "agent")]))));
    let undone = undo("t1").act(&world).unwrap().operation.unwrap().id;
    world.write("f", lines("f", &[(3, "user")]));
    let twice = || {
        let undone = undo("t2").act(&world).unwrap().operation.unwrap().id;
        let redone = redo(&undone).act(&world).unwrap().operation.unwrap().id;
        redo(&redone).act(&world).unwrap();
        world.redo();
    };
    let also = || redo_to(&undone).plan(&world).unwrap().view().also.len();
    let expected = told(&world, &redo_to(&undone));
    twice();
    assert_eq!(told(&world, &redo_to(&undone)), expected);
    // One that still stands counts, and so does one after which somebody went on.
    undo("t2").act(&world).unwrap();
    assert_eq!(also(), 1);
    world.write("g", lines("g", &[(7, "user")]));
    world.redo();
    assert_eq!(also(), 2);
}

/// Of what was done and taken back, only what was still so when the user went on counts for the edit: where the file was then.
#[test]
fn an_edit_between_a_redo_and_the_next_is_known_where_it_was_made() {
    let world = World::new();
    world.write("f", lines("f", &[]));
    let agent = Agent::new(&world, "s");
    world.capture();
    world.write("f", lines("f", &[(2, "user")]));
    agent.runs("move", "mv f g", |w| done(w.rename("f", "g")));
    let undone = undo("all").act(&world).unwrap().operation.unwrap().id;
    let redone = redo(&undone).act(&world).unwrap().operation.unwrap().id;
    world.write("g", lines("f", &[(2, "user"), (5, "user too")]));
    redo(&redone).act(&world).unwrap();
    assert_eq!((world.read("f"), world.has("g")), (lines("f", &[(2, "user"), (5, "user too")]), false));
    let done = redo(&undone).act(&world).unwrap().operation.unwrap().id;
    assert_eq!((world.read("g"), world.has("f")), (lines("f", &[(2, "user"), (5, "user too")]), false));
    redo(&done).act(&world).unwrap();
    let mut mine = undo_of("all");
    mine.choice = Choice { whose: Some(Whose::You), what: Some(Which::Last(2)), ..Choice::default() };
    Asked::Undo(mine).act(&world).unwrap();
    assert_eq!((world.read("f"), world.has("g")), (lines("f", &[]), false));
}
