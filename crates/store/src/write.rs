//! Writing: the records of a transaction, its commit record, then their rows. From the commit record on it counts, whatever
//! becomes of the process; a failed commit of the rows takes it back before the lock goes.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use piton_host::fail::point;
use piton_host::{Lock, clock, disk, own};
use piton_model::record::Numbered;
use piton_model::{ObjectId, Record};
use rusqlite::params;

use crate::bond;
use crate::database::{apply, apply_fresh_object, apply_object, fold, to_sql};
use crate::error::StoreError;
use crate::objects::Packed;
use crate::pack::{self, Kind, PACK_HEAD, PackForm, Place, StoreKey, TAG, Tagger};
use crate::rebuild::synced;
use crate::transactions::{Commit, Position, Range, TransactionHash, find_key};
use crate::{Reader, Store, pack_name};

/// A new pack begins when one is over this. In this room's own tests transactions of several packs are to be small.
const PACK_LIMIT: u64 = if cfg!(test) { 64 << 10 } else { 256 << 20 };
/// Records are gathered up to this before they are written.
const GATHER: usize = 4 << 20;

/// What is being written. Dropped without [`Writer::commit`], nothing of it counts.
pub struct Writer<'s> {
    pub(crate) store: &'s Store,
    lock: &'s Lock,
    pack: u32,
    file: Arc<File>,
    key: StoreKey,
    tagger: Tagger,
    /// The committed length of the pack that this began with.
    began: (u32, u64),
    /// Everything before this is on the disk.
    synced: Position,
    /// Over all records so far, in order of their places.
    hash: TransactionHash,
    /// Where the gathered bytes go.
    written: u64,
    gathered: Vec<u8>,
    /// Lengths of the packs that were filled on the way.
    filled: Vec<(u32, u64)>,
    objects: Vec<(Kind, ObjectId, Place)>,
    new: HashSet<ObjectId>,
    timeline: Vec<(Numbered, Place)>,
    next_seq: u64,
    /// A store without objects need not be asked for any.
    is_fresh: bool,
    /// Bytes that may still be written.
    room: u64,
    /// Bytes that the store took when this began.
    used: u64,
    budget: u64,
    /// Batches that were taken and are not written.
    unwritten: Arc<AtomicUsize>,
    is_committed: bool,
    /// Its rows may be in the database's log though their commit failed, so its bytes stay.
    may_count: bool,
}

/// A row for an object takes about this much of the database and of the index.
pub(crate) const ROW: u64 = 200;
/// More objects than this go where they belong at once.
const FEW: usize = 1_000;
/// So much takes the disk a while.
const MUCH: u64 = 1 << 20;
/// Kept free, so that the database's log, and above all the end of an operation, always find room.
const FLOOR: u64 = 2 << 20;

/// What is written, which decides how much of the budget it may take.
///
/// Captures leave a reserve. Where they do not fit any more, a note that says so still does, and so does what an
/// operation must keep of the files that it overwrites: a full store must not be one that cannot be rewound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Captures, and whatever else can be refused.
    Capture,
    /// What an agent reports, without a capture. It leaves half of the reserve to operations.
    Note,
    /// The beginning of an operation: it may be refused, since nothing has been changed yet.
    Operation,
    /// What must be recorded: an operation is in the middle of its work, or its end is all that is missing.
    End,
}

/// What captures leave to operations.
fn reserve(budget: u64) -> u64 {
    (budget / 8).clamp(1 << 20, 256 << 20)
}

fn room_for(purpose: Purpose, budget: u64, used: u64) -> u64 {
    let kept = match purpose {
        Purpose::Capture => FLOOR + reserve(budget),
        Purpose::Note => FLOOR + reserve(budget) / 2,
        Purpose::Operation => FLOOR,
        Purpose::End => return u64::MAX,
    };
    budget.saturating_sub(used.saturating_add(kept))
}

impl Reader {
    /// Bytes that captures may still take.
    pub fn room(&self) -> Result<u64, StoreError> {
        let budget = self.workspace()?.map_or(u64::MAX, |w| w.budget);
        Ok(room_for(Purpose::Capture, budget, self.size()?))
    }
}

impl Drop for Writer<'_> {
    /// Gives back the space of what does not count, best effort: the next writer would cut it off as well.
    fn drop(&mut self) {
        // Without the lock another may have written there.
        if self.is_committed || self.may_count || !self.lock.is_held() {
            return;
        }
        let (first, length) = self.began;
        for pack in (first + 1)..=self.pack {
            let _ = std::fs::remove_file(self.store.pack_path(pack));
            self.store.forget_pack(pack);
        }
        if let Ok(file) = open_pack(self.store, first) {
            let _ = file.set_len(length);
        }
    }
}

