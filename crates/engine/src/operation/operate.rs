//! Operations: what rewind, undo, redo and recovery share. Capture now, record the plan, stage, swap, check, record the end.
//!
//! The order is the promise. Until the plan is recorded durably nothing of the user's is touched; until everything is
//! staged nothing is swapped; until what was put in place is synced, and what came out is known to be stored, nothing is
//! removed; and a crash at any point leaves a pending operation that [`crate::operation::recover`] ends one way or the other.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use piton_host::apply::{Applier, ApplyError, Content, MadeRoot, Refusals, Reopened, Swapped, make_root, mode_of};
use piton_host::fail::point;
use piton_host::{Root, Scan, Signatures, clock, in_parallel, read_entry_signed};
use piton_model::conversation::ConversationMove;
use piton_model::diff::{self, Change, ChangeKind, Counts, TreeSource};
use piton_model::edit::NewTrees;
use piton_model::git::{GitEnd, GitMove};
use piton_model::inverse::Conflict;
use piton_model::ownership::ChangedPath;
use piton_model::plan::{self, FolderMode, Layered, RootState};
use piton_model::{
    Cause, Checkpoint, CheckpointId, Entry, ObjectId, Operation, OperationId, OperationKind, Outcome, Record,
    SessionId, SettingsAt, SkipReason, Step, Tree, TurnContext, WorkspacePath,
};
use piton_store::{PATIENCE, Progress, ProgressNote, Purpose, Reader, ReopenedNote, StoreError};

