//! A server that speaks the OpenAI API.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::http::{Call, Reply, Server};
use crate::network::Network;

/// A request that it received.
#[derive(Clone, Debug)]
pub struct EndpointRequest {
    /// Without the server.
    pub path: String,
    /// With names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl EndpointRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The server, listening on loopback until it is dropped.
pub struct Endpoint {
    server: Server,
    asked: Arc<Mutex<Vec<EndpointRequest>>>,
}

impl Endpoint {
    /// Starts one that always answers with these words.
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
            seen.lock().expect("no holder of this lock panics").push(EndpointRequest { path, headers, body: given });
            Reply { status, content_type: "application/json", body: body.clone().into_bytes() }
        };
        Self { server: Server::start(answer).expect("a port on loopback is free"), asked }
    }

    /// The base URL; only reachable inside [`Endpoint::network`].
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.server.address)
    }

    /// The network that it listens in.
    pub fn network(&self) -> &Network {
        &self.server.network
    }

    /// Every request, in order.
    pub fn asked(&self) -> Vec<EndpointRequest> {
        self.asked.lock().expect("no holder of this lock panics").clone()
    }
}
