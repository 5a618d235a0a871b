//! What leaves a store and comes into one: session archives, and checkpoints as git commits.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod archive;
mod archive_forged;
mod export;
mod forge;
