//! A git repository's state, read without git and without writing or locking anything in `.git`. Two files of this
//! module are exceptions, and only on request: `command` runs the user's git, and `write` and `rebuild` use it to
//! restore a state.
//!
//! Called by `engine` at every capture, so it is optimised for the case that nothing changed: [`Repository::signature`]
//! checks about a dozen files, and only if one of them changed does [`Repository::read`] open anything larger. If only
//! the workspace's files changed, [`Repository::has_uncommitted`] is enough. Nothing here fails: what cannot be read or
//! understood is noted in the state, and nothing is guessed.
//!
//! Written for this instead of using gix, whose index reader alone takes longer than all of this may take, and which
//! brings 80 crates. Reading never runs git, never reads the user's own settings, never opens anything for writing.

mod agrees;
mod cached;
mod changed;
pub mod command;
mod config;
mod excludes;
mod files;
mod hash;
mod index;
mod inflate;
mod link;
mod number;
mod objects;
mod obstacle;
mod pack;
mod place;
mod rebuild;
mod refresh;
mod refs;
mod reftable;
mod seen;
mod staged;
mod tracked;
mod tree;
mod trees;
mod worktree;
mod write;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use piton_model::git::{ASSUME_VALID, GitState, InProgress, SKIP_WORKTREE};
use rustix::fs::{FileType, Stat};

use crate::index::Signature as StatSignature;
use config::Config;
use files::trim_end;
use hash::Id;
use index::Index;

pub use command::{Git, GitError};
pub use excludes::{UserConfig, excludes_file};
pub(crate) use excludes::{ignores_case, settings_files};
pub(crate) use link::GitLink;
pub use link::{WorktreeLink, is_git_folder, is_worktree, linked_worktrees};
pub use objects::{ObjectError, Objects};
pub use place::{ExportRepository, PlaceError};
pub use seen::SeenByCapture;
pub(crate) use tracked::{Tracked, TrackedAt, index_signature};
pub use trees::{BlobHasher, GitId, GitIds, TreeItem};
pub use worktree::{NewWorktree, WorktreeError};
pub use write::{Differing, IndexLock, NewIndex, RepositoryWriter, WriteError};

/// A repository around a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    work_tree: PathBuf,
    /// `.git`, or what it points to.
    git_dir: PathBuf,
    /// For a worktree, the folder that all worktrees of its repository share; else the same as `git_dir`.
    common_dir: PathBuf,
    prefix: Vec<u8>,
}

/// How much may be read.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// In bytes.
    pub index_bytes: u64,
    /// Most staged entries that are listed.
    pub staged: usize,
    /// Most folders of HEAD that are read.
    pub trees: usize,
    /// Most files that are checked because the caller does not know them.
    pub asked: usize,
    /// Most files that are hashed because `stat` does not tell whether they changed.
    pub hashed_files: usize,
    /// Total size of those files.
    pub hashed_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            index_bytes: 512 << 20,
            staged: 10_000,
            trees: 20_000,
            asked: 2_000,
            hashed_files: 64,
            hashed_bytes: 16 << 20,
        }
    }
}

/// A fingerprint of everything that a repository's state is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Changes when HEAD, its reference, the index, the settings or an operation in progress may have changed.
    pub bytes: [u8; 32],
    /// One of the files was written so recently that the next write may not change its times. A state that is read now
    /// must not be reused on the strength of this fingerprint.
    pub is_young: bool,
}

/// What a capture knows of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenPath {
    /// What `lstat` said.
    Stat(FileStat),
    Missing,
    /// Not examined: it is outside the workspace, or in a skipped folder.
    Unknown,
}

/// What a capture knows of a path, given relative to the repository's root.
pub type LookUp<'a> = dyn FnMut(&[u8]) -> SeenPath + 'a;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// In bytes.
    pub size: u64,
    /// Nanoseconds since 1970.
    pub mtime: i64,
    /// Nanoseconds since 1970.
    pub ctime: i64,
    pub inode: u64,
    /// Kind and permission bits.
    pub mode: u32,
}

