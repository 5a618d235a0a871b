//! Rewinding: make the workspace's files equal to a checkpoint.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use piton_model::diff::{Change, ChangeKind};
use piton_model::inverse::{Conflict, Inverse, Why};
use piton_model::ownership::{Candidate, Owner};
use piton_model::{CheckpointId, Operation, OperationKind, Scope, SessionId, SkipReason, Target, When, WorkspacePath};
use piton_store::{CheckpointRow, OperationState, StoreError};

use crate::capture::sound::readable_changes;
use crate::conversation::{BranchTerms, NoConversation, Point};
use crate::history::changes::OwnedChange;
use crate::history::lineage::Lineage;
use crate::history::target::IntoTarget;
use crate::operation::branch::{BranchAsked, ConversationPlan};
use crate::operation::chosen::commands;
use crate::operation::draft::{FolderNow, Plan};
use crate::operation::error::OperationError;
use crate::operation::lost::refuse_lost;
use crate::operation::moves::OtherHalves;
use crate::operation::outside::{OutsideSince, Taking};
use crate::operation::request::{Aim, Asked, Remarks, Request, Returns, Settle};
use crate::operation::undo::by_checkpoint;
use crate::view::{ChangedFile, CheckpointView, OperationOutcome};
use crate::workspace::{History, Workspace};

/// Whose edits since the target a rewind carries over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carry {
    /// Nobody's: everything is as it was.
    #[default]
    Nothing,
    /// The user's own.
    Mine,
    /// Everybody's but the session's that goes back: the user's own, and those of other sessions.
    Others,
}

impl Carry {
    /// Whether the user's own edits are carried over.
    pub fn has_mine(self) -> bool {
        self != Self::Nothing
    }

    /// Whether those of other sessions are.
    pub fn has_others(self) -> bool {
        self == Self::Others
    }
}

/// What to rewind.
#[derive(Clone, Debug, Default)]
pub struct RewindOptions {
    /// Only these paths and what is beneath them; everything when empty.
    pub paths: Vec<WorkspacePath>,
    /// Go on though the target was captured in another folder that stood at the same path.
    pub across: bool,
    /// Whose edits since the target are carried over.
    pub carry: Carry,
    /// Take what may be the user's as the session's: otherwise it is carried over.
    pub unsure: bool,
    /// How conflicts are settled, where something is carried over, and what stays as it is.
    pub settle: Settle,
    /// Put files outside the workspace that tools named back too.
    pub outside: bool,
    /// Put the repository's branch, HEAD and index back too.
    pub git: bool,
    /// What goes back; where not given, files and conversation where the session's agent can, else files.
    pub scope: Option<Scope>,
    /// The turn that an agent is in was interrupted, and does not go on: the user says so.
    pub interrupted: bool,
}

/// A rewind that is asked for.
#[derive(Clone)]
pub(crate) struct RewindAsked {
    pub target: CheckpointRow,
    pub options: RewindOptions,
    /// The conversation that it is about: what was done in it goes back, what others did is theirs.
    pub conversation: Option<Lineage>,
    /// Where the conversation goes; none where it is not asked for, or why it stays.
    pub point: Option<Result<Point, String>>,
}

impl Workspace {
    /// Plans and rewinds in one go, under the lock.
    pub fn rewind_now(
        &mut self,
        target: impl IntoTarget,
        options: &RewindOptions,
    ) -> Result<OperationOutcome, OperationError> {
        let ask = self.rewind_asked(&target.into_target()?, options)?;
        self.operate(&ask, None)
    }
}

impl History {
    /// Plans a rewind, for showing. Has no side effect.
    pub fn plan_rewind(&self, target: impl IntoTarget, options: &RewindOptions) -> Result<Plan, OperationError> {
        self.plan(self.rewind_asked(&target.into_target()?, options)?)
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
        // In the folder of a fork, nobody asked for that of its parent.
        if self.store.session(&place.session).is_ok_and(|row| row.is_some_and(|row| row.session.along)) {
            return Vec::new();
        }
        let all = self.home.workspaces_of(&place.session).into_iter();
        all.filter(|(id, _)| *id != self.record.id).map(|(_, path)| path).collect()
    }

