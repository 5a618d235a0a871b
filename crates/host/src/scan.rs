//! A scan: what the workspace looks like now, reading only the files that may have changed.
//!
//! In four passes: `stat` everything that the index knows ([`suspects`]); list the folders in which something changed
//! ([`crate::walk`]) and lay that over the index ([`crate::slots`]); read the files that are new to it; build the trees
//! of the folders that changed and of those above them ([`crate::assemble`]). The files may be read in slices, with
//! what was read kept in between.

mod suspects;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use piton_model::plan::RootState;
use piton_model::{SkipReason, WorkspacePath};

use self::suspects::suspects;
use crate::assemble::{assemble, partial_index};
use crate::index::{Index, Kind};
use crate::parallel::{threads, together};
use crate::read::{Reading, Sink, read_file};
use crate::root::Root;
use crate::rules::{Held, RuleOptions, Rules, join, parent_of};
use crate::slots::{Slot, merge};
use crate::tracked::{self, Stamp};
use crate::walk::{NodeKind, Task, Walk, is_young};

pub struct ScanOptions<'a> {
    /// From an earlier scan.
    pub index: Option<&'a Index>,
    pub rules: RuleOptions,
    /// The clock when the scan was requested.
    pub now_ns: i64,
    /// Whose staged file a name is, if it belongs to an unfinished operation; such a file is never captured.
    pub is_staged: IsStaged<'a>,
    /// What is captured although a rule ignores it.
    pub held: Held<'a>,
    /// Larger workspaces are refused.
    pub limit: Limit,
    /// For progress display.
    pub progress: &'a Progress,
}

pub type IsStaged<'a> = Box<dyn Fn(&[u8]) -> Option<StagedBy> + Sync + 'a>;

/// Whose staged file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StagedBy {
    /// Of an operation of this workspace, which is finished before anything is captured.
    ThisWorkspace,
    /// Of another workspace around this one or in it: nothing about it is known here, so it is listed.
    Another,
}

/// The largest root that is captured without being forced.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    pub files: u64,
    pub bytes: u64,
}

impl Limit {
    pub const NONE: Self = Self { files: u64::MAX, bytes: u64::MAX };
}

/// How far the work has progressed; can be read from another thread.
#[derive(Debug)]
pub struct Progress {
    /// Files to read, as far as known.
    pub files: AtomicU64,
    pub files_read: AtomicU64,
    pub bytes: AtomicU64,
    pub bytes_read: AtomicU64,
    /// True until an operation begins to change files: until then a process can be stopped without leaving anything
    /// unfinished.
    pub may_stop: Arc<AtomicBool>,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            files: AtomicU64::default(),
            files_read: AtomicU64::default(),
            bytes: AtomicU64::default(),
            bytes_read: AtomicU64::default(),
            may_stop: Arc::new(AtomicBool::new(true)),
        }
    }
}

/// The result of a scan.
pub struct Scan {
    pub root: RootState,
    /// For the next scan; `None` where that is the index that was given.
    pub index: Option<Index>,
    /// What was skipped, and why.
    pub skipped: Vec<(WorkspacePath, SkipReason)>,
    /// Files that changed during each reading.
    pub unsettled: Vec<WorkspacePath>,
    /// Number of files read.
    pub read: u64,
    /// The folders that contain a `.git`.
    pub repositories: Vec<WorkspacePath>,
}

#[derive(Debug, thiserror::Error)]
pub enum ScanError<E> {
    /// The workspace is over the limit.
    #[error("the folder holds more than {} files or {} bytes", .0.files, .0.bytes)]
    TooLarge(Limit),
    /// The root cannot be listed.
    #[error(transparent)]
    Root(io::Error),
    /// The sink refused the bytes.
    #[error(transparent)]
    Sink(E),
}

pub fn scan<S: Sink>(root: &Root, options: ScanOptions<'_>, sink: &S) -> Result<Scan, ScanError<S::Error>> {
    let mut scanning = begin_scan(root, options)?;
    scanning.read(sink, ReadFor::EVER).map_err(ScanError::Sink)?;
    scanning.finish(sink).map_err(ScanError::Sink)
}

