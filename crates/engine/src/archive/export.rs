//! Checkpoints as commits, so that git's own tools can look at them.
//!
//! One commit for a checkpoint, or one for each turn of a session, each after the other, with the user's own edits between
//! turns as commits of their own. The same checkpoints with the same files left out always become the same commits. Written under a name of piton's
//! first, read back and compared with ids that are reckoned here, and only then the user's reference is set. Never touches
//! HEAD, an index or a working tree.

mod stream;

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use piton_host::clock;
use piton_host::git::{ExportRepository, GitError, GitId, PlaceError};
use piton_model::diff::TreeSource;
use piton_model::short::one_line;
use piton_model::target::TurnPlace;
use piton_model::{Cause, Entry, ObjectId, OperationId, Target, WorkspacePath};
use piton_store::{CheckpointRow, OperationState, SessionRow, StoreError, TurnRow};

use crate::capture::ignored::Private;
use crate::history::target::TargetError;
use crate::view::{Exported, ExportedCommit, PathView};
use crate::workspace::{History, InItsPlace, Standing};

use self::stream::{PITON, Stream};

/// What to export, and where to.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    pub what: ExportWhat,
    /// The branch to make: its name, or its whole name beginning with `refs/heads/`.
    pub reference: String,
    /// Ignored paths that are wanted all the same.
    pub include: Vec<WorkspacePath>,
    /// Another repository than the one around the workspace; a bare one is made where nothing is.
    pub into: Option<PathBuf>,
    /// Replace a reference that is there.
    pub force: bool,
}

/// What can be exported.
#[derive(Clone, Debug)]
pub enum ExportWhat {
    /// One checkpoint.
    Checkpoint(Target),
    /// Every turn of a session, given the beginning of its id or its name.
    Session(String),
}

/// Why nothing was exported. No reference was changed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// What is to be exported.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The session has no checkpoint here.
    #[error("session {0} has no checkpoints here")]
    NothingIn(String),
    /// Where to.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// Something else stands in the place of the workspace's folder, and its repository is not the workspace's.
    #[error("{} is gone, and {} stands in its place; nothing was exported", path.display(), by.word())]
    Displaced {
        /// Where it was.
        path: PathBuf,
        /// What is there.
        by: InItsPlace,
    },
    /// Another folder stands at the workspace's path.
    #[error("another folder stands at {}; nothing was exported", .0.display())]
    OtherFolder(PathBuf),
    /// No name for a branch.
    #[error("`{0}` is not a name for a branch")]
    BadName(String),
    /// A path that was asked for by name and would not have stayed out.
    #[error("`{}` is not one of the files that stay out", .0.display())]
    NotIgnored(WorkspacePath),
    /// The reference is there already.
    #[error("{0} is there already")]
    Exists(String),
    /// The reference is a branch that somebody works on.
    #[error("{reference} is checked out in {}", worktree.display())]
    CheckedOut { reference: String, worktree: PathBuf },
    /// Git has something else than it was given.
    #[error("git read back another tree than was written, in the commit of checkpoint {0}")]
    Differs(String),
    /// Git.
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Characters of a message's first line, as git's own tools have room for.
const SUBJECT: usize = 72;

/// A commit to be made.
struct Planned {
    row: CheckpointRow,
    subject: String,
    body: String,
    author: String,
    turn: Option<u32>,
    /// Left out where it would be the same as the one before it.
    only_if_changed: bool,
}

