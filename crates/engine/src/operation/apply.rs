//! The middle of an operation: stage, swap and check, and everything back where the system refuses.

use std::io::{self, Write};
use std::sync::Arc;

use piton_host::apply::{Applier, ApplyError, Content, Refusals, Swapped};
use piton_host::fail::point;
use piton_host::{Root, Signatures, in_parallel, read_entry_signed};
use piton_model::diff::TreeSource;
use piton_model::git::{GitEnd, GitMove};
use piton_model::{Checkpoint, Entry, ObjectId, Outcome, Tree, WorkspacePath};
use piton_store::{Progress, ProgressNote, Reader, StoreError};

use crate::capture::sink::HashingSink;
use crate::capture::sound::is_sound;
use crate::operation::begin::Begun;
use crate::operation::error::{OperationError, are_damaged};
use crate::operation::leftovers::{Left, found_at};
use crate::operation::outside::Outer;
use crate::view::shown;
use crate::workspace::History;
use crate::workspace::locked::Locked;

/// The same of all that an operation does.
pub(crate) struct CheckedAll {
    pub inside: Checked,
    pub outside: Checked,
}

/// What the check after the swap found.
#[derive(Default)]
pub(crate) struct Checked {
    /// Steps where something else came out than was captured.
    pub rescued: Vec<usize>,
    /// Steps where what came out is as it was captured, and the store's copy of it cannot be read back.
    pub unsound: Vec<usize>,
    pub changed_again: Vec<WorkspacePath>,
    /// Where the filesystem did not take the permission bits that it was given.
    pub bits_not_taken: Vec<WorkspacePath>,
    /// What came out, as it was read.
    pub came_out: Vec<Option<Signatures>>,
}

impl Checked {
    /// Notes the steps whose bits were not taken: what differs in nothing else was not changed by anybody.
    pub(crate) fn without_bits(&mut self, applier: &Applier<'_>, not_taken: &[usize]) {
        self.bits_not_taken.extend(not_taken.iter().map(|number| applier.steps[*number].path.clone()));
        self.changed_again.retain(|path| !self.bits_not_taken.contains(path));
    }
}

/// What the check of one step found.
#[derive(Default)]
struct CheckedStep {
    /// Something else came out than was captured.
    rescue: bool,
    unsound: bool,
    /// Something else stands there now than was put there.
    changed_again: bool,
    came_out: Option<Signatures>,
}

