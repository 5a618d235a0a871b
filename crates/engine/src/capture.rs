//! Capturing: read the workspace and record a checkpoint.

pub(crate) mod agreed;
pub(crate) mod ahead;
pub(crate) mod bits;
pub(crate) mod hands;
pub(crate) mod held;
pub(crate) mod ignored;
pub(crate) mod large;
pub(crate) mod lean;
pub(crate) mod owners;
pub(crate) mod sink;
mod slices;
pub(crate) mod sound;
pub(crate) mod waiting;

use std::convert::Infallible;
use std::io;

use piton_host::fail::point;
use piton_host::{
    Index, Root, Scan, ScanError, ScanOptions, StagedBy, UnreadRules, begin_scan, clock, scan, staged_step,
    unread_rules,
};
use piton_model::diff::{self, Counts, TreeSource};
use piton_model::ownership::{Moment, Window};
use piton_model::target::check_name;
use piton_model::{
    Cause, Checkpoint, CheckpointId, Ending, HeldPath, ObjectId, OperationId, Rank, Record, SessionId, SkipReason,
    StepRef, TurnContext, WorkspacePath,
};
use piton_store::{CheckpointRow, PATIENCE, SessionRow, StoreError, Writer};

use crate::capture::held::{HeldNow, Witness};
use crate::capture::sink::{FreshTrees, HashingSink, StoringSink, Trees};
use crate::capture::sound::readable_changes;
use crate::view::{Captured, CheckpointDetail};
use crate::workspace::errors::RecoverError;
use crate::workspace::locked::Locked;
use crate::workspace::{History, Standing, Workspace};

use self::slices::Slices;
pub(crate) use self::slices::Time;
pub use crate::workspace::errors::CaptureError;

/// Options of a capture.
#[derive(Clone, Debug, Default)]
pub struct CaptureOptions {
    /// The checkpoint's name.
    pub name: Option<String>,
    /// The checkpoint's annotation.
    pub annotation: Option<String>,
    /// Wait for the disk: when the capture returns, it survives a power cut. Otherwise it survives the end of any
    /// program at once, and a power cut as soon as something durable followed it or the kernel has written it out.
    pub sync: bool,
}

/// A scan whose objects are written and whose checkpoint is not recorded yet.
pub(crate) struct Taken<'s> {
    pub writer: Writer<'s>,
    pub scan: Scan,
    pub fresh: FreshTrees,
    /// Whether the scan's index is good for the next scan.
    pub keeps_index: bool,
    /// Something was skipped because the budget is full; see [`crate::capture::lean`].
    pub is_lean: bool,
    /// What is captured although a rule ignores it.
    pub held: HeldNow,
}

/// Which paths a scan must include, and how long it may take.
#[derive(Default)]
pub(crate) struct Attention<'a> {
    /// Paths to capture whatever the rules say.
    pub forced: &'a [WorkspacePath],
    pub time: Time,
    /// Tells who changed the rules; `None` for a capture between two tools.
    pub witness: Option<&'a Witness>,
    /// The user agrees to the rules as they are.
    pub agrees: bool,
}

/// What a checkpoint is made for.
pub(crate) struct About {
    pub cause: Cause,
    pub operation: Option<OperationId>,
    pub place: Option<TurnContext>,
    pub description: Option<String>,
    pub git: Option<ObjectId>,
    /// The occasion, which the owners of changes depend on.
    pub moment: Moment,
    /// The window of the step that ends now, whatever the store says.
    pub ending: Option<Window>,
    /// Steps that must have ended by now without a word: how, and when they were cut off, where that is known.
    pub over: Vec<(StepRef, Ending, Option<i64>)>,
    /// The tools of a session that were called together have just ended, with its hooks: when.
    pub ended_together: Option<(SessionId, i64)>,
    /// Some turns or tools were not recorded.
    pub has_missed: bool,
    /// The workspace's folder is gone, or was until an operation made it anew.
    pub is_folder_gone: bool,
    /// What is captured although a rule ignores it.
    pub held: HeldNow,
    /// The user agrees to the workspace's settings as they are.
    pub agrees: bool,
}

impl About {
    /// A checkpoint with a cause, not tied to a session.
    pub(crate) fn of(cause: Cause) -> Self {
        Self {
            cause,
            operation: None,
            place: None,
            description: None,
            git: None,
            moment: Moment::Between,
            ending: None,
            over: Vec::new(),
            ended_together: None,
            has_missed: false,
            is_folder_gone: false,
            held: HeldNow::default(),
            agrees: false,
        }
    }

