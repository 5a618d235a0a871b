//! Blame: who wrote each line of a file, the turn, the step and the prompt, right across rewinds, undos and redos.
//!
//! It reports only what is recorded: if a change's author is unknown, its lines are unsure.

mod past;

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::convert::Infallible;
use std::io::Read;
use std::sync::Mutex;

use piton_host::{Sink, read_entry};
use piton_model::blame::{EarlierVersion, blame, lines};
use piton_model::diff;
use piton_model::ownership::Owner;
use piton_model::text::is_binary;
use piton_model::{CheckpointId, Entry, ObjectId, SkipReason, Target, WorkspacePath};
use piton_store::{CheckpointRow, StoreError};

use crate::capture::CaptureError;
use crate::history::target::TargetError;
use crate::view::{Blame, BlameLine, LineOrigin, OriginKind};
use crate::workspace::{History, Standing};
use past::{NOW, Past, Version, Who, renamed};

/// Which lines of a file to ask for.
#[derive(Clone, Debug, Default)]
pub struct BlameOptions {
    /// The moment to look at; the current file if not given.
    pub at: Option<Target>,
    /// The first and last line, from 1; all if not given. A last line beyond the end means the end.
    pub lines: Option<(u32, u32)>,
}

/// Why a blame failed.
#[derive(Debug, thiserror::Error)]
pub enum BlameError {
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The workspace cannot be read.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file existed once.
    #[error("`{}` is not there any more", path.display())]
    Gone {
        path: WorkspacePath,
        /// The last checkpoint that has it.
        last: CheckpointId,
    },
    /// The checkpoint does not have the file.
    #[error("checkpoint {} has no file `{}`", checkpoint.short(), path.display())]
    NotThen { path: WorkspacePath, checkpoint: CheckpointId },
    /// No checkpoint has the file.
    #[error("there is no file `{}`, and no checkpoint has one", .0.display())]
    Never(WorkspacePath),
    /// A folder has no lines.
    #[error("`{}` is a folder, and only a file has lines", shown(.0))]
    Folder(WorkspacePath),
    /// Nor does a symlink.
    #[error("`{}` is a symlink, and only a file has lines", .0.display())]
    Symlink(WorkspacePath),
    /// Not text.
    #[error("`{}` is binary, so it has no lines", .0.display())]
    Binary(WorkspacePath),
    /// Too large to compare line by line.
    #[error("`{}` has {size} bytes, and no more than {LARGEST} are compared line by line", path.display())]
    TooLarge {
        path: WorkspacePath,
        /// Bytes.
        size: u64,
    },
    /// Checkpoints skip the file.
    #[error("`{}` is not captured ({}), so nothing is known of its lines", path.display(), reason.describe())]
    NotCaptured { path: WorkspacePath, reason: SkipReason },
    /// The file has fewer lines.
    #[error("`{}` has {has} lines, so it has no line {first}", path.display())]
    NoSuchLine {
        path: WorkspacePath,
        /// The first line that was asked for.
        first: u32,
        has: usize,
    },
}

/// The root has no path.
fn shown(path: &WorkspacePath) -> String {
    if path.is_root() { ".".to_owned() } else { path.display() }
}

/// Files over this are not compared line by line, as in a diff.
const LARGEST: u64 = 16 << 20;

