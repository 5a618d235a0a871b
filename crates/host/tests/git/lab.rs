//! A repository to experiment with, and git's own answers to compare with.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use piton_host::git::{FileStat, Limits, Repository, SeenByCapture, SeenPath};
use piton_host::{Clock, Limit, Progress, Root, RuleOptions, ScanOptions, Sink, SystemClock, scan};
use piton_model::git::{GitState, StagedKind};
use piton_model::{ObjectId, WorkspacePath};

use crate::real::{git, git_command};

/// A folder for one test, with a repository at `path`.
pub struct Lab {
    _folder: tempfile::TempDir,
    pub path: PathBuf,
}

impl Lab {
    /// A repository without a commit.
    pub fn new() -> Self {
        Self::with(&["init", "-q"])
    }

    pub fn with(init: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("repo");
        fs::create_dir(&path).unwrap();
        git(&path, init);
        Self { _folder: folder, path }
    }

    /// A repository with some files in folders, committed.
    pub fn committed() -> Self {
        let lab = Self::new();
        lab.fill();
        lab
    }

    pub fn fill(&self) {
        for path in ["a", "b.txt", "dir/one", "dir/two", "dir/sub/deep", "dir-x", "dir.y", "last/file"] {
            self.write(path, &format!("content of {path}\n"));
        }
        symlink("a", self.path.join("link")).unwrap();
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "first"]);
    }

    pub fn write(&self, path: &str, content: &str) {
        let path = self.path.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    #[track_caller]
    pub fn git(&self, arguments: &[&str]) -> String {
        git(&self.path, arguments)
    }

    pub fn repository(&self) -> Repository {
        Repository::find(&self.path).unwrap()
    }

    pub fn read(&self) -> GitState {
        read(&self.path)
    }

    #[track_caller]
    pub fn check(&self) -> GitState {
        check(&self.path)
    }

    pub fn signature(&self) -> [u8; 32] {
        self.repository().signature(SystemClock.now_ns()).bytes
    }
}

pub fn read(path: &Path) -> GitState {
    let repository = Repository::find(path).unwrap();
    let top = repository.work_tree().to_owned();
    repository.read(&Limits::default(), Some(&mut |path: &[u8]| lstat(&top, path)))
}

pub fn lstat(top: &Path, path: &[u8]) -> SeenPath {
    match fs::symlink_metadata(top.join(OsStr::from_bytes(path))) {
        Ok(m) => SeenPath::Stat(FileStat {
            size: m.len(),
            mtime: m.mtime() * 1_000_000_000 + m.mtime_nsec(),
            ctime: m.ctime() * 1_000_000_000 + m.ctime_nsec(),
            inode: m.ino(),
            mode: m.mode(),
        }),
        Err(_) => SeenPath::Missing,
    }
}

/// Reads the state, compares it with what git says, and makes sure that nothing in `.git` changed.
#[track_caller]
pub fn check(path: &Path) -> GitState {
    let folders: Vec<PathBuf> = ["--absolute-git-dir", "--git-common-dir"]
        .iter()
        .map(|which| path.join(git(path, &["rev-parse", which]).trim_end()))
        .collect();
    let before: Vec<_> = folders.iter().map(|folder| everything(folder)).collect();
    let repository = Repository::find(path).unwrap();
    repository.signature(SystemClock.now_ns());
    let state = read(path);
    let by_capture = uncommitted_by_capture(path);
    let blobs: Vec<_> = state
        .staged
        .iter()
        .filter(|entry| entry.has_blob())
        .map(|entry| (entry.id.clone(), repository.blob(&entry.id, 8 << 20)))
        .collect();
    let after: Vec<_> = folders.iter().map(|folder| everything(folder)).collect();
    assert!(before == after, "something in `.git` changed");

    assert_eq!(state.incomplete, None);
    let quiet = |arguments: &[&str]| {
        let run = git_command(path, arguments).output().unwrap();
        run.status.success().then(|| String::from_utf8_lossy(&run.stdout).trim_end().to_owned())
    };
    let branch = quiet(&["symbolic-ref", "-q", "HEAD"]).map(|b| b.trim_start_matches("refs/heads/").to_owned());
    assert_eq!(state.head.branch, branch);
    assert_eq!(state.head.commit, quiet(&["rev-parse", "-q", "--verify", "HEAD"]));
    let ours: Vec<String> = state.staged.iter().map(|e| line(&e.path, e.kind, e.mode, &e.id, e.stage)).collect();
    assert_eq!(ours, staged_by_git(path, state.head.commit.is_some()));
    let status = git(
        path,
        &["--no-optional-locks", "status", "--porcelain=v2", "--untracked-files=no", "--ignore-submodules=all"],
    );
    // A staged submodule counts, one with changes of its own does not.
    assert_eq!(state.uncommitted, Some(!status.is_empty() || !ours.is_empty()), "{status}");
    if state.staged.is_empty() {
        assert_eq!(by_capture, state.uncommitted, "as the capture's index has it");
    }
    for (id, content) in blobs {
        let run = git_command(path, &["cat-file", "blob", &id]).output().unwrap();
        assert!(content.unwrap() == run.stdout, "{id}");
    }
    state
}

fn line(path: &WorkspacePath, kind: StagedKind, mode: u32, id: &str, stage: u8) -> String {
    format!("{path:?} {} {mode:o} {id} {stage}", kind.as_str())
}

