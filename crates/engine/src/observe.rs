//! Observing: an agent reports an event, and piton captures what it must and notes who did what.
//!
//! One event is one transaction: the session, turn and step that it belongs to, the checkpoint, and what it ends. A
//! capture that cannot be made leaves a gap with its reason, and the rest is recorded all the same.

pub(crate) mod aside;
mod context;
pub(crate) mod live;
mod note;
pub(crate) mod session;
pub(crate) mod told;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use piton_model::event::{Event, Report};
use piton_model::ownership::{Moment, Owned, Owner};
use piton_model::session::{Gap, Session, Turn};
use piton_model::{Cause, Entry, Record, SessionId, SkipReason, WorkspacePath, diff};
use piton_store::{PATIENCE, Purpose, StoreError};

use self::context::{Context, cut};
use crate::capture::large::large_files;
use crate::capture::sink::Trees;
use crate::capture::{About, Attention, CaptureError, Taken, Time};
use crate::history::together::Together;
use crate::view::{CheckpointView, LargeFile, Observed, TurnChanges, Waiting};
use crate::workspace::locked::Locked;
use crate::workspace::place::EventPlace;
use crate::workspace::{Environment, History, Workspace};

/// How an event is taken in.
pub struct ObserveOptions<'a> {
    /// Captures at all; otherwise only sessions, turns and steps are noted.
    pub automatic: bool,
    /// When to give up.
    pub deadline: Option<Instant>,
    /// The agent runs in this very process, so that this is the one to watch: what it left open is over when it is gone.
    pub embedded: bool,
    /// The turn and step that another workspace of the same session gave to this event.
    pub elsewhere: Option<Elsewhere>,
    /// Where the event is captured ([`crate::Engine::event_place`]), where the caller has asked already.
    pub place: Option<&'a EventPlace>,
    /// The settings of another workspace that the event is taken to as well; without it those of the first hold in all.
    pub settings_of: Option<&'a SettingsOf<'a>>,
    /// Told before each workspace which ones the event is still to be taken to, that one first: for whoever ends the process
    /// because its time is over.
    pub visiting: Option<&'a Visiting<'a>>,
    /// The session works elsewhere, and this workspace is only captured along.
    pub along: bool,
    /// The other workspaces that the event is taken to: what a tool names in there is captured there.
    pub also: &'a [PathBuf],
}

/// Hears of the workspaces that an event is still to be taken to.
pub type Visiting<'a> = dyn Fn(Vec<Visit>) + 'a;

/// A workspace that an event is to be taken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Its folder.
    pub path: PathBuf,
    /// It is only captured along.
    pub along: bool,
}

/// Finds the settings of a workspace by its folder.
pub type SettingsOf<'a> = dyn Fn(&Path) -> OwnSettings + 'a;

/// What a workspace's own settings say of an event.
pub struct OwnSettings {
    /// What the engine knows of its surroundings there.
    pub environment: Environment,
    /// Captures at all.
    pub automatic: bool,
    /// The tool that the event is about changes no files.
    pub is_reader: bool,
}

/// How long an event waits for a workspace that is only captured along and that somebody else is busy with. Whoever
/// works there captures it.
const PATIENCE_ALONG: Duration = Duration::from_millis(300);

impl Default for ObserveOptions<'_> {
    fn default() -> Self {
        Self {
            automatic: true,
            deadline: None,
            embedded: false,
            elsewhere: None,
            place: None,
            settings_of: None,
            visiting: None,
            along: false,
            also: &[],
        }
    }
}

/// Where an event stands in the store of another workspace.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    /// The turn, where another store knows which it is.
    pub turn: Option<Turn>,
    /// The step's number in it.
    pub step: Option<u32>,
    /// The highest number of a turn that any of them has.
    pub last_turn: u32,
    /// The highest number of a step, with the turn that it is of: another turn's begin anew.
    pub last_step: (u32, u32),
}

/// Files outside every workspace are kept up to this size.
pub(crate) const LARGEST_OUTSIDE: u64 = 16 << 20;
/// How long a description is at most.
const LONGEST_DESCRIPTION: usize = 120;

