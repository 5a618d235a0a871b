//! Lists of changed files: a sign and a path for each, and in brackets what a sign cannot say.

use std::io::{self, Write};

use piton_engine::model::ChangeKind;
use piton_engine::view::FileChange;
use piton_wording::escape::escape_view;
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
    let remarks = [piton_wording::files::remark(file), more.to_owned()];
    let remarks: Vec<_> = remarks.into_iter().filter(|r| !r.is_empty()).collect();
    if remarks.is_empty() {
        return writeln!(out, "{indent}{painted}");
    }
    writeln!(out, "{indent}{painted} {}", look.paint.dim(format!("({})", remarks.join(", "))))
}
