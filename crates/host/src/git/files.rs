//! Reading a repository's own files: never a device or a pipe, never more than was agreed on, never anything but read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// Opens a regular file. None where there is none: missing, or something else stands there.
pub(super) fn open(path: &Path) -> io::Result<Option<(File, Stat)>> {
    let is_file = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    // Asked before it is opened: opening a device can do something.
    match rustix::fs::stat(path) {
        Ok(stat) if is_file(&stat) => {}
        Ok(_) => return Ok(None),
        Err(error) => return if is_missing(error) { Ok(None) } else { Err(error.into()) },
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(error) if is_missing(error) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let stat = rustix::fs::fstat(&file)?;
    Ok(is_file(&stat).then_some((file, stat)))
}

/// Reads a regular file whole. None where there is none; an error where it is larger than agreed.
pub(super) fn read(path: &Path, largest: u64) -> io::Result<Option<(Vec<u8>, Stat)>> {
    let Some((file, stat)) = open(path)? else { return Ok(None) };
    let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {largest} bytes"));
    let size = stat.st_size as u64;
    if size > largest {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(size as usize + 1);
    file.take(largest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > largest { Err(too_large()) } else { Ok(Some((bytes, stat))) }
}

/// Whether an error says that nothing is there.
fn is_missing(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
}

/// Whether anything is there.
pub(super) fn exists(path: &Path) -> bool {
    rustix::fs::lstat(path).is_ok()
}

/// Whether a folder is there.
pub(super) fn is_folder(path: &Path) -> bool {
    rustix::fs::stat(path).is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::Directory)
}

/// The bytes without blanks and line ends at their end.
pub(super) fn trim_end(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|b| !b.is_ascii_whitespace()).map_or(0, |at| at + 1);
    &bytes[..end]
}
