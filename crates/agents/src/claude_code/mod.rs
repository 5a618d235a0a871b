//! Claude Code: its hooks, its settings file, its command files, its transcripts and their branches.
//!
//! What is said of it here was seen in versions 2.1.197 and 2.1.325 and is tested on what those versions sent. Its
//! formats grow: unknown events, fields, tools and kinds of lines are normal and never an error.

mod belongings;
pub mod branch;
pub mod command;
pub mod hooks;
mod lines;
mod members;
pub mod said;
pub mod settings;
pub mod summary;
pub mod survey;
pub mod tools;
pub mod transcript;

pub use belongings::{belongings, looks_like_transcript};

/// What `piton hook` and `piton setup` call it.
pub const NAME: &str = "claude-code";

/// How Claude Code begins what it tells the model of a background task that ended.
const TASK_NOTIFICATION: &str = "<task-notification>";
