//! Redoing: take back an operation. Only what it changed; where somebody changed that again since, the two are merged.

use std::collections::HashSet;

use piton_model::diff;
use piton_model::git::GitMove;
use piton_model::inverse::{Altered, Inverse, Link};
use piton_model::ownership::{Candidate, Owner};
use piton_model::trail::{Begin, Taken};
use piton_model::{
    ChangesAt, Operation, OperationKind, OperationTarget, OperationVerb, SessionId, SkipReason, StepRef, WorkspacePath,
};
use piton_store::{CheckpointRow, OperationRow, StoreError};

use crate::history::operations::{is_first_hand, standing};
use crate::history::target::TargetError;
use crate::operation::chosen::commands;
use crate::operation::draft::{FolderNow, Plan};
use crate::operation::error::OperationError;
use crate::operation::lost::refuse_lost;
use crate::operation::outside::OutsideChanges;
use crate::operation::request::{Aim, Asked, Remarks, Request, Returns, Settle};
use crate::operation::rewind::files;
use crate::operation::undo::by_checkpoint;
use crate::view::OperationOutcome;
use crate::workspace::{History, Workspace};

/// Which operation to take back, and how.
#[derive(Clone, Debug, Default)]
pub struct RedoOptions {
    /// The operation's id or its beginning; the last rewind or undo that still stands where not given.
    pub operation: Option<String>,
    /// In place of that: take back this operation and every later one together, as if none of them had happened.
    pub to: Option<String>,
    /// How conflicts are settled.
    pub settle: Settle,
    /// Touch files outside the workspace that it touched, too.
    pub outside: bool,
    /// The turn that an agent is in was interrupted, and does not go on: the user says so.
    pub interrupted: bool,
}

/// An operation to take back.
#[derive(Clone)]
pub(crate) struct RedoAsked {
    pub operation: Operation,
    /// Those after it, oldest first, where all are taken back together.
    pub later: Vec<Operation>,
    /// The state before it.
    pub before: CheckpointRow,
    /// Only these paths, which an earlier redo of it left; all when empty.
    pub only: Vec<WorkspacePath>,
    pub settle: Settle,
    pub outside: bool,
    pub interrupted: bool,
}

impl RedoAsked {
    /// Every operation that is taken back, oldest first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Operation> {
        [&self.operation].into_iter().chain(&self.later)
    }

    /// Where the repository went, if one of them alone moved it.
    pub(crate) fn git(&self) -> Option<&GitMove> {
        let mut moves = self.all().filter_map(|operation| operation.git.as_ref());
        moves.next().filter(|_| moves.next().is_none())
    }
}

/// What goes with the line that a redo leads away from.
#[derive(Default)]
struct Away {
    gone: Vec<ChangesAt>,
    fresh: Vec<WorkspacePath>,
    remarks: Remarks,
}

impl Workspace {
    /// Plans and takes back in one go, under the lock.
    pub fn redo_now(&mut self, options: &RedoOptions) -> Result<OperationOutcome, OperationError> {
        let ask = self.redo_asked(options)?;
        self.operate(&ask, None)
    }
}

impl History {
    /// Plans to take back an operation, for showing. Has no side effect.
    pub fn plan_redo(&self, options: &RedoOptions) -> Result<Plan, OperationError> {
        self.plan(self.redo_asked(options)?)
    }

    pub(crate) fn redo_asked(&self, options: &RedoOptions) -> Result<Asked, OperationError> {
        let (row, only) = self.operation_meant(options.to.as_deref().or(options.operation.as_deref()))?;
        let later = match &options.to {
            // What an earlier redo of it left is taken back by itself.
            Some(_) if only.is_empty() => self.operations_after(&row)?,
            _ => Vec::new(),
        };
        let mut operation = self.store.operation(&row)?;
        // What it came to, where that is not what was planned: bits that the system did not take.
        if let Some(after) = row.after.as_ref().map(|id| self.store.checkpoint(id)).transpose()?.flatten() {
            operation.result = after.checkpoint.root;
        }
        // The row's: where the check found something else than the capture had read, it is the corrected one.
        let lost = StoreError::DamagedRecord { seq: row.seq };
        let before = self.store.checkpoint(&row.before)?.ok_or(lost)?;
        let RedoOptions { settle, outside, interrupted, .. } = options.clone();
        Ok(Asked::Redo(Box::new(RedoAsked { operation, later, before, only, settle, outside, interrupted })))
    }

