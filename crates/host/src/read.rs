//! Reading one file, or one path with its contents, and passing the bytes on.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::time::Instant;

use piton_model::tree::TreeEncoder;
use piton_model::{Entry, EntryName, ObjectId, SkipReason, Tree};
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::index::Signature;
use crate::root::Root;
use crate::rules::{name_of, parent_of};
use crate::sys;

/// Where read bytes go: into the store, or only through the hash.
pub trait Sink: Sync {
    type Error: Send;

    /// Files of at least this size, in bytes, are passed to [`Sink::large`].
    fn large_from(&self) -> u64;

    fn small(&self, bytes: &[u8]) -> Result<ObjectId, Self::Error>;

    /// Reads a large file's stream to its end; returns its id and length in bytes.
    fn large(&self, bytes: &mut dyn Read) -> Result<(ObjectId, u64), Self::Error>;

    fn tree(&self, id: ObjectId, encoded: Vec<u8>) -> Result<(), Self::Error>;
}

/// The result of reading a file.
pub(crate) enum Reading {
    /// `settled` is false if it changed during each of three readings.
    Read { blob: ObjectId, signature: Signature, settled: bool },
    /// It exists and may not be read.
    Unreadable,
    /// It no longer exists, or is no longer a file.
    Gone,
    /// The deadline has passed.
    Late,
}

/// How often a file is read that changes while it is read.
const READINGS: usize = 3;

/// Reads a file of the workspace until a reading is undisturbed. `buffer` is the caller's, so that many small files
/// share one.
pub(crate) fn read_file<S: Sink>(
    root: &Root,
    path: &[u8],
    sink: &S,
    buffer: &mut Vec<u8>,
    deadline: Option<Instant>,
) -> Result<Reading, S::Error> {
    let mut file = match open(root, path) {
        Ok(file) => file,
        Err(error) => return Ok(failure(&error)),
    };
    let status = |file: &File| rustix::fs::fstat(file).map_err(io::Error::from);
    for reading in 1.. {
        let before = match status(&file) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => Signature::of(&stat),
            Ok(_) => return Ok(Reading::Gone),
            Err(error) => return Ok(failure(&error)),
        };
        let (blob, length) = match read_once(&mut file, before.size, sink, buffer, deadline)? {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(Reading::Late),
            Err(error) => return Ok(failure(&error)),
        };
        let after = status(&file).map(|s| Signature::of(&s));
        let settled = length == before.size && after.is_ok_and(|after| after == before);
        if settled || reading == READINGS {
            // The recorded size is that of the bytes that were read.
            return Ok(Reading::Read { blob, signature: Signature { size: length, ..before }, settled });
        }
        if let Err(error) = file.rewind() {
            return Ok(failure(&error));
        }
    }
    unreachable!("the loop returns at the last reading")
}

type Once<E> = Result<io::Result<(ObjectId, u64)>, E>;

fn read_once<S: Sink>(
    file: &mut File,
    size: u64,
    sink: &S,
    buffer: &mut Vec<u8>,
    deadline: Option<Instant>,
) -> Once<S::Error> {
    let large_from = sink.large_from();
    if size < large_from {
        buffer.clear();
        buffer.reserve(size as usize + 1);
        // One byte more than a small file has: reaching it means that the file grew into a large one.
        if let Err(error) = file.by_ref().take(large_from).read_to_end(buffer) {
            return Ok(Err(error));
        }
        if (buffer.len() as u64) < large_from {
            return Ok(Ok((sink.small(buffer)?, buffer.len() as u64)));
        }
        if let Err(error) = file.rewind() {
            return Ok(Err(error));
        }
    }
    let mut stream = Watched { file, error: None, deadline };
    let taken = sink.large(&mut stream)?;
    Ok(match stream.error {
        Some(error) => Err(error),
        None => Ok(taken),
    })
}

/// A stream that records its own error and ends there, so that a sink's errors are not mixed up with the file's.
struct Watched<'a> {
    file: &'a mut File,
    error: Option<io::Error>,
    deadline: Option<Instant>,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            self.error = Some(io::ErrorKind::TimedOut.into());
            return Ok(0);
        }
        match self.file.read(buffer) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                self.error = Some(error);
                Ok(0)
            }
            result => result,
        }
    }
}

/// Opens a file without changing its access time where that is allowed, and without waiting for a pipe's other end.
fn open(root: &Root, path: &[u8]) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    match root.open_beneath(path, flags | sys::KEEP_ACCESS_TIME) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::PERM) => {
            root.open_beneath(path, flags).map(File::from)
        }
        result => result.map(File::from),
    }
}

