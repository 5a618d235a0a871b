//! A workspace's lock: an `flock`, which the kernel releases when its process ends, however it ends.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::own;

/// Held from scan to commit by whoever captures or operates. Released when dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock, waiting for at most `patience`; `None` if another process still holds it then.
    pub fn take(path: &Path, patience: Duration) -> io::Result<Option<Self>> {
        let until = Instant::now() + patience;
        let open = || own::open_or_make(path, File::options().write(true));
        let mut lock = Self { file: open()?, path: path.to_owned() };
        loop {
            match flock(&lock.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if lock.is_held() => return Ok(Some(lock)),
                // Somebody deleted the opened file: the lock is the file that has the name.
                Ok(()) => lock.file = open()?,
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if Instant::now() >= until {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(2));
            // Holding the lock of a deleted file excludes nobody.
            if !lock.is_held() {
                lock.file = open()?;
            }
        }
    }

    /// Whether the locked file still has its name: otherwise the next process would lock another file.
    pub fn is_held(&self) -> bool {
        let id = |found: io::Result<std::fs::Metadata>| found.ok().map(|found| (found.dev(), found.ino()));
        let named = id(std::fs::metadata(&self.path));
        named.is_some() && named == id(self.file.metadata())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deleted_lock_is_no_longer_held_and_is_taken_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = Lock::take(&path, Duration::ZERO).unwrap().unwrap();
        assert!(Lock::take(&path, Duration::ZERO).unwrap().is_none());
        std::fs::remove_file(&path).unwrap();
        assert!(!first.is_held());
        let second = Lock::take(&path, Duration::ZERO).unwrap().unwrap();
        assert!(second.is_held() && !first.is_held());
        assert!(Lock::take(&path, Duration::ZERO).unwrap().is_none());
    }
}
