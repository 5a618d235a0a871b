//! Deleting branches, and bringing them back. A branch's transcript moves to piton's trash; its checkpoints stay.
//!
//! First it is recorded, then the file moves: a crash in between leaves a branch that counts as deleted and whose file is
//! still in its place. Deleting it again, or bringing it back, ends that one way or the other; nothing is ever in neither
//! place.

use std::collections::HashSet;
use std::path::PathBuf;

use piton_host::fail::point;
use piton_host::{outside, trash};
use piton_model::{Rank, Session, SessionId};
use piton_store::PATIENCE;

use crate::conversation::NoConversation;
use crate::conversation::branches::{BranchError, DeleteOptions, ToDelete};
use crate::view::{BranchDeletion, BranchRestored};
use crate::workspace::locked::Locked;
use crate::workspace::{History, Workspace};

/// Where a branch's transcript belongs, and where it is while the branch is deleted.
struct Places {
    own: PathBuf,
    folder: PathBuf,
    trash: PathBuf,
}

impl Workspace {
    /// Deletes branches: their transcripts go to piton's trash, and their checkpoints stay.
    ///
    /// # Errors
    /// Where a session that is named cannot be deleted, the system refuses to move a transcript, or the store refuses.
    pub fn delete_branches(&mut self, options: &DeleteOptions) -> Result<BranchDeletion, BranchError> {
        let locked = self.lock(PATIENCE)?;
        let ToDelete { rows, stay } = locked.to_delete(options)?;
        // What is not the agent's own file is found before anything is recorded.
        for row in &rows {
            let Some(Places { own, .. }) = locked.places(&row.session)? else { continue };
            let is_other = trash::exists(&own).and_then(|is_there| Ok(is_there && !trash::is_plain(&own)?));
            if is_other.map_err(|source| BranchError::Io { path: own, source })? {
                return Err(NoConversation::Elsewhere.into());
            }
        }
        let mut deleted = Vec::new();
        for row in rows {
            deleted.push(locked.delete(row.session)?);
        }
        drop(locked);
        let mut untold: Vec<String> = deleted.iter().flat_map(|session| self.tell_others(session)).collect();
        untold.sort();
        untold.dedup();
        let ids: HashSet<SessionId> = deleted.into_iter().map(|session| session.id).collect();
        Ok(BranchDeletion { branches: self.session_views(|id| ids.contains(id))?, stay, done: true, untold })
    }

    /// Brings a deleted branch back, its transcript byte for byte.
    ///
    /// # Errors
    /// Where it is not deleted, another file is in its place now, or the system or the store refuses.
    pub fn restore_branch(&mut self, wanted: &str) -> Result<BranchRestored, BranchError> {
        let id = self.session_meant(Some(wanted), wanted)?.session.id;
        let locked = self.lock(PATIENCE)?;
        let session = locked.row_of(&id)?.session;
        if session.rank != Rank::Deleted {
            return Err(BranchError::NotDeleted(id));
        }
        if let Some(places) = locked.places(&session)? {
            let io = |path: &PathBuf| {
                let path = path.clone();
                move |source| BranchError::Io { path, source }
            };
            let is_in_trash = trash::is_plain(&places.trash).map_err(io(&places.trash))?;
            let is_there = trash::exists(&places.own).map_err(io(&places.own))?;
            match (is_in_trash, is_there) {
                (true, _) => {
                    let folder = places.own.parent().map_or_else(PathBuf::new, PathBuf::from);
                    outside::make_folder(&folder).map_err(io(&folder))?;
                    trash::move_file(&places.trash, &places.own).map_err(|source| match source.kind() {
                        std::io::ErrorKind::AlreadyExists => BranchError::Occupied(places.own.clone()),
                        _ => BranchError::Io { path: places.own.clone(), source },
                    })?;
                    trash::remove_if_empty(&places.folder);
                }
                // The deletion was cut off before it moved.
                (false, true) => {}
                (false, false) => return Err(BranchError::Gone(id)),
            }
        }
        let session = Session { rank: Rank::Plain, ..session };
        locked.record_session(&session)?;
        drop(locked);
        let untold = self.tell_others(&session);
        Ok(BranchRestored { session: self.session_view(&id)?, untold })
    }
}

impl Locked<'_> {
    fn delete(&self, session: Session) -> Result<Session, BranchError> {
        let places = self.places(&session)?;
        let session = Session { rank: Rank::Deleted, ..session };
        self.record_session(&session)?;
        let Some(places) = places else { return Ok(session) };
        let io = |source| BranchError::Io { path: places.own.clone(), source };
        point("branch:recorded").map_err(io)?;
        // It may be gone: whoever removed it did more than was asked for here.
        if trash::exists(&places.own).map_err(io)? {
            outside::make_folder(&places.folder).map_err(io)?;
            trash::move_file(&places.own, &places.trash).map_err(io)?;
        }
        Ok(session)
    }
}

impl History {
    /// Whether a branch counts as deleted while its transcript is still in its place.
    pub(crate) fn is_half_deleted(&self, session: &Session) -> Result<bool, BranchError> {
        match self.places(session)? {
            Some(places) => trash::is_plain(&places.own).map_err(|source| BranchError::Io { path: places.own, source }),
            None => Ok(false),
        }
    }

    /// The two places of a branch's transcript; none where its agent keeps no transcript, or it never had one.
    fn places(&self, session: &Session) -> Result<Option<Places>, BranchError> {
        let Some(format) = self.environment.agents.transcripts(&session.agent) else { return Ok(None) };
        let Some(own) = self.transcript_place(session, format)? else { return Ok(None) };
        let folder = self.home.trash(&session.id);
        let trash = folder.join(own.file_name().unwrap_or_default());
        Ok(Some(Places { own, folder, trash }))
    }
}
