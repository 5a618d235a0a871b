//! Repositories whose own data is not in a folder called `.git`: it is never captured and never written all the same.

use piton_engine::OpenError;
use piton_engine::model::SkipReason;
use piton_engine::view::SkippedView;
use piton_testkit::{World, git, snapshot};

fn skipped(all: &[SkippedView]) -> Vec<(&str, SkipReason)> {
    all.iter().map(|one| (one.path.path.as_str(), one.reason)).collect()
}

/// Long enough for a filesystem's clock to tick, so that the index is trusted.
fn tick() {
    std::thread::sleep(std::time::Duration::from_millis(60));
}

/// Commits a file after a capture, rewinds, and fails unless the commit is still there.
fn assert_commits_stay(world: &World, folder: &str, left_out: &[(&str, SkipReason)]) {
    let work = world.path(folder);
    world.write(work.join("file"), "1");
    git(&work, &["add", "file"]);
    git(&work, &["commit", "-qm", "one"]);
    let captured = world.captured();
    assert_eq!(skipped(&captured.checkpoint.skipped), left_out);
    tick();
    world.write(work.join("file"), "2");
    git(&work, &["add", "file"]);
    git(&work, &["commit", "-qm", "two"]);
    let after = world.captured();
    assert_eq!(after.checkpoint.checkpoint.changes.modified, 1);
    assert_eq!(skipped(&after.checkpoint.skipped), left_out, "with the index");
    let repository = git(&work, &["rev-parse", "--absolute-git-dir"]);
    let before = snapshot(std::path::Path::new(repository.trim()));
    let outcome = world.rewind(captured.checkpoint.checkpoint.id.as_str());
    assert!(outcome.verified);
    assert_eq!(std::fs::read_to_string(work.join("file")).unwrap(), "1");
    assert_eq!(git(&work, &["log", "--format=%s"]).lines().collect::<Vec<_>>(), ["two", "one"]);
    assert!(snapshot(std::path::Path::new(repository.trim())) == before);
    world.assert_sound();
}

#[test]
fn a_bare_folder_that_a_git_file_leads_to_is_left_alone() {
    let world = World::new();
    git(&world.ws(), &["init", "-q", "--bare", ".bare"]);
    world.write(".git", "gitdir: ./.bare\n");
    git(&world.ws(), &["config", "core.bare", "false"]);
    // No rule takes in what is git's.
    world.write(".pitonignore", "!.bare\n");
    assert_commits_stay(&world, "", &[(".bare", SkipReason::GitFolder)]);
}

#[test]
fn a_separate_git_dir_inside_the_tree_is_left_alone_wherever_its_work_tree_is() {
    let world = World::new();
    world.folder("data").folder("nested");
    git(&world.ws(), &["init", "-q", "--separate-git-dir", "data/main git"]);
    git(&world.path("nested"), &["init", "-q", "--separate-git-dir", "../data/nested"]);
    let left_out = [("data/main git", SkipReason::GitFolder), ("data/nested", SkipReason::GitFolder)];
    assert_commits_stay(&world, "", &left_out);
    assert_commits_stay(&world, "nested", &left_out);
    // Outside the tree it is nobody's business.
    let world = World::new();
    let outside = world.base().join("outside");
    git(&world.ws(), &["init", "-q", "--separate-git-dir", outside.to_str().unwrap()]);
    assert_commits_stay(&world, "", &[]);
}

#[test]
fn a_git_that_is_a_symlink_leads_to_git_s_own_folder_too() {
    let world = World::new();
    git(&world.ws(), &["init", "-q"]);
    world.rename(".git", "data").link(".git", "data").write(".pitonignore", "!data\n");
    assert_commits_stay(&world, "", &[("data", SkipReason::GitFolder)]);
}

#[test]
fn worktrees_beside_the_bare_repository_that_they_share_leave_it_alone() {
    let world = World::new();
    git(&world.ws(), &["init", "-q", "--bare", "repo.git"]);
    let tree = git(&world.path("repo.git"), &["hash-object", "-w", "-t", "tree", "/dev/null"]);
    let commit = git(&world.path("repo.git"), &["commit-tree", tree.trim(), "-m", "begin"]);
    git(&world.path("repo.git"), &["update-ref", "refs/heads/main", commit.trim()]);
    git(&world.path("repo.git"), &["worktree", "add", "-q", "../main", "main"]);
    world.write(".pitonignore", "!repo.git\n");
    let captured = world.captured();
    let expected = [("main", SkipReason::Worktree), ("repo.git", SkipReason::GitFolder)];
    assert_eq!(skipped(&captured.checkpoint.skipped), expected);
}