impl History {
    /// Writes checkpoints to a git repository as commits.
    ///
    /// # Errors
    /// Where there is nothing to export, no repository, the reference is taken, or git or the store refuses.
    pub fn export_git(&self, options: &ExportOptions) -> Result<Exported, ExportError> {
        let branch = branch_name(&options.reference)?;
        let reference = format!("{BRANCHES}{branch}");
        let (planned, without_turns) = match &options.what {
            ExportWhat::Checkpoint(target) => (vec![self.commit_of_checkpoint(target)?], Vec::new()),
            ExportWhat::Session(session) => self.commits_of_session(session)?,
        };
        let program = self.environment.git.as_deref();
        let place = match &options.into {
            Some(folder) => ExportRepository::at(folder, program)?,
            None => match self.in_its_place() {
                Some(by) => return Err(ExportError::Displaced { path: self.path.clone(), by }),
                // Another folder's repository is not this one's, whosever it is.
                None if matches!(self.standing(), Ok(Standing::Other(_))) => {
                    return Err(ExportError::OtherFolder(self.path.clone()));
                }
                None => ExportRepository::around(&self.path, program)?,
            },
        };
        // Git takes some names for others, such as `@{-1}`.
        match place.git.run(&["check-ref-format", "--branch", branch]) {
            Ok(said) if said.trim_ascii_end() == branch.as_bytes() => {}
            Ok(_) | Err(GitError::Failed { .. }) => return Err(ExportError::BadName(options.reference.clone())),
            Err(error) => return Err(error.into()),
        }
        if let Some(worktree) = place.checked_out(&reference)? {
            return Err(ExportError::CheckedOut { reference, worktree });
        }
        let old = place.commit_of(&reference)?;
        if old.is_some() && !options.force {
            return Err(ExportError::Exists(reference));
        }
        let private = self.staying_out(&planned, &options.include)?;
        let without = Without::new(private.all().cloned().collect());
        let id = OperationId::from_random(clock::random().map_err(GitError::Io)?);
        let scratch = format!("refs/piton/exporting-{id}");
        let made = self.import(&place, &scratch, &planned, &without);
        let result = made.and_then(|made| {
            let commit = made.last().map(|(id, _)| id.clone()).unwrap_or_default();
            let message = "piton: export";
            place.git.run(&["update-ref", "-m", message, &reference, &commit, old.as_deref().unwrap_or_default()])?;
            Ok((made, commit))
        });
        // Where there was no commit yet, there is none to remove.
        let _ = place.git.run(&["update-ref", "-d", &scratch]);
        let (made, commit) = result?;
        if place.made {
            // So that a clone of it has something to check out.
            place.git.run(&["symbolic-ref", "HEAD", &reference])?;
        }
        let last = made.last().map(|(_, at)| &planned[*at].row.checkpoint);
        let mut left_out = LeftOut::default();
        if let Some(last) = last {
            self.left_out(&last.root.tree, &WorkspacePath::root(), &without, &mut left_out)?;
        }
        let skipped_count = last.map_or(0, |checkpoint| checkpoint.skipped);
        let commits = made.into_iter().map(|(commit, at)| {
            let planned = &planned[at];
            let checkpoint = planned.row.checkpoint.id.clone();
            ExportedCommit { commit, subject: planned.subject.clone(), checkpoint, turn: planned.turn }
        });
        Ok(Exported {
            reference,
            commit,
            commits: commits.collect(),
            repository: place.folder,
            made: place.made,
            without: without_turns,
            ignored: private.ignored.iter().map(Into::into).collect(),
            filtered: private.filtered.iter().map(Into::into).collect(),
            unwatched: private.unwatched.iter().map(Into::into).collect(),
            copies: private.copies.iter().map(Into::into).collect(),
            empty_folders: left_out.empty,
            other_modes: left_out.modes,
            skipped_count,
            verified: true,
        })
    }

    /// What is ignored, filtered or hidden from git, or a copy of such a file, and not asked for. It stays out of every commit,
    /// whichever of them has the rule.
    fn staying_out(&self, planned: &[Planned], include: &[WorkspacePath]) -> Result<Private, ExportError> {
        let mut private = self.private_in(planned.iter().map(|one| &one.row.checkpoint))?;
        for wanted in include {
            if !private.all().any(|path| path.is_within(wanted)) {
                return Err(ExportError::NotIgnored(wanted.clone()));
            }
            private.allow(wanted);
        }
        Ok(private)
    }

    fn commit_of_checkpoint(&self, target: &Target) -> Result<Planned, ExportError> {
        let row = self.checkpoint_at(target)?;
        let checkpoint = &row.checkpoint;
        // What an automatic one is described by comes after it: it is the state before that.
        let described = checkpoint.description.as_ref().map(|text| match checkpoint.cause {
            Cause::Prompt | Cause::BeforeTool => format!("before: {text}"),
            _ => text.clone(),
        });
        let called = row.names.first().or(row.annotation.as_ref()).or(described.as_ref());
        let subject = called.map(|text| subject(text)).filter(|text| !text.is_empty());
        let mut body = format!("Checkpoint {} ({}).\n", checkpoint.id, checkpoint.cause.as_str());
        if let Some(place) = &checkpoint.place {
            body += &format!("Session {}, turn {}.\n", place.session, place.turn);
        }
        let subject = subject.unwrap_or_else(|| format!("checkpoint {}", checkpoint.id.short()));
        Ok(Planned { row, subject, body, author: PITON.into(), turn: None, only_if_changed: false })
    }

