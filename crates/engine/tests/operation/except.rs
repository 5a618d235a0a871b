//! Paths and places that are taken out of a plan: they stay as they are, and so does what belongs to them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

use piton_engine::model::{Except, ExceptHunk, HunkAt, ObjectId, WorkspacePath};
use piton_engine::view::{EntryView, OperationOutcome, PathView, PlanView};
use piton_engine::{
    Clock, OperationError, Plan, Plans, RedoOptions, RewindOptions, Settle, SystemClock, UndoOptions, Workspace,
};
use piton_testkit::{Agent, World, undo_of};

fn without(paths: &[&str]) -> Except {
    let paths = paths.iter().map(|path| WorkspacePath::new(*path).unwrap()).collect();
    Except { paths, hunks: Vec::new() }
}

fn rewind(world: &World, target: &str, except: Except) -> Result<OperationOutcome, OperationError> {
    let settle = Settle { except, ..Settle::default() };
    world.open().rewind_now(target, &RewindOptions { settle, ..RewindOptions::default() })
}

fn undo(world: &World, words: &str, except: Except) -> Result<OperationOutcome, OperationError> {
    let settle = Settle { except, ..Settle::default() };
    world.open().undo_now(&UndoOptions { settle, ..undo_of(words) })
}

fn names(paths: &[PathView]) -> Vec<&str> {
    paths.iter().map(|path| &*path.path).collect()
}

/// Each hunk of a plan, as a page would send it back.
fn hunks(workspace: &Workspace, plan: &Plan) -> Vec<ExceptHunk> {
    let hash = |entry: &Option<EntryView>| match entry {
        Some(EntryView::File { hash, .. }) => *hash,
        _ => ObjectId::of_blob(b""),
    };
    let diff = workspace.plan_diff(plan, 1).unwrap();
    let of = |file: &piton_engine::view::FileDiff| {
        let change = &file.change;
        let (path, now, then) = (change.path.exact().unwrap(), hash(&change.before), hash(&change.after));
        let at = |hunk| ExceptHunk { path: path.clone(), now, then, at: HunkAt::from(hunk) };
        file.hunks.iter().map(at).collect::<Vec<_>>()
    };
    diff.files.iter().flat_map(of).collect()
}

/// A clock that a test sets.
struct SetClock(AtomicI64);

impl Clock for SetClock {
    fn now_ns(&self) -> i64 {
        self.0.load(SeqCst) * 1_000_000
    }
}

/// Nine lines, some of them changed.
fn lines(changed: &[usize]) -> String {
    (1..=9).map(|n| if changed.contains(&n) { format!("changed {n}\n") } else { format!("line {n}\n") }).collect()
}

fn done(_: &World) {}

#[test]
fn a_rewind_leaves_what_was_taken_out_and_a_redo_brings_all_of_it_back() {
    let world = World::new();
    world.write("a", "1\n").write("d/b", "1\n").write("d/c", "1\n");
    let first = world.capture();
    world.write("a", "2\n").write("d/b", "2\n").remove("d/c").write("d/new", "2\n").write("new", "2\n");
    let before = world.snapshot();
    let outcome = rewind(&world, &first, without(&["d/b", "d/new"])).unwrap();
    assert!(outcome.verified, "{outcome:?}");
    assert_eq!(names(&outcome.excepted), ["d/b", "d/new"]);
    assert_eq!((world.read("a"), world.read("d/b"), world.read("d/c")), ("1\n".into(), "2\n".into(), "1\n".into()));
    assert!(world.has("d/new") && !world.has("new"));
    world.redo();
    world.assert_is(&before);
    world.assert_sound();
}

#[test]
fn a_folder_stays_for_what_is_taken_out_of_it_and_a_folder_is_taken_out_as_a_whole() {
    let world = World::new();
    world.write("a", "1\n");
    let first = world.capture();
    world.write("new/one", "1\n").write("new/two", "1\n").write("other/one", "1\n").write("other/two", "1\n");
    rewind(&world, &first, without(&["new/one", "other"])).unwrap();
    assert!(world.has("new/one") && !world.has("new/two"));
    assert!(world.has("other/one") && world.has("other/two"));
}

