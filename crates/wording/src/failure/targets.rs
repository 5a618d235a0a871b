//! Failures of finding what is meant, and of reading it.

use piton_engine::model::When;
use piton_engine::{AcceptError, AnnotateError, BlameError, DiffError, FileError, TargetError};

use super::Failure;
use crate::call::{call, flag, without};
use crate::code::Code;
use crate::text;
use crate::text::Text;

const RELATIVE: &str = "a relative path begins at the current folder if that is in the workspace, else at its root";

/// `did you mean `t5`?`; nothing where nothing is near.
pub fn did_you_mean(near: &[String]) -> Option<Text> {
    let all: Vec<_> = near.iter().map(|one| format!("`{one}`")).collect();
    let (last, others) = all.split_last()?;
    let or = if others.is_empty() { "" } else { " or " };
    Some(format!("did you mean {}{or}{last}?", others.join(", ")).into())
}

impl From<TargetError> for Failure {
    fn from(error: TargetError) -> Self {
        let text = error.to_string();
        let log = || call("log");
        match error {
            TargetError::Bad(_) => {
                Self::user(Code::BadTarget, text).hint(text![log(), " lists the checkpoints; a name is matched whole"])
            }
            TargetError::Unknown { near, .. } => Self::user(Code::UnknownTarget, text)
                .hints(did_you_mean(&near))
                .hint(text![log(), " lists the checkpoints; a name is matched whole"]),
            TargetError::Operation(id) => Self::user(Code::UnknownTarget, text).hint(text![
                call("undo").with("--op", id.short()),
                " takes that operation back; ",
                log().arg("--checkpoints"),
                " lists the checkpoints around it"
            ]),
            TargetError::Ambiguous { .. } => {
                Self::user(Code::AmbiguousTarget, text).hint("type more letters of the id")
            }
            TargetError::TooOld { oldest } => Self::user(Code::TooOld, "no checkpoint is that old")
                .hint(text!["`start` is the oldest checkpoint, from ", oldest]),
            TargetError::Empty => {
                Self::user(Code::NothingCaptured, text).hint(text![call("checkpoint"), " captures the workspace"])
            }
            TargetError::Now => Self::user(Code::TargetIsNow, text).hint(text![log(), " lists the checkpoints"]),
            TargetError::NoSession(_) => Self::user(Code::NoSession, text)
                .hint(text![log(), " lists the checkpoints; a session is recorded when an agent reports to piton"]),
            TargetError::UnknownSession { near, .. } => {
                Self::user(Code::UnknownSession, text).hints(did_you_mean(&near)).hint(text![
                    call("sessions"),
                    " lists them; the beginning of an id is enough, a name is matched whole"
                ])
            }
            TargetError::SeveralSessions { target, live } => {
                let (one, target) = (live.first().map_or("SESSION", String::as_str), target.as_str());
                let way = match target.parse() {
                    Ok(When::Turn { .. }) => text![format!("say which, as in `{one}:{target}`")],
                    _ => text!["say which, as in ", flag("--session").arg(one)],
                };
                Self::user(Code::SeveralSessions, text).hint(text![way, "; ", call("sessions"), " lists them"])
            }
            TargetError::NoTurn { session, .. } => {
                Self::user(Code::UnknownTurn, text).hint(text![log().of_session(&session), " lists its turns"])
            }
            TargetError::InParent { .. } => {
                Self::user(Code::NotCaptured, text).hint(text![call("verify"), " lists what cannot be had"])
            }
            TargetError::NoStep { .. } => {
                Self::user(Code::UnknownStep, text).hint(text![log().arg("--steps"), " lists the steps of each turn"])
            }
            TargetError::Gap { .. } => Self::user(Code::NotCaptured, text).hint(text![
                log().arg("--checkpoints"),
                " lists every checkpoint; the one before it or after it may do"
            ]),
            TargetError::NoPath(_) => Self::user(Code::UnknownPath, text).hint(RELATIVE),
            TargetError::UnknownOperation(_) => {
                Self::user(Code::UnknownOperation, text).hint(text![call("ops"), " lists the operations"])
            }
            TargetError::Store(error) => error.into(),
        }
    }
}

impl From<AcceptError> for Failure {
    fn from(error: AcceptError) -> Self {
        let text = error.to_string();
        match error {
            AcceptError::Target(error) => error.into(),
            AcceptError::Store(error) => error.into(),
            AcceptError::Nothing => Self::user(Code::NothingToAccept, text)
                .hint(text![call("changes"), " lists what the session changed"])
                .hint(RELATIVE),
            AcceptError::NotAccepted => {
                Self::user(Code::NothingToAccept, text).hint(text![call("log"), " marks the turns that are accepted"])
            }
        }
    }
}

impl From<AnnotateError> for Failure {
    fn from(error: AnnotateError) -> Self {
        let text = error.to_string();
        match error {
            AnnotateError::Target(error) => error.into(),
            AnnotateError::TooLong => {
                Self::user(Code::NoteTooLong, text).hint("nothing was noted; keep what is longer in a file")
            }
            AnnotateError::Store(error) => error.into(),
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
        let log = |of| call("log").arg("--files").arg("--path").asking(of);
        match error {
            BlameError::Target(error) => error.into(),
            BlameError::Capture(error) => error.into(),
            BlameError::Store(error) => error.into(),
            BlameError::Gone { last, .. } => Self::user(Code::NotThen, text)
                .hint(text![flag("--at").arg(last.short()), " asks about the last checkpoint that has it"]),
            BlameError::NotThen { .. } => {
                Self::user(Code::NotThen, text).hint(text![log("FILE"), " says when it came and when it went"])
            }
            BlameError::Never(_) => Self::user(Code::UnknownPath, text).hint(RELATIVE),
            BlameError::Folder(_) => {
                Self::user(Code::NotAFile, text).hint(text![log("DIR"), " says who changed what in it"])
            }
            BlameError::Symlink(_) => {
                Self::user(Code::NotAFile, text).hint(text![log("FILE"), " says who changed it, and when"])
            }
            BlameError::Binary(_) | BlameError::TooLarge { .. } => {
                Self::user(Code::NotText, text).hint(text![log("FILE"), " says who changed it, and when"])
            }
            BlameError::NotCaptured { .. } => Self::user(Code::NotCaptured, text).hint(text![
                flag("--at").asking("TARGET"),
                " asks about a checkpoint that has it; ",
                call("show").asking("TARGET"),
                " says what one left out"
            ]),
            BlameError::NoSuchLine { .. } => {
                Self::user(Code::NoSuchLine, text).hint(text!["without ", without("-L"), " all lines are shown"])
            }
        }
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        let text = error.to_string();
        let log = || call("log").arg("--files").arg("--path").asking("FILE");
        match error {
            FileError::Target(error) => error.into(),
            FileError::Store(error) => error.into(),
            FileError::Folder { checkpoint, .. } => Self::user(Code::NotAFile, text).hint(text![
                call("checkout").arg(checkpoint.short()).asking("DIR"),
                " lays out all files of that moment in another folder"
            ]),
            FileError::NotThen { .. } => {
                Self::user(Code::NotThen, text).hint(text![log(), " says when it came and when it went"]).hint(RELATIVE)
            }
            FileError::NotCaptured { checkpoint, .. } => Self::user(Code::NotCaptured, text)
                .hint(text![call("show").arg(checkpoint.short()), " lists what that checkpoint left out"]),
        }
    }
}
