//! What Claude Code's hooks write to standard input, and what it understands on standard output.
//!
//! Optional fields of an unexpected type count as absent: a later version that changes one of them still gets its
//! captures.

use std::path::{Path, PathBuf};

use piton_model::session::Attended;
use piton_model::short::{cut, one_line};
use serde::Deserialize;
use serde_json::json;

use super::{TASK_NOTIFICATION, tools};
use crate::event::{
    BadReport, Event, MAX_ID, MAX_MESSAGE, Reply, Report, Subagent, ToolCall, absolute, check_session_id, json_line,
};
use crate::fields::{Raw, is_full_list, is_true, object, read, required, text};

/// The fields of a hook's input that piton reads.
#[derive(Deserialize)]
struct Input<'a> {
    #[serde(borrow)]
    hook_event_name: Raw<'a>,
    session_id: Raw<'a>,
    transcript_path: Raw<'a>,
    cwd: Raw<'a>,
    prompt_id: Raw<'a>,
    agent_id: Raw<'a>,
    agent_type: Raw<'a>,
    source: Raw<'a>,
    prompt: Raw<'a>,
    tool_name: Raw<'a>,
    tool_input: Raw<'a>,
    tool_use_id: Raw<'a>,
    tool_response: Raw<'a>,
    error: Raw<'a>,
    error_details: Raw<'a>,
    is_interrupt: Raw<'a>,
    last_assistant_message: Raw<'a>,
    background_tasks: Raw<'a>,
    reason: Raw<'a>,
    trigger: Raw<'a>,
}

/// The one field of a tool's response that piton reads.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolResponse<'a> {
    #[serde(borrow)]
    background_task_id: Raw<'a>,
}

pub fn parse(stdin: &[u8]) -> Result<Report, BadReport> {
    let input: Input<'_> = read(stdin)?;
    let name = required("hook_event_name", input.hook_event_name)?;
    let session = required("session_id", input.session_id)?.into_owned();
    check_session_id(&session)?;
    let cwd = text(input.cwd).map(|cwd| PathBuf::from(cwd.into_owned()));
    if cwd.as_ref().is_some_and(|cwd| !cwd.is_absolute()) {
        return Err(BadReport::Wrong { field: "cwd", expected: "an absolute path" });
    }
    let label = |raw| text(raw).map(|text| one_line(&text, MAX_ID)).filter(|text| !text.is_empty());
    // An agent that runs as a custom kind also has a type; only subagents have an id.
    let subagent = label(input.agent_id).map(|id| Subagent { id, kind: label(input.agent_type).unwrap_or_default() });
    let event = match &*name {
        "SessionStart" => Event::SessionStarted { source: label(input.source) },
        "UserPromptSubmit" => prompt(required("prompt", input.prompt)?.into_owned()),
        "PreToolUse" => Event::BeforeTool(tool_call(&input, cwd.as_deref())?),
        "PostToolUse" => Event::AfterTool(tool_call(&input, cwd.as_deref())?),
        "PostToolUseFailure" => Event::ToolFailed {
            call: tool_call(&input, cwd.as_deref())?,
            error: text(input.error).map(|error| cut(&error, MAX_MESSAGE)).unwrap_or_default(),
            interrupted: is_true(input.is_interrupt),
        },
        "PostToolBatch" => Event::ToolsEnded,
        "Stop" | "StopFailure" => {
            let said = [input.last_assistant_message, input.error_details, input.error].into_iter().find_map(text);
            Event::TurnEnded {
                failed: name == "StopFailure",
                message: said.map(|message| cut(&message, MAX_MESSAGE)),
                background: is_full_list(input.background_tasks),
            }
        }
        "SessionEnd" => Event::SessionEnded { reason: label(input.reason) },
        "PreCompact" => Event::Compacting { trigger: label(input.trigger) },
        // Compaction reports the end of a subagent without a type that nobody started.
        "SubagentStart" | "SubagentStop" if subagent.as_ref().is_none_or(|subagent| subagent.kind.is_empty()) => {
            Event::Other { name: name.to_string() }
        }
        "SubagentStart" => Event::SubagentStarted,
        "SubagentStop" => Event::SubagentEnded,
        _ => Event::Other { name: one_line(&name, MAX_ID) },
    };
    Ok(Report {
        agent: super::NAME.to_owned(),
        session,
        cwd,
        transcript: text(input.transcript_path).filter(|path| !path.is_empty()).map(|path| path.into_owned().into()),
        prompt_id: label(input.prompt_id),
        subagent,
        event,
    })
}

