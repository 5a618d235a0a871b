//! Who made a change: the rules that assign an owner to a path's difference, and the evidence for it.
//!
//! A wrong owner that is claimed with certainty would make an undo take back somebody else's work, so anything
//! uncertain is [`Owner::Unsure`], with everyone it may have been.
//!
//! A tool's *window* is open from its before event to its after event (or to what shows that it must have ended). The
//! rules, of which the first that holds decides:
//!
//! | # | situation | owner |
//! |---|---|---|
//! | 1 | one open window names the path | that step, `named`; several, or a *rival*: unsure, those |
//! | 2 | after an edit tool and before the end of its batch, a path that it named, which nobody edited by hand since the prompt | that step, `followed`; a *rival*: unsure, both |
//! | 3 | the same interval, no window open, another path or one edited by hand | unsure: the step, you |
//! | 4 | one shell whose command is a *writer* of the path | that step, `window`; a *rival*: unsure, both, you |
//! | 5 | git's HEAD or index moved and the content equals it | in a shell's window: `window`; outside: you |
//! | 6 | shells of two sessions | unsure: both, you |
//! | 7 | a shell; the path was edited by hand in the last two hours, or an editor has it open | unsure: the step, you |
//! | 8 | a shell whose command is *idle* | unsure: the step, you |
//! | 9 | a shell, otherwise | that step, `window` |
//! | 10 | a command that the user started and can work beside (`piton run`, interactive or for over a minute) | an existing file: unsure; a new one: `window` |
//! | 11 | a window that was cut off | up to its end as above; later: unsure. No end known: what its command names and changed within a minute of its start is its own |
//! | 12 | a command in the background, and no other window covers the change | unsure: the step, you |
//! | 13 | no window | you |
//! | 14 | a deletion of which nobody knows when it was | sure only by 1, 4, 5, or in a window that covers everything since the last capture |
//!
//! What writes and what is idle, [`crate::command`] reads from a command's text. A rival is a shell of another session that
//! is open then and whose command is a writer of the path too: two sessions may write one file at once, and an undo of one must
//! never take the other's lines. In row 2, where no tool of the session is open any more, a command that is not known to be
//! idle is one as well. Row 10 comes before row 9 for the windows
//! that it is about.
//!
//! Beside the table:
//!
//! - A tool that failed, or was never heard of again, may not have run at all: the user may have edited the file in its
//!   place. So row 1 holds only for one that reports that it ran.
//! - An edit tool is taken to say all that it writes: what else changes while it runs is unsure.
//! - Found while no window was open: the user's own, unless events were lost and a tool may have run unnoticed
//!   ([`Judged::beside_a_missed_tool`]).
//! - A shell of a session that works here takes precedence over one of a session that works elsewhere, such as in the
//!   folder around this worktree: two agents side by side in worktrees of one repository hardly ever write into each
//!   other's.
//! - Workspaces may be nested. A tool of a session that works only in one part of this folder counts in that part;
//!   outside it, its shell yields to every other one and is never the only candidate.
//! - Where nothing was captured when a tool began, the same change includes what the user did before it: unsure.
//! - What disappeared with the workspace's folder did so before anyone found the folder gone: it is judged as of that
//!   moment, whatever ran since ([`FolderGone`]).
//! - A capture made while another session's tool is running cannot know that it still runs. What is in doubt for that
//!   reason alone is settled by the tool's own after event ([`settles`]).

use serde::{Deserialize, Serialize};

use crate::command::{CommandClass, CommandPlace, Verdict};
use crate::diff::ChangeKind;
use crate::id::{OperationId, SessionId};
use crate::path::WorkspacePath;
use crate::record::Cause;
use crate::session::{StepRef, TurnContext};
use crate::time::Timestamp;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "who", rename_all = "kebab-case")]
pub enum Owner {
    Step {
        #[serde(flatten)]
        step: StepRef,
        evidence: Evidence,
    },
    You,
    /// A rewind, an undo or a redo.
    Operation {
        operation: OperationId,
    },
    Unsure {
        /// Everyone it may have been.
        candidates: Vec<Candidate>,
    },
}

