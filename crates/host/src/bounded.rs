//! Reading small files that somebody else wrote and that decide what piton does: ignore files, git's own files,
//! configuration.
//!
//! Whatever is at such a name must not block piton: opening never waits (a pipe), only regular files are read (a device
//! may be endless), and never more than a given limit.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::root::Root;

/// Never waits, and never acquires a controlling terminal.
const TO_READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Opens a regular file, following symlinks; `None` if nothing is there.
///
/// # Errors
/// `InvalidInput` for anything but a regular file, and whatever the system refuses.
pub(crate) fn open(path: &Path) -> io::Result<Option<(File, Stat)>> {
    // Checked before opening: opening a device can have effects.
    match rustix::fs::stat(path) {
        Ok(stat) => check_kind(&stat)?,
        Err(error) if is_missing(error) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    match rustix::fs::open(path, TO_READ, Mode::empty()) {
        Ok(fd) => checked(File::from(fd)).map(Some),
        Err(error) if is_missing(error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Opens whatever is at a path in a folder, through no symlink and without waiting. The caller checks what it is.
///
/// # Errors
/// `ELOOP` if a symlink is on the way, and whatever the system refuses.
pub fn open_in(folder: &Path, path: &Path) -> io::Result<OwnedFd> {
    Root::open(folder)?.open_beneath(path.as_os_str().as_bytes(), TO_READ)
}

/// Reads a whole regular file, following symlinks; `None` if nothing is there.
///
/// # Errors
/// `InvalidInput` for anything but a regular file, `FileTooLarge` if it has more than `largest` bytes, and whatever the
/// system refuses.
pub fn read(path: &Path, largest: u64) -> io::Result<Option<Vec<u8>>> {
    Ok(read_with_stat(path, largest)?.map(|(bytes, _)| bytes))
}

/// Reads a whole regular file in a folder, through no symlink; `None` if nothing is there.
///
/// # Errors
/// As [`read`], and `InvalidInput` if a symlink is on the way.
pub fn read_in(folder: &Path, path: &Path, largest: u64) -> io::Result<Option<Vec<u8>>> {
    read_beneath(&Root::open(folder)?, path.as_os_str().as_bytes(), largest)
}

pub(crate) fn read_with_stat(path: &Path, largest: u64) -> io::Result<Option<(Vec<u8>, Stat)>> {
    let Some((file, stat)) = open(path)? else { return Ok(None) };
    Ok(Some((read_open(file, &stat, largest)?, stat)))
}

/// Like [`read`], for a path of the workspace, through no symlink.
pub(crate) fn read_beneath(root: &Root, path: &[u8], largest: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match root.open_beneath(path, TO_READ) {
        Ok(fd) => File::from(fd),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a symlink, and none is followed here"));
        }
        // A socket cannot be opened at all.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NXIO) => return Err(not_regular()),
        Err(error) if Errno::from_io_error(&error).is_some_and(is_missing) => return Ok(None),
        Err(error) => return Err(error),
    };
    let (file, stat) = checked(file)?;
    read_open(file, &stat, largest).map(Some)
}

fn read_open(file: File, stat: &Stat, largest: u64) -> io::Result<Vec<u8>> {
    let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {largest} bytes"));
    let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
    if size > largest {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(size as usize + 1);
    // It may grow while it is read, and some files do not report their size.
    file.take(largest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > largest { Err(too_large()) } else { Ok(bytes) }
}

fn checked(file: File) -> io::Result<(File, Stat)> {
    let stat = rustix::fs::fstat(&file)?;
    check_kind(&stat)?;
    Ok((file, stat))
}

fn check_kind(stat: &Stat) -> io::Result<()> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        _ => Err(not_regular()),
    }
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

/// Whether an error means that nothing is there.
fn is_missing(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_within_the_limit_are_read_and_nothing_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "12345").unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        std::fs::File::create(at("sparse")).unwrap().set_len(1 << 30).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for (name, target) in [("to-file", "file"), ("to-pipe", "pipe"), ("endless", "/dev/zero"), ("nowhere", "none")]
        {
            std::os::unix::fs::symlink(target, at(name)).unwrap();
        }
        let root = Root::open(folder.path()).unwrap();
        let kind = |name: &str, result: io::Result<Option<Vec<u8>>>| match result {
            Ok(bytes) => Ok(bytes),
            Err(error) => Err((name.to_owned(), error.kind())),
        };
        let (wrong, large) = (io::ErrorKind::InvalidInput, io::ErrorKind::FileTooLarge);
        let five = Some(b"12345".to_vec());
        for (name, by_path, beneath) in [
            ("file", Ok(five.clone()), Ok(five.clone())),
            ("none", Ok(None), Ok(None)),
            ("file/none", Ok(None), Ok(None)),
            ("to-file", Ok(five), Err(wrong)),
            ("nowhere", Ok(None), Err(wrong)),
            ("pipe", Err(wrong), Err(wrong)),
            ("to-pipe", Err(wrong), Err(wrong)),
            ("endless", Err(wrong), Err(wrong)),
            ("socket", Err(wrong), Err(wrong)),
            ("folder", Err(wrong), Err(wrong)),
            ("sparse", Err(large), Err(large)),
        ] {
            let named = |expected: Result<Option<Vec<u8>>, io::ErrorKind>| expected.map_err(|e| (name.to_owned(), e));
            assert_eq!(kind(name, read(&at(name), 5)), named(by_path));
            assert_eq!(kind(name, read_beneath(&root, name.as_bytes(), 5)), named(beneath));
        }
        assert_eq!(read(&at("file"), 4).unwrap_err().kind(), large);
    }
}
