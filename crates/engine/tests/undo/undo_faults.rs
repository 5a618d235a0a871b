//! An undo that dies at any step, runs out of space, meets another one or a damaged store: the old or the new tree, and
//! nothing of anybody's is lost.

use piton_engine::model::WorkspacePath;
use piton_engine::view::OperationOutcome;
use piton_engine::{Choice, ChosenError, OperationError, UndoOptions, Which};
use piton_host::fail;
use piton_testkit::{Agent, SmallDisk, Snapshot, World, noise};

/// Ends a chain of writing.
fn done(_: &World) {}

fn of_turn(turn: u32, paths: &[&str]) -> UndoOptions {
    let paths = paths.iter().map(|path| WorkspacePath::new(*path).unwrap()).collect();
    let choice = Choice { what: Some(Which::Places(vec![(turn, None)])), paths, ..Choice::default() };
    UndoOptions { choice, ..UndoOptions::default() }
}

fn undo(world: &World, paths: &[&str]) -> OperationOutcome {
    let outcome = world.open().undo_now(&of_turn(1, paths)).unwrap_or_else(|e| panic!("an undo works: {e}"));
    assert!(outcome.verified, "{outcome:?}");
    outcome
}

fn lines(edit: &[(u32, &str)]) -> String {
    let line = |n: u32| edit.iter().find(|(at, _)| *at == n).map_or(format!("line {n}\n"), |(_, by)| format!("{by}\n"));
    (1..=12).map(line).collect()
}

fn notebook(second: &str, fourth: &str) -> String {
    let cell = |id: u32, source: &str| {
        format!(
            "  {{\n   \"cell_type\": \"raw\",\n   \"id\": \"c{id}\",\n   \"source\": [\n    \"{source}\"\n   ]\n  }}"
        )
    };
    let cells = [cell(1, "a"), cell(2, second), cell(3, "c"), cell(4, fourth)].join(",\n");
    format!("{{\n \"cells\": [\n{cells}\n ],\n \"nbformat\": 4\n}}\n")
}

/// A turn whose undo restores, deletes, recreates, merges text and a notebook, changes bits, and makes and removes
/// folders; and edits of the user's since.
fn after_the_agent(world: &World) {
    world.write("restored", "before").write("deleted", "deleted").write("merged", lines(&[]));
    world.write("merged.ipynb", notebook("b", "d")).write("mode.sh", "#!").write("same", "same");
    world.write("gone/x", "x").write("gone/sub/y", "y").write("closed/f", "before").mode("closed", 0o555);
    world.write("bits/f", "f").write("kind", "a file").link("link", "same").folder("empty");
    world.write("was", lines(&[(1, "a file that moves")]));
    let agent = Agent::new(world, "s");
    agent.runs("go", "work", |w| {
        w.write("restored", "after").remove("deleted").write("merged", lines(&[(3, "agent")]));
        w.write("merged.ipynb", notebook("agent", "d")).mode("mode.sh", 0o755).write("created", "created");
        w.remove("gone").write("added/p", "p").write("added/deep/q", "q").mode("bits", 0o700).remove("empty");
        w.mode("closed", 0o755).write("closed/f", "after").mode("closed", 0o555);
        w.remove("kind").write("kind/inside", "a folder").remove("link").link("link", "restored");
        w.write("shared/agents", "agent").rename("was", "moved");
    });
    world.write("merged", lines(&[(3, "agent"), (10, "user")])).write("merged.ipynb", notebook("agent", "user"));
    world.write("shared/users", "user").write("users", "user");
    world.write("moved", lines(&[(1, "a file that moves"), (8, "user")]));
}

/// Every path of the agent's, or a few of them that need a merge, a folder and a file.
const SCOPES: [&[&str]; 2] = [&[], &["merged", "merged.ipynb", "added", "gone", "deleted"]];

