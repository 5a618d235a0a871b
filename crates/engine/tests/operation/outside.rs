//! Files outside the workspace that a tool named: captured before the tool, listed in every plan, touched only on request.

use std::path::PathBuf;

use piton_engine::view::{OperationOutcome, OutsideAct};
use piton_engine::{Carry, Choice, OperationError, RedoOptions, RewindOptions, Settle, UndoOptions, Which};
use piton_host::fail;
use piton_host::sys::{Call, refusing};
use piton_testkit::{Agent, World, as_ordinary_user, is_root, snapshot};

const NOBODY: u32 = 65_534;

/// A world with a folder beside the workspace, and a turn that changes files in both.
fn changed() -> World {
    let world = World::new();
    std::fs::create_dir(elsewhere(&world, "")).unwrap();
    for (name, content) in [("config", "one\ntwo\nthree\n"), ("doomed", "doomed\n"), ("bystander", "b\n")] {
        std::fs::write(elsewhere(&world, name), content).unwrap();
    }
    world.write("inside", "inside\n");
    let named: Vec<String> =
        ["config", "doomed", "made"].iter().map(|n| elsewhere(&world, n).display().to_string()).collect();
    let named: Vec<&str> = named.iter().map(String::as_str).chain(["inside"]).collect();
    Agent::new(&world, "s").edits("go", &named, |w| {
        w.write("inside", "changed\n");
        std::fs::write(elsewhere(w, "config"), "one\ntwo\nTHREE\n").unwrap();
        std::fs::write(elsewhere(w, "made"), "made\n").unwrap();
        std::fs::remove_file(elsewhere(w, "doomed")).unwrap();
    });
    world
}

fn elsewhere(world: &World, name: &str) -> PathBuf {
    world.base().join("elsewhere").join(name)
}

fn read(world: &World, name: &str) -> Option<String> {
    std::fs::read_to_string(elsewhere(world, name)).ok()
}

fn turn_one(outside: bool) -> UndoOptions {
    let choice = Choice { what: Some(Which::Places(vec![(1, None)])), ..Choice::default() };
    UndoOptions { choice, outside, ..UndoOptions::default() }
}

fn acts(outcome: &OperationOutcome) -> Vec<(String, OutsideAct)> {
    let name = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    outcome.outside.iter().map(|file| (name(&file.path), file.act)).collect()
}

#[test]
fn they_are_listed_and_left_alone_unless_asked_for() {
    let world = changed();
    let before = snapshot(&elsewhere(&world, ""));
    let plan = world.open().plan_undo(&turn_one(false)).unwrap();
    assert_eq!(plan.view().outside.len(), 3);
    let outcome = world.open().carry_out(plan).unwrap();
    assert!(!outcome.touched_outside && snapshot(&elsewhere(&world, "")) == before);
    assert_eq!(world.snapshot().bytes("inside"), Some(&b"inside\n"[..]));
    // The rest can still be had.
    let outcome = world.open().undo_now(&turn_one(true)).unwrap();
    assert!(outcome.touched_outside && outcome.verified);
    assert_eq!(
        acts(&outcome),
        [("config", OutsideAct::Restore), ("doomed", OutsideAct::Recreate), ("made", OutsideAct::Delete)]
            .map(|(name, act)| (name.to_owned(), act))
    );
    let now = ["config", "doomed", "made", "bystander"].map(|name| read(&world, name));
    assert_eq!(now, [Some("one\ntwo\nthree\n".into()), Some("doomed\n".into()), None, Some("b\n".into())]);
    let redo = RedoOptions { outside: true, ..RedoOptions::default() };
    world.open().redo_now(&redo).unwrap();
    assert!(snapshot(&elsewhere(&world, "")) == before);
    world.assert_sound();
}

/// What `undo` without a word means, and all of a session, with files outside.
fn asked(what: Option<Which>) -> UndoOptions {
    UndoOptions { choice: Choice { what, ..Choice::default() }, outside: true, ..UndoOptions::default() }
}

