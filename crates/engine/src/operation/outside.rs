//! Files outside the workspace that a tool named: what taking a step back means for them.
//!
//! They are captured before and after the tool, and touched only where the user asks for it by a word of its own. Their
//! paths are taken from the file system's root and through no symlink, like the workspace's own from its root; what lies
//! in a `.git` has no such path, so it is never touched.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use piton_host::apply::Applier;
use piton_host::{Root, canonical, outside};
use piton_model::diff::lookup;
use piton_model::edit::{NewTrees, keep};
use piton_model::inverse::{self, Conflict, Contents, Inverse, Link, Why};
use piton_model::outside::{ChangedBy, Transition, in_effect};
use piton_model::plan::{Layered, RootState};
use piton_model::session::{Outside, OutsideFile};
use piton_model::{
    ChangeKind, Entry, EntryName, Evidence, ObjectId, Operation, OperationKind, Owner, SessionId, SkipReason, Step,
    Tree, WorkspacePath,
};
use piton_store::{Reader, StepRow, StoreError};

use crate::history::lineage::Lineage;
use crate::observe::LARGEST_OUTSIDE;
use crate::operation::error::OperationError;
use crate::operation::request::Settle;
use crate::operation::rewind::Carry;
use crate::view::{ChangedFile, OutsideAct, OutsideView, PathView, shown};
use crate::workspace::History;

/// What steps did to files elsewhere, newest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutsideChanges {
    pub links: Vec<(WorkspacePath, Link)>,
    /// Files that are left alone, and why.
    pub unknown: Vec<(String, &'static str)>,
}

impl OutsideChanges {
    /// Of some steps, given oldest first.
    pub(crate) fn of(steps: &[StepRow]) -> Self {
        let mut all = Self::default();
        for row in steps.iter().rev() {
            for before in &row.step.outside {
                let Some(path) = place(&before.path) else {
                    all.unknown.push((before.path.clone(), "piton never writes in a .git"));
                    continue;
                };
                let after = row.outside_after.iter().find(|after| after.path == before.path);
                match after {
                    Some(after) if before.skipped.is_none() && after.skipped.is_none() => {
                        let link = Link { after: entry(after), before: entry(before) };
                        if link.after != link.before {
                            all.links.push((path, link));
                        }
                    }
                    // No word of how the tool ended, or something that cannot be kept.
                    _ => all.unknown.push((before.path.clone(), "what was there is not known")),
                }
            }
        }
        all
    }

    /// Whether there is nothing to tell of.
    pub(crate) fn is_empty(&self) -> bool {
        self.links.is_empty() && self.unknown.is_empty()
    }

    /// Whether something of it stands there now, as the last of these steps left it.
    pub(crate) fn stand(&self) -> bool {
        let mut newest: HashMap<&WorkspacePath, &Link> = HashMap::new();
        for (path, link) in &self.links {
            newest.entry(path).or_insert(link);
        }
        newest.into_iter().any(|(path, link)| {
            let mut now = Now::default();
            now.read(path, &whole(path));
            now.entries.get(path) == link.after.as_ref()
        })
    }

    /// Of an operation that is taken back.
    pub(crate) fn of_operation(operation: &Operation) -> Self {
        let link = |step: &Step| (step.path.clone(), Link { after: step.after.clone(), before: step.before.clone() });
        Self { links: operation.outside.iter().map(link).collect(), unknown: Vec::new() }
    }
}

/// What was done to files elsewhere since a moment, by whose it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutsideSince {
    /// What goes back.
    pub taken: OutsideChanges,
    /// Of that, what is not the conversation's own.
    pub others: Vec<(WorkspacePath, ChangedFile)>,
    /// What other sessions did and keep.
    pub carried: Vec<ChangedFile>,
}

/// Whose changes of files elsewhere go back.
pub(crate) struct Taking<'a> {
    /// The conversation that goes back; none where everything is the user's own.
    pub conversation: Option<&'a Lineage>,
    /// Whose work stays.
    pub carry: Carry,
    /// What cannot be told apart goes back too.
    pub unsure: bool,
}

