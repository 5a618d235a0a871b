//! Which files were moved since some moment, by whomever: by tools, by hand, and by piton itself.

use std::collections::{BTreeMap, HashMap, HashSet};

use piton_host::Root;
use piton_model::diff::{self, Change, ChangeKind, TreeSource};
use piton_model::inverse::{Altered, Source};
use piton_model::moves::{self, Happened, Move, Paired, is_alike, pair};
use piton_model::plan::RootState;
use piton_model::trail::{Moved, SeqNumber};
use piton_model::{Candidate, Entry, ObjectId, OperationKind, Owner, StepRef, WorkspacePath};
use piton_store::{CheckpointRow, OperationRow, OperationState, StoreError};

use crate::capture::sound::folder_at;
use crate::history::changes::OwnedChange;
use crate::operation::draft::{FolderNow, NowAndThen};
use crate::operation::error::OperationError;
use crate::view::Along;
use crate::workspace::History;

/// The moves of a time.
#[derive(Default)]
pub(crate) struct MovedSince {
    pub moved: Moved,
    /// Files that belong together and of which nobody can tell which became which: those that went and those that came.
    unclear: Vec<(SeqNumber, Vec<WorkspacePath>, Vec<WorkspacePath>)>,
    /// Files that went while another one took all that they held.
    merged: Vec<(SeqNumber, Move)>,
    /// Contents that went from paths, whosever doing that was.
    went: HashMap<(SeqNumber, ObjectId), Vec<WorkspacePath>>,
    /// Every change of a file but those of operations, oldest first.
    all: Vec<ByOne>,
}

/// One change of a file, and whose it was.
#[derive(Clone)]
struct ByOne {
    at: SeqNumber,
    hand: String,
    path: WorkspacePath,
    was: Option<Entry>,
    is: Option<Entry>,
}

impl MovedSince {
    /// Where a content went from at the moment when a change brought it to a path.
    pub(crate) fn source(&self, at: SeqNumber, path: &WorkspacePath, after: Option<&Entry>) -> Option<Source> {
        let Some(Entry::File { blob, .. }) = after else { return None };
        let from = self.went.get(&(at, *blob)).filter(|from| !from.contains(path))?;
        Some(Source { path: path.clone(), blob: *blob, from: from.clone() })
    }

    /// The paths that a change at a path is one half of the move with.
    pub(crate) fn partners(&self, at: SeqNumber, path: &WorkspacePath) -> Vec<WorkspacePath> {
        let unclear = self.unclear.iter().filter(|(when, _, came)| *when == at && came.contains(path));
        let gone = unclear.flat_map(|(_, gone, _)| gone.iter().cloned());
        let merged = self.merged.iter().filter(|(when, one)| *when == at && one.to == *path);
        let merged = merged.map(|(_, one)| one.from.clone());
        self.moved.partners(at, path).cloned().chain(gone).chain(merged).collect()
    }
}

/// The paths that a rewind of some paths is about.
pub(crate) struct OtherHalves {
    pub all: Vec<WorkspacePath>,
    /// Those of them that nobody asked for, and where files stand or stood at the target.
    pub along: Vec<Along>,
    /// Those that such files only had in between.
    pub between: Vec<WorkspacePath>,
}

/// More files than this that changed at once and neither came nor went are not looked at for moves of files and lines.
const MOST_EDITED: usize = 200;

/// So many records before what goes back are looked at for lines that were cut.
const FARTHEST_BACK: u64 = 5_000;

/// Of more changes in them only the last.
const MOST_EARLIER: usize = 300;

/// What happened at each moment, by each hand.
type ByHand = BTreeMap<(SeqNumber, String), Happened>;

