//! What the records of an archive may say. Anybody may have made it, so nothing is believed: ids, names, numbers and times
//! are checked, a record names only what is in the archive, and nothing that acts on a machine is taken over.

use std::collections::{HashMap, HashSet};

use piton_agents::event::check_session_id;
use piton_model::git::GitState;
use piton_model::ownership::UNKNOWN;
use piton_model::summary::MOST_SUMMARY;
use piton_model::target::check_name;
use piton_model::tree::MODE_BITS;
use piton_model::{
    Checkpoint, CheckpointId, Need, NeededObject, ObjectId, Rank, Record, Session, SessionId, StepRef, Timestamp, Turn,
};
use piton_store::{Archive, ArchiveError};

use super::gather::portable;
use crate::operation::annotate;

/// Turns and steps have eight digits in the rows' keys.
const LAST_NUMBER: u32 = 99_999_999;
/// The end of the year 9999, in milliseconds.
const LAST_MOMENT: i64 = 253_402_300_799_999;
/// The same in nanoseconds: no clock that counts them in 64 bits goes much further than 2262.
const LAST_NANOSECOND: i64 = 9_000_000_000_000_000_000;
/// No count of paths is higher.
const MOST: u64 = 1 << 40;
/// A checkpoint's row has room for about a million changes.
const MOST_CHANGES: usize = 1 << 19;
/// More generations than anybody makes.
const GENERATIONS: usize = 1000;
/// Characters of an agent's name and of a session's.
const LONGEST_NAME: usize = 200;

/// The records of an archive, as they may be kept.
pub(super) struct Checked {
    /// The session that it is of.
    pub session: Session,
    /// All sessions in it, those that others are branches of first.
    pub sessions: Vec<Session>,
    /// All other records, in order.
    pub records: Vec<Record>,
}

impl Checked {
    /// The session of each checkpoint, where it has one.
    pub(super) fn checkpoint_sessions(&self) -> HashMap<CheckpointId, Option<SessionId>> {
        let checkpoints = self.records.iter().filter_map(|record| match record {
            Record::Checkpoint(checkpoint) => Some(checkpoint),
            _ => None,
        });
        checkpoints.map(|one| (one.id.clone(), one.place.as_ref().map(|place| place.session.clone()))).collect()
    }

    /// The names of its checkpoints.
    pub(super) fn names(&self) -> HashSet<String> {
        let name = |record: &Record| if let Record::Name { name, .. } = record { Some(name.clone()) } else { None };
        self.records.iter().filter_map(name).collect()
    }
}

/// The session that a record is of; not of names and annotations, which are a checkpoint's.
pub(super) fn session_of(record: &Record) -> Option<&SessionId> {
    match record {
        Record::Session(session) => Some(&session.id),
        Record::Turn(turn) => Some(&turn.session),
        Record::Step(step) => Some(&step.at.session),
        Record::StepEnded(end) => Some(&end.at.session),
        Record::TurnEnded(end) => Some(&end.session),
        Record::SessionEnded { session, .. } | Record::Imported { session, .. } => Some(session),
        Record::Gap(gap) => Some(&gap.place.session),
        Record::Message(message) => Some(&message.session),
        Record::Checkpoint(checkpoint) => checkpoint.place.as_ref().map(|place| &place.session),
        Record::Workspace(_)
        | Record::Name { .. }
        | Record::Annotation { .. }
        | Record::Accepted(_)
        | Record::Operation(_)
        | Record::Ended { .. } => None,
    }
}

/// When something was said or done, in milliseconds.
pub(super) fn time_of(record: &Record) -> Option<i64> {
    let of_ns = |ns: i64| (ns != UNKNOWN).then(|| ns.div_euclid(1_000_000));
    match record {
        Record::Turn(turn) => Some(turn.at.0),
        Record::Step(step) => of_ns(step.opened),
        Record::StepEnded(end) => of_ns(end.closed),
        Record::TurnEnded(end) => Some(end.at.0),
        Record::SessionEnded { at, .. } => Some(at.0),
        Record::Gap(gap) => Some(gap.at.0),
        Record::Message(message) => Some(message.at.0),
        Record::Checkpoint(checkpoint) => Some(checkpoint.created_at.0),
        _ => None,
    }
}