impl Owner {
    /// Who it is, without which.
    pub fn kind(&self) -> OwnerKind {
        match self {
            Self::Step { .. } => OwnerKind::Step,
            Self::You => OwnerKind::You,
            Self::Operation { .. } => OwnerKind::Operation,
            Self::Unsure { .. } => OwnerKind::Unsure,
        }
    }

    /// Whether it is a step of one of some sessions, or may be.
    pub fn may_be_of(&self, is_meant: impl Fn(&SessionId) -> bool) -> bool {
        match self {
            Self::Step { step, .. } => is_meant(&step.session),
            Self::Unsure { candidates } => {
                candidates.iter().any(|one| matches!(one, Candidate::Step(step) if is_meant(&step.session)))
            }
            Self::You | Self::Operation { .. } => false,
        }
    }

    /// Whether it is the user, or may be.
    pub fn may_be_you(&self) -> bool {
        match self {
            Self::You => true,
            Self::Unsure { candidates } => candidates.is_empty() || candidates.contains(&Candidate::You),
            Self::Step { .. } | Self::Operation { .. } => false,
        }
    }

    /// The one turn that made it: that of the step, or of all candidates if they share one.
    pub fn turn(&self) -> Option<(&SessionId, u32)> {
        match self {
            Self::Step { step, .. } => Some((&step.session, step.turn)),
            Self::Unsure { candidates } => {
                let mut turns = candidates.iter().map(|c| match c {
                    Candidate::Step(step) => Some((&step.session, step.turn)),
                    Candidate::You => None,
                });
                let first = turns.next()??;
                turns.all(|turn| turn == Some(first)).then_some(first)
            }
            Self::You | Self::Operation { .. } => None,
        }
    }
}

/// The kinds of owners, as rows and records name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OwnerKind {
    Step,
    You,
    Operation,
    Unsure,
}

impl OwnerKind {
    /// The word that it is recorded by.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::You => "you",
            Self::Operation => "operation",
            Self::Unsure => "unsure",
        }
    }

    /// The kind of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Step, Self::You, Self::Operation, Self::Unsure].into_iter().find(|kind| kind.as_str() == word)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// The tool names the file.
    Named,
    /// The file changed while only this tool ran.
    Window,
    /// The same of a command that went on for long and is not known to write the file: only the time speaks for it.
    Time,
    /// The tool named the file, and it changed again before the tools that were called together had all ended: by one of
    /// the agent's own hooks, such as a formatter.
    Followed,
}

impl Evidence {
    /// The word in every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Named => "named",
            Self::Window => "window",
            Self::Time => "time",
            Self::Followed => "followed",
        }
    }

    /// The evidence of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Named, Self::Window, Self::Time, Self::Followed].into_iter().find(|evidence| evidence.as_str() == word)
    }
}

/// Who may have made a change.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Candidate {
    Step(StepRef),
    You,
}

/// Changes of one owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owned {
    pub owner: Owner,
    /// The step that becomes the owner once its own after event has arrived; see [`settles`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settles: Option<Settles>,
    /// Why the owner is unsure; older records do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<Doubt>,
    pub paths: Vec<ChangedPath>,
}

impl Owned {
    /// Changes whose owner is final.
    pub fn of(owner: Owner, paths: Vec<ChangedPath>) -> Self {
        Self { owner, settles: None, doubt: None, paths }
    }
}

/// The tool call that will prove to be a change's owner if it reports its own end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settles {
    #[serde(flatten)]
    pub step: StepRef,
    /// The evidence for it in that case.
    pub evidence: Evidence,
}

impl From<Settles> for Owner {
    fn from(settles: Settles) -> Self {
        Self::Step { step: settles.step, evidence: settles.evidence }
    }
}