impl History {
    /// Who wrote each line of a file, as it is now or was at a checkpoint.
    ///
    /// # Errors
    /// Where there is no such file then, it has no lines, or the store refuses.
    pub fn blame(&self, path: &WorkspacePath, options: &BlameOptions) -> Result<Blame, BlameError> {
        if path.is_root() {
            return Err(BlameError::Folder(path.clone()));
        }
        let then = options.at.as_ref().filter(|at| **at != Target::NOW);
        let at = then.map(|at| self.checkpoint_at(at)).transpose()?;
        self.store.read_steadily(|| {
            let mut past = Past::of(self)?;
            let (blob, bytes) = match &at {
                Some(row) => self.file_then(&past, row, path)?,
                None => self.file_now(&mut past, path)?,
            };
            if is_binary(&bytes) {
                return Err(BlameError::Binary(path.clone()));
            }
            let texts: Vec<String> = lines(&bytes).map(text).collect();
            let (first, last) = options.lines.unwrap_or((1, u32::MAX));
            let from = (first as usize).saturating_sub(1);
            let to = (last as usize).min(texts.len());
            if options.lines.is_some() && from >= to {
                return Err(BlameError::NoSuchLine { path: path.clone(), first, has: texts.len() });
            }
            past.keep(blob, bytes);
            let version = Version { seq: at.as_ref().map_or(NOW, |row| row.seq), path: path.clone(), blob };
            let found = blame(&mut past, EarlierVersion { version, blob }, from..to)?;
            let mut origins = Vec::new();
            let mut places: HashMap<Version, usize> = HashMap::new();
            let mut all = Vec::with_capacity(found.len());
            for ((number, text), version) in texts.into_iter().enumerate().skip(from).zip(found) {
                let origin = match places.entry(version) {
                    Slot::Occupied(known) => *known.get(),
                    Slot::Vacant(new) => {
                        origins.push(self.line_origin(&past, new.key(), path)?);
                        *new.insert(origins.len() - 1)
                    }
                };
                all.push(BlameLine { number: u32::try_from(number + 1).unwrap_or(u32::MAX), text, origin });
            }
            Ok(Blame { path: path.into(), at: at.as_ref().map(Into::into), lines: all, origins })
        })
    }

    /// A file of a checkpoint.
    fn file_then(
        &self,
        past: &Past<'_>,
        row: &CheckpointRow,
        path: &WorkspacePath,
    ) -> Result<(ObjectId, Vec<u8>), BlameError> {
        let entry = diff::lookup(past, &row.checkpoint.root.tree, path)?;
        let blob = file_of(path, entry.as_ref())?
            .ok_or_else(|| BlameError::NotThen { path: path.clone(), checkpoint: row.checkpoint.id.clone() })?;
        Ok((blob, self.store.blob(&blob)?))
    }

    /// The file as it is now.
    fn file_now(&self, past: &mut Past<'_>, path: &WorkspacePath) -> Result<(ObjectId, Vec<u8>), BlameError> {
        let root = match self.standing().map_err(|e| self.folder_error(e))? {
            Standing::Same(root) | Standing::Other(root) => root,
            Standing::Missing => return Err(CaptureError::Missing(self.path.clone()).into()),
        };
        // Reading a folder would read everything in it.
        if root.folder(path).is_ok() {
            return Err(BlameError::Folder(path.clone()));
        }
        let sink = OneFile::default();
        let entry = read_entry(&root, path.as_bytes(), &sink).unwrap_or_else(|never: Infallible| match never {});
        let entry = entry.map_err(|source| self.folder_error(source))?;
        let Some(blob) = file_of(path, entry.as_ref())? else {
            return Err(match past.last_with(path)? {
                Some(last) => BlameError::Gone { path: path.clone(), last },
                None => BlameError::Never(path.clone()),
            });
        };
        let head = self.store.head(self.record.line)?.ok_or(TargetError::Empty)?.checkpoint.root.tree;
        match diff::lookup(past, &head, path)? {
            Some(Entry::Skipped { reason }) => return Err(BlameError::NotCaptured { path: path.clone(), reason }),
            Some(Entry::File { .. }) => {}
            // Piton does not know it: it was moved here since the last checkpoint, or a rule ignores it. Only a scan can tell.
            _ => {
                let now = self.now(false)?;
                let trees = crate::capture::sink::Trees { fresh: &now.fresh, store: &self.store };
                if let Some(Entry::Skipped { reason }) = diff::lookup(&trees, &now.root.tree, path)? {
                    return Err(BlameError::NotCaptured { path: path.clone(), reason });
                }
                past.moved_since = renamed(&trees, &head, &now.root.tree, path, &blob)?;
            }
        }
        Ok((blob, sink.0.into_inner().unwrap_or_else(|e| e.into_inner())))
    }

