//! Who changed the files with rules, and what the user had in those that somebody else changed.

use super::{IGNORE_FILES, Witness, is_ignore_file, tree_of};
use crate::capture::CaptureError;
use crate::capture::sink::HashingSink;
use crate::workspace::History;
use piton_host::{Instead, Root, RuleSource, SourceKind, bounded, read_entry, rule_sources};
use piton_model::diff::{self, TreeSource};
use piton_model::ownership::{self, Moment, ObservedChange, Owner};
use piton_model::{Checkpoint, Entry, ObjectId, Operation, UnagreedRules, WorkspacePath};
use piton_store::{CheckpointRow, StoreError};
use std::convert::Infallible;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// By how many nanoseconds a file that changed after the last scan began may seem older than its checkpoint.
const SLACK: i64 = 2_000_000_000;

/// Largest rule file, in bytes, that is searched for rules.
const LARGEST_LOOKED_AT: u64 = 4 << 20;

impl History {
    /// Finds the files with rules to which the user has not agreed; and git's own files that somebody else changed since the last
    /// checkpoint, with who. Looks in the root, and in the folders on the way to some paths.
    pub(super) fn look_at_rules(
        &self,
        root: &Root,
        head: &CheckpointRow,
        asked: &[WorkspacePath],
        witness: Option<&Witness>,
        unagreed: &mut Vec<UnagreedRules>,
    ) -> Result<Vec<(String, Owner)>, CaptureError> {
        let recorded = head.checkpoint.created_at.0.saturating_mul(1_000_000);
        unagreed.clone_from(&head.checkpoint.unagreed);
        let mut by_gits_own = Vec::new();
        // Any path in the root will do.
        let at_root = WorkspacePath::new(IGNORE_FILES[0]).into_iter();
        let asked: Vec<_> = at_root.chain(asked.iter().cloned()).collect();
        for source in rule_sources(root, &self.rules(), &asked) {
            if !self.has_changed(root, &source, head)? {
                continue;
            }
            let known = unagreed.iter().position(|one| one.shown == source.shown);
            // A file that is in no checkpoint always seems changed; who did that is already known.
            if known.is_some() && source.changed_at <= recorded {
                continue;
            }
            let owner = self.owner_of_rule(&source, head, witness)?;
            if is_users(&owner) {
                known.map(|known| unagreed.remove(known));
                continue;
            }
            let file = match source.kind {
                SourceKind::File(file) | SourceKind::NoFile(file) => Some(file),
                SourceKind::Uncaptured => None,
                SourceKind::NoGit(_) | SourceKind::Gits => {
                    by_gits_own.push((source.shown, owner));
                    continue;
                }
            };
            match known {
                Some(known) => unagreed[known].owner = owner,
                // Git creates one with only comments in each new repository.
                None if file.is_none() && !says_something(root, &source.shown) => {}
                None => {
                    let users = file.as_ref().and_then(|file| blob_at(&self.store, &head.checkpoint, file));
                    unagreed.push(UnagreedRules { shown: source.shown, file, users, owner });
                }
            }
        }
        // A file that is as the user had it again no longer counts as changed by somebody else.
        unagreed.retain(|one| match &one.file {
            Some(file) => one.users != read_now(root, file).and_then(blob_of),
            None => says_something(root, &one.shown),
        });
        Ok(by_gits_own)
    }

    /// What the user had in files that somebody else changed.
    pub(super) fn users_rules(&self, root: &Root, unagreed: &[UnagreedRules]) -> Instead {
        let place = |one: &UnagreedRules| match &one.file {
            Some(file) => root.path().join(OsStr::from_bytes(file.as_bytes())),
            None => root.path().join(&one.shown),
        };
        // An unreadable file counts as ignoring nothing: more is captured then, and the user is asked.
        let content = |one: &UnagreedRules| one.users.as_ref().and_then(|blob| self.store.blob(blob).ok());
        Instead(unagreed.iter().map(|one| (place(one), content(one))).collect())
    }

