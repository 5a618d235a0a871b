//! A scripted model: it speaks Anthropic's Messages API and says what a test wrote down, nothing else.
//!
//! For driving a real agent offline. It keeps no state between requests: the next message follows from the conversation
//! that the agent sends, as with a real model, so resumed sessions, branches and subagents need nothing special.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::http::{Call, Reply, Server};
use crate::network::Network;

/// What the model says after one prompt, in order.
#[derive(Clone, Debug)]
pub struct Turn {
    prompt: String,
    says: Vec<Say>,
}

impl Turn {
    /// The prompt, exactly as the user (or an agent's call for a subagent) words it, and the answers. After the last
    /// one, or if there is none, the model says `done`.
    pub fn new(prompt: impl Into<String>, says: impl IntoIterator<Item = Say>) -> Self {
        Self { prompt: prompt.into(), says: says.into_iter().collect() }
    }
}

/// One message of the model.
#[derive(Clone, Debug)]
pub enum Say {
    /// Words, which end the turn.
    Text(String),
    /// Parallel tool calls, by name and input.
    Tools(Vec<(String, Value)>),
}

impl Say {
    /// Words, which end the turn.
    pub fn text(words: impl Into<String>) -> Self {
        Self::Text(words.into())
    }

    pub fn tool(name: &str, input: Value) -> Self {
        Self::tools([(name, input)])
    }

    /// Several calls in one message, which an agent may run in parallel.
    pub fn tools<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        Self::Tools(calls.into_iter().map(|(name, input)| (name.to_owned(), input)).collect())
    }
}

/// A request that the model received.
#[derive(Clone, Debug)]
pub struct Request {
    /// `POST`, `HEAD` …
    pub method: String,
    /// As sent, with the query.
    pub path: String,
    /// The JSON of its body; null if there is none.
    pub body: Value,
}

impl Request {
    /// Whether it asks for the next message of a conversation, and not for a title or a count.
    pub fn is_conversation(&self) -> bool {
        let endpoint = self.path.split('?').next().unwrap_or_default();
        endpoint.ends_with("/v1/messages") && self.body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
    }

    /// The conversation so far.
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Every text that the agent sent as the user's, including its own reminders.
    pub fn user_texts(&self) -> Vec<&str> {
        self.messages().iter().filter(|message| message["role"] == "user").flat_map(texts).collect()
    }
}

/// The model, listening on loopback until it is dropped.
pub struct Model {
    server: Server,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Model {
    /// Starts one that knows these turns. The newest known prompt in a conversation decides; the number of calls since
    /// then is the position in that turn.
    pub fn start(turns: impl IntoIterator<Item = Turn>) -> Self {
        let turns: Vec<Turn> = turns.into_iter().collect();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let answer = move |Call { method, path, body, .. }: Call| {
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let request = Request { method, path, body };
            let reply = reply(&turns, &request);
            seen.lock().expect("no holder of this lock panics").push(request);
            reply
        };
        Self { server: Server::start(answer).expect("a port on loopback is free"), requests }
    }

    /// The base URL for `ANTHROPIC_BASE_URL`; only reachable inside [`Model::network`].
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// The network that it listens in, and in which its agent has to run.
    pub fn network(&self) -> &Network {
        &self.server.network
    }

    /// Every request, in order.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("no holder of this lock panics").clone()
    }

    /// Only the requests for the next message of a conversation.
    pub fn conversations(&self) -> Vec<Request> {
        self.requests().into_iter().filter(Request::is_conversation).collect()
    }
}

fn reply(turns: &[Turn], request: &Request) -> Reply {
    let endpoint = request.path.split('?').next().unwrap_or_default();
    match (request.method.as_str(), endpoint) {
        ("POST", "/v1/messages") => {
            // Titles and topics are requested without tools; any words will do for them.
            let say = if request.is_conversation() { next(turns, request) } else { Say::text("A scripted title") };
            let message = message(&request.body["model"], &say);
            if request.body["stream"] == true { streamed(&message) } else { plain(200, &message) }
        }
        ("POST", "/v1/messages/count_tokens") => plain(200, &json!({ "input_tokens": 100 })),
        ("HEAD", _) => plain(200, &Value::Null),
        _ => plain(404, &json!({ "type": "error", "error": { "type": "not_found_error", "message": "not scripted" } })),
    }
}

/// The next message in a conversation.
fn next(turns: &[Turn], request: &Request) -> Say {
    let messages = request.messages();
    // A compaction wants its summary between tags, and asks a second time if they are missing.
    if request.user_texts().last().is_some_and(|text| text.contains("<analysis>") && text.contains("<summary>")) {
        return Say::text("<summary>A scripted summary</summary>");
    }
    let prompted = |message: &Value| {
        let asked = |turn: &&Turn| texts(message).any(|text| text.trim() == turn.prompt.trim());
        turns.iter().find(asked).filter(|_| message["role"] == "user")
    };
    let newest = messages.iter().enumerate().rev().find_map(|(at, message)| Some((at, prompted(message)?)));
    let Some((at, turn)) = newest else { return Say::text("no turn is scripted for this prompt") };
    let mut called = messages[at..].iter().flat_map(|m| blocks(m, "tool_use")).count();
    for say in &turn.says {
        match say {
            Say::Tools(calls) if calls.len() <= called => called -= calls.len(),
            say => return say.clone(),
        }
    }
    Say::text("done")
}

