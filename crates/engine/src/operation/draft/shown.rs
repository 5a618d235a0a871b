//! What is shown of a plan, and of what an operation left alone.

use super::Draft;
use crate::operation::branch::ConversationPlan;
use crate::operation::error::OperationError;
use crate::operation::request::{Asked, Remarks, Request};
use crate::view::{ChangedFile, HeadMoved, PathView, PlanView, SkippedView, TornView};
use crate::workspace::History;
use piton_model::diff::{self, Change, ChangeKind, TreeSource};
use piton_model::inverse::Conflict;
use piton_model::moves::Move;
use piton_model::plan::{self, RootState, Undone};
use piton_model::{Entry, OperationKind, SkipReason, WorkspacePath};
use piton_store::StoreError;
use std::collections::HashSet;
use std::path::PathBuf;

impl History {
    pub(super) fn plan_view(
        &self,
        ask: &Asked,
        request: &Request,
        draft: &Draft,
        changes: &[Change],
        missing_folder: bool,
    ) -> Result<PlanView, OperationError> {
        let of = |kind: ChangeKind| paths(changes, kind);
        let target = request.aim.target();
        Ok(PlanView {
            kind: request.kind.verb(),
            about: request.about.clone(),
            id: None,
            fingerprint: self.fingerprint(request, draft)?,
            operation: match &request.kind {
                OperationKind::Redo { of, .. } => Some(of.clone()),
                _ => None,
            },
            also: request.kind.also().to_vec(),
            target: target.map(Into::into),
            paths: request.paths.iter().map(PathView::from).collect(),
            created: of(ChangeKind::Created),
            restored: of(ChangeKind::Modified),
            deleted: of(ChangeKind::Deleted),
            skipped: self.skipped_by(&draft.plan, request)?,
            not_done: Vec::new(),
            torn: Vec::new(),
            merged: draft.merged.iter().map(PathView::from).collect(),
            conflicts: draft.conflicts.iter().map(Into::into).collect(),
            excepted: draft.excepted.paths.iter().map(Into::into).collect(),
            in_part: draft.excepted.in_part.iter().map(Into::into).collect(),
            along: request.remarks.along.iter().map(Into::into).collect(),
            unsure: request.remarks.unsure.clone(),
            unsure_back: request.remarks.unsure_back.clone(),
            others: touched(&request.remarks, draft, changes),
            carried: carried_in(request, draft.conflicts.iter(), &draft.moves, changes),
            commands: request.remarks.commands.clone(),
            git: request.git.as_ref().map(|plan| plan.view().clone()),
            git_stays: request.git_stays.clone(),
            conversation: request.conversation.as_ref().map(ConversationPlan::view),
            conversation_stays: request.conversation_stays.clone(),
            outside: draft.outside.files.clone(),
            touches_outside: request.touches_outside,
            other_folder: self.is_other_folder(ask),
            missing_folder,
            other_workspaces: self.other_workspaces_of(request),
            head_moved: self.head_moved_of(request)?,
            running: Vec::new(),
            unknown: request.remarks.unknown.clone(),
            accepted: request.remarks.accepted.iter().map(Into::into).collect(),
        })
    }

    /// Other workspaces that what is asked for is about as well, and that stay as they are.
    pub(crate) fn other_workspaces_of(&self, request: &Request) -> Vec<PathBuf> {
        match request.aim.target() {
            Some(target) => self.other_workspaces(target),
            None => request.remarks.elsewhere.clone(),
        }
    }

    /// Whether the repository is elsewhere than at the target, and stays there.
    pub(crate) fn head_moved_of(&self, request: &Request) -> Result<Option<HeadMoved>, StoreError> {
        match request.aim.target() {
            Some(target) if request.git.is_none() => self.head_moved(target),
            _ => Ok(request.remarks.head_moved.clone()),
        }
    }

    /// What the target did not capture within the scope, and what is kept for not being known now.
    pub(crate) fn skipped_by(&self, plan: &plan::Plan, request: &Request) -> Result<Vec<SkippedView>, OperationError> {
        let mut skipped = plan.kept.clone();
        // What an operation that is taken back did not touch was said when it was done.
        if let (OperationKind::Rewind { .. }, Some(target)) = (&request.kind, request.aim.target()) {
            match diff::skipped(&self.store, &target.checkpoint.root.tree) {
                // What is damaged is named by itself.
                Err(StoreError::Damaged(_) | StoreError::Missing(_)) => {}
                found => skipped.extend(found?),
            }
        }
        skipped.retain(|(path, _)| path.is_in_scope(&request.paths));
        skipped.sort();
        skipped.dedup_by(|a, b| a.0 == b.0);
        Ok(skipped.iter().map(Into::into).collect())
    }
}

