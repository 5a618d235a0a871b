//! Ids: what names an object by its content, and what names a moment or an act at random.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The name of a blob or a tree: the BLAKE3 hash of its content.
///
/// Trees hash under a key of their own, so that a file whose bytes happen to be a tree's encoding is never taken for
/// that tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub [u8; 32]);

/// Derives the key that keeps trees and blobs apart. Part of the on-disk format: never change it.
const TREE_CONTEXT: &str = "piton 2026-11 tree";

impl ObjectId {
    /// The id of a file's bytes.
    pub fn of_blob(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The id of a tree, given its encoding.
    pub fn of_tree(encoded: &[u8]) -> Self {
        Self(blake3::derive_key(TREE_CONTEXT, encoded))
    }

    /// The hexadecimal form.
    pub fn to_hex(&self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex()[..12])
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl Serialize for ObjectId {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.to_hex())
    }
}

impl<'de> Deserialize<'de> for ObjectId {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        let hash = blake3::Hash::from_hex(text.as_bytes()).map_err(serde::de::Error::custom)?;
        Ok(Self(*hash.as_bytes()))
    }
}

/// Why a text is not one of piton's random ids.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("an id is 16 letters from k to z")]
pub struct BadId;

/// Letters of a random id.
const LETTERS: usize = 16;

/// Writes random bytes in letters from k to z, so that an id never looks like a number, a name such as `t5`, or a hash.
fn letters(random: [u8; 8]) -> String {
    random.iter().flat_map(|b| [b >> 4, b & 15]).map(|n| (b'k' + n) as char).collect()
}

/// Whether a text could be the beginning of an id.
pub fn is_id_prefix(text: &str) -> bool {
    !text.is_empty() && text.len() <= LETTERS && text.bytes().all(|b| (b'k'..=b'z').contains(&b))
}

macro_rules! random_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// An id from eight random bytes, which the caller draws.
            pub fn from_random(random: [u8; 8]) -> Self {
                Self(letters(random))
            }

            /// The sixteen letters.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The first letters: enough for a person, who may type any prefix that is unique.
            pub fn short(&self) -> &str {
                &self.0[..8]
            }
        }

        impl FromStr for $name {
            type Err = BadId;
            fn from_str(text: &str) -> Result<Self, BadId> {
                if text.len() == LETTERS && is_id_prefix(text) { Ok(Self(text.to_owned())) } else { Err(BadId) }
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadId;
            fn try_from(text: String) -> Result<Self, BadId> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

random_id!(
    /// Names a checkpoint.
    CheckpointId
);
random_id!(
    /// Names an operation; also part of the names of the files that it stages.
    OperationId
);
random_id!(
    /// Names a workspace, whatever path it is at.
    WorkspaceId
);
random_id!(
    /// Names a session, the same in every store.
    SessionId
);

impl SessionId {
    /// The id of a session, from its agent and what the agent calls it.
    pub fn of(agent: &str, agent_id: &str) -> Self {
        let hash = blake3::derive_key("piton 2026-11 session", format!("{agent}\0{agent_id}").as_bytes());
        let mut first = [0; 8];
        first.copy_from_slice(&hash[..8]);
        Self::from_random(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_letters_from_k_to_z_only_and_reads_back() {
        let id = CheckpointId::from_random([0x00, 0x1f, 0xf0, 0xff, 1, 2, 3, 4]);
        assert_eq!(id.as_str(), "kklzzkzzklkmknko");
        assert_eq!(id.as_str().parse::<CheckpointId>(), Ok(id));
    }

    #[test]
    fn an_id_with_another_letter_or_length_is_refused() {
        for bad in ["", "kkkk", "kkkkkkkkkkkkkkka", "../kkkkkkkkkkkkk", "KKKKKKKKKKKKKKKK"] {
            assert_eq!(bad.parse::<OperationId>(), Err(BadId), "{bad}");
        }
    }

    #[test]
    fn a_blob_with_a_trees_bytes_has_another_id() {
        assert_ne!(ObjectId::of_blob(b"same"), ObjectId::of_tree(b"same"));
    }
}
