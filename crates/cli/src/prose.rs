//! Prose on a terminal: lines that are broken between words.

use piton_wording::escape::escape_line;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The lines of a text, escaped, none wider than `width` unless it is one word that is.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    text.trim_end().lines().flat_map(|line| broken(&escape_line(line), width)).collect()
}

fn broken(line: &str, width: usize) -> Vec<String> {
    if line.width() <= width {
        return vec![line.trim_end().to_owned()];
    }
    // What follows a break stands under what came before it.
    let indent: String = line.chars().take_while(|c| *c == ' ').collect();
    let mut lines = Vec::new();
    let mut current = String::new();
    for word in line.trim_start().split_inclusive(' ') {
        let room = width.saturating_sub(indent.width()).max(1);
        if !current.is_empty() && current.width() + word.trim_end().width() > room {
            lines.push(format!("{indent}{}", current.trim_end()));
            current.clear();
        }
        // Scripts without spaces have no better place for a break.
        for c in word.chars() {
            if current.width() + c.width().unwrap_or(0) > room && c != ' ' {
                lines.push(format!("{indent}{current}"));
                current.clear();
            }
            current.push(c);
        }
    }
    if !current.trim().is_empty() {
        lines.push(format!("{indent}{}", current.trim_end()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_keep_their_indent() {
        for (text, width, expected) in [
            ("one two three", 9, vec!["one two", "three"]),
            ("one\n\ntwo\n", 9, vec!["one", "", "two"]),
            ("  - one two three", 10, vec!["  - one", "  two", "  three"]),
            ("abcdefghij", 4, vec!["abcd", "efgh", "ij"]),
            ("日本語の", 4, vec!["日本", "語の"]),
            ("a\x1b[2J", 20, vec!["a\\x1b[2J"]),
        ] {
            assert_eq!(wrapped(text, width), expected, "{text:?}");
        }
    }
}