/// Why nobody can tell for sure whose a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Doubt {
    pub why: Why,
    /// When the change was made, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// When the user had edited the file by hand before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Several tools name the file.
    SeveralNamed,
    /// The tool that names the file failed or was cut off: it may not have run.
    MayNotHaveRun,
    /// Nothing was captured when the tool began.
    NotCapturedBefore,
    /// It changed between the end of an edit tool and that of the tools that were called with it.
    AfterEdit,
    /// An edit tool ran that names other files.
    OtherFile,
    /// Several tools ran at once.
    SeveralTools,
    /// Tools of several sessions ran at once.
    SeveralSessions,
    /// The user had edited the file by hand not long before.
    HandEdit,
    /// An editor has the file open.
    Editor,
    /// The command does not write such files by itself, as far as its text tells.
    Idle,
    /// The user started the command and could work beside it.
    Attended,
    /// Only a command in the background ran.
    Background,
    /// The tool was cut off, and nobody knows whether it still wrote then.
    CutOff,
    /// It went at a time that nobody knows.
    Undated,
    /// The tool had not reported its end, and somebody else looked.
    StillRunning,
    /// The only tool is of a session that works in another part of the folder.
    Elsewhere,
    /// Tools may have run that nobody recorded.
    Missed,
    /// A record of that time is lost.
    Lost,
    /// It was written where nothing was captured: a rule left it out, or it could not be read.
    OutOfSight,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedPath {
    pub path: WorkspacePath,
    pub kind: ChangeKind,
}

/// The time during which a tool may have changed files.
#[derive(Clone, Debug)]
pub struct Window {
    pub step: StepRef,
    /// The files of this workspace that the tool names.
    pub named: Vec<WorkspacePath>,
    /// Whether the tool names any files, here or elsewhere. If it does, they are taken to be all that it writes.
    pub says: bool,
    /// In nanoseconds since 1970; [`UNKNOWN`] if its before event never arrived.
    pub opened: i64,
    /// Nothing was captured when it opened: a change found now may be older.
    pub late: bool,
    /// In nanoseconds since 1970, if known; of one that was cut off, when that was.
    pub closed: Option<i64>,
    /// Nobody heard of its end: the user interrupted it, or its agent was killed.
    pub cut_off: bool,
    /// The tool has returned and may still write.
    pub background: bool,
    /// The shell command, where it is one and its text is known.
    pub command: Option<Command>,
    /// The user started it and could work beside it.
    pub attended: bool,
    /// Of an edit tool that has ended: when the tools had all ended that were called with it, or how long such a batch
    /// is taken to go on; hooks of the agent's may have changed files until then. In nanoseconds since 1970.
    pub followed_until: Option<i64>,
    /// It had ended before the last capture: only what followed it may still be found.
    pub past: bool,
    /// When its turn's prompt came, in nanoseconds since 1970.
    pub prompted: i64,
    /// Its session works elsewhere; this workspace is only captured along.
    pub along: bool,
    /// Its session works only in this part of the workspace, which is a workspace of its own.
    pub part: Option<WorkspacePath>,
    /// The tool reported that it failed or was interrupted: it may not have run at all.
    pub failed: bool,
}

/// A shell command, and where it ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    pub class: CommandClass,
    /// The workspace whose paths are asked about, absolute.
    pub root: Vec<u8>,
    /// The folder that it ran in, absolute.
    pub folder: Vec<u8>,
}

impl Window {
    /// Whether the tool's session works in a part of the workspace that does not contain this path.
    fn is_elsewhere(&self, path: &WorkspacePath) -> bool {
        self.part.as_ref().is_some_and(|part| !path.is_within(part))
    }

    fn is_naming(&self, path: &WorkspacePath) -> bool {
        self.named.iter().any(|named| path.is_within(named))
    }

    /// Whether its command writes a path.
    fn verdict(&self, path: &WorkspacePath) -> Verdict {
        match &self.command {
            Some(command) => {
                command.class.verdict(path, &CommandPlace { root: &command.root, folder: &command.folder })
            }
            None => Verdict::Unknown,
        }
    }
}