/// What came of an event's capture.
struct Captured {
    checkpoint: CheckpointView,
    /// The worktrees that it found, which are workspaces of their own.
    worktrees: Vec<PathBuf>,
    /// A change that it found is the doing of a session that seemed to work elsewhere.
    works_here: bool,
    /// Large files that it is the first to have.
    large: Vec<LargeFile>,
}

impl Workspace {
    /// Takes in what an agent reports.
    ///
    /// # Errors
    /// Where not even a gap can be recorded: the lock is not to be had in time, or the store refuses.
    pub fn observe(&mut self, report: &Report, options: &ObserveOptions<'_>) -> Result<Observed, CaptureError> {
        let asked = self.environment.clock.now_ns();
        let observed = match self.observe_once(report, options, asked, false) {
            // An event must not wait for a person to repair what the packs can: every one after it would be a gap too.
            Err(error) if error.is_damaged_database() => match self.store.rebuild() {
                Ok(()) => self.observe_once(report, options, asked, true),
                Err(error) => Err(error.into()),
            },
            observed => observed,
        };
        match &observed {
            // Tried again with the store that took its place.
            Ok(_) | Err(CaptureError::Store(StoreError::Replaced)) => {}
            Err(error) => {
                // Where not even that works, the caller has the error.
                let _ = self.set_aside(report, options, asked, &error.to_string());
            }
        }
        observed
    }

    /// `is_anew`: the store's database was just made anew, so that what is still wrong with it is a gap.
    fn observe_once(
        &mut self,
        report: &Report,
        options: &ObserveOptions<'_>,
        asked: i64,
        is_anew: bool,
    ) -> Result<Observed, CaptureError> {
        let patience = options.deadline.map_or(PATIENCE, |d| d.saturating_duration_since(Instant::now()));
        let patience = if options.along { patience.min(PATIENCE_ALONG) } else { patience };
        // One that somebody is busy with must not cost the others their capture.
        let patience = if options.also.is_empty() { patience } else { patience / 2 };
        let locked = self.lock(patience)?;
        let mut locked = locked.recovered().map_err(|error| CaptureError::Recover(Box::new(error)))?;
        let mut gaps = locked.record_events_aside(options)?;
        let context = locked.context(report, options, asked)?;
        let cause = cause_of(&report.event).filter(|_| options.automatic);
        // Where no tool ran that hooks may follow, there is nothing to look for.
        let cause = match cause {
            Some(Cause::AfterTools) if !locked.is_followed(&context.session)? => None,
            cause => cause,
        };
        let captured = match cause {
            Some(cause) => locked.capture_event(report, &context, cause, options),
            None => {
                let mut writer = locked.writer()?.allowing(Purpose::Note);
                locked.note(&mut writer, report, &context, options.also, None)?;
                writer.commit(false, false)?;
                Ok(None)
            }
        };
        let out_of_time = matches!(captured, Err(CaptureError::OutOfTime));
        let (mut captured, gap) = match captured {
            Ok(captured) => (captured, None),
            Err(error) if error.is_damaged_database() && !is_anew => return Err(error),
            Err(error) => {
                let reason = error.to_string();
                let gap = Gap {
                    place: context.place(),
                    cause: cause.unwrap_or(Cause::Prompt),
                    reason: reason.clone(),
                    at: locked.environment.clock.now(),
                    lost: context.has_missed,
                    gone: matches!(error, CaptureError::Missing(_) | CaptureError::Displaced { .. }),
                };
                let noted = locked.writer().and_then(|writer| {
                    let mut writer = writer.allowing(Purpose::Note);
                    locked.note(&mut writer, report, &context, options.also, Some(gap.clone()))?;
                    writer.commit(false, false)
                });
                if noted.is_err() {
                    // A store that refuses cannot take a gap either; perhaps its folder can.
                    return Err(error);
                }
                gaps.push(gap);
                (None, Some(reason))
            }
        };
        // Only where there is one just now is it worth asking whether there was one before.
        gaps.retain(|gap| gap.place.session == context.session);
        let first_gap = match gaps.first() {
            Some(first) if locked.store.gaps(Some(&context.session))?.len() == gaps.len() => Some(first.reason.clone()),
            _ => None,
        };
        let along = context.along && !captured.as_ref().is_some_and(|captured| captured.works_here);
        let large = captured.as_mut().map(|captured| std::mem::take(&mut captured.large)).unwrap_or_default();
        let (checkpoint, worktrees) = captured.map(|captured| (captured.checkpoint, captured.worktrees)).unzip();
        if !out_of_time {
            let _ = locked.store().tidy(&locked.lock);
        }
        drop(locked);
        let told = match &report.event {
            // What cannot be told is no reason to fail: the event is recorded.
            Event::Prompt { .. } if context.new_turn.is_some() => {
                self.told(&context.session, context.turn).ok().flatten()
            }
            _ => None,
        };
        Ok(Observed {
            told,
            session: context.session.clone(),
            turn: context.turn,
            step: context.step.as_ref().map(|row| row.step.at.step),
            new_turn: context.new_turn.is_some(),
            checkpoint,
            gap,
            first_gap,
            worktrees: worktrees.unwrap_or_default(),
            large,
            along,
            out_of_time,
            recovered: std::mem::take(&mut self.recovered),
            // What cannot be told is no reason to fail.
            waiting: if is_for_user(&report.event) { self.waiting().unwrap_or_default() } else { Waiting::default() },
            history_lost: is_for_user(&report.event) && self.store.has_lost_history(),
            turn_changes: match &report.event {
                Event::TurnEnded { .. } => self.turn_changes(&context.session, context.turn).unwrap_or_default(),
                _ => None,
            },
        })
    }
}

