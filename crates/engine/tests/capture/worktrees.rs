//! Where an agent's files are captured: worktrees are workspaces of their own, what a workspace's rules leave out
//! belongs to a repository in there or to nobody, and nothing is said to be captured that is not.

use std::path::{Path, PathBuf};

use piton_engine::model::SkipReason;
use piton_engine::view::{CheckpointDetail, OperationOutcome};
use piton_engine::{LogOptions, OpenError, RewindOptions, Workspace};
use piton_testkit::{Agent, World, git};

/// A repository with one commit, and rules.
fn repository(ignored: &str) -> World {
    let world = World::new();
    git(&world.ws(), &["init", "-q"]);
    world.write("src/main.rs", "main\n").write(".gitignore", ignored);
    git(&world.ws(), &["add", "-A"]);
    git(&world.ws(), &["commit", "-qm", "c"]);
    world
}

fn worktree(world: &World, path: &str) -> PathBuf {
    git(&world.ws(), &["worktree", "add", "-q", path]);
    world.path(path)
}

fn rewind(workspace: &mut Workspace, target: &str) -> OperationOutcome {
    workspace.rewind_now(target, &RewindOptions { interrupted: true, ..RewindOptions::default() }).unwrap()
}

fn skipped(detail: &CheckpointDetail) -> Vec<(String, SkipReason)> {
    detail.skipped.iter().map(|one| (one.path.path.clone(), one.reason)).collect()
}

