//! Plain values that every surface shows: the command line's `--json` and the HTTP API print these same types.

mod archive;
mod blame;
mod branches;
mod conversation;
mod git;
mod operations;
mod rules;
mod running;
mod sessions;
mod told;

use std::path::{Path, PathBuf};

use piton_host::UnreadRules;
use piton_model::diff::{Change, ChangeKind, Counts};
use piton_model::git::GitState;
use piton_model::session::StepRef;
use piton_model::text::Hunk;
use piton_model::{
    Cause, CheckpointId, Entry, ObjectId, OperationId, Place, SessionId, SkipReason, Timestamp, WorkspaceId,
    WorkspacePath,
};
use piton_store::CheckpointRow;
use serde::{Deserialize, Serialize, Serializer};

pub use archive::{RenamedName, SessionExported, SessionImported};
pub use blame::{Blame, BlameLine, LineOrigin, OriginKind};
pub use branches::{
    BranchDeletion, BranchRestored, BranchStays, Comparison, ForkOutcome, Parted, Promoted, Renamed, WorktreeView,
};
pub use conversation::{Conversation, ConversationOutcome, ConversationPlanView, OriginView};
pub use conversation::{SaidSource, SaidView, Summarized, SummaryView};
pub use git::{Exported, ExportedCommit, GitPlanView, KeptGit, KeptGitState};
pub(crate) use operations::Along;
pub use operations::{
    AlongView, Also, CommandView, ConflictView, HeadMoved, OperationOutcome, OperationStatus, OperationView,
    Operations, OutsideAct, OutsideView, PlanView,
};
pub use rules::{Accepted, HeldSetting, HeldView, Waiting};
pub use running::{Activity, Interrupted, RunningView};
pub use sessions::{
    Annotated, ChangedFile, Found, GapView, LogEntry, NumberedChange, OwnedFile, SearchResult, SessionChanges,
    SessionView, Sessions, StepView, Timeline, TurnView, Unknown, UnknownTurn,
};
pub use told::{LeftBehind, Told, ToldFile};

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
    /// Where.
    #[serde(flatten)]
    pub path: PathView,
    /// Why.
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

/// An ignore file that cannot be read (a pipe, a huge file, no permission): its rules do not hold.
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
    /// Its id.
    pub id: CheckpointId,
    /// What it is called.
    pub name: Option<String>,
    /// What is noted on it.
    pub annotation: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Why it exists.
    pub cause: Cause,
    /// The checkpoint it follows.
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
    pub place: Option<Place>,
    /// What it is of, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Kept whatever retention says: a person made it.
    pub pinned: bool,
}

impl From<&CheckpointRow> for CheckpointView {
    fn from(row: &CheckpointRow) -> Self {
        let c = &row.checkpoint;
        Self {
            id: c.id.clone(),
            name: row.names.first().cloned(),
            // An empty one takes the one before it away.
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
        }
    }
}

/// What came of an agent's report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Observed {
    /// The session.
    pub session: SessionId,
    /// The turn; 0 before the first.
    pub turn: u32,
    /// The step, where the event is about one.
    pub step: Option<u32>,
    /// Whether this event began the turn.
    pub new_turn: bool,
    /// The checkpoint that was made.
    pub checkpoint: Option<CheckpointView>,
    /// Why none was made that should have been.
    pub gap: Option<String>,
    /// The first gap of the session, if it came to light just now: its user should hear of it once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_gap: Option<String>,
    /// The worktrees in this workspace that the capture found: each is a workspace of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty", serialize_with = "all_readable")]
    pub worktrees: Vec<PathBuf>,
    /// Whether the gap is for want of time: reading ahead lets the next capture get further.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub out_of_time: bool,
    /// The session works elsewhere, and this workspace is only captured along.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub along: bool,
    /// What the agent and its user should know at a prompt, where anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Told>,
    /// Changed rules and settings that wait for the user's word; asked at prompts and when a session starts.
    #[serde(default, skip_serializing_if = "Waiting::is_empty")]
    pub waiting: Waiting,
    /// Operations that had been cut off and that this event ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recovered: Vec<Recovered>,
    /// Whether some of what was captured is gone or incomplete: `verify` names it. Looked for at prompts and when a session
    /// starts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub history_lost: bool,
}

