//! Events: what an agent reports while it works, in piton's terms. Adapters make them from an agent's own bytes.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::session::Attended;

/// One report of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// `claude-code`, or the name that a generic report gives.
    pub agent: String,
    /// The agent's own session id: only letters, digits and `._-`, so it can be part of a file name.
    pub session: String,
    /// The agent's working folder; always absolute.
    pub cwd: Option<PathBuf>,
    /// The agent's conversation file, as the agent reports it: nothing has checked that it lies where such files
    /// belong.
    pub transcript: Option<PathBuf>,
    /// The id of the prompt that this belongs to; links a turn to its line in the transcript.
    pub prompt_id: Option<String>,
    /// The subagent that this happened in.
    pub subagent: Option<Subagent>,
    pub event: Event,
}

/// An agent started by the session's agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subagent {
    /// Unique within the session.
    pub id: String,
    /// The agent's name for its kind, such as `general-purpose`.
    pub kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// A session began, or was resumed.
    SessionStarted {
        /// `startup`, `resume`, `clear` or `compact`.
        source: Option<String>,
    },
    /// The user said something: a turn begins. If the report has the [`Report::prompt_id`] of the running turn, that
    /// turn continues.
    Prompt {
        text: String,
    },
    BeforeTool(ToolCall),
    AfterTool(ToolCall),
    /// A tool failed or was refused; no [`Event::AfterTool`] follows.
    ToolFailed {
        call: ToolCall,
        /// The agent's message, cut to 2000 characters.
        error: String,
        /// Whether the user stopped it.
        interrupted: bool,
    },
    /// The tools that were called together have ended, and with them the agent's own hooks after them.
    ToolsEnded,
    /// The agent's answer is complete.
    TurnEnded {
        failed: bool,
        /// The agent's last message, cut to 2000 characters.
        message: Option<String>,
        /// Whether commands or subagents still run in the background and may go on changing files.
        background: bool,
    },
    /// The session is over, unless somebody resumes it.
    SessionEnded {
        /// In the agent's words.
        reason: Option<String>,
    },
    /// The agent is about to replace its conversation with a summary.
    Compacting {
        /// `manual` or `auto`.
        trigger: Option<String>,
    },
    /// [`Report::subagent`] says which.
    SubagentStarted,
    SubagentEnded,
    /// Part of the conversation, from an agent that keeps no transcript.
    Message {
        /// `user` or `assistant`.
        role: String,
        text: String,
    },
    /// An event that piton does not handle.
    Other {
        /// The agent's name for it.
        name: String,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The agent's own id of the call; links the before and after events.
    pub id: Option<String>,
    pub tool: String,
    /// A short description, such as `Edit src/auth.ts` or `Bash npm install`: one line of at most 120 characters,
    /// without control characters. Paths beneath the report's cwd are relative to it.
    pub summary: String,
    /// The files that the call names: absolute, joined to the report's cwd where the agent gave them relative, and not
    /// normalised beyond that. They need not exist and may lie anywhere.
    pub paths: Vec<PathBuf>,
    /// The shell command, cut to 4000 characters.
    pub command: Option<String>,
    /// Whether it keeps running after it has returned.
    pub background: bool,
    /// Whether other hooks of the agent may change files after it: [`Event::ToolsEnded`] says when they have ended.
    #[serde(default)]
    pub hooked: bool,
    #[serde(default)]
    pub attended: Attended,
}
