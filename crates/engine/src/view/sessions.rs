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
    /// The first prompt that piton heard, its first line; of a branch, what its parent is called and ` (branch)`.
    pub title: Option<String>,
    /// When piton first heard of it.
    pub started_at: Timestamp,
    /// When it last reported.
    pub last_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Whether it is at work, as far as anybody knows.
    pub live: bool,
    /// The number of its last turn.
    pub turns: u32,
    /// How many checkpoints it has here.
    pub checkpoints: u64,
    /// What it changed here.
    pub changes: Counts,
    /// Captures that should have been and were not.
    pub gaps: u64,
    /// The agent's own conversation file.
    pub transcript: Option<String>,
    /// How it began, where it is a branch of another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<OriginView>,
    /// What a person made of it.
    #[serde(default, skip_serializing_if = "Rank::is_plain")]
    pub rank: Rank,
    /// Whether this is where the user is: the session that reported last, or that was gone to since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub current: bool,
}

/// A list of sessions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sessions {
    /// The one that reported last comes first.
    pub sessions: Vec<SessionView>,
}

/// A turn and what was done in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TurnView {
    /// Whose.
    pub session: SessionId,
    /// From 1.
    pub number: u32,
    /// What to type to mean the moment just before it: `t5`.
    pub target: String,
    /// What the user said.
    pub prompt: Option<String>,
    /// When.
    pub at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How; none while it runs.
    pub ending: Option<Ending>,
    /// The agent's last words.
    pub message: Option<String>,
    /// The checkpoint of just before it.
    pub checkpoint: Option<CheckpointId>,
    /// What it changed, taken together.
    pub changes: Counts,
    /// The paths that it changed, taken together.
    pub files: Vec<ChangedFile>,
    /// Its tool calls.
    pub steps: Vec<StepView>,
    /// What the user changed before it and while it ran.
    pub yours: Vec<ChangedFile>,
    /// How much more the user changed where that was too much to list.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub yours_unlisted: Counts,
    /// What changed and nobody knows by whom.
    pub unsure: Vec<ChangedFile>,
    /// How much more of that there is where it was too much to list.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub unsure_unlisted: Counts,
    /// Captures that should have been and were not.
    pub gaps: Vec<GapView>,
    /// Why not all that it changed is known, where that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Unknown>,
    /// A rewind of the conversation went back past it, and stands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub future: bool,
    /// The operation that did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_by: Option<OperationId>,
}

/// Why it is not known what a turn changed, or not all of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum Unknown {
    /// It began in another folder that stood at this path.
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

/// A turn of which not all is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownTurn {
    /// Its number.
    pub turn: u32,
    /// Why.
    #[serde(flatten)]
    pub why: Unknown,
}

/// A tool call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepView {
    /// From 1 in its turn.
    pub number: u32,
    /// What to type to mean the moment just before it: `t5.2`.
    pub target: String,
    /// What the agent calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The tool.
    pub tool: String,
    /// What it did, in a few words.
    pub summary: String,
    /// The shell command, where it is one.
    pub command: Option<String>,
    /// Whether it went on in the background.
    pub background: bool,
    /// The subagent that called it.
    pub subagent: Option<String>,
    /// How it ended; none while it runs.
    pub ending: Option<Ending>,
    /// When it began.
    pub at: Timestamp,
    /// The checkpoint of just before it.
    pub checkpoint: Option<CheckpointId>,
    /// What it changed.
    pub changes: Counts,
    /// The paths that it changed.
    pub files: Vec<ChangedFile>,
}

/// A changed path with its owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// Where.
    #[serde(flatten)]
    pub path: PathView,
    /// What happened.
    pub kind: ChangeKind,
    /// Who did it, and how that is known.
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

/// A capture that should have been and was not.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GapView {
    /// The turn that it is in; 0 before the first.
    pub turn: u32,
    /// The step, where it is about one.
    pub step: Option<u32>,
    /// What it would have been.
    pub cause: Cause,
    /// Why it was not.
    pub reason: String,
    /// When.
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
    /// A checkpoint that a person made, or the first of all.
    Checkpoint {
        /// Which.
        #[serde(flatten)]
        checkpoint: Box<CheckpointView>,
        /// What changed since the one before it, where somebody noted who did it.
        files: Vec<ChangedFile>,
    },
    /// A rewind, an undo, a redo.
    Operation(OperationView),
    /// What the user changed outside every turn.
    Yours {
        /// The checkpoint that found it.
        checkpoint: Box<CheckpointView>,
        /// What; nothing where it was too much to list, and then the checkpoint says how much.
        files: Vec<ChangedFile>,
    },
    /// A gap before the first turn of a session; the others are with their turns.
    Gap {
        /// Whose.
        session: SessionId,
        /// What.
        #[serde(flatten)]
        gap: GapView,
    },
}

/// The timeline, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Timeline {
    /// What happened.
    pub entries: Vec<LogEntry>,
    /// How many entries there are in all.
    pub total: u64,
    /// How many there are that are older than these.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub older: u64,
    /// Where the next page begins, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Cursor>,
    /// Set where the page that was asked for is one of records that are no longer what they were: this is the first page.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub begin_again: bool,
    /// How many turns are future turns; they are among the entries only where that was asked for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub future: u64,
    /// The sessions that entries are of; the one that reported last comes first.
    pub sessions: Vec<SessionView>,
}

/// One change of a session, numbered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NumberedChange {
    /// From 1, oldest first; none for the user's own, so that the others keep their numbers whether these are listed or
    /// not.
    pub number: Option<u32>,
    /// What.
    #[serde(flatten)]
    pub change: ChangedFile,
    /// When it was found.
    pub at: Timestamp,
    /// The turn.
    pub turn: u32,
    /// The step, where that is known.
    pub step: Option<u32>,
    /// The step's tool.
    pub tool: Option<String>,
    /// The checkpoint that has it; none where nobody has captured it yet.
    pub checkpoint: Option<CheckpointId>,
    /// It was taken back: by an undo, or by a rewind that went past it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undone: bool,
}

/// What a session changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionChanges {
    /// Which.
    pub session: SessionView,
    /// Oldest first.
    pub changes: Vec<NumberedChange>,
    /// The session's own and the unsure ones that are in effect, taken together, path by path.
    pub summary: Counts,
    /// What the session's tools changed besides, where that was too much to list.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub unlisted: Counts,
    /// What the user changed where that was too much to list; only where the user's own are asked for.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub yours_unlisted: Counts,
    /// The turns of which it is not known what they changed, or not all of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<UnknownTurn>,
}

/// A path that a checkpoint changed, with its owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwnedFile {
    /// What.
    #[serde(flatten)]
    pub change: FileChange,
    /// Who did it, where that was noted: not in a first checkpoint, nor where very much changed at once.
    pub owner: Option<Owner>,
}

/// Something that a search found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Found {
    /// What it is.
    pub kind: HitKind,
    /// What to type to mean that moment.
    pub target: Option<String>,
    /// The session that it is of.
    pub session: Option<SessionId>,
    /// The text around the words.
    pub text: String,
    /// Where in `text` words were found: from and to, in bytes.
    pub marks: Vec<(usize, usize)>,
    /// When.
    pub at: Option<Timestamp>,
}

/// What a search found, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchResult {
    /// The words.
    pub words: Vec<String>,
    /// What was found.
    pub found: Vec<Found>,
}

/// A note that was made on a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Annotated {
    /// The checkpoint, with it.
    pub checkpoint: CheckpointView,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