impl Locked<'_> {
    /// Stages, swaps and checks; on any failure everything is put back.
    pub(crate) fn apply(
        &self,
        root: &Root,
        begun: &Begun,
        progress: &ProgressNote,
        is_partial: bool,
        refused_outside: &Refusals,
    ) -> Result<CheckedAll, OperationError> {
        let refusals = Refusals::new(is_partial);
        let applier = begun.applier(root);
        let outer = Outer::of(&begun.operation).map_err(|e| self.folder_error(e))?;
        let outer = outer.as_ref().map(Outer::applier);
        let (swapped, swapped_outside) = (Swapped::default(), Swapped::default());
        let git = begun.operation.git.as_ref();
        let result = self
            .stage_and_swap(&applier, outer.as_ref(), (&swapped, &swapped_outside), (&refusals, refused_outside))
            .and_then(|checked| git.map_or(Ok(()), |change| self.move_git(change, GitEnd::After)).map(|()| checked));
        result.map_err(|error| {
            refusals.note(&error);
            let refused = refusals.paths();
            let full_disk = match &error {
                ApplyError::Path { source, .. } => source.kind() == io::ErrorKind::StorageFull,
                ApplyError::Content(error) => error.is_full_disk(),
                _ => false,
            };
            let damaged = match &error {
                ApplyError::Content(StoreError::Damaged(_) | StoreError::Missing(_)) => {
                    self.damaged_in(&begun.operation.steps)
                }
                _ => Vec::new(),
            };
            let reason = if damaged.is_empty() { describe(error) } else { are_damaged(&damaged) };
            let back = || {
                // Where git refused before anything moved, there is nothing to ask it for.
                if let Some(change) = git
                    && !self.git_is_at(change, GitEnd::Before).unwrap_or(false)
                {
                    self.move_git(change, GitEnd::Before)?;
                }
                let left_outside = match &outer {
                    Some(outer) => self.put_back_outside(outer, &swapped_outside).map_err(outside)?,
                    None => Vec::new(),
                };
                let left = self.put_back(&applier, &swapped, &begun.before)?;
                self.keep_leftovers(&begun.operation.id, &left, &left_outside).map_err(ApplyError::Content)?;
                Ok(left.into_iter().chain(left_outside).map(|left| left.view).collect())
            };
            match back() {
                Ok(leftovers) => {
                    let id = &begun.operation.id;
                    // Where its end cannot be recorded, for want of room above all, the next command must not take what the
                    // user does until then for a part of it.
                    let noted = progress.write(id, Progress::PutBack);
                    let ended = self.note_end(id, Outcome::RolledBack { why: reason.clone() });
                    match noted.or(ended) {
                        Ok(()) => OperationError::RolledBack { reason, full_disk, damaged, refused, leftovers },
                        Err(error) => OperationError::PutBackUnrecorded { reason, source: error },
                    }
                }
                Err(ApplyError::Path { path, source }) => {
                    OperationError::Stuck { reason, path, back: source.to_string() }
                }
                Err(other) => OperationError::Stuck { reason, path: WorkspacePath::root(), back: describe(other) },
            }
        })
    }

    fn stage_and_swap(
        &self,
        applier: &Applier<'_>,
        outer: Option<&Applier<'_>>,
        (swapped, swapped_outside): (&Swapped, &Swapped),
        (refusals, refused_outside): (&Refusals, &Refusals),
    ) -> Result<CheckedAll, ApplyError<StoreError>> {
        applier.open_folders()?;
        let not_taken = self.store.read_steadily(|| applier.stage(&FromStore(&self.store), refusals))?;
        let not_taken_outside = match outer {
            Some(outer) => outer.stage(&FromStore(&self.store), refused_outside).map_err(outside)?,
            None => Vec::new(),
        };
        let mut checked = applier.while_syncing(|| {
            applier.swap(swapped, refusals)?;
            if let Some(outer) = outer {
                outer.swap(swapped_outside, refused_outside).map_err(outside)?;
            }
            self.store.read_steadily(|| check(&self.store, applier))
        })?;
        self.store_again(applier, &checked.unsound)?;
        let mut checked_outside = Checked::default();
        if let Some(outer) = outer {
            // What cannot be kept in a checkpoint of the workspace must not go: somebody wrote it in the last moment.
            checked_outside = check(&self.store, outer).map_err(outside)?;
            self.store_again(outer, &checked_outside.unsound).map_err(outside)?;
            if let Some(number) = checked_outside.rescued.first() {
                return Err(outside(ApplyError::Stale { path: outer.steps[*number].path.clone() }));
            }
            checked_outside.without_bits(outer, &not_taken_outside);
        }
        checked.without_bits(applier, &not_taken);
        checked.bits_not_taken.extend(applier.close_folders(true)?);
        applier.sync_swapped()?;
        outer.map_or(Ok(()), |outer| outer.sync_swapped().map_err(outside))?;
        Ok(CheckedAll { inside: checked, outside: checked_outside })
    }

    /// Puts the old tree back. Returns what was staged and could not be removed again.
    fn put_back(
        &self,
        applier: &Applier<'_>,
        swapped: &Swapped,
        before: &Checkpoint,
    ) -> Result<Vec<Left>, ApplyError<StoreError>> {
        // The refusal may have come when some of them were closed already.
        applier.reopen_folders();
        applier.swap_all_back(swapped)?;
        applier.check_settled()?;
        // A power cut that took a swap and kept the removal that followed it would leave neither.
        applier.sync_swapped()?;
        let cleared = self.clear_all(applier, before)?;
        applier.close_folders(false)?;
        // Once the end is noted nobody looks again.
        applier.sync_swapped()?;
        let staged = cleared.lost.into_iter().filter(|number| applier.steps[*number].after.is_some());
        Ok(cleared.left.into_iter().chain(staged.map(|number| Left::lost(applier, number))).collect())
    }

    /// Swaps files elsewhere back and removes what was staged for them. Returns what could not be removed.
    fn put_back_outside(&self, outer: &Applier<'_>, swapped: &Swapped) -> Result<Vec<Left>, ApplyError<StoreError>> {
        outer.swap_all_back(swapped)?;
        outer.check_settled()?;
        outer.sync_swapped()?;
        let left = self.clear_outside(outer)?;
        outer.sync_cleared()?;
        Ok(left)
    }
}

