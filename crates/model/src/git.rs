//! A git repository's state at a moment: where HEAD is, what is staged, whether anything is uncommitted.
//!
//! Kept beside a checkpoint's tree, which never contains `.git`. Together with the commit it is enough to rebuild the
//! index: everything in HEAD, except for the entries listed here.

use serde::{Deserialize, Serialize};

use crate::id::ObjectId;
use crate::path::{WorkspacePath, decode_base64, encode_base64};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitState {
    pub head: Head,
    /// Index entries that differ from HEAD, in the index's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub staged: Vec<StagedEntry>,
    /// Entries that are as in HEAD but carry a flag, which HEAD cannot express. Flags that git itself derives from
    /// sparse-checkout patterns are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flagged: Vec<FlaggedEntry>,
    /// Whether anything is staged or a tracked file differs from the index; `None` where that was not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncommitted: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_progress: Option<InProgress>,
    /// The rules of the repository's own exclude file, one per line: what they ignored must not be exported later, even
    /// if the rules have changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excludes: Option<String>,
    /// Why something is missing here. What is listed is still true, but an index made from it would be incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The branch's short name, or the full name of a reference that is not a branch; `None` when detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The name's bytes in base64, where it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_b64: Option<String>,
    /// In hexadecimal; `None` before the first commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

impl Head {
    /// HEAD on a reference, given its full name.
    pub fn on(reference: &[u8], commit: Option<String>) -> Self {
        let name = reference.strip_prefix(b"refs/heads/").unwrap_or(reference);
        Self {
            branch: Some(String::from_utf8_lossy(name).into_owned()),
            branch_b64: std::str::from_utf8(name).is_err().then(|| encode_base64(name)),
            commit,
        }
    }

    pub fn detached(commit: String) -> Self {
        Self { branch: None, branch_b64: None, commit: Some(commit) }
    }

    /// The full name of the branch's reference; `None` when detached, or on a reference that is not a branch.
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
    /// Whether both have the same HEAD and equivalent indexes. Only the given flags are compared.
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

/// A repository's transition from one state to another, with everything needed to drive it to either end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitMove {
    pub before: GitState,
    pub after: GitState,
    /// The branch that points to another commit afterwards. Not always the one HEAD is on: taking a move back leaves
    /// the branch that HEAD had moved to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<BranchMove>,
    /// A fingerprint of the index before, so that nothing staged since is overwritten.
    pub index: String,
}

/// A branch that points to another commit afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchMove {
    /// The branch and its commit before; no commit where the branch did not exist.
    pub before: Head,
    /// The same branch and its commit afterwards; no commit where the branch is deleted.
    pub after: Head,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitEnd {
    Before,
    After,
}

impl GitEnd {
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Before => Self::After,
            Self::After => Self::Before,
        }
    }
}

impl GitMove {
    pub fn is_empty(&self) -> bool {
        self.branch.is_none() && self.before.is_same(&self.after, ALL_FLAGS)
    }

    pub fn state(&self, end: GitEnd) -> &GitState {
        match end {
            GitEnd::Before => &self.before,
            GitEnd::After => &self.after,
        }
    }

    pub fn branch_at(&self, end: GitEnd) -> Option<&Head> {
        self.branch.as_ref().map(|branch| match end {
            GitEnd::Before => &branch.before,
            GitEnd::After => &branch.after,
        })
    }
}

/// An index entry that differs from HEAD.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedEntry {
    /// Relative to the repository's root, which may lie above the workspace's.
    pub path: WorkspacePath,
    pub kind: StagedKind,
    /// Git's mode; 0 if deleted.
    pub mode: u32,
    /// Git's id of the content, in hexadecimal; empty if deleted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// 0, or the side of a conflict: 1 base, 2 ours, 3 theirs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stage: u8,
    /// [`ASSUME_VALID`], [`SKIP_WORKTREE`], [`INTENT_TO_ADD`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flags: u16,
    /// Piton's own id of the content, if the store has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<ObjectId>,
}

impl StagedEntry {
    /// Whether its id names a blob that HEAD does not have at this path: false for deleted files, submodule commits and
    /// files that are only intended to be added.
    pub fn has_blob(&self) -> bool {
        self.kind != StagedKind::Deleted && self.mode != MODE_GITLINK && self.flags & INTENT_TO_ADD == 0
    }
}

/// An entry as in HEAD, with a flag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlaggedEntry {
    /// Relative to the repository's root.
    pub path: WorkspacePath,
    /// [`ASSUME_VALID`], [`SKIP_WORKTREE`].
    pub flags: u16,
}

/// Mode of a submodule.
pub const MODE_GITLINK: u32 = 0o160_000;

/// The user promised not to change the file (`git update-index --assume-unchanged`).
pub const ASSUME_VALID: u16 = 1;
/// The file need not be in the working tree (`git update-index --skip-worktree`, sparse checkouts).
pub const SKIP_WORKTREE: u16 = 2;
/// Only the path is in the index, not the content (`git add --intent-to-add`).
pub const INTENT_TO_ADD: u16 = 4;
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
    /// The name used in every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::Unmerged => "unmerged",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InProgress {
    Merge,
    Rebase,
    Am,
    CherryPick,
    Revert,
    Bisect,
}

impl InProgress {
    /// Git's own name for it.
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
