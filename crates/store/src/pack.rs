//! Pack files: self-describing records, one after the other, only ever appended to. `docs/format.md` has the layout.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use piton_model::ObjectId;

/// How a pack file begins: magic and format version.
pub(crate) const PACK_HEAD: &[u8; 16] = b"PITONPK1\x01\0\0\0\0\0\0\0";
/// How a record begins; what a search for the next sound record looks for.
const MAGIC: &[u8; 4] = b"PiTn";
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
}

impl Kind {
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        [Self::Blob, Self::Tree, Self::Chunks, Self::Timeline].into_iter().find(|k| *k as u8 == code)
    }

    /// The id that a payload of this kind must have.
    fn id_of(self, raw: &[u8]) -> Option<ObjectId> {
        match self {
            Self::Blob | Self::Timeline => Some(ObjectId::of_blob(raw)),
            Self::Tree => Some(ObjectId::of_tree(raw)),
            // The id of the whole file, which only its chunks can tell.
            Self::Chunks => None,
        }
    }
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
    pub raw: Vec<u8>,
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
    let raw = match head[5] {
        0 => payload.to_vec(),
        1 => decompress(payload, length).ok()?,
        _ => return None,
    };
    (raw.len() == length && kind.id_of(&raw).is_none_or(|real| real == id)).then_some(Sound { kind, id, raw })
}

/// Reads the record at a place; the outer error is the disk's.
pub(crate) fn read(file: &File, place: &Place) -> io::Result<Option<Sound>> {
    let mut bytes = vec![0; place.length as usize];
    match file.read_exact_at(&mut bytes, place.offset) {
        Ok(()) => Ok(unpack(&bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// One thing found when a pack is read from its beginning.
#[derive(Debug)]
pub(crate) enum Item {
    Record(Place, Sound),
    /// Bytes from here to there are no sound record.
    Damage {
        pack: u32,
        from: u64,
        to: u64,
    },
}

/// Reads every record of a pack up to `end`, looking for the next sound one after damage.
pub(crate) fn each(file: &File, pack: u32, end: u64, mut visit: impl FnMut(Item) -> io::Result<()>) -> io::Result<()> {
    let mut at = PACK_HEAD.len() as u64;
    let mut head = [0; PACK_HEAD.len()];
    if end < at || file.read_exact_at(&mut head, 0).is_err() || head != *PACK_HEAD {
        // A damaged head costs nothing: the records describe themselves.
        visit(Item::Damage { pack, from: 0, to: at.min(end) })?;
    }
    let mut damaged_from: Option<u64> = None;
    while at < end {
        match read_at(file, pack, at, end)? {
            Some((place, sound)) => {
                if let Some(from) = damaged_from.take() {
                    visit(Item::Damage { pack, from, to: at })?;
                }
                at += u64::from(place.length);
                visit(Item::Record(place, sound))?;
            }
            None => {
                damaged_from.get_or_insert(at);
                at = next_magic(file, at + 1, end)?;
            }
        }
    }
    if let Some(from) = damaged_from {
        visit(Item::Damage { pack, from, to: end })?;
    }
    Ok(())
}

fn read_at(file: &File, pack: u32, offset: u64, end: u64) -> io::Result<Option<(Place, Sound)>> {
    let mut head = [0; RECORD_HEAD];
    if offset + RECORD_HEAD as u64 > end {
        return Ok(None);
    }
    file.read_exact_at(&mut head, offset)?;
    let Some(length) = record_length(&head).filter(|l| offset + l <= end) else { return Ok(None) };
    let Ok(length) = u32::try_from(length) else { return Ok(None) };
    let place = Place { pack, offset, length };
    Ok(read(file, &place)?.map(|sound| (place, sound)))
}

/// Where the next record may begin.
fn next_magic(file: &File, from: u64, end: u64) -> io::Result<u64> {
    let mut at = from;
    let mut window = vec![0; 64 << 10];
    while at + MAGIC.len() as u64 <= end {
        let length = window.len().min((end - at) as usize);
        file.read_exact_at(&mut window[..length], at)?;
        if let Some(found) = window[..length].windows(MAGIC.len()).position(|w| w == MAGIC) {
            return Ok(at + found as u64);
        }
        // The magic may lie across two windows.
        at += (length - MAGIC.len() + 1) as u64;
    }
    Ok(end)
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
        let mut bytes = PACK_HEAD.to_vec();
        let mut starts = Vec::new();
        for raw in [&b"one"[..], b"two", b"three"] {
            starts.push(bytes.len());
            bytes.extend(pack(Kind::Blob, ObjectId::of_blob(raw), raw).unwrap().bytes);
        }
        // Even the length of the second is wrong.
        bytes[starts[1] + 8] ^= 0x40;
        file.write_all(&bytes).unwrap();
        let mut found = Vec::new();
        each(&file, 1, bytes.len() as u64, |item| {
            found.push(match item {
                Item::Record(_, sound) => String::from_utf8(sound.raw).unwrap(),
                Item::Damage { from, to, .. } => format!("{from}..{to}"),
            });
            Ok(())
        })
        .unwrap();
        assert_eq!(found, ["one".to_owned(), format!("{}..{}", starts[1], starts[2]), "three".to_owned()]);
    }
}
