//! Records of the timeline that are damaged, and listings: what nobody can tell any more is named, never guessed.

use std::path::PathBuf;

use piton_engine::model::Except;
use piton_engine::model::WorkspacePath;
use piton_engine::view::{OperationStatus, Unknown};
use piton_engine::{
    CaptureOptions, Carry, Choice, InitOptions, OperationError, RedoOptions, RewindOptions, Settle, UndoOptions, Which,
    Whose,
};
use piton_host::fail;
use piton_testkit::{Agent, World};
use rusqlite::Connection;

const PARTIAL: Settle = Settle { conflicts: None, partial: true, except: Except::NOTHING };

/// The store's folder, found without opening the workspace, which would end what is pending.
fn store(world: &World) -> PathBuf {
    world.base().join("home/workspaces").read_dir().unwrap().next().unwrap().unwrap().path()
}

fn asked<T: rusqlite::types::FromSql>(world: &World, sql: &str) -> Vec<T> {
    let db = Connection::open(piton_store::database_file(&store(world)).unwrap()).unwrap();
    let mut query = db.prepare(sql).unwrap();
    query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// Flips a bit in the payload of whatever lies at these places of the pack.
fn flip(world: &World, offsets: &[i64]) {
    let pack = store(world).join("packs/000001.pack");
    let mut bytes = std::fs::read(&pack).unwrap();
    assert!(!offsets.is_empty(), "nothing to damage");
    offsets.iter().for_each(|offset| bytes[*offset as usize + 60] ^= 0x10);
    std::fs::write(&pack, &bytes).unwrap();
}

/// Damages records and makes the view anew, so that it lacks them.
fn lose(world: &World, records: &[u64]) {
    let offset = |seq: &u64| asked(world, &format!("SELECT offset FROM records WHERE seq = {seq}"));
    flip(world, &records.iter().flat_map(offset).collect::<Vec<i64>>());
    lose_view(world);
}

fn lose_view(world: &World) {
    for file in store(world).read_dir().unwrap().map(|file| file.unwrap().path()) {
        if file.file_name().unwrap().to_string_lossy().starts_with("view") {
            std::fs::remove_file(file).unwrap();
        }
    }
}

/// The number of a turn's checkpoint.
fn made_at(world: &World, turn: u32, cause: &str) -> u64 {
    let sql = format!("SELECT seq FROM checkpoints WHERE turn = {turn} AND cause = '{cause}'");
    asked::<i64>(world, &sql)[0] as u64
}

/// Two turns, and the user's own work between them.
fn two_turns() -> World {
    let world = World::new();
    world.write("a", "1\n2\n3\n4\n5\n6\n7\n8\n");
    let agent = Agent::new(&world, "s");
    agent.runs("one", "make", |w| {
        w.write("agent", "x\n").write("a", "ONE\n2\n3\n4\n5\n6\n7\n8\n");
    });
    world.write("a", "ONE\n2\n3\n4\n5\n6\n7\nMINE\n").write("mine", "my own\n");
    agent.runs("two", "make", |w| {
        w.write("agent2", "x\n");
    });
    world
}

fn keeping_mine(settle: Settle) -> RewindOptions {
    RewindOptions { carry: Carry::Mine, settle, ..RewindOptions::default() }
}

fn all(settle: Settle) -> UndoOptions {
    UndoOptions { choice: Choice { what: Some(Which::All), ..Choice::default() }, settle, ..UndoOptions::default() }
}

fn damaged(error: OperationError) -> Vec<String> {
    match error {
        OperationError::RolledBack { damaged, .. } => damaged.iter().map(WorkspacePath::display).collect(),
        error => panic!("{error:?}"),
    }
}

/// `rewind --keep-mine` said "carried over" and deleted the file.
#[test]
fn an_edit_whose_parent_is_lost_is_not_carried_over_but_stays() {
    let world = two_turns();
    let now = world.snapshot();
    lose(&world, &[made_at(&world, 1, "turn-end")]);
    let refused = world.open().rewind_now("t1", &keeping_mine(Settle::default())).unwrap_err();
    assert_eq!(damaged(refused), ["a", "mine"]);
    world.assert_is(&now);
    let plan = world.open().plan_rewind("t1", &keeping_mine(PARTIAL)).unwrap();
    assert!(plan.view().carried.is_empty(), "{:?}", plan.view().carried);
    let outcome = world.open().carry_out(plan).unwrap();
    let not_done: Vec<_> = outcome.not_done.iter().map(|one| &one.path.path[..]).collect();
    assert_eq!(not_done, ["a", "mine"]);
    assert_eq!(std::fs::read_to_string(world.path("mine")).unwrap(), "my own\n");
    assert!(std::fs::read_to_string(world.path("a")).unwrap().contains("MINE"));
    assert!(!world.path("agent2").exists());
    world.redo();
    world.assert_is(&now);
}

/// What the lost checkpoint itself had found was in no list any more: a rewind took it without a word.
#[test]
fn what_a_lost_checkpoint_found_may_be_anybodys() {
    let world = two_turns();
    lose(&world, &[made_at(&world, 2, "prompt")]);
    let plan = world.open().plan_rewind("t1", &RewindOptions::default()).unwrap();
    let others: Vec<_> = plan.view().others.iter().map(|file| &file.path.path[..]).collect();
    assert_eq!(others, ["a", "mine"]);
    let refused = world.open().rewind_now("t1", &keeping_mine(Settle::default())).unwrap_err();
    assert_eq!(damaged(refused), ["a", "mine"]);
}

/// So did the last of all, which no later one names as its parent.
#[test]
fn what_the_last_checkpoint_found_may_be_anybodys_where_it_is_lost() {
    let world = two_turns();
    world.write("late", "late\n");
    world.capture();
    let last = asked::<i64>(&world, "SELECT max(seq) FROM checkpoints")[0] as u64;
    lose(&world, &[last]);
    let plan = world.open().plan_rewind("t2", &RewindOptions::default()).unwrap();
    let others: Vec<_> = plan.view().others.iter().map(|file| &file.path.path[..]).collect();
    assert_eq!(others, ["late"]);
    let owner = serde_json::to_string(&plan.view().others[0].owner).unwrap();
    assert!(owner.contains("unsure"), "{owner}");
}

/// `undo all` said that all was undone.
#[test]
fn a_tools_change_whose_checkpoint_or_parent_is_lost_is_named() {
    let world = two_turns();
    let now = world.snapshot();
    lose(&world, &[made_at(&world, 1, "before-tool")]);
    let refused = world.open().undo_now(&all(Settle::default())).unwrap_err();
    assert_eq!(damaged(refused), ["a", "agent"]);
    world.assert_is(&now);
    let outcome = world.open().undo_now(&all(PARTIAL)).unwrap();
    let not_done: Vec<_> = outcome.not_done.iter().map(|one| &one.path.path[..]).collect();
    assert_eq!(not_done, ["a", "agent"]);
    assert!(!world.path("agent2").exists());

    let world = two_turns();
    lose(&world, &[made_at(&world, 1, "after-tool")]);
    let plan = world.open().plan_undo(&all(Settle::default())).unwrap();
    let mut unsure: Vec<_> = plan.view().unsure.iter().map(|file| &file.path.path[..]).collect();
    unsure.sort();
    assert_eq!(unsure, ["a", "agent"]);
    let turns = Agent::new(&world, "s").turns();
    assert_eq!(turns[0].unknown, Some(Unknown::Damaged));
    assert_eq!(turns[1].unknown, None);
}

/// The turn was logged as having changed nothing.
#[test]
fn a_folder_that_cannot_be_compared_is_a_change_of_its_own() {
    for is_root in [true, false] {
        let world = World::new();
        world.write("a", "a1").write("d/c", "c1").write("e/f", "f1");
        let agent = Agent::new(&world, "s");
        agent.prompt("one");
        agent.before("1", "Bash", &[]);
        let sql = "SELECT offset FROM all_objects WHERE kind = 2";
        let trees = asked::<i64>(&world, sql);
        let sql = "SELECT offset FROM all_objects WHERE id IN (SELECT tree FROM checkpoints)";
        let root = asked::<i64>(&world, sql);
        let inner: Vec<i64> = trees.into_iter().filter(|offset| !root.contains(offset)).take(1).collect();
        flip(&world, if is_root { &root } else { &inner });
        world.open().verify(true).unwrap();
        world.write("a", "a2").write("d/c", "c2").write("e/f", "f2");
        agent.after("1");
        agent.end_turn();
        let turn = &agent.turns()[0];
        let unsure = turn.unsure.iter().map(|file| &file.path.path[..]);
        let mut found: Vec<_> = turn.files.iter().map(|file| &file.path.path[..]).chain(unsure).collect();
        found.sort();
        match is_root {
            true => assert_eq!(found, ["."]),
            false => assert!(found == ["a", "d", "e/f"] || found == ["a", "d/c", "e"], "{found:?}"),
        }
        // The rest is taken back, and what cannot be is named.
        let options = UndoOptions {
            choice: Choice { what: Some(Which::All), unsure: true, ..Choice::default() },
            settle: PARTIAL,
            ..UndoOptions::default()
        };
        let outcome = world.open().undo_now(&options).unwrap();
        assert_eq!(outcome.not_done.len(), 1, "{:?}", outcome.not_done);
        assert_eq!(std::fs::read_to_string(world.path("a")).unwrap(), if is_root { "a2" } else { "a1" });
    }
}

/// A rewind of last week was taken back over the work of days, once `piton init` or a move had written the workspace's record again.
#[test]
fn an_operation_whose_end_is_damaged_is_not_run_again_after_the_workspaces_record_changed() {
    for moves in [true, false] {
        let mut world = World::new();
        world.write("a", "one").write("b", "one");
        let id = world.capture();
        world.write("a", "two").write("b", "two");
        world.capture();
        world.rewind(&id);
        let done = asked::<i64>(&world, "SELECT seq FROM checkpoints WHERE cause = 'operation'")[0] as u64;
        world.write("a", "my work");
        world.capture();
        if moves {
            std::fs::rename(world.ws(), world.base().join("elsewhere")).unwrap();
            let moved = world.base().join("elsewhere");
            drop(world.engine.open(&moved).unwrap());
            std::fs::rename(moved, world.ws()).unwrap();
        } else {
            let options = InitOptions { budget: Some(5_000_000_000), ..InitOptions::default() };
            world.engine.init(&world.ws(), options).unwrap();
        }
        world.write("c", "more work");
        world.capture();
        let now = world.snapshot();
        lose(&world, &[done, done + 1]);
        let workspace = world.open();
        assert!(workspace.recovered().is_empty(), "{:?}", workspace.recovered());
        drop(workspace);
        world.assert_is(&now);
        world.hold(tempfile::tempdir().unwrap());
    }
}

/// Nobody said a word of the half-changed files.
#[test]
fn an_operation_that_was_cut_off_and_whose_record_is_lost_is_said_aloud() {
    for with_view in [true, false] {
        let world = World::new();
        for name in ["a", "b", "c", "d"] {
            world.write(name, "one");
        }
        let id = world.capture();
        for name in ["a", "b", "c", "d"] {
            world.write(name, "two");
        }
        let cut = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            fail::when(
                3,
                "apply:swap",
                || panic!("cut off"),
                || world.open().rewind_now(&id, &RewindOptions::default()),
            )
        }));
        assert!(cut.is_err());
        let offset = asked::<i64>(&world, "SELECT offset FROM records WHERE kind = 'operation'");
        flip(&world, &offset);
        if !with_view {
            lose_view(&world);
        }
        let workspace = world.open();
        let [said] = workspace.recovered() else { panic!("{:?}", workspace.recovered()) };
        assert!(said.damaged);
        let before = said.before.to_string();
        drop(workspace);
        assert!(world.open().recovered().is_empty(), "it is said once");
        let states: Vec<_> = world.open().operations().unwrap().operations.iter().map(|one| one.state).collect();
        assert!(states.iter().all(|state| *state == OperationStatus::GivenUp), "{states:?}");
        if !with_view {
            let error = world.open().redo_now(&RedoOptions::default()).unwrap_err();
            assert!(matches!(error, OperationError::NothingKnownToRedo), "{error}");
        }
        world.open().capture(&CaptureOptions::default()).unwrap();
        world.rewind(&before);
        assert_eq!(std::fs::read_to_string(world.path("a")).unwrap(), "two");
    }
}

