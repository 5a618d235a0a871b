//! Questions to the view about the workspace and its checkpoints, and what all questions share.

use std::collections::HashMap;

use piton_host::Lock;
use piton_model::diff::Counts;
use piton_model::plan::RootState;
use piton_model::record::Numbered;
use piton_model::{
    Cause, Checkpoint, CheckpointId, ObjectId, OperationId, Record, RootIdentity, SessionId, Timestamp, TurnContext,
    Workspace,
};
use rusqlite::{OptionalExtension, Params, Row, params};

use crate::archive::IMPORTED_LINES;
use crate::database::from_sql;
use crate::error::StoreError;
use crate::pack;
use crate::{Reader, Store};

/// A checkpoint with what people said of it.
#[derive(Clone, Debug)]
pub struct CheckpointRow {
    /// Its place in the order.
    pub seq: u64,
    /// What was captured.
    pub checkpoint: Checkpoint,
    /// What it is called.
    pub names: Vec<String>,
    /// What is noted on it.
    pub annotation: Option<String>,
}

impl CheckpointRow {
    /// Its place among the changes that this folder's checkpoints found: one that came from elsewhere lies before all of them.
    pub fn moment(&self) -> u64 {
        if self.checkpoint.line < IMPORTED_LINES { self.seq } else { 0 }
    }
}

/// What a checkpoint captured: its tree, and git's state.
#[derive(Clone, Copy, Debug)]
pub struct StoredTree {
    pub line: u32,
    pub tree: ObjectId,
    pub git: Option<ObjectId>,
}

/// A checkpoint as a link of the chain that leads back from now: enough to go from one to the one before it.
#[derive(Clone, Copy, Debug)]
pub struct ChainLink {
    /// Its place in the order.
    pub seq: u64,
    /// That of the one it follows; none where it is the first, and where that one is gone.
    pub parent: Option<u64>,
    /// Whether it follows none.
    pub is_first: bool,
    /// The line that it is on.
    pub line: u32,
    /// What was captured.
    pub tree: ObjectId,
    /// Whether it misses anything that its parent has.
    pub has_deleted: bool,
    /// Whether it has anything otherwise than its parent.
    pub has_modified: bool,
    /// Whether it is of an operation: its result, or made at its beginning.
    pub is_of_operation: bool,
}

const CHECKPOINT: &str = "SELECT seq, id, parent, line, created_at, cause, tree, mode, created, modified, deleted, \
                          skipped, unsettled, operation, session, turn, step, description, owned, git, \
                          (SELECT json_group_array(name) FROM names WHERE checkpoint = c.id), \
                          (SELECT text FROM annotations WHERE checkpoint = c.id), held, settings, unagreed \
                          FROM checkpoints c";

impl Store {
    /// The newest record of the workspace, for whoever holds the lock: where the view does not tell it, that is made anew.
    pub fn workspace_for_sure(&self, lock: &Lock) -> Result<Option<Workspace>, StoreError> {
        match self.workspace() {
            Err(error) if error.is_damaged_database() => {
                self.make_view_anew(lock)?;
                self.workspace()
            }
            workspace => workspace,
        }
    }
}

impl Reader {
    /// The workspace as it was last recorded.
    ///
    /// It is read from its pack, whose checksum holds: what is written of the workspace next is made from it, and a bit that
    /// flipped in a row must not get into the packs.
    pub fn workspace(&self) -> Result<Option<Workspace>, StoreError> {
        let seq: Option<i64> = self
            .db()
            .prepare_cached("SELECT seq FROM workspaces ORDER BY seq DESC LIMIT 1")?
            .query_row([], |r| r.get(0))
            .optional()?;
        let Some(seq) = seq else { return Ok(None) };
        match self.record(seq as u64) {
            Ok(Record::Workspace(workspace)) => Ok(Some(workspace)),
            Ok(_) | Err(StoreError::DamagedRecord { .. }) => {
                Err(StoreError::Diverged { what: format!("record {seq} is not a workspace") })
            }
            Err(error) => Err(error),
        }
    }

