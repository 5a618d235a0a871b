//! Ends the process when an input hangs: a hanging test would report nothing.

use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// Far longer than any input takes, even on a busy machine.
const LONGEST: Duration = Duration::from_secs(120);

pub(super) struct Watchdog(Arc<Current>);

/// The input being tried, and since when.
type Current = Mutex<Option<(Instant, Vec<u8>)>>;

impl Watchdog {
    pub(super) fn start(name: &str) -> Self {
        let now = Arc::new(Mutex::new(None));
        let (watched, name) = (Arc::downgrade(&now), name.to_owned());
        std::thread::spawn(move || watch(&watched, &name));
        Self(now)
    }

    pub(super) fn begin(&self, input: &[u8]) {
        let mut now = self.0.lock().unwrap_or_else(|e| e.into_inner());
        *now = Some((Instant::now(), input.to_vec()));
    }

    pub(super) fn end(&self) {
        *self.0.lock().unwrap_or_else(|e| e.into_inner()) = None;
    }
}

fn watch(watched: &Weak<Current>, name: &str) {
    while let Some(now) = watched.upgrade() {
        if let Some((began, input)) = &*now.lock().unwrap_or_else(|e| e.into_inner())
            && began.elapsed() > LONGEST
        {
            let path = super::keep(name, input);
            // Bypasses the test runner's capture, which an abort would swallow.
            let line = format!("{name} hangs at an input that is kept as {}\n", path.display());
            let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
            std::process::abort();
        }
        drop(now);
        std::thread::sleep(Duration::from_secs(1));
    }
}
