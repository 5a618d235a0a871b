//! Conversations that agents keep in files, in piton's words: turns, what was said, and branches.
//!
//! Every adapter reads its own format into these values. Bytes are passed through and never held whole: a transcript can
//! be larger than memory.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use piton_model::Timestamp;

use crate::setup::Variable;

/// The files in which an agent keeps its conversations, one for each session.
pub trait Transcripts: Sync {
    /// The folder that holds all of them, by the user's home and by what a variable of the environment says.
    fn root(&self, home: Option<&Path>, variable: &Variable<'_>) -> Option<PathBuf>;

    /// Whether a file has the name of this very session's transcript.
    fn names(&self, session: &str, file: &Path) -> bool;

    /// Whether a file is this very session's transcript, in its place beneath the root. A report may name any file; only
    /// one that is owned is read for a branch or goes into an archive. Both paths are canonical.
    fn owns(&self, root: &Path, session: &str, file: &Path) -> bool;

    /// Where the transcript of a session stands that works in a folder; none where the agent alone can tell.
    fn place(&self, root: &Path, cwd: &str, session: &str) -> Option<PathBuf>;

    /// Where the transcript of a session stands that goes on where another one is.
    fn beside(&self, other: &Path, session: &str) -> Option<PathBuf>;

    /// An id for a session that is not there yet, made of random bytes.
    fn new_session(&self, random: [u8; 16]) -> String {
        uuid(random)
    }

    /// The command that goes on with a session, run in the folder that the session began in; none where the id is none of
    /// the agent's.
    fn resume_command(&self, session: &str) -> Option<Vec<String>>;

    /// Hands over each turn of a part of a transcript that begins with a line, in order.
    fn turns(&self, part: &mut dyn BufRead, each: &mut dyn FnMut(TranscriptTurn)) -> io::Result<()>;

    /// Reads a transcript from its beginning for what a branch needs to know of it.
    fn survey(&self, transcript: &mut dyn BufRead) -> io::Result<Survey>;

    /// The prompt of the turn that begins where the reader stands, whole, as it was typed; none where no turn begins there.
    fn prompt_at(&self, turn: &mut dyn BufRead) -> io::Result<Option<String>>;

    /// Reads a transcript from its beginning and hands over what was said, in order. What cannot be read is left out.
    fn said(&self, transcript: &mut dyn BufRead, each: &mut dyn FnMut(Said)) -> io::Result<()>;

    /// Whether the last turn in a part of a transcript was interrupted. The part may begin within that turn, and in the
    /// middle of a line: so the end of a long transcript is enough.
    fn ends_interrupted(&self, part: &mut dyn BufRead) -> io::Result<bool>;

    /// Writes the transcript of a branch. Many small pieces may be written: `to` should be buffered.
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

/// A turn, as its transcript tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptTurn {
    /// Its number in the session, from 1.
    pub number: u32,
    /// The id that reports of this turn have as `prompt_id`, where the transcript has it.
    pub prompt_id: Option<String>,
    /// The id of the user's line.
    pub uuid: Option<String>,
    /// What the user said, cut to 4000 characters.
    pub text: String,
    /// When, by the agent's clock.
    pub at: Option<Timestamp>,
}

/// A transcript, surveyed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Every turn in order, with its place.
    pub turns: Vec<TurnAt>,
    /// The end of the last line that has a newline and can be read: as much of the file as is good for a branch.
    pub length: u64,
    /// Whether bytes without a newline follow: the transcript's writer is at work at a line, or was stopped at it. That
    /// line is in nothing here, even where what is there of it can be read.
    pub cut_off: bool,
    /// How many whole lines could not be read.
    pub unreadable: u64,
    /// The byte at which the line of each compaction begins.
    pub compactions: Vec<u64>,
    /// The folder that the session began in, where an agent may have to be started to find it.
    pub cwd: Option<String>,
}

/// A turn, and where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnAt {
    /// The turn.
    pub turn: TranscriptTurn,
    /// The byte at which its user's line begins. The bytes before are the conversation before this turn, if
    /// [`TurnAt::after`] is the number of all turns before.
    pub offset: u64,
    /// How many of the transcript's first turns the conversation had when this turn began: one past the place of the turn
    /// that it follows. That is the number of turns before it, unless the agent itself was rewound and goes on in the same
    /// file: then the turns that it went back over stand between, and the conversation before this turn ends where the turn
    /// of that place begins.
    ///
    /// It tells of one step back and no more. After turns 1, 2, 3 and a rewind to before 2, turn 4 has 1 here. Turn 5 has
    /// 4, since it follows that turn, though the conversation before it is turns 1 and 4: no beginning of the file has 4
    /// and is without 2 and 3.
    pub after: usize,
}

/// The most characters of what was said at once.
pub const MAX_SAID: usize = 16_000;

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The user: a turn's prompt.
    User,
    /// The agent: its words, not its thoughts.
    Assistant,
    /// The agent: a call of a tool, in a few words. What the tool answered is left out.
    Tool,
    /// Nobody: the summary that stands for earlier turns. Those turns may be in the transcript too.
    Summary,
}

/// One thing that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The number of its turn; 0 for what comes before the first.
    pub turn: u32,
    /// Who said it.
    pub speaker: Speaker,
    /// What, cut to [`MAX_SAID`] characters; of a call, such as `Edit src/auth.ts`.
    pub text: String,
    /// The tool's name, of a call.
    pub tool: Option<String>,
    /// When, by the agent's clock.
    pub at: Option<Timestamp>,
}

/// A branch to be written.
#[derive(Clone, Copy, Debug)]
pub struct NewBranch<'a> {
    /// The id of its session.
    pub id: &'a str,
    /// What stands for the turns that are left out, where something does.
    pub summary: Option<NewSummary<'a>>,
}

/// A summary in the place of turns.
#[derive(Clone, Copy, Debug)]
pub struct NewSummary<'a> {
    /// What is said of them.
    pub text: &'a str,
    /// When it was made.
    pub at: Timestamp,
    /// So many bytes of what is read are the turns that it replaces, and the rest follows it; with none, it follows what is
    /// read.
    pub replaces: Option<u64>,
    /// For the ids of what is added.
    pub random: [[u8; 16]; 2],
}

/// What a copy did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// How many lines, empty ones apart.
    pub lines: u64,
    /// How many bytes were read. Fewer than there should be: the transcript became shorter meanwhile.
    pub read: u64,
    /// How many bytes were written.
    pub bytes: u64,
    /// Whether the last line had no newline.
    pub cut_off: bool,
}
