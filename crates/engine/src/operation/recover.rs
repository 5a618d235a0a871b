//! Recovery: ending what a crash cut off, so that the old or the new tree stands, and what anyone edited since is kept.
//!
//! Runs by itself when a workspace is opened. The paths of the operation go to one end, the same for all: forward when
//! every one of them got there, back otherwise. A path that is neither as before nor as after was edited since; it is
//! left alone, and named.

mod sides;

use std::io;
use std::time::Duration;

use piton_host::Root;
use piton_host::apply::{Applier, ApplyError, close_again, mode_of};
use piton_host::fail::point;
use piton_model::diff::{TreeSource, lookup};
use piton_model::edit::{Edit, NewTrees, edit};
use piton_model::git::GitEnd;
use piton_model::merge::merge_entry;
use piton_model::ownership::{ChangedPath, Owned, Owner};
use piton_model::plan::{self, FolderMode, Layered, RootState};
use piton_model::{
    CheckpointId, Entry, GivenUp, ObjectId, Operation, OperationId, OperationKind, Outcome, RootIdentity, SkipReason,
    Step, WorkspacePath,
};
use piton_store::{CheckpointRow, OperationRow, OperationState, Progress, Purpose, StoreError};

use crate::capture::bits::result_with_bits;
use crate::capture::sink::Trees;
use crate::capture::{About, Attention, CaptureError, Taken};
use crate::operation::apply::outside;
use crate::operation::draft::Draft;
use crate::operation::error::OperationError;
use crate::operation::leftovers::{Left, found_at, is_same_but_bits};
use crate::operation::outside::Outer;
use crate::operation::request::{Aim, Request, Returns};
use crate::view::{LeftoverView, PathView, Recovered, shown};
use crate::workspace::locked::Locked;
use crate::workspace::{History, MOMENT, Standing, Workspace};

pub use crate::workspace::errors::RecoverError;

use self::sides::{Side, edited};

impl Workspace {
    /// Ends every operation that was cut off in this folder.
    pub(crate) fn recover_pending(&mut self) -> Result<(), RecoverError> {
        // Where that cannot be recorded now, whoever writes here next does it first.
        if self.came_back().is_some()
            && let Ok(mut locked) = self.lock(MOMENT)
        {
            let _ = locked.take_up_line();
        }
        let first = match self.first_unended() {
            Err(error) if error.is_damaged_database() => {
                self.store.rebuild()?;
                self.first_unended()
            }
            first => first,
        };
        let Some(first) = first? else {
            // What earlier operations left is worth a try, and neither waiting nor failing.
            if (!self.store.leftovers().is_empty() || self.store.reopened().is_some())
                && let Ok(locked) = self.lock(Duration::ZERO)
            {
                let _ = locked.close_reopened();
                let _ = locked.clear_leftovers();
            }
            return Ok(());
        };
        // Whoever only reads is told, and gets what there is.
        let waits = |error: RecoverError| match error {
            RecoverError::Store(source) if source.is_full_disk() || source.is_refused() => {
                RecoverError::Home { operation: first.clone(), source }
            }
            error => error,
        };
        // A process that is in the middle of an operation holds the lock; one that was cut off does not. Nobody waits for the
        // first here: who only reads takes what is there, and who writes ends what is pending once it has the lock.
        match self.lock(MOMENT) {
            Err(StoreError::Busy) => Err(RecoverError::UnderWay { operation: first.clone() }),
            locked => locked.map_err(Into::into).and_then(Locked::recovered).map(drop).map_err(waits),
        }
    }

    /// Records the state that stands again, so that nobody is taken for the one who put it back.
    fn note_put_back(&self, taken: Taken<'_>, operation: &Operation) -> Result<(), CaptureError> {
        let Taken { mut writer, scan, fresh, held, .. } = taken;
        writer.allow(Purpose::End);
        let head = self.store.head(self.record.line)?;
        if head.as_ref().is_none_or(|head| head.checkpoint.root == scan.root) {
            return Ok(());
        }
        let about =
            About { operation: Some(operation.id.clone()), held, ..About::of(piton_model::Cause::BeforeOperation) };
        let mut checkpoint = self.checkpoint(&scan, &fresh, head.as_ref(), about)?;
        checkpoint.owned =
            with_operation(&Trees { fresh: &fresh, store: &self.store }, &scan.root.tree, checkpoint.owned, operation);
        writer.record(piton_model::Record::Checkpoint(checkpoint))?;
        writer.commit(true, false)?;
        Ok(())
    }
}

