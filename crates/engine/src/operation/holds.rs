//! Whether a plan that was shown still holds, and what of it must be made readable first.

use std::collections::HashSet;

use piton_host::Root;
use piton_host::apply::Reopened;
use piton_host::fail::point;
use piton_model::WorkspacePath;
use piton_model::plan::{self, FolderMode};
use piton_store::ReopenedNote;

use crate::operation::draft::{Draft, FolderNow, still_holds, ways_to_readable};
use crate::operation::error::OperationError;
use crate::operation::request::{Asked, Request};
use crate::workspace::History;

impl History {
    /// What is asked for and the plan of it, given what is there: the one that was shown, as long as it holds.
    pub(crate) fn planned(
        &self,
        ask: &Asked,
        shown: Option<&(Request, Draft, Vec<WorkspacePath>)>,
        seen: &FolderNow<'_>,
        reopened: &Reopened<'_>,
    ) -> Result<(Request, Draft), OperationError> {
        let Some((request, draft, _)) = shown else {
            let request = self.request(ask, seen)?;
            let draft = self.draft(&request, seen)?;
            return Ok((request, draft));
        };
        let is_reopened = |folder: &FolderMode| reopened.ways().iter().any(|way| way.path == folder.path);
        let mut held = draft.plan.clone();
        held.folders.retain(|folder| !is_reopened(folder));
        still_holds(&seen.trees, seen.now, &held)?;
        self.outside_still_holds(&draft.outside)?;
        self.git_still_holds(ask, request)?;
        if reopened.is_empty() {
            return Ok((request.clone(), draft.clone()));
        }
        // What can be read by now may have to be put back as a whole, not only its bits.
        let again = Draft { known: draft.known.clone(), ..self.draft(request, seen)? };
        let shown = step_paths(&draft.plan);
        let is_made_readable = |path: &WorkspacePath| {
            reopened.ways().iter().any(|way| path.is_within(&way.path) || way.path.is_within(path))
        };
        // What came elsewhere since was not shown, and must not go with it.
        let is_new = |path: &&WorkspacePath| !shown.contains(path) && !is_made_readable(path);
        match again.plan.steps.iter().map(|step| &step.path).find(is_new) {
            Some(path) => Err(OperationError::Stale { path: path.clone() }),
            None => Ok((request.clone(), again)),
        }
    }

    /// Makes readable what a plan must leave for being unreadable, by the bits that it had; whether there was anything to
    /// do. Noted before it is done: no operation is recorded yet that knows of it.
    pub(crate) fn reopen(
        &self,
        note: &mut ReopenedNote,
        reopened: &mut Reopened<'_>,
        root: &Root,
        plan: &plan::Plan,
    ) -> Result<bool, OperationError> {
        let ways = ways_to_readable(root, plan);
        let ways: Vec<FolderMode> = ways.into_iter().filter(|way| !reopened.has(way)).collect();
        if ways.is_empty() {
            return Ok(false);
        }
        let last = self.store.operations()?.first().map(|row| row.id.clone());
        let all = reopened.ways().iter().chain(&ways).cloned().collect();
        note.write(&piton_store::Reopened { root: root.identity(), last, ways: all })?;
        let any = ways.into_iter().map(|way| reopened.go(way)).fold(false, |any, one| any | one);
        point("operate:reopened").map_err(|e| self.folder_error(e))?;
        Ok(any)
    }

    /// Whether the repository is still where it was when a plan was made.
    fn git_still_holds(&self, ask: &Asked, request: &Request) -> Result<(), OperationError> {
        let Some(plan) = &request.git else { return Ok(()) };
        let again = match ask {
            Asked::Rewind(asked) => self.plan_git(&asked.target)?,
            Asked::Redo(asked) => match asked.git() {
                Some(done) => self.plan_git_back(done)?,
                None => return Ok(()),
            },
            Asked::Undo(_) | Asked::Branch(_) | Asked::Checkout(_) => return Ok(()),
        };
        if again.change() == plan.change() { Ok(()) } else { Err(OperationError::StaleGit) }
    }
}

pub(crate) fn step_paths(plan: &plan::Plan) -> HashSet<&WorkspacePath> {
    plan.steps.iter().map(|step| &step.path).collect()
}

/// Whether a path or a folder above it is one of some paths.
pub(crate) fn is_within_any(path: &WorkspacePath, paths: &HashSet<&WorkspacePath>) -> bool {
    let above = std::iter::successors(Some(path.clone()), |path| path.split().map(|(above, _)| above));
    above.into_iter().any(|path| paths.contains(&path))
}
