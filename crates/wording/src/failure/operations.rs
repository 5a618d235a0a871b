//! Failures of rewind, undo and redo, and of the git state that goes with them.

use std::fmt::Display;

use piton_engine::model::SessionId;
use piton_engine::model::inverse::{Conflict, Why};
use piton_engine::model::target::{meant_turn, split_session};
use piton_engine::view::Unknown;
use piton_engine::{
    Carry, ChangedThere, ChosenError, GitError, GitRefusal, NoConversation, OperationError, StoreError, WriteError,
};

use super::{AGAIN, Failure, damaged, did_you_mean};
use crate::call::{Argument, Call, call, flag, without};
use crate::code::Code;
use crate::escape::quoted;
use crate::text;
use crate::text::Text;

/// More ways out than this are not read.
const MOST_WAYS: usize = 3;

impl Failure {
    /// The failure of an operation, for which some ways out are the same command with a word more.
    pub fn of_operation(error: OperationError, command: &Call) -> Self {
        let with = |flag: &str| command.clone().arg(flag);
        let hints = match &error {
            OperationError::Stale { .. } => vec![text!["run ", command, " again to see the new plan"]],
            OperationError::OtherFolder { .. } => {
                vec![text![with("--preview"), " shows what would change; ", with("--across"), " goes on all the same"]]
            }
            OperationError::Conflict(conflicts) => in_conflict(conflicts, command),
            OperationError::Running(_) => vec![
                text![with("--wait"), " waits until its turn has ended"],
                text![with("--interrupted"), " goes ahead if you have stopped the agent yourself"],
            ],
            _ => Vec::new(),
        };
        Self::from(error).hints(hints)
    }

    /// An agent was waited for, and is at work still; `waited` is how long that was.
    pub fn waited_in_vain(error: OperationError, command: &Call, waited: impl Display) -> Self {
        let interrupted = command.clone().arg("--interrupted");
        Self::from(error)
            .hint(text![format!("this waited for {waited}; "), flag("--wait-at-most").arg("2h"), " waits longer"])
            .hint(text![interrupted, " goes ahead if you have stopped the agent yourself"])
    }

    /// Edits that are not this session's stand in the way of a rewind that asks nobody; `taken` says which.
    pub fn overwrites(taking: &str, command: &Call, redo: &Call, carries: Carry) -> Self {
        let with = |flag: &str| command.clone().arg(flag);
        let mut failure = Self::user(Code::OverwritesOthers, format!("this would {taking}; nothing was changed"));
        if !carries.has_mine() {
            failure = failure.hint(text![with("--keep-mine"), " carries your own edits over"]);
        }
        if !carries.has_others() {
            failure = failure.hint(text![with("--only-session"), " carries those of other sessions over too"]);
        }
        failure.hint(text![with("--yes"), " goes on all the same; ", redo, " takes that back"])
    }

    /// No session is recorded, so none changed anything; `instead` is what can be done all the same.
    pub fn no_session(instead: Text) -> Self {
        let (setup, run) = (call("setup"), call("run").arg("--").asking("CMD"));
        Self::user(Code::NoSession, "no session is recorded here, so no agent changed anything")
            .hint(instead)
            .hint(text!["a session is recorded when an agent reports to piton: ", setup, ", or ", run])
    }
}

