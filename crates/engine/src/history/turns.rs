//! The timeline as a person reads it: turn by turn, with what each step changed and whose the rest is.

use std::collections::{HashMap, HashSet};

use piton_model::diff::Counts;
use piton_model::ownership::Owner;
use piton_model::session::Gap;
use piton_model::{Cause, CheckpointId, OperationVerb, SessionId, Timestamp, TurnContext, WorkspacePath};
use piton_store::{ChangeRow, CheckpointRow, OperationRow, StepRow, StoreError, TurnRow};

use crate::history::operations::operation_views;
use crate::history::since::is_of;
use crate::history::together::{Together, file};
use crate::view::{Cursor, GapView, LogEntry, OperationView, StepView, Timeline, TurnView, Undone, Unknown};
use crate::workspace::History;

/// What to show of the timeline.
#[derive(Clone, Debug, Default)]
pub struct TimelineOptions {
    /// At most this many entries.
    pub limit: Option<u64>,
    /// Only what is not newer than this cursor, such as [`Timeline::next`] of the previous page.
    pub before: Option<Cursor>,
    /// Only this session.
    pub session: Option<SessionId>,
    /// Only what changed one of these paths, or something beneath.
    pub paths: Vec<WorkspacePath>,
    /// Only what is not older than this time.
    pub since: Option<Timestamp>,
    /// Include future turns: those that a conversation rewind went back past.
    pub future: bool,
}

impl History {
    /// The timeline, newest first.
    ///
    /// # Errors
    /// Where the store refuses.
    pub fn timeline(&self, options: &TimelineOptions) -> Result<Timeline, StoreError> {
        let now = self.cursor_now()?;
        // One transaction on the database for all the queries.
        self.store.read_steadily(|| self.page(options, &now))
    }

