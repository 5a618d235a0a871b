//! What a rewind would take of others, beyond what is recorded at the very paths that it changes: files that were moved on,
//! lines that were carried elsewhere, and what only came into sight.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use piton_model::diff::{self, ChangeKind};
use piton_model::inverse::{self, Drafted, Inverse};
use piton_model::ownership::{Candidate, Doubt, Owner, Why};
use piton_model::{Entry, OperationTarget, WorkspacePath};
use piton_store::{CheckpointRow, OperationRow, OperationState, StoreError};

use crate::history::changes::OwnedChange;
use crate::history::operations::standing;
use crate::operation::draft::{FolderNow, NowAndThen};
use crate::operation::error::OperationError;
use crate::operation::moves::MovedSince;
use crate::workspace::History;

impl History {
    /// Where the edits of others stand now: some changes since the target, given newest first, at the paths to which their files
    /// were moved since, and the files that lines of theirs were carried to.
    pub(crate) fn moved_on(
        &self,
        target: &CheckpointRow,
        others: &[OwnedChange],
        since: &[OwnedChange],
        paths: &[WorkspacePath],
        seen: &FolderNow<'_>,
    ) -> Result<Vec<OwnedChange>, OperationError> {
        if others.is_empty() {
            return Ok(Vec::new());
        }
        let at: HashSet<&WorkspacePath> = others.iter().map(|change| &change.path).collect();
        let moved = self.moved_since(target.seq, |path| at.contains(path), seen)?;
        let mut found = Vec::new();
        for change in others.iter().filter(|change| change.kind != ChangeKind::Deleted) {
            if let Some(path) = moved.moved.path_now(&change.path, change.seq()).filter(|path| *path != change.path) {
                found.push(OwnedChange { path, ..change.clone() });
            }
        }
        let known: BTreeSet<&WorkspacePath> = found.iter().chain(others).map(|change| &change.path).collect();
        let carried = self.carried_lines(target, &moved, others, paths, seen)?;
        let carried = carried.into_iter().filter(|(path, _)| !known.contains(path));
        // Whose lines they were, the changes of the file tell that they came from.
        let whose = |from: &WorkspacePath| others.iter().find(|change| change.path == *from).or(others.first());
        let lines: Vec<OwnedChange> = carried
            .filter_map(|(path, from)| {
                let kind = since.iter().find(|change| change.path == path).map_or(ChangeKind::Modified, |one| one.kind);
                Some(OwnedChange { path, kind, found_at: None, ..whose(&from)?.clone() })
            })
            .collect();
        found.extend(lines);
        Ok(found)
    }

    /// The files from which lines of others would go that then stand nowhere, each with the file that the lines came from.
    fn carried_lines(
        &self,
        target: &CheckpointRow,
        moved: &MovedSince,
        others: &[OwnedChange],
        paths: &[WorkspacePath],
        seen: &FolderNow<'_>,
    ) -> Result<Vec<(WorkspacePath, WorkspacePath)>, OperationError> {
        let of_others: HashSet<(u64, &WorkspacePath)> =
            others.iter().map(|change| (change.seq(), &change.path)).collect();
        let mut going = Inverse::default();
        let goes = |at, path: &WorkspacePath| path.is_in_scope(paths) && !of_others.contains(&(at, path));
        going.altered(self.altered(moved, target.seq, true, goes)?);
        let drafted = Drafted::of(target.checkpoint.root);
        let contents = NowAndThen { root: seen.root, store: &self.store };
        let is_reached = |path: &WorkspacePath| path.is_in_scope(paths);
        let lost = inverse::lines_lost(&seen.trees, &contents, seen.now, &drafted, (&going, &is_reached), None);
        let lost = match lost {
            // What is damaged is named by itself.
            Err(StoreError::Damaged(_) | StoreError::Missing(_)) => Vec::new(),
            lost => lost?,
        };
        let pair = |conflict: inverse::Conflict| Some((conflict.path, conflict.others.into_iter().next()?));
        Ok(lost.into_iter().filter_map(pair).collect())
    }

