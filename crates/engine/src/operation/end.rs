//! The end of an operation: what came out is removed, and the result recorded.

use std::io;

use piton_host::apply::ApplyError;
use piton_host::fail::point;
use piton_host::{Root, clock};
use piton_model::diff::{self, Counts, TreeSource};
use piton_model::edit::NewTrees;
use piton_model::plan::{Layered, RootState};
use piton_model::{
    Cause, Checkpoint, CheckpointId, ObjectId, Operation, OperationId, Outcome, Record, SettingsAt, TurnContext,
};
use piton_store::{Progress, ProgressNote, Purpose, StoreError};

use crate::capture::bits::result_with_bits;
use crate::capture::held::HeldNow;
use crate::operation::apply::{CheckedAll, describe, outside};
use crate::operation::begin::Begun;
use crate::operation::error::{OperationError, random_error};
use crate::operation::leftovers::{Cleared, Extent, Left, clear_read_outside};
use crate::operation::outside::Outer;
use crate::workspace::History;
use crate::workspace::locked::Locked;

impl Locked<'_> {
    /// Removes what came out and records the result. All is in place and stored by now: what cannot be removed does not keep
    /// the operation from ending.
    pub(crate) fn end(
        &self,
        root: &Root,
        begun: &Begun,
        progress: &ProgressNote,
        checked: CheckedAll,
    ) -> Result<Cleared, OperationError> {
        let applier = begun.applier(root);
        let CheckedAll { inside, outside: elsewhere } = checked;
        let recorded = || -> Result<Cleared, StoreError> {
            // Everything is synced by now. From here on a crash must not lead back: what would be put back goes.
            progress.write(&begun.operation.id, Progress::Clearing)?;
            point("operate:clearing").map_err(random_error)?;
            let cleared = || {
                let is_opened = applier.open_closed()?;
                let rescue = (inside.rescued, Extent::Whole);
                let cleared = self.clear_read(&applier, &begun.before, inside.came_out, rescue)?;
                if is_opened {
                    applier.close_folders(true)?;
                    applier.sync_swapped()?;
                }
                applier.sync_cleared()?;
                Ok(cleared)
            };
            let mut cleared = cleared().map_err(|error| match error {
                ApplyError::Content(error) => error,
                error => {
                    let source = io::Error::other(describe(error));
                    StoreError::Io { what: "cannot clear up after", path: self.path.clone(), source }
                }
            })?;
            let mut left_outside = Vec::new();
            if let Some(outer) = Outer::of(&begun.operation).map_err(random_error)? {
                let outer = outer.applier();
                let clear = || {
                    let left = clear_read_outside(&outer, &elsewhere.came_out)?;
                    outer.sync_cleared()?;
                    Ok(left)
                };
                left_outside = clear().map_err(|e| random_error(io::Error::other(describe(outside(e)))))?;
            }
            point("operate:cleared").map_err(random_error)?;
            self.keep_leftovers(&begun.operation.id, &cleared.left, &left_outside)?;
            let before = cleared.checkpoint.as_ref().map(|checkpoint| checkpoint.id.clone());
            let result = result_with_bits(&self.store, root, &begun.operation, &inside.bits_not_taken)?;
            self.note_done(begun, (result.0, &result.1), before)?;
            let lost: Vec<usize> = std::mem::take(&mut cleared.lost);
            cleared.left.extend(lost.into_iter().map(|number| Left::lost(&applier, number)));
            cleared.left.append(&mut left_outside);
            Ok(cleared)
        };
        recorded().map_err(OperationError::Unrecorded)
    }

    /// Records the end, with `result` for what is there now; `new` has the trees of it that are not stored.
    fn note_done(
        &self,
        begun: &Begun,
        (result, new): (RootState, &NewTrees),
        before: Option<CheckpointId>,
    ) -> Result<(), StoreError> {
        let after = CheckpointId::from_random(clock::random().map_err(random_error)?);
        let changes = if result == begun.operation.result {
            begun.since
        } else {
            let layered = Layered { over: new, under: &self.store };
            self.counts_since(&layered, &begun.operation.follows, &result)?
        };
        let layered = Layered { over: new, under: &self.store };
        let (held, settings) = self.rules_after(begun, &layered, &result.tree)?;
        let mut writer = self.writer()?.allowing(Purpose::End);
        for tree in new.values() {
            writer.tree(tree)?;
        }
        if let Some(branch) = begun.operation.conversation.as_ref().and_then(|change| change.branch.clone()) {
            writer.record(Record::Session(branch))?;
        }
        writer.record(Record::Checkpoint(Checkpoint {
            id: after.clone(),
            parent: Some(begun.operation.follows.clone()),
            line: self.record.line,
            created_at: self.environment.clock.now(),
            cause: Cause::Operation,
            root: result,
            changes,
            skipped: begun.skipped,
            unsettled: Vec::new(),
            operation: Some(begun.operation.id.clone()),
            place: self.place_after(begun)?,
            description: None,
            owned: Vec::new(),
            git: begun.before.git,
            held: held.paths,
            unagreed: held.unagreed,
            settings,
        }))?;
        writer.record(Record::Ended {
            operation: begun.operation.id.clone(),
            outcome: Outcome::Done { after, before },
            ended_at: self.environment.clock.now(),
        })?;
        writer.commit(true, false)
    }

    pub(crate) fn note_end(&self, id: &OperationId, outcome: Outcome) -> Result<(), StoreError> {
        let mut writer = self.writer()?.allowing(Purpose::End);
        writer.record(Record::Ended { operation: id.clone(), outcome, ended_at: self.environment.clock.now() })?;
        writer.commit(true, false)
    }

    /// Ends a recovered operation whose result stands.
    pub(crate) fn finish_recovered(
        &self,
        operation: Operation,
        before: Checkpoint,
        result: (RootState, &NewTrees),
        rescued: Option<CheckpointId>,
    ) -> Result<(), StoreError> {
        let since = self.counts_since(&self.store, &operation.follows, &operation.result)?;
        let skipped =
            diff::skipped(&self.store, &operation.result.tree).map(|s| s.len() as u64).or_else(unless_damaged)?;
        let begun = Begun { operation, before, changes: Vec::new(), since, skipped, unplanned: Vec::new() };
        self.note_done(&begun, result, rescued)
    }
}