impl From<OperationError> for Failure {
    fn from(error: OperationError) -> Self {
        let text = error.to_string();
        let log = || text![call("log"), " lists the checkpoints to rewind to"];
        match error {
            OperationError::Target(error) => error.into(),
            OperationError::Stale { .. } | OperationError::Expired => Self::user(Code::Stale, text),
            OperationError::NotInPlan { .. } => Self::user(Code::NotInPlan, text).hint(text![
                flag("--preview"),
                " shows what would change, and ",
                flag("--except"),
                " takes paths out of that"
            ]),
            OperationError::OnlyWhole { .. } => Self::user(Code::NotInPlan, text)
                .hint("a place of a file can be left out where the file stays and changes"),
            OperationError::OtherFolder { .. } => Self::user(Code::OtherFolder, text),
            OperationError::Conflict(_) => Self::user(Code::Conflict, text),
            OperationError::Running(_) => Self::user(Code::Running, text),
            OperationError::Displaced { path, .. } => Self::user(Code::Displaced, text)
                .hint(format!("move {} away, and run the command again", quoted(&path))),
            OperationError::Git(error) => error.into(),
            OperationError::Conversation(NoConversation::Within { .. }) => Self::user(Code::NoConversation, text)
                .hint(text![flag("--scope").arg("code"), " takes only the files back"]),
            OperationError::Conversation(_) => Self::user(Code::NoConversation, text)
                .hint(text![flag("--scope").arg("code"), " takes the files back and leaves the conversation as it is"]),
            OperationError::WentOn => {
                Self::user(Code::Stale, text).hint("run the command again when the agent has ended its turn")
            }
            OperationError::DeletedBranch(id) => Self::user(Code::BranchDeleted, text)
                .hint(text![call("branch").with("restore", id.short()), " brings it back first"]),
            OperationError::TooManyBranches(_) => Self::too_many_branches(text)
                .hint(text![flag("--scope").arg("code"), " takes the files back and makes no branch"]),
            OperationError::StaleGit | OperationError::StaleOutside { .. } | OperationError::StaleTranscript => {
                Self::user(Code::Stale, text).hint("run the command again to see the new plan")
            }
            OperationError::ConflictOutside(_) => Self::user(Code::ConflictOutside, text)
                .hint(text!["without ", without("--outside"), " everything in the workspace is done"])
                .hint(text![
                    flag("--conflict").asking("WHICH"),
                    " decides, and ",
                    flag("--partial"),
                    " leaves it as it is"
                ]),
            OperationError::NotStanding(_) => {
                Self::user(Code::NotStanding, text).hint(text![call("ops"), " lists the operations and how they stand"])
            }
            OperationError::Chosen(error) => error.into(),
            OperationError::NothingToRedo => Self::user(Code::NothingToRedo, text).hint(log()),
            OperationError::NothingKnownToRedo => Self::user(Code::OperationsLost, text).hint(log()).hint(damaged()),
            OperationError::LaterMayBeLost(id) => {
                let that = call("redo").with("--op", id.short());
                Self::user(Code::OperationsLost, text)
                    .hint(text![that, " takes back that one; ", call("ops"), " lists all that are known"])
                    .hint(log())
                    .hint(damaged())
            }
            OperationError::RolledBack { full_disk: true, .. } => {
                Self::user(Code::FullDisk, text).hint("free some space and run the command again; nothing was lost")
            }
            OperationError::RolledBack { damaged: paths, .. } if !paths.is_empty() => {
                Self::ours(Code::StoreDamaged, text)
                    .hint(text![flag("--partial"), " does all the rest, and leaves these paths as they are"])
                    .hint(damaged())
            }
            OperationError::RolledBack { refused, .. } if !refused.is_empty() => Self::user(Code::Refused, text)
                .hint("nothing was lost; run the command again when the cause is gone")
                .hint(text![flag("--partial"), " does all the rest, and leaves what the system refuses as it is"]),
            OperationError::RolledBack { .. } => Self::user(Code::RolledBack, text)
                .hint("nothing was lost; run the command again when the cause is gone"),
            OperationError::Stuck { .. } => Self::user(Code::HalfDone, text)
                .hint("nothing was lost: the state before is captured")
                .hint(format!("when that path can be written, {AGAIN}")),
            OperationError::PutBackUnrecorded { source, .. } => {
                unrecorded(text, source).hint(format!("do not edit these files before that is done; {AGAIN}"))
            }
            OperationError::Unrecorded(source) => unrecorded(text, source).hint(format!("nothing was lost; {AGAIN}")),
            OperationError::Capture(error) => error.into(),
            OperationError::Recover(error) => error.into(),
            OperationError::Store(error) => error.into(),
        }
    }
}

fn unrecorded(message: String, cause: StoreError) -> Failure {
    Failure { code: Code::Unrecorded, message, hints: Vec::new(), fault: Failure::from(cause).fault }
}

