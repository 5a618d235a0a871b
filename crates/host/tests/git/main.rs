//! A repository's state as git itself tells it, without git and without a change in `.git`.
//!
//! Each test makes a real repository with git and calls [`lab::check`], which compares everything that piton reads with
//! what git says, and everything in `.git` before with everything after.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod acts;
mod damage;
mod finding;
mod forms;
mod head;
mod lab;
#[path = "../../../testkit/src/git.rs"]
mod real;
mod signature;
mod staged;
mod working_tree;