impl FileStat {
    fn of(stat: &Stat) -> Self {
        StatSignature::of(stat).into()
    }
}

impl From<StatSignature> for FileStat {
    fn from(from: StatSignature) -> Self {
        Self { size: from.size, mtime: from.mtime, ctime: from.ctime, inode: from.inode, mode: from.mode }
    }
}

impl Repository {
    /// The repository that a folder belongs to: that of the innermost `.git` at or above it on the same filesystem, as
    /// git finds it. The path must be canonical.
    pub fn find(root: &Path) -> Option<Self> {
        let device = rustix::fs::stat(root).ok()?.st_dev;
        for folder in root.ancestors() {
            if folder != root && rustix::fs::stat(folder).ok()?.st_dev != device {
                return None;
            }
            let git = folder.join(".git");
            let kind = rustix::fs::stat(&git).map(|stat| FileType::from_raw_mode(stat.st_mode));
            let git_dir = match kind {
                Ok(FileType::Directory) => git,
                // A worktree or a submodule. If it points to nothing, git does not see a repository here either.
                Ok(FileType::RegularFile) => pointed_to(&git)?,
                _ => continue,
            };
            match common_dir(&git_dir) {
                Some(common_dir) => {
                    let prefix = root.strip_prefix(folder).ok()?.as_os_str().as_bytes().to_vec();
                    return Some(Self { work_tree: folder.to_owned(), git_dir, common_dir, prefix });
                }
                None if kind == Ok(FileType::RegularFile) => return None,
                None => {}
            }
        }
        None
    }

    /// The folder that contains `.git`.
    pub fn work_tree(&self) -> &Path {
        &self.work_tree
    }

    /// The workspace's path in the repository; empty if it is the whole repository.
    pub fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// A fingerprint to compare with the one that the last state was read under: take it before reading.
    ///
    /// It says nothing about the working tree, so `uncommitted` must be checked again when a capture found a change.
    pub fn signature(&self, now_ns: i64) -> Signature {
        let mut watch =
            Watch { hasher: blake3::Hasher::new(), young_from: now_ns.saturating_sub(YOUNG), is_young: false };
        watch.add(self.git_dir.as_os_str().as_bytes());
        watch.add(self.common_dir.as_os_str().as_bytes());
        refs::watch(self, &mut watch);
        watch.times(&self.git_dir.join("index"));
        watch.times(&self.common_dir.join("config"));
        watch.times(&self.common_dir.join(EXCLUDES));
        watch.times(&self.git_dir.join("config.worktree"));
        for (marker, _) in MARKERS {
            watch.add(&[files::exists(&self.git_dir.join(marker)).into()]);
        }
        Signature { bytes: *watch.hasher.finalize().as_bytes(), is_young: watch.is_young }
    }

