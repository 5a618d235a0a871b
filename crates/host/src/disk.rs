//! The disk behind the files.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsFd;

use rustix::io::Errno;

/// Makes what is open survive a power cut: a file's content, a folder's names.
///
/// Some filesystems (CIFS, vboxsf, some of FUSE) cannot sync a folder by itself, and nothing syncs a pipe; there the
/// filesystem that it is on is synced as a whole.
pub fn sync(open: impl AsFd) -> io::Result<()> {
    match crate::sys::sync(&open) {
        Err(Errno::INVAL | Errno::NOTSUP | Errno::NOSYS) => Ok(crate::sys::sync_filesystem(open)?),
        synced => Ok(synced?),
    }
}

/// Syncs a folder: names that came or went in it.
pub fn sync_folder(path: &std::path::Path) -> io::Result<()> {
    sync(File::open(path)?)
}

/// Lets the disk begin with bytes that were just written, and goes on at once. Whoever needs to know that they got there
/// syncs the file as ever, and waits less.
///
/// A sync on another thread would begin them too. But the system tells of bytes that did not get to the disk only once:
/// to that thread, and not to the sync that counts, which may be another process's. And a process does not end while one
/// of its threads syncs.
pub fn begin_writing(file: &File, from: u64, length: u64) {
    if let Some(length) = NonZeroU64::new(length) {
        crate::sys::begin_writing(file, from, length);
    }
}