    /// Files that a rewind would change, and of which no checkpoint found how they came to what they are: new ones that a rule left
    /// out until it was taken back, and those that were captured and changed while they were left out, whether they still are or
    /// not. No tool is known to have written them, so the new ones count as the user's, and the others may be.
    pub(crate) fn came_into_sight(
        &self,
        target: &CheckpointRow,
        since: &[OwnedChange],
        paths: &[WorkspacePath],
        seen: &FolderNow<'_>,
    ) -> Result<Vec<OwnedChange>, OperationError> {
        let then = target.checkpoint.root;
        let changes = match diff::root_changes(&seen.trees, Some(&then), Some(&seen.now)) {
            // What is damaged is named by itself.
            Err(StoreError::Damaged(_) | StoreError::Missing(_)) => return Ok(Vec::new()),
            changes => changes?,
        };
        let is_content = |entry: &Option<Entry>| matches!(entry, Some(Entry::File { .. } | Entry::Symlink { .. }));
        let known: HashSet<&WorkspacePath> = since.iter().map(|change| &change.path).collect();
        let (mut came, mut differ) = (Vec::new(), BTreeMap::new());
        for change in changes {
            if !is_content(&change.after) || !change.path.is_in_scope(paths) {
                continue;
            }
            match change.before.is_none() && !known.contains(&change.path) {
                true => came.push(change.path),
                false => drop(differ.insert(change.path, change.before.is_none())),
            }
        }
        let mut found = Vec::new();
        if !differ.is_empty() {
            let written = self.written_out_of_sight(target, &differ.keys().cloned().collect(), seen)?;
            found.extend(written.into_iter().map(|path| OwnedChange {
                kind: if differ[&path] { ChangeKind::Created } else { ChangeKind::Modified },
                path,
                owner: Owner::Unsure { candidates: vec![Candidate::You] },
                doubt: Some(Doubt { why: Why::OutOfSight, at: None, edited: None }),
                found_at: None,
            }));
        }
        if came.is_empty() {
            return Ok(found);
        }
        // What an operation brought has a reason that is older than the target; but not what it only took before and gave back.
        let rows = self.store.operations()?;
        let is_since = |row: &OperationRow| row.seq > target.seq;
        let gives_back = |row: &OperationRow| {
            let of = row.target.as_ref().and_then(OperationTarget::operation);
            of.is_some_and(|of| rows.iter().any(|row| row.id == *of && is_since(row)))
        };
        let stands = standing(&rows);
        let bring = rows.iter().zip(stands).filter(|(row, stands)| {
            let is_done = row.state == OperationState::Done;
            is_since(row) && (!is_done || (*stands && !gives_back(row)))
        });
        for (row, _) in bring {
            match (row.state, self.store.operation(row)) {
                (OperationState::Done, Ok(operation)) => {
                    came.retain(|path| !operation.steps.iter().any(|step| path.is_within(&step.path)));
                }
                // A damaged record may tell of anything.
                (_, Err(_)) => return Ok(found),
                _ => {}
            }
        }
        let one =
            |path| OwnedChange { path, owner: Owner::You, kind: ChangeKind::Created, doubt: None, found_at: None };
        found.extend(came.into_iter().map(one));
        Ok(found)
    }

    /// Of the changes since a target, in some paths that go back, those whose file was moved out of them and stays.
    pub(crate) fn moved_out(
        &self,
        target: &CheckpointRow,
        since: &[OwnedChange],
        paths: &[WorkspacePath],
        seen: &FolderNow<'_>,
    ) -> Result<Vec<WorkspacePath>, OperationError> {
        if paths.is_empty() || since.is_empty() {
            return Ok(Vec::new());
        }
        let moved = self.moved_since(target.seq, |path| path.is_in_scope(paths), seen)?.moved;
        let mut out: Vec<WorkspacePath> = Vec::new();
        for change in since {
            let now = moved.path_now(&change.path, change.seq());
            if now.is_some_and(|now| now != change.path && !now.is_in_scope(paths)) && !out.contains(&change.path) {
                out.push(change.path.clone());
            }
        }
        Ok(out)
    }
}
