//! Planning: from what is asked for and what is there now to the steps of an operation, and to what is shown of it.
//! Nothing here has a side effect.

use std::collections::HashSet;
use std::convert::Infallible;
use std::path::PathBuf;

use piton_host::apply::way_to_readable;
use piton_host::{Index, Root, empty_tree, read_entry};
use piton_model::content::Decision;
use piton_model::diff::{self, Change, ChangeKind, TreeSource};
use piton_model::edit::NewTrees;
use piton_model::git::GitMove;
use piton_model::inverse::{self, Conflict, Contents, Drafted, Inverse, Link};
use piton_model::moves::Move;
use piton_model::plan::{self, FolderMode, Layered, RootState, Undone};
use piton_model::{
    ChangesAt, CheckpointId, Entry, Except, ObjectId, OperationKind, SkipReason, WorkspaceId, WorkspacePath,
};
use piton_store::{CheckpointRow, Reader, StoreError};

use crate::capture::sink::{FreshTrees, HashingSink, Trees};
use crate::capture::sound::folder_at;
use crate::operation::branch::{BranchAsked, ConversationPlan};
use crate::operation::checkout::CheckoutAsked;
use crate::operation::error::{OperationError, are_damaged};
use crate::operation::except::Excepted;
use crate::operation::git_restore::GitPlan;
use crate::operation::left_out::{Hidden, is_missed};
use crate::operation::outside::{OutsideChanges, OutsideDraft};
use crate::operation::redo::RedoAsked;
use crate::operation::rewind::RewindAsked;
use crate::operation::running::Known;
use crate::operation::undo::UndoOptions;
use crate::view::{
    Along, ChangedFile, CommandView, HeadMoved, Interrupted, PathView, PlanView, SkippedView, UnknownTurn,
};
use crate::workspace::{History, Standing};

/// What an operation would do. Only the engine makes one, and only a plan can be carried out.
#[derive(Clone)]
pub struct Plan {
    /// Of this workspace.
    pub(crate) of: WorkspaceId,
    pub(crate) ask: Asked,
    pub(crate) request: Request,
    pub(crate) draft: Draft,
    /// Paths that the rules leave out and that were looked at all the same.
    pub(crate) forced: Vec<WorkspacePath>,
    /// What differs, path by path.
    pub(crate) changes: Vec<Change>,
    pub(crate) view: PlanView,
}

impl Plan {
    /// What to show before asking.
    pub fn view(&self) -> &PlanView {
        &self.view
    }

    /// Takes the user's word that the turn which the plan found an agent in was interrupted. Where the agent is heard of
    /// between the plan and its carrying out, that was not so, and the operation is refused.
    pub fn count_as_interrupted(&mut self) {
        self.draft.known.interrupted = true;
        for one in self.view.running.iter_mut().filter(|one| one.blocks) {
            one.blocks = false;
            one.interrupted = Some(Interrupted::Said);
        }
    }
}

/// What is asked for, before anybody has looked at what is there.
#[derive(Clone)]
pub(crate) enum Asked {
    Rewind(Box<RewindAsked>),
    Undo(Box<UndoOptions>),
    Redo(Box<RedoAsked>),
    Branch(Box<BranchAsked>),
    Checkout(Box<CheckoutAsked>),
}

impl Asked {
    pub(crate) fn target(&self) -> Option<&CheckpointRow> {
        match self {
            Self::Rewind(asked) => Some(&asked.target),
            Self::Redo(asked) => Some(&asked.before),
            // What is laid out elsewhere may be of any folder.
            Self::Undo(_) | Self::Branch(_) | Self::Checkout(_) => None,
        }
    }

    /// Whether it puts anything into files: a branch is a new file that nobody works with yet.
    pub(crate) fn writes_files(&self) -> bool {
        match self {
            Self::Rewind(_) | Self::Undo(_) => true,
            Self::Redo(asked) => asked.all().any(|operation| operation.kind != OperationKind::Branch),
            Self::Branch(_) | Self::Checkout(_) => false,
        }
    }

    /// Whether the user says that the agent was interrupted.
    pub(crate) fn says_interrupted(&self) -> bool {
        match self {
            Self::Rewind(asked) => asked.options.interrupted,
            Self::Undo(options) => options.interrupted,
            Self::Redo(asked) => asked.interrupted,
            Self::Branch(_) | Self::Checkout(_) => false,
        }
    }

    /// Whether to go on though the target is of another folder that stood at the same path.
    pub(crate) fn goes_across(&self) -> bool {
        matches!(self, Self::Rewind(asked) if asked.options.across)
    }

