//! How a workspace stands, from its store alone.

use piton_store::StoreError;

use crate::history::operations::{is_first_hand, operation_views, standing};
use crate::view::Glance;
use crate::workspace::History;

impl History {
    /// How it stands, without a look at any file of the workspace: fast enough for a shell's prompt, however large the tree is.
    ///
    /// # Errors
    /// Where the store refuses.
    pub fn glance(&self) -> Result<Glance, StoreError> {
        let head = self.store.head(self.record.line)?;
        let last = self.last_turn_here()?;
        let key = last.as_ref().map(|row| (row.turn.session.clone(), row.turn.number));
        let mut turn = self.turn_views(key)?.pop();
        self.mark_undone(turn.iter_mut().collect())?;
        let here = self.here()?;
        let session = match &here {
            Some(here) => self.session_views(|id| id == here)?.pop(),
            None => None,
        };
        let rows = self.store.operations()?;
        let views = operation_views(&rows).into_iter().zip(&rows).zip(standing(&rows));
        let begun = last.as_ref().map_or(0, |row| row.seq);
        let mut newer = views.take_while(|((_, row), _)| row.seq > begun);
        let operation = newer.find(|((_, row), stands)| *stands && is_first_hand(row)).map(|((view, _), _)| view);
        let captured = self.store.last_capture()?;
        let not_captured = self.store.last_gap()?.filter(|(seq, _)| *seq > captured);
        let is_of_turn =
            session.as_ref().zip(turn.as_ref()).is_some_and(|(one, turn)| one.live && one.turns == turn.number);
        Ok(Glance {
            id: self.record.id.clone(),
            path: self.path.clone(),
            checkpoints: self.store.checkpoint_count()?,
            last_at: head.map(|row| row.checkpoint.created_at),
            running: is_of_turn && turn.as_ref().is_some_and(|turn| turn.ending.is_none()),
            session,
            turn,
            rewound: self.rewound()?,
            operation,
            not_captured: not_captured.map(|(_, gap)| (&gap).into()),
            waiting: self.waiting_events().len() as u64,
        })
    }
}
