//! Reading an archive, which anybody may have made: it is checked as a whole before anything of it is used.
//!
//! One pass reads all of it and writes nothing: every record has its checksum and its id, every object stands after those
//! that it needs, sizes are what they are said to be, and the hash at the end is that of all bytes. A second pass copies
//! the objects to the store, and compares that hash again before they count.

use std::collections::{HashMap, hash_map};
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use piton_model::record::Numbered;
use piton_model::{Entry, ObjectId, Record, Tree};

use super::{ArchiveError, END, END_LENGTH, HEAD, LARGEST_RECORD, MAGIC, MOST_TIMELINE, Manifest, VERSION};
use crate::error::StoreError;
use crate::objects::{CHUNK_MAX, Packed};
use crate::pack::{self, Kind, LARGEST, RECORD_HEAD, Sound};
use crate::write::{ROW, Writer};

/// More objects than this are no session.
const MOST_OBJECTS: usize = 20_000_000;
/// No path of the system is as deep.
const DEEPEST: u32 = 2_048;
/// Folders may be shared, so that a small archive could hold more paths than anybody can walk: a checkpoint's, all counted.
const MOST_PATHS: u64 = 5_000_000;
/// The same for bytes: of all files of a checkpoint, and of all large files, which are hashed anew.
const MOST_BYTES: u64 = 1 << 40;
/// How much more than its budget a store holds when it is unpacked, and what two files share is counted twice. More than
/// this is no session: it would take hours to read.
const UNPACKED: u64 = 16;
/// A link's target that the system could not have.
const LONGEST_TARGET: usize = 4_096;
/// Bits that make a file run as its owner or its group, whoever starts it.
const SET_ID: u16 = 0o6000;

/// An archive whose bytes are sound, with the records that it holds. What they say is still to be checked.
#[derive(Debug)]
pub struct Archive {
    file: File,
    manifest: Manifest,
    records: Vec<Record>,
    objects: HashMap<ObjectId, Held>,
    /// How many records there are.
    count: u64,
    /// Their bytes.
    timeline: u64,
    digest: blake3::Hash,
    /// Where the hashed bytes end.
    end: u64,
    declared: Declared,
}

/// What an archive says that it holds, in bytes, against the budget of the store that it is to go to.
#[derive(Clone, Copy, Debug)]
struct Declared {
    bytes: u64,
    budget: u64,
}

impl Declared {
    /// Counts before anything is read or made room for.
    fn add(&mut self, bytes: u64) -> Result<(), ArchiveError> {
        self.bytes = self.bytes.saturating_add(bytes);
        self.within(self.bytes)
    }

    fn within(self, bytes: u64) -> Result<(), ArchiveError> {
        if bytes > self.budget.saturating_mul(UNPACKED).min(MOST_BYTES) {
            return Err(ArchiveError::OverBudget { declared: bytes, budget: self.budget });
        }
        Ok(())
    }
}

/// An object of an archive.
#[derive(Debug)]
struct Held {
    kind: Kind,
    at: u64,
    length: u32,
    /// Bytes of a blob; of all files in a tree.
    size: u64,
    /// Paths in a tree, at any depth.
    paths: u64,
    depth: u32,
    holds_skipped: bool,
    /// Something that counts names it.
    is_needed: bool,
}

