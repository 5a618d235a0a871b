//! Reading files outside every workspace that a tool named.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Take};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat, open};

#[derive(Debug)]
pub struct Plain {
    pub bytes: Vec<u8>,
    /// Permission bits.
    pub mode: u16,
}

/// Reads a plain file of at most `limit` bytes; `None` if nothing is there.
///
/// # Errors
/// If it is not a plain file (a link, a pipe, a device) or longer, and whatever the system refuses.
pub fn read(path: &Path, limit: u64) -> io::Result<Option<Plain>> {
    let Some((file, mode)) = open_plain(path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(Some(Plain { bytes, mode }))
}

/// The complete lines of a file that somebody may be writing to.
#[derive(Debug)]
pub struct Lines {
    /// Starts at the requested position.
    pub reader: BufReader<Take<File>>,
    /// Length of all complete lines, from the file's beginning.
    pub length: u64,
    /// Whether an incomplete line follows: its writer is in the middle of it.
    pub cut_off: bool,
    /// Permission bits.
    pub mode: u16,
}

/// Opens a plain file for reading its complete lines from a position; `None` if nothing is there.
///
/// # Errors
/// As [`read`].
pub fn lines(path: &Path, from: u64) -> io::Result<Option<Lines>> {
    let Some((mut file, mode)) = open_plain(path)? else { return Ok(None) };
    let (length, all) = whole_lines(&mut file)?;
    file.seek(SeekFrom::Start(from.min(length)))?;
    let reader = BufReader::with_capacity(256 << 10, file.take(length.saturating_sub(from)));
    Ok(Some(Lines { reader, length, cut_off: all > length, mode }))
}

/// When a file was last written, in nanoseconds since 1970.
pub fn written_at(path: &Path) -> Option<i64> {
    let stat = rustix::fs::stat(path).ok()?;
    Some(stat.st_mtime.saturating_mul(1_000_000_000).saturating_add(stat.st_mtime_nsec as i64))
}

/// Creates an agent's folder, accessible to its user alone, if it does not exist.
///
/// # Errors
/// Whatever the system refuses.
pub fn make_folder(path: &Path) -> io::Result<()> {
    crate::own::make_folders(path)
}

/// The end of the last complete line, and of the file.
fn whole_lines(file: &mut File) -> io::Result<(u64, u64)> {
    const BACK: u64 = 64 << 10;
    let all = file.metadata()?.len();
    let mut end = all;
    let mut buffer = Vec::new();
    while end > 0 {
        let from = end.saturating_sub(BACK);
        file.seek(SeekFrom::Start(from))?;
        buffer.clear();
        file.by_ref().take(end - from).read_to_end(&mut buffer)?;
        if let Some(at) = buffer.iter().rposition(|byte| *byte == b'\n') {
            return Ok((from + at as u64 + 1, all));
        }
        end = from;
    }
    Ok((0, all))
}

fn open_plain(path: &Path) -> io::Result<Option<(File, u16)>> {
    // A pipe must not block, and a link may lead to one.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
    let fd = match open(path, flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let stat = fstat(&fd)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(Some((File::from(fd), (stat.st_mode & 0o7777) as u16)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_files_are_read_and_none_for_longer_than_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "12345").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert_eq!(read(&at("file"), 5).unwrap().unwrap().bytes, b"12345");
        assert!(read(&at("file"), 4).is_err());
        assert!(read(&at("none"), 4).unwrap().is_none());
        assert!(read(&at("file/none"), 4).unwrap().is_none());
        for other in ["link", "pipe", "."] {
            assert!(read(&at(other), 4).is_err(), "{other}");
        }
        std::fs::write(at("lines"), "one\ntwo\nthr").unwrap();
        let mut rest = lines(&at("lines"), 4).unwrap().unwrap();
        let mut text = String::new();
        rest.reader.read_to_string(&mut text).unwrap();
        assert_eq!((&text[..], rest.length, rest.cut_off), ("two\n", 8, true));
    }
}
