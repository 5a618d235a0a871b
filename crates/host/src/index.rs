//! The stat cache: what `stat` said of each path when its content was last read, and what its content was.
//!
//! Stored as one flat byte sequence, one block per folder in path order, and read in place: a capture of an unchanged
//! tree visits every entry, so nothing is allocated per entry. Only a cache: if it is lost, damaged or of another
//! version, every file is read again.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use piton_model::tree::MODE_BITS;
use piton_model::{Entry, EntryName, ObjectId, SkipReason, Tree, WorkspacePath, path::compare_bytes};
use rustix::fs::Stat;

use crate::rules::{FolderRules, join, name_of, parent_of};

/// What `stat` says of a path; if none of it changed, neither did the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Signature {
    pub size: u64,
    pub mtime: i64,
    pub ctime: i64,
    pub inode: u64,
    pub mode: u32,
}

impl Signature {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            size: stat.st_size as u64,
            mtime: stat.st_mtime.wrapping_mul(1_000_000_000).wrapping_add(stat.st_mtime_nsec as i64),
            ctime: stat.st_ctime.wrapping_mul(1_000_000_000).wrapping_add(stat.st_ctime_nsec as i64),
            inode: stat.st_ino,
            mode: stat.st_mode,
        }
    }

    pub(crate) fn bits(&self) -> u16 {
        self.mode as u16 & MODE_BITS
    }

    /// Without the size: on some filesystems a folder's size changes without its listing.
    pub(crate) fn of_folder(stat: &Stat) -> Self {
        Self { size: 0, ..Self::of(stat) }
    }
}

/// What the cache knows of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    File(ObjectId),
    Symlink(&'a [u8]),
    Folder,
    Skipped(SkipReason),
}

/// One entry of a folder's block.
#[derive(Clone, Debug)]
pub(crate) struct EntryView<'a> {
    pub name: &'a [u8],
    pub kind: Kind<'a>,
    /// As young as the capture that read it: the next write may not change its times.
    pub young: bool,
    pub signature: Signature,
}

#[derive(Clone, Copy)]
pub(crate) struct FolderView<'a>(&'a [u8]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FolderHead {
    pub signature: Signature,
    pub young: bool,
    pub has_git: bool,
    pub holds_skipped: bool,
    /// A rule ignores the folder for this reason, and it is listed only for some of its contents.
    pub partly: Option<SkipReason>,
    /// `crate::walk::GitStamp` of the folder's `.git`; 0 if there is none.
    pub git_stamp: u64,
    pub tree: ObjectId,
}

#[derive(Clone, Debug)]
pub struct Index {
    /// The file's bytes, including space for the prefix.
    bytes: Vec<u8>,
    /// Start and end of each folder's block.
    folders: Vec<(u32, u32)>,
    /// The sum of the blocks' checksums, so that changing one block means computing only one.
    sum: u64,
    /// If all blocks are at the same positions as in the file: the blocks that differ from it.
    patches: Option<Vec<usize>>,
    /// Fingerprint of the rules that decided which paths are captured.
    pub(crate) rules: [u8; 32],
    /// When it was made, by the clock.
    pub(crate) made_at: i64,
    /// `crate::tracked::stamp` of git's indexes when paths were last compared with them.
    pub(crate) tracked: u64,
}

const MAGIC: &[u8; 8] = b"PITONIX5";
/// Magic, the blocks' checksum, stamp, rules, the clock, git's indexes, and the prefix's own checksum.
const PREFIX: usize = 8 + 8 + 32 + 32 + 8 + 8 + 8;
/// Offsets in the prefix.
const SUM_AT: usize = 8;
const STAMP_AT: usize = 16;
const RULES_AT: usize = 48;
const CLOCK_AT: usize = 80;
const TRACKED_AT: usize = 88;
const CHECK_AT: usize = PREFIX - 8;
const HEAD: usize = 4 + 4 + 2 + 1 + 1 + 4 + 8 * 4 + 32;
const ENTRY: usize = 1 + 1 + 2 + 2 + 2 + 4 + 8 * 4 + 32;
/// Offsets of a block's tree id and flags, for patching.
const TREE_AT: usize = HEAD - 32;
const FLAGS_AT: usize = 10;