    /// The rules of the repository's own exclude file, one per line; `None` if there is none, or only comments.
    pub fn excludes(&self) -> Option<String> {
        let (bytes, _) = files::read(&self.common_dir.join(EXCLUDES), LARGEST_EXCLUDES).ok()??;
        let text = String::from_utf8_lossy(&bytes);
        let rules: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).collect();
        (!rules.is_empty()).then(|| rules.join("\n"))
    }

    /// Reads the state. `seen` says what the working tree looks like; without it, uncommitted changes are known only if
    /// something is staged.
    pub fn read(&self, limits: &Limits, seen: Option<&mut LookUp<'_>>) -> GitState {
        let config = self.config();
        if let Some(reason) = config.unknown {
            return GitState { incomplete: Some(reason), ..GitState::default() };
        }
        let (head, no_head) = refs::head(self, config.format, config.has_reftable);
        let in_progress = self.in_progress(&config);
        let mut state = GitState { head, in_progress, incomplete: no_head, ..GitState::default() };
        if state.incomplete.is_some() || config.is_bare {
            return state;
        }
        let index = match Index::read(&self.git_dir, config.format, limits.index_bytes) {
            Ok(index) => index,
            Err(reason) => {
                state.incomplete = Some(reason);
                return state;
            }
        };
        let objects = self.objects_of(&config);
        let commit = state.head.commit.as_ref().and_then(|hex| Id::from_hex(hex.as_bytes(), config.format));
        let staged = staged::staged(&index, &objects, commit, config.format, limits);
        (state.staged, state.incomplete) = (staged.entries, staged.incomplete);
        // In a sparse checkout git sets and clears this one by itself.
        let wanted = if config.is_sparse { ASSUME_VALID } else { ASSUME_VALID | SKIP_WORKTREE };
        match staged::flagged(&index, &state.staged, wanted, limits.staged) {
            Ok(flagged) => state.flagged = flagged,
            Err(reason) => state.incomplete = state.incomplete.or(Some(reason)),
        }
        // Checked only if there is something to report: it takes longer than all the rest.
        let says_something = !state.staged.is_empty() || !state.flagged.is_empty();
        if says_something && !index.is_sound() {
            (state.staged, state.flagged) = (Vec::new(), Vec::new());
            state.incomplete = Some("the index is damaged: its checksum does not hold".into());
        }
        state.uncommitted = match seen {
            _ if !state.staged.is_empty() => Some(true),
            Some(seen) if self.is_in_place(&config) => {
                let changes = changed::has_changes(self, &index, &config, limits, seen);
                // There may be staged entries that could not be found.
                changes.filter(|has_changes| *has_changes || state.incomplete.is_none())
            }
            _ => None,
        };
        state
    }

    /// Whether a tracked file differs from the index, for a state with a valid fingerprint and nothing staged; `None`
    /// if unknown.
    pub fn has_uncommitted(&self, limits: &Limits, seen: &mut LookUp<'_>) -> Option<bool> {
        let config = self.config();
        if config.unknown.is_some() || config.is_bare || !self.is_in_place(&config) {
            return None;
        }
        let index = Index::read(&self.git_dir, config.format, limits.index_bytes).ok()?;
        changed::has_changes(self, &index, &config, limits, seen)
    }

    /// The repository's objects, for reading several.
    pub fn objects(&self) -> Objects {
        self.objects_of(&self.config())
    }

    /// A blob's content of at most `largest` bytes, given git's id in hexadecimal.
    pub fn blob(&self, hex: &str, largest: u64) -> Result<Vec<u8>, ObjectError> {
        self.objects().blob(hex, largest)
    }

    fn objects_of(&self, config: &Config) -> Objects {
        Objects::open(self.common_dir.join("objects"), config.format)
    }

    fn config(&self) -> Config {
        Config::read(&self.git_dir, &self.common_dir)
    }

    /// Whether the working tree is the one that contains `.git`; a setting can move it elsewhere.
    fn is_in_place(&self, config: &Config) -> bool {
        let Some(set) = &config.work_tree else { return true };
        let identity = |path: &Path| rustix::fs::stat(path).ok().map(|stat| (stat.st_dev, stat.st_ino));
        identity(set).is_some_and(|set| identity(&self.work_tree) == Some(set))
    }

    fn in_progress(&self, config: &Config) -> Option<InProgress> {
        let is_there = |marker: &str| {
            let is_reference = marker == "CHERRY_PICK_HEAD" || marker == "REVERT_HEAD";
            match config.has_reftable && is_reference {
                true => reftable::look_up(self, marker.as_bytes(), config.format).is_ok_and(|found| found.is_some()),
                false => files::exists(&self.git_dir.join(marker)),
            }
        };
        let (marker, act) = MARKERS.into_iter().find(|(marker, _)| is_there(marker))?;
        // Between two commits of a series, only the to-do list exists.
        if marker == "sequencer/todo" {
            let todo = files::read(&self.git_dir.join(marker), 1 << 20).ok()??.0;
            return Some(if todo.starts_with(b"revert") { InProgress::Revert } else { InProgress::CherryPick });
        }
        Some(act)
    }
}

