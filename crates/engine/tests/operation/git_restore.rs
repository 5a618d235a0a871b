//! Putting a repository's state back: HEAD, the branch, and every entry of the index; never a file of the working tree.

use std::path::Path;
use std::process::Command;

use piton_engine::model::git::InProgress;
use piton_engine::{GitRefusal, GitRestored, RewindOptions};
use piton_testkit::{World, git, git_command};

/// A repository with a commit of two files.
fn repository() -> World {
    let world = World::new();
    begin(&world, &world.ws(), &[]);
    world
}

fn begin(world: &World, folder: &Path, init: &[&str]) {
    git(folder, &[&["init", "-q", "-b", "main"], init].concat());
    world.write("a.txt", "one\n").write("b.txt", "one\n").write("dir/c.txt", "one\n");
    commit(folder, "first");
}

fn commit(folder: &Path, message: &str) -> String {
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "-m", message]);
    git(folder, &["rev-parse", "HEAD"]).trim().to_owned()
}

/// All that git says of HEAD, the branches and the index, without what `stat` says. Not of `topic`: where HEAD leaves it,
/// it stays where it is.
fn state(folder: &Path) -> String {
    let head = git_command(folder, &["symbolic-ref", "-q", "HEAD"]).output().unwrap().stdout;
    let commit = git_command(folder, &["rev-parse", "-q", "--verify", "HEAD"]).output().unwrap().stdout;
    // Before `status`, which refreshes the index on its own.
    let differing = git(folder, &["diff-files", "--raw", "--ignore-submodules"]);
    let entries = git(folder, &["ls-files", "-s", "-v", "-z"]);
    let is_of_stat = |line: &&str| ["time:", "dev:", "uid:"].iter().any(|word| line.contains(word));
    let debug = git(folder, &["ls-files", "--debug"]);
    let flags = debug.lines().map(|line| line.rsplit_once("flags: ").map_or(line, |(_, flags)| flags));
    // Of these one says that an entry is in the shared part of a split index.
    let flags: Vec<_> = flags.filter(|line| !is_of_stat(line) && *line != "8000000" && *line != "0").collect();
    let status = git(folder, &["status", "--porcelain=v2", "--branch", "--untracked-files=all"]);
    let branches = git(folder, &["for-each-ref", "refs/heads", "--format=%(refname) %(objectname)"]);
    let branches: Vec<_> = branches.lines().filter(|line| !line.starts_with("refs/heads/topic ")).collect();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    [text(head), text(commit), differing, entries, flags.join("\n"), status, branches.join("\n")].join("\n----\n")
}

/// A clean filter of the user's that took a minute held a rewind up for as long, with `index.lock` there.
#[test]
fn no_filter_of_the_users_is_run_and_git_still_says_what_differs() {
    let world = repository();
    let at = world.ws();
    let ran = world.base().join("ran");
    world.write(".gitattributes", "*.slow filter=slow\n").write("x.slow", "one\n").write("y.slow", "one\n");
    git(&at, &["config", "filter.slow.clean", "sed s/one/ONE/"]);
    git(&at, &["config", "filter.slow.required", "true"]);
    commit(&at, "second");
    let id = world.capture();
    world.write("x.slow", "two\n").write("a.txt", "two\n");
    commit(&at, "third");
    git(&at, &["config", "filter.slow.clean", &format!("touch {}; sed s/one/ONE/", ran.display())]);
    restore(&world, &id);
    assert!(!ran.exists(), "the filter ran");
    assert_eq!(git(&at, &["status", "--porcelain"]), "");
    assert!(ran.exists(), "git itself runs it");
    world.write("y.slow", "else\n");
    assert_eq!(git(&at, &["status", "--porcelain"]), " M y.slow\n");
}

/// Rewinds the files, and puts the git state back.
#[track_caller]
fn restore(world: &World, target: &str) -> GitRestored {
    let mut workspace = world.open();
    workspace.rewind_now(target, &RewindOptions::default()).unwrap();
    let plan = workspace.plan_git_restore(target).unwrap_or_else(|error| panic!("{error}"));
    let done = workspace.restore_git(plan).unwrap_or_else(|error| panic!("{error}"));
    assert!(done.verified);
    done
}

#[track_caller]
fn refused(world: &World, target: &str) -> GitRefusal {
    let before = state(&world.ws());
    let refusal = world.open().plan_git_restore(target).unwrap_err();
    assert_eq!(state(&world.ws()), before);
    refusal
}