/// A scan whose folders are listed and whose files are being read.
pub struct Scanning<'a> {
    root: &'a Root,
    rules: [u8; 32],
    tracked: Stamp,
    now_ns: i64,
    /// The index, if its folders were not listed again.
    old: Option<&'a Index>,
    slots: Vec<Slot<'a>>,
    to_read: Vec<ToRead>,
    /// Files that disappeared before they were read. They keep their positions until the end, so that the others do,
    /// too.
    gone: Vec<(usize, usize)>,
    unsettled: Vec<WorkspacePath>,
    progress: &'a Progress,
    threads: usize,
}

/// How long to read files.
#[derive(Clone, Copy, Debug)]
pub struct ReadFor {
    /// No file is started after this, except for the first: so that reading in slices makes progress, however short
    /// they are.
    pub until: Option<Instant>,
    /// A file that is being read then is abandoned.
    pub deadline: Option<Instant>,
}

impl ReadFor {
    /// No time limit.
    pub const EVER: Self = Self { until: None, deadline: None };
}

/// Lists what there is to scan, and reads nothing yet.
pub fn begin_scan<'a, E>(root: &'a Root, options: ScanOptions<'a>) -> Result<Scanning<'a>, ScanError<E>> {
    let threads = threads();
    // Whether a file was young is judged by the clock: after it was set back, that no longer holds.
    let options = ScanOptions { index: options.index.filter(|i| i.made_at <= options.now_ns), ..options };
    let rules = Rules::load(root, options.rules.clone(), &options.held.roots);
    let tracked = Stamp::take(root, &rules, options.index, options.now_ns);
    // The rules decided which paths the index knows: with other rules it still saves reading, but not listing.
    let listed_anew =
        options.index.is_none_or(|i| i.rules != rules.fingerprint || i.len() == 0) || !root.trusts_folder_times();
    let mut walk = Walk {
        root,
        rules: &rules,
        index: options.index,
        known_too: listed_anew,
        young_from: options.now_ns,
        is_staged: &options.is_staged,
        held: &options.held,
        most_files: options.limit.files,
        threads,
    };
    let everything = |rules: &Rules| vec![Task { path: Vec::new(), level: rules.base(), partly: None }];

    let mut found = match options.index {
        Some(index) if !listed_anew => {
            let mut suspects = suspects(root, index, threads);
            for forced in rules.forced() {
                let mut path = forced.as_bytes();
                while !path.is_empty() {
                    path = parent_of(path);
                    suspects.extend(index.find(path));
                }
            }
            suspects.sort_unstable();
            suspects.dedup();
            // Where nothing changed, the index knows which rule files there are.
            let known = |path: &[u8]| {
                let at = index.find(path).filter(|at| suspects.binary_search(at).is_err())?;
                Some(index.folder(at).rules())
            };
            let more = match tracked.holds_for(index) {
                true => Vec::new(),
                false => tracked::suspects(root, &rules, index, &known),
            };
            let mut listed = [&suspects[..], &more].concat();
            listed.sort_unstable();
            listed.dedup();
            let task = |at: &usize| {
                let (path, partly) = (index.folder(*at).path().to_vec(), index.folder(*at).head().partly);
                Task { level: rules.level_above(root, &path, &known), path, partly }
            };
            let tasks = listed.iter().map(task).collect();
            walk.run(tasks)
        }
        _ => walk.run(everything(&rules)),
    };
    if found.rules_changed && !walk.known_too {
        walk.known_too = true;
        found = walk.run(everything(&rules));
    }
    if let Some((path, _)) = found.failed.iter().find(|(path, _)| path.is_empty()) {
        debug_assert!(path.is_empty());
        let error = root.open_beneath(b"", rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY);
        return Err(ScanError::Root(error.err().unwrap_or_else(|| io::ErrorKind::NotFound.into())));
    }
    if found.too_many {
        return Err(ScanError::TooLarge(options.limit));
    }

    let old = options.index.filter(|_| !walk.known_too);
    let slots = merge(old, found);
    let to_read = to_read(&slots);
    let bytes: u64 = to_read.iter().map(|r| r.size).sum();
    if bytes > options.limit.bytes {
        return Err(ScanError::TooLarge(options.limit));
    }
    options.progress.files_read.store(0, Ordering::Relaxed);
    options.progress.bytes_read.store(0, Ordering::Relaxed);
    options.progress.files.store(to_read.len() as u64, Ordering::Relaxed);
    options.progress.bytes.store(bytes, Ordering::Relaxed);
    Ok(Scanning {
        root,
        rules: rules.fingerprint,
        tracked,
        now_ns: options.now_ns,
        old,
        slots,
        to_read,
        gone: Vec::new(),
        unsettled: Vec::new(),
        progress: options.progress,
        threads,
    })
}

