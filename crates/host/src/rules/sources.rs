//! Where the rules for some paths come from, and when each of these files last changed: needed to find out who changed
//! the rules.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use piton_model::{Entry, SkipReason, WorkspacePath};
use rustix::fs::FileType;

use super::above::folders_above;
use super::{Decision, EntryKind, Instead, RuleOptions, Rules, exclude_file};
use crate::git::{Repository, excludes_file, may_be_git_folder, settings_files};
use crate::index::Signature;
use crate::root::Root;

/// A file that says, or said, which paths are captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSource {
    /// As a person would find it: relative to the workspace's root if it is in there, else absolute.
    pub shown: String,
    pub kind: SourceKind,
    /// In nanoseconds since 1970; if it does not exist, when the folder that would contain it changed.
    pub changed_at: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// An ignore file of the workspace.
    File(WorkspacePath),
    /// There is no such file; there may have been one.
    NoFile(WorkspacePath),
    /// There is no `.git` in this folder; there may have been one.
    NoGit(WorkspacePath),
    /// An ignore file that is never captured: a repository's own, or one outside the workspace.
    Uncaptured,
    /// Another file of git's own that affects the rules: its index, its settings.
    Gits,
}

/// The sources of the rules for some paths of a workspace.
pub fn rule_sources(root: &Root, options: &RuleOptions, paths: &[WorkspacePath]) -> Vec<RuleSource> {
    let mut folders = BTreeSet::new();
    for path in paths {
        let mut at = path.clone();
        while let Some((above, _)) = at.split() {
            folders.insert(above.clone());
            at = above;
        }
    }
    let mut all = Vec::new();
    let mut seen = BTreeSet::new();
    let mut outside = |path: PathBuf, kind: SourceKind| {
        if !seen.insert(path.clone()) {
            return;
        }
        let shown = path.strip_prefix(root.path()).unwrap_or(&path).to_string_lossy().into_owned();
        all.extend(last_change(&path).map(|changed_at| RuleSource { shown, kind, changed_at }));
    };
    let home = options.home_folder.as_deref();
    for folder in folders_above(root.path(), home) {
        outside(folder.join(".gitignore"), SourceKind::Uncaptured);
        of_repository(&folder.join(".git"), &mut outside);
    }
    let repository = Repository::find(root.path());
    let excludes = excludes_file(root.path(), repository.as_ref(), &options.git);
    if let Some(excludes) = excludes.or_else(|| options.global_excludes.clone()) {
        outside(excludes, SourceKind::Uncaptured);
    }
    // They say where the excludes are.
    let settings = settings_files(repository.as_ref(), &options.git);
    settings.into_iter().for_each(|file| outside(file, SourceKind::Gits));
    for folder in &folders {
        of_repository(&root.path().join(OsStr::from_bytes(folder.as_bytes())).join(".git"), &mut outside);
    }
    for folder in folders {
        let place = root.path().join(OsStr::from_bytes(folder.as_bytes()));
        for name in [".gitignore", ".pitonignore", ".git"] {
            let file = place.join(name);
            let Ok(path) = WorkspacePath::new(super::join(folder.as_bytes(), name.as_bytes())) else {
                // `.git` is not a path of a workspace.
                if rustix::fs::lstat(&file).is_err() {
                    let shown = file.strip_prefix(root.path()).unwrap_or(&file).to_string_lossy().into_owned();
                    let kind = SourceKind::NoGit(folder.clone());
                    all.extend(last_change(&file).map(|changed_at| RuleSource { shown, kind, changed_at }));
                }
                continue;
            };
            let is_there = rustix::fs::lstat(&file).is_ok();
            let shown = String::from_utf8_lossy(path.as_bytes()).into_owned();
            let kind = if is_there { SourceKind::File(path) } else { SourceKind::NoFile(path) };
            all.extend(last_change(&file).map(|changed_at| RuleSource { shown, kind, changed_at }));
        }
    }
    all
}

/// Longest chain of symlinks that is followed, as in Linux.
const MOST_LINKS: u32 = 40;

/// When a path last changed, in nanoseconds since 1970; if it does not exist, when its nearest existing parent did. For
/// a symlink, the later of its own and its target's: many people link to such files elsewhere.
pub fn last_change(path: &Path) -> Option<i64> {
    change_through(path, MOST_LINKS)
}

