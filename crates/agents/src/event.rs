//! What an agent reports, in piton's terms.
//!
//! Every adapter produces these. Texts from an agent are bounded here, except for prompts and messages: those are the
//! conversation itself.

use std::path::{Path, PathBuf};
use std::time::Duration;

use piton_model::short::one_line;

pub use piton_model::event::{Event, Report, Subagent, ToolCall};

/// What an agent reports, and how it is answered.
pub trait Events: Sync {
    /// Reads what the agent wrote to the hook's standard input.
    ///
    /// Fields that piton does not use are skipped. The caller decides how much input to read at all.
    fn parse(&self, stdin: &[u8]) -> Result<Report, BadReport>;

    /// Whether a tool is known not to change files. An unknown one counts as mutating.
    fn is_reader(&self, tool: &str) -> bool;

    /// What to write to standard output, in the agent's format.
    fn reply(&self, reply: &Reply) -> Vec<u8>;

    /// How long a hook may take: one that the agent ends cannot record a gap.
    fn time_limit(&self) -> Duration;

    /// The files and folders of a session whose report names this transcript, which comes first: the agent writes them
    /// while it works, so they are never captured and never restored. Empty if the file does not look like a
    /// transcript: a report may name any.
    fn belongings(&self, session: &str, transcript: &Path) -> Vec<PathBuf>;
}

/// Piton's answer to a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The agent continues as if there were no piton.
    Nothing,
    /// One line that the user sees.
    Line(String),
    /// The answer to a prompt that was for piton: the user sees it and the model is not called.
    Answer(String),
    /// Something that the model is told together with the prompt.
    Context(String),
    Both {
        /// For the user.
        line: String,
        /// For the model.
        context: String,
    },
}

/// One line of JSON, as every reply is.
pub(crate) fn json_line(value: &serde_json::Value) -> Vec<u8> {
    let mut out = value.to_string().into_bytes();
    out.push(b'\n');
    out
}

/// The rest of `/piton …`, trimmed; `None` for every other prompt.
pub fn piton_command(prompt: &str) -> Option<&str> {
    let rest = prompt.trim().strip_prefix("/piton")?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim())
}

/// Why bytes are not a report.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadReport {
    /// Something other than `{…}`, or nothing.
    #[error("a report is a JSON object")]
    NotAnObject,
    /// It begins like an object and is malformed.
    #[error("the report is not JSON: {message}")]
    Json {
        /// From the parser.
        message: String,
    },
    /// A required field is missing.
    #[error("the report has no `{field}`")]
    Missing { field: &'static str },
    /// A field has the wrong type.
    #[error("`{field}` of the report is not {expected}")]
    Wrong { field: &'static str, expected: &'static str },
    /// The id could be mistaken for a path.
    #[error("`{id}` is not a session id: 1 to {MAX_ID} letters, digits, `.`, `_` and `-`, and no `.` at its beginning")]
    Session {
        /// Made safe for display.
        id: String,
    },
}

/// Most bytes of an id.
pub const MAX_ID: usize = 200;
/// Most characters of a call's summary.
pub const MAX_SUMMARY: usize = 120;
pub(crate) const MAX_COMMAND: usize = 4000;
pub(crate) const MAX_MESSAGE: usize = 2000;
/// Most files that a call can name; longer lists are cut.
pub(crate) const MAX_PATHS: usize = 1000;
/// Most bytes of a path; no system opens a longer one.
const MAX_PATH: usize = 4096;

/// Checks that an agent's session id can be part of a file name.
pub fn check_session_id(id: &str) -> Result<(), BadReport> {
    if is_plain_name(id) { Ok(()) } else { Err(BadReport::Session { id: one_line(id, 60) }) }
}

/// Whether a text consists only of letters, digits, `.`, `_` and `-`, and does not begin with a `.`.
pub(crate) fn is_plain_name(text: &str) -> bool {
    (1..=MAX_ID).contains(&text.len())
        && !text.starts_with('.')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// A call's short description: the tool's name and `detail`.
pub(crate) fn summarize(tool: &str, detail: Option<&str>) -> String {
    match detail {
        Some(detail) => one_line(&format!("{tool} {detail}"), MAX_SUMMARY),
        None => one_line(tool, MAX_SUMMARY),
    }
}

/// The absolute form of a path that an agent names; `None` if it cannot be determined.
pub(crate) fn absolute(cwd: Option<&Path>, path: &str) -> Option<PathBuf> {
    // `~` is for a shell to resolve, and a URL is not a file; a guess would name another file than the agent's.
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

/// A path for display: relative if it lies beneath `cwd`.
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
