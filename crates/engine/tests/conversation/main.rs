//! Conversations: going back in them, branches, forks, summaries.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod adapters;
mod branches;
mod conversation;
mod conversation_faults;
mod current_session;
mod fork;
mod summarize;
