//! The timeline as a person reads it: turn by turn, with what each step changed and whose the rest is.

use std::collections::{BTreeMap, HashMap, HashSet, hash_map};
use std::sync::Arc;

use piton_model::diff::{ChangeKind, Counts};
use piton_model::ownership::{Evidence, Owner};
use piton_model::session::Gap;
use piton_model::{Cause, CheckpointId, Session, SessionId, StepRef, Timestamp, TurnContext, WorkspacePath};
use piton_store::{ChangeRow, CheckpointRow, SessionRow, StepRow, StoreError, TurnRow};

use crate::history::changes::OwnedChange;
use crate::history::operations::operation_views;
use crate::history::target::TargetError;
use crate::view::{
    ChangedFile, GapView, LogEntry, NumberedChange, OperationView, SessionChanges, SessionView, Sessions, StepView,
    Timeline, TurnView, Unknown,
};
use crate::workspace::History;

/// What of the timeline to show.
#[derive(Clone, Debug, Default)]
pub struct TimelineOptions {
    /// At most so many entries.
    pub limit: Option<u64>,
    /// Only of this session.
    pub session: Option<SessionId>,
    /// Only what changed one of these paths, or something beneath.
    pub paths: Vec<WorkspacePath>,
    /// Only what is not older than this.
    pub since: Option<Timestamp>,
    /// Future turns too: those that a rewind of the conversation went back past.
    pub future: bool,
}

/// Whose changes to list.
#[derive(Clone, Debug, Default)]
pub struct ChangesOptions {
    /// The session: the beginning of its id or of the agent's own, or its name; the one that reported last where not
    /// given.
    pub session: Option<String>,
    /// The user's own changes too, as far as they were found in the session. They have no number.
    pub all: bool,
}