/// The tree before and after the undo.
fn ends(paths: &[&str]) -> (Snapshot, Snapshot) {
    let world = World::new();
    after_the_agent(&world);
    let old = world.snapshot();
    undo(&world, paths);
    let new = world.snapshot();
    assert_eq!(new.bytes("merged"), Some(lines(&[(10, "user")]).as_bytes()));
    assert_eq!(new.bytes("merged.ipynb"), Some(notebook("b", "user").as_bytes()));
    assert!(!new.has("added") && new.has("gone/sub/y") && new.bytes("deleted") == Some(b"deleted"));
    let whole = paths.is_empty();
    assert_eq!(new.bytes("restored"), Some(if whole { &b"before"[..] } else { b"after" }));
    assert_eq!(
        (new.has("created"), new.has("empty"), new.has("was"), new.has("moved")),
        (!whole, whole, whole, !whole)
    );
    assert_eq!((new.has("shared/agents"), new.has("shared/users")), (!whole, true));
    (old, new)
}

/// Dies in the undo at each of its steps, in a fresh world each time, and checks what is found then.
fn at_every_step(paths: &[&str], mut check: impl FnMut(&World, u64)) -> u64 {
    for step in 1.. {
        let world = World::new();
        after_the_agent(&world);
        if fail::with(step, || undo(&world, paths)).is_some() {
            return step - 1;
        }
        check(&world, step);
    }
    unreachable!()
}

fn assert_nothing_pending(world: &World) {
    assert!(world.open().status().unwrap().pending.is_empty());
}

