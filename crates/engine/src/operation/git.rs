//! The repository's state, kept with each checkpoint: read without git, and nothing is ever written to `.git`.
//!
//! Kept as an object, so that a state which did not change takes nothing. While neither `.git` nor the workspace changed
//! since the last capture, it is not even read.

use piton_host::Scan;
use piton_host::git::{Limits, Repository, SeenByCapture};
use piton_model::ObjectId;
use piton_model::git::{GitState, Head};
use piton_store::{CheckpointRow, GitNote, StoreError, Writer};

use crate::history::changes::OwnedChange;
use crate::view::HeadMoved;
use crate::workspace::History;
use crate::workspace::locked::Locked;

/// A staged file up to this is kept: HEAD lacks it, and git may drop it.
const LARGEST_STAGED: u64 = 8 << 20;
/// All of them together.
const MOST_STAGED: u64 = 64 << 20;

impl Locked<'_> {
    /// Keeps the state of the repository around the workspace, where there is one.
    pub(crate) fn git_state(&self, writer: &mut Writer<'_>, scan: &Scan) -> Result<Option<ObjectId>, StoreError> {
        let Some(repository) = Repository::find(&self.path) else { return Ok(None) };
        let signature = repository.signature(self.environment.clock.now_ns());
        if let Some(note) = self.store.git_note()
            && note.signature == signature.bytes
            && note.tree == scan.root.tree
            && writer.contains_sound(&note.state)?
        {
            return Ok(Some(note.state));
        }
        let old;
        let index = match &scan.index {
            Some(index) => Some(index),
            None => {
                old = self.store.index();
                old.as_ref()
            }
        };
        let mut seen = index.map(|index| SeenByCapture::new(&repository, index));
        let mut look_up = seen.as_mut().map(|seen| |path: &[u8]| seen.look_up(path));
        let mut state = match &mut look_up {
            Some(look_up) => repository.read(&Limits::default(), Some(look_up)),
            None => repository.read(&Limits::default(), None),
        };
        state.excludes = repository.excludes();
        keep_staged(writer, &repository, &mut state)?;
        let json = serde_json::to_vec(&state).map_err(|error| StoreError::Io {
            what: "cannot pack the git state of",
            path: self.path.clone(),
            source: std::io::Error::other(error),
        })?;
        let id = writer.blob(&json)?;
        if signature.is_young {
            self.store().forget_git();
        } else {
            self.store().note_git(&GitNote { signature: signature.bytes, tree: scan.root.tree, state: id });
        }
        Ok(Some(id))
    }
}

impl History {
    /// The repository's state at a checkpoint, where one was kept.
    pub(crate) fn git_at(&self, row: &CheckpointRow) -> Result<Option<GitState>, StoreError> {
        let Some(id) = &row.checkpoint.git else { return Ok(None) };
        let state = match self.store.blob(id) {
            Ok(json) => serde_json::from_slice(&json).ok(),
            // A damaged state must not keep anybody from seeing or having the files.
            Err(StoreError::Missing(_) | StoreError::Damaged(_)) => None,
            Err(error) => return Err(error),
        };
        let damaged = || GitState { incomplete: Some("the store's copy is damaged".to_owned()), ..GitState::default() };
        Ok(Some(state.unwrap_or_else(damaged)))
    }

    /// Whether the repository is at another commit than it was at a checkpoint.
    pub(crate) fn head_moved(&self, target: &CheckpointRow) -> Result<Option<HeadMoved>, StoreError> {
        let Some(then) = self.git_at(target)? else { return Ok(None) };
        let Some(repository) = self.found_repository() else { return Ok(None) };
        // Only HEAD is of interest here, so the index is not read.
        let now = repository.read(&Limits { index_bytes: 0, ..Limits::default() }, None);
        let known = |head: &Head| head.commit.is_some() || head.branch.is_some();
        let moved = known(&then.head) && known(&now.head) && then.head.commit != now.head.commit;
        Ok(moved.then(|| HeadMoved { was: describe(&then.head), is: describe(&now.head) }))
    }
}

impl History {
    /// Whether the repository's HEAD moved during the turns that made some changes, and is not where it was before them.
    pub(crate) fn head_moved_during(&self, changes: &[OwnedChange]) -> Result<Option<HeadMoved>, StoreError> {
        let of_turns = || changes.iter().filter(|change| change.owner.turn().is_some());
        let ends = [of_turns().min_by_key(|change| change.seq()), of_turns().max_by_key(|change| change.seq())];
        let mut rows = Vec::new();
        for (session, turn) in ends.into_iter().flatten().filter_map(|change| change.owner.turn()) {
            rows.extend(self.store.checkpoints_of_turn(session, turn)?.into_iter().map(|(row, _)| row));
        }
        rows.sort_by_key(|row| row.seq);
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(None) };
        // Most turns leave it where it is, and then what is kept of it is the same.
        if first.checkpoint.git == last.checkpoint.git {
            return Ok(None);
        }
        let (before, after) = (self.git_at(first)?, self.git_at(last)?);
        let has_moved = before.zip(after).is_some_and(|(before, after)| before.head.commit != after.head.commit);
        if has_moved { self.head_moved(first) } else { Ok(None) }
    }
}

/// Keeps what is staged and HEAD lacks, as far as it is not too much. What is not kept says so by having no blob.
fn keep_staged(writer: &mut Writer<'_>, repository: &Repository, state: &mut GitState) -> Result<(), StoreError> {
    let mut left = MOST_STAGED;
    if !state.staged.iter().any(|entry| entry.has_blob()) {
        return Ok(());
    }
    let objects = repository.objects();
    for entry in state.staged.iter_mut().filter(|entry| entry.has_blob()) {
        if let Ok(bytes) = objects.blob(&entry.id, LARGEST_STAGED.min(left)) {
            left -= bytes.len() as u64;
            entry.blob = Some(writer.blob(&bytes)?);
        }
    }
    Ok(())
}

/// `main at 1a2b3c4d5e`, or a commit alone, or a branch without one.
pub(crate) fn describe(head: &Head) -> String {
    let commit = head.commit.as_deref().map(|hex| hex.get(..10).unwrap_or(hex));
    match (&head.branch, commit) {
        (Some(branch), Some(commit)) => format!("{branch} ({commit})"),
        (Some(branch), None) => format!("{branch} (no commit yet)"),
        (None, Some(commit)) => commit.to_owned(),
        (None, None) => "no commit".to_owned(),
    }
}
