//! Undo: what it takes back, what it keeps, and whose it all is.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod accept;
mod after_operations;
mod carried_lines;
mod moves;
mod redo_to;
mod taken_back;
mod undo;
mod undo_faults;
mod undo_property;
mod undo_table;
mod whose_lines;
