//! Trees: a folder's listing, one entry per name, addressed by the hash of its encoding.
//!
//! The encoding is part of the on-disk format (`docs/format.md`). It is canonical: one listing has one encoding, so
//! equal folders have equal ids and comparing two checkpoints walks only what differs.

mod encoding;
#[cfg(test)]
pub(crate) mod literal;

use serde::{Deserialize, Serialize};

pub use self::encoding::{BadTree, TreeEncoder};
use crate::id::ObjectId;
use crate::path::EntryName;

/// The permission bits that an entry stores: read, write, execute, set-id and sticky.
pub const MODE_BITS: u16 = 0o7777;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Whether the folder contains a `.git`, which is never captured: such a folder is never removed.
    pub has_git: bool,
    entries: Vec<(EntryName, Entry)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Entry {
    File {
        mode: u16,
        /// In bytes.
        size: u64,
        blob: ObjectId,
    },
    /// The target is never followed.
    Symlink {
        /// As written in the link.
        #[serde(with = "bytes_form")]
        target: Vec<u8>,
    },
    Folder {
        mode: u16,
        tree: ObjectId,
        /// Whether anything in it, at any depth, is not captured: a skipped entry or a `.git`. Such a folder is never
        /// removed or replaced as a whole.
        holds_skipped: bool,
    },
    /// Something that exists and was not captured: unknown, never absent.
    Skipped { reason: SkipReason },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum SkipReason {
    /// A folder that an ignore rule matches, or a single ignored file over the size up to which those are captured.
    Ignored = 1,
    /// Matched by `.pitonignore`.
    Excluded = 2,
    /// Piton has no permission to read it.
    Unreadable = 3,
    /// A socket, pipe or device.
    Special = 4,
    /// Over the size limit.
    TooLarge = 5,
    Store = 6,
    AgentState = 7,
    /// A linked git worktree, which is a workspace of its own.
    Worktree = 8,
    /// A repository's own folder that is not called `.git` and that a `.git` file refers to.
    GitFolder = 9,
    /// A bare repository that no `.git` file refers to; `!` in `.pitonignore` includes it.
    BareRepository = 10,
    /// A file staged by an unfinished operation of another workspace's store.
    Staged = 11,
    /// A name that is `.git` on filesystems that fold case, which no entry may have.
    GitName = 12,
    /// The store had no room for it; no operation touches it.
    Budget = 13,
    /// The store's copy is damaged. Only in memory: a rewind that leaves it alone says so.
    Damaged = 14,
    /// The system did not let an operation change it. Only in memory, too.
    Refused = 15,
}

impl SkipReason {
    const ALL: [Self; 14] = [
        Self::Ignored,
        Self::Excluded,
        Self::Unreadable,
        Self::Special,
        Self::TooLarge,
        Self::Store,
        Self::AgentState,
        Self::Worktree,
        Self::GitFolder,
        Self::BareRepository,
        Self::Staged,
        Self::GitName,
        Self::Budget,
        Self::Damaged,
    ];

    /// Whether no later attempt can bring back what was skipped for this reason: nobody has it.
    pub fn is_for_good(self) -> bool {
        matches!(self, Self::Damaged | Self::GitFolder)
    }

    /// Whether it could be read if the rules were ignored: an operation that is about to replace it does so.
    pub fn is_by_rule(self) -> bool {
        matches!(self, Self::Ignored | Self::Excluded | Self::TooLarge)
    }

    /// Whether somebody would miss it when it is gone: an ordinary file that could not be captured. What a rule ignores
    /// can be regenerated, and sockets come and go.
    pub fn is_missed(self) -> bool {
        matches!(self, Self::Unreadable | Self::TooLarge | Self::Budget | Self::BareRepository)
    }

    /// The words a person reads.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Ignored => "ignored",
            Self::Excluded => "in .pitonignore",
            Self::Unreadable => "unreadable",
            Self::Special => "socket, pipe or device",
            Self::TooLarge => "over the size limit",
            Self::Store => "piton's own store",
            Self::AgentState => "an agent's own state",
            Self::Budget => "over the budget",
            Self::Worktree => "a worktree of its own",
            Self::GitFolder => "git's own folder",
            Self::BareRepository => "a bare git repository",
            Self::Staged => "being written by piton for another workspace",
            Self::GitName => "named like .git",
            Self::Damaged => "damaged in the store",
            Self::Refused => "refused by the system",
        }
    }

    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| *reason as u8 == code)
    }
}

impl Entry {
    pub fn is_folder(&self) -> bool {
        matches!(self, Self::Folder { .. })
    }

    pub fn is_skipped(&self) -> bool {
        matches!(self, Self::Skipped { .. })
    }

    /// Whether this, or anything in it, is not captured.
    pub fn holds_skipped(&self) -> bool {
        match self {
            Self::Folder { holds_skipped, .. } => *holds_skipped,
            Self::Skipped { .. } => true,
            Self::File { .. } | Self::Symlink { .. } => false,
        }
    }
}

impl Tree {
    /// A tree of these entries, which it sorts.
    ///
    /// # Panics
    /// On a duplicate name: no filesystem has those, so the caller is wrong.
    pub fn new(has_git: bool, mut entries: Vec<(EntryName, Entry)>) -> Self {
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        assert!(entries.windows(2).all(|w| w[0].0 != w[1].0), "a name comes twice in one folder");
        Self { has_git, entries }
    }

    /// In order of their names.
    pub fn entries(&self) -> &[(EntryName, Entry)] {
        &self.entries
    }

    pub fn get(&self, name: &[u8]) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|(n, _)| n.as_bytes().cmp(name)).ok()?;
        Some(&self.entries[at].1)
    }

    /// Inserts, replaces or (with `None`) removes one entry.
    pub fn set(&mut self, name: EntryName, entry: Option<Entry>) {
        match (self.entries.binary_search_by(|(n, _)| n.cmp(&name)), entry) {
            (Ok(at), Some(entry)) => self.entries[at].1 = entry,
            (Ok(at), None) => drop(self.entries.remove(at)),
            (Err(at), Some(entry)) => self.entries.insert(at, (name, entry)),
            (Err(_), None) => {}
        }
    }

    /// Whether anything in this folder, at any depth, is not captured.
    pub fn holds_skipped(&self) -> bool {
        self.has_git || self.entries.iter().any(|(_, e)| e.holds_skipped())
    }
}

/// Bytes in records: text where they are UTF-8, base64 where not.
mod bytes_form {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD as BASE64;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Form {
        Text(String),
        Bytes { b64: String },
    }

    pub fn serialize<S: Serializer>(bytes: &[u8], s: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(bytes) {
            Ok(text) => s.serialize_str(text),
            Err(_) => Form::Bytes { b64: BASE64.encode(bytes) }.serialize(s),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<u8>, D::Error> {
        match Form::deserialize(d)? {
            Form::Text(text) => Ok(text.into_bytes()),
            Form::Bytes { b64 } => BASE64.decode(b64).map_err(serde::de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_git_or_a_skipped_entry_at_any_depth_holds_skipped_things() {
        assert!(Tree::new(true, vec![]).holds_skipped());
        assert!(!Tree::new(false, vec![]).holds_skipped());
        let folder = Entry::Folder { mode: 0o755, tree: ObjectId::of_tree(b""), holds_skipped: true };
        assert!(Tree::new(false, vec![(EntryName::new(*b"d").unwrap(), folder)]).holds_skipped());
    }
}
