//! Removing what stands at the steps' own names once it is stored, and finding it where somebody moved it.

use super::bits::open_folder;
use super::entry::{make_readable, may_remove, remove};
use super::{Applier, ApplyError, Parents, Removal, at, is_absent, staged_step};
use crate::fail::point;
use crate::parallel::in_parallel;
use crate::read::Signatures;
use crate::rules::join;
use crate::sys;
use piton_model::WorkspacePath;
use piton_model::path::is_git;
use rustix::fs::{AtFlags, FileType, OFlags, statat};
use rustix::io::Errno;
use std::os::fd::AsFd;

impl Applier<'_> {
    /// Checks that the old content of a step can be removed, while a rollback is still possible.
    pub fn check_removable<E>(&self, number: usize) -> Result<(), ApplyError<E>> {
        let path = &self.steps[number].path;
        let parent = match self.root.parent(path) {
            Err(error) if is_absent(&error) => return Ok(()),
            parent => parent.map_err(at(path))?.0,
        };
        let name = self.staged_name(number);
        match may_remove(parent.as_fd(), &name) {
            Err((_, error)) if is_absent(&error) => Ok(()),
            // Reported under the path that the user knows it by.
            Err((kept, source)) => {
                let kept = kept.get(name.len() + 1..).unwrap_or_default();
                let whole = WorkspacePath::new(join(path.as_bytes(), kept)).unwrap_or_default();
                Err(ApplyError::Path { path: if kept.is_empty() { path.clone() } else { whole }, source })
            }
            Ok(()) => Ok(()),
        }
    }

    /// Opens folders whose final bits deny access to their owner, so that something can be removed from them; returns
    /// whether there are any.
    pub fn open_closed<E>(&self) -> Result<bool, ApplyError<E>> {
        let closed: Vec<_> = self.folders.iter().filter(|f| f.after & 0o700 != 0o700).collect();
        closed.iter().try_for_each(|f| open_folder(self.root, f).map_err(at(&f.path)))?;
        Ok(!closed.is_empty())
    }

    /// Removes what is at the steps' own names if it is what was read there; the caller has made sure that it is
    /// stored. Nothing is removed that was not read. Returns what stays, by step.
    pub fn clear_all<E: Send>(&self, read: &[Option<Signatures>]) -> Result<Vec<(usize, Removal)>, ApplyError<E>> {
        let clear = |parents: &mut Parents<'_>, number: usize| {
            point("apply:clear").map_err(at(&self.steps[number].path))?;
            match &read[number] {
                Some(read) => self.clear(parents, number, read),
                None => Ok(Removal::Gone),
            }
        };
        let removed = in_parallel(self.steps.len(), || Parents::new(self.root), clear)?;
        Ok(removed.into_iter().enumerate().filter(|(_, removal)| !matches!(removal, Removal::Gone)).collect())
    }

    /// Whether the folder of a step is no longer at its path.
    pub fn is_folder_gone(&self, number: usize) -> bool {
        self.root.parent(&self.steps[number].path).is_err_and(|error| is_absent(&error))
    }

    /// Searches the whole root for the own names of steps whose folders somebody moved; with the path that each step
    /// has there.
    pub fn find_moved(&self, numbers: &[usize]) -> Vec<(usize, WorkspacePath)> {
        let mut found = Vec::new();
        let mut todo = vec![Vec::new()];
        let mut space = Vec::new();
        while let (Some(folder), true) = (todo.pop(), found.len() < numbers.len()) {
            let Ok(fd) = self.root.open_beneath(&folder, OFlags::RDONLY | OFlags::DIRECTORY) else { continue };
            // A folder that cannot be listed cannot be searched.
            let _ = sys::list(&fd, &mut space, |name, kind| {
                let name = name.to_bytes();
                let own = staged_step(name).map(|(_, number)| number);
                let own = own.filter(|number| numbers.contains(number) && self.staged_name(*number) == name);
                match own.and_then(|number| Some((number, self.steps[number].path.split()?.1))) {
                    Some((number, step)) => {
                        found.extend(WorkspacePath::new(join(&folder, step.as_bytes())).map(|path| (number, path)));
                    }
                    None if matches!(kind, FileType::Directory | FileType::Unknown) && !is_git(name) => {
                        todo.push(join(&folder, name));
                    }
                    None => {}
                }
            });
        }
        found
    }

    /// Makes what is at a step's own name readable, where only the bits of the user's own files prevent that: it is
    /// about to be removed, so its bits no longer matter.
    pub fn make_readable(&self, number: usize) {
        if let Ok((parent, _)) = self.root.parent(&self.steps[number].path) {
            make_readable(parent.as_fd(), &self.staged_name(number));
        }
    }

    fn clear<E>(&self, parents: &mut Parents<'_>, number: usize, read: &Signatures) -> Result<Removal, ApplyError<E>> {
        let path = &self.steps[number].path;
        match parents.of(path) {
            Ok((parent, _)) => {
                let name = self.staged_name(number);
                // It was put there by the swap, so this is another folder.
                match statat(parent, &name[..], AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => Ok(Removal::FolderGone),
                    _ => Ok(remove(parent, &name, Some(read))),
                }
            }
            Err(error) if is_absent(&error) => Ok(Removal::FolderGone),
            Err(error) => Err(error).map_err(at(path)),
        }
    }
}
