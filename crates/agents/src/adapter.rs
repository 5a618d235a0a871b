//! The agents that piton knows, behind one door.

use std::path::{Path, PathBuf};

use crate::event::{BadReport, Report};
use crate::{claude_code, generic};

/// An agent whose events and transcripts piton understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Adapter {
    /// Claude Code, through its hooks.
    ClaudeCode,
    /// Anything that writes piton's own event format, `docs/events.md`.
    Generic,
}

/// What piton says to the agent that reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing: the agent goes on as if there were no piton.
    Nothing,
    /// One line that the user sees.
    Line(String),
    /// The answer to a prompt that was for piton: the user sees it and no model is asked.
    Answer(String),
    /// Something that the model is told together with the prompt.
    Context(String),
    /// A line for the user, and something for the model.
    Both {
        /// What the user sees.
        line: String,
        /// What the model is told.
        context: String,
    },
}

impl Adapter {
    /// Every adapter.
    pub const ALL: [Adapter; 2] = [Self::ClaudeCode, Self::Generic];

    /// The adapter of a name, as in `piton hook NAME`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|adapter| adapter.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => claude_code::NAME,
            Self::Generic => generic::NAME,
        }
    }

    /// Reads what the agent wrote to the hook's standard input.
    ///
    /// What piton does not use is read over and not kept. How much a caller reads at all is its own business.
    pub fn parse(self, stdin: &[u8]) -> Result<Report, BadReport> {
        match self {
            Self::ClaudeCode => claude_code::hooks::parse(stdin),
            Self::Generic => generic::parse(stdin),
        }
    }

    /// Whether a tool is known not to change files. One that piton does not know counts as mutating.
    pub fn is_reader(self, tool: &str) -> bool {
        match self {
            Self::ClaudeCode => claude_code::tools::is_reader(tool),
            // Nothing is known of its tools; an agent that knows better leaves readers out of its reports.
            Self::Generic => false,
        }
    }

    /// What to write to standard output, in the agent's form.
    pub fn reply(self, reply: &Reply) -> Vec<u8> {
        match self {
            Self::ClaudeCode => claude_code::hooks::reply(reply),
            Self::Generic => generic::reply(reply),
        }
    }

    /// Whether the agent keeps a transcript that piton can read. Those of one that does not are what it reports.
    pub fn has_transcript(self) -> bool {
        matches!(self, Self::ClaudeCode)
    }

    /// Whether a path has the name of a session's transcript. A report may name any file, and what is taken for a
    /// transcript is not captured any more.
    pub fn looks_like_transcript(self, session: &str, path: &Path) -> bool {
        match self {
            Self::ClaudeCode => claude_code::looks_like_transcript(session, path),
            // Of an agent that piton does not know: named after its session.
            Self::Generic => {
                let name = path.file_name().and_then(|name| name.to_str());
                !session.is_empty() && name.is_some_and(|name| name.contains(session))
            }
        }
    }

    /// The files and folders that belong to a session with this transcript: the agent writes them while it works, so they
    /// are never captured and never put back. The transcript itself is the first.
    pub fn belongings(self, transcript: &Path) -> Vec<PathBuf> {
        let mut all = vec![transcript.to_owned()];
        if self == Self::ClaudeCode {
            all.extend(claude_code::belongings(transcript));
        }
        all
    }

    /// Whether the agent goes on with a transcript that piton wrote, so that a conversation can be branched. Where not,
    /// the code can be rewound and the agent's conversation stays as it is.
    pub fn can_branch(self) -> bool {
        matches!(self, Self::ClaudeCode)
    }

    /// The command that goes on with a session, run in the folder that the session began in; none where the agent has
    /// no such thing, or the id is none of its.
    pub fn resume_command(self, id: &str) -> Option<Vec<String>> {
        match self {
            Self::ClaudeCode if claude_code::branch::is_session_id(id) => {
                Some(["claude", "--resume", id].map(String::from).into())
            }
            Self::ClaudeCode | Self::Generic => None,
        }
    }
}

