//! A rewind with the repository's state: the files, the branch, HEAD and the index are one act.

use piton_engine::view::KeptGitState;
use piton_engine::{OperationError, RedoOptions, RewindOptions};
use piton_host::fail;
use piton_testkit::{Snapshot, World, git};

/// A repository with something staged, a checkpoint of that, and then commits on another branch.
fn gone_on() -> (World, String) {
    let world = World::new();
    let at = world.ws();
    git(&at, &["init", "-q", "-b", "main"]);
    world.write("a", "one\n").write("b", "one\n");
    git(&at, &["add", "."]);
    git(&at, &["commit", "-qm", "first"]);
    world.write("a", "staged\n").write("b", "not staged\n");
    git(&at, &["add", "a"]);
    let id = world.capture();
    git(&at, &["commit", "-qam", "second"]);
    git(&at, &["checkout", "-qb", "other"]);
    world.write("a", "other\n").write("new", "new\n");
    git(&at, &["add", "."]);
    git(&at, &["commit", "-qm", "third"]);
    world.write("b", "uncommitted\n");
    (world, id)
}

/// All that git says, and the files.
fn state(world: &World) -> (Vec<String>, Snapshot) {
    let at = world.ws();
    let said = [
        &["symbolic-ref", "HEAD"][..],
        &["rev-parse", "HEAD", "main"],
        &["ls-files", "-s"],
        &["status", "--porcelain=v2", "--branch"],
    ];
    (said.iter().map(|words| git(&at, words)).collect(), world.snapshot().without(".git"))
}

fn with_git() -> RewindOptions {
    RewindOptions { git: true, ..RewindOptions::default() }
}

#[test]
fn branch_head_and_index_come_back_with_the_files_and_the_redo_takes_all_back() {
    let (world, id) = gone_on();
    let before = state(&world);
    let plan = world.open().plan_rewind(&id, &with_git()).unwrap();
    assert!(plan.view().git.is_some() && plan.view().head_moved.is_none());
    assert_eq!(state(&world), before, "a plan changes nothing");
    let outcome = world.open().carry_out(plan).unwrap();
    assert!(outcome.verified);
    let at = world.ws();
    assert_eq!(git(&at, &["symbolic-ref", "--short", "HEAD"]).trim(), "main");
    assert_eq!(git(&at, &["log", "--format=%s"]).trim(), "first");
    assert_eq!(git(&at, &["status", "--porcelain"]), "M  a\n M b\n");
    assert_eq!(git(&at, &["show", ":a"]), "staged\n");
    // The branch that HEAD left stays, and what was replaced is kept.
    assert_eq!(git(&at, &["log", "--format=%s", "other"]).lines().count(), 3);
    let kept = git(&at, &["for-each-ref", "refs/piton/"]);
    assert!(kept.lines().count() >= 2, "{kept}");
    git(&at, &["gc", "--prune=now", "-q"]);
    let outcome = world.open().redo_now(&RedoOptions::default()).unwrap();
    assert!(outcome.verified && outcome.git_stays.is_none(), "{outcome:?}");
    assert_eq!(state(&world), before);
    world.assert_sound();
}

#[test]
fn without_the_flag_the_repository_is_untouched_and_in_the_middle_of_a_merge_it_is_refused() {
    let (world, id) = gone_on();
    let before = state(&world).0;
    let outcome = world.open().rewind_now(&id, &RewindOptions::default()).unwrap();
    assert!(outcome.git.is_none() && outcome.head_moved.is_some());
    assert_eq!(state(&world).0[..3], before[..3]);
    world.redo();
    std::fs::write(world.ws().join(".git/MERGE_HEAD"), git(&world.ws(), &["rev-parse", "main"])).unwrap();
    let before = state(&world);
    let error = world.open().rewind_now(&id, &with_git()).unwrap_err();
    assert!(matches!(error, OperationError::Git(_)) && error.to_string().contains("merge"), "{error}");
    assert_eq!(state(&world), before);
}

#[test]
fn a_redo_leaves_the_repository_where_somebody_committed_since_and_says_so() {
    let (world, id) = gone_on();
    world.open().rewind_now(&id, &with_git()).unwrap();
    git(&world.ws(), &["commit", "-qm", "meanwhile"]);
    let head = git(&world.ws(), &["rev-parse", "HEAD"]);
    let outcome = world.open().redo_now(&RedoOptions::default()).unwrap();
    assert!(outcome.git_stays.is_some(), "{outcome:?}");
    assert_eq!(git(&world.ws(), &["rev-parse", "HEAD"]), head);
    assert_eq!(world.snapshot().bytes("new"), Some(&b"new\n"[..]));
}

