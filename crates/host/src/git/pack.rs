//! One pack of objects and its index.

use std::cell::{OnceCell, RefCell};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::files;
use super::hash::{Format, Id};
use super::inflate::Inflater;
use super::number::varint;
use super::objects::{Failure, Kind};

/// A pack. The first few of a folder are held open: the index from the beginning, the pack itself once something in it
/// is needed. The others are opened anew each time, since there may be more of them than file handles.
pub(super) struct Pack {
    format: Format,
    index: Option<File>,
    /// The number of objects up to each first byte.
    fan: Vec<u32>,
    path: PathBuf,
    pack: OnceCell<Option<File>>,
}

/// A file that is held open, or was opened just now.
enum Opened<'a> {
    Held(&'a File),
    Now(File),
}

impl std::ops::Deref for Opened<'_> {
    type Target = File;

    fn deref(&self) -> &File {
        match self {
            Self::Held(file) => file,
            Self::Now(file) => file,
        }
    }
}

/// Where the ids begin.
const IDS_AT: u64 = 8 + 256 * 4;
/// Longest delta chain: git allows this many and uses 50 by default.
const LONGEST_CHAIN: usize = 4096;
/// Bytes that assembling one object may take in total.
const MOST_WORK: u64 = 1 << 30;
/// Most packs of one folder that are searched.
const MOST_PACKS: usize = 4096;
/// Most packs of one folder that are held open.
const MOST_HELD: usize = 16;

type Object = (Kind, Vec<u8>);

impl Pack {
    /// The packs of a folder of objects.
    pub(super) fn list(folder: &Path, format: Format) -> Vec<Self> {
        let Ok(listing) = std::fs::read_dir(folder.join("pack")) else { return Vec::new() };
        let paths = listing.flatten().map(|entry| entry.path());
        let indexes = paths.filter(|path| path.extension().is_some_and(|e| e == "idx")).take(MOST_PACKS);
        let mut packs: Vec<Self> = Vec::new();
        for path in indexes {
            let Some(mut pack) = Self::open(path, format) else { continue };
            if packs.len() >= MOST_HELD {
                pack.index = None;
            }
            packs.push(pack);
        }
        packs
    }

    fn open(index: PathBuf, format: Format) -> Option<Self> {
        let (file, stat) = files::open(&index).ok()??;
        let mut start = [0; IDS_AT as usize];
        file.read_exact_at(&mut start, 0).ok()?;
        if start[..8] != *b"\xfftOc\0\0\0\x02" {
            return None;
        }
        let fan: Vec<u32> = start[8..].chunks_exact(4).map(|c| u32::from_be_bytes([c[0], c[1], c[2], c[3]])).collect();
        let least = IDS_AT + u64::from(*fan.last()?) * (format.len() as u64 + 8);
        if !fan.is_sorted() || (stat.st_size as u64) < least {
            return None;
        }
        Some(Self { format, index: Some(file), fan, path: index.with_extension("pack"), pack: OnceCell::new() })
    }

    /// Where in the pack an object begins.
    pub(super) fn find(&self, id: Id) -> Result<u64, Failure> {
        /// How many ids are read at once.
        const SHARE: u64 = 128;
        let width = self.format.len();
        let first = id.as_bytes()[0] as usize;
        let mut low = if first == 0 { 0 } else { u64::from(self.fan[first - 1]) };
        let mut high = u64::from(self.fan[first]);
        let mut buffer = [0; SHARE as usize * 32];
        let index = self.index()?;
        while high - low > SHARE {
            let middle = low + (high - low) / 2;
            let probe = &mut buffer[..width];
            index.read_exact_at(probe, IDS_AT + middle * width as u64).map_err(|_| Failure::Damaged)?;
            if &*probe <= id.as_bytes() { low = middle } else { high = middle }
        }
        let ids = &mut buffer[..(high - low) as usize * width];
        index.read_exact_at(ids, IDS_AT + low * width as u64).map_err(|_| Failure::Damaged)?;
        let at = ids.chunks_exact(width).position(|found| found == id.as_bytes()).ok_or(Failure::Missing)?;
        self.offset(&index, low + at as u64).ok_or(Failure::Damaged)
    }

