//! What an agent's tools put out of piton's sight: captured before a tool ran, and left out of the checkpoint after it.
//!
//! A tool that writes a rule, closes a file to its owner or puts a pipe in its place changes nothing that a comparison of
//! two checkpoints shows, since what is left out is unknown. Whoever takes the tool's work back must hear of it all the same.

use piton_model::diff;
use piton_model::plan::Undone;
use piton_model::{Cause, StepRef};
use piton_store::StoreError;

use crate::draft::Seen;
use crate::lineage::Lineage;
use crate::workspace::Workspace;

/// Something that was captured before a step and left out after it.
pub(crate) struct LeftOutBy {
    pub step: StepRef,
    pub what: Undone,
}

impl Workspace {
    /// Everything that the tools of a conversation put out of sight and that is not there now as it was, in order.
    pub(crate) fn left_out_by(&self, session: &Lineage, seen: &Seen<'_>) -> Result<Vec<LeftOutBy>, StoreError> {
        let mut found = Vec::new();
        for id in session.sessions() {
            for row in self.store.checkpoints_of(id)? {
                let (Some(place), Cause::AfterTool, Some(parent)) =
                    (&row.checkpoint.place, row.checkpoint.cause, &row.checkpoint.parent)
                else {
                    continue;
                };
                let (Some(step), true) = (place.step, row.checkpoint.line == self.record.line) else { continue };
                let step = StepRef { session: place.session.clone(), turn: place.turn, step };
                let Some(parent) = self.store.checkpoint(parent)?.filter(|_| session.holds_step(&step)) else {
                    continue;
                };
                let (from, to) = (&parent.checkpoint.root.tree, &row.checkpoint.root.tree);
                // What a damaged listing held is named by others.
                let Ok(left_out) = diff::left_out(&self.store, from, to) else { continue };
                for one in left_out.into_iter().filter_map(|one| Some((one.path, one.before?, one.reason))) {
                    let (path, known, reason) = one;
                    if diff::lookup(&seen.trees, &seen.now.tree, &path)?.as_ref() != Some(&known) {
                        let what = Undone { path, reason, known: Some(known) };
                        found.push(LeftOutBy { step: step.clone(), what });
                    }
                }
            }
        }
        Ok(found)
    }
}