/// A prompt, if a user wrote it.
///
/// The end of a background task is passed to the model as a prompt, during a turn (with the turn's id) or after it
/// (with an id of its own). What the agent does then belongs to the turn before.
fn prompt(text: String) -> Event {
    match text.starts_with(TASK_NOTIFICATION) {
        true => Event::Other { name: "task-notification".into() },
        false => Event::Prompt { text },
    }
}

/// What to write to standard output.
pub fn reply(reply: &Reply) -> Vec<u8> {
    match reply {
        Reply::Nothing => Vec::new(),
        Reply::Line(line) => json_line(&json!({ "systemMessage": line })),
        // `block` applies to this prompt alone: the reason is shown, the model is not called, the transcript gets no
        // user line.
        Reply::Answer(answer) => json_line(&json!({
            "decision": "block",
            "reason": answer,
            "hookSpecificOutput": { "hookEventName": "UserPromptSubmit", "suppressOriginalPrompt": true },
        })),
        Reply::Context(context) => json_line(
            &json!({ "hookSpecificOutput": { "hookEventName": "UserPromptSubmit", "additionalContext": context } }),
        ),
        Reply::Both { line, context } => json_line(&json!({
            "systemMessage": line,
            "hookSpecificOutput": { "hookEventName": "UserPromptSubmit", "additionalContext": context },
        })),
    }
}

