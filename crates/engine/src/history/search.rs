//! Searching prompts, names, notes, what tools did and which files changed.

use piton_store::{Hit, HitKind, StoreError};

use crate::view::{Found, SearchResult};
use crate::workspace::History;

impl History {
    /// Finds texts that have all the words, newest first; a word may be a part of another one.
    ///
    /// # Errors
    /// Where the store refuses.
    pub fn search(&self, words: &[String], limit: u64) -> Result<SearchResult, StoreError> {
        let hits = self.store.search(words, limit)?;
        let mut found = hits.into_iter().map(|hit| self.found(hit)).collect::<Result<Vec<_>, _>>()?;
        found.retain(|hit| !hit.text.is_empty());
        Ok(SearchResult { words: words.to_vec(), found })
    }

    fn found(&self, hit: Hit) -> Result<Found, StoreError> {
        let Hit { seq, kind, text, marks, at } = hit;
        let mut found = Found { kind, target: None, session: None, text, marks, at };
        match found.kind {
            HitKind::Prompt => {
                if let Some((session, turn)) = self.store.turn_numbered(seq)? {
                    found.target = Some(format!("{}:t{turn}", session.short()));
                    found.session = Some(session);
                }
            }
            HitKind::Step => {
                if let Some(at) = self.store.step_numbered(seq)? {
                    found.target = Some(format!("{}:t{}.{}", at.session.short(), at.turn, at.step));
                    found.session = Some(at.session);
                }
            }
            kind => {
                let row = match kind {
                    HitKind::Name | HitKind::Annotation => self.store.noted_on(seq)?,
                    _ => self.store.checkpoint_numbered(seq)?,
                };
                // A replaced annotation is still in the index, and belongs to nothing.
                if row.is_none() && kind == HitKind::Annotation {
                    found.text.clear();
                }
                if let Some(row) = row {
                    found.target = Some(row.checkpoint.id.short().to_owned());
                    found.session = row.checkpoint.place.map(|place| place.session);
                    found.at = found.at.or(Some(row.checkpoint.created_at));
                }
            }
        }
        Ok(found)
    }
}
