//! Changed rules and settings that wait for the user's word.

use piton_model::Owner;
use serde::{Deserialize, Serialize};

use super::{CheckpointView, PathView};

/// What waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// What stays captured although a rule leaves it out.
    pub paths: Vec<HeldView>,
    /// The workspace's own settings that do not hold.
    pub settings: Vec<HeldSetting>,
}

impl Waiting {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.settings.is_empty()
    }
}

/// A path that stays captured although a rule leaves it out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldView {
    /// The path; of a folder, all of it that was captured.
    #[serde(flatten)]
    pub path: PathView,
    /// The files with rules that changed.
    pub rules: Vec<String>,
    /// Who changed them, as far as anybody knows.
    pub owner: Owner,
    /// Whether an undo takes the change of the rules itself back: piton captures neither git's own files nor what leaves itself
    /// out.
    pub undoable: bool,
}

/// A setting of the workspace's own file that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldSetting {
    pub key: String,
    /// What holds.
    pub holds: String,
    /// What the file says.
    pub says: String,
}

/// What the user agreed to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Accepted {
    /// What had waited.
    pub agreed: Waiting,
    /// The first checkpoint in which it holds; none where nothing had waited.
    pub checkpoint: Option<CheckpointView>,
}
