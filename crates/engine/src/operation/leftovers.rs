//! What stands at the names that an operation owns: telling piton's own writing from anybody else's, storing what is not
//! known, and removing it. Rollback, the end of an operation and recovery all clear up through here.

mod compared;

use std::io::{self};
use std::sync::Arc;

use piton_host::apply::{Applier, ApplyError, Removal, is_kept_open};
use piton_host::{Root, Signatures, clock, read_entry_signed};
use piton_model::diff::{self, Counts, TreeSource};
use piton_model::edit::{Edit, NewTrees, edit, keep};
use piton_model::plan::{Layered, RootState};
use piton_model::{Checkpoint, CheckpointId, Entry, OperationId, Record, Tree, WorkspacePath};
use piton_store::{Leftover, OperationState, Purpose, StoreError};

use crate::capture::sink::{HashingSink, StoringSink, Trees};
use crate::capture::sound::is_sound;
use crate::operation::error::random_error;
use crate::operation::outside::Outer;
use crate::view::LeftoverView;
use crate::workspace::locked::Locked;
use crate::workspace::{History, Standing};

use self::compared::is_part;
pub(crate) use self::compared::{FoundThere, found_at, is_same_but_bits};

/// What came of clearing up.
#[derive(Default)]
pub(crate) struct Cleared {
    /// What nobody had captured, and the last of the checkpoints that have it now.
    pub rescued: Vec<WorkspacePath>,
    pub checkpoint: Option<Checkpoint>,
    pub left: Vec<Left>,
    /// Steps whose folder is neither at its path nor anywhere else in the workspace.
    pub lost: Vec<usize>,
}

/// Something that stays at a step's own name.
pub(crate) struct Left {
    pub step: usize,
    pub view: LeftoverView,
    /// It is as it was read, and the store has all of it; or nobody could look at it yet. The next command tries again.
    pub is_stored: bool,
    /// It is told with the file that it belongs to.
    pub is_told: bool,
}

/// What was stored of what stands at some steps' own names.
pub(crate) struct Rescued {
    /// None where all of it had been captured before.
    checkpoint: Option<Checkpoint>,
    paths: Vec<WorkspacePath>,
    read: Vec<(usize, Signatures)>,
}

/// What stands at a step's own name may be less than what came out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All that came out.
    Whole,
    /// What is left of it after some was removed.
    Rest,
}

/// A program that writes into a folder on its way out has so many tries to be done with it.
const ROUNDS: usize = 10;

