//! Writing to a repository: HEAD, a branch, and a replacement index.
//!
//! Called only by `engine::git_restore`, which decides what to write and in which order. Everything goes through the
//! user's git except the last step of the index, which follows git's own protocol: whoever creates `index.lock` may
//! rename a new index into place. Never touches a file of the working tree.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use piton_model::WorkspacePath;
use piton_model::git::{ALL_FLAGS, GitState, Head, SKIP_WORKTREE};
use piton_model::session::Process;

use super::command::{Git, GitError};
use super::files;
use super::index::Index;
use super::{Limits, Repository};
use crate::process;

#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error(transparent)]
    Git(#[from] GitError),
    /// Another program is writing the index, or died while it did.
    #[error("{} is there: another git command is at work, or one was cut off", .0.display())]
    Locked(PathBuf),
    /// The system refused.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The index cannot be read, or the new one is not what was wanted.
    #[error("{0}")]
    Index(String),
}

pub(super) fn refused<'p>(what: &'static str, path: &'p Path) -> impl FnOnce(io::Error) -> WriteError + 'p {
    move |source| WriteError::Io { what, path: path.to_owned(), source }
}

pub struct RepositoryWriter<'r> {
    pub(super) repository: &'r Repository,
    pub(super) git: Git,
    /// Hexadecimal digits of an id.
    pub(super) digits: usize,
    pub(super) is_sparse: bool,
}

/// Message for git's reflog.
const REFLOG: &str = "piton: restore git state";

impl Repository {
    /// `program`: the git to run, if not the one in `PATH`.
    pub fn writer(&self, program: Option<&Path>) -> Result<RepositoryWriter<'_>, GitError> {
        let config = self.config();
        Ok(RepositoryWriter {
            repository: self,
            git: Git::at(&self.work_tree, program)?,
            digits: config.format.len() * 2,
            is_sparse: config.is_sparse,
        })
    }

    /// Git's lock of the index, if there is one that piton did not leave behind.
    pub fn foreign_lock(&self) -> Option<PathBuf> {
        let path = self.lock_path();
        (files::exists(&path) && !is_left_by_piton(&path)).then_some(path)
    }

    /// A fingerprint of the index's entries: what is staged and how, without `stat` data.
    pub fn index_fingerprint(&self) -> Result<String, String> {
        self.fingerprint_of(&self.git_dir.join("index"))
    }

    pub(super) fn fingerprint_of(&self, file: &Path) -> Result<String, String> {
        let config = self.config();
        let index = Index::read_file(file, &self.git_dir, config.format, Limits::default().index_bytes)?;
        let flags = flags_that_count(config.is_sparse);
        let mut hasher = blake3::Hasher::new();
        for entry in &index.entries {
            let path = index.path(entry);
            hasher.update(&(path.len() as u64).to_le_bytes()).update(path);
            hasher.update(&index.mode(entry).to_le_bytes()).update(index.id_bytes(entry));
            hasher.update(&[entry.stage]).update(&(u16::from(entry.flags) & flags).to_le_bytes());
        }
        Ok(hasher.finalize().to_hex().to_string())
    }

    fn lock_path(&self) -> PathBuf {
        self.git_dir.join("index.lock")
    }
}

/// In a sparse checkout git sets and clears skip-worktree by itself.
fn flags_that_count(is_sparse: bool) -> u16 {
    if is_sparse { ALL_FLAGS & !SKIP_WORKTREE } else { ALL_FLAGS }
}