/// Captures, lets something happen, puts everything back, takes that back, and puts it back again.
#[track_caller]
fn assert_comes_back(world: &World, happen: impl FnOnce(&World)) -> GitRestored {
    let folder = world.ws();
    let before = state(&folder);
    let id = world.capture();
    happen(world);
    let after = state(&folder);
    let after_id = world.capture();
    let done = restore(world, &id);
    assert_eq!(state(&folder), before, "after the first");
    // It has arrived, so there is nothing to do.
    let again = world.open().plan_git_restore(&id).unwrap();
    assert!(again.view().is_empty(), "{:?}", again.view());

    let mut workspace = world.open();
    let back = workspace.plan_git_back(&done.change).unwrap_or_else(|error| panic!("{error}"));
    workspace.rewind_now(&after_id, &RewindOptions::default()).unwrap();
    assert!(workspace.restore_git(back).unwrap_or_else(|error| panic!("{error}")).verified);
    assert_eq!(state(&folder), after, "after it was taken back");

    git(&folder, &["gc", "-q", "--prune=now"]);
    restore(world, &id);
    assert_eq!(state(&folder), before, "after the second, with gc in between");
    let left: Vec<_> = std::fs::read_dir(git(&folder, &["rev-parse", "--absolute-git-dir"]).trim())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("piton") || name.ends_with(".lock"))
        .collect();
    assert_eq!(left, [""; 0]);
    done
}

#[test]
fn staged_partly_staged_deleted_and_new_files_come_back() {
    let world = repository();
    world
        .write("a.txt", "staged\n")
        .write("new \"q\"\n\u{e9}.txt", "new\n")
        .write("run.sh", "#!/bin/sh\n")
        .mode("run.sh", 0o755);
    git(&world.ws(), &["add", "-A"]);
    git(&world.ws(), &["rm", "-q", "--cached", "b.txt"]);
    world.write("a.txt", "not staged\n").write("untracked", "u\n");
    let done = assert_comes_back(&world, |world| {
        world.write("a.txt", "agent\n").remove("dir/c.txt").write("x/y.txt", "agent\n");
        commit(&world.ws(), "agent");
        world.write("a.txt", "again\n");
        git(&world.ws(), &["add", "-A"]);
    });
    // What was there before is kept.
    let kept = |name: &str| git(&world.ws(), &["rev-parse", &format!("refs/piton/{}/{name}", done.operation)]);
    assert_eq!(kept("head").trim(), done.change.before.head.commit.as_deref().unwrap());
    assert_eq!(kept("branch"), kept("head"));
    let text = git(&world.ws(), &["show", &format!("refs/piton/{}/index:a.txt", done.operation)]);
    assert_eq!(text, "again\n");
    world.open().forget_git(&done.operation).unwrap();
    assert!(!git(&world.ws(), &["for-each-ref"]).contains(done.operation.as_str()));
    world.assert_sound();
}

#[test]
fn a_plan_says_what_would_move_and_writes_nothing() {
    let world = repository();
    let first = git(&world.ws(), &["rev-parse", "HEAD"]).trim().to_owned();
    let id = world.capture();
    world.write("a.txt", "two\n").write("n.txt", "n\n");
    let second = commit(&world.ws(), "second");
    git(&world.ws(), &["rm", "-q", "--cached", "b.txt"]);
    let inside = piton_testkit::snapshot(&world.path(".git"));
    let plan = world.open().plan_git_restore(&id).unwrap();
    assert_eq!(piton_testkit::snapshot(&world.path(".git")), inside);
    let view = plan.view();
    assert_eq!(
        (view.from.as_str(), view.to.as_str()),
        (&*format!("main ({})", &second[..10]), &*format!("main ({})", &first[..10]))
    );
    assert_eq!(view.branch.as_deref(), Some("main"));
    assert_eq!((view.branch_from.as_deref(), view.branch_to.as_deref()), (Some(&second[..10]), Some(&first[..10])));
    assert_eq!((view.index_changes, &view.whole_repository), (3, &None));
}