impl Locked<'_> {
    /// Removes what stands at the steps' own names, storing first what is not known. What cannot be stored stays.
    pub(crate) fn clear_all(
        &self,
        applier: &Applier<'_>,
        before: &Checkpoint,
    ) -> Result<Cleared, ApplyError<StoreError>> {
        let numbers: Vec<usize> = (0..applier.steps.len()).collect();
        self.clear_some(applier, before, &numbers)
    }

    fn clear_some(
        &self,
        applier: &Applier<'_>,
        before: &Checkpoint,
        numbers: &[usize],
    ) -> Result<Cleared, ApplyError<StoreError>> {
        let mut unknown = Vec::new();
        let mut unsound = Vec::new();
        let mut gone = Vec::new();
        let mut read: Vec<Option<Signatures>> = applier.steps.iter().map(|_| None).collect();
        for number in numbers.iter().copied() {
            let (own, signatures) = self.own_at(applier, number)?;
            match own {
                Own::Nothing if applier.is_folder_gone(number) => gone.push(number),
                Own::Nothing => {}
                Own::Unknown => unknown.push(number),
                Own::Known { is_sound } => {
                    if !is_sound {
                        unsound.push(number);
                    }
                    read[number] = Some(signatures);
                }
            }
        }
        self.store_again(applier, &unsound)?;
        let mut cleared = self.clear_read(applier, before, read, (unknown, Extent::Rest))?;
        self.clear_moved(applier, before, &gone, &mut cleared)?;
        Ok(cleared)
    }

    /// The same for steps whose folder somebody moved while the operation went on: wherever in the workspace it is now.
    fn clear_moved(
        &self,
        applier: &Applier<'_>,
        before: &Checkpoint,
        gone: &[usize],
        cleared: &mut Cleared,
    ) -> Result<(), ApplyError<StoreError>> {
        if gone.is_empty() {
            return Ok(());
        }
        let found = applier.find_moved(gone);
        let mut steps = applier.steps.to_vec();
        found.iter().for_each(|(number, path)| steps[*number].path = path.clone());
        let numbers: Vec<usize> = found.iter().map(|(number, _)| *number).collect();
        let moved = Applier { steps: &steps, folders: &[], ..*applier };
        let base = cleared.checkpoint.clone();
        let more = self.clear_some(&moved, base.as_ref().unwrap_or(before), &numbers)?;
        cleared.rescued.extend(more.rescued);
        cleared.checkpoint = more.checkpoint.or(base);
        cleared.left.extend(more.left);
        cleared.lost.extend(gone.iter().filter(|number| !numbers.contains(number)));
        cleared.lost.extend(more.lost);
        Ok(())
    }

    /// Removes what was read at the steps' own names. What somebody wrote since, or nobody knew, is stored first.
    pub(crate) fn clear_read(
        &self,
        applier: &Applier<'_>,
        before: &Checkpoint,
        mut read: Vec<Option<Signatures>>,
        (mut unknown, mut extent): (Vec<usize>, Extent),
    ) -> Result<Cleared, ApplyError<StoreError>> {
        let mut cleared = Cleared::default();
        let mut gone = Vec::new();
        for round in 0.. {
            unknown.iter().for_each(|number| read[*number] = None);
            if !unknown.is_empty() {
                let base = cleared.checkpoint.as_ref().unwrap_or(before);
                match self.rescue(applier, &unknown, base, extent) {
                    Ok(rescued) => {
                        cleared.rescued.extend(rescued.paths);
                        cleared.checkpoint = rescued.checkpoint.or(cleared.checkpoint);
                        rescued.read.into_iter().for_each(|(number, signatures)| read[number] = Some(signatures));
                    }
                    // It is not stored, so it stays; the operation has its end all the same.
                    Err(error) => {
                        let left = unknown.iter().map(|number| Left::unread(applier, *number, error.to_string()));
                        cleared.left.extend(left);
                    }
                }
            }
            unknown = Vec::new();
            for (number, removal) in applier.clear_all(&read)? {
                match removal {
                    Removal::Gone => {}
                    Removal::FolderGone => gone.push(number),
                    Removal::Refused { path, source } => {
                        cleared.left.push(Left::refused(applier, number, &path, &source))
                    }
                    Removal::Unread if round < ROUNDS => unknown.push(number),
                    Removal::Unread => {
                        let why = "it is not captured, and stays";
                        cleared.left.push(Left::unread(applier, number, why.to_owned()));
                    }
                }
            }
            if unknown.is_empty() {
                break;
            }
            read.iter_mut().for_each(|read| *read = None);
            extent = Extent::Rest;
        }
        self.clear_moved(applier, before, &gone, &mut cleared)?;
        cleared.rescued.sort();
        cleared.rescued.dedup();
        Ok(cleared)
    }

    /// The same outside the workspace, where no checkpoint can take what is not known: that stays.
    pub(crate) fn clear_outside(&self, outer: &Applier<'_>) -> Result<Vec<Left>, ApplyError<StoreError>> {
        let mut left = Vec::new();
        let mut unsound = Vec::new();
        let mut read = Vec::new();
        for number in 0..outer.steps.len() {
            let (own, signatures) = match self.own_at(outer, number) {
                // What cannot be looked at out there keeps nothing in the workspace from its end.
                Err(ApplyError::Path { source, .. }) => {
                    left.push(Left::unread(outer, number, source.to_string()));
                    read.push(None);
                    continue;
                }
                looked => looked?,
            };
            read.push(match own {
                Own::Nothing => None,
                Own::Unknown => {
                    left.push(Left::unread(outer, number, "somebody changed it since".to_owned()));
                    None
                }
                Own::Known { is_sound } => {
                    if !is_sound {
                        unsound.push(number);
                    }
                    Some(signatures)
                }
            });
        }
        self.store_again(outer, &unsound)?;
        left.iter_mut().for_each(Left::show_outside);
        left.extend(clear_read_outside(outer, &read)?);
        Ok(left)
    }

    /// Notes what an operation leaves, so that no capture takes it for the user's and the next act tries again.
    pub(crate) fn keep_leftovers(
        &self,
        operation: &OperationId,
        left: &[Left],
        left_outside: &[Left],
    ) -> Result<(), StoreError> {
        let noted =
            |outside: bool| move |left: &Left| Leftover { operation: operation.clone(), step: left.step, outside };
        let stored = |left: &&Left| left.is_stored;
        let mut new: Vec<Leftover> = left.iter().filter(stored).map(noted(false)).collect();
        new.extend(left_outside.iter().filter(stored).map(noted(true)));
        if new.is_empty() {
            return Ok(());
        }
        let mut all = self.store.leftovers();
        all.retain(|one| !new.contains(one));
        all.extend(new);
        self.store().keep_leftovers(&self.lock, &all)
    }

    /// Tries once more to remove what earlier operations could not. What somebody changed since is the user's from now on.
    pub(crate) fn clear_leftovers(&self) -> Result<(), StoreError> {
        let all = self.store.leftovers();
        if all.is_empty() {
            return Ok(());
        }
        let Ok(Standing::Same(root)) = self.standing() else { return Ok(()) };
        let mut kept = Vec::new();
        let mut rest = all.clone();
        while let Some(first) = rest.first().cloned() {
            let (these, others): (Vec<_>, Vec<_>) =
                rest.into_iter().partition(|one| (&one.operation, one.outside) == (&first.operation, first.outside));
            rest = others;
            let steps: Vec<usize> = these.iter().map(|one| one.step).collect();
            let stays = self.clear_again(&root, &first, &steps)?;
            kept.extend(these.into_iter().filter(|one| stays.contains(&one.step)));
        }
        if kept.len() == all.len() { Ok(()) } else { self.store().keep_leftovers(&self.lock, &kept) }
    }

    /// Stores what stands at some steps' own names, as a checkpoint of a state before with those paths as they really were.
    fn rescue(
        &self,
        applier: &Applier<'_>,
        steps: &[usize],
        before: &Checkpoint,
        extent: Extent,
    ) -> Result<Rescued, StoreError> {
        let sink = StoringSink::new(self.writer()?.allowing(Purpose::Operation)).distrusting();
        let mut found = Vec::new();
        let mut read = Vec::new();
        for number in steps {
            let path = &applier.steps[*number].path;
            let io = |source| StoreError::Io { what: "cannot read", path: path.as_path().to_owned(), source };
            let (entry, signatures) =
                read_entry_signed(applier.root, &applier.staged_path(*number), &sink)?.map_err(io)?;
            found.push((path.clone(), entry));
            read.push((*number, signatures));
        }
        let (mut writer, fresh) = sink.finish();
        writer.allow(Purpose::End);
        let trees = Trees { fresh: &fresh, store: &self.store };
        let mut new = NewTrees::new();
        let mut edits = Vec::new();
        for (path, entry) in found {
            let put = match (extent, entry) {
                (Extent::Rest, Some(entry)) => {
                    let was = diff::lookup(&trees, &before.root.tree, &path)?;
                    Some(laid_over(&trees, was.as_ref(), &entry, &mut new)?)
                }
                (Extent::Rest, None) => continue,
                (Extent::Whole, entry) => entry,
            };
            edits.push((path, Edit::Put(put)));
        }
        let (tree, more) = edit(&Layered { over: &new, under: &trees }, &before.root.tree, &edits)?;
        new.extend(more);
        if tree == before.root.tree {
            writer.commit(true, false)?;
            return Ok(Rescued { checkpoint: None, paths: Vec::new(), read });
        }
        for tree in new.values() {
            writer.tree(tree)?;
        }
        let layered = Layered { over: &new, under: &trees };
        let changes = diff::changes(&layered, Some(&before.root.tree), Some(&tree))?;
        let checkpoint = Checkpoint {
            id: CheckpointId::from_random(clock::random().map_err(random_error)?),
            parent: Some(before.id.clone()),
            created_at: self.environment.clock.now(),
            root: RootState { tree, mode: before.root.mode },
            changes: Counts::of(&changes),
            skipped: diff::skipped(&layered, &tree)?.len() as u64,
            unsettled: Vec::new(),
            // Who wrote it in the last moment nobody knows; what the capture before found it lists itself.
            owned: Vec::new(),
            ..before.clone()
        };
        writer.record(Record::Checkpoint(checkpoint.clone()))?;
        writer.commit(true, false)?;
        let paths = changes.into_iter().filter(|change| !change.implied).map(|change| change.path).collect();
        Ok(Rescued { checkpoint: Some(checkpoint), paths, read })
    }
}

