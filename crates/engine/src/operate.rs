//! Operations: what rewind, redo and recovery share. Capture now, record the plan, stage, swap, check, record the end.
//!
//! The order is the promise. Until the plan is recorded durably nothing of the user's is touched; until everything is
//! staged nothing is swapped; until what was put in place is synced, and what came out is known to be stored, nothing is
//! removed; and a crash at any point leaves a pending operation that [`crate::recover`] ends one way or the other.

use std::convert::Infallible;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use piton_host::apply::{Applier, ApplyError, Content, make_root};
use piton_host::fail::point;
use piton_host::{Lock, Root, clock, empty_tree, in_parallel};
use piton_model::diff::{self, Change, ChangeKind, Counts, TreeSource};
use piton_model::plan::{self, Layered, RootState};
use piton_model::{
    Cause, Checkpoint, CheckpointId, Entry, FolderMode, ObjectId, Operation, OperationId, OperationKind, Outcome,
    Record, Tree, WorkspacePath,
};
use piton_store::{CheckpointRow, PATIENCE, Store, StoreError};

use crate::capture::{About, Attention, CaptureError, Taken};
use crate::leftovers::found_at;
use crate::notice::Notice;
use crate::recover::RecoverError;
use crate::sink::{FreshTrees, HashingSink, Trees};
use crate::target::TargetError;
use crate::view::{OperationOutcome, PathView, PlanView, SkippedView};
use crate::workspace::{Standing, Workspace};

/// What an operation would do. Only the engine makes one, and only a plan can be carried out.
pub struct Plan {
    pub(crate) request: Request,
    pub(crate) plan: plan::Plan,
    /// Paths that the rules leave out and that were looked at all the same.
    pub(crate) forced: Vec<WorkspacePath>,
    view: PlanView,
}

impl Plan {
    /// What to show before asking.
    pub fn view(&self) -> &PlanView {
        &self.view
    }
}

/// What is asked for.
#[derive(Clone)]
pub(crate) struct Request {
    pub kind: OperationKind,
    /// The checkpoint whose state comes back, and which the result follows.
    pub target: CheckpointRow,
    /// Only these paths.
    pub paths: Vec<WorkspacePath>,
    /// For a redo, the steps of the operation to take back, turned round.
    pub steps: Option<plan::Plan>,
    /// Go on though the target is of another folder that stood at the same path.
    pub across: bool,
}

/// Why an operation was not done.
#[derive(Debug, thiserror::Error)]
pub enum OperationError {
    /// The target.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// Something changed since the plan was made.
    #[error("`{}` changed after this plan was made; nothing was changed", path.display())]
    Stale {
        /// Where.
        path: WorkspacePath,
    },
    /// A file must stand where there are things that are not captured.
    #[error("`{}` holds things that are not captured, and a file would have to take its place; nothing was changed", paths[0].display())]
    Conflict {
        /// Where.
        paths: Vec<WorkspacePath>,
    },
    /// Paths that the operation to take back had changed were changed again since.
    #[error("{} changed since; taking the operation back would overwrite that; nothing was changed", list(paths))]
    ChangedSince {
        /// Which.
        paths: Vec<WorkspacePath>,
        /// The state that a redo would bring back, for `rewind`.
        target: CheckpointId,
    },
    /// No operation is left to take back.
    #[error("there is no rewind to take back")]
    NothingToRedo,
    /// The folder at this path is not the one that the target was captured in.
    #[error("{} is another folder than the one that checkpoint was captured in; nothing was changed", .0.display())]
    OtherFolder(PathBuf),
    /// The system refused, and everything was put back.
    #[error("{reason}; everything is as it was before")]
    RolledBack {
        /// Why.
        reason: String,
        /// Whether that was for want of space.
        full_disk: bool,
        /// Whether that was because what the store has is damaged.
        damaged: bool,
    },
    /// The system refused both ways.
    #[error("{reason}; and putting `{}` back failed: {back}", path.display())]
    Stuck {
        /// Why it could not go on.
        reason: String,
        /// Where it could not go back.
        path: WorkspacePath,
        /// Why not.
        back: String,
    },
    /// The files are in place and the note of it is not.
    #[error("the files are in place, but that could not be recorded: {0}")]
    Unrecorded(StoreError),
    /// The capture at the beginning.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// An earlier operation could not be ended.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn list(paths: &[WorkspacePath]) -> String {
    match paths {
        [one] => format!("`{}`", one.display()),
        [one, rest @ ..] => format!("`{}` and {} more", one.display(), rest.len()),
        [] => String::new(),
    }
}

