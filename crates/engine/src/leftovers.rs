//! What stands at the names that an operation owns: telling piton's own writing from anybody else's, storing what is not
//! known, and removing it. Rollback, the end of an operation and recovery all clear up through here.

use std::io::{self, Write};

use piton_host::apply::{Applier, ApplyError};
use piton_host::{Lock, Root, clock, read_entry};
use piton_model::diff::{self, Counts, TreeSource};
use piton_model::edit::{Edit, edit};
use piton_model::plan::{Layered, RootState};
use piton_model::{Checkpoint, CheckpointId, Entry, Record, WorkspacePath};
use piton_store::{Purpose, StoreError};

use crate::operate::random_error;
use crate::sink::{HashingSink, StoringSink, Trees};
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
        for (number, step) in applier.steps.iter().enumerate() {
            let sink = HashingSink::default();
            let left = read_entry(applier.root, &applier.staged_path(number), &sink)
                .unwrap_or_else(|never| match never {})
                .map_err(|source| ApplyError::Path { path: step.path.clone(), source })?;
            let Some(left) = left.filter(|l| Some(l) != step.before.as_ref() && Some(l) != step.after.as_ref()) else {
                continue;
            };
            let (fresh, _) = sink.finish();
            let trees = Trees { fresh: &fresh, store: &self.store };
            let unfinished = step.after.as_ref().map(|after| self.is_unfinished(&trees, &left, after)).transpose();
            if unfinished.map_err(ApplyError::Content)? != Some(true) {
                unknown.push(number);
            }
        }
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

    /// Whether something can only be a beginning of what was to be written: piton's own writing, cut short by a crash,
    /// a power cut or a full disk. Its content tells: a part of the wanted file from its first byte, or of the wanted
    /// folder.
    pub(crate) fn is_unfinished<S: TreeSource<Error = StoreError>>(
        &self,
        trees: &S,
        left: &Entry,
        wanted: &Entry,
    ) -> Result<bool, StoreError> {
        match (left, wanted) {
            (Entry::File { size: 0, .. }, Entry::File { .. }) => Ok(true),
            (Entry::File { size, blob, .. }, Entry::File { size: full, blob: whole, .. }) if size <= full => {
                let mut prefix = PrefixHash { left: *size, hasher: blake3::Hasher::new() };
                match self.store.write_blob(whole, &mut prefix) {
                    Ok(_) => Ok(prefix.hasher.finalize().as_bytes() == &blob.0),
                    // What it should be cannot be told any more: better to keep it than to guess.
                    Err(StoreError::Damaged(_) | StoreError::Missing(_)) => Ok(false),
                    Err(error) => Err(error),
                }
            }
            (Entry::Folder { tree, .. }, Entry::Folder { tree: whole, .. }) => {
                let (left, whole) = (trees.tree(tree)?, trees.tree(whole)?);
                // Piton never makes a `.git`: somebody has worked here.
                if left.has_git {
                    return Ok(false);
                }
                for (name, left) in left.entries() {
                    let Some(wanted) = whole.get(name.as_bytes()) else { return Ok(false) };
                    if left != wanted && !self.is_unfinished(trees, left, wanted)? {
                        return Ok(false);
                    }
                }
                Ok(true)
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
        let sink = StoringSink::new(self.store.write(lock)?.allowing(Purpose::Operation));
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

/// Hashes the first bytes that are written to it.
struct PrefixHash {
    left: u64,
    hasher: blake3::Hasher,
}

impl Write for PrefixHash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.hasher.update(&bytes[..taken]);
        self.left -= taken as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
