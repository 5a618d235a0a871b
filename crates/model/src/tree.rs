//! Trees: a folder's listing, one entry per name, addressed by the hash of its encoding.
//!
//! The encoding is part of the on-disk format (`docs/format.md`). It is canonical: one listing has one encoding, so
//! equal folders have equal ids and comparing two checkpoints walks only what differs.

use serde::{Deserialize, Serialize};

use crate::id::ObjectId;
use crate::path::{BadPath, EntryName};

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

/// Why bytes are not a tree.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadTree {
    /// It ends in the middle of an entry.
    #[error("the tree is cut short")]
    Short,
    /// A version, kind or reason that this piton does not know.
    #[error("unknown code {0} in a tree")]
    Code(u8),
    /// Names out of order, or a duplicate name.
    #[error("the names of a tree are not in order")]
    Order,
    /// A name that no entry may have.
    #[error(transparent)]
    Name(#[from] BadPath),
}

const VERSION: u8 = 1;
const FILE: u8 = 1;
const SYMLINK: u8 = 2;
const FOLDER: u8 = 3;
const SKIPPED: u8 = 4;

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

    pub fn encode(&self) -> Vec<u8> {
        let mut out = TreeEncoder::new(self.has_git);
        for (name, entry) in &self.entries {
            match entry {
                Entry::File { mode, size, blob } => out.file(name.as_bytes(), *mode, *size, blob),
                Entry::Symlink { target } => out.symlink(name.as_bytes(), target),
                Entry::Folder { mode, tree, holds_skipped } => out.folder(name.as_bytes(), *mode, tree, *holds_skipped),
                Entry::Skipped { reason } => out.skipped(name.as_bytes(), *reason),
            }
        }
        out.finish()
    }

    /// Accepts only what [`Tree::encode`] could have written.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadTree> {
        let mut input = Input(bytes);
        match input.byte()? {
            VERSION => {}
            other => return Err(BadTree::Code(other)),
        }
        let has_git = input.flag()?;
        let mut entries: Vec<(EntryName, Entry)> = Vec::new();
        while !input.0.is_empty() {
            let kind = input.byte()?;
            let len = input.varint()? as usize;
            let name = EntryName::new(input.take(len)?)?;
            if entries.last().is_some_and(|(last, _)| *last >= name) {
                return Err(BadTree::Order);
            }
            let entry = match kind {
                FILE => Entry::File { mode: input.mode()?, size: input.varint()?, blob: input.id()? },
                SYMLINK => {
                    let len = input.varint()? as usize;
                    Entry::Symlink { target: input.take(len)?.to_vec() }
                }
                FOLDER => Entry::Folder { mode: input.mode()?, tree: input.id()?, holds_skipped: input.flag()? },
                SKIPPED => {
                    let code = input.byte()?;
                    Entry::Skipped { reason: SkipReason::from_code(code).ok_or(BadTree::Code(code))? }
                }
                other => return Err(BadTree::Code(other)),
            };
            entries.push((name, entry));
        }
        Ok(Self { has_git, entries })
    }
}

/// Encodes a tree entry by entry, for a caller that has the entries in name order and no [`Tree`].
pub struct TreeEncoder(Vec<u8>);

impl TreeEncoder {
    pub fn new(has_git: bool) -> Self {
        Self(vec![VERSION, has_git as u8])
    }

    /// Entries must be appended in order of their names.
    pub fn file(&mut self, name: &[u8], mode: u16, size: u64, blob: &ObjectId) {
        self.name(FILE, name);
        self.0.extend_from_slice(&mode.to_le_bytes());
        self.varint(size);
        self.0.extend_from_slice(&blob.0);
    }

    pub fn symlink(&mut self, name: &[u8], target: &[u8]) {
        self.name(SYMLINK, name);
        self.varint(target.len() as u64);
        self.0.extend_from_slice(target);
    }

    pub fn folder(&mut self, name: &[u8], mode: u16, tree: &ObjectId, holds_skipped: bool) {
        self.name(FOLDER, name);
        self.0.extend_from_slice(&mode.to_le_bytes());
        self.0.extend_from_slice(&tree.0);
        self.0.push(holds_skipped as u8);
    }

    pub fn skipped(&mut self, name: &[u8], reason: SkipReason) {
        self.name(SKIPPED, name);
        self.0.push(reason as u8);
    }

    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    fn name(&mut self, kind: u8, name: &[u8]) {
        self.0.push(kind);
        self.varint(name.len() as u64);
        self.0.extend_from_slice(name);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// The rest of an encoding.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], BadTree> {
        let (head, rest) = self.0.split_at_checked(len).ok_or(BadTree::Short)?;
        self.0 = rest;
        Ok(head)
    }

    fn byte(&mut self) -> Result<u8, BadTree> {
        Ok(self.take(1)?[0])
    }

