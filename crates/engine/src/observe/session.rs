//! Sessions for a program that embeds piton, and across workspaces: begin a session, a turn, before and after a tool.
//!
//! The hook of an agent goes the same way: its report becomes the same [`Report`], and [`Engine::observe`] takes it to
//! every workspace that the session works in.

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};

use piton_host::{identity_at, is_folder, written_by_name};
use piton_model::event::{Event, Report};
use piton_model::{SessionId, Timestamp, Turn, WorkspaceId};
use piton_store::{NotedWorkspace, StoreError};

use crate::capture::CaptureError;
use crate::observe::{Elsewhere, ObserveOptions, Visit};
use crate::view::Observed;
use crate::workspace::place::EventPlace;
use crate::workspace::{Engine, History, OpenError, Workspace};

/// Why a report could not be taken in.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The workspace.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The capture.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// A report that does not say where the agent works.
    #[error("the report does not say where the agent works")]
    NoFolder,
}

/// What came of a report in another workspace of the session.
pub type ObservedElsewhere = (PathBuf, Result<Observed, ObserveError>);

/// A workspace that an event is taken to, other than the one that the agent works in.
struct OtherWorkspace {
    /// Where it is, or was last.
    path: PathBuf,
    /// Which one, where the session has worked in it: whatever stands at its path by now, that one hears of the event.
    id: Option<WorkspaceId>,
    /// Only captured along.
    along: bool,
    /// Its folder is not there any more.
    is_gone: bool,
}

impl Engine {
    /// Takes in what an agent reports, in the workspace that the folder it works in belongs to, in every other that its
    /// session works in, and in the worktrees inside of them. A folder that is no workspace yet becomes one.
    ///
    /// Returns what came of it in the first; what goes wrong in another is in its place of the list.
    ///
    /// # Errors
    /// What goes wrong in the workspace where the agent works. The others have got the event all the same:
    /// [`Engine::observe_everywhere`] tells what came of it there.
    pub fn observe(
        &self,
        report: &Report,
        options: &ObserveOptions<'_>,
    ) -> Result<(Observed, Vec<ObservedElsewhere>), ObserveError> {
        let (first, others) = self.observe_everywhere(report, options);
        Ok((first?, others))
    }