/// A session of which each turn writes one file elsewhere, and nothing else.
fn works_elsewhere(world: &World, turns: &[(&str, &str)]) {
    std::fs::create_dir(elsewhere(world, "")).unwrap();
    world.write("inside", "inside\n");
    let agent = Agent::new(world, "s");
    for (name, content) in turns {
        let path = elsewhere(world, name);
        agent.edits("go", &[&path.display().to_string()], |_| std::fs::write(&path, content).unwrap());
    }
}

#[test]
fn a_turn_that_changed_only_them_is_the_last_one_where_they_are_asked_for() {
    let world = World::new();
    works_elsewhere(&world, &[("a", "1"), ("a", "2"), ("b", "3")]);
    let refused = world.open().undo_now(&UndoOptions::default()).unwrap_err().to_string();
    assert_eq!(refused, "the session changed nothing that is still there in the workspace");
    for left in [[Some("2"), None], [Some("1"), None], [None, None]] {
        let outcome = world.open().undo_now(&asked(None)).unwrap();
        assert!(outcome.verified && outcome.touched_outside);
        assert_eq!(["a", "b"].map(|name| read(&world, name)), left.map(|content| content.map(str::to_owned)));
    }
    let refused = world.open().undo_now(&asked(None)).unwrap_err().to_string();
    assert_eq!(refused, "the session changed nothing that is still there");
}

#[test]
fn all_of_a_session_is_theirs_too() {
    let world = World::new();
    works_elsewhere(&world, &[("a", "1"), ("b", "2")]);
    world.open().undo_now(&asked(Some(Which::All))).unwrap();
    assert_eq!(["a", "b"].map(|name| read(&world, name)), [None, None]);
}

#[test]
fn what_happens_to_them_in_the_last_moment_is_told() {
    let world = World::new();
    works_elsewhere(&world, &[("a", "1"), ("a", "2")]);
    let path = elsewhere(&world, "a");
    let happen = {
        let path = path.clone();
        move || std::fs::write(path, "other").unwrap()
    };
    // It was put in place, and is looked at next.
    let outcome = fail::when(1, "operate:check", happen, || world.open().undo_now(&asked(None)).unwrap());
    assert!(!outcome.verified, "{outcome:?}");
    assert_eq!(outcome.changed_again[0].path, path.display().to_string());
    assert_eq!(read(&world, "a").as_deref(), Some("other"));
}

#[test]
fn bits_that_they_could_not_be_given_are_told() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    std::fs::create_dir(elsewhere(&world, "")).unwrap();
    let path = elsewhere(&world, "a");
    std::fs::write(&path, "1").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    Agent::new(&world, "s").edits("go", &[&path.display().to_string()], |_| std::fs::remove_file(&path).unwrap());
    let outcome = refusing(&[Call::SetMode], || world.open().undo_now(&asked(None)).unwrap());
    assert!(!outcome.verified && outcome.changed_again.is_empty(), "{outcome:?}");
    assert_eq!(outcome.not_done[0].path.path, path.display().to_string());
    assert_eq!(read(&world, "a").as_deref(), Some("1"));
}

#[test]
fn a_damaged_copy_of_one_keeps_the_others_from_nothing_in_part() {
    let world = World::new();
    std::fs::create_dir(elsewhere(&world, "")).unwrap();
    for (name, content) in [("a", "content of a"), ("b", "content of b")] {
        std::fs::write(elsewhere(&world, name), content).unwrap();
    }
    let named = ["a", "b"].map(|name| elsewhere(&world, name).display().to_string());
    Agent::new(&world, "s").edits("go", &[&named[0], &named[1]], |w| {
        std::fs::write(elsewhere(w, "a"), "other").unwrap();
        std::fs::write(elsewhere(w, "b"), "other").unwrap();
    });
    let pack = world.open().store_folder().join("packs/000001.pack");
    let mut bytes = std::fs::read(&pack).unwrap();
    let at = bytes.windows(12).position(|window| window == b"content of a").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&pack, bytes).unwrap();
    assert!(world.open().undo_now(&asked(None)).is_err());
    assert_eq!(read(&world, "b").as_deref(), Some("other"));
    let settle = Settle { partial: true, ..Settle::default() };
    let outcome = world.open().undo_now(&UndoOptions { settle, ..asked(None) }).unwrap();
    assert!(acts(&outcome).contains(&("a".to_owned(), OutsideAct::Unknown)), "{outcome:?}");
    assert_eq!(["a", "b"].map(|name| read(&world, name).unwrap()), ["other", "content of b"]);
}

