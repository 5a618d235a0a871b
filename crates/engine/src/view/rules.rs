//! Changed rules and settings that wait for the user's agreement.

use piton_model::Owner;
use serde::{Deserialize, Serialize};

use super::{CheckpointView, PathView};

/// What waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Paths that stay captured although a rule ignores them.
    pub paths: Vec<HeldView>,
    /// The workspace's own settings that are not in force.
    pub settings: Vec<HeldSetting>,
}

impl Waiting {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.settings.is_empty()
    }
}

/// A path that stays captured although a rule ignores it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldView {
    /// For a folder, everything in it that was captured.
    #[serde(flatten)]
    pub path: PathView,
    /// The rule files that changed.
    pub rules: Vec<String>,
    /// Who changed them, as far as is known.
    pub owner: Owner,
    /// Whether an undo takes the change of the rules itself back: piton captures neither git's own files nor what leaves itself
    /// out.
    pub undoable: bool,
}

/// A setting of the workspace's own file that is not in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldSetting {
    pub key: String,
    /// The value in force.
    pub holds: String,
    /// The value in the file.
    pub says: String,
}

/// What the user agreed to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Accepted {
    /// What was waiting.
    pub agreed: Waiting,
    /// The first checkpoint in which it is in force; `None` if nothing was waiting.
    pub checkpoint: Option<CheckpointView>,
}
