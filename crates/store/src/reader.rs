//! A store as it can be read: what is asked of the packs and of the view.

use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use parking_lot::ReentrantMutex;
use piton_host::Index;
use piton_model::{ObjectId, OperationId};
use rusqlite::{Connection, OptionalExtension};

use crate::beside::Beside;
use crate::{
    FileId, GIT, GitNote, INDEX, LEFTOVERS, LOCK, Leftover, PACKS, StoreError, bond, database, file_id, id_in,
};
use crate::{pack_name, pack_rows, read_note, search, stamp, transactions, views};

/// One workspace's memory, for reading: nothing here can write to it.
pub struct Reader {
    pub(crate) folder: PathBuf,
    /// Another one takes its place where this process makes the view anew.
    pub(crate) view: Mutex<OpenView>,
    pub(crate) packs: Mutex<HashMap<u32, Arc<File>>>,
    pub(crate) beside: Mutex<Beside>,
}

/// The view that a store has open.
pub(crate) struct OpenView {
    /// Reentrant, so that a question may be asked in the middle of a transaction of the same thread.
    db: Arc<ReentrantMutex<Connection>>,
    /// Which view it is, and which file: one made anew has another name.
    generation: u64,
    file: Option<FileId>,
}

/// The connection to the view, for one thread.
pub(crate) type DatabaseGuard =
    parking_lot::lock_api::ArcReentrantMutexGuard<parking_lot::RawMutex, parking_lot::RawThreadId, Connection>;

impl Reader {
    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads from the store's view from now on, which may be another one than the one that was opened.
    pub(crate) fn look_anew(&self) -> Result<(), StoreError> {
        let generation = views::newest(&self.folder)?.ok_or(StoreError::Unfinished)?;
        let view = OpenView::open(&self.folder, generation)?;
        *self.view.lock().unwrap_or_else(|e| e.into_inner()) = view;
        self.forget_packs();
        Ok(())
    }

    /// Whether the view that is open here is the store's.
    pub(crate) fn is_current(&self) -> Result<bool, StoreError> {
        let newest = views::newest(&self.folder)?;
        let view = self.view.lock().unwrap_or_else(|e| e.into_inner());
        let is_newest = newest == Some(view.generation);
        Ok(is_newest && file_id(&views::path(&self.folder, view.generation)) == view.file)
    }

    pub(crate) fn generation(&self) -> u64 {
        self.view.lock().unwrap_or_else(|e| e.into_inner()).generation
    }

    /// The stat cache, where there is one that belongs to what the store has now.
    pub fn index(&self) -> Option<Index> {
        let stamp = stamp(&self.meta("index").ok()??)?;
        Index::from_bytes(std::fs::read(self.folder.join(INDEX)).ok()?, &stamp)
    }

    /// What is known of the repository since the last capture.
    pub fn git_note(&self) -> Option<GitNote> {
        let bytes = std::fs::read(self.folder.join(GIT)).ok()?;
        let parts: [[u8; 32]; 3] = bytes.as_chunks::<32>().0.try_into().ok().filter(|_| bytes.len() == 96)?;
        Some(GitNote { signature: parts[0], tree: ObjectId(parts[1]), state: ObjectId(parts[2]) })
    }

