//! Names and paths inside a workspace: bytes, not necessarily UTF-8, that never lead out of it.

use std::borrow::Borrow;
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a name or path cannot be in a tree.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadPath {
    /// A component is empty, or the whole path is absolute.
    #[error("a path inside the workspace has no empty component and does not begin with `/`")]
    Empty,
    /// `.` or `..`.
    #[error("a path inside the workspace has no `.` or `..`")]
    Dots,
    /// `.git`, in any case: piton never reads or writes there.
    #[error("`.git` is never captured")]
    Git,
    /// A NUL byte, or `/` in a name.
    #[error("a name holds no `/` and no NUL byte")]
    Byte,
    /// The base64 form is not base64.
    #[error("not base64")]
    Base64,
}

/// Checks that a name may be in a tree.
pub fn check_name(name: &[u8]) -> Result<(), BadPath> {
    match name {
        b"" => Err(BadPath::Empty),
        b"." | b".." => Err(BadPath::Dots),
        _ if is_git(name) => Err(BadPath::Git),
        _ if name.iter().any(|b| matches!(b, b'/' | 0)) => Err(BadPath::Byte),
        _ => Ok(()),
    }
}

/// Whether a name is `.git` on any filesystem, including those that fold case.
pub fn is_git(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b".git")
}

/// One name in a folder, as accepted by [`check_name`].
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryName(Box<[u8]>);

impl EntryName {
    pub fn new(name: impl Into<Box<[u8]>>) -> Result<Self, BadPath> {
        let name = name.into();
        check_name(&name)?;
        Ok(Self(name))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for EntryName {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for EntryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

/// A path beneath the workspace's root: names joined by `/`. The empty path is the root itself.
///
/// Ordered name by name, so that a folder comes right before what it holds.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct WorkspacePath(Vec<u8>);

impl WorkspacePath {
    pub fn root() -> Self {
        Self::default()
    }

    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, BadPath> {
        let bytes = bytes.into();
        if !bytes.is_empty() {
            bytes.split(|b| *b == b'/').try_for_each(check_name)?;
        }
        Ok(Self(bytes))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// As a relative path of the system.
    #[cfg(unix)]
    pub fn as_path(&self) -> &Path {
        use std::os::unix::ffi::OsStrExt;
        Path::new(OsStr::from_bytes(&self.0))
    }

    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The path of a name in this folder.
    pub fn join(&self, name: &EntryName) -> Self {
        let mut bytes = Vec::with_capacity(self.0.len() + 1 + name.as_bytes().len());
        bytes.extend_from_slice(&self.0);
        if !bytes.is_empty() {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name.as_bytes());
        Self(bytes)
    }

    /// Like [`WorkspacePath::join`], for a listed name that no entry may have (`.Git`). For display only.
    pub fn join_any(&self, name: &[u8]) -> Self {
        let mut bytes = self.0.clone();
        if !bytes.is_empty() {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name);
        Self(bytes)
    }

    /// The names from the root down.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|b| *b == b'/').filter(|n| !n.is_empty())
    }

    /// The parent folder and its name there; `None` for the root.
    pub fn split(&self) -> Option<(WorkspacePath, EntryName)> {
        if self.is_root() {
            return None;
        }
        let (parent, name) = match self.0.iter().rposition(|b| *b == b'/') {
            Some(at) => (&self.0[..at], &self.0[at + 1..]),
            None => (&[][..], &self.0[..]),
        };
        Some((Self(parent.to_vec()), EntryName(name.into())))
    }

    /// Whether this is one of the scope's paths or lies beneath one. An empty scope contains everything.
    pub fn is_in_scope(&self, scope: &[WorkspacePath]) -> bool {
        scope.is_empty() || scope.iter().any(|path| self.is_within(path))
    }

    /// Whether this is one of some paths or lies beneath one.
    pub fn is_in_any(&self, paths: &[WorkspacePath]) -> bool {
        paths.iter().any(|path| self.is_within(path))
    }

    /// Whether this is `other` or lies beneath it.
    pub fn is_within(&self, other: &WorkspacePath) -> bool {
        other.is_root() || (self.0.starts_with(&other.0) && matches!(self.0.get(other.0.len()), None | Some(b'/')))
    }

    /// For people: lossy where it is not UTF-8, `.` for the root.
    pub fn display(&self) -> String {
        if self.is_root() { ".".into() } else { String::from_utf8_lossy(&self.0).into_owned() }
    }

    /// The base64 form that accompanies the readable one in JSON, only where the path is not UTF-8.
    pub fn base64(&self) -> Option<String> {
        std::str::from_utf8(&self.0).is_err().then(|| BASE64.encode(&self.0))
    }

    pub fn from_base64(text: &str) -> Result<Self, BadPath> {
        Self::new(BASE64.decode(text).map_err(|_| BadPath::Base64)?)
    }
}

pub fn decode_base64(text: &str) -> Result<Vec<u8>, BadPath> {
    BASE64.decode(text).map_err(|_| BadPath::Base64)
}

pub fn encode_base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Compares two paths name by name: `/` sorts below any byte of a name.
pub fn compare_bytes(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    let key = |b: &u8| if *b == b'/' { 0 } else { *b };
    match a.iter().zip(b).find(|(x, y)| x != y) {
        Some((x, y)) => key(x).cmp(&key(y)),
        None => a.len().cmp(&b.len()),
    }
}

impl Ord for WorkspacePath {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        compare_bytes(&self.0, &other.0)
    }
}

impl PartialOrd for WorkspacePath {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.display())
    }
}

