//! A rewind of files and conversation that dies at any step, or is refused by the system: both happened, or neither.

use std::collections::BTreeMap;
use std::io::Write;

use piton_engine::model::Scope;
use piton_engine::view::SessionView;
use piton_engine::{OperationError, RedoOptions, RewindOptions};
use piton_host::fail;
use piton_testkit::{Claude, Snapshot, World, as_ordinary_user};

/// Three turns that edit, add and delete.
fn two_edits_and_a_talk(world: &World) {
    world.write("gone", "gone\n").write("mine", "mine\n");
    let claude = Claude::new(world, 1);
    claude.edits("first", &["a"], |world| {
        world.write("a", "1\n").write("dir/b", "b\n");
    });
    claude.edits("second", &["a"], |world| {
        world.write("a", "2\n").remove("gone").write("added/c", "c\n");
    });
    claude.talks("third");
}

fn rewind(world: &World, scope: Scope) {
    let options = RewindOptions { scope: Some(scope), ..RewindOptions::default() };
    let outcome = world.open().rewind_now("t2", &options).unwrap();
    assert!(outcome.verified && outcome.conversation.is_some());
}

fn redo(world: &World) {
    world.open().redo_now(&RedoOptions::default()).unwrap();
}

/// Everything in the agent's folder, by name.
fn transcripts(world: &World) -> BTreeMap<String, Vec<u8>> {
    let folder = Claude::new(world, 1).folder();
    let files = std::fs::read_dir(folder).unwrap().map(|entry| {
        let entry = entry.unwrap();
        (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).unwrap())
    });
    files.collect()
}

fn sessions(world: &World) -> Vec<SessionView> {
    world.open().sessions().unwrap().sessions
}

/// Which of both ends a world is at: in its files, in the agent's folder and in piton's memory alike.
#[track_caller]
fn is_new(world: &World, old: &Snapshot, new: &Snapshot, when: &str) -> bool {
    drop(world.open());
    let sessions = sessions(world);
    let files = transcripts(world);
    let now = world.snapshot();
    let original = format!("{}.jsonl", Claude::new(world, 1).id);
    assert!(files.contains_key(&original), "{when}: the original is gone");
    let is_branched = sessions.len() == 2;
    assert_eq!(files.len(), sessions.len(), "{when}: {:?} for {} sessions", files.keys(), sessions.len());
    let current = sessions.iter().find(|session| session.current).unwrap();
    assert_eq!(current.origin.is_some(), is_branched, "{when}");
    if let Some(branch) = sessions.iter().find(|session| session.origin.is_some()) {
        assert_eq!(Claude::resumed(world, &branch.agent_id).prompts(), ["first"], "{when}");
    }
    let expected = if is_branched { new } else { old };
    assert!(now == *expected, "{when}: files and conversation apart\n{}", now.differences(expected).join("\n"));
    world.assert_sound();
    is_branched
}

fn ends(scope: Scope) -> (Snapshot, Snapshot) {
    let world = World::new();
    two_edits_and_a_talk(&world);
    let old = world.snapshot();
    rewind(&world, scope);
    (old, world.snapshot())
}

#[test]
fn a_crash_at_any_step_leaves_both_scopes_or_neither() {
    for scope in [Scope::Both, Scope::Conversation] {
        let (old, new) = ends(scope);
        let (mut olds, mut news) = (0, 0);
        for step in 1.. {
            let world = World::new();
            two_edits_and_a_talk(&world);
            let original = transcripts(&world);
            if fail::with(step, || rewind(&world, scope)).is_some() {
                break;
            }
            let when = format!("{scope:?}, died at step {step}");
            if is_new(&world, &old, &new, &when) {
                news += 1
            } else {
                olds += 1
            }
            let (name, bytes) = original.iter().next().unwrap();
            assert!(transcripts(&world).get(name) == Some(bytes), "{when}: the original was written to");
            // And the way is free again.
            if olds > 0 && news == 0 {
                rewind(&world, scope);
                assert!(is_new(&world, &old, &new, &when));
            }
            redo(&world);
            world.assert_is(&old);
        }
        assert!(olds > 10 && news > 1, "{scope:?}: {olds} old, {news} new: are the failpoints there?");
    }
}

