//! Pack files: self-describing records, one after the other, only ever appended to. `docs/format.md` has the layout.
//!
//! In a pack of format 2 a tag stands before each record, which binds it to its store and its place. A record that lies
//! inside a captured file (somebody keeps a copy of a store in a workspace) therefore never counts, wherever a search
//! after damage happens to look. Packs of format 1 have no tags and no commit records; they are read, never appended to.

use std::fs::File;
use std::io;

use piton_host::disk::read_what_can_be;
use piton_model::ObjectId;

/// How a pack of format 1 begins: magic and version.
pub(crate) const HEAD_1: &[u8; 16] = b"PITONPK1\x01\0\0\0\0\0\0\0";
/// How a pack of format 2 begins; the store's key and a check follow.
const HEAD_2: &[u8; 16] = b"PITONPK2\x02\0\0\0\0\0\0\0";
/// Length of the head of a pack of format 2.
pub(crate) const PACK_HEAD: u64 = 40;
/// Length of the tag before each record of a pack of format 2.
pub(crate) const TAG: usize = 8;
/// How a record begins; what a search for the next sound record looks for.
pub(crate) const MAGIC: &[u8; 4] = b"PiTn";
/// Bytes of a record before its payload.
pub(crate) const RECORD_HEAD: usize = 56;
/// No record holds more than this when unpacked: a damaged length must not exhaust memory.
pub(crate) const LARGEST: u32 = 256 << 20;

/// What a record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Bytes: a small file, or a chunk of a large one.
    Blob = 1,
    /// A tree's encoding.
    Tree = 2,
    /// The chunks of a large file, whose id it has.
    Chunks = 3,
    /// A record of the timeline, as JSON.
    Timeline = 4,
    /// The end of a transaction, as JSON: what lies before it counts.
    Commit = 5,
}

impl Kind {
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        [Self::Blob, Self::Tree, Self::Chunks, Self::Timeline, Self::Commit].into_iter().find(|k| *k as u8 == code)
    }

    /// The id that a payload of this kind must have.
    fn id_of(self, raw: &[u8]) -> Option<ObjectId> {
        match self {
            Self::Blob | Self::Timeline | Self::Commit => Some(ObjectId::of_blob(raw)),
            Self::Tree => Some(ObjectId::of_tree(raw)),
            // The id of the whole file, which only its chunks can tell.
            Self::Chunks => None,
        }
    }
}

/// A store's own secret number: the tags of its packs are made with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StoreKey(pub [u8; 16]);

impl StoreKey {
    /// The head of a new pack.
    pub(crate) fn head(&self) -> [u8; PACK_HEAD as usize] {
        let mut head = [0; PACK_HEAD as usize];
        head[..16].copy_from_slice(HEAD_2);
        head[16..32].copy_from_slice(&self.0);
        let check = check(&head[..32], &[]);
        head[32..].copy_from_slice(&check);
        head
    }

    /// What makes the tags of one pack.
    pub(crate) fn tagger(&self, pack: u32) -> Tagger {
        let mut hasher = blake3::Hasher::new_derive_key("piton 2026-11 tag");
        hasher.update(&self.0);
        hasher.update(&pack.to_le_bytes());
        Tagger(*hasher.finalize().as_bytes())
    }
}

/// Makes the tags of one pack.
#[derive(Clone, Debug)]
pub(crate) struct Tagger([u8; 32]);

impl Tagger {
    /// The tag of a record whose bytes begin at this offset.
    pub(crate) fn tag(&self, offset: u64, record: &[u8]) -> [u8; TAG] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&offset.to_le_bytes());
        // The record's own check stands for all of its bytes.
        hasher.update(check_of(record));
        let mut tag = [0; TAG];
        tag.copy_from_slice(&hasher.finalize().as_bytes()[..TAG]);
        tag
    }
}

/// What the head of a pack says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PackForm {
    /// Format 1: no tags, no commit records.
    Old,
    /// Format 2.
    Tagged(StoreKey),
    /// Made by a later piton.
    Newer(u32),
    /// Cut off or damaged: what the pack is must come from elsewhere.
    Damaged,
}

/// Reads the head of a pack.
pub(crate) fn form(file: &File) -> io::Result<PackForm> {
    let mut head = [0; PACK_HEAD as usize];
    let length = file.metadata()?.len().min(PACK_HEAD) as usize;
    read_what_can_be(file, &mut head[..length], 0)?;
    if length >= HEAD_1.len() && head[..16] == *HEAD_1 {
        return Ok(PackForm::Old);
    }
    let mut key = [0; 16];
    key.copy_from_slice(&head[16..32]);
    let key = StoreKey(key);
    if key.head() == head {
        return Ok(PackForm::Tagged(key));
    }
    let version = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
    let is_newer = version > 2 && head[..7] == HEAD_2[..7] && head[32..] == check(&head[..32], &[]);
    Ok(if is_newer { PackForm::Newer(version) } else { PackForm::Damaged })
}