/// What the check after the swap found.
struct Checked {
    /// Steps where something else came out than was captured.
    rescued: Vec<usize>,
    changed_again: Vec<WorkspacePath>,
}

impl Workspace {
    /// Plans without any side effect: scans and hashes, stores nothing.
    pub(crate) fn plan(&self, request: Request) -> Result<Plan, OperationError> {
        let mut forced = Vec::new();
        let missing_folder;
        let (plan, now, fresh) = loop {
            let (now, fresh, missing) = self.look(&request, &forced)?;
            let trees = Trees { fresh: &fresh, store: &self.store };
            let plan = self.draft(&trees, now, &request, &forced)?;
            if !more_unknown(&plan, &mut forced) {
                missing_folder = missing;
                break (plan, now, fresh);
            }
        };
        let trees = Trees { fresh: &fresh, store: &self.store };
        let (result, new) = plan.result(&trees, now)?;
        let changes = diff::root_changes(&Layered { over: &new, under: &trees }, Some(&now), Some(&result))?;
        let of = |kind: ChangeKind| paths(&changes, kind);
        let view = PlanView {
            kind: request.kind.as_str().to_owned(),
            target: (&request.target).into(),
            paths: request.paths.iter().map(PathView::from).collect(),
            created: of(ChangeKind::Created),
            restored: of(ChangeKind::Modified),
            deleted: of(ChangeKind::Deleted),
            skipped: self.skipped_by(&plan, &request)?,
            conflicts: plan.conflicts.iter().map(PathView::from).collect(),
            other_folder: self.is_other_folder(&request),
            missing_folder,
            other_workspaces: self.other_workspaces(&request.target),
            head_moved: self.head_moved(&request.target)?,
        };
        Ok(Plan { request, plan, forced, view })
    }

    /// Carries out a plan that was shown, or with no plan makes one under the lock.
    pub(crate) fn operate(
        &mut self,
        request: Request,
        shown: Option<(plan::Plan, Vec<WorkspacePath>)>,
    ) -> Result<OperationOutcome, OperationError> {
        let lock = self.store.lock(PATIENCE)?;
        self.read_record()?;
        self.recover_locked(&lock)?;
        if self.is_other_folder(&request) && !request.across {
            return Err(OperationError::OtherFolder(self.path.clone()));
        }
        let root = self.root_to_rewind(&lock, &request)?;
        let mut forced = shown.as_ref().map(|(_, forced)| forced.clone()).unwrap_or_default();
        let (plan, taken) = loop {
            let taken = self.take(&lock, &root, &Attention { forced: &forced, deadline: None })?;
            let trees = Trees { fresh: &taken.fresh, store: &self.store };
            let plan = match &shown {
                Some((plan, _)) => {
                    still_holds(&trees, taken.scan.root, plan)?;
                    plan.clone()
                }
                None => self.draft(&trees, taken.scan.root, &request, &forced)?,
            };
            if shown.is_some() || !more_unknown(&plan, &mut forced) {
                break (plan, taken);
            }
        };
        if !plan.conflicts.is_empty() {
            return Err(OperationError::Conflict { paths: plan.conflicts });
        }
        let skipped = self.skipped_by(&plan, &request)?;
        if plan.is_empty() {
            return Ok(OperationOutcome {
                operation: None,
                created: Vec::new(),
                restored: Vec::new(),
                deleted: Vec::new(),
                skipped,
                changed_again: Vec::new(),
                rescued: Vec::new(),
                verified: true,
                other_workspaces: self.other_workspaces(&request.target),
                also: Vec::new(),
                head_moved: self.head_moved(&request.target)?,
            });
        }
        let begun = self.begin(&root, &request, &plan, taken)?;
        let checked = self.carry_out(&lock, &root, &begun)?;
        let rescued: Vec<_> = checked.rescued.iter().map(|n| plan.steps[*n].path.clone()).collect();
        self.end(&lock, &root, &begun, &checked)?;
        let of = |kind: ChangeKind| paths(&begun.changes, kind);
        let operation = self.store.operation_row(&begun.operation.id)?;
        let id = begun.operation.id.clone();
        self.tell(|| match &begun.operation.kind {
            OperationKind::Redo { .. } => Notice::Redone { operation: id },
            OperationKind::Undo { .. } => Notice::Undone { operation: id },
            OperationKind::Rewind { .. } | OperationKind::Recover { .. } => Notice::Rewound { operation: id },
        });
        Ok(OperationOutcome {
            operation: operation.as_ref().map(Into::into),
            created: of(ChangeKind::Created),
            restored: of(ChangeKind::Modified),
            deleted: of(ChangeKind::Deleted),
            skipped,
            verified: checked.changed_again.is_empty(),
            changed_again: checked.changed_again.iter().map(Into::into).collect(),
            rescued: rescued.iter().map(Into::into).collect(),
            other_workspaces: self.other_workspaces(&request.target),
            also: Vec::new(),
            head_moved: self.head_moved(&request.target)?,
        })
    }