/// Checks what a session's agent is called, and what it calls the session: both may become part of a file's name.
pub(super) fn check_agent(session: &Session) -> Result<(), String> {
    let is_shown = |text: &str| {
        let fits = (1..=LONGEST_NAME).contains(&text.chars().count());
        fits && !text.chars().any(char::is_control)
    };
    if !is_shown(&session.agent) {
        return Err("its agent has no name that can be shown".to_owned());
    }
    check_session_id(&session.agent_id).map_err(|error| error.to_string())
}

/// Checks all records of an archive, and that it holds what they need and nothing else.
///
/// # Errors
/// At the first thing that no piton would have written.
pub(super) fn check(archive: &mut Archive) -> Result<Checked, ArchiveError> {
    let mut check = Check { archive, seen: SeenSoFar::default(), states: HashSet::new() };
    let records = check.archive.take_records();
    let moment = check.archive.manifest().made_at;
    is_moment(moment)?;
    let (mut sessions, mut rest) = (Vec::new(), Vec::with_capacity(records.len()));
    for record in records {
        match record {
            Record::Session(session) if rest.is_empty() => sessions.push(check.session(session)?),
            Record::Session(_) => return Err(refused("a session comes after what is of it")),
            other => rest.push(other),
        }
    }
    let session = check.family(&sessions)?;
    let mut kept = Vec::with_capacity(rest.len());
    for record in rest {
        let record = check.record(record)?;
        record.needs().iter().try_for_each(|need| check.need(need))?;
        kept.push(record);
    }
    check.archive.nothing_is_left_over()?;
    Ok(Checked { session, sessions, records: kept })
}

/// What has come so far: nothing comes twice, and a record names only what came before it.
#[derive(Default)]
struct SeenSoFar {
    sessions: HashSet<SessionId>,
    turns: HashSet<(SessionId, u32)>,
    turn_ends: HashSet<(SessionId, u32)>,
    steps: HashSet<StepRef>,
    step_ends: HashSet<StepRef>,
    session_ends: HashSet<SessionId>,
    checkpoints: HashSet<CheckpointId>,
    names: HashSet<String>,
    annotations: HashSet<CheckpointId>,
}

struct Check<'a> {
    archive: &'a mut Archive,
    seen: SeenSoFar,
    /// Repositories' states that were found to be ones.
    states: HashSet<ObjectId>,
}

