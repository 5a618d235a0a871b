//! A branch of a conversation: a transcript's first lines under an id of their own.
//!
//! Claude Code resumes whatever lines are in `<id>.jsonl` in the session's project folder, if they carry that id. A
//! branch is cut by position in the file and not by following parents: parallel calls fork the chain, and following one
//! side of a fork loses the results of the other.

use std::io::{self, BufRead, Write};

use super::members::{MemberVisitor, pass, unquoted};
use crate::transcript::Copied;

/// Copies lines and replaces each line's own `sessionId`, if it has one, with this id; every other byte stays as it is.
///
/// The caller limits `from` to whole lines, by the offsets of a [`crate::transcript::Survey`]. A last line without a
/// newline is copied as well, and [`Copied::cut_off`] says so. A line that begins as an object and is malformed is
/// handled up to the malformed part. Writes many small pieces: `to` should be buffered.
pub fn copy(from: impl BufRead, to: &mut impl Write, id: &str) -> io::Result<Copied> {
    pass(from, to, &mut Rename::new(id))
}

/// Whether a text is an id of the form that Claude Code uses: a UUID in hex digits and dashes.
pub fn is_session_id(text: &str) -> bool {
    let dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    text.len() == 36 && text.bytes().enumerate().all(|(at, b)| if dash(at) { b == b'-' } else { b.is_ascii_hexdigit() })
}

pub(super) struct Rename<'a> {
    id: &'a str,
    json: Vec<u8>,
}

impl<'a> Rename<'a> {
    pub fn new(id: &'a str) -> Self {
        Self { id, json: serde_json::Value::from(id).to_string().into_bytes() }
    }

    /// The replacement for a `sessionId`; a value that is not a string is not an id.
    pub fn session(&self, value: &[u8]) -> Option<Vec<u8>> {
        let other = value != self.json && value.starts_with(b"\"") && unquoted(value).is_none_or(|id| id != self.id);
        other.then(|| self.json.clone())
    }
}

