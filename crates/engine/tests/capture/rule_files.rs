//! What stands where an ignore file or one of git's files should be never holds anybody up.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use piton_testkit::{World, git};

/// Something that is no ignore file of a sensible size.
#[derive(Clone, Copy, Debug)]
enum Obstacle {
    Pipe,
    Endless,
    Huge,
    Folder,
    Socket,
}

const ALL: [Obstacle; 5] = [Obstacle::Pipe, Obstacle::Endless, Obstacle::Huge, Obstacle::Folder, Obstacle::Socket];

impl Obstacle {
    fn put(self, at: &Path) {
        let _ = std::fs::remove_file(at).or_else(|_| std::fs::remove_dir_all(at));
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        match self {
            Self::Pipe => {
                assert!(std::process::Command::new("mkfifo").arg(at).status().unwrap().success());
            }
            Self::Endless => std::os::unix::fs::symlink("/dev/zero", at).unwrap(),
            Self::Huge => std::fs::File::create(at).unwrap().set_len(1 << 30).unwrap(),
            Self::Folder => std::fs::create_dir(at).unwrap(),
            Self::Socket => drop(std::os::unix::net::UnixListener::bind(at).unwrap()),
        }
    }
}

/// Fails where `act` waits for something that never comes. The time is no measure of speed: only of patience.
fn comes_back<T: Send + 'static>(what: &str, act: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || drop(done.send(act())));
    result.recv_timeout(Duration::from_secs(120)).unwrap_or_else(|_| panic!("{what} never comes to an end"))
}

/// Puts each obstacle at a place in a repository with a workspace in it; returns what `piton status` says of rules.
fn check(place: &'static str, obstacles: &[Obstacle], is_said: bool) {
    for obstacle in obstacles.iter().copied() {
        let scratch = tempfile::tempdir().unwrap();
        let base = scratch.path().canonicalize().unwrap();
        let at = base.join(place);
        git(&base, &["init", "-q", "ws"]);
        std::fs::write(base.join("ws/kept"), "1").unwrap();
        obstacle.put(&at);
        let what = format!("{obstacle:?} at {place}");
        let (name, excludes) = (what.clone(), base.join("excludes"));
        let (captured, unread) = comes_back(&what, move || {
            let world = World::at(&base, |environment| {
                environment.global_excludes = Some(excludes);
                environment.largest_file = Some(1 << 20);
            });
            let first = world.captured();
            // With an index and without a change, and with a change.
            world.capture();
            world.write("kept", "2");
            let id = world.capture();
            world.write("kept", "3");
            world.rewind(&id);
            assert_eq!(std::fs::read_to_string(world.path("kept")).unwrap(), "2", "{name}");
            let unread: Vec<PathBuf> =
                world.open().status().unwrap().unread_rules.into_iter().map(|u| u.path).collect();
            (first.unread_rules.len(), unread)
        });
        let expected = if is_said { vec![at] } else { Vec::new() };
        assert_eq!((captured, unread), (expected.len(), expected), "{what}");
    }
}

#[test]
fn an_ignore_file_that_is_none_holds_nobody_up_and_is_named() {
    for place in ["ws/.gitignore", "ws/.pitonignore", "ws/.git/info/exclude", "excludes"] {
        check(place, &ALL, true);
    }
}

#[test]
fn a_git_folder_that_is_none_holds_nobody_up() {
    use Obstacle::{Endless, Huge, Pipe, Socket};
    check("ws/.git", &[Pipe, Endless, Huge, Socket], true);
    // It may also be a folder without anything in it.
    check("ws/.git", &[Obstacle::Folder], false);
    check("ws/.git/commondir", &ALL, false);
    for file in ["HEAD", "config", "packed-refs", "index", "refs/heads/main", "objects/info/alternates"] {
        check(&*format!("ws/.git/{file}").leak(), &ALL, false);
    }
}

#[test]
fn a_repository_above_the_workspace_that_is_none_holds_nobody_up() {
    for obstacle in ALL {
        let scratch = tempfile::tempdir().unwrap();
        let base = scratch.path().canonicalize().unwrap();
        obstacle.put(&base.join(".git"));
        obstacle.put(&base.join(".gitignore"));
        comes_back(&format!("{obstacle:?} above"), move || {
            let world = World::at(&base, |_| {});
            world.write("kept", "1");
            world.capture();
            world.open().status().unwrap();
        });
    }
}

/// Git's own meaning of a device in its place: nothing is excluded, on purpose.
#[test]
fn the_null_device_as_global_excludes_is_nothing_to_warn_of() {
    let world = World::with(|environment| environment.global_excludes = Some("/dev/null".into()));
    world.write("f", "1");
    assert!(world.captured().unread_rules.is_empty());
}

#[test]
fn a_rule_file_that_is_mended_holds_again() {
    let world = World::new();
    world.write("build/out", "1").write("f", "1");
    Obstacle::Pipe.put(&world.path(".gitignore"));
    assert_eq!(world.captured().checkpoint.skipped.len(), 1, "the pipe itself");
    world.remove(".gitignore").write(".gitignore", "build/\n");
    let captured = world.captured();
    assert!(captured.unread_rules.is_empty());
    assert_eq!(captured.checkpoint.skipped[0].path.path, "build");
}
