//! The disk behind the files.

use std::fs::File;
use std::num::NonZeroU64;

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
