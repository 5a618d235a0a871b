//! Undoing: take back chosen changes and keep all others.

use std::collections::{HashMap, HashSet};

use piton_model::TreeSource;
use piton_model::inverse::{Inverse, Link};
use piton_model::plan::RootState;
use piton_model::trail::{self, Begin, SeqNumber, Taken};
use piton_model::{ChangesAt, CheckpointId, Entry, OperationKind, SkipReason, WorkspacePath};
use piton_store::{CheckpointRow, StoreError};

use crate::capture::sound::{folder_at, is_uncompared};
use crate::history::changes::OwnedChange;
use crate::operation::chosen::{Choice, Chosen};
use crate::operation::draft::{FolderNow, Plan};
use crate::operation::error::OperationError;
use crate::operation::lost::refuse_lost;
use crate::operation::request::{Aim, Asked, Remarks, Request, Settle};
use crate::view::OperationOutcome;
use crate::workspace::{History, Workspace};

/// What to undo, and how.
#[derive(Clone, Debug, Default)]
pub struct UndoOptions {
    /// Which changes.
    pub choice: Choice,
    /// How conflicts are settled.
    pub settle: Settle,
    /// Take back what was done to files outside the workspace, too.
    pub outside: bool,
    /// The turn that an agent is in was interrupted, and does not go on: the user says so.
    pub interrupted: bool,
}

impl Workspace {
    /// Plans and undoes in one go, under the lock.
    pub fn undo_now(&mut self, options: &UndoOptions) -> Result<OperationOutcome, OperationError> {
        self.operate(&Asked::Undo(Box::new(options.clone())), None)
    }
}

impl History {
    /// Plans an undo, for showing. Has no side effect.
    pub fn plan_undo(&self, options: &UndoOptions) -> Result<Plan, OperationError> {
        self.plan(Asked::Undo(Box::new(options.clone())))
    }

    pub(crate) fn undo_request(&self, options: &UndoOptions, seen: &FolderNow<'_>) -> Result<Request, OperationError> {
        let chosen = self.choose(&options.choice, options.outside, seen)?;
        let Chosen { changes, begins, along, unsure, unsure_back, mut stuck, .. } = chosen;
        let Chosen { commands, about, outside, elsewhere, left_out, unknown, accepted, .. } = chosen;
        let (inverse, lost) = self.inverse_of(&changes, begins, seen)?;
        refuse_lost(&lost, &options.settle)?;
        stuck.extend(lost.into_iter().map(|path| (path, SkipReason::Damaged)));
        let head_moved = self.head_moved_during(&changes)?;
        let fresh = changes.iter().filter(|change| change.found_at.is_none()).map(|change| change.path.clone());
        let kind = OperationKind::Undo { changes: by_checkpoint(&changes) };
        Ok(Request {
            about: Some(about),
            fresh: fresh.collect(),
            paths: options.choice.paths.clone(),
            outside,
            touches_outside: options.outside,
            settle: options.settle.clone(),
            left_out,
            remarks: Remarks {
                along,
                unsure,
                unsure_back,
                stuck,
                commands,
                elsewhere,
                unknown,
                accepted: accepted.into_iter().collect(),
                head_moved,
                ..Remarks::default()
            },
            ..Request::new(kind, Aim::Without { changes: inverse, target: None })
        })
    }

    /// Some changes, given newest first, turned round: for each what it left and what was there before. With the paths that
    /// are left out because one of these cannot be told any more. `begins` is when the first of all was found that may be meant.
    pub(crate) fn inverse_of(
        &self,
        changes: &[OwnedChange],
        begins: Option<SeqNumber>,
        seen: &FolderNow<'_>,
    ) -> Result<(Inverse, Vec<WorkspacePath>), OperationError> {
        let changes: Vec<Act<'_>> = changes.iter().map(Act::made).collect();
        self.links_of(&changes, (&[], true), seen, (Begin::Now, begins), Vec::new())
    }

