//! Plans that were shown and wait for an answer, where that comes in another request: a page, a picker.
//!
//! A plan is kept under an id for ten minutes, by the process that made it and no other. Whoever answers names the id and the
//! fingerprint of what was shown; a plan that is kept no longer, or is another one, is refused like one that went stale.

use std::sync::Arc;

use parking_lot::Mutex;
use piton_host::{Clock, clock};
use piton_model::git::GitMove;
use piton_model::moves::Move;
use piton_model::{Except, FolderMode, ObjectId, OperationKind, PlanId, Step, Timestamp, WorkspacePath};
use piton_store::StoreError;
use serde::Serialize;

use crate::operation::branch::ConversationPlan;
use crate::operation::draft::{Draft, Plan, still_holds};
use crate::operation::error::OperationError;
use crate::operation::request::Request;
use crate::view::{ConflictView, ConversationPlanView, PlanView};
use crate::workspace::History;

/// A plan is kept for so long, in milliseconds.
const KEPT: i64 = 10 * 60 * 1000;

/// As many plans are kept; the oldest goes first.
const MOST: usize = 64;

/// The plans that wait for an answer.
pub struct Plans {
    clock: Arc<dyn Clock>,
    kept: Mutex<Vec<(Timestamp, PlanId, Arc<Plan>)>>,
}

impl Plans {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, kept: Mutex::default() }
    }

    /// Keeps a plan, and returns what to show of it: with its id.
    ///
    /// # Errors
    /// Where the system has no random bytes.
    pub fn keep(&self, mut plan: Plan) -> std::io::Result<PlanView> {
        let id = PlanId::from_random(clock::random()?);
        plan.view.id = Some(id.clone());
        let view = plan.view.clone();
        let mut kept = self.in_time();
        if kept.len() == MOST {
            kept.remove(0);
        }
        kept.push((self.clock.now(), id, Arc::new(plan)));
        Ok(view)
    }

    /// A plan that is kept, for looking at it or changing it.
    ///
    /// # Errors
    /// [`OperationError::Expired`] where there is none any more.
    pub fn get(&self, id: &PlanId) -> Result<Arc<Plan>, OperationError> {
        let kept = self.in_time();
        kept.iter().find(|(_, of, _)| of == id).map(|(.., plan)| plan.clone()).ok_or(OperationError::Expired)
    }

    /// Takes a plan to carry it out: once. It has to be the one that was shown.
    ///
    /// # Errors
    /// [`OperationError::Expired`] where there is none any more, or it is another one.
    pub fn take(&self, id: &PlanId, shown: &ObjectId) -> Result<Plan, OperationError> {
        let mut kept = self.in_time();
        let found = kept.iter().position(|(_, of, plan)| of == id && plan.view.fingerprint == *shown);
        found.map(|number| Arc::unwrap_or_clone(kept.remove(number).2)).ok_or(OperationError::Expired)
    }

    /// Those that are not too old. A clock that went back keeps none for longer.
    fn in_time(&self) -> parking_lot::MutexGuard<'_, Vec<(Timestamp, PlanId, Arc<Plan>)>> {
        let now = self.clock.now();
        let mut kept = self.kept.lock();
        kept.retain(|(at, ..)| (0..KEPT).contains(&(now.0 - at.0)));
        kept
    }
}

/// All that a plan would do.
#[derive(Serialize)]
struct Deed<'a> {
    workspace: &'a str,
    kind: &'a OperationKind,
    about: &'a Option<String>,
    steps: &'a [Step],
    folders: &'a [FolderMode],
    moves: &'a [Move],
    conflicts: Vec<ConflictView>,
    stays: Vec<&'a WorkspacePath>,
    outside: &'a [Step],
    git: Option<&'a GitMove>,
    conversation: Option<ConversationPlanView>,
}

impl History {
    /// The hash of all that a plan would do.
    pub(crate) fn fingerprint(&self, request: &Request, draft: &Draft) -> Result<ObjectId, OperationError> {
        let is_outside = request.touches_outside;
        let deed = Deed {
            workspace: self.record.id.as_str(),
            kind: &request.kind,
            about: &request.about,
            steps: &draft.plan.steps,
            folders: &draft.plan.folders,
            moves: &draft.moves,
            conflicts: draft.conflicts.iter().map(Into::into).collect(),
            stays: draft.excepted.all().collect(),
            outside: if is_outside { &draft.outside.steps } else { &[] },
            git: request.git_move(),
            conversation: request.conversation.as_ref().map(ConversationPlan::view),
        };
        let json = serde_json::to_vec(&deed).map_err(|error| StoreError::Io {
            what: "cannot write",
            path: "the plan".into(),
            source: error.into(),
        })?;
        Ok(ObjectId::of_blob(&json))
    }

    /// The same plan without some paths and places, which stay as they are; they take the place of what was taken out before,
    /// and are given as a diff of the plan with nothing taken out showed them. What else changed since the plan was made
    /// never comes into it.
    ///
    /// # Errors
    /// [`OperationError::Stale`] where something of the plan changed since it was made.
    pub fn plan_without(&self, plan: &Plan, except: Except) -> Result<Plan, OperationError> {
        let mut ask = plan.ask.clone();
        ask.except(except);
        let looked = self.look(ask.root_mode(), &plan.forced)?;
        let seen = looked.seen(&self.store);
        still_holds(&seen.trees, seen.now, &plan.draft.plan)?;
        let mut again = self.plan_from(ask, looked, plan.forced.clone())?;
        if plan.draft.known.interrupted {
            again.count_as_interrupted();
        }
        let is_known = |path: &WorkspacePath| {
            plan.draft.plan.steps.iter().any(|step| path.is_within(&step.path) || step.path.is_within(path))
                || plan.request.settle.except.paths.iter().any(|one| path.is_within(one))
        };
        match again.draft.plan.steps.iter().map(|step| &step.path).find(|path| !is_known(path)) {
            Some(path) => Err(OperationError::Stale { path: path.clone() }),
            None => Ok(again),
        }
    }
}