impl From<ChosenError> for Failure {
    fn from(error: ChosenError) -> Self {
        let of = |code| Self::user(code, &error);
        let undo = || call("undo");
        match &error {
            ChosenError::Words(words) => of(Code::BadChoice)
                .hints(meant(words))
                .hint(text![
                    undo(),
                    " takes back the last turn, `last` the last change, `last 3` three of them, `all` everything"
                ])
                .hint(text![
                    "`t3` is a turn, `t3.2` a step, `SESSION:t3` one of another session, `7 9` are numbers of ",
                    call("changes")
                ]),
            ChosenError::Elsewhere { places, here, turn: changed, session } => {
                let there = places.iter().map(|ChangedThere { path, is_there }| match (is_there, session) {
                    (true, Some(_)) => {
                        text![undo().arg(turn(session, *changed)).there(path), " takes it back there"]
                    }
                    (true, None) => text![undo().there(path), " takes it back there"],
                    (false, _) => {
                        let back = call("rewind").arg(turn(session, *changed)).there(path);
                        text![back, " brings back what was there before it"]
                    }
                });
                let here = here.map(|here| {
                    text![undo().arg(turn(session, here)), " takes back the last one that changed files here"]
                });
                of(Code::ChangedElsewhere).hints(there).hints(here)
            }
            ChosenError::ElsewhereUnread { session, here, .. } => {
                let here = here.map(|here| {
                    text![undo().arg(turn(session, here)), " takes back the last turn that changed files here"]
                });
                of(Code::ElsewhereUnread)
                    .hint("make that store readable for you, and run the command again")
                    .hints(here)
            }
            ChosenError::Unknown { turn: number, session, why, .. } => {
                let failure = of(Code::ChangesUnknown);
                let back = call("rewind").arg(turn(session, *number));
                match why {
                    Unknown::OtherFolder => {
                        failure.hint(text![back.arg("--across"), " brings back what was there before it"])
                    }
                    Unknown::BeforeFirstCapture => {
                        failure.hint("nothing older is kept of this folder; git or a backup may have it")
                    }
                    Unknown::Damaged => {
                        failure.hint(text![back, " brings back what was there before it"]).hint(damaged())
                    }
                    Unknown::NotCaptured => failure.hint(text![call("checkpoint"), " captures what is there now"]),
                    Unknown::Gap { .. } => failure.hint(text![
                        call("log"),
                        " shows what was not captured, and ",
                        call("status"),
                        " what to do about it"
                    ]),
                }
            }
            ChosenError::NoNumber { .. } => {
                of(Code::UnknownChange).hint(text![call("changes"), " lists them with their numbers"])
            }
            ChosenError::YoursHaveNoNumbers(_) => of(Code::NoNumbers).hint(text![
                "`t3` with ",
                flag("--owner").arg("you"),
                " is what you did during turn 3; `--path` and `--since` choose too"
            ]),
            ChosenError::Nothing { outside: true, .. } => of(Code::NothingToUndo).hint(text![
                "it changed files outside the workspace: ",
                undo().arg("--outside"),
                " takes that back"
            ]),
            ChosenError::NothingOfYours { is_all: false, .. } => of(Code::NothingToUndo)
                .hint(text![undo().arg("all").with("--owner", "you"), " takes back all your own changes"]),
            ChosenError::NothingOfYours { .. } => of(Code::NothingToUndo)
                .hint(text![call("changes").arg("--all"), " lists your own changes during the session"]),
            ChosenError::Accepted { .. } => of(Code::NothingToUndo).hint(text![
                undo().arg("t3"),
                " takes a turn back anyway; ",
                call("accept").arg("--take-back").arg("t3"),
                " makes it like any other again"
            ]),
            ChosenError::Nothing { undone: true, .. } => of(Code::NothingToUndo).hint(text![
                call("ops"),
                " lists what was taken back, and ",
                call("redo"),
                " brings it back"
            ]),
            ChosenError::Nothing { .. } => of(Code::NothingToUndo).hint(text![
                call("changes"),
                " lists what the session changed; ",
                flag("--unsure"),
                " and ",
                flag("--owner").arg("you"),
                " take back more"
            ]),
        }
    }
}

/// What was likely meant by words that mean nothing: `t3` for `T3`.
fn meant(words: &str) -> Option<Text> {
    let (session, place) = split_session(words);
    let turn = meant_turn(place)?;
    did_you_mean(&[session.map_or_else(|| turn.to_string(), |session| format!("{session}:{turn}"))])
}

/// What means a turn: with its session before it where that is not the one which is meant where none is said.
fn turn(session: &Option<SessionId>, turn: u32) -> String {
    match session {
        Some(session) => format!("{}:t{turn}", session.short()),
        None => format!("t{turn}"),
    }
}

