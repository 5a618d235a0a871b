//! Sessions, turns and steps: what an agent did, as it reported it.
//!
//! A session's id derives from its agent and the agent's own id for it, so that the same conversation has the same id
//! in the store of every workspace it works in.

use serde::{Deserialize, Serialize};

use crate::conversation::{Origin, Rank};
use crate::id::{ObjectId, SessionId};
use crate::path::WorkspacePath;
use crate::record::Cause;
use crate::time::Timestamp;

/// One conversation of one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The same in every store.
    pub id: SessionId,
    pub agent: String,
    /// The agent's own id for it.
    pub agent_id: String,
    /// The name that a person gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
    /// When piton first heard of it.
    pub started_at: Timestamp,
    /// How it began, if it is a branch of another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    #[serde(default, skip_serializing_if = "Rank::is_plain")]
    pub rank: Rank,
    /// Its transcript in the store, if it came from another machine or its file is in the trash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptTranscript>,
    /// The session works elsewhere, and this workspace is only captured along: it reported from no folder in here, none
    /// of its tools named a file in here, and no change in here is known to be its own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub along: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// A transcript in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptTranscript {
    pub blob: ObjectId,
    /// In bytes.
    pub size: u64,
}

/// A user's prompt, and everything that followed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    pub session: SessionId,
    /// From 1.
    pub number: u32,
    /// `None` where piton started in the middle of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The agent's own id for the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<String>,
    pub at: Timestamp,
    /// How far the transcript had been read, so that the next prompt need not read all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<TranscriptMark>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranscriptMark {
    /// In bytes.
    pub length: u64,
    /// Number of user turns in them.
    pub turns: u32,
}

/// One tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    #[serde(flatten)]
    pub at: StepRef,
    /// The agent's own id for the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    pub tool: String,
    /// A short description.
    pub summary: String,
    /// The shell command, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Files of the workspace that it names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<WorkspacePath>,
    /// Whether it names any files, here or elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub says: bool,
    /// Files outside the workspace that it names, as they were before the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<Outside>,
    /// It keeps running in the background after it has returned.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
    /// The subagent that makes the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
    /// The agent's process, to see whether it still runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// When its window opened, in nanoseconds since 1970.
    pub opened: i64,
    /// The folder that a shell command began in, absolute; older records do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Other hooks of the agent may change files after it, and the agent reports when they have ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hooked: bool,
    #[serde(default, skip_serializing_if = "Attended::is_no")]
    pub attended: Attended,
}

/// Whether the user could work beside a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attended {
    /// An agent runs it.
    #[default]
    No,
    /// The user started it: beside one that takes long they do something else.
    Started,
    /// It talked with the user.
    Interactive,
}

impl Attended {
    fn is_no(&self) -> bool {
        *self == Self::No
    }

    /// The word that it is recorded by.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Started => "started",
            Self::Interactive => "interactive",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        [Self::No, Self::Started, Self::Interactive].into_iter().find(|one| one.as_str() == word)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StepRef {
    pub session: SessionId,
    /// From 1; 0 before the first turn.
    pub turn: u32,
    /// From 1.
    pub step: u32,
}

/// A process, distinguished from a later one with the same pid by its start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    /// Start time in the system's own unit.
    pub started: u64,
    /// Whether it is certainly the agent itself, and not a helper that it reports through.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
}

/// A file outside every workspace that a tool named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outside {
    /// Absolute.
    pub path: String,
    /// `None` where there was no file.
    pub file: Option<OutsideFile>,
    /// Why its content is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<crate::SkipReason>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideFile {
    pub blob: ObjectId,
    /// In bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepEnd {
    #[serde(flatten)]
    pub at: StepRef,
    pub how: Ending,
    /// In nanoseconds since 1970; where the tool did not report it, when somebody noticed.
    pub closed: i64,
    /// When the tool was cut off, in nanoseconds since 1970, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<i64>,
    /// The files outside the workspace that it names, as it left them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<Outside>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    Done,
    Failed,
    /// By the user.
    Interrupted,
    /// No end was reported, but something later shows that it must have ended.
    Lost,
}

impl Ending {
    /// The name used in every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Lost => "lost",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Done, Self::Failed, Self::Interrupted, Self::Lost].into_iter().find(|e| e.as_str() == word)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnEnd {
    pub session: SessionId,
    pub number: u32,
    pub how: Ending,
    /// The agent's last message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    pub at: Timestamp,
}

/// A capture that should have been made and was not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    #[serde(flatten)]
    pub place: TurnContext,
    /// The cause that the checkpoint would have had.
    pub cause: Cause,
    /// Why it was not made.
    pub reason: String,
    pub at: Timestamp,
    /// Nothing else is recorded of this event, and perhaps of others that came with it: a tool may have run without a
    /// recorded step.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// The workspace's folder did not exist: by then all its contents were gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

/// Where in a session a checkpoint or a gap is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TurnContext {
    pub session: SessionId,
    /// 0 before the first turn.
    pub turn: u32,
    /// If it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
}

/// Something that was said, for agents that keep no transcript of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub session: SessionId,
    pub turn: u32,
    /// `user`, `assistant` or `tool`.
    pub role: String,
    pub text: String,
    pub at: Timestamp,
}
