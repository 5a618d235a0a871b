//! What is written to `git fast-import`: blobs, trees and commits, and git's ids of them, reckoned on the way.

use super::{ExportError, Planned, Without};
use crate::workspace::History;
use piton_host::git::{GitId, GitIds, TreeItem};
use piton_model::diff::{self, Counts, TreeSource};
use piton_model::{Entry, ObjectId, Tree, WorkspacePath};
use piton_store::{CheckpointRow, StoreError};
use std::collections::HashMap;
use std::io::{self, Write};

/// Who piton's commits are by.
pub(super) const PITON: &str = "piton";

/// Nobody gets mail there.
const MAIL: &str = "piton@localhost";

/// What is written to `git fast-import`, with what was written already.
pub(super) struct Stream<'w> {
    workspace: &'w History,
    without: &'w Without,
    ids: GitIds,
    /// Blobs by their number in the stream, and git's ids of them.
    blobs: HashMap<ObjectId, (u64, GitId)>,
    /// Git's ids of folders; none for those that hold no file.
    trees: HashMap<ObjectId, Option<GitId>>,
    next: u64,
}

/// What differs from one commit to the next.
#[derive(Default)]
struct Lines {
    gone: Vec<WorkspacePath>,
    set: Vec<(WorkspacePath, Entry)>,
}

/// The outer error is ours, the inner one the stream's.
type Written = Result<io::Result<()>, ExportError>;

/// Ends with the stream's error.
macro_rules! write_or_end {
    ($result:expr) => {
        if let Err(error) = $result {
            return Ok(Err(error));
        }
    };
}

impl<'w> Stream<'w> {
    pub(super) fn new(workspace: &'w History, without: &'w Without, ids: GitIds) -> Self {
        Self { workspace, without, ids, blobs: HashMap::new(), trees: HashMap::new(), next: 1 }
    }

    pub(super) fn all(
        &mut self,
        out: &mut dyn Write,
        reference: &str,
        planned: &[Planned],
        expected: &mut Vec<(usize, GitId)>,
    ) -> Written {
        let mut last: Option<&CheckpointRow> = None;
        for (at, one) in planned.iter().enumerate() {
            let root = one.row.checkpoint.root;
            let mut lines = Lines::default();
            let old = last.map(|row| row.checkpoint.root.tree);
            self.lines(old.as_ref(), Some(&root.tree), &WorkspacePath::root(), &mut lines)?;
            for (_, entry) in &lines.set {
                if let Entry::File { size, blob, .. } = entry {
                    write_or_end!(self.blob(out, blob, *size)?);
                }
            }
            let tree = self.tree(&root.tree, &WorkspacePath::root())?.unwrap_or_else(|| self.ids.tree(Vec::new()));
            if one.only_if_changed && expected.last().is_some_and(|(_, last)| *last == tree) {
                last = Some(&one.row);
                continue;
            }
            let counts = match last {
                Some(last) => {
                    let store = &self.workspace.store;
                    let mut changes = diff::changes(store, Some(&last.checkpoint.root.tree), Some(&root.tree))?;
                    changes.retain(|change| !self.without.paths.contains(&change.path));
                    Some(Counts::of(&changes))
                }
                None => None,
            };
            write_or_end!(self.commit(out, reference, one, counts, &lines));
            expected.push((at, tree));
            last = Some(&one.row);
        }
        Ok(out.write_all(b"done\n"))
    }

    fn commit(
        &self,
        out: &mut dyn Write,
        reference: &str,
        one: &Planned,
        counts: Option<Counts>,
        lines: &Lines,
    ) -> io::Result<()> {
        let seconds = one.row.checkpoint.created_at.0.div_euclid(1000).max(0);
        let mut message = format!("{}\n\n{}", one.subject, one.body);
        if let Some(counts) = counts {
            let Counts { created, modified, deleted } = counts;
            message += &format!("Changes: {created} created, {modified} modified, {deleted} deleted.\n");
        }
        writeln!(out, "commit {reference}")?;
        writeln!(out, "author {} <{MAIL}> {seconds} +0000", one.author)?;
        writeln!(out, "committer {PITON} <{MAIL}> {seconds} +0000")?;
        writeln!(out, "data {}\n{message}", message.len())?;
        // What goes comes first: a folder may stand where a file was.
        for path in &lines.gone {
            out.write_all(b"D ")?;
            write_path(out, path)?;
        }
        for (path, entry) in &lines.set {
            match entry {
                Entry::File { mode, blob, .. } => {
                    let mark = self.blobs.get(blob).map_or(0, |(mark, _)| *mark);
                    write!(out, "M {:o} :{mark} ", file_mode(*mode))?;
                    write_path(out, path)?;
                }
                Entry::Symlink { target } => {
                    write!(out, "M {:o} inline ", TreeItem::SYMLINK)?;
                    write_path(out, path)?;
                    writeln!(out, "data {}", target.len())?;
                    out.write_all(target)?;
                    out.write_all(b"\n")?;
                }
                Entry::Folder { .. } | Entry::Skipped { .. } => {}
            }
        }
        out.write_all(b"\n")
    }

