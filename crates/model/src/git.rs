//! A git repository's state at a moment: where HEAD is, what is staged, whether anything is uncommitted.
//!
//! Kept beside a checkpoint's tree, which never holds `.git`. With the commit it names everything that is needed to make
//! the index again: all that HEAD says, but for the entries listed here.

use serde::{Deserialize, Serialize};

use crate::id::ObjectId;
use crate::path::{WorkspacePath, decode_base64, encode_base64};

/// What git said of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitState {
    /// The branch and the commit.
    pub head: Head,
    /// The index where it differs from HEAD, in the index's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub staged: Vec<StagedEntry>,
    /// Entries that are as in HEAD but carry a flag, which HEAD cannot say. Those that git itself derives from the
    /// patterns of a sparse checkout are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flagged: Vec<FlaggedEntry>,
    /// Whether anything is staged or a tracked file is not as the index has it; none where that was not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncommitted: Option<bool>,
    /// What git is in the middle of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_progress: Option<InProgress>,
    /// The rules of the repository's own exclude file, one a line: what they ignored must not leave later, whatever became
    /// of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excludes: Option<String>,
    /// Why something is missing here. What is listed is true all the same; an index made from it would not be whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

/// Where HEAD is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The branch's short name, or the whole name of a reference that is no branch; none when detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Set where the name is not UTF-8: its bytes in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_b64: Option<String>,
    /// The commit in hexadecimal; none before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

impl Head {
    /// On a reference, given its full name.
    pub fn on(reference: &[u8], commit: Option<String>) -> Self {
        let name = reference.strip_prefix(b"refs/heads/").unwrap_or(reference);
        Self {
            branch: Some(String::from_utf8_lossy(name).into_owned()),
            branch_b64: std::str::from_utf8(name).is_err().then(|| encode_base64(name)),
            commit,
        }
    }

    /// On a commit and no branch.
    pub fn detached(commit: String) -> Self {
        Self { branch: None, branch_b64: None, commit: Some(commit) }
    }

    /// The whole name of the branch's reference; none when detached, or on a reference that is no branch.
    pub fn reference(&self) -> Option<Vec<u8>> {
        let name = self.branch_bytes().filter(|name| !name.starts_with(b"refs/"))?;
        Some([b"refs/heads/", name.as_slice()].concat())
    }

    /// Whether both are on the same branch, or both on none.
    pub fn is_on_same(&self, other: &Self) -> bool {
        self.branch_bytes() == other.branch_bytes()
    }

    /// The branch's exact name.
    pub fn branch_bytes(&self) -> Option<Vec<u8>> {
        match &self.branch_b64 {
            Some(b64) => decode_base64(b64).ok(),
            None => self.branch.as_ref().map(|name| name.clone().into_bytes()),
        }
    }
}

impl GitState {
    /// Whether both have the same HEAD, and indexes with the same entries. `flags`: those that count.
    pub fn is_same(&self, other: &Self, flags: u16) -> bool {
        self.head == other.head && self.has_same_index(other, flags)
    }

    /// Whether the indexes made from both have the same entries, given that both are of the same commit.
    pub fn has_same_index(&self, other: &Self, flags: u16) -> bool {
        let staged = |one: &Self| -> Vec<_> {
            let entry = |e: &StagedEntry| (e.path.clone(), e.mode, e.id.clone(), e.stage, e.flags & flags);
            one.staged.iter().map(entry).collect()
        };
        let flagged = |one: &Self| -> Vec<_> {
            let entries = one.flagged.iter().map(|e| (e.path.clone(), e.flags & flags));
            entries.filter(|(_, flags)| *flags != 0).collect()
        };
        staged(self) == staged(other) && flagged(self) == flagged(other)
    }
}

/// A repository's way from one state to another, with all that is needed to drive it to either end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitMove {
    /// Where it is.
    pub before: GitState,
    /// Where it goes.
    pub after: GitState,
    /// The branch that points at another commit afterwards. Not always one that HEAD is on: taking a move back leaves the
    /// branch that HEAD came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<BranchMove>,
    /// A fingerprint of the index before, so that nothing is replaced that somebody staged since.
    pub index: String,
}

/// A branch that points at another commit afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchMove {
    /// The branch and its commit before; no commit where there was no such branch.
    pub before: Head,
    /// The same branch and its commit afterwards; no commit where it goes.
    pub after: Head,
}

/// One end of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitEnd {
    /// Nothing happened.
    Before,
    /// All of it happened.
    After,
}

impl GitEnd {
    /// The other end.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Before => Self::After,
            Self::After => Self::Before,
        }
    }
}

impl GitMove {
    /// Whether there is nothing to move.
    pub fn is_empty(&self) -> bool {
        self.branch.is_none() && self.before.is_same(&self.after, ALL_FLAGS)
    }

    /// The state at an end.
    pub fn state(&self, end: GitEnd) -> &GitState {
        match end {
            GitEnd::Before => &self.before,
            GitEnd::After => &self.after,
        }
    }

    /// The branch at an end.
    pub fn branch_at(&self, end: GitEnd) -> Option<&Head> {
        self.branch.as_ref().map(|branch| match end {
            GitEnd::Before => &branch.before,
            GitEnd::After => &branch.after,
        })
    }
}

