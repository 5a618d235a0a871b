//! Which folder a workspace is: reached otherwise, gone, moved, replaced, unmounted, too large, or not to be taken.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use piton_engine::model::Owner;
use piton_engine::model::event::{Event, ToolCall};
use piton_engine::view::{FolderState, Unknown};
use piton_engine::{
    CaptureError, CaptureOptions, Choice, ChosenError, Engine, Environment, InitOptions, ObserveOptions, OpenError,
    OperationError, RewindOptions, StoreError, UndoOptions, Workspace,
};
use piton_host::Limit;
use piton_testkit::{Agent, Mounted, SmallDisk, World, git, snapshot};

fn capture(workspace: &mut Workspace) -> Result<String, CaptureError> {
    workspace.capture(&CaptureOptions::default()).map(|c| c.checkpoint.checkpoint.id.to_string())
}

fn rewind(workspace: &mut Workspace, target: &str) -> Result<bool, OperationError> {
    workspace.rewind_now(target, &RewindOptions::default()).map(|outcome| outcome.verified)
}

fn across() -> RewindOptions {
    RewindOptions { across: true, ..RewindOptions::default() }
}

/// A place that the workspace's folder is moved to for a test of what stands in its place then. Beside it, the workspace
/// would follow its folder.
fn away(world: &World) -> std::path::PathBuf {
    let far = world.base().join("far/away");
    std::fs::create_dir_all(&far).unwrap();
    far.join("kept")
}

#[test]
fn a_workspace_reached_through_a_symlink_is_the_same_workspace() {
    let world = World::new();
    world.write("sub/f", "1");
    let id = world.capture();
    let link = world.base().join("link");
    std::os::unix::fs::symlink(world.ws(), &link).unwrap();
    let mut through = world.engine.open(&link).unwrap();
    assert_eq!(through.path(), world.ws());
    assert_eq!(world.engine.locate(&link.join("sub")).unwrap(), world.ws());
    world.write("sub/f", "2");
    capture(&mut through).unwrap();
    assert_eq!(world.open().log(Default::default()).unwrap().total, 2);
    assert!(rewind(&mut through, &id).unwrap());
    assert_eq!(world.snapshot().bytes("sub/f"), Some(&b"1"[..]));
    assert_eq!(world.engine.workspaces(), [world.ws()]);
}

#[test]
fn a_workspace_that_was_deleted_whole_is_never_captured_and_a_rewind_brings_it_back() {
    let world = World::new();
    world.write("f", "1").write("dir/deep/g", "1").link("link", "f").folder("empty").mode("", 0o750);
    let before = world.snapshot();
    let id = world.capture();
    std::fs::remove_dir_all(world.ws()).unwrap();

    let mut workspace = world.open();
    assert!(matches!(capture(&mut workspace), Err(CaptureError::Missing(path)) if path == world.ws()));
    assert_eq!(workspace.status().unwrap().folder, FolderState::Missing);
    let plan = workspace.plan_rewind(&id, &RewindOptions::default()).unwrap();
    assert!(plan.view().missing_folder && plan.view().created.len() == 4, "{:?}", plan.view());
    assert!(!world.ws().exists(), "neither a refused capture nor a plan makes it");

    assert!(workspace.carry_out(plan).unwrap().verified);
    world.assert_is(&before);
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(world.ws()).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o750);
    // It goes on where it was: the same line, and the same folder from now on.
    world.write("f", "2");
    let next = world.captured().checkpoint.checkpoint;
    assert_eq!((next.line, next.changes.modified), (1, 1));
    world.rewind(&id);
    world.assert_is(&before);
    world.assert_sound();
}

