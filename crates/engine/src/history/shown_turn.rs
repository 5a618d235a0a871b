//! One turn, or one step of it: what it changed, with contents.
//!
//! A turn is not the difference of two moments: the user and other sessions work meanwhile. So each of its changes is compared
//! with what stood there when it was made, and those of one path are taken together as long as nobody else's lie between them.

use std::collections::HashMap;

use piton_model::diff;
use piton_model::ownership::{Candidate, Owner};
use piton_model::target::TurnPlace;
use piton_model::{Cause, CheckpointId, SessionId, StepRef, Target, TurnContext, When, WorkspacePath};
use piton_store::{CheckpointRow, StoreError};

use crate::history::changes::OwnedChange;
use crate::history::diff::{both_sides, compare, empty_diff};
use crate::history::operations::operation_views;
use crate::history::target::{IntoTarget, TargetError};
use crate::view::{TurnDiff, TurnShown};
use crate::workspace::History;

/// How much of a turn is compared.
#[derive(Clone, Debug, Default)]
pub struct TurnOptions {
    /// Only these paths and what is beneath them.
    pub paths: Vec<WorkspacePath>,
    /// Equal lines around each difference.
    pub context: u32,
    /// Leave the contents alone: which paths it changed is enough.
    pub names_only: bool,
}

/// A turn, or one step of it.
struct Meant {
    session: SessionId,
    turn: u32,
    step: Option<u32>,
}

/// How a change relates to a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Its,
    /// It may be somebody else's.
    Unsure,
    Others,
}

impl Meant {
    fn is(&self, step: &StepRef) -> bool {
        step.session == self.session && step.turn == self.turn && self.step.is_none_or(|number| step.step == number)
    }

    fn whose(&self, owner: &Owner) -> Whose {
        match owner {
            Owner::Step { step, .. } if self.is(step) => Whose::Its,
            Owner::Unsure { candidates } => {
                let is_its = |one: &Candidate| matches!(one, Candidate::Step(step) if self.is(step));
                match candidates.iter().filter(|one| is_its(one)).count() {
                    0 => Whose::Others,
                    count if count == candidates.len() => Whose::Its,
                    _ => Whose::Unsure,
                }
            }
            Owner::Step { .. } | Owner::You | Owner::Operation { .. } => Whose::Others,
        }
    }
}

/// Changes of one path that follow each other.
struct Run<'a> {
    whose: Whose,
    /// By their numbers among all changes.
    first: usize,
    last: usize,
    owner: &'a Owner,
    is_open: bool,
}

/// Of each path, the numbers of the first and the last change.
type FirstAndLast = Vec<(usize, usize)>;

impl History {
    /// The turn or step that a target means, with what it changed; none where the target means a checkpoint.
    ///
    /// # Errors
    /// Where there is no such turn or step, or the store refuses.
    pub fn turn_shown(&self, target: impl IntoTarget, options: &TurnOptions) -> Result<Option<TurnShown>, TargetError> {
        let target = &target.into_target()?;
        let Some(meant) = self.turn_meant(target)? else { return Ok(None) };
        let key = (meant.session.clone(), meant.turn);
        let Some(mut turn) = self.turn_views([key.clone()])?.pop() else { return Ok(None) };
        turn.passed_by = self.future_turns()?.remove(&key);
        turn.future = turn.passed_by.is_some();
        let before = match meant.step {
            None => self.before_turn(&meant.session, meant.turn)?,
            Some(_) => self.checkpoint_at(target).ok(),
        };
        let steps = self.store.steps(&meant.session, Some(meant.turn))?;
        // Nothing that it changed was found before its first record.
        let row = self.store.turn(&meant.session, meant.turn)?;
        let from = row.iter().map(|row| row.seq).chain(steps.iter().map(|step| step.seq)).min().unwrap_or(0);
        let after = self.after(&meant)?;
        // A turn of an archive is on a line of its own.
        let line = before.iter().chain(&after).next().map_or(self.record.line, |row| row.checkpoint.line);
        let mut changes = self.all_changes_on(line, from)?;
        changes.retain(|change| change.path.is_in_scope(&options.paths));
        let (diffs, counted) = self.diffs_of(&meant, &changes, options)?;
        let refs: Vec<&OwnedChange> = changes.iter().collect();
        let effects = if line == self.record.line { self.effects(&refs)? } else { None };
        let is_undone = |numbers: &(usize, usize)| effects.as_ref().is_some_and(|all| !all.is_in_effect(numbers.1));
        let diffs: Vec<TurnDiff> = diffs
            .into_iter()
            .zip(&counted)
            .map(|(diff, numbers)| TurnDiff { undone: is_undone(numbers), ..diff })
            .collect();
        let turned = counted.iter().filter(|numbers| is_undone(numbers));
        let turned_at = effects.as_ref().and_then(|all| turned.map(|numbers| all.turned_after(numbers.1, 0)).max());
        let rows = self.store.operations()?;
        let by = operation_views(&rows).into_iter().zip(&rows).find(|(_, row)| Some(row.seq) == turned_at);
        let session = self.session_views(|id| *id == meant.session)?.pop();
        let running = turn.ending.is_none() && session.is_some_and(|one| one.live && one.turns == turn.number);
        Ok(Some(TurnShown {
            step: meant.step,
            taken_back: diffs.iter().filter(|diff| diff.undone && !diff.unsure).count() as u64,
            diffs,
            before: before.as_ref().map(Into::into),
            after: after.as_ref().map(Into::into),
            running,
            taken_back_by: by.map(|(view, _)| view),
            turn,
        }))
    }

