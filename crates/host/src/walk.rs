//! Lists folders, several at once: their entries, what `stat` says of them, and what the rules decide.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use piton_model::path::is_git;
use piton_model::{ObjectId, SkipReason};
use rustix::fs::{AtFlags, FileType, OFlags, statat};
use rustix::io::Errno;

use crate::git::GitLink;
use crate::index::{EntryView, FolderView, Index, Kind, Signature};
use crate::root::Root;
use crate::rules::{Decision, EntryKind, FolderRules, Held, Level, Rules, exclude_file, join};
use crate::scan::StagedBy;
use crate::sys;

/// A folder as it was just listed.
pub(crate) struct FolderNode {
    pub path: Vec<u8>,
    pub signature: Signature,
    pub young: bool,
    pub has_git: bool,
    /// Why a rule ignores the folder, if it is listed only for some of its contents.
    pub partly: Option<SkipReason>,
    pub git_stamp: u64,
    /// In name order.
    pub entries: Vec<Node>,
}

/// One name in a listed folder.
pub(crate) struct Node {
    pub name: Vec<u8>,
    pub kind: NodeKind,
    pub young: bool,
    pub signature: Signature,
}

pub(crate) enum NodeKind {
    /// Without an id, its content is still to be read.
    File(Option<ObjectId>),
    Symlink(Vec<u8>),
    Folder,
    Skipped(SkipReason),
}

impl Node {
    /// In the index's form.
    pub(crate) fn view(&self) -> EntryView<'_> {
        let kind = match &self.kind {
            // A file that was not read is removed before it is used as an entry.
            NodeKind::File(id) => Kind::File(id.unwrap_or(ObjectId([0; 32]))),
            NodeKind::Symlink(target) => Kind::Symlink(target),
            NodeKind::Folder => Kind::Folder,
            NodeKind::Skipped(reason) => Kind::Skipped(*reason),
        };
        EntryView { name: &self.name, kind, young: self.young, signature: self.signature }
    }
}

/// A folder to list.
pub(crate) struct Task {
    pub path: Vec<u8>,
    /// The rules of the folder above it.
    pub level: Arc<Level>,
    /// Skipped by a rule for this reason, and listed only for the forced, tracked or held paths in it.
    pub partly: Option<SkipReason>,
}

pub(crate) struct Walk<'a> {
    pub root: &'a Root,
    pub rules: &'a Rules,
    pub index: Option<&'a Index>,
    /// Whether folders that the index knows are listed again, too, or only those it does not know.
    pub known_too: bool,
    /// Times from here on are as young as this scan.
    pub young_from: i64,
    pub is_staged: &'a (dyn Fn(&[u8]) -> Option<StagedBy> + Sync),
    pub held: &'a Held<'a>,
    /// Stop when more files than this are found.
    pub most_files: u64,
    pub threads: usize,
}

/// The result of listing a folder.
enum Listed {
    /// Its entries, and whether its rules differ from those that the index was made with.
    Folder(FolderNode, bool),
    /// It is not part of the workspace.
    Apart(SkipReason),
}

/// Fewer folders than this are not worth a thread.
const FEW: usize = 16;

#[derive(Default)]
pub(crate) struct WalkFound {
    pub folders: Vec<FolderNode>,
    /// Folders that are left out because of what is in them.
    pub apart: Vec<(Vec<u8>, SkipReason)>,
    /// Folders that could not be listed, and whether that is because they are gone.
    pub failed: Vec<(Vec<u8>, bool)>,
    /// An ignore file changed, so decisions about other folders may no longer hold.
    pub rules_changed: bool,
    pub too_many: bool,
}