    /// The steps of a request, given the state now. `forced` are the paths that were looked at whatever the rules say.
    fn draft<S: TreeSource<Error = StoreError>>(
        &self,
        trees: &S,
        now: RootState,
        request: &Request,
        forced: &[WorkspacePath],
    ) -> Result<plan::Plan, OperationError> {
        match &request.steps {
            Some(steps) => {
                let mut wanted = plan::Plan::default();
                let mut changed = Vec::new();
                for step in &steps.steps {
                    let entry = diff::lookup(trees, &now.tree, &step.path)?;
                    if entry == step.after {
                        continue;
                    }
                    wanted.steps.push(step.clone());
                    let above =
                        step.path.split().map(|(parent, _)| folder_at(trees, now, &parent)).transpose()?.flatten();
                    match entry {
                        // Nothing there is not enough where the folder that held it is gone as well.
                        entry if entry == step.before && above.as_ref().is_some_and(Entry::is_folder) => {}
                        // A rule leaves it out by now: unknown until it is looked at all the same.
                        Some(Entry::Skipped { reason }) if reason.is_by_rule() && !forced.contains(&step.path) => {
                            wanted.unknown.push(step.path.clone());
                            if let Some(before) = &step.before {
                                wanted.unknown.append(&mut plan::captured_paths(trees, &step.path, before)?);
                            }
                        }
                        _ => changed.push(step.path.clone()),
                    }
                }
                for folder in &steps.folders {
                    let path = &folder.path;
                    match folder_at(trees, now, path)? {
                        Some(Entry::Folder { mode, .. }) if mode == folder.before || mode == folder.after => {
                            wanted.folders.push(FolderMode { before: mode, ..folder.clone() });
                        }
                        Some(Entry::Skipped { reason }) if reason.is_by_rule() && !forced.contains(path) => {
                            wanted.unknown.push(path.clone());
                        }
                        _ => changed.push(path.clone()),
                    }
                }
                if changed.is_empty() {
                    Ok(wanted)
                } else {
                    let target = request.target.checkpoint.id.clone();
                    Err(OperationError::ChangedSince { paths: changed, target })
                }
            }
            None => {
                let target = request.target.checkpoint.root;
                Self::check_paths(trees, [&now.tree, &target.tree], &request.paths)?;
                Ok(plan::plan(trees, now, target, &request.paths)?)
            }
        }
    }

