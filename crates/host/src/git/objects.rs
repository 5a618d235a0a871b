//! A repository's objects: loose, packed, and in repositories that it borrows from.
//!
//! Every object is hashed when it is read, so a damaged one is never returned.

use std::cell::{Cell, RefCell};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::files::{self, trim_end};
use super::hash::{Format, Id};
use super::inflate::Inflater;
use super::pack::Pack;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ObjectError {
    /// The repository has no such object; a partial clone fetches some only when they are needed.
    #[error("object {0} is not in the repository")]
    Missing(String),
    /// Its bytes do not match its id, or are not an object.
    #[error("object {0} is damaged")]
    Damaged(String),
    #[error("object {0} is too large")]
    TooLarge(String),
    #[error("object {0} is not a {1}")]
    Kind(String, &'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Commit,
    Tree,
    Blob,
    Tag,
}

impl Kind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
            Self::Tag => "tag",
        }
    }
}

/// Why one source does not have an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Missing,
    Damaged,
    TooLarge,
}

/// The objects of one repository. Opens a pack when the first object is requested that is not loose.
pub struct Objects {
    format: Format,
    /// The repository's own, then those it borrows from.
    folders: Vec<PathBuf>,
    packs: RefCell<Option<Rc<[Pack]>>>,
    inflater: RefCell<Inflater>,
}

/// Largest object that is assembled, in bytes, whatever the caller asks for: packs may claim any size.
const LARGEST: u64 = 64 << 20;
/// Folders of objects, including those of borrowed repositories.
const MOST_FOLDERS: usize = 64;
/// How deep repositories borrow from each other, as in git.
const DEEPEST: usize = 5;
/// How often a packed object may be a delta to one outside its pack; git writes no such packs.
const MOST_DETOURS: usize = 8;

impl Objects {
    pub(super) fn open(folder: PathBuf, format: Format) -> Self {
        let mut folders = Vec::new();
        add_folder(&mut folders, folder, 0);
        Self { format, folders, packs: RefCell::default(), inflater: RefCell::default() }
    }

    /// A blob's content of at most `largest` bytes, given its id in hexadecimal.
    pub fn blob(&self, hex: &str, largest: u64) -> Result<Vec<u8>, ObjectError> {
        let id = Id::from_hex(hex.as_bytes(), self.format).ok_or_else(|| ObjectError::Missing(hex.into()))?;
        self.get(id, Kind::Blob, largest)
    }

    pub(super) fn get(&self, id: Id, wanted: Kind, largest: u64) -> Result<Vec<u8>, ObjectError> {
        match self.find(id, largest.min(LARGEST), MOST_DETOURS) {
            Ok((kind, content)) if kind == wanted => Ok(content),
            Ok(_) => Err(ObjectError::Kind(id.to_hex(), wanted.as_str())),
            Err(Failure::Missing) => Err(ObjectError::Missing(id.to_hex())),
            Err(Failure::Damaged) => Err(ObjectError::Damaged(id.to_hex())),
            Err(Failure::TooLarge) => Err(ObjectError::TooLarge(id.to_hex())),
        }
    }

    /// Searches everywhere until the object is found. `detours`: how many more objects may be looked up for it.
    fn find(&self, id: Id, largest: u64, detours: usize) -> Result<(Kind, Vec<u8>), Failure> {
        let failure = Cell::new(Failure::Missing);
        let keep = |found: Result<(Kind, Vec<u8>), Failure>| match found {
            Ok(object) if self.format.id_of(object.0.as_str(), &object.1) == id => Some(object),
            Ok(_) => {
                failure.set(Failure::Damaged);
                None
            }
            Err(Failure::Missing) => None,
            Err(other) => {
                failure.set(other);
                None
            }
        };
        for folder in &self.folders {
            if let Some(object) = keep(self.loose(folder, id, largest)) {
                return Ok(object);
            }
        }
        let known = self.packs.borrow().clone();
        let is_fresh = known.is_none();
        let packs = known.unwrap_or_else(|| self.list_packs());
        if let Some(object) = packs.iter().find_map(|pack| keep(self.packed(pack, id, largest, detours))) {
            return Ok(object);
        }
        // Git may have packed loose objects since the packs were listed.
        if !is_fresh && failure.get() == Failure::Missing {
            let packs = self.list_packs();
            if let Some(object) = packs.iter().find_map(|pack| keep(self.packed(pack, id, largest, detours))) {
                return Ok(object);
            }
        }
        Err(failure.get())
    }

