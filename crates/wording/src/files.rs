//! Changed files: what a sign cannot say of them.

use piton_engine::view::{EntryView, FileChange, FileDiff};

use crate::escape::escape;

/// Why no lines are shown for a file's content.
pub fn content_remark(file: &FileDiff) -> String {
    if file.unavailable {
        "content not available".to_owned()
    } else if file.binary {
        "binary".to_owned()
    } else {
        String::new()
    }
}

/// What else than the content of a plain file changed.
pub fn remark(file: &FileChange) -> String {
    let kind = |entry: &EntryView| match entry {
        EntryView::File { .. } => "file",
        EntryView::Symlink { .. } => "link",
        EntryView::Folder { .. } => "folder",
        EntryView::Skipped { .. } => "skipped",
    };
    let mode = |entry: &EntryView| match entry {
        EntryView::File { mode, .. } | EntryView::Folder { mode } => Some(mode.clone()),
        _ => None,
    };
    match (&file.before, &file.after) {
        (Some(old), Some(new)) if kind(old) != kind(new) => format!("{} became {}", kind(old), kind(new)),
        (Some(old), Some(new)) if mode(old) != mode(new) => {
            format!("mode {} became {}", mode(old).unwrap_or_default(), mode(new).unwrap_or_default())
        }
        (_, Some(EntryView::Symlink { target })) => format!("link to {}", escape(target)),
        (None, Some(one @ EntryView::Folder { .. })) | (Some(one), None) if kind(one) != "file" => kind(one).to_owned(),
        _ => String::new(),
    }
}
