//! Comparing `stat` with the index: the folders in which something may have changed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use piton_model::SkipReason;

use crate::git::is_worktree;
use crate::index::{FolderView, Index, Kind, Signature};
use crate::parallel::together;
use crate::root::{Nearby, Root};
use crate::rules::parent_of;
use crate::walk::GitStamp;

/// The folders of the index in which something may have changed.
pub(super) fn suspects(root: &Root, index: &Index, threads: usize) -> Vec<usize> {
    /// Folders that a thread takes at a time: enough that they share a prefix, few since one may contain thousands of
    /// files.
    const SHARE: usize = 16;
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    let work = || {
        let mut mine = Vec::new();
        let mut path = Vec::new();
        loop {
            let from = next.fetch_add(SHARE, Ordering::Relaxed);
            if from >= index.len() {
                break;
            }
            let share = from..(from + SHARE).min(index.len());
            // In path order, all share whatever the first and the last have in common.
            let (first, last) = (index.folder(share.start).path(), index.folder(share.end - 1).path());
            let nearby = root.nearby(common_folder(first, last));
            mine.extend(share.filter(|at| is_suspect(&nearby, index.folder(*at), &mut path)));
        }
        found.lock().unwrap_or_else(|e| e.into_inner()).append(&mut mine);
    };
    together(threads.min(index.len() / SHARE + 1), work);
    found.into_inner().unwrap_or_else(|e| e.into_inner())
}

/// The innermost folder that contains two folders, or is one of them.
fn common_folder<'a>(a: &'a [u8], b: &[u8]) -> &'a [u8] {
    let common = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let ends = |path: &[u8]| path.len() == common || path[common] == b'/';
    if ends(a) && ends(b) { &a[..common] } else { parent_of(&a[..common]) }
}

fn is_suspect(nearby: &Nearby<'_>, folder: FolderView<'_>, path: &mut Vec<u8>) -> bool {
    let head = folder.head();
    if head.young {
        return true;
    }
    path.clear();
    path.extend_from_slice(folder.path());
    let stat = |path: &mut Vec<u8>| {
        path.push(0);
        let stat = std::ffi::CStr::from_bytes_with_nul(path).ok().and_then(|p| nearby.peek(p).ok());
        path.pop();
        stat
    };
    if stat(path).is_none_or(|s| Signature::of_folder(&s) != head.signature) {
        return true;
    }
    if head.has_git && GitStamp::of(nearby.root(), folder.path()).number != head.git_stamp {
        return true;
    }
    if !path.is_empty() {
        path.push(b'/');
    }
    let base = path.len();
    folder.entries().any(|entry| {
        let is_folder = entry.signature.mode & 0o170_000 == 0o040_000;
        match entry.kind {
            // What could not be read may be readable now without any time having changed: the user joined a group, or a
            // disk failed temporarily.
            Kind::Skipped(SkipReason::Unreadable) => return true,
            // A folder has its own block; what is in an ignored one does not matter.
            Kind::Folder | Kind::Skipped(SkipReason::Ignored | SkipReason::Excluded) if is_folder => return false,
            // What is in these does not matter either; when one appears or disappears, the folder's times change.
            Kind::Skipped(SkipReason::Store | SkipReason::AgentState | SkipReason::GitName) => return false,
            _ => {}
        }
        if entry.young {
            return true;
        }
        path.truncate(base);
        path.extend_from_slice(entry.name);
        // Without its repository it is an ordinary folder.
        let is_worktree = |path: &[u8]| is_worktree(&nearby.root().path().join(OsStr::from_bytes(path)));
        if entry.kind == Kind::Skipped(SkipReason::Worktree) && !is_worktree(path) {
            return true;
        }
        let signature = |s| if is_folder { Signature::of_folder(&s) } else { Signature::of(&s) };
        stat(path).is_none_or(|s| signature(s) != entry.signature)
    })
}
