//! The hook from outside, and what commands say of what it met.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod budget;
mod damage;
mod displaced;
mod first_contact;
mod hook;
mod inside;
mod places;
mod read_ahead;
mod several_workspaces;

/// The binary under test.
const PITON: &str = env!("CARGO_BIN_EXE_piton");