impl History {
    /// Whether piton knows what stands at a step's own name.
    fn own_at(&self, applier: &Applier<'_>, number: usize) -> Result<(Own, Signatures), ApplyError<StoreError>> {
        let step = &applier.steps[number];
        let look = || {
            let sink = HashingSink::with_contents();
            let read = read_entry_signed(applier.root, &applier.staged_path(number), &sink);
            let (left, signatures) = read
                .unwrap_or_else(|never| match never {})
                .map_err(|source| ApplyError::Path { path: step.path.clone(), source })?;
            Ok((left, signatures, sink.finish()))
        };
        let (mut left, mut signatures, mut sunk) = look()?;
        if left.as_ref().is_some_and(Entry::holds_skipped) {
            // A staged file has the bits that it shall have, which may not let its owner read it.
            applier.make_readable(number);
            (left, signatures, sunk) = look()?;
        }
        let Some(left) = left else { return Ok((Own::Nothing, signatures)) };
        let (fresh, contents) = sunk;
        let found = FoundThere { trees: Trees { fresh: &fresh, store: &self.store }, contents };
        let own = if [&step.before, &step.after].into_iter().any(|end| Some(&left) == end.as_ref()) {
            Own::Known { is_sound: is_sound(&self.store, &left).map_err(ApplyError::Content)? }
        } else if self.is_stored_but_for_bits(&found, &left, step).map_err(ApplyError::Content)? {
            Own::Known { is_sound: true }
        } else {
            let unfinished = step.after.as_ref().map(|after| self.is_unfinished(&found, &left, after)).transpose();
            match unfinished.map_err(ApplyError::Content)? {
                Some(true) => Own::Known { is_sound: true },
                _ => Own::Unknown,
            }
        };
        Ok((own, signatures))
    }

