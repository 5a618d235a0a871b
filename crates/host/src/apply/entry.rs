//! One entry under one name in an open folder: making it, with all that it holds, and removing it.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd};

use piton_model::{Entry, ObjectId};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, fchmod, fchown, fstat, mkdirat, openat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::{Content, STAGED};
use crate::fail::point;
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

/// Makes an entry under a new name; a file takes owner and attributes of the one it will replace, where permitted.
pub(super) fn make<C: Content>(
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
        Entry::Folder { mode, tree, .. } => {
            mkdirat(parent, name, Mode::RWXU)?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let folder = openat(parent, name, flags, Mode::empty())?;
            for (name, entry) in content.tree(tree).map_err(MakeError::Content)?.entries() {
                make(folder.as_fd(), name.as_bytes(), entry, None, content)?;
            }
            fchmod(&folder, Mode::from_raw_mode(u32::from(*mode)))?;
        }
        // A plan's `after` never has one.
        Entry::Skipped { .. } => {}
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
    match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {}
        Ok(_) => return Ok(unlinkat(parent, name, AtFlags::empty())?),
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(errno.into()),
    }
    let open =
        |flags| openat(parent, name, flags | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
    let path = open(sys::HANDLE)?;
    // It is on its way out, so its bits do not matter any more.
    let _ = sys::set_mode(path.as_fd(), 0o700);
    let folder = open(OFlags::RDONLY)?;
    for name in names_in(folder.as_fd())? {
        remove(folder.as_fd(), &name)?;
    }
    Ok(unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

/// Whether [`remove`] would get to its end: every folder with something in it can be opened or is open, and none is a
/// mount point.
pub(super) fn may_remove(parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    let (mode, is_mount) = sys::mode_and_mount(parent, name)?;
    if FileType::from_raw_mode(mode) != FileType::Directory {
        return Ok(());
    }
    if is_mount {
        return Err(Errno::BUSY.into());
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(parent, name, flags, Mode::empty())?;
    let names = names_in(folder.as_fd())?;
    // Whoever may set a folder's bits can open it, and these are the bits it has. Anybody else must be let in as it
    // is, and only the kernel knows whether they are.
    if !names.is_empty() && fchmod(&folder, Mode::from_raw_mode(mode)).is_err() {
        let probe = format!("{STAGED}probe");
        mkdirat(&folder, &probe[..], Mode::RWXU)?;
        unlinkat(&folder, &probe[..], AtFlags::REMOVEDIR)?;
    }
    names.iter().try_for_each(|name| may_remove(folder.as_fd(), name))
}

/// The names in an open folder, `.` and `..` left out.
fn names_in(folder: BorrowedFd<'_>) -> io::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    sys::list(folder, &mut Vec::new(), |name, _| names.push(name.to_bytes().to_vec()))?;
    Ok(names)
}