#[test]
fn a_rewind_puts_them_back_too_and_its_redo() {
    let world = changed();
    let before = snapshot(&elsewhere(&world, ""));
    world.open().rewind_now("t1", &RewindOptions { outside: true, ..RewindOptions::default() }).unwrap();
    assert_eq!((read(&world, "made"), read(&world, "doomed")), (None, Some("doomed\n".into())));
    // A redo that is not asked to touch them leaves them and says so.
    let outcome = world.open().redo_now(&RedoOptions::default()).unwrap();
    assert!(!outcome.touched_outside && outcome.outside.len() == 3);
    assert_eq!(read(&world, "made"), None);
    world.open().rewind_now("t1", &RewindOptions { outside: true, ..RewindOptions::default() }).unwrap();
    world.open().redo_now(&RedoOptions { outside: true, ..RedoOptions::default() }).unwrap();
    // The second rewind found them as they were already, so there was nothing outside to take back.
    assert_eq!(read(&world, "made"), None);
    let first = world.open().operations().unwrap().operations.last().unwrap().id.to_string();
    let error = world.open().redo_now(&RedoOptions { operation: Some(first), ..RedoOptions::default() }).unwrap_err();
    assert!(matches!(error, OperationError::NotStanding(_)), "{error}");
    drop(before);
}

#[test]
fn what_was_edited_since_is_merged_or_in_conflict_and_a_stale_plan_is_refused() {
    let world = changed();
    std::fs::write(elsewhere(&world, "config"), "ONE\ntwo\nTHREE\n").unwrap();
    let plan = world.open().plan_undo(&turn_one(true)).unwrap();
    assert_eq!(plan.view().outside[0].act, OutsideAct::Merge);
    std::fs::write(elsewhere(&world, "config"), "0\nONE\ntwo\nTHREE\n").unwrap();
    let (here, there) = (world.snapshot(), snapshot(&elsewhere(&world, "")));
    let error = world.open().carry_out(plan).unwrap_err();
    assert!(matches!(error, OperationError::StaleOutside { .. }), "{error}");
    world.open().undo_now(&turn_one(true)).unwrap();
    assert_eq!(read(&world, "config"), Some("0\nONE\ntwo\nthree\n".into()));
    world.open().redo_now(&RedoOptions { outside: true, ..RedoOptions::default() }).unwrap();
    world.assert_is(&here);
    assert!(snapshot(&elsewhere(&world, "")) == there);

    std::fs::write(elsewhere(&world, "config"), "one\ntwo\n3\n").unwrap();
    let there = snapshot(&elsewhere(&world, ""));
    let error = world.open().undo_now(&turn_one(true)).unwrap_err();
    assert!(matches!(error, OperationError::ConflictOutside(_)), "{error}");
    world.assert_is(&here);
    assert!(snapshot(&elsewhere(&world, "")) == there);
    let partial = UndoOptions { settle: Settle { partial: true, ..Settle::default() }, ..turn_one(true) };
    world.open().undo_now(&partial).unwrap();
    assert_eq!((read(&world, "config"), read(&world, "made")), (Some("one\ntwo\n3\n".into()), None));
}

#[test]
fn a_link_in_the_way_is_never_followed() {
    let world = changed();
    let victim = world.base().join("victim");
    std::fs::create_dir(&victim).unwrap();
    std::fs::write(victim.join("config"), "one\ntwo\nTHREE\n").unwrap();
    std::fs::write(victim.join("made"), "made\n").unwrap();
    std::fs::rename(elsewhere(&world, ""), world.base().join("moved")).unwrap();
    std::os::unix::fs::symlink(&victim, world.base().join("elsewhere")).unwrap();
    let (before, here) = (snapshot(&victim), world.snapshot());
    assert!(world.open().undo_now(&turn_one(true)).is_err());
    assert!(snapshot(&victim) == before, "nothing was written through the link");
    world.assert_is(&here);
}

