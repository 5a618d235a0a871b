//! Operations: what rewind, undo, redo and recovery share. Capture now, record the plan, stage, swap, check, record the end.
//!
//! The order is the promise. Until the plan is recorded durably nothing of the user's is touched; until everything is
//! staged nothing is swapped; until what was put in place is synced, and what came out is known to be stored, nothing is
//! removed; and a crash at any point leaves a pending operation that [`crate::operation::recover`] ends one way or the other.

use std::collections::HashSet;
use std::sync::atomic::Ordering::SeqCst;

use piton_host::apply::{Refusals, Reopened, mode_of};
use piton_host::{Root, Scan};
use piton_model::diff::{Change, ChangeKind};
use piton_model::inverse::Conflict;
use piton_model::moves::Move;
use piton_model::plan::{self, FolderMode};
use piton_model::{Entry, Operation, OperationKind, Outcome, SkipReason, Step, WorkspacePath};
use piton_store::{PATIENCE, Progress, StoreError};

use crate::capture::sink::{FreshTrees, HashingSink, Trees};
use crate::capture::{Attention, Taken};
use crate::operation::begin::{Begun, Noted, RootToRewind};
use crate::operation::draft::{
    Draft, FolderNow, Plan, carried_in, more_unknown, not_done, paths, still_holds, torn, touched,
};
use crate::operation::error::{OperationError, are_damaged};
use crate::operation::holds::{is_within_any, step_paths};
use crate::operation::request::{Asked, Request};
use crate::operation::running::Settled;
use crate::view::{OperationOutcome, PathView, SkippedView};
use crate::workspace::locked::Locked;
use crate::workspace::{History, Workspace};

impl Workspace {
    /// Carries out a plan that was shown. Refused where one of its paths changed since.
    pub fn carry_out(&mut self, plan: Plan) -> Result<OperationOutcome, OperationError> {
        let Plan { of, ask, request, draft, forced, .. } = plan;
        if of != self.record.id {
            return Err(OperationError::Expired);
        }
        self.operate(&ask, Some((request, draft, forced)))
    }

    /// Carries out a plan that was shown, or with no plan makes one under the lock. Where the system refuses some of it and
    /// that shall not keep the rest, it is put back, and done once more without that.
    pub(crate) fn operate(
        &mut self,
        ask: &Asked,
        shown: Option<(Request, Draft, Vec<WorkspacePath>)>,
    ) -> Result<OperationOutcome, OperationError> {
        let (mut left, mut left_outside): (Vec<WorkspacePath>, Vec<WorkspacePath>) = (Vec::new(), Vec::new());
        loop {
            let of_others = Refusals::new(ask.is_partial());
            match self.operate_without(ask, shown.as_ref(), (&left, &left_outside), &of_others) {
                Err(OperationError::RolledBack { refused, .. })
                    if ask.is_partial()
                        && (refused.iter().any(|path| !left.contains(path))
                            || of_others.paths().iter().any(|path| !left_outside.contains(path))) =>
                {
                    left.extend(refused);
                    left_outside.extend(of_others.paths());
                }
                result => return result,
            }
        }
    }

