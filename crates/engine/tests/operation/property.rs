//! Random histories of files, captures, rewinds, redos and crashes, against a model: what was there, kept in memory.

use std::path::Path;

use piton_engine::{OperationError, RedoOptions, RewindOptions};
use piton_host::fail;
use piton_testkit::{Snapshot, World};
use proptest::prelude::*;

/// Paths that get in each other's way: files, folders that hold them, deeper ones.
const PATHS: [&str; 9] = ["a", "b", "d", "d/x", "d/y", "d/e", "d/e/z", "f", "f/g/h"];

#[derive(Clone, Debug)]
enum Act {
    Write(usize, u8),
    Append(usize),
    Remove(usize),
    Rename(usize, usize),
    Folder(usize),
    Link(usize, u8),
    Mode(usize, bool),
    Capture,
    Rewind(usize),
    RewindPath(usize, usize),
    Redo,
    /// Dies at a step of the verb, and is opened again.
    Crash(Box<Act>, u8),
}

fn act() -> impl Strategy<Value = Act> {
    let path = 0..PATHS.len();
    let verb = prop_oneof![
        Just(Act::Capture),
        (0..20usize).prop_map(Act::Rewind),
        (0..20usize, 0..PATHS.len()).prop_map(|(c, p)| Act::RewindPath(c, p)),
        Just(Act::Redo),
    ];
    prop_oneof![
        4 => (path.clone(), any::<u8>()).prop_map(|(p, c)| Act::Write(p, c % 4)),
        1 => path.clone().prop_map(Act::Append),
        2 => path.clone().prop_map(Act::Remove),
        1 => (path.clone(), path.clone()).prop_map(|(a, b)| Act::Rename(a, b)),
        1 => path.clone().prop_map(Act::Folder),
        1 => (path.clone(), any::<u8>()).prop_map(|(p, c)| Act::Link(p, c % 3)),
        1 => (path, any::<bool>()).prop_map(|(p, x)| Act::Mode(p, x)),
        6 => verb.clone(),
        3 => (verb, any::<u8>()).prop_map(|(v, n)| Act::Crash(Box::new(v), n)),
    ]
}

/// What should be true.
#[derive(Default)]
struct Model {
    checkpoints: Vec<(String, Snapshot)>,
    /// Rewinds that were not taken back: what was there before and after each.
    rewinds: Vec<(Snapshot, Snapshot)>,
}

fn play(acts: &[Act]) {
    let world = World::new();
    let mut model = Model::default();
    for (number, act) in acts.iter().enumerate() {
        step(&world, &mut model, act, &format!("act {number} of {acts:?}"));
    }
    world.assert_sound();
    // Every state that was ever captured is still there, byte for byte.
    for (id, expected) in &model.checkpoints {
        world.rewind(id);
        world.assert_is(expected);
    }
}

fn step(world: &World, model: &mut Model, act: &Act, when: &str) {
    let old = world.snapshot();
    match act {
        Act::Capture => {
            let id = world.capture();
            model.checkpoints.push((id, old.clone()));
            assert!(world.snapshot() == old, "a capture changed something: {when}");
        }
        Act::Rewind(nth) if !model.checkpoints.is_empty() => {
            let (id, expected) = model.checkpoints[nth % model.checkpoints.len()].clone();
            let outcome = world.rewind(&id);
            same(world, &expected, when);
            if outcome.operation.is_some() {
                model.rewinds.push((old, expected));
            }
        }
        Act::RewindPath(nth, path) if !model.checkpoints.is_empty() => {
            let (id, _) = model.checkpoints[nth % model.checkpoints.len()].clone();
            let outcome = rewind_path(world, &id, PATHS[*path]);
            if outcome.is_some_and(|done| done) {
                model.rewinds.push((old, world.snapshot()));
            }
        }
        Act::Redo => match world.open().redo_now(&RedoOptions::default()) {
            Ok(outcome) => {
                let (before, after) = model.rewinds.pop().unwrap_or_else(|| panic!("nothing to redo: {when}"));
                // Also where somebody took it back by hand: the next redo is for the one before.
                assert!(outcome.operation.is_some(), "not recorded: {when}");
                if old == after {
                    same(world, &before, when);
                }
            }
            Err(OperationError::NothingToRedo) => assert!(model.rewinds.is_empty(), "{when}"),
            Err(OperationError::Conflict(_)) => {
                let (_, after) = model.rewinds.last().unwrap_or_else(|| panic!("nothing to redo: {when}"));
                assert!(old != *after, "nothing changed since: {when}");
                same(world, &old, when);
            }
            Err(error) => panic!("{error}: {when}"),
        },
        Act::Crash(verb, nth) => crash(world, model, verb, u64::from(*nth), when),
        change => edit(world, change),
    }
}

