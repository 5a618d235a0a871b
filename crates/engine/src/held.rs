//! Rules that somebody else than the user changed: what they would take out of sight stays captured until the user agrees.
//!
//! What is held is listed in each checkpoint (`Checkpoint::held`), so it is as durable as what it protects, and a store that
//! is made anew from its packs knows it. A path becomes held when the last checkpoint has it, a rule of `.gitignore` and
//! its kin leaves it out now, and one of the files with rules on its way changed since and was not changed by the user
//! alone. It sleeps while no rule leaves the path out, and ends when the user agrees: then the next checkpoint leaves it out.
//! What the last checkpoint does not have follows every rule at once.

use std::collections::{BTreeSet, HashSet};
use std::convert::Infallible;

use piton_host::{Held, Lock, Root, RuleSource, Scan, SourceKind, process, read_entry, rule_sources, rules_leave_out};
use piton_model::diff::{self, TreeSource};
use piton_model::ownership::{self, Found, Moment, Owner, Window};
use piton_model::{Entry, HeldPath, ObjectId, SkipReason, WorkspacePath};
use piton_store::{CheckpointRow, StoreError};

use crate::capture::{Attention, CaptureError, CaptureOptions, Taken};
use crate::sink::{HashingSink, Trees};
use crate::view::{Accepted, HeldView, Waiting};
use crate::workspace::{Standing, Workspace};

/// What tells whose doing a change of the rules was.
pub(crate) struct Witness {
    pub moment: Moment,
    /// The window of the step that ends just now.
    pub ending: Option<Window>,
    /// Turns or tools were missed that nobody recorded.
    pub has_missed: bool,
}

/// How much older than the last checkpoint a file may seem that changed after its scan began, in nanoseconds.
const SLACK: i64 = 2_000_000_000;

/// Of more folders than this only the first are asked for their rules: the others hardly have different ones.
const MOST_ASKED: usize = 1000;

