//! The packs are the truth: what they have closed counts, whatever becomes of the database that shows it.

use std::path::PathBuf;

use piton_engine::CaptureOptions;
use piton_engine::view::DamageView;
use piton_testkit::{Snapshot, World};
use rusqlite::Connection;

fn store(world: &World) -> PathBuf {
    world.base().join("home/workspaces").read_dir().unwrap().next().unwrap().unwrap().path()
}

fn database(world: &World) -> PathBuf {
    piton_store::database_file(&store(world)).unwrap()
}

fn beside(world: &World, end: &str) -> PathBuf {
    PathBuf::from(format!("{}{end}", database(world).display()))
}

fn pack(world: &World) -> PathBuf {
    store(world).join("packs/000001.pack")
}

fn fold(world: &World) {
    let db = Connection::open(database(world)).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
}

fn ids(world: &World) -> Vec<String> {
    world.open().log(Default::default()).unwrap().checkpoints.iter().map(|c| c.id.to_string()).collect()
}

/// Some captures, each with what it saw.
fn captures(world: &World, from: usize, count: usize) -> Vec<(String, Snapshot)> {
    (from..from + count)
        .map(|n| {
            world.write("a", format!("content {n}")).write(format!("dir/{n}"), format!("file {n}"));
            (world.capture(), world.snapshot())
        })
        .collect()
}

#[track_caller]
fn assert_all(world: &World, captured: &[(String, Snapshot)]) {
    let listed = ids(world);
    for (id, seen) in captured {
        assert!(listed.contains(id), "{id} is gone");
        world.rewind(id);
        world.assert_is(seen);
    }
    world.assert_sound();
}

/// The database was restored from a backup, or its log was lost after a fold: it is older than the packs. The next capture
/// used to cut off everything that it did not know, and called the store sound.
#[test]
fn an_older_database_takes_nothing_from_the_packs() {
    for then_capture in [false, true] {
        let world = World::new();
        let mut captured = captures(&world, 0, 2);
        fold(&world);
        let old = std::fs::read(database(&world)).unwrap();
        captured.extend(captures(&world, 2, 5));
        let path = database(&world);
        for end in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(beside(&world, end));
        }
        std::fs::write(&path, &old).unwrap();
        if then_capture {
            captured.extend(captures(&world, 7, 1));
        }
        assert_all(&world, &captured);
    }
}

#[test]
fn a_flipped_bit_in_the_databases_log_takes_nothing_from_the_packs() {
    let world = World::new();
    let mut captured = captures(&world, 0, 2);
    fold(&world);
    captured.extend(captures(&world, 2, 3));
    let whole = (std::fs::read(database(&world)).unwrap(), std::fs::read(beside(&world, "-wal")).unwrap());
    assert!(whole.1.len() > 10_000, "nothing is in the log: the test would test nothing");
    let packs = std::fs::read(pack(&world)).unwrap();
    for at in (0..whole.1.len()).step_by(whole.1.len() / 24) {
        let path = database(&world);
        let mut log = whole.1.clone();
        log[at] ^= 0x10;
        let _ = std::fs::remove_file(beside(&world, "-shm"));
        std::fs::write(&path, &whole.0).unwrap();
        std::fs::write(beside(&world, "-wal"), &log).unwrap();
        std::fs::write(pack(&world), &packs).unwrap();
        let more = captures(&world, 10, 1);
        let listed = ids(&world);
        assert!(captured.iter().chain(&more).all(|(id, _)| listed.contains(id)), "byte {at} of the log");
        world.assert_sound();
    }
}

#[test]
fn a_pack_that_was_cut_off_is_never_called_sound() {
    for cut in [1, 7, 200, 700] {
        let world = World::new();
        let captured = captures(&world, 0, 4);
        let workspace = world.open();
        let length = std::fs::metadata(pack(&world)).unwrap().len();
        std::fs::File::options().write(true).open(pack(&world)).unwrap().set_len(length - cut).unwrap();
        let found = workspace.verify(false).unwrap();
        assert!(!found.sound, "cut by {cut}");
        let named = |d: &DamageView| matches!(d, DamageView::Pack { to, .. } if *to == length);
        assert!(found.damage.iter().any(named), "cut by {cut}: {:?}", found.damage);
        drop(workspace);
        // What was before it is as it was, and captures go on.
        let more = captures(&world, 9, 1);
        for (id, seen) in captured[..3].iter().chain(&more) {
            world.rewind(id);
            world.assert_is(seen);
        }
    }
}

