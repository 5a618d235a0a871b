//! Waiting for what another process does.

use std::time::{Duration, Instant};

/// Waits until something is so, and fails where it never comes to that.
#[track_caller]
pub fn until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "what was waited for never came");
        std::thread::sleep(Duration::from_millis(2));
    }
}
