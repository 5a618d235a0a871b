//! What stands at the names that an operation owns: telling piton's own writing from anybody else's, storing what is not
//! known, and removing it. Rollback, the end of an operation and recovery all clear up through here.

use std::collections::HashMap;
use std::io::{self, Write};

use piton_host::apply::{Applier, ApplyError};
use piton_host::{Lock, Root, clock, read_entry};
use piton_model::diff::{self, Counts, TreeSource};
use piton_model::edit::{Edit, edit};
use piton_model::plan::{Layered, RootState};
use piton_model::{Checkpoint, CheckpointId, Entry, ObjectId, Record, WorkspacePath};
use piton_store::{Purpose, StoreError};

use crate::operate::random_error;
use crate::sink::{HashingSink, StoringSink, Trees};
use crate::sound::is_sound;
use crate::workspace::Workspace;

impl Workspace {
    /// Removes what stands at the steps' own names, storing first what is not known. What cannot be stored stays.
    ///
    /// Returns the paths beside which something unknown stood, and the checkpoint that has it now.
    pub(crate) fn clear_all(
        &self,
        lock: &Lock,
        applier: &Applier<'_>,
        before: &Checkpoint,
    ) -> Result<(Vec<WorkspacePath>, Option<CheckpointId>), ApplyError<StoreError>> {
        let mut unknown = Vec::new();
        let mut unsound = Vec::new();
        for (number, step) in applier.steps.iter().enumerate() {
            let sink = HashingSink::with_contents();
            let left = read_entry(applier.root, &applier.staged_path(number), &sink)
                .unwrap_or_else(|never| match never {})
                .map_err(|source| ApplyError::Path { path: step.path.clone(), source })?;
            if let Some(left) = left.as_ref().filter(|left| Some(*left) == step.before.as_ref())
                && !is_sound(&self.store, left).map_err(ApplyError::Content)?
            {
                unsound.push(number);
            }
            let Some(left) = left.filter(|l| Some(l) != step.before.as_ref() && Some(l) != step.after.as_ref()) else {
                continue;
            };
            let (fresh, contents) = sink.finish();
            let found = Found { trees: Trees { fresh: &fresh, store: &self.store }, contents };
            let unfinished = step.after.as_ref().map(|after| self.is_unfinished(&found, &left, after)).transpose();
            if unfinished.map_err(ApplyError::Content)? != Some(true) {
                unknown.push(number);
            }
        }
        self.store_again(lock, applier, &unsound)?;
        let rescued = match &unknown[..] {
            [] => None,
            steps => Some(self.rescue(lock, applier, steps, before).map_err(ApplyError::Content)?),
        };
        for (number, step) in applier.steps.iter().enumerate() {
            let left = if unknown.contains(&number) {
                found_at(applier.root, &applier.staged_path(number), &step.path)?
            } else {
                None
            };
            if !left.is_some_and(|entry| entry.holds_skipped()) {
                applier.clear(number)?;
            }
        }
        Ok((unknown.into_iter().map(|n| applier.steps[n].path.clone()).collect(), rescued))
    }

    /// Whether something can only be a part of what was to be written: piton's own writing, cut short by a crash, a power
    /// cut or a full disk. Its content tells: the wanted file from its first byte on, blocks that a power cut took read as
    /// zeros; or a part of the wanted folder.
    pub(crate) fn is_unfinished(&self, found: &Found<'_>, left: &Entry, wanted: &Entry) -> Result<bool, StoreError> {
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

    fn is_unfinished_file(&self, found: &Found<'_>, left: &Entry, wanted: &Entry) -> Result<bool, StoreError> {
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

    /// Stores what stands at some steps' own names, as a checkpoint of the state before with those paths as they
    /// really were.
    pub(crate) fn rescue(
        &self,
        lock: &Lock,
        applier: &Applier<'_>,
        steps: &[usize],
        before: &Checkpoint,
    ) -> Result<CheckpointId, StoreError> {
        let sink = StoringSink::new(self.store.write(lock)?.allowing(Purpose::Operation)).distrusting();
        let mut edits = Vec::new();
        for number in steps {
            let found = read_entry(applier.root, &applier.staged_path(*number), &sink)?;
            let path = applier.steps[*number].path.clone();
            let entry = found.map_err(|source| StoreError::Io {
                what: "cannot read",
                path: path.as_path().to_owned(),
                source,
            })?;
            edits.push((path, Edit::Put(entry)));
        }
        let (mut writer, fresh) = sink.finish();
        writer.allow(Purpose::End);
        let trees = Trees { fresh: &fresh, store: &self.store };
        let (tree, new) = edit(&trees, &before.root.tree, &edits)?;
        for tree in new.values() {
            writer.tree(tree)?;
        }
        let layered = Layered { over: &new, under: &trees };
        let changes = diff::changes(&layered, Some(&before.root.tree), Some(&tree))?;
        let id = CheckpointId::from_random(clock::random().map_err(random_error)?);
        writer.record(Record::Checkpoint(Checkpoint {
            id: id.clone(),
            parent: Some(before.id.clone()),
            created_at: self.environment.clock.now(),
            root: RootState { tree, mode: before.root.mode },
            changes: Counts::of(&changes),
            skipped: diff::skipped(&layered, &tree)?.len() as u64,
            unsettled: Vec::new(),
            // Who wrote it in the last moment nobody knows; what the capture before found it lists itself.
            owned: Vec::new(),
            ..before.clone()
        }))?;
        writer.commit(true, false)?;
        Ok(id)
    }
}

/// What stands at a path, read whole.
pub(crate) fn found_at<E>(root: &Root, path: &[u8], step: &WorkspacePath) -> Result<Option<Entry>, ApplyError<E>> {
    let found = read_entry(root, path, &HashingSink::default()).unwrap_or_else(|never| match never {});
    found.map_err(|source| ApplyError::Path { path: step.clone(), source })
}

/// What was read of something that piton may have left.
pub(crate) struct Found<'a> {
    pub trees: Trees<'a>,
    /// The bytes of its files, but for the largest.
    pub contents: HashMap<ObjectId, Vec<u8>>,
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