    /// Writes a blob once, piece by piece, and reckons git's id of it on the way.
    fn blob(&mut self, out: &mut dyn Write, id: &ObjectId, size: u64) -> Written {
        if self.blobs.contains_key(id) {
            return Ok(Ok(()));
        }
        write_or_end!(write!(out, "blob\nmark :{}\ndata {size}\n", self.next));
        let mut tee = Tee { out, hasher: Some(self.ids.blob(size)), written: 0 };
        write_or_end!(self.workspace.store.write_blob(id, &mut tee)?);
        if tee.written != size {
            return Err(StoreError::Damaged(*id).into());
        }
        let Some(hasher) = tee.hasher.take() else { return Err(StoreError::Damaged(*id).into()) };
        self.blobs.insert(*id, (self.next, hasher.finish()));
        self.next += 1;
        Ok(out.write_all(b"\n"))
    }

    /// Git's id of a folder whose files were all written; none where it holds no file.
    fn tree(&mut self, id: &ObjectId, path: &WorkspacePath) -> Result<Option<GitId>, ExportError> {
        let is_whole = !self.without.holds_some(path);
        if let Some(known) = self.trees.get(id).filter(|_| is_whole) {
            return Ok(*known);
        }
        let tree = self.workspace.store.tree(id)?;
        let mut items = Vec::new();
        for (entry_name, entry) in tree.entries() {
            if !is_whole && self.without.paths.contains(&path.join(entry_name)) {
                continue;
            }
            let name = entry_name.as_bytes();
            match entry {
                Entry::File { mode, blob, .. } => {
                    let (_, id) = self.blobs.get(blob).ok_or(StoreError::Missing(*blob))?;
                    items.push(TreeItem { mode: file_mode(*mode), name, id: *id });
                }
                Entry::Symlink { target } => {
                    let mut hasher = self.ids.blob(target.len() as u64);
                    hasher.update(target);
                    items.push(TreeItem { mode: TreeItem::SYMLINK, name, id: hasher.finish() });
                }
                Entry::Folder { tree, .. } => {
                    if let Some(id) = self.tree(tree, &path.join(entry_name))? {
                        items.push(TreeItem { mode: TreeItem::FOLDER, name, id });
                    }
                }
                Entry::Skipped { .. } => {}
            }
        }
        let made = (!items.is_empty()).then(|| self.ids.tree(items));
        if is_whole {
            self.trees.insert(*id, made);
        }
        Ok(made)
    }

    /// What differs between two trees as git sees them. Not [`diff::changes`]: to that one, what is skipped on one side is
    /// unknown, and here it is not there.
    fn lines(
        &self,
        old: Option<&ObjectId>,
        new: Option<&ObjectId>,
        path: &WorkspacePath,
        out: &mut Lines,
    ) -> Result<(), StoreError> {
        if old == new {
            return Ok(());
        }
        let read = |id: Option<&ObjectId>| match id {
            Some(id) => self.workspace.store.tree(id),
            None => Ok(Tree::default().into()),
        };
        let (before, after) = (read(old)?, read(new)?);
        for (name, a, b) in diff::pairs(&before, &after) {
            let is_captured = |entry: &&Entry| !entry.is_skipped();
            let (a, b) = (a.filter(is_captured), b.filter(is_captured));
            let path = path.join(name);
            match (a, b) {
                (a, b) if a == b || self.without.paths.contains(&path) => {}
                (_, Some(entry @ (Entry::File { .. } | Entry::Symlink { .. }))) => out.set.push((path, entry.clone())),
                (a, Some(Entry::Folder { tree: new, .. })) => {
                    let old = match a {
                        Some(Entry::Folder { tree, .. }) => Some(tree),
                        Some(_) => {
                            out.gone.push(path.clone());
                            None
                        }
                        None => None,
                    };
                    self.lines(old, Some(new), &path, out)?;
                }
                (Some(_), _) => out.gone.push(path),
                (None, _) => {}
            }
        }
        Ok(())
    }
}

/// Writes through, counts and hashes.
struct Tee<'o> {
    out: &'o mut dyn Write,
    hasher: Option<piton_host::git::BlobHasher>,
    written: u64,
}

impl Write for Tee<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&bytes[..count]);
        }
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Git knows two modes of files.
fn file_mode(mode: u16) -> u32 {
    if mode & 0o100 != 0 { TreeItem::PROGRAM } else { TreeItem::FILE }
}

/// A path in quotes, as `git fast-import` reads it, and the line's end.
fn write_path(out: &mut dyn Write, path: &WorkspacePath) -> io::Result<()> {
    let mut quoted = vec![b'"'];
    for byte in path.as_bytes() {
        match byte {
            b'\n' => quoted.extend_from_slice(b"\\n"),
            b'"' | b'\\' => quoted.extend_from_slice(&[b'\\', *byte]),
            byte => quoted.push(*byte),
        }
    }
    quoted.extend_from_slice(b"\"\n");
    out.write_all(&quoted)
}
