//! Waiting until something changes in a folder of piton's own, without looking at it again and again.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use crate::sys;

/// Tells of changes in one folder from the moment that it was made. Where the system refuses that (too many watches, a
/// sandbox), waiting is sleeping, for a second at most.
#[derive(Debug)]
pub struct FolderWatch(Option<OwnedFd>);

/// How long nobody looks where the system does not tell of changes.
const UNTOLD: Duration = Duration::from_secs(1);

impl FolderWatch {
    /// Begins to watch.
    pub fn of(folder: &Path) -> Self {
        Self(sys::watch_folder(folder).ok())
    }

    /// Waits until something happened since it was made, or since the last time; at most so long, or less. Whether anything
    /// did: a `false` says nothing where the system does not tell.
    pub fn wait(&self, at_most: Duration) -> bool {
        if let Some(told) = &self.0
            && let Ok(has_changed) = sys::wait_for_change(told, at_most)
        {
            return has_changed;
        }
        std::thread::sleep(at_most.min(UNTOLD));
        false
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn what_was_written_before_the_waiting_began_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let watch = FolderWatch::of(folder.path());
        assert!(!watch.wait(Duration::ZERO));
        std::fs::write(folder.path().join("a"), "1").unwrap();
        assert!(watch.wait(LONG));
        assert!(!watch.wait(Duration::ZERO));
        std::fs::remove_dir_all(folder.path()).unwrap();
        assert!(watch.wait(LONG));
    }

    #[test]
    fn where_the_system_refuses_to_tell_waiting_ends_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let watch = sys::refusing(&[sys::Call::Watch], || FolderWatch::of(folder.path()));
        assert!(watch.0.is_none());
        let begun = Instant::now();
        assert!(!watch.wait(LONG));
        assert!(begun.elapsed() < LONG);
    }
}