    /// Some changes, given oldest first, as they were made, to be carried over to an earlier moment: for each what was there
    /// before and what it left. `undone` are changes from before that moment which were taken back after it, each with when.
    /// With the paths, of those that are asked for, where nobody knows what to carry over. Who looks back keeps lines too that
    /// were carried before that moment.
    pub(crate) fn carried_of(
        &self,
        changes: &[OwnedChange],
        undone: &[(OwnedChange, SeqNumber)],
        then: &CheckpointRow,
        (paths, looks_back): (&[WorkspacePath], bool),
        seen: &FolderNow<'_>,
    ) -> Result<(Inverse, Vec<WorkspacePath>), OperationError> {
        let mut acts: Vec<Act<'_>> = changes.iter().map(Act::made).collect();
        acts.extend(undone.iter().map(|(change, at)| Act { change, at: *at, is_undoing: true }));
        acts.sort_by_key(|act| act.at);
        let unknown = self.unknown_since(then, paths, seen)?;
        self.links_of(&acts, (paths, looks_back), seen, (Begin::Then(then.seq), None), unknown)
    }

    fn links_of(
        &self,
        acts: &[Act<'_>],
        (scope, looks_back): (&[WorkspacePath], bool),
        seen: &FolderNow<'_>,
        (begin, begins): (Begin, Option<SeqNumber>),
        mut lost: Vec<WorkspacePath>,
    ) -> Result<(Inverse, Vec<WorkspacePath>), OperationError> {
        let mut inverse = Inverse::default();
        let mut taken: Vec<Taken> = Vec::new();
        let mut roots: HashMap<CheckpointId, Option<CheckpointRow>> = HashMap::new();
        let head = self.store.head(self.record.line)?.map(|row| row.checkpoint.root);
        for Act { change: chosen, at: moment, is_undoing } in acts {
            let (then, now) = match &chosen.found_at {
                Some(found) => {
                    let Some(parent) = &found.checkpoint.parent else { continue };
                    if !roots.contains_key(parent) {
                        roots.insert(parent.clone(), self.store.checkpoint(parent)?);
                    }
                    // Its record is damaged.
                    let Some(Some(parent)) = roots.get(parent) else {
                        lost.push(chosen.path.clone());
                        continue;
                    };
                    (parent.checkpoint.root, found.checkpoint.root)
                }
                None => match head {
                    Some(head) => (head, seen.now),
                    None => continue,
                },
            };
            let (then, now) = match begin {
                Begin::Then(_) if !is_undoing => (now, then),
                Begin::Now | Begin::Then(_) => (then, now),
            };
            let trees = &seen.trees;
            let path = &chosen.path;
            let looked = folder_at(trees, then, path).and_then(|before| Ok((before, folder_at(trees, now, path)?)));
            let (before, after) = match looked {
                Err(StoreError::Damaged(_) | StoreError::Missing(_)) => {
                    lost.push(path.clone());
                    continue;
                }
                looked => looked?,
            };
            if is_uncompared(before.as_ref(), after.as_ref()) {
                lost.push(path.clone());
                continue;
            }
            let (came, went) = (before.is_none(), after.is_none());
            taken.push(Taken { at: *moment, path: path.clone(), link: Link { after, before } });
            if went {
                self.note_folders(trees, &mut inverse, then, path)?;
            }
            // Folders that came or went with it are no changes of their own.
            let mut at = path.clone();
            while let Some((above, _)) = at.split().filter(|(above, _)| !above.is_root()) {
                let (before, after) = (folder_at(trees, then, &above)?, folder_at(trees, now, &above)?);
                let comes_or_goes = came && before.is_none() || went && after.is_none();
                if !comes_or_goes {
                    break;
                }
                taken.push(Taken { at: *moment, path: above.clone(), link: Link { after, before } });
                at = above;
            }
        }
        // With an older or newer change of the same file alone, it would be neither as before nor as after.
        taken.retain(|one| !lost.iter().any(|lost| one.path.is_within(lost)));
        self.add_followed(&mut inverse, taken, (scope, looks_back), (begin, begins), seen)?;
        let mut more = Vec::new();
        inverse.retain_trails(|trail| {
            let paths = trail.paths();
            let is_lost = paths.iter().any(|path| lost.iter().any(|lost| path.is_within(lost)));
            more.extend(paths.into_iter().filter(|_| is_lost).cloned());
            !is_lost
        });
        lost.extend(more);
        lost.sort();
        lost.dedup();
        Ok((inverse, lost))
    }

    /// Adds changes, in the order in which they are made, each file that was moved by its trail. Where they are carried over to an
    /// earlier moment, all others in the scope go. Who looks back keeps lines too that were carried before the first of them.
    pub(crate) fn add_followed(
        &self,
        inverse: &mut Inverse,
        taken: Vec<Taken>,
        (scope, looks_back): (&[WorkspacePath], bool),
        (begin, begins): (Begin, Option<SeqNumber>),
        seen: &FolderNow<'_>,
    ) -> Result<(), OperationError> {
        let first = match (taken.iter().map(|one| one.at).min(), begin) {
            (Some(first), _) => first,
            // Nothing is carried over, and what goes may all the same hold what somebody wrote elsewhere.
            (None, Begin::Then(then)) => then + 1,
            (None, Begin::Now) => return Ok(()),
        };
        let since = match begin {
            Begin::Now => begins.map_or(first, |begins| first.min(begins)).saturating_sub(1),
            Begin::Then(then) => first.saturating_sub(1).min(then),
        };
        let paths: HashSet<&WorkspacePath> = taken.iter().map(|one| &one.path).collect();
        let moved = self.moved_since(since, |path| paths.contains(path), seen)?;
        let chosen: HashSet<(SeqNumber, &WorkspacePath)> = taken.iter().map(|one| (one.at, &one.path)).collect();
        if let Begin::Then(then) = begin {
            let goes = |at, path: &WorkspacePath| path.is_in_scope(scope) && !chosen.contains(&(at, path));
            inverse.altered(self.altered(&moved, then, looks_back, goes)?);
        } else {
            let source = |one: &Taken| moved.source(one.at, &one.path, one.link.after.as_ref());
            taken.iter().filter_map(source).for_each(|source| inverse.source(source));
            let is_taken = |at, path: &WorkspacePath| chosen.contains(&(at, path));
            inverse.altered(self.altered(&moved, since, looks_back, is_taken)?);
        }
        let moved = moved.moved;
        if let Begin::Then(then) = begin {
            inverse.moved_since(moved.since(then));
        }
        inverse.add_sorted(trail::follow(taken, &moved, begin));
        Ok(())
    }

    /// Notes the bits of the folders around something that comes back, in case they are gone.
    pub(crate) fn note_folders<S: TreeSource<Error = StoreError>>(
        &self,
        trees: &S,
        inverse: &mut Inverse,
        then: RootState,
        path: &WorkspacePath,
    ) -> Result<(), StoreError> {
        let mut at = path.clone();
        while let Some((above, _)) = at.split().filter(|(above, _)| !above.is_root() && !inverse.knows_folder(above)) {
            if let Some(Entry::Folder { mode, .. }) = folder_at(trees, then, &above)? {
                inverse.folder(above.clone(), mode);
            }
            at = above;
        }
        Ok(())
    }
}

/// A change that is made once more, or taken back once more.
struct Act<'a> {
    change: &'a OwnedChange,
    at: SeqNumber,
    is_undoing: bool,
}

impl<'a> Act<'a> {
    fn made(change: &'a OwnedChange) -> Self {
        Self { change, at: change.seq(), is_undoing: false }
    }
}

/// Changes by the checkpoint that found them, newest first; those that no checkpoint has found yet are left out.
pub(crate) fn by_checkpoint(changes: &[OwnedChange]) -> Vec<ChangesAt> {
    let mut grouped: Vec<ChangesAt> = Vec::new();
    for change in changes {
        let Some(found) = &change.found_at else { continue };
        let checkpoint = &found.checkpoint.id;
        match grouped.last_mut() {
            Some(last) if last.checkpoint == *checkpoint => last.paths.push(change.path.clone()),
            _ => grouped.push(ChangesAt { checkpoint: checkpoint.clone(), paths: vec![change.path.clone()] }),
        }
    }
    grouped
}