impl History {
    /// The timeline, newest first.
    ///
    /// # Errors
    /// Where the store refuses.
    pub fn timeline(&self, options: &TimelineOptions) -> Result<Timeline, StoreError> {
        let mut found = self.all_entries()?;
        let touching = if options.paths.is_empty() { None } else { Some(self.touching(&options.paths)?) };
        found.retain(|entry| is_wanted(entry, options, touching.as_ref()));
        let future = self.future_turns()?;
        let is_future = |entry: &Entry| entry.turn().is_some_and(|turn| future.contains_key(&turn));
        let future_count = found.iter().filter(|entry| is_future(entry)).count() as u64;
        found.retain(|entry| options.future || !is_future(entry));
        found.sort_by_key(|entry| std::cmp::Reverse(entry.seq));
        let total = found.len() as u64;
        found.truncate(options.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX)));
        let shown: HashSet<SessionId> = found.iter().filter_map(|entry| entry.session.clone()).collect();
        let mut entries = self.entries(found)?;
        for entry in &mut entries {
            let LogEntry::Turn(turn) = entry else { continue };
            turn.passed_by = future.get(&(turn.session.clone(), turn.number)).cloned();
            turn.future = turn.passed_by.is_some();
        }
        let sessions = if shown.is_empty() { Vec::new() } else { self.session_views(|id| shown.contains(id))? };
        Ok(Timeline { entries, total, future: future_count, sessions })
    }

    /// What there is to show, without what is in it.
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
        for (row, view) in operations.iter().zip(operation_views(&operations)) {
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

    /// What is in some entries: only what they need is read.
    fn entries(&self, found: Vec<Entry>) -> Result<Vec<LogEntry>, StoreError> {
        let mut turns = Turns::default();
        let mut rows: HashMap<TurnKey, (TurnRow, Vec<StepRow>, Option<Unknown>)> = HashMap::new();
        let mut shown_with: HashMap<u64, TurnKey> = HashMap::new();
        let mut from = u64::MAX;
        let lost = self.turns_across_lost()?;
        for entry in &found {
            let (Happening::Turn(number), Some(session)) = (&entry.what, &entry.session) else { continue };
            let Some(turn) = self.store.turn(session, *number)? else { continue };
            let steps = self.store.steps(session, Some(*number))?;
            // Nothing that a turn changed was found before anything that is recorded of it.
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

    /// Some turns with what was done in them, in the order given; those that piton never heard of are left out.
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
    fn may_be_a_tools(&self, row: &CheckpointRow) -> Result<bool, StoreError> {
        let parent = match &row.checkpoint.parent {
            Some(id) => self.store.checkpoint(id)?.map_or(0, |parent| parent.seq),
            None => 0,
        };
        self.store.has_window_between(parent, row.seq)
    }

    /// Every session, the one that reported last first.
    ///
    /// # Errors
    /// Where the store refuses.
    pub fn sessions(&self) -> Result<Sessions, StoreError> {
        Ok(Sessions { sessions: self.session_views(|_| true)? })
    }

    /// What a session changed: of the one that is meant, or the one that reported last.
    ///
    /// # Errors
    /// Where there is no such session, or the store refuses.
    pub fn changes(&self, options: &ChangesOptions) -> Result<SessionChanges, TargetError> {
        let id = &self.session_meant(options.session.as_deref(), "changes")?.session.id;
        let lineage = self.lineage(id)?;
        let is_here = |place: &TurnContext| lineage.holds(&place.session, place.turn);
        let rows = self.store.changes_about(lineage.sessions())?;
        let mut found_at: HashMap<u64, Arc<CheckpointRow>> = HashMap::new();
        let mut tools: HashMap<StepRef, String> = HashMap::new();
        for session in lineage.sessions() {
            found_at.extend(self.store.checkpoints_of(session)?.into_iter().map(|row| (row.seq, Arc::new(row))));
            tools.extend(self.store.steps(session, None)?.into_iter().map(|row| (row.step.at, row.step.tool)));
        }
        // Another session's checkpoint may have found it.
        for row in rows.iter().filter(|row| lineage.may_own(&row.owner)) {
            if let hash_map::Entry::Vacant(at) = found_at.entry(row.seq) {
                self.store.checkpoint_numbered(row.seq)?.map(|row| at.insert(Arc::new(row)));
            }
        }
        let mut changes: Vec<NumberedChange> = Vec::new();
        let mut chosen: Vec<OwnedChange> = Vec::new();
        let mut own = Vec::new();
        let mut numbers = 1..;
        for row in &rows {
            let Some(checkpoint) = found_at.get(&row.seq) else { continue };
            let place = checkpoint.checkpoint.place.as_ref();
            let is_yours = row.owner == Owner::You && place.is_some_and(is_here);
            let is_own = lineage.may_own(&row.owner);
            let is_wanted = is_own || (options.all && is_yours);
            if !is_wanted {
                continue;
            }
            let step = match &row.owner {
                Owner::Step { step, .. } => Some(step),
                _ => None,
            };
            let turn = row.owner.turn().map(|(_, turn)| turn);
            own.push(is_own.then_some(row));
            chosen.push(OwnedChange {
                path: row.path.clone(),
                owner: row.owner.clone(),
                kind: row.kind,
                found_at: Some(checkpoint.clone()),
            });
            changes.push(NumberedChange {
                number: if is_own { numbers.next() } else { None },
                change: file(row),
                at: checkpoint.checkpoint.created_at,
                turn: turn.or(place.map(|place| place.turn)).unwrap_or(0),
                step: step.map(|step| step.step),
                tool: step.and_then(|step| tools.get(step)).cloned(),
                checkpoint: Some(checkpoint.checkpoint.id.clone()),
                undone: false,
            });
        }
        let in_effect = self.in_effect(&chosen.iter().collect::<Vec<_>>())?;
        let mut together = Together::default();
        for ((change, own), in_effect) in changes.iter_mut().zip(own).zip(in_effect) {
            change.undone = !in_effect;
            own.filter(|_| in_effect).into_iter().for_each(|row| together.add(row));
        }
        // What nobody has captured yet comes last, with the numbers by which an undo knows it.
        for change in self.uncaptured_now()? {
            let is_own = lineage.may_own(&change.owner);
            let is_yours = options.all && change.owner == Owner::You;
            if !(is_own || is_yours) {
                continue;
            }
            let step = match &change.owner {
                Owner::Step { step, .. } => Some(step),
                _ => None,
            };
            if is_own {
                together.note(&change.path, change.kind, &change.owner);
            }
            changes.push(NumberedChange {
                number: if is_own { numbers.next() } else { None },
                at: self.environment.clock.now(),
                turn: change.owner.turn().map_or(0, |(_, turn)| turn),
                step: step.map(|step| step.step),
                tool: step.and_then(|step| tools.get(step)).cloned(),
                checkpoint: None,
                undone: false,
                change: change.file(),
            });
        }
        let mut unlisted = Counts::default();
        let mut yours_unlisted = Counts::default();
        for row in found_at.values().filter(|row| is_unlisted(row)) {
            match (&row.checkpoint.place, row.checkpoint.cause) {
                (Some(place), _) if !is_here(place) => {}
                (Some(_), Cause::AfterTool) => unlisted += row.checkpoint.changes,
                (Some(_), _) if options.all && !self.may_be_a_tools(row)? => yours_unlisted += row.checkpoint.changes,
                _ => {}
            }
        }
        let summary = together.counts();
        let session = self.session_views(|one| one == id)?.pop();
        let session = session.ok_or_else(|| TargetError::NoSession(id.to_string()))?;
        let unknown = self.unknown_turns(&lineage, false)?;
        Ok(SessionChanges { session, changes, summary, unlisted, yours_unlisted, unknown })
    }

    /// The wanted sessions, the one that reported last first.
    pub(crate) fn session_views(&self, is_wanted: impl Fn(&SessionId) -> bool) -> Result<Vec<SessionView>, StoreError> {
        let turns = self.store.last_turns()?;
        let checkpoints = self.store.checkpoint_counts()?;
        let gaps = self.store.gap_counts()?;
        let changes = self.store.changes_by_session(&is_wanted)?;
        let rows = self.store.sessions()?;
        let titles = Titles::of(&rows, self.store.first_prompts()?);
        let current = self.here()?;
        let view = |row: SessionRow| {
            let live = self.is_live(&row);
            let session = row.session;
            let id = &session.id;
            let of_paths = changes.get(id).into_iter().flat_map(HashMap::values);
            let inherited = session.origin.as_ref().map_or(0, |origin| origin.turn.saturating_sub(1));
            let own = turns.get(id).map_or(0, |number| u32::try_from(*number).unwrap_or(u32::MAX));
            SessionView {
                title: titles.get(id),
                started_at: session.started_at,
                last_at: row.last_at,
                ended_at: row.ended_at,
                live,
                turns: own.max(inherited),
                checkpoints: checkpoints.get(id).copied().unwrap_or(0),
                changes: counts(of_paths.filter_map(|(first, last)| net(*first, *last))),
                gaps: gaps.get(id).copied().unwrap_or(0),
                origin: session.origin.as_ref().map(Into::into),
                rank: session.rank,
                current: current.as_ref() == Some(id),
                id: session.id,
                agent: session.agent,
                agent_id: session.agent_id,
                name: session.name,
                transcript: session.transcript,
            }
        };
        Ok(rows.into_iter().filter(|row| is_wanted(&row.session.id)).map(view).collect())
    }
}

/// What sessions are called where nobody named them.
struct Titles {
    prompts: HashMap<SessionId, String>,
    /// The name and the parent of each.
    known: HashMap<SessionId, (Option<String>, Option<SessionId>)>,
}

impl Titles {
    fn of(rows: &[SessionRow], prompts: HashMap<SessionId, String>) -> Self {
        let known = rows.iter().map(|row| {
            let Session { id, name, origin, .. } = &row.session;
            (id.clone(), (name.clone(), origin.as_ref().map(|origin| origin.parent.clone())))
        });
        Self { prompts, known: known.collect() }
    }

    /// The first line of its first prompt; of a branch what its parent is called, marked as such.
    fn get(&self, id: &SessionId) -> Option<String> {
        // A record that was tampered with may go in a circle.
        const GENERATIONS: usize = 1000;
        let mut at = id;
        for generation in 0..GENERATIONS {
            let (name, parent) = self.known.get(at)?;
            let marked = |text: &str| if generation == 0 { text.to_owned() } else { format!("{text} (branch)") };
            match (name.as_deref().filter(|_| generation > 0), parent) {
                (Some(name), _) => return Some(marked(name)),
                (None, Some(parent)) => at = parent,
                (None, None) => {
                    let prompt = self.prompts.get(at)?;
                    return prompt.lines().find(|line| !line.trim().is_empty()).map(marked);
                }
            }
        }
        None
    }
}

/// A turn of a session.
pub(crate) type TurnKey = (SessionId, u32);

/// An entry of the timeline without what is in it.
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
    /// The turn that it is.
    fn turn(&self) -> Option<TurnKey> {
        match (&self.what, &self.session) {
            (Happening::Turn(number), Some(session)) => Some((session.clone(), *number)),
            _ => None,
        }
    }
}

/// What changed some paths.
struct Touching {
    turns: HashSet<TurnKey>,
    /// The checkpoints that found such changes of the user.
    yours: HashSet<u64>,
    checkpoints: HashSet<u64>,
}

/// Whether more changed than is listed. Of a first checkpoint nothing is.
fn is_unlisted(row: &CheckpointRow) -> bool {
    let checkpoint = &row.checkpoint;
    checkpoint.owned.iter().all(|owned| owned.paths.is_empty())
        && !checkpoint.changes.is_empty()
        && checkpoint.parent.is_some()
        && !matches!(checkpoint.cause, Cause::Operation | Cause::Manual)
}

fn file(row: &ChangeRow) -> ChangedFile {
    ChangedFile { path: (&row.path).into(), kind: row.kind, owner: row.owner.clone() }
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
        Cause::Prompt | Cause::BeforeTool | Cause::AfterTool | Cause::TurnEnd | Cause::Compaction => {
            Some((place.session.clone(), place.turn))
        }
    }
}

