//! The stored versions of a file: which came from which, and who made each.
//!
//! A checkpoint's file comes from its parent's. The result of an operation has lines from elsewhere as well: what a
//! rewind brings back is of its target, what a redo brings back is of the state before the operation that it takes back,
//! what an undo brings back is of the state before each change that it takes back.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use piton_model::blame::{Ancestry, EarlierVersion};
use piton_model::diff::{self, TreeSource};
use piton_model::ownership::{self, Candidate, Moment, ObservedChange, Owner, Window};
use piton_model::{
    Cause, Checkpoint, CheckpointId, Entry, ObjectId, Operation, OperationKind, StepRef, Tree, WorkspacePath,
};
use piton_store::{ChainLink, CheckpointRow, StoreError};

use super::LARGEST;
use crate::capture::sink::{FreshTrees, Trees};
use crate::workspace::History;
use crate::workspace::near::window_of;

/// The number of the uncaptured current state: later than all checkpoints.
pub(super) const NOW: u64 = u64::MAX;

/// A file at a checkpoint. The number is the first field, so that later versions compare greater.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Version {
    /// The number of the checkpoint's record.
    pub seq: u64,
    /// Its path then.
    pub path: WorkspacePath,
    pub blob: ObjectId,
}

/// The author of a version.
pub(super) enum Who {
    /// It existed before piton's first checkpoint.
    BeforePiton,
    /// Somebody.
    Owner(Owner),
}

/// What is at a path.
enum Stands {
    File(ObjectId),
    /// Not captured, or too large to compare.
    Unknown,
    /// Nothing with lines.
    Nothing,
}

/// The history of a workspace's files, made of its checkpoints.
pub(super) struct Past<'w> {
    workspace: &'w History,
    /// Every checkpoint, in order.
    links: Vec<ChainLink>,
    head: Option<u64>,
    /// The file's path at the newest checkpoint, if it was moved since.
    pub moved_since: Option<WorkspacePath>,
    /// A cache of trees: consecutive checkpoints share nearly all of them.
    trees: FreshTrees,
    /// Contents that were read and will be requested next.
    contents: HashMap<ObjectId, Vec<u8>>,
    /// Versions that follow an unknown state, so that their author is unknown.
    doubtful: HashSet<Version>,
}

impl TreeSource for Past<'_> {
    type Error = StoreError;

    fn tree(&self, id: &ObjectId) -> Result<Arc<Tree>, StoreError> {
        Trees { fresh: &self.trees, store: &self.workspace.store }.tree(id)
    }
}

impl Ancestry for Past<'_> {
    type Version = Version;
    type Error = StoreError;

    fn origins(&mut self, of: &Version) -> Result<Vec<EarlierVersion<Version>>, StoreError> {
        self.contents.clear();
        let Some(versions) = unless_damaged(self.versions_before(of))? else {
            self.doubtful.insert(of.clone());
            return Ok(Vec::new());
        };
        let mut origins = Vec::new();
        for version in versions {
            let blob = version.blob;
            if blob != of.blob && !self.contents.contains_key(&blob) {
                let Some(bytes) = unless_damaged(self.workspace.store.blob(&blob))? else {
                    self.doubtful.insert(of.clone());
                    continue;
                };
                self.contents.insert(blob, bytes);
            }
            origins.push(EarlierVersion { version, blob });
        }
        Ok(origins)
    }

    fn bytes(&mut self, blob: &ObjectId) -> Result<Vec<u8>, StoreError> {
        self.contents.remove(blob).map_or_else(|| self.workspace.store.blob(blob), Ok)
    }
}

impl<'w> Past<'w> {
    /// The history of the whole workspace.
    pub(super) fn of(workspace: &'w History) -> Result<Self, StoreError> {
        Ok(Self {
            workspace,
            links: workspace.store.links()?,
            head: workspace.store.head(workspace.record.line)?.map(|row| row.seq),
            moved_since: None,
            trees: FreshTrees::default(),
            contents: HashMap::new(),
            doubtful: HashSet::new(),
        })
    }

    /// Keeps a content that will be requested next.
    pub(super) fn keep(&mut self, blob: ObjectId, bytes: Vec<u8>) {
        self.contents.insert(blob, bytes);
    }

