//! Why an operation was not done.

use std::io;
use std::path::PathBuf;

use piton_model::inverse::Conflict;
use piton_model::{CheckpointId, OperationId, SessionId, WorkspacePath};
use piton_store::StoreError;

use crate::capture::CaptureError;
use crate::conversation::said::ConversationError;
use crate::conversation::{NoBranch, NoConversation};
use crate::history::target::TargetError;
use crate::operation::chosen::ChosenError;
use crate::operation::git_restore::GitRefusal;
use crate::operation::recover::RecoverError;
use crate::operation::running::described;
use crate::view::{LeftoverView, RunningView};
use crate::workspace::InItsPlace;

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
    /// A plan that is no longer kept, or is another one than was shown.
    #[error("this plan is no longer kept; nothing was changed")]
    Expired,
    /// What shall stay as it is would have stayed anyway.
    #[error("this would not change `{}`, so there is nothing to leave out; nothing was changed", path.display())]
    NotInPlan {
        /// What was taken out.
        path: WorkspacePath,
    },
    /// A place in a file that comes, goes, or is moved.
    #[error("only the whole of `{}` can be left out; nothing was changed", path.display())]
    OnlyWhole {
        /// The file.
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
    #[error("operation {} was already taken back, or did not finish", .0.short())]
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

pub(crate) fn random_error(source: io::Error) -> StoreError {
    StoreError::Io { what: "cannot write", path: "the store".into(), source }
}
