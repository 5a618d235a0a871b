//! From what a person asks to take back to the changes that are meant: which ones, whose, and whether they are in effect.

mod about;
mod candidates;
mod choice;
mod last;
mod spans;

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use piton_host::is_folder;
use piton_model::command::{CommandClass, SideEffect};
use piton_model::diff;
use piton_model::ownership::{Candidate, Owner};
use piton_model::plan::Undone;
use piton_model::{Entry, SessionId, SkipReason, StepRef, Target, Timestamp, WorkspacePath};
use piton_store::{StepRow, StoreError};

use crate::history::changes::{OwnedChange, last_turn};
use crate::history::elsewhere::Elsewhere;
use crate::history::lineage::Lineage;
use crate::history::target::TargetError;
use crate::operation::accept;
use crate::operation::draft::FolderNow;
use crate::operation::error::OperationError;
use crate::operation::outside::OutsideChanges;
use crate::view::{AcceptedPart, Along, ChangedFile, CommandView, Unknown, UnknownTurn};
use crate::workspace::History;

pub use self::choice::{ChangedThere, Choice, ChosenError, Since, Which, Whose};

/// What was chosen.
pub(crate) struct Chosen {
    /// The changes, newest first.
    pub changes: Vec<OwnedChange>,
    /// The first of all that may be meant, also of those that are left: when it was found.
    pub begins: Option<u64>,
    /// Of those, the ones that come along as the other half of a move.
    pub along: Vec<Along>,
    /// Changes that may be meant and may be somebody else's.
    pub unsure: Vec<ChangedFile>,
    /// Of the chosen ones, deletions that may be somebody else's.
    pub unsure_back: Vec<ChangedFile>,
    /// Those that cannot be taken back, and why.
    pub stuck: Vec<(WorkspacePath, SkipReason)>,
    /// Commands that ran in what is taken back.
    pub commands: Vec<CommandView>,
    /// What was done to files elsewhere.
    pub outside: OutsideChanges,
    /// What it is, in a few words.
    pub about: String,
    /// Other workspaces that the same turns changed.
    pub elsewhere: Vec<PathBuf>,
    /// What went out of sight, or went without ever having been in sight.
    pub left_out: Vec<Undone>,
    /// Turns of it of which not all is known that they changed.
    pub unknown: Vec<UnknownTurn>,
    /// Files that are left because the user accepted their changes; told only where everything was asked for.
    pub accepted: BTreeSet<WorkspacePath>,
}

