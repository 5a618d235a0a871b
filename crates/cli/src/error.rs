//! The one error at the edge: what happened, the way out, and whose it is to fix.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use piton_engine::model::inverse::{Conflict, Why};
use piton_engine::model::{SessionId, Target};
use piton_engine::view::Unknown;
use piton_engine::{
    AnnotateError, ArchiveError, BlameError, BranchError, CaptureError, ChosenError, ConversationError, DiffError,
    ExportError, ExportSessionError, ForkError, GitError, GitRefusal, ImportError, NoConversation, ObserveError,
    OpenError, OperationError, PlaceError, RecoverError, StoreError, SummarizeError, TargetError, WriteError,
};
use serde::Serialize;

use crate::commands::undo;
use crate::console::Console;
use crate::escape::{escape, escape_path, quoted};
use crate::words::{gibibytes, local_time};

/// Why a command was not done.
#[derive(Debug)]
pub enum Failure {
    /// Something to tell.
    Error {
        /// What happened, to what.
        message: String,
        /// The way out.
        hints: Vec<String>,
        /// Whose it is to fix.
        fault: Fault,
    },
    /// A person was asked and said no.
    Declined,
    /// Whoever read stdout has seen enough, as `head` does.
    ClosedPipe,
}

/// Whose it is to fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The user can.
    User,
    /// A bug, or a damaged store.
    Ours,
}

/// What `--json` prints for an error.
#[derive(Serialize)]
struct Document<'a> {
    error: Body<'a>,
}

#[derive(Serialize)]
struct Body<'a> {
    message: &'a str,
    hints: &'a [String],
}

impl Failure {
    /// What happened, without the way out.
    pub fn message(self) -> String {
        match self {
            Self::Error { message, .. } => message,
            Self::Declined | Self::ClosedPipe => String::new(),
        }
    }

    /// Something that the user can fix.
    pub fn user(message: impl Display) -> Self {
        Self::Error { message: message.to_string(), hints: Vec::new(), fault: Fault::User }
    }

    /// Something that should not have happened.
    pub fn bug(message: impl Display) -> Self {
        let failure = Self::Error { message: message.to_string(), hints: Vec::new(), fault: Fault::Ours };
        failure.hint("this is a bug in piton; please report it with the command and this text")
    }

    /// Output that could not be written.
    pub fn stdout(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::ClosedPipe;
        }
        Self::user(format!("the output cannot be written: {error}"))
    }

    /// Adds a way out.
    pub fn hint(mut self, hint: impl Display) -> Self {
        if let Self::Error { hints, .. } = &mut self {
            hints.push(hint.to_string());
        }
        self
    }

    /// The failure of an operation, for which some ways out name the command.
    pub fn of_operation(error: OperationError, command: &str) -> Self {
        let hints = match &error {
            OperationError::Stale { .. } => vec![format!("run `{command}` again to see the new plan")],
            OperationError::OtherFolder { .. } => {
                vec![format!("`{command} --preview` shows what would change; `--across` goes on all the same")]
            }
            OperationError::Conflict(conflicts) => in_conflict(conflicts, command),
            OperationError::Running(_) => vec![
                format!("`{command} --wait` waits until its turn has ended"),
                format!("`{command} --interrupted` goes on, where you have stopped the agent yourself"),
            ],
            _ => Vec::new(),
        };
        hints.into_iter().fold(Self::from(error), Self::hint)
    }

    /// Says it, and ends with its exit code.
    pub fn report(self, console: &mut Console) -> ExitCode {
        match &self {
            Self::ClosedPipe => return ExitCode::SUCCESS,
            Self::Declined => console.say("Nothing was changed."),
            Self::Error { message, hints, .. } => {
                let paint = console.talk.paint;
                console.say(format!("{} {}", paint.alarm("error:"), escape(message)));
                for hint in hints {
                    console.say(format!("{} {}", paint.id("hint:"), escape(hint)));
                }
            }
        }
        if console.is_json() { self.report_json(console) } else { self.code() }
    }

    /// Only the document of `--json`.
    pub fn report_json(&self, console: &mut Console) -> ExitCode {
        let (message, hints) = match self {
            Self::Error { message, hints, .. } => (message.as_str(), hints.as_slice()),
            Self::Declined => ("it was not confirmed; nothing was changed", &[][..]),
            Self::ClosedPipe => return ExitCode::SUCCESS,
        };
        let hints: Vec<String> = hints.iter().map(|hint| console.meant(hint)).collect();
        let document = Document { error: Body { message, hints: &hints } };
        let _ = console.print(&document, |_, _| Ok(())).and_then(|()| console.flush());
        self.code()
    }

    fn code(&self) -> ExitCode {
        match self {
            Self::ClosedPipe => ExitCode::SUCCESS,
            Self::Declined | Self::Error { fault: Fault::User, .. } => ExitCode::from(1),
            Self::Error { fault: Fault::Ours, .. } => ExitCode::from(2),
        }
    }

    fn ours(message: impl Display) -> Self {
        Self::Error { message: message.to_string(), hints: Vec::new(), fault: Fault::Ours }
    }
}

