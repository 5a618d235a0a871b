//! Waiting for other processes.

use std::time::{Duration, Instant};

/// Waits until a condition holds, and fails if it never does.
#[track_caller]
pub fn until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "what was waited for never came");
        std::thread::sleep(Duration::from_millis(2));
    }
}