impl Archive {
    /// Reads an archive for a store with this budget, and checks all that can be seen without knowing what its records mean.
    /// Writes nothing.
    ///
    /// # Errors
    /// What cannot be read, what such a store could not hold, and whatever is not exactly as an archive must be.
    pub fn open(path: &Path, budget: u64) -> Result<Self, ArchiveError> {
        // A pipe or a device has no length to hold a declared one against, and may never end.
        if !std::fs::metadata(path).map_err(ArchiveError::Read)?.is_file() {
            return Err(ArchiveError::NotOne);
        }
        let file = File::open(path).map_err(ArchiveError::Read)?;
        let length = file.metadata().map_err(ArchiveError::Read)?.len();
        // Its objects are kept as they are in it, so not even a store that has them all could be as large.
        if length > budget {
            return Err(StoreError::OverBudget { needed: length, budget }.into());
        }
        let again = file.try_clone().map_err(ArchiveError::Read)?;
        let reader = BufReader::with_capacity(256 << 10, again);
        let declared = Declared { bytes: 0, budget };
        let mut input = Input { reader, at: 0, length, hasher: blake3::Hasher::new(), declared };
        let version = input.head()?;
        if version == 0 || version > VERSION {
            return Err(ArchiveError::Newer { found: version });
        }
        let Some(Frame { sound, .. }) = input.record()? else { return Err(input.damaged("it holds nothing")) };
        let manifest = match sound.kind {
            Kind::Timeline => serde_json::from_slice(&sound.raw).ok(),
            _ => None,
        };
        let manifest = manifest.ok_or_else(|| ArchiveError::Refused("it does not say what it is of".into()))?;
        let (records, objects) = (Vec::new(), HashMap::new());
        let digest = blake3::Hash::from_bytes([0; 32]);
        let mut archive = Self { file, manifest, records, objects, count: 0, timeline: 0, digest, end: 0, declared };
        while let Some(frame) = input.record()? {
            archive.take(frame)?;
        }
        archive.end = input.at - END_LENGTH as u64;
        archive.digest = input.hasher.finalize();
        Ok(archive)
    }

    /// Who made it, and of what.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Its records, in order. They are taken out: most have to be changed before they can be kept.
    pub fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    /// How many objects it holds.
    pub fn objects(&self) -> u64 {
        self.objects.len() as u64
    }

    /// Says that a record needs a checkpoint's tree.
    ///
    /// # Errors
    /// Where the archive does not hold it, or it is more than a folder can be.
    pub fn need_tree(&mut self, id: &ObjectId) -> Result<(), ArchiveError> {
        match self.objects.get_mut(id) {
            Some(held) if held.kind == Kind::Tree => {
                held.is_needed = true;
                if held.paths > MOST_PATHS {
                    return Err(refused("a checkpoint holds more than a folder can"));
                }
                self.declared.within(held.size)
            }
            _ => Err(refused("the tree of a checkpoint is not in it")),
        }
    }

    /// Says that a record needs a blob, of this many bytes where that is known.
    ///
    /// # Errors
    /// Where the archive does not hold it, or it has another length.
    pub fn need_blob(&mut self, id: &ObjectId, size: Option<u64>) -> Result<(), ArchiveError> {
        match self.objects.get_mut(id) {
            Some(held) if matches!(held.kind, Kind::Blob | Kind::Chunks) => {
                held.is_needed = true;
                let fits = size.is_none_or(|size| size == held.size);
                if fits { Ok(()) } else { Err(refused("a blob has another length than is said")) }
            }
            _ => Err(refused("a blob that a record names is not in it")),
        }
    }

    /// The bytes of a small blob.
    ///
    /// # Errors
    /// Where there is no such blob, it is kept in chunks, or it is no longer as it was when it was checked.
    pub fn blob(&self, id: &ObjectId) -> Result<Vec<u8>, ArchiveError> {
        let held = self.objects.get(id).filter(|held| held.kind == Kind::Blob);
        let held = held.ok_or_else(|| refused("a small blob that a record names is not in it"))?;
        Ok(read_again(&self.file, id, held)?.raw)
    }

    /// Makes sure that everything in it is needed: what nobody can reach only fills the disk.
    ///
    /// # Errors
    /// Where anything is not.
    pub fn nothing_is_left_over(&self) -> Result<(), ArchiveError> {
        match self.objects.values().all(|held| held.is_needed) {
            true => Ok(()),
            false => Err(refused("it holds an object that nothing needs")),
        }
    }