/// In piton's own records a path is a string where it is UTF-8 and `{"b64": …}` where it is not.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PathForm {
    Text(String),
    Bytes { b64: String },
}

impl Serialize for WorkspacePath {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => s.serialize_str(text),
            Err(_) => PathForm::Bytes { b64: BASE64.encode(&self.0) }.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for WorkspacePath {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        match PathForm::deserialize(d)? {
            PathForm::Text(text) => Self::new(text),
            PathForm::Bytes { b64 } => Self::from_base64(&b64),
        }
        .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> WorkspacePath {
        WorkspacePath::new(text).unwrap()
    }

    #[test]
    fn a_path_that_could_leave_the_workspace_or_enter_git_cannot_be_made() {
        for (bad, why) in [
            ("/etc/passwd", BadPath::Empty),
            ("a//b", BadPath::Empty),
            ("a/", BadPath::Empty),
            ("../x", BadPath::Dots),
            ("a/./b", BadPath::Dots),
            ("a/.git/config", BadPath::Git),
            (".GIT", BadPath::Git),
            ("a\0b", BadPath::Byte),
        ] {
            assert_eq!(WorkspacePath::new(bad), Err(why), "{bad:?}");
        }
        assert!(EntryName::new(*b"a/b").is_err());
    }

    #[test]
    fn a_folder_sorts_right_before_what_it_holds() {
        let mut paths = [path("a.txt"), path("a/b"), path("a"), path("a-b"), path("a/b/c")];
        paths.sort();
        assert_eq!(paths.map(|p| p.display()), ["a", "a/b", "a/b/c", "a-b", "a.txt"]);
    }

    #[test]
    fn within_means_whole_names() {
        assert!(path("src/a").is_within(&path("src")));
        assert!(path("src").is_within(&path("src")));
        assert!(!path("src2").is_within(&path("src")));
        assert!(path("x").is_within(&WorkspacePath::root()));
    }

    #[test]
    fn bytes_that_are_not_utf_8_survive_the_records_form() {
        let odd = WorkspacePath::new(b"a/\xff\xfe".to_vec()).unwrap();
        let json = serde_json::to_string(&odd).unwrap();
        assert_eq!(serde_json::from_str::<WorkspacePath>(&json).unwrap(), odd);
        assert_eq!(WorkspacePath::from_base64(&odd.base64().unwrap()).unwrap(), odd);
        assert_eq!(path("ok").base64(), None);
    }
}
