//! Moving a name to a free one, and exchanging two names: in one step where the filesystem can, and in several where it
//! cannot (NFS, 9p, many user-space filesystems).
//!
//! Nothing is ever overwritten or pulled out from under anyone:
//! - A file gets the user's name through a hard link, which fails if the name is taken, and then loses piton's own
//!   name. A crash in between leaves one file with two names, which [`settle`] resolves. What cannot be linked (a folder;
//!   any file where hard links do not exist or are refused) is renamed after checking that the name is free.
//! - To a name of piton's own, which nobody else uses, everything is renamed after such a check: that takes whatever is
//!   at the user's name in that very moment, and nothing that is saved there a moment later.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, FileType, Stat, renameat, statat, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;

use super::entry::{Removal, remove};
use crate::fail::point;
use crate::sys;

/// Moves a name of piton's own to a free name of the user's.
///
/// # Errors
/// `EEXIST` if the name is taken, and whatever the system refuses.
pub(super) fn move_in(folder: BorrowedFd<'_>, own: &[u8], name: &[u8]) -> rustix::io::Result<()> {
    match sys::rename_to_new(folder, own, folder, name) {
        Err(errno) if is_unsupported(errno) => {}
        result => return result,
    }
    let first = statat(folder, own, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(first.st_mode) == FileType::Directory {
        return rename_after_a_look(folder, own, folder, name);
    }
    match sys::link(folder, own, folder, name) {
        Ok(()) => {}
        Err(Errno::EXIST) => return Err(Errno::EXIST),
        // Whatever else prevents a second name (no hard links here; a policy; a quirk of the network) need not prevent
        // moving the only one. The user's file may be away already, and this is its way back, too.
        Err(_) => return rename_after_a_look(folder, own, folder, name),
    }
    let unlinked = failpoint("move:linked").and_then(|()| unlinkat(folder, own, AtFlags::empty()));
    if unlinked.is_err() && found(folder, name)?.is_some_and(|second| is_one_file(&first, &second)) {
        // It stays where it was.
        let _ = unlinkat(folder, name, AtFlags::empty());
    }
    unlinked
}

/// Moves a name to a free one of piton's own.
///
/// # Errors
/// `EEXIST` if the name is taken, and whatever the system refuses.
pub(crate) fn move_out<P: Arg + Copy, Q: Arg + Copy>(
    from_folder: impl AsFd,
    from: P,
    own_folder: impl AsFd,
    own: Q,
) -> rustix::io::Result<()> {
    match sys::rename_to_new(&from_folder, from, &own_folder, own) {
        Err(errno) if is_unsupported(errno) => rename_after_a_look(from_folder, from, own_folder, own),
        result => result,
    }
}

fn rename_after_a_look<P: Arg, Q: Arg + Copy>(
    from_folder: impl AsFd,
    from: P,
    to_folder: impl AsFd,
    to: Q,
) -> rustix::io::Result<()> {
    match statat(&to_folder, to, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => {}
        Ok(_) => return Err(Errno::EXIST),
        Err(errno) => return Err(errno),
    }
    failpoint("move:looked")?;
    renameat(from_folder, from, to_folder, to)
}

/// Exchanges two names of a folder. `aside` is used for an instant where the filesystem cannot do it in one step; if
/// that fails midway, what was at `name` is put back.
pub(super) fn exchange(parent: BorrowedFd<'_>, staged: &[u8], name: &[u8], aside: &[u8]) -> rustix::io::Result<()> {
    match sys::exchange(parent, staged, name) {
        Err(errno) if is_unsupported(errno) => exchange_in_three(parent, staged, name, aside),
        result => result,
    }
}

pub(super) fn exchange_in_three(
    parent: BorrowedFd<'_>,
    staged: &[u8],
    name: &[u8],
    aside: &[u8],
) -> rustix::io::Result<()> {
    move_out(parent, name, parent, aside)?;
    let put = failpoint("move:aside").and_then(|()| move_in(parent, staged, name));
    let result = put.and_then(|()| failpoint("move:put")).and_then(|()| move_out(parent, aside, parent, staged));
    if result.is_err() {
        let _ = move_in(parent, aside, name);
    }
    result
}

/// Completes a move or an exchange that a crash interrupted: afterwards it happened whole or not at all.
///
/// # Errors
/// Whatever the system refuses.
pub(super) fn settle(parent: BorrowedFd<'_>, staged: &[u8], name: &[u8], aside: &[u8]) -> io::Result<()> {
    // One file with two names was being moved from one to the other. One name is enough, and the user's is never the
    // one removed. Some filesystems show such names as two files: these are told apart by content, like anything else.
    for (kept, other) in [(name, aside), (name, staged), (staged, aside)] {
        if let (Some(one), Some(two)) = (found(parent, kept)?, found(parent, other)?)
            && is_one_file(&one, &two)
        {
            unlinkat(parent, other, AtFlags::empty())?;
        }
    }
    if found(parent, aside)?.is_none() {
        return Ok(());
    }
    match (found(parent, name)?, found(parent, staged)?) {
        // The staged content has not arrived yet.
        (None, Some(_)) => return Ok(move_in(parent, aside, name)?),
        // It had arrived, and somebody removed it since.
        (None, None) => return Ok(move_out(parent, aside, parent, staged)?),
        (Some(_), _) => {}
    }
    // If the staged name is still taken, the staged content never reached its destination, or has a second name there:
    // it is piton's own.
    match remove(parent, staged, None) {
        Removal::Refused { source, .. } => return Err(source),
        Removal::Gone | Removal::FolderGone | Removal::Unread => {}
    }
    Ok(move_out(parent, aside, parent, staged)?)
}

fn found(parent: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<Option<Stat>> {
    match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn is_one_file(one: &Stat, two: &Stat) -> bool {
    let is_folder = FileType::from_raw_mode(one.st_mode) == FileType::Directory;
    !is_folder && (one.st_dev, one.st_ino) == (two.st_dev, two.st_ino)
}

fn failpoint(name: &'static str) -> rustix::io::Result<()> {
    point(name).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

fn is_unsupported(errno: Errno) -> bool {
    matches!(errno, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}