    fn take(&mut self, frame: Frame) -> Result<(), ArchiveError> {
        let Frame { sound, at, length } = frame;
        let damaged = |why| ArchiveError::Damaged { at, why };
        if sound.kind == Kind::Timeline {
            self.timeline += sound.raw.len() as u64;
            if self.timeline > MOST_TIMELINE {
                return Err(refused("its records are more than a session has"));
            }
            let numbered: Numbered = serde_json::from_slice(&sound.raw)
                .map_err(|error| ArchiveError::Refused(format!("a record in it is not valid: {error}")))?;
            self.count += 1;
            if numbered.seq != self.count {
                return Err(damaged("a record is out of order"));
            }
            self.records.push(numbered.record);
            return Ok(());
        }
        if self.count > 0 {
            return Err(damaged("an object is out of order"));
        }
        if self.objects.len() >= MOST_OBJECTS {
            return Err(refused("it holds too many objects"));
        }
        let size = sound.raw.len() as u64;
        let plain =
            Held { kind: sound.kind, at, length, size, paths: 0, depth: 0, holds_skipped: false, is_needed: false };
        let held = match sound.kind {
            Kind::Tree => self.tree(&sound.raw, plain)?,
            Kind::Chunks => Held { size: self.chunks(&sound)?, ..plain },
            Kind::Blob | Kind::Timeline => plain,
            Kind::Commit => return Err(refused("it holds a record that belongs to a pack")),
        };
        match self.objects.entry(sound.id) {
            hash_map::Entry::Occupied(_) => Err(damaged("an object comes twice")),
            hash_map::Entry::Vacant(place) => {
                place.insert(held);
                Ok(())
            }
        }
    }

    /// What a tree holds, all of which must have come before it.
    fn tree(&mut self, encoded: &[u8], plain: Held) -> Result<Held, ArchiveError> {
        let tree = Tree::decode(encoded)
            .map_err(|error| ArchiveError::Refused(format!("a tree in it is not valid: {error}")))?;
        let mut all = Held { size: 0, depth: 1, holds_skipped: tree.holds_skipped(), ..plain };
        for (name, entry) in tree.entries() {
            all.paths = all.paths.saturating_add(1);
            match entry {
                Entry::File { mode, size, blob } => {
                    if mode & SET_ID != 0 {
                        let name = String::from_utf8_lossy(name.as_bytes()).into_owned();
                        let what = format!("the file {name:?} would run as whoever lays it out (mode {mode:o})");
                        return Err(ArchiveError::Refused(what));
                    }
                    self.need_blob(blob, Some(*size))?;
                    all.size = all.size.saturating_add(*size);
                }
                Entry::Symlink { target } => {
                    if target.is_empty() || target.len() >= LONGEST_TARGET || target.contains(&0) {
                        return Err(refused("a link leads where no link can"));
                    }
                }
                Entry::Folder { tree, holds_skipped, .. } => {
                    let found = self.objects.get_mut(tree).filter(|held| held.kind == Kind::Tree);
                    let found = found.ok_or_else(|| refused("a folder of a tree is not in it"))?;
                    if found.holds_skipped != *holds_skipped {
                        return Err(refused("a folder is said to be captured whole and is not"));
                    }
                    found.is_needed = true;
                    all.depth = all.depth.max(found.depth + 1);
                    all.paths = all.paths.saturating_add(found.paths);
                    all.size = all.size.saturating_add(found.size);
                }
                Entry::Skipped { .. } => {}
            }
        }
        if all.depth > DEEPEST {
            return Err(refused("its folders lie deeper than any path goes"));
        }
        Ok(all)
    }

