//! Which paths are captured: `.gitignore` and its kin, `.pitonignore`, sizes, and what is never captured.
//!
//! Git's own files have git's semantics; a nested repository begins its own chain of them. An ignored folder is
//! skipped, an ignored single file (`.env`) is captured up to a size. What git tracks is captured, ignored or not.
//! `.pitonignore` overrides all of these. What the user has not yet agreed to ignore stays captured (`held.rs`).

mod above;
mod held;
mod instead;
mod repository;
mod sources;
mod unread;

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use piton_model::path::is_git;
use piton_model::{SkipReason, WorkspacePath};

use crate::bounded;
use crate::git::{Repository, TrackedAt, UserConfig, excludes_file, is_git_folder};
use crate::pattern::translate;
use crate::root::Root;
use above::{FolderAbove, folders_above, holds_home, leave_out};
use repository::InRepository;

pub use held::{CapturedNames, Held};
pub use instead::Instead;
pub use sources::{
    RuleSource, SourceKind, last_change, leave_out as rules_leave_out, left_out_as as rules_left_out, rule_sources,
};
pub use unread::{UnreadRules, unread_rules};

/// Larger ignore files, in bytes, are not read; [`unread_rules`] lists them.
pub(crate) const LARGEST_RULES: u64 = 4 << 20;

/// Largest `.git` file or `commondir` that is read, in bytes: it contains one path.
const LARGEST_POINTER: u64 = 64 << 10;

/// The outermost folder on the way to a folder of the workspace, itself included, that a capture skips, with the
/// reason. Examines only the folders on the way.
pub fn left_out(root: &Root, options: RuleOptions, folder: &Path) -> Option<(PathBuf, SkipReason)> {
    let rules = Rules::load(root, options, &BTreeSet::new());
    let whole = folder.as_os_str().as_bytes();
    let ends = whole.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| at).chain([whole.len()]);
    for end in ends {
        let path = &whole[..end];
        let found = |reason| Some((PathBuf::from(OsStr::from_bytes(path)), reason));
        if is_git(name_of(path)) {
            return found(SkipReason::GitFolder);
        }
        let level = rules.level_above(root, path, &|_| None);
        match rules.decide(&level, None, path, EntryKind::Folder, || false) {
            // New files in a folder of which only some files are captured are not captured.
            Decision::Skip(reason) | Decision::Partly(reason) => return found(reason),
            Decision::Capture => {}
        }
        if is_git_folder(&root.path().join(OsStr::from_bytes(path))) && !level.takes_in(path) {
            return found(SkipReason::BareRepository);
        }
    }
    None
}

#[derive(Clone, Debug)]
pub struct RuleOptions {
    /// The user's global excludes file, if no git setting names one.
    pub global_excludes: Option<PathBuf>,
    /// Where git's settings are.
    pub git: UserConfig,
    /// The rules of a repository at or around the user's home folder do not apply to the workspaces inside.
    pub home_folder: Option<PathBuf>,
    /// Absolute paths that are never captured, and why.
    pub never: Vec<(PathBuf, SkipReason)>,
    /// Larger files, in bytes, are skipped.
    pub largest_file: u64,
    /// Larger single ignored files, in bytes, are skipped.
    pub largest_ignored_file: u64,
    /// Paths that are captured whatever the rules say, because an operation is about to write there. A folder on the
    /// way to one is listed, and everything else in it stays skipped.
    pub forced: BTreeSet<WorkspacePath>,
}

impl Default for RuleOptions {
    fn default() -> Self {
        Self {
            global_excludes: None,
            git: UserConfig::default(),
            home_folder: None,
            never: Vec::new(),
            largest_file: 2 << 30,
            largest_ignored_file: 1 << 20,
            forced: BTreeSet::new(),
        }
    }
}

/// A name that only a pattern for every name matches.
const ANY_NAME: &str = "\u{1}";

/// Increased when the same rule files lead to different captures.
const GENERATION: u8 = 5;

/// Data of other version control systems, which a rewind must not change behind their users' backs. Any rule overrides
/// this one: `!` in a `.pitonignore` includes them.
const OTHERS_DATA: &[u8] = b".hg/\n.svn/\n.bzr/\n_darcs/\n.pijul/\n";