#[test]
fn a_crash_at_any_step_leaves_files_and_repository_both_old_or_both_new() {
    let (world, id) = gone_on();
    world.open().rewind_now(&id, &with_git()).unwrap();
    let new = (git(&world.ws(), &["ls-files", "-s"]), world.snapshot().without(".git"));
    let (mut olds, mut news) = (0, 0);
    for step in 1.. {
        let (world, id) = gone_on();
        let (old, old_files) = state(&world);
        if fail::with(step, || drop(world.open().rewind_now(&id, &with_git()))).is_some() {
            break;
        }
        drop(world.open());
        let (now, files) = state(&world);
        if files == new.1 {
            assert_eq!(now[2], new.0, "died at step {step}: the files are new, the index is not");
            assert_eq!(git(&world.ws(), &["log", "--format=%s"]).trim(), "first", "died at step {step}");
            news += 1;
        } else {
            assert!(files == old_files, "died at step {step}\n{}", files.differences(&old_files).join("\n"));
            assert_eq!(now, old, "died at step {step}: the files are old, the repository is not");
            olds += 1;
        }
        assert!(world.open().status().unwrap().pending.is_empty(), "died at step {step}");
    }
    assert!(olds > 10 && news > 1, "{olds} old, {news} new");
}

/// What is under `refs/piton`, by the beginning of the operations' ids.
fn kept(world: &World) -> Vec<String> {
    let said = git(&world.ws(), &["for-each-ref", "--format=%(refname)", "refs/piton/"]);
    let mut all: Vec<_> = said.lines().map(|line| line.split('/').nth(2).unwrap().to_owned()).collect();
    all.dedup();
    all
}

#[test]
fn what_was_kept_for_an_operation_goes_when_it_can_no_longer_be_taken_back() {
    let (world, id) = gone_on();
    let first = world.open().rewind_now(&id, &with_git()).unwrap().operation.unwrap().id.to_string();
    assert_eq!(kept(&world), std::slice::from_ref(&first));
    // The redo moves git too, and with that the rewind's references are nobody's; its own stay.
    let second = world.open().redo_now(&RedoOptions::default()).unwrap().operation.unwrap().id.to_string();
    assert_eq!(kept(&world), std::slice::from_ref(&second));
    let third = world.open().rewind_now(&id, &with_git()).unwrap().operation.unwrap().id.to_string();
    let both = || {
        let mut both = vec![second.clone(), third.clone()];
        both.sort();
        both
    };
    assert_eq!(kept(&world), both());
    // Both can be taken back, one after the other.
    assert_eq!(world.open().forget_old_git().unwrap(), []);
    assert_eq!(kept(&world), both());

    // Another workspace's are not touched, and once the repository has moved on these are of no use.
    git(&world.ws(), &["update-ref", "refs/piton/kkkkkkkkkkkkkkkk/head", "HEAD"]);
    git(&world.ws(), &["commit", "-qm", "meanwhile"]);
    let states: Vec<_> = world.open().kept_git().unwrap().iter().map(|one| one.state).collect();
    assert_eq!(states, [KeptGitState::Moved, KeptGitState::Moved, KeptGitState::Unknown]);
    assert_eq!(world.open().forget_old_git().unwrap().len(), 2);
    assert_eq!(kept(&world), ["kkkkkkkkkkkkkkkk"]);
}

/// Somebody's git holds the index when the files are in place already: neither end of the move can be asked for, and the
/// files must not stay without it.
#[test]
fn files_go_back_when_git_is_locked_in_the_last_moment() {
    let world = World::new();
    let at = world.ws();
    git(&at, &["init", "-q", "-b", "main"]);
    world.write("a", "one\n");
    git(&at, &["add", "."]);
    git(&at, &["commit", "-qm", "first"]);
    let id = world.capture();
    world.write("a", "two\n");
    git(&at, &["commit", "-qam", "second"]);
    let (head, before) = (git(&at, &["rev-parse", "HEAD"]), world.snapshot().without(".git"));
    let lock = at.join(".git/index.lock");
    let options = RewindOptions { git: true, ..RewindOptions::default() };
    let held = lock.clone();
    let lock_it = move || std::fs::write(held, "").unwrap();
    let refused = fail::when(1, "apply:sync-swapped", lock_it, || world.open().rewind_now(&id, &options));
    assert!(matches!(refused, Err(OperationError::RolledBack { .. })), "{refused:?}");
    std::fs::remove_file(&lock).unwrap();
    assert!(world.open().recovered().is_empty());
    assert_eq!(world.snapshot().without(".git"), before);
    assert_eq!(git(&at, &["rev-parse", "HEAD"]), head);
    assert!(world.open().rewind_now(&id, &options).unwrap().verified);
    assert_eq!(world.read("a"), "one\n");
}
