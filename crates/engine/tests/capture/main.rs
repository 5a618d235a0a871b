//! What is captured, and of which folder: rules, kinds of files, roots, worktrees, sizes, races.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod budget;
mod by_root;
mod changed_rules;
mod deep;
mod git;
mod git_folders;
mod kinds;
mod large;
mod nested;
mod patterns;
mod permissions;
mod races;
mod read_ahead;
mod repositories;
mod roots;
mod rule_files;
mod rules;
mod skips;
mod tracked;
mod worktrees;
