//! Piton's own event format, for any agent or script without an adapter: `docs/events.md`.
//!
//! Stricter than the adapters of real agents: whoever writes this format can be told what is wrong with it. Unknown
//! fields and events are still no error, so that a report written for a later piton works with this one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use piton_model::short::{cut, one_line};
use serde::Deserialize;
use serde_json::json;

use crate::agent::Agent;
use crate::event::{
    BadReport, Event, Events, MAX_COMMAND, MAX_ID, MAX_MESSAGE, MAX_PATHS, Reply, Report, Subagent, ToolCall, absolute,
    check_session_id, is_plain_name, json_line, shown,
};
use crate::fields::{Raw, is_true, object, optional, read, required, text, texts};

/// As in `piton hook`; also the agent of a report that does not name one.
pub const NAME: &str = "generic";

/// Anything that writes this format.
pub const AGENT: Agent = Agent {
    name: NAME,
    title: "an agent that reports in piton's own format",
    events: &Format,
    transcripts: None,
    setup: None,
    state_folders: &[],
    shell_variables: &[],
};

struct Format;

impl Events for Format {
    fn parse(&self, stdin: &[u8]) -> Result<Report, BadReport> {
        parse(stdin)
    }

    /// Nothing is known about its tools; an agent that knows better leaves readers out of its reports.
    fn is_reader(&self, _: &str) -> bool {
        false
    }

    fn reply(&self, reply: &Reply) -> Vec<u8> {
        self::reply(reply)
    }

    fn time_limit(&self) -> Duration {
        Duration::MAX
    }

    /// A file that is named after the session.
    fn belongings(&self, session: &str, transcript: &Path) -> Vec<PathBuf> {
        let name = transcript.file_name().and_then(|name| name.to_str());
        let is_named_so = !session.is_empty() && name.is_some_and(|name| name.contains(session));
        if is_named_so { vec![transcript.to_owned()] } else { Vec::new() }
    }
}

/// The events by their names in a report; any other is [`Event::Other`].
pub const EVENTS: [&str; 11] = [
    "session-started",
    "prompt",
    "before-tool",
    "after-tool",
    "tool-failed",
    "turn-ended",
    "session-ended",
    "compacting",
    "subagent-started",
    "subagent-ended",
    "message",
];

/// Every field that has a meaning.
#[derive(Deserialize)]
struct Input<'a> {
    #[serde(borrow)]
    event: Raw<'a>,
    session: Raw<'a>,
    agent: Raw<'a>,
    cwd: Raw<'a>,
    turn: Raw<'a>,
    subagent: Raw<'a>,
    source: Raw<'a>,
    text: Raw<'a>,
    role: Raw<'a>,
    tool: Raw<'a>,
    call: Raw<'a>,
    paths: Raw<'a>,
    command: Raw<'a>,
    summary: Raw<'a>,
    background: Raw<'a>,
    error: Raw<'a>,
    interrupted: Raw<'a>,
    failed: Raw<'a>,
    message: Raw<'a>,
    reason: Raw<'a>,
    trigger: Raw<'a>,
}

/// The fields of `subagent`.
#[derive(Deserialize)]
struct SubagentInput<'a> {
    #[serde(borrow)]
    id: Raw<'a>,
    kind: Raw<'a>,
}

