//! The user's own git: the only place that runs it.
//!
//! Used only when somebody asked for git state or an export; captures and plain rewinds never get here. Git runs
//! without hooks, without a terminal to prompt on and without variables that would direct it to another repository, so
//! that it does what its arguments say. A git that does nothing for too long is ended. Never runs a `git` from the
//! folder it works on.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::obstacle::obstacle;

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git is not installed, or not in PATH")]
    NotFound,
    /// It would wait forever, so it was not run.
    #[error("git would wait for ever: {} is a pipe or a device", path.display())]
    Obstacle {
        /// What is in the place of a regular file.
        path: PathBuf,
    },
    /// It could not be started, or communication failed.
    #[error("git cannot be run: {0}")]
    Io(#[from] io::Error),
    /// It ended with an error: the first line of its message.
    #[error("git {command}: {said}")]
    Failed { command: String, said: String },
    /// It did nothing for too long, and was ended.
    #[error("git {command}: it did nothing for {seconds} seconds and was ended")]
    TimedOut { command: String, seconds: u64 },
    /// Its output exceeded the limit.
    #[error("git {command}: it said more than {most} bytes")]
    TooMuch { command: String, most: usize },
}

/// Git, run in a folder.
#[derive(Clone, Debug)]
pub struct Git {
    program: PathBuf,
    folder: PathBuf,
    index: Option<PathBuf>,
    /// The repository and a work tree other than its own.
    work_tree: Option<(PathBuf, PathBuf)>,
    patience: Duration,
    /// The names of filters that have a program configured, once looked up.
    filters: Arc<OnceLock<HashSet<String>>>,
}

/// How long git may neither read nor write anything, nor end: it reads a million files in less.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long it has to remove its own locks when it is ended.
const GRACE: Duration = Duration::from_secs(2);
/// Polling interval.
const TICK: Duration = Duration::from_millis(100);

/// Most bytes of output: the names of a million files.
const MOST_SAID: usize = 256 << 20;
/// Most bytes of error output; the rest is discarded.
const MOST_COMPLAINTS: usize = 64 << 10;

/// For every run: nothing of the repository's or the user's is run or waited for, and the index is a single file.
const SETTINGS: [&str; 6] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.splitIndex=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "core.quotePath=false",
];

/// Git's variables that say where the user's git and its settings are; all others are removed.
const KEPT: [&str; 4] = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH"];

impl Git {
    /// Git in a folder: `program` if given, else the one in `PATH`.
    ///
    /// # Errors
    /// If there is no git, or it would block on something in its repository.
    pub fn at(folder: &Path, program: Option<&Path>) -> Result<Self, GitError> {
        let program = match program {
            Some(program) => Some(program.to_owned()).filter(|program| is_program(program)),
            None => in_path(),
        };
        let program = program.ok_or(GitError::NotFound)?;
        if let Some(path) = obstacle(folder) {
            return Err(GitError::Obstacle { path });
        }
        let (folder, filters) = (folder.to_owned(), Arc::default());
        Ok(Self { program, folder, index: None, work_tree: None, patience: PATIENCE, filters })
    }

    /// The same with another index.
    #[must_use]
    pub fn with_index(&self, file: &Path) -> Self {
        Self { index: Some(file.to_owned()), ..self.clone() }
    }

    /// The same with another work tree.
    #[must_use]
    pub fn with_work_tree(&self, git_dir: &Path, work_tree: &Path) -> Self {
        Self {
            folder: work_tree.to_owned(),
            work_tree: Some((git_dir.to_owned(), work_tree.to_owned())),
            ..self.clone()
        }
    }

    /// The same in another folder.
    #[must_use]
    pub(crate) fn in_folder(&self, folder: &Path) -> Self {
        Self { folder: folder.to_owned(), ..self.clone() }
    }

    /// Runs it and returns its output; an error if it did not succeed.
    pub fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<Vec<u8>, GitError> {
        self.run_with(arguments, &[])
    }

