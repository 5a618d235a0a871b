//! Git's ids: SHA-1, or SHA-256 where a repository chose it.

use sha1::Digest as _;

/// Which hash a repository uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Format {
    #[default]
    Sha1,
    Sha256,
}

impl Format {
    /// In bytes.
    pub(super) fn len(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    pub(super) fn hasher(self) -> Hasher {
        match self {
            Self::Sha1 => Hasher::Sha1(sha1::Sha1::new()),
            Self::Sha256 => Hasher::Sha256(sha2::Sha256::new()),
        }
    }

    pub(super) fn id_of(self, kind: &str, content: &[u8]) -> Id {
        let mut hasher = self.hasher();
        hasher.update(format!("{kind} {}\0", content.len()).as_bytes());
        hasher.update(content);
        hasher.finish()
    }
}

pub(super) enum Hasher {
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
}

impl Hasher {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(hasher) => hasher.update(bytes),
            Self::Sha256(hasher) => hasher.update(bytes),
        }
    }

    pub(super) fn finish(self) -> Id {
        match self {
            Self::Sha1(hasher) => Id::from_bytes(&hasher.finalize()),
            Self::Sha256(hasher) => Id::from_bytes(&hasher.finalize()),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Id {
    bytes: [u8; 32],
    len: u8,
}

impl Id {
    /// From 20 or 32 bytes; anything longer is cut.
    pub(super) fn from_bytes(from: &[u8]) -> Self {
        let len = from.len().min(32);
        let mut bytes = [0; 32];
        bytes[..len].copy_from_slice(&from[..len]);
        Self { bytes, len: len as u8 }
    }

    /// Requires exactly as many hexadecimal digits as the format has.
    pub(super) fn from_hex(text: &[u8], format: Format) -> Option<Self> {
        if text.len() != format.len() * 2 {
            return None;
        }
        let digit = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self { bytes, len: format.len() as u8 })
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }

    pub(super) fn to_hex(self) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digits = |b: &u8| [DIGITS[(b >> 4) as usize] as char, DIGITS[(b & 15) as usize] as char];
        self.as_bytes().iter().flat_map(digits).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_that_git_gives() {
        for (format, hex) in [
            (Format::Sha1, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"),
            (Format::Sha256, "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"),
        ] {
            let id = format.id_of("blob", b"");
            assert_eq!(id.to_hex(), hex);
            assert!(Id::from_hex(hex.as_bytes(), format) == Some(id));
            assert!(Id::from_hex(&hex.as_bytes()[1..], format).is_none());
            assert!(Id::from_hex(hex.replace('e', "g").as_bytes(), format).is_none());
        }
    }
}
