//! Records by their numbers: what was recorded after a given one.

use piton_host::FolderWatch;
use piton_model::record::{HeldPath, SettingsAt};
use piton_model::{CheckpointId, Record, SessionId};
use rusqlite::OptionalExtension;

use crate::Reader;
use crate::database::from_sql;
use crate::error::StoreError;

impl Reader {
    /// The generation of the view: another one may number the same records otherwise, or lack some of them.
    pub fn view_generation(&self) -> u64 {
        self.generation()
    }

    /// Whether this still reads from the store's view, and not from one that was replaced.
    ///
    /// # Errors
    /// Where the store's folder cannot be listed, as when it was removed.
    pub fn has_current_view(&self) -> Result<bool, StoreError> {
        self.is_current()
    }

    /// Reads from the store's view, also where another process has made that anew since this was opened.
    ///
    /// # Errors
    /// Where there is none, or it cannot be opened.
    pub fn follow_view(&self) -> Result<(), StoreError> {
        if self.is_current()? { Ok(()) } else { self.look_anew() }
    }

    /// The number of the newest record; 0 where there is none.
    ///
    /// # Errors
    /// Where the database refuses.
    pub fn last_number(&self) -> Result<u64, StoreError> {
        let sql = "SELECT coalesce(max(seq), 0) FROM records";
        Ok(self.db().prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0))? as u64)
    }

    /// The records after a given number, in order and at most so many, each with its number; none where its bytes are damaged.
    ///
    /// # Errors
    /// Where the database refuses, or a pack cannot be read.
    pub fn records_after(&self, seq: u64, most: usize) -> Result<Vec<(u64, Option<Record>)>, StoreError> {
        let numbers = {
            let db = self.db();
            let mut query = db.prepare_cached("SELECT seq FROM records WHERE seq > ?1 ORDER BY seq LIMIT ?2")?;
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let rows = query.query_map([i64::try_from(seq).unwrap_or(i64::MAX), most], |row| row.get::<_, i64>(0))?;
            rows.collect::<Result<Vec<_>, _>>()?
        };
        let record = |seq: i64| match self.record(seq as u64) {
            Ok(record) => Ok((seq as u64, Some(record))),
            Err(StoreError::DamagedRecord { .. }) => Ok((seq as u64, None)),
            Err(error) => Err(error),
        };
        numbers.into_iter().map(record).collect()
    }

    /// The number of the record that a session began with.
    ///
    /// # Errors
    /// Where the database refuses.
    pub fn first_of_session(&self, id: &SessionId) -> Result<Option<u64>, StoreError> {
        let db = self.db();
        let mut query = db.prepare_cached("SELECT seq FROM sessions WHERE id = ?1")?;
        Ok(query.query_row([id.as_str()], |row| row.get::<_, i64>(0)).optional()?.map(|seq| seq as u64))
    }

    /// What a checkpoint held against the rules, and the settings at it.
    ///
    /// # Errors
    /// Where the database refuses.
    pub fn held_at(&self, id: &CheckpointId) -> Result<Option<(Vec<HeldPath>, SettingsAt)>, StoreError> {
        let db = self.db();
        let mut query = db.prepare_cached("SELECT held, settings FROM checkpoints WHERE id = ?1")?;
        let read = |row: &rusqlite::Row<'_>| {
            let held = serde_json::from_str(&row.get::<_, String>(0)?).map_err(from_sql)?;
            Ok((held, serde_json::from_str(&row.get::<_, String>(1)?).map_err(from_sql)?))
        };
        Ok(query.query_row([id.as_str()], read).optional()?)
    }

    /// Tells from now on when something is written to the store: whoever commits writes the view's log, and lets go of the lock
    /// after that.
    pub fn watch(&self) -> FolderWatch {
        FolderWatch::of(self.folder())
    }
}
