//! Git's index, read in place: versions 2 to 4, split ones, and those of sparse checkouts.
//!
//! Nothing is allocated per entry but its position, since there are thousands and most are never examined.

use std::cmp::Ordering;
use std::ops::Range;
use std::path::Path;

use piton_model::git::{ASSUME_VALID, INTENT_TO_ADD, SKIP_WORKTREE};

use super::cached::CachedTree;
use super::files;
use super::hash::{Format, Id};
use super::number::{u16_at, u32_at, u64_at, varint};

#[derive(Default)]
pub(super) struct Index {
    /// The file; the file that it shares with others; paths that were prefix-compressed in the file.
    bytes: Vec<u8>,
    pub entries: Vec<Entry>,
    format: Format,
    /// The part of `bytes` that is the file itself.
    own: Range<usize>,
    cached_tree: Option<Range<usize>>,
    /// In seconds and nanoseconds.
    pub written: (u32, u32),
    /// The union of all entries' flags.
    pub all_flags: u16,
}

/// Where an entry is, and the fields that are always needed.
#[derive(Clone, Copy, Default)]
pub(super) struct Entry {
    at: u32,
    path_at: u32,
    path_len: u16,
    pub flags: u8,
    pub stage: u8,
}

/// The `stat` that git stored when the file last matched the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownStat {
    pub ctime: (u32, u32),
    pub mtime: (u32, u32),
    pub inode: u32,
    pub size: u32,
}

/// Bytes of `stat` data before an entry's id.
const STAT: usize = 40;

impl Index {
    /// Reads a repository's index, or returns why it cannot be read. Without a file it is empty.
    pub(super) fn read(git_dir: &Path, format: Format, largest: u64) -> Result<Self, String> {
        Self::read_file(&git_dir.join("index"), git_dir, format, largest)
    }

    /// Like `read`, from another file than git's own.
    pub(super) fn read_file(path: &Path, git_dir: &Path, format: Format, largest: u64) -> Result<Self, String> {
        // Offsets in it are stored in four bytes, and there are up to three parts of its size.
        let largest = largest.min(1 << 30);
        let file = files::read(path, largest).map_err(|error| format!("the index: {error}"))?;
        let Some((bytes, stat)) = file else { return Ok(Self { format, ..Self::default() }) };
        let written = (stat.st_mtime as u32, stat.st_mtime_nsec as u32);
        let mut index = Self { own: 0..bytes.len(), bytes, format, written, ..Self::default() };
        let extensions = index.parse(0..index.own.end)?;
        index.cached_tree = extensions.cached_tree;
        if let Some(link) = extensions.link {
            index.join(git_dir, link, largest)?;
        }
        let is_sorted = |pair: &[Entry]| index.order(&pair[0], &pair[1]) == Ordering::Less;
        if !index.entries.windows(2).all(is_sorted) || index.entries.first().is_some_and(|e| e.path_len == 0) {
            return Err("the index is damaged: its entries are not in order".into());
        }
        index.all_flags = index.entries.iter().fold(0, |all, entry| all | u16::from(entry.flags));
        Ok(index)
    }

    pub(super) fn path(&self, entry: &Entry) -> &[u8] {
        &self.bytes[entry.path_at as usize..][..entry.path_len as usize]
    }

    pub(super) fn id(&self, entry: &Entry) -> Id {
        Id::from_bytes(self.id_bytes(entry))
    }

    pub(super) fn id_bytes(&self, entry: &Entry) -> &[u8] {
        &self.bytes[entry.at as usize + STAT..][..self.format.len()]
    }

    pub(super) fn mode(&self, entry: &Entry) -> u32 {
        self.number(entry, 6)
    }

    pub(super) fn known(&self, entry: &Entry) -> KnownStat {
        KnownStat {
            ctime: (self.number(entry, 0), self.number(entry, 1)),
            mtime: (self.number(entry, 2), self.number(entry, 3)),
            inode: self.number(entry, 5),
            size: self.number(entry, 9),
        }
    }

    fn number(&self, entry: &Entry, number: usize) -> u32 {
        u32_at(&self.bytes, entry.at as usize + 4 * number).unwrap_or_default()
    }

