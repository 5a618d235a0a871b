//! A conversation's transcript: where it is, and reading a part of it.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use piton_agents::Transcripts;
use piton_host::{canonical, outside};
use piton_model::{ObjectId, Session};
use piton_store::Reader;

use super::NoConversation;
use super::said::ConversationError;
use crate::workspace::History;

/// Where a transcript is.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    File(PathBuf),
    Kept { blob: ObjectId, size: u64 },
}

/// Where the transcript of a branch goes to.
#[derive(Clone)]
pub(crate) enum CopyTo {
    /// To where that of its parent is.
    Beside(PathBuf),
    /// To where the agent looks for the sessions of a folder.
    PlaceOf { root: PathBuf, cwd: String },
}

impl CopyTo {
    /// The file of a session.
    pub(crate) fn file(&self, format: &dyn Transcripts, session: &str) -> Option<PathBuf> {
        match self {
            Self::Beside(other) => format.beside(other, session),
            Self::PlaceOf { root, cwd } => format.place(root, cwd, session),
        }
    }
}

/// What of a transcript a branch takes over.
#[derive(Clone)]
pub(crate) struct CopyPlan {
    pub(crate) format: &'static dyn Transcripts,
    pub(crate) source: Source,
    pub(crate) to: CopyTo,
    pub(crate) mode: u16,
    /// The bytes that are read, from and to.
    pub(crate) part: (u64, u64),
    /// Where among them the turn begins that it is cut at.
    pub(crate) cut: u64,
    /// Their hash: a transcript only grows, and if these changed it is another one.
    pub(crate) digest: [u8; 32],
}

impl History {
    /// Where a session's transcript is, its permission bits, and whether it ends in the middle of a line.
    pub(crate) fn transcript_of(
        &self,
        session: &Session,
        format: &dyn Transcripts,
    ) -> Result<(Source, u16, bool), NoConversation> {
        const OWN: u16 = 0o600;
        let kept = || match &session.kept {
            Some(kept) => Ok((Source::Kept { blob: kept.blob, size: kept.size }, OWN, false)),
            None => Err(NoConversation::Gone),
        };
        let Some(path) = self.transcript_place(session, format)? else { return kept() };
        match outside::lines(&path, 0)? {
            Some(lines) => Ok((Source::File(path), lines.mode, lines.cut_off)),
            None => kept(),
        }
    }

    /// Where a session's transcript is, or was; none where nobody said, or its folder is gone.
    pub(crate) fn transcript_place(
        &self,
        session: &Session,
        format: &dyn Transcripts,
    ) -> Result<Option<PathBuf>, NoConversation> {
        let Some(path) = session.transcript.as_deref().map(Path::new) else { return Ok(None) };
        // A report named it. It must be the file of this very session, in a folder of the agent's own.
        let is_named_so = format.names(&session.agent_id, path);
        let (Some(folder), Some(name), true) = (path.parent(), path.file_name(), is_named_so) else {
            return Err(NoConversation::Elsewhere);
        };
        let Ok(folder) = canonical(folder) else { return Ok(None) };
        let file = folder.join(name);
        let root = self.transcripts_root(&session.agent);
        if !root.is_some_and(|root| format.owns(&root, &session.agent_id, &file)) {
            return Err(NoConversation::Elsewhere);
        }
        Ok(Some(file))
    }

    /// The folder in which an agent finds a session by its transcript: this one where the transcript is in its place. A fork's
    /// transcript begins with what its parent said elsewhere.
    pub(crate) fn resumed_in(&self, session: &Session, format: &dyn Transcripts, file: &Path) -> Option<String> {
        let (root, here) = (self.transcripts_root(&session.agent)?, self.path.to_str()?);
        let place = format.place(&root, here, &session.agent_id)?;
        (place == file).then(|| here.to_owned())
    }

    /// The folder that holds an agent's transcripts.
    pub(crate) fn transcripts_root(&self, agent: &str) -> Option<PathBuf> {
        let (_, folder) = self.environment.transcripts.iter().find(|(name, _)| name == agent)?;
        canonical(folder).ok()
    }
}

/// Reads a part of a transcript; of a file only what is in whole lines.
pub(crate) fn with_bytes<T: Send>(
    store: &Reader,
    source: &Source,
    (from, to): (u64, u64),
    read: impl FnOnce(&mut dyn BufRead) -> io::Result<T> + Send,
) -> Result<T, ConversationError> {
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

pub(crate) fn unreadable(error: io::Error) -> ConversationError {
    NoConversation::Unreadable(error).into()
}

pub(crate) fn hash(bytes: &mut dyn BufRead) -> io::Result<[u8; 32]> {
    let mut hashed = Hashed { from: bytes, hash: blake3::Hasher::new() };
    io::copy(&mut hashed, &mut io::sink())?;
    Ok(*hashed.hash.finalize().as_bytes())
}

/// Hashes what is read through it.
pub(crate) struct Hashed<'a> {
    pub from: &'a mut dyn BufRead,
    pub hash: blake3::Hasher,
}

impl Read for Hashed<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(out)?;
        self.hash.update(&out[..count]);
        Ok(count)
    }
}