    /// The origin of lines that first appear in a version.
    fn line_origin(&self, past: &Past<'_>, of: &Version, path: &WorkspacePath) -> Result<LineOrigin, StoreError> {
        let row = if of.seq == NOW { None } else { self.store.checkpoint_numbered(of.seq)? };
        let mut origin = LineOrigin {
            kind: OriginKind::Now,
            owner: None,
            session: None,
            turn: None,
            step: None,
            tool: None,
            summary: None,
            prompt: None,
            checkpoint: row.as_ref().map(|row| row.checkpoint.id.clone()),
            at: row.as_ref().map(|row| row.checkpoint.created_at),
            moved_from: (of.path != *path).then(|| (&of.path).into()),
        };
        let Some(row) = row else { return Ok(origin) };
        let owner = match past.who(&row, of)? {
            Who::BeforePiton => {
                origin.kind = OriginKind::BeforePiton;
                return Ok(origin);
            }
            Who::Owner(owner) => owner,
        };
        origin.kind = match &owner {
            Owner::Step { step, .. } => {
                origin.step = Some(step.step);
                if let Some(row) = self.store.step(step)? {
                    (origin.tool, origin.summary) = (Some(row.step.tool), Some(row.step.summary));
                }
                OriginKind::Step
            }
            Owner::You => OriginKind::You,
            Owner::Unsure { .. } => OriginKind::Unsure,
            Owner::Operation { operation } => {
                origin.summary = self.store.operation_row(operation)?.map(|row| row.verb.as_str().to_owned());
                OriginKind::Operation
            }
        };
        // If all candidates are steps of one turn, the lines are that turn's.
        if let Some((session, number)) = owner.turn() {
            let prompt = self.store.turn(session, number)?.and_then(|row| row.turn.prompt);
            let first = prompt.as_deref().and_then(|text| text.lines().find(|line| !line.trim().is_empty()));
            origin.prompt = first.map(|line| line.trim().to_owned());
            (origin.session, origin.turn) = (Some(session.clone()), Some(number));
        }
        origin.owner = Some(owner);
        Ok(origin)
    }
}

/// The content of an entry that has lines; `None` if nothing is there.
fn file_of(path: &WorkspacePath, entry: Option<&Entry>) -> Result<Option<ObjectId>, BlameError> {
    match entry {
        Some(Entry::File { size, .. }) if *size > LARGEST => {
            Err(BlameError::TooLarge { path: path.clone(), size: *size })
        }
        Some(Entry::File { blob, .. }) => Ok(Some(*blob)),
        Some(Entry::Folder { .. }) => Err(BlameError::Folder(path.clone())),
        Some(Entry::Symlink { .. }) => Err(BlameError::Symlink(path.clone())),
        Some(Entry::Skipped { reason }) => Err(BlameError::NotCaptured { path: path.clone(), reason: *reason }),
        None => Ok(None),
    }
}

/// A line without its line ending.
fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)).into_owned()
}

/// Keeps the bytes of one file, or only the hash if it is too large.
#[derive(Default)]
struct OneFile(Mutex<Vec<u8>>);

impl Sink for OneFile {
    type Error = Infallible;

    fn large_from(&self) -> u64 {
        LARGEST + 1
    }

    fn small(&self, bytes: &[u8]) -> Result<ObjectId, Infallible> {
        *self.0.lock().unwrap_or_else(|e| e.into_inner()) = bytes.to_vec();
        Ok(ObjectId::of_blob(bytes))
    }

    fn large(&self, bytes: &mut dyn Read) -> Result<(ObjectId, u64), Infallible> {
        crate::capture::sink::HashingSink::default().large(bytes)
    }

    fn tree(&self, _id: ObjectId, _encoded: Vec<u8>) -> Result<(), Infallible> {
        Ok(())
    }
}