    /// The length of a large file, whose chunks must have come before its list. Their hash must be the file's id.
    fn chunks(&mut self, sound: &Sound) -> Result<u64, ArchiveError> {
        let (list, rest) = sound.raw.as_chunks::<36>();
        if !rest.is_empty() || list.is_empty() {
            return Err(refused("a list of chunks is not valid"));
        }
        // A few bytes can name the same chunk again and again.
        let lengths =
            list.iter().map(|entry| u64::from(u32::from_le_bytes([entry[32], entry[33], entry[34], entry[35]])));
        self.declared.add(lengths.sum())?;
        let (mut whole, mut size) = (blake3::Hasher::new(), 0);
        for entry in list {
            let (id, length) = entry.split_at(32);
            let id = ObjectId(id.try_into().unwrap_or_default());
            let length = u32::from_le_bytes(length.try_into().unwrap_or_default());
            let held = self.objects.get_mut(&id).filter(|held| held.kind == Kind::Blob);
            let held = held.ok_or_else(|| refused("a chunk of a file is not in it"))?;
            if held.size != u64::from(length) || !(1..=CHUNK_MAX).contains(&(length as usize)) {
                return Err(refused("a chunk has another length than is said"));
            }
            held.is_needed = true;
            size += held.size;
            whole.update(&read_again(&self.file, &id, held)?.raw);
        }
        if whole.finalize().as_bytes() != &sound.id.0 {
            return Err(refused("the chunks of a file are not those of it"));
        }
        Ok(size)
    }
}

impl Writer<'_> {
    /// Takes in an archive's objects, those that are here already and can be read left out. Nothing is written unless all of it fits, and
    /// an archive that is another one by now must not be committed: then this fails. Returns how many were new, and
    /// their bytes.
    ///
    /// # Errors
    /// Where there is no room, and where the file has changed since it was checked.
    pub fn take_archive(&mut self, archive: &Archive) -> Result<(u64, u64), ArchiveError> {
        let mut new: Vec<(&ObjectId, &Held)> = Vec::new();
        for (id, held) in &archive.objects {
            if !self.contains_sound(id)? {
                new.push((id, held));
            }
        }
        let bytes: u64 = new.iter().map(|(_, held)| u64::from(held.length)).sum();
        let rows = (new.len() as u64 + 2 * archive.count) * ROW;
        self.make_sure_of(bytes + archive.timeline + rows)?;
        // In order of the file: read once from its beginning to its end.
        new.sort_unstable_by_key(|(_, held)| held.at);
        let mut hasher = blake3::Hasher::new();
        let mut at = 0;
        for (id, held) in &new {
            hash_range(&archive.file, at, held.at, &mut hasher)?;
            let mut record = vec![0; held.length as usize];
            archive.file.read_exact_at(&mut record, held.at).map_err(ArchiveError::Read)?;
            hasher.update(&record);
            self.append(Packed(pack::Packed { kind: held.kind, id: **id, bytes: record }))?;
            at = held.at + u64::from(held.length);
        }
        hash_range(&archive.file, at, archive.end, &mut hasher)?;
        if hasher.finalize() != archive.digest {
            return Err(ArchiveError::Damaged { at: 0, why: "it changed while it was read" });
        }
        Ok((new.len() as u64, bytes))
    }
}

/// A record with its place in the file.
struct Frame {
    sound: Sound,
    at: u64,
    length: u32,
}

/// What is left to read of an archive.
struct Input {
    reader: BufReader<File>,
    at: u64,
    length: u64,
    /// Of all bytes up to here; not of the end, which says it.
    hasher: blake3::Hasher,
    declared: Declared,
}

impl Input {
    fn damaged(&self, why: &'static str) -> ArchiveError {
        ArchiveError::Damaged { at: self.at, why }
    }

