//! A server in the place of one that speaks OpenAI's language.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::http::{Call, Reply, Server};
use crate::network::Network;

/// A request that it got.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The address without the server.
    pub path: String,
    /// Its headers, with their names in small letters.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Value,
}

impl Asked {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The server, listening on loopback until it is dropped.
pub struct Endpoint {
    server: Server,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Endpoint {
    /// Starts one that says this to whoever asks.
    pub fn saying(words: &str) -> Self {
        let message = json!({ "role": "assistant", "content": words });
        Self::start(200, json!({ "choices": [{ "index": 0, "message": message }] }).to_string())
    }

    /// Starts one that answers with a status and a body.
    pub fn start(status: u16, body: impl Into<String>) -> Self {
        let body = body.into();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let answer = move |Call { path, headers, body: given, .. }: Call| {
            let given = serde_json::from_slice(&given).unwrap_or_default();
            seen.lock().expect("no holder of this lock panics").push(Asked { path, headers, body: given });
            Reply { status, content_type: "application/json", body: body.clone().into_bytes() }
        };
        Self { server: Server::start(answer).expect("a port on loopback is free"), asked }
    }

    /// The base of its addresses; good inside [`Endpoint::network`] only.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.server.address)
    }

    /// The network that it listens in.
    pub fn network(&self) -> &Network {
        &self.server.network
    }

    /// Everything that it was asked, in order.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no holder of this lock panics").clone()
    }
}
