//! Failpoints: named places where a test makes piton die, fail or wait. Compiled to nothing in a release build.
//!
//! A test counts the points that a command passes (`PITON_FAIL_TRACE=FILE` writes one name a line) and then runs the
//! command once for each, with `PITON_FAIL=kill=N` (the process ends at the Nth point, as by a power cut to it),
//! `error=N` (the Nth point fails as a full disk does), or `wait=NAME=FILE` (at the first such point, until the file is
//! there; `FILE` with the ending `.reached` says that it waits).

use std::io;

/// A step of a capture or an operation; `Err` only where a test asked for it.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn point(_name: &'static str) -> io::Result<()> {
    Ok(())
}

/// Whether a test has something in mind for a point.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn is_armed() -> bool {
    false
}

#[cfg(debug_assertions)]
pub(crate) use debug::is_armed;
#[cfg(debug_assertions)]
pub use debug::{point, when, with};

#[cfg(debug_assertions)]
mod debug {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::io::Write;
    use std::path::PathBuf;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    enum Action {
        Kill(u64),
        Error(u64),
        Wait(String, PathBuf),
    }

    struct Settings {
        action: Option<Action>,
        trace: Option<PathBuf>,
    }

    fn settings() -> &'static Settings {
        static SETTINGS: OnceLock<Settings> = OnceLock::new();
        SETTINGS.get_or_init(|| {
            let text = std::env::var("PITON_FAIL").unwrap_or_default();
            let mut parts = text.splitn(3, '=');
            let action = match (parts.next(), parts.next(), parts.next()) {
                (Some("kill"), Some(n), _) => n.parse().ok().map(Action::Kill),
                (Some("error"), Some(n), _) => n.parse().ok().map(Action::Error),
                (Some("wait"), Some(name), Some(file)) => Some(Action::Wait(name.into(), file.into())),
                _ => None,
            };
            Settings { action, trace: std::env::var_os("PITON_FAIL_TRACE").map(PathBuf::from) }
        })
    }

    thread_local! {
        /// Points until a simulated crash on this thread; 0 means never.
        static LEFT: Cell<u64> = const { Cell::new(0) };
        /// What happens at a point of this thread.
        static HAPPENS: RefCell<Option<Happens>> = const { RefCell::new(None) };
    }

    struct Happens {
        at: &'static str,
        /// Points of that name until it happens.
        left: u64,
        what: Box<dyn FnOnce()>,
    }

    /// Whether a test has something in mind for a point.
    pub(crate) fn is_armed() -> bool {
        let settings = settings();
        LEFT.get() > 0 || HAPPENS.with_borrow(Option::is_some) || settings.action.is_some() || settings.trace.is_some()
    }

    /// A step of a capture or an operation; `Err` only where a test asked for it.
    pub fn point(name: &'static str) -> io::Result<()> {
        static PASSED: AtomicU64 = AtomicU64::new(0);
        match LEFT.get() {
            0 => {}
            1 => {
                LEFT.set(0);
                std::panic::panic_any(Crash);
            }
            n => LEFT.set(n - 1),
        }
        let is_now = |happens: &mut Happens| {
            happens.left -= u64::from(happens.at == name);
            happens.left == 0
        };
        if let Some(happens) = HAPPENS.with_borrow_mut(|it| it.take_if(is_now)) {
            (happens.what)();
        }
        let settings = settings();
        if let Some(trace) = &settings.trace {
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(trace)?;
            writeln!(file, "{name}")?;
        }
        match &settings.action {
            None => Ok(()),
            Some(Action::Kill(n)) => {
                if PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *n {
                    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
                    loop {
                        std::thread::park();
                    }
                }
                Ok(())
            }
            Some(Action::Error(n)) => {
                if PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *n {
                    return Err(io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error()));
                }
                Ok(())
            }
            Some(Action::Wait(at, file)) => {
                if at == name && PASSED.fetch_add(1, Ordering::SeqCst) == 0 {
                    std::fs::write(file.with_extension("reached"), name)?;
                    while !file.exists() {
                        std::thread::sleep(std::time::Duration::from_millis(2));
                    }
                }
                Ok(())
            }
        }
    }

    /// What a simulated crash unwinds with.
    pub struct Crash;

    /// Runs `act` and crashes at its Nth point on this thread: the panic is caught and `None` returned. Locks are
    /// released and transactions rolled back on the way, as the kernel and SQLite do for a process that died.
    pub fn with<T>(nth: u64, act: impl FnOnce() -> T) -> Option<T> {
        LEFT.set(nth);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
        LEFT.set(0);
        match result {
            Ok(value) => Some(value),
            Err(payload) if payload.is::<Crash>() => None,
            Err(payload) => std::panic::resume_unwind(payload),
        }
    }

    /// Runs `act`, and lets something happen when this thread comes to a point of that name for the Nth time: what
    /// another program does at the worst moment.
    pub fn when<T>(nth: u64, at: &'static str, happen: impl FnOnce() + 'static, act: impl FnOnce() -> T) -> T {
        HAPPENS.set(Some(Happens { at, left: nth, what: Box::new(happen) }));
        let result = act();
        assert!(HAPPENS.take().is_none(), "no point `{at}` was passed {nth} times");
        result
    }
}
