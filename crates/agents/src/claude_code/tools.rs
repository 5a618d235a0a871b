//! Claude Code's tools: which of them only read, and short descriptions of their calls.

use std::path::Path;

use piton_model::short::cut;
use serde::Deserialize;

use crate::event::{MAX_COMMAND, MAX_PATHS, shown, summarize};
use crate::fields::{Raw, is_true, object, text, texts};

/// Tools that cannot change a file of the workspace, under current and former names: Claude Code also matches a tool's
/// former names.
///
/// Only clear cases are here. A skill may run commands when it is loaded, a language server may build, an MCP server
/// may do anything, and stopping a command may make it write: they count as mutating.
///
/// `Agent` (formerly `Task`) is here because it only contains other calls: a subagent's own tool calls are reported one
/// by one, with the subagent's id. As a step of its own it would be open around all of them, and no change could be
/// attributed to them.
const READERS: [&str; 22] = [
    // Reading files.
    "Read",
    "Grep",
    "Glob",
    "LS",
    "NotebookRead",
    // The web.
    "WebFetch",
    "WebSearch",
    // The agent's own to-do list, in its own folder.
    "TodoRead",
    "TodoWrite",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskUpdate",
    // What something in the background has printed so far.
    "BashOutput",
    "TaskOutput",
    "AgentOutputTool",
    // Communication with the user, and with Claude Code itself.
    "AskUserQuestion",
    "EnterPlanMode",
    "ExitPlanMode",
    "ToolSearch",
    // Containers of other calls.
    "Agent",
    "Task",
];

pub fn is_reader(tool: &str) -> bool {
    READERS.contains(&tool)
}

/// Whether a tool starts something that continues after the call, without being asked to.
pub(crate) fn is_background(tool: &str) -> bool {
    tool == "Monitor"
}

/// The matcher of the tool hooks: every tool but the readers.
///
/// A matcher with other characters than letters, digits, `_`, `|`, `,`, `-` and spaces is a JavaScript regular
/// expression that is searched in the tool's name. It excludes instead of listing: a tool of a later version, or from
/// an MCP server, is captured without anyone knowing its name.
pub fn matcher() -> String {
    format!("^(?!(?:{})$).*", READERS.join("|"))
}

/// The fields of a tool's input that say what it does; file contents are not among them.
#[derive(Default, Deserialize)]
struct ToolInput<'a> {
    #[serde(borrow)]
    file_path: Raw<'a>,
    notebook_path: Raw<'a>,
    path: Raw<'a>,
    file_paths: Raw<'a>,
    paths: Raw<'a>,
    command: Raw<'a>,
    run_in_background: Raw<'a>,
    description: Raw<'a>,
    skill: Raw<'a>,
    pattern: Raw<'a>,
    query: Raw<'a>,
    url: Raw<'a>,
}

/// What a call's input says.
pub(crate) struct Described {
    /// A short description, such as `Edit src/auth.ts`.
    pub summary: String,
    /// The files it names, as written.
    pub named: Vec<String>,
    /// The shell command.
    pub command: Option<String>,
    /// Whether it asks to run in the background.
    pub background: bool,
}

/// Reads a tool's input; an unknown tool is described by whatever names a file, a command or a purpose.
pub(crate) fn describe(tool: &str, input: Raw<'_>, cwd: Option<&Path>) -> Described {
    let given: ToolInput<'_> = object(input).unwrap_or_default();
    let mut named: Vec<String> = [given.file_path, given.notebook_path, given.path]
        .into_iter()
        .filter_map(text)
        .map(|p| p.into_owned())
        .collect();
    for list in [given.file_paths, given.paths] {
        named.extend(texts::<MAX_PATHS>(list).unwrap_or_default());
    }
    named.truncate(MAX_PATHS);
    let command = text(given.command).map(|command| cut(&command, MAX_COMMAND));
    let detail = named.first().map(|path| shown(cwd, path).into_owned()).or_else(|| command.clone()).or_else(|| {
        [given.description, given.skill, given.pattern, given.query, given.url]
            .into_iter()
            .find_map(text)
            .map(|detail| cut(&detail, MAX_COMMAND))
    });
    let summary = summarize(tool, detail.as_deref());
    Described { summary, named, command, background: is_true(given.run_in_background) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_piton_does_not_know_counts_as_mutating() {
        for tool in
            ["Bash", "Write", "Edit", "MultiEdit", "NotebookEdit", "Skill", "LSP", "mcp__x__read", "read", "Reader", ""]
        {
            assert!(!is_reader(tool), "{tool}");
        }
        for tool in ["Read", "Grep", "Glob", "TodoWrite", "Agent", "Task"] {
            assert!(is_reader(tool), "{tool}");
        }
    }

    #[test]
    fn the_matcher_leaves_out_the_readers_and_lists_nothing_else() {
        let matcher = matcher();
        let names = matcher.strip_prefix("^(?!(?:").and_then(|rest| rest.strip_suffix(")$).*")).unwrap();
        assert!(names.split('|').all(is_reader));
        assert_eq!(names.split('|').count(), READERS.len());
        // Names contain nothing that is special in a regular expression.
        assert!(READERS.iter().all(|name| name.bytes().all(|b| b.is_ascii_alphanumeric())));
    }
}