impl History {
    /// The changes that a choice means, as far as they are in effect.
    /// Files outside the workspace make a turn the last one that changed something only where they are asked for.
    pub(crate) fn choose(
        &self,
        choice: &Choice,
        with_outside: bool,
        seen: &FolderNow<'_>,
    ) -> Result<Chosen, OperationError> {
        let whose = choice.whose.unwrap_or(Whose::Agent);
        let since_prompt = self.since_last_prompt(choice)?;
        let choice = since_prompt.as_ref().unwrap_or(choice);
        let session = match (whose, &choice.session, &choice.what) {
            (Whose::You, _, Some(Which::Numbers(numbers))) => {
                return Err(ChosenError::YoursHaveNoNumbers(numbers.clone()).into());
            }
            // The user's own changes need no session, but for turns of one.
            (Whose::You, None, None | Some(Which::All | Which::Last(_))) => None,
            (_, session, what) => {
                let typed = match what {
                    Some(Which::Places(places)) => places.first().map(|(turn, _)| format!("t{turn}")),
                    _ => None,
                };
                let typed = typed.as_deref().unwrap_or("undo");
                let last = if choice.is_last_turn() { self.session_of_last_turn(Some(seen))? } else { None };
                let meant = last.map_or_else(|| self.session_meant(session.as_deref(), typed), Ok)?;
                Some(self.lineage(&meant.session.id)?)
            }
        };
        // What the user did has no step: when it was found says which turn it fell into.
        let spans = match (whose, &choice.what, &session) {
            (Whose::You, Some(Which::Places(places)), Some(session)) => Some(self.spans(session, places)?),
            _ => None,
        };
        let is_filtered = !choice.paths.is_empty()
            || choice.since.is_some()
            || choice.between.is_some()
            || choice.whose == Some(Whose::You);
        let mut rows = self.candidates(whose, session.as_ref().filter(|_| spans.is_none()), seen)?;
        self.settle_halves(rows.iter_mut().map(|row| &mut row.change), seen)?;
        if let (Some(Which::Numbers(numbers)), Some(session)) = (&choice.what, &session) {
            let last = rows.iter().filter_map(|row| row.number).max().unwrap_or(0);
            if let Some(number) = numbers.iter().find(|number| **number > last) {
                let session = session.session().clone();
                return Err(ChosenError::NoNumber { number: *number, session, last }.into());
            }
        }
        let range = match &choice.between {
            Some((from, to)) => Some((self.seq_of(from)?, self.seq_of(to)?)),
            None => None,
        };
        // Whatever is left out here may be one half of a move whose other half is meant.
        let all: Vec<OwnedChange> = match (is_filtered, &choice.what) {
            (true, _) | (_, Some(Which::Numbers(_) | Which::Last(_))) => {
                rows.iter().map(|row| row.change.clone()).collect()
            }
            _ => Vec::new(),
        };
        let begun: Vec<(Option<u32>, u64)> = match &session {
            Some(session) => rows.iter().map(|row| (last_turn(&row.change.owner, session), row.change.seq())).collect(),
            None => Vec::new(),
        };
        rows.retain(|row| {
            let at = row.change.found_at.as_ref().map(|at| at.checkpoint.created_at);
            let seq = row.change.seq();
            row.change.path.is_in_scope(&choice.paths)
                && choice.since.as_ref().is_none_or(|since| at.is_none_or(|at| at >= since.at))
                && range.is_none_or(|(from, to)| seq > from.min(to) && seq <= from.max(to))
                && spans.as_ref().is_none_or(|spans| spans.iter().any(|span| span.holds(seq)))
        });
        let mut in_effect = self.in_effect_here(&rows.iter().map(|row| &row.change).collect::<Vec<_>>(), seen)?;
        // What the user accepted is taken back only where it is named.
        let mut accepted_files = BTreeSet::new();
        if matches!(choice.what, None | Some(Which::All)) && choice.paths.is_empty() && whose == Whose::Agent {
            let accepted = self.store.accepted()?;
            for (row, effective) in rows.iter().zip(&mut in_effect).filter(|(_, effective)| **effective) {
                if !accepted.is_empty() && accept::key(&row.change).is_some_and(|key| accepted.contains(&key)) {
                    *effective = false;
                    accepted_files.insert(row.change.path.clone());
                }
            }
        }
        let turns_of =
            |session: &Lineage| rows.iter().filter_map(|row| last_turn(&row.change.owner, session)).collect();
        let listed: HashSet<u32> = session.as_ref().map(turns_of).unwrap_or_default();
        let mut left_out = match (&session, whose) {
            (Some(session), Whose::Agent) if choice.since.is_none() && range.is_none() => {
                self.left_out_by(session, seen)?
            }
            _ => Vec::new(),
        };
        left_out.retain(|one| one.what.path.is_in_scope(&choice.paths));
        left_out.sort_by_key(|one| (one.step.turn, one.step.step));
        let elsewhere = match (&session, whose) {
            (Some(session), Whose::Agent) if !is_filtered => self.turns_elsewhere(session),
            _ => Elsewhere::default(),
        };
        let (unread, elsewhere) = (elsewhere.unread, elsewhere.turns);
        let what = match (&choice.what, &session) {
            (Some(what), _) => what.clone(),
            (None, Some(session)) if !is_filtered => {
                // Turns of which nothing can be taken back would stand before all others for ever.
                let (mut last, mut last_stuck) = (None, None);
                for (row, _) in rows.iter().zip(&in_effect).filter(|(_, effective)| **effective) {
                    let turn = last_turn(&row.change.owner, session);
                    match stuck(&row.change, seen)? {
                        None => last = last.max(turn),
                        Some(_) => last_stuck = last_stuck.max(turn),
                    }
                }
                for one in &left_out {
                    let last = if one.what.known.is_some() { &mut last } else { &mut last_stuck };
                    *last = (*last).max(Some(one.step.turn));
                }
                let outside = self.last_turn_outside(session, last)?;
                let last = if with_outside { last.max(outside) } else { last };
                if let Some((store, reason)) = unread.into_iter().next() {
                    let session = self.unless_meant(session);
                    return Err(ChosenError::ElsewhereUnread { store, reason, session, here: last }.into());
                }
                let later = elsewhere.iter().filter_map(|(_, turns)| turns.last()).max().copied();
                if let Some(turn) = later.filter(|turn| last.is_none_or(|last| *turn > last)) {
                    let changed = elsewhere.into_iter().filter(|(_, turns)| turns.contains(&turn));
                    let place = |path: PathBuf| ChangedThere { is_there: is_folder(&path), path };
                    let places = changed.map(|(path, _)| place(path)).collect();
                    let session = self.unless_meant(session);
                    return Err(ChosenError::Elsewhere { turn, session, places, here: last }.into());
                }
                match last.or(last_stuck) {
                    Some(turn) => Which::Places(vec![(turn, None)]),
                    None => {
                        let about = "the session".to_owned();
                        if outside.is_some() {
                            let (within, undone) = (String::new(), !rows.is_empty());
                            return Err(ChosenError::Nothing { about, within, undone, outside: true }.into());
                        }
                        if !accepted_files.is_empty() {
                            return Err(ChosenError::Accepted { about }.into());
                        }
                        let what = Which::All;
                        return Err(self.nothing(about, !rows.is_empty(), Some(session), &what, &listed)?.into());
                    }
                }
            }
            (None, _) => Which::All,
        };
        let about = self.about(&what, choice, session.as_ref())?;
        let unknown = match &session {
            Some(session) if whose == Whose::Agent && choice.since.is_none() && range.is_none() => {
                self.unknown_in(session, &what, choice.what.is_none() && !is_filtered, &listed)?
            }
            _ => Vec::new(),
        };
        let mut chosen = Vec::new();
        let mut doubtful = Vec::new();
        let mut held = Vec::new();
        let mut any = false;
        // Newest first, as they are taken back.
        for (row, effective) in rows.into_iter().zip(in_effect).rev() {
            let sure = match (&what, &session) {
                (Which::Numbers(numbers), _) if !row.number.is_some_and(|n| numbers.contains(&n)) => continue,
                (Which::Places(places), Some(session)) if spans.is_none() => {
                    match meant(&row.change.owner, session, places) {
                        Some(sure) => sure,
                        None => continue,
                    }
                }
                _ => is_sure(&row.change.owner, whose, session.as_ref()),
            };
            any = true;
            if !effective {
                continue;
            }
            if matches!(what, Which::Last(count) if chosen.len() + held.len() >= count) {
                break;
            }
            if sure || choice.unsure {
                match stuck(&row.change, seen)? {
                    Some(reason) => held.push((row.change.path, reason)),
                    None => chosen.push(row.change),
                }
            } else {
                doubtful.push(row.change);
            }
        }
        // What such a file held may stand where a change of the same step put it, and goes from there with that change.
        let mut back = match (&session, whose) {
            (Some(session), Whose::Agent) => self.may_come_back(&mut doubtful, session, seen)?,
            _ => Vec::new(),
        };
        if let Which::Last(_) = what {
            let steps: HashSet<&StepRef> = chosen.iter().filter_map(|change| step_of(&change.owner)).collect();
            let is_of_them = |owner: &Owner| steps_of_owner(owner).any(|step| steps.contains(step));
            doubtful.extend(back.extract_if(.., |change| !is_of_them(&change.owner)));
            doubtful.sort_by_key(|change| std::cmp::Reverse(change.seq()));
        }
        let meant = || chosen.iter().chain(&doubtful).chain(&back);
        // Of the turns that are meant, also where only some of their changes are.
        let turns: HashSet<u32> = match &session {
            Some(session) => meant().filter_map(|change| last_turn(&change.owner, session)).collect(),
            None => HashSet::new(),
        };
        let of_turns = begun.iter().filter(|(turn, _)| turn.is_some_and(|turn| turns.contains(&turn)));
        let begins = meant().map(OwnedChange::seq).chain(of_turns.map(|(_, seq)| *seq)).min();
        let unsure: Vec<ChangedFile> =
            doubtful.iter().map(|change| self.doubtful_file(change)).collect::<Result<_, _>>()?;
        let unsure_back: Vec<ChangedFile> =
            back.iter().map(|change| self.doubtful_file(change)).collect::<Result<_, _>>()?;
        if !back.is_empty() {
            chosen.extend(back);
            chosen.sort_by_key(|change| std::cmp::Reverse(change.seq()));
        }
        let along = self.add_other_halves(&mut chosen, all, seen)?;
        // What they hold is put back: by their records, not by a row of the view that may be damaged.
        let mut checked = None;
        for at in chosen.iter().filter_map(|change| change.found_at.as_ref()) {
            if checked.replace(at.seq) != Some(at.seq) {
                self.store.check_checkpoint(at)?;
            }
        }
        let steps = match &session {
            Some(session) if whose == Whose::Agent => self.steps_of(session, &what, &chosen, is_filtered)?,
            _ => Vec::new(),
        };
        // With only some paths, what lies elsewhere is not meant.
        let outside = if choice.paths.is_empty() { OutsideChanges::of(&steps) } else { OutsideChanges::default() };
        let is_step_meant = |at: &StepRef| match &what {
            Which::All => true,
            Which::Places(places) => {
                places.iter().any(|(turn, step)| at.turn == *turn && step.is_none_or(|step| step == at.step))
            }
            Which::Last(_) | Which::Numbers(_) => false,
        };
        left_out.retain(|one| is_step_meant(&one.step) && !one.made_by.as_ref().is_some_and(is_step_meant));
        let left_out: Vec<Undone> = left_out.into_iter().map(|one| one.what).collect();
        let is_nothing = chosen.is_empty() && held.is_empty() && unsure.is_empty();
        if is_nothing && outside.is_empty() && left_out.is_empty() {
            if !accepted_files.is_empty() {
                return Err(ChosenError::Accepted { about }.into());
            }
            let within = choice.within();
            if whose == Whose::You {
                let when = match (&since_prompt, &what) {
                    (Some(_), Which::Places(places)) => {
                        let turns = places.first().map(|(turn, _)| turn.to_string());
                        format!(" since the prompt of turn {}", turns.unwrap_or_default())
                    }
                    (None, Which::Places(_)) => format!(" during {}", self.subject(&what, session.as_ref())?),
                    _ => String::new(),
                };
                let is_all = since_prompt.is_none();
                return Err(ChosenError::NothingOfYours { when: format!("{when}{within}"), undone: any, is_all }.into());
            }
            let about = match &what {
                Which::All => "the session".to_owned(),
                _ => self.subject(&what, session.as_ref())?,
            };
            return match self.nothing(about, any, session.as_ref(), &what, &listed)? {
                ChosenError::Nothing { about, undone, outside, .. } => {
                    Err(ChosenError::Nothing { about, within, undone, outside }.into())
                }
                error => Err(error.into()),
            };
        }
        let is_meant = |turns: &[u32]| matches!(&what, Which::Places(places) if places.iter().any(|(turn, _)| turns.contains(turn)));
        let elsewhere = elsewhere.into_iter().filter(|(_, turns)| is_meant(turns)).map(|(path, _)| path).collect();
        let mut commands = commands(&steps);
        if what == Which::All {
            // What the user accepted stays, with all that it did.
            let accepted = self.accepted_turns()?;
            let stays = |at: &StepRef| {
                let turn = (at.session.clone(), at.turn);
                accepted.get(&turn) == Some(&AcceptedPart::All)
                    && chosen.iter().all(|one| step_of(&one.owner) != Some(at))
            };
            commands.retain(|command| !stays(&command.step));
        }
        Ok(Chosen {
            changes: chosen,
            begins,
            along,
            unsure,
            unsure_back,
            stuck: held,
            commands,
            about,
            outside,
            elsewhere,
            left_out,
            unknown,
            accepted: if what == Which::All { accepted_files } else { BTreeSet::new() },
        })
    }

