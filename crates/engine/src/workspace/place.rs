//! Which workspace a folder belongs to: the known one around it, the worktree or the repository that it is in, or none.
//!
//! A hook asks this at every event, so only the folders on the way to the one that is asked about are looked at.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use piton_host::git::{WorktreeLink, is_git_folder, is_worktree, linked_worktrees};
use piton_host::{Index, Root, canonical, canonical_folder, identity_at, is_folder, is_there, left_out};
use piton_model::diff::lookup;
use piton_model::{Entry, SkipReason, WorkspacePath};
use piton_store::{Known, Reader, StoreError};

use crate::view::SessionView;
use crate::workspace::{Engine, History, OpenError, rules_for};

/// Where a folder belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The workspace's folder, which need not be known yet.
    pub root: PathBuf,
    /// The folder itself, or the outermost one around it, that the workspace's rules leave out: what is in it is not
    /// captured with the workspace.
    pub left_out: Option<LeftOut>,
    /// In no repository and no known workspace: the folder stands for itself.
    pub is_alone: bool,
}

/// A folder that is not captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Where it is.
    pub folder: PathBuf,
    /// Why; none for a folder outside every repository and every known workspace.
    pub reason: Option<SkipReason>,
}

/// Where an event is captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPlace {
    /// The workspace's folder, which need not be known yet.
    pub root: PathBuf,
    /// The agent works in a folder that is not captured: this one.
    pub left_out: Option<LeftOut>,
}

impl Engine {
    /// The folder of the workspace that a folder belongs to.
    ///
    /// # Errors
    /// Where the folder's path cannot be followed.
    pub fn locate(&self, folder: &Path) -> Result<PathBuf, OpenError> {
        Ok(self.located(folder)?.root)
    }

    /// Where a folder belongs: to the innermost known workspace or linked worktree around it, else to the repository
    /// around it. What that one's rules leave out belongs to a repository inside what is left out, where there is one.
    ///
    /// # Errors
    /// Where the folder's path cannot be followed.
    pub fn located(&self, folder: &Path) -> Result<Located, OpenError> {
        let path = canonical_folder(folder).map_err(|source| OpenError::Folder { path: folder.to_owned(), source })?;
        let known = self.known_around(&path);
        let inside_known = path.ancestors().take_while(|folder| Some(*folder) != known.as_deref());
        let worktree = inside_known.into_iter().find(|folder| self.is_own_worktree(folder));
        // A home folder that is a worktree, or in one, holds many projects like any other.
        let worktree = worktree.filter(|folder| self.refuse(folder).is_ok()).map(Path::to_path_buf);
        let Some(root) = worktree.or(known).or_else(|| self.repository_around(&path, Path::new(""))) else {
            return Ok(Located { root: path, left_out: None, is_alone: true });
        };
        let Some(left_out) = self.left_out(&root, &path) else {
            return Ok(Located { root, left_out: None, is_alone: false });
        };
        match self.repository_around(&path, &left_out.folder) {
            Some(inner) => {
                let left_out = self.left_out(&inner, &path);
                Ok(Located { root: inner, left_out, is_alone: false })
            }
            None => Ok(Located { root, left_out: Some(left_out), is_alone: false }),
        }
    }

    /// Where an event of a session is captured that works in these workspaces already, the first one first.
    ///
    /// A folder that belongs to no repository becomes a workspace only where the session begins there: an agent that
    /// looks around later must not make a workspace of every folder that it visits.
    ///
    /// # Errors
    /// Where the folder's path cannot be followed.
    pub fn event_place(&self, cwd: &Path, session: &[PathBuf]) -> Result<EventPlace, OpenError> {
        // A symlink in a workspace's place is not the workspace, and neither is its store.
        let is_there = |folder: &&PathBuf| {
            identity_at(folder).is_some() && self.known_at(folder).is_ok_and(|known| known.path == **folder)
        };
        let located = self.located(cwd)?;
        let path = canonical_folder(cwd).map_err(|source| OpenError::Folder { path: cwd.to_owned(), source })?;
        if !is_folder(&path) {
            // A folder that is gone, perhaps with all of its workspace, is no place to begin anything.
            let is_around = |root: &&PathBuf| path.starts_with(root);
            let innermost = session.iter().filter(is_there).filter(is_around).max_by_key(|root| root.as_os_str().len());
            let root = innermost.or(session.iter().find(is_there)).cloned();
            return Ok(EventPlace { root: root.unwrap_or(located.root), left_out: None });
        }
        let begins_here = session.is_empty();
        if located.is_alone && !begins_here {
            let left_out = Some(LeftOut { folder: path, reason: None });
            // Where none of them is there any more, the first one's gap says so.
            let root = session.iter().find(is_there).or(session.first()).cloned();
            return Ok(EventPlace { root: root.unwrap_or(located.root), left_out });
        }
        match located.left_out {
            Some(left_out) if begins_here && left_out.reason.is_some_and(SkipReason::is_by_rule) => {
                Ok(EventPlace { root: path, left_out: None })
            }
            left_out => Ok(EventPlace { root: located.root, left_out }),
        }
    }

