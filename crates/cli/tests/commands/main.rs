//! The commands as people and scripts see them.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod accept;
mod archive;
mod blame;
mod branches;
mod cat;
mod checkout;
mod completions;
mod config;
mod conversation;
mod doctor;
mod documents;
mod every_command;
mod except;
mod export;
mod mistakes;
mod not_done;
mod pages;
mod patch;
mod reading;
mod rewind_scope;
mod rules;
mod run;
mod running;
mod setup;
mod summarize;
mod surroundings;
mod timeline;
mod turns;
mod undo;
mod watch;
mod ways_back;

/// The binary under test.
const PITON: &str = env!("CARGO_BIN_EXE_piton");
