//! What is asked for: by somebody, before anybody has looked at what is there, and then given what is there.

use crate::operation::branch::{BranchAsked, ConversationPlan};
use crate::operation::checkout::CheckoutAsked;
use crate::operation::decided::Decided;
use crate::operation::draft::Draft;
use crate::operation::git_restore::GitPlan;
use crate::operation::left_out::Hidden;
use crate::operation::outside::OutsideChanges;
use crate::operation::redo::RedoAsked;
use crate::operation::rewind::RewindAsked;
use crate::operation::undo::UndoOptions;
use crate::view::{Along, ChangedFile, CommandView, HeadMoved, UnknownTurn};
use piton_model::content::Decision;
use piton_model::git::GitMove;
use piton_model::inverse::{Conflict, Inverse};
use piton_model::plan::{RootState, Undone};
use piton_model::{ChangesAt, CheckpointId, Except, OperationKind, SkipReason, WorkspacePath};
use piton_store::CheckpointRow;
use std::path::PathBuf;

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
    /// What was written out of sight since the moment that is returned to, and stays with what is carried over.
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
    /// What was decided in conflicts since the target, and stays so.
    pub decided: Vec<Decided>,
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
    /// Files of which changes are left because the user accepted them.
    pub accepted: Vec<WorkspacePath>,
    /// Where the repository's HEAD moved during an undo's turns: it stays where it is.
    pub head_moved: Option<HeadMoved>,
}

impl Request {
    /// A request that says nothing but what it is and what should be there in the end.
    pub(crate) fn new(kind: OperationKind, aim: Aim) -> Self {
        Self {
            kind,
            about: None,
            aim,
            paths: Vec::new(),
            conversation: None,
            conversation_stays: None,
            outside: OutsideChanges::default(),
            touches_outside: false,
            git: None,
            git_stays: None,
            fresh: Vec::new(),
            returns: None,
            settle: Settle::default(),
            left_out: Vec::new(),
            hidden: Hidden::default(),
            unseen: Vec::new(),
            remarks: Remarks::default(),
        }
    }

    /// Its paths, without those that only go along.
    pub(super) fn paths_asked(&self) -> Vec<WorkspacePath> {
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