/// A power cut may leave the commit record and take some of what it covers. Nothing of that counts, and nothing of what
/// came after it: it may need what is gone. The bytes are kept, and named.
#[test]
fn a_closed_transaction_that_is_not_whole_after_a_power_cut_is_moved_aside_and_named() {
    for with_rows in [true, false] {
        let world = World::new();
        world.write("a", "durable");
        let synced = CaptureOptions { sync: true, ..Default::default() };
        let durable = world.open().capture(&synced).unwrap().checkpoint.checkpoint.id.to_string();
        let seen = world.snapshot();
        fold(&world);
        let old = std::fs::read(database(&world)).unwrap();
        let length = std::fs::metadata(pack(&world)).unwrap().len() as usize;
        let lost = captures(&world, 0, 3);
        let now = world.snapshot();
        let mut bytes = std::fs::read(pack(&world)).unwrap();
        bytes[length + 100..length + 120].fill(0);
        std::fs::write(pack(&world), bytes).unwrap();
        let path = database(&world);
        if !with_rows {
            for end in ["-wal", "-shm"] {
                let _ = std::fs::remove_file(beside(&world, end));
            }
            std::fs::write(&path, &old).unwrap();
        }
        let listed = piton_host::clock::in_another_run("the run after the power cut", || ids(&world));
        assert!(listed.contains(&durable));
        assert!(lost.iter().all(|(id, _)| !listed.contains(id)), "rows: {with_rows}");
        let found = world.open().verify(false).unwrap();
        let [DamageView::Aside { file, checkpoints }] = &found.damage[..] else { panic!("{:?}", found.damage) };
        assert!(std::fs::metadata(file).unwrap().len() > 100);
        let named: Vec<&str> = checkpoints.iter().map(|id| id.as_str()).collect();
        let newest_first: Vec<&str> = lost.iter().rev().map(|(id, _)| id.as_str()).collect();
        assert_eq!(named, newest_first, "rows: {with_rows}");
        world.assert_is(&now);
        let again = world.capture();
        world.rewind(&durable);
        world.assert_is(&seen);
        world.rewind(&again);
        world.assert_is(&now);
    }
}

#[test]
fn the_store_is_checked_while_somebody_else_has_the_lock() {
    let world = World::new();
    captures(&world, 0, 2);
    let workspace = world.open();
    let other = piton_store::Store::open(&store(&world)).unwrap();
    let _lock = other.lock(std::time::Duration::ZERO).unwrap();
    assert!(workspace.verify(false).unwrap().sound);
    // What is there is found wanting all the same.
    let mut bytes = std::fs::read(pack(&world)).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    std::fs::write(pack(&world), bytes).unwrap();
    assert!(!workspace.verify(false).unwrap().sound);
}

/// A reader that is suspended in the middle of reading keeps the database's log from being folded. Every capture used to
/// wait ten seconds for it.
#[test]
fn a_suspended_reader_holds_up_no_capture_and_the_log_is_folded_once_it_is_gone() {
    let world = World::new();
    let mut captured = captures(&world, 0, 1);
    let reader = Connection::open(database(&world)).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    reader.query_row("SELECT count(*) FROM checkpoints", [], |_| Ok(())).unwrap();
    let log = || std::fs::metadata(beside(&world, "-wal")).unwrap().len();
    let mut n = 1;
    while log() < 3 << 20 {
        captured.extend(captures(&world, n, 1));
        n += 1;
        assert!(n < 2_000);
    }
    assert!(store(&world).join("log-stalled").exists(), "nobody tried to fold it: the test would test nothing");
    reader.execute_batch("COMMIT").unwrap();
    while log() > 1 << 20 {
        captured.extend(captures(&world, n, 1));
        n += 1;
        assert!(n < 4_000, "it is never folded");
    }
    assert!(!store(&world).join("log-stalled").exists());
    let every = captured.iter().step_by(captured.len() / 4).cloned().collect::<Vec<_>>();
    assert_all(&world, &every);
}

