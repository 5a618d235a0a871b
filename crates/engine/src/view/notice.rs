//! What happened, as a stream: a cursor into it, and one notice per record.

use std::fmt;
use std::str::FromStr;

use piton_model::{CheckpointId, Ending, OperationId, Rank, SessionId, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};

use super::{CheckpointView, GapView, OperationView, OriginView, PathView};

/// A position in a store's records: after the record with this number.
///
/// Its text, such as `kmzqkmzqkmzqkmzq.1.204`, goes through a URL, a file or an argument as it is. Whoever keeps one need not know
/// what is in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cursor {
    /// The workspace that the store belongs to.
    pub store: WorkspaceId,
    /// The view that numbered the records. A view rebuilt after damage, or because records were removed, has another.
    pub generation: u64,
    /// The last record before this place; 0 before the first.
    pub seq: u64,
}

/// Why a text is not a cursor.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("this is not a cursor")]
pub struct BadCursor;

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.store, self.generation, self.seq)
    }
}

impl FromStr for Cursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<Self, BadCursor> {
        let number = |part: &str| {
            // Only the canonical form: no sign, no leading zero.
            part.parse::<i64>().ok().filter(|n| *n >= 0 && n.to_string() == part).map(|n| n as u64).ok_or(BadCursor)
        };
        let mut parts = text.split('.');
        let [Some(store), Some(generation), Some(seq), None] = [(); 4].map(|()| parts.next()) else {
            return Err(BadCursor);
        };
        let store = store.parse().map_err(|_| BadCursor)?;
        Ok(Self { store, generation: number(generation)?, seq: number(seq)? })
    }
}

impl TryFrom<String> for Cursor {
    type Error = BadCursor;

    fn try_from(text: String) -> Result<Self, BadCursor> {
        text.parse()
    }
}

impl From<Cursor> for String {
    fn from(cursor: Cursor) -> Self {
        cursor.to_string()
    }
}

/// What was recorded after a cursor.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Since {
    /// All notices up to `next`, in order.
    Notices {
        /// One for each record.
        notices: Vec<NumberedNotice>,
        /// Where to continue.
        next: Cursor,
        /// Whether there is more already.
        more: bool,
    },
    /// The cursor is of another store, or of records that are no longer what they were. Whatever is shown has to be read
    /// again; what happens from then on comes after this cursor.
    BeginAgain {
        /// The newest record at the time of the answer.
        cursor: Cursor,
    },
}

/// A notice with its cursor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NumberedNotice {
    /// Points just after it, so asking from here continues with the next one.
    pub cursor: Cursor,
    #[serde(flatten)]
    pub notice: Notice,
}

/// Something that was recorded in a workspace, by this process or by any other.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Notice {
    /// The workspace became known, moved, is another folder, or has another budget.
    WorkspaceChanged {
        /// For people.
        path: String,
        at: Timestamp,
    },
    /// A checkpoint was recorded. Its name and annotation are notices of their own.
    Captured {
        checkpoint: Box<CheckpointView>,
        /// How many changed rules and settings wait for the user's word since this checkpoint, where they are others than
        /// before: 0 where the user agreed, or they were taken back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rules_waiting: Option<u64>,
    },
    /// A checkpoint was named; whatever had that name before no longer has it.
    Named { checkpoint: CheckpointId, name: String },
    /// A checkpoint was annotated; an empty text removes the annotation.
    Annotated { checkpoint: CheckpointId, text: String },
    /// The user accepted changes, so that an undo that does not name them leaves them, or took that back.
    Accepted {
        /// Where they are.
        paths: Vec<PathView>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        taken_back: bool,
        at: Timestamp,
    },
    /// A session began, was heard of for the first time, or was branched off.
    SessionBegan {
        session: SessionId,
        agent: String,
        /// What a person calls it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Set for a branch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<OriginView>,
        at: Timestamp,
    },
    /// A session was renamed, promoted, archived, deleted or restored, or its transcript is elsewhere.
    SessionChanged {
        session: SessionId,
        /// What a person calls it now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Its rank, if a person gave it one.
        rank: Rank,
    },
    /// A session ended; it may continue later.
    SessionEnded { session: SessionId, at: Timestamp },
    /// A session was imported from an archive.
    SessionImported { session: SessionId, at: Timestamp },
    /// A turn began.
    TurnBegan {
        session: SessionId,
        turn: u32,
        /// The user's prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<String>,
        at: Timestamp,
    },
    /// More became known of a turn, such as its prompt.
    TurnChanged {
        session: SessionId,
        turn: u32,
        /// The user's prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<String>,
    },
    /// A turn ended.
    TurnEnded { session: SessionId, turn: u32, ending: Ending, at: Timestamp },
    /// A tool is about to run, or something more became known of it.
    StepBegan {
        session: SessionId,
        turn: u32,
        step: u32,
        /// What runs.
        tool: String,
        /// What it does, in a few words.
        summary: String,
        at: Timestamp,
    },
    /// A tool has run.
    StepEnded { session: SessionId, turn: u32, step: u32, ending: Ending, at: Timestamp },
    /// Something was said in a session whose agent keeps no transcript.
    Said {
        session: SessionId,
        turn: u32,
        /// Who: `user`, `assistant`, `tool`.
        role: String,
        at: Timestamp,
    },
    /// A capture that was due was not made.
    Gap {
        session: SessionId,
        #[serde(flatten)]
        gap: GapView,
    },
    /// An operation begins; it is about to change files.
    OperationBegan {
        /// Which, pending.
        operation: Box<OperationView>,
    },
    /// An operation is done, was rolled back or was given up.
    OperationEnded {
        /// Which, as it ended.
        operation: Box<OperationView>,
        /// The operation that it reversed, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        took_back: Option<OperationId>,
    },
    /// The record cannot be read, so everything shown has to be read again.
    Damaged {},
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_its_text_and_a_url() {
        let store = WorkspaceId::from_random([7; 8]);
        for (generation, seq) in [(1, 0), (3, 204), (0, i64::MAX as u64)] {
            let cursor = Cursor { store: store.clone(), generation, seq };
            let text = cursor.to_string();
            assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.'), "{text}");
            assert_eq!(text.parse(), Ok(cursor.clone()));
            assert_eq!(serde_json::from_str::<Cursor>(&serde_json::to_string(&cursor).unwrap()).unwrap(), cursor);
        }
    }

    #[test]
    fn a_text_that_no_cursor_writes_is_none() {
        let store = WorkspaceId::from_random([7; 8]);
        let wrong = ["", ".", "1", "x.1.2", "+1.2", "1.-2", "01.2", "1.2.3", "1.99999999999999999999", "1.2 "];
        for wrong in wrong.into_iter().map(|end| format!("{store}.{end}")).chain(["".to_owned(), "1.2.3".to_owned()]) {
            assert_eq!(wrong.parse::<Cursor>(), Err(BadCursor), "{wrong}");
        }
    }
}