/// The numbers of all records of a kind, in order.
fn recorded(world: &World, kind: &str) -> Vec<u64> {
    let sql = format!("SELECT seq FROM records WHERE kind = '{kind}' ORDER BY seq");
    asked::<i64>(world, &sql).into_iter().map(|seq| seq as u64).collect()
}

fn read(world: &World, name: &str) -> Option<String> {
    std::fs::read_to_string(world.path(name)).ok()
}

fn everything_of_mine() -> UndoOptions {
    let choice = Choice { what: Some(Which::All), whose: Some(Whose::You), ..Choice::default() };
    UndoOptions { choice, ..UndoOptions::default() }
}

/// `rewind --keep-mine` brought back what an undo or a rewind had taken, once the record of that was damaged.
#[test]
fn what_an_operation_took_does_not_come_back_once_its_record_is_lost() {
    for rewinds in [true, false] {
        for with_row in [true, false] {
            for more in ["", "only-session", "unsure"] {
                let world = two_turns();
                if rewinds {
                    world.rewind("t1");
                } else {
                    world.open().undo_now(&everything_of_mine()).unwrap();
                }
                let agent = Agent::new(&world, "s");
                agent.runs("three", "make", |w| {
                    w.write("agent3", "x\n");
                });
                let now = world.snapshot();
                let operation = recorded(&world, "operation")[0];
                match with_row {
                    true => flip(
                        &world,
                        &asked::<i64>(&world, &format!("SELECT offset FROM records WHERE seq = {operation}")),
                    ),
                    false => lose(&world, &[operation]),
                }
                let case = format!("rewinds {rewinds}, with its row {with_row}, {more}");
                let options = |settle| RewindOptions {
                    carry: if more == "only-session" { Carry::Others } else { Carry::Mine },
                    unsure: more == "unsure",
                    ..keeping_mine(settle)
                };
                let target = if rewinds { "t2" } else { "t1" };
                let refused = world.open().rewind_now(target, &options(Settle::default())).unwrap_err();
                // Where nothing differs there is nothing to name.
                let unknown: &[&str] = if rewinds { &["a", "agent", "mine"] } else { &["a"] };
                assert_eq!(damaged(refused), unknown, "{case}");
                world.assert_is(&now);
                let outcome = world.open().rewind_now(target, &options(PARTIAL)).unwrap();
                let not_done: Vec<_> = outcome.not_done.iter().map(|one| &one.path.path[..]).collect();
                assert_eq!(not_done, unknown, "{case}");
                assert_eq!(read(&world, "mine"), None, "{case}");
                assert!(!read(&world, "a").unwrap().contains("MINE"), "{case}");
                assert_eq!(read(&world, "agent3"), None, "{case}");
            }
        }
    }
}

