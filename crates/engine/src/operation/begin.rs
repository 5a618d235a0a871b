//! The beginning of an operation: what is there now and the whole plan, recorded durably before anything is touched.

use std::collections::HashSet;

use piton_host::apply::{Applier, MadeRoot, make_root};
use piton_host::fail::point;
use piton_host::{Root, clock};
use piton_model::conversation::ConversationMove;
use piton_model::diff::{self, Change, Counts};
use piton_model::ownership::ChangedPath;
use piton_model::plan::{self, FolderMode, Layered};
use piton_model::{Cause, Checkpoint, Entry, Operation, OperationId, Record, WorkspacePath};
use piton_store::{Purpose, StoreError};

use crate::capture::sink::Trees;
use crate::capture::sound::folder_at;
use crate::capture::{About, Taken};
use crate::operation::branch::ConversationPlan;
use crate::operation::draft::Draft;
use crate::operation::error::OperationError;
use crate::operation::holds::{is_within_any, step_paths};
use crate::operation::request::{Aim, Asked, Request};
use crate::view::ConversationOutcome;
use crate::workspace::locked::Locked;
use crate::workspace::{History, Standing};

/// An operation that is recorded as pending.
pub(crate) struct Begun {
    pub operation: Operation,
    pub before: Checkpoint,
    /// What it changes, file by file.
    pub changes: Vec<Change>,
    /// How its result differs from the checkpoint that it follows.
    pub since: Counts,
    pub skipped: u64,
    /// What came after the plan was shown, and stays.
    pub unplanned: Vec<WorkspacePath>,
}

impl Begun {
    pub(crate) fn applier<'a>(&'a self, root: &'a Root) -> Applier<'a> {
        Applier { root, operation: &self.operation.id, steps: &self.operation.steps, folders: &self.operation.folders }
    }
}

/// The root that an operation puts files into.
pub(crate) struct RootToRewind {
    pub root: Root,
    /// Set where it is another folder than the one that is known: recorded together with the operation, so that one that is
    /// refused changes nothing.
    pub change: Option<piton_model::Workspace>,
    pub made: Option<MadeRoot>,
}

/// What else is recorded when an operation begins.
#[derive(Default)]
pub(crate) struct Noted<'a> {
    /// Whether the plan was shown, so that something may have changed since.
    pub is_shown: bool,
    pub bits: &'a [FolderMode],
    pub change: Option<&'a piton_model::Workspace>,
    /// The root was gone and is made anew.
    pub is_root_made: bool,
}