/// Undoes what is left to undo: whatever a crash left, that ends in the same tree.
fn undo_again(world: &World, paths: &[&str]) {
    match world.open().undo_now(&of_turn(1, paths)) {
        Ok(outcome) => assert!(outcome.verified),
        Err(OperationError::Chosen(ChosenError::Nothing { undone: true, .. })) => {}
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_crash_at_any_step_of_an_undo_leaves_the_old_or_the_new_tree_and_undo_works_again() {
    for paths in SCOPES {
        let (old, new) = ends(paths);
        let (mut olds, mut news) = (0, 0);
        let steps = at_every_step(paths, |world, step| {
            drop(world.open());
            let now = world.snapshot();
            assert!(
                now == old || now == new,
                "died at step {step}: neither. is | old\n{}\nis | new\n{}",
                now.differences(&old).join("\n"),
                now.differences(&new).join("\n")
            );
            if now == new {
                news += 1
            } else {
                olds += 1
            }
            assert_nothing_pending(world);
            undo_again(world, paths);
            world.assert_is(&new);
            world.redo();
            world.assert_is(&old);
            world.assert_sound();
        });
        assert!(steps > 40, "only {steps} steps: are the failpoints there?");
        assert!(olds > 10 && news > 1, "{olds} old, {news} new");
    }
}

#[test]
fn what_anyone_edits_adds_and_deletes_after_a_crash_of_an_undo_is_kept() {
    at_every_step(&[], |world, step| {
        // In the plan: files that are merged, restored and recreated, folders that come and go; and beside it.
        let mut edits = vec!["merged", "merged.ipynb", "restored", "same", "users", "deleted", "outside/new"];
        for file in ["added/p", "added/extra", "gone/x", "gone/extra", "shared/agents"] {
            if world.path(file).parent().unwrap().is_dir() {
                edits.push(file);
            }
        }
        edits.push(if world.path("kind").is_dir() { "kind/inside" } else { "kind" });
        edits.push(if world.path("moved").exists() { "moved" } else { "was" });
        for file in &edits {
            world.write(file, format!("edit of {file}"));
        }
        if world.path("created").exists() {
            world.remove("created");
        }
        let before = world.snapshot();
        drop(world.open());
        let now = world.snapshot();
        for file in &edits {
            assert_eq!(
                now.bytes(file).map(String::from_utf8_lossy),
                Some(format!("edit of {file}").into()),
                "died at step {step}, {file}; before the recovery\n{before:?}\nnow\n{now:?}"
            );
        }
        assert_nothing_pending(world);
        // What is undone now meets those edits: it is refused, or it goes around them.
        match world.open().undo_now(&of_turn(1, &[])) {
            Err(OperationError::Conflict(_) | OperationError::Chosen(ChosenError::Nothing { .. })) => {
                world.assert_is(&now);
            }
            Ok(_) => {
                world.redo();
                world.assert_is(&now);
            }
            Err(error) => panic!("{error}"),
        }
        world.assert_sound();
    });
}

#[test]
fn a_disk_that_is_full_at_any_step_of_an_undo_leaves_the_old_or_the_new_tree() {
    piton_testkit::needs_mounts!();
    let on = |disk: &SmallDisk| {
        let world = World::at(disk.path(), |_| {});
        let long: String = (0..2_000).map(|n| format!("line {n} of a long file\n")).collect();
        world.write("restored", noise(1, 60_000)).write("gone/x", noise(2, 60_000)).write("merged", &long);
        let agent = Agent::new(&world, "s");
        let edited = long.replace("line 100 ", "agent ");
        agent.runs("go", "work", |w| {
            w.write("restored", noise(3, 60_000)).remove("gone").write("merged", &edited).write("added/p", "p");
        });
        world.write("merged", edited.replace("line 1900 ", "user "));
        drop(world.open());
        world
    };
    let disk = SmallDisk::new(4096);
    let world = on(&disk);
    let old = world.snapshot();
    undo(&world, &[]);
    let new = world.snapshot();
    drop((world, disk));
    let (mut refused, mut done) = (0, 0);
    for free in (0..640).step_by(32) {
        let disk = SmallDisk::new(4096);
        let world = on(&disk);
        let filler = disk.fill_but(free);
        let opened = world.engine.open(&world.ws());
        let result = opened.map_err(|e| e.to_string()).and_then(|mut workspace| {
            workspace.undo_now(&of_turn(1, &[])).map_err(|e| {
                assert!(!matches!(e, OperationError::RolledBack { full_disk: false, .. }), "{e}");
                e.to_string()
            })
        });
        let now = world.snapshot();
        match result {
            Ok(outcome) => {
                assert!(outcome.verified && now == new, "{free} KiB free");
                done += 1;
            }
            Err(error) => {
                assert!(now == old || now == new, "{free} KiB free: {error}\n{}", now.differences(&old).join("\n"));
                refused += 1;
            }
        }
        std::fs::remove_file(filler).unwrap();
        drop(world.open());
        assert!([&old, &new].contains(&&world.snapshot()), "{free} KiB free, after there was room again");
        undo_again(&world, &[]);
        world.assert_is(&new);
        world.assert_sound();
    }
    assert!(refused > 1 && done > 1, "{refused} refused, {done} done: the range misses the border");
}

#[test]
fn two_that_undo_the_same_turn_at_once_undo_it_once() {
    let (old, new) = ends(&[]);
    for _ in 0..5 {
        let world = World::new();
        after_the_agent(&world);
        let undone = std::thread::scope(|scope| {
            let run = || match world.open().undo_now(&of_turn(1, &[])) {
                Ok(outcome) => outcome.operation.is_some(),
                Err(OperationError::Chosen(ChosenError::Nothing { undone: true, .. })) => false,
                Err(error) => panic!("{error}"),
            };
            let both = [scope.spawn(run), scope.spawn(run)];
            both.map(|one| one.join().unwrap()).into_iter().filter(|done| *done).count()
        });
        assert_eq!(undone, 1);
        world.assert_is(&new);
        world.redo();
        world.assert_is(&old);
        world.assert_sound();
    }
}

#[test]
fn two_that_undo_and_redo_different_turns_of_one_file_at_once_leave_one_of_the_legal_trees() {
    for _ in 0..5 {
        let world = World::new();
        world.write("a", lines(&[]));
        let agent = Agent::new(&world, "s");
        for (turn, line) in [(1, 3), (2, 9)] {
            let text = if turn == 1 { lines(&[(3, "one")]) } else { lines(&[(3, "one"), (9, "two")]) };
            agent.edits(&format!("{line}"), &["a"], |w| done(w.write("a", text)));
        }
        std::thread::scope(|scope| {
            for turn in [1, 2] {
                let world = &world;
                scope.spawn(move || {
                    for _ in 0..3 {
                        let outcome = world.open().undo_now(&of_turn(turn, &[])).unwrap();
                        let operation = Some(outcome.operation.unwrap().id.to_string());
                        let options = piton_engine::RedoOptions { operation, ..Default::default() };
                        world.open().redo_now(&options).unwrap();
                    }
                    if turn == 1 {
                        world.open().undo_now(&of_turn(1, &[])).unwrap();
                    }
                });
            }
        });
        assert_eq!(world.snapshot().bytes("a"), Some(lines(&[(9, "two")]).as_bytes()));
        assert_nothing_pending(&world);
        world.assert_sound();
    }
}

#[test]
fn a_plan_that_went_stale_is_refused_whatever_kind_of_step_it_is_and_nothing_is_written() {
    type Change = (&'static str, fn(&World));
    let changes: [Change; 9] = [
        ("restored", |w| done(w.write("restored", "in the meantime"))),
        ("created", |w| done(w.remove("created"))),
        ("deleted", |w| done(w.write("deleted", "in the meantime"))),
        ("merged", |w| done(w.write("merged", lines(&[(3, "agent"), (10, "user"), (12, "more")])))),
        ("merged.ipynb", |w| done(w.write("merged.ipynb", notebook("agent", "more")))),
        ("mode.sh", |w| done(w.mode("mode.sh", 0o700))),
        ("bits", |w| done(w.mode("bits", 0o711))),
        ("added", |w| done(w.write("added/late", "in the meantime"))),
        ("moved", |w| done(w.write("moved", lines(&[(8, "in the meantime")])))),
    ];
    for (path, change) in changes {
        let world = World::new();
        after_the_agent(&world);
        let plan = world.open().plan_undo(&of_turn(1, &[])).unwrap();
        change(&world);
        let before = world.snapshot();
        let error = world.open().carry_out(plan).unwrap_err();
        assert!(matches!(&error, OperationError::Stale { path: p } if p.display() == path), "{path}: {error}");
        world.assert_is(&before);
        world.assert_sound();
    }
}

#[test]
fn a_damaged_content_that_a_merge_needs_is_an_error_and_nothing_changes() {
    let (before, left, now) =
        ("q1\nw2\ne3\nr4\nt5\ny6\n", "q1\nagent\ne3\nr4\nt5\ny6\n", "q1\nagent\ne3\nr4\nuser\ny6\n");
    // What is needed of the file: what was there before, what the change left.
    for needed in [before, left] {
        let world = World::new();
        world.write("merged", before).write("other", "before");
        let agent = Agent::new(&world, "s");
        agent.edits("go", &["merged", "other"], |w| done(w.write("merged", left).write("other", "after")));
        world.write("merged", now);
        damage(&world, needed.as_bytes());
        let now = world.snapshot();
        let error = world.open().undo_now(&of_turn(1, &[])).unwrap_err();
        assert!(!matches!(error, OperationError::Conflict(_)), "{error}");
        assert!(world.open().plan_undo(&of_turn(1, &[])).is_err());
        world.assert_is(&now);
        assert_nothing_pending(&world);
        // What does not need it can be had.
        undo(&world, &["other"]);
        assert_eq!(world.snapshot().bytes("other"), Some(&b"before"[..]));
        assert_eq!(world.snapshot().bytes("merged"), now.bytes("merged"));
    }
}

/// Flips a bit of a stored content; short ones are stored as they are.
fn damage(world: &World, content: &[u8]) {
    let pack = world.open().store_folder().join("packs/000001.pack");
    let mut bytes = std::fs::read(&pack).unwrap();
    let at = bytes.windows(content.len()).position(|w| w == content).unwrap();
    bytes[at + 3] ^= 0x10;
    std::fs::write(pack, bytes).unwrap();
}
