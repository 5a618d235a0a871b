//! Putting a repository's state back: HEAD, the branch and the index of a checkpoint, only where somebody asks for it.
//!
//! An operation that does this calls, in order: [`Workspace::plan_git`] (reads, and says every reason to refuse),
//! [`Workspace::keep_git`] (what is there now stays reachable under `refs/piton/`; the move itself is recorded with the
//! operation), [`Workspace::apply_git`], [`Workspace::git_is_at`]. The first writes nothing, all others can be called again
//! after a crash, and [`Workspace::apply_git`] drives to either end. Taking it back is a plan of its own,
//! [`Workspace::plan_git_back`].
//!
//! The working tree is not touched here: its files are the operation's business. Of branches only the one that was
//! checked out then moves; the one that HEAD leaves stays where it is.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use piton_host::clock;
use piton_host::fail::point;
use piton_host::git::{GitError, Repository, RepositoryWriter, WriteError};
use piton_model::git::{BranchMove, GitEnd, GitMove, GitState, Head, InProgress, StagedEntry, StagedKind};
use piton_model::{OperationId, WorkspacePath};
use piton_store::{CheckpointRow, PATIENCE, StoreError};

use crate::history::target::TargetError;
use crate::operation::git::describe;
use crate::view::GitPlanView;
use crate::workspace::{History, Workspace};

/// Why a repository's state cannot be put back. Nothing was changed, unless it says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum GitRefusal {
    /// The checkpoint.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// There is no repository around the workspace.
    #[error("there is no git repository around {}", .0.display())]
    NoRepository(PathBuf),
    /// The checkpoint has none.
    #[error("the checkpoint has no git state: there was no repository then, or piton did not keep it yet")]
    NoState,
    /// The checkpoint has only a part of it.
    #[error("the checkpoint's git state is incomplete: {0}")]
    Incomplete(String),
    /// What is there now cannot be kept.
    #[error("the repository's state now cannot be read to its end: {0}")]
    Unreadable(String),
    /// Git is in the middle of something.
    #[error("git is in the middle of a {}", .0.as_str())]
    InProgress(InProgress),
    /// Git was in the middle of something at the checkpoint.
    #[error("git was in the middle of a {} at the checkpoint, and that cannot be put back", .0.as_str())]
    WasInProgress(InProgress),
    /// HEAD is or was on a reference that is no branch.
    #[error("HEAD is or was on `{0}`, which is not a branch")]
    NotABranch(String),
    /// The commit is not in the repository any more.
    #[error("commit {commit} of {} is not in the repository any more", branch.as_deref().unwrap_or("a detached HEAD"))]
    CommitGone {
        /// Which.
        commit: String,
        /// The branch that it was on.
        branch: Option<String>,
    },
    /// A staged file's content is neither in the repository nor in the store.
    #[error("what was staged of `{}` is neither in the repository any more nor in piton's store", .0.display())]
    BlobGone(WorkspacePath),
    /// The branch is another worktree's.
    #[error("branch {branch} is checked out in {}", worktree.display())]
    OtherWorktree {
        /// Which.
        branch: String,
        /// Where.
        worktree: PathBuf,
    },
    /// Somebody moved something since.
    #[error("{0} changed since; putting the git state back would overwrite that")]
    ChangedSince(String),
    /// A lock, or the system.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<GitError> for GitRefusal {
    fn from(error: GitError) -> Self {
        Self::Write(error.into())
    }
}

impl From<io::Error> for GitRefusal {
    fn from(error: io::Error) -> Self {
        Self::Write(GitError::Io(error).into())
    }
}

/// What putting a state back would do. Only the engine makes one.
#[derive(Clone, Debug)]
pub struct GitPlan {
    pub(crate) change: GitMove,
    view: GitPlanView,
}

impl GitPlan {
    /// What to show before asking.
    pub fn view(&self) -> &GitPlanView {
        &self.view
    }

    /// What is to be recorded with the operation before anything is written.
    pub fn change(&self) -> &GitMove {
        &self.change
    }
}

