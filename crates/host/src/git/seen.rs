//! Looking up the paths of git's index in piton's own stat cache, so that none is checked twice.

use super::{FileStat, Repository, SeenPath};
use crate::index::{EntryView, Index};

/// Looks up paths in a capture's stat cache, for [`Repository::has_uncommitted`]. Fast for paths in git's order,
/// correct for any.
pub struct SeenByCapture<'a> {
    index: &'a Index,
    /// The workspace's path in the repository, with a trailing `/`.
    prefix: Vec<u8>,
    /// The folder of the last lookup, after its parents.
    open: Vec<Open<'a>>,
    /// The position after the folder that was entered last.
    entered: usize,
}

/// How many folders are tried before one is searched for.
const NEAR: usize = 4;

struct Open<'a> {
    path: Vec<u8>,
    place: FolderPlace,
    entries: Box<dyn Iterator<Item = EntryView<'a>> + 'a>,
    /// The first entry that was not passed yet, and the name of the last one that was.
    next: Option<EntryView<'a>>,
    passed: Option<&'a [u8]>,
}

/// What the cache knows of a folder.
#[derive(Clone, Copy)]
enum FolderPlace {
    /// Its position in the cache.
    Known(usize),
    Missing,
    /// It lies in a skipped folder.
    Unknown,
}

impl<'a> SeenByCapture<'a> {
    pub fn new(repository: &Repository, index: &'a Index) -> Self {
        let mut prefix = repository.prefix().to_vec();
        if !prefix.is_empty() {
            prefix.push(b'/');
        }
        Self { index, prefix, open: Vec::new(), entered: 0 }
    }

    /// What the capture saw at a path, relative to the repository's root.
    pub fn look_up(&mut self, path: &[u8]) -> SeenPath {
        match path.strip_prefix(self.prefix.as_slice()) {
            Some(path) => self.look_up_inside(path),
            None => SeenPath::Unknown,
        }
    }

    fn look_up_inside(&mut self, path: &[u8]) -> SeenPath {
        let (folder, name) = match path.iter().rposition(|b| *b == b'/') {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (&[][..], path),
        };
        if self.open.last().is_none_or(|open| open.path != folder) {
            while self.open.last().is_some_and(|open| !is_at_or_above(&open.path, folder)) {
                self.open.pop();
            }
            if self.open.last().is_none_or(|open| open.path != folder) {
                self.enter(folder);
            }
        }
        let Some(open) = self.open.last_mut() else { return SeenPath::Unknown };
        let at = match open.place {
            FolderPlace::Known(at) => at,
            FolderPlace::Missing => return SeenPath::Missing,
            FolderPlace::Unknown => return SeenPath::Unknown,
        };
        if open.passed.is_some_and(|passed| passed >= name) {
            open.entries = Box::new(self.index.folder(at).entries());
            (open.next, open.passed) = (open.entries.next(), None);
        }
        while let Some(next) = open.next.as_ref().filter(|next| next.name < name) {
            open.passed = Some(next.name);
            open.next = open.entries.next();
        }
        match &open.next {
            Some(entry) if entry.name == name => SeenPath::Stat(FileStat::from(entry.signature)),
            _ => SeenPath::Missing,
        }
    }

    fn enter(&mut self, folder: &[u8]) {
        // Git's order is nearly the cache's: the folder is usually one of the next ones.
        let mut near = (self.entered..self.index.len()).take(NEAR);
        let near = near.find(|at| self.index.folder(*at).path() == folder);
        let place = match near.or_else(|| self.index.find(folder)) {
            Some(at) => {
                self.entered = at + 1;
                FolderPlace::Known(at)
            }
            None if folder.is_empty() => FolderPlace::Unknown,
            None => match self.look_up_inside(folder) {
                SeenPath::Stat(stat) if stat.mode & 0o170_000 == 0o040_000 => FolderPlace::Unknown,
                SeenPath::Unknown => FolderPlace::Unknown,
                SeenPath::Stat(_) | SeenPath::Missing => FolderPlace::Missing,
            },
        };
        let mut entries: Box<dyn Iterator<Item = EntryView<'a>> + 'a> = match place {
            FolderPlace::Known(at) => Box::new(self.index.folder(at).entries()),
            _ => Box::new(std::iter::empty()),
        };
        let next = entries.next();
        self.open.push(Open { path: folder.to_vec(), place, entries, next, passed: None });
    }
}

fn is_at_or_above(folder: &[u8], path: &[u8]) -> bool {
    folder.is_empty() || (path.starts_with(folder) && matches!(path.get(folder.len()), None | Some(b'/')))
}
