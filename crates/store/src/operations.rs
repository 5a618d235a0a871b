//! The rows of operations, and the questions to them.

use piton_model::conversation::ConversationSwitch;
use piton_model::{
    CheckpointId, GivenUp, Operation, OperationId, OperationTarget, OperationVerb, Outcome, Record, Timestamp,
};
use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Params, Row};

use crate::Reader;
use crate::database::from_sql;
use crate::error::StoreError;
use crate::query::{known, parsed};

/// Where an operation is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationState {
    /// It began and did not end: it runs, or it was cut off.
    Pending,
    /// Its result stands.
    Done,
    /// The old tree stands.
    RolledBack,
    /// Nobody knows how it ended, or could end it: its files may be half changed.
    GivenUp,
    /// The same for as long as another folder stands in the place of its own.
    Replaced,
}

impl OperationState {
    /// The word in its row.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Done => "done",
            Self::RolledBack => "rolled-back",
            Self::GivenUp => "given-up",
            Self::Replaced => "replaced",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        let all = [Self::Pending, Self::Done, Self::RolledBack, Self::GivenUp, Self::Replaced];
        all.into_iter().find(|state| state.as_str() == word)
    }
}

impl From<&Outcome> for OperationState {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Done { .. } => Self::Done,
            Outcome::RolledBack { .. } => Self::RolledBack,
            Outcome::GivenUp(GivenUp::Replaced) => Self::Replaced,
            Outcome::GivenUp(GivenUp::ForGood { .. }) => Self::GivenUp,
        }
    }
}

/// An operation without its steps.
#[derive(Clone, Debug)]
pub struct OperationRow {
    /// Its id.
    pub id: OperationId,
    /// Its place in the order.
    pub seq: u64,
    /// What it does.
    pub verb: OperationVerb,
    /// The checkpoint or operation it is about.
    pub target: Option<OperationTarget>,
    /// The operations that it takes back besides that one.
    pub also: Vec<OperationId>,
    /// What it takes back, in a few words.
    pub about: Option<String>,
    /// When it began.
    pub began_at: Timestamp,
    /// The checkpoint of the state before it.
    pub before: CheckpointId,
    /// How it stands.
    pub state: OperationState,
    /// The checkpoint of its result.
    pub after: Option<CheckpointId>,
    /// Why it was rolled back or given up, for people.
    pub why: Option<String>,
    /// Where it went with the conversation.
    pub went: Option<ConversationSwitch>,
    /// Whether it changed files outside the workspace.
    pub outside: bool,
}

const OPERATION: &str =
    "SELECT id, seq, verb, target, began_at, before, state, after, why, about, went, outside, also FROM operations";

impl Reader {
    /// Operations that began and did not end, oldest first.
    pub fn pending(&self) -> Result<Vec<OperationRow>, StoreError> {
        self.operations_where("WHERE state = 'pending' ORDER BY seq", [])
    }

    /// Operations that were given up because another folder stood in the place of their own, oldest first.
    pub fn given_up_as_replaced(&self) -> Result<Vec<OperationRow>, StoreError> {
        self.operations_where("WHERE state = 'replaced' ORDER BY seq", [])
    }