    /// Tells who changed the rules.
    pub(crate) fn witness(&self) -> Witness {
        Witness { moment: self.moment.clone(), ending: self.ending.clone(), has_missed: self.has_missed }
    }
}

impl CaptureError {
    /// Whether only rebuilding the store's database from the packs helps.
    pub(crate) fn is_damaged_database(&self) -> bool {
        match self {
            Self::Store(error) => error.is_damaged_database(),
            Self::Recover(error) => {
                matches!(&**error, RecoverError::Store(error) if error.is_damaged_database())
            }
            _ => false,
        }
    }
}

/// Checkpoints that a person may make in one session: more than that and none of them is found again.
pub const MOST_MANUAL: u64 = 50;

impl Workspace {
    /// Captures the workspace. If the store's database turns out to be damaged, it is rebuilt from the packs first.
    pub fn capture(&mut self, options: &CaptureOptions) -> Result<Captured, CaptureError> {
        self.capture_agreeing(options, false)
    }

    /// The same; with `agrees`, the current rules and settings are in force from now on.
    pub(crate) fn capture_agreeing(
        &mut self,
        options: &CaptureOptions,
        agrees: bool,
    ) -> Result<Captured, CaptureError> {
        match self.capture_once(options, agrees) {
            Err(error) if error.is_damaged_database() => {
                self.store.rebuild()?;
                self.capture_once(options, agrees)
            }
            captured => captured,
        }
    }

    fn capture_once(&mut self, options: &CaptureOptions, agrees: bool) -> Result<Captured, CaptureError> {
        if let Some(name) = &options.name {
            check_name(name).map_err(|source| CaptureError::Name { name: name.clone(), source })?;
        }
        let locked = self.lock(PATIENCE)?;
        point("capture:locked").map_err(|e| locked.folder_error(e))?;
        // Whoever held the lock until now may have died in the middle of an operation: its tree is a mix until it ends.
        let mut locked = locked.recovered().map_err(|error| CaptureError::Recover(Box::new(error)))?;
        locked.record_left_aside()?;
        if let Some(name) = &options.name
            && let Some(row) = locked.store.named(name)?
        {
            return Err(CaptureError::NameTaken { name: name.clone(), checkpoint: row.checkpoint.id });
        }
        let place = locked.place_now()?;
        if let Some(place) = &place {
            let made = locked.store.manual_count(&place.session)?;
            if made >= MOST_MANUAL && !agrees {
                return Err(CaptureError::TooMany { session: place.session.clone(), made });
            }
        }
        let root = locked.root_to_capture()?;
        let attention = Attention { agrees, ..Attention::default() };
        let Taken { mut writer, scan, fresh, keeps_index, held, .. } = locked.take(&root, &attention)?;
        let parent = locked.store.head(locked.record.line)?;
        let git = locked.git_state(&mut writer, &scan)?;
        let about = About { place, git, held, agrees, ..About::of(Cause::Manual) };
        let checkpoint = locked.checkpoint(&scan, &fresh, parent.as_ref(), about)?;
        let id = checkpoint.id.clone();
        let trees = Trees { fresh: &fresh, store: &locked.store };
        let since = parent.as_ref().map(|parent| parent.checkpoint.root.tree);
        // What is damaged is told by whoever needs it.
        let taken_in = since.and_then(|since| taken_in(&trees, &since, &scan.root.tree).ok()).unwrap_or_default();
        let large = large::large_files(&trees, parent.as_ref(), &checkpoint);
        writer.record(Record::Checkpoint(checkpoint.clone()))?;
        if let Some(name) = &options.name {
            writer.record(Record::Name { checkpoint: id.clone(), name: name.clone() })?;
        }
        if let Some(text) = &options.annotation {
            writer.record(Record::Annotation { checkpoint: id, text: text.clone() })?;
        }
        writer.commit(options.sync, keeps_index)?;
        point("capture:committed").map_err(|e| locked.folder_error(e))?;
        let row = CheckpointRow {
            seq: 0,
            checkpoint,
            names: options.name.iter().cloned().collect(),
            annotation: options.annotation.clone(),
        };
        let detail = CheckpointDetail {
            checkpoint: (&row).into(),
            skipped: scan.skipped.iter().map(Into::into).collect(),
            unsettled: scan.unsettled.iter().map(Into::into).collect(),
        };
        let unread_rules = locked.unread_rules(&root, scan.index.as_ref()).iter().map(Into::into).collect();
        locked.keep_index(scan, keeps_index);
        // The checkpoint is recorded; an error here only makes the next capture slower.
        let _ = locked.store().tidy(&locked.lock);
        let taken_in = taken_in.iter().map(Into::into).collect();
        Ok(Captured { checkpoint: detail, unread_rules, taken_in, large })
    }

