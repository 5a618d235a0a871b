//! Syncing, and reading from failing disks.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use rustix::io::Errno;

use crate::fail;

/// The system reads whole pages of a file, and fails on whole pages.
const PAGE: u64 = 4096;
/// The smallest unit that a disk fails to read: all that is lost where a filesystem's blocks are smaller than a page.
const SECTOR: u64 = 512;

/// Makes an open file's content or an open folder's names survive a power cut.
///
/// Some filesystems (CIFS, vboxsf, some of FUSE) cannot sync a single folder, and nothing syncs a pipe; there the whole
/// filesystem is synced.
pub fn sync(open: impl AsFd) -> io::Result<()> {
    match crate::sys::sync(&open) {
        Err(Errno::INVAL | Errno::NOTSUP | Errno::NOSYS) => Ok(crate::sys::sync_filesystem(open)?),
        synced => Ok(synced?),
    }
}

/// Syncs a folder's names.
pub fn sync_folder(path: &std::path::Path) -> io::Result<()> {
    sync(File::open(path)?)
}

/// Fills a buffer from a file. What the disk cannot read becomes zeros, together with the bytes around it that can only
/// be read with it.
///
/// For callers that can tell zeros from what was written and need the rest of the file.
///
/// # Errors
/// If the file ends before the buffer does, and any system error that is not about these bytes.
pub fn read_what_can_be(file: &File, bytes: &mut [u8], from: u64) -> io::Result<()> {
    let whole = read_exact(file, bytes, from);
    if !whole.as_ref().is_err_and(is_unreadable) {
        return whole;
    }
    let end = from + bytes.len() as u64;
    each_piece(from, end, PAGE, |at, to| {
        let page = &mut bytes[(at - from) as usize..(to - from) as usize];
        let read = read_exact(file, page, at);
        if !read.as_ref().is_err_and(is_unreadable) {
            return read;
        }
        page.fill(0);
        // A disk takes seconds to give up on a sector. If not even the first piece can be read, the whole page cannot.
        let mut is_lost = false;
        each_piece(at, to, SECTOR, |piece, end| {
            let sector = &mut page[(piece - at) as usize..(end - at) as usize];
            if is_lost {
                return Ok(());
            }
            match read_exact(file, sector, piece) {
                Err(error) if is_unreadable(&error) => {
                    sector.fill(0);
                    is_lost = piece % PAGE == 0;
                    Ok(())
                }
                read => read,
            }
        })
    })
}

/// Whether the disk can read all bytes of a range.
///
/// # Errors
/// Any system error that is not about these bytes.
pub fn is_readable(file: &File, from: u64, end: u64) -> io::Result<bool> {
    let mut window = vec![0; 64 << 10];
    let mut is_readable = true;
    each_piece(from, end, window.len() as u64, |at, to| {
        if is_readable {
            match read_exact(file, &mut window[..(to - at) as usize], at) {
                Err(error) if is_unreadable(&error) => is_readable = false,
                read => read?,
            }
        }
        Ok(())
    })?;
    Ok(is_readable)
}

/// Visits a range in pieces that end at multiples of `size`.
fn each_piece(from: u64, end: u64, size: u64, mut visit: impl FnMut(u64, u64) -> io::Result<()>) -> io::Result<()> {
    let mut at = from;
    while at < end {
        let to = ((at / size + 1) * size).min(end);
        visit(at, to)?;
        at = to;
    }
    Ok(())
}

fn read_exact(file: &File, bytes: &mut [u8], from: u64) -> io::Result<()> {
    fail::reading(file, from, bytes.len())?;
    file.read_exact_at(bytes, from)
}

/// Whether a read error is about the requested bytes: the disk cannot read them, or the filesystem finds them
/// corrupted.
fn is_unreadable(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::IO | Errno::BADMSG | Errno::UCLEAN | Errno::NODATA))
}

/// Makes the disk start writing bytes that were just written, and returns at once. Whoever needs to know that they
/// arrived syncs the file as usual, and waits less.
///
/// A sync on another thread would start that too. But the system reports a failed write only once: to that thread, and
/// not to the sync that counts, which may be in another process. And a process does not end while one of its threads
/// syncs.
pub fn begin_writing(file: &File, from: u64, length: u64) {
    if let Some(length) = NonZeroU64::new(length) {
        crate::sys::begin_writing(file, from, length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_disk_cannot_read_comes_as_zeros() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let written: Vec<u8> = (0..20_000_u32).map(|n| (n % 251 + 1) as u8).collect();
        std::fs::write(file.path(), &written).unwrap();
        for (bad, lost) in
            [(9_000..9_001, 8_704..9_216), (8_200..8_300, 8_192..12_288), (19_990..30_000, 19_968..20_000)]
        {
            for from in [0, 100, 8_000, bad.start] {
                let mut found = vec![7; 20_000 - from as usize];
                fail::unreadable(file.path(), bad.clone(), || {
                    read_what_can_be(file.as_file(), &mut found, from).unwrap();
                    assert!(!is_readable(file.as_file(), from, 20_000).unwrap());
                    assert!(is_readable(file.as_file(), from, bad.start).unwrap());
                });
                for (at, byte) in (from..).zip(&found) {
                    // Reading from the middle of a page gets whatever can be read of the rest of it.
                    let is_lost = lost.contains(&at) && (*byte == 0 || from < lost.start);
                    let expected = if is_lost { 0 } else { written[at as usize] };
                    assert_eq!(*byte, expected, "byte {at} of {bad:?} from {from}");
                    assert!(!bad.contains(&at) || *byte == 0, "byte {at} was not read");
                }
            }
        }
        let past = read_what_can_be(file.as_file(), &mut [0; 10], 19_995).unwrap_err();
        assert_eq!(past.kind(), io::ErrorKind::UnexpectedEof);
    }
}
