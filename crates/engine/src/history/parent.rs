//! What stands in the store of a fork's parent: in the folder of a fork, its parent's turns are targets too.
//!
//! They are read through the parent's store, which is never written from here. An operation copies the one checkpoint that
//! it goes back to, on a line of its own, as an archive's checkpoints are: what it did can be told and taken back when the
//! parent is gone.

use std::path::PathBuf;

use piton_model::diff::TreeSource;
use piton_model::plan::RootState;
use piton_model::target::TurnPlace;
use piton_model::{NeededFor, Record, SessionId, Target, When};
use piton_store::{CheckpointRow, OperationRow, StoreError};

use crate::history::target::TargetError;
use crate::workspace::locked::Locked;
use crate::workspace::{History, OpenError};

/// More forks of forks than anybody makes.
const GENERATIONS: usize = 100;

impl History {
    /// The store that has the turn of a target, where that is a turn that a conversation shares with a session of another
    /// workspace, and the target as it is said there.
    ///
    /// # Errors
    /// Where there is no such session, or no store tells of the turn any more.
    pub fn parents_history(&self, target: &Target) -> Result<Option<(Self, Target)>, TargetError> {
        let Some((mut there, mut said)) = self.one_up(target)? else { return Ok(None) };
        for _ in 0..GENERATIONS {
            let Some(further) = there.one_up(&said)? else { break };
            (there, said) = further;
        }
        Ok(Some((there, said)))
    }

    /// The same, one generation up.
    fn one_up(&self, target: &Target) -> Result<Option<(Self, Target)>, TargetError> {
        let When::Turn { turn, .. } = target.when else { return Ok(None) };
        let (parent, fork) = match self.session_of_target(target) {
            Ok(row) => {
                let lineage = self.lineage(&row.session.id)?;
                let parent = lineage.session_of(turn).clone();
                if turn == 0 || parent == row.session.id || self.store.session(&parent)?.is_some() {
                    return Ok(None);
                }
                (parent, Some(row.session.id))
            }
            Err(error @ TargetError::UnknownSession { .. }) => {
                match target.session.as_deref().map(|wanted| self.ancestor_elsewhere(wanted)).transpose()?.flatten() {
                    Some(parent) => (parent, None),
                    None => return Err(error),
                }
            }
            Err(error) => return Err(error),
        };
        let said = Target { session: Some(parent.to_string()), when: target.when.clone() };
        let (mut all, unread) = self.histories_of(&parent);
        // A session may have worked in several workspaces: the one that made the fork has what the fork began with.
        if all.len() > 1
            && let Some(made) = all.iter().position(|there| fork.as_ref().is_some_and(|fork| there.has_forked(fork)))
        {
            all.swap(0, made);
        }
        match all.into_iter().next() {
            Some(there) => Ok(Some((there, said))),
            None => {
                let (place, why) = unread.into_iter().next().unzip();
                Err(TargetError::InParent { turn, parent, place, why: why.unwrap_or_default() })
            }
        }
    }

    /// The last turn that the conversation here shares with a session of another workspace, and that workspace's folder.
    ///
    /// # Errors
    /// Where the store refuses.
    pub fn shared_with_parent(&self) -> Result<Option<(u32, PathBuf)>, StoreError> {
        let Some(here) = self.here()? else { return Ok(None) };
        let Some(origin) = self.store.session(&here)?.and_then(|row| row.session.origin) else { return Ok(None) };
        if origin.turn < 2 || self.store.session(&origin.parent)?.is_some() {
            return Ok(None);
        }
        let target = Target::turn(here.to_string(), origin.turn - 1, TurnPlace::Before);
        Ok(self.parents_history(&target).ok().flatten().map(|(there, _)| (origin.turn - 1, there.path)))
    }

    /// The other workspaces that a session worked in, each with what it has recorded, and those that cannot be read.
    pub(crate) fn histories_of(&self, session: &SessionId) -> (Vec<Self>, Vec<(PathBuf, String)>) {
        let engine = self.engine();
        let (mut all, mut unread) = (Vec::new(), Vec::new());
        for (id, path) in self.home.workspaces_of(session) {
            if id == self.record.id {
                continue;
            }
            let read = || -> Result<Option<Self>, OpenError> {
                let known = self.home.known(&id).ok_or_else(|| OpenError::NotKnown(path.clone()))?;
                let there = engine.read(&id, engine.where_it_is(known).path)?;
                let knows = there.store.session(session)?.is_some();
                Ok(knows.then_some(there))
            };
            match read() {
                Ok(found) => all.extend(found),
                Err(error) => unread.push((path, error.to_string())),
            }
        }
        unread.extend(self.home.unread_stores_of(session).into_iter().map(|(path, error)| (path, error.to_string())));
        (all, unread)
    }

