//! What a rewind, an undo or a redo cannot put back is never called equal: it is named, and the rest is done. What only its
//! owner's bits keep from being read is put back with its bits.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use piton_engine::view::OperationOutcome;
use piton_engine::{Choice, DiffOptions, OperationError, RewindOptions, UndoOptions, Which};
use piton_host::fail;
use piton_testkit::{Agent, World, as_ordinary_user, git};

fn mode(world: &World, path: &str) -> u32 {
    std::fs::symlink_metadata(world.path(path)).unwrap().permissions().mode() & 0o7777
}

fn not_done(outcome: &OperationOutcome) -> Vec<String> {
    outcome.not_done.iter().map(|one| format!("{} {:?}", one.path.path, one.reason)).collect()
}

fn restored(outcome: &OperationOutcome) -> Vec<&str> {
    outcome.restored.iter().map(|path| &path.path[..]).collect()
}

/// Lets the scratch folder go again.
fn open_all(world: &World, paths: &[&str]) {
    for path in paths {
        let _ = std::fs::set_permissions(world.path(path), std::fs::Permissions::from_mode(0o755));
    }
}

#[test]
fn a_file_that_only_became_unreadable_gets_its_bits_back() {
    as_ordinary_user(|| {
        let world = World::new();
        world.write("f", "1").mode("f", 0o640).write("same", "s");
        let id = world.capture();
        world.mode("f", 0o000);
        let plan = world.open().plan_rewind(&id, &RewindOptions::default()).unwrap();
        assert!(plan.view().not_done.is_empty() && !plan.view().is_empty());
        assert_eq!(mode(&world, "f"), 0o000, "a plan touches nothing");
        drop(plan);
        let outcome = world.rewind(&id);
        assert_eq!((mode(&world, "f"), &world.read("f")[..]), (0o640, "1"));
        assert!(outcome.verified && outcome.operation.is_some(), "{outcome:?}");
        assert_eq!((restored(&outcome), not_done(&outcome)), (vec!["f"], vec![]));
        let again = world.rewind(&id);
        assert!(again.operation.is_none() && again.verified);
        world.assert_sound();
    });
}

#[test]
fn a_file_that_was_edited_and_became_unreadable_is_captured_and_put_back_as_it_was() {
    as_ordinary_user(|| {
        for shown in [false, true] {
            let world = World::new();
            world.write("f", "1").mode("f", 0o600);
            let id = world.capture();
            world.write("f", "edited").mode("f", 0o000);
            let mut workspace = world.open();
            let outcome = if shown {
                let plan = workspace.plan_rewind(&id, &RewindOptions::default()).unwrap();
                workspace.carry_out(plan).unwrap()
            } else {
                workspace.rewind_now(&id, &RewindOptions::default()).unwrap()
            };
            assert_eq!((mode(&world, "f"), &world.read("f")[..]), (0o600, "1"), "{shown}");
            assert_eq!((restored(&outcome), outcome.verified), (vec!["f"], true));
            drop(workspace);
            // Nothing was overwritten that was not captured.
            let outcome = world.redo();
            assert!(outcome.verified && mode(&world, "f") == 0o000, "{outcome:?}");
            world.mode("f", 0o600);
            assert_eq!(world.read("f"), "edited");
            world.assert_sound();
        }
    });
}

#[test]
fn a_folder_that_became_unreadable_is_opened_and_put_back_with_all_that_is_in_it() {
    as_ordinary_user(|| {
        // Nobody may list it, or nobody may enter it.
        for closed in [0o000, 0o600] {
            let world = World::new();
            world.write("d/f", "1").write("d/sub/g", "1").mode("d", 0o750);
            let id = world.capture();
            world.write("d/f", "2").write("d/new", "n").mode("d", closed);
            let outcome = world.rewind(&id);
            assert_eq!((mode(&world, "d"), not_done(&outcome)), (0o750, vec![]), "{closed:o}");
            assert_eq!((&world.read("d/f")[..], &world.read("d/sub/g")[..]), ("1", "1"));
            assert!(!world.path("d/new").exists() && outcome.verified);
            world.assert_sound();
        }
    });
}

