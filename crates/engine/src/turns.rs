//! The timeline as a person reads it: turn by turn, with what each step changed and whose the rest is.

use std::collections::{BTreeMap, HashMap, HashSet};

use piton_model::diff::{ChangeKind, Counts};
use piton_model::ownership::{Candidate, Evidence, Owner};
use piton_model::{Cause, SessionId, StepRef, Timestamp, WorkspacePath};
use piton_store::{ChangeRow, CheckpointRow, SessionRow, StepRow, StoreError, TurnRow};

use crate::target::TargetError;
use crate::view::{
    ChangedFile, GapView, LogEntry, NumberedChange, SessionChanges, SessionView, Sessions, StepView, Timeline, TurnView,
};
use crate::workspace::Workspace;

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

impl Workspace {
    /// The timeline, newest first.
    ///
    /// # Errors
    /// Where the store refuses.
    pub fn timeline(&self, options: &TimelineOptions) -> Result<Timeline, StoreError> {
        let mut entries: Vec<(u64, LogEntry)> = Vec::new();
        let checkpoints = self.store.checkpoints(None)?;
        let changes = self.store.changes_since(0)?;
        let mut by_checkpoint: HashMap<u64, Vec<&ChangeRow>> = HashMap::new();
        for change in &changes {
            by_checkpoint.entry(change.seq).or_default().push(change);
        }
        let mut has_turn: HashSet<(SessionId, u32)> = HashSet::new();
        for session in self.store.sessions()? {
            let numbers = self.store.turns(&session.session.id)?.into_iter().map(|turn| turn.turn.number);
            has_turn.extend(numbers.map(|number| (session.session.id.clone(), number)));
        }
        let mut turns = Turns::default();
        for row in checkpoints.iter().rev() {
            let changed = by_checkpoint.remove(&row.seq).unwrap_or_default();
            turns.add(row, &changed);
            let is_first = row.checkpoint.cause == Cause::SessionStart && row.checkpoint.parent.is_none();
            if row.checkpoint.cause == Cause::Manual || is_first {
                let files = changed.iter().map(|change| file(change)).collect();
                entries.push((row.seq, LogEntry::Checkpoint { checkpoint: Box::new(row.into()), files }));
                continue;
            }
            // What belongs to a turn is shown with it.
            let yours: Vec<_> = changed.iter().filter(|c| c.owner == Owner::You).map(|c| file(c)).collect();
            let with_a_turn = turn_shown(row).is_some_and(|turn| has_turn.contains(&turn));
            if !yours.is_empty() && !with_a_turn {
                entries.push((row.seq, LogEntry::Yours { checkpoint: Box::new(row.into()), files: yours }));
            }
        }
        let sessions = self.store.sessions()?;
        for session in &sessions {
            let id = &session.session.id;
            let steps = self.store.steps(id, None)?;
            let gaps = self.store.gaps(Some(id))?;
            for (seq, gap) in gaps.iter().filter(|(_, gap)| gap.place.turn == 0) {
                entries.push((*seq, LogEntry::Gap { session: id.clone(), gap: gap.into() }));
            }
            for turn in self.store.turns(id)? {
                let gaps = gaps.iter().map(|(_, gap)| gap).filter(|gap| gap.place.turn == turn.turn.number);
                let view = turns.view(&turn, &steps, gaps.map(GapView::from).collect());
                entries.push((turn.seq, LogEntry::Turn(Box::new(view))));
            }
        }
        for operation in self.store.operations()? {
            entries.push((operation.seq, LogEntry::Operation((&operation).into())));
        }
        entries.retain(|(_, entry)| is_wanted(entry, options));
        entries.sort_by_key(|(seq, _)| std::cmp::Reverse(*seq));
        let total = entries.len() as u64;
        entries.truncate(options.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX)));
        let entries: Vec<LogEntry> = entries.into_iter().map(|(_, entry)| entry).collect();
        let is_shown = |id: &SessionId| entries.iter().any(|entry| session_of(entry) == Some(id));
        let shown = sessions.iter().filter(|row| is_shown(&row.session.id));
        let sessions = shown.map(|row| self.session_view(row, &changes)).collect::<Result<_, _>>()?;
        Ok(Timeline { entries, total, sessions })
    }

    /// Every session, the one that reported last first.
    ///
    /// # Errors
    /// Where the store refuses.
    pub fn sessions(&self) -> Result<Sessions, StoreError> {
        let changes = self.store.changes_since(0)?;
        let sessions = self.store.sessions()?;
        let sessions = sessions.iter().map(|row| self.session_view(row, &changes)).collect::<Result<_, _>>()?;
        Ok(Sessions { sessions })
    }

    /// What a session changed: of the one that is meant, or the one that reported last.
    ///
    /// # Errors
    /// Where there is no such session, or the store refuses.
    pub fn changes(&self, options: &ChangesOptions) -> Result<SessionChanges, TargetError> {
        let session = self.session_meant(options.session.as_deref(), "changes")?;
        let id = &session.session.id;
        let rows = self.store.changes_since(0)?;
        let found_at: HashMap<u64, CheckpointRow> =
            self.store.checkpoints(None)?.into_iter().map(|row| (row.seq, row)).collect();
        let tools: HashMap<StepRef, String> =
            self.store.steps(id, None)?.into_iter().map(|row| (row.step.at, row.step.tool)).collect();
        let mut changes: Vec<NumberedChange> = Vec::new();
        let mut together = Together::default();
        let mut numbers = 1..;
        for row in &rows {
            let Some(checkpoint) = found_at.get(&row.seq) else { continue };
            let place = checkpoint.checkpoint.place.as_ref();
            let is_yours = row.owner == Owner::You && place.is_some_and(|place| place.session == *id);
            let is_own = is_of(row, id);
            let is_wanted = is_own || (options.all && is_yours);
            if !is_wanted {
                continue;
            }
            let step = match &row.owner {
                Owner::Step { step, .. } => Some(step),
                _ => None,
            };
            let turn = row.owner.turn().map(|(_, turn)| turn);
            if is_own {
                together.add(row);
            }
            changes.push(NumberedChange {
                number: if is_own { numbers.next() } else { None },
                change: file(row),
                at: checkpoint.checkpoint.created_at,
                turn: turn.or(place.map(|place| place.turn)).unwrap_or(0),
                step: step.map(|step| step.step),
                tool: step.and_then(|step| tools.get(step)).cloned(),
                checkpoint: checkpoint.checkpoint.id.clone(),
            });
        }
        let summary = together.counts();
        Ok(SessionChanges { session: self.session_view(&session, &rows)?, changes, summary })
    }

    fn session_view(&self, row: &SessionRow, changes: &[ChangeRow]) -> Result<SessionView, StoreError> {
        let session = &row.session;
        let turns = self.store.turns(&session.id)?;
        let mut together = Together::default();
        changes
            .iter()
            .filter(|change| change.owner.turn().is_some_and(|(id, _)| *id == session.id))
            .for_each(|change| together.add(change));
        let title = turns.iter().find_map(|turn| turn.turn.prompt.as_deref());
        Ok(SessionView {
            id: session.id.clone(),
            agent: session.agent.clone(),
            agent_id: session.agent_id.clone(),
            name: session.name.clone(),
            title: title.and_then(|text| text.lines().find(|line| !line.trim().is_empty())).map(str::to_owned),
            started_at: session.started_at,
            last_at: row.last_at,
            ended_at: row.ended_at,
            live: self.is_live(row),
            turns: turns.last().map_or(0, |turn| turn.turn.number),
            checkpoints: self.store.checkpoints_of(&session.id)?.len() as u64,
            changes: together.counts(),
            gaps: self.store.gaps(Some(&session.id))?.len() as u64,
            transcript: session.transcript.clone(),
        })
    }
}

