//! What happened under a session since its last turn: the files that operations changed, and where its user went.
//!
//! Asked at a prompt, by the order of records alone: what comes after the session's previous turn began and before this
//! one. So it is told once, and the next prompt has nothing of it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use piton_model::diff::{self, ChangeKind};
use piton_model::{Cause, Counts, Entry, OperationTarget, OperationVerb, SessionId, Timestamp, WorkspacePath};
use piton_store::{OperationRow, StoreError};

use crate::history::operations::standing;
use crate::view::{LeftBehind, PathView, Told, ToldFile};
use crate::workspace::History;

impl History {
    /// What there is to tell at the beginning of a turn.
    pub(crate) fn told(&self, session: &SessionId, turn: u32) -> Result<Option<Told>, StoreError> {
        let Some(now) = self.store.turn(session, turn)?.map(|row| row.seq) else { return Ok(None) };
        let before = self.store.turn_before(session, turn)?;
        let since = match &before {
            Some(before) => Some(before.seq),
            // Before its first turn a branch knows what was so when it was made.
            None => self.branched_at(session)?,
        };
        let Some(since) = since else {
            let moved_from = self.moved_from(session)?;
            return Ok(moved_from.map(|from| Told { moved_from: Some(from), ..Told::default() }));
        };
        let mut operations = self.store.operations_between(since, now)?;
        // What was cut off and taken back is nothing that the user did.
        operations.retain(|row| row.verb != OperationVerb::Recover);
        let mut files = self.changed_by(&operations)?;
        let mut did = if files.is_empty() { Vec::new() } else { self.what_was_done(&operations)? };
        if let Some(before) = &before {
            self.add_near(before.turn.at, &mut did, &mut files)?;
        }
        let left = self.left_behind(session, &operations)?;
        Ok((left.is_some() || !files.is_empty()).then_some(Told { did, files, left, moved_from: None }))
    }

    /// Adds what operations in workspaces inside or around this one changed here since a time. They are looked for only where
    /// the files of this workspace have just been found changed.
    fn add_near(&self, since: Timestamp, did: &mut Vec<String>, files: &mut Vec<ToldFile>) -> Result<(), StoreError> {
        let found = self.store.head(self.record.line)?.map(|row| row.checkpoint.changes);
        if found.is_none_or(|changes| changes == Counts::default()) {
            return Ok(());
        }
        for near in self.near() {
            // One that cannot be read tells nothing.
            let Ok(other) = self.engine().read(&near.known.id, near.known.path.clone()) else { continue };
            let mut operations = other.store.operations()?;
            operations.retain(|row| row.began_at >= since && row.verb != OperationVerb::Recover);
            let changed = other.changed_here(&operations)?.into_iter();
            let here = changed.filter_map(|(path, kind)| Some((self.path_near(&near, &path)?, kind)));
            let here: Vec<_> = here.filter(|(path, _)| !path.is_root()).collect();
            if !here.is_empty() {
                did.push(format!("went back in {}, which shares files with this folder", other.path.display()));
            }
            for (path, kind) in here {
                let path = PathView::from(&path);
                if !files.iter().any(|file| file.path == path) {
                    files.push(ToldFile { path, kind });
                }
            }
        }
        Ok(())
    }

    /// The number of the operation that made a branch.
    fn branched_at(&self, session: &SessionId) -> Result<Option<u64>, StoreError> {
        if self.store.session(session)?.is_none_or(|row| row.session.origin.is_none()) {
            return Ok(None);
        }
        let mut rows = self.store.operations()?.into_iter().rev();
        let made = rows.find(|row| row.went.as_ref().is_some_and(|went| went.to.as_ref() == Some(session)));
        Ok(made.map(|row| row.seq))
    }

    /// The folder that a branch knows from its parent's conversation, where it goes on in another one: a fork that was laid
    /// out elsewhere has its parent in the store of the folder that it comes from.
    fn moved_from(&self, session: &SessionId) -> Result<Option<PathBuf>, StoreError> {
        let Some(origin) = self.store.session(session)?.and_then(|row| row.session.origin) else { return Ok(None) };
        if self.store.session(&origin.parent)?.is_some() {
            return Ok(None);
        }
        let known = self.home.workspaces_of(&origin.parent).into_iter();
        Ok(known.map(|(_, path)| path).find(|path| *path != self.path))
    }

