//! The pure values of piton: ids, workspace paths, trees, changes, plans, records, text diff.
//!
//! Every other crate uses these. Nothing here does I/O, reads a clock or draws a random number: the same input gives
//! the same output, so each of piton's rules can be tested with a few lines of values.

pub mod blame;
pub mod command;
pub mod content;
pub mod conversation;
pub mod diff;
pub mod edit;
pub mod effect;
pub mod event;
pub mod except;
pub mod future;
pub mod git;
pub mod id;
pub mod inverse;
pub mod merge;
pub mod moves;
pub mod near;
pub mod needs;
mod notebook;
pub mod operation;
pub mod outside;
pub mod ownership;
pub mod path;
pub mod plan;
pub mod protection;
pub mod record;
pub mod session;
pub mod settings;
pub mod short;
pub mod summary;
pub mod target;
pub mod text;
pub mod time;
pub mod trail;
pub mod tree;

pub use conversation::{Origin, Rank, Scope};
pub use diff::{Change, ChangeKind, Counts, TreeSource};
pub use except::{Except, ExceptHunk, HunkAt};
pub use git::GitState;
pub use id::{CheckpointId, ObjectId, OperationId, PlanId, SessionId, WorkspaceId};
pub use needs::{Need, NeededFor, NeededObject};
pub use operation::{ChangesAt, GivenUp, Operation, OperationKind, OperationTarget, OperationVerb, Outcome};
pub use ownership::{Candidate, Evidence, Owned, Owner, OwnerKind};
pub use path::{BadPath, EntryName, WorkspacePath};
pub use plan::{FolderMode, Plan, Step};
pub use protection::Protection;
pub use record::{Cause, Checkpoint, HeldPath, Record, RootIdentity, SettingsAt, UnagreedRules, Workspace};
pub use session::{Ending, Session, StepRef, Turn, TurnContext};
pub use target::{Target, When};
pub use time::Timestamp;
pub use tree::{Entry, SkipReason, Tree};