    /// Whether to go on with the rest where some of it cannot be done.
    pub(crate) fn is_partial(&self) -> bool {
        match self {
            Self::Rewind(asked) => asked.options.settle.partial,
            Self::Undo(options) => options.settle.partial,
            Self::Redo(asked) => asked.settle.partial,
            Self::Branch(_) | Self::Checkout(_) => false,
        }
    }

    /// Sets what somebody takes out of it. A branch and a checkout have nothing that could be taken out.
    pub(crate) fn except(&mut self, except: Except) {
        match self {
            Self::Rewind(asked) => asked.options.settle.except = except,
            Self::Undo(options) => options.settle.except = except,
            Self::Redo(asked) => asked.settle.except = except,
            Self::Branch(_) | Self::Checkout(_) => {}
        }
    }

    /// The permission bits of a root that must be made anew.
    pub(crate) fn root_mode(&self) -> u16 {
        self.target().map_or(0o755, |target| target.checkpoint.root.mode)
    }
}

/// What is there.
pub(crate) struct FolderNow<'a> {
    pub now: RootState,
    pub trees: Trees<'a>,
    /// Tells when files changed.
    pub index: Option<&'a Index>,
    /// None where the folder is gone: then nothing is there.
    pub root: Option<&'a Root>,
}

/// What is asked for, given what is there.
#[derive(Clone)]
pub(crate) struct Request {
    pub kind: OperationKind,
    /// What is taken back, in a few words.
    pub about: Option<String>,
    pub aim: Aim,
    /// Only these paths.
    pub paths: Vec<WorkspacePath>,
    /// What it does to the conversation.
    pub conversation: Option<ConversationPlan>,
    /// Why the conversation stays where it is, where nobody said what to do with it.
    pub conversation_stays: Option<String>,
    /// What was done to files elsewhere.
    pub outside: OutsideChanges,
    /// Whether those are touched.
    pub touches_outside: bool,
    /// Where the repository goes, where that is asked for.
    pub git: Option<GitPlan>,
    /// Why it stays where it is, where it should go back with the rest.
    pub git_stays: Option<String>,
    /// Changes to take back, or to carry over, that only the capture at the operation's beginning finds.
    pub fresh: Vec<WorkspacePath>,
    /// The moment that is returned to, where the result follows that and not what was there before.
    pub returns: Option<Returns>,
    pub settle: Settle,
    /// What went out of sight with what is taken back, or went without ever having been in sight: it is not taken back, and
    /// named.
    pub left_out: Vec<Undone>,
    /// What came after the moment that is returned to, and is out of sight now.
    pub hidden: Hidden,
    /// What came into sight since the moment that is returned to, and stays with what is carried over.
    pub unseen: Vec<WorkspacePath>,
    pub remarks: Remarks,
}

/// What should be there in the end.
#[derive(Clone)]
pub(crate) enum Aim {
    /// What is there now.
    Nothing,
    /// Everything as in a checkpoint.
    State(CheckpointRow),
    /// Everything as in a checkpoint, with some changes carried over to it.
    StateWith { target: CheckpointRow, carried: Inverse },
    /// Some changes taken back.
    Without {
        changes: Inverse,
        /// The checkpoint whose state comes back with that, where it is one.
        target: Option<CheckpointRow>,
    },
}

impl Aim {
    pub(crate) fn target(&self) -> Option<&CheckpointRow> {
        match self {
            Self::State(target) | Self::StateWith { target, .. } => Some(target),
            Self::Without { target, .. } => target.as_ref(),
            Self::Nothing => None,
        }
    }
}

/// A moment that is returned to.
#[derive(Clone)]
pub(crate) struct Returns {
    pub to: CheckpointId,
    /// Only if this is what was there: otherwise something else was done since, and that is not in the moment.
    pub from: Option<RootState>,
}

/// What somebody decided about parts of a plan: conflicts, and what it shall leave as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settle {
    /// What to take where taking back does not go together with what was done since.
    pub conflicts: Option<Decision>,
    /// Go on with the rest while some conflicts are undecided; their paths stay as they are.
    pub partial: bool,
    /// Paths and places that stay as they are.
    pub except: Except,
}

/// What else is said of a plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remarks {
    /// What comes along with what is asked for.
    pub along: Vec<Along>,
    /// Paths that files which go along only had in between.
    pub between: Vec<WorkspacePath>,
    /// Of that, what holds edits of others: it stays, with all that it goes along with.
    pub held_along: Vec<Conflict>,
    pub unsure: Vec<ChangedFile>,
    /// Deletions that may be somebody else's and are taken back all the same.
    pub unsure_back: Vec<ChangedFile>,
    /// Chosen changes that cannot be taken back, and why.
    pub stuck: Vec<(WorkspacePath, SkipReason)>,
    /// Changes of others since the target, as far as the plan touches them.
    pub others: Vec<ChangedFile>,
    /// The same of files elsewhere.
    pub others_outside: Vec<(WorkspacePath, ChangedFile)>,
    pub carried: Vec<ChangedFile>,
    pub commands: Vec<CommandView>,
    /// Other workspaces that an undo's turns changed too.
    pub elsewhere: Vec<PathBuf>,
    /// Turns of which more was to be taken back than is known.
    pub unknown: Vec<UnknownTurn>,
}

