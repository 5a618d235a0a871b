//! Failures of workspaces, captures and stores.

use std::io;
use std::path::Path;

use piton_engine::{CaptureError, ObserveError, OpenError, RecoverError, StoreError};

use super::{AGAIN, Failure, damaged};
use crate::call::{call, flag};
use crate::code::Code;
use crate::escape::{escape_path, quoted};
use crate::text;
use crate::text::Text;
use crate::words::gibibytes;

const PLACE: &str = "let your user write there, or choose another place with PITON_HOME";

/// How to name another folder; nothing for whoever has just named one.
pub fn another_folder() -> Text {
    text![flag("--workspace").asking("DIR"), " means another folder"]
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let text = error.to_string();
        match error {
            OpenError::NotKnown(_) => Self::user(Code::NotKnown, text)
                .hint(text![call("checkpoint"), " captures it; ", call("init"), " only makes it known"])
                .hint(another_folder()),
            OpenError::Folder { path, source } => of_folder(&path, &source),
            OpenError::Refused { .. } => Self::user(Code::NotAProject, text)
                .hint(text!["go to the project's own folder, or insist with ", call("init").arg("--force")]),
            OpenError::Own { .. } => Self::user(Code::OwnFolder, text).hint("go to the folder that you work in"),
            OpenError::Git { .. } => Self::user(Code::GitFolder, text).hint("go to a working tree of the repository"),
            OpenError::Budget(_) => {
                Self::user(Code::BadBudget, text).hint(text!["give more, such as ", flag("--budget").arg("5G")])
            }
            OpenError::Store(error) => error.into(),
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
        let back = || call("rewind").asking("TARGET");
        match error {
            CaptureError::Name { .. } => Self::user(Code::BadName, text).hint("a name such as `before-refactor` works"),
            CaptureError::NameTaken { .. } => Self::user(Code::NameTaken, text)
                .hint("choose another name; nothing was captured, and the old checkpoint is untouched"),
            CaptureError::Missing(_) => Self::user(Code::WorkspaceGone, text).hint(text![
                back(),
                " brings it back; ",
                call("log"),
                " lists targets"
            ]),
            CaptureError::Displaced { path, .. } => Self::user(Code::Displaced, text).hint(text![
                "move ",
                quoted(&path),
                " away, and ",
                back(),
                " brings it back"
            ]),
            CaptureError::EmptyOther(_) => Self::user(Code::EmptyFolder, text)
                .hint("if a disk is not mounted there, mount it and run the command again")
                .hint(text![back(), " puts the captured files there; ", call("log"), " lists targets"]),
            CaptureError::TooLarge { .. } => {
                let (other, this) = (call("init").asking("DIR"), call("init").there("."));
                Self::user(Code::TooLarge, text)
                    .hint("name what should be left out in a `.pitonignore` file at its root")
                    .hint(text!["or protect a folder in it by itself: ", other, ", or ", this, " for the current one"])
                    .hint(text!["or take all of it: ", call("init").arg("--force")])
            }
            CaptureError::OutOfTime => Self::user(Code::OutOfTime, text)
                .hint("run the command again: what was read is kept; `hook.time-budget` gives hooks more"),
            CaptureError::TooMany { .. } => {
                let annotate = call("annotate").asking("TARGET").asking("TEXT");
                Self::user(Code::TooManyCheckpoints, format!("{text}; nothing was captured"))
                    .hint("automatic checkpoints go on: every turn and step of the session can be rewound to")
                    .hint(text![annotate, " marks one that is there; after the session there is no limit"])
            }
            CaptureError::Folder { path, source } => of_folder(&path, &source),
            CaptureError::Recover(error) => (*error).into(),
            CaptureError::Store(error) => error.into(),
        }
    }
}

impl From<RecoverError> for Failure {
    fn from(error: RecoverError) -> Self {
        let text = error.to_string();
        let of = |cause: Self| {
            Self { code: Code::CutOff, message: text.clone(), ..cause }.hint(format!("then {AGAIN}; nothing was lost"))
        };
        match error {
            RecoverError::Refused { .. } => Self::user(Code::CutOff, text)
                .hint("nothing was lost: the state before is captured")
                .hint(format!("when that path can be read and written, {AGAIN}")),
            RecoverError::Capture { source, .. } => of((*source).into()),
            RecoverError::UnderWay { .. } => {
                Self::user(Code::UnderWay, text).hint("run the command again when it has ended")
            }
            RecoverError::Home { source, .. } => of(source.into()),
            RecoverError::Store(error) => error.into(),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let text = error.to_string();
        if error.is_full_disk() {
            return Self::user(Code::FullDisk, text)
                .hint("free some space and run the command again; nothing was lost");
        }
        if error.is_refused() {
            return Self::user(Code::StoreRefused, text).hint(PLACE);
        }
        if error.is_damaged_database() {
            let repair = call("verify").arg("--repair");
            return Self::ours(Code::StoreDamaged, text).hint(text![repair, " rebuilds the database from the packs"]);
        }
        match error {
            // The store's place is the user's choice.
            StoreError::Io { what: "cannot make", .. } => Self::user(Code::StoreRefused, text).hint(PLACE),
            StoreError::Io { source, .. } => match source.kind() {
                io::ErrorKind::QuotaExceeded => Self::user(Code::FullDisk, text).hint(PLACE),
                _ => Self::ours(Code::StoreFailed, text),
            },
            StoreError::Database(_) | StoreError::Stuck | StoreError::ReadOnlyView => {
                Self::ours(Code::StoreFailed, text).hint(text![call("verify"), " says more"])
            }
            StoreError::Older | StoreError::Unfinished | StoreError::PackCut { .. } | StoreError::Diverged { .. } => {
                Self::ours(Code::StoreDamaged, text).hint(text![call("verify"), " says more"])
            }
            StoreError::Damaged(_) | StoreError::Missing(_) | StoreError::DamagedRecord { .. } => {
                Self::ours(Code::StoreDamaged, text).hint(damaged())
            }
            StoreError::Newer { .. } | StoreError::UnknownRecord { .. } => {
                Self::user(Code::StoreNewer, text).hint("a newer piton made this store; update piton to use it")
            }
            StoreError::OverBudget { budget, needed } => {
                let more = gibibytes(budget.saturating_mul(2).max(needed.saturating_add(needed / 4)));
                Self::user(Code::OverBudget, format!("{text}; nothing was recorded"))
                    .hint(text!["allow more: ", call("init").with("--budget", format!("{more}G"))])
                    .hint("or name what should be left out in a `.pitonignore` file at the workspace's root")
            }
            StoreError::Replaced | StoreError::LockLost => {
                Self::user(Code::StoreReplaced, text).hint("run the command again")
            }
            StoreError::Busy => Self::user(Code::StoreBusy, text)
                .hint("wait until it is done and run the command again; nothing was changed"),
        }
    }
}

fn of_folder(path: &Path, source: &io::Error) -> Failure {
    let text = format!("{}: {source}", escape_path(path));
    match source.kind() {
        io::ErrorKind::NotFound => Failure::user(Code::NoFolder, text).hint(another_folder()),
        io::ErrorKind::NotADirectory => Failure::user(Code::NoFolder, text).hint(text![
            "a workspace is a folder; ",
            flag("--path"),
            " means one file in it"
        ]),
        io::ErrorKind::PermissionDenied => {
            Failure::user(Code::FolderUnreadable, text).hint("your user must be able to read it")
        }
        _ => Failure::user(Code::FolderUnreadable, text),
    }
}
