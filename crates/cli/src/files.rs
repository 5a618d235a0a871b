//! Lists of changed files: a sign and a path for each, and in brackets what a sign cannot say.

use std::io::{self, Write};

use piton_engine::model::ChangeKind;
use piton_engine::view::{EntryView, FileChange, FileDiff};
use piton_wording::escape::{escape, escape_view};
use piton_wording::words::{grouped, sign};

use crate::console::Look;

/// How many lines of a list a terminal gets.
pub const ON_A_TERMINAL: usize = piton_wording::lines::LONG_LIST;

/// Writes a list, and on a terminal only its beginning.
pub fn write(out: &mut dyn Write, look: &Look, indent: &str, files: &[FileChange]) -> io::Result<()> {
    let shown = look.lines(ON_A_TERMINAL).min(files.len());
    for file in &files[..shown] {
        write_line(out, look, indent, file, "")?;
    }
    write_rest(out, look, indent, files.len() - shown)
}

/// Says how many lines were left out.
pub fn write_rest(out: &mut dyn Write, look: &Look, indent: &str, rest: usize) -> io::Result<()> {
    if rest == 0 {
        return Ok(());
    }
    writeln!(out, "{indent}{}", look.paint.dim(format!("… and {} more", grouped(rest as u64))))
}

/// Writes one line.
pub fn write_line(out: &mut dyn Write, look: &Look, indent: &str, file: &FileChange, more: &str) -> io::Result<()> {
    let text = format!("{} {}", sign(file.kind), escape_view(&file.path));
    let painted = match file.kind {
        ChangeKind::Created => look.paint.good(text),
        ChangeKind::Modified => look.paint.warn(text),
        ChangeKind::Deleted => look.paint.bad(text),
    };
    let remarks = [remark(file), more.to_owned()];
    let remarks: Vec<_> = remarks.into_iter().filter(|r| !r.is_empty()).collect();
    if remarks.is_empty() {
        return writeln!(out, "{indent}{painted}");
    }
    writeln!(out, "{indent}{painted} {}", look.paint.dim(format!("({})", remarks.join(", "))))
}

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
