//! Moved files: where each of them goes, and what stays because it cannot be moved.

use std::collections::{BTreeMap, BTreeSet};

use super::draft::{Drafter, Open};
use super::{Conflict, Contents, Link, Source, Why};
use crate::content::Decision;
use crate::diff::{TreeSource, lookup};
use crate::edit::Edit;
use crate::id::ObjectId;
use crate::moves::{Move, Placed};
use crate::path::WorkspacePath;
use crate::plan::{Layered, RootState};
use crate::trail::{Trail, TrailStep};
use crate::tree::{Entry, SkipReason, Tree};

/// What turned out to have nowhere to go.
#[derive(Default)]
pub(super) struct Stays {
    /// Trails by index, with the reason and another file that is affected.
    pub(super) trails: BTreeMap<usize, (Why, Option<WorkspacePath>)>,
    /// Paths whose content would otherwise exist nowhere, each with a path that it came from.
    pub(super) ends: BTreeMap<WorkspacePath, (WorkspacePath, Why)>,
    /// Uncaptured things at paths where a file would go.
    pub(super) skipped: Vec<(WorkspacePath, SkipReason)>,
}

impl Stays {
    pub(super) fn len(&self) -> usize {
        self.trails.len() + self.ends.len()
    }
}

/// What becomes of a moved file.
pub(super) struct Follows {
    /// The trail's index.
    pub(super) trail: usize,
    /// Where it is in the starting state.
    pub(super) begins: Option<WorkspacePath>,
    /// The resulting path and entry.
    pub(super) to: Option<Placed>,
}

