//! What other programs do in the middle of an operation: between the plan and the capture, the capture and the swap,
//! the swap and the end. Nothing of theirs is lost, and nothing outside the workspace is touched.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use piton_engine::model::WorkspacePath;
use piton_engine::view::{OperationOutcome, PathView};
use piton_engine::{Carry, OperationError, RedoOptions, RewindOptions};
use piton_host::fail;
use piton_testkit::{Agent, World, as_ordinary_user, snapshot};

/// A checkpoint, and an agent's work since: a rewind replaces `dir/g` and `f`, creates `gone` and deletes `new`.
fn after_the_agent() -> (World, String) {
    let world = World::new();
    world.write("dir/g", "1").write("f", "1").write("gone", "1").write("same", "1");
    let id = world.capture();
    world.write("dir/g", "2").write("f", "2").remove("gone").write("new/a", "2");
    (world, id)
}

/// Rewinds while something happens.
fn rewind(
    world: &World,
    target: &str,
    (nth, at): (u64, &'static str),
    happen: impl FnOnce() + 'static,
) -> Result<OperationOutcome, OperationError> {
    let mut workspace = world.open();
    fail::when(nth, at, happen, || workspace.rewind_now(target, &RewindOptions::default()))
}

fn names(paths: &[PathView]) -> Vec<&str> {
    paths.iter().map(|p| &p.path[..]).collect()
}

/// The content of a path in the checkpoint of the state before an operation.
fn before(world: &World, outcome: &OperationOutcome, path: &str) -> Option<Vec<u8>> {
    let only = RewindOptions { paths: vec![WorkspacePath::new(path).unwrap()], ..RewindOptions::default() };
    let id = outcome.operation.as_ref().unwrap().before.as_str();
    world.open().rewind_now(id, &only).unwrap();
    world.snapshot().bytes(path).map(<[u8]>::to_vec)
}

const SWAP: (u64, &str) = (1, "apply:swap");
const CHECK: (u64, &str) = (1, "operate:check");

#[test]
fn an_edit_between_the_capture_and_the_swap_is_kept_and_named() {
    type Edit = fn(&Path);
    let edits: [Edit; 2] = [
        |f| std::fs::write(f, "theirs").unwrap(),
        |f| {
            std::fs::write(f.with_extension("tmp"), "theirs").unwrap();
            std::fs::rename(f.with_extension("tmp"), f).unwrap();
        },
    ];
    for edit in edits {
        let (world, id) = after_the_agent();
        let f = world.path("f");
        let outcome = rewind(&world, &id, SWAP, move || edit(&f)).unwrap();
        assert_eq!(names(&outcome.rescued), ["f"]);
        assert!(outcome.verified);
        assert_eq!(world.snapshot().bytes("f"), Some(&b"1"[..]));
        // A redo brings back what was there, not what the capture had read.
        world.redo();
        assert_eq!(world.snapshot().bytes("f"), Some(&b"theirs"[..]));
        world.write("f", "2");
        assert_eq!(before(&world, &outcome, "f"), Some(b"theirs".to_vec()));
        world.assert_sound();
    }
}

#[test]
fn a_file_that_appears_in_a_folder_on_its_way_out_is_kept_and_named() {
    let (world, id) = after_the_agent();
    let late = world.path("new/late");
    let outcome = rewind(&world, &id, SWAP, move || std::fs::write(late, "theirs").unwrap()).unwrap();
    assert_eq!(names(&outcome.rescued), ["new/late"]);
    assert!(!world.path("new").exists());
    assert_eq!(before(&world, &outcome, "new/late"), Some(b"theirs".to_vec()));
}

#[test]
fn what_cannot_be_stored_keeps_the_folder_it_appeared_in() {
    let (world, id) = after_the_agent();
    let socket = world.path("new/socket");
    let old = world.snapshot();
    let error = rewind(&world, &id, SWAP, move || drop(UnixListener::bind(socket).unwrap())).unwrap_err();
    assert!(matches!(&error, OperationError::RolledBack { reason, .. } if reason.contains("`new`")), "{error}");
    assert!(world.snapshot().has("new/socket"));
    assert_eq!(world.snapshot().without("new/socket"), old);
    assert!(world.open().recovered().is_empty());
}

#[test]
fn a_file_that_appears_where_one_was_to_come_back_ends_the_rewind_with_the_old_tree() {
    let (world, id) = after_the_agent();
    let old = world.snapshot();
    let gone = world.path("gone");
    let error = rewind(&world, &id, SWAP, move || std::fs::write(gone, "theirs").unwrap()).unwrap_err();
    assert!(matches!(&error, OperationError::RolledBack { reason, .. } if reason.contains("`gone`")), "{error}");
    assert_eq!(world.snapshot().bytes("gone"), Some(&b"theirs"[..]));
    assert_eq!(world.snapshot().without("gone"), old);
    assert!(world.open().recovered().is_empty());
}

#[test]
fn a_file_that_goes_before_it_is_swapped_ends_the_rewind_with_the_old_tree() {
    for path in ["f", "new"] {
        let (world, id) = after_the_agent();
        let old = world.snapshot().without(path);
        let away = (world.path(path), world.base().join("away"));
        let error = rewind(&world, &id, SWAP, move || std::fs::rename(away.0, away.1).unwrap()).unwrap_err();
        assert!(matches!(&error, OperationError::RolledBack { reason, .. } if reason.contains(path)), "{error}");
        world.assert_is(&old);
        assert!(world.open().recovered().is_empty());
    }
}

#[test]
fn an_edit_after_the_swap_stays_and_is_told_as_changed_again() {
    let (world, id) = after_the_agent();
    let f = world.path("f");
    let outcome = rewind(&world, &id, CHECK, move || std::fs::write(f, "theirs").unwrap()).unwrap();
    assert_eq!(names(&outcome.changed_again), ["f"]);
    assert!(!outcome.verified && outcome.rescued.is_empty());
    assert_eq!(world.snapshot().bytes("f"), Some(&b"theirs"[..]));
    assert_eq!(world.snapshot().bytes("gone"), Some(&b"1"[..]));
    // It is an edit like any other.
    assert_eq!(world.captured().checkpoint.checkpoint.changes.modified, 1);
    assert_eq!(before(&world, &outcome, "f"), Some(b"2".to_vec()));

    let (world, id) = after_the_agent();
    let f = world.path("f");
    let outcome = rewind(&world, &id, CHECK, move || std::fs::remove_file(f).unwrap()).unwrap();
    assert_eq!(names(&outcome.changed_again), ["f"]);
    assert!(!outcome.verified && !world.path("f").exists());
}

/// Puts a symlink to a folder outside in a folder's place.
fn lead_outside(world: &World, folder: &str) -> impl FnOnce() + use<> {
    let (folder, moved, outside) = (world.path(folder), world.path("moved"), outside(world));
    move || {
        std::fs::rename(&folder, moved).unwrap();
        std::os::unix::fs::symlink(outside, folder).unwrap();
    }
}

fn outside(world: &World) -> PathBuf {
    let outside = world.base().join("outside");
    if !outside.exists() {
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("g"), "outside").unwrap();
        std::fs::write(outside.join("a"), "outside").unwrap();
    }
    outside
}