pub fn parse(stdin: &[u8]) -> Result<Report, BadReport> {
    let input: Input<'_> = read(stdin)?;
    let name = required("event", input.event)?;
    let session = required("session", input.session)?.into_owned();
    check_session_id(&session)?;
    let agent = optional("agent", input.agent)?.map_or_else(|| NAME.to_owned(), |agent| agent.into_owned());
    if !is_plain_name(&agent) {
        return Err(BadReport::Wrong { field: "agent", expected: "a name of letters, digits, `.`, `_` and `-`" });
    }
    let cwd = optional("cwd", input.cwd)?.map(|cwd| PathBuf::from(cwd.into_owned()));
    if cwd.as_ref().is_some_and(|cwd| !cwd.is_absolute()) {
        return Err(BadReport::Wrong { field: "cwd", expected: "an absolute path" });
    }
    let subagent = subagent(input.subagent)?;
    let event = match &*name {
        "session-started" => Event::SessionStarted { source: label("source", input.source)? },
        "prompt" => Event::Prompt { text: required("text", input.text)?.into_owned() },
        "before-tool" => Event::BeforeTool(tool_call(&input, cwd.as_ref())?),
        "after-tool" => Event::AfterTool(tool_call(&input, cwd.as_ref())?),
        "tool-failed" => Event::ToolFailed {
            call: tool_call(&input, cwd.as_ref())?,
            error: optional("error", input.error)?.map(|error| cut(&error, MAX_MESSAGE)).unwrap_or_default(),
            interrupted: flag("interrupted", input.interrupted)?,
        },
        "turn-ended" => Event::TurnEnded {
            failed: flag("failed", input.failed)?,
            message: optional("message", input.message)?.map(|message| cut(&message, MAX_MESSAGE)),
            background: flag("background", input.background)?,
        },
        "session-ended" => Event::SessionEnded { reason: label("reason", input.reason)? },
        "compacting" => Event::Compacting { trigger: label("trigger", input.trigger)? },
        "subagent-started" | "subagent-ended" if subagent.is_none() => {
            return Err(BadReport::Missing { field: "subagent" });
        }
        "subagent-started" => Event::SubagentStarted,
        "subagent-ended" => Event::SubagentEnded,
        "message" => Event::Message {
            role: label("role", input.role)?.ok_or(BadReport::Missing { field: "role" })?,
            text: required("text", input.text)?.into_owned(),
        },
        _ => Event::Other { name: one_line(&name, MAX_ID) },
    };
    Ok(Report { agent, session, cwd, transcript: None, prompt_id: label("turn", input.turn)?, subagent, event })
}

/// What to write to standard output.
pub fn reply(reply: &Reply) -> Vec<u8> {
    match reply {
        Reply::Nothing => Vec::new(),
        Reply::Line(line) => json_line(&json!({ "line": line })),
        Reply::Answer(answer) => json_line(&json!({ "answer": answer })),
        Reply::Context(context) => json_line(&json!({ "context": context })),
        Reply::Both { line, context } => json_line(&json!({ "line": line, "context": context })),
    }
}

fn tool_call(input: &Input<'_>, cwd: Option<&PathBuf>) -> Result<ToolCall, BadReport> {
    let cwd = cwd.map(PathBuf::as_path);
    let tool = label("tool", input.tool)?.ok_or(BadReport::Missing { field: "tool" })?;
    let named = match input.paths {
        Some(_) => {
            texts::<MAX_PATHS>(input.paths).ok_or(BadReport::Wrong { field: "paths", expected: "a list of paths" })?
        }
        None => Vec::new(),
    };
    let command = optional("command", input.command)?.map(|command| cut(&command, MAX_COMMAND));
    let summary = match label("summary", input.summary)? {
        Some(summary) => crate::event::summarize(&summary, None),
        None => {
            let detail = named.first().map(|path| shown(cwd, path).into_owned()).or_else(|| command.clone());
            crate::event::summarize(&tool, detail.as_deref())
        }
    };
    Ok(ToolCall {
        id: label("call", input.call)?,
        tool,
        summary,
        paths: named.iter().filter_map(|path| absolute(cwd, path)).collect(),
        command,
        background: flag("background", input.background)?,
        ..ToolCall::default()
    })
}