    /// The lines of this store with the folder of each as it was recorded, newest first.
    ///
    /// # Errors
    /// Where the database refuses. A record that is damaged is left out.
    pub fn lines(&self) -> Result<Vec<(u32, RootIdentity)>, StoreError> {
        let rows = {
            let db = self.db();
            let mut query = db.prepare_cached("SELECT seq FROM workspaces ORDER BY seq DESC")?;
            query.query_map([], |row| row.get::<_, i64>(0))?.collect::<Result<Vec<_>, _>>()?
        };
        let mut lines: Vec<(u32, RootIdentity)> = Vec::new();
        for seq in rows {
            if let Ok(Record::Workspace(workspace)) = self.record(seq as u64)
                && !lines.contains(&(workspace.line, workspace.root))
            {
                lines.push((workspace.line, workspace.root));
            }
        }
        Ok(lines)
    }

    /// Makes sure that no later workspace record is hidden by a damaged row, before one is written that follows from it.
    ///
    /// # Errors
    /// [`StoreError::is_damaged_database`] where there is one.
    pub fn check_workspace_rows(&self) -> Result<(), StoreError> {
        let newest = |sql| self.db().query_row(sql, [], |r| r.get::<_, Option<i64>>(0));
        let (shown, recorded) = (
            newest("SELECT max(seq) FROM workspaces")?,
            newest("SELECT max(seq) FROM records WHERE kind = 'workspace'")?,
        );
        match shown == recorded {
            true => Ok(()),
            false => Err(StoreError::Diverged { what: "it lacks a record of the workspace".to_owned() }),
        }
    }

    /// A record of the timeline, from its pack.
    pub(crate) fn record(&self, seq: u64) -> Result<Record, StoreError> {
        let damaged = || StoreError::DamagedRecord { seq };
        let place = self
            .db()
            .prepare_cached("SELECT pack, offset, length FROM records WHERE seq = ?1")?
            .query_row([seq as i64], |r| {
                Ok(pack::Place { pack: r.get(0)?, offset: r.get::<_, i64>(1)? as u64, length: r.get(2)? })
            })?;
        let file = self.pack_file(place.pack)?;
        let sound = pack::read(&file, &place)
            .map_err(StoreError::io("cannot read", &self.pack_path(place.pack)))?
            .filter(|sound| sound.delta.is_none())
            .ok_or_else(damaged)?;
        // Not compared with its number: one that came twice has another in the view.
        serde_json::from_slice::<Numbered>(&sound.raw).map(|numbered| numbered.record).map_err(|_| damaged())
    }

    /// The records of the timeline up to a number, oldest first. One that is damaged is left out.
    ///
    /// # Errors
    /// Where the database refuses, or a pack cannot be read.
    pub fn records_until(&self, until: u64) -> Result<Vec<Record>, StoreError> {
        let seqs: Vec<i64> = {
            let db = self.db();
            let mut query = db.prepare_cached("SELECT seq FROM records WHERE seq <= ?1 ORDER BY seq")?;
            query.query_map([until as i64], |row| row.get(0))?.collect::<Result<_, _>>()?
        };
        let records = seqs.into_iter().map(|seq| self.record(seq as u64));
        records.filter(|record| !matches!(record, Err(StoreError::DamagedRecord { .. }))).collect()
    }

    /// Makes sure that a checkpoint's row says what its record says: whoever is about to put its files in place goes by the
    /// packs. Where the record itself is damaged, the row is all that is left. Owners are not compared: a later record may
    /// settle whose a change is.
    ///
    /// # Errors
    /// [`StoreError::Diverged`] where they differ.
    pub fn check_checkpoint(&self, row: &CheckpointRow) -> Result<(), StoreError> {
        match self.record(row.seq) {
            Ok(Record::Checkpoint(recorded))
                if row.checkpoint == (Checkpoint { owned: row.checkpoint.owned.clone(), ..recorded.clone() }) =>
            {
                Ok(())
            }
            Err(StoreError::DamagedRecord { .. }) => Ok(()),
            Ok(_) => {
                let what = format!("its row of checkpoint {} is not as it was recorded", row.checkpoint.id.short());
                Err(StoreError::Diverged { what })
            }
            Err(error) => Err(error),
        }
    }

    /// The newest checkpoint of a line.
    pub fn head(&self, line: u32) -> Result<Option<CheckpointRow>, StoreError> {
        self.checkpoint_where("WHERE line = ?1 ORDER BY seq DESC LIMIT 1", [line])
    }