    pub(crate) fn rewind_asked(&self, target: &Target, options: &RewindOptions) -> Result<Asked, OperationError> {
        if options.scope.is_some_and(Scope::has_conversation) && !options.paths.is_empty() {
            return Err(NoConversation::OnlyPaths.into());
        }
        let found = self.checkpoint_at(target);
        if options.scope == Some(Scope::Conversation) {
            // A turn from before piton has no checkpoint, and is in the transcript all the same.
            let point = self.point_of(target, found.as_ref().ok())?;
            return Ok(Asked::Branch(Box::new(BranchAsked { point, terms: BranchTerms::rewind() })));
        }
        let mut found = found?;
        found.seq = found.moment();
        let point = match options.scope {
            Some(Scope::Both) => Some(Ok(self.point_of(target, Some(&found))?)),
            // With only some paths, the rest of the moment does not come back.
            None if found.checkpoint.place.is_some() && !is_of_files(target, &found) => {
                Some(match self.point_of(target, Some(&found)) {
                    Ok(_) if !options.paths.is_empty() => Err(NoConversation::OnlyPaths.to_string()),
                    point => point.map_err(|error| reason(error.into())),
                })
            }
            _ => None,
        };
        let conversation = self.conversation_meant(target, &found)?;
        Ok(Asked::Rewind(Box::new(RewindAsked { conversation, target: found, options: options.clone(), point })))
    }

    /// Whether the workspace's folder went while a tool was at work, after a checkpoint.
    pub fn was_taken_since(&self, checkpoint: &CheckpointId) -> Result<bool, StoreError> {
        let Some(row) = self.store.checkpoint(checkpoint)? else { return Ok(false) };
        Ok(self.store.gone_since(row.seq)?.is_some())
    }

