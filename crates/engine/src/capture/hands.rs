//! What shows the user's own hand: files that they edited not long ago, editors that have one open, and what git changed
//! at their word.

use std::collections::{HashMap, HashSet};

use piton_host::git::{Limits, Repository};
use piton_host::is_open_in_editor;
use piton_model::git::Head;
use piton_model::{Timestamp, WorkspacePath};
use piton_store::{CheckpointRow, StoreError};

use crate::workspace::History;

/// How long an edit by hand makes a later change of the same file doubtful, in milliseconds.
const LONG: i64 = 2 * 3_600_000;

/// As many files at once are not edited by hand, but by some program of the user's.
const BY_HAND: usize = 20;

/// Of more paths than this nobody asks the file system for editors.
const MOST_ASKED: usize = 2_000;

impl History {
    /// When the user last edited some paths by hand, in nanoseconds since 1970: found outside every window, few at once, and
    /// while git's HEAD stayed where it was.
    pub(crate) fn hand_edits(
        &self,
        paths: &HashSet<&WorkspacePath>,
    ) -> Result<HashMap<WorkspacePath, i64>, StoreError> {
        let since = Timestamp(self.environment.clock.now().0 - LONG);
        let mut by_checkpoint: Vec<(u64, Timestamp, Vec<WorkspacePath>)> = Vec::new();
        for (seq, path, at) in self.store.yours_since(self.record.line, since)? {
            match by_checkpoint.last_mut() {
                Some((last, _, paths)) if *last == seq => paths.push(path),
                _ => by_checkpoint.push((seq, at, vec![path])),
            }
        }
        let mut edits = HashMap::new();
        for (seq, at, found) in by_checkpoint {
            let is_asked = found.iter().any(|path| paths.contains(path));
            if found.len() >= BY_HAND || !is_asked || self.has_head_moved_at(seq)? {
                continue;
            }
            edits.extend(found.into_iter().map(|path| (path, at.0.saturating_mul(1_000_000))));
        }
        Ok(edits)
    }

    /// Whether git's HEAD moved between a checkpoint and the one before it.
    fn has_head_moved_at(&self, seq: u64) -> Result<bool, StoreError> {
        let Some(row) = self.store.checkpoint_numbered(seq)? else { return Ok(false) };
        let Some(parent) = &row.checkpoint.parent else { return Ok(false) };
        let Some(parent) = self.store.checkpoint(parent)? else { return Ok(false) };
        if row.checkpoint.git == parent.checkpoint.git {
            return Ok(false);
        }
        let (then, now) = (self.git_at(&parent)?, self.git_at(&row)?);
        Ok(then.zip(now).is_some_and(|(then, now)| then.head != now.head))
    }

    /// Whether an editor has a path open.
    pub(crate) fn is_being_edited(&self, path: &WorkspacePath) -> bool {
        is_open_in_editor(&self.path.join(path.as_path()))
    }

    /// Which of some changed paths are what git says since its HEAD or its index moved; none where neither did. `deleted` ones
    /// only where HEAD moved: of what is in no index, git may never have known.
    pub(crate) fn as_in_git(
        &self,
        parent: &CheckpointRow,
        paths: &[(&WorkspacePath, bool)],
    ) -> Result<HashSet<WorkspacePath>, StoreError> {
        let Some(repository) = self.found_repository() else { return Ok(HashSet::new()) };
        if parent.checkpoint.git.is_none() || paths.is_empty() {
            return Ok(HashSet::new());
        }
        let has_head_moved = match self.git_at(parent)? {
            Some(then) => head_of(&repository) != then.head,
            None => false,
        };
        let since = parent.checkpoint.created_at.0.saturating_mul(1_000_000);
        if !has_head_moved && repository.index_written().is_none_or(|written| written < since) {
            return Ok(HashSet::new());
        }
        let asked: Vec<&(&WorkspacePath, bool)> = paths.iter().filter(|(_, gone)| has_head_moved || !gone).collect();
        let names: Vec<&[u8]> = asked.iter().map(|(path, _)| path.as_bytes()).collect();
        let agreeing = repository.agreeing(&names);
        Ok(asked
            .into_iter()
            .zip(agreeing)
            .filter(|(_, agrees)| *agrees)
            .map(|((path, _), _)| (*path).clone())
            .collect())
    }
}

fn head_of(repository: &Repository) -> Head {
    repository.read(&Limits { index_bytes: 0, ..Limits::default() }, None).head
}

/// Whether so many paths are worth asking the file system about.
pub(crate) fn are_few(paths: usize) -> bool {
    paths <= MOST_ASKED
}