impl Locked<'_> {
    /// Records the state before and the whole plan, durably. Where the plan was shown, something may have changed since.
    pub(crate) fn begin(
        &self,
        root: &Root,
        request: &Request,
        draft: &Draft,
        taken: Taken<'_>,
        noted: &Noted<'_>,
    ) -> Result<(Begun, Option<ConversationOutcome>), OperationError> {
        let Taken { mut writer, scan, fresh, keeps_index, is_lean, held } = taken;
        // What must be recorded of an operation is little; where captures have no room left, the reserve takes it.
        writer.allow(Purpose::Operation);
        let trees = Trees { fresh: &fresh, store: &self.store };
        let plan = &draft.plan;
        let (result, new) = plan.result(&trees, scan.root)?;
        debug_assert_eq!(result, plan::Plan { exact: None, ..plan.clone() }.result(&trees, scan.root)?.0);
        let layered = Layered { over: &new, under: &trees };
        let changes = diff::root_changes(&layered, Some(&scan.root), Some(&result))?;
        let skipped = diff::skipped(&layered, &result.tree)?.len() as u64;
        // What the plan worked out on the way may name what was never stored, where the capture had no room for everything.
        // So only what the result needs is written; most of that is there already.
        let mut needed = vec![result.tree];
        let mut seen = HashSet::new();
        while let Some(id) = needed.pop() {
            let Some(tree) = new.get(&id).filter(|_| seen.insert(id)) else { continue };
            writer.tree(tree)?;
            needed.extend(tree.entries().iter().filter_map(|(_, entry)| match entry {
                Entry::Folder { tree, .. } => Some(*tree),
                _ => None,
            }));
        }
        self.store_spine_again(&mut writer, &trees, &scan.root.tree, &plan.steps)?;
        let outside = if draft.outside.steps.is_empty() { &[][..] } else { &draft.outside.blobs };
        for bytes in draft.new_blobs.iter().chain(outside) {
            writer.blob(bytes)?;
        }
        let (conversation, gone_to) = match &request.conversation {
            Some(ConversationPlan::Branch(branch)) => {
                let (change, outcome) = self.keep_branch(&mut writer, branch)?;
                (Some(change), Some(outcome))
            }
            Some(ConversationPlan::Back(went)) => {
                let change = ConversationMove { went: went.clone(), branch: None, file: None, worktree: None };
                (Some(change), Some(self.back_at(went)?))
            }
            None => (None, None),
        };
        let id = OperationId::from_random(clock::random().map_err(|e| self.folder_error(e))?);
        let parent = self.store.head(self.record.line)?;
        // The reserve is for what would be lost otherwise; the repository stays as it is.
        let git = if is_lean { None } else { self.git_state(&mut writer, &scan)? };
        let about = About {
            operation: Some(id.clone()),
            place: self.place_now()?,
            git,
            held,
            is_folder_gone: noted.is_root_made,
            ..About::of(Cause::BeforeOperation)
        };
        let before = self.checkpoint(&scan, &fresh, parent.as_ref(), about)?;
        let unplanned = if noted.is_shown { self.unplanned(&trees, request, draft, &before)? } else { Vec::new() };
        let follows = match &request.returns {
            // What somebody did while the question stood is not in the moment that is returned to.
            Some(_) if !unplanned.is_empty() => before.id.clone(),
            Some(returns) if returns.from.is_none_or(|from| from == before.root) => returns.to.clone(),
            _ => before.id.clone(),
        };
        let operation = Operation {
            id,
            kind: request.kind_of(draft, &before.id, unplanned.clone()),
            began_at: self.environment.clock.now(),
            about: request.about.clone(),
            before: before.id.clone(),
            follows,
            root: root.identity(),
            boot: clock::boot_id(),
            steps: plan.steps.clone(),
            folders: with_bits(&plan.folders, noted.bits),
            moves: self.moves_recorded(&request.kind, &changes, &draft.moves, root),
            outside: draft.outside.steps.clone(),
            git: request.git_move().cloned(),
            conversation,
            result,
        };
        if let Some(change) = noted.change {
            writer.record(Record::Workspace(change.clone()))?;
        }
        if self.record.forked_from.is_some() {
            // What it goes back to may be in the store of the fork's parent alone.
            operation.needs().into_iter().try_for_each(|need| writer.take_beside(need.object))?;
        }
        writer.record(Record::Checkpoint(before.clone()))?;
        writer.record(Record::Operation(Box::new(operation.clone())))?;
        writer.commit(true, keeps_index)?;
        point("operate:begun").map_err(|e| self.folder_error(e))?;
        self.keep_index(scan, keeps_index);
        let since = if operation.follows == before.id {
            Counts::of(&changes)
        } else {
            self.counts_since(&layered, &operation.follows, &result)?
        };
        Ok((Begun { operation, before, changes, since, skipped, unplanned }, gone_to))
    }

    /// The root to put files into. A root that is gone is made anew: only an operation that the user asked for does so.
    pub(crate) fn root_to_rewind(&mut self, ask: &Asked) -> Result<RootToRewind, OperationError> {
        let known = |root| RootToRewind { root, change: None, made: None };
        if !ask.writes_files() {
            return Ok(known(self.root_to_capture()?));
        }
        let (root, made) = match self.standing().map_err(|e| self.folder_error(e))? {
            Standing::Same(_) => return Ok(known(self.root_to_capture()?)),
            Standing::Other(root) if !root.is_empty().unwrap_or(false) => {
                return Ok(known(self.root_to_capture()?));
            }
            Standing::Other(root) => (root, None),
            Standing::Missing => {
                self.refuse_displaced()?;
                let made = make_root(&self.path, ask.root_mode()).map_err(|e| self.folder_error(e))?;
                (Root::open(&self.path).map_err(|e| self.folder_error(e))?, Some(made))
            }
        };
        let at = self.environment.clock.now();
        let change = piton_model::Workspace { root: root.identity(), at, ..self.record.clone() };
        self.store().drop_index();
        Ok(RootToRewind { root, change: Some(change), made })
    }
}

impl History {
    /// What the capture at the beginning found and the plan, which was shown before that, does not know of: it stays.
    fn unplanned(
        &self,
        trees: &Trees<'_>,
        request: &Request,
        draft: &Draft,
        before: &Checkpoint,
    ) -> Result<Vec<WorkspacePath>, StoreError> {
        let (Aim::State(target) | Aim::StateWith { target, .. }) = &request.aim else { return Ok(Vec::new()) };
        let mut unplanned = Vec::new();
        let steps = step_paths(&draft.plan);
        for ChangedPath { path, .. } in before.owned.iter().flat_map(|owned| &owned.paths) {
            if !is_within_any(path, &steps)
                && !request.fresh.contains(path)
                && !draft.excepted.holds(path)
                && path.is_in_scope(&request.paths)
                && folder_at(trees, before.root, path)? != folder_at(trees, target.checkpoint.root, path)?
            {
                unplanned.push(path.clone());
            }
        }
        Ok(unplanned)
    }
}

/// Folders of a plan, and what else gets other bits, each with those from before all of it.
fn with_bits(folders: &[FolderMode], bits: &[FolderMode]) -> Vec<FolderMode> {
    let mut all: Vec<FolderMode> = bits.to_vec();
    for folder in folders {
        match all.iter_mut().find(|way| way.path == folder.path) {
            Some(way) => way.after = folder.after,
            None => all.push(folder.clone()),
        }
    }
    // Outer ones first, as they are opened.
    all.sort_by(|a, b| a.path.cmp(&b.path));
    all
}
