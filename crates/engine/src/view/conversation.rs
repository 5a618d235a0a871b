//! What surfaces show of conversations: where one goes, and the branch that it becomes.

use piton_model::conversation::Began;
use piton_model::{Origin, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use super::ChangedFile;

/// What an operation would do to a conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConversationPlanView {
    /// The session that it comes from.
    pub from: SessionId,
    /// The session that it goes back to, where that is there already: a redo makes nothing new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<SessionId>,
    /// The first turn that is left behind.
    pub turn: u32,
    /// How many turns are left behind; they stay readable.
    pub leaves: u32,
    /// What the user said in that turn, to be changed and said again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Nothing was said before it: the conversation begins anew, with a new session of the agent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anew: bool,
    /// The transcript ends in the middle of a line, which is left out: the agent is writing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
    /// Files that are newer than the conversation will be: they stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub newer: Vec<ChangedFile>,
}

/// What became of a conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConversationOutcome {
    /// The session that goes on; none where the conversation begins anew.
    pub session: Option<SessionId>,
    /// What the agent calls it.
    pub agent_id: Option<String>,
    /// The session that it came from.
    pub parent: SessionId,
    /// The first turn that was left behind.
    pub turn: u32,
    /// What the user said in that turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// How to go on, word by word; none where the agent has no such command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<Vec<String>>,
    /// The folder to do that in: the agent finds its session only there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The new transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
}

impl From<&Origin> for OriginView {
    fn from(origin: &Origin) -> Self {
        Self { parent: origin.parent.clone(), turn: origin.turn, at: origin.at, how: origin.how }
    }
}

/// How a branch began.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OriginView {
    /// The session that it shares its beginning with.
    pub parent: SessionId,
    /// The first turn that is its own.
    pub turn: u32,
    /// When it was made.
    pub at: Timestamp,
    /// How.
    pub how: Began,
}