impl OutsideSince {
    /// What steps and operations did after a place in the order; both are given oldest first, operations with the place
    /// that a rewind went back to.
    pub(crate) fn of(
        steps: &[StepRow],
        operations: &[(u64, Operation, Option<u64>)],
        since: u64,
        taking: &Taking<'_>,
    ) -> Self {
        let mut all = Self::default();
        let is_own = |row: &StepRow| taking.conversation.is_none_or(|one| one.holds_step(&row.step.at));
        let is_taken = |row: &StepRow| is_own(row) || !taking.carry.has_others();
        let mut files: BTreeMap<WorkspacePath, Vec<(Transition<'_>, Option<&StepRow>)>> = BTreeMap::new();
        for row in steps {
            let OutsideChanges { links, unknown } = OutsideChanges::of(std::slice::from_ref(row));
            if is_taken(row) {
                all.taken.unknown.extend(unknown);
            }
            for (path, link) in links {
                let by = ChangedBy::Step(&row.step.at.session);
                files.entry(path).or_default().push((Transition { seq: row.seq, link, by }, Some(row)));
            }
        }
        for (seq, operation, to) in operations {
            let id = &operation.id;
            let by = match (&operation.kind, to) {
                (OperationKind::Rewind { kept, .. }, Some(to)) => {
                    ChangedBy::Rewind { id, to: *to, carries: kept.is_some() }
                }
                (OperationKind::Redo { of, .. }, _) => ChangedBy::Redo { id, of },
                _ => ChangedBy::Undo(id),
            };
            for step in &operation.outside {
                let link = Link { after: step.after.clone(), before: step.before.clone() };
                files.entry(step.path.clone()).or_default().push((Transition { seq: *seq, link, by }, None));
            }
        }
        for (path, mut done) in files {
            done.sort_by_key(|(transition, _)| transition.seq);
            let (transitions, rows): (Vec<Transition<'_>>, Vec<Option<&StepRow>>) = done.into_iter().unzip();
            let standing = in_effect(&transitions, since);
            let by_step = || standing.iter().filter_map(|number| Some((&transitions[*number].link, rows[*number]?)));
            let overlaps = |own: &StepRow| by_step().any(|(_, other)| !is_taken(other) && is_at_once(own, other));
            if !taking.unsure && by_step().any(|(_, row)| is_taken(row) && overlaps(row)) {
                all.taken.unknown.push((shown(&path), "another session wrote to it at the same time"));
                continue;
            }
            let is_one = |row: &StepRow| by_step().any(|(_, other)| is_taken(other) && is_at_once(row, other));
            for number in standing.iter().rev() {
                match rows[*number] {
                    Some(row) if !is_taken(row) && !is_one(row) => {}
                    _ => all.taken.links.push((path.clone(), transitions[*number].link.clone())),
                }
            }
            // Of each session its newest change.
            let mut named: Vec<&SessionId> = Vec::new();
            let others: Vec<_> = by_step().filter(|(_, row)| !is_own(row)).collect();
            for (link, row) in others.into_iter().rev() {
                if named.contains(&&row.step.at.session) {
                    continue;
                }
                named.push(&row.step.at.session);
                let kind = match (&link.before, &link.after) {
                    (None, _) => ChangeKind::Created,
                    (_, None) => ChangeKind::Deleted,
                    _ => ChangeKind::Modified,
                };
                let owner = Owner::Step { step: row.step.at.clone(), evidence: Evidence::Named };
                let file = ChangedFile { path: PathView::outside(&path), kind, owner, doubt: None };
                match is_taken(row) || is_one(row) {
                    true => all.others.push((path.clone(), file)),
                    false => all.carried.push(file),
                }
            }
        }
        all
    }
}

/// Whether two steps ran at the same time, so that what each found and left may be the other's.
fn is_at_once(one: &StepRow, other: &StepRow) -> bool {
    let is_over_by = |one: &StepRow, other: &StepRow| one.closed.is_some_and(|end| end <= other.step.opened);
    one.seq != other.seq && !is_over_by(one, other) && !is_over_by(other, one)
}

/// What taking those changes back comes to.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutsideDraft {
    pub steps: Vec<Step>,
    /// What is there now, which a redo needs, and what was merged.
    pub blobs: Vec<Vec<u8>>,
    pub conflicts: Vec<Conflict>,
    pub files: Vec<OutsideView>,
}

impl OutsideDraft {
    /// Takes out what the system did not let an earlier try change: it stays as it is, and is told.
    pub(crate) fn leave_refused(&mut self, refused: &[WorkspacePath]) {
        self.steps.retain(|step| !refused.contains(&step.path));
        let refused: Vec<String> = refused.iter().map(shown).collect();
        for file in self.files.iter_mut().filter(|file| refused.contains(&file.path)) {
            file.act = OutsideAct::Unknown;
            file.why = Some(SkipReason::Refused.describe().to_owned());
        }
    }
}

impl History {
    /// Drafts what taking changes of files elsewhere back leaves, given what is there now.
    pub(crate) fn draft_outside(
        &self,
        changes: &OutsideChanges,
        settle: &Settle,
    ) -> Result<OutsideDraft, OperationError> {
        if changes.is_empty() {
            return Ok(OutsideDraft::default());
        }
        let mut inverse = Inverse::default();
        for (path, link) in &changes.links {
            inverse.add(path.clone(), link.clone());
        }
        let mut now = Now::default();
        let (mut conflicts, mut elsewhere) = (Vec::new(), Vec::new());
        for path in inverse.paths() {
            let there = whole(path);
            // A link that took a folder's place leads elsewhere, and is never followed.
            let folder = there.parent().map(|folder| (folder, canonical(folder)));
            let why = match folder {
                Some((folder, Ok(found))) if found == folder => None,
                Some((_, Ok(_))) => Some(Why::Replaced),
                _ => Some(Why::Deleted),
            };
            if let Some(why) = why {
                conflicts.push(Conflict::open(path.clone(), why));
                continue;
            }
            // Another workspace has a timeline of its own, and its files are put back there.
            if self.home.around(&there).is_some_and(|known| known.id != self.record.id) {
                elsewhere.push((path.clone(), "it is in another workspace, which has a timeline of its own"));
                continue;
            }
            if settle.partial && self.is_damaged(changes, path) {
                elsewhere.push((path.clone(), "piton's copy of what was there is damaged"));
                continue;
            }
            now.read(path, &there);
        }
        for path in conflicts.iter().map(|conflict| &conflict.path).chain(elsewhere.iter().map(|(path, _)| path)) {
            inverse.remove(path);
        }
        let mut trees = NewTrees::new();
        let root = RootState { tree: now.tree(&mut trees), mode: 0o755 };
        let source = Layered { over: &trees, under: &self.store };
        let contents = NowAndThen { now: &now.contents, store: &self.store };
        let drafted = inverse::draft(&source, &contents, root, &inverse, settle.conflicts)?;
        conflicts.extend(drafted.conflicts);
        let result = Layered { over: &drafted.new_trees, under: &source };
        let mut draft = OutsideDraft::default();
        for path in inverse.paths() {
            let (before, after) = (now.entries.get(path).cloned(), lookup(&result, &drafted.root.tree, path)?);
            if before == after || before.as_ref().is_some_and(Entry::is_skipped) {
                continue;
            }
            let act = match (&before, &after) {
                _ if drafted.merged.contains(path) => OutsideAct::Merge,
                (None, _) => OutsideAct::Recreate,
                (_, None) => OutsideAct::Delete,
                _ => OutsideAct::Restore,
            };
            draft.files.push(OutsideView { path: shown(path), act, why: None });
            draft.steps.push(Step { path: path.clone(), before, after });
        }
        let open = conflicts.iter().filter(|conflict| !conflict.decided);
        draft.files.extend(open.map(|conflict| OutsideView {
            path: shown(&conflict.path),
            act: OutsideAct::Conflict,
            why: Some(conflict.why.describe().to_owned()),
        }));
        let unknown = drafted.kept.iter().map(|(path, reason)| (shown(path), reason.describe()));
        let unknown = unknown.chain(elsewhere.iter().map(|(path, why)| (shown(path), *why)));
        let unknown = unknown.chain(changes.unknown.iter().map(|(path, why)| (path.clone(), *why)));
        draft.files.extend(unknown.map(|(path, why)| OutsideView {
            path,
            act: OutsideAct::Unknown,
            why: Some(why.to_owned()),
        }));
        draft.conflicts = conflicts;
        draft.blobs = now.contents.into_values().chain(drafted.new_blobs.into_values()).collect();
        Ok(draft)
    }

