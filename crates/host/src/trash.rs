//! Moving a file out of an agent's folder into piton's trash, and back: whole, from one file system to another too, and
//! never over anything else.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Timestamps, fchmod, fstat, futimens, open, renameat_with, statat,
};
use rustix::io::Errno;

use crate::fail::point;

/// Moves a plain file to a place where nothing is, in a folder that is there.
///
/// A crash leaves it at its old place, at the new one, or whole at both; the same again ends that.
///
/// # Errors
/// What is no plain file; `AlreadyExists` where other bytes are at the new place; and what the system refuses.
pub fn move_file(from: &Path, to: &Path) -> io::Result<()> {
    if !is_plain(from)? {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
    }
    point("trash:move")?;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => {}
        Err(Errno::EXIST) if has_same_bytes(from, to)? => unlink(from)?,
        Err(Errno::XDEV) => move_across(from, to)?,
        // A file system that cannot promise it: nobody else writes in piton's trash.
        Err(Errno::INVAL | Errno::NOSYS) if !exists(to)? => std::fs::rename(from, to)?,
        Err(errno) => return Err(errno.into()),
    }
    sync_folder_of(to)?;
    sync_folder_of(from)?;
    point("trash:moved")
}

/// Whether a plain file is there. A link is none, wherever it leads.
///
/// # Errors
/// What the system refuses.
pub fn is_plain(path: &Path) -> io::Result<bool> {
    match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Whether anything is there, a link to nowhere too.
///
/// # Errors
/// What the system refuses.
pub fn exists(path: &Path) -> io::Result<bool> {
    match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Removes a folder of the trash where nothing is left in it.
pub fn remove_if_empty(folder: &Path) {
    let _ = std::fs::remove_dir(folder);
}

/// The same to another file system: the copy is whole and on the disk before the original goes.
fn move_across(from: &Path, to: &Path) -> io::Result<()> {
    let mut part = to.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    match std::fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut source = open_plain(from)?;
    let stat = fstat(&source)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut copy = File::from(open(&part, flags, Mode::RUSR | Mode::WUSR)?);
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
    point("trash:copied")?;
    match renameat_with(CWD, &part, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::EXIST) if has_same_bytes(from, to)? => std::fs::remove_file(&part)?,
        Err(Errno::INVAL | Errno::NOSYS) if !exists(to)? => std::fs::rename(&part, to)?,
        result => result?,
    }
    sync_folder_of(to)?;
    unlink(from)
}

fn unlink(path: &Path) -> io::Result<()> {
    point("trash:unlink")?;
    std::fs::remove_file(path)
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
    Ok(rustix::fs::fsync(folder)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

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
            // What an earlier try left.
            std::fs::write(to.with_extension("part"), "half").unwrap();
            if across { move_across(&from, &to) } else { move_file(&from, &to) }.unwrap();
            assert!(!from.exists());
            assert_eq!(std::fs::read(&to).unwrap(), b"bytes");
            let stat = std::fs::metadata(&to).unwrap();
            assert_eq!((stat.permissions().mode() & 0o777, stat.modified().unwrap()), (0o640, then));
            assert_eq!(to.with_extension("part").exists(), !across);
        }
    }

    #[test]
    fn nothing_is_overwritten_and_a_copy_that_is_whole_ends_the_move() {
        for move_it in [move_file, move_across] {
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

    #[test]
    fn a_link_is_not_moved() {
        let (folder, from, to) = scratch();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&from, &link).unwrap();
        assert_eq!(move_file(&link, &to).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert!(link.exists() && !to.exists());
    }
}
