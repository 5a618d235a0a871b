//! Events that could not be recorded when they came: set aside without the lock, and recorded by whoever writes next.

use std::path::{Path, PathBuf};
use std::time::Duration;

use piton_host::process;
use piton_model::event::Report;
use piton_model::session::{Gap, Process};
use piton_model::{Record, SessionId, TurnContext, WorkspaceId};
use piton_store::{EventAside, Purpose, StoreError};

use crate::observe::{ObserveOptions, cause_of};
use crate::view::GapView;
use crate::workspace::locked::Locked;
use crate::workspace::{Engine, Environment, History, OpenError, Workspace};

impl Engine {
    /// Whether events of a folder's workspace wait in its own store, which tells of them. Otherwise it takes nothing, or it
    /// cannot be found, and what happens leaves no trace there.
    pub fn keeps_events_aside(&self, folder: &Path) -> bool {
        self.known_at(folder).is_ok_and(|known| self.home.store_has_events_aside(&known.id))
    }

    /// Sets aside that an event was not captured in a known workspace, and why, without opening its store: for whoever ends
    /// the process because its time is over. The next event records it. An event that would not have been captured leaves
    /// no gap. `along`: the workspace is only captured along.
    ///
    /// # Errors
    /// Where the workspace is not known, or its store's folder cannot be written.
    pub fn set_event_aside(&self, folder: &Path, report: &Report, reason: &str, along: bool) -> Result<(), OpenError> {
        Ok(self.set_event_aside_in(&self.known_at(folder)?.id, report, reason, along)?)
    }

    /// The same, for whoever knows which workspace it is.
    pub(crate) fn set_event_aside_in(
        &self,
        workspace: &WorkspaceId,
        report: &Report,
        reason: &str,
        along: bool,
    ) -> Result<(), StoreError> {
        match event_aside(&self.environment, report, reason, process::reporter()) {
            Some(event) => self.home.set_event_aside(workspace, &EventAside { along, ..event }),
            None => Ok(()),
        }
    }
}

/// An event that should have been captured. Its turn is found when it is recorded.
fn event_aside(
    environment: &Environment,
    report: &Report,
    reason: &str,
    process: Option<Process>,
) -> Option<EventAside> {
    let cause = cause_of(&report.event)?;
    let place = TurnContext { session: SessionId::of(&report.agent, &report.session), turn: 0, step: None };
    let gap = Gap { place, cause, reason: reason.to_owned(), at: environment.clock.now(), lost: false, gone: false };
    Some(EventAside { gap, report: Some(report.clone()), asked: None, process, along: false })
}

impl Workspace {
    /// The same for whoever has the store open, of an event that was reported at a moment.
    pub(crate) fn set_aside(
        &self,
        report: &Report,
        options: &ObserveOptions<'_>,
        asked: i64,
        reason: &str,
    ) -> Result<(), StoreError> {
        let process = if options.embedded { process::this() } else { process::reporter() };
        match event_aside(&self.environment, report, reason, process) {
            Some(event) => {
                let event = EventAside { asked: Some(asked), along: options.along, ..event };
                self.home.set_event_aside(&self.record.id, &event)
            }
            None => Ok(()),
        }
    }

    /// Records what was set aside, unless somebody else is writing just now: what a command tells of is then as complete
    /// as it can be.
    pub fn record_aside(&mut self) {
        if !self.store.has_events_aside() && !self.home.has_events_aside(&self.record.id) {
            return;
        }
        // A store that cannot be written is no reason not to read.
        if let Ok(locked) = self.lock(Duration::ZERO) {
            let _ = locked.record_left_aside();
        }
    }
}

impl Locked<'_> {
    /// Records the events that were set aside, with their turns and steps and as gaps; returns the gaps.
    pub(crate) fn record_events_aside(&self, options: &ObserveOptions<'_>) -> Result<Vec<Gap>, StoreError> {
        let mut gaps = self.record_events_in_store(options)?;
        if self.home.hand_over_events(&self.lock, &self.record.id) {
            gaps.extend(self.record_events_in_store(options)?);
        }
        Ok(gaps)
    }

    /// The same for whoever has no event of its own to record.
    pub(crate) fn record_left_aside(&self) -> Result<Vec<Gap>, StoreError> {
        self.record_events_aside(&ObserveOptions::default())
    }

    fn record_events_in_store(&self, options: &ObserveOptions<'_>) -> Result<Vec<Gap>, StoreError> {
        let mut events = self.store().events_aside(&self.lock);
        // A process that died after it had recorded one, and before it forgot it, left it there.
        if events.first().map_or(Ok(false), |event| self.is_recorded(event))? {
            events.remove(0);
            self.store().keep_events_aside(&self.lock, &events);
        }
        let mut gaps = Vec::new();
        while !events.is_empty() {
            let event = &events[0];
            let gap = match self.record_event_aside(event, options) {
                // They stay where they are until there is room.
                Err(StoreError::OverBudget { .. }) => break,
                // A report that cannot be recorded must not stand before all others for ever.
                Err(_) if event.report.is_some() => {
                    self.record_event_aside(&EventAside { report: None, ..event.clone() }, options)?
                }
                recorded => recorded?,
            };
            gaps.push(gap);
            events.remove(0);
            self.store().keep_events_aside(&self.lock, &events);
        }
        Ok(gaps)
    }

    fn record_event_aside(&self, event: &EventAside, options: &ObserveOptions<'_>) -> Result<Gap, StoreError> {
        let gap = &event.gap;
        let mut writer = self.writer()?.allowing(Purpose::Note);
        let Some(report) = &event.report else {
            let last = self.store.last_turn(&gap.place.session)?.map_or(0, |row| row.turn.number);
            let place = TurnContext { turn: last, ..gap.place.clone() };
            let gap = Gap { place, lost: true, ..gap.clone() };
            writer.record(Record::Gap(gap.clone()))?;
            writer.commit(false, false)?;
            return Ok(gap);
        };
        let engine = self.engine();
        let mut others = self.home.workspaces_of(&gap.place.session);
        others.retain(|(id, _)| *id != self.record.id);
        let (ids, others): (Vec<_>, Vec<PathBuf>) = others.into_iter().unzip();
        let elsewhere = engine.elsewhere(self, &ids, report, Some(gap.at));
        let options = ObserveOptions { elsewhere, along: event.along, also: &others, ..options.again() };
        let asked = event.asked.unwrap_or(gap.at.0.saturating_mul(1_000_000));
        let mut context = self.context(report, &options, asked)?;
        context.came_at(gap.at, event.process, &report.event);
        let gap = Gap { place: context.place(), lost: context.has_missed, ..gap.clone() };
        self.note(&mut writer, report, &context, options.also, Some(gap.clone()))?;
        writer.commit(false, false)?;
        Ok(gap)
    }
}

impl History {
    /// The events that were set aside and are still not recorded, oldest first, as the gaps that they will be.
    pub fn waiting_events(&self) -> Vec<GapView> {
        self.home.waiting_events(&self.record.id).iter().map(|event| (&event.gap).into()).collect()
    }

    /// Whether an event is the last that was recorded as a gap.
    fn is_recorded(&self, event: &EventAside) -> Result<bool, StoreError> {
        let is_it = |gap: &Gap| {
            (&gap.place.session, gap.cause, gap.at, &gap.reason)
                == (&event.gap.place.session, event.gap.cause, event.gap.at, &event.gap.reason)
        };
        Ok(self.store.last_gap()?.is_some_and(|(_, gap)| is_it(&gap)))
    }
}
