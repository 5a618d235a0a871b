//! Creating and removing one entry, with its contents, under one name in an open folder.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use piton_model::{Entry, ObjectId};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fchmod, fchown, fstat, mkdirat, openat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::Content;
use crate::fail::point;
use crate::index::Signature;
use crate::read::Signatures;
use crate::root::open_beneath;
use crate::rules::{join, name_of, parent_of};
use crate::sys;

pub(super) enum MakeError<E> {
    Io(io::Error),
    ReadBack,
    Content(E),
}

impl<E> From<Errno> for MakeError<E> {
    fn from(errno: Errno) -> Self {
        Self::Io(errno.into())
    }
}

impl<E> From<io::Error> for MakeError<E> {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Whether what was created has the wanted permission bits. Some filesystems accept none, or not all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bits {
    Set,
    NotTaken,
}

impl Bits {
    fn and(self, other: Self) -> Self {
        if self == Self::Set { other } else { self }
    }
}

/// Creates an entry with its contents under a new name; a file takes over the owner and attributes of the one it will
/// replace, where permitted.
pub(super) fn make<C: Content>(
    parent: BorrowedFd<'_>,
    name: &[u8],
    entry: &Entry,
    like: Option<&File>,
    content: &C,
) -> Result<Bits, MakeError<C::Error>> {
    let Entry::Folder { mode, tree, .. } = entry else { return make_one(parent, name, entry, like, content) };
    let mut bits = Bits::Set;
    make_folder(parent, name, *mode)?;
    // One folder after the other, each opened anew from the top: few handles are open however deep the tree is.
    let mut waiting = vec![(name.to_vec(), *mode, *tree)];
    let mut made = Vec::new();
    while let Some((path, mode, tree)) = waiting.pop() {
        let folder = open_beneath(parent, &path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let before = waiting.len();
        for (name, entry) in content.tree(&tree).map_err(MakeError::Content)?.entries() {
            match entry {
                Entry::Folder { mode, tree, .. } => {
                    make_folder(folder.as_fd(), name.as_bytes(), *mode)?;
                    waiting.push((join(&path, name.as_bytes()), *mode, *tree));
                }
                entry => bits = bits.and(make_one(folder.as_fd(), name.as_bytes(), entry, None, content)?),
            }
        }
        if waiting.len() == before {
            bits = bits.and(set_bits(&folder, mode)?);
        } else {
            made.push((path, mode));
        }
    }
    // Inner folders first: one that loses its bits may no longer be traversable.
    for (path, mode) in made.into_iter().rev() {
        let folder = open_beneath(parent, &path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        bits = bits.and(set_bits(&folder, mode)?);
    }
    Ok(bits)
}

/// Creates a folder that its owner can fill.
fn make_folder(parent: BorrowedFd<'_>, name: &[u8], mode: u16) -> rustix::io::Result<()> {
    mkdirat(parent, name, Mode::from_raw_mode(u32::from(mode & 0o777 | 0o700)))
}

/// Sets the permission bits, where they are not right from creation.
fn set_bits(made: impl AsFd, mode: u16) -> rustix::io::Result<Bits> {
    let has = |made: BorrowedFd<'_>| Ok::<_, Errno>((fstat(made)?.st_mode & 0o7777) as u16 == mode);
    if has(made.as_fd())? {
        return Ok(Bits::Set);
    }
    // A filesystem that refuses to set bits keeps its own. The content matters more, so this is only reported.
    let is_set = sys::set_open_mode(made.as_fd(), u32::from(mode)).is_ok() && has(made.as_fd())?;
    Ok(if is_set { Bits::Set } else { Bits::NotTaken })
}

fn make_one<C: Content>(
    parent: BorrowedFd<'_>,
    name: &[u8],
    entry: &Entry,
    like: Option<&File>,
    content: &C,
) -> Result<Bits, MakeError<C::Error>> {
    match entry {
        Entry::File { mode, size, blob } => {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            // With its own bits from the start: on some filesystems they cannot be set later.
            let bits = Mode::from_raw_mode(u32::from(mode & 0o777));
            let mut file = File::from(openat(parent, name, flags, bits)?);
            content.write_blob(blob, &mut file).map_err(MakeError::Content)??;
            if let Some(like) = like {
                resemble(&file, like);
            }
            let bits = set_bits(&file, *mode)?;
            point("apply:staged-file")?;
            file.rewind()?;
            let (read, length) = hash(&mut file, *size)?;
            if read != *blob || length != *size {
                return Err(MakeError::ReadBack);
            }
            return Ok(bits);
        }
        Entry::Symlink { target } => symlinkat(&target[..], parent, name)?,
        // Folders are created by the caller, and a plan's `after` never contains anything skipped.
        Entry::Folder { .. } | Entry::Skipped { .. } => {}
    }
    Ok(Bits::Set)
}

fn hash(file: &mut File, size: u64) -> io::Result<(ObjectId, u64)> {
    let mut hasher = blake3::Hasher::new();
    // Most files are small, and zeroing a large buffer takes longer than reading them.
    let mut buffer = vec![0; (size + 1).min(64 << 10) as usize];
    let mut length = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((ObjectId(*hasher.finalize().as_bytes()), length)),
            n => {
                length += n as u64;
                hasher.update(&buffer[..n]);
            }
        }
    }
}

pub(super) fn open_old(parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(parent, name, flags, Mode::empty())?))
}