    /// Like [`Git::run`], with input on stdin.
    pub fn run_with<A: AsRef<OsStr>>(&self, arguments: &[A], input: &[u8]) -> Result<Vec<u8>, GitError> {
        let (status, said, complaints) = self.talk(arguments, |stdin| stdin.write_all(input))?;
        // Unread input was not wanted; the exit status says whether that was right.
        if status.success() { Ok(said) } else { Err(failed(arguments, status, &complaints)) }
    }

    /// Runs it for a yes or no: exit codes 0 and 1.
    pub fn ask<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<Option<Vec<u8>>, GitError> {
        let (status, said, complaints) = self.talk(arguments, |_| Ok(()))?;
        match status.code() {
            Some(0) => Ok(Some(said)),
            Some(1) => Ok(None),
            _ => Err(failed(arguments, status, &complaints)),
        }
    }

    /// Runs it while `feed` writes to its stdin. The outer error of `feed` is the caller's own and ends git at once;
    /// the inner one is the stream's, and git reports the reason.
    pub fn feed<A: AsRef<OsStr>, E: From<GitError>>(
        &self,
        arguments: &[A],
        feed: impl FnOnce(&mut dyn Write) -> Result<io::Result<()>, E>,
    ) -> Result<Vec<u8>, E> {
        let mut refused = None;
        let (status, said, complaints) = self.talk(arguments, |stdin| {
            let mut stdin = io::BufWriter::with_capacity(256 << 10, stdin);
            match feed(&mut stdin) {
                Ok(written) => written.and_then(|()| stdin.flush()),
                Err(error) => {
                    refused = Some(error);
                    Err(io::ErrorKind::Interrupted.into())
                }
            }
        })?;
        match refused {
            Some(error) => Err(error),
            None if status.success() => Ok(said),
            None => Err(failed(arguments, status, &complaints).into()),
        }
    }

    /// The filters that have a program configured. No run uses them: git compares a file through its clean filter
    /// whenever it writes an index, and that is a program of the user's, which may take any time.
    pub(super) fn filters(&self) -> Result<&HashSet<String>, GitError> {
        if let Some(known) = self.filters.get() {
            return Ok(known);
        }
        let asked = ["config", "-z", "--name-only", "--get-regexp", r"^filter\..*\.(clean|smudge|process)$"];
        // If the settings cannot be read, git reports that when it is run for real.
        let (_, said, _) = self.talk_without(&asked, &HashSet::new(), |_| Ok(()))?;
        let names = said.split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
        let of_key = |key: &str| Some(key.strip_prefix("filter.")?.rsplit_once('.')?.0.to_owned());
        Ok(self.filters.get_or_init(|| names.filter_map(of_key).collect()))
    }

