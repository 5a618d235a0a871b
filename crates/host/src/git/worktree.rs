//! A linked worktree of git for a folder whose files are there already, made by git's own `git worktree add`.
//!
//! HEAD there is detached, so no reference of the user's moves. Git makes the worktree without files in a folder beside, and
//! its `.git` is moved to where the files are; `git worktree repair` tells the repository.

use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use super::Repository;
use super::command::{Git, GitError};
use super::write::line_of;
use crate::clock;

/// Why there is no worktree.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    #[error("there is no git repository in {}", .0.display())]
    NoRepository(PathBuf),
    #[error("the git repository is that of {}, and a worktree is of all of it", .0.display())]
    Larger(PathBuf),
    #[error("the git repository in {} is bare, so it has no working tree that a fork could be one of", .0.display())]
    Bare(PathBuf),
    #[error("{} is a submodule, whose worktrees git does not keep apart", .0.display())]
    Submodule(PathBuf),
    #[error("the git repository has no commit yet")]
    NoCommit,
    #[error("the commit {0} that git was at then is not in the repository any more")]
    CommitGone(String),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// A worktree that can be made.
#[derive(Debug)]
pub struct NewWorktree {
    git: Git,
    /// Where its HEAD will be.
    pub commit: String,
}

impl NewWorktree {
    /// Checks that the repository of a folder can have one more worktree, at a commit or else where HEAD is. Nothing is made.
    ///
    /// # Errors
    /// Where there is no git, no repository, or none that this works with.
    pub fn of(root: &Path, commit: Option<&str>, program: Option<&Path>) -> Result<Self, WorktreeError> {
        let here = || root.to_owned();
        let repository = Repository::find(root).ok_or_else(|| WorktreeError::NoRepository(here()))?;
        if !repository.prefix().is_empty() {
            return Err(WorktreeError::Larger(repository.work_tree().to_owned()));
        }
        let git = Git::at(root, program)?;
        if line_of(&git.run(&["rev-parse", "--is-inside-work-tree"])?) != "true" {
            return Err(WorktreeError::Bare(here()));
        }
        if !line_of(&git.run(&["rev-parse", "--show-superproject-working-tree"])?).is_empty() {
            return Err(WorktreeError::Submodule(here()));
        }
        let name = format!("{}^{{commit}}", commit.unwrap_or("HEAD"));
        let found = git.ask(&["rev-parse", "--verify", "--quiet", &name])?;
        match (found, commit) {
            (Some(id), _) => Ok(Self { git, commit: line_of(&id) }),
            (None, Some(commit)) => Err(WorktreeError::CommitGone(commit.to_owned())),
            (None, None) => Err(WorktreeError::NoCommit),
        }
    }

    /// Makes a folder with files, and without a `.git`, a worktree. Its index is that of the commit; its files stay.
    ///
    /// # Errors
    /// Where git or the system refuses. The files are as they were then.
    pub fn make(&self, folder: &Path) -> Result<(), WorktreeError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| WorktreeError::Io { path, source }
        };
        let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
            return Err(failed(folder)(io::ErrorKind::InvalidInput.into()));
        };
        let random: [u8; 6] = clock::random().map_err(failed(folder))?;
        let beside = random.iter().fold(".piton-worktree-".to_owned(), |mut name, byte| {
            let _ = write!(name, "{byte:02x}");
            name
        });
        // Git calls a worktree by the last name of its path.
        let beside = parent.join(beside);
        let made = beside.join(name);
        std::fs::create_dir(&beside).map_err(failed(&beside))?;
        let done = self.make_beside(&made, folder);
        if done.is_err() {
            let _ = self.git.run(&["worktree".as_ref(), "remove".as_ref(), "--force".as_ref(), made.as_os_str()]);
        }
        let _ = std::fs::remove_dir(&made);
        let _ = std::fs::remove_dir(&beside);
        done
    }

    fn make_beside(&self, made: &Path, folder: &Path) -> Result<(), WorktreeError> {
        let add = ["worktree", "add", "--quiet", "--detach", "--no-checkout"].map(AsRef::as_ref);
        let add: Vec<_> = add.into_iter().chain([made.as_os_str(), self.commit.as_ref()]).collect();
        self.git.run(&add)?;
        let (from, to) = (made.join(".git"), folder.join(".git"));
        if to.symlink_metadata().is_ok() {
            let source = io::ErrorKind::AlreadyExists.into();
            return Err(WorktreeError::Io { path: to, source });
        }
        std::fs::rename(&from, &to).map_err(|source| WorktreeError::Io { path: to, source })?;
        self.git.run(&["worktree".as_ref(), "repair".as_ref(), folder.as_os_str()])?;
        // The files stay as they are; `git status` there tells what differs.
        self.git.in_folder(folder).run(&["read-tree", "HEAD"])?;
        Ok(())
    }
}