    /// The files with rules to which the user has not agreed, after an operation: no word of the user's is in what it brings
    /// back, unless it was in what is brought back.
    pub(crate) fn unagreed_after<S: TreeSource<Error = StoreError>>(
        &self,
        trees: &S,
        operation: &Operation,
        before: &Checkpoint,
        followed: Option<&Checkpoint>,
        result: &ObjectId,
    ) -> Vec<UnagreedRules> {
        let mut unagreed = before.unagreed.clone();
        // What is damaged is told by whoever needs it.
        let changes = diff::changes(trees, Some(&before.root.tree), Some(result)).unwrap_or_default();
        for change in changes.into_iter().filter(|change| is_ignore_file(&change.path)) {
            let is_it = |one: &&UnagreedRules| one.file.as_ref() == Some(&change.path);
            let known = unagreed.iter().find(is_it).cloned();
            let now = change.after.and_then(blob_of);
            let users = known.map_or_else(|| change.before.and_then(blob_of), |known| known.users);
            unagreed.retain(|one| !is_it(&one));
            let from = followed.filter(|followed| blob_at(&self.store, followed, &change.path) == now);
            match from {
                _ if users == now => {}
                Some(from) => unagreed.extend(from.unagreed.iter().find(is_it).cloned()),
                None => {
                    let shown = String::from_utf8_lossy(change.path.as_bytes()).into_owned();
                    let owner = Owner::Operation { operation: operation.id.clone() };
                    unagreed.push(UnagreedRules { shown, file: Some(change.path), users, owner });
                }
            }
        }
        unagreed
    }

    /// Whether a rule file changed since a checkpoint.
    fn has_changed(&self, root: &Root, source: &RuleSource, head: &CheckpointRow) -> Result<bool, StoreError> {
        let is_younger = source.changed_at >= head.checkpoint.created_at.0.saturating_mul(1_000_000) - SLACK;
        let tree = &head.checkpoint.root.tree;
        let was = match &source.kind {
            SourceKind::Uncaptured | SourceKind::Gits => return Ok(is_younger),
            SourceKind::File(path) => diff::lookup(&self.store, tree, path).map(|was| match was {
                // For a file that appeared just before the checkpoint, times prove little; its content decides.
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
            SourceKind::Uncaptured | SourceKind::Gits => (&root, false),
        };
        self.owner_since(head, path, Some(source.changed_at), deleted, witness)
    }

    /// Who changed a file, which need not be captured, since a checkpoint.
    pub(crate) fn owner_since(
        &self,
        head: &CheckpointRow,
        path: &WorkspacePath,
        when: Option<i64>,
        deleted: bool,
        witness: Option<&Witness>,
    ) -> Result<Owner, StoreError> {
        let mut windows = self.windows(head.seq, None, witness.map_or(&Moment::Between, |witness| &witness.moment))?;
        if let Some(ending) = witness.and_then(|witness| witness.ending.as_ref()) {
            windows.retain(|window| window.step != ending.step);
            windows.push(ending.clone());
            windows.sort_by(|a, b| a.step.cmp(&b.step));
        }
        let moment = witness.map_or(&Moment::Between, |witness| &witness.moment);
        let owner = ownership::owner(ObservedChange { when, deleted, ..ObservedChange::of(path) }, &windows, moment);
        let has_missed = witness.is_some_and(|witness| witness.has_missed)
            || self.store.has_lost_events_since(head.seq)?
            || self.store.has_other_line_since(head.seq, self.record.line)?;
        Ok(if has_missed { ownership::beside_a_missed_tool(owner) } else { owner })
    }
}

/// The current content of a rule file; `None` if it cannot be read.
fn read_now(root: &Root, path: &WorkspacePath) -> Option<Entry> {
    let sink = HashingSink::default();
    let read = read_entry(root, path.as_bytes(), &sink).unwrap_or_else(|never: Infallible| match never {});
    read.ok().flatten()
}

/// Whether an ignore file that is never captured contains a rule, as far as it can be read.
fn says_something(root: &Root, shown: &str) -> bool {
    match bounded::read(&root.path().join(shown), LARGEST_LOOKED_AT) {
        Ok(None) => false,
        Ok(Some(bytes)) => bytes.split(|byte| *byte == b'\n').any(|line| !line.is_empty() && !line.starts_with(b"#")),
        Err(_) => true,
    }
}

/// Whether a change of the rules counts as the user's own decision.
pub(crate) fn is_users(owner: &Owner) -> bool {
    matches!(owner, Owner::You)
}

pub(super) fn blob_of(entry: Entry) -> Option<ObjectId> {
    match entry {
        Entry::File { blob, .. } => Some(blob),
        _ => None,
    }
}

/// The content of a file at a checkpoint; `None` if there is no such file, or if that is unknown.
pub(crate) fn blob_at<S: TreeSource>(source: &S, checkpoint: &Checkpoint, file: &WorkspacePath) -> Option<ObjectId> {
    diff::lookup(source, &checkpoint.root.tree, file).ok().flatten().and_then(blob_of)
}