impl Locked<'_> {
    fn capture_event(
        &mut self,
        report: &Report,
        context: &Context,
        cause: Cause,
        options: &ObserveOptions<'_>,
    ) -> Result<Option<Captured>, CaptureError> {
        let root = self.root_to_capture()?;
        let named = context.step.as_ref().map(|row| &row.step.paths[..]).unwrap_or_default();
        let mut forced: Vec<WorkspacePath> = Vec::new();
        let parent = self.store.head(self.record.line)?;
        let about = About {
            place: Some(context.place()),
            description: description(&report.event),
            moment: Moment::of(cause, &context.place()),
            ending: context.ending(&report.event, parent.as_ref().map_or(0, |row| row.seq), &self.path),
            over: context.over.iter().map(|over| (over.row.step.at.clone(), over.how, over.cut)).collect(),
            ended_together: matches!(report.event, Event::ToolsEnded).then(|| (context.session.clone(), context.asked)),
            has_missed: context.has_missed,
            ..About::of(cause)
        };
        let witness = about.witness();
        let Taken { mut writer, scan, fresh, keeps_index, held, .. } = loop {
            let time = options.deadline.map_or(Time::Any, Time::Until);
            let attention = Attention { forced: &forced, time, witness: Some(&witness), agrees: false };
            let taken = self.take(&root, &attention)?;
            let trees = Trees { fresh: &taken.fresh, store: &self.store };
            // Files that the tool names are captured whatever the rules say.
            let mut left_out = Vec::new();
            for path in named.iter().filter(|path| !forced.contains(path)) {
                let found = diff::lookup(&trees, &taken.scan.root.tree, path)?;
                let is_by_rule = matches!(found, Some(Entry::Skipped { reason }) if reason.is_by_rule());
                if is_by_rule && !self.is_in_a_worktree(path) {
                    left_out.push(path.clone());
                }
            }
            if left_out.is_empty() {
                break taken;
            }
            forced.append(&mut left_out);
        };
        let git = self.git_state(&mut writer, &scan)?;
        let about = About { git, held, ..about };
        let checkpoint = self.checkpoint(&scan, &fresh, parent.as_ref(), about)?;
        let trees = Trees { fresh: &fresh, store: &self.store };
        let large = large_files(&trees, parent.as_ref(), &checkpoint);
        let is_own =
            |owned: &Owned| matches!(&owned.owner, Owner::Step { step, .. } if step.session == context.session);
        let works_here = context.along && checkpoint.owned.iter().any(is_own);
        let row = piton_store::CheckpointRow { seq: 0, checkpoint, names: Vec::new(), annotation: None };
        let view = CheckpointView::from(&row);
        self.note_what_begins(&mut writer, context)?;
        if works_here && let Some(session) = self.session_of(context)? {
            writer.record(Record::Session(Session { along: false, ..session }))?;
        }
        // What ends comes before the checkpoint that saw it: a step whose end is recorded after the newest checkpoint is
        // one whose last changes nobody has looked at yet.
        self.note_what_ends(&mut writer, report, context, options.also)?;
        writer.record(Record::Checkpoint(row.checkpoint))?;
        writer.commit(false, keeps_index)?;
        let worktrees = scan.skipped.iter().filter(|(_, reason)| *reason == SkipReason::Worktree);
        let worktrees = worktrees.map(|(path, _)| self.path.join(path.as_path())).collect();
        self.keep_index(scan, keeps_index);
        Ok(Some(Captured { checkpoint: view, worktrees, works_here, large }))
    }
}

