//! What somebody took out of a plan: it stays as it is now, with everything that must stay with it.
//!
//! Works on the state that a plan aims at, before its steps are made. A file that the plan moves stays with both its paths, or it
//! would be nowhere or twice; whether lines of others would then be nowhere is asked of the whole afterwards
//! (`inverse::lines_lost`).

use std::collections::{BTreeMap, BTreeSet};

use piton_model::diff::{self, Change};
use piton_model::edit::{Edit, edit};
use piton_model::except::{ExceptHunk, HunkAt, with_places_as_now};
use piton_model::inverse::{Conflict, Contents, Drafted};
use piton_model::plan::{Layered, RootState};
use piton_model::{Entry, Except, ObjectId, OperationKind, WorkspacePath};

use crate::capture::sink::Trees;
use crate::operation::draft::{NowAndThen, replaced_folders};
use crate::operation::error::OperationError;
use crate::operation::request::Request;
use crate::workspace::History;

/// What of a plan was taken out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Excepted {
    /// Stay as they are, with everything beneath them.
    pub paths: Vec<WorkspacePath>,
    /// Files of which some places stay.
    pub in_part: Vec<WorkspacePath>,
    /// Stay too, though nobody asked for that: what came into sight and is nobody's.
    pub unseen: Vec<WorkspacePath>,
}

impl Excepted {
    /// Whether a path does not become what the plan would make of it, or only in part.
    pub(crate) fn holds(&self, path: &WorkspacePath) -> bool {
        self.all().any(|one| path.is_within(one))
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &WorkspacePath> {
        self.paths.iter().chain(&self.in_part).chain(&self.unseen)
    }
}

impl History {
    /// Works out what stays, and puts the places of files that stay into the drafted state. The paths that stay as a whole are
    /// the caller's to put back.
    pub(crate) fn take_out(
        &self,
        request: &Request,
        trees: &Trees<'_>,
        contents: &NowAndThen<'_>,
        now: RootState,
        drafted: &mut Drafted,
    ) -> Result<Excepted, OperationError> {
        let Except { paths, hunks } = &request.settle.except;
        if paths.is_empty() && hunks.is_empty() {
            return Ok(Excepted { unseen: request.unseen.clone(), ..Excepted::default() });
        }
        let layered = Layered { over: &drafted.new_trees, under: trees };
        let mut changes = diff::root_changes(&layered, Some(&now), Some(&drafted.root))?;
        // A rewind of some paths aims at the whole moment, and takes no more of it.
        if let OperationKind::Rewind { .. } = &request.kind {
            changes.retain(|change| change.path.is_in_scope(&request.paths));
        }
        // What is in conflict would change as soon as somebody decides it; left out, it needs no decision.
        let is_left_out =
            |conflict: &mut Conflict| !conflict.decided && conflict.paths().any(|one| one.is_in_any(paths));
        let mut all = paths.clone();
        for conflict in drafted.conflicts.extract_if(.., is_left_out) {
            all.extend(conflict.paths().cloned());
        }
        let in_conflict = &all[paths.len()..];
        for path in paths {
            // What is out of sight is captured first, and only then part of the plan.
            let is_hidden = request.hidden.goes.iter().any(|hidden| hidden.is_within(path));
            let is_in_conflict = in_conflict.iter().any(|one| one.is_within(path));
            if !is_hidden && !is_in_conflict && !changes.iter().any(|change| change.path.is_within(path)) {
                return Err(OperationError::NotInPlan { path: path.clone() });
            }
        }
        let stays = self.with_what_must_stay(&all, &changes, trees, contents, now, drafted)?;
        let in_part = self.keep_places(hunks, &stays, trees, contents, now, drafted)?;
        drafted.merged.retain(|path| !path.is_in_any(&stays));
        drafted.moves.retain(|one| !one.from.is_in_any(&stays) && !one.to.is_in_any(&stays));
        Ok(Excepted { paths: stays, in_part, unseen: request.unseen.clone() })
    }

    /// Some paths, with the other ends of the files among them that are moved, and with the folders whose place something else
    /// would take.
    fn with_what_must_stay(
        &self,
        paths: &[WorkspacePath],
        changes: &[Change],
        trees: &Trees<'_>,
        contents: &NowAndThen<'_>,
        now: RootState,
        drafted: &Drafted,
    ) -> Result<Vec<WorkspacePath>, OperationError> {
        let moves = self.moves_of(changes, &drafted.moves, contents.root);
        let layered = Layered { over: &drafted.new_trees, under: trees };
        let mut stays: BTreeSet<WorkspacePath> = paths.iter().cloned().collect();
        loop {
            let known = stays.len();
            let mut more: Vec<WorkspacePath> = Vec::new();
            for one in &moves {
                let [from, to] = [&one.from, &one.to].map(|end| stays.iter().any(|path| end.is_within(path)));
                match (from, to) {
                    (true, false) => more.push(one.to.clone()),
                    (false, true) => more.push(one.from.clone()),
                    _ => {}
                }
            }
            for path in &stays {
                more.extend(replaced_folders(trees, now, &layered, drafted.root, path)?);
            }
            stays.extend(more);
            if stays.len() == known {
                return Ok(stays.into_iter().collect());
            }
        }
    }

    /// Puts places as they are now into the drafted contents of their files.
    fn keep_places(
        &self,
        hunks: &[ExceptHunk],
        stays: &[WorkspacePath],
        trees: &Trees<'_>,
        contents: &NowAndThen<'_>,
        now: RootState,
        drafted: &mut Drafted,
    ) -> Result<Vec<WorkspacePath>, OperationError> {
        let mut by_path: BTreeMap<&WorkspacePath, Vec<&ExceptHunk>> = BTreeMap::new();
        for hunk in hunks.iter().filter(|hunk| !hunk.path.is_in_any(stays)) {
            by_path.entry(&hunk.path).or_default().push(hunk);
        }
        let mut edits = Vec::new();
        for (path, hunks) in &by_path {
            let stale = || OperationError::Stale { path: (*path).clone() };
            let layered = Layered { over: &drafted.new_trees, under: trees };
            let here = diff::lookup(trees, &now.tree, path)?;
            let then = diff::lookup(&layered, &drafted.root.tree, path)?;
            let (Some(Entry::File { blob: here, .. }), Some(Entry::File { mode, blob: then, .. })) = (&here, &then)
            else {
                return Err(OperationError::OnlyWhole { path: (*path).clone() });
            };
            if hunks.iter().any(|hunk| hunk.now != *here || hunk.then != *then) {
                return Err(stale());
            }
            let was = contents.content(path, here)?;
            let aimed = match drafted.new_blobs.get(then) {
                Some(bytes) => bytes.clone(),
                None => contents.content(path, then)?,
            };
            let places: Vec<HunkAt> = hunks.iter().map(|hunk| hunk.at).collect();
            let bytes = with_places_as_now(&was, &aimed, &places).ok_or_else(stale)?;
            let blob = ObjectId::of_blob(&bytes);
            edits.push(((*path).clone(), Edit::Put(Some(Entry::File { mode: *mode, size: bytes.len() as u64, blob }))));
            if blob != *here && blob != *then {
                drafted.new_blobs.insert(blob, bytes);
            }
        }
        let layered = Layered { over: &drafted.new_trees, under: trees };
        let (tree, new) = edit(&layered, &drafted.root.tree, &edits)?;
        drafted.root.tree = tree;
        drafted.new_trees.extend(new);
        Ok(by_path.into_keys().cloned().collect())
    }
}
