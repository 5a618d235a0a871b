//! The process dies at every step of every verb; the next one finds the old or the new tree and ends what was begun.
//!
//! These die by unwinding, in one process and fast; `crates/cli/tests/faults.rs` kills real processes the same way.

use piton_engine::view::OperationStatus;
use piton_engine::{CaptureOptions, RewindOptions};
use piton_host::fail;
use piton_testkit::{Snapshot, World, snapshot};

/// A project, a checkpoint of it, and then everything that can happen to it.
fn after_the_agent() -> (World, String) {
    let world = World::new();
    world.write("same.txt", "same").write("edited.txt", "before").write("deleted.txt", "deleted");
    world
        .write("dir/x", "x")
        .write("dir/sub/y", "y")
        .write("thing", "a file")
        .write("mode.sh", "#!")
        .mode("mode.sh", 0o755);
    world.write("closed/f", "before").mode("closed", 0o555).link("link", "same.txt").folder("empty");
    let id = world.capture();
    world.write("edited.txt", "after").remove("deleted.txt").remove("dir").mode("mode.sh", 0o644);
    world.write("added/p", "p").write("added/deep/q", "q").write("new.txt", "new");
    world.remove("thing").write("thing/inside", "a folder").remove("link").link("link", "edited.txt").remove("empty");
    world.mode("closed", 0o755).write("closed/f", "after").mode("closed", 0o555);
    (world, id)
}

/// Runs `act` once for each of its steps in a fresh world, dying there; then `check`s what the next command finds.
fn at_every_step(
    make: impl Fn() -> (World, String),
    act: impl Fn(&World, &str),
    mut check: impl FnMut(&World, &str, u64, &Snapshot),
) -> u64 {
    for step in 1.. {
        let (world, id) = make();
        let old = world.snapshot();
        if fail::with(step, || act(&world, &id)).is_some() {
            return step - 1;
        }
        check(&world, &id, step, &old);
    }
    unreachable!()
}

#[track_caller]
fn assert_old_or_new(world: &World, step: u64, old: &Snapshot, new: &Snapshot) {
    let now = world.snapshot();
    assert!(
        now == *old || now == *new,
        "died at step {step}: neither. is | old\n{}\nis | new\n{}",
        now.differences(old).join("\n"),
        now.differences(new).join("\n")
    );
}

fn assert_nothing_pending(world: &World) {
    let status = world.open().status().unwrap();
    assert!(status.pending.is_empty());
    assert!(status.pending.iter().all(|o| o.state != OperationStatus::Pending));
}

#[test]
fn a_crash_at_any_step_of_a_rewind_leaves_the_old_or_the_new_tree_never_a_mix() {
    let (world, id) = after_the_agent();
    world.rewind(&id);
    let new = world.snapshot();
    let (mut olds, mut news) = (0, 0);
    let steps = at_every_step(
        after_the_agent,
        |world, id| drop(world.rewind(id)),
        |world, id, step, old| {
            drop(world.open());
            assert_old_or_new(world, step, old, &new);
            if world.snapshot() == new {
                news += 1
            } else {
                olds += 1
            }
            assert_nothing_pending(world);
            world.assert_sound();
            // And the way is free again.
            world.rewind(id);
            world.assert_is(&new);
        },
    );
    assert!(steps > 50, "only {steps} steps: are the failpoints there?");
    assert!(olds > 10 && news > 1, "{olds} old, {news} new");
}