    /// The oldest checkpoint of a line.
    pub fn first(&self, line: u32) -> Result<Option<CheckpointRow>, StoreError> {
        self.checkpoint_where("WHERE line = ?1 ORDER BY seq LIMIT 1", [line])
    }

    /// The newest checkpoint of a line before a record.
    pub fn checkpoint_before(&self, line: u32, seq: u64) -> Result<Option<CheckpointRow>, StoreError> {
        let clause = "WHERE line = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT 1";
        self.checkpoint_where(clause, rusqlite::params![line, seq as i64])
    }

    /// The oldest checkpoint of a line after a record.
    pub fn checkpoint_after(&self, line: u32, seq: u64) -> Result<Option<CheckpointRow>, StoreError> {
        let clause = "WHERE line = ?1 AND seq > ?2 ORDER BY seq LIMIT 1";
        self.checkpoint_where(clause, rusqlite::params![line, seq as i64])
    }

    /// The checkpoints of a line whose parent is not in the view, in order: its record is damaged.
    pub fn checkpoints_after_lost(&self, line: u32) -> Result<Vec<CheckpointRow>, StoreError> {
        let clause = "WHERE line = ?1 AND parent IS NOT NULL
                      AND NOT EXISTS (SELECT 1 FROM checkpoints p WHERE p.id = c.parent) ORDER BY seq";
        self.checkpoints_where(clause, [line])
    }

    /// Whether any record of the timeline after a given one is lost.
    pub fn has_lost_records_since(&self, seq: u64) -> Result<bool, StoreError> {
        Ok(self.lost_records_since(seq)? > 0)
    }

    /// How many records of the timeline after a given one are lost: they are numbered without a gap.
    pub fn lost_records_since(&self, seq: u64) -> Result<u64, StoreError> {
        // First, so that what another process records meanwhile is counted and not missed.
        let next = self.next_number()?.unwrap_or(0);
        let counted = "SELECT count(*), coalesce(max(seq), ?1) FROM records WHERE seq > ?1";
        let (count, last): (i64, i64) =
            self.db().prepare_cached(counted)?.query_row([seq as i64], |r| Ok((r.get(0)?, r.get(1)?)))?;
        Ok(next.max(last as u64 + 1).saturating_sub(seq + count as u64 + 1))
    }

    /// The newest checkpoint of a line that is not younger than a moment.
    pub fn not_after(&self, line: u32, moment: Timestamp) -> Result<Option<CheckpointRow>, StoreError> {
        self.checkpoint_where(
            "WHERE line = ?1 AND created_at <= ?2 ORDER BY seq DESC LIMIT 1",
            rusqlite::params![line, moment.0],
        )
    }

    /// One checkpoint.
    pub fn checkpoint(&self, id: &CheckpointId) -> Result<Option<CheckpointRow>, StoreError> {
        self.checkpoint_where("WHERE id = ?1", [id.as_str()])
    }

    /// The checkpoint of a record's number.
    pub fn checkpoint_numbered(&self, seq: u64) -> Result<Option<CheckpointRow>, StoreError> {
        self.checkpoint_where("WHERE seq = ?1", [seq as i64])
    }

    /// What a name or an annotation was recorded for.
    pub fn noted_on(&self, seq: u64) -> Result<Option<CheckpointRow>, StoreError> {
        self.checkpoint_where(
            "WHERE id = (SELECT checkpoint FROM names WHERE seq = ?1 UNION SELECT checkpoint FROM annotations WHERE seq = ?1)",
            [seq as i64],
        )
    }

    /// The checkpoint of a name.
    pub fn named(&self, name: &str) -> Result<Option<CheckpointRow>, StoreError> {
        self.checkpoint_where("WHERE id = (SELECT checkpoint FROM names WHERE name = ?1)", [name])
    }

    /// Every name of a checkpoint.
    pub fn names(&self) -> Result<Vec<String>, StoreError> {
        let db = self.db();
        let mut query = db.prepare_cached("SELECT name FROM names ORDER BY seq DESC")?;
        let names = query.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(names)
    }

