//! Piton's durable memory: the log of records in pack files, and the SQLite view of it.
//!
//! The packs are the truth; the database is made from them by one function and can be made again. Never reads or
//! writes the workspace. `docs/format.md` says what is on the disk, in which order it is written, and what is assumed
//! of the disk.

mod archive;
mod aside;
mod beside;
mod bond;
mod changes;
mod database;
mod error;
mod gaps;
mod gone;
mod home;
mod objects;
mod operations;
mod pack;
mod progress;
mod query;
mod reader;
mod rebuild;
mod reopened;
mod search;
mod sessions;
mod settle;
mod since;
mod steps;
mod transactions;
mod verify;
mod views;
mod write;

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use piton_host::{Index, Lock, bounded, clock, disk, own};
use piton_model::{ObjectId, OperationId};
use rusqlite::{Connection, params};

pub use archive::{Archive, ArchiveError, ArchiveTotals, ArchiveWriter, Manifest};
pub use aside::EventAside;
pub use changes::ChangeRow;
pub use error::StoreError;
pub use home::{Home, Known, NotedWorkspace, Settled};
pub use objects::{CHUNKED_FROM, Packed, pack_blob, pack_large, pack_tree};
pub use operations::{OperationRow, OperationState};
pub use progress::{Progress, ProgressNote};
pub use query::{ChainLink, CheckpointRow, StoredTree};
pub use reader::Reader;
pub use reopened::{Reopened, ReopenedNote};
pub use search::{Hit, HitKind};
pub use sessions::{SessionRow, TurnRow};
pub use steps::StepRow;
pub use verify::{Damage, Verified};
pub use views::database_file;
pub use write::{Batch, Purpose, Writer};

use reader::OpenView;

/// Which state of the repository goes with which state of `.git` and of the workspace.
#[derive(Clone, Debug)]
pub struct GitNote {
    /// The fingerprint of `.git`.
    pub signature: [u8; 32],
    pub tree: ObjectId,
    /// The state, an object.
    pub state: ObjectId,
}

/// A step's own name at which an operation left something that it could not remove. All of it is stored.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Leftover {
    /// Whose name it is.
    pub operation: OperationId,
    /// The step's number.
    pub step: usize,
    /// Whether it is a step outside the workspace.
    #[serde(default)]
    pub outside: bool,
}

/// One workspace's memory: read like a [`Reader`], and written by whoever holds its lock.
pub struct Store {
    reader: Arc<Reader>,
}

impl Deref for Store {
    type Target = Reader;

    fn deref(&self) -> &Reader {
        &self.reader
    }
}

/// How long a command waits for another one to finish.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The view's log is folded when it has so many pages. A capture of ten edits writes some 50 of 4 KiB: rows are in order of
/// their hashes, a page each.
const LOG_LIMIT: i64 = 256;
/// More rows of fresh objects than this are moved to the others at that occasion.
const FRESH_LIMIT: i64 = 1_000;

const LOCK: &str = "lock";
const PACKS: &str = "packs";
const INDEX: &str = "index";
const GIT: &str = "git";
const LEFTOVERS: &str = "leftovers";
/// A copy of the newest workspace record, for finding the store.
const WORKSPACE_COPY: &str = "workspace.json";
/// How long the view's log was when a reader last kept it from being folded.
const STALLED: &str = "log-stalled";

impl Store {
    /// Makes the folders of a new store.
    pub fn create(folder: &Path) -> Result<Self, StoreError> {
        let packs = folder.join(PACKS);
        let is_new = !packs.exists();
        own::make_folders(&packs).map_err(StoreError::io("cannot make", &packs))?;
        if is_new {
            // Up to the folder around piton's home: a pack is durable only where every folder on the way to it is.
            for above in folder.ancestors().take(4) {
                let synced = disk::sync_folder(above);
                // Who may not read a folder around the home cannot sync it either.
                synced
                    .or_else(|e| if e.kind() == ErrorKind::PermissionDenied { Ok(()) } else { Err(e) })
                    .map_err(StoreError::io("cannot sync", above))?;
            }
        }
        Self::open(folder)
    }

