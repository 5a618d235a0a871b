//! Session archives: a session as one file, to be read into the store of another workspace, on another machine.
//!
//! An archive has what is needed to look at a session and to rewind to it: its records, those of the sessions that it is a
//! branch of as far as it shares their turns, every object that their checkpoints need, and its transcript. What is of
//! one machine only stays there: operations, processes, files outside the workspace, the transcript's path.
//!
//! An import lays nothing out and writes to the store alone, in one commit, after all of the archive was checked. Its
//! checkpoints come on a line of their own, so that nothing of the workspace's own line moves.

pub(crate) mod export;

mod checks;
mod gather;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::Write;
use std::path::Path;

use piton_host::outside;
use piton_model::id::is_id_prefix;
use piton_model::session::{KeptTranscript, StepEnd, TurnEnd};
use piton_model::target::check_name;
use piton_model::{CheckpointId, Ending, Record, Session, SessionId, StepRef, WorkspacePath};
use piton_store::{Archive, ArchiveError, ArchiveWriter, Manifest, PATIENCE, StoreError};

use crate::history::target::TargetError;
use crate::view::{PrivatePaths, RenamedName, SessionExported, SessionImported};
use crate::workspace::{DEFAULT_BUDGET, History, Workspace};
use checks::Checked;

/// Why no archive was made.
#[derive(Debug, thiserror::Error)]
pub enum ExportSessionError {
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The session has nothing to export.
    #[error("session {0} has no checkpoints here")]
    NothingIn(String),
    /// The session's agent, or its id for it, could not stand in a file's name elsewhere.
    #[error("session {session} cannot be exported: {why}")]
    Unportable { session: String, why: String },
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

/// Why nothing was imported. The store is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The session is here, and what the archive has of it is not the same.
    #[error("session {} is in this store already, and not all of the archive is", .0.short())]
    Here(SessionId),
    /// The same of a session that it is a branch of.
    #[error("session {session} is a branch of {parent}, which is in this store already, and not as the archive has it",
        session = session.short(), parent = parent.short())]
    ParentHere {
        /// The archive's.
        session: SessionId,
        /// The one that is here.
        parent: SessionId,
    },
    /// A checkpoint of the archive has the id of one that is here.
    #[error("checkpoint {} of the archive is in this store already, and not of that session", .0.short())]
    CheckpointHere(CheckpointId),
    /// What the agent calls the session already means another one here.
    #[error("its agent calls the session `{agent_id}`, and here that means session {}", session.short())]
    CalledLike { agent_id: String, session: SessionId },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Whether a workspace with the usual budget could import an archive, as far as the archive itself tells.
///
/// # Errors
/// Where the file cannot be read, is no archive, or is damaged.
pub fn check_archive(file: &Path) -> Result<(), ImportError> {
    checks::check(&mut Archive::open(file, DEFAULT_BUDGET)?)?;
    Ok(())
}

impl Workspace {
    /// Reads an archive into this workspace's store. Lays nothing out.
    ///
    /// # Errors
    /// Where the archive is not exactly as it must be, the session is here already with other records, or the store
    /// refuses. Nothing is recorded then.
    pub fn import_session(&mut self, file: &Path) -> Result<SessionImported, ImportError> {
        let mut archive = Archive::open(file, self.record.budget)?;
        let checked = checks::check(&mut archive)?;
        let locked = self.lock(PATIENCE)?;
        let mut imported = SessionImported {
            session: checked.session.id.clone(),
            agent: checked.session.agent.clone(),
            agent_id: checked.session.agent_id.clone(),
            made_at: archive.manifest().made_at,
            made_by: archive.manifest().piton.clone(),
            already_here: false,
            line: None,
            sessions: Vec::new(),
            turns: 0,
            checkpoints: 0,
            objects: 0,
            bytes: 0,
            transcript: checked.session.kept.as_ref().map(|kept| kept.size),
            renamed: Vec::new(),
        };
        let here = locked.sessions_here(&checked)?;
        if here.contains(&checked.session.id) {
            imported.already_here = true;
            return Ok(imported);
        }
        locked.check_meanings(&checked, &here)?;
        let mut writer = locked.writer()?;
        (imported.objects, imported.bytes) = writer.take_archive(&archive)?;
        let line = locked.store.next_imported_line()?;
        imported.line = Some(line);
        let is_new = |session: &SessionId| !here.contains(session);
        let mut ends = Ends::of(&checked);
        let places = checked.checkpoint_sessions();
        let is_kept = |checkpoint: &CheckpointId| places.get(checkpoint).and_then(Option::as_ref).is_none_or(is_new);
        let names = checked.names();
        for mut session in checked.sessions.into_iter().filter(|session| is_new(&session.id)) {
            imported.sessions.push(session.id.clone());
            if let Some(name) = &session.name
                && locked.means_a_session(name)?
            {
                imported.renamed.push(RenamedName { name: name.clone(), session: true, now: None });
                session.name = None;
            }
            writer.record(Record::Session(session))?;
        }
        for record in checked.records {
            let record = match record {
                Record::Checkpoint(checkpoint) if is_kept(&checkpoint.id) => {
                    imported.checkpoints += 1;
                    Record::Checkpoint(piton_model::Checkpoint { line, ..checkpoint })
                }
                Record::Name { checkpoint, name } if is_kept(&checkpoint) => {
                    let Some(name) = locked.name_for(name, &names, &mut imported)? else { continue };
                    Record::Name { checkpoint, name }
                }
                Record::Annotation { checkpoint, text } if is_kept(&checkpoint) => {
                    Record::Annotation { checkpoint, text }
                }
                Record::Checkpoint(_) | Record::Name { .. } | Record::Annotation { .. } => continue,
                other if checks::session_of(&other).is_some_and(is_new) => other,
                _ => continue,
            };
            imported.turns += u64::from(matches!(record, Record::Turn(_)));
            writer.record(record)?;
        }
        ends.retain(is_new);
        for record in ends.into_records() {
            writer.record(record)?;
        }
        let at = locked.environment.clock.now();
        for session in imported.sessions.clone() {
            writer.record(Record::Imported { session, at })?;
        }
        writer.commit(true, false)?;
        // What is recorded is recorded; what goes wrong here only makes the next start slower.
        let _ = locked.store().tidy(&locked.lock);
        Ok(imported)
    }
}

