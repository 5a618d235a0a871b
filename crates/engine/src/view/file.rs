//! What surfaces show of single files of a checkpoint.

use serde::{Deserialize, Serialize};

use super::{CheckpointView, EntryView, PathView};

/// A file or symlink as a checkpoint has it, with its content.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileView {
    #[serde(flatten)]
    pub path: PathView,
    pub checkpoint: CheckpointView,
    pub entry: EntryView,
    /// The content, where it is UTF-8. Of a symlink, the path that it points to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The content in base64, where it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_b64: Option<String>,
}

/// Several files, in the order in which they were asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Files {
    pub files: Vec<FileView>,
}
