//! What a person makes of branches: names them, makes one the main line, and says which are to go. How they go is
//! [`crate::conversation::trash`].

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;

use piton_model::target::{BadTarget, check_name};
use piton_model::{Rank, Record, Session, SessionId, Timestamp, WorkspaceId};
use piton_store::{PATIENCE, SessionRow, StoreError};

use crate::conversation::NoConversation;
use crate::history::diff::DiffError;
use crate::history::target::TargetError;
use crate::view::{BranchDeletion, BranchStays, Promoted, Renamed, SessionView};
use crate::workspace::locked::Locked;
use crate::workspace::{History, Workspace};

/// Why nothing was made of a branch.
#[derive(Debug, thiserror::Error)]
pub enum BranchError {
    /// No such session.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A name that is none.
    #[error("`{name}` cannot be a session's name: {source}")]
    Name {
        /// What was typed.
        name: String,
        /// Why not.
        source: BadTarget,
    },
    /// Another session is called that.
    #[error("session {} is called `{name}` already", session.short())]
    NameTaken {
        /// What was typed.
        name: String,
        /// Which one has it.
        session: SessionId,
    },
    /// An original.
    #[error("session {} is not a branch: piton deletes only what it made itself", .0.short())]
    NotABranch(SessionId),
    /// Where the user is.
    #[error("session {} is where you are", .0.short())]
    Current(SessionId),
    /// Its agent runs.
    #[error("the agent of session {} is at work", .0.short())]
    Live(SessionId),
    /// Others began in it.
    #[error("session {} has branches of its own: {}", session.short(), shorts(branches))]
    HasBranches {
        session: SessionId,
        /// Those that would be left without their beginning.
        branches: Vec<SessionId>,
    },
    /// It is in the trash already.
    #[error("session {} is deleted", .0.short())]
    Deleted(SessionId),
    /// It is not in the trash.
    #[error("session {} is not deleted", .0.short())]
    NotDeleted(SessionId),
    /// Nothing to be the main line of.
    #[error("session {} is not a branch and has none", .0.short())]
    Alone(SessionId),
    /// Its transcript is in neither place.
    #[error("the transcript of session {} is neither in piton's trash nor in its place", .0.short())]
    Gone(SessionId),
    /// Something else is in its place.
    #[error("{} is there now, and is not what was deleted", .0.display())]
    Occupied(PathBuf),
    /// Its transcript cannot be its own.
    #[error("the transcript stays where it is: {0}")]
    Transcript(#[from] NoConversation),
    #[error("{}: {source}", path.display())]
    Io {
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// Nothing to compare.
    #[error("both are session {}", .0.short())]
    SameSession(SessionId),
    /// Their ends cannot be compared.
    #[error(transparent)]
    Diff(#[from] DiffError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn shorts(ids: &[SessionId]) -> String {
    ids.iter().map(SessionId::short).collect::<Vec<_>>().join(", ")
}

/// Which branches are to go.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// These: ids or their beginnings, names, or what the agent calls them.
    pub sessions: Vec<String>,
    /// All that nothing happened in for so many milliseconds.
    pub older_than: Option<i64>,
}

/// Branches that are to go, and those that stay although they are old.
pub(crate) struct ToDelete {
    pub rows: Vec<SessionRow>,
    pub stay: Vec<BranchStays>,
}

impl Workspace {
    /// Gives a session another name.
    ///
    /// # Errors
    /// Where there is no such session, the name is none or taken, or the store refuses.
    pub fn rename_session(&mut self, wanted: &str, name: &str) -> Result<Renamed, BranchError> {
        let id = self.session_meant(Some(wanted), wanted)?.session.id;
        let locked = self.lock(PATIENCE)?;
        locked.check_session_name(name, Some(&id))?;
        let session = locked.row_of(&id)?.session;
        let session = Session { name: Some(name.to_owned()), ..session };
        locked.record_session(&session)?;
        drop(locked);
        let untold = self.tell_others(&session);
        Ok(Renamed { session: self.session_view(&id)?, untold })
    }

    /// Makes a branch the main line of its conversation; what it comes from is archived. Promoting the old line again
    /// goes the other way.
    ///
    /// # Errors
    /// Where there is no such session, it is deleted or alone, or the store refuses.
    pub fn promote(&mut self, wanted: &str) -> Result<Promoted, BranchError> {
        let id = self.session_meant(Some(wanted), wanted)?.session.id;
        let locked = self.lock(PATIENCE)?;
        let row = locked.row_of(&id)?;
        let lineage = locked.lineage(&id)?;
        let above: HashSet<&SessionId> = lineage.sessions().skip(1).collect();
        let mut changed = Vec::new();
        let mut is_alone = true;
        for other in locked.store.sessions()? {
            let Session { id: other_id, rank, .. } = &other.session;
            if *other_id == id || locked.lineage(other_id)?.root() != lineage.root() {
                continue;
            }
            is_alone = false;
            let gives_way = above.contains(other_id) || *rank == Rank::Main;
            if gives_way && !matches!(rank, Rank::Archived | Rank::Deleted) {
                changed.push(Session { rank: Rank::Archived, ..other.session });
            }
        }
        match row.session.rank {
            Rank::Deleted => return Err(BranchError::Deleted(id)),
            _ if is_alone => return Err(BranchError::Alone(id)),
            _ => {}
        }
        let archived: HashSet<SessionId> = changed.iter().map(|session| session.id.clone()).collect();
        let already = row.session.rank == Rank::Main && changed.is_empty();
        if !already {
            changed.push(Session { rank: Rank::Main, ..row.session });
        }
        let mut writer = locked.writer()?;
        for session in &changed {
            writer.record(Record::Session(session.clone()))?;
        }
        writer.commit(true, false)?;
        drop(locked);
        let mut untold: Vec<String> = changed.iter().flat_map(|session| self.tell_others(session)).collect();
        untold.sort();
        untold.dedup();
        let archived = self.session_views(|one| archived.contains(one))?;
        Ok(Promoted { session: self.session_view(&id)?, already, archived, untold })
    }

    /// Tells the other workspaces that know a session what it is called and what became of it; those that cannot be told.
    pub(crate) fn tell_others(&self, session: &Session) -> Vec<String> {
        let tell = |id: &WorkspaceId| -> Result<(), StoreError> {
            let store = self.home.open(id)?;
            if store.session(&session.id)?.is_none() {
                return Ok(());
            }
            let lock = store.lock(PATIENCE)?;
            // Read under the lock: its agent may report there just now.
            let Some(known) = store.session(&session.id)?.map(|row| row.session) else { return Ok(()) };
            let told = Session { name: session.name.clone(), rank: session.rank, ..known.clone() };
            if told == known {
                return Ok(());
            }
            let mut writer = store.write(&lock)?;
            writer.record(Record::Session(told))?;
            writer.commit(true, false)
        };
        let others = self.home.all().into_iter().filter(|known| known.id != self.record.id);
        let untold = others.filter(|known| tell(&known.id).is_err());
        untold.map(|known| known.path.to_string_lossy().into_owned()).collect()
    }
}

impl Locked<'_> {
    pub(crate) fn record_session(&self, session: &Session) -> Result<(), StoreError> {
        let mut writer = self.writer()?;
        writer.record(Record::Session(session.clone()))?;
        writer.commit(true, false)
    }
}

impl History {
    /// Which branches would be deleted. Has no side effect.
    ///
    /// # Errors
    /// Where a session that is named cannot be deleted, or the store refuses.
    pub fn plan_delete(&self, options: &DeleteOptions) -> Result<BranchDeletion, BranchError> {
        let ToDelete { rows, stay } = self.to_delete(options)?;
        let ids: HashSet<SessionId> = rows.into_iter().map(|row| row.session.id).collect();
        let branches = self.session_views(|id| ids.contains(id))?;
        Ok(BranchDeletion { branches, stay, done: false, untold: Vec::new() })
    }

