//! What is there when a plan is made.

use crate::capture::sink::{FreshTrees, HashingSink, Trees};
use crate::operation::error::OperationError;
use crate::workspace::{History, Standing};
use piton_host::{Index, Root, empty_tree, read_entry};
use piton_model::inverse::Contents;
use piton_model::plan::RootState;
use piton_model::{ObjectId, WorkspacePath};
use piton_store::{Reader, StoreError};
use std::convert::Infallible;

/// What is there.
pub(crate) struct FolderNow<'a> {
    pub now: RootState,
    pub trees: Trees<'a>,
    /// Tells when files changed.
    pub index: Option<&'a Index>,
    /// None where the folder is gone: then nothing is there.
    pub root: Option<&'a Root>,
}

/// What a scan for a plan found.
pub(crate) struct Looked {
    now: RootState,
    fresh: FreshTrees,
    index: Option<Index>,
    root: Option<Root>,
}

impl Looked {
    pub(crate) fn seen<'a>(&'a self, store: &'a Reader) -> FolderNow<'a> {
        let trees = Trees { fresh: &self.fresh, store };
        FolderNow { now: self.now, trees, index: self.index.as_ref(), root: self.root.as_ref() }
    }
}

impl History {
    /// Scans for a plan.
    pub(crate) fn look(&self, root_mode: u16, forced: &[WorkspacePath]) -> Result<Looked, OperationError> {
        let sink = HashingSink::default();
        let root = match self.standing().map_err(|e| self.folder_error(e))? {
            Standing::Same(root) | Standing::Other(root) => root,
            Standing::Missing => {
                let (tree, encoded) = empty_tree();
                piton_host::Sink::tree(&sink, tree, encoded).unwrap_or_else(|never: Infallible| match never {});
                let now = RootState { tree, mode: root_mode };
                return Ok(Looked { now, fresh: sink.finish().0, index: None, root: None });
            }
        };
        let scan = self.look_at(&root, forced, &sink)?;
        Ok(Looked { now: scan.root, fresh: sink.finish().0, index: scan.index, root: Some(root) })
    }
}

/// Contents of the store, and of files that are in the workspace and not in it yet.
pub(crate) struct NowAndThen<'a> {
    pub root: Option<&'a Root>,
    pub store: &'a Reader,
}

impl Contents for NowAndThen<'_> {
    type Error = StoreError;

    fn content(&self, path: &WorkspacePath, blob: &ObjectId) -> Result<Vec<u8>, StoreError> {
        let (error, root) = match (self.store.blob(blob), self.root) {
            // The workspace may have it where the store lacks it, or has it damaged.
            (Err(error @ (StoreError::Missing(_) | StoreError::Damaged(_))), Some(root)) => (error, root),
            (found, _) => return found,
        };
        let sink = HashingSink::with_contents();
        let read = read_entry(root, path.as_bytes(), &sink).unwrap_or_else(|never: Infallible| match never {});
        let io = |source| StoreError::Io { what: "cannot read", path: path.as_path().to_owned(), source };
        let found = read.map_err(io).map(|_| sink.finish().1.remove(blob));
        match (found, error) {
            (Ok(Some(content)), _) => Ok(content),
            (_, error @ StoreError::Damaged(_)) => Err(error),
            (Err(error), _) => Err(error),
            (Ok(None), _) => Err(io(std::io::Error::other("it changed while it was read"))),
        }
    }
}
