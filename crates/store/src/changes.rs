//! The rows of changes, and the questions to them.

use std::collections::{HashMap, HashSet};

use piton_model::ownership::{Doubt, Evidence, Owned, Owner, OwnerKind, Settles};
use piton_model::{ChangeKind, CheckpointId, Ending, SessionId, StepRef, Timestamp, WorkspacePath};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::Reader;
use crate::database::{from_sql, to_sql};
use crate::error::StoreError;
use crate::query::{known, parsed};
use crate::sessions::ending;
use crate::steps::step_key;

/// One changed path of a checkpoint.
#[derive(Clone, Debug)]
pub struct ChangeRow {
    /// The number of the checkpoint's record.
    pub seq: u64,
    pub path: WorkspacePath,
    /// What happened.
    pub kind: ChangeKind,
    pub owner: Owner,
    /// Why that is not sure.
    pub doubt: Option<Doubt>,
}

/// What happened first and what last, path by path.
pub type ChangedPaths = HashMap<Vec<u8>, (ChangeKind, ChangeKind)>;

/// Room for a million changes of one checkpoint in a row's key.
const CHANGES: u32 = 20;

/// Makes the rows of a checkpoint's changes.
pub(crate) fn apply_changes(db: &Connection, seq: i64, owned: &[Owned]) -> Result<(), StoreError> {
    let mut insert =
        db.prepare_cached("INSERT OR REPLACE INTO changes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)")?;
    let mut number = seq << CHANGES;
    for group in owned {
        if let Some(settles) = &group.settles {
            let sql = "INSERT OR IGNORE INTO doubts VALUES (?1, ?2)";
            db.prepare_cached(sql)?.execute(params![step_key(&settles.step), seq])?;
        }
        // What all rows of a group have is bound once: a capture may have many.
        let owner = OwnerColumns::of(&group.owner)?;
        insert.raw_bind_parameter(2, seq)?;
        insert.raw_bind_parameter(5, owner.kind.as_str())?;
        insert.raw_bind_parameter(6, owner.session)?;
        insert.raw_bind_parameter(7, owner.turn)?;
        insert.raw_bind_parameter(8, owner.step)?;
        insert.raw_bind_parameter(9, owner.evidence)?;
        insert.raw_bind_parameter(10, owner.operation)?;
        insert.raw_bind_parameter(11, owner.candidates)?;
        let doubt = group.doubt.as_ref().map(serde_json::to_string).transpose().map_err(to_sql)?;
        insert.raw_bind_parameter(12, doubt)?;
        for changed in &group.paths {
            insert.raw_bind_parameter(1, number)?;
            insert.raw_bind_parameter(3, changed.path.as_bytes())?;
            insert.raw_bind_parameter(4, changed.kind.as_str())?;
            insert.raw_execute()?;
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
    let sql = "SELECT ending FROM steps WHERE key = ?1 AND NOT background";
    let ending = db.prepare_cached(sql)?.query_row([&key], |row| ending(row, 0)).optional()?;
    let Some(ending) = ending else { return Ok(()) };
    let has_failed = matches!(ending, Some(Ending::Failed | Ending::Interrupted));
    // A tool that failed may not have run at all, so that the user may have edited the file that it names.
    let is_its = |settles: &Settles| !(has_failed && settles.evidence == Evidence::Named);
    for seq in checkpoints {
        let json: String = db.query_row("SELECT owned FROM checkpoints WHERE seq = ?1", [seq], |row| row.get(0))?;
        let mut owned: Vec<Owned> = serde_json::from_str(&json).map_err(from_sql)?;
        for group in &mut owned {
            if let Some(settles) = group.settles.take_if(|settles| settles.step == *at).filter(is_its) {
                group.owner = settles.into();
                group.doubt = None;
            }
        }
        let json = serde_json::to_string(&owned).map_err(to_sql)?;
        db.execute("UPDATE checkpoints SET owned = ?2 WHERE seq = ?1", params![seq, json])?;
        db.execute("DELETE FROM doubts WHERE step = ?1 AND seq = ?2", params![key, seq])?;
        apply_changes(db, seq, &owned)?;
    }
    Ok(())
}

/// An owner as the columns of a row. Session and turn are those of [`Owner::turn`]: the only ones that it can be of.
struct OwnerColumns<'o> {
    kind: OwnerKind,
    session: Option<&'o str>,
    turn: Option<u32>,
    step: Option<u32>,
    evidence: Option<&'static str>,
    operation: Option<&'o str>,
    /// Who it may have been, as JSON that nobody looks into.
    candidates: Option<String>,
}

impl<'o> OwnerColumns<'o> {
    fn of(owner: &'o Owner) -> Result<Self, StoreError> {
        let turn = owner.turn();
        let mut columns = Self {
            kind: owner.kind(),
            session: turn.map(|(session, _)| session.as_str()),
            turn: turn.map(|(_, turn)| turn),
            step: None,
            evidence: None,
            operation: None,
            candidates: None,
        };
        match owner {
            Owner::Step { step, evidence } => {
                (columns.step, columns.evidence) = (Some(step.step), Some(evidence.as_str()));
            }
            Owner::Operation { operation } => columns.operation = Some(operation.as_str()),
            Owner::Unsure { candidates } => {
                columns.candidates = Some(serde_json::to_string(candidates).map_err(to_sql)?);
            }
            Owner::You => {}
        }
        Ok(columns)
    }
}

const CHANGE: &str = "SELECT seq, path, kind, owner_kind, owner_session, owner_turn, owner_step, evidence, operation, \
                      candidates, doubt FROM changes";

impl Reader {
    /// The user's own changes of a line that were found since a time, oldest first: each with its checkpoint's number and
    /// when that was made.
    ///
    /// # Errors
    /// Where the database refuses.
    pub fn yours_since(&self, line: u32, since: Timestamp) -> Result<Vec<(u64, WorkspacePath, Timestamp)>, StoreError> {
        let before = "SELECT seq FROM checkpoints WHERE created_at < ?1 ORDER BY seq DESC LIMIT 1";
        let before = self.rows(before, [since.0], |row| row.get::<_, i64>(0))?.pop().unwrap_or(-1);
        self.rows(
            "SELECT changes.seq, path, created_at FROM changes JOIN checkpoints ON checkpoints.seq = changes.seq
             WHERE key >= ?1 AND owner_kind = 'you' AND line = ?2 ORDER BY key",
            [(before + 1) << CHANGES, i64::from(line)],
            |row| {
                let path = WorkspacePath::new(row.get::<_, Vec<u8>>(1)?).map_err(from_sql)?;
                Ok((row.get::<_, i64>(0)? as u64, path, Timestamp(row.get(2)?)))
            },
        )
    }

    /// The changes of one checkpoint.
    pub fn changes_of(&self, seq: u64) -> Result<Vec<ChangeRow>, StoreError> {
        let range = [(seq as i64) << CHANGES, ((seq as i64) + 1) << CHANGES];
        self.rows(&format!("{CHANGE} WHERE key >= ?1 AND key < ?2 ORDER BY key"), range, change)
    }

    /// The changes that a person accepted, each by its checkpoint and path.
    pub fn accepted(&self) -> Result<HashSet<(CheckpointId, WorkspacePath)>, StoreError> {
        let each =
            |row: &Row<'_>| Ok((parsed(row, 0)?, WorkspacePath::new(row.get::<_, Vec<u8>>(1)?).map_err(from_sql)?));
        Ok(self.rows("SELECT checkpoint, path FROM accepted", [], each)?.into_iter().collect())
    }

    /// The turns of which a person accepted changes: how many changes they have, and how many of those are accepted.
    pub fn accepted_by_turn(&self) -> Result<Vec<(SessionId, u32, u64, u64)>, StoreError> {
        let sql = "SELECT c.owner_session, c.owner_turn, count(*), count(a.path)
                   FROM changes c LEFT JOIN accepted a ON a.found = c.seq AND a.path = c.path
                   WHERE EXISTS (SELECT 1 FROM accepted) AND c.owner_session IS NOT NULL
                   GROUP BY c.owner_session, c.owner_turn HAVING count(a.path) > 0";
        let each = |row: &Row<'_>| {
            Ok((parsed(row, 0)?, row.get(1)?, row.get::<_, i64>(2)? as u64, row.get::<_, i64>(3)? as u64))
        };
        self.rows(sql, [], each)
    }

    /// The changes of all checkpoints from one record on, in order.
    pub fn changes_since(&self, seq: u64) -> Result<Vec<ChangeRow>, StoreError> {
        self.rows(&format!("{CHANGE} WHERE key >= ?1 ORDER BY key"), [(seq as i64) << CHANGES], change)
    }

    /// What happened first and what last to each path that a wanted session changed, session by session.
    pub fn changes_by_session(
        &self,
        is_wanted: impl Fn(&SessionId) -> bool,
    ) -> Result<HashMap<SessionId, ChangedPaths>, StoreError> {
        let mut all: HashMap<SessionId, ChangedPaths> = HashMap::new();
        let db = self.db();
        let sql = "SELECT owner_session, kind, path FROM changes WHERE owner_session IS NOT NULL ORDER BY key";
        let mut query = db.prepare_cached(sql)?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            let session: SessionId = parsed(row, 0)?;
            if !is_wanted(&session) {
                continue;
            }
            let kind = known(row, 1, ChangeKind::from_word)?;
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
        let found = self.rows(&format!("{CHANGE} ORDER BY key"), [], each)?;
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
        let sessions: HashSet<&SessionId> = sessions.collect();
        let is_about = |owner: &Owner| *owner == Owner::You || owner.may_be_of(|session| sessions.contains(session));
        // Where it may have been several, no column says which.
        let wanted = vec!["?"; sessions.len()].join(", ");
        let clause = format!(
            "WHERE owner_kind = 'you' OR owner_session IN ({wanted}) OR (owner_kind = 'unsure' AND owner_session IS NULL)"
        );
        let parameters = rusqlite::params_from_iter(sessions.iter().map(|session| session.as_str()));
        let mut found = self.rows(&format!("{CHANGE} {clause} ORDER BY key"), parameters, change)?;
        found.retain(|row| is_about(&row.owner));
        Ok(found)
    }
}

