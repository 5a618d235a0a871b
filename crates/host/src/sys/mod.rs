//! What is the system's own: calls, files and flags that another system has not, or has under another name.
//!
//! Everything here is a small function that says what it is for, so that another system is one more file beside
//! `linux.rs`. Nothing outside of this folder may use what is Linux's own; `crates/cli/tests/house.rs` looks.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub(crate) use linux::*;