#[test]
fn a_folder_swapped_for_a_symlink_at_any_moment_leads_nobody_outside() {
    let until_it_is_swapped = [
        (1, "capture:scanned"),
        (1, "operate:begun"),
        (1, "apply:stage"),
        (2, "apply:stage"),
        (3, "apply:staged-file"),
        (1, "apply:swap"),
    ];
    let later = [
        (2, "apply:swap"),
        (3, "apply:swap"),
        (4, "apply:swap"),
        (1, "operate:check"),
        (2, "operate:check"),
        (1, "apply:sync-swapped"),
        (1, "apply:clear"),
        (4, "apply:clear"),
    ];
    let cases = until_it_is_swapped.iter().map(|point| ("new", *point));
    for (folder, point) in cases.chain(until_it_is_swapped.iter().chain(&later).map(|point| ("dir", *point))) {
        let (world, id) = after_the_agent();
        let untouched = snapshot(&outside(&world));
        let result = rewind(&world, &id, point, lead_outside(&world, folder));
        let told = format!("{folder} at {point:?}: {result:?}");
        assert!(snapshot(&outside(&world)) == untouched, "{told}");
        // Whatever came of it, the next command finds its way.
        drop(world.open());
        world.assert_sound();
        assert!(snapshot(&outside(&world)) == untouched, "{told}");
        // And what was there is there still, or in the checkpoint that was made first.
        let (file, moved) = if folder == "dir" { ("dir/g", "moved/g") } else { ("new/a", "moved/a") };
        if world.snapshot().bytes(moved) != Some(b"2") {
            world.remove(folder);
            assert_eq!(before(&world, &result.unwrap(), file), Some(b"2".to_vec()), "{told}");
        }
    }
}

