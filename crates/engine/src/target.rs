//! From what a person typed to a checkpoint.

use piton_model::diff;
use piton_model::target::BadTarget;
use piton_model::{Target, Timestamp, WorkspacePath};
use piton_store::{CheckpointRow, StoreError};

use crate::workspace::Workspace;

/// Why a target is no checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// Not a target at all.
    #[error(transparent)]
    Bad(#[from] BadTarget),
    /// Nothing has that name or id.
    #[error("there is no checkpoint `{0}`")]
    Unknown(String),
    /// Several ids begin like that.
    #[error("`{prefix}` is the beginning of several ids: {}", candidates.join(", "))]
    Ambiguous {
        /// What was typed.
        prefix: String,
        /// What it could be.
        candidates: Vec<String>,
    },
    /// No checkpoint is that old.
    #[error("no checkpoint is that old; the oldest is of {oldest}")]
    TooOld {
        /// When the oldest was made.
        oldest: Timestamp,
    },
    /// Nothing was captured yet.
    #[error("nothing has been captured here yet")]
    Empty,
    /// `@` where a checkpoint is wanted.
    #[error("`@` is the workspace as it is now, not a checkpoint")]
    Now,
    /// A turn, without a session.
    #[error("`{0}` means a turn of a session, and no session is recorded here")]
    NoSession(String),
    /// A path that neither side has.
    #[error("neither the checkpoint nor the workspace has `{}`", .0.display())]
    NoPath(WorkspacePath),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Workspace {
    /// The checkpoint that a target means.
    pub fn resolve(&self, text: &str) -> Result<CheckpointRow, TargetError> {
        match text.parse()? {
            Target::Now => Err(TargetError::Now),
            Target::Start => self.store.first(self.record.line)?.ok_or(TargetError::Empty),
            Target::Name(name) => self.store.named(&name)?.ok_or(TargetError::Unknown(name)),
            Target::Age(ms) => {
                let moment = Timestamp(self.environment.clock.now().0.saturating_sub(ms));
                match self.store.not_after(self.record.line, moment)? {
                    Some(row) => Ok(row),
                    None => match self.store.first(self.record.line)? {
                        Some(first) => Err(TargetError::TooOld { oldest: first.checkpoint.created_at }),
                        None => Err(TargetError::Empty),
                    },
                }
            }
            Target::Turn { .. } => Err(TargetError::NoSession(text.to_owned())),
            Target::Id(prefix) => {
                if let Some(row) = self.store.named(&prefix)? {
                    return Ok(row);
                }
                let mut rows = self.store.with_prefix(&prefix)?;
                match rows.len() {
                    0 => Err(TargetError::Unknown(prefix)),
                    1 => Ok(rows.remove(0)),
                    _ => Err(TargetError::Ambiguous {
                        prefix,
                        candidates: rows.iter().map(|r| r.checkpoint.id.to_string()).collect(),
                    }),
                }
            }
        }
    }

    /// Checks that each path is on one side at least, so that a mistyped one does not pass for "nothing to do".
    pub(crate) fn check_paths<S: diff::TreeSource<Error = StoreError>>(
        source: &S,
        roots: [&piton_model::ObjectId; 2],
        paths: &[WorkspacePath],
    ) -> Result<(), TargetError> {
        for path in paths.iter().filter(|p| !p.is_root()) {
            let mut found = false;
            for root in roots {
                found |= diff::lookup(source, root, path)?.is_some();
            }
            if !found {
                return Err(TargetError::NoPath(path.clone()));
            }
        }
        Ok(())
    }
}