    pub(crate) fn redo_request(&self, asked: &RedoAsked, seen: &FolderNow<'_>) -> Result<Request, OperationError> {
        let RedoAsked { operation, before, only, settle, .. } = asked;
        let is_rest = !only.is_empty();
        // Where the user was before the first of them that went anywhere.
        let went = asked.all().filter_map(|operation| operation.conversation.as_ref()).find(|change| change.went.goes);
        let conversation = match went {
            // It went back with the first part.
            Some(change) if !is_rest => self.talk_back(&change.went)?,
            _ => None,
        };
        let mut away = Away::default();
        let aim = if is_rest {
            let changes = self.inverse_of_operation(operation, before, only, seen)?;
            Aim::Without { changes, target: Some(before.clone()) }
        } else if !asked.later.is_empty() {
            let (left, carried) = self.before_all(asked, before, seen)?;
            away = left;
            Aim::StateWith { target: before.clone(), carried }
        } else if seen.now == operation.result && settle.except.is_empty() {
            // Nothing was done since: there is nothing to merge with.
            Aim::State(before.clone())
        } else if let Some((left, back)) = self.line_left(operation)? {
            let (left, carried) = self.leave_lines((&[left], Some(back)), before, seen, settle, u64::MAX)?;
            away = left;
            Aim::StateWith { target: before.clone(), carried }
        } else {
            let changes = self.inverse_of_operation(operation, before, &[], seen)?;
            Aim::Without { changes, target: Some(before.clone()) }
        };
        // It went with the rest, so it comes back with the rest; but not over what somebody did in the repository since.
        let git = asked.git().filter(|_| !is_rest);
        let (git, git_stays) = match git.map(|change| self.plan_git_back(change)) {
            Some(Ok(plan)) => (Some(plan), None),
            Some(Err(refusal)) => (None, Some(refusal.to_string())),
            None => (None, None),
        };
        let moved_git = asked.all().filter(|operation| operation.git.is_some()).count();
        let git_stays = git_stays.or((moved_git > 1).then(|| {
            "several of these operations moved git's branch and index; taken back one by one, they put it back"
                .to_owned()
        }));
        let kind = operation.kind.verb().as_str();
        let about = match &operation.about {
            Some(about) => format!("the {kind} of {about}"),
            None => format!("the {kind} {}", operation.id.short()),
        };
        let about = match asked.later.len() {
            _ if is_rest => format!("what was left of {about}"),
            0 => about,
            1 => format!("{about} and the operation after it"),
            more => format!("{about} and the {more} operations after it"),
        };
        let kind = OperationKind::Redo {
            of: operation.id.clone(),
            also: asked.later.iter().map(|operation| operation.id.clone()).collect(),
            gone: away.gone,
            left: Vec::new(),
            only: only.clone(),
            open: Vec::new(),
        };
        Ok(Request {
            about: Some(about),
            git,
            git_stays,
            conversation,
            // What was said of those when the first part was done is not said again.
            outside: if (is_rest && !asked.outside) || !asked.later.is_empty() {
                OutsideChanges::default()
            } else {
                OutsideChanges::of_operation(operation)
            },
            touches_outside: asked.outside,
            fresh: away.fresh,
            returns: (!is_rest && asked.later.is_empty() && settle.except.is_empty())
                .then(|| Returns { to: before.checkpoint.id.clone(), from: Some(operation.result) }),
            settle: settle.clone(),
            remarks: away.remarks,
            ..Request::new(kind, aim)
        })
    }