/// Files that show an operation in progress, outermost first: a rebase can be in the middle of a merge.
const MARKERS: [(&str, InProgress); 8] = [
    ("rebase-merge", InProgress::Rebase),
    ("rebase-apply/applying", InProgress::Am),
    ("rebase-apply", InProgress::Rebase),
    ("MERGE_HEAD", InProgress::Merge),
    ("CHERRY_PICK_HEAD", InProgress::CherryPick),
    ("REVERT_HEAD", InProgress::Revert),
    ("sequencer/todo", InProgress::CherryPick),
    ("BISECT_LOG", InProgress::Bisect),
];

/// The repository's own exclude file, in the folder that its worktrees share.
const EXCLUDES: &str = "info/exclude";
/// In bytes; larger ones are not stored.
const LARGEST_EXCLUDES: u64 = 64 << 10;

/// In nanoseconds. Files changed more recently are young: kernels advance file times in steps of up to ten
/// milliseconds.
const YOUNG: i64 = 20_000_000;

/// A fingerprint in the making.
struct Watch {
    hasher: blake3::Hasher,
    young_from: i64,
    is_young: bool,
}

impl Watch {
    /// Adds bytes, delimited from those before and after.
    fn add(&mut self, bytes: &[u8]) {
        self.hasher.update(&(bytes.len() as u64).to_le_bytes());
        self.hasher.update(bytes);
    }

    /// Adds the `stat` of a file that is replaced when it changes.
    fn times(&mut self, path: &Path) {
        let Ok(stat) = rustix::fs::stat(path) else { return self.add(&[]) };
        let stat = FileStat::of(&stat);
        self.is_young |= stat.ctime >= self.young_from;
        let numbers = [stat.size, stat.mtime as u64, stat.ctime as u64, stat.inode];
        self.add(&numbers.map(u64::to_le_bytes).concat());
    }

    /// Adds a small file's content.
    fn content(&mut self, path: &Path, largest: u64) -> Option<Vec<u8>> {
        let content = files::read(path, largest).ok().flatten().map(|(bytes, _)| bytes);
        self.add(content.as_deref().unwrap_or_default());
        content
    }

    /// Like `content`, for a reference, which can be a symlink.
    fn reference(&mut self, path: &Path, largest: u64) -> Option<Vec<u8>> {
        match refs::linked(path) {
            Some(target) => {
                let content = [b"ref: ", target.as_slice()].concat();
                self.add(&content);
                Some(content)
            }
            None => self.content(path, largest),
        }
    }
}

/// Where a `.git` file points.
fn pointed_to(git: &Path) -> Option<PathBuf> {
    let (bytes, _) = files::read(git, 64 << 10).ok()??;
    let target = trim_end(bytes.strip_prefix(b"gitdir: ")?);
    Some(git.parent()?.join(OsStr::from_bytes(target)))
}

/// The folder that a `.git` file names.
pub(crate) fn own_folder(git: &Path) -> Option<PathBuf> {
    pointed_to(git)
}

/// Whether a folder looks like a repository's own data: a bare repository, or one that a `.git` file may refer to.
pub(crate) fn may_be_git_folder(folder: &Path) -> bool {
    common_dir(folder).is_some()
}

/// The folder that worktrees share; `None` if this is not a repository.
fn common_dir(git_dir: &Path) -> Option<PathBuf> {
    if !files::exists(&git_dir.join("HEAD")) {
        return None;
    }
    let common = match files::read(&git_dir.join("commondir"), 64 << 10).ok()? {
        Some((bytes, _)) => git_dir.join(OsStr::from_bytes(trim_end(&bytes))),
        None => git_dir.to_owned(),
    };
    (files::is_folder(&common.join("objects")) && files::is_folder(&common.join("refs"))).then_some(common)
}