#[test]
fn what_a_later_commit_has_as_it_was_staged_is_no_change_of_the_index() {
    let world = repository();
    world.write("a.txt", "two\n");
    git(&world.ws(), &["add", "-A"]);
    let id = world.capture();
    git(&world.ws(), &["commit", "-q", "-m", "second"]);
    let plan = world.open().plan_git_restore(&id).unwrap();
    assert_eq!(plan.view().index_changes, 0);
    assert!(!plan.view().is_empty());
    let done = world.open().restore_git(plan).unwrap();
    assert!(done.verified);
    assert_eq!(git(&world.ws(), &["status", "--porcelain"]), "M  a.txt\n");
}

#[test]
fn sides_of_a_conflict_come_back_and_are_kept() {
    let world = repository();
    world.write("a.txt", "stash\n");
    git(&world.ws(), &["stash", "-q"]);
    world.write("a.txt", "ours\n").write("d.txt", "d\n");
    commit(&world.ws(), "ours");
    assert!(!git_command(&world.ws(), &["stash", "pop", "-q"]).output().unwrap().status.success());
    assert!(git(&world.ws(), &["status", "--porcelain"]).contains("UU a.txt"));
    git(&world.ws(), &["stash", "drop", "-q"]);
    assert_comes_back(&world, |world| {
        world.write("a.txt", "solved\n");
        commit(&world.ws(), "solved");
    });
    // And the other way: a conflict is what is there now.
    let conflict = state(&world.ws());
    let ids: Vec<_> = git(&world.ws(), &["ls-files", "-u"]).lines().map(|l| l[7..47].to_owned()).collect();
    git(&world.ws(), &["stash", "clear"]);
    let now = world.capture();
    git(&world.ws(), &["add", "a.txt"]);
    let clean = world.capture();
    restore(&world, &now);
    assert_eq!(state(&world.ws()), conflict);
    let done = restore(&world, &clean);
    git(&world.ws(), &["reflog", "expire", "--expire=now", "--all"]);
    git(&world.ws(), &["gc", "-q", "--prune=now"]);
    for id in &ids {
        git(&world.ws(), &["cat-file", "-e", id]);
    }
    let back = world.open().plan_git_back(&done.change).unwrap();
    assert!(world.open().restore_git(back).unwrap().verified);
    assert!(git(&world.ws(), &["status", "--porcelain"]).contains("UU a.txt"));
}

#[test]
fn another_branch_comes_back_and_the_one_that_is_left_stays() {
    let world = repository();
    assert_comes_back(&world, |world| {
        world.write("a.txt", "on main\n");
        commit(&world.ws(), "main goes on");
        git(&world.ws(), &["checkout", "-q", "-b", "topic"]);
        world.write("a.txt", "on topic\n");
        commit(&world.ws(), "topic");
        world.write("b.txt", "half\n");
        git(&world.ws(), &["add", "b.txt"]);
    });
    assert_eq!(git(&world.ws(), &["log", "--format=%s", "topic"]), "topic\nmain goes on\nfirst\n");
}

#[test]
fn a_deleted_branch_is_made_again() {
    let world = repository();
    git(&world.ws(), &["checkout", "-q", "-b", "topic"]);
    let on_topic = commit_of(&world, "topic");
    let id = world.capture();
    git(&world.ws(), &["checkout", "-q", "main"]);
    git(&world.ws(), &["branch", "-q", "-D", "topic"]);
    let main = git(&world.ws(), &["rev-parse", "main"]);
    let done = restore(&world, &id);
    assert_eq!(git(&world.ws(), &["symbolic-ref", "HEAD"]), "refs/heads/topic\n");
    assert_eq!(git(&world.ws(), &["rev-parse", "topic"]).trim(), on_topic);
    assert_eq!(git(&world.ws(), &["rev-parse", "main"]), main);
    assert_eq!(git(&world.ws(), &["status", "--porcelain"]), "");
    // Taken back, it is gone again.
    let back = world.open().plan_git_back(&done.change).unwrap();
    world.open().restore_git(back).unwrap();
    assert_eq!(git(&world.ws(), &["branch", "--format=%(refname:short)"]), "main\n");
}

fn commit_of(world: &World, text: &str) -> String {
    world.write("a.txt", text);
    commit(&world.ws(), text)
}

#[test]
fn a_detached_head_comes_back_both_ways() {
    let world = repository();
    let second = commit_of(&world, "second");
    git(&world.ws(), &["checkout", "-q", "--detach", "HEAD~1"]);
    world.write("a.txt", "staged\n");
    git(&world.ws(), &["add", "a.txt"]);
    assert_comes_back(&world, |world| {
        git(&world.ws(), &["reset", "-q", "--hard"]);
        git(&world.ws(), &["checkout", "-q", "main"]);
    });
    assert_eq!(git(&world.ws(), &["rev-parse", "main"]).trim(), second);
    assert_eq!(git_command(&world.ws(), &["symbolic-ref", "-q", "HEAD"]).output().unwrap().stdout, b"");
}

