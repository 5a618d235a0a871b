//! Annotating: a person's note on a checkpoint, and a session's name.

use piton_model::{Record, SessionId};
use piton_store::PATIENCE;

use crate::history::target::{IntoTarget, TargetError};
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
    pub fn annotate(&mut self, target: impl IntoTarget, text: &str) -> Result<Annotated, AnnotateError> {
        if text.chars().count() > MOST {
            return Err(AnnotateError::TooLong);
        }
        let target = target.into_target()?;
        let row = self.checkpoint_at(&target)?;
        let id = row.checkpoint.id;
        let locked = self.lock(PATIENCE)?;
        let mut writer = locked.writer()?;
        writer.record(Record::Annotation { checkpoint: id.clone(), text: text.to_owned() })?;
        writer.commit(true, false)?;
        let row = locked
            .store
            .checkpoint(&id)?
            .ok_or(TargetError::Unknown { target: target.to_string(), near: Vec::new() })?;
        Ok(Annotated { checkpoint: (&row).into() })
    }

    /// Gives a session a name.
    ///
    /// # Errors
    /// Where there is no such session, or the store refuses.
    pub fn name_session(&mut self, session: &SessionId, name: &str) -> Result<(), AnnotateError> {
        let locked = self.lock(PATIENCE)?;
        // Read under the lock: the record is written whole, and its agent may report just now.
        let row = locked
            .store
            .session(session)?
            .ok_or_else(|| TargetError::UnknownSession { session: session.to_string(), near: Vec::new() })?;
        let mut writer = locked.writer()?;
        writer.record(Record::Session(piton_model::Session { name: Some(name.to_owned()), ..row.session }))?;
        writer.commit(false, false)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use piton_model::event::{Event, Report};
    use piton_model::{Rank, Session};

    use super::*;
    use crate::{Engine, Environment, ObserveOptions};

    #[test]
    #[allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests make folders of their own")]
    fn a_session_that_is_named_while_another_process_records_it_keeps_what_that_recorded() {
        let scratch = tempfile::tempdir().unwrap();
        let base = piton_host::canonical(scratch.path()).unwrap();
        let engine = Engine::new(base.join("home"), Environment::default());
        let folder = base.join("ws");
        std::fs::create_dir(&folder).unwrap();
        let report = Report {
            agent: "test".into(),
            session: "s1".into(),
            cwd: Some(folder.clone()),
            transcript: None,
            prompt_id: None,
            subagent: None,
            event: Event::Prompt { text: "go".into() },
        };
        engine.observe(&report, &ObserveOptions::default()).unwrap();
        let id = SessionId::of("test", "s1");
        let mut other = engine.open(&folder).unwrap();
        let mut naming = engine.open(&folder).unwrap();
        let locked = other.lock(PATIENCE).unwrap();
        std::thread::scope(|scope| {
            let named = scope.spawn(|| naming.name_session(&id, "mine"));
            // Time enough for whoever does not wait for the lock to read what is about to change.
            std::thread::sleep(std::time::Duration::from_millis(200));
            let session = locked.store.session(&id).unwrap().unwrap().session;
            locked.record_session(&Session { rank: Rank::Archived, ..session }).unwrap();
            drop(locked);
            named.join().unwrap().unwrap();
        });
        let session = other.store.session(&id).unwrap().unwrap().session;
        assert_eq!((session.name.as_deref(), session.rank), (Some("mine"), Rank::Archived));
    }
}