impl Locked<'_> {
    /// Goes on with the line of a folder that came back, so that what was cut off in it is ended, and nobody is told that it is
    /// another folder than its own checkpoints are of.
    fn take_up_line(&mut self) -> Result<(), StoreError> {
        let Some((line, root)) = self.came_back() else { return Ok(()) };
        let at = self.environment.clock.now();
        self.record_change(piton_model::Workspace { root, line, at, ..self.record.clone() })?;
        self.store().drop_index();
        Ok(())
    }

    /// Ends what was cut off: whoever held the lock until now may have died in the middle of an operation, and the tree is a
    /// mix until that has its end.
    pub(crate) fn recovered(mut self) -> Result<Self, RecoverError> {
        self.recover_all()?;
        Ok(self)
    }

    fn recover_all(&mut self) -> Result<(), RecoverError> {
        self.take_up_line()?;
        self.close_reopened()?;
        self.clear_leftovers()?;
        for row in self.store.pending()?.into_iter().chain(self.returned()?) {
            // The record of its end is what is damaged. To run it once more would take back what was done since.
            if let Some(outcome) = self.store.end_shown_later(&row)? {
                self.note_end(&row.id, outcome)?;
                continue;
            }
            // Whatever stands there now, also where it looks like the new end, is what somebody did since.
            if self.store.progress(&row.id) == Some(Progress::PutBack) {
                self.note_end(&row.id, Outcome::RolledBack { why: "it was put back".to_owned() })?;
                continue;
            }
            let before = self.store.checkpoint(&row.before)?;
            let (operation, before) = match (self.store.operation(&row), before) {
                (Ok(operation), Some(before)) => (operation, before),
                (Err(StoreError::DamagedRecord { .. }), _) | (_, None) => {
                    self.give_up(row.id, row.before, "its record is damaged, and its files may be half changed")?;
                    continue;
                }
                (Err(error), _) => return Err(error.into()),
            };
            // In another folder, or in none, it waits: nobody asked for that folder to be touched. Once that one is the
            // workspace's, there is nothing left to wait for.
            let Ok(Standing::Same(root)) = self.standing() else { continue };
            if !root.identity().is_same(&operation.root) {
                self.end_replaced(row.id, row.before)?;
                continue;
            }
            let fork = operation.conversation.clone().filter(|change| change.worktree.is_some());
            let id = row.id.clone();
            match self.recover(&root, before, operation) {
                Err(RecoverError::Store(StoreError::Damaged(_) | StoreError::Missing(_))) => {
                    self.give_up(
                        row.id,
                        row.before,
                        "what is needed to end it is damaged, and its files may be half changed",
                    )?;
                }
                recovered => self.recovered.push(recovered?),
            }
            if let Some(fork) = fork
                && self.store.operation_row(&id)?.is_some_and(|row| row.state == OperationState::Done)
            {
                self.end_fork(&fork);
            }
        }
        // Its record is lost altogether, and with it what it was about to do.
        if let Some((operation, before)) = self.store.begun_and_lost(self.record.line)? {
            self.give_up(operation, before, "its record is damaged, and its files may be half changed")?;
        }
        Ok(())
    }

    /// Ends what was cut off in folders that another one has taken the place of, and what was cut off in this one before others
    /// stood in its place.
    pub(crate) fn end_replaced_ones(&mut self) -> Result<(), RecoverError> {
        for row in self.store.pending()? {
            if self.store.operation(&row).is_ok_and(|operation| !self.record.root.is_same(&operation.root)) {
                self.end_replaced(row.id, row.before)?;
            }
        }
        if self.returned()?.is_empty() { Ok(()) } else { self.recover_all() }
    }

    fn end_replaced(&mut self, operation: OperationId, before: CheckpointId) -> Result<(), StoreError> {
        self.note_end(&operation, Outcome::GivenUp(GivenUp::Replaced))?;
        self.recovered.push(Recovered { replaced: true, ..ended(operation, before) });
        Ok(())
    }

    /// Ends an operation of which too much is damaged: that is said aloud, and does not stand in the way for ever.
    fn give_up(&mut self, operation: OperationId, before: CheckpointId, why: &str) -> Result<(), StoreError> {
        self.note_end(&operation, Outcome::GivenUp(GivenUp::ForGood { why: why.to_owned() }))?;
        self.recovered.push(Recovered { damaged: true, ..ended(operation, before) });
        Ok(())
    }

    /// Puts bits back that a process set for an operation which it never came to record.
    fn close_reopened(&self) -> Result<(), StoreError> {
        let Some(note) = self.store.reopened() else { return Ok(()) };
        if self.store.operations()?.first().map(|row| &row.id) == note.last.as_ref() {
            // In another folder, or in none, it waits.
            match self.standing() {
                Ok(Standing::Same(root)) if root.identity().is_same(&note.root) => close_again(&root, &note.ways),
                _ => return Ok(()),
            }
        }
        self.store().forget_reopened(&self.lock);
        Ok(())
    }

    fn recover(&self, root: &Root, before: CheckpointRow, operation: Operation) -> Result<Recovered, RecoverError> {
        let refused = |error: ApplyError<StoreError>| match error {
            ApplyError::Path { path, source } => {
                RecoverError::Refused { operation: operation.id.clone(), path, reason: source.to_string() }
            }
            ApplyError::Content(error) => error.into(),
            other => RecoverError::Refused {
                operation: operation.id.clone(),
                path: WorkspacePath::root(),
                reason: other.to_string(),
            },
        };
        // Folders whose bits somebody changed since keep them.
        let folders: Vec<_> = operation
            .folders
            .iter()
            .filter(|f| mode_of(root, &f.path).is_ok_and(|m| m == f.before || m == f.after || m == f.open()))
            .cloned()
            .collect();
        let applier = Applier { root, operation: &operation.id, steps: &operation.steps, folders: &folders };
        let progress = self.store.progress(&operation.id);
        let note = self.store().progress_note(&self.lock)?;
        applier.open_folders().map_err(refused)?;
        for number in 0..operation.steps.len() {
            applier.settle(number).map_err(refused)?;
        }
        self.capture_first(root, &operation)?;
        point("recover:captured").map_err(io_error)?;

        let sides = operation
            .steps
            .iter()
            .enumerate()
            .map(|(number, step)| self.side_or_torn(&applier, &operation, number, step))
            .collect::<Result<Vec<_>, _>>()
            .map_err(refused)?;
        let outer = Outer::of(&operation).map_err(io_error)?;
        let outer = outer.as_ref().map(Outer::applier);
        let sides_outside = outer.as_ref().map_or_else(Vec::new, |outer| self.sides_outside(outer, &operation));
        let told = sides.iter().chain(sides_outside.iter().flatten()).filter(|side| **side != Side::Either);
        let mut told = told.peekable();
        let finished = match (progress, told.peek()) {
            (Some(Progress::Clearing), _) => true,
            // Of one that cannot be looked at nobody knows that it got there.
            (_, Some(_)) if sides_outside.iter().any(Result::is_err) => false,
            (_, Some(_)) => told.all(|side| matches!(side, Side::After | Side::EditedAfter)),
            (_, None) => folders_are_done(root, &operation),
        };
        // To put back what can be told and to leave the rest would only be another mix.
        let is_mixed = !finished && sides.contains(&Side::Mixed);
        let goes_back = !finished && !is_mixed;
        if goes_back {
            for (number, side) in sides.iter().enumerate() {
                if matches!(side, Side::After | Side::Torn) {
                    self.swap_back_whole(&applier, number).map_err(refused)?;
                }
            }
        }
        // A power cut that took a swap and kept the removal that followed it would leave neither.
        applier.sync_swapped().map_err(refused)?;
        if finished {
            if let Some(outer) = &outer {
                outer.sync_swapped().map_err(outside).map_err(refused)?;
            }
            note.write(&operation.id, Progress::Clearing)?;
        }
        let cleared = self.clear_all(&applier, &before.checkpoint).map_err(refused)?;
        let mut end_outside = OutsideEnd::default();
        if let Some(outer) = &outer {
            let way = if finished { None } else { Some(goes_back) };
            end_outside = self.end_outside(outer, &sides_outside, way).map_err(refused)?;
        }
        let OutsideEnd { left: left_outside, stays: stays_outside, waits: waits_outside } = end_outside;
        self.keep_leftovers(&operation.id, &cleared.left, &stays_outside)?;
        let rescued = cleared.checkpoint.map(|checkpoint| checkpoint.id);
        // Whoever moved HEAD or staged something since keeps that: it is said, and does not stand in the way for ever.
        let end = if finished { GitEnd::After } else { GitEnd::Before };
        let git_stays = match operation.git.as_ref().map(|change| self.finish_git(change, end)) {
            Some(Err(refusal)) => Some(refusal.to_string()),
            Some(Ok(false)) => Some("it does not read back as it was put".to_owned()),
            Some(Ok(true)) | None => None,
        };
        let not_taken = applier.close_folders(finished).map_err(refused)?;
        applier.sync_swapped().map_err(refused)?;
        point("recover:swapped").map_err(io_error)?;

        let mut left_alone = if finished {
            let (result, new) = result_with_bits(&self.store, root, &operation, &not_taken)?;
            self.finish_recovered(operation.clone(), before.checkpoint.clone(), (result, &new), rescued)?;
            edited(&operation, &sides)
        } else if is_mixed {
            let why = "it was cut off, and nothing tells which of its files are as before it".to_owned();
            self.note_end(&operation.id, Outcome::GivenUp(GivenUp::ForGood { why }))?;
            let steps = operation.steps.iter().zip(&sides).filter(|(_, side)| **side != Side::Before);
            steps.map(|(step, _)| step.path.clone()).collect()
        } else {
            self.merge_back(root, &operation, &before)?
        };
        left_alone.extend(cleared.rescued);
        left_alone.sort();
        left_alone.dedup();
        // Somebody moved or removed the folder since the operation put something into it.
        let is_moved = |path: &WorkspacePath| root.parent(path).is_err();
        left_alone.retain(|path| !is_moved(path));
        let moved =
            operation.steps.iter().map(|step| &step.path).filter(|path| is_moved(path)).map(Into::into).collect();
        // What is not known outside the workspace is told already.
        let stays_outside = stays_outside.into_iter().filter(|left| left.is_stored && !left.is_told);
        let leftovers = cleared.left.into_iter().chain(stays_outside).map(|left| left.view).collect();
        let left_alone = left_alone.iter().map(Into::into).collect();
        let id = operation.id.clone();
        let before = before.checkpoint.id;
        let mixed = is_mixed;
        let ended = ended(id, before);
        Ok(Recovered { finished, left_alone, left_outside, waits_outside, moved, git_stays, mixed, leftovers, ..ended })
    }

    /// Drives the files outside the workspace to the same end, and removes what piton put beside them. `back` is none where
    /// the operation is done, and says otherwise whether they go back or stay.
    fn end_outside(
        &self,
        outer: &Applier<'_>,
        sides: &[Result<Side, String>],
        back: Option<bool>,
    ) -> Result<OutsideEnd, ApplyError<StoreError>> {
        let goes_back = back == Some(true);
        let mut refused = Vec::new();
        for (number, side) in sides.iter().enumerate() {
            if goes_back
                && matches!(side, Ok(Side::After | Side::Torn))
                && self.swap_back_outside(outer, number).is_err()
            {
                refused.push(number);
            }
        }
        outer.sync_swapped().map_err(outside)?;
        let mut stays = self.clear_outside(outer).map_err(outside)?;
        let (mut left, mut waits) = (Vec::new(), Vec::new());
        for (number, side) in sides.iter().enumerate() {
            let step = &outer.steps[number];
            if let (Err(why), Some(_)) = (side, back) {
                waits.push(LeftoverView { path: PathView::outside(&step.path), why: why.clone() });
                // Noted with what is to be removed, so that the next command tries again.
                stays.retain(|left| left.step != number);
                stays.push(Left::waits(outer, number, why.clone()));
                continue;
            }
            let is_unknown = stays.iter().any(|left| left.step == number && !left.is_stored);
            // What was there is not beside it any more, so it could not go back with the rest.
            let is_stuck = || {
                let here = found_at::<StoreError>(outer.root, step.path.as_bytes(), &step.path);
                goes_back && *side == Ok(Side::After) && !here.is_ok_and(|here| here != step.after)
            };
            let stays_put = back == Some(false) && *side != Ok(Side::Before);
            let is_told =
                matches!(side, Err(_) | Ok(Side::EditedBefore | Side::EditedAfter | Side::Mixed)) || stays_put;
            if is_unknown || is_told || refused.contains(&number) || is_stuck() {
                left.push(shown(&step.path));
            }
        }
        outer.sync_swapped().map_err(outside)?;
        Ok(OutsideEnd { left, stays, waits })
    }

    /// Captures what is there now, every path of the operation included, so that nothing that follows can lose it.
    fn capture_first(&self, root: &Root, operation: &Operation) -> Result<(), RecoverError> {
        let waits = |source| RecoverError::Capture { operation: operation.id.clone(), source: Box::new(source) };
        let forced: Vec<_> = operation.steps.iter().map(|s| s.path.clone()).collect();
        let attention = Attention { forced: &forced, ..Attention::default() };
        let taken = self.take_or_lean(root, &attention, &forced).map_err(waits)?;
        let Taken { mut writer, scan, fresh, held, .. } = taken;
        writer.allow(Purpose::End);
        let parent = self.store.head(self.record.line)?;
        let about =
            About { operation: Some(operation.id.clone()), held, ..About::of(piton_model::Cause::BeforeOperation) };
        let mut checkpoint = self.checkpoint(&scan, &fresh, parent.as_ref(), about).map_err(waits)?;
        checkpoint.owned =
            with_operation(&Trees { fresh: &fresh, store: &self.store }, &scan.root.tree, checkpoint.owned, operation);
        // Nothing new to keep: a crash in the middle of a recovery must not add a checkpoint each time.
        if parent.is_some_and(|p| p.checkpoint.root == checkpoint.root) {
            return Ok(());
        }
        writer.record(piton_model::Record::Checkpoint(checkpoint))?;
        writer.commit(true, false)?;
        Ok(())
    }

    /// Drives what is still at the new end back from the store, path by path, and leaves what was edited; ends the
    /// operation. Returns the edited paths, and those that the store has only damaged, which are left as well: to wait for
    /// them would be to wait for ever.
    fn merge_back(
        &self,
        root: &Root,
        operation: &Operation,
        before: &CheckpointRow,
    ) -> Result<Vec<WorkspacePath>, RecoverError> {
        // As it is after the swaps back, so that nobody is taken for the one who did them.
        let forced: Vec<_> = operation.steps.iter().map(|s| s.path.clone()).collect();
        let attention = Attention { forced: &forced, ..Attention::default() };
        let waits = |error: CaptureError| waits_for(error, &operation.id);
        let taken = self.take_or_lean(root, &attention, &forced).map_err(waits)?;
        self.note_put_back(taken, operation).map_err(waits)?;
        let mut damaged = Vec::new();
        loop {
            match self.merge_back_without(root, operation, before, &damaged)? {
                MergedBack::Done { left_alone } => return Ok(left_alone),
                MergedBack::Damaged { paths } => damaged.extend(paths),
            }
        }
    }

    fn merge_back_without(
        &self,
        root: &Root,
        operation: &Operation,
        before: &CheckpointRow,
        damaged: &[WorkspacePath],
    ) -> Result<MergedBack, RecoverError> {
        let waits = |source| RecoverError::Capture { operation: operation.id.clone(), source: Box::new(source) };
        let forced: Vec<_> = operation.steps.iter().map(|s| s.path.clone()).collect();
        let attention = Attention { forced: &forced, ..Attention::default() };
        let taken = self.take_or_lean(root, &attention, &forced).map_err(waits)?;
        let trees = Trees { fresh: &taken.fresh, store: &self.store };
        let now = taken.scan.root;
        let mut new = NewTrees::new();
        let mut edits = Vec::new();
        let mut left_alone = Vec::new();
        for step in &operation.steps {
            // With the bits from before the operation back, what was unreadable then is so again; it was driven back above.
            let is_closed = |f: &FolderMode| f.before & 0o500 != 0o500 && step.path.is_within(&f.path);
            if operation.folders.iter().any(is_closed) && is_unseen(&trees, &now.tree, &step.path)? {
                continue;
            }
            let here = lookup(&trees, &now.tree, &step.path)?;
            let (was, put) = (step.before.as_ref(), step.after.as_ref());
            let wanted = match merge_entry(&trees, put, here.as_ref(), was, &mut new) {
                // What stood there cannot be told from what somebody did in there: it stays.
                Err(StoreError::Damaged(_) | StoreError::Missing(_)) => {
                    left_alone.push(step.path.clone());
                    continue;
                }
                wanted => wanted?,
            };
            let is_damaged = damaged.iter().any(|path| path.is_within(&step.path));
            let is_as_before = match (&wanted, &step.before) {
                (Some(wanted), Some(before)) => is_same_but_bits(&trees, wanted, before)?,
                (wanted, before) => wanted == before,
            };
            if !is_as_before || is_damaged {
                left_alone.push(step.path.clone());
            }
            if wanted != here && !is_damaged {
                edits.push((step.path.clone(), Edit::Put(wanted)));
            }
        }
        let ended = Outcome::RolledBack { why: "it was cut off".to_owned() };
        if edits.is_empty() {
            drop(taken);
            self.note_end(&operation.id, ended)?;
            return Ok(MergedBack::Done { left_alone });
        }
        let (tree, more) = edit(&Layered { over: &new, under: &trees }, &now.tree, &edits)?;
        new.extend(more);
        let layered = Layered { over: &new, under: &trees };
        let mut plan = plan::plan(&layered, now, RootState { tree, mode: now.mode }, &[])?;
        plan.new_trees.extend(new);
        let kind = OperationKind::Recover { of: operation.id.clone() };
        let returns = Some(Returns { to: before.checkpoint.id.clone(), from: None });
        let request = Request { returns, ..Request::new(kind, Aim::State(before.clone())) };
        let draft = Draft { plan, ..Draft::default() };
        let refused = |error: OperationError| RecoverError::Refused {
            operation: operation.id.clone(),
            path: WorkspacePath::root(),
            reason: error.to_string(),
        };
        match self.operate_recovery(root, &request, &draft, taken) {
            Err(OperationError::RolledBack { damaged: paths, .. })
                if paths.iter().any(|path| !damaged.contains(path)) =>
            {
                return Ok(MergedBack::Damaged { paths });
            }
            done => done.map_err(refused)?,
        }
        self.note_end(&operation.id, ended)?;
        Ok(MergedBack::Done { left_alone })
    }
}