#[test]
fn a_branch_without_a_commit_comes_back_with_what_was_staged() {
    let world = World::new();
    git(&world.ws(), &["init", "-q", "-b", "main"]);
    world.write("a.txt", "one\n").write("b.txt", "one\n");
    git(&world.ws(), &["add", "a.txt"]);
    assert_comes_back(&world, |world| {
        commit(&world.ws(), "first");
    });
    // And with nothing at all.
    let world = World::new();
    git(&world.ws(), &["init", "-q", "-b", "main"]);
    assert_comes_back(&world, |world| {
        world.write("a.txt", "one\n");
        commit(&world.ws(), "first");
    });
}

#[test]
fn assume_unchanged_skip_worktree_and_intent_to_add_come_back() {
    let world = repository();
    world.write("later.txt", "later\n").write("deep/er/later.sh", "later\n").mode("deep/er/later.sh", 0o755);
    git(&world.ws(), &["add", "-N", "later.txt", "deep/er/later.sh"]);
    git(&world.ws(), &["update-index", "--assume-unchanged", "a.txt"]);
    git(&world.ws(), &["update-index", "--skip-worktree", "b.txt"]);
    world.write("dir/c.txt", "staged\n");
    git(&world.ws(), &["add", "dir/c.txt"]);
    git(&world.ws(), &["update-index", "--assume-unchanged", "dir/c.txt"]);
    assert_comes_back(&world, |world| {
        git(&world.ws(), &["update-index", "--no-assume-unchanged", "a.txt", "dir/c.txt"]);
        git(&world.ws(), &["update-index", "--no-skip-worktree", "b.txt"]);
        git(&world.ws(), &["update-index", "--assume-unchanged", "b.txt"]);
        git(&world.ws(), &["rm", "-q", "--cached", "later.txt"]);
        world.remove("deep");
        git(&world.ws(), &["commit", "-q", "-a", "-m", "agent"]);
    });
}

#[test]
fn what_was_staged_comes_from_the_store_when_git_dropped_it() {
    let world = repository();
    world.write("a.txt", "only staged\n");
    git(&world.ws(), &["add", "a.txt"]);
    let before = state(&world.ws());
    let id = world.capture();
    let blob = git(&world.ws(), &["rev-parse", ":a.txt"]);
    git(&world.ws(), &["reset", "-q", "--hard"]);
    git(&world.ws(), &["gc", "-q", "--prune=now"]);
    assert!(!git_command(&world.ws(), &["cat-file", "-e", blob.trim()]).output().unwrap().status.success());
    restore(&world, &id);
    assert_eq!(state(&world.ws()), before);
    assert_eq!(git(&world.ws(), &["show", ":a.txt"]), "only staged\n");
}

#[test]
fn a_staged_file_that_nobody_has_any_more_is_refused_by_its_path() {
    let world = repository();
    // Over the size that the store keeps of a staged file.
    let large = "0123456789abcdef".repeat(600_000);
    world.write("large.bin", &large);
    git(&world.ws(), &["add", "large.bin"]);
    let id = world.capture();
    git(&world.ws(), &["rm", "-q", "--cached", "large.bin"]);
    world.open().plan_git_restore(&id).unwrap();
    git(&world.ws(), &["gc", "-q", "--prune=now"]);
    let refusal = refused(&world, &id);
    assert!(matches!(&refusal, GitRefusal::BlobGone(path) if path.display() == "large.bin"), "{refusal}");
}

#[test]
fn a_commit_that_is_gone_is_refused_by_its_name() {
    let world = repository();
    git(&world.ws(), &["checkout", "-q", "-b", "topic"]);
    let gone = commit_of(&world, "topic");
    let id = world.capture();
    git(&world.ws(), &["checkout", "-q", "main"]);
    git(&world.ws(), &["branch", "-q", "-D", "topic"]);
    git(&world.ws(), &["reflog", "expire", "--expire=now", "--all"]);
    git(&world.ws(), &["gc", "-q", "--prune=now"]);
    let refusal = refused(&world, &id);
    assert_eq!(refusal.to_string(), format!("commit {gone} of topic is not in the repository any more"));
}

