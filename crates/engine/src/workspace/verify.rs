//! Checking the store, and making its database anew.

use piton_store::{Damage, StoreError, Verified};

use crate::view::{DamageView, Verification};
use crate::workspace::Workspace;

impl Workspace {
    /// Reads every byte of the store and compares all of it with itself. With `repair`, the database is made anew from
    /// the packs where it is not what they say; damaged objects are forgotten, so that the next capture stores them
    /// again if the workspace still has them.
    pub fn verify(&self, repair: bool) -> Result<Verification, StoreError> {
        let found = match self.store.verify() {
            // So damaged that not even the comparison gets to its end.
            Err(error) if error.is_damaged_database() => {
                Verified { damage: vec![Damage::Database { message: error.to_string() }], ..Verified::default() }
            }
            found => found?,
        };
        let sound = found.damage.is_empty();
        let mut repaired = false;
        if repair && !sound {
            self.store.rebuild()?;
            repaired = true;
        }
        Ok(Verification {
            sound,
            checkpoints: found.checkpoints,
            objects: found.objects,
            bytes: found.bytes,
            damage: found.damage.iter().map(damage).collect(),
            repaired,
            waiting: self.waiting_events(),
            // What cannot be read is among the damage.
            pending: self.store.pending().unwrap_or_default().iter().map(Into::into).collect(),
            unwritable: self.store.check_writable().err().map(|error| error.to_string()),
        })
    }
}

fn damage(damage: &Damage) -> DamageView {
    match damage {
        Damage::Pack { pack, from, to } => DamageView::Pack { pack: *pack, from: *from, to: *to },
        Damage::Row { table, key } => DamageView::Row { table: (*table).to_owned(), key: key.clone() },
        Damage::Database { message } => DamageView::Database { message: message.clone() },
        Damage::Needed { checkpoints, path, object } => {
            DamageView::Needed { checkpoints: checkpoints.clone(), path: path.into(), object: object.to_hex() }
        }
        Damage::GitState { checkpoints, object } => {
            DamageView::GitState { checkpoints: checkpoints.clone(), object: object.to_hex() }
        }
        Damage::Transcript { session, object } => {
            DamageView::Transcript { session: session.clone(), object: object.to_hex() }
        }
        Damage::OutsideOfStep { step, path, object } => {
            DamageView::OutsideOfStep { step: step.clone(), path: path.clone(), object: object.to_hex() }
        }
        Damage::OutsideOfOperation { operation, path } => {
            DamageView::OutsideOfOperation { operation: operation.clone(), path: path.clone() }
        }
        Damage::Operation { operation, path, object } => {
            DamageView::Operation { operation: operation.clone(), path: path.into(), object: object.to_hex() }
        }
        Damage::Gone { pack, from, to, checkpoints, file } => DamageView::Gone {
            pack: *pack,
            from: *from,
            to: *to,
            checkpoints: checkpoints.clone(),
            file: file.display().to_string(),
        },
        Damage::PackMissing { pack } => DamageView::PackMissing { pack: *pack },
        Damage::RecordsMissing { from, to } => DamageView::RecordsMissing { from: *from, to: *to },
        Damage::RecordTwice { seq } => DamageView::RecordTwice { seq: *seq },
        Damage::Aside { file, checkpoints } => {
            DamageView::Aside { file: file.display().to_string(), checkpoints: checkpoints.clone() }
        }
    }
}
