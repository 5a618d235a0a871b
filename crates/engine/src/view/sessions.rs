//! What surfaces show of sessions: turns, steps, changes with their owners, gaps.

use piton_model::diff::{ChangeKind, Counts};
use piton_model::ownership::{Doubt, Owner};
use piton_model::session::Gap;
use piton_model::{Cause, CheckpointId, Ending, OperationId, Rank, SessionId, Timestamp};
use piton_store::HitKind;
use serde::{Deserialize, Serialize};

use super::{CheckpointView, Cursor, FileChange, OperationView, OriginView, PathView};

/// A session in a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionView {
    /// Its id, the same in every store.
    pub id: SessionId,
    /// Which agent.
    pub agent: String,
    /// What the agent calls it.
    pub agent_id: String,
    /// What a person calls it.
    pub name: Option<String>,
    /// The first line of the first prompt that piton heard; for a branch, its parent's title and ` (branch)`.
    pub title: Option<String>,
    /// When piton first heard of it.
    pub started_at: Timestamp,
    /// When it last reported.
    pub last_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Whether it is open, as far as is known: its end was not reported, and it was heard of within a day.
    pub live: bool,
    /// Whether its agent is at work: it is in the middle of a turn.
    #[serde(default)]
    pub running: bool,
    /// The number of its last turn.
    pub turns: u32,
    /// How many checkpoints it has here.
    pub checkpoints: u64,
    pub changes: Counts,
    /// Captures that were due and not made.
    pub gaps: u64,
    /// The agent's own conversation file.
    pub transcript: Option<String>,
    /// Set if it is a branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<OriginView>,
    /// Its rank, if a person gave it one.
    #[serde(default, skip_serializing_if = "Rank::is_plain")]
    pub rank: Rank,
    /// Whether the user is in this session: it reported last, or an operation switched to it since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub current: bool,
}

/// A list of sessions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sessions {
    /// The one that reported last first.
    pub sessions: Vec<SessionView>,
}

/// A turn and what was done in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TurnView {
    pub session: SessionId,
    /// From 1.
    pub number: u32,
    /// The target just before it, such as `t5`.
    pub target: String,
    /// The user's prompt.
    pub prompt: Option<String>,
    pub at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// `None` while it runs.
    pub ending: Option<Ending>,
    /// The agent's last words.
    pub message: Option<String>,
    /// The checkpoint just before it.
    pub checkpoint: Option<CheckpointId>,
    /// Its net changes.
    pub changes: Counts,
    /// The paths that it changed, with the net change of each.
    pub files: Vec<ChangedFile>,
    /// Its tool calls.
    pub steps: Vec<StepView>,
    /// What the user changed before it and while it ran.
    pub yours: Vec<ChangedFile>,
    /// How much more the user changed, if it was too much to list.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub yours_unlisted: Counts,
    /// Changes by an unknown author.
    pub unsure: Vec<ChangedFile>,
    /// How many more of those there are, if it was too much to list.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub unsure_unlisted: Counts,
    /// Captures that were due and not made.
    pub gaps: Vec<GapView>,
    /// Set if not all of its changes are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Unknown>,
    /// A conversation rewind that is in effect went back past it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub future: bool,
    /// The operation that did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_by: Option<OperationId>,
    /// How much of what it changed the user accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<AcceptedPart>,
    /// How much of what it changed for sure was taken back, where any of it was. Only a timeline says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone: Option<Undone>,
    /// The agent compacted its conversation in this turn: it knows what was said before as a summary only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compacted: bool,
    /// What a person calls the checkpoint just before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What a person noted on that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotation: Option<String>,
}

/// How much was taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undone {
    Whole,
    Partly,
}

/// How much of something is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AcceptedPart {
    All,
    Some,
}

/// Changes that the user accepted, or no longer accepts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AcceptedChanges {
    /// Those that were not so before, each path once.
    pub files: Vec<ChangedFile>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub taken_back: bool,
    /// Everything that was meant is accepted already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub already: bool,
}

/// Why a turn's changes are not known, or not all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum Unknown {
    /// It began when another folder was at this path.
    OtherFolder,
    /// It was under way when this folder was captured for the first time.
    BeforeFirstCapture,
    /// A checkpoint that was made in it is damaged in the store.
    Damaged,
    /// Nothing was captured after its last tool, as where `capture.automatic` is off: the next capture finds what it changed.
    NotCaptured,
    /// Something in it was not captured.
    Gap {
        /// The first of these.
        reason: String,
    },
}

/// A turn whose changes are not all known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownTurn {
    pub turn: u32,
    #[serde(flatten)]
    pub why: Unknown,
}