    /// The same, for whoever tells of every workspace: what came of the event where the agent works, and in the others. What
    /// goes wrong in one keeps it from no other.
    pub fn observe_everywhere(
        &self,
        report: &Report,
        options: &ObserveOptions<'_>,
    ) -> (Result<Observed, ObserveError>, Vec<ObservedElsewhere>) {
        let session = SessionId::of(&report.agent, &report.session);
        let noted = self.home.all_workspaces_of(&session);
        let place = match self.place_of(report, options, &noted) {
            Ok(place) => place,
            Err(error) => return (Err(error), Vec::new()),
        };
        let opened = self.open_first(report, &place);
        let path = opened.as_ref().map_or(&place.root, |workspace| &workspace.path).clone();
        // One that could not be opened has the event aside.
        let first_id = match &opened {
            Ok(first) => Some(first.record.id.clone()),
            Err(_) => self.known_at(&place.root).ok().map(|known| known.id),
        };
        let mut seen_ids: HashSet<WorkspaceId> = first_id.into_iter().collect();
        let noted_others = noted.iter().filter(|one| !seen_ids.contains(&one.id));
        let others = self.other_workspaces_of_event(report, noted_others, &path);
        let session_ids: Vec<WorkspaceId> = noted.iter().map(|one| one.id.clone()).collect();
        let there: Vec<PathBuf> =
            others.iter().filter(|other| !other.is_gone).map(|other| other.path.clone()).collect();
        let note = |workspace: &WorkspaceId, along: bool| {
            let is_noted = |one: &NotedWorkspace| one.id == *workspace && (along || !one.along);
            match noted.iter().any(is_noted) {
                true => Ok(()),
                false => self.home.note_session(&session, workspace, along),
            }
        };
        let tell = |now: &Path, along: bool, rest: &mut dyn Iterator<Item = &OtherWorkspace>| {
            let Some(visiting) = options.visiting else { return };
            let rest = rest.filter(|other| !other.is_gone);
            let rest = rest.map(|other| Visit { path: other.path.clone(), along: other.along });
            visiting([Visit { path: now.to_owned(), along }].into_iter().chain(rest).collect());
        };
        // What the first workspace that takes the event makes of it holds in all that come after.
        let mut known: Option<Elsewhere> = None;
        tell(&path, false, &mut others.iter());
        let first = opened.and_then(|first| {
            let elsewhere = self.elsewhere(&first, &session_ids, report, None);
            let in_first = ObserveOptions { elsewhere, also: &there, ..options.again() };
            let id = first.record.id.clone();
            let observed = self.observe_in(first, report, &in_first);
            // The session works there, also where the event had to be set aside.
            let noted = note(&id, false);
            let (first, observed) = observed?;
            noted?;
            known = first.as_known_elsewhere(&observed);
            Ok(observed)
        });
        let mut rest = Vec::new();
        let mut seen: HashSet<PathBuf> = [path].into();
        let also: Vec<PathBuf> = seen.iter().cloned().chain(there).collect();
        let found = |path: &PathBuf| OtherWorkspace { path: path.clone(), id: None, along: true, is_gone: false };
        let worktrees = first.iter().flat_map(|observed| &observed.worktrees);
        let (mut gone, mut others): (VecDeque<_>, VecDeque<_>) = others.into_iter().partition(|other| other.is_gone);
        others.extend(worktrees.map(found));
        // Those that are gone come last: one of the worktrees that are found may be it, at another path.
        while let Some(other) = others.pop_front().or_else(|| gone.pop_front()) {
            // Two that the session worked in may have had one path, of which one is gone.
            let is_seen = match &other.id {
                Some(id) => seen_ids.contains(id),
                None => seen.contains(&other.path),
            };
            if is_seen {
                continue;
            }
            seen.insert(other.path.clone());
            tell(&self.name_of(&other), other.along, &mut others.iter().filter(|other| !seen.contains(&other.path)));
            let there = ObserveOptions { elsewhere: known.clone(), along: other.along, also: &also, ..options.again() };
            let result = self.observe_other(&other, report, &session, &session_ids, &seen_ids, there).transpose();
            let Some(result) = result else { continue };
            let result = result.and_then(|(workspace, observed)| {
                seen_ids.insert(workspace.record.id.clone());
                note(&workspace.record.id, observed.along)?;
                known = known.take().or_else(|| workspace.as_known_elsewhere(&observed));
                Ok(observed)
            });
            // A worktree may hold another one.
            others.extend(result.iter().flat_map(|observed| observed.worktrees.iter().map(found)));
            rest.push((self.name_of(&other), result));
        }
        (first, rest)
    }

    fn place_of(
        &self,
        report: &Report,
        options: &ObserveOptions<'_>,
        noted: &[NotedWorkspace],
    ) -> Result<EventPlace, ObserveError> {
        let cwd = report.cwd.as_deref().ok_or(ObserveError::NoFolder)?;
        if let Some(place) = options.place {
            return Ok(place.clone());
        }
        let worked_in: Vec<PathBuf> = noted.iter().filter(|one| !one.along).map(|one| one.path.clone()).collect();
        Ok(self.event_place(cwd, &worked_in)?)
    }

    /// Opens the workspace that the agent works in. Where that fails, the event is set aside there.
    fn open_first(&self, report: &Report, place: &EventPlace) -> Result<Workspace, ObserveError> {
        let noted = report.cwd.as_deref().map_or(Ok(()), |cwd| self.note_transcript(report, cwd));
        let opened = noted.map_err(ObserveError::from).and_then(|()| Ok(self.open_or_init(&place.root)?));
        opened.inspect_err(|error| self.set_aside_unopened(&place.root, report, error, false))
    }

