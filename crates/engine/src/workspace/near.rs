//! Known workspaces inside this one or around it: their folders overlap, and an event of an agent goes only to the store of the
//! workspace that it works in.
//!
//! Nothing is captured or recorded twice. Whoever asks for the owner of a change, or changes files, asks the stores of those
//! workspaces which tools of theirs were at work. A linked worktree is no part of the folder around it, so the two are not
//! near each other: what happens there is captured along.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use piton_model::command::CommandClass;
use piton_model::ownership::{Command, Window};
use piton_model::session::{Attended, Ending, Step};
use piton_model::{SessionId, StepRef, Timestamp, WorkspacePath};
use piton_store::{CheckpointRow, Known, StepRow, StoreError};

use crate::workspace::{History, OpenError};

/// A checkpoint's time is that of its record, and what was written while its scan ran is not in it.
const SCAN: i64 = 2_000;

/// A known workspace inside this one or around it.
pub(crate) struct NearWorkspace {
    pub known: Known,
    /// Where it is in this one; none for one around it.
    part: Option<WorkspacePath>,
}

/// What happened near a workspace since one of its checkpoints.
#[derive(Default)]
pub(crate) struct Nearby {
    /// The windows of tools of sessions that do not report here.
    pub windows: Vec<Window>,
    /// Parts of this workspace in which something was done that no window tells of: by an operation, by a tool that nobody
    /// recorded, or perhaps by a tool, where its store cannot be read.
    pub missed: Vec<WorkspacePath>,
}

impl History {
    /// The known workspaces that share files with this one.
    pub(crate) fn near(&self) -> Vec<NearWorkspace> {
        let engine = self.engine();
        let mut near = Vec::new();
        for known in self.home.all().into_iter().filter(|known| known.id != self.record.id) {
            let part = match (known.path.strip_prefix(&self.path), self.path.strip_prefix(&known.path)) {
                (Ok(inner), Err(_)) => match WorkspacePath::new(inner.as_os_str().as_bytes()) {
                    Ok(part) => Some(part),
                    Err(_) => continue,
                },
                (Err(_), Ok(_)) => None,
                // Beside it, or gone from the very same path.
                _ => continue,
            };
            let (outer, inner) = match part {
                Some(_) => (&self.path, &known.path),
                None => (&known.path, &self.path),
            };
            if engine.worktree_inside(outer, inner).is_none() {
                near.push(NearWorkspace { known, part });
            }
        }
        near
    }

    /// What was done near this workspace since a checkpoint, besides by the step whose event makes somebody look: that one is
    /// recorded in one store after the other.
    pub(crate) fn nearby_since(&self, parent: &CheckpointRow, now: Option<&StepRef>) -> Nearby {
        let mut nearby = Nearby::default();
        for near in self.near() {
            // Of a store that cannot be read nobody knows what it would tell.
            let (mut windows, is_missed) = self.windows_of(&near, parent, now).unwrap_or((Vec::new(), true));
            nearby.windows.append(&mut windows);
            nearby.missed.extend(is_missed.then(|| near.part.clone().unwrap_or_default()));
        }
        nearby.windows.sort_by(|a, b| a.step.cmp(&b.step));
        nearby.windows.dedup_by(|a, b| a.step == b.step);
        nearby
    }

    /// The near workspaces whose files are captured here too, or that capture those of this one. One that cannot be opened says
    /// nothing of its tools.
    pub(crate) fn near_captured(&self) -> Vec<History> {
        let engine = self.engine();
        let is_captured = |near: &NearWorkspace| match near.part {
            Some(_) => engine.left_out(&self.path, &near.known.path).is_none(),
            None => engine.left_out(&near.known.path, &self.path).is_none(),
        };
        let near = self.near().into_iter().filter(is_captured);
        near.filter_map(|near| engine.read(&near.known.id, near.known.path).ok()).collect()
    }