    /// What operations that have ended could not remove.
    pub fn leftovers(&self) -> Vec<Leftover> {
        let Some(bytes) = read_note(&self.folder, LEFTOVERS) else { return Vec::new() };
        // Where it is lost, what was left is captured like anything else, and nothing more.
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Whether an operation that has ended left a step's own name.
    pub fn is_leftover(&self, operation: &OperationId, step: usize) -> bool {
        self.leftovers().iter().any(|one| !one.outside && one.step == step && one.operation == *operation)
    }

    pub(crate) fn db(&self) -> DatabaseGuard {
        let db = self.view.lock().unwrap_or_else(|e| e.into_inner()).db.clone();
        db.lock_arc()
    }

    /// Does something that asks the store many times, from several threads even, under one lock of the database
    /// instead of one lock each.
    pub fn read_steadily<T>(&self, act: impl FnOnce() -> T) -> T {
        struct Ended<'s>(&'s Reader, bool);
        impl Drop for Ended<'_> {
            fn drop(&mut self) {
                if self.1 {
                    let _ = self.0.db().execute_batch("COMMIT");
                }
            }
        }
        // Where it cannot begin, each question takes its own lock as before.
        let began = self.db().execute_batch("BEGIN").is_ok();
        let _ended = Ended(self, began);
        act()
    }

    pub(crate) fn meta(&self, key: &str) -> Result<Option<String>, StoreError> {
        let value = self
            .db()
            .prepare_cached("SELECT value FROM meta WHERE key = ?1")?
            .query_row([key], |r| r.get(0))
            .optional()?;
        Ok(value)
    }

    /// Every pack with its committed and its synced length.
    pub(crate) fn packs(&self) -> Result<Vec<(u32, u64, u64)>, StoreError> {
        pack_rows(&self.db())
    }

    pub(crate) fn pack_path(&self, pack: u32) -> PathBuf {
        self.folder.join(PACKS).join(pack_name(pack))
    }

    pub(crate) fn pack_file(&self, pack: u32) -> Result<Arc<File>, StoreError> {
        let mut packs = self.packs.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(file) = packs.get(&pack) {
            return Ok(file.clone());
        }
        let path = self.pack_path(pack);
        let file = Arc::new(File::open(&path).map_err(StoreError::io("cannot open", &path))?);
        packs.insert(pack, file.clone());
        Ok(file)
    }

    /// Lets go of a pack that was removed: the next one of that number is another file.
    pub(crate) fn forget_pack(&self, pack: u32) {
        self.packs.lock().unwrap_or_else(|e| e.into_inner()).remove(&pack);
    }

    pub(crate) fn forget_packs(&self) {
        self.packs.lock().unwrap_or_else(|e| e.into_inner()).clear();
    }

    /// Whether the store can be written now: tried out with a small file of its own, which goes again, and by opening what
    /// every capture writes to.
    ///
    /// # Errors
    /// What the system says where it cannot: a full disk, a read-only one, no permission.
    pub fn check_writable(&self) -> Result<(), StoreError> {
        // More than the smallest file, which some filesystems have room for when they are full.
        const LENGTH: usize = 64 << 10;
        let path = self.folder.join(format!("writable-{}", std::process::id()));
        let written = std::fs::write(&path, vec![1; LENGTH]);
        let _ = std::fs::remove_file(&path);
        written.map_err(StoreError::io("cannot write", &path))?;
        // What is there already may be another user's, and only the database is made anew for that reason.
        let mut needed = vec![self.folder.join(LOCK)];
        needed.extend(transactions::pack_numbers(&self.folder)?.last().map(|last| self.pack_path(*last)));
        for path in needed {
            match File::options().read(true).write(true).open(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(StoreError::io("cannot write", &path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Bytes that the store takes: packs, database, index and what is set aside.
    pub fn size(&self) -> Result<u64, StoreError> {
        let packs: u64 = self.packs()?.iter().map(|(_, length, _)| length).sum();
        let beside = [INDEX, GIT, search::WORDS, "gaps", "gaps.taken"].map(|name| self.folder.join(name));
        let beside = beside.into_iter().chain(self.aside_files()).filter_map(|path| std::fs::metadata(path).ok());
        Ok(packs + views::size(&self.folder)? + beside.map(|found| found.len()).sum::<u64>())
    }

    /// How many pages the view's log has.
    pub(crate) fn log_pages(&self) -> Result<i64, StoreError> {
        Ok(self.db().query_row("PRAGMA wal_checkpoint(NOOP)", [], |r| r.get(1))?)
    }
}

impl OpenView {
    pub(crate) fn open(folder: &Path, generation: u64) -> Result<Self, StoreError> {
        let path = views::path(folder, generation);
        // Before and after: what was opened is what has the name, or the lock is refused later.
        let before = file_id(&path);
        let db = database::open_in_time(&path)?;
        let found = std::fs::metadata(&path).ok().filter(|found| Some(id_in(found)) == before);
        let found = found.ok_or(StoreError::Replaced)?;
        bond::check(&db, bond::Identity::of(&found))?;
        Ok(Self { db: Arc::new(ReentrantMutex::new(db)), generation, file: before })
    }
}
