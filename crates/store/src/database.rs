//! The SQLite view of the packs: one function, [`apply`], turns a record into rows, live and on rebuild alike.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use piton_host::own;
use piton_model::record::Numbered;
use piton_model::{ObjectId, OperationTarget, Outcome, Record};
use rusqlite::{Connection, OpenFlags, params};

use crate::error::StoreError;
use crate::operations::OperationState;
use crate::pack::{Kind, Place};

/// How long a statement waits for those of other processes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Prepared statements that a connection keeps. The timeline alone asks some twenty different questions over and over.
const STATEMENTS: usize = 64;

/// The version of the rows; the packs have their own.
pub(crate) const VERSION: i64 = 16;

/// Every table that [`apply`] and [`apply_object`] fill, with its columns in order of its key: what `verify` compares.
pub(crate) const VIEW: [(&str, &str); 15] = [
    ("all_objects", "id, kind, pack, offset, length"),
    ("records", "seq, kind, pack, offset, length"),
    ("workspaces", "seq, json"),
    (
        "checkpoints",
        "seq, id, parent, line, created_at, cause, tree, mode, created, modified, deleted, skipped, unsettled, operation, session, turn, step, description, owned, listed, git, held, settings, unagreed",
    ),
    ("names", "name, checkpoint, seq"),
    ("annotations", "checkpoint, text, seq"),
    ("accepted", "found, path, checkpoint"),
    ("operations", "id, seq, verb, target, about, began_at, before, went, outside, state, after, why, ended_at, also"),
    (
        "sessions",
        "id, seq, agent, agent_id, name, transcript, started_at, origin, rank, kept, ended_at, heard, last_seq, last_at, along",
    ),
    ("turns", "key, session, number, seq, prompt, prompt_id, at, mark, ending, message, ended_at"),
    (
        "steps",
        "key, session, turn, number, seq, call, tool, summary, command, paths, background, subagent, process, \
         process_started, process_own, opened, ending, closed, ended_seq, says, outside, outside_after, cwd, hooked, \
         attended, cut",
    ),
    (
        "changes",
        "key, seq, path, kind, owner_kind, owner_session, owner_turn, owner_step, evidence, operation, candidates, \
         doubt",
    ),
    ("doubts", "step, seq"),
    ("gaps", "seq, session, turn, step, cause, reason, at, lost, gone"),
    ("messages", "seq, session, turn, role, text, at"),
];