    fn talk<A: AsRef<OsStr>>(
        &self,
        arguments: &[A],
        speak: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(ExitStatus, Vec<u8>, Vec<u8>), GitError> {
        self.talk_without(arguments, self.filters()?, speak)
    }

    /// Starts it and reads and writes at the same time, so that neither side blocks the other.
    fn talk_without<A: AsRef<OsStr>>(
        &self,
        arguments: &[A],
        filters: &HashSet<String>,
        speak: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(ExitStatus, Vec<u8>, Vec<u8>), GitError> {
        let mut child = self.command(arguments, filters).spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => GitError::NotFound,
            _ => GitError::Io(error),
        })?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(mut stderr)) = (stdin, stdout, stderr) else {
            return Err(end(&mut child, io::Error::other("it has no streams")));
        };
        let group = Pid::from_child(&child);
        let moved = AtomicU64::new(0);
        let (over, ended) = channel::<()>();
        let (spoken, said, complaints, status, is_stopped) = std::thread::scope(|scope| {
            let said = scope.spawn(|| {
                let mut bytes = Vec::new();
                // Dropped at the limit: git ends when nobody reads its output.
                let read = Counted(stdout, &moved).take(MOST_SAID as u64 + 1).read_to_end(&mut bytes);
                read.map(|_| bytes)
            });
            let complaints = scope.spawn(move || {
                let mut bytes = Vec::new();
                let read = (&mut stderr).take(MOST_COMPLAINTS as u64).read_to_end(&mut bytes);
                let rest = io::copy(&mut stderr, &mut io::sink());
                read.and(rest).map(|_| bytes)
            });
            let (moved_so_far, patience) = (&moved, self.patience);
            let watch = scope.spawn(move || stop_when_idle(group, patience, moved_so_far, &ended));
            let mut stdin = Counted(stdin, &moved);
            let spoken = speak(&mut stdin);
            if spoken.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {
                // The caller stopped in the middle: git must not mistake its input so far for all of it.
                let _ = child.kill();
            }
            drop(stdin);
            let (said, complaints) = (said.join(), complaints.join());
            let status = child.wait();
            drop(over);
            (spoken, said, complaints, status, watch.join().unwrap_or(false))
        });
        let status = status?;
        if is_stopped {
            return Err(GitError::TimedOut { command: name_of(arguments), seconds: self.patience.as_secs() });
        }
        let broken = || io::Error::other("reading its answer failed");
        let said = said.map_err(|_| broken())??;
        let complaints = complaints.map_err(|_| broken())??;
        match spoken {
            // It ended before reading all its input, and its status says why; or the caller stopped and knows why.
            Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::Interrupted) => {}
            other => other?,
        }
        if said.len() > MOST_SAID {
            return Err(GitError::TooMuch { command: name_of(arguments), most: MOST_SAID });
        }
        Ok((status, said, complaints))
    }

    fn command<A: AsRef<OsStr>>(&self, arguments: &[A], filters: &HashSet<String>) -> Command {
        let mut command = Command::new(&self.program);
        // With its own process group, everything it starts can be ended with it, and piton handles Ctrl-C.
        command
            .process_group(0)
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (name, _) in std::env::vars_os() {
            let is_git = name.as_encoded_bytes().starts_with(b"GIT_");
            if is_git && !KEPT.iter().any(|kept| name == *kept) {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C").env("PITON_HOOK", "off");
        command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0").env("GIT_LITERAL_PATHSPECS", "1");
        // Nothing is fetched, and no object replaces another: piton's own reader supports neither.
        command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_NO_REPLACE_OBJECTS", "1");
        command.env("GIT_ALLOW_PROTOCOL", "none");
        // Settings could make it write traces to a file or a socket.
        command.env("GIT_TRACE2", "0").env("GIT_TRACE2_EVENT", "0").env("GIT_TRACE2_PERF", "0");
        command.env("GIT_COMMITTER_NAME", "piton").env("GIT_COMMITTER_EMAIL", "piton@localhost");
        if let Some(index) = &self.index {
            command.env("GIT_INDEX_FILE", index);
        }
        if let Some((git_dir, work_tree)) = &self.work_tree {
            command.env("GIT_DIR", git_dir).env("GIT_WORK_TREE", work_tree);
        }
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        for name in filters {
            for (key, value) in [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")] {
                command.arg("-c").arg(format!("filter.{name}.{key}={value}"));
            }
        }
        command.args(arguments);
        command
    }
}

/// A stream that counts its bytes.
struct Counted<'a, S>(S, &'a AtomicU64);

impl<S: Read> Read for Counted<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(buffer)?;
        self.1.fetch_add(count as u64, Relaxed);
        Ok(count)
    }
}

impl<S: Write> Write for Counted<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.0.write(bytes)?;
        self.1.fetch_add(count as u64, Relaxed);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Ends git and everything it started once nothing has moved for too long. Returns whether it had to.
fn stop_when_idle(group: Pid, patience: Duration, moved: &AtomicU64, ended: &Receiver<()>) -> bool {
    let is_running = |time: Duration| matches!(ended.recv_timeout(time), Err(RecvTimeoutError::Timeout));
    let (mut seen, mut since) = (0, Instant::now());
    while is_running(TICK.min(patience)) {
        let now = moved.load(Relaxed);
        if now != seen {
            (seen, since) = (now, Instant::now());
        } else if since.elapsed() >= patience {
            // Terminated politely first, so that it removes its own locks.
            let _ = kill_process_group(group, Signal::TERM);
            if is_running(GRACE) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            return true;
        }
    }
    false
}