#[test]
fn every_checkpoint_that_needs_a_damaged_object_is_named() {
    let world = World::new();
    world.write("shared", "one content that is the same in all of them");
    let captured = captures(&world, 0, 3);
    world.write("shared", "another");
    captures(&world, 3, 1);
    let content = b"one content that is the same in all of them";
    let mut bytes = std::fs::read(pack(&world)).unwrap();
    let at = bytes.windows(content.len()).position(|w| w == content).expect("short contents are stored as they are");
    bytes[at] ^= 1;
    std::fs::write(pack(&world), bytes).unwrap();
    let found = world.open().verify(false).unwrap();
    let named: Vec<String> = found
        .damage
        .iter()
        .find_map(|damage| match damage {
            DamageView::Needed { checkpoints, path, .. } if path.path == "shared" => Some(checkpoints),
            _ => None,
        })
        .expect("it is named")
        .iter()
        .map(ToString::to_string)
        .collect();
    let mut expected: Vec<String> = captured.iter().map(|(id, _)| id.clone()).collect();
    expected.reverse();
    assert_eq!(named, expected);
}

/// One flipped bit in the length that the view states of a pack: it seemed to end in the middle of a record, what followed
/// seemed damaged, and the next capture moved it aside.
#[test]
fn a_wrong_length_in_the_database_takes_nothing_from_the_packs() {
    for wrong in ["length - 2048", "length - 1", "length + 512", "0"] {
        let world = World::new();
        let mut captured = captures(&world, 0, 7);
        let bytes = std::fs::read(pack(&world)).unwrap();
        let db = Connection::open(database(&world)).unwrap();
        db.execute(&format!("UPDATE packs SET length = {wrong}"), []).unwrap();
        drop(db);
        captured.extend(captures(&world, 7, 1));
        assert!(std::fs::read(pack(&world)).unwrap().starts_with(&bytes), "{wrong}: the pack was cut");
        assert!(!store(&world).join("aside").exists(), "{wrong}");
        assert_all(&world, &captured);
    }
}

/// The next number came from the view: one flipped bit there, and a capture took the number of another, in the packs too. Even
/// a view made from the packs alone then lacked one of the two.
#[test]
fn a_wrong_number_in_the_database_gives_no_number_twice() {
    for wrong in
        ["DELETE FROM records WHERE seq > (SELECT max(seq) FROM records) - 3", "UPDATE records SET seq = seq + 64"]
    {
        let world = World::new();
        let mut captured = captures(&world, 0, 5);
        Connection::open(database(&world)).unwrap().execute(wrong, []).unwrap();
        captured.extend(captures(&world, 5, 1));
        world.open().verify(true).unwrap();
        assert_all(&world, &captured);
        std::fs::remove_file(database(&world)).unwrap();
        assert_all(&world, &captured);
    }
}

/// A bit that flipped in the workspace's row got into the packs with the next record of it: a new line began, and every
/// checkpoint of before was another folder's.
#[test]
fn a_wrong_workspace_row_does_not_get_into_the_packs() {
    let world = World::new();
    let captured = captures(&world, 0, 2);
    let db = Connection::open(database(&world)).unwrap();
    db.execute("UPDATE workspaces SET json = replace(json, '\"inode\":', '\"inode\":1')", []).unwrap();
    drop(db);
    let line = world.open().line();
    let more = captures(&world, 2, 1);
    assert_eq!(world.open().line(), line);
    assert!(captured.iter().chain(&more).all(|(id, _)| ids(&world).contains(id)));
    assert!(world.open().verify(true).unwrap().repaired);
    assert_all(&world, &captured);
}

/// Zeroes from the end of one transaction to the beginning of the next, as a bad sector leaves them: the commit record of the
/// first, and some of what the second covers.
fn bad_sector(world: &World, ends: u64) {
    let mut bytes = std::fs::read(pack(world)).unwrap();
    let from = (ends / 512 * 512) as usize;
    bytes[from..from + 512].fill(0);
    std::fs::write(pack(world), bytes).unwrap();
}

#[test]
fn a_bad_sector_across_two_transactions_costs_only_what_was_in_it() {
    for lose_the_view in [false, true] {
        let world = World::new();
        let mut captured = captures(&world, 0, 3);
        let ends = std::fs::metadata(pack(&world)).unwrap().len();
        captured.extend(captures(&world, 3, 4));
        bad_sector(&world, ends);
        if lose_the_view {
            std::fs::remove_file(database(&world)).unwrap();
        }
        assert!(!world.open().verify(true).unwrap().sound);
        let hit = 2..4;
        let listed = ids(&world);
        let is_hit = |n: &usize| hit.contains(n);
        for (n, (id, _)) in captured.iter().enumerate().filter(|(n, _)| !is_hit(n)) {
            assert!(listed.contains(id), "capture {n} is gone");
        }
        world.rewind(&captured[0].0);
        world.assert_is(&captured[0].1);
        assert!(!store(&world).join("aside").exists(), "no power was cut");
        // Nor does the next run of the machine take it for that, without the view that knew better.
        std::fs::remove_file(database(&world)).unwrap();
        let later = piton_host::clock::in_another_run("a later run", || ids(&world));
        assert!(listed.iter().all(|id| later.contains(id)));
        assert!(!store(&world).join("aside").exists(), "no power was cut");
    }
}

