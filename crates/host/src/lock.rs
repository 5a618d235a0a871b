//! The lock of a workspace: one `flock`, which the kernel releases when its process ends, however it ends.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

/// Held from scan to commit by whoever captures or operates. Released when dropped.
#[derive(Debug)]
pub struct Lock(#[allow(dead_code, reason = "holds the lock by being open")] File);

impl Lock {
    /// Takes the lock, waiting as long as `patience` allows; `None` where another process still holds it then.
    pub fn take(path: &Path, patience: Duration) -> io::Result<Option<Self>> {
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        let until = Instant::now() + patience;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(Self(file))),
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if Instant::now() >= until {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