#[test]
fn in_the_middle_of_something_it_is_refused_and_named() {
    let cases: [(&[&str], InProgress); 5] = [
        (&["merge", "-q", "other"], InProgress::Merge),
        (&["rebase", "-q", "other"], InProgress::Rebase),
        (&["cherry-pick", "other"], InProgress::CherryPick),
        (&["revert", "--no-edit", "HEAD~1"], InProgress::Revert),
        (&["bisect", "start"], InProgress::Bisect),
    ];
    for (act, expected) in cases {
        let world = repository();
        git(&world.ws(), &["checkout", "-q", "-b", "other"]);
        commit_of(&world, "theirs");
        git(&world.ws(), &["checkout", "-q", "main"]);
        commit_of(&world, "mine");
        commit_of(&world, "mine again");
        let id = world.capture();
        let _ = git_command(&world.ws(), act).output().unwrap();
        let refusal = refused(&world, &id);
        assert!(matches!(refusal, GitRefusal::InProgress(found) if found == expected), "{act:?}: {refusal}");
        if expected == InProgress::Merge {
            // And a checkpoint of the middle of it cannot be gone back to.
            let middle = world.capture();
            git(&world.ws(), &["merge", "--abort"]);
            let refusal = refused(&world, &middle);
            assert!(matches!(refusal, GitRefusal::WasInProgress(InProgress::Merge)), "{refusal}");
        }
    }
}

#[test]
fn a_lock_of_another_git_is_respected_and_one_that_piton_left_is_not() {
    let world = repository();
    let id = world.capture();
    commit_of(&world, "second");
    std::fs::write(world.path(".git/index.lock"), "").unwrap();
    let refusal = refused(&world, &id);
    assert!(refusal.to_string().contains("index.lock"), "{refusal}");
    std::fs::remove_file(world.path(".git/index.lock")).unwrap();
    // A lock that comes after the plan.
    let plan = world.open().plan_git_restore(&id).unwrap();
    std::fs::write(world.path(".git/index.lock"), "").unwrap();
    assert!(world.open().restore_git(plan.clone()).unwrap_err().to_string().contains("index.lock"));
    // One of a piton that died: no process of this number has begun then.
    std::fs::write(world.path(".git/index.lock"), "piton 1 1\n").unwrap();
    std::fs::write(world.path(".git/piton-index"), "half").unwrap();
    std::fs::write(world.path(".git/piton-index.lock"), "half").unwrap();
    std::fs::create_dir_all(world.path(".git/piton-scratch/x")).unwrap();
    assert!(world.open().restore_git(plan).unwrap().verified);
    assert!(!world.path(".git/index.lock").exists());
}

#[test]
fn what_is_staged_or_committed_after_the_plan_is_not_overwritten() {
    let world = repository();
    let id = world.capture();
    commit_of(&world, "second");
    let plan = world.open().plan_git_restore(&id).unwrap();
    world.write("b.txt", "staged since\n");
    git(&world.ws(), &["add", "b.txt"]);
    let before = state(&world.ws());
    let refusal = world.open().restore_git(plan.clone()).unwrap_err();
    assert_eq!(refusal.to_string(), "the index changed since; putting the git state back would overwrite that");
    assert_eq!(state(&world.ws()), before);
    git(&world.ws(), &["commit", "-q", "-m", "third"]);
    let before = state(&world.ws());
    let refusal = world.open().restore_git(plan).unwrap_err();
    assert!(matches!(refusal, GitRefusal::ChangedSince(_)), "{refusal}");
    assert_eq!(state(&world.ws()), before);
    // The same for taking back.
    let done = restore(&world, &id);
    commit_of(&world, "fourth");
    let before = state(&world.ws());
    let refusal = world.open().plan_git_back(&done.change).unwrap_err();
    assert!(matches!(refusal, GitRefusal::ChangedSince(_)), "{refusal}");
    assert_eq!(state(&world.ws()), before);
}