/// Gives a new file the owner and the extended attributes (including access lists) of another. Best effort: piton does
/// not capture them, and a refusal is not worth failing for.
fn resemble(new: &File, old: &File) {
    let (Ok(mine), Ok(theirs)) = (fstat(new), fstat(old)) else { return };
    if (mine.st_uid, mine.st_gid) != (theirs.st_uid, theirs.st_gid) {
        let user = rustix::fs::Uid::from_raw(theirs.st_uid);
        let group = rustix::fs::Gid::from_raw(theirs.st_gid);
        if fchown(new, Some(user), Some(group)).is_err() {
            let _ = fchown(new, None, Some(group));
        }
    }
    sys::copy_attributes(old, new);
}

#[derive(Debug)]
pub enum Removal {
    /// Nothing is there any more.
    Gone,
    /// The folder that contained it is no longer at its path.
    FolderGone,
    /// Something in it is not as it was read, or was never read: that stays, with the folders around it.
    Unread,
    /// The system refused to remove part of it.
    Refused {
        /// What remains, relative to the name that was to be removed.
        path: Vec<u8>,
        source: io::Error,
    },
}

/// Removes a name with its contents, as far as it still is what was read; everything if `read` is `None`.
///
/// A program that works in a folder continues to do so wherever the folder is moved. So each name is compared just
/// before its removal, in the same pass that lists the folder.
pub(super) fn remove(parent: BorrowedFd<'_>, name: &[u8], read: Option<&Signatures>) -> Removal {
    let mut removing = Removing { parent, name, read, refused: None, is_unread: false };
    match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => removing.folder(),
        Ok(stat) => removing.leaf(parent, name, name, &stat),
        Err(Errno::NOENT) => {}
        Err(errno) => removing.refuse(name, errno),
    }
    match (removing.is_unread, removing.refused) {
        (true, _) => Removal::Unread,
        (false, Some((path, source))) => Removal::Refused { path, source },
        (false, None) => Removal::Gone,
    }
}

/// Removes one name, as far as possible: what must stay does not prevent the rest.
struct Removing<'a> {
    parent: BorrowedFd<'a>,
    name: &'a [u8],
    read: Option<&'a Signatures>,
    /// The first refusal.
    refused: Option<(Vec<u8>, io::Error)>,
    is_unread: bool,
}

