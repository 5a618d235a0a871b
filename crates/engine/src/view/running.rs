//! What surfaces show of agents that are at work while an operation would change files under them.

use piton_model::{SessionId, Timestamp};
use serde::{Deserialize, Serialize};

/// Something that an agent is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningView {
    pub session: SessionId,
    /// The turn in it.
    pub turn: u32,
    /// The step, if it is a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    pub what: Activity,
    /// A few words about what the tool does, or from the turn's prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// Since when.
    pub since: Timestamp,
    /// Whether the operation concerns this session.
    pub own: bool,
    /// Whether the operation is refused as long as this lasts.
    pub blocks: bool,
    /// Why it counts as interrupted, so nothing has to wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<Interrupted>,
}

impl RunningView {
    /// In plain words: `the agent runs “Bash make” in turn 3 of session kmzqwxyl`.
    pub fn describe(&self) -> String {
        let (turn, session) = (self.turn, self.session.short());
        let about = self.about.as_deref().unwrap_or("a tool");
        match self.what {
            Activity::Tool => format!("the agent runs “{about}” in turn {turn} of session {session}"),
            Activity::Turn => format!("the agent is in the middle of turn {turn} of session {session}"),
            Activity::Background => {
                format!("“{about}” of turn {turn} of session {session} goes on in the background")
            }
        }
    }
}

/// What an agent can be doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// A tool runs.
    Tool,
    /// A turn is under way, as far as is known between two tools.
    Turn,
    /// A command continues after its tool has returned.
    Background,
}

/// Why a turn without an end counts as interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interrupted {
    /// Its agent's process is gone.
    Gone,
    /// Its transcript says so.
    Transcript,
    /// The user says so.
    Said,
}