/// A tool call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepView {
    /// From 1 in its turn.
    pub number: u32,
    /// The target just before it, such as `t5.2`.
    pub target: String,
    /// What the agent calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    pub tool: String,
    /// A few words about what it did.
    pub summary: String,
    /// The shell command, where it is one.
    pub command: Option<String>,
    /// Whether it continued in the background.
    pub background: bool,
    /// The subagent that called the tool.
    pub subagent: Option<String>,
    /// How it ended; none while it runs.
    pub ending: Option<Ending>,
    /// When it began.
    pub at: Timestamp,
    /// The checkpoint just before it.
    pub checkpoint: Option<CheckpointId>,
    /// What it changed.
    pub changes: Counts,
    /// The paths that it changed.
    pub files: Vec<ChangedFile>,
}

/// A changed path with its owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangedFile {
    #[serde(flatten)]
    pub path: PathView,
    pub kind: ChangeKind,
    pub owner: Owner,
    /// Why that is not sure, where it is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<DoubtView>,
}

/// Why nobody can tell whose a change is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DoubtView {
    #[serde(flatten)]
    pub doubt: Doubt,
    /// The tool that may have made it, such as `Bash npm test`, where it is the only one and was looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

impl From<Doubt> for DoubtView {
    fn from(doubt: Doubt) -> Self {
        Self { doubt, tool: None }
    }
}

/// A capture that was due and not made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GapView {
    /// Its turn; 0 before the first.
    pub turn: u32,
    /// The step, if it concerns one.
    pub step: Option<u32>,
    /// The cause that the checkpoint would have had.
    pub cause: Cause,
    pub reason: String,
    pub at: Timestamp,
}

impl From<&Gap> for GapView {
    fn from(gap: &Gap) -> Self {
        Self { turn: gap.place.turn, step: gap.place.step, cause: gap.cause, reason: gap.reason.clone(), at: gap.at }
    }
}

/// One entry of the timeline.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "kebab-case")]
pub enum LogEntry {
    /// A turn of a session.
    Turn(Box<TurnView>),
    /// A checkpoint made by a person, or the very first one.
    Checkpoint {
        #[serde(flatten)]
        checkpoint: Box<CheckpointView>,
        /// What changed since the one before it, where somebody noted who did it.
        files: Vec<ChangedFile>,
    },
    /// A rewind, an undo, a redo.
    Operation(OperationView),
    /// The user's changes outside every turn.
    Yours {
        /// The checkpoint that found it.
        checkpoint: Box<CheckpointView>,
        /// Empty if it was too much to list; then the checkpoint has the counts.
        files: Vec<ChangedFile>,
    },
    /// A gap before the first turn of a session; others are listed with their turns.
    Gap {
        session: SessionId,
        #[serde(flatten)]
        gap: GapView,
    },
}

/// The timeline, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Timeline {
    pub entries: Vec<LogEntry>,
    /// How many entries there are in all.
    pub total: u64,
    /// How many entries are older than these.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub older: u64,
    /// Where the next page begins, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Cursor>,
    /// Set if the requested page no longer exists, because its records changed: this is the first page.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub begin_again: bool,
    /// How many turns are future turns; they are among the entries only if requested.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub future: u64,
    /// The sessions of these entries; the one that reported last first.
    pub sessions: Vec<SessionView>,
}

/// A numbered change of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NumberedChange {
    /// From 1, oldest first; none for the user's own, so that the others keep their numbers whether these are listed or
    /// not.
    pub number: Option<u32>,
    #[serde(flatten)]
    pub change: ChangedFile,
    /// When it was found.
    pub at: Timestamp,
    pub turn: u32,
    /// The step, if known.
    pub step: Option<u32>,
    /// The step's tool.
    pub tool: Option<String>,
    /// The checkpoint that has it; `None` if it is not captured yet.
    pub checkpoint: Option<CheckpointId>,
    /// Whether an undo, or a rewind to before it, took it back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undone: bool,
}

/// What a session changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionChanges {
    pub session: SessionView,
    /// Oldest first.
    pub changes: Vec<NumberedChange>,
    /// The net effect, path by path, of the session's own and unsure changes that are in effect.
    pub summary: Counts,
    /// How much more the session's tools changed, if it was too much to list.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub unlisted: Counts,
    /// What the user changed where that was too much to list; only where the user's own are asked for.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub yours_unlisted: Counts,
    /// Turns whose changes are not all known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<UnknownTurn>,
}

/// A path that a checkpoint changed, with its owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwnedFile {
    #[serde(flatten)]
    pub change: FileChange,
    /// Who did it, where that was noted: not in a first checkpoint, nor where very much changed at once.
    pub owner: Option<Owner>,
}

/// Something that a search found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Found {
    pub kind: HitKind,
    /// The target to type for that moment.
    pub target: Option<String>,
    pub session: Option<SessionId>,
    /// The text around the words.
    pub text: String,
    /// Where the words are in `text`: byte ranges.
    pub marks: Vec<(usize, usize)>,
    pub at: Option<Timestamp>,
}

/// What a search found, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchResult {
    pub words: Vec<String>,
    pub found: Vec<Found>,
}

/// A new annotation of a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Annotated {
    /// The annotated checkpoint.
    pub checkpoint: CheckpointView,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
