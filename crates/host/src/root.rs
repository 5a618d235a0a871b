//! An open handle on the workspace's root. Every access to the workspace starts here, so nothing escapes it.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use piton_model::{EntryName, RootIdentity, WorkspacePath};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, openat, statat};
use rustix::io::Errno;

use crate::sys;

/// An open folder whose identity is known.
#[derive(Debug)]
pub struct Root {
    fd: OwnedFd,
    path: PathBuf,
    identity: RootIdentity,
}

/// The identity of the folder at a path, without opening it; `None` if there is no folder.
pub fn identity_at(path: &Path) -> Option<RootIdentity> {
    // If the system cannot tell by path, it can for an open folder.
    sys::identity_at(path).or_else(|| Root::open(path).ok().map(|root| root.identity()))
}

/// A folder beneath the root, held open.
pub(crate) struct Nearby<'r> {
    root: &'r Root,
    /// The handle, and the length of its path.
    open: Option<(OwnedFd, usize)>,
}

impl<'r> Nearby<'r> {
    pub(crate) fn root(&self) -> &'r Root {
        self.root
    }

    /// Like [`Root::peek`], for a path in the folder or the folder itself.
    pub(crate) fn peek(&self, path: &std::ffi::CStr) -> rustix::io::Result<Stat> {
        let Some((fd, length)) = &self.open else { return self.root.peek(path) };
        match path.to_bytes_with_nul().get(length + 1..).and_then(|rest| std::ffi::CStr::from_bytes_with_nul(rest).ok())
        {
            Some(rest) if rest.count_bytes() < LONG_PATH => statat(fd, rest, AtFlags::SYMLINK_NOFOLLOW),
            Some(_) => self.root.peek(path),
            None => rustix::fs::fstat(fd),
        }
    }
}

/// Longer paths, in bytes, are resolved in several steps: the kernel accepts no path over 4096 bytes.
const LONG_PATH: usize = 4000;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Root {
    pub fn open(path: &Path) -> io::Result<Self> {
        let fd = openat(CWD, path, FOLDER, Mode::empty())?;
        let identity = sys::identity(fd.as_fd())?;
        Ok(Self { fd, path: path.to_owned(), identity })
    }

    /// Where it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn identity(&self) -> RootIdentity {
        self.identity
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub fn mode(&self) -> io::Result<u16> {
        Ok((rustix::fs::fstat(&self.fd)?.st_mode & 0o7777) as u16)
    }

    pub fn is_empty(&self) -> io::Result<bool> {
        Ok(std::fs::read_dir(&self.path)?.next().is_none())
    }

    /// Opens a folder beneath the root; a symlink anywhere in the path is an error.
    pub fn folder(&self, path: &WorkspacePath) -> io::Result<OwnedFd> {
        self.open_beneath(path.as_bytes(), FOLDER)
    }

    /// Opens the folder that contains a path; returns it with the path's name in it.
    pub fn parent(&self, path: &WorkspacePath) -> io::Result<(OwnedFd, EntryName)> {
        let (parent, name) = path.split().ok_or(io::ErrorKind::InvalidInput)?;
        Ok((self.folder(&parent)?, name))
    }

    /// Opens anything beneath the root, never through a symlink.
    pub(crate) fn open_beneath(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        open_beneath(self.fd.as_fd(), path, flags)
    }

    /// `stat` of a path, not following its last name. Folders above it may be symlinks by now: good enough to check
    /// whether something changed, never to decide what to write.
    pub(crate) fn peek(&self, path: &std::ffi::CStr) -> rustix::io::Result<Stat> {
        let bytes = path.to_bytes();
        if bytes.is_empty() {
            return rustix::fs::fstat(&self.fd);
        }
        if bytes.len() < LONG_PATH {
            return statat(&self.fd, path, AtFlags::SYMLINK_NOFOLLOW);
        }
        let at = bytes.iter().rposition(|b| *b == b'/').unwrap_or(0);
        let parent = self
            .open_beneath(&bytes[..at], sys::HANDLE | OFlags::DIRECTORY)
            .map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
        let name = CString::new(&bytes[at + 1..]).map_err(|_| Errno::INVAL)?;
        statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// A folder from which to check many paths: each path to resolve is that much shorter.
    pub(crate) fn nearby<'r>(&'r self, folder: &[u8]) -> Nearby<'r> {
        // If the folder no longer exists, resolving from the root reports that for each path.
        let open =
            if folder.is_empty() { None } else { self.open_beneath(folder, sys::HANDLE | OFlags::DIRECTORY).ok() };
        Nearby { root: self, open: open.map(|fd| (fd, folder.len())) }
    }

    /// Whether its filesystem is known to update a folder's times whenever its listing changes.
    pub(crate) fn trusts_folder_times(&self) -> bool {
        sys::moves_folder_times(self.fd.as_fd())
    }
}

/// Opens anything beneath an open folder, never through a symlink. At most two handles are open, however long the path
/// is.
pub(crate) fn open_beneath(folder: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut at: Option<OwnedFd> = None;
    let mut rest = path;
    loop {
        let from = at.as_ref().map_or(folder, |fd| fd.as_fd());
        if rest.is_empty() {
            return Ok(openat(from, c".", flags, Mode::empty())?);
        }
        if rest.len() < LONG_PATH {
            return match sys::open_beneath(from, rest, flags)? {
                Some(fd) => Ok(fd),
                None => open_by_names(from, rest, flags),
            };
        }
        let cut = rest[..LONG_PATH].iter().rposition(|b| *b == b'/').ok_or(Errno::NAMETOOLONG)?;
        let (step, passing) = (&rest[..cut], sys::HANDLE | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW);
        let next = match sys::open_beneath(from, step, passing)? {
            Some(fd) => fd,
            None => open_by_names(from, step, passing)?,
        };
        at = Some(next);
        rest = &rest[cut + 1..];
    }
}

/// The same for systems without such a call: one name at a time, following no symlink.
fn open_by_names(folder: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let mut at: Option<OwnedFd> = None;
    let mut names = path.split(|b| *b == b'/').peekable();
    while let Some(name) = names.next() {
        piton_model::path::check_name(name).map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?;
        let step = if names.peek().is_some() {
            sys::HANDLE | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
        } else {
            flags
        };
        let from = at.as_ref().map_or(folder, |fd| fd.as_fd());
        at = Some(openat(from, name, step, Mode::empty())?);
    }
    at.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}
