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
    /// The checkpoint that has these lines; `None` for the current file.
    pub at: Option<CheckpointView>,
    /// The lines, in order.
    pub lines: Vec<BlameLine>,
    /// Where the lines come from, without duplicates.
    pub origins: Vec<LineOrigin>,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlameLine {
    /// From 1.
    pub number: u32,
    /// Its text without the end of line; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// Index into the list of origins.
    pub origin: usize,
}

/// Where lines come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LineOrigin {
    pub kind: OriginKind,
    /// The owner with its evidence, or with all candidates.
    pub owner: Option<Owner>,
    /// The session of the turn.
    pub session: Option<SessionId>,
    /// The step's turn; also set if it is unsure which step of that turn it was.
    pub turn: Option<u32>,
    /// The step in it.
    pub step: Option<u32>,
    /// The step's tool.
    pub tool: Option<String>,
    /// A few words about what the step, or the operation, did.
    pub summary: Option<String>,
    /// The first line of the turn's prompt.
    pub prompt: Option<String>,
    /// The first checkpoint that has them.
    pub checkpoint: Option<CheckpointId>,
    /// When that checkpoint was made.
    pub at: Option<Timestamp>,
    /// The file's path then, if it was moved since.
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
    /// Nobody can tell.
    Unsure,
    /// A rewind, an undo or a redo created them, for example by merging.
    Operation,
    /// Already in the first checkpoint.
    BeforePiton,
    /// In no checkpoint yet.
    Now,
}
