//! Stores that are read beside another one: beside that of a fork its parent's, which has the contents of what they share.
//!
//! Objects are named by their contents, so it is all the same which store gives one. Only reading contents looks there; what
//! this store has, and whether that is sound, is asked of this store alone.

use std::collections::HashSet;
use std::sync::Arc;

use piton_model::git::GitState;
use piton_model::{NeededObject, ObjectId, Tree};

use crate::error::StoreError;
use crate::objects::{Packed, chunks};
use crate::pack::{self, Kind, Sound};
use crate::write::Writer;
use crate::{Reader, Store};

/// More forks of forks than anybody makes: forged records could form a cycle.
const GENERATIONS: usize = 100;

/// The stores that are read beside one.
#[derive(Default)]
pub(crate) struct Beside {
    others: Vec<Arc<Reader>>,
    /// Whether it was asked which workspace this one is a fork of.
    has_looked: bool,
}

impl Reader {
    /// An object of this store, else of one that it is a fork of.
    pub(crate) fn here_or_beside(&self, id: &ObjectId) -> Result<Sound, StoreError> {
        match self.object(id) {
            Err(error @ (StoreError::Missing(_) | StoreError::Damaged(_))) => self.object_beside(id).ok_or(error),
            found => found,
        }
    }

    fn object_beside(&self, id: &ObjectId) -> Option<Sound> {
        let mut next = self.stores_beside();
        for _ in 0..GENERATIONS {
            let other = next.pop()?;
            if let Ok(sound) = other.object(id) {
                return Some(sound);
            }
            next.extend(other.stores_beside());
        }
        None
    }

    /// From now on, contents that are not here are read from that store too.
    pub fn read_beside(&self, other: Arc<Self>) {
        if other.folder != self.folder {
            self.beside.lock().unwrap_or_else(|e| e.into_inner()).others.push(other);
        }
    }

    fn stores_beside(&self) -> Vec<Arc<Self>> {
        let mut beside = self.beside.lock().unwrap_or_else(|e| e.into_inner());
        if !beside.has_looked {
            beside.has_looked = true;
            let parent = self.open_parent();
            beside.others.extend(parent);
        }
        beside.others.clone()
    }

    /// The store of the workspace that this one is a fork of, where it is there and can be read.
    fn open_parent(&self) -> Option<Arc<Self>> {
        let parent = self.workspace().ok()??.forked_from?;
        let folder = self.folder.parent()?.join(parent.as_str());
        if folder == self.folder || !folder.is_dir() {
            return None;
        }
        Some(Store::open(&folder).ok()?.reader())
    }
}

impl Writer<'_> {
    /// Takes in an object with all that it lists from the stores beside this one; what is here stays as it is.
    ///
    /// # Errors
    /// Where some of it is in none of them, or this store refuses.
    pub fn take_beside(&mut self, needed: NeededObject) -> Result<(), StoreError> {
        let (mut next, mut seen) = (vec![needed], HashSet::new());
        while let Some(needed) = next.pop() {
            let id = needed.id();
            if !seen.insert(id) || self.is_added(&id) {
                continue;
            }
            // A file that is here need not be read: its chunks came with it.
            if matches!(needed, NeededObject::Blob { .. }) && self.store.contains(&id)? {
                continue;
            }
            let sound = match self.store.object(&id) {
                Err(error @ (StoreError::Missing(_) | StoreError::Damaged(_))) => {
                    let sound = self.store.object_beside(&id).ok_or(error)?;
                    let packed = pack::pack(sound.kind, id, &sound.raw);
                    self.append(Packed(packed.map_err(StoreError::io("cannot pack", self.folder()))?))?;
                    sound
                }
                found => found?,
            };
            if let NeededObject::GitState(_) = &needed {
                let json = self.store.blob(&id)?;
                let state: GitState = serde_json::from_slice(&json).map_err(|_| StoreError::Damaged(id))?;
                next.extend(state.needs().map(|need| need.object));
            }
            next.extend(lists(&needed, &sound).ok_or(StoreError::Damaged(id))?);
        }
        Ok(())
    }
}

/// What an object lists; none where it is not what it must be.
fn lists(needed: &NeededObject, sound: &Sound) -> Option<Vec<NeededObject>> {
    match (needed, sound.kind) {
        (NeededObject::Tree(_), Kind::Tree) => {
            let tree = Tree::decode(&sound.raw).ok()?;
            Some(tree.entries().iter().filter_map(|(_, entry)| entry.needs()).collect())
        }
        (NeededObject::Blob { .. } | NeededObject::GitState(_), Kind::Blob) => Some(Vec::new()),
        (NeededObject::Blob { .. } | NeededObject::GitState(_), Kind::Chunks) => {
            Some(chunks(&sound.raw)?.into_iter().map(|id| NeededObject::Blob { id, size: None }).collect())
        }
        _ => None,
    }
}
