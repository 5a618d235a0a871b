//! Searching by words. The index of words is made when somebody searches, from the rows that are new since the last time,
//! so that no capture pays for it; it is only a cache and no record knows of it.
//!
//! It is a database of its own beside the view: whoever searches writes to it, and nobody who captures may wait for that.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;

use piton_host::own;
use piton_model::Timestamp;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};

use crate::Reader;
use crate::error::StoreError;
use crate::query::known;

/// What a search found.
#[derive(Clone, Debug)]
pub struct Hit {
    /// The number of the record that it is of.
    pub seq: u64,
    /// What the text is.
    pub kind: HitKind,
    /// The text, the words that were found between `\u{1}` and `\u{2}`.
    pub text: String,
    /// When it was recorded, where that is known.
    pub at: Option<Timestamp>,
}

/// The kinds of texts that can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HitKind {
    /// What the user said.
    Prompt,
    /// What a tool did.
    Step,
    /// A checkpoint's name.
    Name,
    /// A note on a checkpoint.
    Annotation,
    /// The paths that a checkpoint changed.
    Path,
    /// What a checkpoint is of.
    Description,
}

impl HitKind {
    /// The word in the index and in every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Step => "step",
            Self::Name => "name",
            Self::Annotation => "annotation",
            Self::Path => "path",
            Self::Description => "description",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        let all = [Self::Prompt, Self::Step, Self::Name, Self::Annotation, Self::Path, Self::Description];
        all.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// Every text that can be found, with its record: one row a text.
const TEXTS: &str = "
SELECT seq, 'prompt', prompt FROM turns WHERE prompt IS NOT NULL AND seq > ?1
UNION ALL SELECT seq, 'step',
  CASE WHEN command IS NULL OR instr(summary, command) THEN summary ELSE summary || char(10) || command END
  FROM steps WHERE seq > ?1
UNION ALL SELECT seq, 'name', name FROM names WHERE seq > ?1
UNION ALL SELECT seq, 'annotation', text FROM annotations WHERE seq > ?1
UNION ALL SELECT seq, 'path', group_concat(DISTINCT CAST(path AS TEXT)) FROM changes WHERE seq > ?1 GROUP BY seq
UNION ALL SELECT seq, 'description', description FROM checkpoints
  WHERE description IS NOT NULL AND cause NOT IN ('prompt', 'before-tool', 'after-tool') AND seq > ?1";

/// The index of words, beside the view.
pub(crate) const WORDS: &str = "words.db";

impl Reader {
    /// Finds texts that have all the words, newest first. Words match from their beginning: `auth` finds `author`.
    ///
    /// # Errors
    /// Where the database refuses.
    pub fn search(&self, words: &[String], limit: u64) -> Result<Vec<Hit>, StoreError> {
        let wanted: Vec<String> = words
            .iter()
            .filter(|word| word.chars().any(char::is_alphanumeric))
            .map(|word| format!("\"{}\"*", word.replace('"', "\"\"")))
            .collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        if let Err(error) = self.index_words(true) {
            // Only a cache: made anew where it is damaged, and for this search alone where it cannot be kept.
            let detach = || drop(self.db().execute_batch("DETACH index_of_words"));
            detach();
            let is_damaged = error.is_damaged_database();
            if is_damaged {
                let _ = std::fs::remove_file(self.folder().join(WORDS));
            }
            if !is_damaged || self.index_words(true).is_err() {
                detach();
                self.index_words(false)?;
            }
        }
        let db = self.db();
        let mut query = db.prepare_cached(
            "SELECT s.seq, s.kind, snippet(words, 2, char(1), char(2), '…', 24), c.created_at, t.at, p.opened / 1000000
             FROM words s
             LEFT JOIN checkpoints c ON c.seq = s.seq
             LEFT JOIN turns t ON t.seq = s.seq
             LEFT JOIN steps p ON p.seq = s.seq
             WHERE words MATCH ?1 ORDER BY CAST(s.seq AS INTEGER) DESC LIMIT ?2",
        )?;
        let hits = query.query_map(params![wanted.join(" "), limit as i64], |row| {
            let at: [Option<i64>; 3] = [row.get(3)?, row.get(4)?, row.get(5)?];
            Ok(Hit {
                seq: row.get::<_, i64>(0)? as u64,
                kind: known(row, 1, HitKind::from_word)?,
                // A path need not be UTF-8.
                text: String::from_utf8_lossy(row.get_ref(2)?.as_bytes_or_null()?.unwrap_or_default()).into_owned(),
                at: at.into_iter().flatten().next().map(Timestamp),
            })
        })?;
        Ok(hits.collect::<Result<_, _>>()?)
    }

    /// Attaches the index of words and brings it up to date. One that is not kept is in memory.
    fn index_words(&self, is_kept: bool) -> Result<(), StoreError> {
        let db = self.db();
        let path = self.folder().join(WORDS);
        let attached: bool = db.query_row(
            "SELECT EXISTS (SELECT 1 FROM pragma_database_list WHERE name = 'index_of_words')",
            [],
            |r| r.get(0),
        )?;
        if !attached && !is_kept {
            db.execute_batch("ATTACH ':memory:' AS index_of_words")?;
        } else if !attached {
            // An empty file is an empty database.
            let made = own::open_or_make(&path, std::fs::File::options().append(true).mode(0o600));
            made.map_err(StoreError::io("cannot make", &path))?;
            let path = ToSqlOutput::Borrowed(ValueRef::Text(path.as_os_str().as_bytes()));
            db.execute("ATTACH ?1 AS index_of_words", [path])?;
            db.execute_batch("PRAGMA index_of_words.synchronous=OFF")?;
        }
        db.execute_batch(
            "CREATE TABLE IF NOT EXISTS index_of_words.searched(generation INTEGER NOT NULL, seq INTEGER NOT NULL);
             CREATE VIRTUAL TABLE IF NOT EXISTS index_of_words.words USING fts5(seq UNINDEXED, kind UNINDEXED, text)",
        )?;
        // Deferred: a transaction that says from the beginning that it will write would lock the view too.
        let transaction = rusqlite::Transaction::new_unchecked(&db, rusqlite::TransactionBehavior::Deferred)?;
        let searched = db
            .query_row("SELECT generation, seq FROM searched", [], |r| Ok((r.get::<_, i64>(0)?, r.get::<_, i64>(1)?)))
            .optional()?;
        let last: i64 = db.query_row("SELECT coalesce(max(seq), 0) FROM records", [], |r| r.get(0))?;
        let generation = self.generation() as i64;
        let done = searched.filter(|(of, seq)| *of == generation && *seq <= last).map(|(_, seq)| seq);
        if done != Some(last) {
            if done.is_none() {
                db.execute("DELETE FROM words", [])?;
            }
            db.execute(&format!("INSERT INTO words(seq, kind, text) {TEXTS}"), [done.unwrap_or(0)])?;
            db.execute("DELETE FROM searched", [])?;
            db.execute("INSERT INTO searched VALUES (?1, ?2)", [generation, last])?;
        }
        transaction.commit()?;
        Ok(())
    }
}