    /// Scans for a plan.
    fn look(
        &self,
        request: &Request,
        forced: &[WorkspacePath],
    ) -> Result<(RootState, FreshTrees, bool), OperationError> {
        let sink = HashingSink::default();
        let root = match self.standing().map_err(|e| self.folder_error(e))? {
            Standing::Same(root) | Standing::Other(root) => root,
            Standing::Missing => {
                let (tree, encoded) = empty_tree();
                piton_host::Sink::tree(&sink, tree, encoded).unwrap_or_else(|never: Infallible| match never {});
                let mode = request.target.checkpoint.root.mode;
                return Ok((RootState { tree, mode }, sink.finish().0, true));
            }
        };
        let scan = self.look_at(&root, forced, &sink)?;
        Ok((scan.root, sink.finish().0, false))
    }

    pub(crate) fn is_other_folder(&self, request: &Request) -> bool {
        let replaced = matches!(self.standing(), Ok(Standing::Other(root)) if !root.is_empty().unwrap_or(false));
        replaced || request.target.checkpoint.line != self.record.line
    }

    /// What the target did not capture within the scope, and what is kept for not being known now.
    fn skipped_by(&self, plan: &plan::Plan, request: &Request) -> Result<Vec<SkippedView>, OperationError> {
        let within = |path: &WorkspacePath| request.paths.is_empty() || request.paths.iter().any(|p| path.is_within(p));
        let mut skipped = plan.kept.clone();
        if request.steps.is_none() {
            skipped.extend(diff::skipped(&self.store, &request.target.checkpoint.root.tree)?);
        }
        skipped.retain(|(path, _)| within(path));
        skipped.sort();
        skipped.dedup_by(|a, b| a.0 == b.0);
        Ok(skipped.iter().map(Into::into).collect())
    }

    /// The root to put files into. A root that is gone is made anew: only an operation that the user asked for does so.
    fn root_to_rewind(&mut self, lock: &Lock, request: &Request) -> Result<Root, OperationError> {
        let root = match self.standing().map_err(|e| self.folder_error(e))? {
            Standing::Same(root) => return Ok(root),
            Standing::Other(root) if !root.is_empty().unwrap_or(false) => return Ok(self.root_to_capture(lock)?),
            Standing::Other(root) => root,
            Standing::Missing => {
                make_root(&self.path, request.target.checkpoint.root.mode).map_err(|e| self.folder_error(e))?;
                Root::open(&self.path).map_err(|e| self.folder_error(e))?
            }
        };
        let change =
            piton_model::Workspace { root: root.identity(), at: self.environment.clock.now(), ..self.record.clone() };
        self.record_change(lock, change)?;
        self.store.drop_index();
        Ok(root)
    }

    /// Records the state before and the whole plan, durably.
    fn begin(
        &self,
        root: &Root,
        request: &Request,
        plan: &plan::Plan,
        taken: Taken<'_>,
    ) -> Result<Begun, OperationError> {
        let Taken { mut writer, scan, fresh, keeps_index } = taken;
        let trees = Trees { fresh: &fresh, store: &self.store };
        let (result, new) = plan.result(&trees, scan.root)?;
        let layered = Layered { over: &new, under: &trees };
        let changes = diff::root_changes(&layered, Some(&scan.root), Some(&result))?;
        let skipped = diff::skipped(&layered, &result.tree)?.len() as u64;
        for (id, tree) in &new {
            // Most of what comes back is there already.
            if !writer.contains(id)? {
                writer.tree(tree)?;
            }
        }
        let id = OperationId::from_random(clock::random().map_err(|e| self.folder_error(e))?);
        let parent = self.store.head(self.record.line)?;
        let git = self.git_state(&mut writer, &scan)?;
        let about =
            About { operation: Some(id.clone()), place: self.place_now()?, git, ..About::of(Cause::BeforeOperation) };
        let before = self.checkpoint(&scan, &fresh, parent.as_ref(), about)?;
        let follows = self.follows(request, &before)?;
        let operation = Operation {
            id,
            kind: request.kind.clone(),
            began_at: self.environment.clock.now(),
            about: None,
            before: before.id.clone(),
            follows,
            root: root.identity(),
            boot: clock::boot_id(),
            steps: plan.steps.clone(),
            folders: plan.folders.clone(),
            result,
        };
        writer.record(Record::Checkpoint(before.clone()))?;
        writer.record(Record::Operation(operation.clone()))?;
        writer.commit(true, keeps_index)?;
        point("operate:begun").map_err(|e| self.folder_error(e))?;
        self.keep_index(scan, keeps_index);
        let since = if operation.follows == before.id {
            Counts::of(&changes)
        } else {
            self.counts_since(&layered, &operation.follows, &result)?
        };
        Ok(Begun { operation, before, changes, since, skipped })
    }

