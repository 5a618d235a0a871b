//! Searching prompts, names, notes, what tools did and which files changed.

use piton_store::{Hit, HitKind, StoreError};

use crate::view::{Found, SearchResult};
use crate::workspace::History;

impl History {
    /// Finds texts that contain all the words, newest first.
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
        let (text, marks) = marks(&hit.text);
        let mut found = Found { kind: hit.kind, target: None, session: None, text, marks, at: hit.at };
        match found.kind {
            HitKind::Prompt => {
                if let Some((session, turn)) = self.store.turn_numbered(hit.seq)? {
                    found.target = Some(format!("{}:t{turn}", session.short()));
                    found.session = Some(session);
                }
            }
            HitKind::Step => {
                if let Some(at) = self.store.step_numbered(hit.seq)? {
                    found.target = Some(format!("{}:t{}.{}", at.session.short(), at.turn, at.step));
                    found.session = Some(at.session);
                }
            }
            kind => {
                let row = match kind {
                    HitKind::Name | HitKind::Annotation => self.store.noted_on(hit.seq)?,
                    _ => self.store.checkpoint_numbered(hit.seq)?,
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

/// A snippet without its marks, and their positions.
fn marks(snippet: &str) -> (String, Vec<(usize, usize)>) {
    let mut text = String::with_capacity(snippet.len());
    let (mut marks, mut from) = (Vec::new(), None);
    for c in snippet.chars() {
        match c {
            '\u{1}' => from = Some(text.len()),
            '\u{2}' => marks.extend(from.take().map(|from| (from, text.len()))),
            c => text.push(c),
        }
    }
    (text, marks)
}

#[cfg(test)]
mod tests {
    #[test]
    fn marks_become_places() {
        assert_eq!(super::marks("a \u{1}b\u{2} c"), ("a b c".into(), vec![(2, 3)]));
        assert_eq!(super::marks("\u{2}x\u{1}"), ("x".into(), vec![]));
    }
}