/// A state that was put back.
#[derive(Clone, Debug)]
pub struct GitRestored {
    /// Whose references keep what was there before.
    pub operation: OperationId,
    /// From where to where.
    pub change: GitMove,
    /// Whether the repository, read back, is in the state that was wanted.
    pub verified: bool,
}

impl Workspace {
    /// Puts the git state of a plan back, by itself: the files are left alone.
    ///
    /// # Errors
    /// Where git or the system refuses, or something changed since the plan was made.
    pub fn restore_git(&mut self, plan: GitPlan) -> Result<GitRestored, GitRefusal> {
        let locked = self.lock(PATIENCE)?;
        let operation = OperationId::from_random(clock::random()?);
        locked.keep_git(&operation, &plan.change)?;
        let verified = locked.finish_git(&plan.change, GitEnd::After)?;
        Ok(GitRestored { operation, change: plan.change, verified })
    }
}

impl History {
    /// Plans to put the git state of a checkpoint back, for showing. Has no side effect.
    ///
    /// # Errors
    /// Each reason for which it cannot be.
    pub fn plan_git_restore(&self, target: &str) -> Result<GitPlan, GitRefusal> {
        self.plan_git(&self.resolve(target)?)
    }

    /// Ends a move that was cut off, at either end; whether the repository, read back, is there.
    ///
    /// # Errors
    /// Where git or the system refuses, or somebody changed something since.
    pub fn finish_git(&self, change: &GitMove, end: GitEnd) -> Result<bool, GitRefusal> {
        self.apply_git(change, end)?;
        self.git_is_at(change, end)
    }

    /// What it would take to put the state of a checkpoint back.
    pub(crate) fn plan_git(&self, target: &CheckpointRow) -> Result<GitPlan, GitRefusal> {
        let repository = self.repository()?;
        let then = self.git_at(target)?.ok_or(GitRefusal::NoState)?;
        if let Some(why) = then.incomplete {
            return Err(GitRefusal::Incomplete(why));
        }
        if let Some(act) = then.in_progress {
            return Err(GitRefusal::WasInProgress(act));
        }
        let writer = repository.writer(self.environment.git.as_deref())?;
        let branch = match then.head.reference() {
            Some(reference) => {
                let now = Head::on(&reference, writer.commit_of(&reference)?);
                let then = Head::on(&reference, then.head.commit.clone());
                (now != then).then_some(BranchMove { before: now, after: then })
            }
            None => None,
        };
        self.plan_move(&repository, &writer, then, branch)
    }

    /// What it would take to take a move back. Refused where somebody moved HEAD, the branch or the index since.
    ///
    /// # Errors
    /// Each reason for which it cannot be.
    pub fn plan_git_back(&self, done: &GitMove) -> Result<GitPlan, GitRefusal> {
        let repository = self.repository()?;
        let writer = repository.writer(self.environment.git.as_deref())?;
        let now = writer.read();
        if let Some(what) = differs(&writer, &now, done, GitEnd::After)? {
            return Err(GitRefusal::ChangedSince(what));
        }
        // The branch that HEAD goes back to stayed where it was, and its state is only true of that commit.
        if let Some(reference) = done.before.head.reference() {
            let is_moved = done.branch.as_ref().is_some_and(|branch| branch.before.is_on_same(&done.before.head));
            if !is_moved && writer.commit_of(&reference)? != done.before.head.commit {
                return Err(GitRefusal::ChangedSince(describe(&done.before.head)));
            }
        }
        let branch = done.branch.clone().map(|branch| BranchMove { before: branch.after, after: branch.before });
        self.plan_move(&repository, &writer, done.before.clone(), branch)
    }