    pub(crate) fn rewind_request(&self, asked: &RewindAsked, seen: &FolderNow<'_>) -> Result<Request, OperationError> {
        let RewindAsked { target, options, point, conversation: conversation_of } = asked;
        let (conversation, conversation_stays) = match point {
            Some(Ok(point)) => match self.plan_branch(point, &BranchTerms::rewind()) {
                Ok(plan) => (Some(ConversationPlan::Branch(Box::new(plan))), None),
                Err(error) if options.scope.is_none() => (None, Some(reason(error.into()))),
                Err(error) => return Err(error.into()),
            },
            Some(Err(why)) => (None, Some(why.clone())),
            None => (None, None),
        };
        let OtherHalves { all: paths, along, between } =
            self.with_other_halves(target, &options.paths, options.carry.has_mine(), seen)?;
        let steps = self.store.steps_since(target.seq)?;
        // With only some paths, what lies elsewhere is not meant.
        let outside = if options.paths.is_empty() {
            let RewindOptions { carry, unsure, .. } = *options;
            let taking = Taking { conversation: conversation_of.as_ref(), carry, unsure };
            OutsideSince::of(&steps, &self.operations_outside(target.seq)?, target.seq, &taking)
        } else {
            OutsideSince::default()
        };
        let mut remarks = Remarks { along, between, commands: commands(&steps), ..Remarks::default() };
        let carries = options.carry.has_mine();
        // Without a session everything is the user's own, and going back is what was asked for.
        let since = match conversation_of {
            None if !carries => Vec::new(),
            _ => self.changes_since(target, seen, &paths)?,
        };
        let hidden = self.hidden_since(target, &since, conversation_of.as_ref(), &paths, seen)?;
        let mut kept = None;
        let mut fresh = Vec::new();
        let is_kept = |change: &&OwnedChange| carries && is_carried(&change.owner, conversation_of.as_ref(), options);
        // Who says `--unsure` with what is kept has said whose the rest is.
        let is_meant = |owner: &Owner| carries && options.unsure && matches!(owner, Owner::Unsure { .. });
        let is_others = |change: &&OwnedChange| {
            conversation_of.is_some()
                && !matches!(change.owner, Owner::Operation { .. })
                && !is_meant(&change.owner)
                && !change.owner.turn().is_some_and(|(of, turn)| is_in(conversation_of.as_ref(), of, turn))
        };
        // Without a session everything is the user's own.
        let unseen = match conversation_of {
            None if !carries => Vec::new(),
            _ => self.came_into_sight(target, &since, &paths, seen)?,
        };
        let of_others = since.iter().filter(|change| is_others(change) && !is_kept(change));
        let mut others: Vec<OwnedChange> = of_others.cloned().collect();
        if !carries {
            others.extend(self.moved_on(target, &others, &since, &paths, seen)?);
            others.extend(unseen.iter().cloned());
        }
        remarks.others = files(&others);
        let moved_out = self.moved_out(target, &since, &paths, seen)?;
        if !carries {
            remarks.held_along = held_along(&remarks, &options.paths);
        }
        let aim = if carries {
            let first = self.store.first(self.record.line)?.map(|row| row.seq);
            let is_unknown =
                |change: &OwnedChange| target.checkpoint.line != self.record.line && Some(change.seq()) == first;
            let (unknown, mut carried): (Vec<_>, Vec<_>) = since.iter().filter(is_kept).cloned().partition(is_unknown);
            let unknown: BTreeSet<WorkspacePath> = unknown.into_iter().map(|change| change.path).collect();
            carried.retain(|change| !unknown.contains(&change.path));
            remarks.held_along = unknown.into_iter().map(|path| Conflict::open(path, Why::Beginning)).collect();
            if let Some(conversation) = conversation_of {
                // A deletion that may be the agent's is none of the user's edits: the file comes back, and nothing is lost by that.
                let back = self.may_come_back(&mut carried, conversation, seen)?;
                remarks.unsure_back = files(&back);
            }
            carried.reverse();
            // What was taken back since, and is nothing that goes back, stays taken back.
            let mut undone = self.undone_since(target, &paths)?;
            undone.retain(|(change, _)| is_kept(&change));
            let (inverse, lost) = self.carried_of(&carried, &undone, target, (&paths, true), seen)?;
            // Where nothing differs, nobody need know what of it would be carried over.
            let named = self.not_as_in(target, lost.clone(), seen);
            refuse_lost(&named, &options.settle)?;
            carried.reverse();
            // What cannot be carried over stays as it is, and is no part of what is.
            let is_lost = |change: &OwnedChange| lost.iter().any(|lost| change.path.is_within(lost));
            carried.retain(|change| !is_lost(change));
            undone.retain(|(change, _)| !is_lost(change));
            remarks.decided = self.decided_in(&undone, seen)?;
            remarks.stuck.extend(named.into_iter().map(|path| (path, SkipReason::Damaged)));
            kept = Some(by_checkpoint(&carried));
            let undone: Vec<_> = undone.into_iter().map(|(change, _)| change).collect();
            // What stays taken back makes the files differ from the target too.
            let taken_back: Vec<OwnedChange> = undone.iter().map(taken_back).collect();
            let unseen = unseen.iter().filter(|_| !options.unsure);
            remarks.carried = files(carried.iter().chain(&taken_back).chain(unseen));
            kept.iter_mut().for_each(|kept| kept.extend(by_checkpoint(&undone)));
            fresh.extend(carried.iter().filter(|c| c.found_at.is_none()).map(|c| c.path.clone()));
            Aim::StateWith { target: target.clone(), carried: inverse }
        } else if options.paths.is_empty() && options.settle.except.is_empty() {
            Aim::State(target.clone())
        } else {
            // What is not asked for, or taken out, stays, perhaps without lines that stand in what goes back.
            let mut carried = Inverse::default();
            let is_asked = |_, path: &WorkspacePath| path.is_in_scope(&paths);
            let moved = self.moved_since(target.seq, |_| false, seen)?;
            carried.altered(self.altered(&moved, target.seq, true, is_asked)?);
            Aim::StateWith { target: target.clone(), carried }
        };
        if options.outside {
            remarks.carried.extend(outside.carried);
            remarks.others_outside = outside.others;
        }
        let is_whole = options.paths.is_empty() && options.settle.except.is_empty() && !carries;
        let kind =
            OperationKind::Rewind { target: target.checkpoint.id.clone(), paths: paths.clone(), kept, left: moved_out };
        Ok(Request {
            paths,
            git: if options.git { Some(self.plan_git(target)?) } else { None },
            conversation,
            conversation_stays,
            outside: outside.taken,
            touches_outside: options.outside,
            fresh,
            returns: is_whole.then(|| Returns { to: target.checkpoint.id.clone(), from: None }),
            settle: options.settle.clone(),
            hidden,
            unseen: match carries && !options.unsure {
                true => unseen.into_iter().map(|change| change.path).collect(),
                false => Vec::new(),
            },
            remarks,
            ..Request::new(kind, aim)
        })
    }