    fn page(&self, options: &TimelineOptions, now: &Cursor) -> Result<Timeline, StoreError> {
        let mut found = self.all_entries()?;
        let touching = if options.paths.is_empty() { None } else { Some(self.touching(&options.paths)?) };
        found.retain(|entry| is_wanted(entry, options, touching.as_ref()));
        let future = self.future_turns()?;
        let is_future = |entry: &Entry| entry.turn().is_some_and(|turn| future.contains_key(&turn));
        let future_count = found.iter().filter(|entry| is_future(entry)).count() as u64;
        found.retain(|entry| options.future || !is_future(entry));
        found.sort_by_key(|entry| std::cmp::Reverse(entry.seq));
        let total = found.len() as u64;
        let begin_again = options.before.as_ref().is_some_and(|before| !is_of(before, now));
        if let Some(before) = options.before.as_ref().filter(|_| !begin_again) {
            found.retain(|entry| entry.seq <= before.seq);
        }
        let from_here = found.len();
        found.truncate(options.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX)));
        let older = (from_here - found.len()) as u64;
        let last = found.last().filter(|_| older > 0);
        let next = last.map(|entry| Cursor { seq: entry.seq.saturating_sub(1), ..now.clone() });
        let shown: HashSet<SessionId> = found.iter().filter_map(|entry| entry.session.clone()).collect();
        let mut entries = self.entries(found)?;
        let mut accepted = self.accepted_turns()?;
        for entry in &mut entries {
            let LogEntry::Turn(turn) = entry else { continue };
            turn.accepted = accepted.remove(&(turn.session.clone(), turn.number));
            turn.passed_by = future.get(&(turn.session.clone(), turn.number)).cloned();
            turn.future = turn.passed_by.is_some();
        }
        let turns = entries.iter_mut().filter_map(|entry| match entry {
            LogEntry::Turn(turn) => Some(&mut **turn),
            _ => None,
        });
        self.mark_undone(turns.collect())?;
        let sessions = if shown.is_empty() { Vec::new() } else { self.session_views(|id| shown.contains(id))? };
        Ok(Timeline { entries, total, older, next, begin_again, future: future_count, sessions })
    }

    /// Says of each turn how much of it was taken back.
    pub(crate) fn mark_undone(&self, turns: Vec<&mut TurnView>) -> Result<(), StoreError> {
        if turns.is_empty() || self.store.operations()?.is_empty() {
            return Ok(());
        }
        let mut from = u64::MAX;
        for turn in &turns {
            let row = self.store.turn(&turn.session, turn.number)?;
            let steps = self.store.steps(&turn.session, Some(turn.number))?;
            from = row.iter().map(|row| row.seq).chain(steps.iter().map(|step| step.seq)).fold(from, u64::min);
        }
        let changes = self.all_changes(from)?;
        let refs: Vec<_> = changes.iter().filter(|change| change.owner.turn().is_some()).collect();
        let Some(effects) = self.effects(&refs)? else { return Ok(()) };
        let mut counts: HashMap<TurnKey, (u64, u64)> = HashMap::new();
        for (number, change) in refs.iter().enumerate() {
            let Some((session, turn)) = change.owner.turn() else { continue };
            let (all, undone) = counts.entry((session.clone(), turn)).or_default();
            *all += 1;
            *undone += u64::from(!effects.is_in_effect(number));
        }
        for turn in turns {
            turn.undone = match counts.get(&(turn.session.clone(), turn.number)) {
                None | Some((_, 0)) => None,
                Some((all, undone)) if all == undone => Some(Undone::Whole),
                Some(_) => Some(Undone::Partly),
            };
        }
        Ok(())
    }

    /// The entries to show, without their contents.
    fn all_entries(&self) -> Result<Vec<Entry>, StoreError> {
        let mut entries: Vec<Entry> = Vec::new();
        for row in self.store.checkpoints_apart()? {
            let is_first = row.checkpoint.cause == Cause::SessionStart && row.checkpoint.parent.is_none();
            let by_itself = row.checkpoint.cause == Cause::Manual || is_first;
            // Whoever's it was may have been a tool's, and then nothing says that it was the user's.
            if !by_itself && is_unlisted(&row) && self.may_be_a_tools(&row)? {
                continue;
            }
            entries.push(Entry {
                seq: row.seq,
                at: row.checkpoint.created_at,
                session: row.checkpoint.place.as_ref().map(|place| place.session.clone()),
                what: if by_itself { Happening::Checkpoint(Box::new(row)) } else { Happening::Yours(Box::new(row)) },
            });
        }
        for (seq, place, at) in self.store.turn_places()? {
            entries.push(Entry { seq, at, session: Some(place.session), what: Happening::Turn(place.turn) });
        }
        for (seq, gap) in self.store.gaps(None)? {
            if gap.place.turn == 0 {
                let session = Some(gap.place.session.clone());
                entries.push(Entry { seq, at: gap.at, session, what: Happening::Gap(gap) });
            }
        }
        let operations = self.store.operations()?;
        // Laying a checkpoint out elsewhere is nothing that happened here.
        let happened = |row: &OperationRow| row.verb != OperationVerb::Checkout;
        let views = operation_views(&operations);
        for (row, view) in operations.iter().zip(views).filter(|(row, _)| happened(row)) {
            entries.push(Entry {
                seq: row.seq,
                at: row.began_at,
                session: None,
                what: Happening::Operation(Box::new(view)),
            });
        }
        Ok(entries)
    }

    /// Which entries changed one of some paths, or something beneath.
    fn touching(&self, paths: &[WorkspacePath]) -> Result<Touching, StoreError> {
        let changes = self.store.changes_at(|path| paths.iter().any(|wanted| path.is_within(wanted)))?;
        let places = self.store.checkpoint_places()?;
        let shown: HashMap<u64, TurnKey> = places
            .into_iter()
            .filter_map(|(seq, cause, place)| Some((seq, turn_shown(cause, Some(&place))?)))
            .collect();
        let mut turns = Turns::default();
        changes.iter().for_each(|change| turns.add_change(change, shown.get(&change.seq)));
        let with_files = [turns.owned, turns.yours, turns.unsure].into_iter().flatten();
        Ok(Touching {
            turns: with_files.filter(|(_, together)| !together.files().is_empty()).map(|(turn, _)| turn).collect(),
            yours: changes.iter().filter(|change| change.owner == Owner::You).map(|change| change.seq).collect(),
            checkpoints: changes.iter().map(|change| change.seq).collect(),
        })
    }

    /// The contents of these entries; reads only what they need.
    fn entries(&self, found: Vec<Entry>) -> Result<Vec<LogEntry>, StoreError> {
        let mut turns = Turns::default();
        let mut rows: HashMap<TurnKey, (TurnRow, Vec<StepRow>, Option<Unknown>)> = HashMap::new();
        let mut shown_with: HashMap<u64, TurnKey> = HashMap::new();
        let mut from = u64::MAX;
        let lost = self.turns_across_lost()?;
        let unseen = self.turns_unseen()?;
        for entry in &found {
            let (Happening::Turn(number), Some(session)) = (&entry.what, &entry.session) else { continue };
            let Some(turn) = self.store.turn(session, *number)? else { continue };
            let steps = self.store.steps(session, Some(*number))?;
            // Nothing that a turn changed was found before the turn's first record.
            from = steps.iter().map(|step| step.seq).chain([turn.seq, from]).min().unwrap_or(0);
            let mut checkpoints = Vec::new();
            for (row, is_listed) in self.store.checkpoints_of_turn(session, *number)? {
                from = from.min(row.seq);
                let is_unlisted = !is_listed && is_unlisted(&row);
                let here = turn_shown(row.checkpoint.cause, row.checkpoint.place.as_ref());
                if is_unlisted {
                    turns.add_unlisted(&row, here.as_ref(), self.may_be_a_tools(&row)?);
                }
                turns.add_checkpoint(&row);
                shown_with.extend(here.map(|turn| (row.seq, turn)));
                checkpoints.push(row);
            }
            let is_lost = lost.contains(&(session.clone(), *number));
            let unknown = self.begins_amid(&turn, &steps, &checkpoints)?.or(is_lost.then_some(Unknown::Damaged));
            rows.insert((session.clone(), *number), (turn, steps, unknown));
        }
        let mut gaps: HashMap<TurnKey, Vec<GapView>> = HashMap::new();
        if !rows.is_empty() {
            for change in self.store.changes_since(from)? {
                turns.add_change(&change, shown_with.get(&change.seq));
            }
            for (_, gap) in self.store.gaps(None)? {
                gaps.entry((gap.place.session.clone(), gap.place.turn)).or_default().push((&gap).into());
            }
        }
        let mut entries = Vec::new();
        for entry in found {
            match entry.what {
                Happening::Turn(number) => {
                    let Some(key) = entry.session.map(|session| (session, number)) else { continue };
                    let Some((turn, steps, unknown)) = rows.get(&key) else { continue };
                    let gaps = gaps.remove(&key).unwrap_or_default();
                    let of_gap = || gaps.first().map(|gap| Unknown::Gap { reason: gap.reason.clone() });
                    let unknown = unknown.clone().or_else(of_gap);
                    let unknown = unknown.or(unseen.contains(&key).then_some(Unknown::NotCaptured));
                    entries.push(LogEntry::Turn(Box::new(TurnView { unknown, ..turns.view(turn, steps, gaps) })));
                }
                Happening::Checkpoint(row) => {
                    let files = self.store.changes_of(row.seq)?.iter().map(file).collect();
                    entries.push(LogEntry::Checkpoint { checkpoint: Box::new((&*row).into()), files });
                }
                Happening::Yours(row) => {
                    let mut changes = self.store.changes_of(row.seq)?;
                    changes.retain(|change| change.owner == Owner::You);
                    let files = changes.iter().map(file).collect();
                    entries.push(LogEntry::Yours { checkpoint: Box::new((&*row).into()), files });
                }
                Happening::Operation(view) => entries.push(LogEntry::Operation(*view)),
                Happening::Gap(gap) => {
                    entries.push(LogEntry::Gap { session: gap.place.session.clone(), gap: (&gap).into() });
                }
            }
        }
        Ok(entries)
    }

    /// These turns with what was done in them, in the given order, without those that piton never heard of.
    pub(crate) fn turn_views(&self, turns: impl IntoIterator<Item = TurnKey>) -> Result<Vec<TurnView>, StoreError> {
        let entry = |(session, number)| Entry {
            seq: 0,
            at: Timestamp(0),
            session: Some(session),
            what: Happening::Turn(number),
        };
        let entries = self.entries(turns.into_iter().map(entry).collect())?;
        Ok(entries
            .into_iter()
            .filter_map(|entry| match entry {
                LogEntry::Turn(turn) => Some(*turn),
                _ => None,
            })
            .collect())
    }

    /// Whether a tool was at work at some time between a checkpoint and the one before it.
    pub(crate) fn may_be_a_tools(&self, row: &CheckpointRow) -> Result<bool, StoreError> {
        let parent = match &row.checkpoint.parent {
            Some(id) => self.store.checkpoint(id)?.map_or(0, |parent| parent.seq),
            None => 0,
        };
        self.store.has_window_between(parent, row.seq)
    }
}

