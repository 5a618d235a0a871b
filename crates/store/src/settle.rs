//! Bringing packs and view together, under the lock.
//!
//! The packs are the truth. What they have closed and the view lacks (its process died, or the view's own log was lost) is
//! rolled forward. What a power cut left of closed transactions is moved aside and named by `verify`. What nobody closed
//! never counted, and goes. Everything else means that the view is wrong or that the packs are damaged, and the view is made
//! anew: what it says never shortens a pack, since only what follows a sound commit record is ever cut off.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use piton_host::{clock, disk, own};
use piton_model::{CheckpointId, Record, SessionId};
use rusqlite::params;

use crate::bond::{self, Belonging, Identity};
use crate::database::{apply, apply_object, to_sql};
use crate::error::StoreError;
use crate::gone::Gone;
use crate::rebuild::{Judge, synced};
use crate::transactions::{self, End, Position, Transaction, pack_numbers};
use crate::{PACKS, Reader, Store, pack_name, replace_durably};

/// Where bytes go that were closed and are not sound.
const ASIDE: &str = "aside";

/// How the name of the note ends that lists the checkpoints in such a file: out of their pack its records cannot be read.
const CONTENTS: &str = "contents";

/// What packs and view agree on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreed {
    /// Where the packs end.
    pub end: Position,
    /// The number of the next record, where the last commit record tells it.
    next_seq: Option<u64>,
    /// Everything before this was on the disk, as the last commit record tells it.
    synced: Position,
}

fn diverged(what: String) -> StoreError {
    StoreError::Diverged { what }
}

impl Reader {
    /// Whether the packs have more than the view knows, as far as a look at their lengths tells.
    pub(crate) fn has_tail(&self) -> Result<bool, StoreError> {
        let end = self.end()?;
        Ok(self.pack_length(end.pack)? > end.offset || self.pack_path(end.pack + 1).exists())
    }

    /// Where the view says that the packs end.
    pub(crate) fn end(&self) -> Result<Position, StoreError> {
        let last = self.packs()?.last().map(|(pack, length, _)| Position { pack: *pack, offset: *length });
        Ok(last.unwrap_or(Position { pack: 1, offset: 0 }))
    }

    /// The number of the next record, as the packs tell it.
    pub(crate) fn next_seq(&self, settled: &Agreed) -> Result<u64, StoreError> {
        if let Some(next) = settled.next_seq {
            return Ok(next);
        }
        // Only where the last pack is of format 1, which is read whole once: what is written now begins another.
        let mut last = 0;
        transactions::read(self.folder(), Position::default(), None, |transaction| {
            last = transaction.timeline.iter().map(|(numbered, _)| numbered.seq).fold(last, u64::max);
            Ok(())
        })?;
        Ok(last + 1)
    }

    /// The number of the next record, as the last commit record tells it, if it can be read.
    pub(crate) fn next_number(&self) -> Result<Option<u64>, StoreError> {
        let end = self.end()?;
        if end.offset == 0 {
            return Ok(None);
        }
        let file = self.pack_file(end.pack)?;
        let Some(tagger) = transactions::tagger_of(self.folder(), &file, end.pack)? else { return Ok(None) };
        let commit = transactions::commit_ending_at(&file, &tagger, end.offset);
        Ok(commit.map_err(StoreError::io("cannot read", &self.pack_path(end.pack)))?.map(|commit| commit.next()))
    }

    fn pack_length(&self, pack: u32) -> Result<u64, StoreError> {
        transactions::pack_length(self.folder(), pack)
    }

    /// Whether something that was captured is gone or incomplete, as far as that was noticed: [`Reader::verify`] names it.
    pub fn has_lost_history(&self) -> bool {
        !self.aside_files().is_empty()
    }

    /// The last turn of a session that is known to be lost; 0 where none is.
    pub fn last_lost_turn(&self, session: &SessionId) -> u32 {
        let notes = self.aside_files().into_iter().filter_map(|path| Gone::noted_in(&path));
        let turns = notes.flat_map(|note| note.turns).filter(|(of, _)| of == session);
        turns.map(|(_, turn)| turn).max().unwrap_or(0)
    }

    /// Files with bytes that were closed and are not sound, and notes of bytes that are gone.
    pub(crate) fn aside_files(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.folder().join(ASIDE)) else { return Vec::new() };
        let mut files: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
        // Of a note that a crash left unfinished too.
        files.retain(|path| path.extension().is_none_or(|end| end != CONTENTS && end != "new"));
        files.sort();
        files
    }
}