/// With only other paths, or to a moment after it, nobody need know what it did.
#[test]
fn a_lost_operation_stands_in_the_way_of_what_it_changed_alone() {
    let world = two_turns();
    world.open().undo_now(&everything_of_mine()).unwrap();
    let agent = Agent::new(&world, "s");
    agent.runs("three", "make", |w| {
        w.write("agent3", "x\n");
    });
    world.write("mine3", "my own\n");
    lose(&world, &recorded(&world, "operation"));
    let paths = vec![WorkspacePath::new("agent2").unwrap()];
    let plan = world.open().plan_rewind("t1", &RewindOptions { paths, ..keeping_mine(Settle::default()) }).unwrap();
    assert!(plan.view().not_done.is_empty());
    world.open().rewind_now("t3", &keeping_mine(Settle::default())).unwrap();
    assert_eq!((read(&world, "agent3"), read(&world, "mine3").is_some(), read(&world, "mine")), (None, true, None));
}

/// An undo that was taken back was said to stand, though the files told otherwise.
#[test]
fn what_a_lost_redo_brought_back_can_be_undone() {
    let world = two_turns();
    let now = world.snapshot();
    world.open().undo_now(&all(Settle::default())).unwrap();
    world.redo();
    world.assert_is(&now);
    lose(&world, &[recorded(&world, "operation")[1]]);
    world.open().undo_now(&all(Settle::default())).unwrap();
    assert_eq!((read(&world, "agent"), read(&world, "agent2")), (None, None));
    assert!(read(&world, "mine").is_some());
}

