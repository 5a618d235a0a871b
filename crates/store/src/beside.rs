//! Other stores that are read beside this one: for a moment of a fork's parent, which stands in the parent's store.
//!
//! Objects are named by their contents, so it is all the same which store gives one. Only reading contents looks there; what
//! this store has, and whether that is sound, is asked of this store alone.

use std::collections::HashSet;
use std::sync::Arc;

use piton_model::git::GitState;
use piton_model::{NeededObject, ObjectId, Tree};

use crate::Reader;
use crate::error::StoreError;
use crate::objects::{Packed, chunks};
use crate::pack::{self, Kind, Sound};
use crate::write::Writer;

impl Reader {
    /// From now on, contents that are not here are read from that store.
    pub fn read_beside(&self, other: Arc<Self>) {
        let mut beside = self.beside.lock().unwrap_or_else(|e| e.into_inner());
        if other.folder != self.folder && beside.iter().all(|one| one.folder != other.folder) {
            beside.push(other);
        }
    }

    /// An object of this store, else of one beside it.
    pub(crate) fn here_or_beside(&self, id: &ObjectId) -> Result<Sound, StoreError> {
        match self.object(id) {
            Err(error @ (StoreError::Missing(_) | StoreError::Damaged(_))) => self.beside(id).ok_or(error),
            found => found,
        }
    }

    fn beside(&self, id: &ObjectId) -> Option<Sound> {
        let beside = self.beside.lock().unwrap_or_else(|e| e.into_inner()).clone();
        beside.iter().find_map(|other| other.object(id).ok())
    }
}

impl Writer<'_> {
    /// Takes in an object with all that it lists from the stores beside this one; what is here and sound stays as it is.
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
            let sound = match self.store.object(&id) {
                Err(error @ (StoreError::Missing(_) | StoreError::Damaged(_))) => {
                    let sound = self.store.beside(&id).ok_or(error)?;
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