impl<'s> Writer<'s> {
    pub(crate) fn new(store: &'s Store, lock: &'s Lock) -> Result<Self, StoreError> {
        let settled = store.settle()?;
        let synced = synced(&store.packs()?);
        let (key, pack, length) = begin(store, settled.end)?;
        let next_seq = store.next_seq(&settled)?;
        let is_fresh: bool = store.db().query_row("SELECT NOT EXISTS (SELECT 1 FROM all_objects)", [], |r| r.get(0))?;
        let used = store.size()?;
        let budget = store.workspace()?.map_or(u64::MAX, |w| w.budget);
        Ok(Self {
            store,
            lock,
            pack,
            file: open_pack(store, pack)?,
            key,
            tagger: key.tagger(pack),
            began: (pack, length),
            synced,
            hash: TransactionHash::default(),
            written: length,
            gathered: if length == 0 { key.head().to_vec() } else { Vec::new() },
            filled: Vec::new(),
            objects: Vec::new(),
            new: HashSet::new(),
            timeline: Vec::new(),
            next_seq,
            is_fresh,
            room: room_for(Purpose::Capture, budget, used),
            used,
            budget,
            unwritten: Arc::default(),
            is_committed: false,
            may_count: false,
        })
    }

    /// Says what is written. Whatever may take less of the budget comes first.
    pub fn allow(&mut self, purpose: Purpose) {
        let spent = room_for(Purpose::Capture, self.budget, self.used).saturating_sub(self.room);
        self.room = self.room.max(room_for(purpose, self.budget, self.used).saturating_sub(spent));
    }

    /// The same of a writer that has just begun.
    #[must_use]
    pub fn allowing(mut self, purpose: Purpose) -> Self {
        self.allow(purpose);
        self
    }