/// What a tool that takes the whole folder leaves is a gap. The changes were called `unsure` for that, and the undo made an empty
/// folder.
#[test]
fn a_workspace_that_a_tool_deleted_whole_comes_back_with_the_undo_of_its_turn() {
    for is_planned in [false, true] {
        let world = World::new();
        world.write("f", "1").write("dir/deep/g", "1").folder("empty").mode("", 0o750);
        let agent = Agent::new(&world, "s1");
        agent.runs("one", "make", |_| {});
        // The user's own last edit goes with all the rest, and comes back with it.
        world.write("f", "mine");
        let before = world.snapshot();
        agent.prompt("two");
        agent.step("Bash", &[], |world| std::fs::remove_dir_all(world.ws()).unwrap());
        // The agent looks for its files.
        agent.step("Bash", &[], |_| {});
        agent.end_turn();
        assert!(!world.ws().exists());

        let mut workspace = world.open();
        let options = UndoOptions::default();
        let plan = workspace.plan_undo(&options).unwrap();
        assert!(plan.view().unsure.is_empty() && plan.view().created.len() == 3, "{:?}", plan.view());
        let outcome = if is_planned { workspace.carry_out(plan) } else { workspace.undo_now(&options) }.unwrap();
        assert!(outcome.verified && outcome.unsure.is_empty(), "{outcome:?}");
        world.assert_is(&before);
        // It is the tool's for good, so that a redo and another undo go the same way.
        world.redo();
        assert!(world.snapshot().bytes("f").is_none());
        world.open().undo_now(&options).unwrap();
        world.assert_is(&before);
        world.assert_sound();
    }
}

#[test]
fn where_somebody_else_may_have_deleted_the_workspace_an_undo_makes_no_folder() {
    let world = World::new();
    world.write("f", "1");
    let (agent, other) = (Agent::new(&world, "s1"), Agent::new(&world, "s2"));
    agent.prompt("one");
    other.prompt("two");
    agent.before("c1", "Bash", &[]);
    other.before("c2", "Bash", &[]);
    std::fs::remove_dir_all(world.ws()).unwrap();
    agent.after("c1");
    agent.end_turn();
    other.after("c2");
    other.end_turn();
    let mut workspace = world.open();
    let options = |unsure| UndoOptions { choice: Choice { unsure, ..Choice::default() }, ..UndoOptions::default() };
    let outcome = workspace.undo_now(&options(false)).unwrap();
    assert!(outcome.operation.is_none() && outcome.unsure.len() == 1, "{outcome:?}");
    let plan = workspace.plan_undo(&options(false)).unwrap();
    assert!(workspace.carry_out(plan).unwrap().operation.is_none());
    assert!(!world.ws().exists());
    assert!(workspace.undo_now(&options(true)).unwrap().verified);
    assert_eq!(world.snapshot().bytes("f"), Some(&b"1"[..]));
    world.assert_sound();
}

#[test]
fn a_workspace_that_its_user_deleted_after_the_turn_is_not_the_turns_doing() {
    let world = World::new();
    world.write("f", "1");
    let agent = Agent::new(&world, "s1");
    agent.prompt("one");
    agent.before("c1", "Bash", &[]);
    // The after event finds no time, not no folder.
    let call = ToolCall { id: Some("c1".into()), ..ToolCall::default() };
    world.write("g", "1");
    let late = ObserveOptions { deadline: Some(Instant::now()), embedded: true, ..ObserveOptions::default() };
    let report = agent.report(None, Event::AfterTool(call));
    assert!(world.engine.observe(&report, &late).unwrap().0.gap.is_some());
    std::fs::remove_dir_all(world.ws()).unwrap();
    agent.end_turn();
    agent.prompt("two");
    let plan = world.open().plan_undo(&UndoOptions { interrupted: true, ..UndoOptions::default() }).unwrap();
    assert!(plan.view().created.is_empty() && plan.view().unsure.len() == 1, "{:?}", plan.view());
}

#[test]
fn a_workspace_whose_whole_parent_was_deleted_comes_back_too() {
    let world = World::new();
    let project = world.path("many/levels/project");
    world.write("many/levels/project/f", "1");
    let mut workspace = world.engine.open_or_init(&project).unwrap();
    let id = capture(&mut workspace).unwrap();
    world.remove("many");
    assert!(rewind(&mut world.engine.open(&project).unwrap(), &id).unwrap());
    assert_eq!(world.snapshot().bytes("many/levels/project/f"), Some(&b"1"[..]));
}