#[test]
fn a_rewind_that_cannot_go_back_into_a_folder_that_somebody_took_away_says_so_and_the_next_command_goes_on() {
    let (world, id) = after_the_agent();
    let untouched = snapshot(&outside(&world));
    let (lead, gone) = (lead_outside(&world, "dir"), world.path("gone"));
    // `new` goes and `dir/g` is swapped, its folder goes, and then something makes the rewind turn round.
    let error = rewind(&world, &id, (3, "apply:swap"), move || {
        lead();
        std::fs::write(gone, "theirs").unwrap();
    })
    .unwrap_err();
    assert!(matches!(&error, OperationError::Stuck { path, .. } if path.display() == "dir/g"), "{error}");
    let workspace = world.open();
    assert_eq!(workspace.recovered().len(), 1);
    assert_eq!(names(&workspace.recovered()[0].left_alone), ["gone"]);
    assert_eq!(names(&workspace.recovered()[0].moved), ["dir/g"]);
    let now = world.snapshot();
    for (path, content) in [("f", "2"), ("gone", "theirs"), ("new/a", "2")] {
        assert_eq!(now.bytes(path), Some(content.as_bytes()), "{path}");
    }
    assert!(snapshot(&outside(&world)) == untouched);
    assert!(world.open().recovered().is_empty());
    world.assert_sound();
}

#[test]
fn a_folder_swapped_for_a_symlink_between_plan_and_rewind_makes_the_plan_stale() {
    let (world, id) = after_the_agent();
    let untouched = snapshot(&outside(&world));
    let plan = world.open().plan_rewind(&id, &RewindOptions::default()).unwrap();
    lead_outside(&world, "dir")();
    let before = world.snapshot();
    assert!(matches!(world.open().carry_out(plan), Err(OperationError::Stale { .. })));
    world.assert_is(&before);
    assert!(snapshot(&outside(&world)) == untouched);
}

#[test]
fn a_change_of_a_plans_own_path_makes_it_stale_and_nothing_is_written() {
    type Change = fn(&World);
    let changes: [(&str, Change); 6] = [
        ("f", |w| std::fs::write(w.path("f"), "3").unwrap()),
        ("f", |w| std::fs::remove_file(w.path("f")).unwrap()),
        ("gone", |w| std::fs::write(w.path("gone"), "3").unwrap()),
        ("new", |w| std::fs::write(w.path("new/late"), "3").unwrap()),
        ("new", |w| std::fs::set_permissions(w.path("new"), PermissionsExt::from_mode(0o700)).unwrap()),
        ("dir", |w| std::fs::set_permissions(w.path("dir"), PermissionsExt::from_mode(0o711)).unwrap()),
    ];
    for (path, change) in changes {
        let (world, id) = after_the_agent();
        if path == "dir" {
            // The plan is about a folder's bits as well.
            world.mode("dir", 0o700);
        }
        let plan = world.open().plan_rewind(&id, &RewindOptions::default()).unwrap();
        change(&world);
        let before = world.snapshot();
        let error = world.open().carry_out(plan).unwrap_err();
        assert!(matches!(&error, OperationError::Stale { path: p } if p.display() == path), "{path}: {error}");
        world.assert_is(&before);
    }
}