/// The rules of one workspace.
pub(crate) struct Rules {
    options: RuleOptions,
    never: HashMap<Vec<u8>, SkipReason>,
    global: Gitignore,
    base: Arc<Level>,
    known: Mutex<HashMap<Vec<u8>, Arc<Level>>>,
    /// See [`Held::roots`].
    held: BTreeSet<WorkspacePath>,
    instead: Instead,
    /// The repository around the workspace, if it begins above it.
    pub(crate) above: Option<PathBuf>,
    pub(crate) fingerprint: [u8; 32],
}

/// The rules that begin to apply in one folder; folders without rules of their own share their parent's.
pub(crate) struct Level {
    parent: Option<Arc<Level>>,
    place: LevelPlace,
    git: Option<Gitignore>,
    piton: Option<Gitignore>,
    /// If a repository begins here.
    repository: Option<InRepository>,
}

/// Where a level is relative to the workspace.
enum LevelPlace {
    /// A folder of the workspace.
    Inside(Vec<u8>),
    /// A folder above the workspace; the workspace's path in it.
    Above(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Capture,
    Skip(SkipReason),
    /// List the folder, but skip everything in it for this reason that is not forced, tracked or held.
    Partly(SkipReason),
}

impl Rules {
    /// Loads what applies at the root: the user's global excludes and the folders of the repository above.
    pub(crate) fn load(root: &Root, options: RuleOptions, held: &BTreeSet<WorkspacePath>) -> Self {
        Self::load_with(root, options, held, Instead::default())
    }

    /// Like `load`, with other contents for some of the rule files.
    fn load_with(root: &Root, options: RuleOptions, held: &BTreeSet<WorkspacePath>, instead: Instead) -> Self {
        let mut hasher = blake3::Hasher::new();
        // An index that was made by other rules of ours does not know what these skip.
        hasher.update(&[GENERATION]);
        // Another user can read other files, so what one could not read means nothing for the other.
        hasher.update(&rustix::process::geteuid().as_raw().to_le_bytes());
        hasher.update(&options.largest_file.to_le_bytes());
        hasher.update(&options.largest_ignored_file.to_le_bytes());
        let mut read = |path: &Path| {
            let bytes = instead.or_read(path, || bounded::read(path, LARGEST_RULES).ok()?);
            hasher.update(path.as_os_str().as_bytes());
            hasher.update(&[0, bytes.is_some() as u8]);
            hasher.update(bytes.as_deref().unwrap_or_default());
            hasher.update(&[0]);
            bytes
        };

        let home = options.home_folder.as_deref();
        let repository = Repository::find(root.path());
        let repository = repository.filter(|r| r.work_tree() == root.path() || !holds_home(r.work_tree(), home));
        let excludes = excludes_file(root.path(), repository.as_ref(), &options.git);
        let excludes = excludes.or_else(|| options.global_excludes.clone());
        let excludes = excludes.as_deref().and_then(&mut read).unwrap_or_default();
        let mut global = parse(&[OTHERS_DATA, &excludes].concat());
        let mut above = Vec::new();
        for folder in folders_above(root.path(), home) {
            let git = read(&folder.join(".gitignore")).as_deref().map(parse);
            let dot_git = Some(folder.join(".git")).filter(|git| git.exists());
            let repository = dot_git.map(|git| {
                let exclude = exclude_file(&git).and_then(|file| read(&file));
                parse(exclude.as_deref().unwrap_or_default())
            });
            above.push(FolderAbove { folder: folder.to_path_buf(), git, repository });
        }
        if leave_out(&above, &global, root.path()) {
            // The user's own rules apply in here, unless they are among those that ignore the workspace.
            let alone =
                above.iter().map(|level| FolderAbove { folder: level.folder.clone(), git: None, repository: None });
            if leave_out(&alone.collect::<Vec<_>>(), &global, root.path()) {
                global = parse(OTHERS_DATA);
            }
            above.clear();
        }

        for path in held {
            hasher.update(path.as_bytes());
            hasher.update(&[0, 1]);
        }
        let repository_above = above.iter().find(|level| level.repository.is_some()).map(|level| level.folder.clone());
        let mut base = Arc::new(Level {
            parent: None,
            place: LevelPlace::Inside(Vec::new()),
            git: None,
            piton: None,
            repository: None,
        });
        for FolderAbove { folder, git, repository } in above {
            let Ok(inner) = root.path().strip_prefix(&folder) else { continue };
            let place = LevelPlace::Above(inner.as_os_str().as_bytes().to_vec());
            let repository = repository.map(|excludes| InRepository::new(folder, excludes));
            base = Arc::new(Level { parent: Some(base), place, git, piton: None, repository });
        }
        let mut never = HashMap::new();
        for (path, reason) in &options.never {
            let path = path.canonicalize().unwrap_or_else(|_| path.clone());
            if let Ok(inner) = path.strip_prefix(root.path()) {
                hasher.update(inner.as_os_str().as_bytes());
                hasher.update(&[0, *reason as u8]);
                never.insert(inner.as_os_str().as_bytes().to_vec(), *reason);
            }
        }
        Self {
            never,
            global,
            base,
            known: Mutex::default(),
            held: held.clone(),
            instead,
            above: repository_above,
            fingerprint: *hasher.finalize().as_bytes(),
            options,
        }
    }