impl<S: TreeSource, C: Contents<Error = S::Error>> Drafter<'_, S, C> {
    /// What becomes of the moved files, except for those that stay as they are.
    pub(super) fn follow(&mut self, now: RootState, stays: &Stays) -> Result<Vec<Follows>, S::Error> {
        let inverse = self.inverse;
        let mut all = Vec::new();
        for (number, trail) in inverse.trails.iter().enumerate() {
            let here = match &trail.begins {
                Some(path) => lookup(self.source, &now.tree, path)?.map(|entry| (path.clone(), entry)),
                None => None,
            };
            if let Some((path, Entry::Skipped { reason })) = here {
                self.leave_skipped(&path, reason);
                continue;
            }
            // Where the trail has no file, something else may be; whether it makes room is decided on placement.
            let is_other = |(_, entry): &Placed| !matches!(entry, Entry::File { .. });
            let begins_with_none = trail.steps.first().is_some_and(|step| step.from.is_none());
            let here = here.filter(|here| !(begins_with_none && is_other(here)));
            if let Some((path, Entry::File { blob, .. })) = &here {
                self.homes.entry(*blob).or_insert_with(|| path.clone());
            }
            let (conflicts, merged) = (self.out.conflicts.len(), self.out.merged.len());
            let to = self.along(trail, here.clone())?;
            let stays = stays.trails.get(&number);
            if let Some((why, _)) = stays.filter(|_| to.is_ok()) {
                let is_decided = self.decision == Some(Decision::Ours);
                self.conflict(&trail.now, *why, Vec::new(), is_decided);
            }
            for conflict in &mut self.out.conflicts[conflicts..] {
                conflict.others = trail.paths_but(&conflict.path);
                if let Some((why, Some(other))) = stays.filter(|(why, _)| *why == conflict.why) {
                    conflict.name_also(*why, other);
                }
            }
            self.out.merged.truncate(merged);
            let Ok(to) = to else { continue };
            if stays.is_some() || to == here {
                continue;
            }
            if let Some((path, _)) = to.as_ref().filter(|to| is_put_together(trail, here.as_ref(), to)) {
                self.out.merged.push(path.clone());
            }
            all.push(Follows { trail: number, begins: here.map(|(path, _)| path), to });
        }
        Ok(all)
    }

    /// Applies a file's steps one by one, merging content and path separately.
    pub(super) fn along(
        &mut self,
        trail: &Trail,
        here: Option<Placed>,
    ) -> Result<Result<Option<Placed>, Open>, S::Error> {
        let mut current = here;
        for step in &trail.steps {
            current = match self.one_step(&trail.now, current, step)? {
                Ok(next) => next,
                Err(Open) => return Ok(Err(Open)),
            };
        }
        Ok(Ok(current))
    }

    pub(super) fn one_step(
        &mut self,
        name: &WorkspacePath,
        current: Option<Placed>,
        step: &TrailStep,
    ) -> Result<Result<Option<Placed>, Open>, S::Error> {
        let (from, to) = (step.from.as_ref(), step.to.as_ref());
        let is_move = matches!((from, to), (Some((from, _)), Some((to, _))) if from != to);
        let (path, entry) = match current {
            // Somebody deleted it at its new path; the move itself deleted it at the old one.
            None if is_move && !self.is_carried => return Ok(Ok(to.cloned())),
            None => (None, None),
            Some((path, entry @ Entry::File { .. })) => (Some(path), Some(entry)),
            Some(other) => return Ok(self.decide(name, Why::Replaced, Some(other), to.cloned())),
        };
        let link = Link { after: from.map(|(_, entry)| entry.clone()), before: to.map(|(_, entry)| entry.clone()) };
        let entry = match self.take_back(name, entry, &link)? {
            Ok(entry) => entry,
            Err(Open) => return Ok(Err(Open)),
        };
        let path = match (path, to) {
            (None, to) => to.map(|(to, _)| to.clone()),
            (Some(path), Some((to, _))) if is_move && path != *to => match from {
                Some((from, _)) if *from == path => Some(to.clone()),
                // Somebody else moved it again.
                _ => match self.decide(name, Why::Moved, Some(path), Some(to.clone())) {
                    Ok(path) => path,
                    Err(Open) => return Ok(Err(Open)),
                },
            },
            (path, _) => path,
        };
        Ok(Ok(path.zip(entry)))
    }

    /// Puts moved files where they go. Those without room stay, with all their paths.
    pub(super) fn place(&mut self, now: RootState, follows: Vec<Follows>, stays: &mut Stays) -> Result<(), S::Error> {
        let mut taken: BTreeSet<WorkspacePath> = BTreeSet::new();
        let mut edits: BTreeMap<WorkspacePath, Edit> = BTreeMap::new();
        for one in follows {
            let Some((path, entry)) = one.to else { continue };
            if one.begins.as_ref() == Some(&path) {
                continue;
            }
            let layered = Layered { over: &self.out.new_trees, under: self.source };
            let here = lookup(&layered, &self.out.root.tree, &path)?;
            if let Some(Entry::Skipped { reason }) = here {
                stays.skipped.push((path, reason));
                stays.trails.insert(one.trail, (Why::NoRoom, None));
                continue;
            }
            let mut ways = Vec::new();
            let mut is_free = here.is_none() || here.as_ref() == Some(&entry);
            let mut at = path.clone();
            while let Some((above, _)) = at.split().filter(|(above, _)| !above.is_root()) {
                match lookup(&layered, &self.out.root.tree, &above)? {
                    Some(Entry::Folder { .. }) => break,
                    found => {
                        is_free &= found.is_none();
                        let mode = match lookup(self.source, &now.tree, &above)? {
                            Some(Entry::Folder { mode, .. }) => mode,
                            _ => self.inverse.folders.get(&above).copied().unwrap_or(0o755),
                        };
                        ways.push((above.clone(), mode));
                    }
                }
                at = above;
            }
            // A folder sorts directly before its contents.
            let holds_one = taken.range(&path..).next().is_some_and(|other| other.is_within(&path));
            let mut above = path.split();
            let mut is_held = false;
            while let Some((folder, _)) = above.filter(|_| !is_held) {
                is_held = taken.contains(&folder);
                above = folder.split();
            }
            let collides = holds_one || is_held;
            if !is_free || collides {
                if collides || self.decision != Some(Decision::Theirs) {
                    stays.trails.insert(one.trail, (Why::NoRoom, None));
                    continue;
                }
                let trail = &self.inverse.trails[one.trail];
                self.conflict(&trail.now, Why::NoRoom, Vec::new(), true);
                if let Some(conflict) = self.out.conflicts.last_mut() {
                    conflict.others = trail.paths_but(&trail.now);
                }
            }
            for (above, mode) in ways {
                let folder = self.folder_of(mode, Tree::default());
                edits.entry(above).or_insert(Edit::Put(Some(folder)));
            }
            self.out.moves.extend(one.begins.map(|from| Move { from, to: path.clone() }));
            taken.insert(path.clone());
            edits.insert(path, Edit::Put(Some(entry)));
        }
        self.edit(&edits.into_iter().collect::<Vec<_>>())
    }

    /// Finds contents that would be removed from where they arrived without returning to where they came from: those
    /// paths stay.
    pub(super) fn keep_sources(&mut self, now: RootState, stays: &mut Stays) -> Result<(), S::Error> {
        let inverse = self.inverse;
        let mut decided = Vec::new();
        for Source { path, blob, from } in &inverse.sources {
            let layered = Layered { over: &self.out.new_trees, under: self.source };
            let holds = |tree: &ObjectId, path: &WorkspacePath| -> Result<bool, S::Error> {
                let entry = lookup(&layered, tree, path)?;
                Ok(matches!(entry, Some(Entry::File { blob: found, .. }) if found == *blob))
            };
            let goes = holds(&now.tree, path)? && !holds(&self.out.root.tree, path)?;
            if !goes || stays.ends.contains_key(path) || !inverse.links.contains_key(path) {
                continue;
            }
            let mut is_back = false;
            for other in from {
                is_back |= holds(&self.out.root.tree, other)?;
            }
            match from.first() {
                Some(_) if !is_back && self.decision == Some(Decision::Theirs) => {
                    let conflict = Conflict::open(path.clone(), Why::Half);
                    decided.push(Conflict { others: from.clone(), decided: true, ..conflict });
                }
                Some(other) if !is_back => {
                    stays.ends.insert(path.clone(), (other.clone(), Why::Half));
                }
                _ => {}
            }
        }
        self.out.conflicts.extend(decided);
        Ok(())
    }

    /// Finds pending edits at paths that an open conflict names: they stay, too.
    pub(super) fn keep_named(&self, now: RootState, stays: &mut Stays) -> Result<(), S::Error> {
        let layered = Layered { over: &self.out.new_trees, under: self.source };
        let open = self.out.conflicts.iter().filter(|conflict| !conflict.decided);
        // At its own path, too, another file may have arrived since, with an edit to take back.
        for (conflict, path) in open.flat_map(|conflict| conflict.paths().map(move |path| (conflict, path))) {
            if lookup(&layered, &self.out.root.tree, path)? == lookup(self.source, &now.tree, path)? {
                continue;
            }
            // Where lines came from says nothing of what stands there.
            let is_of_lines = conflict.why == Why::Lines;
            if self.inverse.links.contains_key(path) {
                let why = if is_of_lines { Why::Tied } else { conflict.why };
                stays.ends.entry(path.clone()).or_insert_with(|| (conflict.path.clone(), why));
            }
            let trails = self.inverse.trails.iter().enumerate().filter(|(_, trail)| trail.paths().contains(path));
            for (number, _) in trails {
                let tied = || (Why::Tied, Some(conflict.path.clone()));
                let no_room = || (Why::NoRoom, None);
                stays.trails.entry(number).or_insert_with(|| if is_of_lines { tied() } else { no_room() });
            }
        }
        Ok(())
    }
}

/// The content of an entry, with the path where it is or was.
pub(super) fn home((path, entry): &Placed) -> Option<(ObjectId, WorkspacePath)> {
    match entry {
        Entry::File { blob, .. } => Some((*blob, path.clone())),
        _ => None,
    }
}

/// Whether the result for a moved file combines now and before: its content is not one of the known versions, or it
/// moves and takes later edits along.
fn is_put_together(trail: &Trail, here: Option<&Placed>, (path, entry): &Placed) -> bool {
    let Some((begins, here)) = here else { return false };
    let is_known = entry == here || trail.places().any(|(_, known)| known == entry);
    let left = trail.steps.first().and_then(|step| step.from.as_ref());
    let was_edited = left.is_some_and(|(_, left)| left != here);
    !is_known || (begins != path && was_edited)
}