/// What a request comes to, given what is there now.
#[derive(Clone, Default)]
pub(crate) struct Draft {
    pub plan: plan::Plan,
    /// Contents that no checkpoint has.
    pub new_blobs: Vec<Vec<u8>>,
    pub merged: Vec<WorkspacePath>,
    /// Files that go to another path.
    pub moves: Vec<Move>,
    pub conflicts: Vec<Conflict>,
    pub excepted: Excepted,
    pub outside: OutsideDraft,
    /// What ran when it was made.
    pub known: Known,
}

impl Draft {
    /// Takes out what the system did not let an earlier try change: it stays as it is, and is told.
    pub(crate) fn leave_refused(&mut self, refused: &[WorkspacePath]) {
        if refused.is_empty() {
            return;
        }
        let plan = &mut self.plan;
        let is_refused = |path: &WorkspacePath| refused.iter().any(|one| !one.is_root() && one.is_within(path));
        let mut left: Vec<WorkspacePath> = Vec::new();
        left.extend(plan.steps.extract_if(.., |step| is_refused(&step.path)).map(|step| step.path));
        let folders = plan.folders.extract_if(.., |folder| refused.contains(&folder.path));
        left.extend(folders.filter(|folder| folder.before != folder.after).map(|folder| folder.path));
        plan.exact = None;
        for path in left {
            plan.undone.push(Undone { path: path.clone(), reason: SkipReason::Refused, known: None });
            plan.kept.push((path, SkipReason::Refused));
        }
        plan.kept.sort();
        plan.kept.dedup();
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.plan.is_empty() && self.outside.steps.is_empty()
    }

    /// Paths that stay as they are because nobody decided their conflict.
    pub(crate) fn open_conflicts(&self) -> impl Iterator<Item = &Conflict> {
        self.conflicts.iter().filter(|conflict| !conflict.decided)
    }

    /// The same of files elsewhere.
    pub(crate) fn open_outside(&self) -> impl Iterator<Item = &Conflict> {
        self.outside.conflicts.iter().filter(|conflict| !conflict.decided)
    }

    /// Paths that stay as they are now and that another try may change.
    fn may_go_on_with(&self) -> Vec<WorkspacePath> {
        let undone = self.plan.undone.iter().filter(|undone| !undone.reason.is_for_good());
        let mut paths: Vec<_> = self.open_conflicts().flat_map(Conflict::paths).cloned().collect();
        paths.extend(undone.map(|undone| undone.path.clone()));
        paths.sort();
        paths.dedup();
        paths
    }
}

impl Request {
    /// Its paths, without those that only go along.
    fn paths_asked(&self) -> Vec<WorkspacePath> {
        let Remarks { along, between, .. } = &self.remarks;
        let goes_along = |path: &WorkspacePath| between.contains(path) || along.iter().any(|one| one.path == *path);
        self.paths.iter().filter(|path| !goes_along(path)).cloned().collect()
    }

    /// Whether what is in conflict stays as it is: nobody decided, or so.
    fn leaves(&self, conflict: &Conflict) -> bool {
        !conflict.decided || self.settle.conflicts == Some(Decision::Ours)
    }

    /// Whether a change is taken back: where its path stays as it is, it is not.
    fn takes_back(&self, draft: &Draft, path: &WorkspacePath) -> bool {
        let in_conflict = draft.conflicts.iter().any(|conflict| self.leaves(conflict) && conflict.holds(path));
        let unknown = draft.plan.kept.iter().any(|(kept, _)| path.is_within(kept));
        !in_conflict && !unknown && !draft.excepted.holds(path)
    }

    /// Where the repository goes, if anywhere.
    pub(crate) fn git_move(&self) -> Option<&GitMove> {
        self.git.as_ref().map(GitPlan::change).filter(|change| !change.is_empty())
    }

