//! What surfaces show of operations: the plan, the outcome, the list.

use std::path::PathBuf;

use piton_model::command::SideEffect;
use piton_model::content::Clash;
use piton_model::inverse::{Conflict, Why};
use piton_model::{CheckpointId, OperationId, OperationVerb, StepRef, Timestamp, WorkspacePath};
use piton_store::{OperationRow, OperationState};
use serde::{Deserialize, Serialize};

use super::{
    ChangedFile, CheckpointView, ConversationOutcome, ConversationPlanView, GitPlanView, LeftoverView, PathView,
    RunningView, SkippedView, UnknownTurn, readable,
};

/// What a rewind, an undo or a redo would do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlanView {
    /// `rewind`, `undo` or `redo`.
    pub kind: OperationVerb,
    /// What is taken back, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The operation that a redo takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationId>,
    /// The checkpoint whose state comes back; an undo has none.
    pub target: Option<CheckpointView>,
    /// Only these paths; all when empty.
    pub paths: Vec<PathView>,
    /// Paths that come back.
    pub created: Vec<PathView>,
    /// Paths that become what they were.
    pub restored: Vec<PathView>,
    /// Paths that go.
    pub deleted: Vec<PathView>,
    /// Left alone, because what is or was there is not captured.
    pub skipped: Vec<SkippedView>,
    /// Of those, paths that should change and cannot, because what is there now cannot be captured first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_done: Vec<SkippedView>,
    /// Turns that are taken back as far as is known what they changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<UnknownTurn>,
    /// Of the restored and created paths, those whose content is put together from what is there now and what was.
    pub merged: Vec<PathView>,
    /// Paths where taking back does not go together with what is there now: nothing is done while any is undecided.
    pub conflicts: Vec<ConflictView>,
    /// Paths that nobody named and that go along: the other half of a move.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub along: Vec<AlongView>,
    /// Changes that may be meant and may be somebody else's: they are left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsure: Vec<ChangedFile>,
    /// Deletions that may be somebody else's and are taken back all the same, since nothing is lost by that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsure_back: Vec<ChangedFile>,
    /// Changes of others that would be overwritten: the user's own, another session's, or nobody knows whose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<ChangedFile>,
    /// Changes of others that are carried over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<ChangedFile>,
    /// Commands that ran in what is taken back: what they did beside files stays done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandView>,
    /// Where the repository goes, where that is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitPlanView>,
    /// Why the repository stays where it is, where it should go back with the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_stays: Option<String>,
    /// Where the conversation goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationPlanView>,
    /// Why the conversation stays where it is, where nobody said what to do with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_stays: Option<String>,
    /// Files outside the workspace that tools named and changed. They are touched only on request.
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
    /// Set where the repository is at another commit than it was at the target; it stays where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_moved: Option<HeadMoved>,
    /// What agents are at in this workspace right now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<RunningView>,
}

/// A repository that is at another commit now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadMoved {
    /// Where it was: a branch and a commit.
    pub was: String,
    /// Where it is.
    pub is: String,
}

/// What came of the same rewind in another workspace of the session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Also {
    /// Where.
    #[serde(serialize_with = "readable")]
    pub workspace: PathBuf,
    /// What it did there.
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

/// A path where taking back does not go together with what is there now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictView {
    /// Where.
    #[serde(flatten)]
    pub path: PathView,
    /// The other paths of a file that was moved: they are left alone with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<PathView>,
    /// Why.
    pub why: Why,
    /// The places of the content that clash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clashes: Vec<Clash>,
    /// Whether it was decided; where not, the path stays as it is.
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
    /// Which.
    #[serde(flatten)]
    pub path: PathView,
    /// The one that was asked for, and is the same file.
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
    /// It becomes what it was.
    Restore,
    /// It goes: it was not there.
    Delete,
    /// It comes back.
    Recreate,
    /// What it was is merged into what it is.
    Merge,
    /// That does not go together with what it is now.
    Conflict,
    /// What it was, or what it is, is not known: it is left alone.
    Unknown,
}