/// Steps are swapped on several threads, but not where a test counts them. So some are swapped here that come later.
#[test]
fn whichever_steps_were_swapped_when_it_died_the_old_or_the_new_tree_comes_back() {
    const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
    let make = || {
        let world = World::new();
        for name in NAMES {
            world.write(name, "before");
        }
        let id = world.capture();
        for name in NAMES {
            world.write(name, "after");
        }
        (world, id)
    };
    let is = |world: &World, name: &str, content: &str| std::fs::read(world.path(name)).unwrap() == content.as_bytes();
    let (mut olds, mut news) = (0, 0);
    for later in [&[5][..], &[3, 4], &[1, 2, 3, 4, 5]] {
        at_every_step(
            make,
            |world, id| drop(world.rewind(id)),
            |world, _, step, old| {
                let all = std::fs::read_dir(world.ws()).unwrap().map(|found| found.unwrap().file_name());
                let staged: Vec<_> =
                    all.filter(|name| piton_host::staged_by(name.as_encoded_bytes()).is_some()).collect();
                let beside = |number: usize| {
                    let name = staged.iter().find(|s| s.to_string_lossy().ends_with(&format!("-{number}")));
                    name.map(|name| world.path(name)).filter(|path| std::fs::read(path).unwrap() == b"before")
                };
                if staged.len() < NAMES.len() {
                    return;
                }
                let now: Vec<_> = later.iter().filter_map(|number| Some((NAMES[*number], beside(*number)?))).collect();
                for (name, beside) in &now {
                    std::fs::rename(world.path(name), world.path("between")).unwrap();
                    std::fs::rename(beside, world.path(name)).unwrap();
                    std::fs::rename(world.path("between"), beside).unwrap();
                }
                if now.is_empty() {
                    return;
                }
                let are_all = NAMES.iter().all(|name| is(world, name, "before"));
                drop(world.open());
                assert_nothing_pending(world);
                world.assert_sound();
                let content = if are_all { "before" } else { "after" };
                assert!(NAMES.iter().all(|name| is(world, name, content)), "died at step {step}");
                assert!(are_all || world.snapshot() == *old);
                *(if are_all { &mut news } else { &mut olds }) += 1;
            },
        );
    }
    assert!(olds > 10 && news > 0, "{olds} old, {news} new");
}

#[test]
fn a_crash_at_any_step_of_a_redo_leaves_the_old_or_the_new_tree() {
    let rewound = || {
        let (world, id) = after_the_agent();
        world.rewind(&id);
        (world, id)
    };
    let (world, _) = rewound();
    world.redo();
    let new = world.snapshot();
    let steps = at_every_step(
        rewound,
        |world, _| drop(world.redo()),
        |world, _, step, old| {
            drop(world.open());
            assert_old_or_new(world, step, old, &new);
            assert_nothing_pending(world);
            world.assert_sound();
        },
    );
    assert!(steps > 50);
}

#[test]
fn a_crash_at_any_step_of_a_capture_costs_that_capture_and_no_more() {
    let steps = at_every_step(
        after_the_agent,
        |world, _| drop(world.capture()),
        |world, id, step, old| {
            world.assert_is(old);
            world.assert_sound();
            let again = world.capture();
            let log = world.open().log(Default::default()).unwrap();
            assert!(log.checkpoints.iter().any(|c| c.id.as_str() == id) && log.checkpoints.len() <= 3, "step {step}");
            world.write("edited.txt", "still later");
            world.rewind(&again);
            world.assert_is(old);
        },
    );
    assert!(steps >= 5, "{steps}");
}

#[test]
fn a_crash_in_the_middle_of_a_recovery_is_recovered_from() {
    let (world, id) = after_the_agent();
    world.rewind(&id);
    let new = world.snapshot();
    let total = at_every_step(after_the_agent, |world, id| drop(world.rewind(id)), |_, _, _, _| {});
    // Die in the rewind at a few places along the swap, and then at each step of what follows.
    for first in [total / 3, total / 2, total * 2 / 3, total - 5] {
        at_every_step(
            || {
                let (world, id) = after_the_agent();
                assert!(fail::with(first, || world.rewind(&id)).is_none());
                (world, id)
            },
            |world, _| drop(world.open()),
            |world, _, step, _| {
                drop(world.open());
                let (untouched, _) = after_the_agent();
                assert_old_or_new(world, step, &untouched.snapshot(), &new);
                assert_nothing_pending(world);
                world.assert_sound();
            },
        );
    }
}