    /// Paths that are captured whatever the rules say.
    pub(crate) fn forced(&self) -> &BTreeSet<WorkspacePath> {
        &self.options.forced
    }

    /// The rules of a folder, given its parent's rules and its names.
    pub(crate) fn enter(&self, root: &Root, parent: &Arc<Level>, path: &[u8], names: FolderRules) -> Arc<Level> {
        if names == FolderRules::default() {
            return parent.clone();
        }
        let read = |name: &[u8]| {
            let path = join(path, name);
            let file = root.path().join(OsStr::from_bytes(&path));
            let bytes = self.instead.or_read(&file, || bounded::read_beneath(root, &path, LARGEST_RULES).ok()?)?;
            Some(parse(&bytes))
        };
        let repository = names.has_git.then(|| {
            let folder = root.path().join(OsStr::from_bytes(path));
            let exclude = exclude_file(&folder.join(".git"));
            let exclude =
                exclude.and_then(|file| self.instead.or_read(&file, || bounded::read(&file, LARGEST_RULES).ok()?));
            InRepository::new(folder, parse(exclude.as_deref().unwrap_or_default()))
        });
        // A folder in which everything is ignored tells the surrounding repository to skip it: tools create such
        // folders. That says nothing about a workspace that somebody made of it.
        let is_turned_away =
            |rules: &Gitignore| path.is_empty() && !names.has_git && says(rules.matched(ANY_NAME, true)) == Some(true);
        Arc::new(Level {
            parent: Some(parent.clone()),
            place: LevelPlace::Inside(path.to_vec()),
            git: if names.has_gitignore { read(b".gitignore").filter(|rules| !is_turned_away(rules)) } else { None },
            piton: if names.has_pitonignore { read(b".pitonignore") } else { None },
            repository,
        })
    }

    /// The rules above the root.
    pub(crate) fn base(&self) -> Arc<Level> {
        self.base.clone()
    }

    /// The rules that apply in the folder above a path, found by examining every folder on the way; `known` covers
    /// folders that need not be examined.
    pub(crate) fn level_above(
        &self,
        root: &Root,
        path: &[u8],
        known: &impl Fn(&[u8]) -> Option<FolderRules>,
    ) -> Arc<Level> {
        let mut unknown = Vec::new();
        let mut at = path;
        let mut level = loop {
            if at.is_empty() {
                break self.base();
            }
            at = parent_of(at);
            if let Some(level) = self.known.lock().unwrap_or_else(|e| e.into_inner()).get(at) {
                break level.clone();
            }
            unknown.push(at);
        };
        for folder in unknown.into_iter().rev() {
            let has = |name: &[u8]| {
                let path = join(folder, name);
                let is_there = || std::ffi::CString::new(&path[..]).is_ok_and(|path| root.peek(&path).is_ok());
                self.instead.has(&root.path().join(OsStr::from_bytes(&path))).unwrap_or_else(is_there)
            };
            let names = known(folder).unwrap_or_else(|| FolderRules {
                has_git: has(b".git"),
                has_gitignore: has(b".gitignore"),
                has_pitonignore: has(b".pitonignore"),
            });
            level = self.enter(root, &level, folder, names);
            self.known.lock().unwrap_or_else(|e| e.into_inner()).insert(folder.to_vec(), level.clone());
        }
        level
    }