impl MemberVisitor for Rename<'_> {
    const KEYS: &'static [&'static str] = &["sessionId"];

    fn member(&mut self, _: &'static str, value: &[u8]) -> Option<Vec<u8>> {
        self.session(value)
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;
    use crate::transcript::uuid;

    /// Copies under the id `new`, however the bytes are split up.
    #[track_caller]
    fn check(lines: &[u8], expected: &[u8]) -> Copied {
        let mut last = None;
        for capacity in [1, 2, 3, 5, 8192] {
            let mut out = Vec::new();
            let copied = copy(BufReader::with_capacity(capacity, lines), &mut out, "new").unwrap();
            assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(expected), "{capacity}");
            assert_eq!((copied.read, copied.bytes), (lines.len() as u64, expected.len() as u64));
            assert!(last.is_none_or(|last| last == copied));
            last = Some(copied);
        }
        last.unwrap()
    }

    #[test]
    fn a_lines_own_session_is_set_and_every_other_byte_stays() {
        for (line, expected) in [
            (r#"{"sessionId":"old"}"#, r#"{"sessionId":"new"}"#),
            (
                "\t{ \"sessionId\" :\r \"old\" , \"a\" : 1.50e+3 }  ",
                "\t{ \"sessionId\" :\r \"new\" , \"a\" : 1.50e+3 }  ",
            ),
            (r#"{"sessionId":"a\"b\\","b":""}"#, r#"{"sessionId":"new","b":""}"#),
            (r#"{"session\u0049d":"old"}"#, r#"{"session\u0049d":"new"}"#),
            (r#"{"sessionId":"old","sessionId":"older"}"#, r#"{"sessionId":"new","sessionId":"new"}"#),
            // The same id, spelled differently.
            (r#"{"sessionId":"n\u0065w"}"#, r#"{"sessionId":"n\u0065w"}"#),
            // After everything that could be mistaken for the end of something.
            (
                r#"{"a":"}\"]{","b":[{"c":"]"}],"sessionId":"old"}"#,
                r#"{"a":"}\"]{","b":[{"c":"]"}],"sessionId":"new"}"#,
            ),
        ] {
            check(line.as_bytes(), expected.as_bytes());
        }
    }

    #[test]
    fn what_is_not_a_lines_own_session_stays() {
        for line in [
            r#"{"a":{"sessionId":"old"},"b":[{"sessionId":"old"}],"c":["sessionId","old"]}"#,
            r#"{"a":"sessionId","b":"\"sessionId\":\"old\""}"#,
            r#"{"sessionid":"old","sessionId2":"old","xsessionId":"old"}"#,
            r#"{"sessionId":null}"#,
            r#"{"sessionId":17,"a":"old"}"#,
            r#"{"sessionId":["old"],"a":{"sessionId":"old"}}"#,
            r#"{"sessionId":{"sessionId":"old"}}"#,
            r#"[{"sessionId":"old"}]"#,
            r#""sessionId":"old""#,
            r#"x{"sessionId":"old"}"#,
            r#"{}{"sessionId":"old"}"#,
            r#"{"sessionId":"never closed"#,
            r#"{"sessionId":"never closed\"#,
            r#"{"sessionId"#,
            "",
            "  \t\r",
        ] {
            check(line.as_bytes(), line.as_bytes());
        }
    }

    #[test]
    fn a_broken_line_ends_with_its_newline_and_the_next_is_read_from_its_beginning() {
        for broken in [
            "{\"a\":\"open",
            "{\"a\":\"open\\",
            "{\"sessionId\":\"open",
            "{\"sessionId\":nul",
            "{\"a\":[{",
            "{\"a",
            "x",
            "}",
            "{\"sessionId\":",
        ] {
            let line = |id: &str| format!("{broken}\n{{\"sessionId\":\"{id}\"}}\r\n\n{broken}\n");
            let copied = check(line("old").as_bytes(), line("new").as_bytes());
            assert_eq!((copied.lines, copied.cut_off), (3, false), "{broken}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_stay_and_a_last_line_without_a_newline_is_said() {
        check(
            b"\xff\xfe\n{\"\xc3\":\"\xff\",\"sessionId\":\"\xe9\"}\n",
            b"\xff\xfe\n{\"\xc3\":\"\xff\",\"sessionId\":\"new\"}\n",
        );
        assert!(check(b"{\"sessionId\":\"old\"}", b"{\"sessionId\":\"new\"}").cut_off);
        assert!(!check(b"{\"sessionId\":\"old\"}\n", b"{\"sessionId\":\"new\"}\n").cut_off);
    }

    #[test]
    fn a_value_that_is_too_long_for_an_id_stays() {
        for value in [format!("\"{}\"", "x".repeat(9000)), "1".repeat(9000)] {
            let line = |id: &str| format!("{{\"sessionId\":{value},\"sessionId\":\"{id}\"}}\n");
            check(line("old").as_bytes(), line("new").as_bytes());
        }
        let line = format!("{{\"{}\":\"old\"}}\n", "sessionId".repeat(1000));
        check(line.as_bytes(), line.as_bytes());
    }

    #[test]
    fn an_id_is_a_uuid_and_cannot_lead_anywhere() {
        for good in ["428214a0-5123-43c6-ae2b-86a56b0968a8", "428214A0-5123-43C6-AE2B-86A56B0968A8"] {
            assert!(is_session_id(good), "{good}");
        }
        for bad in [
            "",
            "428214a0-5123-43c6-ae2b-86a56b0968a",
            "428214a0-5123-43c6-ae2b-86a56b0968a8a",
            "428214a0x5123-43c6-ae2b-86a56b0968a8",
            "428214a05123-43c6-ae2b-86a56b0968a8-1",
            "../../../../../../../../etc/passwd.js",
            "g28214a0-5123-43c6-ae2b-86a56b0968a8",
            "428214a0-5123-43c6-ae2b-86a56b0968é",
        ] {
            assert!(!is_session_id(bad), "{bad}");
        }
    }

    #[test]
    fn a_uuid_says_that_it_is_random() {
        for (random, expected) in [
            ([0; 16], "00000000-0000-4000-8000-000000000000"),
            ([0xff; 16], "ffffffff-ffff-4fff-bfff-ffffffffffff"),
            (*b"0123456789abcdef", "30313233-3435-4637-b839-616263646566"),
        ] {
            assert_eq!(uuid(random), expected);
            assert!(is_session_id(expected));
        }
    }
}
