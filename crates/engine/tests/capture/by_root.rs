//! What root does in a user's home, as `sudo piton log` does: the user's own piton goes on afterwards.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use piton_engine::{ObserveOptions, OpenError, StoreError};
use piton_testkit::{Agent, World, as_ordinary_user, is_root};

/// The first line of each test here: two users are needed.
macro_rules! needs_root {
    () => {
        if !is_root() {
            return piton_testkit::not_run(module_path!(), "only root can be root in another user's home");
        }
    };
}

/// A world of an ordinary user's, with a capture.
fn world() -> World {
    as_ordinary_user(|| {
        let world = World::new();
        world.write("a", "1").capture();
        world
    })
}

fn store(world: &World) -> PathBuf {
    world.open().store_folder().to_owned()
}

/// Every path in a folder, with the folder itself.
fn all(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.symlink_metadata().unwrap().is_dir() {
            found.extend(all(&path));
        } else {
            found.push(path);
        }
    }
    found
}

fn views(store: &Path) -> Vec<PathBuf> {
    all(store).into_iter().filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("view")).collect()
}

/// Gives files to root, as a piton left them that was run by root and did not give them back.
fn give_to_root(paths: impl IntoIterator<Item = PathBuf>, mode: u32) {
    for path in paths {
        chown(&path, Some(0), Some(0)).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    }
}

/// A prompt that must be captured.
#[track_caller]
fn assert_captures(world: &World, session: &'static str) {
    let observed = as_ordinary_user(|| Agent::new(world, session).prompt("go on"));
    assert_eq!(observed.gap, None);
    assert!(observed.checkpoint.is_some());
    as_ordinary_user(|| world.assert_sound());
}

#[test]
fn what_root_makes_in_a_users_home_is_the_users() {
    needs_root!();
    let world = world();
    let user = world.base().metadata().unwrap().uid();
    let store = store(&world);
    for path in views(&store) {
        std::fs::remove_file(path).unwrap();
    }
    std::fs::remove_file(store.join("lock")).unwrap();
    // All of it by root: a view made anew, a session, a lock, what is set aside, a folder that becomes known.
    let transcript = world.base().join("talk/r.jsonl");
    std::fs::create_dir(transcript.parent().unwrap()).unwrap();
    std::fs::write(&transcript, "").unwrap();
    let mut agent = Agent::new(&world, "r");
    agent.transcript = Some(transcript);
    agent.prompt("by root");
    world.engine.set_event_aside(&world.ws(), &agent.report(None, piton_event("x")), "no time", false).unwrap();
    assert!(world.engine.is_news(&agent.prompt("more").session, "something").unwrap());
    let other = world.base().join("other");
    std::fs::create_dir(&other).unwrap();
    world.engine.open_or_init(&other).unwrap();
    let home = world.base().join("home");
    let of_root: Vec<_> =
        all(&home).into_iter().filter(|path| path.symlink_metadata().unwrap().uid() != user).collect();
    assert!(of_root.is_empty(), "{of_root:?}");
    for made in ["told", "sessions", "agent-state", "paths"] {
        assert!(home.join(made).exists(), "{made}");
    }
    assert_captures(&world, "s");
    as_ordinary_user(|| world.engine.open(&other).map(|_| ()).unwrap());
}

fn piton_event(text: &str) -> piton_engine::model::event::Event {
    piton_engine::model::event::Event::Prompt { text: text.into() }
}

/// Every hook of the user was a gap for good, and nothing told of it.
#[test]
fn a_view_that_belongs_to_root_is_made_anew() {
    needs_root!();
    for mode in [0o644, 0o600] {
        let world = world();
        let old = views(&store(&world));
        give_to_root(old.clone(), mode);
        assert_captures(&world, "s");
        assert!(old.iter().all(|path| !path.exists()));
        give_to_root(views(&store(&world)), mode);
        as_ordinary_user(|| world.write("a", "2").capture());
        // The log alone, or the memory that those share who have the view open.
        for end in ["-wal", "-shm"] {
            let is_it = |path: &PathBuf| path.to_str().unwrap().ends_with(end);
            give_to_root(views(&store(&world)).into_iter().filter(is_it), 0o644);
            assert_captures(&world, "s");
        }
    }
}

/// The user got a second store for the same folder, and what root had captured was hidden from both.
#[test]
fn a_store_of_roots_is_not_passed_over() {
    needs_root!();
    let world = world();
    let home = world.base().join("home");
    let mine = as_ordinary_user(|| {
        let mine = world.base().join("mine");
        std::fs::create_dir(&mine).unwrap();
        mine
    });
    let made = world.engine.init(&mine, Default::default()).unwrap();
    let pointers = std::fs::read_dir(home.join("paths")).unwrap().map(|entry| entry.unwrap().path());
    let is_its = |path: &PathBuf| std::fs::read_to_string(path).unwrap() == made.id.as_str();
    let pointer: Vec<PathBuf> = pointers.filter(is_its).collect();
    give_to_root(pointer, 0o600);
    give_to_root(all(&made.store).into_iter().filter(|path| path.is_file()), 0o600);
    give_to_root(all(&made.store).into_iter().filter(|path| path.is_dir()), 0o700);
    as_ordinary_user(|| {
        let refused = world.engine.open_or_init(&mine).map(|_| ());
        let is_named = matches!(&refused, Err(OpenError::Store(StoreError::Io { path, .. })) if path.starts_with(home.join("paths")));
        assert!(is_named, "{refused:?}");
        // It keeps no other folder from being protected, and whoever makes one known is told.
        let third = world.base().join("third");
        std::fs::create_dir(&third).unwrap();
        let third = world.engine.init(&third, Default::default()).unwrap();
        assert_eq!(third.unread.iter().map(|one| &one.store).collect::<Vec<_>>(), [&made.store]);
    });
    assert_eq!(std::fs::read_dir(home.join("workspaces")).unwrap().count(), 3);
}

/// What root noted of agents' files could not be read, and was taken for nothing.
#[test]
fn a_note_of_transcripts_that_belongs_to_root_is_written_anew() {
    needs_root!();
    let world = world();
    let agent_state = world.base().join("home/agent-state");
    give_to_root([agent_state.clone()], 0o600);
    as_ordinary_user(|| world.write("a", "2").capture());
    as_ordinary_user(|| assert!(std::fs::read(&agent_state).is_ok()));
}

#[test]
fn status_and_verify_say_what_this_user_cannot_write() {
    needs_root!();
    let world = world();
    give_to_root([store(&world).join("packs/000001.pack")], 0o644);
    as_ordinary_user(|| {
        let agent = Agent::new(&world, "s");
        let options = ObserveOptions { embedded: true, ..ObserveOptions::default() };
        assert!(world.engine.observe(&agent.report(None, piton_event("lost")), &options).is_err());
        let status = world.open().status().unwrap();
        assert_eq!(status.waiting.len(), 1);
        assert!(status.unwritable.is_some_and(|why| why.contains("000001.pack")));
        let found = world.open().verify(false).unwrap();
        assert_eq!((found.sound, found.waiting.len(), found.unwritable.is_some()), (true, 1, true));
    });
}
