//! Follows what a private file held to other paths: a secret is as secret in `env.production` as it was in `.env`.
//!
//! All checkpoints of the store are passed once, in order. A file holds a copy if it has a content that a private path had
//! before, or if it is new and more like one than not. From then on everything that a new file holds counts; of one that was there
//! before, what is more like the copy than not.
//! What git has anyway at that path is no secret, and neither is a file that was there first and that the private one was made
//! from, such as `.env.example`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use piton_model::diff::{self, Change};
use piton_model::moves;
use piton_model::{Entry, ObjectId, WorkspacePath};
use piton_store::{StoreError, StoredTree};

use super::Tracking;
use crate::workspace::History;

/// With more files than this, those that are new are compared with the private ones only as a whole: each has to be read.
const MOST_COMPARED: usize = 50;

/// Smaller contents, in bytes, are equal by chance: `{}`, a version, a count.
const SMALLEST: u64 = 8;

/// Larger files are compared as a whole.
const LARGEST: u64 = 1 << 20;

/// Where a content was first seen at a private path.
struct Secret {
    path: WorkspacePath,
    /// The tree before that, and the one that had it.
    before: Option<ObjectId>,
    after: ObjectId,
}

/// A path with a copy.
struct Holding {
    /// The path that it is a copy of.
    of: WorkspacePath,
    /// Whether the file was there before.
    is_older: bool,
    /// What it holds.
    last: ObjectId,
}

struct Trace<'t> {
    workspace: &'t History,
    is_private: &'t mut dyn FnMut(&WorkspacePath) -> bool,
    git: &'t Tracking,
    secrets: HashMap<ObjectId, Secret>,
    /// What each private path held last, with its size.
    latest: BTreeMap<WorkspacePath, (ObjectId, u64)>,
    /// Paths that hold a copy.
    holding: HashMap<WorkspacePath, Holding>,
    /// Every content that a path had while it held a copy.
    copies: HashMap<(WorkspacePath, ObjectId), WorkspacePath>,
}

impl History {
    /// Which of some files, each with what it held, have a copy of what was at a private path, and of which one.
    pub(super) fn copies(
        &self,
        files: &BTreeMap<WorkspacePath, BTreeSet<ObjectId>>,
        past: &[StoredTree],
        is_private: &mut dyn FnMut(&WorkspacePath) -> bool,
        git: &Tracking,
    ) -> Result<BTreeMap<WorkspacePath, WorkspacePath>, StoreError> {
        let mut trace = Trace {
            workspace: self,
            is_private,
            git,
            secrets: HashMap::new(),
            latest: BTreeMap::new(),
            holding: HashMap::new(),
            copies: HashMap::new(),
        };
        let mut last: HashMap<u32, ObjectId> = HashMap::new();
        for one in past {
            let before = last.insert(one.line, one.tree);
            if before == Some(one.tree) {
                continue;
            }
            match trace.pass(before, one.tree) {
                Ok(()) => {}
                // The next one is compared with the last that can be read.
                Err(StoreError::Missing(_) | StoreError::Damaged(_)) => match before {
                    Some(tree) => drop(last.insert(one.line, tree)),
                    None => drop(last.remove(&one.line)),
                },
                Err(error) => return Err(error),
            }
        }
        let mut found = BTreeMap::new();
        if trace.secrets.is_empty() {
            return Ok(found);
        }
        for (path, contents) in files {
            for blob in contents {
                let made = trace.copies.get(&(path.clone(), *blob));
                let of = match (made, trace.secrets.get(blob)) {
                    (Some(of), _) => of.clone(),
                    (None, Some(secret)) if !trace.was_first(path, blob, secret)? => secret.path.clone(),
                    _ => continue,
                };
                if !(trace.is_private)(path) && !git.has(self, path, blob)? {
                    found.insert(path.clone(), of);
                    break;
                }
            }
        }
        Ok(found)
    }
}

