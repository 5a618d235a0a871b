//! Failures of what leaves the store, and of what comes into it.

use std::io;

use piton_engine::{ArchiveError, ExportError, ExportSessionError, ImportError, PlaceError};

use super::Failure;
use crate::call::{call, flag, without};
use crate::code::Code;
use crate::escape::quoted;
use crate::text;
use crate::text::Text;

/// Where else commits could go.
fn into(what: &str) -> Text {
    text![flag("--into").asking("DIR"), " means ", what, "; where nothing is, a bare one is made"]
}

fn nothing_in(text: String) -> Failure {
    Failure::user(Code::NothingToExport, text).hint(text![call("sessions"), " lists those that worked here"])
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        let text = error.to_string();
        match error {
            ExportError::Target(error) => error.into(),
            ExportError::NothingIn(_) => nothing_in(text),
            ExportError::Place(PlaceError::NoRepository(_)) => {
                Self::user(Code::NoRepository, text).hint(into("another repository"))
            }
            ExportError::Place(PlaceError::NotEmpty(_)) => Self::user(Code::PathTaken, text)
                .hint("name a repository's own folder, an empty one, or one that is not there"),
            ExportError::Place(PlaceError::Git(error)) | ExportError::Git(error) => error.into(),
            ExportError::Place(PlaceError::Io { .. }) => Self::user(Code::CannotWrite, text),
            ExportError::Displaced { path, .. } => {
                Self::user(Code::Displaced, text).hint(into("a repository of its own")).hint(text![
                    "move ",
                    quoted(&path),
                    " away, and ",
                    call("rewind").asking("TARGET"),
                    " brings the folder back"
                ])
            }
            ExportError::OtherFolder(_) => Self::user(Code::OtherFolder, text).hint(into("a repository of its own")),
            ExportError::BadName(_) => Self::user(Code::BadReference, text)
                .hint("a branch's name, such as piton/x, as git takes it: nothing else can be made"),
            ExportError::NotIgnored(_) => Self::user(Code::NotLeftOut, text).hint(text![
                "without ",
                without("--include"),
                " the output lists those; everything else is in the commits anyway"
            ]),
            ExportError::Exists(_) => Self::user(Code::NameTaken, text).hint(text![
                "choose another name, or ",
                flag("--force"),
                " to replace it"
            ]),
            ExportError::CheckedOut { .. } => {
                Self::user(Code::CheckedOut, text).hint("a branch that somebody works on is never moved")
            }
            ExportError::Differs(_) => Self::ours(Code::GitDiffers, text).hint(text![
                "no reference was changed; ",
                call("verify"),
                " checks the store"
            ]),
            ExportError::Store(error) => error.into(),
        }
    }
}

impl From<ExportSessionError> for Failure {
    fn from(error: ExportSessionError) -> Self {
        let text = error.to_string();
        match error {
            ExportSessionError::Target(error) => error.into(),
            ExportSessionError::NothingIn(_) => nothing_in(text),
            ExportSessionError::Unportable { .. } => Self::user(Code::NotPortable, text),
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
            ImportError::Here(_) | ImportError::ParentHere { .. } => Self::user(Code::AlreadyHere, text).hint(text![
                "nothing was recorded; ",
                flag("--workspace").asking("DIR"),
                " imports it into the store of another workspace"
            ]),
            ImportError::CheckpointHere(_) | ImportError::CalledLike { .. } => Self::user(Code::AlreadyHere, text)
                .hint(text![
                    "nothing was recorded; an empty folder of its own can take it: ",
                    flag("--workspace").asking("DIR")
                ]),
        }
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        let text = error.to_string();
        match error {
            ArchiveError::Write(error) if error.kind() == io::ErrorKind::BrokenPipe => Self::output(error),
            ArchiveError::Write(_) => Self::user(Code::CannotWrite, text),
            ArchiveError::Read(_) => Self::user(Code::CannotRead, text),
            ArchiveError::TooMuch => Self::user(Code::TooLarge, text),
            ArchiveError::NotOne => {
                Self::user(Code::NotAnArchive, text).hint(text![call("export").asking("SESSION"), " makes one"])
            }
            ArchiveError::Newer { .. } => {
                Self::user(Code::ArchiveNewer, text).hint("a newer piton made it; update piton to read it")
            }
            ArchiveError::OverBudget { .. } => {
                let more = call("init").arg("--budget").asking("SIZE");
                Self::user(Code::OverBudget, text).hint(text![
                    "nothing of it was used; ",
                    more,
                    " gives a workspace's store more room"
                ])
            }
            ArchiveError::Damaged { .. } => Self::user(Code::ArchiveDamaged, text)
                .hint("nothing of it was used; copy it again, or export the session again"),
            ArchiveError::Refused(_) => Self::user(Code::ArchiveRefused, text)
                .hint("nothing of it was used; no piton makes such an archive: ask where it comes from"),
            ArchiveError::TranscriptChanged => Self::user(Code::Stale, text).hint("run the command again"),
            ArchiveError::Store(error) => error.into(),
        }
    }
}
