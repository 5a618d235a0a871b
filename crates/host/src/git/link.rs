//! Where a folder's `.git` leads, and which folders are a repository's own although they are not called `.git`.
//!
//! Called for every listed folder that contains a `.git` which is not a folder, so it opens two small files at most.

use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::{common_dir, files, pointed_to};

/// What a `.git` file or link leads to: the data of a worktree, of a submodule, or of a repository stored elsewhere.
pub(crate) struct GitLink {
    /// Where the repository's data is; canonical.
    pub git_dir: PathBuf,
    /// For a worktree, the folder that all worktrees share; else the same as `git_dir`.
    pub common_dir: PathBuf,
}

impl GitLink {
    /// Reads the `.git` of a folder. `None` if there is none, if it is a folder, or if it leads to no repository.
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        let git = folder.join(".git");
        let kind = kind_of(&git)?;
        Self::at(git, kind)
    }

    fn at(git: PathBuf, kind: FileType) -> Option<Self> {
        let git_dir = match kind {
            FileType::RegularFile => pointed_to(&git)?,
            FileType::Symlink if files::is_folder(&git) => git,
            FileType::Symlink => pointed_to(&git)?,
            _ => return None,
        };
        let common_dir = common_dir(&git_dir)?.canonicalize().ok()?;
        Some(Self { git_dir: git_dir.canonicalize().ok()?, common_dir })
    }

    /// Whether the folder is a linked worktree: it shares its repository with other working trees.
    pub(crate) fn is_worktree(&self) -> bool {
        self.git_dir != self.common_dir
    }
}

/// Whether a folder is a linked worktree (`git worktree add`).
pub fn is_worktree(folder: &Path) -> bool {
    GitLink::of(folder).is_some_and(|link| link.is_worktree())
}

/// What a folder's `.git` says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorktreeLink {
    Worktree,
    /// A `.git` file that leads to no repository, as after a worktree or its repository was moved, until somebody runs
    /// `git worktree repair`.
    CutOff,
    /// There is none, or it leads to a repository of the folder's own.
    None,
}

impl WorktreeLink {
    pub fn of(folder: &Path) -> Self {
        let git = folder.join(".git");
        let Some(kind) = kind_of(&git) else { return Self::None };
        match GitLink::at(git, kind) {
            Some(link) if link.is_worktree() => Self::Worktree,
            None if kind == FileType::RegularFile => Self::CutOff,
            _ => Self::None,
        }
    }
}

fn kind_of(git: &Path) -> Option<FileType> {
    Some(FileType::from_raw_mode(rustix::fs::lstat(git).ok()?.st_mode))
}

/// Whether a folder contains a repository's own data, as a bare repository does.
pub fn is_git_folder(folder: &Path) -> bool {
    files::exists(&folder.join("HEAD"))
        && files::is_folder(&folder.join("objects"))
        && files::is_folder(&folder.join("refs"))
}

/// A repository's linked worktrees, whose folders may no longer exist.
pub fn linked_worktrees(folder: &Path) -> Vec<PathBuf> {
    let Some(repository) = super::Repository::find(folder) else { return Vec::new() };
    let Ok(entries) = std::fs::read_dir(repository.common_dir.join("worktrees")) else { return Vec::new() };
    let worktree = |entry: std::io::Result<std::fs::DirEntry>| {
        let admin = entry.ok()?.path();
        // The path of the worktree's `.git` file; relative to this folder in some repositories.
        let (bytes, _) = files::read(&admin.join("gitdir"), 64 << 10).ok()??;
        let git = admin.join(std::os::unix::ffi::OsStrExt::from_bytes(files::trim_end(&bytes)) as &std::ffi::OsStr);
        git.parent()?.canonicalize().ok()
    };
    let mut all: Vec<PathBuf> = entries.filter_map(worktree).collect();
    all.sort();
    all
}
