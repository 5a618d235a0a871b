//! Rewinds and redos: what they do to files and to git, and what comes in their way.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod checkout;
mod crash;
mod except;
mod filesystems;
mod full_disk;
mod git_restore;
mod git_rewind;
mod interference;
mod keep_mine;
mod not_done;
mod out_of_sight;
mod outside;
mod property;
mod recovery;
mod running;
mod taken_from_others;
mod writers;