fn texts(message: &Value) -> impl Iterator<Item = &str> {
    message["content"].as_str().into_iter().chain(blocks(message, "text").filter_map(|block| block["text"].as_str()))
}

fn blocks<'a>(message: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    message["content"].as_array().into_iter().flatten().filter(move |block| block["type"] == kind)
}

fn message(model: &Value, say: &Say) -> Value {
    let (content, reason) = match say {
        Say::Text(words) => (vec![json!({ "type": "text", "text": words })], "end_turn"),
        Say::Tools(calls) => {
            let call = |(name, input): &(String, Value)| json!({ "type": "tool_use", "id": new_id("toolu"), "name": name, "input": input });
            (calls.iter().map(call).collect(), "tool_use")
        }
    };
    json!({
        "id": new_id("msg"), "type": "message", "role": "assistant", "model": model,
        "content": content, "stop_reason": reason, "stop_sequence": null,
        "usage": {
            "input_tokens": 100, "output_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        },
    })
}

fn plain(status: u16, body: &Value) -> Reply {
    Reply { status, content_type: "application/json", body: body.to_string().into_bytes() }
}

/// The same message as a stream of events, each block in one piece.
fn streamed(message: &Value) -> Reply {
    let mut begun = message.clone();
    begun["content"] = json!([]);
    begun["stop_reason"] = Value::Null;
    let mut events = vec![json!({ "type": "message_start", "message": begun })];
    for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
        let mut opened = block.clone();
        let delta = if block["type"] == "text" {
            opened["text"] = json!("");
            json!({ "type": "text_delta", "text": block["text"] })
        } else {
            opened["input"] = json!({});
            json!({ "type": "input_json_delta", "partial_json": block["input"].to_string() })
        };
        events.push(json!({ "type": "content_block_start", "index": index, "content_block": opened }));
        events.push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    let end = json!({ "stop_reason": message["stop_reason"], "stop_sequence": null });
    events.push(json!({ "type": "message_delta", "delta": end, "usage": { "output_tokens": 10 } }));
    events.push(json!({ "type": "message_stop" }));
    let mut body = String::new();
    for event in events {
        let name = event["type"].as_str().unwrap_or_default();
        body.push_str(&format!("event: {name}\ndata: {event}\n\n"));
    }
    Reply { status: 200, content_type: "text/event-stream", body: body.into_bytes() }
}

/// Ids differ between processes, too: a session may be resumed against another model.
fn new_id(kind: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros());
    format!("{kind}_{now:016x}{:06}", COUNT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns() -> Vec<Turn> {
        vec![
            Turn::new("make", [Say::tools([("Write", json!({})), ("Bash", json!({}))]), Say::tool("Edit", json!({}))]),
            Turn::new("explain", [Say::text("so it is")]),
        ]
    }

    #[track_caller]
    fn check(messages: Value, expected: &str) {
        let body = json!({ "messages": messages, "tools": [{}] });
        let said = match next(&turns(), &Request { method: "POST".into(), path: "/v1/messages".into(), body }) {
            Say::Text(words) => words,
            Say::Tools(calls) => calls.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join("+"),
        };
        assert_eq!(said, expected);
    }

    fn called(times: usize) -> Value {
        json!({ "role": "assistant", "content": vec![json!({ "type": "tool_use" }); times] })
    }

    #[test]
    fn what_is_said_next_follows_from_the_newest_known_prompt_and_the_calls_since() {
        let make = json!({ "role": "user", "content": [{ "type": "text", "text": "reminder" }, { "type": "text", "text": "make" }] });
        let other =
            json!({ "role": "user", "content": "<task-notification><summary>it ended</summary></task-notification>" });
        check(json!([make]), "Write+Bash");
        check(json!([make, called(2), other]), "Edit");
        check(json!([make, called(1), called(1), called(1)]), "done");
        check(json!([make, called(2), { "role": "user", "content": "explain\n" }]), "so it is");
        check(json!([make, called(2), called(1), make]), "Write+Bash");
        let compact = json!({ "role": "user", "content": "an <analysis> block, then a <summary> block" });
        check(json!([make, called(1), compact]), "<summary>A scripted summary</summary>");
        check(json!([other]), "no turn is scripted for this prompt");
    }

    #[test]
    fn a_stream_tells_the_same_message_as_the_plain_answer() {
        let message = message(&json!("m"), &Say::tool("Write", json!({ "a": [1, "b"] })));
        let body = String::from_utf8(streamed(&message).body).unwrap();
        let events: Vec<Value> =
            body.lines().filter_map(|l| l.strip_prefix("data: ")).map(|l| serde_json::from_str(l).unwrap()).collect();
        let names: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        let block = ["content_block_start", "content_block_delta", "content_block_stop"];
        assert_eq!(names, [&["message_start"][..], &block, &["message_delta", "message_stop"]].concat());
        assert_eq!(events[1]["content_block"]["id"], message["content"][0]["id"]);
        let input: Value = serde_json::from_str(events[2]["delta"]["partial_json"].as_str().unwrap()).unwrap();
        assert_eq!(input, message["content"][0]["input"]);
        assert_eq!(events[4]["delta"]["stop_reason"], "tool_use");
    }
}