impl Removing<'_> {
    fn refuse(&mut self, path: &[u8], error: impl Into<io::Error>) {
        self.refused.get_or_insert((path.to_vec(), error.into()));
    }

    /// The part of a path below the name that is removed.
    fn below<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        path.get(self.name.len() + 1..).unwrap_or_default()
    }

    fn leaf(&mut self, folder: BorrowedFd<'_>, name: &[u8], path: &[u8], stat: &Stat) {
        if self.read.is_some_and(|read| !read.has_leaf(self.below(path), &Signature::of(stat))) {
            self.leave(name, path);
            return;
        }
        match unlinkat(folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => self.refuse(path, errno),
        }
    }

    /// Leaves something that was not read.
    fn leave(&mut self, name: &[u8], path: &[u8]) {
        match is_kept_open(name) {
            true => self.refuse(path, io::Error::new(io::ErrorKind::ResourceBusy, "a program has it open")),
            false => self.is_unread = true,
        }
    }

    fn folder(&mut self) {
        // Each folder is visited twice: to remove its files, and once its own folders are gone.
        let mut waiting = vec![(self.name.to_vec(), false)];
        let mut space = Vec::new();
        let mut above: Option<(Vec<u8>, OwnedFd)> = None;
        while let Some((path, is_emptied)) = waiting.pop() {
            let done = point("apply:remove").and_then(|()| match is_emptied {
                true => self.emptied(&path, &mut above, &mut space),
                false => self.contents(&path, &mut waiting, &mut space),
            });
            match done {
                Err(error) if Errno::from_io_error(&error) == Some(Errno::NOENT) => {}
                Err(error) => self.refuse(&path, error),
                Ok(()) => {}
            }
        }
    }

    /// Removes a folder's files and queues its folders.
    fn contents(&mut self, path: &[u8], waiting: &mut Vec<(Vec<u8>, bool)>, space: &mut Vec<u8>) -> io::Result<()> {
        if self.read.is_some_and(|read| !read.has_folder(self.below(path))) {
            self.is_unread = true;
            return Ok(());
        }
        let folder = open_to_empty(self.parent, path)?;
        waiting.push((path.to_vec(), true));
        let mut names = Vec::new();
        sys::list(&folder, space, |name, kind| names.push((name.to_bytes().to_vec(), kind)))?;
        for (name, kind) in names {
            let below = join(path, &name);
            if kind == FileType::Directory {
                waiting.push((below, false));
                continue;
            }
            match statat(&folder, &name[..], AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                    waiting.push((below, false));
                }
                Ok(stat) => self.leaf(folder.as_fd(), &name, &below, &stat),
                Err(Errno::NOENT) => {}
                Err(errno) => self.refuse(&below, errno),
            }
        }
        Ok(())
    }

    /// Removes a folder that should be empty by now.
    fn emptied(&mut self, path: &[u8], above: &mut Option<(Vec<u8>, OwnedFd)>, space: &mut Vec<u8>) -> io::Result<()> {
        let up = parent_of(path);
        // Neighbours share the folder above them.
        if above.as_ref().is_none_or(|(path, _)| path != up) {
            *above = Some((up.to_vec(), open_beneath(self.parent, up, sys::HANDLE | OFlags::DIRECTORY)?));
        }
        let Some((_, folder)) = above else { return Ok(()) };
        match unlinkat(folder, name_of(path), AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            result => return Ok(result?),
        }
        // What could not be removed is recorded already. Anything else appeared after the listing.
        let folder = open_to_empty(self.parent, path)?;
        for (name, kind) in names_in(folder.as_fd(), space)? {
            let below = join(path, &name);
            let is_read = |read: &Signatures| match statat(&folder, &name[..], AtFlags::SYMLINK_NOFOLLOW) {
                Ok(_) if kind == FileType::Directory => read.has_folder(self.below(&below)),
                Ok(stat) => read.has_leaf(self.below(&below), &Signature::of(&stat)),
                Err(_) => true,
            };
            if self.read.is_some_and(|read| !is_read(read)) {
                self.leave(&name, &below);
            }
        }
        if !self.is_unread {
            self.refuse(path, Errno::NOTEMPTY);
        }
        Ok(())
    }
}

/// Names that network and user-space filesystems give to files that are removed while a program has them open. They
/// disappear when the program closes them.
pub fn is_kept_open(name: &[u8]) -> bool {
    name.starts_with(b".fuse_hidden") || name.starts_with(b".nfs")
}

/// Opens a folder that is about to be removed, so its bits no longer matter.
fn open_to_empty(parent: BorrowedFd<'_>, path: &[u8]) -> io::Result<OwnedFd> {
    match open_beneath(parent, path, OFlags::RDONLY | OFlags::DIRECTORY) {
        Ok(folder) => {
            if fstat(&folder)?.st_mode & 0o700 != 0o700 {
                let _ = fchmod(&folder, Mode::RWXU);
            }
            Ok(folder)
        }
        Err(error) if Errno::from_io_error(&error) == Some(Errno::ACCESS) => {
            let handle = open_beneath(parent, path, sys::HANDLE | OFlags::DIRECTORY)?;
            let _ = sys::set_mode(handle.as_fd(), 0o700);
            open_beneath(parent, path, OFlags::RDONLY | OFlags::DIRECTORY)
        }
        Err(error) => Err(error),
    }
}

