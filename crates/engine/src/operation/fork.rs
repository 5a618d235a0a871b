//! Forking: a branch of a conversation on purpose. The files here and the place of the user stay as they are; with a
//! worktree, the code of that moment is laid out in a folder of its own, and the branch goes on there.
//!
//! The folder is one step of the same operation as the transcript: staged beside its place, read back, and renamed into
//! it. So a crash leaves both or neither, and what it left half made is removed by the next command here.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use piton_host::{Root, canonical, is_folder, is_taken};
use piton_model::conversation::Began;
use piton_model::diff;
use piton_model::edit::{NewTrees, keep};
use piton_model::plan::{self, Layered, RootState};
use piton_model::{CheckpointId, Entry, Session, Step, Tree, WorkspacePath};
use piton_store::{CheckpointRow, PATIENCE, StoreError};

use crate::capture::{CaptureError, CaptureOptions};
use crate::conversation::BranchTerms;
use crate::conversation::branches::BranchError;
use crate::operation::branch::BranchAsked;
use crate::operation::draft::Asked;
use crate::operation::error::OperationError;
use crate::operation::leftovers::found_at;
use crate::view::{ForkOutcome, SkippedView, WorktreeView};
use crate::workspace::{InitOptions, OpenError, Workspace};

/// How to fork.
#[derive(Clone, Debug, Default)]
pub struct ForkOptions {
    /// What the branch is called.
    pub name: Option<String>,
    /// Lay the code of that moment out in this folder, which is empty or not there yet.
    pub worktree: Option<PathBuf>,
}

/// Why there is no fork.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// Its name.
    #[error(transparent)]
    Name(#[from] BranchError),
    /// Before the first turn.
    #[error("nothing was said before turn {0}: there is nothing to branch")]
    NothingSaid(u32),
    /// The folder.
    #[error("{}: {why}; nothing was made", path.display())]
    Worktree {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// It is none that a workspace can be.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The operation itself.
    #[error(transparent)]
    Operation(#[from] OperationError),
}

impl From<StoreError> for ForkError {
    fn from(error: StoreError) -> Self {
        Self::Operation(error.into())
    }
}

/// A folder that is to be made.
struct Layout {
    place: PathBuf,
    step: Step,
    skipped: Vec<SkippedView>,
}

impl Workspace {
    /// Makes a branch that has everything before a target, and goes nowhere.
    ///
    /// # Errors
    /// Where the target is none of a conversation, the agent's conversations cannot be branched, the folder is not to be
    /// had, or the system or the store refuses.
    pub fn fork(&mut self, target: &str, options: &ForkOptions) -> Result<ForkOutcome, ForkError> {
        if let Some(name) = &options.name {
            self.check_session_name(name, None)?;
        }
        let found = self.resolve(target);
        // A turn from before piton has no checkpoint, and is in the transcript all the same.
        let point = self.point_of(target, found.as_ref().ok()).map_err(OperationError::from)?;
        let layout = match &options.worktree {
            Some(folder) => Some(self.lay_out(folder, &found.map_err(OperationError::from)?)?),
            None => None,
        };
        let terms = BranchTerms {
            how: Began::Fork,
            goes: false,
            name: options.name.clone(),
            summary: None,
            cwd: layout.as_ref().map(|layout| layout.place.clone()),
            worktree: layout.as_ref().map(|layout| layout.step.clone()),
        };
        if layout.is_none() && self.plan_branch(&point, &terms).map_err(OperationError::from)?.view.anew {
            return Err(ForkError::NothingSaid(point.turn));
        }
        let ask = Asked::Branch(Box::new(BranchAsked { point, terms }));
        let outcome = self.operate(&ask, None)?;
        let session = match outcome.conversation.as_ref().and_then(|conversation| conversation.session.as_ref()) {
            Some(id) => self.store.session(id)?.map(|row| row.session),
            None => None,
        };
        let worktree = layout.map(|layout| self.begin_there(layout, session));
        Ok(ForkOutcome { outcome, worktree })
    }

    /// How a folder gets the code of a checkpoint: all of it or nothing.
    fn lay_out(&mut self, folder: &Path, target: &CheckpointRow) -> Result<Layout, ForkError> {
        let refused = |why: &dyn ToString| ForkError::Worktree { path: folder.to_owned(), why: why.to_string() };
        let place = canonical(folder).map_err(|error| refused(&error))?;
        let path = place.to_str().and_then(crate::operation::outside::place).ok_or_else(|| {
            refused(&"its path must be text and have no `.git` in it, because the agent finds its session by it")
        })?;
        if place.starts_with(&self.path) || self.path.starts_with(&place) {
            return Err(refused(&"a fork has a folder of its own, neither in the workspace nor around it"));
        }
        if place.starts_with(self.home.path()) {
            return Err(refused(&"piton's own files are there"));
        }
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
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Err(refused(&"it is no folder")),
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
        Ok(Layout { place, step: Step { path, before, after: Some(after) }, skipped })
    }

    /// Makes the new folder a workspace that knows the branch. What fails here is said: the branch and the folder are there.
    fn begin_there(&self, layout: Layout, session: Option<Session>) -> WorktreeView {
        let Layout { place, step, skipped } = layout;
        let read = Root::open(Path::new("/")).map_err(|error| error.to_string()).and_then(|root| {
            found_at::<StoreError>(&root, step.path.as_bytes(), &WorkspacePath::root()).map_err(|e| e.to_string())
        });
        let begun = self.begin_workspace(&place, session);
        WorktreeView {
            path: place,
            verified: read.is_ok_and(|found| found == step.after),
            skipped,
            problem: begun.as_ref().err().cloned(),
            checkpoint: begun.ok(),
        }
    }

    fn begin_workspace(&self, place: &Path, session: Option<Session>) -> Result<CheckpointId, String> {
        let engine = self.engine();
        let open = || -> Result<Workspace, OpenError> {
            engine.init(place, InitOptions { force: false, budget: Some(self.record.budget) })?;
            engine.open(place)
        };
        let mut there = open().map_err(|error| error.to_string())?;
        if let Some(session) = session {
            let mut record = || -> Result<(), StoreError> { there.lock(PATIENCE)?.record_session(&session) };
            record().map_err(|error| error.to_string())?;
        }
        let captured = there.capture(&CaptureOptions::default());
        captured.map(|captured| captured.checkpoint.checkpoint.id).map_err(|error: CaptureError| error.to_string())
    }
}
