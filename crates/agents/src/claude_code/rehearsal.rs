//! The hook reports of a session that writes one file, for trying piton's hook without an agent.

use std::path::Path;

use serde_json::{Value, json};

/// The reports before the file is written, and those after.
pub fn reports(session: &str, folder: &Path, file: &Path) -> [Vec<String>; 2] {
    let report = |event: &str, more: Value| {
        let mut body = json!({ "hook_event_name": event, "session_id": session, "cwd": folder, "prompt_id": "p1" });
        if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
            body.extend(more);
        }
        body.to_string()
    };
    let write = || json!({ "tool_name": "Write", "tool_use_id": "call-1", "tool_input": { "file_path": file } });
    [
        vec![
            report("SessionStart", json!({ "source": "startup" })),
            report("UserPromptSubmit", json!({ "prompt": "write a file" })),
            report("PreToolUse", write()),
        ],
        vec![
            report("PostToolUse", write()),
            report("Stop", json!({})),
            report("SessionEnd", json!({ "reason": "other" })),
        ],
    ]
}