#[test]
fn a_bare_repository_is_listed_and_pitonignore_takes_it_in() {
    let world = World::new();
    git(&world.ws(), &["init", "-q", "--bare", "fixtures/a.git"]);
    // Such names alone make no repository.
    world.write("plain/objects", "x").write("plain/HEAD", "x").folder("plain/refs");
    let first = world.captured();
    assert_eq!(skipped(&first.checkpoint.skipped), [("fixtures/a.git", SkipReason::BareRepository)]);
    world.write(".pitonignore", "!*.git\n");
    let taken_in = world.captured();
    assert!(taken_in.checkpoint.skipped.is_empty());
    tick();
    let again = world.captured();
    assert_eq!(again.checkpoint.checkpoint.changes.created, 0);
    world.assert_comes_back(&[], |world| {
        world.write("fixtures/a.git/HEAD", "ref: refs/heads/other\n");
    });
    // What came in by that rule stays where it is when the rule goes.
    world.remove(".pitonignore").write("fixtures/a.git/HEAD", "ref: refs/heads/third\n");
    let outcome = world.rewind(again.checkpoint.checkpoint.id.as_str());
    let head = std::fs::read_to_string(world.path("fixtures/a.git/HEAD")).unwrap();
    assert_eq!(head, "ref: refs/heads/third\n");
    assert_eq!(skipped(&outcome.skipped), [("fixtures/a.git", SkipReason::BareRepository)]);
}

#[test]
fn a_checkpoint_that_holds_a_repository_s_own_folder_leaves_it_alone_and_says_so() {
    let world = World::new();
    git(&world.ws(), &["init", "-q", "--bare", ".bare"]);
    world.write(".pitonignore", "!.bare\n").write("f", "1");
    // Taken in, since nothing leads to it yet: such are the checkpoints of an earlier piton.
    let old = world.captured();
    assert!(old.checkpoint.skipped.is_empty());
    tick();
    world.write(".git", "gitdir: .bare\n");
    git(&world.ws(), &["config", "core.bare", "false"]);
    git(&world.ws(), &["add", "f"]);
    git(&world.ws(), &["commit", "-qm", "one"]);
    world.write("f", "2");
    let outcome = world.rewind(old.checkpoint.checkpoint.id.as_str());
    assert_eq!(std::fs::read_to_string(world.path("f")).unwrap(), "1");
    assert_eq!(git(&world.ws(), &["log", "--format=%s"]).trim(), "one");
    assert_eq!(skipped(&outcome.skipped), [(".bare", SkipReason::GitFolder)]);
}

#[test]
fn no_folder_inside_a_repository_s_own_data_becomes_a_workspace() {
    let world = World::new();
    git(&world.ws(), &["init", "-q", "--separate-git-dir", "../data"]);
    git(world.base(), &["init", "-q", "--bare", "bare.git"]);
    for inside in ["bare.git", "bare.git/refs", "bare.git/refs/heads", "data/objects", "data/info"] {
        let opened = world.engine.open_or_init(&world.base().join(inside));
        assert!(matches!(opened, Err(OpenError::Git { .. })), "{inside}");
        assert!(matches!(world.engine.refusal(&world.base().join(inside)), Some(OpenError::Git { .. })), "{inside}");
    }
    // But for working trees that somebody keeps in there, and what is in those.
    let tree = git(&world.base().join("bare.git"), &["hash-object", "-w", "-t", "tree", "/dev/null"]);
    let commit = git(&world.base().join("bare.git"), &["commit-tree", tree.trim(), "-m", "begin"]);
    git(&world.base().join("bare.git"), &["worktree", "add", "-q", "main", commit.trim()]);
    git(&world.base().join("bare.git"), &["init", "-q", "clone"]);
    for work in ["bare.git/main", "bare.git/main/src", "bare.git/clone", "bare.git/clone/src"] {
        std::fs::create_dir_all(world.base().join(work)).unwrap();
        world.engine.open_or_init(&world.base().join(work)).unwrap();
    }
}