fn change_through(path: &Path, links: u32) -> Option<i64> {
    let (at, stat) = path.ancestors().find_map(|at| Some((at, rustix::fs::lstat(at).ok()?)))?;
    let signature = Signature::of(&stat);
    let own = signature.mtime.max(signature.ctime);
    if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink || links == 0 {
        return Some(own);
    }
    let target = rustix::fs::readlink(at, Vec::new()).ok();
    let target = target.and_then(|target| Some(at.parent()?.join(OsStr::from_bytes(target.to_bytes()))));
    Some(own.max(target.and_then(|target| change_through(&target, links - 1)).unwrap_or(own)))
}

/// Whether the rules skip each path, whether it exists or not; `instead` substitutes the contents of rule files.
pub fn leave_out(root: &Root, options: &RuleOptions, paths: &[WorkspacePath], instead: Instead) -> Vec<bool> {
    // The size of a missing file is unknown: assumed larger than the ignored files that are captured.
    let large = EntryKind::File(options.largest_file);
    let what = |path: &WorkspacePath| match rustix::fs::lstat(root.path().join(OsStr::from_bytes(path.as_bytes()))) {
        Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => vec![EntryKind::Folder],
            FileType::Symlink => vec![EntryKind::Symlink],
            _ => vec![EntryKind::File((stat.st_size as u64).min(options.largest_file))],
        },
        Err(_) => vec![EntryKind::Folder, large],
    };
    are_left_out(root, options, paths.iter().map(|path| (path, what(path))), instead)
}

/// Like [`leave_out`], for what used to be at some paths, whatever is there now.
pub fn left_out_as(root: &Root, options: &RuleOptions, were: &[(WorkspacePath, Entry)], instead: Instead) -> Vec<bool> {
    let what = |entry: &Entry| match entry {
        Entry::File { size, .. } => vec![EntryKind::File((*size).min(options.largest_file))],
        Entry::Symlink { .. } => vec![EntryKind::Symlink],
        Entry::Folder { .. } | Entry::Skipped { .. } => vec![EntryKind::Folder],
    };
    are_left_out(root, options, were.iter().map(|(path, entry)| (path, what(entry))), instead)
}

fn are_left_out<'a>(
    root: &Root,
    options: &RuleOptions,
    paths: impl Iterator<Item = (&'a WorkspacePath, Vec<EntryKind>)>,
    instead: Instead,
) -> Vec<bool> {
    let rules = Rules::load_with(root, options.clone(), &BTreeSet::new(), instead);
    let is_by_rule = |decision: Decision| {
        matches!(
            decision,
            Decision::Skip(SkipReason::Ignored | SkipReason::Excluded)
                | Decision::Partly(SkipReason::Ignored | SkipReason::Excluded)
        )
    };
    let is_left_out = |(path, here): (&WorkspacePath, Vec<EntryKind>)| {
        let whole = path.as_bytes();
        let ends = whole.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| at);
        let asks = |path: &[u8], what| {
            let level = rules.level_above(root, path, &|_| None);
            is_by_rule(rules.decide(&level, None, path, what, || false))
                || what == EntryKind::Folder
                    && !level.takes_in(path)
                    && may_be_git_folder(&root.path().join(OsStr::from_bytes(path)))
        };
        ends.into_iter().any(|end| asks(&whole[..end], EntryKind::Folder))
            || here.into_iter().any(|what| asks(whole, what))
    };
    paths.map(is_left_out).collect()
}

/// The files in a repository's own folder that affect which files git sees: its excludes, its settings and its index.
fn of_repository(git: &Path, add: &mut impl FnMut(PathBuf, SourceKind)) {
    let Some(exclude) = exclude_file(git).filter(|_| git.exists()) else { return };
    let common = exclude.parent().and_then(Path::parent).map(Path::to_owned);
    add(exclude, SourceKind::Uncaptured);
    let own = if git.is_dir() { Some(git.to_owned()) } else { crate::git::own_folder(git) };
    let common = common.filter(|common| Some(common) != own.as_ref());
    for folder in [own, common].into_iter().flatten() {
        for name in ["index", "config", "config.worktree"] {
            if folder.join(name).exists() {
                add(folder.join(name), SourceKind::Gits);
            }
        }
    }
}