    /// The session's first state, then each turn's end, and between turns what changed while none ran.
    fn commits_of_session(&self, wanted: &str) -> Result<(Vec<Planned>, Vec<u32>), ExportError> {
        let session = self.session_meant(Some(wanted), wanted)?;
        let id = session.session.id.clone();
        let first = self.store.checkpoints_of(&id)?.into_iter().next();
        let first = first.ok_or_else(|| ExportError::NothingIn(id.short().to_owned()))?;
        let mut planned = vec![Planned {
            subject: format!("start of session {}", id.short()),
            body: format!("Session {id} of {}.\nCheckpoint {}.\n", author(&session.session.agent), first.checkpoint.id),
            row: first,
            author: PITON.into(),
            turn: None,
            only_if_changed: false,
        }];
        let operations = self.store.operations()?;
        let mut without = Vec::new();
        let mut last_seq = planned[0].row.seq;
        for turn in self.store.turns(&id)? {
            let number = turn.turn.number;
            let at = |place| Target::turn(id.as_str(), number, place);
            let before = self.at_place(&at(TurnPlace::Before))?;
            let Some(end) = self.at_place(&at(TurnPlace::End))? else {
                without.push(number);
                continue;
            };
            if let Some(before) = before {
                let is_rewound = operations.iter().any(|operation| {
                    operation.state == OperationState::Done && (last_seq..before.seq).contains(&operation.seq)
                });
                let (whose, author) = if is_rewound { ("piton's rewind", PITON) } else { ("your edits", "you") };
                planned.push(Planned {
                    subject: format!("{whose} before turn {number}"),
                    body: format!("Session {id}.\nCheckpoint {}.\n", before.checkpoint.id),
                    row: before,
                    author: author.into(),
                    turn: None,
                    only_if_changed: true,
                });
            }
            last_seq = end.seq;
            planned.push(self.commit_of_turn(&session, &turn, end)?);
        }
        Ok((planned, without))
    }