    /// The newest checkpoint of the line that leads to now that has a file at a path.
    pub(super) fn last_with(&self, path: &WorkspacePath) -> Result<Option<CheckpointId>, StoreError> {
        let mut at = self.link(self.head);
        while let Some(link) = at {
            if let Stands::File(_) = self.at(link, path)? {
                return Ok(self.workspace.store.checkpoint_numbered(link.seq)?.map(|row| row.checkpoint.id));
            }
            at = self.link(link.parent);
        }
        Ok(None)
    }

    /// The author of a version, given its checkpoint.
    pub(super) fn who(&self, row: &CheckpointRow, version: &Version) -> Result<Who, StoreError> {
        let checkpoint = &row.checkpoint;
        let unknown = || Ok(Who::Owner(Owner::Unsure { candidates: Vec::new() }));
        if checkpoint.parent.is_none() {
            return Ok(Who::BeforePiton);
        }
        if let (Cause::Operation, Some(operation)) = (checkpoint.cause, &checkpoint.operation) {
            return Ok(Who::Owner(Owner::Operation { operation: operation.clone() }));
        }
        let parent = self.row(self.link(Some(row.seq)).and_then(|link| link.parent))?;
        let Some(parent) = parent.filter(|_| !self.doubtful.contains(version)) else { return unknown() };
        // The operation's own work or somebody's meanwhile; the changes listed are those of the capture before it.
        if is_in_the_middle(checkpoint, &parent.checkpoint) {
            return unknown();
        }
        // A group without paths is of all that changed: too much to list, and all of it one's.
        let is_it = |group: &&ownership::Owned| {
            group.paths.is_empty() || group.paths.iter().any(|changed| changed.path == version.path)
        };
        match checkpoint.owned.iter().find(is_it) {
            Some(group) => Ok(Who::Owner(group.owner.clone())),
            None if !checkpoint.owned.is_empty() => unknown(),
            None => self.unlisted_owner(row, &parent, &version.path).map(Who::Owner),
        }
    }

    /// The owner of a change that was not listed, by the same rules and without the file's time: which tools were at work
    /// is known all the same.
    fn unlisted_owner(
        &self,
        row: &CheckpointRow,
        parent: &CheckpointRow,
        path: &WorkspacePath,
    ) -> Result<Owner, StoreError> {
        let store = &self.workspace.store;
        let steps = store.steps_ended_since(parent.seq)?.into_iter().chain(store.open_steps()?);
        let mut windows: Vec<Window> = Vec::new();
        for step in steps.filter(|step| step.seq < row.seq) {
            let along = store.session(&step.step.at.session)?.is_some_and(|row| row.session.along);
            windows.push(window_of(&step, parent.seq, along, self.workspace.path()));
        }
        let moment = match (&row.checkpoint.place, row.checkpoint.cause) {
            (Some(place), Cause::AfterTool) => Moment::After(StepRef {
                session: place.session.clone(),
                turn: place.turn,
                step: place.step.unwrap_or(0),
            }),
            (Some(place), Cause::BeforeTool | Cause::AfterTools | Cause::TurnEnd | Cause::Compaction) => {
                Moment::Within(place.session.clone(), place.turn)
            }
            _ => Moment::Between,
        };
        // If the last author is unknown, it may have been the user.
        let last = match self.link(Some(parent.seq)) {
            Some(link) => unless_damaged(self.last_made(link, path))?,
            None => None,
        };
        let was_yours = match last {
            Some(Some(Who::Owner(owner))) => may_be_yours(&owner),
            Some(Some(Who::BeforePiton) | None) => false,
            None => true,
        };
        // When the user edited it is not worth finding out.
        let found = ObservedChange { hand_edit: was_yours.then_some(0), ..ObservedChange::of(path) };
        let owner = ownership::owner(found, &windows, &moment);
        // Finding out which tools were running there at that time is not worth the effort.
        let is_alone = self.workspace.near().is_empty();
        Ok(if is_alone { owner } else { ownership::beside_a_missed_tool(owner) })
    }