/// A shell command that an agent ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandView {
    /// By which step of which turn of which session.
    #[serde(flatten)]
    pub step: StepRef,
    /// The command.
    pub command: String,
    /// When.
    pub at: Timestamp,
    /// What it did beside files, as far as its text tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<SideEffect>,
}

/// What an operation did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OperationOutcome {
    /// The operation; none where there was nothing to do.
    pub operation: Option<OperationView>,
    /// Paths that came back.
    pub created: Vec<PathView>,
    /// Paths that became what they were.
    pub restored: Vec<PathView>,
    /// Paths that went.
    pub deleted: Vec<PathView>,
    /// Left alone, because what is or was there is not captured.
    pub skipped: Vec<SkippedView>,
    /// Of those, paths that should have changed and could not, because what is there cannot be captured first. Where
    /// there are any, not all of it is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_done: Vec<SkippedView>,
    /// Turns that were taken back as far as is known what they changed. Where there are any, not all of it is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<UnknownTurn>,
    /// Of those, what was put together from what was there and what had been.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<PathView>,
    /// Left as they were, or decided as asked, because taking back does not go together with what was done since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<ConflictView>,
    /// Where the repository went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitPlanView>,
    /// Why the repository stayed where it is, where it should have gone back with the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_stays: Option<String>,
    /// Where the conversation went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationOutcome>,
    /// Why the conversation stayed where it is, where nobody said what to do with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_stays: Option<String>,
    /// Files outside the workspace that tools named and changed; what was done, or would have been on request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<OutsideView>,
    /// Whether that was asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub touches_outside: bool,
    /// Whether any of that was done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub touched_outside: bool,
    /// Set where a redo found everything taken back already, by hand, and only noted that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub already: bool,
    /// Paths that nobody named and that went along: the other half of a move.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub along: Vec<AlongView>,
    /// Changes of others that were overwritten: the user's own, another session's, or nobody knows whose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<ChangedFile>,
    /// Changes that may be meant and may be somebody else's: they were left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsure: Vec<ChangedFile>,
    /// Deletions that may be somebody else's and were taken back all the same, since nothing is lost by that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsure_back: Vec<ChangedFile>,
    /// Changes of others that were carried over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<ChangedFile>,
    /// Commands that ran in what was taken back: what they did beside files is still done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandView>,
    /// Changed by another program after they were put in place.
    pub changed_again: Vec<PathView>,
    /// Written by another program between the capture and the swap: kept in the checkpoint `operation.before`.
    pub rescued: Vec<PathView>,
    /// Came, or changed, after the plan of this rewind was shown: they stay, and are not as at the target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub came_since: Vec<PathView>,
    /// Of the deleted paths, those that no plan showed and no earlier checkpoint has: kept in `operation.before`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deleted_new: Vec<PathView>,
    /// What the operation put beside files and could not remove at its end. The next operation or capture tries again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<LeftoverView>,
    /// Everything was read back and is what was asked for.
    pub verified: bool,
    /// Other workspaces that the target's session worked in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(serialize_with = "super::all_readable")]
    pub other_workspaces: Vec<PathBuf>,
    /// What was done in those, where that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Also>,
    /// Set where the repository is at another commit than it was at the target; it stays where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_moved: Option<HeadMoved>,
    /// What agents were at that counts as interrupted since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupted: Vec<RunningView>,
}

/// An operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OperationView {
    /// Its id.
    pub id: OperationId,
    /// What it does.
    pub kind: OperationVerb,
    /// The checkpoint or operation it is about.
    pub target: Option<String>,
    /// What it took back, in a few words.
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

/// Where an operation is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperationStatus {
    /// It began and did not end.
    Pending,
    /// Its result stands.
    Done,
    /// The state before it stands.
    RolledBack,
    /// Nobody knows how it ended, or could end it: its files may be half changed.
    GivenUp,
}

impl From<&OperationRow> for OperationView {
    fn from(row: &OperationRow) -> Self {
        Self {
            id: row.id.clone(),
            kind: row.verb,
            target: row.target.as_ref().map(|target| target.as_str().to_owned()),
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
