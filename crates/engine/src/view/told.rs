//! What an agent and its user should know at a prompt.

use std::path::PathBuf;

use piton_model::SessionId;
use piton_model::diff::ChangeKind;
use serde::{Deserialize, Serialize};

use super::PathView;

/// What happened under a session since its last turn.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Told {
    /// What the user did, oldest first, in a few words each: `undid turn 3 “make it blue”`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub did: Vec<String>,
    /// The files that are not as the agent left them because of that, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ToldFile>,
    /// Set where the user had gone on elsewhere: the prompt goes on with the old line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<LeftBehind>,
    /// Set at the first prompt of a branch that goes on in another folder than its conversation knows: that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "super::git::some_readable")]
    pub moved_from: Option<PathBuf>,
}

/// A file that is not as an agent left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldFile {
    #[serde(flatten)]
    pub path: PathView,
    /// What happened to it, all in all.
    pub kind: ChangeKind,
}

/// A session that a rewind went away from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftBehind {
    /// The first turn that was left behind.
    pub turn: u32,
    /// Where the conversation went; none where it begins anew.
    pub session: Option<SessionId>,
    /// How to go on there, word by word; none where the agent has no such command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<Vec<String>>,
}