    /// The trees that git cached in it.
    pub(super) fn cached_tree(&self) -> Option<CachedTree<'_>> {
        CachedTree::new(&self.bytes[self.cached_tree.clone()?], self.format)
    }

    /// The tree of all entries, if git computed it since the last of them was staged.
    pub(super) fn whole_tree(&self) -> Option<Id> {
        let bytes = self.bytes.get(self.cached_tree.clone()?)?;
        CachedTree::root(bytes, self.format).filter(|(count, _)| *count == self.entries.len()).map(|(_, id)| id)
    }

    /// Whether the file matches its own checksum; git can be configured not to write one.
    pub(super) fn is_sound(&self) -> bool {
        let own = &self.bytes[self.own.clone()];
        let Some((content, sum)) = own.split_at_checked(own.len().saturating_sub(self.format.len())) else {
            return true;
        };
        if sum.iter().all(|b| *b == 0) {
            return true;
        }
        let mut hasher = self.format.hasher();
        hasher.update(content);
        hasher.finish().as_bytes() == sum
    }

    fn order(&self, a: &Entry, b: &Entry) -> Ordering {
        self.path(a).cmp(self.path(b)).then(a.stage.cmp(&b.stage))
    }

    /// Reads a file's entries and finds its extensions.
    fn parse(&mut self, file: Range<usize>) -> Result<Extensions, String> {
        let damaged = || "the index is damaged".to_owned();
        let header = self.bytes.get(file.start..file.end).filter(|f| f.starts_with(b"DIRC")).ok_or_else(damaged)?;
        let version = u32_at(header, 4).ok_or_else(damaged)?;
        let count = u32_at(header, 8).ok_or_else(damaged)? as usize;
        if !(2..=4).contains(&version) {
            return Err(format!("the index has version {version}, which piton does not know"));
        }
        let end = file.end.checked_sub(self.format.len()).filter(|end| *end >= file.start + 12).ok_or_else(damaged)?;
        let mut at = file.start + 12;
        // However many it claims, no more than fit.
        let fixed = STAT + self.format.len() + 2;
        self.entries.reserve(count.min((end - at) / fixed));
        if version == 4 {
            self.bytes.reserve((end - at) / 2);
        }
        // A short file could expand to endless paths.
        let most = self.bytes.len() + file.len() * 4 + (1 << 20);
        let mut last = 0..0;
        for _ in 0..count {
            let entry = match version {
                4 => self.parse_short(&mut at, end, &mut last, most),
                _ => self.parse_plain(&mut at, end, version),
            };
            self.entries.push(entry.ok_or_else(damaged)?);
        }
        self.extensions(at..end)
    }

    /// An entry of version 2 or 3, padded with NUL bytes.
    fn parse_plain(&self, at: &mut usize, end: usize, version: u32) -> Option<Entry> {
        let (from, flags, path_at) = self.parse_fixed(*at, end, version)?;
        let claimed = usize::from(u16_at(&self.bytes, from + STAT + self.format.len())? & 0xfff);
        let rest = self.bytes.get(path_at..end)?;
        let len = match claimed {
            // Too long for its twelve bits.
            0xfff => rest.iter().position(|b| *b == 0)?,
            len => len,
        };
        if rest.get(len) != Some(&0) {
            return None;
        }
        *at = from + ((path_at + len - from + 8) & !7);
        self.entry(from, flags, path_at, len).filter(|_| *at <= end)
    }

    /// An entry of version 4: its path is stored as a difference from the previous one.
    fn parse_short(&mut self, at: &mut usize, end: usize, last: &mut Range<usize>, most: usize) -> Option<Entry> {
        let (from, flags, mut path_at) = self.parse_fixed(*at, end, 4)?;
        let dropped = usize::try_from(varint(self.bytes.get(..end)?, &mut path_at)?).ok()?;
        let kept = last.len().checked_sub(dropped)?;
        let suffix = self.bytes.get(path_at..end)?.iter().position(|b| *b == 0)?;
        *at = path_at + suffix + 1;
        let start = self.bytes.len();
        if start + kept + suffix > most {
            return None;
        }
        self.bytes.extend_from_within(last.start..last.start + kept);
        self.bytes.extend_from_within(path_at..path_at + suffix);
        *last = start..self.bytes.len();
        self.entry(from, flags, start, kept + suffix)
    }

    /// The entry's position, its flags with the extended ones above, and the position after them.
    fn parse_fixed(&self, from: usize, end: usize, version: u32) -> Option<(usize, u32, usize)> {
        const EXTENDED: u16 = 0x4000;
        let at = from + STAT + self.format.len();
        if at + 2 > end {
            return None;
        }
        let flags = u16_at(&self.bytes, at)?;
        if flags & EXTENDED == 0 {
            return Some((from, flags.into(), at + 2));
        }
        let extended = u16_at(self.bytes.get(..end)?, at + 2).filter(|_| version >= 3)?;
        Some((from, u32::from(extended) << 16 | u32::from(flags), at + 4))
    }

    fn entry(&self, from: usize, flags: u32, path_at: usize, path_len: usize) -> Option<Entry> {
        const VALID: u32 = 0x8000;
        const SKIP: u32 = 0x4000 << 16;
        const INTENT: u32 = 0x2000 << 16;
        // Git does not read an index with unknown flags either.
        if flags & !(SKIP | INTENT | 0xffff) != 0 {
            return None;
        }
        let flag = |bit: u32, ours: u16| if flags & bit != 0 { ours as u8 } else { 0 };
        Some(Entry {
            at: u32::try_from(from).ok()?,
            path_at: u32::try_from(path_at).ok()?,
            path_len: u16::try_from(path_len).ok()?,
            flags: flag(VALID, ASSUME_VALID) | flag(SKIP, SKIP_WORKTREE) | flag(INTENT, INTENT_TO_ADD),
            stage: (flags >> 12 & 3) as u8,
        })
    }

    fn extensions(&self, range: Range<usize>) -> Result<Extensions, String> {
        let damaged = || "the index is damaged".to_owned();
        let mut found = Extensions::default();
        let mut at = range.start;
        while at < range.end {
            let header = self.bytes.get(at..range.end).and_then(|rest| rest.get(..8)).ok_or_else(damaged)?;
            let len = u32_at(header, 4).ok_or_else(damaged)? as usize;
            let content = at + 8..at + 8 + len;
            if content.end > range.end {
                return Err(damaged());
            }
            match &header[..4] {
                b"TREE" => found.cached_tree = Some(content.clone()),
                b"link" => found.link = Some(content.clone()),
                // An entry may stand for a whole folder, as its mode says.
                b"sdir" => {}
                // Extensions whose name begins with a capital may be ignored.
                [b'A'..=b'Z', ..] => {}
                other => {
                    let name = String::from_utf8_lossy(other);
                    return Err(format!("the index has the extension {name}, which piton does not know"));
                }
            }
            at = content.end;
        }
        Ok(found)
    }

    /// Assembles a split index: the shared one, without some entries, with others replaced, and with additions.
    fn join(&mut self, git_dir: &Path, link: Range<usize>, largest: u64) -> Result<(), String> {
        let damaged = || "the split index is damaged".to_owned();
        let link = self.bytes.get(link).ok_or_else(damaged)?.to_vec();
        let (shared, bitmaps) = link.split_at_checked(self.format.len()).ok_or_else(damaged)?;
        if shared.iter().all(|b| *b == 0) {
            return Ok(());
        }
        let hex = Id::from_bytes(shared).to_hex();
        let base = files::read(&git_dir.join(format!("sharedindex.{hex}")), largest);
        let base = base.map_err(|error| format!("the shared index: {error}"))?;
        let (base, _) = base.ok_or("the index is split, and the shared part is missing")?;
        if !base.ends_with(shared) {
            return Err("the index is split, and the shared part is another one".into());
        }
        let mine = std::mem::take(&mut self.entries);
        let from = self.bytes.len();
        self.bytes.extend_from_slice(&base);
        self.parse(from..from + base.len())?;
        let base = std::mem::take(&mut self.entries);

        let (deleted, replaced) = match bitmaps.is_empty() {
            true => (vec![false; base.len()], vec![false; base.len()]),
            false => {
                let (deleted, rest) = bitmap(bitmaps, base.len()).ok_or_else(damaged)?;
                let (replaced, _) = bitmap(rest, base.len()).ok_or_else(damaged)?;
                (deleted, replaced)
            }
        };
        // The first entries replace shared ones, in order and mostly without a path.
        let mut mine = mine.into_iter();
        let mut entries = Vec::with_capacity(base.len() + mine.len());
        for (number, entry) in base.iter().enumerate() {
            let entry = match replaced[number] {
                true => {
                    let by = mine.next().ok_or_else(damaged)?;
                    Entry { path_at: entry.path_at, path_len: entry.path_len, ..by }
                }
                false => *entry,
            };
            if !deleted[number] {
                entries.push(entry);
            }
        }
        entries.extend(mine);
        entries.sort_by(|a, b| self.order(a, b));
        entries.dedup_by(|later, kept| {
            // An added entry replaces a shared one of the same name.
            let is_same = self.order(later, kept) == Ordering::Equal;
            if is_same {
                *kept = *later;
            }
            is_same
        });
        self.entries = entries;
        Ok(())
    }
}