impl History {
    /// Drives the repository to one end of a move, and reads back that it is there.
    fn move_git(&self, change: &GitMove, end: GitEnd) -> Result<(), ApplyError<StoreError>> {
        let refused = |why: String| ApplyError::Path { path: WorkspacePath::root(), source: io::Error::other(why) };
        match self.finish_git(change, end) {
            Ok(true) => Ok(()),
            Ok(false) => Err(refused("the repository does not read back as it was put".to_owned())),
            Err(refusal) => Err(refused(refusal.to_string())),
        }
    }
}

/// Compares what came out with what was captured and with what the store has of it, and what went in with the plan.
fn check(store: &Reader, applier: &Applier<'_>) -> Result<Checked, ApplyError<StoreError>> {
    let mut found = in_parallel(applier.steps.len(), || (), |(), number| check_step(store, applier, number))?;
    let came_out = found.iter_mut().map(|step| step.came_out.take()).collect();
    let numbers = |of: fn(&CheckedStep) -> bool| (0..found.len()).filter(|n| of(&found[*n])).collect::<Vec<_>>();
    let again = numbers(|step| step.changed_again);
    Ok(Checked {
        rescued: numbers(|step| step.rescue),
        unsound: numbers(|step| step.unsound),
        changed_again: again.into_iter().map(|n| applier.steps[n].path.clone()).collect(),
        bits_not_taken: Vec::new(),
        came_out,
    })
}

fn check_step(store: &Reader, applier: &Applier<'_>, number: usize) -> Result<CheckedStep, ApplyError<StoreError>> {
    let step = &applier.steps[number];
    point("operate:check").map_err(|source| ApplyError::Path { path: step.path.clone(), source })?;
    let mut checked = CheckedStep::default();
    if step.before.is_some() {
        let out = read_entry_signed(applier.root, &applier.staged_path(number), &HashingSink::default());
        let (out, signatures) = out
            .unwrap_or_else(|never| match never {})
            .map_err(|source| ApplyError::Path { path: step.path.clone(), source })?;
        checked.came_out = Some(signatures);
        checked.rescue = out.is_some() && out != step.before;
        // It cannot be stored, so it must not go.
        if checked.rescue && out.as_ref().is_some_and(Entry::holds_skipped) {
            return Err(ApplyError::Stale { path: step.path.clone() });
        }
        if out.as_ref().is_some_and(Entry::is_folder) {
            applier.check_removable(number)?;
        }
        if let Some(out) = out.filter(|_| !checked.rescue) {
            checked.unsound = !is_sound(store, &out).map_err(ApplyError::Content)?;
        }
    }
    checked.changed_again = found_at(applier.root, step.path.as_bytes(), &step.path)? != step.after;
    Ok(checked)
}

pub(crate) fn describe(error: ApplyError<StoreError>) -> String {
    match error {
        ApplyError::Path { path, source } if path.is_root() => source.to_string(),
        ApplyError::Path { path, source } => format!("`{}`: {source}", path.display()),
        ApplyError::Stale { path } => format!("`{}` changed in the meantime", path.display()),
        ApplyError::ReadBack { path } => format!("`{}` does not read back as it was written", path.display()),
        ApplyError::Content(error) => error.to_string(),
    }
}

/// An error of a file elsewhere, with its whole path.
pub(crate) fn outside(error: ApplyError<StoreError>) -> ApplyError<StoreError> {
    let source = match error {
        ApplyError::Path { path, source } => io::Error::new(source.kind(), format!("{}: {source}", shown(&path))),
        ApplyError::Stale { path } => io::Error::other(format!("{} changed in the meantime", shown(&path))),
        ApplyError::ReadBack { path } => {
            io::Error::other(format!("{} does not read back as it was written", shown(&path)))
        }
        content @ ApplyError::Content(_) => return content,
    };
    ApplyError::Path { path: WorkspacePath::root(), source }
}

/// Content for staging, from the store.
pub(crate) struct FromStore<'a>(pub &'a Reader);

impl Content for FromStore<'_> {
    type Error = StoreError;

    fn tree(&self, id: &ObjectId) -> Result<Arc<Tree>, StoreError> {
        self.0.tree(id)
    }

    fn write_blob(&self, id: &ObjectId, to: &mut dyn Write) -> Result<io::Result<()>, StoreError> {
        self.0.write_blob(id, to)
    }
}
