//! What surfaces show of session archives.

use std::path::PathBuf;

use piton_model::{SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use super::{CopyView, PathView};

/// A session that was written to an archive.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionExported {
    pub session: SessionId,
    pub agent: String,
    /// The archive's path; `None` if it was written to a stream.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "super::git::some_readable")]
    pub file: Option<PathBuf>,
    /// Bytes.
    pub size: u64,
    /// The sessions in it: this one, and those that it is a branch of.
    pub sessions: Vec<SessionId>,
    /// Turns of all of them.
    pub turns: u64,
    /// Checkpoints of all of them.
    pub checkpoints: u64,
    /// Trees, files and parts of files.
    pub objects: u64,
    /// Files in it that are ignored and that git does not track, such as `.env`.
    #[serde(default)]
    pub ignored: Vec<PathView>,
    /// Files in it that a git filter (git-crypt, LFS) transforms, so git stores other bytes.
    #[serde(default)]
    pub filtered: Vec<PathView>,
    /// Files in it that git was told to ignore changes of (`--skip-worktree`, `--assume-unchanged`) and that differ from git's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unwatched: Vec<PathView>,
    /// Files in it that hold what one of those held, or an edited version of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<CopyView>,
    /// Bytes of the transcript, if it is included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<u64>,
    /// Why it is not included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript_missing: Option<String>,
}

/// Files of a session that may be private, each list sorted.
#[derive(Clone, Debug, Default)]
pub struct PrivatePaths {
    /// Ignored, and not tracked by git.
    pub ignored: Vec<PathView>,
    /// Transformed by a filter before git stores them.
    pub filtered: Vec<PathView>,
    /// Tracked, and edited although git was told not to look.
    pub unwatched: Vec<PathView>,
    /// Holding what one of the others held, or an edited version of it.
    pub copies: Vec<CopyView>,
}

/// A session that came from an archive.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionImported {
    pub session: SessionId,
    pub agent: String,
    /// What the agent calls it.
    pub agent_id: String,
    /// When the archive was made.
    pub made_at: Timestamp,
    /// The version of the piton that made it.
    pub made_by: String,
    /// Everything was in this store already; nothing was recorded.
    pub already_here: bool,
    /// The line that its checkpoints are on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The sessions that are new here: this one, and those that it is a branch of.
    pub sessions: Vec<SessionId>,
    /// Turns that are new here.
    pub turns: u64,
    /// Checkpoints that are new here.
    pub checkpoints: u64,
    /// Trees, files and parts of files that are new here.
    pub objects: u64,
    /// Their bytes in the store.
    pub bytes: u64,
    /// Bytes of the transcript, if the archive contained it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<u64>,
    /// Names that were already taken here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub renamed: Vec<RenamedName>,
}

/// A name in an archive that is already taken in this workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenamedName {
    /// The archive's.
    pub name: String,
    /// Whether it names a session; otherwise a checkpoint.
    pub session: bool,
    /// The name it got here, if any.
    pub now: Option<String>,
}