    fn offset(&self, index: &File, number: u64) -> Option<u64> {
        let count = u64::from(*self.fan.last()?);
        let offsets = IDS_AT + count * (self.format.len() as u64 + 4);
        let mut four = [0; 4];
        index.read_exact_at(&mut four, offsets + number * 4).ok()?;
        let offset = u32::from_be_bytes(four);
        if offset >> 31 == 0 {
            return Some(offset.into());
        }
        // Offsets beyond 2 GiB are in another table.
        let mut eight = [0; 8];
        let number = u64::from(offset & (u32::MAX >> 1));
        index.read_exact_at(&mut eight, offsets + count * 4 + number * 8).ok()?;
        Some(u64::from_be_bytes(eight))
    }

    fn index(&self) -> Result<Opened<'_>, Failure> {
        match &self.index {
            Some(file) => Ok(Opened::Held(file)),
            None => open_again(&self.path.with_extension("idx")).map(Opened::Now).ok_or(Failure::Missing),
        }
    }

    fn file(&self) -> Result<Opened<'_>, Failure> {
        // Git removes old packs after repacking.
        let found = match &self.index {
            Some(_) => self.pack.get_or_init(|| open_again(&self.path)).as_ref().map(Opened::Held),
            None => open_again(&self.path).map(Opened::Now),
        };
        found.ok_or(Failure::Missing)
    }

    /// Assembles an object. `largest` limits the object itself, `bound` those it is a delta to.
    pub(super) fn read(
        &self,
        offset: u64,
        largest: u64,
        bound: u64,
        inflater: &RefCell<Inflater>,
        elsewhere: &dyn Fn(Id) -> Result<Object, Failure>,
    ) -> Result<Object, Failure> {
        let file = &*self.file()?;
        let mut chain = Vec::new();
        let mut at = offset;
        let (kind, mut content) = loop {
            let entry = Entry::read(file, at, self.format).ok_or(Failure::Damaged)?;
            let allowed = if chain.is_empty() { largest } else { bound };
            match entry.kind {
                EntryKind::Whole(kind) if entry.size <= allowed => {
                    break (kind, entry.inflate(file, &mut inflater.borrow_mut()).ok_or(Failure::Damaged)?);
                }
                EntryKind::Whole(_) => return Err(Failure::TooLarge),
                EntryKind::Offset(back) => {
                    at = at.checked_sub(back).filter(|base| back > 0 && *base > 0).ok_or(Failure::Damaged)?;
                }
                EntryKind::Id(base) => match self.find(base) {
                    Ok(offset) => at = offset,
                    Err(_) => {
                        chain.push(entry);
                        break elsewhere(base)?;
                    }
                },
            }
            chain.push(entry);
            if chain.len() > LONGEST_CHAIN {
                return Err(Failure::Damaged);
            }
        };
        let mut work = 0;
        while let Some(entry) = chain.pop() {
            if entry.size > bound {
                return Err(Failure::TooLarge);
            }
            let delta = entry.inflate(file, &mut inflater.borrow_mut()).ok_or(Failure::Damaged)?;
            let allowed = if chain.is_empty() { largest } else { bound };
            content = patch(&content, &delta, allowed)?;
            work += (content.len() + delta.len()) as u64;
            if work > MOST_WORK {
                return Err(Failure::TooLarge);
            }
        }
        Ok((kind, content))
    }
}

fn open_again(path: &Path) -> Option<File> {
    files::open(path).ok().flatten().map(|(file, _)| file)
}

enum EntryKind {
    Whole(Kind),
    /// A delta to the object this many bytes before.
    Offset(u64),
    /// A delta to this object.
    Id(Id),
}

/// The header before an object's compressed bytes.
struct Entry {
    kind: EntryKind,
    size: u64,
    data_at: u64,
}

