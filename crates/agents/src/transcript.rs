//! Conversations that agents store in files, in piton's terms: turns, what was said, and branches.
//!
//! Every adapter reads its own format into these values. Bytes are streamed and never held as a whole: a transcript can
//! be larger than memory.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use piton_model::Timestamp;

use crate::setup::Variable;

/// An agent's conversation files, one for each session.
pub trait Transcripts: Sync {
    /// The folder that contains all of them.
    fn root(&self, home: Option<&Path>, variable: &Variable<'_>) -> Option<PathBuf>;

    /// Whether a file has the name of this session's transcript.
    fn names(&self, session: &str, file: &Path) -> bool;

    /// Whether a file is this session's transcript, in its place beneath the root. A report may name any file; only an
    /// owned one is read for a branch or put into an archive. Both paths are canonical.
    fn owns(&self, root: &Path, session: &str, file: &Path) -> bool;

    /// Where the transcript of a session in a folder is; `None` if only the agent can tell.
    fn place(&self, root: &Path, cwd: &str, session: &str) -> Option<PathBuf>;

    /// Where the transcript of a session is that continues next to another one.
    fn beside(&self, other: &Path, session: &str) -> Option<PathBuf>;

    /// An id for a new session, made of random bytes.
    fn new_session(&self, random: [u8; 16]) -> String {
        uuid(random)
    }

    /// The command that resumes a session, run in the folder that the session began in; `None` if the id is not one of
    /// the agent's.
    fn resume_command(&self, session: &str) -> Option<Vec<String>>;

    /// What the user types to the running agent, in the folder that the session began in, so that its screen switches to
    /// that session; `None` where the agent has no such command.
    fn resume_inside(&self, _session: &str) -> Option<String> {
        None
    }

    /// Passes on each turn, in order, of a part of a transcript that begins with a whole line.
    fn turns(&self, part: &mut dyn BufRead, each: &mut dyn FnMut(TranscriptTurn)) -> io::Result<()>;

    /// Reads a transcript from its beginning for what a branch needs to know of it.
    fn survey(&self, transcript: &mut dyn BufRead) -> io::Result<Survey>;

    /// The complete prompt of the turn that begins at the reader's position, as it was typed; `None` if no turn begins
    /// there.
    fn prompt_at(&self, turn: &mut dyn BufRead) -> io::Result<Option<String>>;

    /// Reads a transcript from its beginning and passes on what was said, in order. What cannot be read is left out.
    fn said(&self, transcript: &mut dyn BufRead, each: &mut dyn FnMut(Said)) -> io::Result<()>;

    /// Whether the last turn in a part of a transcript was interrupted. The part may begin within that turn, and in the
    /// middle of a line: so the end of a long transcript is enough.
    fn ends_interrupted(&self, part: &mut dyn BufRead) -> io::Result<bool>;

    /// When that was, where the transcript says it.
    fn interrupted_at(&self, _part: &mut dyn BufRead) -> io::Result<Option<Timestamp>> {
        Ok(None)
    }

    /// Writes the transcript of a branch. May write many small pieces: `to` should be buffered.
    fn branch(&self, from: &mut dyn BufRead, to: &mut dyn Write, branch: &NewBranch<'_>) -> io::Result<Copied>;
}

/// A UUID (version 4) made of random bytes.
pub fn uuid(mut random: [u8; 16]) -> String {
    random[6] = random[6] & 0x0f | 0x40;
    random[8] = random[8] & 0x3f | 0x80;
    let mut out = String::with_capacity(36);
    for (at, byte) in random.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        out.push_str(&format!("{byte:02x}"));
    }
    out
}

/// A turn as recorded in its transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptTurn {
    /// From 1.
    pub number: u32,
    /// The `prompt_id` of this turn's reports, if the transcript has it.
    pub prompt_id: Option<String>,
    /// The id of the user's line.
    pub uuid: Option<String>,
    /// What the user said, cut to 4000 characters.
    pub text: String,
    /// By the agent's clock.
    pub at: Option<Timestamp>,
}

/// What a branch needs to know of a transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// In order.
    pub turns: Vec<TurnAt>,
    /// The end of the last readable line with a newline: the part of the file that a branch can use.
    pub length: u64,
    /// Whether bytes without a newline follow: the transcript's writer is writing a line, or was stopped. That line is
    /// ignored, even if it can be read so far.
    pub cut_off: bool,
    /// Number of whole lines that could not be read.
    pub unreadable: u64,
    /// The offset of each compaction's line.
    pub compactions: Vec<u64>,
    /// The folder that the session began in, where the agent may have to be started to find it.
    pub cwd: Option<String>,
}

/// A turn, and where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnAt {
    pub turn: TranscriptTurn,
    /// The offset of its user's line. The bytes before are the conversation before this turn, if [`TurnAt::after`] is
    /// the number of all turns before.
    pub offset: u64,
    /// How many of the transcript's first turns the conversation had when this turn began: one past the index of the
    /// turn that it follows. That is the number of turns before it, unless the agent itself was rewound and continues
    /// in the same file: then the abandoned turns come in between, and the conversation before this turn ends where the
    /// turn at that index begins.
    ///
    /// It describes one step back and no more. After turns 1, 2, 3 and a rewind to before 2, turn 4 has 1 here. Turn 5
    /// has 4, since it follows that turn, although the conversation before it is turns 1 and 4: no prefix of the file
    /// has 4 without 2 and 3.
    pub after: usize,
}

/// Most characters of a single [`Said`].
pub const MAX_SAID: usize = 16_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// A turn's prompt.
    User,
    /// The agent's words, not its thoughts.
    Assistant,
    /// A short description of a tool call. The tool's result is left out.
    Tool,
    /// The summary that stands for earlier turns. Those turns may be in the transcript as well.
    Summary,
}

/// One thing that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// 0 before the first turn.
    pub turn: u32,
    pub speaker: Speaker,
    /// Cut to [`MAX_SAID`] characters; for a call, such as `Edit src/auth.ts`.
    pub text: String,
    /// The tool's name, for a call.
    pub tool: Option<String>,
    /// By the agent's clock.
    pub at: Option<Timestamp>,
}

/// A branch to be written.
#[derive(Clone, Copy, Debug)]
pub struct NewBranch<'a> {
    /// The id of its session.
    pub id: &'a str,
    /// What stands for the turns that are left out, if anything.
    pub summary: Option<NewSummary<'a>>,
}

/// A summary that replaces turns.
#[derive(Clone, Copy, Debug)]
pub struct NewSummary<'a> {
    pub text: &'a str,
    pub at: Timestamp,
    /// How many bytes of the input are the turns that it replaces, with the rest following it; with `None`, it follows
    /// the whole input.
    pub replaces: Option<u64>,
    /// For the ids of the added lines.
    pub random: [[u8; 16]; 2],
}

/// The result of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Not counting empty ones.
    pub lines: u64,
    /// Fewer than expected if the transcript was truncated meanwhile.
    pub read: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Whether the last line had no newline.
    pub cut_off: bool,
}