    fn operate_without(
        &mut self,
        ask: &Asked,
        shown: Option<&(Request, Draft, Vec<WorkspacePath>)>,
        (left, left_outside): (&[WorkspacePath], &[WorkspacePath]),
        refused_outside: &Refusals,
    ) -> Result<OperationOutcome, OperationError> {
        let locked = self.lock(PATIENCE)?;
        let mut locked = locked.recovered()?;
        // They tell whose a change is; what cannot be recorded of them does not stand in the way.
        let _ = locked.record_left_aside();
        if locked.is_other_folder(ask) && !ask.goes_across() {
            return Err(locked.other_folder(ask));
        }
        let Settled { interrupted, goes_on } = match &shown {
            // Known to write nothing: no agent is in its way.
            Some((request, draft, _))
                if draft.is_empty() && draft.plan.undone.is_empty() && request.git_move().is_none() =>
            {
                Settled::default()
            }
            shown => locked.settle_running(ask, shown.as_ref().map(|(_, draft, _)| &draft.known))?,
        };
        let RootToRewind { root, change, made } = locked.root_to_rewind(ask)?;
        let mut forced = shown.as_ref().map(|(.., forced)| forced.clone()).unwrap_or_default();
        // Goes after the bits are put back, and before the lock does.
        let mut note = locked.store().reopened_note(&locked.lock);
        // One that was just made holds nothing, as none did.
        let found = made.is_none().then_some(&root);
        let mut reopened = Reopened::new(&root);
        if let Some((_, draft, _)) = &shown {
            locked.reopen(&mut note, &mut reopened, &root, &draft.plan)?;
        }
        let (request, draft, taken) = loop {
            let mut planned = |now: &Scan, fresh: &FreshTrees, forced: &mut Vec<_>, reopened: &mut Reopened<'_>| {
                let trees = Trees { fresh, store: &locked.store };
                let seen = FolderNow { now: now.root, trees, index: now.index.as_ref(), root: found };
                let planned = locked.planned(ask, shown, &seen, reopened)?;
                let plan = &planned.1.plan;
                let is_last = !more_unknown(plan, forced) && !locked.reopen(&mut note, reopened, &root, plan)?;
                Ok::<_, OperationError>(is_last.then_some(planned))
            };
            match locked.take(&root, &Attention { forced: &forced, ..Attention::default() }) {
                Ok(mut taken) => {
                    taken.writer.begin_writing()?;
                    if let Some((request, draft)) = planned(&taken.scan, &taken.fresh, &mut forced, &mut reopened)? {
                        break (request, draft, taken);
                    }
                }
                Err(error) if error.is_over_budget() => {
                    let sink = HashingSink::default();
                    let scan = locked.look_at(&root, &forced, &sink)?;
                    let fresh = sink.finish().0;
                    if let Some((request, mut draft)) = planned(&scan, &fresh, &mut forced, &mut reopened)? {
                        draft.leave_refused(left);
                        let paths: Vec<_> = draft.plan.steps.iter().map(|step| step.path.clone()).collect();
                        let taken = locked.take_lean(&root, scan, fresh, &paths)?;
                        let trees = Trees { fresh: &taken.fresh, store: &locked.store };
                        still_holds(&trees, taken.scan.root, &draft.plan)?;
                        break (request, draft, taken);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        };
        let open: Vec<Conflict> = draft.open_conflicts().cloned().collect();
        if !open.is_empty() && !request.settle.partial {
            return Err(OperationError::Conflict(open));
        }
        let mut draft = draft;
        draft.leave_refused(left);
        draft.outside.leave_refused(left_outside);
        if !request.touches_outside {
            draft.outside.steps.clear();
        } else if !request.settle.partial {
            let open: Vec<Conflict> = draft.open_outside().cloned().collect();
            if !open.is_empty() {
                return Err(OperationError::ConflictOutside(open));
            }
        }
        let draft = draft;
        let mut outcome = OperationOutcome {
            operation: None,
            created: Vec::new(),
            restored: Vec::new(),
            deleted: Vec::new(),
            skipped: locked.skipped_by(&draft.plan, &request)?,
            not_done: not_done(draft.plan.undone.iter()),
            torn: Vec::new(),
            merged: draft.merged.iter().map(Into::into).collect(),
            conflicts: draft.conflicts.iter().map(Into::into).collect(),
            excepted: draft.excepted.paths.iter().map(Into::into).collect(),
            in_part: draft.excepted.in_part.iter().map(Into::into).collect(),
            git: request.git.as_ref().map(|plan| plan.view().clone()),
            git_stays: request.git_stays.clone(),
            conversation: None,
            conversation_stays: request.conversation_stays.clone(),
            outside: draft.outside.files.clone(),
            touches_outside: request.touches_outside,
            touched_outside: !draft.outside.steps.is_empty(),
            already: false,
            along: request.remarks.along.iter().map(Into::into).collect(),
            others: Vec::new(),
            unsure: request.remarks.unsure.clone(),
            unsure_back: request.remarks.unsure_back.clone(),
            carried: request.remarks.carried.clone(),
            commands: request.remarks.commands.clone(),
            changed_again: Vec::new(),
            rescued: Vec::new(),
            came_since: Vec::new(),
            deleted_new: Vec::new(),
            leftovers: Vec::new(),
            verified: draft.plan.undone.is_empty(),
            other_workspaces: locked.other_workspaces_of(&request),
            also: Vec::new(),
            head_moved: locked.head_moved_of(&request)?,
            interrupted,
            running: goes_on,
            unknown: request.remarks.unknown.clone(),
            accepted: request.remarks.accepted.iter().map(Into::into).collect(),
        };
        if taken.is_lean {
            let is_new = |one: &SkippedView| !outcome.skipped.iter().any(|other| other.path == one.path);
            let left_out = taken.scan.skipped.iter().filter(|(_, reason)| *reason == SkipReason::Budget);
            let left_out: Vec<SkippedView> = left_out.map(SkippedView::from).filter(is_new).collect();
            outcome.skipped.extend(left_out);
        }
        let closes = match ask {
            Asked::Redo(asked) => closes_again(&root, &asked.operation),
            _ => Vec::new(),
        };
        // Where only some changes are taken back, a folder that is gone comes back with them and not by itself.
        let makes_folder = change.is_some() && request.aim.target().is_some();
        let is_idle = draft.is_empty() && reopened.is_empty() && closes.is_empty() && !makes_folder;
        let lays_out = matches!(ask, Asked::Checkout(_));
        if is_idle && request.git_move().is_none() && request.conversation.is_none() && !lays_out {
            outcome.already = is_taken_back_already(ask, &draft, &outcome);
            if !outcome.already {
                return Ok(outcome);
            }
        }
        let bits: Vec<FolderMode> = reopened.ways().iter().chain(&closes).cloned().collect();
        let noted =
            Noted { is_shown: shown.is_some(), bits: &bits, change: change.as_ref(), is_root_made: made.is_some() };
        let progress = locked.store().progress_note(&locked.lock)?;
        locked.progress.may_stop.store(false, SeqCst);
        let begun = locked.begin(&root, &request, &draft, taken, &noted);
        let (begun, conversation) = begun.map_err(|error| locked.name_damaged_in(error, &draft.plan.steps))?;
        if let Some(change) = change {
            locked.home.note(&change)?;
            locked.record = change;
        }
        if let Some(made) = made {
            made.keep();
        }
        if let Some(change) = &begun.operation.git
            && let Err(refusal) = locked.keep_git(&begun.operation.id, change)
        {
            // No file was touched, and none is where its end cannot be recorded.
            let _ = progress.write(&begun.operation.id, Progress::PutBack);
            locked.note_end(&begun.operation.id, Outcome::RolledBack { why: refusal.to_string() })?;
            return Err(refusal.into());
        }
        // From here on the operation puts the bits back where it is rolled back.
        reopened.keep();
        drop(note);
        let checked = locked.apply(&root, &begun, &progress, ask.is_partial(), refused_outside)?;
        let bits_not_taken = checked.inside.bits_not_taken.clone();
        let refused_outside = checked.outside.bits_not_taken.iter().map(PathView::outside);
        let refused_outside =
            refused_outside.map(|path| SkippedView { path, reason: SkipReason::Refused, was_captured: false });
        outcome.not_done.extend(refused_outside);
        let changed_again = checked.inside.changed_again.iter().map(PathView::from);
        outcome.changed_again =
            changed_again.chain(checked.outside.changed_again.iter().map(PathView::outside)).collect();
        let cleared = locked.end(&root, &begun, &progress, checked)?;
        if begun.operation.git.is_some() {
            locked.forget_git_taken_back();
        }
        drop(locked);
        if let Some(change) = &begun.operation.conversation
            && let Some(branch) = &change.branch
        {
            self.note_branch_elsewhere(branch, change.worktree.is_none());
        }
        outcome.conversation = conversation;
        let of = |kind: ChangeKind| paths(&begun.changes, kind);
        let operation = self.store.operation_row(&begun.operation.id)?;
        outcome.operation = operation.as_ref().map(Into::into);
        outcome.others = touched(&request.remarks, &draft, &begun.changes);
        outcome.created = of(ChangeKind::Created);
        outcome.restored = of(ChangeKind::Modified);
        outcome.deleted = of(ChangeKind::Deleted);
        let is_listed = |path: &WorkspacePath| begun.changes.iter().any(|change| change.path == *path);
        outcome.restored.extend(bits.iter().map(|way| &way.path).filter(|path| !is_listed(path)).map(Into::into));
        if !bits_not_taken.is_empty() {
            outcome.restored.retain(|path| path.exact().is_none_or(|path| !bits_not_taken.contains(&path)));
            let not_taken = bits_not_taken.into_iter().map(|path| (path, SkipReason::Refused));
            outcome.not_done.extend(not_taken.map(|one| SkippedView::from(&one)));
        }
        outcome.verified = outcome.changed_again.is_empty() && outcome.not_done.is_empty();
        outcome.rescued = cleared.rescued.iter().map(Into::into).collect();
        // Of an undo or a redo everything stays that was done since.
        if matches!(begun.operation.kind, OperationKind::Rewind { .. }) {
            outcome.came_since = came_since(&begun.unplanned, &draft);
        }
        outcome.deleted_new = deleted_new(&begun, shown.map(|(_, draft, _)| &draft.plan), &draft.moves);
        outcome.carried = carried_in(&request, draft.conflicts.iter(), &draft.moves, &begun.changes);
        // It is done, whatever cannot be said of it.
        outcome.torn = torn(&self.store, begun.before.root, &draft.plan, &begun.changes).unwrap_or_default();
        outcome.leftovers = cleared.left.into_iter().map(|left| left.view).collect();
        Ok(outcome)
    }
}

impl Locked<'_> {
    /// Runs an operation of recovery: like any other, but the plan is given and nobody is asked.
    pub(crate) fn operate_recovery(
        &self,
        root: &Root,
        request: &Request,
        draft: &Draft,
        taken: Taken<'_>,
    ) -> Result<(), OperationError> {
        let progress = self.store().progress_note(&self.lock)?;
        let (begun, _) = self.begin(root, request, draft, taken, &Noted::default())?;
        let checked = self.apply(root, &begun, &progress, false, &Refusals::default())?;
        self.end(root, &begun, &progress, checked).map(drop)
    }
}

impl History {
    /// An object that is damaged, told by the paths of the steps that need it.
    pub(crate) fn name_damaged_in(&self, error: OperationError, steps: &[Step]) -> OperationError {
        let OperationError::Store(StoreError::Damaged(_) | StoreError::Missing(_)) = &error else { return error };
        match self.damaged_in(steps) {
            damaged if damaged.is_empty() => error,
            damaged => OperationError::RolledBack {
                reason: are_damaged(&damaged),
                full_disk: false,
                damaged,
                refused: Vec::new(),
                leftovers: Vec::new(),
            },
        }
    }

