//! Differences side by side, in two columns as wide as the terminal allows.

use std::io::{self, Write};

use piton_engine::model::text::{Hunk, Line, Side};
use piton_engine::view::FileDiff;
use piton_wording::escape::escape_line;
use unicode_width::UnicodeWidthChar;

use crate::console::Look;
use crate::files;

/// Two columns narrower than this show nothing.
const NARROWEST: usize = 20;
const TAB: usize = 4;

/// Writes one path's difference.
pub fn write(out: &mut dyn Write, look: &Look, file: &FileDiff) -> io::Result<()> {
    files::write_line(out, look, "", &file.change, &piton_wording::files::content_remark(file))?;
    let numbers = file.hunks.iter().map(last_number).max().unwrap_or(0).to_string().len();
    let width = (look.width.saturating_sub(3) / 2).max(NARROWEST);
    let columns = Columns { look, width, numbers };
    for (at, hunk) in file.hunks.iter().enumerate() {
        if at > 0 {
            writeln!(out, "{}", look.paint.dim("⋯"))?;
        }
        for (left, right) in rows(hunk) {
            let (left, right) = (columns.cell(left.as_ref(), true), columns.cell(right.as_ref(), false));
            writeln!(out, "{left} {} {right}", look.paint.dim("│"))?;
        }
    }
    Ok(())
}

/// A line with its number.
type Numbered<'a> = (u32, &'a Line);

struct Columns<'a> {
    look: &'a Look,
    width: usize,
    numbers: usize,
}

impl Columns<'_> {
    fn cell(&self, line: Option<&Numbered<'_>>, is_padded: bool) -> String {
        let Some((number, line)) = line else {
            return if is_padded { " ".repeat(self.width) } else { String::new() };
        };
        let (sign, paint): (_, fn(&Self, &str) -> String) = match line.side {
            Side::Context => (' ', |_, text| text.to_owned()),
            Side::Removed => ('-', |own, text| own.look.paint.bad(text)),
            Side::Added => ('+', |own, text| own.look.paint.good(text)),
        };
        let number = self.look.paint.dim(format!("{number:>0$}", self.numbers));
        let end = if line.no_newline { " \\ no newline at end" } else { "" };
        let (text, used) = fit(&format!("{}{end}", line.text), self.width.saturating_sub(self.numbers + 3));
        let end = if is_padded { self.width.saturating_sub(self.numbers + 3 + used) } else { 0 };
        format!("{number} {}{}", paint(self, &format!("{sign} {text}")), " ".repeat(end))
    }
}

/// The rows of a hunk: lines that went stand beside those that came in their place.
fn rows(hunk: &Hunk) -> Vec<(Option<Numbered<'_>>, Option<Numbered<'_>>)> {
    let (mut old, mut new) = (hunk.old_start, hunk.new_start);
    let mut rows = Vec::new();
    let mut rest = &hunk.lines[..];
    while !rest.is_empty() {
        for line in run(&mut rest, Side::Context) {
            rows.push((Some((old, line)), Some((new, line))));
            (old, new) = (old + 1, new + 1);
        }
        let (removed, added) = (run(&mut rest, Side::Removed), run(&mut rest, Side::Added));
        for at in 0..removed.len().max(added.len()) {
            let left = removed.get(at).map(|line| (old + at as u32, line));
            let right = added.get(at).map(|line| (new + at as u32, line));
            rows.push((left, right));
        }
        (old, new) = (old + removed.len() as u32, new + added.len() as u32);
    }
    rows
}

/// Takes the lines of one side from the front.
fn run<'a>(rest: &mut &'a [Line], side: Side) -> &'a [Line] {
    let end = rest.iter().position(|line| line.side != side).unwrap_or(rest.len());
    let (run, later) = rest.split_at(end);
    *rest = later;
    run
}

fn last_number(hunk: &Hunk) -> u32 {
    (hunk.old_start + hunk.old_lines).max(hunk.new_start + hunk.new_lines)
}

/// The beginning of a line that fits, escaped, and how many columns it takes. What is cut off is marked.
pub fn fit(text: &str, width: usize) -> (String, usize) {
    let mut out = String::new();
    let mut used = 0;
    let escaped = escape_line(text);
    let mut chars = escaped.chars().peekable();
    while let Some(c) = chars.next() {
        let columns = if c == '\t' { TAB - used % TAB } else { c.width().unwrap_or(0) };
        // The last column is for the mark, unless nothing follows.
        let room = if chars.peek().is_some() { width.saturating_sub(1) } else { width };
        if used + columns > room {
            out.push('…');
            return (out, used + 1);
        }
        if c == '\t' {
            out.push_str(&" ".repeat(columns));
        } else {
            out.push(c);
        }
        used += columns;
    }
    (out, used)
}

#[cfg(test)]
mod tests {
    use piton_engine::model::ChangeKind;
    use piton_engine::model::text::{self, TextDiff};
    use piton_engine::view::{FileChange, PathView};

    use super::*;

    fn check(old: &str, new: &str, width: usize, expected: &str) {
        let TextDiff::Text { hunks } = text::diff(old.as_bytes(), new.as_bytes(), 3) else { panic!("binary") };
        let path = PathView { path: "x".into(), path_b64: None };
        let change = FileChange { path, kind: ChangeKind::Modified, before: None, after: None };
        let file = FileDiff { change, binary: false, unavailable: false, added: 0, removed: 0, hunks };
        let look = Look::plain(width);
        let mut out = Vec::new();
        write(&mut out, &look, &file).unwrap();
        let text = String::from_utf8(out).unwrap();
        let found: Vec<_> = text.lines().skip(1).map(str::trim_end).collect();
        assert_eq!(found.join("\n"), expected);
    }

    #[test]
    fn what_came_stands_beside_what_went() {
        check(
            "same\nold\ngone\nend\n",
            "same\nnew\nend\n",
            43,
            "1   same             │ 1   same\n\
             2 - old              │ 2 + new\n\
             3 - gone             │\n\
             4   end              │ 3   end",
        );
    }

    #[test]
    fn a_missing_side_is_blank() {
        check("", "new\n", 43, "                     │ 1 + new");
    }

    #[test]
    fn long_and_wide_lines_are_cut_to_the_column() {
        for (text, width, expected, used) in [
            ("abcde", 5, "abcde", 5),
            ("abcdef", 5, "abcd…", 5),
            ("日本語", 5, "日本…", 5),
            ("日本語", 6, "日本語", 6),
            ("a\tb", 8, "a   b", 5),
            ("\x1b[2J", 20, "\\x1b[2J", 7),
        ] {
            assert_eq!(fit(text, width), (expected.to_owned(), used), "{text:?}");
        }
    }

    #[test]
    fn a_missing_last_end_of_line_is_told() {
        check("a\n", "a", 61, "1 - a                         │ 1 + a \\ no newline at end");
    }
}