    fn flag(&mut self) -> Result<bool, BadTree> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(BadTree::Code(other)),
        }
    }

    fn mode(&mut self) -> Result<u16, BadTree> {
        let bytes = self.take(2)?;
        let mode = u16::from_le_bytes([bytes[0], bytes[1]]);
        if mode & !MODE_BITS == 0 { Ok(mode) } else { Err(BadTree::Code(bytes[1])) }
    }

    fn id(&mut self) -> Result<ObjectId, BadTree> {
        let mut id = [0; 32];
        id.copy_from_slice(self.take(32)?);
        Ok(ObjectId(id))
    }

    fn varint(&mut self) -> Result<u64, BadTree> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // No bits may overflow, and no padding: each number has exactly one encoding.
            if bits.checked_shl(shift).map(|v| v >> shift) != Some(bits) || (byte == 0 && shift > 0) {
                return Err(BadTree::Code(byte));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(BadTree::Short)
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

    fn name(text: &str) -> EntryName {
        EntryName::new(text.as_bytes()).unwrap()
    }

    fn sample() -> Tree {
        let blob = ObjectId::of_blob(b"x");
        Tree::new(
            true,
            vec![
                (name("z"), Entry::Skipped { reason: SkipReason::Special }),
                (name("a"), Entry::File { mode: 0o755, size: 300, blob }),
                (name("link"), Entry::Symlink { target: b"\xff/../..".to_vec() }),
                (name("dir"), Entry::Folder { mode: 0o2755, tree: blob, holds_skipped: true }),
            ],
        )
    }

    #[test]
    fn a_tree_reads_back_as_it_was_written() {
        let tree = sample();
        assert_eq!(Tree::decode(&tree.encode()), Ok(tree));
    }

    #[test]
    fn every_cut_and_every_hostile_name_is_refused() {
        let bytes = sample().encode();
        for len in 0..bytes.len() {
            let cut = Tree::decode(&bytes[..len]);
            assert!(cut != Ok(sample()), "cut at {len}");
        }
        for bad in ["..", ".git", ".GiT", "a/b", ""] {
            let mut out = TreeEncoder::new(false);
            out.symlink(bad.as_bytes(), b"t");
            assert!(matches!(Tree::decode(&out.finish()), Err(BadTree::Name(_))), "{bad:?}");
        }
    }

    #[test]
    fn names_out_of_order_or_twice_are_refused() {
        for names in [["b", "a"], ["a", "a"]] {
            let mut out = TreeEncoder::new(false);
            names.iter().for_each(|n| out.symlink(n.as_bytes(), b"t"));
            assert_eq!(Tree::decode(&out.finish()), Err(BadTree::Order));
        }
    }

    #[test]
    fn a_number_has_one_encoding_only() {
        let padded = [VERSION, 0, SYMLINK, 1, b'a', 0x81, 0x00, b't'];
        assert!(Tree::decode(&padded).is_err());
    }

    #[test]
    fn a_folder_with_git_or_a_skipped_entry_at_any_depth_holds_skipped_things() {
        assert!(Tree::new(true, vec![]).holds_skipped());
        assert!(!Tree::new(false, vec![]).holds_skipped());
        let folder = Entry::Folder { mode: 0o755, tree: ObjectId::of_tree(b""), holds_skipped: true };
        assert!(Tree::new(false, vec![(name("d"), folder)]).holds_skipped());
    }
}

/// Tiny tree literals for tests.
#[cfg(test)]
pub(crate) mod literal {
    use std::collections::{BTreeMap, HashMap};
    use std::sync::Arc;

    use super::*;

    /// What is at a path of a literal; folders above it are implied.
    #[derive(Clone)]
    pub enum Lit {
        Entry(Entry),
        Folder(u16),
        Git,
    }

    pub fn file(content: &str) -> Lit {
        executable(content, 0o644)
    }

    pub fn executable(content: &str, mode: u16) -> Lit {
        Lit::Entry(Entry::File { mode, size: content.len() as u64, blob: ObjectId::of_blob(content.as_bytes()) })
    }

    pub fn link(target: &str) -> Lit {
        Lit::Entry(Entry::Symlink { target: target.into() })
    }

    pub fn folder(mode: u16) -> Lit {
        Lit::Folder(mode)
    }

    pub fn skipped() -> Lit {
        Lit::Entry(Entry::Skipped { reason: SkipReason::Ignored })
    }

    pub fn special() -> Lit {
        Lit::Entry(Entry::Skipped { reason: SkipReason::Special })
    }

    /// Trees in memory.
    #[derive(Default)]
    pub struct Forest(pub HashMap<ObjectId, Arc<Tree>>);

    impl Forest {
        /// Makes a tree of paths; `("d", folder(0o700))` sets a folder's mode, `("d", Lit::Git)` puts a `.git` in it.
        pub fn plant(&mut self, paths: &[(&str, Lit)]) -> ObjectId {
            let mut here: BTreeMap<String, Vec<(&str, Lit)>> = BTreeMap::new();
            let mut has_git = false;
            for (path, lit) in paths {
                match path.split_once('/') {
                    _ if path.is_empty() => has_git = true,
                    Some((head, rest)) => here.entry(head.into()).or_default().push((rest, lit.clone())),
                    None => here.entry((*path).into()).or_default().push(("", lit.clone())),
                }
            }
            let mut entries = Vec::new();
            for (name, inside) in here {
                let mut mode = 0o755;
                let mut leaf = None;
                let mut rest = Vec::new();
                for (path, lit) in inside {
                    match (path, lit) {
                        ("", Lit::Entry(entry)) => leaf = Some(entry),
                        ("", Lit::Folder(m)) => mode = m,
                        (path, lit) => rest.push((path, lit)),
                    }
                }
                let entry = leaf.unwrap_or_else(|| {
                    let tree = self.plant(&rest);
                    Entry::Folder { mode, tree, holds_skipped: self.0[&tree].holds_skipped() }
                });
                entries.push((EntryName::new(name.as_bytes()).unwrap(), entry));
            }
            let tree = Tree::new(has_git, entries);
            let id = ObjectId::of_tree(&tree.encode());
            self.0.insert(id, Arc::new(tree));
            id
        }
    }
}