    /// The store, as it was before this began.
    pub fn store(&self) -> &'s Store {
        self.store
    }

    pub(crate) fn folder(&self) -> &'s Path {
        self.store.folder()
    }

    /// Whether an object is there or has just been added.
    pub fn contains(&self, id: &ObjectId) -> Result<bool, StoreError> {
        Ok(self.new.contains(id) || (!self.is_fresh && self.store.contains(id)?))
    }

    /// The same of one that can be read back, which the rows do not tell.
    pub fn contains_sound(&self, id: &ObjectId) -> Result<bool, StoreError> {
        Ok(self.is_added(id) || (!self.is_fresh && self.store.is_sound(id)?))
    }

    /// Whether an object has just been added.
    pub fn is_added(&self, id: &ObjectId) -> bool {
        self.new.contains(id)
    }

    /// Adds an object, unless it has just been added.
    pub fn append(&mut self, packed: Packed) -> Result<(), StoreError> {
        self.append_later(packed)?.map_or(Ok(()), Batch::write)
    }

    /// The same for several threads that share the writer: what is to be written now is given back, so that nobody else
    /// waits for the disk.
    pub fn append_later(&mut self, packed: Packed) -> Result<Option<Batch>, StoreError> {
        let pack::Packed { kind, id, bytes } = packed.0;
        if !self.new.insert(id) {
            return Ok(None);
        }
        self.spend((TAG + bytes.len()) as u64 + ROW)?;
        let (place, batch) = self.put(&bytes)?;
        self.objects.push((kind, id, place));
        Ok(batch)
    }

    fn spend(&mut self, bytes: u64) -> Result<(), StoreError> {
        self.make_sure_of(bytes)?;
        self.room -= bytes;
        Ok(())
    }

    /// Refuses what would not fit, before any of it is written.
    pub(crate) fn make_sure_of(&self, bytes: u64) -> Result<(), StoreError> {
        match bytes.checked_sub(self.room) {
            None | Some(0) => Ok(()),
            Some(over) => Err(StoreError::OverBudget { needed: self.budget.saturating_add(over), budget: self.budget }),
        }
    }

    /// Adds a record of the timeline.
    pub fn record(&mut self, record: Record) -> Result<u64, StoreError> {
        let seq = self.next_seq;
        let numbered = Numbered { seq, record };
        let json = serde_json::to_vec(&numbered).map_err(to_sql)?;
        let packed = pack::pack(Kind::Timeline, ObjectId::of_blob(&json), &json)
            .map_err(StoreError::io("cannot pack", self.folder()))?;
        // Rows repeat most of a record, unpacked. A new budget is never refused for want of room.
        if !matches!(&numbered.record, Record::Workspace(_)) {
            self.spend((packed.bytes.len() + json.len()) as u64 + 2 * ROW)?;
        }
        let (place, batch) = self.put(&packed.bytes)?;
        batch.map_or(Ok(()), Batch::write)?;
        self.timeline.push((numbered, place));
        self.next_seq += 1;
        Ok(seq)
    }

    /// Writes what was gathered and lets the disk begin with this pack, where that takes it a while: for a commit that
    /// waits for the disk.
    pub fn begin_writing(&mut self) -> Result<(), StoreError> {
        let from = if self.pack == self.began.0 { self.began.1 } else { 0 };
        let length = self.written + self.gathered.len() as u64 - from;
        if length > MUCH {
            self.flush()?;
            let file = self.file.clone();
            // On a thread of its own: to find the bytes their places takes time too.
            let _ = std::thread::Builder::new().spawn(move || disk::begin_writing(&file, from, length));
        }
        Ok(())
    }

    /// Makes all of it count. `durable`: when this returns, it survives a power cut.
    ///
    /// `new_index`: the stat cache of before does not belong to what is written now.
    pub fn commit(mut self, durable: bool, new_index: bool) -> Result<(), StoreError> {
        let is_empty = self.objects.is_empty() && self.timeline.is_empty();
        if self.unwritten.load(Ordering::Acquire) > 0 {
            let lost = io::Error::other("some of it could not be written");
            return Err(StoreError::io("cannot write", &self.store.pack_path(self.pack))(lost));
        }
        let fail = |what| move |e| StoreError::io("cannot write", Path::new(what))(e);
        if is_empty {
            self.gathered.clear();
        } else {
            self.make_sure_of_lock()?;
            // Last, and in one write with what was gathered: from here on all of it counts.
            let commit = self.closing_record()?;
            let (_, batch) = self.put(&commit)?;
            batch.map_or(Ok(()), Batch::write)?;
            self.flush()?;
        }
        if durable {
            self.store.sync_packs()?;
            for (pack, _) in self.lengths() {
                self.store.sync_pack(pack, pack != self.began.0 || self.began.1 == 0)?;
            }
        } else if self.is_tidied() {
            self.begin_writing()?;
        }
        self.commit_rows(durable, new_index)?;
        self.is_committed = !is_empty;
        point("store:committed").map_err(fail("the database"))?;
        Ok(())
    }

    /// Makes the rows of all of it, in one transaction of the database.
    fn commit_rows(&mut self, durable: bool, new_index: bool) -> Result<(), StoreError> {
        let fail = |what| move |e| StoreError::io("cannot write", Path::new(what))(e);
        point("store:begin").map_err(fail("the database"))?;
        let db = &*self.store.db();
        db.execute_batch(if durable { "PRAGMA synchronous=FULL" } else { "PRAGMA synchronous=NORMAL" })?;
        let transaction = rusqlite::Transaction::new_unchecked(db, rusqlite::TransactionBehavior::Immediate)?;
        // In order of their ids: rows then go into the tree of the table one after the other.
        self.objects.sort_unstable_by_key(|(_, id, _)| *id);
        let apply_each = if self.is_tidied() {
            fold(db)?;
            apply_object
        } else {
            apply_fresh_object
        };
        for (kind, id, place) in &self.objects {
            apply_each(db, *kind, id, place)?;
        }
        for (numbered, place) in &self.timeline {
            apply(db, numbered, place)?;
        }
        for (pack, length) in self.lengths() {
            let synced = if durable { length as i64 } else { 0 };
            db.prepare_cached(
                "INSERT INTO packs VALUES (?1, ?2, ?3)
                 ON CONFLICT(pack) DO UPDATE SET length = ?2, synced = max(synced, ?3)",
            )?
            .execute(params![pack, length as i64, synced])?;
        }
        let boot = clock::boot_id();
        db.prepare_cached(
            "INSERT INTO meta VALUES ('boot', ?1) ON CONFLICT(key) DO UPDATE SET value = ?1 WHERE value <> ?1",
        )?
        .execute([boot])?;
        if new_index {
            let random = clock::random().map_err(fail("the database"))?;
            let stamp = format!("{} {}", self.next_seq, u64::from_le_bytes(random));
            db.prepare_cached("INSERT OR REPLACE INTO meta VALUES ('index', ?1)")?.execute([stamp])?;
        }
        point("store:commit").map_err(fail("the database"))?;
        let committed = transaction.commit().map_err(StoreError::from);
        if let Err(error) = &committed {
            // What does not fit on the disk is not written to its end.
            self.may_count = !error.is_full_disk() && !self.take_rows_back();
        }
        committed
    }

    /// Makes sure that nobody finds the rows of a commit that failed in the database's log; false where that cannot be done.
    ///
    /// A commit may fail after all of it was written: at its sync. SQLite gives it up; but whoever opens the database while nobody has
    /// it open reads the log from its beginning, and finds it whole. So another transaction takes its place there before the
    /// pack loses the bytes that these rows are about.
    fn take_rows_back(&self) -> bool {
        let db = self.store.db();
        // Where the disk still cannot sync, everybody reads at least what was written last.
        let is_replaced = ["FULL", "NORMAL"].iter().any(|synchronous| {
            let set = db.execute_batch(&format!("PRAGMA synchronous={synchronous}"));
            set.map_err(StoreError::from).and_then(|()| bond::put_something(&db)).is_ok()
        });
        let last = (self.pack, self.written);
        let has_rows = |packs: Vec<(u32, u64, u64)>| packs.iter().any(|(n, length, _)| (*n, *length) == last);
        is_replaced && self.store.packs().is_ok_and(|packs| !has_rows(packs))
    }

    /// Refuses to go on where somebody deleted the lock's file: whoever made another one may be at work.
    fn make_sure_of_lock(&self) -> Result<(), StoreError> {
        if self.lock.is_held() { Ok(()) } else { Err(StoreError::LockLost) }
    }

    /// The commit record of what has been added.
    fn closing_record(&self) -> Result<Vec<u8>, StoreError> {
        let last = (self.pack, self.written + self.gathered.len() as u64);
        let range = |(pack, to)| {
            let from = if pack == self.began.0 { self.began.1.max(PACK_HEAD) } else { PACK_HEAD };
            Range { pack, from, to }
        };
        let ranges = self.filled.iter().copied().chain([last]).map(range).filter(|range| range.from < range.to);
        let commit = Commit {
            first: self.next_seq - self.timeline.len() as u64,
            count: self.timeline.len() as u64,
            ranges: ranges.collect(),
            hash: self.hash.finish(),
            synced: self.synced,
            boot: clock::boot_id(),
            generation: self.store.generation(),
            key: self.key.to_hex(),
        };
        commit.to_record().map_err(StoreError::io("cannot pack", self.folder()))
    }

    /// The packs that this wrote to, with their lengths.
    fn lengths(&self) -> Vec<(u32, u64)> {
        if self.objects.is_empty() && self.timeline.is_empty() {
            return Vec::new();
        }
        self.filled.iter().copied().chain([(self.pack, self.written)]).collect()
    }

    /// Whether so many rows come with it that the database's log is folded at the end, which waits for the disk.
    fn is_tidied(&self) -> bool {
        self.objects.len() > FEW
    }

    /// Finds the place of a record. With it comes what has been gathered, where that is enough to be written.
    fn put(&mut self, bytes: &[u8]) -> Result<(Place, Option<Batch>), StoreError> {
        if self.written + self.gathered.len() as u64 > PACK_LIMIT {
            self.flush()?;
            if self.is_tidied() {
                self.begin_writing()?;
            }
            self.filled.push((self.pack, self.written));
            self.pack += 1;
            self.file = open_pack(self.store, self.pack)?;
            self.file.set_len(0).map_err(StoreError::io("cannot shorten", &self.store.pack_path(self.pack)))?;
            self.written = 0;
            self.gathered.extend_from_slice(&self.key.head());
            self.tagger = self.key.tagger(self.pack);
        }
        let offset = self.written + (self.gathered.len() + TAG) as u64;
        self.gathered.extend_from_slice(&self.tagger.tag(offset, bytes));
        self.gathered.extend_from_slice(bytes);
        let place = Place { pack: self.pack, offset, length: bytes.len() as u32 };
        self.hash.add(&place, pack::check_of(bytes));
        let batch = if self.gathered.len() > GATHER {
            self.make_sure_of_lock()?;
            self.batch()
        } else {
            None
        };
        Ok((place, batch))
    }

    /// Takes what has been gathered.
    fn batch(&mut self) -> Option<Batch> {
        if self.gathered.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut self.gathered);
        let at = self.written;
        self.written += bytes.len() as u64;
        self.unwritten.fetch_add(1, Ordering::Relaxed);
        let (file, unwritten) = (self.file.clone(), self.unwritten.clone());
        Some(Batch { file, path: self.store.pack_path(self.pack), at, bytes, unwritten })
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.batch().map_or(Ok(()), Batch::write)
    }
}

