//! Plain values that every surface shows: the command line's `--json` and the HTTP API print these same types.

mod archive;
mod blame;
mod branches;
mod conversation;
mod diff;
mod file;
mod git;
mod glance;
mod notice;
mod operations;
mod recovered;
mod rules;
mod running;
mod sessions;
mod status;
mod told;
mod turn;
mod verification;

use std::path::{Path, PathBuf};

use piton_host::UnreadRules;
use piton_model::diff::Counts;
use piton_model::git::GitState;
use piton_model::{Cause, CheckpointId, OperationId, SessionId, SkipReason, Timestamp, TurnContext, WorkspacePath};
use piton_store::CheckpointRow;
use serde::{Deserialize, Serialize, Serializer};

pub use archive::{PrivatePaths, RenamedName, SessionExported, SessionImported};
pub use blame::{Blame, BlameLine, LineOrigin, OriginKind};
pub use branches::{
    BranchDeletion, BranchRestored, BranchStays, CheckoutOutcome, Comparison, ForkOutcome, Parted, Promoted, Renamed,
    WorktreeView,
};
pub use conversation::{Conversation, ConversationOutcome, ConversationPlanView, OriginView};
pub use conversation::{SaidSource, SaidView, Summarized, SummaryView};
pub use diff::{Diff, EntryView, FileChange, FileDiff};
pub use file::{FileView, Files};
pub use git::{CopyView, Exported, ExportedCommit, GitPlanView, KeptGit, KeptGitState};
pub use glance::Glance;
pub use notice::{BadCursor, Cursor, Notice, NumberedNotice, Since};
pub(crate) use operations::Along;
pub use operations::{
    AlongView, Also, CommandView, ConflictView, HeadMoved, OperationOutcome, OperationStatus, OperationView,
    Operations, OutsideAct, OutsideView, PlanView, TornView,
};
pub use recovered::{LeftoverView, Recovered};
pub use rules::{Accepted, HeldSetting, HeldView, Waiting};
pub use running::{Activity, Interrupted, RunningView};
pub use sessions::{
    AcceptedChanges, AcceptedPart, Annotated, ChangedFile, DoubtView, Found, GapView, LogEntry, NumberedChange,
    OwnedFile, SearchResult, SessionChanges, SessionView, Sessions, StepView, Timeline, TurnView, Undone, Unknown,
    UnknownTurn,
};
pub use status::{FolderState, Initialized, RewoundView, Status, UnreadStore};
pub use told::{LeftBehind, Told, ToldFile};
pub use turn::{Offered, SinceTurn, SinceView, TurnDiff, TurnShown};
pub use verification::{DamageView, Verification};

/// A path: readable, and in base64 as well where it is not UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathView {
    /// For people.
    pub path: String,
    /// The exact bytes, only where `path` cannot say them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_b64: Option<String>,
}

impl PathView {
    /// The path itself.
    pub fn exact(&self) -> Option<WorkspacePath> {
        match &self.path_b64 {
            Some(b64) => WorkspacePath::new(piton_model::path::decode_base64(b64).ok()?).ok(),
            None => WorkspacePath::new(self.path.as_bytes()).ok(),
        }
    }
}

impl PathView {
    /// A path from the file system's root, as files outside the workspace have it: it begins with a slash.
    pub(crate) fn outside(path: &WorkspacePath) -> Self {
        Self { path: shown(path), path_b64: None }
    }
}

/// A path from the file system's root, for people.
pub(crate) fn shown(path: &WorkspacePath) -> String {
    format!("/{}", path.display())
}

impl From<&WorkspacePath> for PathView {
    fn from(path: &WorkspacePath) -> Self {
        Self { path: path.display(), path_b64: path.base64() }
    }
}

/// A path of the system, for people: a folder whose name is not UTF-8 must not keep a document from being written.
fn readable<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&path.display())
}

/// The same for several.
fn all_readable<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(paths.iter().map(|path| path.display().to_string()))
}

/// Something that was left out, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedView {
    #[serde(flatten)]
    pub path: PathView,
    pub reason: SkipReason,
    /// Set where a rule leaves out what is there now, and what was there before is captured: a rewind to that moment brings it
    /// back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_captured: bool,
}

impl From<&(WorkspacePath, SkipReason)> for SkippedView {
    fn from((path, reason): &(WorkspacePath, SkipReason)) -> Self {
        Self { path: path.into(), reason: *reason, was_captured: false }
    }
}

impl SkippedView {
    /// A repository's own data, by the folder that it is in. It has no path of a workspace's own.
    pub(crate) fn git_of(folder: &WorkspacePath) -> Self {
        let path = if folder.is_root() { ".git".to_owned() } else { format!("{}/.git", folder.display()) };
        let path = PathView { path, path_b64: None };
        Self { path, reason: SkipReason::GitFolder, was_captured: false }
    }
}

/// An ignore file that cannot be read (a pipe, a huge file, no permission), so its rules are not applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadRulesView {
    /// Absolute.
    #[serde(serialize_with = "readable")]
    pub path: PathBuf,
    /// In a few words.
    pub reason: String,
}

