//! What an agent's tools did that no comparison of two checkpoints shows, since what is left out is unknown: whoever takes
//! the tools' work back must hear of it all the same.
//!
//! - A tool that writes a rule, closes a file to its owner or puts a pipe in its place takes it out of piton's sight: captured
//!   before the tool ran, and left out of the checkpoint after it.
//! - A tool that deletes what a rule leaves out, such as `node_modules`, or a nested clone with its `.git`, deletes what nobody
//!   can bring back.
//! - A tool that makes something and a later one that writes a rule for it, `npm install` and then `.gitignore`, leave something
//!   that neither the moment before them nor now knows.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::io;

use piton_host::{Root, read_entry};
use piton_model::diff::{self, ChangeKind, TreeSource};
use piton_model::plan::{Plan, Undone};
use piton_model::{Cause, Entry, ObjectId, SkipReason, StepRef, WorkspacePath};
use piton_store::{CheckpointRow, StoreError};

use crate::capture::sink::HashingSink;
use crate::history::changes::OwnedChange;
use crate::history::lineage::Lineage;
use crate::operation::draft::FolderNow;
use crate::operation::error::OperationError;
use crate::workspace::History;

/// Something that was captured before a step and left out after it, or left out before it and gone after it.
pub(crate) struct LeftOutBy {
    pub step: StepRef,
    pub what: Undone,
    /// The step that had made what was left out and is gone: with that one taken back too, nobody misses it.
    pub made_by: Option<StepRef>,
}

/// What came after a checkpoint, was captured, and is left out by a rule now.
#[derive(Clone, Default)]
pub(crate) struct Hidden {
    /// What the conversation that goes back made, and nobody touched since: it is captured once more and goes.
    pub goes: Vec<WorkspacePath>,
    /// What was never captured, may be others', or holds something of theirs: what is ignored is deleted only where it is known.
    pub stays: Vec<(WorkspacePath, SkipReason)>,
}

impl History {
    /// Of the changes since a checkpoint, given newest first, what came with them and went out of sight.
    pub(crate) fn hidden_since(
        &self,
        target: &CheckpointRow,
        since: &[OwnedChange],
        conversation: Option<&Lineage>,
        paths: &[WorkspacePath],
        seen: &FolderNow<'_>,
    ) -> Result<Hidden, OperationError> {
        let mut hidden = Hidden::default();
        let mut unseen = self.came_unseen(target, paths, seen)?;
        let (Some(head), Some(root)) = (self.store.head(self.record.line)?, seen.root) else { return Ok(hidden) };
        let is_its = |change: &OwnedChange| {
            conversation.is_some_and(|of| change.owner.turn().is_some_and(|(session, turn)| of.holds(session, turn)))
        };
        let mut by_path: BTreeMap<&WorkspacePath, Vec<&OwnedChange>> = BTreeMap::new();
        for change in since {
            by_path.entry(&change.path).or_default().push(change);
        }
        by_path.retain(|_, changes| changes.iter().any(|change| change.kind == ChangeKind::Created));
        for (path, changes) in by_path {
            // What an operation brought back is in its checkpoint, and out of sight again.
            let known = diff::lookup(&self.store, &head.checkpoint.root.tree, path);
            let now = diff::lookup(&seen.trees, &seen.now.tree, path);
            let by_rule = |entry: Option<Entry>| match entry {
                Some(Entry::Skipped { reason }) if reason.is_by_rule() => Some(reason),
                _ => None,
            };
            // What is damaged is told by whoever needs it.
            let Some(reason) = [known, now].into_iter().flatten().find_map(by_rule) else { continue };
            // What was there then is planned for by what it was.
            if !matches!(diff::lookup(&self.store, &target.checkpoint.root.tree, path), Ok(None)) {
                continue;
            }
            let here = match entry_at(root, path) {
                Ok(Some(here)) => Some(here),
                Ok(None) => continue,
                Err(_) => None,
            };
            let known = match changes.first().and_then(|newest| newest.found_at.as_ref()) {
                Some(found) => diff::lookup(&self.store, &found.checkpoint.root.tree, path).ok().flatten(),
                None => None,
            };
            if here.is_none() || known != here || !changes.iter().all(|change| is_its(change)) {
                hidden.stays.push((path.clone(), reason));
                continue;
            }
            match diff::lookup(&seen.trees, &seen.now.tree, path)? {
                Some(Entry::Skipped { .. }) => hidden.goes.push(path.clone()),
                now if now.as_ref() == known.as_ref() => {}
                _ => return Err(OperationError::Stale { path: path.clone() }),
            }
        }
        // What was captured in it once says more than the whole of it.
        let known = hidden.goes.iter().chain(hidden.stays.iter().map(|(path, _)| path));
        let known: Vec<WorkspacePath> = known.cloned().collect();
        unseen.retain(|(path, _)| !known.iter().any(|one| one.is_within(path)));
        hidden.stays.append(&mut unseen);
        Ok(hidden)
    }