fn failure(error: &io::Error) -> Reading {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ISDIR | Errno::NXIO | Errno::STALE) => Reading::Gone,
        _ => Reading::Unreadable,
    }
}

/// What `stat` said of everything that was read of an entry, to tell without reading it again whether somebody has
/// written to it since.
#[derive(Debug, Default)]
pub struct Signatures {
    /// The entry itself.
    top: Option<Signed>,
    /// Its contents, by relative path.
    below: HashMap<Vec<u8>, Signed>,
}

#[derive(Debug)]
enum Signed {
    Folder,
    /// A file or a symlink.
    Leaf(Signature),
}

impl Signatures {
    /// Whether a folder was read at a path, which is empty for the entry itself.
    pub(crate) fn has_folder(&self, path: &[u8]) -> bool {
        matches!(self.at(path), Some(Signed::Folder))
    }

    /// Whether what is at a path now is the file or the symlink that was read there.
    pub(crate) fn has_leaf(&self, path: &[u8], now: &Signature) -> bool {
        let Some(Signed::Leaf(read)) = self.at(path) else { return false };
        let is_alike = (read.size, read.mtime, read.mode) == (now.size, now.mtime, now.mode);
        // A file whose other name was removed has a new ctime, and some filesystems change inode numbers from time to
        // time; a file that replaced it differs in both.
        is_alike && (read.ctime == now.ctime || read.inode == now.inode)
    }

    /// Drops some names, so that they are not removed.
    pub fn forget(&mut self, is_meant: impl Fn(&[u8]) -> bool) {
        self.below.retain(|path, _| !is_meant(name_of(path)));
    }

    fn at(&self, path: &[u8]) -> Option<&Signed> {
        if path.is_empty() { self.top.as_ref() } else { self.below.get(path) }
    }

    fn note(&mut self, path: &[u8], signed: Signed) {
        match path {
            [] => self.top = Some(signed),
            path => drop(self.below.insert(path.to_vec(), signed)),
        }
    }
}

/// Reads everything at a path, whatever the rules say; `None` if nothing is there.
///
/// For checking what an operation put in or took out. The path may be one that no tree could hold, such as a staged
/// file's. What may not be read is returned as skipped.
pub fn read_entry<S: Sink>(root: &Root, path: &[u8], sink: &S) -> Result<io::Result<Option<Entry>>, S::Error> {
    read_whole(root, path, sink, None)
}

/// Like [`read_entry`], with the signatures of everything that was read completely. What changed while it was read has
/// none.
pub fn read_entry_signed<S: Sink>(
    root: &Root,
    path: &[u8],
    sink: &S,
) -> Result<io::Result<(Option<Entry>, Signatures)>, S::Error> {
    let mut signatures = Signatures::default();
    let read = read_whole(root, path, sink, Some(&mut signatures))?;
    Ok(read.map(|entry| (entry, signatures)))
}

fn read_whole<S: Sink>(
    root: &Root,
    path: &[u8],
    sink: &S,
    mut signatures: Option<&mut Signatures>,
) -> Result<io::Result<Option<Entry>>, S::Error> {
    /// A folder that is being read.
    struct Open {
        /// Its name in the folder above; `None` at the top.
        name: Option<EntryName>,
        path_length: usize,
        mode: u16,
        left: std::vec::IntoIter<(Vec<u8>, FileType)>,
        tree: Tree,
    }
    let mut buffer = Vec::new();
    let mut at = path.to_vec();
    let mut name = None;
    let mut kind = FileType::Unknown;
    // The folders on the way, none of them held open: a tree may be deeper than there are handles, or stack.
    let mut open: Vec<Open> = Vec::new();
    loop {
        let (looked, signed) = match look(root, &at, kind, sink, &mut buffer)? {
            Ok(looked) => looked,
            Err(error) => return Ok(Err(error)),
        };
        if let (Some(signatures), Some(signed)) = (&mut signatures, signed) {
            signatures.note(at.get(path.len() + 1..).unwrap_or_default(), signed);
        }
        let mut found = match looked {
            PathContent::Folder { mode, names } => {
                let left = names.into_iter();
                open.push(Open { name: name.take(), path_length: at.len(), mode, left, tree: Tree::default() });
                None
            }
            PathContent::Entry(entry) => Some((name.take(), entry)),
        };
        // The result goes into the folder above, which may be complete with it.
        loop {
            let Some(folder) = open.last_mut() else { return Ok(Ok(found.and_then(|(_, entry)| entry))) };
            if let Some((Some(name), entry)) = found.take() {
                folder.tree.set(name, entry);
            }
            match folder.left.next().map(|(name, kind)| (EntryName::new(name), kind)) {
                Some((Ok(next), next_kind)) => {
                    at.truncate(folder.path_length);
                    if !at.is_empty() {
                        at.push(b'/');
                    }
                    at.extend_from_slice(next.as_bytes());
                    (name, kind) = (Some(next), next_kind);
                    break;
                }
                // A name that no tree can hold.
                Some((Err(_), _)) => folder.tree.has_git = true,
                None => {
                    let Some(Open { name, mode, tree, .. }) = open.pop() else { continue };
                    let encoded = tree.encode();
                    let id = ObjectId::of_tree(&encoded);
                    sink.tree(id, encoded)?;
                    let entry = Entry::Folder { mode, tree: id, holds_skipped: tree.holds_skipped() };
                    found = Some((name, Some(entry)));
                }
            }
        }
    }
}