    /// A change of which nobody knows whose it is, with the tool that it may be of where that is only one.
    fn doubtful_file(&self, change: &OwnedChange) -> Result<ChangedFile, StoreError> {
        let mut file = change.file();
        let mut steps = steps_of_owner(&change.owner);
        if let (Some(doubt), Some(step), None) = (&mut file.doubt, steps.next(), steps.next()) {
            doubt.tool = self.store.step(step)?.map(|row| row.step.summary).filter(|summary| !summary.is_empty());
        }
        Ok(file)
    }

    /// Takes, out of changes of which nobody knows whose they are, the deletions that may be a conversation's and that can be
    /// taken back without touching anything: nothing stands there now, and the file was moved nowhere.
    pub(crate) fn may_come_back(
        &self,
        changes: &mut Vec<OwnedChange>,
        session: &Lineage,
        seen: &FolderNow<'_>,
    ) -> Result<Vec<OwnedChange>, OperationError> {
        // The workspace's folder is not made anew for what may be somebody else's.
        if seen.root.is_none() {
            return Ok(Vec::new());
        }
        let mut may: HashSet<(u64, WorkspacePath)> = HashSet::new();
        for change in changes.iter().filter(|change| change.kind == diff::ChangeKind::Deleted) {
            let is_in_doubt = matches!(change.owner, Owner::Unsure { .. });
            let is_of_session = steps_of_owner(&change.owner).any(|step| session.holds_step(step));
            if is_in_doubt && is_of_session && diff::lookup(&seen.trees, &seen.now.tree, &change.path)?.is_none() {
                may.insert((change.seq(), change.path.clone()));
            }
        }
        let Some(first) = may.iter().map(|(seq, _)| *seq).min() else { return Ok(Vec::new()) };
        let paths: HashSet<&WorkspacePath> = may.iter().map(|(_, path)| path).collect();
        let moved = self.moved_since(first.saturating_sub(1), |path| paths.contains(path), seen)?.moved;
        let comes_back = |change: &mut OwnedChange| {
            may.contains(&(change.seq(), change.path.clone()))
                && moved.partners(change.seq(), &change.path).next().is_none()
        };
        Ok(changes.extract_if(.., comes_back).collect())
    }