#[test]
fn what_is_taken_out_is_still_in_effect() {
    let world = World::new();
    world.write("a", "1\n").write("b", "1\n");
    let agent = Agent::new(&world, "s");
    agent.edits("both", &["a", "b"], |w| done(w.write("a", "2\n").write("b", "2\n")));
    undo(&world, "t1", without(&["b"])).unwrap();
    assert_eq!((world.read("a"), world.read("b")), ("1\n".into(), "2\n".into()));
    let outcome = undo(&world, "t1", Except::default()).unwrap();
    assert_eq!((names(&outcome.restored), world.read("b")), (vec!["b"], "1\n".into()));
    world.redo();
    world.redo();
    rewind(&world, "t1", without(&["b"])).unwrap();
    assert_eq!((world.read("a"), world.read("b")), ("1\n".into(), "2\n".into()));
    assert_eq!(names(&undo(&world, "all", Except::default()).unwrap().restored), ["b"]);
}

#[test]
fn what_a_redo_left_out_is_what_the_next_one_goes_on_with() {
    let world = World::new();
    world.write("a", "a").write("b", "b");
    let agent = Agent::new(&world, "s");
    agent.edits("both", &["a", "b"], |world| {
        world.write("a", "a by the agent").write("b", "b by the agent");
    });
    undo(&world, "t1", Except::default()).unwrap();
    let settle = Settle { except: without(&["b"]), ..Settle::default() };
    world.open().redo_now(&RedoOptions { settle, ..RedoOptions::default() }).unwrap();
    assert_eq!((world.read("a"), world.read("b")), ("a by the agent".into(), "b".into()));
    world.redo();
    assert_eq!((world.read("a"), world.read("b")), ("a by the agent".into(), "b by the agent".into()));
    assert!(world.open().redo_now(&RedoOptions::default()).is_err(), "nothing is left");
}

#[test]
fn a_file_that_the_plan_moves_stays_with_both_its_paths() {
    let world = World::new();
    world.write("f", lines(&[])).write("other", "1\n");
    let agent = Agent::new(&world, "s");
    agent.runs("move", "mv f g; echo 2 > other", |w| done(w.rename("f", "g").write("other", "2\n")));
    for path in ["f", "g"] {
        let outcome = undo(&world, "t1", without(&[path])).unwrap();
        assert_eq!(names(&outcome.excepted), ["f", "g"], "{path}");
        assert!(world.has("g") && !world.has("f"));
        assert_eq!(world.read("other"), "1\n");
        world.redo();
        let outcome = rewind(&world, "t1", without(&[path])).unwrap();
        assert_eq!((names(&outcome.excepted), names(&outcome.restored)), (vec!["f", "g"], vec!["other"]), "{path}");
        world.redo();
    }
}

#[test]
fn a_line_that_an_agent_carried_does_not_go_from_where_it_is_while_its_own_file_is_taken_out() {
    let world = World::new();
    world.write("from", "first\na line that the user wrote\nlast\n").write("to", "beginning\n");
    world.capture();
    let agent = Agent::new(&world, "s");
    agent.edits("carry", &["from", "to"], |w| {
        done(w.write("from", "first\nlast\n").write("to", "beginning\na line that the user wrote\n"));
    });
    let error = undo(&world, "t1", without(&["from"])).unwrap_err();
    assert!(matches!(&error, OperationError::Conflict(open) if open[0].path.display() == "to"), "{error}");
    let error = rewind(&world, "t1", without(&["from"])).unwrap_err();
    assert!(matches!(&error, OperationError::Conflict(open) if open[0].path.display() == "to"), "{error}");
    assert_eq!(world.read("to"), "beginning\na line that the user wrote\n");
}

#[test]
fn a_folder_in_whose_place_a_file_would_come_stays_as_a_whole() {
    let world = World::new();
    world.write("p", "a file\n").write("a", "1\n");
    let first = world.capture();
    world.remove("p").write("p/one", "1\n").write("p/two", "1\n").write("a", "2\n");
    let outcome = rewind(&world, &first, without(&["p/one"])).unwrap();
    assert_eq!(names(&outcome.excepted), ["p", "p/one"]);
    assert!(world.has("p/one") && world.has("p/two"));
    assert_eq!(world.read("a"), "1\n");
}

#[test]
fn what_is_not_in_the_plan_cannot_be_taken_out_of_it() {
    let world = World::new();
    world.write("a", "1\n").write("b", "1\n");
    let first = world.capture();
    world.write("a", "2\n");
    let before = world.snapshot();
    for path in ["b", "nowhere", "a/x"] {
        let error = rewind(&world, &first, without(&["a", path])).unwrap_err();
        assert!(matches!(&error, OperationError::NotInPlan { path: of } if of.display() == path), "{error}");
    }
    let outcome = rewind(&world, &first, without(&["a"])).unwrap();
    assert!(outcome.operation.is_none());
    world.assert_is(&before);
}

