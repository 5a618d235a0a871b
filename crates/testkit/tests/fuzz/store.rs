//! A store's own files, as a disk or somebody else may have changed them: packs, the view, and what is next to them.

use std::path::{Path, PathBuf};

use piton_engine::CaptureOptions;
use piton_model::diff::TreeSource;
use piton_model::{CheckpointId, Entry, ObjectId};
use piton_store::{Damage, Store};
use piton_testkit::fuzz::fuzz;
use piton_testkit::{Agent, World};

use super::host::scratch;

pub const COMMIT: u8 = 5;
pub const TIMELINE: u8 = 4;
const TREE: u8 = 2;
const HEAD: usize = 40;
const RECORD: usize = 56;

/// A world with one of everything, whose store is closed.
pub fn sample() -> World {
    let scratch = scratch();
    let mut world = World::at(scratch.path(), |_| {});
    world.hold(scratch);
    world.write("a", "first content of a").write("dir/b", "b").link("l", "a");
    let options = CaptureOptions { name: Some("one".into()), annotation: Some("note".into()), ..Default::default() };
    let one = world.open().capture(&options).unwrap().checkpoint.checkpoint.id.to_string();
    let agent = Agent::new(&world, "run-1");
    agent.edits("first", &["a"], |world| {
        world.write("a", "second content of a\n".repeat(40));
    });
    agent.runs("second", "make c", |world| {
        world.write("c", "c").remove("dir/b");
    });
    world.rewind(&one);
    world.write("d", "d");
    world.capture();
    world
}

/// A store's files in memory.
struct StoreFiles {
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl StoreFiles {
    fn of(world: &World) -> Self {
        let folder = world.open().store_folder().to_owned();
        let mut files = Vec::new();
        let mut folders = vec![folder.clone()];
        while let Some(next) = folders.pop() {
            for entry in next.read_dir().unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(&folder).unwrap().to_owned();
                match path.is_dir() {
                    true => folders.push(path),
                    false if name.to_str().unwrap().ends_with("-shm") => {}
                    false => files.push((name, std::fs::read(&path).unwrap())),
                }
            }
        }
        files.sort();
        Self { files }
    }

    fn get(&self, name: &str) -> &[u8] {
        let found = self.files.iter().find(|(path, _)| path.to_str() == Some(name));
        found.map_or_else(|| panic!("the store has no {name}"), |(_, bytes)| bytes)
    }

    /// Writes the store's files, with one changed; one without bytes is missing.
    fn lay(&self, folder: &Path, changed: &str, bytes: Option<&[u8]>, with_view: bool) {
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir_all(folder.join("packs")).unwrap();
        for (name, content) in &self.files {
            let is_view = name.to_str().unwrap().starts_with("view-");
            if name.to_str() != Some(changed) && (with_view || !is_view) {
                std::fs::write(folder.join(name), content).unwrap();
            }
        }
        if let Some(bytes) = bytes {
            std::fs::write(folder.join(changed), bytes).unwrap();
        }
    }
}

const PACK: &str = "packs/000001.pack";

/// A record of a pack, parsed according to docs/format.md without the store's code.
pub struct Framed {
    pub from: usize,
    pub to: usize,
    pub kind: u8,
    pub id: [u8; 32],
    /// Decompressed, if possible.
    pub raw: Option<Vec<u8>>,
}

/// Consecutive records from an offset on, with `gap` bytes before each.
pub fn framed(bytes: &[u8], mut at: usize, gap: usize) -> Vec<Framed> {
    let mut found = Vec::new();
    loop {
        let from = at + gap;
        let Some(head) = bytes.get(from..from + RECORD).filter(|head| head.starts_with(b"PiTn")) else { return found };
        let length = u32::from_le_bytes(head[8..12].try_into().unwrap()) as usize;
        let unpacked = u32::from_le_bytes(head[12..16].try_into().unwrap()) as usize;
        let to = from + RECORD + length;
        let Some(payload) = bytes.get(from + RECORD..to) else { return found };
        let raw = match head[5] {
            0 => Some(payload.to_vec()),
            _ => zstd::bulk::decompress(payload, unpacked.min(1 << 20)).ok(),
        };
        found.push(Framed { from, to, kind: head[4], id: head[16..48].try_into().unwrap(), raw });
        at = to;
    }
}