    /// The turns that are taken back as a whole and of which not all is known. Where the last turn is meant, those after the
    /// one that was found too: one of them may be it.
    fn unknown_in(
        &self,
        session: &Lineage,
        what: &Which,
        is_last: bool,
        listed: &HashSet<u32>,
    ) -> Result<Vec<UnknownTurn>, StoreError> {
        let is_meant = |number: u32| match what {
            Which::Places(places) => {
                places.iter().any(|(turn, step)| step.is_none() && (*turn == number || (is_last && number > *turn)))
            }
            Which::All => true,
            Which::Last(_) | Which::Numbers(_) => false,
        };
        // What was not captured in time was found later, and is listed.
        let is_found = |one: &UnknownTurn| matches!(one.why, Unknown::Gap { .. }) && listed.contains(&one.turn);
        let mut unknown = self.unknown_turns(session, true)?;
        unknown.retain(|one| is_meant(one.turn) && !is_found(one));
        Ok(unknown)
    }

    /// Why there is nothing to take back: there is nothing, or nobody knows. `listed` are the turns of which changes are
    /// listed.
    fn nothing(
        &self,
        about: String,
        undone: bool,
        session: Option<&Lineage>,
        what: &Which,
        listed: &HashSet<u32>,
    ) -> Result<ChosenError, TargetError> {
        let is_meant = |number: u32| match what {
            Which::Places(places) => places.iter().any(|(turn, _)| *turn == number),
            Which::All | Which::Last(_) => true,
            Which::Numbers(_) => false,
        };
        // What was taken back of the rest tells nothing of a turn that nobody saw.
        let is_listed = |one: &UnknownTurn| matches!(one.why, Unknown::Gap { .. }) && listed.contains(&one.turn);
        let unknown = match session {
            Some(session) => {
                self.unknown_turns(session, true)?.into_iter().rfind(|one| is_meant(one.turn) && !is_listed(one))
            }
            None => None,
        };
        let (Some(UnknownTurn { turn, why }), Some(session)) = (unknown, session) else {
            return Ok(ChosenError::Nothing { about, within: String::new(), undone, outside: false });
        };
        let about = self.subject(&Which::Places(vec![(turn, None)]), Some(session))?;
        Ok(ChosenError::Unknown { about, turn, session: self.unless_meant(session), why })
    }

