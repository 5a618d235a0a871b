//! One entry under one name in an open folder: making it, with all that it holds, and removing it.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use piton_model::{Entry, ObjectId};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, fchmod, fchown, fstat, mkdirat, openat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::{Content, STAGED};
use crate::fail::point;
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

/// Makes an entry under a new name, with all that it holds; a file takes owner and attributes of the one it will
/// replace, where permitted.
pub(super) fn make<C: Content>(
    parent: BorrowedFd<'_>,
    name: &[u8],
    entry: &Entry,
    like: Option<&File>,
    content: &C,
) -> Result<(), MakeError<C::Error>> {
    let Entry::Folder { mode, tree, .. } = entry else { return make_one(parent, name, entry, like, content) };
    mkdirat(parent, name, Mode::RWXU)?;
    // One folder after the other, each opened anew from the top: however deep the tree is, few handles are open.
    let mut waiting = vec![(name.to_vec(), *mode, *tree)];
    let mut made = Vec::new();
    while let Some((path, mode, tree)) = waiting.pop() {
        let folder = open_beneath(parent, &path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let before = waiting.len();
        for (name, entry) in content.tree(&tree).map_err(MakeError::Content)?.entries() {
            match entry {
                Entry::Folder { mode, tree, .. } => {
                    mkdirat(&folder, name.as_bytes(), Mode::RWXU)?;
                    waiting.push((join(&path, name.as_bytes()), *mode, *tree));
                }
                entry => make_one(folder.as_fd(), name.as_bytes(), entry, None, content)?,
            }
        }
        if waiting.len() == before {
            fchmod(&folder, Mode::from_raw_mode(u32::from(mode)))?;
        } else {
            made.push((path, mode));
        }
    }
    // Inner folders first: one that loses its bits may not be passed through any more.
    for (path, mode) in made.into_iter().rev() {
        let folder = open_beneath(parent, &path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        fchmod(&folder, Mode::from_raw_mode(u32::from(mode)))?;
    }
    Ok(())
}

/// Makes a file or a symlink under a new name.
fn make_one<C: Content>(
    parent: BorrowedFd<'_>,
    name: &[u8],
    entry: &Entry,
    like: Option<&File>,
    content: &C,
) -> Result<(), MakeError<C::Error>> {
    match entry {
        Entry::File { mode, size, blob } => {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file = File::from(openat(parent, name, flags, Mode::RUSR | Mode::WUSR)?);
            content.write_blob(blob, &mut file).map_err(MakeError::Content)??;
            if let Some(like) = like {
                resemble(&file, like);
            }
            fchmod(&file, Mode::from_raw_mode(u32::from(*mode)))?;
            point("apply:staged-file")?;
            file.rewind()?;
            let (read, length) = hash(&mut file, *size)?;
            if read != *blob || length != *size {
                return Err(MakeError::ReadBack);
            }
        }
        Entry::Symlink { target } => symlinkat(&target[..], parent, name)?,
        // Folders are made by the caller, and a plan's `after` never has anything skipped.
        Entry::Folder { .. } | Entry::Skipped { .. } => {}
    }
    Ok(())
}

fn hash(file: &mut File, size: u64) -> io::Result<(ObjectId, u64)> {
    let mut hasher = blake3::Hasher::new();
    // Most files are small, and clearing the space takes longer than reading them.
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

/// Gives a new file the owner and the extended attributes (access lists among them) of another. Best effort: piton
/// does not capture them, and what may not be set is not worth failing for.
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

/// Removes a name and all that it holds; nothing where nothing is.
pub(super) fn remove(parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    match kind_of(parent, name) {
        Ok(FileType::Directory) => {}
        Ok(_) => return Ok(unlinkat(parent, name, AtFlags::empty())?),
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(errno.into()),
    }
    // Each folder comes twice: to be emptied of files, and once its own folders are gone.
    let mut waiting = vec![(name.to_vec(), false)];
    let mut space = Vec::new();
    let mut above: Option<(Vec<u8>, OwnedFd)> = None;
    while let Some((path, is_emptied)) = waiting.pop() {
        if is_emptied {
            let up = parent_of(&path);
            // Neighbours share the folder above them.
            if above.as_ref().is_none_or(|(path, _)| path != up) {
                above = Some((up.to_vec(), open_beneath(parent, up, sys::HANDLE | OFlags::DIRECTORY)?));
            }
            let Some((_, folder)) = &above else { continue };
            unlinkat(folder, name_of(&path), AtFlags::REMOVEDIR)?;
            continue;
        }
        let folder = open_to_empty(parent, &path)?;
        waiting.push((path.clone(), true));
        for (name, kind) in names_in(folder.as_fd(), &mut space)? {
            match kind {
                FileType::Directory => waiting.push((join(&path, &name), false)),
                _ => unlinkat(&folder, &name[..], AtFlags::empty())?,
            }
        }
    }
    Ok(())
}

/// Opens a folder that is on its way out, so that its bits do not matter any more.
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

/// Whether [`remove`] would get to its end: every folder with something in it can be opened or is open, and none is a
/// mount point.
pub(super) fn may_remove(parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    if kind_of(parent, name)? != FileType::Directory {
        return Ok(());
    }
    let mut waiting = vec![name.to_vec()];
    let mut space = Vec::new();
    while let Some(path) = waiting.pop() {
        let folder = open_beneath(parent, &path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let (mode, is_mount) = sys::mode_and_mount(folder.as_fd())?;
        if is_mount {
            return Err(Errno::BUSY.into());
        }
        let names = names_in(folder.as_fd(), &mut space)?;
        // Whoever may set a folder's bits can open it, and these are the bits it has. Anybody else must be let in as it
        // is, and only the kernel knows whether they are.
        if !names.is_empty() && fchmod(&folder, Mode::from_raw_mode(mode)).is_err() {
            let probe = format!("{STAGED}probe");
            mkdirat(&folder, &probe[..], Mode::RWXU)?;
            unlinkat(&folder, &probe[..], AtFlags::REMOVEDIR)?;
        }
        let folders = names.into_iter().filter(|(_, kind)| *kind == FileType::Directory);
        waiting.extend(folders.map(|(name, _)| join(&path, &name)));
    }
    Ok(())
}

/// The names in an open folder, `.` and `..` left out, with their kinds.
fn names_in(folder: BorrowedFd<'_>, space: &mut Vec<u8>) -> io::Result<Vec<(Vec<u8>, FileType)>> {
    let mut names = Vec::new();
    sys::list(folder, space, |name, kind| names.push((name.to_bytes().to_vec(), kind)))?;
    // Not every filesystem tells kinds in a listing.
    for (name, kind) in names.iter_mut().filter(|(_, kind)| *kind == FileType::Unknown) {
        *kind = kind_of(folder, name)?;
    }
    Ok(names)
}

fn kind_of(folder: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<FileType> {
    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| FileType::from_raw_mode(stat.st_mode))
}
