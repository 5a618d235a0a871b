//! Where an export goes: an existing repository, or one created for it.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Repository;
use super::command::{Git, GitError};
use super::files;
use super::trees::GitIds;
use super::write::line_of;

/// Why a folder cannot receive an export.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error("there is no git repository around {}", .0.display())]
    NoRepository(PathBuf),
    /// The folder is not empty, and not a repository.
    #[error("{} is not a git repository, and not empty", .0.display())]
    NotEmpty(PathBuf),
    #[error("cannot use {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Git(#[from] GitError),
}

/// A repository to write commits to.
pub struct ExportRepository {
    /// The user's git, run in it.
    pub git: Git,
    pub folder: PathBuf,
    /// Whether it was created just now.
    pub made: bool,
}

impl ExportRepository {
    /// The repository around a workspace.
    pub fn around(root: &Path, program: Option<&Path>) -> Result<Self, PlaceError> {
        let repository = Repository::find(root).ok_or_else(|| PlaceError::NoRepository(root.to_owned()))?;
        let folder = repository.work_tree().to_owned();
        Ok(Self { git: Git::at(&folder, program)?, folder, made: false })
    }

    /// The repository at exactly this folder, bare or not. If nothing is there, or an empty folder, a bare one is
    /// created.
    pub fn at(folder: &Path, program: Option<&Path>) -> Result<Self, PlaceError> {
        let refused = |source: io::Error| PlaceError::Io { path: folder.to_owned(), source };
        let is_empty = match std::fs::read_dir(folder) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(refused(error)),
        };
        let is_bare = files::exists(&folder.join("HEAD")) && files::is_folder(&folder.join("objects"));
        if !is_empty && !is_bare && !files::exists(&folder.join(".git")) {
            return Err(PlaceError::NotEmpty(folder.to_owned()));
        }
        if is_empty {
            std::fs::create_dir_all(folder).map_err(refused)?;
        }
        let folder = folder.canonicalize().map_err(refused)?;
        let git = Git::at(&folder, program)?;
        if is_empty {
            git.run(&["init", "-q", "--bare", "--template="])?;
        }
        Ok(Self { git, folder, made: is_empty })
    }

    /// Computes ids with the repository's hash.
    pub fn ids(&self) -> Result<GitIds, GitError> {
        let name = line_of(&self.git.run(&["rev-parse", "--show-object-format"])?);
        GitIds::named(&name).ok_or_else(|| GitError::Io(io::Error::other(format!("its hash {name} is unknown"))))
    }

    /// Where a reference points; `None` if it does not exist.
    pub fn commit_of(&self, reference: &str) -> Result<Option<String>, GitError> {
        let said = self.git.run(&["for-each-ref", "--format=%(objectname) %(refname)", reference])?;
        let said = String::from_utf8_lossy(&said);
        // Git also lists everything beneath the name.
        let found = said.lines().find_map(|line| line.split_once(' ').filter(|(_, name)| *name == reference));
        Ok(found.map(|(id, _)| id.to_owned()))
    }

    /// The working tree that has a branch checked out.
    pub fn checked_out(&self, reference: &str) -> Result<Option<PathBuf>, GitError> {
        let all = self.git.worktrees()?;
        let is_it = |branch: &Option<Vec<u8>>| branch.as_deref().map(OsStr::from_bytes) == Some(OsStr::new(reference));
        Ok(all.into_iter().find(|(_, branch)| is_it(branch)).map(|(path, _)| path))
    }
}
