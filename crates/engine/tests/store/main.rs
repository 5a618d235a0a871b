//! A damaged store: what is found, what it costs, and what is still served.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod damage;
mod lost;
mod packs;