#[test]
fn what_anyone_edits_adds_and_deletes_after_a_crash_is_kept() {
    at_every_step(
        after_the_agent,
        |world, id| drop(world.rewind(id)),
        |world, id, step, _| {
            // In the plan: a file that is replaced, folders that come and go, a path that changes its kind.
            let mut edits: Vec<&str> = vec!["edited.txt", "same.txt", "outside/new"];
            world.write("edited.txt", "edit of edited.txt").write("same.txt", "edit of same.txt");
            world.write("outside/new", "edit of outside/new");
            for (folder, file) in
                [("added", "added/p"), ("dir", "dir/x"), ("added", "added/extra"), ("dir", "dir/extra")]
            {
                if world.path(folder).is_dir() {
                    world.write(file, format!("edit of {file}"));
                    edits.push(file);
                }
            }
            let thing = if world.path("thing").is_dir() { "thing/inside" } else { "thing" };
            world.write(thing, format!("edit of {thing}"));
            edits.push(thing);
            if world.path("new.txt").exists() {
                world.remove("new.txt");
            }
            let before = world.snapshot();
            drop(world.open());
            let now = world.snapshot();
            for path in edits {
                assert_eq!(
                    now.bytes(path).map(String::from_utf8_lossy),
                    Some(format!("edit of {path}").into()),
                    "died at step {step}, {path}; before the recovery\n{before:?}\nnow\n{now:?}"
                );
            }
            assert_nothing_pending(world);
            world.assert_sound();
            // Nothing of the edits is lost by going back either: the operation captures them first.
            let edited = world.snapshot();
            let outcome = world.rewind(id);
            world.rewind(outcome.operation.unwrap().before.as_str());
            world.assert_is(&edited);
        },
    );
}

#[test]
fn recovery_names_what_it_left_alone() {
    let (world, id) = after_the_agent();
    let total = at_every_step(after_the_agent, |world, id| drop(world.rewind(id)), |_, _, _, _| {});
    assert!(fail::with(total / 2, || world.rewind(&id)).is_none());
    world.write("edited.txt", "mine");
    let workspace = world.open();
    let [recovered] = workspace.recovered() else { panic!("{:?}", workspace.recovered()) };
    assert!(recovered.left_alone.iter().any(|p| p.path == "edited.txt"), "{recovered:?}");
}

/// Whether nothing of an operation's own stands in the workspace.
fn is_bare(world: &World) -> bool {
    let is_own = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().file_name().as_encoded_bytes().starts_with(b".piton-")
    };
    ["", "dir", "closed", "added"]
        .iter()
        .filter_map(|folder| std::fs::read_dir(world.path(folder)).ok())
        .all(|entries| !entries.into_iter().any(is_own))
}

/// A file that a rewind deletes and a build tool makes again used to take back a whole rewind that was in place already.
#[test]
fn a_file_that_is_made_again_after_a_crash_decides_nothing_about_the_rest() {
    let (world, id) = after_the_agent();
    world.rewind(&id);
    let new = world.snapshot();
    let mut in_place = 0;
    at_every_step(
        after_the_agent,
        |world, id| drop(world.rewind(id)),
        |world, _, step, old| {
            let is_in_place = world.snapshot() == new && is_bare(world);
            world.write("new.txt", "made again");
            let workspace = world.open();
            let finished = workspace.recovered().first().is_some_and(|recovered| recovered.finished);
            let is_pending_over = workspace.recovered().is_empty();
            drop(workspace);
            let now = world.snapshot();
            assert_eq!(now.bytes("new.txt"), Some(&b"made again"[..]), "died at step {step}");
            let is_but_for_it = |end: &Snapshot| now.differences(end).iter().all(|line| line.contains("new.txt"));
            if is_in_place {
                assert!(is_but_for_it(&new), "died at step {step}: {:?}", now.differences(&new));
                in_place += 1;
            }
            assert!(is_but_for_it(old) || is_but_for_it(&new), "died at step {step}: {:?}", now.differences(old));
            assert!(is_pending_over || finished == is_but_for_it(&new), "died at step {step}");
            assert_nothing_pending(world);
        },
    );
    assert!(in_place > 0, "no step at which only the end was not recorded");
}