impl History {
    /// The first operation that has no end.
    fn first_unended(&self) -> Result<Option<OperationId>, StoreError> {
        match self.store.pending()?.into_iter().chain(self.returned()?).next() {
            Some(row) => Ok(Some(row.id)),
            None => Ok(self.store.begun_and_lost(self.record.line)?.map(|(id, _)| id)),
        }
    }

    /// The operations that were given up while another folder stood here, and whose own one is the workspace's again. Where
    /// that was captured since, it is too late: what stands there is what somebody went on with.
    fn returned(&self) -> Result<Vec<OperationRow>, StoreError> {
        let mut returned = Vec::new();
        for row in self.store.given_up_as_replaced()? {
            let is_own = self.store.operation(&row).is_ok_and(|operation| self.record.root.is_same(&operation.root));
            if is_own && self.store.end_shown_later(&row)?.is_none() {
                returned.push(row);
            }
        }
        Ok(returned)
    }

    /// Whether an operation has yet to be ended in this folder, so that its staged files are its own.
    pub(crate) fn is_unended(&self, operation: &OperationId) -> bool {
        self.store.is_pending(operation)
            || self.returned().is_ok_and(|rows| rows.iter().any(|row| row.id == *operation))
    }

    /// The line of the folder that stands here, where that is not the folder of now and was here before: it came back.
    fn came_back(&self) -> Option<(u32, RootIdentity)> {
        let Ok(Standing::Other(root)) = self.standing() else { return None };
        // A disk that is not mounted leaves an empty folder.
        if root.is_empty().unwrap_or(true) {
            return None;
        }
        let lines = self.store.lines().ok()?;
        lines.into_iter().find(|(_, folder)| folder.is_same(&root.identity())).map(|(line, _)| (line, root.identity()))
    }
}