    /// The checkpoint of a scan.
    pub(crate) fn checkpoint(
        &self,
        scan: &Scan,
        fresh: &FreshTrees,
        parent: Option<&CheckpointRow>,
        about: About,
    ) -> Result<Checkpoint, CaptureError> {
        let trees = Trees { fresh, store: &self.store };
        let settings = self.settings_to_record(parent, &about)?;
        let from = parent.map(|p| p.checkpoint.root);
        // A damaged parent must not keep the present from being captured.
        let changes = || readable_changes(&trees, from.as_ref(), &scan.root);
        // Without a new index, everything is as the one of before has it; which need not be what the parent has, since what
        // is read ahead keeps an index and makes no checkpoint.
        let (counts, owned) = match (parent, scan.index.as_ref().or(fresh.index_before())) {
            (Some(parent), index) => {
                let changes = changes()?;
                (Counts::of(&changes), self.owners(&changes, index, parent, &about)?)
            }
            // The first of a line: everything counts as created, and the scan knows how much that is.
            (None, Some(index)) => (Counts { created: index.count(), ..Counts::default() }, Vec::new()),
            (None, None) => (Counts::of(&changes()?), Vec::new()),
        };
        debug_assert!(parent.is_some() || counts == Counts::of(&changes()?));
        Ok(Checkpoint {
            id: CheckpointId::from_random(clock::random().map_err(|e| self.folder_error(e))?),
            parent: parent.map(|p| p.checkpoint.id.clone()),
            line: self.record.line,
            created_at: self.environment.clock.now(),
            cause: about.cause,
            root: scan.root,
            changes: counts,
            skipped: scan.skipped.len() as u64,
            unsettled: scan.unsettled.clone(),
            operation: about.operation,
            place: about.place,
            description: about.description,
            owned,
            git: about.git,
            held: about.held.paths,
            unagreed: about.held.unagreed,
            settings: Box::new(settings),
        })
    }
}

