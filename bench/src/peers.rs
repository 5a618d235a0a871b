//! The contenders: piton and the two styles of shadow git repository, behind one trait.
//!
//! Each keeps its store outside the workspace and is measured as the processes that a caller would spawn, directly and
//! without a shell. What is done but not measured (creating a git repository, asking for a commit's id) is noted where
//! it is done.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::disk::Disk;
use crate::process::{self, Timed};
use crate::{Result, context};

/// A captured state, by the id that its contender gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State(pub String);

/// One way of keeping states of a workspace.
pub trait Contender {
    /// Its name in the table.
    fn label(&self) -> &'static str;
    /// Switches to an empty store, not measured. The old one stays on the disk: see `rounds` on deleting.
    fn start_anew(&mut self) -> Result<()>;
    /// Captures into an empty store.
    fn first_capture(&mut self) -> Result<Timed<State>>;
    /// Captures the workspace as it is.
    fn capture(&mut self) -> Result<Timed<State>>;
    /// What changed from one state to another, as text.
    fn diff(&mut self, from: &State, to: &State) -> Result<Timed<Vec<u8>>>;
    /// Makes the workspace equal to a state.
    fn restore(&mut self, to: &State) -> Result<Duration>;
    /// Whether a restore writes every file, changed or not: then all contenders must read all of them again afterwards.
    fn rewrites_every_file(&self) -> bool {
        false
    }
    /// The size of the store.
    fn disk(&self) -> Result<Disk>;
    /// Runs the store's housekeeping, if it has any worth measuring, and returns its size then.
    fn disk_after_housekeeping(&mut self) -> Result<Option<Disk>> {
        Ok(None)
    }
}

/// Where the contenders of one tree work.
#[derive(Debug, Clone)]
pub struct BenchFolders {
    /// The folder that contains everything of this tree.
    pub root: PathBuf,
    /// Shared by all contenders.
    pub workspace: PathBuf,
    /// An empty home folder, so that nobody's settings apply.
    pub home: PathBuf,
}

impl BenchFolders {
    /// Creates the folders; the workspace itself is left to the tree's writer.
    pub fn create(root: PathBuf) -> Result<Self> {
        if root.exists() {
            return Err(format!("`{}` is already there, from an earlier run", root.display()).into());
        }
        let home = root.join("home");
        fs::create_dir_all(&home).map_err(context(&home))?;
        Ok(Self { workspace: root.join("ws"), home, root })
    }
}

/// Piton, spawned as a command, without a daemon.
#[derive(Debug)]
pub struct Piton {
    program: PathBuf,
    place: BenchFolders,
    store: PathBuf,
}

impl Piton {
    /// It has no store before `start_anew`.
    pub fn new(program: &Path, place: &BenchFolders) -> Self {
        Self { program: program.to_owned(), place: place.clone(), store: PathBuf::new() }
    }

    fn command(&self) -> Command {
        let mut command = process::command(&self.program, &self.place.workspace, &self.place.home);
        command.env("PITON_HOME", &self.store).env("NO_COLOR", "1");
        command
    }

    fn in_workspace<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<Timed<Vec<u8>>> {
        let mut command = self.command();
        command.arg("--workspace").arg(&self.place.workspace).args(args);
        process::run(command)
    }

    fn checkpoint(&self, name: Option<&str>) -> Result<Timed<State>> {
        let mut args = vec!["checkpoint"];
        args.extend(name);
        args.push("--json");
        let ran = self.in_workspace(&args)?;
        let answer = parse(&ran.value)?;
        // A checkpoint that leaves files out would be fast for the wrong reason.
        let skipped = answer.pointer("/checkpoint/skipped").and_then(Value::as_array);
        if skipped.is_some_and(|skipped| !skipped.is_empty()) {
            return Err(format!("piton skipped files of the bench's tree: {answer}").into());
        }
        let id = answer.pointer("/checkpoint/id").and_then(Value::as_str);
        let id = id.ok_or_else(|| format!("piton's answer names no checkpoint: {answer}"))?;
        Ok(Timed { value: State(id.to_owned()), took: ran.took })
    }
}

impl Contender for Piton {
    fn label(&self) -> &'static str {
        "piton"
    }

    fn start_anew(&mut self) -> Result<()> {
        self.store = new_store(&self.place, "piton-home")?;
        Ok(())
    }

    fn first_capture(&mut self) -> Result<Timed<State>> {
        let mut init = self.command();
        init.arg("init").arg(&self.place.workspace);
        let init = process::run(init)?;
        let mut first = self.checkpoint(Some("first"))?;
        first.took += init.took;
        Ok(first)
    }

    fn capture(&mut self) -> Result<Timed<State>> {
        self.checkpoint(None)
    }

    fn diff(&mut self, from: &State, to: &State) -> Result<Timed<Vec<u8>>> {
        self.in_workspace(&["diff", &from.0, &to.0])
    }

    fn restore(&mut self, to: &State) -> Result<Duration> {
        let ran = self.in_workspace(&["rewind", &to.0, "--yes", "--json"])?;
        let answer = parse(&ran.value)?;
        if answer.get("verified") != Some(&Value::Bool(true)) {
            return Err(format!("piton's rewind is not verified: {answer}").into());
        }
        Ok(ran.took)
    }

    fn disk(&self) -> Result<Disk> {
        Disk::of(&self.store)
    }
}

