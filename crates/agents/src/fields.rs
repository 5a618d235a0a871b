//! Reading only the needed fields of a report.
//!
//! A field is a slice of the report's bytes until its value is needed, so a report costs no memory for what piton does
//! not use, however long that is.

use std::borrow::Cow;
use std::fmt;

use piton_model::short::cut;
use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::event::BadReport;

/// A field as written in the report; `None` if it is absent or `null`.
pub(crate) type Raw<'a> = Option<&'a RawValue>;

/// Reads an object whose fields are [`Raw`].
pub(crate) fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, BadReport> {
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(BadReport::NotAnObject);
    }
    // Cut, since a parser may quote what it did not expect.
    serde_json::from_slice(bytes).map_err(|e| BadReport::Json { message: cut(&e.to_string(), 200) })
}

/// Like [`read`], for a field that is itself an object.
pub(crate) fn object<'a, T: Deserialize<'a>>(raw: Raw<'a>) -> Option<T> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
}

/// The text of a field; `None` if it is not a string.
pub(crate) fn text<'a>(raw: Raw<'a>) -> Option<Cow<'a, str>> {
    object::<Text<'a>>(raw.filter(|raw| raw.get().starts_with('"'))).map(|text| text.0)
}

pub(crate) fn required<'a>(field: &'static str, raw: Raw<'a>) -> Result<Cow<'a, str>, BadReport> {
    optional(field, raw)?.ok_or(BadReport::Missing { field })
}

/// The text of an optional field, which must be a string if it exists.
pub(crate) fn optional<'a>(field: &'static str, raw: Raw<'a>) -> Result<Option<Cow<'a, str>>, BadReport> {
    match (raw, text(raw)) {
        (Some(_), None) => Err(BadReport::Wrong { field, expected: "text" }),
        (_, text) => Ok(text),
    }
}

pub(crate) fn is_true(raw: Raw<'_>) -> bool {
    raw.is_some_and(|raw| raw.get() == "true")
}

/// Whether a field is a non-empty list.
pub(crate) fn is_full_list(raw: Raw<'_>) -> bool {
    raw.and_then(|raw| raw.get().strip_prefix('[')).is_some_and(|rest| !rest.trim_start().starts_with(']'))
}

/// The first `MAX` texts of a list; `None` if the field is not a list of strings.
pub(crate) fn texts<const MAX: usize>(raw: Raw<'_>) -> Option<Vec<String>> {
    object::<Texts<MAX>>(raw).map(|texts| texts.0)
}

/// A JSON string, read as bytes: JavaScript cuts its strings anywhere, and half of a surrogate pair, which serde
/// refuses in text, must not cost a capture.
pub(crate) struct Text<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl<'de> Visitor<'de> for Bytes {
            type Value = Cow<'de, str>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }

            fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
                Ok(String::from_utf8_lossy(bytes))
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                Ok(Cow::Owned(String::from_utf8_lossy(bytes).into_owned()))
            }
        }

        d.deserialize_bytes(Bytes).map(Text)
    }
}

/// A list of texts; those after the first `MAX` are skipped.
struct Texts<const MAX: usize>(Vec<String>);

impl<'de, const MAX: usize> Deserialize<'de> for Texts<MAX> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct List<const MAX: usize>;

        impl<'de, const MAX: usize> Visitor<'de> for List<MAX> {
            type Value = Vec<String>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of texts")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut out = Vec::new();
                while out.len() < MAX {
                    match seq.next_element::<Text<'de>>()? {
                        Some(text) => out.push(text.0.into_owned()),
                        None => return Ok(out),
                    }
                }
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(out)
            }
        }

        d.deserialize_seq(List::<MAX>).map(Texts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn half_of_a_surrogate_pair_is_text_with_a_hole() {
        for (json, expected) in [
            (r#""plain""#, Some("plain")),
            (r#""\ud83d\ude00""#, Some("😀")),
            (r#""cut \ud83d""#, Some("cut \u{fffd}\u{fffd}\u{fffd}")),
            ("7", None),
            (r#"["x"]"#, None),
            ("null", None),
        ] {
            let raw = raw(json);
            assert_eq!(text(Some(&raw)).as_deref(), expected, "{json}");
        }
    }

    #[test]
    fn a_list_is_cut_and_must_hold_texts() {
        for (json, expected) in [
            ("[]", Some(vec![])),
            (r#"["a"]"#, Some(vec!["a"])),
            (r#"["a","b","c",7]"#, Some(vec!["a", "b"])),
            (r#"["a",7]"#, None),
            (r#""a""#, None),
            ("{}", None),
        ] {
            let raw = raw(json);
            let expected = expected.map(|list| list.into_iter().map(String::from).collect::<Vec<_>>());
            assert_eq!(texts::<2>(Some(&raw)), expected, "{json}");
        }
    }

    #[test]
    fn a_list_is_full_when_something_is_in_it() {
        for (json, expected) in [("[]", false), ("[ ]", false), ("[{}]", true), ("{}", false), ("\"[1]\"", false)] {
            assert_eq!(is_full_list(Some(&raw(json))), expected, "{json}");
        }
        assert!(!is_full_list(None));
    }

    #[test]
    fn an_error_does_not_repeat_a_long_report() {
        #[derive(Debug, serde::Deserialize)]
        struct Few<'a> {
            #[serde(borrow)]
            #[allow(dead_code, reason = "only the reading matters")]
            a: Raw<'a>,
        }
        assert_eq!(read::<Few<'_>>(b"").unwrap_err(), BadReport::NotAnObject);
        assert_eq!(read::<Few<'_>>(b"[1]").unwrap_err(), BadReport::NotAnObject);
        let long = format!("\"{}\"", "x".repeat(5000));
        assert_eq!(read::<Few<'_>>(long.as_bytes()).unwrap_err(), BadReport::NotAnObject);
        let twice = format!("{{\"a\":1,\"a\":{long}}}");
        let BadReport::Json { message } = read::<Few<'_>>(twice.as_bytes()).unwrap_err() else { panic!() };
        assert!(message.len() < 300, "{message}");
    }
}
