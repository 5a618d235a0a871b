//! Moving a name to another that nothing has, and exchanging two names: in one step where the filesystem can, and in
//! several where it cannot (NFS, 9p, many in user space).
//!
//! Never over anything: a file gets its second name by a link, which refuses a name that is taken, and loses its first
//! one then. A crash in between leaves one file with two names, which [`settle`] ends. What cannot be linked (a folder; any
//! file where there are no hard links) is renamed after a look that nothing is at its new name.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, FileType, Stat, renameat, statat, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;

use super::entry::remove;
use crate::fail::point;
use crate::sys;

/// Moves a name to one that nothing has.
///
/// # Errors
/// `EEXIST` where something has it, and what the system refuses.
pub(crate) fn move_to_new<P: Arg + Copy, Q: Arg + Copy>(
    from_folder: impl AsFd,
    from: P,
    to_folder: impl AsFd,
    to: Q,
) -> rustix::io::Result<()> {
    let (from_folder, to_folder) = (from_folder.as_fd(), to_folder.as_fd());
    match sys::rename_to_new(from_folder, from, to_folder, to) {
        Err(errno) if is_unsupported(errno) => {}
        result => return result,
    }
    let first = statat(from_folder, from, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(first.st_mode) != FileType::Directory {
        match sys::link(from_folder, from, to_folder, to) {
            Ok(()) => {
                let unlinked = failpoint("move:linked").and_then(|()| unlinkat(from_folder, from, AtFlags::empty()));
                if unlinked.is_err()
                    && statat(to_folder, to, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|second| is_one_file(&first, &second))
                {
                    // It goes on being where it was.
                    let _ = unlinkat(to_folder, to, AtFlags::empty());
                }
                return unlinked;
            }
            Err(errno) if errno == Errno::PERM || errno == Errno::MLINK || is_unsupported(errno) => {}
            Err(errno) => return Err(errno),
        }
    }
    match statat(to_folder, to, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => renameat(from_folder, from, to_folder, to),
        Ok(_) => Err(Errno::EXIST),
        Err(errno) => Err(errno),
    }
}

/// Exchanges two names of a folder. `aside` is used for an instant where the filesystem cannot do it in one step; where
/// that breaks off, what was at `name` goes back to its place.
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
    let rename = |from: &[u8], to: &[u8]| move_to_new(parent, from, parent, to);
    rename(name, aside)?;
    let put = failpoint("move:aside").and_then(|()| rename(staged, name));
    let result = put.and_then(|()| failpoint("move:put")).and_then(|()| rename(aside, staged));
    if result.is_err() {
        let _ = rename(aside, name);
    }
    result
}

/// Ends what a crash cut off in the middle of a move or an exchange: afterwards it happened whole or not at all.
///
/// # Errors
/// What the system refuses.
pub(super) fn settle(parent: BorrowedFd<'_>, staged: &[u8], name: &[u8], aside: &[u8]) -> io::Result<()> {
    // One file with two names was on its way from one to the other. One name is enough, and never is it the user's that
    // goes. Some filesystems show such names as two files: these are told by their content, like anything else.
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
    let to = match found(parent, name)? {
        None => name,
        Some(_) => {
            // Where the staged name is still taken, what was staged never got to its place, or has a second name there: it
            // is piton's own.
            remove(parent, staged)?;
            staged
        }
    };
    Ok(move_to_new(parent, aside, parent, to)?)
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