/// A turn of a session.
pub(crate) type TurnKey = (SessionId, u32);

/// An entry of the timeline without its contents.
struct Entry {
    seq: u64,
    at: Timestamp,
    session: Option<SessionId>,
    what: Happening,
}

enum Happening {
    Turn(u32),
    Checkpoint(Box<CheckpointRow>),
    Yours(Box<CheckpointRow>),
    Operation(Box<OperationView>),
    Gap(Gap),
}

impl Entry {
    /// The turn, if it is one.
    fn turn(&self) -> Option<TurnKey> {
        match (&self.what, &self.session) {
            (Happening::Turn(number), Some(session)) => Some((session.clone(), *number)),
            _ => None,
        }
    }
}

/// What changed the requested paths.
struct Touching {
    turns: HashSet<TurnKey>,
    /// The checkpoints that found the user's changes of them.
    yours: HashSet<u64>,
    checkpoints: HashSet<u64>,
}

/// Whether more changed than is listed. A first checkpoint lists nothing.
pub(crate) fn is_unlisted(row: &CheckpointRow) -> bool {
    let checkpoint = &row.checkpoint;
    checkpoint.owned.iter().all(|owned| owned.paths.is_empty())
        && !checkpoint.changes.is_empty()
        && checkpoint.parent.is_some()
        && !matches!(checkpoint.cause, Cause::Operation | Cause::Manual)
}

