//! Runs the real binary and records what it does to the disk.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::disk::{Disk, Effect, Node};
use super::recording::{Recording, Synced};
use super::trace::{CALLS, Reader};
use crate::snapshot::Snapshot;
use crate::{World, kept, not_run};

/// The folders that a state consists of: the workspace and piton's home.
pub(super) const FOLDERS: [&str; 2] = ["ws", "home"];

/// A recorded command, and what must be true while it runs and once it has ended.
#[derive(Clone, Debug)]
pub struct Phase {
    pub command: String,
    /// How many events had happened when it began.
    pub began: usize,
    /// How many events had happened when it ended.
    pub ended: usize,
    /// What the workspace may be if the power fails meanwhile.
    pub allowed: Vec<Snapshot>,
    /// What it is once the command has reported success.
    pub after: Snapshot,
    /// The checkpoints that no power cut may lose meanwhile.
    pub promised: Vec<String>,
    /// The checkpoints that no power cut may lose once it has ended.
    pub promised_after: Vec<String>,
}

/// A world whose disk is being recorded.
pub struct Recorder {
    scratch: tempfile::TempDir,
    _base: tempfile::TempDir,
    recorded: Recorded,
    binary: &'static str,
    boot: u32,
}

/// What was recorded, and everything needed to judge what a power cut leaves of it.
pub struct Recorded {
    /// On a fast disk.
    pub world: World,
    pub recording: Recording,
    pub phases: Vec<Phase>,
    /// The contents of each checkpoint.
    pub known: HashMap<String, Snapshot>,
    /// The checkpoints that no power cut may lose any more.
    pub promised: Vec<String>,
}