    /// The windows that a near store knows of since a checkpoint of this one, and whether there is more than they tell.
    fn windows_of(
        &self,
        near: &NearWorkspace,
        parent: &CheckpointRow,
        now: Option<&StepRef>,
    ) -> Result<(Vec<Window>, bool), OpenError> {
        let other = self.engine().read(&near.known.id, near.known.path.clone())?;
        let store = &other.store;
        let since = Timestamp(parent.checkpoint.created_at.0 - SCAN);
        let since_ns = since.0.saturating_mul(1_000_000);
        let from = store.not_after(other.record.line, since)?.map_or(0, |row| row.seq);
        let is_missed = store.has_lost_events_since(from)?
            || store.has_events_aside()
            || self.home.has_events_aside(&near.known.id)
            || store.operations()?.iter().any(|row| row.seq > from);
        let mut rows = store.steps_ended_since(from)?;
        for row in store.open_steps()? {
            // Nobody has noted its end there yet. If it was open at the last capture here, that was the time to ask about it.
            let is_over = row.step.opened < since_ns && (other.is_gone(&row)? || other.is_long_silent(&row)?);
            if !is_over {
                rows.push(row);
            }
        }
        let mut windows = Vec::new();
        for row in rows.into_iter().filter(|row| Some(&row.step.at) != now) {
            if !self.hears(&row.step.at.session)? {
                let named = row.step.paths.iter().filter_map(|path| self.path_near(near, path)).collect();
                let (late, part) = (row.step.opened > since_ns, near.part.clone());
                windows.push(Window { named, late, part, ..window_of(&row, 0, false, &self.path) });
            }
        }
        Ok((windows, is_missed))
    }

    /// Whether a session reports here, so that this store knows its tools.
    fn hears(&self, session: &SessionId) -> Result<bool, StoreError> {
        Ok(self.store.session(session)?.is_some_and(|row| row.heard))
    }

    /// A path of a near workspace as one of this, where it is.
    pub(crate) fn path_near(&self, near: &NearWorkspace, path: &WorkspacePath) -> Option<WorkspacePath> {
        let whole = near.known.path.join(path.as_path());
        if self.path.starts_with(&whole) {
            // A folder around this workspace.
            return Some(WorkspacePath::root());
        }
        WorkspacePath::new(whole.strip_prefix(&self.path).ok()?.as_os_str().as_bytes()).ok()
    }
}

/// The window of a step, seen from a checkpoint.
pub(crate) fn window_of(row: &StepRow, since: u64, along: bool, root: &Path) -> Window {
    let step = &row.step;
    let command = step.command.as_deref().zip(step.cwd.as_deref()).map(|(text, folder)| Command {
        class: CommandClass::of(text),
        root: root.as_os_str().as_bytes().to_vec(),
        folder: folder.as_bytes().to_vec(),
    });
    let cut_off = matches!(row.ending, Some(Ending::Interrupted | Ending::Lost));
    Window {
        step: row.step.at.clone(),
        named: row.step.paths.clone(),
        says: row.step.says,
        opened: row.step.opened,
        late: row.seq > since,
        // Somebody noticed later that it had stopped; when it did is known or not.
        closed: if cut_off { row.cut } else { row.closed },
        cut_off,
        command,
        attended: is_attended(step, row.closed),
        followed_until: row.closed.filter(|_| step.hooked && step.says).map(|closed| closed.saturating_add(FOLLOWED)),
        past: false,
        prompted: i64::MIN,
        background: row.step.background && row.closed.is_none(),
        along,
        part: None,
        failed: matches!(row.ending, Some(Ending::Failed | Ending::Interrupted)),
    }
}

/// How long an agent's hooks are taken to go on after a tool, where nobody reports that they have ended; in nanoseconds.
const FOLLOWED: i64 = 10_000_000_000;

/// Beside a command that takes longer, whoever started it does something else; in nanoseconds.
const ATTENTION: i64 = 60_000_000_000;

/// Whether the user could work beside a command that they started; how long one takes that has not ended nobody knows.
pub(crate) fn is_attended(step: &Step, closed: Option<i64>) -> bool {
    match step.attended {
        Attended::No => false,
        Attended::Started => closed.is_none_or(|closed| closed.saturating_sub(step.opened) > ATTENTION),
        Attended::Interactive => true,
    }
}