const YOUNG: u8 = 1;
const HAS_GIT: u8 = 2;
const HOLDS_SKIPPED: u8 = 4;
const PARTLY_IGNORED: u8 = 8;
const PARTLY_EXCLUDED: u8 = 16;

impl Index {
    /// An empty cache for these rules, made at this time.
    pub(crate) fn new(rules: [u8; 32], made_at: i64, tracked: u64, capacity: usize) -> Self {
        let mut bytes = Vec::with_capacity(PREFIX + capacity);
        bytes.resize(PREFIX, 0);
        Self { bytes, folders: Vec::new(), sum: 0, patches: None, rules, made_at, tracked }
    }

    /// Accepts only what [`Index::to_bytes`] wrote with the same stamp.
    pub fn from_bytes(file: Vec<u8>, stamp: &[u8; 32]) -> Option<Self> {
        let is_ours = file.len() >= PREFIX
            && file[..SUM_AT] == *MAGIC
            && file[STAMP_AT..RULES_AT] == *stamp
            && u64_at(&file, CHECK_AT) == checksum(&file[..CHECK_AT], 0);
        if !is_ours {
            return None;
        }
        let mut rules = [0; 32];
        rules.copy_from_slice(&file[RULES_AT..CLOCK_AT]);
        let made_at = u64_at(&file, CLOCK_AT) as i64;
        let tracked = u64_at(&file, TRACKED_AT);
        let mut folders = Vec::new();
        let mut sum = 0u64;
        let mut at = PREFIX;
        while at < file.len() {
            let len = u32_at(&file, at)? as usize;
            let block = file.get(at..at.checked_add(len)?)?;
            FolderView(block).is_sound().then_some(())?;
            sum = sum.wrapping_add(checksum(block, at));
            folders.push((at as u32, (at + len) as u32));
            at += len;
        }
        let is_whole = sum == u64_at(&file, SUM_AT);
        is_whole.then_some(Self { bytes: file, folders, sum, patches: None, rules, made_at, tracked })
    }

    /// The file's bytes. The stamp says which state of the store the cache belongs to.
    pub fn to_bytes(&mut self, stamp: &[u8; 32]) -> &[u8] {
        self.bytes[..SUM_AT].copy_from_slice(MAGIC);
        self.bytes[SUM_AT..STAMP_AT].copy_from_slice(&self.sum.to_le_bytes());
        self.bytes[STAMP_AT..RULES_AT].copy_from_slice(stamp);
        self.bytes[RULES_AT..CLOCK_AT].copy_from_slice(&self.rules);
        self.bytes[CLOCK_AT..TRACKED_AT].copy_from_slice(&self.made_at.to_le_bytes());
        self.bytes[TRACKED_AT..CHECK_AT].copy_from_slice(&self.tracked.to_le_bytes());
        let check = checksum(&self.bytes[..CHECK_AT], 0);
        self.bytes[CHECK_AT..PREFIX].copy_from_slice(&check.to_le_bytes());
        &self.bytes
    }

    /// The parts of [`Index::to_bytes`] to overwrite in the file that this was made from; `None` where the whole file
    /// must be written.
    pub fn parts(&self) -> Option<Vec<std::ops::Range<usize>>> {
        let blocks = self.patches.as_ref()?.iter().map(|at| {
            let (from, to) = self.folders[*at];
            from as usize..to as usize
        });
        Some(blocks.chain(std::iter::once(0..PREFIX)).collect())
    }

    /// Recomputes the checksum, and which parts of `old`'s file have to be overwritten; `changed` says which blocks are
    /// not copies of the old ones.
    pub(crate) fn seal(&mut self, old: Option<&Self>, changed: &[bool]) {
        let numbers = || changed.iter().enumerate().filter(|(_, changed)| **changed).map(|(at, _)| at);
        match old {
            // The same folders at the same positions: unchanged ones need no new checksum.
            Some(old) if changed.len() == self.len() && self.has_the_places_of(old) => {
                self.sum = numbers()
                    .fold(old.sum, |sum, at| sum.wrapping_sub(old.checksum_of(at)).wrapping_add(self.checksum_of(at)));
                self.patches = Some(numbers().collect());
            }
            _ => {
                self.sum = (0..self.len()).fold(0, |sum, at| sum.wrapping_add(self.checksum_of(at)));
                self.patches = None;
            }
        }
    }