/// What the rewind had done counted as the user's: it was carried over, and the files were said to be as in the target.
#[test]
fn a_rewind_whose_result_is_lost_is_not_the_users_edit() {
    for (captures, with_record) in [(true, true), (true, false), (false, true), (false, false)] {
        let world = two_turns();
        world.rewind("t1");
        let result = asked::<i64>(&world, "SELECT seq FROM checkpoints WHERE cause = 'operation'")[0] as u64;
        let mut lost = vec![result];
        lost.extend(recorded(&world, "operation").into_iter().filter(|_| !with_record));
        let now = world.snapshot();
        lose(&world, &lost);
        if captures {
            world.capture();
        }
        let case = format!("captures {captures}, with its record {with_record}");
        let refused = match world.open().rewind_now("t2", &keeping_mine(Settle::default())) {
            Ok(outcome) => panic!("{case}: {outcome:?}"),
            Err(refused) => refused,
        };
        assert_eq!(damaged(refused), ["a", "agent", "mine"], "{case}");
        let outcome = world.open().rewind_now("t2", &keeping_mine(PARTIAL)).unwrap();
        let not_done: Vec<_> = outcome.not_done.iter().map(|one| &one.path.path[..]).collect();
        assert_eq!(not_done, ["a", "agent", "mine"], "{case}");
        world.assert_is(&now);
    }
}