#[test]
fn places_of_a_file_stay_and_the_rest_of_it_goes_back() {
    let world = World::new();
    world.write("f", lines(&[])).write("g", "1\n");
    let agent = Agent::new(&world, "s");
    agent.edits("edit", &["f", "g"], |w| done(w.write("f", lines(&[1, 5, 9])).write("g", "2\n")));
    let before = world.snapshot();
    for target in [None, Some("t1")] {
        let mut workspace = world.open();
        let plan = match target {
            Some(target) => workspace.plan_rewind(target, &RewindOptions::default()).unwrap(),
            None => workspace.plan_undo(&undo_of("t1")).unwrap(),
        };
        let all = hunks(&workspace, &plan);
        assert_eq!(all.len(), 4, "{all:?}");
        let except = Except { paths: Vec::new(), hunks: vec![all[1].clone(), all[3].clone()] };
        let plan = workspace.plan_without(&plan, except).unwrap();
        assert_eq!(names(&plan.view().in_part), ["f", "g"]);
        assert_eq!(names(&plan.view().restored), ["f"]);
        let outcome = workspace.carry_out(plan).unwrap();
        assert!(outcome.verified);
        assert_eq!((world.read("f"), world.read("g")), (lines(&[5]), "2\n".to_owned()));
        // The change is still in effect: what stayed of it can be taken back later.
        let rest = workspace.undo_now(&undo_of("t1")).unwrap();
        assert_eq!((world.read("f"), world.read("g")), (lines(&[]), "1\n".to_owned()), "{rest:?}");
        for _ in 0..2 {
            workspace.redo_now(&RedoOptions::default()).unwrap();
        }
        world.assert_is(&before);
    }
    world.assert_sound();
}

#[test]
fn places_stay_beside_what_somebody_else_edited_since() {
    let world = World::new();
    world.write("f", lines(&[]));
    let agent = Agent::new(&world, "s");
    agent.edits("edit", &["f"], |w| done(w.write("f", lines(&[1, 5]))));
    let users = lines(&[1, 5]).replace("line 9", "the user's");
    world.write("f", &users);
    let mut workspace = world.open();
    let plan = workspace.plan_undo(&undo_of("t1")).unwrap();
    let all = hunks(&workspace, &plan);
    let plan = workspace.plan_without(&plan, Except { paths: Vec::new(), hunks: vec![all[0].clone()] }).unwrap();
    workspace.carry_out(plan).unwrap();
    assert_eq!(world.read("f"), lines(&[1]).replace("line 9", "the user's"));
}

#[test]
fn places_mean_what_was_shown_and_nothing_else() {
    let world = World::new();
    world.write("f", lines(&[])).write("gone", "1\n");
    let first = world.capture();
    world.write("f", lines(&[1, 9])).write("new", "1\n").remove("gone");
    let workspace = world.open();
    let plan = workspace.plan_rewind(&first, &RewindOptions::default()).unwrap();
    let all = hunks(&workspace, &plan);
    let of = |path: &str| all.iter().find(|hunk| hunk.path.display() == path).unwrap().clone();
    let try_without = |hunk: ExceptHunk| workspace.plan_without(&plan, Except { paths: Vec::new(), hunks: vec![hunk] });
    for path in ["new", "gone"] {
        let error = try_without(of(path)).err().unwrap();
        assert!(matches!(error, OperationError::OnlyWhole { .. }), "{path}: {error}");
    }
    let elsewhere = ExceptHunk { at: HunkAt { old_start: 4, ..of("f").at }, ..of("f") };
    assert!(matches!(try_without(elsewhere).err().unwrap(), OperationError::Stale { .. }));
    world.write("f", lines(&[1, 8, 9]));
    assert!(matches!(try_without(of("f")).err().unwrap(), OperationError::Stale { .. }));
}

#[test]
fn nothing_that_came_since_a_plan_was_shown_comes_into_it_when_something_is_taken_out() {
    let world = World::new();
    world.write("a", "1\n").write("b", "1\n");
    let first = world.capture();
    world.write("a", "2\n").write("b", "2\n");
    let workspace = world.open();
    let plan = workspace.plan_rewind(&first, &RewindOptions::default()).unwrap();
    world.write("since", "1\n");
    let error = workspace.plan_without(&plan, without(&["a"])).err().unwrap();
    assert!(matches!(&error, OperationError::Stale { path } if path.display() == "since"), "{error}");
}