    /// Stages, swaps and checks; on any failure everything is put back.
    fn carry_out(&self, lock: &Lock, root: &Root, begun: &Begun) -> Result<Checked, OperationError> {
        let applier = begun.applier(root);
        let mut swapped = 0;
        let result = applier
            .open_folders()
            .and_then(|()| self.store.read_steadily(|| applier.stage(&FromStore(&self.store))))
            .and_then(|()| applier.while_syncing(|| applier.swap(&mut swapped).and_then(|()| check(&applier))))
            .and_then(|checked| {
                applier.close_folders(true)?;
                applier.sync_swapped()?;
                Ok(checked)
            });
        result.map_err(|error| {
            let full_disk = match &error {
                ApplyError::Path { source, .. } => source.kind() == io::ErrorKind::StorageFull,
                ApplyError::Content(error) => error.is_full_disk(),
                _ => false,
            };
            let damaged = matches!(
                &error,
                ApplyError::Content(StoreError::Damaged(_) | StoreError::Missing(_) | StoreError::DamagedRecord { .. })
            );
            let reason = describe(error);
            match self.put_back(lock, &applier, swapped, &begun.before) {
                Ok(()) => {
                    // Whether or not this can be noted: the next command finds the old tree and ends the operation.
                    let _ = self.note_end(lock, &begun.operation.id, Outcome::RolledBack { why: reason.clone() });
                    OperationError::RolledBack { reason, full_disk, damaged }
                }
                Err(ApplyError::Path { path, source }) => {
                    OperationError::Stuck { reason, path, back: source.to_string() }
                }
                Err(other) => OperationError::Stuck { reason, path: WorkspacePath::root(), back: describe(other) },
            }
        })
    }

    /// Puts the old tree back.
    fn put_back(
        &self,
        lock: &Lock,
        applier: &Applier<'_>,
        swapped: usize,
        before: &Checkpoint,
    ) -> Result<(), ApplyError<StoreError>> {
        // The refusal may have come when some of them were closed already.
        applier.reopen_folders();
        for number in (0..swapped).rev() {
            applier.swap_back(number)?;
        }
        self.clear_all(lock, applier, before)?;
        applier.close_folders(false)
    }

    /// Removes what came out and records the result.
    fn end(&self, lock: &Lock, root: &Root, begun: &Begun, checked: &Checked) -> Result<(), OperationError> {
        let applier = begun.applier(root);
        let recorded = || -> Result<(), StoreError> {
            let before = match &checked.rescued[..] {
                [] => None,
                steps => Some(self.rescue(lock, &applier, steps, &begun.before)?),
            };
            applier.clear_all().map_err(|e: ApplyError<Infallible>| StoreError::Io {
                what: "cannot clear up after",
                path: self.path.clone(),
                source: io::Error::other(e.to_string()),
            })?;
            point("operate:cleared").map_err(random_error)?;
            self.note_done(lock, begun, before)
        };
        recorded().map_err(OperationError::Unrecorded)
    }

    fn note_done(&self, lock: &Lock, begun: &Begun, before: Option<CheckpointId>) -> Result<(), StoreError> {
        let after = CheckpointId::from_random(clock::random().map_err(random_error)?);
        let mut writer = self.store.write(lock)?;
        writer.record(Record::Checkpoint(Checkpoint {
            id: after.clone(),
            parent: Some(begun.operation.follows.clone()),
            line: self.record.line,
            created_at: self.environment.clock.now(),
            cause: Cause::Operation,
            root: begun.operation.result,
            changes: begun.since,
            skipped: begun.skipped,
            unsettled: Vec::new(),
            operation: Some(begun.operation.id.clone()),
            place: begun.before.place.clone(),
            description: None,
            owned: Vec::new(),
            git: begun.before.git,
        }))?;
        writer.record(Record::Ended {
            operation: begun.operation.id.clone(),
            outcome: Outcome::Done { after, before },
            ended_at: self.environment.clock.now(),
        })?;
        writer.commit(true, false)
    }

