//! What stays captured although a rule leaves it out, because nobody has agreed to that rule yet.

use std::collections::{BTreeSet, HashSet};

use piton_model::WorkspacePath;

/// The names in a folder that the last checkpoint captured; none where that is not known, and then all count.
pub type CapturedNames<'a> = Box<dyn Fn(&[u8]) -> Option<HashSet<Vec<u8>>> + Sync + 'a>;

/// What is held. Only what the last checkpoint captured is: what is new beneath a held folder follows the rule at once.
#[derive(Default)]
pub struct Held<'a> {
    /// The paths that a rule leaves out; of a folder, all that is in it.
    pub roots: BTreeSet<WorkspacePath>,
    /// Asked of folders at and beneath the roots; without it everything there counts as captured.
    pub captured: Option<CapturedNames<'a>>,
}

impl Held<'_> {
    /// The names in a folder that the last checkpoint captured.
    pub(crate) fn names_in(&self, folder: &[u8]) -> Option<HashSet<Vec<u8>>> {
        self.captured.as_ref().and_then(|captured| captured(folder))
    }
}