    /// Whether a session is at work in another workspace, as one with a worktree is.
    fn is_live_elsewhere(&self, session: &SessionId) -> bool {
        let engine = self.engine();
        let others = self.home.workspaces_of(session).into_iter().filter(|(id, _)| *id != self.record.id);
        others.map(|(id, path)| engine.read(&id, path)).any(|other| {
            let row = other.as_ref().ok().and_then(|other| other.store.session(session).ok()?);
            row.is_some_and(|row| self.is_live(&row))
        })
    }

    pub(crate) fn to_delete(&self, options: &DeleteOptions) -> Result<ToDelete, BranchError> {
        let all = self.store.sessions()?;
        let current = self.here()?;
        let why_not = |row: &SessionRow| {
            let id = || row.session.id.clone();
            match () {
                () if row.session.origin.is_none() => Some(BranchError::NotABranch(id())),
                () if current.as_ref() == Some(&row.session.id) => Some(BranchError::Current(id())),
                () if self.is_live(row) || self.is_live_elsewhere(&row.session.id) => Some(BranchError::Live(id())),
                () => None,
            }
        };
        let mut rows: Vec<SessionRow> = Vec::new();
        for wanted in &options.sessions {
            let row = self.session_meant(Some(wanted), wanted)?;
            if let Some(error) = why_not(&row) {
                return Err(error);
            }
            // One whose file is still in its place was cut off in the middle, and is ended by doing it again.
            if row.session.rank == Rank::Deleted && !self.is_half_deleted(&row.session)? {
                return Err(BranchError::Deleted(row.session.id));
            }
            if rows.iter().all(|other| other.session.id != row.session.id) {
                rows.push(row);
            }
        }
        let named: HashSet<SessionId> = rows.iter().map(|row| row.session.id.clone()).collect();
        let mut stay = Vec::new();
        if let Some(age) = options.older_than {
            let before = Timestamp(self.environment.clock.now().0.saturating_sub(age));
            let is_old = |row: &&SessionRow| row.session.origin.is_some() && row.last_at < before;
            let is_there = |row: &&SessionRow| row.session.rank != Rank::Deleted && !named.contains(&row.session.id);
            for row in all.iter().filter(is_old).filter(is_there) {
                match why_not(row) {
                    Some(why) => stay.push(BranchStays { session: row.session.id.clone(), why: why.to_string() }),
                    // Somebody chose it, so it goes only by its name.
                    None if row.session.rank == Rank::Main => {
                        let why = format!("session {} is the main line", row.session.id.short());
                        stay.push(BranchStays { session: row.session.id.clone(), why });
                    }
                    None => rows.push(row.clone()),
                }
            }
        }
        // A branch goes only with those that began in it; what stays keeps its parent, and that one's.
        loop {
            let going: HashSet<&SessionId> = rows.iter().map(|row| &row.session.id).collect();
            let kept_by = |row: &SessionRow| -> Vec<SessionId> {
                let is_child = |other: &&SessionRow| {
                    let parent = other.session.origin.as_ref().map(|origin| &origin.parent);
                    parent == Some(&row.session.id)
                        && other.session.rank != Rank::Deleted
                        && !going.contains(&other.session.id)
                };
                all.iter().filter(is_child).map(|other| other.session.id.clone()).collect()
            };
            let Some((at, branches)) = rows.iter().map(kept_by).enumerate().find(|(_, branches)| !branches.is_empty())
            else {
                return Ok(ToDelete { rows, stay });
            };
            let session = rows.remove(at).session.id;
            let is_named = named.contains(&session);
            let error = BranchError::HasBranches { session: session.clone(), branches };
            if is_named {
                return Err(error);
            }
            stay.push(BranchStays { session, why: error.to_string() });
        }
    }

