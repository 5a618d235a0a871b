//! Rewind, undo, redo and branch: from what is asked for to what was done, and back from where it was cut off.

pub(crate) mod apply;
pub(crate) mod begin;
pub(crate) mod branch;
pub(crate) mod chosen;
pub(crate) mod draft;
pub(crate) mod end;
pub(crate) mod error;
pub(crate) mod fork;
pub(crate) mod git;
pub(crate) mod git_kept;
pub(crate) mod git_restore;
pub(crate) mod holds;
pub(crate) mod left_out;
pub(crate) mod leftovers;
pub(crate) mod lost;
pub(crate) mod moves;
pub(crate) mod operate;
pub(crate) mod outside;
pub(crate) mod plan_diff;
pub(crate) mod recover;
pub(crate) mod redo;
pub(crate) mod refusal;
pub(crate) mod rewind;
pub(crate) mod running;
pub(crate) mod summarize;
pub(crate) mod undo;