    /// The session of a conversation, unless it is the one that is meant where none is said.
    fn unless_meant(&self, session: &Lineage) -> Option<SessionId> {
        let is_meant = self.session_meant(None, "undo").is_ok_and(|row| row.session.id == *session.session());
        (!is_meant).then(|| session.session().clone())
    }

    /// The same where what there is now is known too: it tells of what an operation whose record is lost may have brought back.
    fn in_effect_here(&self, changes: &[&OwnedChange], seen: &FolderNow<'_>) -> Result<Vec<bool>, StoreError> {
        let mut in_effect = self.in_effect(changes)?;
        for lost in self.lost_operations(0)? {
            let changed = lost.changed(seen)?;
            for (change, in_effect) in changes.iter().zip(&mut in_effect).filter(|(_, in_effect)| !**in_effect) {
                *in_effect =
                    change.seq() < lost.seq && changed.contains(&change.path) && self.is_there(change, seen)?;
            }
        }
        Ok(in_effect)
    }

    /// The place of a target in the order; of now, after everything.
    fn seq_of(&self, target: &Target) -> Result<u64, TargetError> {
        if *target == Target::NOW { Ok(u64::MAX) } else { Ok(self.checkpoint_at(target)?.moment()) }
    }

    /// The last turn of a conversation, after a given one, whose changes of files outside the workspace still stand there.
    fn last_turn_outside(&self, session: &Lineage, after: Option<u32>) -> Result<Option<u32>, StoreError> {
        for turn in (after.unwrap_or(0) + 1..=self.last_turn_in(session)?).rev() {
            let steps = self.store.steps(session.session_of(turn), Some(turn))?;
            if OutsideChanges::of(&steps).stand() {
                return Ok(Some(turn));
            }
        }
        Ok(None)
    }