enum PathContent {
    Folder {
        mode: u16,
        names: Vec<(Vec<u8>, FileType)>,
    },
    /// Something else, read completely; or nothing.
    Entry(Option<Entry>),
}

type PathReading<E> = Result<io::Result<(PathContent, Option<Signed>)>, E>;

/// `kind` is what a listing says of it, which saves a `stat`; unknown if there is none.
fn look<S: Sink>(root: &Root, path: &[u8], kind: FileType, sink: &S, buffer: &mut Vec<u8>) -> PathReading<S::Error> {
    let entry = |entry: Option<Entry>| Ok(Ok((PathContent::Entry(entry), None)));
    let skipped = |reason| entry(Some(Entry::Skipped { reason }));
    let file = |reading| match reading {
        Reading::Read { blob, signature, settled } => {
            let entry = Entry::File { mode: signature.bits(), size: signature.size, blob };
            Some((Some(entry), settled.then_some(Signed::Leaf(signature))))
        }
        // Without a deadline nothing is late.
        Reading::Unreadable | Reading::Late => Some((Some(Entry::Skipped { reason: SkipReason::Unreadable }), None)),
        Reading::Gone => None,
    };
    if kind == FileType::RegularFile
        && let Some((entry, signed)) = file(read_file(root, path, sink, buffer, None)?)
    {
        return Ok(Ok((PathContent::Entry(entry), signed)));
    }
    let Ok(c_path) = std::ffi::CString::new(path) else { return entry(None) };
    // Only a first look: everything below is opened beneath the root and through no symlink.
    let stat = match root.peek(&c_path) {
        Ok(stat) => stat,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return entry(None),
        Err(error) => return Ok(Err(error.into())),
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            let (entry, signed) = file(read_file(root, path, sink, buffer, None)?).unwrap_or_default();
            Ok(Ok((PathContent::Entry(entry), signed)))
        }
        FileType::Symlink => match read_link(root, path) {
            Ok(target) => {
                let signed = Signed::Leaf(Signature::of(&stat));
                Ok(Ok((PathContent::Entry(Some(Entry::Symlink { target })), Some(signed))))
            }
            Err(error) if absent(&error) => entry(None),
            Err(error) => Ok(Err(error)),
        },
        FileType::Directory => match list(root, path) {
            Ok(names) => {
                Ok(Ok((PathContent::Folder { mode: Signature::of(&stat).bits(), names }, Some(Signed::Folder))))
            }
            Err(error) if Errno::from_io_error(&error) == Some(Errno::ACCESS) => skipped(SkipReason::Unreadable),
            Err(error) if absent(&error) => entry(None),
            Err(error) => Ok(Err(error)),
        },
        _ => skipped(SkipReason::Special),
    }
}

fn read_link(root: &Root, path: &[u8]) -> io::Result<Vec<u8>> {
    let parent = root.open_beneath(parent_of(path), sys::HANDLE | OFlags::DIRECTORY)?;
    Ok(rustix::fs::readlinkat(&parent, name_of(path), Vec::new())?.into_bytes())
}

fn absent(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}

/// The names in a folder with their kinds, if the filesystem reports them; without `.` and `..`.
fn list(root: &Root, path: &[u8]) -> io::Result<Vec<(Vec<u8>, FileType)>> {
    let fd = root.open_beneath(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
    let mut names = Vec::new();
    sys::list(fd, &mut Vec::new(), |name, kind| names.push((name.to_bytes().to_vec(), kind)))?;
    Ok(names)
}

/// The empty tree's encoding, for a missing root.
pub fn empty_tree() -> (ObjectId, Vec<u8>) {
    let encoded = TreeEncoder::new(false).finish();
    (ObjectId::of_tree(&encoded), encoded)
}