#[test]
fn without_git_a_repository_or_a_state_it_says_so() {
    let world = World::with(|environment| environment.git = Some("/nonexistent/git".into()));
    begin(&world, &world.ws(), &[]);
    let id = world.capture();
    let refusal = world.open().plan_git_restore(&id).unwrap_err();
    assert_eq!(refusal.to_string(), "git is not installed, or not in PATH");

    let world = World::new();
    world.write("a.txt", "one\n");
    let id = world.capture();
    let refusal = world.open().plan_git_restore(&id).unwrap_err();
    assert!(matches!(refusal, GitRefusal::NoRepository(_)), "{refusal}");
    git(&world.ws(), &["init", "-q"]);
    let refusal = world.open().plan_git_restore(&id).unwrap_err();
    assert!(matches!(refusal, GitRefusal::NoState), "{refusal}");
}

#[test]
fn a_worktree_has_a_head_and_an_index_of_its_own_and_leaves_branches_of_others_alone() {
    let world = World::new();
    let main = world.base().join("main");
    std::fs::create_dir(&main).unwrap();
    git(&main, &["init", "-q", "-b", "main"]);
    std::fs::write(main.join("a.txt"), "one\n").unwrap();
    commit(&main, "first");
    std::fs::remove_dir(world.ws()).unwrap();
    git(&main, &["worktree", "add", "-q", "-b", "tree", world.ws().to_str().unwrap()]);
    let of_main = state_of_head(&main);
    world.write("a.txt", "staged\n");
    git(&world.ws(), &["add", "a.txt"]);
    assert_comes_back(&world, |world| {
        commit_of(world, "agent");
    });
    assert_eq!(state_of_head(&main), of_main);
    // The branch of then is checked out in the other one by now.
    let id = world.capture();
    git(&world.ws(), &["checkout", "-q", "--detach", "-f"]);
    git(&main, &["checkout", "-q", "tree"]);
    let refusal = refused(&world, &id);
    assert!(matches!(&refusal, GitRefusal::OtherWorktree { branch, .. } if branch == "tree"), "{refusal}");
}

fn state_of_head(folder: &Path) -> String {
    git(folder, &["symbolic-ref", "HEAD"]) + &git(folder, &["rev-parse", "HEAD"]) + &git(folder, &["ls-files", "-s"])
}

#[test]
fn a_submodules_commit_in_the_index_is_an_entry_like_others() {
    let world = repository();
    let upstream = world.base().join("upstream");
    std::fs::create_dir(&upstream).unwrap();
    git(&upstream, &["init", "-q"]);
    std::fs::write(upstream.join("lib.rs"), "upstream\n").unwrap();
    commit(&upstream, "first");
    git(&world.ws(), &["submodule", "--quiet", "add", upstream.to_str().unwrap(), "sub"]);
    commit(&world.ws(), "submodule");
    git(&world.path("sub"), &["commit", "-q", "--allow-empty", "-m", "mine"]);
    git(&world.ws(), &["add", "sub"]);
    let inside = state_of_head(&world.path("sub"));
    let id = world.capture();
    let staged = git(&world.ws(), &["ls-files", "-s", "sub"]);
    git(&world.ws(), &["commit", "-q", "-m", "moved"]);
    git(&world.ws(), &["rm", "-q", "--cached", "sub"]);
    restore(&world, &id);
    assert_eq!(git(&world.ws(), &["ls-files", "-s", "sub"]), staged);
    assert_eq!(git(&world.ws(), &["status", "--porcelain"]), "M  sub\n");
    // The submodule's own repository is none of it.
    assert_eq!(state_of_head(&world.path("sub")), inside);
}

#[test]
fn a_workspace_in_a_repository_restores_all_of_its_index_and_says_so() {
    let world = World::new();
    git(world.base(), &["init", "-q", "-b", "main"]);
    std::fs::write(world.base().join(".gitignore"), "home/\n").unwrap();
    std::fs::write(world.base().join("outside.txt"), "one\n").unwrap();
    world.write("a.txt", "one\n");
    commit(world.base(), "first");
    std::fs::write(world.base().join("outside.txt"), "staged\n").unwrap();
    git(world.base(), &["add", "outside.txt"]);
    let before = state(world.base());
    let id = world.capture();
    git(world.base(), &["commit", "-q", "-m", "second"]);
    let plan = world.open().plan_git_restore(&id).unwrap();
    assert_eq!(plan.view().whole_repository.as_deref(), Some(world.base()));
    world.open().restore_git(plan).unwrap();
    assert_eq!(state(world.base()), before);
}