#[test]
fn a_crash_at_any_step_leaves_both_old_or_both_new() {
    let world = changed();
    let (old, old_there) = (world.snapshot(), snapshot(&elsewhere(&world, "")));
    world.open().undo_now(&turn_one(true)).unwrap();
    let (new, new_there) = (world.snapshot(), snapshot(&elsewhere(&world, "")));
    let (mut olds, mut news) = (0, 0);
    for step in 1.. {
        let world = changed();
        if fail::with(step, || drop(world.open().undo_now(&turn_one(true)))).is_some() {
            break;
        }
        drop(world.open());
        let (here, there) = (world.snapshot(), snapshot(&elsewhere(&world, "")));
        if here == new && there == new_there {
            news += 1;
        } else {
            assert!(here == old, "died at step {step}: inside\n{}", here.differences(&old).join("\n"));
            assert!(there == old_there, "died at step {step}: outside\n{}", there.differences(&old_there).join("\n"));
            olds += 1;
        }
        assert!(world.open().status().unwrap().pending.is_empty());
        world.assert_sound();
        if here == old {
            world.open().undo_now(&turn_one(true)).unwrap();
            assert!(snapshot(&elsewhere(&world, "")) == new_there);
        }
    }
    assert!(olds > 10 && news > 1, "{olds} old, {news} new");
}

/// What happens out there after a crash keeps nothing in the workspace from its end.
#[test]
fn what_cannot_be_looked_at_after_a_crash_wedges_nothing() {
    for kind in ["pipe", "folder gone", "a file above"] {
        for step in 1.. {
            let world = changed();
            if fail::with(step, || drop(world.open().undo_now(&turn_one(true)))).is_some() {
                break;
            }
            let (folder, path) = (elsewhere(&world, ""), elsewhere(&world, "config"));
            match kind {
                "pipe" => {
                    std::fs::remove_file(&path).unwrap();
                    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
                }
                "folder gone" => std::fs::rename(&folder, world.base().join("moved")).unwrap(),
                _ => {
                    std::fs::rename(&folder, world.base().join("moved")).unwrap();
                    std::fs::write(world.base().join("elsewhere"), "a file").unwrap();
                }
            }
            assert!(world.open().status().unwrap().pending.is_empty(), "{kind}, step {step}");
            let inside = std::fs::read_to_string(world.path("inside")).unwrap();
            assert!(inside == "inside\n" || inside == "changed\n", "{kind}, step {step}: {inside}");
            world.captured();
            world.assert_sound();
        }
    }
}

#[test]
fn an_edit_after_the_crash_is_not_lost() {
    for step in 1.. {
        let world = changed();
        if fail::with(step, || drop(world.open().undo_now(&turn_one(true)))).is_some() {
            break;
        }
        std::fs::write(elsewhere(&world, "config"), "edited after the crash\n").unwrap();
        std::fs::write(elsewhere(&world, "added"), "added\n").unwrap();
        drop(world.open());
        assert_eq!(read(&world, "config"), Some("edited after the crash\n".into()), "step {step}");
        assert_eq!(read(&world, "added"), Some("added\n".into()), "step {step}");
        assert!(world.open().status().unwrap().pending.is_empty(), "step {step}");
    }
}

#[test]
fn a_file_that_a_symlink_of_the_workspace_leads_to_is_one_of_them() {
    let world = World::new();
    std::fs::create_dir(elsewhere(&world, "")).unwrap();
    std::fs::write(elsewhere(&world, "config"), "before\n").unwrap();
    world.link("config", elsewhere(&world, "config"));
    Agent::new(&world, "s").edits("go", &["config"], |w| std::fs::write(w.path("config"), "after\n").unwrap());
    assert_eq!(read(&world, "config").as_deref(), Some("after\n"));
    let outcome = world.open().undo_now(&turn_one(true)).unwrap();
    assert_eq!(acts(&outcome), [("config".to_owned(), OutsideAct::Restore)]);
    assert_eq!(read(&world, "config").as_deref(), Some("before\n"));
    assert!(std::fs::symlink_metadata(world.path("config")).unwrap().is_symlink());
}