/// What came of the files outside the workspace.
#[derive(Default)]
struct OutsideEnd {
    /// Those that somebody changed since: left as they are.
    left: Vec<String>,
    /// What could not be removed.
    stays: Vec<Left>,
    /// Those that could not be looked at.
    waits: Vec<LeftoverView>,
}

/// An operation that has its end, of which nothing more is known.
fn ended(operation: OperationId, before: CheckpointId) -> Recovered {
    Recovered {
        operation,
        before,
        finished: false,
        left_alone: Vec::new(),
        left_outside: Vec::new(),
        waits_outside: Vec::new(),
        moved: Vec::new(),
        git_stays: None,
        damaged: false,
        mixed: false,
        replaced: false,
        leftovers: Vec::new(),
    }
}

/// What came of driving files back.
enum MergedBack {
    Done {
        /// Paths that stay as they are.
        left_alone: Vec<WorkspacePath>,
    },
    /// The store has only damaged copies of these; nothing was changed.
    Damaged { paths: Vec<WorkspacePath> },
}

/// Whose changes are that were found in the middle of an operation: its own are those that put one of its ends in place.
fn with_operation(trees: &Trees<'_>, now: &ObjectId, owned: Vec<Owned>, operation: &Operation) -> Vec<Owned> {
    let is_its = |changed: &ChangedPath| {
        let step = operation.steps.iter().find(|step| changed.path.is_within(&step.path));
        // Where a listing is damaged nobody can tell, and an edit that counts as piton's is still in the checkpoint.
        step.is_some_and(|step| is_at_an_end(trees, now, step, &changed.path).unwrap_or(true))
    };
    let mut its = Vec::new();
    let mut others = Vec::new();
    for Owned { owner, settles, doubt, paths } in owned {
        let (mine, rest): (Vec<_>, Vec<_>) = paths.into_iter().partition(is_its);
        its.extend(mine);
        if !rest.is_empty() {
            others.push(Owned { owner, settles, doubt, paths: rest });
        }
    }
    if !its.is_empty() {
        others.push(Owned::of(Owner::Operation { operation: operation.id.clone() }, its));
    }
    others
}