    /// Checks that a name can be a session's, and is nobody else's.
    pub(crate) fn check_session_name(&self, name: &str, of: Option<&SessionId>) -> Result<(), BranchError> {
        check_name(name).map_err(|source| BranchError::Name { name: name.to_owned(), source })?;
        let has_it = |row: &SessionRow| {
            let session = &row.session;
            session.name.as_deref() == Some(name) || session.agent_id == name || session.id.as_str() == name
        };
        let taken = self.store.sessions()?.into_iter().find(|row| has_it(row) && Some(&row.session.id) != of);
        match taken {
            Some(row) => Err(BranchError::NameTaken { name: name.to_owned(), session: row.session.id }),
            None => Ok(()),
        }
    }

    pub(crate) fn row_of(&self, id: &SessionId) -> Result<SessionRow, BranchError> {
        Ok(self
            .store
            .session(id)?
            .ok_or_else(|| TargetError::UnknownSession { session: id.to_string(), near: Vec::new() })?)
    }

    pub(crate) fn session_view(&self, id: &SessionId) -> Result<SessionView, BranchError> {
        let view = self.session_views(|one| one == id)?.pop();
        Ok(view.ok_or_else(|| TargetError::UnknownSession { session: id.to_string(), near: Vec::new() })?)
    }
}