/// Gives a name and its contents the bits that let its owner read them. Other users' files stay as they are.
pub(super) fn make_readable(parent: BorrowedFd<'_>, name: &[u8]) {
    let user = sys::file_user();
    let mut waiting = vec![name.to_vec()];
    let mut space = Vec::new();
    while let Some(path) = waiting.pop() {
        let Ok(handle) = open_beneath(parent, &path, sys::HANDLE) else { continue };
        let Ok(stat) = fstat(&handle) else { continue };
        let (is_folder, needed) = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => (true, 0o700),
            FileType::RegularFile => (false, 0o400),
            _ => continue,
        };
        if stat.st_uid == user && stat.st_mode & needed != needed {
            // If that is refused it cannot be read, and stays.
            let _ = sys::set_mode(handle.as_fd(), ((stat.st_mode | needed) & 0o7777) as u16);
        }
        if is_folder && let Ok(folder) = open_beneath(parent, &path, OFlags::RDONLY | OFlags::DIRECTORY) {
            let names = names_in(folder.as_fd(), &mut space).unwrap_or_default();
            waiting.extend(names.into_iter().map(|(name, _)| join(&path, &name)));
        }
    }
}

/// Whether [`remove`] would succeed, judging by the folders: every non-empty one is open or can be opened, none is a
/// mount point, and none has immutable names. Returns the first that would fail, by its path.
pub(super) fn may_remove(parent: BorrowedFd<'_>, name: &[u8]) -> Result<(), (Vec<u8>, io::Error)> {
    match kind_of(parent, name) {
        Ok(FileType::Directory) => {}
        Ok(_) => return Ok(()),
        Err(errno) => return Err((name.to_vec(), errno.into())),
    }
    let user = sys::file_user();
    let mut waiting = vec![name.to_vec()];
    let mut space = Vec::new();
    while let Some(path) = waiting.pop() {
        let names = may_empty(parent, &path, user, &mut space).map_err(|(name, error)| match name {
            Some(name) => (join(&path, &name), error),
            None => (path.clone(), error),
        })?;
        let folders = names.into_iter().filter(|(_, kind)| *kind == FileType::Directory);
        waiting.extend(folders.map(|(name, _)| join(&path, &name)));
    }
    Ok(())
}

/// The names in a folder, if all of them may be removed; else the name that may not, or `None` where it is the folder
/// itself.
type MayGo = Result<Vec<(Vec<u8>, FileType)>, (Option<Vec<u8>>, io::Error)>;

fn may_empty(parent: BorrowedFd<'_>, path: &[u8], user: u32, space: &mut Vec<u8>) -> MayGo {
    let of_folder = |error: io::Error| (None, error);
    let folder = open_beneath(parent, path, OFlags::RDONLY | OFlags::DIRECTORY).map_err(of_folder)?;
    let facts = sys::folder_facts(folder.as_fd()).map_err(|errno| of_folder(errno.into()))?;
    if facts.is_mount {
        return Err(of_folder(Errno::BUSY.into()));
    }
    let names = names_in(folder.as_fd(), space).map_err(of_folder)?;
    if names.is_empty() {
        return Ok(names);
    }
    if facts.is_fixed {
        return Err(of_folder(Errno::PERM.into()));
    }
    // Whoever may set a folder's bits can open it, and these are the bits it has. Anyone else needs access as it is.
    if fchmod(&folder, Mode::from_raw_mode(facts.mode)).is_err() {
        sys::may_change(folder.as_fd()).map_err(|errno| of_folder(errno.into()))?;
        // From another user's sticky folder only one's own names may be removed.
        if facts.mode & 0o1000 != 0 && facts.user != user {
            for (name, _) in &names {
                let owner = statat(&folder, &name[..], AtFlags::SYMLINK_NOFOLLOW).map(|stat| stat.st_uid);
                if owner.is_ok_and(|owner| owner != user) {
                    return Err((Some(name.clone()), Errno::PERM.into()));
                }
            }
        }
    }
    Ok(names)
}

/// The names in an open folder with their kinds, without `.` and `..`.
fn names_in(folder: BorrowedFd<'_>, space: &mut Vec<u8>) -> io::Result<Vec<(Vec<u8>, FileType)>> {
    let mut names = Vec::new();
    sys::list(folder, space, |name, kind| names.push((name.to_bytes().to_vec(), kind)))?;
    // Not every filesystem reports kinds in a listing.
    for (name, kind) in names.iter_mut().filter(|(_, kind)| *kind == FileType::Unknown) {
        *kind = kind_of(folder, name)?;
    }
    Ok(names)
}

fn kind_of(folder: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<FileType> {
    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| FileType::from_raw_mode(stat.st_mode))
}
