//! The clock and random numbers; the clock is a trait so that tests can choose it.

use piton_model::Timestamp;

pub trait Clock: Send + Sync {
    /// Nanoseconds since 1970. May jump either way; nothing but labels and the young-file rule depends on it.
    fn now_ns(&self) -> i64;

    /// In milliseconds, for display.
    fn now(&self) -> Timestamp {
        Timestamp(self.now_ns().div_euclid(1_000_000))
    }
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ns(&self) -> i64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        now.tv_sec * 1_000_000_000 + now.tv_nsec
    }
}

/// Unpredictable bytes for a new id.
pub fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes)
}

/// Identifies the current boot: after a reboot, unsynced bytes may be gone.
pub fn boot_id() -> String {
    // Debug builds only: lets a test of power cuts pretend that the machine was rebooted.
    #[cfg(debug_assertions)]
    if let Some(id) = another_run::id() {
        return id;
    }
    #[cfg(debug_assertions)]
    if let Ok(id) = std::env::var("PITON_TEST_BOOT_ID") {
        return id;
    }
    crate::sys::boot_id()
}

/// Whether a test chose the boot id.
pub fn is_simulated_run() -> bool {
    #[cfg(debug_assertions)]
    return another_run::id().is_some() || std::env::var_os("PITON_TEST_BOOT_ID").is_some();
    #[cfg(not(debug_assertions))]
    false
}

/// Simulates a rebooted machine for tests of power cuts: `act` runs on this thread with that boot id.
#[cfg(debug_assertions)]
pub fn in_another_run<T>(boot: &str, act: impl FnOnce() -> T) -> T {
    another_run::set(Some(boot.to_owned()));
    let result = act();
    another_run::set(None);
    result
}

#[cfg(debug_assertions)]
mod another_run {
    use std::cell::RefCell;

    thread_local! {
        static ID: RefCell<Option<String>> = const { RefCell::new(None) };
    }

    pub(super) fn id() -> Option<String> {
        ID.with_borrow(Clone::clone)
    }

    pub(super) fn set(id: Option<String>) {
        ID.with_borrow_mut(|place| *place = id);
    }
}