impl Walk<'_> {
    /// Lists these folders and the ones beneath them.
    pub(crate) fn run(&self, tasks: Vec<Task>) -> WalkFound {
        // A few known folders are listed before another thread would have started.
        let is_short = !self.known_too && self.index.is_some() && tasks.len() <= FEW;
        let threads = if is_short { 1 } else { self.threads };
        let known = if self.known_too { self.index.map(Index::by_path).unwrap_or_default() } else { HashMap::new() };
        let queue = Queue { state: Mutex::new(QueueState { tasks, working: 0 }), wake: Condvar::new() };
        let rules_changed = AtomicBool::new(false);
        let files = AtomicU64::new(0);
        let found = Mutex::new(WalkFound::default());
        crate::parallel::together(threads, || self.work(&queue, &known, &rules_changed, &files, &found));
        let mut found = found.into_inner().unwrap_or_else(|e| e.into_inner());
        found.rules_changed = rules_changed.into_inner();
        found.too_many = files.into_inner() > self.most_files;
        found
    }

    fn work(
        &self,
        queue: &Queue,
        known: &HashMap<&[u8], usize>,
        rules_changed: &AtomicBool,
        files: &AtomicU64,
        found: &Mutex<WalkFound>,
    ) {
        let mut space = Vec::with_capacity(64 << 10);
        let mut folders = Vec::new();
        let mut apart = Vec::new();
        let mut failed = Vec::new();
        while let Some(task) = queue.take() {
            if files.load(Ordering::Relaxed) > self.most_files {
                queue.done(Vec::new());
                continue;
            }
            let old = match self.index {
                Some(index) if self.known_too => known.get(&task.path[..]).map(|at| index.folder(*at)),
                Some(index) => index.find(&task.path).map(|at| index.folder(at)),
                None => None,
            };
            let mut deeper = Vec::new();
            match self.list(&task, old, &mut space, &mut deeper, &mut apart) {
                Ok(Listed::Folder(node, changed)) => {
                    if changed {
                        rules_changed.store(true, Ordering::Relaxed);
                    }
                    let count = node.entries.iter().filter(|n| matches!(n.kind, NodeKind::File(_))).count();
                    files.fetch_add(count as u64, Ordering::Relaxed);
                    folders.push(node);
                }
                Ok(Listed::Apart(reason)) => apart.push((task.path, reason)),
                Err(error) => {
                    let gone = matches!(Errno::from_io_error(&error), Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP));
                    failed.push((task.path, gone));
                }
            }
            queue.done(deeper);
        }
        let mut found = found.lock().unwrap_or_else(|e| e.into_inner());
        found.folders.append(&mut folders);
        found.apart.append(&mut apart);
        found.failed.append(&mut failed);
    }

    /// Lists one folder. Folders elsewhere in the workspace that its `.git` leads to are added to `apart`.
    fn list(
        &self,
        task: &Task,
        old: Option<FolderView<'_>>,
        space: &mut Vec<u8>,
        deeper: &mut Vec<Task>,
        apart: &mut Vec<(Vec<u8>, SkipReason)>,
    ) -> io::Result<Listed> {
        let fd = self.root.open_beneath(&task.path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        // Before the listing: a change in the meantime then shows at the next scan.
        let signature = Signature::of_folder(&rustix::fs::fstat(&fd)?);
        let mut names: Vec<Vec<u8>> = Vec::new();
        let mut rules = FolderRules::default();
        let mut has_link = false;
        // Names that are skipped whatever is there.
        let mut refused: Vec<(Vec<u8>, SkipReason)> = Vec::new();
        sys::list(&fd, space, |name, kind| {
            let name = name.to_bytes();
            match name {
                b".gitignore" => rules.has_gitignore = true,
                b".pitonignore" => rules.has_pitonignore = true,
                _ if is_git(name) => {
                    rules.has_git = true;
                    match name {
                        b".git" => has_link |= kind != FileType::Directory,
                        _ => refused.push((name.to_vec(), SkipReason::GitName)),
                    }
                    return;
                }
                _ => match self.staged_by(name) {
                    Some(StagedBy::ThisWorkspace) => return,
                    Some(StagedBy::Another) => {
                        refused.push((name.to_vec(), SkipReason::Staged));
                        return;
                    }
                    None => {}
                },
            }
            names.push(name.to_vec());
        })?;
        names.sort_unstable();
        // Before the link is followed and the rules are read, for the same reason.
        let stamp = if rules.has_git { GitStamp::of(self.root, &task.path) } else { GitStamp::default() };
        if has_link && self.follow_link(&task.path, apart) {
            return Ok(Listed::Apart(SkipReason::Worktree));
        }
        // Somebody may turn a folder with the user's files into a repository.
        let partly = match self.git_folder(task, &fd, &names) {
            Some(reason) if self.rules.is_held(&task.path) => Some(reason),
            Some(reason) => return Ok(Listed::Apart(reason)),
            None => task.partly,
        };
        let level = self.rules.enter(self.root, &task.level, &task.path, rules);

        let mut old_entries = old.map(|o| o.entries()).into_iter().flatten().peekable();
        let mut entries = Vec::with_capacity(names.len());
        let mut rules_changed = false;
        let mut captured = None;
        for name in names {
            let stat = match statat(&fd, &name[..], AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                // A folder that may be listed but not entered: its entries have names and nothing else.
                Err(_) => {
                    let kind = NodeKind::Skipped(SkipReason::Unreadable);
                    entries.push(Node { name, kind, young: true, signature: Signature::default() });
                    continue;
                }
            };
            while old_entries.peek().is_some_and(|o| o.name < &name[..]) {
                old_entries.next();
            }
            let before = old_entries.next_if(|o| o.name == &name[..]);
            let kind_of = FileType::from_raw_mode(stat.st_mode);
            let signature =
                if kind_of == FileType::Directory { Signature::of_folder(&stat) } else { Signature::of(&stat) };
            let same = before.as_ref().filter(|b| !b.young && b.signature == signature);
            if matches!(&name[..], b".gitignore" | b".pitonignore") && same.is_none() {
                rules_changed = true;
            }
            let path = join(&task.path, &name);
            let what = match kind_of {
                FileType::Directory => EntryKind::Folder,
                FileType::Symlink => EntryKind::Symlink,
                _ => EntryKind::File(signature.size),
            };
            let mut young = self.is_young(&signature);
            let was_captured = || {
                let names = captured.get_or_insert_with(|| self.held.names_in(&task.path));
                names.as_ref().is_none_or(|names| names.contains(&name))
            };
            let kind = match (kind_of, self.rules.decide(&level, partly, &path, what, was_captured)) {
                (FileType::RegularFile | FileType::Directory | FileType::Symlink, Decision::Skip(reason)) => {
                    NodeKind::Skipped(reason)
                }
                (FileType::Directory, _) if is_too_deep(&path) => NodeKind::Skipped(SkipReason::Unreadable),
                (FileType::Directory, decision) => {
                    let is_known = before.as_ref().is_some_and(|b| b.kind == Kind::Folder);
                    if self.known_too || !is_known || self.index.is_none() {
                        let partly = if let Decision::Partly(reason) = decision { Some(reason) } else { None };
                        deeper.push(Task { path, level: level.clone(), partly });
                    }
                    NodeKind::Folder
                }
                (FileType::Symlink, _) => match rustix::fs::readlinkat(&fd, &name[..], Vec::new()) {
                    Ok(target) => NodeKind::Symlink(target.into_bytes()),
                    Err(Errno::NOENT | Errno::INVAL) => continue,
                    Err(_) => NodeKind::Skipped(SkipReason::Unreadable),
                },
                (FileType::RegularFile, _) => match same.map(|b| &b.kind) {
                    Some(Kind::File(id)) => {
                        young = false;
                        NodeKind::File(Some(*id))
                    }
                    _ => NodeKind::File(None),
                },
                _ => NodeKind::Skipped(SkipReason::Special),
            };
            entries.push(Node { name, kind, young, signature });
        }
        for (name, reason) in refused {
            let at = entries.partition_point(|entry: &Node| entry.name < name);
            let kind = NodeKind::Skipped(reason);
            // Marked young, so that the next scan checks again.
            entries.insert(at, Node { name, kind, young: true, signature: Signature::default() });
        }
        if let Some(old) = old {
            let head = old.head();
            let had = |name: &[u8]| old.entries().any(|e| e.name == name);
            rules_changed |= head.has_git != rules.has_git
                || head.git_stamp != stamp.number
                || had(b".gitignore") != rules.has_gitignore
                || had(b".pitonignore") != rules.has_pitonignore;
        }
        let young = self.is_young(&signature);
        // If it is as young as this scan, the exclude file's next edit may not change its time.
        let is_young = self.is_young(&Signature { ctime: stamp.exclude_ctime, ..Signature::default() });
        let git_stamp = if is_young { GitStamp::NONE_WILL_DO } else { stamp.number };
        let (path, has_git) = (task.path.clone(), rules.has_git);
        let node = FolderNode { path, signature, young, has_git, partly, git_stamp, entries };
        Ok(Listed::Folder(node, rules_changed))
    }

    /// Follows a folder's `.git` that is not a folder itself: what it leads to in this workspace is added to `apart`.
    /// True if the folder is a worktree and not the workspace itself.
    fn follow_link(&self, folder: &[u8], apart: &mut Vec<(Vec<u8>, SkipReason)>) -> bool {
        let Some(link) = GitLink::of(&self.root.path().join(OsStr::from_bytes(folder))) else { return false };
        let is_worktree = link.is_worktree() && !folder.is_empty();
        for target in [&link.git_dir, &link.common_dir] {
            match target.strip_prefix(self.root.path()) {
                // Inside a `.git`, which is not captured anyway, nothing can be left out.
                Ok(inner) if !inner.as_os_str().is_empty() && !self.rules.is_held(inner.as_os_str().as_bytes()) => {
                    apart.push((inner.as_os_str().as_bytes().to_vec(), SkipReason::GitFolder));
                }
                _ => {}
            }
        }
        is_worktree
    }

    /// Why a folder that contains a repository's own data is skipped; `None` if it does not, or is included.
    fn git_folder(&self, task: &Task, fd: &OwnedFd, names: &[Vec<u8>]) -> Option<SkipReason> {
        let has = |name: &[u8]| names.binary_search_by(|n| n[..].cmp(name)).is_ok();
        if task.path.is_empty() || !(has(b"HEAD") && has(b"objects") && has(b"refs")) {
            return None;
        }
        let is_folder = |name: &[u8]| {
            let stat = statat(fd, name, AtFlags::SYMLINK_NOFOLLOW);
            stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
        };
        if !is_folder(b"objects") || !is_folder(b"refs") {
            return None;
        }
        // What leads here may not be listed this time.
        let was = self.index.filter(|_| !self.known_too).and_then(|index| index.skipped_at(&task.path));
        if was == Some(SkipReason::GitFolder) {
            return was;
        }
        (!task.level.takes_in(&task.path)).then_some(SkipReason::BareRepository)
    }

    fn staged_by(&self, name: &[u8]) -> Option<StagedBy> {
        if name.starts_with(crate::STAGED.as_bytes()) { (self.is_staged)(name) } else { None }
    }

    /// Whether a later write could leave the times unchanged.
    pub(crate) fn is_young(&self, signature: &Signature) -> bool {
        is_young(signature, self.young_from)
    }
}

