//! A gap of a capture that another thread is in the middle of, and will not end: noted without the lock that it holds.

use piton_model::event::Report;
use piton_model::session::Gap;
use piton_model::{Place, SessionId};
use piton_store::StoreError;

use crate::observe::cause_of;
use crate::workspace::Workspace;

impl Workspace {
    /// Sets aside that an event was not captured, and why; the next event records it. For whoever ends the process
    /// because its time is over. An event that would not have been captured leaves no gap.
    ///
    /// # Errors
    /// Where the store's folder cannot be written.
    pub fn set_aside(&self, report: &Report, reason: &str) -> Result<(), StoreError> {
        let Some(cause) = cause_of(&report.event) else { return Ok(()) };
        let session = SessionId::of(&report.agent, &report.session);
        let turn = self.store.last_turn(&session).ok().flatten().map_or(0, |row| row.turn.number);
        let place = Place { session, turn, step: None };
        self.store.set_gap_aside(&Gap { place, cause, reason: reason.to_owned(), at: self.environment.clock.now() })
    }
}
