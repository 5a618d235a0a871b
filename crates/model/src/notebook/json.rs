//! Checking that a merged notebook is valid JSON, and reading the members of an object as slices of its text.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

pub(super) fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

/// Whether a result is JSON without duplicate names in an object, unless a side had those already: merging lines can
/// break both.
pub(super) fn as_sound(text: &[u8], ours: &[u8], theirs: &[u8]) -> bool {
    let unique = |bytes| serde_json::from_slice::<Unique>(bytes).is_ok();
    is_json(text) && (unique(text) || !(unique(ours) && unique(theirs)))
}

/// The members of an object in order, without duplicate names.
pub(super) struct Members<'a>(pub(super) Vec<(String, &'a str)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Vec<(String, &'de str)>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let (mut out, mut names) = (Vec::new(), HashSet::new());
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    if !names.insert(name.clone()) {
                        return Err(A::Error::custom("a name twice"));
                    }
                    out.push((name, value.get()));
                }
                Ok(out)
            }
        }
        deserializer.deserialize_map(Read).map(Self)
    }
}

/// Any JSON without duplicate names in an object.
pub(super) struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Unique;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_bool<E>(self, _: bool) -> Result<Unique, E> {
                Ok(Unique)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Unique, E> {
                Ok(Unique)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Unique, E> {
                Ok(Unique)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Unique, E> {
                Ok(Unique)
            }

            fn visit_str<E>(self, _: &str) -> Result<Unique, E> {
                Ok(Unique)
            }

            fn visit_unit<E>(self) -> Result<Unique, E> {
                Ok(Unique)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Unique, A::Error> {
                while seq.next_element::<Unique>()?.is_some() {}
                Ok(Unique)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Unique, A::Error> {
                let mut names = HashSet::new();
                while let Some((name, _)) = map.next_entry::<String, Unique>()? {
                    if !names.insert(name) {
                        return Err(A::Error::custom("a name twice"));
                    }
                }
                Ok(Unique)
            }
        }
        deserializer.deserialize_any(Read)
    }
}