impl From<&UnreadRules> for UnreadRulesView {
    fn from(unread: &UnreadRules) -> Self {
        Self { path: unread.path.clone(), reason: unread.why.clone() }
    }
}

/// A checkpoint in a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckpointView {
    pub id: CheckpointId,
    pub name: Option<String>,
    pub annotation: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Why it exists.
    pub cause: Cause,
    pub parent: Option<CheckpointId>,
    /// Counts the folders that stood at the workspace's path; checkpoints of one line are of one folder.
    pub line: u32,
    /// How it differs from its parent.
    pub changes: Counts,
    /// How many paths it skipped.
    pub skipped_count: u64,
    /// The operation it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationId>,
    /// Where in which session it was made.
    #[serde(flatten)]
    pub place: Option<TurnContext>,
    /// A few words about what it was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Made by a person, so retention never removes it.
    pub pinned: bool,
    /// Bytes of all files in its tree, each counted in full, as they would be written out; not what the store takes for them.
    /// Symlinks, folders and skipped paths count as nothing. Only `History::measure` fills it in; none where a listing is
    /// damaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

impl From<&CheckpointRow> for CheckpointView {
    fn from(row: &CheckpointRow) -> Self {
        let c = &row.checkpoint;
        Self {
            id: c.id.clone(),
            name: row.names.first().cloned(),
            // An empty annotation removes the previous one.
            annotation: row.annotation.clone().filter(|text| !text.is_empty()),
            created_at: c.created_at,
            cause: c.cause,
            parent: c.parent.clone(),
            line: c.line,
            changes: c.changes,
            skipped_count: c.skipped,
            operation: c.operation.clone(),
            place: c.place.clone(),
            description: c.description.clone(),
            pinned: c.cause == Cause::Manual,
            size: None,
        }
    }
}

/// The result of an agent's report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Observed {
    pub session: SessionId,
    /// The turn; 0 before the first.
    pub turn: u32,
    /// Set if the event is about a step.
    pub step: Option<u32>,
    /// Whether this event began the turn.
    pub new_turn: bool,
    /// The checkpoint that was made.
    pub checkpoint: Option<CheckpointView>,
    /// Why a checkpoint that was due was not made.
    pub gap: Option<String>,
    /// The session's first gap, if this event found it: the user is told once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_gap: Option<String>,
    /// Linked worktrees found by the capture: each is a workspace of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty", serialize_with = "all_readable")]
    pub worktrees: Vec<PathBuf>,
    /// Whether time ran out: reading ahead lets the next capture get further.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub out_of_time: bool,
    /// The session works elsewhere; this workspace is only captured along.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub along: bool,
    /// What to tell the agent and its user at a prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Told>,
    /// Changed rules and settings that wait for the user's agreement; only filled in at prompts and session starts.
    #[serde(default, skip_serializing_if = "Waiting::is_empty")]
    pub waiting: Waiting,
    /// Interrupted operations that this event finished.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recovered: Vec<Recovered>,
    /// Whether some of what was captured is gone or incomplete: `verify` names it. Looked for at prompts and when a session
    /// starts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub history_lost: bool,
    /// What the turn that just ended changed here, where anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_changes: Option<TurnChanges>,
    /// Large files that this event's capture was the first to have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub large: Vec<LargeFile>,
}

/// What a turn changed, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnChanges {
    /// The first of the paths.
    pub paths: Vec<PathView>,
    /// How many there are.
    pub total: u64,
}

/// A checkpoint with what it skipped.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckpointDetail {
    /// The same as in a list.
    #[serde(flatten)]
    pub checkpoint: CheckpointView,
    /// What it skipped.
    pub skipped: Vec<SkippedView>,
    /// Files that changed during every reading; the last reading was kept.
    pub unsettled: Vec<PathView>,
}

/// The result of a capture.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Captured {
    pub checkpoint: CheckpointDetail,
    /// Ignore files that were not applied, because they cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread_rules: Vec<UnreadRulesView>,
    /// Paths in this checkpoint that the previous one had skipped, with the reason it had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_in: Vec<SkippedView>,
    /// Large files that came with it, or grew so large.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub large: Vec<LargeFile>,
}

/// A file of which every changed version takes much room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargeFile {
    #[serde(flatten)]
    pub path: PathView,
    /// In bytes.
    pub size: u64,
}

/// A checkpoint and what changed in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Shown {
    pub checkpoint: CheckpointDetail,
    /// What changed since its parent, and who did it.
    pub files: Vec<OwnedFile>,
    /// The agent's own id of the tool call that the checkpoint was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Captures missing from the same turn: what they would have found may be part of this checkpoint.
    pub gaps: Vec<GapView>,
    /// The repository's state then, where there is one.
    pub git: Option<GitState>,
    /// Folders whose listing is damaged in the store, so what changed in them is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<PathView>,
}

/// Checkpoints, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Log {
    pub checkpoints: Vec<CheckpointView>,
    /// How many there are in all.
    pub total: u64,
}
