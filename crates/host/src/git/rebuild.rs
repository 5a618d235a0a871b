//! Rebuilding an index from a state: the commit's entries, and on top of them what was staged.
//!
//! Made by git next to the real one, and compared with the state before it is used.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use piton_model::git::{ASSUME_VALID, GitState, INTENT_TO_ADD, SKIP_WORKTREE, StagedEntry, StagedKind};

use super::command::GitError;
use super::hash::Id;
use super::index::Index;
use super::refresh::refresh;
use super::staged;
use super::write::{IndexLock, NewIndex, RepositoryWriter, WriteError, limits, line_of, refused};

/// Piton's own files in the repository; only the holder of the index lock uses them.
const INDEX: &str = "piton-index";
const SCRATCH: &str = "piton-scratch";

impl RepositoryWriter<'_> {
    /// Builds the index of a state. Its blobs need not exist yet.
    pub fn build_index(&self, state: &GitState, lock: &IndexLock) -> Result<NewIndex, WriteError> {
        let mut new = self.begin(lock)?;
        let git = self.git.with_index(&new.path);
        self.read_commit(&git, state)?;
        let staged: Vec<&StagedEntry> = state.staged.iter().collect();
        git.run_with(&["update-index", "-z", "--index-info"], &self.lines(&staged))?;
        self.intend(&new.path, &staged)?;
        refresh(&git)?;
        self.flag(&git, state)?;
        self.check(&new.path, state)?;
        new.fingerprint = self.repository.fingerprint_of(&new.path).map_err(WriteError::Index)?;
        Ok(new)
    }

    /// A tree from which everything staged can be reached, so that no `git gc` removes it. The sides of a conflict
    /// cannot share a name in a tree, so they get unused names.
    pub fn tree_of_index(&self, state: &GitState, lock: &IndexLock) -> Result<String, WriteError> {
        let new = self.begin(lock)?;
        let git = self.git.with_index(&new.path);
        self.read_commit(&git, state)?;
        let is_conflict = |entry: &&StagedEntry| entry.stage > 0;
        let mut input = self.lines(&state.staged.iter().filter(|e| !is_conflict(e)).collect::<Vec<_>>());
        for (number, entry) in state.staged.iter().filter(is_conflict).enumerate() {
            self.remove_line(&mut input, entry);
            let name = format!("piton-conflict-{number}-stage-{}", entry.stage);
            input.extend_from_slice(format!("{:o} {} 0\t{name}\0", entry.mode, entry.id).as_bytes());
        }
        git.run_with(&["update-index", "-z", "--index-info"], &input)?;
        // What is already missing cannot be kept, and must not prevent the rest from being kept.
        Ok(line_of(&git.run(&["write-tree", "--missing-ok"])?))
    }

    /// Removes what a crash left, and says where the new index goes. It is removed again if it is not used.
    fn begin(&self, _lock: &IndexLock) -> Result<NewIndex, WriteError> {
        let path = self.repository.git_dir.join(INDEX);
        for left in [path.clone(), self.repository.git_dir.join("piton-index.lock")] {
            match std::fs::remove_file(&left) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(refused("cannot remove", &left)(error));
                }
                _ => {}
            }
        }
        Ok(NewIndex { path, fingerprint: String::new() })
    }

    /// Reads the commit's tree into the new index.
    fn read_commit(&self, git: &super::Git, state: &GitState) -> Result<(), WriteError> {
        let Some(commit) = &state.head.commit else {
            git.run(&["read-tree", "--empty"])?;
            return Ok(());
        };
        // From a copy of the old index git takes what it knows of unchanged files, so that it need not read them again.
        // Flags would be taken over as well, so if there are any it starts from scratch.
        let old = self.repository.git_dir.join("index");
        let new = self.repository.git_dir.join(INDEX);
        let config = self.repository.config();
        let index = Index::read(&self.repository.git_dir, config.format, limits().index_bytes);
        let is_plain = index.is_ok_and(|index| index.all_flags == 0 && !index.entries.is_empty());
        if is_plain && !self.is_sparse && std::fs::copy(&old, &new).is_ok() {
            if git.run(&["read-tree", "--reset", commit]).is_ok() {
                return Ok(());
            }
            std::fs::remove_file(&new).map_err(refused("cannot remove", &new))?;
        }
        git.run(&["read-tree", commit])?;
        Ok(())
    }

    /// Input for `git update-index --index-info`: first every path is removed, with all its stages, then what is staged
    /// is added.
    fn lines(&self, staged: &[&StagedEntry]) -> Vec<u8> {
        let mut input = Vec::new();
        for entry in staged {
            self.remove_line(&mut input, entry);
        }
        let comes = |entry: &&&StagedEntry| entry.kind != StagedKind::Deleted && entry.flags & INTENT_TO_ADD == 0;
        for entry in staged.iter().filter(comes) {
            input.extend_from_slice(format!("{:o} {} {}\t", entry.mode, entry.id, entry.stage).as_bytes());
            input.extend_from_slice(entry.path.as_bytes());
            input.push(0);
        }
        input
    }

    fn remove_line(&self, input: &mut Vec<u8>, entry: &StagedEntry) {
        input.extend_from_slice(format!("0 {}\t", "0".repeat(self.digits)).as_bytes());
        input.extend_from_slice(entry.path.as_bytes());
        input.push(0);
    }

    /// Adds paths that are only intended to be added. Git takes those only from files, so it gets empty ones in a
    /// folder of their own: the user's files may be gone or something else by now.
    fn intend(&self, index: &Path, staged: &[&StagedEntry]) -> Result<(), WriteError> {
        let intended: Vec<_> = staged.iter().filter(|entry| entry.flags & INTENT_TO_ADD != 0).collect();
        if intended.is_empty() {
            return Ok(());
        }
        let scratch = self.repository.git_dir.join(SCRATCH);
        let made = Scratch::make(&scratch).map_err(refused("cannot make", &scratch))?;
        let mut names = Vec::new();
        for entry in intended {
            made.file(entry).map_err(refused("cannot make a file in", &scratch))?;
            names.extend_from_slice(entry.path.as_bytes());
            names.push(0);
        }
        let git = self.git.with_index(index).with_work_tree(&self.repository.git_dir, &scratch);
        let settings = ["-c", "core.fileMode=true", "-c", "core.symlinks=true", "-c", "core.sparseCheckout=false"];
        let add = ["add", "-N", "-f", "--pathspec-from-file=-", "--pathspec-file-nul"];
        git.run_with(&[&settings[..], &add].concat(), &names)?;
        Ok(())
    }

    fn flag(&self, git: &super::Git, state: &GitState) -> Result<(), WriteError> {
        let staged = state.staged.iter().filter(|e| e.stage == 0 && e.kind != StagedKind::Deleted);
        let all: Vec<_> = staged
            .map(|e| (e.path.as_bytes(), e.flags))
            .chain(state.flagged.iter().map(|e| (e.path.as_bytes(), e.flags)))
            .collect();
        let of = |flag: u16| -> Vec<u8> {
            let paths = all.iter().filter(|(_, flags)| flags & flag != 0).map(|(path, _)| *path);
            paths.flat_map(|path| path.iter().copied().chain([0])).collect()
        };
        let skipped = if self.is_sparse { self.outside_of_patterns(git)? } else { of(SKIP_WORKTREE) };
        for (option, paths) in [("--assume-unchanged", of(ASSUME_VALID)), ("--skip-worktree", skipped)] {
            if !paths.is_empty() {
                git.run_with(&["update-index", "-z", option, "--stdin"], &paths)?;
            }
        }
        Ok(())
    }

    /// The paths of the new index that a sparse checkout leaves out, each followed by a NUL byte.
    fn outside_of_patterns(&self, git: &super::Git) -> Result<Vec<u8>, GitError> {
        let all = git.run(&["ls-files", "-z"])?;
        let inside = git.run_with(&["sparse-checkout", "check-rules", "-z"], &all)?;
        let inside: std::collections::HashSet<&[u8]> = inside.split(|b| *b == 0).collect();
        let outside = all.split(|b| *b == 0).filter(|path| !path.is_empty() && !inside.contains(path));
        Ok(outside.flat_map(|path| path.iter().copied().chain([0])).collect())
    }

    /// Reads the new index without git, and compares.
    fn check(&self, path: &Path, state: &GitState) -> Result<(), WriteError> {
        let config = self.repository.config();
        let limits = limits();
        let index = Index::read_file(path, &self.repository.git_dir, config.format, limits.index_bytes)
            .map_err(WriteError::Index)?;
        let objects = self.repository.objects();
        let commit = state.head.commit.as_ref().and_then(|hex| Id::from_hex(hex.as_bytes(), config.format));
        let found = staged::staged(&index, &objects, commit, config.format, &limits);
        let wanted = self.flags_that_count();
        let flagged = staged::flagged(&index, &found.entries, wanted, limits.staged).map_err(WriteError::Index)?;
        let made = GitState { staged: found.entries, flagged, ..GitState::default() };
        match found.incomplete {
            Some(why) => Err(WriteError::Index(why)),
            None if made.has_same_index(state, wanted) => Ok(()),
            None => Err(WriteError::Index("the index that git made is not the one that was wanted".into())),
        }
    }
}

/// A folder of files that stand in for the user's.
struct Scratch<'p> {
    folder: &'p Path,
}

impl<'p> Scratch<'p> {
    fn make(folder: &'p Path) -> io::Result<Self> {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::create_dir(folder)?;
        Ok(Self { folder })
    }

    fn file(&self, entry: &StagedEntry) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        // A path of a state has neither `..` nor `.git` in it, so it stays in here.
        let path = self.folder.join(std::ffi::OsStr::from_bytes(entry.path.as_bytes()));
        std::fs::create_dir_all(path.parent().unwrap_or(self.folder))?;
        if entry.mode & 0o170_000 == 0o120_000 {
            return std::os::unix::fs::symlink("-", &path);
        }
        std::fs::write(&path, b"")?;
        let bits = if entry.mode & 0o100 != 0 { 0o755 } else { 0o644 };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(bits))
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.folder);
    }
}
