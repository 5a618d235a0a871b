//! Finding and opening workspaces: which folder is protected, where its store is, and whether it is still that folder.

pub(crate) mod errors;
pub(crate) mod locked;
pub(crate) mod near;
pub(crate) mod place;
pub(crate) mod transcripts;
pub(crate) mod verify;

use std::io;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use piton_agents::Agents;
use piton_host::git::{Repository, UserConfig, WorktreeLink};
use piton_host::{
    Abilities, Clock, Limit, Progress, Root, RuleOptions, SystemClock, canonical, canonical_folder, clock, identity_at,
    probe,
};
use piton_model::{Protection, Record, SessionId, SkipReason, WorkspaceId};
use piton_store::{Home, Known, PATIENCE, Reader, Store, StoreError};

use crate::view;
use crate::workspace::errors::{CaptureError, RecoverError};
use crate::workspace::locked::Locked;

/// Bytes that a store may take unless its user says otherwise.
pub const DEFAULT_BUDGET: u64 = 10 << 30;

/// Less than this is no budget: the database alone may take some of it.
pub const MINIMUM_BUDGET: u64 = 8 << 20;

/// A conversation with more branches than this is one that nobody cleans up.
const MOST_BRANCHES: usize = 100;

/// Roots over these are refused unless forced: what they hold is seldom one project.
const LIMIT: Limit = Limit { files: 500_000, bytes: 20 << 30 };

/// How long whoever need not have the lock waits for it, such as who opens a workspace: for one who takes it for a moment, not for
/// an operation.
pub(crate) const MOMENT: Duration = Duration::from_millis(300);

/// What the engine must know of its surroundings, which it never looks up itself.
#[derive(Clone)]
pub struct Environment {
    /// The user's home folder: never a workspace unless forced.
    pub home_folder: Option<PathBuf>,
    /// Git's global excludes file.
    pub global_excludes: Option<PathBuf>,
    /// Where git's settings are, which may name another one.
    pub git_config: UserConfig,
    /// The agents that are understood.
    pub agents: Agents,
    /// State folders of agents, which are never captured.
    pub agent_state: Vec<PathBuf>,
    /// Where agents keep their transcripts, folder by folder, with the agent's name. Nothing else is read as one, and no
    /// branch is written anywhere else.
    pub transcripts: Vec<(String, PathBuf)>,
    /// How many branches a conversation may have.
    pub most_branches: usize,
    pub clock: Arc<dyn Clock>,
    /// The largest root that is captured without being forced.
    pub limit: Limit,
    /// Where several sessions are at work and none is named, take the one that reported last.
    pub guesses_session: bool,
    /// The session that is meant where none is named: that of the agent in which a command is typed.
    pub session: Option<SessionId>,
    /// What the user's own settings say about protection: an agent's changes to a workspace's are measured by it.
    pub users_settings: Protection,
    /// Files over this are skipped; the default where not given.
    pub largest_file: Option<u64>,
    /// Ignored files up to this are captured; the default where not given.
    pub largest_ignored_file: Option<u64>,
    /// The git to run where somebody asks for git state or an export; the one in `PATH` where not given.
    pub git: Option<PathBuf>,
}

impl Default for Environment {
    fn default() -> Self {
        Self {
            home_folder: None,
            global_excludes: None,
            git_config: UserConfig::default(),
            agents: Agents::default(),
            agent_state: Vec::new(),
            transcripts: Vec::new(),
            most_branches: MOST_BRANCHES,
            clock: Arc::new(SystemClock),
            limit: LIMIT,
            guesses_session: true,
            session: None,
            users_settings: Protection::default(),
            largest_file: None,
            largest_ignored_file: None,
            git: None,
        }
    }
}

/// The way in: knows where stores are.
#[derive(Clone)]
pub struct Engine {
    pub(crate) home: Home,
    pub(crate) environment: Environment,
}

/// How to make a workspace known.
#[derive(Clone, Copy, Debug, Default)]
pub struct InitOptions {
    /// Take `$HOME`, `/` and huge roots too.
    pub force: bool,
    /// Bytes that the store may take; what it was, or [`DEFAULT_BUDGET`].
    pub budget: Option<u64>,
}