#[test]
fn a_file_in_whose_place_a_pipe_is_stays_so_and_is_named_while_the_rest_is_done() {
    let world = World::new();
    world.write("f", "1").write("other", "1");
    let id = world.capture();
    world.remove("f").write("other", "2");
    assert!(Command::new("mkfifo").arg(world.path("f")).status().unwrap().success());
    let view = world.open().plan_rewind(&id, &RewindOptions::default()).unwrap().view().clone();
    assert_eq!(view.not_done[0].path.path, "f");
    let outcome = world.rewind(&id);
    assert_eq!(world.read("other"), "1");
    assert_eq!((not_done(&outcome), outcome.verified), (vec!["f Special".to_owned()], false));
    let again = world.rewind(&id);
    assert!(again.operation.is_none() && !again.verified, "it is not as it was");
    assert_eq!(not_done(&again), ["f Special"]);
}

#[test]
fn what_came_since_and_cannot_be_read_stays_and_is_named() {
    as_ordinary_user(|| {
        let world = World::new();
        world.write("f", "1");
        let id = world.capture();
        world.write("secret", "s").mode("secret", 0o000).write("closed/inside", "i").mode("closed", 0o000);
        assert!(Command::new("mkfifo").arg(world.path("pipe")).status().unwrap().success());
        let outcome = world.rewind(&id);
        assert_eq!(not_done(&outcome), ["closed Unreadable", "secret Unreadable"]);
        assert!(!outcome.verified && outcome.operation.is_none());
        let skipped: Vec<_> = outcome.skipped.iter().map(|one| &one.path.path[..]).collect();
        assert_eq!(skipped, ["closed", "pipe", "secret"]);
        open_all(&world, &["closed"]);
    });
}

/// Its other name may be anywhere, and its bits are one.
#[test]
fn the_bits_of_a_file_with_another_name_are_left_alone() {
    as_ordinary_user(|| {
        let world = World::new();
        world.write("f", "1");
        let id = world.capture();
        std::fs::hard_link(world.path("f"), world.base().join("elsewhere")).unwrap();
        world.mode("f", 0o000);
        let outcome = world.rewind(&id);
        assert_eq!((mode(&world, "f"), not_done(&outcome)), (0, vec!["f Unreadable".to_owned()]));
    });
}

#[test]
fn an_undo_and_a_redo_say_it_too() {
    as_ordinary_user(|| {
        let world = World::new();
        world.write("a", "1").write("b", "1");
        let agent = Agent::new(&world, "s");
        agent.edits("both", &["a", "b"], |w| {
            w.write("a", "2").write("b", "2");
        });
        world.mode("a", 0o000);
        world.remove("b");
        assert!(Command::new("mkfifo").arg(world.path("b")).status().unwrap().success());
        let options = UndoOptions {
            choice: Choice { what: Which::of_words(&["t1"]).unwrap().0, ..Choice::default() },
            ..UndoOptions::default()
        };
        let outcome = world.open().undo_now(&options).unwrap();
        assert_eq!((not_done(&outcome), outcome.verified), (vec!["b Special".to_owned()], false));
        assert_eq!(world.read("a"), "1");
        // And back, with the same in its way.
        world.mode("a", 0o000);
        let outcome = world.redo();
        assert_eq!(world.read("a"), "2", "{outcome:?}");
    });
}

#[test]
fn an_operation_that_is_refused_leaves_the_bits_as_they_were() {
    as_ordinary_user(|| {
        let world = World::new();
        world.write("f", "1").write("g", "1");
        let id = world.capture();
        world.mode("f", 0o000).write("g", "2");
        let path = world.path("g");
        let happen = move || std::fs::remove_file(path).unwrap();
        let rewind = || world.open().rewind_now(&id, &RewindOptions::default());
        let refused = fail::when(1, "apply:swap", happen, rewind);
        assert!(matches!(refused, Err(OperationError::RolledBack { .. })), "{refused:?}");
        assert_eq!(mode(&world, "f"), 0o000);
    });
}

