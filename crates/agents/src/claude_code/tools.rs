//! Which of Claude Code's tools only read.

/// Tools that cannot change a file of the workspace, today's names and former ones: Claude Code also tries a tool's
/// former names against a matcher.
///
/// Only what is clear is here. A skill may run commands when it is loaded, a language server may build, an MCP server
/// may do anything, and stopping a command may make it write: they count as mutating.
///
/// `Agent` (formerly `Task`) is here because it only holds others: a subagent's own tool calls are reported one by one,
/// with the subagent's id. As a step of its own it would be open around all of them, and no change could be told to be
/// theirs.
const READERS: [&str; 22] = [
    // Files, read.
    "Read",
    "Grep",
    "Glob",
    "LS",
    "NotebookRead",
    // The web.
    "WebFetch",
    "WebSearch",
    // The agent's own list of things to do, kept in its own folder.
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
    // Talk with the user, and with Claude Code itself.
    "AskUserQuestion",
    "EnterPlanMode",
    "ExitPlanMode",
    "ToolSearch",
    // Holders of other calls.
    "Agent",
    "Task",
];

/// Whether a tool is known not to change files.
pub fn is_reader(tool: &str) -> bool {
    READERS.contains(&tool)
}

/// Whether a tool starts something that goes on after the call, without being asked to.
pub(crate) fn is_background(tool: &str) -> bool {
    tool == "Monitor"
}

/// The matcher of the tool hooks: every tool but the readers.
///
/// A matcher with other characters than letters, digits, `_`, `|`, `,`, `-` and spaces is a JavaScript regular
/// expression that is searched in the tool's name. It leaves out and never lists: a tool that comes with a later
/// version, or from an MCP server, is captured without anybody knowing its name.
pub fn matcher() -> String {
    format!("^(?!(?:{})$).*", READERS.join("|"))
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
        // Names hold nothing that means something in a regular expression.
        assert!(READERS.iter().all(|name| name.bytes().all(|b| b.is_ascii_alphanumeric())));
    }
}
