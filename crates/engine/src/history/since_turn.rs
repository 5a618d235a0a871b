//! Since when people want to know what changed, where nobody names a moment.

use piton_model::{OperationKind, OperationVerb};
use piton_store::{CheckpointRow, OperationRow, StoreError, TurnRow};

use crate::history::operations::standing;
use crate::view::{RewoundView, SinceTurn, SinceView};
use crate::workspace::History;

/// That moment.
pub(crate) struct SinceMoment {
    pub row: CheckpointRow,
    /// Its changes are not counted yet.
    pub view: SinceView,
}

impl History {
    /// The beginning of the last turn of the session where the user is, or a whole rewind after it; none before the first turn,
    /// and where nothing of this folder was captured then.
    pub(crate) fn since_turn(&self) -> Result<Option<SinceMoment>, StoreError> {
        let turn = self.last_turn_here()?;
        let begun = turn.as_ref().map_or(0, |turn| turn.seq);
        if let Some(row) = self.whole_rewind_since(begun, |row| row.verb == OperationVerb::Rewind)?
            && let Some(after) = row.after.as_ref().map(|id| self.store.checkpoint(id)).transpose()?.flatten()
            && after.checkpoint.line == self.record.line
        {
            let view = SinceView {
                checkpoint: (&after).into(),
                turn: None,
                rewind: Some((&row).into()),
                changes: Default::default(),
            };
            return Ok(Some(SinceMoment { row: after, view }));
        }
        let Some(turn) = turn else { return Ok(None) };
        let before = self.before_turn(&turn.turn.session, turn.turn.number)?;
        Ok(before.filter(|row| row.checkpoint.line == self.record.line).map(|row| {
            let view = SinceView {
                checkpoint: (&row).into(),
                turn: Some((&turn).into()),
                rewind: None,
                changes: Default::default(),
            };
            SinceMoment { row, view }
        }))
    }

    /// The rewind of files or of the conversation that nothing followed, and the last turn before it.
    pub(crate) fn rewound(&self) -> Result<Option<RewoundView>, StoreError> {
        let begun = self.last_turn_here()?.map_or(0, |turn| turn.seq);
        let goes = |row: &OperationRow| row.went.as_ref().is_none_or(|went| went.goes);
        let Some(row) = self.whole_rewind_since(begun, goes)? else { return Ok(None) };
        let before = self.store.checkpoint(&row.before)?;
        let place = before.and_then(|before| before.checkpoint.place);
        let left = match (&row.went, place) {
            // A branch has left its parent's last turn.
            (Some(went), _) => self.store.last_turn(&went.from)?,
            (None, Some(place)) => self.store.turn(&place.session, place.turn)?,
            (None, None) => self.last_turn_here()?,
        };
        Ok(Some(RewoundView { operation: (&row).into(), from: left.as_ref().map(Into::into) }))
    }

    /// The last turn of the session where the user is.
    pub(crate) fn last_turn_here(&self) -> Result<Option<TurnRow>, StoreError> {
        let Some(here) = self.here()? else { return Ok(None) };
        let lineage = self.lineage(&here)?;
        self.turn_in(&lineage, self.last_turn_in(&lineage)?)
    }

    /// The newest rewind of everything that stands, where it is newer than a record.
    fn whole_rewind_since(
        &self,
        seq: u64,
        is_meant: impl Fn(&OperationRow) -> bool,
    ) -> Result<Option<OperationRow>, StoreError> {
        let rows = self.store.operations()?;
        let stand = standing(&rows);
        for (row, stands) in rows.into_iter().zip(stand).take_while(|(row, _)| row.seq > seq) {
            if !stands || !matches!(row.verb, OperationVerb::Rewind | OperationVerb::Branch) || !is_meant(&row) {
                continue;
            }
            let is_whole = match self.store.operation(&row) {
                Ok(operation) => !matches!(&operation.kind, OperationKind::Rewind { paths, .. } if !paths.is_empty()),
                // What a damaged record did cannot be told.
                Err(_) => false,
            };
            if is_whole {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}

impl From<&TurnRow> for SinceTurn {
    fn from(row: &TurnRow) -> Self {
        let turn = &row.turn;
        Self { session: turn.session.clone(), number: turn.number, prompt: turn.prompt.clone() }
    }
}
