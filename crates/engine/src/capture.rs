//! Capturing: read the workspace and record a checkpoint.

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;

use piton_host::fail::point;
use piton_host::{Index, Lock, Root, Scan, ScanError, ScanOptions, clock, scan, staged_by};
use piton_model::diff::{self, Counts};
use piton_model::target::{BadTarget, check_name};
use piton_model::{Cause, Checkpoint, CheckpointId, OperationId, Record, WorkspacePath};
use piton_store::{CheckpointRow, PATIENCE, StoreError, Writer};

use crate::recover::RecoverError;
use crate::sink::{FreshTrees, HashingSink, StoringSink, Trees};
use crate::view::{Captured, CheckpointDetail};
use crate::workspace::{Standing, Workspace};

/// What to capture and what to call it.
#[derive(Clone, Debug, Default)]
pub struct CaptureOptions {
    /// A name to find it by.
    pub name: Option<String>,
    /// A note on it.
    pub annotation: Option<String>,
    /// Wait for the disk: when the capture returns, it survives a power cut. Otherwise it survives the end of any
    /// program at once, and a power cut as soon as something durable followed it or the kernel has written it out.
    pub sync: bool,
}

/// Why nothing was captured.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The name cannot be one.
    #[error("`{name}` cannot be a checkpoint's name: {source}")]
    Name {
        /// It.
        name: String,
        /// Why.
        source: BadTarget,
    },
    /// The name is another checkpoint's.
    #[error("the name `{name}` is taken by checkpoint {}", checkpoint.short())]
    NameTaken {
        /// It.
        name: String,
        /// Whose.
        checkpoint: CheckpointId,
    },
    /// The workspace's folder is gone.
    #[error("{} is gone; nothing was captured", .0.display())]
    Missing(PathBuf),
    /// Another folder is at its path, and it is empty: an unmounted disk looks like that.
    #[error("{} is another folder than the one captured before, and it is empty; nothing was captured", .0.display())]
    EmptyOther(PathBuf),
    /// Over the limit for a root.
    #[error("{} holds more than {files} files or {} GiB to read; nothing was captured", path.display(), bytes >> 30)]
    TooLarge {
        /// Which.
        path: PathBuf,
        /// Files at most.
        files: u64,
        /// Bytes at most.
        bytes: u64,
    },
    /// The root cannot be read.
    #[error("{}: {source}", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An operation was cut off and cannot be ended.
    #[error(transparent)]
    Recover(Box<RecoverError>),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A scan whose objects are written and whose checkpoint is not recorded yet.
pub(crate) struct Taken<'s> {
    pub writer: Writer<'s>,
    pub scan: Scan,
    pub fresh: FreshTrees,
}

impl Workspace {
    /// Captures the workspace.
    pub fn capture(&mut self, options: &CaptureOptions) -> Result<Captured, CaptureError> {
        if let Some(name) = &options.name {
            check_name(name).map_err(|source| CaptureError::Name { name: name.clone(), source })?;
        }
        let lock = self.store.lock(PATIENCE)?;
        point("capture:locked").map_err(|e| self.folder_error(e))?;
        self.read_record()?;
        // Whoever held the lock until now may have died in the middle of an operation: its tree is a mix until it ends.
        self.recover_locked(&lock).map_err(|error| CaptureError::Recover(Box::new(error)))?;
        if let Some(name) = &options.name
            && let Some(row) = self.store.named(name)?
        {
            return Err(CaptureError::NameTaken { name: name.clone(), checkpoint: row.checkpoint.id });
        }
        let root = self.root_to_capture(&lock)?;
        let Taken { mut writer, scan, fresh } = self.take(&lock, &root, &[])?;
        let parent = self.store.head(self.record.line)?;
        let checkpoint = self.checkpoint(&scan, &fresh, parent.as_ref(), Cause::Manual, None)?;
        let id = checkpoint.id.clone();
        writer.record(Record::Checkpoint(checkpoint.clone()))?;
        if let Some(name) = &options.name {
            writer.record(Record::Name { checkpoint: id.clone(), name: name.clone() })?;
        }
        if let Some(text) = &options.annotation {
            writer.record(Record::Annotation { checkpoint: id, text: text.clone() })?;
        }
        writer.commit(options.sync, scan.index.is_some())?;
        point("capture:committed").map_err(|e| self.folder_error(e))?;
        let row = CheckpointRow {
            seq: 0,
            checkpoint,
            names: options.name.iter().cloned().collect(),
            annotation: options.annotation.clone(),
        };
        let detail = CheckpointDetail {
            checkpoint: (&row).into(),
            skipped: scan.skipped.iter().map(Into::into).collect(),
            unsettled: scan.unsettled.iter().map(Into::into).collect(),
        };
        self.keep_index(scan);
        // The checkpoint is recorded; what goes wrong here only makes the next start slower.
        let _ = self.store.tidy(&lock);
        Ok(Captured { checkpoint: detail })
    }