/// One line of JSON, as every reply is.
pub(crate) fn json_line(value: &serde_json::Value) -> Vec<u8> {
    let mut out = value.to_string().into_bytes();
    out.push(b'\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_adapter_is_found_by_its_name_and_no_other_is() {
        for adapter in Adapter::ALL {
            assert_eq!(Adapter::from_name(adapter.name()), Some(adapter));
        }
        for name in ["", "claude", "Claude-Code", "codex"] {
            assert_eq!(Adapter::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn a_session_is_resumed_by_its_id_and_by_nothing_that_could_be_an_option() {
        let id = "428214a0-5123-43c6-ae2b-86a56b0968a8";
        assert_eq!(Adapter::ClaudeCode.resume_command(id).unwrap(), ["claude", "--resume", id]);
        for bad in ["", "--help", "s1", "428214a0-5123-43c6-ae2b-86a56b0968a8 --x"] {
            assert_eq!(Adapter::ClaudeCode.resume_command(bad), None, "{bad}");
        }
        assert_eq!(Adapter::Generic.resume_command(id), None);
        // Without one a branch would be of no use.
        for adapter in Adapter::ALL {
            assert_eq!(adapter.can_branch(), adapter.resume_command(id).is_some());
        }
    }

    #[test]
    fn only_a_transcript_of_claude_code_in_its_place_has_more_than_itself() {
        let id = "428214a0-5123-43c6-ae2b-86a56b0968a8";
        let check = |adapter: Adapter, transcript: &str, expected: &[&str]| {
            let all = adapter.belongings(Path::new(transcript));
            assert_eq!(all[0], Path::new(transcript));
            assert_eq!(all[1..].iter().map(|path| path.to_str().unwrap()).collect::<Vec<_>>(), expected);
        };
        let mine = ["/w/.cc/projects/-w", "/w/.cc/file-history", "/w/.cc/session-env", "/w/.cc/shell-snapshots"];
        check(Adapter::ClaudeCode, &format!("/w/.cc/projects/-w/{id}.jsonl"), &mine);
        check(Adapter::ClaudeCode, &format!("/w/logs/{id}.jsonl"), &[&format!("/w/logs/{id}")]);
        // Whatever a report may say, a folder of the user's is not the agent's.
        check(Adapter::ClaudeCode, "/w/projects/-w/src.jsonl", &[]);
        check(Adapter::ClaudeCode, &format!("/w/projects/app/{id}.jsonl"), &[&format!("/w/projects/app/{id}")]);
        check(Adapter::Generic, &format!("/w/.cc/projects/-w/{id}.jsonl"), &[]);
    }

    #[test]
    fn a_transcript_is_named_after_a_session() {
        let id = "428214a0-5123-43c6-ae2b-86a56b0968a8";
        let check = |adapter: Adapter, session: &str, path: &str, expected: bool| {
            assert_eq!(adapter.looks_like_transcript(session, Path::new(path)), expected, "{session} {path}");
        };
        check(Adapter::ClaudeCode, id, &format!("/w/{id}.jsonl"), true);
        check(Adapter::ClaudeCode, "s1", "/w/s1.jsonl", true);
        // A session that is resumed may report the file that it was resumed from.
        check(Adapter::ClaudeCode, "s1", &format!("/w/{id}.jsonl"), true);
        for other in ["/w/src/main.rs", "/w/data.jsonl", "/w/s1.rs", "/w/s1", "/"] {
            check(Adapter::ClaudeCode, "s1", other, false);
        }
        check(Adapter::Generic, "run-1", "/w/log-run-1.txt", true);
        check(Adapter::Generic, "run-1", "/w/src/main.rs", false);
        check(Adapter::Generic, "", "/w/src/main.rs", false);
    }

    #[test]
    fn a_reply_is_one_line_of_json_or_nothing() {
        let hard = "a \"line\"\nand \u{1b}[1m more".to_owned();
        for adapter in Adapter::ALL {
            assert_eq!(adapter.reply(&Reply::Nothing), b"");
            let both = Reply::Both { line: hard.clone(), context: hard.clone() };
            for reply in [Reply::Line(hard.clone()), Reply::Answer(hard.clone()), Reply::Context(hard.clone()), both] {
                let bytes = adapter.reply(&reply);
                assert_eq!(bytes.iter().filter(|b| **b == b'\n').count(), 1);
                assert!(serde_json::from_slice::<serde_json::Value>(&bytes).unwrap().is_object());
            }
        }
    }
}