/// Why a workspace cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Nothing was ever captured here.
    #[error("{} is not a workspace yet", .0.display())]
    NotKnown(PathBuf),
    /// It is not a folder.
    #[error("{}: {source}", path.display())]
    Folder {
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A root that is hardly one project.
    #[error("{} is {what}, which is hardly one project", path.display())]
    Refused {
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// A folder that holds a git repository's own data.
    #[error("{} is git's own folder, which piton never writes", path.display())]
    Git { path: PathBuf },
    /// Piton's own folder, or one in it.
    #[error("{} is piton's own folder, which is not a workspace", path.display())]
    Own { path: PathBuf },
    /// A budget, in bytes, that nothing fits in.
    #[error("the budget is too small: a store needs at least {} MiB", MINIMUM_BUDGET >> 20)]
    Budget(u64),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A workspace and its memory, for whoever only reads: nothing in here can write to its store.
pub struct History {
    pub(crate) store: Arc<Reader>,
    pub(crate) home: Home,
    pub(crate) environment: Environment,
    pub(crate) record: piton_model::Workspace,
    pub(crate) path: PathBuf,
    pub(crate) progress: Arc<Progress>,
}

/// A protected folder and its memory: everything that can be asked of its [`History`], and the verbs that write.
pub struct Workspace {
    history: History,
    /// The store, for whoever holds its lock.
    memory: Store,
    pub(crate) recovered: Vec<view::Recovered>,
    /// Why an operation that was cut off could not be ended when this was opened.
    unended: Option<RecoverError>,
}

impl Deref for Workspace {
    type Target = History;

    fn deref(&self) -> &History {
        &self.history
    }
}

impl DerefMut for Workspace {
    fn deref_mut(&mut self) -> &mut History {
        &mut self.history
    }
}

/// How the folder at the workspace's path stands to the one that was captured.
pub(crate) enum Standing {
    Same(Root),
    Other(Root),
    Missing,
}

/// What took the place of a workspace's folder that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InItsPlace {
    /// A symlink at its path, or on the way there.
    Symlink,
    /// A folder that is another workspace.
    Workspace,
}

impl InItsPlace {
    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            Self::Symlink => "a symlink",
            Self::Workspace => "another workspace",
        }
    }
}

impl Engine {
    /// An engine whose stores are under a home, which need not exist yet.
    pub fn new(home: PathBuf, environment: Environment) -> Self {
        let home = canonical(&home).unwrap_or(home);
        Self { home: Home::new(home), environment }
    }

    /// Opens the workspace at exactly this folder (as [`Engine::locate`] gives it), ending first what a crash cut off.
    pub fn open(&self, folder: &Path) -> Result<Workspace, OpenError> {
        let known = self.known_at(folder)?;
        self.open_known(&known.id, known.path)
    }

    /// Opens a workspace by its id at the path that its folder has now, or had last.
    pub(crate) fn open_known(&self, id: &WorkspaceId, path: PathBuf) -> Result<Workspace, OpenError> {
        let mut workspace = self.load(id, path)?;
        workspace.follow_move()?;
        match workspace.recover_pending() {
            // Whoever only reads need not wait for it; whoever writes tries again, and is told.
            Err(RecoverError::Store(error)) => return Err(error.into()),
            Err(error) => workspace.unended = Some(error),
            Ok(()) => {}
        }
        Ok(workspace)
    }

    /// Opens a workspace and ends nothing: for checking a store that may be too damaged for that.
    pub fn open_as_it_is(&self, folder: &Path) -> Result<Workspace, OpenError> {
        let known = self.known_at(folder)?;
        self.load(&known.id, known.path)
    }

    /// The known workspace at a path, with the path that it has now. Its store's folder means it as well: no other folder
    /// can take that.
    pub(crate) fn known_at(&self, folder: &Path) -> Result<Known, OpenError> {
        if let Some(known) = self.home.of_store(folder).or_else(|| self.home.replaced_by_link(folder)) {
            return Ok(self.where_it_is(known));
        }
        let path = canonical_folder(folder).map_err(|source| OpenError::Folder { path: folder.to_owned(), source })?;
        let known = self.known_or_refused(&path)?;
        match identity_at(&path) {
            Some(_) => Ok(Known { path, ..known }),
            None => Ok(self.where_it_is(known)),
        }
    }