    /// Keeps all that a move replaces reachable, whatever `git gc` does: `refs/piton/<operation>/head`, `…/branch` and
    /// `…/index`. Can be called again.
    pub(crate) fn keep_git(&self, operation: &OperationId, change: &GitMove) -> Result<(), GitRefusal> {
        let repository = self.repository()?;
        let writer = repository.writer(self.environment.git.as_deref())?;
        let folder = format!("refs/piton/{operation}/");
        let branch = change.branch.as_ref().and_then(|branch| branch.before.commit.as_deref());
        for (name, commit) in [("head", change.before.head.commit.as_deref()), ("branch", branch)] {
            if let Some(commit) = commit {
                keep(&writer, &format!("{folder}{name}"), commit)?;
            }
        }
        if writer.commit_of(format!("{folder}index").as_bytes())?.is_none() {
            let lock = writer.lock_index()?;
            let tree = writer.tree_of_index(&change.before, &lock)?;
            keep(&writer, &format!("{folder}index"), &tree)?;
        }
        Ok(())
    }

    /// Lets go of what was kept for an operation, where nobody will want it back.
    ///
    /// # Errors
    /// Where git refuses.
    pub fn forget_git(&self, operation: &OperationId) -> Result<(), GitRefusal> {
        let repository = self.repository()?;
        let writer = repository.writer(self.environment.git.as_deref())?;
        for reference in writer.references(&format!("refs/piton/{operation}/"))? {
            let at = writer.commit_of(&reference)?;
            writer.set_reference(&reference, None, at.as_deref())?;
        }
        Ok(())
    }

    /// Drives a repository to one end of a move. Can be called again, and from any state in between; what is neither end
    /// is somebody's own, and nothing is changed.
    pub(crate) fn apply_git(&self, change: &GitMove, end: GitEnd) -> Result<(), GitRefusal> {
        let repository = self.repository()?;
        let writer = repository.writer(self.environment.git.as_deref())?;
        let to = change.state(end);
        // Held to the end, so that no other git stages or commits in between.
        let lock = writer.lock_index()?;
        let now = writer.read();
        if let Some(act) = now.in_progress {
            return Err(GitRefusal::InProgress(act));
        }
        let branch_now = match (change.branch_at(end), change.branch_at(end.other())) {
            (Some(goal), Some(other)) => {
                let reference = goal.reference().ok_or_else(|| GitRefusal::NotABranch(describe(goal)))?;
                let commit = writer.commit_of(&reference)?;
                if commit != goal.commit && commit != other.commit {
                    return Err(GitRefusal::ChangedSince(describe(&Head::on(&reference, commit))));
                }
                Some((reference, commit, goal))
            }
            _ => None,
        };
        check_head(&now.head, change, end)?;
        self.put_blobs(&writer, to)?;
        let old = repository.index_fingerprint().map_err(GitRefusal::Unreadable)?;
        let mut new = writer.build_index(to, &lock)?;
        if new.fingerprint != old {
            let other = match end {
                GitEnd::After => change.index.clone(),
                GitEnd::Before => {
                    // Only one can be in the making at a time.
                    drop(new);
                    self.put_blobs(&writer, &change.after)?;
                    let other = writer.build_index(&change.after, &lock)?.fingerprint.clone();
                    new = writer.build_index(to, &lock)?;
                    other
                }
            };
            if old != other {
                return Err(GitRefusal::ChangedSince("the index".into()));
            }
        }
        // The branch first: HEAD must never be on one that is not there yet.
        point("git-branch")?;
        if let Some((reference, commit, goal)) = branch_now
            && commit != goal.commit
        {
            writer.set_reference(&reference, goal.commit.as_deref(), commit.as_deref())?;
        }
        point("git-head")?;
        let is_there = now.head.is_on_same(&to.head) && (to.head.branch.is_some() || now.head == to.head);
        if !is_there {
            writer.set_head(&to.head)?;
        }
        point("git-index")?;
        // Where its entries are those of the old one, it still knows more of what `stat` says.
        writer.swap_index(new, &lock)?;
        point("git-done")?;
        Ok(())
    }

    /// Whether a repository, read back without git, is at one end of a move.
    pub(crate) fn git_is_at(&self, change: &GitMove, end: GitEnd) -> Result<bool, GitRefusal> {
        let repository = self.repository()?;
        let writer = repository.writer(self.environment.git.as_deref())?;
        let now = writer.read();
        Ok(now.incomplete.is_none() && differs(&writer, &now, change, end)?.is_none())
    }

