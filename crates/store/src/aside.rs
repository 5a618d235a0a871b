//! Events of those who could not record them: for want of the lock, of time, or of a store that takes anything.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use piton_host::{Lock, own};
use piton_model::event::{Event, Report};
use piton_model::session::{Gap, Process};
use piton_model::{Cause, Timestamp, TurnContext, WorkspaceId};
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::{Home, Reader, Store, file_id, file_id_of};

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
    /// Sets an event of a workspace aside without opening its store, which may be what took too long; in the home where the
    /// store's folder takes nothing.
    ///
    /// # Errors
    /// Where the system refuses both, so that nothing tells of the event.
    pub fn set_event_aside(&self, workspace: &WorkspaceId, event: &EventAside) -> Result<(), StoreError> {
        set_aside(&self.folder(workspace), event).or_else(|_| {
            let (path, lost) = self.aside_of(workspace);
            let folder = self.path().join(ASIDE);
            own::make_folders(&folder).map_err(StoreError::io("cannot make", &folder))?;
            append_or_mark(&path, &lost, event)
        })
    }

    /// Whether events of a workspace wait in the home, since its store's folder took nothing.
    pub fn has_events_aside(&self, workspace: &WorkspaceId) -> bool {
        self.aside_of(workspace).0.symlink_metadata().is_ok()
    }

    /// Whether events of a workspace wait, and all of them in its own store.
    pub fn store_has_events_aside(&self, workspace: &WorkspaceId) -> bool {
        has_aside(&self.folder(workspace)) && !self.has_events_aside(workspace)
    }

    /// Moves the events that wait in the home to the store, where [`Store::events_aside`] finds them; false where there are
    /// none, or where others are still being recorded.
    pub fn hand_over_events(&self, _lock: &Lock, workspace: &WorkspaceId) -> bool {
        if !self.has_events_aside(workspace) {
            return false;
        }
        let ((path, lost), folder) = (self.aside_of(workspace), self.folder(workspace));
        let move_to = |from: &Path, name: &str| {
            let to = folder.join(name);
            to.symlink_metadata().is_err() && std::fs::rename(from, to).is_ok()
        };
        move_to(&lost, LOST);
        move_to(&path, ASIDE_TAKEN)
    }

    /// The events of a workspace that wait to be recorded, wherever they are, oldest first. For whoever only wants to know of
    /// them: without the lock, so that somebody may be recording them meanwhile.
    pub fn waiting_events(&self, workspace: &WorkspaceId) -> Vec<EventAside> {
        let folder = self.folder(workspace);
        let files = [folder.join(ASIDE_TAKEN), folder.join(ASIDE), self.aside_of(workspace).0];
        let lines = files.iter().filter_map(|path| std::fs::read(path).ok()).flat_map(|bytes| events_in(&bytes));
        let mut events: Vec<EventAside> = lines.chain(lost_event(&folder)).collect();
        events.sort_by_key(|event| event.gap.at);
        events
    }

    /// Where events of a workspace are set aside whose folder takes nothing, and the mark of those that found no room.
    fn aside_of(&self, workspace: &WorkspaceId) -> (PathBuf, PathBuf) {
        let folder = self.path().join(ASIDE);
        (folder.join(workspace.as_str()), folder.join(format!("{workspace}.lost")))
    }
}

fn set_aside(folder: &Path, event: &EventAside) -> Result<(), StoreError> {
    append_or_mark(&folder.join(ASIDE), &folder.join(LOST), event)
}

/// Adds an event to a file; where that takes none, a symlink says that there was one.
fn append_or_mark(path: &Path, lost: &Path, event: &EventAside) -> Result<(), StoreError> {
    let appended = append(path, event);
    if let Ok(true) = appended {
        return Ok(());
    }
    let Gap { place, cause, at, .. } = &event.gap;
    match std::os::unix::fs::symlink(format!("{} {} {}", place.session, cause.as_str(), at.0), lost) {
        // One that is there already tells of an earlier one, which is enough.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            appended.and(Err(StoreError::io("cannot write", lost)(error)))
        }
        _ => Ok(()),
    }
}

/// Adds a line to what is set aside; false where there is no room for any.
fn append(path: &Path, event: &EventAside) -> Result<bool, StoreError> {
    let failed = |error| StoreError::io("cannot write", path)(error);
    let mut short = event.clone();
    if let Some(Report { event: Event::Prompt { text }, .. }) = &mut short.report {
        text.truncate(text.floor_char_boundary(SHORT_PROMPT));
    }
    let bare = EventAside { report: None, gap: Gap { lost: true, ..event.gap.clone() }, ..event.clone() };
    with_file(path, |mut file| {
        let length = file.metadata()?.len();
        if length >= MOST_ASIDE {
            return Ok(false);
        }
        // A report may be longer than there is room, or name paths that JSON cannot say.
        let fits = |line: &Vec<u8>| length + (line.len() as u64) < MOST_ASIDE;
        let line = [event, &short].into_iter().find_map(|event| serde_json::to_vec(event).ok().filter(fits));
        let line = line.map_or_else(|| serde_json::to_vec(&bare), Ok)?;
        // One write, so that lines of several processes do not mix; and a line of its own even where an earlier one was cut
        // off by a full disk.
        file.write_all(&[b"\n", &line[..], b"\n"].concat())?;
        Ok(true)
    })
    .map_err(failed)
}

