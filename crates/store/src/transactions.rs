//! Reading the packs as what they are: a sequence of transactions.
//!
//! A transaction ends with a commit record, which names the bytes that it covers and a hash over their records. Only a
//! closed transaction counts. Nobody appends after an unclosed one (the next writer cuts it off first), so bytes without
//! a commit record that have a closed transaction after them were closed too, and their commit record is what is damaged.

mod packs;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;

use piton_host::disk::read_what_can_be;
use piton_model::ObjectId;
use piton_model::record::Numbered;
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::pack::{self, HEAD_1, Item, Kind, PACK_HEAD, PackForm, Place, Sound, StoreKey, TAG, Tagger};
use crate::{PACKS, pack_name};

use self::packs::tagger_without_head;
pub(crate) use self::packs::{find_key, pack_length, pack_numbers, tagger_of};

/// A place between two records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Position {
    pub pack: u32,
    pub offset: u64,
}

/// Bytes of one pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Range {
    pub pack: u32,
    pub from: u64,
    pub to: u64,
}

/// The end of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Commit {
    /// The number of its first record of the timeline, and how many it has.
    pub first: u64,
    pub count: u64,
    /// The bytes that it covers, in order; a large transaction fills several packs.
    pub ranges: Vec<Range>,
    /// The hash over its records, in hex.
    pub hash: String,
    /// Everything before this was on the disk when it was written, so damage there is no trace of a power cut.
    pub synced: Position,
    /// The machine's run that it was written in.
    pub boot: String,
    /// The generation of the view that it was written beside.
    pub generation: u64,
    /// The store's key, in hex: what is left of it where a pack's head is damaged.
    pub key: String,
}

/// Hashes the records of a transaction, in order of their places.
#[derive(Default)]
pub(crate) struct TransactionHash(blake3::Hasher);

impl TransactionHash {
    /// Adds a record. Its own check stands for its bytes.
    pub(crate) fn add(&mut self, place: &Place, check: &[u8]) {
        self.0.update(&place.pack.to_le_bytes());
        self.0.update(&place.offset.to_le_bytes());
        self.0.update(check);
    }

    pub(crate) fn finish(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }
}

/// How a transaction ends.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// With a commit record. Sound: every record that it covers is there.
    Closed { commit: Commit, is_sound: bool },
    /// Its commit record is damaged; what comes after it shows that there was one.
    Lost,
    /// Nobody finished it.
    Open,
    /// It is a whole pack of format 1, which knows no commit records.
    Old,
}

/// Records that were written together.
#[derive(Debug)]
pub(crate) struct Transaction {
    pub start: Position,
    /// Behind its last byte, the commit record included.
    pub stop: Position,
    pub objects: Vec<(Kind, ObjectId, Place)>,
    pub timeline: Vec<(Numbered, Place)>,
    /// Bytes in it that are no sound record.
    pub damage: Vec<Range>,
    pub end: End,
}