/// What recovery put back used to count as the user's, and an edit in a folder that it found as piton's own. A recovery that
/// died in the middle used to leave its own files behind for good.
#[test]
fn after_a_recovery_that_was_cut_off_too_everybody_has_their_own_and_nothing_of_pitons_is_left() {
    let make = || {
        let world = World::new();
        world.write("d/x", "x").write("d/y", "y").write("f1", "1").write("f2", "1");
        let id = world.capture();
        world.remove("d").write("f1", "2").write("f2", "2").write("n/x", "n");
        world.capture();
        (world, id)
    };
    let swapped = |world: &World| world.snapshot().bytes("d/x").is_some() && !is_bare(world);
    let last = {
        let mut last = 0;
        at_every_step(
            make,
            |world, id| drop(world.rewind(id)),
            |world, _, step, _| {
                if swapped(world) {
                    last = step;
                }
            },
        );
        last
    };
    // Somewhere before the last step at which the folder is back and its end is not noted.
    for first in [last / 2, last * 3 / 4, last - 4] {
        for second in 1.. {
            let (world, id) = make();
            assert!(fail::with(first, || world.rewind(&id)).is_none());
            if !swapped(&world) {
                break;
            }
            world.write("d/x", "mine");
            let is_whole = fail::with(second, || drop(world.open())).is_some();
            drop(world.open());
            assert!(is_bare(&world), "died at step {first}, then at {second}");
            assert_eq!(world.snapshot().bytes("d/x"), Some(&b"mine"[..]), "died at step {first}, then at {second}");
            assert_nothing_pending(&world);
            let workspace = world.open();
            let log = workspace.log(Default::default()).unwrap();
            let yours: Vec<String> = log
                .checkpoints
                .iter()
                .flat_map(|checkpoint| workspace.show(checkpoint.id.as_str()).unwrap().files)
                .filter(|file| {
                    file.owner == Some(piton_model::ownership::Owner::You) && file.change.path.path.starts_with('f')
                })
                .map(|file| file.change.path.path)
                .collect();
            // Once by the captures above.
            assert!(yours.len() <= 2, "died at step {first}, then at {second}: {yours:?}");
            if is_whole {
                break;
            }
        }
    }
}

/// An undo that died before it touched anything used to be called done when the user edited its file, and the agent's change
/// could not be undone any more.
#[test]
fn an_operation_that_touched_nothing_is_not_called_done_because_its_file_was_edited() {
    let make = || {
        let world = World::new();
        world.write("f", "before");
        let id = world.capture();
        world.write("f", "after");
        (world, id)
    };
    let mut untouched = 0;
    at_every_step(
        make,
        |world, id| drop(world.rewind(id)),
        |world, _, step, old| {
            if world.snapshot() != *old || !is_bare(world) {
                return;
            }
            world.write("f", "mine");
            let workspace = world.open();
            untouched += workspace.recovered().len();
            assert!(workspace.recovered().iter().all(|recovered| !recovered.finished), "died at step {step}");
            drop(workspace);
            assert_eq!(world.snapshot().bytes("f"), Some(&b"mine"[..]));
        },
    );
    assert!(untouched > 0);
}

#[test]
fn a_pending_operation_of_another_folder_waits_and_touches_nothing() {
    let (world, id) = after_the_agent();
    let total = at_every_step(after_the_agent, |world, id| drop(world.rewind(id)), |_, _, _, _| {});
    assert!(fail::with(total / 2, || world.rewind(&id)).is_none());
    // Not beside it, where the store would follow it.
    let far = world.base().join("far");
    std::fs::create_dir(&far).unwrap();
    std::fs::rename(world.ws(), far.join("aside")).unwrap();
    std::fs::create_dir(world.ws()).unwrap();
    world.write("edited.txt", "another folder's");
    let other = world.snapshot();
    let workspace = world.open();
    assert_eq!(workspace.status().unwrap().pending.len(), 1);
    drop(workspace);
    world.assert_is(&other);
    // The folder comes back, and so does its tree.
    std::fs::rename(world.ws(), world.base().join("other")).unwrap();
    std::fs::rename(far.join("aside"), world.ws()).unwrap();
    assert_eq!(world.open().recovered().len(), 1);
    assert_nothing_pending(&world);
}