/// Where a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place {
    pub pack: u32,
    pub offset: u64,
    /// With its head.
    pub length: u32,
}

/// A record that was read and is sound.
#[derive(Debug)]
pub(crate) struct Sound {
    pub kind: Kind,
    pub id: ObjectId,
    /// The check of its stored bytes.
    pub check: [u8; 8],
    /// What it holds; of a delta the delta.
    pub raw: Vec<u8>,
    /// Of a delta: what it is laid over.
    pub delta: Option<Delta>,
}

/// A record that holds only how it differs from another object. Its id is that of the whole, which only [`Sound::over`]
/// can compare.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delta {
    pub base: ObjectId,
    /// How long the whole is.
    length: usize,
}

/// No delta has more deltas beneath it: reading one must not take for ever.
pub(crate) const DEEPEST_DELTA: usize = 16;

impl Sound {
    /// The whole object, from a delta and what it is laid over; `None` where it does not come to what its id says.
    pub(crate) fn over(self, base: &[u8]) -> Option<Self> {
        let Some(Delta { length, .. }) = self.delta else { return Some(self) };
        let mut unpacker = zstd::bulk::Decompressor::with_dictionary(base).ok()?;
        let raw = unpacker.decompress(&self.raw, length).ok()?;
        let is_whole = raw.len() == length && self.kind.id_of(&raw).is_none_or(|real| real == self.id);
        is_whole.then_some(Self { raw, delta: None, ..self })
    }
}

/// A record ready to be appended. Packing is pure and done outside any lock.
pub(crate) struct Packed {
    pub kind: Kind,
    pub id: ObjectId,
    pub bytes: Vec<u8>,
}

/// zstd's level: on source text 3 packs 6 % better than 1 at two thirds of the speed, and the hook waits for it.
const LEVEL: i32 = 1;
/// Shorter payloads do not get shorter.
const WORTH_PACKING: usize = 64;
/// A tree is mostly hashes: packing a small one takes time and saves next to nothing.
const TREE_WORTH_PACKING: usize = 2048;

thread_local! {
    /// Making a compressor costs more than packing a small file with it.
    static PACKER: std::cell::RefCell<Option<zstd::bulk::Compressor<'static>>> = const { std::cell::RefCell::new(None) };
    static UNPACKER: std::cell::RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { std::cell::RefCell::new(None) };
}

/// Packs a payload into a record.
pub(crate) fn pack(kind: Kind, id: ObjectId, raw: &[u8]) -> io::Result<Packed> {
    let least = if kind == Kind::Tree { TREE_WORTH_PACKING } else { WORTH_PACKING };
    let packed = if raw.len() >= least { Some(compress(raw)?) } else { None };
    let (codec, payload) = match &packed {
        Some(packed) if packed.len() < raw.len() => (1, &packed[..]),
        _ => (0, raw),
    };
    if raw.len() as u64 > u64::from(LARGEST) {
        return Err(io::Error::other("a record is over 256 MiB"));
    }
    let too_long = |_| io::Error::other("a record is over 256 MiB");
    let mut bytes = Vec::with_capacity(RECORD_HEAD + payload.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&[kind as u8, codec, 0, 0]);
    bytes.extend_from_slice(&u32::try_from(payload.len()).map_err(too_long)?.to_le_bytes());
    bytes.extend_from_slice(&u32::try_from(raw.len()).map_err(too_long)?.to_le_bytes());
    bytes.extend_from_slice(&id.0);
    let check = check(&bytes, payload);
    bytes.extend_from_slice(&check);
    bytes.extend_from_slice(payload);
    Ok(Packed { kind, id, bytes })
}

fn compress(raw: &[u8]) -> io::Result<Vec<u8>> {
    PACKER.with_borrow_mut(|packer| {
        let packer = match packer {
            Some(packer) => packer,
            None => packer.insert(zstd::bulk::Compressor::new(LEVEL)?),
        };
        packer.compress(raw)
    })
}

fn decompress(packed: &[u8], length: usize) -> io::Result<Vec<u8>> {
    UNPACKER.with_borrow_mut(|unpacker| {
        let unpacker = match unpacker {
            Some(unpacker) => unpacker,
            None => unpacker.insert(zstd::bulk::Decompressor::new()?),
        };
        unpacker.decompress(packed, length)
    })
}

/// The check that a record carries.
pub(crate) fn check_of(record: &[u8]) -> &[u8] {
    record.get(48..RECORD_HEAD).unwrap_or_default()
}

