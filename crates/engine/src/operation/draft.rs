//! Planning: from what is asked for and what is there now to the steps of an operation, and to what is shown of it.
//! Nothing here has a side effect.

mod folder_now;
mod shown;
mod stays;

use std::collections::HashSet;

use piton_host::Root;
use piton_host::apply::way_to_readable;
use piton_model::diff::{self, Change, TreeSource};
use piton_model::edit::NewTrees;
use piton_model::inverse::{self, Conflict};
use piton_model::moves::Move;
use piton_model::plan::{self, FolderMode, Layered, RootState, Undone};
use piton_model::{Entry, ObjectId, OperationKind, SkipReason, WorkspaceId, WorkspacePath};
use piton_store::{CheckpointRow, StoreError};

use crate::capture::sound::folder_at;
use crate::operation::decided::decided_lost;
use crate::operation::error::{OperationError, are_damaged};
use crate::operation::except::Excepted;
use crate::operation::left_out::is_missed;
use crate::operation::outside::OutsideDraft;
use crate::operation::running::Known;
use crate::view::{Interrupted, PlanView};
use crate::workspace::{History, Standing};

use self::folder_now::Looked;
pub(crate) use self::folder_now::{FolderNow, NowAndThen};
pub(crate) use self::shown::{carried_in, not_done, paths, torn, touched};
pub(crate) use self::stays::replaced_folders;
use crate::operation::request::{Aim, Asked, Request};

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
    pub(crate) fn may_go_on_with(&self) -> Vec<WorkspacePath> {
        let undone = self.plan.undone.iter().filter(|undone| !undone.reason.is_for_good());
        let mut paths: Vec<_> = self.open_conflicts().flat_map(Conflict::paths).cloned().collect();
        paths.extend(undone.map(|undone| undone.path.clone()));
        paths.extend(self.excepted.paths.iter().chain(&self.excepted.in_part).cloned());
        paths.sort();
        paths.dedup();
        paths
    }
}

impl History {
    /// Plans without any side effect: scans and hashes, stores nothing.
    pub(crate) fn plan(&self, ask: Asked) -> Result<Plan, OperationError> {
        if ask.writes_files() && self.is_missing() {
            self.refuse_displaced()?;
        }
        let looked = self.look(ask.root_mode(), &[])?;
        self.plan_from(ask, looked, Vec::new())
    }

    /// The same from a scan that took the forced paths in; another scan where there are more of those.
    pub(crate) fn plan_from(
        &self,
        ask: Asked,
        mut looked: Looked,
        mut forced: Vec<WorkspacePath>,
    ) -> Result<Plan, OperationError> {
        loop {
            let seen = looked.seen(&self.store);
            let request = self.request(&ask, &seen)?;
            let mut draft = self.draft(&request, &seen)?;
            if more_unknown(&draft.plan, &mut forced) {
                looked = self.look(ask.root_mode(), &forced)?;
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
            view.torn = torn(&seen.trees, seen.now, &draft.plan, &changes)?;
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
                let decided = &request.remarks.decided;
                drafted.conflicts.extend(decided_lost(trees, &contents, now, &drafted, decided, decision)?);
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

    /// An empty folder is another one too: a disk that is not mounted looks like that.
    pub(crate) fn is_other_folder(&self, ask: &Asked) -> bool {
        let replaced = matches!(self.standing(), Ok(Standing::Other(_)));
        replaced || ask.target().is_some_and(|target| target.checkpoint.line != self.record.line)
    }
}

/// The paths of a tree that are left out because they are damaged in the store.
fn damaged_in<S: TreeSource<Error = StoreError>>(trees: &S, root: &ObjectId) -> Result<Vec<WorkspacePath>, StoreError> {
    let all = diff::skipped(trees, root)?;
    Ok(all.into_iter().filter(|(_, reason)| *reason == SkipReason::Damaged).map(|(path, _)| path).collect())
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