/// [`Window::opened`] of a tool whose before event never arrived.
pub const UNKNOWN: i64 = i64::MIN;

/// The event that caused this capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// This tool has ended.
    After(StepRef),
    /// The turn continues or ends: before another tool, before a compaction, at the turn's end.
    Within(SessionId, u32),
    /// Nothing says that a tool was just running: a prompt, a session's start, a person's request.
    Between,
}

impl Moment {
    /// For an event that is, or would have been, a checkpoint.
    pub fn of(cause: Cause, place: &TurnContext) -> Self {
        match (cause, place.step) {
            (Cause::AfterTool, Some(step)) => {
                Self::After(StepRef { session: place.session.clone(), turn: place.turn, step })
            }
            (Cause::Prompt | Cause::SessionStart, _) => Self::Between,
            _ => Self::Within(place.session.clone(), place.turn),
        }
    }
}

/// A workspace's folder that was found gone, with everything in it.
///
/// Nobody deletes its files one by one: whoever removed the folder removed them, including those that the user was the
/// last to change.
#[derive(Clone, Debug)]
pub struct FolderGone {
    /// The event at which it was found gone.
    pub moment: Moment,
    /// In nanoseconds since 1970.
    pub at: i64,
}

impl FolderGone {
    /// Who removed it, given the windows that were open at any time since the last capture and had opened by then.
    pub fn owner(&self, path: &WorkspacePath, windows: &[Window]) -> Owner {
        let then =
            |window: &Window| Window { closed: window.closed.filter(|closed| *closed <= self.at), ..window.clone() };
        let windows: Vec<Window> = windows.iter().map(then).collect();
        judge(ObservedChange { deleted: true, ..ObservedChange::of(path) }, &windows, &self.moment).owner
    }
}

/// A change whose owner is to be determined.
#[derive(Clone, Copy, Debug)]
pub struct ObservedChange<'a> {
    pub path: &'a WorkspacePath,
    /// When it was made, in nanoseconds since 1970, if known; for a deletion, the latest possible time.
    pub when: Option<i64>,
    /// A deleted file has no time of its own.
    pub deleted: bool,
    /// The path was not there before.
    pub created: bool,
    /// When the user last edited it by hand, in the two hours before; in nanoseconds since 1970.
    pub hand_edit: Option<i64>,
    /// An editor has it open, as files beside it show.
    pub is_open_in_editor: bool,
    /// Git's HEAD or index moved since the last capture, and the content is what they say.
    pub is_as_in_git: bool,
}

impl<'a> ObservedChange<'a> {
    /// A change of which nothing is known but its path.
    pub fn of(path: &'a WorkspacePath) -> Self {
        Self {
            path,
            when: None,
            deleted: false,
            created: false,
            hand_edit: None,
            is_open_in_editor: false,
            is_as_in_git: false,
        }
    }
}

/// Who made a change, and why that is in doubt where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    pub owner: Owner,
    pub doubt: Option<Doubt>,
}

/// In nanoseconds. Filesystem clocks tick coarsely, so a change may appear slightly older than it is.
const TICK: i64 = 20_000_000;

/// How long after its start what an interrupted command names is its own, where nobody knows its end; in nanoseconds.
const MINUTE: i64 = 60_000_000_000;

/// What changes while a command goes on for longer than this, and is not known to be written by it, is its own by time alone; in
/// nanoseconds.
const LONG: i64 = 10_000_000_000;

/// The owner of a change found at `moment`, given the windows that were open at any time since the last capture, and the
/// edit tools whose batches had not ended by then.
pub fn owner(found: ObservedChange<'_>, windows: &[Window], moment: &Moment) -> Owner {
    judge(found, windows, moment).owner
}

