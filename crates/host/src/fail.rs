//! Failpoints: named places where a test makes piton die, fail or wait. Compiled to nothing in a release build.
//!
//! A test counts the points that a command passes (`PITON_FAIL_TRACE=FILE` writes one name per line) and then runs the
//! command once for each, with `PITON_FAIL=kill=N` (the process dies at the Nth point), `error=N` (the Nth point fails
//! like a full disk), or `wait=NAME=FILE` (waits at the first such point until the file exists; `FILE` with the suffix
//! `.reached` shows that it waits). `PITON_FAIL=unreadable=FROM-TO=FILE` makes these bytes of a file of the store
//! unreadable, like a bad sector.

use std::io;

/// A step of a capture or an operation; `Err` only if a test asked for it.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn point(_name: &'static str) -> io::Result<()> {
    Ok(())
}

/// Called just before bytes of a file are read; `Err` only if a test makes them unreadable.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn reading(_file: &std::fs::File, _from: u64, _length: usize) -> io::Result<()> {
    Ok(())
}

/// Whether a test has armed a failpoint.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn is_armed() -> bool {
    false
}

#[cfg(debug_assertions)]
pub(crate) use debug::is_armed;
#[cfg(debug_assertions)]
pub use debug::{point, reading, unreadable, when, with};

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
        Unreadable(Unreadable),
    }

    #[derive(Clone)]
    struct Unreadable {
        file: PathBuf,
        from: u64,
        to: u64,
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
                (Some("unreadable"), Some(range), Some(file)) => range.split_once('-').and_then(|(from, to)| {
                    let (from, to) = (from.parse().ok()?, to.parse().ok()?);
                    Some(Action::Unreadable(Unreadable { file: file.into(), from, to }))
                }),
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
        /// What this thread cannot read.
        static UNREADABLE: RefCell<Option<Unreadable>> = const { RefCell::new(None) };
    }

    struct Happens {
        at: &'static str,
        /// Points of that name until it happens.
        left: u64,
        what: Box<dyn FnOnce()>,
    }

    /// Whether a test has armed a failpoint.
    pub(crate) fn is_armed() -> bool {
        let settings = settings();
        LEFT.get() > 0 || HAPPENS.with_borrow(Option::is_some) || settings.action.is_some() || settings.trace.is_some()
    }

    /// A step of a capture or an operation; `Err` only if a test asked for it.
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
            None | Some(Action::Unreadable(_)) => Ok(()),
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

    /// Called just before bytes of a file are read; `Err` only if a test makes them unreadable.
    pub fn reading(file: &std::fs::File, from: u64, length: usize) -> io::Result<()> {
        use std::os::unix::fs::MetadataExt;
        let of_process = match &settings().action {
            Some(Action::Unreadable(bad)) => Some(bad.clone()),
            _ => None,
        };
        let Some(bad) = UNREADABLE.with_borrow(Clone::clone).or(of_process) else { return Ok(()) };
        let id = |found: std::fs::Metadata| (found.dev(), found.ino());
        let is_hit = from < bad.to && from + length as u64 > bad.from;
        if is_hit && std::fs::metadata(&bad.file).map(id).ok() == file.metadata().map(id).ok() {
            return Err(io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error()));
        }
        Ok(())
    }

    /// Runs `act` while this thread cannot read some bytes of a file, as if they were in a bad sector.
    pub fn unreadable<T>(file: &std::path::Path, bytes: std::ops::Range<u64>, act: impl FnOnce() -> T) -> T {
        UNREADABLE.set(Some(Unreadable { file: file.to_owned(), from: bytes.start, to: bytes.end }));
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
        UNREADABLE.set(None);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// The payload that a simulated crash unwinds with.
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

    /// Runs `act`, and calls `happen` when this thread reaches the named point for the Nth time: what another program
    /// does at the worst moment.
    pub fn when<T>(nth: u64, at: &'static str, happen: impl FnOnce() + 'static, act: impl FnOnce() -> T) -> T {
        HAPPENS.set(Some(Happens { at, left: nth, what: Box::new(happen) }));
        let result = act();
        assert!(HAPPENS.take().is_none(), "no point `{at}` was passed {nth} times");
        result
    }
}