use crate::capture::bits::result_with_bits;
use crate::capture::held::HeldNow;
use crate::capture::sink::{FreshTrees, HashingSink, Trees};
use crate::capture::sound::{folder_at, is_sound};
use crate::capture::{About, Attention, CaptureError, Taken};
use crate::conversation::said::ConversationError;
use crate::conversation::{NoBranch, NoConversation};
use crate::history::target::TargetError;
use crate::operation::branch::ConversationPlan;
use crate::operation::chosen::ChosenError;
use crate::operation::draft::{
    Aim, Asked, Draft, FolderNow, Plan, Request, more_unknown, not_done, paths, still_holds, touched, ways_to_readable,
};
use crate::operation::git_restore::GitRefusal;
use crate::operation::leftovers::{Cleared, Extent, Left, clear_read_outside, found_at};
use crate::operation::outside::Outer;
use crate::operation::recover::RecoverError;
use crate::operation::running::described;
use crate::view::{ConversationOutcome, LeftoverView, OperationOutcome, PathView, RunningView, SkippedView, shown};
use crate::workspace::locked::Locked;
use crate::workspace::notice::Notice;
use crate::workspace::{History, InItsPlace, Standing, Workspace};

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
    /// The same outside the workspace.
    #[error("{} changed after this plan was made; nothing was changed", path.display())]
    StaleOutside {
        /// Where.
        path: PathBuf,
    },
    /// The same in the repository.
    #[error("the repository changed after this plan was made; nothing was changed")]
    StaleGit,
    /// The same in the conversation: what was read of the transcript is not there any more.
    #[error("the transcript was written anew after this plan was made; nothing was changed")]
    StaleTranscript,
    /// The conversation cannot go there.
    #[error("the conversation cannot go back there: {0}")]
    Conversation(#[from] NoConversation),
    /// Something was said after a conversation was summarized, which the summary does not tell.
    #[error("the conversation went on after it was summarized; nothing was made")]
    WentOn,
    /// Back to a branch that was deleted.
    #[error("session {} was deleted", .0.short())]
    DeletedBranch(SessionId),
    /// A conversation with very many branches.
    #[error("this conversation has {0} branches, as many as the settings allow")]
    TooManyBranches(usize),
    /// An agent that the operation is about is at work.
    #[error("{}; nothing was changed", described(.0))]
    Running(Vec<RunningView>),
    /// Taking back does not go together with what is there now.
    #[error("{}; nothing was changed", in_conflict(.0, ""))]
    Conflict(Vec<Conflict>),
    /// The same outside the workspace; the paths are from the file system's root.
    #[error("outside the workspace: {}; nothing was changed", in_conflict(.0, "/"))]
    ConflictOutside(Vec<Conflict>),
    /// No operation is left to take back.
    #[error("there is no rewind or undo to take back")]
    NothingToRedo,
    /// The same, while records are lost that may have told of one.
    #[error(
        "there is no rewind or undo to take back that is known; a record of the timeline is damaged, and may have told of one"
    )]
    NothingKnownToRedo,
    /// One is left to take back, and records after it are lost that may have told of a later one.
    #[error(
        "a record of the timeline is damaged that may have told of a later rewind or undo than {}; nothing was changed", .0.short()
    )]
    LaterMayBeLost(OperationId),
    /// It was taken back already, or never came to its end.
    #[error("operation {} does not stand any more: there is nothing of it to take back", .0.short())]
    NotStanding(OperationId),
    /// The repository's state cannot be put back.
    #[error(transparent)]
    Git(#[from] GitRefusal),
    /// What was asked for names no change.
    #[error(transparent)]
    Chosen(#[from] ChosenError),
    /// The folder at this path is not the one that the target was captured in.
    #[error("{} is another folder than the one that checkpoint was captured in; nothing was changed", path.display())]
    OtherFolder {
        /// The workspace's.
        path: PathBuf,
        /// What would come back, or, of an undo, what was captured last in the folder that was there.
        state: Option<CheckpointId>,
    },
    /// Something else stands in the place of the workspace's folder.
    #[error("{} is gone, and {} stands in its place; nothing was changed", path.display(), by.word())]
    Displaced {
        /// Where it was.
        path: PathBuf,
        /// What is there.
        by: InItsPlace,
    },
    /// The system refused, and everything was put back.
    #[error("{reason}; everything is as it was before{}", but_left(.leftovers))]
    RolledBack {
        /// Why.
        reason: String,
        /// Whether that was for want of space.
        full_disk: bool,
        /// What the store has only damaged, where that is why.
        damaged: Vec<WorkspacePath>,
        /// Paths that the system does not let anybody change, where that is why.
        refused: Vec<WorkspacePath>,
        /// What was staged and could not be removed again.
        leftovers: Vec<LeftoverView>,
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
    /// Everything was put back, but that could not be recorded. The next command does.
    #[error("{reason}; everything is as it was before, but that could not be recorded: {source}")]
    PutBackUnrecorded {
        /// Why it was put back.
        reason: String,
        /// Why it could not be recorded.
        source: StoreError,
    },
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

impl From<ConversationError> for OperationError {
    fn from(error: ConversationError) -> Self {
        match error {
            ConversationError::Target(error) => Self::Target(error),
            ConversationError::Transcript(why) => Self::Conversation(why),
            ConversationError::Store(error) => Self::Store(error),
        }
    }
}

impl From<NoBranch> for OperationError {
    fn from(error: NoBranch) -> Self {
        match error {
            NoBranch::Conversation(error) => error.into(),
            NoBranch::TooMany(count) => Self::TooManyBranches(count),
        }
    }
}

/// What is damaged, by name.
pub(crate) fn are_damaged(paths: &[WorkspacePath]) -> String {
    const MOST: usize = 5;
    let named: Vec<_> = paths.iter().take(MOST).map(|path| format!("`{}`", path.display())).collect();
    let rest = paths.len().saturating_sub(MOST);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let verb = if paths.len() == 1 { "is" } else { "are" };
    format!("{}{more} {verb} damaged in piton's store", named.join(", "))
}

fn but_left(leftovers: &[LeftoverView]) -> String {
    let Some((one, rest)) = leftovers.split_first() else { return String::new() };
    let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
    format!(", but `{}`{more} could not be removed: {}", one.path.path, one.why)
}

fn in_conflict(conflicts: &[Conflict], root: &str) -> String {
    let Some((one, rest)) = conflicts.split_first() else { return String::new() };
    let said = format!("`{root}{}`: {}", one.path.display(), one.why.describe());
    if rest.is_empty() { said } else { format!("{said}; and {} more in conflict", rest.len()) }
}

/// What the check after the swap found.
#[derive(Default)]
struct Checked {
    /// Steps where something else came out than was captured.
    rescued: Vec<usize>,
    /// Steps where what came out is as it was captured, and the store's copy of it cannot be read back.
    unsound: Vec<usize>,
    changed_again: Vec<WorkspacePath>,
    /// Where the filesystem did not take the permission bits that it was given.
    bits_not_taken: Vec<WorkspacePath>,
    /// What came out, as it was read.
    came_out: Vec<Option<Signatures>>,
}

impl Checked {
    /// Notes the steps whose bits were not taken: what differs in nothing else was not changed by anybody.
    fn without_bits(&mut self, applier: &Applier<'_>, not_taken: &[usize]) {
        self.bits_not_taken.extend(not_taken.iter().map(|number| applier.steps[*number].path.clone()));
        self.changed_again.retain(|path| !self.bits_not_taken.contains(path));
    }
}

/// The same of all that an operation does.
struct CheckedAll {
    inside: Checked,
    outside: Checked,
}

/// The root that an operation puts files into.
struct RootToRewind {
    root: Root,
    /// Set where it is another folder than the one that is known: recorded together with the operation, so that one that is
    /// refused changes nothing.
    change: Option<piton_model::Workspace>,
    made: Option<MadeRoot>,
}

/// What else is recorded when an operation begins.
#[derive(Default)]
struct Noted<'a> {
    /// Whether the plan was shown, so that something may have changed since.
    is_shown: bool,
    bits: &'a [FolderMode],
    change: Option<&'a piton_model::Workspace>,
    /// The root was gone and is made anew.
    is_root_made: bool,
}

/// What the check of one step found.
#[derive(Default)]
struct CheckedStep {
    /// Something else came out than was captured.
    rescue: bool,
    unsound: bool,
    /// Something else stands there now than was put there.
    changed_again: bool,
    came_out: Option<Signatures>,
}

impl Workspace {
    /// Carries out a plan that was shown. Refused where one of its paths changed since.
    pub fn carry_out(&mut self, plan: Plan) -> Result<OperationOutcome, OperationError> {
        let Plan { ask, request, draft, forced, .. } = plan;
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
        let interrupted = match &shown {
            // Known to write nothing: no agent is in its way.
            Some((request, draft, _))
                if draft.is_empty() && draft.plan.undone.is_empty() && request.git_move().is_none() =>
            {
                Vec::new()
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
            merged: draft.merged.iter().map(Into::into).collect(),
            conflicts: draft.conflicts.iter().map(Into::into).collect(),
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
            unknown: request.remarks.unknown.clone(),
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
        if is_idle && request.git_move().is_none() && request.conversation.is_none() {
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
        let id = begun.operation.id.clone();
        self.tell(|| match &begun.operation.kind {
            OperationKind::Redo { .. } => Notice::Redone { operation: id },
            OperationKind::Undo { .. } => Notice::Undone { operation: id },
            OperationKind::Rewind { .. } | OperationKind::Branch | OperationKind::Recover { .. } => {
                Notice::Rewound { operation: id }
            }
        });
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
        outcome.deleted_new = deleted_new(&begun, shown.map(|(_, draft, _)| &draft.plan));
        outcome.leftovers = cleared.left.into_iter().map(|left| left.view).collect();
        Ok(outcome)
    }
}

impl Locked<'_> {
    /// Records the state before and the whole plan, durably. Where the plan was shown, something may have changed since.
    fn begin(
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
        let unplanned = if noted.is_shown { self.unplanned(&trees, request, plan, &before)? } else { Vec::new() };
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
            moves: self.moves_of(&changes, &draft.moves, root),
            outside: draft.outside.steps.clone(),
            git: request.git_move().cloned(),
            conversation,
            result,
        };
        if let Some(change) = noted.change {
            writer.record(Record::Workspace(change.clone()))?;
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
    fn root_to_rewind(&mut self, ask: &Asked) -> Result<RootToRewind, OperationError> {
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

    /// Stages, swaps and checks; on any failure everything is put back.
    fn apply(
        &self,
        root: &Root,
        begun: &Begun,
        progress: &ProgressNote,
        is_partial: bool,
        refused_outside: &Refusals,
    ) -> Result<CheckedAll, OperationError> {
        let refusals = Refusals::new(is_partial);
        let applier = begun.applier(root);
        let outer = Outer::of(&begun.operation).map_err(|e| self.folder_error(e))?;
        let outer = outer.as_ref().map(Outer::applier);
        let (swapped, swapped_outside) = (Swapped::default(), Swapped::default());
        let git = begun.operation.git.as_ref();
        let result = self
            .stage_and_swap(&applier, outer.as_ref(), (&swapped, &swapped_outside), (&refusals, refused_outside))
            .and_then(|checked| git.map_or(Ok(()), |change| self.move_git(change, GitEnd::After)).map(|()| checked));
        result.map_err(|error| {
            refusals.note(&error);
            let refused = refusals.paths();
            let full_disk = match &error {
                ApplyError::Path { source, .. } => source.kind() == io::ErrorKind::StorageFull,
                ApplyError::Content(error) => error.is_full_disk(),
                _ => false,
            };
            let damaged = match &error {
                ApplyError::Content(StoreError::Damaged(_) | StoreError::Missing(_)) => {
                    self.damaged_in(&begun.operation.steps)
                }
                _ => Vec::new(),
            };
            let reason = if damaged.is_empty() { describe(error) } else { are_damaged(&damaged) };
            let back = || {
                // Where git refused before anything moved, there is nothing to ask it for.
                if let Some(change) = git
                    && !self.git_is_at(change, GitEnd::Before).unwrap_or(false)
                {
                    self.move_git(change, GitEnd::Before)?;
                }
                let left_outside = match &outer {
                    Some(outer) => self.put_back_outside(outer, &swapped_outside).map_err(outside)?,
                    None => Vec::new(),
                };
                let left = self.put_back(&applier, &swapped, &begun.before)?;
                self.keep_leftovers(&begun.operation.id, &left, &left_outside).map_err(ApplyError::Content)?;
                Ok(left.into_iter().chain(left_outside).map(|left| left.view).collect())
            };
            match back() {
                Ok(leftovers) => {
                    let id = &begun.operation.id;
                    // Where its end cannot be recorded, for want of room above all, the next command must not take what the
                    // user does until then for a part of it.
                    let noted = progress.write(id, Progress::PutBack);
                    let ended = self.note_end(id, Outcome::RolledBack { why: reason.clone() });
                    match noted.or(ended) {
                        Ok(()) => OperationError::RolledBack { reason, full_disk, damaged, refused, leftovers },
                        Err(error) => OperationError::PutBackUnrecorded { reason, source: error },
                    }
                }
                Err(ApplyError::Path { path, source }) => {
                    OperationError::Stuck { reason, path, back: source.to_string() }
                }
                Err(other) => OperationError::Stuck { reason, path: WorkspacePath::root(), back: describe(other) },
            }
        })
    }

    fn stage_and_swap(
        &self,
        applier: &Applier<'_>,
        outer: Option<&Applier<'_>>,
        (swapped, swapped_outside): (&Swapped, &Swapped),
        (refusals, refused_outside): (&Refusals, &Refusals),
    ) -> Result<CheckedAll, ApplyError<StoreError>> {
        applier.open_folders()?;
        let not_taken = self.store.read_steadily(|| applier.stage(&FromStore(&self.store), refusals))?;
        let not_taken_outside = match outer {
            Some(outer) => outer.stage(&FromStore(&self.store), refused_outside).map_err(outside)?,
            None => Vec::new(),
        };
        let mut checked = applier.while_syncing(|| {
            applier.swap(swapped, refusals)?;
            if let Some(outer) = outer {
                outer.swap(swapped_outside, refused_outside).map_err(outside)?;
            }
            self.store.read_steadily(|| check(&self.store, applier))
        })?;
        self.store_again(applier, &checked.unsound)?;
        let mut checked_outside = Checked::default();
        if let Some(outer) = outer {
            // What cannot be kept in a checkpoint of the workspace must not go: somebody wrote it in the last moment.
            checked_outside = check(&self.store, outer).map_err(outside)?;
            self.store_again(outer, &checked_outside.unsound).map_err(outside)?;
            if let Some(number) = checked_outside.rescued.first() {
                return Err(outside(ApplyError::Stale { path: outer.steps[*number].path.clone() }));
            }
            checked_outside.without_bits(outer, &not_taken_outside);
        }
        checked.without_bits(applier, &not_taken);
        checked.bits_not_taken.extend(applier.close_folders(true)?);
        applier.sync_swapped()?;
        outer.map_or(Ok(()), |outer| outer.sync_swapped().map_err(outside))?;
        Ok(CheckedAll { inside: checked, outside: checked_outside })
    }

    /// Puts the old tree back. Returns what was staged and could not be removed again.
    fn put_back(
        &self,
        applier: &Applier<'_>,
        swapped: &Swapped,
        before: &Checkpoint,
    ) -> Result<Vec<Left>, ApplyError<StoreError>> {
        // The refusal may have come when some of them were closed already.
        applier.reopen_folders();
        applier.swap_all_back(swapped)?;
        applier.check_settled()?;
        // A power cut that took a swap and kept the removal that followed it would leave neither.
        applier.sync_swapped()?;
        let cleared = self.clear_all(applier, before)?;
        applier.close_folders(false)?;
        // Once the end is noted nobody looks again.
        applier.sync_swapped()?;
        let staged = cleared.lost.into_iter().filter(|number| applier.steps[*number].after.is_some());
        Ok(cleared.left.into_iter().chain(staged.map(|number| Left::lost(applier, number))).collect())
    }

    /// Swaps files elsewhere back and removes what was staged for them. Returns what could not be removed.
    fn put_back_outside(&self, outer: &Applier<'_>, swapped: &Swapped) -> Result<Vec<Left>, ApplyError<StoreError>> {
        outer.swap_all_back(swapped)?;
        outer.check_settled()?;
        outer.sync_swapped()?;
        let left = self.clear_outside(outer)?;
        outer.sync_cleared()?;
        Ok(left)
    }

    /// Removes what came out and records the result. All is in place and stored by now: what cannot be removed does not keep
    /// the operation from ending.
    fn end(
        &self,
        root: &Root,
        begun: &Begun,
        progress: &ProgressNote,
        checked: CheckedAll,
    ) -> Result<Cleared, OperationError> {
        let applier = begun.applier(root);
        let CheckedAll { inside, outside: elsewhere } = checked;
        let recorded = || -> Result<Cleared, StoreError> {
            // Everything is synced by now. From here on a crash must not lead back: what would be put back goes.
            progress.write(&begun.operation.id, Progress::Clearing)?;
            point("operate:clearing").map_err(random_error)?;
            let cleared = || {
                let is_opened = applier.open_closed()?;
                let rescue = (inside.rescued, Extent::Whole);
                let cleared = self.clear_read(&applier, &begun.before, inside.came_out, rescue)?;
                if is_opened {
                    applier.close_folders(true)?;
                    applier.sync_swapped()?;
                }
                applier.sync_cleared()?;
                Ok(cleared)
            };
            let mut cleared = cleared().map_err(|error| match error {
                ApplyError::Content(error) => error,
                error => {
                    let source = io::Error::other(describe(error));
                    StoreError::Io { what: "cannot clear up after", path: self.path.clone(), source }
                }
            })?;
            let mut left_outside = Vec::new();
            if let Some(outer) = Outer::of(&begun.operation).map_err(random_error)? {
                let outer = outer.applier();
                let clear = || {
                    let left = clear_read_outside(&outer, &elsewhere.came_out)?;
                    outer.sync_cleared()?;
                    Ok(left)
                };
                left_outside = clear().map_err(|e| random_error(io::Error::other(describe(outside(e)))))?;
            }
            point("operate:cleared").map_err(random_error)?;
            self.keep_leftovers(&begun.operation.id, &cleared.left, &left_outside)?;
            let before = cleared.checkpoint.as_ref().map(|checkpoint| checkpoint.id.clone());
            let result = result_with_bits(&self.store, root, &begun.operation, &inside.bits_not_taken)?;
            self.note_done(begun, (result.0, &result.1), before)?;
            let lost: Vec<usize> = std::mem::take(&mut cleared.lost);
            cleared.left.extend(lost.into_iter().map(|number| Left::lost(&applier, number)));
            cleared.left.append(&mut left_outside);
            Ok(cleared)
        };
        recorded().map_err(OperationError::Unrecorded)
    }

    /// Records the end, with `result` for what is there now; `new` has the trees of it that are not stored.
    fn note_done(
        &self,
        begun: &Begun,
        (result, new): (RootState, &NewTrees),
        before: Option<CheckpointId>,
    ) -> Result<(), StoreError> {
        let after = CheckpointId::from_random(clock::random().map_err(random_error)?);
        let changes = if result == begun.operation.result {
            begun.since
        } else {
            let layered = Layered { over: new, under: &self.store };
            self.counts_since(&layered, &begun.operation.follows, &result)?
        };
        let layered = Layered { over: new, under: &self.store };
        let (held, settings) = self.rules_after(begun, &layered, &result.tree)?;
        let mut writer = self.writer()?.allowing(Purpose::End);
        for tree in new.values() {
            writer.tree(tree)?;
        }
        if let Some(branch) = begun.operation.conversation.as_ref().and_then(|change| change.branch.clone()) {
            writer.record(Record::Session(branch))?;
        }
        writer.record(Record::Checkpoint(Checkpoint {
            id: after.clone(),
            parent: Some(begun.operation.follows.clone()),
            line: self.record.line,
            created_at: self.environment.clock.now(),
            cause: Cause::Operation,
            root: result,
            changes,
            skipped: begun.skipped,
            unsettled: Vec::new(),
            operation: Some(begun.operation.id.clone()),
            place: self.place_after(begun)?,
            description: None,
            owned: Vec::new(),
            git: begun.before.git,
            held: held.paths,
            unagreed: held.unagreed,
            settings,
        }))?;
        writer.record(Record::Ended {
            operation: begun.operation.id.clone(),
            outcome: Outcome::Done { after, before },
            ended_at: self.environment.clock.now(),
        })?;
        writer.commit(true, false)
    }

    pub(crate) fn note_end(&self, id: &OperationId, outcome: Outcome) -> Result<(), StoreError> {
        let mut writer = self.writer()?.allowing(Purpose::End);
        writer.record(Record::Ended { operation: id.clone(), outcome, ended_at: self.environment.clock.now() })?;
        writer.commit(true, false)
    }

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

    /// Ends a recovered operation whose result stands.
    pub(crate) fn finish_recovered(
        &self,
        operation: Operation,
        before: Checkpoint,
        result: (RootState, &NewTrees),
        rescued: Option<CheckpointId>,
    ) -> Result<(), StoreError> {
        let since = self.counts_since(&self.store, &operation.follows, &operation.result)?;
        let skipped =
            diff::skipped(&self.store, &operation.result.tree).map(|s| s.len() as u64).or_else(unless_damaged)?;
        let begun = Begun { operation, before, changes: Vec::new(), since, skipped, unplanned: Vec::new() };
        self.note_done(&begun, result, rescued)
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

    /// Makes readable what a plan must leave for being unreadable, by the bits that it had; whether there was anything to
    /// do. Noted before it is done: no operation is recorded yet that knows of it.
    fn reopen(
        &self,
        note: &mut ReopenedNote,
        reopened: &mut Reopened<'_>,
        root: &Root,
        plan: &plan::Plan,
    ) -> Result<bool, OperationError> {
        let ways = ways_to_readable(root, plan);
        let ways: Vec<FolderMode> = ways.into_iter().filter(|way| !reopened.has(way)).collect();
        if ways.is_empty() {
            return Ok(false);
        }
        let last = self.store.operations()?.first().map(|row| row.id.clone());
        let all = reopened.ways().iter().chain(&ways).cloned().collect();
        note.write(&piton_store::Reopened { root: root.identity(), last, ways: all })?;
        let any = ways.into_iter().map(|way| reopened.go(way)).fold(false, |any, one| any | one);
        point("operate:reopened").map_err(|e| self.folder_error(e))?;
        Ok(any)
    }

    /// What is asked for and the plan of it, given what is there: the one that was shown, as long as it holds.
    fn planned(
        &self,
        ask: &Asked,
        shown: Option<&(Request, Draft, Vec<WorkspacePath>)>,
        seen: &FolderNow<'_>,
        reopened: &Reopened<'_>,
    ) -> Result<(Request, Draft), OperationError> {
        let Some((request, draft, _)) = shown else {
            let request = self.request(ask, seen)?;
            let draft = self.draft(&request, seen)?;
            return Ok((request, draft));
        };
        let is_reopened = |folder: &FolderMode| reopened.ways().iter().any(|way| way.path == folder.path);
        let mut held = draft.plan.clone();
        held.folders.retain(|folder| !is_reopened(folder));
        still_holds(&seen.trees, seen.now, &held)?;
        self.outside_still_holds(&draft.outside)?;
        self.git_still_holds(ask, request)?;
        if reopened.is_empty() {
            return Ok((request.clone(), draft.clone()));
        }
        // What can be read by now may have to be put back as a whole, not only its bits.
        let again = Draft { known: draft.known.clone(), ..self.draft(request, seen)? };
        let shown = step_paths(&draft.plan);
        let is_made_readable = |path: &WorkspacePath| {
            reopened.ways().iter().any(|way| path.is_within(&way.path) || way.path.is_within(path))
        };
        // What came elsewhere since was not shown, and must not go with it.
        let is_new = |path: &&WorkspacePath| !shown.contains(path) && !is_made_readable(path);
        match again.plan.steps.iter().map(|step| &step.path).find(is_new) {
            Some(path) => Err(OperationError::Stale { path: path.clone() }),
            None => Ok((request.clone(), again)),
        }
    }

    /// Refuses to go on where something else stands in the place of the workspace's folder: it is never written.
    pub(crate) fn refuse_displaced(&self) -> Result<(), OperationError> {
        match self.in_its_place() {
            Some(by) => Err(OperationError::Displaced { path: self.path.clone(), by }),
            None => Ok(()),
        }
    }

    /// Drives the repository to one end of a move, and reads back that it is there.
    fn move_git(&self, change: &GitMove, end: GitEnd) -> Result<(), ApplyError<StoreError>> {
        let refused = |why: String| ApplyError::Path { path: WorkspacePath::root(), source: io::Error::other(why) };
        match self.finish_git(change, end) {
            Ok(true) => Ok(()),
            Ok(false) => Err(refused("the repository does not read back as it was put".to_owned())),
            Err(refusal) => Err(refused(refusal.to_string())),
        }
    }

    /// Whether the repository is still where it was when a plan was made.
    fn git_still_holds(&self, ask: &Asked, request: &Request) -> Result<(), OperationError> {
        let Some(plan) = &request.git else { return Ok(()) };
        let again = match ask {
            Asked::Rewind(asked) => self.plan_git(&asked.target)?,
            Asked::Redo(asked) => match &asked.operation.git {
                Some(done) => self.plan_git_back(done)?,
                None => return Ok(()),
            },
            Asked::Undo(_) | Asked::Branch(_) => return Ok(()),
        };
        if again.change() == plan.change() { Ok(()) } else { Err(OperationError::StaleGit) }
    }

    /// What is held and which settings hold after an operation: where everything is as at another checkpoint, as there.
    fn rules_after<S: TreeSource<Error = StoreError>>(
        &self,
        begun: &Begun,
        trees: &S,
        result: &ObjectId,
    ) -> Result<(HeldNow, Box<SettingsAt>), StoreError> {
        let (before, follows) = (&begun.before, &begun.operation.follows);
        let followed = if *follows == before.id { None } else { self.store.checkpoint(follows)? };
        let mut paths = before.held.clone();
        for one in followed.iter().flat_map(|row| &row.checkpoint.held) {
            if !paths.iter().any(|known| known.path == one.path) {
                paths.push(one.clone());
            }
        }
        let from = followed.as_ref().map(|row| &row.checkpoint);
        let unagreed = self.unagreed_after(trees, &begun.operation, before, from, result);
        let held = HeldNow { paths, unagreed, ..HeldNow::default() };
        Ok((held, followed.map_or_else(|| before.settings.clone(), |row| row.checkpoint.settings)))
    }

    /// Where in which session the result is: where the conversation went with it.
    fn place_after(&self, begun: &Begun) -> Result<Option<TurnContext>, StoreError> {
        let Some(change) = begun.operation.conversation.as_ref().filter(|change| change.went.goes) else {
            return Ok(begun.before.place.clone());
        };
        let Some(to) = &change.went.to else { return Ok(None) };
        let turn = match change.branch.as_ref().and_then(|branch| branch.origin.as_ref()) {
            Some(origin) => origin.turn.saturating_sub(1),
            None => self.last_turn_in(&self.lineage(to)?)?,
        };
        Ok(Some(TurnContext { session: to.clone(), turn, step: None }))
    }

    /// What the capture at the beginning found and the plan, which was shown before that, does not know of: it stays.
    fn unplanned(
        &self,
        trees: &Trees<'_>,
        request: &Request,
        plan: &plan::Plan,
        before: &Checkpoint,
    ) -> Result<Vec<WorkspacePath>, StoreError> {
        let (Aim::State(target) | Aim::StateWith { target, .. }) = &request.aim else { return Ok(Vec::new()) };
        let mut unplanned = Vec::new();
        let steps = step_paths(plan);
        for ChangedPath { path, .. } in before.owned.iter().flat_map(|owned| &owned.paths) {
            if !is_within_any(path, &steps)
                && !request.fresh.contains(path)
                && path.is_in_scope(&request.paths)
                && folder_at(trees, before.root, path)? != folder_at(trees, target.checkpoint.root, path)?
            {
                unplanned.push(path.clone());
            }
        }
        Ok(unplanned)
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
    /// What came after the plan was shown, and stays.
    unplanned: Vec<WorkspacePath>,
}

impl Begun {
    fn applier<'a>(&'a self, root: &'a Root) -> Applier<'a> {
        Applier { root, operation: &self.operation.id, steps: &self.operation.steps, folders: &self.operation.folders }
    }
}

fn step_paths(plan: &plan::Plan) -> HashSet<&WorkspacePath> {
    plan.steps.iter().map(|step| &step.path).collect()
}

/// Whether a path or a folder above it is one of some paths.
fn is_within_any(path: &WorkspacePath, paths: &HashSet<&WorkspacePath>) -> bool {
    let above = std::iter::successors(Some(path.clone()), |path| path.split().map(|(above, _)| above));
    above.into_iter().any(|path| paths.contains(&path))
}

/// What came after a plan was shown, without what the plan left alone and says so.
fn came_since(unplanned: &[WorkspacePath], draft: &Draft) -> Vec<PathView> {
    let conflicts = draft.conflicts.iter().map(|conflict| &conflict.path);
    let told: HashSet<_> = draft.plan.kept.iter().map(|(path, _)| path).chain(conflicts).collect();
    unplanned.iter().filter(|path| !is_within_any(path, &told)).map(Into::into).collect()
}

/// Of what an operation deletes, what nobody was shown: neither an earlier checkpoint nor a plan has it.
fn deleted_new(begun: &Begun, shown: Option<&plan::Plan>) -> Vec<PathView> {
    let planned = shown.map(step_paths).unwrap_or_default();
    let found: HashSet<_> = begun.before.owned.iter().flat_map(|owned| &owned.paths).map(|one| &one.path).collect();
    let is_deleted = |change: &&Change| !change.implied && change.kind() == ChangeKind::Deleted;
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

/// An error of a file elsewhere, with its whole path.
pub(crate) fn outside(error: ApplyError<StoreError>) -> ApplyError<StoreError> {
    let source = match error {
        ApplyError::Path { path, source } => io::Error::new(source.kind(), format!("{}: {source}", shown(&path))),
        ApplyError::Stale { path } => io::Error::other(format!("{} changed in the meantime", shown(&path))),
        ApplyError::ReadBack { path } => {
            io::Error::other(format!("{} does not read back as it was written", shown(&path)))
        }
        content @ ApplyError::Content(_) => return content,
    };
    ApplyError::Path { path: WorkspacePath::root(), source }
}

/// Whether an operation is to be taken back that somebody took back by hand. That is recorded with nothing to change:
/// otherwise the next redo would find the same one again, and never reach those before it.
fn is_taken_back_already(ask: &Asked, draft: &Draft, outcome: &OperationOutcome) -> bool {
    let stays_elsewhere = !outcome.outside.is_empty() && !outcome.touched_outside;
    matches!(ask, Asked::Redo(_))
        && draft.open_conflicts().next().is_none()
        && draft.open_outside().next().is_none()
        && draft.plan.kept.is_empty()
        && !stays_elsewhere
        && outcome.git_stays.is_none()
}

/// Compares what came out with what was captured and with what the store has of it, and what went in with the plan.
fn check(store: &Reader, applier: &Applier<'_>) -> Result<Checked, ApplyError<StoreError>> {
    let mut found = in_parallel(applier.steps.len(), || (), |(), number| check_step(store, applier, number))?;
    let came_out = found.iter_mut().map(|step| step.came_out.take()).collect();
    let numbers = |of: fn(&CheckedStep) -> bool| (0..found.len()).filter(|n| of(&found[*n])).collect::<Vec<_>>();
    let again = numbers(|step| step.changed_again);
    Ok(Checked {
        rescued: numbers(|step| step.rescue),
        unsound: numbers(|step| step.unsound),
        changed_again: again.into_iter().map(|n| applier.steps[n].path.clone()).collect(),
        bits_not_taken: Vec::new(),
        came_out,
    })
}

fn check_step(store: &Reader, applier: &Applier<'_>, number: usize) -> Result<CheckedStep, ApplyError<StoreError>> {
    let step = &applier.steps[number];
    point("operate:check").map_err(|source| ApplyError::Path { path: step.path.clone(), source })?;
    let mut checked = CheckedStep::default();
    if step.before.is_some() {
        let out = read_entry_signed(applier.root, &applier.staged_path(number), &HashingSink::default());
        let (out, signatures) = out
            .unwrap_or_else(|never| match never {})
            .map_err(|source| ApplyError::Path { path: step.path.clone(), source })?;
        checked.came_out = Some(signatures);
        checked.rescue = out.is_some() && out != step.before;
        // It cannot be stored, so it must not go.
        if checked.rescue && out.as_ref().is_some_and(Entry::holds_skipped) {
            return Err(ApplyError::Stale { path: step.path.clone() });
        }
        if out.as_ref().is_some_and(Entry::is_folder) {
            applier.check_removable(number)?;
        }
        if let Some(out) = out.filter(|_| !checked.rescue) {
            checked.unsound = !is_sound(store, &out).map_err(ApplyError::Content)?;
        }
    }
    checked.changed_again = found_at(applier.root, step.path.as_bytes(), &step.path)? != step.after;
    Ok(checked)
}

fn describe(error: ApplyError<StoreError>) -> String {
    match error {
        ApplyError::Path { path, source } if path.is_root() => source.to_string(),
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
pub(crate) struct FromStore<'a>(pub &'a Reader);

impl Content for FromStore<'_> {
    type Error = StoreError;

    fn tree(&self, id: &ObjectId) -> Result<Arc<Tree>, StoreError> {
        self.0.tree(id)
    }

    fn write_blob(&self, id: &ObjectId, to: &mut dyn Write) -> Result<io::Result<()>, StoreError> {
        self.0.write_blob(id, to)
    }
}