fn checkpoints(world: &World, folder: &Path) -> u64 {
    world.engine.open(folder).map_or(0, |workspace| workspace.log(LogOptions::default()).unwrap().total)
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn an_agent_that_moves_into_an_ignored_worktree_is_protected_there() {
    let world = repository(".claude/\n");
    let agent = Agent::new(&world, "s1");
    agent.prompt("begin");
    agent.end_turn();
    let tree = worktree(&world, ".claude/work trees/a");
    *agent.folder.borrow_mut() = tree.join("src");
    agent.prompt("tidy up");
    agent.before("c1", "Bash", &[]);
    std::fs::remove_dir_all(tree.join("src")).unwrap();
    agent.after("c1");
    agent.end_turn();

    assert_eq!(world.engine.locate(&tree).unwrap(), tree);
    let mut inner = world.engine.open(&tree).unwrap();
    let outcome = rewind(&mut inner, "s1:t2");
    assert!(outcome.verified);
    assert_eq!(read(tree.join("src/main.rs")), "main\n");
    // And back in the outer folder the session goes on with its turns.
    *agent.folder.borrow_mut() = world.ws();
    assert_eq!(agent.prompt("three").turn, 3);
    assert_eq!(world.open().sessions().unwrap().sessions[0].turns, 3);
    assert_eq!(inner.sessions().unwrap().sessions[0].turns, 3);
}

#[test]
fn a_file_that_a_tool_names_in_an_ignored_worktree_protects_the_worktree() {
    let world = repository("trees/\n");
    let tree = worktree(&world, "trees/a");
    let agent = Agent::new(&world, "s1");
    agent.prompt("edit");
    assert!(matches!(world.engine.open(&tree), Err(OpenError::NotKnown(_))), "nobody works in it yet");
    agent.before("c1", "Edit", &["trees/a/src/main.rs"]);
    std::fs::write(tree.join("src/main.rs"), "edited\n").unwrap();
    agent.after("c1");
    rewind(&mut world.engine.open(&tree).unwrap(), "s1:t1.1");
    assert_eq!(read(tree.join("src/main.rs")), "main\n");
    // The outer workspace has nothing of it.
    assert_eq!(skipped(&world.captured().checkpoint), [("trees".to_owned(), SkipReason::Ignored)]);
}

#[test]
fn worktrees_that_are_not_ignored_are_captured_by_the_same_event_and_no_rewind_reaches_a_sibling() {
    let world = repository("");
    let (a, b) = (worktree(&world, "trees/a"), worktree(&world, "trees/b"));
    // A worktree of a worktree.
    git(&a, &["worktree", "add", "-q", "inner"]);
    let inner = a.join("inner");
    let agent = Agent::new(&world, "s1");
    agent.prompt("one");
    for folder in [&world.ws(), &a, &b, &inner] {
        assert_eq!(checkpoints(&world, folder), 1, "{}", folder.display());
    }
    let expected = [("trees/a".to_owned(), SkipReason::Worktree), ("trees/b".to_owned(), SkipReason::Worktree)];
    assert_eq!(skipped(&world.captured().checkpoint), expected);

    let all = [&world.ws(), &a, &b, &inner];
    for folder in all {
        std::fs::write(folder.join("src/main.rs"), "edited\n").unwrap();
        std::fs::write(folder.join("new"), "new\n").unwrap();
    }
    agent.end_turn();
    for (nth, folder) in all.iter().enumerate() {
        rewind(&mut world.engine.open(folder).unwrap(), "s1:t1");
        for (other, folder) in all.iter().enumerate() {
            let is_back = other <= nth;
            assert_eq!(read(folder.join("src/main.rs")) == "main\n", is_back, "{nth} {other}");
            assert_eq!(folder.join("new").exists(), !is_back, "{nth} {other}");
        }
    }
    world.assert_sound();
}

#[test]
fn a_checkpoint_from_before_a_folder_was_a_worktree_leaves_the_worktree_alone_and_says_so() {
    let world = repository("");
    world.write("tree/src/main.rs", "captured with the outer folder\n").write("tree/gone", "x").write("f", "1");
    let old = world.capture();
    world.remove("tree").write("f", "2");
    let tree = worktree(&world, "tree");
    for _ in 0..2 {
        let outcome = world.rewind(&old);
        assert_eq!(read(world.path("f")), "1");
        assert_eq!((read(tree.join("src/main.rs")).as_str(), tree.join("gone").exists()), ("main\n", false));
        let kept: Vec<_> = outcome.skipped.iter().map(|one| (one.path.path.as_str(), one.reason)).collect();
        assert_eq!(kept, [("tree", SkipReason::Worktree)]);
        world.write("f", "2");
    }
}

#[test]
fn a_folder_that_becomes_a_worktree_or_stops_being_one_is_noticed_at_the_next_capture() {
    let world = repository("");
    let tree = worktree(&world, "tree");
    assert_eq!(skipped(&world.captured().checkpoint).len(), 1);
    let link = read(tree.join(".git"));
    // Long enough for a filesystem's clock to tick, so that the index is trusted.
    let tick = || std::thread::sleep(std::time::Duration::from_millis(60));
    tick();
    assert_eq!(skipped(&world.captured().checkpoint).len(), 1);
    std::fs::remove_file(tree.join(".git")).unwrap();
    assert_eq!(skipped(&world.captured().checkpoint).len(), 0);
    tick();
    assert_eq!(skipped(&world.captured().checkpoint).len(), 0);
    std::fs::write(tree.join(".git"), link).unwrap();
    assert_eq!(skipped(&world.captured().checkpoint), [("tree".to_owned(), SkipReason::Worktree)]);
    tick();
    assert_eq!(skipped(&world.captured().checkpoint), [("tree".to_owned(), SkipReason::Worktree)]);
    world.assert_sound();
}

#[test]
fn submodules_and_nested_repositories_stay_part_of_the_workspace_around_them() {
    let world = repository("hidden/\n");
    let upstream = world.base().join("upstream");
    git(world.base(), &["clone", "-q", world.ws().to_str().unwrap(), "upstream"]);
    git(&world.ws(), &["submodule", "--quiet", "add", upstream.to_str().unwrap(), "sub"]);
    git(&world.ws(), &["clone", "-q", upstream.to_str().unwrap(), "nested"]);
    git(&world.ws(), &["clone", "-q", upstream.to_str().unwrap(), "hidden/deep/clone"]);
    world.capture();
    for inside in ["sub/src", "nested/src"] {
        assert_eq!(world.engine.locate(&world.path(inside)).unwrap(), world.ws());
    }
    // A repository that the rules leave out stands for itself, whether or not the session began there.
    let hidden = world.path("hidden/deep/clone");
    let agent = Agent::new(&world, "s1");
    agent.prompt("one");
    *agent.folder.borrow_mut() = hidden.join("src");
    agent.prompt("two");
    assert_eq!(checkpoints(&world, &hidden), 1);
}

#[test]
fn an_ignored_folder_is_a_workspace_only_for_a_session_that_began_there() {
    let world = repository("build/\nout/\n");
    world.write("build/deep/a", "1").write("out/b", "1");
    let agent = Agent::new(&world, "s1");
    agent.prompt("one");
    let deep = world.path("build/deep");
    *agent.folder.borrow_mut() = deep.clone();
    let place = world.engine.event_place(&deep, &[world.ws()]).unwrap();
    let left_out = place.left_out.unwrap();
    assert_eq!((place.root, left_out.folder), (world.ws(), world.path("build")));
    assert_eq!(left_out.reason, Some(SkipReason::Ignored));
    agent.prompt("two");
    assert_eq!(checkpoints(&world, &world.ws()), 2);
    assert!(matches!(world.engine.open(&deep), Err(OpenError::NotKnown(_))));
    assert_eq!(world.engine.locate(&deep).unwrap(), world.ws());

    let other = Agent::new(&world, "s2");
    *other.folder.borrow_mut() = world.path("out");
    other.prompt("one");
    other.before("c1", "Bash", &[]);
    world.remove("out/b");
    other.after("c1");
    assert_eq!(checkpoints(&world, &world.ws()), 2, "the outer workspace is not what it works in");
    rewind(&mut world.engine.open(&world.path("out")).unwrap(), "s2:t1");
    assert_eq!(read(world.path("out/b")), "1");
}

#[test]
fn a_folder_that_is_gone_belongs_to_the_sessions_workspaces() {
    let world = repository("trees/\n");
    let tree = worktree(&world, "trees/a");
    let agent = Agent::new(&world, "s1");
    agent.prompt("one");
    *agent.folder.borrow_mut() = tree.clone();
    agent.prompt("two");
    git(&world.ws(), &["worktree", "remove", "--force", "trees/a"]);
    let before = checkpoints(&world, &world.ws());
    let observed = agent.prompt("three");
    assert_eq!((observed.turn, observed.gap), (3, None));
    assert_eq!(checkpoints(&world, &world.ws()), before + 1);
    assert!(!tree.exists());
}

#[test]
fn a_later_folder_outside_every_repository_makes_no_workspace() {
    let world = repository("");
    let agent = Agent::new(&world, "s1");
    agent.prompt("one");
    let elsewhere = world.base().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    *agent.folder.borrow_mut() = elsewhere.clone();
    let observed = agent.prompt("two");
    assert_eq!((observed.turn, observed.gap), (2, None));
    assert_eq!(world.engine.workspaces(), [world.ws()]);
    let place = world.engine.event_place(&elsewhere, &[world.ws()]).unwrap();
    assert_eq!((place.root, place.left_out.unwrap().folder), (world.ws(), elsewhere.clone()));
    // Whoever begins there is captured there.
    let other = Agent::new(&world, "s2");
    *other.folder.borrow_mut() = elsewhere.clone();
    other.prompt("one");
    assert_eq!(checkpoints(&world, &elsewhere), 1);
}

#[test]
fn a_worktree_is_found_through_a_symlink_and_inside_git_s_own_folder() {
    let world = repository("");
    git(&world.ws(), &["worktree", "add", "-q", ".git/trees/a"]);
    let tree = world.path(".git/trees/a");
    let link = world.base().join("link");
    std::os::unix::fs::symlink(&tree, &link).unwrap();
    world.capture();
    assert_eq!(world.engine.locate(&link.join("src")).unwrap(), tree);
    let agent = Agent::new(&world, "s1");
    *agent.folder.borrow_mut() = link.join("src");
    agent.prompt("one");
    assert_eq!(checkpoints(&world, &tree), 1);
    // But for that, what is in there is git's.
    let place = world.engine.event_place(&world.path(".git/hooks"), &[]).unwrap();
    assert_eq!((place.root, place.left_out.unwrap().reason), (world.ws(), Some(SkipReason::GitFolder)));
    let hooks = world.path(".git/hooks");
    assert!(matches!(world.engine.init(&hooks, Default::default()), Err(OpenError::Git { .. })));
}

#[test]
fn files_that_are_on_their_way_in_an_inner_workspace_are_listed_and_not_captured_by_the_outer_one() {
    let world = World::new();
    world.write("f", "1").write("inner/a", "1").write("inner/b", "1");
    // A name that looks so and is no operation's is somebody's file.
    let mine = format!("inner/.piton-{}-0", piton_engine::model::OperationId::from_random([7; 8]));
    world.write(&mine, "mine");
    let mut inner = world.engine.open_or_init(&world.path("inner")).unwrap();
    let id = inner.capture(&Default::default()).unwrap().checkpoint.checkpoint.id;
    world.write("inner/a", "2").write("inner/b", "2");
    let (engine, ws) = (world.engine.clone(), world.ws());
    let seen = std::sync::Arc::new(std::sync::Mutex::new(None));
    let found = seen.clone();
    let look = move || {
        let captured = engine.open_or_init(&ws).unwrap().capture(&Default::default()).unwrap();
        *found.lock().unwrap() = Some(captured.checkpoint);
    };
    piton_host::fail::when(1, "apply:sync-swapped", look, || rewind(&mut inner, id.as_str()));
    let seen = seen.lock().unwrap().take().unwrap();
    let staged: Vec<_> = skipped(&seen);
    assert_eq!(staged.len(), 2, "{staged:?}");
    assert!(staged.iter().all(|(path, reason)| path.starts_with("inner/.piton-") && *reason == SkipReason::Staged));
    let outcome = world.rewind(seen.checkpoint.id.as_str());
    assert_eq!(outcome.deleted.len(), 0);
    assert_eq!((read(world.path("inner/a")), read(world.path(&mine))), ("1".to_owned(), "mine".to_owned()));
    assert!(world.captured().checkpoint.skipped.is_empty());
}

#[test]
fn projects_in_a_home_folder_that_is_a_worktree_or_lies_in_one_are_workspaces() {
    for home in ["dots", "dots/users/me"] {
        let base = tempfile::tempdir().unwrap();
        let world = World::at(base.path(), |environment| environment.home_folder = Some(base.path().join(home)));
        git(&world.ws(), &["init", "-q"]);
        git(&world.ws(), &["commit", "-q", "--allow-empty", "-m", "c"]);
        git(&world.ws(), &["worktree", "add", "-q", "../dots"]);
        let home = world.base().join(home);
        let (project, notes) = (home.join("project"), home.join("notes"));
        for folder in [&project, &notes] {
            std::fs::create_dir_all(folder.join("src")).unwrap();
        }
        git(&project, &["init", "-q"]);
        for (session, cwd, root) in [("s1", project.join("src"), &project), ("s2", notes.clone(), &notes)] {
            assert_eq!(world.engine.locate(&cwd).unwrap(), *root);
            let agent = Agent::new(&world, session);
            *agent.folder.borrow_mut() = cwd;
            agent.prompt("one");
            assert_eq!(checkpoints(&world, root), 1);
        }
        assert!(matches!(world.engine.refusal(&home), Some(OpenError::Refused { .. })));
    }
}

#[test]
fn a_folder_whose_repository_comes_back_or_goes_is_a_worktree_again_or_no_longer() {
    // Without a template there is no exclude file whose times would tell, and nothing in the worktree itself changes.
    let world = World::new();
    let main = world.base().join("main");
    git(world.base(), &["init", "-q", "--template=", "main"]);
    git(&main, &["commit", "-q", "--allow-empty", "-m", "c"]);
    git(&main, &["worktree", "add", "-q", world.path("tree").to_str().unwrap()]);
    world.write("tree/src/a", "1").write("f", "1");
    // Long enough for a filesystem's clock to tick, so that the index is trusted.
    let tick = || std::thread::sleep(std::time::Duration::from_millis(60));
    let away = world.base().join("away");
    std::fs::rename(&main, &away).unwrap();
    let plain = world.captured().checkpoint;
    assert!(plain.skipped.is_empty());
    tick();
    assert!(world.captured().checkpoint.skipped.is_empty());

    std::fs::rename(&away, &main).unwrap();
    world.write("tree/src/a", "work").write("f", "2");
    let outcome = world.rewind(plain.checkpoint.id.as_str());
    assert_eq!((read(world.path("tree/src/a")), read(world.path("f"))), ("work".to_owned(), "1".to_owned()));
    let kept: Vec<_> = outcome.skipped.iter().map(|one| (one.path.path.as_str(), one.reason)).collect();
    assert_eq!(kept, [("tree", SkipReason::Worktree)]);
    tick();
    assert_eq!(skipped(&world.captured().checkpoint), [("tree".to_owned(), SkipReason::Worktree)]);

    std::fs::rename(&main, &away).unwrap();
    let plain = world.captured().checkpoint;
    assert!(plain.skipped.is_empty(), "nobody else protects it now");
    world.write("tree/src/a", "2");
    world.rewind(plain.checkpoint.id.as_str());
    assert_eq!(read(world.path("tree/src/a")), "work");
    world.assert_sound();
}

#[test]
fn a_folder_that_a_rewind_keeps_only_for_a_younger_worktree_is_not_kept_in_silence() {
    let world = repository("");
    let before = world.capture();
    worktree(&world, "new/tree");
    world.write("new/file", "1");
    world.capture();
    let outcome = rewind(&mut world.open(), &before);
    assert!(!world.path("new/file").exists() && world.path("new/tree/src/main.rs").exists());
    let left: Vec<_> = outcome.skipped.iter().map(|one| (&one.path.path[..], one.reason)).collect();
    assert_eq!(left, [("new/tree", SkipReason::Worktree)]);
}

/// A worktree's `.git` file names the old path of its repository until `git worktree repair`.
#[test]
fn worktrees_inside_a_repository_that_moved_keep_their_own_stores() {
    for outer_first in [true, false] {
        let world = repository("");
        let tree = worktree(&world, "tree");
        let agent = Agent::new(&world, "s1");
        *agent.folder.borrow_mut() = tree.clone();
        agent.runs("in the worktree", "x", |_| std::fs::write(tree.join("src/main.rs"), "agent\n").unwrap());
        let outer = Agent::new(&world, "s2");
        outer.runs("around it", "x", |world| {
            world.write("src/main.rs", "outer\n");
        });
        let moved = world.base().join("moved");
        std::fs::rename(world.ws(), &moved).unwrap();
        if outer_first {
            assert_eq!(world.engine.open(&moved).unwrap().path(), moved);
        }
        let tree = moved.join("tree");
        assert_eq!(world.engine.locate(&tree.join("src")).unwrap(), tree, "{outer_first}");
        let mut inner = world.engine.open(&tree).unwrap();
        assert!(inner.is_cut_off_from_git());
        rewind(&mut inner, "s1:t1");
        assert_eq!(read(tree.join("src/main.rs")), "main\n");
        assert_eq!(read(moved.join("src/main.rs")), "outer\n");
        // The session goes on with its turns.
        *agent.folder.borrow_mut() = tree.clone();
        assert_eq!(agent.prompt("two").turn, 2);
        world.engine.open(&moved).unwrap();
        let mut all = world.engine.workspaces();
        all.sort();
        assert_eq!(all, [moved.clone(), tree.clone()]);
    }
}

/// A piton of before left the worktree's store at the old path when it followed the outer one.
#[test]
fn a_worktree_whose_store_stayed_behind_is_found_by_what_it_is() {
    let world = repository("");
    let tree = worktree(&world, "tree");
    let agent = Agent::new(&world, "s1");
    *agent.folder.borrow_mut() = tree.clone();
    agent.prompt("in the worktree");
    let moved = world.base().join("moved");
    std::fs::create_dir(&moved).unwrap();
    // Only the worktree moves, into another repository that is known.
    git(&moved, &["init", "-q"]);
    world.engine.open_or_init(&moved).unwrap();
    std::fs::rename(&tree, moved.join("tree")).unwrap();
    std::fs::rename(world.path(".git"), world.path("git")).unwrap();
    assert_eq!(world.engine.locate(&moved.join("tree/src")).unwrap(), moved.join("tree"));
    assert_eq!(checkpoints(&world, &moved.join("tree")), 1);
    // What only looks like one is a part of the folder that it is in.
    std::fs::create_dir(moved.join("other")).unwrap();
    std::fs::write(moved.join("other/.git"), "gitdir: /nowhere\n").unwrap();
    assert_eq!(world.engine.locate(&moved.join("other")).unwrap(), moved);
}

#[test]
fn a_worktree_that_is_moved_by_git_in_a_turn_is_captured_where_it_is_and_leaves_no_gap() {
    let world = repository("");
    let tree = worktree(&world, "tree");
    let agent = Agent::new(&world, "s1");
    agent.prompt("one");
    agent.before("c1", "Edit", &["tree/src/main.rs"]);
    std::fs::write(tree.join("src/main.rs"), "agent\n").unwrap();
    agent.after("c1");
    agent.before("c2", "Bash", &[]);
    git(&world.ws(), &["worktree", "move", "tree", "tree2"]);
    let call = piton_engine::model::event::ToolCall { id: Some("c2".into()), ..Default::default() };
    let report = agent.report(None, piton_engine::model::event::Event::AfterTool(call));
    let options = piton_engine::ObserveOptions { embedded: true, ..Default::default() };
    let (_, others) = world.engine.observe(&report, &options).unwrap();
    let others: Vec<_> =
        others.iter().map(|(path, other)| (path.clone(), other.as_ref().unwrap().gap.clone())).collect();
    assert_eq!(others, [(world.path("tree2"), None)]);
    rewind(&mut world.engine.open(&world.path("tree2")).unwrap(), "s1:t1");
    assert_eq!(read(world.path("tree2/src/main.rs")), "main\n");
}