const DAMAGED: &str = "`piton verify` says which files of which checkpoints need it; all others are whole";
const PLACE: &str = "let your user write there, or choose another place with PITON_HOME";
const AGAIN: &str = "any piton command in this workspace tries again by itself";

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let text = error.to_string();
        match error {
            OpenError::NotKnown(_) => Self::user(text)
                .hint("`piton checkpoint` captures it; `piton init` only makes it known")
                .hint("`--workspace DIR` means another folder"),
            OpenError::Folder { path, source } => of_folder(&path, &source),
            OpenError::Refused { .. } => {
                Self::user(text).hint("go to the project's own folder, or insist with `piton init --force`")
            }
            OpenError::Own { .. } => Self::user(text).hint("go to the folder that you work in"),
            OpenError::Git { .. } => Self::user(text).hint("go to a working tree of the repository"),
            OpenError::Budget(_) => Self::user(text).hint("give more, such as `--budget 5G`"),
            OpenError::Store(error) => error.into(),
            OpenError::Recover(error) => error.into(),
        }
    }
}

impl From<ObserveError> for Failure {
    fn from(error: ObserveError) -> Self {
        match error {
            ObserveError::Open(error) => error.into(),
            ObserveError::Capture(error) => error.into(),
            ObserveError::NoFolder => Self::bug(error),
        }
    }
}

impl From<CaptureError> for Failure {
    fn from(error: CaptureError) -> Self {
        let text = error.to_string();
        match error {
            CaptureError::Name { .. } => Self::user(text).hint("a name such as `before-refactor` works"),
            CaptureError::NameTaken { .. } => {
                Self::user(text).hint("choose another name; nothing was captured, and the old checkpoint is untouched")
            }
            CaptureError::Missing(_) => {
                Self::user(text).hint("`piton rewind TARGET` brings it back; `piton log` lists targets")
            }
            CaptureError::Displaced { path, .. } => {
                Self::user(text).hint(format!("move {} away, and `piton rewind TARGET` brings it back", quoted(&path)))
            }
            CaptureError::EmptyOther(_) => Self::user(text)
                .hint("if a disk is not mounted there, mount it and run the command again")
                .hint("`piton rewind TARGET` puts the captured files there; `piton log` lists targets"),
            CaptureError::TooLarge { .. } => Self::user(text)
                .hint("name what should be left out in a `.pitonignore` file at its root")
                .hint("or protect a folder in it by itself: `piton init DIR`, or `piton init .` for the current one")
                .hint("or take all of it: `piton init --force`"),
            CaptureError::OutOfTime => Self::user(text)
                .hint("run the command again: what was read is kept; `hook.time-budget` gives hooks more"),
            CaptureError::TooMany { .. } => Self::user(format!("{text}; nothing was captured"))
                .hint("automatic checkpoints go on: every turn and step of the session can be rewound to")
                .hint("`piton annotate TARGET TEXT` marks one that is there; after the session there is no limit"),
            CaptureError::Folder { path, source } => of_folder(&path, &source),
            CaptureError::Recover(error) => (*error).into(),
            CaptureError::Store(error) => error.into(),
        }
    }
}