#[test]
fn a_crash_at_any_step_leaves_the_bits_and_the_files_of_before_or_after() {
    as_ordinary_user(|| {
        let mut died = 0;
        for step in 1.. {
            let world = World::new();
            world.write("f", "1").mode("f", 0o644).write("g", "1").write("d/h", "1").mode("d", 0o755);
            let id = world.capture();
            world.mode("f", 0o000).write("g", "2").write("d/h", "2").mode("d", 0o000);
            if fail::with(step, || drop(world.rewind(&id))).is_some() {
                break;
            }
            died = step;
            let recovered = world.open().recovered().to_vec();
            assert!(recovered.iter().all(|one| one.left_alone.is_empty()), "step {step}: {recovered:?}");
            let g = world.read("g");
            let expected = if g == "2" { (0o000, 0o000) } else { (0o644, 0o755) };
            assert_eq!((mode(&world, "f"), mode(&world, "d")), expected, "step {step}, g is {g}");
            let outcome = world.rewind(&id);
            assert!(outcome.verified, "step {step}: {outcome:?}");
            assert_eq!((mode(&world, "f"), mode(&world, "d"), &world.read("d/h")[..]), (0o644, 0o755, "1"));
            world.assert_sound();
        }
        assert!(died > 20, "only {died} steps");
    });
}

/// A turn that puts something out of sight changed nothing that two checkpoints show, and may have destroyed it.
#[test]
fn an_undo_names_what_its_turn_put_out_of_sight() {
    as_ordinary_user(|| {
        let all = UndoOptions::default();
        // By a rule, in the same turn that destroyed it: the rule is the agent's own, and hides nothing.
        let world = World::new();
        world.write("src/a", "good").write("src/b", "good").write("r", "x");
        let agent = Agent::new(&world, "s");
        agent.prompt("go");
        agent.step("Bash", &[], |w| {
            w.write(".pitonignore", "src/\n").remove("src/b").write("src/a", "BROKEN").write("r", "y");
        });
        agent.end_turn();
        let outcome = world.open().undo_now(&all).unwrap();
        assert_eq!((not_done(&outcome), outcome.verified), (vec![], true));
        assert_eq!(["src/a", "src/b", "r"].map(|path| world.read(path)), ["good", "good", "x"]);

        // A pipe in its place, and nothing else in the turn: it is still the last turn.
        let world = World::new();
        world.write("f", "good").write("other", "1");
        let agent = Agent::new(&world, "s");
        agent.edits("first", &["other"], |w| drop(w.write("other", "2").ws()));
        agent.prompt("go");
        agent.step("Bash", &[], |w| {
            w.remove("f");
            assert!(Command::new("mkfifo").arg(w.path("f")).status().unwrap().success());
        });
        agent.end_turn();
        let diff = world.open().diff(&piton_engine::DiffOptions { from: "t1".parse().ok(), ..Default::default() });
        assert_eq!(diff.unwrap().not_compared[0].path.path, "f");
        let outcome = world.open().undo_now(&all).unwrap();
        assert_eq!((not_done(&outcome), world.read("other")), (vec!["f Special".to_owned()], "2".into()));
        assert!(outcome.operation.is_none());

        // Only its bits: they come back, and with them what it was.
        let world = World::new();
        world.write("q", "1").mode("q", 0o640).write("r", "x");
        let agent = Agent::new(&world, "s");
        agent.prompt("go");
        agent.step("Bash", &[], |w| drop(w.mode("q", 0o000).write("r", "y").ws()));
        agent.end_turn();
        let outcome = world.open().undo_now(&all).unwrap();
        assert_eq!((mode(&world, "q"), not_done(&outcome), outcome.verified), (0o640, vec![], true));
        assert_eq!(world.read("r"), "x");

        // Its bits and its content: what nobody could read is not known to be the turn's, and is named.
        let world = World::new();
        world.write("q", "1").mode("q", 0o640);
        let agent = Agent::new(&world, "s");
        agent.prompt("go");
        agent.step("Bash", &[], |w| drop(w.write("q", "2").mode("q", 0o000).ws()));
        agent.end_turn();
        let outcome = world.open().undo_now(&all).unwrap();
        assert_eq!((not_done(&outcome), outcome.verified), (vec!["q Unreadable".to_owned()], false), "{outcome:?}");
        // What was said of it is so: a rewind puts it back.
        world.rewind("t1");
        assert_eq!((mode(&world, "q"), &world.read("q")[..]), (0o640, "1"));
    });
}

