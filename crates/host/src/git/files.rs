//! Reading a repository's own files: never a device or a pipe, never more than a given limit.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{FileType, Stat};

use crate::bounded;

/// Opens a regular file. `None` if it is missing or something else is there.
pub(super) fn open(path: &Path) -> io::Result<Option<(File, Stat)>> {
    none_where_something_else_is(bounded::open(path))
}

/// Reads a whole regular file. `None` if there is none; an error if it is over the limit.
pub(super) fn read(path: &Path, largest: u64) -> io::Result<Option<(Vec<u8>, Stat)>> {
    none_where_something_else_is(bounded::read_with_stat(path, largest))
}

fn none_where_something_else_is<T>(found: io::Result<Option<T>>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(None),
        found => found,
    }
}

pub(super) fn exists(path: &Path) -> bool {
    rustix::fs::lstat(path).is_ok()
}

pub(super) fn is_folder(path: &Path) -> bool {
    rustix::fs::stat(path).is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::Directory)
}

/// Without trailing blanks and line endings.
pub(super) fn trim_end(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|b| !b.is_ascii_whitespace()).map_or(0, |at| at + 1);
    &bytes[..end]
}
