//! Events of those who could not record them: for want of the lock, of time, or of a store that takes anything.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use piton_host::Lock;
use piton_model::event::{Event, Report};
use piton_model::session::{Gap, Process};
use piton_model::{Cause, Place, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};

use crate::database::to_sql;
use crate::error::StoreError;
use crate::{Home, Store};

/// Where they are set aside, and where they are while they are being recorded.
const ASIDE: &str = "gaps";
const ASIDE_TAKEN: &str = "gaps.taken";
/// A symlink that says that one could not be set aside, and which: a full disk has room for a short one, since its text
/// is kept where the link is.
const LOST: &str = "gaps.lost";
const LOST_REASON: &str = "the store could not be written, and what happened since is not known";
/// A store that cannot take an event for days must not grow by what is set aside, nor leave operations without their
/// reserve: what comes first tells most.
const MOST_ASIDE: u64 = 64 << 10;
/// Of a prompt that does not fit there so much is kept.
const SHORT_PROMPT: usize = 1 << 10;

/// An event that could not be recorded when it came.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EventAside {
    /// That it was not captured.
    #[serde(flatten)]
    pub gap: Gap,
    /// What was reported; without it nothing but the gap is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// When it was reported, in nanoseconds since 1970; the gap is as old as the attempt to record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<i64>,
    /// The agent's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// Its session works elsewhere, and this workspace is only captured along.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub along: bool,
}

impl Home {
    /// Sets an event of a workspace aside without opening its store, which may be what took too long.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn set_event_aside(&self, workspace: &WorkspaceId, event: &EventAside) -> Result<(), StoreError> {
        set_aside(&self.folder(workspace), event)
    }
}

fn set_aside(folder: &Path, event: &EventAside) -> Result<(), StoreError> {
    let appended = append(folder, event);
    if !matches!(appended, Ok(true)) {
        let Gap { place, cause, at, .. } = &event.gap;
        // One that is there already tells of an earlier one, which is enough.
        let _ = std::os::unix::fs::symlink(format!("{} {} {}", place.session, cause.as_str(), at.0), folder.join(LOST));
    }
    appended.map(|_| ())
}

/// Adds a line to what is set aside; false where there is no room for any.
fn append(folder: &Path, event: &EventAside) -> Result<bool, StoreError> {
    let path = folder.join(ASIDE);
    let failed = |error| StoreError::io("cannot write", &path)(error);
    let opened = std::fs::File::options().append(true).create(true).mode(0o600).open(&path);
    let opened = opened.and_then(|file| file.metadata().map(|about| (file, about.len())));
    let (mut file, length) = opened.map_err(failed)?;
    if length >= MOST_ASIDE {
        return Ok(false);
    }
    let mut short = event.clone();
    if let Some(Report { event: Event::Prompt { text }, .. }) = &mut short.report {
        text.truncate(text.floor_char_boundary(SHORT_PROMPT));
    }
    let bare = EventAside { report: None, gap: Gap { lost: true, ..event.gap.clone() }, ..event.clone() };
    // A report may be longer than there is room, or name paths that JSON cannot say.
    let fits = |line: &Vec<u8>| length + (line.len() as u64) < MOST_ASIDE;
    let line = [event, &short].into_iter().find_map(|event| serde_json::to_vec(event).ok().filter(fits));
    let line = line.map_or_else(|| serde_json::to_vec(&bare).map_err(to_sql), Ok)?;
    // One write, so that lines of several processes do not mix; and a line of its own even where an earlier one was cut
    // off by a full disk.
    file.write_all(&[b"\n", &line[..], b"\n"].concat()).map_err(failed)?;
    Ok(true)
}

impl Store {
    /// Sets an event aside: whoever could not get the lock in time cannot record it. The next one to write does.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn set_event_aside(&self, event: &EventAside) -> Result<(), StoreError> {
        set_aside(self.folder(), event)
    }

    /// Whether there may be events that were set aside.
    pub fn has_events_aside(&self) -> bool {
        [ASIDE, ASIDE_TAKEN, LOST].iter().any(|name| self.folder().join(name).symlink_metadata().is_ok())
    }

    /// The events that were set aside, oldest first. As they are recorded, [`Store::keep_events_aside`].
    pub fn events_aside(&self, _lock: &Lock) -> Vec<EventAside> {
        let taken = self.folder().join(ASIDE_TAKEN);
        let read = || -> Vec<EventAside> {
            let text = std::fs::read(&taken).unwrap_or_default();
            text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
        };
        // One that is there already was taken by somebody who did not get to the end.
        let mut events = read();
        if events.is_empty() {
            // Under another name first: what is set aside from now on goes to a new file. In the place of one with nothing
            // in it, which a full disk may leave.
            let _ = std::fs::rename(self.folder().join(ASIDE), &taken);
            events = read();
        }
        events.extend(lost_event(self.folder()));
        events
    }

    /// Forgets the events that [`Store::events_aside`] gave, but for those that are not recorded yet.
    pub fn keep_events_aside(&self, _lock: &Lock, rest: &[EventAside]) {
        let taken = self.folder().join(ASIDE_TAKEN);
        if rest.is_empty() {
            let _ = std::fs::remove_file(taken);
            let _ = std::fs::remove_file(self.folder().join(LOST));
            return;
        }
        let mut lines = Vec::new();
        // The one that the symlink tells of stays there.
        for event in rest.iter().filter(|event| event.gap.reason != LOST_REASON) {
            lines.extend(serde_json::to_vec(event).unwrap_or_default());
            lines.push(b'\n');
        }
        let new = self.folder().join("gaps.new");
        let _ = std::fs::write(&new, lines).and_then(|()| std::fs::rename(&new, taken));
    }
}

/// The first event that could not even be set aside.
fn lost_event(folder: &Path) -> Option<EventAside> {
    let told = std::fs::read_link(folder.join(LOST)).ok()?;
    let mut words = told.to_str()?.split(' ');
    let session = words.next()?.parse().ok()?;
    let cause: Cause = serde_json::from_value(words.next()?.into()).ok()?;
    let at = Timestamp(words.next()?.parse().ok()?);
    let place = Place { session, turn: 0, step: None };
    let reason = LOST_REASON.to_owned();
    Some(EventAside {
        gap: Gap { place, cause, reason, at, lost: true },
        report: None,
        asked: None,
        process: None,
        along: false,
    })
}