    /// The steps of an operation whose names still stand, of those that were left.
    fn clear_again(&self, root: &Root, of: &Leftover, steps: &[usize]) -> Result<Vec<usize>, StoreError> {
        let Some(row) = self.store.operation_row(&of.operation)? else { return Ok(Vec::new()) };
        let (Ok(operation), Some(before)) = (self.store.operation(&row), self.store.checkpoint(&row.before)?) else {
            return Ok(Vec::new());
        };
        let outer = Outer::of(&operation).map_err(random_error)?;
        let applier = match &outer {
            Some(outer) if of.outside => outer.applier(),
            _ => Applier { root, operation: &operation.id, steps: &operation.steps, folders: &[] },
        };
        if !of.outside && !root.identity().is_same(&operation.root) {
            return Ok(steps.to_vec());
        }
        let mut read: Vec<Option<Signatures>> = applier.steps.iter().map(|_| None).collect();
        let (mut stays, mut untold) = (Vec::new(), Vec::new());
        for number in steps.iter().copied().filter(|number| *number < applier.steps.len()) {
            let step = &applier.steps[number];
            // It may stand at the new end still, if nobody could look at it when the others went back.
            if of.outside && row.state == OperationState::RolledBack && self.put_back_late(&applier, number).is_err() {
                untold.push(number);
                continue;
            }
            let sink = HashingSink::default();
            let found = read_entry_signed(applier.root, &applier.staged_path(number), &sink);
            let Ok((Some(left), mut signatures)) = found.unwrap_or_else(|never| match never {}) else { continue };
            let fresh = sink.finish().0;
            let trees = Trees { fresh: &fresh, store: &self.store };
            let is_known = || -> Result<bool, StoreError> {
                let was = match of.outside {
                    true => step.before.clone(),
                    false => diff::lookup(&self.store, &before.checkpoint.root.tree, &step.path)?,
                };
                let mut is_known = false;
                for whole in [&was, &step.after].into_iter().flatten() {
                    is_known |= is_part(&trees, &left, whole)?;
                }
                Ok(is_known)
            };
            let is_known = match is_known() {
                // Not known to be stored, so it stays, and stands in nobody's way.
                Err(StoreError::Damaged(_) | StoreError::Missing(_)) => {
                    untold.push(number);
                    continue;
                }
                is_known => is_known?,
            };
            if is_known {
                // The filesystem's own, of which nobody knows whether it is stored: it goes by itself.
                signatures.forget(is_kept_open);
                read[number] = Some(signatures);
                stays.push(number);
            }
        }
        let refused = match applier.clear_all::<StoreError>(&read) {
            Ok(kept) => kept.into_iter().filter(|(_, removal)| matches!(removal, Removal::Refused { .. })),
            // A folder that cannot be opened now.
            Err(_) => {
                stays.append(&mut untold);
                return Ok(stays);
            }
        };
        let refused: Vec<usize> = refused.map(|(number, _)| number).collect();
        stays.retain(|number| refused.contains(number));
        stays.append(&mut untold);
        Ok(stays)
    }
}