/// Covers head and stored payload, so that any flipped bit shows, also one that decompression would forgive.
fn check(head: &[u8], payload: &[u8]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(head);
    hasher.update(payload);
    let mut check = [0; 8];
    check.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    check
}

/// The length of the record that begins with this head, if it is a record's head.
pub(crate) fn record_length(head: &[u8]) -> Option<u64> {
    let number = |at: usize| head.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
    (head.get(..4)? == MAGIC && number(12)? <= LARGEST).then_some(())?;
    Some(RECORD_HEAD as u64 + u64::from(number(8)?))
}

/// Packs how an object differs from another.
#[cfg(test)]
pub(crate) fn pack_delta(kind: Kind, id: ObjectId, raw: &[u8], base: (ObjectId, &[u8])) -> Packed {
    let delta = zstd::bulk::Compressor::with_dictionary(LEVEL, base.1).unwrap().compress(raw).unwrap();
    let payload = [&base.0.0[..], &delta].concat();
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&[kind as u8, 2, 0, 0]);
    bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&(raw.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&id.0);
    let check = check(&bytes, &payload);
    bytes.extend_from_slice(&check);
    bytes.extend_from_slice(&payload);
    Packed { kind, id, bytes }
}

/// Reads a whole record; `None` where any bit of it is not as it was written.
pub(crate) fn unpack(bytes: &[u8]) -> Option<Sound> {
    let (head, payload) = bytes.split_at_checked(RECORD_HEAD)?;
    if record_length(head)? != bytes.len() as u64 || head[48..] != check(&head[..48], payload) {
        return None;
    }
    let kind = Kind::from_code(head[4])?;
    let mut id = [0; 32];
    id.copy_from_slice(&head[16..48]);
    let id = ObjectId(id);
    let length = u32::from_le_bytes(head[12..16].try_into().ok()?) as usize;
    let mut delta = None;
    let raw = match head[5] {
        0 => payload.to_vec(),
        1 => decompress(payload, length).ok()?,
        2 if matches!(kind, Kind::Blob | Kind::Tree) => {
            let (base, rest) = payload.split_at_checked(32)?;
            delta = Some(Delta { base: ObjectId(base.try_into().ok()?), length });
            rest.to_vec()
        }
        _ => return None,
    };
    let mut check = [0; 8];
    check.copy_from_slice(&head[48..]);
    let is_sound = delta.is_some() || (raw.len() == length && kind.id_of(&raw).is_none_or(|real| real == id));
    is_sound.then_some(Sound { kind, id, check, raw, delta })
}