    /// What to do with a path in a folder with these rules. `partly`: a rule skips the folder itself, for this reason.
    /// `was_captured`: whether the last checkpoint has the path.
    pub(crate) fn decide(
        &self,
        level: &Level,
        partly: Option<SkipReason>,
        path: &[u8],
        what: EntryKind,
        was_captured: impl FnOnce() -> bool,
    ) -> Decision {
        if let Some(reason) = self.never.get(path) {
            return Decision::Skip(*reason);
        }
        let skipped = match partly {
            Some(SkipReason::Ignored) if level.piton_match(path, what == EntryKind::Folder) == Some(true) => {
                Some(SkipReason::Excluded)
            }
            Some(reason) => Some(reason),
            None => self.skips(level, path, what),
        };
        let Some(reason) = skipped else { return Decision::Capture };
        if self.is_forced(path) {
            return match what {
                EntryKind::Folder => Decision::Partly(reason),
                EntryKind::File(_) | EntryKind::Symlink => Decision::Capture,
            };
        }
        let tracked = match reason {
            SkipReason::Ignored => level.tracked_at(path),
            _ => TrackedAt::Nothing,
        };
        let is_held = || reason != SkipReason::TooLarge && self.is_held(path) && was_captured();
        if tracked == TrackedAt::Nothing && !is_held() {
            return Decision::Skip(reason);
        }
        match what {
            EntryKind::Folder if tracked == TrackedAt::Submodule => Decision::Capture,
            EntryKind::Folder => Decision::Partly(reason),
            EntryKind::File(size) if size > self.options.largest_file => Decision::Skip(SkipReason::TooLarge),
            EntryKind::File(_) | EntryKind::Symlink => Decision::Capture,
        }
    }

    fn skips(&self, level: &Level, path: &[u8], what: EntryKind) -> Option<SkipReason> {
        let is_folder = what == EntryKind::Folder;
        // Whoever writes rules that leave themselves out could not take them back.
        let is_rules = !is_folder && name_of(path) == b".pitonignore";
        match level.piton_match(path, is_folder) {
            Some(true) if !is_rules => return Some(SkipReason::Excluded),
            Some(_) => {}
            None => {
                let ignored = level.git_match(path, is_folder, &self.global);
                match what {
                    EntryKind::Folder if ignored => return Some(SkipReason::Ignored),
                    EntryKind::File(size) if ignored && size > self.options.largest_ignored_file => {
                        return Some(SkipReason::Ignored);
                    }
                    _ => {}
                }
            }
        }
        match what {
            EntryKind::File(size) if size > self.options.largest_file => Some(SkipReason::TooLarge),
            _ => None,
        }
    }

    /// Whether a path is held, beneath a held one, or on the way to one.
    pub(crate) fn is_held(&self, path: &[u8]) -> bool {
        if self.held.is_empty() {
            return false;
        }
        let Ok(path) = WorkspacePath::new(path) else { return false };
        let mut above = std::iter::successors(Some(path.clone()), |at| at.split().map(|(folder, _)| folder));
        let is_on_the_way = || self.held.range(path.clone()..).next().is_some_and(|held| held.is_within(&path));
        above.any(|at| self.held.contains(&at)) || is_on_the_way()
    }

    /// Whether a path is forced or on the way to one that is.
    fn is_forced(&self, path: &[u8]) -> bool {
        let Ok(path) = WorkspacePath::new(path) else { return false };
        self.options.forced.range(path.clone()..).next().is_some_and(|f| f.is_within(&path))
    }
}

/// What a decision is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Folder,
    File(u64),
    Symlink,
}

