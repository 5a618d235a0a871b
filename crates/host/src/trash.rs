//! Moving a file from an agent's folder into piton's trash, and back: whole, even to another filesystem, and never
//! overwriting anything else.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, Timestamps, fchmod, fstat, futimens, open, statat};
use rustix::io::Errno;

use crate::apply::move_out;
use crate::fail::point;

/// How often a file is copied that somebody writes to in the meantime.
const TRIES: u32 = 5;

/// Moves a plain file to a free name in an existing folder.
///
/// A crash leaves it at its old place, at the new one, or whole at both; moving it again completes that.
///
/// # Errors
/// If it is not a plain file; `AlreadyExists` if other bytes are at the new place; `ResourceBusy` if it must be copied
/// and somebody keeps writing to it, so that it stays where it is; and whatever the system refuses.
pub fn move_file(from: &Path, to: &Path) -> io::Result<()> {
    if !is_plain(from)? {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file"));
    }
    point("trash:move")?;
    match move_out(CWD, from, CWD, to) {
        Ok(()) => {}
        Err(Errno::EXIST) if unlink_where_same(from, to)? => {}
        Err(Errno::XDEV) => move_across(from, to, TRIES)?,
        Err(errno) => return Err(errno.into()),
    }
    sync_folder_of(to)?;
    sync_folder_of(from)?;
    point("trash:moved")
}

