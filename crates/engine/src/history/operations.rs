//! The operations, and which of them are still in effect.

use piton_model::{OperationId, OperationTarget, OperationVerb};
use piton_store::{OperationRow, OperationState, StoreError};

use crate::view::{OperationView, Operations};
use crate::workspace::History;

impl History {
    /// Every operation, newest first, with whether it was taken back.
    pub fn operations(&self) -> Result<Operations, StoreError> {
        Ok(Operations { operations: operation_views(&self.store.operations()?) })
    }

    /// How many rewinds and undos could be redone, one after the other.
    pub fn operations_standing(&self) -> Result<usize, StoreError> {
        let rows = self.store.operations()?;
        let standing = standing(&rows);
        Ok(rows.iter().zip(standing).filter(|(row, stands)| *stands && is_first_hand(row)).count())
    }
}

/// Operations, given newest first, with whether each was taken back.
pub(crate) fn operation_views(rows: &[OperationRow]) -> Vec<OperationView> {
    let view = |(row, stands): (&OperationRow, bool)| {
        let is_done = row.state == OperationState::Done && row.verb != OperationVerb::Recover;
        OperationView { taken_back: is_done && !stands, ..row.into() }
    };
    rows.iter().zip(standing(rows)).map(view).collect()
}

/// Whether an operation is one that the user asked for, and not the taking back of one. A fork is nothing to take back:
/// it changed neither files nor where the user is.
pub(crate) fn is_first_hand(row: &OperationRow) -> bool {
    match row.verb {
        OperationVerb::Rewind | OperationVerb::Undo => true,
        OperationVerb::Branch => row.went.as_ref().is_some_and(|went| went.goes),
        OperationVerb::Redo | OperationVerb::Checkout | OperationVerb::Recover => false,
    }
}

/// Which operations, given newest first, were done and not taken back.
pub(crate) fn standing(rows: &[OperationRow]) -> Vec<bool> {
    let mut taken_back: Vec<&OperationId> = Vec::new();
    let stands = |row: &OperationRow| row.state == OperationState::Done && row.verb != OperationVerb::Recover;
    rows.iter()
        .map(|row| {
            let stands = stands(row) && !taken_back.contains(&&row.id);
            // What was taken back and then reinstated is in effect.
            if stands && row.verb == OperationVerb::Redo {
                taken_back.extend(row.target.as_ref().and_then(OperationTarget::operation));
                taken_back.extend(&row.also);
            }
            stands
        })
        .collect()
}
