//! Gaps that could not be recorded when they came: set aside without the lock, and recorded by the next event.

use piton_host::Lock;
use piton_model::event::Report;
use piton_model::session::Gap;
use piton_model::{Place, Record, SessionId};
use piton_store::{Purpose, StoreError};

use crate::observe::cause_of;
use crate::workspace::Workspace;

impl Workspace {
    /// Sets aside that an event was not captured, and why; the next event records it. For whoever cannot get the lock, or
    /// ends the process because its time is over. An event that would not have been captured leaves no gap.
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

    /// Records the gaps that were set aside; returns them.
    pub(crate) fn record_gaps_aside(&self, lock: &Lock) -> Result<Vec<Gap>, StoreError> {
        let gaps = self.store.gaps_aside(lock);
        if gaps.is_empty() {
            return Ok(gaps);
        }
        let mut writer = self.store.write(lock)?.allowing(Purpose::Note);
        for gap in &gaps {
            writer.record(Record::Gap(gap.clone()))?;
        }
        writer.commit(false, false)?;
        self.store.forget_gaps_aside(lock);
        Ok(gaps)
    }
}
