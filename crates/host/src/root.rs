//! An open handle on the workspace's root. Every access to the workspace begins here, so nothing escapes it.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use piton_model::{EntryName, RootIdentity, WorkspacePath};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, Stat, StatxFlags, openat, openat2, statat, statx};
use rustix::io::Errno;

/// A folder that is open and whose identity is known.
#[derive(Debug)]
pub struct Root {
    fd: OwnedFd,
    path: PathBuf,
    identity: RootIdentity,
}

/// A folder beneath the root, held open.
pub(crate) struct Nearby<'r> {
    root: &'r Root,
    /// The handle, and how long its path is.
    open: Option<(OwnedFd, usize)>,
}

impl<'r> Nearby<'r> {
    pub(crate) fn root(&self) -> &'r Root {
        self.root
    }

    /// As [`Root::peek`], of a path that lies in the folder or is the folder itself.
    pub(crate) fn peek(&self, path: &std::ffi::CStr) -> rustix::io::Result<Stat> {
        let whole = path.to_bytes_with_nul();
        let Some((fd, length)) = self.open.as_ref().filter(|_| whole.len() < LONG_PATH) else {
            return self.root.peek(path);
        };
        match whole.get(length + 1..).and_then(|rest| std::ffi::CStr::from_bytes_with_nul(rest).ok()) {
            Some(rest) => statat(fd, rest, AtFlags::SYMLINK_NOFOLLOW),
            None => rustix::fs::fstat(fd),
        }
    }
}

/// Longer paths are resolved name by name: the kernel takes no path over 4096 bytes.
const LONG_PATH: usize = 4000;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Root {
    /// Opens the folder at a path.
    pub fn open(path: &Path) -> io::Result<Self> {
        let fd = openat(CWD, path, FOLDER, Mode::empty())?;
        let identity = identity(&fd)?;
        Ok(Self { fd, path: path.to_owned(), identity })
    }

    /// Where it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which folder it is.
    pub fn identity(&self) -> RootIdentity {
        self.identity
    }

    /// The handle.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Its permission bits now.
    pub fn mode(&self) -> io::Result<u16> {
        Ok((rustix::fs::fstat(&self.fd)?.st_mode & 0o7777) as u16)
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> io::Result<bool> {
        Ok(std::fs::read_dir(&self.path)?.next().is_none())
    }

    /// Opens a folder beneath the root; a symlink anywhere in the path is an error.
    pub fn folder(&self, path: &WorkspacePath) -> io::Result<OwnedFd> {
        self.open_beneath(path.as_bytes(), FOLDER)
    }

    /// Opens the folder that holds a path, and the path's name in it.
    pub fn parent(&self, path: &WorkspacePath) -> io::Result<(OwnedFd, EntryName)> {
        let (parent, name) = path.split().ok_or(io::ErrorKind::InvalidInput)?;
        Ok((self.folder(&parent)?, name))
    }

    /// Opens anything beneath the root, never through a symlink.
    pub(crate) fn open_beneath(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        if path.is_empty() {
            return Ok(openat(&self.fd, c".", flags, Mode::empty())?);
        }
        if path.len() < LONG_PATH {
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            match openat2(&self.fd, path, flags, Mode::empty(), resolve) {
                // No such call in this kernel, or a sandbox forbids it.
                Err(Errno::NOSYS | Errno::PERM) => {}
                result => return Ok(result?),
            }
        }
        self.open_by_names(path, flags)
    }

    /// The same for kernels without `openat2` and for very long paths: one name at a time, no symlink followed.
    fn open_by_names(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let mut at: Option<OwnedFd> = None;
        let mut names = path.split(|b| *b == b'/').peekable();
        while let Some(name) = names.next() {
            piton_model::path::check_name(name).map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?;
            let step = if names.peek().is_some() {
                OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
            } else {
                flags
            };
            let from = at.as_ref().map_or(self.fd.as_fd(), |fd| fd.as_fd());
            at = Some(openat(from, name, step, Mode::empty())?);
        }
        at.ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    /// The status of a path, the last name not followed. Folders above it may be symlinks by now: good enough to ask
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
            .open_by_names(&bytes[..at], OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC)
            .map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
        let name = CString::new(&bytes[at + 1..]).map_err(|_| Errno::INVAL)?;
        statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// A place in the tree to ask about many paths from: each way from the root is that much shorter.
    pub(crate) fn nearby<'r>(&'r self, folder: &[u8]) -> Nearby<'r> {
        // Where the folder is not there any more, the way from the root says so for each path.
        let is_near = folder.is_empty() || folder.len() >= LONG_PATH;
        let open = if is_near { None } else { self.open_beneath(folder, OFlags::PATH | OFlags::DIRECTORY).ok() };
        Nearby { root: self, open: open.map(|fd| (fd, folder.len())) }
    }

    /// Whether a filesystem is known to move a folder's times whenever its listing changes.
    pub(crate) fn trusts_folder_times(&self) -> bool {
        /// ext2/3/4, xfs, btrfs, tmpfs, overlayfs, zfs, f2fs, bcachefs.
        const KNOWN: [u64; 8] =
            [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0x2fc1_2fc1, 0xf2f5_2010, 0xca45_1a4e];
        rustix::fs::fstatfs(&self.fd).is_ok_and(|fs| KNOWN.contains(&(fs.f_type as u64)))
    }
}

/// The identity of an open folder.
fn identity(fd: &OwnedFd) -> io::Result<RootIdentity> {
    let wanted = StatxFlags::INO | StatxFlags::BTIME;
    match statx(fd, c"", AtFlags::EMPTY_PATH, wanted) {
        Ok(found) => Ok(RootIdentity {
            device: rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            born: (found.stx_mask & StatxFlags::BTIME.bits() != 0)
                .then(|| found.stx_btime.tv_sec * 1_000_000_000 + i64::from(found.stx_btime.tv_nsec)),
        }),
        Err(_) => {
            let found = rustix::fs::fstat(fd)?;
            Ok(RootIdentity { device: found.st_dev, inode: found.st_ino, born: None })
        }
    }
}
