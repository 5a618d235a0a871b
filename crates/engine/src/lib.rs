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

mod archive;
mod capture;
mod conversation;
mod history;
mod observe;
mod operation;
pub mod view;
mod workspace;

pub use archive::export::{ExportError, ExportOptions, ExportWhat};
pub use archive::{ExportSessionError, ImportError, check_archive};
pub use capture::agreed::InForce;
pub use capture::ahead::{Ahead, AheadError, AheadOptions};
pub use capture::{CaptureError, CaptureOptions, MOST_MANUAL};
pub use conversation::NoConversation;
pub use conversation::branches::{BranchError, DeleteOptions};
pub use conversation::compare::CompareOptions;
pub use conversation::said::{ConversationError, ConversationOptions};
pub use history::blame::{BlameError, BlameOptions};
pub use history::diff::{DiffError, DiffOptions};
pub use history::file::{FileAt, FileError};
pub use history::session_changes::ChangesOptions;
pub use history::shown_turn::TurnOptions;
pub use history::since::Watcher;
pub use history::target::{IntoTarget, TargetError};
pub use history::timeline::LogOptions;
pub use history::turns::TimelineOptions;
pub use observe::live::{LiveSession, Tool};
pub use observe::session::{ObserveError, ObservedElsewhere};
pub use observe::{Elsewhere, ObserveOptions, OwnSettings, SettingsOf, Visit, Visiting};
pub use operation::accept::{AcceptError, AcceptOptions};
pub use operation::annotate::AnnotateError;
pub use operation::checkout::{CheckoutError, CheckoutOptions};
pub use operation::chosen::{ChangedThere, Choice, ChosenError, Since, Which, Whose};
pub use operation::draft::Plan;
pub use operation::error::OperationError;
pub use operation::fork::{ForkError, ForkOptions};
pub use operation::git_restore::{GitPlan, GitRefusal, GitRestored};
pub use operation::layout::LayoutError;
pub use operation::plans::Plans;
pub use operation::recover::RecoverError;
pub use operation::redo::RedoOptions;
pub use operation::refusal::{Policy, Refusal};
pub use operation::request::Settle;
pub use operation::rewind::{Carry, RewindOptions};
pub use operation::summarize::{SummarizeError, ToSummarize};
pub use operation::undo::UndoOptions;
pub use workspace::place::{EventPlace, LeftOut, Located};
pub use workspace::{
    DEFAULT_BUDGET, Engine, Environment, History, InItsPlace, InitOptions, MINIMUM_BUDGET, OpenError, Workspace,
};

pub use piton_agents as agents;
pub use piton_host::bounded::{open_in as open_bounded_in, read as read_bounded};
pub use piton_host::git::{GitError, PlaceError, UserConfig, WorktreeError, WriteError};
pub use piton_host::own;
pub use piton_host::process::{detach, ignored_signals};
pub use piton_host::{Abilities, Clock, Progress, SystemClock};
pub use piton_model as model;
pub use piton_store::{ArchiveError, HitKind, StoreError};