    /// The author of a file's state at a checkpoint.
    fn last_made(&self, mut at: ChainLink, path: &WorkspacePath) -> Result<Option<Who>, StoreError> {
        let Stands::File(blob) = self.at(at, path)? else { return Ok(None) };
        while let Some(parent) = self.link(at.parent) {
            match self.at(parent, path)? {
                Stands::File(same) if same == blob => at = parent,
                _ => break,
            }
        }
        let version = Version { seq: at.seq, path: path.clone(), blob };
        self.row(Some(at.seq))?.map(|row| self.who(&row, &version)).transpose()
    }

    /// The versions that a version came from, those that contribute most first.
    fn versions_before(&mut self, of: &Version) -> Result<Vec<Version>, StoreError> {
        let link = self.link(Some(of.seq));
        let parent = if of.seq == NOW { self.head } else { link.and_then(|link| link.parent) };
        let Some(parent) = self.link(parent) else {
            // It follows a lost checkpoint.
            if link.is_some_and(|link| !link.is_first) {
                self.doubtful.insert(of.clone());
            }
            return Ok(Vec::new());
        };
        let version = |link: ChainLink, path: &WorkspacePath, blob| Version { seq: link.seq, path: path.clone(), blob };
        if link.is_some_and(|link| link.tree == parent.tree) {
            return Ok(vec![version(parent, &of.path, of.blob)]);
        }
        let mut versions = Vec::new();
        match self.at(parent, &of.path)? {
            Stands::File(blob) if blob == of.blob => return Ok(vec![version(parent, &of.path, blob)]),
            Stands::File(blob) => versions.push(version(parent, &of.path, blob)),
            Stands::Unknown => {
                self.doubtful.insert(of.clone());
                versions.extend(self.last_known(parent, &of.path)?);
            }
            Stands::Nothing => {}
        }
        for id in self.brought_from(link, parent, &of.path)? {
            let Some(link) = self.numbered(&id)? else { continue };
            if let Stands::File(blob) = self.at(link, &of.path)? {
                let brought = version(link, &of.path, blob);
                // All of it comes from there, even if some of its lines are in the parent by chance.
                if blob == of.blob {
                    return Ok(vec![brought]);
                }
                versions.push(brought);
            }
        }
        let moved_from = match link {
            None => self.moved_since.clone(),
            Some(link) if link.has_deleted => renamed(self, &parent.tree, &link.tree, &of.path, &of.blob)?,
            Some(_) => None,
        };
        versions.extend(moved_from.map(|path| version(parent, &path, of.blob)));
        Ok(versions)
    }