/// Whether what stands at a path of a step is what was there before the operation, or what it puts there.
fn is_at_an_end(trees: &Trees<'_>, now: &ObjectId, step: &Step, path: &WorkspacePath) -> Result<bool, StoreError> {
    let here = lookup(trees, now, path)?;
    let inner = path.names().skip(step.path.names().count()).collect::<Vec<_>>().join(&b'/');
    for end in [&step.before, &step.after] {
        let there = match (end, WorkspacePath::new(inner.clone())) {
            (end, _) if inner.is_empty() => end.clone(),
            (Some(Entry::Folder { tree, .. }), Ok(inner)) => lookup(trees, tree, &inner)?,
            _ => None,
        };
        if there == here {
            return Ok(true);
        }
    }
    Ok(false)
}

fn waits_for(source: CaptureError, operation: &OperationId) -> RecoverError {
    RecoverError::Capture { operation: operation.clone(), source: Box::new(source) }
}

/// Whether a path cannot be looked at: it, or a folder that it is in, is unreadable now.
fn is_unseen<S: TreeSource>(trees: &S, root: &ObjectId, path: &WorkspacePath) -> Result<bool, S::Error> {
    let mut at = path.clone();
    while !at.is_root() {
        if let Some(Entry::Skipped { reason: SkipReason::Unreadable }) = lookup(trees, root, &at)? {
            return Ok(true);
        }
        at = at.split().map(|(above, _)| above).unwrap_or_default();
    }
    Ok(false)
}

/// For an operation that only changes folders' bits. Of one that changes none, nothing in the workspace tells how far it came.
fn folders_are_done(root: &Root, operation: &Operation) -> bool {
    !operation.folders.is_empty()
        && operation.folders.iter().all(|f| mode_of(root, &f.path).is_ok_and(|m| m == f.after))
}

fn io_error(source: io::Error) -> StoreError {
    StoreError::Io { what: "cannot recover", path: "the workspace".into(), source }
}