#[test]
fn the_store_follows_a_workspace_that_moved() {
    let world = World::new();
    world.write("f", "1");
    let id = world.capture();
    let store = world.open().store_folder().to_owned();
    let there = world.base().join("elsewhere/ws2");
    std::fs::create_dir(world.base().join("elsewhere")).unwrap();
    std::fs::rename(world.ws(), &there).unwrap();

    assert_eq!(world.engine.locate(&there.join("sub")).unwrap(), there);
    let mut moved = world.engine.open(&there).unwrap();
    assert_eq!((moved.store_folder(), moved.path()), (store.as_path(), there.as_path()));
    assert_eq!(moved.status().unwrap().folder, FolderState::Same);
    std::fs::write(there.join("f"), "2").unwrap();
    assert!(rewind(&mut moved, &id).unwrap());
    assert_eq!(std::fs::read(there.join("f")).unwrap(), b"1");
    assert!(capture(&mut moved).is_ok());
    assert!(world.engine.workspaces().iter().eq([&there]));
    // Its old place is nobody's now, and whoever comes there begins anew.
    assert!(matches!(world.engine.open(&world.ws()), Err(OpenError::NotKnown(_))));
    std::fs::create_dir(world.ws()).unwrap();
    world.write("g", "1").capture();
    assert_eq!(world.open().log(Default::default()).unwrap().total, 1);
    assert!(matches!(world.open().resolve(&id), Err(error) if error.to_string().contains("no checkpoint")));
    // And back again.
    std::fs::remove_dir_all(world.ws()).unwrap();
    let home = world.base().join("home-again");
    std::fs::rename(&there, &home).unwrap();
    assert!(world.engine.open(&home).unwrap().resolve(&id).is_ok());
}

#[test]
fn what_a_symlink_in_the_workspaces_place_leads_to_is_neither_captured_nor_written() {
    let world = World::new();
    world.write("f", "1");
    // Open all the while, as an agent that embeds piton has it.
    let mut workspace = world.open();
    let first = capture(&mut workspace).unwrap();
    std::fs::rename(world.ws(), away(&world)).unwrap();
    std::fs::remove_dir_all(away(&world)).unwrap();
    let elsewhere = world.base().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("e"), "e").unwrap();
    std::os::unix::fs::symlink(&elsewhere, world.ws()).unwrap();
    let error = capture(&mut workspace).unwrap_err().to_string();
    assert!(error.contains("is gone, and a symlink stands in its place"), "{error}");
    let error = rewind(&mut workspace, &first).unwrap_err().to_string();
    assert!(error.contains("a symlink stands in its place; nothing was changed"), "{error}");
    assert!(!elsewhere.join("f").exists() && elsewhere.join("e").exists());
    assert!(world.engine.open(&elsewhere).is_err(), "no store is made for it");
    std::fs::remove_file(world.ws()).unwrap();
    assert!(rewind(&mut workspace, &first).unwrap());
    assert_eq!(std::fs::read(world.path("f")).unwrap(), b"1");
}

#[test]
fn a_copy_is_a_workspace_of_its_own() {
    let world = World::new();
    world.write("f", "1");
    let id = world.capture();
    let copy = world.base().join("copy");
    assert!(Command::new("cp").arg("-a").args([world.ws(), copy.clone()]).status().unwrap().success());
    let mut of_copy = world.engine.open_or_init(&copy).unwrap();
    assert!(of_copy.resolve(&id).is_err());
    capture(&mut of_copy).unwrap();
    assert_eq!(world.open().log(Default::default()).unwrap().total, 1);
}