    /// The other workspaces that an event is taken to: those of the session, and of the files that the tool names.
    fn other_workspaces_of_event<'n>(
        &self,
        report: &Report,
        noted: impl Iterator<Item = &'n NotedWorkspace>,
        first: &Path,
    ) -> Vec<OtherWorkspace> {
        let mut others: Vec<OtherWorkspace> = Vec::new();
        for NotedWorkspace { id, along, .. } in noted {
            // Where it was noted may be the place of another by now, or become that when another is opened.
            let Some(known) = self.home.known(id) else { continue };
            // Where nothing is at its path it is searched for only if the event concerns it: most of those were removed.
            let place = identity_at(&known.path).and_then(|_| self.home.place_of(&known));
            let is_gone = place.is_none();
            let path = place.unwrap_or(known.path);
            others.push(OtherWorkspace { path, id: Some(id.clone()), along: *along, is_gone });
        }
        for path in self.workspaces_named(report, first).into_iter().filter(|path| path != first) {
            match others.iter_mut().find(|other| other.path == path && !other.is_gone) {
                // Where the session works in it, it is not only captured along.
                Some(other) => other.along = false,
                None => others.push(OtherWorkspace { is_gone: !is_folder(&path), path, id: None, along: false }),
            }
        }
        others
    }

    /// What another workspace is opened by, for whoever has nothing but a path.
    fn name_of(&self, other: &OtherWorkspace) -> PathBuf {
        let known = other.id.as_ref().filter(|_| other.is_gone).and_then(|id| self.home.known(id));
        known.map_or_else(|| other.path.clone(), |known| self.home.name_of(&known))
    }

    /// Observes in another workspace than the one that the agent works in, by that one's own settings. None where the event
    /// does not concern it, or it is one of those that have it already.
    fn observe_other(
        &self,
        other: &OtherWorkspace,
        report: &Report,
        session: &SessionId,
        session_ids: &[WorkspaceId],
        seen_ids: &HashSet<WorkspaceId>,
        mut options: ObserveOptions<'_>,
    ) -> Result<Option<(Workspace, Observed)>, ObserveError> {
        let mut engine = self.clone();
        if let Some(own) = options.settings_of.map(|settings_of| settings_of(&other.path)) {
            if own.is_reader {
                return Ok(None);
            }
            engine.environment = own.environment;
            options.automatic = own.automatic;
        }
        let opened = match &other.id {
            Some(id) => engine.open_known(id, other.path.clone()),
            None if other.is_gone => engine.open(&other.path),
            None => engine.open_or_init(&other.path),
        };
        let workspace = opened.map_err(ObserveError::from).inspect_err(|error| match &other.id {
            Some(id) => drop(self.set_event_aside_in(id, report, &error.to_string(), other.along)),
            None => self.set_aside_unopened(&other.path, report, error, other.along),
        })?;
        if seen_ids.contains(&workspace.record.id) {
            return Ok(None);
        }
        let ask = || self.elsewhere(&workspace, session_ids, report, None);
        options.elsewhere = options.elsewhere.take().or_else(ask);
        if !other.is_gone {
            return engine.observe_in(workspace, report, &options).map(Some);
        }
        // It went while a tool of the session was at work, which is a gap and the tool's doing; after that, nothing more
        // happens there than that what is open ends.
        let is_at_work = workspace.store.open_steps()?.iter().any(|row| row.step.at.session == *session);
        let is_open = workspace.store.last_turn(session)?.is_some_and(|row| row.ending.is_none());
        let is_end = matches!(report.event, Event::SessionEnded { .. });
        let ends = is_end && workspace.store.session(session)?.is_some_and(|row| row.ended_at.is_none());
        if !is_at_work && !is_open && !ends {
            return Ok(None);
        }
        // It may only have another name by now.
        let known = self.home.known(&workspace.record.id);
        if let Some(place) = known.and_then(|known| self.home.place_of(&known)) {
            let moved = engine.open_known(&workspace.record.id, place)?;
            return engine.observe_in(moved, report, &options).map(Some);
        }
        options.automatic &= is_at_work;
        options.along &= !is_at_work;
        engine.observe_in(workspace, report, &options).map(Some)
    }

    /// Observes in one workspace. Where its database was made anew in the meantime, as happens when several hooks meet
    /// a new folder at once, once more with the new one.
    fn observe_in(
        &self,
        mut workspace: Workspace,
        report: &Report,
        options: &ObserveOptions<'_>,
    ) -> Result<(Workspace, Observed), ObserveError> {
        const TIMES: usize = 4;
        let mut times = 0;
        loop {
            times += 1;
            match workspace.observe(report, options) {
                Err(CaptureError::Store(StoreError::Replaced)) if times < TIMES => {
                    workspace = self.open_known(&workspace.record.id, workspace.path.clone())?;
                }
                result => {
                    // Of all others the workspace has set aside what it could not record.
                    if let Err(error @ CaptureError::Store(StoreError::Replaced)) = &result {
                        let id = &workspace.record.id;
                        let _ = self.set_event_aside_in(id, report, &error.to_string(), options.along);
                    }
                    return Ok((workspace, result?));
                }
            }
        }
    }

    /// Sets an event aside whose store could not be opened. Where not even that works, the caller has the error.
    fn set_aside_unopened(&self, folder: &Path, report: &Report, error: &ObserveError, along: bool) {
        let _ = self.set_event_aside(folder, report, &error.to_string(), along);
    }

    /// What the other workspaces of a session know of an event's turn, for one of them; none where there are no others. Of an
    /// event that was set aside, `came` says when: turns that began since are later ones.
    pub(crate) fn elsewhere(
        &self,
        here: &Workspace,
        others: &[WorkspaceId],
        report: &Report,
        came: Option<Timestamp>,
    ) -> Option<Elsewhere> {
        let session = &SessionId::of(&report.agent, &report.session);
        let others = others.iter().filter(|id| **id != here.record.id);
        // Also of a folder that is gone: the store has the numbers.
        let others: Vec<Workspace> = others.filter_map(|id| self.load(id, PathBuf::new()).ok()).collect();
        if others.is_empty() {
            return None;
        }
        let is_before = |turn: &Turn| came.is_none_or(|came| turn.at <= came);
        let called = others.iter().filter_map(|workspace| workspace.turn_called(report, session));
        let called = called.max_by_key(|turn| turn.number);
        // A turn whose prompt was set aside has its number, though no store has it yet.
        let mut aside: Vec<Turn> = match called {
            Some(_) => Vec::new(),
            None => others.iter().flat_map(|workspace| workspace.turns_aside(session)).filter(is_before).collect(),
        };
        let own: Vec<Turn> = aside.extract_if(.., |turn| is_turn_of(turn, report)).collect();
        let last = |workspace: &Workspace| workspace.last_turn_until(session, is_before);
        let last = others.iter().filter_map(last).chain(aside).max_by_key(|turn| turn.number);
        let last_turn = last.as_ref().map_or(0, |turn| turn.number);
        let turn = match report.event {
            _ if called.is_some() => called,
            // The transcript knows better what number it has.
            _ if report.transcript.is_none() && !own.is_empty() => own.into_iter().max_by_key(|turn| turn.number),
            // A prompt that none of them knows begins a turn of its own.
            Event::Prompt { .. } => None,
            _ => last,
        };
        let number = turn.as_ref().map_or(last_turn, |turn| turn.number);
        let steps = |workspace: &Workspace| workspace.store.last_step_number(session, number).ok();
        let last_step = (number, others.iter().filter_map(steps).max().unwrap_or(0));
        // The end of a call has the number that its beginning got.
        let call = match &report.event {
            Event::AfterTool(call) | Event::ToolFailed { call, .. } => call.id.as_deref(),
            _ => None,
        };
        let step = |workspace: &Workspace| workspace.store.step_called(session, call?).ok()?;
        let step = others.iter().find_map(step).filter(|row| row.step.at.turn == number).map(|row| row.step.at.step);
        // Where this store is as far, it knows better itself; one that is damaged is made anew to say so.
        let last_here = match here.store.last_turn(session) {
            Err(error) if error.is_damaged_database() => {
                here.store.rebuild().and_then(|()| here.store.last_turn(session))
            }
            last => last,
        };
        let last_here = last_here.ok().flatten().map_or(0, |row| row.turn.number);
        let turn = turn.filter(|turn| turn.number > last_here);
        Some(Elsewhere { turn, step, last_turn, last_step })
    }

    /// The workspaces that a session works in.
    pub fn workspaces_of(&self, session: &SessionId) -> Vec<PathBuf> {
        self.home.workspaces_of(session).into_iter().map(|(_, path)| path).collect()
    }

    /// Whether a session is told something for the first time. Asking notes it.
    ///
    /// # Errors
    /// Where it cannot be noted, so that nobody knows.
    pub fn is_news(&self, session: &SessionId, what: &str) -> Result<bool, StoreError> {
        self.home.note_told(session, what)
    }

    /// Notes the command that a session's user may say yes to, and the fingerprint of the plan that was shown of it.
    ///
    /// # Errors
    /// Where it cannot be noted.
    pub fn note_asked(&self, session: &SessionId, command: &str, shown: &str) -> Result<(), StoreError> {
        self.home.note_asked(session, command, shown)
    }

    /// That command and that fingerprint, which are forgotten with this.
    pub fn take_asked(&self, session: &SessionId) -> Option<(String, String)> {
        self.home.take_asked(session)
    }

    /// The workspaces of the files that a tool names: those that are known, and the worktrees inside of one that is.
    fn workspaces_named(&self, report: &Report, first: &Path) -> Vec<PathBuf> {
        let (Event::BeforeTool(call) | Event::AfterTool(call) | Event::ToolFailed { call, .. }) = &report.event else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for path in call.paths.iter().flat_map(|path| written_by_name(path)) {
            let Some(parent) = path.parent().map(Path::to_owned) else { continue };
            // Most names lie where the agent works, and only the folders on the way there may be known by themselves.
            let around = match parent.starts_with(first) {
                true => Some(self.known_inside(first, &parent).unwrap_or_else(|| first.to_owned())),
                false => self.home.around(&parent).map(|known| known.path),
            };
            let Some(around) = around else { continue };
            found.push(self.worktree_inside(&around, &parent).unwrap_or(around));
        }
        found
    }

    /// The innermost known workspace around a folder in a workspace, where that is another one.
    fn known_inside(&self, root: &Path, folder: &Path) -> Option<PathBuf> {
        let inside = folder.ancestors().take_while(|folder| *folder != root);
        let mut known = inside.filter_map(|folder| self.home.at(folder));
        known.find(|known| !known.is_refused || known.path == folder).map(|known| known.path)
    }
}

