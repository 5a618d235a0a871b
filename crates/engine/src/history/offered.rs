//! What a shell offers where a person types a target, a session or a number: from the store alone.

use piton_model::ownership::Owner;
use piton_model::target::split_session;
use piton_model::{Cause, When};
use piton_store::StoreError;

use crate::history::target::TargetError;
use crate::view::{ChangedFile, Offered, SinceTurn};
use crate::workspace::History;

/// As many turns are offered as somebody looks through.
const TURNS: u32 = 50;

impl History {
    /// The last turns of a session, named checkpoints, sessions and operations. `typed` is the beginning of a target: of
    /// `kmzq:t` the turns of that session are offered, of `t5.` the steps of that turn.
    ///
    /// # Errors
    /// Where the store refuses.
    pub fn offered(&self, typed: &str) -> Result<Offered, StoreError> {
        let (wanted, rest) = split_session(typed);
        let session = match wanted {
            Some(wanted) => self.session_meant(Some(wanted), typed).ok().map(|row| row.session.id),
            None => self.here()?,
        };
        let mut turns = Vec::new();
        let mut steps = Vec::new();
        if let Some(session) = &session {
            let lineage = self.lineage(session)?;
            let last = self.last_turn_in(&lineage)?;
            for number in (last.saturating_sub(TURNS) + 1..=last).rev() {
                let Some(row) = self.turn_in(&lineage, number)? else { continue };
                turns.push(SinceTurn::from(&row));
            }
            let turn = rest.split_once('.').and_then(|(turn, _)| turn.parse().ok());
            if let Some(When::Turn { turn, .. }) = turn {
                for step in self.store.steps(lineage.session_of(turn), Some(turn))? {
                    steps.push((step.step.at.step, step.step.summary));
                }
            }
        }
        let manual = self.store.checkpoints_apart()?.into_iter().filter(|row| row.checkpoint.cause == Cause::Manual);
        let mut names: Vec<(String, String)> = manual
            .flat_map(|row| {
                let note = row.annotation.clone().unwrap_or_default();
                row.names.into_iter().map(move |name| (name, note.clone()))
            })
            .collect();
        // Other checkpoints may have a name too.
        for name in self.store.names()? {
            if !names.iter().any(|(known, _)| *known == name) {
                names.push((name, String::new()));
            }
        }
        Ok(Offered {
            turns,
            steps,
            names,
            sessions: self.sessions()?.sessions,
            operations: self.operations()?.operations,
        })
    }

    /// The numbered changes of a session that checkpoints have found, in their order.
    ///
    /// # Errors
    /// Where there is no such session, or the store refuses.
    pub fn offered_changes(&self) -> Result<Vec<ChangedFile>, TargetError> {
        let Some(session) = self.here()? else { return Ok(Vec::new()) };
        let lineage = self.lineage(&session)?;
        let rows = self.store.changes_about(lineage.sessions())?;
        let own = rows.iter().filter(|row| row.owner != Owner::You && lineage.may_own(&row.owner));
        Ok(own.map(crate::history::together::file).collect())
    }
}
