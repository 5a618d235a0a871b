//! What surfaces show of operations: the plan, the outcome, the list.

use std::path::PathBuf;

use piton_model::command::SideEffect;
use piton_model::content::Clash;
use piton_model::inverse::{Conflict, Why};
use piton_model::{CheckpointId, ObjectId, OperationId, OperationVerb, PlanId, StepRef, Timestamp, WorkspacePath};
use piton_store::{OperationRow, OperationState};
use serde::{Deserialize, Serialize};

use super::{
    ChangedFile, CheckpointView, ConversationOutcome, ConversationPlanView, GitPlanView, LeftoverView, PathView,
    RunningView, SkippedView, UnknownTurn, readable,
};

/// A nested repository whose files a plan moves. Piton never writes git's own folder, so that stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TornView {
    /// The folder in which `.git` stays.
    pub from: PathView,
    /// The folder in which the files are then.
    pub to: PathView,
}

/// What a rewind, an undo or a redo would do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlanView {
    /// `rewind`, `undo` or `redo`.
    pub kind: OperationVerb,
    /// A few words about what is taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// Names the plan where it is kept for an answer; no other process knows it, and for ten minutes at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<PlanId>,
    /// The hash of all that it would do: two plans that have the same do the same.
    pub fingerprint: ObjectId,
    /// The operation that a redo takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationId>,
    /// The operations after that one, where it takes all of them back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<OperationId>,
    /// The checkpoint whose state is restored; `None` for an undo.
    pub target: Option<CheckpointView>,
    /// Only these paths; all if empty.
    pub paths: Vec<PathView>,
    /// Paths that are created again.
    pub created: Vec<PathView>,
    /// Paths whose earlier content is restored.
    pub restored: Vec<PathView>,
    /// Paths that are deleted.
    pub deleted: Vec<PathView>,
    /// Left alone, because what is or was there was not captured.
    pub skipped: Vec<SkippedView>,
    /// Paths that should change but cannot, because what is there now cannot be captured first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_done: Vec<SkippedView>,
    /// Nested repositories whose files move while git's own folder stays where it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub torn: Vec<TornView>,
    /// Turns of which not every change is known; only the known ones are taken back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<UnknownTurn>,
    /// Those restored and created paths whose content is merged from the current and the earlier one.
    pub merged: Vec<PathView>,
    /// Paths where taking back conflicts with what is there now. Nothing is done while any is undecided.
    pub conflicts: Vec<ConflictView>,
    /// Paths that were taken out of the plan, and what must stay with them: they stay as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excepted: Vec<PathView>,
    /// Files of which some places were taken out of the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_part: Vec<PathView>,
    /// Paths that were not requested and are the other half of a requested move.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub along: Vec<AlongView>,
    /// Changes that may be somebody else's and are therefore left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsure: Vec<ChangedFile>,
    /// Deletions that may be somebody else's and are taken back anyway, since that loses nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsure_back: Vec<ChangedFile>,
    /// Changes by the user, another session or an unknown author that would be overwritten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<ChangedFile>,
    /// Changes by others that are carried over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<ChangedFile>,
    /// Commands that ran in the work that is taken back; their side effects outside the workspace's files remain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandView>,
    /// The repository's target state, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitPlanView>,
    /// Why the repository's state stays, although it should be restored too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_stays: Option<String>,
    /// The conversation's part of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationPlanView>,
    /// Why the conversation stays, if the request did not say what to do with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_stays: Option<String>,
    /// Files outside the workspace that tools named and changed; touched only on request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<OutsideView>,
    /// Whether that was requested.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub touches_outside: bool,
    /// Whether the target was captured in another folder that stood at the same path.
    pub other_folder: bool,
    /// Whether the workspace's folder is gone and would be made anew.
    pub missing_folder: bool,
    /// Other workspaces that the target's session worked in; they are rewound only on request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(serialize_with = "super::all_readable")]
    pub other_workspaces: Vec<PathBuf>,
    /// Files of which changes are left because the user accepted them; told where everything was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<PathView>,
    /// Set if the repository is at another commit than at the target; it stays there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_moved: Option<HeadMoved>,
    /// What agents are doing in this workspace right now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<RunningView>,
}

