//! A repository's state compared with git's own answers.
//!
//! Each test makes a real repository with git and calls [`lab::check`], which compares everything that piton reads with
//! what git says, and checks that nothing in `.git` changed.

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