#[test]
fn a_change_elsewhere_does_not_make_a_plan_stale_and_stays() {
    let (world, id) = after_the_agent();
    let plan = world.open().plan_rewind(&id, &RewindOptions::default()).unwrap();
    world.write("same", "3").write("dir/another", "3").write("elsewhere/log", "3");
    let outcome = world.open().carry_out(plan).unwrap();
    assert!(outcome.verified);
    let now = world.snapshot();
    for (path, content) in [("f", "1"), ("dir/g", "1"), ("same", "3"), ("dir/another", "3"), ("elsewhere/log", "3")] {
        assert_eq!(now.bytes(path), Some(content.as_bytes()), "{path}");
    }
    // Nobody saw them in the plan, so nobody would know that the workspace is not as at the target.
    assert_eq!(names(&outcome.came_since), ["dir/another", "elsewhere/log", "same"]);
    assert!(outcome.deleted_new.is_empty());
}

#[test]
fn a_deleted_file_that_no_checkpoint_and_no_plan_showed_is_named() {
    let (world, id) = after_the_agent();
    world.capture();
    let plan = world.open().plan_rewind(&id, &RewindOptions::default()).unwrap();
    drop(plan);
    world.write("late", "3").write("dir/late", "3");
    let outcome = world.rewind(&id);
    assert_eq!(names(&outcome.deleted), ["dir/late", "late", "new/a"]);
    assert_eq!(names(&outcome.deleted_new), ["dir/late", "late"]);
    assert_eq!(before(&world, &outcome, "late"), Some(b"3".to_vec()));
    // What a plan showed is not told again.
    world.write("late", "4");
    let plan = world.open().plan_rewind(&id, &RewindOptions::default()).unwrap();
    let outcome = world.open().carry_out(plan).unwrap();
    assert_eq!((names(&outcome.deleted), names(&outcome.deleted_new)), (vec!["late"], vec![]));
}

#[test]
fn your_own_file_that_comes_between_plan_and_yes_counts_as_carried_over() {
    let world = World::new();
    world.write("f", "1");
    let agent = Agent::new(&world, "s");
    agent.edits("first", &["f"], |w| {
        w.write("f", "2");
    });
    let keep = RewindOptions { carry: Carry::Mine, ..RewindOptions::default() };
    let plan = world.open().plan_rewind("t1", &keep).unwrap();
    world.write("mine", "m");
    world.open().carry_out(plan).unwrap();
    assert_eq!(world.snapshot().bytes("mine"), Some(&b"m"[..]));
    agent.edits("second", &["f"], |w| {
        w.write("f", "3");
    });
    let outcome = world.open().rewind_now("t1", &keep).unwrap();
    assert!(outcome.verified, "{outcome:?}");
    assert_eq!(world.snapshot().bytes("f"), Some(&b"1"[..]));
    assert_eq!(world.snapshot().bytes("mine"), Some(&b"m"[..]), "it was carried over once, and is yours still");
}

#[test]
fn a_file_that_comes_between_plan_and_yes_is_not_deleted_with_what_the_plan_made_readable() {
    as_ordinary_user(|| {
        let world = World::new();
        world.write("d/f", "1").write("other", "1");
        let id = world.capture();
        world.write("d/f", "2").write("d/new", "2").write("other", "2").mode("d", 0o000);
        let plan = world.open().plan_rewind(&id, &RewindOptions::default()).unwrap();
        world.write("late", "3");
        match world.open().carry_out(plan) {
            Err(OperationError::Stale { path }) => assert_eq!(path.display(), "late"),
            done => panic!("{done:?}"),
        }
        assert_eq!(world.snapshot().bytes("late"), Some(&b"3"[..]));
        // What is in the folder itself could not be shown, so it is named afterwards.
        world.remove("late");
        let plan = world.open().plan_rewind(&id, &RewindOptions::default()).unwrap();
        let outcome = world.open().carry_out(plan).unwrap();
        assert_eq!(names(&outcome.deleted_new), ["d/new"]);
        assert_eq!(world.snapshot().bytes("d/f"), Some(&b"1"[..]));
    });
}