    fn repository(&self) -> Result<Repository, GitRefusal> {
        self.found_repository().ok_or_else(|| GitRefusal::NoRepository(self.path.clone()))
    }

    fn plan_move(
        &self,
        repository: &Repository,
        writer: &RepositoryWriter<'_>,
        to: GitState,
        branch: Option<BranchMove>,
    ) -> Result<GitPlan, GitRefusal> {
        if let Some(lock) = repository.foreign_lock() {
            return Err(WriteError::Locked(lock).into());
        }
        let now = writer.read();
        if let Some(act) = now.in_progress {
            return Err(GitRefusal::InProgress(act));
        }
        if let Some(why) = now.incomplete {
            return Err(GitRefusal::Unreadable(why));
        }
        for head in [&to.head, &now.head] {
            if head.branch.is_some() && head.reference().is_none() {
                return Err(GitRefusal::NotABranch(head.branch.clone().unwrap_or_default()));
            }
        }
        self.check_objects(writer, &to)?;
        let heads = [Some(&to.head), branch.as_ref().map(|branch| &branch.after)];
        for head in heads.into_iter().flatten() {
            let Some(reference) = head.reference() else { continue };
            if let Some(worktree) = writer.checked_out_elsewhere(&reference)? {
                let branch = head.branch.clone().unwrap_or_default();
                return Err(GitRefusal::OtherWorktree { branch, worktree });
            }
        }
        let index = repository.index_fingerprint().map_err(GitRefusal::Unreadable)?;
        let commit = |head: &Head| head.commit.as_deref().map(|hex| hex.get(..10).unwrap_or(hex).to_owned());
        let view = GitPlanView {
            from: describe(&now.head),
            to: describe(&to.head),
            branch: branch.as_ref().and_then(|branch| branch.after.branch.clone()),
            branch_from: branch.as_ref().and_then(|branch| commit(&branch.before)),
            branch_to: branch.as_ref().and_then(|branch| commit(&branch.after)),
            index_changes: index_changes(writer, &now, &to)?,
            whole_repository: (!repository.prefix().is_empty()).then(|| repository.work_tree().to_owned()),
        };
        Ok(GitPlan { change: GitMove { before: now, after: to, branch, index }, view })
    }

    /// Checks that a state's commit is there, and each staged file's content here or in the store.
    fn check_objects(&self, writer: &RepositoryWriter<'_>, state: &GitState) -> Result<(), GitRefusal> {
        if let Some(commit) = &state.head.commit {
            let kinds = writer.kinds(&[commit.as_str()])?;
            if kinds.first().is_none_or(|kind| kind.as_deref() != Some("commit")) {
                let branch = state.head.branch.clone();
                return Err(GitRefusal::CommitGone { commit: commit.clone(), branch });
            }
        }
        for entry in missing(writer, state)? {
            match &entry.blob {
                Some(blob) if self.store.is_sound(blob)? => {}
                _ => return Err(GitRefusal::BlobGone(entry.path.clone())),
            }
        }
        Ok(())
    }

    /// Puts staged files that git dropped back into the repository, from the store.
    fn put_blobs(&self, writer: &RepositoryWriter<'_>, state: &GitState) -> Result<(), GitRefusal> {
        for entry in missing(writer, state)? {
            let gone = || GitRefusal::BlobGone(entry.path.clone());
            let bytes = self.store.blob(&entry.blob.ok_or_else(gone)?)?;
            if writer.put_blob(&bytes)? != entry.id {
                return Err(gone());
            }
        }
        Ok(())
    }
}

/// Staged entries whose content the repository does not have.
fn missing<'s>(writer: &RepositoryWriter<'_>, state: &'s GitState) -> Result<Vec<&'s StagedEntry>, GitError> {
    let entries: Vec<_> = state.staged.iter().filter(|entry| entry.has_blob()).collect();
    let ids: Vec<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
    let kinds = writer.kinds(&ids)?;
    Ok(entries.into_iter().zip(kinds).filter(|(_, kind)| kind.is_none()).map(|(entry, _)| entry).collect())
}

