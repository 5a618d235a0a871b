//! Files that editors keep beside one that they have open.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether an editor seems to have a file open, or it is such a file of an editor's itself.
pub fn is_open_in_editor(file: &Path) -> bool {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { return false };
    let bytes = name.as_bytes();
    let is_swap = bytes.starts_with(b".") && (bytes.ends_with(b".swp") || bytes.ends_with(b".swo"));
    if is_swap || bytes.starts_with(b".#") || (bytes.len() > 2 && bytes.starts_with(b"#") && bytes.ends_with(b"#")) {
        return true;
    }
    let named = |before: &str, after: &str| -> OsString {
        OsStr::from_bytes(&[before.as_bytes(), name.as_bytes(), after.as_bytes()].concat()).to_owned()
    };
    // Vim's, and the links and copies of Emacs.
    let traces = [named(".", ".swp"), named(".", ".swo"), named(".#", ""), named("#", "#")];
    traces.iter().any(|trace| rustix::fs::lstat(folder.join(trace)).is_ok())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests make files of their own")]
mod tests {
    use super::*;

    #[test]
    fn what_editors_keep_beside_a_file_shows_that_it_is_open() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for trace in [".a.txt.swp", ".a.txt.swo", ".#a.txt", "#a.txt#"] {
            assert!(!is_open_in_editor(&at("a.txt")), "{trace}");
            std::fs::write(at(trace), "").unwrap();
            assert!(is_open_in_editor(&at("a.txt")) && is_open_in_editor(&at(trace)), "{trace}");
            assert!(!is_open_in_editor(&at("b.txt")), "{trace}");
            std::fs::remove_file(at(trace)).unwrap();
        }
    }
}