    /// Opens a store; makes its view anew where that is lost or damaged, and checks what a power cut may have taken.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        if let Some(store) = Self::open_newest(folder, None)? {
            store.catch_up();
            return Ok(store);
        }
        let lock = take_lock(folder, PATIENCE)?;
        // Judged again: whoever held the lock until now may have made a view, or been in the middle of a first write.
        if let Some(store) = Self::open_newest(folder, Some(&lock))? {
            return Ok(store);
        }
        rebuild::rebuild(folder, &lock)?;
        let generation = views::newest(folder)?.ok_or(StoreError::Unfinished)?;
        Self::with_view(folder, generation)
    }

    /// Opens the view that there is; nothing where it has to be made (anew), or where only the lock's holder can tell.
    fn open_newest(folder: &Path, lock: Option<&Lock>) -> Result<Option<Self>, StoreError> {
        let Some(generation) = views::newest(folder)? else { return Ok(None) };
        let opened = Self::with_view(folder, generation).and_then(|store| {
            if lock.is_some() {
                store.check_view_writable()?;
            }
            let is_whole = store.survived_power_cut(lock)?;
            Ok(is_whole.then_some(store))
        });
        match opened {
            Err(error) if error.is_damaged_database() => Ok(None),
            // Its name was taken away while it was being opened.
            _ if views::newest(folder)? != Some(generation) => Ok(None),
            opened => opened,
        }
    }

    fn with_view(folder: &Path, generation: u64) -> Result<Self, StoreError> {
        let view = Mutex::new(OpenView::open(folder, generation)?);
        let reader = Reader { folder: folder.to_owned(), view, packs: Mutex::default(), beside: Mutex::default() };
        Ok(Self { reader: Arc::new(reader) })
    }

    /// The same memory, for whoever only reads.
    pub fn reader(&self) -> Arc<Reader> {
        self.reader.clone()
    }

    /// Rolls forward what a process that died had closed, where nobody is at work. Whoever only reads does not wait for
    /// the lock, and takes what the view has where this fails.
    fn catch_up(&self) {
        if self.has_tail().unwrap_or(false) {
            drop(self.lock(Duration::ZERO));
        }
    }

    /// Takes the workspace's lock, and makes packs and view agree; where they cannot be made to, the view is made anew. Refused
    /// where the view that is open here is no longer the store's: its rows are not those that others see.
    pub fn lock(&self, patience: Duration) -> Result<Lock, StoreError> {
        let lock = take_lock(&self.folder, patience)?;
        if !self.is_current()? {
            return Err(StoreError::Replaced);
        }
        match self.check_view_writable().and_then(|()| self.settle()) {
            Err(error) if error.is_damaged_database() => {
                self.make_view_anew(&lock)?;
                self.settle()?;
            }
            settled => drop(settled?),
        }
        Ok(lock)
    }

    /// Refuses a view that this user may only read. SQLite says so from what it found when it opened the file.
    fn check_view_writable(&self) -> Result<(), StoreError> {
        if self.db().is_readonly(rusqlite::MAIN_DB)? { Err(StoreError::ReadOnlyView) } else { Ok(()) }
    }

    /// Whether nothing was ever recorded, as whoever holds the lock finds it.
    pub(crate) fn is_unused(&self) -> Result<bool, StoreError> {
        let packs = transactions::pack_numbers(&self.folder)?;
        // One who dies before the first write leaves an empty pack.
        let are_empty =
            packs.into_iter().all(|pack| std::fs::metadata(self.pack_path(pack)).is_ok_and(|f| f.len() == 0));
        Ok(self.end()?.offset == 0 && are_empty && self.aside_files().is_empty())
    }

    /// Begins to write. Only whoever holds the lock may.
    pub fn write<'s>(&'s self, lock: &'s Lock) -> Result<Writer<'s>, StoreError> {
        Writer::new(self, lock)
    }

    /// Keeps the stat cache. It is only a cache: what goes wrong here costs time at the next capture and no more.
    pub fn keep_index(&self, index: &mut Index) {
        let Some(stamp) = self.meta("index").ok().flatten().and_then(|text| stamp(&text)) else { return };
        let path = self.folder.join(INDEX);
        let parts = index.parts();
        let bytes = index.to_bytes(&stamp);
        // Over the old one, in place: a new file would cost more than all of the rest, in blocks to find and to free. A
        // reader that comes in between, or a crash, finds a wrong checksum, and that is no cache.
        let kept = own::open_or_make(&path, File::options().write(true)).and_then(|file| match parts {
            Some(parts) => {
                parts.into_iter().try_for_each(|part| file.write_all_at(&bytes[part.clone()], part.start as u64))
            }
            None => {
                file.write_all_at(bytes, 0)?;
                file.set_len(bytes.len() as u64)
            }
        });
        if kept.is_err() {
            let _ = std::fs::remove_file(&path);
        }
    }

    /// Forgets the stat cache, so that the next capture reads every file.
    pub fn drop_index(&self) {
        let _ = std::fs::remove_file(self.folder.join(INDEX));
    }

    /// Keeps what is known of the repository. Like the index it is only a cache.
    pub fn note_git(&self, note: &GitNote) {
        let bytes = [note.signature, note.tree.0, note.state.0].concat();
        let path = self.folder.join(GIT);
        if own::write(&path, &bytes).is_err() {
            let _ = std::fs::remove_file(&path);
        }
    }

    /// Forgets it.
    pub fn forget_git(&self) {
        let _ = std::fs::remove_file(self.folder.join(GIT));
    }

    /// Keeps what operations that have ended could not remove. Survives a power cut before the caller records their end.
    pub fn keep_leftovers(&self, _lock: &Lock, left: &[Leftover]) -> Result<(), StoreError> {
        let path = self.folder.join(LEFTOVERS);
        let kept = || -> std::io::Result<()> {
            if left.is_empty() {
                return std::fs::remove_file(&path);
            }
            replace_durably(&path, &serde_json::to_vec(left)?)
        };
        match kept() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && left.is_empty() => Ok(()),
            kept => kept.map_err(StoreError::io("cannot write", &path)),
        }
    }

    /// Folds the view's log into its file when it has grown. Every process that opens the store reads all of it, but folding
    /// waits for the disk: so at the end of a capture, not in the middle of an operation.
    ///
    /// Never waits for a reader. One that is suspended may hold the log for hours: it is then tried again only when the
    /// log has grown once more by as much.
    pub fn tidy(&self, _lock: &Lock) -> Result<(), StoreError> {
        let pages = self.log_pages()?;
        if pages < LOG_LIMIT {
            return Ok(());
        }
        let stalled = self.folder.join(STALLED);
        let stalled_at = std::fs::read_to_string(&stalled).ok().and_then(|text| text.trim().parse::<i64>().ok());
        if stalled_at.is_some_and(|at| (at..at.saturating_add(LOG_LIMIT)).contains(&pages)) {
            return Ok(());
        }
        self.sync_packs()?;
        let db = self.db();
        // The fold itself waits for the disk; its marks need not.
        db.execute_batch("PRAGMA synchronous=NORMAL")?;
        let fresh: i64 = db.query_row("SELECT count(*) FROM fresh_objects", [], |r| r.get(0))?;
        let transaction = rusqlite::Transaction::new_unchecked(&db, rusqlite::TransactionBehavior::Immediate)?;
        if fresh > FRESH_LIMIT {
            database::fold(&db)?;
        }
        bond::begin_fold(&db)?;
        transaction.commit()?;
        let failed = |e| StoreError::io("cannot write", Path::new("the database"))(e);
        piton_host::fail::point("store:fold").map_err(failed)?;
        db.busy_timeout(Duration::ZERO)?;
        let is_busy = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |r| r.get::<_, bool>(0));
        db.busy_timeout(database::PATIENCE)?;
        piton_host::fail::point("store:folded").map_err(failed)?;
        let noted = match (is_busy?, stalled_at) {
            (true, _) => own::write(&stalled, self.log_pages()?.to_string().as_bytes()),
            (false, Some(_)) => std::fs::remove_file(&stalled),
            (false, None) => Ok(()),
        };
        // Only a note: without it the next capture tries again.
        drop(noted);
        // Where this fails, whoever takes the lock next does it.
        let _ = bond::bind(&db);
        Ok(())
    }

    pub(crate) fn sync_packs(&self) -> Result<(), StoreError> {
        let unsynced: Vec<_> = self.packs()?.into_iter().filter(|(_, length, synced)| synced < length).collect();
        for (pack, length, synced) in unsynced {
            self.sync_pack(pack, synced == 0)?;
            self.db().execute("UPDATE packs SET synced = ?2 WHERE pack = ?1", params![pack, length as i64])?;
        }
        Ok(())
    }

    pub(crate) fn sync_pack(&self, pack: u32, is_new: bool) -> Result<(), StoreError> {
        let path = self.pack_path(pack);
        piton_host::fail::point("store:sync-pack").map_err(StoreError::io("cannot sync", &path))?;
        self.pack_file(pack)?.sync_data().map_err(StoreError::io("cannot sync", &path))?;
        if is_new {
            let folder = self.folder.join(PACKS);
            disk::sync_folder(&folder).map_err(StoreError::io("cannot sync", &folder))?;
        }
        Ok(())
    }

    /// Whether what the rows say is there. After a reboot, records that were not synced may be gone or wrong while
    /// their rows survived. Without the lock the answer may only be that somebody has to look.
    fn survived_power_cut(&self, lock: Option<&Lock>) -> Result<bool, StoreError> {
        let packs = self.packs()?;
        let rebooted = self.meta("boot")?.is_some_and(|boot| boot != clock::boot_id());
        let is_unsynced = |(_, length, synced): &(u32, u64, u64)| rebooted && synced < length;
        for (pack, length, _) in &packs {
            if transactions::pack_length(&self.folder, *pack)? < *length {
                return Ok(false);
            }
        }
        if !packs.iter().any(is_unsynced) {
            return Ok(true);
        }
        if lock.is_none() {
            return Ok(false);
        }
        let known = packs.iter().map(|(pack, length, _)| (*pack, *length)).collect();
        if !rebuild::is_sound(&self.folder, rebuild::synced(&packs), &known)? {
            return Ok(false);
        }
        self.bind_log()?;
        self.sync_packs()?;
        self.db().execute("INSERT OR REPLACE INTO meta VALUES ('boot', ?1)", [clock::boot_id()])?;
        Ok(true)
    }
}

