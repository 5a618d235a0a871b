//! What surfaces show of conversations: where one goes, and the branch that it becomes.

use piton_model::conversation::Began;
use piton_model::{Origin, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use super::{ChangedFile, OperationOutcome};

/// What an operation would do to a conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConversationPlanView {
    /// The session that it comes from.
    pub from: SessionId,
    /// The existing session that it returns to; a redo makes no new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<SessionId>,
    /// The first turn that is no longer part of the conversation.
    pub turn: u32,
    /// How many turns are no longer part of it; they stay readable.
    pub leaves: u32,
    /// The prompt of that turn, to be edited and sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// There is nothing before that turn: the agent starts a new session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anew: bool,
    /// The agent is writing: the transcript ends in an incomplete line, which is left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
    /// Files that stay although they are newer than the conversation will be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub newer: Vec<ChangedFile>,
}

/// The result for a conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConversationOutcome {
    /// The session to continue in; `None` if the conversation starts anew.
    pub session: Option<SessionId>,
    /// What the agent calls it.
    pub agent_id: Option<String>,
    /// The session that it came from.
    pub parent: SessionId,
    /// The first turn that is no longer part of the conversation.
    pub turn: u32,
    /// What the user said in that turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The command that continues there, word by word; `None` if the agent has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<Vec<String>>,
    /// What to type to the running agent to go on there; none where it has no such command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_inside: Option<String>,
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
    pub how: Began,
}

/// What was said in a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Conversation {
    pub session: SessionId,
    pub agent: String,
    /// What the agent calls it.
    pub agent_id: String,
    /// The number of its last turn.
    pub last: u32,
    /// How many turns at its beginning are replaced by a summary.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u32,
    /// Set if it is a branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<OriginView>,
    pub source: SaidSource,
    /// Why it was not read from the transcript, if the agent keeps one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_transcript: Option<String>,
    /// What was said, in order.
    pub said: Vec<SaidView>,
    /// The turn to continue reading from, if there is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u32>,
}

/// Where a conversation was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SaidSource {
    /// The agent's own file.
    Transcript,
    /// What the agent reported.
    Reports,
}

/// One thing that was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaidView {
    /// Its turn's number; anything before the first turn has that turn's number minus one.
    pub turn: u32,
    /// Who: `user`, `assistant`, `tool` (a call, in a few words), `summary` (what stands for earlier turns), or what the
    /// agent that reported it calls them.
    pub speaker: String,
    pub text: String,
    /// The tool's name, if this is a call.
    pub tool: Option<String>,
    pub at: Option<Timestamp>,
}

/// A summary and the branch that contains it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summarized {
    pub summary: SummaryView,
    /// The branch; `None` for a preview.
    #[serde(flatten)]
    pub outcome: Option<OperationOutcome>,
}

/// A summary that replaces turns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SummaryView {
    pub session: SessionId,
    /// The first replaced turn.
    pub first: u32,
    /// The last replaced turn.
    pub last: u32,
    /// Who made it: `command`, `endpoint` or, without either, `digest`.
    pub by: String,
    /// What it says.
    pub text: String,
    /// Bytes of the conversation that were not passed to the summarizer.
    pub left_out: u64,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
