//! Files that editors keep beside one that they have open.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether an editor seems to have a file open.
pub fn is_open_in_editor(file: &Path) -> bool {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { return false };
    let named = |before: &str, after: &str| -> OsString {
        OsStr::from_bytes(&[before.as_bytes(), name.as_bytes(), after.as_bytes()].concat()).to_owned()
    };
    // Vim's, and the links and copies of Emacs.
    let traces = [named(".", ".swp"), named(".", ".swo"), named(".#", ""), named("#", "#")];
    traces.iter().any(|trace| rustix::fs::lstat(folder.join(trace)).is_ok())
}