impl Workspace {
    /// Captures with all that is held, old and new.
    pub(crate) fn take_held<'s>(
        &'s self,
        lock: &'s Lock,
        root: &Root,
        attention: &Attention<'_>,
    ) -> Result<Taken<'s>, CaptureError> {
        let head = self.store.head(self.record.line)?;
        if attention.agrees {
            return self.take_all(lock, root, attention, head.as_ref(), Vec::new());
        }
        let mut held = self.held_since(root, head.as_ref())?;
        loop {
            let taken = self.take_all(lock, root, attention, head.as_ref(), held.clone())?;
            let lost = match &head {
                Some(head) if head.checkpoint.root.tree != taken.scan.root.tree => {
                    let trees = Trees { fresh: &taken.fresh, store: &self.store };
                    lost_between(&trees, &head.checkpoint.root.tree, &taken.scan.root.tree)
                }
                _ => Vec::new(),
            };
            let lost = lost.into_iter().filter(|path| !is_in(path, &held)).collect();
            let new = self.newly_held(root, head.as_ref(), lost, attention.witness)?;
            if new.is_empty() {
                return Ok(taken);
            }
            hold(&mut held, new);
        }
    }

    /// What the last checkpoint held, as it stands now.
    pub(crate) fn held_since(&self, root: &Root, head: Option<&CheckpointRow>) -> Result<Vec<HeldPath>, CaptureError> {
        let Some(head) = head.filter(|head| !head.checkpoint.held.is_empty()) else { return Ok(Vec::new()) };
        let held = &head.checkpoint.held;
        let paths: Vec<_> = held.iter().map(|one| one.path.clone()).collect();
        let mut now = Vec::new();
        for (one, is_left_out) in held.iter().zip(rules_leave_out(root, &self.rules(), &paths)) {
            // A rule that the user wrote since holds, whatever an agent wrote once.
            if one.dormant && is_left_out && self.is_users_since(root, head, &one.path)? {
                continue;
            }
            now.push(HeldPath { dormant: !is_left_out, ..one.clone() });
        }
        Ok(now)
    }

    /// Whether rules about a path changed since a checkpoint was recorded, all by the user's hand.
    fn is_users_since(&self, root: &Root, head: &CheckpointRow, path: &WorkspacePath) -> Result<bool, CaptureError> {
        let recorded = head.checkpoint.created_at.0.saturating_mul(1_000_000);
        let mut has_changed = false;
        for source in rule_sources(root, &self.rules(), std::slice::from_ref(path)) {
            if source.changed_at > recorded && self.has_changed(root, &source, head)? {
                has_changed = true;
                if !is_users(&self.owner_of_rule(&source, head, None)?) {
                    return Ok(false);
                }
            }
        }
        Ok(has_changed)
    }

    /// What a scan is told of it.
    pub(crate) fn held_in_scan<'a>(&'a self, head: Option<&CheckpointRow>, held: &[HeldPath]) -> Held<'a> {
        let roots: BTreeSet<_> = held.iter().filter(|one| !one.dormant).map(|one| one.path.clone()).collect();
        let Some(tree) = head.map(|head| head.checkpoint.root.tree).filter(|_| !roots.is_empty()) else {
            return Held::default();
        };
        let captured = move |folder: &[u8]| names_in(&self.store, &tree, folder);
        Held { roots, captured: Some(Box::new(captured)) }
    }

    /// What a scan left out by a rule and the last checkpoint has, for a scan whose trees are not at hand.
    pub(crate) fn lost_in(
        &self,
        head: &CheckpointRow,
        scan: &Scan,
        held: &[HeldPath],
    ) -> Result<Vec<WorkspacePath>, StoreError> {
        let tree = &head.checkpoint.root.tree;
        if *tree == scan.root.tree {
            return Ok(Vec::new());
        }
        let mut lost = Vec::new();
        for (path, _) in scan.skipped.iter().filter(|(path, reason)| is_by_rules(*reason) && !is_in(path, held)) {
            match diff::lookup(&self.store, tree, path) {
                Ok(Some(entry)) if holds_something(&self.store, &entry)? => lost.push(path.clone()),
                Ok(_) | Err(StoreError::Missing(_) | StoreError::Damaged(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(lost)
    }

    /// Which paths that rules now take out of sight are to be held, with whose doing that is.
    pub(crate) fn newly_held(
        &self,
        root: &Root,
        head: Option<&CheckpointRow>,
        lost: Vec<WorkspacePath>,
        witness: Option<&Witness>,
    ) -> Result<Vec<HeldPath>, CaptureError> {
        let Some(head) = head.filter(|_| !lost.is_empty()) else { return Ok(Vec::new()) };
        // What lies in one folder has the same rules.
        let mut folders = HashSet::new();
        let is_first = |path: &&WorkspacePath| path.split().is_some_and(|(folder, _)| folders.insert(folder));
        let asked: Vec<_> = lost.iter().filter(is_first).take(MOST_ASKED).cloned().collect();
        let mut rules = Vec::new();
        let mut owner = None;
        for source in rule_sources(root, &self.rules(), &asked) {
            if !self.has_changed(root, &source, head)? {
                continue;
            }
            let whose = self.owner_of_rule(&source, head, witness)?;
            if !is_users(&whose) {
                rules.push(source.shown);
                owner.get_or_insert(whose);
            }
        }
        // Git writes its index for many reasons: where another rule changed too, that is the one to look at.
        let is_gits_own = |rule: &String| rule.ends_with("/index") || rule.ends_with("/config");
        if !rules.iter().all(is_gits_own) {
            rules.retain(|rule| !is_gits_own(rule));
        }
        // No rule changed: it was captured against the rules, because a tool or an operation named it. Or all that changed
        // is the user's own.
        let Some(owner) = owner else { return Ok(Vec::new()) };
        let held = |path| HeldPath { path, rules: rules.clone(), owner: owner.clone(), dormant: false };
        Ok(lost.into_iter().map(held).collect())
    }

    /// Whether a file with rules changed since a checkpoint.
    fn has_changed(&self, root: &Root, source: &RuleSource, head: &CheckpointRow) -> Result<bool, StoreError> {
        let is_younger = source.changed_at >= head.checkpoint.created_at.0.saturating_mul(1_000_000) - SLACK;
        let tree = &head.checkpoint.root.tree;
        let was = match &source.kind {
            SourceKind::Uncaptured => return Ok(is_younger),
            SourceKind::File(path) => diff::lookup(&self.store, tree, path).map(|was| match was {
                // Times tell little of a file that came just before the checkpoint: what it says does.
                Some(was) => is_younger && read_now(root, path).is_none_or(|now| now != was),
                None => true,
            }),
            SourceKind::NoFile(path) => diff::lookup(&self.store, tree, path).map(|found| found.is_some()),
            SourceKind::NoGit(folder) => {
                tree_of(&self.store, tree, folder).map(|tree| tree.is_some_and(|tree| tree.has_git))
            }
        };
        match was {
            Err(StoreError::Missing(_) | StoreError::Damaged(_)) => Ok(is_younger),
            was => was,
        }
    }

    fn owner_of_rule(
        &self,
        source: &RuleSource,
        head: &CheckpointRow,
        witness: Option<&Witness>,
    ) -> Result<Owner, StoreError> {
        let root = WorkspacePath::root();
        let (path, deleted) = match &source.kind {
            SourceKind::File(path) => (path, false),
            SourceKind::NoFile(path) => (path, true),
            SourceKind::NoGit(_) => (&root, true),
            SourceKind::Uncaptured => (&root, false),
        };
        self.owner_since(head, path, Some(source.changed_at), deleted, witness)
    }

    /// Who changed a file since a checkpoint that need not be captured.
    pub(crate) fn owner_since(
        &self,
        head: &CheckpointRow,
        path: &WorkspacePath,
        when: Option<i64>,
        deleted: bool,
        witness: Option<&Witness>,
    ) -> Result<Owner, StoreError> {
        let mut windows = self.windows(head.seq, None)?;
        if let Some(ending) = witness.and_then(|witness| witness.ending.as_ref()) {
            windows.retain(|window| window.step != ending.step);
            windows.push(ending.clone());
            windows.sort_by(|a, b| a.step.cmp(&b.step));
        }
        let moment = witness.map_or(&Moment::Between, |witness| &witness.moment);
        let owner = ownership::owner(Found { path, when, deleted, was_yours: false }, &windows, moment);
        let has_missed = witness.is_some_and(|witness| witness.has_missed)
            || self.store.has_lost_events_since(head.seq)?
            || self.store.has_other_line_since(head.seq, self.record.line)?;
        Ok(if has_missed { ownership::beside_a_missed_tool(owner) } else { owner })
    }

    /// Changed rules and settings that wait for the user's word, as of the last checkpoint.
    pub fn waiting(&self) -> Result<Waiting, CaptureError> {
        let head = self.store.head(self.record.line)?;
        let held = match self.standing().map_err(|e| self.folder_error(e))? {
            Standing::Same(root) => self.held_since(&root, head.as_ref())?,
            Standing::Other(_) | Standing::Missing => Vec::new(),
        };
        self.waiting_of(&held, head.as_ref())
    }

    /// The same, of the workspace as it is now.
    pub fn waiting_now(&self) -> Result<Waiting, CaptureError> {
        let head = self.store.head(self.record.line)?;
        let Standing::Same(root) = self.standing().map_err(|e| self.folder_error(e))? else {
            return self.waiting_of(&[], head.as_ref());
        };
        let (_, held) = self.look_held(&root, &[], &HashingSink::default())?;
        self.waiting_of(&held, head.as_ref())
    }

    pub(crate) fn waiting_of(&self, held: &[HeldPath], head: Option<&CheckpointRow>) -> Result<Waiting, CaptureError> {
        let paths = held.iter().filter(|one| !one.dormant).map(|one| HeldView {
            path: (&one.path).into(),
            rules: one.rules.clone(),
            owner: one.owner.clone(),
        });
        Ok(Waiting { paths: paths.collect(), settings: self.waiting_settings(head)? })
    }

    /// The user agrees to the rules and settings as they are: a checkpoint is made in which they hold.
    ///
    /// # Errors
    /// Where nothing can be captured; then nothing is agreed to.
    pub fn accept_rules(&mut self) -> Result<Accepted, CaptureError> {
        let agreed = self.waiting_now()?;
        if agreed.is_empty() {
            return Ok(Accepted { agreed, checkpoint: None });
        }
        // Whoever did not agree finds it in the log.
        let annotation = Some("agreed to changed rules".to_owned());
        let options = CaptureOptions { sync: true, annotation, ..CaptureOptions::default() };
        let captured = self.capture_agreeing(&options, true)?;
        Ok(Accepted { agreed, checkpoint: Some(captured.checkpoint.checkpoint) })
    }

    /// Whether an agent at work here started this very process, as far as its hooks told: then it is not the user's word.
    pub fn is_run_by_agent(&self) -> Result<bool, StoreError> {
        let above = process::ancestors();
        let is_above = |row: &piton_store::StepRow| {
            let process = row.step.process.as_ref();
            process.is_some_and(|own| above.iter().any(|one| (one.pid, one.started) == (own.pid, own.started)))
        };
        Ok(self.store.open_steps()?.iter().any(is_above))
    }

    /// Whether a tool of an agent runs here, as far as its hooks told.
    pub fn has_running_tool(&self) -> Result<bool, StoreError> {
        let is_alive = |process: &piton_model::session::Process| process::is_alive(process);
        let open = self.store.open_steps()?;
        Ok(open.iter().any(|row| !row.step.background && row.step.process.as_ref().is_some_and(is_alive)))
    }
}

/// A file with rules as it is now; none where it cannot be read.
fn read_now(root: &Root, path: &WorkspacePath) -> Option<Entry> {
    let sink = HashingSink::default();
    let read = read_entry(root, path.as_bytes(), &sink).unwrap_or_else(|never: Infallible| match never {});
    read.ok().flatten()
}

/// Whether a change of the rules is the user's own word.
pub(crate) fn is_users(owner: &Owner) -> bool {
    matches!(owner, Owner::You | Owner::Operation { .. })
}

fn is_by_rules(reason: SkipReason) -> bool {
    matches!(reason, SkipReason::Ignored | SkipReason::Excluded)
}

fn is_in(path: &WorkspacePath, held: &[HeldPath]) -> bool {
    held.iter().any(|one| !one.dormant && path.is_within(&one.path))
}

/// Adds what is held from now on.
pub(crate) fn hold(held: &mut Vec<HeldPath>, new: Vec<HeldPath>) {
    held.retain(|one| !new.iter().any(|new| one.path == new.path));
    held.extend(new);
}

/// What one tree has and a rule left out of the other. What is damaged is told by whoever needs it.
fn lost_between(trees: &Trees<'_>, from: &ObjectId, to: &ObjectId) -> Vec<WorkspacePath> {
    let left_out = diff::left_out(trees, from, to).unwrap_or_default().into_iter();
    let is_lost = |one: &diff::LeftOut| {
        let holds = one.before.as_ref().map(|before| holds_something(trees, before).unwrap_or(true));
        is_by_rules(one.reason) && holds == Some(true)
    };
    left_out.filter(is_lost).map(|one| one.path).collect()
}

/// Whether an entry is a file or a symlink, or a folder with one in it. Of an empty folder nothing can be lost.
fn holds_something<S: TreeSource>(source: &S, entry: &Entry) -> Result<bool, S::Error> {
    let mut folders = match entry {
        Entry::Folder { tree, .. } => vec![*tree],
        Entry::Skipped { .. } => return Ok(false),
        _ => return Ok(true),
    };
    while let Some(folder) = folders.pop() {
        for (_, entry) in source.tree(&folder)?.entries() {
            match entry {
                Entry::Folder { tree, .. } => folders.push(*tree),
                Entry::Skipped { .. } => {}
                _ => return Ok(true),
            }
        }
    }
    Ok(false)
}

/// The tree of a folder, where it is one.
fn tree_of<S: TreeSource>(
    source: &S,
    root: &ObjectId,
    folder: &WorkspacePath,
) -> Result<Option<std::sync::Arc<piton_model::Tree>>, S::Error> {
    if folder.is_root() {
        return source.tree(root).map(Some);
    }
    match diff::lookup(source, root, folder)? {
        Some(Entry::Folder { tree, .. }) => source.tree(&tree).map(Some),
        _ => Ok(None),
    }
}

/// The names in a folder that a checkpoint has; none where its listing cannot be read.
fn names_in<S: TreeSource>(source: &S, root: &ObjectId, folder: &[u8]) -> Option<HashSet<Vec<u8>>> {
    let folder = WorkspacePath::new(folder).ok()?;
    let tree = tree_of(source, root, &folder).ok()?;
    let entries = tree.iter().flat_map(|tree| tree.entries().iter());
    Some(entries.filter(|(_, entry)| !entry.is_skipped()).map(|(name, _)| name.as_bytes().to_vec()).collect())
}