    pub(crate) fn other_folder(&self, ask: &Asked) -> OperationError {
        let last = || self.store.head(self.record.line).ok().flatten();
        let state = ask.target().cloned().or_else(last).map(|row| row.checkpoint.id);
        OperationError::OtherFolder { path: self.path.clone(), state }
    }

    /// Refuses to go on where something else stands in the place of the workspace's folder: it is never written.
    pub(crate) fn refuse_displaced(&self) -> Result<(), OperationError> {
        match self.in_its_place() {
            Some(by) => Err(OperationError::Displaced { path: self.path.clone(), by }),
            None => Ok(()),
        }
    }
}

/// What came after a plan was shown, without what the plan left alone and says so.
fn came_since(unplanned: &[WorkspacePath], draft: &Draft) -> Vec<PathView> {
    let conflicts = draft.conflicts.iter().map(|conflict| &conflict.path);
    let told: HashSet<_> = draft.plan.kept.iter().map(|(path, _)| path).chain(conflicts).collect();
    unplanned.iter().filter(|path| !is_within_any(path, &told)).map(Into::into).collect()
}

/// Of what an operation deletes, what nobody was shown: neither an earlier checkpoint nor a plan has it. What it moves is not
/// deleted.
fn deleted_new(begun: &Begun, shown: Option<&plan::Plan>, moves: &[Move]) -> Vec<PathView> {
    let planned = shown.map(step_paths).unwrap_or_default();
    let found: HashSet<_> = begun.before.owned.iter().flat_map(|owned| &owned.paths).map(|one| &one.path).collect();
    let content = |entry: &Option<Entry>| match entry {
        Some(Entry::File { blob, size, .. }) if *size > 0 => Some(*blob),
        _ => None,
    };
    let came: HashSet<_> = begun.changes.iter().filter_map(|change| content(&change.after)).collect();
    let is_moved = |change: &Change| {
        content(&change.before).is_some_and(|blob| came.contains(&blob))
            || moves.iter().any(|one| one.from == change.path)
    };
    let is_deleted = |change: &&Change| !change.implied && change.kind() == ChangeKind::Deleted && !is_moved(change);
    let deleted = begun.changes.iter().filter(is_deleted).map(|change| &change.path);
    deleted.filter(|path| found.contains(path) && !is_within_any(path, &planned)).map(Into::into).collect()
}

/// What an operation had made readable and a redo of it closes again, as far as nobody gave it other bits since. No
/// checkpoint knows those bits: what cannot be read is not captured.
fn closes_again(root: &Root, operation: &Operation) -> Vec<FolderMode> {
    let opened = operation.folders.iter().filter(|way| way.before & 0o500 != 0o500);
    let still = opened.filter(|way| mode_of(root, &way.path).is_ok_and(|mode| mode == way.after));
    still.map(|way| FolderMode { path: way.path.clone(), before: way.after, after: way.before }).collect()
}

/// Whether an operation is to be taken back that somebody took back by hand. That is recorded with nothing to change:
/// otherwise the next redo would find the same one again, and never reach those before it.
fn is_taken_back_already(ask: &Asked, draft: &Draft, outcome: &OperationOutcome) -> bool {
    let stays_elsewhere = !outcome.outside.is_empty() && !outcome.touched_outside;
    matches!(ask, Asked::Redo(_))
        && draft.open_conflicts().next().is_none()
        && draft.open_outside().next().is_none()
        && draft.excepted.all().next().is_none()
        && draft.plan.kept.is_empty()
        && !stays_elsewhere
        && outcome.git_stays.is_none()
}