    fn changed_by(&self, operations: &[OperationRow]) -> Result<Vec<ToldFile>, StoreError> {
        let changed = self.changed_here(operations)?;
        Ok(changed.into_iter().map(|(path, kind)| ToldFile { path: (&path).into(), kind }).collect())
    }

    /// The files that some operations, given oldest first, touched and that are not as they were before the first of
    /// them. What one took back and another brought again is as it was.
    fn changed_here(&self, operations: &[OperationRow]) -> Result<Vec<(WorkspacePath, ChangeKind)>, StoreError> {
        let mut then = None;
        let mut touched: BTreeSet<WorkspacePath> = BTreeSet::new();
        for row in operations {
            let before = self.store.checkpoint(&row.before)?;
            let after = row.after.as_ref().map(|id| self.store.checkpoint(id)).transpose()?.flatten();
            let Some((before, after)) = before.zip(after) else { continue };
            let (before, after) = (before.checkpoint.root, after.checkpoint.root);
            then.get_or_insert(before);
            let changes = diff::root_changes(&self.store, Some(&before), Some(&after))?;
            touched.extend(changes.into_iter().filter(|change| !change.implied).map(|change| change.path));
        }
        let now = self.store.head(self.record.line)?.map(|row| row.checkpoint.root);
        let Some((then, now)) = then.zip(now) else { return Ok(Vec::new()) };
        let mut files = Vec::new();
        for path in touched {
            let was = diff::lookup(&self.store, &then.tree, &path)?;
            let is = diff::lookup(&self.store, &now.tree, &path)?;
            let kind = match (&was, &is) {
                // Nobody knows what is or was there.
                (Some(Entry::Skipped { .. }), _) | (_, Some(Entry::Skipped { .. })) => continue,
                _ if was == is => continue,
                (None, _) => ChangeKind::Created,
                (_, None) => ChangeKind::Deleted,
                _ => ChangeKind::Modified,
            };
            files.push((path, kind));
        }
        Ok(files)
    }

    /// What of some operations stands, in a few words each: an undo that was taken back among them comes before that.
    fn what_was_done(&self, operations: &[OperationRow]) -> Result<Vec<String>, StoreError> {
        let all = self.store.operations()?;
        let stands = standing(&all);
        let stands = |row: &OperationRow| all.iter().zip(&stands).any(|(one, stands)| one.id == row.id && *stands);
        let of = |row: &OperationRow| row.target.as_ref().and_then(OperationTarget::operation).cloned();
        let taken_back: Vec<_> = operations.iter().filter(|row| stands(row)).filter_map(of).collect();
        let mut did = Vec::new();
        let mut last = None;
        for row in operations.iter().filter(|row| stands(row) || taken_back.contains(&row.id)) {
            match row.verb {
                OperationVerb::Undo => did.push(format!("undid {}", row.about.as_deref().unwrap_or("changes"))),
                OperationVerb::Redo => match of(row) {
                    Some(of) if last == Some(&of) => did.push("took that back".to_owned()),
                    of => {
                        let of = of.and_then(|of| all.iter().find(|one| one.id == of));
                        did.push(format!("took back {}", self.named(of)?));
                    }
                },
                OperationVerb::Rewind => did.push(format!("rewound the files to {}", self.moment_of(row)?)),
                OperationVerb::Branch | OperationVerb::Checkout | OperationVerb::Recover => continue,
            }
            last = Some(&row.id);
        }
        Ok(did)
    }

    /// An operation in words that an agent knows: turns and moments, no ids.
    fn named(&self, row: Option<&OperationRow>) -> Result<String, StoreError> {
        Ok(match row {
            Some(row) if row.verb == OperationVerb::Rewind => format!("the rewind to {}", self.moment_of(row)?),
            Some(row) if row.verb == OperationVerb::Undo => {
                format!("the undo of {}", row.about.as_deref().unwrap_or("changes"))
            }
            Some(row) if row.verb == OperationVerb::Branch => row.about.clone().unwrap_or("a branch".to_owned()),
            Some(_) => "a redo".to_owned(),
            None => "an operation".to_owned(),
        })
    }

