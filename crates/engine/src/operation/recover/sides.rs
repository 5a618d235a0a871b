//! Where each step of an operation that was cut off stands, and swapping one back.

use crate::capture::sink::{HashingSink, Trees};
use crate::operation::apply::FromStore;
use crate::operation::leftovers::{FoundThere, found_at};
use crate::workspace::History;
use piton_host::apply::{Applier, ApplyError, Refusals};
use piton_host::{clock, read_entry};
use piton_model::merge::with_bits;
use piton_model::{Entry, Operation, Step, WorkspacePath};
use piton_store::StoreError;

/// Where a step's path stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
    /// Edited since, and before that it was not swapped.
    EditedBefore,
    /// Edited since, and before that it was swapped.
    EditedAfter,
    /// Swapped, and then a power cut took a part of it: what was put there was not synced yet.
    Torn,
    /// Both ends hold the same, and the bits are neither's: there is nothing to swap.
    Either,
    /// Somebody changed what stands there and what stands beside it, so that nothing tells which is which.
    Mixed,
}

impl History {
    /// Where a step stands, also after a power cut.
    pub(super) fn side_or_torn(
        &self,
        applier: &Applier<'_>,
        operation: &Operation,
        number: usize,
        step: &Step,
    ) -> Result<Side, ApplyError<StoreError>> {
        match self.side_of(applier, number, step)? {
            Side::EditedAfter | Side::EditedBefore | Side::Mixed if self.is_torn(applier, operation, step)? => {
                Ok(Side::Torn)
            }
            side => Ok(side),
        }
    }

    /// Where a step's path stands; what is beside it tells where an edited one stood.
    fn side_of(&self, applier: &Applier<'_>, number: usize, step: &Step) -> Result<Side, ApplyError<StoreError>> {
        let here = found_at(applier.root, step.path.as_bytes(), &step.path)?;
        if here == step.before {
            return Ok(Side::Before);
        }
        if here == step.after {
            return Ok(Side::After);
        }
        // A `chmod -R` reaches what piton put beside files too: where only bits differ, the content tells.
        let here = self.compared_at(applier.root, step.path.as_bytes(), step)?;
        match (here.before, here.after) {
            (true, true) => return Ok(Side::Either),
            (true, false) => return Ok(Side::Before),
            (false, true) => return Ok(Side::After),
            (false, false) => {}
        }
        let beside = self.compared_at(applier.root, &applier.staged_path(number), step)?;
        let is_folder = |e: &Option<Entry>| e.as_ref().is_some_and(Entry::is_folder);
        Ok(match beside.entry {
            Some(_) if beside.before => Side::EditedAfter,
            Some(_) if beside.after => Side::EditedBefore,
            _ if is_folder(&here.entry) && is_folder(&step.before) => Side::EditedBefore,
            _ if is_folder(&here.entry) && is_folder(&step.after) => Side::EditedAfter,
            Some(_) if !beside.is_unfinished => Side::Mixed,
            // Nothing was staged yet, or what was staged was removed; what came out is removed only once that is noted.
            _ => Side::EditedBefore,
        })
    }

    /// Where the files outside the workspace stand; of one that cannot be looked at, why. That keeps nothing in the
    /// workspace from its end.
    pub(super) fn sides_outside(&self, outer: &Applier<'_>, operation: &Operation) -> Vec<Result<Side, String>> {
        let side_of = |(number, step): (usize, &Step)| -> Result<Side, ApplyError<StoreError>> {
            outer.settle(number)?;
            self.side_or_torn(outer, operation, number, step)
        };
        let why = |error: ApplyError<StoreError>| match error {
            ApplyError::Path { source, .. } => source.to_string(),
            error => error.to_string(),
        };
        outer.steps.iter().enumerate().map(|one| side_of(one).map_err(why)).collect()
    }

    /// Puts a file outside the workspace back that could not be looked at when its operation was ended.
    pub(crate) fn put_back_late(&self, outer: &Applier<'_>, number: usize) -> Result<(), ApplyError<StoreError>> {
        outer.settle(number)?;
        match self.side_of(outer, number, &outer.steps[number])? {
            Side::After => self.swap_back_outside(outer, number),
            _ => Ok(()),
        }
    }

    /// Swaps a step outside the workspace back. No merge follows there, so what was there is staged again from the store where
    /// it is not beside its place any more.
    pub(super) fn swap_back_outside(&self, outer: &Applier<'_>, number: usize) -> Result<(), ApplyError<StoreError>> {
        let Step { path, before, after } = &outer.steps[number];
        if before.is_some() && found_at::<StoreError>(outer.root, &outer.staged_path(number), path)?.is_none() {
            let none = Step { path: WorkspacePath::root(), before: None, after: None };
            let mut steps = vec![none; outer.steps.len()];
            steps[number] = Step { path: path.clone(), before: after.clone(), after: before.clone() };
            let again = Applier { steps: &steps, ..*outer };
            again.stage(&FromStore(&self.store), &Refusals::default())?;
        }
        self.swap_back_whole(outer, number)
    }

    /// Whether what stands at a step's path is a part of what was put there. Only after a reboot: before one, the same
    /// bytes would be somebody's edit.
    fn is_torn(
        &self,
        applier: &Applier<'_>,
        operation: &Operation,
        step: &Step,
    ) -> Result<bool, ApplyError<StoreError>> {
        let Some(after) = step.after.as_ref().filter(|_| operation.boot != clock::boot_id()) else { return Ok(false) };
        let sink = HashingSink::with_contents();
        let here = read_entry(applier.root, step.path.as_bytes(), &sink).unwrap_or_else(|never| match never {});
        let here = here.map_err(|source| ApplyError::Path { path: step.path.clone(), source })?;
        let (fresh, contents) = sink.finish();
        let read = FoundThere { trees: Trees { fresh: &fresh, store: &self.store }, contents };
        here.map_or(Ok(false), |here| self.is_unfinished(&read, &here, after)).map_err(ApplyError::Content)
    }

    /// Swaps a step back where that is one rename; where what was there is not beside it any more, the merge that
    /// follows brings it back from the store.
    pub(super) fn swap_back_whole(&self, applier: &Applier<'_>, number: usize) -> Result<(), ApplyError<StoreError>> {
        let step = &applier.steps[number];
        let beside = self.compared_at(applier.root, &applier.staged_path(number), step)?;
        let is_whole = beside.before && (beside.entry.is_some() || step.before.is_none());
        if !is_whole {
            return Ok(());
        }
        let here = found_at(applier.root, step.path.as_bytes(), &step.path)?;
        applier.swap_back(number)?;
        // Whoever changed the bits of the new file alone meant the file.
        if let (Some(Entry::File { mode: now, .. }), Some(Entry::File { mode: put, .. })) = (&here, &step.after)
            && let (Some(Entry::File { mode: was, .. }), true) = (&step.before, beside.entry == step.before)
            && now != put
        {
            applier.set_bits(&step.path, with_bits(*was, *put, *now))?;
        }
        Ok(())
    }
}

pub(super) fn edited(operation: &Operation, sides: &[Side]) -> Vec<WorkspacePath> {
    let edited =
        sides.iter().enumerate().filter(|(_, s)| matches!(s, Side::EditedBefore | Side::EditedAfter | Side::Mixed));
    edited.map(|(n, _)| operation.steps[n].path.clone()).collect()
}
