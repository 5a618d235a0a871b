//! A disk in memory: the contents of its files, and which names lead to them.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The number of a file, folder or link.
pub type Inode = usize;

/// The recorded folder.
pub(super) const ROOT: Inode = 0;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    File(Vec<u8>),
    /// Its contents are in [`Disk::names`].
    Folder,
    Link(Vec<u8>),
}

/// Everything on a disk. Includes inodes without a name: a name that survives may lead to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// Every inode with its permission bits.
    pub nodes: Vec<(Node, u32)>,
    /// Which name in which folder leads where.
    pub names: BTreeMap<(Inode, Vec<u8>), Inode>,
}

/// One change of a disk, which happens as a whole or, for bytes, block by block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    Write {
        file: Inode,
        at: u64,
        bytes: Vec<u8>,
    },
    /// A file is truncated, or extended with zeros.
    Length(Inode, u64),
    Mode(Inode, u32),
    /// Names appear, disappear, or lead elsewhere, all at once: a rename is two of them.
    Names(Vec<(Inode, Vec<u8>, Option<Inode>)>),
}

impl Effect {
    /// The inode whose bytes or bits change; `None` for names.
    pub fn inode(&self) -> Option<Inode> {
        match self {
            Self::Write { file, .. } | Self::Length(file, _) | Self::Mode(file, _) => Some(*file),
            Self::Names(_) => None,
        }
    }
}

impl Disk {
    /// Reads a folder.
    pub fn read(folder: &Path) -> Self {
        let mut disk = Self { nodes: vec![(Node::Folder, mode_of(folder))], names: BTreeMap::new() };
        disk.read_into(ROOT, folder);
        disk
    }

    fn read_into(&mut self, folder: Inode, path: &Path) {
        for entry in std::fs::read_dir(path).expect("a folder can be listed") {
            let path = entry.expect("a folder can be listed to its end").path();
            let name = path.file_name().expect("an entry has a name").as_bytes().to_vec();
            let kind = std::fs::symlink_metadata(&path).expect("a listed name has a status").file_type();
            let node = if kind.is_dir() {
                Node::Folder
            } else if kind.is_symlink() {
                Node::Link(std::fs::read_link(&path).expect("a link has a target").into_os_string().into_vec())
            } else {
                Node::File(std::fs::read(&path).expect("a file can be read"))
            };
            let inode = self.make(node, mode_of(&path));
            self.names.insert((folder, name), inode);
            if kind.is_dir() {
                self.read_into(inode, &path);
            }
        }
    }

    /// Adds an inode that no name leads to yet.
    pub fn make(&mut self, node: Node, mode: u32) -> Inode {
        self.nodes.push((node, mode));
        self.nodes.len() - 1
    }

    /// Where a path leads, relative to the recorded folder.
    pub fn find(&self, path: &Path) -> Option<Inode> {
        path.iter().try_fold(ROOT, |folder, name| self.names.get(&(folder, name.as_bytes().to_vec())).copied())
    }

    pub fn apply(&mut self, effect: &Effect) {
        match effect {
            Effect::Write { file, at, bytes } => self.write(*file, *at, bytes),
            Effect::Length(file, length) => {
                if let Node::File(content) = &mut self.nodes[*file].0 {
                    content.resize(*length as usize, 0);
                }
            }
            Effect::Mode(inode, mode) => self.nodes[*inode].1 = *mode,
            Effect::Names(names) => {
                for (folder, name, to) in names {
                    match to {
                        Some(to) => self.names.insert((*folder, name.clone()), *to),
                        None => self.names.remove(&(*folder, name.clone())),
                    };
                }
            }
        }
    }

    /// Writes bytes; a gap before them reads as zeros.
    pub fn write(&mut self, file: Inode, at: u64, bytes: &[u8]) {
        let Node::File(content) = &mut self.nodes[file].0 else { return };
        let end = at as usize + bytes.len();
        if content.len() < end {
            content.resize(end, 0);
        }
        content[at as usize..end].copy_from_slice(bytes);
    }

    /// Every path with what is there, except for SQLite's shared memory, which never reaches a disk.
    pub fn paths(&self) -> BTreeMap<PathBuf, &(Node, u32)> {
        let mut paths = BTreeMap::new();
        let mut todo = vec![(ROOT, PathBuf::new())];
        while let Some((folder, path)) = todo.pop() {
            let inside = self.names.range((folder, Vec::new())..).take_while(|((of, _), _)| *of == folder);
            for ((_, name), inode) in inside.filter(|((_, name), _)| !name.ends_with(b"-shm")) {
                let path = path.join(std::ffi::OsStr::from_bytes(name));
                let found = &self.nodes[*inode];
                // A folder that lost some of its renames may have two names, or be inside itself.
                if found.0 == Node::Folder && path.iter().count() < 64 {
                    todo.push((*inode, path.clone()));
                }
                paths.insert(path, found);
            }
        }
        paths
    }

    /// Distinguishes states.
    pub fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.paths().hash(&mut hasher);
        hasher.finish()
    }

    /// Makes subfolders of the recorded one what they are on this disk. The folders themselves stay, since a workspace
    /// is known by its inode; missing ones are created.
    pub fn restore(&self, base: &Path, folders: &[&str]) {
        for folder in folders {
            let at = base.join(folder);
            std::fs::create_dir_all(&at).expect("a folder can be made");
            for entry in std::fs::read_dir(&at).expect("a folder can be listed") {
                let path = entry.expect("a folder can be listed to its end").path();
                remove(&path);
            }
        }
        let paths = self.paths();
        let wanted = paths.iter().filter(|(path, _)| folders.iter().any(|folder| path.starts_with(folder)));
        let mut modes = Vec::new();
        for (path, (node, mode)) in wanted {
            let path = base.join(path);
            match node {
                Node::Folder => {
                    std::fs::create_dir_all(&path).expect("a folder can be made");
                    modes.push((path, mode));
                }
                Node::Link(target) => {
                    std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(target), &path).expect("a link can be made");
                }
                Node::File(bytes) => {
                    std::fs::write(&path, bytes).expect("a file can be written");
                    modes.push((path, mode));
                }
            }
        }
        for (path, mode) in modes.into_iter().rev() {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(*mode)).expect("bits can be set");
        }
    }
}

fn remove(path: &Path) {
    let kind = std::fs::symlink_metadata(path).expect("a listed name has a status").file_type();
    if kind.is_dir() {
        // Only root can remove the contents of a folder without its owner's bits.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).expect("bits can be set");
        for entry in std::fs::read_dir(path).expect("a folder can be listed") {
            remove(&entry.expect("a folder can be listed to its end").path());
        }
        std::fs::remove_dir(path).expect("an empty folder goes");
    } else {
        std::fs::remove_file(path).expect("a file goes");
    }
}

fn mode_of(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).expect("what is read is there").mode() & 0o7777
}