/// Reads the transactions that begin at a position or after it, in order. `limits` says how far each pack is read, and a
/// pack that it does not name is not; without it, all of every pack is.
pub(crate) fn read(
    folder: &Path,
    from: Position,
    limits: Option<&HashMap<u32, u64>>,
    mut visit: impl FnMut(Transaction) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let packs: Vec<u32> = pack_numbers(folder)?
        .into_iter()
        .filter(|pack| *pack >= from.pack && limits.is_none_or(|limits| limits.contains_key(pack)))
        .collect();
    let mut pending: Vec<Piece> = Vec::new();
    let mut start = from;
    let mut key = None;
    for pack in packs {
        let path = folder.join(PACKS).join(pack_name(pack));
        let failed = |e| StoreError::io("cannot read", &path)(e);
        let file = File::open(&path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let limit = limits.and_then(|limits| limits.get(&pack).copied());
        let end = limit.unwrap_or(length).min(length);
        let form = pack::form(&file).map_err(failed)?;
        match form {
            PackForm::Tagged(found) => key = Some(found),
            PackForm::Newer(found) => return Err(StoreError::Newer { found: found.into(), known: 2 }),
            PackForm::Old | PackForm::Damaged => {}
        }
        if key.is_none() && form == PackForm::Damaged {
            key = find_key(folder)?;
        }
        let tagger = match form {
            PackForm::Old => None,
            PackForm::Tagged(key) => Some(key.tagger(pack)),
            PackForm::Newer(_) | PackForm::Damaged => tagger_without_head(&file, pack, key).map_err(failed)?,
        };
        let head = if tagger.is_some() { PACK_HEAD } else { HEAD_1.len() as u64 };
        let begin = if pack == from.pack { from.offset.max(head) } else { head };
        if pending.is_empty() {
            start = start.max(Position { pack, offset: begin });
        }
        if form == PackForm::Damaged && from < (Position { pack, offset: head }) && end > 0 {
            pending.push(Piece::Damage(Range { pack, from: 0, to: head.min(end) }));
        }
        // The visitor's own errors end the reading; they are told apart below.
        let mut refused = None;
        pack::each(&file, pack, tagger.as_ref(), begin, end, |item| {
            let commit = match item {
                Item::Damage { from, to } => {
                    pending.push(Piece::Damage(Range { pack, from, to }));
                    return Ok(());
                }
                Item::Record(place, sound) => match (sound.kind, Commit::of(&sound)) {
                    (Kind::Commit, Some(commit)) => (commit, place),
                    _ => {
                        let piece = Piece::of(place, sound).map_err(|error| {
                            refused = Some(error);
                            io::Error::other("stopped")
                        })?;
                        pending.push(piece);
                        return Ok(());
                    }
                },
            };
            let (commit, place) = commit;
            let stop = Position { pack, offset: place.offset + u64::from(place.length) };
            let given = close(std::mem::take(&mut pending), start, commit, stop).try_for_each(&mut visit);
            start = stop;
            given.map_err(|error| {
                refused = Some(error);
                io::Error::other("stopped")
            })
        })
        .map_err(|error| refused.take().unwrap_or_else(|| failed(error)))?;
        if let Some(limit) = limit.filter(|limit| *limit > length) {
            pending.push(Piece::Damage(Range { pack, from: length, to: limit }));
        }
        if tagger.is_none() {
            let stop = Position { pack, offset: end };
            visit(gather(std::mem::take(&mut pending), start, stop, End::Old))?;
            start = stop;
        }
    }
    if let Some(last) = pending.last() {
        let stop = last.stop();
        visit(gather(pending, start, stop, End::Open))?;
    }
    Ok(())
}

impl Commit {
    fn of(sound: &Sound) -> Option<Self> {
        serde_json::from_slice(&sound.raw).ok().filter(|_| sound.kind == Kind::Commit)
    }

    pub(crate) fn to_record(&self) -> io::Result<Vec<u8>> {
        let json = serde_json::to_vec(self)?;
        Ok(pack::pack(Kind::Commit, ObjectId::of_blob(&json), &json)?.bytes)
    }

    fn key(&self) -> Option<StoreKey> {
        let bytes = (0..16).map(|n| u8::from_str_radix(self.key.get(2 * n..2 * n + 2)?, 16).ok());
        let bytes: Vec<u8> = bytes.collect::<Option<_>>()?;
        bytes.try_into().ok().map(StoreKey)
    }
}

impl StoreKey {
    pub(crate) fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// One thing in a transaction.
enum Piece {
    Object(Kind, ObjectId, Place, [u8; 8]),
    Record(Box<Numbered>, Place, [u8; 8]),
    Damage(Range),
}

impl Piece {
    /// A record that is sound and of no known kind is a later piton's: to pass over it, a deletion above all, would be to
    /// tell something else than the packs do.
    fn of(place: Place, sound: Sound) -> Result<Self, StoreError> {
        #[derive(Deserialize)]
        struct AnyRecord {
            record: String,
        }
        let Sound { kind, id, check, raw, .. } = sound;
        if let Kind::Blob | Kind::Tree | Kind::Chunks = kind {
            return Ok(Self::Object(kind, id, place, check));
        }
        match serde_json::from_slice(&raw) {
            Ok(numbered) => Ok(Self::Record(Box::new(numbered), place, check)),
            Err(error) => match serde_json::from_slice::<AnyRecord>(&raw) {
                Ok(AnyRecord { record }) if error.to_string().starts_with("unknown variant") => {
                    Err(StoreError::UnknownRecord { record })
                }
                _ => {
                    let to = place.offset + u64::from(place.length);
                    Ok(Self::Damage(Range { pack: place.pack, from: place.offset, to }))
                }
            },
        }
    }

    /// Where it begins; of a record that is behind its tag.
    fn start(&self) -> Position {
        match self {
            Self::Object(_, _, place, _) | Self::Record(_, place, _) => {
                Position { pack: place.pack, offset: place.offset }
            }
            Self::Damage(range) => Position { pack: range.pack, offset: range.from },
        }
    }

    fn stop(&self) -> Position {
        match self {
            Self::Object(_, _, place, _) | Self::Record(_, place, _) => {
                Position { pack: place.pack, offset: place.offset + u64::from(place.length) }
            }
            Self::Damage(range) => Position { pack: range.pack, offset: range.to },
        }
    }
}

/// What a commit record closes, and before it what another would have closed whose own is damaged.
fn close(pieces: Vec<Piece>, start: Position, commit: Commit, stop: Position) -> impl Iterator<Item = Transaction> {
    let covered = commit.ranges.first().map(|range| Position { pack: range.pack, offset: range.from });
    let own = covered.map_or(pieces.len(), |covered| pieces.partition_point(|piece| piece.start() < covered));
    let mut lost = pieces;
    let own = lost.split_off(own);
    let begins = covered.unwrap_or(start).max(start);
    let lost = (!lost.is_empty()).then(|| {
        let stop = covered.unwrap_or(stop);
        gather(lost, start, stop, End::Lost)
    });
    let mut hash = TransactionHash::default();
    let mut is_whole = true;
    for piece in &own {
        match piece {
            Piece::Object(_, _, place, check) | Piece::Record(_, place, check) => hash.add(place, check),
            Piece::Damage(_) => is_whole = false,
        }
    }
    let is_sound = is_whole && hash.finish() == commit.hash;
    let closed = gather(own, begins, stop, End::Closed { commit, is_sound });
    lost.into_iter().chain([closed])
}

fn gather(pieces: Vec<Piece>, start: Position, stop: Position, end: End) -> Transaction {
    let mut found = Transaction { start, stop, objects: Vec::new(), timeline: Vec::new(), damage: Vec::new(), end };
    for piece in pieces {
        match piece {
            Piece::Object(kind, id, place, _) => found.objects.push((kind, id, place)),
            Piece::Record(numbered, place, _) => found.timeline.push((*numbered, place)),
            Piece::Damage(range) => found.damage.push(range),
        }
    }
    found
}

/// The commit record that ends exactly at a position, of a pack of format 2.
///
/// It is found from its end, so that nobody has to be believed where it begins. Nearly all are shorter than the first
/// look back; one that names many packs is not.
pub(crate) fn commit_ending_at(file: &File, tagger: &Tagger, offset: u64) -> io::Result<Option<Commit>> {
    for look_back in [2 << 10, 1 << 20] {
        let from = offset.saturating_sub(look_back).max(PACK_HEAD);
        let mut bytes = vec![0; offset.saturating_sub(from) as usize];
        read_what_can_be(file, &mut bytes, from)?;
        for magic in memchr::memmem::rfind_iter(&bytes, pack::MAGIC) {
            let Some((tag, record)) = magic.checked_sub(TAG).map(|tag| bytes[tag..].split_at(TAG)) else { continue };
            let is_last = pack::record_length(record) == Some(record.len() as u64);
            if is_last && tagger.tag(from + magic as u64, record) == *tag {
                return Ok(pack::unpack(record).as_ref().and_then(Commit::of));
            }
        }
        if from == PACK_HEAD {
            break;
        }
    }
    Ok(None)
}

impl Commit {
    /// The number of the record that follows its own.
    pub(crate) fn next(&self) -> u64 {
        self.first.saturating_add(self.count)
    }
}

#[cfg(test)]
mod tests;
