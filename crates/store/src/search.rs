//! Searching for parts of texts. The index of their trigrams is made when somebody searches, from the rows that are new
//! since the last time, so that no capture pays for it; it is only a cache and no record knows of it. What is shorter than
//! three characters is looked for in all texts.
//!
//! It is a database of its own beside the view: whoever searches writes to it, and nobody who captures may wait for that.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;

use piton_host::own;
use piton_model::Timestamp;
use rusqlite::OptionalExtension;
use rusqlite::types::{ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};

use crate::Reader;
use crate::database::from_sql;
use crate::error::StoreError;
use crate::query::known;

/// What a search found.
#[derive(Clone, Debug)]
pub struct Hit {
    /// The number of the record that it is of.
    pub seq: u64,
    /// What the text is.
    pub kind: HitKind,
    /// The text, or the part of it around the first thing that was found.
    pub text: String,
    /// The byte ranges in `text` of what was found, in order.
    pub marks: Vec<(usize, usize)>,
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

/// The layout of the index; one of another layout is made anew.
const LAYOUT: i64 = 1;

/// The fewest characters that the index can look up.
const TRIGRAM: usize = 3;

impl Reader {
    /// Finds texts that have all the words, newest first; a word may be a part of another one. Case does not matter.
    ///
    /// # Errors
    /// Where the database refuses.
    pub fn search(&self, words: &[String], limit: u64) -> Result<Vec<Hit>, StoreError> {
        let words = words.iter().filter(|word| !word.is_empty());
        let (long, short): (Vec<&String>, Vec<&String>) = words.partition(|word| word.chars().count() >= TRIGRAM);
        if long.is_empty() && short.is_empty() {
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
        let (text, matches) = match long.is_empty() {
            true => ("s.text", ""),
            false => ("highlight(words, 2, char(1), char(2))", "WHERE words MATCH ?1"),
        };
        let phrases: Vec<String> = long.iter().map(|word| format!("\"{}\"", word.replace('"', "\"\""))).collect();
        let short: Vec<String> = short.iter().map(|word| word.to_lowercase()).collect();
        let db = self.db();
        let mut query = db.prepare_cached(&format!(
            "SELECT s.seq, s.kind, {text}, c.created_at, t.at, p.opened / 1000000
             FROM words s
             LEFT JOIN checkpoints c ON c.seq = s.seq
             LEFT JOIN turns t ON t.seq = s.seq
             LEFT JOIN steps p ON p.seq = s.seq
             {matches} ORDER BY CAST(s.seq AS INTEGER) DESC"
        ))?;
        let mut rows = match long.is_empty() {
            true => query.query([])?,
            false => query.query([phrases.join(" ")])?,
        };
        let mut hits = Vec::new();
        while let Some(row) = rows.next()?.filter(|_| (hits.len() as u64) < limit) {
            // A path need not be UTF-8.
            let text =
                String::from_utf8_lossy(row.get_ref(2)?.as_bytes_or_null().map_err(from_sql)?.unwrap_or_default());
            let (text, mut marks) = unmarked(&text);
            if !short.iter().all(|word| mark(&text, word, &mut marks)) {
                continue;
            }
            let (text, marks) = around_first(text, marks);
            let at: [Option<i64>; 3] = [row.get(3)?, row.get(4)?, row.get(5)?];
            hits.push(Hit {
                seq: row.get::<_, i64>(0)? as u64,
                kind: known(row, 1, HitKind::from_word)?,
                text,
                marks,
                at: at.into_iter().flatten().next().map(Timestamp),
            });
        }
        Ok(hits)
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
        let layout: i64 = db.query_row("PRAGMA index_of_words.user_version", [], |row| row.get(0))?;
        if layout != LAYOUT {
            // Of an earlier piton, which knew whole words alone.
            db.execute_batch(&format!(
                "DROP TABLE IF EXISTS index_of_words.searched; DROP TABLE IF EXISTS index_of_words.words;
                 PRAGMA index_of_words.user_version = {LAYOUT}"
            ))?;
        }
        db.execute_batch(
            "CREATE TABLE IF NOT EXISTS index_of_words.searched(generation INTEGER NOT NULL, seq INTEGER NOT NULL);
             CREATE VIRTUAL TABLE IF NOT EXISTS index_of_words.words
             USING fts5(seq UNINDEXED, kind UNINDEXED, text, tokenize = 'trigram remove_diacritics 1')",
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

/// Byte ranges of a text.
type Marks = Vec<(usize, usize)>;

/// A text without the marks that the index put into it, and where they were.
fn unmarked(marked: &str) -> (String, Marks) {
    let mut text = String::with_capacity(marked.len());
    let (mut marks, mut from) = (Vec::new(), None);
    for c in marked.chars() {
        match c {
            '\u{1}' => from = Some(text.len()),
            '\u{2}' => marks.extend(from.take().map(|from| (from, text.len()))),
            c => text.push(c),
        }
    }
    (text, marks)
}

/// Adds every place of a word in lower case that no mark covers yet; whether there is one, covered or not.
fn mark(text: &str, word: &str, marks: &mut Marks) -> bool {
    let known = marks.len();
    let mut found = false;
    let mut next = 0;
    for (at, _) in text.char_indices() {
        let Some(end) = end_of(&text[at..], word).map(|length| at + length).filter(|_| at >= next) else { continue };
        found = true;
        next = end;
        if marks[..known].iter().all(|(from, to)| end <= *from || *to <= at) {
            marks.push((at, end));
        }
    }
    marks.sort_unstable();
    found
}

/// How long what a text begins with is, where that is a word in lower case.
fn end_of(text: &str, word: &str) -> Option<usize> {
    let mut rest = word;
    for (at, c) in text.char_indices() {
        if rest.is_empty() {
            return Some(at);
        }
        for lower in c.to_lowercase() {
            rest = rest.strip_prefix(lower)?;
        }
    }
    rest.is_empty().then_some(text.len())
}

/// The part of a text around its first mark.
fn around_first(text: String, marks: Marks) -> (String, Marks) {
    /// Characters before the first mark.
    const BEFORE: usize = 60;
    /// Characters from there on.
    const LENGTH: usize = 200;
    let first = marks.first().map_or(0, |(from, _)| *from);
    let from = text[..first].char_indices().rev().nth(BEFORE - 1).map_or(0, |(at, _)| at);
    // No word is cut, where there are words.
    let is_within = text[..from].chars().next_back().is_some_and(|c| !c.is_whitespace());
    let next = text[from..first].char_indices().find(|(_, c)| c.is_whitespace()).filter(|_| is_within);
    let from = next.map_or(from, |(at, c)| from + at + c.len_utf8());
    let to = text[from..].char_indices().nth(LENGTH).map_or(text.len(), |(at, _)| from + at);
    let (begins, ends) = (if from > 0 { "…" } else { "" }, if to < text.len() { "…" } else { "" });
    let shift = |at: usize| at.clamp(from, to) - from + begins.len();
    let marks =
        marks.iter().filter(|(begin, _)| *begin < to).map(|(begin, end)| (shift(*begin), shift(*end))).collect();
    (format!("{begins}{}{ends}", &text[from..to]), marks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_become_places() {
        assert_eq!(unmarked("a \u{1}b\u{2} c"), ("a b c".into(), vec![(2, 3)]));
        assert_eq!(unmarked("\u{2}x\u{1}"), ("x".into(), vec![]));
    }

    #[test]
    fn a_short_word_is_found_anywhere_and_in_any_case() {
        let found = |text: &str, word: &str| {
            let mut marks = Vec::new();
            mark(text, word, &mut marks).then_some(marks)
        };
        assert_eq!(found("aBab", "ab"), Some(vec![(0, 2), (2, 4)]));
        assert_eq!(found("aaa", "aa"), Some(vec![(0, 2)]));
        assert_eq!(found("修复登录", "登录"), Some(vec![(6, 12)]));
        assert_eq!(found("ÄX", "ä"), Some(vec![(0, 2)]));
        assert_eq!(found("abc", "d"), None);
        let mut marks = vec![(0, 3)];
        assert!(mark("abc b", "b", &mut marks));
        assert_eq!(marks, [(0, 3), (4, 5)]);
    }

    #[test]
    fn a_long_text_is_cut_around_the_first_place() {
        let text = format!("{}needle{}", "ö".repeat(100), "x".repeat(400));
        let (text, marks) = around_first(text, vec![(200, 206), (600, 601)]);
        assert_eq!((&text[marks[0].0..marks[0].1], marks.len()), ("needle", 1));
        assert_eq!((text.chars().count(), text.starts_with('…'), text.ends_with('…')), (202, true, true));
        let text = format!("{}needle", "one two three ".repeat(10));
        let (cut, _) = around_first(text, vec![(140, 146)]);
        assert!(cut.starts_with("…one ") || cut.starts_with("…two ") || cut.starts_with("…three "), "{cut}");
        assert_eq!(around_first("all".into(), vec![(0, 3)]), ("all".into(), vec![(0, 3)]));
    }
}