impl History {
    /// Adds the other halves of moves of which only one half was chosen, if they can be chosen at all: a file that goes from its
    /// new place comes back to its old one, or it would be nowhere.
    pub(crate) fn add_other_halves(
        &self,
        chosen: &mut Vec<OwnedChange>,
        all: Vec<OwnedChange>,
        seen: &FolderNow<'_>,
    ) -> Result<Vec<Along>, OperationError> {
        let Some(first) = chosen.iter().map(OwnedChange::seq).min().filter(|_| !all.is_empty()) else {
            return Ok(Vec::new());
        };
        let mut known: HashSet<(u64, WorkspacePath)> =
            chosen.iter().map(|change| (change.seq(), change.path.clone())).collect();
        let paths: HashSet<WorkspacePath> = known.iter().map(|(_, path)| path.clone()).collect();
        let moved = self.moved_since(first.saturating_sub(1), |path| paths.contains(path), seen)?;
        let in_effect = self.in_effect(&all.iter().collect::<Vec<_>>())?;
        let all = all.into_iter().zip(in_effect).filter(|(_, effective)| *effective).map(|(change, _)| change);
        let all: HashMap<(u64, WorkspacePath), OwnedChange> =
            all.map(|change| ((change.seq(), change.path.clone()), change)).collect();
        let mut along = Vec::new();
        // What goes along may be one half itself: of the file that was moved to where this one was.
        let mut next = 0;
        while let Some(change) = chosen.get(next).cloned() {
            next += 1;
            for partner in moved.partners(change.seq(), &change.path) {
                let at = (change.seq(), partner);
                let half = all.get(&at).filter(|half| whose(&half.owner) == whose(&change.owner));
                if let Some(half) = half.filter(|_| known.insert(at.clone())) {
                    along.push(Along { path: half.path.clone(), with: change.path.clone() });
                    chosen.push(half.clone());
                }
            }
        }
        // Newest first, as they are taken back.
        chosen.sort_by_key(|change| std::cmp::Reverse(change.seq()));
        Ok(along)
    }