    /// A workspace with the path that its folder has now, or had last.
    pub(crate) fn where_it_is(&self, known: Known) -> Known {
        let path = self.home.place_of(&known).unwrap_or_else(|| known.path.clone());
        Known { path, ..known }
    }

    /// The store's folder of the one workspace whose id begins like this, which [`Engine::open`] takes for its path.
    pub fn store_called(&self, beginning: &str) -> Option<PathBuf> {
        /// Fewer letters are more likely a folder's name.
        const FEWEST: usize = 4;
        match &self.home.stores_called(beginning)[..] {
            [store] if beginning.len() >= FEWEST => Some(store.clone()),
            _ => None,
        }
    }

    /// Workspaces that were captured at a path where another one is now, and whose folders are gone.
    pub fn hidden_at(&self, folder: &Path) -> Vec<WorkspaceId> {
        self.home.hidden_at(folder).into_iter().map(|known| known.id).collect()
    }

    /// Opens a workspace, making it known where it is not.
    pub fn open_or_init(&self, folder: &Path) -> Result<Workspace, OpenError> {
        match self.open(folder) {
            Err(OpenError::NotKnown(_)) => {
                self.init(folder, InitOptions::default())?;
                self.open(folder)
            }
            result => result,
        }
    }

    /// Makes a folder known, or changes the settings of one that is. Captures nothing.
    pub fn init(&self, folder: &Path, options: InitOptions) -> Result<view::Initialized, OpenError> {
        self.init_fork(folder, options, None)
    }

    /// The same for a folder that is a fork of a workspace.
    pub(crate) fn init_fork(
        &self,
        folder: &Path,
        options: InitOptions,
        forked_from: Option<WorkspaceId>,
    ) -> Result<view::Initialized, OpenError> {
        let failed = |source| OpenError::Folder { path: folder.to_owned(), source };
        let path = match self.home.of_store(folder) {
            // A store means its workspace here too, and is none itself.
            Some(known) => {
                let gone = || OpenError::Folder { path: known.path.clone(), source: io::ErrorKind::NotFound.into() };
                self.home.place_of(&known).ok_or_else(gone)?
            }
            None => canonical(folder).map_err(failed)?,
        };
        let root = Root::open(&path).map_err(failed)?;
        self.refuse_own(&path)?;
        if !options.force {
            self.refuse(&path)?;
            self.refuse_git(&path)?;
        }
        if let Some(budget) = options.budget.filter(|b| *b < MINIMUM_BUDGET) {
            return Err(OpenError::Budget(budget));
        }
        self.home.make()?;
        if let Some((_, place)) = self.home.displaced(&path) {
            self.follow_to(&place);
        }
        let _home = self.home.lock(PATIENCE)?;
        let already = self.home.settled(&path)?;
        let already_known = already.known.is_some();
        let earlier = already.known.map(|known| known.id);
        // What stood there before a fork is gone, and its records are not the fork's.
        let id = match earlier.filter(|_| forked_from.is_none()).or(already.unused) {
            Some(id) => id,
            None => WorkspaceId::from_random(clock::random().map_err(failed)?),
        };
        let store = Store::create(&self.home.folder(&id))?;
        let lock = store.lock(PATIENCE)?;
        let before = store.workspace_for_sure(&lock)?;
        let (readable, path_b64) = piton_model::Workspace::path_forms(&path);
        let record = piton_model::Workspace {
            id,
            path: readable,
            path_b64,
            root: before.as_ref().map_or(root.identity(), |b| b.root),
            line: before.as_ref().map_or(1, |b| b.line),
            budget: options.budget.or(before.as_ref().map(|b| b.budget)).unwrap_or(DEFAULT_BUDGET),
            forced: options.force || before.as_ref().is_some_and(|b| b.forced),
            forked_from: before.as_ref().map_or(forked_from, |b| b.forked_from.clone()),
            at: self.environment.clock.now(),
        };
        let same = before.as_ref().is_some_and(|b| piton_model::Workspace { at: b.at, ..record.clone() } == *b);
        if !same {
            let mut writer = store.write(&lock)?;
            writer.record(Record::Workspace(record.clone()))?;
            writer.commit(true, false)?;
        }
        self.home.note(&record)?;
        Ok(view::Initialized {
            id: record.id,
            path,
            store: store.folder().to_owned(),
            budget: record.budget,
            already_known,
            unread: already.unread.into_iter().map(unread_store).collect(),
        })
    }

