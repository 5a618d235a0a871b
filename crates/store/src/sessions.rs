//! The rows of sessions, turns, steps and changes, and the questions to them.

use std::collections::HashMap;

use piton_model::conversation::{ConversationSwitch, Rank};
use piton_model::ownership::{Candidate, Evidence, Owned, Owner, Settles};
use piton_model::session::{Gap, Message, Outside, Process, Step, StepEnd, TranscriptMark, TurnEnd};
use piton_model::{
    Cause, ChangeKind, Checkpoint, Ending, OperationId, Record, Session, SessionId, StepRef, Timestamp, Turn,
    TurnContext, WorkspacePath,
};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::Reader;
use crate::database::{from_sql, to_sql};
use crate::error::StoreError;
use crate::query::{CheckpointRow, parsed};

/// A session as it stands.
#[derive(Clone, Debug)]
pub struct SessionRow {
    /// What is recorded of it.
    pub session: Session,
    /// When it ended; it may go on later all the same, and then it has not.
    pub ended_at: Option<Timestamp>,
    /// Whether it has said anything itself; a branch has not until its agent goes on with it.
    pub heard: bool,
    /// The number of its newest record, or of the operation that last went to it; 0 where neither is.
    pub last_seq: u64,
    /// When it last said something; of a branch that has not, when it was made.
    pub last_at: Timestamp,
}

/// A turn as it stands.
#[derive(Clone, Debug)]
pub struct TurnRow {
    /// The number of its record.
    pub seq: u64,
    /// What is recorded of it.
    pub turn: Turn,
    /// How it ended.
    pub ending: Option<Ending>,
    /// The agent's last words.
    pub message: Option<String>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// A step as it stands. Files elsewhere that it names are in its record only.
#[derive(Clone, Debug)]
pub struct StepRow {
    /// The number of its record.
    pub seq: u64,
    /// What is recorded of it.
    pub step: Step,
    /// How it ended.
    pub ending: Option<Ending>,
    /// When, in nanoseconds since 1970.
    pub closed: Option<i64>,
    /// What became of the files elsewhere that it names.
    pub outside_after: Vec<Outside>,
}

/// One changed path of a checkpoint.
#[derive(Clone, Debug)]
pub struct ChangeRow {
    /// The number of the checkpoint's record.
    pub seq: u64,
    /// Where.
    pub path: WorkspacePath,
    /// What happened.
    pub kind: ChangeKind,
    /// Whose.
    pub owner: Owner,
}

/// What happened first and what last, path by path.
pub type ChangedPaths = HashMap<Vec<u8>, (ChangeKind, ChangeKind)>;

/// Room for a million changes of one checkpoint in a row's key.
const CHANGES: u32 = 20;

pub(crate) fn apply(db: &Connection, seq: i64, record: &Record) -> Result<(), StoreError> {
    match record {
        Record::Session(s) => {
            let origin = s.origin.as_ref().map(serde_json::to_string).transpose().map_err(to_sql)?;
            // A branch has not said anything yet, and nobody is at it until somebody goes there.
            let heard = s.origin.is_none();
            db.prepare_cached(
                "INSERT INTO sessions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?12, NULL, ?10, ?11, ?7, ?13)
                 ON CONFLICT(id) DO UPDATE
                 SET name = ?5, transcript = ?6, origin = ?8, rank = ?9, kept = ?12, along = ?13",
            )?
            .execute(params![
                s.id.as_str(),
                seq,
                s.agent,
                s.agent_id,
                s.name,
                s.transcript,
                s.started_at.0,
                origin,
                s.rank.as_str(),
                heard,
                if heard { seq } else { 0 },
                s.kept.as_ref().map(serde_json::to_string).transpose().map_err(to_sql)?,
                s.along
            ])?;
        }
        Record::Turn(t) => {
            let mark = t.mark.map(|m| serde_json::to_string(&m)).transpose().map_err(to_sql)?;
            db.prepare_cached(
                "INSERT INTO turns VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, NULL, NULL, NULL)
                 ON CONFLICT(key) DO UPDATE SET prompt = coalesce(prompt, ?5), prompt_id = coalesce(prompt_id, ?6)",
            )?
            .execute(params![
                turn_key(&t.session, t.number),
                t.session.as_str(),
                t.number,
                seq,
                t.prompt,
                t.prompt_id,
                t.at.0,
                mark
            ])?;
            touch(db, &t.session, seq, t.at)?;
        }
        Record::Step(s) => {
            let paths = serde_json::to_string(&s.paths).map_err(to_sql)?;
            let process = s.process.map(|p| serde_json::to_string(&p)).transpose().map_err(to_sql)?;
            db.prepare_cached(
                "INSERT INTO steps VALUES
                 (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, NULL, NULL, NULL, ?15, ?16, NULL)
                 ON CONFLICT(key) DO UPDATE SET background = max(background, ?11)",
            )?
            .execute(params![
                step_key(&s.at),
                s.at.session.as_str(),
                s.at.turn,
                s.at.step,
                seq,
                s.call,
                s.tool,
                s.summary,
                s.command,
                paths,
                s.background,
                s.subagent,
                process,
                s.opened,
                s.says,
                outside_json(&s.outside)?
            ])?;
            touch(db, &s.at.session, seq, milliseconds(s.opened))?;
        }
        Record::StepEnded(StepEnd { at, how, closed, outside }) => {
            let sql = "UPDATE steps SET ending = ?2, closed = ?3, ended_seq = ?4, outside_after = ?5 WHERE key = ?1";
            db.prepare_cached(sql)?.execute(params![
                step_key(at),
                how.as_str(),
                closed,
                seq,
                outside_json(outside)?
            ])?;
            if is_word_of_the_agent(*how) {
                settle(db, at)?;
                touch(db, &at.session, seq, milliseconds(*closed))?;
            }
        }
        Record::TurnEnded(TurnEnd { session, number, how, message, at }) => {
            db.prepare_cached("UPDATE turns SET ending = ?2, message = ?3, ended_at = ?4 WHERE key = ?1")?
                .execute(params![turn_key(session, *number), how.as_str(), message, at.0])?;
            if is_word_of_the_agent(*how) {
                touch(db, session, seq, *at)?;
            }
        }
        Record::SessionEnded { session, at, .. } => {
            touch(db, session, seq, *at)?;
            db.prepare_cached("UPDATE sessions SET ended_at = ?2 WHERE id = ?1")?
                .execute(params![session.as_str(), at.0])?;
        }
        Record::Gap(Gap { place, cause, reason, at, lost, gone }) => {
            db.prepare_cached("INSERT OR REPLACE INTO gaps VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?.execute(
                params![seq, place.session.as_str(), place.turn, place.step, cause.as_str(), reason, at.0, lost, gone],
            )?;
            touch(db, &place.session, seq, *at)?;
        }
        Record::Message(Message { session, turn, role, text, at }) => {
            db.prepare_cached("INSERT OR REPLACE INTO messages VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?.execute(params![
                seq,
                session.as_str(),
                turn,
                role,
                text,
                at.0
            ])?;
            touch(db, session, seq, *at)?;
        }
        Record::Imported { session, .. } => {
            // Nobody is at it here, and none of its tools' windows was ever open here.
            db.prepare_cached(
                "UPDATE sessions SET last_seq = 0, ended_at = coalesce(ended_at, last_at) WHERE id = ?1",
            )?
            .execute([session.as_str()])?;
            let all = [step_key_of(session, 0, 0), step_key_of(session, 99_999_999, 99_999_999)];
            db.prepare_cached("UPDATE steps SET ended_seq = NULL WHERE key BETWEEN ?1 AND ?2")?.execute(all)?;
        }
        _ => {}
    }
    Ok(())
}