impl Scanning<'_> {
    /// Reads files; returns whether all of them are read now.
    ///
    /// # Errors
    /// If the sink refuses the bytes.
    pub fn read<S: Sink>(&mut self, sink: &S, time: ReadFor) -> Result<bool, S::Error> {
        let reader = Reader { root: self.root, sink, progress: self.progress, time, threads: self.threads };
        let mut results = reader.read_all(&self.to_read)?;
        results.sort_unstable_by_key(|(at, _)| *at);
        let mut is_read = vec![false; self.to_read.len()];
        for (at, reading) in results {
            is_read[at] = true;
            self.take_in(at, reading);
        }
        let mut is_read = is_read.into_iter();
        self.to_read.retain(|_| !is_read.next().unwrap_or(false));
        Ok(self.to_read.is_empty())
    }

    /// Number of files still to be read.
    pub fn unread(&self) -> usize {
        self.to_read.len()
    }

    /// An index of what has been read so far, for another scan to continue from.
    pub fn so_far(&self) -> Index {
        partial_index(&self.slots, self.rules, self.now_ns)
    }

    /// Builds the trees and the new index.
    ///
    /// # Errors
    /// If the sink refuses the trees.
    pub fn finish<S: Sink>(mut self, sink: &S) -> Result<Scan, S::Error> {
        debug_assert!(self.to_read.is_empty(), "a scan that is not whole has no trees");
        // From the back, so that removing an entry leaves the positions of the others as they are.
        self.gone.sort_unstable_by(|a, b| b.cmp(a));
        for (slot, entry) in std::mem::take(&mut self.gone) {
            let Slot::Listed(node) = &mut self.slots[slot] else { continue };
            // Something may be there now that was not listed.
            node.young = true;
            node.entries.remove(entry);
        }
        self.unsettled.sort_unstable();
        let skipped = skipped(&self.slots);
        let (root, index) = match (self.old, &self.slots[..]) {
            // Nothing was listed anew: everything is as in the index.
            (Some(_), [Slot::Known(root), ..]) if self.slots.iter().all(|s| matches!(s, Slot::Known(_))) => {
                let head = root.head();
                let tracked = self.tracked.for_slots(&self.slots);
                let index = self.old.filter(|old| old.tracked != tracked).map(|old| old.with_tracked(tracked));
                (RootState { tree: head.tree, mode: head.signature.bits() }, index)
            }
            _ => {
                let stamps = (self.rules, self.tracked.for_slots(&self.slots));
                let (root, index) = assemble(&self.slots, stamps, self.now_ns, self.old, sink)?;
                (root, Some(index))
            }
        };
        let read = self.progress.files_read.load(Ordering::Relaxed);
        let repositories =
            tracked::repositories(&self.slots).filter_map(|path| WorkspacePath::new(path).ok()).collect();
        Ok(Scan { root, index, skipped, unsettled: self.unsettled, read, repositories })
    }

    /// Puts the result of reading a file into its folder.
    fn take_in(&mut self, at: usize, reading: Reading) {
        let file = &self.to_read[at];
        let Slot::Listed(node) = &mut self.slots[file.slot] else { return };
        let entry = &mut node.entries[file.entry];
        match reading {
            Reading::Read { blob, signature, settled } => {
                entry.kind = NodeKind::File(Some(blob));
                entry.signature = signature;
                entry.young = !settled || is_young(&signature, self.now_ns);
                if !settled {
                    self.unsettled.extend(WorkspacePath::new(file.path.clone()));
                }
            }
            Reading::Unreadable => entry.kind = NodeKind::Skipped(SkipReason::Unreadable),
            // Such a file is not among the results.
            Reading::Late => {}
            Reading::Gone => self.gone.push((file.slot, file.entry)),
        }
    }
}

