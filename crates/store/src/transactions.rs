//! Reading the packs as what they are: a sequence of transactions.
//!
//! A transaction ends with a commit record, which names the bytes that it covers and a hash over their records. Only a
//! closed transaction counts. Nobody appends after an unclosed one (the next writer cuts it off first), so bytes without
//! a commit record that have a closed transaction after them were closed too, and their commit record is what is damaged.

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

/// What makes the tags of a pack; none where it is of format 1.
pub(crate) fn tagger_of(folder: &Path, file: &File, pack: u32) -> Result<Option<Tagger>, StoreError> {
    let failed = |e| StoreError::io("cannot read", &folder.join(PACKS).join(pack_name(pack)))(e);
    match pack::form(file).map_err(failed)? {
        PackForm::Old => Ok(None),
        PackForm::Tagged(key) => Ok(Some(key.tagger(pack))),
        PackForm::Newer(found) => Err(StoreError::Newer { found: found.into(), known: 2 }),
        PackForm::Damaged => tagger_without_head(file, pack, find_key(folder)?).map_err(failed),
    }
}

/// The same for a pack whose head is damaged. The store's key may come from another pack, so the records tell: it is of
/// format 1 where there are sound ones, and none has a tag.
fn tagger_without_head(file: &File, pack: u32, key: Option<StoreKey>) -> io::Result<Option<Tagger>> {
    let Some(tagger) = key.map(|key| key.tagger(pack)) else { return Ok(None) };
    let end = file.metadata()?.len();
    let mut has_records = false;
    let mut at = 0;
    while let Some(magic) = pack::next_magic(file, at, end)? {
        let has_tag =
            magic >= TAG as u64 && pack::read_at(file, pack, Some(&tagger), magic - TAG as u64, end)?.is_some();
        if has_tag {
            return Ok(Some(tagger));
        }
        has_records = has_records || pack::read_at(file, pack, None, magic, end)?.is_some();
        at = magic + 1;
    }
    Ok(if has_records { None } else { Some(tagger) })
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

/// The numbers of all pack files, in order.
pub(crate) fn pack_numbers(folder: &Path) -> Result<Vec<u32>, StoreError> {
    let folder = folder.join(PACKS);
    let failed = |e| StoreError::io("cannot list", &folder)(e);
    let mut numbers = Vec::new();
    let entries = match std::fs::read_dir(&folder) {
        // Deleted with all that was in it, or never made.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(numbers),
        entries => entries.map_err(failed)?,
    };
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        numbers.extend(name.to_str().and_then(|n| n.strip_suffix(".pack")).and_then(|n| n.parse::<u32>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// How long a pack is; 0 where it is not there. Anything else that keeps it from being looked at is an error: what cannot be seen
/// is not gone.
pub(crate) fn pack_length(folder: &Path, pack: u32) -> Result<u64, StoreError> {
    let path = folder.join(PACKS).join(pack_name(pack));
    match std::fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        found => Ok(found.map_err(StoreError::io("cannot read", &path))?.len()),
    }
}

/// The store's key, from whatever pack still tells: from a head, else from a commit record that is where it says.
pub(crate) fn find_key(folder: &Path) -> Result<Option<StoreKey>, StoreError> {
    let packs = pack_numbers(folder)?;
    let mut damaged = Vec::new();
    for pack in packs {
        let path = folder.join(PACKS).join(pack_name(pack));
        let failed = |e| StoreError::io("cannot read", &path)(e);
        let file = File::open(&path).map_err(failed)?;
        match pack::form(&file).map_err(failed)? {
            PackForm::Tagged(key) => return Ok(Some(key)),
            PackForm::Damaged => damaged.push((pack, file)),
            PackForm::Old | PackForm::Newer(_) => {}
        }
    }
    for (pack, file) in damaged {
        let failed = |e| StoreError::io("cannot read", folder)(e);
        let end = file.metadata().map_err(failed)?.len();
        let mut at = TAG as u64;
        while let Some(offset) = pack::next_magic(&file, at, end).map_err(failed)? {
            if let Some(key) = key_at(&file, pack, offset, end).map_err(failed)? {
                return Ok(Some(key));
            }
            at = offset + 1;
        }
    }
    Ok(None)
}

/// The key that a commit record at this offset tells, if it is one and its tag agrees.
fn key_at(file: &File, pack: u32, offset: u64, end: u64) -> io::Result<Option<StoreKey>> {
    let mut head = [0; TAG + pack::RECORD_HEAD];
    if offset + pack::RECORD_HEAD as u64 > end {
        return Ok(None);
    }
    read_what_can_be(file, &mut head, offset - TAG as u64)?;
    let (tag, record) = head.split_at(TAG);
    let length = pack::record_length(record).filter(|length| record[4] == Kind::Commit as u8 && offset + length <= end);
    let Some(length) = length.and_then(|length| u32::try_from(length).ok()) else { return Ok(None) };
    let sound = pack::read(file, &Place { pack, offset, length })?;
    let key = sound.as_ref().and_then(Commit::of).and_then(|commit| commit.key());
    Ok(key.filter(|key| key.tagger(pack).tag(offset, record) == *tag))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PATIENCE, Store};
    use piton_model::{CheckpointId, Record};

    fn name(n: u8) -> Record {
        Record::Name { checkpoint: CheckpointId::from_random([n; 8]), name: format!("name {n}") }
    }

    fn names(store: &Store) -> Vec<String> {
        let db = store.db();
        let mut query = db.prepare("SELECT name FROM names ORDER BY seq").unwrap();
        query.query_map([], |r| r.get(0)).unwrap().map(Result::unwrap).collect()
    }

    /// A pack of format 1, as pitons wrote it until there were commit records.
    fn old_pack(folder: &Path) -> ObjectId {
        let mut bytes = HEAD_1.to_vec();
        let id = ObjectId::of_blob(b"an old blob");
        bytes.extend(pack::pack(Kind::Blob, id, b"an old blob").unwrap().bytes);
        for n in 1..=2 {
            let json = serde_json::to_vec(&Numbered { seq: n.into(), record: name(n) }).unwrap();
            bytes.extend(pack::pack(Kind::Timeline, ObjectId::of_blob(&json), &json).unwrap().bytes);
        }
        std::fs::create_dir_all(folder.join(PACKS)).unwrap();
        std::fs::write(folder.join(PACKS).join(pack_name(1)), bytes).unwrap();
        id
    }

    #[test]
    fn a_pack_of_format_1_is_read_and_never_appended_to() {
        let folder = tempfile::tempdir().unwrap();
        let id = old_pack(folder.path());
        let before = std::fs::read(folder.path().join(PACKS).join(pack_name(1))).unwrap();
        let store = Store::open(folder.path()).unwrap();
        assert_eq!(store.blob(&id).unwrap(), b"an old blob");
        assert_eq!(names(&store), ["name 1", "name 2"]);
        let lock = store.lock(PATIENCE).unwrap();
        let mut writer = store.write(&lock).unwrap();
        assert_eq!(writer.record(name(3)).unwrap(), 3);
        let new = writer.blob(b"a new blob").unwrap();
        writer.commit(false, false).unwrap();
        assert!(store.verify().unwrap().damage.is_empty());
        drop((lock, store));
        for file in std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()) {
            if file.is_file() {
                std::fs::remove_file(file).unwrap();
            }
        }
        let store = Store::open(folder.path()).unwrap();
        assert_eq!(names(&store), ["name 1", "name 2", "name 3"]);
        assert_eq!(store.blob(&new).unwrap(), b"a new blob");
        assert_eq!(std::fs::read(folder.path().join(PACKS).join(pack_name(1))).unwrap(), before);
    }

    #[test]
    fn a_pack_of_format_1_with_a_damaged_head_is_read_beside_packs_of_format_2() {
        let folder = tempfile::tempdir().unwrap();
        let id = old_pack(folder.path());
        let store = Store::open(folder.path()).unwrap();
        write(&store, 3, 0..1);
        drop(store);
        let path = folder.path().join(PACKS).join(pack_name(1));
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[3] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        lose_the_view(folder.path());
        let store = Store::open(folder.path()).unwrap();
        assert_eq!(names(&store), ["name 1", "name 2", "name 3"]);
        assert_eq!(store.blob(&id).unwrap(), b"an old blob");
        write(&store, 4, 1..2);
        assert_eq!(names(&store), ["name 1", "name 2", "name 3", "name 4"]);
    }

    /// A piton that took the next number from a view with a wrong row wrote such packs.
    #[test]
    fn two_records_of_one_number_both_count_and_are_named() {
        let folder = tempfile::tempdir().unwrap();
        old_pack(folder.path());
        let path = folder.path().join(PACKS).join(pack_name(1));
        let mut bytes = std::fs::read(&path).unwrap();
        for (seq, n) in [(2, 3), (3, 4)] {
            let json = serde_json::to_vec(&Numbered { seq, record: name(n) }).unwrap();
            bytes.extend(pack::pack(Kind::Timeline, ObjectId::of_blob(&json), &json).unwrap().bytes);
        }
        std::fs::write(&path, bytes).unwrap();
        let store = Store::open(folder.path()).unwrap();
        assert_eq!(names(&store), ["name 1", "name 2", "name 3", "name 4"]);
        let named = [crate::Damage::RecordTwice { seq: 2 }];
        assert_eq!(store.verify().unwrap().damage, named);
        // What comes next has a number of its own, with this view and with another.
        write(&store, 5, 0..1);
        drop(store);
        lose_the_view(folder.path());
        let store = Store::open(folder.path()).unwrap();
        assert_eq!(names(&store), ["name 1", "name 2", "name 3", "name 4", "name 5"]);
        assert_eq!(store.verify().unwrap().damage, named);
    }

    /// The commit record is found from its end, also one that names more packs than the first look back holds.
    #[test]
    fn a_commit_record_is_found_where_it_ends_and_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path()).unwrap();
        let mut ends = Vec::new();
        for (n, blobs) in [(1, 0..1), (2, 1..2), (3, 2..600)] {
            write(&store, n, blobs);
            ends.push(store.end().unwrap());
        }
        assert!(ends[2].pack > 80, "{ends:?}: its commit record is short");
        for (end, next) in ends.iter().zip(2..) {
            let file = store.pack_file(end.pack).unwrap();
            let tagger = tagger_of(folder.path(), &file, end.pack).unwrap().unwrap();
            let found = |offset| commit_ending_at(&file, &tagger, offset).unwrap().map(|commit| commit.next());
            assert_eq!(found(end.offset), Some(next));
            assert!((1..20).all(|less| found(end.offset - less).is_none()));
        }
    }

    #[test]
    fn a_record_of_a_later_piton_is_refused_and_not_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        old_pack(folder.path());
        let path = folder.path().join(PACKS).join(pack_name(1));
        let mut bytes = std::fs::read(&path).unwrap();
        let json = br#"{"seq":3,"record":"delete","checkpoints":["kkkkkkkkkkkkkkkk"],"up_to":2}"#;
        bytes.extend(pack::pack(Kind::Timeline, ObjectId::of_blob(json), json).unwrap().bytes);
        std::fs::write(&path, bytes).unwrap();
        let refused = Store::open(folder.path()).err().unwrap();
        assert!(matches!(&refused, StoreError::UnknownRecord { record } if record == "delete"), "{refused}");
    }

    #[test]
    fn a_pack_of_a_later_piton_is_refused_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        old_pack(folder.path());
        let mut head = StoreKey([1; 16]).head();
        head[7] = b'3';
        head[8] = 3;
        let check = *blake3::hash(&head[..32]).as_bytes();
        head[32..].copy_from_slice(&check[..8]);
        let path = folder.path().join(PACKS).join(pack_name(2));
        std::fs::write(&path, head).unwrap();
        assert!(matches!(Store::open(folder.path()), Err(StoreError::Newer { found: 3, known: 2 })));
        assert_eq!(std::fs::read(path).unwrap(), head);
    }

    /// Three transactions, of which each byte in turn is wrong while the view is lost: whatever else is lost, what the
    /// other two hold is there.
    #[test]
    fn a_flipped_bit_anywhere_costs_at_most_the_transaction_that_it_is_in() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path()).unwrap();
        let path = store.pack_path(1);
        let mut ends = vec![0];
        for n in 1..=3 {
            let lock = store.lock(PATIENCE).unwrap();
            let mut writer = store.write(&lock).unwrap();
            writer.record(name(n)).unwrap();
            writer.blob(format!("blob {n}").as_bytes()).unwrap();
            writer.commit(false, false).unwrap();
            ends.push(std::fs::metadata(&path).unwrap().len() as usize);
        }
        drop(store);
        let whole = std::fs::read(&path).unwrap();
        for at in (0..whole.len()).step_by(9) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            let other = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(other.path().join(PACKS)).unwrap();
            std::fs::write(other.path().join(PACKS).join(pack_name(1)), bytes).unwrap();
            let store = Store::open(other.path()).unwrap();
            let hit = ends.iter().rposition(|end| at >= *end).unwrap() + 1;
            let names = names(&store);
            for n in (1..=3).filter(|n| *n != hit) {
                assert!(names.contains(&format!("name {n}")), "byte {at}, in transaction {hit}: {names:?}");
                assert!(store.contains(&ObjectId::of_blob(format!("blob {n}").as_bytes())).unwrap());
            }
            // And it goes on from there.
            let lock = store.lock(PATIENCE).unwrap();
            let mut writer = store.write(&lock).unwrap();
            writer.record(name(9)).unwrap();
            writer.commit(false, false).unwrap();
            assert!(self::names(&store).contains(&"name 9".to_owned()), "byte {at}");
        }
    }

    /// A disk says that it cannot read a bad sector; it does not give zeros. Every reading used to end there.
    #[test]
    fn a_sector_that_cannot_be_read_costs_at_most_the_transactions_that_it_is_in() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path()).unwrap();
        let path = store.pack_path(1);
        let mut ends = vec![0];
        for n in 1..=3 {
            write(&store, n, usize::from(n)..usize::from(n) + 1);
            ends.push(std::fs::metadata(&path).unwrap().len());
        }
        drop(store);
        let length = ends[3];
        for (bad, loses_the_view) in (0..length).step_by(1024).flat_map(|bad| [(bad, false), (bad, true)]) {
            let other = tempfile::tempdir().unwrap();
            copy_store(folder.path(), other.path());
            let path = other.path().join(PACKS).join(pack_name(1));
            if loses_the_view {
                lose_the_view(other.path());
            }
            piton_host::fail::unreadable(&path, bad..bad + 512, || {
                let store = Store::open(other.path()).unwrap();
                let verified = store.verify().unwrap();
                let is_named = verified.damage.iter().any(|damage| match damage {
                    crate::Damage::Pack { pack: 1, from, to } => *from < bad + 512 && *to > bad,
                    crate::Damage::Aside { .. } => true,
                    _ => false,
                });
                assert!(is_named, "byte {bad}: {:?}", verified.damage);
                write(&store, 9, 9..10);
                drop(store);
                lose_the_view(other.path());
                let store = Store::open(other.path()).unwrap();
                let names = names(&store);
                let page = bad / 4096 * 4096;
                for n in (1..=3).filter(|n| ends[*n] <= page || ends[*n - 1] >= page + 4096) {
                    assert!(names.contains(&format!("name {n}")), "byte {bad}: {names:?}");
                    assert!(store.blob(&ObjectId::of_blob(&noise(n))).is_ok(), "byte {bad}, blob {n}");
                }
                // Unless it was written to the very sector.
                if page + 4096 <= length {
                    assert!(names.contains(&"name 9".to_owned()), "byte {bad}: {names:?}");
                }
            });
        }
    }

    fn copy_store(from: &Path, to: &Path) {
        std::fs::create_dir_all(to.join(PACKS)).unwrap();
        for folder in ["", PACKS] {
            for entry in std::fs::read_dir(from.join(folder)).unwrap().map(Result::unwrap) {
                if entry.path().is_file() {
                    std::fs::copy(entry.path(), to.join(folder).join(entry.file_name())).unwrap();
                }
            }
        }
    }

    /// What a power cut left of a transaction may lie in a sector that cannot be read: it is set aside all the same, as far as it can
    /// be read.
    #[test]
    fn what_a_power_cut_left_in_a_bad_sector_is_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path()).unwrap();
        let path = store.pack_path(1);
        write(&store, 1, 0..1);
        drop(store.lock(PATIENCE).unwrap());
        let end = std::fs::metadata(&path).unwrap().len();
        write(&store, 2, 1..2);
        drop(store);
        let bad = end + 6_000;
        let store = piton_host::clock::in_another_run("another run", || {
            piton_host::fail::unreadable(&path, bad..bad + 512, || Store::open(folder.path()).unwrap())
        });
        assert_eq!(names(&store), ["name 1"]);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), end);
        let aside = store.aside_files();
        assert_eq!(aside.len(), 1, "{aside:?}");
        let kept = std::fs::read(&aside[0]).unwrap();
        assert!(kept[6_000..6_512].iter().all(|byte| *byte == 0) && kept[..1_000].iter().any(|byte| *byte != 0));
    }

    /// Bytes that do not pack.
    fn noise(seed: usize) -> Vec<u8> {
        let mut bytes = vec![0; 10_000];
        blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
        bytes
    }

    /// One transaction with these blobs.
    fn write(store: &Store, n: u8, blobs: std::ops::Range<usize>) {
        let lock = store.lock(PATIENCE).unwrap();
        let mut writer = store.write(&lock).unwrap();
        writer.record(name(n)).unwrap();
        for seed in blobs {
            writer.blob(&noise(seed)).unwrap();
        }
        writer.commit(false, false).unwrap();
    }

    fn lose_the_view(folder: &Path) {
        for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if file.is_file() {
                std::fs::remove_file(file).unwrap();
            }
        }
    }

    #[test]
    fn a_transaction_that_fills_several_packs_counts_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path()).unwrap();
        write(&store, 1, 0..3);
        write(&store, 2, 3..30);
        let packs = pack_numbers(folder.path()).unwrap();
        assert!(packs.len() > 3, "{packs:?}: the test would test nothing");
        drop(store);
        lose_the_view(folder.path());
        let store = Store::open(folder.path()).unwrap();
        assert_eq!(names(&store), ["name 1", "name 2"]);
        assert!((0..30).all(|seed| store.blob(&ObjectId::of_blob(&noise(seed))).unwrap() == noise(seed)));
        write(&store, 3, 30..31);
        assert!(store.verify().unwrap().damage.is_empty());
        drop(store);
        // Its process died before it was closed: the last bytes of the last pack are not there yet.
        let last = folder.path().join(PACKS).join(pack_name(*packs.last().unwrap()));
        let length = std::fs::metadata(&last).unwrap().len();
        for cut in [1, 2_000, length - PACK_HEAD] {
            let other = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(other.path().join(PACKS)).unwrap();
            for pack in &packs {
                let from = folder.path().join(PACKS).join(pack_name(*pack));
                std::fs::copy(from, other.path().join(PACKS).join(pack_name(*pack))).unwrap();
            }
            let store = Store::open(other.path()).unwrap();
            assert_eq!(names(&store), ["name 1", "name 2", "name 3"]);
            drop(store);
            lose_the_view(other.path());
            // All of the third transaction goes, and the end of the second.
            let last = other.path().join(PACKS).join(pack_name(*packs.last().unwrap()));
            let third = transaction_starts(other.path())[2];
            assert_eq!(third.pack, *packs.last().unwrap());
            let file = File::options().write(true).open(&last).unwrap();
            file.set_len(third.offset.saturating_sub(cut).max(PACK_HEAD)).unwrap();
            let store = Store::open(other.path()).unwrap();
            assert_eq!(names(&store), ["name 1"]);
            write(&store, 4, 40..41);
            assert_eq!(names(&store), ["name 1", "name 4"]);
            assert!(store.verify().unwrap().damage.is_empty());
            assert!(pack_numbers(other.path()).unwrap().len() <= 2, "what nobody closed goes");
        }
    }

    /// In the same run of the machine no power was cut, whatever is missing.
    #[test]
    fn a_deleted_pack_costs_only_what_was_in_it_and_is_named() {
        for loses_the_view in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::create(folder.path()).unwrap();
            let mut packs = Vec::new();
            for n in 1..=24 {
                write(&store, n, usize::from(n)..usize::from(n) + 1);
                packs.push((n, store.end().unwrap().pack));
            }
            assert!(packs.last().unwrap().1 >= 3, "{packs:?}");
            drop(store);
            std::fs::remove_file(folder.path().join(PACKS).join(pack_name(2))).unwrap();
            if loses_the_view {
                lose_the_view(folder.path());
            }
            let store = Store::open(folder.path()).unwrap();
            let left = names(&store);
            // The transactions at its ends may lie in it in part.
            for (n, _) in packs.windows(2).filter(|w| w[0].1 != 2 && w[1].1 != 2).map(|w| w[1]) {
                assert!(left.contains(&format!("name {n}")), "{n}: {left:?}");
            }
            let found = store.verify().unwrap().damage;
            assert!(found.contains(&crate::Damage::PackMissing { pack: 2 }), "{found:?}");
            let is_noted = found.iter().any(|damage| matches!(damage, crate::Damage::Gone { pack: 2, .. }));
            assert_eq!(is_noted, !loses_the_view, "{found:?}");
            write(&store, 30, 30..31);
            let generation = store.generation();
            drop(store);
            let store = Store::open(folder.path()).unwrap();
            assert_eq!(store.generation(), generation, "the view is made anew at every opening");
            assert!(names(&store).contains(&"name 30".to_owned()));
        }
    }

    fn transaction_starts(folder: &Path) -> Vec<Position> {
        let mut starts = Vec::new();
        read(folder, Position::default(), None, |transaction| {
            starts.push(transaction.start);
            Ok(())
        })
        .unwrap();
        starts
    }

    /// The process died between the commit record and the rows: it was closed, so it counts. And where the rows are
    /// refused, the writer takes back what it wrote.
    #[test]
    fn a_closed_transaction_without_rows_is_rolled_forward_and_a_refused_one_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path()).unwrap();
        write(&store, 1, 0..1);
        let before = std::fs::metadata(store.pack_path(1)).unwrap().len();
        let lock = store.lock(PATIENCE).unwrap();
        let mut writer = store.write(&lock).unwrap();
        writer.record(name(2)).unwrap();
        store
            .db()
            .execute_batch("CREATE TEMP TRIGGER refuse BEFORE INSERT ON names BEGIN SELECT raise(ABORT, 'no'); END")
            .unwrap();
        assert!(writer.commit(false, false).is_err());
        assert_eq!(std::fs::metadata(store.pack_path(1)).unwrap().len(), before);
        store.db().execute_batch("DROP TRIGGER refuse").unwrap();
        let mut writer = store.write(&lock).unwrap();
        writer.record(name(2)).unwrap();
        writer.commit(false, false).unwrap();
        drop(lock);
        assert_eq!(names(&store), ["name 1", "name 2"]);
        // As if only the packs had come to be written.
        let whole = std::fs::read(store.pack_path(1)).unwrap();
        std::fs::write(store.pack_path(1), &whole[..before as usize]).unwrap();
        drop(store);
        lose_the_view(folder.path());
        let store = Store::open(folder.path()).unwrap();
        assert_eq!(names(&store), ["name 1"]);
        std::fs::write(store.pack_path(1), &whole).unwrap();
        drop(store.lock(PATIENCE).unwrap());
        assert_eq!(names(&store), ["name 1", "name 2"]);
        assert!(store.verify().unwrap().damage.is_empty());
    }
}