fn change(row: &Row<'_>) -> rusqlite::Result<ChangeRow> {
    let path: Vec<u8> = row.get(1)?;
    Ok(ChangeRow {
        seq: row.get::<_, i64>(0)? as u64,
        path: WorkspacePath::new(path).map_err(from_sql)?,
        kind: known(row, 2, ChangeKind::from_word)?,
        owner: owner(row)?,
        doubt: row
            .get::<_, Option<String>>(10)?
            .map(|json| serde_json::from_str(&json))
            .transpose()
            .map_err(from_sql)?,
    })
}

fn owner(row: &Row<'_>) -> rusqlite::Result<Owner> {
    Ok(match known(row, 3, OwnerKind::from_word)? {
        OwnerKind::You => Owner::You,
        OwnerKind::Operation => Owner::Operation { operation: parsed(row, 8)? },
        OwnerKind::Step => Owner::Step {
            step: StepRef { session: parsed(row, 4)?, turn: row.get(5)?, step: row.get(6)? },
            evidence: known(row, 7, Evidence::from_word)?,
        },
        OwnerKind::Unsure => {
            let candidates = serde_json::from_str(row.get_ref(9)?.as_str()?).map_err(from_sql)?;
            Owner::Unsure { candidates }
        }
    })
}

#[cfg(test)]
mod tests {
    use piton_model::ownership::ChangedPath;
    use piton_model::{Candidate, OperationId};

