//! What an agent's tools did that no comparison of two checkpoints shows, since what is left out is unknown: whoever takes
//! the tools' work back must hear of it all the same.
//!
//! - A tool that writes a rule, closes a file to its owner or puts a pipe in its place takes it out of piton's sight: captured
//!   before the tool ran, and left out of the checkpoint after it.
//! - A tool that deletes what a rule leaves out, such as `node_modules`, deletes what nobody can bring back.

use piton_model::diff;
use piton_model::plan::Undone;
use piton_model::{Cause, SkipReason, StepRef};
use piton_store::StoreError;

use crate::draft::Seen;
use crate::lineage::Lineage;
use crate::workspace::Workspace;

/// Something that was captured before a step and left out after it, or left out before it and gone after it.
pub(crate) struct LeftOutBy {
    pub step: StepRef,
    pub what: Undone,
}

impl Workspace {
    /// Everything that the tools of a conversation put out of sight, or deleted there, and that is not there now as it was.
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
                let left_out = left_out.into_iter().filter(|one| one.before.is_some());
                let hidden = left_out.map(|one| Undone { path: one.path, reason: one.reason, known: one.before });
                let Ok(gone) = diff::gone_unknown(&self.store, from, to) else { continue };
                let gone = gone.into_iter().filter(|(_, reason)| is_worth_naming(*reason));
                let gone = gone.map(|(path, reason)| Undone { path, reason, known: None });
                for what in hidden.chain(gone) {
                    if what.holds_with(diff::lookup(&seen.trees, &seen.now.tree, &what.path)?.as_ref()) {
                        found.push(LeftOutBy { step: step.clone(), what });
                    }
                }
            }
        }
        Ok(found)
    }
}

/// Whether somebody may miss it: what piton or an agent keeps for itself, a socket, or a worktree with a store of its own is
/// told of elsewhere or comes and goes.
fn is_worth_naming(reason: SkipReason) -> bool {
    use SkipReason::{BareRepository, Budget, Excluded, Ignored, TooLarge, Unreadable};
    matches!(reason, Ignored | Excluded | TooLarge | Unreadable | Budget | BareRepository)
}