fn is_wanted(entry: &Entry, options: &TimelineOptions, touching: Option<&Touching>) -> bool {
    let by_path = touching.is_none_or(|touching| match (&entry.what, &entry.session) {
        (Happening::Turn(number), Some(session)) => touching.turns.contains(&(session.clone(), *number)),
        (Happening::Checkpoint(_), _) => touching.checkpoints.contains(&entry.seq),
        (Happening::Yours(_), _) => touching.yours.contains(&entry.seq),
        (Happening::Turn(_) | Happening::Operation(_) | Happening::Gap(_), _) => false,
    });
    by_path
        && options.since.is_none_or(|since| entry.at >= since)
        && options.session.as_ref().is_none_or(|wanted| entry.session.as_ref() == Some(wanted))
}

/// The turn that a checkpoint's finds are shown with. What is found when a session goes on was done before its next turn.
fn turn_shown(cause: Cause, place: Option<&TurnContext>) -> Option<TurnKey> {
    let place = place?;
    match cause {
        Cause::SessionStart => Some((place.session.clone(), place.turn + 1)),
        Cause::Manual | Cause::BeforeOperation | Cause::Operation => None,
        Cause::Prompt
        | Cause::BeforeTool
        | Cause::AfterTool
        | Cause::AfterTools
        | Cause::TurnEnd
        | Cause::Compaction => Some((place.session.clone(), place.turn)),
    }
}

/// What checkpoints tell about turns.
#[derive(Default)]
struct Turns {
    before: HashMap<(SessionId, u32, Option<u32>), CheckpointId>,
    owned: HashMap<(SessionId, u32), Together>,
    by_step: HashMap<(SessionId, u32, u32), Together>,
    yours: HashMap<(SessionId, u32), Together>,
    unsure: HashMap<(SessionId, u32), Together>,
    /// How much a step changed, if it was too much to list.
    unlisted: HashMap<(SessionId, u32, u32), Counts>,
    /// How much the user or an unknown author changed, if it was too much to list.
    yours_unlisted: HashMap<TurnKey, Counts>,
    /// The turns in which a conversation was compacted.
    compacted: HashSet<TurnKey>,
    /// Name and annotation of the checkpoint just before a turn.
    notes: HashMap<TurnKey, (Option<String>, Option<String>)>,
    unsure_unlisted: HashMap<TurnKey, Counts>,
}

impl Turns {
    fn add_checkpoint(&mut self, row: &CheckpointRow) {
        if let Some(place) = &row.checkpoint.place {
            let key = (place.session.clone(), place.turn);
            let note = row.annotation.clone().filter(|note| !note.is_empty());
            match row.checkpoint.cause {
                Cause::Compaction => drop(self.compacted.insert(key)),
                Cause::Prompt if note.is_some() || !row.names.is_empty() => {
                    self.notes.insert(key, (row.names.first().cloned(), note));
                }
                _ => {}
            }
        }
        if let (Some(place), Cause::Prompt | Cause::BeforeTool) = (&row.checkpoint.place, row.checkpoint.cause) {
            let key = (place.session.clone(), place.turn, place.step);
            self.before.entry(key).or_insert_with(|| row.checkpoint.id.clone());
        }
    }