/// What a plan must leave as it is, for people.
pub(crate) fn not_done<'a>(undone: impl Iterator<Item = &'a Undone>) -> Vec<SkippedView> {
    let mut all: Vec<&Undone> = undone.collect();
    all.sort_by_key(|one| (&one.path, one.reason, one.known.is_none()));
    all.dedup_by(|a, b| a.path == b.path);
    let view = |one: &Undone| match one.reason {
        SkipReason::GitFolder => SkippedView::git_of(&one.path),
        reason => {
            let was_captured = reason.is_by_rule() && one.known.is_some();
            SkippedView { path: (&one.path).into(), reason, was_captured }
        }
    };
    all.into_iter().map(view).collect()
}

/// The paths of one kind of change that are worth a line.
pub(crate) fn paths(changes: &[Change], kind: ChangeKind) -> Vec<PathView> {
    changes.iter().filter(|c| !c.implied && c.kind() == kind).map(|c| (&c.path).into()).collect()
}

/// What is carried over in the end: a file in an open conflict is not, nor one that the decision about a conflict deletes.
pub(crate) fn carried_in<'c>(
    request: &Request,
    conflicts: impl Iterator<Item = &'c Conflict>,
    moves: &[Move],
    changes: &[Change],
) -> Vec<ChangedFile> {
    let (decided, open): (Vec<&Conflict>, Vec<&Conflict>) = conflicts.partition(|conflict| conflict.decided);
    let is_deleted = |path: &WorkspacePath| {
        changes.iter().any(|change| change.path == *path && change.kind() == ChangeKind::Deleted)
            && !moves.iter().any(|one| one.from == *path)
            && decided.iter().any(|conflict| conflict.holds(path))
    };
    let is_gone = |file: &ChangedFile, path: &WorkspacePath| file.kind != ChangeKind::Deleted && is_deleted(path);
    let is_open = |path: &WorkspacePath| open.iter().any(|conflict| conflict.paths().any(|one| one == path));
    let is_out = |file: &&ChangedFile| file.path.exact().is_some_and(|path| is_gone(file, &path) || is_open(&path));
    request.remarks.carried.iter().filter(|file| !is_out(file)).cloned().collect()
}

/// Repositories that a plan tears apart: it moves their files, and git's own folder stays, since piton never writes it.
pub(crate) fn torn<S: TreeSource<Error = StoreError>>(
    trees: &S,
    now: RootState,
    plan: &plan::Plan,
    changes: &[Change],
) -> Result<Vec<TornView>, StoreError> {
    let content = |entry: &Option<Entry>| match entry {
        Some(Entry::File { blob, .. }) => Some(*blob),
        _ => None,
    };
    let mut torn = Vec::new();
    let without = plan.undone.iter().filter(|undone| undone.reason == SkipReason::GitFolder);
    for to in without.map(|undone| &undone.path) {
        let came = changes.iter().filter(|change| change.before.is_none() && change.path.is_within(to));
        // The same file in the folder that the repository's own data is in now.
        let from = came.filter_map(|change| {
            let blob = content(&change.after)?;
            let inner = change.path.as_bytes().strip_prefix(to.as_bytes())?;
            let is_same = |gone: &&Change| gone.after.is_none() && content(&gone.before) == Some(blob);
            let gone = changes.iter().filter(is_same);
            gone.filter_map(|gone| WorkspacePath::new(gone.path.as_bytes().strip_suffix(inner)?).ok()).next()
        });
        for from in from {
            if let Some(Entry::Folder { tree, .. }) = diff::lookup(trees, &now.tree, &from)?
                && trees.tree(&tree)?.has_git
            {
                torn.push(TornView { from: (&from).into(), to: to.into() });
                break;
            }
        }
    }
    torn.dedup();
    Ok(torn)
}

/// Of what others changed, what a plan changes.
pub(crate) fn touched(remarks: &Remarks, draft: &Draft, changes: &[Change]) -> Vec<ChangedFile> {
    let paths: HashSet<&WorkspacePath> = changes.iter().map(|change| &change.path).collect();
    let is_touched = |file: &&ChangedFile| file.path.exact().is_some_and(|path| paths.contains(&path));
    let outside: HashSet<&WorkspacePath> = draft.outside.steps.iter().map(|step| &step.path).collect();
    let elsewhere = remarks.others_outside.iter().filter(|(path, _)| outside.contains(path)).map(|(_, file)| file);
    remarks.others.iter().filter(is_touched).chain(elsewhere).cloned().collect()
}
