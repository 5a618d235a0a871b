//! The sessions of a workspace as a list, with a title for those that nobody named.

use std::collections::{HashMap, HashSet};

use piton_model::{Session, SessionId};
use piton_store::{SessionRow, StoreError};

use crate::history::together::{counts, net};
use crate::view::{SessionView, Sessions};
use crate::workspace::History;

impl History {
    /// Every session, the one that reported last first.
    ///
    /// # Errors
    /// Where the store refuses.
    pub fn sessions(&self) -> Result<Sessions, StoreError> {
        Ok(Sessions { sessions: self.session_views(|_| true)? })
    }

    /// The sessions that match, the one that reported last first.
    pub(crate) fn session_views(&self, is_wanted: impl Fn(&SessionId) -> bool) -> Result<Vec<SessionView>, StoreError> {
        let turns = self.store.last_turns()?;
        let checkpoints = self.store.checkpoint_counts()?;
        let gaps = self.store.gap_counts()?;
        let changes = self.store.changes_by_session(&is_wanted)?;
        let rows = self.store.sessions()?;
        let titles = Titles::of(&rows, self.store.first_prompts()?);
        let current = self.here()?;
        let mut running: HashSet<SessionId> = HashSet::new();
        for row in rows.iter().filter(|row| self.is_live(row)) {
            if self.store.last_turn(&row.session.id)?.is_some_and(|turn| turn.ending.is_none()) {
                running.insert(row.session.id.clone());
            }
        }
        let view = |row: SessionRow| {
            let live = self.is_live(&row);
            let session = row.session;
            let id = &session.id;
            let of_paths = changes.get(id).into_iter().flat_map(HashMap::values);
            let inherited = session.origin.as_ref().map_or(0, |origin| origin.turn.saturating_sub(1));
            let own = turns.get(id).map_or(0, |number| u32::try_from(*number).unwrap_or(u32::MAX));
            SessionView {
                title: titles.get(id),
                started_at: session.started_at,
                last_at: row.last_at,
                ended_at: row.ended_at,
                live,
                running: running.contains(id),
                turns: own.max(inherited),
                checkpoints: checkpoints.get(id).copied().unwrap_or(0),
                changes: counts(of_paths.filter_map(|(first, last)| net(*first, *last))),
                gaps: gaps.get(id).copied().unwrap_or(0),
                origin: session.origin.as_ref().map(Into::into),
                rank: session.rank,
                current: current.as_ref() == Some(id),
                id: session.id,
                agent: session.agent,
                agent_id: session.agent_id,
                name: session.name,
                transcript: session.transcript,
            }
        };
        Ok(rows.into_iter().filter(|row| is_wanted(&row.session.id)).map(view).collect())
    }
}

/// Titles of sessions that nobody named.
struct Titles {
    prompts: HashMap<SessionId, String>,
    /// The name and the parent of each.
    known: HashMap<SessionId, (Option<String>, Option<SessionId>)>,
}

impl Titles {
    fn of(rows: &[SessionRow], prompts: HashMap<SessionId, String>) -> Self {
        let known = rows.iter().map(|row| {
            let Session { id, name, origin, .. } = &row.session;
            (id.clone(), (name.clone(), origin.as_ref().map(|origin| origin.parent.clone())))
        });
        Self { prompts, known: known.collect() }
    }

    /// The first line of its first prompt; for a branch, its parent's title, marked as a branch.
    fn get(&self, id: &SessionId) -> Option<String> {
        // A tampered record could form a cycle.
        const GENERATIONS: usize = 1000;
        let mut at = id;
        for generation in 0..GENERATIONS {
            let (name, parent) = self.known.get(at)?;
            let marked = |text: &str| if generation == 0 { text.to_owned() } else { format!("{text} (branch)") };
            match (name.as_deref().filter(|_| generation > 0), parent) {
                (Some(name), _) => return Some(marked(name)),
                (None, Some(parent)) => at = parent,
                (None, None) => {
                    let prompt = self.prompts.get(at)?;
                    return prompt.lines().find(|line| !line.trim().is_empty()).map(marked);
                }
            }
        }
        None
    }
}
