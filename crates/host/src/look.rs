//! Checking what is at a path, for places outside any workspace and before one is opened. Paths in a workspace are
//! resolved from its open root instead.

use std::io;
use std::path::{Path, PathBuf};

/// Whether a folder is there, or a symlink to one.
pub fn is_folder(path: &Path) -> bool {
    path.is_dir()
}

/// Whether something is there, other than a dangling symlink.
pub fn is_there(path: &Path) -> bool {
    path.exists()
}

/// Whether the name is taken, even if only by a dangling symlink.
pub fn is_taken(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Whether the path itself is a symlink, wherever that leads.
pub fn is_link(path: &Path) -> bool {
    path.is_symlink()
}

/// The canonical form of a path, whose last names need not exist.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    match absolute.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match (absolute.parent(), absolute.file_name()) {
            (Some(parent), Some(name)) => Ok(canonical(parent)?.join(name)),
            _ => Err(error),
        },
        result => result,
    }
}

/// Like [`canonical`], for a folder that may be gone and one of whose parents may be a file by now.
pub fn canonical_folder(path: &Path) -> io::Result<PathBuf> {
    match (canonical(path), path.parent(), path.file_name()) {
        (Err(error), Some(parent), Some(name)) if error.kind() == io::ErrorKind::NotADirectory => {
            Ok(canonical_folder(parent)?.join(name))
        }
        (result, ..) => result,
    }
}