/// The same, with why it is in doubt.
pub fn judge(found: ObservedChange<'_>, windows: &[Window], moment: &Moment) -> Judged {
    Table { found, windows, moment }.judge()
}

/// The rules, in their order.
struct Table<'a> {
    found: ObservedChange<'a>,
    windows: &'a [Window],
    moment: &'a Moment,
}

impl Table<'_> {
    fn judge(&self) -> Judged {
        // A tool that names the files it writes elsewhere has nothing to do with this path.
        let is_about = |window: &&Window| {
            !(window.says && window.is_elsewhere(self.found.path)) || window.is_naming(self.found.path)
        };
        let open: Vec<&Window> = self.windows.iter().filter(|w| self.is_open_then(w)).filter(is_about).collect();
        if let Some(judged) = self.named(&open) {
            return judged;
        }
        let mut silent: Vec<&Window> = open.iter().copied().filter(|window| !window.says).collect();
        if silent.iter().any(|window| !self.gives_way(window)) {
            silent.retain(|window| !self.gives_way(window));
        }
        let (background, shells): (Vec<&Window>, Vec<&Window>) =
            silent.into_iter().partition(|window| window.background && !self.ended_now(window));
        let judged = self.followed(&open).or_else(|| self.written(&open, &shells));
        let judged = judged.or_else(|| self.as_in_git(&open, &shells));
        judged.unwrap_or_else(|| match &shells[..] {
            [] if open.is_empty() => Judged::sure(Owner::You),
            [] => match open.iter().copied().filter(|window| window.says).collect::<Vec<_>>() {
                says if !says.is_empty() => self.unsure(&says, true, Why::OtherFile),
                _ => self.unsure(&background, true, Why::Background),
            },
            _ => self.in_shells(&shells),
        })
    }

    fn is_open_then(&self, window: &Window) -> bool {
        if window.past {
            return false;
        }
        match self.found.when {
            Some(when) => {
                // One that was cut off may have gone on for a while.
                let is_over = !window.cut_off && window.closed.is_some_and(|closed| when > closed + TICK);
                when >= window.opened.saturating_sub(TICK) && (self.found.deleted || !is_over)
            }
            None => true,
        }
    }

    /// Whether its session works elsewhere, so that the shells of those that work here take precedence.
    fn gives_way(&self, window: &Window) -> bool {
        window.along || window.is_elsewhere(self.found.path)
    }

    /// The shells of other sessions that are known to write the path too, beside windows that a rule would name.
    fn rivals<'w>(&self, open: &[&'w Window], of: &[&Window]) -> Vec<&'w Window> {
        let mut rivals = self.possible_rivals(open, of);
        rivals.retain(|window| window.verdict(self.found.path) == Verdict::Writer);
        rivals
    }

    /// Those and others that are not known to write nothing.
    fn possible_rivals<'w>(&self, open: &[&'w Window], of: &[&Window]) -> Vec<&'w Window> {
        let is_here = of.iter().any(|window| !self.gives_way(window));
        let is_rival = |window: &&'w Window| {
            let is_others = of.iter().all(|one| one.step.session != window.step.session);
            is_others
                && !window.says
                && match window.verdict(self.found.path) {
                    Verdict::Idle => false,
                    Verdict::Writer => true,
                    Verdict::Unknown => {
                        !(is_here && self.gives_way(window)) && (!window.background || self.ended_now(window))
                    }
                }
        };
        open.iter().copied().filter(is_rival).collect()
    }

    fn ended_now(&self, window: &Window) -> bool {
        matches!(self.moment, Moment::After(step) if *step == window.step)
    }

    /// A window without an end, at a moment that does not belong to its turn: nobody knows when it ended.
    fn is_endless(&self, window: &Window) -> bool {
        let is_others = || match self.moment {
            Moment::After(step) => (&step.session, step.turn) != (&window.step.session, window.step.turn),
            Moment::Within(session, turn) => (session, *turn) != (&window.step.session, window.step.turn),
            Moment::Between => true,
        };
        window.closed.is_none() && !self.ended_now(window) && (window.cut_off || is_others())
    }

    /// A change without a time of its own may be from before or after a window that has closed.
    fn is_undated(&self, window: &Window) -> bool {
        window.closed.is_some() && !self.ended_now(window) && (self.found.deleted || self.found.when.is_none())
    }

    /// It may have been deleted after the window closed, or changed after the tool was cut off.
    fn is_later(&self, window: &Window) -> bool {
        (self.found.deleted || window.cut_off)
            && window.closed.zip(self.found.when).is_some_and(|(closed, when)| when > closed + TICK)
    }

    /// Row 1.
    fn named(&self, open: &[&Window]) -> Option<Judged> {
        let naming: Vec<&Window> = open.iter().copied().filter(|window| window.is_naming(self.found.path)).collect();
        let why_not = |window: &Window| {
            if window.failed || window.cut_off {
                return Some(Why::MayNotHaveRun);
            }
            if window.late {
                return Some(Why::NotCapturedBefore);
            }
            match (self.is_endless(window) || window.background && !self.ended_now(window), self.is_undated(window)) {
                (true, _) => Some(Why::StillRunning),
                (_, true) => Some(Why::Undated),
                _ => (window.closed.is_none() && !self.ended_now(window)).then_some(Why::StillRunning),
            }
        };
        if naming.is_empty() {
            return None;
        }
        let rivals = self.rivals(open, &naming);
        Some(match naming[..] {
            [one] if rivals.is_empty() => match why_not(one) {
                None => Judged::sure(Owner::Step { step: one.step.clone(), evidence: Evidence::Named }),
                Some(why) => self.unsure(&[one], true, why),
            },
            _ => {
                let may_not_be = |window: &&Window| {
                    why_not(window).is_some_and(|why| why != Why::StillRunning || self.is_endless(window))
                };
                let why = if rivals.is_empty() { Why::SeveralNamed } else { Why::SeveralSessions };
                let or_you = naming.iter().any(may_not_be);
                self.unsure(&[naming, rivals].concat(), or_you, why)
            }
        })
    }

    /// Rows 2 and 3.
    fn followed(&self, open: &[&Window]) -> Option<Judged> {
        let when = self.found.when?;
        let is_in_between = |window: &&Window| {
            let ended = window.closed.is_some_and(|closed| when > closed);
            ended && window.followed_until.is_some_and(|until| when <= until.saturating_add(TICK))
        };
        let ended: Vec<&Window> =
            self.windows.iter().filter(is_in_between).filter(|w| !w.failed && !w.cut_off).collect();
        let named = ended.iter().copied().filter(|window| window.is_naming(self.found.path)).max_by_key(|w| w.closed);
        if let Some(one) = named {
            let rivals = self.possible_rivals(open, &[one]);
            if !rivals.is_empty() {
                return Some(self.unsure(&[vec![one], rivals].concat(), false, Why::SeveralSessions));
            }
            if self.found.hand_edit.is_some_and(|edited| edited >= one.prompted) {
                return Some(self.unsure(&[one], true, Why::HandEdit));
            }
            return Some(Judged::sure(Owner::Step { step: one.step.clone(), evidence: Evidence::Followed }));
        }
        // Another tool has begun, so that this one may be it.
        if open.iter().any(|window| !window.background) {
            return None;
        }
        let one = ended.into_iter().filter(|w| !w.is_elsewhere(self.found.path)).max_by_key(|window| window.closed)?;
        Some(self.unsure(&[one], true, Why::AfterEdit))
    }

    /// Row 4, and of row 11 that of which no end is known.
    fn written(&self, open: &[&Window], shells: &[&Window]) -> Option<Judged> {
        let is_writer = |window: &&&Window| window.verdict(self.found.path) == Verdict::Writer;
        let writers: Vec<&Window> = shells.iter().filter(is_writer).copied().collect();
        let [one] = writers[..] else { return None };
        let is_soon =
            |window: &Window| self.found.when.is_some_and(|when| when <= window.opened.saturating_add(MINUTE));
        let is_its = match (one.cut_off, one.closed) {
            (true, None) => is_soon(one),
            (true, Some(_)) => !self.is_later(one) || self.found.deleted,
            (false, _) => !self.is_endless(one),
        };
        let is_seen = !one.late && one.opened != UNKNOWN && !one.is_elsewhere(self.found.path);
        if !(is_its && is_seen) {
            return None;
        }
        Some(match self.rivals(open, &[one]) {
            rivals if rivals.is_empty() => Judged::window(one),
            rivals => self.unsure(&[vec![one], rivals].concat(), true, Why::SeveralSessions),
        })
    }

    /// Row 5.
    fn as_in_git(&self, open: &[&Window], shells: &[&Window]) -> Option<Judged> {
        if !self.found.is_as_in_git {
            return None;
        }
        match shells {
            [] => open.iter().all(|window| window.background).then(|| Judged::sure(Owner::You)),
            // A command that is known not to write may have staged what the user wrote.
            [one] if one.verdict(self.found.path) != Verdict::Idle && self.why_not(one, true).is_none() => {
                Some(Judged::window(one))
            }
            _ => None,
        }
    }

    /// Rows 6 to 10, and what is left of 11 and 14.
    fn in_shells(&self, shells: &[&Window]) -> Judged {
        let is_of_several = shells.iter().any(|window| window.step.session != shells[0].step.session);
        if is_of_several && shells.iter().all(|window| !window.is_elsewhere(self.found.path)) {
            return self.unsure(shells, true, Why::SeveralSessions);
        }
        if self.found.hand_edit.is_some() {
            return self.unsure(shells, true, Why::HandEdit);
        }
        if self.found.is_open_in_editor {
            return self.unsure(shells, true, Why::Editor);
        }
        // Of tools that run side by side, those that write nothing have not done it.
        let is_at_work = |window: &&&Window| window.verdict(self.found.path) != Verdict::Idle;
        let at_work: Vec<&Window> = shells.iter().filter(is_at_work).copied().collect();
        match at_work[..] {
            [] => self.unsure(shells, true, Why::Idle),
            [one] if one.attended && !self.found.created => self.unsure(&[one], true, Why::Attended),
            [one] => match self.why_not(one, false) {
                None if one.attended || !self.is_long(one) => Judged::window(one),
                None => Judged::sure(Owner::Step { step: one.step.clone(), evidence: Evidence::Time }),
                Some(why) => self.unsure(&[one], true, why),
            },
            _ => {
                let why = at_work.iter().find_map(|window| self.why_not(window, false));
                self.unsure(&at_work, why.is_some(), why.unwrap_or(Why::SeveralTools))
            }
        }
    }

    /// Whether a tool went on for long, as far as is known.
    fn is_long(&self, window: &Window) -> bool {
        let until = window.closed.or(self.found.when);
        window.opened != UNKNOWN && until.is_some_and(|until| until.saturating_sub(window.opened) > LONG)
    }

    /// Why a change in a shell's window is not surely its own. `is_known`: something else than the time shows whose it is.
    fn why_not(&self, window: &Window, is_known: bool) -> Option<Why> {
        let checks = [
            (window.late || window.opened == UNKNOWN, Why::NotCapturedBefore),
            (window.is_elsewhere(self.found.path), Why::Elsewhere),
            (window.cut_off && (window.closed.is_none() || self.is_later(window)), Why::CutOff),
            (self.is_endless(window), Why::StillRunning),
            (!is_known && (self.is_undated(window) || self.is_later(window)), Why::Undated),
        ];
        checks.into_iter().find(|(holds, _)| *holds).map(|(_, why)| why)
    }

    fn unsure(&self, windows: &[&Window], or_you: bool, why: Why) -> Judged {
        let steps = windows.iter().map(|window| Candidate::Step(window.step.clone()));
        let candidates = steps.chain(or_you.then_some(Candidate::You)).collect();
        let at = |ns: i64| Timestamp(ns.div_euclid(1_000_000));
        let edited = self.found.hand_edit.filter(|_| why == Why::HandEdit).map(at);
        let doubt = Doubt { why, at: self.found.when.filter(|_| !self.found.deleted).map(at), edited };
        Judged { owner: Owner::Unsure { candidates }, doubt: Some(doubt) }
    }
}