    /// What kind of operation it is once it is known what is left alone. `before` is the capture at its beginning,
    /// `unplanned` what only that found and the plan does not know of.
    pub(crate) fn kind_of(&self, draft: &Draft, before: &CheckpointId, unplanned: Vec<WorkspacePath>) -> OperationKind {
        let fresh = ChangesAt { checkpoint: before.clone(), paths: self.fresh.clone() };
        let with_fresh = |changes: &[ChangesAt]| {
            let mut changes: Vec<_> = [fresh].into_iter().chain(changes.iter().cloned()).collect();
            changes.retain(|at| !at.paths.is_empty());
            changes
        };
        let stays = draft.conflicts.iter().filter(|conflict| self.leaves(conflict)).flat_map(Conflict::paths);
        let stays = stays.chain(draft.plan.kept.iter().map(|(path, _)| path)).chain(draft.excepted.all());
        let stays = stays.cloned().chain(unplanned);
        match &self.kind {
            OperationKind::Undo { changes } => {
                let mut changes = with_fresh(changes);
                changes.iter_mut().for_each(|at| at.paths.retain(|p| self.takes_back(draft, p)));
                changes.retain(|at| !at.paths.is_empty());
                OperationKind::Undo { changes }
            }
            OperationKind::Rewind { target, paths, kept, left } => OperationKind::Rewind {
                target: target.clone(),
                paths: paths.clone(),
                kept: kept.as_deref().map(with_fresh),
                left: stays.chain(left.iter().cloned()).collect(),
            },
            OperationKind::Redo { of, also, gone, only, .. } => {
                let mut gone = with_fresh(gone);
                gone.iter_mut().for_each(|at| at.paths.retain(|p| self.takes_back(draft, p)));
                gone.retain(|at| !at.paths.is_empty());
                let (of, also, only) = (of.clone(), also.clone(), only.clone());
                OperationKind::Redo { of, also, gone, left: stays.collect(), only, open: draft.may_go_on_with() }
            }
            OperationKind::Branch | OperationKind::Checkout { .. } | OperationKind::Recover { .. } => self.kind.clone(),
        }
    }
}

impl History {
    /// Plans without any side effect: scans and hashes, stores nothing.
    pub(crate) fn plan(&self, ask: Asked) -> Result<Plan, OperationError> {
        if ask.writes_files() && self.is_missing() {
            self.refuse_displaced()?;
        }
        let mut forced = Vec::new();
        loop {
            let looked = self.look(ask.root_mode(), &forced)?;
            let seen = looked.seen(&self.store);
            let request = self.request(&ask, &seen)?;
            let mut draft = self.draft(&request, &seen)?;
            if more_unknown(&draft.plan, &mut forced) {
                continue;
            }
            let running = self.running(&ask)?;
            draft.known = running.known();
            let (result, new) = draft.plan.result(&seen.trees, seen.now)?;
            let layered = Layered { over: &new, under: &seen.trees };
            let changes = diff::root_changes(&layered, Some(&seen.now), Some(&result))
                .map_err(|error| self.name_damaged_in(error.into(), &draft.plan.steps))?;
            let mut view = self.plan_view(&ask, &request, &draft, &changes, seen.root.is_none())?;
            view.running = running.views();
            let ways = seen.root.map(|root| ways_to_readable(root, &draft.plan)).unwrap_or_default();
            view.not_done = not_done(draft.plan.undone.iter().filter(|undone| !is_on_a_way(&ways, &undone.path)));
            // What becomes readable by its own bits is put back with them.
            view.restored.extend(ways.iter().filter(|way| is_undone(&draft.plan, way)).map(|way| (&way.path).into()));
            let of = self.record.id.clone();
            let mut plan = Plan { of, ask, request, draft, forced, changes, view };
            if plan.ask.says_interrupted() {
                plan.count_as_interrupted();
            }
            return Ok(plan);
        }
    }

    /// What is asked for, given what is there.
    pub(crate) fn request(&self, ask: &Asked, seen: &FolderNow<'_>) -> Result<Request, OperationError> {
        match ask {
            Asked::Rewind(asked) => self.rewind_request(asked, seen),
            Asked::Undo(options) => self.undo_request(options, seen),
            Asked::Redo(asked) => self.redo_request(asked, seen),
            Asked::Branch(asked) => self.branch_request(asked),
            Asked::Checkout(asked) => Ok(asked.request()),
        }
    }

