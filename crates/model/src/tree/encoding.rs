//! The canonical encoding of a tree: part of the on-disk format (`docs/format.md`).

use super::{Entry, MODE_BITS, SkipReason, Tree};
use crate::id::ObjectId;
use crate::path::{BadPath, EntryName};

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
}
