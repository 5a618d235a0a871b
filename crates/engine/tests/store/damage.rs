//! A damaged store: what is wrong is found and named, it costs only what needs it, and nothing wrong is ever served.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use piton_engine::model::WorkspacePath;
use piton_engine::view::DamageView;
use piton_engine::{
    CaptureOptions, Carry, Choice, DiffOptions, OperationError, RedoOptions, RewindOptions, UndoOptions, Which,
};
use piton_testkit::{Agent, World, as_ordinary_user, git, noise};
use rusqlite::Connection;

/// A store with one of everything: names, annotations, an operation, a large file, a symlink.
fn full() -> (World, Vec<String>) {
    let world = World::new();
    world.write("a", "first content of a").write("dir/b", "b").link("l", "a");
    let mut ids = vec![named(&world, "one")];
    world.write("a", "second content of a").write("c", "c");
    ids.push(named(&world, "two"));
    world.rewind(&ids[0]);
    world.write("d", "d");
    ids.push(named(&world, "three"));
    (world, ids)
}

fn named(world: &World, name: &str) -> String {
    let options =
        CaptureOptions { name: Some(name.into()), annotation: Some(format!("note on {name}")), ..Default::default() };
    world.open().capture(&options).unwrap().checkpoint.checkpoint.id.to_string()
}

fn store(world: &World) -> PathBuf {
    world.open().store_folder().to_owned()
}

/// The store's folder, found without opening the workspace, which would end what is pending.
fn unopened(world: &World) -> PathBuf {
    world.base().join("home/workspaces").read_dir().unwrap().next().unwrap().unwrap().path()
}

fn pack(world: &World) -> PathBuf {
    store(world).join("packs/000001.pack")
}

fn database(world: &World) -> Connection {
    Connection::open(piton_store::database_file(&store(world)).unwrap()).unwrap()
}

/// Everything that the timeline tells, for comparing before and after.
fn timeline(world: &World) -> String {
    let workspace = world.open();
    let log = workspace.log(Default::default()).unwrap();
    let shown: Vec<_> = log.checkpoints.iter().map(|c| workspace.show(c.id.as_str()).unwrap()).collect();
    serde_json::to_string_pretty(&(log, shown)).unwrap()
}

#[test]
fn a_flipped_bit_in_any_live_record_of_a_pack_is_found() {
    let (world, _) = full();
    let pack = pack(&world);
    let bytes = std::fs::read(&pack).unwrap();
    world.assert_sound();
    let workspace = world.open();
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 1 << (at % 8);
        std::fs::write(&pack, &bad).unwrap();
        let found = workspace.verify(false).unwrap();
        assert!(!found.sound, "byte {at} of {}", bytes.len());
        let near =
            |d: &DamageView| matches!(d, DamageView::Pack { from, to, .. } if (*from..*to).contains(&(at as u64)));
        assert!(found.damage.iter().any(near), "byte {at} is not named: {:?}", found.damage);
    }
    std::fs::write(&pack, &bytes).unwrap();
    world.assert_sound();
}