#[test]
fn another_clone_at_the_same_path_begins_a_new_line_and_a_rewind_across_it_asks_first() {
    let world = World::new();
    world.write("f", "old").write("gone", "old");
    let old = world.capture();
    std::fs::rename(world.ws(), away(&world)).unwrap();
    let replace = || {
        std::fs::create_dir(world.ws()).unwrap();
        world.write("f", "new").write("added", "new");
    };
    replace();
    let clone = world.snapshot();

    // Before anything was captured of it, nothing of it may go.
    let plan = world.open().plan_rewind(&old, &RewindOptions::default()).unwrap();
    assert!(plan.view().other_folder);
    assert!(matches!(world.open().carry_out(plan), Err(OperationError::OtherFolder { .. })));
    world.assert_is(&clone);
    assert_eq!(world.open().status().unwrap().folder, FolderState::Other);

    let first = world.captured().checkpoint.checkpoint;
    assert_eq!((first.line, &first.parent), (2, &None));
    assert_eq!(world.open().resolve("start").unwrap().checkpoint.id, first.id);
    assert!(matches!(rewind(&mut world.open(), &old), Err(OperationError::OtherFolder { .. })));
    world.assert_is(&clone);

    let outcome = world.open().rewind_now(&old, &across()).unwrap();
    assert!(outcome.verified);
    world.assert_is(&snapshot(&away(&world)));
    // The clone was captured before, so that nothing is lost.
    world.redo();
    world.assert_is(&clone);
    world.rewind(first.id.as_str());
    world.assert_is(&clone);
    world.assert_sound();
}

#[test]
fn what_a_turn_did_that_replaced_the_workspace_is_not_known_here_and_the_folder_of_before_comes_back() {
    let world = World::new();
    world.write("f", "old").write("work", "mine");
    let before = world.snapshot();
    let agent = Agent::new(&world, "s1");
    agent.runs("one", "make", |_| {});
    agent.runs("two", "rm -rf; git clone", |world| {
        std::fs::rename(world.ws(), away(world)).unwrap();
        std::fs::create_dir(world.ws()).unwrap();
        world.write("f", "new");
    });
    let error = world.open().undo_now(&UndoOptions::default()).unwrap_err();
    let is_said = |error: &OperationError| {
        matches!(error, OperationError::Chosen(ChosenError::Unknown { turn: 2, why: Unknown::OtherFolder, .. }))
    };
    assert!(is_said(&error), "{error}");
    let turns = agent.turns();
    assert_eq!((&turns[0].unknown, &turns[1].unknown), (&None, &Some(Unknown::OtherFolder)));
    let unknown = world.open().changes(&Default::default()).unwrap().unknown;
    assert_eq!(unknown.iter().map(|one| one.turn).collect::<Vec<_>>(), [2]);
    // A turn in the new folder is known like any other.
    agent.runs("three", "make", |_| {});
    assert_eq!(agent.turns()[2].unknown, None);
    assert!(world.open().rewind_now("t2", &across()).unwrap().verified);
    world.assert_is(&before);
}

#[test]
fn a_rewind_across_that_was_planned_and_shown_captures_the_clone_first() {
    let world = World::new();
    world.write("f", "old");
    let old = world.capture();
    std::fs::rename(world.ws(), away(&world)).unwrap();
    std::fs::create_dir(world.ws()).unwrap();
    world.write("f", "never captured");
    let plan = world.open().plan_rewind(&old, &across()).unwrap();
    let outcome = world.open().carry_out(plan).unwrap();
    assert_eq!(world.snapshot().bytes("f"), Some(&b"old"[..]));
    world.rewind(outcome.operation.unwrap().before.as_str());
    assert_eq!(world.snapshot().bytes("f"), Some(&b"never captured"[..]));
}

#[test]
fn an_empty_folder_in_the_workspaces_place_is_never_captured_as_empty() {
    let world = World::new();
    world.write("f", "1");
    let id = world.capture();
    std::fs::rename(world.ws(), away(&world)).unwrap();
    std::fs::create_dir(world.ws()).unwrap();
    for _ in 0..2 {
        assert!(matches!(capture(&mut world.open()), Err(CaptureError::EmptyOther(_))));
    }
    assert_eq!(world.open().log(Default::default()).unwrap().total, 1);
    // The folder itself comes back: all is well.
    std::fs::remove_dir(world.ws()).unwrap();
    std::fs::rename(away(&world), world.ws()).unwrap();
    assert!(world.captured().checkpoint.checkpoint.changes.is_empty());
    // Emptied by its user it is another matter.
    world.remove("f");
    assert_eq!(world.captured().checkpoint.checkpoint.changes.deleted, 1);
    world.rewind(&id);
    assert_eq!(world.snapshot().bytes("f"), Some(&b"1"[..]));
}

