//! Ids: objects are named by their content, moments and operations at random.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The name of a blob or a tree: the BLAKE3 hash of its content.
///
/// Trees are hashed with their own key, so that a file whose bytes happen to be a tree's encoding never has that tree's
/// id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub [u8; 32]);

/// Derives the key that keeps trees and blobs apart. Part of the on-disk format: never change it.
const TREE_CONTEXT: &str = "piton 2026-11 tree";

impl ObjectId {
    pub fn of_blob(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The id of a tree, given its encoding.
    pub fn of_tree(encoded: &[u8]) -> Self {
        Self(blake3::derive_key(TREE_CONTEXT, encoded))
    }

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

/// Length of a random id.
const LETTERS: usize = 16;

/// Encodes random bytes in letters from k to z, so that an id never looks like a number, a name such as `t5`, or a
/// hash.
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
            /// An id from eight random bytes that the caller draws.
            pub fn from_random(random: [u8; 8]) -> Self {
                Self(letters(random))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The first letters, as shown to people, who may type any unique prefix.
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

random_id!(CheckpointId);
random_id!(
    /// Also part of the names of the files that the operation stages.
    OperationId
);
random_id!(
    /// Means something in the process that made the plan alone.
    PlanId
);
random_id!(
    /// Stays the same when the workspace is moved to another path.
    WorkspaceId
);
random_id!(
    /// The same in every store.
    SessionId
);

impl SessionId {
    /// The id of a session, derived from its agent and the agent's own id for it.
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