    /// The root, if it may be captured; another folder at the same path begins a new line.
    pub(crate) fn root_to_capture(&mut self, lock: &Lock) -> Result<Root, CaptureError> {
        match self.standing().map_err(|e| self.folder_error(e))? {
            Standing::Same(root) => Ok(root),
            Standing::Missing => Err(CaptureError::Missing(self.path.clone())),
            Standing::Other(root) => {
                if root.is_empty().map_err(|e| self.folder_error(e))? {
                    return Err(CaptureError::EmptyOther(self.path.clone()));
                }
                let change = piton_model::Workspace {
                    root: root.identity(),
                    line: self.record.line + 1,
                    at: self.environment.clock.now(),
                    ..self.record.clone()
                };
                self.record_change(lock, change)?;
                self.store.drop_index();
                Ok(root)
            }
        }
    }

    /// Scans and stores, and leaves the writer open so that what belongs together is committed together. Forced paths
    /// are taken whatever the rules say; the index of such a scan is not kept.
    pub(crate) fn take<'s>(
        &'s self,
        lock: &'s Lock,
        root: &Root,
        forced: &[WorkspacePath],
    ) -> Result<Taken<'s>, CaptureError> {
        let index = self.store.index();
        let sink = StoringSink::new(self.store.write(lock)?);
        let options = self.scan_options(index.as_ref(), forced);
        let mut scan =
            self.store.read_steadily(|| scan(root, options, &sink)).map_err(|e| self.scan_error(e, Into::into))?;
        point("capture:scanned").map_err(|e| self.folder_error(e))?;
        let (writer, fresh) = sink.finish();
        if !forced.is_empty() {
            scan.index = None;
        }
        Ok(Taken { writer, scan, fresh })
    }

    pub(crate) fn scan_options<'a>(&'a self, index: Option<&'a Index>, forced: &[WorkspacePath]) -> ScanOptions<'a> {
        let mut rules = self.rules();
        rules.forced = forced.iter().cloned().collect();
        ScanOptions {
            index,
            rules,
            now_ns: self.environment.clock.now_ns(),
            is_staged: Box::new(|name| staged_by(name).is_some_and(|id| self.store.is_pending(&id))),
            limit: self.limit(),
            progress: &self.progress,
        }
    }

    /// Scans and only hashes.
    pub(crate) fn look_at(
        &self,
        root: &Root,
        forced: &[WorkspacePath],
        sink: &HashingSink,
    ) -> Result<Scan, CaptureError> {
        let index = self.store.index();
        scan(root, self.scan_options(index.as_ref(), forced), sink)
            .map_err(|e| self.scan_error(e, |never: Infallible| match never {}))
    }

    fn scan_error<E>(&self, error: ScanError<E>, of_sink: impl FnOnce(E) -> CaptureError) -> CaptureError {
        match error {
            ScanError::TooLarge(limit) => {
                CaptureError::TooLarge { path: self.path.clone(), files: limit.files, bytes: limit.bytes }
            }
            ScanError::Root(source) => self.folder_error(source),
            ScanError::Sink(error) => of_sink(error),
        }
    }

    /// The checkpoint of a scan.
    pub(crate) fn checkpoint(
        &self,
        scan: &Scan,
        fresh: &FreshTrees,
        parent: Option<&CheckpointRow>,
        cause: Cause,
        operation: Option<OperationId>,
    ) -> Result<Checkpoint, CaptureError> {
        let trees = Trees { fresh, store: &self.store };
        let from = parent.map(|p| p.checkpoint.root);
        let changes = match diff::root_changes(&trees, from.as_ref(), Some(&scan.root)) {
            Ok(changes) => Counts::of(&changes),
            // A damaged parent must not keep the present from being captured.
            Err(StoreError::Missing(_) | StoreError::Damaged(_)) => Counts::default(),
            Err(error) => return Err(error.into()),
        };
        Ok(Checkpoint {
            id: CheckpointId::from_random(clock::random().map_err(|e| self.folder_error(e))?),
            parent: parent.map(|p| p.checkpoint.id.clone()),
            line: self.record.line,
            created_at: self.environment.clock.now(),
            cause,
            root: scan.root,
            changes,
            skipped: scan.skipped.len() as u64,
            unsettled: scan.unsettled.clone(),
            operation,
        })
    }

    /// Keeps a scan's index for the next one.
    pub(crate) fn keep_index(&self, scan: Scan) {
        if let Some(mut index) = scan.index {
            self.store.keep_index(&mut index);
        }
    }

    pub(crate) fn folder_error(&self, source: io::Error) -> CaptureError {
        CaptureError::Folder { path: self.path.clone(), source }
    }
}