    /// Every known workspace.
    pub fn workspaces(&self) -> Vec<PathBuf> {
        self.home.all().into_iter().map(|known| known.path).collect()
    }

    /// The known workspace at a canonical path. One that this user may not find is no unknown folder.
    fn known_or_refused(&self, path: &Path) -> Result<Known, OpenError> {
        if let Some(known) = self.home.of(path) {
            return Ok(known);
        }
        self.home.check_pointer(path)?;
        Err(OpenError::NotKnown(path.to_owned()))
    }

    /// Lets the store of a folder that is at another path now follow it. Nothing that was cut off there is ended: that is for
    /// whoever opens it.
    fn follow_to(&self, place: &Path) {
        let followed = || -> Result<(), OpenError> {
            let known = self.known_at(place)?;
            self.load(&known.id, known.path)?.follow_move()
        };
        // Where that fails, its own next event or command finds it by its identity.
        let _ = followed();
    }

    pub(crate) fn load(&self, id: &WorkspaceId, path: PathBuf) -> Result<Workspace, OpenError> {
        let store = self.home.open(id)?;
        let record = match store.workspace() {
            // Without the record nothing else can be done, so it is not left to a repair that somebody asks for.
            Err(error) if error.is_damaged_database() => {
                store.rebuild()?;
                store.workspace()
            }
            record => record,
        };
        let record = record?.ok_or_else(|| OpenError::NotKnown(path.clone()))?;
        let history = self.history(store.reader(), record, path);
        let workspace = Workspace { history, memory: store, recovered: Vec::new(), unended: None };
        // A home that cannot be written takes no capture either, and is no reason not to read.
        let _ = workspace.gather_transcripts();
        Ok(workspace)
    }

    /// What a workspace's store tells, for whoever only reads: what was cut off there is not ended, and nothing is noted.
    pub(crate) fn read(&self, id: &WorkspaceId, path: PathBuf) -> Result<History, OpenError> {
        let store = self.home.open(id)?.reader();
        let record = store.workspace()?.ok_or_else(|| OpenError::NotKnown(path.clone()))?;
        Ok(self.history(store, record, path))
    }

    fn history(&self, store: Arc<Reader>, record: piton_model::Workspace, path: PathBuf) -> History {
        History {
            store,
            home: self.home.clone(),
            environment: self.environment.clone(),
            record,
            path,
            progress: Arc::default(),
        }
    }
}

impl Workspace {
    /// What opening it had to end or take back.
    pub fn recovered(&self) -> &[view::Recovered] {
        &self.recovered
    }

    /// Why an operation that was cut off still waits. Nothing is captured or changed until it has its end.
    pub fn unended(&self) -> Option<&RecoverError> {
        self.unended.as_ref()
    }

    /// What the filesystem of the workspace's folder can do, tried out there and cleared up; none where the folder is gone.
    pub fn abilities(&mut self) -> Result<Option<Abilities>, CaptureError> {
        // No capture sees the probe. An operation may take minutes, and whoever asks this wants an answer.
        let locked = self.lock(MOMENT)?;
        let Standing::Same(root) = locked.standing().map_err(|e| locked.folder_error(e))? else { return Ok(None) };
        probe(&root).map(Some).map_err(|e| locked.folder_error(e))
    }

    /// The same folder at another path: the store follows it.
    fn follow_move(&mut self) -> Result<(), OpenError> {
        let recorded = self.record.place();
        if recorded == self.path {
            return Ok(());
        }
        // Two paths to one folder, such as a bind mount: it did not move.
        if Root::open(&recorded).is_ok_and(|root| root.identity().is_same(&self.record.root)) {
            return Ok(());
        }
        let displaced = self.home.displaced(&self.path).filter(|(known, _)| known.id != self.record.id);
        let mut locked = self.lock(PATIENCE)?;
        let moved = locked.record.clone().moved_to(&locked.path);
        let change = piton_model::Workspace { at: locked.environment.clock.now(), ..moved };
        locked.record_change(change)?;
        drop(locked);
        // Only now: two folders may have taken each other's place.
        if let Some((_, place)) = displaced {
            self.engine().follow_to(&place);
        }
        self.move_inner(&recorded);
        Ok(())
    }