    pub(crate) fn note_end(&self, lock: &Lock, id: &OperationId, outcome: Outcome) -> Result<(), StoreError> {
        let mut writer = self.store.write(lock)?;
        writer.record(Record::Ended { operation: id.clone(), outcome, ended_at: self.environment.clock.now() })?;
        writer.commit(true, false)
    }

    /// Runs an operation of recovery: like any other, but the plan is given and nobody is asked.
    pub(crate) fn operate_recovery(
        &self,
        lock: &Lock,
        root: &Root,
        request: &Request,
        plan: &plan::Plan,
        taken: Taken<'_>,
    ) -> Result<(), OperationError> {
        let begun = self.begin(root, request, plan, taken)?;
        let checked = self.carry_out(lock, root, &begun)?;
        self.end(lock, root, &begun, &checked)
    }

    /// Ends a recovered operation whose result stands.
    pub(crate) fn finish_recovered(
        &self,
        lock: &Lock,
        operation: Operation,
        before: Checkpoint,
        rescued: Option<CheckpointId>,
    ) -> Result<(), StoreError> {
        let since = self.counts_since(&self.store, &operation.follows, &operation.result)?;
        let skipped =
            diff::skipped(&self.store, &operation.result.tree).map(|s| s.len() as u64).or_else(unless_damaged)?;
        let begun = Begun { operation, before, changes: Vec::new(), since, skipped };
        self.note_done(lock, &begun, rescued)
    }

    /// The checkpoint that a result follows. Owners and blame go back from there, so it is the moment that is returned
    /// to only where everything returns to it; otherwise what was done since would be nobody's.
    fn follows(&self, request: &Request, before: &Checkpoint) -> Result<CheckpointId, StoreError> {
        let target = &request.target.checkpoint;
        let returns = match &request.kind {
            OperationKind::Rewind { paths, kept, .. } => paths.is_empty() && kept.is_none(),
            OperationKind::Undo { .. } => false,
            OperationKind::Redo { of } | OperationKind::Recover { of } => {
                let after = self.store.operation_row(of)?.and_then(|row| row.after);
                let after = after.map(|id| self.store.checkpoint(&id)).transpose()?.flatten();
                after.is_some_and(|after| after.checkpoint.root == before.root)
            }
        };
        Ok(if returns { target.id.clone() } else { before.id.clone() })
    }

    /// How a root differs from a checkpoint. A damaged tree must not keep an operation from ending: only what is told of
    /// it gets shorter.
    fn counts_since<S: TreeSource<Error = StoreError>>(
        &self,
        trees: &S,
        from: &CheckpointId,
        to: &RootState,
    ) -> Result<Counts, StoreError> {
        let from = self.store.checkpoint(from)?.map(|row| row.checkpoint.root);
        let changes = diff::root_changes(trees, from.as_ref(), Some(to));
        changes.map(|changes| Counts::of(&changes)).or_else(unless_damaged)
    }
}

/// An operation that is recorded as pending.
struct Begun {
    operation: Operation,
    before: Checkpoint,
    /// What it changes, file by file.
    changes: Vec<Change>,
    /// How its result differs from the checkpoint that it follows.
    since: Counts,
    skipped: u64,
}

impl Begun {
    fn applier<'a>(&'a self, root: &'a Root) -> Applier<'a> {
        Applier { root, operation: &self.operation.id, steps: &self.operation.steps, folders: &self.operation.folders }
    }
}

/// Compares what came out with what was captured, and what went in with the plan.
fn check(applier: &Applier<'_>) -> Result<Checked, ApplyError<StoreError>> {
    let found = in_parallel(applier.steps.len(), || (), |(), number| check_step(applier, number))?;
    let numbers = |of: fn(&(bool, bool)) -> bool| (0..found.len()).filter(|n| of(&found[*n])).collect::<Vec<_>>();
    Ok(Checked {
        rescued: numbers(|(rescue, _)| *rescue),
        changed_again: numbers(|(_, again)| *again).into_iter().map(|n| applier.steps[n].path.clone()).collect(),
    })
}