impl Entry {
    fn read(file: &File, at: u64, format: Format) -> Option<Self> {
        // The longest header: a size of ten bytes and an id.
        let mut start = [0; 42];
        let filled = file.read_at(&mut start, at).ok()?;
        let start = &start[..filled];
        let mut byte = *start.first()?;
        let kind = byte >> 4 & 7;
        let mut size = u64::from(byte & 15);
        let mut used = 1;
        let mut shift = 4;
        while byte & 128 != 0 {
            byte = *start.get(used)?;
            used += 1;
            if shift > 57 {
                return None;
            }
            size |= u64::from(byte & 127) << shift;
            shift += 7;
        }
        let kind = match kind {
            1 => EntryKind::Whole(Kind::Commit),
            2 => EntryKind::Whole(Kind::Tree),
            3 => EntryKind::Whole(Kind::Blob),
            4 => EntryKind::Whole(Kind::Tag),
            6 => EntryKind::Offset(varint(start, &mut used)?),
            7 => {
                used += format.len();
                EntryKind::Id(Id::from_bytes(start.get(used - format.len()..used)?))
            }
            _ => return None,
        };
        Some(Self { kind, size, data_at: at.checked_add(used as u64)? })
    }

    fn inflate(&self, file: &File, inflater: &mut Inflater) -> Option<Vec<u8>> {
        let mut at = self.data_at;
        let mut source = |buffer: &mut [u8]| {
            let read = file.read_at(buffer, at)?;
            at += read as u64;
            Ok(read)
        };
        inflater.begin();
        let mut content = vec![0; usize::try_from(self.size).ok()?];
        if !content.is_empty() {
            let (filled, _) = inflater.fill(&mut source, &mut content)?;
            (filled == content.len()).then_some(())?;
        }
        Some(content)
    }
}

/// Applies a delta: which parts of the base to copy, and what to insert between them.
fn patch(base: &[u8], delta: &[u8], largest: u64) -> Result<Vec<u8>, Failure> {
    let mut at = 0;
    let next = |at: &mut usize| {
        let byte = delta.get(*at).copied().ok_or(Failure::Damaged)?;
        *at += 1;
        Ok(byte)
    };
    let size = |at: &mut usize| {
        let mut size = 0u64;
        for shift in (0..63).step_by(7) {
            let byte = next(at)?;
            size |= u64::from(byte & 127) << shift;
            if byte & 128 == 0 {
                return Ok(size);
            }
        }
        Err(Failure::Damaged)
    };
    if size(&mut at)? != base.len() as u64 {
        return Err(Failure::Damaged);
    }
    let wanted = size(&mut at)?;
    if wanted > largest {
        return Err(Failure::TooLarge);
    }
    let wanted = wanted as usize;
    let mut out = Vec::with_capacity(wanted);
    while at < delta.len() {
        let code = next(&mut at)?;
        let part = if code & 128 != 0 {
            let mut number = |bits: std::ops::Range<u8>| {
                let mut number = 0usize;
                for (place, bit) in bits.enumerate() {
                    if code >> bit & 1 != 0 {
                        number |= usize::from(next(&mut at)?) << (8 * place);
                    }
                }
                Ok(number)
            };
            let from = number(0..4)?;
            let len = match number(4..7)? {
                0 => 0x10000,
                len => len,
            };
            base.get(from..from + len).ok_or(Failure::Damaged)?
        } else {
            let len = usize::from(code);
            at += len;
            delta.get(at - len..at).filter(|part| !part.is_empty()).ok_or(Failure::Damaged)?
        };
        if out.len() + part.len() > wanted {
            return Err(Failure::Damaged);
        }
        out.extend_from_slice(part);
    }
    if out.len() == wanted { Ok(out) } else { Err(Failure::Damaged) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_copies_and_inserts_and_nothing_else() {
        let base = b"hello world";
        // Copy 5 from 0, insert "!", copy 6 from 5.
        let delta = [11, 12, 0b1001_0000, 5, 1, b'!', 0b1001_0001, 5, 6];
        assert_eq!(patch(base, &delta, 100).unwrap(), b"hello! world");
        assert_eq!(patch(base, &delta, 11), Err(Failure::TooLarge));
        assert_eq!(patch(b"other", &delta, 100), Err(Failure::Damaged));
        for end in 0..delta.len() {
            assert!(patch(base, &delta[..end], 100).is_err(), "cut at {end}");
        }
        for at in 0..delta.len() {
            for bit in 0..8 {
                let mut bad = delta;
                bad[at] ^= 1 << bit;
                let _ = patch(base, &bad, 100);
            }
        }
    }
}
