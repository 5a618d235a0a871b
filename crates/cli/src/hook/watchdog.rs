//! The end of a hook's time: whatever this process waits for, a disk that hangs or a pipe that nobody reads, it is over.

use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use piton_agents::Report;
use piton_engine::Visit;

use super::ahead;
use super::log::{self, Line};
use crate::environment;

/// How long the last line of the log may take: the disk may be the very thing that hangs.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Ends the process in time, with exit code 0.
pub struct Watchdog(Arc<Shared>);

struct Shared {
    begun: Instant,
    end: Mutex<Instant>,
    line: Mutex<Line>,
    observing: Mutex<Option<Observing>>,
}

/// An event that is being captured.
struct Observing {
    report: Report,
    /// Where it is not yet, the workspace that is at it first.
    still: Vec<Visit>,
    /// Where it is not to be captured.
    uncaptured: Vec<PathBuf>,
}

const REASON: &str = "the time budget is over";

impl Watchdog {
    /// Starts watching, on a thread of its own. Without one there is no end but the agent's own.
    pub fn start(begun: Instant, end: Instant) -> Self {
        let shared = Shared { begun, end: Mutex::new(end), line: Mutex::default(), observing: Mutex::default() };
        let shared = Arc::new(shared);
        let watched = Arc::clone(&shared);
        let _ = std::thread::Builder::new().stack_size(64 << 10).spawn(move || watched.watch());
        Self(shared)
    }

    /// Says when the end is.
    pub fn end_at(&self, end: Instant) {
        *locked(&self.0.end) = end;
    }

    /// Says what is being done, for the log.
    pub fn describe(&self, line: Line) {
        *locked(&self.0.line) = line;
    }

    /// Says what is being captured: if that does not come to its end, it is a gap of the workspaces that it is not in yet.
    pub fn observing(&self, root: PathBuf, report: Report) {
        let still = vec![Visit { path: root, along: false }];
        *locked(&self.0.observing) = Some(Observing { report, still, uncaptured: Vec::new() });
    }

    /// Says which workspaces it is not in yet.
    pub fn visiting(&self, still: Vec<Visit>) {
        if let Some(observing) = &mut *locked(&self.0.observing) {
            observing.still = still;
        }
    }

    /// Says that it is not to be captured in a workspace.
    pub fn not_captured_in(&self, workspace: &Path) {
        if let Some(observing) = &mut *locked(&self.0.observing) {
            observing.uncaptured.push(workspace.to_owned());
        }
    }

    /// Says that it came to its end.
    pub fn observed(&self) {
        *locked(&self.0.observing) = None;
    }

    /// What is being done.
    pub fn line(&self) -> Line {
        locked(&self.0.line).clone()
    }
}

impl Shared {
    fn watch(&self) {
        loop {
            let left = locked(&self.end).saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            // Briefly at a time: the end may come nearer when the settings are read.
            std::thread::sleep(left.min(Duration::from_millis(250)));
        }
        let line = locked(&self.line).clone();
        let took = self.begun.elapsed();
        let (done, is_done) = channel();
        let observing = locked(&self.observing).take();
        let spoken = std::thread::Builder::new().spawn(move || {
            log::write(&line, took, &format!("gap: {REASON}"));
            if let Some(Observing { report, mut still, uncaptured }) = observing {
                still.retain(|visit| !uncaptured.contains(&visit.path));
                // Aside, and without opening a store: the other thread may hold its lock, or wait for its database.
                if let Ok(engine) = environment::engine(None) {
                    for Visit { path, along } in &still {
                        let _ = engine.set_event_aside(path, &report, REASON, *along);
                    }
                }
                if let Some(slow) = still.first() {
                    ahead::start(&slow.path);
                }
            }
            let _ = done.send(());
        });
        if spoken.is_ok() {
            let _ = is_done.recv_timeout(LAST_WORDS);
        }
        std::process::exit(0);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
