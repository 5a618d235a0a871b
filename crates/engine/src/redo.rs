//! Redoing: take back the last rewind. Only the paths that it changed, and only where nobody changed them since.

use piton_model::diff::lookup;
use piton_model::plan;
use piton_model::{Entry, FolderMode, OperationKind, Step};
use piton_store::{OperationRow, OperationState, StoreError};

use crate::operate::{OperationError, Plan, Request};
use crate::view::OperationOutcome;
use crate::workspace::Workspace;

impl Workspace {
    /// Plans to take back the last rewind that still stands, for showing. Has no side effect.
    pub fn plan_redo(&self) -> Result<Plan, OperationError> {
        let request = self.redo_request()?;
        self.plan(request)
    }

    /// Carries out a plan that was shown. Refused where one of its paths changed since.
    pub fn redo(&mut self, plan: Plan) -> Result<OperationOutcome, OperationError> {
        self.operate(plan.request, Some((plan.plan, plan.forced)))
    }

    /// Plans and takes back in one go, under the lock.
    pub fn redo_now(&mut self) -> Result<OperationOutcome, OperationError> {
        let request = self.redo_request()?;
        self.operate(request, None)
    }

    fn redo_request(&self) -> Result<Request, OperationError> {
        let row = self.standing_rewinds()?.into_iter().next().ok_or(OperationError::NothingToRedo)?;
        let operation = self.store.operation(&row)?;
        // The row's: where the check found something else than the capture had read, it is the corrected one.
        let before = self.store.checkpoint(&row.before)?.ok_or(OperationError::NothingToRedo)?;
        let mut steps = Vec::with_capacity(operation.steps.len());
        for step in &operation.steps {
            let after = lookup(&self.store, &before.checkpoint.root.tree, &step.path)?;
            steps.push(Step { path: step.path.clone(), before: step.after.clone(), after });
        }
        let folders = operation
            .folders
            .iter()
            .map(|f| FolderMode { path: f.path.clone(), before: f.after, after: f.before })
            .collect();
        let steps = plan::Plan { steps, folders, ..plan::Plan::default() };
        debug_assert!(steps.steps.iter().all(|s| !s.after.as_ref().is_some_and(Entry::holds_skipped)));
        Ok(Request {
            kind: OperationKind::Redo { of: row.id },
            target: before,
            paths: Vec::new(),
            steps: Some(steps),
            across: false,
        })
    }

    /// How many rewinds could be taken back, one after the other.
    pub fn rewinds_standing(&self) -> Result<usize, StoreError> {
        Ok(self.standing_rewinds()?.len())
    }

    /// Rewinds that were done and not taken back, newest first.
    fn standing_rewinds(&self) -> Result<Vec<OperationRow>, StoreError> {
        let mut operations = self.store.operations()?;
        operations.retain(|row| row.state == OperationState::Done);
        let taken_back: Vec<String> =
            operations.iter().filter(|row| row.kind == "redo").filter_map(|row| row.target.clone()).collect();
        operations.retain(|row| row.kind == "rewind" && !taken_back.iter().any(|id| id == row.id.as_str()));
        Ok(operations)
    }
}
