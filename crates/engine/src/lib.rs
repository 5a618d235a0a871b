//! The one door to piton: capture, rewind, redo, diff, timeline, verify; a verb per file, synchronous.
//!
//! Every surface (command line, HTTP, a program that embeds piton) calls these and shows what [`view`] has. Never
//! prints, never reads `$HOME` or any other variable: what it must know of its surroundings is in [`Environment`].
//!
//! ```no_run
//! use piton_engine::{CaptureOptions, Engine, Environment, RewindOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::new("/var/lib/piton".into(), Environment::default());
//! let mut workspace = engine.open_or_init("/src/project".as_ref())?;
//! let before = workspace.capture(&CaptureOptions { name: Some("before".into()), ..Default::default() })?;
//! // … an agent works …
//! let plan = workspace.plan_rewind("before", &RewindOptions::default())?;
//! println!("{} files to restore", plan.view().restored.len());
//! let outcome = workspace.carry_out(plan)?;
//! assert!(outcome.verified);
//! # Ok(()) }
//! ```

mod agreed;
mod ahead;
mod annotate;
mod archive;
mod aside;
mod bits;
mod blame;
mod branches;
mod capture;
mod chosen;
mod compare;
mod conversation;
mod diff;
mod draft;
mod elsewhere;
mod export;
mod fork;
mod future;
mod git;
mod git_kept;
mod git_restore;
mod held;
mod ignored;
mod lean;
mod left_out;
mod leftovers;
mod lineage;
mod lost;
mod moves;
mod near;
mod notice;
mod observe;
mod operate;
mod outside;
mod place;
mod recover;
mod redo;
mod rewind;
mod running;
mod said;
mod search;
mod session;
mod sink;
mod sound;
mod summarize;
mod target;
mod timeline;
mod told;
mod transcripts;
mod trash;
mod turns;
mod undo;
mod unknown;
mod verify;
pub mod view;
mod workspace;

pub use agreed::InForce;
pub use ahead::{Ahead, AheadError, AheadOptions};
pub use annotate::AnnotateError;
pub use archive::{ExportSessionError, ImportError};
pub use blame::{BlameError, BlameOptions};
pub use branches::{BranchError, DeleteOptions};
pub use capture::{CaptureError, CaptureOptions, MOST_MANUAL};
pub use chosen::{Choice, ChosenError, What, Whose};
pub use compare::CompareOptions;
pub use conversation::NoConversation;
pub use diff::{DiffError, DiffOptions};
pub use draft::{Plan, Settle};
pub use export::{ExportError, ExportOptions, ExportWhat};
pub use fork::{ForkError, ForkOptions};
pub use git_restore::{GitPlan, GitRefusal, GitRestored};
pub use notice::Notice;
pub use observe::{Elsewhere, ObserveOptions, OwnSettings, SettingsOf, Visit, Visiting};
pub use operate::OperationError;
pub use place::{EventPlace, LeftOut, Located};
pub use recover::RecoverError;
pub use redo::RedoOptions;
pub use rewind::RewindOptions;
pub use said::{ConversationError, ConversationOptions};
pub use session::{LiveSession, ObserveError, ObservedElsewhere, Tool};
pub use summarize::{SummarizeError, ToSummarize};
pub use target::TargetError;
pub use timeline::LogOptions;
pub use turns::{ChangesOptions, TimelineOptions};
pub use undo::UndoOptions;
pub use workspace::{
    DEFAULT_BUDGET, Engine, Environment, InItsPlace, InitOptions, MINIMUM_BUDGET, OpenError, Workspace,
};

pub use piton_agents as agents;
pub use piton_host::bounded::{open_in as open_bounded_in, read as read_bounded};
pub use piton_host::git::{GitError, PlaceError, UserConfig, WriteError};
pub use piton_host::own;
pub use piton_host::process::{detach, ignored_signals};
pub use piton_host::{Abilities, Clock, Progress, SystemClock};
pub use piton_model as model;
pub use piton_store::{ArchiveError, StoreError};