    /// How an operation ended whose end is not in the records, as what was recorded after it on its line shows: nothing is
    /// captured there while one is pending, but by its own recovery.
    pub fn end_shown_later(&self, row: &OperationRow) -> Result<Option<Outcome>, StoreError> {
        if let Some(after) = self.result_of(&row.id)? {
            return Ok(Some(Outcome::Done { after: after.checkpoint.id, before: None }));
        }
        // What a recovery captures, its own or that of an operation before it, shows nothing.
        let later = "SELECT EXISTS (
            SELECT 1 FROM checkpoints WHERE seq > ?1 AND line = (SELECT line FROM checkpoints WHERE id = ?2)
            AND (operation IS NULL OR operation IN (SELECT id FROM operations WHERE seq > ?1 AND verb != 'recover')))";
        let params = rusqlite::params![row.seq as i64, row.before.as_str()];
        // Since it became another folder's, captures of that one tell nothing either. Its record is written again for other
        // reasons, such as a move: only the root tells.
        let root = match self.operation(row) {
            Ok(operation) => Some(operation.root),
            Err(StoreError::DamagedRecord { .. }) => self.root_before(row.seq)?,
            Err(error) => return Err(error),
        };
        let is_same_folder =
            self.workspace()?.is_some_and(|workspace| root.is_some_and(|root| workspace.root.is_same(&root)));
        let is_over = is_same_folder && self.db().query_row(later, params, |r| r.get(0))?;
        Ok(is_over.then(|| Outcome::GivenUp(GivenUp::ForGood { why: "the record of its end is damaged".to_owned() })))
    }

    /// The operations of a line whose own records are lost, and that are known by their checkpoints: each with the number
    /// where its record was, or after which it was.
    pub fn operations_without_record(&self, line: u32) -> Result<Vec<(u64, OperationId)>, StoreError> {
        let db = self.db();
        // What it began with comes right before it.
        let mut query = db.prepare_cached(
            "SELECT coalesce(max(CASE cause WHEN 'before-operation' THEN seq + 1 END), min(seq) - 1), operation
             FROM checkpoints c WHERE line = ?1 AND operation IS NOT NULL
               AND NOT EXISTS (SELECT 1 FROM operations o WHERE o.id = c.operation)
             GROUP BY operation",
        )?;
        let rows = query.query_map([line], |r| Ok((r.get::<_, i64>(0)? as u64, parsed(r, 1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The checkpoint of a line that was made at the beginning of an operation whose own record is lost, where nothing
    /// tells that the operation ended.
    pub fn begun_and_lost(&self, line: u32) -> Result<Option<(OperationId, CheckpointId)>, StoreError> {
        let sql = "SELECT operation, id FROM checkpoints c
                   WHERE seq = (SELECT max(seq) FROM checkpoints WHERE line = ?1)
                     AND cause = 'before-operation' AND operation IS NOT NULL
                     AND NOT EXISTS (SELECT 1 FROM operations WHERE id = c.operation)
                     AND NOT EXISTS (SELECT 1 FROM records WHERE seq > c.seq AND kind = 'ended')";
        Ok(self.db().prepare_cached(sql)?.query_row([line], |r| Ok((parsed(r, 0)?, parsed(r, 1)?))).optional()?)
    }

    /// Every operation, newest first.
    pub fn operations(&self) -> Result<Vec<OperationRow>, StoreError> {
        self.operations_where("ORDER BY seq DESC", [])
    }

    /// The operations that began after one record and before another and were carried out, oldest first.
    pub fn operations_between(&self, from: u64, to: u64) -> Result<Vec<OperationRow>, StoreError> {
        let clause = "WHERE seq > ?1 AND seq < ?2 AND state = 'done' ORDER BY seq";
        self.operations_where(clause, [from as i64, to as i64])
    }

    /// One operation.
    pub fn operation_row(&self, id: &OperationId) -> Result<Option<OperationRow>, StoreError> {
        Ok(self.operations_where("WHERE id = ?1", [id.as_str()])?.pop())
    }

    /// Whether an operation of this id began and did not end.
    pub fn is_pending(&self, id: &OperationId) -> bool {
        self.operation_row(id).is_ok_and(|row| row.is_some_and(|row| row.state == OperationState::Pending))
    }

    /// An operation with all its steps, from its record.
    pub fn operation(&self, row: &OperationRow) -> Result<Operation, StoreError> {
        match self.record(row.seq)? {
            Record::Operation(operation) if operation.id == row.id => Ok(*operation),
            _ => Err(StoreError::DamagedRecord { seq: row.seq }),
        }
    }

    fn operations_where(&self, clause: &str, params: impl Params) -> Result<Vec<OperationRow>, StoreError> {
        let db = self.db();
        let mut query = db.prepare_cached(&format!("{OPERATION} {clause}"))?;
        let rows = query.query_map(params, operation)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn operation(row: &Row<'_>) -> rusqlite::Result<OperationRow> {
    let verb = known(row, 2, OperationVerb::from_word)?;
    let target = match (verb, row.get_ref(3)?) {
        (_, ValueRef::Null) => None,
        (OperationVerb::Rewind | OperationVerb::Checkout, _) => Some(OperationTarget::Checkpoint(parsed(row, 3)?)),
        _ => Some(OperationTarget::Operation(parsed(row, 3)?)),
    };
    Ok(OperationRow {
        id: parsed(row, 0)?,
        seq: row.get::<_, i64>(1)? as u64,
        verb,
        target,
        began_at: Timestamp(row.get(4)?),
        before: parsed(row, 5)?,
        state: known(row, 6, OperationState::from_word)?,
        after: row.get::<_, Option<String>>(7)?.map(|id| id.parse().map_err(from_sql)).transpose()?,
        why: row.get(8)?,
        about: row.get(9)?,
        went: row
            .get::<_, Option<String>>(10)?
            .map(|went| serde_json::from_str(&went).map_err(from_sql))
            .transpose()?,
        outside: row.get(11)?,
        also: serde_json::from_str(&row.get::<_, String>(12)?).map_err(from_sql)?,
    })
}
