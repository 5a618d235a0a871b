//! The disk behind the files.

use std::fs::File;
use std::num::NonZeroU64;

use rustix::fs::{Advice, fadvise};

/// Lets the disk begin with bytes that were just written, and goes on at once. Whoever needs to know that they got there
/// syncs the file as ever, and waits less.
///
/// A sync on another thread would begin them too. But the system tells of bytes that did not get to the disk only once:
/// to that thread, and not to the sync that counts, which may be another process's. And a process does not end while one
/// of its threads syncs.
///
/// Linux writes what is told not to be needed, and drops from its memory only what is on the disk already: nothing of
/// what was just written.
pub fn begin_writing(file: &File, from: u64, length: u64) {
    if let Some(length) = NonZeroU64::new(length) {
        // Where it is refused, the sync does all.
        let _ = fadvise(file, from, Some(length), Advice::DontNeed);
    }
}