    /// Checkpoints whose ids begin with these letters, at most ten.
    pub fn with_prefix(&self, prefix: &str) -> Result<Vec<CheckpointRow>, StoreError> {
        // `{` follows `z`, the highest letter of an id.
        self.checkpoints_where("WHERE id >= ?1 AND id < ?1 || '{' ORDER BY seq DESC LIMIT 10", [prefix])
    }

    /// Checkpoints, newest first.
    pub fn checkpoints(&self, limit: Option<u64>) -> Result<Vec<CheckpointRow>, StoreError> {
        self.checkpoints_where("ORDER BY seq DESC LIMIT ?1", [limit.map_or(-1, |n| n as i64)])
    }

    /// The checkpoints that stand in the timeline by themselves, newest first: those that a person made, the first of a
    /// store, and those that found what the user changed, or more than is listed, outside every turn.
    pub fn checkpoints_apart(&self) -> Result<Vec<CheckpointRow>, StoreError> {
        // What is found when a session goes on was done before its next turn.
        self.checkpoints_where(
            "WHERE cause = 'manual' OR (cause = 'session-start' AND parent IS NULL) OR (
               (seq IN (SELECT seq FROM changes WHERE owner_kind = 'you')
                OR (NOT listed AND parent IS NOT NULL AND cause NOT IN ('after-tool', 'operation')
                    AND created + modified + deleted > 0))
               AND NOT EXISTS (
                 SELECT 1 FROM turns WHERE c.cause NOT IN ('before-operation', 'operation')
                 AND key = format('%s/%08d', c.session, c.turn + (c.cause = 'session-start'))))
             ORDER BY seq DESC",
            [],
        )
    }

    /// The checkpoints from a record on that found more than is listed in them, in order.
    pub fn checkpoints_cut(&self, from: u64) -> Result<Vec<CheckpointRow>, StoreError> {
        self.checkpoints_where(
            "WHERE seq >= ?1 AND parent IS NOT NULL AND cause <> 'operation' AND created + modified + deleted > 0
               AND NOT listed
             ORDER BY seq",
            [from as i64],
        )
    }

    /// The checkpoints of a line that may have more than what was there before them and what is listed in them, in order: the
    /// first, one whose parent is lost, one that found too much to list it, and the result of an operation.
    pub fn checkpoints_unlisted(&self, line: u32) -> Result<Vec<u64>, StoreError> {
        self.numbers(
            "SELECT seq FROM checkpoints c WHERE line = ?1
               AND (parent IS NULL OR NOT EXISTS (SELECT 1 FROM checkpoints p WHERE p.id = c.parent)
                    OR (created + modified + deleted > 0 AND NOT listed))
             ORDER BY seq",
            [line],
        )
    }

    /// The newest checkpoints of a line, at most so many, newest first.
    pub fn newest_of(&self, line: u32, most: u64) -> Result<Vec<u64>, StoreError> {
        let sql = "SELECT seq FROM checkpoints WHERE line = ?1 ORDER BY seq DESC LIMIT ?2";
        self.numbers(sql, rusqlite::params![line, most as i64])
    }

    /// The trees of a line's checkpoint and of the one before it. None where the checkpoint is of another line.
    pub fn trees_until(&self, line: u32, seq: u64) -> Result<Vec<ObjectId>, StoreError> {
        let db = self.db();
        let sql = "SELECT tree FROM checkpoints WHERE line = ?1 AND seq <= ?2
                     AND EXISTS (SELECT 1 FROM checkpoints WHERE line = ?1 AND seq = ?2) ORDER BY seq DESC LIMIT 2";
        let mut query = db.prepare_cached(sql)?;
        let rows = query.query_map(rusqlite::params![line, seq as i64], |row| Ok(ObjectId(row.get(0)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// What every checkpoint of the store captured, in order.
    pub fn every_tree(&self) -> Result<Vec<StoredTree>, StoreError> {
        self.rows("SELECT line, tree, git FROM checkpoints ORDER BY seq", [], |row| {
            let git = row.get::<_, Option<[u8; 32]>>(2)?.map(ObjectId);
            Ok(StoredTree { line: row.get(0)?, tree: ObjectId(row.get(1)?), git })
        })
    }

    fn numbers(&self, sql: &str, params: impl Params) -> Result<Vec<u64>, StoreError> {
        let db = self.db();
        let mut query = db.prepare_cached(sql)?;
        let rows = query.query_map(params, |row| Ok(row.get::<_, i64>(0)? as u64))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The checkpoints whose finds are shown with a turn, in order, without their lists of changes; and whether there is
    /// such a list.
    pub fn checkpoints_of_turn(
        &self,
        session: &SessionId,
        turn: u32,
    ) -> Result<Vec<(CheckpointRow, bool)>, StoreError> {
        let db = self.db();
        // The lists are in the changes as well, and they may be long. The bounds of the turn are for the index: without them
        // every checkpoint of the session is looked at.
        let columns =
            CHECKPOINT.replacen(" owned,", " '[]',", 1).replacen(" FROM checkpoints", ", listed FROM checkpoints", 1);
        let mut query = db.prepare_cached(&format!(
            "{columns} WHERE session = ?1 AND turn BETWEEN ?2 - 1 AND ?2 AND (turn = ?2 OR cause = 'session-start')
             ORDER BY seq"
        ))?;
        let rows = query.query_map(rusqlite::params![session.as_str(), turn], |row| {
            Ok((checkpoint(row)?, row.get::<_, bool>(25)?))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Which checkpoints have a place in a session, and what made them.
    pub fn checkpoint_places(&self) -> Result<Vec<(u64, Cause, TurnContext)>, StoreError> {
        let db = self.db();
        let sql = "SELECT seq, cause, session, turn, step FROM checkpoints WHERE session IS NOT NULL";
        let mut query = db.prepare_cached(sql)?;
        let rows = query.query_map([], |row| {
            let cause = known(row, 1, Cause::from_word)?;
            let place = TurnContext { session: parsed(row, 2)?, turn: row.get(3)?, step: row.get(4)? };
            Ok((row.get::<_, i64>(0)? as u64, cause, place))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Every checkpoint as a link, in order.
    pub fn links(&self) -> Result<Vec<ChainLink>, StoreError> {
        let db = self.db();
        let mut query = db.prepare_cached(
            "SELECT c.seq, p.seq, c.parent IS NULL, c.tree, c.deleted > 0, c.operation IS NOT NULL,
                    c.line, c.modified > 0
             FROM checkpoints c LEFT JOIN checkpoints p ON p.id = c.parent ORDER BY c.seq",
        )?;
        let rows = query.query_map([], |row| {
            Ok(ChainLink {
                seq: row.get::<_, i64>(0)? as u64,
                parent: row.get::<_, Option<i64>>(1)?.map(|seq| seq as u64),
                is_first: row.get(2)?,
                tree: ObjectId(row.get(3)?),
                has_deleted: row.get(4)?,
                is_of_operation: row.get(5)?,
                line: row.get(6)?,
                has_modified: row.get(7)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// How many checkpoints there are.
    pub fn checkpoint_count(&self) -> Result<u64, StoreError> {
        Ok(self.db().query_row("SELECT count(*) FROM checkpoints", [], |r| r.get::<_, i64>(0))? as u64)
    }

    /// The checkpoint of an operation's result.
    pub fn result_of(&self, operation: &OperationId) -> Result<Option<CheckpointRow>, StoreError> {
        let clause = "WHERE operation = ?1 AND cause = 'operation' ORDER BY seq LIMIT 1";
        self.checkpoint_where(clause, [operation.as_str()])
    }

    /// The folder of the workspace as it was last recorded before a record.
    pub(crate) fn root_before(&self, seq: u64) -> Result<Option<RootIdentity>, StoreError> {
        let sql = "SELECT seq FROM workspaces WHERE seq < ?1 ORDER BY seq DESC LIMIT 1";
        let found: Option<i64> = self.db().prepare_cached(sql)?.query_row([seq as i64], |r| r.get(0)).optional()?;
        Ok(match found.map(|seq| self.record(seq as u64)) {
            Some(Ok(Record::Workspace(workspace))) => Some(workspace.root),
            _ => None,
        })
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

    /// Whether another folder than that of a line was captured here after a record.
    ///
    /// # Errors
    /// Where the database refuses.
    pub fn has_other_line_since(&self, seq: u64, line: u32) -> Result<bool, StoreError> {
        let clause = "SELECT 1 FROM checkpoints WHERE seq > ?1 AND line < 2147483648 AND line <> ?2 LIMIT 1";
        let found = self.rows(clause, [seq as i64, i64::from(line)], |_| Ok(()))?;
        Ok(!found.is_empty())
    }

    /// The number of the newest checkpoint that no operation made; 0 where there is none.
    pub fn last_capture(&self) -> Result<u64, StoreError> {
        let sql = "SELECT seq FROM checkpoints WHERE cause NOT IN ('before-operation', 'operation')
                   AND line < 2147483648 ORDER BY seq DESC LIMIT 1";
        Ok(self.rows(sql, [], |row| Ok(row.get::<_, i64>(0)? as u64))?.pop().unwrap_or(0))
    }

    pub(crate) fn checkpoint_where(
        &self,
        clause: &str,
        params: impl Params,
    ) -> Result<Option<CheckpointRow>, StoreError> {
        Ok(self.checkpoints_where(clause, params)?.into_iter().next())
    }

    pub(crate) fn rows<T>(
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

    pub(crate) fn checkpoints_where(
        &self,
        clause: &str,
        params: impl Params,
    ) -> Result<Vec<CheckpointRow>, StoreError> {
        let db = self.db();
        let mut query = db.prepare_cached(&format!("{CHECKPOINT} {clause}"))?;
        let rows = query.query_map(params, checkpoint)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn checkpoint(row: &Row<'_>) -> rusqlite::Result<CheckpointRow> {
    let tree: [u8; 32] = row.get(6)?;
    let names: String = row.get(20)?;
    let unsettled: String = row.get(12)?;
    Ok(CheckpointRow {
        seq: row.get::<_, i64>(0)? as u64,
        checkpoint: Checkpoint {
            id: parsed(row, 1)?,
            parent: row.get::<_, Option<String>>(2)?.map(|id| id.parse().map_err(from_sql)).transpose()?,
            line: row.get(3)?,
            created_at: Timestamp(row.get(4)?),
            cause: known(row, 5, Cause::from_word)?,
            root: RootState { tree: ObjectId(tree), mode: row.get(7)? },
            changes: Counts {
                created: row.get::<_, i64>(8)? as u64,
                modified: row.get::<_, i64>(9)? as u64,
                deleted: row.get::<_, i64>(10)? as u64,
            },
            skipped: row.get::<_, i64>(11)? as u64,
            unsettled: serde_json::from_str(&unsettled).map_err(from_sql)?,
            operation: row.get::<_, Option<String>>(13)?.map(|id| id.parse().map_err(from_sql)).transpose()?,
            place: match row.get::<_, Option<String>>(14)? {
                Some(id) => {
                    Some(TurnContext { session: id.parse().map_err(from_sql)?, turn: row.get(15)?, step: row.get(16)? })
                }
                None => None,
            },
            description: row.get(17)?,
            owned: serde_json::from_str(&row.get::<_, String>(18)?).map_err(from_sql)?,
            git: row.get::<_, Option<[u8; 32]>>(19)?.map(ObjectId),
            held: serde_json::from_str(&row.get::<_, String>(22)?).map_err(from_sql)?,
            settings: serde_json::from_str(&row.get::<_, String>(23)?).map_err(from_sql)?,
            unagreed: serde_json::from_str(&row.get::<_, String>(24)?).map_err(from_sql)?,
        },
        names: serde_json::from_str(&names).map_err(from_sql)?,
        annotation: row.get(21)?,
    })
}

/// A column that has one of a type's words.
pub(crate) fn known<T>(row: &Row<'_>, column: usize, from_word: fn(&str) -> Option<T>) -> rusqlite::Result<T> {
    let word = row.get_ref(column)?.as_str()?;
    from_word(word)
        .ok_or_else(|| rusqlite::Error::InvalidColumnType(column, word.to_owned(), rusqlite::types::Type::Text))
}

pub(crate) fn parsed<T: std::str::FromStr<Err = piton_model::id::BadId>>(
    row: &Row<'_>,
    column: usize,
) -> rusqlite::Result<T> {
    row.get::<_, String>(column)?.parse().map_err(from_sql)
}