#[derive(Default)]
struct Extensions {
    cached_tree: Option<Range<usize>>,
    link: Option<Range<usize>>,
}

/// Reads a compressed bitmap (EWAH) of at most `most` bits; returns it and the rest.
fn bitmap(bytes: &[u8], most: usize) -> Option<(Vec<bool>, &[u8])> {
    let words = u32_at(bytes, 4)? as usize;
    let end = words.checked_mul(8)?.checked_add(8)?;
    let rest = bytes.get(end.checked_add(4)?..)?;
    let mut bits = vec![false; most];
    let mut place = 0usize;
    let mut set = |place: usize| -> Option<()> {
        *bits.get_mut(place)? = true;
        Some(())
    };
    let mut word = 0;
    while word < words {
        let run = u64_at(bytes, 8 + word * 8)?;
        word += 1;
        let length = usize::try_from(run >> 1 & 0xffff_ffff).ok()?.checked_mul(64)?;
        if run & 1 != 0 {
            (place..place.checked_add(length)?).try_for_each(&mut set)?;
        }
        place = place.checked_add(length)?;
        let literals = usize::try_from(run >> 33).ok()?;
        if literals > words - word {
            return None;
        }
        for _ in 0..literals {
            let literal = u64_at(bytes, 8 + word * 8)?;
            word += 1;
            (0..64).filter(|bit| literal >> bit & 1 != 0).try_for_each(|bit| set(place.checked_add(bit)?))?;
            place = place.checked_add(64)?;
        }
    }
    Some((bits, rest))
}