#[test]
fn a_disk_that_is_not_mounted_any_more_is_never_captured_as_empty() {
    piton_testkit::needs_mounts!();
    let scratch = tempfile::tempdir().unwrap();
    let engine = Engine::new(scratch.path().join("home"), Environment::default());
    let mut disk = SmallDisk::new(1024);
    std::fs::write(disk.path().join("f"), "1").unwrap();
    let id = capture(&mut engine.open_or_init(disk.path()).unwrap()).unwrap();
    disk.unmount();
    assert!(!disk.path().join("f").exists());

    let mut workspace = engine.open(disk.path()).unwrap();
    assert!(matches!(capture(&mut workspace), Err(CaptureError::EmptyOther(_))));
    assert_eq!(workspace.log(Default::default()).unwrap().total, 1);
    // Nor do files get into the folder below, unless somebody says so.
    let plan = workspace.plan_rewind(&id, &RewindOptions::default()).unwrap();
    assert!(plan.view().other_folder);
    assert!(matches!(rewind(&mut workspace, &id), Err(OperationError::OtherFolder { .. })));
    assert!(workspace.rewind_now(&id, &across()).unwrap().verified);
    assert_eq!(std::fs::read(disk.path().join("f")).unwrap(), b"1");
    std::fs::remove_file(disk.path().join("f")).unwrap();
}

#[test]
fn a_disk_that_is_mounted_over_the_workspace_for_a_while_does_not_mix_with_it() {
    piton_testkit::needs_mounts!();
    let world = World::new();
    let ws = world.ws();
    world.write("f", "under the disk");
    let under = world.capture();
    let disk = Mounted::disk(&ws, c"");
    assert!(matches!(capture(&mut world.open()), Err(CaptureError::EmptyOther(_))));
    world.write("f", "on the disk");
    let on = world.captured().checkpoint.checkpoint;
    assert_eq!(on.line, 2);
    assert!(matches!(rewind(&mut world.open(), &under), Err(OperationError::OtherFolder { .. })));
    drop(disk);
    assert!(matches!(rewind(&mut world.open(), on.id.as_str()), Err(OperationError::OtherFolder { .. })));
    assert_eq!(world.snapshot().bytes("f"), Some(&b"under the disk"[..]));
}

#[test]
fn the_home_folder_and_the_root_of_the_file_system_are_refused_unless_forced() {
    let base = tempfile::tempdir().unwrap();
    let user = base.path().join("user");
    std::fs::create_dir(&user).unwrap();
    // However it is spelled.
    let spelled = base.path().join("spelled");
    std::os::unix::fs::symlink(&user, &spelled).unwrap();
    let world = World::at(base.path(), |e| e.home_folder = Some(spelled.clone()));
    for folder in [&user, &spelled, Path::new("/")] {
        let refused = world.engine.init(folder, InitOptions::default());
        assert!(matches!(refused, Err(OpenError::Refused { .. })), "{}", folder.display());
        assert!(matches!(world.engine.open_or_init(folder), Err(OpenError::Refused { .. })));
    }
    assert!(world.engine.workspaces().is_empty(), "nothing is left of a refusal");
    world.engine.init(&user, InitOptions { force: true, budget: None }).unwrap();
    std::fs::write(user.join("f"), "1").unwrap();
    capture(&mut world.engine.open_or_init(&user).unwrap()).unwrap();
    // A project in it is a workspace like any other.
    world.write("f", "1").capture();
}

#[test]
fn a_root_over_the_limit_is_refused_unless_forced() {
    for (limit, content) in [(Limit { files: 9, bytes: 1 << 20 }, 1), (Limit { files: 1 << 20, bytes: 999 }, 100)] {
        let world = World::with(|e| e.limit = limit);
        for n in 0..10 {
            world.write(format!("dir{n}/f"), vec![b'x'; content]);
        }
        let before = world.snapshot();
        let refused = capture(&mut world.open());
        assert!(matches!(&refused, Err(CaptureError::TooLarge { path, .. }) if *path == world.ws()), "{refused:?}");
        assert_eq!(world.open().log(Default::default()).unwrap().total, 0);
        world.assert_is(&before);
        world.engine.init(&world.ws(), InitOptions { force: true, budget: None }).unwrap();
        let id = world.capture();
        world.write("dir0/f", "other");
        world.rewind(&id);
        world.assert_is(&before);
        // Within the limit nothing need be forced.
        let world = World::with(|e| e.limit = Limit { files: limit.files + 1, bytes: limit.bytes + 1 });
        for n in 0..10 {
            world.write(format!("dir{n}/f"), vec![b'x'; content]);
        }
        world.capture();
    }
}

