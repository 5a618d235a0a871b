//! A store whose budget is used up: events leave gaps, and what an operation overwrites is kept all the same.

use std::path::Path;

use piton_engine::model::event::Event;
use piton_engine::model::{Owner, SkipReason, WorkspacePath};
use piton_engine::view::{PathView, SkippedView};
use piton_engine::{
    BlameOptions, CaptureError, CaptureOptions, ChangesOptions, DiffOptions, InitOptions, LogOptions, MINIMUM_BUDGET,
    OperationError, RewindOptions, StoreError, UndoOptions,
};
use piton_host::fail;
use piton_testkit::{Agent, World, noise};

/// A workspace with a checkpoint, and after that a file for which there is no room.
fn full() -> (World, String) {
    let world = World::new();
    world.engine.init(&world.ws(), InitOptions { budget: Some(MINIMUM_BUDGET), force: false }).unwrap();
    world.write("ballast", noise(1, 4 << 20)).write("f", "1").write("src/a.rs", "a").write("src/b.rs", "b");
    world.write("gone", "gone");
    let id = world.capture();
    world.write("f", noise(2, 200_000)).write("src/a.rs", "changed").remove("gone").write("new/n", "new");
    world.write("large", noise(3, 3 << 20)).write("dir/large", noise(4, 100_000)).write("dir/deep/large", "and more");
    assert!(is_over(&world.open().capture(&CaptureOptions::default()).unwrap_err()));
    (world, id)
}

fn is_over(error: &CaptureError) -> bool {
    matches!(error, CaptureError::Store(StoreError::OverBudget { .. }))
}

fn of_paths(paths: &[&str]) -> RewindOptions {
    let paths = paths.iter().map(|path| WorkspacePath::new(*path).unwrap()).collect();
    RewindOptions { paths, ..RewindOptions::default() }
}

fn over_budget(skipped: &[SkippedView]) -> Vec<&str> {
    let is_over = |one: &&SkippedView| one.reason == SkipReason::Budget;
    skipped.iter().filter(is_over).map(|one| &one.path.path[..]).collect()
}

/// A checkpoint, counted from the newest.
fn newest(world: &World, back: usize) -> String {
    world.open().log(LogOptions { limit: None }).unwrap().checkpoints[back].id.to_string()
}

fn allow_more(world: &World) {
    world.engine.init(&world.ws(), InitOptions { budget: Some(10 * MINIMUM_BUDGET), force: false }).unwrap();
}

fn size_of(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap());
    entries.map(|e| if e.path().is_dir() { size_of(&e.path()) } else { e.metadata().unwrap().len() }).sum()
}

const SOME: [&str; 4] = ["f", "src", "gone", "new"];

#[test]
fn what_an_operation_overwrites_or_deletes_is_kept_though_a_full_capture_does_not_fit() {
    let (world, id) = full();
    let before = world.snapshot();
    let outcome = world.open().rewind_now(&id, &of_paths(&SOME)).unwrap();
    assert!(outcome.verified);
    let paths = |list: &[PathView]| list.iter().map(|one| one.path.clone()).collect::<Vec<_>>();
    assert_eq!(paths(&outcome.restored), ["f", "src/a.rs"]);
    assert_eq!((paths(&outcome.created), paths(&outcome.deleted)), (vec!["gone".into()], vec!["new/n".into()]));
    // The rest is listed as unknown, a folder of which nothing is known as one thing.
    let kept = world.open().show(newest(&world, 1).as_str()).unwrap().checkpoint;
    assert_eq!(over_budget(&kept.skipped), ["dir", "large"]);
    assert!(size_of(world.open().store_folder()) <= MINIMUM_BUDGET);
    world.assert_sound();

    // Taken back while the store is still full: exactly what was there.
    assert!(world.redo().verified);
    world.assert_is(&before);
    world.assert_sound();
    assert!(size_of(world.open().store_folder()) <= MINIMUM_BUDGET);
}

#[test]
fn a_rewind_of_everything_that_fits_into_the_reserve_is_done_and_can_be_taken_back_with_room_again() {
    let world = World::new();
    world.engine.init(&world.ws(), InitOptions { budget: Some(MINIMUM_BUDGET), force: false }).unwrap();
    world.write("ballast", noise(1, 4_800_000)).write("f", "1");
    let id = world.capture();
    let old = world.snapshot();
    world.write("f", noise(2, 600_000));
    let before = world.snapshot();
    assert!(is_over(&world.open().capture(&CaptureOptions::default()).unwrap_err()));
    world.rewind(&id);
    world.assert_is(&old);
    allow_more(&world);
    world.redo();
    world.assert_is(&before);
    world.assert_sound();
}

