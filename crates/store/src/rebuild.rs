//! Making the database anew from the packs.

use std::fs::File;
use std::path::Path;

use piton_host::{Lock, clock};
use piton_model::record::Numbered;
use rusqlite::{Connection, params};

use crate::database::{apply, apply_object};
use crate::error::StoreError;
use crate::pack::{self, Item, Kind, PACK_HEAD, Place};
use crate::{DATABASE, FileId, INDEX, PACKS, PATIENCE, Store, file_id, take_lock};

/// Rebuilds the database of a store from all that is sound in its packs. The old one is kept aside, once.
///
/// `judged` is the file that was found wanting: where another process has put a new one in its place by the time the
/// lock is there, the work is done.
pub(crate) fn rebuild(folder: &Path, judged: Option<FileId>) -> Result<(), StoreError> {
    let lock = take_lock(folder, PATIENCE)?;
    if file_id(&folder.join(DATABASE)) != judged {
        return Ok(());
    }
    rebuild_locked(folder, &lock)
}

/// The same for whoever holds the lock already.
fn rebuild_locked(folder: &Path, _lock: &Lock) -> Result<(), StoreError> {
    let path = folder.join(DATABASE);
    let new = folder.join("piton.db.new");
    let beside = |name: &str, end: &str| folder.join(format!("{name}{end}"));
    for stale in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(beside("piton.db.new", stale));
    }
    {
        let db = crate::database::open(&new)?;
        db.execute_batch("BEGIN")?;
        let packs = replay(&db, folder, |_| None, |_| Ok(()))?;
        for (pack, end) in packs {
            db.execute("INSERT INTO packs VALUES (?1, ?2, 0)", params![pack, end as i64])?;
        }
        db.execute("INSERT INTO meta VALUES ('boot', ?1)", [clock::boot_id()])?;
        db.execute_batch("COMMIT")?;
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    }
    let failed = StoreError::io("cannot replace", &path);
    let _ = std::fs::remove_file(folder.join(INDEX));
    // A second name and not a move: the path is never without a database that somebody else would then make.
    let aside = folder.join("piton.db.damaged");
    let _ = std::fs::remove_file(&aside);
    let _ = std::fs::hard_link(&path, &aside);
    // Before the new one comes: a log of changes to the old database must never be read into the new one.
    for stale in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(beside(DATABASE, stale));
        let _ = std::fs::remove_file(beside("piton.db.new", stale));
    }
    std::fs::rename(&new, &path).map_err(failed)?;
    Ok(())
}

/// Reads every pack and makes the rows of what is sound. `committed` limits a pack to what rows were made of; what
/// is damaged goes to `damage`. Returns each pack with the end of its last sound record.
pub(crate) fn replay(
    db: &Connection,
    folder: &Path,
    committed: impl Fn(u32) -> Option<u64>,
    mut damage: impl FnMut(Item) -> Result<(), StoreError>,
) -> Result<Vec<(u32, u64)>, StoreError> {
    let mut timeline: Vec<(Numbered, Place)> = Vec::new();
    let mut ends = Vec::new();
    for pack in pack_numbers(folder)? {
        let path = folder.join(PACKS).join(crate::pack_name(pack));
        let failed = |e| StoreError::io("cannot read", &path)(e);
        let file = File::open(&path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let limit = committed(pack).unwrap_or(length).min(length);
        let mut end = PACK_HEAD.len() as u64;
        let mut result = Ok(());
        pack::each(&file, pack, limit, |item| {
            result = match item {
                Item::Record(place, sound) => {
                    end = place.offset + u64::from(place.length);
                    match sound.kind {
                        Kind::Timeline => match serde_json::from_slice(&sound.raw) {
                            Ok(numbered) => {
                                timeline.push((numbered, place));
                                Ok(())
                            }
                            Err(_) => damage(Item::Damage { pack, from: place.offset, to: end }),
                        },
                        kind => apply_object(db, kind, &sound.id, &place),
                    }
                }
                broken => damage(broken),
            };
            // The visitor's own errors end the reading; they are told apart below.
            if result.is_err() { Err(std::io::Error::other("stopped")) } else { Ok(()) }
        })
        .or_else(|error| if result.is_err() { std::mem::replace(&mut result, Ok(())) } else { Err(failed(error)) })?;
        ends.push((pack, end));
    }
    timeline.sort_by_key(|(numbered, _)| numbered.seq);
    for (numbered, place) in &timeline {
        apply(db, numbered, place)?;
    }
    Ok(ends)
}

/// The numbers of all pack files, in order.
pub(crate) fn pack_numbers(folder: &Path) -> Result<Vec<u32>, StoreError> {
    let folder = folder.join(PACKS);
    let failed = |e| StoreError::io("cannot list", &folder)(e);
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        numbers.extend(name.to_str().and_then(|n| n.strip_suffix(".pack")).and_then(|n| n.parse::<u32>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Whether every record of a pack from one place to another is sound.
pub(crate) fn is_sound(store: &Store, number: u32, from: u64, to: u64) -> Result<bool, StoreError> {
    let path = store.pack_path(number);
    let failed = |e| StoreError::io("cannot read", &path)(e);
    let Ok(file) = store.pack_file(number) else { return Ok(false) };
    if file.metadata().map_err(failed)?.len() < to {
        return Ok(false);
    }
    let mut sound = true;
    pack::each(&file, number, to, |item| {
        if let Item::Damage { to: end, .. } = item {
            sound &= end <= from;
        }
        Ok(())
    })
    .map_err(failed)?;
    Ok(sound)
}

impl Store {
    /// Makes the database anew from the packs. This handle still has the old one: open the store again.
    pub fn rebuild(&self, lock: &Lock) -> Result<(), StoreError> {
        rebuild_locked(self.folder(), lock)
    }
}
