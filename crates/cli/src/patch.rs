//! Differences in the unified form, with git's headers, so that `git apply` and `patch` read what `piton diff` writes.
//!
//! A terminal gets contents escaped; a file or pipe without colour gets them as they are.

use std::io::{self, Write};

use piton_engine::model::text::{Hunk, Line, Side};
use piton_engine::view::{EntryView, FileDiff};
use piton_wording::escape::{bytes_of, escape_line, is_unsafe};

use crate::console::Look;

/// Writes one path's difference.
pub fn write(out: &mut dyn Write, look: &Look, file: &FileDiff) -> io::Result<()> {
    let patch = Patch { look, path: &bytes_of(&file.change.path), file };
    match (blob(&file.change.before), blob(&file.change.after)) {
        (None, None) => patch.folder(out),
        (Some(old), Some(new)) if old.kind == new.kind => patch.modified(out, &old, &new),
        // As git does: a file that becomes a link is one that goes and one that comes.
        (old, new) => {
            if let Some(old) = old {
                patch.one_sided(out, &old, Side::Removed)?;
            }
            if let Some(new) = new {
                patch.one_sided(out, &new, Side::Added)?;
            }
            Ok(())
        }
    }
}

/// Writes what stands above the places of a file that only changes, and its new permission bits.
pub fn write_heading(out: &mut dyn Write, look: &Look, file: &FileDiff) -> io::Result<()> {
    let (Some(old), Some(new)) = (blob(&file.change.before), blob(&file.change.after)) else { return Ok(()) };
    let patch = Patch { look, path: &bytes_of(&file.change.path), file };
    patch.header(out)?;
    patch.bits(out, &old, &new)?;
    patch.sides(out, &quoted("a/", patch.path), &quoted("b/", patch.path))
}

/// Writes one place of a file.
pub fn write_hunk(out: &mut dyn Write, look: &Look, hunk: &Hunk) -> io::Result<()> {
    let range = |start: u32, lines: u32| if lines == 1 { start.to_string() } else { format!("{start},{lines}") };
    let (old, new) = (range(hunk.old_start, hunk.old_lines), range(hunk.new_start, hunk.new_lines));
    writeln!(out, "{}", look.paint.id(format!("@@ -{old} +{new} @@")))?;
    hunk.lines.iter().try_for_each(|line| write_line(out, look, line))
}

fn write_line(out: &mut dyn Write, look: &Look, line: &Line) -> io::Result<()> {
    let text = if look.is_raw() { line.text.as_str().into() } else { escape_line(&line.text) };
    let paint = look.paint;
    match line.side {
        Side::Context => writeln!(out, " {text}")?,
        Side::Removed => writeln!(out, "{}", paint.bad(format_args!("-{text}")))?,
        Side::Added => writeln!(out, "{}", paint.good(format_args!("+{text}")))?,
    }
    if line.no_newline {
        writeln!(out, "{}", paint.dim("\\ No newline at end of file"))?;
    }
    Ok(())
}

/// What git keeps of a path: its kind and whether it can be run.
struct Blob<'a> {
    /// `100` or `120`, git's word for a file or a link.
    kind: &'static str,
    /// The permission bits in octal, three digits.
    bits: &'a str,
    /// Where a link points.
    target: Option<&'a str>,
}

fn blob(entry: &Option<EntryView>) -> Option<Blob<'_>> {
    match entry {
        Some(EntryView::File { mode, .. }) => {
            Some(Blob { kind: "100", bits: &mode[mode.len().saturating_sub(3)..], target: None })
        }
        Some(EntryView::Symlink { target }) => Some(Blob { kind: "120", bits: "000", target: Some(target) }),
        _ => None,
    }
}

impl Blob<'_> {
    /// The mode as git has it: it only knows whether the owner can run a file.
    fn mode(&self) -> String {
        let runs = self.bits.bytes().next().is_some_and(|digit| digit & 1 == 1);
        match (self.kind, runs) {
            ("120", _) => "120000".to_owned(),
            (_, true) => "100755".to_owned(),
            (_, false) => "100644".to_owned(),
        }
    }
}

struct Patch<'a> {
    look: &'a Look,
    path: &'a [u8],
    file: &'a FileDiff,
}

