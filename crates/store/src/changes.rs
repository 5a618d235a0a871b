//! The rows of changes, and the questions to them.

use std::collections::HashMap;

use piton_model::ownership::{Candidate, Evidence, Owned, Owner, Settles};
use piton_model::{ChangeKind, Ending, SessionId, StepRef, WorkspacePath};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::Reader;
use crate::database::{from_sql, to_sql};
use crate::error::StoreError;
use crate::steps::step_key;

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

fn kind_word(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Created => "created",
        ChangeKind::Modified => "modified",
        ChangeKind::Deleted => "deleted",
    }
}

impl Reader {
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