impl Locked<'_> {
    /// The root, if it may be captured. Another folder at the same path starts a new line.
    pub(crate) fn root_to_capture(&mut self) -> Result<Root, CaptureError> {
        match self.standing().map_err(|e| self.folder_error(e))? {
            Standing::Same(root) => {
                // Its birth moved with the first write in it. Noted, so that it is known after the next start too, which
                // may give it another device.
                if root.identity().is_layered && root.identity() != self.record.root {
                    let at = self.environment.clock.now();
                    let change = piton_model::Workspace { root: root.identity(), at, ..self.record.clone() };
                    self.record_change(change)?;
                }
                Ok(root)
            }
            Standing::Missing => Err(match self.in_its_place() {
                Some(by) => CaptureError::Displaced { path: self.path.clone(), by },
                None => CaptureError::Missing(self.path.clone()),
            }),
            Standing::Other(root) => {
                if root.is_empty().map_err(|e| self.folder_error(e))? {
                    return Err(CaptureError::EmptyOther(self.path.clone()));
                }
                let change = piton_model::Workspace {
                    root: root.identity(),
                    line: self.line_of(&root)?,
                    at: self.environment.clock.now(),
                    ..self.record.clone()
                };
                self.record_change(change)?;
                self.store().drop_index();
                self.end_replaced_ones().map_err(|error| CaptureError::Recover(Box::new(error)))?;
                Ok(root)
            }
        }
    }

    /// Scans and stores, and leaves the writer open so that what belongs together is committed together. Forced paths
    /// are taken whatever the rules say; the index of such a scan is not kept.
    pub(crate) fn take<'s>(&'s self, root: &Root, attention: &Attention<'_>) -> Result<Taken<'s>, CaptureError> {
        let taken = self.take_held(root, attention);
        let is_refused = match &taken {
            Ok(taken) => taken.fresh.index_before().is_none().then_some(false),
            Err(CaptureError::TooLarge { .. } | CaptureError::Store(StoreError::OverBudget { .. })) => Some(true),
            Err(_) => None,
        };
        // What does not fit protects nothing, so that no folder in it is to be left to it. Once something was captured,
        // there is something to return to.
        if let Some(is_refused) = is_refused
            && self.store.head(self.record.line)?.is_none()
        {
            // This only helps finding the workspace.
            let _ = self.home.note_refused(&self.record, is_refused);
        }
        taken
    }

    pub(crate) fn take_all<'s>(
        &'s self,
        root: &Root,
        attention: &Attention<'_>,
        head: Option<&CheckpointRow>,
        held: HeldNow,
    ) -> Result<Taken<'s>, CaptureError> {
        let index = self.store.index();
        let options = self.scan_options(index.as_ref(), attention.forced, head, &held);
        let mut scanning = begin_scan::<StoreError>(root, options).map_err(|e| self.scan_error(e, Into::into))?;
        let slices = Slices::begin(attention.time);
        let (sink, scan) = loop {
            let sink = StoringSink::new(self.writer()?);
            // What this capture reads it also answers for: where the store has such content already, it is read back. That
            // is little, unless every file is read for want of an index, where it would double the work.
            let sink = if index.is_some() { sink.distrusting() } else { sink };
            let unread = scanning.unread();
            let is_whole = self.store.read_steadily(|| scanning.read(&sink, slices.next()))?;
            if is_whole {
                let scan = self.store.read_steadily(|| scanning.finish(&sink))?;
                break (sink, scan);
            }
            // What was read stays: the next slice, or the next capture, goes on from there. Parts of a large file too.
            let is_further = scanning.unread() < unread;
            sink.finish().0.commit(false, is_further)?;
            if is_further {
                self.store().keep_index(&mut scanning.so_far());
            }
            point("capture:slice").map_err(|e| self.folder_error(e))?;
            if slices.are_over() {
                return Err(CaptureError::OutOfTime);
            }
        };
        point("capture:scanned").map_err(|e| self.folder_error(e))?;
        let (writer, fresh) = sink.finish();
        let fresh = fresh.with_before(index);
        let keeps_index = scan.index.is_some() && attention.forced.is_empty();
        Ok(Taken { writer, scan, fresh, keeps_index, is_lean: false, held })
    }

    /// Saves a scan's index for the next scan.
    pub(crate) fn keep_index(&self, scan: Scan, keeps_index: bool) {
        if let Some(mut index) = scan.index.filter(|_| keeps_index) {
            self.store().keep_index(&mut index);
        }
    }
}

impl History {
    /// Ignore files that a scan could not read, so their rules are not applied. Not for the hook: it reads every one.
    pub(crate) fn unread_rules(&self, root: &Root, index: Option<&Index>) -> Vec<UnreadRules> {
        let kept = if index.is_none() { self.store.index() } else { None };
        let Some(index) = index.or(kept.as_ref()) else { return Vec::new() };
        unread_rules(root, index, &self.rules())
    }

    /// The line of a folder other than the one captured last: its earlier line if it was here before, else a new one.
    fn line_of(&self, root: &Root) -> Result<u32, StoreError> {
        let lines = self.store.lines()?;
        let own = lines.iter().find(|(_, folder)| folder.is_same(&root.identity()));
        if let Some((line, _)) = own {
            return Ok(*line);
        }
        let mut next = lines.iter().map(|(line, _)| *line).max().unwrap_or(0).max(self.record.line) + 1;
        // The record of a line may be damaged, and its checkpoints are there.
        while self.store.first(next)?.is_some() {
            next += 1;
        }
        Ok(next)
    }