#[test]
fn other_formats_of_a_repository_come_back_as_well() {
    for init in [&["--object-format=sha256"][..], &["--ref-format=reftable"]] {
        let world = World::new();
        begin(&world, &world.ws(), init);
        world.write("a.txt", "staged\n");
        git(&world.ws(), &["add", "-A"]);
        git(&world.ws(), &["rm", "-q", "--cached", "b.txt"]);
        assert_comes_back(&world, |world| {
            git(&world.ws(), &["checkout", "-q", "-b", "topic"]);
            commit_of(world, "agent");
            git(&world.ws(), &["checkout", "-q", "main"]);
            commit_of(world, "more");
        });
    }
    // A split index, and one of version 4.
    for settings in [["core.splitIndex", "true"], ["index.version", "4"]] {
        let world = repository();
        git(&world.ws(), &["config", settings[0], settings[1]]);
        world.write("a.txt", "staged\n");
        git(&world.ws(), &["add", "-A"]);
        assert_comes_back(&world, |world| {
            commit_of(world, "agent");
        });
    }
}

#[test]
fn a_sparse_checkout_stays_sparse() {
    let world = repository();
    world.write("far/x.txt", "x\n").write("far/y.txt", "y\n");
    commit(&world.ws(), "second");
    git(&world.ws(), &["sparse-checkout", "set", "--cone", "dir"]);
    assert!(!world.path("far").exists());
    world.write("a.txt", "staged\n");
    git(&world.ws(), &["add", "a.txt"]);
    assert_comes_back(&world, |world| {
        world.write("dir/c.txt", "agent\n");
        git(&world.ws(), &["commit", "-q", "-a", "-m", "agent"]);
    });
    assert!(!world.path("far").exists());
}

#[test]
fn branches_and_paths_that_are_not_utf_8_come_back() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let world = repository();
    world.write(OsStr::from_bytes(b"n\xff\t\n\"x"), "odd\n");
    git(&world.ws(), &["add", "-A"]);
    let mut branch = git_command(&world.ws(), &["checkout", "-q", "-b"]);
    assert!(branch.arg(OsStr::from_bytes(b"t\xff")).status().unwrap().success());
    assert_comes_back(&world, |world| {
        git(&world.ws(), &["commit", "-q", "-m", "agent"]);
        git(&world.ws(), &["checkout", "-q", "main"]);
    });
}

#[test]
fn a_crash_at_any_point_is_ended_by_calling_it_again_to_either_end() {
    use piton_engine::model::git::GitEnd;
    for end in [GitEnd::After, GitEnd::Before] {
        for nth in 1..=4 {
            let world = repository();
            world.write("a.txt", "staged\n");
            git(&world.ws(), &["add", "a.txt"]);
            let id = world.capture();
            let then = state(&world.ws());
            git(&world.ws(), &["checkout", "-q", "-b", "topic"]);
            world.write("a.txt", "agent\n");
            git(&world.ws(), &["commit", "-q", "-a", "-m", "agent"]);
            git(&world.ws(), &["branch", "-f", "main"]);
            world.write("b.txt", "staged by the agent\n");
            git(&world.ws(), &["add", "b.txt"]);
            let now = state(&world.ws());
            let after = world.capture();
            let plan = world.open().plan_git_restore(&id).unwrap();
            let change = plan.change().clone();
            let cut_off = piton_host::fail::with(nth, || world.open().restore_git(plan).map(|done| done.operation));
            assert!(cut_off.is_none(), "point {nth}");
            let mut workspace = world.open();
            let (target, expected) = if end == GitEnd::After { (&id, then) } else { (&after, now) };
            workspace.rewind_now(target, &RewindOptions::default()).unwrap();
            for _ in 0..2 {
                let verified = workspace.finish_git(&change, end);
                assert!(verified.unwrap_or_else(|error| panic!("{end:?} {nth}: {error}")));
            }
            assert_eq!(state(&world.ws()), expected, "{end:?} {nth}");
        }
    }
}

#[test]
fn a_strict_umask_changes_nothing() {
    // The mask is the process's.
    let mut strict = Command::new("sh");
    strict.args(["-c", "umask 077; exec \"$0\" \"$@\""]);
    piton_testkit::needs_a_process!(strict);
    let world = repository();
    world.write("a.txt", "staged\n");
    git(&world.ws(), &["add", "-A"]);
    git(&world.ws(), &["config", "core.sharedRepository", "0640"]);
    assert_comes_back(&world, |world| {
        commit_of(world, "agent");
    });
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(world.path(".git/index")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
}
