//! Detecting changes of git's indexes, so that other paths may be tracked now than when a folder was last listed.
//!
//! Each scan calls `stat` on the index of every repository. Only a changed one is read, and then only those folders are
//! listed again in which something is ignored, or captured although it is ignored.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use piton_model::SkipReason;

use crate::git::{TrackedAt, index_signature};
use crate::index::{Index, Kind};
use crate::root::Root;
use crate::rules::{FolderRules, Rules, join, parent_of};
use crate::slots::Slot;
use crate::walk::is_young;

/// A stamp that never matches, so that git's indexes are read again.
pub(crate) const NONE_WILL_DO: u64 = u64::MAX;

/// What `stat` says of git's indexes, taken before any of them is read.
pub(crate) struct Stamp {
    number: u64,
    /// The repositories it covers, in path order.
    repositories: Vec<Vec<u8>>,
}

impl Stamp {
    /// The stamp of the repositories that the index knows, and of the one around the workspace.
    pub(crate) fn take(root: &Root, rules: &Rules, index: Option<&Index>, now_ns: i64) -> Self {
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        let mut has_young = false;
        let mut add = |signature: Option<crate::index::Signature>| {
            let signature = signature.unwrap_or_default();
            has_young |= is_young(&signature, now_ns);
            for number in [signature.size, signature.mtime as u64, signature.ctime as u64, signature.inode] {
                hasher.update(&number.to_le_bytes());
            }
        };
        if let Some(above) = &rules.above {
            add(index_signature(above));
        }
        let mut repositories = Vec::new();
        for folder in index.into_iter().flat_map(Index::folders).filter(|folder| folder.head().has_git) {
            add(index_signature(&root.path().join(OsStr::from_bytes(folder.path()))));
            repositories.push(folder.path().to_vec());
        }
        // If one is as young as this scan, its next change may not change its times.
        let number = if has_young { NONE_WILL_DO } else { hasher.digest() >> 1 };
        Self { number, repositories }
    }

    /// Whether an index was made with git's indexes as they are now.
    pub(crate) fn holds_for(&self, index: &Index) -> bool {
        self.number == index.tracked && self.number != NONE_WILL_DO
    }

    /// The number for the new index. A repository that was unknown when the stamp was taken is examined next time.
    pub(crate) fn for_slots(&self, slots: &[Slot<'_>]) -> u64 {
        let known = self.repositories.iter().map(|path| &path[..]);
        if repositories(slots).eq(known) { self.number } else { NONE_WILL_DO }
    }
}

/// The folders with a `.git`, in path order.
pub(crate) fn repositories<'a>(slots: &'a [Slot<'_>]) -> impl Iterator<Item = &'a [u8]> {
    let has_git = |slot: &&Slot<'_>| match slot {
        Slot::Known(view) => view.head().has_git,
        Slot::Listed(node) => node.has_git,
    };
    slots.iter().filter(has_git).map(Slot::path)
}

/// The folders of the index whose captured files may differ now that git's indexes changed.
pub(crate) fn suspects(
    root: &Root,
    rules: &Rules,
    index: &Index,
    known: &impl Fn(&[u8]) -> Option<FolderRules>,
) -> Vec<usize> {
    let mut found = Vec::new();
    for at in 0..index.len() {
        let folder = index.folder(at);
        let head = folder.head();
        if head.partly.is_some() {
            found.push(at);
            found.extend(index.find(parent_of(folder.path())));
        }
        if !head.holds_skipped {
            continue;
        }
        let is_tracked = |name: &[u8]| {
            let path = join(folder.path(), name);
            rules.level_above(root, &path, known).tracked_at(&path) != TrackedAt::Nothing
        };
        if folder.entries().any(|e| e.kind == Kind::Skipped(SkipReason::Ignored) && is_tracked(e.name)) {
            found.push(at);
        }
    }
    found
}