    pub(crate) fn scan_options<'a>(
        &'a self,
        index: Option<&'a Index>,
        forced: &[WorkspacePath],
        head: Option<&CheckpointRow>,
        held: &HeldNow,
    ) -> ScanOptions<'a> {
        let mut rules = self.rules();
        rules.forced = forced.iter().cloned().collect();
        ScanOptions {
            index,
            rules,
            now_ns: self.environment.clock.now_ns(),
            is_staged: Box::new(|name| {
                let (operation, step) = staged_step(name)?;
                match self.is_unended(&operation) || self.store.is_leftover(&operation, step) {
                    true => Some(StagedBy::ThisWorkspace),
                    false => self.home.has_pending_near(&self.path, &operation).then_some(StagedBy::Another),
                }
            }),
            held: self.held_in_scan(head, held),
            limit: self.limit(),
            progress: &self.progress,
        }
    }

    /// Scans and only hashes.
    pub(crate) fn look_at(
        &self,
        root: &Root,
        forced: &[WorkspacePath],
        sink: &HashingSink,
    ) -> Result<Scan, CaptureError> {
        Ok(self.look_held(root, forced, sink)?.0)
    }

    /// The same, including held paths.
    pub(crate) fn look_held(
        &self,
        root: &Root,
        forced: &[WorkspacePath],
        sink: &HashingSink,
    ) -> Result<(Scan, Vec<HeldPath>), CaptureError> {
        let index = self.store.index();
        let head = self.store.head(self.record.line)?;
        let mut held = self.held_since(root, head.as_ref())?;
        loop {
            let scan = scan(root, self.scan_options(index.as_ref(), forced, head.as_ref(), &held), sink)
                .map_err(|e| self.scan_error(e, |never: Infallible| match never {}))?;
            let Some(head) = &head else { return Ok((scan, held.paths)) };
            let left_out = self.left_out_in(head, &scan, &held)?;
            let is_whole = !self.hold_more(root, head, left_out, None, &mut held)?;
            if is_whole {
                return Ok((scan, held.paths));
            }
        }
    }

    fn scan_error<E>(&self, error: ScanError<E>, of_sink: impl FnOnce(E) -> CaptureError) -> CaptureError {
        match error {
            ScanError::TooLarge(limit) => {
                CaptureError::TooLarge { path: self.path.clone(), files: limit.files, bytes: limit.bytes }
            }
            ScanError::Root(source) => self.folder_error(source),
            ScanError::Sink(error) => of_sink(error),
        }
    }

    /// Whether a session is at work, as far as is known: an agent that was killed never reports its end.
    pub(crate) fn is_live(&self, row: &SessionRow) -> bool {
        const DAY: i64 = 86_400_000;
        row.heard
            && !row.session.along
            && row.ended_at.is_none()
            && self.environment.clock.now().0 - row.last_at.0 < DAY
    }

    /// The session at work here, and its current turn.
    pub(crate) fn place_now(&self) -> Result<Option<TurnContext>, StoreError> {
        // After a switch of the conversation, the user is there, although its agent has not reported yet.
        let mut sessions = self.store.sessions()?;
        sessions.retain(|row| row.session.rank != Rank::Deleted);
        if let Some(at) = sessions.iter().position(|row| self.is_typed_in(&row.session.id) && self.is_live(row)) {
            let typed_in = sessions.remove(at);
            sessions.insert(0, typed_in);
        }
        let gone_to = match sessions.first() {
            Some(row) if self.store.was_gone_to(row)? => Some(row.session.id.clone()),
            _ => None,
        };
        let is_here = |row: &SessionRow| self.is_live(row) || Some(&row.session.id) == gone_to.as_ref();
        let Some(live) = sessions.iter().find(|row| is_here(row)) else { return Ok(None) };
        // An older line of the same conversation is not where the user is, though nobody heard of its end.
        let root = self.lineage(&live.session.id)?;
        let mut row = live;
        for newer in sessions.iter().take_while(|row| row.session.id != live.session.id) {
            if newer.heard && !newer.session.along && self.lineage(&newer.session.id)?.root() == root.root() {
                row = newer;
                break;
            }
        }
        let row = row.clone();
        let turn = self.last_turn_in(&self.lineage(&row.session.id)?)?;
        Ok(Some(TurnContext { session: row.session.id, turn, step: None }))
    }

    pub(crate) fn folder_error(&self, source: io::Error) -> CaptureError {
        CaptureError::Folder { path: self.path.clone(), source }
    }
}

/// What one capture skipped and a later one has. It is not a change, since what was there before is unknown.
pub(crate) fn taken_in<S: TreeSource>(
    source: &S,
    from: &ObjectId,
    to: &ObjectId,
) -> Result<Vec<(WorkspacePath, SkipReason)>, S::Error> {
    let found = diff::left_out(source, from, to)?.into_iter();
    Ok(found.filter(|one| one.before.is_none()).map(|one| (one.path, one.reason)).collect())
}