/// A checkpoint with what it left out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckpointDetail {
    /// What a list shows.
    #[serde(flatten)]
    pub checkpoint: CheckpointView,
    /// What it skipped.
    pub skipped: Vec<SkippedView>,
    /// Files that changed at each reading; their last reading was kept.
    pub unsettled: Vec<PathView>,
}

/// A capture.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Captured {
    /// What it made.
    pub checkpoint: CheckpointDetail,
    /// Ignore files that had no say, because they cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread_rules: Vec<UnreadRulesView>,
    /// What the checkpoint before it had left out, and why, and this one has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_in: Vec<SkippedView>,
}

/// A checkpoint and what changed in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Shown {
    /// Which.
    pub checkpoint: CheckpointDetail,
    /// What changed since its parent, and who did it.
    pub files: Vec<OwnedFile>,
    /// Captures of the same turn that should have been and were not: what they would have held may be in this one.
    pub gaps: Vec<GapView>,
    /// The repository's state then, where there is one.
    pub git: Option<GitState>,
    /// Folders whose listing is damaged in the store: what changed in them is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<PathView>,
}

/// One path's difference, without its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Where.
    #[serde(flatten)]
    pub path: PathView,
    /// What happened.
    pub kind: ChangeKind,
    /// What was there.
    pub before: Option<EntryView>,
    /// What is there.
    pub after: Option<EntryView>,
}

impl From<&Change> for FileChange {
    fn from(change: &Change) -> Self {
        Self {
            path: (&change.path).into(),
            kind: change.kind(),
            before: change.before.as_ref().map(EntryView::from),
            after: change.after.as_ref().map(EntryView::from),
        }
    }
}

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum EntryView {
    /// A regular file.
    File {
        /// Permission bits in octal.
        mode: String,
        /// Bytes.
        size: u64,
        /// The hash of its content: files of equal contents have the same.
        hash: ObjectId,
    },
    /// A symbolic link.
    Symlink {
        /// Where it points; lossy where that is not UTF-8.
        target: String,
    },
    /// A folder.
    Folder {
        /// Permission bits in octal.
        mode: String,
    },
    /// Not captured.
    Skipped {
        /// Why.
        reason: SkipReason,
    },
}

impl From<&Entry> for EntryView {
    fn from(entry: &Entry) -> Self {
        let octal = |mode: &u16| format!("{mode:04o}");
        match entry {
            Entry::File { mode, size, blob } => Self::File { mode: octal(mode), size: *size, hash: *blob },
            Entry::Symlink { target } => Self::Symlink { target: String::from_utf8_lossy(target).into_owned() },
            Entry::Folder { mode, .. } => Self::Folder { mode: octal(mode) },
            Entry::Skipped { reason } => Self::Skipped { reason: *reason },
        }
    }
}

/// The difference between two moments.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Diff {
    /// The earlier side; none where it is now.
    pub from: Option<CheckpointView>,
    /// The later side; none where it is now.
    pub to: Option<CheckpointView>,
    /// How many paths differ.
    pub changes: Counts,
    /// What differs.
    pub files: Vec<FileDiff>,
    /// What one side has and the other left out, so that nobody knows whether it differs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_compared: Vec<SkippedView>,
    /// Folders that differ and whose listing is damaged in the store: nobody knows in what they differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<PathView>,
}

/// One path's difference with its content.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileDiff {
    /// What happened.
    #[serde(flatten)]
    pub change: FileChange,
    /// Whether the content is not text, or too large to compare.
    pub binary: bool,
    /// Whether the content cannot be had: it was damaged in the store, or changed while it was compared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unavailable: bool,
    /// Lines that are only on the later side.
    pub added: u64,
    /// Lines that are only on the earlier side.
    pub removed: u64,
    /// The places that differ.
    pub hunks: Vec<Hunk>,
}

