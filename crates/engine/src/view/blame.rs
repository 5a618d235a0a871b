//! What surfaces show of a file's lines: who wrote each of them.

use piton_model::ownership::Owner;
use piton_model::{CheckpointId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use super::{CheckpointView, PathView};

/// A file, line by line, with who wrote each.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Blame {
    #[serde(flatten)]
    pub path: PathView,
    /// The checkpoint that has these lines; none where they are those of now.
    pub at: Option<CheckpointView>,
    /// The lines, in order.
    pub lines: Vec<BlameLine>,
    /// Where they come from, each said once.
    pub origins: Vec<LineOrigin>,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlameLine {
    /// From 1.
    pub number: u32,
    /// Its text without the end of line; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// Where it comes from: a place in the list of origins, from 0.
    pub origin: usize,
}

/// Where lines come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LineOrigin {
    /// Who wrote them, in a word.
    pub kind: OriginKind,
    /// The same with how that is known, or with everybody who may have been it.
    pub owner: Option<Owner>,
    /// The session of the turn.
    pub session: Option<SessionId>,
    /// The turn: of a step, or where it is unsure which of one turn's steps it was, of all of them.
    pub turn: Option<u32>,
    /// The step in it.
    pub step: Option<u32>,
    /// The step's tool.
    pub tool: Option<String>,
    /// What the step did, in a few words; of an operation what it is.
    pub summary: Option<String>,
    /// The first line of the turn's prompt.
    pub prompt: Option<String>,
    /// The first checkpoint that has them.
    pub checkpoint: Option<CheckpointId>,
    /// When that was made.
    pub at: Option<Timestamp>,
    /// Where the file was then, if it has moved since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<PathView>,
}

/// Who wrote lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OriginKind {
    /// A tool call.
    Step,
    You,
    /// It cannot be told.
    Unsure,
    /// A rewind, an undo or a redo: lines that it made and that were nowhere before, as merging does.
    Operation,
    /// They are in the first checkpoint.
    BeforePiton,
    /// They are in no checkpoint yet.
    Now,
}
