//! The difference between two moments, with contents.

use std::collections::HashMap;

use piton_host::{Index, Root};
use piton_model::diff::{self, Counts};
use piton_model::plan::{Layered, RootState};
use piton_model::text::{self, Side, TextDiff};
use piton_model::{Entry, HeldPath, ObjectId, SkipReason, Target, WorkspacePath};
use piton_store::{CheckpointRow, StoreError};

use crate::capture::CaptureError;
use crate::capture::sink::{FreshTrees, HashingSink, Trees};
use crate::capture::sound::Readable;
use crate::history::target::TargetError;
use crate::view::{Diff, FileDiff};
use crate::workspace::{History, Standing};

/// What to compare.
#[derive(Clone, Debug, Default)]
pub struct DiffOptions {
    /// The earlier side; when not given, the beginning of the last turn, or a rewind after it, else the newest
    /// checkpoint.
    pub from: Option<Target>,
    /// The later side; the current state if not given.
    pub to: Option<Target>,
    /// Only these paths and everything beneath them.
    pub paths: Vec<WorkspacePath>,
    /// Lines of context around each difference.
    pub context: u32,
    /// Only find out which paths differ, without contents.
    pub names_only: bool,
}

/// Why two moments cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// One of the sides.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The current state could not be read.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// One side of a comparison.
struct SideOf {
    row: Option<CheckpointRow>,
    root: RootState,
}

impl From<CheckpointRow> for SideOf {
    fn from(row: CheckpointRow) -> Self {
        Self { root: row.checkpoint.root, row: Some(row) }
    }
}

/// Paths that cannot be compared, and why they were not captured.
type NotCompared = Vec<(WorkspacePath, SkipReason)>;

/// The bytes before and after.
type BothSides = (Vec<u8>, Vec<u8>);

/// The current state of the workspace, not stored.
pub(crate) struct Now {
    pub root: RootState,
    pub fresh: FreshTrees,
    pub contents: HashMap<ObjectId, Vec<u8>>,
    pub skipped: Vec<(WorkspacePath, piton_model::SkipReason)>,
    pub folder: Root,
    /// `None` if it is the index in the store.
    pub index: Option<Index>,
    pub held: Vec<HeldPath>,
}

impl History {
    /// Compares two moments.
    pub fn diff(&self, options: &DiffOptions) -> Result<Diff, DiffError> {
        let mut now = None;
        let mut since = None;
        let from = match &options.from {
            Some(target) => self.side(target, &mut now)?,
            None => {
                let begun = self.since_turn()?;
                since = begun.as_ref().map(|begun| begun.view.clone());
                let row = match begun {
                    Some(begun) => begun.row,
                    None => self.store.head(self.record.line)?.ok_or(TargetError::Empty)?,
                };
                SideOf::from(row)
            }
        };
        let to = self.side(options.to.as_ref().unwrap_or(&Target::NOW), &mut now)?;
        let mut diff = self.diff_of(from, to, now, options)?;
        if let Some(since) = &mut since {
            since.changes = diff.changes;
        }
        diff.since = since;
        Ok(diff)
    }

    /// Compares two checkpoints that are at hand.
    pub(crate) fn diff_of_rows(&self, from: CheckpointRow, to: CheckpointRow, context: u32) -> Result<Diff, DiffError> {
        self.diff_of(from.into(), to.into(), None, &DiffOptions { context, ..DiffOptions::default() })
    }

    /// Compares two sides; what is only in the workspace is in `now`.
    fn diff_of(&self, from: SideOf, to: SideOf, now: Option<Now>, options: &DiffOptions) -> Result<Diff, DiffError> {
        let (fresh, contents) = now.map(|n| (n.fresh, n.contents)).unwrap_or_default();
        let trees = Trees { fresh: &fresh, store: &self.store };
        let roots = [from.root, to.root];
        let compared = |readable: &Readable| compare_roots(&trees, readable, &options.paths);
        let mut readable = Readable::whole(&roots);
        let (changes, mut not_compared) = match compared(&readable) {
            Err(error) if error.is_damage() => {
                readable = Readable::find(&trees, &roots)?;
                compared(&readable)?
            }
            compared => compared?,
        };
        let mut files = Vec::with_capacity(changes.len());
        for change in &changes {
            let mut file = empty_diff(change);
            if !options.names_only {
                let bytes = |blob: &ObjectId| match contents.get(blob) {
                    Some(bytes) => Ok(bytes.clone()),
                    None => self.store.blob(blob),
                };
                match both_sides(change, bytes) {
                    Ok(Some((old, new))) => compare(&old, &new, options.context, &mut file),
                    Ok(None) => {}
                    Err(_) => file.unavailable = true,
                }
            }
            files.push(file);
        }
        for row in [&from.row, &to.row].into_iter().flatten() {
            not_compared.extend(self.over_budget_at(&row.checkpoint)?);
        }
        not_compared.retain(|(path, _)| path.is_in_scope(&options.paths));
        not_compared.sort();
        not_compared.dedup_by(|a, b| a.0 == b.0);
        let is_asked_for = |path: &WorkspacePath| {
            path.is_in_scope(&options.paths) || options.paths.iter().any(|asked| asked.is_within(path))
        };
        let unreadable = readable.differing_folders();
        let counts = Counts::of(&changes);
        Ok(Diff {
            from: from.row.as_ref().map(Into::into),
            to: to.row.as_ref().map(Into::into),
            changes: counts,
            files,
            since: None,
            turn: None,
            unsure: Vec::new(),
            not_compared: not_compared.iter().map(Into::into).collect(),
            unreadable: unreadable.iter().filter(|path| is_asked_for(path)).map(Into::into).collect(),
        })
    }