/// Writes to the file that has the name when the writing is over. Whoever takes the file away locks it first, so that what
/// is appended is either read with it or goes to the next one.
fn with_file<T>(path: &Path, write: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
    loop {
        let file = own::open_or_make(path, File::options().append(true).mode(0o600))?;
        if file.try_lock_shared().is_err() || file_id(path) != file_id_of(&file) {
            // It has just been taken, and the next one gets the name.
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        return write(&file);
    }
}

impl Reader {
    /// Whether there may be events that were set aside.
    pub fn has_events_aside(&self) -> bool {
        has_aside(self.folder())
    }
}

impl Store {
    /// Sets an event aside: whoever could not get the lock in time cannot record it. The next one to write does.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn set_event_aside(&self, event: &EventAside) -> Result<(), StoreError> {
        set_aside(self.folder(), event)
    }

    /// The events that were set aside, oldest first. As they are recorded, [`Store::keep_events_aside`].
    pub fn events_aside(&self, _lock: &Lock) -> Vec<EventAside> {
        let taken = self.folder().join(ASIDE_TAKEN);
        // None where somebody who opened it before it was taken is still appending: it is read at the next event.
        let read = || -> Option<Vec<EventAside>> {
            let Ok(mut file) = File::open(&taken) else { return Some(Vec::new()) };
            let mut bytes = Vec::new();
            file.try_lock().ok()?;
            file.read_to_end(&mut bytes).ok()?;
            Some(events_in(&bytes))
        };
        // One that is there already was taken by somebody who did not get to the end.
        let mut events = read();
        if events.as_ref().is_some_and(Vec::is_empty) {
            // Under another name first: what is set aside from now on goes to a new file. In the place of one with nothing
            // in it, which a full disk may leave.
            let _ = std::fs::rename(self.folder().join(ASIDE), &taken);
            events = read();
        }
        let Some(mut events) = events else { return Vec::new() };
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
        let _ = own::write(&new, &lines).and_then(|()| std::fs::rename(&new, taken));
    }
}

fn has_aside(folder: &Path) -> bool {
    [ASIDE, ASIDE_TAKEN, LOST].iter().any(|name| folder.join(name).symlink_metadata().is_ok())
}

/// The events in the bytes of a file. A line that is none is all that a full disk let through: nobody can tell what it would
/// have said.
fn events_in(bytes: &[u8]) -> Vec<EventAside> {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// The first event that could not even be set aside.
fn lost_event(folder: &Path) -> Option<EventAside> {
    let told = std::fs::read_link(folder.join(LOST)).ok()?;
    let mut words = told.to_str()?.split(' ');
    let session = words.next()?.parse().ok()?;
    let cause: Cause = serde_json::from_value(words.next()?.into()).ok()?;
    let at = Timestamp(words.next()?.parse().ok()?);
    let place = TurnContext { session, turn: 0, step: None };
    let reason = LOST_REASON.to_owned();
    Some(EventAside {
        gap: Gap { place, cause, reason, at, lost: true, gone: false },
        report: None,
        asked: None,
        process: None,
        along: false,
    })
}

#[cfg(test)]
mod tests {
    use piton_model::SessionId;

    use super::*;
    use crate::PATIENCE;

    fn event(n: i64) -> EventAside {
        let place = TurnContext { session: SessionId::of("agent", "session"), turn: 0, step: None };
        let gap =
            Gap { place, cause: Cause::Prompt, reason: "no time".into(), at: Timestamp(n), lost: false, gone: false };
        EventAside { gap, report: None, asked: None, process: None, along: false }
    }

    fn taken(store: &Store) -> Vec<i64> {
        let lock = store.lock(PATIENCE).unwrap();
        let events = store.events_aside(&lock);
        if !events.is_empty() {
            store.keep_events_aside(&lock, &[]);
        }
        events.iter().map(|event| event.gap.at.0).collect()
    }

    /// A full disk leaves an empty file, or the beginning of a line. It used to stand in the way of every gap after it.
    #[test]
    fn a_file_without_a_whole_event_stands_in_the_way_of_no_other() {
        for torn in [&b""[..], b"{\"place\":{\"ses", b"\xff\xfe\n"] {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::create(folder.path()).unwrap();
            for name in [ASIDE, ASIDE_TAKEN] {
                std::fs::write(folder.path().join(name), torn).unwrap();
            }
            store.set_event_aside(&event(1)).unwrap();
            let found: Vec<i64> = (0..3).flat_map(|_| taken(&store)).collect();
            assert_eq!(found, [1], "{torn:?}");
            assert!(!folder.path().join(ASIDE_TAKEN).exists());
        }
    }

    /// Somebody who had the file open before it was taken used to append to what was about to be removed.
    #[test]
    fn no_event_is_lost_while_others_are_taken() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path()).unwrap();
        let mut found = Vec::new();
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4_i64)
                .map(|worker| {
                    let path = folder.path();
                    // Few enough for all of them to find room though nobody takes any.
                    scope.spawn(move || (0..60).for_each(|n| set_aside(path, &event(worker * 60 + n)).unwrap()))
                })
                .collect();
            while !workers.iter().all(|worker| worker.is_finished()) {
                found.extend(taken(&store));
            }
        });
        found.extend(taken(&store));
        found.extend(taken(&store));
        found.sort_unstable();
        assert_eq!(found, (0..240).collect::<Vec<_>>());
    }
}
