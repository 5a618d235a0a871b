//! Bringing packs and view together, under the lock.
//!
//! The packs are the truth. What they have closed and the view lacks (its process died, or the view's own log was lost) is
//! rolled forward. What is closed and not sound, which only a power cut or damage leaves, is moved aside and named by
//! `verify`. What nobody closed never counted, and goes.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use piton_host::clock;
use rusqlite::params;

use crate::database::{apply, apply_object};
use crate::error::StoreError;
use crate::transactions::{self, End, Position, Transaction, pack_numbers};
use crate::{PACKS, Store, pack_name};

/// Where bytes go that were closed and are not sound.
const ASIDE: &str = "aside";

impl Store {
    /// Whether the packs have more than the view knows, as far as a look at their lengths tells.
    pub(crate) fn has_tail(&self) -> Result<bool, StoreError> {
        let end = self.end()?;
        Ok(self.pack_length(end.pack) > end.offset || self.pack_path(end.pack + 1).exists())
    }

    /// Where the view says that the packs end.
    pub(crate) fn end(&self) -> Result<Position, StoreError> {
        let last = self.packs()?.last().map(|(pack, length, _)| Position { pack: *pack, offset: *length });
        Ok(last.unwrap_or(Position { pack: 1, offset: 0 }))
    }

    /// Makes the view and the packs agree. Only whoever holds the lock may call it.
    pub(crate) fn settle(&self) -> Result<Position, StoreError> {
        let end = self.end()?;
        let length = self.pack_length(end.pack);
        if length < end.offset {
            return Err(StoreError::PackCut { pack: end.pack });
        }
        if length == end.offset && !self.pack_path(end.pack + 1).exists() {
            return Ok(end);
        }
        let mut tail: Vec<Transaction> = Vec::new();
        transactions::read(self.folder(), end, None, |transaction| {
            tail.push(transaction);
            Ok(())
        })?;
        let counts = tail.iter().take_while(|t| matches!(t.end, End::Closed { is_sound: true, .. } | End::Old)).count();
        self.roll_forward(&tail[..counts])?;
        let end = self.end()?;
        if tail[counts..].iter().any(|t| !matches!(t.end, End::Open)) {
            set_aside(self.folder(), end)?;
        }
        cut(self.folder(), end)?;
        // The next pack of a number is another file.
        self.forget_packs();
        Ok(end)
    }

    fn roll_forward(&self, closed: &[Transaction]) -> Result<(), StoreError> {
        if closed.is_empty() {
            return Ok(());
        }
        let db = &*self.db();
        let transaction = rusqlite::Transaction::new_unchecked(db, rusqlite::TransactionBehavior::Immediate)?;
        let mut next = self.next_seq()?;
        for found in closed {
            for (kind, id, place) in &found.objects {
                apply_object(db, *kind, id, place)?;
            }
            for (numbered, place) in &found.timeline {
                // Records that do not follow the view's last one belong to another view than this.
                if numbered.seq != next && matches!(found.end, End::Closed { .. }) {
                    return Err(StoreError::Diverged { found: numbered.seq, expected: next });
                }
                apply(db, numbered, place)?;
                next = numbered.seq + 1;
            }
            for (pack, length) in lengths(self.folder(), found)? {
                db.execute(
                    "INSERT INTO packs VALUES (?1, ?2, 0) ON CONFLICT(pack) DO UPDATE SET length = ?2",
                    params![pack, length as i64],
                )?;
            }
        }
        db.execute("INSERT OR REPLACE INTO meta VALUES ('boot', ?1)", [clock::boot_id()])?;
        transaction.commit()?;
        // It belongs to a view that is gone.
        self.drop_index();
        Ok(())
    }

    pub(crate) fn next_seq(&self) -> Result<u64, StoreError> {
        let next: i64 = self.db().query_row("SELECT coalesce(max(seq), 0) + 1 FROM records", [], |r| r.get(0))?;
        Ok(next as u64)
    }

    fn pack_length(&self, pack: u32) -> u64 {
        std::fs::metadata(self.pack_path(pack)).map_or(0, |found| found.len())
    }

    /// Files with bytes that were closed and are not sound.
    pub(crate) fn aside_files(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.folder().join(ASIDE)) else { return Vec::new() };
        let mut files: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
        files.sort();
        files
    }
}

/// How long each pack is that a transaction lies in, up to its end.
pub(crate) fn lengths(folder: &Path, transaction: &Transaction) -> Result<Vec<(u32, u64)>, StoreError> {
    let Transaction { start, stop, .. } = transaction;
    let mut lengths = Vec::new();
    for pack in pack_numbers(folder)?.into_iter().filter(|pack| (start.pack..stop.pack).contains(pack)) {
        let path = folder.join(PACKS).join(pack_name(pack));
        let found = std::fs::metadata(&path).map_err(StoreError::io("cannot read", &path))?;
        // A transaction may begin where a pack is full and lie wholly in the next.
        if pack > start.pack || found.len() > start.offset {
            lengths.push((pack, found.len()));
        }
    }
    lengths.push((stop.pack, stop.offset));
    Ok(lengths)
}

/// Copies all bytes from a position on to files of their own, durably. [`cut`] then takes them out of the packs.
pub(crate) fn set_aside(folder: &Path, from: Position) -> Result<(), StoreError> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    let aside = folder.join(ASIDE);
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&aside);
    made.map_err(StoreError::io("cannot make", &aside))?;
    for pack in pack_numbers(folder)?.into_iter().filter(|pack| *pack >= from.pack) {
        let offset = if pack == from.pack { from.offset } else { 0 };
        let path = folder.join(PACKS).join(pack_name(pack));
        let mut file = File::open(&path).map_err(StoreError::io("cannot open", &path))?;
        if file.metadata().map_err(StoreError::io("cannot read", &path))?.len() <= offset {
            continue;
        }
        let name = |n: u32| aside.join(format!("{pack:06}-{offset}.{n}"));
        let to = (1..).map(name).find(|to| !to.exists()).unwrap_or_else(|| name(0));
        let copied = File::options().write(true).create_new(true).mode(0o600).open(&to).and_then(|mut copy| {
            file.seek(SeekFrom::Start(offset))?;
            std::io::copy(&mut file.take(u64::MAX), &mut copy)?;
            copy.sync_all()
        });
        copied.map_err(StoreError::io("cannot write", &to))?;
    }
    File::open(&aside).and_then(|f| f.sync_all()).map_err(StoreError::io("cannot sync", &aside))
}

/// Ends the packs at a position.
pub(crate) fn cut(folder: &Path, at: Position) -> Result<(), StoreError> {
    for pack in pack_numbers(folder)?.into_iter().filter(|pack| *pack >= at.pack) {
        let path = folder.join(PACKS).join(pack_name(pack));
        if pack == at.pack && at.offset > 0 {
            let file = File::options().write(true).open(&path);
            file.and_then(|file| file.set_len(at.offset)).map_err(StoreError::io("cannot shorten", &path))?;
        } else {
            std::fs::remove_file(&path).map_err(StoreError::io("cannot remove", &path))?;
        }
    }
    Ok(())
}