/// The one before it was taken back instead, without a word.
#[test]
fn redo_does_not_take_back_an_earlier_operation_in_the_place_of_a_lost_one() {
    let world = two_turns();
    world.rewind("t2");
    let first = world.open().operations().unwrap().operations[0].id.to_string();
    world.write("b", "since\n");
    world.capture();
    world.rewind("t1");
    let now = world.snapshot();
    lose(&world, &[recorded(&world, "operation")[1]]);
    let error = world.open().redo_now(&RedoOptions::default()).unwrap_err();
    let OperationError::LaterMayBeLost(found) = &error else { panic!("{error}") };
    assert_eq!(found.to_string(), first);
    world.assert_is(&now);
    let options = RedoOptions { operation: Some(first), ..RedoOptions::default() };
    world.open().redo_now(&options).unwrap();
    assert!(read(&world, "agent2").is_some());
    // What comes after the damage is not in doubt.
    let id = world.capture();
    world.write("c", "later\n");
    world.rewind(&id);
    world.redo();
    assert!(read(&world, "c").is_some());
    // With all that tells of one it may be lost too.
    let world = two_turns();
    world.rewind("t2");
    world.rewind("t1");
    let lost = asked::<i64>(&world, "SELECT seq FROM checkpoints WHERE operation IS NOT NULL ORDER BY seq");
    lose(&world, &[lost[2] as u64, recorded(&world, "operation")[1], lost[3] as u64]);
    let error = world.open().redo_now(&RedoOptions::default()).unwrap_err();
    assert!(matches!(error, OperationError::LaterMayBeLost(_)), "{error}");
}

/// Any damage anywhere was told as a reason for there being nothing to take back.
#[test]
fn what_cannot_have_been_an_operation_is_in_no_redos_way() {
    let world = two_turns();
    let now = world.snapshot();
    lose(&world, &[made_at(&world, 1, "turn-end")]);
    let error = world.open().redo_now(&RedoOptions::default()).unwrap_err();
    assert!(matches!(error, OperationError::NothingToRedo), "{error}");
    world.rewind("t1");
    lose(&world, &[*recorded(&world, "ended").last().unwrap()]);
    world.redo();
    world.assert_is(&now);
}

/// A pack that ends where a transaction ends looks whole, and only the view knew of more. What the agent had done in the turns
/// that are gone was called the user's, and their numbers were given to new turns.
#[test]
fn of_turns_whose_end_of_the_pack_is_gone_neither_work_nor_numbers_are_given_to_others() {
    let world = World::new();
    world.write("a", "0\n");
    let agent = Agent::new(&world, "s");
    let turn = |text: &str| {
        agent.runs(text, "make", |w| {
            w.write("a", format!("{text}\n"));
        });
    };
    turn("one");
    let pack = store(&world).join("packs/000001.pack");
    let length = pack.metadata().unwrap().len();
    turn("two");
    turn("three");
    std::fs::File::options().write(true).open(&pack).unwrap().set_len(length).unwrap();
    agent.prompt("four");
    agent.end_turn();
    assert_eq!(agent.turns().iter().map(|turn| turn.number).collect::<Vec<_>>(), [1, 4]);
    let workspace = world.open();
    let shown = workspace.show("t4").unwrap();
    assert!(
        matches!(shown.files[0].owner, Some(piton_engine::model::ownership::Owner::Unsure { .. })),
        "{:?}",
        shown.files
    );
    assert!(workspace.resolve("t2").is_err(), "nobody knows what was before turn 2");
}
