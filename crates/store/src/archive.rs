//! Session archives: one file with the records of a session and every object that they need. `docs/format.md` has the
//! layout.
//!
//! Written as a stream, one object at a time. What an archive holds is in [`read`]; what its records mean is the engine's
//! business.

mod read;

use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Write};
use std::sync::Arc;

use piton_model::diff::TreeSource;
use piton_model::record::Numbered;
use piton_model::session::Message;
use piton_model::{Entry, Need, NeededObject, ObjectId, Record, SessionId, StepRef, Timestamp, Tree};
use rusqlite::params;
use serde::{Deserialize, Serialize};

use crate::Reader;
use crate::error::StoreError;
use crate::objects::{CHUNKED_FROM, chunks, pack_blob, pack_large};
use crate::pack::{self, Kind, Sound};
use crate::query::parsed;

pub use read::Archive;

/// How an archive begins, before its version.
const MAGIC: &[u8; 8] = b"PITONAR1";
/// The format that this piton writes, and the newest that it reads.
const VERSION: u32 = 1;
/// Magic, version and four zero bytes.
const HEAD: usize = 16;
/// How the end of an archive begins.
const END: &[u8; 8] = b"PITONEND";
/// The mark of the end, and the hash of all bytes before it.
const END_LENGTH: usize = 40;

/// One record of the timeline may be as long as this.
const LARGEST_RECORD: u64 = 32 << 20;
/// All of them together: they are checked together, in memory.
const MOST_TIMELINE: u64 = 128 << 20;

/// The first line of imported checkpoints; each archive gets the next. Folders that stand at a workspace's path are
/// counted from 1 and never come this far. The database's rows name this number too.
pub(crate) const IMPORTED_LINES: u32 = 1 << 31;

/// Who made an archive, and of what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The session that it is of; others in it are those that this one is a branch of.
    pub session: SessionId,
    /// The version of the piton that made it.
    pub piton: String,
    pub made_at: Timestamp,
}