    fn add_unlisted(&mut self, row: &CheckpointRow, here: Option<&TurnKey>, may_be_a_tools: bool) {
        let counts = match (row.checkpoint.cause, &row.checkpoint.place, here) {
            (Cause::AfterTool, Some(place), _) => {
                let key = (place.session.clone(), place.turn, place.step.unwrap_or(0));
                self.unlisted.entry(key).or_default()
            }
            (_, _, Some(turn)) if may_be_a_tools => self.unsure_unlisted.entry(turn.clone()).or_default(),
            (_, _, Some(turn)) => self.yours_unlisted.entry(turn.clone()).or_default(),
            (_, _, None) => return,
        };
        *counts += row.checkpoint.changes;
    }

    fn add_change(&mut self, change: &ChangeRow, here: Option<&TurnKey>) {
        if let Some((session, turn)) = change.owner.turn() {
            self.owned.entry((session.clone(), turn)).or_default().add(change);
        }
        if let Owner::Step { step, .. } = &change.owner {
            self.by_step.entry((step.session.clone(), step.turn, step.step)).or_default().add(change);
        }
        let Some(here) = here else { return };
        match &change.owner {
            Owner::You => self.yours.entry(here.clone()).or_default().add(change),
            Owner::Unsure { .. } => self.unsure.entry(here.clone()).or_default().add(change),
            _ => {}
        }
    }

    fn view(&self, row: &TurnRow, steps: &[StepRow], gaps: Vec<GapView>) -> TurnView {
        let turn = &row.turn;
        let key = (turn.session.clone(), turn.number);
        let files = |map: &HashMap<(SessionId, u32), Together>| map.get(&key).map(Together::files).unwrap_or_default();
        let before = |step| self.before.get(&(turn.session.clone(), turn.number, step));
        let unlisted =
            |step| self.unlisted.get(&(turn.session.clone(), turn.number, step)).copied().unwrap_or_default();
        let mine = || steps.iter().filter(|step| step.step.at.turn == turn.number);
        let all_unlisted = mine().fold(Counts::default(), |all, row| all + unlisted(row.step.at.step));
        let steps = mine().map(|row| {
            let at = &row.step.at;
            let mine = self.by_step.get(&(at.session.clone(), at.turn, at.step));
            StepView {
                number: at.step,
                target: format!("t{}.{}", at.turn, at.step),
                call: row.step.call.clone(),
                tool: row.step.tool.clone(),
                summary: row.step.summary.clone(),
                command: row.step.command.clone(),
                background: row.step.background,
                subagent: row.step.subagent.clone(),
                ending: row.ending,
                at: Timestamp(row.step.opened.div_euclid(1_000_000)),
                checkpoint: before(Some(at.step)).cloned(),
                changes: mine.map(Together::counts).unwrap_or_default() + unlisted(at.step),
                files: mine.map(Together::files).unwrap_or_default(),
            }
        });
        TurnView {
            session: turn.session.clone(),
            number: turn.number,
            target: format!("t{}", turn.number),
            prompt: turn.prompt.clone(),
            at: turn.at,
            ended_at: row.ended_at,
            ending: row.ending,
            message: row.message.clone(),
            checkpoint: before(None).cloned(),
            changes: self.owned.get(&key).map(Together::counts).unwrap_or_default() + all_unlisted,
            files: files(&self.owned),
            steps: steps.collect(),
            yours: files(&self.yours),
            yours_unlisted: self.yours_unlisted.get(&key).copied().unwrap_or_default(),
            unsure: files(&self.unsure),
            unsure_unlisted: self.unsure_unlisted.get(&key).copied().unwrap_or_default(),
            gaps,
            unknown: None,
            future: false,
            passed_by: None,
            accepted: None,
            undone: None,
            compacted: self.compacted.contains(&key),
            name: self.notes.get(&key).and_then(|(name, _)| name.clone()),
            annotation: self.notes.get(&key).and_then(|(_, note)| note.clone()),
        }
    }
}
