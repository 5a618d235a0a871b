//! Making what an operation put in place, or removed, survive a power cut.

use super::{Applier, ApplyError, at, is_absent, known};
use crate::fail::point;
use crate::rules::parent_of;
use crate::sys;
use piton_model::{Entry, WorkspacePath};
use rustix::fs::{OFlags, fstat};
use std::io::{self};
use std::os::fd::OwnedFd;

/// How many files and folders are held open at once to be synced.
const AT_A_TIME: usize = 16;

/// With more new files than this, their whole filesystem is synced instead of one file at a time.
const FEW: usize = 64;

impl Applier<'_> {
    /// Makes everything that was put in place survive a power cut: once, at the end, before any old content is removed.
    pub fn sync_swapped<E>(&self) -> Result<(), ApplyError<E>> {
        point("apply:sync-swapped").map_err(at(&WorkspacePath::root()))?;
        let new = || self.steps.iter().filter(|s| s.after.is_some());
        let has_folders = new().any(|s| s.after.as_ref().is_some_and(Entry::is_folder));
        let mut parents: Vec<&[u8]> = self.steps.iter().map(|s| parent_of(s.path.as_bytes())).collect();
        parents.dedup();
        if parents.len() > FEW || self.is_much() || has_folders {
            return self.sync_all().map_err(at(&WorkspacePath::root()));
        }
        let files = new().filter(|s| matches!(s.after, Some(Entry::File { .. })));
        let files = files.map(|s| (s.path.as_bytes(), OFlags::RDONLY | OFlags::NONBLOCK));
        let folders = parents.iter().map(|p| (*p, OFlags::RDONLY | OFlags::DIRECTORY));
        let mut opened = Vec::new();
        for (path, flags) in files.chain(folders) {
            match self.root.open_beneath(path, flags) {
                Ok(fd) => {
                    opened.push(fd);
                    // File handles are limited.
                    if opened.len() == AT_A_TIME {
                        sync_each(&opened).map_err(at(&WorkspacePath::root()))?;
                        opened.clear();
                    }
                }
                // Somebody moved it away: nothing to sync.
                Err(error) if is_absent(&error) => {}
                // A file may have mode 0.
                Err(_) => return self.sync_all().map_err(at(&known(path))),
            }
        }
        sync_each(&opened).map_err(at(&WorkspacePath::root()))
    }

    /// Makes the removal of the steps' own names survive a power cut: once the end is recorded, nobody looks for them
    /// any more.
    pub fn sync_cleared<E>(&self) -> Result<(), ApplyError<E>> {
        point("apply:sync-cleared").map_err(at(&WorkspacePath::root()))?;
        let mut parents: Vec<&[u8]> = self.steps.iter().map(|s| parent_of(s.path.as_bytes())).collect();
        parents.dedup();
        if parents.len() > FEW {
            return self.sync_all().map_err(at(&WorkspacePath::root()));
        }
        let mut opened = Vec::new();
        for path in parents {
            match self.root.open_beneath(path, OFlags::RDONLY | OFlags::DIRECTORY) {
                Ok(fd) => opened.push(fd),
                Err(error) if is_absent(&error) => {}
                Err(_) => return self.sync_all().map_err(at(&known(path))),
            }
        }
        sync_each(&opened).map_err(at(&WorkspacePath::root()))
    }

    /// Lets the disk start writing what was staged while `act` runs.
    pub fn while_syncing<T, E>(&self, act: impl FnOnce() -> Result<T, ApplyError<E>>) -> Result<T, ApplyError<E>> {
        if !self.is_much() || crate::fail::is_armed() {
            return act();
        }
        while_doing(|| Ok(sys::sync_filesystem(self.root.fd())?), act)
    }

    /// Whether enough is put in place to sync its filesystem as a whole.
    fn is_much(&self) -> bool {
        self.steps.iter().filter(|s| s.after.is_some()).count() > FEW
    }

    fn sync_all(&self) -> io::Result<()> {
        sys::sync_filesystem(self.root.fd())?;
        // Folders of other filesystems that are mounted in the workspace.
        let device = fstat(self.root.fd())?.st_dev;
        let mut synced = vec![device];
        for step in self.steps {
            let Ok((parent, _)) = self.root.parent(&step.path) else { continue };
            let device = fstat(&parent)?.st_dev;
            if !synced.contains(&device) {
                sys::sync_filesystem(&parent)?;
                synced.push(device);
            }
        }
        Ok(())
    }
}

/// Syncs files and folders several at once: they then share the journal's commits instead of waiting for one each.
fn sync_each(opened: &[OwnedFd]) -> io::Result<()> {
    /// More than the number of cores, since the disk does the work.
    const AT_ONCE: usize = 4;
    let at_once = if sys::is_refusing() { 1 } else { AT_ONCE };
    let share = opened.len().div_ceil(at_once).max(1);
    std::thread::scope(|scope| {
        let sync = |fds: &[OwnedFd]| fds.iter().try_for_each(crate::disk::sync);
        let others: Vec<_> = opened.chunks(share).skip(1).map(|fds| scope.spawn(move || sync(fds))).collect();
        let first = opened.chunks(share).next().map_or(Ok(()), sync);
        let joined = others.into_iter().map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.fold(first, |all, one| all.and(one))
    })
}

/// Runs two things at the same time. The system reports a failed write only once, so the final sync would miss an error
/// that this one was told of.
fn while_doing<T, E>(
    beside: impl FnOnce() -> io::Result<()> + Send,
    act: impl FnOnce() -> Result<T, ApplyError<E>>,
) -> Result<T, ApplyError<E>> {
    std::thread::scope(|scope| {
        let beside = scope.spawn(beside);
        let acted = act()?;
        let done = beside.join().unwrap_or_else(|_| Err(io::Error::other("the sync was broken off")));
        done.map_err(at(&WorkspacePath::root()))?;
        Ok(acted)
    })
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn what_fails_beside_is_told() {
        let refused = || Err(Errno::IO.into());
        let told = while_doing::<_, ()>(refused, || Ok(1));
        assert!(
            matches!(told, Err(ApplyError::Path { source, .. }) if source.raw_os_error() == Some(Errno::IO.raw_os_error()))
        );
        assert!(matches!(while_doing::<_, ()>(|| Ok(()), || Ok(1)), Ok(1)));
    }
}
