//! What a plan would change, with contents.

use std::collections::HashMap;

use piton_model::diff::{self, Counts};
use piton_model::inverse::Contents;
use piton_model::{Entry, ObjectId, WorkspacePath};

use crate::history::diff::{DiffError, both_sides, compare, empty_diff};
use crate::operation::draft::{NowAndThen, Plan};
use crate::view::Diff;
use crate::workspace::{History, Standing};

impl History {
    /// What a plan would change, with contents: from what is there now to what would be.
    pub fn plan_diff(&self, plan: &Plan, context: u32) -> Result<Diff, DiffError> {
        let root = match self.standing().map_err(|e| self.folder_error(e))? {
            Standing::Same(root) | Standing::Other(root) => Some(root),
            Standing::Missing => None,
        };
        let now = NowAndThen { root: root.as_ref(), store: &self.store };
        let merged: HashMap<ObjectId, &Vec<u8>> =
            plan.draft.new_blobs.iter().map(|bytes| (ObjectId::of_blob(bytes), bytes)).collect();
        let changes: Vec<&diff::Change> = plan.changes.iter().filter(|change| !change.implied).collect();
        // What goes to another path, and that nobody has captured yet, is read where it is now.
        let blob = |change: &diff::Change| match &change.before {
            Some(Entry::File { blob, .. }) => Some((*blob, change.path.clone())),
            _ => None,
        };
        let here: HashMap<ObjectId, WorkspacePath> = changes.iter().filter_map(|change| blob(change)).collect();
        let mut files = Vec::with_capacity(changes.len());
        for change in &changes {
            let bytes = |blob: &ObjectId| match merged.get(blob) {
                Some(bytes) => Ok((*bytes).clone()),
                None => now.content(here.get(blob).unwrap_or(&change.path), blob),
            };
            let mut file = empty_diff(change);
            match both_sides(change, bytes) {
                Ok(Some((old, new))) => compare(&old, &new, context, &mut file),
                Ok(None) => {}
                Err(_) => file.unavailable = true,
            }
            files.push(file);
        }
        Ok(Diff {
            from: None,
            to: None,
            changes: Counts::of(changes),
            files,
            not_compared: Vec::new(),
            unreadable: Vec::new(),
            since: None,
            turn: None,
            unsure: Vec::new(),
        })
    }

    /// The files that a plan moves, each as the path it leaves and the path it goes to. Both stay where one is taken out of the
    /// plan.
    pub fn plan_moves(&self, plan: &Plan) -> Result<Vec<(WorkspacePath, WorkspacePath)>, DiffError> {
        let root = match self.standing().map_err(|e| self.folder_error(e))? {
            Standing::Same(root) | Standing::Other(root) => Some(root),
            Standing::Missing => None,
        };
        let moves = self.moves_of(&plan.changes, &plan.draft.moves, root.as_ref());
        Ok(moves.into_iter().map(|one| (one.from, one.to)).collect())
    }
}
