//! Searching by words. The index of words is made when somebody searches, from the rows that are new since the last time,
//! so that no capture pays for it; it is only a cache and no record knows of it.

use piton_model::Timestamp;
use rusqlite::params;

use crate::Store;
use crate::error::StoreError;

/// What a search found.
#[derive(Clone, Debug)]
pub struct Hit {
    /// The number of the record that it is of.
    pub seq: u64,
    /// What the text is: `prompt`, `step`, `name`, `annotation`, `path`, `description`.
    pub kind: String,
    /// The text, the words that were found between `\u{1}` and `\u{2}`.
    pub text: String,
    /// When it was recorded, where that is known.
    pub at: Option<Timestamp>,
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

impl Store {
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
        self.index_words()?;
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
                kind: row.get(1)?,
                // A path need not be UTF-8.
                text: String::from_utf8_lossy(row.get_ref(2)?.as_bytes_or_null()?.unwrap_or_default()).into_owned(),
                at: at.into_iter().flatten().next().map(Timestamp),
            })
        })?;
        Ok(hits.collect::<Result<_, _>>()?)
    }

    fn index_words(&self) -> Result<(), StoreError> {
        let db = self.db();
        db.execute_batch("CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(seq UNINDEXED, kind UNINDEXED, text)")?;
        let transaction = rusqlite::Transaction::new_unchecked(&db, rusqlite::TransactionBehavior::Immediate)?;
        let done: i64 = self.meta("searched")?.and_then(|seq| seq.parse().ok()).unwrap_or(0);
        let last: i64 = db.query_row("SELECT coalesce(max(seq), 0) FROM records", [], |r| r.get(0))?;
        if last > done {
            db.execute(&format!("INSERT INTO words(seq, kind, text) {TEXTS}"), [done])?;
            db.execute("INSERT OR REPLACE INTO meta VALUES ('searched', ?1)", [last.to_string()])?;
        }
        transaction.commit()?;
        Ok(())
    }
}