/// Whether a plain file is there. A link is not one, wherever it leads.
///
/// # Errors
/// Whatever the system refuses.
pub fn is_plain(path: &Path) -> io::Result<bool> {
    match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Whether anything is there, even a dangling link.
///
/// # Errors
/// Whatever the system refuses.
pub fn exists(path: &Path) -> io::Result<bool> {
    match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Removes a folder of the trash if it is empty.
pub fn remove_if_empty(folder: &Path) {
    let _ = std::fs::remove_dir(folder);
}

/// Moves to another filesystem: the copy is complete and on the disk before the original is removed. Writing to the
/// original while it is copied loses nothing: it is copied again, and after `tries` attempts it stays.
fn move_across(from: &Path, to: &Path, tries: u32) -> io::Result<()> {
    let mut part = to.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    for _ in 0..tries {
        let moved = try_across(from, &part, to);
        if !matches!(moved, Ok(true)) {
            // It is of no use to anyone, and the next try removes it, too.
            let _ = std::fs::remove_file(&part);
        }
        if moved? {
            return Ok(());
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "it is being written to; it was left where it is"))
}

/// One try; false if the original has changed since it was copied: then it stays, and the copy is removed.
fn try_across(from: &Path, part: &Path, to: &Path) -> io::Result<bool> {
    match std::fs::remove_file(part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut source = open_plain(from)?;
    let stat = fstat(&source)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut copy = File::from(open(part, flags, Mode::RUSR | Mode::WUSR)?);
    io::copy(&mut source, &mut copy)?;
    copy.flush()?;
    fchmod(&copy, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
    let time = |seconds, nanoseconds| rustix::fs::Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec as _),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec as _),
    };
    futimens(&copy, &times)?;
    copy.sync_all()?;
    let copied = fstat(&copy)?;
    point("trash:copied")?;
    // Compared while it has a name that nobody looks for: at its destination its owner may write to it at once.
    if !has_same_bytes(from, part)? {
        return Ok(false);
    }
    match move_out(CWD, part, CWD, to) {
        Err(Errno::EXIST) if has_same_bytes(from, to)? => std::fs::remove_file(part)?,
        result => result?,
    }
    sync_folder_of(to)?;
    if unlink_unless_changed(from, &stat)? {
        return Ok(true);
    }
    // Anything other than the copy as written stays, and the next try reports that something is there.
    if is_same_state(&statat(CWD, to, AtFlags::SYMLINK_NOFOLLOW)?, &copied) {
        std::fs::remove_file(to)?;
    }
    Ok(false)
}

/// Removes a file whose bytes also exist elsewhere; false if they differ.
fn unlink_where_same(path: &Path, copy: &Path) -> io::Result<bool> {
    let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
    if !has_same_bytes(path, copy)? {
        return Ok(false);
    }
    sync_folder_of(copy)?;
    unlink_unless_changed(path, &stat)
}

/// Removes a file if it is unchanged; false if it was written to since, or another is in its place. The last check
/// comes right before the removal: a later write can only come through a file that was already open.
fn unlink_unless_changed(path: &Path, was: &Stat) -> io::Result<bool> {
    point("trash:unlink")?;
    let now = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
    if !is_same_state(&now, was) || (now.st_ctime, now.st_ctime_nsec) != (was.st_ctime, was.st_ctime_nsec) {
        return Ok(false);
    }
    std::fs::remove_file(path)?;
    Ok(true)
}

/// Whether it is the same file and nobody wrote to it. A new name alone is no change.
fn is_same_state(one: &Stat, other: &Stat) -> bool {
    let state = |stat: &Stat| (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
    state(one) == state(other)
}

fn has_same_bytes(one: &Path, other: &Path) -> io::Result<bool> {
    if !is_plain(other)? {
        return Ok(false);
    }
    let (one, other) = (open_plain(one)?, open_plain(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (BufReader::new(one).bytes(), BufReader::new(other).bytes());
    loop {
        match (one.next().transpose()?, other.next().transpose()?) {
            (None, None) => return Ok(true),
            (a, b) if a == b => {}
            _ => return Ok(false),
        }
    }
}

fn open_plain(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
    Ok(File::from(open(path.as_os_str().as_bytes(), flags, Mode::empty())?))
}

fn sync_folder_of(path: &Path) -> io::Result<()> {
    let Some(folder) = path.parent() else { return Ok(()) };
    let folder = open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    crate::disk::sync(folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::fail::when;

    fn scratch() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        std::fs::write(&from, "bytes").unwrap();
        std::fs::set_permissions(&from, std::fs::Permissions::from_mode(0o640)).unwrap();
        (folder, from, to)
    }

    #[test]
    fn a_file_moves_whole_on_one_file_system_and_across_two() {
        for across in [false, true] {
            let (_folder, from, to) = scratch();
            let then = std::fs::metadata(&from).unwrap().modified().unwrap();
            // Left by an earlier try.
            std::fs::write(to.with_extension("part"), "half").unwrap();
            if across { move_across(&from, &to, 1) } else { move_file(&from, &to) }.unwrap();
            assert!(!from.exists());
            assert_eq!(std::fs::read(&to).unwrap(), b"bytes");
            let stat = std::fs::metadata(&to).unwrap();
            assert_eq!((stat.permissions().mode() & 0o777, stat.modified().unwrap()), (0o640, then));
            assert_eq!(to.with_extension("part").exists(), !across);
        }
    }

    #[test]
    fn nothing_is_overwritten_and_a_copy_that_is_whole_ends_the_move() {
        let across: fn(&Path, &Path) -> io::Result<()> = |from, to| move_across(from, to, TRIES);
        for move_it in [move_file, across] {
            let (_folder, from, to) = scratch();
            std::fs::write(&to, "other").unwrap();
            assert_eq!(move_it(&from, &to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(
                (std::fs::read(&from).unwrap(), std::fs::read(&to).unwrap()),
                (b"bytes".to_vec(), b"other".to_vec())
            );
            std::fs::write(&to, "bytes").unwrap();
            move_it(&from, &to).unwrap();
            assert!(!from.exists() && to.exists());
        }
    }

    fn append(path: &Path, text: &str) {
        std::fs::File::options().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn names(folder: &Path) -> Vec<String> {
        let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_written_to_a_file_while_it_is_copied_moves_with_it() {
        for at in ["trash:copied", "trash:unlink"] {
            let (folder, from, to) = scratch();
            let path = from.clone();
            when(1, at, move || append(&path, " and more"), || move_across(&from, &to, 2)).unwrap();
            assert_eq!(names(folder.path()), ["to"], "{at}");
            assert_eq!(std::fs::read(&to).unwrap(), b"bytes and more", "{at}");
            // The same if another file of the same length was put in its place.
            let (folder, from, to) = scratch();
            let (path, other) = (from.clone(), folder.path().join("other"));
            std::fs::write(&other, "BYTES").unwrap();
            when(1, at, move || std::fs::rename(&other, &path).unwrap(), || move_across(&from, &to, 2)).unwrap();
            assert_eq!(names(folder.path()), ["to"], "{at}");
            assert_eq!(std::fs::read(&to).unwrap(), b"BYTES", "{at}");
        }
    }

    #[test]
    fn a_file_that_is_written_to_again_and_again_stays_where_it_is() {
        for at in ["trash:copied", "trash:unlink"] {
            let (folder, from, to) = scratch();
            let path = from.clone();
            let error = when(1, at, move || append(&path, " and more"), || move_across(&from, &to, 1)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ResourceBusy, "{at}");
            assert_eq!(names(folder.path()), ["from"], "{at}");
            assert_eq!(std::fs::read(&from).unwrap(), b"bytes and more", "{at}");
        }
    }

    #[test]
    fn a_file_that_goes_on_after_it_was_found_whole_elsewhere_is_not_removed() {
        let (_folder, from, to) = scratch();
        std::fs::write(&to, "bytes").unwrap();
        let path = from.clone();
        let error = when(1, "trash:unlink", move || append(&path, " and more"), || move_file(&from, &to)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&from).unwrap(), b"bytes and more");
    }

    #[test]
    fn a_copy_that_its_owner_goes_on_with_at_once_is_left_alone() {
        let (folder, from, to) = scratch();
        let path = to.clone();
        when(1, "trash:unlink", move || append(&path, " and more"), || move_across(&from, &to, 1)).unwrap();
        assert_eq!(names(folder.path()), ["to"]);
        assert_eq!(std::fs::read(&to).unwrap(), b"bytes and more");
        // With both written to, neither is lost.
        let (folder, from, to) = scratch();
        let paths = [from.clone(), to.clone()];
        let both = move || paths.iter().for_each(|path| append(path, " and more"));
        when(1, "trash:unlink", both, || move_across(&from, &to, 1)).unwrap_err();
        assert_eq!(names(folder.path()), ["from", "to"]);
        assert_eq!(std::fs::read(&to).unwrap(), b"bytes and more");
    }

    #[test]
    fn a_link_is_not_moved() {
        let (folder, from, to) = scratch();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&from, &link).unwrap();
        assert_eq!(move_file(&link, &to).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert!(link.exists() && !to.exists());
    }
}
