//! The rows of gaps, and the questions to them.

use std::collections::HashMap;

use piton_model::session::Gap;
use piton_model::{Cause, SessionId, Timestamp, TurnContext};
use rusqlite::Row;

use crate::Reader;
use crate::error::StoreError;
use crate::query::{known, parsed};

const GAP: &str = "SELECT seq, session, turn, step, cause, reason, at, lost, gone FROM gaps";

impl Reader {
    /// The gaps, oldest first; of one session where that is given.
    pub fn gaps(&self, of: Option<&SessionId>) -> Result<Vec<(u64, Gap)>, StoreError> {
        self.rows(&format!("{GAP} WHERE ?1 IS NULL OR session = ?1 ORDER BY seq"), [of.map(SessionId::as_str)], gap)
    }

    /// How many gaps each session has, where it has any.
    pub fn gap_counts(&self) -> Result<HashMap<SessionId, u64>, StoreError> {
        self.by_session("SELECT session, count(*) FROM gaps GROUP BY session")
    }

    /// Whether events were lost since a record, so that a tool may have run that no step tells of.
    pub fn has_lost_events_since(&self, seq: u64) -> Result<bool, StoreError> {
        let found = self.rows("SELECT 1 FROM gaps WHERE seq > ?1 AND lost LIMIT 1", [seq as i64], |_| Ok(()))?;
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

    /// The newest gap.
    pub fn last_gap(&self) -> Result<Option<(u64, Gap)>, StoreError> {
        // Gaps of an archive were never gaps here.
        let here = "session NOT IN (SELECT id FROM sessions WHERE last_seq = 0)";
        Ok(self.rows(&format!("{GAP} WHERE {here} ORDER BY seq DESC LIMIT 1"), [], gap)?.pop())
    }
}

fn gap(row: &Row<'_>) -> rusqlite::Result<(u64, Gap)> {
    let gap = Gap {
        place: TurnContext { session: parsed(row, 1)?, turn: row.get(2)?, step: row.get(3)? },
        cause: known(row, 4, Cause::from_word)?,
        reason: row.get(5)?,
        at: Timestamp(row.get(6)?),
        lost: row.get(7)?,
        gone: row.get(8)?,
    };
    Ok((row.get::<_, i64>(0)? as u64, gap))
}