impl Recorder {
    /// An empty world. `None`, and reported, if strace cannot be used here.
    pub fn new(what: &str, binary: &'static str) -> Option<Self> {
        let tried = Command::new("strace").args(["-f", "-y", "-xx", "-o", "/dev/null", "true"]).output();
        let why = match tried {
            Ok(done) if done.status.success() => None,
            Ok(done) => Some(format!("strace does not work here: {}", String::from_utf8_lossy(&done.stderr).trim())),
            Err(error) => Some(format!("strace cannot be run: {error}")),
        };
        if let Some(why) = why {
            not_run(what, &why);
            return None;
        }
        let memory = Path::new("/dev/shm");
        let base = tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()).expect("a scratch folder");
        let world = World::at(base.path(), |_| {});
        let recording = Recording::new(Disk::read(world.base()));
        let recorded = Recorded { world, recording, phases: Vec::new(), known: HashMap::new(), promised: Vec::new() };
        let scratch = tempfile::tempdir().expect("a scratch folder");
        Some(Self { scratch, _base: base, recorded, binary, boot: 1 })
    }

    /// The world, for inspection and preparation. What is changed here and not by [`Recorder::edit`] is not recorded.
    pub fn world(&self) -> &World {
        &self.recorded.world
    }

    /// The user or an agent changes files; all of it is on the disk before anything else happens.
    pub fn edit(&mut self, change: impl FnOnce(&World)) {
        change(&self.recorded.world);
        let now = Disk::read(self.recorded.world.base());
        let recording = &mut self.recorded.recording;
        let then: Vec<(PathBuf, (Node, u32))> =
            recording.live.paths().into_iter().map(|(path, found)| (path, found.clone())).collect();
        let there = now.paths();
        for (path, found) in then.iter().rev() {
            let kind = |node: &Node| std::mem::discriminant(node);
            match there.get(path) {
                Some(new) if *new == found => {}
                Some((Node::Folder, mode)) if kind(&found.0) == kind(&Node::Folder) => {
                    let inode = recording.live.find(path).expect("what is listed is there");
                    recording.happens_durably(Effect::Mode(inode, *mode));
                }
                _ => set_name(recording, path, None),
            }
        }
        for (path, (node, mode)) in there {
            if recording.live.find(&path).is_none() {
                set_name(recording, &path, Some((node.clone(), *mode)));
            }
        }
    }

    /// Time passes: everything written so far is on the disk. Power cuts come only after this.
    pub fn settle(&mut self) {
        self.recorded.phases.clear();
        let recording = &mut self.recorded.recording;
        recording.synced(Synced::All, recording.events.len());
    }

    /// Runs piton. `is_durable`: once it has ended, no power cut loses any existing checkpoint.
    pub fn run(&mut self, args: &[&str], is_durable: bool) -> String {
        self.run_with(args, b"", is_durable)
    }

    /// Like [`Recorder::run`], with input.
    pub fn run_with(&mut self, args: &[&str], input: &[u8], is_durable: bool) -> String {
        let before = self.recorded.world.snapshot();
        self.run_among(args, input, is_durable, &[before])
    }

    /// Like [`Recorder::run_with`], where the workspace may also be one of `before` while the command runs.
    pub fn run_among(&mut self, args: &[&str], input: &[u8], is_durable: bool, before: &[Snapshot]) -> String {
        let began = self.recorded.recording.events.len();
        let output = self.trace(args, input);
        let recorded = &mut self.recorded;
        let after = recorded.world.snapshot();
        let mut allowed = before.to_vec();
        if !allowed.contains(&after) {
            allowed.push(after.clone());
        }
        // From a copy: opening the store writes to it.
        recorded.recording.live.restore(self.scratch.path(), &["home"]);
        let promised = recorded.promised.clone();
        if let Some(store) = store_in(&self.scratch.path().join("home")) {
            let found = kept(&store).expect("the store opens");
            if is_durable {
                recorded.promised = found.iter().map(|(id, _)| id.clone()).collect();
            }
            for (id, holds) in found {
                let holds = holds.unwrap_or_else(|error| panic!("{id}: {error}"));
                if let Some(known) = recorded.known.insert(id.clone(), holds.clone()) {
                    assert!(known == holds, "{id} holds something else now");
                }
            }
        }
        let ended = recorded.recording.events.len();
        let promised_after = recorded.promised.clone();
        let command = args.join(" ");
        recorded.phases.push(Phase { command, began, ended, allowed, after, promised, promised_after });
        output
    }

    pub fn finish(self) -> (Recorded, impl Sized) {
        (self.recorded, (self.scratch, self._base))
    }

    pub fn recorded(&self) -> &Recorded {
        &self.recorded
    }

    /// The power fails, the machine reboots with this disk, and a new recording begins. Returns what the last phase
    /// allows the workspace to be.
    pub fn cut(&mut self, phase: usize, disk: &Disk) -> Vec<Snapshot> {
        let recorded = &mut self.recorded;
        disk.restore(recorded.world.base(), &FOLDERS);
        recorded.recording = Recording::new(Disk::read(recorded.world.base()));
        let phase = recorded.phases[phase].clone();
        recorded.promised = phase.promised;
        recorded.phases.clear();
        self.boot += 1;
        phase.allowed
    }

    fn trace(&mut self, args: &[&str], input: &[u8]) -> String {
        let recorded = &mut self.recorded;
        let base = recorded.world.base().to_owned();
        let log = self.scratch.path().join("trace");
        let mut command = Command::new("strace");
        // Not every machine and not every strace knows every one of them.
        let calls = CALLS.split(',').map(|call| format!("?{call}")).collect::<Vec<_>>().join(",");
        command.args(["-f", "-y", "-xx", "-s", "1000000000", "-e", "signal=none", "-e"]).arg(format!("trace={calls}"));
        command.arg("-o").arg(&log).arg("--").arg(self.binary).args(args);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).env("HOME", &base).env("PITON_HOME", base.join("home"));
        // The machine's own boot id is for those who open what is left.
        command.env("PITON_TEST_BOOT_ID", format!("run {} of the machine", self.boot));
        command.current_dir(recorded.world.ws()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("strace runs");
        let sent = child.stdin.take().expect("a pipe").write_all(input);
        let done = child.wait_with_output().expect("it ends");
        sent.expect("it reads");
        let said = crate::both(&done);
        assert!(done.status.success(), "{args:?}: {said}");
        let trace = std::fs::read_to_string(&log).expect("strace wrote a trace");
        Reader::new(&mut recorded.recording, &base, umask()).read(&trace);
        let now = Disk::read(&base);
        let (is, should_be) = (now.paths(), recorded.recording.live.paths());
        for path in is.keys().chain(should_be.keys()) {
            assert!(
                is.get(path) == should_be.get(path),
                "{args:?} did something to {} that is not in the trace",
                path.display()
            );
        }
        String::from_utf8_lossy(&done.stdout).into_owned()
    }
}

/// The only store in a home.
pub(super) fn store_in(home: &Path) -> Option<PathBuf> {
    let mut stores = std::fs::read_dir(home.join("workspaces")).ok()?;
    let store = stores.next()?.ok()?.path();
    assert!(stores.next().is_none(), "two stores");
    Some(store)
}

fn set_name(recording: &mut Recording, path: &Path, to: Option<(Node, u32)>) {
    use std::os::unix::ffi::OsStrExt;
    let folder =
        path.parent().and_then(|folder| recording.live.find(folder)).expect("a folder comes before its entries");
    let name = path.file_name().expect("a path has a name").as_bytes().to_vec();
    let to = to.map(|(node, mode)| recording.make(node, mode));
    recording.happens_durably(Effect::Names(vec![(folder, name, to)]));
}

fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o022)
}