/// Whether a change is a session's own, or may be.
fn is_of(row: &ChangeRow, session: &SessionId) -> bool {
    match &row.owner {
        Owner::Step { step, .. } => step.session == *session,
        Owner::Unsure { candidates } => {
            candidates.iter().any(|one| matches!(one, Candidate::Step(step) if step.session == *session))
        }
        Owner::You | Owner::Operation { .. } => false,
    }
}

fn file(row: &ChangeRow) -> ChangedFile {
    ChangedFile { path: (&row.path).into(), kind: row.kind, owner: row.owner.clone() }
}

fn session_of(entry: &LogEntry) -> Option<&SessionId> {
    match entry {
        LogEntry::Turn(turn) => Some(&turn.session),
        LogEntry::Checkpoint { checkpoint, .. } | LogEntry::Yours { checkpoint, .. } => {
            checkpoint.place.as_ref().map(|place| &place.session)
        }
        LogEntry::Operation(_) => None,
        LogEntry::Gap { session, .. } => Some(session),
    }
}

fn is_wanted(entry: &LogEntry, options: &TimelineOptions) -> bool {
    let at = match entry {
        LogEntry::Turn(turn) => turn.ended_at.unwrap_or(turn.at),
        LogEntry::Checkpoint { checkpoint, .. } | LogEntry::Yours { checkpoint, .. } => checkpoint.created_at,
        LogEntry::Operation(operation) => operation.began_at,
        LogEntry::Gap { gap, .. } => gap.at,
    };
    let session = session_of(entry);
    let touches = |files: &[ChangedFile]| {
        let within = |file: &ChangedFile| {
            let path = file.path.exact();
            options.paths.iter().any(|wanted| path.as_ref().is_some_and(|path| path.is_within(wanted)))
        };
        files.iter().any(within)
    };
    let by_path = options.paths.is_empty()
        || match entry {
            LogEntry::Turn(turn) => touches(&turn.files) || touches(&turn.yours) || touches(&turn.unsure),
            LogEntry::Checkpoint { files, .. } | LogEntry::Yours { files, .. } => touches(files),
            LogEntry::Operation(_) | LogEntry::Gap { .. } => false,
        };
    by_path
        && options.since.is_none_or(|since| at >= since)
        && options.session.as_ref().is_none_or(|wanted| session == Some(wanted))
}