/// A repository whose HEAD moved since the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadMoved {
    /// The branch and commit then.
    pub was: String,
    pub is: String,
}

/// The result of the same rewind in another workspace of the session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Also {
    #[serde(serialize_with = "readable")]
    pub workspace: PathBuf,
    pub outcome: Option<OperationOutcome>,
    /// Why nothing was done there.
    pub error: Option<String>,
}

impl PlanView {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        let is_at_home = !self.touches_outside || self.outside.iter().all(|file| file.act == OutsideAct::Unknown);
        is_at_home && self.git.is_none() && self.conversation.is_none() && self.is_empty_inside()
    }

    /// Whether there is nothing to do in the workspace.
    fn is_empty_inside(&self) -> bool {
        self.created.is_empty() && self.restored.is_empty() && self.deleted.is_empty() && self.conflicts.is_empty()
    }

    /// The conflicts that nobody has decided.
    pub fn open_conflicts(&self) -> impl Iterator<Item = &ConflictView> {
        self.conflicts.iter().filter(|conflict| !conflict.decided)
    }
}

/// A path where taking back conflicts with what is there now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictView {
    #[serde(flatten)]
    pub path: PathView,
    /// The other paths of a moved file; they are left alone too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<PathView>,
    pub why: Why,
    /// The conflicting places of the content.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clashes: Vec<Clash>,
    /// Whether it was decided; if not, the path stays as it is.
    pub decided: bool,
}

impl From<&Conflict> for ConflictView {
    fn from(conflict: &Conflict) -> Self {
        Self {
            path: (&conflict.path).into(),
            others: conflict.others.iter().map(Into::into).collect(),
            why: conflict.why,
            clashes: conflict.clashes.clone(),
            decided: conflict.decided,
        }
    }
}

/// A path that goes along with another one: the same file, before or after it was moved.
#[derive(Clone, Debug)]
pub(crate) struct Along {
    pub path: WorkspacePath,
    pub with: WorkspacePath,
}

/// A path that goes along with another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlongView {
    #[serde(flatten)]
    pub path: PathView,
    /// The requested path of the same file.
    pub with: PathView,
}

impl From<&Along> for AlongView {
    fn from(along: &Along) -> Self {
        Self { path: (&along.path).into(), with: (&along.with).into() }
    }
}

/// A file outside the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideView {
    /// Its whole path.
    pub path: String,
    /// What taking back means for it.
    pub act: OutsideAct,
    /// Why it is left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What taking back means for a file outside the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutsideAct {
    /// Restore its earlier content.
    Restore,
    /// Delete: it did not exist.
    Delete,
    /// Create it again.
    Recreate,
    /// Merge: its earlier content is merged into the current one.
    Merge,
    /// Conflict with its current content.
    Conflict,
    /// Left alone, because its earlier or current content is unknown.
    Unknown,
}

/// A shell command that an agent ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandView {
    /// The step that ran it.
    #[serde(flatten)]
    pub step: StepRef,
    pub command: String,
    pub at: Timestamp,
    /// What it did beside files, as far as its text tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<SideEffect>,
}

