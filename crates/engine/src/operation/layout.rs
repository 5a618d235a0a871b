//! Laying the files of a checkpoint out in another folder: for a fork that goes on there, and for `checkout`.
//!
//! The folder is one step of an operation: staged beside its place, read back, and renamed into it. So a crash or a full
//! disk leaves nothing half made under its name, and what it left beside it is removed by the next command.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use piton_host::{Root, canonical, is_folder, is_link, is_taken};
use piton_model::diff;
use piton_model::edit::{NewTrees, keep};
use piton_model::plan::{self, Layered, RootState};
use piton_model::{Entry, Step, Tree, WorkspacePath};
use piton_store::{CheckpointRow, PATIENCE, StoreError};

use crate::operation::leftovers::found_at;
use crate::operation::outside::place;
use crate::view::SkippedView;
use crate::workspace::{History, OpenError, Workspace};

/// Why a folder cannot be laid out.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// Not at that place.
    #[error("{}: {why}; nothing was made", path.display())]
    Place { path: PathBuf, why: String },
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A folder that is to be made.
pub(crate) struct Layout {
    /// Without symlinks.
    pub place: PathBuf,
    pub step: Step,
    /// What the checkpoint left out: it is not there.
    pub skipped: Vec<SkippedView>,
}

impl Layout {
    /// Whether the folder reads back as it was to be.
    pub(crate) fn is_whole(&self) -> bool {
        let root = Root::open(Path::new("/")).map_err(|error| error.to_string());
        let found = root.and_then(|root| {
            found_at::<StoreError>(&root, self.step.path.as_bytes(), &WorkspacePath::root()).map_err(|e| e.to_string())
        });
        found.is_ok_and(|found| found == self.step.after)
    }
}

impl History {
    /// The place that a folder is to be made at, without symlinks. The folder itself must be none.
    pub(crate) fn place_of_layout(&self, folder: &Path) -> Result<PathBuf, LayoutError> {
        let refused = |why: &dyn ToString| LayoutError::Place { path: folder.to_owned(), why: why.to_string() };
        if is_link(folder) {
            return Err(refused(&"a symlink is there, and none is followed"));
        }
        let place = canonical(folder).map_err(|error| refused(&error))?;
        if place.starts_with(self.home.path()) {
            return Err(refused(&"piton's own files are there"));
        }
        Ok(place)
    }
}

impl Workspace {
    /// How a folder gets the files of a checkpoint: all of them or nothing. Nothing is written but the trees that it needs.
    pub(crate) fn lay_out(&mut self, place: PathBuf, target: &CheckpointRow) -> Result<Layout, LayoutError> {
        let refused = |why: &dyn ToString| LayoutError::Place { path: place.clone(), why: why.to_string() };
        let path = place.to_str().and_then(self::place).ok_or_else(|| {
            refused(&"its path must be text and have no `.git` in it, because the agent finds its session by it")
        })?;
        self.engine().refuse(&place)?;
        self.engine().refuse_git(&place)?;
        let mut trees = NewTrees::new();
        let empty = RootState { tree: keep(Arc::new(Tree::default()), &mut trees), mode: target.checkpoint.root.mode };
        let before = match Root::open(&place) {
            Ok(root) => {
                if !root.is_empty().map_err(|error| refused(&error))? {
                    return Err(refused(&"something is in that folder"));
                }
                let mode = root.mode().map_err(|error| refused(&error))?;
                Some(Entry::Folder { mode, tree: empty.tree, holds_skipped: false })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_taken(&place) => {
                if !place.parent().is_some_and(is_folder) {
                    return Err(refused(&"the folder around it is not there"));
                }
                None
            }
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Err(refused(&"it is not a folder")),
            Err(error) => return Err(refused(&error)),
        };
        let source = Layered { over: &trees, under: &self.store };
        let plan = plan::plan(&source, empty, target.checkpoint.root, &[])?;
        let (result, new) = plan.result(&source, empty)?;
        // They are garbage if it comes to nothing; the operation must find them, whoever ends it.
        let locked = self.lock(PATIENCE)?;
        let mut writer = locked.writer()?;
        for tree in trees.values().chain(new.values()) {
            writer.tree(tree)?;
        }
        writer.commit(true, false)?;
        // A folder that somebody made for it keeps the bits that they gave it.
        let mode = match &before {
            Some(Entry::Folder { mode, .. }) => *mode,
            _ => result.mode,
        };
        let after = Entry::Folder { mode, tree: result.tree, holds_skipped: false };
        let skipped = diff::skipped(&locked.store, &target.checkpoint.root.tree)?.iter().map(Into::into).collect();
        Ok(Layout { step: Step { path, before, after: Some(after) }, skipped, place })
    }
}