impl From<TargetError> for Failure {
    fn from(error: TargetError) -> Self {
        let text = error.to_string();
        match error {
            TargetError::Bad(_) | TargetError::Unknown(_) => {
                Self::user(text).hint("`piton log` lists the checkpoints; a name is matched whole")
            }
            TargetError::Ambiguous { .. } => Self::user(text).hint("type more letters of the id"),
            TargetError::TooOld { oldest } => {
                Self::user(format!("no checkpoint is that old; the oldest is from {}", local_time(oldest)))
                    .hint("`start` is the oldest checkpoint")
            }
            TargetError::Empty => Self::user(text).hint("`piton checkpoint` captures the workspace"),
            TargetError::Now => Self::user(text).hint("`piton log` lists the checkpoints"),
            TargetError::NoSession(_) => Self::user(text)
                .hint("`piton log` lists the checkpoints; a session is recorded when an agent reports to piton"),
            TargetError::UnknownSession(_) => Self::user(text)
                .hint("`piton sessions` lists them; the beginning of an id is enough, a name is matched whole"),
            TargetError::SeveralSessions { target, live } => {
                let (one, target) = (live.first().map_or("SESSION", String::as_str), target.as_str());
                let way = match target.parse() {
                    Ok(Target::Turn { .. }) => format!("say which, as in `{one}:{target}`"),
                    _ => format!("say which, as in `--session {one}`"),
                };
                Self::user(text).hint(format!("{way}; `piton sessions` lists them"))
            }
            TargetError::NoTurn { session, .. } => {
                Self::user(text).hint(format!("`piton log --session {}` lists its turns", session.short()))
            }
            TargetError::NoStep { .. } => Self::user(text).hint("`piton log --steps` lists the steps of each turn"),
            TargetError::Gap { .. } => Self::user(text)
                .hint("`piton log --checkpoints` lists every checkpoint; the one before it or after it may do"),
            TargetError::NoPath(_) => Self::user(text)
                .hint("a relative path begins at the current folder if that is in the workspace, else at its root"),
            TargetError::UnknownOperation(_) => Self::user(text).hint("`piton ops` lists the operations"),
            TargetError::Store(error) => error.into(),
        }
    }
}

/// What stands before a turn that is another session's than the one that is meant where none is said.
fn of_session(session: Option<&SessionId>) -> String {
    session.map(|id| format!("{}:", id.short())).unwrap_or_default()
}

impl From<ChosenError> for Failure {
    fn from(error: ChosenError) -> Self {
        let failure = Self::user(&error);
        match error {
            ChosenError::Words(_) => undo::FORMS.into_iter().fold(failure, Self::hint),
            ChosenError::Elsewhere { places, here, turn, session } => {
                let of = of_session(session.as_ref());
                let there = places.iter().fold(failure, |failure, place| {
                    let folder = quoted(place);
                    failure.hint(match place.is_dir() {
                        true if session.is_some() => {
                            format!("`piton undo {of}t{turn} --workspace {folder}` takes it back there")
                        }
                        true => format!("`piton undo --workspace {folder}` takes it back there"),
                        false => {
                            let way = format!("piton rewind {of}t{turn} --workspace {folder}");
                            format!("`{way}` brings back what was there before it")
                        }
                    })
                });
                match here {
                    Some(turn) => {
                        there.hint(format!("`piton undo {of}t{turn}` takes back the last one that changed files here"))
                    }
                    None => there,
                }
            }
            ChosenError::ElsewhereUnread { session, here, .. } => {
                let failure = failure.hint("make that store readable for you, and run the command again");
                let of = of_session(session.as_ref());
                let by_number =
                    |turn| format!("`piton undo {of}t{turn}` takes back the last turn that changed files here");
                here.map(by_number).into_iter().fold(failure, Self::hint)
            }
            ChosenError::Unknown { turn, session, why: Unknown::OtherFolder, .. } => {
                let of = of_session(session.as_ref());
                failure.hint(format!("`piton rewind {of}t{turn} --across` brings back what was there before it"))
            }
            ChosenError::Unknown { why: Unknown::BeforeFirstCapture, .. } => {
                failure.hint("nothing older is kept of this folder; git or a backup may have it")
            }
            ChosenError::Unknown { turn, session, why: Unknown::Damaged, .. } => {
                let of = of_session(session.as_ref());
                failure.hint(format!("`piton rewind {of}t{turn}` brings back what was there before it")).hint(DAMAGED)
            }
            ChosenError::Unknown { why: Unknown::Gap { .. }, .. } => {
                failure.hint("`piton log` shows what was not captured, and `piton status` what to do about it")
            }
            ChosenError::NoNumber { .. } => failure.hint("`piton changes` lists them with their numbers"),
            ChosenError::YoursHaveNoNumbers(_) => {
                failure.hint("`t3` with `--owner you` is what you did during turn 3; `--path` and `--since` choose too")
            }
            ChosenError::Nothing { outside: true, .. } => {
                failure.hint("it changed files outside the workspace: `piton undo --outside` takes that back")
            }
            ChosenError::Nothing { undone: true, .. } => {
                failure.hint("`piton ops` lists what was taken back, and `piton redo` brings it back")
            }
            ChosenError::Nothing { .. } => failure
                .hint("`piton changes` lists what the session changed; `--unsure` and `--owner` say whose is meant"),
        }
    }
}