/// What an operation did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OperationOutcome {
    /// The operation; `None` if there was nothing to do.
    pub operation: Option<OperationView>,
    /// Paths that were created again.
    pub created: Vec<PathView>,
    /// Paths whose earlier content was restored.
    pub restored: Vec<PathView>,
    /// Paths that were deleted.
    pub deleted: Vec<PathView>,
    /// Left alone, because what is or was there was not captured.
    pub skipped: Vec<SkippedView>,
    /// Of those, paths that should have changed and could not, because what is there cannot be captured first. Where
    /// there are any, not all of it is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_done: Vec<SkippedView>,
    /// Nested repositories whose files move while git's own folder stays where it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub torn: Vec<TornView>,
    /// Turns of which not every change is known: only the known ones were taken back, so the operation is incomplete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<UnknownTurn>,
    /// Those whose content was merged from the current and the earlier one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<PathView>,
    /// Conflicts with later changes: left as they were, or decided as requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<ConflictView>,
    /// Paths that were taken out of the plan, and what had to stay with them: they stayed as they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excepted: Vec<PathView>,
    /// Files of which some places were taken out of the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_part: Vec<PathView>,
    /// The repository's new state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitPlanView>,
    /// Why the repository's state stayed, although it should have been restored too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_stays: Option<String>,
    /// The conversation's result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationOutcome>,
    /// Why the conversation stayed, if the request did not say what to do with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_stays: Option<String>,
    /// Files outside the workspace that tools named and changed, with what was done, or would have been on request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<OutsideView>,
    /// Whether that was requested.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub touches_outside: bool,
    /// Whether any of that was done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub touched_outside: bool,
    /// Set if a redo found everything already taken back by hand and only recorded that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub already: bool,
    /// Paths that were not requested and were the other half of a requested move.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub along: Vec<AlongView>,
    /// Changes by the user, another session or an unknown author that were overwritten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<ChangedFile>,
    /// Changes that may be somebody else's and were therefore left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsure: Vec<ChangedFile>,
    /// Deletions that may be somebody else's and were taken back anyway, since that loses nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsure_back: Vec<ChangedFile>,
    /// Changes by others that were carried over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<ChangedFile>,
    /// Commands that ran in the work that was taken back; their side effects outside the workspace's files remain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandView>,
    /// Changed by another program after they were put in place.
    pub changed_again: Vec<PathView>,
    /// Written by another program between the capture and the swap: kept in the checkpoint `operation.before`.
    pub rescued: Vec<PathView>,
    /// Appeared or changed after the plan was shown: they stay, and differ from the target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub came_since: Vec<PathView>,
    /// Deleted paths that no plan showed and no earlier checkpoint has; kept in `operation.before`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deleted_new: Vec<PathView>,
    /// Staged files that the operation could not remove at its end. The next operation or capture tries again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<LeftoverView>,
    /// Whether everything was read back and is as requested.
    pub verified: bool,
    /// Other workspaces that the target's session worked in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(serialize_with = "super::all_readable")]
    pub other_workspaces: Vec<PathBuf>,
    /// What was done in those, if requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Also>,
    /// Files of which changes are left because the user accepted them; told where everything was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<PathView>,
    /// Set if the repository is at another commit than at the target; it stays there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_moved: Option<HeadMoved>,
    /// Agents' turns that have counted as interrupted since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupted: Vec<RunningView>,
    /// What agents go on with beside it: turns that it did not touch, and commands in the background.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<RunningView>,
}

/// An operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OperationView {
    pub id: OperationId,
    /// What it does.
    pub kind: OperationVerb,
    /// The checkpoint or operation it refers to.
    pub target: Option<String>,
    /// The operations after that one, where it took all of them back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<OperationId>,
    /// A few words about what it took back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// Whether it was taken back since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub taken_back: bool,
    /// The state before it.
    pub before: CheckpointId,
    /// Its result.
    pub after: Option<CheckpointId>,
    /// How it stands.
    pub state: OperationStatus,
    /// When it began.
    pub began_at: Timestamp,
    /// Why it was rolled back, or given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The state of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperationStatus {
    /// It began and has not ended.
    Pending,
    /// Its result is in effect.
    Done,
    /// The state before it was restored.
    RolledBack,
    /// It could not be finished, or nobody knows how it ended: its files may be half changed.
    GivenUp,
}

impl From<&OperationRow> for OperationView {
    fn from(row: &OperationRow) -> Self {
        Self {
            id: row.id.clone(),
            kind: row.verb,
            target: row.target.as_ref().map(|target| target.as_str().to_owned()),
            also: row.also.clone(),
            about: row.about.clone(),
            taken_back: false,
            before: row.before.clone(),
            after: row.after.clone(),
            state: match row.state {
                OperationState::Pending => OperationStatus::Pending,
                OperationState::Done => OperationStatus::Done,
                OperationState::RolledBack => OperationStatus::RolledBack,
                OperationState::GivenUp | OperationState::Replaced => OperationStatus::GivenUp,
            },
            began_at: row.began_at,
            why: row.why.clone(),
        }
    }
}

/// The operations of a workspace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Operations {
    /// Newest first.
    pub operations: Vec<OperationView>,
}