    fn plan_view(
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
            fingerprint: self.fingerprint(request, draft),
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
            merged: draft.merged.iter().map(PathView::from).collect(),
            conflicts: draft.conflicts.iter().map(Into::into).collect(),
            excepted: draft.excepted.paths.iter().map(Into::into).collect(),
            in_part: draft.excepted.in_part.iter().map(Into::into).collect(),
            along: request.remarks.along.iter().map(Into::into).collect(),
            unsure: request.remarks.unsure.clone(),
            unsure_back: request.remarks.unsure_back.clone(),
            others: touched(&request.remarks, draft, changes),
            carried: request.remarks.carried.clone(),
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
            _ => Ok(None),
        }
    }

    /// The steps of a request.
    pub(crate) fn draft(&self, request: &Request, seen: &FolderNow<'_>) -> Result<Draft, OperationError> {
        let mut draft = self.draft_inside(request, seen).map_err(|error| self.name_damaged(error, request, seen))?;
        if self.lost_repository(request, seen, &draft)? {
            draft.plan.undone.push(Undone { path: WorkspacePath::root(), reason: SkipReason::GitFolder, known: None });
        }
        draft.outside = self.draft_outside(&request.outside, &request.settle)?;
        Ok(draft)
    }

    /// Whether the workspace's own repository went with everything else that comes back: its data was not captured.
    fn lost_repository(&self, request: &Request, seen: &FolderNow<'_>, draft: &Draft) -> Result<bool, StoreError> {
        let now = seen.trees.tree(&seen.now.tree)?;
        let is_empty = now.entries().is_empty() && !now.has_git;
        // With only some paths nobody asked for the rest; and where nothing comes back, nothing is said to.
        if !is_empty || !request.paths.is_empty() || draft.plan.steps.is_empty() {
            return Ok(false);
        }
        let mut then: Vec<CheckpointRow> = request.aim.target().cloned().into_iter().collect();
        if let OperationKind::Undo { changes } = &request.kind {
            // Before each of the changes that are taken back; those that no checkpoint has came after the last one.
            then.extend(self.store.head(self.record.line)?);
            for at in changes {
                let found = self.store.checkpoint(&at.checkpoint)?;
                let parent = found.and_then(|row| row.checkpoint.parent);
                then.extend(parent.map(|id| self.store.checkpoint(&id)).transpose()?.flatten());
            }
        }
        // What is damaged is named by itself.
        Ok(then.iter().any(|row| self.store.tree(&row.checkpoint.root.tree).is_ok_and(|tree| tree.has_git)))
    }

    /// An object that is damaged, told by the paths that need it.
    fn name_damaged(&self, error: OperationError, request: &Request, seen: &FolderNow<'_>) -> OperationError {
        let OperationError::Store(StoreError::Damaged(_) | StoreError::Missing(_)) = &error else { return error };
        let damaged = || -> Result<Vec<WorkspacePath>, StoreError> {
            if let Aim::Without { changes, .. } = &request.aim {
                let dropped = self.drop_damaged(&seen.trees, seen.now, &mut changes.clone())?;
                return Ok(dropped.into_iter().map(|(path, _)| path).collect());
            }
            let Some(target) = request.aim.target() else { return Ok(Vec::new()) };
            let (root, new) = self.without_damaged(&seen.trees, seen.now, target.checkpoint.root)?;
            damaged_in(&Layered { over: &new, under: &seen.trees }, &root.tree)
        };
        match damaged() {
            Ok(damaged) if !damaged.is_empty() => OperationError::RolledBack {
                reason: are_damaged(&damaged),
                full_disk: false,
                damaged,
                refused: Vec::new(),
                leftovers: Vec::new(),
            },
            _ => error,
        }
    }

    fn draft_inside(&self, request: &Request, seen: &FolderNow<'_>) -> Result<Draft, OperationError> {
        let FolderNow { now, trees, root, .. } = seen;
        let now = *now;
        let contents = NowAndThen { root: *root, store: &self.store };
        let decision = request.settle.conflicts;
        let lost = |path: &WorkspacePath| Undone { path: path.clone(), reason: SkipReason::Damaged, known: None };
        let mut damaged_there = Vec::new();
        let excepted;
        let (drafted, scope) = match &request.aim {
            Aim::Nothing => return Ok(Draft::default()),
            Aim::State(target) => {
                let target = target.checkpoint.root;
                Self::check_paths(trees, [&now.tree, &target.tree], &request.paths_asked())?;
                let (target, new) = match request.settle.partial {
                    true => self.without_damaged(trees, now, target)?,
                    false => (target, NewTrees::new()),
                };
                let layered = Layered { over: &new, under: trees };
                let mut plan = plan::plan(&layered, now, target, &request.paths)?;
                if !new.is_empty() {
                    // Also what is not there now, of which the plan need not say anything.
                    let mut damaged = damaged_in(&layered, &target.tree)?;
                    damaged.retain(|path| path.is_in_scope(&request.paths));
                    plan.undone.extend(damaged.iter().map(lost));
                    plan.kept.extend(damaged.into_iter().map(|path| (path, SkipReason::Damaged)));
                    plan.kept.sort();
                    plan.kept.dedup();
                }
                self.add_hidden(&mut plan, &request.hidden, seen)?;
                let moves = self.moves_back(&request.kind)?;
                return Ok(Draft { conflicts: not_to_be_touched(&plan).collect(), plan, moves, ..Draft::default() });
            }
            Aim::StateWith { target, carried } => {
                let target = target.checkpoint.root;
                Self::check_paths(trees, [&now.tree, &target.tree], &request.paths_asked())?;
                let mut carried = carried.clone();
                let (target, new) = match request.settle.partial {
                    true => {
                        let lost = request.remarks.stuck.iter().map(|(path, _)| path.clone()).collect();
                        self.without_damaged_carried(trees, (now, target), &mut carried, lost)?
                    }
                    false => (target, NewTrees::new()),
                };
                let layered = Layered { over: &new, under: trees };
                let mut drafted = inverse::draft_carried(&layered, &contents, target, &carried, decision)?;
                if !new.is_empty() {
                    let mut damaged = damaged_in(&layered, &target.tree)?;
                    damaged.retain(|path| path.is_in_scope(&request.paths));
                    damaged_there.extend(damaged.iter().map(lost));
                    drafted.kept.extend(damaged.into_iter().map(|path| (path, SkipReason::Damaged)));
                }
                drafted.new_trees.extend(new);
                drafted.conflicts.extend(request.remarks.held_along.iter().cloned());
                excepted = self.take_out(request, trees, &contents, now, &mut drafted)?;
                let is_reached = |path: &WorkspacePath| path.is_in_scope(&request.paths);
                self.leave_what_stays(
                    (trees, &contents, now),
                    (&carried, &is_reached),
                    decision,
                    &excepted,
                    &mut drafted,
                )?;
                (drafted, &request.paths[..])
            }
            Aim::Without { changes, .. } => {
                let mut changes = changes.clone();
                let damaged = match request.settle.partial {
                    true => self.drop_damaged(trees, now, &mut changes)?,
                    false => Vec::new(),
                };
                let mut drafted = inverse::draft(trees, &contents, now, &changes, decision)?;
                drafted.kept.extend(damaged);
                excepted = self.take_out(request, trees, &contents, now, &mut drafted)?;
                if !request.settle.except.is_empty() {
                    let seen = (trees, &contents, now);
                    self.leave_what_stays(seen, (&changes, &|_| true), decision, &excepted, &mut drafted)?;
                }
                (drafted, &[][..])
            }
        };
        let layered = Layered { over: &drafted.new_trees, under: trees };
        let mut plan = plan::plan(&layered, now, drafted.root, scope)?;
        plan.undone.extend(damaged_there);
        let conflicts = drafted.conflicts.into_iter().chain(not_to_be_touched(&plan)).collect();
        plan.new_trees.extend(drafted.new_trees);
        // What is carried over to an earlier moment and was not captured then simply stays.
        if let Aim::Without { changes, .. } = &request.aim {
            let undone = |(path, reason): &(WorkspacePath, SkipReason)| Undone {
                path: path.clone(),
                reason: *reason,
                known: changes.known_at(path).cloned(),
            };
            plan.undone.extend(drafted.kept.iter().map(undone));
            for one in &request.left_out {
                if is_missed(one, trees, &now.tree)? {
                    plan.undone.push(one.clone());
                }
            }
            let stuck = &request.remarks.stuck;
            plan.undone.extend(stuck.iter().map(|(path, reason)| Undone {
                path: path.clone(),
                reason: *reason,
                known: None,
            }));
            plan.kept.extend(stuck.iter().cloned());
        }
        plan.kept.extend(drafted.kept);
        plan.kept.sort();
        plan.kept.dedup();
        plan.unknown.extend(drafted.unknown);
        self.add_hidden(&mut plan, &request.hidden, seen)?;
        Ok(Draft {
            plan,
            new_blobs: drafted.new_blobs.into_values().collect(),
            merged: drafted.merged,
            moves: drafted.moves,
            conflicts,
            excepted,
            ..Draft::default()
        })
    }

    /// Puts back what stays as it is: what is in conflict, what was taken out of the plan, and what would take lines along that
    /// then stand nowhere.
    fn leave_what_stays(
        &self,
        (trees, contents, now): (&Trees<'_>, &NowAndThen<'_>, RootState),
        (changes, is_reached): (&Inverse, &dyn Fn(&WorkspacePath) -> bool),
        decision: Option<Decision>,
        excepted: &Excepted,
        drafted: &mut Drafted,
    ) -> Result<(), StoreError> {
        loop {
            self.name_what_is_in_the_way(trees, now, decision, drafted)?;
            self.leave_conflicts(trees, contents, now, decision, excepted, drafted)?;
            // What stays may stay without lines that stand elsewhere now.
            let lost = inverse::lines_lost(trees, contents, now, drafted, (changes, is_reached), decision)?;
            if lost.is_empty() {
                return Ok(());
            }
            drafted.conflicts.extend(lost);
        }
    }

    /// Adds to conflicts the folders in whose place something else would come: what stays in one needs it.
    fn name_what_is_in_the_way(
        &self,
        trees: &Trees<'_>,
        now: RootState,
        decision: Option<Decision>,
        drafted: &mut Drafted,
    ) -> Result<(), StoreError> {
        let layered = Layered { over: &drafted.new_trees, under: trees };
        for conflict in drafted.conflicts.iter_mut().filter(|conflict| conflict.stays(decision)) {
            let mut ways = Vec::new();
            for path in conflict.paths() {
                ways.extend(replaced_folders(trees, now, &layered, drafted.root, path)?);
            }
            ways.retain(|way| !conflict.paths().any(|path| path == way));
            ways.sort();
            ways.dedup();
            conflict.others.extend(ways);
        }
        Ok(())
    }

    /// Where an earlier moment and what is carried over to it do not go together, what is there now stays; so does what was taken
    /// out of the plan.
    fn leave_conflicts(
        &self,
        trees: &Trees<'_>,
        contents: &NowAndThen<'_>,
        now: RootState,
        decision: Option<Decision>,
        excepted: &Excepted,
        drafted: &mut Drafted,
    ) -> Result<(), StoreError> {
        let stays = drafted.conflicts.iter().filter(|conflict| conflict.stays(decision));
        let open: Vec<_> = stays.flat_map(Conflict::paths).chain(&excepted.paths).chain(&excepted.unseen).collect();
        if open.is_empty() {
            return Ok(());
        }
        let layered = Layered { over: &drafted.new_trees, under: trees };
        let mut stay = Inverse::default();
        for path in open {
            let (then, here) = (folder_at(&layered, drafted.root, path)?, folder_at(trees, now, path)?);
            for change in diff::entry_changes(&layered, path, then.as_ref(), here.as_ref())? {
                stay.add(change.path, Link { after: change.before, before: change.after });
            }
            self.note_folders(trees, &mut stay, now, path)?;
        }
        let stays = inverse::draft(&layered, contents, drafted.root, &stay, None)?;
        drafted.root = stays.root;
        drafted.new_trees.extend(stays.new_trees);
        Ok(())
    }

    /// Scans for a plan.
    pub(crate) fn look(&self, root_mode: u16, forced: &[WorkspacePath]) -> Result<Looked, OperationError> {
        let sink = HashingSink::default();
        let root = match self.standing().map_err(|e| self.folder_error(e))? {
            Standing::Same(root) | Standing::Other(root) => root,
            Standing::Missing => {
                let (tree, encoded) = empty_tree();
                piton_host::Sink::tree(&sink, tree, encoded).unwrap_or_else(|never: Infallible| match never {});
                let now = RootState { tree, mode: root_mode };
                return Ok(Looked { now, fresh: sink.finish().0, index: None, root: None });
            }
        };
        let scan = self.look_at(&root, forced, &sink)?;
        Ok(Looked { now: scan.root, fresh: sink.finish().0, index: scan.index, root: Some(root) })
    }

    /// An empty folder is another one too: a disk that is not mounted looks like that.
    pub(crate) fn is_other_folder(&self, ask: &Asked) -> bool {
        let replaced = matches!(self.standing(), Ok(Standing::Other(_)));
        replaced || ask.target().is_some_and(|target| target.checkpoint.line != self.record.line)
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

/// The paths of a tree that are left out because they are damaged in the store.
fn damaged_in<S: TreeSource<Error = StoreError>>(trees: &S, root: &ObjectId) -> Result<Vec<WorkspacePath>, StoreError> {
    let all = diff::skipped(trees, root)?;
    Ok(all.into_iter().filter(|(_, reason)| *reason == SkipReason::Damaged).map(|(path, _)| path).collect())
}

/// What a scan for a plan found.
pub(crate) struct Looked {
    now: RootState,
    fresh: FreshTrees,
    index: Option<Index>,
    root: Option<Root>,
}

impl Looked {
    pub(crate) fn seen<'a>(&'a self, store: &'a Reader) -> FolderNow<'a> {
        let trees = Trees { fresh: &self.fresh, store };
        FolderNow { now: self.now, trees, index: self.index.as_ref(), root: self.root.as_ref() }
    }
}

/// Contents of the store, and of files that are in the workspace and not in it yet.
pub(crate) struct NowAndThen<'a> {
    pub root: Option<&'a Root>,
    pub store: &'a Reader,
}