/// Whether a turn whose prompt was set aside is that of a report. An agent that does not name its turns says the same prompt
/// again only when it is a new one; but the report that was just set aside elsewhere is this very one.
fn is_turn_of(turn: &Turn, report: &Report) -> bool {
    match (&report.prompt_id, &report.event) {
        (Some(id), _) => turn.prompt_id.as_ref() == Some(id),
        (None, Event::Prompt { text }) => turn.prompt_id.is_none() && turn.prompt.as_ref() == Some(text),
        (None, _) => false,
    }
}

impl From<StoreError> for ObserveError {
    fn from(error: StoreError) -> Self {
        Self::Capture(error.into())
    }
}

impl ObserveOptions<'_> {
    pub(crate) fn again(&self) -> ObserveOptions<'_> {
        ObserveOptions {
            automatic: self.automatic,
            deadline: self.deadline,
            embedded: self.embedded,
            elsewhere: None,
            place: None,
            settings_of: self.settings_of,
            visiting: None,
            along: false,
            also: &[],
        }
    }
}

impl History {
    /// What this workspace made of an event, for the others that it is taken to.
    fn as_known_elsewhere(&self, observed: &Observed) -> Option<Elsewhere> {
        let turn = self.store.turn(&observed.session, observed.turn).ok()?.map(|row| row.turn);
        Some(Elsewhere { turn, step: observed.step, last_turn: observed.turn, last_step: (observed.turn, 0) })
    }

