//! A conversation's transcript: where it is, reading a part of it, and copying that to the store for a branch.

use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use piton_agents::Adapter;
use piton_agents::claude_code::branch;
use piton_agents::claude_code::summary::{self, Summary};
use piton_host::{canonical, clock, outside};
use piton_model::conversation::Began;
use piton_model::{ObjectId, Session};
use piton_store::{CHUNKED_FROM, Store, Writer};

use super::{BranchPlan, NoConversation};
use crate::operate::OperationError;
use crate::workspace::Workspace;

/// Where a transcript is.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    File(PathBuf),
    Kept { blob: ObjectId, size: u64 },
}

/// What of a transcript a branch takes over.
#[derive(Clone)]
pub(crate) struct CopyPlan {
    pub(crate) source: Source,
    /// The agent's folder that the new one goes to.
    pub(crate) folder: PathBuf,
    pub(crate) mode: u16,
    /// The bytes that are read, from and to.
    pub(crate) part: (u64, u64),
    /// Where among them the turn begins that it is cut at.
    pub(crate) cut: u64,
    /// Their hash: a transcript only grows, and if these changed it is another one.
    pub(crate) digest: [u8; 32],
}

impl Workspace {
    /// Where a session's transcript is, its permission bits, and whether it ends in the middle of a line.
    pub(crate) fn transcript_of(
        &self,
        session: &Session,
        adapter: Adapter,
    ) -> Result<(Source, u16, bool), NoConversation> {
        const OWN: u16 = 0o600;
        let kept = || match &session.kept {
            Some(kept) => Ok((Source::Kept { blob: kept.blob, size: kept.size }, OWN, false)),
            None => Err(NoConversation::Gone),
        };
        let Some(path) = self.transcript_place(session, adapter)? else { return kept() };
        match outside::lines(&path, 0)? {
            Some(lines) => Ok((Source::File(path), lines.mode, lines.cut_off)),
            None => kept(),
        }
    }

    /// Where a session's transcript is, or was; none where nobody said, or its folder is gone.
    pub(crate) fn transcript_place(
        &self,
        session: &Session,
        adapter: Adapter,
    ) -> Result<Option<PathBuf>, NoConversation> {
        let Some(path) = session.transcript.as_deref().map(Path::new) else { return Ok(None) };
        // A report named it. It must be a file of this very session, in a folder of the agent's own.
        let is_own = branch::is_session_id(&session.agent_id)
            && path.file_name().is_some_and(|name| name == &*format!("{}.jsonl", session.agent_id));
        let Some(folder) = path.parent().filter(|_| is_own) else { return Err(NoConversation::Elsewhere) };
        let Ok(folder) = canonical(folder) else { return Ok(None) };
        if folder.parent() != self.transcripts_of(adapter).as_deref() {
            return Err(NoConversation::Elsewhere);
        }
        Ok(Some(folder.join(path.file_name().unwrap_or_default())))
    }

    /// The folder that holds an agent's transcripts, folder by folder.
    pub(crate) fn transcripts_of(&self, adapter: Adapter) -> Option<PathBuf> {
        let (_, folder) = self.environment.transcripts.iter().find(|(name, _)| name == adapter.name())?;
        canonical(folder).ok()
    }