fn subagent(raw: Raw<'_>) -> Result<Option<Subagent>, BadReport> {
    if raw.is_none() {
        return Ok(None);
    }
    let wrong = BadReport::Wrong { field: "subagent", expected: "an object with an `id` of text" };
    let short = |raw| text(raw).map(|text| one_line(&text, MAX_ID)).filter(|text| !text.is_empty());
    let given: Option<SubagentInput<'_>> = object(raw);
    match given.and_then(|given| Some((short(given.id)?, short(given.kind)))) {
        Some((id, kind)) => Ok(Some(Subagent { id, kind: kind.unwrap_or_default() })),
        None => Err(wrong),
    }
}

/// A short text on one line; an empty one counts as absent.
fn label(field: &'static str, raw: Raw<'_>) -> Result<Option<String>, BadReport> {
    Ok(optional(field, raw)?.map(|text| one_line(&text, MAX_ID)).filter(|text| !text.is_empty()))
}

fn flag(field: &'static str, raw: Raw<'_>) -> Result<bool, BadReport> {
    match raw.map(|raw| raw.get()) {
        None | Some("true" | "false") => Ok(is_true(raw)),
        Some(_) => Err(BadReport::Wrong { field, expected: "`true` or `false`" }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde::de::value::Error;
    use serde::de::{Deserializer, Error as _, Visitor};
    use serde_json::Value;

    use super::*;

    const DOCUMENT: &str = include_str!("../../../../docs/events.md");
    const SCHEMA: &str = include_str!("../../../../docs/events.schema.json");

    fn examples() -> Vec<&'static str> {
        DOCUMENT.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
    }

    #[test]
    fn every_example_of_the_document_is_a_report_and_every_event_has_one() {
        let mut shown = BTreeSet::new();
        for example in examples() {
            let report = parse(example.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{example}"));
            assert!(!matches!(report.event, Event::Other { .. }), "{example}");
            let value: Value = serde_json::from_str(example).unwrap();
            shown.insert(value["event"].as_str().unwrap().to_owned());
        }
        assert_eq!(shown, EVENTS.iter().map(|event| event.to_string()).collect());
    }

    #[test]
    fn the_examples_show_every_field() {
        let mut shown = BTreeSet::new();
        for example in examples() {
            let value: Value = serde_json::from_str(example).unwrap();
            shown.extend(value.as_object().unwrap().keys().cloned());
        }
        assert_eq!(shown, names_of::<Input<'_>>());
    }

    #[test]
    fn the_schema_has_exactly_the_events_and_fields_that_are_read() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let keys = |value: &Value| -> BTreeSet<String> { value.as_object().unwrap().keys().cloned().collect() };
        let properties = &schema["properties"];
        assert_eq!(keys(properties), names_of::<Input<'_>>());
        assert_eq!(keys(&properties["subagent"]["properties"]), names_of::<SubagentInput<'_>>());
        let events: Vec<&str> =
            properties["event"]["enum"].as_array().unwrap().iter().map(|event| event.as_str().unwrap()).collect();
        assert_eq!(events, EVENTS);
    }

    #[test]
    fn what_the_schema_requires_of_an_event_is_what_the_code_requires() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let list = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().map(|v| v.as_str().unwrap().to_owned()).collect()
        };
        for event in EVENTS {
            let mut needed = list(&schema["required"]);
            for rule in schema["allOf"].as_array().unwrap() {
                if list(&rule["if"]["properties"]["event"]["enum"]).iter().any(|name| name == event) {
                    needed.extend(list(&rule["then"]["required"]));
                }
            }
            let mut report = serde_json::Map::new();
            for field in &needed {
                let value = match field.as_str() {
                    "event" => json!(event),
                    "subagent" => json!({ "id": "s1" }),
                    _ => json!("x"),
                };
                report.insert(field.clone(), value);
            }
            let parsed = |report: &serde_json::Map<String, Value>| parse(&serde_json::to_vec(report).unwrap());
            assert!(parsed(&report).is_ok(), "{event}: {needed:?}");
            for field in &needed {
                let mut less = report.clone();
                less.remove(field);
                let Err(BadReport::Missing { field: named }) = parsed(&less) else { panic!("{event} without {field}") };
                assert_eq!(named, field, "{event}");
            }
        }
    }

    #[test]
    fn a_call_says_what_it_does_and_names_its_files() {
        let report = parse(
            br#"{"event":"before-tool","session":"my-run-1","agent":"my-agent","cwd":"/w","turn":"p1","tool":"write_file",
                "call":"c1","paths":["a.txt","/etc/x"],"background":true}"#,
        )
        .unwrap();
        let call = ToolCall {
            id: Some("c1".into()),
            tool: "write_file".into(),
            summary: "write_file a.txt".into(),
            paths: vec!["/w/a.txt".into(), "/etc/x".into()],
            command: None,
            background: true,
            ..ToolCall::default()
        };
        assert_eq!(report.event, Event::BeforeTool(call));
        assert_eq!((report.agent.as_str(), report.prompt_id.as_deref()), ("my-agent", Some("p1")));
        for (fields, summary) in [
            (r#""tool":"sh","command":"npm\ninstall""#, "sh npm install"),
            (r#""tool":"sh","command":"x","summary":"install\u001b[2J things""#, "install [2J things"),
            (r#""tool":"sh","summary":"""#, "sh"),
        ] {
            let report = parse(format!(r#"{{"event":"after-tool","session":"s",{fields}}}"#).as_bytes()).unwrap();
            assert!(matches!(report.event, Event::AfterTool(call) if call.summary == summary), "{fields}");
        }
    }

    #[test]
    fn an_event_or_a_field_that_is_not_known_is_no_error() {
        let report = parse(br#"{"event":"tea-break","session":"s","biscuits":[1,{}]}"#).unwrap();
        assert_eq!(report.event, Event::Other { name: "tea-break".into() });
        assert_eq!(report.agent, NAME);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (fields, field) in [
            (r#""agent":"a/b""#, "agent"),
            (r#""agent":"""#, "agent"),
            (r#""cwd":"relative""#, "cwd"),
            (r#""cwd":7"#, "cwd"),
            (r#""paths":"a.txt""#, "paths"),
            (r#""paths":["a",7]"#, "paths"),
            (r#""command":["npm"]"#, "command"),
            (r#""background":"yes""#, "background"),
            (r#""subagent":"s1""#, "subagent"),
            (r#""subagent":{"kind":"x"}"#, "subagent"),
            (r#""turn":7"#, "turn"),
            (r#""summary":{}"#, "summary"),
        ] {
            let found = parse(format!(r#"{{"event":"before-tool","session":"s","tool":"t",{fields}}}"#).as_bytes());
            assert!(matches!(found, Err(BadReport::Wrong { field: f, .. }) if f == field), "{fields}: {found:?}");
        }
        let outside = parse(br#"{"event":"prompt","session":"../../x","text":"t"}"#);
        assert!(matches!(outside, Err(BadReport::Session { .. })));
    }

    /// The field names that a struct is read by, as serde's derive passes them on.
    fn names_of<'de, T: Deserialize<'de>>() -> BTreeSet<String> {
        struct Names<'a>(&'a mut &'static [&'static str]);

        impl<'de> Deserializer<'de> for Names<'_> {
            type Error = Error;

            fn deserialize_struct<V: Visitor<'de>>(
                self,
                _: &'static str,
                fields: &'static [&'static str],
                _: V,
            ) -> Result<V::Value, Error> {
                *self.0 = fields;
                Err(Error::custom("only the names matter"))
            }

            fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
                Err(Error::custom("only the names matter"))
            }

            serde::forward_to_deserialize_any! {
                bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
                newtype_struct seq tuple tuple_struct map enum identifier ignored_any
            }
        }

        let mut names: &[&str] = &[];
        let _ = T::deserialize(Names(&mut names));
        names.iter().map(|name| name.to_string()).collect()
    }
}
