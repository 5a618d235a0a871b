//! Repositories of every form in a workspace: their files are captured like any, their `.git` is left alone to the bit.

use std::path::{Path, PathBuf};

use piton_engine::{OperationError, RewindOptions, UndoOptions};
use piton_testkit::{Agent, Snapshot, World, git, snapshot};

/// A repository with one of each: a nested repository, a submodule, a worktree.
fn repositories() -> World {
    let world = World::new();
    let upstream = world.base().join("upstream");
    std::fs::create_dir(&upstream).unwrap();
    let commit = |folder: &Path| {
        git(folder, &["add", "-A"]);
        git(folder, &["commit", "-qm", "c"]);
    };
    git(&upstream, &["init", "-q"]);
    std::fs::write(upstream.join("lib.rs"), "upstream\n").unwrap();
    commit(&upstream);

    let ws = world.ws();
    git(&ws, &["init", "-q"]);
    world.write("main.rs", "main\n").write(".gitignore", "tree/\nnested/\n");
    git(&ws, &["submodule", "--quiet", "add", upstream.to_str().unwrap(), "sub"]);
    commit(&ws);
    git(&ws, &["worktree", "add", "-q", "tree"]);
    world.write("nested/n.rs", "nested\n");
    git(&world.path("nested"), &["init", "-q"]);
    commit(&world.path("nested"));
    // Ignored, they would be skipped as folders.
    world.write(".gitignore", "").write(".pitonignore", "");
    assert!(world.path("sub/.git").is_file() && world.path("tree/.git").is_file());
    world
}

/// Every bit of every `.git` beneath a folder.
fn all_git(folder: &Path) -> Vec<(PathBuf, Snapshot, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().is_some_and(|n| n == ".git") {
                found.push((path.clone(), snapshot(&path), std::fs::read(&path).ok()));
            } else if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            }
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

#[test]
fn nested_repositories_and_submodules_are_captured_worktrees_are_not_and_their_git_is_never_touched() {
    let world = repositories();
    let before = all_git(&world.ws());
    assert_eq!(before.len(), 4);
    assert!(before.iter().all(|(_, folder, file)| !folder.is_empty() || file.is_some()));
    let assert_same = |when: &str| assert!(all_git(&world.ws()) == before, "{when}");
    let skipped = world.captured().checkpoint.skipped;
    assert_eq!(skipped.iter().map(|one| one.path.path.as_str()).collect::<Vec<_>>(), ["tree"]);
    assert_same("after a capture");
    world.assert_comes_back(&["tree"], |w| {
        w.write("main.rs", "edited").write("nested/n.rs", "edited").write("sub/lib.rs", "edited");
        w.write("tree/main.rs", "edited").write("sub/new", "new");
    });
    assert_eq!(world.snapshot().bytes("tree/main.rs"), Some(&b"edited"[..]));
    assert_same("after rewinds and redos");

    // All that can be captured is deleted, by somebody and then by a rewind.
    let id = world.capture();
    for path in ["nested/n.rs", "sub/lib.rs", "tree/main.rs", "main.rs"] {
        world.remove(path);
    }
    world.rewind(&id);
    let now = world.snapshot();
    assert_eq!(now.bytes("nested/n.rs"), Some(&b"nested\n"[..]));
    assert_eq!(now.bytes("sub/lib.rs"), Some(&b"upstream\n"[..]));
    assert_eq!(now.bytes("tree/main.rs"), None, "a workspace of its own");
    assert_same("after a rewind that brought everything back");
}

#[test]
fn a_rewind_to_before_a_repository_existed_removes_its_files_and_keeps_its_git() {
    let world = World::new();
    world.write("f", "1");
    let id = world.capture();
    world.write("nested/n.rs", "n").write("nested/deep/d.rs", "d").write("f", "2");
    git(&world.path("nested"), &["init", "-q"]);
    git(&world.path("nested"), &["add", "-A"]);
    let before = all_git(&world.ws());
    let outcome = world.rewind(&id);
    assert!(outcome.verified);
    assert!(all_git(&world.ws()) == before);
    let names: Vec<_> = std::fs::read_dir(world.path("nested")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, [".git"]);
    world.redo();
    assert!(all_git(&world.ws()) == before);
    assert_eq!(world.snapshot().bytes("nested/deep/d.rs"), Some(&b"d"[..]));
}