    /// Why piton makes no workspace of a folder, where it does not.
    pub fn refusal(&self, folder: &Path) -> Option<OpenError> {
        let path = canonical(folder).ok()?;
        match self.home.at(&path) {
            Some(_) => None,
            None => self.refuse(&path).and_then(|()| self.refuse_git(&path)).err(),
        }
    }

    /// The workspace around a worktree, where its store has turns from a time when the worktree was there and had no
    /// store of its own, and holds files of it. What those turns did in it is not in its own log.
    ///
    /// # Errors
    /// Where a store refuses.
    pub fn earlier_turns(&self, worktree: &Path) -> Result<Option<PathBuf>, OpenError> {
        let Ok(root) = Root::open(worktree) else { return Ok(None) };
        if !is_worktree(worktree) {
            return Ok(None);
        }
        let around = worktree.parent().and_then(|parent| self.home.around(parent));
        let Some(around) = around.filter(|known| worktree.starts_with(&known.path)) else { return Ok(None) };
        let born = root.identity().born.filter(|_| !root.identity().is_layered);
        let born = born.map_or(i64::MIN, |ns| ns / 1_000_000);
        let first = match self.home.at(worktree) {
            Some(known) => self.home.open(&known.id)?.first(1)?.map(|row| row.checkpoint.created_at.0),
            None => None,
        };
        let until = first.unwrap_or(i64::MAX);
        let store = self.home.open(&around.id)?;
        let is_earlier = store.turn_places()?.iter().any(|(_, _, at)| (born..until).contains(&at.0));
        let inner = worktree.strip_prefix(&around.path).unwrap_or(worktree);
        let Ok(inner) = WorkspacePath::new(inner.as_os_str().as_bytes()) else { return Ok(None) };
        let holds_files = is_earlier && holds_folder(&store, &inner, born..until)?;
        Ok(holds_files.then_some(around.path))
    }

    /// The linked worktree around a path that lies inside a workspace, and is not that workspace.
    pub(crate) fn worktree_inside(&self, root: &Path, path: &Path) -> Option<PathBuf> {
        let inside = path.ancestors().take_while(|folder| *folder != root && folder.starts_with(root));
        let worktree = inside.into_iter().find(|folder| self.is_own_worktree(folder));
        worktree.filter(|folder| self.refuse(folder).is_ok()).map(Path::to_path_buf)
    }

    /// Whether a folder is a linked worktree, which belongs to no folder around it. One that was moved, and that git does not
    /// know any more, is one still where it has a store.
    fn is_own_worktree(&self, folder: &Path) -> bool {
        match WorktreeLink::of(folder) {
            WorktreeLink::Worktree => true,
            WorktreeLink::CutOff => self.home.moved_to(folder).is_some(),
            WorktreeLink::None => false,
        }
    }

    /// The repository that a folder is in, where it is one inside a workspace and not the workspace itself.
    pub fn repository_inside(&self, root: &Path, folder: &Path) -> Option<PathBuf> {
        let path = canonical(folder).ok()?;
        self.repository_around(&path, root).filter(|repository| repository != root)
    }

    /// Where a folder stood when another store than its own captured it: a folder that was moved while nothing happened in it,
    /// and another that took its place. What was captured of it until then is in that store.
    ///
    /// # Errors
    /// Where a store refuses.
    pub fn former_place(&self, folder: &Path) -> Result<Option<PathBuf>, OpenError> {
        let Some(there) = identity_at(folder) else { return Ok(None) };
        for known in self.home.all().into_iter().filter(|known| known.line > 1 && known.path != folder) {
            let lines = self.home.open(&known.id)?.lines()?;
            if lines.iter().any(|(line, root)| *line != known.line && root.is_same_moved(&there)) {
                return Ok(Some(known.path));
            }
        }
        Ok(None)
    }

    /// Where a folder with the number of this one was captured that is gone. Where a filesystem tells no births, or they
    /// move, nobody knows whether that folder moved here or only its number was used again.
    pub fn possible_former_place(&self, folder: &Path) -> Option<PathBuf> {
        let there = identity_at(folder)?;
        let is_gone = |known: &Known| identity_at(&known.path).is_none_or(|there| !known.root.is_same(&there));
        let all = self.home.all().into_iter().filter(|known| known.path != folder);
        let mut alike = all.filter(|known| known.root.is_same(&there) && !known.root.is_same_moved(&there));
        alike.find(is_gone).map(|known| known.path)
    }