#[test]
fn a_pending_operation_of_a_renamed_folder_waits_for_whoever_opens_that_folder() {
    let (world, id) = after_the_agent();
    let total = at_every_step(after_the_agent, |world, id| drop(world.rewind(id)), |_, _, _, _| {});
    assert!(fail::with(total / 2, || world.rewind(&id)).is_none());
    let aside = world.base().join("aside");
    std::fs::rename(world.ws(), &aside).unwrap();
    std::fs::create_dir(world.ws()).unwrap();
    world.write("edited.txt", "another folder's");
    let (cut_off, other) = (snapshot(&aside), world.snapshot());
    // The newcomer gets a store of its own, and the old one's follows it without touching it.
    world.capture();
    assert!(world.open().recovered().is_empty());
    assert!(snapshot(&aside) == cut_off, "nobody asked for that folder");
    assert_eq!(world.engine.workspaces(), [aside.clone(), world.ws()]);
    assert_eq!(world.engine.open(&aside).unwrap().recovered().len(), 1);
    world.assert_is(&other);
}

#[test]
fn a_capture_after_a_crash_reads_every_file_again_rather_than_trust_a_torn_cache() {
    let world = World::new();
    world.write("f", "1");
    world.capture();
    for step in 1.. {
        world.write("f", format!("content of step {step}"));
        let done = fail::with(step, || world.open().capture(&CaptureOptions::default()).unwrap());
        let id = world.capture();
        world.write("f", "x");
        world.open().rewind_now(&id, &RewindOptions::default()).unwrap();
        assert_eq!(world.snapshot().bytes("f"), Some(format!("content of step {step}").as_bytes()));
        if done.is_some() {
            break;
        }
    }
}

/// A pipe cannot be synced, and there is nothing to sync in it.
#[test]
fn whatever_took_a_files_place_since_the_crash_does_not_keep_it_from_being_ended() {
    for kind in ["pipe", "folder", "link", "nothing"] {
        let make = || {
            let world = World::new();
            for path in ["f1", "f2", "f3"] {
                world.write(path, "old");
            }
            let id = world.capture();
            for path in ["f1", "f2", "f3"] {
                world.write(path, "new");
            }
            (world, id)
        };
        let steps = at_every_step(
            make,
            |world, id| drop(world.rewind(id)),
            |world, _, step, _| {
                world.remove("f2");
                match kind {
                    "pipe" => {
                        let made = std::process::Command::new("mkfifo").arg(world.path("f2")).status();
                        assert!(made.unwrap().success());
                    }
                    "folder" => _ = world.write("f2/inside", "somebody's"),
                    "link" => _ = world.link("f2", "f1"),
                    _ => {}
                }
                assert_nothing_pending(world);
                let now = ["f1", "f3"].map(|path| std::fs::read_to_string(world.path(path)).unwrap());
                assert!(now == ["old", "old"] || now == ["new", "new"], "{kind}, step {step}: {now:?}");
                world.captured();
                let names = std::fs::read_dir(world.ws()).unwrap().map(|entry| entry.unwrap().file_name());
                let names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
                assert!(names.iter().all(|name| !name.starts_with(".piton-")), "{kind}, step {step}: {names:?}");
            },
        );
        assert!(steps > 10, "only {steps} steps");
    }
}

/// What was put into a folder that somebody moved since cannot be put back: that is said, not called as before.
#[test]
fn a_folder_that_was_moved_since_the_crash_is_told() {
    let make = || {
        let world = World::new();
        for path in ["d/f1", "d/f2", "e/g"] {
            world.write(path, "old");
        }
        let id = world.capture();
        for path in ["d/f1", "d/f2", "e/g"] {
            world.write(path, "new");
        }
        (world, id)
    };
    let mut told = 0;
    at_every_step(
        make,
        |world, id| drop(world.rewind(id)),
        |world, _, step, _| {
            world.rename("d", "dd");
            let workspace = world.open();
            let Some(recovered) = workspace.recovered().first() else { return };
            let moved: Vec<_> = recovered.moved.iter().map(|path| &path.path[..]).collect();
            assert_eq!(moved, ["d/f1", "d/f2"], "step {step}");
            let before = recovered.before.as_str().to_owned();
            drop(workspace);
            world.rewind(&before);
            for path in ["d/f1", "d/f2", "e/g"] {
                assert_eq!(std::fs::read_to_string(world.path(path)).unwrap(), "new", "step {step}");
            }
            told += 1;
        },
    );
    assert!(told > 5, "{told}");
}
