//! What is staged: where the index differs from HEAD's tree.
//!
//! Walks HEAD's tree and the index side by side, both being in the same order, and enters only folders that differ.

use std::cmp::Ordering;
use std::ops::Range;

use piton_model::WorkspacePath;
use piton_model::git::{FlaggedEntry, INTENT_TO_ADD, SKIP_WORKTREE, StagedEntry, StagedKind};

use super::Limits;
use super::cached::CachedTree;
use super::hash::{Format, Id};
use super::index::Index;
use super::objects::{Kind, Objects};
use super::tree::{Item, Items, MODE_FOLDER, canonical, order};

/// Largest tree that is read, in bytes: over a million entries.
const LARGEST_TREE: u64 = 64 << 20;
const LARGEST_COMMIT: u64 = 4 << 20;
/// Deepest nesting; no project has that, and every level takes some of the stack.
const DEEPEST: usize = 256;
/// Longer paths, in bytes, are not listed.
const LONGEST_PATH: usize = 32 << 10;

/// What differs, in order; and why that is incomplete.
pub(super) struct Staged {
    pub entries: Vec<StagedEntry>,
    pub incomplete: Option<String>,
}

/// Compares the index with a commit, or with nothing before the first one.
pub(super) fn staged(index: &Index, objects: &Objects, commit: Option<Id>, format: Format, limits: &Limits) -> Staged {
    let mut walk = Walk {
        index,
        objects,
        format,
        cached: None,
        path: Vec::new(),
        trees_left: limits.trees,
        most_entries: limits.staged,
        entries: Vec::new(),
    };
    let all = 0..index.entries.len();
    let result = match commit {
        None => walk.all_created(all),
        Some(commit) => walk.tree_of(commit).and_then(|tree| {
            if index.whole_tree().is_some_and(|whole| whole == tree) {
                return Ok(());
            }
            walk.cached = index.cached_tree();
            walk.compare(tree, all, Some(0), 0)
        }),
    };
    Staged { entries: walk.entries, incomplete: result.err() }
}

/// Entries with a flag that are not staged. `staged` is sorted.
pub(super) fn flagged(
    index: &Index,
    staged: &[StagedEntry],
    wanted: u16,
    most: usize,
) -> Result<Vec<FlaggedEntry>, String> {
    let mut found = Vec::new();
    if index.all_flags & wanted == 0 {
        return Ok(found);
    }
    for entry in index.entries.iter().filter(|entry| u16::from(entry.flags) & wanted != 0) {
        let path = index.path(entry);
        if staged.binary_search_by(|staged| staged.path.as_bytes().cmp(path)).is_ok() {
            continue;
        }
        if found.len() == most {
            return Err(format!("more than {most} entries of the index have flags; the rest is left out"));
        }
        let path = WorkspacePath::new(path).map_err(|error| format!("the index: {error}"))?;
        found.push(FlaggedEntry { path, flags: u16::from(entry.flags) });
    }
    Ok(found)
}

struct Walk<'a> {
    index: &'a Index,
    objects: &'a Objects,
    format: Format,
    cached: Option<CachedTree<'a>>,
    /// The current folder, with a trailing `/`.
    path: Vec<u8>,
    trees_left: usize,
    most_entries: usize,
    entries: Vec<StagedEntry>,
}

/// The error is the reason for stopping.
type Done = Result<(), String>;