    /// Whether a copy that taking changes of a file back may need cannot be read.
    fn is_damaged(&self, changes: &OutsideChanges, path: &WorkspacePath) -> bool {
        let links = changes.links.iter().filter(|(of, _)| of == path).map(|(_, link)| link);
        let mut blobs = links.flat_map(|link| [&link.before, &link.after]).filter_map(|entry| match entry {
            Some(Entry::File { blob, .. }) => Some(blob),
            _ => None,
        });
        blobs.any(|blob| matches!(self.store.blob(blob), Err(StoreError::Damaged(_) | StoreError::Missing(_))))
    }

    /// Whether what a draft was made from is still there.
    pub(crate) fn outside_still_holds(&self, draft: &OutsideDraft) -> Result<(), OperationError> {
        for step in &draft.steps {
            let mut now = Now::default();
            now.read(&step.path, &whole(&step.path));
            if now.entries.remove(&step.path) != step.before {
                return Err(OperationError::StaleOutside { path: whole(&step.path) });
            }
        }
        Ok(())
    }
}

/// The way to files outside the workspace, for an operation that has any.
pub(crate) struct Outer<'a> {
    root: Root,
    operation: &'a Operation,
    steps: Vec<Step>,
}

impl<'a> Outer<'a> {
    pub(crate) fn of(operation: &'a Operation) -> io::Result<Option<Self>> {
        let steps: Vec<Step> = operation.elsewhere().cloned().collect();
        if steps.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self { root: Root::open(Path::new("/"))?, operation, steps }))
    }

    pub(crate) fn applier(&self) -> Applier<'_> {
        Applier { root: &self.root, operation: &self.operation.id, steps: &self.steps, folders: &[] }
    }
}