const SCHEMA: &str = "
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE folded(mark INTEGER NOT NULL);
CREATE TABLE packs(pack INTEGER PRIMARY KEY, length INTEGER NOT NULL, synced INTEGER NOT NULL);
CREATE TABLE objects(
  id BLOB PRIMARY KEY, kind INTEGER NOT NULL, pack INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE fresh_objects(
  id BLOB PRIMARY KEY, kind INTEGER NOT NULL, pack INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL
) WITHOUT ROWID;
CREATE VIEW all_objects AS
  SELECT * FROM fresh_objects UNION ALL SELECT * FROM objects WHERE id NOT IN (SELECT id FROM fresh_objects);
CREATE TABLE records(
  seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, pack INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL
);
CREATE TABLE workspaces(seq INTEGER PRIMARY KEY, json TEXT NOT NULL);
CREATE TABLE checkpoints(
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, parent TEXT, line INTEGER NOT NULL, created_at INTEGER NOT NULL,
  cause TEXT NOT NULL, tree BLOB NOT NULL, mode INTEGER NOT NULL, created INTEGER NOT NULL, modified INTEGER NOT NULL,
  deleted INTEGER NOT NULL, skipped INTEGER NOT NULL, unsettled TEXT NOT NULL, operation TEXT,
  session TEXT, turn INTEGER, step INTEGER, description TEXT, owned TEXT NOT NULL, listed INTEGER NOT NULL, git BLOB,
  held TEXT NOT NULL, settings TEXT NOT NULL, unagreed TEXT NOT NULL
);
CREATE INDEX checkpoints_of ON checkpoints(session, turn, step) WHERE session IS NOT NULL;
CREATE INDEX checkpoints_imported ON checkpoints(seq) WHERE line >= 2147483648;
CREATE TABLE names(name TEXT PRIMARY KEY, checkpoint TEXT NOT NULL, seq INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX names_of ON names(checkpoint);
CREATE TABLE annotations(checkpoint TEXT PRIMARY KEY, text TEXT NOT NULL, seq INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE accepted(
  found INTEGER NOT NULL, path BLOB NOT NULL, checkpoint TEXT NOT NULL, PRIMARY KEY (found, path)
) WITHOUT ROWID;
CREATE TABLE operations(
  id TEXT PRIMARY KEY, seq INTEGER NOT NULL, verb TEXT NOT NULL, target TEXT, about TEXT, began_at INTEGER NOT NULL,
  before TEXT NOT NULL, went TEXT, outside INTEGER NOT NULL, state TEXT NOT NULL, after TEXT, why TEXT, ended_at INTEGER,
  also TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX operations_pending ON operations(state) WHERE state = 'pending';
CREATE TABLE sessions(
  id TEXT PRIMARY KEY, seq INTEGER NOT NULL, agent TEXT NOT NULL, agent_id TEXT NOT NULL, name TEXT, transcript TEXT,
  started_at INTEGER NOT NULL, origin TEXT, rank TEXT NOT NULL, kept TEXT, ended_at INTEGER, heard INTEGER NOT NULL,
  last_seq INTEGER NOT NULL, last_at INTEGER NOT NULL, along INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE turns(
  key TEXT PRIMARY KEY, session TEXT NOT NULL, number INTEGER NOT NULL, seq INTEGER NOT NULL, prompt TEXT,
  prompt_id TEXT, at INTEGER NOT NULL, mark TEXT, ending TEXT, message TEXT, ended_at INTEGER
) WITHOUT ROWID;
CREATE INDEX turns_called ON turns(session, prompt_id) WHERE prompt_id IS NOT NULL;
CREATE TABLE steps(
  key TEXT PRIMARY KEY, session TEXT NOT NULL, turn INTEGER NOT NULL, number INTEGER NOT NULL, seq INTEGER NOT NULL,
  call TEXT, tool TEXT NOT NULL, summary TEXT NOT NULL, command TEXT, paths TEXT NOT NULL, background INTEGER NOT NULL,
  subagent TEXT, process INTEGER, process_started INTEGER, process_own INTEGER, opened INTEGER NOT NULL, ending TEXT, closed INTEGER, ended_seq INTEGER,
  says INTEGER NOT NULL, outside TEXT, outside_after TEXT, cwd TEXT, hooked INTEGER NOT NULL, attended TEXT NOT NULL,
  cut INTEGER
) WITHOUT ROWID;
CREATE INDEX steps_open ON steps(seq) WHERE ending IS NULL;
CREATE INDEX steps_ended ON steps(ended_seq) WHERE ended_seq IS NOT NULL;
CREATE INDEX steps_called ON steps(session, call) WHERE call IS NOT NULL;
CREATE TABLE changes(
  key INTEGER PRIMARY KEY, seq INTEGER NOT NULL, path BLOB NOT NULL, kind TEXT NOT NULL, owner_kind TEXT NOT NULL,
  owner_session TEXT, owner_turn INTEGER, owner_step INTEGER, evidence TEXT, operation TEXT, candidates TEXT,
  doubt TEXT
);
CREATE TABLE doubts(step TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (step, seq)) WITHOUT ROWID;
CREATE TABLE gaps(
  seq INTEGER PRIMARY KEY, session TEXT NOT NULL, turn INTEGER NOT NULL, step INTEGER, cause TEXT NOT NULL,
  reason TEXT NOT NULL, at INTEGER NOT NULL, lost INTEGER NOT NULL, gone INTEGER NOT NULL
);
CREATE TABLE messages(
  seq INTEGER PRIMARY KEY, session TEXT NOT NULL, turn INTEGER NOT NULL, role TEXT NOT NULL, text TEXT NOT NULL,
  at INTEGER NOT NULL
);
";

/// Opens the database of a store. It is never made here: a new one gets its name when it is whole ([`crate::views`]).
pub(crate) fn open(path: &Path) -> Result<Connection, StoreError> {
    let db = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let found: i64 = db.query_row("PRAGMA user_version", [], |r| r.get(0))?;
    match found {
        VERSION => Ok(db),
        0 => Err(StoreError::Unfinished),
        _ if found < VERSION => Err(StoreError::Older),
        _ => Err(StoreError::Newer { found, known: VERSION }),
    }
}

/// How long opening a view may take. It reads no more than the view's log, in a millisecond or two; but a machine that is
/// busy with a build may leave a process waiting for its turn, and a view that is given up is made anew from all packs.
const OPENING: Duration = Duration::from_secs(1);

/// Opens the database of a store, unless another process is in the middle of opening it and does not get on.
///
/// Whoever opens a view that nobody has open holds all of its locks while it reads the log, and one that is suspended there
/// holds them for hours. SQLite waits for such a one in sleeps of its own that no setting shortens.
pub(crate) fn open_in_time(path: &Path) -> Result<Connection, StoreError> {
    in_time(path, open)
}

pub(crate) fn in_time<T: Send + 'static>(
    path: &Path,
    open: impl FnOnce(&Path) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let (send, opened) = std::sync::mpsc::channel();
    let path = path.to_owned();
    let opener = std::thread::Builder::new().spawn({
        let path = path.clone();
        move || drop(send.send(open(&path)))
    });
    opener.map_err(StoreError::io("cannot open", &path))?;
    opened.recv_timeout(OPENING).unwrap_or(Err(StoreError::Stuck))
}

/// Makes an empty database.
pub(crate) fn create(path: &Path) -> Result<Connection, StoreError> {
    // An empty file is an empty database. SQLite gives the log to whoever this belongs to.
    let made = own::open_or_make(path, File::options().append(true).mode(0o644));
    made.map_err(StoreError::io("cannot make", path))?;
    let db = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
    // Kept in the file.
    db.query_row("PRAGMA journal_mode=WAL", [], |r| r.get::<_, String>(0))?;
    db.execute_batch(SCHEMA)?;
    db.pragma_update(None, "user_version", VERSION)?;
    Ok(db)
}

/// An empty view in memory, for `verify`.
pub(crate) fn in_memory() -> Result<Connection, StoreError> {
    let db = Connection::open_in_memory()?;
    db.execute_batch(SCHEMA)?;
    Ok(db)
}

pub(crate) fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    use rusqlite::config::DbConfig;
    let db = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    db.busy_timeout(PATIENCE)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    // Checkpoints of the WAL are piton's own business: packs are synced first.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    db.execute_batch("PRAGMA wal_autocheckpoint=0; PRAGMA synchronous=NORMAL; PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0; PRAGMA cache_size=-16384;")?;
    Ok(db)
}

/// Makes the row of an object.
pub(crate) fn apply_object(db: &Connection, kind: Kind, id: &ObjectId, place: &Place) -> Result<(), StoreError> {
    put_object(db, "INSERT OR REPLACE INTO objects VALUES (?1, ?2, ?3, ?4, ?5)", kind, id, place)
}

/// Makes the row of an object of a small commit. Ids are spread evenly, so that each new row of the large table dirties a
/// page of its own; a small table takes all rows of a commit in a page or two until [`fold`] moves many at once.
pub(crate) fn apply_fresh_object(db: &Connection, kind: Kind, id: &ObjectId, place: &Place) -> Result<(), StoreError> {
    put_object(db, "INSERT OR REPLACE INTO fresh_objects VALUES (?1, ?2, ?3, ?4, ?5)", kind, id, place)
}

/// Moves the rows of fresh objects to the others.
pub(crate) fn fold(db: &Connection) -> Result<(), StoreError> {
    db.execute_batch("INSERT OR REPLACE INTO objects SELECT * FROM fresh_objects; DELETE FROM fresh_objects")?;
    Ok(())
}

fn put_object(db: &Connection, sql: &str, kind: Kind, id: &ObjectId, place: &Place) -> Result<(), StoreError> {
    db.prepare_cached(sql)?.execute(params![&id.0[..], kind as u8, place.pack, place.offset as i64, place.length])?;
    Ok(())
}

/// Makes the rows of a record of the timeline. Records come in order of their numbers.
pub(crate) fn apply(db: &Connection, numbered: &Numbered, place: &Place) -> Result<(), StoreError> {
    let seq = numbered.seq as i64;
    db.prepare_cached("INSERT OR REPLACE INTO records(seq, kind, pack, offset, length) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![seq, numbered.record.kind(), place.pack, place.offset as i64, place.length])?;
    match &numbered.record {
        Record::Workspace(workspace) => {
            let json = serde_json::to_string(workspace).map_err(to_sql)?;
            db.prepare_cached("INSERT OR REPLACE INTO workspaces(seq, json) VALUES (?1, ?2)")?
                .execute(params![seq, json])?;
        }
        Record::Checkpoint(c) => {
            let unsettled = serde_json::to_string(&c.unsettled).map_err(to_sql)?;
            db.prepare_cached(
                "INSERT OR REPLACE INTO checkpoints VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14,
                 ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)",
            )?
            .execute(params![
                seq,
                c.id.as_str(),
                c.parent.as_ref().map(|p| p.as_str()),
                c.line,
                c.created_at.0,
                c.cause.as_str(),
                &c.root.tree.0[..],
                c.root.mode,
                c.changes.created as i64,
                c.changes.modified as i64,
                c.changes.deleted as i64,
                c.skipped as i64,
                unsettled,
                c.operation.as_ref().map(|o| o.as_str()),
                c.place.as_ref().map(|p| p.session.as_str()),
                c.place.as_ref().map(|p| p.turn),
                c.place.as_ref().and_then(|p| p.step),
                c.description,
                serde_json::to_string(&c.owned).map_err(to_sql)?,
                c.lists_changes(),
                c.git.as_ref().map(|id| &id.0[..]),
                serde_json::to_string(&c.held).map_err(to_sql)?,
                serde_json::to_string(&c.settings).map_err(to_sql)?,
                serde_json::to_string(&c.unagreed).map_err(to_sql)?,
            ])?;
            crate::changes::apply_changes(db, seq, &c.owned)?;
            if let Some(place) = &c.place {
                crate::sessions::touch_by_checkpoint(db, &place.session, seq, c)?;
            }
        }
        Record::Name { checkpoint, name } => {
            db.prepare_cached("INSERT OR REPLACE INTO names VALUES (?1, ?2, ?3)")?.execute(params![
                name,
                checkpoint.as_str(),
                seq
            ])?;
        }
        Record::Annotation { checkpoint, text } => {
            db.prepare_cached("INSERT OR REPLACE INTO annotations VALUES (?1, ?2, ?3)")?.execute(params![
                checkpoint.as_str(),
                text,
                seq
            ])?;
        }
        Record::Accepted(accepted) => {
            for at in &accepted.changes {
                let checkpoint = at.checkpoint.as_str();
                for path in &at.paths {
                    // Of a checkpoint that is lost nothing is listed, and nothing of it is taken back.
                    let sql = match accepted.taken_back {
                        true => {
                            "DELETE FROM accepted WHERE found = (SELECT seq FROM checkpoints WHERE id = ?1) AND path = ?2"
                        }
                        false => "INSERT OR REPLACE INTO accepted SELECT seq, ?2, id FROM checkpoints WHERE id = ?1",
                    };
                    db.prepare_cached(sql)?.execute(params![checkpoint, path.as_bytes()])?;
                }
            }
        }
        Record::Operation(o) => {
            db.prepare_cached(
                "INSERT OR REPLACE INTO operations(id, seq, verb, target, about, began_at, before, went, outside, state, also)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            )?
            .execute(params![
                o.id.as_str(),
                seq,
                o.kind.verb().as_str(),
                o.kind.target().as_ref().map(OperationTarget::as_str),
                o.about,
                o.began_at.0,
                o.before.as_str(),
                o.conversation.as_ref().map(|c| serde_json::to_string(&c.went)).transpose().map_err(to_sql)?,
                !o.outside.is_empty(),
                OperationState::Pending.as_str(),
                serde_json::to_string(o.kind.also()).map_err(to_sql)?
            ])?;
        }
        Record::Ended { operation, outcome, ended_at } => {
            let (after, before, why) = match outcome {
                Outcome::Done { after, before } => (Some(after.as_str()), before.as_ref().map(|b| b.as_str()), None),
                Outcome::RolledBack { why } => (None, None, Some(why.as_str())),
                Outcome::GivenUp(given_up) => (None, None, Some(given_up.describe())),
            };
            let state = OperationState::from(outcome);
            db.prepare_cached(
                "UPDATE operations SET state = ?2, after = ?3, before = coalesce(?4, before), why = ?5, ended_at = ?6
                 WHERE id = ?1",
            )?
            .execute(params![operation.as_str(), state.as_str(), after, before, why, ended_at.0])?;
            if state == OperationState::Done {
                crate::sessions::apply_went(db, seq, operation, *ended_at)?;
            }
        }
        Record::Session(_)
        | Record::Turn(_)
        | Record::Step(_)
        | Record::StepEnded(_)
        | Record::TurnEnded(_)
        | Record::SessionEnded { .. }
        | Record::Gap(_)
        | Record::Message(_)
        | Record::Imported { .. } => crate::sessions::apply(db, seq, &numbered.record)?,
    }
    Ok(())
}

pub(crate) fn to_sql(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

pub(crate) fn from_sql(error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
}