#[test]
fn a_rewind_that_would_go_over_the_budget_is_refused_and_changes_nothing() {
    let world = World::new();
    let budget = 8 << 20;
    world.engine.init(&world.ws(), InitOptions { budget: Some(budget), force: false }).unwrap();
    world.write("f", "1").write("other", "1");
    let id = world.capture();
    // What is there now must be captured first, and there is no room for it.
    let noise: Vec<u8> = (0..1u64 << 20).flat_map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).collect();
    world.write("f", noise).write("other", "2");
    let before = world.snapshot();
    for _ in 0..3 {
        let error = rewind(&mut world.open(), &id).unwrap_err();
        let is_over = |e: &CaptureError| matches!(e, CaptureError::Store(StoreError::OverBudget { .. }));
        assert!(matches!(&error, OperationError::Capture(e) if is_over(e)), "{error}");
        world.assert_is(&before);
        assert!(world.open().status().unwrap().size <= budget);
    }
    world.assert_sound();
    world.engine.init(&world.ws(), InitOptions { budget: Some(10 * budget), force: false }).unwrap();
    world.rewind(&id);
    assert_eq!(world.snapshot().bytes("f"), Some(&b"1"[..]));
}

#[test]
fn a_folder_means_the_known_workspace_around_it_else_the_repository_else_itself() {
    let base = tempfile::tempdir().unwrap();
    let world = World::at(base.path(), |e| e.home_folder = Some(base.path().join("user")));
    let make = |path: &str| {
        let path = world.base().join(path);
        std::fs::create_dir_all(&path).unwrap();
        path
    };
    let locate = |path: &Path| world.engine.locate(path).unwrap();
    // Nothing known, no repository.
    let plain = make("plain/deep");
    assert_eq!(locate(&plain), plain);
    // A repository, and a nested one.
    let (outer, inner) = (make("repo/src/deep"), make("repo/nested/src"));
    git(&world.base().join("repo"), &["init", "-q"]);
    git(&world.base().join("repo/nested"), &["init", "-q"]);
    assert_eq!(locate(&outer), world.base().join("repo"));
    assert_eq!(locate(&inner), world.base().join("repo/nested"));
    // What is known wins, the innermost first, also where it is not there any more.
    let known = make("repo/src");
    world.engine.init(&known, InitOptions::default()).unwrap();
    assert_eq!(locate(&outer), known);
    world.engine.init(&outer, InitOptions::default()).unwrap();
    assert_eq!(locate(&outer), outer);
    assert_eq!(locate(&make("repo/src/other")), known);
    std::fs::remove_dir_all(&known).unwrap();
    assert_eq!(locate(&outer.join("gone/too")), outer);
    // A home folder that is a repository is not what a folder in it means.
    let project = make("user/notes");
    git(&world.base().join("user"), &["init", "-q"]);
    assert_eq!(locate(&project), project);
}

#[test]
fn a_refused_rewind_does_not_take_the_folder_that_stands_there_for_the_workspace() {
    let world = World::new();
    world.write("f", "1");
    let id = world.capture();
    world.write("f", "2");
    let plan = world.open().plan_rewind(&id, &RewindOptions::default()).unwrap();
    std::fs::rename(world.ws(), away(&world)).unwrap();
    std::fs::create_dir(world.ws()).unwrap();
    let mut workspace = world.open();
    assert!(matches!(workspace.carry_out(plan), Err(OperationError::OtherFolder { .. })));
    // Nor one that is gone, and the plan does not hold for nothing.
    std::fs::remove_dir(world.ws()).unwrap();
    let plan = {
        std::fs::rename(away(&world), world.ws()).unwrap();
        let plan = world.open().plan_rewind(&id, &RewindOptions::default()).unwrap();
        std::fs::rename(world.ws(), away(&world)).unwrap();
        plan
    };
    assert!(matches!(workspace.carry_out(plan), Err(OperationError::Stale { .. })));
    assert!(!world.ws().exists(), "what was made for it goes again");
    std::fs::rename(away(&world), world.ws()).unwrap();
    assert!(world.captured().checkpoint.checkpoint.changes.modified == 1);
    assert_eq!(world.open().line(), 1);
    world.rewind(&id);
    assert_eq!(world.snapshot().bytes("f"), Some(&b"1"[..]));
}