#[test]
fn a_changed_value_in_any_row_is_found() {
    let (world, _) = full();
    let workspace = world.open();
    let db = database(&world);
    db.execute_batch("INSERT INTO objects SELECT * FROM fresh_objects").unwrap();
    spread(&db);
    world.assert_sound();
    let tables = [
        "objects",
        "fresh_objects",
        "records",
        "workspaces",
        "checkpoints",
        "names",
        "annotations",
        "operations",
        "packs",
        "meta",
    ];
    let mut tried = 0;
    for table in tables {
        let columns: Vec<String> = db
            .prepare(&format!("SELECT name FROM pragma_table_info('{table}')"))
            .unwrap()
            .query_map([], |r| r.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let rows: i64 = db.query_row(&format!("SELECT count(*) FROM {table}"), [], |r| r.get(0)).unwrap();
        assert!(rows > 0, "{table} is empty: the test would test nothing");
        for column in &columns {
            // What the store itself counts with, and no record says: any value that could be one is taken for one.
            if matches!((table, &column[..]), ("packs", "synced") | ("meta", "value")) {
                continue;
            }
            for row in 0..rows {
                let key = &columns[0];
                let changed = db.execute(
                    &format!(
                        "UPDATE {table} SET {column} = CASE typeof({column}) WHEN 'integer' THEN {column} + 1000
                         WHEN 'blob' THEN randomblob(32) WHEN 'null' THEN 'kkkkkkkkkkkkkkkk' ELSE {column} || 'k' END
                         WHERE {key} = (SELECT {key} FROM {table} ORDER BY {key} LIMIT 1 OFFSET {row})"
                    ),
                    [],
                );
                assert_eq!(changed.unwrap(), 1);
                let found = workspace.verify(false).map(|f| !f.sound).unwrap_or(true);
                assert!(found, "{table}.{column} of row {row} was changed and nobody noticed");
                tried += 1;
                restore(&db, &world);
            }
        }
        // A row that is gone.
        let key = &columns[0];
        if table != "meta" {
            db.execute(&format!("DELETE FROM {table} WHERE {key} = (SELECT min({key}) FROM {table})"), []).unwrap();
            assert!(workspace.verify(false).map(|f| !f.sound).unwrap_or(true), "a row of {table} is gone");
            restore(&db, &world);
        }
    }
    assert!(tried > 100, "{tried}");
    world.assert_sound();
}

/// Puts every table back as it was at the first call.
fn restore(db: &Connection, world: &World) {
    let copy = world.base().join("copy.db");
    if !copy.exists() {
        // The first call comes after one change: make the copy from a store that was rebuilt from its packs.
        let fresh = world.base().join("fresh");
        std::fs::create_dir_all(fresh.join("packs")).unwrap();
        std::fs::copy(pack_of(db), fresh.join("packs/000001.pack")).unwrap();
        drop(piton_store::Store::open(&fresh).unwrap());
        std::fs::copy(piton_store::database_file(&fresh).unwrap(), &copy).unwrap();
    }
    db.execute("ATTACH ?1 AS copy", [copy.to_str().unwrap()]).unwrap();
    for table in ["objects", "records", "workspaces", "checkpoints", "names", "annotations", "operations", "packs"] {
        db.execute_batch(&format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM copy.{table};")).unwrap();
    }
    db.execute_batch("UPDATE meta SET key = 'file' WHERE key = 'filek'").unwrap();
    db.execute_batch("DELETE FROM meta WHERE key NOT IN ('boot', 'index', 'file'); DETACH copy;").unwrap();
    spread(db);
    db.execute("INSERT OR IGNORE INTO meta VALUES ('boot', '')", []).unwrap();
}

/// Some rows of objects are where they belong for good, the others still wait, as the store has them.
fn spread(db: &Connection) {
    db.execute_batch(
        "DELETE FROM fresh_objects; INSERT INTO fresh_objects SELECT * FROM objects ORDER BY id LIMIT -1 OFFSET 3;
         DELETE FROM objects WHERE id IN (SELECT id FROM fresh_objects)",
    )
    .unwrap();
}

fn pack_of(db: &Connection) -> PathBuf {
    PathBuf::from(db.path().unwrap()).parent().unwrap().join("packs/000001.pack")
}

#[test]
fn a_deleted_or_damaged_database_is_rebuilt_from_the_packs() {
    type Break = fn(&std::path::Path);
    let breaks: [(&str, Break); 5] = [
        ("deleted", |db| std::fs::remove_file(db).unwrap()),
        ("emptied", |db| std::fs::write(db, "").unwrap()),
        ("garbage", |db| std::fs::write(db, vec![7; 50_000]).unwrap()),
        ("a damaged first page", |db| {
            let mut bytes = std::fs::read(db).unwrap();
            bytes[100..900].fill(0x5a);
            std::fs::write(db, bytes).unwrap();
        }),
        ("a table is gone", |db| Connection::open(db).unwrap().execute_batch("DROP TABLE packs").unwrap()),
    ];
    for (how, damage) in breaks {
        let (world, ids) = full();
        let before = timeline(&world);
        let db = piton_store::database_file(&store(&world)).unwrap();
        Connection::open(&db).unwrap().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        damage(&db);
        assert_eq!(timeline(&world), before, "{how}");
        world.assert_sound();
        world.rewind(&ids[1]);
        assert_eq!(world.snapshot().bytes("a"), Some(&b"second content of a"[..]), "{how}");
        world.open().resolve("two").unwrap();
        world.redo();
    }
}

#[test]
fn a_lost_log_of_the_database_costs_only_what_was_not_durable() {
    let (world, ids) = full();
    let sync = CaptureOptions { sync: true, ..Default::default() };
    world.open().capture(&sync).unwrap();
    let before = timeline(&world);
    let db = piton_store::database_file(&store(&world)).unwrap();
    for end in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", db.display()));
    }
    assert_eq!(timeline(&world), before);
    world.rewind(&ids[1]);
    world.assert_sound();
}

#[test]
fn a_damaged_object_costs_only_what_needs_it_and_is_named() {
    let (world, ids) = full();
    let pack = pack(&world);
    let content = b"second content of a";
    let mut bytes = std::fs::read(&pack).unwrap();
    let at = bytes.windows(content.len()).position(|w| w == content).expect("short contents are stored as they are");
    bytes[at + 3] ^= 0x10;
    std::fs::write(&pack, &bytes).unwrap();

    let now = world.snapshot();
    let found = world.open().verify(false).unwrap();
    let named = |d: &DamageView| matches!(d, DamageView::Needed { path, .. } if path.path == "a");
    assert!(found.damage.iter().any(named), "{:?}", found.damage);
    // The checkpoint that needs it: nothing is written, least of all something wrong.
    let error = world.open().rewind_now(&ids[1], &RewindOptions::default()).unwrap_err();
    assert!(matches!(error, OperationError::RolledBack { .. }), "{error}");
    world.assert_is(&now);
    // Its other files, and the other checkpoints.
    let options = RewindOptions {
        paths: vec![piton_engine::model::WorkspacePath::new("c").unwrap()],
        ..RewindOptions::default()
    };
    world.open().rewind_now(&ids[1], &options).unwrap();
    assert_eq!(world.snapshot().bytes("c"), Some(&b"c"[..]));
    world.rewind(&ids[0]);
    assert_eq!(world.snapshot().bytes("a"), Some(&b"first content of a"[..]));
}

#[test]
fn a_damaged_object_is_stored_again_once_it_is_found_damaged_and_the_workspace_still_has_it() {
    let (world, ids) = full();
    world.rewind(&ids[1]);
    let pack = pack(&world);
    let content = b"second content of a";
    let mut bytes = std::fs::read(&pack).unwrap();
    let at = bytes.windows(content.len()).position(|w| w == content).unwrap();
    bytes[at] ^= 0x10;
    std::fs::write(&pack, &bytes).unwrap();
    assert!(world.open().verify(true).unwrap().repaired);
    world.capture();
    world.write("a", "third");
    world.rewind(&ids[1]);
    assert_eq!(world.snapshot().bytes("a"), Some(&content[..]));
}

#[test]
fn a_power_cut_takes_nothing_that_was_durable_and_nothing_wrong_is_served() {
    // What the disk may have of the bytes that were never synced.
    type Loss = fn(&mut Vec<u8>, usize);
    let losses: [(&str, Loss); 5] = [
        ("all gone", |bytes, synced| bytes.truncate(synced)),
        ("half gone", |bytes, synced| bytes.truncate(synced + (bytes.len() - synced) / 2)),
        ("zeros", |bytes, synced| bytes[synced..].fill(0)),
        ("the first block zeros", |bytes, synced| {
            let end = (synced + 120).min(bytes.len());
            bytes[synced..end].fill(0);
        }),
        ("one bit", |bytes, synced| {
            let at = synced + (bytes.len() - synced) / 2;
            bytes[at] ^= 1;
        }),
    ];
    for (how, lose) in losses {
        let world = World::new();
        world.write("a", "durable a").write("b", "durable b");
        let synced = CaptureOptions { sync: true, ..Default::default() };
        let durable = world.open().capture(&synced).unwrap().checkpoint.checkpoint.id.to_string();
        let after_durable = world.snapshot();
        let synced = std::fs::metadata(pack(&world)).unwrap().len() as usize;
        world.write("a", "unsynced a").write("new", "unsynced new");
        let lost = world.capture();
        let workspace = world.snapshot();

        let mut bytes = std::fs::read(pack(&world)).unwrap();
        assert!(bytes.len() > synced, "the second capture wrote nothing: the test would test nothing");
        let db = database(&world);
        lose(&mut bytes, synced);
        std::fs::write(pack(&world), bytes).unwrap();
        db.execute("UPDATE meta SET value = 'the run of the machine before' WHERE key = 'boot'", []).unwrap();
        drop(db);

        // Nothing wrong is served: what is left of the lost checkpoint comes back whole or not at all.
        let now = world.snapshot();
        match world.open().rewind_now(&lost, &RewindOptions::default()) {
            Ok(_) => world.assert_is(&workspace),
            Err(_) => world.assert_is(&now),
        }
        // The present is captured whole, and not by trusting rows whose bytes are gone.
        let again = world.capture();
        world.remove("new").write("a", "x");
        world.rewind(&again);
        world.assert_is(&workspace);
        world.rewind(&durable);
        world.assert_is(&after_durable);
        eprintln!("{how}: fine");
    }
}

#[test]
fn bytes_after_the_last_committed_record_are_garbage() {
    let (world, ids) = full();
    use std::io::Write;
    let mut file = std::fs::File::options().append(true).open(pack(&world)).unwrap();
    file.write_all(&[0xaa; 5000]).unwrap();
    drop(file);
    world.assert_sound();
    world.write("more", "more");
    let id = world.capture();
    world.assert_sound();
    world.rewind(&ids[0]);
    world.rewind(&id);
    assert!(world.snapshot().has("more"));
}

#[test]
fn a_handle_from_before_a_rebuild_writes_nothing_and_costs_nothing() {
    let (world, ids) = full();
    let mut old = world.open();
    // Somebody repairs the store and captures, while another process sits at its question.
    let db = database(&world);
    db.execute("DELETE FROM names", []).unwrap();
    drop(db);
    assert!(world.open().verify(true).unwrap().repaired);
    world.write("after", "the repair");
    let id = world.capture();
    let now = world.snapshot();
    assert!(old.rewind_now(&ids[0], &RewindOptions::default()).is_err());
    assert!(old.capture(&CaptureOptions::default()).is_err());
    drop(old);
    world.assert_is(&now);
    world.assert_sound();
    world.rewind(&ids[0]);
    world.rewind(&id);
    world.assert_is(&now);
}

#[test]
fn a_pack_that_no_row_knows_is_garbage_for_a_rebuild_too() {
    let (world, _) = full();
    let stray = store(&world).join("packs/000002.pack");
    std::fs::copy(pack(&world), &stray).unwrap();
    world.write("more", "more");
    world.capture();
    assert!(!stray.exists());
    let before = timeline(&world);
    std::fs::remove_file(piton_store::database_file(&store(&world)).unwrap()).unwrap();
    assert_eq!(timeline(&world), before);
}

#[test]
fn a_pending_operation_whose_record_is_damaged_is_said_aloud_and_does_not_stand_in_the_way() {
    let pending = |world: &World| {
        let sql = "SELECT r.offset, o.id FROM operations o JOIN records r ON r.seq = o.seq WHERE o.state = 'pending'";
        let db = Connection::open(piton_store::database_file(&unopened(world)).unwrap());
        db.unwrap().query_row(sql, [], |r| Ok((r.get::<_, i64>(0)?, r.get::<_, String>(1)?))).ok()
    };
    let (world, (offset, id)) = (1..)
        .find_map(|step| {
            let (world, ids) = full();
            assert!(piton_host::fail::with(step, || world.rewind(&ids[1])).is_none(), "it never was pending");
            let found = pending(&world)?;
            Some((world, found))
        })
        .unwrap();
    let pack = unopened(&world).join("packs/000001.pack");
    let mut bytes = std::fs::read(&pack).unwrap();
    bytes[offset as usize + 70] ^= 1;
    std::fs::write(&pack, bytes).unwrap();
    let workspace = world.open();
    let [said] = workspace.recovered() else { panic!("{:?}", workspace.recovered()) };
    assert_eq!(said.operation.as_str(), id);
    assert!(said.damaged);
    drop(workspace);
    world.capture();
}

/// A rewind of last week used to be taken back when a bit of the record of its end flipped and the view was made anew.
#[test]
fn an_operation_whose_end_is_damaged_is_never_run_again() {
    for with_result in [true, false] {
        let world = World::new();
        world.write("a", "one").write("b", "one");
        let id = named(&world, "one");
        world.write("a", "two").write("b", "two").write("junk", "junk");
        named(&world, "two");
        world.rewind(&id);
        world.write("b", "work of days").write("junk", "made again");
        named(&world, "later");
        let now = world.snapshot();
        // The result checkpoint and the end are the last two records of the operation's transaction.
        let damaged: &[&str] = if with_result { &["ended"] } else { &["ended", "checkpoint"] };
        let seq: i64 = database(&world)
            .query_row("SELECT seq FROM checkpoints WHERE cause = 'operation'", [], |row| row.get(0))
            .unwrap();
        let pack = pack(&world);
        let mut bytes = std::fs::read(&pack).unwrap();
        for (record, number) in damaged.iter().zip([seq + 1, seq]) {
            let sql = "SELECT offset FROM records WHERE seq = ?1";
            let offset: i64 = database(&world).query_row(sql, [number], |row| row.get(0)).unwrap();
            bytes[offset as usize + 60] ^= 1;
            assert!(offset > 0, "{record}");
        }
        std::fs::write(&pack, &bytes).unwrap();
        assert!(!world.open().verify(true).unwrap().sound);
        let workspace = world.open();
        assert!(workspace.recovered().is_empty(), "{:?}", workspace.recovered());
        assert!(workspace.status().unwrap().pending.is_empty());
        drop(workspace);
        world.assert_is(&now);
        world.capture();
        world.assert_is(&now);
        if with_result {
            let outcome = world.open().redo_now(&RedoOptions::default()).unwrap_err();
            assert!(matches!(outcome, OperationError::Conflict(_)), "it stands, and can be taken back: {outcome}");
        }
    }
}

/// Recovery used to remove the restored file, though it was the last good copy, and then to fail for ever.
#[test]
fn recovery_keeps_the_last_good_copy_and_a_damaged_one_does_not_wedge_it() {
    let make = || {
        let world = World::new();
        world.write("g/g", "precious bytes of g").write("a", "a1");
        let id = world.capture();
        world.remove("g").write("a", "content of a in two").write("new", "new");
        world.capture();
        (world, id)
    };
    for damaged in ["precious bytes of g", "content of a in two"] {
        for step in 1.. {
            let (world, id) = make();
            if piton_host::fail::with(step, || world.rewind(&id)).is_some() {
                break;
            }
            let had = world.snapshot();
            let pack = unopened(&world).join("packs/000001.pack");
            let mut bytes = std::fs::read(&pack).unwrap();
            let at = bytes.windows(damaged.len()).position(|window| window == damaged.as_bytes()).unwrap();
            bytes[at + 3] ^= 1;
            std::fs::write(&pack, bytes).unwrap();
            world.write("new", "made again");
            let workspace = world.open();
            let pending = workspace.status().unwrap().pending;
            assert!(pending.is_empty(), "{damaged}, died at step {step}: {pending:?}");
            drop(workspace);
            world.write("later", "later");
            world.capture();
            // Whatever stood there, in its place or beside it, still stands there or is in the store.
            let is_had = had.contents().any(|bytes| bytes == damaged.as_bytes());
            let now = world.snapshot();
            let is_there = now.contents().any(|bytes| bytes == damaged.as_bytes());
            let needed = world.open().verify(false).unwrap().damage;
            let is_lost = needed.iter().any(|damage| matches!(damage, DamageView::Needed { .. }));
            assert!(!is_had || is_there || !is_lost, "{damaged}, died at step {step}: {needed:?}");
        }
    }
}

/// Every command used to fail for good.
#[test]
fn a_damaged_listing_wedges_no_recovery() {
    let make = || {
        let world = World::new();
        world.write("d/x", "x").write("d/deep/y", "y").write("f", "1");
        let id = world.capture();
        world.remove("d").write("f", "2").write("n/deep/x", "n");
        world.capture();
        (world, id)
    };
    let mut swapped = 0;
    for step in (1..).step_by(3) {
        let (world, id) = make();
        if piton_host::fail::with(step, || world.rewind(&id)).is_some() {
            break;
        }
        let is_swapped = world.snapshot().has("d/x");
        if !is_swapped {
            continue;
        }
        swapped += 1;
        drop(world);
        let objects: Vec<i64> = {
            let (world, _) = make();
            let db = database(&world);
            let mut query = db.prepare("SELECT offset FROM all_objects ORDER BY offset").unwrap();
            query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        };
        for offset in objects {
            let (world, id) = make();
            assert!(piton_host::fail::with(step, || world.rewind(&id)).is_none());
            world.write("d/x", "mine");
            let pack = unopened(&world).join("packs/000001.pack");
            let mut bytes = std::fs::read(&pack).unwrap();
            bytes[offset as usize + 60] ^= 1;
            std::fs::write(&pack, bytes).unwrap();
            let workspace = world.open();
            assert!(workspace.unended().is_none(), "step {step}, byte {offset}: {:?}", workspace.unended());
            drop(workspace);
            world.write("later", "later");
            world.capture();
            assert!(world.open().status().unwrap().pending.is_empty(), "step {step}, byte {offset}");
            assert_eq!(world.snapshot().bytes("d/x"), Some(&b"mine"[..]));
        }
    }
    assert!(swapped > 0);
}

/// `verify` used to look only for what checkpoints' trees hold, and called such a store sound.
#[test]
fn damaged_copies_that_no_tree_holds_are_named_with_what_needs_them() {
    let world = World::new();
    let elsewhere = world.base().join("elsewhere");
    std::fs::write(&elsewhere, "content from before the tool").unwrap();
    git(&world.path("."), &["init", "-q", "-b", "main"]);
    world.write("inside", "inside");
    let named = elsewhere.display().to_string();
    let agent = Agent::new(&world, "s");
    agent.edits("go", &[&named], |_| std::fs::write(&elsewhere, "content from after the tool").unwrap());
    world.write("staged", "content that only the index has");
    git(&world.path("."), &["add", "staged"]);
    world.write("staged", "as it is now");
    let id = world.capture();
    let options = UndoOptions {
        outside: true,
        choice: Choice { what: Some(Which::All), ..Choice::default() },
        ..UndoOptions::default()
    };
    world.open().undo_now(&options).unwrap();
    world.assert_sound();

    flip(&world, b"content from before the tool");
    flip(&world, b"content that only the index has");
    let found = world.open().verify(false).unwrap();
    assert!(!found.sound);
    let is = |wanted: &dyn Fn(&DamageView) -> bool| found.damage.iter().any(wanted);
    assert!(is(
        &|damage| matches!(damage, DamageView::GitState { checkpoints, .. } if checkpoints.iter().any(|c| c.as_str() == id))
    ));
    assert!(is(
        &|damage| matches!(damage, DamageView::OutsideOfStep { step, path, .. } if *path == named && (step.turn, step.step) == (1, 1))
    ));
    assert!(is(&|damage| matches!(damage, DamageView::OutsideOfOperation { path, .. } if *path == named)));

    // The state itself, which used to be told as "no git state".
    flip_object(
        &world,
        "SELECT offset FROM all_objects o JOIN checkpoints c ON c.git = o.id ORDER BY c.seq DESC LIMIT 1",
    );
    let error = world.open().rewind_now(&id, &RewindOptions { git: true, ..RewindOptions::default() }).unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
    let shown = world.open().show(&id).unwrap();
    assert!(shown.git.unwrap().incomplete.is_some());
}

#[test]
fn whichever_object_is_damaged_verify_names_what_needs_it() {
    let world = World::new();
    let elsewhere = world.base().join("elsewhere");
    std::fs::write(&elsewhere, "content from before the tool").unwrap();
    git(&world.path("."), &["init", "-q", "-b", "main"]);
    world.write("inside", "inside").write("large", noise(7, 2 << 20)).write("folder/inner", "inner");
    let named = elsewhere.display().to_string();
    let agent = Agent::new(&world, "s");
    agent.edits("go", &[&named, "inside"], |_| {
        std::fs::write(&elsewhere, "content from after the tool").unwrap();
        world.write("inside", "by the tool").write("made/by/it", "made");
    });
    world.write("staged", "content that only the index has");
    git(&world.path("."), &["add", "staged"]);
    world.write("staged", "as it is now");
    world.capture();
    let options = UndoOptions {
        outside: true,
        choice: Choice { what: Some(Which::All), ..Choice::default() },
        ..UndoOptions::default()
    };
    world.open().undo_now(&options).unwrap();
    world.assert_sound();

    let last_bytes: Vec<i64> = {
        let db = database(&world);
        let mut query = db.prepare("SELECT offset + length - 1 FROM all_objects ORDER BY offset").unwrap();
        query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    assert!(last_bytes.len() > 15, "{}", last_bytes.len());
    let whole = std::fs::read(pack(&world)).unwrap();
    for at in last_bytes {
        let mut bytes = whole.clone();
        bytes[at as usize] ^= 0x10;
        std::fs::write(pack(&world), &bytes).unwrap();
        let found = world.open().verify(false).unwrap();
        let names_need = |damage: &DamageView| {
            matches!(
                damage,
                DamageView::Needed { .. }
                    | DamageView::GitState { .. }
                    | DamageView::Transcript { .. }
                    | DamageView::OutsideOfStep { .. }
                    | DamageView::OutsideOfOperation { .. }
                    | DamageView::Operation { .. }
            )
        };
        assert!(found.damage.iter().any(names_need), "the object that ends at {at}: {:?}", found.damage);
    }
    std::fs::write(pack(&world), &whole).unwrap();
    world.assert_sound();
}

/// Flips a bit in every place of the pack that holds these bytes.
fn flip(world: &World, content: &[u8]) {
    let pack = pack(world);
    let mut bytes = std::fs::read(&pack).unwrap();
    let places: Vec<_> = (0..bytes.len() - content.len()).filter(|at| bytes[*at..].starts_with(content)).collect();
    assert!(!places.is_empty(), "short contents are stored as they are");
    places.iter().for_each(|at| bytes[*at + 3] ^= 0x10);
    std::fs::write(&pack, &bytes).unwrap();
}

/// Flips a bit in the payload of an object.
fn flip_object(world: &World, sql: &str) {
    let offset: i64 = database(world).query_row(sql, [], |row| row.get(0)).unwrap();
    let pack = pack(world);
    let mut bytes = std::fs::read(&pack).unwrap();
    bytes[offset as usize + 60] ^= 0x10;
    std::fs::write(&pack, &bytes).unwrap();
}

/// Two states, and of the second one the store has several files only damaged: the workspace has the only good copies.
fn only_copies() -> (World, String) {
    let world = World::new();
    world.write("replaced", "as it was").write("same", "same");
    let id = world.capture();
    let large = noise(7, 2 << 20);
    world.write("replaced", "the only good copy of this file").write("deleted", "the only good copy of that file");
    world
        .write("folder/deep/inner", "the only good copy in a folder")
        .write("folder/other", "other")
        .write("large", &large);
    world.capture();
    flip(&world, b"the only good copy of this file");
    flip(&world, b"the only good copy of that file");
    flip(&world, b"the only good copy in a folder");
    flip(&world, &large[1_500_000..1_500_032]);
    // The listing of the root, which the stat cache has as well.
    flip_object(
        &world,
        "SELECT offset FROM all_objects o JOIN checkpoints c ON c.tree = o.id ORDER BY c.seq DESC LIMIT 1",
    );
    (world, id)
}

#[test]
fn what_comes_out_of_a_swap_is_stored_again_where_its_stored_copy_is_damaged() {
    let (world, id) = only_copies();
    let before = world.snapshot();
    let outcome = world.rewind(&id);
    assert!(outcome.verified);
    assert_eq!(world.snapshot().len(), 2);
    world.redo();
    world.assert_is(&before);
    // It is whole for good.
    world.rewind(&id);
    let again = world.redo();
    assert!(again.verified);
    world.assert_is(&before);
}

#[test]
fn a_crash_at_any_step_does_not_lose_the_only_good_copy() {
    for step in 1.. {
        let (world, id) = only_copies();
        let before = world.snapshot();
        if piton_host::fail::with(step, || drop(world.rewind(&id))).is_some() {
            assert!(step > 30, "only {step} steps: are the failpoints there?");
            break;
        }
        drop(world.open());
        if world.snapshot() != before {
            world.redo();
        }
        world.assert_is(&before);
    }
}

#[test]
fn with_partial_everything_but_what_is_damaged_comes_back_and_without_it_the_refusal_names_it() {
    let world = World::new();
    world.write("a", "first content of a").write("b", "first content of b").write("dir/c", "first content of c");
    world.write("gone/d", "first content of d").write("gone/e", "first content of e");
    let id = world.capture();
    world.write("a", "second a").write("b", "second b").write("dir/c", "second c").remove("gone");
    world.capture();
    flip(&world, b"first content of a");
    flip(&world, b"first content of d");
    let before = world.snapshot();
    match world.open().rewind_now(&id, &RewindOptions::default()).unwrap_err() {
        OperationError::RolledBack { reason, damaged, .. } => {
            let named: Vec<_> = damaged.iter().map(|path| path.display().to_string()).collect();
            assert_eq!(named, ["a", "gone/d"]);
            assert!(reason.contains("`a`") && reason.contains("`gone/d`") && reason.contains("damaged"), "{reason}");
        }
        other => panic!("{other}"),
    }
    world.assert_is(&before);

    let settle = piton_engine::Settle { partial: true, ..Default::default() };
    let partial = RewindOptions { settle, ..RewindOptions::default() };
    let outcome = world.open().rewind_now(&id, &partial).unwrap();
    let left: Vec<_> = outcome.skipped.iter().map(|one| (&one.path.path[..], one.reason.describe())).collect();
    assert_eq!(left, [("a", "damaged in the store"), ("gone/d", "damaged in the store")]);
    let not_done: Vec<_> = outcome.not_done.iter().map(|one| &one.path.path[..]).collect();
    assert_eq!((not_done, outcome.verified), (vec!["a", "gone/d"], false));
    let again = world.open().rewind_now(&id, &partial).unwrap();
    assert!(again.operation.is_none() && !again.verified, "it is not as it was: {again:?}");
    let now = world.snapshot();
    for (path, content) in [
        ("a", "second a"),
        ("b", "first content of b"),
        ("dir/c", "first content of c"),
        ("gone/e", "first content of e"),
    ] {
        assert_eq!(now.bytes(path), Some(content.as_bytes()), "{path}");
    }
    assert_eq!(now.bytes("gone/d"), None);
    world.redo();
    world.assert_is(&before);

    // A listing that is damaged costs what it lists.
    let listing = listing_of(&world, "c", "first content of c");
    flip_object(&world, &format!("SELECT offset FROM all_objects WHERE hex(id) = '{listing}'"));
    world.remove("dir").write("dir", "a file now");
    match world.open().rewind_now(&id, &of("dir")).unwrap_err() {
        OperationError::RolledBack { damaged, .. } => assert_eq!(damaged[0].display().to_string(), "dir"),
        other => panic!("{other}"),
    }
    let outcome = world.open().rewind_now(&id, &partial).unwrap();
    let left: Vec<_> = outcome.skipped.iter().map(|one| &one.path.path[..]).collect();
    assert_eq!(left, ["a", "dir", "gone/d"]);
    assert_eq!(world.snapshot().bytes("b"), Some(&b"first content of b"[..]));
    assert_eq!(world.snapshot().bytes("dir"), Some(&b"a file now"[..]));
}

#[test]
fn with_partial_and_edits_carried_over_what_is_damaged_stays_and_no_edit_is_lost() {
    let world = World::new();
    world.write("lost", "the lost first content").write("back", "back as it was").write("merged", "1\n2\n3\n4\n5\n");
    let agent = Agent::new(&world, "s");
    agent.edits("first", &["lost", "back", "merged", "new/theirs"], |w| {
        w.write("lost", "agent").write("back", "agent").write("merged", "agent\n2\n3\n4\n5\n").write("new/theirs", "x");
    });
    // One edit is on what is damaged, one needs something damaged to be merged, and so does one of a new file.
    world
        .write("lost", "agent, and the user")
        .write("merged", "agent\n2\n3\n4\nuser\n")
        .write("new/mine", "in between\n");
    agent.edits("second", &["new/mine"], |w| {
        w.write("new/mine", "agent\nin between\n");
    });
    world.write("new/mine", "agent\nin between\nmine\n");
    world.capture();
    flip(&world, b"the lost first content");
    flip(&world, b"agent\n2\n3\n4\n5\n");
    flip(&world, b"in between\n");
    let before = world.snapshot();
    for options in [
        RewindOptions { carry: Carry::Mine, ..RewindOptions::default() },
        RewindOptions { carry: Carry::Others, ..RewindOptions::default() },
    ] {
        let refused = world.open().rewind_now("t1", &options).unwrap_err();
        assert!(refused.to_string().contains("damaged"), "{refused}");
        world.assert_is(&before);
        let settle = piton_engine::Settle { partial: true, ..Default::default() };
        let outcome = world.open().rewind_now("t1", &RewindOptions { settle, ..options }).unwrap();
        let left: Vec<_> = outcome.skipped.iter().map(|one| (&one.path.path[..], one.reason.describe())).collect();
        assert_eq!(left, ["lost", "merged", "new"].map(|path| (path, "damaged in the store")));
        let now = world.snapshot();
        for (path, content) in
            [("lost", "agent, and the user"), ("back", "back as it was"), ("merged", "agent\n2\n3\n4\nuser\n")]
        {
            assert_eq!(now.bytes(path), Some(content.as_bytes()), "{path}");
        }
        assert_eq!(now.bytes("new/mine"), Some(&b"agent\nin between\nmine\n"[..]));
        world.redo();
        world.assert_is(&before);
    }
}

fn of(path: &str) -> RewindOptions {
    let paths = vec![piton_engine::model::WorkspacePath::new(path).unwrap()];
    RewindOptions { paths, ..RewindOptions::default() }
}

/// The id of the listing of a folder with one file, in hex.
fn listing_of(world: &World, name: &str, content: &str) -> String {
    use std::os::unix::fs::PermissionsExt;

    use piton_engine::model::{Entry, EntryName, ObjectId, Tree};
    let mode = std::fs::metadata(world.path("b")).unwrap().permissions().mode() & 0o7777;
    let (size, blob) = (content.len() as u64, ObjectId::of_blob(content.as_bytes()));
    let mut tree = Tree::default();
    tree.set(EntryName::new(name.as_bytes()).unwrap(), Some(Entry::File { mode: mode as u16, size, blob }));
    ObjectId::of_tree(&tree.encode()).0.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// A capture looked only for a row: content that came back to a file was taken as stored, though what is stored is damaged.
#[test]
fn a_capture_stores_again_what_it_reads_and_the_store_has_damaged() {
    let world = World::new();
    world.write("a", "first content of a").write("large", noise(7, 3 << 20)).write("dir/b", "b");
    world.capture();
    let seen = world.snapshot();
    world.write("a", "second content of a").write("large", "small").write("dir/b", "other");
    world.capture();
    flip(&world, b"first content of a");
    flip(&world, &noise(7, 3 << 20)[1_000..1_100]);
    world.write("a", "first content of a").write("large", noise(7, 3 << 20)).write("dir/b", "b");
    let again = world.capture();
    world.write("a", "3").write("large", "3");
    world.capture();
    world.rewind(&again);
    world.assert_is(&seen);
}

/// Who only reads does not wait for an operation that another process carries out, and who captures in another workspace
/// of the same session does not either.
#[test]
fn opening_a_workspace_does_not_wait_for_the_operation_that_is_under_way() {
    let pending = |world: &World| {
        let db = Connection::open(piton_store::database_file(&unopened(world)).unwrap()).unwrap();
        let sql = "SELECT count(*) FROM operations WHERE state = 'pending'";
        db.query_row(sql, [], |r| r.get::<_, u32>(0)).unwrap() > 0
    };
    let world = (1..)
        .find_map(|step| {
            let (world, ids) = full();
            assert!(piton_host::fail::with(step, || world.rewind(&ids[1])).is_none(), "it never was pending");
            pending(&world).then_some(world)
        })
        .unwrap();
    let lock = piton_host::Lock::take(&unopened(&world).join("lock"), std::time::Duration::ZERO).unwrap().unwrap();
    let begun = std::time::Instant::now();
    let workspace = world.open();
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(workspace.recovered().is_empty());
    // A plan that is made now would say that half of it is done already.
    assert!(matches!(workspace.unended(), Some(piton_engine::RecoverError::UnderWay { .. })));
    assert!(workspace.log(Default::default()).unwrap().checkpoints.len() >= 3);
    drop((workspace, lock));
    assert!(pending(&world));
    assert_eq!(world.open().recovered().len(), 1);
}

/// Root looked once, and the database that it made anew was root's: every event of the user was a gap from then on.
#[test]
fn a_database_that_may_only_be_read_is_made_anew_by_whoever_captures() {
    use std::os::unix::fs::PermissionsExt;
    piton_testkit::as_ordinary_user(|| {
        let world = World::new();
        world.write("a", "1");
        let first = world.capture();
        let view = piton_store::database_file(&store(&world)).unwrap();
        std::fs::set_permissions(&view, std::fs::Permissions::from_mode(0o444)).unwrap();
        world.write("a", "2");
        world.capture();
        assert_ne!(piton_store::database_file(&store(&world)).unwrap(), view);
        world.rewind(&first);
        world.assert_sound();
    });
}

/// A folder that could not be read for a moment (a permission, an automounter) was taken for packs that are gone, and `verify`
/// named all checkpoints as lost for good.
#[test]
fn a_pack_that_cannot_be_looked_at_is_not_gone() {
    as_ordinary_user(|| {
        let (world, _) = full();
        let packs = store(&world).join("packs");
        let set_mode = |mode| std::fs::set_permissions(&packs, PermissionsExt::from_mode(mode)).unwrap();
        set_mode(0o000);
        let refused = world.engine.open(&world.ws()).err().map(|error| error.to_string());
        set_mode(0o700);
        assert!(refused.as_deref().is_some_and(|why| why.contains("Permission denied")), "{refused:?}");
        world.assert_sound();
        assert!(!store(&world).join("aside").exists());
    });
}

#[test]
fn what_was_gone_and_was_put_back_is_no_longer_named() {
    let (world, _) = full();
    let pack = pack(&world);
    let whole = std::fs::read(&pack).unwrap();
    std::fs::write(&pack, &whole[..whole.len() / 2]).unwrap();
    let is_gone = |damage: &DamageView| matches!(damage, DamageView::Gone { .. });
    assert!(world.open().verify(false).unwrap().damage.iter().any(is_gone));
    std::fs::write(&pack, &whole).unwrap();
    world.open().verify(true).unwrap();
    world.assert_sound();
}

/// One folder's listing is damaged: everything else is shown, and the folder is named.
#[test]
fn a_checkpoint_with_a_damaged_folder_is_shown_and_compared_but_for_that_folder() {
    let world = World::new();
    world.write("good/deep/f", "1").write("bad/x", "old").write("top", "1").write("b", "b");
    let first = world.capture();
    world.write("good/deep/f", "2").write("bad/x", "new").write("top", "2");
    let listing = listing_of(&world, "x", "new");
    let second = world.capture();
    world.write("top", "3").write("bad/x", "newer");
    let third = world.capture();
    flip_object(&world, &format!("SELECT offset FROM all_objects WHERE hex(id) = '{listing}'"));
    let workspace = world.open();

    for id in [&second, &third] {
        let shown = workspace.show(id).unwrap();
        assert_eq!(shown.unreadable.iter().map(|path| &path.path[..]).collect::<Vec<_>>(), ["bad"], "{id}");
        assert!(shown.files.iter().any(|file| file.change.path.path == "top"), "{shown:?}");
        assert!(shown.checkpoint.skipped.is_empty(), "it was captured");
    }
    let compare = |from: &str, to: &str, paths: &[&str]| {
        let paths = paths.iter().map(|path| WorkspacePath::new(*path).unwrap()).collect();
        let options = DiffOptions { from: from.parse().ok(), to: to.parse().ok(), paths, ..DiffOptions::default() };
        let diff = workspace.diff(&options).unwrap();
        let files: Vec<_> = diff.files.iter().map(|file| file.change.path.path.clone()).collect();
        let unreadable: Vec<_> = diff.unreadable.iter().map(|path| path.path.clone()).collect();
        assert!(diff.not_compared.is_empty(), "{diff:?}");
        (files.join(" "), unreadable.join(" "))
    };
    let is = |files: &str, unreadable: &str| (files.to_owned(), unreadable.to_owned());
    assert_eq!(compare(&first, &second, &[]), is("good/deep/f top", "bad"));
    assert_eq!(compare(&second, &third, &[]), is("top", "bad"));
    assert_eq!(compare(&second, "@", &[]), is("top", "bad"));
    assert_eq!(compare(&first, &second, &["bad/x"]), is("", "bad"));
    assert_eq!(compare(&first, &second, &["good"]), is("good/deep/f", ""));
    assert_eq!(compare(&first, &third, &[]), is("bad/x good/deep/f top", ""), "neither side needs it");
}
