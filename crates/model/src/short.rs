//! Shortening text from outside to fit on a line.

/// The first `max` characters of a text.
pub fn cut(text: &str, max: usize) -> String {
    text.chars().take(max).collect()
}

/// A text on one line, of at most `max` characters, without terminal control sequences.
pub fn one_line(text: &str, max: usize) -> String {
    let mut out = String::new();
    let mut length = 0;
    let mut gap = false;
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() || steers(c) {
            gap = length > 0;
            continue;
        }
        if length + usize::from(gap) >= max {
            let keep = out.char_indices().nth(max - 1).map_or(out.len(), |(at, _)| at);
            out.truncate(out[..keep].trim_end().len());
            out.push('…');
            return out;
        }
        if gap {
            out.push(' ');
            length += 1;
            gap = false;
        }
        out.push(c);
        length += 1;
    }
    out
}

/// Whether a character is invisible or changes the direction of the text after it.
fn steers(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_no_control_characters_and_ends_at_its_length() {
        for (text, expected) in [
            ("a\n\tb  c ", "a b c"),
            ("\x1b[31mred\x07", "[31mred"),
            ("x\u{202e}y\u{9b}z", "x y z"),
            ("1234567890", "1234567890"),
            ("12345678901", "123456789…"),
            ("123456789 1", "123456789…"),
            ("éééééééééééé", "ééééééééé…"),
            ("", ""),
        ] {
            assert_eq!(one_line(text, 10), expected, "{text:?}");
        }
    }
}