fn tool_call(input: &Input<'_>, cwd: Option<&Path>) -> Result<ToolCall, BadReport> {
    let tool = one_line(&required("tool_name", input.tool_name)?, MAX_ID);
    if tool.is_empty() {
        return Err(BadReport::Missing { field: "tool_name" });
    }
    let given = tools::describe(&tool, input.tool_input, cwd);
    // A command that was sent to the background while it ran says so only in its response.
    let went_on = object::<ToolResponse<'_>>(input.tool_response).is_some_and(|r| r.background_task_id.is_some());
    Ok(ToolCall {
        id: text(input.tool_use_id).map(|id| one_line(&id, MAX_ID)).filter(|id| !id.is_empty()),
        summary: given.summary,
        paths: given.named.iter().filter_map(|path| absolute(cwd, path)).collect(),
        command: given.command,
        background: given.background || tools::is_background(&tool) || went_on,
        hooked: true,
        attended: Attended::No,
        tool,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMON: &str = r#""session_id":"s1","cwd":"/home/dev/work""#;

    fn event(fields: &str) -> Event {
        parse(format!("{{{COMMON},{fields}}}").as_bytes()).unwrap().event
    }

    /// The call of a `PreToolUse` with this tool and input.
    fn call(tool: &str, input: &str) -> ToolCall {
        let fields = format!(r#""hook_event_name":"PreToolUse","tool_name":{tool:?},"tool_input":{input}"#);
        match event(&fields) {
            Event::BeforeTool(call) => call,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_call_is_told_in_a_few_words() {
        for (tool, input, summary) in [
            ("Edit", r#"{"file_path":"/home/dev/work/src/auth.ts","old_string":"a"}"#, "Edit src/auth.ts"),
            ("Write", r#"{"file_path":"/etc/hosts","content":"x"}"#, "Write /etc/hosts"),
            ("Write", r#"{"file_path":"src/a.ts"}"#, "Write src/a.ts"),
            ("MultiEdit", r#"{"file_path":"/home/dev/work/m","edits":[{"old_string":"a"}]}"#, "MultiEdit m"),
            ("NotebookEdit", r#"{"notebook_path":"/home/dev/work/n.ipynb"}"#, "NotebookEdit n.ipynb"),
            ("Bash", r#"{"command":"npm install","description":"Install"}"#, "Bash npm install"),
            ("Bash", r#"{"command":"cat <<X\n\ta\u001b[31m\nX\n\u202e"}"#, "Bash cat <<X a [31m X"),
            ("Agent", r#"{"description":"look around","prompt":"..."}"#, "Agent look around"),
            ("Grep", r#"{"pattern":"fn main"}"#, "Grep fn main"),
            ("mcp__fs__write_file", r#"{"path":"a.txt","content":"x"}"#, "mcp__fs__write_file a.txt"),
            ("mcp__x__y", r#"{"anything":[1,2,3]}"#, "mcp__x__y"),
            ("Odd", r#""not an object""#, "Odd"),
            ("Odd", r#"{"command":7,"file_path":null}"#, "Odd"),
        ] {
            assert_eq!(call(tool, input).summary, summary, "{tool} {input}");
        }
        let long = call("Bash", &format!(r#"{{"command":"{}"}}"#, "x".repeat(5000)));
        assert_eq!(long.summary.chars().count(), 120);
        assert_eq!(long.command.unwrap().len(), 4000);
    }

    #[test]
    fn a_call_names_its_files_absolute() {
        for (tool, input, paths) in [
            ("Edit", r#"{"file_path":"/home/dev/work/a"}"#, vec!["/home/dev/work/a"]),
            ("Write", r#"{"file_path":"sub/../a"}"#, vec!["/home/dev/work/sub/../a"]),
            ("Write", r#"{"file_path":"../../etc/passwd"}"#, vec!["/home/dev/work/../../etc/passwd"]),
            ("MultiEdit", r#"{"file_path":"m","edits":[]}"#, vec!["/home/dev/work/m"]),
            ("NotebookEdit", r#"{"notebook_path":"/n.ipynb"}"#, vec!["/n.ipynb"]),
            ("mcp__fs__read_multiple", r#"{"paths":["a","/b"]}"#, vec!["/home/dev/work/a", "/b"]),
            ("mcp__web__get", r#"{"path":"https://example.org/a"}"#, vec![]),
            ("Bash", r#"{"command":"touch a"}"#, vec![]),
        ] {
            let expected: Vec<PathBuf> = paths.into_iter().map(PathBuf::from).collect();
            assert_eq!(call(tool, input).paths, expected, "{tool} {input}");
        }
    }

    #[test]
    fn a_command_that_goes_on_in_the_background_is_known_as_such() {
        assert!(call("Bash", r#"{"command":"npm run dev","run_in_background":true}"#).background);
        assert!(call("Monitor", r#"{"command":"tail -f log"}"#).background);
        assert!(!call("Bash", r#"{"command":"ls","run_in_background":false}"#).background);
        let sent_back = r#""hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"make"},
            "tool_response":{"stdout":"","backgroundTaskId":"b1"}"#;
        assert!(matches!(event(sent_back), Event::AfterTool(call) if call.background));
        let foreground = r#""hook_event_name":"PostToolUse","tool_name":"Bash","tool_response":{"stdout":"x"}"#;
        assert!(matches!(event(foreground), Event::AfterTool(call) if !call.background));
    }

    #[test]
    fn the_end_of_a_turn_says_how_it_ended_and_what_still_runs() {
        for (name, fields, failed, message, background) in [
            ("Stop", r#""last_assistant_message":"done","background_tasks":[]"#, false, Some("done"), false),
            ("Stop", r#""background_tasks":[{"id":"b1"}]"#, false, None, true),
            ("StopFailure", r#""error":"rate_limit","error_details":"429""#, true, Some("429"), false),
            ("StopFailure", r#""error":"rate_limit","last_assistant_message":7"#, true, Some("rate_limit"), false),
        ] {
            let expected = Event::TurnEnded { failed, message: message.map(String::from), background };
            assert_eq!(event(&format!(r#""hook_event_name":"{name}",{fields}"#)), expected, "{name} {fields}");
        }
        let long = format!(r#""hook_event_name":"Stop","last_assistant_message":"{}""#, "é".repeat(3000));
        assert!(matches!(event(&long), Event::TurnEnded { message: Some(m), .. } if m.chars().count() == 2000));
    }

    #[test]
    fn the_end_of_a_batch_of_tools_is_told_and_hooks_may_follow_each_of_them() {
        assert_eq!(event(r#""hook_event_name":"PostToolBatch","tool_calls":[]"#), Event::ToolsEnded);
        assert!(call("Edit", r#"{"file_path":"a"}"#).hooked);
    }

    #[test]
    fn events_of_no_interest_and_events_that_are_not_known_are_other() {
        for (fields, name) in [
            (r#""hook_event_name":"SubagentStop","agent_id":"a1","agent_type":"""#, "SubagentStop"),
            (r#""hook_event_name":"SubagentStop","agent_type":"general-purpose""#, "SubagentStop"),
            (r#""hook_event_name":"SubagentStart""#, "SubagentStart"),
            (r#""hook_event_name":"Notification","message":"x""#, "Notification"),
            (
                r#""hook_event_name":"UserPromptSubmit","prompt":"<task-notification>\n<task-id>b1""#,
                "task-notification",
            ),
            (r#""hook_event_name":"Of\nTomorrow""#, "Of Tomorrow"),
        ] {
            assert_eq!(event(fields), Event::Other { name: name.into() }, "{fields}");
        }
    }

    #[test]
    fn a_type_without_an_id_is_no_subagent() {
        let fields = r#"{"session_id":"s1","hook_event_name":"SessionStart","agent_type":"reviewer"}"#;
        assert_eq!(parse(fields.as_bytes()).unwrap().subagent, None);
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        use BadReport::{Missing, Wrong};
        for (json, expected) in [
            (r#"{"session_id":"s"}"#, Missing { field: "hook_event_name" }),
            (r#"{"hook_event_name":"Stop"}"#, Missing { field: "session_id" }),
            (r#"{"hook_event_name":"Stop","session_id":null}"#, Missing { field: "session_id" }),
            (r#"{"hook_event_name":"Stop","session_id":7}"#, Wrong { field: "session_id", expected: "text" }),
            (r#"{"hook_event_name":["Stop"],"session_id":"s"}"#, Wrong { field: "hook_event_name", expected: "text" }),
            (r#"{"hook_event_name":"UserPromptSubmit","session_id":"s"}"#, Missing { field: "prompt" }),
            (r#"{"hook_event_name":"PreToolUse","session_id":"s"}"#, Missing { field: "tool_name" }),
            (r#"{"hook_event_name":"PreToolUse","session_id":"s","tool_name":" "}"#, Missing { field: "tool_name" }),
            (
                r#"{"hook_event_name":"Stop","session_id":"s","cwd":"work"}"#,
                Wrong { field: "cwd", expected: "an absolute path" },
            ),
            (r#"{"hook_event_name":"Stop","session_id":"../x"}"#, BadReport::Session { id: "../x".into() }),
            ("", BadReport::NotAnObject),
            ("[]", BadReport::NotAnObject),
            ("null", BadReport::NotAnObject),
        ] {
            assert_eq!(parse(json.as_bytes()), Err(expected), "{json}");
        }
        for json in ["{", r#"{"session_id":"#, "{} {}", "{'a':1}", "{\"a\":\u{1}}"] {
            assert!(matches!(parse(json.as_bytes()), Err(BadReport::Json { .. })), "{json}");
        }
    }

    #[test]
    fn no_cut_and_no_flipped_byte_of_a_report_makes_it_panic() {
        let whole = format!(
            r#"{{{COMMON},"hook_event_name":"PreToolUse","tool_name":"Edit","tool_input":{{"file_path":"a\u00e9"}}}}"#
        );
        for at in 0..whole.len() {
            let _ = parse(&whole.as_bytes()[..at]);
            let mut bytes = whole.clone().into_bytes();
            bytes[at] ^= 0x80;
            let _ = parse(&bytes);
        }
    }

    #[test]
    fn a_reply_is_in_the_form_that_claude_code_understands() {
        for (given, expected) in [
            (Reply::Line("saved".into()), "{\"systemMessage\":\"saved\"}\n"),
            (
                Reply::Answer("2 undone".into()),
                "{\"decision\":\"block\",\"hookSpecificOutput\":{\"hookEventName\":\"UserPromptSubmit\",\
                 \"suppressOriginalPrompt\":true},\"reason\":\"2 undone\"}\n",
            ),
            (
                Reply::Context("rewound".into()),
                "{\"hookSpecificOutput\":{\"additionalContext\":\"rewound\",\"hookEventName\":\"UserPromptSubmit\"}}\n",
            ),
        ] {
            assert_eq!(String::from_utf8(reply(&given)).unwrap(), expected);
        }
    }
}