/// A recovery that the opening of a workspace did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recovered {
    /// The operation that was cut off.
    pub operation: OperationId,
    /// The checkpoint of the state before it.
    pub before: CheckpointId,
    /// Whether its result stands; else the state before it does.
    pub finished: bool,
    /// Paths that somebody changed since: left as they are. Where it is `mixed`, all that are not as before it.
    pub left_alone: Vec<PathView>,
    /// The same of files outside the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_outside: Vec<String>,
    /// Paths whose folder somebody moved or removed since: what it had done there stands, wherever that is now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<PathView>,
    /// Why the repository was left as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_stays: Option<String>,
    /// Files outside the workspace that could not be looked at: they may be as after it, and the next command tries again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_outside: Vec<LeftoverView>,
    /// Set where what is needed for ending it is damaged in the store: its files may be half changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
    /// Set where somebody changed both the files and what it had put beside them, so that nothing tells the old from the new:
    /// nothing was put back, and its files may be half changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
    /// Set where another folder stands in the place of the one it was in: nothing was done in this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaced: bool,
    /// What it put beside files and could not remove yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<LeftoverView>,
}

/// Something of an operation's own that the system did not let it remove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftoverView {
    /// From the workspace's root; absolute where it is outside the workspace.
    #[serde(flatten)]
    pub path: PathView,
    /// What the system said, or why it is kept.
    pub why: String,
}

/// Checkpoints, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Log {
    /// Them.
    pub checkpoints: Vec<CheckpointView>,
    /// How many there are in all.
    pub total: u64,
}

/// How a workspace stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Its id.
    pub id: WorkspaceId,
    /// Where it is.
    #[serde(serialize_with = "readable")]
    pub path: PathBuf,
    /// Whether its folder is the one that was captured.
    pub folder: FolderState,
    /// Where its store is.
    #[serde(serialize_with = "readable")]
    pub store: PathBuf,
    /// Bytes that the store takes.
    pub size: u64,
    /// Bytes that it may take.
    pub budget: u64,
    /// How many checkpoints there are.
    pub checkpoints: u64,
    /// The newest.
    pub last: Option<CheckpointView>,
    /// What changed since the newest.
    pub files: Vec<FileChange>,
    /// The same, counted.
    pub changes: Counts,
    /// What the newest checkpoint left out, and why, and the next one will have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_in: Vec<SkippedView>,
    /// What a capture would leave out now, and what the newest checkpoint left out for want of room in the budget.
    pub skipped: Vec<SkippedView>,
    /// Ignore files that have no say, because they cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread_rules: Vec<UnreadRulesView>,
    /// Worktrees in the workspace that the sessions at work here do not capture: nothing has worked in them yet, or the
    /// rules leave them out and only sessions that work in them capture them.
    #[serde(serialize_with = "all_readable")]
    pub unprotected: Vec<PathBuf>,
    /// Operations that were cut off and wait for their folder.
    pub pending: Vec<OperationView>,
    /// The sessions that are at work, the one that reported last first.
    pub sessions: Vec<SessionView>,
    /// The gaps of the session that reported last.
    pub gaps: Vec<GapView>,
    /// The newest gap, where nothing was captured since: what happens now is not protected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_captured: Option<GapView>,
    /// Events that could not be recorded yet, oldest first: the next capture that works records them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<GapView>,
    /// Why the store cannot be written, where it cannot: nothing that happens now is captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritable: Option<String>,
    /// Bytes that captures may still take.
    pub room: u64,
    /// Whether some of what was captured is gone or incomplete: `verify` names it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub history_lost: bool,
    /// Changed rules and settings that wait for the user's word.
    #[serde(default, skip_serializing_if = "Waiting::is_empty")]
    pub rules_waiting: Waiting,
}

/// Whether a workspace's folder is the one that was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FolderState {
    /// It is.
    Same,
    /// Another folder stands at its path.
    Other,
    /// Nothing stands at its path.
    Missing,
}

