//! Commands that are killed, find no space, race, or meet trees that are too deep.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod deep;
mod rewind;

/// The binary under test.
const PITON: &str = env!("CARGO_BIN_EXE_piton");
