//! Failures of conversations, branches and summaries.

use piton_engine::{
    BranchError, CheckoutError, ConversationError, ForkError, LayoutError, OperationError, SummarizeError,
    WorktreeError,
};

use super::Failure;
use crate::call::{call, flag, without};
use crate::code::Code;
use crate::text;

impl Failure {
    pub(super) fn too_many_branches(message: String) -> Self {
        let delete = call("branch").arg("delete").with("--older-than", "30d");
        Self::user(Code::TooManyBranches, message)
            .hint(text![delete, " clears up; what it deletes can be brought back"])
            .hint("`conversation.most-branches` in the settings allows more")
    }
}

impl From<BranchError> for Failure {
    fn from(error: BranchError) -> Self {
        let text = error.to_string();
        let branch = || call("branch");
        match error {
            BranchError::Target(error) => error.into(),
            BranchError::Diff(error) => error.into(),
            BranchError::Store(error) => error.into(),
            BranchError::Name { .. } => Self::user(Code::BadName, text).hint("a name such as `try two` works"),
            BranchError::NameTaken { .. } => {
                Self::user(Code::NameTaken, text).hint("choose another name; nothing was changed")
            }
            BranchError::NotABranch(_) => Self::user(Code::NotABranch, text)
                .hint(text![branch(), " lists the branches; your agent deletes its own sessions"]),
            BranchError::Current(_) => Self::user(Code::BranchInUse, text)
                .hint(text![call("redo"), " goes back to where it left; then it can be deleted"]),
            BranchError::Live(_) => {
                Self::user(Code::Running, text).hint("end the agent's session first; nothing was deleted")
            }
            BranchError::HasBranches { session, branches } => {
                let all = [&session].into_iter().chain(&branches);
                let delete = all.fold(branch().arg("delete"), |call, id| call.arg(id.short()));
                Self::user(Code::HasBranches, text).hint(text![delete, " deletes them together"])
            }
            BranchError::Deleted(id) => Self::user(Code::BranchDeleted, text)
                .hint(text![branch().with("restore", id.short()), " brings it back"]),
            BranchError::NotDeleted(_) => Self::user(Code::NotDeleted, text)
                .hint(text![branch().with("list", "--all"), " lists the deleted ones too"]),
            BranchError::Alone(_) => {
                Self::user(Code::NoBranches, text).hint("it is the main line already; nothing was changed")
            }
            BranchError::Gone(_) => Self::user(Code::TranscriptGone, text).hint(text![
                "somebody removed it; its checkpoints stay, and ",
                call("rewind").asking("TARGET"),
                " goes to them"
            ]),
            BranchError::Occupied(_) => Self::user(Code::PathTaken, text)
                .hint("move that file away and run the command again; nothing was overwritten"),
            BranchError::Transcript(_) => Self::user(Code::TranscriptStays, text)
                .hint("piton moves only files that are in the agent's own folder; nothing was changed"),
            BranchError::Io { .. } => Self::user(Code::TranscriptStays, text)
                .hint("nothing was lost; run the command again when the cause is gone"),
            BranchError::SameSession(_) => {
                Self::user(Code::SameSession, text).hint(text![call("sessions").arg("--tree"), " lists all of them"])
            }
        }
    }
}

impl From<ForkError> for Failure {
    fn from(error: ForkError) -> Self {
        let text = error.to_string();
        match error {
            ForkError::Name(error) => error.into(),
            ForkError::NothingSaid(_) => Self::user(Code::NothingSaid, text)
                .hint("start a new session of the agent")
                .hint(text![flag("--worktree").asking("DIR"), " puts the code of that moment into a folder for it"]),
            ForkError::Git(WorktreeError::Git(error)) => error.into(),
            ForkError::Git(_) => Self::user(Code::NoRepository, text).hint(text![
                "without ",
                without("--git"),
                " the folder has the files alone"
            ]),
            ForkError::Layout(LayoutError::Place { .. }) => Self::user(Code::PathTaken, text).hint(text![
                "name a folder that is empty or does not exist yet, such as ",
                flag("--worktree").arg("../two")
            ]),
            ForkError::Layout(error) => error.into(),
            ForkError::Operation(error @ OperationError::Conversation(_)) => Self::user(Code::NoConversation, error)
                .hint(text![call("log"), " lists the turns; a fork begins before one, or at its end: `t5.end`"]),
            ForkError::Operation(error @ OperationError::TooManyBranches(_)) => {
                Self::too_many_branches(error.to_string())
            }
            ForkError::Operation(error) => error.into(),
        }
    }
}

impl From<LayoutError> for Failure {
    fn from(error: LayoutError) -> Self {
        match error {
            LayoutError::Place { .. } => {
                Self::user(Code::PathTaken, error).hint("name a folder that is empty or does not exist yet")
            }
            LayoutError::Open(error) => error.into(),
            LayoutError::Store(error) => error.into(),
        }
    }
}

impl From<CheckoutError> for Failure {
    fn from(error: CheckoutError) -> Self {
        let text = error.to_string();
        match error {
            CheckoutError::Layout(error) => error.into(),
            CheckoutError::InWorkspace { .. } => Self::user(Code::InWorkspace, text)
                .hint("name a folder outside of it")
                .hint(text![flag("--inside"), " lays it out there anyway; the next capture finds its files"]),
            CheckoutError::Target(error) => error.into(),
            CheckoutError::Operation(error) => error.into(),
        }
    }
}

impl From<ConversationError> for Failure {
    fn from(error: ConversationError) -> Self {
        match error {
            ConversationError::Target(error) => error.into(),
            ConversationError::Store(error) => error.into(),
            ConversationError::Transcript(_) => Self::user(Code::NoConversation, error),
        }
    }
}

impl From<SummarizeError> for Failure {
    fn from(error: SummarizeError) -> Self {
        match error {
            SummarizeError::Operation(error) => error.into(),
            SummarizeError::Name(error) => error.into(),
            SummarizeError::Nothing { .. } => Self::user(Code::NothingToSummarize, error).hint(text![
                flag("--from"),
                " means a turn and all later ones, ",
                flag("--up-to"),
                " all before it"
            ]),
            SummarizeError::Conversation(_) => Self::user(Code::NoConversation, error),
            SummarizeError::Bad(_) => Self::user(Code::BadSummary, error),
        }
    }
}