    /// The steps of what is taken back: of whole turns where those are meant, else those whose changes go.
    fn steps_of(
        &self,
        session: &Lineage,
        what: &Which,
        chosen: &[OwnedChange],
        is_filtered: bool,
    ) -> Result<Vec<StepRow>, StoreError> {
        let mut steps: Vec<StepRow> = Vec::new();
        match what {
            Which::Places(places) => {
                for (turn, step) in places {
                    let mut rows = self.store.steps(session.session_of(*turn), Some(*turn))?;
                    rows.retain(|row| step.is_none_or(|step| row.step.at.step == step));
                    steps.extend(rows);
                }
            }
            Which::All if !is_filtered => {
                for turn in 0..=self.last_turn_in(session)? {
                    steps.extend(self.store.steps(session.session_of(turn), Some(turn))?);
                }
            }
            _ => {
                let mut refs: Vec<&StepRef> = chosen.iter().filter_map(|change| step_of(&change.owner)).collect();
                refs.sort();
                refs.dedup();
                for at in refs {
                    steps.extend(self.store.step(at)?);
                }
            }
        }
        steps.sort_by_key(|row| row.seq);
        Ok(steps)
    }
}

/// The commands among some steps that did something beside files, as far as their texts tell.
pub(crate) fn commands(steps: &[StepRow]) -> Vec<CommandView> {
    let view = |row: &StepRow| {
        let command = row.step.command.clone()?;
        let mut effects: Vec<SideEffect> = CommandClass::of(&command).effects().collect();
        if row.step.background && !effects.contains(&SideEffect::Processes) {
            effects.push(SideEffect::Processes);
        }
        let at = Timestamp(row.step.opened.div_euclid(1_000_000));
        (!effects.is_empty()).then(|| CommandView { step: row.step.at.clone(), command, at, effects })
    };
    steps.iter().filter_map(view).collect()
}