impl Check<'_> {
    fn session(&mut self, session: Session) -> Result<Session, ArchiveError> {
        check_agent(&session).map_err(ArchiveError::Refused)?;
        if session.id != SessionId::of(&session.agent, &session.agent_id) {
            return Err(refused("a session's id is not that of its agent and the agent's own"));
        }
        once(self.seen.sessions.insert(session.id.clone()), "a session")?;
        is_moment(session.started_at)?;
        if session.name.as_ref().is_some_and(|name| name.chars().count() > LONGEST_NAME) {
            return Err(refused("a session's name is longer than any"));
        }
        if let Some(origin) = &session.origin {
            is_number(origin.turn, 0)?;
            is_number(origin.missing, 0)?;
            is_moment(origin.at)?;
            if origin.summary.as_ref().is_some_and(|summary| summary.len() > MOST_SUMMARY) {
                return Err(refused("a summary is longer than any"));
            }
        }
        // The path of a transcript is one of another machine, and what a person made of it there is theirs.
        let session = Session { transcript: None, rank: Rank::Plain, along: false, ..session };
        session.needs().try_for_each(|need| self.need(&need))?;
        Ok(session)
    }

    /// Looks in the archive for what is needed by a record as it is kept.
    fn need(&mut self, need: &Need) -> Result<(), ArchiveError> {
        match &need.object {
            NeededObject::Tree(id) => self.archive.need_tree(id),
            NeededObject::Blob { id, size } => self.archive.need_blob(id, *size),
            NeededObject::GitState(id) => self.git(id),
        }
    }

    /// The session that the archive is of. All others are those that it is a branch of, one after the other.
    fn family(&self, sessions: &[Session]) -> Result<Session, ArchiveError> {
        let by_id: HashMap<&SessionId, &Session> = sessions.iter().map(|session| (&session.id, session)).collect();
        let session = by_id.get(&self.archive.manifest().session).copied();
        let session = session.ok_or_else(|| refused("the session that it is of is not in it"))?;
        let mut found = HashSet::from([&session.id]);
        let mut next = session.origin.as_ref();
        while let Some(origin) = next {
            let parent = by_id.get(&origin.parent).ok_or_else(|| refused("a session's parent is not in it"))?;
            if !found.insert(&parent.id) || found.len() > GENERATIONS {
                return Err(refused("its sessions are each other's parents"));
            }
            next = parent.origin.as_ref();
        }
        if found.len() != sessions.len() {
            return Err(refused("it holds a session that it is not of"));
        }
        Ok(session.clone())
    }

    fn record(&mut self, record: Record) -> Result<Record, ArchiveError> {
        if let Some(session) = session_of(&record)
            && !matches!(record, Record::Checkpoint(_))
            && !self.seen.sessions.contains(session)
        {
            return Err(refused("a record names a session that is not in it"));
        }
        match &record {
            Record::Turn(turn) => {
                is_number(turn.number, 1)?;
                is_moment(turn.at)?;
                once(self.seen.turns.insert((turn.session.clone(), turn.number)), "a turn")?;
                // How far a file of another machine was read.
                return Ok(Record::Turn(Turn { mark: None, ..turn.clone() }));
            }
            Record::TurnEnded(end) => {
                is_moment(end.at)?;
                let turn = (end.session.clone(), end.number);
                if !self.seen.turns.contains(&turn) {
                    return Err(refused("a turn ends that did not begin"));
                }
                once(self.seen.turn_ends.insert(turn), "a turn's end")?;
            }
            Record::Step(step) => {
                is_number(step.at.turn, 0)?;
                is_number(step.at.step, 1)?;
                is_nanosecond(step.opened)?;
                once(self.seen.steps.insert(step.at.clone()), "a step")?;
                // Files and processes of another machine.
                let step = step.clone();
                return Ok(Record::Step(piton_model::session::Step {
                    outside: Vec::new(),
                    process: None,
                    cwd: None,
                    ..step
                }));
            }
            Record::StepEnded(end) => {
                is_nanosecond(end.closed)?;
                if !self.seen.steps.contains(&end.at) {
                    return Err(refused("a step ends that did not begin"));
                }
                once(self.seen.step_ends.insert(end.at.clone()), "a step's end")?;
                let end = end.clone();
                return Ok(Record::StepEnded(piton_model::session::StepEnd { outside: Vec::new(), ..end }));
            }
            Record::SessionEnded { session, at, .. } => {
                is_moment(*at)?;
                once(self.seen.session_ends.insert(session.clone()), "a session's end")?;
            }
            Record::Gap(gap) => {
                is_number(gap.place.turn, 0)?;
                is_number(gap.place.step.unwrap_or(0), 0)?;
                is_moment(gap.at)?;
            }
            Record::Message(message) => {
                is_number(message.turn, 0)?;
                is_moment(message.at)?;
            }
            Record::Checkpoint(_) => {
                let Record::Checkpoint(checkpoint) = record else { return Ok(record) };
                return Ok(Record::Checkpoint(self.checkpoint(checkpoint)?));
            }
            Record::Name { checkpoint, name } => {
                self.is_checkpoint(checkpoint)?;
                check_name(name)
                    .map_err(|error| ArchiveError::Refused(format!("a name in it is not valid: {error}")))?;
                once(self.seen.names.insert(name.clone()), "a name")?;
            }
            Record::Annotation { checkpoint, text } => {
                self.is_checkpoint(checkpoint)?;
                if text.chars().count() > annotate::MOST {
                    return Err(refused("a note is longer than any"));
                }
                once(self.seen.annotations.insert(checkpoint.clone()), "a note")?;
            }
            Record::Session(_)
            | Record::Workspace(_)
            | Record::Accepted(_)
            | Record::Operation(_)
            | Record::Ended { .. }
            | Record::Imported { .. } => return Err(refused("it holds a record that is not a session's")),
        }
        Ok(record)
    }

    fn is_checkpoint(&self, id: &CheckpointId) -> Result<(), ArchiveError> {
        match self.seen.checkpoints.contains(id) {
            true => Ok(()),
            false => Err(refused("a record names a checkpoint that is not in it")),
        }
    }

    fn checkpoint(&mut self, checkpoint: Checkpoint) -> Result<Checkpoint, ArchiveError> {
        once(self.seen.checkpoints.insert(checkpoint.id.clone()), "a checkpoint")?;
        is_moment(checkpoint.created_at)?;
        if let Some(place) = &checkpoint.place {
            is_number(place.turn, 0)?;
            is_number(place.step.unwrap_or(0), 0)?;
        }
        let counts = &checkpoint.changes;
        let is_count = [counts.created, counts.modified, counts.deleted, checkpoint.skipped].iter().all(|n| *n <= MOST);
        let listed: usize = checkpoint.owned.iter().map(|owned| owned.paths.len()).sum();
        if !is_count || listed > MOST_CHANGES {
            return Err(refused("a checkpoint lists more than there can be"));
        }
        if checkpoint.root.mode & !MODE_BITS != 0 {
            return Err(refused("a checkpoint's root has bits that no folder has"));
        }
        // One that comes later, or is the checkpoint itself, would make a circle.
        let own = checkpoint.id.clone();
        let is_before = |id: &CheckpointId| *id != own && self.seen.checkpoints.contains(id);
        let parent = checkpoint.parent.clone().filter(is_before);
        Ok(portable(Checkpoint { parent, ..checkpoint }, |session, _| self.seen.sessions.contains(session)))
    }

    /// A repository's state. It is given to git only where somebody asks for that, and then it must not be an option.
    fn git(&mut self, id: &ObjectId) -> Result<(), ArchiveError> {
        self.archive.need_blob(id, None)?;
        if !self.states.insert(*id) {
            return Ok(());
        }
        let state: GitState = serde_json::from_slice(&self.archive.blob(id)?)
            .map_err(|error| ArchiveError::Refused(format!("the state of a repository in it is not valid: {error}")))?;
        let is_hash = |text: &str| matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit());
        let is_sound = state.head.commit.as_deref().is_none_or(is_hash)
            && state.head.branch_bytes().is_none_or(|name| is_reference(&name))
            && state.staged.iter().all(|entry| entry.id.is_empty() || is_hash(&entry.id));
        if !is_sound {
            return Err(refused("the state of a repository names no commit or branch"));
        }
        state.needs().try_for_each(|need| self.need(&need))
    }
}