/// A file whose content is still to be read.
struct ToRead {
    slot: usize,
    entry: usize,
    path: Vec<u8>,
    size: u64,
}

fn to_read(slots: &[Slot<'_>]) -> Vec<ToRead> {
    let mut out = Vec::new();
    for (slot, node) in slots.iter().enumerate() {
        let Slot::Listed(node) = node else { continue };
        for (entry, child) in node.entries.iter().enumerate() {
            if matches!(child.kind, NodeKind::File(None)) {
                out.push(ToRead { slot, entry, path: join(&node.path, &child.name), size: child.signature.size });
            }
        }
    }
    out
}

/// Reads files, several at once.
struct Reader<'a, S> {
    root: &'a Root,
    sink: &'a S,
    progress: &'a Progress,
    time: ReadFor,
    threads: usize,
}

impl<S: Sink> Reader<'_, S> {
    /// Reads files while there is time; returns their positions in the list and the results.
    fn read_all(&self, files: &[ToRead]) -> Result<Vec<(usize, Reading)>, S::Error> {
        /// Files that a thread takes at a time.
        const SHARE: usize = 8;
        /// In bytes. Less than this is read before another core has woken up.
        const LITTLE: u64 = 1 << 20;
        let is_little = files.len() <= 4 * SHARE && files.iter().map(|f| f.size).sum::<u64>() < LITTLE;
        let threads = if is_little { 1 } else { self.threads };
        let next = AtomicUsize::new(0);
        let results = Mutex::new(Vec::with_capacity(files.len()));
        let failure = Mutex::new(None);
        let work = || {
            let mut buffer = Vec::new();
            let mut mine = Vec::new();
            'all: loop {
                let from = next.fetch_add(SHARE, Ordering::Relaxed);
                if from >= files.len() {
                    break;
                }
                for (at, file) in files.iter().enumerate().skip(from).take(SHARE) {
                    let is_over = |end: Option<Instant>| end.is_some_and(|end| Instant::now() >= end);
                    if is_over(self.time.deadline) || (!mine.is_empty() && is_over(self.time.until)) {
                        next.store(files.len(), Ordering::Relaxed);
                        break 'all;
                    }
                    match read_file(self.root, &file.path, self.sink, &mut buffer, self.time.deadline) {
                        Ok(Reading::Late) => {
                            next.store(files.len(), Ordering::Relaxed);
                            break 'all;
                        }
                        Ok(reading) => mine.push((at, reading)),
                        Err(error) => {
                            // The first failure ends the scan for all threads.
                            next.store(files.len(), Ordering::Relaxed);
                            failure.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(error);
                            break 'all;
                        }
                    }
                    self.progress.files_read.fetch_add(1, Ordering::Relaxed);
                    self.progress.bytes_read.fetch_add(file.size, Ordering::Relaxed);
                }
            }
            results.lock().unwrap_or_else(|e| e.into_inner()).append(&mut mine);
        };
        together(threads.min(files.len().div_ceil(SHARE)), work);
        if let Some(error) = failure.into_inner().unwrap_or_else(|e| e.into_inner()) {
            return Err(error);
        }
        Ok(results.into_inner().unwrap_or_else(|e| e.into_inner()))
    }
}

fn skipped(slots: &[Slot<'_>]) -> Vec<(WorkspacePath, SkipReason)> {
    let mut out = Vec::new();
    let mut add = |folder: &[u8], name: &[u8], reason| {
        out.extend(WorkspacePath::new(folder).map(|folder| (folder.join_any(name), reason)));
    };
    for slot in slots {
        match slot {
            Slot::Known(view) if !view.head().holds_skipped => {}
            Slot::Known(view) => {
                for entry in view.entries() {
                    if let Kind::Skipped(reason) = entry.kind {
                        add(view.path(), entry.name, reason);
                    }
                }
            }
            Slot::Listed(node) => {
                for entry in &node.entries {
                    if let NodeKind::Skipped(reason) = entry.kind {
                        add(&node.path, &entry.name, reason);
                    }
                }
            }
        }
    }
    // Folders come before their contents, and paths are shown in path order.
    out.sort_unstable();
    out
}