impl From<AnnotateError> for Failure {
    fn from(error: AnnotateError) -> Self {
        let text = error.to_string();
        match error {
            AnnotateError::Target(error) => error.into(),
            AnnotateError::TooLong => Self::user(text).hint("nothing was noted; keep what is longer in a file"),
            AnnotateError::Store(error) => error.into(),
        }
    }
}

impl From<BranchError> for Failure {
    fn from(error: BranchError) -> Self {
        let text = error.to_string();
        match error {
            BranchError::Target(error) => error.into(),
            BranchError::Diff(error) => error.into(),
            BranchError::Store(error) => error.into(),
            BranchError::Name { .. } => Self::user(text).hint("a name such as `try two` works"),
            BranchError::NameTaken { .. } => Self::user(text).hint("choose another name; nothing was changed"),
            BranchError::NotABranch(_) => {
                Self::user(text).hint("`piton branch` lists the branches; your agent deletes its own sessions")
            }
            BranchError::Current(_) => {
                Self::user(text).hint("`piton redo` goes back to where it left; then it can be deleted")
            }
            BranchError::Live(_) => Self::user(text).hint("end the agent's session first; nothing was deleted"),
            BranchError::HasBranches { session, branches } => {
                let all = [&session].into_iter().chain(&branches).map(|id| id.short()).collect::<Vec<_>>().join(" ");
                Self::user(text).hint(format!("`piton branch delete {all}` deletes them together"))
            }
            BranchError::Deleted(id) => {
                Self::user(text).hint(format!("`piton branch restore {}` brings it back", id.short()))
            }
            BranchError::NotDeleted(_) => Self::user(text).hint("`piton branch list --all` lists the deleted ones too"),
            BranchError::Alone(_) => Self::user(text).hint("it is the main line already; nothing was changed"),
            BranchError::Gone(_) => {
                Self::user(text).hint("somebody removed it; its checkpoints stay, and `piton rewind` goes to them")
            }
            BranchError::Occupied(_) => {
                Self::user(text).hint("move that file away and run the command again; nothing was overwritten")
            }
            BranchError::Transcript(_) => {
                Self::user(text).hint("piton moves only files that are in the agent's own folder; nothing was changed")
            }
            BranchError::Io { .. } => {
                Self::user(text).hint("nothing was lost; run the command again when the cause is gone")
            }
            BranchError::SameSession(_) => Self::user(text).hint("`piton sessions --tree` lists all of them"),
        }
    }
}

impl From<ForkError> for Failure {
    fn from(error: ForkError) -> Self {
        let text = error.to_string();
        match error {
            ForkError::Name(error) => error.into(),
            ForkError::Open(error) => error.into(),
            ForkError::NothingSaid(_) => Self::user(text)
                .hint("start a new session of the agent")
                .hint("`--worktree DIR` lays out the code of that moment for it"),
            ForkError::Worktree { .. } => {
                Self::user(text).hint("name a folder that is empty or not there yet, such as `--worktree ../two`")
            }
            ForkError::Operation(error @ OperationError::Conversation(_)) => {
                Self::user(error).hint("`piton log` lists the turns; a fork begins before one, or at its end: `t5.end`")
            }
            ForkError::Operation(error @ OperationError::TooManyBranches(_)) => Self::user(error)
                .hint("`piton branch delete --older-than 30d` clears up; what it deletes can be brought back")
                .hint("`conversation.most-branches` in the settings allows more"),
            ForkError::Operation(error) => error.into(),
        }
    }
}