#[test]
fn what_a_tool_makes_through_a_symlink_to_no_folder_is_the_tools() {
    let world = World::new();
    world.write("inside", "inside\n");
    world.link("here", world.path("missing")).link("there", elsewhere(&world, "missing"));
    Agent::new(&world, "s").edits("go", &["here/f", "there/f"], |w| {
        for folder in [w.path("missing"), elsewhere(w, "missing")] {
            std::fs::create_dir_all(&folder).unwrap();
        }
        std::fs::write(w.path("here/f"), "made\n").unwrap();
        std::fs::write(w.path("there/f"), "made\n").unwrap();
    });
    let outcome = world.open().undo_now(&turn_one(true)).unwrap();
    assert_eq!(acts(&outcome), [("f".to_owned(), OutsideAct::Delete)]);
    assert!(!world.path("missing/f").exists() && !elsewhere(&world, "missing/f").exists());
}

/// A turn of a session that writes one file elsewhere.
fn writes(agent: &Agent<'_>, name: &str, content: &str) {
    let path = elsewhere(agent.world, name);
    agent.edits("go", &[&path.display().to_string()], |_| std::fs::write(&path, content).unwrap());
}

fn appends(world: &World, name: &str, line: &str) {
    let content = read(world, name).unwrap_or_default() + line;
    std::fs::write(elsewhere(world, name), content).unwrap();
}

fn rewind_with(carry: Carry) -> RewindOptions {
    RewindOptions { outside: true, carry, ..RewindOptions::default() }
}

fn redo_outside() -> RedoOptions {
    RedoOptions { outside: true, ..RedoOptions::default() }
}