#[test]
fn a_redo_keeps_the_bits_that_somebody_gave_a_folder_since() {
    let world = World::new();
    world.write("dir/f", "1").write("other", "1");
    let id = world.capture();
    world.mode("dir", 0o700).write("other", "2");
    world.rewind(&id);
    world.mode("dir", 0o711);
    let before = world.snapshot();
    let error = world.open().redo_now(&RedoOptions::default()).unwrap_err();
    assert!(matches!(&error, OperationError::Conflict(all) if all[0].path.display() == "dir"), "{error}");
    world.assert_is(&before);
    // Given back, or as they would become, they are in nobody's way.
    for mode in [0o755, 0o700] {
        world.mode("dir", mode);
        world.redo();
        assert_eq!(std::fs::metadata(world.path("dir")).unwrap().mode() & 0o777, 0o700);
        world.rewind(&id);
    }
}

/// Paths in a folder, at any depth, whose name is one of piton's own.
fn own_names(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_name().to_string_lossy().starts_with(".piton-") {
            found.push(entry.path());
        } else if entry.file_type().unwrap().is_dir() {
            found.extend(own_names(&entry.path()));
        }
    }
    found
}

#[test]
fn a_folder_that_is_renamed_in_the_middle_of_a_rewind_keeps_nothing_of_pitons_own() {
    let points = [(1, "apply:swap"), (3, "apply:swap"), (4, "apply:swap"), (1, "operate:check"), (1, "apply:clear")];
    for point in points {
        let (world, id) = after_the_agent();
        world.write("other/h", "2");
        let (folder, moved) = (world.path("dir"), world.path("other/moved"));
        let result = rewind(&world, &id, point, move || {
            std::fs::create_dir_all(moved.parent().unwrap()).unwrap();
            std::fs::rename(folder, moved).unwrap();
        });
        // Whatever came of it, the next command ends it.
        drop(world.open());
        let told = format!("{point:?}: {result:?}");
        assert_eq!(own_names(&world.ws()), Vec::<PathBuf>::new(), "{told}");
        let moved = world.snapshot().bytes("other/moved/g").map(<[u8]>::to_vec);
        if moved.as_deref() != Some(b"2") {
            let before = world.open().operations().unwrap().operations[0].before.to_string();
            world.rewind(&before);
            assert_eq!(world.snapshot().bytes("dir/g"), Some(&b"2"[..]), "{told}");
        }
        world.assert_sound();
    }
}

#[test]
fn a_folder_that_is_renamed_and_made_anew_in_the_middle_of_a_rewind_keeps_nothing_of_pitons_own() {
    let (world, id) = after_the_agent();
    let (folder, moved) = (world.path("dir"), world.path("moved"));
    let outcome = rewind(&world, &id, CHECK, move || {
        std::fs::rename(&folder, moved).unwrap();
        std::fs::create_dir(folder).unwrap();
    });
    assert_eq!(names(&outcome.unwrap().changed_again), ["dir/g"]);
    assert_eq!(own_names(&world.ws()), Vec::<PathBuf>::new());
    assert_eq!(world.snapshot().bytes("moved/g"), Some(&b"1"[..]));
}

/// Where nobody can look for it, it is named.
#[test]
fn a_folder_that_leaves_the_workspace_in_the_middle_of_a_rewind_is_named_with_what_is_in_it() {
    let (world, id) = after_the_agent();
    let (folder, away) = (world.path("dir"), world.base().join("away"));
    let there = away.clone();
    let outcome = rewind(&world, &id, CHECK, move || std::fs::rename(folder, there).unwrap()).unwrap();
    assert!(!outcome.verified);
    let [own] = &own_names(&away)[..] else { panic!("{outcome:?}") };
    let [left] = &outcome.leftovers[..] else { panic!("{outcome:?}") };
    assert_eq!(left.path.path, format!("dir/{}", own.file_name().unwrap().to_string_lossy()));
    assert!(left.why.contains("moved or removed"), "{left:?}");
    assert!(world.open().status().unwrap().files.iter().all(|file| !file.path.path.contains(".piton-")));
}