/// Makes the checks and tags of all records valid, as far as their lengths allow.
fn seal(bytes: &mut [u8], pack: u32) {
    if bytes.len() < HEAD {
        return;
    }
    let mut hasher = blake3::Hasher::new_derive_key("piton 2026-11 tag");
    hasher.update(&bytes[16..32]);
    hasher.update(&pack.to_le_bytes());
    let key = *hasher.finalize().as_bytes();
    for record in framed(bytes, HEAD, 8) {
        if let Some(raw) = &record.raw
            && matches!(record.kind, 1 | TREE | TIMELINE | COMMIT)
        {
            let id = if record.kind == TREE { ObjectId::of_tree(raw) } else { ObjectId::of_blob(raw) };
            bytes[record.from + 16..record.from + 48].copy_from_slice(&id.0);
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(&bytes[record.from..record.from + 48]);
        hasher.update(&bytes[record.from + RECORD..record.to]);
        let check: [u8; 8] = hasher.finalize().as_bytes()[..8].try_into().unwrap();
        bytes[record.from + 48..record.from + RECORD].copy_from_slice(&check);
        let mut hasher = blake3::Hasher::new_keyed(&key);
        hasher.update(&(record.from as u64).to_le_bytes());
        hasher.update(&check);
        bytes[record.from - 8..record.from].copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes[..32]);
    let check = *hasher.finalize().as_bytes();
    bytes[32..HEAD].copy_from_slice(&check[..8]);
}

/// The timeline of a store, for tests that read its records.
pub fn timeline() -> Vec<Vec<u8>> {
    let kept = StoreFiles::of(&sample());
    let records = framed(kept.get(PACK), HEAD, 8);
    records.into_iter().filter(|record| record.kind == TIMELINE).filter_map(|record| record.raw).collect()
}

/// Reads everything in a store; nothing with a wrong hash is ever returned.
fn read_all(store: &Store) -> (usize, usize, String) {
    let (mut whole, mut broken) = (0, 0);
    let checkpoints = store.checkpoints(None).unwrap_or_default();
    for row in &checkpoints {
        match is_readable(store, &row.checkpoint.root.tree, 0) {
            true => whole += 1,
            false => broken += 1,
        }
    }
    let _ = (store.workspace(), store.links(), store.checkpoint_places(), store.pending(), store.index().is_some());
    for row in store.operations().unwrap_or_default() {
        let _ = store.operation(&row);
    }
    for row in store.sessions().unwrap_or_default() {
        let id = &row.session.id;
        let _ = (
            store.turns(id),
            store.steps(id, None),
            store.messages(id),
            store.gaps(Some(id)),
            store.checkpoints_of(id),
        );
    }
    let _ = (
        store.changes_since(0),
        store.yours_since(1, piton_model::Timestamp(0)),
        store.turn_places(),
        store.size(),
        store.git_note(),
    );
    let why = match store.verify() {
        Ok(found) if found.damage.is_empty() => "sound".into(),
        Ok(found) => match &found.damage[0] {
            Damage::Pack { .. } => "pack".into(),
            Damage::Row { table, .. } => (*table).to_owned(),
            other => format!("{other:?}").chars().take(8).collect(),
        },
        Err(error) => error.to_string().chars().take(24).collect(),
    };
    (whole, broken, why)
}

fn is_readable(store: &Store, id: &ObjectId, depth: u32) -> bool {
    let Ok(tree) = store.tree(id) else { return false };
    assert_eq!(ObjectId::of_tree(&tree.encode()), *id, "a tree is what its id says");
    tree.entries().iter().all(|(_, entry)| match entry {
        Entry::File { blob, .. } => match store.blob(blob) {
            Ok(bytes) => {
                assert_eq!(ObjectId::of_blob(&bytes), *blob, "a blob is what its id says");
                true
            }
            Err(_) => false,
        },
        Entry::Folder { tree, .. } => depth < 64 && is_readable(store, tree, depth + 1),
        Entry::Symlink { .. } | Entry::Skipped { .. } => true,
    })
}

/// Writes something and finds it again, even after reopening the store.
fn write_more(store: Store, folder: &Path) -> bool {
    let Ok(lock) = store.lock(std::time::Duration::ZERO) else { return false };
    let Ok(mut writer) = store.write(&lock) else { return false };
    let Ok(id) = writer.blob(b"written after the damage") else { return false };
    if writer.commit(false, false).is_err() {
        return false;
    }
    // A page of the view that has not been read so far may be damaged; whoever finds that rebuilds the view.
    match store.blob(&id) {
        Err(error) if error.is_damaged_database() => return false,
        found => assert_eq!(found.unwrap(), b"written after the damage"),
    }
    let _ = store.tidy(&lock);
    drop(lock);
    drop(store);
    let store = Store::open(folder).unwrap_or_else(|e| panic!("what was written to opens again: {e}"));
    match store.blob(&id) {
        Err(error) if error.is_damaged_database() => return false,
        found => {
            assert_eq!(found.unwrap_or_else(|e| panic!("what was committed stays: {e}")), b"written after the damage")
        }
    }
    true
}

/// The transactions of a pack: where each ends, with its checkpoints.
fn transactions(pack: &[u8]) -> Vec<(usize, Vec<CheckpointId>)> {
    let mut all = Vec::new();
    let mut checkpoints = Vec::new();
    for record in framed(pack, HEAD, 8) {
        if record.kind == COMMIT {
            all.push((record.to, std::mem::take(&mut checkpoints)));
        }
        if record.kind == TIMELINE {
            let json: serde_json::Value = serde_json::from_slice(&record.raw.unwrap()).unwrap();
            if json["record"] == "checkpoint" {
                checkpoints.extend(serde_json::from_value::<CheckpointId>(json["id"].clone()).ok());
            }
        }
    }
    assert!(all.len() > 5 && all.iter().any(|(_, checkpoints)| !checkpoints.is_empty()), "the sample is none");
    all
}

#[test]
fn a_damaged_pack_keeps_what_was_closed_before_the_damage() {
    let kept = StoreFiles::of(&sample());
    let pack = kept.get(PACK).to_vec();
    let transactions = transactions(&pack);
    let scratch = scratch();
    let folder = scratch.path().join("store");
    fuzz("store-pack", std::slice::from_ref(&pack), |bytes| {
        let with_view = bytes.len().is_multiple_of(2);
        kept.lay(&folder, PACK, Some(bytes), with_view);
        let same = bytes.iter().zip(&pack).take_while(|(is, was)| is == was).count();
        let closed: Vec<_> = transactions.iter().take_while(|(end, _)| *end <= same).collect();
        let opened = Store::open(&folder);
        let Ok(store) = opened else { return (0, 0, format!("{:.24}", opened.err().unwrap().to_string())) };
        let found = read_all(&store);
        write_more(store, &folder);
        let store = Store::open(&folder).unwrap();
        for (end, checkpoints) in &closed {
            let now = std::fs::read(folder.join(PACK)).unwrap();
            assert!(now.get(..*end) == Some(&pack[..*end]), "bytes of a closed transaction are gone");
            for id in checkpoints {
                let row = store.checkpoint(id).unwrap().unwrap_or_else(|| panic!("a closed checkpoint is gone: {id}"));
                assert!(is_readable(&store, &row.checkpoint.root.tree, 0), "a closed checkpoint cannot be read: {id}");
            }
        }
        found
    });
}

#[test]
fn a_forged_pack_is_read_without_a_panic() {
    let kept = StoreFiles::of(&sample());
    let pack = kept.get(PACK).to_vec();
    let scratch = scratch();
    let folder = scratch.path().join("store");
    fuzz("store-forged-pack", &[pack], |bytes| {
        let mut bytes = bytes.to_vec();
        seal(&mut bytes, 1);
        kept.lay(&folder, PACK, Some(&bytes), false);
        let opened = Store::open(&folder);
        let Ok(store) = opened else { return (0, 0, format!("{:.24}", opened.err().unwrap().to_string())) };
        let found = read_all(&store);
        write_more(store, &folder);
        found
    });
}

/// Changes the files next to the packs: whatever they say, the packs stay as they are.
fn beside(name: &str, changed: &[(&str, &[u8])]) {
    beside_of(name, &sample(), changed);
}

fn beside_of(name: &str, world: &World, changed: &[(&str, &[u8])]) {
    let kept = StoreFiles::of(world);
    let pack = kept.get(PACK).to_vec();
    let transactions = transactions(&pack);
    let wanted: Vec<_> = transactions.iter().flat_map(|(_, checkpoints)| checkpoints).collect();
    let scratch = scratch();
    let folder = scratch.path().join("store");
    let names: Vec<&str> = changed.iter().map(|(name, _)| *name).collect();
    let seeds = changed.iter().enumerate().map(|(at, (name, given))| {
        let content = if given.is_empty() { kept.get(name) } else { given };
        [&[at as u8], content].concat()
    });
    fuzz(name, &seeds.collect::<Vec<_>>(), |bytes| {
        let Some((which, content)) = bytes.split_first() else { return (0, 0, String::new(), false) };
        let which = names[usize::from(*which) % names.len()];
        kept.lay(&folder, which, Some(content), true);
        let opened = Store::open(&folder);
        let now = std::fs::read(folder.join(PACK)).unwrap();
        assert!(now == pack, "opening changed a pack");
        let Ok(store) = opened else { return (0, 0, format!("{:.24}", opened.err().unwrap().to_string()), false) };
        let (whole, broken, why) = read_all(&store);
        if why == "sound" {
            let is_there = |id: &&CheckpointId| store.checkpoint(id).ok().flatten().is_some();
            assert!(broken == 0 && wanted.iter().all(is_there), "a view that is called sound lacks something");
        }
        let wrote = write_more(store, &folder);
        let now = std::fs::read(folder.join(PACK)).unwrap();
        assert!(now.starts_with(&pack), "a view that is wrong cut a pack");
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().unwrap().to_str().unwrap().starts_with("view-") {
                std::fs::remove_file(path).unwrap();
            }
        }
        let store = Store::open(&folder).unwrap();
        // A view whose rows cannot be read may claim more than there ever was: that is noted, since nobody can tell.
        let (now_whole, now_broken, found) = read_all(&store);
        assert_eq!((now_whole, now_broken), (wanted.len(), 0), "from the packs alone");
        assert!(found == "sound" || found.starts_with("Gone"), "from the packs alone: {found}");
        (whole, broken, why, wrote)
    });
}

