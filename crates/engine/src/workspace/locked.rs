//! A workspace whose lock this process holds: everything that writes goes through it.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use piton_host::Lock;
use piton_store::{Store, StoreError, Writer};

use crate::workspace::Workspace;

/// A workspace whose lock is held, with its record read anew: there is no other way to a writer of its store. Where files are
/// captured or written, what was cut off is ended first ([`Locked::recovered`]). Dropping it gives the lock back.
pub(crate) struct Locked<'w> {
    workspace: &'w mut Workspace,
    pub(crate) lock: Lock,
}

impl Workspace {
    /// Waits for the lock. While this process waited, another may have changed the workspace's record.
    pub(crate) fn lock(&mut self, patience: Duration) -> Result<Locked<'_>, StoreError> {
        let lock = self.memory.lock(patience)?;
        if let Some(record) = self.memory.workspace()? {
            self.record = record;
        }
        Ok(Locked { workspace: self, lock })
    }
}

impl Locked<'_> {
    /// Begins to write.
    pub(crate) fn writer(&self) -> Result<Writer<'_>, StoreError> {
        self.workspace.memory.write(&self.lock)
    }

    /// The store, with what only the lock's holder may do to it.
    pub(crate) fn store(&self) -> &Store {
        &self.workspace.memory
    }
}

impl Deref for Locked<'_> {
    type Target = Workspace;

    fn deref(&self) -> &Workspace {
        self.workspace
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Workspace {
        self.workspace
    }
}
