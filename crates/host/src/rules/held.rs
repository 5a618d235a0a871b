//! What stays captured although a rule ignores it, because the user has not agreed to that rule yet.

use std::collections::{BTreeSet, HashSet};

use piton_model::WorkspacePath;

/// The names in a folder that the last checkpoint captured; `None` if unknown, and then all count.
pub type CapturedNames<'a> = Box<dyn Fn(&[u8]) -> Option<HashSet<Vec<u8>>> + Sync + 'a>;

/// What is held: only what the last checkpoint captured. What is new beneath a held folder follows the rule at once.
#[derive(Default)]
pub struct Held<'a> {
    /// The paths that a rule ignores; for a folder, everything in it.
    pub roots: BTreeSet<WorkspacePath>,
    /// Called for folders at and beneath the roots; without it everything there counts as captured.
    pub captured: Option<CapturedNames<'a>>,
}

impl Held<'_> {
    /// The names in a folder that the last checkpoint captured.
    pub(crate) fn names_in(&self, folder: &[u8]) -> Option<HashSet<Vec<u8>>> {
        self.captured.as_ref().and_then(|captured| captured(folder))
    }
}