#[test]
fn what_does_not_fit_into_the_reserve_either_is_refused_with_figures_and_nothing_is_changed() {
    let (world, id) = full();
    let before = world.snapshot();
    for _ in 0..2 {
        match world.open().rewind_now(&id, &RewindOptions::default()).unwrap_err() {
            OperationError::Capture(CaptureError::Store(StoreError::OverBudget { needed, budget })) => {
                assert_eq!(budget, MINIMUM_BUDGET);
                assert!(needed > budget, "{needed}");
            }
            other => panic!("{other}"),
        }
        world.assert_is(&before);
    }
    world.assert_sound();
    assert!(size_of(world.open().store_folder()) <= MINIMUM_BUDGET);
}

#[test]
fn what_was_left_out_for_the_budget_is_unknown_to_later_rewinds_and_nobody_is_taken_for_its_author() {
    let (world, id) = full();
    let agent = Agent::new(&world, "s1");
    // The agent writes it while nothing can be captured.
    agent.prompt("one");
    agent.before("c1", "Edit", &["ours"]);
    world.write("ours", noise(5, 900_000)).write("ballast", "small now");
    assert!(agent.after("c1").gap.is_some());
    agent.end_turn();
    world.open().rewind_now(&id, &RewindOptions { interrupted: true, ..of_paths(&["src"]) }).unwrap();
    let lean = newest(&world, 0);
    let now = world.snapshot();
    allow_more(&world);

    let captured = world.captured().checkpoint;
    assert!(captured.checkpoint.changes.is_empty(), "{:?}", captured.checkpoint.changes);
    let options = ChangesOptions { session: Some(agent.id().to_string()), all: true };
    let changes = world.open().changes(&options).unwrap().changes;
    let of_unknown = changes.iter().filter(|one| ["ours", "ballast"].contains(&&one.change.path.path[..]));
    assert_eq!(of_unknown.count(), 0, "{changes:?}");
    // From here on everybody's changes are their own again.
    agent.prompt("two");
    agent.before("c2", "Edit", &["ballast"]);
    world.write("ballast", "smaller still");
    agent.after("c2");
    agent.end_turn();
    let turn = agent.turns().pop().unwrap();
    assert_eq!(turn.files.len(), 1);
    assert!(matches!(&turn.files[0].owner, Owner::Step { step, .. } if step.turn == 2), "{:?}", turn.files);
    let blamed = world.open().blame(&WorkspacePath::new("ballast").unwrap(), &BlameOptions::default()).unwrap();
    assert_eq!(blamed.lines.len(), 1);

    // Back to the checkpoint that does not know them: they stay.
    world.write("src/a.rs", "later");
    let outcome = world.rewind(&lean);
    assert_eq!(over_budget(&outcome.skipped), ["ballast", "dir", "f", "large", "new", "ours"]);
    let mut expected = now.clone();
    expected = expected.without("ballast");
    assert!(world.snapshot().without("ballast") == expected, "{:?}", world.snapshot().differences(&expected));
    assert_eq!(std::fs::read(world.path("ballast")).unwrap(), b"smaller still");
    world.assert_sound();
}

#[test]
fn a_crash_at_any_step_of_an_operation_in_a_full_store_leaves_the_old_or_the_new_tree() {
    let (world, id) = full();
    world.open().rewind_now(&id, &of_paths(&SOME)).unwrap();
    let new = world.snapshot();
    let (mut olds, mut news) = (0, 0);
    for step in 1.. {
        let (world, id) = full();
        let old = world.snapshot();
        let act = || drop(world.open().rewind_now(&id, &of_paths(&SOME)));
        if fail::with(step, act).is_some() {
            assert!(step > 30, "only {step} steps: are the failpoints there?");
            break;
        }
        // The next command ends it, though a full capture still does not fit.
        drop(world.open());
        assert!(world.open().status().unwrap().pending.is_empty(), "died at step {step}");
        let now = world.snapshot();
        if now == new {
            news += 1;
        } else {
            olds += 1;
            assert!(now == old, "died at step {step}: {:?}", now.differences(&old));
        }
        world.assert_sound();
        assert!(size_of(world.open().store_folder()) <= MINIMUM_BUDGET, "died at step {step}");
        if now == new {
            world.redo();
            world.assert_is(&old);
        }
    }
    assert!(olds > 10 && news > 1, "{olds} old, {news} new");
}