impl Trace<'_> {
    /// Looks at what happened from one checkpoint to the next.
    fn pass(&mut self, before: Option<ObjectId>, after: ObjectId) -> Result<(), StoreError> {
        let changes = diff::changes(&self.workspace.store, before.as_ref(), Some(&after))?;
        for change in &changes {
            let Some((blob, size)) = content(change.after.as_ref()) else { continue };
            if !self.secrets.contains_key(&blob)
                && (self.is_private)(&change.path)
                && !self.git.has(self.workspace, &change.path, &blob)?
            {
                self.secrets.insert(blob, Secret { path: change.path.clone(), before, after });
                self.latest.insert(change.path.clone(), (blob, size));
            }
        }
        if self.secrets.is_empty() {
            return Ok(());
        }
        let is_new = |change: &&Change| change.before.is_none() && content(change.after.as_ref()).is_some();
        let is_compared = before.is_some()
            && self.latest.len() <= MOST_COMPARED
            && changes.iter().filter(is_new).count() <= MOST_COMPARED;
        for change in &changes {
            let path = &change.path;
            let Some((blob, size)) = content(change.after.as_ref()) else {
                self.holding.remove(path);
                continue;
            };
            if let Some(holding) = self.holding.get(path) {
                let stays = !holding.is_older || self.is_alike(&holding.last, &blob, size)?;
                let of = holding.of.clone();
                if stays && !self.git.has(self.workspace, path, &blob)? {
                    self.note(path, (blob, size), of, (before, after));
                    continue;
                }
                self.holding.remove(path);
            }
            if (self.is_private)(path) || self.git.has(self.workspace, path, &blob)? {
                continue;
            }
            let of = match self.secrets.get(&blob) {
                Some(secret) if self.was_first(path, &blob, secret)? => None,
                Some(secret) => Some(secret.path.clone()),
                None if is_compared && change.before.is_none() => self.most_alike(&blob, size)?,
                None => None,
            };
            if let Some(of) = of {
                let is_older = content(change.before.as_ref()).is_some();
                self.holding.insert(path.clone(), Holding { of: of.clone(), is_older, last: blob });
                self.note(path, (blob, size), of, (before, after));
            }
        }
        Ok(())
    }

    /// Notes what a path holds that has a copy; what is made from that is a copy too.
    fn note(
        &mut self,
        path: &WorkspacePath,
        (blob, size): (ObjectId, u64),
        of: WorkspacePath,
        (before, after): (Option<ObjectId>, ObjectId),
    ) {
        self.secrets.entry(blob).or_insert_with(|| Secret { path: of.clone(), before, after });
        self.latest.insert(path.clone(), (blob, size));
        if let Some(holding) = self.holding.get_mut(path) {
            holding.last = blob;
        }
        self.copies.insert((path.clone(), blob), of);
    }

    /// The private path whose last content is more like a new one than not.
    fn most_alike(&self, blob: &ObjectId, size: u64) -> Result<Option<WorkspacePath>, StoreError> {
        // A file of more than twice the size cannot be half alike.
        let may_be = |other: u64| size / 2 <= other && other / 2 <= size && size.max(other) <= LARGEST;
        let mut content = None;
        for (path, (other, other_size)) in &self.latest {
            if !may_be(*other_size) {
                continue;
            }
            let content = match &content {
                Some(content) => content,
                // What is damaged can be in no commit.
                None => match self.workspace.store.blob(blob) {
                    Ok(read) => content.insert(read),
                    Err(StoreError::Missing(_) | StoreError::Damaged(_)) => return Ok(None),
                    Err(error) => return Err(error),
                },
            };
            let Ok(other) = self.workspace.store.blob(other) else { continue };
            if moves::are_alike(&other, content) {
                let of = self.holding.get(path).map_or(path, |holding| &holding.of);
                return Ok(Some(of.clone()));
            }
        }
        Ok(None)
    }

    /// Whether a content is more like an earlier one than not.
    fn is_alike(&self, was: &ObjectId, is: &ObjectId, size: u64) -> Result<bool, StoreError> {
        if size > LARGEST {
            return Ok(was == is);
        }
        let alike = |is: &[u8]| self.workspace.store.blob(was).is_ok_and(|was| moves::are_alike(&was, is));
        match self.workspace.store.blob(is) {
            Ok(is) => Ok(alike(&is)),
            // What is damaged can be in no commit.
            Err(StoreError::Missing(_) | StoreError::Damaged(_)) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Whether a file had a content before a private path got it, and kept it: the private one was made from it.
    fn was_first(&self, path: &WorkspacePath, blob: &ObjectId, secret: &Secret) -> Result<bool, StoreError> {
        let Some(before) = &secret.before else { return Ok(false) };
        for tree in [before, &secret.after] {
            let found = diff::lookup(&self.workspace.store, tree, path)?;
            if content(found.as_ref()).is_none_or(|(found, _)| found != *blob) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// What a file holds, with its size, unless that is too little to prove anything.
fn content(entry: Option<&Entry>) -> Option<(ObjectId, u64)> {
    match entry {
        Some(Entry::File { blob, size, .. }) if *size >= SMALLEST => Some((*blob, *size)),
        _ => None,
    }
}