impl RepositoryWriter<'_> {
    /// Which flags of entries were set by the user.
    pub fn flags_that_count(&self) -> u16 {
        flags_that_count(self.is_sparse)
    }

    /// The kind of each object; `None` if the repository does not have it.
    pub fn kinds(&self, ids: &[&str]) -> Result<Vec<Option<String>>, GitError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let said = self.git.run_with(&["cat-file", "--batch-check"], (ids.join("\n") + "\n").as_bytes())?;
        let kind = |line: &str| line.split(' ').nth(1).filter(|kind| *kind != "missing").map(str::to_owned);
        let kinds: Vec<_> = String::from_utf8_lossy(&said).lines().map(kind).collect();
        match kinds.len() == ids.len() {
            true => Ok(kinds),
            false => Err(GitError::Io(io::Error::other("git answered another question than was asked"))),
        }
    }

    /// Writes a blob to the repository and returns git's id of it.
    pub fn put_blob(&self, bytes: &[u8]) -> Result<String, GitError> {
        let said = self.git.run_with(&["hash-object", "-w", "--stdin"], bytes)?;
        Ok(line_of(&said))
    }

    /// Where a reference points; `None` if it does not exist.
    pub fn commit_of(&self, reference: &[u8]) -> Result<Option<String>, GitError> {
        let arguments: [&OsStr; 3] =
            ["for-each-ref".as_ref(), "--format=%(objectname) %(refname)".as_ref(), OsStr::from_bytes(reference)];
        let said = self.git.run(&arguments)?;
        // Git also lists everything beneath the name.
        let found = said.split(|b| *b == b'\n').find_map(|line| {
            let blank = line.iter().position(|b| *b == b' ')?;
            (&line[blank + 1..] == reference).then(|| line_of(&line[..blank]))
        });
        Ok(found)
    }

    /// The other working tree that has a branch checked out.
    pub fn checked_out_elsewhere(&self, reference: &[u8]) -> Result<Option<PathBuf>, GitError> {
        let identity = |path: &Path| rustix::fs::stat(path).ok().map(|stat| (stat.st_dev, stat.st_ino));
        let here = identity(&self.repository.work_tree);
        let trees = self.git.worktrees()?;
        Ok(trees
            .into_iter()
            .filter(|(_, branch)| branch.as_deref() == Some(reference))
            .map(|(path, _)| path)
            .find(|path| identity(path) != here))
    }

    /// Entries that differ between two commits' trees. Without a commit a side is empty.
    pub fn differing(&self, from: Option<&str>, to: Option<&str>) -> Result<Vec<Differing>, WriteError> {
        let none;
        let (from, to) = match (from, to) {
            (Some(from), Some(to)) => (from, to),
            _ => {
                none = line_of(&self.git.run_with(&["hash-object", "-t", "tree", "--stdin"], b"")?);
                (from.unwrap_or(&none), to.unwrap_or(&none))
            }
        };
        if from == to {
            return Ok(Vec::new());
        }
        let said = self.git.run(&["diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", from, to])?;
        let mut found = Vec::new();
        let mut parts = said.split(|b| *b == 0);
        while let (Some(head), Some(path)) = (parts.next().filter(|head| !head.is_empty()), parts.next()) {
            let head = String::from_utf8_lossy(head);
            let mut words = head.trim_start_matches(':').split(' ');
            let mut mode = || u32::from_str_radix(words.next().unwrap_or_default(), 8).unwrap_or_default();
            let modes = (mode(), mode());
            let mut id = || words.next().unwrap_or_default().to_owned();
            let ids = (id(), id());
            let path = WorkspacePath::new(path).map_err(|error| WriteError::Index(error.to_string()))?;
            found.push(Differing { path, before: (modes.0, ids.0), after: (modes.1, ids.1) });
        }
        Ok(found)
    }

    /// Points a reference to an object, or deletes it; fails if it no longer points to `old`.
    pub fn set_reference(&self, reference: &[u8], new: Option<&str>, old: Option<&str>) -> Result<(), GitError> {
        let reference = OsStr::from_bytes(reference);
        let (new, old): (Option<&OsStr>, &OsStr) = (new.map(OsStr::new), old.unwrap_or_default().as_ref());
        match new {
            Some(new) => self.git.run(&["update-ref".as_ref(), "-m".as_ref(), REFLOG.as_ref(), reference, new, old])?,
            None if old.is_empty() => return Ok(()),
            None => {
                self.git.run(&["update-ref".as_ref(), "-m".as_ref(), REFLOG.as_ref(), "-d".as_ref(), reference, old])?
            }
        };
        Ok(())
    }

    /// Points HEAD to a branch or, if there is none, to a commit. The branch it leaves stays where it is.
    pub fn set_head(&self, head: &Head) -> Result<(), GitError> {
        match (head.reference(), &head.commit) {
            (Some(reference), _) => {
                let reference = OsStr::from_bytes(&reference);
                self.git.run(&["symbolic-ref".as_ref(), "-m".as_ref(), REFLOG.as_ref(), "HEAD".as_ref(), reference])?;
            }
            (None, Some(commit)) => {
                self.git.run(&["update-ref", "--no-deref", "-m", REFLOG, "HEAD", commit])?;
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// References beneath a name, which must end in `/`.
    pub fn references(&self, beneath: &str) -> Result<Vec<Vec<u8>>, GitError> {
        let said = self.git.run(&["for-each-ref", "--format=%(refname)", beneath])?;
        Ok(said.split(|b| *b == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect())
    }

    /// Takes git's own lock of the index.
    pub fn lock_index(&self) -> Result<IndexLock, WriteError> {
        let path = self.repository.lock_path();
        let make = || std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
        let mut file = match make() {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !is_left_by_piton(&path) {
                    return Err(WriteError::Locked(path));
                }
                std::fs::remove_file(&path).map_err(refused("cannot remove", &path))?;
                make()
            }
            other => other,
        }
        .map_err(refused("cannot make", &path))?;
        let lock = IndexLock { path };
        let me = process::this().map(|me| format!("{MARK}{} {}\n", me.pid, me.started)).unwrap_or_default();
        file.write_all(me.as_bytes()).map_err(refused("cannot write", &lock.path))?;
        Ok(lock)
    }

    /// Reads HEAD and index as they are.
    pub fn read(&self) -> GitState {
        self.repository.read(&limits(), None)
    }

    /// Puts a new index in the old one's place.
    pub fn swap_index(&self, new: NewIndex, _lock: &IndexLock) -> Result<(), WriteError> {
        let path = self.repository.git_dir.join("index");
        let sync = std::fs::File::open(&new.path).and_then(|file| file.sync_all());
        sync.map_err(refused("cannot sync", &new.path))?;
        // Rename last: until then git reads the old index whole, and from then on the new one.
        std::fs::rename(&new.path, &path).map_err(refused("cannot replace", &path))?;
        crate::disk::sync_folder(&self.repository.git_dir).map_err(refused("cannot sync", &self.repository.git_dir))
    }
}

/// A path at which two commits have different entries: mode and id on each side, mode 0 if there is none.
pub struct Differing {
    pub path: WorkspacePath,
    pub before: (u32, String),
    pub after: (u32, String),
}

/// A state that is to be restored must be known completely, so more is read than for a checkpoint.
pub(super) fn limits() -> Limits {
    Limits { staged: 200_000, trees: 2_000_000, ..Limits::default() }
}

/// An index that is ready to replace the old one. Removed if it is not used.
pub struct NewIndex {
    pub(super) path: PathBuf,
    /// A fingerprint of its entries.
    pub fingerprint: String,
}

impl Drop for NewIndex {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Git's lock of the index, held.
pub struct IndexLock {
    path: PathBuf,
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What piton's locks contain, followed by its pid: git's own is an index, or empty.
const MARK: &str = "piton ";

/// Whether a lock was left by a piton that no longer runs.
fn is_left_by_piton(path: &Path) -> bool {
    let Ok(Some((bytes, _))) = files::read(path, 256) else { return false };
    let text = String::from_utf8_lossy(&bytes);
    let mut words = text.strip_prefix(MARK).unwrap_or_default().split_whitespace();
    let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
    match (number(), number()) {
        (Some(pid), Some(started)) => {
            let pid = u32::try_from(pid).unwrap_or_default();
            !process::is_alive(&Process { pid, started, own: true })
        }
        _ => false,
    }
}

/// A working tree, and the full name of the branch it has checked out.
pub(super) type WorkTree = (PathBuf, Option<Vec<u8>>);

impl Git {
    /// Every working tree of the repository, including the main one.
    pub(super) fn worktrees(&self) -> Result<Vec<WorkTree>, GitError> {
        let said = self.run(&["worktree", "list", "--porcelain"])?;
        let mut found: Vec<WorkTree> = Vec::new();
        for line in said.split(|b| *b == b'\n') {
            if let Some(path) = line.strip_prefix(b"worktree ") {
                found.push((PathBuf::from(OsString::from_vec(path.to_vec())), None));
            } else if let (Some(branch), Some(last)) = (line.strip_prefix(b"branch "), found.last_mut()) {
                last.1 = Some(branch.to_vec());
            }
        }
        Ok(found)
    }
}

/// Git's output, without the line ending.
pub(super) fn line_of(said: &[u8]) -> String {
    String::from_utf8_lossy(said).trim_end().to_owned()
}
