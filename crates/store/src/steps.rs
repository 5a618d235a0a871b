//! The rows of steps, and the questions to them.

use piton_model::session::{Attended, Outside, Process, Step};
use piton_model::{Ending, SessionId, StepRef};
use rusqlite::{Row, params};

use crate::Reader;
use crate::database::{from_sql, to_sql};
use crate::error::StoreError;
use crate::query::{known, parsed};
use crate::sessions::ending;

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
    /// When it was cut off, where that is known.
    pub cut: Option<i64>,
    /// What became of the files elsewhere that it names.
    pub outside_after: Vec<Outside>,
}

const STEP: &str = "SELECT session, turn, number, seq, call, tool, summary, command, paths, background, subagent, \
                    process, opened, ending, closed, says, outside, outside_after, process_started, process_own, cwd, \
                    hooked, attended, cut FROM steps";

impl Reader {
    /// The step of a record's number.
    pub fn step_numbered(&self, seq: u64) -> Result<Option<StepRef>, StoreError> {
        let found = self.rows("SELECT session, turn, number FROM steps WHERE seq = ?1", [seq as i64], |row| {
            Ok(StepRef { session: parsed(row, 0)?, turn: row.get(1)?, step: row.get(2)? })
        });
        Ok(found?.pop())
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

    /// The steps that had ended by a record and whose batch of tools had not, as far as anybody reported: hooks of the agent
    /// may change files after them.
    pub fn steps_followed(&self, seq: u64) -> Result<Vec<StepRow>, StoreError> {
        /// What is further back has long been followed by other events.
        const BACK: i64 = 200;
        let clause = format!(
            "{STEP} WHERE hooked AND ended_seq > ?2 AND ended_seq <= ?1 AND ended_seq > COALESCE((
                 SELECT max(seq) FROM checkpoints WHERE checkpoints.session = steps.session AND checkpoints.seq > ?2
                 AND checkpoints.seq <= ?1 AND cause IN ('after-tools', 'prompt', 'turn-end', 'session-start')), 0)
             ORDER BY seq"
        );
        let newest: i64 = self.db().query_row("SELECT COALESCE(max(seq), 0) FROM records", [], |row| row.get(0))?;
        self.rows(&clause, [(seq as i64).min(newest), (seq as i64).min(newest) - BACK], step)
    }

    /// The steps that began here after a record, oldest first. Those of an archive have ended, and none here saw it.
    pub fn steps_since(&self, seq: u64) -> Result<Vec<StepRow>, StoreError> {
        let here = "ending IS NULL OR ended_seq IS NOT NULL";
        self.rows(&format!("{STEP} WHERE seq > ?1 AND ({here}) ORDER BY seq"), [seq as i64], step)
    }

    /// How many steps of a session one process reported.
    ///
    /// # Errors
    /// Where the database refuses.
    pub fn steps_of_process(&self, session: &SessionId, process: &Process) -> Result<u64, StoreError> {
        let sql = "SELECT count(*) FROM steps
                   WHERE session = ?1 AND process = ?2 AND process_started = ?3 AND process_own = ?4";
        let which = params![session.as_str(), process.pid, process.started as i64, process.own];
        let count: i64 = self.db().prepare_cached(sql)?.query_row(which, |r| r.get(0))?;
        Ok(count as u64)
    }
}

pub(crate) fn step_key(at: &StepRef) -> String {
    format!("{}/{:08}/{:08}", at.session, at.turn, at.step)
}

pub(crate) fn step_key_of(session: &SessionId, turn: u32, step: u32) -> String {
    step_key(&StepRef { session: session.clone(), turn, step })
}

fn step(row: &Row<'_>) -> rusqlite::Result<StepRow> {
    let process = match row.get::<_, Option<u32>>(11)? {
        Some(pid) => Some(Process { pid, started: row.get::<_, i64>(18)? as u64, own: row.get(19)? }),
        None => None,
    };
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
            cwd: row.get(20)?,
            hooked: row.get(21)?,
            attended: known(row, 22, Attended::from_word)?,
        },
        ending: ending(row, 13)?,
        closed: row.get(14)?,
        cut: row.get(23)?,
        outside_after: outside(row, 17)?,
    })
}

/// Few steps name files elsewhere, so most have nothing here.
pub(crate) fn outside_json(files: &[Outside]) -> Result<Option<String>, StoreError> {
    if files.is_empty() {
        return Ok(None);
    }
    Ok(Some(serde_json::to_string(files).map_err(to_sql)?))
}

fn outside(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<Outside>> {
    let json: Option<String> = row.get(column)?;
    json.map_or(Ok(Vec::new()), |json| serde_json::from_str(&json).map_err(from_sql))
}