    /// The turn that a report names, where this store knows it.
    fn turn_called(&self, report: &Report, session: &SessionId) -> Option<Turn> {
        let id = report.prompt_id.as_ref()?;
        Some(self.store.turn_called(session, id).ok()??.turn)
    }

    /// The last turn that is not too late.
    fn last_turn_until(&self, session: &SessionId, is_before: impl Fn(&Turn) -> bool) -> Option<Turn> {
        let mut turn = self.store.last_turn(session).ok()??.turn;
        while !is_before(&turn) {
            turn = self.store.turn_before(session, turn.number).ok()??.turn;
        }
        Some(turn)
    }

    /// The turns whose prompts are set aside here, with the numbers that they get when somebody records them.
    fn turns_aside(&self, session: &SessionId) -> Vec<Turn> {
        let mut turns: Vec<Turn> = Vec::new();
        for event in self.home.waiting_events(&self.record.id) {
            let Some(Report { event: Event::Prompt { text }, prompt_id, .. }) = event.report else { continue };
            let is_recorded = |id: &String| matches!(self.store.turn_called(session, id), Ok(Some(_)));
            let is_known = prompt_id
                .as_ref()
                .is_some_and(|id| is_recorded(id) || turns.iter().any(|turn| turn.prompt_id.as_ref() == Some(id)));
            if event.gap.place.session != *session || is_known {
                continue;
            }
            let last = self.last_turn_until(session, |_| true).map_or(0, |turn| turn.number);
            let number = last + u32::try_from(turns.len()).unwrap_or(u32::MAX) + 1;
            let (session, at) = (session.clone(), event.gap.at);
            turns.push(Turn { session, number, prompt: Some(text), prompt_id, at, mark: None });
        }
        turns
    }

    /// This workspace's id.
    pub fn id(&self) -> &WorkspaceId {
        &self.record.id
    }
}