    /// Refuses roots that are hardly one project, or that belong to git.
    pub(crate) fn refuse(&self, path: &Path) -> Result<(), OpenError> {
        let home = self.environment.home_folder.as_deref().and_then(|home| canonical(home).ok());
        let what = match path {
            _ if path.parent().is_none() => "the root of the file system",
            _ if home.as_deref() == Some(path) => "your home folder",
            _ if home.is_some_and(|home| home.starts_with(path)) => "a folder around your home folder",
            _ => return Ok(()),
        };
        Err(OpenError::Refused { path: path.to_owned(), what })
    }

    /// Refuses piton's own folder, and what lies in it: a rewind there would put back the stores of other workspaces.
    pub(crate) fn refuse_own(&self, path: &Path) -> Result<(), OpenError> {
        let is_in = canonical(self.home.path()).is_ok_and(|home| path.starts_with(home));
        if is_in { Err(OpenError::Own { path: path.to_owned() }) } else { Ok(()) }
    }

    /// Refuses folders that hold a repository's own data, and what lies in them: it is never written.
    pub(crate) fn refuse_git(&self, path: &Path) -> Result<(), OpenError> {
        self.refuse_own(path)?;
        let mut is_work_tree = false;
        for folder in path.ancestors() {
            // Some keep their worktrees in there.
            if is_worktree(folder) {
                return Ok(());
            }
            // A working tree may have files of git's names, and has a `.git` then.
            is_work_tree |= is_there(&folder.join(".git"));
            let is_git = folder.file_name().is_some_and(|name| name == ".git");
            if is_git || (!is_work_tree && is_git_folder(folder)) {
                return Err(OpenError::Git { path: path.to_owned() });
            }
        }
        Ok(())
    }

    fn known_around(&self, path: &Path) -> Option<PathBuf> {
        let known = self.home.around(path)?;
        let moved = !is_there(&known.path) || !path.starts_with(&known.path);
        if !moved {
            return Some(known.path);
        }
        let here = path.ancestors().find(|f| Root::open(f).is_ok_and(|r| r.identity().is_same(&known.root)));
        Some(here.map_or(known.path, Path::to_path_buf))
    }

    /// The innermost repository that a path is in and that is itself in a folder. A home folder under git holds many
    /// projects, and would be refused as one.
    fn repository_around(&self, path: &Path, within: &Path) -> Option<PathBuf> {
        let inside = path.ancestors().take_while(|folder| folder.starts_with(within));
        let repository = inside.into_iter().find(|folder| is_there(&folder.join(".git")));
        repository.filter(|folder| self.refuse(folder).is_ok()).map(Path::to_path_buf)
    }

    /// What a workspace's rules leave out on the way to a path that is there.
    pub(crate) fn left_out(&self, root: &Path, path: &Path) -> Option<LeftOut> {
        let inner = path.strip_prefix(root).ok().filter(|inner| !inner.as_os_str().is_empty() && is_folder(path))?;
        let open = Root::open(root).ok()?;
        let (folder, reason) = left_out(&open, rules_for(&self.home, &self.environment), inner)?;
        Some(LeftOut { folder: root.join(folder), reason: Some(reason) })
    }
}

/// Whether a store has files of a folder, by its newest checkpoints of a time in milliseconds.
fn holds_folder(store: &Reader, folder: &WorkspacePath, time: Range<i64>) -> Result<bool, StoreError> {
    /// The newest ones before the folder got a store of its own are those that would hold it.
    const LOOKED_AT: usize = 100;
    let mut seen = HashSet::new();
    let all = store.checkpoints(None)?;
    let of_that_time =
        all.iter().map(|row| &row.checkpoint).filter(|checkpoint| time.contains(&checkpoint.created_at.0));
    for checkpoint in of_that_time.filter(|checkpoint| seen.insert(checkpoint.root.tree)).take(LOOKED_AT) {
        if let Some(Entry::Folder { .. }) = lookup(store, &checkpoint.root.tree, folder)? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl History {
    /// The worktrees in this workspace, of its own repository and of those in it, that the sessions at work here do not
    /// capture: those that have no store yet, and those that the rules leave out and not all of these sessions work in.
    pub(crate) fn unprotected_worktrees(&self, index: Option<&Index>, at_work: &[SessionView]) -> Vec<PathBuf> {
        let nested = index.map(Index::repositories).unwrap_or_default();
        let repositories = nested.into_iter().map(|inner| self.path.join(inner)).chain([self.path.clone()]);
        let mut all: BTreeSet<PathBuf> = repositories.flat_map(|folder| linked_worktrees(&folder)).collect();
        all.retain(|path| path.starts_with(&self.path) && *path != self.path);
        let engine = self.engine();
        let works_in = |session: &SessionView, path: &Path| engine.workspaces_of(&session.id).iter().any(|p| p == path);
        all.retain(|path| match self.home.at(path) {
            None => true,
            Some(_) => {
                let is_worked_in = !at_work.is_empty() && at_work.iter().all(|session| works_in(session, path));
                !is_worked_in && engine.left_out(&self.path, path).is_some()
            }
        });
        all.into_iter().collect()
    }
}