#[test]
fn what_an_agent_says_counts_towards_the_budget_and_never_takes_more() {
    let world = World::new();
    world.engine.init(&world.ws(), InitOptions { budget: Some(MINIMUM_BUDGET), force: false }).unwrap();
    world.write("f", "1");
    let agent = Agent::new(&world, "s1");
    let id = world.capture();
    for n in 0..60 {
        let text: String = noise(n, 100_000).iter().map(|byte| format!("{byte:02x}")).collect();
        let report = agent.report(None, Event::Prompt { text });
        // In the end not even a gap can be recorded.
        let _ = world.engine.observe(&report, &piton_engine::ObserveOptions::default());
        let size = size_of(world.open().store_folder());
        assert!(size <= MINIMUM_BUDGET, "after {n} prompts the store takes {size} bytes");
    }
    assert!(world.open().capture(&CaptureOptions::default()).is_err_and(|error| is_over(&error)));
    // And there is room for an operation and for taking it back.
    world.write("f", "2");
    world.rewind(&id);
    world.redo();
    assert_eq!(std::fs::read(world.path("f")).unwrap(), b"2");
    assert!(size_of(world.open().store_folder()) <= MINIMUM_BUDGET);
    world.assert_sound();
}

/// A redo's plan is made from all that is there, and what it works out on the way names what there is no room for: none of
/// that may get into the store without what it names.
#[test]
fn no_checkpoint_names_what_there_was_no_room_for() {
    let (world, id) = full();
    for _ in 0..3 {
        world.open().rewind_now(&id, &of_paths(&["src"])).unwrap();
        let shown = world.open().show(newest(&world, 0).as_str()).unwrap().checkpoint;
        assert_eq!(over_budget(&shown.skipped), ["dir", "f", "large", "new"]);
        world.redo();
        world.assert_sound();
    }
    let last = newest(&world, 0);
    world.remove("large");
    let outcome = world.open().rewind_now(&last, &RewindOptions::default()).unwrap();
    assert!(over_budget(&outcome.skipped).contains(&"large"));
    world.assert_sound();
}

#[test]
fn what_an_operation_left_out_for_want_of_room_is_never_called_equal() {
    let (world, id) = full();
    let outcome = world.open().rewind_now(&id, &of_paths(&SOME)).unwrap();
    assert_eq!(over_budget(&outcome.skipped), ["dir", "large"]);
    world.remove("large");
    let status = world.open().status().unwrap();
    assert_eq!(over_budget(&status.skipped), ["dir", "large"]);
    let diff = world.open().diff(&DiffOptions { names_only: true, ..DiffOptions::default() }).unwrap();
    assert_eq!(over_budget(&diff.not_compared), ["dir", "large"]);
}

/// The state before the tool was never captured, so what the user wrote before it is in the same change.
#[test]
fn what_a_tool_changed_after_a_gap_is_not_surely_its_own() {
    let world = World::new();
    world.write("small", "hi\n").write("a", noise(1, 3_600_000));
    world.engine.init(&world.ws(), InitOptions { budget: Some(MINIMUM_BUDGET), ..InitOptions::default() }).unwrap();
    world.capture();
    world.write("b", noise(2, 7_000_000)).write("small", "hi\nUSER WORK\n");
    let agent = Agent::new(&world, "s");
    agent.prompt("go");
    agent.step("Bash", &[], |w| {
        w.write("small", "hi\nUSER WORK\nagent\n").remove("b");
    });
    agent.end_turn();
    let outcome = world.open().undo_now(&UndoOptions::default()).unwrap();
    let left: Vec<_> = outcome.unsure.iter().map(|file| &file.path.path[..]).collect();
    assert!(outcome.operation.is_none() && left == ["small"], "{outcome:?}");
    assert_eq!(std::fs::read_to_string(world.path("small")).unwrap(), "hi\nUSER WORK\nagent\n");
}
