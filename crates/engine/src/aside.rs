//! Gaps that could not be recorded when they came: set aside without the lock, and recorded by the next event.

use std::path::Path;

use piton_host::Lock;
use piton_model::event::Report;
use piton_model::session::Gap;
use piton_model::{Place, Record, SessionId, Timestamp};
use piton_store::{Purpose, StoreError};

use crate::observe::cause_of;
use crate::workspace::{Engine, OpenError, Workspace};

impl Engine {
    /// Sets aside that an event was not captured in a known workspace, and why, without opening its store: for whoever ends
    /// the process because its time is over. The next event records it. An event that would not have been captured leaves
    /// no gap.
    ///
    /// # Errors
    /// Where the workspace is not known, or its store's folder cannot be written.
    pub fn set_gap_aside(&self, folder: &Path, report: &Report, reason: &str) -> Result<(), OpenError> {
        let known = self.known_at(folder)?;
        match gap_of(report, reason, self.environment.clock.now()) {
            Some(gap) => Ok(self.home.set_gap_aside(&known.id, &gap)?),
            None => Ok(()),
        }
    }
}

/// The gap of an event that should have been captured. Its turn is found when it is recorded.
fn gap_of(report: &Report, reason: &str, at: Timestamp) -> Option<Gap> {
    let cause = cause_of(&report.event)?;
    let place = Place { session: SessionId::of(&report.agent, &report.session), turn: 0, step: None };
    Some(Gap { place, cause, reason: reason.to_owned(), at })
}

impl Workspace {
    /// The same for whoever has the store open and cannot get the lock.
    pub(crate) fn set_aside(&self, report: &Report, reason: &str) -> Result<(), StoreError> {
        gap_of(report, reason, self.environment.clock.now()).map_or(Ok(()), |gap| self.store.set_gap_aside(&gap))
    }

    /// Records the gaps that were set aside; returns them.
    pub(crate) fn record_gaps_aside(&self, lock: &Lock) -> Result<Vec<Gap>, StoreError> {
        let Some(mut aside) = self.store.gaps_aside(lock) else { return Ok(Vec::new()) };
        let mut gaps = std::mem::take(&mut aside.gaps);
        if gaps.is_empty() {
            aside.forget();
            return Ok(gaps);
        }
        let mut writer = self.store.write(lock)?.allowing(Purpose::Note);
        for gap in &mut gaps {
            if gap.place.turn == 0 {
                gap.place.turn = self.store.last_turn(&gap.place.session)?.map_or(0, |row| row.turn.number);
            }
            writer.record(Record::Gap(gap.clone()))?;
        }
        writer.commit(false, false)?;
        aside.forget();
        Ok(gaps)
    }
}
