//! Reading ahead: what a capture had no time for is stored without a checkpoint, so that the next capture finds it.
//!
//! Called by the process that a hook leaves behind when its time is over. It stores objects and the stat cache and
//! nothing else: a checkpoint says what the files were at an event, and the event is past.

use std::path::Path;
use std::time::{Duration, Instant};

use piton_host::Lock;
use piton_host::fail::point;
use piton_store::{PATIENCE, StoreError};

use crate::capture::{Attention, CaptureError, Time};
use crate::workspace::{Engine, OpenError, Standing, Workspace};

/// How to read ahead.
#[derive(Clone, Copy, Debug)]
pub struct AheadOptions {
    /// How long the workspace's lock is held for reading files at a time. Hooks that come in between wait so long.
    pub slice: Duration,
    /// No slice starts after this: a workspace that changes faster than it is read would never be finished.
    pub at_most: Duration,
}

impl Default for AheadOptions {
    fn default() -> Self {
        Self { slice: Duration::from_millis(1_500), at_most: Duration::from_secs(15 * 60) }
    }
}

/// The result of reading ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// Everything is read.
    Whole,
    /// It ran out of time.
    Partly,
    /// Another process is already doing it.
    Busy,
    /// There is nothing to read: the folder is gone, or is another one now.
    Nothing,
}

/// Why it ended early.
#[derive(Debug, thiserror::Error)]
pub enum AheadError {
    /// The workspace cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It cannot be read, or its store refuses.
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

/// A second lock, held while reading ahead.
const LOCK: &str = "ahead";
/// Between two slices, long enough for whoever waits for the workspace's lock to look again.
const PAUSE: Duration = Duration::from_millis(20);

impl Engine {
    /// Reads ahead in a known workspace, in slices, and releases its lock in between.
    ///
    /// # Errors
    /// Where the workspace cannot be opened or read, or its store refuses. What was stored until then stays.
    pub fn read_ahead(&self, folder: &Path, options: AheadOptions) -> Result<Ahead, AheadError> {
        let begun = Instant::now();
        let mut workspace = self.open_as_it_is(folder)?;
        let path = workspace.store_folder().join(LOCK);
        let alone = Lock::take(&path, Duration::ZERO).map_err(|e| workspace.folder_error(e))?;
        let Some(_alone) = alone else { return Ok(Ahead::Busy) };
        loop {
            match workspace.read_slice(options.slice) {
                Err(CaptureError::OutOfTime) if begun.elapsed() < options.at_most => {
                    point("ahead:between").map_err(|e| workspace.folder_error(e))?;
                    std::thread::sleep(PAUSE);
                }
                Err(CaptureError::OutOfTime) => return Ok(Ahead::Partly),
                // A rebuild has replaced this database.
                Err(CaptureError::Store(StoreError::Replaced)) if begun.elapsed() < options.at_most => {
                    workspace = self.open_as_it_is(folder)?;
                }
                result => return Ok(result?),
            }
        }
    }
}

impl Workspace {
    /// One slice, under the lock.
    fn read_slice(&mut self, slice: Duration) -> Result<Ahead, CaptureError> {
        let locked = self.lock(PATIENCE)?;
        // Another folder starts a new line; only a capture decides that.
        let Standing::Same(root) = locked.standing().map_err(|e| locked.folder_error(e))? else {
            return Ok(Ahead::Nothing);
        };
        let attention = Attention { time: Time::Slice(slice), ..Attention::default() };
        let taken = locked.take(&root, &attention);
        let read = taken.and_then(|taken| {
            taken.writer.commit(false, taken.keeps_index)?;
            locked.keep_index(taken.scan, taken.keeps_index);
            Ok(Ahead::Whole)
        });
        point("ahead:kept").map_err(|e| locked.folder_error(e))?;
        let _ = locked.store().tidy(&locked.lock);
        read
    }
}