impl From<DiffError> for Failure {
    fn from(error: DiffError) -> Self {
        match error {
            DiffError::Target(error) => error.into(),
            DiffError::Capture(error) => error.into(),
            DiffError::Store(error) => error.into(),
        }
    }
}

impl From<BlameError> for Failure {
    fn from(error: BlameError) -> Self {
        let text = error.to_string();
        match error {
            BlameError::Target(error) => error.into(),
            BlameError::Capture(error) => error.into(),
            BlameError::Store(error) => error.into(),
            BlameError::Gone { last, .. } => {
                Self::user(text).hint(format!("`--at {}` asks about the last checkpoint that has it", last.short()))
            }
            BlameError::NotThen { .. } => {
                Self::user(text).hint("`piton log --files --path FILE` says when it came and when it went")
            }
            BlameError::Never(_) => Self::user(text)
                .hint("a relative path begins at the current folder if that is in the workspace, else at its root"),
            BlameError::Folder(_) => {
                Self::user(text).hint("`piton log --files --path DIR` says who changed what in it")
            }
            BlameError::Symlink(_) | BlameError::Binary(_) | BlameError::TooLarge { .. } => {
                Self::user(text).hint("`piton log --files --path FILE` says who changed it, and when")
            }
            BlameError::NotCaptured { .. } => Self::user(text)
                .hint("`--at TARGET` asks about a checkpoint that has it; `piton show TARGET` says what one left out"),
            BlameError::NoSuchLine { .. } => Self::user(text).hint("without `-L` all lines are shown"),
        }
    }
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        let text = error.to_string();
        match error {
            ExportError::Target(error) => error.into(),
            ExportError::NothingIn(_) => Self::user(text).hint("`piton sessions` lists those that worked here"),
            ExportError::Place(PlaceError::NoRepository(_)) => {
                Self::user(text).hint("`--into DIR` means another repository; a bare one is made where nothing is")
            }
            ExportError::Place(PlaceError::NotEmpty(_)) => {
                Self::user(text).hint("name a repository's own folder, an empty one, or one that is not there")
            }
            ExportError::Place(PlaceError::Git(error)) | ExportError::Git(error) => error.into(),
            ExportError::Place(PlaceError::Io { .. }) => Self::user(text),
            ExportError::Displaced { path, .. } => Self::user(text)
                .hint("`--into DIR` means a repository of its own; a bare one is made where nothing is")
                .hint(format!("move {} away, and `piton rewind TARGET` brings the folder back", quoted(&path))),
            ExportError::OtherFolder(_) => {
                Self::user(text).hint("`--into DIR` means a repository of its own; a bare one is made where nothing is")
            }
            ExportError::BadName(_) => {
                Self::user(text).hint("a branch's name, such as piton/x, as git takes it: nothing else can be made")
            }
            ExportError::NotIgnored(_) => Self::user(text)
                .hint("without `--include` the output lists those; everything else is in the commits anyway"),
            ExportError::Exists(_) => Self::user(text).hint("another name, or `--force` to replace it"),
            ExportError::CheckedOut { .. } => Self::user(text).hint("a branch that somebody works on is never moved"),
            ExportError::Differs(_) => {
                Self::ours(text).hint("no reference was changed; `piton verify` checks the store")
            }
            ExportError::Store(error) => error.into(),
        }
    }
}

