//! Reading what is stored: the list of checkpoints, one checkpoint, the status.

use std::collections::HashMap;

use piton_model::diff::{self, Counts, TreeSource};
use piton_model::ownership::Owner;
use piton_model::plan::{Layered, RootState};
use piton_model::session::{Gap, StepRef};
use piton_model::{Checkpoint, ObjectId, SkipReason, WorkspacePath};
use piton_store::StoreError;

use crate::capture::sink::Trees;
use crate::capture::sound::Readable;
use crate::capture::{CaptureError, taken_in};
use crate::history::diff::DiffError;
use crate::history::target::{IntoTarget, TargetError};
use crate::view::{CheckpointDetail, FolderState, Log, OwnedFile, Shown, SinceView, SkippedView, Status};
use crate::workspace::{History, Standing, Workspace};

/// Which checkpoints to list.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogOptions {
    /// At most this many; all if not given.
    pub limit: Option<u64>,
}

impl Workspace {
    /// The state of the workspace: its store, its newest checkpoint and what changed since.
    pub fn status(&self) -> Result<Status, DiffError> {
        let head = self.store.head(self.record.line)?;
        let standing = self.standing().map_err(|e| self.folder_error(e))?;
        let folder = match &standing {
            Standing::Same(_) => FolderState::Same,
            Standing::Other(_) => FolderState::Other,
            Standing::Missing => FolderState::Missing,
        };
        let since = self.since_turn()?;
        let mut since_changes = Vec::new();
        let (changes, taken_in, skipped, unread_rules, index, held) = match self.now(false) {
            Ok(now) => {
                let trees = Trees { fresh: &now.fresh, store: &self.store };
                let from = head.as_ref().map(|h| h.checkpoint.root);
                let changes = diff::root_changes(&trees, from.as_ref(), Some(&now.root))?;
                if let Some(since) = &since {
                    since_changes = match diff::root_changes(&trees, Some(&since.row.checkpoint.root), Some(&now.root))
                    {
                        // What is damaged is told by whoever compares with it.
                        Err(StoreError::Damaged(_) | StoreError::Missing(_)) => Vec::new(),
                        found => found?,
                    };
                }
                let taken_in = from.map_or(Ok(Vec::new()), |from| taken_in(&trees, &from.tree, &now.root.tree))?;
                let unread_rules = self.unread_rules(&now.folder, now.index.as_ref());
                let mut skipped = now.skipped;
                if let Some(head) = &head {
                    skipped.extend(self.over_budget_at(&head.checkpoint)?);
                    skipped.sort();
                    skipped.dedup_by(|a, b| a.0 == b.0);
                }
                let skipped = with_repositories(&trees, &now.root.tree, &skipped);
                (changes, taken_in, skipped, unread_rules, now.index.or_else(|| self.store.index()), now.held)
            }
            Err(CaptureError::Missing(_)) => Default::default(),
            Err(error) => return Err(error.into()),
        };
        let mut sessions = self.sessions()?.sessions;
        let gaps = match sessions.first() {
            Some(last) if last.gaps > 0 => self.store.gaps(Some(&last.id))?,
            _ => Vec::new(),
        };
        sessions.retain(|session| session.live);
        let unprotected = self.unprotected_worktrees(index.as_ref(), &sessions);
        let room = self.store.room()?;
        // An operation's capture does not predict the next event's: without room, it captures only what it touches.
        let captured = self.store.last_capture()?;
        let not_captured = self.store.last_gap()?.filter(|(seq, _)| *seq > captured);
        Ok(Status {
            id: self.record.id.clone(),
            path: self.path.clone(),
            folder,
            store: self.store.folder().to_owned(),
            size: self.store.size()?,
            budget: self.record.budget,
            checkpoints: self.store.checkpoint_count()?,
            last: head.as_ref().map(Into::into),
            changes: Counts::of(&changes),
            files: changes.iter().filter(|c| !c.implied).map(Into::into).collect(),
            since: since.map(|since| SinceView { changes: Counts::of(&since_changes), ..since.view }),
            since_files: since_changes.iter().filter(|c| !c.implied).map(Into::into).collect(),
            rewound: self.rewound()?,
            taken_in: taken_in.iter().map(Into::into).collect(),
            skipped,
            unread_rules: unread_rules.iter().map(Into::into).collect(),
            unprotected,
            pending: self.store.pending()?.iter().map(Into::into).collect(),
            sessions,
            gaps: gaps.iter().map(|(_, gap)| gap.into()).collect(),
            not_captured: not_captured.map(|(_, gap)| (&gap).into()),
            waiting: self.waiting_events(),
            unwritable: self.store.check_writable().err().map(|error| error.to_string()),
            room,
            history_lost: self.store.has_lost_history(),
            rules_waiting: self.waiting_of(&held, head.as_ref())?,
        })
    }
}

