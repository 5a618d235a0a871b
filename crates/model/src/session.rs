//! Sessions, turns and steps: what an agent did, as it reported it.
//!
//! A session is named by its agent and the agent's own id for it, so that the same conversation has the same id in the
//! store of every workspace that it works in.

use serde::{Deserialize, Serialize};

use crate::conversation::{Origin, Rank};
use crate::id::{ObjectId, SessionId};
use crate::path::WorkspacePath;
use crate::record::Cause;
use crate::time::Timestamp;

/// One conversation of one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its id, the same in every store.
    pub id: SessionId,
    /// Which agent.
    pub agent: String,
    /// What the agent calls it.
    pub agent_id: String,
    /// What a person calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The agent's own conversation file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
    /// When piton first heard of it.
    pub started_at: Timestamp,
    /// How it began, where it is a branch of another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// What a person made of it.
    #[serde(default, skip_serializing_if = "Rank::is_plain")]
    pub rank: Rank,
    /// Its transcript as the store keeps it, where it came from another machine or its file was put in the trash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptTranscript>,
    /// It works elsewhere, and this workspace is only captured along with those: no folder that it reported from, no file
    /// that a tool of it named and no change that is known to be its own is in here.
    #[serde(default, skip_serializing_if = "is_false")]
    pub along: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// A transcript in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptTranscript {
    /// Its bytes.
    pub blob: ObjectId,
    /// How many.
    pub size: u64,
}

/// A user's prompt, and all that followed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Whose.
    pub session: SessionId,
    /// From 1.
    pub number: u32,
    /// What the user said; unknown where piton came in the middle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// What the agent calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<String>,
    /// When.
    pub at: Timestamp,
    /// How far the transcript had been read, so that the next prompt need not read all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<TranscriptMark>,
}

/// How far a transcript was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranscriptMark {
    /// Bytes.
    pub length: u64,
    /// User turns in them.
    pub turns: u32,
}

/// One tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Where in which session.
    #[serde(flatten)]
    pub at: StepRef,
    /// What the agent calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The tool.
    pub tool: String,
    /// What it does, in a few words.
    pub summary: String,
    /// The shell command, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Files of the workspace that it names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<WorkspacePath>,
    /// Whether it names files, here or elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub says: bool,
    /// Files elsewhere that it names, as they were before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<Outside>,
    /// It goes on in the background after it has returned.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
    /// The subagent that calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
    /// The agent's process, to see whether it still runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// When its window opened, in nanoseconds since 1970.
    pub opened: i64,
}

/// Names a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StepRef {
    /// The session.
    pub session: SessionId,
    /// The turn in it, from 1; 0 before the first.
    pub turn: u32,
    /// The step in the turn, from 1.
    pub step: u32,
}

/// A process, told from a later one with the same number by when it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, as the system counts.
    pub started: u64,
    /// It is the agent itself for sure, and not a helper that it reports through.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
}

/// A file outside every workspace that a tool named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outside {
    /// Its absolute path.
    pub path: String,
    /// What was there: none where nothing was.
    pub file: Option<OutsideFile>,
    /// Why it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<crate::SkipReason>,
}

/// What a file outside held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideFile {
    /// Its bytes.
    pub blob: ObjectId,
    /// How many.
    pub size: u64,
    /// Its permission bits.
    pub mode: u16,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepEnd {
    /// Which.
    #[serde(flatten)]
    pub at: StepRef,
    /// How.
    pub how: Ending,
    /// When, in nanoseconds since 1970.
    pub closed: i64,
    /// What became of the files elsewhere that it names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<Outside>,
}

/// How a step or a turn came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// It ended well.
    Done,
    /// It ended with an error.
    Failed,
    /// The user interrupted it.
    Interrupted,
    /// No word of its end: something later shows that it must have come.
    Lost,
}

impl Ending {
    /// The word in every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Lost => "lost",
        }
    }

    /// The ending of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Done, Self::Failed, Self::Interrupted, Self::Lost].into_iter().find(|e| e.as_str() == word)
    }
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnEnd {
    /// Whose.
    pub session: SessionId,
    /// Which.
    pub number: u32,
    /// How.
    pub how: Ending,
    /// The agent's last words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// A capture that should have been and was not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Where in which session.
    #[serde(flatten)]
    pub place: Place,
    /// What it would have been.
    pub cause: Cause,
    /// Why it was not.
    pub reason: String,
    /// When.
    pub at: Timestamp,
    /// Nothing else is recorded of the event, and perhaps of others that came with it: a tool may have run that no step
    /// tells of.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// The workspace's folder was not there: by then all that it held had gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

/// A place in a session: where a checkpoint or a gap is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The session.
    pub session: SessionId,
    /// The turn; 0 before the first.
    pub turn: u32,
    /// The step, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
}

/// Something that was said, for agents that keep no transcript of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Whose conversation.
    pub session: SessionId,
    /// In which turn.
    pub turn: u32,
    /// Who: `user`, `assistant`, `tool`.
    pub role: String,
    /// What.
    pub text: String,
    /// When.
    pub at: Timestamp,
}
