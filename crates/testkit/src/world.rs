//! A workspace, a store and the engine over them, in a scratch folder.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use piton_agents::{Agent, Agents};
use piton_engine::model::SessionId;
use piton_engine::view::{Captured, LogEntry, OperationOutcome, TurnView};
use piton_engine::{CaptureOptions, Engine, Environment, RedoOptions, RewindOptions, TimelineOptions, Workspace};

use crate::snapshot::{Snapshot, snapshot};
use crate::tiny::TINY;

/// A scratch folder with a workspace `ws` and a home `home`.
pub struct World {
    scratch: Option<tempfile::TempDir>,
    base: PathBuf,
    pub engine: Engine,
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    /// An empty workspace.
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// An empty workspace with a modified environment.
    pub fn with(change: impl FnOnce(&mut Environment)) -> Self {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let mut world = Self::at(scratch.path(), change);
        world.scratch = Some(scratch);
        world
    }

    /// Like [`World::with`], in a folder of the caller's.
    pub fn at(base: &Path, change: impl FnOnce(&mut Environment)) -> Self {
        let base = base.canonicalize().expect("a scratch folder has a path");
        Self::laid_out(&base, &base, &base.join("home"), change)
    }

    /// With separate home and store.
    pub(crate) fn laid_out(base: &Path, home: &Path, store: &Path, change: impl FnOnce(&mut Environment)) -> Self {
        std::fs::create_dir_all(base.join("ws")).expect("a workspace can be made");
        let agents = Agents::default().with(TINY);
        let root = |agent: Agent| agent.transcripts?.root(Some(home), &|_| None);
        let transcripts = agents.iter().filter_map(|agent| Some((agent.name.to_owned(), root(agent)?))).collect();
        let mut environment = Environment { agents, transcripts, ..Environment::default() };
        change(&mut environment);
        Self { scratch: None, engine: Engine::new(store.to_owned(), environment), base: base.to_owned() }
    }

    /// Keeps a scratch folder for as long as the world exists.
    pub fn hold(&mut self, scratch: tempfile::TempDir) {
        self.scratch = Some(scratch);
    }

    /// The scratch folder.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// The workspace's folder.
    pub fn ws(&self) -> PathBuf {
        self.base.join("ws")
    }

    /// A path in the workspace.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.ws().join(path)
    }

    /// Writes a file, creating its folders. A new file replaces the old one, as editors do.
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("folders can be made");
        std::fs::write(&path, content).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        self
    }

    #[track_caller]
    pub fn read(&self, path: impl AsRef<Path>) -> String {
        let path = self.path(path);
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// Whether the path exists, even if only as a dangling symlink.
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).symlink_metadata().is_ok()
    }

    /// Removes a path, whatever it is.
    pub fn remove(&self, path: impl AsRef<Path>) -> &Self {
        let path = self.path(path);
        let is_folder = std::fs::symlink_metadata(&path).expect("what is removed is there").is_dir();
        if is_folder { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) }.expect("it goes");
        self
    }

    /// Creates a folder and its parents.
    pub fn folder(&self, path: impl AsRef<Path>) -> &Self {
        std::fs::create_dir_all(self.path(path)).expect("a folder can be made");
        self
    }

    pub fn link(&self, path: impl AsRef<Path>, target: impl AsRef<Path>) -> &Self {
        std::os::unix::fs::symlink(target, self.path(path)).expect("a link can be made");
        self
    }

    pub fn mode(&self, path: impl AsRef<Path>, mode: u32) -> &Self {
        let bits = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(self.path(path), bits).expect("bits can be set");
        self
    }

    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> &Self {
        std::fs::rename(self.path(from), self.path(to)).expect("it moves");
        self
    }

    /// The contents of the workspace.
    pub fn snapshot(&self) -> Snapshot {
        snapshot(&self.ws())
    }

    /// Opens the workspace, creating its store if necessary.
    pub fn open(&self) -> Workspace {
        self.engine.open_or_init(&self.ws()).unwrap_or_else(|e| panic!("the workspace opens: {e}"))
    }

    /// The turns of the timeline, or of one session, oldest first.
    pub fn turns(&self, session: Option<SessionId>) -> Vec<TurnView> {
        let options = TimelineOptions { session, ..TimelineOptions::default() };
        let entries = self.open().timeline(&options).expect("there is a timeline").entries;
        let turn = |entry| if let LogEntry::Turn(turn) = entry { Some(*turn) } else { None };
        entries.into_iter().rev().filter_map(turn).collect()
    }

    /// Captures, and returns the checkpoint's id.
    pub fn capture(&self) -> String {
        self.captured().checkpoint.checkpoint.id.to_string()
    }

    /// Captures, and returns the whole result.
    pub fn captured(&self) -> Captured {
        self.open().capture(&CaptureOptions::default()).unwrap_or_else(|e| panic!("a capture works: {e}"))
    }

    /// Rewinds everything, even if agents are working: a turn that a test leaves open counts as interrupted.
    pub fn rewind(&self, target: &str) -> OperationOutcome {
        let options = RewindOptions { interrupted: true, ..RewindOptions::default() };
        let outcome = self.open().rewind_now(target, &options);
        outcome.unwrap_or_else(|e| panic!("a rewind works: {e}"))
    }

    /// Takes back the last rewind, even if agents are working.
    pub fn redo(&self) -> OperationOutcome {
        let options = RedoOptions { interrupted: true, ..RedoOptions::default() };
        self.open().redo_now(&options).unwrap_or_else(|e| panic!("a redo works: {e}"))
    }

    /// Fails unless the store verifies completely.
    pub fn assert_sound(&self) {
        let found = self.open().verify(false).expect("the store can be checked");
        assert!(found.sound, "{:#?}", found.damage);
    }

    /// Fails unless the workspace is exactly this.
    #[track_caller]
    pub fn assert_is(&self, expected: &Snapshot) {
        let now = self.snapshot();
        assert!(now == *expected, "is | should be\n{}", now.differences(expected).join("\n"));
    }

    /// Captures, runs `happen`, rewinds, redoes; everything must be restored each time. `except` lists what piton
    /// leaves alone.
    #[track_caller]
    pub fn assert_comes_back(&self, except: &[&str], happen: impl FnOnce(&Self)) {
        let cut = |mut s: Snapshot| {
            for path in except {
                s = s.without(path);
            }
            s
        };
        let same = |is: Snapshot, should_be: &Snapshot, when: &str| {
            assert!(is == *should_be, "{when}: is | should be\n{}", is.differences(should_be).join("\n"));
        };
        let before = cut(self.snapshot());
        let id = self.capture();
        happen(self);
        let after = cut(self.snapshot());
        let outcome = self.rewind(&id);
        assert!(outcome.verified, "{outcome:?}");
        same(cut(self.snapshot()), &before, "after the rewind");
        if outcome.operation.is_some() {
            self.redo();
            same(cut(self.snapshot()), &after, "after the redo");
            self.rewind(&id);
            same(cut(self.snapshot()), &before, "after the second rewind");
        }
        self.assert_sound();
    }
}
