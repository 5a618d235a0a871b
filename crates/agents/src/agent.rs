//! The agents that piton knows, each with its parts: events, transcripts, setup.
//!
//! One [`Agent`] is one row of a table. Callers that need a part get it from the row and do without if there is none;
//! nobody checks which agent it is. `docs/adapters.md` explains how to add one.

use std::borrow::Cow;
use std::fmt;

use crate::event::Events;
use crate::setup::Setup;
use crate::transcript::Transcripts;
use crate::{claude_code, generic};

#[derive(Clone, Copy)]
pub struct Agent {
    /// As in `piton hook NAME`, and in every record.
    pub name: &'static str,
    /// For display.
    pub title: &'static str,
    /// What it reports and how it is answered.
    pub events: &'static dyn Events,
    /// The files with its conversations; `None` if piton knows only what it reports.
    pub transcripts: Option<&'static dyn Transcripts>,
    /// How it is made to report; `None` if there is no settings file to edit.
    pub setup: Option<&'static dyn Setup>,
    /// Folders beneath the user's home with its own state. They are never captured: a rewind that reverted a transcript
    /// while the agent writes to it would break the conversation that the user is in.
    pub state_folders: &'static [&'static str],
    /// Environment variables that it sets for what it runs.
    pub shell_variables: &'static [&'static str],
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Where agents without an adapter store transcripts and shadow repositories, beneath the user's home.
pub const STATE_FOLDERS_OF_OTHERS: [&str; 7] = [
    ".codex/sessions",
    ".codex/log",
    ".gemini/tmp",
    ".local/share/opencode",
    ".copilot",
    ".cline",
    ".pi/agent/sessions",
];

/// Environment variables that other agents set for what they run; several of them share `AI_AGENT`.
const SHELL_VARIABLES_OF_OTHERS: [&str; 8] = [
    "AI_AGENT",
    "GEMINI_CLI",
    "CURSOR_AGENT",
    "CODEX_SANDBOX",
    "CODEX_THREAD_ID",
    "COPILOT_AGENT",
    "GOOSE_TERMINAL",
    "OPENCODE",
];

