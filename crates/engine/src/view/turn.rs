//! One turn, or one step of it: what it changed, with contents.

use piton_model::SessionId;
use piton_model::diff::{ChangeKind, Counts};
use piton_model::ownership::Owner;
use serde::{Deserialize, Serialize};

use super::{CheckpointView, Diff, FileDiff, OperationView, SessionView, TurnView};

/// A turn, or one step of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TurnShown {
    #[serde(flatten)]
    pub turn: TurnView,
    /// The step, where only that one is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// What it changed, in the order of paths. A path that somebody else changed in between is listed more than once.
    pub diffs: Vec<TurnDiff>,
    /// The checkpoint just before it, with its name and what is noted on it; none where nothing was captured then.
    pub before: Option<CheckpointView>,
    /// The last checkpoint of it.
    pub after: Option<CheckpointView>,
    /// Whether it runs as far as anybody knows: what it does from now on is not in here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub running: bool,
    /// How many of `diffs` are no longer in effect.
    pub taken_back: u64,
    /// The operation that took the last of those back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_back_by: Option<OperationView>,
}

/// What became of one path.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TurnDiff {
    #[serde(flatten)]
    pub file: FileDiff,
    pub owner: Owner,
    /// It may be somebody else's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsure: bool,
    /// It was taken back, by an undo or by a rewind to before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undone: bool,
}

impl TurnShown {
    /// What it did for sure, as a difference between two moments. What may be somebody else's is in `unsure` alone.
    pub fn diff(&self) -> Diff {
        let (unsure, sure): (Vec<_>, Vec<_>) = self.diffs.iter().partition(|one| one.unsure);
        Diff {
            from: self.before.clone(),
            to: self.after.clone(),
            changes: counted(&sure),
            files: sure.into_iter().map(|one| one.file.clone()).collect(),
            not_compared: Vec::new(),
            unreadable: Vec::new(),
            since: None,
            turn: Some(self.target()),
            unsure: unsure.into_iter().map(|one| one.file.change.path.clone()).collect(),
        }
    }

    /// What to type to mean it, in its own session: `t5`, `t5.2`.
    pub fn target(&self) -> String {
        match self.step {
            Some(step) => format!("t{}.{step}", self.turn.number),
            None => self.turn.target.clone(),
        }
    }
}

fn counted(diffs: &[&TurnDiff]) -> Counts {
    let of = |kind| diffs.iter().filter(|one| one.file.change.kind == kind).count() as u64;
    Counts { created: of(ChangeKind::Created), modified: of(ChangeKind::Modified), deleted: of(ChangeKind::Deleted) }
}

/// The moment since which changes are shown where nobody names one: when the last turn began, or the rewind that came after it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SinceView {
    pub checkpoint: CheckpointView,
    /// The last turn, where that is what began then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<SinceTurn>,
    /// The rewind, where that is what ended then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewind: Option<OperationView>,
    /// What changed since.
    pub changes: Counts,
}

/// A turn by its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinceTurn {
    pub session: SessionId,
    pub number: u32,
    pub prompt: Option<String>,
}

/// What a shell offers to complete a target, a session or an operation with.
#[derive(Clone, Debug)]
pub struct Offered {
    /// The newest first.
    pub turns: Vec<SinceTurn>,
    /// Of the turn that is typed: number and summary.
    pub steps: Vec<(u32, String)>,
    /// Names of checkpoints, each with what is noted on it.
    pub names: Vec<(String, String)>,
    pub sessions: Vec<SessionView>,
    pub operations: Vec<OperationView>,
}