/// Makes the rows of a checkpoint's changes.
pub(crate) fn apply_changes(db: &Connection, seq: i64, owned: &[Owned]) -> Result<(), StoreError> {
    let mut insert = db.prepare_cached("INSERT OR REPLACE INTO changes VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let mut number = seq << CHANGES;
    for group in owned {
        if let Some(settles) = &group.settles {
            let sql = "INSERT OR IGNORE INTO doubts VALUES (?1, ?2)";
            db.prepare_cached(sql)?.execute(params![step_key(&settles.step), seq])?;
        }
        let owner = serde_json::to_string(&group.owner).map_err(to_sql)?;
        for changed in &group.paths {
            insert.execute(params![number, seq, changed.path.as_bytes(), kind_word(changed.kind), owner])?;
            number += 1;
        }
    }
    Ok(())
}

/// A step's own after event has come: what others found while its tool was at work is its own for sure.
pub(crate) fn settle(db: &Connection, at: &StepRef) -> Result<(), StoreError> {
    let key = step_key(at);
    let mut query = db.prepare_cached("SELECT seq FROM doubts WHERE step = ?1")?;
    let checkpoints = query.query_map([&key], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
    if checkpoints.is_empty() {
        return Ok(());
    }
    // One that goes on in the background has only returned.
    let sql = "SELECT coalesce(ending, '') FROM steps WHERE key = ?1 AND NOT background";
    let ending: Option<String> = db.prepare_cached(sql)?.query_row([&key], |row| row.get(0)).optional()?;
    let Some(ending) = ending else { return Ok(()) };
    let has_failed = [Ending::Failed, Ending::Interrupted].iter().any(|how| how.as_str() == ending);
    // A tool that failed may not have run at all, so that the user may have edited the file that it names.
    let is_its = |settles: &Settles| !(has_failed && settles.evidence == Evidence::Named);
    for seq in checkpoints {
        let json: String = db.query_row("SELECT owned FROM checkpoints WHERE seq = ?1", [seq], |row| row.get(0))?;
        let mut owned: Vec<Owned> = serde_json::from_str(&json).map_err(from_sql)?;
        for group in &mut owned {
            if let Some(settles) = group.settles.take_if(|settles| settles.step == *at).filter(is_its) {
                group.owner = settles.into();
            }
        }
        let json = serde_json::to_string(&owned).map_err(to_sql)?;
        db.execute("UPDATE checkpoints SET owned = ?2 WHERE seq = ?1", params![seq, json])?;
        db.execute("DELETE FROM doubts WHERE step = ?1 AND seq = ?2", params![key, seq])?;
        apply_changes(db, seq, &owned)?;
    }
    Ok(())
}

/// Whether an end was reported, and not worked out or said by somebody else. Where an agent itself reports that a tool was
/// interrupted, the checkpoint beside it says that the session lives.
fn is_word_of_the_agent(how: Ending) -> bool {
    matches!(how, Ending::Done | Ending::Failed)
}

/// Notes that a session lives: what comes after its end begins it again.
pub(crate) fn touch(db: &Connection, session: &SessionId, seq: i64, at: Timestamp) -> Result<(), StoreError> {
    db.prepare_cached("UPDATE sessions SET last_seq = ?2, last_at = ?3, ended_at = NULL, heard = 1 WHERE id = ?1")?
        .execute(params![session.as_str(), seq, at.0])?;
    Ok(())
}

/// Notes where an operation that is done went with the conversation: that session is where the user is from now on, and
/// the one that was left has ended, unless it is heard of again.
pub(crate) fn apply_went(db: &Connection, seq: i64, operation: &OperationId, at: Timestamp) -> Result<(), StoreError> {
    let went: Option<String> = db
        .prepare_cached("SELECT went FROM operations WHERE id = ?1")?
        .query_row([operation.as_str()], |row| row.get(0))
        .optional()?
        .flatten();
    let Some(went) = went else { return Ok(()) };
    let went: ConversationSwitch = serde_json::from_str(&went).map_err(from_sql)?;
    if !went.goes {
        return Ok(());
    }
    db.prepare_cached("UPDATE sessions SET ended_at = ?2 WHERE id = ?1")?.execute(params![went.from.as_str(), at.0])?;
    if let Some(to) = &went.to {
        db.prepare_cached("UPDATE sessions SET last_seq = ?2 WHERE id = ?1")?.execute(params![to.as_str(), seq])?;
    }
    Ok(())
}

/// The same for a checkpoint. One at the end of a turn may be the one that the end of the session made, and a person's
/// own or an operation's says nothing of the agent.
pub(crate) fn touch_by_checkpoint(
    db: &Connection,
    session: &SessionId,
    seq: i64,
    checkpoint: &Checkpoint,
) -> Result<(), StoreError> {
    if let (Cause::AfterTool, Some(TurnContext { turn, step: Some(step), .. })) = (checkpoint.cause, &checkpoint.place)
    {
        settle(db, &StepRef { session: session.clone(), turn: *turn, step: *step })?;
    }
    match checkpoint.cause {
        Cause::SessionStart | Cause::Prompt | Cause::BeforeTool | Cause::AfterTool | Cause::Compaction => {
            touch(db, session, seq, checkpoint.created_at)
        }
        Cause::TurnEnd | Cause::Manual | Cause::BeforeOperation | Cause::Operation => Ok(()),
    }
}

fn milliseconds(ns: i64) -> Timestamp {
    Timestamp(ns.div_euclid(1_000_000))
}

fn turn_key(session: &SessionId, number: u32) -> String {
    format!("{session}/{number:08}")
}

fn step_key(at: &StepRef) -> String {
    format!("{}/{:08}/{:08}", at.session, at.turn, at.step)
}

fn kind_word(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Created => "created",
        ChangeKind::Modified => "modified",
        ChangeKind::Deleted => "deleted",
    }
}

const GAP: &str = "SELECT seq, session, turn, step, cause, reason, at, lost, gone FROM gaps";
const SESSION: &str = "SELECT id, agent, agent_id, name, transcript, started_at, ended_at, last_seq, last_at, origin, rank, heard, \
     kept, along FROM sessions";
const TURN: &str = "SELECT session, number, seq, prompt, prompt_id, at, mark, ending, message, ended_at FROM turns";
/// Asked at every event: an index of its own answers it.
const CALLED: &str = "WHERE session = ?1 AND prompt_id = ?2 ORDER BY key DESC LIMIT 1";
const STEP: &str = "SELECT session, turn, number, seq, call, tool, summary, command, paths, background, subagent, \
                    process, opened, ending, closed, says, outside, outside_after FROM steps";

impl Reader {
    /// Every session, the one with the newest record first.
    pub fn sessions(&self) -> Result<Vec<SessionRow>, StoreError> {
        self.rows(&format!("{SESSION} ORDER BY last_seq DESC"), [], session)
    }

    /// One session.
    pub fn session(&self, id: &SessionId) -> Result<Option<SessionRow>, StoreError> {
        Ok(self.rows(&format!("{SESSION} WHERE id = ?1"), [id.as_str()], session)?.pop())
    }

    /// The turns of a session, in order.
    pub fn turns(&self, of: &SessionId) -> Result<Vec<TurnRow>, StoreError> {
        let from_to = [turn_key(of, 0), turn_key(of, 99_999_999)];
        self.rows(&format!("{TURN} WHERE key BETWEEN ?1 AND ?2 ORDER BY key"), from_to, turn)
    }

    /// One turn.
    pub fn turn(&self, of: &SessionId, number: u32) -> Result<Option<TurnRow>, StoreError> {
        Ok(self.rows(&format!("{TURN} WHERE key = ?1"), [turn_key(of, number)], turn)?.pop())
    }

    /// The turn of a record's number.
    pub fn turn_numbered(&self, seq: u64) -> Result<Option<(SessionId, u32)>, StoreError> {
        let found = self.rows("SELECT session, number FROM turns WHERE seq = ?1", [seq as i64], |row| {
            Ok((parsed(row, 0)?, row.get(1)?))
        });
        Ok(found?.pop())
    }

    /// The step of a record's number.
    pub fn step_numbered(&self, seq: u64) -> Result<Option<StepRef>, StoreError> {
        let found = self.rows("SELECT session, turn, number FROM steps WHERE seq = ?1", [seq as i64], |row| {
            Ok(StepRef { session: parsed(row, 0)?, turn: row.get(1)?, step: row.get(2)? })
        });
        Ok(found?.pop())
    }

    /// The newest turn of a session.
    pub fn last_turn(&self, of: &SessionId) -> Result<Option<TurnRow>, StoreError> {
        let from_to = [turn_key(of, 0), turn_key(of, 99_999_999)];
        Ok(self.rows(&format!("{TURN} WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT 1"), from_to, turn)?.pop())
    }

    /// The last turn of a session before one.
    pub fn turn_before(&self, of: &SessionId, number: u32) -> Result<Option<TurnRow>, StoreError> {
        let from_to = [turn_key(of, 0), turn_key(of, number)];
        let clause = format!("{TURN} WHERE key >= ?1 AND key < ?2 ORDER BY key DESC LIMIT 1");
        Ok(self.rows(&clause, from_to, turn)?.pop())
    }

    /// The turn that the agent calls so.
    pub fn turn_called(&self, of: &SessionId, prompt_id: &str) -> Result<Option<TurnRow>, StoreError> {
        Ok(self.rows(&format!("{TURN} {CALLED}"), [of.as_str(), prompt_id], turn)?.pop())
    }

    /// The steps of a session, in order; of one turn where that is given.
    pub fn steps(&self, of: &SessionId, turn: Option<u32>) -> Result<Vec<StepRow>, StoreError> {
        let (from, to) = match turn {
            Some(turn) => (step_key_of(of, turn, 0), step_key_of(of, turn, 99_999_999)),
            None => (step_key_of(of, 0, 0), step_key_of(of, 99_999_999, 99_999_999)),
        };
        self.rows(&format!("{STEP} WHERE key BETWEEN ?1 AND ?2 ORDER BY key"), [from, to], step)
    }

    /// One step.
    pub fn step(&self, at: &StepRef) -> Result<Option<StepRow>, StoreError> {
        Ok(self.rows(&format!("{STEP} WHERE key = ?1"), [step_key(at)], step)?.pop())
    }

    /// The step that the agent calls so.
    pub fn step_called(&self, of: &SessionId, call: &str) -> Result<Option<StepRow>, StoreError> {
        let clause = format!("{STEP} WHERE session = ?1 AND call = ?2 ORDER BY key DESC LIMIT 1");
        Ok(self.rows(&clause, [of.as_str(), call], step)?.pop())
    }

    /// The number of a turn's last step; 0 where it has none.
    pub fn last_step_number(&self, of: &SessionId, turn: u32) -> Result<u32, StoreError> {
        let from_to = [step_key_of(of, turn, 0), step_key_of(of, turn, 99_999_999)];
        let clause = "SELECT number FROM steps WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT 1";
        Ok(self.rows(clause, from_to, |row| row.get(0))?.pop().unwrap_or(0))
    }

    /// Whether any step's window was open at some time between two records.
    pub fn has_window_between(&self, from: u64, to: u64) -> Result<bool, StoreError> {
        Ok(self.db().query_row(
            "SELECT EXISTS (SELECT 1 FROM steps WHERE ending IS NULL AND seq < ?2)
                 OR EXISTS (SELECT 1 FROM steps WHERE ended_seq > ?1 AND seq < ?2)",
            params![from as i64, to as i64],
            |row| row.get(0),
        )?)
    }

    /// The steps of all sessions that have not ended, oldest first.
    pub fn open_steps(&self) -> Result<Vec<StepRow>, StoreError> {
        self.rows(&format!("{STEP} WHERE ending IS NULL ORDER BY seq"), [], step)
    }

    /// The steps that ended after a record, oldest first.
    pub fn steps_ended_since(&self, seq: u64) -> Result<Vec<StepRow>, StoreError> {
        self.rows(&format!("{STEP} WHERE ended_seq > ?1 ORDER BY seq"), [seq as i64], step)
    }

    /// The steps that began here after a record, oldest first. Those of an archive have ended, and none here saw it.
    pub fn steps_since(&self, seq: u64) -> Result<Vec<StepRow>, StoreError> {
        let here = "ending IS NULL OR ended_seq IS NOT NULL";
        self.rows(&format!("{STEP} WHERE seq > ?1 AND ({here}) ORDER BY seq"), [seq as i64], step)
    }

    /// Who made the newest recorded change of each path of a line, looking back through the last changes. Who edited a file
    /// of another folder, or on another machine, says nothing of this one.
    ///
    /// # Errors
    /// Where the database refuses.
    pub fn last_owners(&self, line: u32) -> Result<HashMap<WorkspacePath, Owner>, StoreError> {
        /// An edit of so long ago says little of who edits now.
        const BACK: i64 = 5_000;
        let rows = self.rows(
            "SELECT seq, path, kind, owner FROM (
               SELECT * FROM changes
               WHERE EXISTS (SELECT 1 FROM checkpoints WHERE checkpoints.seq = changes.seq AND line = ?2)
               ORDER BY key DESC LIMIT ?1) ORDER BY key",
            [BACK, i64::from(line)],
            change,
        )?;
        Ok(rows.into_iter().map(|row| (row.path, row.owner)).collect())
    }

    /// How many steps of a session one process reported.
    ///
    /// # Errors
    /// Where the database refuses.
    pub fn steps_of_process(&self, session: &SessionId, process: &Process) -> Result<u64, StoreError> {
        let process = serde_json::to_string(process).map_err(to_sql)?;
        let sql = "SELECT count(*) FROM steps WHERE session = ?1 AND process = ?2";
        let count: i64 = self.db().prepare_cached(sql)?.query_row([session.as_str(), &process], |r| r.get(0))?;
        Ok(count as u64)
    }

    /// The first checkpoint of a session from a turn on.
    ///
    /// # Errors
    /// Where the database refuses.
    pub fn first_of_session_from(&self, session: &SessionId, turn: u32) -> Result<Option<CheckpointRow>, StoreError> {
        self.checkpoint_where(
            "WHERE session = ?1 AND turn >= ?2 AND cause NOT IN ('manual', 'before-operation', 'operation')
             ORDER BY seq LIMIT 1",
            params![session.as_str(), turn],
        )
    }

    /// The changes of one checkpoint.
    pub fn changes_of(&self, seq: u64) -> Result<Vec<ChangeRow>, StoreError> {
        let range = [(seq as i64) << CHANGES, ((seq as i64) + 1) << CHANGES];
        self.rows("SELECT seq, path, kind, owner FROM changes WHERE key >= ?1 AND key < ?2 ORDER BY key", range, change)
    }

    /// The changes of all checkpoints from one record on, in order.
    pub fn changes_since(&self, seq: u64) -> Result<Vec<ChangeRow>, StoreError> {
        self.rows(
            "SELECT seq, path, kind, owner FROM changes WHERE key >= ?1 ORDER BY key",
            [(seq as i64) << CHANGES],
            change,
        )
    }

    /// What happened first and what last to each path that a wanted session changed, session by session.
    pub fn changes_by_session(
        &self,
        is_wanted: impl Fn(&SessionId) -> bool,
    ) -> Result<HashMap<SessionId, ChangedPaths>, StoreError> {
        let mut all: HashMap<SessionId, ChangedPaths> = HashMap::new();
        let db = self.db();
        let mut query = db.prepare_cached("SELECT owner, kind, path FROM changes ORDER BY key")?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            let owner = row.get_ref(0)?.as_str().map_err(from_sql)?;
            let Some(session) = session_alone(owner)?.filter(&is_wanted) else { continue };
            let kind = kind_of(row.get_ref(1)?.as_str().map_err(from_sql)?)?;
            let path = row.get_ref(2)?.as_blob().map_err(from_sql)?;
            let paths = all.entry(session).or_default();
            match paths.get_mut(path) {
                Some((_, last)) => *last = kind,
                None => drop(paths.insert(path.to_owned(), (kind, kind))),
            }
        }
        Ok(all)
    }

    /// The changes of wanted paths, of all checkpoints, in order.
    pub fn changes_at(&self, is_wanted: impl Fn(&WorkspacePath) -> bool) -> Result<Vec<ChangeRow>, StoreError> {
        let each = |row: &Row<'_>| {
            let path = WorkspacePath::new(row.get::<_, Vec<u8>>(1)?).map_err(from_sql)?;
            if is_wanted(&path) { change(row).map(Some) } else { Ok(None) }
        };
        let found = self.rows("SELECT seq, path, kind, owner FROM changes ORDER BY key", [], each)?;
        Ok(found.into_iter().flatten().collect())
    }

    /// The checkpoints that list a change of one of some paths, or of something in it, each with that path, in order.
    pub fn changed_within(&self, paths: &[WorkspacePath]) -> Result<Vec<(u64, WorkspacePath)>, StoreError> {
        let wanted: HashMap<&[u8], &WorkspacePath> = paths.iter().map(|path| (path.as_bytes(), path)).collect();
        let mut found = Vec::new();
        let db = self.db();
        let mut query = db.prepare_cached("SELECT seq, path FROM changes ORDER BY key")?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            let changed = row.get_ref(1)?.as_blob().map_err(from_sql)?;
            let ends = changed.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
            for path in ends.chain([changed.len()]).filter_map(|end| wanted.get(&changed[..end])) {
                let one = (row.get::<_, i64>(0)? as u64, (*path).clone());
                if found.last() != Some(&one) {
                    found.push(one);
                }
            }
        }
        Ok(found)
    }

    /// The checkpoints that list a change of a file whose path ends like this, in order.
    pub fn changed_called(&self, name: &[u8]) -> Result<Vec<u64>, StoreError> {
        let sql = "SELECT DISTINCT seq FROM changes WHERE substr(path, -?2) = ?1 ORDER BY seq";
        self.rows(sql, params![name, name.len() as i64], |row| Ok(row.get::<_, i64>(0)? as u64))
    }

    /// The changes that are one of some sessions' own or may be, and the user's own, of all checkpoints, in order.
    pub fn changes_about<'a>(
        &self,
        sessions: impl Iterator<Item = &'a SessionId>,
    ) -> Result<Vec<ChangeRow>, StoreError> {
        let you = serde_json::to_string(&Owner::You).map_err(to_sql)?;
        let mut parameters = vec![you];
        parameters.extend(sessions.map(SessionId::to_string));
        let about = " OR instr(owner, ?)".repeat(parameters.len() - 1);
        self.rows(
            &format!("SELECT seq, path, kind, owner FROM changes WHERE owner = ?{about} ORDER BY key"),
            rusqlite::params_from_iter(parameters),
            change,
        )
    }

    /// The checkpoints of a session, in order.
    pub fn checkpoints_of(&self, session: &SessionId) -> Result<Vec<CheckpointRow>, StoreError> {
        self.checkpoints_where("WHERE session = ?1 ORDER BY seq", [session.as_str()])
    }

    /// The first checkpoint at a place with a cause.
    pub fn checkpoint_at(&self, place: &TurnContext, cause: Cause) -> Result<Option<CheckpointRow>, StoreError> {
        self.checkpoint_where(
            "WHERE session = ?1 AND turn = ?2 AND step IS ?3 AND cause = ?4 ORDER BY seq LIMIT 1",
            params![place.session.as_str(), place.turn, place.step, cause.as_str()],
        )
    }

    /// The last checkpoint of a turn that the agent's own events made. When the session goes on after a while that is
    /// captured too, and belongs to what comes next.
    pub fn last_of_turn(&self, session: &SessionId, turn: u32) -> Result<Option<CheckpointRow>, StoreError> {
        self.checkpoint_where(
            "WHERE session = ?1 AND turn = ?2
             AND cause NOT IN ('session-start', 'manual', 'before-operation', 'operation')
             ORDER BY seq DESC LIMIT 1",
            params![session.as_str(), turn],
        )
    }

    /// How many checkpoints a person made in a session.
    pub fn manual_count(&self, session: &SessionId) -> Result<u64, StoreError> {
        let count: i64 = self.db().query_row(
            "SELECT count(*) FROM checkpoints WHERE session = ?1 AND cause = 'manual'",
            [session.as_str()],
            |r| r.get(0),
        )?;
        Ok(count as u64)
    }

    /// How many checkpoints each session has.
    pub fn checkpoint_counts(&self) -> Result<HashMap<SessionId, u64>, StoreError> {
        self.by_session("SELECT session, count(*) FROM checkpoints WHERE session IS NOT NULL GROUP BY session")
    }

    /// Whether anything that was said in a session was reported.
    pub fn has_messages(&self, session: &SessionId) -> Result<bool, StoreError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM messages WHERE session = ?1)";
        Ok(self.db().prepare_cached(sql)?.query_row([session.as_str()], |row| row.get(0))?)
    }

    /// What was said in a session, as it was reported, in order.
    pub fn messages(&self, session: &SessionId) -> Result<Vec<Message>, StoreError> {
        let sql = "SELECT session, turn, role, text, at FROM messages WHERE session = ?1 ORDER BY seq";
        self.rows(sql, [session.as_str()], |row| {
            let (turn, role, text) = (row.get(1)?, row.get(2)?, row.get(3)?);
            Ok(Message { session: parsed(row, 0)?, turn, role, text, at: Timestamp(row.get(4)?) })
        })
    }

    /// How many gaps each session has, where it has any.
    pub fn gap_counts(&self) -> Result<HashMap<SessionId, u64>, StoreError> {
        self.by_session("SELECT session, count(*) FROM gaps GROUP BY session")
    }

    /// The number of each session's last turn.
    pub fn last_turns(&self) -> Result<HashMap<SessionId, u64>, StoreError> {
        self.by_session("SELECT session, max(number) FROM turns GROUP BY session")
    }

    fn by_session(&self, sql: &str) -> Result<HashMap<SessionId, u64>, StoreError> {
        let found = self.rows(sql, [], |row| Ok((parsed(row, 0)?, row.get::<_, i64>(1)? as u64)))?;
        Ok(found.into_iter().collect())
    }

    /// The first prompt of each session that piton heard.
    pub fn first_prompts(&self) -> Result<HashMap<SessionId, String>, StoreError> {
        let found = self.rows(
            "SELECT session, prompt, min(key) FROM turns WHERE prompt IS NOT NULL GROUP BY session",
            [],
            |row| Ok((parsed(row, 0)?, row.get(1)?)),
        )?;
        Ok(found.into_iter().collect())
    }

    /// Every turn: the number of its record, which it is and when it last said something.
    pub fn turn_places(&self) -> Result<Vec<(u64, TurnContext, Timestamp)>, StoreError> {
        self.rows("SELECT seq, session, number, coalesce(ended_at, at) FROM turns", [], |row| {
            let place = TurnContext { session: parsed(row, 1)?, turn: row.get(2)?, step: None };
            Ok((row.get::<_, i64>(0)? as u64, place, Timestamp(row.get(3)?)))
        })
    }

    /// The gaps, oldest first; of one session where that is given.
    pub fn gaps(&self, of: Option<&SessionId>) -> Result<Vec<(u64, Gap)>, StoreError> {
        self.rows(&format!("{GAP} WHERE ?1 IS NULL OR session = ?1 ORDER BY seq"), [of.map(SessionId::as_str)], gap)
    }

    /// Whether events were lost since a record, so that a tool may have run that no step tells of.
    pub fn has_lost_events_since(&self, seq: u64) -> Result<bool, StoreError> {
        let found = self.rows("SELECT 1 FROM gaps WHERE seq > ?1 AND lost LIMIT 1", [seq as i64], |_| Ok(()))?;
        Ok(!found.is_empty())
    }

    /// Whether another folder than that of a line was captured here after a record.
    ///
    /// # Errors
    /// Where the database refuses.
    pub fn has_other_line_since(&self, seq: u64, line: u32) -> Result<bool, StoreError> {
        let clause = "SELECT 1 FROM checkpoints WHERE seq > ?1 AND line < 2147483648 AND line <> ?2 LIMIT 1";
        let found = self.rows(clause, [seq as i64, i64::from(line)], |_| Ok(()))?;
        Ok(!found.is_empty())
    }

    /// The first gap after a record that found the workspace's folder gone, with its number.
    ///
    /// # Errors
    /// Where the database refuses.
    pub fn gone_since(&self, seq: u64) -> Result<Option<(u64, Gap)>, StoreError> {
        // Gaps of an archive were never gaps here.
        let here = "session NOT IN (SELECT id FROM sessions WHERE last_seq = 0)";
        let clause = format!("{GAP} WHERE seq > ?1 AND gone AND {here} ORDER BY seq LIMIT 1");
        Ok(self.rows(&clause, [seq as i64], gap)?.pop())
    }

    /// The number of the newest checkpoint that no operation made; 0 where there is none.
    pub fn last_capture(&self) -> Result<u64, StoreError> {
        let sql = "SELECT seq FROM checkpoints WHERE cause NOT IN ('before-operation', 'operation')
                   AND line < 2147483648 ORDER BY seq DESC LIMIT 1";
        Ok(self.rows(sql, [], |row| Ok(row.get::<_, i64>(0)? as u64))?.pop().unwrap_or(0))
    }

    /// The newest gap.
    pub fn last_gap(&self) -> Result<Option<(u64, Gap)>, StoreError> {
        // Gaps of an archive were never gaps here.
        let here = "session NOT IN (SELECT id FROM sessions WHERE last_seq = 0)";
        Ok(self.rows(&format!("{GAP} WHERE {here} ORDER BY seq DESC LIMIT 1"), [], gap)?.pop())
    }

    fn rows<T>(
        &self,
        sql: &str,
        params: impl Params,
        each: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let db = self.db();
        let mut query = db.prepare_cached(sql)?;
        let rows = query.query_map(params, each)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn step_key_of(session: &SessionId, turn: u32, step: u32) -> String {
    step_key(&StepRef { session: session.clone(), turn, step })
}

fn session(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    let (origin, rank): (Option<String>, String) = (row.get(9)?, row.get(10)?);
    let kept: Option<String> = row.get(12)?;
    Ok(SessionRow {
        session: Session {
            id: parsed(row, 0)?,
            agent: row.get(1)?,
            agent_id: row.get(2)?,
            name: row.get(3)?,
            transcript: row.get(4)?,
            started_at: Timestamp(row.get(5)?),
            origin: origin.map(|o| serde_json::from_str(&o)).transpose().map_err(from_sql)?,
            rank: Rank::from_word(&rank)
                .ok_or_else(|| rusqlite::Error::InvalidColumnType(10, rank, rusqlite::types::Type::Text))?,
            kept: kept.map(|k| serde_json::from_str(&k)).transpose().map_err(from_sql)?,
            along: row.get(13)?,
        },
        ended_at: row.get::<_, Option<i64>>(6)?.map(Timestamp),
        last_seq: row.get::<_, i64>(7)? as u64,
        last_at: Timestamp(row.get(8)?),
        heard: row.get(11)?,
    })
}

fn turn(row: &Row<'_>) -> rusqlite::Result<TurnRow> {
    let mark: Option<String> = row.get(6)?;
    let mark: Option<TranscriptMark> = mark.map(|m| serde_json::from_str(&m)).transpose().map_err(from_sql)?;
    Ok(TurnRow {
        seq: row.get::<_, i64>(2)? as u64,
        turn: Turn {
            session: parsed(row, 0)?,
            number: row.get(1)?,
            prompt: row.get(3)?,
            prompt_id: row.get(4)?,
            at: Timestamp(row.get(5)?),
            mark,
        },
        ending: ending(row, 7)?,
        message: row.get(8)?,
        ended_at: row.get::<_, Option<i64>>(9)?.map(Timestamp),
    })
}

fn step(row: &Row<'_>) -> rusqlite::Result<StepRow> {
    let process: Option<String> = row.get(11)?;
    let process: Option<Process> = process.map(|p| serde_json::from_str(&p)).transpose().map_err(from_sql)?;
    Ok(StepRow {
        seq: row.get::<_, i64>(3)? as u64,
        step: Step {
            at: StepRef { session: parsed(row, 0)?, turn: row.get(1)?, step: row.get(2)? },
            call: row.get(4)?,
            tool: row.get(5)?,
            summary: row.get(6)?,
            command: row.get(7)?,
            paths: serde_json::from_str(&row.get::<_, String>(8)?).map_err(from_sql)?,
            says: row.get(15)?,
            outside: outside(row, 16)?,
            background: row.get(9)?,
            subagent: row.get(10)?,
            process,
            opened: row.get(12)?,
        },
        ending: ending(row, 13)?,
        closed: row.get(14)?,
        outside_after: outside(row, 17)?,
    })
}

/// Few steps name files elsewhere, so most have nothing here.
fn outside_json(files: &[Outside]) -> Result<Option<String>, StoreError> {
    if files.is_empty() {
        return Ok(None);
    }
    Ok(Some(serde_json::to_string(files).map_err(to_sql)?))
}

fn outside(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<Outside>> {
    let json: Option<String> = row.get(column)?;
    json.map_or(Ok(Vec::new()), |json| serde_json::from_str(&json).map_err(from_sql))
}

fn gap(row: &Row<'_>) -> rusqlite::Result<(u64, Gap)> {
    let gap = Gap {
        place: TurnContext { session: parsed(row, 1)?, turn: row.get(2)?, step: row.get(3)? },
        cause: serde_json::from_value(row.get::<_, String>(4)?.into()).map_err(from_sql)?,
        reason: row.get(5)?,
        at: Timestamp(row.get(6)?),
        lost: row.get(7)?,
        gone: row.get(8)?,
    };
    Ok((row.get::<_, i64>(0)? as u64, gap))
}

fn change(row: &Row<'_>) -> rusqlite::Result<ChangeRow> {
    let path: Vec<u8> = row.get(1)?;
    let kind: String = row.get(2)?;
    Ok(ChangeRow {
        seq: row.get::<_, i64>(0)? as u64,
        path: WorkspacePath::new(path).map_err(from_sql)?,
        kind: serde_json::from_value(kind.into()).map_err(from_sql)?,
        owner: serde_json::from_str(&row.get::<_, String>(3)?).map_err(from_sql)?,
    })
}

/// The session of [`Owner::turn`]. Where tools of many sessions ran at once an owner is long, so it is read no further
/// than to the second turn.
fn session_alone(owner: &str) -> Result<Option<SessionId>, StoreError> {
    #[derive(Deserialize)]
    struct Lean {
        session: Option<SessionId>,
        candidates: Option<OneTurn>,
    }
    struct OneTurn(Option<SessionId>);
    impl<'de> Deserialize<'de> for OneTurn {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            from.deserialize_seq(Candidates)
        }
    }
    struct Candidates;
    impl<'de> Visitor<'de> for Candidates {
        type Value = OneTurn;

        fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            to.write_str("candidates of one turn")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<OneTurn, A::Error> {
            let mut first: Option<StepRef> = None;
            while let Some(candidate) = all.next_element()? {
                match (candidate, &first) {
                    (Candidate::Step(step), None) => first = Some(step),
                    (Candidate::Step(step), Some(one)) if (&step.session, step.turn) == (&one.session, one.turn) => {}
                    _ => return Err(serde::de::Error::custom("of several")),
                }
            }
            Ok(OneTurn(first.map(|step| step.session)))
        }
    }
    match serde_json::from_str::<Lean>(owner) {
        Ok(lean) => Ok(lean.session.or(lean.candidates.and_then(|one| one.0))),
        Err(error) if error.is_data() => Ok(None),
        Err(error) => Err(from_sql(error).into()),
    }
}

fn kind_of(word: &str) -> Result<ChangeKind, StoreError> {
    let all = [ChangeKind::Created, ChangeKind::Modified, ChangeKind::Deleted];
    let unknown = || rusqlite::Error::InvalidColumnType(1, word.to_owned(), rusqlite::types::Type::Text);
    Ok(all.into_iter().find(|kind| kind_word(*kind) == word).ok_or_else(unknown)?)
}

fn ending(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Ending>> {
    let word: Option<String> = row.get(column)?;
    match word {
        Some(word) => Ending::from_word(&word)
            .map(Some)
            .ok_or_else(|| rusqlite::Error::InvalidColumnType(column, word, rusqlite::types::Type::Text)),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With 10,000 long prompts in the store, looking through them took 20 ms at each event.
    #[test]
    fn a_turn_is_found_by_what_its_agent_calls_it_without_reading_the_others() {
        let db = crate::database::in_memory().unwrap();
        let plan = |sql: &str| -> String {
            let mut query = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let rows = query.query_map(["s", "p"], |row| row.get::<_, String>(3)).unwrap();
            rows.map(Result::unwrap).collect::<Vec<_>>().join("; ")
        };
        let found = plan(&format!("{TURN} {CALLED}"));
        assert_eq!(found, "SEARCH turns USING INDEX turns_called (session=? AND prompt_id=?)");
    }
}