impl Store {
    /// Makes the view and the packs agree. Only whoever holds the lock may call it.
    ///
    /// # Errors
    /// [`StoreError::is_damaged_database`] where only making the view anew helps.
    pub(crate) fn settle(&self) -> Result<Agreed, StoreError> {
        let end = self.end()?;
        let known = self.known_end(end)?;
        if self.pack_length(end.pack)? == end.offset && !self.pack_path(end.pack + 1).exists() {
            return Ok(known);
        }
        let mut tail: Vec<Transaction> = Vec::new();
        transactions::read(self.folder(), end, None, |transaction| {
            tail.push(transaction);
            Ok(())
        })?;
        let counts = tail.iter().take_while(|t| matches!(t.end, End::Closed { is_sound: true, .. })).count();
        let is_torn = tail[counts..].iter().any(|t| !matches!(t.end, End::Open));
        if is_torn {
            let mut judge = Judge::now(known.synced.max(synced(&self.packs()?)));
            tail.iter().for_each(|transaction| judge.see(transaction));
            if judge.cut() != Some(tail[counts].start) {
                return Err(diverged(format!("pack {} is damaged after what it knows", tail[counts].start.pack)));
            }
        }
        let settled = self.roll_forward(&tail[..counts], known)?;
        if is_torn {
            set_aside(self.folder(), settled.end)?;
            cut(self.folder(), settled.end)?;
        } else {
            cut_unclosed(self.folder(), settled.end)?;
        }
        // The next pack of a number is another file.
        self.forget_packs();
        Ok(settled)
    }

    /// Makes sure that the view's file and log belong together, and that the log says so before anything is written to it.
    pub(crate) fn bind_log(&self) -> Result<(), StoreError> {
        let db = self.db();
        // Its file was compared when it was opened, and is open since.
        match bond::check(&db, Identity::Unknown)? {
            Belonging::Bound => Ok(()),
            Belonging::Folded => bond::bind(&db),
        }
    }

    /// What the packs say at the place where the view says that they end: that a transaction ends there.
    fn known_end(&self, end: Position) -> Result<Agreed, StoreError> {
        let length = self.pack_length(end.pack)?;
        if length < end.offset {
            return Err(StoreError::PackCut { pack: end.pack });
        }
        self.bind_log()?;
        let last: i64 = self.db().query_row("SELECT coalesce(max(seq), 0) FROM records", [], |r| r.get(0))?;
        let known = match end.offset {
            0 => Agreed { end, next_seq: Some(1), synced: Position::default() },
            offset => {
                let file = self.pack_file(end.pack)?;
                let failed = |e| StoreError::io("cannot read", &self.pack_path(end.pack))(e);
                match transactions::tagger_of(self.folder(), &file, end.pack)? {
                    Some(tagger) => {
                        let commit = transactions::commit_ending_at(&file, &tagger, offset).map_err(failed)?;
                        let commit = commit.ok_or_else(|| {
                            diverged(format!("no transaction ends at byte {offset} of pack {}", end.pack))
                        })?;
                        Agreed { end, next_seq: Some(commit.next()), synced: commit.synced }
                    }
                    // Nobody appends to a pack of format 1.
                    None if length > offset => {
                        return Err(diverged(format!("pack {} ends at byte {length}, not {offset}", end.pack)));
                    }
                    None => Agreed { end, next_seq: None, synced: Position::default() },
                }
            }
        };
        match known.next_seq {
            Some(next) if last as u64 >= next => {
                Err(diverged(format!("it has record {last}, and the packs end before {next}")))
            }
            _ => Ok(known),
        }
    }