    /// The checkpoints that operations brought a file back from, for a checkpoint or now.
    fn brought_from(
        &self,
        link: Option<ChainLink>,
        parent: ChainLink,
        path: &WorkspacePath,
    ) -> Result<Vec<CheckpointId>, StoreError> {
        if !parent.is_of_operation && !link.is_some_and(|link| link.is_of_operation) {
            return Ok(Vec::new());
        }
        let store = &self.workspace.store;
        let row = self.row(link.map(|link| link.seq))?;
        let Some(parent) = self.row(Some(parent.seq))? else { return Ok(Vec::new()) };
        let (checkpoint, parent) = (row.as_ref().map(|row| &row.checkpoint), &parent.checkpoint);
        let mut all = Vec::new();
        if let Some(checkpoint) = checkpoint
            && (checkpoint.cause == Cause::Operation || is_in_the_middle(checkpoint, parent))
            && let Some(id) = &checkpoint.operation
            && let Some(operation) = store.operation_row(id)?
        {
            match store.operation(&operation) {
                Ok(operation) => all.extend(self.sources(&operation, path)?),
                // Then what it restored counts as its own.
                Err(StoreError::DamagedRecord { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        // An interrupted operation was put back: what was there before it is there again.
        if let Some(id) = &parent.operation
            && parent.cause == Cause::BeforeOperation
            && checkpoint.is_none_or(|checkpoint| checkpoint.operation.as_ref() != Some(id))
        {
            all.extend(store.operation_row(id)?.map(|row| row.before));
        }
        Ok(all)
    }

    /// The checkpoints whose state of a path an operation brings back.
    fn sources(&self, operation: &Operation, path: &WorkspacePath) -> Result<Vec<CheckpointId>, StoreError> {
        let store = &self.workspace.store;
        let mut all = Vec::new();
        match &operation.kind {
            OperationKind::Rewind { target, .. } => all.push(target.clone()),
            OperationKind::Redo { of, .. } | OperationKind::Recover { of } => {
                all.extend(store.operation_row(of)?.map(|row| row.before));
                for id in operation.kind.also() {
                    all.extend(store.operation_row(id)?.map(|row| row.before));
                }
            }
            OperationKind::Undo { changes } => {
                for change in changes.iter().filter(|change| change.paths.iter().any(|one| path.is_within(one))) {
                    all.extend(store.checkpoint(&change.checkpoint)?.and_then(|row| row.checkpoint.parent));
                }
                // Changes since the last checkpoint, which are taken back as well.
                all.extend(store.checkpoint(&operation.before)?.and_then(|row| row.checkpoint.parent));
            }
            OperationKind::Branch | OperationKind::Checkout { .. } => {}
        }
        // What it left alone, where its result does not follow from there.
        all.push(operation.before.clone());
        Ok(all)
    }

    /// The last version of a path before it was skipped.
    fn last_known(&self, from: ChainLink, path: &WorkspacePath) -> Result<Option<Version>, StoreError> {
        let mut at = Some(from);
        while let Some(link) = at {
            match self.at(link, path)? {
                Stands::File(blob) => return Ok(Some(Version { seq: link.seq, path: path.clone(), blob })),
                Stands::Nothing => return Ok(None),
                Stands::Unknown => at = self.link(link.parent),
            }
        }
        Ok(None)
    }

    fn at(&self, link: ChainLink, path: &WorkspacePath) -> Result<Stands, StoreError> {
        Ok(match diff::lookup(self, &link.tree, path)? {
            Some(Entry::File { size, .. }) if size > LARGEST => Stands::Unknown,
            Some(Entry::File { blob, .. }) => Stands::File(blob),
            Some(Entry::Skipped { .. }) => Stands::Unknown,
            Some(Entry::Symlink { .. } | Entry::Folder { .. }) | None => Stands::Nothing,
        })
    }

    fn link(&self, seq: Option<u64>) -> Option<ChainLink> {
        let at = self.links.binary_search_by_key(&seq?, |link| link.seq).ok()?;
        Some(self.links[at])
    }

    fn numbered(&self, id: &CheckpointId) -> Result<Option<ChainLink>, StoreError> {
        Ok(self.link(self.workspace.store.checkpoint(id)?.map(|row| row.seq)))
    }

    fn row(&self, seq: Option<u64>) -> Result<Option<CheckpointRow>, StoreError> {
        seq.map_or(Ok(None), |seq| self.workspace.store.checkpoint_numbered(seq))
    }
}

/// Whether a checkpoint was made in the middle of an operation: after a crash, or of what another program wrote meanwhile.
fn is_in_the_middle(checkpoint: &Checkpoint, parent: &Checkpoint) -> bool {
    checkpoint.cause == Cause::BeforeOperation
        && parent.cause == Cause::BeforeOperation
        && checkpoint.operation == parent.operation
}

/// Whether the user made a change, or may have made it.
fn may_be_yours(owner: &Owner) -> bool {
    match owner {
        Owner::You => true,
        Owner::Unsure { candidates } => candidates.is_empty() || candidates.contains(&Candidate::You),
        Owner::Step { .. } | Owner::Operation { .. } => false,
    }
}

/// Where a file was that stands elsewhere in a later tree: a path that had this very content and has it no more. Of
/// several the one with the same name.
pub(super) fn renamed<S: TreeSource>(
    source: &S,
    from: &ObjectId,
    to: &ObjectId,
    path: &WorkspacePath,
    content: &ObjectId,
) -> Result<Option<WorkspacePath>, S::Error> {
    let has_it = |entry: &Option<Entry>| matches!(entry, Some(Entry::File { blob, .. }) if blob == content);
    let changes = diff::changes(source, Some(from), Some(to))?;
    let mut gone = changes.into_iter().filter(|change| has_it(&change.before) && change.after.is_none()).peekable();
    let first = gone.peek().map(|change| change.path.clone());
    let name = |path: &WorkspacePath| path.split().map(|(_, name)| name);
    Ok(gone.map(|change| change.path).find(|gone| name(gone) == name(path)).or(first))
}

fn unless_damaged<T>(result: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(StoreError::Missing(_) | StoreError::Damaged(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
