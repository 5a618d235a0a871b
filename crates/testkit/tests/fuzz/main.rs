//! Everything that reads untrusted bytes, with mutated input: no panic, no hang, no gigabytes, and each reader's
//! promises hold.
//!
//! Each harness takes a few seconds. `piton_testkit::fuzz` says how to run them for longer, and how to run a single
//! input.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod agents;
mod archive;
mod git;
mod host;
mod model;
mod store;

#[global_allocator]
static ALLOCATOR: piton_testkit::fuzz::Measured = piton_testkit::fuzz::Measured;
