//! What a session changed, change by change.

use std::collections::{HashMap, hash_map};
use std::sync::Arc;

use piton_model::diff::Counts;
use piton_model::ownership::Owner;
use piton_model::{Cause, StepRef, TurnContext};
use piton_store::CheckpointRow;

use crate::history::changes::OwnedChange;
use crate::history::target::TargetError;
use crate::history::together::{Together, file};
use crate::history::turns::is_unlisted;
use crate::view::{NumberedChange, SessionChanges};
use crate::workspace::History;

/// Which changes to list.
#[derive(Clone, Debug, Default)]
pub struct ChangesOptions {
    /// The session: the beginning of its id or of the agent's own, or its name; the one that reported last where not
    /// given.
    pub session: Option<String>,
    /// The user's own changes too, as far as they were found in the session. They have no number.
    pub all: bool,
}

impl History {
    /// The changes of a session; of the one that reported last if none is named.
    ///
    /// # Errors
    /// Where there is no such session, or the store refuses.
    pub fn changes(&self, options: &ChangesOptions) -> Result<SessionChanges, TargetError> {
        let id = &self.session_meant(options.session.as_deref(), "changes")?.session.id;
        let lineage = self.lineage(id)?;
        let is_here = |place: &TurnContext| lineage.holds(&place.session, place.turn);
        let rows = self.store.changes_about(lineage.sessions())?;
        let mut found_at: HashMap<u64, Arc<CheckpointRow>> = HashMap::new();
        let mut tools: HashMap<StepRef, String> = HashMap::new();
        for session in lineage.sessions() {
            found_at.extend(self.store.checkpoints_of(session)?.into_iter().map(|row| (row.seq, Arc::new(row))));
            tools.extend(self.store.steps(session, None)?.into_iter().map(|row| (row.step.at, row.step.tool)));
        }
        // Another session's checkpoint may have found it.
        for row in rows.iter().filter(|row| lineage.may_own(&row.owner)) {
            if let hash_map::Entry::Vacant(at) = found_at.entry(row.seq) {
                self.store.checkpoint_numbered(row.seq)?.map(|row| at.insert(Arc::new(row)));
            }
        }
        let mut changes: Vec<NumberedChange> = Vec::new();
        let mut chosen: Vec<OwnedChange> = Vec::new();
        let mut own = Vec::new();
        let mut numbers = 1..;
        for row in &rows {
            let Some(checkpoint) = found_at.get(&row.seq) else { continue };
            let place = checkpoint.checkpoint.place.as_ref();
            let is_yours = row.owner == Owner::You && place.is_some_and(is_here);
            let is_own = lineage.may_own(&row.owner);
            let is_wanted = is_own || (options.all && is_yours);
            if !is_wanted {
                continue;
            }
            let step = match &row.owner {
                Owner::Step { step, .. } => Some(step),
                _ => None,
            };
            let turn = row.owner.turn().map(|(_, turn)| turn);
            own.push(is_own.then_some(row));
            chosen.push(OwnedChange {
                path: row.path.clone(),
                owner: row.owner.clone(),
                doubt: row.doubt,
                kind: row.kind,
                found_at: Some(checkpoint.clone()),
            });
            changes.push(NumberedChange {
                number: if is_own { numbers.next() } else { None },
                change: file(row),
                at: checkpoint.checkpoint.created_at,
                turn: turn.or(place.map(|place| place.turn)).unwrap_or(0),
                step: step.map(|step| step.step),
                tool: step.and_then(|step| tools.get(step)).cloned(),
                checkpoint: Some(checkpoint.checkpoint.id.clone()),
                undone: false,
            });
        }
        let in_effect = self.in_effect(&chosen.iter().collect::<Vec<_>>())?;
        let mut together = Together::default();
        for ((change, own), in_effect) in changes.iter_mut().zip(own).zip(in_effect) {
            change.undone = !in_effect;
            own.filter(|_| in_effect).into_iter().for_each(|row| together.add(row));
        }
        // Changes that are not captured yet come last, with the numbers that an undo uses.
        for change in self.uncaptured_now()? {
            let is_own = lineage.may_own(&change.owner);
            let is_yours = options.all && change.owner == Owner::You;
            if !(is_own || is_yours) {
                continue;
            }
            let step = match &change.owner {
                Owner::Step { step, .. } => Some(step),
                _ => None,
            };
            if is_own {
                together.note(&change.path, change.kind, &change.owner, change.doubt);
            }
            changes.push(NumberedChange {
                number: if is_own { numbers.next() } else { None },
                at: self.environment.clock.now(),
                turn: change.owner.turn().map_or(0, |(_, turn)| turn),
                step: step.map(|step| step.step),
                tool: step.and_then(|step| tools.get(step)).cloned(),
                checkpoint: None,
                undone: false,
                change: change.file(),
            });
        }
        let mut unlisted = Counts::default();
        let mut yours_unlisted = Counts::default();
        for row in found_at.values().filter(|row| is_unlisted(row)) {
            match (&row.checkpoint.place, row.checkpoint.cause) {
                (Some(place), _) if !is_here(place) => {}
                (Some(_), Cause::AfterTool) => unlisted += row.checkpoint.changes,
                (Some(_), _) if options.all && !self.may_be_a_tools(row)? => yours_unlisted += row.checkpoint.changes,
                _ => {}
            }
        }
        let summary = together.counts();
        let session = self.session_views(|one| one == id)?.pop();
        let session = session.ok_or_else(|| TargetError::NoSession(id.to_string()))?;
        let unknown = self.unknown_turns(&lineage, false)?;
        Ok(SessionChanges { session, changes, summary, unlisted, yours_unlisted, unknown })
    }
}