    fn roll_forward(&self, closed: &[Transaction], known: Agreed) -> Result<Agreed, StoreError> {
        if closed.is_empty() {
            return Ok(known);
        }
        let db = &*self.db();
        let transaction = rusqlite::Transaction::new_unchecked(db, rusqlite::TransactionBehavior::Immediate)?;
        let mut settled = Agreed { next_seq: Some(self.next_seq(&known)?), ..known };
        for found in closed {
            let End::Closed { commit, .. } = &found.end else { continue };
            // Records that do not follow those before them belong to another view than this. One that closes nothing only
            // says which number comes next.
            let is_next = settled.next_seq == Some(commit.first) || commit.ranges.is_empty();
            let numbers = found.timeline.iter().map(|(numbered, _)| numbered.seq);
            if !is_next || !numbers.eq(commit.first..commit.next()) {
                return Err(diverged(format!("record {} follows where another should", commit.first)));
            }
            for (kind, id, place) in &found.objects {
                apply_object(db, *kind, id, place)?;
            }
            for (numbered, place) in &found.timeline {
                apply(db, numbered, place)?;
            }
            for (pack, length) in lengths(self.folder(), found)? {
                db.execute(
                    "INSERT INTO packs VALUES (?1, ?2, 0) ON CONFLICT(pack) DO UPDATE SET length = ?2",
                    params![pack, length as i64],
                )?;
            }
            settled = Agreed { end: found.stop, next_seq: Some(commit.next()), synced: commit.synced };
        }
        db.execute("INSERT OR REPLACE INTO meta VALUES ('boot', ?1)", [clock::boot_id()])?;
        transaction.commit()?;
        // It belongs to a view that is gone.
        self.drop_index();
        Ok(settled)
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
    // One without a commit record ends where the next one says that it begins, which may be in a pack that is gone.
    let last = transactions::pack_length(folder, stop.pack)?;
    if last > 0 {
        lengths.push((stop.pack, stop.offset.min(last)));
    }
    Ok(lengths)
}

/// The folder for what does not count and is kept.
pub(crate) fn aside_folder(folder: &Path) -> Result<PathBuf, StoreError> {
    let aside = folder.join(ASIDE);
    own::make_folders(&aside).map_err(StoreError::io("cannot make", &aside))?;
    Ok(aside)
}

/// Copies all bytes from a position on to files of their own, durably, each with a note of the checkpoints in it. [`cut`]
/// then takes them out of the packs.
pub(crate) fn set_aside(folder: &Path, from: Position) -> Result<(), StoreError> {
    use std::os::unix::fs::OpenOptionsExt;
    let aside = aside_folder(folder)?;
    let checkpoints = readable_checkpoints(folder, from);
    for pack in pack_numbers(folder)?.into_iter().filter(|pack| *pack >= from.pack) {
        let offset = if pack == from.pack { from.offset } else { 0 };
        let path = folder.join(PACKS).join(pack_name(pack));
        let file = File::open(&path).map_err(StoreError::io("cannot open", &path))?;
        let length = file.metadata().map_err(StoreError::io("cannot read", &path))?.len();
        if length <= offset {
            continue;
        }
        let name = |n: u32| aside.join(format!("{pack:06}-{offset}.{n}"));
        let to = (1..).map(name).find(|to| !to.exists()).unwrap_or_else(|| name(0));
        let copy = own::make_new(&to, File::options().write(true).mode(0o600));
        let copied = copy.and_then(|copy| copy_what_can_be_read(&file, offset, length, copy));
        copied.map_err(StoreError::io("cannot write", &to))?;
        let (note, checkpoints) = (contents_note(&to), checkpoints.get(&pack).map_or(&[][..], Vec::as_slice));
        let json = serde_json::to_vec(checkpoints).map_err(to_sql)?;
        replace_durably(&note, &json).map_err(StoreError::io("cannot write", &note))?;
    }
    disk::sync_folder(&aside).map_err(StoreError::io("cannot sync", &aside))
}

/// The checkpoints, newest first and by pack, whose records can still be read from a position on.
fn readable_checkpoints(folder: &Path, from: Position) -> BTreeMap<u32, Vec<CheckpointId>> {
    let mut found: BTreeMap<u32, Vec<CheckpointId>> = BTreeMap::new();
    // A record that cannot be understood ends the reading: setting bytes aside must not fail for that.
    let _ = transactions::read(folder, from, None, |transaction| {
        for (numbered, place) in transaction.timeline {
            if let Record::Checkpoint(checkpoint) = numbered.record {
                found.entry(place.pack).or_default().insert(0, checkpoint.id);
            }
        }
        Ok(())
    });
    found
}

/// The checkpoints whose records are in a file that was set aside, newest first, as far as its note tells.
pub(crate) fn checkpoints_aside(file: &Path) -> Vec<CheckpointId> {
    let note = std::fs::read(contents_note(file)).ok();
    note.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default()
}

fn contents_note(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(CONTENTS);
    name.into()
}

/// Copies bytes of a pack, durably; zeros where the disk cannot read them. Not to go on for a bad sector would be to go on
/// nowhere: what is set aside stands in the way of every opening.
fn copy_what_can_be_read(file: &File, from: u64, end: u64, mut copy: File) -> io::Result<()> {
    let mut window = vec![0; 64 << 10];
    let mut at = from;
    while at < end {
        let length = window.len().min((end - at) as usize);
        disk::read_what_can_be(file, &mut window[..length], at)?;
        copy.write_all(&window[..length])?;
        at += length as u64;
    }
    copy.sync_all()
}

/// Ends the packs where nobody has closed what follows. Where the disk cannot read all of that, nobody knows whether it was
/// closed: what can be read is set aside first.
pub(crate) fn cut_unclosed(folder: &Path, at: Position) -> Result<(), StoreError> {
    for pack in pack_numbers(folder)?.into_iter().filter(|pack| *pack >= at.pack) {
        let path = folder.join(PACKS).join(pack_name(pack));
        let failed = |e| StoreError::io("cannot read", &path)(e);
        let file = File::open(&path).map_err(failed)?;
        let from = if pack == at.pack { at.offset } else { 0 };
        let end = file.metadata().map_err(failed)?.len();
        if !disk::is_readable(&file, from, end).map_err(failed)? {
            set_aside(folder, at)?;
            break;
        }
    }
    cut(folder, at)
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