/// What is staged, from git's own listings of the index and of HEAD.
fn staged_by_git(path: &Path, has_commit: bool) -> Vec<String> {
    let top = PathBuf::from(git(path, &["rev-parse", "--show-toplevel"]).trim_end());
    let run = |arguments: &[&str]| git_command(&top, arguments).output().unwrap().stdout;
    let split = |output: Vec<u8>| -> Vec<(Vec<String>, Vec<u8>)> {
        let lines = output.split(|b| *b == 0).filter(|line| !line.is_empty());
        lines
            .map(|line| {
                let tab = line.iter().position(|b| *b == b'\t').unwrap();
                let words = String::from_utf8_lossy(&line[..tab]).split(' ').map(str::to_owned).collect();
                (words, line[tab + 1..].to_vec())
            })
            .collect()
    };
    let mut head: BTreeMap<Vec<u8>, (u32, String)> = BTreeMap::new();
    if has_commit {
        for (words, path) in split(run(&["ls-tree", "-r", "-z", "HEAD"])) {
            head.insert(path, (u32::from_str_radix(&words[0], 8).unwrap(), words[2].clone()));
        }
    }
    let mut lines: BTreeSet<(Vec<u8>, u8, String)> = BTreeSet::new();
    let mut in_index = BTreeSet::new();
    for (words, path) in split(run(&["ls-files", "-s", "-z"])) {
        let mode = u32::from_str_radix(&words[0], 8).unwrap();
        let stage: u8 = words[2].parse().unwrap();
        in_index.insert(path.clone());
        let kind = match head.get(&path) {
            _ if stage > 0 => StagedKind::Unmerged,
            None => StagedKind::Created,
            Some((old, id)) if *old == mode && *id == words[1] => continue,
            Some(_) => StagedKind::Modified,
        };
        let text = line(&WorkspacePath::new(path.clone()).unwrap(), kind, mode, &words[1], stage);
        lines.insert((path, stage, text));
    }
    for (path, _) in head.iter().filter(|(path, _)| !in_index.contains(*path)) {
        let text = line(&WorkspacePath::new(path.clone()).unwrap(), StagedKind::Deleted, 0, "", 0);
        lines.insert((path.clone(), 0, text));
    }
    lines.into_iter().map(|(_, _, text)| text).collect()
}

/// Every file beneath a folder with its content and `stat`, except for access times.
fn everything(folder: &Path) -> BTreeMap<PathBuf, (Vec<i64>, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let m = entry.metadata().unwrap();
            let stat = vec![m.mode() as i64, m.size() as i64, m.ino() as i64];
            let times = [m.mtime(), m.mtime_nsec(), m.ctime(), m.ctime_nsec()];
            let content = if m.is_file() { fs::read(entry.path()).unwrap() } else { Vec::new() };
            if m.is_dir() {
                folders.push(entry.path());
            }
            found.insert(entry.path(), ([stat, times.to_vec()].concat(), content));
        }
    }
    found
}

/// A sink that only hashes.
struct Nowhere;

impl Sink for Nowhere {
    type Error = std::io::Error;

    fn large_from(&self) -> u64 {
        1 << 30
    }

    fn small(&self, bytes: &[u8]) -> Result<ObjectId, Self::Error> {
        Ok(ObjectId::of_blob(bytes))
    }

    fn large(&self, bytes: &mut dyn Read) -> Result<(ObjectId, u64), Self::Error> {
        let mut all = Vec::new();
        bytes.read_to_end(&mut all)?;
        Ok((ObjectId::of_blob(&all), all.len() as u64))
    }

    fn tree(&self, _: ObjectId, _: Vec<u8>) -> Result<(), Self::Error> {
        Ok(())
    }
}

pub fn capture(workspace: &Path) -> piton_host::Index {
    let options = ScanOptions {
        index: None,
        rules: RuleOptions::default(),
        now_ns: SystemClock.now_ns(),
        is_staged: Box::new(|_| None),
        held: piton_host::Held::default(),
        limit: Limit { files: u64::MAX, bytes: u64::MAX },
        progress: &Progress::default(),
    };
    scan(&Root::open(workspace).unwrap(), options, &Nowhere).unwrap().index.unwrap()
}

pub fn uncommitted_by_capture(workspace: &Path) -> Option<bool> {
    let index = capture(workspace);
    let repository = Repository::find(workspace).unwrap();
    let mut seen = SeenByCapture::new(&repository, &index);
    repository.has_uncommitted(&Limits::default(), &mut |path: &[u8]| seen.look_up(path))
}

pub fn paths(state: &GitState) -> Vec<String> {
    state.staged.iter().map(|entry| format!("{} {}", entry.kind.as_str(), entry.path.display())).collect()
}

/// Long enough for the kernel's clock to advance.
pub fn a_moment_later() {
    std::thread::sleep(Duration::from_millis(20));
}

/// Leaves `file` in conflict between this branch and `theirs`.
pub fn conflict(lab: &Lab, act: &[&str]) {
    lab.write("file", "base\n");
    lab.write("gone", "base\n");
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-q", "-m", "base"]);
    lab.git(&["checkout", "-q", "-b", "ours"]);
    lab.write("file", "ours\n");
    lab.git(&["commit", "-q", "-a", "-m", "ours"]);
    lab.git(&["checkout", "-q", "-b", "theirs", "HEAD~"]);
    lab.write("file", "theirs\n");
    lab.write("added", "theirs\n");
    fs::remove_file(lab.path.join("gone")).unwrap();
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-q", "-m", "theirs"]);
    lab.git(&["checkout", "-q", "ours"]);
    assert!(!git_command(&lab.path, act).output().unwrap().status.success(), "no conflict");
}