/// Records that have their place in a pack and are not written yet. Until they are, the writer refuses to commit: one
/// that failed or was forgotten would leave rows that name bytes which are not there.
#[must_use]
pub struct Batch {
    file: Arc<File>,
    path: PathBuf,
    at: u64,
    bytes: Vec<u8>,
    unwritten: Arc<AtomicUsize>,
}

impl Batch {
    /// Writes them.
    ///
    /// # Errors
    /// Where the disk refuses.
    pub fn write(self) -> Result<(), StoreError> {
        let Self { file, path, at, bytes, unwritten } = self;
        let refused = || StoreError::io("cannot write", &path);
        point("store:write-pack").map_err(refused())?;
        // In two halves where a test may cut between them.
        let half = if cfg!(debug_assertions) { bytes.len() / 2 } else { bytes.len() };
        let (first, second) = bytes.split_at(half);
        file.write_all_at(first, at).map_err(refused())?;
        if !second.is_empty() {
            point("store:half-written").map_err(refused())?;
            file.write_all_at(second, at + half as u64).map_err(refused())?;
        }
        unwritten.fetch_sub(1, Ordering::Release);
        Ok(())
    }
}

/// Where a writer begins: the key, the pack, and how long that is. Packs of format 1, and those whose head is damaged, are
/// left as they are.
fn begin(store: &Store, end: Position) -> Result<(StoreKey, u32, u64), StoreError> {
    if end.offset > 0 {
        let file = store.pack_file(end.pack)?;
        let form = pack::form(&file).map_err(StoreError::io("cannot read", &store.pack_path(end.pack)))?;
        if let PackForm::Tagged(key) = form {
            return Ok((key, end.pack, end.offset));
        }
    }
    let key = match find_key(store.folder())? {
        Some(key) => key,
        None => StoreKey(clock::random().map_err(StoreError::io("cannot make a key for", store.folder()))?),
    };
    Ok((key, if end.offset > 0 { end.pack + 1 } else { end.pack }, 0))
}