    /// Gives changes of which nobody knows whose they are to whom the other half of the same move surely is.
    pub(crate) fn settle_halves<'a>(
        &self,
        changes: impl Iterator<Item = &'a mut OwnedChange>,
        seen: &FolderNow<'_>,
    ) -> Result<(), OperationError> {
        let (mut unsure, sure): (Vec<_>, Vec<_>) =
            changes.partition(|change| matches!(change.owner, Owner::Unsure { .. }));
        let Some(first) = unsure.iter().map(|change| change.seq()).min().filter(|_| !sure.is_empty()) else {
            return Ok(());
        };
        let paths: HashSet<WorkspacePath> = unsure.iter().map(|change| change.path.clone()).collect();
        let moved = self.moved_since(first.saturating_sub(1), |path| paths.contains(path), seen)?.moved;
        if moved.is_empty() {
            return Ok(());
        }
        let owners: HashMap<(u64, &WorkspacePath), &Owner> =
            sure.iter().map(|change| ((change.seq(), &change.path), &change.owner)).collect();
        for change in &mut unsure {
            let mut partners = moved.partners(change.seq(), &change.path);
            if let Some(owner) = partners.find_map(|partner| owners.get(&(change.seq(), partner))) {
                change.owner = (*owner).clone();
            }
        }
        Ok(())
    }

    /// The paths that a rewind of some paths is about: with all paths of the files that were moved from or to them, or such a file
    /// would be nowhere, or twice. A file that came after the target goes; unless it may be carried over to where its maker had it.
    pub(crate) fn with_other_halves(
        &self,
        target: &CheckpointRow,
        paths: &[WorkspacePath],
        carries: bool,
        seen: &FolderNow<'_>,
    ) -> Result<OtherHalves, OperationError> {
        let mut all = paths.to_vec();
        let mut along = Vec::new();
        let mut between = Vec::new();
        if paths.is_empty() {
            return Ok(OtherHalves { all, along, between });
        }
        let MovedSince { moved, merged, .. } = self.moved_since(target.seq, |path| path.is_in_scope(paths), seen)?;
        let mut chains: Vec<Vec<WorkspacePath>> = Vec::new();
        for mut chain in moved.chains(target.seq) {
            let (Some(now), Some(first)) = (chain.first().cloned(), chain.last().cloned()) else { continue };
            // Only what is carried over may end at a path in between.
            if !carries {
                chain = vec![now.clone(), first.clone()];
            }
            let (now, first) = (&now, &first);
            let stands = diff::lookup(&seen.trees, &seen.now.tree, now)?;
            let was_there = self.was_file(target, first)?;
            if matches!(stands, Some(Entry::File { .. })) && (was_there || carries) {
                chains.push(chain);
            }
        }
        // Where a file was before it was put into another one: it comes back where that one goes.
        let mut sources = Vec::new();
        for (at, Move { from, to }) in merged {
            let Some(from) = moved.path_before(&from, at, target.seq) else { continue };
            if diff::lookup(&seen.trees, &seen.now.tree, &from)?.is_none() && self.was_file(target, &from)? {
                sources.push(Move { from, to });
            }
        }
        // What goes along may stand where another file was moved to.
        loop {
            let found = all.len();
            for one in &sources {
                if one.to.is_in_scope(&all) && !one.from.is_in_scope(&all) {
                    along.push(Along { path: one.from.clone(), with: one.to.clone() });
                    all.push(one.from.clone());
                }
            }
            for chain in &chains {
                let Some(with) = chain.iter().find(|path| path.is_in_scope(&all)).cloned() else { continue };
                let mut others: Vec<_> = chain.iter().filter(|path| !path.is_in_scope(&all)).cloned().collect();
                others.dedup();
                for path in &others {
                    if Some(path) == chain.first() || Some(path) == chain.last() {
                        along.push(Along { path: path.clone(), with: with.clone() });
                    } else {
                        between.push(path.clone());
                    }
                }
                all.extend(others);
            }
            if all.len() == found {
                return Ok(OtherHalves { all, along, between });
            }
        }
    }

    /// Whether a file stood at a path at a checkpoint, as far as it can be read.
    fn was_file(&self, target: &CheckpointRow, path: &WorkspacePath) -> Result<bool, StoreError> {
        match diff::lookup(&self.store, &target.checkpoint.root.tree, path) {
            Err(StoreError::Damaged(_) | StoreError::Missing(_)) => Ok(false),
            found => Ok(matches!(found?, Some(Entry::File { .. }))),
        }
    }

    /// Which files were moved after a record. Contents that are not equal are compared only for files that are concerned.
    pub(crate) fn moved_since(
        &self,
        seq: u64,
        is_concerned: impl Fn(&WorkspacePath) -> bool,
        seen: &FolderNow<'_>,
    ) -> Result<MovedSince, OperationError> {
        let mut all: ByHand = BTreeMap::new();
        self.add_captured(seq, u64::MAX, &mut all)?;
        for change in self.uncaptured(seen)? {
            let Some(head) = self.store.head(self.record.line)? else { break };
            add(&seen.trees, (head.checkpoint.root, seen.now), SeqNumber::MAX, &change, &mut all)?;
        }
        let mut by_operations: Vec<(SeqNumber, Vec<Move>)> = Vec::new();
        let operations = self.store.operations()?;
        let is_meant = |row: &&OperationRow| row.seq > seq && row.state == OperationState::Done;
        let operations: Vec<_> = operations.iter().filter(is_meant).collect();
        for row in &operations {
            // What a damaged record moved cannot be told: each end is taken by itself.
            if let Ok(operation) = self.store.operation(row) {
                by_operations.push((row.seq, operation.moves));
            }
        }
        let ends = |moves: &[Move]| moves.iter().flat_map(|one| [one.from.clone(), one.to.clone()]).collect::<Vec<_>>();
        // What was moved and moved back concerns nobody.
        let by_operations_alone = Moved::new([], by_operations.clone());
        let mut concerned: HashSet<WorkspacePath> = by_operations_alone.ends().into_iter().cloned().collect();
        let contents = NowAndThen { root: seen.root, store: &self.store };
        let mut by_hands: Vec<(SeqNumber, Vec<Move>)> = Vec::new();
        let (mut unclear, mut merged) = (Vec::new(), Vec::new());
        let mut went: HashMap<(SeqNumber, ObjectId), Vec<WorkspacePath>> = HashMap::new();
        let mut alone = Vec::new();
        for ((at, hand), happened) in all {
            if !is_operations(&hand) {
                alone.extend(one_by_one(at, &hand, &happened));
            }
            for (path, blob) in happened.went() {
                // A copy of what is edited where it stands did not come from there.
                let is_copied =
                    happened.came.iter().any(|(_, came)| matches!(came, Entry::File { blob: new, .. } if *new == blob));
                let edited = happened.replaced.iter().find(|(one, ..)| is_copied && one == path);
                if !edited.is_some_and(|(path, was, is)| is_alike(&contents, path, was, is)) {
                    went.entry((at, blob)).or_default().push(path.clone());
                }
            }
            if !happened.can_be_moves() {
                continue;
            }
            let paired = pair(&contents, &happened, |path| is_concerned(path) || concerned.contains(path));
            let put_together = moves::merged(&contents, &happened, &paired.moves, &is_concerned);
            merged.extend(put_together.into_iter().map(|one| (at, one)));
            concerned.extend(ends(&paired.moves));
            by_hands.push((at, paired.moves));
            unclear.extend(paired.unclear.into_iter().map(|(gone, came)| (at, gone, came)));
        }
        let moved = self.with_returns(by_hands, by_operations, &operations, &alone)?;
        Ok(MovedSince { moved, unclear, merged, went, all: alone })
    }

    /// Moves, with those that operations could not record: where a file was moved away and deleted there, and an operation brought
    /// it back to where it had been, it moved nothing; but from then on the file is there.
    fn with_returns(
        &self,
        by_hands: Vec<(SeqNumber, Vec<Move>)>,
        mut by_operations: Vec<(SeqNumber, Vec<Move>)>,
        operations: &[&OperationRow],
        alone: &[ByOne],
    ) -> Result<Moved, StoreError> {
        let mut moved = Moved::new(by_hands.iter().cloned(), by_operations.iter().cloned());
        if by_hands.iter().all(|(_, moves)| moves.is_empty()) {
            return Ok(moved);
        }
        // Where each of those was before it came back, and when it did.
        let mut returned: HashMap<WorkspacePath, (SeqNumber, WorkspacePath)> = HashMap::new();
        // Oldest first: what one brought back, a later one may take away again.
        let mut operations = operations.to_vec();
        operations.sort_by_key(|row| row.seq);
        for row in operations {
            let Some((before, changes)) = self.changes_of_operation(row)? else { continue };
            let number = by_operations.iter().position(|(at, _)| *at == row.seq);
            let recorded = number.map(|number| by_operations[number].1.clone()).unwrap_or_default();
            let is_end = |path: &WorkspacePath| recorded.iter().any(|one| one.from == *path || one.to == *path);
            // Whether somebody made another file there in the meantime.
            let is_others = |path: &WorkspacePath, since: SeqNumber| {
                let comes = |one: &&ByOne| one.path == *path && one.at > since && one.at < row.seq && is_made(one);
                alone.iter().filter(comes).any(|one| moved.led_to(one.at, path).is_none())
            };
            let is_free =
                |path: &WorkspacePath| !is_end(path) && matches!(folder_at(&self.store, before, path), Ok(None));
            let mut more: Vec<Move> = Vec::new();
            for Change { path, before: was, after: is, .. } in changes {
                let comes = was.is_none() && is_file(is.as_ref());
                let goes = is_file(was.as_ref()) && is.is_none();
                let known = match (comes, goes) {
                    (true, _) => moved.left_for(&path, row.seq),
                    (_, true) => returned.remove(&path),
                    _ => None,
                };
                let Some((since, other)) = known.filter(|_| !is_end(&path)) else { continue };
                if !is_free(&other) || is_others(&path, since) || is_others(&other, since) {
                    continue;
                }
                if comes {
                    returned.insert(path.clone(), (row.seq, other.clone()));
                    more.push(Move { from: other, to: path });
                } else {
                    more.push(Move { from: path, to: other });
                }
            }
            if more.is_empty() {
                continue;
            }
            match number {
                Some(number) => by_operations[number].1.extend(more),
                None => by_operations.push((row.seq, more)),
            }
            moved = Moved::new(by_hands.iter().cloned(), by_operations.iter().cloned());
        }
        Ok(moved)
    }

    /// The state before an operation and what it changed, as far as both can be read.
    fn changes_of_operation(&self, row: &OperationRow) -> Result<Option<(RootState, Vec<Change>)>, StoreError> {
        let after = row.after.as_ref().map(|id| self.store.checkpoint(id)).transpose()?.flatten();
        let (Some(before), Some(after)) = (self.store.checkpoint(&row.before)?, after) else { return Ok(None) };
        let (before, after) = (before.checkpoint.root, after.checkpoint.root);
        match diff::root_changes(&self.store, Some(&before), Some(&after)) {
            // What is damaged is named by itself.
            Err(StoreError::Damaged(_) | StoreError::Missing(_)) => Ok(None),
            changes => Ok(Some((before, changes?))),
        }
    }

    /// What changed after a moment, oldest first, where some changes go back: those for which `is_taken` holds. Who looks back has
    /// before that what changed earlier. A line that the user deleted may go for good; one that an agent deleted, whichever it was,
    /// or an operation, may not.
    pub(crate) fn altered(
        &self,
        moved: &MovedSince,
        since: SeqNumber,
        looks_back: bool,
        is_taken: impl Fn(SeqNumber, &WorkspacePath) -> bool,
    ) -> Result<Vec<Altered>, StoreError> {
        let farthest = if looks_back { since.saturating_sub(FARTHEST_BACK) } else { since };
        let mut all = if looks_back { self.changed_between(farthest, since)? } else { Vec::new() };
        all.extend(moved.all.iter().filter(|one| one.at > since).cloned());
        all.extend(self.changed_by_operations(farthest)?);
        all.sort_by_key(|one| one.at);
        let earlier = all.iter().take_while(|one| one.at <= since).count();
        all.drain(..earlier.saturating_sub(MOST_EARLIER));
        let undone = self.undone_after(all.first().map_or(since, |first| first.at.saturating_sub(1)))?;
        let altered = |one: ByOne| {
            let is_yours = one.hand == YOU;
            // What an agent wrote and was taken back already has nobody who would miss it.
            let is_undone = !is_yours && undone.contains(&(one.at, one.path.clone()));
            let is_taken = is_undone || (one.at > since && is_taken(one.at, &one.path));
            Altered { path: one.path, was: one.was, is: one.is, is_taken, is_others: !is_yours }
        };
        Ok(all.into_iter().map(altered).collect())
    }

    /// The changes of files after a record up to another one, by hands.
    fn changed_between(&self, seq: u64, until: u64) -> Result<Vec<ByOne>, StoreError> {
        let mut all: ByHand = BTreeMap::new();
        self.add_captured(seq, until, &mut all)?;
        let by_hands = all.iter().filter(|((_, hand), _)| !is_operations(hand));
        Ok(by_hands.flat_map(|((at, hand), happened)| one_by_one(*at, hand, happened)).collect())
    }

    /// What operations did to files after a record, as far as they did not take it back again. Their checkpoints do not tell: that
    /// of a rewind follows on its target.
    fn changed_by_operations(&self, seq: u64) -> Result<Vec<ByOne>, StoreError> {
        let rows = self.store.operations()?;
        let mut by_path: BTreeMap<WorkspacePath, Vec<ByOne>> = BTreeMap::new();
        for row in rows.iter().rev().filter(|row| row.seq > seq && row.state == OperationState::Done) {
            let Some((_, changes)) = self.changes_of_operation(row)? else { continue };
            let is_one = |one: &Change| is_file(one.before.as_ref()) || is_file(one.after.as_ref());
            let changes: Vec<Change> = changes.into_iter().filter(is_one).collect();
            let is_edit = |one: &Change| one.before.is_some() && one.after.is_some();
            if changes.len() > MOST_EDITED && changes.iter().all(is_edit) {
                continue;
            }
            let hand = format!("{OPERATION}{}", row.id);
            for Change { path, before: was, after: is, .. } in changes {
                let known = by_path.entry(path.clone()).or_default();
                // What was done and taken back leaves no trace.
                match known.iter().rposition(|one| one.was == is) {
                    Some(first) => known.truncate(first),
                    None => known.push(ByOne { at: row.seq, hand: hand.clone(), path, was, is }),
                }
            }
        }
        Ok(by_path.into_values().flatten().collect())
    }

    /// The changes after a record that are taken back.
    fn undone_after(&self, seq: u64) -> Result<HashSet<(SeqNumber, WorkspacePath)>, StoreError> {
        if !self.store.operations()?.iter().any(|row| row.seq > seq && row.state == OperationState::Done) {
            return Ok(HashSet::new());
        }
        let all = self.all_changes(seq + 1)?;
        let in_effect = self.in_effect(&all.iter().collect::<Vec<_>>())?;
        let undone = all.into_iter().zip(in_effect).filter(|(_, is_in_effect)| !is_in_effect);
        Ok(undone.map(|(change, _)| (change.seq(), change.path)).collect())
    }

    /// Adds what checkpoints found after a record, up to another one.
    fn add_captured(&self, seq: u64, until: u64, all: &mut ByHand) -> Result<(), StoreError> {
        let mut rows = self.store.changes_since(seq + 1)?;
        rows.retain(|row| row.seq <= until);
        // Where nothing came or went, files may still have changed places, and lines gone from one to another; but of many that
        // were edited at once each is an edit.
        let mut counts: HashMap<u64, (usize, usize)> = HashMap::new();
        for row in &rows {
            let (edited, other) = counts.entry(row.seq).or_default();
            *if row.kind == ChangeKind::Modified { edited } else { other } += 1;
        }
        let may_hold_moves = |(edited, other): &(usize, usize)| *other > 0 || *edited <= MOST_EDITED;
        let moved: HashSet<u64> =
            counts.iter().filter(|(_, count)| may_hold_moves(count)).map(|(seq, _)| *seq).collect();
        let rows = rows.into_iter().filter(|row| moved.contains(&row.seq));
        let listed = self.at_checkpoints(rows.map(|row| ((), row)).collect())?.into_iter().map(|((), change)| change);
        let mut cut = self.store.checkpoints_cut(seq + 1)?;
        cut.retain(|row| row.seq <= until);
        let unlisted = self.unlisted(cut, |_| true)?;
        let mut parent: Option<(u64, RootState)> = None;
        for change in listed.chain(unlisted) {
            let Some(found) = &change.found_at else { continue };
            if parent.is_none_or(|(of, _)| of != found.seq) {
                let id = found.checkpoint.parent.as_ref();
                let row = id.map(|id| self.store.checkpoint(id)).transpose()?.flatten();
                parent = row.map(|row| (found.seq, row.checkpoint.root));
            }
            let Some((_, before)) = parent else { continue };
            add(&self.store, (before, found.checkpoint.root), found.seq, &change, all)?;
        }
        Ok(())
    }

    /// The files that taking back an operation moves: those that it moved, back again.
    pub(crate) fn moves_back(&self, kind: &OperationKind) -> Result<Vec<Move>, StoreError> {
        // Of several the moves would have to be followed through each other: contents tell instead.
        let OperationKind::Redo { of, .. } = kind else { return Ok(Vec::new()) };
        if !kind.also().is_empty() {
            return Ok(Vec::new());
        }
        let Some(row) = self.store.operation_row(of)? else { return Ok(Vec::new()) };
        let moves = self.store.operation(&row).map(|operation| operation.moves).unwrap_or_default();
        Ok(moves.into_iter().map(|one| Move { from: one.to, to: one.from }).collect())
    }

    /// The moves that an operation records. Where a redo takes away nobody's work, it moves exactly what is known of the operations
    /// that it takes back: contents may tell of more moves in this direction than they did in the other, and a file would count as
    /// another one than before both.
    pub(crate) fn moves_recorded(
        &self,
        kind: &OperationKind,
        changes: &[Change],
        known: &[Move],
        root: &Root,
    ) -> Vec<Move> {
        match kind {
            OperationKind::Redo { gone, .. } if gone.is_empty() => changed_by(changes, known),
            _ => self.moves_of(changes, known, Some(root)),
        }
    }

    /// The files that an operation moves: those that are known, and others that its changes tell.
    pub(crate) fn moves_of(&self, changes: &[Change], known: &[Move], root: Option<&Root>) -> Vec<Move> {
        let mut happened = Happened::default();
        for change in changes {
            happened.add(&change.path, change.before.clone(), change.after.clone());
        }
        let known = changed_by(changes, known);
        let ends: HashSet<&WorkspacePath> = known.iter().flat_map(|one| [&one.from, &one.to]).collect();
        let is_known = |path: &WorkspacePath| ends.contains(path);
        happened.gone.retain(|(path, _)| !is_known(path));
        happened.came.retain(|(path, _)| !is_known(path));
        happened.replaced.retain(|(path, ..)| !is_known(path));
        if !happened.can_be_moves() {
            return known;
        }
        let contents = NowAndThen { root, store: &self.store };
        let Paired { moves, .. } = pair(&contents, &happened, |_| true);
        known.into_iter().chain(moves).collect()
    }
}

