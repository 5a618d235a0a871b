//! Rewinding: make the workspace's files equal to a checkpoint.

use std::path::PathBuf;

use piton_model::{OperationKind, WorkspacePath};
use piton_store::{CheckpointRow, StoreError};

use crate::operate::{OperationError, Plan, Request};
use crate::view::{CheckpointView, OperationOutcome};
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

    /// The checkpoint of this workspace that goes with one of another workspace of the same session: of the same place
    /// in it, else of the moment at which the session first came here after that. What was here before the session came is
    /// none of its business.
    ///
    /// # Errors
    /// Where the store refuses.
    pub fn counterpart(&self, of: &CheckpointView) -> Result<Option<CheckpointView>, StoreError> {
        let Some(place) = &of.place else { return Ok(None) };
        let row = match self.store.checkpoint_at(place, of.cause)? {
            Some(row) => Some(row),
            None => self.store.first_of_session_from(&place.session, place.turn)?,
        };
        Ok(row.as_ref().map(Into::into))
    }

    /// Other workspaces that a checkpoint's session worked in.
    pub(crate) fn other_workspaces(&self, target: &CheckpointRow) -> Vec<PathBuf> {
        let Some(place) = &target.checkpoint.place else { return Vec::new() };
        let all = self.home.workspaces_of(&place.session).into_iter();
        all.filter(|(id, _)| *id != self.record.id).map(|(_, path)| path).collect()
    }

    fn rewind_request(&self, target: &str, options: &RewindOptions) -> Result<Request, OperationError> {
        let target = self.resolve(target)?;
        Ok(Request {
            kind: OperationKind::Rewind {
                target: target.checkpoint.id.clone(),
                paths: options.paths.clone(),
                kept: None,
            },
            target,
            paths: options.paths.clone(),
            steps: None,
            across: options.across,
        })
    }
}