/// What is there now.
#[derive(Default)]
struct Now {
    entries: BTreeMap<WorkspacePath, Entry>,
    contents: HashMap<ObjectId, Vec<u8>>,
}

impl Now {
    fn read(&mut self, path: &WorkspacePath, there: &Path) {
        let entry = match outside::read(there, LARGEST_OUTSIDE) {
            Ok(None) => return,
            Ok(Some(plain)) => {
                let blob = ObjectId::of_blob(&plain.bytes);
                let size = plain.bytes.len() as u64;
                self.contents.insert(blob, plain.bytes);
                Entry::File { mode: plain.mode, size, blob }
            }
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                Entry::Skipped { reason: SkipReason::TooLarge }
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Entry::Skipped { reason: SkipReason::Special },
            Err(_) => Entry::Skipped { reason: SkipReason::Unreadable },
        };
        self.entries.insert(path.clone(), entry);
    }

    /// A tree that holds only these files.
    fn tree(&self, trees: &mut NewTrees) -> ObjectId {
        let items: Vec<Named<'_>> = self.entries.iter().map(|(path, entry)| (path.names().collect(), entry)).collect();
        folder(&items, 0, trees)
    }
}

/// An entry with its path's names.
type Named<'a> = (Vec<&'a [u8]>, &'a Entry);

fn folder(items: &[Named<'_>], depth: usize, trees: &mut NewTrees) -> ObjectId {
    let mut by_name: BTreeMap<&[u8], Vec<Named<'_>>> = BTreeMap::new();
    for (names, entry) in items {
        if let Some(name) = names.get(depth) {
            by_name.entry(name).or_default().push((names.clone(), entry));
        }
    }
    let mut tree = Tree::default();
    for (name, items) in by_name {
        let Ok(entry_name) = EntryName::new(name) else { continue };
        let entry = match &items[..] {
            [(names, entry)] if names.len() == depth + 1 => (*entry).clone(),
            _ => Entry::Folder { mode: 0o755, tree: folder(&items, depth + 1, trees), holds_skipped: true },
        };
        tree.set(entry_name, Some(entry));
    }
    keep(Arc::new(tree), trees)
}

struct NowAndThen<'a> {
    now: &'a HashMap<ObjectId, Vec<u8>>,
    store: &'a Reader,
}

impl Contents for NowAndThen<'_> {
    type Error = StoreError;

    fn content(&self, _: &WorkspacePath, blob: &ObjectId) -> Result<Vec<u8>, StoreError> {
        self.now.get(blob).map_or_else(|| self.store.blob(blob), |bytes| Ok(bytes.clone()))
    }
}

/// A path from the file system's root; none where piton never writes.
pub(crate) fn place(path: &str) -> Option<WorkspacePath> {
    WorkspacePath::new(path.strip_prefix('/')?.as_bytes()).ok().filter(|path| !path.is_root())
}

pub(crate) fn whole(path: &WorkspacePath) -> PathBuf {
    Path::new("/").join(path.as_path())
}

fn entry(file: &Outside) -> Option<Entry> {
    file.file.as_ref().map(|OutsideFile { blob, size, mode }| Entry::File { mode: *mode, size: *size, blob: *blob })
}
