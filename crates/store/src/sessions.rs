//! The rows of sessions and turns, and the questions to them.

use std::collections::HashMap;

use piton_model::conversation::{ConversationSwitch, Rank};
use piton_model::session::{Gap, Message, StepEnd, TranscriptMark, TurnEnd};
use piton_model::{
    Cause, Checkpoint, Ending, OperationId, Record, Session, SessionId, StepRef, Timestamp, Turn, TurnContext,
};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::Reader;
use crate::changes::settle;
use crate::database::{from_sql, to_sql};
use crate::error::StoreError;
use crate::query::{known, parsed};
use crate::steps::{outside_json, step_key, step_key_of};

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
            db.prepare_cached(
                "INSERT INTO steps VALUES
                 (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, NULL, NULL, NULL, ?17, ?18, NULL,
                  ?19, ?20, ?21, NULL)
                 ON CONFLICT(key) DO UPDATE SET background = max(background, ?11), attended = ?21",
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
                s.process.map(|process| process.pid),
                s.process.map(|process| process.started as i64),
                s.process.map(|process| process.own),
                s.opened,
                s.says,
                outside_json(&s.outside)?,
                s.cwd,
                s.hooked,
                s.attended.as_str()
            ])?;
            touch(db, &s.at.session, seq, milliseconds(s.opened))?;
        }
        Record::StepEnded(StepEnd { at, how, closed, cut, outside }) => {
            let sql = "UPDATE steps SET ending = ?2, closed = ?3, ended_seq = ?4, outside_after = ?5, cut = ?6 WHERE key = ?1";
            db.prepare_cached(sql)?.execute(params![
                step_key(at),
                how.as_str(),
                closed,
                seq,
                outside_json(outside)?,
                cut
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
            // That one is closed does not make it the one that the user is in.
            db.prepare_cached("UPDATE sessions SET ended_at = ?2, last_at = ?2, heard = 1 WHERE id = ?1")?
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
        Cause::SessionStart
        | Cause::Prompt
        | Cause::BeforeTool
        | Cause::AfterTool
        | Cause::AfterTools
        | Cause::Compaction => touch(db, session, seq, checkpoint.created_at),
        Cause::TurnEnd | Cause::Manual | Cause::BeforeOperation | Cause::Operation => Ok(()),
    }
}

fn milliseconds(ns: i64) -> Timestamp {
    Timestamp(ns.div_euclid(1_000_000))
}

fn turn_key(session: &SessionId, number: u32) -> String {
    format!("{session}/{number:08}")
}

const SESSION: &str = "SELECT id, agent, agent_id, name, transcript, started_at, ended_at, last_seq, last_at, origin, rank, heard, \
     kept, along FROM sessions";
const TURN: &str = "SELECT session, number, seq, prompt, prompt_id, at, mark, ending, message, ended_at FROM turns";
/// Asked at every event: an index of its own answers it.
const CALLED: &str = "WHERE session = ?1 AND prompt_id = ?2 ORDER BY key DESC LIMIT 1";

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

    /// The number of each session's last turn.
    pub fn last_turns(&self) -> Result<HashMap<SessionId, u64>, StoreError> {
        self.by_session("SELECT session, max(number) FROM turns GROUP BY session")
    }

    pub(crate) fn by_session(&self, sql: &str) -> Result<HashMap<SessionId, u64>, StoreError> {
        let found = self.rows(sql, [], |row| Ok((parsed(row, 0)?, row.get::<_, i64>(1)? as u64)))?;
        Ok(found.into_iter().collect())
    }

    /// Whether the last thing known of a session is that an operation went to it: the user is there, and its agent has not
    /// reported since.
    ///
    /// # Errors
    /// Where the database refuses.
    pub fn was_gone_to(&self, row: &SessionRow) -> Result<bool, StoreError> {
        let sql = "SELECT kind = 'ended' FROM records WHERE seq = ?1";
        let found = self.db().prepare_cached(sql)?.query_row([row.last_seq as i64], |row| row.get(0)).optional()?;
        Ok(row.last_seq > 0 && found.unwrap_or(false))
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
}

fn session(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    let origin: Option<String> = row.get(9)?;
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
            rank: known(row, 10, Rank::from_word)?,
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

pub(crate) fn ending(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Ending>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        _ => known(row, column, Ending::from_word).map(Some),
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