/// As many paths of a turn are named at its end.
const MOST_NAMED: usize = 3;

impl History {
    /// What a turn changed here, from what captures found: nothing is looked at for it.
    fn turn_changes(&self, session: &SessionId, turn: u32) -> Result<Option<TurnChanges>, StoreError> {
        let Some(row) = self.store.turn(session, turn)? else { return Ok(None) };
        let steps = self.store.steps(session, Some(turn))?;
        let from = steps.iter().map(|step| step.seq).chain([row.seq]).min().unwrap_or(row.seq);
        let is_its = |owner: &Owner| owner.turn() == Some((session, turn));
        let mut together = Together::default();
        for change in self.store.changes_since(from)?.iter().filter(|change| is_its(&change.owner)) {
            together.add(change);
        }
        let files = together.files();
        // Of those that changed too much to list it there is only a count.
        let cut = self.store.checkpoints_cut(from)?.into_iter().map(|row| row.checkpoint);
        let cut = cut.filter(|checkpoint| checkpoint.owned.first().is_some_and(|owned| is_its(&owned.owner)));
        let unlisted: u64 = cut.map(|it| it.changes.created + it.changes.modified + it.changes.deleted).sum();
        let total = files.len() as u64 + unlisted;
        let paths = files.into_iter().take(MOST_NAMED).map(|file| file.path).collect();
        Ok((total > 0).then_some(TurnChanges { paths, total }))
    }

    /// Whether a path of this workspace lies in a worktree that is a workspace of its own.
    fn is_in_a_worktree(&self, path: &WorkspacePath) -> bool {
        self.engine().worktree_inside(&self.path, &self.path.join(path.as_path())).is_some()
    }
}

/// Whether the user is there to read what comes of an event.
fn is_for_user(event: &Event) -> bool {
    matches!(event, Event::Prompt { .. } | Event::SessionStarted { .. })
}

/// What an event's capture is called; none where nothing is captured.
pub(crate) fn cause_of(event: &Event) -> Option<Cause> {
    match event {
        Event::SessionStarted { .. } => Some(Cause::SessionStart),
        Event::Prompt { .. } => Some(Cause::Prompt),
        Event::BeforeTool(_) => Some(Cause::BeforeTool),
        Event::AfterTool(_) | Event::ToolFailed { .. } => Some(Cause::AfterTool),
        Event::ToolsEnded => Some(Cause::AfterTools),
        // The end of a session is the last chance to see what an interrupted turn did.
        Event::TurnEnded { .. } | Event::SessionEnded { .. } => Some(Cause::TurnEnd),
        Event::Compacting { .. } => Some(Cause::Compaction),
        Event::SubagentStarted | Event::SubagentEnded | Event::Message { .. } | Event::Other { .. } => None,
    }
}

fn description(event: &Event) -> Option<String> {
    match event {
        Event::Prompt { text } => {
            text.lines().find(|line| !line.trim().is_empty()).map(|line| cut(line.trim(), LONGEST_DESCRIPTION))
        }
        Event::BeforeTool(call) | Event::AfterTool(call) | Event::ToolFailed { call, .. } => Some(call.summary.clone()),
        _ => None,
    }
}
