//! Notes of what a view knew and the packs no longer have: a pack was cut off or deleted.
//!
//! The view is made anew from what is left, and with it goes the last that knew of the rest. So it is noted first, in a file
//! that `verify` names until somebody deletes it.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use piton_host::{clock, own};
use piton_model::{CheckpointId, SessionId};
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use crate::database::to_sql;
use crate::error::StoreError;
use crate::rebuild::Told;
use crate::settle::aside_folder;
use crate::transactions::pack_length;

/// How the name of such a note ends.
const GONE: &str = "gone";

/// Bytes of a pack that are gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Gone {
    pub pack: u32,
    pub from: u64,
    pub to: u64,
    /// The checkpoints whose records were there, newest first.
    pub checkpoints: Vec<CheckpointId>,
    /// The last turn of each session that began there: its number is not given to another.
    #[serde(default)]
    pub turns: Vec<(SessionId, u32)>,
}

impl Gone {
    /// What a file that is set aside notes, if it is such a note.
    pub(crate) fn noted_in(path: &Path) -> Option<Self> {
        path.extension().filter(|end| *end == GONE)?;
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }

    /// Whether all that it names is there again: somebody put the pack back, or it was not to be read for a moment when this
    /// was noted. Bytes without a checkpoint cannot be told from others at their place.
    pub(crate) fn is_back(&self, db: &Connection) -> bool {
        let is_there = |id: &CheckpointId| {
            let sql = "SELECT EXISTS (SELECT 1 FROM checkpoints WHERE id = ?1)";
            db.query_row(sql, [id.as_str()], |r| r.get(0)).unwrap_or(false)
        };
        !self.checkpoints.is_empty() && self.checkpoints.iter().all(is_there)
    }
}

/// Notes, durably, what is gone of what a view knows. Returns the number that would have come after the records that are gone:
/// it is not given again, so that the gap tells that something is missing there.
pub(crate) fn note(folder: &Path, told: &Told) -> Result<Option<u64>, StoreError> {
    let is_other_run = told.boot != clock::boot_id();
    let mut next = None;
    for (pack, to, synced) in &told.packs {
        let from = pack_length(folder, *pack)?;
        // What was never synced a power cut may take: nobody was told that it is durable.
        let is_trace = is_other_run && from >= *synced;
        if from >= *to || is_trace {
            continue;
        }
        // A view that is itself damaged may state any length; what it has no rows for it never knew.
        if let Some(lost) = lost_rows(&told.db, *pack, from)? {
            next = next.max(lost.next);
            write(folder, &Gone { pack: *pack, from, to: *to, checkpoints: lost.checkpoints, turns: lost.turns })?;
        }
    }
    Ok(next)
}

/// What a view knows of bytes that are gone.
struct LostRows {
    checkpoints: Vec<CheckpointId>,
    turns: Vec<(SessionId, u32)>,
    next: Option<u64>,
}

/// The rows of what lies in a pack beyond an offset; none where no row at all lies there.
fn lost_rows(db: &Connection, pack: u32, from: u64) -> Result<Option<LostRows>, StoreError> {
    let has_rows = "SELECT EXISTS (SELECT 1 FROM records WHERE pack = ?1 AND offset + length > ?2)
                        OR EXISTS (SELECT 1 FROM all_objects WHERE pack = ?1 AND offset + length > ?2)";
    let checkpoints = "SELECT c.id FROM records r JOIN checkpoints c ON c.seq = r.seq
                       WHERE r.pack = ?1 AND r.offset + r.length > ?2 ORDER BY c.seq DESC";
    let at = params![pack, from as i64];
    // Where the rows cannot be read, its length is all that it still says.
    if let Ok(false) = db.query_row(has_rows, at, |r| r.get(0)) {
        return Ok(None);
    }
    let ids = db.prepare(checkpoints).and_then(|mut query| {
        let rows = query.query_map(at, |r| r.get::<_, String>(0))?;
        rows.collect::<Result<Vec<_>, _>>()
    });
    let checkpoints = ids.unwrap_or_default().iter().filter_map(|id| id.parse().ok()).collect();
    let turns = "SELECT t.session, max(t.number) FROM records r JOIN turns t ON t.seq = r.seq
                 WHERE r.pack = ?1 AND r.offset + r.length > ?2 GROUP BY t.session";
    let turns = db.prepare(turns).and_then(|mut query| {
        let rows = query.query_map(at, |r| Ok((r.get::<_, String>(0)?, r.get(1)?)))?;
        rows.collect::<Result<Vec<_>, _>>()
    });
    let turns = turns.unwrap_or_default().into_iter().filter_map(|(id, turn)| Some((id.parse().ok()?, turn))).collect();
    let last = "SELECT max(seq) FROM records WHERE pack = ?1 AND offset + length > ?2";
    let last: Option<i64> = db.query_row(last, at, |r| r.get(0)).unwrap_or_default();
    let next = last.and_then(|last| u64::try_from(last).ok()).map(|last| last + 1);
    Ok(Some(LostRows { checkpoints, turns, next }))
}

fn write(folder: &Path, gone: &Gone) -> Result<(), StoreError> {
    let aside = aside_folder(folder)?;
    let path = aside.join(format!("{:06}-{}-{}.{GONE}", gone.pack, gone.from, gone.to));
    let json = serde_json::to_vec(gone).map_err(to_sql)?;
    let file = own::open_or_make(&path, File::options().write(true).truncate(true).mode(0o600));
    file.and_then(|mut file| {
        file.write_all(&json)?;
        file.sync_all()
    })
    .map_err(StoreError::io("cannot write", &path))?;
    piton_host::disk::sync_folder(&aside).map_err(StoreError::io("cannot sync", &aside))
}
