//! Rewinding: make the workspace's files equal to a checkpoint.

use piton_model::{OperationKind, WorkspacePath};

use crate::operate::{OperationError, Plan, Request};
use crate::view::OperationOutcome;
use crate::workspace::Workspace;

/// What to rewind.
#[derive(Clone, Debug, Default)]
pub struct RewindOptions {
    /// Only these paths and what is beneath them; everything when empty.
    pub paths: Vec<WorkspacePath>,
    /// Go on though the target was captured in another folder that stood at the same path.
    pub across: bool,
}

impl Workspace {
    /// Plans a rewind, for showing. Has no side effect.
    pub fn plan_rewind(&self, target: &str, options: &RewindOptions) -> Result<Plan, OperationError> {
        let request = self.rewind_request(target, options)?;
        self.plan(request)
    }

    /// Carries out a plan that was shown. Refused where one of its paths changed since.
    pub fn rewind(&mut self, plan: Plan) -> Result<OperationOutcome, OperationError> {
        self.operate(plan.request, Some((plan.plan, plan.forced)))
    }

    /// Plans and rewinds in one go, under the lock.
    pub fn rewind_now(&mut self, target: &str, options: &RewindOptions) -> Result<OperationOutcome, OperationError> {
        let request = self.rewind_request(target, options)?;
        self.operate(request, None)
    }

    fn rewind_request(&self, target: &str, options: &RewindOptions) -> Result<Request, OperationError> {
        let target = self.resolve(target)?;
        Ok(Request {
            kind: OperationKind::Rewind { target: target.checkpoint.id.clone(), paths: options.paths.clone() },
            target,
            paths: options.paths.clone(),
            steps: None,
            across: options.across,
        })
    }
}
