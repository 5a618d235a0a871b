//! What refuses a plan: the same for every surface, which shows it and passes an answer.

use crate::operation::draft::Plan;
use crate::operation::error::OperationError;
use crate::view::{Activity, ChangedFile, RunningView};
use crate::workspace::History;

/// What a plan may do without being agreed to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Everything that it shows: somebody has read it, or insists.
    #[default]
    Anything,
    /// Nothing that takes edits from others than the session that goes back: nobody has seen it.
    Careful,
}

/// Why a plan would not be carried out as it is.
#[derive(Debug)]
pub enum Refusal {
    /// An agent is in the middle of a turn. Whether that was interrupted can be asked where no tool runs
    /// ([`Plan::count_as_interrupted`]).
    Running {
        /// What agents are at.
        running: Vec<RunningView>,
        /// Whether the user's word can settle it.
        can_be_interrupted: bool,
    },
    /// It cannot be done whoever agrees: another folder, or a conflict that is open.
    Impossible(OperationError),
    /// It would overwrite edits of others, and the policy asks for their owner's word.
    Others(Vec<ChangedFile>),
}

impl History {
    /// Why a plan would not be carried out, in the order in which it would be found out; none where it may be. A plan that does
    /// nothing is never refused.
    pub fn refusal(&self, plan: &Plan, policy: Policy) -> Option<Refusal> {
        let view = plan.view();
        if view.is_empty() {
            return None;
        }
        let running: Vec<RunningView> = view.running.iter().filter(|one| one.blocks).cloned().collect();
        if !running.is_empty() {
            let can_be_interrupted = running.iter().all(|one| one.what == Activity::Turn);
            return Some(Refusal::Running { running, can_be_interrupted });
        }
        // Whatever is decided about conflicts, it would be refused.
        if view.other_folder && !plan.ask.goes_across() {
            return Some(Refusal::Impossible(self.other_folder(&plan.ask)));
        }
        if !plan.ask.is_partial() {
            let open: Vec<_> = plan.draft.open_conflicts().cloned().collect();
            if !open.is_empty() {
                return Some(Refusal::Impossible(OperationError::Conflict(open)));
            }
            let outside: Vec<_> = plan.draft.open_outside().cloned().collect();
            if plan.request.touches_outside && !outside.is_empty() {
                return Some(Refusal::Impossible(OperationError::ConflictOutside(outside)));
            }
        }
        (policy == Policy::Careful && !view.others.is_empty()).then(|| Refusal::Others(view.others.clone()))
    }
}
