//! Everything system-specific: calls, files and flags that another system lacks, or has under another name.
//!
//! Each is a small function named for its purpose, so that supporting another system means one more file next to
//! `linux.rs`. Nothing outside this folder may use anything Linux-specific; `crates/cli/tests/house.rs` checks that.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub(crate) use linux::*;

/// A call that some systems, filesystems or sandboxes refuse, so that a fallback is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Call {
    /// Exchanging two names.
    Exchange = 1,
    /// Renaming to a free name.
    RenameToNew = 2,
    /// A hard link.
    Link = 4,
    /// Opening a path through no symlink in one call.
    OpenBeneath = 8,
    /// A hard link, refused for lack of permission, as some policies do.
    LinkDenied = 16,
    /// Setting permission bits.
    SetMode = 32,
    /// Syncing a single folder, or anything else that is not a plain file.
    SyncOne = 64,
    /// Being told of changes in a folder.
    Watch = 128,
}

#[cfg(not(debug_assertions))]
#[inline(always)]
fn refuse(_: Call) -> rustix::io::Result<()> {
    Ok(())
}

#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn is_refusing() -> bool {
    false
}

#[cfg(debug_assertions)]
pub(crate) use test::is_refusing;
#[cfg(debug_assertions)]
use test::refuse;
#[cfg(debug_assertions)]
pub use test::refusing;

/// Lets tests simulate a filesystem that lacks an ability. Compiled to nothing in a release build.
#[cfg(debug_assertions)]
mod test {
    use std::cell::Cell;
    use std::sync::OnceLock;

    use rustix::io::Errno;

    use super::Call;

    thread_local! {
        static REFUSED: Cell<u8> = const { Cell::new(0) };
    }

    /// What `PITON_TEST_REFUSE` lists, for a process that a test starts: `exchange,rename-to-new,link,open-beneath,
    /// link-denied,set-mode,sync-one,watch`.
    fn refused_by_environment() -> u8 {
        static REFUSED: OnceLock<u8> = OnceLock::new();
        *REFUSED.get_or_init(|| {
            let names = std::env::var("PITON_TEST_REFUSE").unwrap_or_default();
            let call = |name: &str| match name {
                "exchange" => Call::Exchange as u8,
                "rename-to-new" => Call::RenameToNew as u8,
                "link" => Call::Link as u8,
                "open-beneath" => Call::OpenBeneath as u8,
                "link-denied" => Call::LinkDenied as u8,
                "set-mode" => Call::SetMode as u8,
                "sync-one" => Call::SyncOne as u8,
                "watch" => Call::Watch as u8,
                _ => 0,
            };
            names.split(',').map(call).fold(0, |all, one| all | one)
        })
    }

    pub(crate) fn is_refusing() -> bool {
        REFUSED.get() != 0
    }

    pub(super) fn refuse(call: Call) -> rustix::io::Result<()> {
        match (REFUSED.get() | refused_by_environment()) & call as u8 {
            0 => Ok(()),
            _ => Err(match call {
                Call::LinkDenied => Errno::ACCESS,
                Call::SetMode => Errno::PERM,
                _ => Errno::INVAL,
            }),
        }
    }

    /// Runs `act` with these calls refused on this thread, which then does all of an operation by itself.
    pub fn refusing<T>(calls: &[Call], act: impl FnOnce() -> T) -> T {
        REFUSED.set(calls.iter().fold(0, |all, call| all | *call as u8));
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
        REFUSED.set(0);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
