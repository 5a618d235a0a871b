//! The contents of a folder, read without piton.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Every path of a folder with its kind, mode and bytes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Snapshot(BTreeMap<Vec<u8>, Node>);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Node {
    File { mode: u32, bytes: Vec<u8> },
    Symlink { target: Vec<u8> },
    Folder { mode: u32 },
    Other,
    Unreadable,
}

/// Reads a folder; a missing one is empty.
pub fn snapshot(folder: &Path) -> Snapshot {
    let mut nodes = BTreeMap::new();
    walk(folder, folder, &mut nodes);
    Snapshot(nodes)
}

fn walk(root: &Path, folder: &Path, nodes: &mut BTreeMap<Vec<u8>, Node>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("a folder can be listed to its end").path();
        let meta = std::fs::symlink_metadata(&path).expect("a listed name has a status");
        let kind = meta.file_type();
        let mode = meta.mode() & 0o7777;
        let node = if kind.is_symlink() {
            let target = std::fs::read_link(&path).expect("a link has a target");
            Node::Symlink { target: target.into_os_string().into_vec() }
        } else if kind.is_dir() {
            Node::Folder { mode }
        } else if kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device() {
            Node::Other
        } else {
            match std::fs::read(&path) {
                Ok(bytes) => Node::File { mode, bytes },
                Err(_) => Node::Unreadable,
            }
        };
        let name = path.strip_prefix(root).expect("a child is beneath its root");
        nodes.insert(name.as_os_str().as_bytes().to_vec(), node);
        if kind.is_dir() {
            walk(root, &path, nodes);
        }
    }
}

impl Snapshot {
    pub(crate) fn put_file(&mut self, path: Vec<u8>, mode: u32, bytes: Vec<u8>) {
        self.0.insert(path, Node::File { mode, bytes });
    }

    pub(crate) fn put_link(&mut self, path: Vec<u8>, target: Vec<u8>) {
        self.0.insert(path, Node::Symlink { target });
    }

    pub(crate) fn put_folder(&mut self, path: Vec<u8>, mode: u32) {
        self.0.insert(path, Node::Folder { mode });
    }

    /// The same without a path and what is beneath it.
    pub fn without(mut self, path: &str) -> Self {
        let beneath = format!("{path}/");
        self.0.retain(|p, _| p != path.as_bytes() && !p.starts_with(beneath.as_bytes()));
        self
    }

    /// What is beneath a folder, by relative path.
    pub fn beneath(&self, folder: &str) -> Self {
        let above = format!("{folder}/");
        let inside =
            self.0.iter().filter_map(|(p, node)| Some((p.strip_prefix(above.as_bytes())?.to_vec(), node.clone())));
        Self(inside.collect())
    }

    /// The same without what an operation staged at the root and has not cleared yet.
    pub fn without_staged(mut self) -> Self {
        self.0.retain(|p, _| !p.starts_with(b".piton-"));
        self
    }

    pub fn has(&self, path: &str) -> bool {
        self.0.contains_key(path.as_bytes())
    }

    pub fn bytes(&self, path: &str) -> Option<&[u8]> {
        match self.0.get(path.as_bytes())? {
            Node::File { bytes, .. } => Some(bytes),
            _ => None,
        }
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every file's content; for finding one wherever it is.
    pub fn contents(&self) -> impl Iterator<Item = &[u8]> {
        self.0.values().filter_map(|n| match n {
            Node::File { bytes, .. } => Some(&bytes[..]),
            _ => None,
        })
    }

    /// The paths that differ, for a readable message.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut out = Vec::new();
        for path in self.0.keys().chain(other.0.keys().filter(|p| !self.0.contains_key(*p))) {
            let (a, b) = (self.0.get(path), other.0.get(path));
            if a != b {
                out.push(format!("{}: {} | {}", String::from_utf8_lossy(path), describe(a), describe(b)));
            }
        }
        out
    }
}

fn describe(node: Option<&Node>) -> String {
    match node {
        None => "absent".into(),
        Some(Node::File { mode, bytes }) => {
            format!("file {mode:o} {:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(40)]))
        }
        Some(Node::Symlink { target }) => format!("link to {:?}", String::from_utf8_lossy(target)),
        Some(Node::Folder { mode }) => format!("folder {mode:o}"),
        Some(other) => format!("{other:?}"),
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(p, n)| (String::from_utf8_lossy(p), describe(Some(n))))).finish()
    }
}