/// Removes what was read at the names of steps outside the workspace.
pub(crate) fn clear_read_outside(
    outer: &Applier<'_>,
    read: &[Option<Signatures>],
) -> Result<Vec<Left>, ApplyError<StoreError>> {
    let left = |(number, removal)| match removal {
        Removal::Gone | Removal::FolderGone => None,
        Removal::Refused { path, source } => Some(Left::refused(outer, number, &path, &source)),
        Removal::Unread => Some(Left::unread(outer, number, "somebody changed it since".to_owned())),
    };
    let mut left: Vec<Left> = outer.clear_all(read)?.into_iter().filter_map(left).collect();
    left.iter_mut().for_each(Left::show_outside);
    Ok(left)
}

/// What stands at a step's own name.
enum Own {
    Nothing,
    /// What was there before, which the store may have only damaged; or piton's own writing.
    Known {
        is_sound: bool,
    },
    Unknown,
}

impl Left {
    /// `path` is what the system keeps, from the step's own name.
    fn refused(applier: &Applier<'_>, step: usize, path: &[u8], source: &io::Error) -> Self {
        let parent = applier.steps[step].path.split().map(|(parent, _)| parent).unwrap_or_default();
        let mut kept = parent.as_bytes().to_vec();
        if !kept.is_empty() {
            kept.push(b'/');
        }
        kept.extend_from_slice(path);
        let path = WorkspacePath::new(kept).unwrap_or_default();
        Self {
            step,
            view: LeftoverView { path: (&path).into(), why: source.to_string() },
            is_stored: true,
            is_told: false,
        }
    }

    /// A path outside the workspace is told from the file system's root.
    fn show_outside(&mut self) {
        self.view.path.path.insert(0, '/');
    }

    /// What went with a folder that nobody finds.
    pub(crate) fn lost(applier: &Applier<'_>, step: usize) -> Self {
        let why = "its folder was moved or removed meanwhile; wherever it is, this can be deleted";
        Self::unread(applier, step, why.to_owned())
    }

    /// A step whose file cannot be looked at, so that nobody knows which end it is at.
    pub(crate) fn waits(applier: &Applier<'_>, step: usize, why: String) -> Self {
        Self { is_stored: true, is_told: true, ..Self::unread(applier, step, why) }
    }

    fn unread(applier: &Applier<'_>, step: usize, why: String) -> Self {
        let path = WorkspacePath::new(applier.staged_path(step)).unwrap_or_default();
        Self { step, view: LeftoverView { path: (&path).into(), why }, is_stored: false, is_told: false }
    }
}

/// An entry with another one laid over it: what the other has not is still there. The bits of folders stay, since
/// a folder is opened to be emptied.
fn laid_over(trees: &Trees<'_>, under: Option<&Entry>, over: &Entry, new: &mut NewTrees) -> Result<Entry, StoreError> {
    let (Some(Entry::Folder { mode, tree, .. }), Entry::Folder { tree: rest, .. }) = (under, over) else {
        return Ok(over.clone());
    };
    let (under, rest) = (trees.tree(tree)?, trees.tree(rest)?);
    let mut both = Tree::clone(&under);
    both.has_git |= rest.has_git;
    for (name, entry) in rest.entries() {
        let entry = laid_over(trees, under.get(name.as_bytes()), entry, new)?;
        both.set(name.clone(), Some(entry));
    }
    let holds_skipped = both.holds_skipped();
    Ok(Entry::Folder { mode: *mode, tree: keep(Arc::new(both), new), holds_skipped })
}
