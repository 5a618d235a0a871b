//! Telling piton's own writing from anybody else's by what it holds: whole, but for its bits, or cut short.

use crate::capture::sink::{HashingSink, Trees};
use crate::capture::sound::is_sound;
use crate::workspace::History;
use piton_host::apply::{ApplyError, is_kept_open};
use piton_host::{Root, read_entry};
use piton_model::diff::TreeSource;
use piton_model::{Entry, ObjectId, Step, WorkspacePath};
use piton_store::StoreError;
use std::collections::HashMap;
use std::io::{self, Write};

/// What stands somewhere, beside the two ends of a step.
pub(crate) struct Compared {
    pub entry: Option<Entry>,
    /// It holds what was there before, whatever its bits are.
    pub before: bool,
    /// It holds what the operation puts there, whatever its bits are.
    pub after: bool,
    /// It can only be a part of what the operation puts there.
    pub is_unfinished: bool,
}

/// What was read of something that piton may have left.
pub(crate) struct FoundThere<'a> {
    pub trees: Trees<'a>,
    /// The bytes of its files, but for the largest.
    pub contents: HashMap<ObjectId, Vec<u8>>,
}

impl History {
    /// Whether something is one of a step's two ends but for its bits, and the store has all of it.
    pub(super) fn is_stored_but_for_bits(
        &self,
        found: &FoundThere<'_>,
        left: &Entry,
        step: &Step,
    ) -> Result<bool, StoreError> {
        for end in [&step.before, &step.after].into_iter().flatten() {
            if is_same_but_bits(&found.trees, left, end)? && is_sound(&self.store, end)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What stands at a path, and which of two ends that is but for the bits.
    pub(crate) fn compared_at(
        &self,
        root: &Root,
        path: &[u8],
        step: &Step,
    ) -> Result<Compared, ApplyError<StoreError>> {
        let sink = HashingSink::with_contents();
        let found = read_entry(root, path, &sink).unwrap_or_else(|never| match never {});
        let entry = found.map_err(|source| ApplyError::Path { path: step.path.clone(), source })?;
        let (fresh, contents) = sink.finish();
        let found = FoundThere { trees: Trees { fresh: &fresh, store: &self.store }, contents };
        let is_like = |end: &Option<Entry>| match (&entry, end) {
            (Some(entry), Some(end)) => is_same_but_bits(&found.trees, entry, end).map_err(ApplyError::Content),
            (entry, end) => Ok(entry.is_none() && end.is_none()),
        };
        let (before, after) = (is_like(&step.before)?, is_like(&step.after)?);
        let is_unfinished = match (&entry, &step.after) {
            (Some(entry), Some(wanted)) if !before && !after => {
                self.is_unfinished(&found, entry, wanted).map_err(ApplyError::Content)?
            }
            _ => false,
        };
        Ok(Compared { entry, before, after, is_unfinished })
    }

    /// Whether something can only be a part of what was to be written: piton's own writing, cut short by a crash, a power
    /// cut or a full disk. Its content tells: the wanted file from its first byte on, blocks that a power cut took read as
    /// zeros; or a part of the wanted folder.
    pub(crate) fn is_unfinished(
        &self,
        found: &FoundThere<'_>,
        left: &Entry,
        wanted: &Entry,
    ) -> Result<bool, StoreError> {
        // Not by recursion: a folder may be deeper than a stack.
        let mut todo = vec![(left.clone(), wanted.clone())];
        while let Some((left, wanted)) = todo.pop() {
            let (Entry::Folder { tree, .. }, Entry::Folder { tree: whole, .. }) = (&left, &wanted) else {
                if self.is_unfinished_file(found, &left, &wanted)? {
                    continue;
                }
                return Ok(false);
            };
            let (left, whole) = match (found.trees.tree(tree), found.trees.tree(whole)) {
                (Ok(left), Ok(whole)) => (left, whole),
                // What it should be cannot be told any more: better to keep it than to guess.
                (Err(StoreError::Damaged(_) | StoreError::Missing(_)), _)
                | (_, Err(StoreError::Damaged(_) | StoreError::Missing(_))) => return Ok(false),
                (Err(error), _) | (_, Err(error)) => return Err(error),
            };
            // Piton never makes a `.git`: somebody has worked here.
            if left.has_git {
                return Ok(false);
            }
            for (name, left) in left.entries() {
                match whole.get(name.as_bytes()) {
                    Some(wanted) if left == wanted => {}
                    Some(wanted) => todo.push((left.clone(), wanted.clone())),
                    None => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    fn is_unfinished_file(&self, found: &FoundThere<'_>, left: &Entry, wanted: &Entry) -> Result<bool, StoreError> {
        match (left, wanted) {
            (Entry::File { size: 0, .. }, Entry::File { .. }) => Ok(true),
            (Entry::File { size, blob, .. }, Entry::File { size: full, blob: whole, .. }) if size <= full => {
                let bytes = found.contents.get(blob);
                let kept = bytes.map(|_| Vec::new());
                let mut prefix = Prefix { left: *size, hasher: blake3::Hasher::new(), kept };
                match self.store.write_blob(whole, &mut prefix) {
                    Ok(_) if prefix.hasher.finalize().as_bytes() == &blob.0 => Ok(true),
                    Ok(_) => Ok(bytes.zip(prefix.kept).is_some_and(|(left, wanted)| is_torn(left, &wanted))),
                    Err(StoreError::Damaged(_) | StoreError::Missing(_)) => Ok(false),
                    Err(error) => Err(error),
                }
            }
            (Entry::Symlink { target: a }, Entry::Symlink { target: b }) => Ok(a == b),
            _ => Ok(false),
        }
    }
}

/// Whether two entries hold the same, whatever their bits are. What is damaged is not known to be.
pub(crate) fn is_same_but_bits(trees: &Trees<'_>, one: &Entry, other: &Entry) -> Result<bool, StoreError> {
    let is_same = || Ok(is_part(trees, one, other)? && is_part(trees, other, one)?);
    match is_same() {
        Err(StoreError::Damaged(_) | StoreError::Missing(_)) => Ok(false),
        is_same => is_same,
    }
}

/// Whether all that an entry has is in another one too, whatever its bits are.
pub(super) fn is_part(trees: &Trees<'_>, part: &Entry, whole: &Entry) -> Result<bool, StoreError> {
    // Not by recursion: a folder may be deeper than a stack.
    let mut todo = vec![(part.clone(), whole.clone())];
    while let Some((part, whole)) = todo.pop() {
        let is_in = match (&part, &whole) {
            (Entry::File { size, blob, .. }, Entry::File { size: full, blob: other, .. }) => {
                (size, blob) == (full, other)
            }
            (Entry::Folder { tree, .. }, Entry::Folder { tree: other, .. }) => {
                let (part, whole) = (trees.tree(tree)?, trees.tree(other)?);
                for (name, entry) in part.entries().iter().filter(|(name, _)| !is_kept_open(name.as_bytes())) {
                    match whole.get(name.as_bytes()) {
                        Some(other) => todo.push((entry.clone(), other.clone())),
                        None => return Ok(false),
                    }
                }
                !part.has_git
            }
            (part, whole) => part == whole,
        };
        if !is_in {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What stands at a path, read whole.
pub(crate) fn found_at<E>(root: &Root, path: &[u8], step: &WorkspacePath) -> Result<Option<Entry>, ApplyError<E>> {
    let found = read_entry(root, path, &HashingSink::default()).unwrap_or_else(|never| match never {});
    found.map_err(|source| ApplyError::Path { path: step.clone(), source })
}

/// Whether each block of a file is that of another, or was never written. Disks and file systems write blocks of 512 bytes
/// or a multiple of that whole.
fn is_torn(left: &[u8], wanted: &[u8]) -> bool {
    const BLOCK: usize = 512;
    let mut blocks = left.chunks(BLOCK).zip(wanted.chunks(BLOCK));
    left.len() == wanted.len() && blocks.all(|(left, wanted)| left == wanted || left.iter().all(|byte| *byte == 0))
}

/// Hashes the first bytes that are written to it, and keeps them where they are wanted.
struct Prefix {
    left: u64,
    hasher: blake3::Hasher,
    kept: Option<Vec<u8>>,
}

impl Write for Prefix {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.hasher.update(&bytes[..taken]);
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(&bytes[..taken]);
        }
        self.left -= taken as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_torn_where_whole_blocks_of_it_are_missing_and_nothing_else_differs() {
        let wanted = vec![7; 1200];
        let with = |range: std::ops::Range<usize>, byte: u8| {
            let mut left = wanted.clone();
            left[range].fill(byte);
            left
        };
        assert!(is_torn(&wanted, &wanted));
        assert!(is_torn(&with(0..512, 0), &wanted));
        assert!(is_torn(&with(1024..1200, 0), &wanted));
        assert!(!is_torn(&with(0..511, 0), &wanted), "somebody's edit");
        assert!(!is_torn(&with(0..512, 1), &wanted), "somebody's edit");
        assert!(!is_torn(&wanted[..600], &wanted), "the caller gives as much of one as of the other");
    }
}
