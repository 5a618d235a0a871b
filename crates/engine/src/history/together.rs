//! The net effect of several changes of the same paths.

use std::collections::BTreeMap;

use piton_model::WorkspacePath;
use piton_model::diff::{ChangeKind, Counts};
use piton_model::ownership::{Doubt, Owner};
use piton_store::ChangeRow;

use crate::view::{ChangedFile, DoubtView};

/// A changed path as a view value.
pub(crate) fn file(row: &ChangeRow) -> ChangedFile {
    ChangedFile {
        path: (&row.path).into(),
        kind: row.kind,
        owner: row.owner.clone(),
        doubt: row.doubt.map(DoubtView::from),
    }
}

/// The net effect of two changes of a path, the first and the last one.
pub(crate) fn net(first: ChangeKind, last: ChangeKind) -> Option<ChangeKind> {
    match (first, last) {
        // Created and deleted again: there is no net change.
        (ChangeKind::Created, ChangeKind::Deleted) => None,
        (ChangeKind::Created, _) => Some(ChangeKind::Created),
        (ChangeKind::Deleted, ChangeKind::Created) => Some(ChangeKind::Modified),
        (_, last) => Some(last),
    }
}

pub(crate) fn counts(kinds: impl Iterator<Item = ChangeKind>) -> Counts {
    let mut counts = Counts::default();
    for kind in kinds {
        match kind {
            ChangeKind::Created => counts.created += 1,
            ChangeKind::Modified => counts.modified += 1,
            ChangeKind::Deleted => counts.deleted += 1,
        }
    }
    counts
}

/// The net changes, one for each path.
#[derive(Default)]
pub(crate) struct Together(BTreeMap<WorkspacePath, (ChangeKind, ChangeKind, Owner, Option<Doubt>)>);

impl Together {
    pub(crate) fn add(&mut self, row: &ChangeRow) {
        self.note(&row.path, row.kind, &row.owner, row.doubt);
    }

    pub(crate) fn note(&mut self, path: &WorkspacePath, kind: ChangeKind, owner: &Owner, doubt: Option<Doubt>) {
        self.0
            .entry(path.clone())
            .and_modify(|(_, last, by, why)| (*last, *by, *why) = (kind, owner.clone(), doubt))
            .or_insert((kind, kind, owner.clone(), doubt));
    }

    pub(crate) fn files(&self) -> Vec<ChangedFile> {
        let file =
            |(path, (first, last, owner, doubt)): (&WorkspacePath, &(ChangeKind, ChangeKind, Owner, Option<Doubt>))| {
                Some(ChangedFile {
                    path: path.into(),
                    kind: net(*first, *last)?,
                    owner: owner.clone(),
                    doubt: doubt.map(DoubtView::from),
                })
            };
        self.0.iter().filter_map(file).collect()
    }

    pub(crate) fn counts(&self) -> Counts {
        counts(self.0.values().filter_map(|(first, last, ..)| net(*first, *last)))
    }
}