    use super::*;

    #[test]
    fn every_owner_reads_back_from_its_columns_and_has_its_session_where_it_can_only_be_that_one() {
        let step = |session: &str, turn| StepRef { session: SessionId::of("agent", session), turn, step: 2 };
        let candidates = |all: &[Candidate]| Owner::Unsure { candidates: all.to_vec() };
        let (a, b) = (Candidate::Step(step("a", 1)), Candidate::Step(step("b", 1)));
        let later = Candidate::Step(step("a", 7));
        let owners = [
            (Owner::You, None),
            (Owner::Step { step: step("a", 3), evidence: Evidence::Named }, Some("a")),
            (Owner::Step { step: step("b", 3), evidence: Evidence::Window }, Some("b")),
            (Owner::Operation { operation: OperationId::from_random([7; 8]) }, None),
            (candidates(&[]), None),
            (candidates(&[Candidate::You]), None),
            (candidates(std::slice::from_ref(&a)), Some("a")),
            (candidates(&[a.clone(), Candidate::You]), None),
            (candidates(&[a.clone(), b]), None),
            (candidates(&[a, later]), None),
        ];
        let db = crate::database::in_memory().unwrap();
        let path = WorkspacePath::new("src/a.rs").unwrap();
        let owned = owners.iter().map(|(owner, _)| {
            Owned::of(owner.clone(), vec![ChangedPath { path: path.clone(), kind: ChangeKind::Deleted }])
        });
        apply_changes(&db, 5, &owned.collect::<Vec<_>>()).unwrap();
        let mut query = db.prepare(&format!("{CHANGE} ORDER BY key")).unwrap();
        let rows = query.query_map([], |row| Ok((change(row)?, row.get::<_, Option<String>>(4)?))).unwrap();
        let rows: Vec<_> = rows.map(Result::unwrap).collect();
        assert_eq!(rows.len(), owners.len());
        for ((row, session), (owner, expected)) in rows.iter().zip(&owners) {
            assert_eq!((row.seq, &row.path, row.kind, &row.owner), (5, &path, ChangeKind::Deleted, owner));
            let expected = expected.map(|id| SessionId::of("agent", id).to_string());
            assert_eq!(*session, expected, "{owner:?}");
        }
    }
}
