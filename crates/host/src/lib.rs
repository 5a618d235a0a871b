//! The only crate that touches the workspace's files: scanning them, reading them, applying a plan. It also wraps the
//! rest of the machine: the clock, random numbers, the lock.
//!
//! Never decides *what* to change. Anything Linux-specific is in `sys` and nowhere else.

pub mod apply;
mod assemble;
pub mod bounded;
pub mod clock;
pub mod disk;
mod editors;
pub mod fail;
pub mod git;
mod ignored;
mod index;
mod lock;
mod look;
pub mod outside;
pub mod own;
mod parallel;
mod pattern;
mod probe;
pub mod process;
mod read;
mod root;
mod rules;
mod scan;
mod slots;
pub mod sys;
mod tracked;
pub mod trash;
mod walk;
mod watch;
mod written;

pub use apply::{STAGED, staged_by, staged_step};
pub use clock::{Clock, SystemClock};
pub use editors::is_open_in_editor;
pub use ignored::{IgnoreFiles, IgnoredAt};
pub use index::Index;
pub use lock::Lock;
pub use look::{canonical, canonical_folder, is_folder, is_link, is_taken, is_there};
pub use parallel::in_parallel;
pub use probe::{Abilities, probe};
pub use read::{Signatures, Sink, empty_tree, read_entry, read_entry_signed};
pub use root::{Root, identity_at};
pub use rules::{
    CapturedNames, Held, Instead, RuleOptions, RuleSource, SourceKind, UnreadRules, last_change, left_out,
    rule_sources, rules_leave_out, rules_left_out, unread_rules,
};
pub use scan::{
    IsStaged, Limit, Progress, ReadFor, Scan, ScanError, ScanOptions, Scanning, StagedBy, begin_scan, scan,
};
pub use watch::FolderWatch;
pub use written::written_by_name;