    /// The session that taking an operation back leads away from and the one it leads back to, where the files went with
    /// the conversation.
    fn line_left<'a>(
        &self,
        operation: &'a Operation,
    ) -> Result<Option<(&'a SessionId, &'a SessionId)>, OperationError> {
        let went = operation.conversation.as_ref().map(|change| &change.went).filter(|went| went.goes);
        let Some((left, back)) = went.and_then(|went| Some((went.to.as_ref()?, &went.from))) else { return Ok(None) };
        // The taking back of a rewind moves files with the conversation as the rewind did.
        let mut kind = operation.kind.clone();
        while let OperationKind::Redo { of, .. } = &kind {
            let Some(row) = self.store.operation_row(of)? else { return Ok(None) };
            kind = self.store.operation(&row)?.kind;
        }
        Ok(matches!(kind, OperationKind::Rewind { .. }).then_some((left, back)))
    }

    /// The state before several operations with everything that was done since, as if none of them had happened. What was
    /// done in the lines that they went to goes.
    fn before_all(
        &self,
        asked: &RedoAsked,
        before: &CheckpointRow,
        seen: &FolderNow<'_>,
    ) -> Result<(Away, Inverse), OperationError> {
        let (mut lefts, mut back) = (Vec::new(), None);
        for operation in asked.all() {
            if let Some((left, from)) = self.line_left(operation)? {
                lefts.push(left);
                back = back.or(Some(from));
            }
        }
        let until = self.store.operation_row(&asked.operation.id)?.map_or(u64::MAX, |row| row.seq);
        self.leave_lines((&lefts, back), before, seen, &asked.settle, until)
    }

    /// What was done in some lines goes when the user goes back to the one that they left: it is that line's files that come,
    /// with what others did since carried over. What goes stays in its checkpoints. Operations from `until` on count as if
    /// they had not happened.
    fn leave_lines(
        &self,
        (lefts, back): (&[&SessionId], Option<&SessionId>),
        before: &CheckpointRow,
        seen: &FolderNow<'_>,
        settle: &Settle,
        until: u64,
    ) -> Result<(Away, Inverse), OperationError> {
        let back = back.map(|back| self.lineage(back)).transpose()?;
        let mut of_line = Vec::new();
        for row in self.store.sessions()? {
            // Whatever began in it is built on it.
            if self.lineage(&row.session.id)?.sessions().any(|one| lefts.contains(&one)) {
                of_line.push(row.session.id);
            }
        }
        let is_kept = |step: &StepRef| back.as_ref().is_some_and(|back| back.holds_step(step));
        let is_step = |step: &StepRef| of_line.contains(&step.session) && !is_kept(step);
        let is_of_line = |owner: &Owner| match owner {
            Owner::Step { step, .. } => is_step(step),
            Owner::Unsure { candidates } => {
                let of_line = |one: &Candidate| matches!(one, Candidate::Step(step) if is_step(step));
                !candidates.is_empty() && candidates.iter().all(of_line)
            }
            Owner::You | Owner::Operation { .. } => false,
        };
        let since = self.changes_since_without(before, seen, &[], until)?;
        let (gone, mut carried): (Vec<_>, Vec<_>) = since.into_iter().partition(|change| is_of_line(&change.owner));
        let mut steps = self.store.steps_since(before.seq)?;
        steps.retain(|row| is_step(&row.step.at));
        carried.reverse();
        // Where no line is left, what goes is what the operations had brought, and nobody wrote that where it is now.
        let looks_back = !lefts.is_empty();
        let (inverse, lost) = self.carried_of(&carried, &[], before, (&[], looks_back), seen)?;
        let named = self.not_as_in(before, lost.clone(), seen);
        refuse_lost(&named, settle)?;
        carried.retain(|change| !lost.iter().any(|lost| change.path.is_within(lost)));
        carried.reverse();
        let stuck = named.into_iter().map(|path| (path, SkipReason::Damaged)).collect();
        let away = Away {
            gone: by_checkpoint(&gone),
            fresh: gone.iter().filter(|c| c.found_at.is_none()).map(|c| c.path.clone()).collect(),
            remarks: Remarks { carried: files(&carried), stuck, commands: commands(&steps), ..Remarks::default() },
        };
        Ok((away, inverse))
    }

    /// What an operation changed at some paths, or everywhere, turned round.
    fn inverse_of_operation(
        &self,
        operation: &Operation,
        before: &CheckpointRow,
        only: &[WorkspacePath],
        seen: &FolderNow<'_>,
    ) -> Result<Inverse, OperationError> {
        let mut changes = Inverse::default();
        let mut taken = Vec::new();
        let at = self.store.operation_row(&operation.id)?.map_or(0, |row| row.seq);
        let all = diff::root_changes(&self.store, Some(&before.checkpoint.root), Some(&operation.result))?;
        // Lines that it took from one file to another stay in that one where the first stays without them.
        changes.altered(all.iter().map(|change| Altered {
            path: change.path.clone(),
            was: change.before.clone(),
            is: change.after.clone(),
            is_taken: true,
            is_others: true,
        }));
        for change in all.into_iter().filter(|change| change.path.is_in_scope(only)) {
            if change.after.is_none() {
                self.note_folders(&self.store, &mut changes, before.checkpoint.root, &change.path)?;
            }
            let link = Link { after: change.after, before: change.before };
            taken.push(Taken { at, path: change.path, link });
        }
        // What the operation had brought back goes again: nobody wrote it where it is now.
        self.add_followed(&mut changes, taken, (&[], false), (Begin::Now, None), seen)?;
        Ok(changes)
    }

    /// The operation that is meant: by the beginning of its id, else the last rewind or undo that still stands, in whole or in
    /// part; with the paths of it that a redo left, where there was one.
    fn operation_meant(&self, wanted: Option<&str>) -> Result<(OperationRow, Vec<WorkspacePath>), OperationError> {
        let rows = self.store.operations()?;
        let standing = standing(&rows);
        let Some(wanted) = wanted else {
            // One that is lost may be the last, or may have taken back the one that is found.
            let for_sure = |row: &OperationRow| match self.may_have_lost_operations(row.seq)? {
                true => Err(OperationError::LaterMayBeLost(row.id.clone())),
                false => Ok(row.clone()),
            };
            let mut taken_back = HashSet::new();
            for (row, _) in rows.iter().zip(&standing).filter(|(_, stands)| **stands) {
                if is_first_hand(row) {
                    return Ok((for_sure(row)?, Vec::new()));
                }
                // Of several that took back the same one, the last says what is left.
                if row.verb == OperationVerb::Redo
                    && let Some(OperationTarget::Operation(of)) = &row.target
                    && taken_back.insert(of)
                    && let Some(of) = rows.iter().find(|row| row.id == *of).filter(|row| is_first_hand(row))
                    && let Some(left) = self.left_by_redo(row)
                {
                    for_sure(row)?;
                    return Ok((of.clone(), left));
                }
            }
            return Err(match self.may_have_lost_operations(0)? {
                true => OperationError::NothingKnownToRedo,
                false => OperationError::NothingToRedo,
            });
        };
        let mut found: Vec<_> =
            rows.iter().zip(&standing).filter(|(row, _)| row.id.as_str().starts_with(wanted)).collect();
        match (found.pop(), found.is_empty()) {
            (Some((row, true)), true) => Ok((row.clone(), Vec::new())),
            (Some((row, false)), true) => {
                let is_redo = |(by, stands): &(&OperationRow, &bool)| {
                    **stands
                        && by.verb == OperationVerb::Redo
                        && by.target.as_ref().and_then(OperationTarget::operation) == Some(&row.id)
                };
                let last = rows.iter().zip(&standing).find(is_redo);
                let left = last.and_then(|(by, _)| self.left_by_redo(by));
                left.map(|left| (row.clone(), left)).ok_or_else(|| OperationError::NotStanding(row.id.clone()))
            }
            (Some((last, _)), false) => {
                let ids = found.iter().map(|(row, _)| row.id.to_string()).chain([last.id.to_string()]);
                let candidates = ids.collect();
                Err(TargetError::Ambiguous { prefix: wanted.to_owned(), candidates }.into())
            }
            (None, _) => Err(TargetError::UnknownOperation(wanted.to_owned()).into()),
        }
    }

    /// The operations that were carried out after one, oldest first, without those that were taken back right away. Where one of
    /// them may be lost, nobody knows them all.
    fn operations_after(&self, first: &OperationRow) -> Result<Vec<Operation>, OperationError> {
        if self.may_have_lost_operations(first.seq)? {
            return Err(OperationError::LaterMayBeLost(first.id.clone()));
        }
        let changes_something = |row: &&OperationRow| match row.verb {
            OperationVerb::Rewind | OperationVerb::Undo | OperationVerb::Redo => true,
            OperationVerb::Branch => row.went.as_ref().is_some_and(|went| went.goes),
            OperationVerb::Checkout | OperationVerb::Recover => false,
        };
        let rows = self.store.operations_between(first.seq, i64::MAX as u64)?;
        let mut kept: Vec<Operation> = Vec::new();
        // The newest first: of an operation, its redo and the redo of that, it is the first that stands.
        for row in rows.iter().rev().filter(changes_something) {
            let operation = self.store.operation(row)?;
            match kept.last() {
                Some(next) if leaves_no_trace_of(next, &operation) => drop(kept.pop()),
                _ => kept.push(operation),
            }
        }
        kept.reverse();
        Ok(kept)
    }

    /// What a redo left to go on with. A damaged record says nothing.
    fn left_by_redo(&self, row: &OperationRow) -> Option<Vec<WorkspacePath>> {
        match self.store.operation(row).ok()?.kind {
            OperationKind::Redo { open, .. } => Some(open).filter(|open| !open.is_empty()),
            _ => None,
        }
    }
}

/// Whether an operation took another one back completely, with nothing of others in between. Where the other one moved more than
/// files, only that itself tells whether it is back.
fn leaves_no_trace_of(operation: &Operation, other: &Operation) -> bool {
    let OperationKind::Redo { of, also, left, only, .. } = &operation.kind else { return false };
    let is_whole = also.is_empty() && left.is_empty() && only.is_empty();
    let is_of_files = other.git.is_none() && other.conversation.is_none() && other.outside.is_empty();
    // It follows the state before the other one only where it returned to just that.
    *of == other.id && is_whole && is_of_files && operation.follows == other.before
}