/// Which rule files a folder contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FolderRules {
    pub has_git: bool,
    pub has_gitignore: bool,
    pub has_pitonignore: bool,
}

impl Level {
    fn levels(&self) -> impl Iterator<Item = &Level> {
        std::iter::successors(Some(self), |level| level.parent.as_deref())
    }

    /// The path relative to this level.
    fn relative(&self, path: &[u8]) -> PathBuf {
        let bytes = match &self.place {
            LevelPlace::Inside(folder) if folder.is_empty() => path.to_vec(),
            LevelPlace::Inside(folder) => path[folder.len() + 1..].to_vec(),
            LevelPlace::Above(inner) => join(inner, path),
        };
        PathBuf::from(std::ffi::OsString::from_vec(bytes))
    }

    /// What the nearest `.pitonignore` that matches the path says: exclude it, or include it.
    fn piton_match(&self, path: &[u8], is_folder: bool) -> Option<bool> {
        self.levels().find_map(|level| says(level.piton.as_ref()?.matched(level.relative(path), is_folder)))
    }

    /// Whether a `.pitonignore` includes a folder by name.
    pub(crate) fn takes_in(&self, folder: &[u8]) -> bool {
        self.piton_match(folder, true) == Some(false)
    }

    /// What the repository that the path belongs to tracks there.
    pub(crate) fn tracked_at(&self, path: &[u8]) -> TrackedAt {
        let found = self.levels().find_map(|level| Some((level.repository.as_ref()?, level)));
        found.map_or(TrackedAt::Nothing, |(repository, level)| repository.tracked_at(&level.relative(path)))
    }

    /// Whether git would ignore the path.
    fn git_match(&self, path: &[u8], is_folder: bool, global: &Gitignore) -> bool {
        for level in self.levels() {
            let matched = |rules: &Gitignore| says(rules.matched(level.relative(path), is_folder));
            if let Some(ignored) = level.git.as_ref().and_then(matched) {
                return ignored;
            }
            if let Some(repository) = &level.repository {
                // An outer repository's rules end at this one's root.
                return matched(&repository.excludes).or_else(|| matched(global)).unwrap_or(false);
            }
        }
        says(global.matched(Path::new(OsStr::from_bytes(path)), is_folder)).unwrap_or(false)
    }
}

pub(crate) fn says<T>(matched: Match<T>) -> Option<bool> {
    match matched {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    }
}

/// Reads an ignore file; invalid patterns are skipped, as in git.
pub(crate) fn parse(bytes: &[u8]) -> Gitignore {
    parse_in(bytes, false)
}

/// Like `parse`, optionally ignoring case.
pub(crate) fn parse_in(bytes: &[u8], ignores_case: bool) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    if ignores_case {
        let _ = builder.case_insensitive(true);
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    for line in bytes.split(|b| *b == b'\n') {
        if let Some(line) = translate(&String::from_utf8_lossy(line)) {
            let _ = builder.add_line(None, &line);
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// The exclude file of a repository, given its `.git`: a folder or, in worktrees and submodules, a file that names one.
pub(crate) fn exclude_file(git: &Path) -> Option<PathBuf> {
    let folder = if git.is_dir() {
        git.to_path_buf()
    } else {
        let text = bounded::read(git, LARGEST_POINTER).ok()??;
        git.parent()?.join(OsStr::from_bytes(text.strip_prefix(b"gitdir:")?.trim_ascii()))
    };
    // A worktree shares the excludes of its main repository.
    let common = bounded::read(&folder.join("commondir"), LARGEST_POINTER).ok().flatten();
    let common = common.map(|c| folder.join(OsStr::from_bytes(c.trim_ascii())));
    Some(common.unwrap_or(folder).join("info/exclude"))
}

/// A path's parent; the root's is the root.
pub(crate) fn parent_of(path: &[u8]) -> &[u8] {
    path.iter().rposition(|b| *b == b'/').map_or(&[], |at| &path[..at])
}

pub(crate) fn name_of(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or_default()
}

pub(crate) fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(folder.len() + 1 + name.len());
    path.extend_from_slice(folder);
    if !folder.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}