impl History {
    /// What is held and which settings hold after an operation: where everything is as at another checkpoint, as there.
    fn rules_after<S: TreeSource<Error = StoreError>>(
        &self,
        begun: &Begun,
        trees: &S,
        result: &ObjectId,
    ) -> Result<(HeldNow, Box<SettingsAt>), StoreError> {
        let (before, follows) = (&begun.before, &begun.operation.follows);
        let followed = if *follows == before.id { None } else { self.store.checkpoint(follows)? };
        let mut paths = before.held.clone();
        for one in followed.iter().flat_map(|row| &row.checkpoint.held) {
            if !paths.iter().any(|known| known.path == one.path) {
                paths.push(one.clone());
            }
        }
        let from = followed.as_ref().map(|row| &row.checkpoint);
        let unagreed = self.unagreed_after(trees, &begun.operation, before, from, result);
        let held = HeldNow { paths, unagreed, ..HeldNow::default() };
        Ok((held, followed.map_or_else(|| before.settings.clone(), |row| row.checkpoint.settings)))
    }

    /// Where in which session the result is: where the conversation went with it.
    fn place_after(&self, begun: &Begun) -> Result<Option<TurnContext>, StoreError> {
        let Some(change) = begun.operation.conversation.as_ref().filter(|change| change.went.goes) else {
            return Ok(begun.before.place.clone());
        };
        let Some(to) = &change.went.to else { return Ok(None) };
        let turn = match change.branch.as_ref().and_then(|branch| branch.origin.as_ref()) {
            Some(origin) => origin.turn.saturating_sub(1),
            None => self.last_turn_in(&self.lineage(to)?)?,
        };
        Ok(Some(TurnContext { session: to.clone(), turn, step: None }))
    }

    /// How a root differs from a checkpoint. A damaged tree must not keep an operation from ending: only what is told of
    /// it gets shorter.
    pub(crate) fn counts_since<S: TreeSource<Error = StoreError>>(
        &self,
        trees: &S,
        from: &CheckpointId,
        to: &RootState,
    ) -> Result<Counts, StoreError> {
        let from = self.store.checkpoint(from)?.map(|row| row.checkpoint.root);
        let changes = diff::root_changes(trees, from.as_ref(), Some(to));
        changes.map(|changes| Counts::of(&changes)).or_else(unless_damaged)
    }
}

fn unless_damaged<T: Default>(error: StoreError) -> Result<T, StoreError> {
    match error {
        StoreError::Missing(_) | StoreError::Damaged(_) => Ok(T::default()),
        error => Err(error),
    }
}