fn keep(writer: &RepositoryWriter<'_>, reference: &str, object: &str) -> Result<(), GitError> {
    match writer.commit_of(reference.as_bytes())? {
        Some(_) => Ok(()),
        None => writer.set_reference(reference.as_bytes(), Some(object), None),
    }
}

/// What of a repository is not as it is at one end of a move.
fn differs(
    writer: &RepositoryWriter<'_>,
    now: &GitState,
    change: &GitMove,
    end: GitEnd,
) -> Result<Option<String>, GitRefusal> {
    let wanted = change.state(end);
    if now.head != wanted.head {
        return Ok(Some("HEAD".into()));
    }
    if let Some(branch) = change.branch_at(end)
        && let Some(reference) = branch.reference()
        && writer.commit_of(&reference)? != branch.commit
    {
        return Ok(Some(describe(branch)));
    }
    Ok((!now.has_same_index(wanted, writer.flags_that_count())).then(|| "the index".into()))
}

/// Checks that HEAD is where one of the two ends has it, or on the moved branch between both.
fn check_head(now: &Head, change: &GitMove, end: GitEnd) -> Result<(), GitRefusal> {
    let is_end = |end: GitEnd| {
        let head = &change.state(end).head;
        let is_moved = change.branch_at(end).is_some_and(|branch| branch.is_on_same(head));
        // On a moved branch its commit is looked at by itself.
        if head.branch.is_some() && is_moved { now.is_on_same(head) } else { now == head }
    };
    match is_end(end) || is_end(end.other()) {
        true => Ok(()),
        false => Err(GitRefusal::ChangedSince(format!("HEAD, now at {},", describe(now)))),
    }
}

/// How many paths have other entries in the index of one state than in that of another.
fn index_changes(writer: &RepositoryWriter<'_>, now: &GitState, to: &GitState) -> Result<u64, WriteError> {
    let flags = writer.flags_that_count();
    let of = |state: &'_ GitState| -> BTreeMap<WorkspacePath, Vec<(u32, String, u8, u16)>> {
        let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for entry in &state.staged {
            let list = all.entry(entry.path.clone()).or_default();
            if entry.kind != StagedKind::Deleted {
                list.push((entry.mode, entry.id.clone(), entry.stage, entry.flags & flags));
            }
        }
        all
    };
    let (old, new) = (of(now), of(to));
    let trees = writer.differing(now.head.commit.as_deref(), to.head.commit.as_deref())?;
    let mut paths: BTreeSet<&WorkspacePath> = old.keys().chain(new.keys()).collect();
    paths.extend(trees.iter().map(|one| &one.path));
    let between: BTreeMap<&WorkspacePath, _> = trees.iter().map(|one| (&one.path, (&one.before, &one.after))).collect();
    let entry = |(mode, id): &(u32, String)| match mode {
        0 => Vec::new(),
        mode => vec![(*mode, id.clone(), 0, 0)],
    };
    let is_changed = |path: &&&WorkspacePath| match (old.get(**path), new.get(**path), between.get(**path)) {
        (Some(old), Some(new), _) => old != new,
        (Some(old), None, Some((_, after))) => *old != entry(after),
        (None, Some(new), Some((before, _))) => *new != entry(before),
        // Staged on one side, and both commits are the same there; or the commits differ and nothing is staged.
        _ => true,
    };
    let changed = paths.iter().filter(is_changed).count();
    let flagged = |state: &GitState| -> BTreeSet<(WorkspacePath, u16)> {
        state.flagged.iter().map(|one| (one.path.clone(), one.flags & flags)).filter(|one| one.1 != 0).collect()
    };
    let (old_flags, new_flags) = (flagged(now), flagged(to));
    let by_flag: BTreeSet<_> = old_flags.symmetric_difference(&new_flags).map(|(path, _)| path).collect();
    let by_flag = by_flag.into_iter().filter(|path| !paths.contains(path)).count();
    Ok((changed + by_flag) as u64)
}