/// Whether times are as young as a scan that began at `from`, on a filesystem with a coarse clock.
pub(crate) fn is_young(signature: &Signature, from: i64) -> bool {
    /// In nanoseconds. A kernel's clock tick is 10 ms at most; some filesystems store whole seconds, or even two.
    const TICK: i64 = 20_000_000;
    const WHOLE_SECONDS: i64 = 2_000_000_000;
    let newest = signature.mtime.max(signature.ctime);
    let slack = if signature.ctime % 1_000_000_000 == 0 { WHOLE_SECONDS } else { TICK };
    newest >= from.saturating_sub(slack)
}

/// Whether a folder is deeper than trees are followed. Trees are compared and assembled by recursive functions, so an
/// endless tree must not be captured; and the index stores a path's length in 16 bits.
fn is_too_deep(path: &[u8]) -> bool {
    const DEEPEST: usize = 2_000;
    const LONGEST: usize = 60_000;
    path.len() > LONGEST || path.iter().filter(|b| **b == b'/').count() >= DEEPEST
}

/// Tells whether a folder's `.git` has changed since the folder was listed, even if the folder's times have not: where
/// it leads, which decides whether the folder is a worktree, and the repository's own exclude file.
#[derive(Clone, Copy, Default)]
pub(crate) struct GitStamp {
    pub number: u64,
    exclude_ctime: i64,
}