/// The turn that a checkpoint's finds are shown with. What is found when a session goes on was done before its next turn.
fn turn_shown(row: &CheckpointRow) -> Option<(SessionId, u32)> {
    let place = row.checkpoint.place.as_ref()?;
    match row.checkpoint.cause {
        Cause::SessionStart => Some((place.session.clone(), place.turn + 1)),
        Cause::Manual | Cause::BeforeOperation | Cause::Operation => None,
        Cause::Prompt | Cause::BeforeTool | Cause::AfterTool | Cause::TurnEnd | Cause::Compaction => {
            Some((place.session.clone(), place.turn))
        }
    }
}

/// Changes of the same paths, taken together.
#[derive(Default)]
struct Together(BTreeMap<WorkspacePath, (ChangeKind, ChangeKind, Owner)>);

impl Together {
    fn add(&mut self, row: &ChangeRow) {
        self.0
            .entry(row.path.clone())
            .and_modify(|(_, last, owner)| (*last, *owner) = (row.kind, row.owner.clone()))
            .or_insert((row.kind, row.kind, row.owner.clone()));
    }

    fn files(&self) -> Vec<ChangedFile> {
        let net = |(path, (first, last, owner)): (&WorkspacePath, &(ChangeKind, ChangeKind, Owner))| {
            let kind = match (first, last) {
                // Made and gone again: nothing is left of it.
                (ChangeKind::Created, ChangeKind::Deleted) => return None,
                (ChangeKind::Created, _) => ChangeKind::Created,
                (ChangeKind::Deleted, ChangeKind::Created) => ChangeKind::Modified,
                (_, last) => *last,
            };
            Some(ChangedFile { path: path.into(), kind, owner: owner.clone() })
        };
        self.0.iter().filter_map(net).collect()
    }

    fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for file in self.files() {
            match file.kind {
                ChangeKind::Created => counts.created += 1,
                ChangeKind::Modified => counts.modified += 1,
                ChangeKind::Deleted => counts.deleted += 1,
            }
        }
        counts
    }
}

/// What checkpoints say of turns.
#[derive(Default)]
struct Turns {
    /// The checkpoints just before turns and steps.
    before: HashMap<(SessionId, u32, Option<u32>), CheckpointRow>,
    owned: HashMap<(SessionId, u32), Together>,
    by_step: HashMap<(SessionId, u32, u32), Together>,
    yours: HashMap<(SessionId, u32), Together>,
    unsure: HashMap<(SessionId, u32), Together>,
    /// What a step changed where that was too much to list.
    unlisted: HashMap<(SessionId, u32, u32), Counts>,
}

impl Turns {
    fn add(&mut self, row: &CheckpointRow, changes: &[&ChangeRow]) {
        let place = row.checkpoint.place.as_ref();
        if let (Some(place), Cause::Prompt | Cause::BeforeTool) = (place, row.checkpoint.cause) {
            let key = (place.session.clone(), place.turn, place.step);
            self.before.entry(key).or_insert_with(|| row.clone());
        }
        if let (Some(place), Cause::AfterTool) = (place, row.checkpoint.cause)
            && changes.is_empty()
        {
            let key = (place.session.clone(), place.turn, place.step.unwrap_or(0));
            *self.unlisted.entry(key).or_default() += row.checkpoint.changes;
        }
        for change in changes {
            if let Some((session, turn)) = change.owner.turn() {
                self.owned.entry((session.clone(), turn)).or_default().add(change);
            }
            if let Owner::Step { step, evidence: Evidence::Named | Evidence::Window } = &change.owner {
                self.by_step.entry((step.session.clone(), step.turn, step.step)).or_default().add(change);
            }
            let Some(here) = turn_shown(row) else { continue };
            match &change.owner {
                Owner::You => self.yours.entry(here).or_default().add(change),
                Owner::Unsure { .. } => self.unsure.entry(here).or_default().add(change),
                _ => {}
            }
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
                tool: row.step.tool.clone(),
                summary: row.step.summary.clone(),
                command: row.step.command.clone(),
                background: row.step.background,
                subagent: row.step.subagent.clone(),
                ending: row.ending,
                at: Timestamp(row.step.opened.div_euclid(1_000_000)),
                checkpoint: before(Some(at.step)).map(|row| row.checkpoint.id.clone()),
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
            checkpoint: before(None).map(|row| row.checkpoint.id.clone()),
            changes: self.owned.get(&key).map(Together::counts).unwrap_or_default() + all_unlisted,
            files: files(&self.owned),
            steps: steps.collect(),
            yours: files(&self.yours),
            unsure: files(&self.unsure),
            gaps,
        }
    }
}
