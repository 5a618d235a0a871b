//! Permission bits of files and folders in the workspace: reading them, and opening what an operation must read or write.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use piton_model::{Entry, FolderMode, WorkspacePath};
use rustix::fs::{FileType, Stat, fstat};

use crate::root::Root;
use crate::sys;

pub fn mode_of(root: &Root, path: &WorkspacePath) -> io::Result<u16> {
    Ok((handle_on(root, path)?.1.st_mode & 0o7777) as u16)
}

/// Sets the permission bits of a folder or a file and returns the resulting ones.
pub(super) fn set_mode(root: &Root, path: &WorkspacePath, mode: u16) -> io::Result<u16> {
    let (handle, stat) = handle_on(root, path)?;
    if (stat.st_mode & 0o7777) as u16 == mode {
        return Ok(mode);
    }
    sys::set_mode(handle.as_fd(), mode)?;
    Ok((fstat(&handle)?.st_mode & 0o7777) as u16)
}

/// Gives a folder the bits it needs while its entries are swapped. Files need none.
pub(super) fn open_folder(root: &Root, folder: &FolderMode) -> io::Result<()> {
    let (_, stat) = handle_on(root, &folder.path)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => set_mode(root, &folder.path, folder.open()).map(drop),
        _ => Ok(()),
    }
}

/// A handle on a folder or a file that requires no permission to read it.
fn handle_on(root: &Root, path: &WorkspacePath) -> io::Result<(OwnedFd, Stat)> {
    let handle = root.open_beneath(path.as_bytes(), sys::HANDLE)?;
    let stat = fstat(&handle)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory | FileType::RegularFile => Ok((handle, stat)),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// The change of bits that would let the owner read something again, if its bits are all that prevents this process
/// from reading it: it belongs to the user, is of the same kind as `wanted`, and has no other name.
pub fn way_to_readable(root: &Root, path: &WorkspacePath, wanted: &Entry) -> Option<FolderMode> {
    let (_, stat) = handle_on(root, path).ok()?;
    let (kind, needed, after) = match wanted {
        Entry::File { mode, .. } => (FileType::RegularFile, 0o400, *mode),
        Entry::Folder { mode, .. } => (FileType::Directory, 0o500, *mode),
        _ => return None,
    };
    let before = (stat.st_mode & 0o7777) as u16;
    let is_own = stat.st_uid == sys::file_user();
    let is_of_kind = FileType::from_raw_mode(stat.st_mode) == kind;
    let has_other_names = kind == FileType::RegularFile && stat.st_nlink != 1;
    let helps = before & needed != needed && after & needed == needed;
    (is_own && is_of_kind && !has_other_names && helps).then(|| FolderMode { path: path.clone(), before, after })
}

/// Bits that were set so that something can be read, before an operation that knows of them is recorded: restored on
/// drop, unless that operation has taken over.
#[derive(Debug)]
pub struct Reopened<'r> {
    root: &'r Root,
    ways: Vec<FolderMode>,
}

impl<'r> Reopened<'r> {
    pub fn new(root: &'r Root) -> Self {
        Self { root, ways: Vec::new() }
    }

    pub fn has(&self, way: &FolderMode) -> bool {
        self.ways.iter().any(|set| set.path == way.path)
    }

    /// Sets the bits; false if the system refuses.
    pub fn go(&mut self, way: FolderMode) -> bool {
        let is_set = set_mode(self.root, &way.path, way.after).is_ok();
        if is_set {
            self.ways.push(way);
        }
        is_set
    }

    pub fn is_empty(&self) -> bool {
        self.ways.is_empty()
    }

    pub fn ways(&self) -> &[FolderMode] {
        &self.ways
    }

    /// Leaves the bits as they are now: a recorded operation knows what they were.
    pub fn keep(mut self) {
        self.ways.clear();
    }
}

impl Drop for Reopened<'_> {
    fn drop(&mut self) {
        // After a panic the record of them remains, and the next command restores them.
        if !std::thread::panicking() {
            self.ways.iter().rev().for_each(|way| drop(set_mode(self.root, &way.path, way.before)));
        }
    }
}

/// Restores bits that an interrupted process had set, where they are still as it set them.
pub fn close_again(root: &Root, ways: &[FolderMode]) {
    for way in ways.iter().rev() {
        if mode_of(root, &way.path).is_ok_and(|mode| mode == way.after) {
            let _ = set_mode(root, &way.path, way.before);
        }
    }
}