    /// Copies what a branch takes over to the store, under the branch's id and with its summary.
    pub(crate) fn copy_to_store(
        &self,
        writer: &mut Writer<'_>,
        plan: &BranchPlan,
        copy: &CopyPlan,
        id: &str,
    ) -> Result<(ObjectId, u64), OperationError> {
        let uuid = || clock::random().map(branch::uuid);
        let uuids = [uuid().map_err(unreadable)?, uuid().map_err(unreadable)?];
        let at = self.environment.clock.now();
        let summary = plan.terms.summary.as_ref();
        let summary = summary.map(|summary| Summary { text: &summary.text, uuids: [&uuids[0], &uuids[1]], at });
        let write = |bytes: &mut dyn BufRead, mut to: &mut dyn Write| -> io::Result<[u8; 32]> {
            let hashed = RefCell::new(Hashed { from: bytes, hash: blake3::Hasher::new() });
            let all = || BufReader::with_capacity(256 << 10, Shared(&hashed));
            match &summary {
                Some(text) if plan.terms.how == Began::SummaryUpTo => {
                    let before = BufReader::with_capacity(256 << 10, Shared(&hashed).take(copy.cut));
                    summary::copy_with_summary_before(before, all(), &mut to, id, text)
                }
                Some(text) => summary::copy_with_summary_after(all(), &mut to, id, text),
                None => branch::copy(all(), &mut to, id),
            }?;
            Ok(*hashed.borrow().hash.finalize().as_bytes())
        };
        // Few are so long that they must not be in memory whole.
        if copy.part.1 - copy.part.0 < CHUNKED_FROM {
            let (digest, bytes) = with_bytes(&self.store, &copy.source, copy.part, |from| {
                let mut bytes = Vec::new();
                write(from, &mut bytes).map(|digest| (digest, bytes))
            })?;
            if digest != copy.digest {
                return Err(OperationError::StaleTranscript);
            }
            return Ok((writer.blob(&bytes)?, bytes.len() as u64));
        }
        let store = &self.store;
        std::thread::scope(|scope| {
            let (mut reader, mut pipe) = io::pipe().map_err(unreadable)?;
            let writing =
                scope.spawn(move || with_bytes(store, &copy.source, copy.part, |from| write(from, &mut pipe)));
            let kept = writer.large(&mut reader);
            drop(reader);
            let digest = writing.join().map_err(|_| unreadable(io::Error::other("its reader failed")));
            // Where the store has no room, whoever gives to it only finds that nobody takes.
            let kept = kept?;
            if digest?? != copy.digest {
                return Err(OperationError::StaleTranscript);
            }
            Ok(kept)
        })
    }
}

/// Reads a part of a transcript; of a file only what is in whole lines.
pub(crate) fn with_bytes<T: Send>(
    store: &Store,
    source: &Source,
    (from, to): (u64, u64),
    read: impl FnOnce(&mut dyn BufRead) -> io::Result<T> + Send,
) -> Result<T, OperationError> {
    match source {
        Source::File(path) => {
            let lines = outside::lines(path, from).map_err(unreadable)?.ok_or(NoConversation::Gone)?;
            read(&mut lines.reader.take(to - from)).map_err(unreadable)
        }
        // The store gives out, and a reader takes in: one of them must run beside the other.
        Source::Kept { blob, size } => std::thread::scope(|scope| {
            let (reader, mut writer) = io::pipe().map_err(unreadable)?;
            let reading = scope.spawn(move || {
                let mut bytes = BufReader::with_capacity(256 << 10, reader);
                io::copy(&mut bytes.by_ref().take(from), &mut io::sink())
                    .and_then(|_| read(&mut bytes.take(to.min(*size).saturating_sub(from))))
            });
            // Who has read enough closes the pipe, which is no failure.
            let given = store.write_blob(blob, &mut writer).map(drop);
            drop(writer);
            let result = reading.join().map_err(|_| unreadable(io::Error::other("its reader failed")))?;
            given?;
            result.map_err(unreadable)
        }),
    }
}

pub(crate) fn unreadable(error: io::Error) -> OperationError {
    NoConversation::Unreadable(error).into()
}

pub(crate) fn hash(bytes: &mut dyn BufRead) -> io::Result<[u8; 32]> {
    let mut hashed = Hashed { from: bytes, hash: blake3::Hasher::new() };
    io::copy(&mut hashed, &mut io::sink())?;
    Ok(*hashed.hash.finalize().as_bytes())
}

/// One reader for two parts that are read one after the other.
struct Shared<'a, 'b>(&'a RefCell<Hashed<'b>>);

impl Read for Shared<'_, '_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.borrow_mut().read(out)
    }
}

/// Hashes what is read through it.
struct Hashed<'a> {
    from: &'a mut dyn BufRead,
    hash: blake3::Hasher,
}

impl Read for Hashed<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(out)?;
        self.hash.update(&out[..count]);
        Ok(count)
    }
}