impl From<ExportSessionError> for Failure {
    fn from(error: ExportSessionError) -> Self {
        let text = error.to_string();
        match error {
            ExportSessionError::Target(error) => error.into(),
            ExportSessionError::NothingIn(_) => Self::user(text).hint("`piton sessions` lists those that worked here"),
            ExportSessionError::Unportable { .. } => Self::user(text),
            ExportSessionError::Archive(error) => error.into(),
        }
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        let text = error.to_string();
        match error {
            ImportError::Archive(error) => error.into(),
            ImportError::Store(error) => error.into(),
            ImportError::Here(_) | ImportError::ParentHere { .. } => Self::user(text)
                .hint("nothing was recorded; `--workspace DIR` imports it into the store of another workspace"),
            ImportError::CheckpointHere(_) | ImportError::CalledLike { .. } => {
                Self::user(text).hint("nothing was recorded; an empty folder of its own can take it: `--workspace DIR`")
            }
        }
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        let text = error.to_string();
        match error {
            ArchiveError::Write(error) if error.kind() == io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            ArchiveError::Write(_) | ArchiveError::Read(_) | ArchiveError::TooMuch => Self::user(text),
            ArchiveError::NotOne => Self::user(text).hint("`piton export SESSION` makes one"),
            ArchiveError::Newer { .. } => Self::user(text).hint("a later piton made it; update piton to read it"),
            ArchiveError::OverBudget { .. } => Self::user(text)
                .hint("nothing of it was used; `piton init --budget SIZE` gives a workspace's store more room"),
            ArchiveError::Damaged { .. } => {
                Self::user(text).hint("nothing of it was used; copy it again, or export the session again")
            }
            ArchiveError::Refused(_) => {
                Self::user(text).hint("nothing of it was used; no piton makes such an archive: ask where it comes from")
            }
            ArchiveError::TranscriptChanged => Self::user(text).hint("run the command again"),
            ArchiveError::Store(error) => error.into(),
        }
    }
}

impl From<GitRefusal> for Failure {
    fn from(error: GitRefusal) -> Self {
        let text = error.to_string();
        match error {
            GitRefusal::Target(error) => error.into(),
            GitRefusal::Store(error) => error.into(),
            GitRefusal::Write(WriteError::Git(error)) => error.into(),
            GitRefusal::Write(WriteError::Locked(_)) => {
                Self::user(text).hint("wait until it is done; if no git command runs, remove that file and try again")
            }
            GitRefusal::InProgress(act) => {
                Self::user(text).hint(format!("end it first: git {0} --continue or git {0} --abort", act.as_str()))
            }
            GitRefusal::OtherWorktree { .. } => Self::user(text).hint("check out another branch there first"),
            GitRefusal::ChangedSince(_) => Self::user(text).hint("run the command again to see the new plan"),
            _ => Self::user(text).hint("without `--git` the files alone are rewound, and `.git` is left as it is"),
        }
    }
}

impl From<GitError> for Failure {
    fn from(error: GitError) -> Self {
        let failure = Self::user(&error);
        match error {
            GitError::NotFound => failure.hint("piton itself needs no git; only git state and exports do: install it"),
            GitError::TimedOut { .. } => {
                failure.hint("git waits for something that does not answer: `git status` there may show what it is")
            }
            GitError::Obstacle { .. } => failure.hint("put a file in its place, or remove it; nothing was changed"),
            _ => failure,
        }
    }
}

impl From<ConversationError> for Failure {
    fn from(error: ConversationError) -> Self {
        match error {
            ConversationError::Target(error) => error.into(),
            ConversationError::Store(error) => error.into(),
            ConversationError::Transcript(_) => Self::user(error),
        }
    }
}

impl From<SummarizeError> for Failure {
    fn from(error: SummarizeError) -> Self {
        match error {
            SummarizeError::Operation(error) => error.into(),
            SummarizeError::Name(error) => error.into(),
            SummarizeError::Nothing { .. } => {
                Self::user(error).hint("`--from` means a turn and all later ones, `--up-to` all before it")
            }
            SummarizeError::Conversation(_) | SummarizeError::Bad(_) => Self::user(error),
        }
    }
}

