//! Everything that comes from outside passes here before it is shown: names, paths, notes, contents, error texts.
//!
//! A file's name can hold an escape sequence that clears the screen or rewrites the line above; a terminal never gets
//! it raw.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Write;

use piton_engine::model::path::decode_base64;
use piton_engine::view::PathView;

/// A name, a note, a message: one line, whatever is in it.
pub fn escape(text: &str) -> Cow<'_, str> {
    replace(text, is_unsafe)
}

/// A line of a file: a TAB stays.
pub fn escape_line(text: &str) -> Cow<'_, str> {
    replace(text, |c| c != '\t' && is_unsafe(c))
}

/// Bytes that may not be UTF-8, such as a path of the system.
pub fn escape_bytes(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        out += &escape(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// A path of the system.
pub fn escape_path(path: &std::path::Path) -> String {
    escape_bytes(path.as_os_str().as_encoded_bytes())
}

/// A path as a word that a shell reads as one.
pub fn quoted(path: &std::path::Path) -> String {
    shell_word(path.as_os_str())
}

/// A word as a shell reads it, of nothing but characters that are safe to show. What has others is written as `$'…'`, which
/// bash, zsh and ksh know.
pub fn shell_word(word: &OsStr) -> String {
    let bytes = word.as_encoded_bytes();
    let plain = word.to_str().filter(|word| !word.contains(is_unsafe)).and_then(|word| shlex::try_quote(word).ok());
    if let Some(plain) = plain {
        return plain.into_owned();
    }
    let hex = |out: &mut String, bytes: &[u8]| bytes.iter().for_each(|byte| out.push_str(&format!("\\x{byte:02x}")));
    let mut out = "$'".to_owned();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\'' | '\\' => out.extend(['\\', c]),
                _ if is_unsafe(c) => hex(&mut out, c.encode_utf8(&mut [0; 4]).as_bytes()),
                _ => out.push(c),
            }
        }
        hex(&mut out, chunk.invalid());
    }
    out + "'"
}

/// A path of the workspace.
pub fn escape_view(path: &PathView) -> String {
    escape_bytes(&bytes_of(path))
}

/// The exact bytes of a path of the workspace.
pub fn bytes_of(path: &PathView) -> Cow<'_, [u8]> {
    match path.path_b64.as_deref().map(decode_base64) {
        Some(Ok(bytes)) => Cow::Owned(bytes),
        _ => Cow::Borrowed(path.path.as_bytes()),
    }
}

/// A JSON document whose strings have no character that a terminal acts on: JSON itself leaves some of them raw.
pub fn escape_json(document: &str) -> Cow<'_, str> {
    if !document.contains(is_unsafe) {
        return Cow::Borrowed(document);
    }
    let mut out = String::with_capacity(document.len());
    for c in document.chars() {
        if is_unsafe(c) {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Whether a character makes a terminal do something, or makes text read otherwise than it is.
pub fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn replace(text: &str, is_replaced: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_replaced) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            _ if !is_replaced(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if c.is_ascii() => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            _ => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_shown_and_not_done() {
        for (raw, shown) in [
            ("plain größe 日本", "plain größe 日本"),
            ("\x1b[2Jx", "\\x1b[2Jx"),
            ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
            ("\x07\x7f", "\\x07\\x7f"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("a\u{202e}b\u{2066}c", "a\\u{202e}b\\u{2066}c"),
        ] {
            assert_eq!(escape(raw), shown);
        }
    }

    #[test]
    fn a_tab_in_a_files_line_stays() {
        assert_eq!(escape_line("\tx\x1b\r"), "\tx\\x1b\\r");
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_shown_in_hexadecimal() {
        assert_eq!(escape_bytes(b"caf\xe9 \x1b\xff"), "caf\\xe9 \\x1b\\xff");
    }

    #[test]
    fn a_paths_exact_bytes_come_from_its_base64() {
        let path = PathView { path: "a\u{fffd}".into(), path_b64: Some("Yf8=".into()) };
        assert_eq!(*bytes_of(&path), b"a\xff"[..]);
        assert_eq!(escape_view(&path), "a\\xff");
    }

    #[test]
    fn a_json_document_stays_the_same_value() {
        let value = serde_json::json!({ "a\u{9b}": "x\u{202e}\u{7f}\n\u{1f600}" });
        let document = value.to_string();
        let escaped = escape_json(&document);
        assert!(!escaped.contains(is_unsafe));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
    }
}
