//! Annotating: a person's note on a checkpoint, and a session's name.

use piton_model::{Record, SessionId};
use piton_store::PATIENCE;

use crate::target::TargetError;
use crate::view::Annotated;
use crate::workspace::Workspace;

/// Why a note was not made.
#[derive(Debug, thiserror::Error)]
pub enum AnnotateError {
    /// The target.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A note that is no note.
    #[error("a note has at most {MOST} characters")]
    TooLong,
    /// The store.
    #[error(transparent)]
    Store(#[from] piton_store::StoreError),
}

/// A note longer than this is a document.
pub(crate) const MOST: usize = 10_000;

impl Workspace {
    /// Notes something on a checkpoint, in place of what was noted before; an empty note takes it away.
    ///
    /// # Errors
    /// Where the target is none, or the store refuses.
    pub fn annotate(&mut self, target: &str, text: &str) -> Result<Annotated, AnnotateError> {
        if text.chars().count() > MOST {
            return Err(AnnotateError::TooLong);
        }
        let row = self.resolve(target)?;
        let id = row.checkpoint.id;
        let lock = self.store.lock(PATIENCE)?;
        let mut writer = self.store.write(&lock)?;
        writer.record(Record::Annotation { checkpoint: id.clone(), text: text.to_owned() })?;
        writer.commit(true, false)?;
        let row = self.store.checkpoint(&id)?.ok_or(TargetError::Unknown(target.to_owned()))?;
        Ok(Annotated { checkpoint: (&row).into() })
    }

    /// Gives a session a name.
    ///
    /// # Errors
    /// Where there is no such session, or the store refuses.
    pub fn name_session(&mut self, session: &SessionId, name: &str) -> Result<(), AnnotateError> {
        let row = self.store.session(session)?.ok_or_else(|| TargetError::UnknownSession(session.to_string()))?;
        let lock = self.store.lock(PATIENCE)?;
        let mut writer = self.store.write(&lock)?;
        writer.record(Record::Session(piton_model::Session { name: Some(name.to_owned()), ..row.session }))?;
        writer.commit(false, false)?;
        Ok(())
    }
}