/// The old folder stands beside the new one: each has its own history, whoever is heard of first.
#[test]
fn a_renamed_folder_keeps_its_history_from_whatever_stands_at_its_old_path() {
    for renamed_first in [false, true] {
        let world = World::new();
        let backup = world.base().join("ws.bak");
        let agent = Agent::new(&world, "s1");
        world.write("b", "b");
        agent.runs("one", "x", |world| {
            world.write("b", "agent");
        });
        std::fs::rename(world.ws(), &backup).unwrap();
        std::fs::create_dir(world.ws()).unwrap();
        world.write("b", "clone");
        if renamed_first {
            world.engine.open(&backup).unwrap();
        }
        let of_clone = Agent::new(&world, "s2");
        of_clone.runs("clone one", "x", |world| {
            world.write("b", "clone's agent");
        });
        assert_eq!(world.open().line(), 1);
        assert_eq!(world.open().sessions().unwrap().sessions.len(), 1, "the clone knows its own session alone");

        *agent.folder.borrow_mut() = backup.clone();
        let second = agent.prompt("two");
        agent.end_turn();
        assert_eq!(second.turn, 2);
        world.engine.open(&backup).unwrap().undo_now(&UndoOptions::default()).unwrap();
        assert_eq!(std::fs::read(backup.join("b")).unwrap(), b"b");
        assert_eq!(world.snapshot().bytes("b"), Some(&b"clone's agent"[..]));
        assert_eq!(world.open().sessions().unwrap().sessions.len(), 1, "s1 never worked in the clone");

        // And back in its place.
        std::fs::remove_dir_all(world.ws()).unwrap();
        std::fs::rename(&backup, world.ws()).unwrap();
        let mut again = world.open();
        assert_eq!((again.line(), again.sessions().unwrap().sessions[0].turns), (1, 2));
        assert!(rewind(&mut again, "s1:t1.end").unwrap());
        assert_eq!(world.snapshot().bytes("b"), Some(&b"agent"[..]));
    }
}

#[test]
fn two_projects_that_take_each_others_place_keep_their_histories() {
    for names in [["a", "b"], ["b", "a"]] {
        let world = World::new();
        let [a, b] = ["a", "b"].map(|name| world.base().join(name));
        let mut ids = Vec::new();
        for folder in [&a, &b] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("f"), folder.file_name().unwrap().as_encoded_bytes()).unwrap();
            ids.push(capture(&mut world.engine.open_or_init(folder).unwrap()).unwrap());
        }
        let between = world.base().join("between");
        std::fs::rename(&a, &between).unwrap();
        std::fs::rename(&b, &a).unwrap();
        std::fs::rename(&between, &b).unwrap();
        for name in names {
            let mut workspace = world.engine.open_or_init(&world.base().join(name)).unwrap();
            capture(&mut workspace).unwrap();
            let (own, other) = if name == "a" { (&ids[1], &ids[0]) } else { (&ids[0], &ids[1]) };
            assert_eq!(workspace.line(), 1);
            assert!(workspace.resolve(own).is_ok() && workspace.resolve(other).is_err(), "{name} of {names:?}");
        }
        let mut all = world.engine.workspaces();
        all.sort();
        assert_eq!(all, [a, b]);
    }
}