    /// The operations that changed files outside the workspace after a record, oldest first. The record of an operation
    /// names all its files: it is read only where that is needed. With each the place that a rewind went back to.
    fn operations_outside(&self, seq: u64) -> Result<Vec<(u64, Operation, Option<u64>)>, StoreError> {
        let mut rows = self.store.operations()?;
        rows.retain(|row| row.seq > seq && row.outside && row.state == OperationState::Done);
        // What a damaged record did cannot be told; the files themselves still tell what can be put back.
        let mut operations = Vec::new();
        for (seq, operation) in rows.iter().rev().filter_map(|row| Some((row.seq, self.store.operation(row).ok()?))) {
            let to = match &operation.kind {
                OperationKind::Rewind { target, .. } => self.store.checkpoint(target)?.map(|row| row.moment()),
                _ => None,
            };
            operations.push((seq, operation, to));
        }
        Ok(operations)
    }

    /// The conversation that a rewind to a checkpoint is about: the one that the target names; else where the user is, if
    /// the checkpoint was made in that; else the one that it was made in.
    fn conversation_meant(&self, target: &Target, found: &CheckpointRow) -> Result<Option<Lineage>, OperationError> {
        if let When::Turn { .. } = target.when {
            return Ok(Some(self.lineage(&self.session_of_target(target)?.session.id)?));
        }
        let here = self.here()?.map(|here| self.lineage(&here)).transpose()?;
        match (&found.checkpoint.place, here) {
            (Some(place), Some(here)) if here.holds(&place.session, place.turn) => Ok(Some(here)),
            (Some(place), _) => Ok(Some(self.lineage(&place.session)?)),
            (None, here) => Ok(here),
        }
    }

    /// What was in effect at a checkpoint and was taken back since, with when.
    fn undone_since(
        &self,
        target: &CheckpointRow,
        paths: &[WorkspacePath],
    ) -> Result<Vec<(OwnedChange, u64)>, OperationError> {
        if !self.store.operations()?.iter().any(|row| row.seq > target.seq && row.state == OperationState::Done) {
            return Ok(Vec::new());
        }
        let mut changes = self.all_changes(0)?;
        changes.retain(|change| change.seq() <= target.seq && change.path.is_in_scope(paths));
        let Some(effects) = self.effects(&changes.iter().collect::<Vec<_>>())? else { return Ok(Vec::new()) };
        let is_undone = |number: usize| !effects.is_in_effect(number) && effects.at(number, target.seq);
        let numbered = changes.into_iter().enumerate().filter(|(number, _)| is_undone(*number));
        let mut undone: Vec<_> =
            numbered.map(|(number, change)| (change, effects.turned_after(number, target.seq))).collect();
        // Of what was taken back at once, the newest first.
        undone.sort_by_key(|(change, at)| (*at, std::cmp::Reverse(change.seq())));
        Ok(undone)
    }

    /// What is in effect now and was not at a checkpoint, newest first.
    pub(crate) fn changes_since(
        &self,
        target: &CheckpointRow,
        seen: &FolderNow<'_>,
        paths: &[WorkspacePath],
    ) -> Result<Vec<OwnedChange>, OperationError> {
        self.changes_since_without(target, seen, paths, u64::MAX)
    }

    /// How this folder differed from the beginning from a checkpoint of another one: whoever made it what it was is not known here,
    /// and it counts as the user's.
    fn since_another_folder(&self, target: &CheckpointRow) -> Result<Vec<OwnedChange>, OperationError> {
        if target.checkpoint.line == self.record.line {
            return Ok(Vec::new());
        }
        let Some(first) = self.store.first(self.record.line)?.map(Arc::new) else { return Ok(Vec::new()) };
        let differ = readable_changes(&self.store, Some(&target.checkpoint.root), &first.checkpoint.root)?;
        let change = |change: Change| {
            let (kind, found_at) = (change.kind(), Some(first.clone()));
            OwnedChange { path: change.path, owner: Owner::You, doubt: None, kind, found_at }
        };
        // What it had not is nobody's.
        let is_there = |change: &Change| !change.implied && change.after.is_some();
        Ok(differ.into_iter().filter(is_there).map(change).collect())
    }