#[test]
fn a_file_is_not_put_where_a_repository_is() {
    let world = World::new();
    world.write("thing", "a file");
    let id = world.capture();
    world.remove("thing").folder("thing");
    git(&world.path("thing"), &["init", "-q"]);
    let before = all_git(&world.ws());
    let error = world.open().rewind_now(&id, &RewindOptions::default()).unwrap_err();
    assert!(matches!(error, OperationError::Conflict { .. }), "{error}");
    assert!(all_git(&world.ws()) == before);
}

/// A clone inside the workspace: its files are captured, its repository is not, and nobody may believe it was.
#[test]
fn the_own_data_of_a_repository_inside_is_listed_and_never_said_to_be_back() {
    let world = World::new();
    git(&world.ws(), &["init", "-q"]);
    world.write("vendor/o/l", "local");
    git(&world.path("vendor/o"), &["init", "-q"]);
    let id = world.capture();
    let listed: Vec<_> = world.open().status().unwrap().skipped.into_iter().map(|one| one.path.path).collect();
    assert_eq!(listed, ["vendor/o/.git"]);
    assert_eq!(world.open().show(&id).unwrap().checkpoint.skipped[0].path.path, "vendor/o/.git");
    world.remove("vendor");
    let outcome = world.rewind(&id);
    let left: Vec<_> = outcome.not_done.iter().map(|one| &one.path.path[..]).collect();
    assert_eq!((left, outcome.verified), (vec!["vendor/o/.git"], false));
    assert_eq!(std::fs::read_to_string(world.path("vendor/o/l")).unwrap(), "local");
}

fn not_done(outcome: &[piton_engine::view::SkippedView]) -> Vec<&str> {
    outcome.iter().map(|one| &one.path.path[..]).collect()
}

/// The whole project went, its repository with it: the files come back, and nobody may believe that their history does.
#[test]
fn the_repository_of_a_project_that_is_made_anew_is_named_as_not_back() {
    for is_repository in [true, false] {
        let world = World::new();
        world.write("src/f", "1");
        if is_repository {
            git(&world.ws(), &["init", "-q"]);
        }
        let expected = if is_repository { vec![".git"] } else { vec![] };
        let id = world.capture();
        std::fs::remove_dir_all(world.ws()).unwrap();
        let plan = world.open().plan_rewind(&id, &RewindOptions::default()).unwrap();
        assert_eq!(not_done(&plan.view().not_done), expected);
        let outcome = world.open().carry_out(plan).unwrap();
        assert_eq!((not_done(&outcome.not_done), outcome.verified), (expected, !is_repository));
        assert_eq!(std::fs::read_to_string(world.path("src/f")).unwrap(), "1");
        // Once it is there without one, a rewind leaves that alone as ever.
        world.write("src/f", "2");
        assert!(world.rewind(&id).verified);
    }
}

#[test]
fn an_undo_of_a_tool_that_deleted_the_project_names_the_repository_that_is_not_back() {
    type Act = fn(&World);
    let acts: [Act; 2] = [
        |world| std::fs::remove_dir_all(world.ws()).unwrap(),
        |world| {
            world.remove("src").remove(".git");
        },
    ];
    for act in acts {
        let world = World::new();
        world.write("src/f", "1");
        git(&world.ws(), &["init", "-q"]);
        let agent = Agent::new(&world, "s");
        agent.runs("clean up", "rm -rf", act);
        let plan = world.open().plan_undo(&UndoOptions::default()).unwrap();
        assert_eq!(not_done(&plan.view().not_done), [".git"]);
        let outcome = world.open().carry_out(plan).unwrap();
        assert_eq!((not_done(&outcome.not_done), outcome.verified), (vec![".git"], false));
        assert_eq!(std::fs::read_to_string(world.path("src/f")).unwrap(), "1");
    }
}