/// What two changes of a path come to: the first and the last one.
fn net(first: ChangeKind, last: ChangeKind) -> Option<ChangeKind> {
    match (first, last) {
        // Made and gone again: nothing is left of it.
        (ChangeKind::Created, ChangeKind::Deleted) => None,
        (ChangeKind::Created, _) => Some(ChangeKind::Created),
        (ChangeKind::Deleted, ChangeKind::Created) => Some(ChangeKind::Modified),
        (_, last) => Some(last),
    }
}

fn counts(kinds: impl Iterator<Item = ChangeKind>) -> Counts {
    let mut counts = Counts::default();
    for kind in kinds {
        match kind {
            ChangeKind::Created => counts.created += 1,
            ChangeKind::Modified => counts.modified += 1,
            ChangeKind::Deleted => counts.deleted += 1,
        }
    }
    counts
}

/// Changes of the same paths, taken together.
#[derive(Default)]
struct Together(BTreeMap<WorkspacePath, (ChangeKind, ChangeKind, Owner)>);

impl Together {
    fn add(&mut self, row: &ChangeRow) {
        self.note(&row.path, row.kind, &row.owner);
    }

    fn note(&mut self, path: &WorkspacePath, kind: ChangeKind, owner: &Owner) {
        self.0.entry(path.clone()).and_modify(|(_, last, by)| (*last, *by) = (kind, owner.clone())).or_insert((
            kind,
            kind,
            owner.clone(),
        ));
    }