impl Patch<'_> {
    fn modified(&self, out: &mut dyn Write, old: &Blob<'_>, new: &Blob<'_>) -> io::Result<()> {
        self.header(out)?;
        self.bits(out, old, new)?;
        self.content(out, true, true, &self.file.hunks)
    }

    fn bits(&self, out: &mut dyn Write, old: &Blob<'_>, new: &Blob<'_>) -> io::Result<()> {
        if old.bits != new.bits {
            // Where git would see no difference the real bits are told; `git apply` passes over them.
            let (was, is) = match (old.mode(), new.mode()) {
                (was, is) if was == is => (format!("100{}", old.bits), format!("100{}", new.bits)),
                modes => modes,
            };
            self.meta(out, &format!("old mode {was}"))?;
            self.meta(out, &format!("new mode {is}"))?;
        }
        Ok(())
    }

    fn one_sided(&self, out: &mut dyn Write, blob: &Blob<'_>, side: Side) -> io::Result<()> {
        self.header(out)?;
        let word = if side == Side::Added { "new" } else { "deleted" };
        self.meta(out, &format!("{word} file mode {}", blob.mode()))?;
        let hunks = self.one_side(blob, side);
        self.content(out, side == Side::Removed, side == Side::Added, &hunks)
    }

    /// The lines of one side, for a path that only this side has in this form.
    fn one_side(&self, blob: &Blob<'_>, side: Side) -> Vec<Hunk> {
        let text = |text: &str| Line { side, text: text.to_owned(), no_newline: true };
        let lines: Vec<Line> = match blob.target {
            Some(target) => vec![text(target)],
            None => {
                let all = self.file.hunks.iter().flat_map(|hunk| &hunk.lines);
                all.filter(|line| line.side == side || line.side == Side::Context)
                    .map(|line| Line { side, ..line.clone() })
                    .collect()
            }
        };
        if lines.is_empty() {
            return Vec::new();
        }
        let count = lines.len() as u32;
        let (old, new) = if side == Side::Removed { (count, 0) } else { (0, count) };
        vec![Hunk { old_start: old.min(1), old_lines: old, new_start: new.min(1), new_lines: new, lines }]
    }

    fn header(&self, out: &mut dyn Write) -> io::Result<()> {
        let line = format!("diff --git {} {}", quoted("a/", self.path), quoted("b/", self.path));
        writeln!(out, "{}", self.look.paint.bold(line))
    }

    fn meta(&self, out: &mut dyn Write, text: &str) -> io::Result<()> {
        writeln!(out, "{}", self.look.paint.bold(text))
    }

    /// What git has no form for is told in words, which `git apply` passes over.
    fn folder(&self, out: &mut dyn Write) -> io::Result<()> {
        let path = quoted("", self.path);
        let text = match (&self.file.change.before, &self.file.change.after) {
            (None, Some(EntryView::Folder { mode })) => format!("new folder {path}, mode {mode}"),
            (Some(EntryView::Folder { .. }), None) => format!("deleted folder {path}"),
            (Some(EntryView::Folder { mode: was }), Some(EntryView::Folder { mode: is })) => {
                format!("folder {path}: mode {was} became {is}")
            }
            _ => format!("{path} differs and was not captured"),
        };
        self.meta(out, &text)
    }

    fn content(&self, out: &mut dyn Write, has_old: bool, has_new: bool, hunks: &[Hunk]) -> io::Result<()> {
        let name = |has: bool, side: &str| if has { quoted(side, self.path) } else { "/dev/null".to_owned() };
        let (old, new) = (name(has_old, "a/"), name(has_new, "b/"));
        if self.file.unavailable {
            return writeln!(out, "Content of {} is not available", if has_new { new } else { old });
        }
        if self.file.binary {
            return writeln!(out, "Binary files {old} and {new} differ");
        }
        if hunks.is_empty() {
            return Ok(());
        }
        self.sides(out, &old, &new)?;
        hunks.iter().try_for_each(|hunk| write_hunk(out, self.look, hunk))
    }

    fn sides(&self, out: &mut dyn Write, old: &str, new: &str) -> io::Result<()> {
        // `patch` takes a name up to the first blank unless a TAB ends it.
        let end = |name: &str| if name.contains(' ') && !name.starts_with('"') { "\t" } else { "" };
        let paint = self.look.paint;
        writeln!(out, "{}{}", paint.bold(format!("--- {old}")), end(old))?;
        writeln!(out, "{}{}", paint.bold(format!("+++ {new}")), end(new))
    }
}

/// A path as git writes it: plain where it can be, else in quotes with C's escapes, byte for byte.
fn quoted(prefix: &str, path: &[u8]) -> String {
    if let Ok(plain) = std::str::from_utf8(path)
        && !plain.contains(|c| is_unsafe(c) || c == '"' || c == '\\')
    {
        return format!("{prefix}{plain}");
    }
    let mut out = format!("\"{prefix}");
    for chunk in path.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\r' => out.push_str("\\r"),
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                _ if is_unsafe(c) => octal(&mut out, c.encode_utf8(&mut [0; 4]).as_bytes()),
                _ => out.push(c),
            }
        }
        octal(&mut out, chunk.invalid());
    }
    out.push('"');
    out
}