/// The agents that piton knows, and those that an embedder adds.
#[derive(Clone, Debug)]
pub struct Agents(Cow<'static, [Agent]>);

impl Default for Agents {
    fn default() -> Self {
        const KNOWN: &[Agent] = &[claude_code::AGENT, generic::AGENT];
        Self(Cow::Borrowed(KNOWN))
    }
}

impl Agents {
    #[must_use]
    pub fn with(mut self, agent: Agent) -> Self {
        self.0.to_mut().push(agent);
        self
    }

    pub fn get(&self, name: &str) -> Option<Agent> {
        self.iter().find(|agent| agent.name == name)
    }

    /// The agent of a session. An unknown agent reports in piton's own format.
    pub fn of_session(&self, name: &str) -> Agent {
        self.get(name).unwrap_or(generic::AGENT)
    }

    /// The transcripts of a session's agent, if piton can read any.
    pub fn transcripts(&self, name: &str) -> Option<&'static dyn Transcripts> {
        self.get(name)?.transcripts
    }

    /// Environment variables that show that this process, or an ancestor, was started by an agent.
    pub fn shell_variables(&self) -> impl Iterator<Item = &'static str> + use<> {
        let known: Vec<_> = self.iter().flat_map(|agent| agent.shell_variables.iter().copied()).collect();
        known.into_iter().chain(SHELL_VARIABLES_OF_OTHERS)
    }

    /// The first is the default of `piton setup`.
    pub fn iter(&self) -> impl Iterator<Item = Agent> + '_ {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::event::Reply;

    const ID: &str = "428214a0-5123-43c6-ae2b-86a56b0968a8";

    #[test]
    fn every_agent_is_found_by_its_name_and_no_other_is() {
        let agents = Agents::default();
        for agent in agents.iter() {
            assert_eq!(agents.get(agent.name).map(|found| found.title), Some(agent.title));
        }
        for name in ["", "claude", "Claude-Code", "codex"] {
            assert!(agents.get(name).is_none(), "{name}");
            assert_eq!(agents.of_session(name).name, generic::NAME);
        }
    }

    #[test]
    fn a_session_is_resumed_by_its_id_and_by_nothing_that_could_be_an_option() {
        let transcripts = claude_code::AGENT.transcripts.unwrap();
        assert_eq!(transcripts.resume_command(ID).unwrap(), ["claude", "--resume", ID]);
        for bad in ["", "--help", "s1", "428214a0-5123-43c6-ae2b-86a56b0968a8 --x"] {
            assert_eq!(transcripts.resume_command(bad), None, "{bad}");
        }
        // Without one a branch would be of no use.
        for transcripts in Agents::default().iter().filter_map(|agent| agent.transcripts) {
            assert!(transcripts.resume_command(&transcripts.new_session([7; 16])).is_some());
        }
    }

    #[test]
    fn only_a_transcript_in_its_place_has_more_than_itself() {
        let check = |agent: Agent, transcript: &str, expected: &[&str]| {
            let all = agent.events.belongings(ID, Path::new(transcript));
            assert_eq!(all[0], Path::new(transcript));
            assert_eq!(all[1..].iter().map(|path| path.to_str().unwrap()).collect::<Vec<_>>(), expected);
        };
        let mine = ["/w/.cc/projects/-w", "/w/.cc/file-history", "/w/.cc/session-env", "/w/.cc/shell-snapshots"];
        check(claude_code::AGENT, &format!("/w/.cc/projects/-w/{ID}.jsonl"), &mine);
        check(claude_code::AGENT, &format!("/w/logs/{ID}.jsonl"), &[&format!("/w/logs/{ID}")]);
        check(claude_code::AGENT, &format!("/w/projects/app/{ID}.jsonl"), &[&format!("/w/projects/app/{ID}")]);
        check(generic::AGENT, &format!("/w/.cc/projects/-w/{ID}.jsonl"), &[]);
    }

    /// Whatever a report says, a file of the user's does not belong to the agent.
    #[test]
    fn a_transcript_is_named_after_a_session() {
        let check = |agent: Agent, session: &str, path: &str, expected: bool| {
            let is_own = !agent.events.belongings(session, Path::new(path)).is_empty();
            assert_eq!(is_own, expected, "{session} {path}");
        };
        check(claude_code::AGENT, ID, &format!("/w/{ID}.jsonl"), true);
        check(claude_code::AGENT, "s1", "/w/s1.jsonl", true);
        // A resumed session may report the file that it was resumed from.
        check(claude_code::AGENT, "s1", &format!("/w/{ID}.jsonl"), true);
        for other in ["/w/src/main.rs", "/w/data.jsonl", "/w/s1.rs", "/w/s1", "/", "/w/projects/-w/src.jsonl"] {
            check(claude_code::AGENT, "s1", other, false);
        }
        check(generic::AGENT, "run-1", "/w/log-run-1.txt", true);
        check(generic::AGENT, "run-1", "/w/src/main.rs", false);
        check(generic::AGENT, "", "/w/src/main.rs", false);
    }

    #[test]
    fn a_reply_is_one_line_of_json_or_nothing() {
        let hard = "a \"line\"\nand \u{1b}[1m more".to_owned();
        for agent in Agents::default().iter() {
            assert_eq!(agent.events.reply(&Reply::Nothing), b"");
            let both = Reply::Both { line: hard.clone(), context: hard.clone() };
            for reply in [Reply::Line(hard.clone()), Reply::Answer(hard.clone()), Reply::Context(hard.clone()), both] {
                let bytes = agent.events.reply(&reply);
                assert_eq!(bytes.iter().filter(|b| **b == b'\n').count(), 1);
                assert!(serde_json::from_slice::<serde_json::Value>(&bytes).unwrap().is_object());
            }
        }
    }
}