    fn has_the_places_of(&self, old: &Self) -> bool {
        old.folders == self.folders && old.folders().zip(self.folders()).all(|(old, new)| old.path() == new.path())
    }

    fn checksum_of(&self, at: usize) -> u64 {
        checksum(self.folder(at).0, self.folders[at].0 as usize)
    }

    /// The same cache with git's indexes as they are now; only its prefix is written.
    pub(crate) fn with_tracked(&self, tracked: u64) -> Self {
        let mut new = Self { tracked, ..self.clone() };
        new.seal(Some(self), &vec![false; self.len()]);
        new
    }

    /// In bytes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Number of folders.
    pub(crate) fn len(&self) -> usize {
        self.folders.len()
    }

    pub(crate) fn folder(&self, at: usize) -> FolderView<'_> {
        let (from, to) = self.folders[at];
        FolderView(&self.bytes[from as usize..to as usize])
    }

    pub(crate) fn folders(&self) -> impl Iterator<Item = FolderView<'_>> {
        (0..self.len()).map(|at| self.folder(at))
    }

    /// Binary search: folders are in path order.
    pub(crate) fn find(&self, path: &[u8]) -> Option<usize> {
        self.folders
            .binary_search_by(|(from, to)| {
                compare_bytes(FolderView(&self.bytes[*from as usize..*to as usize]).path(), path)
            })
            .ok()
    }

    /// Why the path was skipped, if it was.
    pub(crate) fn skipped_at(&self, path: &[u8]) -> Option<SkipReason> {
        let name = name_of(path);
        let entry = self.folder(self.find(parent_of(path))?).entries().find(|entry| entry.name == name)?;
        match entry.kind {
            Kind::Skipped(reason) => Some(reason),
            _ => None,
        }
    }

    /// The folders that contain a `.git`, as paths of the workspace.
    pub fn repositories(&self) -> Vec<PathBuf> {
        let all = self.folders().filter(|folder| folder.head().has_git);
        all.map(|folder| PathBuf::from(OsStr::from_bytes(folder.path()))).collect()
    }

    /// Every folder's position by its path, for a walk that looks up most of them.
    pub(crate) fn by_path(&self) -> HashMap<&[u8], usize> {
        (0..self.len()).map(|at| (self.folder(at).path(), at)).collect()
    }

    /// When a path last changed, in nanoseconds since 1970; for a path that no longer exists, when its folder did.
    pub fn changed_at(&self, path: &WorkspacePath) -> Option<i64> {
        let newest = |s: &Signature| s.mtime.max(s.ctime);
        if let Some(at) = self.find(path.as_bytes()) {
            return Some(newest(&self.folder(at).head().signature));
        }
        let folder = self.folder(self.find(parent_of(path.as_bytes()))?);
        let name = name_of(path.as_bytes());
        let entry = folder.entries().find(|entry| entry.name == name);
        Some(entry.map_or_else(|| newest(&folder.head().signature), |entry| newest(&entry.signature)))
    }

    /// Number of captured paths; folders count only where nothing in them is captured.
    pub fn count(&self) -> u64 {
        let in_folder = |folder: FolderView<'_>| {
            let own = folder.entries().filter(|e| matches!(e.kind, Kind::File(_) | Kind::Symlink(_))).count() as u64;
            let is_empty = folder.entries().all(|e| matches!(e.kind, Kind::Skipped(_)));
            own + u64::from(is_empty && !folder.path().is_empty())
        };
        self.folders().map(in_folder).sum()
    }

    /// Folder positions by tree.
    pub fn trees(&self) -> HashMap<ObjectId, usize> {
        (0..self.len()).map(|at| (self.folder(at).head().tree, at)).collect()
    }

    /// The tree of a folder, as it was captured: as good as the store's, without reading the disk. `None` where the
    /// cached entries do not hash to the cached id.
    pub fn tree(&self, at: usize) -> Option<Tree> {
        let folder = self.folder(at);
        let head = folder.head();
        let mut tree = Tree::default();
        tree.has_git = head.has_git;
        for entry in folder.entries() {
            let kept = match entry.kind {
                Kind::File(blob) => Entry::File { mode: entry.signature.bits(), size: entry.signature.size, blob },
                Kind::Symlink(target) => Entry::Symlink { target: target.to_vec() },
                Kind::Skipped(SkipReason::GitName) => continue,
                Kind::Skipped(reason) => Entry::Skipped { reason },
                Kind::Folder => {
                    let child = self.folder(self.find(&join(folder.path(), entry.name))?).head();
                    let FolderHead { signature, tree, holds_skipped, .. } = child;
                    Entry::Folder { mode: signature.bits(), tree, holds_skipped }
                }
            };
            tree.set(EntryName::new(entry.name).ok()?, Some(kept));
        }
        (ObjectId::of_tree(&tree.encode()) == head.tree).then_some(tree)
    }

    pub(crate) fn push_block(&mut self, block: FolderView<'_>) {
        let from = self.bytes.len() as u32;
        self.bytes.extend_from_slice(block.0);
        self.folders.push((from, self.bytes.len() as u32));
    }

    /// Gives the last block another tree.
    pub(crate) fn patch_last(&mut self, tree: &ObjectId, holds_skipped: bool) {
        let Some((from, _)) = self.folders.last() else { return };
        let from = *from as usize;
        self.bytes[from + TREE_AT..from + TREE_AT + 32].copy_from_slice(&tree.0);
        let flags = &mut self.bytes[from + FLAGS_AT];
        *flags = if holds_skipped { *flags | HOLDS_SKIPPED } else { *flags & !HOLDS_SKIPPED };
    }

    /// Appends a folder; folders must come in path order, entries in name order.
    pub(crate) fn push<'e>(&mut self, path: &[u8], head: &FolderHead, entries: impl Iterator<Item = EntryView<'e>>) {
        let from = self.bytes.len();
        let out = &mut self.bytes;
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&(path.len() as u16).to_le_bytes());
        let flag = |on: bool, bit: u8| if on { bit } else { 0 };
        let partly = match head.partly {
            None => 0,
            Some(SkipReason::Ignored) => PARTLY_IGNORED,
            Some(SkipReason::Excluded) => PARTLY_EXCLUDED,
            // Only a repository's own folder is listed for another reason.
            Some(_) => PARTLY_IGNORED | PARTLY_EXCLUDED,
        };
        let flags = flag(head.young, YOUNG) | flag(head.has_git, HAS_GIT) | flag(head.holds_skipped, HOLDS_SKIPPED);
        out.push(flags | partly);
        out.push(0);
        out.extend_from_slice(&head.signature.mode.to_le_bytes());
        for number in [head.signature.mtime as u64, head.signature.ctime as u64, head.signature.inode, head.git_stamp] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&head.tree.0);
        out.extend_from_slice(path);
        let mut count = 0u32;
        for entry in entries {
            count += 1;
            let (kind, code, extra, id): (u8, u8, &[u8], _) = match entry.kind {
                Kind::File(id) => (1, 0, &[], id),
                Kind::Symlink(target) => (2, 0, target, ObjectId([0; 32])),
                Kind::Folder => (3, 0, &[], ObjectId([0; 32])),
                Kind::Skipped(reason) => (4, reason as u8, &[], ObjectId([0; 32])),
            };
            out.push(kind);
            out.push(flag(entry.young, YOUNG));
            out.extend_from_slice(&(entry.name.len() as u16).to_le_bytes());
            out.extend_from_slice(&(extra.len() as u16).to_le_bytes());
            out.extend_from_slice(&[code, 0]);
            out.extend_from_slice(&entry.signature.mode.to_le_bytes());
            for number in [
                entry.signature.size,
                entry.signature.mtime as u64,
                entry.signature.ctime as u64,
                entry.signature.inode,
            ] {
                out.extend_from_slice(&number.to_le_bytes());
            }
            out.extend_from_slice(&id.0);
            out.extend_from_slice(entry.name);
            out.extend_from_slice(extra);
        }
        let len = (out.len() - from) as u32;
        out[from..from + 4].copy_from_slice(&len.to_le_bytes());
        out[from + 4..from + 8].copy_from_slice(&count.to_le_bytes());
        self.folders.push((from as u32, from as u32 + len));
    }
}