/// The known moves without those of what was taken out of the plan since.
fn changed_by(changes: &[Change], known: &[Move]) -> Vec<Move> {
    let changed: HashSet<&WorkspacePath> = changes.iter().map(|change| &change.path).collect();
    known.iter().filter(|one| changed.contains(&one.from) && changed.contains(&one.to)).cloned().collect()
}

fn is_file(entry: Option<&Entry>) -> bool {
    matches!(entry, Some(Entry::File { .. }))
}

/// Whether a change made a file where there was none.
fn is_made(one: &ByOne) -> bool {
    !is_file(one.was.as_ref()) && is_file(one.is.as_ref())
}

fn one_by_one(at: SeqNumber, hand: &str, happened: &Happened) -> Vec<ByOne> {
    let one = |path: &WorkspacePath, was: Option<&Entry>, is: Option<&Entry>| {
        let (path, was, is) = (path.clone(), was.cloned(), is.cloned());
        ByOne { at, hand: hand.to_owned(), path, was, is }
    };
    let gone = happened.gone.iter().map(|(path, was)| one(path, Some(was), None));
    let came = happened.came.iter().map(|(path, is)| one(path, None, Some(is)));
    let replaced = happened.replaced.iter().map(|(path, was, is)| one(path, Some(was), Some(is)));
    gone.chain(came).chain(replaced).collect()
}