    fn files(&self) -> Vec<ChangedFile> {
        let file = |(path, (first, last, owner)): (&WorkspacePath, &(ChangeKind, ChangeKind, Owner))| {
            Some(ChangedFile { path: path.into(), kind: net(*first, *last)?, owner: owner.clone() })
        };
        self.0.iter().filter_map(file).collect()
    }

    fn counts(&self) -> Counts {
        counts(self.0.values().filter_map(|(first, last, _)| net(*first, *last)))
    }
}

/// What checkpoints say of turns.
#[derive(Default)]
struct Turns {
    /// The checkpoints just before turns and steps.
    before: HashMap<(SessionId, u32, Option<u32>), CheckpointId>,
    owned: HashMap<(SessionId, u32), Together>,
    by_step: HashMap<(SessionId, u32, u32), Together>,
    yours: HashMap<(SessionId, u32), Together>,
    unsure: HashMap<(SessionId, u32), Together>,
    /// What a step changed where that was too much to list.
    unlisted: HashMap<(SessionId, u32, u32), Counts>,
    /// What the user changed, or nobody knows who, where that was too much to list.
    yours_unlisted: HashMap<TurnKey, Counts>,
    unsure_unlisted: HashMap<TurnKey, Counts>,
}

impl Turns {
    fn add_checkpoint(&mut self, row: &CheckpointRow) {
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
        if let Owner::Step { step, evidence: Evidence::Named | Evidence::Window } = &change.owner {
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
        }
    }
}