impl<'a> FolderView<'a> {
    pub(crate) fn path(&self) -> &'a [u8] {
        let len = u16_at(self.0, 8) as usize;
        &self.0[HEAD..HEAD + len]
    }

    pub(crate) fn head(&self) -> FolderHead {
        let flags = self.0[FLAGS_AT];
        let mut tree = [0; 32];
        tree.copy_from_slice(&self.0[TREE_AT..TREE_AT + 32]);
        FolderHead {
            signature: Signature {
                size: 0,
                mode: u32_at(self.0, 12).unwrap_or(0),
                mtime: u64_at(self.0, 16) as i64,
                ctime: u64_at(self.0, 24) as i64,
                inode: u64_at(self.0, 32),
            },
            git_stamp: u64_at(self.0, 40),
            young: flags & YOUNG != 0,
            has_git: flags & HAS_GIT != 0,
            holds_skipped: flags & HOLDS_SKIPPED != 0,
            partly: match flags & (PARTLY_IGNORED | PARTLY_EXCLUDED) {
                0 => None,
                PARTLY_IGNORED => Some(SkipReason::Ignored),
                PARTLY_EXCLUDED => Some(SkipReason::Excluded),
                _ => Some(SkipReason::BareRepository),
            },
            tree: ObjectId(tree),
        }
    }

    pub(crate) fn rules(&self) -> FolderRules {
        let mut rules = FolderRules { has_git: self.head().has_git, ..FolderRules::default() };
        for entry in self.entries() {
            match entry.name {
                b".gitignore" => rules.has_gitignore = true,
                b".pitonignore" => rules.has_pitonignore = true,
                // Entries are in name order.
                name if name > &b".pitonignore"[..] => break,
                _ => {}
            }
        }
        rules
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = EntryView<'a>> + use<'a> {
        let mut rest = &self.0[HEAD + u16_at(self.0, 8) as usize..];
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let (name, extra) = (u16_at(rest, 2) as usize, u16_at(rest, 4) as usize);
            let (fixed, tail) = rest.split_at(ENTRY);
            rest = &tail[name + extra..];
            let mut id = [0; 32];
            id.copy_from_slice(&fixed[ENTRY - 32..]);
            Some(EntryView {
                name: &tail[..name],
                kind: match fixed[0] {
                    1 => Kind::File(ObjectId(id)),
                    2 => Kind::Symlink(&tail[name..name + extra]),
                    3 => Kind::Folder,
                    _ => Kind::Skipped(SkipReason::from_code(fixed[6]).unwrap_or(SkipReason::Unreadable)),
                },
                young: fixed[1] & YOUNG != 0,
                signature: Signature {
                    mode: u32_at(fixed, 8).unwrap_or(0),
                    size: u64_at(fixed, 12),
                    mtime: u64_at(fixed, 20) as i64,
                    ctime: u64_at(fixed, 28) as i64,
                    inode: u64_at(fixed, 36),
                },
            })
        })
    }

    /// Whether every length in the block fits, so that reading it in place cannot fail.
    fn is_sound(&self) -> bool {
        if self.0.len() < HEAD {
            return false;
        }
        let Some(mut rest) = self.0.get(HEAD + u16_at(self.0, 8) as usize..) else { return false };
        while !rest.is_empty() {
            if rest.len() < ENTRY {
                return false;
            }
            match rest.get(ENTRY + u16_at(rest, 2) as usize + u16_at(rest, 4) as usize..) {
                Some(tail) => rest = tail,
                None => return false,
            }
        }
        true
    }
}