    fn at_place(&self, target: &Target) -> Result<Option<CheckpointRow>, ExportError> {
        match self.checkpoint_at(target) {
            Ok(row) => Ok(Some(row)),
            Err(TargetError::Gap { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn commit_of_turn(&self, session: &SessionRow, row: &TurnRow, end: CheckpointRow) -> Result<Planned, ExportError> {
        let (id, number) = (&session.session.id, row.turn.number);
        let agent = author(&session.session.agent);
        let said = row.turn.prompt.as_deref().map(subject).filter(|text| !text.is_empty());
        let mut tools: Vec<(String, u32)> = Vec::new();
        for step in self.store.steps(id, Some(number))? {
            let tool = one_line(&step.step.tool, SUBJECT);
            match tools.iter_mut().find(|(name, _)| *name == tool) {
                Some((_, count)) => *count += 1,
                None => tools.push((tool, 1)),
            }
        }
        let mut body = format!("Turn {number} of session {id} of {agent}.\n");
        if !tools.is_empty() {
            let tools: Vec<_> = tools.iter().map(|(name, count)| format!("{name} x{count}")).collect();
            body += &format!("Tools: {}.\n", tools.join(", "));
        }
        body += &format!("Checkpoint {}.\n", end.checkpoint.id);
        Ok(Planned {
            subject: said.unwrap_or_else(|| format!("turn {number}")),
            body,
            row: end,
            author: agent,
            turn: Some(number),
            only_if_changed: false,
        })
    }

    /// Gives all commits to git, and reads back what it made of them: each commit, and which of the planned it is.
    fn import(
        &self,
        place: &ExportRepository,
        scratch: &str,
        planned: &[Planned],
        without: &Without,
    ) -> Result<Vec<(String, usize)>, ExportError> {
        let mut stream = Stream::new(self, without, place.ids()?);
        let mut expected: Vec<(usize, GitId)> = Vec::new();
        let options = ["-c", "core.ignoreCase=false", "fast-import", "--quiet", "--done", "--date-format=raw"];
        place.git.feed(&options, |out| stream.all(out, scratch, planned, &mut expected))?;
        let said = place.git.run(&["rev-list", "--reverse", "--format=%T", scratch])?;
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = said.lines().collect();
        let mut made = Vec::with_capacity(expected.len());
        for (n, (at, tree)) in expected.iter().enumerate() {
            let commit = lines.get(2 * n).and_then(|line| line.strip_prefix("commit "));
            match (commit, lines.get(2 * n + 1)) {
                (Some(commit), Some(found)) if *found == tree.to_hex() => made.push((commit.to_owned(), *at)),
                _ => return Err(ExportError::Differs(planned[*at].row.checkpoint.id.to_string())),
            }
        }
        Ok(made)
    }

    /// What of a tree git cannot hold.
    fn left_out(
        &self,
        tree: &ObjectId,
        path: &WorkspacePath,
        without: &Without,
        out: &mut LeftOut,
    ) -> Result<bool, StoreError> {
        let tree = self.store.tree(tree)?;
        let mut holds_file = false;
        for (name, entry) in tree.entries() {
            match entry {
                // Said by itself; the folder that it was alone in is not called empty.
                _ if without.holds_some(path) && without.paths.contains(&path.join(name)) => holds_file = true,
                Entry::File { mode, .. } => {
                    holds_file = true;
                    // Who else may write is the umask's business, and git's own when it checks out.
                    out.modes += u64::from(!matches!(mode & !0o022, 0o644 | 0o755));
                }
                Entry::Symlink { .. } => holds_file = true,
                Entry::Folder { tree, holds_skipped, .. } => {
                    let path = path.join(name);
                    let before = out.empty.len();
                    let holds = self.left_out(tree, &path, without, out)?;
                    holds_file |= holds;
                    if !holds && !holds_skipped {
                        // Those inside go with it.
                        out.empty.truncate(before);
                        out.empty.push((&path).into());
                    }
                }
                Entry::Skipped { .. } => {}
            }
        }
        Ok(holds_file)
    }
}

/// Files that no commit has.
struct Without {
    paths: BTreeSet<WorkspacePath>,
    /// Every folder with one of them in it, at any depth.
    folders: HashSet<WorkspacePath>,
}

impl Without {
    fn new(paths: BTreeSet<WorkspacePath>) -> Self {
        let ends = |path: &WorkspacePath| -> Vec<WorkspacePath> {
            let bytes = path.as_bytes();
            let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
            ends.filter_map(|end| WorkspacePath::new(&bytes[..end]).ok()).chain([WorkspacePath::root()]).collect()
        };
        let folders = paths.iter().flat_map(ends).collect();
        Self { paths, folders }
    }

    fn holds_some(&self, folder: &WorkspacePath) -> bool {
        self.folders.contains(folder)
    }
}

#[derive(Default)]
struct LeftOut {
    empty: Vec<PathView>,
    modes: u64,
}

/// Where branches are. Anything else among the references is for git, or for piton, alone.
const BRANCHES: &str = "refs/heads/";

/// The name of a branch, as far as that can be told without git.
fn branch_name(name: &str) -> Result<&str, ExportError> {
    let branch = name.strip_prefix(BRANCHES).unwrap_or(name);
    let is_other = branch.is_empty() || branch.starts_with('-') || branch.starts_with("refs/");
    if is_other || branch == "HEAD" || branch == "@" {
        return Err(ExportError::BadName(name.to_owned()));
    }
    Ok(branch)
}

/// The first line of a text, as a message's first line.
fn subject(text: &str) -> String {
    one_line(text.trim_start().lines().next().unwrap_or_default(), SUBJECT)
}

/// A name that may stand in a commit's header, where brackets are around an address.
fn author(name: &str) -> String {
    let name = one_line(&name.replace(['<', '>'], " "), SUBJECT);
    if name.is_empty() { "agent".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_one_line_of_at_most_72_characters() {
        assert_eq!(subject("  fix it\nplease"), "fix it");
        assert_eq!(subject("a\u{1b}[1m\tb"), "a [1m b");
        assert_eq!(subject(&"x".repeat(100)).chars().count(), 72);
        assert_eq!(subject("a Vec<u8>"), "a Vec<u8>");
        assert_eq!(subject(""), "");
        assert_eq!((&*author("a <b>\n"), &*author("<>")), ("a b", "agent"));
    }

    #[test]
    fn nothing_but_a_branch_can_be_named() {
        assert_eq!(branch_name("piton/x").unwrap(), "piton/x");
        assert_eq!(branch_name("refs/heads/x").unwrap(), "x");
        for bad in ["", "HEAD", "@", "-x", "refs/piton/x", "refs/tags/x", "refs/stash", "refs/replace/x", "refs/heads/"]
        {
            assert!(branch_name(bad).is_err(), "{bad}");
        }
    }
}
