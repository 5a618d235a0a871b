//! Everything that reads bytes from outside, with bytes that somebody changed: no panic, no hang, no gigabytes, and the
//! promises of each reader hold.
//!
//! Each harness takes a few seconds. `piton_testkit::fuzz` tells how to run them for longer, and one input alone.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod agents;
mod archive;
mod git;
mod host;
mod model;
mod store;

#[global_allocator]
static ALLOCATOR: piton_testkit::fuzz::Measured = piton_testkit::fuzz::Measured;