fn octal(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        out.push_str(&format!("\\{byte:03o}"));
    }
}

#[cfg(test)]
mod tests {
    use piton_engine::model::text::{self, TextDiff};
    use piton_engine::model::{ChangeKind, ObjectId};
    use piton_engine::view::{FileChange, PathView};

    use super::*;

    fn file(mode: &str) -> Option<EntryView> {
        Some(EntryView::File { mode: mode.into(), size: 0, hash: ObjectId::of_blob(b"") })
    }

    fn link(target: &str) -> Option<EntryView> {
        Some(EntryView::Symlink { target: target.into() })
    }

    fn folder(mode: &str) -> Option<EntryView> {
        Some(EntryView::Folder { mode: mode.into() })
    }

    fn written(
        path: &str,
        (before, old): (Option<EntryView>, &str),
        (after, new): (Option<EntryView>, &str),
        terminal: bool,
    ) -> String {
        let diff = text::diff(old.as_bytes(), new.as_bytes(), 3);
        let (binary, hunks) = match diff {
            TextDiff::Text { hunks } => (false, hunks),
            TextDiff::Binary => (true, Vec::new()),
        };
        let path = PathView { path: path.into(), path_b64: None };
        let change = FileChange { path, kind: ChangeKind::Modified, before, after };
        let file = FileDiff { change, binary, unavailable: false, added: 0, removed: 0, hunks };
        let look = Look { terminal, ..Look::plain(80) };
        let mut out = Vec::new();
        write(&mut out, &look, &file).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Checks a patch for a file or pipe.
    fn check(path: &str, before: (Option<EntryView>, &str), after: (Option<EntryView>, &str), expected: &str) {
        assert_eq!(written(path, before, after, false), expected);
    }

    #[test]
    fn a_changed_file_has_gits_header() {
        check(
            "src/a.rs",
            (file("0644"), "a\nb\n"),
            (file("0644"), "a\nc"),
            "diff --git a/src/a.rs b/src/a.rs\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n",
        );
    }

    #[test]
    fn new_and_deleted_files_have_no_other_side() {
        check(
            "x y",
            (None, ""),
            (file("0755"), "a\n"),
            "diff --git a/x y b/x y\nnew file mode 100755\n--- /dev/null\n+++ b/x y\t\n@@ -0,0 +1 @@\n+a\n",
        );
        check("x", (file("0600"), ""), (None, ""), "diff --git a/x b/x\ndeleted file mode 100644\n");
    }

    #[test]
    fn modes_are_gits_where_git_sees_a_difference() {
        check("x", (file("0664"), ""), (file("0775"), ""), "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n");
        check("x", (file("0644"), ""), (file("0600"), ""), "diff --git a/x b/x\nold mode 100644\nnew mode 100600\n");
    }

    #[test]
    fn a_file_that_becomes_a_link_goes_and_comes() {
        check(
            "x",
            (file("0644"), "a\nb\n"),
            (link("to"), "to"),
            "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n\
             diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+to\n\\ No newline at end of file\n",
        );
    }

    #[test]
    fn folders_are_told_in_words() {
        check("d", (None, ""), (folder("0755"), ""), "new folder d, mode 0755\n");
        check("d", (folder("0755"), ""), (folder("0700"), ""), "folder d: mode 0755 became 0700\n");
    }

    #[test]
    fn odd_names_are_quoted_as_git_does() {
        for (raw, expected) in [
            (&b"plain \xc3\xa9"[..], "a/plain é"),
            (b"a\nb\"c\\", "\"a/a\\nb\\\"c\\\\\""),
            (b"\x1b[2J\xff", "\"a/\\033[2J\\377\""),
            ("\u{202e}x".as_bytes(), "\"a/\\342\\200\\256x\""),
        ] {
            assert_eq!(quoted("a/", raw), expected);
        }
    }

    #[test]
    fn contents_reach_a_file_as_they_are_and_a_terminal_escaped() {
        let sides = || ((file("0644"), ""), (file("0644"), "\t\x1b[2J\r\n"));
        let (before, after) = sides();
        assert!(written("x", before, after, false).ends_with("+\t\x1b[2J\r\n"));
        let (before, after) = sides();
        assert!(written("x", before, after, true).ends_with("+\t\\x1b[2J\\r\n"));
    }
}