    /// Whoever was in the folder when it moved moved with it. Worktrees in it cannot be told by their `.git` until somebody
    /// repairs that: it names the old path.
    fn move_inner(&self, from: &Path) {
        for known in self.home.all() {
            let Ok(inner) = known.path.strip_prefix(from) else { continue };
            let place = self.path.join(inner);
            if known.id != self.record.id && identity_at(&place).is_some_and(|there| there.is_same_moved(&known.root)) {
                self.engine().follow_to(&place);
            }
        }
    }
}

impl Locked<'_> {
    /// Records that the workspace is another folder or at another path now.
    pub(crate) fn record_change(&mut self, change: piton_model::Workspace) -> Result<(), StoreError> {
        self.store.check_workspace_rows()?;
        let mut writer = self.writer()?;
        writer.record(Record::Workspace(change.clone()))?;
        writer.commit(true, false)?;
        self.home.note(&change)?;
        self.record = change;
        Ok(())
    }
}

impl History {
    /// The engine that opened it, for other workspaces of the same conversation.
    pub(crate) fn engine(&self) -> Engine {
        Engine { home: self.home.clone(), environment: self.environment.clone() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its store.
    pub fn store_folder(&self) -> &Path {
        self.store.folder()
    }

    /// How far the scan that runs now is; for a progress bar on another thread.
    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// Whether its `.git` file leads to no repository, as that of a worktree after a move.
    pub fn is_cut_off_from_git(&self) -> bool {
        WorktreeLink::of(&self.path) == WorktreeLink::CutOff
    }

    /// The line of the folder that is captured here now: checkpoints of another line are another folder's, or imported.
    pub fn line(&self) -> u32 {
        self.record.line
    }

    pub(crate) fn standing(&self) -> io::Result<Standing> {
        match Root::open(&self.path) {
            Ok(root) if root.identity().is_same(&self.record.root) => Ok(Standing::Same(root)),
            Ok(_) if self.in_its_place().is_some() => Ok(Standing::Missing),
            Ok(root) => Ok(Standing::Other(root)),
            // A folder above it, or its own name, may be a file's by now.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(Standing::Missing)
            }
            Err(error) => Err(error),
        }
    }

    /// What stands at the workspace's path and is none of its business: it is neither captured nor written here.
    pub(crate) fn in_its_place(&self) -> Option<InItsPlace> {
        match canonical(&self.path) {
            Ok(path) if path != self.path => Some(InItsPlace::Symlink),
            // One that was there for a while and went leaves the place empty.
            Ok(path) if identity_at(&path).is_some() => {
                let is_other = self.home.of(&path).is_some_and(|of| of.id != self.record.id);
                is_other.then_some(InItsPlace::Workspace)
            }
            _ => None,
        }
    }

    /// The repository that the workspace's folder is in. That of something in its place is somebody else's.
    pub(crate) fn found_repository(&self) -> Option<Repository> {
        if self.in_its_place().is_some() { None } else { Repository::find(&self.path) }
    }

    /// Whether its folder is not there any more.
    pub fn is_missing(&self) -> bool {
        matches!(self.standing(), Ok(Standing::Missing))
    }

    pub(crate) fn rules(&self) -> RuleOptions {
        rules_for(&self.home, &self.environment)
    }

    pub(crate) fn limit(&self) -> Limit {
        if self.record.forced { Limit::NONE } else { self.environment.limit }
    }
}

fn unread_store((store, why): (PathBuf, StoreError)) -> view::UnreadStore {
    view::UnreadStore { store, reason: why.to_string() }
}

/// What is captured of any workspace of a home.
pub(crate) fn rules_for(home: &Home, environment: &Environment) -> RuleOptions {
    let mut never = vec![(home.path().to_owned(), SkipReason::Store)];
    let agent_state = environment.agent_state.iter().cloned().chain(home.agent_state().paths);
    never.extend(agent_state.map(|path| (path, SkipReason::AgentState)));
    let usual = RuleOptions::default();
    RuleOptions {
        global_excludes: environment.global_excludes.clone(),
        git: environment.git_config.clone(),
        home_folder: environment.home_folder.clone(),
        never,
        largest_file: environment.largest_file.unwrap_or(usual.largest_file),
        largest_ignored_file: environment.largest_ignored_file.unwrap_or(usual.largest_ignored_file),
        ..usual
    }
}