impl From<OperationError> for Failure {
    fn from(error: OperationError) -> Self {
        let text = error.to_string();
        match error {
            OperationError::Target(error) => error.into(),
            OperationError::Stale { .. } | OperationError::OtherFolder { .. } => Self::user(text),
            OperationError::Conflict(_) | OperationError::Running(_) => Self::user(text),
            OperationError::Displaced { path, .. } => {
                Self::user(text).hint(format!("move {} away, and run the command again", quoted(&path)))
            }
            OperationError::Git(error) => error.into(),
            OperationError::Conversation(NoConversation::Within { .. }) => {
                Self::user(text).hint("`--scope code` takes only the files back")
            }
            OperationError::Conversation(_) => {
                Self::user(text).hint("`--scope code` takes the files back and leaves the conversation as it is")
            }
            OperationError::WentOn => Self::user(text).hint("run the command again when the agent has ended its turn"),
            OperationError::DeletedBranch(id) => {
                Self::user(text).hint(format!("`piton branch restore {}` brings it back first", id.short()))
            }
            OperationError::TooManyBranches(_) => Self::user(text)
                .hint("`piton branch delete --older-than 30d` clears up; what it deletes can be brought back")
                .hint("`conversation.most-branches` in the settings allows more")
                .hint("`--scope code` takes the files back and makes no branch"),
            OperationError::StaleGit | OperationError::StaleOutside { .. } | OperationError::StaleTranscript => {
                Self::user(text).hint("run the command again to see the new plan")
            }
            OperationError::ConflictOutside(_) => Self::user(text)
                .hint("without `--outside` everything in the workspace is done")
                .hint("`--conflict` decides, and `--partial` leaves it as it is"),
            OperationError::NotStanding(_) => {
                Self::user(text).hint("`piton ops` lists the operations and how they stand")
            }
            OperationError::Chosen(error) => error.into(),
            OperationError::NothingToRedo => Self::user(text).hint("`piton log` lists the checkpoints to rewind to"),
            OperationError::NothingKnownToRedo => {
                Self::user(text).hint("`piton log` lists the checkpoints to rewind to").hint(DAMAGED)
            }
            OperationError::LaterMayBeLost(id) => Self::user(text)
                .hint(format!(
                    "`piton redo --op {}` takes back that one; `piton ops` lists all that are known",
                    id.short()
                ))
                .hint("`piton log` lists the checkpoints to rewind to")
                .hint(DAMAGED),
            OperationError::RolledBack { full_disk: true, .. } => {
                Self::user(text).hint("free some space and run the command again; nothing was lost")
            }
            OperationError::RolledBack { damaged, .. } if !damaged.is_empty() => {
                Self::ours(text).hint("`--partial` does all the rest, and leaves these paths as they are").hint(DAMAGED)
            }
            OperationError::RolledBack { refused, .. } if !refused.is_empty() => Self::user(text)
                .hint("nothing was lost; run the command again when the cause is gone")
                .hint("`--partial` does all the rest, and leaves what the system refuses as it is"),
            OperationError::RolledBack { .. } => {
                Self::user(text).hint("nothing was lost; run the command again when the cause is gone")
            }
            OperationError::Stuck { .. } => Self::user(text)
                .hint("nothing was lost: the state before is captured")
                .hint(format!("when that path can be written, {AGAIN}")),
            OperationError::PutBackUnrecorded { source, .. } => {
                let fault = Self::from(source).fault();
                let failure = Self::Error { message: text, hints: Vec::new(), fault };
                failure.hint(format!("do not edit these files before that is done; {AGAIN}"))
            }
            OperationError::Unrecorded(error) => {
                let fault = Self::from(error).fault();
                let failure = Self::Error { message: text, hints: Vec::new(), fault };
                failure.hint(format!("nothing was lost; {AGAIN}"))
            }
            OperationError::Capture(error) => error.into(),
            OperationError::Recover(error) => error.into(),
            OperationError::Store(error) => error.into(),
        }
    }
}

