//! Changed rules and settings that wait for the user's agreement: listing them, and agreeing.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use piton_host::{is_taken, process};
use piton_model::{HeldPath, WorkspacePath};
use piton_store::{CheckpointRow, StoreError};

use crate::capture::held::{blob_at, is_ignore_file};
use crate::capture::sink::HashingSink;
use crate::capture::{CaptureError, CaptureOptions};
use crate::view::{Accepted, HeldView, Waiting};
use crate::workspace::{History, Standing, Workspace};

impl Workspace {
    /// The user agrees to the current rules and settings: a checkpoint is made in which they are in force.
    ///
    /// # Errors
    /// Where nothing can be captured; then nothing is agreed to.
    pub fn accept_rules(&mut self) -> Result<Accepted, CaptureError> {
        let agreed = self.waiting_now()?;
        if agreed.is_empty() {
            return Ok(Accepted { agreed, checkpoint: None });
        }
        // A user who did not agree finds it in the log.
        let annotation = Some("agreed to changed rules".to_owned());
        let options = CaptureOptions { sync: true, annotation, ..CaptureOptions::default() };
        let captured = self.capture_agreeing(&options, true)?;
        Ok(Accepted { agreed, checkpoint: Some(captured.checkpoint.checkpoint) })
    }
}

impl History {
    /// Changed rules and settings that wait for the user's agreement, as of the last checkpoint.
    pub fn waiting(&self) -> Result<Waiting, CaptureError> {
        let head = self.store.head(self.record.line)?;
        let held = match self.standing().map_err(|e| self.folder_error(e))? {
            Standing::Same(root) => self.held_since(&root, head.as_ref())?.paths,
            Standing::Other(_) | Standing::Missing => Vec::new(),
        };
        self.waiting_of(&held, head.as_ref())
    }

    /// The same, for the current state of the workspace.
    pub fn waiting_now(&self) -> Result<Waiting, CaptureError> {
        let head = self.store.head(self.record.line)?;
        let Standing::Same(root) = self.standing().map_err(|e| self.folder_error(e))? else {
            return self.waiting_of(&[], head.as_ref());
        };
        let (_, held) = self.look_held(&root, &[], &HashingSink::default())?;
        self.waiting_of(&held, head.as_ref())
    }

    pub(crate) fn waiting_of(&self, held: &[HeldPath], head: Option<&CheckpointRow>) -> Result<Waiting, CaptureError> {
        // A deleted path is not captured. It is held again if an operation restores it.
        let is_there = |one: &&HeldPath| is_taken(&self.path.join(OsStr::from_bytes(one.path.as_bytes())));
        // A file that came back alone is told of with the folder that it is in.
        let is_alone =
            |one: &&HeldPath| !held.iter().any(|other| other.path != one.path && one.path.is_within(&other.path));
        let paths = held.iter().filter(is_there).filter(is_alone).map(|one| HeldView {
            path: (&one.path).into(),
            rules: one.rules.clone(),
            owner: one.owner.clone(),
            undoable: one.rules.iter().all(|rule| self.is_rule_captured(rule, head)),
        });
        Ok(Waiting { paths: paths.collect(), settings: self.waiting_settings(head)? })
    }

    /// Whether a file with rules is one that checkpoints have, so that an undo brings it back to what it was.
    fn is_rule_captured(&self, rule: &str, head: Option<&CheckpointRow>) -> bool {
        let (Ok(path), Some(head)) = (WorkspacePath::new(rule), head) else { return false };
        is_ignore_file(&path)
            && (blob_at(&self.store, &head.checkpoint, &path).is_some() || !is_taken(&self.path.join(rule)))
    }

    /// Whether an agent at work here started this process, as far as is known: then the user did not decide.
    pub fn is_run_by_agent(&self) -> Result<bool, StoreError> {
        let above = process::ancestors();
        let is_above = |row: &piton_store::StepRow| {
            let process = row.step.process.as_ref();
            process.is_some_and(|own| above.iter().any(|one| (one.pid, one.started) == (own.pid, own.started)))
        };
        Ok(self.store.open_steps()?.iter().any(is_above))
    }

    /// Whether an agent's tool runs here, as far as is known.
    pub fn has_running_tool(&self) -> Result<bool, StoreError> {
        let is_alive = |process: &piton_model::session::Process| process::is_alive(process);
        let open = self.store.open_steps()?;
        Ok(open.iter().any(|row| !row.step.background && row.step.process.as_ref().is_some_and(is_alive)))
    }
}