#[test]
fn a_plan_that_is_kept_is_carried_out_once_and_as_it_was_shown() {
    let world = World::new();
    world.write("a", "1\n").write("b", "1\n");
    let first = world.capture();
    world.write("a", "2\n").write("b", "2\n");
    let mut workspace = world.open();
    let plans = Plans::new(Arc::new(SystemClock));
    let plan = workspace.plan_rewind(&first, &RewindOptions::default()).unwrap();
    let again = workspace.plan_rewind(&first, &RewindOptions::default()).unwrap();
    assert_eq!(plan.view().fingerprint, again.view().fingerprint);
    let shown = plans.keep(plan).unwrap();
    // As a page gets it and sends it back.
    let shown: PlanView = serde_json::from_str(&serde_json::to_string(&shown).unwrap()).unwrap();
    let id = shown.id.clone().unwrap();
    let other = workspace.plan_without(&plans.get(&id).unwrap(), without(&["a"])).unwrap();
    let other = plans.keep(other).unwrap();
    assert_ne!((&other.id, other.fingerprint), (&shown.id, shown.fingerprint));
    assert!(matches!(plans.take(&id, &other.fingerprint), Err(OperationError::Expired)));
    let plan = plans.take(other.id.as_ref().unwrap(), &other.fingerprint).unwrap();
    workspace.carry_out(plan).unwrap();
    assert_eq!((world.read("a"), world.read("b")), ("2\n".into(), "1\n".into()));
    assert!(matches!(plans.take(other.id.as_ref().unwrap(), &other.fingerprint), Err(OperationError::Expired)));
    // The first one is there still, and what it was made from is not.
    let stale = workspace.carry_out(plans.take(&id, &shown.fingerprint).unwrap()).unwrap_err();
    assert!(matches!(stale, OperationError::Stale { .. }), "{stale}");
}

#[test]
fn a_plan_is_kept_for_ten_minutes_and_the_newest_of_many() {
    let world = World::new();
    world.write("a", "1\n");
    let first = world.capture();
    world.write("a", "2\n");
    let workspace = world.open();
    let plan = || workspace.plan_rewind(&first, &RewindOptions::default()).unwrap();
    let clock = Arc::new(SetClock(AtomicI64::new(1_000_000)));
    let plans = Plans::new(clock.clone());
    let shown = plans.keep(plan()).unwrap();
    let id = shown.id.unwrap();
    clock.0.store(1_000_000 + 599_999, SeqCst);
    assert!(plans.get(&id).is_ok());
    clock.0.store(1_000_000 + 600_000, SeqCst);
    assert!(matches!(plans.get(&id), Err(OperationError::Expired)));
    let many: Vec<_> = (0..70).map(|_| plans.keep(plan()).unwrap().id.unwrap()).collect();
    assert!(plans.get(&many[0]).is_err() && plans.get(&many[69]).is_ok());
    // A clock that went back keeps nothing for longer.
    clock.0.store(0, SeqCst);
    assert!(plans.get(&many[69]).is_err());
}

#[test]
fn a_plan_of_another_workspace_is_refused() {
    let (one, other) = (World::new(), World::new());
    one.write("a", "1\n");
    let first = one.capture();
    one.write("a", "2\n");
    other.write("a", "2\n");
    other.capture();
    let plan = one.open().plan_rewind(&first, &RewindOptions::default()).unwrap();
    assert!(matches!(other.open().carry_out(plan), Err(OperationError::Expired)));
    assert_eq!(other.read("a"), "2\n");
}

/// What is in conflict would change as soon as somebody decides it.
#[test]
fn a_file_in_conflict_can_be_taken_out_and_then_nothing_is_in_conflict() {
    let world = World::new();
    world.write("f", lines(&[])).write("other", "1\n");
    let agent = Agent::new(&world, "s");
    agent.edits("one", &["f", "other"], |w| done(w.write("f", lines(&[5])).write("other", "2\n")));
    world.write("f", lines(&[5]).replace("changed 5", "mine"));
    assert!(matches!(undo(&world, "t1", Except::NOTHING), Err(OperationError::Conflict(_))));
    let outcome = undo(&world, "t1", without(&["f"])).unwrap();
    assert!(outcome.verified && outcome.conflicts.is_empty());
    assert_eq!(names(&outcome.excepted), ["f"]);
    assert_eq!((world.read("other"), world.read("f")), ("1\n".to_owned(), lines(&[5]).replace("changed 5", "mine")));
    // It is not taken back by that, so that it can be later.
    assert!(matches!(undo(&world, "t1", Except::NOTHING), Err(OperationError::Conflict(_))));
}