impl From<RecoverError> for Failure {
    fn from(error: RecoverError) -> Self {
        let text = error.to_string();
        match error {
            RecoverError::Refused { .. } => Self::user(text)
                .hint("nothing was lost: the state before is captured")
                .hint(format!("when that path can be read and written, {AGAIN}")),
            RecoverError::Capture { source, .. } => match Self::from(*source) {
                Self::Error { hints, fault, .. } => {
                    Self::Error { message: text, hints, fault }.hint(format!("then {AGAIN}; nothing was lost"))
                }
                other => other,
            },
            RecoverError::UnderWay { .. } => Self::user(text).hint("run the command again when it has ended"),
            RecoverError::Home { source, .. } => match Self::from(source) {
                Self::Error { hints, fault, .. } => {
                    Self::Error { message: text, hints, fault }.hint(format!("then {AGAIN}; nothing was lost"))
                }
                other => other,
            },
            RecoverError::Store(error) => error.into(),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let text = error.to_string();
        if error.is_full_disk() {
            return Self::user(text).hint("free some space and run the command again; nothing was lost");
        }
        if error.is_refused() {
            return Self::user(text).hint(PLACE);
        }
        if error.is_damaged_database() {
            return Self::ours(text).hint("`piton verify --repair` makes the database anew from the packs");
        }
        match error {
            // The store's place is the user's choice.
            StoreError::Io { what: "cannot make", .. } => Self::user(text).hint(PLACE),
            StoreError::Io { source, .. } => match source.kind() {
                io::ErrorKind::QuotaExceeded => Self::user(text).hint(PLACE),
                _ => Self::ours(text),
            },
            StoreError::Database(_)
            | StoreError::Older
            | StoreError::Unfinished
            | StoreError::ReadOnlyView
            | StoreError::Stuck
            | StoreError::PackCut { .. }
            | StoreError::Diverged { .. } => Self::ours(text).hint("`piton verify` tells more"),
            StoreError::Damaged(_) | StoreError::Missing(_) | StoreError::DamagedRecord { .. } => {
                Self::ours(text).hint(DAMAGED)
            }
            StoreError::Newer { .. } | StoreError::UnknownRecord { .. } => {
                Self::user(text).hint("a later piton made this store; update piton to use it")
            }
            StoreError::OverBudget { budget, needed } => Self::user(format!("{text}; nothing was recorded"))
                .hint(format!(
                    "allow more: `piton init --budget {}G`",
                    gibibytes(budget.saturating_mul(2).max(needed.saturating_add(needed / 4)))
                ))
                .hint("or name what should be left out in a `.pitonignore` file at the workspace's root"),
            StoreError::Replaced | StoreError::LockLost => Self::user(text).hint("run the command again"),
            StoreError::Busy => {
                Self::user(text).hint("wait until it is done and run the command again; nothing was changed")
            }
        }
    }
}

impl Failure {
    fn fault(&self) -> Fault {
        match self {
            Self::Error { fault, .. } => *fault,
            Self::Declined | Self::ClosedPipe => Fault::User,
        }
    }
}

/// The ways out of conflicts. What is not captured cannot be decided about.
/// More ways out than this are not read.
const MOST_WAYS: usize = 3;

fn in_conflict(conflicts: &[Conflict], command: &str) -> Vec<String> {
    let partial = format!("`{command} --partial` leaves files in conflict as they are, and does the rest");
    if !conflicts.iter().any(|conflict| conflict.why.can_be_decided()) {
        let ways = conflicts.iter().map(|conflict| match conflict.why {
            Why::InTheWay => {
                let path = quoted(conflict.path.as_path());
                format!("`--path {path}` asks for the whole of it, and puts the folder in the place of what is there")
            }
            Why::Along => {
                let path = quoted(conflict.path.as_path());
                format!("`--path {path}` asks for that file too, and overwrites what others edited in it")
            }
            _ => "move what is there out of the workspace".to_owned(),
        });
        let mut ways: Vec<String> = ways.collect();
        ways.dedup();
        ways.truncate(MOST_WAYS);
        ways.push(partial);
        return ways;
    }
    let decide = format!("`{command} --conflict theirs` brings back what was there before");
    let others = "`--conflict ours` keeps what is there now; `--conflict markers` writes both, where it is text";
    vec![partial, decide, others.to_owned()]
}

fn of_folder(path: &std::path::Path, source: &io::Error) -> Failure {
    let failure = Failure::user(format!("{}: {source}", escape_path(path)));
    match source.kind() {
        io::ErrorKind::NotFound => failure.hint("`--workspace DIR` means another folder"),
        io::ErrorKind::NotADirectory => failure.hint("a workspace is a folder; `--path` means one file in it"),
        io::ErrorKind::PermissionDenied => failure.hint("your user must be able to read it"),
        _ => failure,
    }
}
