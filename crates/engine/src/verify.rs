//! Checking the store, and making its database anew.

use piton_store::{Damage, StoreError};

use crate::view::{DamageView, Verification};
use crate::workspace::Workspace;

impl Workspace {
    /// Reads every byte of the store and compares all of it with itself. With `repair`, the database is made anew from
    /// the packs where it is not what they say; damaged objects are forgotten, so that the next capture stores them
    /// again if the workspace still has them.
    pub fn verify(&self, repair: bool) -> Result<Verification, StoreError> {
        let found = self.store.verify()?;
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
        Damage::Aside { file } => DamageView::Aside { file: file.display().to_string() },
    }
}