/// Whether git could have a reference of this name, as far as a path or an option could be made of it otherwise.
fn is_reference(name: &[u8]) -> bool {
    !name.starts_with(b"-")
        && !name.iter().any(|b| b.is_ascii_control() || b" ~^:?*[\\".contains(b))
        && name.split(|b| *b == b'/').all(|part| !part.is_empty() && !part.starts_with(b"."))
        && !name.windows(2).any(|two| two == b"..")
}

fn refused(what: &str) -> ArchiveError {
    ArchiveError::Refused(what.to_owned())
}

fn once(is_first: bool, what: &str) -> Result<(), ArchiveError> {
    if is_first { Ok(()) } else { Err(ArchiveError::Refused(format!("{what} comes twice"))) }
}

fn is_number(number: u32, least: u32) -> Result<(), ArchiveError> {
    if (least..=LAST_NUMBER).contains(&number) { Ok(()) } else { Err(refused("a turn or step has no such number")) }
}

fn is_moment(at: Timestamp) -> Result<(), ArchiveError> {
    if (0..=LAST_MOMENT).contains(&at.0) { Ok(()) } else { Err(refused("something happened when no clock goes")) }
}

fn is_nanosecond(at: i64) -> Result<(), ArchiveError> {
    let is_one = at == UNKNOWN || (0..=LAST_NANOSECOND).contains(&at);
    if is_one { Ok(()) } else { Err(refused("something happened when no clock goes")) }
}