    /// The moment that a rewind went to: `before turn 5`.
    fn moment_of(&self, row: &OperationRow) -> Result<String, StoreError> {
        let target = row.target.as_ref().and_then(OperationTarget::checkpoint);
        let target = target.map(|id| self.store.checkpoint(id)).transpose()?.flatten();
        let place = target.as_ref().and_then(|row| Some((row.checkpoint.cause, row.checkpoint.place.as_ref()?)));
        Ok(match place {
            Some((Cause::Prompt, place)) => format!("before turn {}", place.turn),
            Some((Cause::BeforeTool, place)) => {
                format!("before step {} of turn {}", place.step.unwrap_or_default(), place.turn)
            }
            Some((Cause::TurnEnd, place)) => format!("the end of turn {}", place.turn),
            _ => match target.as_ref().and_then(|row| row.names.first()) {
                Some(name) => format!("the checkpoint “{name}”"),
                None => "an earlier checkpoint".to_owned(),
            },
        })
    }

    /// Where the user went from a session and has not come back from.
    fn left_behind(&self, session: &SessionId, operations: &[OperationRow]) -> Result<Option<LeftBehind>, StoreError> {
        let mut at = Some(session.clone());
        let mut turn = 0;
        for went in operations.iter().filter_map(|row| row.went.as_ref()).filter(|went| went.goes) {
            if went.from == *session && at.as_ref() == Some(session) {
                turn = went.turn;
            }
            if went.to.as_ref() == Some(session) {
                at = Some(session.clone());
            } else if at.as_ref() == Some(&went.from) {
                at = went.to.clone();
            }
        }
        if at.as_ref() == Some(session) {
            return Ok(None);
        }
        let to = at.as_ref().map(|id| self.store.session(id)).transpose()?.flatten().map(|row| row.session);
        let resume = to.and_then(|to| self.environment.agents.transcripts(&to.agent)?.resume_command(&to.agent_id));
        Ok(Some(LeftBehind { turn, session: at, resume }))
    }
}

#[cfg(test)]
mod tests {
    use piton_model::conversation::{Began, Origin};
    use piton_model::event::{Event, Report};
    use piton_model::{Rank, Record, Session, SessionId, Timestamp};
    use piton_store::PATIENCE;

    use crate::{Engine, Environment, ObserveOptions};

    #[test]
    #[allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests make folders of their own")]
    fn a_branch_that_goes_on_in_another_folder_is_told_so_at_its_first_prompt() {
        let scratch = tempfile::tempdir().unwrap();
        let base = piton_host::canonical(scratch.path()).unwrap();
        let engine = Engine::new(base.join("home"), Environment::default());
        for folder in ["old", "new"] {
            std::fs::create_dir(base.join(folder)).unwrap();
        }
        let prompt = |session: &str, folder: &str| {
            let report = Report {
                agent: "test".into(),
                session: session.into(),
                cwd: Some(base.join(folder)),
                transcript: None,
                prompt_id: None,
                subagent: None,
                event: Event::Prompt { text: "go".into() },
            };
            engine.observe(&report, &ObserveOptions::default()).unwrap().0.told
        };
        assert!(prompt("parent", "old").is_none());
        // As a fork leaves it that is laid out in a folder of its own.
        let mut there = engine.open_or_init(&base.join("new")).unwrap();
        let parent = SessionId::of("test", "parent");
        let origin = Origin { parent, turn: 2, missing: 0, at: Timestamp(0), how: Began::Fork, summary: None };
        let locked = there.lock(PATIENCE).unwrap();
        let mut writer = locked.writer().unwrap();
        let branch = Session {
            id: SessionId::of("test", "branch"),
            agent: "test".into(),
            agent_id: "branch".into(),
            name: None,
            transcript: None,
            started_at: Timestamp(0),
            origin: Some(origin),
            rank: Rank::Plain,
            kept: None,
            along: false,
        };
        writer.record(Record::Session(branch)).unwrap();
        writer.commit(false, false).unwrap();
        drop(locked);
        assert_eq!(prompt("branch", "new").unwrap().moved_from, Some(base.join("old")));
        assert!(prompt("branch", "new").is_none(), "and only once");
    }
}