#[test]
fn a_damaged_view_never_costs_what_the_packs_have() {
    // Without telling files from their copies: otherwise every view would be rebuilt for being a copy.
    piton_host::clock::in_another_run("a run", || {
        beside("store-view", &[("view-000001.db", b""), ("view-000001.db-wal", b"")]);
    });
}

#[test]
fn a_damaged_view_whose_log_was_folded_never_costs_what_the_packs_have() {
    piton_host::clock::in_another_run("a run", || {
        let world = sample();
        let view = piton_store::database_file(world.open().store_folder()).unwrap();
        let db = rusqlite::Connection::open(view).unwrap();
        let busy: i64 = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap();
        assert_eq!(busy, 0, "the log is folded");
        drop(db);
        beside_of("store-view-folded", &world, &[("view-000001.db", b"")]);
    });
}

#[test]
fn damaged_files_beside_the_packs_cost_nothing() {
    let gap = br#"{"session":"kkkkkkkkkkkkkkkk","turn":1,"cause":"before-tool","reason":"late","at":"2026-11-15T20:03:11.042Z"}
"#;
    let changed: [(&str, &[u8]); 5] =
        [("index", b""), ("workspace.json", b""), ("gaps", gap), ("log-stalled", b"256"), ("git", &[7; 96])];
    beside("store-beside", &changed);
}