fn end(child: &mut Child, error: io::Error) -> GitError {
    let _ = child.kill();
    let _ = child.wait();
    GitError::Io(error)
}

/// The command's name for display: the first argument that is not a setting.
fn name_of<A: AsRef<OsStr>>(arguments: &[A]) -> String {
    let mut words = arguments.iter().map(AsRef::as_ref);
    let mut name = words.next();
    while name.is_some_and(|word| word == "-c") {
        words.next();
        name = words.next();
    }
    name.unwrap_or_default().to_string_lossy().into_owned()
}

fn failed<A: AsRef<OsStr>>(arguments: &[A], status: ExitStatus, complaints: &[u8]) -> GitError {
    let text = String::from_utf8_lossy(complaints);
    let said = text.lines().map(str::trim).find(|line| !line.is_empty()).map_or_else(
        || status.to_string(),
        |line| line.strip_prefix("fatal: ").or_else(|| line.strip_prefix("error: ")).unwrap_or(line).to_owned(),
    );
    GitError::Failed { command: name_of(arguments), said }
}

/// The git in `PATH`. Relative folders in it are skipped: they would lead into the folder that git works on.
fn in_path() -> Option<PathBuf> {
    let path: OsString = std::env::var_os("PATH")?;
    std::env::split_paths(&path).filter(|folder| folder.is_absolute()).map(|f| f.join("git")).find(|p| is_program(p))
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_gits_own_first_line() {
        let scratch = tempfile::tempdir().unwrap();
        let git = Git::at(scratch.path(), None).unwrap();
        let error = git.run(&["rev-parse", "--verify", "HEAD"]).unwrap_err();
        assert!(error.to_string().starts_with("git rev-parse: not a git repository"), "{error}");
        let missing = Git::at(scratch.path(), Some(&scratch.path().join("git")));
        assert!(matches!(missing, Err(GitError::NotFound)));
    }

    #[test]
    fn much_is_said_and_heard_at_once() {
        let scratch = tempfile::tempdir().unwrap();
        let git = Git::at(scratch.path(), None).unwrap();
        git.run(&["init", "-q"]).unwrap();
        let input = "0123456789012345678901234567890123456789\n".repeat(50_000);
        let said = git.run_with(&["cat-file", "--batch-check"], input.as_bytes()).unwrap();
        assert_eq!(said.iter().filter(|b| **b == b'\n').count(), 50_000);
    }

    #[test]
    fn one_that_does_nothing_is_ended_with_all_that_it_started_and_one_that_works_is_not() {
        let scratch = tempfile::tempdir().unwrap();
        let script = |text: &str| {
            let program = scratch.path().join("program");
            std::fs::write(&program, format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
            Git { patience: Duration::from_millis(700), ..Git::at(scratch.path(), Some(&program)).unwrap() }
        };
        let began = Instant::now();
        let error = script("sleep 60 & sleep 61").run(&["x"]).unwrap_err();
        assert!(matches!(error, GitError::TimedOut { .. }), "{error}");
        assert!(began.elapsed() < Duration::from_secs(30));
        let error = script("trap '' TERM; cat >/dev/null; while :; do sleep 60; done").run_with(&["x"], b"y");
        assert!(matches!(error, Err(GitError::TimedOut { .. })));
        let said = script("for n in 1 2 3 4 5 6; do echo $n; sleep 0.3; done").run(&["x"]).unwrap();
        assert_eq!(said, b"1\n2\n3\n4\n5\n6\n");
    }

    #[test]
    fn a_hook_of_the_repository_is_not_run() {
        let scratch = tempfile::tempdir().unwrap();
        let git = Git::at(scratch.path(), None).unwrap();
        git.run(&["init", "-q", "-b", "main"]).unwrap();
        let (hook, ran) = (scratch.path().join(".git/hooks/reference-transaction"), scratch.path().join("ran"));
        std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
        std::fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", ran.display())).unwrap();
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
        let tree = git.run(&["write-tree"]).unwrap();
        let tree = String::from_utf8(tree).unwrap();
        git.run(&["update-ref", "refs/piton/x", tree.trim()]).unwrap();
        assert!(!ran.exists());
    }
}
