//! What an agent reports, in piton's words.
//!
//! Every adapter makes these. Texts that come from an agent are bounded here, prompts and messages apart: those are the
//! conversation itself.

use std::path::{Path, PathBuf};
use std::time::Duration;

use piton_model::short::one_line;

pub use piton_model::event::{Event, Report, Subagent, ToolCall};

/// What an agent reports, and how it is answered.
pub trait Events: Sync {
    /// Reads what the agent wrote to the hook's standard input.
    ///
    /// What piton does not use is read over and not kept. How much a caller reads at all is its own business.
    fn parse(&self, stdin: &[u8]) -> Result<Report, BadReport>;

    /// Whether a tool is known not to change files. One that piton does not know counts as mutating.
    fn is_reader(&self, tool: &str) -> bool;

    /// What to write to standard output, in the agent's form.
    fn reply(&self, reply: &Reply) -> Vec<u8>;

    /// How long a hook may take: who is ended by the agent cannot note a gap.
    fn time_limit(&self) -> Duration;

    /// The files and folders that belong to a session whose report names this transcript, which comes first: the agent
    /// writes them while it works, so they are never captured and never put back. None where the file does not look like a
    /// transcript: a report may name any.
    fn belongings(&self, session: &str, transcript: &Path) -> Vec<PathBuf>;
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

/// One line of JSON, as every reply is.
pub(crate) fn json_line(value: &serde_json::Value) -> Vec<u8> {
    let mut out = value.to_string().into_bytes();
    out.push(b'\n');
    out
}

/// What a prompt asks of piton: the rest of `/piton …`, trimmed; none for every other prompt.
pub fn piton_command(prompt: &str) -> Option<&str> {
    let rest = prompt.trim().strip_prefix("/piton")?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim())
}

/// Why bytes are not a report.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadReport {
    /// Something else than `{…}`, or nothing.
    #[error("a report is a JSON object")]
    NotAnObject,
    /// It begins like an object and is broken.
    #[error("the report is not JSON: {message}")]
    Json {
        /// What the parser says.
        message: String,
    },
    /// A field that must be there is not.
    #[error("the report has no `{field}`")]
    Missing {
        /// Its name.
        field: &'static str,
    },
    /// A field holds something else than it should.
    #[error("`{field}` of the report is not {expected}")]
    Wrong {
        /// Its name.
        field: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// An id that could be taken for a path.
    #[error("`{id}` is not a session id: 1 to {MAX_ID} letters, digits, `.`, `_` and `-`, and no `.` at its beginning")]
    Session {
        /// The id, made fit to be shown.
        id: String,
    },
}

/// The most bytes that an id may have.
pub const MAX_ID: usize = 200;
/// The most characters of a call's summary.
pub const MAX_SUMMARY: usize = 120;
pub(crate) const MAX_COMMAND: usize = 4000;
pub(crate) const MAX_MESSAGE: usize = 2000;
/// The most files that a call can name; a list is cut there.
pub(crate) const MAX_PATHS: usize = 1000;
/// The most bytes that a path can have; no system opens a longer one.
const MAX_PATH: usize = 4096;

/// Checks that an agent's session id can stand in a file's name.
pub fn check_session_id(id: &str) -> Result<(), BadReport> {
    if is_plain_name(id) { Ok(()) } else { Err(BadReport::Session { id: one_line(id, 60) }) }
}

/// Whether a text is made of letters, digits, `.`, `_` and `-` alone, and begins as a name does.
pub(crate) fn is_plain_name(text: &str) -> bool {
    (1..=MAX_ID).contains(&text.len())
        && !text.starts_with('.')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// What a call does in a few words: the tool's name and `detail`.
pub(crate) fn summarize(tool: &str, detail: Option<&str>) -> String {
    match detail {
        Some(detail) => one_line(&format!("{tool} {detail}"), MAX_SUMMARY),
        None => one_line(tool, MAX_SUMMARY),
    }
}

/// A path that an agent names, absolute; none where that cannot be told.
pub(crate) fn absolute(cwd: Option<&Path>, path: &str) -> Option<PathBuf> {
    // `~` is for a shell to resolve, and a URL is no file; a guess would name another file than the agent's.
    let nameable =
        (1..=MAX_PATH).contains(&path.len()) && !path.contains('\0') && !path.starts_with('~') && !path.contains("://");
    let given = Path::new(path);
    match cwd {
        _ if !nameable => None,
        _ if given.is_absolute() => Some(given.to_owned()),
        Some(cwd) => Some(cwd.join(given)),
        None => None,
    }
}

/// A path as people read it: relative where it lies beneath `cwd`.
pub(crate) fn shown<'a>(cwd: Option<&Path>, path: &'a str) -> std::borrow::Cow<'a, str> {
    let beneath = cwd.and_then(|cwd| Path::new(path).strip_prefix(cwd).ok());
    match beneath {
        Some(rest) if rest.as_os_str().is_empty() => ".".into(),
        Some(rest) => rest.to_string_lossy(),
        None => path.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_for_piton_is_told_from_every_other() {
        for (prompt, expected) in [
            ("/piton", Some("")),
            ("/piton undo last 2", Some("undo last 2")),
            ("  /piton\trewind t5 \n", Some("rewind t5")),
            ("/pitons", None),
            ("/piton:undo", None),
            ("please /piton undo", None),
            ("piton undo", None),
            ("/Piton undo", None),
            ("", None),
        ] {
            assert_eq!(piton_command(prompt), expected, "{prompt:?}");
        }
    }

    #[test]
    fn a_session_id_cannot_lead_out_of_a_folder() {
        for good in ["061f4666-9a84-4dba-88ff-a48fe7cf87c1", "my-run-1", "a.b_c", "-V1StGXR8_Z5", "7"] {
            assert_eq!(check_session_id(good), Ok(()), "{good}");
        }
        let long = "a".repeat(MAX_ID + 1);
        for bad in ["", ".", "..", "../x", ".hidden", "a/b", "a\\b", "a b", "a\0", "é", long.as_str()] {
            assert!(matches!(check_session_id(bad), Err(BadReport::Session { .. })), "{bad:?}");
        }
    }

    #[test]
    fn a_path_is_joined_to_the_cwd_and_never_guessed() {
        let cwd = Path::new("/w");
        for (path, expected) in [
            ("a.txt", Some("/w/a.txt")),
            ("../x", Some("/w/../x")),
            ("/etc/hosts", Some("/etc/hosts")),
            ("~/x", None),
            ("https://example.org/x", None),
            ("a\0b", None),
            ("", None),
        ] {
            assert_eq!(absolute(Some(cwd), path).as_deref(), expected.map(Path::new), "{path:?}");
        }
        assert_eq!(absolute(None, "a.txt"), None);
        assert_eq!(absolute(None, "/a.txt").as_deref(), Some(Path::new("/a.txt")));
    }

    #[test]
    fn a_path_is_shown_relative_only_where_it_lies_beneath_the_cwd() {
        for (path, expected) in
            [("/w/src/a.ts", "src/a.ts"), ("/w", "."), ("/w2/a", "/w2/a"), ("src/a", "src/a"), ("/etc/x", "/etc/x")]
        {
            assert_eq!(shown(Some(Path::new("/w")), path), expected);
        }
    }
}