    /// Reads so many bytes that the file has. Nothing is made room for before that is known.
    fn fill(&mut self, bytes: &mut Vec<u8>, more: u64) -> Result<(), ArchiveError> {
        if more > self.length.saturating_sub(self.at) {
            return Err(self.damaged("it is cut short"));
        }
        let from = bytes.len();
        bytes.resize(from + more as usize, 0);
        match self.reader.read_exact(&mut bytes[from..]) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                return Err(self.damaged("it is cut short"));
            }
            Err(error) => return Err(ArchiveError::Read(error)),
        }
        self.at += more;
        Ok(())
    }

    /// The version of the format.
    fn head(&mut self) -> Result<u32, ArchiveError> {
        let mut head = Vec::new();
        self.fill(&mut head, HEAD as u64).map_err(|error| match error {
            ArchiveError::Damaged { .. } => ArchiveError::NotOne,
            other => other,
        })?;
        self.hasher.update(&head);
        if head[..8] != *MAGIC || head[12..] != [0; 4] {
            return Err(ArchiveError::NotOne);
        }
        Ok(u32::from_le_bytes([head[8], head[9], head[10], head[11]]))
    }

    /// The next record; none at the end, which must be one.
    fn record(&mut self) -> Result<Option<Frame>, ArchiveError> {
        let at = self.at;
        let mut bytes = Vec::new();
        self.fill(&mut bytes, END.len() as u64)?;
        if bytes == END {
            return self.end().map(|()| None);
        }
        self.fill(&mut bytes, (RECORD_HEAD - END.len()) as u64)?;
        let damaged = |why| ArchiveError::Damaged { at, why };
        let length = pack::record_length(&bytes).ok_or_else(|| damaged("there is no record"))?;
        let raw = u64::from(u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]));
        let payload = length - RECORD_HEAD as u64;
        let limit = if bytes[4] == Kind::Timeline as u8 { LARGEST_RECORD } else { u64::from(LARGEST) };
        // No piton keeps what became longer by packing, so the packed bytes are held to the same limit.
        if raw > limit || payload > raw {
            return Err(damaged("a record says that it is larger than any"));
        }
        let length = u32::try_from(length).map_err(|_| damaged("a record says that it is larger than any"))?;
        self.declared.add(raw)?;
        self.fill(&mut bytes, payload)?;
        self.hasher.update(&bytes);
        let sound = pack::unpack(&bytes).filter(|sound| sound.delta.is_none());
        let sound = sound.ok_or_else(|| damaged("a record is not what it was"))?;
        Ok(Some(Frame { sound, at, length }))
    }

    /// The rest of the end, after its mark.
    fn end(&mut self) -> Result<(), ArchiveError> {
        let mut end = Vec::new();
        self.fill(&mut end, (END_LENGTH - END.len()) as u64)?;
        if end != self.hasher.finalize().as_bytes() {
            return Err(self.damaged("its bytes are not those that were written"));
        }
        if self.at != self.length {
            return Err(self.damaged("it goes on after its end"));
        }
        Ok(())
    }
}

fn refused(what: &str) -> ArchiveError {
    ArchiveError::Refused(what.to_owned())
}

/// An object that was sound when it was passed by.
fn read_again(file: &File, id: &ObjectId, held: &Held) -> Result<Sound, ArchiveError> {
    let mut bytes = vec![0; held.length as usize];
    file.read_exact_at(&mut bytes, held.at).map_err(ArchiveError::Read)?;
    let changed = ArchiveError::Damaged { at: held.at, why: "it changed while it was read" };
    pack::unpack(&bytes)
        .filter(|sound| sound.id == *id && sound.kind == held.kind && sound.delta.is_none())
        .ok_or(changed)
}

fn hash_range(file: &File, from: u64, to: u64, hasher: &mut blake3::Hasher) -> Result<(), ArchiveError> {
    let mut buffer = vec![0; (to - from).min(256 << 10) as usize];
    let mut at = from;
    while at < to {
        let length = buffer.len().min((to - at) as usize);
        file.read_exact_at(&mut buffer[..length], at).map_err(ArchiveError::Read)?;
        hasher.update(&buffer[..length]);
        at += length as u64;
    }
    Ok(())
}