    /// The same as if no operation had happened from a record on.
    pub(crate) fn changes_since_without(
        &self,
        target: &CheckpointRow,
        seen: &FolderNow<'_>,
        paths: &[WorkspacePath],
        until: u64,
    ) -> Result<Vec<OwnedChange>, OperationError> {
        // What an operation brought back may be older than the target.
        let may_be_older = self.store.operations()?.iter().any(|row| row.seq > target.seq);
        let from = if may_be_older { 0 } else { target.seq + 1 };
        let mut changes = self.all_changes(from)?;
        changes.extend(self.uncaptured(seen)?);
        changes.extend(self.since_another_folder(target)?);
        self.settle_halves(changes.iter_mut(), seen)?;
        changes.retain(|change| change.path.is_in_scope(paths));
        let effects = self.effects_until(&changes.iter().collect::<Vec<_>>(), until)?;
        let mut number = 0..;
        changes.retain(|change| {
            let number = number.next().unwrap_or_default();
            match &effects {
                Some(effects) => effects.is_in_effect(number) && !effects.at(number, target.seq),
                None => change.seq() > target.seq,
            }
        });
        changes.reverse();
        Ok(changes)
    }
}

/// Whether a target says when, and nothing of a conversation: a name or an age.
fn is_of_files(target: &Target, found: &CheckpointRow) -> bool {
    match &target.when {
        When::Name(_) | When::Age(_) => target.session.is_none(),
        // A name may be of the letters of ids.
        When::Id(text) => found.names.contains(text),
        _ => false,
    }
}

/// What only goes along with the paths that are asked for and holds edits of others: nobody asked for those to be overwritten. A
/// part of a chain of moves cannot go back without the rest.
fn held_along(remarks: &Remarks, asked: &[WorkspacePath]) -> Vec<Conflict> {
    let edited = remarks.others.iter().filter_map(|file| file.path.exact());
    let edited: BTreeSet<WorkspacePath> = edited.filter(|path| !path.is_in_scope(asked)).collect();
    let mut held: Vec<Conflict> = Vec::new();
    for path in edited {
        if held.iter().any(|conflict| conflict.paths().any(|one| *one == path)) {
            continue;
        }
        let mut chain = BTreeSet::from([path.clone()]);
        loop {
            let known = chain.len();
            for one in &remarks.along {
                if chain.contains(&one.path) || chain.contains(&one.with) {
                    chain.extend([one.path.clone(), one.with.clone()]);
                }
            }
            if chain.len() == known {
                break;
            }
        }
        chain.remove(&path);
        if !chain.is_empty() {
            held.push(Conflict { others: chain.into_iter().collect(), ..Conflict::open(path, Why::Along) });
        }
    }
    held
}

/// A change that was taken back, as what that did to its path.
fn taken_back(change: &OwnedChange) -> OwnedChange {
    let kind = match change.kind {
        ChangeKind::Created => ChangeKind::Deleted,
        ChangeKind::Modified => ChangeKind::Modified,
        ChangeKind::Deleted => ChangeKind::Created,
    };
    OwnedChange { kind, ..change.clone() }
}

/// Whether a change since the target is carried over.
fn is_carried(owner: &Owner, conversation: Option<&Lineage>, options: &RewindOptions) -> bool {
    match owner {
        Owner::You => options.carry.has_mine(),
        Owner::Step { step, .. } => options.carry.has_others() && !is_in(conversation, &step.session, step.turn),
        Owner::Unsure { .. } if options.unsure => false,
        Owner::Unsure { candidates } => {
            (options.carry.has_mine() && owner.may_be_you())
                || (options.carry.has_others()
                    && candidates
                        .iter()
                        .any(|one| matches!(one, Candidate::Step(s) if !is_in(conversation, &s.session, s.turn))))
        }
        Owner::Operation { .. } => false,
    }
}

fn is_in(conversation: Option<&Lineage>, session: &SessionId, turn: u32) -> bool {
    conversation.is_some_and(|conversation| conversation.holds(session, turn))
}

/// Why the conversation stays, without the words around it.
fn reason(error: OperationError) -> String {
    match error {
        OperationError::Conversation(why) => why.to_string(),
        error => error.to_string(),
    }
}

/// Changes, newest first, as files in order: of each the newest change of everybody who changed it.
pub(crate) fn files<'a>(changes: impl IntoIterator<Item = &'a OwnedChange>) -> Vec<ChangedFile> {
    let whose = |owner: &Owner| match owner {
        Owner::You => "you".to_owned(),
        Owner::Step { step, .. } => step.session.to_string(),
        Owner::Operation { .. } | Owner::Unsure { .. } => String::new(),
    };
    let mut newest: BTreeMap<(&WorkspacePath, String), &OwnedChange> = BTreeMap::new();
    for change in changes {
        newest.entry((&change.path, whose(&change.owner))).or_insert(change);
    }
    newest.into_values().map(OwnedChange::file).collect()
}