fn open_pack(store: &Store, pack: u32) -> Result<Arc<File>, StoreError> {
    use std::os::unix::fs::OpenOptionsExt;
    let path = store.folder().join(crate::PACKS).join(pack_name(pack));
    let file = own::open_or_make(&path, File::options().read(true).write(true).mode(0o600));
    Ok(Arc::new(file.map_err(StoreError::io("cannot open", &path))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PATIENCE, pack_blob};

    /// Bytes that do not pack.
    fn noise(length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        blake3::Hasher::new().finalize_xof().fill(&mut bytes);
        bytes
    }

    #[test]
    fn whoever_lost_the_lock_records_nothing_and_takes_nothing_from_who_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (Store::create(folder.path()).unwrap(), Store::open(folder.path()).unwrap());
        let lost = first.lock(PATIENCE).unwrap();
        let mut writer = first.write(&lost).unwrap();
        let refused = writer.blob(b"of who lost the lock").unwrap();
        std::fs::remove_file(folder.path().join(crate::LOCK)).unwrap();
        let lock = second.lock(PATIENCE).unwrap();
        let mut other = second.write(&lock).unwrap();
        let kept = other.blob(b"of who has it").unwrap();
        other.commit(true, false).unwrap();
        assert!(matches!(writer.commit(true, false), Err(StoreError::LockLost)));
        assert_eq!(second.blob(&kept).unwrap(), b"of who has it");
        assert!(!second.contains(&refused).unwrap());
        assert!(second.verify().unwrap().damage.is_empty());
    }

    #[test]
    fn a_batch_that_was_not_written_keeps_everything_from_counting() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path()).unwrap();
        let lock = store.lock(PATIENCE).unwrap();
        let bytes = noise(GATHER + 1);
        let id = ObjectId::of_blob(&bytes);
        for is_written in [false, true] {
            let mut writer = store.write(&lock).unwrap();
            let batch = writer.append_later(pack_blob(id, &bytes).unwrap()).unwrap().unwrap();
            if is_written {
                batch.write().unwrap();
            } else {
                drop(batch);
            }
            assert_eq!(writer.commit(false, false).is_ok(), is_written);
            assert_eq!(store.contains(&id).unwrap(), is_written);
        }
    }
}
