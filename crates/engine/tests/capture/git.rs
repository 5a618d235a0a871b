//! The repository's state with each checkpoint.

use piton_engine::RewindOptions;
use piton_engine::model::git::{GitState, StagedKind};
use piton_testkit::{World, git, snapshot};

fn state(world: &World, target: &str) -> GitState {
    world.open().show(target).unwrap().git.unwrap()
}

#[test]
fn a_checkpoint_has_the_branch_the_commit_what_is_staged_and_whether_anything_is_uncommitted() {
    let world = World::new();
    world.write("a.txt", "one\n").write("b.txt", "one\n");
    git(&world.ws(), &["init", "-q", "-b", "main"]);
    let unborn = world.capture();
    assert_eq!(state(&world, &unborn).head.branch.as_deref(), Some("main"));
    assert_eq!(state(&world, &unborn).head.commit, None);

    git(&world.ws(), &["add", "-A"]);
    git(&world.ws(), &["commit", "-q", "-m", "first"]);
    let commit = git(&world.ws(), &["rev-parse", "HEAD"]);
    let clean = world.capture();
    let found = state(&world, &clean);
    assert_eq!(found.head.commit.as_deref(), Some(commit.trim()));
    assert_eq!((found.staged.len(), found.uncommitted), (0, Some(false)));

    world.write("a.txt", "two\n");
    git(&world.ws(), &["add", "a.txt"]);
    world.write("a.txt", "three\n");
    let inside = snapshot(&world.path(".git"));
    let staged = world.capture();
    assert_eq!(snapshot(&world.path(".git")), inside);
    let found = state(&world, &staged);
    assert_eq!(found.uncommitted, Some(true));
    assert_eq!(found.staged.len(), 1);
    assert_eq!((found.staged[0].path.display(), found.staged[0].kind), ("a.txt".into(), StagedKind::Modified));
    // The content that HEAD lacks is kept, whatever git does with it.
    assert_eq!(found.staged[0].blob, Some(piton_engine::model::ObjectId::of_blob(b"two\n")));
    world.assert_sound();
}

#[test]
fn an_unchanged_state_is_kept_once_and_a_commit_alone_makes_another() {
    let world = World::new();
    world.write("a.txt", "one\n");
    git(&world.ws(), &["init", "-q", "-b", "main"]);
    git(&world.ws(), &["add", "-A"]);
    git(&world.ws(), &["commit", "-q", "-m", "first"]);
    // Until the files of `.git` are no longer young, so that the state need not be read again.
    std::thread::sleep(std::time::Duration::from_millis(2_100));
    let (first, second) = (world.capture(), world.capture());
    let id = |target: &str| world.open().resolve(target).unwrap().checkpoint.git.unwrap();
    assert_eq!(id(&first), id(&second));
    git(&world.ws(), &["commit", "-q", "--allow-empty", "-m", "second"]);
    let third = world.capture();
    assert_ne!(id(&second), id(&third));
    assert_eq!(state(&world, &third).head.commit.unwrap(), git(&world.ws(), &["rev-parse", "HEAD"]).trim());
}

#[test]
fn a_rewind_says_that_head_moved_since_and_leaves_it_there() {
    let world = World::new();
    world.write("a.txt", "one\n");
    git(&world.ws(), &["init", "-q", "-b", "main"]);
    git(&world.ws(), &["add", "-A"]);
    git(&world.ws(), &["commit", "-q", "-m", "first"]);
    let before = world.capture();
    let plan = world.open().plan_rewind(&before, &RewindOptions::default()).unwrap();
    assert_eq!(plan.view().head_moved, None);
    git(&world.ws(), &["checkout", "-q", "-b", "topic"]);
    world.write("a.txt", "two\n");
    git(&world.ws(), &["commit", "-q", "-a", "-m", "second"]);
    let head = git(&world.ws(), &["rev-parse", "HEAD"]);
    let outcome = world.rewind(&before);
    let moved = outcome.head_moved.unwrap();
    assert!(moved.was.starts_with("main ("), "{moved:?}");
    assert!(moved.is.starts_with("topic ("), "{moved:?}");
    assert_eq!(git(&world.ws(), &["rev-parse", "HEAD"]), head);
    assert_eq!(git(&world.ws(), &["status", "--porcelain"]).trim(), "M a.txt");
}