/// What tells one file from another at the same path.
pub(crate) type FileId = (u64, u64);

pub(crate) fn file_id(path: &Path) -> Option<FileId> {
    std::fs::metadata(path).ok().map(|found| id_in(&found))
}

pub(crate) fn file_id_of(file: &File) -> Option<FileId> {
    file.metadata().ok().map(|found| id_in(&found))
}

fn id_in(found: &std::fs::Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt;
    (found.dev(), found.ino())
}

pub(crate) fn pack_rows(db: &Connection) -> Result<Vec<(u32, u64, u64)>, StoreError> {
    let mut query = db.prepare_cached("SELECT pack, length, synced FROM packs ORDER BY pack")?;
    let rows = query.query_map([], |r| Ok((r.get(0)?, r.get::<_, i64>(1)? as u64, r.get::<_, i64>(2)? as u64)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(crate) fn take_lock(folder: &Path, patience: Duration) -> Result<Lock, StoreError> {
    let path = folder.join(LOCK);
    Lock::take(&path, patience).map_err(StoreError::io("cannot lock", &path))?.ok_or(StoreError::Busy)
}

pub(crate) fn pack_name(pack: u32) -> String {
    format!("{pack:06}.pack")
}

/// Reads a note beside the database. Whatever else stands at its name, such as a pipe, holds nobody up and says nothing.
pub(crate) fn read_note(folder: &Path, name: &str) -> Option<Vec<u8>> {
    /// More than any note that piton writes.
    const LARGEST: u64 = 64 << 20;
    let file = File::from(bounded::open_in(folder, Path::new(name)).ok()?);
    let mut bytes = Vec::new();
    file.metadata().ok().filter(|about| about.is_file())?;
    file.take(LARGEST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Puts a new file in the place of an old one, whole, and so that it survives a power cut.
pub(crate) fn replace_durably(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let new = path.with_extension("new");
    own::write(&new, bytes)?;
    File::open(&new)?.sync_all()?;
    std::fs::rename(&new, path)?;
    path.parent().map_or(Ok(()), disk::sync_folder)
}

fn stamp(text: &str) -> Option<[u8; 32]> {
    Some(*blake3::hash(text.as_bytes()).as_bytes()).filter(|_| !text.is_empty())
}