impl History {
    /// The checkpoints, newest first.
    pub fn log(&self, options: LogOptions) -> Result<Log, StoreError> {
        let rows = self.store.checkpoints(options.limit)?;
        Ok(Log { checkpoints: rows.iter().map(Into::into).collect(), total: self.store.checkpoint_count()? })
    }

    /// One checkpoint: what changed in it and what it left out.
    pub fn show(&self, target: impl IntoTarget) -> Result<Shown, TargetError> {
        let row = self.resolve(target)?;
        let parent = match &row.checkpoint.parent {
            Some(id) => self.store.checkpoint(id)?.map(|p| p.checkpoint.root),
            None => None,
        };
        let roots: Vec<RootState> = [row.checkpoint.root].into_iter().chain(parent).collect();
        let look = |readable: &Readable| {
            let trees = Layered { over: &readable.new, under: &self.store };
            let changes = diff::root_changes(&trees, readable.roots.get(1), readable.roots.first())?;
            let mut skipped = diff::skipped(&trees, &readable.roots[0].tree)?;
            skipped.retain(|(_, reason)| *reason != SkipReason::Damaged);
            Ok((changes, with_repositories(&trees, &readable.roots[0].tree, &skipped)))
        };
        let mut readable = Readable::whole(&roots);
        let (changes, skipped) = match look(&readable) {
            Err(StoreError::Damaged(_) | StoreError::Missing(_)) => {
                readable = Readable::find(&self.store, &roots)?;
                look(&readable)?
            }
            found => found?,
        };
        let mut owners: HashMap<WorkspacePath, Owner> =
            self.store.changes_of(row.seq)?.into_iter().map(|change| (change.path, change.owner)).collect();
        let gaps = match &row.checkpoint.place {
            Some(place) => self.store.gaps(Some(&place.session))?,
            None => Vec::new(),
        };
        let is_near = |gap: &Gap| row.checkpoint.place.as_ref().is_some_and(|place| place.turn == gap.place.turn);
        let mut checkpoint = (&row).into();
        self.measure([&mut checkpoint])?;
        let place = row.checkpoint.place.as_ref();
        let step = place
            .and_then(|place| Some(StepRef { session: place.session.clone(), turn: place.turn, step: place.step? }));
        let step = step.map_or(Ok(None), |step| self.store.step(&step))?;
        Ok(Shown {
            git: self.git_at(&row)?,
            checkpoint: CheckpointDetail {
                checkpoint,
                skipped,
                unsettled: row.checkpoint.unsettled.iter().map(Into::into).collect(),
            },
            files: changes
                .iter()
                .filter(|c| !c.implied)
                .map(|c| OwnedFile { change: c.into(), owner: owners.remove(&c.path) })
                .collect(),
            call: step.and_then(|row| row.step.call),
            gaps: gaps.iter().map(|(_, gap)| gap).filter(|gap| is_near(gap)).map(Into::into).collect(),
            unreadable: readable.lost_folders().iter().map(Into::into).collect(),
        })
    }

    /// What a checkpoint skipped because the budget was full: its content is unknown.
    pub(crate) fn over_budget_at(&self, of: &Checkpoint) -> Result<Vec<(WorkspacePath, SkipReason)>, StoreError> {
        if of.skipped == 0 {
            return Ok(Vec::new());
        }
        match diff::skipped(&self.store, &of.root.tree) {
            // Damage is reported where the data is needed.
            Err(StoreError::Damaged(_) | StoreError::Missing(_)) => Ok(Vec::new()),
            found => Ok(found?.into_iter().filter(|(_, reason)| *reason == SkipReason::Budget).collect()),
        }
    }
}

/// What a tree skipped, including the `.git` of nested repositories, but not the workspace's own, which everybody expects.
fn with_repositories<S: TreeSource>(
    source: &S,
    tree: &ObjectId,
    skipped: &[(WorkspacePath, SkipReason)],
) -> Vec<SkippedView> {
    // Damage is reported where the data is needed.
    let inside = diff::repositories(source, &WorkspacePath::root(), tree).unwrap_or_default();
    let inside = inside.iter().filter(|folder| !folder.is_root()).map(SkippedView::git_of);
    skipped.iter().map(Into::into).chain(inside).collect()
}