/// Rewinds one path; whether it did anything, none where neither side has it.
fn rewind_path(world: &World, id: &str, path: &str) -> Option<bool> {
    let paths = vec![piton_engine::model::WorkspacePath::new(path).unwrap()];
    match world.open().rewind_now(id, &RewindOptions { paths, ..RewindOptions::default() }) {
        Ok(outcome) => Some(outcome.operation.is_some()),
        // Not there on either side, or a file stands where a folder is wanted.
        Err(OperationError::Target(_) | OperationError::Conflict(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

fn crash(world: &World, model: &mut Model, verb: &Act, nth: u64, when: &str) {
    let old = world.snapshot();
    let rewinds = model.rewinds.len();
    // A dry run of the model only: the verb itself may die anywhere, also not at all.
    let target = match verb {
        Act::Rewind(n) if !model.checkpoints.is_empty() => Some(model.checkpoints[n % model.checkpoints.len()].clone()),
        _ => None,
    };
    let ended = fail::with(nth + 1, || match verb {
        Act::Capture => Some(world.capture()),
        Act::Rewind(_) => target.as_ref().map(|(id, _)| drop(world.rewind(id))).and(None),
        Act::Redo => world.open().redo_now(&RedoOptions::default()).ok().map(drop).and(None),
        _ => None,
    });
    if let Some(Some(id)) = ended {
        model.checkpoints.push((id, old));
        return;
    }
    drop(world.open());
    let now = world.snapshot();
    match verb {
        Act::Rewind(_) => {
            let Some((_, expected)) = target else { return };
            assert!(now == old || now == expected, "a mix: {when}\n{}", now.differences(&old).join("\n"));
            if now != old {
                model.rewinds.push((old.clone(), expected));
            }
        }
        Act::Redo => {
            if now != old {
                let (before, after) = model.rewinds.pop().unwrap_or_else(|| panic!("nothing to redo: {when}"));
                assert!(old != after || now == before, "a mix: {when}");
            }
        }
        _ => assert!(now == old, "a capture that died changed something: {when}"),
    }
    // A redo that changed nothing may have been done all the same: the store is asked which it was.
    if now == old && model.rewinds.len() == rewinds {
        resync(world, model);
    }
}

/// After a crash that left no trace in the files, learns from piton how many rewinds stand.
fn resync(world: &World, model: &mut Model) {
    let standing = world.open().operations_standing().unwrap();
    model.rewinds.truncate(standing);
}

fn edit(world: &World, act: &Act) {
    let path = |n: &usize| world.path(PATHS[*n]);
    let clear = |p: &Path| {
        if p.symlink_metadata().is_ok_and(|m| m.is_dir()) {
            let _ = std::fs::remove_dir_all(p);
        } else {
            let _ = std::fs::remove_file(p);
        }
    };
    let room = |n: &usize| {
        let folder = path(n).parent().map(Path::to_path_buf).unwrap_or_default();
        std::fs::create_dir_all(folder).is_ok()
    };
    match act {
        Act::Write(p, c) if room(p) && !path(p).is_dir() => {
            clear(&path(p));
            std::fs::write(path(p), [b'0' + c; 5]).unwrap();
        }
        Act::Append(p) => {
            use std::io::Write;
            if let Ok(mut file) = std::fs::File::options().append(true).open(path(p)) {
                file.write_all(b"+").unwrap();
            }
        }
        Act::Remove(p) => clear(&path(p)),
        Act::Rename(a, b) if room(b) => drop(std::fs::rename(path(a), path(b))),
        Act::Folder(p) if room(p) => drop(std::fs::create_dir(path(p))),
        Act::Link(p, c) if room(p) && !path(p).is_dir() => {
            clear(&path(p));
            std::os::unix::fs::symlink(["a", "nowhere", ".."][usize::from(*c)], path(p)).unwrap();
        }
        Act::Mode(p, x) => {
            use std::os::unix::fs::PermissionsExt;
            if path(p).symlink_metadata().is_ok_and(|m| !m.is_symlink()) {
                let bits = if *x { 0o755 } else { 0o700 };
                std::fs::set_permissions(path(p), std::fs::Permissions::from_mode(bits)).unwrap();
            }
        }
        _ => {}
    }
}

#[track_caller]
fn same(world: &World, expected: &Snapshot, when: &str) {
    let now = world.snapshot();
    assert!(now == *expected, "is | should be: {when}\n{}", now.differences(expected).join("\n"));
}

/// A few on every run; `PROPTEST_CASES=2000` for a night of them.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_every_captured_state_comes_back_and_no_rewind_leaves_a_mix(
        acts in proptest::collection::vec(act(), 1..40)
    ) {
        play(&acts);
    }
}
