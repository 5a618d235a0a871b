//! Checking out: a checkpoint laid out in another folder. The workspace, its conversation and its git stay as they are.

use std::path::{Path, PathBuf};

use piton_model::{OperationKind, Step};
use piton_store::{CheckpointRow, StoreError};

use crate::history::target::{IntoTarget, TargetError};
use crate::operation::error::OperationError;
use crate::operation::layout::LayoutError;
use crate::operation::left_out::Hidden;
use crate::operation::outside::OutsideChanges;
use crate::operation::request::{Aim, Asked, Remarks, Request, Settle};
use crate::view::CheckoutOutcome;
use crate::workspace::Workspace;

/// Where a checkpoint may be laid out.
#[derive(Clone, Debug, Default)]
pub struct CheckoutOptions {
    /// Take a folder inside a workspace too, where captures find its files.
    pub inside: bool,
}

/// Why nothing was laid out.
#[derive(Debug, thiserror::Error)]
pub enum CheckoutError {
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error("{} is inside the workspace {}; nothing was made", path.display(), workspace.display())]
    InWorkspace { path: PathBuf, workspace: PathBuf },
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Operation(#[from] OperationError),
}

/// A checkpoint that is to be laid out.
#[derive(Clone)]
pub(crate) struct CheckoutAsked {
    pub target: CheckpointRow,
    pub folder: PathBuf,
    pub step: Step,
}

impl CheckoutAsked {
    /// A request that changes nothing but the one folder.
    pub(crate) fn request(&self) -> Request {
        let target = self.target.checkpoint.id.clone();
        Request {
            kind: OperationKind::Checkout { target, folder: Box::new(self.step.clone()) },
            about: Some(self.folder.display().to_string()),
            aim: Aim::Nothing,
            paths: Vec::new(),
            git: None,
            git_stays: None,
            outside: OutsideChanges::default(),
            touches_outside: false,
            conversation: None,
            conversation_stays: None,
            fresh: Vec::new(),
            returns: None,
            settle: Settle::default(),
            left_out: Vec::new(),
            hidden: Hidden::default(),
            unseen: Vec::new(),
            remarks: Remarks::default(),
        }
    }
}

impl Workspace {
    /// Lays a checkpoint out in a folder that is empty or not there yet: with exact bits, symlinks and empty folders, whole
    /// or not at all.
    ///
    /// # Errors
    /// Where the target is none, the folder is not to be had, or the system or the store refuses.
    pub fn checkout(
        &mut self,
        target: impl IntoTarget,
        folder: &Path,
        options: &CheckoutOptions,
    ) -> Result<CheckoutOutcome, CheckoutError> {
        let target = self.resolve(target)?;
        let place = self.place_of_layout(folder)?;
        let around = self.home.all().into_iter().map(|known| known.path).find(|path| place.starts_with(path));
        if let Some(workspace) = around.filter(|_| !options.inside) {
            return Err(CheckoutError::InWorkspace { path: place, workspace });
        }
        let layout = self.lay_out(place, &target)?;
        let asked = CheckoutAsked { folder: layout.place.clone(), step: layout.step.clone(), target };
        let checkpoint = (&asked.target).into();
        let outcome = self.operate(&Asked::Checkout(Box::new(asked)), None)?;
        let verified = layout.is_whole();
        Ok(CheckoutOutcome {
            checkpoint,
            path: layout.place,
            verified,
            skipped: layout.skipped,
            operation: outcome.operation,
        })
    }
}

impl From<StoreError> for CheckoutError {
    fn from(error: StoreError) -> Self {
        Self::Operation(error.into())
    }
}