    /// What was left out from its first moment, such as what `npm install` makes where a rule was there before it: a checkpoint has
    /// nothing there, now there is something, and nobody knows what. It stays.
    fn came_unseen(
        &self,
        target: &CheckpointRow,
        paths: &[WorkspacePath],
        seen: &FolderNow<'_>,
    ) -> Result<Vec<(WorkspacePath, SkipReason)>, StoreError> {
        // What a damaged listing held is named by others.
        let Ok(mut came) = diff::gone_unknown(&seen.trees, &seen.now.tree, &target.checkpoint.root.tree) else {
            return Ok(Vec::new());
        };
        came.retain(|(path, reason)| reason.is_by_rule() && path.is_in_scope(paths));
        Ok(came)
    }

    /// Adds what is out of sight to a plan: it is asked for until it is captured, and then goes like everything that came; where
    /// it cannot be captured, it stays and is named.
    pub(crate) fn add_hidden(&self, plan: &mut Plan, hidden: &Hidden, seen: &FolderNow<'_>) -> Result<(), StoreError> {
        for path in &hidden.goes {
            if let Some(Entry::Skipped { reason }) = diff::lookup(&seen.trees, &seen.now.tree, path)? {
                plan.unknown.push(path.clone());
                plan.undone.push(Undone { path: path.clone(), reason, known: None });
                plan.kept.push((path.clone(), reason));
            }
        }
        plan.kept.extend(hidden.stays.iter().cloned());
        plan.kept.sort();
        plan.kept.dedup();
        Ok(())
    }

    /// Everything that the tools of a conversation put out of sight, or deleted there, and that is not there now as it was.
    pub(crate) fn left_out_by(&self, session: &Lineage, seen: &FolderNow<'_>) -> Result<Vec<LeftOutBy>, StoreError> {
        let mut found = Vec::new();
        for id in session.sessions() {
            let mut made = HashMap::new();
            for row in self.store.checkpoints_of(id)? {
                let (Some(place), Cause::AfterTool, Some(parent)) =
                    (&row.checkpoint.place, row.checkpoint.cause, &row.checkpoint.parent)
                else {
                    continue;
                };
                let (Some(step), true) = (place.step, row.checkpoint.line == self.record.line) else { continue };
                let step = StepRef { session: place.session.clone(), turn: place.turn, step };
                let Some(parent) = self.store.checkpoint(parent)?.filter(|_| session.holds_step(&step)) else {
                    continue;
                };
                let (from, to) = (&parent.checkpoint.root.tree, &row.checkpoint.root.tree);
                // What a damaged listing held is named by others.
                let Ok(left_out) = diff::left_out(&self.store, from, to) else { continue };
                let left_out = left_out.into_iter().filter(|one| one.before.is_some());
                let hidden = left_out.map(|one| Undone { path: one.path, reason: one.reason, known: one.before });
                let Ok(gone) = diff::gone_unknown(&self.store, from, to) else { continue };
                let gone = gone.into_iter().filter(|(_, reason)| is_worth_naming(*reason));
                let gone = gone.map(|(path, reason)| Undone { path, reason, known: None });
                for what in hidden.chain(gone) {
                    let made_by = made.remove(&what.path);
                    if is_missed(&what, &seen.trees, &seen.now.tree)? {
                        found.push(LeftOutBy { step: step.clone(), what, made_by });
                    }
                }
                let Ok(came) = diff::gone_unknown(&self.store, to, from) else { continue };
                made.extend(came.into_iter().map(|(path, _)| (path, step.clone())));
            }
        }
        Ok(found)
    }
}

/// Whether what was put out of sight or deleted is still not there. A repository's folder may be there without its `.git`.
pub(crate) fn is_missed<S: TreeSource>(what: &Undone, source: &S, now: &ObjectId) -> Result<bool, S::Error> {
    let here = diff::lookup(source, now, &what.path)?;
    match (&what.known, what.reason, &here) {
        (None, SkipReason::GitFolder, Some(Entry::Folder { tree, .. })) => Ok(!source.tree(tree)?.has_git),
        _ => Ok(what.holds_with(here.as_ref())),
    }
}

/// Whether somebody may miss it: what piton or an agent keeps for itself, a socket, or a worktree with a store of its own is
/// told of elsewhere or comes and goes.
fn is_worth_naming(reason: SkipReason) -> bool {
    use SkipReason::{BareRepository, Budget, Excluded, GitFolder, Ignored, TooLarge, Unreadable};
    matches!(reason, Ignored | Excluded | TooLarge | Unreadable | Budget | BareRepository | GitFolder)
}

/// What stands at a path, as a capture would have it.
fn entry_at(root: &Root, path: &WorkspacePath) -> io::Result<Option<Entry>> {
    let sink = HashingSink::default();
    read_entry(root, path.as_bytes(), &sink).unwrap_or_else(|never: Infallible| match never {})
}
