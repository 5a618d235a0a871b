//! A model that summarizes, at an address that speaks OpenAI's language: `POST …/chat/completions`.

use std::time::Duration;

use piton_wording::{Code, Failure, flag, text};
use serde_json::{Value, json};
use ureq::http::Uri;

use super::{Endpoint, MOST_ANSWERED, TASK};

/// As much of an error's text is shown.
const SHOWN: usize = 300;

impl Endpoint {
    /// Asks for a summary of a text.
    pub fn ask(&self, text: &str, instructions: Option<&str>, limit: Duration) -> Result<String, Failure> {
        if self.model.is_empty() {
            return Err(Failure::user(Code::BadSettings, "`summary.url` is set and `summary.model` is not")
                .hint("`summary.model` names the model to ask, such as \"gpt-5-mini\""));
        }
        let cannot = |why: &dyn std::fmt::Display| {
            Failure::user(Code::SummarizerFailed, format!("{} cannot be asked: {why}", self.url))
        };
        let task = match instructions {
            Some(instructions) => format!("{TASK}\n\nThe user's own instructions for the summary: {instructions}"),
            None => TASK.to_owned(),
        };
        let body = json!({
            "model": self.model,
            "messages": [{ "role": "system", "content": task }, { "role": "user", "content": text }],
            "stream": false,
        });
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .timeout_global(Some(limit))
            .http_status_as_error(false)
            // A key goes to the address that the user wrote down and to no other.
            .max_redirects(0)
            .user_agent(concat!("piton/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        let mut request = agent.post(self.address()).header("content-type", "application/json");
        if let Some(key) = self.key()? {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let mut answer = request.send(body.to_string()).map_err(|error| match error {
            ureq::Error::Timeout(_) => cannot(&format!("no answer within {} s", limit.as_secs_f32())).hint(text![
                "`summary.time-limit` or ",
                flag("--time-limit").asking("TIME"),
                " gives it more time"
            ]),
            error => cannot(&error),
        })?;
        let status = answer.status();
        let read = answer.body_mut().with_config().limit(MOST_ANSWERED as u64).read_to_string();
        let read = read.map_err(|error| cannot(&error))?;
        let document: Option<Value> = serde_json::from_str(&read).ok();
        if !status.is_success() {
            let told = document.as_ref().and_then(|document| document["error"]["message"].as_str());
            let told: String = told.unwrap_or(&read).chars().take(SHOWN).collect();
            let failure =
                Failure::user(Code::SummarizerFailed, format!("{} answered {}: {told}", self.url, status.as_u16()));
            return Err(match status.as_u16() {
                401 | 403 => failure.hint(format!("the key is taken from the variable {}", self.key_env)),
                _ => failure,
            });
        }
        let said = document.as_ref().and_then(|document| document["choices"][0]["message"]["content"].as_str());
        said.map(str::to_owned).ok_or_else(|| {
            let begin: String = read.chars().take(SHOWN).collect();
            Failure::user(
                Code::SummarizerFailed,
                format!("{} answered something else than a message: {begin}", self.url),
            )
        })
    }

    /// Where to ask: the base as providers write it, or the whole address.
    fn address(&self) -> String {
        let base = self.url.trim_end_matches('/');
        if base.ends_with("/chat/completions") { base.to_owned() } else { format!("{base}/chat/completions") }
    }

    /// The key, where there is one. Over a connection that others can read it goes to this machine only, unless the user
    /// named the variable: it may be the key of another place.
    fn key(&self) -> Result<Option<String>, Failure> {
        let Some(key) = std::env::var_os(&self.key_env).filter(|key| !key.is_empty()) else { return Ok(None) };
        if !self.key_is_meant && !is_private(&self.url) {
            return Ok(None);
        }
        match key.into_string() {
            // A header is one line.
            Ok(key) if key.trim().bytes().all(|b| b.is_ascii_graphic()) => Ok(Some(key.trim().to_owned())),
            _ => Err(Failure::user(Code::SummarizerFailed, format!("the variable {} holds no key", self.key_env))),
        }
    }
}

/// Whether nobody in between can read what is sent.
fn is_private(url: &str) -> bool {
    let Ok(url) = url.parse::<Uri>() else { return false };
    let is_here = |host: &str| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
    };
    url.scheme_str() == Some("https") || url.host().is_some_and(is_here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_made_of_a_base_or_is_whole() {
        let at = |url: &str| {
            let endpoint = Endpoint { url: url.into(), model: "m".into(), key_env: "K".into(), key_is_meant: false };
            endpoint.address()
        };
        assert_eq!(at("https://api.openai.com/v1"), "https://api.openai.com/v1/chat/completions");
        assert_eq!(at("http://localhost:11434/v1/"), "http://localhost:11434/v1/chat/completions");
        assert_eq!(at("https://x/chat/completions"), "https://x/chat/completions");
    }

    #[test]
    fn a_key_that_nobody_meant_for_an_address_goes_only_where_nobody_reads_it() {
        for (url, expected) in [
            ("https://api.openai.com/v1", true),
            ("http://127.0.0.1:1/v1", true),
            ("http://[::1]:1/v1", true),
            ("http://localhost/v1", true),
            ("http://192.168.1.5:11434/v1", false),
            ("http://localhost.example.com/v1", false),
        ] {
            assert_eq!(is_private(url), expected, "{url}");
        }
    }
}
