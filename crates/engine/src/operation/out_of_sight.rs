//! What was written where nothing was captured for a while: a file that was captured, was left out by a rule, for its size or for
//! whatever reason at some checkpoint, and is something else where it is captured again.
//!
//! No checkpoint found that change, so no list of changes has it and nobody knows whose it is. It may be the user's own.

use std::collections::{BTreeMap, BTreeSet};

use piton_model::diff::{self, TreeSource};
use piton_model::{Entry, ObjectId, SkipReason, WorkspacePath};
use piton_store::{CheckpointRow, StoreError};

use crate::capture::held::Recent;
use crate::operation::draft::FolderNow;
use crate::workspace::History;

/// A path on the way from one checkpoint to now.
struct Seen {
    /// At the first checkpoint.
    then: Option<Entry>,
    /// When it was captured last.
    last: Option<Entry>,
    is_hidden: bool,
    /// Its content came about while it was hidden, or builds on one that did.
    is_of_nobody: bool,
    /// Whatever was there and was: a redo brings it back.
    of_nobody: Vec<Entry>,
}

impl Seen {
    fn go_on(&mut self, now: Option<Entry>) {
        if now.as_ref().is_some_and(Entry::is_skipped) {
            self.is_hidden = true;
            return;
        }
        self.is_of_nobody |= self.is_hidden && now != self.last;
        self.is_of_nobody |= now.as_ref().is_some_and(|now| self.of_nobody.contains(now));
        // What is gone, or as it was at first, holds nothing of anybody's.
        self.is_of_nobody &= now.is_some() && now != self.then;
        self.is_hidden = false;
        if self.is_of_nobody {
            self.of_nobody.extend(now.clone().filter(|now| !self.of_nobody.contains(now)));
        }
        self.last = now;
    }
}

/// What a folder was at some moment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listing {
    Tree(ObjectId),
    Nothing,
    Unknown(SkipReason),
}

impl Listing {
    /// What is damaged is as unknown as what was left out.
    fn of<S: TreeSource<Error = StoreError>>(
        trees: &S,
        root: &ObjectId,
        folder: &WorkspacePath,
    ) -> Result<Self, StoreError> {
        if folder.is_root() {
            return Ok(Self::Tree(*root));
        }
        Ok(match readable(diff::lookup(trees, root, folder))? {
            Ok(Some(Entry::Folder { tree, .. })) => Self::Tree(tree),
            Ok(Some(Entry::Skipped { reason })) | Err(reason) => Self::Unknown(reason),
            Ok(_) => Self::Nothing,
        })
    }

    fn entry<S: TreeSource<Error = StoreError>>(self, trees: &S, name: &[u8]) -> Result<Option<Entry>, StoreError> {
        let unknown = |reason| Some(Entry::Skipped { reason });
        Ok(match self {
            Self::Nothing => None,
            Self::Unknown(reason) => unknown(reason),
            Self::Tree(id) => match readable(trees.tree(&id))? {
                Ok(tree) => tree.get(name).cloned(),
                Err(reason) => unknown(reason),
            },
        })
    }
}

/// The inner error is what cannot be read for being damaged.
fn readable<T>(read: Result<T, StoreError>) -> Result<Result<T, SkipReason>, StoreError> {
    match read {
        Ok(read) => Ok(Ok(read)),
        Err(StoreError::Damaged(_) | StoreError::Missing(_)) => Ok(Err(SkipReason::Damaged)),
        Err(error) => Err(error),
    }
}

impl History {
    /// Which of some paths hold something that was written where nothing was captured, since a checkpoint.
    pub(crate) fn written_out_of_sight(
        &self,
        target: &CheckpointRow,
        paths: &BTreeSet<WorkspacePath>,
        seen: &FolderNow<'_>,
    ) -> Result<BTreeSet<WorkspacePath>, StoreError> {
        let trees = Recent::new(&self.store);
        let mut folders: BTreeMap<WorkspacePath, (Listing, Vec<(WorkspacePath, Seen)>)> = BTreeMap::new();
        let first = target.checkpoint.root.tree;
        for path in paths {
            let Some((folder, name)) = path.split() else { continue };
            let listing = Listing::of(&trees, &first, &folder)?;
            let then = listing.entry(&trees, name.as_bytes())?;
            let (is_hidden, is_of_nobody, of_nobody) = (false, false, Vec::new());
            let one = Seen { last: then.clone(), then, is_hidden, is_of_nobody, of_nobody };
            folders.entry(folder).or_insert((listing, Vec::new())).1.push((path.clone(), one));
        }
        let mut root = first;
        for link in self.store.links()? {
            if link.line != self.record.line || link.seq <= target.seq || link.tree == root {
                continue;
            }
            root = link.tree;
            for (folder, (listing, files)) in &mut folders {
                go_on(&trees, &root, folder, listing, files)?;
            }
        }
        for (folder, (listing, files)) in &mut folders {
            go_on(&seen.trees, &seen.now.tree, folder, listing, files)?;
        }
        let files = folders.into_values().flat_map(|(_, files)| files);
        Ok(files.filter(|(_, one)| one.is_of_nobody).map(|(path, _)| path).collect())
    }
}

/// Goes on to the next moment with the files of one folder.
fn go_on<S: TreeSource<Error = StoreError>>(
    trees: &S,
    root: &ObjectId,
    folder: &WorkspacePath,
    listing: &mut Listing,
    files: &mut [(WorkspacePath, Seen)],
) -> Result<(), StoreError> {
    let now = Listing::of(trees, root, folder)?;
    if now == *listing {
        return Ok(());
    }
    *listing = now;
    for (path, one) in files {
        let Some((_, name)) = path.split() else { continue };
        one.go_on(now.entry(trees, name.as_bytes())?);
    }
    Ok(())
}