impl GitStamp {
    /// A stamp that never matches, so that the folder is listed again.
    pub(crate) const NONE_WILL_DO: u64 = u64::MAX;

    pub(crate) fn of(root: &Root, folder: &[u8]) -> Self {
        let folder = root.path().join(OsStr::from_bytes(folder));
        let exclude = exclude_file(&folder.join(".git")).and_then(|file| rustix::fs::stat(&file).ok());
        let exclude_ctime = exclude.map_or(0, |stat| Signature::of(&stat).ctime);
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        hasher.update(&exclude_ctime.to_le_bytes());
        if let Some(link) = GitLink::of(&folder) {
            for place in [link.git_dir, link.common_dir] {
                hasher.update(place.as_os_str().as_bytes());
                hasher.update(&[0]);
            }
        }
        Self { number: hasher.digest() >> 1, exclude_ctime }
    }
}

/// Folders to list, shared by the threads; empty only when nobody can add to it any more.
struct Queue {
    state: Mutex<QueueState>,
    wake: Condvar,
}

struct QueueState {
    tasks: Vec<Task>,
    working: usize,
}

impl Queue {
    fn take(&self) -> Option<Task> {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        loop {
            if let Some(task) = state.tasks.pop() {
                state.working += 1;
                return Some(task);
            }
            if state.working == 0 {
                return None;
            }
            state = self.wake.wait(state).unwrap_or_else(|e| e.into_inner());
        }
    }

    fn done(&self, mut deeper: Vec<Task>) {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        state.working -= 1;
        let wake = !deeper.is_empty() || state.working == 0;
        state.tasks.append(&mut deeper);
        drop(state);
        if wake {
            self.wake.notify_all();
        }
    }
}
