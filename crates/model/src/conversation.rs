//! Conversations: how a session began as a branch of another, and where an operation moves the conversation to.

use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::plan::Step;
use crate::session::Session;
use crate::time::Timestamp;

/// What a rewind restores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    Code,
    Conversation,
    /// Both, as one operation.
    Both,
}

impl Scope {
    pub fn has_conversation(self) -> bool {
        self != Self::Code
    }

    /// The name used in every surface.
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
    pub parent: SessionId,
    /// The first turn of its own; earlier turns belong to the parent.
    pub turn: u32,
    /// How many turns at the beginning are missing from its transcript because a summary stands for them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u32,
    pub at: Timestamp,
    pub how: Began,
    /// The summary that stands for turns, for agents that keep no transcript it could be in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Began {
    Rewind,
    /// Made on purpose, while the parent continues.
    Fork,
    /// A summary replaces a turn and all later ones.
    SummaryFrom,
    /// A summary replaces the turns before one.
    SummaryUpTo,
}

impl Began {
    /// The name used in every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rewind => "rewind",
            Self::Fork => "fork",
            Self::SummaryFrom => "summary-from",
            Self::SummaryUpTo => "summary-up-to",
        }
    }
}

/// The standing that a person gave a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rank {
    #[default]
    Plain,
    /// A branch that became the main line.
    Main,
    /// Set aside because another session is the main line now.
    Archived,
    /// A deleted branch; its transcript is in piton's trash.
    Deleted,
}

impl Rank {
    pub fn is_plain(&self) -> bool {
        *self == Self::Plain
    }

    /// The name used in every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Main => "main",
            Self::Archived => "archived",
            Self::Deleted => "deleted",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Plain, Self::Main, Self::Archived, Self::Deleted].into_iter().find(|rank| rank.as_str() == word)
    }
}

/// Which session the conversation leaves and which one continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationSwitch {
    pub from: SessionId,
    /// `None` where the conversation starts anew.
    pub to: Option<SessionId>,
    /// The first turn of `from` that `to` does not share.
    pub turn: u32,
    /// Whether the user continues there. A fork only makes a branch, and everyone stays where they are.
    pub goes: bool,
}

/// What an operation does to the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationMove {
    #[serde(flatten)]
    pub went: ConversationSwitch,
    /// The branch it makes; recorded permanently once the operation is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<Session>,
    /// The branch's transcript: a new file in the agent's own folder. Its path is relative to the filesystem's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<Step>,
    /// The folder that receives the code of that moment, if requested: a single step, so that it is there whole or not
    /// at all. Its path is relative to the filesystem's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Step>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