impl History {
    /// Writes a session to an archive.
    ///
    /// # Errors
    /// Where there is no such session, an object is missing or damaged, or the output refuses. What was written by then
    /// is no archive.
    pub fn export_session(&self, wanted: &str, out: &mut dyn Write) -> Result<SessionExported, ExportSessionError> {
        let session = self.session_meant(Some(wanted), wanted)?.session;
        if let Err(why) = checks::check_agent(&session) {
            return Err(ExportSessionError::Unportable { session: session.id.short().to_owned(), why });
        }
        self.store.read_steadily(|| self.write_session(&session, out))
    }

    /// The files that an archive of a session holds and that are not for others to see: those that are ignored and that git does
    /// not track, those that a filter of git's changes, those that git is told not to look at, and copies of any of them.
    ///
    /// # Errors
    /// Where there is no such session, or the store refuses.
    pub fn private_in_session(&self, wanted: &str) -> Result<PrivatePaths, ExportSessionError> {
        let session = self.session_meant(Some(wanted), wanted)?.session;
        let lineage = self.lineage(&session.id).map_err(ArchiveError::from)?;
        let gathered = self.gather(&lineage).map_err(ArchiveError::from)?;
        let checkpoints = gathered.records.iter().filter_map(|record| match record {
            Record::Checkpoint(checkpoint) => Some(checkpoint),
            _ => None,
        });
        let found = self.private_in(checkpoints).map_err(ArchiveError::from)?;
        let views = |paths: &BTreeSet<WorkspacePath>| paths.iter().map(Into::into).collect();
        Ok(PrivatePaths {
            ignored: views(&found.ignored),
            filtered: views(&found.filtered),
            unwatched: views(&found.unwatched),
            copies: found.copies.iter().map(Into::into).collect(),
        })
    }

    fn write_session(&self, session: &Session, out: &mut dyn Write) -> Result<SessionExported, ExportSessionError> {
        let manifest = Manifest {
            session: session.id.clone(),
            piton: env!("CARGO_PKG_VERSION").to_owned(),
            made_at: self.environment.clock.now(),
        };
        let lineage = self.lineage(&session.id).map_err(ArchiveError::from)?;
        let mut gathered = self.gather(&lineage).map_err(ArchiveError::from)?;
        if gathered.checkpoints == 0 {
            return Err(ExportSessionError::NothingIn(session.id.short().to_owned()));
        }
        let mut archive = ArchiveWriter::begin(&self.store, out, &manifest)?;
        let (kept, transcript_missing) = match self.add_transcript(session, &mut archive)? {
            Ok(kept) => (Some(kept), None),
            Err(why) => (None, Some(why.to_owned())),
        };
        let transcript = kept.as_ref().map(|kept| kept.size);
        gathered.set_kept(&session.id, kept);
        self.add_git(&mut gathered, &mut archive)?;
        for need in gathered.records.iter().flat_map(Record::needs) {
            archive.needed(&need)?;
        }
        for record in gathered.records {
            archive.record(record)?;
        }
        let totals = archive.finish()?;
        Ok(SessionExported {
            session: session.id.clone(),
            agent: session.agent.clone(),
            file: None,
            size: totals.bytes,
            sessions: gathered.sessions,
            turns: gathered.turns,
            checkpoints: gathered.checkpoints,
            objects: totals.objects,
            ignored: Vec::new(),
            filtered: Vec::new(),
            unwatched: Vec::new(),
            copies: Vec::new(),
            transcript,
            transcript_missing,
        })
    }