/// Reads the record at a place; none where any bit of it is wrong, or cannot be read from the disk. The error is of anything
/// else that keeps the file from being read.
pub(crate) fn read(file: &File, place: &Place) -> io::Result<Option<Sound>> {
    let mut bytes = vec![0; place.length as usize];
    match read_what_can_be(file, &mut bytes, place.offset) {
        Ok(()) => Ok(unpack(&bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// One thing found when a pack is read.
#[derive(Debug)]
pub(crate) enum Item {
    Record(Place, Sound),
    /// Bytes from here to there are no sound record.
    Damage {
        from: u64,
        to: u64,
    },
}

/// Reads every record of a pack from one offset to another, looking for the next sound one after damage. With a tagger,
/// only what has the right tag is a record. What the disk cannot read is damage like any other.
pub(crate) fn each(
    file: &File,
    pack: u32,
    tagger: Option<&Tagger>,
    from: u64,
    end: u64,
    mut visit: impl FnMut(Item) -> io::Result<()>,
) -> io::Result<()> {
    let mut at = from;
    let mut damaged_from: Option<u64> = None;
    while at < end {
        match read_at(file, pack, tagger, at, end)? {
            Some((place, sound)) => {
                if let Some(from) = damaged_from.take() {
                    visit(Item::Damage { from, to: at })?;
                }
                at = place.offset + u64::from(place.length);
                visit(Item::Record(place, sound))?;
            }
            None => {
                damaged_from.get_or_insert(at);
                let tag = if tagger.is_some() { TAG as u64 } else { 0 };
                at = next_magic(file, at + 1 + tag, end)?.map_or(end, |magic| magic - tag);
            }
        }
    }
    if let Some(from) = damaged_from {
        visit(Item::Damage { from, to: end })?;
    }
    Ok(())
}

/// The record that begins here, with its tag where there is a tagger, if it is sound.
pub(crate) fn read_at(
    file: &File,
    pack: u32,
    tagger: Option<&Tagger>,
    at: u64,
    end: u64,
) -> io::Result<Option<(Place, Sound)>> {
    let mut head = [0; TAG + RECORD_HEAD];
    let tag = if tagger.is_some() { TAG } else { 0 };
    let head = &mut head[..tag + RECORD_HEAD];
    if at + head.len() as u64 > end {
        return Ok(None);
    }
    read_what_can_be(file, head, at)?;
    let (found, record) = head.split_at(tag);
    let offset = at + tag as u64;
    let Some(length) = record_length(record).filter(|l| offset + l <= end) else { return Ok(None) };
    let Ok(length) = u32::try_from(length) else { return Ok(None) };
    if tagger.is_some_and(|tagger| tagger.tag(offset, record) != *found) {
        return Ok(None);
    }
    let place = Place { pack, offset, length };
    Ok(read(file, &place)?.map(|sound| (place, sound)))
}

/// Where the next record may begin.
pub(crate) fn next_magic(file: &File, from: u64, end: u64) -> io::Result<Option<u64>> {
    let mut at = from;
    let mut window = vec![0; 64 << 10];
    while at + MAGIC.len() as u64 <= end {
        let length = window.len().min((end - at) as usize);
        read_what_can_be(file, &mut window[..length], at)?;
        if let Some(found) = memchr::memmem::find(&window[..length], MAGIC) {
            return Ok(Some(at + found as u64));
        }
        // The magic may lie across two windows.
        at += (length - MAGIC.len() + 1) as u64;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn any_flipped_bit_of_a_record_shows() {
        let raw = b"the same text again and again, the same text again and again, the same text again".repeat(3);
        let packed = pack(Kind::Blob, ObjectId::of_blob(&raw), &raw).unwrap();
        assert_eq!(unpack(&packed.bytes).unwrap().raw, raw);
        for bit in 0..packed.bytes.len() * 8 {
            let mut bad = packed.bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(unpack(&bad).is_none(), "bit {bit}");
        }
    }

    #[test]
    fn a_damaged_record_costs_only_itself() {
        let mut file = tempfile::tempfile().unwrap();
        let key = StoreKey([7; 16]);
        let tagger = key.tagger(1);
        let mut bytes = key.head().to_vec();
        let mut starts = Vec::new();
        for raw in [&b"one"[..], b"two", b"three"] {
            starts.push(bytes.len());
            put(&mut bytes, &tagger, raw);
        }
        // Even the length of the second is wrong.
        bytes[starts[1] + TAG + 8] ^= 0x40;
        file.write_all(&bytes).unwrap();
        assert_eq!(form(&file).unwrap(), PackForm::Tagged(key));
        let found = found(&file, &tagger, bytes.len());
        assert_eq!(found, ["one".to_owned(), format!("{}..{}", starts[1], starts[2]), "three".to_owned()]);
    }

    fn put(bytes: &mut Vec<u8>, tagger: &Tagger, raw: &[u8]) {
        let record = pack(Kind::Blob, ObjectId::of_blob(raw), raw).unwrap().bytes;
        let tag = tagger.tag((bytes.len() + TAG) as u64, &record);
        bytes.extend(tag);
        bytes.extend(record);
    }

    fn found(file: &File, tagger: &Tagger, end: usize) -> Vec<String> {
        let mut found = Vec::new();
        each(file, 1, Some(tagger), PACK_HEAD, end as u64, |item| {
            found.push(match item {
                Item::Record(_, sound) => String::from_utf8(sound.raw).unwrap(),
                Item::Damage { from, to } => format!("{from}..{to}"),
            });
            Ok(())
        })
        .unwrap();
        found
    }

    /// A pack that was captured as a file, from another store or from this one, is not read as records when the record
    /// around it is damaged.
    #[test]
    fn a_record_inside_a_file_is_never_taken_for_one_of_the_store() {
        let key = StoreKey([7; 16]);
        let tagger = key.tagger(1);
        for other in [key, StoreKey([8; 16])] {
            let mut inner = other.head().to_vec();
            // As compressed files are: nothing to gain, so it is stored as it is.
            let mut noise = vec![0; 200];
            blake3::Hasher::new().finalize_xof().fill(&mut noise);
            put(&mut inner, &other.tagger(1), b"forged");
            inner.extend(&noise);

            let mut bytes = key.head().to_vec();
            put(&mut bytes, &tagger, &inner);
            let start = PACK_HEAD as usize;
            assert!(
                memchr::memmem::find(&bytes, b"forged").is_some(),
                "the file is packed: the test would test nothing"
            );
            let end = bytes.len();
            put(&mut bytes, &tagger, b"after");
            bytes[start + TAG + 20] ^= 1;
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&bytes).unwrap();
            assert_eq!(found(&file, &tagger, bytes.len()), [format!("{start}..{end}"), "after".to_owned()]);
        }
    }
}