/// A workspace that became known.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Initialized {
    /// Its id.
    pub id: WorkspaceId,
    /// Where it is.
    #[serde(serialize_with = "readable")]
    pub path: PathBuf,
    /// Where its store is.
    #[serde(serialize_with = "readable")]
    pub store: PathBuf,
    /// Bytes that the store may take.
    pub budget: u64,
    /// Whether it was known before.
    pub already_known: bool,
    /// Stores of the home that cannot be read. One of them may be this folder's, from when it had another path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<UnreadStore>,
}

/// A store that cannot be read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UnreadStore {
    /// Its folder.
    #[serde(serialize_with = "readable")]
    pub store: PathBuf,
    /// In a few words.
    pub reason: String,
}

/// What a check of the store found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verification {
    /// Whether all is well.
    pub sound: bool,
    /// Checkpoints that were looked at.
    pub checkpoints: u64,
    /// Objects that were compared with their ids.
    pub objects: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// What is wrong.
    pub damage: Vec<DamageView>,
    /// Whether the database was made anew from the packs.
    pub repaired: bool,
    /// Events that could not be recorded yet, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<GapView>,
    /// Why the store cannot be written, where it cannot: nothing that happens now is captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritable: Option<String>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum DamageView {
    /// Bytes of a pack.
    Pack {
        /// Its number.
        pack: u32,
        /// From here.
        from: u64,
        /// To there.
        to: u64,
    },
    /// A row of the database.
    Row {
        /// Its table.
        table: String,
        /// Its key.
        key: String,
    },
    /// The database's file.
    Database {
        /// What SQLite says.
        message: String,
    },
    /// The git state of checkpoints, or a file that was staged in it: `rewind --git` cannot put it back.
    GitState {
        /// Every checkpoint that has it, newest first.
        checkpoints: Vec<CheckpointId>,
        /// The id of what is not whole.
        object: String,
    },
    /// The copy of a session's transcript.
    Transcript {
        /// Whose.
        session: SessionId,
        /// The id of what is not whole.
        object: String,
    },
    /// The copy of a file outside the workspace, from before or after a step.
    OutsideOfStep {
        /// The step that named it.
        step: StepRef,
        /// The file.
        path: String,
        /// The id of what is not whole.
        object: String,
    },
    /// The same from before or after an operation.
    OutsideOfOperation {
        /// The operation that changed it.
        operation: OperationId,
        /// The file.
        path: String,
    },
    /// What an operation took out of the workspace or put there, where no checkpoint that is named has it too.
    Operation {
        /// The operation that changed it.
        operation: OperationId,
        /// Where; the root where it is the state of git or all of the result.
        path: PathView,
        /// The id of what is not whole.
        object: String,
    },
    /// Bytes that were written and not whole after a power cut; none of them count.
    Aside {
        /// The file that keeps them.
        file: String,
        /// The checkpoints in it, newest first, as far as their records could be read.
        checkpoints: Vec<CheckpointId>,
    },
    /// Bytes of a pack that were once known and are gone: the pack was cut off or deleted.
    Gone {
        /// Its number.
        pack: u32,
        /// From here.
        from: u64,
        /// To there.
        to: u64,
        /// The checkpoints that went with them, newest first.
        checkpoints: Vec<CheckpointId>,
        /// The note that says so until it is deleted.
        file: String,
    },
    /// A pack that is gone while later ones are there.
    PackMissing {
        /// Its number.
        pack: u32,
    },
    /// Records of the timeline that are gone while later ones are there.
    RecordsMissing {
        /// The first one's number.
        from: u64,
        /// The last one's.
        to: u64,
    },
    /// A number that two records of the timeline have; both count.
    RecordTwice {
        /// The number.
        seq: u64,
    },
    /// What checkpoints need.
    Needed {
        /// Every checkpoint that needs it, newest first.
        checkpoints: Vec<CheckpointId>,
        /// Where it stands in the newest.
        #[serde(flatten)]
        path: PathView,
        /// The object.
        object: String,
    },
}