impl Contents for NowAndThen<'_> {
    type Error = StoreError;

    fn content(&self, path: &WorkspacePath, blob: &ObjectId) -> Result<Vec<u8>, StoreError> {
        let (error, root) = match (self.store.blob(blob), self.root) {
            // The workspace may have it where the store lacks it, or has it damaged.
            (Err(error @ (StoreError::Missing(_) | StoreError::Damaged(_))), Some(root)) => (error, root),
            (found, _) => return found,
        };
        let sink = HashingSink::with_contents();
        let read = read_entry(root, path.as_bytes(), &sink).unwrap_or_else(|never: Infallible| match never {});
        let io = |source| StoreError::Io { what: "cannot read", path: path.as_path().to_owned(), source };
        let found = read.map_err(io).map(|_| sink.finish().1.remove(blob));
        match (found, error) {
            (Ok(Some(content)), _) => Ok(content),
            (_, error @ StoreError::Damaged(_)) => Err(error),
            (Err(error), _) => Err(error),
            (Ok(None), _) => Err(io(std::io::Error::other("it changed while it was read"))),
        }
    }
}

/// The folders above a path that are there now and in whose place something else would come.
pub(crate) fn replaced_folders<A: TreeSource<Error = StoreError>, B: TreeSource<Error = StoreError>>(
    now_trees: &A,
    now: RootState,
    then_trees: &B,
    then: RootState,
    path: &WorkspacePath,
) -> Result<Vec<WorkspacePath>, StoreError> {
    let is_folder = |entry: &Option<Entry>| matches!(entry, Some(Entry::Folder { .. }));
    let mut found = Vec::new();
    let mut at = path.clone();
    while let Some((above, _)) = at.split().filter(|(above, _)| !above.is_root()) {
        let (here, aimed) = (folder_at(now_trees, now, &above)?, folder_at(then_trees, then, &above)?);
        if is_folder(&here) && aimed.is_some() && !is_folder(&aimed) {
            found.push(above.clone());
        }
        at = above;
    }
    Ok(found)
}