/// The ways out of conflicts. What is not captured cannot be decided about.
fn in_conflict(conflicts: &[Conflict], command: &Call) -> Vec<Text> {
    let with = |flag: &str| command.clone().arg(flag);
    let partial = text![with("--partial"), " leaves files in conflict as they are, and does the rest"];
    if !conflicts.iter().any(|conflict| conflict.why.can_be_decided()) {
        let ways = conflicts.iter().map(|conflict| {
            let path = || flag("--path").arg(conflict.path.as_path());
            match conflict.why {
                Why::InTheWay => {
                    text![path(), " asks for the whole of it, and puts the folder in the place of what is there"]
                }
                Why::Along => {
                    let mine = with("--keep-mine");
                    text![
                        mine,
                        " carries your own edits over; ",
                        path(),
                        " asks for that file too, and overwrites them"
                    ]
                }
                Why::Beginning => {
                    let whole = " makes all files as they were at that checkpoint";
                    text![flag("--across"), " without ", flag("--keep-mine"), whole]
                }
                _ => text!["move what is there out of the workspace"],
            }
        });
        let mut ways: Vec<Text> = ways.collect();
        ways.dedup();
        ways.truncate(MOST_WAYS);
        ways.push(partial);
        return ways;
    }
    let decide = text![with("--conflict").arg("before"), " brings back what was there before"];
    let others = text![
        flag("--conflict").arg("now"),
        " keeps what is there now; ",
        flag("--conflict").arg("markers"),
        " writes both, where it is text"
    ];
    let mut ways = vec![partial, decide, others];
    if let Some(conflict) = conflicts.iter().find(|conflict| conflict.why == Why::Lines) {
        // With that the lines come back to where they were.
        let is_path = |word: &Argument| matches!(word, Argument::Word(word) if word == "--path");
        let both = match conflict.others.first().filter(|_| command.arguments.iter().any(is_path)) {
            Some(other) => Some(with("--path").arg(other.as_path())),
            // A redo knows no owners.
            None => (command.verb != "redo").then(|| with("--unsure")),
        };
        let both = both.map(|both| text![both, " takes back the file too that the lines came from"]);
        ways.splice(0..0, both);
    }
    ways
}

impl From<GitRefusal> for Failure {
    fn from(error: GitRefusal) -> Self {
        let of = |code| Self::user(code, &error);
        let without = text!["without ", without("--git"), " the files alone are rewound, and `.git` is left as it is"];
        match error {
            GitRefusal::Target(error) => error.into(),
            GitRefusal::Store(error) => error.into(),
            GitRefusal::Write(WriteError::Git(error)) => error.into(),
            GitRefusal::Write(WriteError::Locked(_)) => {
                of(Code::GitBusy).hint("wait until it is done; if no git command runs, remove that file and try again")
            }
            GitRefusal::InProgress(act) => {
                of(Code::GitBusy).hint(format!("end it first: git {0} --continue or git {0} --abort", act.as_str()))
            }
            GitRefusal::OtherWorktree { .. } => of(Code::CheckedOut).hint("check out another branch there first"),
            GitRefusal::ChangedSince(_) => of(Code::Stale).hint("run the command again to see the new plan"),
            GitRefusal::NoRepository(_) => of(Code::NoRepository).hint(without),
            GitRefusal::Write(WriteError::Io { .. } | WriteError::Index(_)) | GitRefusal::Unreadable(_) => {
                of(Code::GitFailed).hint(without)
            }
            GitRefusal::NoState
            | GitRefusal::Incomplete(_)
            | GitRefusal::WasInProgress(_)
            | GitRefusal::NotABranch(_)
            | GitRefusal::CommitGone { .. }
            | GitRefusal::BlobGone(_) => of(Code::GitStateLost).hint(without),
        }
    }
}

impl From<GitError> for Failure {
    fn from(error: GitError) -> Self {
        let failure = Self::user(Code::GitFailed, &error);
        match error {
            GitError::NotFound => Self { code: Code::NoGit, ..failure }
                .hint("piton itself needs no git; only git state and exports do: install it"),
            GitError::TimedOut { .. } => {
                failure.hint("git waits for something that does not answer: `git status` there may show what it is")
            }
            GitError::Obstacle { .. } => failure.hint("put a file in its place, or remove it; nothing was changed"),
            GitError::Io(_) | GitError::Failed { .. } | GitError::TooMuch { .. } => failure,
        }
    }
}