    /// Which turn or step a target means; none where it means a checkpoint.
    fn turn_meant(&self, target: &Target) -> Result<Option<Meant>, TargetError> {
        let (turn, step) = match target.when {
            When::Turn { turn, place: TurnPlace::Before } => (turn, None),
            When::Turn { turn, place: TurnPlace::Step(step) } => (turn, Some(step)),
            _ => return Ok(None),
        };
        let lineage = self.lineage(&self.session_of_target(target)?.session.id)?;
        if self.turn_in(&lineage, turn)?.is_none() {
            return Err(self.no_turn(&lineage, turn));
        }
        let session = lineage.session_of(turn).clone();
        if let Some(step) = step
            && self.store.step(&StepRef { session: session.clone(), turn, step })?.is_none()
        {
            let last = self.store.steps(&session, Some(turn))?.len() as u32;
            return Err(TargetError::NoStep { turn, step, last });
        }
        Ok(Some(Meant { session, turn, step }))
    }

    /// The last checkpoint of a turn, or the one after a step.
    fn after(&self, meant: &Meant) -> Result<Option<CheckpointRow>, StoreError> {
        match meant.step {
            None => self.store.last_of_turn(&meant.session, meant.turn),
            Some(step) => {
                let place = TurnContext { session: meant.session.clone(), turn: meant.turn, step: Some(step) };
                self.store.checkpoint_at(&place, Cause::AfterTool)
            }
        }
    }

    /// What a turn did, path by path, and of each the numbers of the first and the last change that it consists of.
    fn diffs_of(
        &self,
        meant: &Meant,
        changes: &[OwnedChange],
        options: &TurnOptions,
    ) -> Result<(Vec<TurnDiff>, FirstAndLast), StoreError> {
        let mut runs: HashMap<&WorkspacePath, Vec<Run<'_>>> = HashMap::new();
        for (number, change) in changes.iter().enumerate() {
            let whose = meant.whose(&change.owner);
            let of_path = runs.entry(&change.path).or_default();
            if let Some(run) = of_path.last_mut().filter(|run| run.is_open && run.whose == whose) {
                (run.last, run.owner) = (number, &change.owner);
                continue;
            }
            of_path.iter_mut().for_each(|run| run.is_open = false);
            if whose != Whose::Others {
                let owner = &change.owner;
                of_path.push(Run { whose, first: number, last: number, owner, is_open: true });
            }
        }
        let with_path = |(path, runs): (_, Vec<_>)| runs.into_iter().map(move |run| (path, run));
        let mut runs: Vec<(&WorkspacePath, Run<'_>)> = runs.into_iter().flat_map(with_path).collect();
        runs.sort_by(|(path, run), (other, of_other)| (path, run.first).cmp(&(other, of_other.first)));
        let mut parents: HashMap<CheckpointId, Option<CheckpointRow>> = HashMap::new();
        let mut found = Vec::with_capacity(runs.len());
        let mut numbers = Vec::with_capacity(runs.len());
        for (path, run) in runs {
            let entry = |row: Option<&CheckpointRow>| match row {
                Some(row) => diff::lookup(&self.store, &row.checkpoint.root.tree, path),
                None => Ok(None),
            };
            let parent = changes[run.first].found_at.as_ref().and_then(|row| row.checkpoint.parent.clone());
            if let Some(parent) = &parent
                && !parents.contains_key(parent)
            {
                parents.insert(parent.clone(), self.store.checkpoint(parent)?);
            }
            let parent = parent.and_then(|id| parents.get(&id)?.as_ref());
            let sides = [entry(parent), entry(changes[run.last].found_at.as_deref())];
            let (change, is_lost) = match sides {
                [Ok(before), Ok(after)] => (diff::Change { path: path.clone(), before, after, implied: false }, false),
                // A listing is damaged: that there was a change is known, and not what.
                [before, after] => {
                    let (before, after) = (before.ok().flatten(), after.ok().flatten());
                    (diff::Change { path: path.clone(), before, after, implied: false }, true)
                }
            };
            // Made and gone again: nothing is left of it.
            if change.before == change.after && !is_lost {
                continue;
            }
            let mut file = empty_diff(&change);
            if is_lost {
                file.change.kind = changes[run.last].kind;
                file.unavailable = true;
            } else if !options.names_only {
                match both_sides(&change, |blob| self.store.blob(blob)) {
                    Ok(Some((old, new))) => compare(&old, &new, options.context, &mut file),
                    Ok(None) => {}
                    Err(_) => file.unavailable = true,
                }
            }
            let unsure = run.whose == Whose::Unsure;
            found.push(TurnDiff { file, owner: run.owner.clone(), unsure, undone: false });
            numbers.push((run.first, run.last));
        }
        Ok((found, numbers))
    }
}