/// Why an archive could not be written or read. Nothing of it counts.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The output refused.
    #[error("the archive cannot be written: {0}")]
    Write(#[source] io::Error),
    /// The file refused.
    #[error("the archive cannot be read: {0}")]
    Read(#[source] io::Error),
    /// Something else.
    #[error("it is not a session archive")]
    NotOne,
    /// Made by a later piton.
    #[error("the archive has format {found}; this piton knows formats up to {VERSION}")]
    Newer {
        /// The archive's.
        found: u32,
    },
    /// Not as it was written.
    #[error("the archive is damaged at byte {at}: {why}")]
    Damaged {
        at: u64,
        /// What is wrong.
        why: &'static str,
    },
    /// Whole, and holding what no piton writes.
    #[error("the archive is refused: {0}")]
    Refused(String),
    /// It says that it holds more than the store could have held itself.
    #[error("the archive's files are said to take {declared} bytes or more, too much for a budget of {budget} bytes")]
    OverBudget {
        /// What is said up to where it became too much.
        declared: u64,
        /// The store's.
        budget: u64,
    },
    /// A session that is too much for one archive.
    #[error("the session's records take more than {} MiB, which is too much for one archive", MOST_TIMELINE >> 20)]
    TooMuch,
    /// The transcript became shorter while it was read.
    #[error("the transcript changed while it was read")]
    TranscriptChanged,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveTotals {
    /// Objects.
    pub objects: u64,
    /// Records of the timeline.
    pub records: u64,
    /// Bytes of all of it.
    pub bytes: u64,
}

/// An archive that is being written: objects first, those that others need before them, then records.
pub struct ArchiveWriter<'a> {
    store: &'a Reader,
    out: &'a mut dyn Write,
    hasher: blake3::Hasher,
    written: HashSet<ObjectId>,
    totals: ArchiveTotals,
    timeline: u64,
}

impl<'a> ArchiveWriter<'a> {
    /// Begins an archive of objects of a store.
    ///
    /// # Errors
    /// Where the output refuses.
    pub fn begin(store: &'a Reader, out: &'a mut dyn Write, manifest: &Manifest) -> Result<Self, ArchiveError> {
        let (written, totals) = (HashSet::new(), ArchiveTotals::default());
        let mut archive = Self { store, out, hasher: blake3::Hasher::new(), written, totals, timeline: 0 };
        let mut head = MAGIC.to_vec();
        head.extend_from_slice(&VERSION.to_le_bytes());
        head.extend_from_slice(&[0; 4]);
        archive.put(&head)?;
        archive.json(manifest)?;
        Ok(archive)
    }

    /// Adds a blob of the store, with its chunks.
    ///
    /// # Errors
    /// Where it is missing or damaged: then nothing of it was added, and the archive can go on without it. After any
    /// other error, as where the output refuses, there is no archive.
    pub fn blob(&mut self, id: &ObjectId) -> Result<(), ArchiveError> {
        if self.written.contains(id) {
            return Ok(());
        }
        // A chunk that nothing needs would make an archive that no import takes: so all are read before any is added.
        let sound = self.stored(id)?.0;
        for chunk in parts(&sound)? {
            self.piece(id, &chunk)?;
        }
        self.whole_blob(id).map_err(|error| match error {
            // Sound a moment ago, and some of it may have been added by now.
            ArchiveError::Store(error @ (StoreError::Missing(_) | StoreError::Damaged(_))) => {
                ArchiveError::Write(io::Error::other(error))
            }
            error => error,
        })
    }

    /// The same, read once: after an error there is no archive.
    fn whole_blob(&mut self, id: &ObjectId) -> Result<(), ArchiveError> {
        if self.written.contains(id) {
            return Ok(());
        }
        let (sound, bytes) = self.stored(id)?;
        for chunk in parts(&sound)? {
            if let Some(bytes) = self.piece(id, &chunk)? {
                self.object(chunk, &bytes)?;
            }
        }
        self.object(*id, &bytes)
    }

    /// A chunk of a blob as it is in its pack, sound; none where the archive has it.
    fn piece(&self, blob: &ObjectId, chunk: &ObjectId) -> Result<Option<Vec<u8>>, ArchiveError> {
        if self.written.contains(chunk) {
            return Ok(None);
        }
        let (piece, bytes) = self.stored(chunk)?;
        match piece.kind {
            Kind::Blob => Ok(Some(bytes)),
            Kind::Chunks | Kind::Tree | Kind::Timeline | Kind::Commit => Err(StoreError::Damaged(*blob).into()),
        }
    }

    /// Adds a tree of the store with all that is in it.
    ///
    /// # Errors
    /// Where anything of it is missing or damaged, or the output refuses.
    pub fn tree(&mut self, root: &ObjectId) -> Result<(), ArchiveError> {
        if self.written.contains(root) {
            return Ok(());
        }
        // By hand and not by recursion: a folder may lie as deep as a path is long.
        let mut open: Vec<(ObjectId, Arc<Tree>, usize)> = vec![(*root, self.store.tree(root)?, 0)];
        while let Some((id, tree, at)) = open.last_mut() {
            let Some((_, entry)) = tree.entries().get(*at) else {
                let id = *id;
                let (_, bytes) = self.stored(&id)?;
                self.object(id, &bytes)?;
                open.pop();
                continue;
            };
            *at += 1;
            match entry {
                Entry::File { blob, .. } => {
                    let blob = *blob;
                    self.whole_blob(&blob)?;
                }
                Entry::Folder { tree, .. } if !self.written.contains(tree) => {
                    let id = *tree;
                    open.push((id, self.store.tree(&id)?, 0));
                }
                Entry::Folder { .. } | Entry::Symlink { .. } | Entry::Skipped { .. } => {}
            }
        }
        Ok(())
    }

    /// Adds what a record needs of the store, unless the archive has it.
    ///
    /// # Errors
    /// Where anything of it is missing or damaged, or the output refuses.
    pub fn needed(&mut self, need: &Need) -> Result<(), ArchiveError> {
        match &need.object {
            NeededObject::Tree(id) => self.tree(id),
            NeededObject::Blob { id, .. } | NeededObject::GitState(id) => self.blob(id),
        }
    }

    /// Adds so many bytes that are in no store.
    ///
    /// # Errors
    /// Where there are fewer, or the output refuses.
    pub fn bytes(&mut self, bytes: &mut dyn Read, length: u64) -> Result<ObjectId, ArchiveError> {
        let mut bytes = bytes.take(length);
        if length < CHUNKED_FROM {
            let mut all = Vec::new();
            bytes.read_to_end(&mut all).map_err(ArchiveError::Read)?;
            if all.len() as u64 != length {
                return Err(ArchiveError::TranscriptChanged);
            }
            let id = ObjectId::of_blob(&all);
            self.object(id, &pack_blob(id, &all).map_err(ArchiveError::Write)?.0.bytes)?;
            return Ok(id);
        }
        struct Failure(ArchiveError);
        impl From<io::Error> for Failure {
            fn from(error: io::Error) -> Self {
                Self(ArchiveError::Read(error))
            }
        }
        let (id, found, list) = pack_large(&mut bytes, |id, piece| {
            let packed = pack_blob(id, piece)?;
            self.object(id, &packed.0.bytes).map_err(Failure)
        })
        .map_err(|Failure(error)| error)?;
        if found != length {
            return Err(ArchiveError::TranscriptChanged);
        }
        self.object(id, &list.0.bytes)?;
        Ok(id)
    }

    /// Adds a record, after all objects.
    ///
    /// # Errors
    /// Where there are too many, or the output refuses.
    pub fn record(&mut self, record: Record) -> Result<(), ArchiveError> {
        self.totals.records += 1;
        let length = self.json(&Numbered { seq: self.totals.records, record })?;
        self.timeline += length;
        if length > LARGEST_RECORD || self.timeline > MOST_TIMELINE {
            return Err(ArchiveError::TooMuch);
        }
        Ok(())
    }

    /// Ends the archive: without this it is none.
    ///
    /// # Errors
    /// Where the output refuses.
    pub fn finish(mut self) -> Result<ArchiveTotals, ArchiveError> {
        let digest = self.hasher.finalize();
        let end = [&END[..], digest.as_bytes()].concat();
        self.put(&end)?;
        self.out.flush().map_err(ArchiveError::Write)?;
        Ok(self.totals)
    }

    /// An object as it is in its pack, and what it holds; sound.
    fn stored(&self, id: &ObjectId) -> Result<(Sound, Vec<u8>), ArchiveError> {
        if let Some(place) = self.store.place(id)? {
            let mut bytes = vec![0; place.length as usize];
            let file = self.store.pack_file(place.pack)?;
            let read = piton_host::disk::read_what_can_be(&file, &mut bytes, place.offset);
            let sound = read.ok().and_then(|()| pack::unpack(&bytes)).filter(|sound| sound.id == *id);
            if let Some(sound) = sound.filter(|sound| sound.delta.is_none()) {
                return Ok((sound, bytes));
            }
        }
        // In an archive every object is whole. What a fork shares with its parent may be in the parent's store alone.
        let whole = self.store.here_or_beside(id)?;
        let packed = pack::pack(whole.kind, *id, &whole.raw).map_err(ArchiveError::Write)?;
        Ok((whole, packed.bytes))
    }

    fn object(&mut self, id: ObjectId, bytes: &[u8]) -> Result<(), ArchiveError> {
        if self.written.insert(id) {
            self.totals.objects += 1;
            self.put(bytes)?;
        }
        Ok(())
    }

    fn json<T: Serialize>(&mut self, value: &T) -> Result<u64, ArchiveError> {
        let json = serde_json::to_vec(value).map_err(|error| ArchiveError::Write(error.into()))?;
        if json.len() as u64 > LARGEST_RECORD {
            return Err(ArchiveError::TooMuch);
        }
        let packed = pack::pack(Kind::Timeline, ObjectId::of_blob(&json), &json).map_err(ArchiveError::Write)?;
        self.put(&packed.bytes)?;
        Ok(json.len() as u64)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        self.hasher.update(bytes);
        self.totals.bytes += bytes.len() as u64;
        self.out.write_all(bytes).map_err(ArchiveError::Write)
    }
}

/// The chunks of a blob; none where it is one piece.
fn parts(blob: &Sound) -> Result<Vec<ObjectId>, StoreError> {
    match blob.kind {
        Kind::Blob => Ok(Vec::new()),
        Kind::Chunks => chunks(&blob.raw).ok_or(StoreError::Damaged(blob.id)),
        Kind::Tree | Kind::Timeline | Kind::Commit => Err(StoreError::Damaged(blob.id)),
    }
}

impl Reader {
    /// What was said in a session, each with the number of its record, in order.
    ///
    /// # Errors
    /// Where the database refuses.
    pub fn messages_numbered(&self, session: &SessionId) -> Result<Vec<(u64, Message)>, StoreError> {
        let db = self.db();
        let sql = "SELECT seq, session, turn, role, text, at FROM messages WHERE session = ?1 ORDER BY seq";
        let mut query = db.prepare_cached(sql)?;
        let rows = query.query_map([session.as_str()], |row| {
            let (session, at) = (parsed(row, 1)?, Timestamp(row.get(5)?));
            let message = Message { session, turn: row.get(2)?, role: row.get(3)?, text: row.get(4)?, at };
            Ok((row.get::<_, i64>(0)? as u64, message))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The number of the record that ended each step of a session, where it ended here.
    ///
    /// # Errors
    /// Where the database refuses.
    pub fn step_ends(&self, session: &SessionId) -> Result<HashMap<StepRef, u64>, StoreError> {
        let db = self.db();
        let sql = "SELECT turn, number, ended_seq FROM steps WHERE session = ?1 AND ended_seq IS NOT NULL";
        let mut query = db.prepare_cached(sql)?;
        let rows = query.query_map(params![session.as_str()], |row| {
            let at = StepRef { session: session.clone(), turn: row.get(0)?, step: row.get(1)? };
            Ok((at, row.get::<_, i64>(2)? as u64))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// A line of its own for checkpoints that come from elsewhere.
    ///
    /// # Errors
    /// Where the database refuses.
    pub fn next_imported_line(&self) -> Result<u32, StoreError> {
        let sql = "SELECT max(line) FROM checkpoints WHERE line >= 2147483648";
        let last: Option<u32> = self.db().query_row(sql, [], |row| row.get(0))?;
        Ok(last.map_or(IMPORTED_LINES, |last| last.saturating_add(1)))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_number_in_the_rows_is_that_of_imported_lines() {
        assert_eq!(super::IMPORTED_LINES, 2_147_483_648);
    }
}
