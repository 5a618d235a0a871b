//! What the timeline says: sessions, turns and steps, and who wrote which line.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod blame;
mod embedded;
mod sessions;
mod since;
mod timeline;
mod told;