/// One damaged blob after what an older view knows: everything from there on used to be moved aside as a power cut's traces.
#[test]
fn a_damaged_object_and_a_lost_log_cost_only_that_object() {
    let world = World::new();
    let mut captured = captures(&world, 0, 2);
    fold(&world);
    captured.extend(captures(&world, 2, 5));
    let mut bytes = std::fs::read(pack(&world)).unwrap();
    let at = bytes.windows(6).position(|w| w == b"file 3").unwrap();
    bytes[at] ^= 1;
    std::fs::write(pack(&world), bytes).unwrap();
    for end in ["-wal", "-shm"] {
        std::fs::remove_file(beside(&world, end)).unwrap();
    }
    captured.extend(captures(&world, 7, 1));
    let listed = ids(&world);
    assert!(captured.iter().all(|(id, _)| listed.contains(id)));
    assert!(!store(&world).join("aside").exists());
}

/// What a view knew of a pack and the pack no longer has is noted before the view is made anew: it is the last that knows.
#[test]
fn a_pack_that_was_cut_between_two_transactions_or_deleted_is_named_until_the_note_is_deleted() {
    for keep in [2, 0] {
        let world = World::new();
        let captured = captures(&world, 0, 2);
        let length = std::fs::metadata(pack(&world)).unwrap().len();
        let lost = captures(&world, 2, 3);
        if keep == 0 {
            std::fs::remove_file(pack(&world)).unwrap();
        } else {
            std::fs::File::options().write(true).open(pack(&world)).unwrap().set_len(length).unwrap();
        }
        let found = world.open().verify(false).unwrap();
        assert!(!found.sound);
        let [DamageView::Gone { checkpoints, file, .. }] = &found.damage[..] else { panic!("{:?}", found.damage) };
        let named: Vec<String> = checkpoints.iter().map(ToString::to_string).collect();
        let mut expected: Vec<String> = captured[keep..].iter().chain(&lost).map(|(id, _)| id.clone()).collect();
        expected.reverse();
        assert_eq!(named, expected);
        captures(&world, 9, 1);
        assert!(!world.open().verify(false).unwrap().sound, "a capture does not make it good");
        std::fs::remove_file(file).unwrap();
        world.assert_sound();
        if keep > 0 {
            assert_all(&world, &captured);
        }
    }
}

/// Its own record is the first in the packs, and the only one that says whose they are.
#[test]
fn a_damaged_workspace_record_is_written_again_from_its_copy() {
    let world = World::new();
    let captured = captures(&world, 0, 3);
    let mut bytes = std::fs::read(pack(&world)).unwrap();
    bytes[150] ^= 1;
    std::fs::write(pack(&world), bytes).unwrap();
    assert!(!world.open().verify(true).unwrap().sound, "the damage stays named");
    std::fs::remove_file(database(&world)).unwrap();
    std::fs::remove_file(store(&world).join("workspace.json")).unwrap();
    for (id, seen) in &captured {
        world.rewind(id);
        world.assert_is(seen);
    }
}

/// A bit of the view that flipped must not decide what a rewind puts in place: the packs say what was captured.
#[test]
fn a_rewind_goes_by_the_record_of_its_checkpoint() {
    for wrong in ["mode = mode | 2", "tree = (SELECT tree FROM checkpoints ORDER BY seq DESC LIMIT 1)"] {
        let world = World::new();
        world.write("a", "1");
        let id = world.capture();
        let before = world.snapshot();
        world.write("a", "2");
        world.capture();
        let view = piton_store::database_file(world.open().store_folder()).unwrap();
        let db = rusqlite::Connection::open(view).unwrap();
        let sql = format!("UPDATE checkpoints SET {wrong} WHERE seq = (SELECT min(seq) FROM checkpoints)");
        assert_eq!(db.execute(&sql, []).unwrap(), 1);
        drop(db);
        world.rewind(&id);
        world.assert_is(&before);
        world.assert_sound();
    }
}
