//! Forking: a branch of a conversation on purpose. The files here and the place of the user stay as they are; with a
//! worktree, the code of that moment is laid out in a folder of its own, and the branch goes on there.
//!
//! The folder ([`crate::operation::layout`]) is one step of the same operation as the transcript. So a crash leaves both or
//! neither.

use std::path::{Path, PathBuf};

use piton_host::git::{NewWorktree, WorktreeError};
use piton_model::conversation::{Began, ConversationMove};
use piton_model::{CheckpointId, Session};
use piton_store::{CheckpointRow, StoreError};

use crate::capture::{CaptureError, CaptureOptions};
use crate::conversation::BranchTerms;
use crate::conversation::branches::BranchError;
use crate::history::target::{IntoTarget, TargetError};
use crate::operation::branch::BranchAsked;
use crate::operation::error::OperationError;
use crate::operation::layout::{Layout, LayoutError};
use crate::operation::request::Asked;
use crate::view::{ForkOutcome, WorktreeView};
use crate::workspace::{InitOptions, OpenError, Workspace};

/// How to fork.
#[derive(Clone, Debug, Default)]
pub struct ForkOptions {
    /// What the branch is called.
    pub name: Option<String>,
    /// Lay the code of that moment out in this folder, which is empty or not there yet.
    pub worktree: Option<PathBuf>,
    /// Make that folder a worktree of the workspace's git repository, with HEAD detached where git was at that moment.
    pub git: bool,
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
    /// Git cannot have another worktree.
    #[error(transparent)]
    Git(#[from] WorktreeError),
    /// Its folder.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The operation itself.
    #[error(transparent)]
    Operation(#[from] OperationError),
}

impl From<StoreError> for ForkError {
    fn from(error: StoreError) -> Self {
        Self::Operation(error.into())
    }
}

impl Workspace {
    /// Makes a branch that has everything before a target, and goes nowhere.
    ///
    /// # Errors
    /// Where the target is none of a conversation, the agent's conversations cannot be branched, the folder is not to be
    /// had, or the system or the store refuses.
    pub fn fork(&mut self, target: impl IntoTarget, options: &ForkOptions) -> Result<ForkOutcome, ForkError> {
        if let Some(name) = &options.name {
            self.check_session_name(name, None)?;
        }
        let target = &target.into_target().map_err(OperationError::from)?;
        let found = match self.checkpoint_at(target) {
            Err(TargetError::NoTurn { turn, session, last }) if last > 0 && turn > last => {
                return Err(OperationError::from(TargetError::NoTurn { turn, session, last }).into());
            }
            found => found,
        };
        // A turn from before piton has no checkpoint, and is in the transcript all the same.
        let point = self.point_of(target, found.as_ref().ok()).map_err(OperationError::from)?;
        // Before anything is made: whoever wants git's worktree wants no folder without it.
        let git = match (&options.worktree, &found) {
            (Some(_), Ok(target)) if options.git => {
                let then = self.git_at(target).map_err(OperationError::from)?.and_then(|state| state.head.commit);
                Some(NewWorktree::of(&self.path, then.as_deref(), self.environment.git.as_deref())?)
            }
            _ => None,
        };
        let layout = match &options.worktree {
            Some(folder) => {
                let target = found.map_err(OperationError::from)?;
                Some((self.lay_out_fork(folder, &target)?, target))
            }
            None => None,
        };
        let terms = BranchTerms {
            how: Began::Fork,
            goes: false,
            name: options.name.clone(),
            summary: None,
            cwd: layout.as_ref().map(|(layout, _)| layout.place.clone()),
            worktree: layout.as_ref().map(|(layout, _)| layout.step.clone()),
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
        let worktree = layout.map(|(layout, target)| self.begin_there(layout, &target, session, git.as_ref()));
        Ok(ForkOutcome { outcome, worktree })
    }

    /// The folder of a fork: neither in the workspace nor around it.
    fn lay_out_fork(&mut self, folder: &Path, target: &CheckpointRow) -> Result<Layout, ForkError> {
        let place = self.place_of_layout(folder)?;
        if place.starts_with(&self.path) || self.path.starts_with(&place) {
            let why = "a fork has a folder of its own, neither in the workspace nor around it".to_owned();
            return Err(LayoutError::Place { path: folder.to_owned(), why }.into());
        }
        Ok(self.lay_out(place, target)?)
    }

    /// Makes the new folder a workspace that knows the branch. What fails here is said: the branch and the folder are there.
    fn begin_there(
        &self,
        layout: Layout,
        target: &CheckpointRow,
        session: Option<Session>,
        git: Option<&NewWorktree>,
    ) -> WorktreeView {
        let verified = layout.is_whole();
        let made =
            git.map(|git| git.make(&layout.place).map(|()| git.commit.clone()).map_err(|error| error.to_string()));
        let (git, git_problem) = match made {
            Some(Ok(commit)) => (Some(commit), None),
            Some(Err(problem)) => (None, Some(problem)),
            None => (None, None),
        };
        let Layout { place, skipped, .. } = layout;
        let begun = self.begin_workspace(&place, target, session);
        WorktreeView {
            path: place,
            verified,
            skipped,
            git,
            git_problem,
            problem: begun.as_ref().err().cloned(),
            checkpoint: begun.ok(),
        }
    }

    /// Makes the folder of a fork a workspace where the process that made it ended before it could. Where that cannot be now, the
    /// first event in there does, and knows nothing of the time before.
    pub(crate) fn end_fork(&self, fork: &ConversationMove) {
        let Some((step, branch)) = fork.worktree.as_ref().zip(fork.branch.as_ref()) else { return };
        let place = Path::new("/").join(step.path.as_path());
        let Some(origin) = branch.origin.as_ref().filter(|_| self.engine().open(&place).is_err()) else { return };
        let began = || -> Result<Option<CheckpointRow>, StoreError> {
            match self.before_turn(&origin.parent, origin.turn)? {
                Some(row) => Ok(Some(row)),
                None => self.store.last_of_turn(&origin.parent, origin.turn.saturating_sub(1)),
            }
        };
        if let Ok(Some(target)) = began() {
            let _ = self.begin_workspace(&place, &target, Some(branch.clone()));
        }
    }

    fn begin_workspace(
        &self,
        place: &Path,
        target: &CheckpointRow,
        session: Option<Session>,
    ) -> Result<CheckpointId, String> {
        let engine = self.engine();
        let options = InitOptions { force: false, budget: Some(self.record.budget) };
        let open = || -> Result<Workspace, OpenError> {
            let made = engine.init_fork(place, options, Some(self.record.id.clone()))?;
            if let Some(session) = &session {
                self.home.note_session(&session.id, &made.id, false)?;
            }
            engine.open(place)
        };
        let mut there = open().map_err(|error| error.to_string())?;
        there.take_over(self, target, session.as_ref()).map_err(|error| error.to_string())?;
        let about = match session.as_ref().and_then(|session| session.origin.as_ref()) {
            Some(origin) => format!("fork of {} before turn {}", origin.parent.short(), origin.turn),
            None => "fork".to_owned(),
        };
        let captured = there.capture(&CaptureOptions { annotation: Some(about), ..CaptureOptions::default() });
        captured.map(|captured| captured.checkpoint.checkpoint.id).map_err(|error: CaptureError| error.to_string())
    }
}
