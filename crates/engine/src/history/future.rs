//! Which turns are future turns: read from the store, worked out in [`piton_model::future`].

use std::collections::HashMap;

use piton_model::future::{Departure, TurnAt, future_turns};
use piton_model::{OperationId, OperationVerb, SessionId};
use piton_store::StoreError;

use crate::history::lineage::Lineage;
use crate::history::operations::standing;
use crate::workspace::History;

/// Future turns, each with the operation that went back past it.
pub(crate) type FutureTurns = HashMap<(SessionId, u32), OperationId>;

impl History {
    /// The turns that a conversation rewind that is in effect went back past.
    pub(crate) fn future_turns(&self) -> Result<FutureTurns, StoreError> {
        let rows = self.store.operations()?;
        let stand = standing(&rows);
        let departures: Vec<Departure<'_>> = rows
            .iter()
            .zip(stand)
            // A redo returns to the earlier conversation: it makes no future turns, and the branch that it leaves is an
            // ordinary one.
            .filter(|(row, stands)| *stands && row.verb != OperationVerb::Redo)
            .filter_map(|(row, _)| Some(Departure { operation: &row.id, seq: row.seq, went: row.went.as_ref()? }))
            .collect();
        if departures.is_empty() {
            return Ok(HashMap::new());
        }
        let mut lineages: HashMap<SessionId, Lineage> = HashMap::new();
        for row in self.store.sessions()? {
            lineages.insert(row.session.id.clone(), self.lineage(&row.session.id)?);
        }
        let turns: Vec<TurnAt> = self
            .store
            .turn_places()?
            .into_iter()
            .map(|(seq, place, _)| TurnAt { seq, session: place.session, number: place.turn })
            .collect();
        let holds = |session: &SessionId, turn: &TurnAt| match lineages.get(session) {
            Some(lineage) => lineage.holds(&turn.session, turn.number),
            None => *session == turn.session,
        };
        let found = future_turns(&departures, &turns, holds);
        Ok(found.into_iter().map(|(turn, operation)| (turn, operation.clone())).collect())
    }
}