#[test]
fn a_file_that_came_since_and_is_over_the_limit_is_listed() {
    let world = World::with(|around| around.largest_file = Some(1 << 20));
    world.write("f", "1");
    let id = world.capture();
    world.write("big", vec![0; 2 << 20]);
    let outcome = world.rewind(&id);
    let skipped: Vec<_> = outcome.skipped.iter().map(|one| &one.path.path[..]).collect();
    assert_eq!(skipped, ["big"]);
}

#[test]
fn a_redo_closes_what_the_rewind_opened_unless_somebody_gave_it_other_bits_since() {
    as_ordinary_user(|| {
        for since in [None, Some(0o640)] {
            let world = World::new();
            world.write("f", "1").mode("f", 0o644).write("d/h", "1").mode("d", 0o755);
            let id = world.capture();
            world.mode("f", 0o000).mode("d", 0o000);
            world.rewind(&id);
            assert_eq!((mode(&world, "f"), mode(&world, "d")), (0o644, 0o755));
            if let Some(bits) = since {
                world.mode("f", bits);
            }
            world.redo();
            assert_eq!((mode(&world, "f"), mode(&world, "d")), (since.unwrap_or(0o000), 0o000));
            world.rewind(&id);
            assert_eq!((mode(&world, "f"), mode(&world, "d"), &world.read("d/h")[..]), (0o644, 0o755, "1"));
            world.assert_sound();
        }
    });
}

/// An undo used to say "recreated; verified" of a folder whose ignored part stays away.
#[test]
fn what_a_tool_deleted_and_nobody_captured_is_named_by_its_undo() {
    let world = World::new();
    world.write(".gitignore", "node_modules/\n*.bin\n").write("src/a", "a").write("src/node_modules/p/one", "1");
    world.write("src/model.bin", vec![7; 2 << 20]).write("dist/node_modules/two", "2");
    std::os::unix::net::UnixListener::bind(world.path("src/socket")).unwrap();
    let agent = Agent::new(&world, "s");
    agent.runs("first", "make", |world| {
        world.write("first", "1");
    });
    agent.runs("clean up", "rm -rf src dist", |world| {
        world.remove("src").remove("dist");
    });
    let plan = world.open().plan_undo(&UndoOptions::default()).unwrap();
    let named: Vec<&str> = plan.view().not_done.iter().map(|one| &one.path.path[..]).collect();
    assert_eq!(named, ["dist/node_modules", "src/model.bin", "src/node_modules"]);
    let outcome = world.open().carry_out(plan).unwrap();
    assert_eq!(not_done(&outcome).len(), 3, "{outcome:?}");
    assert_eq!(world.read("src/a"), "a");
    // Nothing else of the turn can be taken back, so the one before it comes next.
    let plan = world.open().plan_undo(&UndoOptions::default()).unwrap();
    assert_eq!(plan.view().about.as_deref(), Some("turn 1 “first”"));
    // What somebody made again since is not missed.
    world.redo();
    world.write("src/node_modules/p/one", "1").write("src/model.bin", vec![7; 2 << 20]);
    let outcome = world.open().undo_now(&UndoOptions::default()).unwrap();
    assert_eq!(not_done(&outcome), ["dist/node_modules Ignored"]);
}

/// A folder that a tool names is in the checkpoint before it, and what a rule leaves out in it is not.
#[test]
fn a_named_folder_that_comes_back_without_what_was_ignored_in_it_is_not_called_whole() {
    let world = World::new();
    world.write(".gitignore", "ignored/\n").write("a", "a").write("ignored/folder/deep/one", "1");
    let agent = Agent::new(&world, "s");
    agent.edits("go", &["ignored/folder"], |world| {
        world.remove("ignored/folder");
    });
    let outcome = world.open().undo_now(&UndoOptions::default()).unwrap();
    assert!(!outcome.not_done.is_empty(), "{outcome:?}");
}