    /// Adds the session's transcript: the agent's own file, else what the store keeps. The inner error says why there is
    /// none.
    fn add_transcript(
        &self,
        session: &Session,
        archive: &mut ArchiveWriter<'_>,
    ) -> Result<Result<KeptTranscript, &'static str>, ArchiveError> {
        let mut why = "the agent keeps none that piton knows of";
        let format = self.environment.agents.transcripts(&session.agent);
        if let Some(format) = format.filter(|_| session.transcript.is_some()) {
            // A report may name any file, and an archive goes to others: only what a branch would be made of is taken.
            let place = self.transcript_place(session, format);
            match place.map(|place| place.map(|path| outside::lines(&path, 0)).unwrap_or(Ok(None))) {
                Ok(Ok(Some(mut lines))) if lines.length > 0 => {
                    let blob = archive.bytes(&mut lines.reader, lines.length)?;
                    return Ok(Ok(KeptTranscript { blob, size: lines.length }));
                }
                Ok(Ok(Some(_))) => why = "its file is empty",
                Ok(Ok(None)) => why = "its file is gone",
                Ok(Err(_)) => why = "its file cannot be read",
                Err(_) => why = "its file is not where the agent keeps transcripts",
            }
        }
        let Some(kept) = &session.kept else { return Ok(Err(why)) };
        match archive.blob(&kept.blob) {
            Ok(()) => Ok(Ok(kept.clone())),
            Err(ArchiveError::Store(StoreError::Missing(_) | StoreError::Damaged(_))) => Ok(Err("it is damaged")),
            Err(error) => Err(error),
        }
    }

    /// Which sessions of an archive are here already, with all that the archive has of them.
    fn sessions_here(&self, checked: &Checked) -> Result<HashSet<SessionId>, ImportError> {
        let mut here = HashSet::new();
        for session in &checked.sessions {
            if self.store.session(&session.id)?.is_none() {
                continue;
            }
            if !self.has_all_of(checked, &session.id)? {
                let id = session.id.clone();
                return Err(match id == checked.session.id {
                    true => ImportError::Here(id),
                    false => ImportError::ParentHere { session: checked.session.id.clone(), parent: id },
                });
            }
            here.insert(session.id.clone());
        }
        // A checkpoint that is here and of none of those sessions would be moved to another place.
        let places = checked.checkpoint_sessions();
        for (checkpoint, session) in places {
            let is_known = session.is_some_and(|session| here.contains(&session));
            if !is_known && !here.contains(&checked.session.id) && self.store.checkpoint(&checkpoint)?.is_some() {
                return Err(ImportError::CheckpointHere(checkpoint));
            }
        }
        Ok(here)
    }

    /// Whether everything that an archive says of a session is in the store. What people call and note on things is
    /// theirs to change, so it is not compared.
    fn has_all_of(&self, checked: &Checked, session: &SessionId) -> Result<bool, StoreError> {
        let gaps = self.store.gaps(Some(session))?;
        let said: HashSet<(u32, String, String, i64)> = self
            .store
            .messages_numbered(session)?
            .into_iter()
            .map(|(_, message)| (message.turn, message.role, message.text, message.at.0))
            .collect();
        for record in checked.records.iter().filter(|record| checks::session_of(record) == Some(session)) {
            let is_here = match record {
                Record::Turn(turn) => self
                    .store
                    .turn(session, turn.number)?
                    .is_some_and(|row| row.turn.prompt == turn.prompt && row.turn.at == turn.at),
                Record::Step(step) => self.store.step(&step.at)?.is_some_and(|row| {
                    (&row.step.tool, &row.step.summary, row.step.opened) == (&step.tool, &step.summary, step.opened)
                }),
                Record::StepEnded(end) => self.store.step(&end.at)?.is_some_and(|row| row.ending == Some(end.how)),
                Record::TurnEnded(end) => {
                    self.store.turn(session, end.number)?.is_some_and(|row| row.ending == Some(end.how))
                }
                Record::Gap(gap) => gaps.iter().any(|(_, one)| one == gap),
                Record::Message(message) => {
                    said.contains(&(message.turn, message.role.clone(), message.text.clone(), message.at.0))
                }
                Record::Checkpoint(checkpoint) => self.store.checkpoint(&checkpoint.id)?.is_some_and(|row| {
                    let one = &row.checkpoint;
                    (one.root, one.cause, one.created_at, &one.place)
                        == (checkpoint.root, checkpoint.cause, checkpoint.created_at, &checkpoint.place)
                }),
                _ => true,
            };
            if !is_here {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes sure that what a person types for a session of this workspace still means that one.
    fn check_meanings(&self, checked: &Checked, here: &HashSet<SessionId>) -> Result<(), ImportError> {
        let known = self.store.sessions()?;
        for new in checked.sessions.iter().filter(|session| !here.contains(&session.id)) {
            let agent_id = new.agent_id.as_str();
            let other = known.iter().map(|row| &row.session).find(|session| {
                session.id.as_str().starts_with(agent_id)
                    || session.agent_id.starts_with(agent_id)
                    || session.name.as_deref() == Some(agent_id)
            });
            if let Some(other) = other {
                let session = other.id.clone();
                return Err(ImportError::CalledLike { agent_id: agent_id.to_owned(), session });
            }
        }
        Ok(())
    }

    /// Whether a session of this workspace could be meant by a name.
    fn means_a_session(&self, name: &str) -> Result<bool, StoreError> {
        let is_meant = |session: &Session| {
            session.name.as_deref() == Some(name)
                || session.id.as_str().starts_with(name)
                || session.agent_id.starts_with(name)
        };
        Ok(name.is_empty() || self.store.sessions()?.iter().any(|row| is_meant(&row.session)))
    }

    /// What a checkpoint of an archive is called here. A name that already means a checkpoint of this workspace goes on
    /// doing so, and the archive's gets its session's id in front.
    fn name_for(
        &self,
        name: String,
        names: &HashSet<String>,
        imported: &mut SessionImported,
    ) -> Result<Option<String>, StoreError> {
        let is_taken = |name: &str| -> Result<bool, StoreError> {
            Ok(self.store.named(name)?.is_some() || (is_id_prefix(name) && !self.store.with_prefix(name)?.is_empty()))
        };
        if !is_taken(&name)? {
            return Ok(Some(name));
        }
        let longer = format!("{}-{name}", imported.session.short());
        let is_free = check_name(&longer).is_ok() && !is_taken(&longer)? && !names.contains(&longer);
        let now = is_free.then_some(longer);
        imported.renamed.push(RenamedName { name, session: false, now: now.clone() });
        Ok(now)
    }
}

/// What an archive left open: steps and turns that nobody heard the end of. Elsewhere they may still run; here no tool of
/// theirs does.
struct Ends {
    steps: Vec<StepRef>,
    turns: Vec<(SessionId, u32)>,
    /// When each session was last heard of, in milliseconds.
    last: HashMap<SessionId, i64>,
}

impl Ends {
    fn of(checked: &Checked) -> Self {
        let (mut steps, mut turns) = (HashSet::new(), HashSet::new());
        let mut last: HashMap<SessionId, i64> = HashMap::new();
        for record in &checked.records {
            match record {
                Record::Step(step) => drop(steps.insert(step.at.clone())),
                Record::StepEnded(end) => drop(steps.remove(&end.at)),
                Record::Turn(turn) => drop(turns.insert((turn.session.clone(), turn.number))),
                Record::TurnEnded(end) => drop(turns.remove(&(end.session.clone(), end.number))),
                _ => {}
            }
            if let (Some(session), Some(at)) = (checks::session_of(record), checks::time_of(record)) {
                last.entry(session.clone()).and_modify(|last| *last = at.max(*last)).or_insert(at);
            }
        }
        let (mut steps, mut turns): (Vec<_>, Vec<_>) = (steps.into_iter().collect(), turns.into_iter().collect());
        steps.sort_unstable();
        turns.sort_unstable();
        Self { steps, turns, last }
    }

    fn retain(&mut self, is_wanted: impl Fn(&SessionId) -> bool) {
        self.steps.retain(|step| is_wanted(&step.session));
        self.turns.retain(|(session, _)| is_wanted(session));
    }

    fn into_records(self) -> impl Iterator<Item = Record> {
        let last = move |session: &SessionId| self.last.get(session).copied().unwrap_or_default();
        let at = last.clone();
        let steps = self.steps.into_iter().map(move |step| {
            let closed = at(&step.session).saturating_mul(1_000_000);
            Record::StepEnded(StepEnd { at: step, how: Ending::Lost, closed, cut: None, outside: Vec::new() })
        });
        let turns = self.turns.into_iter().map(move |(session, number)| {
            let at = piton_model::Timestamp(last(&session));
            Record::TurnEnded(TurnEnd { session, number, how: Ending::Lost, message: None, at })
        });
        steps.chain(turns)
    }
}