/// Whether something else came out of one step than was captured, and whether something else stands there now than
/// was put there.
fn check_step(applier: &Applier<'_>, number: usize) -> Result<(bool, bool), ApplyError<StoreError>> {
    let step = &applier.steps[number];
    point("operate:check").map_err(|source| ApplyError::Path { path: step.path.clone(), source })?;
    let mut rescue = false;
    if step.before.is_some() {
        let out = found_at(applier.root, &applier.staged_path(number), &step.path)?;
        rescue = out.is_some() && out != step.before;
        // It cannot be stored, so it must not go.
        if rescue && out.as_ref().is_some_and(Entry::holds_skipped) {
            return Err(ApplyError::Stale { path: step.path.clone() });
        }
        if out.as_ref().is_some_and(Entry::is_folder) {
            applier.check_removable(number)?;
        }
    }
    let again = found_at(applier.root, step.path.as_bytes(), &step.path)? != step.after;
    Ok((rescue, again))
}

fn still_holds<S: TreeSource<Error = StoreError>>(
    trees: &S,
    now: RootState,
    plan: &plan::Plan,
) -> Result<(), OperationError> {
    for step in &plan.steps {
        if diff::lookup(trees, &now.tree, &step.path)? != step.before {
            return Err(OperationError::Stale { path: step.path.clone() });
        }
    }
    for folder in &plan.folders {
        match folder_at(trees, now, &folder.path)? {
            Some(Entry::Folder { mode, .. }) if mode == folder.before => {}
            _ => return Err(OperationError::Stale { path: folder.path.clone() }),
        }
    }
    Ok(())
}

/// The entry at a path, where the root has one too.
fn folder_at<S: TreeSource<Error = StoreError>>(
    trees: &S,
    now: RootState,
    path: &WorkspacePath,
) -> Result<Option<Entry>, StoreError> {
    if path.is_root() {
        return Ok(Some(Entry::Folder { mode: now.mode, tree: now.tree, holds_skipped: false }));
    }
    diff::lookup(trees, &now.tree, path)
}

/// Adds what a plan asks for to the forced paths; whether there was anything new.
fn more_unknown(plan: &plan::Plan, forced: &mut Vec<WorkspacePath>) -> bool {
    let new: Vec<_> = plan.unknown.iter().filter(|p| !forced.contains(p)).cloned().collect();
    let more = !new.is_empty();
    forced.extend(new);
    more
}

fn paths(changes: &[Change], kind: ChangeKind) -> Vec<PathView> {
    changes.iter().filter(|c| !c.implied && c.kind() == kind).map(|c| (&c.path).into()).collect()
}

fn describe(error: ApplyError<StoreError>) -> String {
    match error {
        ApplyError::Path { path, source } => format!("`{}`: {source}", path.display()),
        ApplyError::Stale { path } => format!("`{}` changed in the meantime", path.display()),
        ApplyError::ReadBack { path } => format!("`{}` does not read back as it was written", path.display()),
        ApplyError::Content(error) => error.to_string(),
    }
}

fn unless_damaged<T: Default>(error: StoreError) -> Result<T, StoreError> {
    match error {
        StoreError::Missing(_) | StoreError::Damaged(_) => Ok(T::default()),
        error => Err(error),
    }
}

pub(crate) fn random_error(source: io::Error) -> StoreError {
    StoreError::Io { what: "cannot write", path: "the store".into(), source }
}

/// Content for staging, from the store.
struct FromStore<'a>(&'a Store);

impl Content for FromStore<'_> {
    type Error = StoreError;

    fn tree(&self, id: &ObjectId) -> Result<Arc<Tree>, StoreError> {
        self.0.tree(id)
    }

    fn write_blob(&self, id: &ObjectId, to: &mut dyn Write) -> Result<io::Result<()>, StoreError> {
        self.0.write_blob(id, to)
    }
}