#[test]
fn a_crash_at_any_step_of_the_redo_leaves_the_user_at_one_line_with_its_files() {
    let (old, new) = ends(Scope::Both);
    let (mut olds, mut news) = (0, 0);
    for step in 1.. {
        let world = World::new();
        two_edits_and_a_talk(&world);
        rewind(&world, Scope::Both);
        if fail::with(step, || redo(&world)).is_some() {
            break;
        }
        drop(world.open());
        let current = sessions(&world).into_iter().find(|session| session.current).unwrap();
        let expected = if current.origin.is_some() { &new } else { &old };
        let now = world.snapshot();
        assert!(now == *expected, "died at step {step}\n{}", now.differences(expected).join("\n"));
        if current.origin.is_some() {
            olds += 1
        } else {
            news += 1
        }
        assert_eq!(transcripts(&world).len(), 2, "a branch stays");
        world.assert_sound();
    }
    assert!(olds > 10 && news > 0, "{olds} old, {news} new: are the failpoints there?");
}

#[test]
fn what_anybody_wrote_after_the_crash_is_kept_in_files_and_in_both_transcripts() {
    for step in 1.. {
        let world = World::new();
        two_edits_and_a_talk(&world);
        if fail::with(step, || rewind(&world, Scope::Both)).is_some() {
            break;
        }
        // Somebody goes on before any command of piton's runs: in the files, and in whatever transcripts are there.
        world.write("mine", "edited since\n").write("new", "new\n");
        let line = b"{\"type\":\"system\",\"subtype\":\"informational\",\"content\":\"since\"}\n";
        for name in transcripts(&world).keys().filter(|name| name.ends_with(".jsonl")) {
            let path = Claude::new(&world, 1).folder().join(name);
            std::fs::File::options().append(true).open(path).unwrap().write_all(line).unwrap();
        }
        drop(world.open());
        let now = world.snapshot();
        assert_eq!(now.bytes("mine"), Some(&b"edited since\n"[..]), "step {step}");
        assert_eq!(now.bytes("new"), Some(&b"new\n"[..]), "step {step}");
        for (name, bytes) in transcripts(&world).iter().filter(|(name, _)| name.ends_with(".jsonl")) {
            assert!(bytes.ends_with(line), "step {step}: {name}");
        }
        assert!(transcripts(&world).keys().all(|name| !name.starts_with(".piton")), "step {step}: leftovers");
        world.assert_sound();
    }
}

#[test]
fn where_the_agents_folder_refuses_nothing_is_changed() {
    as_ordinary_user(|| {
        use std::os::unix::fs::PermissionsExt;
        let world = World::new();
        two_edits_and_a_talk(&world);
        let old = world.snapshot();
        let folder = Claude::new(&world, 1).folder();
        let mode = |bits| std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(bits)).unwrap();
        mode(0o500);
        let options = RewindOptions { scope: Some(Scope::Both), ..RewindOptions::default() };
        let error = world.open().rewind_now("t2", &options).unwrap_err();
        mode(0o700);
        assert!(matches!(error, OperationError::RolledBack { .. }), "{error}");
        world.assert_is(&old);
        assert_eq!((transcripts(&world).len(), sessions(&world).len()), (1, 1));
        world.assert_sound();
    });
}

#[test]
fn two_that_rewind_at_once_end_in_two_branches_and_one_tree() {
    let world = World::new();
    two_edits_and_a_talk(&world);
    let (_, new) = ends(Scope::Both);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let options = RewindOptions { scope: Some(Scope::Both), ..RewindOptions::default() };
                let session = format!("{}:t2", Claude::new(&world, 1).id);
                world.open().rewind_now(&session, &options).unwrap();
            });
        }
    });
    world.assert_is(&new);
    assert_eq!((transcripts(&world).len(), sessions(&world).len()), (3, 3));
    world.assert_sound();
}