/// Whether what a plan was made from is still there.
pub(crate) fn still_holds<S: TreeSource<Error = StoreError>>(
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

/// The conflicts of a plan with what is not captured, or not asked for.
fn not_to_be_touched(plan: &plan::Plan) -> impl Iterator<Item = Conflict> {
    plan.conflicts.iter().map(|(path, why)| Conflict::open(path.clone(), *why))
}

/// Adds what a plan asks for to the forced paths; whether there was anything new.
pub(crate) fn more_unknown(plan: &plan::Plan, forced: &mut Vec<WorkspacePath>) -> bool {
    let known: HashSet<&WorkspacePath> = forced.iter().collect();
    let new: Vec<_> = plan.unknown.iter().filter(|path| !known.contains(path)).cloned().collect();
    let more = !new.is_empty();
    forced.extend(new);
    more
}

/// How what a plan must leave for being unreadable can be read after all: by the bits that it had, and those of the folders
/// that it is in.
pub(crate) fn ways_to_readable(root: &Root, plan: &plan::Plan) -> Vec<FolderMode> {
    let unreadable = || plan.undone.iter().filter(|undone| undone.reason == SkipReason::Unreadable);
    let is_closed = |folder: &&FolderMode| folder.before & 0o500 != 0o500 && folder.after & 0o500 == 0o500;
    let holds_some = |folder: &&FolderMode| unreadable().any(|undone| undone.path.is_within(&folder.path));
    let folders = plan.folders.iter().filter(is_closed).filter(holds_some).filter(|folder| !folder.path.is_root());
    let own = unreadable().filter_map(|undone| way_to_readable(root, &undone.path, undone.known.as_ref()?));
    folders.cloned().chain(own).collect()
}

fn is_on_a_way(ways: &[FolderMode], path: &WorkspacePath) -> bool {
    ways.iter().any(|way| path.is_within(&way.path))
}

fn is_undone(plan: &plan::Plan, way: &FolderMode) -> bool {
    plan.undone.iter().any(|undone| undone.path == way.path)
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

/// Of what others changed, what a plan changes.
pub(crate) fn touched(remarks: &Remarks, draft: &Draft, changes: &[Change]) -> Vec<ChangedFile> {
    let paths: HashSet<&WorkspacePath> = changes.iter().map(|change| &change.path).collect();
    let is_touched = |file: &&ChangedFile| file.path.exact().is_some_and(|path| paths.contains(&path));
    let outside: HashSet<&WorkspacePath> = draft.outside.steps.iter().map(|step| &step.path).collect();
    let elsewhere = remarks.others_outside.iter().filter(|(path, _)| outside.contains(path)).map(|(_, file)| file);
    remarks.others.iter().filter(is_touched).chain(elsewhere).cloned().collect()
}