/// One entry of the index that HEAD does not have like this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedEntry {
    /// From the repository's root, which may lie above the workspace's.
    pub path: WorkspacePath,
    /// How it differs from HEAD.
    pub kind: StagedKind,
    /// Git's mode; 0 for a deleted one.
    pub mode: u32,
    /// Git's id of the content in hexadecimal; empty for a deleted one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// 0, or which side of a conflict: 1 base, 2 ours, 3 theirs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stage: u8,
    /// [`ASSUME_VALID`], [`SKIP_WORKTREE`], [`INTENT_TO_ADD`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flags: u16,
    /// Piton's own id of the content, where the store has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<ObjectId>,
}

impl StagedEntry {
    /// Whether its id is that of a blob which HEAD has not at this path: not of a deleted file, a submodule's commit, or
    /// a file that is only intended to be added.
    pub fn has_blob(&self) -> bool {
        self.kind != StagedKind::Deleted && self.mode != MODE_GITLINK && self.flags & INTENT_TO_ADD == 0
    }
}

/// An entry as in HEAD, with a flag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlaggedEntry {
    /// From the repository's root.
    pub path: WorkspacePath,
    /// [`ASSUME_VALID`], [`SKIP_WORKTREE`].
    pub flags: u16,
}

/// The mode of a submodule.
pub const MODE_GITLINK: u32 = 0o160_000;

/// The user promised not to change the file (`git update-index --assume-unchanged`).
pub const ASSUME_VALID: u16 = 1;
/// The file need not be in the working tree (`git update-index --skip-worktree`, sparse checkouts).
pub const SKIP_WORKTREE: u16 = 2;
/// Only the path is in the index, not the content (`git add --intent-to-add`).
pub const INTENT_TO_ADD: u16 = 4;
/// Every flag that is kept.
pub const ALL_FLAGS: u16 = ASSUME_VALID | SKIP_WORKTREE | INTENT_TO_ADD;

/// How an entry of the index differs from HEAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StagedKind {
    /// HEAD has no such path.
    Created,
    /// HEAD has another content or mode there.
    Modified,
    /// Only HEAD has the path.
    Deleted,
    /// One side of a conflict.
    Unmerged,
}

impl StagedKind {
    /// The word in every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::Unmerged => "unmerged",
        }
    }
}

/// What git is in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InProgress {
    /// `git merge`.
    Merge,
    /// `git rebase`.
    Rebase,
    /// `git am`.
    Am,
    /// `git cherry-pick`.
    CherryPick,
    /// `git revert`.
    Revert,
    /// `git bisect`.
    Bisect,
}

impl InProgress {
    /// The word in every surface: git's own.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Rebase => "rebase",
            Self::Am => "am",
            Self::CherryPick => "cherry-pick",
            Self::Revert => "revert",
            Self::Bisect => "bisect",
        }
    }
}

fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_survives_the_records_form() {
        let state = GitState {
            head: Head::on(b"refs/heads/topic/\xff", Some("ab".repeat(20))),
            staged: vec![StagedEntry {
                path: WorkspacePath::new(b"a/\xfe".to_vec()).unwrap(),
                kind: StagedKind::Unmerged,
                mode: 0o100_644,
                id: "cd".repeat(20),
                stage: 2,
                flags: ASSUME_VALID,
                blob: Some(ObjectId::of_blob(b"x")),
            }],
            flagged: vec![FlaggedEntry { path: WorkspacePath::new("f").unwrap(), flags: SKIP_WORKTREE }],
            uncommitted: Some(true),
            in_progress: Some(InProgress::CherryPick),
            excludes: Some("*.pem".to_owned()),
            incomplete: Some("why".into()),
        };
        let json = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<GitState>(&json).unwrap(), state);
        assert_eq!(state.head.branch_bytes().unwrap(), b"topic/\xff");
    }

    #[test]
    fn the_same_index_is_the_same_whatever_the_store_has_of_it() {
        let entry = |blob: Option<ObjectId>, flags: u16| StagedEntry {
            path: WorkspacePath::new("f").unwrap(),
            kind: StagedKind::Created,
            mode: 0o100_644,
            id: "ab".into(),
            stage: 0,
            flags,
            blob,
        };
        let state = |entry| GitState { staged: vec![entry], ..GitState::default() };
        let kept = state(entry(Some(ObjectId::of_blob(b"x")), 0));
        assert!(kept.is_same(&state(entry(None, 0)), ALL_FLAGS));
        assert!(!kept.is_same(&state(entry(None, ASSUME_VALID)), ALL_FLAGS));
        assert!(kept.is_same(&state(entry(None, SKIP_WORKTREE)), ASSUME_VALID));
        assert!(!kept.is_same(&GitState::default(), ALL_FLAGS));
    }

    #[test]
    fn only_a_branch_has_a_reference_to_move() {
        assert_eq!(Head::on(b"refs/heads/a/b", None).reference().unwrap(), b"refs/heads/a/b");
        assert_eq!(Head::on(b"refs/remotes/o/main", None).reference(), None);
        assert_eq!(Head::detached("ab".into()).reference(), None);
    }

    #[test]
    fn a_clean_state_takes_few_bytes() {
        let state = GitState {
            head: Head::on(b"refs/heads/main", Some("ab".into())),
            uncommitted: Some(false),
            ..Default::default()
        };
        let json = serde_json::to_string(&state).unwrap();
        assert_eq!(json, r#"{"head":{"branch":"main","commit":"ab"},"uncommitted":false}"#);
    }

    #[test]
    fn only_a_reference_that_is_a_branch_has_a_short_name() {
        assert_eq!(Head::on(b"refs/heads/a/b", None).branch.as_deref(), Some("a/b"));
        assert_eq!(Head::on(b"refs/remotes/o/x", None).branch.as_deref(), Some("refs/remotes/o/x"));
        assert_eq!(Head::detached("ab".into()).branch, None);
    }
}
