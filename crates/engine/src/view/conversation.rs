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
    /// How.
    pub how: Began,
}

/// What was said in a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Conversation {
    /// Which.
    pub session: SessionId,
    /// Its agent.
    pub agent: String,
    /// What the agent calls it.
    pub agent_id: String,
    /// The number of its last turn.
    pub last: u32,
    /// So many turns at its beginning are not in it: a summary stands for them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u32,
    /// How it began, where it is a branch of another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<OriginView>,
    /// Where it was read.
    pub source: SaidSource,
    /// Why it was not read from the transcript, where the agent keeps one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_transcript: Option<String>,
    /// What was said, in order.
    pub said: Vec<SaidView>,
    /// The turn to go on reading from, where this is not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u32>,
}

/// Where a conversation was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SaidSource {
    /// In the agent's own file.
    Transcript,
    /// In what the agent reported.
    Reports,
}

/// One thing that was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaidView {
    /// The number of its turn; of what comes before the first, the number before that.
    pub turn: u32,
    /// Who: `user`, `assistant`, `tool` (a call, in a few words), `summary` (what stands for earlier turns), or what the
    /// agent that reported it calls them.
    pub speaker: String,
    /// What.
    pub text: String,
    /// The tool's name, of a call.
    pub tool: Option<String>,
    /// When.
    pub at: Option<Timestamp>,
}

/// A summary, and the branch that it is in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summarized {
    /// The summary.
    pub summary: SummaryView,
    /// What was made; nothing where it was only shown.
    #[serde(flatten)]
    pub outcome: Option<OperationOutcome>,
}

/// A summary that stands for turns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SummaryView {
    /// Whose turns.
    pub session: SessionId,
    /// The first of them.
    pub first: u32,
    /// The last of them.
    pub last: u32,
    /// Who made it: `command`, `endpoint` or, without either, `digest`.
    pub by: String,
    /// What it says.
    pub text: String,
    /// So many bytes of the conversation the summarizer was not given.
    pub left_out: u64,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
