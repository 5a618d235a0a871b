//! Events: what an agent reports while it works, in piton's words. Adapters make them from an agent's own bytes.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What one report of an agent says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The agent: `claude-code`, or what a generic report calls itself.
    pub agent: String,
    /// The agent's own id of the session; letters, digits and `._-` only, so it can stand in a file's name.
    pub session: String,
    /// Where the agent works; always absolute.
    pub cwd: Option<PathBuf>,
    /// The agent's conversation file, as the agent says: nothing checked that it lies where such files lie.
    pub transcript: Option<PathBuf>,
    /// The id of the prompt that this belongs to: what joins a turn to its line of the transcript.
    pub prompt_id: Option<String>,
    /// The subagent that this happened in.
    pub subagent: Option<Subagent>,
    /// What happened.
    pub event: Event,
}

/// An agent that the session's agent started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subagent {
    /// Its id in the session.
    pub id: String,
    /// What the agent calls its kind: `general-purpose`.
    pub kind: String,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// A session began, or goes on after a pause.
    SessionStarted {
        /// Why: `startup`, `resume`, `clear`, `compact`.
        source: Option<String>,
    },
    /// The user said something: a turn begins, or, where it has the [`Report::prompt_id`] of the turn that runs, goes
    /// on.
    Prompt {
        /// All of it.
        text: String,
    },
    /// A tool is about to run.
    BeforeTool(ToolCall),
    /// A tool ran.
    AfterTool(ToolCall),
    /// A tool failed or was refused; no [`Event::AfterTool`] follows.
    ToolFailed {
        /// Which call.
        call: ToolCall,
        /// What the agent says about it, cut to 2000 characters.
        error: String,
        /// Whether the user stopped it.
        interrupted: bool,
    },
    /// The agent's answer is complete.
    TurnEnded {
        /// Whether it ended in an error.
        failed: bool,
        /// What the agent said last, cut to 2000 characters.
        message: Option<String>,
        /// Whether commands or subagents still run in the background, and may go on changing files.
        background: bool,
    },
    /// The session is over, until somebody resumes it.
    SessionEnded {
        /// Why, in the agent's words.
        reason: Option<String>,
    },
    /// The agent is about to replace its conversation by a summary.
    Compacting {
        /// What started it: `manual`, `auto`.
        trigger: Option<String>,
    },
    /// A subagent began; [`Report::subagent`] says which.
    SubagentStarted,
    /// A subagent came to its end.
    SubagentEnded,
    /// A piece of the conversation, from an agent that has no transcript of its own.
    Message {
        /// Who said it: `user`, `assistant`.
        role: String,
        /// All of it.
        text: String,
    },
    /// Something the agent reports and piton has no use for.
    Other {
        /// What the agent calls it.
        name: String,
    },
}

/// One call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The agent's own id of the call: what joins before and after.
    pub id: Option<String>,
    /// The tool's name.
    pub tool: String,
    /// What it does in a few words: `Edit src/auth.ts`, `Bash npm install`. One line of at most 120 characters, without
    /// control characters; paths beneath the report's cwd are relative to it.
    pub summary: String,
    /// The files that the call names: absolute, joined to the report's cwd where the agent gave them relative, and not
    /// normalised beyond that. They need not exist, and may lie anywhere.
    pub paths: Vec<PathBuf>,
    /// The shell command as it was given, cut to 4000 characters.
    pub command: Option<String>,
    /// Whether it goes on running after it has returned.
    pub background: bool,
}
