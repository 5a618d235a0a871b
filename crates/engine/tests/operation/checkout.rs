//! Checking out: a checkpoint laid out in another folder.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use piton_engine::model::WorkspacePath;
use piton_engine::view::CheckoutOutcome;
use piton_engine::{CaptureOptions, CheckoutError, CheckoutOptions, LayoutError, OperationError};
use piton_host::fail;
use piton_testkit::{World, snapshot};

fn checkout(world: &World, target: &str, folder: &Path) -> Result<CheckoutOutcome, CheckoutError> {
    world.open().checkout(target, folder, &CheckoutOptions::default())
}

fn capture(world: &World, name: &str) {
    world.open().capture(&CaptureOptions { name: Some(name.into()), ..Default::default() }).unwrap();
}

/// A workspace with a checkpoint `then`, and other files now.
fn world() -> World {
    let world = World::new();
    world
        .write("dir/x.sh", "#!")
        .mode("dir/x.sh", 0o755)
        .link("link", "/nowhere")
        .folder("empty")
        .write(".env", "secret");
    world.mode("empty", 0o700).write(".gitignore", "node_modules\n").write("node_modules/m/index.js", "skipped");
    capture(&world, "then");
    world.write("dir/x.sh", "changed").remove(".env").write("new", "new");
    world
}

#[test]
fn a_checkpoint_of_no_session_is_laid_out_exactly_and_the_workspace_stays() {
    let world = world();
    let now = world.snapshot();
    let folder = world.base().join("out");
    let made = checkout(&world, "then", &folder).unwrap();
    world.assert_is(&now);
    assert_eq!((&made.path, made.verified), (&folder, true));
    assert_eq!(made.skipped.iter().map(|one| &one.path.path[..]).collect::<Vec<_>>(), ["node_modules"]);
    // The same as what a rewind brings back.
    world.open().rewind_now("then", &Default::default()).unwrap();
    let (there, then) = (snapshot(&folder), world.snapshot().without("node_modules"));
    assert!(there == then, "{}", there.differences(&then).join("\n"));
    world.assert_sound();
    // It is nothing to take back, and no workspace.
    world.open().redo_now(&Default::default()).unwrap();
    world.assert_is(&now);
    assert!(world.open().redo_now(&Default::default()).is_err());
    assert!(world.engine.open(&folder).is_err());
    let kinds: Vec<_> = world.open().operations().unwrap().operations.iter().map(|one| one.kind.as_str()).collect();
    assert_eq!(kinds, ["redo", "rewind", "checkout"]);
}

#[test]
fn a_folder_that_is_empty_keeps_its_bits_and_one_that_holds_something_is_refused() {
    let world = world();
    let at = |name: &str| world.base().join(name);
    std::fs::create_dir(at("private")).unwrap();
    std::fs::set_permissions(at("private"), std::fs::Permissions::from_mode(0o700)).unwrap();
    assert!(checkout(&world, "then", &at("private")).unwrap().verified);
    assert_eq!(std::fs::metadata(at("private")).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(std::fs::read_to_string(at("private/.env")).unwrap(), "secret");
    std::fs::create_dir(at("full")).unwrap();
    std::fs::write(at("full/mine"), "mine").unwrap();
    std::fs::write(at("file"), "a file").unwrap();
    std::fs::create_dir(at("other")).unwrap();
    std::os::unix::fs::symlink(at("other"), at("link")).unwrap();
    std::os::unix::fs::symlink(at("nowhere"), at("dangling")).unwrap();
    for bad in ["full", "file", "link", "dangling", "none/inside", "home/inside", "x/.git/y", "."] {
        let error = checkout(&world, "then", &at(bad)).unwrap_err();
        assert!(matches!(error, CheckoutError::Layout(LayoutError::Place { .. })), "{bad}: {error}");
    }
    assert_eq!(std::fs::read_to_string(at("full/mine")).unwrap(), "mine");
    assert_eq!(std::fs::read_dir(at("other")).unwrap().count(), 0, "nothing went through a symlink");
}

#[test]
fn a_folder_inside_a_workspace_is_taken_only_where_that_is_said() {
    let world = world();
    for inside in ["out", "dir/out"] {
        let error = checkout(&world, "then", &world.path(inside)).unwrap_err();
        assert!(matches!(error, CheckoutError::InWorkspace { .. }), "{inside}: {error}");
    }
    let made = world.open().checkout("then", &world.path("out"), &CheckoutOptions { inside: true }).unwrap();
    assert!(made.verified);
    assert_eq!(world.read("out/.env"), "secret");
    // A capture finds it, as it finds everything.
    capture(&world, "with it");
    assert_eq!(world.open().file_at("with it", &WorkspacePath::new("out/.env").unwrap()).unwrap().size(), 6);
    world.assert_sound();
}

#[test]
fn it_goes_on_while_an_agent_is_at_work_and_from_another_folders_line() {
    let world = world();
    let mut workspace = world.open();
    let mut session = workspace.begin_session("claude-code", "run-1").unwrap();
    session.begin_turn("go on").unwrap();
    session.before_tool(&piton_engine::Tool::new("1", "Bash")).unwrap();
    drop(workspace);
    assert!(checkout(&world, "t1", &world.base().join("out")).unwrap().verified);
    assert!(matches!(checkout(&world, "nosuch", &world.base().join("b")).unwrap_err(), CheckoutError::Target(_)));
}

#[test]
fn what_the_system_refuses_leaves_nothing_under_the_folders_name() {
    let world = world();
    let closed = world.base().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o555)).unwrap();
    if std::fs::write(closed.join("probe"), "").is_ok() {
        // Nothing is closed to this user.
        return;
    }
    let error = checkout(&world, "then", &closed.join("out")).unwrap_err();
    assert!(matches!(error, CheckoutError::Operation(OperationError::RolledBack { .. })), "{error}");
    assert!(!closed.join("out").exists());
    world.assert_sound();
}

#[test]
fn a_crash_at_any_step_leaves_the_folder_whole_or_nothing_under_its_name() {
    let (mut made, mut none) = (0, 0);
    for step in 1.. {
        let world = world();
        let (folder, before) = (world.base().join("out"), world.snapshot());
        if fail::with(step, || checkout(&world, "then", &folder).unwrap()).is_some() {
            assert!(step > 10, "only {step} steps: are the failpoints there?");
            break;
        }
        drop(world.open());
        world.assert_is(&before);
        let leftovers = std::fs::read_dir(world.base())
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".piton-"));
        assert_eq!(leftovers.count(), 0, "step {step}");
        if folder.exists() {
            made += 1;
            assert_eq!(std::fs::read_to_string(folder.join("dir/x.sh")).unwrap(), "#!");
            assert_eq!(std::fs::read_to_string(folder.join(".env")).unwrap(), "secret");
        } else {
            none += 1;
            assert!(checkout(&world, "then", &folder).unwrap().verified);
        }
        world.assert_sound();
    }
    assert!(made > 0 && none > 3, "{made} made, {none} not");
}