fn add<S: TreeSource<Error = StoreError>>(
    trees: &S,
    (before, after): (RootState, RootState),
    at: SeqNumber,
    change: &OwnedChange,
    all: &mut ByHand,
) -> Result<(), StoreError> {
    let path = &change.path;
    match folder_at(trees, before, path).and_then(|before| Ok((before, folder_at(trees, after, path)?))) {
        // What cannot be read was moved nowhere, as far as anybody knows.
        Err(StoreError::Damaged(_) | StoreError::Missing(_)) => {}
        ends => {
            let (before, after) = ends?;
            all.entry((at, whose(&change.owner))).or_default().add(path, before, after);
        }
    }
    Ok(())
}

/// The name of the user's hand.
const YOU: &str = "you";

/// What the name of an operation's hand begins with.
const OPERATION: &str = "operation ";

fn is_operations(hand: &str) -> bool {
    hand.starts_with(OPERATION)
}

/// One hand's name: what one deletes and another makes is no move. What may be a session's counts as its own here: equal contents
/// say more than the time at which something was found.
fn whose(owner: &Owner) -> String {
    let of = |step: &StepRef| step.session.to_string();
    match owner {
        Owner::You => YOU.to_owned(),
        Owner::Step { step, .. } => of(step),
        Owner::Operation { operation } => format!("{OPERATION}{operation}"),
        Owner::Unsure { candidates } => {
            let step = candidates.iter().find_map(|one| match one {
                Candidate::Step(step) => Some(of(step)),
                Candidate::You => None,
            });
            step.unwrap_or_default()
        }
    }
}