/// How a tool uses its shadow git repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `add -A`, `write-tree`; back with `read-tree`, `checkout-index -a -f`, `clean`.
    WriteTree,
    /// `add -A`, `commit`; back with `reset --hard`, `clean`.
    Commit,
}

/// A shadow git repository next to the workspace.
#[derive(Debug)]
pub struct Git {
    style: Style,
    place: BenchFolders,
    store: PathBuf,
}

impl Git {
    /// It has no store before `start_anew`.
    pub fn new(style: Style, place: &BenchFolders) -> Self {
        Self { style, place: place.clone(), store: PathBuf::new() }
    }

    fn git(&self, args: &[&str]) -> Result<Timed<Vec<u8>>> {
        let mut command = process::command("git", &self.place.workspace, &self.place.home);
        command
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .arg(flag("--git-dir=", &self.store))
            .arg(flag("--work-tree=", &self.place.workspace))
            .args(args);
        process::run(command)
    }
}

impl Contender for Git {
    fn label(&self) -> &'static str {
        match self.style {
            Style::WriteTree => "git add+write-tree",
            Style::Commit => "git add+commit",
        }
    }

    fn start_anew(&mut self) -> Result<()> {
        let name = match self.style {
            Style::WriteTree => "git-write-tree",
            Style::Commit => "git-commit",
        };
        self.store = new_store(&self.place, name)?;
        self.git(&["init", "-q"])?;
        // Git at its best for many files, and no housekeeping in the middle of a measurement.
        for (key, value) in [
            ("core.untrackedCache", "true"),
            ("feature.manyFiles", "true"),
            ("core.fsmonitor", "false"),
            ("gc.auto", "0"),
            ("maintenance.auto", "false"),
            ("commit.gpgsign", "false"),
            ("user.name", "bench"),
            ("user.email", "bench@example.invalid"),
        ] {
            self.git(&["config", key, value])?;
        }
        Ok(())
    }

    fn first_capture(&mut self) -> Result<Timed<State>> {
        self.capture()
    }

    fn capture(&mut self) -> Result<Timed<State>> {
        let add = self.git(&["add", "-A"])?;
        let (kept, id) = match self.style {
            Style::WriteTree => {
                let tree = self.git(&["write-tree"])?;
                (tree.took, tree.value)
            }
            Style::Commit => {
                let commit = self.git(&["commit", "-q", "--allow-empty", "-m", "x"])?;
                // Not measured: a caller could read the id from the ref.
                (commit.took, self.git(&["rev-parse", "HEAD"])?.value)
            }
        };
        Ok(Timed { value: State(String::from_utf8(id)?.trim().to_owned()), took: add.took + kept })
    }

    fn diff(&mut self, from: &State, to: &State) -> Result<Timed<Vec<u8>>> {
        self.git(&["diff", &from.0, &to.0])
    }

    fn restore(&mut self, to: &State) -> Result<Duration> {
        let steps: &[&[&str]] = match self.style {
            Style::WriteTree => &[&["read-tree", &to.0], &["checkout-index", "-a", "-f"], &["clean", "-fdq"]],
            Style::Commit => &[&["reset", "-q", "--hard", &to.0], &["clean", "-fdq"]],
        };
        steps.iter().map(|step| Ok(self.git(step)?.took)).sum()
    }

    fn rewrites_every_file(&self) -> bool {
        // `read-tree` discards what the index knew of the files, so `checkout-index` finds all of them changed.
        self.style == Style::WriteTree
    }

    fn disk(&self) -> Result<Disk> {
        Disk::of(&self.store)
    }

    fn disk_after_housekeeping(&mut self) -> Result<Option<Disk>> {
        // Bare trees are garbage to `gc`, which sets them apart and gains less: the commits are git at its best.
        if self.style == Style::WriteTree {
            return Ok(None);
        }
        self.git(&["gc", "-q"])?;
        process::settle()?;
        self.disk().map(Some)
    }
}

fn flag(name: &str, path: &Path) -> std::ffi::OsString {
    let mut flag = std::ffi::OsString::from(name);
    flag.push(path);
    flag
}

/// A new folder of that name, with the first free number.
fn new_store(place: &BenchFolders, name: &str) -> Result<PathBuf> {
    let mut candidates = (1..).map(|number| place.root.join(format!("{name}-{number}")));
    let store = candidates.find(|store| !store.exists()).expect("numbers do not run out");
    fs::create_dir(&store).map_err(context(&store))?;
    Ok(store)
}

fn parse(answer: &[u8]) -> Result<Value> {
    serde_json::from_slice(answer)
        .map_err(|error| format!("piton's answer is not JSON ({error}):\n{}", String::from_utf8_lossy(answer)).into())
}