    /// Reads the workspace as it is now, without storing anything.
    pub(crate) fn now(&self, with_contents: bool) -> Result<Now, CaptureError> {
        let root = match self.standing().map_err(|e| self.folder_error(e))? {
            Standing::Same(root) | Standing::Other(root) => root,
            Standing::Missing => return Err(CaptureError::Missing(self.path.clone())),
        };
        let sink = if with_contents { HashingSink::with_contents() } else { HashingSink::default() };
        let (scan, held) = self.look_held(&root, &[], &sink)?;
        let (fresh, contents) = sink.finish();
        Ok(Now { root: scan.root, fresh, contents, skipped: scan.skipped, folder: root, index: scan.index, held })
    }

    fn side(&self, target: &Target, now: &mut Option<Now>) -> Result<SideOf, DiffError> {
        if *target == Target::NOW {
            let found = match now.take() {
                Some(found) => found,
                None => self.now(true)?,
            };
            let root = found.root;
            *now = Some(found);
            return Ok(SideOf { row: None, root });
        }
        Ok(self.checkpoint_at(target)?.into())
    }
}

impl DiffError {
    fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Store(StoreError::Damaged(_) | StoreError::Missing(_))
                | Self::Target(TargetError::Store(StoreError::Damaged(_) | StoreError::Missing(_)))
        )
    }
}

/// The changes at some paths, and the paths that cannot be compared because they were not captured.
fn compare_roots(
    trees: &Trees<'_>,
    readable: &Readable,
    paths: &[WorkspacePath],
) -> Result<(Vec<diff::Change>, NotCompared), DiffError> {
    let [from, to] = [readable.roots[0], readable.roots[1]];
    let trees = Layered { over: &readable.new, under: trees };
    History::check_paths(&trees, [&from.tree, &to.tree], paths)?;
    let mut changes = diff::root_changes(&trees, Some(&from), Some(&to))?;
    changes.retain(|c| !c.implied && c.path.is_in_scope(paths));
    let left_out = diff::left_out(&trees, &from.tree, &to.tree)?;
    let mut not_compared: Vec<_> = left_out.into_iter().map(|one| (one.path, one.reason)).collect();
    // Paths that one side could not capture and that are absent on the other.
    for (from, to) in [(&from, &to), (&to, &from)] {
        let gone = diff::gone_unknown(&trees, &from.tree, &to.tree)?;
        not_compared.extend(gone.into_iter().filter(|(_, reason)| reason.is_missed()));
    }
    // A requested path that both sides skipped is not equal either: it is unknown.
    for path in paths.iter().filter(|path| !path.is_root()) {
        if let Some(Entry::Skipped { reason }) = diff::lookup(&trees, &to.tree, path)?
            && not_compared.iter().all(|(other, _)| !path.is_within(other))
        {
            not_compared.push((path.clone(), reason));
        }
    }
    // It is reported separately.
    not_compared.retain(|(_, reason)| *reason != SkipReason::Damaged);
    Ok((changes, not_compared))
}

pub(crate) fn empty_diff(change: &diff::Change) -> FileDiff {
    FileDiff { change: change.into(), binary: false, unavailable: false, added: 0, removed: 0, hunks: Vec::new() }
}

/// Both contents of a change; `None` if neither side has one to compare.
pub(crate) fn both_sides(
    change: &diff::Change,
    content: impl Fn(&ObjectId) -> Result<Vec<u8>, StoreError>,
) -> Result<Option<BothSides>, StoreError> {
    let bytes = |entry: &Option<Entry>| match entry {
        // Too large to compare: a NUL byte makes it binary.
        Some(Entry::File { size, .. }) if *size > 16 << 20 => Ok(Some(vec![0])),
        Some(Entry::File { blob, .. }) => content(blob).map(Some),
        Some(Entry::Symlink { target }) => Ok(Some(target.clone())),
        _ => Ok(None),
    };
    if same_content(&change.before, &change.after) {
        return Ok(None);
    }
    match (bytes(&change.before)?, bytes(&change.after)?) {
        (None, None) => Ok(None),
        (old, new) => Ok(Some((old.unwrap_or_default(), new.unwrap_or_default()))),
    }
}

/// Whether only the permission bits differ.
fn same_content(before: &Option<Entry>, after: &Option<Entry>) -> bool {
    matches!((before, after), (Some(Entry::File { blob: a, .. }), Some(Entry::File { blob: b, .. })) if a == b)
}

pub(crate) fn compare(old: &[u8], new: &[u8], context: u32, file: &mut FileDiff) {
    match text::diff(old, new, context) {
        TextDiff::Binary => file.binary = true,
        TextDiff::Text { hunks } => {
            let count = |side| hunks.iter().flat_map(|h| &h.lines).filter(|l| l.side == side).count() as u64;
            (file.added, file.removed) = (count(Side::Added), count(Side::Removed));
            file.hunks = hunks;
        }
    }
}
