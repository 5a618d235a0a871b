//! What a workspace's filesystem can do, found out by trying.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, fstat, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use crate::root::Root;
use crate::sys;

/// What a rewind uses where it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Two names can be exchanged in one step.
    pub exchange: bool,
    /// A rename can refuse a name that is taken.
    pub rename_to_new: bool,
    /// A file can have two names.
    pub link: bool,
    /// Permission bits can be set.
    pub set_mode: bool,
}

/// In the workspace's own folder: another one may be on another filesystem.
const FOLDER: &str = ".piton-probe";
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Tries it in a temporary folder. The caller holds the workspace's lock, so that no capture sees it.
///
/// # Errors
/// Whatever the system refuses, such as writing in the workspace at all.
pub fn probe(root: &Root) -> io::Result<Abilities> {
    match mkdirat(root.fd(), FOLDER, Mode::RWXU) {
        // Left by a probe that was killed. If anything else is in it, it is the user's, and stays.
        Err(Errno::EXIST) => {
            clear(root.fd(), &root.open_beneath(FOLDER.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY)?)?;
            mkdirat(root.fd(), FOLDER, Mode::RWXU)?;
        }
        made => made?,
    }
    let folder = root.open_beneath(FOLDER.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY)?;
    let found = try_out(folder.as_fd());
    clear(root.fd(), &folder)?;
    found
}

fn try_out(folder: BorrowedFd<'_>) -> io::Result<Abilities> {
    for name in ["a", "b"] {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?;
    }
    let file = openat(folder, "a", OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let is_set = |mode: u32| {
        sys::set_open_mode(&file, mode).is_ok() && fstat(&file).is_ok_and(|stat| stat.st_mode & 0o7777 == mode)
    };
    let set_mode = is_set(0o640) && is_set(0o600);
    Ok(Abilities {
        set_mode,
        exchange: sys::exchange(folder, b"a", b"b").is_ok(),
        rename_to_new: sys::rename_to_new(folder, "a", folder, "c").is_ok(),
        link: sys::link(folder, "b", folder, "d").is_ok(),
    })
}

fn clear(root: BorrowedFd<'_>, folder: &OwnedFd) -> io::Result<()> {
    for name in NAMES {
        match unlinkat(folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(unlinkat(root, FOLDER, AtFlags::REMOVEDIR)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{Call, refusing};

    #[test]
    fn what_a_filesystem_refuses_is_found_and_nothing_is_left() {
        let scratch = tempfile::tempdir().unwrap();
        let root = Root::open(scratch.path()).unwrap();
        let all = Abilities { exchange: true, rename_to_new: true, link: true, set_mode: true };
        assert_eq!(probe(&root).unwrap(), all);
        let found = refusing(&[Call::Exchange], || probe(&root).unwrap());
        assert_eq!(found, Abilities { exchange: false, ..all });
        let found = refusing(&[Call::RenameToNew, Call::Link], || probe(&root).unwrap());
        assert_eq!(found, Abilities { rename_to_new: false, link: false, ..all });
        assert_eq!(refusing(&[Call::SetMode], || probe(&root).unwrap()), Abilities { set_mode: false, ..all });
        // Left by a probe that was killed.
        std::fs::create_dir(scratch.path().join(FOLDER)).unwrap();
        std::fs::write(scratch.path().join(FOLDER).join("a"), "").unwrap();
        assert_eq!(probe(&root).unwrap(), all);
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
        // The user's own folder.
        std::fs::create_dir(scratch.path().join(FOLDER)).unwrap();
        std::fs::write(scratch.path().join(FOLDER).join("mine"), "").unwrap();
        probe(&root).unwrap_err();
        assert!(scratch.path().join(FOLDER).join("mine").exists());
    }
}
