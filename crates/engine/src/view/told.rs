//! What an agent and its user should know at a prompt.

use std::path::PathBuf;

use piton_model::SessionId;
use piton_model::diff::ChangeKind;
use serde::{Deserialize, Serialize};

use super::PathView;

/// What happened under a session since its last turn.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Told {
    /// What the user did, oldest first, such as `undid turn 3 “make it blue”`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub did: Vec<String>,
    /// The files that therefore differ from what the agent left, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ToldFile>,
    /// Set if the user had moved on to a branch: new prompts here continue the old session, not the branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<LeftBehind>,
    /// The folder that the conversation knows, at the first prompt of a branch that continues in another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "super::git::some_readable")]
    pub moved_from: Option<PathBuf>,
}

/// A file that differs from what an agent left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldFile {
    #[serde(flatten)]
    pub path: PathView,
    /// The net change.
    pub kind: ChangeKind,
}

/// A session that a rewind left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftBehind {
    /// The first turn that is no longer part of the conversation.
    pub turn: u32,
    /// Where the conversation went; `None` if it starts anew.
    pub session: Option<SessionId>,
    /// The command that continues there, word by word; `None` if the agent has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<Vec<String>>,
}