impl Walk<'_> {
    fn tree_of(&mut self, commit: Id) -> Result<Id, String> {
        let content = self.objects.get(commit, Kind::Commit, LARGEST_COMMIT).map_err(|e| e.to_string())?;
        let hex = content.strip_prefix(b"tree ").and_then(|rest| rest.get(..self.format.len() * 2));
        hex.and_then(|hex| Id::from_hex(hex, self.format))
            .ok_or_else(|| format!("commit {} is damaged", commit.to_hex()))
    }

    fn tree(&mut self, id: Id, depth: usize) -> Result<Vec<u8>, String> {
        if depth > DEEPEST {
            return Err("HEAD's folders are nested too deeply".into());
        }
        self.trees_left = self.trees_left.checked_sub(1).ok_or("too many folders differ between the index and HEAD")?;
        self.objects.get(id, Kind::Tree, LARGEST_TREE).map_err(|e| e.to_string())
    }

    /// Compares a folder of HEAD with the entries beneath it. `cached`: the folder's position among the cached trees.
    fn compare(&mut self, tree: Id, range: Range<usize>, cached: Option<usize>, depth: usize) -> Done {
        let inside = match (&self.cached, cached) {
            (Some(trees), Some(at)) => {
                if trees.folders[at].tree.is_some_and(|(count, id)| id == tree && count == range.len()) {
                    return Ok(());
                }
                trees.inside(at)
            }
            _ => Vec::new(),
        };
        let content = self.tree(tree, depth)?;
        let mut items = Items::new(&content, tree, self.format);
        let mut item = items.next()?;
        let base = self.path.len();
        let mut at = range.start;
        loop {
            let mine = (at < range.end).then(|| self.next_name(at, range.end, base));
            let order = match (&mine, &item) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(mine), Some(item)) => order(&mine.name, mine.is_folder, item.name, item.is_folder()),
            };
            match (order, &mine, &item) {
                (Ordering::Less, Some(mine), _) => self.all_created(at..mine.end)?,
                (Ordering::Greater, _, Some(item)) => self.pair(Some(item), None, depth)?,
                (_, Some(mine), Some(item)) if !mine.is_folder => self.entries(at..mine.end, Some(item))?,
                (_, Some(mine), Some(item)) => {
                    let cached = inside.binary_search_by_key(&item.name, |(name, _)| *name);
                    let cached = cached.ok().map(|found| inside[found].1);
                    self.folder(item, at..mine.end, cached, depth)?;
                }
                _ => {}
            }
            self.path.truncate(base);
            if order != Ordering::Less {
                item = items.next()?;
            }
            if let (Some(mine), true) = (mine, order != Ordering::Greater) {
                at = mine.end;
            }
        }
    }

    /// Compares a subfolder of HEAD that the index has as well.
    fn folder(&mut self, item: &Item<'_>, range: Range<usize>, cached: Option<usize>, depth: usize) -> Done {
        let first = self.index.entries[range.start];
        let is_whole = self.index.path(&first).len() == self.path.len() + item.name.len() + 1;
        match is_whole {
            // A sparse checkout has one entry for everything in a folder that it leaves out.
            true if range.len() == 1 => {
                let mine = Item { mode: MODE_FOLDER, name: item.name, id: self.index.id(&first) };
                self.pair(Some(item), Some(&mine), depth)
            }
            true => Err("the index is damaged".into()),
            false => {
                self.enter(item.name)?;
                self.compare(item.id, range, cached, depth + 1)
            }
        }
    }

    /// The next name in the folder, and where the entries of that name end.
    fn next_name(&self, at: usize, end: usize, base: usize) -> IndexName {
        let path = self.index.path(&self.index.entries[at]);
        let rest = path.get(base..).unwrap_or_default();
        let entries = &self.index.entries[at..end];
        match rest.iter().position(|b| *b == b'/') {
            Some(slash) => {
                let prefix = &path[..base + slash + 1];
                let count = entries.partition_point(|e| self.index.path(e).starts_with(prefix));
                IndexName { name: rest[..slash].to_vec(), is_folder: true, end: at + count.max(1) }
            }
            None => {
                // A conflict has up to three entries of one name.
                let count = entries.iter().take_while(|e| self.index.path(e) == path).count();
                IndexName { name: rest.to_vec(), is_folder: false, end: at + count.max(1) }
            }
        }
    }

    fn enter(&mut self, name: &[u8]) -> Done {
        if self.path.len() + name.len() > LONGEST_PATH {
            return Err("a path in HEAD is too long".into());
        }
        self.path.extend_from_slice(name);
        self.path.push(b'/');
        Ok(())
    }

    /// Entries that HEAD does not have.
    fn all_created(&mut self, range: Range<usize>) -> Done {
        for at in range {
            let entry = self.index.entries[at];
            if self.index.mode(&entry) == MODE_FOLDER {
                let path = self.index.path(&entry);
                self.path.clear();
                self.path.extend_from_slice(path);
                self.trees(None, Some(self.index.id(&entry)), 0)?;
            } else {
                self.entries(at..at + 1, None)?;
            }
        }
        Ok(())
    }

    /// Compares the entries of one name with what HEAD has there.
    fn entries(&mut self, range: Range<usize>, head: Option<&Item<'_>>) -> Done {
        for at in range {
            let entry = self.index.entries[at];
            let (mode, id) = (self.index.mode(&entry), self.index.id(&entry));
            let kind = match head {
                _ if entry.stage > 0 => StagedKind::Unmerged,
                None => StagedKind::Created,
                Some(head) if head.id == id && canonical(head.mode) == canonical(mode) => {
                    // An intent to add has no content, so it cannot equal HEAD's.
                    if u16::from(entry.flags) & INTENT_TO_ADD == 0 {
                        continue;
                    }
                    StagedKind::Modified
                }
                Some(_) => StagedKind::Modified,
            };
            let path = self.index.path(&entry).to_vec();
            self.push(kind, path, mode, Some(id), entry.stage, entry.flags.into())?;
        }
        Ok(())
    }

    /// Compares what HEAD and the index have under one name, where the index has a whole folder or nothing.
    fn pair(&mut self, head: Option<&Item<'_>>, mine: Option<&Item<'_>>, depth: usize) -> Done {
        let name = head.or(mine).map_or(&[][..], |item| item.name);
        let folder = |item: Option<&Item<'_>>| item.filter(|item| item.is_folder()).map(|item| item.id);
        let file = |item: Option<&Item<'_>>| item.filter(|item| !item.is_folder()).map(|item| (item.mode, item.id));
        let base = self.path.len();
        let path = [&self.path, name].concat();
        match (file(head), file(mine)) {
            (None, None) => {}
            (Some(_), None) => self.push(StagedKind::Deleted, path, 0, None, 0, 0)?,
            (None, Some((mode, id))) => self.push(StagedKind::Created, path, mode, Some(id), 0, SKIP_WORKTREE)?,
            (Some((old, id)), Some((mode, new))) if id == new && canonical(old) == canonical(mode) => {}
            (Some(_), Some((mode, id))) => self.push(StagedKind::Modified, path, mode, Some(id), 0, SKIP_WORKTREE)?,
        }
        if (folder(head), folder(mine)) != (None, None) {
            self.enter(name)?;
            self.trees(folder(head), folder(mine), depth + 1)?;
            self.path.truncate(base);
        }
        Ok(())
    }

    /// Compares two trees, either of which may be absent.
    fn trees(&mut self, head: Option<Id>, mine: Option<Id>, depth: usize) -> Done {
        if head == mine {
            return Ok(());
        }
        let mut read = |id: Option<Id>| id.map_or(Ok(Vec::new()), |id| self.tree(id, depth));
        let (old, new) = (read(head)?, read(mine)?);
        let none = Id::from_bytes(&[]);
        let mut olds = Items::new(&old, head.unwrap_or(none), self.format);
        let mut news = Items::new(&new, mine.unwrap_or(none), self.format);
        let (mut old, mut new) = (olds.next()?, news.next()?);
        loop {
            let order = match (&old, &new) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) => order(old.name, old.is_folder(), new.name, new.is_folder()),
            };
            match order {
                Ordering::Less => self.pair(old.as_ref(), None, depth)?,
                Ordering::Greater => self.pair(None, new.as_ref(), depth)?,
                Ordering::Equal => self.pair(old.as_ref(), new.as_ref(), depth)?,
            }
            if order != Ordering::Greater {
                old = olds.next()?;
            }
            if order != Ordering::Less {
                new = news.next()?;
            }
        }
    }

    fn push(&mut self, kind: StagedKind, path: Vec<u8>, mode: u32, id: Option<Id>, stage: u8, flags: u16) -> Done {
        if self.entries.len() == self.most_entries {
            return Err(format!("more than {} entries are staged; the rest is left out", self.most_entries));
        }
        let path = WorkspacePath::new(path).map_err(|error| format!("the index: {error}"))?;
        self.entries.push(StagedEntry {
            path,
            kind,
            mode,
            id: id.map_or_else(String::new, Id::to_hex),
            stage,
            flags,
            blob: None,
        });
        Ok(())
    }
}

/// A name in a folder as the index has it, and where its entries end.
struct IndexName {
    name: Vec<u8>,
    is_folder: bool,
    end: usize,
}