/// A nested clone comes back without its repository, with the commits that nobody else has.
#[test]
fn the_repository_of_a_nested_clone_that_a_tool_deleted_is_named_by_its_undo() {
    let world = World::new();
    let clone = |world: &World, folder: &str| {
        world.write(format!("{folder}/f"), "1");
        git(&world.path(folder), &["init", "-q"]);
    };
    clone(&world, "lib");
    clone(&world, "vendor/deep");
    let agent = Agent::new(&world, "s");
    agent.runs("clean up", "rm -rf lib vendor", |world| {
        world.remove("lib").remove("vendor");
    });
    let plan = world.open().plan_undo(&UndoOptions::default()).unwrap();
    let named: Vec<&str> = plan.view().not_done.iter().map(|one| &one.path.path[..]).collect();
    assert_eq!(named, ["lib/.git", "vendor/deep/.git"]);
    let outcome = world.open().carry_out(plan).unwrap();
    assert_eq!((not_done(&outcome).len(), outcome.verified), (2, false), "{outcome:?}");
    assert_eq!((world.read("lib/f"), world.read("vendor/deep/f")), ("1".into(), "1".into()));
    // One that somebody made again since is not missed.
    world.redo();
    clone(&world, "lib");
    let outcome = world.open().undo_now(&UndoOptions::default()).unwrap();
    assert_eq!(not_done(&outcome), ["vendor/deep/.git GitFolder"]);
}

/// Where only the repository goes and its folder stays, nothing else says so.
#[test]
fn a_nested_repository_that_a_tool_deleted_out_of_its_folder_is_named_by_its_undo() {
    let world = World::new();
    world.write("lib/f", "1");
    git(&world.path("lib"), &["init", "-q"]);
    let agent = Agent::new(&world, "s");
    agent.runs("go", "rm -rf lib/.git; echo 2 >lib/f", |world| {
        world.remove("lib/.git").write("lib/f", "2");
    });
    let outcome = world.open().undo_now(&UndoOptions::default()).unwrap();
    assert_eq!((not_done(&outcome), outcome.verified), (vec!["lib/.git GitFolder".to_owned()], false));
    assert_eq!(world.read("lib/f"), "1");
}

/// What the turns themselves made and deleted again was not there before them.
#[test]
fn what_came_and_went_in_what_is_undone_is_not_missed() {
    let world = World::new();
    world.write("f", "1").write(".gitignore", "build\n");
    let agent = Agent::new(&world, "s");
    agent.runs("first", "git clone x lib; make", |world| {
        world.write("lib/f", "1").write("build/out", "1");
        git(&world.path("lib"), &["init", "-q"]);
    });
    agent.runs("then", "rm -rf lib build; echo 2 >f", |world| {
        world.remove("lib").remove("build").write("f", "2");
    });
    let both = UndoOptions {
        choice: Choice { what: Some(Which::Places(vec![(1, None), (2, None)])), ..Choice::default() },
        ..UndoOptions::default()
    };
    let outcome = world.open().undo_now(&both).unwrap();
    assert_eq!((not_done(&outcome), outcome.verified), (vec![], true), "{outcome:?}");
    assert!(!world.path("lib").exists());
}

/// A rewind used to say "left alone" of it, and a comparison "no differences".
#[test]
fn what_could_not_be_captured_and_is_gone_is_named_as_not_restored() {
    let world = World::with(|environment| environment.largest_file = Some(10));
    world.write("g/large", "more than ten bytes").write("g/small", "s").write("large", "more than ten bytes");
    let id = world.capture();
    let gone = vec!["g/large TooLarge".to_owned(), "large TooLarge".to_owned()];
    world.remove("g").remove("large");
    let plan = world.open().plan_rewind(&id, &RewindOptions::default()).unwrap().view().clone();
    assert_eq!(plan.not_done.len(), 2, "{:?}", plan.not_done);
    let outcome = world.rewind(&id);
    assert_eq!((not_done(&outcome), outcome.verified, &world.read("g/small")[..]), (gone.clone(), false, "s"));
    // As long as it is not there.
    assert_eq!(not_done(&world.rewind(&id)), gone);
    let options = DiffOptions { from: id.parse().ok(), ..DiffOptions::default() };
    let not_compared = world.open().diff(&options).unwrap().not_compared;
    assert_eq!(not_compared.iter().map(|one| &one.path.path[..]).collect::<Vec<_>>(), ["g/large", "large"]);
    world.write("g/large", "something again, who knows").write("large", "something again, who knows");
    assert!(world.rewind(&id).not_done.is_empty(), "nobody knows");
    // What a rule leaves out is made again.
    world.write(".gitignore", "built/\n").write("built/out", "o");
    let id = world.capture();
    world.remove("built");
    assert!(world.rewind(&id).verified);
}
