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
//! let outcome = workspace.rewind(plan)?;
//! assert!(outcome.verified);
//! # Ok(()) }
//! ```

mod capture;
mod diff;
mod leftovers;
mod operate;
mod recover;
mod redo;
mod rewind;
mod sink;
mod target;
mod timeline;
mod verify;
pub mod view;
mod workspace;

pub use capture::{CaptureError, CaptureOptions};
pub use diff::{DiffError, DiffOptions};
pub use operate::{OperationError, Plan};
pub use recover::RecoverError;
pub use rewind::RewindOptions;
pub use target::TargetError;
pub use timeline::LogOptions;
pub use workspace::{DEFAULT_BUDGET, Engine, Environment, InitOptions, MINIMUM_BUDGET, OpenError, Workspace};

pub use piton_host::{Clock, Progress, SystemClock};
pub use piton_model as model;
pub use piton_store::StoreError;