impl Judged {
    fn sure(owner: Owner) -> Self {
        Self { owner, doubt: None }
    }

    fn window(window: &Window) -> Self {
        Self::sure(Owner::Step { step: window.step.clone(), evidence: Evidence::Window })
    }

    /// The same where a tool may have run unrecorded: what rested only on the absence of other tools is now in doubt.
    pub fn beside_a_missed_tool(self) -> Self {
        let owner = beside_a_missed_tool(self.owner);
        Self { doubt: doubt_after(&owner, self.doubt, Why::Missed), owner }
    }

    /// The same where a record of the timeline is lost: nothing lists what that record found, so anyone may have
    /// contributed.
    pub fn across_a_lost_record(self) -> Self {
        let owner = across_a_lost_record(self.owner);
        Self { doubt: doubt_after(&owner, self.doubt, Why::Lost), owner }
    }
}

fn doubt_after(owner: &Owner, doubt: Option<Doubt>, why: Why) -> Option<Doubt> {
    let is_unsure = matches!(owner, Owner::Unsure { .. });
    is_unsure.then(|| doubt.unwrap_or(Doubt { why, at: None, edited: None }))
}

/// The step that a doubtful change will prove to be from, if that step reports its own end.
///
/// The capture was made while its tool ran, for another session's event or for a person. At that moment nobody can tell
/// whether the tool still runs or was given up. Its own after event tells, and then the change is as certain as if that
/// event had been the first to find it.
pub fn settles(owner: &Owner, found: ObservedChange<'_>, windows: &[Window]) -> Option<Settles> {
    let Owner::Unsure { candidates } = owner else { return None };
    let mut steps = candidates.iter().filter_map(|candidate| match candidate {
        Candidate::Step(step) => Some(step),
        Candidate::You => None,
    });
    let (Some(step), None) = (steps.next(), steps.next()) else { return None };
    let is_at_work =
        |window: &Window| window.step == *step && window.closed.is_none() && !window.background && !window.cut_off;
    if !windows.iter().any(is_at_work) {
        return None;
    }
    match self::owner(found, windows, &Moment::After(step.clone())) {
        Owner::Step { step: then, evidence } if then == *step => Some(Settles { step: then, evidence }),
        _ => None,
    }
}

/// The owner of a change where a tool may have run unrecorded: what rested only on the absence of other tools is now in
/// doubt.
pub fn beside_a_missed_tool(owner: Owner) -> Owner {
    match owner {
        Owner::You => Owner::Unsure { candidates: vec![Candidate::You] },
        Owner::Step { step, evidence: Evidence::Window | Evidence::Time | Evidence::Followed } => {
            Owner::Unsure { candidates: vec![Candidate::Step(step), Candidate::You] }
        }
        Owner::Unsure { mut candidates } => {
            if !candidates.is_empty() && !candidates.contains(&Candidate::You) {
                candidates.push(Candidate::You);
            }
            Owner::Unsure { candidates }
        }
        named @ (Owner::Step { .. } | Owner::Operation { .. }) => named,
    }
}

/// The owner of a change where a record of the timeline is lost: nothing lists what that record found, so anyone may
/// have contributed.
pub fn across_a_lost_record(owner: Owner) -> Owner {
    match owner {
        Owner::Step { step, .. } => Owner::Unsure { candidates: vec![Candidate::Step(step), Candidate::You] },
        owner => beside_a_missed_tool(owner),
    }
}

#[cfg(test)]
mod tests;