    fn list_packs(&self) -> Rc<[Pack]> {
        let packs: Rc<[Pack]> = self.folders.iter().flat_map(|folder| Pack::list(folder, self.format)).collect();
        *self.packs.borrow_mut() = Some(packs.clone());
        packs
    }

    fn packed(&self, pack: &Pack, id: Id, largest: u64, detours: usize) -> Result<(Kind, Vec<u8>), Failure> {
        let offset = pack.find(id)?;
        pack.read(offset, largest, LARGEST, &self.inflater, &|base| match detours {
            0 => Err(Failure::Damaged),
            _ => self.find(base, LARGEST, detours - 1),
        })
    }

    /// An object in its own file: zlib of `blob 12`, a NUL byte and the content.
    fn loose(&self, folder: &Path, id: Id, largest: u64) -> Result<(Kind, Vec<u8>), Failure> {
        let hex = id.to_hex();
        let (first, rest) = hex.split_at(2);
        let opened = files::open(&folder.join(first).join(rest));
        let (mut file, _) = opened.map_err(|_| Failure::Damaged)?.ok_or(Failure::Missing)?;
        /// Longest header.
        const HEADER: usize = 32;
        let mut inflater = self.inflater.borrow_mut();
        inflater.begin();
        let mut source = |buffer: &mut [u8]| file.read(buffer);
        let mut start = [0; HEADER];
        let (filled, _) = inflater.fill(&mut source, &mut start).ok_or(Failure::Damaged)?;
        let nul = start[..filled].iter().position(|b| *b == 0).ok_or(Failure::Damaged)?;
        let header = std::str::from_utf8(&start[..nul]).map_err(|_| Failure::Damaged)?;
        let (kind, size) = header.split_once(' ').ok_or(Failure::Damaged)?;
        let kind = match kind {
            "commit" => Kind::Commit,
            "tree" => Kind::Tree,
            "blob" => Kind::Blob,
            "tag" => Kind::Tag,
            _ => return Err(Failure::Damaged),
        };
        let size: u64 = size.parse().map_err(|_| Failure::Damaged)?;
        if size > largest {
            return Err(Failure::TooLarge);
        }
        let mut content = vec![0; size as usize];
        let early = (filled - nul - 1).min(content.len());
        content[..early].copy_from_slice(&start[nul + 1..nul + 1 + early]);
        if early < content.len() {
            let (filled, _) = inflater.fill(&mut source, &mut content[early..]).ok_or(Failure::Damaged)?;
            if early + filled < content.len() {
                return Err(Failure::Damaged);
            }
        }
        Ok((kind, content))
    }
}

/// Adds a folder of objects and those it borrows from.
fn add_folder(folders: &mut Vec<PathBuf>, folder: PathBuf, depth: usize) {
    if depth > DEEPEST || folders.len() >= MOST_FOLDERS || folders.contains(&folder) {
        return;
    }
    let list = files::read(&folder.join("info/alternates"), 1 << 20).ok().flatten();
    folders.push(folder.clone());
    let Some((list, _)) = list else { return };
    for line in list.split(|b| *b == b'\n') {
        let line = trim_end(line);
        if !line.is_empty() && line[0] != b'#' {
            add_folder(folders, folder.join(OsStr::from_bytes(&unquoted(line))), depth + 1);
        }
    }
}

/// Undoes git's quoting of a path.
fn unquoted(line: &[u8]) -> Vec<u8> {
    let Some(inner) = line.strip_prefix(b"\"").and_then(|l| l.strip_suffix(b"\"")) else { return line.to_vec() };
    let mut out = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter();
    while let Some(byte) = bytes.next() {
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        match bytes.next() {
            Some(b'n') => out.push(b'\n'),
            Some(b't') => out.push(b'\t'),
            Some(first @ b'0'..=b'3') => {
                let mut digit = || bytes.next().map_or(0, |b| b.wrapping_sub(b'0') & 7);
                let (second, third) = (digit(), digit());
                out.push((first - b'0') << 6 | second << 3 | third);
            }
            Some(other) => out.push(*other),
            None => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_path_is_read_as_git_wrote_it() {
        assert_eq!(unquoted(b"/a b"), b"/a b");
        assert_eq!(unquoted(br#""/a\tb\"\\\303\244""#), "/a\tb\"\\ä".as_bytes());
        for odd in [&b"\"\\\""[..], b"\"", b"\"\\3\"", b"\"\\39x\""] {
            unquoted(odd);
        }
    }
}