#[test]
fn a_rewind_of_one_session_leaves_what_another_one_wrote_and_names_it() {
    let world = World::new();
    std::fs::create_dir(elsewhere(&world, "")).unwrap();
    std::fs::write(elsewhere(&world, "both"), "1\n2\n3\n4\n5\n").unwrap();
    let (mine, other) = (Agent::new(&world, "a"), Agent::new(&world, "b"));
    writes(&mine, "of-a", "a");
    writes(&mine, "both", "A\n2\n3\n4\n5\n");
    writes(&other, "of-b", "b");
    writes(&other, "both", "A\n2\n3\n4\nB\n");
    let t1 = format!("{}:t1", mine.id());
    let plan = world.open().plan_rewind(&t1, &rewind_with(Carry::Others)).unwrap();
    let named = |files: &[piton_engine::view::ChangedFile]| {
        files.iter().map(|file| file.path.path.rsplit('/').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(named(&plan.view().carried), ["both", "of-b"], "{:?}", plan.view());
    world.open().carry_out(plan).unwrap();
    let now = || ["of-a", "of-b", "both"].map(|name| read(&world, name));
    assert_eq!(now(), [None, Some("b".into()), Some("1\n2\n3\n4\nB\n".into())]);
    world.open().redo_now(&redo_outside()).unwrap();

    // Without a word on whose, everything goes, and what is not this session's is named.
    let plan = world.open().plan_rewind(&t1, &RewindOptions::default()).unwrap();
    assert!(plan.view().others.is_empty(), "nothing outside is touched: {:?}", plan.view());
    let plan = world.open().plan_rewind(&t1, &rewind_with(Carry::Nothing)).unwrap();
    assert_eq!(named(&plan.view().others), ["both", "of-b"]);
    let plan_mine = world.open().plan_rewind(&t1, &rewind_with(Carry::Mine)).unwrap();
    assert_eq!(named(&plan_mine.view().others), ["both", "of-b"], "another session is not the user");
    world.open().carry_out(plan).unwrap();
    assert_eq!(now(), [None, None, Some("1\n2\n3\n4\n5\n".into())]);
    // What was taken back is not brought back by going there again.
    let outcome = world.open().rewind_now(&t1, &rewind_with(Carry::Others)).unwrap();
    assert!(outcome.operation.is_none(), "{outcome:?}");
    world.assert_sound();
}

#[test]
fn what_the_user_wrote_between_two_turns_survives_every_rewind() {
    for options in [rewind_with(Carry::Nothing), rewind_with(Carry::Mine), rewind_with(Carry::Others)] {
        let world = World::new();
        std::fs::create_dir(elsewhere(&world, "")).unwrap();
        std::fs::write(elsewhere(&world, "f"), "1\n2\n3\n4\n5\n6\n").unwrap();
        let agent = Agent::new(&world, "s");
        writes(&agent, "f", "A\n2\n3\n4\n5\n6\n");
        appends(&world, "f", "mine\n");
        writes(&agent, "f", "A\n2\nB\n4\n5\n6\nmine\n");
        // Again after it was taken back: what an operation put there is nobody's own work.
        for _ in 0..2 {
            let outcome = world.open().rewind_now("t1", &options).unwrap();
            assert_eq!(acts(&outcome), [("f".to_owned(), OutsideAct::Merge)]);
            assert_eq!(read(&world, "f").unwrap(), "1\n2\n3\n4\n5\n6\nmine\n");
            world.open().redo_now(&redo_outside()).unwrap();
            assert_eq!(read(&world, "f").unwrap(), "A\n2\nB\n4\n5\n6\nmine\n");
        }
        world.open().rewind_now("t1", &options).unwrap();
        // Nothing of the agent's is left in it, whatever the user does to it now.
        std::fs::write(elsewhere(&world, "f"), "my own\n2\n3\n4\n5\n6\nmine\n").unwrap();
        let outcome = world.open().rewind_now("t1", &options).unwrap();
        assert!(outcome.operation.is_none() && outcome.outside.is_empty(), "{outcome:?}");
        // And what the agent does next goes alone.
        writes(&agent, "f", "my own\n2\n3\nC\n5\n6\nmine\n");
        world.open().rewind_now("t1", &options).unwrap();
        assert_eq!(read(&world, "f").unwrap(), "my own\n2\n3\n4\n5\n6\nmine\n");
        world.assert_sound();
    }
}

#[test]
fn a_file_that_the_user_made_anew_between_two_turns_is_a_conflict_and_stays() {
    let world = World::new();
    works_elsewhere(&world, &[("notes", "the agent's draft\n")]);
    let agent = Agent::new(&world, "s");
    std::fs::remove_file(elsewhere(&world, "notes")).unwrap();
    let mine = "a day's work\n".repeat(3);
    std::fs::write(elsewhere(&world, "notes"), &mine).unwrap();
    writes(&agent, "notes", &format!("{mine}one line by the agent\n"));
    for options in [rewind_with(Carry::Nothing), rewind_with(Carry::Mine), rewind_with(Carry::Others)] {
        let error = world.open().rewind_now("t1", &options).unwrap_err();
        assert!(matches!(error, OperationError::ConflictOutside(_)), "{error}");
        let settle = Settle { partial: true, ..Settle::default() };
        let outcome = world.open().rewind_now("t1", &RewindOptions { settle, ..options }).unwrap();
        assert_eq!(acts(&outcome), [("notes".to_owned(), OutsideAct::Conflict)]);
        assert_eq!(read(&world, "notes").unwrap(), format!("{mine}one line by the agent\n"));
    }
    // Back to between the two there is nothing that does not go together.
    world.open().rewind_now("t2", &rewind_with(Carry::Mine)).unwrap();
    assert_eq!(read(&world, "notes").unwrap(), mine);
}

#[test]
fn a_rewind_takes_back_an_undo_of_what_stood_at_its_target() {
    let world = World::new();
    works_elsewhere(&world, &[("f", "1\n")]);
    let agent = Agent::new(&world, "s");
    writes(&agent, "f", "1\n2\n");
    world.open().undo_now(&asked(Some(Which::All))).unwrap();
    assert_eq!(read(&world, "f"), None);
    world.open().rewind_now("t2", &rewind_with(Carry::Nothing)).unwrap();
    assert_eq!(read(&world, "f").as_deref(), Some("1\n"));
}

#[test]
fn what_two_sessions_wrote_at_the_same_time_is_not_told_apart() {
    let world = World::new();
    std::fs::create_dir(elsewhere(&world, "")).unwrap();
    let (mine, other) = (Agent::new(&world, "a"), Agent::new(&world, "b"));
    let path = elsewhere(&world, "f");
    let named = path.display().to_string();
    mine.prompt("go");
    other.prompt("go");
    mine.before("x", "Edit", &[&named]);
    other.before("y", "Edit", &[&named]);
    std::fs::write(&path, "of both\n").unwrap();
    other.after("y");
    mine.after("x");
    mine.end_turn();
    other.end_turn();
    let t1 = format!("{}:t1", mine.id());
    let outcome = world.open().rewind_now(&t1, &rewind_with(Carry::Others)).unwrap();
    assert_eq!(acts(&outcome), [("f".to_owned(), OutsideAct::Unknown)]);
    assert_eq!(read(&world, "f").as_deref(), Some("of both\n"));
    world.open().rewind_now(&t1, &RewindOptions { unsure: true, ..rewind_with(Carry::Others) }).unwrap();
    assert_eq!(read(&world, "f"), None);
}

#[test]
fn what_the_system_refuses_does_not_keep_the_rest_from_being_done_in_part() {
    use std::os::unix::fs::PermissionsExt;
    let base = tempfile::tempdir().unwrap();
    let world = World::at(base.path(), |_| {});
    if is_root() {
        for path in [base.path().to_owned(), world.ws()] {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
    as_ordinary_user(|| {
        let closed = elsewhere(&world, "");
        std::fs::create_dir(&closed).unwrap();
        let open = world.base().join("open");
        std::fs::write(elsewhere(&world, "f"), "before\n").unwrap();
        world.write("inside", "before\n");
        let named = [elsewhere(&world, "f"), open.clone()].map(|path| path.display().to_string());
        Agent::new(&world, "s").edits("go", &["inside", &named[0], &named[1]], |w| {
            w.write("inside", "after\n");
            std::fs::write(elsewhere(w, "f"), "after\n").unwrap();
            std::fs::write(&open, "after\n").unwrap();
        });
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o555)).unwrap();
        let error = world.open().rewind_now("t1", &rewind_with(Carry::Nothing)).unwrap_err();
        assert!(matches!(error, OperationError::RolledBack { .. }), "{error}");
        let settle = Settle { partial: true, ..Settle::default() };
        let outcome = world.open().rewind_now("t1", &RewindOptions { settle, ..rewind_with(Carry::Nothing) }).unwrap();
        assert!(acts(&outcome).contains(&("f".to_owned(), OutsideAct::Unknown)), "{outcome:?}");
        assert_eq!(world.snapshot().bytes("inside"), Some(&b"before\n"[..]));
        assert_eq!((read(&world, "f").as_deref(), open.exists()), (Some("after\n"), false));
        assert!(outcome.leftovers.is_empty());
        // When nothing is in its way any more, the rest of it can be had.
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o755)).unwrap();
        world.open().rewind_now("t1", &rewind_with(Carry::Nothing)).unwrap();
        assert_eq!(read(&world, "f").as_deref(), Some("before\n"));
        world.assert_sound();
    });
}

/// A file elsewhere after a rewind and new work: going further back passes only what is still in effect.
#[test]
fn files_elsewhere_go_back_over_a_rewind_in_between() {
    let world = World::new();
    let elsewhere = world.base().join("elsewhere");
    std::fs::write(&elsewhere, "A\n").unwrap();
    let agent = Agent::new(&world, "s1");
    let turn = |prompt: &str, text: &str| {
        agent.edits(prompt, &[elsewhere.to_str().unwrap()], |_| std::fs::write(&elsewhere, text).unwrap());
    };
    let options = RewindOptions { outside: true, ..RewindOptions::default() };
    turn("one", "B\n");
    turn("two", "C\n");
    world.open().rewind_now("t2", &options).unwrap();
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "B\n");
    turn("three", "D\n");
    world.open().rewind_now("t1", &options).unwrap();
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "A\n");
}