fn step_of(owner: &Owner) -> Option<&StepRef> {
    match owner {
        Owner::Step { step, .. } => Some(step),
        _ => None,
    }
}

fn steps_of_owner(owner: &Owner) -> impl Iterator<Item = &StepRef> {
    let candidates = match owner {
        Owner::Unsure { candidates } => &candidates[..],
        _ => &[],
    };
    let of_candidates = candidates.iter().filter_map(|one| match one {
        Candidate::Step(step) => Some(step),
        Candidate::You => None,
    });
    step_of(owner).into_iter().chain(of_candidates)
}

/// Whether a change is of one of some places, and surely so; none where it cannot be.
fn meant(owner: &Owner, session: &Lineage, places: &[(u32, Option<u32>)]) -> Option<bool> {
    let is_at = |at: &StepRef| {
        session.holds_step(at)
            && places.iter().any(|(turn, step)| at.turn == *turn && step.is_none_or(|s| s == at.step))
    };
    match owner {
        Owner::Step { step, .. } => is_at(step).then_some(true),
        Owner::Unsure { candidates } => {
            let mut found = candidates.iter().map(|one| matches!(one, Candidate::Step(step) if is_at(step)));
            let all = !candidates.is_empty() && found.clone().all(|is_at| is_at);
            found.any(|is_at| is_at).then_some(all)
        }
        Owner::You | Owner::Operation { .. } => None,
    }
}

/// Whether a change is surely the one's that is meant.
fn is_sure(owner: &Owner, whose: Whose, session: Option<&Lineage>) -> bool {
    match whose {
        Whose::You => *owner == Owner::You,
        Whose::Agent => owner.turn().is_some_and(|(of, turn)| session.is_some_and(|session| session.holds(of, turn))),
    }
}

/// Why a change cannot be taken back: a folder that came, and that holds something now that is not captured.
fn stuck(change: &OwnedChange, seen: &FolderNow<'_>) -> Result<Option<SkipReason>, StoreError> {
    if change.kind != diff::ChangeKind::Created {
        return Ok(None);
    }
    match diff::lookup(&seen.trees, &seen.now.tree, &change.path)? {
        Some(Entry::Folder { tree, holds_skipped: true, .. }) => {
            let held = diff::skipped(&seen.trees, &tree)?;
            // A `.git` is no entry.
            Ok(Some(held.first().map_or(SkipReason::GitFolder, |(_, reason)| *reason)))
        }
        _ => Ok(None),
    }
}