/// Guards against torn writes, not attackers. A block's checksum depends on its position.
fn checksum(bytes: &[u8], place: usize) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(bytes, place as u64)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_le_bytes(four))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(eight)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Index {
        let mut index = Index::new([7; 32], 5, 3, 0);
        let signature = Signature { size: 5, mtime: -1, ctime: 2, inode: 3, mode: 0o100644 };
        let head = FolderHead {
            signature: Signature { size: 0, ..signature },
            young: true,
            has_git: true,
            holds_skipped: false,
            partly: Some(SkipReason::Excluded),
            git_stamp: 9,
            tree: ObjectId([1; 32]),
        };
        let entry = |name, kind| EntryView { name, kind, young: false, signature };
        index.push(
            b"",
            &head,
            [
                entry(b"a", Kind::File(ObjectId([2; 32]))),
                entry(b"l", Kind::Symlink(b"target")),
                entry(b"s", Kind::Skipped(SkipReason::Special)),
                entry(b"z", Kind::Folder),
            ]
            .into_iter(),
        );
        index.push(b"z", &FolderHead { young: false, ..head }, std::iter::empty());
        index.seal(None, &[]);
        index
    }

    #[test]
    fn the_cache_reads_back_and_finds_folders_by_path() {
        let stamp = [3; 32];
        let index = Index::from_bytes(sample().to_bytes(&stamp).to_vec(), &stamp).unwrap();
        assert_eq!((index.len(), index.made_at), (2, 5));
        assert_eq!(index.find(b"z"), Some(1));
        assert_eq!(index.find(b"y"), None);
        let root = index.folder(0);
        assert!(root.head().young && root.head().has_git);
        assert_eq!(root.head().git_stamp, 9);
        let entries: Vec<_> = root.entries().collect();
        assert_eq!(entries[1].kind, Kind::Symlink(b"target"));
        assert_eq!(entries[2].kind, Kind::Skipped(SkipReason::Special));
        assert_eq!(entries[0].signature.mtime, -1);
    }

    #[test]
    fn writing_the_changed_parts_over_the_old_file_gives_the_new_file() {
        let (stamp, later) = ([3; 32], [4; 32]);
        let mut file = sample().to_bytes(&stamp).to_vec();
        let old = Index::from_bytes(file.clone(), &stamp).unwrap();
        let mut new = Index::new([7; 32], 6, 3, 0);
        new.push_block(old.folder(0));
        new.push_block(old.folder(1));
        new.patch_last(&ObjectId([9; 32]), true);
        new.seal(Some(&old), &[false, true]);
        let whole = new.to_bytes(&later).to_vec();
        let parts = new.parts().unwrap();
        assert_eq!(parts.len(), 2);
        for part in parts {
            file[part.clone()].copy_from_slice(&whole[part]);
        }
        assert_eq!(file, whole);
        assert_eq!(Index::from_bytes(file, &later).unwrap().folder(1).head().tree, ObjectId([9; 32]));

        // Another folder whose block happens to have the same length is another folder.
        let mut other = Index::new([7; 32], 6, 3, 0);
        other.push_block(old.folder(0));
        other.push(b"y", &old.folder(1).head(), std::iter::empty());
        other.seal(Some(&old), &[false, false]);
        assert!(other.parts().is_none());

        // A block of another length moves those after it, so everything is written.
        let mut longer = Index::new([7; 32], 6, 3, 0);
        longer.push_block(old.folder(0));
        longer.push(b"zz", &old.folder(1).head(), std::iter::empty());
        longer.seal(Some(&old), &[false, true]);
        assert!(longer.parts().is_none());
        assert!(Index::from_bytes(longer.to_bytes(&stamp).to_vec(), &stamp).is_some());
    }

    #[test]
    fn any_flipped_bit_or_another_stamp_makes_it_no_cache() {
        let stamp = [3; 32];
        let bytes = sample().to_bytes(&stamp).to_vec();
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 4;
            assert!(Index::from_bytes(bad, &stamp).is_none(), "byte {at}");
        }
        assert!(Index::from_bytes(bytes.clone(), &[4; 32]).is_none());
        assert!(Index::from_bytes(bytes[..bytes.len() - 1].to_vec(), &stamp).is_none());
    }
}