/// Nobody knows where the old folder went until it comes back, so the new one is a line of the same store.
#[test]
fn a_folder_that_comes_back_goes_on_with_its_own_line() {
    let world = World::new();
    world.write("f", "1").write("goes", "x");
    let id = world.capture();
    std::fs::rename(world.ws(), away(&world)).unwrap();
    std::fs::create_dir(world.ws()).unwrap();
    world.write("g", "another");
    assert_eq!(world.captured().checkpoint.checkpoint.line, 2);
    // It is told where its turns are, while it has a store of its own.
    assert_eq!(world.engine.former_place(&away(&world)).unwrap(), Some(world.ws()));
    assert_eq!(world.engine.former_place(&world.ws()).unwrap(), None);
    let agent = Agent::new(&world, "s1");
    agent.runs("meanwhile", "x", |world| {
        std::fs::remove_file(away(world).join("goes")).unwrap();
    });

    std::fs::rename(world.ws(), world.base().join("far/other")).unwrap();
    std::fs::rename(away(&world), world.ws()).unwrap();
    let again = world.captured().checkpoint.checkpoint;
    assert_eq!((again.line, again.changes.deleted), (1, 1));
    let changed = world.open().show(again.id.as_str()).unwrap().files;
    let owner = changed[0].owner.as_ref().unwrap();
    assert!(matches!(owner, Owner::Unsure { .. } | Owner::You), "no tool that ran in another folder did it: {owner:?}");
    world.rewind(&id);
    assert_eq!(world.snapshot().bytes("f"), Some(&b"1"[..]));
    // A third folder is none of the two.
    std::fs::rename(world.ws(), away(&world)).unwrap();
    std::fs::create_dir(world.ws()).unwrap();
    world.write("h", "third");
    assert_eq!(world.captured().checkpoint.checkpoint.line, 3);
    world.assert_sound();
}

/// A session once in a folder of many projects, which does not fit, must not leave those projects unprotected.
#[test]
fn a_workspace_that_was_only_ever_refused_stands_for_no_folder_in_it() {
    let world = World::with(|e| e.limit = Limit { files: 9, bytes: 1 << 20 });
    for n in 0..10 {
        world.write(format!("data/f{n}"), "x");
    }
    let parent = Agent::new(&world, "s0");
    assert!(parent.prompt("look around").gap.is_some());
    parent.end_turn();
    let (app, notes) = (world.path("app"), world.path("notes"));
    world.write("app/src/a", "a").write("notes/n", "n");
    git(&app, &["init", "-q"]);
    assert_eq!(world.engine.locate(&world.path("app/src")).unwrap(), app);
    assert_eq!(world.engine.locate(&notes).unwrap(), notes);
    // It stands for itself, so that its gaps are seen there.
    assert_eq!(world.engine.locate(&world.ws()).unwrap(), world.ws());
    assert!(!world.engine.open(&world.ws()).unwrap().sessions().unwrap().sessions.is_empty());

    let agent = Agent::new(&world, "s1");
    *agent.folder.borrow_mut() = world.path("app/src");
    agent.runs("tidy up", "rm a", |world| {
        world.remove("app/src/a");
    });
    world.engine.open(&app).unwrap().undo_now(&UndoOptions::default()).unwrap();
    assert_eq!(std::fs::read(app.join("src/a")).unwrap(), b"a");

    // Once it fits it is a workspace like any other.
    world.write(".pitonignore", "data/\n").write("plain/p", "p");
    world.capture();
    assert_eq!(world.engine.locate(&world.path("plain")).unwrap(), world.ws());
    assert_eq!(world.engine.locate(&app).unwrap(), app, "what has a store of its own keeps it");
    // One that captured something and has grown since still has what it captured.
    world.remove(".pitonignore");
    assert!(capture(&mut world.open()).is_err());
    assert_eq!(world.engine.locate(&world.path("plain")).unwrap(), world.ws());
}

/// A rewind there used to put back the stores of other workspaces.
#[test]
fn pitons_own_folder_is_no_workspace() {
    let world = World::new();
    world.capture();
    let home = world.base().join("home");
    for folder in [home.clone(), home.join("workspaces")] {
        for force in [false, true] {
            let options = piton_engine::InitOptions { force, ..Default::default() };
            let refused = world.engine.init(&folder, options);
            assert!(matches!(refused, Err(piton_engine::OpenError::Own { .. })), "{refused:?}");
        }
    }
}
