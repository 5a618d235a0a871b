//! Conversations: how a session began as a branch of another, and where an operation moves the conversation.

use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::plan::Step;
use crate::session::Session;
use crate::time::Timestamp;

/// What a rewind puts back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The workspace's files.
    Code,
    /// What was said.
    Conversation,
    /// Both, as one act.
    Both,
}

impl Scope {
    /// Whether the conversation goes back.
    pub fn has_conversation(self) -> bool {
        self != Self::Code
    }

    /// The word in every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Conversation => "conversation",
            Self::Both => "both",
        }
    }
}

/// How a session began as a branch of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The session that it shares its beginning with.
    pub parent: SessionId,
    /// The first turn that is its own: those before are the parent's.
    pub turn: u32,
    /// So many turns at the beginning are not in its transcript: a summary stands for them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u32,
    /// When it was made.
    pub at: Timestamp,
    /// How.
    pub how: Began,
    /// The summary that stands for turns, where the agent keeps no transcript that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// How a branch came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Began {
    /// By a rewind.
    Rewind,
    /// On purpose, beside what goes on.
    Fork,
    /// The turns from one on are replaced by a summary.
    SummaryFrom,
    /// The turns before one are replaced by a summary.
    SummaryUpTo,
}

impl Began {
    /// The word in every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rewind => "rewind",
            Self::Fork => "fork",
            Self::SummaryFrom => "summary-from",
            Self::SummaryUpTo => "summary-up-to",
        }
    }
}

/// What a person made of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rank {
    /// Nothing particular.
    #[default]
    Plain,
    /// A branch that became the main line.
    Main,
    /// Put aside: another line is the main one now.
    Archived,
    /// A branch that was deleted; its transcript is in piton's trash.
    Deleted,
}

impl Rank {
    /// Whether it is nothing particular.
    pub fn is_plain(&self) -> bool {
        *self == Self::Plain
    }

    /// The word in every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Main => "main",
            Self::Archived => "archived",
            Self::Deleted => "deleted",
        }
    }

    /// The rank of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Plain, Self::Main, Self::Archived, Self::Deleted].into_iter().find(|rank| rank.as_str() == word)
    }
}

/// From which conversation to which.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Went {
    /// The session that it comes from.
    pub from: SessionId,
    /// The session that goes on; none where the conversation begins anew.
    pub to: Option<SessionId>,
    /// The first turn that `to` does not have of `from`.
    pub turn: u32,
    /// Whether the user goes there. A fork only makes a branch, and everybody stays where they are.
    pub goes: bool,
}

/// What an operation does to the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationMove {
    /// From where to where.
    #[serde(flatten)]
    pub went: Went,
    /// The branch that it makes; recorded for good when the operation is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<Session>,
    /// The branch's transcript: a new file in the agent's own folder, its path from the file system's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<Step>,
    /// The folder elsewhere that the code of that moment is laid out in, where that was asked for: one step, so that it is
    /// there whole or not at all. Its path is from the file system's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Step>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