    /// Whether a fork with a folder of its own was made here.
    fn has_forked(&self, fork: &SessionId) -> bool {
        let makes = |row: &OperationRow| {
            let operation = self.store.operation(row).ok()?;
            let change = operation.conversation.filter(|change| change.worktree.is_some())?;
            change.branch.filter(|branch| branch.id == *fork)
        };
        self.store.operations().is_ok_and(|rows| rows.iter().any(|row| makes(row).is_some()))
    }

    /// The session that sessions here began in, though it worked elsewhere: by the beginning of its id, the agent's id or
    /// its name.
    pub(crate) fn ancestor_elsewhere(&self, wanted: &str) -> Result<Option<SessionId>, StoreError> {
        for row in self.store.sessions()? {
            let Some(parent) = row.session.origin.map(|origin| origin.parent) else { continue };
            if self.store.session(&parent)?.is_some() {
                continue;
            }
            let is_called = |there: &Self| {
                let session = there.store.session(&parent).ok().flatten().map(|row| row.session);
                session.is_some_and(|one| one.agent_id.starts_with(wanted) || one.name.as_deref() == Some(wanted))
            };
            if parent.as_str().starts_with(wanted) || self.histories_of(&parent).0.iter().any(is_called) {
                return Ok(Some(parent));
            }
        }
        Ok(None)
    }

    /// The checkpoint of a target that is in a parent's store, as if it were from before all that this folder recorded. Its
    /// contents can be read here from now on.
    pub(crate) fn checkpoint_in_parent(&self, wanted: &Target) -> Result<Option<CheckpointRow>, TargetError> {
        let Some((there, said)) = self.parents_history(wanted)? else { return Ok(None) };
        let mut row = there.checkpoint_at(&said)?;
        if let Err(error) = there.store.tree(&row.checkpoint.root.tree)
            && let When::Turn { turn, .. } = said.when
            && let Some(place) = &row.checkpoint.place
        {
            let (parent, place, why) = (place.session.clone(), Some(there.path.clone()), error.to_string());
            return Err(TargetError::InParent { turn, parent, place, why });
        }
        self.store.read_beside(there.store.clone());
        row.seq = 0;
        row.checkpoint.line = self.record.line;
        Ok(Some(row))
    }
}

impl History {
    /// What the folder of a fork began with, for a target of its parent's: that came from there, and is nobody's of here.
    pub(crate) fn begun_with(&self, target: &CheckpointRow) -> Result<Option<RootState>, StoreError> {
        let is_of_parent = target.seq == 0 && target.checkpoint.line == self.record.line;
        let first = if is_of_parent { self.store.first(self.record.line)? } else { None };
        Ok(first.map(|row| row.checkpoint.root))
    }
}

impl Locked<'_> {
    /// Copies a checkpoint of a parent's store with all that it needs, before an operation refers to it.
    pub(crate) fn keep_from_parent(&self, row: &CheckpointRow) -> Result<(), StoreError> {
        if row.seq != 0 || self.store.checkpoint(&row.checkpoint.id)?.is_some() {
            return Ok(());
        }
        let mut checkpoint = row.checkpoint.clone();
        checkpoint.line = self.store.next_imported_line()?;
        checkpoint.parent = None;
        checkpoint.owned.clear();
        let mut writer = self.writer()?;
        for need in row.checkpoint.needs() {
            let taken = writer.take_beside(need.object);
            match (taken, need.part) {
                (Ok(()), _) => {}
                // The files come back all the same.
                (Err(StoreError::Missing(_) | StoreError::Damaged(_)), NeededFor::Git) => checkpoint.git = None,
                (Err(StoreError::Missing(_) | StoreError::Damaged(_)), NeededFor::Path(_) | NeededFor::Outside(_)) => {
                    checkpoint.unagreed.clear();
                }
                (Err(error), _) => return Err(error),
            }
        }
        writer.record(Record::Checkpoint(checkpoint))?;
        writer.commit(true, false)
    }
}
